//! Filters hold the capacity that was requested: planned loads are safe, also between the measured sizes (`tables/README.md`).

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "small numbers")]

use crate::common::{ADDRESSINGS, SplitMix64};
use koel::{Addressing, CuckooFilter, Prehashed, TableKind};

/// Fills `trials` filters to their capacity, which is at least `capacity`, and returns how many of them refused an item.
fn failures(table: TableKind, f: u32, b: u32, addressing: Addressing, capacity: usize, trials: u64) -> u64 {
    let builder = CuckooFilter::builder().table(table).fingerprint_bits(f).bucket_size(b).addressing(addressing);
    let mut filter = builder.capacity(capacity).build().expect("valid parameters");
    assert!(filter.capacity() >= capacity);
    let promised_capacity = filter.capacity();
    (0..trials)
        .filter(|trial| {
            filter.clear();
            // These sequences differ from those that the loads were measured with.
            let mut hashes = SplitMix64(0xc0ff_ee00 + trial * 0x1_0000_0001 + u64::from(f) * 77 + u64::from(b));
            (0..promised_capacity).any(|_| filter.insert(&Prehashed(hashes.next().expect("the generator is endless"))).is_err())
        })
        .count() as u64
}

/// Returns the greatest plausible number of failures: the expected one, at 10⁻⁴ per trial, plus four standard deviations.
fn allowed_failures(trials: u64) -> u64 {
    let expected = trials as f64 * 1e-4;
    (expected + 4.0 * expected.sqrt()).ceil() as u64
}

/// Returns the greatest plausible number of failures of one kind and capacity: the probability of more is below 10⁻⁶.
fn allowed_failures_of_one_kind(trials: u64) -> u64 {
    let expected = trials as f64 * 1e-4;
    // An upper bound for the probability of more than `failures`: expectedⁿ / n! with n = failures + 1.
    let mut probability = 1.0;
    let is_unlikely = |failures: &u64| {
        probability *= expected / (failures + 1) as f64;
        probability < 1e-6
    };
    (0..trials).find(is_unlikely).unwrap_or(trials)
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
                let allowed = allowed_failures_of_one_kind(count);
                assert!(failures <= allowed, "{failures} of {count}: {table} {f} {b} {addressing} {capacity}");
                if failures > 0 {
                    failed.push((failures, count, table, f, b, addressing, capacity));
                }
            }
        }
    }
    let failures: u64 = failed.iter().map(|failed| failed.0).sum();
    assert!(failures <= allowed_failures(trials), "{failures} of {trials}: {failed:?}");
}

/// Only here are large tables of many kinds filled to their planned capacity, one item at a time.
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
fn a_filter_of_capacity_zero_works() {
    let mut filter = CuckooFilter::builder().capacity(0).false_positive_rate(0.01).build().expect("valid parameters");
    assert!(filter.is_empty() && !filter.contains("koel") && !filter.remove("koel"));
    assert!(filter.size_in_bytes() < 200);
    filter.insert("koel").expect("the smallest table has a free slot");
    assert!(filter.contains("koel"));
}
