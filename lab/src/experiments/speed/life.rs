//! Times the life of a filter: filling, look-ups, emptying.

use std::{
    hint::black_box,
    ops::RangeInclusive,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use koel::{CuckooFilter, Hasher as _, Kernel, Params, Xxh3};
use koel_floor::{Floor, Reads, position};

use super::{Form, Operation, Times, What, fingerprint_bits};
use crate::{
    experiments::{buckets, probe::Kind, random::Hashes},
    interrupt::Interrupt,
};

/// The most keys that are looked up for one time. In a small table, as many as it has slots.
pub(super) const MOST_QUERIES: usize = 200_000;
/// Slots per bucket.
const BUCKET_SIZE: u32 = 4;
/// The step between two loads, and the last load, in per cent.
const STEP: u32 = 5;
const LAST: u32 = 95;

/// The parameters of a filter, and keys for it.
pub(super) struct Life {
    params: Params,
    present: Vec<u64>,
    absent: Hashes,
    random: Hashes,
    floor: Floor,
    queries: usize,
    /// The keys of one measurement, and their results.
    keys: Vec<u64>,
    found: Vec<bool>,
}

impl Life {
    pub(super) fn new(table: Kind, slots: u64, seed: u64) -> anyhow::Result<Self> {
        let buckets = buckets(slots, BUCKET_SIZE);
        let builder = CuckooFilter::builder()
            .table(table.table())
            .fingerprint_bits(fingerprint_bits(table))
            .bucket_size(BUCKET_SIZE)
            .buckets(buckets);
        let params = builder.params()?;
        let floor = Floor::new(params.table_bytes(), true).context("the memory of the floor could not be allocated")?;
        let most = items(&params, LAST);
        let queries = params.slots().min(MOST_QUERIES);
        Ok(Self {
            params,
            // That the two sequences have a number in common is too improbable to matter.
            present: Hashes::new(seed).take(most).collect(),
            absent: Hashes::new(!seed),
            random: Hashes::new(seed.rotate_left(32)),
            floor,
            queries,
            keys: Vec::with_capacity(queries),
            found: vec![false; queries],
        })
    }

    /// Times the floors.
    pub(super) fn read(&mut self, times: &mut Times) {
        let (seed, floor) = (self.params.seed(), &self.floor);
        let positions = |key: u64| floor.positions(Xxh3.hash(seed, &key.to_le_bytes()));
        for (reads, form) in Reads::ALL.into_iter().zip(Form::ALL) {
            self.keys.clear();
            self.keys.extend(self.absent.by_ref().take(self.queries));
            let (_, time) = timed(|| floor.read(reads, &self.keys, positions));
            let what = What { operation: Operation::Read, form, kernel: String::new(), load: 0, present: 0 };
            times.add(what, per_key(time, self.queries));
        }
    }

    /// Fills a filter in steps, looks up keys after each of them, and empties it in steps.
    pub(super) fn live(&mut self, kernel: Kernel, form: Form, times: &mut Times, interrupt: &Interrupt) -> anyhow::Result<()> {
        let mut filter = CuckooFilter::new(self.params, Xxh3)?;
        filter.set_kernel(kernel)?;
        let what = |operation, load, present| What { operation, form, kernel: kernel.to_string(), load, present };
        let mut reached = 0;
        for load in (STEP..=LAST).step_by(STEP as usize) {
            interrupt.check()?;
            let (from, to) = (self.items(load - STEP), self.items(load));
            let keys = &self.present[from..to];
            let (inserted, time) = timed(|| match form {
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
            times.add(what(Operation::Insert, load, 0), per_key(time, keys.len()));
            let shares: &[u32] = if load == LAST { &[0, 25, 50, 75, 100] } else { &[0, 100] };
            for &present in shares {
                let ns = self.find(&filter, form, load, present)?;
                times.add(what(Operation::Find, load, present), ns);
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
            let (removed, time) = timed(|| match form {
                Form::Each => keys.iter().filter(|&key| filter.remove(key)).count(),
                Form::Batch => {
                    filter.remove_batch(keys, found);
                    found.iter().filter(|&&found| found).count()
                }
            });
            ensure!(removed == keys.len(), "{} of {} items could not be removed", keys.len() - removed, keys.len());
            times.add(what(Operation::Remove, load, 0), per_key(time, keys.len()));
        }
        ensure!(filter.is_empty(), "{} items are left in a filter that was emptied", filter.len());
        Ok(())
    }

    /// The time of a look-up when `present` per cent of the keys are present.
    fn find(&mut self, filter: &CuckooFilter, form: Form, load: u32, present: u32) -> anyhow::Result<f64> {
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
        let (yes, time) = timed(|| match form {
            Form::Each => self.keys.iter().filter(|&key| black_box(filter.contains(key))).count(),
            Form::Batch => {
                filter.contains_batch(&self.keys, found);
                found.iter().filter(|&&found| found).count()
            }
        });
        let expected = expected(filter, there, self.queries);
        ensure!(expected.contains(&yes), "{yes} keys were found, but {expected:?} were expected");
        Ok(per_key(time, self.queries))
    }

    /// The number of items at a load.
    fn items(&self, load: u32) -> usize {
        items(&self.params, load)
    }
}

/// The number of items at a load, computed in 64 bits: the product may exceed 32.
#[allow(clippy::cast_possible_truncation, reason = "no more than there are slots")]
fn items(params: &Params, load: u32) -> usize {
    (params.slots() as u64 * u64::from(load) / 100) as usize
}

/// How many keys should be found: all present ones, and a few of the others by chance.
fn expected(filter: &CuckooFilter, there: usize, queries: usize) -> RangeInclusive<usize> {
    let chance = (queries - there) as f64 * filter.false_positive_rate();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number of keys")]
    let most = (2.0 * chance + 50.0) as usize;
    there..=there + most
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = black_box(work());
    (result, start.elapsed())
}

fn per_key(time: Duration, keys: usize) -> f64 {
    time.as_nanos() as f64 / keys as f64
}
