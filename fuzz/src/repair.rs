//! Repairs parts of damaged snapshots, so that fuzzed bytes pass checks that they would hardly ever pass by chance.

#![allow(clippy::cast_possible_truncation, reason = "a byte of a number")]

use super::formulas::{Formulas, HEADER, MAGIC, number};

/// The magic, the version, and the number of entries of extra copies, which becomes small.
const FRAME: u8 = 1;
/// Header fields with invalid values.
const FIELDS: u8 = 1 << 1;
/// The field L of docs/FORMAT.md, and the length of the bytes, which follow from the other fields.
const LENGTH: u8 = 1 << 2;
/// Invalid buckets, such as those in the wrong order.
const TABLE: u8 = 1 << 3;
/// The item count.
const COUNT: u8 = 1 << 4;
const HEADER_CHECKSUM: u8 = 1 << 5;
const TABLE_CHECKSUM: u8 = 1 << 6;

/// Longer tables are not generated, so that more inputs can be tried.
const LONGEST: u64 = 1 << 13;

/// Bytes of a partition's section before its records, and of a shard's record, in a growing filter's snapshot.
const SECTION: usize = 32;
const RECORD: usize = 24;

/// Returns the snapshot that an input gives, and a number for the lengths of the pieces that are read, and for the alignment. An
/// input that begins like a snapshot is one. Of other inputs, the first byte says which parts are repaired, and the second is the
/// number.
pub fn snapshot(input: &[u8]) -> (Vec<u8>, usize) {
    match input {
        [parts, odd, bytes @ ..] if !input.starts_with(&MAGIC[..4]) => {
            let mut bytes = bytes.to_vec();
            repair(&mut bytes, *parts);
            (bytes, usize::from(*odd))
        }
        _ => (input.to_vec(), 1),
    }
}

/// Returns whether this is a table kind of a growing filter.
pub fn is_growing(kind: u8) -> bool {
    matches!(kind, 2 | 3)
}

/// Repairs the parts whose bits are set in `parts`.
pub fn repair(bytes: &mut Vec<u8>, parts: u8) {
    let wants = |part| parts & part != 0;
    if bytes.len() < HEADER {
        if !wants(LENGTH) {
            return;
        }
        bytes.resize(HEADER, 0);
    }
    if wants(FRAME) {
        put(bytes, 0, &MAGIC);
        put(bytes, 8, &[1, 0]);
    }
    // All other repairs apply to fixed filters only.
    if is_growing(bytes[10]) {
        if wants(HEADER_CHECKSUM) {
            seal(bytes);
        }
        return;
    }
    if wants(FRAME) {
        let entries = u64::from(bytes[48] % 8).saturating_sub(3);
        put(bytes, 48, &entries.to_le_bytes());
    }
    if wants(FIELDS) {
        repair_fields(bytes);
    }
    let formulas = Formulas::of_header(bytes);
    if let Some(len) = formulas.table_bytes().filter(|_| wants(LENGTH)) {
        put(bytes, 40, &len.to_le_bytes());
        if len <= LONGEST {
            bytes.resize(HEADER + len as usize + listed_bytes(bytes) + 8, 0);
        }
    }
    let checksum = xxhash_rust::xxh3::xxh3_64_with_seed;
    // The last eight bytes are the trailer, whatever length the header claims.
    let end = bytes.len().saturating_sub(8).max(HEADER);
    let table_end = end.saturating_sub(listed_bytes(bytes)).max(HEADER);
    if formulas.is_possible() && formulas.table_bytes() == Some((table_end - HEADER) as u64) {
        if wants(TABLE) {
            formulas.repair(&mut bytes[HEADER..table_end], true);
        }
        if let Some(buckets) = formulas.table(&bytes[HEADER..table_end]).filter(|_| wants(COUNT)) {
            let items = buckets.iter().flatten().filter(|&&slot| slot != 0).count() as u64;
            let total = formulas.repair_copies(&buckets, &mut bytes[table_end..end]);
            put(bytes, 32, &items.saturating_add(total).to_le_bytes());
        }
    }
    if wants(HEADER_CHECKSUM) {
        let header = checksum(&bytes[..56], 0);
        put(bytes, 56, &header.to_le_bytes());
    }
    if wants(TABLE_CHECKSUM) && bytes.len() >= end + 8 {
        let table = checksum(&bytes[HEADER..end], number(bytes, 56));
        put(bytes, end, &table.to_le_bytes());
    }
}

/// Gives the hasher and the parameters of the table valid values, with few buckets.
fn repair_fields(bytes: &mut [u8]) {
    bytes[10] &= 1;
    bytes[13] &= 1;
    bytes[14] = 1 + bytes[14] % 3;
    bytes[15] = 0;
    let is_packed = bytes[10] == 1;
    bytes[11] = if is_packed { 4 + bytes[11] % 29 } else { 2 + bytes[11] % 31 };
    bytes[12] = if is_packed { 4 } else { 1 + bytes[12] % 16 };
    let buckets = bytes[24];
    let buckets = if bytes[13] == 1 { 1 << (buckets % 7) } else { 2 + 2 * (u64::from(buckets) % 40) };
    put(bytes, 24, &buckets.to_le_bytes());
}

/// Returns the length in bytes of the list of extra copies, taking the header's number of entries as at most [`LONGEST`].
fn listed_bytes(bytes: &[u8]) -> usize {
    match number(bytes, 48).min(LONGEST) as usize {
        0 => 0,
        entries => 8 + 12 * entries,
    }
}

/// Recomputes the checksums of all sections that can be found.
fn seal(bytes: &mut [u8]) {
    let checksum = xxhash_rust::xxh3::xxh3_64_with_seed;
    let header = checksum(&bytes[..56], 0);
    put(bytes, 56, &header.to_le_bytes());
    let (mut at, mut all) = (HEADER, Vec::new());
    for partition in 0..1_u64 << (bytes[13] % 9) {
        if at.saturating_add(SECTION) > bytes.len() {
            return;
        }
        let (shards, length) = (number(bytes, at + 8) as usize, number(bytes, at + 16) as usize);
        let list = at + SECTION;
        // A partition without shards has its item count instead of records.
        let records = if shards == 0 && length > 0 { Some(8) } else { shards.checked_mul(RECORD) };
        let Some(tables) = records.and_then(|len| list.checked_add(len)).filter(|&end| end <= bytes.len()) else {
            return;
        };
        // The tables are located as if all were of generation 0.
        let mut start = tables;
        for shard in 0..shards {
            let (f, b, above) =
                (u64::from(bytes[11]), u64::from(bytes[12]), bytes[29].wrapping_sub(bytes[list + shard * RECORD + 1]));
            let per_bucket = if bytes[10] == 3 { 4 * f.saturating_sub(1) } else { f * b };
            let m = u64::from(number(bytes, 24) as u32);
            // A table's checksum does not cover its padding.
            let used = (m * per_bucket).div_ceil(8).saturating_add((m * b * u64::from(above)).div_ceil(8)) as usize;
            let Some(covered) = start.checked_add(used).and_then(|end| bytes.get(start..end)) else { break };
            let sum = checksum(covered, 0);
            put(bytes, list + shard * RECORD + 16, &sum.to_le_bytes());
            start += used.next_multiple_of(8);
        }
        let covered = [&bytes[at..at + 24], &bytes[list..tables]].concat();
        let sum = checksum(&covered, header.wrapping_add(partition));
        put(bytes, at + 24, &sum.to_le_bytes());
        // Behind the tables are lists of items or copies, and their checksum.
        let end = list.saturating_add(length).saturating_sub(8);
        if let Some(copies) = bytes.get(start..end).filter(|copies| !copies.is_empty()) {
            let sum_of_copies = checksum(copies, sum);
            if end + 8 <= bytes.len() {
                put(bytes, end, &sum_of_copies.to_le_bytes());
            }
        }
        all.extend_from_slice(&sum.to_le_bytes());
        let Some(next) = list.checked_add(length) else { return };
        at = next;
    }
    if let Some(end) = bytes.len().checked_sub(8).filter(|&end| end == at) {
        let sum = checksum(&all, header);
        put(bytes, end, &sum.to_le_bytes());
    }
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}
