//! The experiment `size`: the time of insertions, look-ups and removals, by the size of the table, for all bucket sizes. It shows
//! what the caches do, and is what [`SpeedTable`] reads.

mod charts;
mod speed_table;
#[cfg(test)]
mod tests;

use std::fs;

use koel::{CuckooFilter, Params};
use serde::{Deserialize, Serialize};

pub use self::speed_table::{SpeedTable, Speeds};
use super::{
    buckets,
    probe::Kind,
    random::Hashes,
    times::{self, Sampling, Subject, Times},
};
use crate::{
    column::{Column, Role},
    experiment::{Experiment, Findings, Measured, Scope},
    interrupt::Interrupt,
    stopwatch::Stopwatch,
};

/// Times by the size of the table.
#[derive(Clone, Copy, Debug)]
pub struct Size;

/// Tables of one size, of all shapes, measured in the same rounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// About so many bytes.
    size: u64,
    /// Fewer rounds, of fewer keys.
    quick: bool,
}

/// The times of a shape.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    table: Kind,
    b: u32,
    f: u32,
    items: u64,
    bytes: u64,
    rounds: u32,
    #[serde(flatten)]
    times: Times,
    /// Of the machine.
    cache: Option<u64>,
}

/// The length of fingerprints. Both tables take 12 bits per slot, but for buckets of one: with so few, large tables of them are
/// planned nearly empty.
const fn fingerprint_bits(table: Kind, b: u32) -> u32 {
    match (table, b) {
        (Kind::Packed, _) => 13,
        (Kind::Single, 1) => 32,
        (Kind::Single, _) => 12,
    }
}

/// How many slots of 12 bits there are in so many bytes: the most of any shape.
const fn most_slots(size: u64) -> u64 {
    size * 8 / 12
}

/// Kinds of tables and slots per bucket: those between are like their neighbours.
const SHAPES: [(Kind, u32); 9] = [
    (Kind::Packed, 4),
    (Kind::Single, 1),
    (Kind::Single, 2),
    (Kind::Single, 3),
    (Kind::Single, 4),
    (Kind::Single, 6),
    (Kind::Single, 8),
    (Kind::Single, 12),
    (Kind::Single, 16),
];

/// From the first cache to memory, in steps of four.
const SIZES: [u64; 7] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// Smaller tables have few buckets of 16 slots.
const LEAST_SIZE: u64 = 1 << 10;
/// From this size on, filling a table takes so long that there are fewer rounds.
const LARGE: u64 = 16 << 20;
const FEWER_ROUNDS: usize = 5;
/// How many of them a quick run measures.
const QUICK_SIZES: usize = 5;

impl Case {
    fn sampling(&self) -> Sampling {
        let mut sampling = Sampling::new(self.quick);
        if self.size >= LARGE {
            sampling.rounds = sampling.rounds.min(FEWER_ROUNDS);
        }
        sampling
    }
}

/// A table of about so many bytes.
fn params(table: Kind, b: u32, size: u64) -> anyhow::Result<Params> {
    let f = fingerprint_bits(table, b);
    let slots = if b == 1 { size * 8 / u64::from(f) } else { most_slots(size) };
    let builder = CuckooFilter::builder().table(table.table()).bucket_size(b).fingerprint_bits(f);
    Ok(builder.buckets(buckets(slots, b)).params()?)
}

/// The size of the last cache that a processor has for itself and others, if the system tells.
fn cache() -> Option<u64> {
    let size = |index: u32| {
        let text = fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size")).ok()?;
        text.trim().strip_suffix('K')?.parse::<u64>().ok().map(|kib| kib << 10)
    };
    (0..8).filter_map(size).max()
}

impl Experiment for Size {
    type Case = Case;
    type Row = Row;

    fn name(&self) -> &'static str {
        "size"
    }

    fn title(&self) -> &'static str {
        "Speed, by size of the table"
    }

    fn about(&self) -> &'static str {
        "Filters with tables of 16 KiB to 64 MiB are filled up to their planned capacity; all insertions \
         are timed, and those over the last five per cent of the slots. Then absent and present keys are looked up, and the last keys removed again, all of them one \
         key at a time, with the best kernel, in one thread. Keys are 64-bit numbers; times include hashing (XXH3). Tables have 12 \
         bits per slot, those with buckets of one 32: with fewer bits, large ones are planned nearly empty. Small \
         tables are measured several times in a round. All shapes of a size are measured in the same rounds. \
         Times that other work on the processor disturbed do not count, and are measured again, in half as many rounds at most. \
         `koel tune` takes its times from here."
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![
            Column::key("size", "bytes", "size of the table that was asked for"),
            Column::key("quick", "", "true: fewer rounds, of fewer keys"),
            Column::key("table", "", "packed or single"),
            Column::key("b", "slots", "slots per bucket"),
            Column::new("f", "bits", "length of a fingerprint").compared(Role::Exact),
            Column::new("items", "items", "items in the filter: its capacity").compared(Role::Exact),
            Column::new("bytes", "bytes", "size of the table").compared(Role::Exact),
        ];
        columns.extend(times::columns());
        columns.push(Column::new("cache", "bytes", "size of the machine's last cache; empty if the system does not tell"));
        columns
    }

    fn cases(&self, scope: &Scope) -> Vec<Case> {
        let sizes = &SIZES[..scope.choose(QUICK_SIZES, SIZES.len())];
        // The limit itself is a size, too, so that a low one leaves something.
        let within = |&size: &u64| match scope.max_slots {
            Some(most) if most < most_slots(size) => most * 12 / 8,
            _ => size,
        };
        let mut sizes: Vec<_> = sizes.iter().map(within).collect();
        sizes.dedup();
        sizes.into_iter().filter(|&size| size >= LEAST_SIZE).map(|size| Case { size, quick: scope.quick }).collect()
    }

    fn effort(&self, case: &Case) -> u64 {
        let slots = most_slots(case.size);
        SHAPES.len() as u64 * case.sampling().effort(slots, slots)
    }

    fn memory(&self, case: &Case) -> u64 {
        // The keys, and a filter.
        most_slots(case.size) * 8 + 2 * case.size + (64 << 20)
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        let shapes = SHAPES.iter().map(|&(table, b)| Ok((table, b, params(table, b, case.size)?)));
        let shapes = shapes.collect::<anyhow::Result<Vec<_>>>()?;
        let most = shapes.iter().map(|(.., params)| params.capacity()).max().unwrap_or(0);
        let keys: Vec<_> = Hashes::new(seed).take(most).collect();
        let sampling = case.sampling();
        let subjects = shapes.iter().map(|(.., params)| Subject::new(*params, &keys[..params.capacity()], seed, sampling));
        let mut subjects = subjects.collect::<anyhow::Result<Vec<_>>>()?;
        let mut watch = Stopwatch::new();
        for round in 0..sampling.most_rounds() {
            for subject in &mut subjects {
                if round < sampling.rounds || subject.lacks() {
                    subject.round(&mut watch, interrupt)?;
                }
            }
        }
        let row = |((table, b, params), subject): (&(Kind, u32, Params), &Subject<'_>)| {
            // None if the filter refused a key in every round: a planned load leaves one in a thousand at most.
            let (rounds, times) = subject.times()?;
            Some(Row {
                table: *table,
                b: *b,
                f: params.fingerprint_bits(),
                items: params.capacity() as u64,
                bytes: params.table_bytes() as u64,
                rounds,
                times,
                cache: cache(),
            })
        };
        Ok(shapes.iter().zip(&subjects).filter_map(row).collect())
    }

    fn findings(&self, measured: &[Measured<Case, Row>]) -> Findings {
        charts::findings(measured)
    }
}
