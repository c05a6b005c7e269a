//! Directories of growing filters: a few bytes of a snapshot may ask for far more memory.

use koel::{ElasticFilter, ElasticView, Prehashed, SnapshotErrorKind as Kinds};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{SOME, common::HEADER, heap::peak};

/// A snapshot of a growing filter in which every partition has shards of all depths from 1 to 22, and one item: its directory is
/// far larger than they are. All checksums are right. `buckets` are those of a shard; without `tables`, it ends before the first
/// one.
fn deep(partition_bits: u8, buckets: u32, tables: bool) -> Vec<u8> {
    const BITS: u8 = 10;
    const DEPTH: u8 = 22;
    let sum = |seed: u64, bytes: &[u8]| xxh3_64_with_seed(bytes, seed).to_le_bytes();
    let mut bytes = ElasticFilter::builder().false_positive_rate(0.01).build().expect("right").to_bytes();
    bytes.truncate(HEADER);
    bytes[10..14].copy_from_slice(&[2, BITS, 1, partition_bits]);
    bytes[24..28].copy_from_slice(&buckets.to_le_bytes());
    bytes[28..32].copy_from_slice(&[0, DEPTH, 0, 0]);
    let checksum = sum(0, &bytes[..56]);
    bytes[56..64].copy_from_slice(&checksum);
    let (seed, mut sums) = (u64::from_le_bytes(checksum), Vec::new());
    for partition in 0..1 << partition_bits {
        let (mut list, mut all, mut len) = (Vec::new(), Vec::new(), 0);
        let depths = (1..=DEPTH).map(|depth| (depth, (1_u32 << depth) - 2));
        for (depth, prefix) in depths.chain([(DEPTH, (1 << DEPTH) - 1)]) {
            // And its column.
            let table: u64 = [BITS, DEPTH - depth].map(|bits| (u64::from(buckets) * u64::from(bits)).div_ceil(8)).iter().sum();
            len += table.next_multiple_of(8);
            let item = u8::from(list.is_empty());
            let mut table = if tables { vec![0; table as usize] } else { vec![] };
            if let Some(first) = table.first_mut() {
                *first = item;
            }
            list.extend([0, depth, 0, 0]);
            list.extend(prefix.to_le_bytes());
            list.extend([item, 0, 0, 0, 0, 0, 0, 0]);
            list.extend(sum(0, &table));
        }
        if tables {
            all.resize(len as usize, 0);
            all[0] = 1;
        }
        let numbers = [1, list.len() as u64 / 24, list.len() as u64 + len];
        let section: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        let checksum = sum(seed.wrapping_add(partition), &[&section[..], &list].concat());
        sums.extend(checksum);
        bytes.extend([&section[..], &checksum, &list, &all].concat());
        if !tables {
            return bytes;
        }
    }
    let end = sum(seed, &sums);
    bytes.extend(end);
    bytes
}

/// Directories take no more than 16 MiB together, or twice that for a view, unless there are as many bytes of input; and nothing
/// before the tables that they lead to have arrived.
#[test]
fn directories_take_no_more_than_the_tables_warrant() {
    const MOST: usize = 16 << 20;
    let many = deep(6, 2, true);
    let claim = deep(0, 1 << 27, false);
    for (bytes, kind, most) in [(many, Kinds::Shards, MOST + SOME + (1 << 20)), (claim, Kinds::Length, SOME)] {
        let (error, view) = peak(|| ElasticView::over(&bytes).map(drop).unwrap_err());
        assert_eq!(error.kind(), kind, "{error}");
        let (error, read) = peak(|| ElasticFilter::read_from(&bytes[..]).map(drop).unwrap_err());
        assert_eq!(error.kind(), kind, "{error}");
        assert!(view <= 2 * most && read <= most, "{view} and {read} bytes for {}", bytes.len());
    }
    // As deep as that, but alone.
    let alone = deep(0, 2, true);
    ElasticView::over(&alone).expect("its directory is small enough").verify().expect("it is valid");
    assert_eq!(ElasticFilter::from_bytes(&alone).expect("it is valid").to_bytes(), alone);
}

/// A snapshot of one shard of two slots with an item, which claims that it may be split 27 times.
fn splitting() -> Vec<u8> {
    const LOW_BITS: u8 = 5;
    const DEPTH: u8 = 27;
    let sum = |seed: u64, bytes: &[u8]| xxh3_64_with_seed(bytes, seed).to_le_bytes();
    let mut bytes = ElasticFilter::builder().false_positive_rate(0.01).build().expect("right").to_bytes();
    bytes.truncate(HEADER);
    bytes[10..14].copy_from_slice(&[2, LOW_BITS, 1, 0]);
    bytes[24..28].copy_from_slice(&2_u32.to_le_bytes());
    bytes[28..32].copy_from_slice(&[0, DEPTH, 0, 0]);
    let checksum = sum(0, &bytes[..56]);
    bytes[56..64].copy_from_slice(&checksum);
    // 2 · 5 bits, a column of 2 · 27 bits, and what it is filled up with.
    let mut table = [0; 16];
    table[0] = 1;
    let list = [vec![0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], sum(0, &table[..2 + 7]).to_vec()].concat();
    let numbers = [1, 1, list.len() as u64 + 16];
    let section: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let checksum = sum(u64::from_le_bytes(checksum), &[&section[..], &list].concat());
    let seed = u64::from_le_bytes(bytes[56..64].try_into().expect("eight"));
    bytes.extend([&section[..], &checksum, &list, &table, &sum(seed, &checksum)].concat());
    bytes
}

/// An insertion into it splits no further than the limit allows, and without a limit, no further than its few shards warrant.
#[test]
fn a_forged_depth_takes_no_memory_when_items_are_inserted() {
    let bytes = splitting();
    assert!(bytes.len() < 200);
    for limit in [1 << 20, usize::MAX] {
        let mut filter = ElasticFilter::from_bytes(&bytes).expect("it is valid");
        filter.set_max_bytes(limit);
        let mut crowded = 0;
        for copy in 0..40 {
            let before = filter.to_bytes();
            // Items that go to the same shard at any depth, and others.
            let (result, most) = peak(|| filter.insert(&Prehashed(if copy % 2 == 0 { 7 } else { copy })));
            assert!(most < 1 << 20, "{most} bytes for {filter}");
            if result.is_err() {
                assert_eq!(filter.to_bytes(), before);
                crowded += 1;
            }
        }
        // Copies are counted.
        assert!(filter.count(&Prehashed(7)) >= 20 && crowded < 20 && filter.size_in_bytes() < 1 << 20, "{filter}");
    }
}
