//! Bare tables: no header, so the caller keeps the parameters and the item count.

use super::*;
use crate::common::same_bits;
use koel::{Params, hash::AnyHasher};

/// Bytes that lookups may load behind the checksum, which has the same length.
const BEHIND: usize = 4;

fn padded(filter: &CuckooFilter, byte: u8) -> Vec<u8> {
    [filter.to_table(), vec![byte; BEHIND]].concat()
}

fn over<'a>(filter: &CuckooFilter, bytes: &'a [u8]) -> FilterView<&'a [u8]> {
    FilterView::over_table(bytes, filter.params(), filter.len()).expect("the length is valid")
}

/// Returns the checksum of a bare table, as docs/FORMAT.md defines it.
fn checksum(filter: &CuckooFilter, table: &[u8]) -> [u8; BEHIND] {
    let header = xxh3_64_with_seed(&filter.to_bytes()[..HEADER - 8], 0);
    (xxh3_64_with_seed(table, header) as u32).to_le_bytes()
}

#[test]
fn a_bare_table_is_part_of_the_snapshot() {
    for kind in kinds() {
        let filter = filled(kind, 16);
        let (table, snapshot) = (filter.to_table(), filter.to_bytes());
        assert_eq!(table, snapshot[HEADER..snapshot.len() - BEHIND]);
        assert_eq!(table.len(), filter.params().bare_table_bytes());
        assert_eq!(table[table.len() - BEHIND..], checksum(&filter, &table[..table.len() - BEHIND]));
        #[cfg(feature = "std")]
        {
            let mut written = Vec::new();
            filter.write_table(&mut written).expect("writing to a vector succeeds");
            assert_eq!(written, table);
        }
    }
}

/// Covers every kind of table, including tables smaller than the bytes that a lookup loads.
#[test]
fn a_view_of_a_bare_table_gives_the_results_of_its_filter() {
    for kind in kinds() {
        for buckets in [2, 4, 16] {
            let filter = filled(kind, buckets);
            let bytes = padded(&filter, 0xff);
            let mut view = over(&filter, &bytes);
            assert_same(&mut view, &filter);
            view.verify().expect("the bytes are unchanged");
            assert!(same_bits(&view.to_filter().expect("the table is valid"), &filter));
            assert_eq!(view.snapshot_bytes(), filter.snapshot_bytes());
        }
    }
}

#[test]
fn bare_tables_can_be_stored_back_to_back() {
    let filters: Vec<CuckooFilter> = some_kinds().enumerate().map(|(n, kind)| filled(kind, 2 << (n % 5))).collect();
    let mut buffer: Vec<u8> = filters.iter().flat_map(CuckooFilter::to_table).collect();
    buffer.extend([0; BEHIND]);
    let mut rest = &buffer[..];
    for filter in &filters {
        let mut view = over(filter, rest);
        assert_same(&mut view, filter);
        view.verify().expect("the bytes are unchanged");
        rest = &rest[filter.params().bare_table_bytes()..];
    }
    assert_eq!(rest.len(), BEHIND);
}

#[test]
fn every_flipped_bit_of_a_bare_table_is_detected() {
    for kind in [PACKED, Kind { f: 25, ..PACKED }, Kind { table: TableKind::Single, f: 8, ..PACKED }] {
        let filter = filled(kind, 16);
        let bytes = padded(&filter, 0);
        let own = filter.params().bare_table_bytes();
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let view = over(&filter, &damaged);
            if bit / 8 >= own {
                view.verify().expect("the bytes behind the table do not matter");
                continue;
            }
            let error = view.verify().expect_err("a bit was flipped");
            assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::BodyChecksum, own as u64 - 4));
            assert_eq!(view.to_filter().expect_err("the table is damaged").to_string(), error.to_string());
            // A snapshot made from the damaged table is refused, too.
            let error = CuckooFilter::from_bytes(&view.to_bytes()).expect_err("the table is damaged");
            assert_eq!(error.kind(), SnapshotErrorKind::BodyChecksum);
        }
    }
}

#[test]
fn a_bare_table_needs_its_full_length() {
    let filter = filled(PACKED, 16);
    let bytes = padded(&filter, 0);
    for len in 0..bytes.len() {
        let error = FilterView::over_table(&bytes[..len], filter.params(), filter.len()).expect_err("the bytes are truncated");
        assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::Length, len as u64));
        assert!(error.to_string().contains("at least 4 bytes behind"), "{error}");
    }
    for more in [0, 1, 1000] {
        let longer = [&bytes[..], &vec![0x4b; more]].concat();
        assert_same(
            &mut FilterView::over_table(longer, filter.params(), filter.len()).expect("the bytes are long enough"),
            &filter,
        );
    }
}

/// The checksum covers the parameters, the item count and the hasher, as in a snapshot.
#[test]
fn wrong_parameters_counts_and_hashers_are_detected() {
    let filter = filled(PACKED, 16);
    let (params, items, bytes) = (filter.params(), filter.len(), padded(&filter, 0));
    for other in [0, items - 1, items + 1, filter.slots()] {
        let view = FilterView::over_table(&bytes, params, other).expect("the slots hold this many items");
        assert_eq!(view.verify().expect_err("the item count is wrong").kind(), SnapshotErrorKind::BodyChecksum);
    }
    for other in [filter.slots() + 1, usize::MAX] {
        let error = FilterView::over_table(&bytes, params, other).expect_err("there are more items than slots");
        assert_eq!(error.kind(), SnapshotErrorKind::Parameter);
        assert!(error.to_string().contains(&format!("{other} items in 64 slots")), "{error}");
        assert!(error.to_string().contains("give the number of items"), "{error}");
    }
    let others: [Params; 3] = [
        PACKED.builder().buckets(16).seed(1).params().expect("valid parameters"),
        Kind { addressing: Addressing::PowerOfTwo, ..PACKED }.builder().buckets(16).params().expect("valid parameters"),
        Kind { table: TableKind::Single, f: 12, ..PACKED }.builder().buckets(16).params().expect("valid parameters"),
    ];
    for other in others {
        assert_eq!(other.table_bytes(), params.table_bytes());
        let view = FilterView::over_table(&bytes, other, items).expect("the tables have equal lengths");
        assert_eq!(view.verify().expect_err("the parameters are wrong").kind(), SnapshotErrorKind::BodyChecksum);
    }
    let xxh3 = AnyHasher::from_id(koel::hash::HasherId::XXH3).expect("a known hasher");
    FilterView::over_table_with(&bytes, params, items, xxh3)
        .expect("the tables have equal lengths")
        .verify()
        .expect("the hasher matches");
    #[cfg(feature = "metrohash")]
    {
        let metro = AnyHasher::from_id(koel::hash::HasherId::METRO_HASH_64).expect("a known hasher");
        let view = FilterView::over_table_with(&bytes, params, items, metro).expect("the tables have equal lengths");
        assert_eq!(view.verify().expect_err("the hasher differs").kind(), SnapshotErrorKind::BodyChecksum);
    }
}

/// Invalid tables with valid checksums fail verification. Lookups still return, with equal results from all kernels.
#[test]
fn lookups_in_an_invalid_bare_table_return() {
    for kind in some_kinds() {
        let filter = filled(kind, 16);
        let table = filter.params().table_bytes();
        for (round, word) in SplitMix64(7).take(3).enumerate() {
            let noise = SplitMix64(word).take(table).map(|word| if round == 0 { 0xff } else { word as u8 });
            let mut bytes: Vec<u8> = noise.collect();
            let checksum = checksum(&filter, &bytes);
            bytes.extend(checksum);
            bytes.extend([0xff; BEHIND]);
            let mut view = over(&filter, &bytes);
            let error = view.verify().expect_err("the table is invalid");
            assert!(matches!(error.kind(), SnapshotErrorKind::Table | SnapshotErrorKind::Count), "{error}");
            assert!(error.offset() <= table as u64, "{error}");
            // A snapshot of the same table has a valid checksum, and is refused for the same reason.
            let snapshot = view.to_bytes();
            assert_eq!(CuckooFilter::from_bytes(&snapshot).expect_err("the table is invalid").kind(), error.kind());
            let framed = FilterView::over(&snapshot).expect("the header is valid");
            let hashes: Vec<u64> = SplitMix64(word).take(200).collect();
            let mut found = vec![false; hashes.len()];
            for kernel in Kernel::available() {
                view.set_kernel(kernel).expect("the kernel is available");
                view.contains_batch(&Prehashed(&hashes), &mut found);
                for (&hash, &found) in hashes.iter().zip(&found) {
                    assert_eq!(view.contains(&Prehashed(hash)), found, "{kernel} {kind:?}");
                    assert_eq!(framed.contains(&Prehashed(hash)), found, "{kernel} {kind:?}");
                    assert_eq!(view.count(&Prehashed(hash)), framed.count(&Prehashed(hash)), "{kernel} {kind:?}");
                }
            }
            let _ = (view.to_string(), view.measure_false_positive_rate(10), view.load_factor());
        }
    }
}
