//! Hashes whose bits were used before, and numbers that are not uniform: filters of all sizes keep their capacity and their
//! false-positive rate.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small numbers")]

use crate::common::{SplitMix64, same_bits};
use koel::{CuckooFilter, Prehashed};

/// 99.9 % of a normal distribution lie within this many standard deviations of the mean.
const QUANTILE: f64 = 3.29;

/// The number of lookups of absent hashes, for each kind of filter and of hashes.
const PROBES: usize = 1_000_000;

const CAPACITIES: [usize; 3] = [2_000, 20_000, 200_000];
const FINGERPRINT_BITS: [u32; 2] = [8, 13];

fn filter(capacity: usize, f: u32) -> CuckooFilter {
    CuckooFilter::builder().capacity(capacity).fingerprint_bits(f).build().expect("valid parameters")
}

/// Counts over several filters with equal parameters.
struct Tally<'a> {
    case: &'a str,
    f: u32,
    capacity: usize,
    filters: usize,
    probes: usize,
    found: usize,
}

impl<'a> Tally<'a> {
    fn new(case: &'a str, capacity: usize, f: u32) -> Self {
        Self { case, f, capacity, filters: 0, probes: 0, found: 0 }
    }

    /// Fills a filter to its capacity, checks that all items fit and are found, and counts false positives among other hashes.
    fn fill_and_probe(&mut self, filter: &mut CuckooFilter, hashes: &mut impl Iterator<Item = u64>, probes: usize) {
        let own: Vec<u64> = hashes.take(filter.capacity()).collect();
        filter.insert_batch(&Prehashed(&own)).unwrap_or_else(|full| panic!("{}, f = {}: {full}", self.case, self.f));
        assert_eq!((filter.len(), filter.count_members(&Prehashed(&own))), (filter.capacity(), own.len()));
        let others: Vec<u64> = hashes.take(probes).collect();
        self.found += filter.count_members(&Prehashed(&others));
        self.probes += others.len();
        self.filters += 1;
    }

    /// Compares the measured rate with the stated one of `filter`, the last of the filters.
    fn check_rate(&self, filter: &CuckooFilter) {
        let (expected, measured) = (filter.false_positive_rate(), self.found as f64 / self.probes as f64);
        // Two things are random: which probes are found, and which fingerprints the tables hold.
        let fingerprints = f64::from((1u32 << self.f) - 1);
        let probe_variance = expected * (1.0 - expected) / self.probes as f64;
        let table_variance = 64.0 * filter.load_factor() / ((filter.slots() * self.filters) as f64 * fingerprints);
        let tolerance = QUANTILE * (probe_variance + table_variance).sqrt();
        assert!(
            (measured - expected).abs() <= tolerance,
            "{}, {} filters of {}, f = {}: measured {measured:.6}, expected {expected:.6} ± {tolerance:.6}",
            self.case,
            self.filters,
            self.capacity,
            self.f
        );
    }
}

/// A name, and a function that generates the hashes of one shard from a seed.
type Shard = (&'static str, fn(u64) -> Box<dyn Iterator<Item = u64>>);

/// Generates random numbers, in which `restrict` makes some bits, or the remainder, equal.
fn random(seed: u64, restrict: impl Fn(u64, u64) -> u64 + 'static) -> Box<dyn Iterator<Item = u64>> {
    let shard = SplitMix64(!seed).next().unwrap_or_default();
    Box::new(SplitMix64(seed).map(move |hash| restrict(hash, shard)))
}

/// Generates numbers at equal distances.
fn regular(seed: u64, distance: u64) -> Box<dyn Iterator<Item = u64>> {
    // The first filter gets the numbers from zero on, as a counter gives them.
    let start = SplitMix64(seed).next().filter(|_| seed > 0).unwrap_or_default();
    Box::new((0..).map(move |n: u64| start.wrapping_add(n.wrapping_mul(distance))))
}

fn high(hash: u64, shard: u64, bits: u32) -> u64 {
    hash >> bits | shard << (64 - bits)
}

fn low(hash: u64, shard: u64, bits: u32) -> u64 {
    hash << bits | shard & ((1 << bits) - 1)
}

fn modulo(hash: u64, shard: u64, shards: u64) -> u64 {
    // Leaves out the last multiple, because adding the remainder could overflow.
    (hash / shards).saturating_sub(1) * shards + shard % shards
}

const SHARDS: [Shard; 11] = [
    ("all hashes", |seed| random(seed, |hash, _| hash)),
    ("16 shards by the high bits", |seed| random(seed, |hash, shard| high(hash, shard, 4))),
    ("1024 shards by the high bits", |seed| random(seed, |hash, shard| high(hash, shard, 10))),
    ("65536 shards by the high bits", |seed| random(seed, |hash, shard| high(hash, shard, 16))),
    ("16 shards by the low bits", |seed| random(seed, |hash, shard| low(hash, shard, 4))),
    ("65536 shards by the low bits", |seed| random(seed, |hash, shard| low(hash, shard, 16))),
    ("7 shards by the remainder", |seed| random(seed, |hash, shard| modulo(hash, shard, 7))),
    ("1000 shards by the remainder", |seed| random(seed, |hash, shard| modulo(hash, shard, 1000))),
    ("sequential integers", |seed| regular(seed, 1)),
    ("multiples of 8", |seed| regular(seed, 8)),
    ("multiples of 1000", |seed| regular(seed, 1000)),
];

/// Only here do all hashes have some bits in common, as those that a caller sends to one shard. This test alone finds buckets or
/// fingerprints that need these bits.
#[test]
fn hashes_of_one_shard_keep_capacity_and_rate() {
    for (case, shard) in SHARDS {
        for capacity in CAPACITIES {
            for f in FINGERPRINT_BITS {
                let (mut tally, mut filter) = (Tally::new(case, capacity, f), filter(capacity, f));
                // The total number of items is the same for each capacity.
                let filters = CAPACITIES[2] / capacity;
                for seed in 0..filters as u64 {
                    filter.clear();
                    tally.fill_and_probe(&mut filter, &mut shard(seed), PROBES / filters);
                }
                tally.check_rate(&filter);
            }
        }
    }
}

/// Hashes each item once, and uses the hash to choose a shard and then in that shard's filter.
fn check_sharded_service(case: &str, shards: usize, capacity: usize, shard: fn(u64) -> usize) {
    for f in FINGERPRINT_BITS {
        let mut filters = vec![filter(capacity, f); shards];
        let (room, probes) = (filters[0].capacity(), PROBES / shards);
        let mut shard_hashes = vec![Vec::new(); shards];
        let (mut incomplete, mut item) = (shards, 0u64);
        while incomplete > 0 {
            let hash = filters[0].hash(&item);
            let hashes: &mut Vec<u64> = &mut shard_hashes[shard(hash)];
            if hashes.len() < room + probes {
                hashes.push(hash);
                incomplete -= usize::from(hashes.len() == room + probes);
            }
            item += 1;
        }
        let mut tally = Tally::new(case, capacity, f);
        for (filter, hashes) in filters.iter_mut().zip(shard_hashes) {
            tally.fill_and_probe(filter, &mut hashes.into_iter(), probes);
        }
        tally.check_rate(&filters[0]);
        // An item that was inserted by its hash is found by itself, too.
        let first = filters[0].hash(&0u64);
        assert!(filters[shard(first)].contains(&0u64));
    }
}

#[test]
fn hashes_that_chose_the_shard_keep_capacity_and_rate() {
    check_sharded_service("items, 16 shards by the high bits", 16, 20_000, |hash| (hash >> 60) as usize);
    check_sharded_service("items, 1024 shards by the high bits", 1024, 2_000, |hash| (hash >> 54) as usize);
    check_sharded_service("items, 16 shards by the low bits", 16, 20_000, |hash| (hash % 16) as usize);
    check_sharded_service("items, 7 shards by the remainder", 7, 200_000, |hash| (hash % 7) as usize);
    check_sharded_service("items, 1000 shards by the remainder", 1000, 2_000, |hash| (hash % 1000) as usize);
}

/// Inserting, looking up, counting and removing an item or its hash has the same effect, in batches, too.
#[test]
fn items_and_their_hashes_are_interchangeable() {
    for addressing in crate::common::ADDRESSINGS {
        let builder = CuckooFilter::builder().capacity(1000).fingerprint_bits(9).addressing(addressing).seed(7);
        let mut items = builder.build().expect("valid parameters");
        let (mut hashes, mut batch) = (items.clone(), items.clone());
        let all: Vec<u64> = (0..1500u64).map(|item| items.hash(&item)).collect();
        for (item, &hash) in all[..900].iter().enumerate() {
            items.insert(&(item as u64)).and_then(|()| hashes.insert(&Prehashed(hash))).expect("they fit");
        }
        batch.insert_batch(&Prehashed(&all[..900])).expect("they fit");
        assert!(same_bits(&items, &hashes) && same_bits(&items, &batch));
        for (item, &hash) in (0u64..).zip(&all) {
            assert_eq!(items.contains(&item), items.contains(&Prehashed(hash)));
            assert_eq!(items.count(&item), items.count(&Prehashed(hash)));
        }
        assert!((0..900u64).all(|item| items.remove(&Prehashed(all[item as usize])) && hashes.remove(&item)));
        assert!(same_bits(&items, &hashes) && items.is_empty());
    }
}

/// Inserts numbers that are not uniform into filters that grow to many times their capacity and beyond their plan. The measured
/// rate agrees with the stated one and does not exceed the promised one.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn structured_numbers_keep_the_rate_of_a_growing_filter() {
    type Shape = (&'static str, fn(u64) -> u64);
    const SHAPES: [Shape; 9] = [
        ("sequential", |n| n),
        ("reversed", u64::reverse_bits),
        ("bytes swapped", u64::swap_bytes),
        ("shifted by 16", |n| n << 16),
        ("shifted by 32", |n| n << 32),
        ("shifted by 40", |n| n << 40),
        ("twice", |n| n << 32 | n),
        ("golden", |n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        ("addresses", |n| 0x7f00_0000_0000 + 64 * n),
    ];
    for (rate, capacity, max_capacity, items) in
        [(0.01, 1000, 1000, 64_000), (0.001, 1000, 1_000_000, 200_000), (0.3, 300, 6000, 3000)]
    {
        for (shape, number) in SHAPES {
            let builder = koel::ElasticFilter::builder().false_positive_rate(rate).capacity(capacity);
            let mut filter = builder.max_capacity(max_capacity).build().expect("valid parameters");
            (0..items).try_for_each(|n| filter.insert(&Prehashed(number(n)))).unwrap_or_else(|error| panic!("{shape}: {error}"));
            let found = (items..items + PROBES as u64).filter(|&n| filter.contains(&Prehashed(number(n)))).count() as f64;
            let (stated, promised) = (filter.false_positive_rate() * PROBES as f64, rate * PROBES as f64);
            // With few tables, the rate also varies with the fingerprints that they hold: this allows a twentieth of it.
            let tolerance = 5.0 * stated.sqrt() + stated / 20.0;
            assert!((found - stated).abs() <= tolerance, "{shape}, {rate}: {found} found, {stated:.0} stated");
            assert!(found <= promised + 5.0 * promised.sqrt(), "{shape}, {rate}: {found} found, {promised:.0} promised");
        }
    }
}
