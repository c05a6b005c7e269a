//! `koel merge`, which writes all items of several filters, or nothing.

use crate::common::{Koel, facts, numbers, value_after};

/// Creates a folder with filters of a hundred numbers each, from 0 on, each with room for a thousand items.
fn hundreds(names: &[&str]) -> Koel {
    let koel = Koel::new();
    for (name, n) in names.iter().zip(0..) {
        koel.feed(numbers(100 * n..100 * n + 100), &format!("build - -o {name} --capacity 1000")).ok();
    }
    koel
}

#[test]
fn all_items_are_in_the_new_filter() {
    let koel = hundreds(&["a.koel", "b.koel", "c.koel"]);
    let before = ["a.koel", "b.koel", "c.koel"].map(|name| koel.read(name));
    let run = koel.run("merge a.koel b.koel c.koel -o all.koel");
    assert!(run.ok().starts_with(b"filter            all.koel\nformat            koel snapshot\nitems             300\n"));
    assert_eq!(koel.run("query all.koel --verify").status(1), b"");
    assert_eq!(koel.feed(numbers(0..300), "query all.koel --verify").ok(), numbers(0..300).as_bytes());
    assert!(["a.koel", "b.koel", "c.koel"].map(|name| koel.read(name)) == before);
    // All items can be removed again, copies as often as they were added.
    koel.run("merge all.koel a.koel -o twice.koel").ok();
    koel.feed(numbers(0..300) + &numbers(0..100), "remove twice.koel").ok();
    assert_eq!(facts(&koel, "twice.koel")["items"], 0);
}

#[test]
fn merge_works_through_pipes_and_may_replace_an_input() {
    let koel = hundreds(&["a.koel", "b.koel"]);
    koel.run("merge a.koel b.koel -o all.koel").ok();
    for (name, args) in [("a.koel", "merge - b.koel -o"), ("b.koel", "merge a.koel - -o")] {
        let before = koel.read(name);
        let run = koel.feed(&before, &format!("{args} -"));
        assert!(run.status(0) == koel.read("all.koel"));
        assert!(run.stderr.starts_with("filter            standard output\n"), "{}", run.stderr);
        koel.run(&format!("merge a.koel b.koel -o {name}")).ok();
        assert!(koel.read(name) == koel.read("all.koel"));
        koel.write(name, before);
    }
}

#[test]
fn growing_filters_of_any_size_are_merged() {
    let koel = Koel::new();
    koel.feed(numbers(0..100), "build - -o a.koel --grow").ok();
    koel.feed(numbers(100..50_000), "build - -o b.koel --grow").ok();
    assert!(koel.run("merge a.koel b.koel -o c.koel").unbroken().contains("items 50000 "));
    assert_eq!(koel.feed(numbers(0..50_000), "query c.koel --count").ok(), b"50000\n");
    koel.feed("x\n", "build - -o fixed.koel").ok();
    koel.feed("x\n", "build - -o other.koel --grow --fpr 0.01").ok();
    koel.given("merge -o d.koel").refuses(&[
        ("a.koel fixed.koel", &["can be merged only with others that grow; build fixed.koel with `koel build --grow`"]),
        ("fixed.koel a.koel", &["can be merged only with others that grow; build fixed.koel with `koel build --grow`"]),
    ]);
    for (parameter, option, ours, theirs) in [
        ("rate", "--fpr", "0.001", "0.01"),
        ("capacity", "--capacity", "0", "500"),
        ("max capacity", "--max-capacity", "16000000", "20000000"),
        ("seed", "--seed", "0", "9"),
    ] {
        koel.feed("x\n", &format!("build - -o other.koel --grow {option} {theirs}")).ok();
        koel.run("merge a.koel other.koel -o d.koel").error(&[
            &format!("only filters with the same {parameter} can be merged, but the first has {ours}, and the second {theirs}; "),
            &format!("build both with the same `koel build {option}` and other options"),
        ]);
    }
}

#[test]
fn filters_with_other_parameters_are_refused() {
    let koel = hundreds(&["a.koel", "b.koel"]);
    // The number of buckets depends on the measured safe load factors.
    let table = |bits, seed| format!("a packed table, {bits}-bit fingerprints, BUCKETS buckets of 4 (any-size), seed {seed};");
    for (options, what, expected) in [
        ("--fpr 0.01 --capacity 1000", "parameters", table(10, 0)),
        ("--seed 7 --capacity 1000", "parameters", table(13, 7)),
        ("--capacity 5000", "parameters", table(13, 0)),
        ("--hasher metrohash64 --capacity 1000", "hasher", String::from("metrohash64;")),
    ] {
        koel.feed("a\n", &format!("build - -o other.koel {options}")).ok();
        let expected = expected.replace("BUCKETS", &facts(&koel, "other.koel")["buckets"].to_string());
        koel.run("merge a.koel b.koel other.koel -o all.koel").error(&[
            &format!("koel: a.koel and other.koel: only filters with the same {what} can be merged, but the first has "),
            &format!("the second {expected}"),
            "build both with the same `koel build --",
        ]);
    }
    assert_eq!(koel.names(), ["a.koel", "b.koel", "other.koel"]);
}

/// Copies of common items take no room. So a refusal counts distinct items, and names a capacity that works.
/// The message names all filters, and building them as it says works.
#[test]
fn growing_filters_without_room_for_each_other_name_the_capacity() {
    let koel = Koel::new();
    let build = |capacity: &str| {
        for (name, first) in [("a", 0), ("b", 1000), ("c", 2000)] {
            let plan = format!("build - -o {name} --grow --fpr 0.01 --capacity {capacity} --max-capacity {capacity}");
            koel.feed(numbers(first..first + 300), &plan).ok();
        }
    };
    build("300");
    let refused = koel.run("merge a b c -o all");
    refused.error(&["a and b: ", "planned for at most 300; build all of them with `koel build --grow", "nothing was written"]);
    assert!(refused.stderr.contains(" or more, and with more for those that follow;"), "{}", refused.stderr);
    build(value_after(&refused.stderr, "--max-capacity "));
    let refused = koel.run("merge a b c -o all");
    refused.error(&["a, b and c: 900 items do not fit"]);
    build(value_after(&refused.stderr, "--max-capacity "));
    koel.run("merge a b c -o all").ok();
}

#[test]
fn copies_are_added_up_or_united() {
    let koel = Koel::new();
    let build = |capacity: &str| {
        for (name, first) in [("a.koel", 0), ("b.koel", 500)] {
            koel.feed(numbers(first..first + 1000), &format!("build - -o {name} --capacity {capacity}")).ok();
        }
    };
    build("1000");
    let before = koel.read("a.koel");
    for options in ["-o new.koel", "-o a.koel", "-o new.koel --union"] {
        let refused = koel.run(&format!("merge a.koel b.koel {options}"));
        refused.error(&[
            "koel: a.koel and b.koel: ",
            " distinct items do not fit into one filter",
            "build all of them with `koel build --capacity ",
            "nothing was written",
        ]);
        let distinct = value_after(&refused.stderr, "b.koel: ").parse::<u64>().unwrap();
        assert!((1490..=1500).contains(&distinct), "{distinct}");
        assert!(value_after(&refused.stderr, "build --capacity ").parse::<u64>().unwrap() < 2000);
        assert!(koel.read("a.koel") == before);
    }
    assert_eq!(koel.names(), ["a.koel", "b.koel"]);
    let refused = koel.run("merge a.koel b.koel -o all.koel").stderr;
    build(value_after(&refused, "build --capacity "));
    koel.run("merge a.koel b.koel -o united.koel --union").ok();
    let united = facts(&koel, "united.koel")["items"].as_u64().unwrap();
    assert!((1490..=1500).contains(&united), "{united}");
    koel.feed(numbers(0..1500), "query united.koel - --quiet").ok();
    koel.run("merge a.koel b.koel -o all.koel").ok();
    assert_eq!(facts(&koel, "all.koel")["items"], 2000);
    // The union of a filter with itself changes nothing.
    let before = koel.read("a.koel");
    koel.run("merge a.koel a.koel -o a.koel --union").ok();
    assert!(koel.read("a.koel") == before);
}

#[test]
fn an_intersection_has_what_all_filters_have() {
    for options in ["--capacity 1000 --fpr 1e-6", "--grow --fpr 1e-6"] {
        let koel = Koel::new();
        for (name, items) in
            [("a.koel", numbers(0..600) + &numbers(0..600)), ("b.koel", numbers(300..900)), ("c.koel", numbers(500..1000))]
        {
            koel.feed(items, &format!("build - -o {name} {options}")).ok();
        }
        koel.run("merge a.koel b.koel c.koel --intersect -o all.koel").ok();
        assert_eq!(facts(&koel, "all.koel")["items"], 100);
        assert_eq!(koel.feed(numbers(0..1000), "query all.koel").ok(), numbers(500..600).as_bytes());
        let before = koel.read("a.koel");
        koel.run("merge a.koel a.koel --intersect -o a.koel").ok();
        assert!(koel.read("a.koel") == before, "the intersection of a filter with itself changes it");
        koel.run("merge a.koel b.koel --intersect --union -o all.koel").error(&["--intersect", "--union"]);
    }
}

/// A filter is merged with itself 31 times. The limit, 2 to the power of 32 minus one, is the sum of the powers below it.
#[test]
fn copies_are_added_up_to_the_limit() {
    let koel = Koel::new();
    for options in ["--grow", "--capacity 10"] {
        koel.feed("koel\n", &format!("build - -o 0 {options}")).ok();
        for power in 0..31 {
            koel.run(&format!("merge {power} {power} -o {}", power + 1)).ok();
        }
        let shown = facts(&koel, "31");
        assert!(shown["items"] == 1_u64 << 31 && shown["extra_copies"].as_u64() > Some((1 << 31) - 9), "{shown}");
        let before = koel.read("31");
        let parts = [
            "31 and 31: ",
            "more than 4294967295 copies of an item",
            "with --union, copies are not added up; nothing was written",
        ];
        koel.run("merge 31 31 -o 31").error(&parts);
        koel.run("merge 31 31 -o 31 --union").ok();
        assert!(koel.read("31") == before);
        let powers: Vec<_> = (0..32).map(|power| power.to_string()).collect();
        koel.run(&format!("merge {} -o all", powers.join(" "))).ok();
        koel.run("add all --item koel").error(&["4294967295 copies, and no more are counted; --unique stores an item once"]);
        assert!(koel.run("add all --item koel --unique").ok().starts_with(b"0 added, 1 skipped"));
    }
}

/// tests/damaged.rs and tests/convert.rs check files that are not snapshots.
#[test]
fn invalid_inputs_are_named() {
    let koel = hundreds(&["a.koel", "b.koel"]);
    let mut bad = koel.read("b.koel");
    bad[200] ^= 4;
    koel.write("bad.koel", bad);
    koel.given("merge").refuses(&[
        ("a.koel bad.koel -o all.koel", &["bad.koel: ", "the table was altered"]),
        ("bad.koel a.koel -o all.koel", &["bad.koel: ", "the table was altered"]),
        ("- - -o x", &["standard input", "can be only one of the filters; give files for the others"]),
        ("a.koel -o all.koel", &["FILTER"]),
        ("a.koel b.koel", &["--output <OUT>"]),
    ]);
}
