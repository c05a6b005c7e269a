//! Many items at a time: the same answers and the same bytes as one by one, with every kernel.

use std::cell::Cell;

use crate::common::{Kind, SplitMix64, kinds};
use koel::{Addressing, BuildError, CuckooFilter, InsertErrorKind, Kernel, Prehashed, TableKind};

/// Enough for several batches and a part of one.
const ITEMS: usize = 500;

fn items(seed: u64, len: usize) -> Vec<u64> {
    SplitMix64(seed).take(len).collect()
}

fn filters(kind: Kind) -> impl Iterator<Item = CuckooFilter> {
    let buckets = (ITEMS as u64 * 10 / 8 / u64::from(kind.b)).next_power_of_two();
    Kernel::available().map(move |kernel| kind.builder().buckets(buckets).kernel(kernel).build().expect("the kind is right"))
}

/// Whatever the kernel, and whichever of the forms: one by one, in batches, by hash.
#[test]
fn all_forms_and_all_kernels_do_the_same() {
    for kind in kinds() {
        let (present, absent) = (items(1, ITEMS), items(2, ITEMS));
        let mut reference: Option<(CuckooFilter, Vec<bool>)> = None;
        for mut one in filters(kind) {
            let (mut batches, mut hashed) = (one.clone(), one.clone());
            let hashes = |items: &[u64]| -> Vec<u64> { items.iter().map(|item| one.hash(item)).collect() };
            let (present_hashes, absent_hashes) = (hashes(&present), hashes(&absent));
            // Short fingerprints in small tables do not all fit; what does must be the same.
            let inserted = present.iter().take_while(|item| one.insert(*item).is_ok()).count();
            let in_batches = batches.insert_batch(&present).map_or_else(|full| full.position(), |()| ITEMS);
            let by_hash = hashed.insert_batch(&Prehashed(&present_hashes)).map_or_else(|full| full.position(), |()| ITEMS);
            assert_eq!((in_batches, by_hash), (inserted, inserted), "{kind:?}");
            assert!(one == batches && one == hashed, "{kind:?} {}", one.kernel());

            let mut found = vec![true; ITEMS];
            one.contains_batch(&absent, &mut found);
            let singly: Vec<bool> = absent.iter().map(|item| one.contains(item)).collect();
            assert_eq!(found, singly, "{kind:?} {}", one.kernel());
            let mut by_hash = vec![true; ITEMS];
            one.contains_batch(&Prehashed(&absent_hashes), &mut by_hash);
            assert_eq!(by_hash, singly, "{kind:?} {}", one.kernel());
            let count = singly.iter().filter(|&&found| found).count();
            assert_eq!((one.count_members(&absent), one.count_members(&Prehashed(&absent_hashes))), (count, count));
            assert_eq!(one.count_members(&present[..inserted]), inserted, "{kind:?} {}", one.kernel());
            match &reference {
                Some((filter, answers)) => assert!(*filter == one && *answers == singly, "{kind:?} {}", one.kernel()),
                None => reference = Some((one.clone(), singly)),
            }

            let mut removed = vec![false; inserted];
            batches.remove_batch(&present[..inserted], &mut removed);
            assert!(removed.iter().all(|&removed| removed) && batches.is_empty(), "{kind:?} {}", one.kernel());
            let mut removed = vec![true; ITEMS];
            hashed.remove_batch(&Prehashed(&absent_hashes), &mut removed);
            let singly: Vec<bool> = absent.iter().map(|item| one.remove(item)).collect();
            assert_eq!(removed, singly, "{kind:?} {}", one.kernel());
            assert_eq!(hashed, one);
        }
    }
}

/// A table in which buckets are fetched ahead, filled until it is full.
#[test]
fn large_tables_are_filled_alike() {
    for (table, f) in [(TableKind::Packed, 13), (TableKind::Packed, 21), (TableKind::Single, 12)] {
        let buckets = 200_000;
        let items = items(3, 790_000);
        let mut reference: Option<CuckooFilter> = None;
        for kernel in Kernel::available() {
            let builder = CuckooFilter::builder().table(table).fingerprint_bits(f).buckets(buckets).kernel(kernel);
            let mut filter = builder.build().expect("right");
            let full = filter.insert_batch(&items).expect_err("0.9875 of the slots");
            assert!(full.position() > 770_000 && full.position() == filter.len());
            assert_eq!(filter.count_members(&items[..full.position()]), full.position());
            if let Some(reference) = &reference {
                assert!(*reference == filter, "{kernel}");
            } else {
                let mut one = CuckooFilter::new(filter.params(), koel::Xxh3).expect("right");
                items[..full.position()].iter().for_each(|item| one.insert(item).expect("it fitted"));
                assert!(one == filter, "{kernel}");
                reference = Some(filter);
            }
        }
    }
}

#[test]
fn a_known_set_becomes_the_same_filter_with_every_kernel() {
    for kind in kinds() {
        let items = items(5, 300);
        let mut reference: Option<CuckooFilter> = None;
        for kernel in Kernel::available() {
            let filter = kind.builder().kernel(kernel).build_from_items(&items);
            let filter = filter.unwrap_or_else(|error| panic!("{kind:?}: {error}"));
            assert_eq!((filter.len(), filter.count_members(&items)), (300, 300), "{kind:?} {kernel}");
            assert_eq!(filter.kernel(), kernel);
            let reference = reference.get_or_insert_with(|| filter.clone());
            assert!(*reference == filter, "{kind:?} {kernel}");
            // It goes on as any other does.
            let mut filter = filter;
            items.iter().for_each(|item| assert!(filter.remove(item), "{kind:?} {kernel}"));
            assert!(filter.is_empty());
        }
    }
}

/// As `tests/capacity.rs` has it for filters that are filled one by one.
#[test]
fn a_capacity_fits_when_it_is_built_from_a_known_set_too() {
    for capacity in [0, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000] {
        for f in [8, 13, 20] {
            for seed in 0..if capacity <= 10_000 { 100 } else { 3 } {
                let filter = CuckooFilter::builder().fingerprint_bits(f).build_from_items(&items(seed, capacity));
                let filter = filter.unwrap_or_else(|error| panic!("{capacity} items, f = {f}: {error}"));
                assert!(filter.len() == capacity && filter.capacity() >= capacity);
            }
        }
    }
}

#[test]
fn a_known_set_may_ask_for_more_room_or_less() {
    let items = items(6, 1000);
    let builder = CuckooFilter::builder().fingerprint_bits(12).seed(9).addressing(Addressing::PowerOfTwo);
    let roomy = builder.clone().capacity(5000).build_from_items(&items).expect("there is room");
    assert!(roomy.capacity() >= 5000 && roomy.len() == 1000);
    let hashes: Vec<u64> = items.iter().map(|item| roomy.hash(item)).collect();
    assert!(builder.clone().capacity(5000).build_from_items(&Prehashed(&hashes)).expect("there is room") == roomy);
    let error = builder.clone().capacity(100).build_from_items(&items).expect_err("ten times as many");
    let BuildError::Insert(full) = &error else { panic!("{error}") };
    assert!(matches!(full.kind(), InsertErrorKind::Full { .. }));
    assert!(error.to_string().contains(" items in 128 slots") && full.position() >= 100, "{error}");
    assert!(error.to_string().contains("build it with a larger capacity"), "{error}");
    let error = builder.fingerprint_bits(1).build_from_items(&items).expect_err("too short");
    assert!(matches!(error, BuildError::Param(_)), "{error}");
}

/// An item of the user's may panic in the middle of a batch: what is in the filter by then is counted.
#[test]
#[cfg_attr(not(panic = "unwind"), ignore = "a panic ends the process")]
fn a_batch_that_panics_leaves_a_filter_that_is_whole() {
    struct Bomb(u32);
    impl koel::Item for Bomb {
        fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
            assert!(self.0 != 200, "the bomb goes off");
            read(&self.0.to_le_bytes())
        }
    }
    let bombs: Vec<Bomb> = (0..300).map(Bomb).collect();
    let mut filter = CuckooFilter::builder().capacity(1000).fingerprint_bits(16).build().expect("right");
    let insert = std::panic::AssertUnwindSafe(|| filter.insert_batch(&bombs));
    assert!(std::panic::catch_unwind(insert).is_err());
    let whole = CuckooFilter::from_bytes(&filter.to_bytes()).expect("as many items as it says");
    assert!(whole.len() == filter.len() && filter.len() <= 200);
    let len = filter.len();
    let remove = std::panic::AssertUnwindSafe(|| filter.remove_batch(&bombs, &mut vec![false; 300]));
    assert!(std::panic::catch_unwind(remove).is_err());
    let whole = CuckooFilter::from_bytes(&filter.to_bytes()).expect("as many items as it says");
    assert!(whole.len() == filter.len() && filter.len() <= len);
}

/// After a caught panic, the answers for the items that the iterator still yields are right.
#[test]
#[cfg_attr(not(panic = "unwind"), ignore = "a panic ends the process")]
fn an_iterator_of_answers_survives_a_panic() {
    struct Dud<'a>(u32, &'a Cell<bool>);
    impl koel::Item for Dud<'_> {
        fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
            assert!(self.0 != 20 || !self.1.replace(false), "only once");
            read(&self.0.to_le_bytes())
        }
    }
    let mut filter = CuckooFilter::builder().capacity(1000).fingerprint_bits(16).build().expect("right");
    filter.insert_iter(0..200u32).expect("there is room");
    let is_live = Cell::new(true);
    let mut answers = filter.contains_iter((0..200).map(|i| Dud(i, &is_live)));
    let next = std::panic::AssertUnwindSafe(|| answers.next().is_none());
    assert!(std::panic::catch_unwind(next).is_err());
    let rest: Vec<(u32, bool)> = answers.map(|(dud, found)| (dud.0, found)).collect();
    assert!(rest.len() == 136 && rest.iter().all(|&(_, found)| found), "{rest:?}");
}

/// The items behind the refused one are not hashed again, and so cannot panic.
#[test]
fn a_refusal_hashes_no_item_twice() {
    struct Counted<'a>(u64, &'a Cell<usize>);
    impl koel::Item for Counted<'_> {
        fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
            self.1.set(self.1.get() + 1);
            read(&self.0.to_le_bytes())
        }
    }
    let hashed = Cell::new(0);
    let mut filter = CuckooFilter::builder().buckets(4).fingerprint_bits(16).build().expect("right");
    let items: Vec<_> = (0..64).map(|number| Counted(number, &hashed)).collect();
    let full = filter.insert_batch(&items).expect_err("there are 16 slots");
    assert!(full.position() <= 16 && matches!(full.kind(), InsertErrorKind::Full { .. }), "{full}");
    assert_eq!(hashed.get(), 64);
}

#[test]
fn a_kernel_that_is_not_there_is_an_error_that_names_those_that_are() {
    let error = "avx1024".parse::<Kernel>().expect_err("there is none");
    assert!(error.to_string().contains("portable"), "{error}");
    assert_eq!(Kernel::Portable.to_string().parse(), Ok(Kernel::Portable));
}

#[test]
#[should_panic(expected = "3 items but room for 2 answers")]
fn answers_need_as_much_room_as_there_are_hashes() {
    let filter = CuckooFilter::builder().capacity(10).fingerprint_bits(12).build().expect("right");
    filter.contains_batch(&Prehashed(&[1, 2, 3]), &mut [false; 2]);
}
