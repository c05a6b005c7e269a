//! Batches, on one thread and on several, and changing between the two types.

use std::thread;

use koel::{Contains, ElasticFilter, Filter, InsertErrorKind, Kernel, Prehashed, SharedFilter};

use super::{builder, shared};

const ITEMS: u64 = if cfg!(miri) { 300 } else { 30_000 };

fn items(range: std::ops::Range<u64>) -> Vec<u64> {
    range.collect()
}

/// Few items, as many as are shared out once, and more.
#[test]
fn batches_do_what_single_operations_do() {
    for kernel in Kernel::available() {
        for items in [0, 1, 100, 3000, ITEMS] {
            let filter = builder().kernel(kernel).build_shared().expect("the parameters are right");
            let (present, asked) = (self::items(0..items), self::items(items / 2..2 * items));
            filter.insert_batch(&present).expect("it grows");
            assert_eq!(filter.len() as u64, items);
            let mut found = vec![true; asked.len()];
            filter.contains_batch(&asked, &mut found);
            assert!(asked.iter().zip(&found).all(|(&item, &found)| found == (item < items)), "{items} items, {kernel}");
            let answers: Vec<(u64, bool)> = filter.contains_iter(asked.iter().copied()).collect();
            assert!(answers.iter().zip(&found).all(|((_, answer), found)| answer == found));
            let hashes: Vec<u64> = asked.iter().map(|item| filter.hash(item)).collect();
            let mut again = vec![true; asked.len()];
            filter.contains_batch(&Prehashed(&hashes), &mut again);
            assert_eq!(again, found);
            filter.remove_batch(&Prehashed(&hashes), &mut again);
            assert_eq!(again, found);
            assert_eq!(filter.len() as u64, items / 2);
            filter.insert_batch(&Prehashed(&hashes)).expect("it grows");
            let mut removed = vec![false; asked.len()];
            filter.remove_batch(&asked, &mut removed);
            assert!(removed.iter().all(|&removed| removed));
        }
    }
}

#[test]
fn a_batch_with_many_copies_is_inserted() {
    let filter = shared();
    let mut batch = items(0..ITEMS);
    batch.splice(50..50, [7; 100]);
    filter.insert_batch(&batch).expect("any number of copies");
    assert_eq!((filter.count(&7_u64), filter.len() as u64), (101, ITEMS + 100));
    assert!((0..ITEMS).all(|n| filter.contains(&n)));
    let mut removed = vec![false; batch.len()];
    filter.remove_batch(&batch, &mut removed);
    assert!(filter.is_empty() && removed.iter().all(|&removed| removed));
}

#[test]
fn batches_on_several_threads_do_the_same() {
    for threads in [1, 3, 8] {
        let filter = shared();
        let insert = |items: &[u64]| {
            thread::scope(|scope| {
                let each = items.len().div_ceil(threads);
                let started: Vec<_> = items.chunks(each).map(|part| scope.spawn(|| filter.insert_batch(part))).collect();
                let results = started.into_iter().map(|thread| thread.join().expect("no item panics"));
                results.map(|result| result.map_err(|error| error.position())).collect::<Vec<_>>()
            })
        };
        assert_eq!(insert(&items(0..ITEMS)), vec![Ok(()); threads]);
        let asked = items(ITEMS / 2..ITEMS * 3 / 2);
        let mut found = vec![false; asked.len()];
        thread::scope(|scope| {
            let each = asked.len().div_ceil(threads);
            for (asked, found) in asked.chunks(each).zip(found.chunks_mut(each)) {
                scope.spawn(|| filter.contains_batch(asked, found));
            }
        });
        assert!(asked.iter().zip(found).all(|(&item, found)| found == (item < ITEMS)));
        let copies = insert(&[vec![1; 20], items(ITEMS..2 * ITEMS)].concat());
        assert_eq!(copies, vec![Ok(()); threads]);
        assert_eq!((filter.len() as u64, filter.count(&1_u64)), (2 * ITEMS + 20, 21));
    }
}

#[test]
fn a_filter_becomes_shared_and_owned_again() {
    let mut owned = builder().partitions(16).build().expect("the parameters are right");
    owned.insert_iter(0..ITEMS).expect("it grows");
    let (params, bytes) = (owned.params(), owned.table_bytes());
    let shared = owned.into_shared().expect("there is memory");
    assert_eq!((shared.partitions(), shared.params(), shared.table_bytes()), (16, params, bytes));
    shared.insert_batch(&items(ITEMS..2 * ITEMS)).expect("it grows");
    let mut owned = shared.into_elastic().expect("there is memory");
    assert!((0..2 * ITEMS).all(|n| owned.contains(&n)) && owned.len() as u64 == 2 * ITEMS);
    let mut other = ElasticFilter::new(params, *owned.hasher()).expect("there is memory");
    other.insert_iter(2 * ITEMS..3 * ITEMS).expect("it grows");
    owned.merge(&other).expect("the parameters are equal");
    assert!((0..3 * ITEMS).all(|n| owned.contains(&n)) && owned.len() as u64 == 3 * ITEMS);
    // A filter of one partition works, too.
    let shared = builder().build().expect("right").into_shared().expect("there is memory");
    shared.insert_batch(&items(0..ITEMS)).expect("it grows");
    assert!(shared.partitions() == 1 && shared.len() as u64 == ITEMS);
}

#[test]
fn iterators_do_what_single_operations_do() {
    let filter = shared();
    assert_eq!(filter.insert_iter(items(0..ITEMS)).expect("it grows") as u64, ITEMS);
    assert_eq!(filter.insert_unique_iter(items(0..ITEMS)).expect("it grows"), 0);
    assert_eq!(filter.count_members(&items(0..ITEMS)) as u64, ITEMS);
    assert!(filter.contains_iter(items(0..ITEMS)).all(|(_, found)| found));
    assert_eq!(filter.insert_iter(items(ITEMS..ITEMS + 100).into_iter().chain([7; 20])).expect("any number of copies"), 120);
    assert_eq!((filter.len() as u64, filter.count(&7_u64)), (ITEMS + 120, 21));
    filter.set_max_bytes(0);
    let error = filter.insert_iter(2 * ITEMS..9 * ITEMS).unwrap_err();
    assert!(matches!(error.kind(), InsertErrorKind::Limit { .. }));
    assert_eq!(filter.len() as u64, ITEMS + 120 + error.position() as u64);
}

#[test]
fn it_is_a_filter_like_others() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    let filter = shared();
    is_shared(&filter);
    filter.insert("alice").expect("it grows");
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
fn a_snapshot_is_taken_while_others_write() {
    let filter = shared();
    filter.insert_batch(&items(0..ITEMS)).expect("it grows");
    let snapshots: Vec<ElasticFilter> = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in ITEMS..3 * ITEMS {
                filter.insert(&n).expect("it grows");
                assert!(n % 2 == 0 || filter.remove(&n));
            }
        });
        let snapshots = (0..5).map(|_| {
            let mut bytes = Vec::new();
            filter.write_to(&mut bytes).expect("a vector takes all");
            ElasticFilter::from_bytes(&bytes).expect("it is whole")
        });
        let snapshots = snapshots.collect();
        writer.join().expect("it does not panic");
        snapshots
    });
    let mut last = ITEMS as usize;
    for snapshot in snapshots {
        assert!((0..ITEMS).all(|n| snapshot.contains(&n)));
        assert!(snapshot.len() >= last);
        last = snapshot.len() - 1;
    }
    let mut bytes = Vec::new();
    filter.write_to(&mut bytes).expect("a vector takes all");
    let read = ElasticFilter::from_bytes(&bytes).expect("it is whole").into_shared().expect("there is memory");
    assert_eq!((read.len(), read.partitions(), read.params()), (filter.len(), filter.partitions(), filter.params()));
    assert!((0..3 * ITEMS).all(|n| read.contains(&n) == (n < ITEMS || n % 2 == 0)));
}

/// In both directions, and with itself, while others write to both: no thread waits for another one for ever.
#[test]
fn filters_are_compared_and_copied_while_others_write() {
    let (first, second) = (shared(), shared());
    first.insert_batch(&items(0..ITEMS / 10)).expect("it grows");
    thread::scope(|scope| {
        for filter in [&first, &second] {
            scope.spawn(|| {
                for n in ITEMS..ITEMS + ITEMS / 10 {
                    filter.insert(&n).expect("it grows");
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
    assert!(copy == first && copy.params() == first.params());
    copy.insert(&7_u64).expect("it grows");
    assert!(copy != first);
}

/// Items that are there already are not inserted again, so that copies are not refused.
#[test]
fn filters_are_extended() {
    let words = || "to be or not to be ".repeat(20);
    let (filter, mut owned) = (shared(), builder().build().expect("the parameters are right"));
    thread::scope(|scope| {
        for _ in 0..3 {
            let mut filter = &filter;
            scope.spawn(move || filter.extend(words().split_whitespace()));
        }
    });
    owned.extend(words().split_whitespace());
    assert!(filter.len() == 4 && owned.len() == 4 && filter.contains("be") && owned.contains("be"));
}
