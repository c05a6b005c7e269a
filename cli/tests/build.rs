//! Building, inspecting, querying, changing and filling filters of fixed size and growing ones.

use crate::common::{Koel, facts, numbers, value_after};

#[test]
fn filters_are_built_queried_and_changed() {
    for (options, count, expected) in [
        ("--capacity 1100", 1000, ["items 1000 ", " table packed ", " hasher xxh3, seed 0"]),
        ("--grow", 30_000, ["format koel snapshot of a filter that grows ", " items 30000 ", " table packed, in "]),
    ] {
        let koel = Koel::new();
        let (many, more) = (numbers(0..count), numbers(count..count + 100));
        koel.write("many.txt", &many);
        koel.write("more.txt", &more);
        let built = koel.run(&format!("build many.txt -o f.koel {options}"));
        built.ok();
        for fact in expected {
            assert!(built.unbroken().contains(fact), "{}", built.text());
        }
        // `build` prints the same facts as `info`, and standard output carries the same filter.
        assert_eq!(built.text().split_once('\n').unwrap().1, koel.run("info f.koel").text());
        assert!(koel.run(&format!("build many.txt -o - {options}")).status(0) == koel.read("f.koel"));

        let change = |command: &str, report: &str| {
            let text = koel.run(command).printed();
            assert!(text.starts_with(&format!("{report} in f.koel now")), "{text}");
        };
        assert_eq!(koel.run("query f.koel many.txt").ok(), many.as_bytes());
        assert_eq!(koel.run("query f.koel many.txt --absent").status(1), b"");
        let false_positives = koel.run("query f.koel more.txt --count").text().trim().parse::<u32>().unwrap();
        assert!(false_positives < 10, "{false_positives}");
        change("add f.koel more.txt", &format!("100 added; {}", count + 100));
        assert_eq!(koel.run("query f.koel more.txt").ok(), more.as_bytes());
        change("add f.koel more.txt --unique", &format!("0 added, 100 skipped as already present; {}", count + 100));
        change("remove f.koel many.txt", &format!("{count} removed, 0 not found; 100"));
        assert_eq!(koel.run("query f.koel more.txt").ok(), more.as_bytes());
        change("remove f.koel more.txt", "100 removed, 0 not found; 0");
        assert_eq!(koel.names(), ["f.koel", "many.txt", "more.txt"]);
        // An emptied filter of fixed size equals a new one.
        assert!(options == "--grow" || koel.read("f.koel") == koel.run(&format!("build - -o - {options}")).status(0));
    }
}

#[test]
fn removing_an_absent_item_is_reported_and_changes_nothing() {
    let koel = Koel::with_filter("apple\nbanana\n");
    let before = koel.read("f.koel");
    let removed = koel.run("remove f.koel --item cherry");
    assert!(removed.status(1).starts_with(b"0 removed, 1 not found; 2 in f.koel now"), "{}", removed.text());
    assert!(koel.read("f.koel") == before);
    let removed = koel.run("remove f.koel --item cherry --item apple");
    assert!(removed.status(1).starts_with(b"1 removed, 1 not found; 1 in f.koel now"), "{}", removed.text());
    koel.run("query f.koel --item apple").status(1);
    koel.run("query f.koel --item banana").ok();
}

#[test]
fn unique_skips_items_reported_as_present() {
    let koel = Koel::new();
    for capacity in ["--capacity 10", ""] {
        let built = koel.feed("a\nb\na\na\n", &format!("build - -o f.koel --unique {capacity}")).printed();
        assert!(built.contains("  skipped         2, as already present"), "{built}");
        // The distinct items are counted only if all items are read first.
        assert_eq!(built.contains("\n  distinct        2 of 4\n"), capacity.is_empty(), "{built}");
        assert_eq!(facts(&koel, "f.koel")["items"], 2);
    }
    koel.feed("a\nb\n", "build - -o f.koel --capacity 10").ok();
    let added = koel.feed("b\nc\n", "add f.koel --unique");
    assert!(added.ok().starts_with(b"1 added, 1 skipped as already present; 3 in"), "{}", added.text());
    assert!(koel.feed("b\n", "add f.koel").ok().starts_with(b"1 added; 4 in"));
}

#[test]
fn the_size_depends_on_distinct_items() {
    let koel = Koel::new();
    // Counting the items first and giving --capacity build the same filter.
    koel.feed(numbers(0..5000), "build - -o counted.koel").ok();
    koel.feed(numbers(0..5000), "build - -o promised.koel --capacity 5000").ok();
    assert!(koel.read("counted.koel") == koel.read("promised.koel"));
    // Copies take no room in the table, whether they are stored or not.
    for options in ["", "--unique"] {
        let built = koel.feed(numbers(0..5000).repeat(3), &format!("build - -o copies.koel {options}")).printed();
        assert!(built.contains("\n  distinct        5000 of 15000\n"), "{built}");
        assert_eq!(facts(&koel, "copies.koel")["buckets"], facts(&koel, "counted.koel")["buckets"]);
    }
}

#[test]
fn all_options_take_effect() {
    let koel = Koel::new();
    let options =
        "--bits 9 --capacity 500 --table single --bucket-size 8 --addressing power-of-two --hasher metrohash64 --seed 0x539";
    koel.feed(numbers(0..500), &format!("build - -o f.koel {options}")).ok();
    let shown = facts(&koel, "f.koel");
    let expected = serde_json::json!({
        "table": "single", "fingerprint_bits": 9, "bucket_size": 8, "addressing": "power-of-two", "hasher": "metrohash64",
        "seed": 1337, "items": 500, "file_bytes": koel.read("f.koel").len(),
    });
    for (fact, value) in expected.as_object().unwrap() {
        assert_eq!(shown[fact], *value, "{fact}");
    }
    let [buckets, slots, capacity] = ["buckets", "slots", "capacity"].map(|fact| shown[fact].as_u64().unwrap());
    assert!(buckets.is_power_of_two() && slots == 8 * buckets && capacity >= 500, "{shown}");
    assert_eq!(shown["table_bytes"], buckets * 9);
    for rate in ["false_positive_rate", "false_positive_rate_at_capacity", "load_factor", "bits_per_item"] {
        assert!(shown[rate].as_f64().unwrap() > 0.0, "{rate}");
    }
    // The snapshot stores the hasher and its seed.
    assert_eq!(koel.feed(numbers(0..500), "query f.koel --count").ok(), b"500\n");
    koel.feed(numbers(0..500), "remove f.koel").ok();
    assert!(facts(&koel, "f.koel")["bits_per_item"].is_null());
}

#[test]
fn a_filter_that_is_too_small_is_not_written() {
    let koel = Koel::new();
    koel.write("old.koel", "what was there before");
    koel.write("list.txt", numbers(0..1000));
    for out in ["old.koel", "new.koel"] {
        koel.run(&format!("build list.txt -o {out} --capacity 10")).error(&[
            "koel: line ",
            " of list.txt: the filter is full",
            "leave --capacity out, or give a --capacity above",
            "nothing was written",
        ]);
    }
    assert_eq!(koel.names(), ["list.txt", "old.koel"]);
    assert_eq!(koel.read("old.koel"), b"what was there before");
}

#[test]
fn a_full_filter_stays_unchanged() {
    let koel = Koel::new();
    koel.feed(numbers(0..10), "build - -o f.koel --capacity 10").ok();
    let before = koel.read("f.koel");
    let capacity = facts(&koel, "f.koel")["capacity"].as_u64().unwrap();
    for (options, end, item) in [("", "\n", "koel: line "), ("--unique", "\n", "koel: line "), ("--nul", "\0", "koel: item ")] {
        let run = koel.feed(numbers(10..1000).replace('\n', end), &format!("add f.koel - {options}"));
        run.error(&[item, " of standard input: the filter is full", "build a new filter", "f.koel is unchanged"]);
        // The filter must have had room for its capacity.
        assert!(value_after(&run.stderr, "with N above ").parse::<u64>().unwrap() >= capacity, "{}", run.stderr);
        assert!(koel.read("f.koel") == before);
    }
    assert_eq!(koel.names(), ["f.koel"]);
}

#[test]
fn any_number_of_copies_is_stored_and_counted() {
    let koel = Koel::new();
    let (all, copies) = (numbers(0..1000), |number| "koel\n".repeat(number));
    for list in [copies(9), copies(50_000), all.repeat(2), all.repeat(30) + &copies(9)] {
        let lines = list.lines().count();
        for options in ["", "--capacity 1001", "--table single --bucket-size 1", "--grow"] {
            let built = koel.feed(&list, &format!("build - -o f.koel {options}")).printed();
            let shown = facts(&koel, "f.koel");
            assert_eq!(shown["items"], lines);
            assert_eq!(built.contains("\n  of these "), shown["extra_copies"] != 0, "{built}");
            assert_eq!(koel.feed(&list, "query f.koel --count --verify").ok(), format!("{lines}\n").as_bytes());
            // An item can be removed as often as it was added.
            let removed = koel.feed(list.clone() + "koel\n", "remove f.koel");
            assert!(removed.status(1).starts_with(format!("{lines} removed, 1 not found; 0 in f.koel").as_bytes()));
        }
    }
    koel.feed(copies(9), "build - -o f.koel").ok();
    assert!(koel.run("add f.koel --item koel").ok().starts_with(b"1 added; 10 in f.koel now"));
    assert!(koel.run("add f.koel --item koel --unique").ok().starts_with(b"0 added, 1 skipped"));
}

#[test]
fn copies_do_not_make_a_filter_grow() {
    let koel = Koel::new();
    let all = numbers(0..5000);
    let built = |list: String, name: &str| {
        let run = koel.feed(list, &format!("build - -o {name} --grow"));
        let text = run.unbroken();
        run.ok();
        (text, facts(&koel, name))
    };
    let ((text, once), (again, copies)) = (built(all.clone(), "once.koel"), built(all.repeat(30), "copies.koel"));
    assert!(once["extra_copies"] == 0 && !text.contains("copies, counted"), "{text}");
    assert_eq!([&copies["items"], &copies["shards"]], [&serde_json::json!(150_000), &once["shards"]]);
    // The tables hold each item once, and a few copies.
    let extra = copies["extra_copies"].as_u64().expect("a number");
    assert!((143_000..=145_000).contains(&extra), "{extra}");
    assert!(again.contains(&format!("of these {extra} copies, counted beside the tables")), "{again}");
    // Without a first pass over the list, the distinct items are not reported.
    let unique = koel.feed(all.repeat(3), "build - -o unique.koel --grow --unique").printed();
    assert!(unique.contains("\n  skipped        10000,") && !unique.contains("distinct"), "{unique}");
}

/// As the help of `--unique` says: a filter that grows compares more bits than a query, so it skips fewer new items.
#[test]
fn unique_skips_new_items_at_most_at_the_rate() {
    let koel = Koel::new();
    let new = numbers(30_000..60_000);
    for (options, fewer) in [("--grow", true), ("--capacity 60000", false)] {
        koel.feed(numbers(0..30_000), &format!("build - -o f.koel --fpr 2% {options}")).ok();
        let found = koel.feed(&new, "query f.koel --count").text().trim().parse::<u64>().expect("a number");
        let added = koel.feed(&new, "add f.koel --unique").text();
        let skipped = value_after(&added, " added, ").parse::<u64>().expect("a number");
        assert!((100..=700).contains(&found), "{options}: {found}");
        assert!(
            skipped <= 700 && (skipped * 4 < found) == fewer && (skipped >= found) != fewer,
            "{options}: {skipped} of {found}"
        );
        // Skipped items are found, too.
        assert_eq!(koel.feed(&new, "query f.koel --count").ok(), b"30000\n");
    }
}
