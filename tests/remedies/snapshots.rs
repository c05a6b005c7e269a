//! Bytes that are no snapshot, or not one that can be read here, or not only one.

use super::*;
use crate::common::forged;
use koel::{CuckooFilter, FilterView, SnapshotError, SnapshotErrorKind as Kinds, go, hash::AnyHasher};
use std::io::{self, Read};

fn filter() -> CuckooFilter {
    let mut filter = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).build().expect("right");
    filter.insert("koel").expect("there is room");
    filter
}

#[track_caller]
fn refused(bytes: &[u8], kind: Kinds, parts: &[&str]) -> String {
    let error = CuckooFilter::from_bytes(bytes).expect_err("it cannot be read");
    assert_eq!(error.kind(), kind, "{error}");
    says(&error, parts)
}

#[test]
fn what_is_no_snapshot_is_replaced_by_what_was_written() {
    refused(b"not a filter", Kinds::Magic, &["do not begin as a koel snapshot does; give the bytes of a snapshot, all of them"]);
    let mut written = Vec::new();
    filter().write_to(&mut written).expect("a vector takes everything");
    assert!(CuckooFilter::from_bytes(&written).expect("a snapshot").contains("koel"));
}

#[test]
fn a_later_version_needs_a_later_release() {
    let bytes = filter().to_bytes();
    let later = forged(&bytes, |bytes| bytes[8] = 2);
    let message = refused(&later, Kinds::Version, &["read it with a release that knows this version"]);
    assert!(message.contains("version 2"), "{message}");
}

/// One of each kind that says so.
#[test]
fn of_corrupt_bytes_another_copy_is_read() {
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
    assert!(CuckooFilter::from_bytes(&copy).expect("the other copy").contains("koel"));
}

#[test]
fn what_follows_is_left_off_or_left_to_others() {
    let one = filter().to_bytes();
    let two = [&one[..], &one].concat();
    let parts = ["give exactly one snapshot, or open it with over_prefix or read_from, which leave the rest"];
    let message = refused(&two, Kinds::TrailingBytes, &parts);
    assert_eq!(number_before(&message, " more bytes follow it"), one.len());
    let end = number_before(&message, ": the snapshot ends here");
    assert_eq!(end, one.len());
    says(&FilterView::over(&two).expect_err("it goes on"), &parts);
    // Exactly one; a prefix; a stream.
    assert!(CuckooFilter::from_bytes(&two[..end]).expect("exactly one").contains("koel"));
    let (view, behind) = FilterView::over_prefix(&two).expect("a prefix");
    assert!(view.contains("koel") && FilterView::over(&two[behind..]).is_ok());
    let mut stream = &two[..];
    for _ in 0..2 {
        assert!(CuckooFilter::read_from(&mut stream).expect("one after the other").contains("koel"));
    }
    assert!(stream.is_empty());
}

#[test]
#[cfg(not(target_family = "wasm"))]
fn a_file_that_goes_on_is_read_as_a_stream() {
    let folder = common::Folder::new("goes-on");
    let (path, one) = (folder.path("two.koel"), filter().to_bytes());
    std::fs::write(&path, [&one[..], &one].concat()).expect("there is room");
    let error = CuckooFilter::load(&path).expect_err("it goes on");
    assert_eq!((error.kind(), error.offset()), (Kinds::TrailingBytes, one.len() as u64));
    says(&error, &["the file goes on after the snapshot's end", "read_from, which leave the rest"]);
    let mut file = std::fs::File::open(&path).expect("it is there");
    for _ in 0..2 {
        assert!(CuckooFilter::read_from(&mut file).expect("one after the other").contains("koel"));
    }
    // What cannot be opened is named.
    let error = CuckooFilter::load(folder.path("missing.koel")).expect_err("it is not there");
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

/// No machine has memory for it, and no snapshot is as long: the stream ends first.
#[test]
fn memory_that_is_not_there_leaves_a_view() {
    let error = SnapshotError::from(CuckooFilter::builder().fingerprint_bits(8).buckets(1 << 55).build().map(drop).map_or_else(
        |error| match error {
            koel::BuildError::OutOfMemory(error) => error,
            other => panic!("{other}"),
        },
        |()| panic!("no machine has as much"),
    ));
    assert_eq!(error.kind(), Kinds::OutOfMemory);
    says(&error, &["read it on a machine with more memory, or query it in place, as a FilterView or ElasticView"]);
    let bytes = filter().to_bytes();
    assert!(FilterView::over(&bytes).expect("a snapshot").contains("koel"));
    assert_eq!(io::Error::from(error).kind(), io::ErrorKind::OutOfMemory);
}

/// What the reader says is passed on; a snapshot that is read again from one that works is there.
#[test]
fn a_reader_that_fails_is_quoted() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::ConnectionReset, "the line is dead"))
        }
    }
    let bytes = filter().to_bytes();
    let error = CuckooFilter::read_from(bytes[..80].chain(Broken)).expect_err("it fails");
    assert_eq!((error.kind(), error.offset(), error.io_kind()), (Kinds::Io, 80, Some(io::ErrorKind::ConnectionReset)));
    says(&error, &["reading failed at byte 80"]);
    says(&std::error::Error::source(&error).expect("what it said"), &["the line is dead"]);
    let error = io::Error::from(error);
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(CuckooFilter::read_from(&bytes[..]).is_ok());
}

/// Go's tables whose slots share bits cannot be repaired: their items go into another filter.
#[test]
fn a_table_that_go_corrupts_is_filled_anew() {
    let file = common::GoFile { buckets: vec![vec![1]; 4], f: 2, victim: (0, 0, 0) }.single();
    let error = go::decode(&file).expect_err("its slots share bits");
    assert_eq!(error.kind(), Kinds::Aliasing);
    says(&error, &["insert the items into a new filter with other parameters"]);
    let builder = CuckooFilter::builder().capacity(4).fingerprint_bits(13).hasher(AnyHasher::MetroHash64).seed(1337);
    let mut other = builder.addressing(koel::Addressing::PowerOfTwo).build().expect("right");
    other.insert("koel").expect("there is room");
    assert!(go::decode(&go::encode(&other).expect("Go could have it")).expect("a file").contains("koel"));
}
