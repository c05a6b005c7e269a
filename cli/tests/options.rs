//! Options: numbers as people write them, and mistakes, whose message names the value, the limit and the remedy.

use crate::common::{Koel, facts};

#[test]
fn parameters_have_limits() {
    let koel = Koel::new();
    let cases: [(&str, &[&str]); 22] = [
        ("--fpr 2", &["--fpr", "2 given", "between 0 and 1", "nearest"]),
        ("--fpr 0", &["--fpr", "0 given", "between 0 and 1", "nearest"]),
        ("--fpr -0.5", &["--fpr", "-0.5 given", "between 0 and 1", "nearest"]),
        ("--fpr NaN", &["--fpr", "NaN given", "between 0 and 1", "nearest"]),
        ("--fpr 1e-12", &["--fpr", "1e-12 given", "32 bits at most", "nearest"]),
        ("--fpr few", &["--fpr", "'few'", "between 0 and 1", "0.001"]),
        ("--bits 0", &["--bits", "0 given", "2 to 32", "nearest that works is 2"]),
        ("--bits 33", &["--bits", "33 given", "2 to 32", "nearest that works is 32"]),
        ("--bits 3 --table packed", &["--bits", "3 given", "4 to 32", "nearest that works is 4"]),
        ("--bits -1", &["--bits", "'-1'", "whole number"]),
        ("--bits 9 --fpr 0.1", &["--bits", "--fpr", "cannot be used with"]),
        ("--bucket-size 0", &["--bucket-size", "0 given", "1 to 16", "nearest that works is 1"]),
        ("--bucket-size 17", &["--bucket-size", "17 given", "1 to 16", "nearest that works is 16"]),
        ("--bucket-size 8 --table packed", &["--bucket-size", "8 given", "takes 4"]),
        ("--capacity -1", &["--capacity", "'-1'", "whole number from 0"]),
        ("--capacity 1.5", &["--capacity", "'1.5'", "not a whole number", "1 and 2"]),
        ("--capacity 999999999999999", &["bytes of memory", "smaller --capacity"]),
        ("--capacity 9999999999999999", &["--capacity: 9999999999999999 given", "0.001, the default", "or --fpr 0.0019"]),
        ("--capacity 9999999999999999 --fpr 0.001", &["--fpr: 0.001 given", "nearest that works is 0.0019"]),
        ("--table cuckoo", &["--table", "'cuckoo'", "single, packed"]),
        ("--hasher md5", &["--hasher", "'md5'", "xxh3, metrohash64"]),
        ("--seed 0xyz", &["--seed", "'0xyz'", "hexadecimal"]),
    ];
    for (options, parts) in cases {
        koel.feed("a\n", ["build", "-", "-o", "f.koel"].into_iter().chain(options.split(' '))).error(parts);
        assert!(koel.names().is_empty(), "{options}");
    }
}

#[test]
fn parameters_are_refused_before_the_list_is_read() {
    let koel = Koel::new();
    koel.run(["build", "no.txt", "-o", "f.koel", "--bits", "99"]).error(&["--bits"]);
    koel.run(["build", "no.txt", "-o", "no/f.koel"]).error(&["no/f.koel", "no folder no", "make it first"]);
}

#[test]
fn what_is_missing_is_named() {
    let koel = Koel::new();
    koel.run(["build"]).error(&["<IN>", "--output <OUT>"]);
    koel.run(["build", "list.txt"]).error(&["--output <OUT>"]);
    koel.run(["query"]).error(&["<FILTER>"]);
    koel.run(["unbuild"]).error(&["'unbuild'"]);
    koel.run(["build", "no.txt", "-o", "f.koel"]).error(&["no.txt", "No such file"]);
    koel.run(["add", "no.koel", "--item", "x"]).error(&["no.koel: cannot be read: no such file", "`koel build` creates one"]);
    koel.run(["remove", "no.koel", "--item", "x"]).error(&["no.koel: cannot be read: no such file", "`koel build` creates one"]);
    koel.run(["info", "no.koel"]).error(&["no.koel", "No such file"]);
    let run = koel.run::<&str>([]);
    run.status(2);
    assert!(run.stderr.contains("Usage: koel <COMMAND>"), "{}", run.stderr);
    assert!(koel.names().is_empty());
}

#[test]
fn one_file_cannot_be_two_things() {
    let koel = Koel::with_filter("a\n");
    koel.write("list.txt", "a\nb\n");
    koel.run(["build", "list.txt", "-o", "list.txt"]).error(&["list.txt", "both", "another name"]);
    koel.run(["build", "list.txt", "-o", "./list.txt"]).error(&["list.txt", "both"]);
    koel.run(["add", "f.koel", "f.koel"]).error(&["f.koel", "both"]);
    koel.run(["remove", "f.koel", "./f.koel"]).error(&["f.koel", "both"]);
    if cfg!(unix) {
        koel.shell("ln -s list.txt link; koel build list.txt -o link 2>&1 || test $? = 2").status(0);
        koel.shell("koel build - -o list.txt < list.txt 2>&1 || test $? = 2").status(0);
    }
    assert_eq!(koel.read("list.txt"), b"a\nb\n");
}

#[test]
fn a_kernel_that_is_not_there_is_named_with_those_that_are() {
    let koel = Koel::with_filter("a\n");
    for command in [&["query", "f.koel", "--item", "a"][..], &["build", "-", "-o", "g.koel"], &["info", "f.koel"]] {
        koel.run_with("KOEL_KERNEL", "mmx", command).error(&["KOEL_KERNEL", "mmx given", "portable"]);
    }
    // An empty variable counts as unset.
    koel.run_with("KOEL_KERNEL", "", &["query", "f.koel", "--item", "a"]).ok();
}

/// What both commands print, which is the same.
#[track_caller]
fn same(koel: &Koel, plain: &str, written: &str) {
    let [one, other] = [plain, written].map(|command| koel.run(command.split_whitespace()));
    assert_eq!(other.ok(), one.ok(), "{written}");
}

#[test]
fn one_number_has_one_meaning() {
    let koel = Koel::new();
    for items in ["1_000_000", "1e6", "1M", "1m", "1000k", "0.001G", "1.000e+6"] {
        same(&koel, "tune --items 1000000 --fpr 0.001", &format!("tune --items {items} --fpr 0.001"));
    }
    for rate in ["1e-3", "0.1%", "1/1000", "1/1k", "0.001_0", "10e-2%"] {
        same(&koel, "tune --items 1000 --fpr 0.001", &format!("tune --items 1000 --fpr {rate}"));
    }
    for bytes in ["2e6", "2M", "2MB", "2_000_000", "2000k", "2000kB", "0.002G"] {
        same(&koel, "tune --items 1000000 --bytes 2000000", &format!("tune --items 1000000 --bytes {bytes}"));
    }
    same(&koel, "tune --items 1000000 --bytes 2097152", "tune --items 1M --bytes 2MiB");
    same(
        &koel,
        "tune --items 10 --fpr 0.1 --copies 10 --bucket-size 8",
        "tune --items 10 --fpr 10% --copies 1e1 --bucket-size 0.8e1",
    );
}

#[test]
fn every_command_takes_them() {
    let koel = Koel::new();
    for (options, capacity, written) in [
        ("--bits 13", "2500", "--bits 1.3e1 --capacity 2.5k"),
        ("--fpr 0.01 --seed 1000", "3000", "--fpr 1% --seed 1k --capacity 3_000"),
        ("--grow --max-capacity 5000000", "1000", "--grow --max-capacity 5M --capacity 1e3"),
    ] {
        let plain = format!("build - -o plain.koel {options} --capacity {capacity}");
        koel.feed("a\n", plain.split_whitespace()).ok();
        koel.feed("a\n", format!("build - -o written.koel {written}").split_whitespace()).ok();
        assert_eq!(facts(&koel, "written.koel"), facts(&koel, "plain.koel"), "{written}");
    }
    koel.feed("a\n", "shard build - --part 1e0/2 --capacity 3k -o 1.koel".split_whitespace()).ok();
    koel.feed("a\n", "shard build - --part 2/2 --capacity 3000 -o 2.koel".split_whitespace()).ok();
    koel.run("shard join 1.koel 2.koel -o all.koel".split_whitespace()).ok();
    koel.run("experiment space --max-slots 1.5".split_whitespace()).error(&["--max-slots", "1 and 2"]);
}

#[test]
fn a_fraction_of_an_item_is_an_error_with_two_remedies() {
    let koel = Koel::new();
    koel.run(["tune", "--items", "1.2345k", "--fpr", "1%"]).error(&[
        "--items",
        "'1.2345k'",
        "not a whole number",
        "1234 and 1235",
    ]);
    for near in ["1234", "1235"] {
        koel.run(["tune", "--items", near, "--fpr", "1%"]).ok();
    }
}

#[test]
fn the_help_says_how_numbers_are_written() {
    let koel = Koel::new();
    for text in [koel.run(["--help"]).text(), koel.run(["man"]).text()] {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('\\', "");
        assert!(text.contains("1000000, 1_000_000, 1e6 and 1M are the same") && text.contains("0.1% and 1/1000"), "{text}");
    }
}
