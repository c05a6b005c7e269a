//! `koel query` is used as grep is.

use crate::common::Koel;

/// Options, and for each of three lists what is printed and the status.
type Case<'a> = (&'a [&'a str], [(&'a str, i32); 3]);

#[test]
fn the_status_says_whether_anything_was_selected() {
    let koel = Koel::with_filter("apple\nbanana\n");
    let list = "apple\ncherry\nbanana\nplum\n";
    // Some of the first list are found, all of the second, none of the third.
    let cases: [Case<'_>; 6] = [
        (&[], [("apple\nbanana\n", 0), ("apple\n", 0), ("", 1)]),
        (&["--absent"], [("cherry\nplum\n", 0), ("", 1), ("plum\n", 0)]),
        (&["--count"], [("2\n", 0), ("1\n", 0), ("0\n", 1)]),
        (&["--count", "--absent"], [("2\n", 0), ("0\n", 1), ("1\n", 0)]),
        (&["--quiet"], [("", 0), ("", 0), ("", 1)]),
        (&["--quiet", "--absent"], [("", 0), ("", 1), ("", 0)]),
    ];
    for (options, expected) in cases {
        for (list, (printed, status)) in [list, "apple\n", "plum\n"].into_iter().zip(expected) {
            let run = koel.feed(list, ["query", "f.koel"].iter().chain(options));
            assert_eq!(run.status(status), printed.as_bytes(), "{options:?} {list}");
            assert_eq!(run.stderr, "");
        }
    }
}

#[test]
fn errors_have_a_status_of_their_own() {
    let koel = Koel::with_filter("apple\n");
    koel.run(["query", "no.koel", "--item", "apple"]).error(&["no.koel", "No such file"]);
    koel.run(["query", "f.koel", "no.txt"]).error(&["no.txt: cannot be read: no such file", "use --item"]);
    koel.run(["query", "f.koel", "f.koel", "--item", "x"]).error(&["--item", "FILE"]);
    koel.run(["query", "f.koel", "--count", "--quiet"]).error(&["--count", "--quiet"]);
    koel.run(["query", "f.koel", "."]).error(&[".: is a folder", "one item per line"]);
    koel.run(["query", ".", "--item", "x"]).error(&[".: is a folder", "koel build"]);
    koel.run(["query", "-"]).error(&["standard input", "both", "--item"]);
}

#[test]
#[cfg(unix)]
fn quiet_stops_at_the_first() {
    // `yes` never ends.
    Koel::with_filter("apple\n").shell("yes apple | koel query f.koel --quiet").ok();
}

#[test]
fn answers_come_before_the_next_question() {
    use std::{
        io::{BufRead as _, BufReader, Write as _},
        process::{Command, Stdio},
    };
    let koel = Koel::with_filter("apple\nbanana\n");
    let mut child = Command::new(crate::common::KOEL)
        .args(["query".as_ref(), koel.path("f.koel").as_os_str()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut answers = BufReader::new(child.stdout.take().unwrap());
    let mut questions = child.stdin.take().unwrap();
    for item in ["apple\n", "banana\n", "apple\n"] {
        questions.write_all(item.as_bytes()).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, item);
    }
    drop(questions);
    assert!(child.wait().unwrap().success());
}
