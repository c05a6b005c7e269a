//! Options: numbers as people write them, and errors, whose messages name the value, the limit and the remedy.

use crate::common::Koel;

#[test]
fn parameters_have_limits() {
    let koel = Koel::new();
    koel.write("list.txt", "a\n");
    koel.given("build list.txt -o f.koel").refuses(&[
        ("--fpr 2", &["--fpr: 2 given", "from 1.87e-9 to below 1"]),
        ("--fpr -0.5", &["--fpr: -0.5 given", "from 1.87e-9 to below 1"]),
        ("--fpr NaN", &["--fpr: NaN given", "from 1.87e-9 to below 1"]),
        ("--fpr 1e-12", &["--fpr: 1e-12 given", "from 1.87e-9 to below 1"]),
        ("--fpr few", &["--fpr", "'few'", "between 0 and 1", "0.001"]),
        ("--bits 33", &["--bits", "33 given", "2 to 32"]),
        ("--bits 3 --table packed", &["--bits", "3 given", "4 to 32"]),
        ("--bits -1", &["--bits", "'-1'", "whole number"]),
        ("--bits 9 --fpr 0.1", &["--bits", "--fpr", "cannot be used with"]),
        ("--bucket-size 17", &["--bucket-size", "17 given", "1 to 16"]),
        ("--bucket-size 8 --table packed", &["--bucket-size", "8 given", "takes 4"]),
        ("--capacity -1", &["--capacity", "'-1'", "whole number from 0"]),
        ("--capacity 1.5", &["--capacity", "'1.5'", "not a whole number", "1 and 2"]),
        ("--capacity 999999999999999", &["bytes of memory", "give a smaller --capacity, or use a machine with more memory"]),
        ("--capacity 9999999999999999", &["--fpr: 0.001 given", "from 0.0019", "or a smaller --capacity; 0.001 is the default"]),
        ("--capacity 9999999999999999 --fpr 0.001", &["--fpr: 0.001 given", "from 0.0019"]),
        ("--table cuckoo", &["--table", "'cuckoo'", "single, packed"]),
        ("--hasher md5", &["--hasher", "'md5'", "xxh3, metrohash64"]),
        ("--seed 0xyz", &["--seed", "'0xyz'", "hexadecimal"]),
        ("--grow --bits 12", &["cannot be used with"]),
        ("--grow --table packed", &["--table", "cannot be used with"]),
        ("--grow --bucket-size 4", &["--bucket-size", "cannot be used with"]),
        ("--max-capacity 10", &["--grow"]),
        ("--grow --fpr 2", &["--fpr: 2 given"]),
        ("--grow --capacity 10 --max-capacity 9", &["--capacity: 10 given"]),
    ]);
    // These errors come before the list is read.
    koel.given("build no.txt")
        .refuses(&[("-o f.koel --bits 99", &["--bits"]), ("-o no/f.koel", &["no/f.koel", "no folder no", "make it first"])]);
}

#[test]
fn missing_arguments_and_files_are_named() {
    let koel = Koel::new();
    koel.given("").refuses(&[
        ("build", &["<IN>", "--output <OUT>"]),
        ("build list.txt", &["--output <OUT>"]),
        ("query", &["<FILTER>"]),
        ("unbuild", &["'unbuild'"]),
        ("build no.txt -o f.koel", &["no.txt", "No such file"]),
    ]);
    let run = koel.run("");
    run.status(2);
    assert!(run.stderr.contains("Usage: koel <COMMAND>"), "{}", run.stderr);
}

#[test]
fn input_and_output_must_be_distinct_files() {
    let koel = Koel::with_filter("a\n");
    koel.write("list.txt", "a\nb\n");
    koel.given("").refuses(&[
        ("build list.txt -o list.txt", &["list.txt", "both the list and the filter", "another name"]),
        ("build list.txt -o ./list.txt", &["list.txt", "both"]),
        ("remove f.koel ./f.koel", &["f.koel", "both"]),
    ]);
    if cfg!(unix) {
        koel.shell("ln -s list.txt link; koel build list.txt -o link 2>&1 || test $? = 2").status(0);
        koel.shell("koel build - -o list.txt < list.txt 2>&1 || test $? = 2").status(0);
    }
    assert_eq!(koel.read("list.txt"), b"a\nb\n");
}

#[test]
fn an_unknown_kernel_is_refused_with_the_available_ones() {
    let koel = Koel::with_filter("a\n");
    for command in ["query f.koel --item a", "build - -o g.koel", "info f.koel"] {
        koel.run_with("mmx", command).error(&["KOEL_KERNEL: mmx given", "the names here are portable"]);
    }
    koel.run_with("mmx", "uniq - --filter new.koel").error(&["KOEL_KERNEL: mmx given"]);
    koel.run_with("mmx", "uniq - --filter new --forget 1h").error(&["KOEL_KERNEL: mmx given"]);
    koel.run_with("portable", "experiment load --quick --max-slots 1000 --out new").error(&["KOEL_KERNEL: is set", "unset it"]);
    // An empty variable counts as unset.
    koel.run_with("", "query f.koel --item a").ok();
}

/// The unit tests of `numbers` check the notations. This test checks that all kinds of options accept them.
#[test]
fn all_options_accept_all_notations_of_numbers() {
    let koel = Koel::new();
    for (plain, written) in [
        ("tune --items 1000000 --fpr 0.001", "tune --items 1_000.0k --fpr 0.1%"),
        ("tune --items 1000000 --bytes 2097152", "tune --items 1e6 --bytes 2MiB"),
        ("tune --items 10 --fpr 0.1 --bucket-size 8", "tune --items 10 --fpr 1/10 --bucket-size 0.8e1"),
        ("build - -o - --bits 13 --capacity 2500", "build - -o - --bits 1.3e1 --capacity 2.5k"),
        ("build - -o - --fpr 0.01 --seed 1000", "build - -o - --fpr 1% --seed 1k"),
        ("build - -o - --grow --max-capacity 5000000 --capacity 1000", "build - -o - --grow --max-capacity 5M --capacity 1e3"),
    ] {
        assert!(koel.run(written).status(0) == koel.run(plain).status(0), "{written}");
    }
    koel.run("experiment space --max-slots 1.5").error(&["--max-slots", "1 and 2"]);
    let text = koel.run("--help").unbroken();
    assert!(text.contains("1000000, 1_000_000, 1e6 and 1M are the same") && text.contains("0.1% and 1/1000"), "{text}");
}
