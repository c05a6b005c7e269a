//! Splitting of input into items, from all sources. The unit tests of `items` check the ends of lines.

use crate::{
    common::{Koel, facts, numbers},
    messages::LISTS,
};

/// Builds a filter of `input`, and returns its number of items.
#[track_caller]
fn count(koel: &Koel, input: impl AsRef<[u8]>, options: &str) -> u64 {
    koel.feed(input, &format!("build - -o f.koel {options}")).ok();
    facts(koel, "f.koel")["items"].as_u64().expect("a number")
}

#[test]
fn files_pipes_and_the_command_line_give_the_same_items() {
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
fn filters_go_through_pipes() {
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
fn an_empty_list_differs_from_an_empty_item() {
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
fn nul_keeps_items_unchanged() {
    let koel = Koel::new();
    assert_eq!(count(&koel, b"two\nlines\0windows\r\n\0last", "--nul"), 3);
    let found = koel.feed("two\nlines\0two\0windows\r\n\0windows\0last\0", "query f.koel --nul");
    assert_eq!(found.ok(), b"two\nlines\0windows\r\n\0last\0");
    assert_eq!(koel.run(["query", "f.koel", "--nul", "--item", "two\nlines"]).ok(), b"two\nlines\0");
    assert_eq!(koel.feed("two\nlines\n", "query f.koel").status(1), b"");
    koel.feed("windows\r\n\0", "remove f.koel --nul").ok();
    koel.feed("un\ndeux", "add f.koel --nul --unique").ok();
    assert_eq!(koel.feed("un\ndeux", "query f.koel --nul").ok(), b"un\ndeux\0");
}

#[test]
#[cfg(unix)]
fn items_are_arbitrary_bytes() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let koel = Koel::new();
    // The input begins like UTF-16.
    let odd = b"\xff\xfe\n\x80\0inside\n\xc3\n";
    assert_eq!(count(&koel, odd, "--binary"), 3);
    assert_eq!(koel.feed(odd, "query f.koel --binary").ok(), odd);
    let args = [&b"query"[..], b"f.koel", b"--item", b"\xff\xfe"].map(OsStr::from_bytes);
    assert_eq!(koel.run(args).ok(), b"\xff\xfe\n");
}

#[test]
fn items_and_lists_may_be_longer_than_the_buffer() {
    let koel = Koel::new();
    let long = "x".repeat(3_000_000);
    assert_eq!(count(&koel, format!("{long}\n{long}y\nz\n"), ""), 3);
    assert_eq!(koel.feed(format!("{long}y\n{long}z\n"), "query f.koel").ok(), format!("{long}y\n").as_bytes());
    let list = numbers(0..200_000);
    assert_eq!(count(&koel, &list, "--capacity 200000"), 200_000);
    assert!(koel.feed(&list, "query f.koel").ok() == list.as_bytes());
}

#[test]
fn every_command_refuses_files_that_are_not_lists() {
    let koel = Koel::with_filter("apple\n");
    let bytes = koel.read("f.koel");
    koel.write("list.bin", &bytes);
    koel.write("list.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03");
    koel.write("list.zst", b"\x28\xb5\x2f\xfd\x04\x58");
    koel.write("utf16.txt", b"\xff\xfea\0\n\0");
    for reader in LISTS.into_iter().chain(["query f.koel {}"]) {
        let mut files = vec![
            ("list.gz", "gzip -dc list.gz | koel"),
            ("list.zst", "zstd -dc list.zst | koel"),
            ("utf16.txt", "iconv -f UTF-16 -t UTF-8 utf16.txt | koel"),
        ];
        // A query treats another snapshot as a second filter.
        files.extend((!reader.starts_with("query")).then_some(("list.bin", "koel merge")));
        for (file, remedy) in files {
            let run = koel.run(&reader.replace("{}", file));
            run.error(&[file, remedy, "--binary"]);
        }
        koel.feed(&bytes, &reader.replace("{}", "-")).error(&["standard input", "koel snapshot", "koel merge"]);
    }
    assert!(koel.read("f.koel") == bytes);
    koel.run("build list.gz -o new.koel --binary").ok();
}

#[test]
fn a_byte_order_mark_is_skipped_with_a_warning() {
    let koel = Koel::new();
    let marked = b"\xef\xbb\xbfalice\r\nbob\r\n";
    let run = koel.feed(marked, "build - -o f.koel");
    assert_eq!(run.status, 0, "{}", run.stderr);
    assert!(run.stderr.contains("byte-order mark") && run.stderr.contains("--binary"), "{}", run.stderr);
    assert_eq!(koel.run("query f.koel --item alice --item bob").ok(), b"alice\nbob\n");
    for format in ["--csv", "--delimiter ,"] {
        let run = koel.feed("\u{feff}\u{feff}a,b\nc,d\n", &format!("uniq --key 1 --keys-only {format}"));
        assert_eq!(run.status(0), "\u{feff}a\nc\n".as_bytes(), "{format}");
        let run = koel.feed("\u{feff}a,b\nc,d\n", &format!("uniq --key 1 --keys-only --binary {format}"));
        assert_eq!(run.ok(), "\u{feff}a\nc\n".as_bytes(), "{format}");
    }
    koel.feed(marked, "build - -o f.koel --binary").ok();
    assert_eq!(koel.run("query f.koel --item alice --item bob").ok(), b"bob\n");
}

#[test]
fn key_selects_a_field_of_each_line() {
    let koel = Koel::new();
    koel.write("log.txt", "10:01  GET\t/a\n10:02 PUT /b\n10:03 GET /c\n");
    koel.run("build log.txt -o f.koel --key 3").ok();
    assert_eq!(koel.run("query f.koel --item /a --item /c --item GET").ok(), b"/a\n/c\n");
    // Whole lines are selected.
    assert_eq!(koel.feed("x,/c,y\nz,/d,/a\n", "query f.koel --key 2 --delimiter ,").ok(), b"x,/c,y\n");
    assert_eq!(koel.feed("x,/c,y\nz,/d,/a\n", "query f.koel --key 2 --delimiter , --absent").ok(), b"z,/d,/a\n");
    koel.feed("1\t/d\n2\t/e\n", ["add", "f.koel", "--key", "2", "--delimiter", r"\t"]).ok();
    koel.feed("/a;/d\n", "remove f.koel --key 2 --delimiter ;").ok();
    assert_eq!(koel.run("query f.koel --item /a --item /d --item /e").ok(), b"/a\n/e\n");
    koel.run("tune --trace log.txt --fpr 1% --key 2").error(&["--key", "--trace"]);
}
