//! Merges and intersections of fixed filters.

use crate::common::{ADDRESSINGS, SplitMix64, same_bits};
use koel::{
    Addressing, Builder, CuckooFilter, Kernel, MergeError, Prehashed, TableKind,
    hash::{AnyHasher, StdHasher},
};
use std::hash::RandomState;

#[test]
fn merging_adds_counts() {
    // Capacity counts distinct items, of which there are 1500.
    let build = || CuckooFilter::builder().capacity(1500).false_positive_rate(1e-6).build().expect("valid parameters");
    let (mut left, mut right) = (build(), build());
    (0..1000u64).for_each(|n| left.insert(&n).expect("it fits"));
    (500..1500u64).for_each(|n| right.insert(&n).expect("it fits"));
    left.merge(&right).expect("they fit");
    assert_eq!(left.len(), 2000);
    assert!((0..1500u64).all(|n| left.count(&n) > u32::from((500..1000).contains(&n))));
    for n in (0..1000u64).chain(500..1500) {
        assert!(left.remove(&n));
    }
    assert!(left.is_empty());
}

#[test]
fn a_refused_merge_changes_nothing() {
    let build = || CuckooFilter::builder().fingerprint_bits(12).buckets(64).build().expect("valid parameters");
    let (mut left, mut right) = (build(), build());
    // First more items than slots, then as many, which is more than a table can hold.
    for (ours, theirs) in [(200, 100), (128, 128)] {
        left.clear();
        right.clear();
        SplitMix64(1).take(ours).for_each(|hash| left.insert(&Prehashed(hash)).expect("it fits"));
        SplitMix64(2).take(theirs).for_each(|hash| right.insert(&Prehashed(hash)).expect("it fits"));
        let before = left.clone();
        let error = left.merge(&right).expect_err("it does not fit");
        assert!(matches!(error, MergeError::Full { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains(" distinct items do not fit") && message.contains("256 slots"), "{message}");
        assert!(same_bits(&left, &before));
    }
}

#[test]
fn filters_with_different_parameters_are_not_merged() {
    let builder = || CuckooFilter::builder().fingerprint_bits(12).buckets(64).hasher(AnyHasher::Xxh3);
    let single = || builder().table(TableKind::Single);
    // A part of the message about each filter, and the two filters.
    let others = [
        ("packed table", "single table", builder(), single()),
        ("12-bit", "13-bit", builder(), builder().fingerprint_bits(13)),
        ("64 buckets", "66 buckets", builder(), builder().buckets(66)),
        ("buckets of 4", "buckets of 8", single(), single().bucket_size(8)),
        ("any-size", "power-of-two", builder(), builder().addressing(Addressing::PowerOfTwo)),
        ("seed 0", "seed 1", builder(), builder().seed(1)),
    ];
    for (ours_part, theirs_part, ours, theirs) in others {
        let (mut ours, theirs) = (ours.build().expect("valid parameters"), theirs.build().expect("valid parameters"));
        ours.insert("koel").expect("it fits");
        let (before, message) = (ours.clone(), merge_error(&mut ours, &theirs));
        let (first, second) = message.split_once(", and the other a ").expect("the message describes both filters");
        assert!(first.contains(ours_part) && second.contains(theirs_part), "{ours_part}, {theirs_part}: {message}");
        assert!(message.ends_with("; build both from the same parameters"), "{message}");
        assert!(same_bits(&ours, &before));
    }
    let keyed = || CuckooFilter::builder().capacity(10).fingerprint_bits(12).hasher(StdHasher::new(RandomState::new()));
    let (mut ours, theirs) = (keyed().build().expect("valid parameters"), keyed().build().expect("valid parameters"));
    let error = ours.merge(&theirs).expect_err("the keys differ");
    assert!(
        matches!(error, MergeError::DifferentHasher) && error.to_string().ends_with("; build both with equal ones"),
        "{error}"
    );
    let equal = keyed().hasher(ours.hasher().clone()).build().expect("valid parameters");
    ours.merge(&equal).expect("the keys are equal");
    #[cfg(feature = "metrohash")]
    {
        let (mut ours, theirs) = (builder().build().expect("valid parameters"), builder().hasher(AnyHasher::MetroHash64));
        let error = ours.merge(&theirs.build().expect("valid parameters")).expect_err("they differ");
        assert!(matches!(error, MergeError::DifferentHasher), "{error}");
    }
}

/// A filter that is filled beyond its capacity can still be merged into an empty one, because it is copied.
#[test]
fn merging_into_an_empty_filter_copies() {
    let builder = || CuckooFilter::builder().fingerprint_bits(12).buckets(64);
    let full = || {
        let mut filter = builder().build().expect("valid parameters");
        let inserted = SplitMix64(1).take(256).filter(|&hash| filter.insert(&Prehashed(hash)).is_ok()).count();
        assert!(inserted > filter.capacity() && inserted == filter.len(), "{inserted} items, planned for {}", filter.capacity());
        filter
    };
    let theirs = full();
    for kernel in Kernel::available() {
        let mut emptied = full();
        emptied.clear();
        for ours in [builder().kernel(kernel).build().expect("valid parameters"), emptied] {
            let (mut merged, kernel) = (ours.clone(), ours.kernel());
            merged.merge(&theirs).expect("merging into an empty filter copies");
            assert!(same_bits(&merged, &theirs));
            assert_eq!(merged.kernel(), kernel, "only the table is copied");
        }
    }
    // Neither a filter with items nor one with other parameters becomes a copy.
    let mut one = builder().build().expect("valid parameters");
    one.insert("koel").expect("it is empty");
    assert!(matches!(one.merge(&theirs), Err(MergeError::Full { .. })));
    let mut other = builder().seed(1).build().expect("valid parameters");
    assert!(matches!(other.merge(&theirs), Err(MergeError::DifferentParams { .. })) && other.is_empty());
}

/// An intersection has the smaller count of each item, in the table and beside it, and nothing else.
#[test]
fn an_intersection_has_the_smaller_count_of_each_item() {
    for table in [TableKind::Packed, TableKind::Single] {
        for addressing in ADDRESSINGS {
            let builder = CuckooFilter::builder().table(table).addressing(addressing).capacity(700).fingerprint_bits(28);
            // Up to 40 copies, more than two buckets have slots.
            let (in_left, in_right) = (|n: u64| n * n % 41 * u64::from(n < 600), |n: u64| n * 7 % 41 * u64::from(n >= 200));
            let with = |copies: &dyn Fn(u64) -> u64| {
                let mut filter = builder.clone().build().expect("valid parameters");
                (0..700).for_each(|n| (0..copies(n)).for_each(|_| filter.insert(&n).expect("copies are always accepted")));
                filter
            };
            let (left, right) = (with(&in_left), with(&in_right));
            let (mut one, mut other, mut alone) = (left.clone(), right.clone(), with(&|n| in_left(n).min(in_right(n))));
            one.intersect(&right).expect("equal parameters");
            other.intersect(&left).expect("equal parameters");
            assert!(one == other && one == alone, "{one}; {other}; {alone}");
            assert!((0..700).all(|n| u64::from(one.count(&n)) == in_left(n).min(in_right(n))));
            let before = one.clone();
            one.intersect(&left).expect("equal parameters");
            one.union(&other).expect("no new items");
            assert!(same_bits(&one, &before), "a second intersection changed the filter");
            one.intersect(&builder.clone().build().expect("valid parameters")).expect("equal parameters");
            assert!(one.is_empty(), "{one}");
            for n in 0..700u64 {
                let count = alone.count(&n);
                assert!((0..count).all(|_| alone.remove(&n)), "{n}: {count} counted");
            }
            assert!(alone.is_empty(), "{alone}");
        }
    }
}

/// Items of one filter stay at the false-positive rate of the other, and those of neither are found at the intersection's.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn an_intersection_finds_other_items_at_the_stated_rates() {
    const ITEMS: u32 = 100_000;
    for (rate, percent) in [(0.1, 95), (0.01, 95), (0.01, 30), (0.001, 95)] {
        let builder = CuckooFilter::builder().capacity(200_000).false_positive_rate(rate).seed(7);
        let (mut left, mut right) =
            (builder.clone().build().expect("valid parameters"), builder.build().expect("valid parameters"));
        left.insert_iter(0..2 * ITEMS).expect("planned for");
        // Some of these are in the first filter, too.
        let theirs = ITEMS..ITEMS + 2 * ITEMS / 100 * percent;
        right.insert_iter(theirs.clone()).expect("planned for");
        let (of_left, of_right) = (left.false_positive_rate(), right.false_positive_rate());
        left.intersect(&right).expect("equal parameters");
        assert!((ITEMS..theirs.end.min(2 * ITEMS)).all(|n| left.contains(&n)));
        let check = |what: &str, items: std::ops::Range<u32>, stated: f64| {
            let (found, tried) =
                (items.clone().map(|n| u32::from(left.contains(&n))).sum::<u32>(), f64::from(items.end - items.start));
            let found = f64::from(found);
            let deviation = (tried * stated * (1.0 - stated)).sqrt();
            // Items that look alike are found together, so the number varies more than that of independent ones.
            assert!(
                (found - tried * stated).abs() < 6.0 * deviation + 3.0,
                "{rate}, {what}: {found} of {tried}, {stated} stated"
            );
        };
        check("only ours", 0..ITEMS, of_right);
        if theirs.end > 2 * ITEMS {
            check("only theirs", 2 * ITEMS..theirs.end, of_left);
        }
        check("neither", 10 * ITEMS..20 * ITEMS, left.false_positive_rate());
    }
}

#[test]
fn a_refused_intersection_changes_nothing() {
    let build = |seed| CuckooFilter::builder().capacity(100).fingerprint_bits(12).seed(seed).build().expect("valid parameters");
    let mut filter = build(0);
    filter.insert("koel").expect("it fits");
    let before = filter.clone();
    let error = filter.intersect(&build(1)).expect_err("the seeds differ");
    assert!(matches!(error, MergeError::DifferentParams { .. }) && same_bits(&filter, &before), "{error}");
}

#[track_caller]
fn merge_error(ours: &mut CuckooFilter<AnyHasher>, theirs: &CuckooFilter<AnyHasher>) -> String {
    let params = (ours.params(), theirs.params());
    let error = ours.merge(theirs).expect_err("they differ");
    let MergeError::DifferentParams { ours, theirs, .. } = error else { panic!("{error}") };
    assert_eq!((ours, theirs), params);
    error.to_string()
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
/// the capacity in the error works. Returns whether it is refused.
fn follow(kind: &Builder, items: usize, percent: usize, copies: u32, seed: u64) -> bool {
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
    let Err(error) = ours.merge(&theirs) else { return false };
    assert!(ours.to_bytes() == before, "{case}");
    let MergeError::Full { items: counted, slots, capacity, needed, .. } = error else { panic!("{case}: {error}") };
    assert_eq!((slots, capacity), (ours.slots(), ours.capacity()), "{case}");
    assert!(error.to_string().ends_with(&format!("; build both with a capacity of at least {needed}")), "{error}");
    let distinct = 2 * items - items * percent / 100;
    // Items that collide count once, and short fingerprints collide often.
    let most = distinct + distinct / 50 + 8;
    assert!(counted <= distinct && counted <= needed, "{case}: {error}");
    assert!(needed <= most || ours.params().fingerprint_bits() < 12, "{case}: {error}");
    let builder = builder.clone().capacity(needed);
    let refilled = |items| filled(&builder, items, copies).unwrap_or_else(|full| panic!("{case}: {full}"));
    let (mut left, right) = (refilled(left), refilled(right));
    let mut union = left.clone();
    left.merge(&right).unwrap_or_else(|error| panic!("{case}: {error}"));
    union.union(&right).unwrap_or_else(|error| panic!("{case}: {error}"));
    true
}

/// Only here is the capacity tried that the error of a refused merge or union names, for filters that overlap.
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
    let (mut seed, mut refused) = (0, 0);
    for (table, f, b) in kinds {
        for addressing in ADDRESSINGS {
            let kind = CuckooFilter::builder().table(table).fingerprint_bits(f).bucket_size(b).addressing(addressing);
            for &items in sizes {
                for percent in [0, 1, 25, 50, 100] {
                    for copies in [1, 2, 7] {
                        seed += 1;
                        refused += u64::from(follow(&kind, items, percent, copies, seed));
                    }
                }
            }
        }
    }
    assert!(refused > seed / 2, "{refused} of {seed}");
    let kind = CuckooFilter::builder().table(TableKind::Packed).fingerprint_bits(13);
    for percent in [0, 50, 100] {
        for copies in [1, 2] {
            assert_eq!(follow(&kind, 100_000, percent, copies, 1), percent < 100, "{percent} %, {copies} copies");
        }
    }
    assert!(follow(&kind, 1_000_000, 40, 1, 1));
}
