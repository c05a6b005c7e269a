//! A requested capacity fits: `tables/max_load.tsv` holds, also between the sizes that were measured.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "small numbers")]

use crate::common::{ADDRESSINGS, SplitMix64};
use koel::{Addressing, CuckooFilter, Prehashed, TableKind};

/// Fills `trials` filters to the capacity asked for, and returns how many of them refused an item before.
fn failures(table: TableKind, f: u32, b: u32, addressing: Addressing, capacity: usize, trials: u64) -> u64 {
    let builder = CuckooFilter::builder().table(table).fingerprint_bits(f).bucket_size(b).addressing(addressing);
    let mut filter = builder.capacity(capacity).build().expect("the parameters are right");
    assert!(filter.capacity() >= capacity);
    let promised = filter.capacity();
    (0..trials)
        .filter(|trial| {
            filter.clear();
            // Other sequences than those by which the loads were measured.
            let mut hashes = SplitMix64(0xc0ff_ee00 + trial * 0x1_0000_0001 + u64::from(f) * 77 + u64::from(b));
            (0..promised).any(|_| filter.insert(&Prehashed(hashes.next().expect("endless"))).is_err())
        })
        .count() as u64
}

/// With a chance of 10⁻⁴ each, more than `allowed` failures in all these trials are a one in 10⁴ event, too.
fn allowed(trials: u64) -> u64 {
    let expected = trials as f64 * 1e-4;
    (expected + 4.0 * expected.sqrt()).ceil() as u64
}

#[test]
fn small_capacities_fit() {
    let (mut trials, mut failed) = (0, Vec::new());
    for addressing in ADDRESSINGS {
        for (table, f, b) in [
            (TableKind::Packed, 4, 4),
            (TableKind::Packed, 5, 4),
            (TableKind::Packed, 7, 4),
            (TableKind::Packed, 13, 4),
            (TableKind::Packed, 32, 4),
            (TableKind::Single, 2, 4),
            (TableKind::Single, 8, 1),
            (TableKind::Single, 11, 1),
            (TableKind::Single, 16, 1),
            (TableKind::Single, 20, 1),
            (TableKind::Single, 9, 2),
            (TableKind::Single, 12, 2),
            (TableKind::Single, 10, 3),
            (TableKind::Single, 6, 3),
            (TableKind::Single, 9, 5),
            (TableKind::Single, 9, 8),
            (TableKind::Single, 9, 16),
        ] {
            for capacity in [0, 1, 2, 3, 5, 8, 10, 13, 21, 34, 50, 75, 100, 150, 250, 400, 700, 1000] {
                let count = 20_000 / (capacity + 20) as u64;
                let failures = failures(table, f, b, addressing, capacity, count);
                trials += count;
                if failures > 0 {
                    failed.push((failures, count, table, f, b, addressing, capacity));
                }
            }
        }
    }
    let failures: u64 = failed.iter().map(|failed| failed.0).sum();
    assert!(failures <= allowed(trials), "{failures} of {trials}: {failed:?}");
}

#[test]
fn large_capacities_fit() {
    for addressing in ADDRESSINGS {
        for (table, f, b) in [
            (TableKind::Packed, 5, 4),
            (TableKind::Packed, 9, 4),
            (TableKind::Packed, 25, 4),
            (TableKind::Single, 8, 4),
            (TableKind::Single, 12, 1),
            (TableKind::Single, 16, 1),
            (TableKind::Single, 20, 1),
            (TableKind::Single, 9, 2),
            (TableKind::Single, 10, 2),
            (TableKind::Single, 11, 2),
            (TableKind::Single, 16, 2),
            (TableKind::Single, 9, 3),
        ] {
            for capacity in [3_000, 9_000, 10_000, 44_444, 150_000, 700_000] {
                assert_eq!(
                    failures(table, f, b, addressing, capacity, 1 + 30_000 / capacity as u64),
                    0,
                    "{table} {f} {b} {capacity}"
                );
            }
        }
    }
}

#[test]
fn no_capacity_is_a_filter_too() {
    let mut filter = CuckooFilter::builder().capacity(0).false_positive_rate(0.01).build().expect("right");
    assert!(filter.is_empty() && !filter.contains("koel") && !filter.remove("koel"));
    assert!(filter.size_in_bytes() < 200);
    filter.insert("koel").expect("even so there is a slot");
    assert!(filter.contains("koel"));
}
