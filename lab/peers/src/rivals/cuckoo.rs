//! Cuckoo filters with plain buckets.

use std::{hash::Hasher, marker::PhantomData};

use super::{Xxh3, nearest_bits};
use crate::peer::{Family, GROWN_FROM, Peer, count};

/// The load of the smallest table whose number of buckets, of four slots each, is a power of two.
fn load_of_four(items: usize) -> f64 {
    items as f64 / (4.0 * items.div_ceil(4).next_power_of_two() as f64)
}

/// It has fingerprints of 8 bits only. An insertion that finds no free slot drops another item.
pub(super) struct Cuckoo<H> {
    hasher: &'static str,
    marker: PhantomData<fn() -> H>,
}

impl<H> Cuckoo<H> {
    pub(super) fn new(hasher: &'static str) -> Self {
        Self { hasher, marker: PhantomData }
    }
}

impl<H: Hasher + Default> Peer for Cuckoo<H> {
    type Filter = cuckoofilter::CuckooFilter<H>;

    const FAMILY: Family = Family::Cuckoo;

    const MAY_LOSE: bool = true;

    fn title(&self, items: usize) -> String {
        format!("cuckoofilter 0.5, f = 8, load {:.2}, {}", load_of_four(items), self.hasher)
    }

    fn asked_rate(&self) -> Option<f64> {
        None
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        let mut filter = Self::Filter::with_capacity(keys.len());
        // A refusal means that an item is lost, mostly another one. Lost items are counted later.
        count(keys, |key| filter.add(&key).is_ok());
        Ok(filter)
    }

    fn expected_rate(&self, filter: &Self::Filter, items: usize) -> f64 {
        // A slot takes one byte.
        let slots = filter.memory_usage() - size_of::<Self::Filter>();
        let match_one = (items as f64 / slots as f64).min(1.0) / 255.0;
        1.0 - (1.0 - match_one).powi(8)
    }

    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key))
    }

    fn remove(&self, filter: &mut Self::Filter, keys: &[u64]) -> Option<usize> {
        Some(count(keys, |key| filter.delete(&key)))
    }
}

/// A list of tables with hashes of XXH3.
type Tables = scalable_cuckoo_filter::ScalableCuckooFilter<u64, Xxh3>;

/// It grows by adding a table of twice the size when the last one is full. With more than one table, a removal may remove
/// another item's fingerprint from the wrong one. Here, its first table has room for all items.
pub(super) struct ScalableCuckoo(pub(super) f64);

impl ScalableCuckoo {
    /// The length of fingerprints, at least four bits, with which the first table comes nearest to the rate.
    fn fingerprint_bits(&self, items: usize) -> i32 {
        nearest_bits(8.0 * load_of_four(items) / self.0).max(4)
    }
}

impl Peer for ScalableCuckoo {
    type Filter = Tables;

    const FAMILY: Family = Family::Cuckoo;

    const MAY_LOSE: bool = true;

    fn title(&self, items: usize) -> String {
        format!("scalable_cuckoo_filter 0.5, f = {}, load {:.2}", self.fingerprint_bits(items), load_of_four(items))
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.0)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        // Its fingerprints have ⌈log₂(2/ε) + 3⌉ bits. The factor 1.5 avoids rounding errors at the steps.
        let probability = 1.5 * 2_f64.powi(4 - self.fingerprint_bits(keys.len()));
        Ok(filled(keys.len(), probability.min(1.0), keys))
    }

    fn expected_rate(&self, _: &Self::Filter, items: usize) -> f64 {
        8.0 * load_of_four(items) / 2_f64.powi(self.fingerprint_bits(items))
    }

    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key))
    }

    fn remove(&self, filter: &mut Self::Filter, keys: &[u64]) -> Option<usize> {
        Some(count(keys, |key| filter.remove(&key)))
    }
}

/// The same, which begins with a table for [`GROWN_FROM`] items. Each further table has fingerprints that are a bit longer, so
/// that the rates of all tables together stay below the promised one.
pub(super) struct GrownCuckoo(pub(super) f64);

impl Peer for GrownCuckoo {
    type Filter = Tables;

    const FAMILY: Family = Family::Cuckoo;

    const MAY_LOSE: bool = true;

    fn title(&self, _: usize) -> String {
        String::from("scalable_cuckoo_filter 0.5, XXH3")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.0)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Tables> {
        Ok(filled(GROWN_FROM.min(keys.len()), self.0, keys))
    }

    /// The bound that it promises.
    fn expected_rate(&self, _: &Tables, _: usize) -> f64 {
        self.0
    }

    fn find(&self, filter: &Tables, keys: &[u64]) -> usize {
        ScalableCuckoo(self.0).find(filter, keys)
    }

    /// Of an item whose fingerprint is 0, it claims in any table with an empty slot to have removed it. Its debug assertions
    /// notice that, and panic.
    fn remove(&self, filter: &mut Tables, keys: &[u64]) -> Option<usize> {
        if cfg!(debug_assertions) { None } else { ScalableCuckoo(self.0).remove(filter, keys) }
    }
}

/// A filter with all keys in it, whose first table has this capacity.
fn filled(capacity: usize, probability: f64, keys: &[u64]) -> Tables {
    let builder = scalable_cuckoo_filter::ScalableCuckooFilterBuilder::new().initial_capacity(capacity);
    let mut filter = builder.false_positive_probability(probability).hasher(Xxh3::default()).finish();
    keys.iter().for_each(|key| filter.insert(key));
    filter
}
