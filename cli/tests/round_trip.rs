//! The life of a filter: built, inspected, queried, added to, removed from.

use crate::common::{Koel, facts, numbers};

#[test]
fn a_filter_lives() {
    let koel = Koel::new();
    koel.write("thousand.txt", numbers(0..1000));
    koel.write("more.txt", numbers(1000..1100));
    let built = koel.run(["build", "thousand.txt", "-o", "f.koel", "--capacity", "1100"]);
    let built = String::from_utf8_lossy(built.ok()).into_owned();
    for fact in [
        "filter            f.koel\n",
        "items             1000\n",
        "table             packed\n",
        "hasher            xxh3, seed 0\n",
    ] {
        assert!(built.contains(fact), "{built}");
    }
    // `build` prints the same facts as `info`.
    assert_eq!(built.split_once('\n').unwrap().1, koel.run(["info", "f.koel"]).text());

    assert_eq!(koel.run(["query", "f.koel", "thousand.txt"]).ok(), numbers(0..1000).as_bytes());
    assert_eq!(koel.run(["query", "f.koel", "thousand.txt", "--absent"]).status(1), b"");
    let mistaken = koel.run(["query", "f.koel", "more.txt", "--count"]).text().trim().parse::<u32>().unwrap();
    assert!(mistaken < 10, "{mistaken}");

    let added = koel.run(["add", "f.koel", "more.txt"]);
    assert!(added.ok().starts_with(b"100 added; 1100 in f.koel now"), "{}", added.text());
    assert_eq!(koel.run(["query", "f.koel", "more.txt"]).ok(), numbers(1000..1100).as_bytes());

    let removed = koel.run(["remove", "f.koel", "thousand.txt"]);
    assert!(removed.ok().starts_with(b"1000 removed, 0 not found; 100 in f.koel now"), "{}", removed.text());
    assert_eq!(koel.run(["query", "f.koel", "more.txt"]).ok(), numbers(1000..1100).as_bytes());
    koel.run(["remove", "f.koel", "more.txt"]).ok();

    // Nothing is left: it equals a filter that never had items.
    koel.run(["build", "-", "-o", "empty.koel", "--capacity", "1100"]).ok();
    assert!(koel.read("f.koel") == koel.read("empty.koel"));
    assert_eq!(koel.names(), ["empty.koel", "f.koel", "more.txt", "thousand.txt"]);
}

#[test]
fn removing_what_is_absent_is_reported_and_changes_nothing() {
    let koel = Koel::with_filter("apple\nbanana\n");
    let before = koel.read("f.koel");
    let removed = koel.run(["remove", "f.koel", "--item", "cherry"]);
    assert!(removed.status(1).starts_with(b"0 removed, 1 not found; 2 in f.koel now"), "{}", removed.text());
    assert!(koel.read("f.koel") == before);
    let removed = koel.run(["remove", "f.koel", "--item", "cherry", "--item", "apple"]);
    assert!(removed.status(1).starts_with(b"1 removed, 1 not found; 1 in f.koel now"), "{}", removed.text());
    koel.run(["query", "f.koel", "--item", "apple"]).status(1);
    koel.run(["query", "f.koel", "--item", "banana"]).ok();
}

#[test]
fn unique_skips_what_is_reported_as_present() {
    let koel = Koel::new();
    for capacity in [&["--capacity", "10"][..], &[]] {
        let args = ["build", "-", "-o", "f.koel", "--unique"];
        let built = koel.feed("a\nb\na\na\n", args.iter().chain(capacity));
        assert!(built.text().contains("  skipped         2, as already present"), "{}", built.text());
        built.ok();
        assert_eq!(facts(&koel, "f.koel")["items"], 2);
    }
    koel.feed("a\nb\n", ["build", "-", "-o", "f.koel", "--capacity", "10"]).ok();
    let added = koel.feed("b\nc\n", ["add", "f.koel", "--unique"]);
    assert!(added.ok().starts_with(b"1 added, 1 skipped as already present; 3 in"), "{}", added.text());
    let added = koel.feed("b\n", ["add", "f.koel"]);
    assert!(added.ok().starts_with(b"1 added; 4 in"), "{}", added.text());
}

#[test]
fn the_size_follows_from_the_items() {
    let koel = Koel::new();
    // Counted first, or promised: the same filter.
    koel.feed(numbers(0..5000), ["build", "-", "-o", "counted.koel"]).ok();
    koel.feed(numbers(0..5000), ["build", "-", "-o", "promised.koel", "--capacity", "5000"]).ok();
    assert!(koel.read("counted.koel") == koel.read("promised.koel"));
    // Copies that are not stored take no room.
    let thrice = numbers(0..5000).repeat(3);
    koel.feed(&thrice, ["build", "-", "-o", "unique.koel", "--unique"]).ok();
    assert_eq!(facts(&koel, "unique.koel")["buckets"], facts(&koel, "counted.koel")["buckets"]);
}

#[test]
fn every_option_arrives() {
    let koel = Koel::new();
    let options =
        "--bits 9 --capacity 500 --table single --bucket-size 8 --addressing power-of-two --hasher metrohash64 --seed 0x539";
    koel.feed(numbers(0..500), ["build", "-", "-o", "f.koel"].into_iter().chain(options.split(' '))).ok();
    let told = facts(&koel, "f.koel");
    let expected = [
        ("table", "single".into()),
        ("fingerprint_bits", 9.into()),
        ("bucket_size", 8.into()),
        ("addressing", "power-of-two".into()),
        ("hasher", "metrohash64".into()),
        ("seed", serde_json::Value::from(1337)),
        ("items", 500.into()),
    ];
    for (fact, value) in expected {
        assert_eq!(told[fact], value, "{fact}");
    }
    let [buckets, slots, capacity] = ["buckets", "slots", "capacity"].map(|fact| told[fact].as_u64().unwrap());
    assert!(buckets.is_power_of_two() && slots == 8 * buckets && capacity >= 500, "{told}");
    assert_eq!(told["table_bytes"], buckets * 9);
    assert_eq!(told["file_bytes"], koel.read("f.koel").len());
    for rate in ["false_positive_rate", "false_positive_rate_at_capacity", "load_factor", "bits_per_item"] {
        assert!(told[rate].as_f64().unwrap() > 0.0, "{rate}");
    }
    // The hasher and its seed travel with the filter.
    assert_eq!(koel.feed(numbers(0..500), ["query", "f.koel", "--count"]).ok(), b"500\n");
    koel.feed(numbers(0..500), ["remove", "f.koel"]).ok();
    assert!(facts(&koel, "f.koel")["bits_per_item"].is_null());
}

#[test]
fn the_smaller_table_is_the_default_and_the_rate_is_kept() {
    let koel = Koel::new();
    for rate in ["0.3", "0.03", "0.001", "0.0000001"] {
        let table_bytes = ["single", "packed"].map(|table| {
            let args = ["build", "-", "-o", "f.koel", "--fpr", rate, "--table", table];
            if koel.feed(numbers(0..1000), args).status == 0 {
                facts(&koel, "f.koel")["table_bytes"].as_u64().unwrap()
            } else {
                u64::MAX
            }
        });
        koel.feed(numbers(0..1000), ["build", "-", "-o", "f.koel", "--fpr", rate]).ok();
        let told = facts(&koel, "f.koel");
        assert_eq!(told["table_bytes"], table_bytes[0].min(table_bytes[1]), "{rate}");
        assert!(told["false_positive_rate_at_capacity"].as_f64().unwrap() <= rate.parse().unwrap());
    }
}

#[test]
fn every_kernel_builds_and_finds_the_same() {
    let koel = Koel::new();
    koel.write("items.txt", numbers(0..5000));
    koel.write("others.txt", numbers(0..50_000));
    let run = |kernel: koel::Kernel| {
        let kernel = kernel.to_string();
        koel.run_with("KOEL_KERNEL", &kernel, &["build", "items.txt", "-o", "f.koel", "--fpr", "0.01"]).ok();
        let found = koel.run_with("KOEL_KERNEL", &kernel, &["query", "f.koel", "others.txt"]).ok().to_vec();
        (koel.read("f.koel"), found)
    };
    let portable = run(koel::Kernel::Portable);
    for kernel in koel::Kernel::available() {
        assert!(run(kernel) == portable, "{kernel}");
    }
}
