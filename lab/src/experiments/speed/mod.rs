//! The experiment `speed`: the time of insertions, look-ups and removals, by load. The paper's figures 5 to 8.

mod charts;
mod life;

use std::collections::BTreeMap;

use koel::Kernel;
use serde::{Deserialize, Serialize};

use super::probe::Kind;
use crate::{
    experiment::{Experiment, Findings, Measured, Scope},
    interrupt::Interrupt,
    statistics::median,
};

/// Insertions, look-ups and removals.
pub struct Speed;

/// A table of one kind and size, measured with all kernels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    table: Kind,
    slots: u64,
    /// How many times everything is measured.
    rounds: u32,
}

/// The length of fingerprints with which both tables take the same space. The single table then has twice the false-positive
/// rate.
fn fingerprint_bits(table: Kind) -> u32 {
    match table {
        Kind::Packed => 13,
        Kind::Single => 12,
    }
}

/// An operation that is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Operation {
    Insert,
    Find,
    Remove,
    /// The memory floor ([`koel_floor`]): the least that any of the others can cost.
    Read,
}

/// How it is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    /// One key at a time.
    Each,
    /// Many keys at a time.
    Batch,
}

impl Form {
    const ALL: [Self; 2] = [Self::Each, Self::Batch];
}

/// What a time belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct What {
    pub(crate) operation: Operation,
    pub(crate) form: Form,
    /// The name of the kernel; empty for reads.
    pub(crate) kernel: String,
    /// The load in per cent: for insertions the one after them, for removals the one before them. 0 for reads.
    pub(crate) load: u32,
    /// How many of the keys looked up are present, in per cent.
    pub(crate) present: u32,
}

/// Nanoseconds per key, hashing included.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    operation: Operation,
    form: Form,
    kernel: String,
    load: u32,
    present: u32,
    /// The median and the minimum of all rounds.
    ns: f64,
    least_ns: f64,
}

/// All the times of a case.
#[derive(Default)]
pub(crate) struct Times(BTreeMap<What, Vec<f64>>);

impl Times {
    pub(crate) fn add(&mut self, what: What, ns: f64) {
        self.0.entry(what).or_default().push(ns);
    }

    fn rows(self) -> Vec<Row> {
        let row = |(what, times): (What, Vec<f64>)| {
            let least_ns = times.iter().copied().fold(f64::INFINITY, f64::min);
            let What { operation, form, kernel, load, present } = what;
            Some(Row { operation, form, kernel, load, present, ns: digits(median(times)?), least_ns: digits(least_ns) })
        };
        self.0.into_iter().filter_map(row).collect()
    }
}

/// A time rounded to a thousandth of a nanosecond: no clock is more precise.
fn digits(ns: f64) -> f64 {
    (ns * 1000.0).round() / 1000.0
}

impl Experiment for Speed {
    type Case = Case;
    type Row = Row;

    fn name(&self) -> &'static str {
        "speed"
    }

    fn title(&self) -> &'static str {
        "Speed, by load"
    }

    fn about(&self) -> &'static str {
        "A filter is filled in steps of five per cent, queried after each step for absent and for present keys, and emptied again: \
         with every kernel that the processor can run, one key at a time and in batches. Keys are 64-bit numbers; times include \
         hashing (XXH3), in one thread. The floor hashes a key and reads memory at two random places, as any cuckoo filter must: in a plain \
         loop, and (dense) with 64 keys hashed ahead. Times are medians of several rounds, for tables of 100 M slots the mean of two. \
         Both tables have buckets of four and 12 bits per slot: fingerprints of 13 bits in the packed table, and of 12 in the single one, \
         which has twice the false-positive rate."
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn cases(&self, scope: &Scope) -> Vec<Case> {
        let sizes: &[(u64, u32)] = scope.choose(&[(1 << 20, 3)], &[(100_000, 9), (10_000_000, 5), (100_000_000, 2)]);
        let mut sizes: Vec<_> = sizes.iter().map(|&(slots, rounds)| (scope.at_most(slots), rounds)).collect();
        sizes.dedup_by_key(|size| size.0);
        let cases = sizes.into_iter().flat_map(|(slots, rounds)| Kind::ALL.map(|table| Case { table, slots, rounds }));
        cases.collect()
    }

    fn effort(&self, case: &Case) -> u64 {
        (case.slots + life::MOST_QUERIES as u64 * 10) * u64::from(case.rounds)
    }

    fn memory(&self, case: &Case) -> u64 {
        // The keys, the table, and the memory of the floor.
        case.slots * (8 + 2 + 2) + (64 << 20)
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        let mut times = Times::default();
        let mut life = life::Life::new(case.table, case.slots, seed)?;
        for _ in 0..case.rounds {
            life.read(&mut times);
            for kernel in Kernel::available() {
                for form in Form::ALL {
                    life.live(kernel, form, &mut times, interrupt)?;
                }
            }
        }
        Ok(times.rows())
    }

    fn findings(&self, measured: &[Measured<Case, Row>]) -> Findings {
        charts::findings(measured)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(quick: bool, max_slots: Option<u64>) -> Scope {
        Scope { quick, seed: 1, max_slots }
    }

    #[test]
    fn a_size_is_measured_once() {
        for quick in [false, true] {
            for most in [None, Some(1000), Some(10_000_000)] {
                let cases = Speed.cases(&scope(quick, most));
                assert!(!cases.is_empty());
                assert!(cases.iter().enumerate().all(|(place, case)| !cases[..place].contains(case)));
                assert!(cases.iter().all(|case| most.is_none_or(|most| case.slots <= most)));
            }
        }
    }

    #[test]
    fn everything_is_timed_at_every_load() {
        let case = Case { table: Kind::Packed, slots: 8192, rounds: 2 };
        let rows = Speed.measure(&case, 1, &Interrupt::new()).expect("nobody interrupts it");
        let kernels = Kernel::available().count();
        let count = |operation| rows.iter().filter(|row| row.operation == operation).count();
        assert_eq!(count(Operation::Read), 2);
        assert_eq!(count(Operation::Insert), 19 * 2 * kernels);
        assert_eq!(count(Operation::Remove), 19 * 2 * kernels);
        // At the last load there are three more shares of present keys.
        assert_eq!(count(Operation::Find), (19 * 2 + 3) * 2 * kernels);
        assert!(rows.iter().all(|row| row.ns > 0.0 && row.least_ns <= row.ns));
        let findings = Speed.findings(&[Measured { case, rows }]);
        // All charts but the one of the single table, which was not measured.
        assert_eq!(findings.charts.len(), 5);
        assert!(findings.charts.iter().all(|chart| !chart.series.is_empty()));
        assert!(Speed.findings(&[]).charts.is_empty());
    }

    /// A table too small for the highest loads is measured up to those that it reaches.
    #[test]
    fn a_small_table_is_measured_as_far_as_it_goes() {
        let case = Case { table: Kind::Single, slots: 16, rounds: 3 };
        let rows = Speed.measure(&case, 1, &Interrupt::new()).expect("nobody interrupts it");
        assert!(rows.iter().any(|row| row.operation == Operation::Remove));
    }

    #[test]
    fn it_stops_when_told_to() {
        let interrupt = Interrupt::new();
        interrupt.set();
        let case = Case { table: Kind::Packed, slots: 8192, rounds: 1 };
        assert!(Speed.measure(&case, 1, &interrupt).expect_err("it was told to").is::<crate::Interrupted>());
    }
}
