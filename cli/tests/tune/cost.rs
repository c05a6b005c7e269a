//! `koel tune --false-positive-cost`, which adds the cost per lookup to the table. The times are those in docs/tuning.

use std::{fs, path::Path};

use koel_lab::experiments::speed::{SpeedTable, Speeds};
use serde_json::{Value, json};

use super::{assert_legible, list, number, object, tune};
use crate::common::{Koel, numbers};

/// The folder of the repository's times, and the option with it.
const TUNING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/tuning");
const TIMES: &str = concat!("--times ", env!("CARGO_MANIFEST_DIR"), "/../docs/tuning");

/// Asserts that a candidate's cost is the time of a lookup and the wasted work, of which it has this sum.
#[track_caller]
fn assert_costs(candidate: &Value, lookup: f64, false_positives: f64) {
    for (part, ns) in [("lookup", lookup), ("false_positives", false_positives), ("total", lookup + false_positives)] {
        let found = number(candidate, &format!("/cost_ns/{part}"));
        assert!((found - ns).abs() < 1e-9 * (lookup + false_positives), "{part}: {found} instead of {ns}");
    }
}

/// Returns the cost in the table, in the row with this name.
#[track_caller]
fn cost<'a>(text: &'a str, name: &str) -> &'a str {
    let cells = |line: &'a str| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>();
    let mut lines = text.lines().skip_while(|line| !line.starts_with("filter  "));
    let header = lines.next().map(cells).expect("a table");
    let at = header.iter().position(|&name| name == "cost").unwrap_or_else(|| panic!("no column: {text}"));
    lines.map(cells).find(|row| row.first() == Some(&name)).unwrap_or_else(|| panic!("no {name}: {text}"))[at]
}

#[test]
fn the_cost_is_the_time_of_a_lookup_and_the_wasted_work() {
    let speeds = SpeedTable::read(Path::new(TUNING)).expect("readable").expect("times");
    for (options, absent, share) in
        [("", "", 0.5), ("", "--absent 90%", 0.9), ("--bytes 2MB", "--absent 0", 0.0), ("--table single", "--absent 1/1", 1.0)]
    {
        let request = format!("--items 1M --fpr 0.1% {options}");
        let found = object(&format!("{request} --false-positive-cost 100us {absent} {TIMES}"));
        let candidates = list(&found, "candidates");
        assert!(candidates.len() > 10, "{}", candidates.len());
        for candidate in candidates {
            let table = candidate["table"].as_str().and_then(|name| name.parse().ok()).expect("a table");
            let bucket_size = candidate["bucket_size"].as_u64().and_then(|slots| slots.try_into().ok()).expect("slots");
            let Speeds { find_absent, find_present } =
                speeds.at(table, bucket_size, number(candidate, "/table_bytes")).expect("times");
            let wasted = share * number(candidate, "/false_positive_rate") * 100_000.0;
            assert_costs(candidate, share * find_absent + (1.0 - share) * find_present, wasted);
        }
        let cost = &found["cost"];
        for (name, value) in [("absent_share", share), ("false_positive_ns", 1e5), ("without_filter_ns", share * 1e5)] {
            assert!((number(cost, &format!("/{name}")) - value).abs() < 1e-6, "{name}: {cost}");
        }
        // Everything else is as without the option, the order included.
        let mut plain = object(&request);
        assert!(plain["cost"].is_null() && list(&plain, "candidates").iter().all(|one| one["cost_ns"].is_null()));
        plain["cost"] = cost.clone();
        for (one, other) in plain["candidates"].as_array_mut().expect("a list").iter_mut().zip(candidates) {
            one["cost_ns"] = other["cost_ns"].clone();
        }
        assert_eq!(plain, found, "{options}");
    }
}

#[test]
fn the_text_has_a_column_and_the_cost_without_a_filter() {
    let request = "--items 1M --fpr 0.1%";
    let question = format!("{request} --false-positive-cost 50us --absent 80% {TIMES}");
    let run = tune(&question);
    run.ok();
    let text = run.text();
    let ns = cost(&text, "packed f=13 b=4 *").strip_suffix(" ns").expect("nanoseconds");
    let expected = number(&object(&question)["candidates"][0], "/cost_ns/total");
    assert!((ns.parse::<f64>().expect("a number") - expected).abs() < 0.005 * expected, "{ns} {expected}");
    assert_eq!(cost(&text, "quotient"), "-");
    for part in [
        "Cost: the expected time per lookup, if 80.0 % of lookups are of absent keys: the time of the lookup + ",
        "share absent \u{d7} \u{3b5} \u{d7} 50.0 us.",
        "\nWithout a filter, wasted work costs 40.0 us per lookup.\n",
        "\nTimes: /",
        "\nkoel build IN -o OUT --capacity 1000000 --fpr 0.001\n",
    ] {
        assert!(text.contains(part) || run.unbroken().contains(part), "no {part}: {text}");
    }
    assert_legible(&text);
    let plain = tune(request).text();
    assert!(!plain.contains("cost") && !plain.contains("Without a filter"), "{plain}");
    // If no filter meets the requirements, the answer is the same as without the option.
    let impossible = "--items 1M --fpr 1e-6 --bytes 1MB";
    let run = tune(&format!("{impossible} --false-positive-cost 1ms {TIMES}"));
    run.status(1);
    assert_eq!(run.text(), tune(impossible).text());
}

/// Measured times are those of the user's keys, so no experiment is needed. Filters that were not measured have no cost.
#[test]
fn with_keys_the_times_are_those_of_the_keys() {
    let koel = Koel::new();
    koel.write("keys.txt", numbers(0..2000));
    koel.write("queries.txt", numbers(1000..5000));
    let question = "tune --json --keys keys.txt --fpr 1% --false-positive-cost 10us";
    for (options, share) in [("", 0.5), ("--queries queries.txt", 0.75), ("--queries queries.txt --absent 10%", 0.1)] {
        let found = koel.json(&format!("{question} {options}"));
        assert_eq!((&found["cost"]["absent_share"], &found["cost"]["times"]), (&json!(share), &Value::Null));
        let hash = number(&found, "/trial/hash_ns/median");
        let (measured, others): (Vec<_>, Vec<_>) =
            list(&found, "candidates").iter().partition(|candidate| !candidate["measured"].is_null());
        assert!(measured.len() >= 4 && others.len() > 4, "{} {}", measured.len(), others.len());
        for candidate in measured {
            let [absent, present] = ["absent", "present"].map(|key| number(candidate, &format!("/measured/{key}_ns/median")));
            let wasted = share * number(candidate, "/false_positive_rate") * 10_000.0;
            assert_costs(candidate, hash + share * absent + (1.0 - share) * present, wasted);
        }
        assert!(others.iter().all(|candidate| candidate["cost_ns"].is_null()), "{found}");
    }
    // If every query is a key, only present keys count. No time of an absent key was measured, so other shares have no cost.
    koel.write("queries.txt", numbers(0..10));
    let found = koel.json(&format!("{question} --queries queries.txt"));
    assert_eq!([&found["cost"]["absent_share"], &found["candidates"][0]["cost_ns"]["false_positives"]], [0.0, 0.0]);
    let run = koel.run("tune --keys keys.txt --fpr 1% --false-positive-cost 10us --queries queries.txt --absent 10%");
    run.ok();
    let (text, unbroken) = (run.text(), run.unbroken());
    assert_eq!(cost(&text, "packed f=10 b=4 *"), "-");
    assert!(unbroken.contains("Times: those of your keys, hashing included; -: not measured."), "{text}");
    assert!(unbroken.contains("give --queries with absent ones"), "{text}");
    assert_legible(&text);
}

#[test]
fn a_log_has_the_share_of_absent_keys() {
    let koel = Koel::new();
    koel.write("log.txt", "insert a\nquery a\nquery b\nquery c\nquery d\n");
    let question = format!("tune --trace log.txt --fpr 1% --false-positive-cost 1us {TIMES}");
    let found = koel.json(&format!("{question} --json"));
    assert_eq!(found["cost"]["absent_share"], 0.75);
    assert!(number(&found, "/candidates/0/cost_ns/lookup") > 0.0);
    assert_eq!(koel.json(&format!("{question} --json --absent 20%"))["cost"]["absent_share"], 0.2);
    // The experiment does not measure growing filters.
    let text = koel.run(&question).printed();
    assert_eq!(cost(&text, "growing"), "-");
    assert_legible(&text);
}

#[test]
fn the_text_says_where_the_times_are_from() {
    let koel = Koel::new();
    let times = fs::read_to_string(Path::new(TUNING).join("speed.json")).expect("JSON");
    let mut times: Value = serde_json::from_str(&times).expect("JSON");
    times["run"]["machine"]["processor"] = json!("Abacus");
    times["measured"][0]["rows"][0]["disturbed"] = json!(true);
    let rows = list(&times, "measured").iter().map(|case| list(case, "rows").len()).sum::<usize>();
    fs::create_dir(koel.path("there")).expect("a new folder");
    koel.write("there/speed.json", times.to_string());
    let question = "tune --items 1G --fpr 1% --false-positive-cost 1us --times there";
    let found = &koel.json(&format!("{question} --json"))["cost"]["times"];
    let disturbed = number(found, "/disturbed_rows");
    assert!(disturbed >= 1.0 && found["largest_table_bytes"].as_u64().is_some_and(|bytes| bytes > 60 << 20), "{found}");
    assert_eq!([&found["processor"], &found["this_machine"], &found["rows"]], [&json!("Abacus"), &json!(false), &json!(rows)]);
    let (run, again) = (koel.run(question), "`koel experiment speed --again --out there`");
    run.ok();
    for part in [
        String::from("Times: there/speed.json, measured on Abacus."),
        format!("That is another machine: measure on this one with {again}."),
        format!("Other work disturbed {disturbed} of its {rows} rows: {again} measures them again."),
        String::from("beyond it, times are assumed to rise"),
    ] {
        assert!(run.unbroken().contains(&part), "no {part}: {}", run.text());
    }
    assert_legible(&run.text());
}

/// tests/help.rs runs the example in the help, which measures with the command in the remedy.
#[test]
fn missing_or_damaged_times_are_errors_with_a_remedy() {
    let koel = Koel::new();
    let question = "tune --items 10k --fpr 1% --false-positive-cost 1us";
    koel.run(question).error(&["--times: koel-experiments has no times", "koel experiment speed --out koel-experiments"]);
    let times = fs::read_to_string(Path::new(TUNING).join("speed.json")).expect("JSON");
    fs::create_dir(koel.path("koel-experiments")).expect("a new folder");
    let again = "speed.json: ";
    for (damaged, part) in
        [(times.replace("\"build_ns\"", "\"other\""), "measured fewer operations"), (String::from("{}"), "missing field")]
    {
        koel.write("koel-experiments/speed.json", damaged);
        koel.run(question).error(&["koel: --times: ", again, part, "`koel experiment speed --again --out koel-experiments`"]);
    }
}

#[test]
fn mistakes_are_named() {
    let koel = Koel::new();
    koel.write("keys.txt", "a\n");
    koel.given("tune").refuses(&[
        ("--items 5 --fpr 1% --absent 50%", &["--false-positive-cost <TIME>", "not provided"]),
        ("--items 5 --fpr 1% --times there", &["--false-positive-cost <TIME>", "not provided"]),
        ("--items 5 --false-positive-cost 1us", &["--fpr <E>|--bytes <BYTES>", "not provided"]),
        ("--keys keys.txt --fpr 1% --false-positive-cost 1us --times there", &["--times", "cannot be used with", "--keys"]),
    ]);
    koel.given(&format!("tune {TIMES} --items 1000 --fpr 1% --false-positive-cost")).refuses(&[
        ("5", &["--false-positive-cost", "'5'", "such as 80ns"]),
        ("-5", &["--false-positive-cost", "'-5'", "such as 80ns"]),
        ("1e7s", &["--false-positive-cost", "'1e7s'", "1000000s"]),
        ("1us --absent 150%", &["--absent", "'150%'", "at most 100%"]),
        ("1us --absent half", &["--absent", "'half'", "such as 50%"]),
    ]);
    // Without items, nothing is wasted.
    let best = &object(&format!("--items 0 --fpr 1% --false-positive-cost 1us {TIMES}"))["candidates"][0];
    assert!(number(best, "/cost_ns/lookup") > 0.0 && best["cost_ns"]["false_positives"] == 0.0, "{best}");
}
