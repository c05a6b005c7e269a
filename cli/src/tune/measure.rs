//! What a trial and a replay have in common: empty filters that hash alike, and times in rounds.

use std::hint::black_box;

use anyhow::anyhow;
use koel::{CuckooFilter, Params, hash::AnyHasher};
use koel_lab::{Rounds, Stopwatch, Timing};
use serde::{Serialize as _, Serializer};
use serde_json::json;

use crate::{errors, file::Filter, options, terminal::Progress};

/// The hasher of the filters, and of the keys before there are any: that of `koel build`.
const HASHER: AnyHasher = AnyHasher::Xxh3;

/// From so many operations on there are fewer rounds: each builds every filter.
const MANY: usize = 1 << 24;

/// Operations between two readings of the clock, at least: a few hundred microseconds. Fewer are repeated.
const LAP: usize = 1 << 14;

/// The memory of the filters that repeat few operations.
const COPIES: usize = 64 << 20;

/// An empty filter, which hashes as all others do.
pub(super) fn hasher() -> anyhow::Result<Filter> {
    CuckooFilter::builder().hasher(HASHER).capacity(0).fingerprint_bits(8).build().map_err(errors::not_built)
}

/// An empty filter to measure.
pub(super) fn empty(params: Params) -> anyhow::Result<Filter> {
    let bytes = params.table_bytes();
    let mut filter = CuckooFilter::new(params, HASHER).map_err(|_| {
        anyhow!(
            "{bytes} bytes of memory cannot be allocated for a filter; give a smaller --items, or leave --keys and --trace out, \
             which builds nothing"
        )
    })?;
    options::set_kernel(|kernel| filter.set_kernel(kernel))?;
    Ok(filter)
}

/// The filters that take so many operations each: several, of so many bytes, if the operations are few.
pub(super) fn copies<F>(operations: usize, bytes: usize, empty: impl Fn() -> anyhow::Result<F>) -> anyhow::Result<Vec<F>> {
    let copies = LAP.div_ceil(operations.max(1)).min(COPIES / bytes.max(1)).max(1);
    (0..copies).map(|_| empty()).collect()
}

/// The number of rounds for so many operations.
pub(super) fn rounds(operations: usize) -> usize {
    if operations < MANY { 5 } else { 3 }
}

/// Measures all subjects in every round, so that other work on the machine affects them alike; and in half as many further rounds
/// those of whose times too many were disturbed.
pub(super) fn in_rounds<T>(
    rounds: usize,
    subjects: &mut [T],
    lacks: impl Fn(&T) -> bool,
    mut measure: impl FnMut(&mut T, &mut Stopwatch) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let progress = Progress::counting(rounds * subjects.len(), "measurements");
    let (mut watch, mut done) = (Stopwatch::new(), 0);
    for round in 0..rounds + rounds.div_ceil(2) {
        for subject in &mut *subjects {
            if round < rounds || lacks(subject) {
                measure(subject, &mut watch)?;
            }
            done += 1;
            progress.at(0, done);
        }
    }
    Ok(())
}

/// Times one operation on each of these, several times if they are few.
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
    rounds.keep(lap, passes * all.len());
}

/// The median, with a mark if it was disturbed.
pub(super) fn median(rounds: &Rounds) -> String {
    let Some(timing) = rounds.timing() else { return String::from("-") };
    format!("{:.1}{}", timing.quartiles.median, if timing.disturbed { "!" } else { "" })
}

/// The note on times that other work disturbed, if there are any.
pub(super) fn disturbed<'a>(times: impl IntoIterator<Item = &'a Rounds>) -> Option<String> {
    let is_disturbed = |rounds: &Rounds| rounds.timing().is_some_and(|timing| timing.disturbed);
    let note = "! Other work on the processor disturbed half of the rounds or more; measure again when it is idle.";
    times.into_iter().any(is_disturbed).then(|| String::from(note))
}

/// The quartiles for programs; null if there are no times.
pub(super) fn times<S: Serializer>(rounds: &Rounds, serializer: S) -> Result<S::Ok, S::Error> {
    let times = rounds.timing().map(|Timing { quartiles, disturbed, .. }| {
        json!({ "median": quartiles.median, "low": quartiles.low, "high": quartiles.high, "disturbed": disturbed })
    });
    times.serialize(serializer)
}
