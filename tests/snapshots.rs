//! Snapshots come back as they were, and nothing else comes back as a snapshot.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use crate::common::{HEADER, Kind, SplitMix64, forged, kinds};
use koel::{Addressing, CuckooFilter, FilterView, Prehashed, SnapshotError, SnapshotErrorKind, TableKind};
use std::io::{self, Read};

fn filled(kind: Kind, buckets: u64) -> CuckooFilter {
    let mut filter = kind.filter(buckets);
    let items = filter.slots() / 2;
    for hash in SplitMix64(1).take(items) {
        // Small tables of few fingerprints may refuse one or two.
        let _ = filter.insert(&Prehashed(hash));
    }
    filter
}

/// Both tables, with buckets that end within a byte and with ones that do not.
fn small_snapshots() -> Vec<Vec<u8>> {
    let kind = |table, f, b, addressing| Kind { table, f, b, addressing };
    vec![
        filled(kind(TableKind::Packed, 13, 4, Addressing::AnySize), 6).to_bytes(),
        filled(kind(TableKind::Packed, 4, 4, Addressing::AnySize), 2).to_bytes(),
        filled(kind(TableKind::Packed, 32, 4, Addressing::PowerOfTwo), 4).to_bytes(),
        filled(kind(TableKind::Single, 7, 3, Addressing::AnySize), 6).to_bytes(),
        filled(kind(TableKind::Single, 8, 4, Addressing::PowerOfTwo), 1).to_bytes(),
    ]
}

#[track_caller]
fn refused(bytes: &[u8], kind: SnapshotErrorKind) -> SnapshotError {
    let error = CuckooFilter::from_bytes(bytes).expect_err("these bytes are no snapshot");
    assert_eq!(error.kind(), kind, "{error}");
    let streamed = CuckooFilter::read_from(bytes).expect_err("nor is this stream");
    assert_eq!((streamed.kind(), streamed.offset()), (error.kind(), error.offset()), "{streamed} / {error}");
    error
}

#[test]
fn every_kind_comes_back_as_it_was() {
    for kind in kinds() {
        for buckets in [2, 16] {
            let filter = filled(kind, buckets);
            let bytes = filter.to_bytes();
            assert_eq!(bytes.len(), HEADER + filter.params().table_bytes() + 8);
            assert_eq!(CuckooFilter::from_bytes(&bytes).expect("a snapshot"), filter, "{kind:?}");
            let mut written = Vec::new();
            filter.write_to(&mut written).expect("a vector takes everything");
            assert_eq!(written, bytes);
            let mut reader = &bytes[..];
            assert_eq!(CuckooFilter::read_from(&mut reader).expect("a snapshot"), filter);
            assert!(reader.is_empty());
        }
    }
}

/// Of every size of the last byte's remainder, and full, so that every bit of it counts.
#[test]
fn full_tables_come_back_as_they_were() {
    for kind in kinds() {
        for buckets in if kind.addressing == Addressing::PowerOfTwo { [1, 2, 4] } else { [2, 6, 10] } {
            let mut filter = kind.filter(buckets);
            SplitMix64(2).take(4 * filter.slots()).for_each(|hash| drop(filter.insert(&Prehashed(hash))));
            assert_eq!(CuckooFilter::from_bytes(&filter.to_bytes()).expect("a snapshot"), filter, "{kind:?}");
        }
    }
}

/// Longer than the reader's first step, by a little and by a lot.
#[test]
fn long_snapshots_are_read_from_streams() {
    for buckets in [10_924, 40_000, 300_000] {
        let filter = filled(Kind { table: TableKind::Packed, f: 13, b: 4, addressing: Addressing::AnySize }, buckets);
        let bytes = filter.to_bytes();
        assert_eq!(CuckooFilter::read_from(&bytes[..]).expect("a snapshot"), filter);
        for len in [70_000, bytes.len() - 1] {
            let error = CuckooFilter::read_from(&bytes[..len.min(bytes.len() - 1)]).expect_err("too short");
            assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::Length, len.min(bytes.len() - 1) as u64));
        }
    }
}

#[test]
fn a_filter_that_comes_back_goes_on() {
    let mut filter = filled(Kind { table: TableKind::Packed, f: 13, b: 4, addressing: Addressing::AnySize }, 64);
    let mut back = CuckooFilter::from_bytes(&filter.to_bytes()).expect("a snapshot");
    for filter in [&mut filter, &mut back] {
        filter.insert("koel").expect("there is room");
        SplitMix64(1).take(20).for_each(|hash| assert!(filter.remove(&Prehashed(hash))));
    }
    assert_eq!(filter.to_bytes(), back.to_bytes());
}

#[test]
fn snapshots_follow_each_other_in_a_stream() {
    let snapshots = small_snapshots();
    let stream = snapshots.concat();
    let mut reader = &stream[..];
    for snapshot in &snapshots {
        assert_eq!(CuckooFilter::read_from(&mut reader).expect("a snapshot").to_bytes(), *snapshot);
    }
    assert!(reader.is_empty());
}

/// A reader that gives a byte at a time, and is interrupted between them.
struct Halting<'a>(&'a [u8], bool);

impl Read for Halting<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        if self.1 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = buffer.len().min(1);
        self.0.read(&mut buffer[..len])
    }
}

#[test]
fn a_halting_reader_is_read_to_the_end() {
    for snapshot in small_snapshots() {
        let read = CuckooFilter::read_from(Halting(&snapshot, false)).expect("a snapshot");
        assert_eq!(read.to_bytes(), snapshot);
    }
}

#[test]
fn a_reader_that_fails_says_so() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("the cable is out"))
        }
    }
    let snapshot = &small_snapshots()[0];
    for read in [0, 10, HEADER, HEADER + 10, snapshot.len() - 1] {
        let error = CuckooFilter::read_from((&snapshot[..read]).chain(Broken)).expect_err("the reader failed");
        assert_eq!(error.kind(), SnapshotErrorKind::Io);
        // The first byte that could not be read.
        assert_eq!(error.offset(), read as u64);
        assert!(error.to_string().contains("reading failed"), "{error}");
        let source = std::error::Error::source(&error).expect("the reader's own error");
        assert_eq!(source.to_string(), "the cable is out");
    }
}

#[test]
fn the_header_of_one_does_not_go_with_the_table_of_another() {
    let kind = |seed| CuckooFilter::builder().fingerprint_bits(13).buckets(16).seed(seed).build().expect("right");
    let (mut ours, mut theirs) = (kind(1), kind(2));
    ours.insert("koel").expect("there is room");
    theirs.insert("koel").expect("there is room");
    let mut spliced = ours.to_bytes();
    spliced[HEADER..].copy_from_slice(&theirs.to_bytes()[HEADER..]);
    refused(&spliced, SnapshotErrorKind::BodyChecksum);
}

#[test]
fn a_header_that_lies_is_refused_even_with_the_right_checksum() {
    let put = |at: usize, field: &[u8]| forged(&small_snapshots()[0], |bytes| bytes[at..at + field.len()].copy_from_slice(field));
    let parameter = SnapshotErrorKind::Parameter;
    for (at, field, part) in [
        (10, &[4][..], "table kind 4"),
        (11, &[3], "4 to 32"),
        (11, &[33], "4 to 32"),
        (11, &[14], "table of 36 bytes"),
        (12, &[3], "packed table takes 4"),
        (13, &[2], "addressing 2"),
        (13, &[1], "powers of two"),
        (24, &7u64.to_le_bytes(), "even number"),
        (24, &0u64.to_le_bytes(), "even number"),
        (24, &8u64.to_le_bytes(), "table of 36 bytes"),
        (24, &u64::MAX.to_le_bytes(), "buckets"),
        (24, &(1u64 << 63).to_le_bytes(), "buckets"),
        (32, &25u64.to_le_bytes(), "25 items in 24 slots"),
        (32, &u64::MAX.to_le_bytes(), "items in 24 slots"),
        (40, &37u64.to_le_bytes(), "table of 37 bytes"),
        (40, &u64::MAX.to_le_bytes(), "table of"),
        (48, &[25], "12 items in 24 slots, and 25 with further copies"),
        (55, &[0x80], "items in 24 slots"),
    ] {
        let error = refused(&put(at, field), parameter);
        assert!(error.to_string().contains(part), "{error}");
    }
    let error = refused(&put(10, &[3]), SnapshotErrorKind::OtherType);
    assert!(error.to_string().ends_with("read it with ElasticFilter or ElasticView"), "{error}");
    let error = refused(&put(8, &2u16.to_le_bytes()), SnapshotErrorKind::Version);
    assert!(error.to_string().contains("version 2"), "{error}");
    let error = refused(&put(14, &4u16.to_le_bytes()), SnapshotErrorKind::Hasher);
    assert!(error.to_string().contains("0x0004"), "{error}");
    for items in [0u64, 11, 13, 24] {
        let error = refused(&put(32, &items.to_le_bytes()), SnapshotErrorKind::Count);
        assert!(error.to_string().contains("holds 12 items"), "{error}");
    }
}

#[test]
fn a_view_that_lies_about_its_items_does_not_become_a_filter() {
    let snapshot = &small_snapshots()[0];
    let truth = FilterView::over(snapshot).expect("a snapshot");
    for items in [0u64, 11, 13, 23] {
        let lying = forged(snapshot, |bytes| bytes[32..40].copy_from_slice(&items.to_le_bytes()));
        let view = FilterView::over(&lying).expect("its header is right");
        assert_eq!((view.params(), view.len() as u64), (truth.params(), items));
        let error = view.to_filter().expect_err("it lies");
        assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::Count, 32), "{error}");
    }
}

/// A header that promises a table of many gigabytes must not make the reader believe it before the bytes come.
#[test]
#[cfg(target_pointer_width = "64")]
fn memory_is_not_taken_on_a_headers_word() {
    let header = forged(&small_snapshots()[0], |bytes| {
        let buckets = 1u64 << 50;
        bytes[24..32].copy_from_slice(&buckets.to_le_bytes());
        bytes[40..48].copy_from_slice(&(buckets * 6).to_le_bytes());
    });
    let error = refused(&header, SnapshotErrorKind::Length);
    assert!(error.to_string().contains("there are 108, and there should be 6755399441055816"), "{error}");
}

#[test]
fn a_table_that_no_filter_writes_is_refused_even_with_the_right_checksum() {
    let packed = &small_snapshots()[0];
    for codeword in 3876..4096u16 {
        let bytes = forged(packed, |bytes| {
            bytes[HEADER] = codeword as u8;
            bytes[HEADER + 1] = bytes[HEADER + 1] & 0xf0 | (codeword >> 8) as u8;
        });
        let error = refused(&bytes, SnapshotErrorKind::Table);
        assert!(error.to_string().contains(&format!("bucket 0 has the codeword {codeword}")), "{error}");
    }
    // An empty bucket whose first high part is not the smallest.
    let empty =
        CuckooFilter::builder().table(TableKind::Packed).fingerprint_bits(13).buckets(2).build().expect("right").to_bytes();
    let error = refused(&forged(&empty, |bytes| bytes[HEADER + 1] |= 0x10), SnapshotErrorKind::Table);
    assert!(error.to_string().contains("bucket 0 are not in order"), "{error}");
    // The third bucket of 48 bits.
    let error = refused(&forged(packed, |bytes| bytes[HEADER + 12..HEADER + 14].fill(0xff)), SnapshotErrorKind::Table);
    assert_eq!(error.offset(), HEADER as u64 + 12);
    // 6 · 3 · 7 = 126 bits: two are left over in the last byte.
    let single = &small_snapshots()[3];
    let last = single.len() - 9;
    let error = refused(&forged(single, |bytes| bytes[last] |= 0x40), SnapshotErrorKind::Table);
    assert_eq!(error.offset(), last as u64);
    // A slot emptied behind the header's back.
    let emptied = forged(single, |bytes| bytes[HEADER..last].fill(0));
    refused(&emptied, SnapshotErrorKind::Count);
}

#[test]
fn other_bytes_are_no_snapshot() {
    for bytes in [&b"not a filter"[..], b"KOEK", &[0; 1000], b"\x7fELF", &[0xff; 64]] {
        let error = refused(bytes, SnapshotErrorKind::Magic);
        assert_eq!(error.offset(), 0);
    }
}
