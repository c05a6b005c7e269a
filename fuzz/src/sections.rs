//! The sections of a growing filter's snapshot, by the formulas of docs/FORMAT.md: where records and bodies are, and their checksums.

use super::formulas::{HEADER, number};
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64_with_seed as checksum;

pub const SECTION: usize = 32;
pub const RECORD: usize = 24;

/// The kinds of bodies in records.
const TABLE: u8 = 0;
pub const COPIES: u8 = 2;

/// A shard of a later generation has at most this many buckets.
const LATER_BUCKETS: u64 = 268;
/// The second generation knows at least this many bits more than the first.
const EXTRA_BITS: u64 = 6;
/// No generation knows more bits than these.
const KNOWN_BITS: u64 = 48;

/// A partition's section.
pub struct Section {
    pub at: usize,
    pub records: Range<usize>,
    /// The bodies without padding, as far as the bytes have them.
    pub bodies: Vec<Range<usize>>,
}

impl Section {
    /// Returns the offsets of the records, and their bodies.
    pub fn bodies(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        self.records.clone().step_by(RECORD).zip(self.bodies.iter().cloned())
    }
}

/// Returns true if this is the table kind of a growing filter.
pub fn is_growing(kind: u8) -> bool {
    kind == 2
}

/// The numbers of a generation, which follow from the header.
struct Generation {
    m: u64,
    known: u64,
    inserted: u64,
}

impl Generation {
    /// Returns the generation of this number. The header may be invalid.
    fn of(header: &[u8], n: u64) -> Self {
        let (m, g, spare) = (number(header, 24) & 0xffff_ffff, u64::from(header[29]), u64::from(header[30]));
        if n == 0 {
            return Self { m, known: g, inserted: 0 };
        }
        let buckets = |k: u64| m.div_ceil(1 << k).next_multiple_of(2);
        let k = (0..32).find(|&k| buckets(k) <= LATER_BUCKETS).unwrap_or(0);
        let inserted = if k == 0 { 0 } else { k + 1 };
        let second = (g + inserted + EXTRA_BITS).max((g + k + 3).min(27) + spare);
        Self { m: buckets(k), known: (second + 4 * (n - 1)).min(KNOWN_BITS), inserted }
    }
}

/// Returns the length of a record's body in bytes.
fn body_bytes(header: &[u8], record: &[u8]) -> u64 {
    let [n, d, kind, count_bytes] = [0, 1, 2, 3].map(|at| u64::from(record[at]));
    let [this, next] = [n, n + 1].map(|n| Generation::of(header, n));
    let f = u64::from(header[11]);
    if kind == u64::from(TABLE) {
        return (this.m * 4 * f.saturating_sub(1)).div_ceil(8) + (this.m * 4 * this.known.saturating_sub(d)).div_ceil(8);
    }
    let bucket_bits = u64::from(u64::BITS - this.m.saturating_sub(1).leading_zeros());
    let extra = (next.known + this.inserted).saturating_sub(next.inserted + this.known).min(16);
    let key_bits = f + bucket_bits + this.known + if kind == u64::from(COPIES) { extra } else { 0 };
    number(record, 8).saturating_mul(key_bits.div_ceil(8) + count_bytes)
}

/// Returns the sections that can be found before the trailer. The bytes have at least a header.
pub fn sections(bytes: &[u8]) -> Vec<Section> {
    let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (end, mut at, mut all) = (bytes.len().saturating_sub(8), HEADER, Vec::new());
    while all.len() < 1 << (bytes[13] % 9) && at.saturating_add(SECTION) <= end {
        let start = at + SECTION;
        let len = index(number(bytes, at + 8)).saturating_mul(RECORD).min(end - start);
        let mut section = Section { at, records: start..start + len, bodies: Vec::new() };
        let mut next = start + len;
        for record in bytes[section.records.clone()].chunks_exact(RECORD) {
            let len = index(body_bytes(&bytes[..HEADER], record));
            let Some(after) = next.checked_add(len).filter(|&after| after <= end) else { break };
            section.bodies.push(next..after);
            next = after.next_multiple_of(8);
        }
        all.push(section);
        at = start.saturating_add(index(number(bytes, at + 16)));
    }
    all
}

/// Recomputes all checksums that can be found, as a forger can.
pub fn seal(bytes: &mut [u8]) {
    let put = |bytes: &mut [u8], at: usize, sum: u64| bytes[at..at + 8].copy_from_slice(&sum.to_le_bytes());
    let header = checksum(&bytes[..HEADER - 8], 0);
    put(bytes, HEADER - 8, header);
    let mut all = Vec::new();
    for (section, partition) in sections(bytes).iter().zip(0..) {
        for (record, body) in section.bodies() {
            let sum = checksum(&bytes[body], 0);
            put(bytes, record + 16, sum);
        }
        let covered = [&bytes[section.at..section.at + 24], &bytes[section.records.clone()]].concat();
        let sum = checksum(&covered, header.wrapping_add(partition));
        put(bytes, section.at + 24, sum);
        all.extend(sum.to_le_bytes());
    }
    if let Some(end) = bytes.len().checked_sub(8).filter(|&end| end >= HEADER) {
        put(bytes, end, checksum(&all, header));
    }
}
