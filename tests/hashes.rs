//! Hashes that were used for something else before, and numbers that are hardly hashes: a filter of any size takes them at its
//! planned capacity and false-positive rate.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small numbers")]

use crate::common::SplitMix64;
use koel::{CuckooFilter, Prehashed};

/// Of the normal distribution: 99.9 % lie within this many standard deviations of the mean.
const QUANTILE: f64 = 3.29;

/// Lookups of hashes that are not in it, for each kind of filter and of hashes.
const PROBES: usize = 1_000_000;

const CAPACITIES: [usize; 3] = [2_000, 20_000, 200_000];
const FINGERPRINT_BITS: [u32; 2] = [8, 13];

fn filter(capacity: usize, f: u32) -> CuckooFilter {
    CuckooFilter::builder().capacity(capacity).fingerprint_bits(f).build().expect("the parameters are right")
}

/// What was counted in filters of one kind.
struct Tally<'a> {
    what: &'a str,
    f: u32,
    capacity: usize,
    filters: usize,
    probes: usize,
    found: usize,
}

impl<'a> Tally<'a> {
    fn new(what: &'a str, capacity: usize, f: u32) -> Self {
        Self { what, f, capacity, filters: 0, probes: 0, found: 0 }
    }

    /// Fills a filter to its capacity, all of which must fit and be found, and asks it for others.
    fn fill_and_ask(&mut self, filter: &mut CuckooFilter, hashes: &mut impl Iterator<Item = u64>, probes: usize) {
        let own: Vec<u64> = hashes.take(filter.capacity()).collect();
        filter.insert_batch(&Prehashed(&own)).unwrap_or_else(|full| panic!("{}, f = {}: {full}", self.what, self.f));
        assert_eq!((filter.len(), filter.count_members(&Prehashed(&own))), (filter.capacity(), own.len()));
        let others: Vec<u64> = hashes.take(probes).collect();
        self.found += filter.count_members(&Prehashed(&others));
        self.probes += others.len();
        self.filters += 1;
    }

    /// The rate is the one that the filter states, here the last of them.
    fn check(&self, filter: &CuckooFilter) {
        let (expected, measured) = (filter.false_positive_rate(), self.found as f64 / self.probes as f64);
        // Two things vary: which of the probes hit, and which fingerprints the tables happen to hold.
        let fingerprints = f64::from((1u32 << self.f) - 1);
        let of_probes = expected * (1.0 - expected) / self.probes as f64;
        let of_tables = 64.0 * filter.load_factor() / ((filter.slots() * self.filters) as f64 * fingerprints);
        let tolerance = QUANTILE * (of_probes + of_tables).sqrt();
        assert!(
            (measured - expected).abs() <= tolerance,
            "{}, {} filters of {}, f = {}: measured {measured:.6}, expected {expected:.6} ± {tolerance:.6}",
            self.what,
            self.filters,
            self.capacity,
            self.f
        );
    }
}

/// The hashes of one shard, of whichever seed.
type Shard = (&'static str, fn(u64) -> Box<dyn Iterator<Item = u64>>);

/// Random numbers of which one part is the same for all.
fn random(seed: u64, restrict: impl Fn(u64, u64) -> u64 + 'static) -> Box<dyn Iterator<Item = u64>> {
    let shard = SplitMix64(!seed).next().unwrap_or_default();
    Box::new(SplitMix64(seed).map(move |hash| restrict(hash, shard)))
}

/// Numbers at the same distance from each other.
fn regular(seed: u64, distance: u64) -> Box<dyn Iterator<Item = u64>> {
    // The first filter begins at zero, as counters do.
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
    // Not the last of them, which may be beyond 64 bits.
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

#[test]
fn hashes_of_one_shard_keep_capacity_and_rate() {
    for (what, shard) in SHARDS {
        for capacity in CAPACITIES {
            for f in FINGERPRINT_BITS {
                let (mut tally, mut filter) = (Tally::new(what, capacity, f), filter(capacity, f));
                // As many items in all of them, whatever the capacity.
                let filters = CAPACITIES[2] / capacity;
                for seed in 0..filters as u64 {
                    filter.clear();
                    tally.fill_and_ask(&mut filter, &mut shard(seed), PROBES / filters);
                }
                tally.check(&filter);
            }
        }
    }
}

/// A service that hashes each item once: for the choice of a shard, and then for that shard's filter.
fn sharded_service(what: &str, shards: usize, capacity: usize, shard: fn(u64) -> usize) {
    for f in FINGERPRINT_BITS {
        let mut filters = vec![filter(capacity, f); shards];
        let (room, probes) = (filters[0].capacity(), PROBES / shards);
        let mut of_shards = vec![Vec::new(); shards];
        let (mut incomplete, mut item) = (shards, 0u64);
        while incomplete > 0 {
            let hash = filters[0].hash(&item);
            let hashes: &mut Vec<u64> = &mut of_shards[shard(hash)];
            if hashes.len() < room + probes {
                hashes.push(hash);
                incomplete -= usize::from(hashes.len() == room + probes);
            }
            item += 1;
        }
        let mut tally = Tally::new(what, capacity, f);
        for (filter, hashes) in filters.iter_mut().zip(of_shards) {
            tally.fill_and_ask(filter, &mut hashes.into_iter(), probes);
        }
        tally.check(&filters[0]);
        // What was inserted by its hash is found as the item.
        let first = filters[0].hash(&0u64);
        assert!(filters[shard(first)].contains(&0u64));
    }
}

#[test]
fn the_hash_of_an_item_may_choose_its_shard() {
    sharded_service("items, 16 shards by the high bits", 16, 20_000, |hash| (hash >> 60) as usize);
    sharded_service("items, 1024 shards by the high bits", 1024, 2_000, |hash| (hash >> 54) as usize);
    sharded_service("items, 16 shards by the low bits", 16, 20_000, |hash| (hash % 16) as usize);
    sharded_service("items, 7 shards by the remainder", 7, 200_000, |hash| (hash % 7) as usize);
    sharded_service("items, 1000 shards by the remainder", 1000, 2_000, |hash| (hash % 1000) as usize);
}

/// The hash of an item does what the item does: one by one, in batches, in every way to ask.
#[test]
fn items_and_their_hashes_are_the_same() {
    for addressing in crate::common::ADDRESSINGS {
        let builder = CuckooFilter::builder().capacity(1000).fingerprint_bits(9).addressing(addressing).seed(7);
        let mut items = builder.build().expect("right");
        let (mut hashes, mut batch) = (items.clone(), items.clone());
        let all: Vec<u64> = (0..1500u64).map(|item| items.hash(&item)).collect();
        for (item, &hash) in all[..900].iter().enumerate() {
            items.insert(&(item as u64)).and_then(|()| hashes.insert(&Prehashed(hash))).expect("they fit");
        }
        batch.insert_batch(&Prehashed(&all[..900])).expect("they fit");
        assert!(items == hashes && items == batch);
        for (item, &hash) in (0u64..).zip(&all) {
            assert_eq!(items.contains(&item), items.contains(&Prehashed(hash)));
            assert_eq!(items.count(&item), items.count(&Prehashed(hash)));
        }
        assert!((0..900u64).all(|item| items.remove(&Prehashed(all[item as usize])) && hashes.remove(&item)));
        assert!(items == hashes && items.is_empty());
    }
}

/// Numbers that are hardly hashes, in filters that grow to many times their capacity and beyond their plan: each shape is found as
/// often as the filter states, and not more often than it promises.
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
    for (rate, capacity, max_capacity, items, b) in
        [(0.01, 1000, 1000, 64_000, 4), (0.001, 1000, 1_000_000, 200_000, 4), (0.3, 300, 6000, 3000, 16)]
    {
        for (shape, number) in SHAPES {
            let builder = koel::ElasticFilter::builder().false_positive_rate(rate).capacity(capacity).bucket_size(b);
            let mut filter = builder.max_capacity(max_capacity).build().expect("the parameters are right");
            (0..items).try_for_each(|n| filter.insert(&Prehashed(number(n)))).unwrap_or_else(|error| panic!("{shape}: {error}"));
            let found = (items..items + PROBES as u64).filter(|&n| filter.contains(&Prehashed(number(n)))).count() as f64;
            let (stated, promised) = (filter.false_positive_rate() * PROBES as f64, rate * PROBES as f64);
            // Which fingerprints few tables happen to hold varies, too: a twentieth of the rate.
            let tolerance = 5.0 * stated.sqrt() + stated / 20.0;
            assert!((found - stated).abs() <= tolerance, "{shape}, {rate}: {found} found, {stated:.0} stated");
            assert!(found <= promised + 5.0 * promised.sqrt(), "{shape}, {rate}: {found} found, {promised:.0} promised");
        }
    }
}
