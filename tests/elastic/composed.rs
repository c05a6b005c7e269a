//! Random sequences of all operations, checked against a multiset. The fuzz target `growing` runs the same code in
//! fuzz/src/composed.rs.
//!
//! `KOEL_COMPOSED=N cargo test --test suite composed:: -- --nocapture` runs N other sequences, and prints one shortened sequence
//! for each kind of failure.

#[path = "../../fuzz/src/composed.rs"]
pub(crate) mod operations;

use std::{
    collections::BTreeMap,
    env,
    panic::{self, AssertUnwindSafe, catch_unwind},
};

use crate::common::{SplitMix64, split_mix};
use operations::{HEADER, STEP, Size, check, describe};

/// The serde formats that a filter is written in and read from, in addition to snapshots.
#[cfg(feature = "serde")]
pub(crate) const FORMATS: &[operations::Format] = &[
    |filter| crate::formats::from_bincode(&crate::formats::to_bincode(filter)).expect("a written filter can be read"),
    |filter| crate::formats::from_postcard(&crate::formats::to_postcard(filter)).expect("a written filter can be read"),
    |filter| crate::formats::from_json(crate::formats::to_json(filter)).expect("a written filter can be read"),
];
#[cfg(not(feature = "serde"))]
pub(crate) const FORMATS: &[operations::Format] = &[];

/// Returns a random input with `operations` operations.
fn random(seed: u64, operations: usize) -> Vec<u8> {
    SplitMix64(seed << 20).flat_map(u64::to_le_bytes).take(HEADER + STEP * operations).collect()
}

#[test]
fn random_sequences_of_operations_keep_every_promise() {
    if let Some(sequences) = env::var("KOEL_COMPOSED").ok().and_then(|number| number.parse().ok()) {
        return survey(sequences);
    }
    // A sequence takes half a second in a debug build; `just release` runs more of them.
    for seed in 0..if cfg!(debug_assertions) { 20 } else { 200 } {
        let input = random(seed, 24);
        // The test harness prints this only if the test fails.
        println!("{seed}: {}", describe(&input));
        check(&input, Size::LARGE, FORMATS);
    }
}

/// Runs `sequences` sequences, and prints one shortened sequence for each kind of failure.
fn survey(sequences: u64) {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| ()));
    let (mut kinds, mut operations) = (BTreeMap::<String, (usize, Vec<u8>)>::new(), 0);
    for seed in 0..sequences {
        let input = random(1000 + seed, 8 + seed as usize % 40);
        operations += (input.len() - HEADER) / STEP;
        if let Some(failure) = failure(&input) {
            let (times, shortest) = kinds.entry(kind(&failure)).or_insert_with(|| {
                eprintln!("sequence {seed}: {failure}");
                (0, input.clone())
            });
            *times += 1;
            if input.len() < shortest.len() {
                *shortest = input;
            }
        }
    }
    eprintln!("{sequences} sequences, {operations} operations");
    for (kind, (times, input)) in &kinds {
        let input = shortened(input.clone(), kind);
        eprintln!("\n{times} times: {}\n{}", failure(&input).unwrap_or_default(), describe(&input));
    }
    panic::set_hook(hook);
    assert!(kinds.is_empty(), "{} kinds of failures", kinds.len());
}

/// Returns the panic message of a sequence that fails.
fn failure(input: &[u8]) -> Option<String> {
    let payload = catch_unwind(AssertUnwindSafe(|| check(input, Size::LARGE, FORMATS))).err()?;
    let text = payload.downcast_ref::<String>().cloned();
    Some(text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).into())).unwrap_or_default())
}

/// Returns the message without its numbers.
fn kind(failure: &str) -> String {
    let words: Vec<&str> = failure.split([' ', '\n']).filter(|word| !word.contains(|c: char| c.is_ascii_digit())).collect();
    words.join(" ").chars().take(80).collect()
}

/// Removes all operations without which the sequence still fails in the same way.
fn shortened(mut input: Vec<u8>, expected: &str) -> Vec<u8> {
    let fails = |input: &[u8]| failure(input).is_some_and(|failure| kind(&failure) == expected);
    let mut len = (input.len() - HEADER) / STEP;
    while len > 0 {
        let mut at = HEADER;
        while at + len * STEP <= input.len() {
            let mut shorter = input.clone();
            shorter.drain(at..at + len * STEP);
            if fails(&shorter) {
                input = shorter;
            } else {
                at += STEP;
            }
        }
        len /= 2;
    }
    input
}
