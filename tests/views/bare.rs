//! Tables without a header, whose parameters and number of items the caller keeps.

use super::*;
use koel::{Params, hash::AnyHasher};

/// Bytes behind the checksum that lookups may load.
const BEHIND: usize = 4;

fn padded(filter: &CuckooFilter, byte: u8) -> Vec<u8> {
    [filter.to_table(), vec![byte; BEHIND]].concat()
}

fn over<'a>(filter: &CuckooFilter, bytes: &'a [u8]) -> FilterView<&'a [u8]> {
    FilterView::over_table(filter.params(), filter.len(), bytes).expect("the length is right")
}

/// The checksum that belongs to a table, as docs/FORMAT.md computes it.
fn checksum(filter: &CuckooFilter, table: &[u8]) -> [u8; BEHIND] {
    let header = xxh3_64_with_seed(&filter.to_bytes()[..HEADER - 8], 0);
    (xxh3_64_with_seed(table, header) as u32).to_le_bytes()
}

#[test]
fn a_bare_table_is_a_part_of_the_snapshot() {
    for kind in kinds() {
        let filter = filled(kind, 16);
        let (table, snapshot) = (filter.to_table(), filter.to_bytes());
        assert_eq!(table, snapshot[HEADER..snapshot.len() - BEHIND]);
        assert_eq!(table.len(), filter.params().bare_table_bytes());
        assert_eq!(table[table.len() - BEHIND..], checksum(&filter, &table[..table.len() - BEHIND]));
        #[cfg(feature = "std")]
        {
            let mut written = Vec::new();
            filter.write_table(&mut written).expect("a vector takes everything");
            assert_eq!(written, table);
        }
    }
}

/// In every kind of table, and in the smallest, whose buckets are shorter than what a lookup loads.
#[test]
fn a_view_of_a_bare_table_answers_as_the_filter_does() {
    for kind in kinds() {
        for buckets in [2, 4, 16] {
            let filter = filled(kind, buckets);
            let bytes = padded(&filter, 0xff);
            let mut view = over(&filter, &bytes);
            same(&mut view, &filter);
            view.verify().expect("it is as it was written");
            assert!(view.to_filter().expect("it is right") == filter);
            assert_eq!(view.snapshot_bytes(), filter.snapshot_bytes());
        }
    }
}

#[test]
fn bare_tables_stand_side_by_side() {
    let filters: Vec<CuckooFilter> = some_kinds().enumerate().map(|(n, kind)| filled(kind, 2 << (n % 5))).collect();
    let mut buffer: Vec<u8> = filters.iter().flat_map(CuckooFilter::to_table).collect();
    buffer.extend([0; BEHIND]);
    let mut rest = &buffer[..];
    for filter in &filters {
        let mut view = over(filter, rest);
        same(&mut view, filter);
        view.verify().expect("it is as it was written");
        rest = &rest[filter.params().bare_table_bytes()..];
    }
    assert_eq!(rest.len(), BEHIND);
}

#[test]
fn every_changed_bit_of_a_bare_table_is_noticed() {
    for kind in [PACKED, Kind { f: 25, ..PACKED }, Kind { table: TableKind::Single, f: 8, ..PACKED }] {
        let filter = filled(kind, 16);
        let bytes = padded(&filter, 0);
        let own = filter.params().bare_table_bytes();
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let view = over(&filter, &damaged);
            if bit / 8 >= own {
                view.verify().expect("these bytes are not its own");
                continue;
            }
            let error = view.verify().expect_err("a bit was flipped");
            assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::BodyChecksum, own as u64 - 4));
            assert_eq!(view.to_filter().expect_err("it is damaged").to_string(), error.to_string());
            // A snapshot that is made of it is no better.
            let error = CuckooFilter::from_bytes(&view.to_bytes()).expect_err("it is damaged");
            assert_eq!(error.kind(), SnapshotErrorKind::BodyChecksum);
        }
    }
}

#[test]
fn every_length_is_checked() {
    let filter = filled(PACKED, 16);
    let bytes = padded(&filter, 0);
    for len in 0..bytes.len() {
        let error = FilterView::over_table(filter.params(), filter.len(), &bytes[..len]).expect_err("it ends too early");
        assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::Length, len as u64));
        assert!(error.to_string().contains("at least 4 bytes behind"), "{error}");
    }
    for more in [0, 1, 1000] {
        let longer = [&bytes[..], &vec![0x4b; more]].concat();
        same(&mut FilterView::over_table(filter.params(), filter.len(), longer).expect("long enough"), &filter);
    }
}

/// What the caller keeps is checked against the table as the header of a snapshot is.
#[test]
fn other_parameters_items_and_hashers_are_noticed() {
    let filter = filled(PACKED, 16);
    let (params, items, bytes) = (filter.params(), filter.len(), padded(&filter, 0));
    for other in [0, items - 1, items + 1, filter.slots()] {
        let view = FilterView::over_table(params, other, &bytes).expect("so many fit");
        assert_eq!(view.verify().expect_err("another number").kind(), SnapshotErrorKind::BodyChecksum);
    }
    for other in [filter.slots() + 1, usize::MAX] {
        let error = FilterView::over_table(params, other, &bytes).expect_err("more than there are slots");
        assert_eq!(error.kind(), SnapshotErrorKind::Parameter);
        assert!(error.to_string().contains(&format!("{other} items in 64 slots")), "{error}");
        assert!(error.to_string().contains("give the number of items"), "{error}");
    }
    let others: [Params; 3] = [
        PACKED.builder().buckets(16).seed(1).params().expect("right"),
        Kind { addressing: Addressing::PowerOfTwo, ..PACKED }.builder().buckets(16).params().expect("right"),
        Kind { table: TableKind::Single, f: 12, ..PACKED }.builder().buckets(16).params().expect("right"),
    ];
    for other in others {
        assert_eq!(other.table_bytes(), params.table_bytes());
        let view = FilterView::over_table(other, items, &bytes).expect("as long");
        assert_eq!(view.verify().expect_err("other parameters").kind(), SnapshotErrorKind::BodyChecksum);
    }
    let xxh3 = AnyHasher::from_id(koel::hash::HasherId::XXH3).expect("it is known");
    FilterView::over_table_with(params, items, &bytes, xxh3).expect("as long").verify().expect("the same hasher");
    #[cfg(feature = "metrohash")]
    {
        let metro = AnyHasher::from_id(koel::hash::HasherId::METRO_HASH_64).expect("it is known");
        let view = FilterView::over_table_with(params, items, &bytes, metro).expect("as long");
        assert_eq!(view.verify().expect_err("another hasher").kind(), SnapshotErrorKind::BodyChecksum);
    }
}

/// Tables that no filter has written, with the right checksum: they are refused, and lookups answer all the same.
#[test]
fn a_bare_table_of_whatever_bytes_answers() {
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
            let error = view.verify().expect_err("no filter wrote this");
            assert!(matches!(error.kind(), SnapshotErrorKind::Table | SnapshotErrorKind::Count), "{error}");
            assert!(error.offset() <= table as u64, "{error}");
            // The snapshot has the table with the right checksum, and is refused for the same reason.
            let snapshot = view.to_bytes();
            assert_eq!(CuckooFilter::from_bytes(&snapshot).expect_err("nor this").kind(), error.kind());
            let framed = FilterView::over(&snapshot).expect("the header is right");
            let hashes: Vec<u64> = SplitMix64(word).take(200).collect();
            let mut found = vec![false; hashes.len()];
            for kernel in Kernel::available() {
                view.set_kernel(kernel).expect("it is available");
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
