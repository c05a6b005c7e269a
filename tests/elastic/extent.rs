//! `SnapshotExtent` finds the end of an arriving snapshot of either type, however the bytes are split.

use std::{fs, path::Path};

use koel::{CuckooFilter, ElasticFilter, SnapshotError, SnapshotErrorKind as Kind, pieces::SnapshotExtent};
use proptest::{prelude::*, sample::Index, test_runner::RngSeed};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::snapshots::small;
use crate::common::filled;

/// Returns all golden files, and the snapshot of a filter with several partitions.
fn snapshots() -> Vec<Vec<u8>> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let files =
        [data.clone(), data.join("growing")].into_iter().flat_map(|folder| fs::read_dir(folder).expect("the folder exists"));
    let mut paths: Vec<_> = files.map(|entry| entry.expect("the file can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "koel"));
    paths.sort();
    assert!(paths.len() > 20);
    let mut all: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).expect("the file can be read")).collect();
    let mut partitions = small().partitions(4).build().expect("valid parameters");
    partitions.insert_iter(0..2000u64).expect("the filter grows");
    all.push(partitions.to_bytes());
    all
}

/// Pushes `bytes`, split at `cuts`. Returns the extent and how many bytes it accepted.
fn push_all(bytes: &[u8], cuts: &[usize]) -> Result<(SnapshotExtent, usize), SnapshotError> {
    let (mut extent, mut taken, mut start) = (SnapshotExtent::new(), 0, 0);
    for end in cuts.iter().copied().chain([bytes.len()]) {
        let was_complete = extent.is_complete();
        let len = extent.push(&bytes[start..end])?;
        assert!(len == end - start || extent.is_complete() && len < end - start);
        assert!(!was_complete || len == 0);
        (taken, start) = (taken + len, end);
        assert_eq!(extent.received(), taken as u64);
    }
    Ok((extent, taken))
}

#[test]
fn the_extent_of_a_snapshot_is_its_length() {
    for snapshot in snapshots() {
        for piece in [1, 31, 32, 33, 1000] {
            let mut extent = SnapshotExtent::default();
            for bytes in snapshot.chunks(piece) {
                assert!(!extent.is_complete());
                assert_eq!(extent.push(bytes).expect("a valid snapshot"), bytes.len());
            }
            assert!(extent.is_complete() && extent.received() == snapshot.len() as u64);
            assert_eq!(extent.push(&snapshot).expect("the snapshot is complete"), 0);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    /// Pushes each snapshot twice: with other bytes behind it, and truncated.
    #[test]
    fn the_extent_does_not_depend_on_splits(
        which in any::<Index>(),
        behind in prop::collection::vec(any::<u8>(), 0..200),
        cuts in prop::collection::vec(any::<Index>(), 0..20),
        end in any::<Index>(),
    ) {
        let all = snapshots();
        let snapshot = which.get(&all);
        let bytes = [&snapshot[..], &behind].concat();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        let (extent, taken) = push_all(&bytes, &cuts).expect("a valid snapshot");
        prop_assert!(extent.is_complete() && taken == snapshot.len());
        let end = end.index(snapshot.len());
        cuts.retain(|&cut| cut <= end);
        let (extent, taken) = push_all(&bytes[..end], &cuts).expect("a prefix of a snapshot");
        prop_assert!(!extent.is_complete() && taken == end);
    }

    /// Changes bytes of a header and the section behind it, with or without a valid checksum. The error does not depend on how they
    /// are split, and no arithmetic overflows.
    #[test]
    fn corrupt_headers_give_the_same_error_for_any_split(
        which in any::<Index>(),
        changes in prop::collection::vec((0_usize..96, any::<u8>()), 1..5),
        is_sealed in any::<bool>(),
        cut in any::<Index>(),
    ) {
        let all = snapshots();
        let mut bytes = which.get(&all).clone();
        for (at, value) in changes {
            let at = at.min(bytes.len() - 1);
            bytes[at] = value;
        }
        if is_sealed {
            seal(&mut bytes);
        }
        let describe = |result: Result<(SnapshotExtent, usize), SnapshotError>| match result {
            Ok((extent, taken)) => Ok((extent.is_complete(), taken)),
            Err(error) => Err((error.kind(), error.offset())),
        };
        prop_assert_eq!(describe(push_all(&bytes, &[])), describe(push_all(&bytes, &[cut.index(bytes.len())])));
    }
}

/// Recomputes the checksum of the header.
fn seal(bytes: &mut [u8]) {
    let checksum = xxh3_64_with_seed(&bytes[..56], 0);
    bytes[56..64].copy_from_slice(&checksum.to_le_bytes());
}

#[test]
fn section_lengths_that_overflow_are_refused() {
    let snapshot = filled(small().partitions(2), 100).to_bytes();
    // The length of the snapshot must stay below 2⁶⁴. Two headers precede the first partition's content, and at least the second
    // partition's header and the trailer follow it.
    let largest = u64::MAX - 96 - 32 - 8;
    for (length, is_valid) in [(largest, true), (largest + 1, false), (u64::MAX - 1, false), (u64::MAX, false)] {
        let mut forged = snapshot.clone();
        forged[64 + 16..64 + 24].copy_from_slice(&length.to_le_bytes());
        let mut extent = SnapshotExtent::new();
        let result = extent.push(&forged);
        assert_eq!(result.is_ok(), is_valid, "{length}");
        if let Err(error) = result {
            assert_eq!((error.kind(), error.offset()), (Kind::Shards, 64));
            assert!(error.to_string().contains(&length.to_string()), "{error}");
            let again = extent.push(&[]).expect_err("the error is permanent");
            assert_eq!((again.to_string(), extent.is_complete()), (error.to_string(), false));
        }
    }
}

#[test]
fn bytes_that_are_not_a_snapshot_are_refused_early() {
    let kind = |bytes: &[u8]| SnapshotExtent::new().push(bytes).map_err(|error| error.kind());
    assert_eq!(kind(b"KOEL"), Ok(4));
    assert_eq!(kind(b"KOALA"), Err(Kind::Magic));
    let fixed = CuckooFilter::builder().capacity(100).false_positive_rate(0.01).build().expect("valid parameters").to_bytes();
    let growing = ElasticFilter::builder().false_positive_rate(0.01).build().expect("valid parameters").to_bytes();
    for snapshot in [fixed, growing] {
        let altered = |at: usize, value: u8, is_sealed: bool| {
            let mut bytes = snapshot.clone();
            bytes[at] = value;
            if is_sealed {
                seal(&mut bytes);
            }
            kind(&bytes)
        };
        assert_eq!(altered(8, 3, false), Err(Kind::Version));
        assert_eq!(altered(20, 0xff, false), Err(Kind::HeaderChecksum));
        assert_eq!(altered(10, 9, true), Err(Kind::Parameter));
        assert_eq!(altered(12, 99, true), Err(Kind::Parameter));
        // The contents behind the headers are not checked.
        assert_eq!(altered(snapshot.len() - 1, 0, true), Ok(snapshot.len()));
    }
}
