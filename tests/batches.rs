//! Batch operations give the same results and the same bytes as single operations, with every kernel.

use std::cell::Cell;

use crate::common::{Kind, SplitMix64, kinds, same_bits};
use koel::{Addressing, BuildError, CuckooFilter, InsertErrorKind, Kernel, Prehashed, TableKind};

/// Several full batches of 64 items and a partial one.
const ITEMS: usize = 500;

fn items(seed: u64, len: usize) -> Vec<u64> {
    SplitMix64(seed).take(len).collect()
}

fn filters(kind: Kind) -> impl Iterator<Item = CuckooFilter> {
    let buckets = (ITEMS as u64 * 10 / 8 / u64::from(kind.b)).next_power_of_two();
    Kernel::available().map(move |kernel| kind.builder().buckets(buckets).kernel(kernel).build().expect("valid parameters"))
}

/// Compares single operations, batches of items and batches of hashes, with every kernel.
#[test]
fn batches_equal_single_operations_with_every_kernel() {
    for kind in kinds() {
        let (present, absent) = (items(1, ITEMS), items(2, ITEMS));
        let mut reference: Option<(CuckooFilter, Vec<bool>)> = None;
        for mut single in filters(kind) {
            let (mut batches, mut hashed) = (single.clone(), single.clone());
            let hashes = |items: &[u64]| -> Vec<u64> { items.iter().map(|item| single.hash(item)).collect() };
            let (present_hashes, absent_hashes) = (hashes(&present), hashes(&absent));
            // Small tables with short fingerprints refuse some items. All forms must accept the same ones.
            let inserted = present.iter().take_while(|item| single.insert(*item).is_ok()).count();
            let in_batches = batches.insert_batch(&present).map_or_else(|full| full.position(), |()| ITEMS);
            let by_hash = hashed.insert_batch(&Prehashed(&present_hashes)).map_or_else(|full| full.position(), |()| ITEMS);
            assert_eq!((in_batches, by_hash), (inserted, inserted), "{kind:?}");
            assert!(same_bits(&single, &batches) && same_bits(&single, &hashed), "{kind:?} {}", single.kernel());

            let mut found = vec![true; ITEMS];
            single.contains_batch(&absent, &mut found);
            let single_results: Vec<bool> = absent.iter().map(|item| single.contains(item)).collect();
            assert_eq!(found, single_results, "{kind:?} {}", single.kernel());
            let mut by_hash = vec![true; ITEMS];
            single.contains_batch(&Prehashed(&absent_hashes), &mut by_hash);
            assert_eq!(by_hash, single_results, "{kind:?} {}", single.kernel());
            let count = single_results.iter().filter(|&&found| found).count();
            assert_eq!((single.count_members(&absent), single.count_members(&Prehashed(&absent_hashes))), (count, count));
            assert_eq!(single.count_members(&present[..inserted]), inserted, "{kind:?} {}", single.kernel());
            match &reference {
                Some((filter, results)) => {
                    assert!(same_bits(filter, &single) && *results == single_results, "{kind:?} {}", single.kernel());
                }
                None => reference = Some((single.clone(), single_results)),
            }

            let mut removed = vec![false; inserted];
            batches.remove_batch(&present[..inserted], &mut removed);
            assert!(removed.iter().all(|&removed| removed) && batches.is_empty(), "{kind:?} {}", single.kernel());
            let mut removed = vec![true; ITEMS];
            hashed.remove_batch(&Prehashed(&absent_hashes), &mut removed);
            let single_results: Vec<bool> = absent.iter().map(|item| single.remove(item)).collect();
            assert_eq!(removed, single_results, "{kind:?} {}", single.kernel());
            assert!(same_bits(&hashed, &single));
        }
    }
}

/// Fills tables of just over 1 MiB, whose buckets are prefetched, until the first refusal. Only here, batches with evictions are
/// compared in tables of that size.
#[test]
fn batches_fill_large_tables_as_single_insertions_do() {
    for (table, f, buckets) in
        [(TableKind::Packed, 13, 175_000_u32), (TableKind::Packed, 21, 105_000), (TableKind::Single, 12, 175_000)]
    {
        let items = items(3, buckets as usize * 395 / 100);
        let mut reference: Option<CuckooFilter> = None;
        for kernel in Kernel::available() {
            let builder = CuckooFilter::builder().table(table).fingerprint_bits(f).buckets(buckets.into()).kernel(kernel);
            let mut filter = builder.build().expect("valid parameters");
            assert!(filter.params().table_bytes() >= 1 << 20);
            let full = filter.insert_batch(&items).expect_err("a load of 0.9875 is too high");
            assert!(full.position() > filter.slots() / 400 * 385 && full.position() == filter.len());
            assert_eq!(filter.count_members(&items[..full.position()]), full.position());
            if let Some(reference) = &reference {
                assert!(same_bits(reference, &filter), "{kernel}");
            } else {
                let mut single = CuckooFilter::new(filter.params(), koel::Xxh3).expect("valid parameters");
                items[..full.position()].iter().for_each(|item| single.insert(item).expect("it fits"));
                assert!(same_bits(&single, &filter), "{kernel}");
                reference = Some(filter);
            }
        }
    }
}

#[test]
fn build_from_items_gives_the_same_filter_with_every_kernel() {
    for kind in kinds() {
        let items = items(5, 300);
        let mut reference: Option<CuckooFilter> = None;
        for kernel in Kernel::available() {
            let filter = kind.builder().kernel(kernel).build_from_items(&items);
            let filter = filter.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
            assert_eq!((filter.len(), filter.count_members(&items)), (300, 300), "{kind:?} {kernel}");
            assert_eq!(filter.kernel(), kernel);
            let reference = reference.get_or_insert_with(|| filter.clone());
            assert!(same_bits(reference, &filter), "{kind:?} {kernel}");
            // The filter can be changed afterwards.
            let mut filter = filter;
            items.iter().for_each(|item| assert!(filter.remove(item), "{kind:?} {kernel}"));
            assert!(filter.is_empty());
        }
    }
}

/// `tests/capacity.rs` tests the same for single insertions. Only here, the set is counted first and inserted in batches. A large table
/// fills the same way with every seed, so one is enough there.
#[test]
fn build_from_items_plans_enough_room() {
    for (capacity, seeds) in [(0, 1), (1, 100), (10, 100), (100, 100), (1000, 100), (10_000, 100), (100_000, 3), (1_000_000, 1)] {
        for f in [8, 13, 20] {
            for seed in 0..seeds {
                let filter = CuckooFilter::builder().fingerprint_bits(f).build_from_items(&items(seed, capacity));
                let filter = filter.unwrap_or_else(|error| panic!("{capacity} items, f = {f}: {error}"));
                assert!(filter.len() == capacity && filter.capacity() >= capacity);
            }
        }
    }
}

/// The filter has room for the distinct items, and no more than if only these had been given.
#[test]
fn build_from_items_plans_for_distinct_items() {
    for (distinct, copies) in [(1, 100_000), (10, 10_000), (1000, 3), (20_000, 2)] {
        let items = items(8, distinct);
        let all: Vec<u64> = std::iter::repeat_n(&items, copies).flatten().copied().collect();
        for seed in [0, 7] {
            let builder = CuckooFilter::builder().false_positive_rate(0.001).seed(seed);
            let once = builder.clone().build_from_items(&items).expect("there is room");
            let filter = builder.clone().build_from_items(&all).expect("there is room");
            assert_eq!((filter.params(), filter.len()), (once.params(), distinct * copies));
            assert!(items.iter().all(|item| filter.count(item) as usize >= copies));
            let hashes: Vec<u64> = all.iter().map(|item| filter.hash(item)).collect();
            let hashed = builder.build_from_items(&Prehashed(&hashes)).expect("there is room");
            assert_eq!(hashed.to_bytes(), filter.to_bytes());
        }
    }
}

#[test]
fn build_from_items_takes_an_explicit_capacity() {
    let items = items(6, 1000);
    let builder = CuckooFilter::builder().fingerprint_bits(12).seed(9).addressing(Addressing::PowerOfTwo);
    let roomy = builder.clone().capacity(5000).build_from_items(&items).expect("there is room");
    assert!(roomy.capacity() >= 5000 && roomy.len() == 1000);
    let hashes: Vec<u64> = items.iter().map(|item| roomy.hash(item)).collect();
    assert!(same_bits(&builder.clone().capacity(5000).build_from_items(&Prehashed(&hashes)).expect("there is room"), &roomy));
    let error = builder.clone().capacity(100).build_from_items(&items).expect_err("ten times as many");
    let BuildError::Insert(full) = &error else { panic!("{error}") };
    assert!(matches!(full.kind(), InsertErrorKind::Full { .. }));
    assert!(error.to_string().contains(" distinct items") && full.position() >= 100, "{error}");
    assert!(error.to_string().contains("build it with a larger capacity"), "{error}");
    let error = builder.fingerprint_bits(1).build_from_items(&items).expect_err("too short");
    assert!(matches!(error, BuildError::Param(_)), "{error}");
}

/// A user's item may panic in the middle of a batch. The item count still matches the table.
#[test]
#[cfg_attr(not(panic = "unwind"), ignore = "a panic ends the process")]
fn a_panic_in_a_batch_leaves_a_consistent_filter() {
    struct PanickingItem(u32);
    impl koel::Item for PanickingItem {
        fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
            assert!(self.0 != 200, "item 200 panics");
            read(&self.0.to_le_bytes())
        }
    }
    let items: Vec<PanickingItem> = (0..300).map(PanickingItem).collect();
    let mut filter = CuckooFilter::builder().capacity(1000).fingerprint_bits(16).build().expect("valid parameters");
    let insert = std::panic::AssertUnwindSafe(|| filter.insert_batch(&items));
    assert!(std::panic::catch_unwind(insert).is_err());
    let reread = CuckooFilter::from_bytes(&filter.to_bytes()).expect("the header states the item count");
    assert!(reread.len() == filter.len() && filter.len() <= 200);
    let len = filter.len();
    let remove = std::panic::AssertUnwindSafe(|| filter.remove_batch(&items, &mut vec![false; 300]));
    assert!(std::panic::catch_unwind(remove).is_err());
    let reread = CuckooFilter::from_bytes(&filter.to_bytes()).expect("the header states the item count");
    assert!(reread.len() == filter.len() && filter.len() <= len);
}

/// After a caught panic, `contains_iter` yields correct results for the items that follow the first batch.
#[test]
#[cfg_attr(not(panic = "unwind"), ignore = "a panic ends the process")]
fn contains_iter_continues_after_a_panic() {
    struct PanicsOnce<'a>(u32, &'a Cell<bool>);
    impl koel::Item for PanicsOnce<'_> {
        fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
            assert!(self.0 != 20 || !self.1.replace(false), "the first hash of item 20 panics");
            read(&self.0.to_le_bytes())
        }
    }
    let mut filter = CuckooFilter::builder().capacity(1000).fingerprint_bits(16).build().expect("valid parameters");
    filter.insert_iter(0..200u32).expect("there is room");
    let is_armed = Cell::new(true);
    let mut results = filter.contains_iter((0..200).map(|i| PanicsOnce(i, &is_armed)));
    let next = std::panic::AssertUnwindSafe(|| results.next().is_none());
    assert!(std::panic::catch_unwind(next).is_err());
    let rest: Vec<(u32, bool)> = results.map(|(item, found)| (item.0, found)).collect();
    assert!(rest.len() == 136 && rest.iter().all(|&(_, found)| found), "{rest:?}");
}

/// The items after the refused one are not hashed again, so they cannot panic then.
#[test]
fn a_refused_batch_hashes_each_item_once() {
    struct CountingItem<'a>(u64, &'a Cell<usize>);
    impl koel::Item for CountingItem<'_> {
        fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
            self.1.set(self.1.get() + 1);
            read(&self.0.to_le_bytes())
        }
    }
    let hashed = Cell::new(0);
    let mut filter = CuckooFilter::builder().buckets(4).fingerprint_bits(16).build().expect("valid parameters");
    let items: Vec<_> = (0..64).map(|number| CountingItem(number, &hashed)).collect();
    let full = filter.insert_batch(&items).expect_err("there are 16 slots");
    assert!(full.position() <= 16 && matches!(full.kind(), InsertErrorKind::Full { .. }), "{full}");
    assert_eq!(hashed.get(), 64);
}

#[test]
#[should_panic(expected = "3 items but room for 2 answers")]
fn contains_batch_panics_if_the_output_is_shorter_than_the_hashes() {
    let filter = CuckooFilter::builder().capacity(10).fingerprint_bits(12).build().expect("valid parameters");
    filter.contains_batch(&Prehashed(&[1, 2, 3]), &mut [false; 2]);
}
