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

/// Copies fill no filter: it is different items that a refusal is about, in every way of inserting them.
#[test]
fn copies_are_never_refused() {
    type Way = fn(&mut CuckooFilter, &[u64]) -> Result<(), InsertError>;
    let ways: [Way; 3] = [
        |filter, items| items.iter().try_for_each(|&item| filter.insert(&Prehashed(item))),
        |filter, items| filter.insert_batch(&Prehashed(items)),
        |filter, items| filter.insert_iter(items.iter().map(|&item| Prehashed(item))).map(drop),
    ];
    let items: Vec<u64> = SplitMix64(1).take(1000).collect();
    for insert in ways {
        let mut filter = builder().capacity(1000).build().expect("right");
        for _ in 0..20 {
            insert(&mut filter, &items).expect("any number of copies");
        }
        assert_eq!(filter.len(), 20_000);
        let others: Vec<u64> = SplitMix64(2).take(1000).collect();
        let full = insert(&mut filter, &others).expect_err("twice as many different items");
        assert!(matches!(full.kind(), InsertErrorKind::Full { .. }), "{full}");
        says(&full, &["the filter is full", "build it with a larger capacity"]);
        assert!(items.iter().all(|&item| filter.count(&Prehashed(item)) >= 20));
    }
    builder().build_from_items(&["koel"; 20]).expect("20 copies");
    let mut filter = builder().capacity(20).build().expect("right");
    assert_eq!(filter.insert_unique_iter(["koel"; 20]), Ok(1));
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
