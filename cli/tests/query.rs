//! `koel query` is used as grep is, and queries a filter in a file in place: without reading it, with every kernel, and even if the
//! file is replaced or removed.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use crate::common::{KOEL, Koel, facts, numbers};

#[test]
fn the_status_says_whether_anything_was_selected() {
    let koel = Koel::with_filter("apple\nbanana\n");
    // Some of the first list are found, all of the second, none of the third.
    let lists = ["apple\ncherry\nbanana\nplum\n", "apple\n", "plum\n"];
    for (options, expected) in [
        ("", [("apple\nbanana\n", 0), ("apple\n", 0), ("", 1)]),
        ("--absent", [("cherry\nplum\n", 0), ("", 1), ("plum\n", 0)]),
        ("--count", [("2\n", 0), ("1\n", 0), ("0\n", 1)]),
        ("--count --absent", [("2\n", 0), ("0\n", 1), ("1\n", 0)]),
        ("--quiet", [("", 0), ("", 0), ("", 1)]),
        ("--quiet --absent", [("", 0), ("", 1), ("", 0)]),
    ] {
        for (list, (printed, status)) in lists.into_iter().zip(expected) {
            let run = koel.feed(list, &format!("query f.koel {options}"));
            assert_eq!(run.status(status), printed.as_bytes(), "{options:?} {list}");
            assert_eq!(run.stderr, "");
        }
    }
}

#[test]
fn errors_have_a_status_of_their_own() {
    Koel::with_filter("apple\n").given("query").refuses(&[
        ("no.koel --item apple", &["no.koel", "No such file"]),
        ("f.koel no.txt", &["no.txt: cannot be read: no such file", "use --item"]),
        ("f.koel f.koel --item x", &["--item", "FILE"]),
        ("f.koel --count --quiet", &["--count", "--quiet"]),
        ("f.koel .", &[".: is a folder", "one item per line"]),
        (". --item x", &[".: is a folder", "koel build"]),
        ("-", &["standard input", "both", "--item"]),
    ]);
}

#[test]
#[cfg(unix)]
fn quiet_stops_at_the_first() {
    // `yes` never ends.
    Koel::with_filter("apple\n").shell("yes apple | koel query f.koel --quiet").ok();
}

/// `koel query f.koel`, waiting for the next item.
struct Waiting {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Waiting {
    fn new(koel: &Koel) -> Self {
        let mut command = Command::new(KOEL);
        command.args(["query".as_ref(), koel.path("f.koel").as_os_str()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let questions = child.stdin.take().expect("its input");
        let answers = BufReader::new(child.stdout.take().expect("its output"));
        Self { child, questions, answers }
    }

    /// Asks for several items, the last of which is known, and gives those that are found.
    fn ask(&mut self, items: &[&str]) -> Vec<String> {
        let last = *items.last().expect("an item");
        self.questions.write_all((items.join("\n") + "\n").as_bytes()).expect("a reader");
        let mut found = Vec::new();
        while found.last().is_none_or(|item| item != last) {
            let mut line = String::new();
            assert_ne!(self.answers.read_line(&mut line).expect("an answer"), 0, "it ended");
            found.push(line.trim_end().to_owned());
        }
        found
    }
}

#[test]
#[cfg(unix)]
fn a_query_continues_with_the_file_that_was_replaced() {
    let koel = Koel::new();
    koel.feed("apple\nbanana\n", "build - -o f.koel --capacity 1000").ok();
    let mut waiting = Waiting::new(&koel);
    // Each answer comes before the next question.
    for item in ["apple", "banana", "apple"] {
        assert_eq!(waiting.ask(&[item]), [item]);
    }
    assert_eq!(waiting.ask(&["cherry", "apple"]), ["apple"]);

    koel.run("add f.koel --item cherry").ok();
    koel.run("remove f.koel --item banana").ok();
    assert_eq!(waiting.ask(&["cherry", "banana", "apple"]), ["banana", "apple"]);
    // Another size, and none at all.
    koel.feed(numbers(0..100_000), "build - -o f.koel").ok();
    assert_eq!(waiting.ask(&["99999", "banana"]), ["banana"]);
    std::fs::remove_file(koel.path("f.koel")).expect("a file to delete");
    assert_eq!(waiting.ask(&["cherry", "apple"]), ["apple"]);
    drop(waiting.questions);
    assert!(waiting.child.wait().expect("its status").success());
}

/// In a map and in memory, at every table; what it builds and merges is the same, too.
#[test]
fn every_kernel_finds_the_same() {
    let koel = Koel::new();
    koel.write("items.txt", numbers(0..5000));
    koel.write("asked.txt", numbers(0..50_000));
    for options in ["--table single", "--table packed", "--grow"] {
        let all = |kernel: &str| {
            let run = |args: &str| koel.run_with(kernel, args).ok().to_vec();
            run(&format!("build items.txt -o f.koel --fpr 0.01 --capacity 20000 {options}"));
            run("merge f.koel f.koel -o twice.koel");
            let found = run("query f.koel asked.txt");
            assert!(run("query f.koel asked.txt --verify") == found, "{kernel}");
            (found, koel.read("f.koel"), koel.read("twice.koel"))
        };
        let portable = all("portable");
        assert!(portable.0.starts_with(numbers(0..5000).as_bytes()) && portable.0.len() > numbers(0..5000).len());
        assert!(koel.feed(&portable.1, "query - asked.txt").ok() == portable.0);
        for kernel in koel::Kernel::available() {
            assert!(all(&kernel.to_string()) == portable, "{kernel}");
        }
    }
}

/// A table that is far larger than the memory allowed is queried without reading it. That of a filter that grows, too.
#[test]
#[cfg(target_os = "linux")]
fn a_map_takes_no_memory() {
    for options in ["", "--grow --max-capacity 40000000"] {
        let koel = Koel::new();
        koel.feed("apple\n", &format!("build - -o f.koel --capacity 40000000 {options}")).ok();
        let bytes = facts(&koel, "f.koel")["table_bytes"].as_u64().expect("a number");
        assert!(bytes > 50_000_000);
        // This limits the process's own memory, not mapped files.
        for options in ["", "--verify"] {
            koel.shell(&format!("ulimit -d 32768; koel query f.koel --item apple --quiet {options}")).ok();
        }
        let read = koel.shell("ulimit -d 32768; koel query - --item apple --quiet < f.koel 2>&1 || test $? = 2");
        assert!(read.text().contains("memory"), "{}", read.text());
    }
}

#[test]
#[cfg(unix)]
fn pipes_are_read() {
    let koel = Koel::with_filter("apple\n");
    let run = koel.shell("mkfifo pipe; cat f.koel > pipe & timeout 20 koel query pipe --item apple --item plum && wait $!");
    assert_eq!(run.ok(), b"apple\n");
    let run = koel.shell("cat f.koel > pipe & timeout 20 koel verify pipe && wait $!");
    assert!(run.ok().starts_with(b"pipe: ok: "));
}
