//! Plain Bloom filters.

use std::{
    hash::{BuildHasher, BuildHasherDefault},
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

use anyhow::anyhow;

use super::Xxh3;
use crate::peer::{Family, Peer, count};

/// A Bloom filter that derives all positions from one hash.
pub(super) struct FastBloom<S> {
    rate: f64,
    hasher: &'static str,
    marker: PhantomData<fn() -> S>,
}

impl<S> FastBloom<S> {
    pub(super) fn new(rate: f64, hasher: &'static str) -> Self {
        Self { rate, hasher, marker: PhantomData }
    }
}

impl<S: BuildHasher + Default> Peer for FastBloom<S> {
    type Filter = fastbloom::BloomFilter<S>;

    const FAMILY: Family = Family::Bloom;

    fn title(&self, _: usize) -> String {
        format!("fastbloom 0.17, {}", self.hasher)
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.rate)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        let mut filter = empty::<S>(self.rate, keys.len());
        // The answer, whether the item was found before, is not needed.
        count(keys, |key| filter.insert(&key));
        Ok(filter)
    }

    fn expected_rate(&self, filter: &Self::Filter, items: usize) -> f64 {
        filter.expected_false_pos(items)
    }

    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key))
    }
}

fn empty<S: BuildHasher + Default>(rate: f64, items: usize) -> fastbloom::BloomFilter<S> {
    fastbloom::BloomFilter::with_false_pos(rate).hasher(S::default()).expected_items(items)
}

/// The same behind a lock, as several threads would share it. It cannot grow, so it has room for all items from the beginning.
pub(super) struct LockedBloom(pub(super) f64);

impl Peer for LockedBloom {
    type Filter = Mutex<fastbloom::BloomFilter<BuildHasherDefault<Xxh3>>>;

    const FAMILY: Family = Family::Bloom;

    fn title(&self, items: usize) -> String {
        format!("fastbloom 0.17 in a Mutex, sized for {items}, XXH3")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.0)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        let filter = Mutex::new(empty(self.0, keys.len()));
        // The answer, whether the item was found before, is not needed.
        count(keys, |key| filter.lock().unwrap_or_else(PoisonError::into_inner).insert(&key));
        Ok(filter)
    }

    fn expected_rate(&self, filter: &Self::Filter, items: usize) -> f64 {
        filter.lock().unwrap_or_else(PoisonError::into_inner).expected_false_pos(items)
    }

    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize {
        count(keys, |key| filter.lock().unwrap_or_else(PoisonError::into_inner).contains(&key))
    }
}

/// A Bloom filter with two hashes.
pub(super) struct Bloom(pub(super) f64);

impl Peer for Bloom {
    type Filter = bloomfilter::Bloom<u64>;

    const FAMILY: Family = Family::Bloom;

    fn title(&self, _: usize) -> String {
        String::from("bloomfilter 3, SipHash")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.0)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        let seed = b"Any seed does for a comparison. ";
        let filter = bloomfilter::Bloom::new_for_fp_rate_with_seed(keys.len(), self.0, seed);
        let mut filter = filter.map_err(|error| anyhow!(error))?;
        keys.iter().for_each(|key| filter.set(key));
        Ok(filter)
    }

    fn expected_rate(&self, _: &Self::Filter, _: usize) -> f64 {
        self.0
    }

    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize {
        count(keys, |key| filter.check(&key))
    }
}
