//! The filters of other crates. Each is built for the requested false-positive rate, or the nearest one that it offers, and for the
//! number of items that it will get, or to grow to that number, as its documentation recommends.

use std::{
    hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hasher},
    sync::{Mutex, MutexGuard, PoisonError},
};

use aleph_filter::AlephFilter;
use anyhow::{anyhow, bail};
use bloomfilter::Bloom;
use fastbloom::BloomFilter;
use fastbloom_rs::{Deletable as _, FilterBuilder, Membership as _};
use koel_lab::structures;
use koel_peers::{Xxh3, digest};
use scalable_cuckoo_filter::ScalableCuckooFilterBuilder;

use crate::{
    measure::Contestant,
    peer::{Facts, Family, GROWN_FROM, count},
};

pub(crate) fn fixed(rate: f64, items: usize) -> Vec<Contestant> {
    vec![
        cuckoo::<DefaultHasher>(items, "its default hasher"),
        cuckoo::<Xxh3>(items, "XXH3"),
        cuckoo_list(rate, items, false),
        quotient(rate, items, false),
        counting_bloom(rate, items),
        one_hash_bloom::<fastbloom::DefaultHasher>(rate, items, "its default hasher"),
        one_hash_bloom::<BuildHasherDefault<Xxh3>>(rate, items, "XXH3"),
        two_hash_bloom(rate),
        blocked_bloom(rate, items),
        fuse::<xorf::BinaryFuse8>("BinaryFuse8", 8),
        fuse::<xorf::BinaryFuse16>("BinaryFuse16", 16),
    ]
}

/// Returns filters that grow from [`GROWN_FROM`] items to all of them, and a Bloom filter, which cannot grow.
pub(crate) fn growing(rate: f64, items: usize) -> Vec<Contestant> {
    vec![
        quotient(rate, items, true),
        cuckoo_list(rate, items, true),
        aleph(rate, items, false),
        aleph(rate, items, true),
        locked_bloom(rate, items),
    ]
}

/// Returns the whole number of bits nearest to log₂ of `ratio`, but at least 1.
#[expect(clippy::cast_possible_truncation, reason = "a logarithm of ratios between rates")]
fn nearest_bits(ratio: f64) -> i32 {
    (ratio.log2().round() as i32).max(1)
}

fn no_removal<F>(_: &mut F, _: &[u64]) -> Option<usize> {
    None
}

// Cuckoo filters with plain buckets.

/// Returns the load of the smallest table for these items whose buckets have four slots and whose number of buckets is a power
/// of two.
fn load_of_four(items: usize) -> f64 {
    items as f64 / (4.0 * items.div_ceil(4).next_power_of_two() as f64)
}

/// A cuckoo filter that has only fingerprints of 8 bits. An insertion that finds no free slot drops another item.
fn cuckoo<H: Hasher + Default + 'static>(items: usize, hasher: &str) -> Contestant {
    let name = format!("cuckoofilter 0.5, f = 8, load {:.2}, {hasher}", load_of_four(items));
    Contestant::new(
        Facts::new(&name, Family::Cuckoo, None),
        |keys| {
            let mut filter = cuckoofilter::CuckooFilter::<H>::with_capacity(keys.len());
            // A refusal means that an item is lost, usually another one. Lost items are counted later.
            count(keys, |key| filter.add(&key).is_ok());
            Ok(filter)
        },
        move |filter| {
            // Each slot takes one byte.
            let slots = filter.memory_usage() - size_of_val(filter);
            let match_one = (items as f64 / slots as f64).min(1.0) / 255.0;
            1.0 - (1.0 - match_one).powi(8)
        },
        |filter, keys| count(keys, |key| filter.contains(&key)),
        |filter, keys| Some(count(keys, |key| filter.delete(&key))),
    )
    .allow_lost_keys()
}

/// A list of cuckoo tables. When the last table is full, the filter adds one of twice the size. Its fingerprints are one bit
/// longer, so that the sum of the rates stays below the promised rate. With more than one table, a removal may remove another
/// item's fingerprint from a wrong table.
///
/// The filter begins with a table for all items, or for [`GROWN_FROM`] items if it grows.
fn cuckoo_list(rate: f64, items: usize, grows: bool) -> Contestant {
    let load = load_of_four(items);
    // With this length of fingerprints, at least four bits, a table for all items comes nearest to the rate.
    let bits = nearest_bits(8.0 * load / rate).max(4);
    // Fingerprints of a first table have ⌈log₂(2/ε) + 3⌉ bits. The factor 1.5 avoids rounding errors at the steps.
    let (name, capacity, probability, expected_rate) = if grows {
        (String::from("scalable_cuckoo_filter 0.5, XXH3"), GROWN_FROM.min(items), rate, rate)
    } else {
        let name = format!("scalable_cuckoo_filter 0.5, f = {bits}, load {load:.2}");
        (name, items, (1.5 * 2_f64.powi(4 - bits)).min(1.0), 8.0 * load / 2_f64.powi(bits))
    };
    Contestant::new(
        Facts::new(&name, Family::Cuckoo, Some(rate)),
        move |keys| {
            let builder = ScalableCuckooFilterBuilder::new().initial_capacity(capacity);
            let mut filter = builder.false_positive_probability(probability).hasher(Xxh3::default()).finish::<u64>();
            keys.iter().for_each(|key| filter.insert(key));
            Ok(filter)
        },
        move |_| expected_rate,
        |filter, keys| count(keys, |key| filter.contains(&key)),
        move |filter, keys| {
            // A removal of an item whose fingerprint is 0 succeeds in any table with an empty slot. If the filter has grown, the
            // crate's debug assertions detect that and panic.
            let panics = cfg!(debug_assertions) && grows;
            (!panics).then(|| count(keys, |key| filter.remove(&key)))
        },
    )
    .allow_lost_keys()
}

// Quotient filters.

/// Returns the load of a quotient filter, and the length of remainders whose rate is nearest to the requested one. The number
/// of slots is a power of two, at least 64, and items fill at most 95 % of them.
fn load_and_remainder_bits(rate: f64, items: usize) -> (f64, i32) {
    let slots = (items as u64).next_power_of_two().max(64);
    let slots = if items as u64 <= (19 * slots).div_ceil(20) { slots } else { 2 * slots };
    let load = items as f64 / slots as f64;
    (load, nearest_bits(load / rate))
}

/// A quotient filter. If `grows` is set, it grows from [`GROWN_FROM`] items to all of them: when it is full, it is copied to one of
/// twice the size, whose remainders are one bit shorter. It does not grow beyond that plan.
fn quotient(rate: f64, items: usize, grows: bool) -> Contestant {
    let (load, bits) = load_and_remainder_bits(rate, items);
    let name = if grows {
        format!("qfilter 0.3, max_capacity {items}, foldhash")
    } else {
        format!("qfilter 0.3, remainders of {bits} bits, load {load:.2}, foldhash")
    };
    Contestant::new(
        Facts::new(&name, Family::Quotient, Some(rate)),
        move |keys| {
            // Without these instructions, the crate panics.
            #[cfg(target_arch = "x86_64")]
            if !(is_x86_feature_detected!("bmi2") && is_x86_feature_detected!("popcnt")) {
                bail!("it needs a processor with BMI2 and POPCNT, such as x86-64 ones since 2015; this one lacks them");
            }
            let mut filter = if grows {
                qfilter::Filter::new_resizeable(items.min(GROWN_FROM) as u64, items as u64, rate)?
            } else {
                qfilter::Filter::new(items as u64, 2_f64.powi(-bits))?
            };
            for key in keys {
                // `insert` skips items that are found already, and a skipped item could not be removed later.
                filter.insert_duplicated(key)?;
            }
            Ok(filter)
        },
        qfilter::Filter::current_error_ratio,
        |filter, keys| count(keys, |key| filter.contains(key)),
        |filter, keys| Some(count(keys, |key| filter.remove(key))),
    )
}

/// A quotient filter whose fingerprints lose a bit at each doubling, after Dayan, Bercea and Pagh (PVLDB 17(11)). In this
/// crate, new items get fingerprints as short as those of old ones, so the rate doubles with the size. An item without bits
/// matches everything in its slot. After the next doubling, it takes two slots and is merged with others there; removing one of
/// them then removes all.
///
/// If `planned` is set, it is built for a lower rate, which rises to the promised one by the doublings that the items need.
fn aleph(rate: f64, items: usize, planned: bool) -> Contestant {
    let first = GROWN_FROM.min(items);
    let (plan, growth) = if planned {
        (format!(", ε lowered for {items}"), items.div_ceil(first).next_power_of_two() as f64)
    } else {
        (String::new(), 1.0)
    };
    Contestant::new(
        Facts::new(&format!("aleph-filter 0.1{plan}, XXH3"), Family::Aleph, Some(rate)),
        move |keys| {
            let mut filter = AlephFilter::new(first, rate / growth);
            keys.iter().for_each(|key| filter.insert(&key.to_le_bytes()));
            Ok(filter)
        },
        |filter| {
            // A lookup compares the remaining fingerprint bits of one slot's items. Their mean number is the load.
            let matches = filter.load_factor() / f64::from(filter.fp_bits()).exp2();
            -(-matches).exp_m1()
        },
        |filter, keys| count(keys, |key| filter.contains(&key.to_le_bytes())),
        |filter, keys| Some(count(keys, |key| filter.delete(&key.to_le_bytes()))),
    )
    .allow_lost_keys()
}

// Bloom filters.

/// A Bloom filter that derives all positions from one hash.
fn one_hash_bloom<S: BuildHasher + Default + 'static>(rate: f64, items: usize, hasher: &str) -> Contestant {
    Contestant::new(
        Facts::new(&format!("fastbloom 0.17, {hasher}"), Family::Bloom, Some(rate)),
        move |keys| {
            let mut filter = empty_bloom::<S>(rate, items);
            // The result, which says whether the item was found before, is not needed.
            count(keys, |key| filter.insert(&key));
            Ok(filter)
        },
        move |filter| filter.expected_false_pos(items),
        |filter, keys| count(keys, |key| filter.contains(&key)),
        no_removal,
    )
}

fn empty_bloom<S: BuildHasher + Default>(rate: f64, items: usize) -> BloomFilter<S> {
    BloomFilter::with_false_pos(rate).hasher(S::default()).expected_items(items)
}

/// A Bloom filter behind a lock, as several threads would share it. It cannot grow, so it has room for all items from the
/// beginning.
fn locked_bloom(rate: f64, items: usize) -> Contestant {
    fn lock<T>(filter: &Mutex<T>) -> MutexGuard<'_, T> {
        filter.lock().unwrap_or_else(PoisonError::into_inner)
    }
    Contestant::new(
        Facts::new(&format!("fastbloom 0.17 in a Mutex, sized for {items}, XXH3"), Family::Locked, Some(rate)),
        move |keys| {
            let filter = Mutex::new(empty_bloom::<BuildHasherDefault<Xxh3>>(rate, items));
            count(keys, |key| lock(&filter).insert(&key));
            Ok(filter)
        },
        move |filter| lock(filter).expected_false_pos(items),
        |filter, keys| count(keys, |key| lock(filter).contains(&key)),
        no_removal,
    )
}

fn two_hash_bloom(rate: f64) -> Contestant {
    let seed = b"Any seed does for a comparison. ";
    Contestant::new(
        Facts::new("bloomfilter 3, SipHash", Family::Bloom, Some(rate)),
        move |keys| {
            let filter = Bloom::new_for_fp_rate_with_seed(keys.len(), rate, seed);
            let mut filter = filter.map_err(|error| anyhow!(error))?;
            keys.iter().for_each(|key| filter.set(key));
            Ok(filter)
        },
        move |_| rate,
        |filter, keys| count(keys, |key| filter.check(&key)),
        no_removal,
    )
}

/// A counting Bloom filter with counters of four bits. Its two hashes are XXH3, and cannot be chosen.
fn counting_bloom(rate: f64, items: usize) -> Contestant {
    Contestant::new(
        Facts::new("fastbloom-rs 0.5, counting Bloom, XXH3", Family::Counting, Some(rate)),
        move |keys| {
            let mut filter = FilterBuilder::new(items as u64, rate).build_counting_bloom_filter();
            keys.iter().for_each(|key| filter.add(&key.to_le_bytes()));
            Ok(filter)
        },
        move |filter| {
            // The filter rounds up the numbers of counters and of hashes.
            let (counters, hashes) = (filter.config().size as f64, f64::from(filter.config().hashes));
            (1.0 - (-hashes * items as f64 / counters).exp()).powf(hashes)
        },
        |filter, keys| count(keys, |key| filter.contains(&key.to_le_bytes())),
        |filter, keys| {
            // `remove` does not return whether the item was found. Later lookups find the items that it fails to remove.
            keys.iter().for_each(|key| filter.remove(&key.to_le_bytes()));
            Some(keys.len())
        },
    )
}

const WORDS: i32 = 8;
const WORD_BITS: u32 = 32;
const BLOCK_BITS: usize = 256;

/// A blocked Bloom filter, as in Parquet files. A lookup reads one cache line. Blocks have eight words of 32 bits, and an item
/// sets one bit in each word of its block. The filter accepts hashes.
///
/// Its constructor takes a whole number of bits per item, but the number of blocks allows any rate.
fn blocked_bloom(rate: f64, items: usize) -> Contestant {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "items are 2³² at most")]
    let blocks = (items as f64 / items_per_block(rate)).ceil() as usize;
    Contestant::new(
        Facts::new("sbbf-rs-safe 0.3, blocked Bloom, XXH3", Family::Blocked, Some(rate)),
        move |keys| {
            let mut filter = sbbf_rs_safe::Filter::new(BLOCK_BITS, blocks);
            // The result, which says whether the item was found before, is not needed.
            count(keys, |key| filter.insert_hash(digest(key)));
            Ok(filter)
        },
        move |filter| rate_of_block_size(BLOCK_BITS as f64 * items as f64 / (8.0 * filter.as_bytes().len() as f64)),
        |filter, keys| count(keys, |key| filter.contains_hash(digest(key))),
        no_removal,
    )
}

/// Returns the mean number of items per block at which a blocked Bloom filter has this rate, by bisection.
fn items_per_block(rate: f64) -> f64 {
    // A block with as many items as bits has a rate of nearly 1.
    let (mut low, mut high) = (0.0, f64::from(WORD_BITS) * f64::from(WORDS));
    for _ in 0..50 {
        let middle = f64::midpoint(low, high);
        if rate_of_block_size(middle) > rate { high = middle } else { low = middle }
    }
    low
}

/// Returns the rate, given the mean number of items per block. An item sets one bit in each word of its block.
fn rate_of_block_size(mean: f64) -> f64 {
    structures::rate_of_blocks(mean, 1.0 - 1.0 / f64::from(WORD_BITS), WORDS)
}

// Binary fuse filters.

/// A static filter, which is built from all keys at once and accepts hashes.
fn fuse<F>(name: &str, bits: i32) -> Contestant
where
    F: xorf::Filter<u64> + for<'a> TryFrom<&'a [u64], Error = &'static str> + 'static,
{
    /// The greatest number of items. The filter has more slots than items, and counts them in 32 bits.
    const MAX_ITEMS: usize = 3_800_000_000;
    Contestant::new(
        Facts::new(&format!("xorf 0.13, {name}"), Family::Fuse, None),
        |keys| {
            if keys.len() > MAX_ITEMS {
                bail!("{} items given, but this filter holds at most {MAX_ITEMS}; give fewer --items to measure it", keys.len());
            }
            let digests: Vec<_> = keys.iter().map(|&key| digest(key)).collect();
            F::try_from(&digests).map_err(|error| anyhow!(error))
        },
        move |_| 2_f64.powi(-bits),
        |filter, keys| count(keys, |key| filter.contains(&digest(key))),
        no_removal,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are from the table of sizes in Parquet's specification.
    #[test]
    fn bits_match_parquets_specification() {
        for (rate, bits) in [(0.1, 6.0), (0.01, 10.5), (0.001, 16.9), (0.0001, 26.4), (0.00001, 41.0)] {
            let found = BLOCK_BITS as f64 / items_per_block(rate);
            assert!((found - bits).abs() < 0.06, "{rate}: {found}, not {bits}");
        }
    }
}
