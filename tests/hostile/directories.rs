//! Directories of growing filters: a short snapshot can claim a depth whose directory takes far more memory than the snapshot.

use koel::{ElasticFilter, ElasticView, Prehashed, SnapshotErrorKind as Kinds};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{SOME, common::HEADER, heap::peak};

/// Returns a snapshot in which every partition has one item and shards of all depths from 1 to 22, so that the directory is far
/// larger than the shards. All checksums are valid. A shard has `buckets` buckets. Without `tables`, the bytes end before the first
/// table.
fn deep(partition_bits: u8, buckets: u32, tables: bool) -> Vec<u8> {
    const BITS: u8 = 10;
    const DEPTH: u8 = 22;
    let sum = |seed: u64, bytes: &[u8]| xxh3_64_with_seed(bytes, seed).to_le_bytes();
    let mut bytes = ElasticFilter::builder().false_positive_rate(0.01).build().expect("valid parameters").to_bytes();
    bytes.truncate(HEADER);
    bytes[10..14].copy_from_slice(&[2, BITS, 4, partition_bits]);
    bytes[24..28].copy_from_slice(&buckets.to_le_bytes());
    bytes[28..32].copy_from_slice(&[0, DEPTH, 0, 0]);
    let checksum = sum(0, &bytes[..56]);
    bytes[56..64].copy_from_slice(&checksum);
    let (seed, mut sums) = (u64::from_le_bytes(checksum), Vec::new());
    for partition in 0..1 << partition_bits {
        let (mut list, mut all, mut len) = (Vec::new(), Vec::new(), 0);
        let depths = (1..=DEPTH).map(|depth| (depth, (1_u32 << depth) - 2));
        for (depth, prefix) in depths.chain([(DEPTH, (1 << DEPTH) - 1)]) {
            // The sizes of the table and its column, which have four slots in a bucket.
            let table: u64 =
                [BITS - 1, DEPTH - depth].map(|bits| (4 * u64::from(buckets) * u64::from(bits)).div_ceil(8)).iter().sum();
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

/// All directories together take at most 16 MiB, or twice that in a view, unless the input is larger. They are allocated only after
/// their tables have arrived.
#[test]
fn directories_are_limited_by_the_size_of_the_input() {
    const MOST: usize = 16 << 20;
    let many = deep(6, 2, true);
    let claim = deep(0, 1 << 24, false);
    for (bytes, kind, most) in [(many, Kinds::Shards, MOST + SOME + (1 << 20)), (claim, Kinds::Length, SOME)] {
        let (error, view) = peak(|| ElasticView::over(&bytes).map(drop).unwrap_err());
        assert_eq!(error.kind(), kind, "{error}");
        let (error, read) = peak(|| ElasticFilter::read_from(&bytes[..]).map(drop).unwrap_err());
        assert_eq!(error.kind(), kind, "{error}");
        assert!(view <= 2 * most && read <= most, "{view} and {read} bytes for {}", bytes.len());
    }
    // A single partition of the same depth is accepted.
    let alone = deep(0, 2, true);
    ElasticView::over(&alone).expect("the directory is small enough").verify().expect("a valid snapshot");
    assert_eq!(ElasticFilter::from_bytes(&alone).expect("a valid snapshot").to_bytes(), alone);
}

/// Returns a snapshot of three generations: two of empty lists down to depth 22, and one of a list with 1,000 keys of `key_bytes` bytes.
fn deep_lists(key_bytes: usize) -> Vec<u8> {
    const DEPTH: u8 = 22;
    const KEYS: usize = 1000;
    let sum = |seed: u64, bytes: &[u8]| xxh3_64_with_seed(bytes, seed).to_le_bytes();
    let mut bytes = deep(0, 2, true);
    bytes.truncate(HEADER);
    let (seed, mut list) = (u64::from_le_bytes(bytes[56..64].try_into().expect("eight bytes")), Vec::new());
    let keys = vec![0; (KEYS * key_bytes).next_multiple_of(8)];
    let depths = (1..=DEPTH).map(|depth| (depth, (1_u32 << depth) - 2)).chain([(DEPTH, (1 << DEPTH) - 1)]);
    let shards = (0..2).flat_map(|generation| depths.clone().map(move |(depth, prefix)| (generation, depth, prefix, 0)));
    for (generation, depth, prefix, entries) in shards.chain([(2, 0, 0, KEYS)]) {
        list.extend([generation, depth, 1, 0]);
        list.extend(prefix.to_le_bytes());
        list.extend((entries as u64).to_le_bytes());
        list.extend(sum(0, &keys[..entries * key_bytes]));
    }
    let numbers = [KEYS, list.len() / 24, list.len() + keys.len()];
    let section: Vec<u8> = numbers.iter().flat_map(|&number| (number as u64).to_le_bytes()).collect();
    let checksum = sum(seed, &[&section[..], &list].concat());
    bytes.extend([&section[..], &checksum, &list, &keys, &sum(seed, &checksum)].concat());
    bytes
}

/// Views skip the bodies that filters read, and refuse the same directories at the same offset: behind the shards of their generation,
/// whatever follows these.
#[test]
fn views_and_filters_allow_the_same_directories() {
    let mut refused = 0;
    for bytes in (1..=12).map(deep_lists) {
        let view = ElasticView::over(&bytes).map(drop).unwrap_err();
        let read = ElasticFilter::read_from(&bytes[..]).map(drop).unwrap_err();
        assert_eq!((view.kind(), view.offset(), view.to_string()), (read.kind(), read.offset(), read.to_string()));
        // The other snapshots have keys of a wrong length.
        refused += usize::from(view.to_string().contains("shards of depth 22 need a directory"));
    }
    assert_eq!(refused, 1);
}

/// Returns a snapshot with one shard of two buckets and one item, which claims that the shard may be split 27 times.
fn splitting() -> Vec<u8> {
    const LOW_BITS: u8 = 5;
    const DEPTH: u8 = 27;
    let sum = |seed: u64, bytes: &[u8]| xxh3_64_with_seed(bytes, seed).to_le_bytes();
    let mut bytes = ElasticFilter::builder().false_positive_rate(0.01).build().expect("valid parameters").to_bytes();
    bytes.truncate(HEADER);
    bytes[10..14].copy_from_slice(&[2, LOW_BITS, 4, 0]);
    bytes[24..28].copy_from_slice(&2_u32.to_le_bytes());
    bytes[28..32].copy_from_slice(&[0, DEPTH, 0, 0]);
    let checksum = sum(0, &bytes[..56]);
    bytes[56..64].copy_from_slice(&checksum);
    // A table of 2 · 4 · (5 − 1) bits, a column of 2 · 4 · 27 bits, and padding.
    let mut table = [0; 32];
    table[0] = 1;
    let list = [vec![0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0], sum(0, &table[..4 + 27]).to_vec()].concat();
    let numbers = [1, 1, list.len() as u64 + 32];
    let section: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let checksum = sum(u64::from_le_bytes(checksum), &[&section[..], &list].concat());
    let seed = u64::from_le_bytes(bytes[56..64].try_into().expect("eight bytes"));
    bytes.extend([&section[..], &checksum, &list, &table, &sum(seed, &checksum)].concat());
    bytes
}

/// An insertion splits the shard only as far as the limit allows; without a limit, the directory stays in proportion to the shards.
#[test]
fn insertions_into_a_filter_of_forged_depth_take_little_memory() {
    let bytes = splitting();
    assert!(bytes.len() < 200);
    for limit in [1 << 20, usize::MAX] {
        let mut filter = ElasticFilter::from_bytes(&bytes).expect("a valid snapshot");
        filter.set_max_bytes(limit);
        let mut crowded = 0;
        for copy in 0..40 {
            let before = filter.to_bytes();
            // Copies of one item, which reach the same shard at any depth, alternate with other items.
            let (result, most) = peak(|| filter.insert(&Prehashed(if copy % 2 == 0 { 7 } else { copy })));
            assert!(most < 1 << 20, "{most} bytes for {filter}");
            if result.is_err() {
                assert_eq!(filter.to_bytes(), before);
                crowded += 1;
            }
        }
        // Copies are counted beside the tables.
        assert!(filter.count(&Prehashed(7)) >= 20 && crowded < 20 && filter.size_in_bytes() < 1 << 20, "{filter}");
    }
}
