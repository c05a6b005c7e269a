//! Operations on iterators equal single operations, at every length and at a refusal.

use crate::common::{SplitMix64, same_bits};
use koel::{Addressing, CuckooFilter, FilterView, Kernel, TableKind};
use std::{cell::Cell, iter};

/// Three full batches of 64 items and a partial one.
const LONGEST: usize = 200;

/// Returns empty filters of the kinds that batches treat differently.
fn empty_filters() -> impl Iterator<Item = CuckooFilter> {
    let tables = [(TableKind::Packed, 13), (TableKind::Packed, 5), (TableKind::Packed, 21), (TableKind::Single, 12)];
    let addressings = [Addressing::AnySize, Addressing::PowerOfTwo];
    tables.into_iter().flat_map(move |(table, f)| {
        addressings.into_iter().flat_map(move |addressing| {
            Kernel::available().map(move |kernel| {
                let builder = CuckooFilter::builder().table(table).fingerprint_bits(f).addressing(addressing);
                builder.buckets(64).kernel(kernel).build().expect("valid parameters")
            })
        })
    })
}

fn items(len: usize) -> Vec<u64> {
    SplitMix64(len as u64).take(len).collect()
}

#[test]
fn insert_iter_equals_single_insertions() {
    for empty in empty_filters() {
        for len in 0..=LONGEST {
            let items = items(len);
            let (mut single, mut all) = (empty.clone(), empty.clone());
            items.iter().for_each(|item| single.insert(item).expect("there is room"));
            assert_eq!(all.insert_iter(&items), Ok(len));
            assert!(same_bits(&single, &all), "{len} items, {empty}");
            // These items are given by value, and the iterator does not know its length.
            let mut filtered = empty.clone();
            assert_eq!(filtered.insert_iter(items.iter().copied().filter(|_| true)), Ok(len));
            assert!(same_bits(&single, &filtered), "{len} items, {empty}");
        }
    }
}

#[test]
fn insert_unique_iter_equals_single_insertions() {
    for empty in empty_filters() {
        for len in 0..=LONGEST {
            // Items are repeated, within a batch and in different ones.
            let items: Vec<u64> = items(len).iter().map(|item| item % 50).collect();
            let (mut single, mut all) = (empty.clone(), empty.clone());
            let stored = items.iter().filter(|item| single.insert_unique(*item).expect("there is room")).count();
            assert_eq!(all.insert_unique_iter(&items), Ok(stored));
            assert!(same_bits(&single, &all) && all.len() == stored && stored <= 50, "{len} items, {empty}");
        }
    }
}

#[test]
fn contains_iter_equals_single_lookups() {
    for empty in empty_filters() {
        let mut filter = empty;
        filter.insert_iter(0..150u64).expect("there is room");
        let view = FilterView::over(filter.to_bytes()).expect("valid snapshot");
        for len in 0..=LONGEST {
            // About half of these items are present.
            let items: Vec<u64> = items(len).iter().map(|item| item % 300).collect();
            let expected: Vec<(u64, bool)> = items.iter().map(|&item| (item, filter.contains(&item))).collect();
            assert_eq!(filter.contains_iter(items.iter().copied()).collect::<Vec<_>>(), expected, "{filter}");
            assert_eq!(view.contains_iter(items.clone()).collect::<Vec<_>>(), expected, "{filter}");
            let found = filter.contains_iter(&items).filter(|(_, found)| *found).count();
            assert_eq!(found, filter.count_members(&items));
        }
    }
}

/// An iterator is refused at the same item as single insertions: the items before it are stored, the items after it are not.
#[test]
fn iterators_are_refused_at_the_same_item_as_single_insertions() {
    for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
        let builder = CuckooFilter::builder().fingerprint_bits(25).buckets(8).addressing(addressing);
        let empty = builder.build().expect("valid parameters");
        for seed in 0..50 {
            let items: Vec<u64> = SplitMix64(1 << 40 | seed).take(150).collect();
            for before in 0..33 {
                let mut single = empty.clone();
                // The items inserted before move the refusal to another position in the batch.
                for n in 0..before {
                    single.insert(&n).ok();
                }
                let (mut all, mut unique, mut batch) = (single.clone(), single.clone(), single.clone());
                let position = items.iter().take_while(|item| single.insert(*item).is_ok()).count();
                let refused = single.insert(&items[position]).expect_err("it was refused");
                let full = all.insert_iter(&items).expect_err("there are more items than slots");
                assert_eq!((full.position(), full.kind()), (position, refused.kind()));
                let counts = format!("{} distinct items", single.table_len());
                assert!(full.to_string().contains(&counts), "{full}");
                assert!(same_bits(&all, &single));
                assert!(items[..position].iter().all(|item| all.contains(item)));
                assert!(!all.contains_iter(&items[position..]).any(|(_, found)| found), "fingerprints of 25 bits differ");
                // The items are distinct, so unique insertions do the same.
                let full = unique.insert_unique_iter(&items).expect_err("there are more items than slots");
                assert_eq!(full.position(), position);
                assert!(same_bits(&unique, &single));
                let mut new = vec![true; items.len()];
                assert_eq!(batch.insert_unique_batch(&items, &mut new).expect_err("there are more items than slots"), full);
                assert!(same_bits(&batch, &single) && new[..position].iter().all(|&new| new) && !new[position..].contains(&true));
            }
        }
    }
}

/// The position of a refused item counts skipped items, too, because it is an index into the iterator.
#[test]
fn the_refused_position_counts_skipped_items() {
    let empty = CuckooFilter::builder().fingerprint_bits(25).buckets(8).build().expect("valid parameters");
    for repeats in [2usize, 3, 64, 100] {
        let items: Vec<u64> = SplitMix64(7).take(60).flat_map(|item| iter::repeat_n(item, repeats)).collect();
        let (mut single, mut all) = (empty.clone(), empty.clone());
        let position = items.iter().take_while(|item| single.insert_unique(*item).is_ok()).count();
        let full = all.insert_unique_iter(&items).expect_err("60 items and 32 slots");
        assert_eq!(full.position(), position);
        assert!(full.to_string().contains(&format!("{} distinct items", single.table_len())), "{full}");
        assert!(position > 64 || repeats < 3, "beyond the first batch");
        assert!(same_bits(&all, &single) && full.to_string().contains(&format!("item {position}, counted from 0")), "{full}");
    }
}

/// After a refusal, the caller can continue at the reported position.
#[test]
fn insertion_continues_in_another_filter_at_the_refused_position() {
    let empty = CuckooFilter::builder().fingerprint_bits(16).buckets(32).build().expect("valid parameters");
    let items: Vec<u64> = SplitMix64(3).take(1000).collect();
    let (mut filters, mut rest) = (vec![empty.clone()], &items[..]);
    while let Err(full) = filters.last_mut().expect("at least one filter").insert_iter(rest) {
        rest = &rest[full.position()..];
        filters.push(empty.clone());
    }
    assert!(filters.len() > 7 && filters.len() < 12, "{}", filters.len());
    assert_eq!(filters.iter().map(CuckooFilter::len).sum::<usize>(), 1000);
    assert!(items.iter().all(|item| filters.iter().any(|filter| filter.contains(item))));
}

#[test]
fn words_of_a_text_are_counted() {
    let text = include_str!("../LICENSE-APACHE");
    let words = || text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase);
    let distinct: std::collections::BTreeSet<String> = words().collect();
    let total = words().count();
    assert!(total > 1500 && distinct.len() < total / 2);
    let builder = CuckooFilter::builder().capacity(distinct.len()).false_positive_rate(1e-7);
    let mut filter = builder.build().expect("valid parameters");
    assert_eq!(filter.insert_unique_iter(words()), Ok(distinct.len()));
    assert_eq!(filter.insert_unique_iter(words()), Ok(0));
    assert_eq!(filter.len(), distinct.len());
    assert!(filter.contains_iter(words()).all(|(_, found)| found));
    let other = filter.contains_iter(["koel", "cuckoo", "fingerprint"]).filter(|(_, found)| *found).count();
    assert_eq!(other, 0);

    // `insert_iter` keeps copies, so each word is counted at least as often as it occurs.
    filter.clear();
    assert_eq!(filter.insert_iter(words()), Ok(words().count()));
    for word in &distinct {
        assert!(filter.count(word) as usize >= words().filter(|other| other == word).count(), "{word}");
    }
    assert_eq!(filter.len(), words().count());
}

#[test]
fn contains_iter_has_the_size_hint_of_its_items() {
    let filter = empty_filters().next().expect("at least one kernel");
    for len in 0..=LONGEST {
        let mut results = filter.contains_iter(items(len));
        for left in (0..=len).rev() {
            assert_eq!(results.size_hint(), (left, Some(left)));
            assert_eq!(results.next().is_some(), left > 0);
        }
        // The iterator is fused.
        assert!(results.next().is_none() && results.next().is_none());
    }
    let unknown = filter.contains_iter(items(150).into_iter().filter(|item| item % 2 == 0));
    assert_eq!(unknown.size_hint(), (0, Some(150)));
    let mut endless = filter.contains_iter(0u64..);
    assert!(endless.size_hint().0 >= usize::MAX - 1);
    assert!(endless.by_ref().take(1000).map(|(item, _)| item).eq(0..1000));
    let repeated = filter.contains_iter(iter::repeat(7u64));
    assert_eq!(repeated.size_hint(), (usize::MAX, None));
}

/// Iterators read at most 64 items ahead.
#[test]
fn at_most_one_batch_is_read_ahead() {
    let filter = empty_filters().next().expect("at least one kernel");
    let taken = Cell::new(0u64);
    let mut results = filter.contains_iter(iter::repeat_with(|| {
        taken.set(taken.get() + 1);
        taken.get()
    }));
    assert_eq!(taken.get(), 0, "iterators are lazy");
    for requested in 1..=300u64 {
        assert_eq!(results.next().map(|(item, _)| item), Some(requested));
        assert!(taken.get() < requested + 64, "{} read for {requested}", taken.get());
    }
    let mut full = CuckooFilter::builder().fingerprint_bits(16).buckets(8).build().expect("valid parameters");
    let mut items = SplitMix64(1).inspect(|_| taken.set(taken.get() + 1));
    taken.set(0);
    let position = full.insert_iter(&mut items).expect_err("32 slots").position() as u64;
    assert!(taken.get() > position && taken.get() <= position + 64, "{} read, refused at {position}", taken.get());
}
