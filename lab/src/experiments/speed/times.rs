//! The times of all rounds, and what is made of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::{
    statistics::Quartiles,
    stopwatch::{Lap, Rounds, Stopwatch, Timing},
};

/// An operation that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Operation {
    Insert,
    Find,
    Remove,
    /// The memory floor ([`koel_floor`]): the least that any of the others can cost.
    Read,
}

/// How it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Form {
    /// One key at a time.
    Each,
    /// Many keys at a time.
    Batch,
}

impl Form {
    pub(super) const ALL: [Self; 2] = [Self::Each, Self::Batch];
}

/// What a time belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct What {
    pub(super) table: Kind,
    pub(super) operation: Operation,
    pub(super) form: Form,
    /// The name of the kernel; empty for reads.
    pub(super) kernel: String,
    /// The load in per cent: for insertions the one after them, for removals the one before them. 0 for reads.
    pub(super) load: u32,
    /// How many of the keys looked up are present, in per cent.
    pub(super) present: u32,
}

/// A time in nanoseconds per key, hashing included. The first fields say what was timed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    pub(super) table: Kind,
    pub(super) operation: Operation,
    pub(super) form: Form,
    pub(super) kernel: String,
    pub(super) load: u32,
    pub(super) present: u32,
    /// The median, and the quartiles below and above it: of the rounds that were not disturbed, or of all if too many were.
    pub(super) ns: f64,
    /// `None` in results of earlier builds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) low_ns: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) high_ns: Option<f64>,
    pub(super) least_ns: f64,
    /// How many rounds count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rounds: Option<usize>,
    /// Whether too many rounds were disturbed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) disturbed: bool,
    /// Every round: those that were not disturbed, and those that were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) quiet_ns: Vec<f64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) disturbed_ns: Vec<f64>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// All the times of a case.
pub(super) struct Times {
    watch: Stopwatch,
    /// How many rounds are planned.
    planned: usize,
    rounds: BTreeMap<What, Rounds>,
}

impl Times {
    /// For so many rounds.
    pub(super) fn new(watch: Stopwatch, rounds: usize) -> Self {
        Self { watch, planned: rounds, rounds: BTreeMap::new() }
    }

    /// Does the work and measures its time, without keeping it.
    pub(super) fn time<T>(&mut self, work: impl FnOnce() -> T) -> (T, Lap) {
        self.watch.time(work)
    }

    /// Keeps the time of this many keys.
    pub(super) fn keep(&mut self, what: What, lap: Lap, keys: usize) {
        self.rounds.entry(what).or_insert_with(|| Rounds::new(self.planned)).keep(lap, keys);
    }

    /// Whether any measurement of this table with this kernel, in this form or in any, was disturbed too often.
    pub(super) fn lack(&self, table: Kind, kernel: &str, form: Option<Form>) -> bool {
        let lacking = self.rounds.iter().filter(|(_, rounds)| rounds.lack());
        lacking
            .map(|(what, _)| what)
            .any(|what| (what.table, &*what.kernel) == (table, kernel) && form.is_none_or(|form| what.form == form))
    }

    pub(super) fn rows(self) -> Vec<Row> {
        let row = |(what, rounds): (What, Rounds)| {
            let Timing { quartiles: Quartiles { low, median, high }, least, disturbed } = rounds.timing()?;
            let What { table, operation, form, kernel, load, present } = what;
            Some(Row {
                table,
                operation,
                form,
                kernel,
                load,
                present,
                ns: median,
                low_ns: Some(low),
                high_ns: Some(high),
                least_ns: least,
                rounds: Some(rounds.quiet().len() + if disturbed { rounds.disturbed().len() } else { 0 }),
                disturbed,
                quiet_ns: rounds.quiet().to_vec(),
                disturbed_ns: rounds.disturbed().to_vec(),
            })
        };
        self.rounds.into_iter().filter_map(row).collect()
    }
}
