//! Merges that are refused.

use super::*;
use crate::common::SplitMix64;
use koel::{
    Builder, CuckooFilter, MergeError, Prehashed, TableKind, Xxh3,
    hash::{AnyHasher, StdHasher},
};
use std::hash::RandomState;

fn builder() -> Builder {
    CuckooFilter::builder().capacity(1000).fingerprint_bits(13)
}

#[test]
fn filters_with_different_parameters_are_rebuilt_with_equal_ones() {
    for other in [
        builder().capacity(2000),
        builder().fingerprint_bits(14),
        builder().table(TableKind::Single),
        builder().seed(1),
        builder().addressing(koel::Addressing::PowerOfTwo),
    ] {
        let (mut ours, theirs) = (builder().build().expect("valid parameters"), other.build().expect("valid parameters"));
        let error = ours.merge(&theirs).expect_err("the parameters differ");
        says(&error, &[&ours.params().to_string(), &theirs.params().to_string(), "build both from the same parameters"]);
        // The error contains the parameters.
        let MergeError::DifferentParams { theirs: params, .. } = error else { panic!("{error}") };
        let mut ours = CuckooFilter::new(params, Xxh3).expect("there is memory");
        ours.insert("koel").expect("there is room");
        ours.merge(&theirs).expect("the parameters are equal");
    }
}

#[test]
fn filters_with_different_hashers_are_rebuilt_with_equal_ones() {
    let keyed = |hasher| builder().hasher(hasher).build().expect("valid parameters");
    let (mut ours, theirs) = (keyed(StdHasher::new(RandomState::new())), keyed(StdHasher::new(RandomState::new())));
    ours.insert("koel").expect("there is room");
    let error = ours.merge(&theirs).expect_err("the keys differ");
    assert!(matches!(error, MergeError::DifferentHasher));
    says(&error, &["same hasher", "build both with equal ones"]);
    let mut equal = keyed(ours.hasher().clone());
    equal.insert("cuckoo").expect("there is room");
    ours.merge(&equal).expect("the hashers are equal");
    assert!(ours.contains("koel") && ours.contains("cuckoo"));
    let any = builder().hasher(AnyHasher::Xxh3);
    any.clone().build().expect("valid parameters").merge(&any.build().expect("valid parameters")).expect("the hashers are equal");
}

/// The capacity that the message names works.
#[test]
fn filters_too_small_for_a_merge_are_rebuilt_larger() {
    for items in [600, 900, 1000] {
        let filled = |capacity, seed| {
            let mut filter = builder().capacity(capacity).build().expect("valid parameters");
            filter.insert_batch(&Prehashed(&SplitMix64(seed).take(items).collect::<Vec<_>>())).expect("there is room");
            filter
        };
        let (mut ours, theirs) = (filled(1000, 1), filled(1000, 2));
        let error = ours.merge(&theirs).expect_err("there is no room");
        let MergeError::Full { items: both, slots, capacity, .. } = error else { panic!("{error}") };
        assert_eq!((slots, capacity), (ours.slots(), ours.capacity()));
        // A few items collide with others.
        assert!((2 * items - 8..=2 * items).contains(&both), "{error}");
        let message = says(&error, &["build both with a capacity of at least"]);
        let enough = last_number(&message);
        assert!((2 * items..2 * items + 8).contains(&enough), "{message}");
        let (mut ours, theirs) = (filled(enough, 1), filled(enough, 2));
        ours.merge(&theirs).expect("the capacity is large enough");
        assert_eq!(ours.len(), 2 * items);
    }
}

/// The capacity counts distinct items, so items in both filters need room once.
#[test]
fn overlapping_filters_need_room_for_their_distinct_items() {
    let filled = |capacity, first: u64| {
        let mut filter = CuckooFilter::builder().capacity(capacity).false_positive_rate(0.001).build().expect("valid parameters");
        filter.insert_iter(first..first + 100_000).expect("there is room");
        filter
    };
    let error = filled(120_000, 0).merge(&filled(120_000, 50_000)).expect_err("there are 150,000 distinct items");
    let message = says(&error, &["distinct items do not fit", "build both with a capacity of at least"]);
    let enough = last_number(&message);
    assert!((149_500..152_000).contains(&enough), "{message}");
    for union in [false, true] {
        let (mut ours, theirs) = (filled(enough, 0), filled(enough, 50_000));
        if union { ours.union(&theirs) } else { ours.merge(&theirs) }.expect("the capacity is large enough");
        assert!(if union { (149_000..=150_000).contains(&ours.len()) } else { ours.len() == 200_000 });
        assert!((0..150_000u64).all(|n| ours.contains(&n)));
    }
}

/// Builds a filter and inserts `copies` of each item.
fn filled(builder: &Builder, items: &[u64], copies: u32) -> Result<CuckooFilter, koel::InsertError> {
    let mut filter = builder.clone().build().expect("valid parameters");
    for item in items {
        (0..copies).try_for_each(|_| filter.insert(&Prehashed(*item)))?;
    }
    Ok(filter)
}

/// Merges two filters of `items` items, `percent` % of them in both, with `copies` of each. If the merge is refused, asserts that
/// the capacity in the error works.
fn follow(kind: &Builder, items: usize, percent: usize, copies: u32, seed: u64) {
    let case = format!("{items} items, {percent} % of them in both, {copies} copies, {kind:?}");
    let hashes: Vec<u64> = SplitMix64(seed).take(2 * items).collect();
    let (left, right) = (&hashes[..items], &hashes[items - items * percent / 100..][..items]);
    // The smallest capacity, in steps of 4 %, that holds each of the sets.
    let capacities = std::iter::successors(Some(items), |capacity| Some(capacity + capacity.div_ceil(25)));
    let (builder, mut ours, theirs) = (capacities.take(100))
        .find_map(|capacity| {
            let builder = kind.clone().capacity(capacity);
            let (ours, theirs) = (filled(&builder, left, copies).ok()?, filled(&builder, right, copies).ok()?);
            Some((builder, ours, theirs))
        })
        .unwrap_or_else(|| panic!("{case}: cannot be filled"));
    let before = ours.to_bytes();
    let Err(error) = ours.merge(&theirs) else { return };
    assert!(ours.to_bytes() == before, "{case}");
    let MergeError::Full { needed, .. } = error else { panic!("{case}: {error}") };
    let builder = builder.clone().capacity(needed);
    let (left, right) = (filled(&builder, left, copies), filled(&builder, right, copies));
    let mut left = left.unwrap_or_else(|full| panic!("{case}: {full}"));
    left.merge(&right.unwrap_or_else(|full| panic!("{case}: {full}"))).unwrap_or_else(|error| panic!("{case}: {error}"));
}

#[test]
fn the_capacity_named_for_overlapping_filters_is_enough() {
    let kinds = [
        (TableKind::Packed, 13, 4),
        (TableKind::Packed, 7, 4),
        (TableKind::Single, 20, 4),
        (TableKind::Single, 12, 2),
        (TableKind::Single, 16, 1),
        (TableKind::Single, 9, 8),
    ];
    // The largest size takes most of the time in a debug build, so only `just release` runs it.
    let sizes: &[usize] = if cfg!(debug_assertions) { &[100, 1000] } else { &[100, 1000, 10_000] };
    let mut seed = 0;
    for (table, f, b) in kinds {
        for addressing in common::ADDRESSINGS {
            let kind = CuckooFilter::builder().table(table).fingerprint_bits(f).bucket_size(b).addressing(addressing);
            for &items in sizes {
                for percent in [0, 1, 25, 50, 100] {
                    for copies in [1, 2, 7] {
                        seed += 1;
                        follow(&kind, items, percent, copies, seed);
                    }
                }
            }
        }
    }
    let kind = CuckooFilter::builder().table(TableKind::Packed).fingerprint_bits(13);
    for percent in [0, 50, 100] {
        follow(&kind, 100_000, percent, 1, 1);
        follow(&kind, 100_000, percent, 2, 1);
    }
    follow(&kind, 1_000_000, 40, 1, 1);
}
