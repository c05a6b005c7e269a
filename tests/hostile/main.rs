//! For any bytes, every reader gives the same result, names the problem and its offset, and allocates no more memory than the input
//! justifies, as counted by the allocator. `just reader` compares which bytes are refused, and as what, with tests/reader.py.

#![cfg(all(feature = "metrohash", target_endian = "little"))]
#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]

#[path = "../common/mod.rs"]
mod common;
mod counts;
mod directories;
#[allow(dead_code, reason = "the fuzz targets use all of it")]
#[path = "../../fuzz/src/formulas.rs"]
mod formulas;
#[path = "../common/heap.rs"]
mod heap;
use common::{same_bits, split_mix};

use common::{HEADER, Kind, forged};
use formulas::{Formulas, number};
use heap::{Counting, peak};
use koel::{
    Addressing, CuckooFilter, FilterView, SnapshotError, SnapshotErrorKind as Kinds, TableKind,
    hash::{AnyHasher, HasherId},
};
use std::{
    fs,
    io::{self, Read, Write},
    ops::Range,
    path::Path,
};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

type Filter = CuckooFilter<AnyHasher>;

/// Bytes that a reader may allocate in addition to the filter.
const SOME: usize = 64 << 10;

/// Returns the golden files, which cover both tables, both addressings and two hashers, and a small filter with the third hasher.
/// The golden file of that hasher is left out: flipping each of its bits would take a minute.
fn snapshots() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let files = fs::read_dir(folder).expect("the folder exists").map(|file| file.expect("the folder can be read").path());
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|kind| kind == "koel")).collect();
    files.sort();
    assert!(files.len() > 20, "golden files are missing");
    let mut files: Vec<_> = files.iter().map(|file| fs::read(file).expect("the file can be read")).collect();
    files.retain(|bytes| u16::from_le_bytes([bytes[14], bytes[15]]) != HasherId::REDIS_BLOOM.number());
    if let Some(hasher) = AnyHasher::from_id(HasherId::REDIS_BLOOM) {
        let builder = CuckooFilter::builder().table(TableKind::Single).fingerprint_bits(8).hasher(hasher);
        let mut filter = builder.addressing(Addressing::PowerOfTwo).buckets(16).build().expect("valid parameters");
        (0..40_u32).for_each(|item| filter.insert(&item).expect("there is room"));
        files.push(filter.to_bytes());
    }
    files
}

/// A reader that returns up to `most` bytes at a time, and is interrupted before each piece.
struct Pieces<'a> {
    bytes: &'a [u8],
    most: usize,
    is_interrupted: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_interrupted ^= true;
        if self.is_interrupted {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = buffer.len().min(self.most);
        self.bytes.read(&mut buffer[..len])
    }
}

/// Runs `run` and asserts that it allocated at most `most` bytes.
#[track_caller]
fn within<T>(most: usize, run: impl FnOnce() -> T) -> T {
    let (answer, taken) = peak(run);
    assert!(taken <= most, "{taken} bytes of memory taken, {most} allowed");
    answer
}

fn described<T>(answer: &Result<T, SnapshotError>) -> Option<(Kinds, u64, String)> {
    answer.as_ref().err().map(|error| (error.kind(), error.offset(), error.to_string()))
}

/// Reads the bytes with every reader, and as a view at each of these addresses modulo 8. Asserts that all results agree.
#[track_caller]
fn read(bytes: &[u8], addresses: Range<usize>) -> Result<Filter, SnapshotError> {
    let most = bytes.len() + SOME;
    let read = within(most, || Filter::from_bytes_with(bytes, AnyHasher::from_id));
    // A stream may continue behind the snapshot.
    let is_too_long = read.as_ref().is_err_and(|error| error.kind() == Kinds::TrailingBytes);
    for piece in [usize::MAX, 1, 13] {
        let reader = Pieces { bytes, most: piece, is_interrupted: false };
        let streamed = within(most, || Filter::read_from_with(reader, AnyHasher::from_id));
        assert!(is_too_long || described(&streamed) == described(&read), "{streamed:?} / {read:?}");
    }
    let mut moved = vec![0; 16 + bytes.len()];
    let aligned = moved.as_ptr().align_offset(8);
    for address in addresses {
        let place = aligned + address;
        moved[place..place + bytes.len()].copy_from_slice(bytes);
        let moved = &moved[place..place + bytes.len()];
        let verified = within(0, || FilterView::over_with(moved, AnyHasher::from_id).and_then(|view| view.verify()));
        assert_eq!(described(&verified), described(&read), "at address {address}");
    }
    match &read {
        Ok(filter) => assert_eq!(filter.to_bytes(), bytes),
        Err(error) => assert_precise(error, bytes),
    }
    read
}

/// Asserts that the message names the invalid value and a remedy, and that the offset is the value's.
#[track_caller]
fn assert_precise(error: &SnapshotError, bytes: &[u8]) {
    let (text, offset) = (error.to_string(), error.offset() as usize);
    assert!(offset <= bytes.len() && text.starts_with(&format!("at byte {offset}: ")), "{text}");
    assert!(text.contains("; "), "no remedy: {text}");
    let value = match (error.kind(), offset) {
        (Kinds::Magic, 0) => "begin".into(),
        (Kinds::Version, 8) => format!("version {}", u16::from_le_bytes([bytes[8], bytes[9]])),
        (Kinds::Parameter, 10..14) => bytes[offset].to_string(),
        (Kinds::Parameter, 24 | 32 | 48) => number(bytes, offset).to_string(),
        (Kinds::Hasher, 14) => format!("{:#06x}", u16::from_le_bytes([bytes[14], bytes[15]])),
        (Kinds::Length, _) => bytes.len().to_string(),
        (Kinds::TrailingBytes, _) => format!("{} more bytes", bytes.len() - offset),
        (Kinds::HeaderChecksum, 56) => format!("{:#018x}", number(bytes, 56)),
        (Kinds::BodyChecksum, _) if offset == bytes.len() - 8 => format!("{:#018x}", number(bytes, offset)),
        (Kinds::Table, HEADER..) if offset < bytes.len() - 8 => "bucket".into(),
        (Kinds::Count, 32) => format!("the header says {}", number(bytes, 32)),
        (Kinds::Copies, HEADER..) if offset < bytes.len() - 8 => "copies".into(),
        _ => panic!("the offset does not fit the kind of error: {text}"),
    };
    assert!(text.contains(&value), "{value} is not in: {text}");
}

#[track_caller]
fn refused(bytes: &[u8], addresses: Range<usize>, kind: Kinds) -> SnapshotError {
    let error = read(bytes, addresses).expect_err("the bytes are not a snapshot");
    assert_eq!(error.kind(), kind, "{error}");
    error
}

#[test]
fn every_truncation_is_refused() {
    for snapshot in snapshots() {
        read(&snapshot, 0..8).expect("the complete snapshot is valid");
        for len in 0..snapshot.len() {
            let error = refused(&snapshot[..len], 0..8, Kinds::Length);
            assert_eq!(error.offset(), len as u64);
            assert!(error.to_string().contains("end too early"), "{error}");
        }
    }
}

#[test]
fn bytes_after_the_end_are_refused() {
    for snapshot in snapshots() {
        for (more, byte) in [(1, 0), (7, 0xff), (8, 0), (64, 0x4b), (1000, 0)] {
            let longer = [&snapshot[..], &vec![byte; more]].concat();
            let error = refused(&longer, 0..8, Kinds::TrailingBytes);
            assert_eq!(error.offset(), snapshot.len() as u64);
            let mut rest = &longer[..];
            Filter::read_from_with(&mut rest, AnyHasher::from_id).expect("bytes may follow in a stream");
            assert_eq!(rest.len(), more);
        }
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    for snapshot in snapshots() {
        for bit in 0..8 * snapshot.len() {
            let mut bytes = snapshot.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let kind = match bit / 8 {
                0..8 => Kinds::Magic,
                8..10 => Kinds::Version,
                10..HEADER => Kinds::HeaderChecksum,
                _ => Kinds::BodyChecksum,
            };
            refused(&bytes, bit % 8..bit % 8 + 1, kind);
        }
    }
}

/// Changes two bytes of the header. Some results are valid snapshots of other filters, for example with a different seed.
#[test]
fn two_forged_header_bytes_are_refused_despite_valid_checksums() {
    let interesting = [0, 1, 0x7f, 0x80, 0xff];
    let (mut accepted, mut tried) = (0, 0);
    for snapshot in snapshots() {
        for at in 0..HEADER - 9 {
            for (first, second) in interesting.iter().flat_map(|&first| interesting.map(|second| (first, second))) {
                let bytes = forged(&snapshot, |bytes| bytes[at..at + 2].copy_from_slice(&[first, second]));
                accepted += usize::from(read(&bytes, at % 8..at % 8 + 1).is_ok());
                tried += 1;
            }
        }
    }
    // Accepted are those with another seed, and those that did not change.
    assert!(accepted > tried / 10 && accepted < tried / 4, "{accepted} of {tried}");
}

/// Forges the bucket count, the item count, the length of the extra copies and the reserved field with extreme numbers.
#[test]
#[cfg(target_pointer_width = "64")]
fn forged_numbers_are_refused_despite_valid_checksums() {
    for snapshot in snapshots() {
        let [m, items, len, reserved] = [24, 32, 40, 48].map(|at| number(&snapshot, at));
        let edges = |valid: u64| {
            let powers = [1u64 << 31, 1 << 32, 1 << 50, 1 << 61, 1 << 62, 1 << 63];
            let around = powers.into_iter().flat_map(|power| [power - 1, power, power + 1, power + valid]);
            let mut edges: Vec<u64> = around.chain([0, 1, 2, valid, valid + 1, valid + 2, u64::MAX - 7, u64::MAX]).collect();
            edges.push(valid.saturating_sub(1));
            edges
        };
        for buckets in edges(m) {
            forge_fields(&snapshot, [buckets, items, len, reserved]);
        }
        edges(items).into_iter().for_each(|items| forge_fields(&snapshot, [m, items, len, reserved]));
        edges(len).into_iter().for_each(|len| forge_fields(&snapshot, [m, items, len, reserved]));
        edges(reserved).into_iter().for_each(|reserved| forge_fields(&snapshot, [m, items, len, reserved]));
    }
}

#[track_caller]
#[cfg(target_pointer_width = "64")]
fn forge_fields(snapshot: &[u8], fields: [u64; 4]) {
    let bytes = forged(snapshot, |bytes| {
        for (at, field) in [24, 32, 40, 48].into_iter().zip(fields) {
            bytes[at..at + 8].copy_from_slice(&field.to_le_bytes());
        }
    });
    let is_unchanged = bytes == snapshot;
    assert_eq!(read(&bytes, 0..1).is_ok(), is_unchanged);
}

/// Forges the item count and bytes of the table. Some tables are still valid.
#[test]
fn forged_tables_are_refused_despite_valid_checksums() {
    for snapshot in snapshots() {
        let formulas = Formulas::of_header(&snapshot);
        let valid = number(&snapshot, 32);
        for items in (0..=formulas.m * u64::from(formulas.b)).filter(|&items| items != valid) {
            let bytes = forged(&snapshot, |bytes| bytes[32..40].copy_from_slice(&items.to_le_bytes()));
            refused(&bytes, 0..1, Kinds::Count);
        }
        for at in HEADER..snapshot.len() - 8 {
            let flipped = (0..8).map(|bit| snapshot[at] ^ 1 << bit);
            for byte in flipped.chain([0, 1, 0x7f, 0x80, 0xff, !snapshot[at]]) {
                let bytes = forged(&snapshot, |bytes| bytes[at] = byte);
                assert_eq!(read(&bytes, at % 8..at % 8 + 1).is_ok(), formulas.contents(&bytes).is_some());
            }
        }
        for bucket in (0..formulas.m).filter(|_| formulas.is_packed) {
            for codeword in [3876, 3877, 4000, 4095] {
                // A packed bucket begins at a whole nibble.
                let bit = bucket * u64::from(formulas.bucket_bits());
                let at = HEADER + (bit / 8) as usize;
                let bytes = forged(&snapshot, |bytes| {
                    let (mask, codeword) = (0xfff << (bit % 8), codeword << (bit % 8));
                    let field = u16::from_le_bytes([bytes[at], bytes[at + 1]]) & !mask | codeword;
                    bytes[at..at + 2].copy_from_slice(&field.to_le_bytes());
                });
                let error = refused(&bytes, 0..8, Kinds::Table);
                assert_eq!(error.offset(), at as u64);
                assert!(error.to_string().contains(&format!("bucket {bucket} has the codeword {codeword}")), "{error}");
            }
        }
    }
}

/// Forges lists of copies: unordered, with duplicates, with a count of 0, of absent items, with wrong totals.
#[test]
fn forged_lists_of_copies_are_refused_despite_valid_checksums() {
    let mut with_copies = 0;
    for snapshot in snapshots() {
        let (formulas, listed) = (Formulas::of_header(&snapshot), number(&snapshot, 40) as usize);
        let (start, end) = (snapshot.len() - 8 - listed, snapshot.len() - 8);
        if listed == 0 {
            continue;
        }
        let (width, len) = (usize::from(snapshot[start + 8]), formulas.list_key_bytes());
        let entries = (listed - 9) / (len + width);
        if entries < 2 {
            continue;
        }
        with_copies += 1;
        let (key, count) = (|n: usize| start + 9 + len * n, |n: usize| end - width * (entries - n));
        let refused_at = |change: &dyn Fn(&mut Vec<u8>), offset: usize| {
            let error = refused(&forged(&snapshot, |bytes| change(bytes)), 0..8, Kinds::Copies);
            assert_eq!(error.offset(), offset as u64, "{error}");
        };
        for n in 1..entries {
            refused_at(&|bytes| bytes.copy_within(key(n - 1)..key(n), key(n)), key(n));
            refused_at(&|bytes| bytes[key(n - 1)..key(n + 1)].rotate_left(len), key(n));
            refused_at(&|bytes| bytes[key(n)..key(n) + len].fill(0xff), key(n));
            if width > 0 && snapshot[count(n)..end].iter().any(|&byte| byte > 1) {
                refused_at(&|bytes| bytes[count(n - 1)..count(n)].fill(0), key(n - 1));
                // Another total, or no copies.
                let is_one = snapshot[count(n)] == 1 && snapshot[count(n) + 1..count(n) + width].iter().all(|&byte| byte == 0);
                refused_at(&|bytes| bytes[count(n)] ^= 1, if is_one { key(n) } else { start });
            }
        }
        refused_at(&|bytes| bytes[key(0)..key(0) + len].fill(0), key(0));
        for other in (0..=u8::MAX).filter(|&other| usize::from(other) != width) {
            let error = forged(&snapshot, |bytes| bytes[start + 8] = other);
            refused(&error, 0..1, Kinds::Copies);
        }
        for total in [0, 1, u64::MAX] {
            let bytes = forged(&snapshot, |bytes| bytes[start..start + 8].copy_from_slice(&total.to_le_bytes()));
            refused(&bytes, 0..1, Kinds::Count);
        }
    }
    assert!(with_copies >= 3, "{with_copies}");
}

/// Memory for the length that the header claims is allocated only as the stream's bytes arrive.
#[test]
#[cfg(target_pointer_width = "64")]
fn a_stream_is_allocated_as_its_bytes_arrive() {
    let header = forged(&snapshots()[0], |bytes| {
        bytes[10..14].copy_from_slice(&[1, 13, 4, 0]);
        let buckets = 1u64 << 50;
        bytes[24..32].copy_from_slice(&buckets.to_le_bytes());
        bytes[32..40].fill(0);
    });
    refused(&header, 0..8, Kinds::Length);
    for arrived in [0, 1, 1000, 65_536, 100_000, 131_072, 262_144, 524_288, 786_432, 5_000_000] {
        let stream = header[..HEADER].chain(io::repeat(0).take(arrived));
        let read = within(arrived as usize / 4 * 5 + SOME, || Filter::read_from_with(stream, AnyHasher::from_id));
        let error = read.expect_err("the stream is truncated");
        assert_eq!((error.kind(), error.offset()), (Kinds::Length, HEADER as u64 + arrived), "{error}");
    }
}

/// While a list of extra copies is read, it is held twice: as it arrived, and as it is kept.
#[test]
fn extra_copies_are_held_twice_while_they_are_read() {
    for (bits, copies) in [(8, 2), (8, 4), (13, 4), (13, 300)] {
        let builder = CuckooFilter::builder().capacity(40_000).fingerprint_bits(bits);
        let mut filter = builder.build().expect("valid parameters");
        let empty = filter.to_bytes().len();
        for _ in 0..copies {
            filter.insert_iter(0..40_000_u32).expect("copies are counted");
        }
        let bytes = filter.to_bytes();
        let again = (bytes.len() - empty) / 4 * 5;
        assert!(again > empty, "{again} bytes of copies, {empty} without them");
        let from_slice = within(bytes.len() + again, || CuckooFilter::from_bytes(&bytes));
        let from_stream = within(bytes.len() / 4 * 5 + SOME + again, || CuckooFilter::read_from(&bytes[..]));
        assert!(from_slice.is_ok_and(|read| read == filter) && from_stream.is_ok_and(|read| read == filter));
    }
}

/// A writer that counts bytes and discards them.
struct Nowhere(usize);

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The same for RedisBloom's dumps: a header claims 65,535 sub-filters of 4 GiB, and chunks claim such lengths.
#[cfg(feature = "redisbloom")]
#[test]
fn a_dump_is_allocated_as_its_bytes_arrive() {
    use koel::redisbloom::RedisBloomFilter;
    let frame = |iterator: u64, len: u64| [iterator.to_le_bytes(), len.to_le_bytes()].concat();
    let mut header = [u64::MAX, 1 << 30, u64::MAX, 65_535].map(u64::to_le_bytes).concat();
    header.extend([4, 0, 255, 255, 1, 0]);
    for (claimed, given) in [(1_u64 << 32, 0), (1 << 32, 1000), (1 << 20, 1 << 20), (u64::MAX, 10)] {
        let dump = [&frame(1, 38)[..], &header, &frame(1_u64.saturating_add(claimed), claimed), &vec![7; given]].concat();
        for pieces in [1, 100, 1 << 20] {
            let refused = within(given / 4 * 5 + SOME, || {
                let error = RedisBloomFilter::read_dump(Pieces { bytes: &dump, most: pieces, is_interrupted: false });
                (error.map(drop).unwrap_err(), RedisBloomFilter::from_dump(&dump).map(drop).unwrap_err())
            });
            assert_eq!((refused.0.kind(), refused.0.to_string()), (refused.1.kind(), refused.1.to_string()));
        }
    }
}

#[test]
fn reading_and_writing_a_large_filter_takes_no_second_copy() {
    let kind = Kind { table: TableKind::Packed, f: 13, b: 4, addressing: Addressing::AnySize };
    let mut filter = kind.filter(12_000_000);
    for number in 0..10_000u64 {
        filter.insert(&number).expect("there is room");
    }
    let table = filter.params().table_bytes();
    assert!(table > 64 << 20);
    let mut nowhere = Nowhere(0);
    within(1 << 20, || filter.write_to(&mut nowhere)).expect("the writer accepts everything");
    assert_eq!(nowhere.0, HEADER + table + 8);
    let bytes = filter.to_bytes();
    let read = within(table + (1 << 20), || CuckooFilter::read_from(&bytes[..])).expect("a valid snapshot");
    assert!(same_bits(&read, &filter));
    let read = within(table + (1 << 20), || CuckooFilter::from_bytes(&bytes)).expect("a valid snapshot");
    assert!(same_bits(&read, &filter));
    within(0, || FilterView::over(&bytes).and_then(|view| view.verify())).expect("a valid snapshot");
}
