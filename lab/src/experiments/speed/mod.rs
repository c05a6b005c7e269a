//! The experiment `speed`: the time of insertions, look-ups and removals, by load. The paper's figures 5 to 8.

mod charts;
mod life;
mod times;

use koel::Kernel;
use serde::{Deserialize, Serialize};

use self::{
    life::Life,
    times::{Form, Times},
};
use super::{probe::Kind, random::Hashes};
use crate::{
    column::{Column, Role},
    experiment::{Experiment, Findings, Measured, Scope},
    interrupt::Interrupt,
    stopwatch::Stopwatch,
};

pub(super) use life::{MOST_QUERIES, expected};
pub use times::Row;

/// Insertions, look-ups and removals.
pub struct Speed;

/// Tables of one size: both kinds, measured with all kernels, in the same rounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    slots: u64,
}

impl Case {
    /// How many times everything is measured. Large tables take minutes each time.
    fn rounds(&self) -> usize {
        match self.slots {
            ..1_000_000 => 15,
            1_000_000..50_000_000 => 9,
            _ => 5,
        }
    }

    /// Measures everything once in each round, and then again what was disturbed too often, in half as many rounds at most.
    fn measure(&self, seed: u64, watch: Stopwatch, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        let present = Hashes::new(seed).take(life::most_items(self.slots)?).collect::<Vec<_>>();
        let mut lives =
            Kind::ALL.map(|table| Life::new(table, self.slots, seed, &present)).into_iter().collect::<Result<Vec<_>, _>>()?;
        let rounds = self.rounds();
        let mut times = Times::new(watch, rounds);
        for round in 0..rounds + rounds.div_ceil(2) {
            let is_repeat = round >= rounds;
            for life in &mut lives {
                if !is_repeat || times.lack(life.table(), "", None) {
                    life.read(&mut times);
                }
                for kernel in Kernel::available() {
                    for form in Form::ALL {
                        if !is_repeat || times.lack(life.table(), &kernel.to_string(), Some(form)) {
                            life.live(kernel, form, &mut times, interrupt)?;
                        }
                    }
                }
            }
        }
        Ok(times.rows())
    }
}

/// The length of fingerprints with which both tables take the same space. The single table then has twice the false-positive
/// rate.
fn fingerprint_bits(table: Kind) -> u32 {
    match table {
        Kind::Packed => 13,
        Kind::Single => 12,
    }
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
         loop, and (dense) with 64 keys hashed ahead. Everything is measured in several rounds, 5 of the largest tables and up to 15 of \
         the smallest, both tables and all kernels in each. A time that other work on the processor disturbed does not count; if more \
         than half of them were disturbed, more rounds follow, half as many at most. Charts and tables show medians, and the quartiles \
         below and above. Both tables have buckets of four and 12 bits per slot: fingerprints of 13 bits in the packed table, and of 12 in the single one, \
         which has twice the false-positive rate."
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn columns(&self) -> Vec<Column> {
        vec![
            Column::key("slots", "slots", "slots of the table, before rounding to an even number of buckets"),
            Column::key("table", "", "packed or single"),
            Column::key("operation", "", "insert, find, remove, or read: the memory floor"),
            Column::key("form", "", "each: one key at a time; batch: many; of reads, plain and dense"),
            Column::key("kernel", "", "kernel of the filter; empty for reads"),
            Column::key("load", "%", "load after the insertions, during look-ups, before removals"),
            Column::key("present", "%", "how many of the keys looked up are present"),
            Column::new(
                "ns",
                "ns",
                "time for a key, with hashing: median of the undisturbed rounds, or of all if they are too few",
            )
            .compared(Role::median("low_ns", "high_ns", "rounds")),
            Column::new("low_ns", "ns", "lower quartile of these rounds"),
            Column::new("high_ns", "ns", "upper quartile of these rounds"),
            Column::new("least_ns", "ns", "least time of these rounds"),
            Column::new("rounds", "rounds", "how many rounds that is"),
            Column::new("disturbed", "", "true if other work on the processor disturbed too many rounds; else empty"),
            Column::new("quiet_ns", "ns", "times of the rounds that were not disturbed"),
            Column::new("disturbed_ns", "ns", "times of those that were"),
        ]
    }

    fn cases(&self, scope: &Scope) -> Vec<Case> {
        let sizes: &[u64] = scope.choose(&[1 << 20], &[100_000, 10_000_000, 100_000_000]);
        let mut sizes: Vec<_> = sizes.iter().map(|&slots| scope.at_most(slots)).collect();
        sizes.dedup();
        sizes.into_iter().map(|slots| Case { slots }).collect()
    }

    fn effort(&self, case: &Case) -> u64 {
        (case.slots + life::MOST_QUERIES as u64 * 10) * case.rounds() as u64
    }

    fn memory(&self, case: &Case) -> u64 {
        // The keys, a filter, and the memory of the floors.
        case.slots * (8 + 2 + 2 * 2) + (64 << 20)
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        case.measure(seed, Stopwatch::new(), interrupt)
    }

    fn findings(&self, measured: &[Measured<Case, Row>]) -> Findings {
        charts::findings(measured)
    }
}

#[cfg(test)]
mod tests;
