//! Snapshots with random parameters, and damaged snapshots with the library's errors. The seeds are fixed.

use crate::{
    golden::{Golden, Items, Step},
    split_mix::SplitMix64,
};
use koel::{
    Addressing, CuckooFilter, SnapshotErrorKind, TableKind,
    hash::{AnyHasher, HasherId},
};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const SNAPSHOTS: usize = 60;
/// The number of damaged variants of every snapshot that has at most [`SMALL`] bytes.
const DAMAGED: usize = 40;
const SMALL: usize = 600;
const HEADER: usize = 64;

pub(crate) struct Random(pub(crate) SplitMix64);

impl Random {
    pub(crate) fn word(&mut self) -> u64 {
        self.0.next().expect("the generator never ends")
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.word() % end as u64).expect("below a usize")
    }

    pub(crate) fn choose<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len())]
    }

    fn in_range(&mut self, range: Range<u32>) -> u32 {
        range.start + u32::try_from(self.word() % u64::from(range.end - range.start)).expect("below a u32")
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
    let addressing = random.choose(&[Addressing::AnySize, Addressing::PowerOfTwo]);
    let buckets = match addressing {
        Addressing::PowerOfTwo => 1 << random.in_range(0..7),
        _ => 2 * u64::from(random.in_range(1..60)),
    };
    let slots = buckets * u64::from(b);
    let mut part = || random.word() % slots;
    let mut steps = vec![Step::Insert(0..part() + slots / 2), Step::Remove(0..part()), Step::Insert(slots / 4..part())];
    // Some filters have more copies of an item than its buckets have room for.
    let copies = Step::Insert(0..1 + slots / 16);
    steps.extend(vec![copies; if n.is_multiple_of(5) { 40 } else { 0 }]);
    Golden {
        file: format!("random_{n}.koel"),
        table,
        f,
        b,
        addressing,
        buckets,
        hasher: random.choose(&[HasherId::XXH3, HasherId::METRO_HASH_64, HasherId::REDIS_BLOOM]),
        seed: random.word(),
        items: random.choose(&[Items::Text, Items::U32, Items::Long, Items::Hash]),
        steps,
        answers: None,
    }
}

/// Returns randomly damaged snapshots as JSON: their bytes, and the kind of the library's error, if any.
pub(crate) fn damaged(files: &[Golden]) -> Vec<String> {
    let mut random = Random(SplitMix64(2));
    let made = files.iter().filter_map(Golden::make).map(|(filter, _)| filter.to_bytes());
    let small = made.filter(|bytes| bytes.len() <= SMALL);
    let damaged = small.flat_map(|bytes| vec![bytes; DAMAGED]).map(|bytes| damage(&mut random, bytes));
    let verdicts = damaged.chain(headers()).map(|bytes| {
        verdict_json(&bytes, CuckooFilter::from_bytes_with(&bytes, AnyHasher::from_id).map_err(|error| error.kind()).err())
    });
    verdicts.collect()
}

/// Formats bytes and the kind of the library's error as JSON.
pub(crate) fn verdict_json(bytes: &[u8], refused: Option<SnapshotErrorKind>) -> String {
    let verdict = refused.map_or("none", kind);
    let hex: String = bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    format!("{{ \"kind\": \"{verdict}\", \"hex\": \"{hex}\" }}")
}

/// Returns headers with fields at their limits and the table length that follows, but without a table.
fn headers() -> Vec<Vec<u8>> {
    let mut headers = Vec::new();
    for (packed, power_of_two, f, b) in limits() {
        let bucket_bits = bucket_bits(packed == 1, f.into(), b.into());
        let most = [1 << 32, 1 << 64u8.saturating_sub(f).min(63), (u64::MAX - 7) / bucket_bits.max(1)];
        let most = most.into_iter().flat_map(|most| [most - most % 2, most - most % 2 + 1, most - most % 2 + 2]);
        for buckets in (0..5).chain([1 << 31, 1 << 33, 1 << 63]).chain(most) {
            let Ok(len) = u64::try_from((u128::from(buckets) * u128::from(bucket_bits)).div_ceil(8)) else { continue };
            let mut bytes = CuckooFilter::builder().buckets(2).fingerprint_bits(8).build().expect("valid parameters").to_bytes();
            bytes.truncate(HEADER);
            bytes[10..14].copy_from_slice(&[packed, f, b, power_of_two]);
            bytes[24..32].copy_from_slice(&buckets.to_le_bytes());
            bytes[40..48].copy_from_slice(&len.to_le_bytes());
            bytes.extend([0; 8]);
            forge(&mut bytes);
            headers.push(bytes);
        }
    }
    headers
}

/// Returns valid and invalid values of four fields, around their limits: table kind, addressing, f and b.
fn limits() -> impl Iterator<Item = (u8, u8, u8, u8)> {
    let kinds = [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (0, 2)].into_iter();
    let lengths = kinds.flat_map(|(packed, power_of_two)| [1, 2, 3, 4, 32, 33].map(|f| (packed, power_of_two, f)));
    lengths.flat_map(|(packed, power_of_two, f)| [0, 1, 4, 5, 16, 17].map(|b| (packed, power_of_two, f, b)))
}

fn bucket_bits(packed: bool, f: u64, b: u64) -> u64 {
    if packed { 4 * f.saturating_sub(1) } else { b * f }
}

fn damage(random: &mut Random, mut bytes: Vec<u8>) -> Vec<u8> {
    let place = random.below(bytes.len());
    match random.below(7) {
        0 => bytes[place] ^= 1 << random.below(8),
        1 => bytes.truncate(place),
        2 => bytes.extend(vec![0; 1 + random.below(9)]),
        // A flipped bit or a rotated body, with recomputed checksums.
        3 => {
            bytes[place] ^= 1 << random.below(8);
            forge(&mut bytes);
        }
        4 => {
            bytes[HEADER..].rotate_left(1);
            forge(&mut bytes);
        }
        // Two bytes of the header at their limits.
        5 => {
            let at = random.below(HEADER - 9);
            bytes[at..at + 2].copy_from_slice(&[(); 2].map(|()| random.choose(&[0, 1, 0x7f, 0x80, 0xff])));
            forge(&mut bytes);
        }
        // Different parameters, with a table of the length that they require.
        _ => {
            let at = 10 + random.below(6);
            bytes[at] = random.choose(&[0, 1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 128, 255]);
            bytes[24] = random.choose(&[0, 1, 2, 3, 4, 6, 8, bytes[24]]);
            fit(&mut bytes);
            forge(&mut bytes);
        }
    }
    bytes
}

/// Resizes the table to the length that the other fields require.
fn fit(bytes: &mut Vec<u8>) {
    let len = (u64::from(bytes[24]) * bucket_bits(bytes[10] == 1, bytes[11].into(), bytes[12].into())).div_ceil(8);
    bytes.resize(HEADER + usize::try_from(len).expect("a small table") + 8, 0);
    bytes[40..48].copy_from_slice(&len.to_le_bytes());
}

/// Recomputes the checksums of the header and the table.
fn forge(bytes: &mut [u8]) {
    let header = xxh3_64_with_seed(&bytes[..HEADER - 8], 0);
    bytes[HEADER - 8..HEADER].copy_from_slice(&header.to_le_bytes());
    let end = bytes.len() - 8;
    let table = xxh3_64_with_seed(&bytes[HEADER..end], header);
    bytes[end..].copy_from_slice(&table.to_le_bytes());
}

/// Returns the kind's name in docs/FORMAT.md.
fn kind(kind: SnapshotErrorKind) -> &'static str {
    match kind {
        SnapshotErrorKind::Magic => "magic",
        SnapshotErrorKind::Version => "version",
        SnapshotErrorKind::Length => "length",
        SnapshotErrorKind::TrailingBytes => "trailing bytes",
        SnapshotErrorKind::HeaderChecksum => "header checksum",
        SnapshotErrorKind::Parameter => "parameter",
        SnapshotErrorKind::OtherType => "other type",
        SnapshotErrorKind::Hasher => "hasher",
        SnapshotErrorKind::BodyChecksum => "table checksum",
        SnapshotErrorKind::Table => "table",
        SnapshotErrorKind::Count => "count",
        SnapshotErrorKind::Copies => "copies",
        SnapshotErrorKind::Shards => "shards",
        other => panic!("{other:?} is not an error of bytes"),
    }
}
