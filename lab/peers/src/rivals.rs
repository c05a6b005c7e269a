//! The other crates. Each filter is built for the requested false-positive rate, or the nearest one that it offers, as its
//! documentation recommends: for the number of items that it will get, or to grow up to that number.

use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher},
    marker::PhantomData,
    sync::{Mutex, PoisonError},
};

use aleph_filter::AlephFilter;
use anyhow::{anyhow, bail};
use fastbloom_rs::{CountingBloomFilter, Deletable as _, FilterBuilder, Membership as _};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    measure::Contestant,
    peer::{Family, GROWN_FROM, Peer, count},
};

pub(crate) fn fixed(rate: f64) -> Vec<Box<dyn Contestant>> {
    vec![
        Box::new(Cuckoo::<DefaultHasher>::new("its default hasher")),
        Box::new(Cuckoo::<Xxh3>::new("XXH3")),
        Box::new(ScalableCuckoo { rate, grows: false }),
        Box::new(Quotient { rate, grows: false }),
        Box::new(Counting(rate)),
        Box::new(FastBloom::<fastbloom::DefaultHasher>::new(rate, "its default hasher")),
        Box::new(FastBloom::<BuildHasherDefault<Xxh3>>::new(rate, "XXH3")),
        Box::new(Bloom(rate)),
        Box::new(SplitBlock::new(rate)),
        Box::new(Fuse::<xorf::BinaryFuse8>::new("BinaryFuse8", 8)),
        Box::new(Fuse::<xorf::BinaryFuse16>::new("BinaryFuse16", 16)),
    ]
}

/// Filters that grow from [`GROWN_FROM`] items to all of them; and a Bloom filter, which cannot.
pub(crate) fn growing(rate: f64) -> Vec<Box<dyn Contestant>> {
    vec![
        Box::new(Quotient { rate, grows: true }),
        Box::new(ScalableCuckoo { rate, grows: true }),
        Box::new(Aleph { rate, planned: false }),
        Box::new(Aleph { rate, planned: true }),
        Box::new(LockedBloom(rate)),
    ]
}

/// XXH3 as a hasher of the standard library. On little-endian machines, it hashes a `u64` as koel does.
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

/// The hash of a key, for filters that accept hashes.
fn digest(key: u64) -> u64 {
    xxh3_64_with_seed(&key.to_le_bytes(), 0)
}

/// The whole number of bits nearest to log₂ of `ratio`, at least 1.
#[expect(clippy::cast_possible_truncation, reason = "a logarithm of ratios between rates")]
fn nearest_bits(ratio: f64) -> i32 {
    (ratio.log2().round() as i32).max(1)
}

// Cuckoo filters with plain buckets.

/// The load of the smallest table whose number of buckets, of four slots each, is a power of two.
fn load_of_four(items: usize) -> f64 {
    items as f64 / (4.0 * items.div_ceil(4).next_power_of_two() as f64)
}

/// It has fingerprints of 8 bits only. An insertion that finds no free slot drops another item.
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

/// A list of tables: when the last one is full, it adds one of twice the size, whose fingerprints are a bit longer, so that the
/// rates of all together stay below the promised one. With more than one table, a removal may remove another item's fingerprint
/// from the wrong one.
struct ScalableCuckoo {
    rate: f64,
    /// Whether it begins with a table for [`GROWN_FROM`] items, or with one for all of them.
    grows: bool,
}

impl ScalableCuckoo {
    /// The length of fingerprints, at least four bits, with which a table for all items comes nearest to the rate.
    fn fingerprint_bits(&self, items: usize) -> i32 {
        nearest_bits(8.0 * load_of_four(items) / self.rate).max(4)
    }
}

impl Peer for ScalableCuckoo {
    type Filter = scalable_cuckoo_filter::ScalableCuckooFilter<u64, Xxh3>;

    const FAMILY: Family = Family::Cuckoo;

    const MAY_LOSE: bool = true;

    fn title(&self, items: usize) -> String {
        if self.grows {
            return String::from("scalable_cuckoo_filter 0.5, XXH3");
        }
        format!("scalable_cuckoo_filter 0.5, f = {}, load {:.2}", self.fingerprint_bits(items), load_of_four(items))
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.rate)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        // Fingerprints of a first table have ⌈log₂(2/ε) + 3⌉ bits. The factor 1.5 avoids rounding errors at the steps.
        let (capacity, probability) = if self.grows {
            (GROWN_FROM.min(keys.len()), self.rate)
        } else {
            (keys.len(), (1.5 * 2_f64.powi(4 - self.fingerprint_bits(keys.len()))).min(1.0))
        };
        let builder = scalable_cuckoo_filter::ScalableCuckooFilterBuilder::new().initial_capacity(capacity);
        let mut filter = builder.false_positive_probability(probability).hasher(Xxh3::default()).finish();
        keys.iter().for_each(|key| filter.insert(key));
        Ok(filter)
    }

    fn expected_rate(&self, _: &Self::Filter, items: usize) -> f64 {
        // The bound that it promises, if it grows.
        if self.grows { self.rate } else { 8.0 * load_of_four(items) / 2_f64.powi(self.fingerprint_bits(items)) }
    }

    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key))
    }

    /// Of an item whose fingerprint is 0, it claims in any table with an empty slot to have removed it. Where it grows, its debug
    /// assertions notice that, and panic.
    fn remove(&self, filter: &mut Self::Filter, keys: &[u64]) -> Option<usize> {
        let panics = cfg!(debug_assertions) && self.grows;
        (!panics).then(|| count(keys, |key| filter.remove(&key)))
    }
}

// Quotient filters.

/// A quotient filter. It grows when it is full, if it is planned to: it is copied into one of twice the size, with remainders that
/// are one bit shorter. Beyond the plan, it does not grow.
struct Quotient {
    rate: f64,
    /// Whether it is planned to grow from [`GROWN_FROM`] items to all of them.
    grows: bool,
}

impl Quotient {
    /// The load, given a power of two of slots, at least 64, of which it fills at most 95 %; and the length of remainders with
    /// which the rate comes nearest to the requested one.
    fn load_and_remainder_bits(&self, items: usize) -> (f64, i32) {
        let slots = (items as u64).next_power_of_two().max(64);
        let slots = if items as u64 <= (19 * slots).div_ceil(20) { slots } else { 2 * slots };
        let load = items as f64 / slots as f64;
        (load, nearest_bits(load / self.rate))
    }
}

impl Peer for Quotient {
    type Filter = qfilter::Filter;

    const FAMILY: Family = Family::Quotient;

    fn title(&self, items: usize) -> String {
        if self.grows {
            return format!("qfilter 0.3, max_capacity {items}, foldhash");
        }
        let (load, bits) = self.load_and_remainder_bits(items);
        format!("qfilter 0.3, remainders of {bits} bits, load {load:.2}, foldhash")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.rate)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        // It panics without these instructions.
        #[cfg(target_arch = "x86_64")]
        if !(is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt")) {
            bail!("it needs a processor with BMI2 and POPCNT, such as x86-64 ones since 2015; this one lacks them");
        }
        let items = keys.len() as u64;
        let (_, remainder_bits) = self.load_and_remainder_bits(keys.len());
        let mut filter = if self.grows {
            qfilter::Filter::new_resizeable(items.min(GROWN_FROM as u64), items, self.rate)?
        } else {
            qfilter::Filter::new(items, 2_f64.powi(-remainder_bits))?
        };
        for key in keys {
            // `insert` skips items that are found already, of which the second could then not be removed.
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

/// A quotient filter whose fingerprints lose a bit at each doubling, after Dayan, Bercea and Pagh (PVLDB 17(11)). In this crate, new items get fingerprints as short as those of old ones, so that the rate doubles with the size. When no bits
/// are left, an item matches everything in its slot, takes two slots after the next doubling, and is merged with others there.
struct Aleph {
    rate: f64,
    /// Whether it is built for a lower rate, so that it has the promised one when it has doubled as often as it must.
    planned: bool,
}

impl Peer for Aleph {
    type Filter = AlephFilter;

    const FAMILY: Family = Family::Aleph;

    /// Of items that were merged, the removal of one removes all.
    const MAY_LOSE: bool = true;

    fn title(&self, items: usize) -> String {
        let plan = if self.planned { format!(", ε lowered for {items}") } else { String::new() };
        format!("aleph-filter 0.1{plan}, XXH3")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.rate)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<AlephFilter> {
        let items = GROWN_FROM.min(keys.len());
        let growth = if self.planned { keys.len().div_ceil(items).next_power_of_two() } else { 1 };
        let mut filter = AlephFilter::new(items, self.rate / growth as f64);
        keys.iter().for_each(|key| filter.insert(&key.to_le_bytes()));
        Ok(filter)
    }

    /// One slot's items are compared, on average as many as the load, by what is left of their fingerprints.
    fn expected_rate(&self, filter: &AlephFilter, _: usize) -> f64 {
        let matches = filter.load_factor() / f64::from(filter.fp_bits()).exp2();
        -(-matches).exp_m1()
    }

    fn find(&self, filter: &AlephFilter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains(&key.to_le_bytes()))
    }

    fn remove(&self, filter: &mut AlephFilter, keys: &[u64]) -> Option<usize> {
        Some(count(keys, |key| filter.delete(&key.to_le_bytes())))
    }
}

// Bloom filters.

/// A Bloom filter that derives all positions from one hash.
struct FastBloom<S> {
    rate: f64,
    hasher: &'static str,
    marker: PhantomData<fn() -> S>,
}

impl<S> FastBloom<S> {
    fn new(rate: f64, hasher: &'static str) -> Self {
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
struct LockedBloom(pub(super) f64);

impl Peer for LockedBloom {
    type Filter = Mutex<fastbloom::BloomFilter<BuildHasherDefault<Xxh3>>>;

    const FAMILY: Family = Family::Locked;

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
struct Bloom(pub(super) f64);

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

/// A counting Bloom filter, with counters of four bits. Its two hashes are XXH3, and cannot be chosen.
struct Counting(pub(super) f64);

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

/// A blocked Bloom filter, of which a lookup reads one cache line, as in Parquet files: blocks of eight words of 32 bits, in each of which an item sets one bit. It accepts hashes.
struct SplitBlock {
    rate: f64,
    items_per_block: f64,
}

const WORDS: i32 = 8;
const WORD_BITS: u32 = 32;
const BLOCK_BITS: usize = 256;

impl SplitBlock {
    /// Its constructor takes a whole number of bits per item; by the number of blocks, the rate can be chosen freely.
    fn new(rate: f64) -> Self {
        // By bisection. A block with as many items as bits has a rate of nearly 1.
        let (mut low, mut high) = (0.0, f64::from(WORD_BITS) * f64::from(WORDS));
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            if rate_of_blocks(middle) > rate { high = middle } else { low = middle }
        }
        Self { rate, items_per_block: low }
    }

    fn blocks(&self, items: usize) -> usize {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "few more than items, of which there are at most 2³²"
        )]
        let blocks = (items as f64 / self.items_per_block).ceil() as usize;
        blocks
    }
}

/// The rate, given the mean number of items per block: it is Poisson distributed, and a block errs if all of its words do.
fn rate_of_blocks(mean: f64) -> f64 {
    let (mut chance, mut unset, mut rate) = ((-mean).exp(), 1.0, 0.0);
    for items in 1..1000 {
        chance *= mean / f64::from(items);
        unset *= 1.0 - 1.0 / f64::from(WORD_BITS);
        rate += chance * (1.0_f64 - unset).powi(WORDS);
    }
    rate
}

impl Peer for SplitBlock {
    type Filter = sbbf_rs_safe::Filter;

    const FAMILY: Family = Family::Blocked;

    fn title(&self, _: usize) -> String {
        String::from("sbbf-rs-safe 0.3, blocked Bloom, XXH3")
    }

    fn asked_rate(&self) -> Option<f64> {
        Some(self.rate)
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter> {
        let mut filter = sbbf_rs_safe::Filter::new(BLOCK_BITS, self.blocks(keys.len()));
        // The answer, whether the item was found before, is not needed.
        count(keys, |key| filter.insert_hash(digest(key)));
        Ok(filter)
    }

    fn expected_rate(&self, filter: &Self::Filter, items: usize) -> f64 {
        rate_of_blocks(BLOCK_BITS as f64 * items as f64 / (8.0 * filter.as_bytes().len() as f64))
    }

    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize {
        count(keys, |key| filter.contains_hash(digest(key)))
    }
}

// Binary fuse filters.

/// A static filter, built from all keys at once. It accepts hashes.
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

impl<F> Peer for Fuse<F>
where
    F: xorf::Filter<u64> + for<'a> TryFrom<&'a [u64], Error = &'static str>,
{
    type Filter = F;

    const FAMILY: Family = Family::Fuse;

    fn title(&self, _: usize) -> String {
        format!("xorf 0.13, {}", self.name)
    }

    fn asked_rate(&self) -> Option<f64> {
        None
    }

    fn build(&self, keys: &[u64]) -> anyhow::Result<F> {
        // It counts its slots, of which there are more than items, in 32 bits.
        const MOST: usize = 3_800_000_000;
        if keys.len() > MOST {
            bail!("{} items given, but this filter holds at most {MOST}; give fewer --items to measure it", keys.len());
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
    use koel::HashItem as _;

    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn all_hash_alike() {
        for key in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            let koel = koel::Xxh3.hash_item(0, &key);
            assert_eq!(digest(key), koel);
            assert_eq!(BuildHasherDefault::<Xxh3>::default().hash_one(key), koel);
        }
    }

    /// The values are those of the table of sizes in Parquet's specification.
    #[test]
    fn as_many_bits_as_parquet_says() {
        for (rate, bits) in [(0.1, 6.0), (0.01, 10.5), (0.001, 16.9), (0.0001, 26.4), (0.00001, 41.0)] {
            let found = BLOCK_BITS as f64 / SplitBlock::new(rate).items_per_block;
            assert!((found - bits).abs() < 0.06, "{rate}: {found}, not {bits}");
        }
    }
}
