//! Invalid Go files are refused with a reason, and so are filters that a Go file cannot represent.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use crate::common::{GoFile, SplitMix64, same_bits};
use koel::{
    Addressing, CuckooFilter, Prehashed, SnapshotErrorKind, TableKind, Xxh3,
    go::{self, GoError, GoFilter, MetroHash64},
    hash::{Hasher, HasherId},
};
use proptest::{prelude::*, test_runner::RngSeed};

const SINGLE_HEADER: usize = 20;
const PACKED_HEADER: usize = 19;

/// Returns files of both tables, with buckets that end within a byte or at its end, and with a victim, a stale victim or none.
fn files() -> Vec<Vec<u8>> {
    let file = |f, b: u32, buckets, victim| {
        let mask = u32::MAX >> (32 - f);
        let slots = |bucket: u32| (0..b).map(|slot| (bucket.wrapping_mul(0x2545_f491) >> slot) & mask).collect();
        GoFile { buckets: (0..buckets).map(slots).collect(), f, victim }
    };
    vec![
        file(13, 4, 4, (3, 0x1fff, 1)).packed(),
        file(6, 4, 1, (0, 1, 0)).packed(),
        file(4, 4, 1, (0, 0, 0)).packed(),
        file(32, 4, 2, (1, u32::MAX, 1)).packed(),
        file(7, 3, 4, (2, 0x7f, 1)).single(),
        file(8, 4, 2, (0, 0, 0)).single(),
        file(12, 3, 1, (0, 5, 0)).single(),
    ]
}

#[track_caller]
fn assert_refused(bytes: &[u8], kind: SnapshotErrorKind, at: usize, part: &str) {
    let error = go::decode(bytes).expect_err("invalid file");
    assert_eq!((error.kind(), error.offset()), (kind, at as u64), "{error}");
    assert!(error.to_string().contains(part), "{error}");
    assert!(error.to_string().contains("; "), "no remedy: {error}");
}

fn with_field(bytes: &[u8], at: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + field.len()].copy_from_slice(field);
    bytes
}

#[test]
fn every_truncation_is_refused() {
    for file in files() {
        go::decode(&file).expect("valid file");
        for len in 0..file.len() {
            assert_refused(&file[..len], SnapshotErrorKind::Length, len, "end too early");
        }
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    for file in files() {
        for more in [1, 7, 1000] {
            let longer = [&file[..], &vec![0; more]].concat();
            assert_refused(
                &longer,
                SnapshotErrorKind::TrailingBytes,
                file.len(),
                "follow it; give exactly one file, without what follows",
            );
        }
    }
}

#[test]
fn invalid_headers_are_refused() {
    use SnapshotErrorKind::{Aliasing, Count, Length, Parameter, TrailingBytes};
    let (packed, single) = (&files()[0], &files()[4]);
    let number = u32::to_le_bytes;
    for (file, at, field, kind, part) in [
        (packed, 0, &number(0)[..], Count, "the header says 0"),
        (packed, 0, &number(u32::MAX), Count, "the header says 4294967295"),
        (single, 0, &number(100), Count, "the header says 100"),
        (packed, 4, &number(4), Parameter, "in bucket 4, but there are 4"),
        (single, 4, &number(u32::MAX), Parameter, "in bucket 4294967295"),
        (packed, 8, &number(0), Parameter, "fingerprint is 0"),
        (packed, 8, &number(0x2000), Parameter, "fingerprint is 8192, but those of 13 bits are 1 to 8191"),
        (single, 8, &number(0x80), Parameter, "fingerprint is 128"),
        (packed, 12, &[2], Parameter, "flag is 2"),
        (single, 12, &[255], Parameter, "flag is 255"),
        (packed, 13, &[2], Parameter, "table type 2"),
        (single, 13, &[255], Parameter, "table type 255"),
        // Go writes such tables, but their buckets overlap.
        (packed, 14, &[3], Aliasing, "4 to 32"),
        (packed, 14, &[0], Parameter, "4 to 32"),
        (packed, 14, &[33], Parameter, "4 to 32"),
        (single, 14, &[0], Parameter, "1 to 16"),
        (single, 15, &[0], Parameter, "2 to 32"),
        (single, 15, &[33], Parameter, "2 to 32"),
    ] {
        assert_refused(&with_field(file, at, field), kind, at, part);
    }
    for (file, at) in [(packed, 15), (single, 16)] {
        for buckets in [0, 3, 5, 6, 12, u32::MAX] {
            assert_refused(&with_field(file, at, &number(buckets)), Parameter, at, "powers of two");
        }
        // The length of the bytes is compared before any memory is allocated.
        for buckets in [1, 2, 8, 1 << 20, 1 << 31] {
            let error = go::decode(&with_field(file, at, &number(buckets))).expect_err("the length differs");
            assert!(matches!(error.kind(), Length | TrailingBytes | Parameter), "{error}");
            assert_eq!(error.kind() != Parameter, cfg!(target_pointer_width = "64") || buckets < 1 << 21, "{error}");
        }
    }
    // A stale victim must still fit the table.
    let stale = with_field(packed, 12, &[0]);
    assert!(go::decode(&stale).is_ok());
    assert_refused(&with_field(&stale, 4, &number(4)), Parameter, 4, "in bucket 4");
    assert_refused(&with_field(&stale, 8, &number(0x2000)), Parameter, 8, "fingerprint is 8192");
    assert_refused(&with_field(&stale, 8, &number(0)), Parameter, 8, "fingerprint is 0");
    // As a single table, this header has its fields at other offsets.
    assert_refused(&with_field(packed, 13, &[0]), Parameter, 16, "powers of two");
}

/// Go's single table accepts these parameters, but koel's does not.
#[test]
fn parameters_that_only_go_has_are_unsupported() {
    let single = &files()[5];
    let unsupported = SnapshotErrorKind::Unsupported;
    assert_refused(&with_field(single, 15, &[1]), unsupported, 15, "1 given, but the single table takes 2 to 32");
    assert_refused(&with_field(single, 14, &[17]), unsupported, 14, "17 given, but the single table takes 1 to 16");
    assert_refused(&with_field(single, 14, &[255]), unsupported, 14, "insert the items into a new filter");
}

#[test]
fn invalid_codewords_are_refused() {
    let packed = &files()[0];
    for codeword in 3876..4096u16 {
        let bucket = [codeword as u8, packed[PACKED_HEADER + 1] & 0xf0 | (codeword >> 8) as u8];
        let part = format!("bucket 0 has the codeword {codeword}");
        assert_refused(&with_field(packed, PACKED_HEADER, &bucket), SnapshotErrorKind::Table, PACKED_HEADER, &part);
    }
    // The third bucket, of 48 bits each.
    let at = PACKED_HEADER + 12;
    assert_refused(&with_field(packed, at, &[0xff, 0xff]), SnapshotErrorKind::Table, at, "bucket 2 has the codeword 4095");
}

#[test]
fn bits_after_the_last_bucket_are_refused() {
    let files = files();
    // In order: one bucket of 20 bits, one of 12, four of 21, one of 36.
    for (file, used) in [(&files[1], 20), (&files[2], 12), (&files[4], 84), (&files[6], 36)] {
        let header = if file[13] == 0 { SINGLE_HEADER } else { PACKED_HEADER };
        for bit in used..8 * (file.len() - header) {
            let at = header + bit / 8;
            let bytes = with_field(file, at, &[file[at] | 1 << (bit % 8)]);
            assert_refused(&bytes, SnapshotErrorKind::Table, at, "beyond the last bucket");
        }
    }
}

/// Go's own code corrupts such tables.
#[test]
fn tables_whose_slots_share_bits_are_refused() {
    for (f, b, is_valid) in [(2, 1, false), (2, 2, false), (2, 4, true), (2, 6, false), (4, 1, false), (4, 2, true)]
        .into_iter()
        .chain([(4, 3, false), (12, 3, false), (12, 4, true), (12, 5, false), (12, 6, true), (6, 3, true), (10, 1, true)])
    {
        let file = |buckets| GoFile { buckets: vec![vec![1; b]; buckets], f, victim: (0, 0, 0) }.single();
        assert!(go::decode(&file(1)).is_ok(), "a single bucket begins at a byte, so no bits are shared");
        if is_valid {
            assert!(go::decode(&file(4)).is_ok(), "f {f}, b {b}");
        } else {
            let part = "share bits; insert the items into a new filter with other parameters";
            assert_refused(&file(4), SnapshotErrorKind::Aliasing, 15, part);
        }
    }
}

#[test]
fn filters_that_go_cannot_represent_are_refused() {
    let builder =
        || CuckooFilter::builder().fingerprint_bits(9).addressing(Addressing::PowerOfTwo).hasher(MetroHash64).seed(1337);
    let check_refused = |filter: CuckooFilter<MetroHash64>, is_expected: fn(&GoError) -> bool, parts: &[&str]| {
        let errors = [go::encode(&filter).map(drop), GoFilter::try_from(filter).map(drop)];
        for error in errors.map(|error| error.expect_err("Go has no such filter")) {
            assert!(is_expected(&error), "{error}");
            for part in parts {
                assert!(error.to_string().contains(part), "{error}");
            }
        }
    };
    assert!(go::encode(&builder().capacity(100).build().expect("valid parameters")).is_ok());
    let seed = builder().capacity(100).seed(0).build().expect("valid parameters");
    check_refused(
        seed,
        |error| matches!(error, GoError::Seed(0)),
        &["seed: 0 given", "always uses 1337; build the filter with that seed"],
    );
    let any_size = builder().capacity(100).addressing(Addressing::AnySize).build().expect("valid parameters");
    check_refused(
        any_size,
        |error| matches!(error, GoError::Addressing(Addressing::AnySize)),
        &["any-size given", "power-of-two; build the filter with that addressing"],
    );
    let thirds =
        builder().table(TableKind::Single).fingerprint_bits(12).bucket_size(3).buckets(8).build().expect("valid parameters");
    let is_aliasing = |error: &GoError| matches!(error, GoError::Aliasing { fingerprint_bits: 12, bucket_size: 3, .. });
    check_refused(
        thirds,
        is_aliasing,
        &["12 given with buckets of 3", "bucket size that is a multiple of 4, or with another fingerprint length"],
    );
    let xxh3 = CuckooFilter::builder().capacity(100).fingerprint_bits(9).addressing(Addressing::PowerOfTwo).seed(1337);
    let error = go::encode(&xxh3.build().expect("valid parameters")).expect_err("Go has no such hasher");
    assert!(matches!(error, GoError::Hasher(HasherId::XXH3)), "{error}");
    assert!(
        error.to_string().ends_with("xxh3 given, but Go's library uses metrohash64; build the filter with that hasher"),
        "{error}"
    );
    assert_eq!(Xxh3.id(), HasherId::XXH3);
    // Such filters are too large to build here.
    for (error, remedy) in [
        (GoError::Buckets(1 << 32), "at most 2147483648; build the filter with a smaller capacity"),
        (GoError::Items(1 << 32), "at most 4294967295; use several filters"),
    ] {
        assert!(error.to_string().contains("4294967296") && error.to_string().ends_with(remedy), "{error}");
    }
}

#[test]
fn other_bytes_are_refused() {
    let snapshot = CuckooFilter::builder().capacity(100).fingerprint_bits(9).build().expect("valid parameters").to_bytes();
    for bytes in [&snapshot[..], b"not a filter at all", &[0xff; 64], &[0; 64]] {
        go::decode(bytes).expect_err("invalid file");
    }
}

/// Asserts that the bytes are refused, or that they are a complete file whose filter works. Go's files have no checksum, so altered
/// bytes may be another valid file.
fn check_refused_or_valid(bytes: &[u8]) -> Result<(), TestCaseError> {
    if let Ok(mut go) = go::decode(bytes) {
        prop_assert_eq!(go.encode().expect("it can be encoded"), bytes);
        let before = go.len();
        let inserted = SplitMix64(5).take(20).filter(|&hash| go.insert(&Prehashed(hash)).is_ok()).count();
        prop_assert_eq!(go.len(), before + inserted);
        let read = go::decode(&go.encode().expect("it can be encoded"));
        prop_assert!(read.is_ok_and(|read| same_bits(read.filter(), go.filter()) && read.len() == go.len()));
    }
    Ok(())
}

#[test]
fn files_with_a_flipped_bit_are_refused_or_valid() {
    for file in files() {
        for bit in 0..8 * file.len() {
            check_refused_or_valid(&with_field(&file, bit / 8, &[file[bit / 8] ^ 1 << (bit % 8)])).expect("refused or valid");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn altered_files_are_refused_or_valid(n in 0usize..7, edits in prop::collection::vec((any::<usize>(), any::<u8>()), 0..6)) {
        let mut file = files().swap_remove(n);
        for (at, byte) in edits {
            let len = file.len();
            file[at % len] = byte;
        }
        check_refused_or_valid(&file)?;
    }
}
