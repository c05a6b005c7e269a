//! The parts that a trial and a replay share: empty filters with one hasher, and times measured in rounds.

use std::hint::black_box;

use anyhow::anyhow;
use koel::{CuckooFilter, Params, Prehashed, hash::AnyHasher};
use koel_lab::{Rounds, Stopwatch, Timing};
use serde::{Serialize as _, Serializer};
use serde_json::json;

use crate::{file::Filter, options, terminal::Progress};

/// The hasher of all filters and keys: the default one of `koel build`.
const HASHER: AnyHasher = AnyHasher::Xxh3;

/// From this many operations on, there are fewer rounds, because each round builds every filter.
const MANY: usize = 1 << 24;

/// The minimum number of operations between two readings of the clock. They take a few hundred microseconds. Fewer are repeated.
const LAP: usize = 1 << 14;

/// The maximum memory of the filters that repeat a few operations, in bytes.
const REPEAT_BYTES: usize = 64 << 20;

/// Returns the hash of a key, as all filters compute it.
pub(super) fn hash(key: &[u8]) -> u64 {
    Prehashed::of(&HASHER, 0, key).0
}

/// Builds an empty filter to measure.
pub(super) fn empty(params: Params) -> anyhow::Result<Filter> {
    let bytes = params.table_bytes();
    let mut filter = CuckooFilter::new(params, HASHER).map_err(|_| {
        anyhow!(
            "{bytes} bytes of memory cannot be allocated for a filter; give a smaller --items, or leave --keys and --trace out, \
             so that no filter is built"
        )
    })?;
    options::set_kernel(|kernel| filter.set_kernel(kernel))?;
    Ok(filter)
}

/// Builds the filters for one measurement. All of them get the same operations, so a few operations take several filters, within
/// the maximum memory. `bytes` is the size of one filter.
pub(super) fn build_repeats<F>(operations: usize, bytes: usize, empty: impl Fn() -> anyhow::Result<F>) -> anyhow::Result<Vec<F>> {
    let repeats = LAP.div_ceil(operations.max(1)).min(REPEAT_BYTES / bytes.max(1)).max(1);
    (0..repeats).map(|_| empty()).collect()
}

/// Returns the number of rounds for a number of operations.
pub(super) fn rounds(operations: usize) -> usize {
    if operations < MANY { 5 } else { 3 }
}

/// Measures all subjects in every round, so that other work on the machine affects them equally. Half as many extra rounds follow
/// for the subjects that need them, because too many of their times were disturbed.
pub(super) fn in_rounds<T>(
    rounds: usize,
    subjects: &mut [T],
    needs_more: impl Fn(&T) -> bool,
    mut measure: impl FnMut(&mut T, &mut Stopwatch) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let progress = Progress::counting(rounds * subjects.len(), "measurements");
    let (mut watch, mut done) = (Stopwatch::new(), 0);
    for round in 0..rounds + rounds.div_ceil(2) {
        for subject in &mut *subjects {
            if round < rounds || needs_more(subject) {
                measure(subject, &mut watch)?;
            }
            done += 1;
            progress.update(0, done);
        }
    }
    Ok(())
}

/// Times one operation on each element of `all`, in several passes if there are only a few.
pub(super) fn time_each<T, R>(rounds: &mut Rounds, watch: &mut Stopwatch, all: &[T], operation: impl Fn(&T) -> R) {
    if all.is_empty() {
        return;
    }
    let passes = LAP.div_ceil(all.len());
    let ((), lap) = watch.time(|| {
        for _ in 0..passes {
            for one in all {
                black_box(operation(black_box(one)));
            }
        }
    });
    rounds.record(lap, passes * all.len());
}

/// Formats the median, with a mark if it was disturbed.
pub(super) fn median(rounds: &Rounds) -> String {
    let Some(timing) = rounds.timing() else { return String::from("-") };
    format!("{:.1}{}", timing.quartiles.median, if timing.disturbed { "!" } else { "" })
}

/// Returns the note on times that other work disturbed, if there are any.
pub(super) fn disturbed<'a>(times: impl IntoIterator<Item = &'a Rounds>) -> Option<String> {
    let is_disturbed = |rounds: &Rounds| rounds.timing().is_some_and(|timing| timing.disturbed);
    let note = "! Other work on the processor disturbed half of the rounds or more; measure again when it is idle.";
    times.into_iter().any(is_disturbed).then(|| String::from(note))
}

/// Serializes the quartiles, or null if there are no times.
pub(super) fn times<S: Serializer>(rounds: &Rounds, serializer: S) -> Result<S::Ok, S::Error> {
    let times = rounds.timing().map(|Timing { quartiles, disturbed, .. }| {
        json!({ "median": quartiles.median, "low": quartiles.low, "high": quartiles.high, "disturbed": disturbed })
    });
    times.serialize(serializer)
}
