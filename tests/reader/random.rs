//! Snapshots of random kinds, and damaged ones with the library's verdict. The seeds are fixed.

use crate::{
    golden::{Golden, Items, Step},
    split_mix::SplitMix64,
};
use koel::{Addressing, AnyHasher, CuckooFilter, Hasher, HasherId, SnapshotErrorKind, TableKind, Xxh3};
use std::ops::Range;

const SNAPSHOTS: usize = 60;
/// Of every snapshot that is small enough.
const DAMAGED: usize = 40;
const SMALL: usize = 600;
const HEADER: usize = 64;

struct Random(SplitMix64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0.next().expect("it has no end")
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.word() % end as u64).expect("less than a usize")
    }

    fn of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    fn in_range(&mut self, range: Range<u32>) -> u32 {
        range.start + u32::try_from(self.word() % u64::from(range.end - range.start)).expect("less than a u32")
    }
}

pub(crate) fn goldens() -> Vec<Golden> {
    let mut random = Random(SplitMix64(1));
    (0..SNAPSHOTS).map(|n| golden(&mut random, n)).collect()
}

fn golden(random: &mut Random, n: usize) -> Golden {
    let table = [TableKind::Single, TableKind::Packed][n % 2];
    let (f, b) = match table {
        TableKind::Packed => (random.in_range(4..33), 4),
        _ => (random.in_range(2..33), random.in_range(1..17)),
    };
    let addressing = random.of(&[Addressing::AnySize, Addressing::PowerOfTwo]);
    let buckets = match addressing {
        Addressing::PowerOfTwo => 1 << random.in_range(0..7),
        _ => 2 * u64::from(random.in_range(1..60)),
    };
    let slots = buckets * u64::from(b);
    let mut part = || random.word() % slots;
    let steps = vec![Step::Insert(0..part() + slots / 2), Step::Remove(0..part()), Step::Insert(slots / 4..part())];
    Golden {
        file: format!("random_{n}.koel"),
        table,
        f,
        b,
        addressing,
        buckets,
        hasher: random.of(&[HasherId::XXH3, HasherId::METRO_HASH_64]),
        seed: random.word(),
        items: random.of(&[Items::Text, Items::U32, Items::Long]),
        steps,
        answers: None,
    }
}

/// Snapshots changed at random, as JSON: their bytes, and as which kind of error the library refuses them, if it does.
pub(crate) fn damaged(files: &[Golden]) -> Vec<String> {
    let mut random = Random(SplitMix64(2));
    let made = files.iter().filter_map(Golden::make).map(|(filter, _)| filter.to_bytes());
    let small = made.filter(|bytes| bytes.len() <= SMALL);
    let damaged = small.flat_map(|bytes| vec![bytes; DAMAGED]).map(|bytes| {
        let bytes = damage(&mut random, bytes);
        let verdict =
            CuckooFilter::from_bytes_with(&bytes, AnyHasher::from_id).map_or_else(|error| kind(error.kind()), |_| "none");
        let hex: String = bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
        format!("{{ \"kind\": \"{verdict}\", \"hex\": \"{hex}\" }}")
    });
    damaged.collect()
}

fn damage(random: &mut Random, mut bytes: Vec<u8>) -> Vec<u8> {
    let place = random.below(bytes.len());
    match random.below(6) {
        0 => bytes[place] ^= 1 << random.below(8),
        1 => bytes.truncate(place),
        2 => bytes.extend(vec![0; 1 + random.below(9)]),
        // One bit, and one field, with both checksums as if nothing had happened.
        3 => {
            bytes[place] ^= 1 << random.below(8);
            forge(&mut bytes);
        }
        4 => {
            bytes[HEADER..].rotate_left(1);
            forge(&mut bytes);
        }
        // Another kind of filter, with a table of the length that it should have.
        _ => {
            let at = 10 + random.below(6);
            bytes[at] = random.of(&[0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 128, 255]);
            bytes[24] = random.of(&[0, 1, 2, 3, 4, 6, 8, bytes[24]]);
            fit(&mut bytes);
            forge(&mut bytes);
        }
    }
    bytes
}

/// Makes the table as long as the other fields say.
fn fit(bytes: &mut Vec<u8>) {
    let (packed, f, b) = (bytes[10] == 1, usize::from(bytes[11]), usize::from(bytes[12]));
    let bucket_bits = if packed { 4 * f.saturating_sub(1) } else { b * f };
    let len = (usize::from(bytes[24]) * bucket_bits).div_ceil(8);
    bytes.resize(HEADER + len + 8, 0);
    bytes[40..48].copy_from_slice(&(len as u64).to_le_bytes());
}

fn forge(bytes: &mut [u8]) {
    let header = Xxh3.hash(0, &bytes[..HEADER - 8]);
    bytes[HEADER - 8..HEADER].copy_from_slice(&header.to_le_bytes());
    let end = bytes.len() - 8;
    let table = Xxh3.hash(header, &bytes[HEADER..end]);
    bytes[end..].copy_from_slice(&table.to_le_bytes());
}

/// The kind's name in docs/FORMAT.md.
fn kind(kind: SnapshotErrorKind) -> &'static str {
    match kind {
        SnapshotErrorKind::Magic => "magic",
        SnapshotErrorKind::Version => "version",
        SnapshotErrorKind::Length => "length",
        SnapshotErrorKind::HeaderChecksum => "header checksum",
        SnapshotErrorKind::Parameter => "parameter",
        SnapshotErrorKind::Hasher => "hasher",
        SnapshotErrorKind::BodyChecksum => "table checksum",
        SnapshotErrorKind::Table => "table",
        SnapshotErrorKind::Count => "count",
        other => panic!("{other:?} does not come from bytes"),
    }
}
