//! Iterators do what the methods for one item do, item by item: at every length, and where there is no room.

use crate::common::SplitMix64;
use koel::{Addressing, CuckooFilter, FilterView, Kernel, TableKind};
use std::{cell::Cell, iter};

/// Three batches and a part of one.
const LONGEST: usize = 200;

/// Those that batches treat differently.
fn empty() -> impl Iterator<Item = CuckooFilter> {
    let tables = [(TableKind::Packed, 13), (TableKind::Packed, 5), (TableKind::Packed, 21), (TableKind::Single, 12)];
    let addressings = [Addressing::AnySize, Addressing::PowerOfTwo];
    tables.into_iter().flat_map(move |(table, f)| {
        addressings.into_iter().flat_map(move |addressing| {
            Kernel::available().map(move |kernel| {
                let builder = CuckooFilter::builder().table(table).fingerprint_bits(f).addressing(addressing);
                builder.buckets(64).kernel(kernel).build().expect("right")
            })
        })
    })
}

fn items(len: usize) -> Vec<u64> {
    SplitMix64(len as u64).take(len).collect()
}

#[test]
fn insert_iter_inserts_one_by_one() {
    for empty in empty() {
        for len in 0..=LONGEST {
            let items = items(len);
            let (mut one, mut all) = (empty.clone(), empty.clone());
            items.iter().for_each(|item| one.insert(item).expect("there is room"));
            assert_eq!(all.insert_iter(&items), Ok(len));
            assert!(one == all, "{len} items, {empty}");
            // Items by value, by reference, and of no known number.
            let mut filtered = empty.clone();
            assert_eq!(filtered.insert_iter(items.iter().copied().filter(|_| true)), Ok(len));
            assert!(one == filtered, "{len} items, {empty}");
        }
    }
}

#[test]
fn insert_unique_iter_inserts_one_by_one() {
    for empty in empty() {
        for len in 0..=LONGEST {
            // Each of some items several times, near and far from each other.
            let items: Vec<u64> = items(len).iter().map(|item| item % 50).collect();
            let (mut one, mut all) = (empty.clone(), empty.clone());
            let stored = items.iter().filter(|item| one.insert_unique(*item).expect("there is room")).count();
            assert_eq!(all.insert_unique_iter(&items), Ok(stored));
            assert!(one == all && all.len() == stored && stored <= 50, "{len} items, {empty}");
        }
    }
}

#[test]
fn contains_iter_answers_one_by_one() {
    for empty in empty() {
        let mut filter = empty;
        filter.insert_iter(0..150u64).expect("there is room");
        let view = FilterView::over(filter.to_bytes()).expect("a snapshot");
        for len in 0..=LONGEST {
            // Some that are in, some that are not.
            let items: Vec<u64> = items(len).iter().map(|item| item % 300).collect();
            let expected: Vec<(u64, bool)> = items.iter().map(|&item| (item, filter.contains(&item))).collect();
            assert_eq!(filter.contains_iter(items.iter().copied()).collect::<Vec<_>>(), expected, "{filter}");
            assert_eq!(view.contains_iter(items.clone()).collect::<Vec<_>>(), expected, "{filter}");
            let found = filter.contains_iter(&items).filter(|(_, found)| *found).count();
            assert_eq!(found, filter.count_members(&items));
        }
    }
}

/// 32 slots: what is refused is refused at the same place, the items before it are in, and those after it are not.
#[test]
fn a_refusal_is_where_it_is_one_by_one() {
    for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
        let builder = CuckooFilter::builder().fingerprint_bits(25).buckets(8).addressing(addressing);
        let empty = builder.build().expect("right");
        for seed in 0..50 {
            let items: Vec<u64> = SplitMix64(1 << 40 | seed).take(150).collect();
            for before in 0..33 {
                let mut one = empty.clone();
                // Those come first, so that the refusal is at other places of a batch.
                for n in 0..before {
                    one.insert(&n).ok();
                }
                let (mut all, mut unique, mut batch) = (one.clone(), one.clone(), one.clone());
                let position = items.iter().take_while(|item| one.insert(*item).is_ok()).count();
                let refused = one.insert(&items[position]).expect_err("it was refused");
                let full = all.insert_iter(&items).expect_err("there are more items than slots");
                assert_eq!((full.position(), full.kind()), (position, refused.kind()));
                let counts = format!("{} items in 32 slots", one.len());
                assert!(full.to_string().contains(&counts), "{full}");
                assert!(all == one);
                assert!(items[..position].iter().all(|item| all.contains(item)));
                assert!(!all.contains_iter(&items[position..]).any(|(_, found)| found), "fingerprints of 25 bits differ");
                // Each is there once, so that it makes no difference.
                let full = unique.insert_unique_iter(&items).expect_err("there are more items than slots");
                assert_eq!(full.position(), position);
                assert!(unique == one);
                let mut new = vec![true; items.len()];
                assert_eq!(batch.insert_unique_batch(&items, &mut new).expect_err("there are more items than slots"), full);
                assert!(batch == one && new[..position].iter().all(|&new| new) && !new[position..].contains(&true));
            }
        }
    }
}

/// The position counts what was skipped, too: it is a place in the iterator.
#[test]
fn the_position_of_unique_items_is_that_in_the_iterator() {
    let empty = CuckooFilter::builder().fingerprint_bits(25).buckets(8).build().expect("right");
    for repeats in [2usize, 3, 64, 100] {
        let items: Vec<u64> = SplitMix64(7).take(60).flat_map(|item| iter::repeat_n(item, repeats)).collect();
        let (mut one, mut all) = (empty.clone(), empty.clone());
        let position = items.iter().take_while(|item| one.insert_unique(*item).is_ok()).count();
        let full = all.insert_unique_iter(&items).expect_err("60 items and 32 slots");
        assert_eq!(full.position(), position);
        assert!(full.to_string().contains(&format!("{} items in 32 slots", one.len())), "{full}");
        assert!(position > 64 || repeats < 3, "beyond the first batch");
        assert!(all == one && full.to_string().contains(&format!("item {position}, counted from 0")), "{full}");
    }
}

/// The position says where to start again.
#[test]
fn what_did_not_fit_goes_into_the_next_filter() {
    let empty = CuckooFilter::builder().fingerprint_bits(16).buckets(32).build().expect("right");
    let items: Vec<u64> = SplitMix64(3).take(1000).collect();
    let (mut filters, mut rest) = (vec![empty.clone()], &items[..]);
    while let Err(full) = filters.last_mut().expect("there is one").insert_iter(rest) {
        rest = &rest[full.position()..];
        filters.push(empty.clone());
    }
    assert!(filters.len() > 7 && filters.len() < 12, "{}", filters.len());
    assert_eq!(filters.iter().map(CuckooFilter::len).sum::<usize>(), 1000);
    assert!(items.iter().all(|item| filters.iter().any(|filter| filter.contains(item))));
}

#[test]
fn ordinary_text_has_words_any_number_of_times() {
    let text = include_str!("../LICENSE-APACHE");
    let words = || text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase);
    let distinct: std::collections::BTreeSet<String> = words().collect();
    let total = words().count();
    assert!(total > 1500 && distinct.len() < total / 2);
    let builder = CuckooFilter::builder().capacity(distinct.len()).false_positive_rate(1e-7);
    let mut filter = builder.build().expect("right");
    assert_eq!(filter.insert_unique_iter(words()), Ok(distinct.len()));
    assert_eq!(filter.insert_unique_iter(words()), Ok(0));
    assert_eq!(filter.len(), distinct.len());
    assert!(filter.contains_iter(words()).all(|(_, found)| found));
    let other = filter.contains_iter(["koel", "cuckoo", "fingerprint"]).filter(|(_, found)| *found).count();
    assert_eq!(other, 0);

    // With copies, each is counted as often as it comes.
    filter.clear();
    assert_eq!(filter.insert_iter(words()), Ok(words().count()));
    for word in &distinct {
        assert!(filter.count(word) as usize >= words().filter(|other| other == word).count(), "{word}");
    }
    assert_eq!(filter.len(), words().count());
}

#[test]
fn a_size_hint_is_that_of_the_items() {
    let filter = empty().next().expect("there are some");
    for len in 0..=LONGEST {
        let mut answers = filter.contains_iter(items(len));
        for left in (0..=len).rev() {
            assert_eq!(answers.size_hint(), (left, Some(left)));
            assert_eq!(answers.next().is_some(), left > 0);
        }
        // It stays at its end.
        assert!(answers.next().is_none() && answers.next().is_none());
    }
    let unknown = filter.contains_iter(items(150).into_iter().filter(|item| item % 2 == 0));
    assert_eq!(unknown.size_hint(), (0, Some(150)));
    let mut endless = filter.contains_iter(0u64..);
    assert!(endless.size_hint().0 >= usize::MAX - 1);
    assert!(endless.by_ref().take(1000).map(|(item, _)| item).eq(0..1000));
    let repeated = filter.contains_iter(iter::repeat(7u64));
    assert_eq!(repeated.size_hint(), (usize::MAX, None));
}

/// Up to 64 items are taken ahead, and none more than that.
#[test]
fn no_more_than_a_batch_is_taken_ahead() {
    let filter = empty().next().expect("there are some");
    let taken = Cell::new(0u64);
    let mut answers = filter.contains_iter(iter::repeat_with(|| {
        taken.set(taken.get() + 1);
        taken.get()
    }));
    assert_eq!(taken.get(), 0, "iterators are lazy");
    for asked in 1..=300u64 {
        assert_eq!(answers.next().map(|(item, _)| item), Some(asked));
        assert!(taken.get() < asked + 64, "{} of them for {asked}", taken.get());
    }
    let mut full = CuckooFilter::builder().fingerprint_bits(16).buckets(8).build().expect("right");
    let mut items = SplitMix64(1).inspect(|_| taken.set(taken.get() + 1));
    taken.set(0);
    let position = full.insert_iter(&mut items).expect_err("32 slots").position() as u64;
    assert!(taken.get() > position && taken.get() <= position + 64, "{} of them, refused at {position}", taken.get());
}
