//! Snapshots of growing filters with random parameters, and damaged ones with the library's errors. The seeds are fixed.

use crate::{
    golden::{Items, Step},
    growing::Growing,
    random::{Random, verdict_json},
    sections::{RECORD, SECTION, Section, seal, sections},
    split_mix::SplitMix64,
};
use koel::{ElasticFilter, hash::AnyHasher};
use std::ops::Range;

const SNAPSHOTS: usize = 24;
/// How many damaged variants are made of every snapshot of at most [`SMALL`] bytes.
const DAMAGED: usize = 80;
const SMALL: usize = 4000;
const HEADER: usize = 64;

pub(crate) fn goldens() -> Vec<Growing> {
    let mut random = Random(SplitMix64(3));
    (0..SNAPSHOTS).map(|n| golden(&mut random, n)).collect()
}

fn golden(random: &mut Random, n: usize) -> Growing {
    let capacity = random.choose(&[10, 20, 300]);
    let items = random.choose(&[20, 100, 500, 6000]);
    let removed = random.choose(&[0, 0, 0, items / 2, items]);
    // Some items have more copies than a table has room for.
    let mut steps = vec![Step::Insert(0..items)];
    steps.extend(vec![Step::Insert(0..items.min(random.choose(&[3, 60, 600]))); random.choose(&[0, 0, 1, 2, 30, 300])]);
    steps.push(Step::Remove(0..removed));
    Growing {
        file: format!("growing_{n}.koel"),
        rate: random.choose(&[0.2, 0.1, 0.05, 0.01, 1e-4, 1e-6]),
        capacity,
        max_capacity: capacity.max(random.choose(&[20, 100, 1000, 50_000])),
        partitions: random.choose(&[1, 1, 2, 8]),
        seed: random.word(),
        items: random.choose(&[Items::Text, Items::U32, Items::Long, Items::Hash]),
        hashes: Vec::new(),
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
    let lists: Vec<_> = sections(&bytes).iter().flat_map(|section| lists(&bytes, section)).collect();
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
            seal(&mut bytes);
            return bytes;
        }
        // A byte of a list.
        9 | 10 if !lists.is_empty() => {
            let list = &lists[random.below(lists.len())];
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
    seal(&mut bytes);
    bytes
}

/// Returns the lists of items and of extra copies in a section that are not empty.
fn lists(bytes: &[u8], section: &Section) -> Vec<Range<usize>> {
    let bodies = section.bodies().filter(|(record, body)| bytes[record + 2] > 0 && !body.is_empty());
    bodies.map(|(_, body)| body).collect()
}

/// Reads the number at this byte, or `usize::MAX` if it is larger.
fn read(bytes: &[u8], at: usize) -> usize {
    let number = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    usize::try_from(number).unwrap_or(usize::MAX)
}
