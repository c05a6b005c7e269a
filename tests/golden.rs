//! Snapshots with either hasher, and those that every release reads and writes as they are.

mod common;

use common::Kind;
use koel::{Addressing, AnyHasher, CuckooFilter, HasherId, TableKind};
use std::path::Path;

#[cfg(all(feature = "metrohash", target_endian = "little"))]
#[test]
fn each_hasher_reads_its_own() {
    use koel::{MetroHash64, SnapshotErrorKind, Xxh3};
    let mut filter =
        CuckooFilter::builder().capacity(100).fingerprint_bits(12).hasher(MetroHash64).seed(1337).build().expect("right");
    filter.insert("koel").expect("there is room");
    let bytes = filter.to_bytes();
    let error = CuckooFilter::from_bytes(&bytes).expect_err("not its hasher");
    assert_eq!(error.kind(), SnapshotErrorKind::Hasher);
    assert!(error.to_string().contains("metrohash64"), "{error}");
    // Not even if the caller insists: every answer would be wrong.
    let error = CuckooFilter::from_bytes_with(&bytes, |_| Some(Xxh3)).expect_err("not its hasher");
    assert_eq!(error.kind(), SnapshotErrorKind::Hasher);
    let own = |id| (id == HasherId::METRO_HASH_64).then_some(MetroHash64);
    assert!(CuckooFilter::from_bytes_with(&bytes, own).expect("its own hasher") == filter);
    let any = CuckooFilter::from_bytes_with(&bytes, AnyHasher::from_id).expect("any hasher");
    assert!(any.contains("koel") && any.params().seed() == 1337);
    assert_eq!(any.to_bytes(), bytes);
}

/// Files of this version are read, and written, for ever.
#[test]
fn golden_files_are_read_and_written() {
    let kind = |table, f, b, addressing| Kind { table, f, b, addressing };
    let (any, pow2) = (Addressing::AnySize, Addressing::PowerOfTwo);
    for (name, kind, buckets, id, seed) in [
        ("packed_f13_any", kind(TableKind::Packed, 13, 4, any), 26, HasherId::XXH3, 0),
        ("packed_f4_pow2", kind(TableKind::Packed, 4, 4, pow2), 16, HasherId::METRO_HASH_64, 1337),
        ("single_f7_b3_any", kind(TableKind::Single, 7, 3, any), 34, HasherId::METRO_HASH_64, u64::MAX),
        ("single_f32_b8_pow2", kind(TableKind::Single, 32, 8, pow2), 8, HasherId::XXH3, 42),
    ] {
        let Some(hasher) = AnyHasher::from_id(id) else {
            assert_eq!(id, HasherId::METRO_HASH_64, "the default hasher is everywhere");
            continue;
        };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{name}.koel"));
        let golden = std::fs::read(path).expect("the file is here");
        let builder = kind.builder().buckets(buckets).hasher(hasher).seed(seed);
        let mut filter = builder.build().expect("right");
        let items: Vec<String> = (0..filter.slots() * 9 / 10).map(|n| format!("item-{n}")).collect();
        let stored = items.iter().take_while(|item| filter.insert(*item).is_ok()).count();
        let read = CuckooFilter::from_bytes_with(&golden, AnyHasher::from_id);
        assert!(filter.to_bytes() == golden, "{name} is written in another way");
        let read = read.unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(read == filter && items[..stored].iter().all(|item| read.contains(item)), "{name}");
    }
}
