//! Filters that hold few items store them in a list instead of tables. They change to tables when they grow, and back when they
//! shrink.

use crate::common::{key, same_bits, split_mix::unmixed};
use koel::{ElasticBuilder, ElasticFilter, ElasticView, InsertErrorKind, Prehashed, SharedFilter};

fn default() -> ElasticBuilder {
    ElasticFilter::builder().false_positive_rate(0.01)
}

/// Returns builders of filters that change to tables at a few hundred items.
fn tiny() -> [ElasticBuilder; 3] {
    let small = default().capacity(10).max_capacity(600);
    [default().capacity(1).max_capacity(1000), small.clone(), small.partitions(4).max_capacity(20_000)]
}

/// The memory of small filters stays within the bounds that docs/GROWTH.md states.
#[test]
#[cfg(target_pointer_width = "64")]
fn few_items_take_little_memory() {
    for (rate, bounds) in [(0.01, [460, 460, 960, 3850]), (0.001, [460, 460, 960, 4300])] {
        for (items, most) in [0, 5, 100, 1000].into_iter().zip(bounds) {
            let filter = crate::common::filled(default().false_positive_rate(rate), items);
            assert!(filter.size_in_bytes() <= most, "{filter}; at most {most}");
            assert_eq!(filter.buckets() == 0, items < 1000, "{filter}");
        }
    }
    for rate in [0.01, 0.001] {
        let shared = default().false_positive_rate(rate).build_shared().expect("valid parameters");
        shared.insert_iter((0..10_000).map(key)).expect("the filter grows");
        assert!(shared.size_in_bytes() <= 70_000 && shared.buckets() == 0, "{shared}");
    }
}

/// Compares the filter with `copies` of each item, through every query, and with a view and a reloaded filter.
#[track_caller]
fn check(filter: &ElasticFilter, copies: &[u32]) {
    filter.assert_consistent();
    assert!(filter.size_in_bytes() <= filter.charged_bytes(), "{filter}");
    let bytes = filter.to_bytes();
    let view = ElasticView::over(&bytes).expect("a valid snapshot");
    view.verify().expect("a valid snapshot");
    let read = ElasticFilter::from_bytes(&bytes).expect("a valid snapshot");
    assert!(same_bits(&read, filter) && read.charged_bytes() == filter.charged_bytes(), "{filter}");
    let sum = copies.iter().map(|&copies| copies as usize).sum::<usize>();
    assert_eq!([filter.len(), view.len()], [sum; 2], "{filter}");
    assert_eq!((filter.slots(), filter.shards()), (view.slots(), view.shards()));
    assert_eq!(filter.distinct(), view.distinct());
    assert!((filter.false_positive_rate() - view.false_positive_rate()).abs() <= 1e-12, "{filter}");
    let keys: Vec<u64> = (0..2 * copies.len() as u64).map(key).collect();
    let (mut found, mut found_by_view) = (vec![false; keys.len()], vec![false; keys.len()]);
    filter.contains_batch(&keys, &mut found);
    view.contains_batch(&keys, &mut found_by_view);
    for (n, key) in keys.iter().enumerate() {
        let (count, expected) = (filter.count(key), copies.get(n).copied().unwrap_or(0));
        // Another item with the same stored bits may add to the count.
        assert!(
            count >= expected && view.count(key) == count,
            "item {n} was inserted {expected} times, but is counted {count} times"
        );
        assert!([found[n], found_by_view[n], view.contains(key)] == [filter.contains(key); 3]);
        assert!(filter.contains(key) || expected == 0, "item {n} is lost");
    }
}

/// Inserts single items, some of them several times, until a list becomes tables, and removes them all again.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn lists_become_tables_and_tables_become_lists() {
    let [two, three] = [(default(), 1200), (default().partitions(4), 3000)];
    for (builder, items) in tiny().into_iter().zip([500, 300, 3000]).chain([two, three]) {
        let mut filter = builder.build().expect("valid parameters");
        let mut copies = vec![0; items];
        let mut forms = Vec::new();
        let note = |filter: &ElasticFilter, forms: &mut Vec<bool>| {
            // After a split, all parts may be lists.
            let has_tables = filter.buckets() > 0 || filter.shards() > filter.partitions();
            if forms.last() != Some(&has_tables) {
                forms.push(has_tables);
            }
        };
        let step = items / 50;
        for n in 0..items {
            filter.insert(&key(n as u64)).expect("the filter grows");
            copies[n] = 1;
            for copy in 0..n % 7 / 5 * 3 {
                filter.insert(&key((n / 2) as u64)).expect("copies are always accepted");
                copies[n / 2] += 1;
                assert!(copy < 3);
            }
            note(&filter, &mut forms);
            if n % step == 0 {
                check(&filter, &copies);
            }
        }
        check(&filter, &copies);
        for n in 0..items {
            while copies[n] > 0 {
                assert!(filter.remove(&key(n as u64)), "item {n} of {filter}");
                copies[n] -= 1;
            }
            note(&filter, &mut forms);
            if n % step == 0 || n + 10 > items {
                check(&filter, &copies);
            }
        }
        assert_eq!(forms, [false, true, false], "{filter}");
        assert!(filter.is_empty() && filter.to_bytes() == ElasticFilter::new(filter.params(), koel::Xxh3).unwrap().to_bytes());
    }
}

/// Merges and unions of lists and tables hold the items of both filters, in either order.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn lists_and_tables_can_be_merged() {
    for builder in tiny() {
        let sizes = [(3, 5), (60, 70), (200, 180), (15, 90), (400, 15), (15, 400), (400, 500), (200, 900), (0, 12), (120, 0)];
        let copies = [(2, 10), (2, 0), (10, 0), (0, 10), (0, 0)];
        for ((ours, theirs), (more_of_ours, more_of_theirs)) in sizes.into_iter().flat_map(|size| copies.map(|more| (size, more)))
        {
            let filled = |from: u64, items: u64, more: u64| {
                let mut filter = builder.clone().build().expect("valid parameters");
                filter.insert_iter((from..from + items).map(key)).expect("the filter grows");
                filter
                    .insert_iter((from..from + items).step_by(3).flat_map(|n| (0..more).map(move |_| key(n))))
                    .expect("copies are always accepted");
                filter
            };
            let (one, other) = (filled(0, ours, more_of_ours), filled(ours / 2, theirs, more_of_theirs));
            let (mut sum, mut union) = (one.clone(), one.clone());
            sum.merge(&other).expect("the filter grows");
            union.union(&other).expect("the filter grows");
            sum.assert_consistent();
            union.assert_consistent();
            assert_eq!(sum.len(), one.len() + other.len());
            for n in 0..ours + theirs {
                let [here, there] = [&one, &other].map(|filter| filter.count(&key(n)));
                let case = format!("{n} of {ours} and {theirs}, {more_of_ours} and {more_of_theirs} more");
                assert!(sum.count(&key(n)) >= here + there && union.count(&key(n)) >= here.max(there), "{case}");
            }
            let read = ElasticFilter::from_bytes(&sum.to_bytes()).expect("a valid snapshot");
            assert!(same_bits(&read, &sum));
            let mut cleared = sum;
            cleared.clear();
            assert!(cleared.is_empty() && cleared.buckets() == 0);
        }
    }
}

/// A refused item changes nothing, whether the filter has a list or is about to get tables.
#[test]
fn a_memory_limit_holds_for_lists_and_for_the_first_tables() {
    for builder in tiny() {
        let empty = builder.clone().params().expect("valid parameters").size_in_bytes();
        let mut tables = 0;
        for limit in (empty..empty + 900).step_by(19).chain((empty + 900..empty + 9000).step_by(900)) {
            let mut filter = builder.clone().max_bytes(limit).build().expect("the empty filter is within the limit");
            for n in 0..3000 {
                let before = filter.to_bytes();
                if let Err(error) = filter.insert(&key(n)) {
                    assert!(matches!(error.kind(), InsertErrorKind::Limit { .. }), "{error}");
                    assert!(filter.to_bytes() == before);
                    let mut read = ElasticFilter::from_bytes(&before).expect("a valid snapshot");
                    read.set_max_bytes(limit);
                    let refused = read.insert(&key(n)).unwrap_err();
                    assert!(matches!(refused.kind(), InsertErrorKind::Limit { .. }), "{refused}");
                    break;
                }
                assert!(filter.charged_bytes() <= limit);
            }
            tables += usize::from(filter.buckets() > 0);
            filter.assert_consistent();
        }
        assert!(tables > 0);
    }
}

/// Items that no table has room for stay in the list, and so do all items inserted after them.
#[test]
fn chosen_items_in_a_list_do_not_block_other_items() {
    let [builder, ..] = tiny();
    let mut filter = builder.build().expect("valid parameters");
    // These hashes differ only in their lowest five bits, so all of them belong in the same shard, at every depth.
    let hash = |n: u64| (n << 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59 | 1 << 62;
    for n in 0..20 {
        filter.insert(&Prehashed(unmixed(hash(n)))).expect("a list takes any item");
    }
    let before = filter.len();
    for n in 0..2000 {
        filter.insert(&key(n)).expect("other items are accepted");
        assert!(filter.contains(&key(n)));
    }
    assert_eq!(filter.len(), before + 2000);
    filter.assert_consistent();
}

/// Each partition changes from a list to tables individually.
#[test]
fn each_partition_of_a_shared_filter_has_a_list_or_tables() {
    let filter = default().partitions(8).build_shared().expect("valid parameters");
    let items: Vec<u64> = (0..5600).map(key).collect();
    filter.insert_batch(&items).expect("the filter grows");
    assert!(filter.shards() == 8 && (1..8).contains(&(filter.buckets() / 268)), "{filter}");
    let mut found = vec![false; items.len()];
    filter.contains_batch(&items, &mut found);
    assert!(found.iter().all(|&found| found) && filter.len() == items.len());
    let read = SharedFilter::from_bytes(&filter.to_bytes()).expect("a valid snapshot");
    assert!(same_bits(&read, &filter));
    let mut removed = vec![false; items.len()];
    filter.remove_batch(&items, &mut removed);
    assert!(removed.iter().all(|&removed| removed) && filter.is_empty() && filter.buckets() == 0);
}
