//! Keys, and a clock that is stopped while keys are generated and results are checked.
//!
//! In a large table, no key is looked up twice in one measurement, so neither caches nor the branch predictor have an unrealistic
//! advantage. Keys are generated in chunks, so no large array of them takes memory.

use std::{
    ops::{Range, RangeInclusive},
    time::{Duration, Instant},
};

/// Keys between two readings of the clock: many enough that reading it costs nothing, few enough to stay in the cache.
pub(crate) const CHUNK: usize = 100_000;

/// How an operation is called.
#[derive(Clone, Copy)]
pub(crate) enum Form {
    Each,
    Batch,
}

impl Form {
    pub(crate) const ALL: [Self; 2] = [Self::Each, Self::Batch];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::Batch => "batch",
        }
    }
}

/// Returns the n-th key. The mixer of `SplitMix64` is a bijection, so all keys differ.
pub(crate) fn key(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// Key numbers, each returned once. All samples of a benchmark share one of these, since Criterion calls the benchmark for each.
#[derive(Default)]
pub(crate) struct Numbers {
    next: u64,
}

impl Numbers {
    pub(crate) fn take(&mut self, count: u64) -> Range<u64> {
        let start = self.next;
        self.next += count;
        start..self.next
    }
}

/// Returns the time that `work` takes for the keys of these numbers. `work` writes a result for each key; the number of true
/// results in a chunk must be in the `expected` range.
pub(crate) fn timed(
    numbers: Range<u64>,
    key: impl Fn(u64) -> u64,
    expected: impl Fn(Range<u64>) -> RangeInclusive<usize>,
    mut work: impl FnMut(&[u64], &mut [bool]),
) -> Duration {
    let mut keys = Vec::with_capacity(CHUNK);
    let mut results = vec![false; CHUNK];
    let mut time = Duration::ZERO;
    for start in numbers.clone().step_by(CHUNK) {
        let chunk = start..numbers.end.min(start + CHUNK as u64);
        keys.clear();
        keys.extend(chunk.clone().map(&key));
        let results = &mut results[..keys.len()];
        results.fill(false);
        let clock = Instant::now();
        work(&keys, results);
        time += clock.elapsed();
        let (true_results, expected) = (results.iter().filter(|&&result| result).count(), expected(chunk.clone()));
        assert!(expected.contains(&true_results), "{true_results} results of keys {chunk:?} are true, {expected:?} expected");
    }
    time
}

/// Calls `operation` for each key.
pub(crate) fn each(keys: &[u64], results: &mut [bool], mut operation: impl FnMut(&u64) -> bool) {
    for (key, result) in keys.iter().zip(results) {
        *result = operation(key);
    }
}

/// Expects all results to be true.
pub(crate) fn all(chunk: Range<u64>) -> RangeInclusive<usize> {
    let keys = (chunk.end - chunk.start) as usize;
    keys..=keys
}

/// Expects all results to be false. The floor writes no results, so they stay false.
pub(crate) fn none(_: Range<u64>) -> RangeInclusive<usize> {
    0..=0
}
