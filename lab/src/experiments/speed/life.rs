//! Times the life of a filter: filling, look-ups, emptying.

use std::{hint::black_box, ops::RangeInclusive};

use anyhow::{Context as _, ensure};
use koel::{CuckooFilter, Hasher as _, Kernel, Params, Xxh3};
use koel_floor::{Floor, Reads, position};

use super::{
    fingerprint_bits,
    times::{Form, Operation, Times, What},
};
use crate::stopwatch::Lap;
use crate::{
    experiments::{buckets, probe::Kind, random::Hashes},
    interrupt::Interrupt,
};

/// The most keys that are looked up for one time. In a small table, as many as it has slots.
pub(in crate::experiments) const MOST_QUERIES: usize = 200_000;
/// Slots per bucket.
const BUCKET_SIZE: u32 = 4;
/// The step between two loads, and the last load, in per cent.
const STEP: u32 = 5;
const LAST: u32 = 95;

/// The parameters of a filter, and keys for it.
pub(super) struct Life<'a> {
    table: Kind,
    params: Params,
    /// Keys for a full filter, the same for both tables.
    present: &'a [u64],
    absent: Hashes,
    random: Hashes,
    floor: Floor,
    queries: usize,
    /// The keys of one measurement, and their results.
    keys: Vec<u64>,
    found: Vec<bool>,
}

impl<'a> Life<'a> {
    /// `present` are at least [`most_items`].
    pub(super) fn new(table: Kind, slots: u64, seed: u64, present: &'a [u64]) -> anyhow::Result<Self> {
        let params = params(table, slots)?;
        let floor = Floor::new(params.table_bytes(), true).context("the memory of the floor could not be allocated")?;
        let queries = params.slots().min(MOST_QUERIES);
        Ok(Self {
            table,
            params,
            present,
            // That the two sequences have a number in common is too improbable to matter.
            absent: Hashes::new(!seed),
            random: Hashes::new(seed.rotate_left(32)),
            floor,
            queries,
            keys: Vec::with_capacity(queries),
            found: vec![false; queries],
        })
    }

    pub(super) fn table(&self) -> Kind {
        self.table
    }

    /// Times the floors.
    pub(super) fn read(&mut self, times: &mut Times) {
        let (seed, floor) = (self.params.seed(), &self.floor);
        let positions = |key: u64| floor.positions(Xxh3.hash(seed, &key.to_le_bytes()));
        for (reads, form) in Reads::ALL.into_iter().zip(Form::ALL) {
            self.keys.clear();
            self.keys.extend(self.absent.by_ref().take(self.queries));
            let (_, lap) = times.time(|| floor.read(reads, &self.keys, positions));
            let (table, operation, kernel) = (self.table, Operation::Read, String::new());
            times.keep(What { table, operation, form, kernel, load: 0, present: 0 }, lap, self.queries);
        }
    }

    /// Fills a filter in steps, looks up keys after each of them, and empties it in steps.
    pub(super) fn live(&mut self, kernel: Kernel, form: Form, times: &mut Times, interrupt: &Interrupt) -> anyhow::Result<()> {
        let mut filter = CuckooFilter::new(self.params, Xxh3)?;
        filter.set_kernel(kernel)?;
        let table = self.table;
        let what = |operation, load, present| What { table, operation, form, kernel: kernel.to_string(), load, present };
        let mut reached = 0;
        for load in (STEP..=LAST).step_by(STEP as usize) {
            interrupt.check()?;
            let (from, to) = (self.items(load - STEP), self.items(load));
            let keys = &self.present[from..to];
            let (inserted, lap) = times.time(|| match form {
                Form::Each => keys.iter().take_while(|&key| filter.insert(key).is_ok()).count(),
                Form::Batch => filter.insert_batch(keys).map_or_else(|full| full.position(), |()| keys.len()),
            });
            if inserted < keys.len() {
                // Only very small tables refuse an item this early. The items of this step are removed again.
                for key in &keys[..inserted] {
                    ensure!(filter.remove(key), "an inserted item could not be removed");
                }
                break;
            }
            reached = load;
            if keys.is_empty() {
                continue;
            }
            times.keep(what(Operation::Insert, load, 0), lap, keys.len());
            let shares: &[u32] = if load == LAST { &[0, 25, 50, 75, 100] } else { &[0, 100] };
            for &present in shares {
                let lap = self.find(&filter, form, load, present, times)?;
                times.keep(what(Operation::Find, load, present), lap, self.queries);
            }
        }
        for load in (STEP..=reached).rev().step_by(STEP as usize) {
            interrupt.check()?;
            let keys = &self.present[self.items(load - STEP)..self.items(load)];
            if keys.is_empty() {
                continue;
            }
            self.found.resize(self.found.len().max(keys.len()), false);
            let found = &mut self.found[..keys.len()];
            let (removed, lap) = times.time(|| match form {
                Form::Each => keys.iter().filter(|&key| filter.remove(key)).count(),
                Form::Batch => {
                    filter.remove_batch(keys, found);
                    found.iter().filter(|&&found| found).count()
                }
            });
            ensure!(removed == keys.len(), "{} of {} items could not be removed", keys.len() - removed, keys.len());
            times.keep(what(Operation::Remove, load, 0), lap, keys.len());
        }
        ensure!(filter.is_empty(), "{} items are left in a filter that was emptied", filter.len());
        Ok(())
    }

    /// The time of all look-ups when `present` per cent of the keys are present.
    fn find(&mut self, filter: &CuckooFilter, form: Form, load: u32, present: u32, times: &mut Times) -> anyhow::Result<Lap> {
        let items = self.items(load);
        self.keys.clear();
        let mut there = 0;
        for number in self.random.by_ref().take(self.queries) {
            // Two independent halves of the number.
            let is_present = (number & 0xffff_ffff) * 100 < u64::from(present) << 32;
            there += usize::from(is_present);
            let key = if is_present { self.present.get(position(number, items)).copied() } else { self.absent.next() };
            self.keys.extend(key);
        }
        let found = &mut self.found[..self.queries];
        let (yes, lap) = times.time(|| match form {
            Form::Each => self.keys.iter().filter(|&key| black_box(filter.contains(key))).count(),
            Form::Batch => {
                filter.contains_batch(&self.keys, found);
                found.iter().filter(|&&found| found).count()
            }
        });
        let expected = expected(filter, there, self.queries);
        ensure!(expected.contains(&yes), "{yes} keys were found, but {expected:?} were expected");
        Ok(lap)
    }

    /// The number of items at a load.
    fn items(&self, load: u32) -> usize {
        items(&self.params, load)
    }
}

/// The parameters of a table with about so many slots.
fn params(table: Kind, slots: u64) -> anyhow::Result<Params> {
    let builder = CuckooFilter::builder().table(table.table()).fingerprint_bits(fingerprint_bits(table)).bucket_size(BUCKET_SIZE);
    Ok(builder.buckets(buckets(slots, BUCKET_SIZE)).params()?)
}

/// The most items in a table with about so many slots, of either kind.
pub(super) fn most_items(slots: u64) -> anyhow::Result<usize> {
    Ok(items(&params(Kind::Packed, slots)?, LAST))
}

/// The number of items at a load, computed in 64 bits: the product may exceed 32.
#[allow(clippy::cast_possible_truncation, reason = "no more than there are slots")]
fn items(params: &Params, load: u32) -> usize {
    (params.slots() as u64 * u64::from(load) / 100) as usize
}

/// How many keys should be found: all present ones, and a few of the others by chance.
pub(in crate::experiments) fn expected(filter: &CuckooFilter, there: usize, queries: usize) -> RangeInclusive<usize> {
    let chance = (queries - there) as f64 * filter.false_positive_rate();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number of keys")]
    let most = (2.0 * chance + 50.0) as usize;
    there..=there + most
}
