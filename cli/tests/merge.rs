//! `koel merge`: all items of several filters, or nothing.

use crate::common::{Koel, facts, go_file, numbers};

/// A folder with filters of a hundred numbers each, from 0 on, all with room for a thousand.
fn hundreds(names: &[&str]) -> Koel {
    let koel = Koel::new();
    for (name, n) in names.iter().zip(0..) {
        koel.feed(numbers(100 * n..100 * n + 100), ["build", "-", "-o", name, "--capacity", "1000"]).ok();
    }
    koel
}

#[test]
fn all_items_are_in_the_new_filter() {
    let koel = hundreds(&["a.koel", "b.koel", "c.koel"]);
    let before = ["a.koel", "b.koel", "c.koel"].map(|name| koel.read(name));
    let run = koel.run(["merge", "a.koel", "b.koel", "c.koel", "-o", "all.koel"]);
    assert!(run.ok().starts_with(b"filter            all.koel\nformat            koel snapshot\nitems             300\n"));
    assert_eq!(koel.run(["query", "all.koel", "--verify"]).status(1), b"");
    assert_eq!(koel.feed(numbers(0..300), ["query", "all.koel", "--verify"]).ok(), numbers(0..300).as_bytes());
    assert!(["a.koel", "b.koel", "c.koel"].map(|name| koel.read(name)) == before);
    // Everything can be removed again, copies as often as they were there.
    koel.run(["merge", "all.koel", "a.koel", "-o", "twice.koel"]).ok();
    koel.feed(numbers(0..300) + &numbers(0..100), ["remove", "twice.koel"]).ok();
    assert_eq!(facts(&koel, "twice.koel")["items"], 0);
}

#[test]
fn filters_come_and_go_through_pipes() {
    let koel = hundreds(&["a.koel", "b.koel"]);
    koel.run(["merge", "a.koel", "b.koel", "-o", "all.koel"]).ok();
    for (input, args) in [("a.koel", ["merge", "-", "b.koel"]), ("b.koel", ["merge", "a.koel", "-"])] {
        let run = koel.feed(koel.read(input), [&args[..], &["-o", "-"]].concat());
        assert!(run.status(0) == koel.read("all.koel"));
        assert!(run.stderr.starts_with("filter            standard output\n"), "{}", run.stderr);
    }
    koel.run(["merge", "-", "-", "-o", "x"]).error(&["standard input", "can be only one of the filters"]);
}

#[test]
fn the_output_may_be_one_of_the_inputs() {
    let koel = hundreds(&["a.koel", "b.koel"]);
    koel.run(["merge", "a.koel", "b.koel", "-o", "all.koel"]).ok();
    for (name, other) in [("a.koel", "b.koel"), ("b.koel", "a.koel")] {
        let before = koel.read(name);
        koel.run(["merge", "a.koel", "b.koel", "-o", name]).ok();
        assert_eq!(facts(&koel, name)["items"], 200);
        assert_eq!(koel.feed(numbers(0..200), ["query", name, "--count"]).ok(), b"200\n");
        assert_eq!(facts(&koel, other)["items"], 100);
        koel.write(name, before);
    }
}

#[test]
#[cfg(unix)]
fn merges_into_one_file_at_the_same_time_all_count() {
    let names = ["all.koel", "1.koel", "2.koel", "3.koel", "4.koel", "5.koel"];
    let koel = hundreds(&names);
    std::thread::scope(|scope| {
        for name in &names[1..] {
            let koel = &koel;
            scope.spawn(move || koel.run(["merge", "all.koel", name, "-o", "all.koel"]).status(0).len());
        }
    });
    assert_eq!(facts(&koel, "all.koel")["items"], 600);
    assert_eq!(koel.names().len(), names.len());
}

#[test]
fn filters_of_other_parameters_are_refused_with_both_names() {
    let koel = hundreds(&["a.koel", "b.koel"]);
    let cases = [
        ("--fpr 0.01", "parameters", "the second a packed table, 10-bit fingerprints, BUCKETS buckets of 4 (any-size), seed 0;"),
        ("--seed 7", "parameters", "the second a packed table, 13-bit fingerprints, BUCKETS buckets of 4 (any-size), seed 7;"),
        (
            "--capacity 5000",
            "parameters",
            "the second a packed table, 13-bit fingerprints, BUCKETS buckets of 4 (any-size), seed 0;",
        ),
        (
            "--table single --bits 13",
            "parameters",
            "the second a single table, 13-bit fingerprints, BUCKETS buckets of 4 (any-size), seed 0;",
        ),
        ("--hasher metrohash64", "hasher", "the first has xxh3, and the second metrohash64;"),
    ];
    for (options, what, expected) in cases {
        let options = if options.contains("--capacity") { String::from(options) } else { format!("{options} --capacity 1000") };
        koel.feed("a\n", ["build", "-", "-o", "other.koel"].into_iter().chain(options.split(' '))).ok();
        let run = koel.run(["merge", "a.koel", "b.koel", "other.koel", "-o", "all.koel"]);
        let only = format!("koel: a.koel and other.koel: only filters with the same {what} can be merged, but the first has ");
        // How many they are depends on the measured safe loads.
        let expected = expected.replace("BUCKETS", &facts(&koel, "other.koel")["buckets"].to_string());
        run.error(&[&only, &expected, "build both with the same --"]);
    }
    assert_eq!(koel.names(), ["a.koel", "b.koel", "other.koel"]);
}

/// A refusal for items that two filters have in common names what works: a larger capacity, and a union.
#[test]
fn common_items_are_added_up_or_united() {
    let koel = Koel::new();
    let build = |capacity: &str| {
        for (name, first) in [("a.koel", 0), ("b.koel", 500)] {
            koel.feed(numbers(first..first + 1000), ["build", "-", "-o", name, "--capacity", capacity]).ok();
        }
    };
    let number_after = |message: &str, words: &str| {
        let (_, rest) = message.split_once(words).unwrap_or_else(|| panic!("no {words:?} in {message:?}"));
        rest.chars().take_while(char::is_ascii_digit).collect::<String>()
    };
    build("2000");
    let refused = koel.run(["merge", "a.koel", "b.koel", "-o", "all.koel"]);
    refused.error(&["2000 items do not fit into one filter", "--union", "build all of them with a --capacity of at least"]);
    assert!(number_after(&refused.stderr, "needs a --capacity of ").parse::<u64>().unwrap() <= 2000);
    koel.run(["merge", "a.koel", "b.koel", "-o", "united.koel", "--union"]).ok();
    let united = facts(&koel, "united.koel")["items"].as_u64().unwrap();
    assert!((1490..=1500).contains(&united), "{united}");
    koel.feed(numbers(0..1500), ["query", "united.koel", "-", "--quiet"]).ok();
    build(&number_after(&refused.stderr, "--capacity of at least "));
    koel.run(["merge", "a.koel", "b.koel", "-o", "all.koel"]).ok();
    assert_eq!(facts(&koel, "all.koel")["items"], 2000);
    // Uniting a filter with itself changes nothing.
    let before = koel.read("a.koel");
    koel.run(["merge", "a.koel", "a.koel", "-o", "a.koel", "--union"]).ok();
    assert!(koel.read("a.koel") == before);
}

/// Whether or not such filters can be merged: a file that could be read is not replaced by one that cannot.
#[test]
fn a_merge_of_full_filters_that_grow_leaves_a_file_that_can_be_read() {
    let koel = Koel::new();
    for (name, first) in [("a.koel", 0), ("b.koel", 1000)] {
        let options = ["build", "-", "-o", name, "--grow", "--fpr", "0.01", "--capacity", "100", "--max-capacity", "100"];
        koel.feed(numbers(first..first + 100), options).ok();
    }
    let before = koel.read("a.koel");
    let merged = koel.shell("koel merge a.koel b.koel -o a.koel > told 2>&1 && echo 0 || echo $?; rm told").text();
    let items = koel.run(["verify", "a.koel"]).ok().len();
    assert!(items > 0);
    if merged.trim() == "0" {
        koel.feed(numbers(0..100) + &numbers(1000..1100), ["query", "a.koel", "-", "--quiet"]).ok();
    } else {
        assert!(koel.read("a.koel") == before, "{merged}");
    }
    assert_eq!(koel.names(), ["a.koel", "b.koel"]);
}

#[test]
fn what_does_not_fit_is_not_written() {
    let koel = Koel::new();
    for (name, n) in [("a.koel", 0), ("b.koel", 1), ("c.koel", 2)] {
        koel.feed(numbers(500 * n..500 * n + 500), ["build", "-", "-o", name, "--capacity", "1000"]).ok();
    }
    let before = koel.read("a.koel");
    for output in ["new.koel", "a.koel"] {
        koel.run(["merge", "a.koel", "b.koel", "c.koel", "-o", output]).error(&[
            "koel: a.koel, b.koel and c.koel: 1500 items do not fit into one filter",
            "with a --capacity of at least 1500",
            "nothing was written",
        ]);
    }
    assert!(koel.read("a.koel") == before);
    assert_eq!(koel.names(), ["a.koel", "b.koel", "c.koel"]);
}

#[test]
fn damage_and_other_files_are_refused_wherever_they_come() {
    let koel = hundreds(&["a.koel", "b.koel"]);
    let mut bad = koel.read("b.koel");
    bad[200] ^= 4;
    koel.write("bad.koel", bad);
    koel.write("text", "apple\n");
    koel.write("f.go", go_file("single_b4_f8_n3000_m0.bin"));
    for (file, expected) in [
        ("bad.koel", "the table was altered"),
        ("text", "at byte 0: neither a koel snapshot nor a file of Go's"),
        ("f.go", "is a file of Go's linvon/cuckoo-filter, which can be queried, but not changed or merged; `koel convert"),
        ("missing", "No such file"),
    ] {
        for files in [["a.koel", file], [file, "a.koel"]] {
            let run = koel.run([&["merge"], &files[..], &["-o", "all.koel"]].concat());
            run.error(&[&format!("{file}: "), expected]);
        }
    }
    koel.run(["merge", "a.koel", "-o", "all.koel"]).error(&["FILTER"]);
    koel.run(["merge", "a.koel", "b.koel"]).error(&["--output <OUT>"]);
    koel.run(["merge", "a.koel", "b.koel", "-o", "."]).error(&[".: is a folder"]);
    koel.run(["merge", "a.koel", "b.koel", "-o", "no/all.koel"]).error(&["no/all.koel", "there is no folder no"]);
    assert!(!koel.path("all.koel").exists());
}

#[test]
fn every_kernel_merges_the_same() {
    let koel = hundreds(&["a.koel", "b.koel"]);
    koel.run(["merge", "a.koel", "b.koel", "-o", "all.koel"]).ok();
    for kernel in koel::Kernel::available() {
        koel.run_with("KOEL_KERNEL", &kernel.to_string(), &["merge", "a.koel", "b.koel", "-o", "same.koel"]).ok();
        assert!(koel.read("same.koel") == koel.read("all.koel"), "{kernel}");
    }
}
