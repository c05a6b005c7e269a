//! Threads insert, look up and remove items in the same partitions while shards split and merge.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use super::{Random, THREADS, on_threads, shared};

const ITEMS: u64 = if cfg!(miri) { 30 } else { 20_000 };

#[test]
fn threads_grow_and_shrink_a_filter_together() {
    let filter = shared();
    let shards = filter.shards();
    on_threads(|thread| {
        for n in 0..ITEMS {
            let item = n * THREADS + thread;
            filter.insert(&item).expect("the filter grows");
            assert!(filter.contains(&item));
        }
        for n in 0..ITEMS {
            assert!(filter.contains(&(n * THREADS + thread)), "{n} of thread {thread}");
        }
    });
    assert_eq!(filter.len() as u64, ITEMS * THREADS);
    assert!(filter.shards() > shards || cfg!(miri));
    on_threads(|thread| assert!((0..ITEMS).all(|n| filter.remove(&(n * THREADS + thread)))));
    assert!(filter.is_empty());
    filter.shrink();
    assert_eq!(filter.shards(), shards);
}

/// Each thread has its own items, so it knows exactly what must be in the filter.
#[test]
fn each_thread_finds_exactly_its_own_items() {
    let filter = shared();
    let copies: usize = on_threads(|thread| {
        let (mut random, mut model) = (Random(thread), HashMap::new());
        for _ in 0..5 * ITEMS {
            let item = random.below(ITEMS / 2) * THREADS + thread;
            let copies = model.entry(item).or_insert(0_u32);
            match random.below(5) {
                // An item has at most two copies.
                0 | 1 if *copies < 2 => {
                    filter.insert(&item).expect("there is room");
                    *copies += 1;
                }
                2 => {
                    assert_eq!(filter.remove(&item), *copies > 0);
                    *copies = copies.saturating_sub(1);
                }
                3 => assert_eq!(filter.count(&item), *copies),
                _ => assert_eq!(filter.contains(&item), *copies > 0),
            }
        }
        model.values().map(|&copies| copies as usize).sum::<usize>()
    })
    .into_iter()
    .sum();
    assert_eq!(filter.len(), copies);
}

#[test]
fn insert_unique_inserts_an_item_for_one_thread_only() {
    let filter = shared();
    let new = on_threads(|_| (0..ITEMS).filter(|item| filter.insert_unique(item).expect("the filter grows")).count() as u64);
    assert_eq!((new.iter().sum::<u64>(), filter.len() as u64), (ITEMS, ITEMS));
}

/// Batches of different lengths and orders overlap, and each item is new in exactly one of them.
#[test]
fn insert_unique_batch_inserts_an_item_for_one_thread_only() {
    let filter = shared();
    let new = on_threads(|thread| {
        let mut items: Vec<u64> = (0..ITEMS).collect();
        items.rotate_left((thread * 37) as usize % ITEMS as usize);
        let inserted = items.chunks(100 + 900 * thread as usize).map(|batch| {
            let mut new = vec![false; batch.len()];
            filter.insert_unique_batch(batch, &mut new).expect("the filter grows");
            assert!(batch.iter().all(|item| filter.contains(item)));
            new.into_iter().filter(|&new| new).count() as u64
        });
        inserted.sum()
    });
    assert_eq!((new.iter().sum::<u64>(), filter.len() as u64), (ITEMS, ITEMS));
    assert!((0..ITEMS).all(|item| filter.count(&item) == 1));
}

/// A panic in the caller's `Item` leaves the filter usable for all threads, and loses no item.
#[test]
#[cfg_attr(not(panic = "unwind"), ignore = "a panic ends the process")]
fn a_panic_in_one_thread_does_not_affect_the_others() {
    struct Bomb(u64);
    impl koel::Item for Bomb {
        fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
            assert!(!self.0.is_multiple_of(500), "an intended panic");
            read(&self.0.to_le_bytes())
        }
    }
    let filter = shared();
    thread::scope(|scope| {
        scope.spawn(|| {
            for start in (0..ITEMS).step_by(500) {
                let bombs: Vec<Bomb> = (start + 1..start + 600).map(Bomb).collect();
                assert!(catch_unwind(AssertUnwindSafe(|| filter.insert_batch(&bombs))).is_err());
                assert!(catch_unwind(AssertUnwindSafe(|| filter.contains(&Bomb(0)))).is_err());
                assert!(catch_unwind(AssertUnwindSafe(|| filter.insert(&Bomb(0)))).is_err());
            }
        });
        for n in 0..ITEMS {
            filter.insert(&(n | 1 << 50)).expect("the filter grows");
            assert!(filter.contains(&(n | 1 << 50)));
        }
    });
    assert!((0..ITEMS).all(|n| filter.contains(&(n | 1 << 50))));
    // A batch of this size is hashed completely before anything is inserted.
    assert_eq!(filter.len() as u64, ITEMS);
}

/// One thread reads statistics and shrinks the filter while others write.
#[test]
fn statistics_can_be_read_while_others_write() {
    let filter = shared();
    filter.insert_batch(&(0..ITEMS).collect::<Vec<u64>>()).expect("the filter grows");
    on_threads(|thread| {
        for n in 0..ITEMS {
            let item = (thread + 1) << 40 | n;
            if thread > 0 {
                filter.insert(&item).expect("the filter grows");
                assert!(filter.remove(&item));
            } else if n % 100 == 0 {
                // `len` counts one partition after the other; in each, every other thread may have one more item.
                let most = ITEMS + (THREADS - 1) * filter.params().partitions() as u64;
                assert!((ITEMS..=most).contains(&(filter.len() as u64)));
                assert!(filter.false_positive_rate() <= 1e-7);
                filter.shrink();
                assert!(filter.size_in_bytes() > filter.table_bytes() && !filter.to_string().is_empty());
            }
        }
    });
    assert!((0..ITEMS).all(|n| filter.contains(&n)));
    filter.clear();
    assert!(filter.is_empty() && !filter.contains(&1_u64));
}
