//! A filter in a file is queried in place: without reading it, with every kernel, and even if the file is replaced or removed.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use crate::common::{KOEL, Koel, facts, numbers};

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

    fn end(mut self) {
        drop(self.questions);
        assert!(self.child.wait().expect("its status").success());
    }
}

#[test]
#[cfg(unix)]
fn a_query_continues_with_the_file_that_was_replaced() {
    let koel = Koel::new();
    koel.feed("apple\nbanana\n", ["build", "-", "-o", "f.koel", "--capacity", "1000"]).ok();
    let mut waiting = Waiting::new(&koel);
    assert_eq!(waiting.ask(&["cherry", "apple"]), ["apple"]);

    koel.run(["add", "f.koel", "--item", "cherry"]).ok();
    koel.run(["remove", "f.koel", "--item", "banana"]).ok();
    assert_eq!(waiting.ask(&["cherry", "banana", "apple"]), ["banana", "apple"]);
    // Another size, and none at all.
    koel.feed(numbers(0..100_000), ["build", "-", "-o", "f.koel"]).ok();
    assert_eq!(waiting.ask(&["99999", "banana"]), ["banana"]);
    std::fs::remove_file(koel.path("f.koel")).expect("a file to delete");
    assert_eq!(waiting.ask(&["cherry", "apple"]), ["apple"]);
    waiting.end();
}

#[test]
fn every_kernel_finds_the_same_in_a_map_and_in_memory() {
    let koel = Koel::new();
    koel.write("asked.txt", numbers(0..50_000));
    for table in ["single", "packed"] {
        koel.feed(numbers(0..5000), ["build", "-", "-o", "f.koel", "--fpr", "0.01", "--table", table]).ok();
        let read = koel.feed(koel.read("f.koel"), ["query", "-", "asked.txt"]).ok().to_vec();
        assert!(read.starts_with(numbers(0..5000).as_bytes()) && read.len() > numbers(0..5000).len());
        for kernel in koel::Kernel::available() {
            for options in [&[][..], &["--verify"]] {
                let query = [&["query", "f.koel", "asked.txt"], options].concat();
                assert!(koel.run_with("KOEL_KERNEL", &kernel.to_string(), &query).ok() == read, "{kernel} {options:?}");
            }
        }
        assert!(koel.run_with("KOEL_KERNEL", "portable", &["query", "f.koel", "asked.txt"]).ok() == read);
    }
}

/// A table that is far larger than the memory allowed is queried without reading it. That of a filter that grows, too.
#[test]
#[cfg(target_os = "linux")]
fn a_map_takes_no_memory() {
    let grow = ["--grow", "--max-capacity", "40000000"];
    for grow in [&[][..], &grow] {
        takes_no_memory(grow);
    }
}

#[cfg(target_os = "linux")]
fn takes_no_memory(options: &[&str]) {
    let koel = Koel::new();
    koel.feed("apple\n", ["build", "-", "-o", "f.koel", "--capacity", "40000000"].iter().chain(options)).ok();
    let bytes = facts(&koel, "f.koel")["table_bytes"].as_u64().expect("a number");
    assert!(bytes > 50_000_000);
    // This limits the process's own memory, not mapped files.
    koel.shell("ulimit -d 32768; koel query f.koel --item apple --quiet").ok();
    koel.shell("ulimit -d 32768; koel query f.koel --item apple --quiet --verify").ok();
    let read = koel.shell("ulimit -d 32768; koel query - --item apple --quiet < f.koel 2>&1 || test $? = 2");
    assert!(read.text().contains("memory"), "{}", read.text());
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

#[test]
fn the_wrong_files_are_named() {
    let koel = Koel::with_filter("apple\n");
    koel.write("empty", "");
    koel.write("text", "apple\nbanana\n");
    std::fs::create_dir(koel.path("folder")).expect("a folder");
    for options in [&[][..], &["--verify"]] {
        let query = |file: &str| koel.run(["query", file, "--item", "apple"].iter().chain(options));
        query("empty").error(&["empty: at byte 0: ", "there are 0"]);
        query("text").error(&["text: at byte 0: ", "neither a koel snapshot nor a file of Go's"]);
        query("folder").error(&["folder: is a folder"]);
        query("missing").error(&["missing: cannot be read: No such file"]);
        assert_eq!(query("f.koel").ok(), b"apple\n");
    }
}
