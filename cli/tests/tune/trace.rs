//! `koel tune --trace`: a log of operations, replayed.

use serde_json::Value;

use crate::common::{Koel, numbers};

/// The lines of an operation.
fn lines(operation: &str, range: std::ops::Range<u32>) -> String {
    numbers(range).lines().fold(String::new(), |log, number| log + &format!("{operation} key {number}\n"))
}

/// 5000 keys: half of them removed, with queries for 20,000 keys before and after.
fn life() -> String {
    let queries = lines("query", 0..20_000);
    lines("insert", 0..5000) + &queries + &lines("remove", 2500..5000) + &queries + "remove key 9999\ninsert key 1\n"
}

#[track_caller]
fn replayed(koel: &Koel, options: &str) -> Value {
    let run = koel.run(["tune", "--json"].into_iter().chain(options.split_whitespace()));
    serde_json::from_slice(run.ok()).expect("JSON")
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no {path} in {value}"))
}

#[test]
fn a_log_is_counted_and_replayed() {
    let koel = Koel::new();
    koel.write("log.txt", life());
    let found = replayed(&koel, "--trace log.txt --fpr 1% --out pictures");
    let counted = serde_json::json!({
        "insertions": 5001, "present_queries": 7500, "absent_queries": 32_500, "removals": 2500, "skipped_removals": 1,
        "most_items": 5000, "most_copies": 2,
    });
    assert_eq!((&found["trace"], &found["asked"]["planned_items"]), (&counted, &Value::from(5000)));
    let candidates = found["candidates"].as_array().expect("a list");
    let growing = candidates.iter().filter(|one| one["grows"] == true).count();
    assert!(growing == 1 && candidates.len() >= 5, "{}", candidates.len());
    for one in candidates {
        let replay = &one["replay"];
        assert_eq!([&replay["refused_insertions"], &replay["false_negatives"]], [0, 0], "{replay}");
        let (hits, expected) = (number(replay, "/false_positives"), number(replay, "/expected_false_positives"));
        assert!((hits - expected).abs() < 5.0 * expected.sqrt() && expected < 0.012 * 32_500.0, "{hits}, {expected} expected");
        assert!(number(one, "/operation_ns/median") > 0.0);
        let course = replay["course"].as_array().expect("a list");
        let last = &course[course.len() - 1];
        assert_eq!([&last["operations"], &last["items"], &last["absent_queries"]], [47_501, 2501, 32_500], "{last}");
        assert!(number(last, "/load_factor") < number(replay, "/most_load_factor"), "{last}");
        assert!((100..=200).contains(&course.len()), "{}", course.len());
    }
    // The counts do not depend on the run, and the false positives are those of the filter that the command builds.
    let again = replayed(&koel, "--trace log.txt --fpr 1%");
    assert_eq!(again["candidates"][0]["replay"], found["candidates"][0]["replay"]);
    assert!(koel.read("pictures/trace.svg").starts_with(b"<svg ") && again["picture"].is_null());
    let command = found["command"].as_str().expect("a command").replace("IN", "keys.txt").replace("OUT", "f.koel");
    let keys = |range: std::ops::Range<u32>| numbers(range).lines().fold(String::new(), |keys, n| keys + &format!("key {n}\n"));
    koel.write("keys.txt", keys(0..5000));
    koel.shell(&command).ok();
    let count = |koel: &Koel| -> u64 {
        koel.feed(keys(5000..20_000), ["query", "f.koel", "--count"]).text().trim().parse().expect("a number")
    };
    let before = count(&koel);
    koel.feed(keys(2500..5000), ["remove", "f.koel"]).ok();
    let removed: u64 = koel.feed(keys(2500..5000), ["query", "f.koel", "--count"]).text().trim().parse().expect("a number");
    assert_eq!(found["candidates"][0]["replay"]["false_positives"], before + count(&koel) + removed);
}

#[test]
fn the_text_has_a_row_for_each_filter() {
    let koel = Koel::new();
    koel.write("log.txt", life());
    let run = koel.run("tune --trace log.txt --fpr 1% --out pictures".split(' '));
    run.ok();
    let text = run.text();
    assert!(text.contains("1 removal of absent keys skipped"), "{text}");
    for part in
        ["packed f=10 b=4 *", "\ngrowing  ", "Picture: pictures/trace.svg\n", "koel build IN -o OUT --capacity 5000 --fpr 0.01"]
    {
        assert!(text.contains(part), "no {part}: {text}");
    }
    for line in text.lines() {
        assert!(line.chars().count() <= 80 || line.starts_with("koel build"), "{line}");
    }
}

/// What is planned too small says so, and misses only what it refused; the filter that grows takes all.
#[test]
fn refusals_are_counted() {
    let koel = Koel::new();
    koel.write("log.txt", life());
    let found = replayed(&koel, "--trace log.txt --fpr 1% --items 1000..5000");
    assert!(found["candidates"].as_array().expect("a list").iter().all(|one| one["replay"]["refused_insertions"] == 0));
    let found = replayed(&koel, "--trace log.txt --fpr 1% --items 3000");
    let replay = &found["candidates"][0]["replay"];
    assert!(number(replay, "/refused_insertions") > 1500.0 && number(replay, "/false_negatives") > 1500.0, "{replay}");
    let growing = &found["candidates"].as_array().expect("a list").last().expect("one")["replay"];
    assert_eq!([&growing["refused_insertions"], &growing["false_negatives"]], [0, 0]);
    // As many copies as the log has at a time decide which buckets are large enough.
    koel.write("copies.txt", "insert a\n".repeat(12) + "remove a\n");
    let found = replayed(&koel, "--trace copies.txt --fpr 1%");
    assert!(
        found["candidates"].as_array().expect("a list").iter().all(|one| one["replay"]["refused_insertions"] == 0),
        "{found}"
    );
    assert_eq!(found["asked"]["copies"], 12);
}

#[test]
fn keys_are_any_bytes_and_come_from_a_pipe() {
    let koel = Koel::new();
    for (log, options) in
        [("insert a b\r\nquery a b\nquery \nremove a b", "-"), ("insert a\nb\0query a\nb\0query \0remove a\nb", "- --nul")]
    {
        let args = ["tune", "--fpr", "0.1", "--json", "--trace"].into_iter().chain(options.split(' '));
        let found: Value = serde_json::from_slice(koel.feed(log, args).ok()).expect("JSON");
        let trace = &found["trace"];
        assert_eq!([&trace["insertions"], &trace["present_queries"], &trace["absent_queries"], &trace["removals"]], [1, 1, 1, 1]);
    }
}

#[test]
fn mistakes_are_named_with_their_lines() {
    let koel = Koel::new();
    koel.write("log.txt", "insert a\n");
    let remedy = "give lines such as insert KEY, query KEY and remove KEY";
    for (log, parts) in [
        ("insert a\ninsrt b\n", ["line 2 of standard input: 'insrt' is no operation", remedy]),
        ("insert a\n\n", ["line 2 of standard input: '' is no operation", remedy]),
        ("insert a\nquery a\nremove", ["line 3 of standard input: remove without a key", remedy]),
        ("Insert a\n", ["line 1 of standard input: 'Insert' is no operation", remedy]),
        ("", ["--trace: standard input has no operations", remedy]),
    ] {
        koel.feed(log, ["tune", "--trace", "-", "--fpr", "0.1"]).error(&parts);
    }
    for (options, parts) in [
        ("--trace no.txt --fpr 0.1", ["no.txt", "cannot be read"]),
        ("--trace log.txt", ["--fpr <E>", "not provided"]),
        ("--trace log.txt --keys log.txt --fpr 0.1", ["--trace", "cannot be used with"]),
        ("--items 5 --fpr 0.1 --out x", ["--trace <FILE>", "not provided"]),
        ("--trace log.txt --false-positive-cost 1us", ["--false-positive-cost", "cannot be used with"]),
        ("--trace log.txt --fpr 0.1 --out log.txt", ["log.txt: cannot be created as a folder", ""]),
    ] {
        koel.run(["tune"].into_iter().chain(options.split(' '))).error(&parts);
    }
    // What no filter meets is answered as without a log.
    let run = koel.run("tune --trace log.txt --items 1000 --bytes 10 --fpr 0.01".split(' '));
    run.status(1);
    assert!(run.text().contains("No filter meets these requirements.") && run.text().contains("--bytes "), "{}", run.text());
}
