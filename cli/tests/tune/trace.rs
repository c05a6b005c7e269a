//! `koel tune --trace`, which replays a log of operations.

use serde_json::{Value, json};

use super::{assert_builds, assert_legible, list, number};
use crate::common::{Koel, lines};

/// Returns a log that inserts `keys` keys and removes half of them. Before and after the removals, it queries four times as many.
fn life(keys: u32) -> String {
    let queries = lines("query key ", 0..4 * keys);
    let removed = lines("remove key ", keys / 2..keys);
    lines("insert key ", 0..keys) + &queries + &removed + &queries + "remove key no\ninsert key 1\n"
}

/// Returns the candidates that were replayed: those that the text shows.
fn replayed(object: &Value) -> Vec<&Value> {
    list(object, "candidates").iter().filter(|candidate| !candidate["replay"].is_null()).collect()
}

#[test]
fn a_log_is_counted_and_replayed() {
    let koel = Koel::new();
    koel.write("log.txt", life(5000));
    let found = koel.json("tune --json --trace log.txt --fpr 1% --all");
    let counted = json!({
        "insertions": 5001, "present_queries": 7500, "absent_queries": 32_500, "removals": 2500, "skipped_removals": 1,
        "most_items": 5000, "most_distinct_items": 5000, "most_copies": 2,
    });
    assert_eq!((&found["trace"], &found["asked"]["planned_items"]), (&counted, &json!(5000)));
    let candidates = list(&found, "candidates");
    let growing = candidates.iter().filter(|one| one["grows"] == true).count();
    assert!(growing == 1 && candidates.len() >= 17 && found["picture"].is_null(), "{}", candidates.len());
    for one in candidates {
        let replay = &one["replay"];
        assert_eq!([&replay["refused_insertions"], &replay["false_negatives"]], [0, 0], "{replay}");
        let (hits, expected) = (number(replay, "/false_positives"), number(replay, "/expected_false_positives"));
        assert!((hits - expected).abs() < 5.0 * expected.sqrt() && expected < 0.012 * 32_500.0, "{hits}, {expected} expected");
        assert!(number(replay, "/operation_ns/median") > 0.0);
        let course = list(replay, "course");
        let last = &course[course.len() - 1];
        assert_eq!([&last["operations"], &last["items"], &last["absent_queries"]], [47_501, 2501, 32_500], "{last}");
        assert!(number(last, "/load_factor") < number(replay, "/most_load_factor"), "{last}");
        assert!((100..=200).contains(&course.len()), "{}", course.len());
    }
    // The filter that the command builds has the same false positives.
    koel.write("keys.txt", lines("key ", 0..5000));
    assert_builds(&koel, &found, "keys.txt");
    let count = |range| koel.feed(lines("key ", range), "query f.koel --count").text().trim().parse::<u64>().expect("a number");
    let before = count(5000..20_000);
    koel.feed(lines("key ", 2500..5000), "remove f.koel").ok();
    assert_eq!(candidates[0]["replay"]["false_positives"], before + count(2500..20_000));
}

#[test]
fn the_text_has_one_row_per_filter_and_names_the_chart() {
    let koel = Koel::new();
    koel.write("log.txt", life(5000));
    let text = koel.run("tune --trace log.txt --fpr 1% --out pictures").printed();
    for part in [
        "1 removal of absent keys skipped",
        "packed f=10 b=4 *",
        "  grow, delete\n",
        "\ngrowing  ",
        "Picture: pictures/trace.svg\n",
        "koel build IN -o OUT --capacity 5000 --fpr 0.01",
    ] {
        assert!(text.contains(part), "no {part}: {text}");
    }
    let header = ["filter", "bytes", "load", "refused", "missed", "expected", "measured", "ns"];
    assert!(text.lines().any(|line| line.split_whitespace().eq(header)), "{text}");
    assert_legible(&text);
    assert!(koel.read("pictures/trace.svg").starts_with(b"<svg "));
}

/// If the plan is too small, insertions are refused, and only refused keys are missed. The growing filter accepts all.
#[test]
fn refusals_are_counted() {
    let koel = Koel::new();
    koel.write("log.txt", life(1000));
    // Copies are never refused.
    koel.write("copies.txt", "insert a\n".repeat(5000) + "remove a\n");
    for (options, most_copies) in [("log.txt --items 1000", 2), ("copies.txt", 5000)] {
        let found = koel.json(&format!("tune --json --fpr 1% --trace {options}"));
        assert_eq!(found["trace"]["most_copies"], most_copies);
        assert_eq!(found["asked"]["planned_items"], if most_copies == 2 { 1000 } else { 1 });
        for one in replayed(&found) {
            assert_eq!(one["replay"]["refused_insertions"], 0, "{one}");
            assert!(number(one, "/replay/most_load_factor") <= 1.0, "{one}");
        }
    }
    let text = koel.run("tune --fpr 1% --trace copies.txt").unbroken();
    assert!(!text.contains("refused:") && !text.contains("larger --items"), "{text}");
    let text = koel.run("tune --fpr 1% --trace log.txt --items 600").unbroken();
    assert!(text.contains("Insertions were refused: give a larger --items."), "{text}");
    let found = koel.json("tune --json --fpr 1% --trace log.txt --items 600");
    let [first, .., growing] = replayed(&found)[..] else { panic!("{found}") };
    let [refused, missed] = ["/replay/refused_insertions", "/replay/false_negatives"].map(|name| {
        assert!(number(growing, name) == 0.0, "{name}");
        number(first, name)
    });
    // The filter has room for just over 600 of the 1000 keys. A key is queried twice unless it is removed.
    assert!(refused > 300.0 && refused < 400.0 && missed > 300.0 && missed < 2.0 * refused, "{refused} refused, {missed} missed");
    // Removing a key that was refused changes nothing.
    let left = list(&first["replay"], "course").last().map(|last| number(last, "/items")).expect("a course");
    assert!((499.0..=501.0).contains(&left), "{left}");
}

#[test]
fn keys_are_arbitrary_bytes_from_a_pipe() {
    let koel = Koel::new();
    for (log, options) in
        [("insert a b\r\nquery a b\nquery \nremove a b", ""), ("insert a\nb\0query a\nb\0query \0remove a\nb", "--nul")]
    {
        let found = koel.feed(log, &format!("tune --fpr 0.1 --json --trace - {options}")).json();
        let counts = ["insertions", "present_queries", "absent_queries", "removals"].map(|name| &found["trace"][name]);
        assert_eq!(counts, [1, 1, 1, 1]);
    }
}

/// JSON has a name that is not UTF-8 as messages have it.
#[test]
#[cfg(target_os = "linux")]
fn a_folder_may_have_any_name() {
    let koel = Koel::new();
    koel.write("log.txt", "insert a\nquery a\n");
    let run = koel.shell("koel tune --trace log.txt --fpr 0.1 --json --out \"$(printf 'r\\351s')\" && ls r*/trace.svg | wc -l");
    assert!(run.text().contains("/trace.svg\"") && run.text().ends_with("\n1\n"), "{}", run.text());
}

#[test]
#[cfg(target_os = "linux")]
fn a_log_that_does_not_fit_into_memory_is_an_error() {
    for log in ["seq -f 'insert %.0f' 3000000", "yes 'query a' | head -n 9000000"] {
        let command = "koel tune --trace - --fpr 1% 2>&1 || test $? = 2";
        let run = Koel::new().shell(&format!("ulimit -v 100000; {log} | {command}"));
        assert_eq!(run.status, 0, "{log}: {}", run.text());
        for part in
            [" of standard input: no memory for more than the ", "; give a shorter log, or use a machine with more memory"]
        {
            assert!(run.text().contains(part), "{log}: {}", run.text());
        }
    }
}

#[test]
fn errors_name_the_line() {
    let koel = Koel::new();
    koel.write("log.txt", "insert a\n");
    let remedy = "give lines such as insert KEY, query KEY and remove KEY";
    for (log, mistake) in [
        ("insert a\ninsrt b\n", "line 2 of standard input: 'insrt' is not an operation"),
        ("insert a\n\n", "line 2 of standard input: '' is not an operation"),
        ("insert a\nquery a\nremove", "line 3 of standard input: remove without a key"),
        ("Insert a\n", "line 1 of standard input: 'Insert' is not an operation"),
        ("", "--trace: standard input has no operations"),
        ("remove a\nremove b\n", "--trace: standard input has no operations but removals of absent keys"),
    ] {
        koel.feed(log, "tune --trace - --fpr 0.1").error(&[mistake, remedy]);
    }
    koel.given("tune").refuses(&[
        ("--trace no.txt --fpr 0.1", &["no.txt", "cannot be read"]),
        ("--trace log.txt", &["--fpr <E>", "not provided"]),
        ("--trace log.txt --keys log.txt --fpr 0.1", &["--trace", "cannot be used with"]),
        ("--items 5 --fpr 0.1 --out x", &["--trace <FILE>", "not provided"]),
        ("--trace log.txt --fpr 0.1 --out log.txt", &["log.txt: cannot be created as a folder"]),
    ]);
    // A folder that cannot have the chart is refused before the log is read.
    std::fs::create_dir(koel.path("seen")).expect("a folder");
    koel.write("seen/20270115T080000Z-300s.koel", "");
    let linux: &[_] =
        if cfg!(target_os = "linux") { &[("/proc", "/proc: no file can be created in this folder: ")] } else { &[] };
    let refused = [("log.txt", "log.txt: cannot be created as a folder"), ("seen", "seen: is a folder of `koel uniq --forget`")];
    for (out, message) in refused.iter().chain(linux) {
        koel.feed("insrt b\n", &format!("tune --trace - --fpr 0.1 --out {out}")).error(&[message, "; give "]);
    }
    // If no filter meets the requirements, the answer is that of a run without a log.
    let run = koel.run("tune --trace log.txt --items 1000 --bytes 10 --fpr 0.01");
    run.status(1);
    assert!(run.text().contains("No filter meets these requirements.") && run.text().contains("--bytes "), "{}", run.text());
}
