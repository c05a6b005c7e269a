//! Bytes that are not a snapshot, are more than one, or cannot be read here.

use super::*;
use crate::common::forged;
use koel::{CuckooFilter, FilterView, SnapshotError, SnapshotErrorKind as Kinds, go, hash::AnyHasher};
use std::io::{self, Read};

fn filter() -> CuckooFilter {
    let mut filter = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).build().expect("valid parameters");
    filter.insert("koel").expect("there is room");
    filter
}

#[track_caller]
fn refused(bytes: &[u8], kind: Kinds, parts: &[&str]) -> String {
    let error = CuckooFilter::from_bytes(bytes).expect_err("the bytes are not a valid snapshot");
    assert_eq!(error.kind(), kind, "{error}");
    says(&error, parts)
}

#[test]
fn bytes_that_are_not_a_snapshot_are_replaced_by_a_snapshot() {
    refused(b"not a filter", Kinds::Magic, &["do not begin as a koel snapshot does; give the bytes of a snapshot, all of them"]);
    let mut written = Vec::new();
    filter().write_to(&mut written).expect("writing to a vector succeeds");
    assert!(CuckooFilter::from_bytes(&written).expect("a valid snapshot").contains("koel"));
}

#[test]
fn a_later_version_needs_a_later_release() {
    let bytes = filter().to_bytes();
    let later = forged(&bytes, |bytes| bytes[8] = 2);
    let message = refused(&later, Kinds::Version, &["read it with a release that knows this version"]);
    assert!(message.contains("version 2"), "{message}");
}

/// Covers each kind of error whose remedy is another copy.
#[test]
fn a_corrupt_snapshot_is_replaced_by_another_copy() {
    let copy = filter().to_bytes();
    let last = copy.len() - 1;
    let changed = |at: usize| {
        let mut bytes = copy.clone();
        bytes[at] ^= 1;
        bytes
    };
    for (corrupt, kind) in [
        (copy[..20].to_vec(), Kinds::Length),
        (copy[..last].to_vec(), Kinds::Length),
        (changed(20), Kinds::HeaderChecksum),
        (changed(last), Kinds::BodyChecksum),
        (changed(70), Kinds::BodyChecksum),
        (forged(&copy, |bytes| bytes[11] = 77), Kinds::Parameter),
        (forged(&copy, |bytes| bytes[64..66].fill(0xff)), Kinds::Table),
        (forged(&copy, |bytes| bytes[32] = 2), Kinds::Count),
    ] {
        refused(&corrupt, kind, &["the snapshot is corrupt, use another copy"]);
    }
    assert!(CuckooFilter::from_bytes(&copy).expect("the other copy is valid").contains("koel"));
}

#[test]
fn bytes_behind_a_snapshot_are_cut_off_or_left() {
    let one = filter().to_bytes();
    let two = [&one[..], &one].concat();
    let parts = ["give exactly one snapshot, or open it with over_prefix or read_from, which leave the rest"];
    let message = refused(&two, Kinds::TrailingBytes, &parts);
    assert_eq!(number_before(&message, " more bytes follow it"), one.len());
    let end = number_before(&message, ": the snapshot ends here");
    assert_eq!(end, one.len());
    says(&FilterView::over(&two).expect_err("more bytes follow"), &parts);
    // The three remedies: exactly one snapshot, a prefix, and a stream.
    assert!(CuckooFilter::from_bytes(&two[..end]).expect("exactly one snapshot").contains("koel"));
    let (view, behind) = FilterView::over_prefix(&two).expect("a valid prefix");
    assert!(view.contains("koel") && FilterView::over(&two[behind..]).is_ok());
    let mut stream = &two[..];
    for _ in 0..2 {
        assert!(CuckooFilter::read_from(&mut stream).expect("the stream has two snapshots").contains("koel"));
    }
    assert!(stream.is_empty());
}

#[test]
#[cfg(not(target_family = "wasm"))]
fn a_file_with_more_than_a_snapshot_is_read_as_a_stream() {
    let folder = common::Folder::new("goes-on");
    let (path, one) = (folder.path("two.koel"), filter().to_bytes());
    std::fs::write(&path, [&one[..], &one].concat()).expect("there is room");
    let error = CuckooFilter::load(&path).expect_err("more bytes follow");
    assert_eq!((error.kind(), error.offset()), (Kinds::TrailingBytes, one.len() as u64));
    says(&error, &["the file goes on after the snapshot's end", "read_from, which leave the rest"]);
    let mut file = std::fs::File::open(&path).expect("the file exists");
    for _ in 0..2 {
        assert!(CuckooFilter::read_from(&mut file).expect("the stream has two snapshots").contains("koel"));
    }
    // The error names a file that cannot be opened.
    let error = CuckooFilter::load(folder.path("missing.koel")).expect_err("the file does not exist");
    says(&error, &["missing.koel: cannot be opened: "]);
    assert_eq!(error.io_kind(), Some(io::ErrorKind::NotFound));
    #[cfg(target_os = "linux")]
    says(&error, &["missing.koel: cannot be opened: No such file or directory (os error 2)"]);
    let error = io::Error::from(error);
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    says(&error, &["missing.koel: cannot be opened: "]);
    filter().save(folder.path("missing.koel")).expect("there is room");
    assert!(CuckooFilter::load(folder.path("missing.koel")).is_ok());
}

/// A real snapshot of this length does not exist, so the error is converted from that of a filter too large for any machine.
#[test]
fn a_snapshot_too_large_for_memory_is_queried_as_a_view() {
    let error = SnapshotError::from(CuckooFilter::builder().fingerprint_bits(8).buckets(1 << 55).build().map(drop).map_or_else(
        |error| match error {
            koel::BuildError::OutOfMemory(error) => error,
            other => panic!("{other}"),
        },
        |()| panic!("no machine has so much memory"),
    ));
    assert_eq!(error.kind(), Kinds::OutOfMemory);
    says(&error, &["read it on a machine with more memory, or query it in place, as a FilterView or ElasticView"]);
    let bytes = filter().to_bytes();
    assert!(FilterView::over(&bytes).expect("a valid snapshot").contains("koel"));
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::OutOfMemory);
}

/// The error of a reader is the source of the snapshot's error. Reading from a working reader succeeds.
#[test]
fn the_error_of_a_failing_reader_is_kept() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::ConnectionReset, "the line is dead"))
        }
    }
    let bytes = filter().to_bytes();
    let error = CuckooFilter::read_from(bytes[..80].chain(Broken)).expect_err("the reader fails");
    assert_eq!((error.kind(), error.offset(), error.io_kind()), (Kinds::Io, 80, Some(io::ErrorKind::ConnectionReset)));
    says(&error, &["reading failed at byte 80"]);
    says(&std::error::Error::source(&error).expect("the reader's error"), &["the line is dead"]);
    let error = io::Error::from(error);
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(CuckooFilter::read_from(&bytes[..]).is_ok());
}

/// Go's tables whose slots share bits cannot be repaired, so their items are inserted into another filter.
#[test]
fn a_table_that_go_corrupts_is_rebuilt() {
    let file = common::GoFile { buckets: vec![vec![1]; 4], f: 2, victim: (0, 0, 0) }.single();
    let error = go::decode(&file).expect_err("the slots share bits");
    assert_eq!(error.kind(), Kinds::Aliasing);
    says(&error, &["insert the items into a new filter with other parameters"]);
    let builder = CuckooFilter::builder().capacity(4).fingerprint_bits(13).hasher(AnyHasher::MetroHash64).seed(1337);
    let mut other = builder.addressing(koel::Addressing::PowerOfTwo).build().expect("valid parameters");
    other.insert("koel").expect("there is room");
    assert!(go::decode(&go::encode(&other).expect("Go can read this filter")).expect("a valid file").contains("koel"));
}
