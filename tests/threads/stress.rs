//! Threads that insert, find and remove items in the same partitions while these split and are joined.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};

use super::{Random, THREADS, on_threads, shared};

const ITEMS: u64 = if cfg!(miri) { 30 } else { 20_000 };

#[test]
fn threads_grow_a_filter_together_and_shrink_it_again() {
    let filter = shared();
    let shards = filter.shards();
    on_threads(|thread| {
        for n in 0..ITEMS {
            let item = n * THREADS + thread;
            filter.insert(&item).expect("it grows");
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

/// Each thread has items of its own, and so knows exactly what must be in the filter.
#[test]
fn what_each_thread_did_is_what_it_finds() {
    let filter = shared();
    let copies: usize = on_threads(|thread| {
        let (mut random, mut model) = (Random(thread), HashMap::new());
        for _ in 0..5 * ITEMS {
            let item = random.below(ITEMS / 2) * THREADS + thread;
            let copies = model.entry(item).or_insert(0_u32);
            match random.below(5) {
                // More copies of a few items might fill the buckets of another one.
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
fn an_item_is_new_to_one_thread_only() {
    let filter = shared();
    let new = on_threads(|_| (0..ITEMS).filter(|item| filter.insert_unique(item).expect("it grows")).count() as u64);
    assert_eq!((new.iter().sum::<u64>(), filter.len() as u64), (ITEMS, ITEMS));
}

/// Batches of different lengths and orders that overlap: each item is new once.
#[test]
fn an_item_of_a_batch_is_new_to_one_thread_only() {
    let filter = shared();
    let new = on_threads(|thread| {
        let mut items: Vec<u64> = (0..ITEMS).collect();
        items.rotate_left((thread * 37) as usize % ITEMS as usize);
        let inserted = items.chunks(100 + 900 * thread as usize).map(|batch| {
            let mut new = vec![false; batch.len()];
            filter.insert_unique_batch(batch, &mut new).expect("it grows");
            assert!(batch.iter().all(|item| filter.contains(item)));
            new.into_iter().filter(|&new| new).count() as u64
        });
        inserted.sum()
    });
    assert_eq!((new.iter().sum::<u64>(), filter.len() as u64), (ITEMS, ITEMS));
    assert!((0..ITEMS).all(|item| filter.count(&item) == 1));
}

/// The items of others' code that panics: the filter stays usable for all threads, and nothing is lost.
#[test]
#[cfg_attr(not(panic = "unwind"), ignore = "a panic ends the process")]
fn a_panic_in_one_thread_is_nothing_to_the_others() {
    struct Bomb(u64);
    impl koel::Item for Bomb {
        fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
            assert!(!self.0.is_multiple_of(500), "the bomb goes off");
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
            filter.insert(&(n | 1 << 50)).expect("it grows");
            assert!(filter.contains(&(n | 1 << 50)));
        }
    });
    assert!((0..ITEMS).all(|n| filter.contains(&(n | 1 << 50))));
    // A batch of so few is shared out at once, and hashed before anything is inserted.
    assert_eq!(filter.len() as u64, ITEMS);
}

/// Reading the whole filter, and giving back memory, while others write.
#[test]
fn the_whole_can_be_asked_while_others_write() {
    let filter = shared();
    filter.insert_batch(&(0..ITEMS).collect::<Vec<u64>>()).expect("it grows");
    on_threads(|thread| {
        for n in 0..ITEMS {
            let item = (thread + 1) << 40 | n;
            if thread > 0 {
                filter.insert(&item).expect("it grows");
                assert!(filter.remove(&item));
            } else if n % 100 == 0 {
                // It counts partition after partition, in each of which there is at most one more item of each other thread.
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
