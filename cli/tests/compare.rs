//! `koel experiment compare`.

use crate::common::Koel;
use serde_json::Value;

/// A small sweep into a folder.
fn sweep(koel: &Koel, out: &str, args: &str) {
    let common =
        ["experiment", "sweep", "--quick", "--table", "packed", "--items", "1000", "--measure", "space,fpr,load", "--out", out];
    koel.run(common.into_iter().chain(args.split_whitespace())).status(0);
}

#[test]
fn the_same_is_equal_and_another_seed_is_only_noise() {
    let koel = Koel::new();
    sweep(&koel, "a", "--f 8,12 --load 0.5,0.95");
    sweep(&koel, "b", "--f 8,12 --load 0.5,0.95");
    sweep(&koel, "c", "--f 8,12 --load 0.5,0.95 --seed 2");
    let same = koel.run(["experiment", "compare", "a", "b"]);
    same.ok();
    assert!(same.text().starts_with("A: a\nB: b\n\nsweep: 4 cases in both; "), "{}", same.text());
    let noise = koel.run(["experiment", "compare", "a", "c"]);
    noise.ok();
    assert!(
        noise.text().contains("\n  Seed: 1 / 2\n") && noise.text().contains(" figures: 0 different, 0 unknown, "),
        "{}",
        noise.text()
    );
}

#[test]
fn what_differs_is_shown_and_is_the_exit_status() {
    let koel = Koel::new();
    sweep(&koel, "a", "--f 8,12");
    sweep(&koel, "b", "--f 12,16");
    // A table that takes more space, and finds more.
    let text = String::from_utf8(koel.read("b/sweep.json")).expect("UTF-8");
    let mut record: Value = serde_json::from_str(&text).expect("JSON");
    let row = &mut record["measured"][0]["rows"][0];
    row["bytes"] = (row["bytes"].as_u64().expect("a number") + 8).into();
    for name in ["rate", "rate_low", "rate_high"] {
        row[name] = (row[name].as_f64().expect("a number") * 3.0).into();
    }
    koel.write("b/sweep.json", record.to_string());

    let run = koel.run(["experiment", "compare", "a", "b"]);
    let text = String::from_utf8_lossy(run.status(1)).into_owned();
    assert!(text.contains("sweep: 1 case in both; ") && text.contains("2 different"), "{text}");
    assert!(text.contains("  bytes, bytes") && text.contains("  rate "), "{text}");
    assert!(text.contains("\n  only in A: {\"table\":\"packed\",\"b\":4,\"f\":8,"), "{text}");
    let json: Value = serde_json::from_slice(koel.run(["experiment", "compare", "a", "b", "--json"]).status(1)).expect("JSON");
    let verdicts = json["experiments"][0]["figures"].as_array().expect("a list").iter().map(|figure| &figure["verdict"]);
    assert_eq!(verdicts.filter(|&verdict| verdict == "different").count(), 2);

    koel.run(["experiment", "compare", "a", "none"]).error(&["none"]);
    koel.run(["experiment", "compare", "a", "."]).error(&[".: no results here", "koel experiment"]);
    koel.run(["experiment", "compare", "a"]).error(&["<B>"]);
    koel.run(["experiment", "compare", "a", "b", "--time-tolerance", "2"]).error(&["--time-tolerance", "'2'", "0 to 1"]);
}
