//! What is compared, the keys, and the memory that a filter takes.

use std::{alloc::System, hint::black_box};

use anyhow::bail;
use serde::{Deserialize, Serialize};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

/// The kind of structure, independent of the crate. Koel's filters are a kind of their own, and so are those, koel's or not, that
/// take a lock in each call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Family {
    Bloom,
    Blocked,
    Counting,
    Quotient,
    Aleph,
    Cuckoo,
    Fuse,
    Koel,
    Locked,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) filter: String,
    pub(crate) family: Family,
    /// The rate that it is built for. `None` if its rate cannot be chosen, which its name then says.
    pub(crate) asked_rate: Option<f64>,
}

impl Facts {
    pub(crate) fn new(name: &str, family: Family, asked_rate: Option<f64>) -> Self {
        let own = if asked_rate.is_none() { ", its own ε" } else { "" };
        Self { filter: format!("{name}{own}"), family, asked_rate }
    }
}

/// The number of items that filters which grow have room for at the beginning.
pub(crate) const GROWN_FROM: usize = 1000;

/// The number of keys with a positive answer. The compiler cannot remove any call.
#[inline]
pub(crate) fn count(keys: &[u64], mut answer: impl FnMut(u64) -> bool) -> usize {
    keys.iter().filter(|&&key| black_box(answer(key))).count()
}

/// The keys, the same for all filters: those that are inserted, as many that are not, and as many of which about half are.
pub(crate) struct Keys {
    pub(crate) present: Vec<u64>,
    pub(crate) absent: Vec<u64>,
    /// Present and absent keys in random order, so that neither a filter nor a branch predictor can guess the answer.
    pub(crate) mixed: Vec<u64>,
    /// How many of the mixed keys are present.
    pub(crate) mixed_present: usize,
}

impl Keys {
    pub(crate) fn new(items: usize) -> anyhow::Result<Self> {
        let [mut present, mut absent, mut mixed] = [const { Vec::new() }; 3];
        if [&mut present, &mut absent, &mut mixed].into_iter().any(|keys| keys.try_reserve_exact(items).is_err()) {
            bail!("--items: {items} given, but the keys, of 24 bytes per item, could not be allocated; give fewer");
        }
        let items = items as u64;
        let goes_in = |n: u64| mix(!n) & 1 == 0;
        present.extend((0..items).map(mix));
        absent.extend((items..2 * items).map(mix));
        mixed.extend((0..items).map(|n| mix(if goes_in(n) { n } else { items + n })));
        Ok(Self { present, absent, mixed, mixed_present: (0..items).filter(|&n| goes_in(n)).count() })
    }

    pub(crate) fn len(&self) -> usize {
        self.present.len()
    }
}

/// The last step of `SplitMix64` (Steele, Lea and Flood, 2014): a bijection, so that different numbers give different keys,
/// which look random.
fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The number of allocated bytes on the heap: the same measure for all filters, whatever they report.
pub(crate) fn live() -> usize {
    let stats = ALLOCATOR.stats();
    // The two counts are not read atomically: while tests run in parallel, the difference may be negative.
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}
