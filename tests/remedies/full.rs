//! Filters without room, and memory that is not there.

use super::*;
use crate::common::SplitMix64;
use koel::{BuildError, CuckooFilter, InsertError, InsertErrorKind, Prehashed};

fn builder() -> koel::Builder {
    CuckooFilter::builder().fingerprint_bits(13)
}

#[test]
fn a_full_filter_is_built_with_a_larger_capacity() {
    let items: Vec<u64> = SplitMix64(1).take(5000).collect();
    let mut filter = builder().capacity(1000).build().expect("right");
    let full = filter.insert_batch(&items).expect_err("five times as many");
    assert!(matches!(full.kind(), InsertErrorKind::Full { .. }));
    says(&full, &["the filter is full", "build it with a larger capacity", &format!("item {}, counted from 0", full.position())]);
    let mut larger = builder().capacity(5000).build().expect("right");
    larger.insert_batch(&items).expect("the capacity is larger");
    // The position says what to go on with, too.
    let mut next = builder().capacity(5000).build().expect("right");
    next.insert_batch(&items[full.position()..]).expect("the rest fits");
    assert!(items.iter().all(|item| filter.contains(item) || next.contains(item)));
    // A known set says the same.
    let error = builder().capacity(1000).build_from_items(&items).expect_err("five times as many");
    says(&error, &["build it with a larger capacity"]);
    assert!(builder().capacity(5000).build_from_items(&items).is_ok() && builder().build_from_items(&items).is_ok());
}

#[test]
fn copies_without_room_are_stored_once() {
    type Way = fn(&mut CuckooFilter) -> Result<(), InsertError>;
    let ways: [Way; 4] = [
        |filter| filter.insert("koel"),
        |filter| filter.insert(&Prehashed(filter.hash("koel"))),
        |filter| filter.insert_batch(&["koel"; 3]),
        |filter| filter.insert_iter(["koel"; 3]).map(drop),
    ];
    for insert in ways {
        let mut filter = builder().capacity(1000).build().expect("right");
        let full = (0..9).find_map(|_| insert(&mut filter).err()).expect("there is room for eight");
        assert!(matches!(full.kind(), InsertErrorKind::Copies { .. }));
        let message = says(&full, &["one more copy of the item", "insert_unique stores an item once"]);
        assert_eq!(number_before(&message, " with its fingerprint"), 8);
        filter.clear();
        let stored: usize = (0..20).map(|_| usize::from(filter.insert_unique("koel").expect("once it fits"))).sum();
        assert_eq!((stored, filter.len(), filter.contains("koel")), (1, 1, true));
        assert_eq!(filter.insert_unique_iter(["koel"; 20]), Ok(0));
    }
    // In a known set, too.
    let BuildError::Insert(full) = builder().build_from_items(&["koel"; 20]).expect_err("20 copies") else { panic!("full") };
    says(&full, &["insert_unique"]);
    let mut filter = builder().capacity(20).build().expect("right");
    assert_eq!(filter.insert_unique_iter(["koel"; 20]), Ok(1));
}

/// Twice a number of items is not twice as many: a refusal says whether copies or different items fill a filter.
#[test]
fn a_filter_full_of_copies_says_so() {
    for seed in 0..20 {
        let items: Vec<u64> = SplitMix64(seed).take(1000).collect();
        let mut filter = builder().capacity(2000).build().expect("right");
        let twice: Vec<u64> = items.iter().flat_map(|&item| [item, item]).collect();
        let full = filter.insert_batch(&Prehashed(&twice)).expect_err("copies take more room");
        assert!(full.kind() == InsertErrorKind::CopiesOfOthers && filter.len() < filter.capacity(), "{full}");
        says(&full, &["copies of a few other items fill its two buckets", "insert_unique stores an item once"]);
        filter.clear();
        for &hash in &twice {
            filter.insert_unique(&Prehashed(hash)).expect("each is stored once");
        }
        builder().capacity(2500).build().expect("right").insert_batch(&Prehashed(&twice)).expect("the capacity is larger");
        // Different items, up to the last that fits.
        let mut filter = builder().capacity(2000).build().expect("right");
        let full = SplitMix64(seed).find_map(|hash| filter.insert(&Prehashed(hash)).err()).expect("it is not endless");
        assert!(full.kind() != InsertErrorKind::CopiesOfOthers && !full.to_string().contains("insert_unique"), "{full}");
    }
}

#[test]
#[cfg(target_pointer_width = "64")]
fn memory_that_is_not_there_is_asked_for_no_more() {
    let rate = |rate: f64| CuckooFilter::builder().false_positive_rate(rate);
    let capacity = 1 << 50;
    let error = rate(0.001).capacity(capacity).build().expect_err("no machine has as much");
    assert!(matches!(error, BuildError::OutOfMemory(_)));
    let message = says(&error, &["use a smaller capacity, a higher false-positive rate, or a machine with more memory"]);
    let bytes = number_before(&message, " bytes of memory");
    assert_eq!(bytes, rate(0.001).capacity(capacity).params().expect("there is such a filter").table_bytes());
    // A smaller capacity works; a higher rate takes less, if not so much less.
    assert!(rate(0.001).capacity(1 << 10).build().is_ok());
    assert!(rate(0.1).capacity(capacity).params().expect("there is such a filter").table_bytes() < bytes);
}
