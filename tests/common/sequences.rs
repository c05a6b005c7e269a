//! Random sequences of operations, as fuzz targets decode them: a header, and then records of equal length.
//!
//! `KOEL_SEQUENCES=N cargo test --test suite NAME:: -- --nocapture` runs N other sequences, and prints one shortened sequence for
//! each kind of failure. `KOEL_SECONDS=N` runs as many sequences as fit into N seconds; with `KOEL_SEED=M`, other ones.

use std::{
    collections::BTreeMap,
    env,
    ops::Range,
    panic::{self, AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};

use super::SplitMix64;

/// A target, which panics if a sequence fails.
pub(crate) struct Target {
    pub(crate) header: usize,
    pub(crate) record: usize,
    pub(crate) check: fn(&[u8]),
    pub(crate) describe: fn(&[u8]) -> String,
}

impl Target {
    /// Returns a random input with this number of records.
    pub(crate) fn random(&self, seed: u64, records: usize) -> Vec<u8> {
        SplitMix64(seed << 20).flat_map(u64::to_le_bytes).take(self.header + self.record * records).collect()
    }

    /// Checks the inputs, or instead random ones with up to `longest` records if `KOEL_SEQUENCES` gives their number, or
    /// `KOEL_SECONDS` the time.
    pub(crate) fn check_all(&self, inputs: impl Iterator<Item = Vec<u8>>, longest: usize) {
        let variable = |name| env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
        let (sequences, seconds) = (variable("KOEL_SEQUENCES"), variable("KOEL_SECONDS"));
        if sequences.is_some() || seconds.is_some() {
            let first = 1000 + variable("KOEL_SEED").unwrap_or(0) * 1_000_000;
            let most = sequences.unwrap_or(u64::MAX - first);
            return self.survey(first..first + most, seconds.map(Duration::from_secs), longest);
        }
        for input in inputs {
            // The test harness prints this only if the test fails.
            println!("{}", (self.describe)(&input));
            (self.check)(&input);
        }
    }

    /// Runs the sequences with these seeds until the time is over, and prints one shortened sequence for each kind of failure.
    fn survey(&self, seeds: Range<u64>, limit: Option<Duration>, longest: usize) {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(|_| ()));
        let (mut kinds, mut records) = (BTreeMap::<String, (usize, Vec<u8>)>::new(), 0);
        let (start, mut sequences) = (Instant::now(), 0);
        for (seed, sequence) in seeds.zip(0..) {
            if limit.is_some_and(|limit| start.elapsed() >= limit) {
                break;
            }
            sequences += 1;
            let input = self.random(seed, 1 + sequence % longest);
            records += (input.len() - self.header) / self.record;
            if let Some(failure) = self.failure(&input) {
                let (times, shortest) = kinds.entry(kind(&failure)).or_insert_with(|| {
                    eprintln!("sequence {sequence}: {failure}");
                    (0, input.clone())
                });
                *times += 1;
                if input.len() < shortest.len() {
                    *shortest = input;
                }
            }
        }
        eprintln!("{sequences} sequences, {records} records");
        for (kind, (times, input)) in &kinds {
            let input = self.shortened(input.clone(), kind);
            eprintln!("\n{times} times: {}\n{}", self.failure(&input).unwrap_or_default(), (self.describe)(&input));
        }
        panic::set_hook(hook);
        assert!(kinds.is_empty(), "{} kinds of failures", kinds.len());
    }

    /// Returns the panic message of a sequence that fails.
    fn failure(&self, input: &[u8]) -> Option<String> {
        let payload = catch_unwind(AssertUnwindSafe(|| (self.check)(input))).err()?;
        let text = payload.downcast_ref::<String>().cloned();
        Some(text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).into())).unwrap_or_default())
    }

    /// Removes all records without which the sequence still fails in the same way.
    fn shortened(&self, mut input: Vec<u8>, expected: &str) -> Vec<u8> {
        let fails = |input: &[u8]| self.failure(input).is_some_and(|failure| kind(&failure) == expected);
        let mut len = (input.len() - self.header) / self.record;
        while len > 0 {
            let mut at = self.header;
            while at + len * self.record <= input.len() {
                let mut shorter = input.clone();
                shorter.drain(at..at + len * self.record);
                if fails(&shorter) {
                    input = shorter;
                } else {
                    at += self.record;
                }
            }
            len /= 2;
        }
        input
    }
}

/// Returns the message without its numbers.
fn kind(failure: &str) -> String {
    let words: Vec<&str> = failure.split([' ', '\n']).filter(|word| !word.contains(|c: char| c.is_ascii_digit())).collect();
    words.join(" ").chars().take(80).collect()
}
