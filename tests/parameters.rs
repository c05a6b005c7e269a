//! What the factory makes of requests, sensible and other.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "small numbers")]

use crate::common::{ADDRESSINGS, SplitMix64, with_nearest};
use koel::{Addressing, BuildError, Builder, CuckooFilter, ParamError, Parameter, Prehashed, TableKind};

fn builder() -> Builder {
    CuckooFilter::builder()
}

#[track_caller]
fn refused(builder: Builder, parameter: Parameter, parts: &[&str]) -> ParamError {
    let error = builder.clone().params().expect_err("there is no such filter");
    let message = with_nearest(&error);
    assert_eq!(builder.build().expect_err("this cannot be built"), BuildError::Param(error.clone()));
    assert_eq!(error.parameter(), parameter, "{message}");
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
    error
}

#[test]
fn each_wrong_parameter_is_named_with_its_limit_and_what_would_work() {
    let sized = || builder().capacity(1000);
    let packed = || sized().table(TableKind::Packed);
    refused(packed().fingerprint_bits(3), Parameter::FingerprintBits, &["3 given", "packed", "4 to 32", "works is 4"]);
    refused(packed().fingerprint_bits(33), Parameter::FingerprintBits, &["33 given", "packed", "4 to 32", "works is 32"]);
    refused(
        sized().table(TableKind::Single).fingerprint_bits(1),
        Parameter::FingerprintBits,
        &["1 given", "single", "2 to 32", "works is 2"],
    );
    refused(sized().fingerprint_bits(0), Parameter::FingerprintBits, &["0 given", "2 to 32"]);
    refused(sized().fingerprint_bits(u32::MAX), Parameter::FingerprintBits, &["4294967295 given", "works is 32"]);
    for b in [0, 1, 3, 5, 8, u32::MAX] {
        refused(
            packed().fingerprint_bits(9).bucket_size(b),
            Parameter::BucketSize,
            &[&format!("{b} given"), "packed table takes 4;", "works is 4"],
        );
        refused(packed().false_positive_rate(0.01).bucket_size(b), Parameter::BucketSize, &["works is 4"]);
    }
    refused(sized().fingerprint_bits(9).bucket_size(0), Parameter::BucketSize, &["0 given", "1 to 16", "works is 1"]);
    refused(sized().fingerprint_bits(9).bucket_size(17), Parameter::BucketSize, &["17 given", "1 to 16", "works is 16"]);
    for rate in [0.0, -0.1, 1.0, 1.5, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        refused(sized().false_positive_rate(rate), Parameter::FalsePositiveRate, &["between 0 and 1", "nearest that works"]);
    }
    refused(sized().false_positive_rate(1e-12), Parameter::FalsePositiveRate, &["1e-12 given", "32 bits at most"]);
}

#[test]
fn the_size_and_the_precision_are_each_given_once() {
    refused(
        builder().fingerprint_bits(9),
        Parameter::Capacity,
        &["neither a capacity nor a number of buckets given", "exactly one", "give one"],
    );
    refused(
        builder().fingerprint_bits(9).capacity(1).buckets(2),
        Parameter::Capacity,
        &["both a capacity and a number of buckets given", "leave one"],
    );
    refused(builder().capacity(1), Parameter::FalsePositiveRate, &["neither a rate nor a number of bits given", "give one"]);
    refused(
        builder().capacity(1).false_positive_rate(0.1).fingerprint_bits(9),
        Parameter::FalsePositiveRate,
        &["both a rate and a number of bits given", "leave one"],
    );
}

#[test]
fn numbers_of_buckets_must_suit_the_addressing() {
    let bits = || builder().fingerprint_bits(13);
    for (buckets, nearest) in [(0, 2), (1, 2), (7, 8)] {
        refused(
            bits().buckets(buckets),
            Parameter::Buckets,
            &[&format!("{buckets} given"), "even", &format!("works is {nearest}")],
        );
    }
    for (buckets, nearest) in [(0, 1), (3, 4), (1000, 1024)] {
        let power = bits().addressing(Addressing::PowerOfTwo).buckets(buckets);
        refused(power, Parameter::Buckets, &["powers of two", &format!("works is {nearest}")]);
    }
    // Go draws the index from 32 bits.
    let most = bits().addressing(Addressing::PowerOfTwo).buckets(1 << 33);
    refused(most, Parameter::Buckets, &["8589934592 given", "works is 4294967296"]);
    // Fingerprints of 32 bits leave 32 of the hash for the bucket.
    let long = || builder().fingerprint_bits(32);
    refused(long().buckets((1 << 32) + 2), Parameter::Buckets, &["4294967298 given", "works is 4294967296"]);
    assert!(long().buckets(1 << 32).params().is_ok());
    refused(bits().buckets(u64::MAX), Parameter::Buckets, &["18446744073709551615 given", "nearest that works"]);
}

/// The remedy of each message is one: what it calls the nearest that works, works.
#[test]
fn the_nearest_that_works_works() {
    let nearest = |error: &ParamError| with_nearest(error).rsplit(' ').next().expect("a last word").to_owned();
    let error = refused(builder().capacity(1000).false_positive_rate(1e-12), Parameter::FalsePositiveRate, &[]);
    let rate: f64 = nearest(&error).parse().expect("a number");
    assert!(builder().capacity(1000).false_positive_rate(rate).build().is_ok(), "{error}");

    for request in [
        builder().fingerprint_bits(13),
        builder().fingerprint_bits(32).table(TableKind::Single),
        builder().false_positive_rate(0.001),
    ] {
        for addressing in ADDRESSINGS {
            let request = request.clone().addressing(addressing);
            let error = request.clone().capacity(usize::MAX).params().expect_err("too many");
            assert_eq!(error.parameter(), Parameter::Capacity, "{error}");
            assert!(error.to_string().contains(&usize::MAX.to_string()), "{error}");
            let capacity: usize = nearest(&error).parse().expect("a number");
            let params = request.capacity(capacity).params().unwrap_or_else(|again| panic!("{error}: {again}"));
            assert!(params.capacity() >= capacity);
        }
    }
    let error = refused(builder().fingerprint_bits(13).buckets(u64::MAX), Parameter::Buckets, &[]);
    let buckets: u64 = nearest(&error).parse().expect("a number");
    assert!(builder().fingerprint_bits(13).buckets(buckets).params().is_ok());
}

/// More than any machine has, less than it can address.
#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let error = builder().fingerprint_bits(8).buckets(1 << 55).build().expect_err("no machine has as much");
    let BuildError::OutOfMemory(out_of_memory) = &error else { panic!("{error}") };
    // A bucket has 28 bits, and the padding eight bytes.
    let bytes = (28usize << 55) / 8;
    assert!((bytes..=bytes + 8).contains(&out_of_memory.bytes()), "{error}");
    for part in [&out_of_memory.bytes().to_string(), "could not be allocated", "smaller capacity"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn the_smaller_table_is_the_default() {
    let params = |builder: Builder| builder.params().expect("right");
    for rate in [0.4, 0.1, 0.01, 0.001, 1e-6, 1e-8] {
        let wanted = builder().capacity(100_000).false_positive_rate(rate);
        let kinds = [TableKind::Single, TableKind::Packed].map(|kind| params(wanted.clone().table(kind)));
        let smallest = kinds.iter().map(koel::Params::table_bytes).min();
        let chosen = params(wanted);
        assert_eq!(Some(chosen.table_bytes()), smallest);
        assert!(chosen.false_positive_rate_at(chosen.capacity() as f64 / chosen.slots() as f64) <= rate);
    }
    assert_eq!(params(builder().capacity(100_000).false_positive_rate(0.001)).table(), TableKind::Packed);
    assert_eq!(params(builder().capacity(100).fingerprint_bits(3)).table(), TableKind::Single);
    assert_eq!(params(builder().capacity(100).fingerprint_bits(12)).table(), TableKind::Packed);
    assert_eq!(params(builder().capacity(100).fingerprint_bits(12).bucket_size(8)).table(), TableKind::Single);
}

/// One line, with the names that the command and serde have.
#[test]
fn parameters_are_one_line() {
    let single = builder().table(TableKind::Single).addressing(Addressing::PowerOfTwo).bucket_size(3).seed(1337);
    let params = single.fingerprint_bits(7).buckets(32).params().expect("right");
    assert_eq!(params.to_string(), "single table, 7-bit fingerprints, 32 buckets of 3 (power-of-two), seed 1337");
}

#[test]
fn the_default_builder_is_the_one_that_filters_have() {
    let sized = |builder: Builder| builder.capacity(1000).false_positive_rate(0.01).params();
    assert_eq!(sized(Builder::default()), sized(builder()));
}

#[test]
fn every_kind_that_is_allowed_is_built() {
    for addressing in ADDRESSINGS {
        for f in 2..=32 {
            for b in 1..=16 {
                let single = builder().table(TableKind::Single).fingerprint_bits(f).bucket_size(b).addressing(addressing);
                let filter = single.capacity(50).build().expect("right");
                let params = filter.params();
                assert_eq!((params.fingerprint_bits(), params.bucket_size(), params.addressing()), (f, b, addressing));
                assert!(params.capacity() >= 50);
                assert_eq!(params.table_bytes() as u64, (params.buckets() * u64::from(b * f)).div_ceil(8));
                assert_eq!(params.snapshot_bytes(), filter.to_bytes().len() as u64);
            }
        }
        for f in 4..=32 {
            let filter = builder().table(TableKind::Packed).fingerprint_bits(f).addressing(addressing).capacity(50).build();
            let params = filter.expect("right").params();
            assert_eq!(params.table_bytes() as u64, (params.buckets() * u64::from(4 * (f - 1))).div_ceil(8));
        }
    }
}

/// Beyond 2³² slots, without allocating them.
#[test]
fn large_tables_are_planned_in_64_bits() {
    for addressing in ADDRESSINGS {
        for billions in [1_usize, 5, 10] {
            let capacity = billions * 1_000_000_000;
            let params = builder().capacity(capacity).fingerprint_bits(13).addressing(addressing).params().expect("right");
            assert!(params.slots() > capacity && params.capacity() >= capacity);
            assert_eq!(params.table_bytes(), params.slots() * 12 / 8);
        }
    }
    let params = builder().capacity(1 << 40).fingerprint_bits(13).params().expect("right");
    assert!((params.slots() as f64) < (1u64 << 40) as f64 / 0.95);
}

/// No doubling at powers of two. Short fingerprints are too few to tell very many items apart (docs/DESIGN.md, "Capacity").
#[test]
fn bits_per_item_hold_at_every_size() {
    let powers = (14..34).flat_map(|log2| [(1 << log2) - 1, 1 << log2, (1 << log2) + 1, 3 << (log2 - 1)]);
    let sizes: Vec<usize> = powers.chain((4..=10).map(|zeros| 10_usize.pow(zeros))).collect();
    for (f, most) in [(5, 2_000_000), (6, 130_000_000), (7, usize::MAX), (8, usize::MAX), (13, usize::MAX), (25, usize::MAX)] {
        for &capacity in sizes.iter().filter(|&&capacity| capacity <= most) {
            let params = builder().capacity(capacity).fingerprint_bits(f).table(TableKind::Packed).params().expect("right");
            let bits_per_item = 8.0 * params.table_bytes() as f64 / capacity as f64;
            let rate = params.false_positive_rate_at(capacity as f64 / params.slots() as f64);
            assert!(bits_per_item <= f64::from(f - 1) / 0.97 * 1.01, "n = {capacity}, f = {f}: {bits_per_item}");
            assert!(bits_per_item <= (2.1 - rate.log2()) / 0.97, "n = {capacity}, f = {f}: {bits_per_item} bits, {rate}");
        }
    }
}

/// The table in the README, "How small". It has the struct of the default build on 64-bit machines; without kernels, and with shorter
/// words, the struct is smaller.
#[test]
fn the_readmes_sizes_are_right() {
    const STRUCT: usize = 96;
    let size = size_of::<CuckooFilter>();
    assert!(size <= STRUCT, "{size} bytes");
    if cfg!(all(feature = "kernels", target_arch = "x86_64")) {
        assert_eq!(size, STRUCT, "the README has another size");
    }
    let readme = include_str!("../README.md");
    for rate in [0.1, 0.01, 0.001, 0.0001] {
        let bits = [100, 1_000, 10_000, 1_000_000].map(|items| {
            let filter = builder().capacity(items).false_positive_rate(rate).build().expect("right");
            let bytes = filter.size_in_bytes() - size + STRUCT;
            format!("{:.1}", 8.0 * bytes as f64 / items as f64)
        });
        let row = format!("| {rate} | {} |", bits.join(" | "));
        assert!(readme.contains(&row), "README.md should have {row}");
    }
}

#[test]
fn a_load_of_097_is_reached_from_ten_thousand_items_on() {
    for f in 5..=32 {
        for (items, seed) in [(10_000, 1), (10_000, 2), (33_333, 3), (100_000, 4)] {
            let buckets = (f64::from(items) / 0.97 / 4.0) as u64 & !1;
            let mut filter = builder().table(TableKind::Packed).fingerprint_bits(f).buckets(buckets).build().expect("right");
            let wanted = (filter.slots() as f64 * 0.97).ceil() as usize;
            for hash in SplitMix64(seed << 32 | u64::from(f)).take(wanted) {
                filter.insert(&Prehashed(hash)).unwrap_or_else(|full| panic!("f = {f}, {items} items, seed {seed}: {full}"));
            }
        }
    }
}
