//! A counting Bloom filter, which supports deletion.

use fastbloom_rs::{CountingBloomFilter, Deletable as _, FilterBuilder, Membership as _};

use crate::peer::{Family, Peer, count};

/// It has counters of four bits. Its two hashes are XXH3, and cannot be chosen.
pub(super) struct Counting(pub(super) f64);

impl Peer for Counting {
    type Filter = CountingBloomFilter;

    const FAMILY: Family = Family::Counting;

    fn title(&self, _: usize) -> String {
        String::from("fastbloom-rs 0.5, counting Bloom, XXH3")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.0)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<CountingBloomFilter> {
        let mut filter = FilterBuilder::new(keys.len() as u64, self.0).build_counting_bloom_filter();
        keys.iter().for_each(|key| filter.add(&key.to_le_bytes()));
        Ok(filter)
    }

    /// From the numbers of counters and of hashes, which it rounds up.
    fn expected_rate(&self, filter: &CountingBloomFilter, items: usize) -> f64 {
        let config = filter.config();
        let hashes = f64::from(config.hashes);
        let empty = (-hashes * items as f64 / config.size as f64).exp();
        (1.0 - empty).powf(hashes)
    }

    fn find(&self, filter: &CountingBloomFilter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key.to_le_bytes()))
    }

    /// It does not return whether the item was found. Items that it fails to remove are found afterwards.
    fn remove(&self, filter: &mut CountingBloomFilter, keys: &[u64]) -> Option<usize> {
        keys.iter().for_each(|key| filter.remove(&key.to_le_bytes()));
        Some(keys.len())
    }
}
