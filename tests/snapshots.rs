//! Snapshots round-trip, and invalid bytes are refused.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use crate::common::{HEADER, Kind, SplitMix64, forged, kinds, same_bits};
use koel::{Addressing, CuckooFilter, FilterView, Prehashed, SnapshotError, SnapshotErrorKind, TableKind};
use std::io::{self, Read};

fn filled(kind: Kind, buckets: u64) -> CuckooFilter {
    let mut filter = kind.filter(buckets);
    let items = filter.slots() / 2;
    for hash in SplitMix64(1).take(items) {
        // Small tables with short fingerprints may refuse some items.
        let _ = filter.insert(&Prehashed(hash));
    }
    filter
}

/// Returns snapshots of both tables, with buckets that end within a byte or at its end.
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
fn assert_refused(bytes: &[u8], kind: SnapshotErrorKind) -> SnapshotError {
    let error = CuckooFilter::from_bytes(bytes).expect_err("invalid snapshot");
    assert_eq!(error.kind(), kind, "{error}");
    let streamed = CuckooFilter::read_from(bytes).expect_err("invalid snapshot");
    assert_eq!((streamed.kind(), streamed.offset()), (error.kind(), error.offset()), "{streamed} / {error}");
    error
}

#[test]
fn all_kinds_round_trip() {
    for kind in kinds() {
        for buckets in [2, 16] {
            let filter = filled(kind, buckets);
            let bytes = filter.to_bytes();
            assert_eq!(bytes.len(), HEADER + filter.params().table_bytes() + 8);
            assert!(same_bits(&CuckooFilter::from_bytes(&bytes).expect("valid snapshot"), &filter), "{kind:?}");
            let mut written = Vec::new();
            filter.write_to(&mut written).expect("a vector accepts everything");
            assert_eq!(written, bytes);
            let mut reader = &bytes[..];
            assert!(same_bits(&CuckooFilter::read_from(&mut reader).expect("valid snapshot"), &filter));
            assert!(reader.is_empty());
        }
    }
}

/// Between them, the tables use every number of bits of the last byte, and they are full, so that these bits matter.
#[test]
fn full_tables_round_trip() {
    for kind in kinds() {
        for buckets in if kind.addressing == Addressing::PowerOfTwo { [1, 2, 4] } else { [2, 6, 10] } {
            let mut filter = kind.filter(buckets);
            SplitMix64(2).take(4 * filter.slots()).for_each(|hash| drop(filter.insert(&Prehashed(hash))));
            assert!(same_bits(&CuckooFilter::from_bytes(&filter.to_bytes()).expect("valid snapshot"), &filter), "{kind:?}");
        }
    }
}

/// The lengths exceed the first step of the reader, by a little and by far.
#[test]
fn long_snapshots_are_read_from_streams() {
    for buckets in [10_924, 40_000, 300_000] {
        let filter = filled(Kind { table: TableKind::Packed, f: 13, b: 4, addressing: Addressing::AnySize }, buckets);
        let bytes = filter.to_bytes();
        assert!(same_bits(&CuckooFilter::read_from(&bytes[..]).expect("valid snapshot"), &filter));
        for len in [70_000, bytes.len() - 1] {
            let error = CuckooFilter::read_from(&bytes[..len.min(bytes.len() - 1)]).expect_err("too short");
            assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::Length, len.min(bytes.len() - 1) as u64));
        }
    }
}

#[test]
fn a_filter_read_back_can_be_changed() {
    let mut filter = filled(Kind { table: TableKind::Packed, f: 13, b: 4, addressing: Addressing::AnySize }, 64);
    let mut reread = CuckooFilter::from_bytes(&filter.to_bytes()).expect("valid snapshot");
    for filter in [&mut filter, &mut reread] {
        filter.insert("koel").expect("there is room");
        SplitMix64(1).take(20).for_each(|hash| assert!(filter.remove(&Prehashed(hash))));
    }
    assert_eq!(filter.to_bytes(), reread.to_bytes());
}

#[test]
fn a_stream_can_have_several_snapshots() {
    let snapshots = small_snapshots();
    let stream = snapshots.concat();
    let mut reader = &stream[..];
    for snapshot in &snapshots {
        assert_eq!(CuckooFilter::read_from(&mut reader).expect("valid snapshot").to_bytes(), *snapshot);
    }
    assert!(reader.is_empty());
}

/// A reader that returns single bytes, and is interrupted before each.
struct Interrupted<'a>(&'a [u8], bool);

impl Read for Interrupted<'_> {
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
fn interrupted_readers_are_read_to_the_end() {
    for snapshot in small_snapshots() {
        let read = CuckooFilter::read_from(Interrupted(&snapshot, false)).expect("valid snapshot");
        assert_eq!(read.to_bytes(), snapshot);
    }
}

#[test]
fn errors_of_the_reader_are_reported() {
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
        // The offset is that of the first byte that could not be read.
        assert_eq!(error.offset(), read as u64);
        assert!(error.to_string().contains("reading failed"), "{error}");
        let source = std::error::Error::source(&error).expect("the reader's own error");
        assert_eq!(source.to_string(), "the cable is out");
    }
}

#[test]
fn the_header_of_one_snapshot_does_not_match_the_table_of_another() {
    let empty = |seed| CuckooFilter::builder().fingerprint_bits(13).buckets(16).seed(seed).build().expect("valid parameters");
    let (mut ours, mut theirs) = (empty(1), empty(2));
    ours.insert("koel").expect("there is room");
    theirs.insert("koel").expect("there is room");
    let mut spliced = ours.to_bytes();
    spliced[HEADER..].copy_from_slice(&theirs.to_bytes()[HEADER..]);
    assert_refused(&spliced, SnapshotErrorKind::BodyChecksum);
}

#[test]
fn invalid_headers_with_valid_checksums_are_refused() {
    let put = |at: usize, field: &[u8]| forged(&small_snapshots()[0], |bytes| bytes[at..at + field.len()].copy_from_slice(field));
    let parameter = SnapshotErrorKind::Parameter;
    for (at, field, part) in [
        (10, &[4][..], "table kind 4"),
        (11, &[3], "4 to 32"),
        (11, &[33], "4 to 32"),
        (12, &[3], "packed table takes 4"),
        (13, &[2], "addressing 2"),
        (13, &[1], "powers of two"),
        (24, &7u64.to_le_bytes(), "even number"),
        (24, &0u64.to_le_bytes(), "even number"),
        (24, &u64::MAX.to_le_bytes(), "buckets"),
        (24, &(1u64 << 63).to_le_bytes(), "buckets"),
        (32, &25u64.to_le_bytes(), "25 items in 24 slots"),
        (32, &u64::MAX.to_le_bytes(), "items in 24 slots"),
        (40, &9u64.to_le_bytes(), "12 items in 24 slots, and 9 bytes of extra copies"),
        (40, &300u64.to_le_bytes(), "and 300 bytes of extra copies"),
        (40, &u64::MAX.to_le_bytes(), "items in 24 slots"),
        (48, &[25], "a reserved field is 25"),
        (55, &[0x80], "a reserved field is"),
    ] {
        let error = assert_refused(&put(at, field), parameter);
        assert!(error.to_string().contains(part), "{error}");
    }
    for (at, field) in [(11, 14), (24, 8), (40, 11)] {
        assert_refused(&put(at, &[field]), SnapshotErrorKind::Length);
    }
    let error = assert_refused(&put(10, &[2]), SnapshotErrorKind::OtherType);
    assert!(error.to_string().ends_with("read it with ElasticFilter or ElasticView"), "{error}");
    let error = assert_refused(&put(8, &3u16.to_le_bytes()), SnapshotErrorKind::Version);
    assert!(error.to_string().contains("version 3"), "{error}");
    let error = assert_refused(&put(8, &1u16.to_le_bytes()), SnapshotErrorKind::Version);
    assert!(error.to_string().contains("development version"), "{error}");
    assert!(error.to_string().ends_with("; write it again with this release"), "{error}");
    let error = assert_refused(&put(14, &4u16.to_le_bytes()), SnapshotErrorKind::Hasher);
    assert!(error.to_string().contains("0x0004"), "{error}");
    for items in [0u64, 11, 13, 24] {
        let error = assert_refused(&put(32, &items.to_le_bytes()), SnapshotErrorKind::Count);
        assert!(error.to_string().contains("holds 12 items"), "{error}");
    }
}

#[test]
fn a_view_with_a_wrong_item_count_is_not_converted() {
    let snapshot = &small_snapshots()[0];
    let original = FilterView::over(snapshot).expect("valid snapshot");
    for items in [0u64, 11, 13, 23] {
        let altered = forged(snapshot, |bytes| bytes[32..40].copy_from_slice(&items.to_le_bytes()));
        let view = FilterView::over(&altered).expect("opening a view does not count items");
        assert_eq!((view.params(), view.len() as u64), (original.params(), items));
        let error = view.to_filter().expect_err("the item count is wrong");
        assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::Count, 32), "{error}");
    }
}

/// A reader must not allocate the huge table that a header claims before the bytes arrive.
#[test]
#[cfg(target_pointer_width = "64")]
fn a_claimed_length_is_not_allocated_in_advance() {
    let header = forged(&small_snapshots()[0], |bytes| {
        let buckets = 1u64 << 50;
        bytes[24..32].copy_from_slice(&buckets.to_le_bytes());
    });
    let error = assert_refused(&header, SnapshotErrorKind::Length);
    assert!(error.to_string().contains("there are 108, and there should be at least 6755399441055816"), "{error}");
}

#[test]
fn invalid_tables_with_valid_checksums_are_refused() {
    let packed = &small_snapshots()[0];
    for codeword in 3876..4096u16 {
        let bytes = forged(packed, |bytes| {
            bytes[HEADER] = codeword as u8;
            bytes[HEADER + 1] = bytes[HEADER + 1] & 0xf0 | (codeword >> 8) as u8;
        });
        let error = assert_refused(&bytes, SnapshotErrorKind::Table);
        assert!(error.to_string().contains(&format!("bucket 0 has the codeword {codeword}")), "{error}");
    }
    // The bucket is empty except for a high part of its first slot, so its slots are not in order.
    let empty = CuckooFilter::builder()
        .table(TableKind::Packed)
        .fingerprint_bits(13)
        .buckets(2)
        .build()
        .expect("valid parameters")
        .to_bytes();
    let error = assert_refused(&forged(&empty, |bytes| bytes[HEADER + 1] |= 0x10), SnapshotErrorKind::Table);
    assert!(error.to_string().contains("bucket 0 are not in order"), "{error}");
    // The third bucket, of 48 bits each.
    let error = assert_refused(&forged(packed, |bytes| bytes[HEADER + 12..HEADER + 14].fill(0xff)), SnapshotErrorKind::Table);
    assert_eq!(error.offset(), HEADER as u64 + 12);
    // The table has 6 · 3 · 7 = 126 bits, so two bits of its last byte are unused.
    let single = &small_snapshots()[3];
    let last = single.len() - 9;
    let error = assert_refused(&forged(single, |bytes| bytes[last] |= 0x40), SnapshotErrorKind::Table);
    assert_eq!(error.offset(), last as u64);
    // All slots are emptied, but the header still states the old item count.
    let emptied = forged(single, |bytes| bytes[HEADER..last].fill(0));
    assert_refused(&emptied, SnapshotErrorKind::Count);
}

#[test]
fn other_bytes_are_refused() {
    for bytes in [&b"not a filter"[..], b"KOEK", &[0; 1000], b"\x7fELF", &[0xff; 64]] {
        let error = assert_refused(bytes, SnapshotErrorKind::Magic);
        assert_eq!(error.offset(), 0);
    }
}

/// A remedy of the caller's is shown as it is, and an empty one not at all.
#[test]
fn remedies_are_shown_verbatim() {
    for remedy in ["choose a file", "set {\"path\": \"x.koel\"} in app.json", "close }", "{}", ""] {
        let error = CuckooFilter::from_bytes(b"PK").expect_err("no snapshot").with_remedy(remedy).to_string();
        let is_shown = if remedy.is_empty() { !error.contains("; ") } else { error.ends_with(&format!("; {remedy}")) };
        assert!(is_shown, "{error}");
    }
}
