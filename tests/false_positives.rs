//! The measured false-positive rate agrees with the predicted one.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "small numbers")]

use crate::common::{ADDRESSINGS, SplitMix64, same_bits};
use koel::{Addressing, CuckooFilter, Prehashed, TableKind};

/// 99.9 % of a normal distribution lie within this many standard deviations of the mean.
const QUANTILE: f64 = 3.29;
const ITEMS: usize = 200_000;
const SAMPLES: usize = 4_000_000;

/// Fills a filter to `load` and compares the measured rate with the predicted one.
fn check_rate(table: TableKind, f: u32, b: u32, addressing: Addressing, load: f64) {
    let buckets = match addressing {
        Addressing::AnySize => (ITEMS as f64 / load / f64::from(b)) as u64 & !1,
        _ => (1 << 17) / u64::from(b).next_power_of_two(),
    };
    let builder = CuckooFilter::builder().table(table).fingerprint_bits(f).bucket_size(b).addressing(addressing);
    let mut filter = builder.buckets(buckets).build().expect("valid parameters");
    let items = (filter.slots() as f64 * load) as usize;
    // This sequence differs from that of `measure_false_positive_rate`.
    for hash in SplitMix64(u64::from(f) << 32 | u64::from(b)).take(items) {
        filter.insert(&Prehashed(hash)).expect("the load can be reached");
    }
    let expected = filter.false_positive_rate();
    let before = filter.clone();
    let measured = filter.measure_false_positive_rate(SAMPLES);
    assert!(same_bits(&filter, &before), "measuring changed the filter");
    // Two things are random: which samples are found, and which fingerprints the table holds.
    let fingerprints = (1u64 << f) as f64 - 1.0;
    let sample_variance = expected * (1.0 - expected) / SAMPLES as f64;
    let table_variance = (2.0 * f64::from(b)).powi(2) * load / (filter.slots() as f64 * fingerprints);
    let tolerance = QUANTILE * (sample_variance + table_variance).sqrt();
    assert!(
        (measured - expected).abs() <= tolerance,
        "{table} f = {f} b = {b} {addressing} load {load}: measured {measured:.6}, expected {expected:.6} ± {tolerance:.6}"
    );
}

#[test]
fn packed_tables_have_the_predicted_rate() {
    for addressing in ADDRESSINGS {
        for f in [4, 5, 6, 7, 8, 9, 11, 13, 16] {
            check_rate(TableKind::Packed, f, 4, addressing, 0.95);
        }
    }
}

#[test]
fn single_tables_have_the_predicted_rate() {
    for addressing in ADDRESSINGS {
        for (f, b, load) in
            [(8, 1, 0.3), (6, 2, 0.5), (8, 2, 0.8), (9, 3, 0.9), (8, 4, 0.95), (12, 4, 0.95), (9, 8, 0.97), (10, 16, 0.98)]
        {
            check_rate(TableKind::Single, f, b, addressing, load);
        }
    }
}

/// With 24 bits or more, fewer than two false positives are expected in four million lookups.
#[test]
fn long_fingerprints_have_almost_no_false_positives() {
    for table in [TableKind::Single, TableKind::Packed] {
        for f in [24, 28, 32] {
            let mut filter =
                CuckooFilter::builder().table(table).fingerprint_bits(f).capacity(ITEMS).build().expect("valid parameters");
            SplitMix64(1).take(ITEMS).for_each(|hash| filter.insert(&Prehashed(hash)).expect("there is room"));
            let expected = filter.false_positive_rate() * 4e6;
            let hits = filter.measure_false_positive_rate(4_000_000) * 4e6;
            assert!(hits <= expected + 4.0 * expected.sqrt() + 3.0, "{table} f = {f}: {hits} hits, {expected} expected");
        }
    }
}

/// A filter from the builder keeps the requested rate up to its capacity.
#[test]
fn the_requested_rate_is_kept_at_capacity() {
    for rate in [0.5, 0.1, 0.03, 0.01, 0.003, 0.001] {
        for table in [None, Some(TableKind::Single), Some(TableKind::Packed)] {
            let mut builder = CuckooFilter::builder().capacity(100_000).false_positive_rate(rate);
            if let Some(table) = table {
                builder = builder.table(table);
            }
            let mut filter = builder.build().expect("valid parameters");
            SplitMix64(3).take(filter.capacity()).for_each(|hash| filter.insert(&Prehashed(hash)).expect("the capacity fits"));
            assert!(filter.false_positive_rate() <= rate);
            let tolerance = 4.0 * (rate / 1e6).sqrt();
            let measured = filter.measure_false_positive_rate(1_000_000);
            assert!(measured <= rate + tolerance, "{table:?} {rate}: measured {measured}");
        }
    }
}
