//! How input is split into items, wherever it comes from. The unit tests of `items` have the ends of lines.

use crate::common::{Koel, facts, numbers};

/// Builds a filter of `input`, and says how many items it holds.
#[track_caller]
fn count(koel: &Koel, input: impl AsRef<[u8]>, options: &str) -> u64 {
    koel.feed(input, &format!("build - -o f.koel {options}")).ok();
    facts(koel, "f.koel")["items"].as_u64().expect("a number")
}

#[test]
fn a_file_a_pipe_and_the_command_line_are_alike() {
    let koel = Koel::new();
    koel.write("list.txt", "a\nb\n");
    koel.run("build list.txt -o file.koel").ok();
    koel.feed("a\nb\n", "build - -o pipe.koel").ok();
    assert!(koel.read("file.koel") == koel.read("pipe.koel"));
    let expected = b"a\nb\n";
    assert_eq!(koel.run("query file.koel list.txt").ok(), expected);
    assert_eq!(koel.feed("a\nb\nc\n", "query file.koel -").ok(), expected);
    assert_eq!(koel.feed("a\nb\nc\n", "query file.koel").ok(), expected);
    assert_eq!(koel.run("query file.koel --item a --item=b --item c").ok(), expected);
    assert_eq!(koel.run("query file.koel --item --help").status(1), b"");
}

#[test]
#[cfg(unix)]
fn whole_filters_go_through_pipes() {
    let koel = Koel::new();
    let run = koel.shell(
        "seq 100000 | koel build - -o - | koel query - --item 77777 --item x\nseq 9 | koel build - -o /dev/stdout > f.koel",
    );
    assert_eq!(run.status(0), b"77777\n");
    // Standard output is in use, so the facts go to standard error.
    assert_eq!(run.stderr.matches("filter            standard output\n").count(), 2, "{}", run.stderr);
    assert_eq!(facts(&koel, "f.koel")["items"], 9);
    koel.shell("koel query - - < f.koel || test $? = 2").status(0);
}

#[test]
fn nothing_and_the_empty_item_are_two_things() {
    let koel = Koel::new();
    for capacity in ["", "--capacity 0", "--capacity 5"] {
        assert_eq!(count(&koel, b"", capacity), 0);
        assert_eq!(koel.run(["query", "f.koel", "--item", ""]).status(1), b"");
    }
    assert_eq!(count(&koel, b"\n", ""), 1);
    assert_eq!(koel.run(["query", "f.koel", "--item", ""]).ok(), b"\n");
    assert_eq!(koel.run("query f.koel --item=").ok(), b"\n");
    assert_eq!(koel.run("query f.koel").status(1), b"");
    assert_eq!(count(&koel, b"a\n\r\n\nb\n\n", ""), 5);
    assert_eq!(koel.feed("\n", "remove f.koel").text().split(';').next(), Some("1 removed, 0 not found"));
    assert_eq!(count(&koel, b"\0a\0\0", "--nul"), 3);
}

#[test]
fn nul_takes_items_as_they_are() {
    let koel = Koel::new();
    assert_eq!(count(&koel, b"two\nlines\0windows\r\n\0last", "--nul"), 3);
    let asked = koel.feed("two\nlines\0two\0windows\r\n\0windows\0last\0", "query f.koel --nul");
    assert_eq!(asked.ok(), b"two\nlines\0windows\r\n\0last\0");
    assert_eq!(koel.run(["query", "f.koel", "--nul", "--item", "two\nlines"]).ok(), b"two\nlines\0");
    assert_eq!(koel.feed("two\nlines\n", "query f.koel").status(1), b"");
    koel.feed("windows\r\n\0", "remove f.koel --nul").ok();
    koel.feed("un\ndeux", "add f.koel --nul --unique").ok();
    assert_eq!(koel.feed("un\ndeux", "query f.koel --nul").ok(), b"un\ndeux\0");
}

#[test]
#[cfg(unix)]
fn items_are_bytes_of_any_kind() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let koel = Koel::new();
    let odd = b"\xff\xfe\n\x80\0inside\n\xc3\n";
    assert_eq!(count(&koel, odd, ""), 3);
    assert_eq!(koel.feed(odd, "query f.koel").ok(), odd);
    let asked = [&b"query"[..], b"f.koel", b"--item", b"\xff\xfe"].map(OsStr::from_bytes);
    assert_eq!(koel.run(asked).ok(), b"\xff\xfe\n");
}

#[test]
fn items_and_lists_may_be_longer_than_any_buffer() {
    let koel = Koel::new();
    let long = "x".repeat(3_000_000);
    assert_eq!(count(&koel, format!("{long}\n{long}y\nz\n"), ""), 3);
    assert_eq!(koel.feed(format!("{long}y\n{long}z\n"), "query f.koel").ok(), format!("{long}y\n").as_bytes());
    let list = numbers(0..200_000);
    assert_eq!(count(&koel, &list, "--capacity 200000"), 200_000);
    assert!(koel.feed(&list, "query f.koel").ok() == list.as_bytes());
}
