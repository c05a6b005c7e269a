//! Snapshots of growing filters with random parameters, and damaged ones with the library's errors. The seeds are fixed.

use crate::{
    golden::{Items, Step},
    growing::Growing,
    random::{Random, verdict_json},
    split_mix::SplitMix64,
};
use koel::{ElasticFilter, TableKind, hash::AnyHasher};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const SNAPSHOTS: usize = 24;
/// How many damaged variants are made of every snapshot of at most [`SMALL`] bytes.
const DAMAGED: usize = 80;
const SMALL: usize = 4000;
const HEADER: usize = 64;
const SECTION: usize = 32;
const RECORD: usize = 24;
const ENTRY: usize = 16;

pub(crate) fn goldens() -> Vec<Growing> {
    let mut random = Random(SplitMix64(3));
    (0..SNAPSHOTS).map(|n| golden(&mut random, n)).collect()
}

fn golden(random: &mut Random, n: usize) -> Growing {
    let table = [TableKind::Single, TableKind::Packed][n % 2];
    let capacity = random.choose(&[10, 20, 300]);
    let items = random.choose(&[20, 100, 500, 6000]);
    let removed = random.choose(&[0, 0, 0, items / 2, items]);
    // Some items have more copies than a table has room for.
    let mut steps = vec![Step::Insert(0..items)];
    steps.extend(vec![Step::Insert(0..items.min(random.choose(&[3, 60, 600]))); random.choose(&[0, 0, 1, 2, 30])]);
    steps.push(Step::Remove(0..removed));
    Growing {
        file: format!("growing_{n}.koel"),
        table,
        bucket_size: if table == TableKind::Packed { 4 } else { random.choose(&[2, 3, 4, 7, 16]) },
        rate: random.choose(&[0.2, 0.1, 0.05, 0.01, 1e-4, 1e-6]),
        capacity,
        max_capacity: capacity.max(random.choose(&[20, 100, 1000, 50_000])),
        partitions: random.choose(&[1, 1, 2, 8]),
        seed: random.word(),
        items: random.choose(&[Items::Text, Items::U32, Items::Long, Items::Hash]),
        steps,
        shrink: random.choose(&[false, true]),
        answers: None,
    }
}

/// Returns randomly damaged snapshots as JSON: their bytes, and the kind of the library's error, if any.
pub(crate) fn damaged(files: &[Growing]) -> Vec<String> {
    let mut random = Random(SplitMix64(4));
    let made = files.iter().map(|golden| golden.make().0.to_bytes());
    let small = made.filter(|bytes| bytes.len() <= SMALL);
    let damaged = small.flat_map(|bytes| vec![bytes; DAMAGED]).map(|bytes| damage(&mut random, bytes));
    let read = |bytes: &[u8]| ElasticFilter::from_bytes_with(bytes, AnyHasher::from_id).map_err(|error| error.kind());
    damaged.map(|bytes| verdict_json(&bytes, read(&bytes).err())).collect()
}

fn damage(random: &mut Random, mut bytes: Vec<u8>) -> Vec<u8> {
    let records = HEADER..HEADER + SECTION + RECORD * read(&bytes, HEADER + 8);
    let copies = copies(&bytes);
    let anywhere = random.below(bytes.len());
    // One snapshot in three has an additional flipped bit.
    if random.below(3) == 0 {
        bytes[anywhere] ^= 1 << random.below(8);
    }
    let at = match random.below(11) {
        0 => {
            bytes.truncate(random.below(bytes.len()));
            return bytes;
        }
        1 => {
            let end = bytes.len() - 1;
            bytes[end] ^= random.choose(&[0, 1]);
            bytes.extend(vec![0; 1 + random.below(9)]);
            return bytes;
        }
        // A flipped bit, with the old checksums.
        2 => {
            bytes[anywhere] ^= 1 << random.below(8);
            return bytes;
        }
        // Only a part of the filter: the first partition's section is replaced by an empty one.
        8 => {
            let length = read(&bytes, HEADER + 16).min(bytes.len() - 8 - HEADER - SECTION);
            bytes.splice(HEADER..HEADER + SECTION + length, [0; SECTION]);
            bytes[HEADER..HEADER + 8].fill(0xff);
            seal(&mut bytes, &[]);
            return bytes;
        }
        // A byte of a copies entry.
        9 | 10 if !copies.iter().all(Range::is_empty) => {
            let lists: Vec<_> = copies.iter().filter(|list| !list.is_empty()).collect();
            let list = lists[random.below(lists.len())];
            list.start + random.below(list.len())
        }
        // With recomputed checksums: a byte anywhere, of the header, or of a section and its records.
        3 => anywhere,
        _ if records.is_empty() => anywhere,
        4 | 5 => 10 + random.below(HEADER - 10),
        _ => records.start + random.below(records.len()),
    };
    let value = match random.below(4) {
        0 => bytes[at] ^ 1 << random.below(8),
        1 => bytes[at].wrapping_add(1),
        2 => bytes[at].wrapping_sub(1),
        _ => random.choose(&[0, 1, 2, 3, 4, 5, 8, 12, 13, 15, 16, 17, 27, 28, 31, 32, 33, 127, 128, 255]),
    };
    bytes[at] = value;
    seal(&mut bytes, &copies);
    bytes
}

/// Returns the byte range of each partition's copies in a valid snapshot, found by their checksums.
fn copies(bytes: &[u8]) -> Vec<Range<usize>> {
    let (mut at, mut all) = (HEADER, Vec::new());
    while at < bytes.len() - 8 {
        let end = at + SECTION + read(bytes, at + 16);
        if read(bytes, at + 8) == 0 {
            // A partition without shards has its item count, and lists.
            let start = at + SECTION + 8;
            all.push(if start < end { start..end - 8 } else { 0..0 });
            at = end;
            continue;
        }
        let records = at + SECTION + read(bytes, at + 8) * RECORD;
        let last = end.saturating_sub(8).max(records);
        let is_list = |start: &usize| {
            let checksum = xxh3_64_with_seed(&bytes[*start..last], read(bytes, at + 24) as u64);
            last + 8 == end && checksum == read(bytes, last) as u64
        };
        let start = (records..last).rev().skip(ENTRY - 1).step_by(ENTRY).find(is_list);
        all.push(start.map_or(0..0, |start| start..last));
        at = end;
    }
    all
}

/// Recomputes all checksums that can be found, as a forger can.
fn seal(bytes: &mut [u8], copies: &[Range<usize>]) {
    let end = bytes.len() - 8;
    let header = xxh3_64_with_seed(&bytes[..HEADER - 8], 0);
    bytes[HEADER - 8..HEADER].copy_from_slice(&header.to_le_bytes());
    let (mut at, mut partition, mut all) = (HEADER, 0_usize, Vec::new());
    while end.saturating_sub(at) >= SECTION {
        let shards = read(bytes, at + 8);
        let records = if shards == 0 && read(bytes, at + 16) > 0 { 8 } else { shards.saturating_mul(RECORD) };
        let records = at + SECTION..end.min((at + SECTION).saturating_add(records));
        let checksum =
            xxh3_64_with_seed(&[&bytes[at..at + 24], &bytes[records.clone()]].concat(), header.wrapping_add(partition as u64));
        bytes[at + 24..at + SECTION].copy_from_slice(&checksum.to_le_bytes());
        all.extend(checksum.to_le_bytes());
        if let Some(list) = copies.get(partition).filter(|list| !list.is_empty()) {
            let checksum = xxh3_64_with_seed(&bytes[list.clone()], checksum);
            bytes[list.end..list.end + 8].copy_from_slice(&checksum.to_le_bytes());
        }
        at = records.start.saturating_add(read(bytes, at + 16));
        partition += 1;
    }
    let trailer = xxh3_64_with_seed(&all, header);
    bytes[end..].copy_from_slice(&trailer.to_le_bytes());
}

/// Reads the number at this byte, or `usize::MAX` if it is larger.
fn read(bytes: &[u8], at: usize) -> usize {
    let number = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    usize::try_from(number).unwrap_or(usize::MAX)
}
