//! Describes a filter and generates the keys.

use std::hint::black_box;

use anyhow::bail;
use koel_peers::mix;
use serde::{Deserialize, Serialize};

/// The kind of structure, independent of the crate. Koel's filters are their own kind. So are all filters that take a lock in each
/// call, koel's included.
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

/// The name and kind of a filter, and the rate that it is built for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Facts {
    pub(crate) filter: String,
    pub(crate) family: Family,
    /// The rate that the filter is built for. `None` if its rate cannot be chosen; the name then says so.
    pub(crate) asked_rate: Option<f64>,
}

impl Facts {
    pub(crate) fn new(name: &str, family: Family, asked_rate: Option<f64>) -> Self {
        let own = if asked_rate.is_none() { ", its own ε" } else { "" };
        Self { filter: format!("{name}{own}"), family, asked_rate }
    }
}

/// The number of items for which growing filters have room at the beginning.
pub(crate) const GROWN_FROM: usize = 1000;

/// Returns the number of keys for which `operation` returns true. The compiler cannot remove any call.
#[inline]
pub(crate) fn count(keys: &[u64], mut operation: impl FnMut(u64) -> bool) -> usize {
    keys.iter().filter(|&&key| black_box(operation(key))).count()
}

/// The keys for all filters: the present ones, which are inserted; as many absent ones; and as many mixed ones, about half of which
/// are present.
pub(crate) struct Keys {
    pub(crate) present: Vec<u64>,
    pub(crate) absent: Vec<u64>,
    /// Present and absent keys in random order, so that a branch predictor cannot guess the result of a lookup.
    pub(crate) mixed: Vec<u64>,
    /// The number of mixed keys that are present.
    pub(crate) mixed_present: usize,
}

impl Keys {
    pub(crate) fn new(items: usize) -> anyhow::Result<Self> {
        let [mut present, mut absent, mut mixed] = [const { Vec::new() }; 3];
        if [&mut present, &mut absent, &mut mixed].into_iter().any(|keys| keys.try_reserve_exact(items).is_err()) {
            bail!("--items: {items} given, but the keys, of 24 bytes per item, could not be allocated; give fewer");
        }
        let items = items as u64;
        let is_present = |n: u64| mix(!n) & 1 == 0;
        present.extend((0..items).map(mix));
        absent.extend((items..2 * items).map(mix));
        mixed.extend((0..items).map(|n| mix(if is_present(n) { n } else { items + n })));
        Ok(Self { present, absent, mixed, mixed_present: (0..items).filter(|&n| is_present(n)).count() })
    }

    pub(crate) fn len(&self) -> usize {
        self.present.len()
    }
}
