//! `koel tune`: what it recommends, what it says of others, and what can be done with its answers.

mod plans;
mod recommend;
mod trace;
mod trial;
mod workload;

use crate::common::{Koel, Run};
use serde_json::Value;

/// Runs `koel tune` with options that have blanks between them.
fn tune(options: &str) -> Run {
    Koel::new().run(["tune"].into_iter().chain(options.split_whitespace()))
}

/// What it says for programs.
#[track_caller]
fn object(options: &str) -> Value {
    let run = tune(&format!("{options} --json"));
    assert_eq!(run.stderr, "");
    serde_json::from_slice(&run.stdout).expect("JSON")
}

/// Runs it with another value of one of the options: given a second time, it would be an error.
fn with(options: &str, way: &str, value: &str) -> Run {
    let words = options.split(' ').scan(false, |is_value, word| {
        let word = if *is_value { value } else { word };
        *is_value = word == format!("--{way}");
        Some(word)
    });
    Koel::new().run(["tune"].into_iter().chain(words))
}
