//! The life of a filter, of fixed size or growing: built, inspected, queried, added to, removed from, and full.

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

#[test]
fn a_growing_filter_lives() {
    let koel = Koel::new();
    koel.write("many.txt", numbers(0..30_000));
    koel.write("more.txt", numbers(30_000..31_000));
    let built = koel.feed(numbers(0..30_000), ["build", "-", "-o", "g.koel", "--grow"]);
    let built = String::from_utf8_lossy(built.ok()).into_owned();
    for fact in
        ["format           koel snapshot of a filter that grows\n", "items            30000\n", "table            packed, in "]
    {
        assert!(built.contains(fact), "{built}");
    }
    // `build` prints the same facts as `info`.
    assert_eq!(built.split_once('\n').unwrap().1, koel.run(["info", "g.koel"]).text());
    assert!(koel.run(["verify", "g.koel"]).text().starts_with("g.koel: ok: koel snapshot of a filter that grows, 30000 items"));

    assert_eq!(koel.run(["query", "g.koel", "many.txt"]).ok(), numbers(0..30_000).as_bytes());
    let mistaken = koel.run(["query", "g.koel", "more.txt", "--count"]);
    assert!(mistaken.stdout.starts_with(b"0") || mistaken.text().trim().parse::<u32>().unwrap() < 10);

    let added = koel.run(["add", "g.koel", "more.txt"]);
    assert!(added.ok().starts_with(b"1000 added; 31000 in g.koel now (tables of "), "{}", added.text());
    let added = koel.run(["add", "g.koel", "more.txt", "--unique"]);
    assert!(added.ok().starts_with(b"0 added, 1000 skipped as already present; 31000 in g.koel now"), "{}", added.text());
    let removed = koel.run(["remove", "g.koel", "many.txt"]);
    assert!(removed.ok().starts_with(b"30000 removed, 0 not found; 1000 in g.koel now"), "{}", removed.text());
    assert_eq!(koel.run(["query", "g.koel", "more.txt"]).ok(), numbers(30_000..31_000).as_bytes());

    // A pipe carries it as well as a file does.
    let streamed = koel.run(["build", "more.txt", "-o", "-", "--grow"]);
    koel.write("streamed.koel", streamed.status(0));
    assert_eq!(koel.run(["query", "streamed.koel", "more.txt"]).ok(), numbers(30_000..31_000).as_bytes());
}

#[test]
fn growing_filters_of_any_size_are_merged() {
    let koel = Koel::new();
    koel.feed(numbers(0..100), ["build", "-", "-o", "a.koel", "--grow"]).ok();
    koel.feed(numbers(100..50_000), ["build", "-", "-o", "b.koel", "--grow"]).ok();
    let merged = koel.run(["merge", "a.koel", "b.koel", "-o", "c.koel"]);
    assert!(String::from_utf8_lossy(merged.ok()).contains("items            50000\n"));
    koel.write("all.txt", numbers(0..50_000));
    assert_eq!(koel.run(["query", "c.koel", "all.txt", "--count"]).text(), "50000\n");

    koel.feed("x\n", ["build", "-", "-o", "fixed.koel"]).ok();
    koel.feed("x\n", ["build", "-", "-o", "other.koel", "--grow", "--fpr", "0.01"]).ok();
    for (filters, part) in [
        (["a.koel", "fixed.koel"], "the second has a fixed size; build both with --grow"),
        (["fixed.koel", "a.koel"], "which goes only with others that do"),
        (["a.koel", "other.koel"], "build both with the same --fpr"),
    ] {
        let refused = koel.run(["merge", filters[0], filters[1], "-o", "d.koel"]);
        refused.status(2);
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert!(!koel.names().contains(&String::from("d.koel")));
}

#[test]
fn damage_and_mistakes_are_reported() {
    let koel = Koel::new();
    koel.feed(numbers(0..1000), ["build", "-", "-o", "g.koel", "--grow"]).ok();
    let bytes = koel.read("g.koel");
    for at in [60, 70, 200, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        koel.write("damaged.koel", damaged);
        let verified = koel.run(["verify", "damaged.koel"]);
        verified.status(2);
        assert!(verified.stderr.contains("damaged.koel: at byte "), "{}", verified.stderr);
    }
    koel.write("cut.koel", &bytes[..bytes.len() - 9]);
    koel.run(["query", "cut.koel", "--item", "1"]).status(2);
    koel.write("long.koel", [&bytes[..], b"x"].concat());
    assert!(koel.run(["info", "long.koel"]).stderr.contains("the filter ends here"));
    for (arguments, part) in [
        (&["--grow", "--bits", "12"][..], "cannot be used with"),
        (&["--max-capacity", "10"], "--grow"),
        (&["--grow", "--fpr", "2"], "--fpr: 2 given"),
        (&["--grow", "--capacity", "10", "--max-capacity", "9"], "--capacity: 10 given"),
    ] {
        let refused = koel.run([&["build", "-", "-o", "n.koel"][..], arguments].concat());
        refused.status(2);
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    let nine = "same\n".repeat(9);
    let refused = koel.feed(&nine, ["build", "-", "-o", "n.koel", "--grow"]);
    refused.status(2);
    assert!(refused.stderr.contains("line 9") && refused.stderr.contains("--unique"), "{}", refused.stderr);
    koel.feed(&nine, ["build", "-", "-o", "n.koel", "--grow", "--unique"]).ok();
    #[cfg(target_endian = "little")]
    assert!(koel.run(["convert", "n.koel", "-o", "n.go", "--to", "go"]).stderr.contains("Go's have a fixed size"));
}

#[test]
fn a_filter_that_is_too_small_is_not_written() {
    let koel = Koel::new();
    koel.write("old.koel", "what was there before");
    koel.write("list.txt", numbers(0..1000));
    for out in ["old.koel", "new.koel"] {
        koel.run(["build", "list.txt", "-o", out, "--capacity", "10"]).error(&[
            "koel: line ",
            " of list.txt: the filter is full",
            "leave --capacity out",
            "nothing was written",
        ]);
    }
    assert_eq!(koel.names(), ["list.txt", "old.koel"]);
    assert_eq!(koel.read("old.koel"), b"what was there before");
}

#[test]
fn a_full_filter_stays_as_it_was() {
    let koel = Koel::new();
    koel.feed(numbers(0..10), ["build", "-", "-o", "f.koel", "--capacity", "10"]).ok();
    let before = koel.read("f.koel");
    let capacity = facts(&koel, "f.koel")["capacity"].to_string();
    for input in [&["-"][..], &["-", "--unique"], &["-", "--nul"]] {
        let list = numbers(10..1000).replace('\n', if input.contains(&"--nul") { "\0" } else { "\n" });
        let run = koel.feed(list, ["add", "f.koel"].iter().chain(input));
        run.error(&[" of standard input: the filter is full", "build a new filter", "f.koel is unchanged"]);
        assert!(run.stderr.contains(if input.contains(&"--nul") { "koel: item " } else { "koel: line " }), "{}", run.stderr);
        // At least the capacity must have fitted.
        let limit = run.stderr.split("--capacity above ").nth(1).and_then(|rest| rest.split([',', ';']).next()).unwrap();
        assert!(limit.parse::<u64>().unwrap() >= capacity.parse().unwrap(), "{}", run.stderr);
        assert!(koel.read("f.koel") == before);
    }
    assert_eq!(koel.names(), ["f.koel"]);
}

#[test]
fn too_many_copies_are_called_so() {
    let koel = Koel::new();
    let copies = "koel\n".repeat(9);
    for capacity in [&[][..], &["--capacity", "1000"]] {
        let args = ["build", "-", "-o", "f.koel"];
        koel.feed(&copies, args.iter().chain(capacity)).error(&[
            "line 9 of standard input",
            "both of its buckets are full of copies",
            "--unique",
            "nothing was written",
        ]);
    }
    assert!(koel.names().is_empty());
    koel.feed("koel\n".repeat(8), ["build", "-", "-o", "f.koel"]).ok();
    let before = koel.read("f.koel");
    koel.run(["add", "f.koel", "--item", "koel"]).error(&[
        "item 1 of the command line",
        "both of its buckets are full of copies",
        "--unique",
        "is unchanged",
    ]);
    assert!(koel.read("f.koel") == before);
    koel.run(["add", "f.koel", "--item", "koel", "--unique"]).ok();
}
