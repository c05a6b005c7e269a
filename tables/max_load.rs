//! Measures how full tables get before they refuse an item. `plan.rs` derives the loads that are safe to promise.

use koel::{Addressing, CuckooFilter, Prehashed, TableKind};
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use super::{
    plan::{self, Cell, Group},
    split_mix::{SplitMix64, unfolded},
};

pub(crate) const ADDRESSINGS: [Addressing; 2] = [Addressing::AnySize, Addressing::PowerOfTwo];
pub(crate) const BUCKET_SIZES: [u32; 8] = [1, 2, 3, 4, 6, 8, 12, 16];

/// Returns the fingerprint lengths that are measured in buckets of b slots. From the last length on, and in buckets of four and
/// more slots from eight bits on, the load does not depend on the length.
pub(crate) fn fingerprint_bits(b: u32) -> &'static [u32] {
    match b {
        1 => &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 20],
        2 | 3 => &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16],
        _ => &[2, 3, 4, 5, 6, 7, 8, 12],
    }
}

/// The sizes that are measured, as logarithms of the number of buckets.
const MEASURED: [u32; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 17, 19];
/// The number of slots to fill for each size. It determines the number of trials.
const SLOTS_PER_CELL: u64 = 12 << 20;
const MAX_TRIALS: u64 = 40_000;
const MIN_TRIALS: u64 = 6;
const SEED: u64 = 20_261_120;

/// Returns all kinds of tables that are measured, in the order of the file.
pub(crate) fn groups() -> Vec<Group> {
    let sizes = ADDRESSINGS.iter().flat_map(|&addressing| BUCKET_SIZES.map(|b| (addressing, b)));
    sizes.flat_map(|(addressing, b)| fingerprint_bits(b).iter().map(move |&f| Group { addressing, b, f })).collect()
}

/// Measures these kinds of tables on all processors, and returns the whole file.
pub(crate) fn file(groups: Vec<Group>) -> String {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(vec![Vec::new(); groups.len()]));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&group) = groups.get(place) else { return };
                    let cells = measure_group(group);
                    done.lock().expect("no thread panics")[place] = cells;
                    eprintln!("{group:?}");
                }
            });
        }
    });
    let cells = done.into_inner().expect("no thread panics");
    plan::file(SEED, &groups.into_iter().zip(cells).collect::<Vec<_>>())
}

fn measure_group(group: Group) -> Vec<Cell> {
    // A single bucket is the whole table, and any item may use all of it.
    let one = Cell { log2_buckets: 0, trials: MAX_TRIALS, min: 1.0, mean: 1.0, deviation: 0.0 };
    let first = (group.addressing == Addressing::PowerOfTwo).then_some(one);
    first.into_iter().chain(MEASURED.iter().map(|&log2| measure(group, log2))).collect()
}

/// Fills tables of one size until each has no room for an item, and summarizes their loads.
pub(crate) fn measure(group: Group, log2_buckets: u32) -> Cell {
    let Group { addressing, b, f } = group;
    let slots = u64::from(b) << log2_buckets;
    let trials = (SLOTS_PER_CELL / slots).clamp(MIN_TRIALS, MAX_TRIALS);
    let builder = CuckooFilter::builder().table(TableKind::Single).addressing(addressing).buckets(1 << log2_buckets);
    let mut filter = builder.bucket_size(b).fingerprint_bits(f).build().expect("the parameters are valid");
    let mut random = SplitMix64(SEED ^ u64::from(b) << 56 ^ u64::from(f) << 48 ^ u64::from(log2_buckets) << 40);
    let loads: Vec<f64> = (0..trials)
        .map(|_| {
            filter.clear();
            let mut load = 0.0;
            // The filter counts copies for which the table has no room instead of refusing them, and with short fingerprints,
            // many distinct items look like copies. So filling stops at the first item that is not in the table.
            while random.next().is_some_and(|hash| filter.insert(&Prehashed(unfolded(addressing, hash))).is_ok())
                && filter.table_len() == filter.len()
            {
                load = filter.load_factor();
            }
            load
        })
        .collect();
    let mean = loads.iter().sum::<f64>() / trials as f64;
    let deviation = (loads.iter().map(|load| (load - mean).powi(2)).sum::<f64>() / (trials as f64 - 1.0)).sqrt();
    Cell { log2_buckets, trials, min: loads.into_iter().fold(1.0, f64::min), mean, deviation }.rounded()
}
