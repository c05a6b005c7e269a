//! Workers fill filters with equal parameters. Merging these gives the filter that a single worker would have filled.
//!
//! Merging is associative and commutative. Up to `max_capacity`, every tree of merges gives a filter with the same item count,
//! counts per item, shards, bytes of memory, false-positive rate and lookup results, false positives included. The slots of items
//! within their buckets depend on the order, so snapshots may differ. The order also decides which copies are counted beside the
//! tables, so with copies, shards, bytes and rate are only nearly the same. Beyond `max_capacity`, a tree may be refused.

use crate::common::SplitMix64;
use koel::{CuckooFilter, ElasticBuilder, ElasticFilter, MergeError};

const WORKERS: usize = 64;
const ITEMS: u64 = 40_000;
const PROBES: u64 = 100_000;

/// Returns how often an item occurs: with `has_copies`, every fourth item twice, and otherwise once.
fn copies(item: u64, has_copies: bool) -> u32 {
    1 + u32::from(has_copies && item.is_multiple_of(4))
}

/// Returns each worker's random share of the items: the first workers have thousands, the last ones none.
fn shares(seed: u64, has_copies: bool) -> Vec<Vec<u64>> {
    let (mut numbers, mut shares) = (SplitMix64(seed), vec![Vec::new(); WORKERS]);
    for item in 0..ITEMS {
        for _ in 0..copies(item, has_copies) {
            let workers = 1 + numbers.below(WORKERS as u64 - 4);
            shares[numbers.below(workers) as usize].push(item);
        }
    }
    shares
}

/// Merges random pairs until one filter is left. Returns the first error.
fn combined<F, E>(mut filters: Vec<F>, seed: u64, mut merge: impl FnMut(&mut F, &F) -> Result<(), E>) -> Result<F, E> {
    let mut numbers = SplitMix64(seed);
    loop {
        let other = filters.swap_remove(numbers.below(filters.len() as u64) as usize);
        if filters.is_empty() {
            return Ok(other);
        }
        let into = numbers.below(filters.len() as u64) as usize;
        merge(&mut filters[into], &other)?;
    }
}

/// Returns the length, the count of each item and the false positives, which must be equal for every tree of merges.
macro_rules! answers {
    ($filter:expr) => {{
        let filter = &$filter;
        let counts: Vec<u32> = (0..ITEMS).map(|item| filter.count(&item)).collect();
        let found: Vec<u64> = (ITEMS..ITEMS + PROBES).filter(|item| filter.contains(item)).collect();
        (filter.len(), counts, found)
    }};
}

fn merged(one: &ElasticFilter, other: &ElasticFilter) -> ElasticFilter {
    let mut merged = one.clone();
    merged.merge(other).expect("there is room");
    merged
}

/// Asserts that the rate of a filter with all items, of whose probes `found` were found, is the stated one.
fn check_rate(whole: &ElasticFilter, found: usize, has_copies: bool) {
    let (stated, found) = (whole.false_positive_rate(), found as f64);
    let mean = stated * PROBES as f64;
    // The stated rate treats copies in the tables as distinct items, so the measured rate may be lower.
    let least = if has_copies { mean * ITEMS as f64 / whole.len() as f64 } else { mean };
    let is_near = found >= least - 5.0 * mean.sqrt() - 1.0 && found <= mean + 5.0 * mean.sqrt() + 1.0;
    assert!(is_near, "{found} found, {mean} expected: {whole}");
}

/// Fills a filter with each share, merges them in several trees, and asserts that each result is that of one filter with all items.
fn check_every_tree(builder: &ElasticBuilder, rate: f64, shares: &[Vec<u64>], has_copies: bool) {
    let filled = |items: &[u64]| {
        let mut filter = builder.clone().build().expect("valid parameters");
        filter.insert_iter(items).expect("the filter grows");
        filter
    };
    let partial: Vec<_> = shares.iter().map(|share| filled(share)).collect();
    assert!(partial.iter().any(ElasticFilter::is_empty) && partial.iter().any(|filter| filter.len() > 2000));
    let whole = filled(&shares.concat());
    let expected = answers!(whole);
    assert!((0..ITEMS).zip(&expected.1).all(|(item, &count)| count >= copies(item, has_copies)), "an item is lost");
    let stated = whole.false_positive_rate();
    assert!(stated <= rate, "a rate of {stated}, {rate} promised: {whole}");
    check_rate(&whole, expected.2.len(), has_copies);

    let mut snapshots = vec![whole.to_bytes()];
    let mut check = |merged: ElasticFilter| {
        let mut answers = answers!(merged);
        if has_copies {
            // The shards may be split differently, which changes the false positives.
            let (found, mean) = (answers.2.len() as f64, expected.2.len() as f64);
            assert!((found - mean).abs() <= 0.1 * mean + 5.0 * mean.sqrt(), "{found} found instead of {mean}");
            answers.2.clone_from(&expected.2);
        }
        assert!(answers == expected, "{merged} instead of {whole}");
        assert_eq!(merged.params(), whole.params());
        let near = |one: f64, other: f64, share: f64| (one - other).abs() <= share * other;
        let share = if has_copies { 0.1 } else { 1e-9 };
        let sizes = |filter: &ElasticFilter| [filter.shards() as f64, filter.charged_bytes() as f64];
        let are_near = sizes(&merged).iter().zip(sizes(&whole)).all(|(&one, other)| near(one, other, share));
        assert!(are_near && near(merged.false_positive_rate(), stated, share), "{merged} instead of {whole}");
        merged.assert_consistent();
        snapshots.push(merged.to_bytes());
    };
    for tree in 0..4 {
        check(combined(partial.clone(), tree, ElasticFilter::merge).expect("there is room"));
    }
    // An empty accumulator merges snapshots, as if other machines had sent them.
    let mut accumulator = filled(&[]);
    for filter in &partial {
        accumulator.merge(&ElasticFilter::from_bytes(&filter.to_bytes()).expect("a valid snapshot")).expect("there is room");
    }
    check(accumulator);
    // Each leaf of the tree starts with an empty filter, and neighbors are merged in pairs.
    let mut level: Vec<_> = partial.iter().map(|filter| merged(&filled(&[]), filter)).collect();
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| merged(&pair[0], &pair[1])).collect();
    }
    check(level.remove(0));

    snapshots.sort_unstable();
    snapshots.dedup();
    assert!(snapshots.len() > 1, "{whole}: all trees have equal bytes; the guide could promise this");
    let mut left = ElasticFilter::from_bytes(&snapshots[0]).expect("a valid snapshot");
    assert!((0..ITEMS).all(|item| (0..copies(item, has_copies)).all(|_| left.remove(&item))) && left.is_empty());
}

/// Only here are many filters merged in random trees, empty ones included. This test alone finds results that depend on the tree.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn every_tree_of_merges_gives_the_filter_of_a_single_worker() {
    let builder = |rate| ElasticFilter::builder().false_positive_rate(rate);
    // The shares have up to 50,000 items, copies included.
    let all = 60_000;
    let builders: [(ElasticBuilder, f64); 6] = [
        (builder(0.001).capacity(all).max_capacity(all), 0.001),
        (builder(0.01).max_capacity(all), 0.01),
        (builder(0.001).capacity(500).max_capacity(all).partitions(4), 0.001),
        (builder(0.001).capacity(all).max_capacity(all).partitions(16), 0.001),
        (builder(1e-5), 1e-5),
        (builder(0.03).max_capacity(2 * all), 0.03),
    ];
    let builders = builders.into_iter().flat_map(|builder| [(builder.clone(), false), (builder, true)]);
    for (seed, ((builder, rate), has_copies)) in (1..).zip(builders) {
        check_every_tree(&builder, rate, &shares(seed, has_copies), has_copies);
    }
}

/// A fixed filter that is planned for all items has one table, so its results do not depend on the order.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn every_tree_of_fixed_filters_gives_the_filter_of_a_single_worker() {
    let shares = shares(7, true);
    let filled = |items: &[u64]| {
        let builder = CuckooFilter::builder().capacity(60_000).false_positive_rate(0.001);
        let mut filter = builder.build().expect("valid parameters");
        filter.insert_iter(items).expect("there is room");
        filter
    };
    let partial: Vec<_> = shares.iter().map(|share| filled(share)).collect();
    let whole = filled(&shares.concat());
    let expected = answers!(whole);
    for tree in 0..3 {
        let merged = combined(partial.clone(), tree, CuckooFilter::merge).expect("there is room");
        assert!(answers!(merged) == expected && merged.size_in_bytes() == whole.size_in_bytes(), "{merged}");
    }
}

/// Whether a tree is refused depends on its order. A tree that is not refused gives a correct filter, and the remedy of a refused
/// one works.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_tree_beyond_max_capacity_is_correct_or_refused() {
    let max_capacity = 1000;
    let builder = ElasticFilter::builder().false_positive_rate(0.001);
    let (mut accepted, mut refused) = (0, 0);
    for (seed, [first, others]) in (0..).zip([[1500, 300], [3000, 4], [5000, 4], [300, 20_000]]) {
        let mut numbers = SplitMix64(seed);
        let mut shares = vec![Vec::new(); WORKERS];
        shares[0].extend(0..first);
        (first..first + others).for_each(|item| shares[1 + numbers.below(WORKERS as u64 - 1) as usize].push(item));
        for tree in 0..4 {
            let mut planned = builder.clone().capacity(100).max_capacity(max_capacity);
            let merged = loop {
                let partial = shares.iter().map(|share| {
                    let mut filter = planned.clone().build().expect("valid parameters");
                    filter.insert_iter(share).expect("the filter grows");
                    filter
                });
                match combined(partial.collect(), tree, |into: &mut ElasticFilter, other| {
                    let before = into.to_bytes();
                    into.merge(other).inspect_err(|_| assert!(into.to_bytes() == before))
                }) {
                    Ok(merged) => break merged,
                    Err(MergeError::MaxCapacity { items, max_capacity, needed, .. }) => {
                        assert!(items > max_capacity, "{items} items");
                        let needed = needed.expect("a larger capacity works");
                        assert!(needed > max_capacity);
                        planned = planned.capacity(needed).max_capacity(needed);
                        refused += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            };
            accepted += usize::from(merged.params().max_capacity() == max_capacity);
            assert!(merged.len() as u64 == first + others && (0..first + others).all(|item| merged.contains(&item)));
            assert!(merged.false_positive_rate() <= 0.001, "{merged}");
            merged.assert_consistent();
        }
    }
    assert!(accepted >= 4 && refused >= 8, "{accepted} trees were not refused, and {refused} were");
}
