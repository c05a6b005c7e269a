//! `koel tune`: its recommendations, its facts about other structures, and the commands that it prints.

mod cost;
mod recommend;
mod trace;
mod trial;

use serde_json::Value;

use crate::common::{Koel, Run, facts};

/// Runs `koel tune` with these options.
fn tune(options: &str) -> Run {
    Koel::new().run(&format!("tune {options}"))
}

/// Runs `koel tune` with these options, and parses its output as JSON.
#[track_caller]
fn object(options: &str) -> Value {
    tune(&format!("{options} --json")).json()
}

#[track_caller]
fn list<'a>(object: &'a Value, name: &str) -> &'a [Value] {
    object[name].as_array().unwrap_or_else(|| panic!("no list {name} in {object}"))
}

/// Returns the number at a path such as `/trial/absent_keys`.
#[track_caller]
fn number(object: &Value, path: &str) -> f64 {
    object.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {path} in {object}"))
}

/// Asserts that lines have at most 80 columns. Only commands to paste and the path of the times may be longer.
#[track_caller]
fn assert_legible(text: &str) {
    for line in text.lines().filter(|line| !line.contains("koel build ") && !line.contains("docs/tuning")) {
        assert!(line.chars().count() <= 80 && line.trim_end() == line, "{line}");
        assert!(!line.contains("NaN") && !line.contains("inf "), "{line}");
    }
}

/// Runs the command of an answer with the file `list`, and asserts that it builds the first candidate.
#[track_caller]
fn assert_builds(koel: &Koel, answer: &Value, list: &str) {
    let command = answer["command"].as_str().expect("a command").replace("IN", list).replace("OUT", "f.koel");
    koel.shell(&command).ok();
    let built = facts(koel, "f.koel");
    for name in ["table", "fingerprint_bits", "bucket_size", "buckets", "addressing", "slots", "capacity", "table_bytes"] {
        assert_eq!(built[name], answer["candidates"][0][name], "{name}: {command}");
    }
}
