//! `koel tune --keys`, which counts and measures the user's own keys.

use serde_json::{Value, json};

use super::{assert_builds, assert_legible, list, number};
use crate::common::{Koel, facts, numbers};

/// Returns the candidates that were measured, each with its measurements. They are those that the text's table shows.
fn measured(object: &Value) -> Vec<(&Value, &Value)> {
    let candidates = list(object, "candidates").iter().map(|candidate| (candidate, &candidate["measured"]));
    candidates.filter(|(_, measured)| !measured.is_null()).collect()
}

#[test]
fn keys_are_counted_and_measured() {
    let koel = Koel::new();
    // There are 20,000 distinct keys. 2000 of them occur twice, and one of these four times.
    koel.write("keys.txt", numbers(0..20_000) + &numbers(0..2000) + "7\n7\n");
    let found = koel.json("tune --json --keys keys.txt --fpr 0.01");
    assert_eq!(found["asked"]["items"], 20_000);
    let trial = &found["trial"];
    assert_eq!(trial["keys"], json!({ "read": 22_002, "distinct": 20_000, "duplicates": 2002, "most_copies": 4 }));
    assert_eq!((&trial["queries"], &trial["absent_keys_from"]), (&Value::Null, &Value::from("random")));
    assert!(number(trial, "/absent_keys") >= 100_000.0 && number(trial, "/hash_ns/median") > 0.0);
    let measured = measured(&found);
    assert!(measured.len() >= 4, "{}", measured.len());
    for (candidate, measured) in measured {
        assert_eq!([&measured["fits"], &measured["stored"]], [&json!(true), &json!(20_000)]);
        assert_eq!(measured["load_factor"], candidate["load_factor"]);
        assert_eq!(measured["expected_false_positive_rate"], candidate["false_positive_rate"]);
        let [table, snapshot] = [&candidate["table_bytes"], &measured["snapshot_bytes"]].map(Value::as_u64);
        assert_eq!(table.map(|table| table + 72), snapshot);
        // The interval has 99 % confidence. With these keys, it contains the expected rate for all filters.
        let [low, rate, high] = ["_low", "", "_high"].map(|end| number(measured, &format!("/false_positive_rate{end}")));
        let expected = number(candidate, "/false_positive_rate");
        assert!(low < expected && expected < high && low < rate && rate < high, "{expected}: {measured}");
        assert!(high - low < 0.2 * expected, "{measured}");
        assert!((number(measured, "/false_positives") - rate * number(trial, "/absent_keys")).abs() < 1e-6, "{measured}");
        assert!(measured["query_false_positives"].is_null());
        for time in ["insert_ns", "present_ns", "absent_ns"] {
            let [low, median, high] = ["low", "median", "high"].map(|name| number(&measured[time], &format!("/{name}")));
            assert!(0.0 < low && low <= median && median <= high && measured[time]["disturbed"].is_boolean(), "{measured}");
        }
    }
    // Duplicate keys make --unique part of the command.
    let command = found["command"].as_str().expect("a command");
    assert!(command.ends_with("--capacity 20000 --fpr 0.01 --unique"), "{command}");
    let builder = found["builder"].as_str().expect("a call");
    assert!(builder.ends_with(".build()?;\nfilter.insert_unique_iter(keys)?;"), "{builder}");
    assert_builds(&koel, &found, "keys.txt");
    // --unique skips keys that the filter reports as present already: less than one in a hundred.
    let items = number(&facts(&koel, "f.koel"), "/items");
    assert!((19_800.0..=20_000.0).contains(&items), "{items}");
}

/// The false positives do not depend on the run: a filter of `koel build` has the same.
#[test]
fn false_positives_are_those_of_the_built_filter() {
    let koel = Koel::new();
    koel.write("keys.txt", numbers(0..5000));
    // 1000 queries are keys. Of the 20,000 other queries, the last 10,000 occur three times.
    koel.write("queries.txt", numbers(4000..25_000) + &numbers(15_000..25_000).repeat(2));
    let found = koel.json("tune --json --keys keys.txt --queries queries.txt --fpr 0.03");
    let (trial, queries) = (&found["trial"], &found["trial"]["queries"]);
    assert_eq!([&queries["read"], &queries["present"], &queries["absent"]], [41_000, 1000, 40_000]);
    assert!((number(queries, "/present_share") - 1.0 / 41.0).abs() < 1e-12);
    assert_eq!((&trial["absent_keys"], &trial["absent_keys_from"]), (&json!(20_000), &json!("queries")));
    assert!(!found["command"].as_str().expect("a command").contains("--unique"), "{found}");
    assert_builds(&koel, &found, "keys.txt");
    let best = &found["candidates"][0]["measured"];
    let reported = |queries: &str| koel.feed(queries, "query f.koel --count").json();
    assert_eq!(best["false_positives"], reported(&numbers(5000..25_000)));
    assert_eq!(best["query_false_positives"], reported(&(numbers(5000..25_000) + &numbers(15_000..25_000).repeat(2))));
    assert_ne!(best["query_false_positives"], best["false_positives"]);
}

#[test]
fn filters_may_have_room_for_more_than_the_keys() {
    let koel = Koel::new();
    koel.write("keys.txt", numbers(0..1000));
    let found = koel.json("tune --json --keys keys.txt --items 4000 --bytes 4kB --table single --bucket-size 4");
    let (candidate, measured) = measured(&found)[0];
    assert!(number(candidate, "/load_factor") > 0.85 && number(measured, "/load_factor") < 0.25, "{candidate}");
    assert!(number(measured, "/expected_false_positive_rate") < 0.3 * number(candidate, "/false_positive_rate"));
    koel.run("tune --keys keys.txt --items 999 --fpr 0.01").error(&[
        "--items: 999 given",
        "1000 distinct keys",
        "leave --items out",
    ]);
    // `items` is null, since fewer items than keys are not allowed.
    let nothing = koel.run("tune --keys keys.txt --bytes 100 --json");
    nothing.status(1);
    let nearest = &nothing.json()["nearest"];
    assert!(nearest["items"].is_null() && number(nearest, "/bytes") > 100.0, "{nearest}");
}

#[test]
fn a_few_keys_are_enough() {
    let koel = Koel::new();
    for (input, options, read, distinct, end) in
        [("a\nb\r\n\nb\n", "", 4, 3, "--unique"), ("a\nb\0a\nb\0b", "--nul", 3, 2, "--unique --nul")]
    {
        let found = koel.feed(input, &format!("tune --json --fpr 0.1 --keys - {options}")).json();
        assert_eq!([&found["trial"]["keys"]["read"], &found["trial"]["keys"]["distinct"]], [read, distinct]);
        assert!(found["command"].as_str().is_some_and(|command| command.ends_with(end)), "{found}");
    }
    koel.write("one.txt", "apple\n");
    let found = koel.json("tune --json --keys one.txt --queries one.txt --fpr 0.01");
    assert_eq!([&found["trial"]["queries"]["present"], &found["trial"]["absent_keys"]], [1, 0]);
    let best = &found["candidates"][0]["measured"];
    assert!(best["false_positive_rate"].is_null() && best["absent_ns"].is_null() && best["fits"] == true, "{best}");
    let text = koel.run("tune --keys one.txt --queries one.txt --fpr 0.01").printed();
    assert!(text.contains("\n1 query: 1 present (100 %), 0 absent") && text.contains("No query is absent"));
}

#[test]
fn the_text_has_the_measurements() {
    let koel = Koel::new();
    koel.write("keys.txt", numbers(0..3000) + "5\n");
    koel.write("queries.txt", numbers(2000..9000) + "8000\n");
    let text = koel.run("tune --keys keys.txt --queries queries.txt --fpr 0.01").printed();
    for part in [
        "Measured with 3001 keys, 3000 of them distinct, each stored once: 1 duplicate;\n  the most frequent key occurs 2 times.\n",
        "\n7001 queries: 1000 present (14.3 %), 6001 absent, 6000 of them distinct.\n",
        "\nEach filter has room for all keys.\n",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let row = |header: &str| {
        let at = text.lines().position(|line| line.split_whitespace().eq(header.split(' ')));
        text.lines().nth(at.unwrap_or_else(|| panic!("no {header:?}: {text}")) + 2).expect("a row")
    };
    let [planned, first, second] = [
        "filter size bits \u{3b5} load changes",
        "filter load bytes snapshot insert present absent",
        "filter expected measured 99 % interval of the queries",
    ]
    .map(row);
    assert!(planned.contains(" *  ") && planned.ends_with("  add, delete"), "{planned}");
    assert!(first.contains(" *  ") && first.contains(" %  "), "{first}");
    assert!(second.contains(" to 0.0") && second.ends_with(" of 6001"), "{second}");
    // Other structures are compared, but not measured.
    assert_eq!(text.matches("\nquotient ").count(), 1, "{text}");
    assert_legible(&text);
    // Without --queries, the text says that the absent keys are random.
    let random = koel.run("tune --keys keys.txt --fpr 0.01").text();
    assert!(random.contains(" random absent keys.\n") && !random.contains("of the queries"), "{random}");
}

#[test]
fn invalid_files_are_named() {
    let koel = Koel::new();
    koel.write("keys.txt", "a\nb\n");
    koel.write("none.txt", "");
    koel.given("tune --fpr 0.1").refuses(&[
        ("--keys no.txt", &["no.txt", "cannot be read"]),
        ("--keys none.txt", &["--keys: none.txt has no keys", "leave --keys out and give --items"]),
        ("--keys -", &["--keys: standard input has no keys"]),
        ("--keys .", &[".: is a folder", "one item per line"]),
        ("--keys keys.txt --queries no.txt", &["no.txt", "cannot be read"]),
        ("--keys keys.txt --queries none.txt", &["--queries: none.txt has no queries", "leave --queries out"]),
        ("--keys - --queries -", &["--keys and --queries", "both are standard input", "give a file for one of them"]),
        ("--items 5 --queries keys.txt", &["--keys <FILE>", "not provided"]),
        ("--items 5 --nul", &["--keys <FILE>", "not provided"]),
    ]);
}
