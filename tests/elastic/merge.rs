//! Merges, unions and intersections of filters that have grown differently.

use crate::common::{key, same_bits};
use koel::{ElasticBuilder, ElasticFilter, InsertErrorKind, MergeError};
use std::iter;

fn filled(builder: ElasticBuilder, items: impl Iterator<Item = u64>) -> ElasticFilter {
    let mut filter = builder.build().expect("valid parameters");
    filter.insert_iter(items.map(key)).expect("the filter grows");
    filter
}

/// A merged filter holds every item of both, and removing all of them leaves it empty. Up to `max_capacity` every merge succeeds.
/// Beyond it, a merge may be refused; it then changes nothing and names a `max_capacity` that works.
#[test]
fn filters_of_any_two_sizes_can_be_merged() {
    let builder =
        |max| ElasticFilter::builder().false_positive_rate(1e-5).capacity(if max > 10_000 { max } else { 100 }).max_capacity(max);
    // Three sizes are within `max_capacity`, and two are beyond it.
    let sizes = [0_u64, 90, 5000, 15_000, 60_000];
    let mut refused = 0;
    for left_items in sizes {
        for right_items in sizes {
            let items = || (0..left_items).chain(1_000_000 - right_items / 2..1_000_000 + right_items.div_ceil(2)).map(key);
            let pair = |max_capacity| {
                let right = 1_000_000 - right_items / 2..1_000_000 + right_items.div_ceil(2);
                (filled(builder(max_capacity), 0..left_items), filled(builder(max_capacity), right))
            };
            let (mut merged, right) = pair(10_000);
            let before = merged.to_bytes();
            match merged.merge(&right) {
                Ok(()) => {}
                Err(MergeError::MaxCapacity { items, max_capacity, needed, .. }) => {
                    assert_eq!((items as u64, max_capacity), (left_items + right_items, 10_000));
                    assert!(items > max_capacity && merged.to_bytes() == before);
                    let (left, right) = pair(needed.unwrap());
                    merged = left;
                    merged.merge(&right).unwrap();
                    refused += 1;
                }
                Err(error) => panic!("{left_items} {right_items}: {error}"),
            }
            assert_eq!(merged.len() as u64, left_items + right_items);
            assert!(merged.false_positive_rate() <= 1e-5, "{merged}");
            merged = ElasticFilter::from_bytes(&merged.to_bytes()).unwrap();
            assert!(items().all(|item| merged.contains(&item)), "{left_items} {right_items}");
            let absent = (2_000_000..2_200_000).map(key).filter(|item| merged.contains(item)).count() as f64;
            let expected = 200_000.0 * merged.false_positive_rate();
            assert!((absent - expected).abs() <= 5.0 * expected.sqrt() + 3.0, "{absent} found, {expected} expected");
            for item in items() {
                assert!(merged.remove(&item), "{left_items} {right_items}");
            }
            assert!(merged.is_empty());
        }
    }
    assert!(refused >= 4, "{refused}");
}

/// Of two tables with many items in common, copies go into free slots also where a split has left a table beside a list.
#[test]
fn copies_go_into_a_table_beside_a_list() {
    let mut mixtures = 0;
    for (items, common) in (940..1000).step_by(4).flat_map(|items| [(items, items * 6 / 10), (items, items * 7 / 10)]) {
        let builder = || ElasticFilter::builder().false_positive_rate(0.001);
        let (mut merged, other) = (filled(builder(), 0..items), filled(builder(), items - common..2 * items - common));
        let tables = [&merged, &other].map(|filter| (filter.shards(), filter.buckets()));
        let (_, in_one_table) = tables[0];
        merged.merge(&other).expect("the plan has room");
        if tables == [(1, in_one_table); 2] && in_one_table > 0 && (merged.shards(), merged.buckets()) == (2, in_one_table) {
            // Those of the list are counted, and those that find no free slot.
            mixtures += 1;
            let counted = merged.len() - merged.table_len();
            assert!(counted as u64 * 10 <= common * 8, "{counted} of {common} copies are counted: {merged}");
        }
    }
    assert!(mixtures >= 5, "only {mixtures} merges gave a table and a list");
}

/// A merge of a large filter into a small one gives at least as many shards as the large one has.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_large_and_a_small_filter_can_be_merged_in_either_order() {
    const LARGE: u64 = 1_200_000;
    let builder = ElasticFilter::builder().false_positive_rate(0.001).max_capacity(3_000_000);
    let large = filled(builder.clone(), 0..LARGE);
    for items in [0, 3000] {
        let small = filled(builder.clone(), LARGE..LARGE + items);
        for (mut into, other) in [(small.clone(), &large), (large.clone(), &small)] {
            let mut union = into.clone();
            into.merge(other).expect("the filter grows");
            assert_eq!((into.len() as u64, into.shards() >= large.shards()), (LARGE + items, true));
            assert!((0..LARGE + items).all(|n| into.contains(&key(n))));
            into.assert_consistent();
            union.union(other).expect("the filter grows");
            // Items that collide with items of the other filter are not added.
            assert!(union.len() <= into.len() && union.len() as f64 > 0.999 * into.len() as f64, "{union}");
            assert!((0..LARGE + items).all(|n| union.contains(&key(n))));
            union.assert_consistent();
        }
    }
}

/// A merge copies the larger filter, but the limit of the filter to merge into applies.
#[test]
fn a_merge_obeys_the_limit_of_the_filter_it_changes() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001);
    let (small, large) = (filled(builder.clone(), 0..10), filled(builder.clone(), 100..50_000));
    let mut whole = small.clone();
    whole.merge(&large).unwrap();
    let empty = builder.clone().params().unwrap().size_in_bytes();
    for max_bytes in [empty, large.size_in_bytes() / 2] {
        let mut limited = small.clone();
        limited.set_max_bytes(max_bytes);
        let before = limited.to_bytes();
        let error = limited.merge(&large).unwrap_err();
        let MergeError::Insert(error) = error else { panic!("{error}") };
        let InsertErrorKind::Limit { needed, .. } = error.kind() else { panic!("{error}") };
        assert!(error.to_string().contains(&format!("limit is {max_bytes}")), "{error}");
        assert!(
            (max_bytes + 1..=whole.charged_bytes()).contains(&needed),
            "{error}, and the whole takes {}",
            whole.charged_bytes()
        );
        assert_eq!(limited.to_bytes(), before);
    }
    // What other partitions need counts, too.
    let in_two = builder.clone().partitions(2);
    let (mut limited, other) = (filled(in_two.clone(), 0..1000), filled(in_two, 1000..4000));
    limited.set_max_bytes(limited.charged_bytes() + 5000);
    let Err(MergeError::Insert(error)) = limited.merge(&other) else { panic!("{limited}") };
    assert!(matches!(error.kind(), InsertErrorKind::Limit { needed, max_bytes } if needed > max_bytes), "{error}");
    let mut limited = small.clone();
    limited.set_max_bytes(2 * large.size_in_bytes());
    limited.merge(&large).unwrap();
    assert_eq!(limited.to_bytes(), whole.to_bytes());
    let more = filled(builder, 100_000..500_000);
    assert!(
        matches!(limited.merge(&more), Err(MergeError::Insert(error)) if matches!(error.kind(), InsertErrorKind::Limit { .. }))
    );
}

/// The shards of the only generation are full, and no upper bits are left. Such a merge once produced an unreadable snapshot.
#[test]
fn a_merge_beyond_the_plan_is_refused_and_the_remedy_works() {
    let builder = |max| ElasticFilter::builder().false_positive_rate(0.01).capacity(max).max_capacity(max);
    let pair = |max| (filled(builder(max), 0..120), filled(builder(max), 1000..1120));
    let (mut left, right) = pair(100);
    let before = left.to_bytes();
    let error = left.merge(&right).unwrap_err();
    let MergeError::MaxCapacity { items: 240, max_capacity: 100, needed, .. } = error else { panic!("{error}") };
    assert!(error.to_string().contains(&needed.unwrap().to_string()) && left.to_bytes() == before);
    let (mut left, right) = pair(needed.unwrap());
    left.merge(&right).unwrap();
    let read = ElasticFilter::from_bytes(&left.to_bytes()).unwrap();
    assert!(read.len() == 240 && (0..120).chain(1000..1120).all(|n| read.contains(&key(n))));
}

/// The `needed` capacity of a refused merge works for all sizes, overlaps and copy counts.
#[test]
fn the_remedy_of_a_refused_merge_works_for_copies() {
    let mut refused = 0;
    for (items, max) in [(100, 100), (1000, 1000), (3000, 2500), (20_000, 10_000), (20_000, 5000)] {
        // The right filter's items begin at `start`, so the filters share the items from there to `items`.
        for (start, copies) in [(items, 1), (items / 2, 1), (0, 1), (items / 2, 2), (items, 4_u64)] {
            let builder = |given: usize| {
                let capacity = if given == max { 100 } else { given };
                ElasticFilter::builder().false_positive_rate(0.001).capacity(capacity).max_capacity(given)
            };
            let range = |from: u64| (0..copies).flat_map(move |_| from..from + items);
            let pair = |max| (filled(builder(max), range(0)), filled(builder(max), range(start)));
            let (mut left, right) = pair(max);
            if let Err(error) = left.merge(&right) {
                let MergeError::MaxCapacity { needed, .. } = error else { panic!("{error}") };
                let (mut left, right) = pair(needed.unwrap());
                left.merge(&right).unwrap_or_else(|error| panic!("{items} {max} {start} {copies}: {error}"));
                assert!(left.len() as u64 == 2 * items * copies && left.false_positive_rate() <= 0.001);
                refused += 1;
            }
        }
    }
    assert!(refused > 12, "{refused}");
}

/// Copies need no capacity, so a remedy that counts them could not be followed.
#[test]
fn the_remedy_of_a_refused_merge_does_not_count_copies() {
    let mut refused = 0;
    for (rate, most) in [(0.001, 300), (0.1, 340), (0.5, 700)] {
        let builder = |max| ElasticFilter::builder().false_positive_rate(rate).capacity(max).max_capacity(max);
        let pair = |max| {
            let mut left = filled(builder(max), 0..100);
            for _ in 0..25 {
                let copy = left.clone();
                left.merge(&copy).unwrap();
            }
            (left, filled(builder(max), 100..200))
        };
        let (mut left, right) = pair(100);
        let before = left.to_bytes();
        let Err(error) = left.merge(&right) else { continue };
        let MergeError::MaxCapacity { items, needed, .. } = error else { panic!("{error}") };
        assert!(left.to_bytes() == before, "{left}");
        let needed = needed.unwrap();
        assert!(items as u64 == (100 << 25) + 100 && (101..=most).contains(&needed), "{items} items, {needed} at {rate}");
        let (mut left, right) = pair(needed);
        left.merge(&right).unwrap();
        refused += 1;
    }
    assert!(refused > 0);
}

/// Merges do not fill tables beyond the load that rates are planned for. The rate is the lowest that fingerprints of 8 bits keep.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn merges_into_a_full_filter_keep_the_promised_rate() {
    const PLAN: usize = 5000;
    let rate = 8.0 * 0.98 / 255.0 * 1.0323;
    let builder = ElasticFilter::builder().false_positive_rate(rate).capacity(PLAN).max_capacity(PLAN);
    let (mut filter, mut items) = (builder.clone().build().unwrap(), (0..).map(key));
    while filter.buckets_per_lookup() == 2 {
        filter.insert(&items.next().unwrap()).unwrap();
    }
    let (mut merged, mut refused) = (0, 0);
    while refused < 200 {
        let mut one = builder.clone().build().unwrap();
        one.insert(&items.next().unwrap()).unwrap();
        let is_merged = filter.merge(&one).is_ok();
        (merged, refused) = if is_merged { (merged + 1, 0) } else { (merged, refused + 1) };
    }
    assert!(merged > 20, "{merged} items were merged");
    for n in 0..9 * PLAN {
        filter.insert(&items.next().unwrap()).unwrap();
        assert!(n % 1000 > 0 || filter.false_positive_rate() <= rate, "{filter}, {rate} promised");
    }
}

/// Beyond the plan, an item's extra bits tell its copies from other items that match it. A table with such copies does not become a list.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn counts_beyond_the_plan_do_not_change_by_merging_an_empty_filter() {
    for (plan, rate, removed) in [(160, 0.1, 100), (160, 0.1, 130), (1000, 0.1, 700), (1000, 0.03, 800)] {
        let builder = ElasticFilter::builder().false_positive_rate(rate).capacity(1).max_capacity(plan);
        let (items, others) = (removed..120 * plan as u64, 1 << 32..(1 << 32) + 100 * plan as u64);
        let mut filter = builder.clone().build().unwrap();
        filter.insert_iter(0..items.end).unwrap();
        assert!((0..removed).all(|n| filter.remove(&n)));
        let counts = |filter: &ElasticFilter| items.clone().map(|n| filter.count(&n)).collect::<Vec<_>>();
        let mut merged = filter.clone();
        merged.merge(&builder.clone().build().unwrap()).unwrap();
        let case = format!("planned for {plan}, a rate of {rate}");
        assert!(counts(&merged) == counts(&filter) && merged.distinct() == filter.distinct(), "{case}");
        merged.assert_consistent();
        // Nor are items that follow taken for copies of earlier ones.
        let early = |filter: &ElasticFilter| (removed..plan as u64).map(|n| u64::from(filter.count(&n))).sum::<u64>();
        // For that, a list has to become a table. A refused insertion changes nothing.
        for more in [0, 10, 100, 1000, 10_000] {
            let mut limited = merged.clone();
            limited.set_max_bytes(merged.charged_bytes() + more);
            for item in others.clone().take(300) {
                let before = limited.clone();
                if limited.insert(&item).is_err() {
                    assert!(
                        limited.to_bytes() == before.to_bytes() && limited.charged_bytes() == before.charged_bytes(),
                        "{case}"
                    );
                }
            }
        }
        for filter in [&mut filter, &mut merged] {
            filter.insert_iter(others.clone()).unwrap();
        }
        assert!(early(&merged) as f64 <= 1.05 * early(&filter) as f64 + 2.0, "{}, {}: {case}", early(&merged), early(&filter));
        merged.assert_consistent();
        assert_eq!(ElasticFilter::from_bytes(&merged.to_bytes()).unwrap(), merged);
        assert!(items.chain(others).all(|n| merged.remove(&n)), "{case}");
        assert!(merged.is_empty());
        merged.assert_consistent();
    }
}

/// Items that one filter has in its first generation, and the other in a later one, are moved to the first.
#[test]
fn items_of_a_later_generation_move_to_the_first() {
    const PLAN: u64 = 4000;
    let builder = || ElasticFilter::builder().false_positive_rate(1e-5).capacity(4000).max_capacity(4000);
    for partitions in [1, 2] {
        let builder = || builder().partitions(partitions);
        let theirs = filled(builder(), 2 * PLAN..2 * PLAN + 1500);
        let mut ours = filled(builder(), 0..4 * PLAN);
        assert!((0..PLAN / 2).map(key).all(|item| ours.remove(&item)));
        for is_union in [false, true] {
            let (mut merged, expected) = (ours.clone(), 4 * PLAN - PLAN / 2 + if is_union { 0 } else { 1500 });
            if is_union { merged.union(&theirs) } else { merged.merge(&theirs) }.expect("the first generation has room");
            assert_eq!((merged.len() as u64, merged.distinct() as u64), (expected, 4 * PLAN - PLAN / 2), "{is_union} {merged}");
            let counts = (2 * PLAN..2 * PLAN + 1500).map(|n| merged.count(&key(n)));
            assert!(counts.into_iter().all(|count| count == if is_union { 1 } else { 2 }), "{is_union} {merged}");
            merged.assert_consistent();
        }
    }
}

/// A union has the larger copy count of each item, however differently the filters have grown. `SharedFilter::union` gives the same
/// bytes.
#[test]
#[cfg(feature = "std")]
fn a_union_has_the_larger_count_of_each_item() {
    let sizes = [300_u64, 2000, 9000, 40_000];
    for partitions in [1, 4] {
        let builder =
            || ElasticFilter::builder().false_positive_rate(1e-6).capacity(20_000).max_capacity(200_000).partitions(partitions);
        for ours in sizes {
            for theirs in sizes {
                let start = ours / 2;
                let left_copies = |n: u64| if n < ours { 1 + n % 2 } else { 0 };
                let right_copies = |n: u64| if (start..start + theirs).contains(&n) { 1 + n / 2 % 2 } else { 0 };
                let copies = |count: &dyn Fn(u64) -> u64, items: u64| {
                    (0..items).flat_map(|n| core::iter::repeat_n(n, count(n) as usize)).collect::<Vec<_>>()
                };
                let all = ours.max(start + theirs);
                let mut left = filled(builder(), copies(&left_copies, all).into_iter());
                let right = filled(builder(), copies(&right_copies, all).into_iter());
                let (mut shared, other) = (left.clone().into_shared().unwrap(), right.clone().into_shared().unwrap());
                left.union(&right).unwrap();
                shared.union(&other).unwrap();
                let expected: u64 = (0..all).map(|n| left_copies(n).max(right_copies(n))).sum();
                assert_eq!((left.len() as u64, shared.len()), (expected, left.len()));
                assert!((0..all).all(|n| u64::from(left.count(&key(n))) >= left_copies(n).max(right_copies(n))));
                let bytes = left.to_bytes();
                assert_eq!(shared.into_elastic().unwrap().to_bytes(), bytes);
                left.union(&right).unwrap();
                left.union(&left.clone()).unwrap();
                assert_eq!(left.to_bytes(), bytes, "a second union changed the filter");
            }
        }
    }
}

/// Beyond the plan, too, a union has the larger count of each item, whichever generations it is in.
#[test]
fn a_union_takes_the_larger_count_in_each_generation() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001).capacity(50).max_capacity(500);
    let (mut united, mut beyond) = (0, 0);
    for (ours, theirs) in [(300, 2000), (2000, 300), (5000, 200), (200, 5000), (700, 600), (3000, 3000)] {
        for copies in [1, 3, 1000] {
            let left = filled(builder.clone(), (0..ours).chain((0..70).flat_map(|n| [n; 7])));
            // The order differs, so that other items are in the later generations.
            let right =
                filled(builder.clone(), (0..theirs).rev().flat_map(|n| (0..if n < 100 { copies } else { 1 }).map(move |_| n)));
            let in_left = |n: u64| u64::from(n < ours) + if n < 70 { 7 } else { 0 };
            let in_right = |n: u64| if n < 100 { copies } else { u64::from(n < theirs) };
            let mut unions = Vec::new();
            for (mut union, other) in [(left.clone(), &right), (right.clone(), &left)] {
                let (mut sum, before) = (union.clone(), union.to_bytes());
                if sum.merge(other).is_ok() {
                    assert_eq!(sum.len(), left.len() + right.len());
                    assert!((0..5000).all(|n| u64::from(sum.count(&key(n))) >= in_left(n) + in_right(n)));
                    sum.assert_consistent();
                }
                if union.union(other).is_err() {
                    assert!(union.to_bytes() == before);
                    continue;
                }
                united += 1;
                union.assert_consistent();
                assert!(union.false_positive_rate() <= 0.001);
                assert!((0..5000).all(|n| u64::from(union.count(&key(n))) >= in_left(n).max(in_right(n))));
                assert!(union.len() <= left.len() + right.len());
                beyond += usize::from(union.buckets_per_lookup() > 2);
                let bytes = union.to_bytes();
                union.union(other).expect("all items are present");
                assert!(union.to_bytes() == bytes, "a second union changed the filter");
                // Removing each item as often as it is counted empties the filter.
                for n in 0..5000 {
                    let count = union.count(&key(n));
                    (0..count).for_each(|_| assert!(union.remove(&key(n))));
                }
                assert!(union.is_empty(), "{union}");
                unions.push(ElasticFilter::from_bytes(&bytes).expect("a valid snapshot"));
            }
            if let [one, other] = &unions[..] {
                assert_eq!(one.len(), other.len(), "the union depends on which filter is first");
                assert!((0..5000).all(|n| one.count(&key(n)) == other.count(&key(n))));
            }
        }
    }
    assert!(united >= 4 && beyond >= 2, "{united} {beyond}");
}

/// A union of counts near the largest one has the larger of them, although one filter knows more bits of the copies.
#[test]
fn a_union_has_the_larger_of_two_large_counts() {
    let builder = || ElasticFilter::builder().false_positive_rate(0.001).capacity(50).max_capacity(50);
    let grown = || filled(builder(), iter::once(0).chain(1..500).chain([0, 0]));
    let filters = [grown(), filled(builder(), [0, 0, 0].into_iter())].map(|mut filter| {
        for _ in 0..30 {
            filter.merge(&filter.clone()).expect("there is room");
        }
        assert_eq!(filter.count(&key(0)), 3 << 30);
        filter
    });
    for (one, other) in [(0, 1), (1, 0)] {
        let mut union = filters[one].clone();
        union.union(&filters[other]).expect("no item has more copies than a filter counts");
        assert_eq!(union.count(&key(0)), 3 << 30, "{union}");
        union.assert_consistent();
    }
}

/// An intersection has the smaller count of each item, whichever generations it is in, and of other items as many as collide.
/// `SharedFilter::intersect` gives the same bytes.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn an_intersection_has_the_smaller_count_of_each_item() {
    let mut in_other_generations = 0;
    for (rate, capacity, partitions) in [(0.01, 200, 1), (0.001, 1000, 2), (1e-5, 20_000, 1)] {
        let builder = || {
            ElasticFilter::builder().false_positive_rate(rate).capacity(capacity).max_capacity(capacity).partitions(partitions)
        };
        for (ours, theirs) in [(100, 300), (9000, 400), (400, 9000), (9000, 9000), (30_000, 20_000)] {
            let all = ours + theirs / 2;
            let in_left = |n: u64| if n < ours { 1 + n % 3 * (n % 50) } else { 0 };
            let in_right = |n: u64| if n >= ours - ours / 2 { 1 + n % 2 * (n % 70) } else { 0 };
            let copies = |count: &dyn Fn(u64) -> u64, items: &mut dyn Iterator<Item = u64>| {
                filled(builder(), items.flat_map(|n| core::iter::repeat_n(n, count(n) as usize)))
            };
            // The orders differ, so that other items are in the later generations.
            let (left, right) = (copies(&in_left, &mut (0..all)), copies(&in_right, &mut (0..all).rev()));
            let common = (0..all).filter(|&n| in_left(n).min(in_right(n)) > 0).count() as f64;
            for (ours, theirs) in [(&left, &right), (&right, &left)] {
                let mut intersection = ours.clone();
                intersection.intersect(theirs).expect("equal parameters");
                intersection.assert_consistent();
                assert!(intersection.false_positive_rate() <= ours.false_positive_rate());
                assert!(intersection.charged_bytes() <= ours.charged_bytes());
                let counted = |n: u64| u64::from(intersection.count(&key(n)));
                assert!((0..all).all(|n| counted(n) >= in_left(n).min(in_right(n))), "an item is lost");
                let wrong = (0..all).filter(|&n| counted(n) > in_left(n).min(in_right(n))).count() as f64;
                let expected = 2.0 * rate * all as f64;
                assert!(wrong <= expected + 6.0 * expected.sqrt() + 3.0, "{rate}: {wrong} of {all} counted too high");
                assert!(intersection.distinct() as f64 <= common + expected + 6.0 * expected.sqrt() + 3.0, "{intersection}");
                let bytes = intersection.to_bytes();
                intersection.intersect(theirs).expect("equal parameters");
                assert!(intersection.to_bytes() == bytes, "a second intersection changed the filter");
                #[cfg(feature = "std")]
                {
                    let shared = |filter: &ElasticFilter| filter.clone().into_shared().expect("there is memory");
                    let (mut intersection, other) = (shared(ours), shared(theirs));
                    intersection.intersect(&other).expect("equal parameters");
                    assert!(intersection.to_bytes() == bytes);
                }
                in_other_generations += usize::from(intersection.buckets_per_lookup() > 2);
                // Removing each item as often as it is counted empties the filter.
                for n in 0..all {
                    let count = intersection.count(&key(n));
                    (0..count).for_each(|_| assert!(intersection.remove(&key(n))));
                }
                assert!(intersection.is_empty(), "{intersection}");
            }
        }
    }
    assert!(in_other_generations >= 4, "{in_other_generations}");
}

/// Of the items that only one filter has, as many stay as the other finds, and beyond the other's plan also as many as its later items
/// look like.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn an_intersection_keeps_few_items_of_one_filter() {
    const PLAN: u64 = 1000;
    for rate in [0.05, 0.01] {
        let builder = || ElasticFilter::builder().false_positive_rate(rate).capacity(PLAN as usize).max_capacity(PLAN as usize);
        let mut most = 0.0_f64;
        for times in [1, 2, 9, 60] {
            let ours = filled(builder(), 0..PLAN * 9 / 10);
            let theirs = filled(builder(), 1_000_000..1_000_000 + times * PLAN);
            for (ours, theirs) in [(&ours, &theirs), (&theirs, &ours)] {
                let mut intersection = ours.clone();
                intersection.intersect(theirs).expect("equal parameters");
                let (kept, beyond) = (intersection.distinct() as f64, theirs.buckets_per_lookup() > 2);
                let later = if beyond { theirs.len() as f64 * ours.false_positive_rate() } else { 0.0 };
                let stated = ours.len() as f64 * theirs.false_positive_rate() + later;
                assert!(
                    kept <= stated + 6.0 * stated.sqrt() + 3.0,
                    "{rate}, {times} times the plan: {kept} kept, {stated} stated"
                );
                most = most.max(kept);
            }
        }
        assert!(most > 50.0, "{rate}: nothing looks alike: {most}");
    }
}

/// What is left of a large filter takes as much memory as a filter into which only that was inserted, or little more.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn an_intersection_shrinks() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001);
    let (mut large, few) = (filled(builder.clone(), 0..100_000), filled(builder.clone(), 99_000..101_000));
    large.intersect(&few).expect("equal parameters");
    let alone = filled(builder, 99_000..100_000);
    assert!(large.len() >= alone.len() && large.distinct() < alone.len() + 20, "{large}");
    assert!(large.size_in_bytes() < 2 * alone.size_in_bytes(), "{large}; {alone}");
}

/// A merge adds the copies of common items: of all, of half or of few, whether they are the first copies or copies are frequent by then,
/// and also if the other filter counts copies beside its tables, for one in five of its items or for all.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_merge_adds_the_copies_of_common_items() {
    let builder = || ElasticFilter::builder().false_positive_rate(1e-6);
    let builders = [
        builder().max_capacity(200_000),
        builder().capacity(30_000).max_capacity(30_000),
        builder().capacity(60_000).max_capacity(60_000),
        builder().capacity(100).max_capacity(60_000).partitions(4),
    ];
    let shares = [0, 7000, 13_000].into_iter().flat_map(|first| [(first, 0), (first, 3000), (first, 14_000)]);
    for (builder, (first, doubled)) in builders.iter().flat_map(|builder| shares.clone().map(move |share| (builder, share))) {
        let (mut filter, mut other) = (filled(builder.clone(), 0..14_000), filled(builder.clone(), first..first + 14_000));
        other.merge(&filled(builder.clone(), first..first + doubled)).expect("there is room");
        let in_other = |item: u64| u32::from(item >= first) + u32::from((first..first + doubled).contains(&item));
        for times in 1..4 {
            let len = filter.len();
            filter.merge(&other).expect("there is room");
            filter.assert_consistent();
            assert_eq!(filter.len(), len + other.len());
            // Few items look like another one.
            let counts = (0..first + 14_000).map(|item| {
                let expected = u32::from(item < 14_000) + times * in_other(item);
                (filter.count(&key(item)), expected)
            });
            assert!(counts.clone().all(|(count, expected)| count >= expected), "{filter}");
            assert!(counts.filter(|(count, expected)| count > expected).count() <= 3, "{filter}");
        }
        assert!(ElasticFilter::from_bytes(&filter.to_bytes()).expect("a valid snapshot") == filter);
        let copies = |item: u64| u32::from(item < 14_000) + 3 * in_other(item);
        let mut items = (0..first + 14_000).flat_map(|item| (0..copies(item)).map(move |_| item));
        assert!(items.all(|item| filter.remove(&key(item))) && filter.is_empty(), "{filter}");
    }
}

/// Below the plan, just beyond it, where slots are left that single insertions do not use, and well beyond it, a sum and a union have
/// all copies, in either order, and equal a filter with single insertions. Shards of fewer than 4096 slots, which filters in other
/// tests of merges have, are never full.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn merges_around_the_plan_keep_all_copies() {
    let mut beyond = 0;
    for (plan, partitions, rate) in [(12_000_u64, 1, 0.01), (12_000, 2, 1e-6), (15_000, 1, 0.001)] {
        let capacity = plan.try_into().expect("a small number");
        let builder = ElasticFilter::builder().false_positive_rate(rate).capacity(capacity).max_capacity(capacity);
        let builder = builder.partitions(partitions);
        for (percent, emptied) in [(95, 0), (104, 0), (106, 0), (107, 10), (112, 0), (130, 40), (200, 60)] {
            let (items, removed) = (plan * percent / 100, plan * emptied / 100);
            // Few items, or a third of the plan. Half of them are common.
            for (theirs, copies) in [(20, 1), (20, 3), (plan / 3, 2)] {
                let mut ours = filled(builder.clone(), 0..items);
                // Room in the first generation for items of later ones.
                assert!((0..removed).all(|item| ours.remove(&key(item))));
                let start = items - theirs / 2;
                let added = || (start..start + theirs).flat_map(|item| iter::repeat_n(item, copies));
                let other = filled(builder.clone(), added());
                let mut inserted = ours.clone();
                inserted.insert_iter(added().map(key)).expect("the filter grows");
                let count = |item: u64| (usize::from((removed..items).contains(&item)), if item < start { 0 } else { copies });
                for (mut sum, other) in [(ours.clone(), &other), (other.clone(), &ours)] {
                    let (case, mut union) =
                        (format!("{percent} %, {emptied} % removed, {theirs} items {copies} times"), sum.clone());
                    let len = sum.len() + other.len();
                    if let Err(error) = sum.merge(other) {
                        assert!(matches!(error, MergeError::MaxCapacity { .. }) && same_bits(&sum, &union), "{case}: {error}");
                        continue;
                    }
                    union.union(other).expect("a sum has more items");
                    for merged in [&sum, &union] {
                        merged.assert_consistent();
                        beyond += usize::from(merged.buckets_per_lookup() > 2);
                    }
                    assert!(sum.len() == len && union.len() <= len, "{case}: {len} items, {sum}; {union}");
                    // At other rates, it depends on the order which items are confused.
                    assert!(rate > 1e-5 || sum == inserted, "{case}: {sum}; {inserted}");
                    for item in removed..start + theirs {
                        let ((ours, theirs), item) = (count(item), key(item));
                        let counted = [&sum, &union].map(|merged| merged.count(&item) as usize);
                        assert!(counted[0] >= ours + theirs && counted[1] >= ours.max(theirs), "{case}: {sum}; {union}");
                    }
                }
            }
        }
    }
    assert!(beyond > 50, "{beyond}");
}

/// Up to the plan, which shards there are, and which of them are lists, depends on the distinct items alone.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn merged_filters_have_the_shards_of_single_insertions() {
    let plans = [(1e-8, 1, 4), (0.05, 1, 1), (1e-6, 1, 1), (1e-3, 20_000, 1), (1e-3, 100, 2)];
    for (rate, capacity, partitions) in plans {
        let builder = ElasticFilter::builder().false_positive_rate(rate).capacity(capacity).partitions(partitions);
        let builder = builder.max_capacity(1_000_000);
        let facts = |filter: &ElasticFilter| (filter.shards(), filter.charged_bytes(), filter.false_positive_rate().to_bits());
        // The shards of these filters have different depths, and some are lists.
        for large in [7000, 17_000, 23_000, 39_000, 70_000] {
            let theirs = filled(builder.clone(), 200_000..200_000 + large);
            for small in [0, 700, 3000, 11_000] {
                let ours = filled(builder.clone(), 0..small);
                let mut inserted = theirs.clone();
                inserted.insert_iter((0..small).map(key)).expect("the filter grows");
                for (into, other) in [(&ours, &theirs), (&theirs, &ours)] {
                    let (mut sum, mut union) = (into.clone(), into.clone());
                    sum.merge(other).expect("there is room");
                    union.union(other).expect("there is room");
                    assert_eq!(facts(&sum), facts(&inserted), "{large} and {small}: {sum}; {inserted}");
                    // A union has items once that look alike.
                    let is_exact = union.len() == inserted.len();
                    assert!(!is_exact || facts(&union) == facts(&inserted), "{large} and {small}: {union}; {inserted}");
                }
            }
        }
    }
}

/// A filter that had more items, and gave them up in any order, merges as one that never had them: into the same shards, of the same
/// size. A list may be left where new filters have a table.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn items_removed_before_a_merge_leave_no_trace() {
    let builder = |capacity, partitions| {
        let builder = ElasticFilter::builder().false_positive_rate(1e-6).capacity(capacity).max_capacity(48_000);
        builder.partitions(partitions)
    };
    for builder in [builder(100, 1), builder(12_000, 1), builder(12_000, 2), builder(40_000, 1)] {
        let all = filled(builder.clone(), 0..40_000);
        for few in [0, 10, 2000, 9000] {
            let new = filled(builder.clone(), 0..few);
            let mut removed = all.clone();
            assert!((few..40_000).all(|item| removed.remove(&key(item))));
            // Removes the items of one shard after those of another.
            let mut intersection = all.clone();
            intersection.intersect(&new).expect("equal parameters");
            for mut had_more in [removed, intersection] {
                assert_eq!(had_more.len() as u64, few);
                for shrinks in [false, true] {
                    if shrinks {
                        had_more.shrink();
                    }
                    for added in [0, 20, 9000] {
                        let added = filled(builder.clone(), 50_000..50_000 + added);
                        let merged = |into: &ElasticFilter, other: &ElasticFilter| {
                            let mut sum = into.clone();
                            sum.merge(other).expect("there is room");
                            sum.assert_consistent();
                            (sum.len(), sum.shards(), sum.charged_bytes(), sum.false_positive_rate().to_bits())
                        };
                        assert_eq!(merged(&had_more, &added), merged(&new, &added), "{few}: {had_more}; {new}; {added}");
                        assert_eq!(merged(&added, &had_more), merged(&added, &new), "{few}: {had_more}; {new}; {added}");
                    }
                }
            }
        }
    }
}

/// A merge with a filter that has copies takes little more memory than single insertions do.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn a_merge_of_copies_takes_little_more_memory_than_insertions() {
    let builder = || ElasticFilter::builder().false_positive_rate(0.001);
    for builder in [builder(), builder().capacity(60_000).max_capacity(60_000)] {
        for copies in [2, 3, 10] {
            let doubled = || (50_000..60_000).flat_map(|item| iter::repeat_n(item, copies));
            let mut merged = filled(builder.clone(), 0..50_000);
            merged.merge(&filled(builder.clone(), doubled())).expect("there is room");
            let inserted = filled(builder.clone(), (0..50_000).chain(doubled()));
            let bytes = [&merged, &inserted].map(ElasticFilter::size_in_bytes);
            assert!(merged.len() == inserted.len() && bytes[0] * 10 <= bytes[1] * 11, "{bytes:?}: {merged}; {inserted}");
        }
    }
}

/// An item may have as many copies as can be counted, whatever other items both filters have.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn merges_count_copies_up_to_the_limit() {
    let builder = || ElasticFilter::builder().false_positive_rate(1e-6).capacity(20_000).max_capacity(20_000);
    let mut copies = filled(builder(), [0].into_iter());
    (0..31).for_each(|_| copies.merge(&copies.clone()).expect("counted"));
    assert!(copies.remove(&key(0)) && copies.remove(&key(0)));
    copies.merge(&copies.clone()).expect("counted");
    let (mut filter, other) = (filled(builder(), 0..9000), filled(builder(), 0..9000));
    filter.merge(&copies).expect("counted");
    for count in [u32::MAX - 2, u32::MAX - 1, u32::MAX] {
        assert_eq!(filter.count(&key(0)), count);
        let (before, merged) = (filter.to_bytes(), filter.merge(&other));
        if count < u32::MAX {
            merged.expect("counted");
        } else {
            let is_expected =
                |error: &MergeError| matches!(error, MergeError::Insert(error) if error.kind() == InsertErrorKind::TooManyCopies);
            assert!(merged.is_err_and(|error| is_expected(&error)) && filter.to_bytes() == before);
        }
    }
    assert!((1..9000).all(|item| filter.count(&key(item)) >= 3));
}

/// Also if the copies are in a list of the first generation here, and in a later generation there.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
#[cfg(target_pointer_width = "64")]
fn merges_count_copies_in_lists_and_later_generations_up_to_the_limit() {
    let builder = || ElasticFilter::builder().false_positive_rate(0.001).max_capacity(2000);
    let doubled = |mut filter: ElasticFilter| {
        (0..31).for_each(|_| filter.merge(&filter.clone()).expect("counted"));
        filter
    };
    let mut early = doubled(filled(builder(), [9000].into_iter()));
    let mut late = filled(builder(), 0..10_000);
    (0..9000).chain(9001..10_000).for_each(|item| assert!(late.remove(&key(item))));
    let late = doubled(late);
    assert_eq!([early.count(&key(9000)), late.count(&key(9000))], [1 << 31; 2]);
    let before = early.to_bytes();
    assert!(early.merge(&late).is_err() && early.to_bytes() == before);
    assert!(early.remove(&key(9000)));
    early.merge(&late).expect("counted");
    assert_eq!((early.count(&key(9000)), early.len()), (u32::MAX, u32::MAX as usize));
    early.insert_iter((20_000..25_000).map(key)).expect("other items");
    assert!(early.insert(&key(9000)).is_err_and(|error| error.kind() == InsertErrorKind::TooManyCopies));
    assert_eq!(early.len(), u32::MAX as usize + 5000);
}

#[test]
fn a_merge_refused_for_any_reason_changes_nothing() {
    let builder = ElasticFilter::builder().false_positive_rate(1e-5).capacity(100);
    let first = builder.clone().params().unwrap().size_in_bytes();
    let mut filter = builder.clone().max_bytes(first + 50_000).build().unwrap();
    filter.insert_iter(0..2000u64).unwrap();
    let other = filled(builder.clone(), 0..50_000);
    let before = filter.to_string();
    match filter.merge(&other).unwrap_err() {
        MergeError::Insert(error) => assert!(matches!(error.kind(), InsertErrorKind::Limit { .. }), "{error}"),
        error => panic!("{error}"),
    }
    assert_eq!(filter.to_string(), before);
    assert!((0..2000u64).all(|n| filter.contains(&n)));
    let mut copies = builder.build().unwrap();
    copies.insert("alice").unwrap();
    (0..31).for_each(|_| copies.merge(&copies.clone()).unwrap());
    let before = copies.to_bytes();
    assert!(
        matches!(copies.merge(&copies.clone()), Err(MergeError::Insert(error)) if error.kind() == InsertErrorKind::TooManyCopies)
    );
    assert!(copies.count("alice") == 1 << 31 && copies.to_bytes() == before);
}

#[test]
fn a_merge_names_the_first_parameter_that_differs() {
    let base = ElasticFilter::builder().capacity(1000).max_capacity(100_000).false_positive_rate(0.01);
    let mut filter = base.clone().build().unwrap();
    for (other, parameter, ours, theirs) in [
        (base.clone().capacity(2000).seed(1), "capacity", 1000, 2000),
        (base.clone().max_capacity(200_000), "max_capacity", 100_000, 200_000),
        (base.clone().partitions(2), "partitions", 1, 2),
        (base.clone().seed(u64::MAX), "seed", 0, u64::MAX),
    ] {
        let error = filter.merge(&other.build().unwrap()).unwrap_err();
        let MergeError::DifferentPlans { parameter: named, ours: own, theirs: others, .. } = error else { panic!("{error}") };
        assert_eq!((named, own, others), (parameter, ours, theirs));
        assert_eq!(
            error.to_string(),
            format!(
                "only filters with the same {parameter} can be merged, but this one has {ours}, and the other {theirs}; build both \
                 from the same parameters"
            )
        );
    }
    let error = filter.union(&base.false_positive_rate(1e-7).build().unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "only filters with the same false_positive_rate can be merged, but this one has 0.01, and the other 1e-7; build both from the \
         same parameters"
    );
}
