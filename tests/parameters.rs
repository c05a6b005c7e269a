//! The builder turns valid requests into parameters, and refuses invalid ones with an error.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "small numbers")]

use crate::common::{ADDRESSINGS, SplitMix64};
use koel::{Addressing, BuildError, Builder, CuckooFilter, Kernel, ParamError, Prehashed, TableKind, hash::AnyHasher};
use std::{error::Error, fmt::Debug, str::FromStr};

fn builder() -> Builder {
    CuckooFilter::builder()
}

#[track_caller]
fn assert_refused(builder: Builder, error: ParamError) {
    assert_eq!(builder.clone().params(), Err(error));
    assert_eq!(builder.build().expect_err("invalid parameters"), BuildError::Param(error));
}

#[test]
fn invalid_parameters_are_refused_with_their_limits() {
    let sized = || builder().capacity(1000);
    let with_table = |kind| sized().table(kind);
    for (table, given) in [(TableKind::Packed, 3), (TableKind::Packed, 33), (TableKind::Single, 1), (TableKind::Single, u32::MAX)]
    {
        assert_refused(with_table(table).fingerprint_bits(given), ParamError::FingerprintBits { given, table });
    }
    // Without a kind of table, the error has the limits of the single table, which are the widest.
    assert_refused(sized().fingerprint_bits(0), ParamError::FingerprintBits { given: 0, table: TableKind::Single });
    for given in [0, 1, 3, 5, 8, u32::MAX] {
        let error = ParamError::BucketSize { given, table: TableKind::Packed };
        assert_refused(with_table(TableKind::Packed).fingerprint_bits(9).bucket_size(given), error);
        assert_refused(with_table(TableKind::Packed).false_positive_rate(0.01).bucket_size(given), error);
    }
    for given in [0, 17] {
        let error = ParamError::BucketSize { given, table: TableKind::Single };
        assert_refused(sized().fingerprint_bits(9).bucket_size(given), error);
    }
    let lowest = sized().fingerprint_bits(32).params().expect("valid parameters").false_positive_rate_at_capacity();
    for given in [0.0, -0.1, 1e-12, 1.0, 1.5, f64::INFINITY, f64::NEG_INFINITY] {
        assert_refused(sized().false_positive_rate(given), ParamError::FalsePositiveRate { given, min: lowest });
    }
    let error = sized().false_positive_rate(f64::NAN).params().expect_err("not a number");
    assert!(matches!(error, ParamError::FalsePositiveRate { .. }), "{error}");
}

#[test]
fn exactly_one_size_and_one_precision_must_be_given() {
    assert_refused(builder().fingerprint_bits(9), ParamError::NoSize);
    assert_refused(builder().fingerprint_bits(9).capacity(1).buckets(2), ParamError::TwoSizes);
    assert_refused(builder().capacity(1), ParamError::NoPrecision);
    assert_refused(builder().capacity(1).false_positive_rate(0.1).fingerprint_bits(9), ParamError::TwoPrecisions);
}

#[test]
fn bucket_counts_must_suit_the_addressing() {
    let bits = |bits| builder().fingerprint_bits(bits);
    let check_refused = |builder: Builder, addressing, given, most: u64| {
        let builder = builder.addressing(addressing);
        assert_refused(builder.clone().buckets(given), ParamError::Buckets { given, max: most, addressing });
        assert!(builder.buckets(most).params().is_ok());
    };
    let most = |f| match builder().fingerprint_bits(f).buckets(1).params() {
        Err(ParamError::Buckets { max, .. }) => max,
        other => panic!("{other:?}"),
    };
    for given in [0, 1, 7, u64::MAX] {
        check_refused(bits(13), Addressing::AnySize, given, most(13));
    }
    // Go takes the bucket from 32 bits of the hash.
    #[cfg(target_pointer_width = "64")]
    for given in [0, 3, 1000, 1 << 33] {
        check_refused(bits(13), Addressing::PowerOfTwo, given, 1 << 32);
    }
    // Fingerprints of 32 bits leave 32 bits of the hash for the bucket.
    #[cfg(target_pointer_width = "64")]
    check_refused(bits(32), Addressing::AnySize, (1 << 32) + 2, 1 << 32);
}

/// Each message has the given value, the limits and one remedy.
#[test]
fn error_messages_name_value_limits_and_remedy() {
    let (any_size, table) = (Addressing::AnySize, TableKind::Packed);
    for (error, message) in [
        (ParamError::NoSize, "neither a capacity nor a number of buckets given; give one of them"),
        (ParamError::TwoSizes, "both a capacity and a number of buckets given; leave one of them out"),
        (ParamError::NoPrecision, "neither a rate nor fingerprint bits given; give one of them"),
        (ParamError::TwoPrecisions, "both a rate and fingerprint bits given; leave one of them out"),
        (ParamError::NoRate, "false-positive rate: none given; give one between 0 and 1, such as 0.001"),
        (
            ParamError::Capacity { given: 10, max: 9 },
            "capacity: 10 given, but with the other parameters at most 9 works; give no more",
        ),
        (
            ParamError::MaxCapacity { given: 10, max: 9 },
            "maximum capacity: 10 given, but with the other parameters at most 9 works; give no more",
        ),
        (
            ParamError::Buckets { given: 7, max: 100, addressing: any_size },
            "buckets: 7 given, but any-size addressing takes even numbers from 2 to 100; give one of those",
        ),
        (
            ParamError::Buckets { given: 7, max: 128, addressing: Addressing::PowerOfTwo },
            "buckets: 7 given, but power-of-two addressing takes powers of two from 1 to 128; give one of those",
        ),
        (
            ParamError::FalsePositiveRate { given: 1e-12, min: 1.7762e-9 },
            "false-positive rate: 1e-12 given, but filters of this size keep rates from 1.78e-9 to below 1; give one of those",
        ),
        (
            ParamError::FalsePositiveRate { given: f64::MIN_POSITIVE, min: 0.5 },
            "false-positive rate: 2.22507386e-308 given, but filters of this size keep rates from 0.5 to below 1; give one of those",
        ),
        (
            ParamError::FingerprintBits { given: 3, table },
            "fingerprint bits: 3 given, but the packed table takes 4 to 32; give one of those",
        ),
        (ParamError::BucketSize { given: 3, table }, "bucket size: 3 given, but the packed table takes 4; give one of those"),
        (
            ParamError::Partitions { given: 3 },
            "partitions: 3 given, but they are a power of two from 1 to 256; give one of those",
        ),
        (ParamError::MaxBytes { given: 10, needed: 99 }, "max bytes: 10 given, but an empty filter takes up to 99; give more"),
        (
            ParamError::Name { parameter: "table", names: &["single", "packed"] },
            "table: the names here are single, packed; give one of those",
        ),
    ] {
        assert_eq!(error.to_string(), message);
        let reason = error.reason().to_string();
        match error.parameter() {
            Some(parameter) => assert_eq!(format!("{parameter}: {reason}"), message),
            None => assert_eq!(reason, message),
        }
        assert_eq!(format!("{error:?}"), format!("ParamError({message})"));
        assert_eq!(BuildError::Param(error).to_string(), message);
        assert!(Error::source(&error).is_none() && Error::source(&BuildError::Param(error)).is_none());
    }
    assert!(size_of::<ParamError>() <= 40 && size_of::<BuildError>() <= 48);
}

/// Parses a name that does not exist, and returns the values of the names that the error offers.
#[track_caller]
fn names<T: FromStr<Err = ParamError> + Debug>(wrong: &str) -> Vec<T> {
    let error = wrong.parse::<T>().expect_err("an unknown name");
    let ParamError::Name { names, .. } = error else { panic!("{error}") };
    assert!(error.to_string().ends_with(&format!("the names here are {}; give one of those", names.join(", "))), "{error}");
    names.iter().map(|name| name.parse().expect("a valid name")).collect()
}

#[test]
fn names_in_messages_can_be_parsed() {
    assert_eq!(names::<TableKind>("semi-sorted"), [TableKind::Single, TableKind::Packed]);
    assert_eq!(names::<Addressing>("AnySize"), ADDRESSINGS);
    assert_eq!(names::<AnyHasher>("md5"), AnyHasher::ALL);
    let kernels = names::<Kernel>("mmx");
    assert_eq!(kernels, Kernel::available().collect::<Vec<_>>());
    for kernel in kernels {
        assert!(CuckooFilter::builder().capacity(1).fingerprint_bits(9).kernel(kernel).build().is_ok());
    }
}

/// Asks for more memory than any machine has, but less than it can address.
#[test]
fn too_little_memory_is_an_error() {
    let error = builder().fingerprint_bits(8).buckets(1 << 55).build().expect_err("too little memory");
    let BuildError::OutOfMemory(out_of_memory) = &error else { panic!("{error}") };
    // A bucket has 28 bits, and the table has up to eight bytes of padding.
    let bytes = (28usize << 55) / 8;
    assert!((bytes..=bytes + 8).contains(&out_of_memory.bytes()), "{error}");
    for part in [&out_of_memory.bytes().to_string(), "could not be allocated", "smaller capacity"] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn the_builder_chooses_the_smaller_table() {
    let params = |builder: Builder| builder.params().expect("valid parameters");
    for rate in [0.4, 0.1, 0.01, 0.001, 1e-6, 1e-8] {
        let request = builder().capacity(100_000).false_positive_rate(rate);
        let kinds = [TableKind::Single, TableKind::Packed].map(|kind| params(request.clone().table(kind)));
        let smallest = kinds.iter().map(koel::Params::table_bytes).min();
        let chosen = params(request);
        assert_eq!(Some(chosen.table_bytes()), smallest);
        assert!(chosen.false_positive_rate_at(chosen.capacity() as f64 / chosen.slots() as f64) <= rate);
    }
    assert_eq!(params(builder().capacity(100_000).false_positive_rate(0.001)).table(), TableKind::Packed);
    assert_eq!(params(builder().capacity(100).fingerprint_bits(3)).table(), TableKind::Single);
    assert_eq!(params(builder().capacity(100).fingerprint_bits(12)).table(), TableKind::Packed);
    assert_eq!(params(builder().capacity(100).fingerprint_bits(12).bucket_size(8)).table(), TableKind::Single);
}

/// Parameters are displayed as one line, with the names that the command and serde use.
#[test]
fn parameters_are_displayed_in_one_line() {
    let single = builder().table(TableKind::Single).addressing(Addressing::PowerOfTwo).bucket_size(3).seed(1337);
    let params = single.fingerprint_bits(7).buckets(32).params().expect("valid parameters");
    assert_eq!(params.to_string(), "single table, 7-bit fingerprints, 32 buckets of 3 (power-of-two), seed 1337");
}

#[test]
fn builder_default_equals_cuckoo_filter_builder() {
    let sized = |builder: Builder| builder.capacity(1000).false_positive_rate(0.01).params();
    assert_eq!(sized(Builder::default()), sized(builder()));
}

#[test]
fn all_valid_parameters_are_built() {
    for addressing in ADDRESSINGS {
        for f in 2..=32 {
            for b in 1..=16 {
                let single = builder().table(TableKind::Single).fingerprint_bits(f).bucket_size(b).addressing(addressing);
                let filter = single.capacity(50).build().expect("valid parameters");
                let params = filter.params();
                assert_eq!((params.fingerprint_bits(), params.bucket_size(), params.addressing()), (f, b, addressing));
                assert!(params.capacity() >= 50);
                assert_eq!(params.table_bytes() as u64, (params.buckets() * u64::from(b * f)).div_ceil(8));
                assert_eq!(params.snapshot_bytes(), filter.to_bytes().len() as u64);
            }
        }
        for f in 4..=32 {
            let filter = builder().table(TableKind::Packed).fingerprint_bits(f).addressing(addressing).capacity(50).build();
            let params = filter.expect("valid parameters").params();
            assert_eq!(params.table_bytes() as u64, (params.buckets() * u64::from(4 * (f - 1))).div_ceil(8));
        }
    }
}

/// Plans tables of more than 2³² slots, without allocating them.
#[test]
fn large_tables_are_planned_in_64_bits() {
    for addressing in ADDRESSINGS {
        for billions in [1_usize, 5, 10] {
            let capacity = billions * 1_000_000_000;
            let params =
                builder().capacity(capacity).fingerprint_bits(13).addressing(addressing).params().expect("valid parameters");
            assert!(params.slots() > capacity && params.capacity() >= capacity);
            assert_eq!(params.table_bytes(), params.slots() * 12 / 8);
        }
    }
    let params = builder().capacity(1 << 40).fingerprint_bits(13).params().expect("valid parameters");
    assert!((params.slots() as f64) < (1u64 << 40) as f64 / 0.95);
}

/// Table sizes do not double at powers of two. Short fingerprints are tested up to a limit only, because they tell few items apart
/// (docs/DESIGN.md, "Capacity").
#[test]
fn bits_per_item_are_bounded_at_every_size() {
    let powers = (14..34).flat_map(|log2| [(1 << log2) - 1, 1 << log2, (1 << log2) + 1, 3 << (log2 - 1)]);
    let sizes: Vec<usize> = powers.chain((4..=10).map(|zeros| 10_usize.pow(zeros))).collect();
    for (f, most) in [(5, 2_000_000), (6, 130_000_000), (7, usize::MAX), (8, usize::MAX), (13, usize::MAX), (25, usize::MAX)] {
        for &capacity in sizes.iter().filter(|&&capacity| capacity <= most) {
            let params =
                builder().capacity(capacity).fingerprint_bits(f).table(TableKind::Packed).params().expect("valid parameters");
            let bits_per_item = 8.0 * params.table_bytes() as f64 / capacity as f64;
            let rate = params.false_positive_rate_at(capacity as f64 / params.slots() as f64);
            assert!(bits_per_item <= f64::from(f - 1) / 0.97 * 1.01, "n = {capacity}, f = {f}: {bits_per_item}");
            assert!(bits_per_item <= (2.1 - rate.log2()) / 0.97, "n = {capacity}, f = {f}: {bits_per_item} bits, {rate}");
        }
    }
}

/// Checks the table in the README, "How small". Its sizes include the struct of the default build on 64-bit machines. Without
/// kernels, or with shorter words, the struct is smaller.
#[test]
fn sizes_in_the_readme_are_correct() {
    const STRUCT: usize = 104;
    let size = size_of::<CuckooFilter>();
    assert!(size <= STRUCT, "{size} bytes");
    if cfg!(all(feature = "kernels", target_arch = "x86_64")) {
        assert_eq!(size, STRUCT, "the README assumes another size");
    }
    let readme = include_str!("../README.md");
    for rate in [0.1, 0.01, 0.001, 0.0001] {
        let bits = [100, 1_000, 10_000, 1_000_000].map(|items| {
            let filter = builder().capacity(items).false_positive_rate(rate).build().expect("valid parameters");
            let bytes = filter.size_in_bytes() - size + STRUCT;
            format!("{:.1}", 8.0 * bytes as f64 / items as f64)
        });
        let row = format!("| {rate} | {} |", bits.join(" | "));
        assert!(readme.contains(&row), "README.md should have {row}");
    }
}

#[test]
fn packed_tables_of_ten_thousand_items_and_more_reach_a_load_of_097() {
    for f in 5..=32 {
        for (items, seed) in [(10_000, 1), (10_000, 2), (33_333, 3), (100_000, 4)] {
            let buckets = (f64::from(items) / 0.97 / 4.0) as u64 & !1;
            let mut filter =
                builder().table(TableKind::Packed).fingerprint_bits(f).buckets(buckets).build().expect("valid parameters");
            let target = (filter.slots() as f64 * 0.97).ceil() as usize;
            for hash in SplitMix64(seed << 32 | u64::from(f)).take(target) {
                filter.insert(&Prehashed(hash)).unwrap_or_else(|full| panic!("f = {f}, {items} items, seed {seed}: {full}"));
            }
        }
    }
}
