//! Comparisons of made-up records.

use std::fs;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// A folder with a record of an experiment of its own.
fn folder(measured: &Value) -> TempDir {
    let columns = json!([
        { "name": "size", "unit": "slots", "about": "", "role": "key" },
        { "name": "round", "unit": "", "about": "", "role": "round" },
        { "name": "kind", "unit": "", "about": "", "role": "key" },
        { "name": "bytes", "unit": "bytes", "about": "", "role": "exact" },
        { "name": "events", "unit": "", "about": "", "role": "count" },
        { "name": "rate", "unit": "", "about": "", "role": { "estimate": { "low": "low", "high": "high" } } },
        { "name": "low", "unit": "", "about": "", "role": "detail" },
        { "name": "high", "unit": "", "about": "", "role": "detail" },
        { "name": "ns", "unit": "ns", "about": "", "role": "time" },
        { "name": "median", "unit": "ns", "about": "", "role": { "median": { "low": "q1", "high": "q3", "of": "rounds" } } },
        { "name": "q1", "unit": "ns", "about": "", "role": "detail" },
        { "name": "q3", "unit": "ns", "about": "", "role": "detail" },
        { "name": "rounds", "unit": "", "about": "", "role": "detail" },
        { "name": "disturbed", "unit": "", "about": "", "role": "detail" },
    ]);
    let machine = json!({ "processor": "", "cores": 1, "memory_mib": 1, "system": "", "kernel": "", "optimized": true });
    let scope = json!({ "quick": false, "seed": 1, "max_slots": null });
    let run =
        json!({ "experiment": "own", "koel": "0.1.0", "scope": scope, "machine": machine, "started": "2026-11-22T00:00:00Z" });
    let record = json!({
        "run": run, "title": "", "about": "", "columns": columns, "complete": true, "seconds": 1.0,
        "pictures": [], "tables": [], "measured": measured,
    });
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("own.json"), serde_json::to_string_pretty(&record).unwrap()).unwrap();
    folder
}

fn compare(a: &Value, b: &Value) -> Comparison {
    Comparison::new(folder(a).path(), folder(b).path(), 0.0).unwrap()
}

/// The verdict on the only figure that the two rows have.
#[track_caller]
fn verdict(a: &Value, b: &Value) -> Verdict {
    let of = |row: &Value| json!([{ "case": { "size": 1 }, "rows": [row] }]);
    let comparison = compare(&of(a), &of(b));
    let [figure] = &comparison.experiments[0].figures[..] else { panic!("{comparison:?}") };
    figure.verdict
}

#[test]
fn exact_figures_must_be_the_same_and_others_may_differ_by_chance() {
    let bytes = |bytes: u64| json!({ "bytes": bytes });
    assert_eq!(verdict(&bytes(1000), &bytes(1000)), Verdict::Equal);
    assert_eq!(verdict(&bytes(1000), &bytes(1001)), Verdict::Different);
    // Standard deviations of 10: 2.5 of them apart by chance, 4.2 not.
    let events = |events: u64| json!({ "events": events });
    assert_eq!(verdict(&events(100), &events(135)), Verdict::Equal);
    assert_eq!(verdict(&events(100), &events(170)), Verdict::Different);
    let rate = |rate: f64| json!({ "rate": rate, "low": rate - 0.01, "high": rate + 0.01 });
    // The interval of a difference is wider than those of the two, by √2.
    assert_eq!(verdict(&rate(0.1), &rate(0.113)), Verdict::Equal);
    assert_eq!(verdict(&rate(0.1), &rate(0.115)), Verdict::Different);
    let time = |median: f64, disturbed: bool| json!({ "median": median, "q1": median - 0.1, "q3": median + 0.1, "rounds": 9, "disturbed": disturbed });
    assert_eq!(verdict(&time(10.0, false), &time(20.0, false)), Verdict::Different);
    // The quartiles of disturbed rounds say nothing about what the time would be without the disturbance.
    assert_eq!(verdict(&time(10.0, false), &time(20.0, true)), Verdict::Unknown);
    // One time says nothing about its spread.
    assert_eq!(verdict(&json!({ "ns": 10.0 }), &json!({ "ns": 10.0 })), Verdict::Equal);
    assert_eq!(verdict(&json!({ "ns": 10.0 }), &json!({ "ns": 20.0 })), Verdict::Unknown);
}

#[test]
fn what_one_folder_did_not_count_is_none() {
    let of = |rows: Value| json!([{ "case": { "size": 1 }, "rows": rows }]);
    let a = of(json!([{ "kind": "rare", "events": 2 }, { "kind": "common", "events": 50 }]));
    let b = of(json!([{ "kind": "frequent", "events": 50 }, { "kind": "common", "events": 50 }]));
    let comparison = compare(&a, &b);
    let figures = &comparison.experiments[0].figures;
    let mut found: Vec<_> = figures.iter().map(|f| (f.row.clone(), format!("{} {}", f.a, f.b), f.verdict)).collect();
    found.sort_unstable_by_key(|one| one.0.clone());
    let row = |kind: &str, counts: &str, verdict| (format!("{{\"kind\":\"{kind}\"}}"), counts.to_owned(), verdict);
    let expected =
        [row("common", "50 50", Verdict::Equal), row("frequent", "0 50", Verdict::Different), row("rare", "2 0", Verdict::Equal)];
    assert_eq!(found, expected);
}

/// Times of four rounds each.
fn rounds(times: [f64; 4]) -> Value {
    let round = |(round, ns): (usize, f64)| json!({ "case": { "size": 1, "round": round }, "rows": [{ "ns": ns }] });
    times.into_iter().enumerate().map(round).collect()
}

#[test]
fn repetitions_are_samples_of_one_case() {
    let a = rounds([10.0, 10.2, 9.8, 10.1]);
    let one = |b: [f64; 4]| {
        let comparison = compare(&a, &rounds(b));
        assert_eq!((comparison.experiments[0].cases, comparison.experiments[0].figures.len()), (1, 1));
        comparison.experiments[0].figures[0].verdict
    };
    assert_eq!(one([10.2, 10.0, 10.3, 10.1]), Verdict::Equal);
    assert_eq!(one([12.0, 12.2, 11.8, 12.1]), Verdict::Different);
    // So do these, but not by more than is allowed.
    let b = rounds([12.0, 12.2, 11.8, 12.1]);
    let comparison = Comparison::new(folder(&a).path(), folder(&b).path(), 0.25).unwrap();
    assert_eq!(comparison.experiments[0].figures[0].verdict, Verdict::Equal);
}

#[test]
fn cases_of_one_folder_are_named_and_nothing_in_common_is_an_error() {
    let of = |sizes: &[u64]| -> Value {
        sizes.iter().map(|size| json!({ "case": { "size": size }, "rows": [{ "bytes": size }] })).collect()
    };
    let comparison = compare(&of(&[1, 2, 3]), &of(&[3, 4]));
    let own = &comparison.experiments[0];
    assert_eq!((own.cases, own.figures.len()), (1, 1));
    assert_eq!(own.alone, [vec![String::from("{\"size\":1}"), String::from("{\"size\":2}")], vec![String::from("{\"size\":4}")]]);
    let error = Comparison::new(folder(&of(&[1])).path(), folder(&of(&[2])).path(), 0.0).unwrap_err();
    assert!(error.to_string().contains("no case in common"), "{error}");
    let empty = TempDir::new().unwrap();
    let error = Comparison::new(folder(&of(&[1])).path(), empty.path(), 0.0).unwrap_err();
    assert!(error.to_string().contains("no results here"), "{error}");
}

#[test]
fn neither_folder_is_written_to() {
    let same = rounds([1.0, 2.0, 3.0, 4.0]);
    let (a, b, out) = (folder(&same), folder(&same), TempDir::new().unwrap());
    let comparison = Comparison::new(a.path(), b.path(), 0.0).unwrap();
    let error = comparison.write(a.path()).unwrap_err();
    assert!(error.to_string().contains("choose another --out"), "{error}");
    assert_eq!(fs::read_dir(a.path()).unwrap().count(), 1);
    comparison.write(out.path()).unwrap();
    let csv = fs::read_to_string(out.path().join("compare.csv")).unwrap();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines[0], "experiment,case,row,column,unit,a,b,half_interval,verdict");
    assert!(
        lines.len() == 2 && lines[1].starts_with("own,\"{\"\"size\"\":1}\",,ns,ns,2.5,2.5,") && lines[1].ends_with(",equal"),
        "{csv}"
    );
    assert!(fs::read_to_string(out.path().join(FILE)).unwrap().starts_with("<!DOCTYPE html>"));
}
