//! The recommendations of `koel tune` as JSON and as text, the calls that build them, and the nearest values that work if no filter
//! does.

#![allow(clippy::cast_precision_loss, reason = "numbers of items are small")]

use koel::{
    Addressing, TableKind,
    tuning::{Candidate, Constraints, Recommendation, best_rate, recommend},
};
use koel_lab::structures::Structure;
use serde_json::{Value, json};

use super::{assert_builds, assert_legible, list, number, object, tune};
use crate::common::{Koel, value_after};

/// The call in Rust is compared, too.
#[test]
fn the_command_builds_the_best_filter() {
    let koel = Koel::new();
    koel.write("list.txt", "a\n");
    for (options, uses, calls) in [
        ("--items 1000 --fpr 0.001", "CuckooFilter", ".false_positive_rate(0.001)"),
        ("--items 7 --fpr 0.3", "CuckooFilter", ".false_positive_rate(0.3)"),
        (
            "--items 1000 --fpr 0.001 --table single",
            "{CuckooFilter, TableKind}",
            ".false_positive_rate(0.001).table(TableKind::Single)",
        ),
        ("--items 1000 --fpr 0.001 --bucket-size 3", "CuckooFilter", ".false_positive_rate(0.001).bucket_size(3)"),
        ("--items 17 --fpr 0.001", "CuckooFilter", ".false_positive_rate(0.001).bucket_size(9)"),
        ("--items 1000000 --bytes 1.2MB", "CuckooFilter", ".fingerprint_bits(10)"),
        (
            "--items 1000 --bytes 2000 --table single --bucket-size 4 --addressing power-of-two",
            "{Addressing, CuckooFilter, TableKind}",
            ".fingerprint_bits(7).table(TableKind::Single).addressing(Addressing::PowerOfTwo)",
        ),
        (
            "--items 100 --bytes 2000 --bucket-size 2 --addressing power-of-two",
            "{Addressing, CuckooFilter}",
            ".fingerprint_bits(32).bucket_size(2).addressing(Addressing::PowerOfTwo)",
        ),
    ] {
        let found = object(options);
        assert_builds(&koel, &found, "list.txt");
        let [command, rust] = ["command", "builder"].map(|name| found[name].as_str().expect("a call"));
        assert!(tune(options).text().ends_with(&format!("\n{command}\n\n{rust}\n")), "{command}");
        assert!(
            rust.starts_with(&format!("use koel::{uses};\nlet mut filter = CuckooFilter::builder()\n    .capacity(")),
            "{rust}"
        );
        assert!(rust.replace("\n    ", "").ends_with(&format!("{calls}.build()?;")), "{rust}");
    }
}

/// Asserts that an answer has all numbers of the library, and no others.
#[track_caller]
fn assert_same(found: &Value, advice: &Recommendation, items: usize) {
    let candidates = advice.candidates().iter().map(|candidate| {
        let params = candidate.params();
        json!({
            "table": params.table().to_string(),
            "fingerprint_bits": params.fingerprint_bits(),
            "bucket_size": params.bucket_size(),
            "buckets": params.buckets(),
            "addressing": params.addressing().to_string(),
            "slots": params.slots(),
            "capacity": params.capacity(),
            "table_bytes": candidate.bytes(),
            "bits_per_item": candidate.bits_per_item(),
            "load_factor": candidate.load(),
            "false_positive_rate": candidate.false_positive_rate(),
            "false_positive_rate_at_capacity": params.false_positive_rate_at_capacity(),
            "deletes": true,
            "grows": false,
            "static": false,
            "measured": null,
            "replay": null,
            "cost_ns": null,
        })
    });
    assert_eq!(found["candidates"], candidates.collect::<Value>());
    let rejections = advice.rejections().iter().map(|rejection| {
        let (table, b) = (rejection.table().to_string(), rejection.bucket_size());
        json!({ "table": table, "bucket_size": b, "reason": rejection.reason() })
    });
    assert_eq!(found["rejections"], rejections.collect::<Value>());
    let others = list(found, "others");
    for other in others {
        let structure = Structure::ALL.into_iter().find(|structure| other["name"] == structure.name()).expect("a structure");
        let bits = structure.bits_per_item(number(other, "/false_positive_rate")).expect("there is one");
        assert_eq!(other["bits_per_item"], bits);
        for (name, can) in [("deletes", structure.deletes()), ("grows", structure.grows()), ("static", structure.is_static())] {
            assert_eq!(other[name], json!((structure != Structure::LowerBound).then_some(can)), "{name} of {other}");
        }
        assert!((number(other, "/table_bytes") - bits * items as f64 / 8.0).abs() < 1e-9 * bits * items as f64, "{other}");
    }
    assert!(others.is_sorted_by_key(|other| number(other, "/bits_per_item")), "the smallest first");
    assert_eq!(others.len() + list(found, "others_rejected").len(), Structure::ALL.len());
}

#[test]
fn the_json_has_the_librarys_numbers() {
    let with = Constraints::default;
    for (options, advice, items) in [
        ("--items 123456 --fpr 0.003", recommend(123_456, 0.003, &with()), 123_456),
        (
            "--items 5000 --fpr 0.02 --bytes 7.5KiB --table single --addressing power-of-two",
            recommend(5000, 0.02, &with().max_bytes(7680).table(TableKind::Single).addressing(Addressing::PowerOfTwo)),
            5000,
        ),
        (
            "--items 5000 --fpr 0.02 --table single --bucket-size 3",
            recommend(5000, 0.02, &with().table(TableKind::Single).bucket_size(3)),
            5000,
        ),
        ("--items 1000000 --bytes 1MiB", best_rate(1_000_000, 1 << 20, &with()), 1_000_000),
    ] {
        let found = object(options);
        assert_same(&found, &advice, items);
        // Other structures are compared at the given rate, or else at the best filter's.
        let rate = found["asked"]["false_positive_rate"].as_f64().or(advice.best().map(Candidate::false_positive_rate));
        assert!(list(&found, "others").iter().all(|other| other["false_positive_rate"].as_f64() == rate), "{options}");
        assert!(found["nearest"].is_null());
    }
    let request = &object("--items 5000 --fpr 0.02 --bytes 7.5KiB --table single --addressing power-of-two")["asked"];
    assert_eq!(
        (&request["bytes"], &request["table"], &request["addressing"]),
        (&json!(7680), &json!("single"), &json!("power-of-two"))
    );
    // Without items, bits per item are null.
    let best = &object("--items 0 --fpr 0.02")["candidates"][0];
    assert!(best["bits_per_item"].is_null() && best["false_positive_rate"] == 0.0, "{best}");
    let text = tune("--items 1000000 --bytes 1MiB").text();
    assert!(text.starts_with("1000000 items, at most 1048576 bytes.\n") && text.contains("\n* The lowest rate: "), "{text}");
    assert!(text.contains("at \u{3b5} = 0.0148.\n"), "{text}");
}

#[test]
fn structures_that_cannot_delete_or_have_the_rate_are_left_out() {
    for (options, reason) in [("--fpr 0.01 --deletes", "cannot delete"), ("--fpr 1e-30", "cannot have that rate")] {
        let found = object(&format!("--items 1000 {options}"));
        let rejected = list(&found, "others_rejected");
        let expected = Structure::ALL.into_iter().filter(|&other| match reason {
            "cannot delete" => !other.deletes() && other != Structure::LowerBound,
            _ => other.bits_per_item(1e-30).is_none(),
        });
        assert!(!rejected.is_empty() && rejected.iter().all(|other| other["reason"] == reason), "{rejected:?}");
        assert!(rejected.iter().map(|other| &other["name"]).eq(expected.map(Structure::name)), "{rejected:?}");
    }
}

#[test]
fn the_text_equals_the_golden_text() {
    let run = tune("--items 1000000 --fpr 0.001 --deletes");
    let golden = "\
1000000 items, a false-positive rate ε of at most 0.001.

filter                    size   bits        ε    load       changes
--------------------------------------------------------------------
packed f=13 b=4 *      1.54 MB  12.31  9.52e-4  97.5 %   add, delete
single f=13 b=4        1.67 MB  13.33  9.52e-4  97.5 %   add, delete
single f=12 b=2        1.71 MB  13.65  8.58e-4  87.9 %   add, delete
single f=13 b=3        1.71 MB  13.68  6.96e-4  95.0 %   add, delete
--------------------------------------------------------------------
lower bound            1.25 MB   9.97  0.00100       -             -
quotient               1.60 MB  12.76  0.00100       -  grow, delete
d-left counting Bloom  2.83 MB  22.67  0.00100       -   add, delete
counting Bloom         7.19 MB  57.51  0.00100       -   add, delete

* The smallest: 1538472 bytes, 256412 buckets of 4 slots. Room for 1000006
  distinct items.
f: bits per fingerprint, b: slots per bucket; bits: per item.
13 other filters are no smaller: --all shows them.
Below the line: their authors' formulas, for large sets, at ε = 0.00100.
If the number of items will grow: koel build --grow.

Left out:
- Bloom, blocked Bloom, Golomb-coded sequence, xor, binary fuse: cannot delete.

koel build IN -o OUT --capacity 1000000 --fpr 0.001

use koel::CuckooFilter;
let mut filter = CuckooFilter::builder()
    .capacity(1_000_000)
    .false_positive_rate(0.001)
    .build()?;
";
    assert_eq!(String::from_utf8_lossy(run.ok()), golden);
    // Filters that are left out for the same reason share a line.
    let run = tune("--items 1000000 --fpr 0.001 --bucket-size 4");
    let sizes = "1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16";
    let left_out = format!("- single b={sizes}: only buckets of 4 slots were requested. koel build ");
    assert!(run.unbroken().contains(&left_out), "{}", run.text());
}

#[test]
fn the_text_repeats_the_request() {
    let limits = "--fpr 1% --bytes 9MB --table single --bucket-size 4 --addressing power-of-two";
    let run = tune(&format!("--items 1M --headroom 50% {limits}"));
    run.ok();
    let limits = "1000000 items, with headroom 1500000, a false-positive rate \u{3b5} of at most 0.01, at most 9000000 bytes, \
                  single tables, buckets of 4 slots, addressing power-of-two.";
    assert!(run.unbroken().starts_with(limits), "{}", run.text());
}

/// The text counts the filters that the table omits. --all shows them.
#[test]
fn all_filters_are_shown_on_request() {
    for options in ["--items 1M --fpr 0.1%", "--items 17 --fpr 0.1%", "--items 1000 --bytes 2k"] {
        let (short, long) = (tune(options).text(), tune(&format!("{options} --all")).text());
        let rows = |text: &str| text.lines().filter(|line| line.contains(" b=") && !line.starts_with(['-', 'f', '*'])).count();
        let hidden = value_after(&short, "bits: per item.\n");
        assert_eq!(rows(&short) + hidden.parse::<usize>().expect("a number"), rows(&long), "{short}{long}");
        assert!((15..=17).contains(&rows(&long)) && !long.contains("--all"), "{long}");
        // The table has the filters that a builder would choose.
        assert!(short.contains("packed f=") && short.lines().any(|line| line.starts_with("single f=") && line.contains(" b=4 ")));
    }
    // Each of the 17 tables has its own reason.
    let (short, long) = (tune("--items 1M --bytes 1k").text(), tune("--items 1M --bytes 1k --all").text());
    assert!(short.contains("\n- 13 further reasons: --all shows them.\n"), "{short}");
    assert!(!long.contains("--all") && long.matches("\n- ").count() == 17, "{long}");
}

#[test]
fn the_text_is_legible_at_all_sizes() {
    for items in ["0", "1", "1000", "1000000", "1000000000000", "1000000000000000"] {
        for wanted in ["--fpr 0.5", "--fpr 0.00123456789", "--fpr 1e-12", "--bytes 100", "--bytes 2.5TiB"] {
            let run = tune(&format!("--items {items} {wanted}"));
            assert!(run.stderr.is_empty() && run.status <= 1, "{items}, {wanted}: {}", run.stderr);
            assert_legible(&run.text());
            // With or without a filter.
            assert_eq!(run.text().contains("meets these requirements."), run.status == 1, "{items}, {wanted}");
        }
    }
}

/// Returns the options and values that the text calls sufficient.
fn suggestions(text: &str) -> Vec<(&str, &str)> {
    text.lines().filter_map(|line| line.strip_prefix("  --")?.split_once(' ')).collect()
}

/// The nearest value does not depend on the value that failed. With the nearest value, there is a recommendation; with a slightly
/// worse one, there is none.
#[test]
fn the_nearest_value_works() {
    let cases: [(&str, &str, &[&str]); 15] = [
        ("--fpr W --items 1000", "fpr", &["0", "-0.5", "NaN", "1e-300", "1e-12", "1e-11"]),
        ("--fpr W --items 1000", "fpr", &["0.51", "0.9", "99%", "1", "2", "inf"]),
        ("--fpr W --items 1000 --bytes 600", "fpr", &["0", "0.02"]),
        ("--fpr W --items 40 --bytes 60 --bucket-size 16", "fpr", &["0", "0.1"]),
        ("--fpr W --items 1000000 --bytes 1MB", "fpr", &["0.001"]),
        ("--fpr 1e-9 --items W --bytes 600", "items", &["1000", "18446744073709551615"]),
        ("--fpr 0.1 --items W --bytes 90 --bucket-size 5", "items", &["100", "1e15"]),
        ("--fpr 1e-6 --items W --addressing power-of-two --table packed", "items", &["1T"]),
        ("--fpr 0.01 --items W --bytes 1200 --bucket-size 6 --table single", "items", &["1000"]),
        ("--items W --bytes 600", "items", &["10000", "1e15"]),
        ("--items W --bytes 15 --bucket-size 1", "items", &["40"]),
        ("--items 1000 --bytes W", "bytes", &["0", "1", "300"]),
        ("--items 40 --bytes W --fpr 1e-6 --table packed", "bytes", &["5", "15"]),
        ("--items 1000 --bytes W --bucket-size 16", "bytes", &["125"]),
        ("--items 1000 --fpr 0.1% --bytes W", "bytes", &["0", "1000", "1.5k"]),
    ];
    for (question, way, failing) in cases {
        let ask = |value: &str| tune(&question.replace('W', value));
        let nearest: Vec<_> = failing
            .iter()
            .map(|value| {
                let run = ask(value);
                let text = run.text();
                match suggestions(&text).into_iter().find(|(option, _)| *option == way) {
                    Some((_, value)) => value.to_owned(),
                    None if run.status < 2 => panic!("{question}: {value}: {text}"),
                    None => value_after(&run.stderr, "the nearest that works is ").to_owned(),
                }
            })
            .collect();
        assert!(nearest.iter().all(|other| *other == nearest[0]), "{question}: {nearest:?}");
        ask(&nearest[0]).ok();
        let number = || nearest[0].parse::<u64>().expect("a number");
        let worse = match way {
            "bytes" => (number() - 1).to_string(),
            "items" => (number() + 1).to_string(),
            _ if nearest[0] == "0.5" => String::from("0.501"),
            _ => (nearest[0].parse::<f64>().expect("a rate") * 0.98).to_string(),
        };
        assert_ne!(ask(&worse).status, 0, "{question}: {worse}");
    }
}

#[test]
fn all_sufficient_options_are_named() {
    for (options, ways) in [
        ("--items 1000000 --fpr 0.001 --bytes 1MB", &["bytes", "fpr", "items"][..]),
        ("--items 1000 --bytes 10", &["bytes", "items"]),
        ("--items 1000 --fpr 1e-12", &["fpr"]),
        ("--items 1000000000000 --fpr 1e-12 --addressing power-of-two --table packed", &[]),
    ] {
        let run = tune(options);
        run.status(1);
        let text = run.text();
        assert!(text.contains("No filter meets these requirements.") && text.contains("\nLeft out:\n- "), "{text}");
        assert_eq!(suggestions(&text).iter().map(|(way, _)| *way).collect::<Vec<_>>(), ways, "{text}");
        assert_eq!(text.contains("No single option is enough"), ways.is_empty(), "{text}");
        let found = object(options);
        assert!(found["builder"].is_null() && found["command"].is_null() && !text.contains("koel::"));
        for (way, name) in [("bytes", "bytes"), ("fpr", "false_positive_rate"), ("items", "items")] {
            assert_eq!(found["nearest"][name].is_number(), ways.contains(&way), "{options}: {found}");
        }
    }
}

/// Too few bytes allow only a useless filter: the text has the bytes of a useful one. The error about a useless rate has them, too.
#[test]
fn a_useless_filter_is_not_recommended() {
    let text = tune("--items 1000 --bytes 200").text();
    let (_, bytes) = suggestions(&text).into_iter().find(|(way, _)| *way == "bytes").expect("the bytes that are enough");
    assert!(
        text.contains("at most 0.5 and") && text.contains(&format!("it takes {bytes} bytes, and there may be 200")),
        "{text}"
    );
    let enough = format!("give --fpr 0.5 and --bytes {bytes}");
    for (options, part) in [
        ("--fpr 0.9", format!("which takes {bytes} bytes")),
        ("--fpr 0.9 --bytes 200", enough.clone()),
        ("--fpr 0 --bytes 200", enough),
    ] {
        tune(&format!("--items 1000 {options}")).error(&[&part]);
    }
    tune(&format!("--items 1000 --fpr 0.5 --bytes {bytes}")).ok();
    let best = &object(&format!("--items 1000 --bytes {bytes}"))["candidates"][0];
    assert!(number(best, "/false_positive_rate_at_capacity") <= 0.5, "{best}");
}

#[test]
fn mistakes_are_named() {
    let koel = Koel::new();
    koel.given("tune").refuses(&[
        ("", &["--items <N>", "--fpr <E>|--bytes <BYTES>"]),
        ("--items 5", &["--fpr <E>|--bytes <BYTES>", "not provided"]),
        ("--fpr 0.1", &["--items <N>", "not provided"]),
        ("--items 1.2345k --fpr 0.1", &["--items", "'1.2345k'", "not a whole number", "1234 and 1235"]),
        ("--items 5..10 --fpr 0.1", &["--items", "'5..10'", "one number", "koel build --grow"]),
        ("--items 5 --fpr 0", &["--fpr", "0 given", "between 0 and 0.5", "nearest"]),
        ("--items 5 --fpr 0.1 --headroom -5%", &["--headroom", "'-5%'", "such as 50%"]),
        ("--items 5 --fpr 2", &["--fpr", "2 given", "more than 0.5", "most absent items", "nearest that works is 0.5", "bytes"]),
        ("--items 5 --fpr -0.5 --table packed", &["--fpr", "-0.5 given", "between 0 and 0.5", "nearest"]),
        ("--items 5 --fpr few", &["--fpr", "'few'", "between 0 and 1", "0.001"]),
        ("--items 5 --bytes 3XB", &["--bytes", "'3XB'", "kB to TB", "KiB to TiB"]),
        ("--items 5 --fpr 0.1 --bucket-size 0", &["--bucket-size", "0 given", "1 to 16"]),
        ("--items 5 --bytes 90 --bucket-size 17", &["--bucket-size", "17 given", "1 to 16"]),
        ("--items 5 --fpr 0.1 --bucket-size 8 --table packed", &["--bucket-size", "8 given", "takes 4"]),
        ("--items 5 --fpr 0.1 --table cuckoo", &["--table", "'cuckoo'", "single, packed"]),
    ]);
}
