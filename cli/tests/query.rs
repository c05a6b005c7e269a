//! `koel query` is used as grep is, and queries a filter in a file in place: without reading it, with every kernel, and even if the
//! file is replaced or removed.

use crate::common::{Koel, facts, numbers};

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

/// Items go in and come out by pipes, so that each answer comes before the next question.
#[test]
#[cfg(unix)]
fn a_query_continues_with_the_file_that_was_replaced() {
    let koel = Koel::new();
    koel.feed("apple\nbanana\n", "build - -o f.koel --capacity 1000").ok();
    let run = koel.shell(
        "mkfifo items found; koel query f.koel < items > found & exec 3> items 4< found
         ask() { printf '%s\\n' \"$@\" >&3; read -r item <&4; echo \"$item\"; }
         ask apple; ask cherry banana
         koel add f.koel --item cherry > told; koel remove f.koel --item banana > told
         ask cherry banana
         seq 100000 | koel build - -o f.koel > told
         ask 99999 banana
         rm f.koel
         ask cherry apple
         exec 3>&-; wait $!",
    );
    assert_eq!(run.ok(), b"apple\nbanana\nbanana\nbanana\napple\n");
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
