//! Repairs parts of damaged snapshots, so that fuzzed bytes pass checks that they would hardly ever pass by chance.

#![allow(clippy::cast_possible_truncation, reason = "a byte of a number")]

use std::sync::OnceLock;

use koel::CuckooFilter;

use super::{
    formulas::{Formulas, HEADER, MAGIC, number},
    sections::{is_growing, seal},
};

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

/// Returns the version of the format, as the library writes it.
fn version() -> [u8; 2] {
    static VERSION: OnceLock<[u8; 2]> = OnceLock::new();
    *VERSION.get_or_init(|| {
        let empty = CuckooFilter::builder().capacity(1).fingerprint_bits(8).build().expect("a filter for one item");
        let bytes = empty.to_bytes();
        [bytes[8], bytes[9]]
    })
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
        put(bytes, 8, &version());
    }
    // All other repairs apply to fixed filters only.
    if is_growing(bytes[10]) {
        if wants(HEADER_CHECKSUM) {
            seal(bytes);
        }
        return;
    }
    if wants(FRAME) {
        put(bytes, 48, &[0; 8]);
    }
    if wants(FIELDS) {
        repair_fields(bytes);
    }
    let formulas = Formulas::of_header(bytes);
    if wants(LENGTH) {
        repair_length(bytes, &formulas);
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

/// Gives the snapshot the length of its table, and of a list of a few keys, all with one copy.
fn repair_length(bytes: &mut Vec<u8>, formulas: &Formulas) {
    let Some(len) = formulas.table_bytes() else { return };
    let entries = usize::from(bytes[40] % 8).saturating_sub(3);
    let listed = if entries == 0 { 0 } else { 9 + entries * formulas.list_key_bytes() };
    put(bytes, 40, &(listed as u64).to_le_bytes());
    if len <= LONGEST {
        bytes.resize(HEADER + len as usize + listed + 8, 0);
        if listed > 0 {
            bytes[HEADER + len as usize + 8] = 0;
        }
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

/// Returns the length in bytes of the list of extra copies, taking the header's number as at most [`LONGEST`].
fn listed_bytes(bytes: &[u8]) -> usize {
    number(bytes, 40).min(LONGEST) as usize
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}
