//! Batches on one thread and on several, conversions between `ElasticFilter` and `SharedFilter`, and copies.

use std::thread;

use koel::{Contains, ElasticFilter, Filter, InsertErrorKind, Kernel, Prehashed, SharedFilter};

use super::{builder, shared};

const ITEMS: u64 = if cfg!(miri) { 300 } else { 30_000 };

fn items(range: std::ops::Range<u64>) -> Vec<u64> {
    range.collect()
}

/// The sizes cover small batches, one group of hashes, and several groups.
#[test]
fn batches_match_single_operations() {
    for kernel in Kernel::available() {
        for items in [0, 1, 100, 3000, ITEMS] {
            let filter = builder().kernel(kernel).build_shared().expect("valid parameters");
            let (present, keys) = (self::items(0..items), self::items(items / 2..2 * items));
            filter.insert_batch(&present).expect("the filter grows");
            assert_eq!(filter.len() as u64, items);
            let mut found = vec![true; keys.len()];
            filter.contains_batch(&keys, &mut found);
            assert!(keys.iter().zip(&found).all(|(&item, &found)| found == (item < items)), "{items} items, {kernel}");
            let answers: Vec<(u64, bool)> = filter.contains_iter(keys.iter().copied()).collect();
            assert!(answers.iter().zip(&found).all(|((_, answer), found)| answer == found));
            let hashes: Vec<u64> = keys.iter().map(|item| filter.hash(item)).collect();
            let mut again = vec![true; keys.len()];
            filter.contains_batch(&Prehashed(&hashes), &mut again);
            assert_eq!(again, found);
            filter.remove_batch(&Prehashed(&hashes), &mut again);
            assert_eq!(again, found);
            assert_eq!(filter.len() as u64, items / 2);
            filter.insert_batch(&Prehashed(&hashes)).expect("the filter grows");
            let mut removed = vec![false; keys.len()];
            filter.remove_batch(&keys, &mut removed);
            assert!(removed.iter().all(|&removed| removed));
        }
    }
}

#[test]
fn a_batch_may_contain_many_copies() {
    let filter = shared();
    let mut batch = items(0..ITEMS);
    batch.splice(50..50, [7; 100]);
    filter.insert_batch(&batch).expect("copies are always accepted");
    assert_eq!((filter.count(&7_u64), filter.len() as u64), (101, ITEMS + 100));
    assert!((0..ITEMS).all(|n| filter.contains(&n)));
    let mut removed = vec![false; batch.len()];
    filter.remove_batch(&batch, &mut removed);
    assert!(filter.is_empty() && removed.iter().all(|&removed| removed));
}

#[test]
fn batches_on_several_threads_match_single_operations() {
    for threads in [1, 3, 8] {
        let filter = shared();
        let insert = |items: &[u64]| {
            thread::scope(|scope| {
                let each = items.len().div_ceil(threads);
                let started: Vec<_> = items.chunks(each).map(|part| scope.spawn(|| filter.insert_batch(part))).collect();
                let results = started.into_iter().map(|thread| thread.join().expect("the thread does not panic"));
                results.map(|result| result.map_err(|error| error.position())).collect::<Vec<_>>()
            })
        };
        assert_eq!(insert(&items(0..ITEMS)), vec![Ok(()); threads]);
        let keys = items(ITEMS / 2..ITEMS * 3 / 2);
        let mut found = vec![false; keys.len()];
        thread::scope(|scope| {
            let each = keys.len().div_ceil(threads);
            for (keys, found) in keys.chunks(each).zip(found.chunks_mut(each)) {
                scope.spawn(|| filter.contains_batch(keys, found));
            }
        });
        assert!(keys.iter().zip(found).all(|(&item, found)| found == (item < ITEMS)));
        let copies = insert(&[vec![1; 20], items(ITEMS..2 * ITEMS)].concat());
        assert_eq!(copies, vec![Ok(()); threads]);
        assert_eq!((filter.len() as u64, filter.count(&1_u64)), (2 * ITEMS + 20, 21));
    }
}

#[test]
fn a_filter_can_become_shared_and_owned_again() {
    let mut owned = builder().partitions(16).build().expect("valid parameters");
    owned.insert_iter(0..ITEMS).expect("the filter grows");
    let (params, bytes) = (owned.params(), owned.table_bytes());
    let shared = owned.into_shared().expect("there is memory");
    assert_eq!((shared.partitions(), shared.params(), shared.table_bytes()), (16, params, bytes));
    shared.insert_batch(&items(ITEMS..2 * ITEMS)).expect("the filter grows");
    let mut owned = shared.into_elastic().expect("there is memory");
    assert!((0..2 * ITEMS).all(|n| owned.contains(&n)) && owned.len() as u64 == 2 * ITEMS);
    let mut other = ElasticFilter::new(params, *owned.hasher()).expect("there is memory");
    other.insert_iter(2 * ITEMS..3 * ITEMS).expect("the filter grows");
    owned.merge(&other).expect("the parameters are equal");
    assert!((0..3 * ITEMS).all(|n| owned.contains(&n)) && owned.len() as u64 == 3 * ITEMS);
    // A filter with one partition can be shared, too.
    let shared = builder().build().expect("valid parameters").into_shared().expect("there is memory");
    shared.insert_batch(&items(0..ITEMS)).expect("the filter grows");
    assert!(shared.partitions() == 1 && shared.len() as u64 == ITEMS);
}

#[test]
fn iterators_match_single_operations() {
    let filter = shared();
    assert_eq!(filter.insert_iter(items(0..ITEMS)).expect("the filter grows") as u64, ITEMS);
    assert_eq!(filter.insert_unique_iter(items(0..ITEMS)).expect("the filter grows"), 0);
    assert_eq!(filter.count_members(&items(0..ITEMS)) as u64, ITEMS);
    assert!(filter.contains_iter(items(0..ITEMS)).all(|(_, found)| found));
    assert_eq!(
        filter.insert_iter(items(ITEMS..ITEMS + 100).into_iter().chain([7; 20])).expect("copies are always accepted"),
        120
    );
    assert_eq!((filter.len() as u64, filter.count(&7_u64)), (ITEMS + 120, 21));
    filter.set_max_bytes(0);
    let error = filter.insert_iter(2 * ITEMS..9 * ITEMS).unwrap_err();
    assert!(matches!(error.kind(), InsertErrorKind::Limit { .. }));
    assert_eq!(filter.len() as u64, ITEMS + 120 + error.position() as u64);
}

#[test]
fn a_shared_filter_implements_contains_and_filter() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    let filter = shared();
    is_shared(&filter);
    filter.insert("alice").expect("the filter grows");
    let any: &dyn Contains = &filter;
    assert!(any.contains(&Prehashed(filter.hash("alice"))) && any.len() == 1 && any.count(&Prehashed(filter.hash("alice"))) == 1);
    let answers = &mut [false; 2];
    any.contains_batch(&[filter.hash("alice"), filter.hash("bob")].map(Prehashed), answers);
    assert_eq!(*answers, [true, false]);
    assert!((&filter as &dyn Contains<str>).contains("alice"));
    assert_eq!(Filter::false_positive_rate(&filter).to_bits(), filter.false_positive_rate().to_bits());
    assert_eq!(Filter::size_in_bytes(&filter), filter.size_in_bytes());
    assert!(format!("{filter:?}").starts_with("SharedFilter { params: "));
    assert!(filter.to_string().starts_with("1 item in ") && filter.bits_per_item() > 0.0);
    assert_eq!(filter.kernel(), Kernel::best());
    let others: Vec<SharedFilter> = vec![shared()];
    assert!(others[0].hasher() == filter.hasher());
}

#[test]
fn snapshots_can_be_written_while_other_threads_write() {
    let filter = shared();
    filter.insert_batch(&items(0..ITEMS)).expect("the filter grows");
    let snapshots: Vec<ElasticFilter> = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in ITEMS..3 * ITEMS {
                filter.insert(&n).expect("the filter grows");
                assert!(n % 2 == 0 || filter.remove(&n));
            }
        });
        let snapshots = (0..5).map(|_| {
            let mut bytes = Vec::new();
            filter.write_to(&mut bytes).expect("writing to a vector succeeds");
            ElasticFilter::from_bytes(&bytes).expect("a valid snapshot")
        });
        let snapshots = snapshots.collect();
        writer.join().expect("the thread does not panic");
        snapshots
    });
    let mut last = ITEMS as usize;
    for snapshot in snapshots {
        assert!((0..ITEMS).all(|n| snapshot.contains(&n)));
        assert!(snapshot.len() >= last);
        last = snapshot.len() - 1;
    }
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("writing to a vector succeeds");
    let read = ElasticFilter::from_bytes(&bytes).expect("a valid snapshot").into_shared().expect("there is memory");
    assert_eq!((read.len(), read.partitions(), read.params()), (filter.len(), filter.partitions(), filter.params()));
    assert!((0..3 * ITEMS).all(|n| read.contains(&n) == (n < ITEMS || n % 2 == 0)));
}

/// Threads compare two filters in both orders, and one with itself, while others write to both. There is no deadlock.
#[test]
fn filters_can_be_compared_and_cloned_while_others_write() {
    let (first, second) = (shared(), shared());
    first.insert_batch(&items(0..ITEMS / 10)).expect("the filter grows");
    thread::scope(|scope| {
        for filter in [&first, &second] {
            scope.spawn(|| {
                for n in ITEMS..ITEMS + ITEMS / 10 {
                    filter.insert(&n).expect("the filter grows");
                    assert!(filter.remove(&n));
                }
            });
        }
        for (one, other) in [(&first, &second), (&second, &first), (&first, &first)] {
            scope.spawn(move || {
                for _ in 0..100 {
                    assert_eq!(one == other, std::ptr::eq(one, other));
                    assert!(one.try_clone().expect("there is memory").len() as u64 <= ITEMS);
                }
            });
        }
    });
    let copy = first.try_clone().expect("there is memory");
    assert!(copy == first && copy.to_bytes() == first.to_bytes() && copy.params() == first.params());
    copy.insert(&7_u64).expect("the filter grows");
    assert!(copy != first);
}

/// Threads fill two filters in different orders. Then they compare both in both directions, and with a filter of one thread.
#[test]
fn filters_that_threads_filled_in_different_orders_are_equal() {
    const QUARTER: u64 = ITEMS / 40;
    let (first, second) = (shared(), shared());
    let mut owned = builder().partitions(8).build().expect("valid parameters");
    owned.insert_batch(&items(0..4 * QUARTER)).expect("the filter grows");
    thread::scope(|scope| {
        for quarter in 0..4 {
            let (first, second) = (&first, &second);
            scope.spawn(move || {
                let mut part = items(quarter * QUARTER..(quarter + 1) * QUARTER);
                first.insert_batch(&part).expect("the filter grows");
                part.reverse();
                second.insert_batch(&part).expect("the filter grows");
            });
        }
    });
    thread::scope(|scope| {
        for (one, other) in [(&first, &second), (&second, &first)] {
            let owned = &owned;
            scope.spawn(move || (0..10).for_each(|_| assert_eq!([one == other, one == owned, owned == one], [true; 3])));
        }
    });
    assert!(second.remove(&0_u64));
    assert_eq!(
        [first == second, second == first, owned == second, second == owned, owned == first],
        [false, false, false, false, true]
    );
}

/// `extend` does not insert items that are already present.
#[test]
fn extend_skips_present_items() {
    let words = || "to be or not to be ".repeat(20);
    let (filter, mut owned) = (shared(), builder().build().expect("valid parameters"));
    thread::scope(|scope| {
        for _ in 0..3 {
            let mut filter = &filter;
            scope.spawn(move || filter.extend(words().split_whitespace()));
        }
    });
    owned.extend(words().split_whitespace());
    assert!(filter.len() == 4 && owned.len() == 4 && filter.contains("be") && owned.contains("be"));
}
