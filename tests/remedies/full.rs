//! Full filters, and tables that do not fit into memory.

use super::*;
use crate::common::SplitMix64;
use koel::{BuildError, CuckooFilter, InsertError, InsertErrorKind, Prehashed};

fn builder() -> koel::Builder {
    CuckooFilter::builder().fingerprint_bits(13)
}

#[test]
fn a_full_filter_is_built_with_a_larger_capacity() {
    let items: Vec<u64> = SplitMix64(1).take(5000).collect();
    let mut filter = builder().capacity(1000).build().expect("valid parameters");
    let full = filter.insert_batch(&items).expect_err("there are too many items");
    assert!(matches!(full.kind(), InsertErrorKind::Full { .. }));
    says(&full, &["the filter is full", "build it with a larger capacity", &format!("item {}, counted from 0", full.position())]);
    let mut larger = builder().capacity(5000).build().expect("valid parameters");
    larger.insert_batch(&items).expect("the larger filter has room");
    // The position also says where to continue.
    let mut next = builder().capacity(5000).build().expect("valid parameters");
    next.insert_batch(&items[full.position()..]).expect("the rest fits");
    assert!(items.iter().all(|item| filter.contains(item) || next.contains(item)));
    // `build_from_items` names the same remedy.
    let error = builder().capacity(1000).build_from_items(&items).expect_err("there are too many items");
    says(&error, &["build it with a larger capacity"]);
    assert!(builder().capacity(5000).build_from_items(&items).is_ok() && builder().build_from_items(&items).is_ok());
}

/// Copies never fill a filter. Only distinct items are refused, by every insertion method.
#[test]
fn copies_are_never_refused() {
    type InsertAll = fn(&mut CuckooFilter, &[u64]) -> Result<(), InsertError>;
    let methods: [InsertAll; 3] = [
        |filter, items| items.iter().try_for_each(|&item| filter.insert(&Prehashed(item))),
        |filter, items| filter.insert_batch(&Prehashed(items)),
        |filter, items| filter.insert_iter(items.iter().map(|&item| Prehashed(item))).map(drop),
    ];
    let items: Vec<u64> = SplitMix64(1).take(1000).collect();
    for insert in methods {
        let mut filter = builder().capacity(1000).build().expect("valid parameters");
        for _ in 0..20 {
            insert(&mut filter, &items).expect("copies are always accepted");
        }
        assert_eq!(filter.len(), 20_000);
        let others: Vec<u64> = SplitMix64(2).take(1000).collect();
        let full = insert(&mut filter, &others).expect_err("there are too many distinct items");
        assert!(matches!(full.kind(), InsertErrorKind::Full { .. }), "{full}");
        says(&full, &["the filter is full", "build it with a larger capacity"]);
        assert!(items.iter().all(|&item| filter.count(&Prehashed(item)) >= 20));
    }
    builder().build_from_items(&["koel"; 20]).expect("copies are always accepted");
    let mut filter = builder().capacity(20).build().expect("valid parameters");
    assert_eq!(filter.insert_unique_iter(["koel"; 20]), Ok(1));
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_filter_too_large_for_memory_is_built_smaller() {
    let rate = |rate: f64| CuckooFilter::builder().false_positive_rate(rate);
    let capacity = 1 << 50;
    let error = rate(0.001).capacity(capacity).build().expect_err("no machine has so much memory");
    assert!(matches!(error, BuildError::OutOfMemory(_)));
    let message = says(&error, &["use a smaller capacity, a higher false-positive rate, or a machine with more memory"]);
    let bytes = number_before(&message, " bytes of memory");
    assert_eq!(bytes, rate(0.001).capacity(capacity).params().expect("valid parameters").table_bytes());
    // A smaller capacity works. A higher rate takes less memory, though still too much here.
    assert!(rate(0.001).capacity(1 << 10).build().is_ok());
    assert!(rate(0.1).capacity(capacity).params().expect("valid parameters").table_bytes() < bytes);
}
