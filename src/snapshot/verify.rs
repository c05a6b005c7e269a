//! Validation of tables and lists from snapshots: checksums, buckets, number of items, keys and extra copies.

use core::ops::{Deref, Range};

use super::{
    SnapshotError, SnapshotErrorKind as Kind,
    format::{Checksum, HEADER_BYTES, ITEMS_AT, Record, verify_checksum},
};
use crate::{
    bits::{index, wide},
    elastic::GenerationPlan,
    filter::RawFilter,
    table::{
        Corrupt, TableParams,
        copies::{KEYS_AT, SnapshotCopies},
        list::{ClassKey, ListView},
    },
};

/// The number of buckets checked at a time, small enough that they stay in the cache between checksum and check. It is a multiple
/// of 8, so each piece begins at a whole byte.
const PIECE: usize = 4096;
const _: () = assert!(PIECE.is_multiple_of(8));

/// The facts about a fixed filter's table that the bytes around it state.
pub(super) struct Frame {
    /// The offset of the table.
    pub start: u64,
    /// The seed of the checksum of the table and the extra copies.
    pub seed: u64,
    /// The stored checksum.
    pub stored: u64,
    /// The bits of the checksum that are stored.
    pub mask: u64,
    /// The offset of the number of items, and the message for a wrong number.
    pub items: (u64, &'static str),
}

impl Frame {
    /// Returns the frame of a table in a snapshot.
    pub fn in_snapshot(seed: u64, stored: u64) -> Self {
        let items = (wide(ITEMS_AT), "the table holds {} items, but the header says {}");
        Self { start: wide(HEADER_BYTES), seed, stored, mask: u64::MAX, items }
    }
}

/// Validates the table and the extra copies of a fixed filter: the checksum and, since checksums can be forged, all buckets, the
/// bits behind the last one, the number of items, and the list. Reports a wrong checksum rather than a corrupt bucket, since it
/// shows that the bytes were altered after they were written.
pub(super) fn fixed<S: Deref<Target = [u8]>>(
    filter: &RawFilter<S>,
    listed: SnapshotCopies<'_>,
    Frame { start, seed, stored, mask, items: (items_at, message) }: &Frame,
) -> Result<(), SnapshotError> {
    let mut checksum = Checksum::new(*seed);
    let items = buckets(filter, *start, |piece| checksum.update(piece));
    checksum.update(listed.bytes());
    let behind = start + wide(filter.table().len());
    verify_checksum(behind + wide(listed.bytes().len()), "table", *stored, checksum.finish() & mask)?;
    verify_items(items?.saturating_add(listed.total()), filter.items(), *items_at, message)?;
    copies_of_filter(filter, listed, behind)
}

/// Validates the table of a shard. It begins at `start`, and its checksum has been compared.
pub(super) fn shard<S: Deref<Target = [u8]>, P: TableParams>(shard: &RawFilter<S, P>, start: u64) -> Result<(), SnapshotError> {
    let items = buckets(shard, start, |_| {})?;
    verify_items(items, shard.items(), start, "the table of a shard holds {} items, but the list says {}")
}

fn verify_items(found: u64, stated: u64, at: u64, message: &'static str) -> Result<(), SnapshotError> {
    if found == stated { Ok(()) } else { Err(SnapshotError::new(Kind::Count, at, message, [found, stated])) }
}

/// Validates all buckets and the bits behind the last one, and counts the items. Calls `on_piece` with all bytes in pieces, even if
/// they are invalid.
fn buckets<S: Deref<Target = [u8]>, P: TableParams>(
    filter: &RawFilter<S, P>,
    start: u64,
    mut on_piece: impl FnMut(&[u8]),
) -> Result<u64, SnapshotError> {
    let (params, bytes) = (filter.params(), filter.table());
    let bucket_bits = u64::from(params.bucket_bits());
    let mut items: Result<_, SnapshotError> = Ok(0);
    for first in (0..params.buckets()).step_by(PIECE) {
        let end = params.buckets().min(first + wide(PIECE));
        on_piece(&bytes[index(first * bucket_bits / 8)..index((end * bucket_bits).div_ceil(8))]);
        items = items.and_then(|items| Ok(items + piece(filter, start, first..end)?));
    }
    let items = items?;
    check_end(params, bytes, start)?;
    Ok(items)
}

/// Validates a range of buckets and counts their items.
fn piece<S: Deref<Target = [u8]>, P: TableParams>(
    filter: &RawFilter<S, P>,
    start: u64,
    buckets: Range<u64>,
) -> Result<u64, SnapshotError> {
    if let Some(taken) = filter.taken(buckets.clone()) {
        return Ok(taken);
    }
    let (bucket, message, codeword) = match filter.first_corrupt(buckets.clone()) {
        Some((bucket, Corrupt::Codeword(codeword))) => {
            (bucket, "bucket {} has the codeword {}, which is not in the codebook", codeword.into())
        }
        Some((bucket, Corrupt::Order)) => (bucket, "the fingerprints of bucket {} are not in order", 0),
        Some((bucket, Corrupt::Low)) => (bucket, "a fingerprint of bucket {} has upper bits only", 0),
        // Mapped bytes changed between the two checks.
        None => (buckets.start, "the buckets changed while they were read", 0),
    };
    let bits = u64::from(filter.params().bucket_bits());
    Err(SnapshotError::new(Kind::Table, start + bucket * bits / 8, message, [bucket, codeword]))
}

/// Validates the extra copies of a fixed filter, whose list begins at `start`: the entries, and that the total is their sum.
fn copies_of_filter<S: Deref<Target = [u8]>>(
    filter: &RawFilter<S>,
    listed: SnapshotCopies<'_>,
    start: u64,
) -> Result<(), SnapshotError> {
    if !listed.is_canonical() {
        return Err(SnapshotError::new(Kind::Copies, start, "the counts of extra copies have a wrong length", []));
    }
    let offsets = (start + wide(KEYS_AT)..).step_by(filter.keys().key_bytes().into());
    let missing = "an item has extra copies, but the table does not have it";
    copies(listed.iter(), offsets, missing, |key| filter.occurrences_of(key))?;
    let (total, sum) = (listed.total(), listed.iter().map(|(_, number)| number.into()).fold(0, u64::saturating_add));
    if sum == total {
        return Ok(());
    }
    let message = "the entries have {} extra copies, but the list says {}";
    Err(SnapshotError::new(Kind::Copies, start, message, [sum, total]))
}

/// Validates the extra copies of a generation, whose list begins at `start`: the entries, for whose items `occurrences` looks in
/// the tables, and that counts take no more bytes than they need.
pub(super) fn copies_of_generation(
    list: ListView<'_>,
    start: u64,
    plan: &GenerationPlan,
    occurrences: impl Fn(ClassKey) -> u32,
) -> Result<(), SnapshotError> {
    let offsets = (start..).step_by(plan.entry_key_bytes().into());
    let missing = "an item has extra copies, but no table has it";
    copies(list.iter(), offsets, missing, |entry| occurrences(plan.entry_parts(entry).0))?;
    canonical(list, start, Kind::Copies)
}

/// Validates entries of extra copies at these offsets: they are in order, and `occurrences` finds the item of each in a table. The
/// error if it does not is `missing`.
fn copies(
    entries: impl Iterator<Item = (ClassKey, u32)>,
    offsets: impl Iterator<Item = u64>,
    missing: &'static str,
    occurrences: impl Fn(ClassKey) -> u32,
) -> Result<(), SnapshotError> {
    each_entry(Kind::Copies, entries, offsets, |is_in_order, key, number| {
        if !is_in_order || number == 0 {
            return Err("an entry of extra copies is out of order, or has no copies");
        }
        match occurrences(key) {
            0 => Err(missing),
            occurrences if occurrences.checked_add(number).is_none() => Err("an item has more than 2³² − 1 copies"),
            _ => Ok(()),
        }
    })
}

/// Validates the list of a shard's items, which begins at `start`: the keys are in order, each is one that an item of this shard can
/// have, and counts take no more bytes than they need.
pub(super) fn list(list: ListView<'_>, start: u64, plan: &GenerationPlan, record: &Record) -> Result<(), SnapshotError> {
    let (shard, offsets) = (plan.class_keys_of(record.depth, record.prefix), (start..).step_by(plan.key_bytes().into()));
    each_entry(Kind::Table, list.iter(), offsets, |is_in_order, key, count| {
        if !is_in_order {
            return Err("the items of a shard's list are not in order");
        }
        if !shard.contains(&key) || plan.item_of(key).is_none() {
            return Err("an item of a shard's list is one that the shard cannot have");
        }
        if count == 0 { Err("an item of a shard's list has no copies") } else { Ok(()) }
    })?;
    canonical(list, start, Kind::Table)
}

/// Calls `check` with each entry, and whether its key is above the one before. A message that it returns becomes an error at the
/// entry's offset.
fn each_entry(
    kind: Kind,
    entries: impl Iterator<Item = (ClassKey, u32)>,
    offsets: impl Iterator<Item = u64>,
    mut check: impl FnMut(bool, ClassKey, u32) -> Result<(), &'static str>,
) -> Result<(), SnapshotError> {
    let mut last = None;
    for ((key, count), at) in entries.zip(offsets) {
        check(last < Some(key), key, count).map_err(|message| SnapshotError::new(kind, at, message, []))?;
        last = Some(key);
    }
    Ok(())
}

fn canonical(list: ListView<'_>, start: u64, kind: Kind) -> Result<(), SnapshotError> {
    let message = "the counts of a list are longer than they need to be";
    if list.is_canonical() { Ok(()) } else { Err(SnapshotError::new(kind, start, message, [])) }
}

fn check_end(params: &impl TableParams, bytes: &[u8], start: u64) -> Result<(), SnapshotError> {
    let mut end = 0;
    for bits in params.bits_of_a_bucket() {
        let used_bits = params.buckets() * u64::from(bits);
        end += index(used_bits.div_ceil(8));
        if !used_bits.is_multiple_of(8) && bytes[end - 1] >> (used_bits % 8) != 0 {
            let message = "bits beyond the last bucket are set";
            return Err(SnapshotError::new(Kind::Table, start + wide(end - 1), message, []));
        }
    }
    Ok(())
}
