//! The filter with the least cost for a workload. The times are those in docs/tuning, so the answers are always the same.

#![allow(clippy::cast_precision_loss, reason = "numbers of bytes and slots are small")]

use std::{fs, path::Path};

use koel::{CuckooFilter, Params, TableKind};
use koel_lab::experiments::speed::SpeedTable;
use serde_json::Value;

use super::{assert_builds, assert_legible, list, number, object, tune};
use crate::common::{Koel, numbers};

/// The folder of the repository's times, and the option with it.
const TUNING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tuning");
const TIMES: &str = concat!("--times ", env!("CARGO_MANIFEST_DIR"), "/../docs/tuning");

fn costs(options: &str) -> Value {
    object(&format!("{options} {TIMES}"))
}

fn best(options: &str) -> Value {
    costs(options)["candidates"][0].clone()
}

fn total(one: &Value) -> f64 {
    number(one, "/cost_ns/total")
}

/// Insertions that replace removed items go into a filter that is nearly full. The others fill it.
#[test]
fn costs_are_weighted_by_their_shares() {
    let speeds = SpeedTable::read(Path::new(TUNING)).expect("readable").expect("times");
    for (insertions, removals, into_full, filling) in
        [(15, 5, 0.05, 0.1), (5, 15, 0.05, 0.0), (20, 0, 0.0, 0.2), (0, 20, 0.0, 0.0)]
    {
        let changes = format!("--insertions {insertions}% --removals {removals}%");
        let found = costs(&format!("--items 1M --false-positive-cost 100us --absent 90% {changes} --memory-cost 2ns"));
        let candidates = list(&found, "candidates");
        assert!(candidates.len() > 300, "{}", candidates.len());
        for candidate in candidates {
            let bytes = number(candidate, "/table_bytes");
            let table = candidate["table"].as_str().and_then(|name| name.parse().ok()).expect("a table");
            let bucket_size = candidate["bucket_size"].as_u64().and_then(|slots| slots.try_into().ok()).expect("slots");
            let ns = speeds.at(table, bucket_size, bytes).expect("times");
            // 80 of 100 operations are lookups.
            let expected = [
                ("lookups", 0.8 * (0.9 * ns.find_absent + 0.1 * ns.find_present)),
                ("changes", into_full * ns.insert + filling * ns.build + f64::from(removals) / 100.0 * ns.remove),
                ("false_positives", 0.8 * 0.9 * number(candidate, "/false_positive_rate") * 100_000.0),
                ("memory", 2.0 * bytes / f64::from(1 << 20)),
            ];
            let sum = ("total", expected.iter().map(|(_, cost)| cost).sum());
            for (part, cost) in expected.into_iter().chain([sum]) {
                assert!((number(candidate, &format!("/cost_ns/{part}")) - cost).abs() < 1e-9 * total(candidate), "{part}");
            }
        }
        assert!((number(&found, "/cost_without_filter_ns") - 72_000.0).abs() < 1e-6);
        assert_eq!(found["pays"], true);
        for (name, value) in [("lookups", 0.8), ("absent", 0.9), ("false_positive_ns", 100_000.0), ("ns_per_mib", 2.0)] {
            assert!((number(&found, &format!("/asked/workload/{name}")) - value).abs() < 1e-9, "{name}");
        }
    }
}

/// Twice the memory must save a tenth of the time, and within 5 %, the smallest filter comes first. The others follow, the cheapest
/// first.
#[test]
fn memory_has_a_price_and_the_smallest_equal_filter_is_recommended() {
    let (mut smaller, mut larger) = (0, 0);
    for (question, is_priced) in [
        ("10k --false-positive-cost 10us --insertions 10%", false),
        ("100k --false-positive-cost 1us --insertions 10%", false),
        ("10M --false-positive-cost 100us --insertions 10%", false),
        ("10M --false-positive-cost 100us --insertions 10% --memory-cost 0ns", true),
        ("10M --false-positive-cost 100us --insertions 30% --removals 20%", false),
        ("1M --false-positive-cost 10us --memory-cost 1ns", true),
    ] {
        let found = costs(&format!("--items {question}"));
        let candidates = list(&found, "candidates");
        let bytes = |one: &Value| number(one, "/table_bytes");
        assert!(candidates[1..].is_sorted_by(|one, other| total(one) <= total(other)), "{question}");
        // A filter of n times the bytes must take less than 0.9^log2(n) of the time.
        let best = &candidates[0];
        let ratio = |one: &Value| {
            let price = if is_priced { 1.0 } else { 0.9_f64.powf((bytes(best) / bytes(one)).log2()) };
            total(one) / (total(best) / price)
        };
        assert!(candidates.iter().all(|one| ratio(one) > 1.0 / 1.05 - 1e-9), "{question}");
        let least = candidates.iter().map(ratio).fold(f64::INFINITY, f64::min);
        let alike = candidates.iter().filter(|one| ratio(one) <= 1.05 * least - 1e-9);
        assert!(alike.map(bytes).fold(f64::INFINITY, f64::min) >= bytes(best), "{question}");
        // If the recommended filter is not the cheapest, the text names both.
        let cheapest = candidates.iter().min_by(|one, other| total(one).total_cmp(&total(other))).expect("a filter");
        let text = tune(&format!("--items {question} {TIMES}")).unbroken();
        assert_eq!(text.contains("The least time: "), cheapest != best, "{text}");
        assert_eq!(text.contains("twice the memory must save 10 %"), cheapest != best && !is_priced, "{text}");
        smaller += usize::from(bytes(best) < 0.5 * bytes(cheapest));
        larger += usize::from(candidates.iter().any(|one| bytes(one) < 0.5 * bytes(best) && total(one) < 6.0 * total(best)));
    }
    // A table of more than twice the bytes loses if it is little faster, and wins if it is much faster.
    assert!(smaller > 0 && larger > 0, "{smaller} {larger}");
}

/// For every table, bucket size and fingerprint length, the answer has that filter, or one with the same bucket size that is no
/// larger and has no higher rate.
#[test]
fn no_filter_is_left_out() {
    let found = costs("--items 100k --false-positive-cost 1ms");
    let is_there = |params: &Params| {
        let (bytes, rate) = (params.table_bytes() as f64, params.false_positive_rate_at(100_000.0 / params.slots() as f64));
        list(&found, "candidates").iter().any(|one| {
            one["table"] == params.table().to_string()
                && one["bucket_size"] == params.bucket_size()
                && number(one, "/table_bytes") <= bytes
                && number(one, "/false_positive_rate") <= rate
        })
    };
    for table in [TableKind::Packed, TableKind::Single] {
        for (b, f) in table.bucket_sizes().flat_map(|b| (8..=24).map(move |f| (b, f))) {
            let builder = CuckooFilter::builder().capacity(100_000).table(table).bucket_size(b).fingerprint_bits(f);
            assert!(builder.params().as_ref().map_or(true, is_there), "{table} b = {b}, f = {f}");
        }
    }
}

#[test]
fn costlier_false_positives_lower_the_rate() {
    let rates = ["10ns", "1us", "100us", "10ms", "1s"]
        .map(|cost| number(&best(&format!("--items 1M --false-positive-cost {cost}")), "/false_positive_rate"));
    assert!(rates.is_sorted_by(|one, other| one > other) && rates[0] > 0.01 && rates[4] < 1e-6, "{rates:?}");
}

#[test]
fn rate_and_bytes_are_limits() {
    let question = "--items 1M --false-positive-cost 1ms";
    let cheapest = |found: &Value| {
        list(found, "candidates").iter().min_by(|one, other| total(one).total_cmp(&total(other))).expect("a filter").clone()
    };
    let free = cheapest(&costs(question));
    for (option, name, share) in [("--fpr", "/false_positive_rate", 0.1), ("--bytes", "/table_bytes", 0.5)] {
        let limit = share * number(&free, name);
        let limit = if option == "--bytes" { limit.floor() } else { limit };
        let found = costs(&format!("{question} {option} {limit}"));
        assert!(total(&cheapest(&found)) > total(&free), "{option}");
        assert!(list(&found, "candidates").iter().all(|one| number(one, name) <= limit), "{option}");
    }
    // The nearest values work.
    let impossible = format!("{question} {TIMES} --fpr 1e-6");
    let run = tune(&format!("{impossible} --bytes 1MB --json"));
    run.status(1);
    let found = run.json();
    assert!(list(&found, "candidates").is_empty() && found["command"].is_null());
    let nearest = format!("--bytes {}", found["nearest"]["bytes"]);
    let text = tune(&format!("{impossible} --bytes 1MB")).text();
    assert!(text.contains(&nearest), "{text}");
    tune(&format!("{impossible} {nearest}")).ok();
}

#[test]
fn the_command_builds_the_filter() {
    let koel = Koel::new();
    koel.write("items", numbers(0..20_000));
    let found = costs("--items 20k --false-positive-cost 10us --table single");
    assert_builds(&koel, &found, "items");
}

#[test]
fn the_text_says_if_no_filter_pays_off() {
    let options = "--items 1M --false-positive-cost 2ns";
    assert_eq!(costs(options)["pays"], false);
    let run = tune(&format!("{options} {TIMES}"));
    run.ok();
    assert!(run.text().contains("No filter pays off") && !run.text().contains("koel build"), "{}", run.text());
    assert_eq!(costs("--items 1M --false-positive-cost 1s --absent 0")["pays"], false);
}

/// Times rise with the bytes of a table, also beyond the largest table that was measured.
#[test]
fn times_are_extrapolated_beyond_the_largest_table() {
    let size = |items: &str| number(&best(&format!("--items {items} --false-positive-cost 1us")), "/table_bytes");
    assert!(size("40M") < 1.2 * size("38M"));
    let run = tune(&format!("--items 1G --false-positive-cost 1us {TIMES}"));
    run.ok();
    assert!(run.unbroken().contains("beyond it, times are assumed to rise"), "{}", run.text());
    assert_legible(&run.text());
}

#[test]
fn the_text_repeats_the_request() {
    let limits = "--fpr 1% --bytes 9MB --table single --bucket-size 4";
    let run = tune(&format!("--items 1M --headroom 50% --false-positive-cost 1us {limits} {TIMES}"));
    run.ok();
    let limits = "1000000 items, with headroom 1500000, a false-positive rate \u{3b5} of at most 0.01, at most 9000000 bytes, single tables, \
                  buckets of 4 slots; 100 % lookups, 50 % of them of absent keys. A false positive costs 1.00 us.";
    assert!(run.unbroken().contains(limits), "{}", run.text());
    assert_legible(&run.text());
}

/// tests/help.rs runs the example in the help, which measures with the command in the remedy.
#[test]
fn missing_or_damaged_times_are_errors_with_a_remedy() {
    let koel = Koel::new();
    let question = "tune --items 10k --false-positive-cost 1us";
    koel.run(question).error(&["--times: koel-experiments has no times", "koel experiment speed --out koel-experiments"]);
    let times = fs::read_to_string(Path::new(TUNING).join("speed.json")).expect("JSON");
    fs::create_dir(koel.path("koel-experiments")).expect("a new folder");
    let again = "--times: koel experiment speed --again --out koel-experiments";
    for (damaged, part) in
        [(times.replace("\"build_ns\"", "\"other\""), "measured fewer times"), (String::from("{}"), "speed.json")]
    {
        koel.write("koel-experiments/speed.json", damaged);
        koel.run(question).error(&[again, part]);
    }
}

#[test]
fn mistakes_are_named() {
    let koel = Koel::new();
    koel.given(&format!("tune {TIMES}")).refuses(&[
        ("--items 5 --fpr 1% --absent 50%", &["--false-positive-cost <TIME>", "not provided"]),
        ("--items 5 --fpr 1%", &["--false-positive-cost <TIME>", "not provided"]),
        ("--items 0 --false-positive-cost 1us", &["--items: 0 given", "nearest that works is 1"]),
    ]);
    koel.given(&format!("tune {TIMES} --items 1000 --false-positive-cost")).refuses(&[
        ("5", &["--false-positive-cost", "'5'", "such as 80ns"]),
        ("-5", &["--false-positive-cost", "'-5'", "such as 80ns"]),
        ("1e7s", &["--false-positive-cost", "'1e7s'", "1000000s"]),
        ("1us --absent 150%", &["--absent", "'150%'", "at most 100%"]),
        ("1us --insertions half", &["--insertions", "'half'", "such as 50%"]),
        ("1us --insertions 60% --removals 60%", &["--insertions: 60.0 % given", "--removals 60.0 %", "more than all"]),
        ("1us --memory-cost 1", &["--memory-cost", "'1'", "such as 80ns"]),
        ("1us --keys keys", &["--keys", "cannot be used with"]),
        ("1us --fpr 2", &["--fpr", "2 given", "0.5"]),
    ]);
}
