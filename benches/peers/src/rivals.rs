//! The other crates. Each is built as near to koel's false-positive rate as it lets one choose, and for the number of
//! items that it will get, by whatever its documentation recommends for that.

use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher},
    marker::PhantomData,
};

use anyhow::{anyhow, bail};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    measure::Contestant,
    ours::reference_rate,
    peer::{Peer, count},
};

pub(crate) fn all() -> Vec<Box<dyn Contestant>> {
    vec![
        Box::new(Cuckoo::<DefaultHasher>::new("its default hasher")),
        Box::new(Cuckoo::<Xxh3>::new("XXH3")),
        Box::new(ScalableCuckoo),
        Box::new(Quotient),
        Box::new(FastBloom::<fastbloom::DefaultHasher>::new("its default hasher")),
        Box::new(FastBloom::<BuildHasherDefault<Xxh3>>::new("XXH3")),
        Box::new(Bloom),
        Box::new(Fuse::<xorf::BinaryFuse8>::new("BinaryFuse8", 8)),
        Box::new(Fuse::<xorf::BinaryFuse16>::new("BinaryFuse16", 16)),
    ]
}

/// XXH3 as the standard library wants its hashers. Of one `u64` it makes what koel does, where bytes are little-endian.
#[derive(Clone, Default)]
struct Xxh3(u64);

impl Hasher for Xxh3 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The load of the smallest table with a power of two of buckets of four.
fn load_of_four(items: usize) -> f64 {
    items as f64 / (4.0 * items.div_ceil(4).next_power_of_two() as f64)
}

/// The whole number of bits next to log₂ of `ratio`, at least 1.
#[expect(clippy::cast_possible_truncation, reason = "a logarithm of ratios between rates")]
fn nearest_bits(ratio: f64) -> i32 {
    (ratio.log2().round() as i32).max(1)
}

/// Fingerprints of 8 bits, nothing else. An insertion that finds no room throws out another item.
struct Cuckoo<H> {
    hasher: &'static str,
    marker: PhantomData<fn() -> H>,
}

impl<H> Cuckoo<H> {
    fn new(hasher: &'static str) -> Self {
        Self { hasher, marker: PhantomData }
    }
}

impl<H: Hasher + Default> Peer for Cuckoo<H> {
    type Filter = cuckoofilter::CuckooFilter<H>;

    const MAY_LOSE: bool = true;

    fn title(&self, items: usize) -> String {
        format!("cuckoofilter 0.5, f = 8, load {:.2}, {}", load_of_four(items), self.hasher)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        let mut filter = Self::Filter::with_capacity(keys.len());
        // A refusal means that some item is gone, mostly another one: it will be counted.
        count(keys, |key| filter.add(&key).is_ok());
        Ok(filter)
    }

    fn expected_rate(&self, filter: &Self::Filter, items: usize) -> f64 {
        // A slot is a byte.
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

/// Grows by adding a table of twice the size when the last one is full. With more than one, a removal may take another
/// item's fingerprint out of the wrong table.
struct ScalableCuckoo;

impl ScalableCuckoo {
    /// The length of fingerprints with which the first table comes nearest to koel's rate.
    fn fingerprint_bits(items: usize) -> i32 {
        nearest_bits(8.0 * load_of_four(items) / reference_rate())
    }
}

impl Peer for ScalableCuckoo {
    type Filter = scalable_cuckoo_filter::ScalableCuckooFilter<u64, Xxh3>;

    const MAY_LOSE: bool = true;

    fn title(&self, items: usize) -> String {
        format!("scalable_cuckoo_filter 0.5, f = {}, load {:.2}", Self::fingerprint_bits(items), load_of_four(items))
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        // It makes fingerprints of ⌈log₂(2/ε) + 3⌉ bits. The 1.5 keeps away from the step.
        let probability = 1.5 * 2_f64.powi(4 - Self::fingerprint_bits(keys.len()));
        let mut filter = scalable_cuckoo_filter::ScalableCuckooFilterBuilder::new()
            .initial_capacity(keys.len())
            .false_positive_probability(probability.min(1.0))
            .hasher(Xxh3::default())
            .finish();
        keys.iter().for_each(|key| filter.insert(key));
        Ok(filter)
    }

    fn expected_rate(&self, _: &Self::Filter, items: usize) -> f64 {
        8.0 * load_of_four(items) / 2_f64.powi(Self::fingerprint_bits(items))
    }

    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key))
    }

    fn remove(&self, filter: &mut Self::Filter, keys: &[u64]) -> Option<usize> {
        Some(count(keys, |key| filter.remove(&key)))
    }
}

/// A quotient filter.
struct Quotient;

impl Quotient {
    /// The load of a power of two of slots, from 64 up, of which it fills 19 in 20; and the length of remainders with which
    /// that comes nearest to koel's rate.
    fn load_and_remainder_bits(items: usize) -> (f64, i32) {
        let slots = (items as u64).next_power_of_two().max(64);
        let slots = if items as u64 <= (19 * slots).div_ceil(20) { slots } else { 2 * slots };
        let load = items as f64 / slots as f64;
        (load, nearest_bits(load / reference_rate()))
    }
}

impl Peer for Quotient {
    type Filter = qfilter::Filter;

    fn title(&self, items: usize) -> String {
        let (load, bits) = Self::load_and_remainder_bits(items);
        format!("qfilter 0.3, remainders of {bits} bits, load {load:.2}, foldhash")
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        // It panics without.
        #[cfg(target_arch = "x86_64")]
        if !(is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt")) {
            bail!("this processor has no BMI2, which it needs; take one of after 2015");
        }
        let (_, remainder_bits) = Self::load_and_remainder_bits(keys.len());
        let mut filter = qfilter::Filter::new(keys.len() as u64, 2_f64.powi(-remainder_bits))?;
        for key in keys {
            // The plain insertion skips what seems to be there, which could then be removed but once.
            filter.insert_duplicated(key)?;
        }
        Ok(filter)
    }

    fn expected_rate(&self, filter: &Self::Filter, _: usize) -> f64 {
        filter.current_error_ratio()
    }

    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(key))
    }

    fn remove(&self, filter: &mut Self::Filter, keys: &[u64]) -> Option<usize> {
        Some(count(keys, |key| filter.remove(key)))
    }
}

/// A Bloom filter that makes all positions from one hash.
struct FastBloom<S> {
    hasher: &'static str,
    marker: PhantomData<fn() -> S>,
}

impl<S> FastBloom<S> {
    fn new(hasher: &'static str) -> Self {
        Self { hasher, marker: PhantomData }
    }
}

impl<S: BuildHasher + Default> Peer for FastBloom<S> {
    type Filter = fastbloom::BloomFilter<S>;

    fn title(&self, _: usize) -> String {
        format!("fastbloom 0.17, {}", self.hasher)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        let builder = fastbloom::BloomFilter::with_false_pos(reference_rate()).hasher(S::default());
        let mut filter = builder.expected_items(keys.len());
        // It answers whether the item seemed to be there, which nobody asked for.
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

/// A Bloom filter with two hashes.
struct Bloom;

impl Peer for Bloom {
    type Filter = bloomfilter::Bloom<u64>;

    fn title(&self, _: usize) -> String {
        String::from("bloomfilter 3, SipHash")
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        let seed = b"Any seed does for a comparison. ";
        let filter = bloomfilter::Bloom::new_for_fp_rate_with_seed(keys.len(), reference_rate(), seed);
        let mut filter = filter.map_err(|error| anyhow!(error))?;
        keys.iter().for_each(|key| filter.set(key));
        Ok(filter)
    }

    fn expected_rate(&self, _: &Self::Filter, _: usize) -> f64 {
        reference_rate()
    }

    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize {
        count(keys, |key| filter.check(&key))
    }
}

/// A static filter: made of all keys at once, never changed. It takes hashes, so the caller hashes.
struct Fuse<F> {
    name: &'static str,
    bits: i32,
    filter: PhantomData<F>,
}

impl<F> Fuse<F> {
    fn new(name: &'static str, bits: i32) -> Self {
        Self { name, bits, filter: PhantomData }
    }
}

fn digest(key: u64) -> u64 {
    xxh3_64_with_seed(&key.to_le_bytes(), 0)
}

impl<F> Peer for Fuse<F>
where
    F: xorf::Filter<u64> + for<'a> TryFrom<&'a [u64], Error = &'static str>,
{
    type Filter = F;

    fn title(&self, _: usize) -> String {
        format!("xorf 0.13, {}", self.name)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<F> {
        // It counts its slots, of which it has more than items, in 32 bits.
        const MOST: usize = 3_800_000_000;
        if keys.len() > MOST {
            bail!("{} items given, but it takes {MOST}; give fewer --items to see it", keys.len());
        }
        let digests: Vec<_> = keys.iter().map(|&key| digest(key)).collect();
        F::try_from(&digests).map_err(|error| anyhow!(error))
    }

    fn expected_rate(&self, _: &F, _: usize) -> f64 {
        2_f64.powi(-self.bits)
    }

    fn find(&self, filter: &F, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&digest(key)))
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn all_hash_alike() {
        let koel = koel::CuckooFilter::builder().capacity(1).fingerprint_bits(13).build().unwrap();
        for key in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            assert_eq!(digest(key), koel.hash(&key));
            assert_eq!(BuildHasherDefault::<Xxh3>::default().hash_one(key), koel.hash(&key));
        }
    }
}
