//! Keys, and the clock, which stands still while they are made and while answers are checked.
//!
//! Lookups in a large table do not ask for a key twice in one measurement, so that neither a cache nor the branch predictor
//! knows more than it would elsewhere; and no array of keys takes the memory of the 1.6 GB.

use std::{
    ops::{Range, RangeInclusive},
    time::{Duration, Instant},
};

/// Keys between two looks at the clock: enough that these cost nothing, few enough to stay in the cache.
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

/// The n-th key, hashed to nowhere in particular. The mixer of `SplitMix64` is a bijection: all keys differ.
pub(crate) fn key(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// Numbers of keys, each of them given out once. (Criterion calls a benchmark for each of its samples; they share one of
/// these.)
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

/// The time that `work` takes for the keys of all these numbers. It writes an answer for each; how many of a chunk's
/// answers are yes must be as `expected`.
pub(crate) fn timed(
    numbers: Range<u64>,
    key: impl Fn(u64) -> u64,
    expected: impl Fn(Range<u64>) -> RangeInclusive<usize>,
    mut work: impl FnMut(&[u64], &mut [bool]),
) -> Duration {
    let mut keys = Vec::with_capacity(CHUNK);
    let mut answers = vec![false; CHUNK];
    let mut time = Duration::ZERO;
    for start in numbers.clone().step_by(CHUNK) {
        let chunk = start..numbers.end.min(start + CHUNK as u64);
        keys.clear();
        keys.extend(chunk.clone().map(&key));
        let answers = &mut answers[..keys.len()];
        answers.fill(false);
        let clock = Instant::now();
        work(&keys, answers);
        time += clock.elapsed();
        let (yes, expected) = (answers.iter().filter(|&&answer| answer).count(), expected(chunk.clone()));
        assert!(expected.contains(&yes), "{yes} of keys {chunk:?}, but {expected:?} expected");
    }
    time
}

/// What to expect of keys that must all succeed.
pub(crate) fn all(chunk: Range<u64>) -> RangeInclusive<usize> {
    let keys = (chunk.end - chunk.start) as usize;
    keys..=keys
}

/// What to expect of the floor, which answers nothing.
pub(crate) fn none(_: Range<u64>) -> RangeInclusive<usize> {
    0..=0
}
