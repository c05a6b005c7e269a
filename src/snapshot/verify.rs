//! Validation of tables and lists from snapshots: checksums, buckets, number of items, keys and extra copies.

use core::ops::Range;

use super::{
    SnapshotError, SnapshotErrorKind as Kind,
    format::{Checksum, HEADER_BYTES, ITEMS_AT, Record, checksum, verify_checksum},
};
use crate::{
    bits::{index, wide},
    elastic::GenerationPlan,
    filter::RawFilter,
    message::{Text, text},
    storage::Bytes,
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
    pub items: (u64, Text),
}

impl Frame {
    /// Returns the frame of a table in a snapshot.
    pub fn in_snapshot(seed: u64, stored: u64) -> Self {
        let items = (wide(ITEMS_AT), text!("the table holds {} items, but the header says {}"));
        Self { start: wide(HEADER_BYTES), seed, stored, mask: u64::MAX, items }
    }
}

/// Validates the table and the extra copies of a fixed filter: the checksum and, since checksums can be forged, all buckets, the
/// bits behind the last one, the number of items, and the list. Reports a wrong checksum rather than a corrupt bucket, since it
/// shows that the bytes were altered after they were written.
pub(super) fn fixed<S: Bytes>(filter: &RawFilter<S>, listed: SnapshotCopies<'_>, frame: &Frame) -> Result<(), SnapshotError> {
    let mut checksum = Checksum::new(frame.seed);
    let items = buckets(filter, frame.start, &mut |piece| checksum.update(piece));
    checksum.update(listed.bytes());
    content(filter, listed, frame, checksum.finish(), items)
}

/// Does the same for a table that the copies follow in memory. Computes the checksum at once, so a program needs no code for pieces.
pub(super) fn contiguous(filter: &RawFilter<&[u8]>, frame: &Frame) -> Result<(), SnapshotError> {
    let listed = filter.listed();
    let table_and_listed = &filter.storage[..filter.table().len() + listed.bytes().len()];
    let items = buckets(filter, frame.start, &mut |_| {});
    content(filter, listed, frame, checksum(table_and_listed, frame.seed), items)
}

/// Validates what remains once the checksum and the number of items in the table are known.
fn content<S: Bytes>(
    filter: &RawFilter<S>,
    listed: SnapshotCopies<'_>,
    Frame { start, stored, mask, items: (items_at, message), .. }: &Frame,
    computed: u64,
    items: Result<u64, SnapshotError>,
) -> Result<(), SnapshotError> {
    let behind = start + wide(filter.table().len());
    verify_checksum(behind + wide(listed.bytes().len()), text!("table"), *stored, computed & mask)?;
    verify_items(items?.saturating_add(listed.total()), filter.items(), *items_at, *message)?;
    copies_of_filter(filter, listed, behind)
}

/// Validates a table without a checksum, or whose checksum has been compared: all buckets, the bits behind the last one, and the
/// number of items. The table begins at `start`. The error for a wrong number of items has this offset and this message.
pub(crate) fn table<S: Bytes, P: TableParams>(
    filter: &RawFilter<S, P>,
    start: u64,
    items_at: u64,
    message: Text,
) -> Result<(), SnapshotError> {
    let items = buckets(filter, start, &mut |_| {})?;
    verify_items(items, filter.items(), items_at, message)
}

fn verify_items(found: u64, stated: u64, at: u64, message: Text) -> Result<(), SnapshotError> {
    if found == stated { Ok(()) } else { Err(SnapshotError::new(Kind::Count, at, message, [found, stated])) }
}

/// Validates all buckets and the bits behind the last one, and counts the items. Calls `on_piece` with all bytes in pieces, even if
/// they are invalid.
fn buckets<S: Bytes, P: TableParams>(
    filter: &RawFilter<S, P>,
    start: u64,
    on_piece: &mut dyn FnMut(&[u8]),
) -> Result<u64, SnapshotError> {
    let (buckets, bytes, [bucket_bits, _]) = (filter.params().buckets(), filter.table(), filter.params().bits_of_a_bucket());
    let bucket_bits = u64::from(bucket_bits);
    let mut items: Result<_, SnapshotError> = Ok(0);
    for first in (0..buckets).step_by(PIECE) {
        let end = buckets.min(first + wide(PIECE));
        on_piece(&bytes[index(first * bucket_bits / 8)..index((end * bucket_bits).div_ceil(8))]);
        items = items.and_then(|items| Ok(items + piece(filter, start, first..end)?));
    }
    let items = items?;
    check_end(filter.params(), bytes, start)?;
    Ok(items)
}

/// Validates a range of buckets and counts their items.
fn piece<S: Bytes, P: TableParams>(filter: &RawFilter<S, P>, start: u64, buckets: Range<u64>) -> Result<u64, SnapshotError> {
    if let Some(taken) = filter.taken(buckets.clone()) {
        return Ok(taken);
    }
    let (bucket, message, codeword) = match filter.first_corrupt(buckets.clone()) {
        Some((bucket, Corrupt::Codeword(codeword))) => {
            (bucket, text!("bucket {} has the codeword {}, which is not in the codebook"), codeword.into())
        }
        Some((bucket, Corrupt::Order)) => (bucket, text!("the fingerprints of bucket {} are not in order"), 0),
        Some((bucket, Corrupt::Low)) => (bucket, text!("a fingerprint of bucket {} has upper bits only"), 0),
        // Mapped bytes changed between the two checks.
        None => (buckets.start, text!("the buckets changed while they were read"), 0),
    };
    let [bits, _] = filter.params().bits_of_a_bucket().map(u64::from);
    Err(SnapshotError::new(Kind::Table, start + bucket * bits / 8, message, [bucket, codeword]))
}

/// Validates the extra copies of a fixed filter, whose list begins at `start`: the entries, and that the total is their sum.
fn copies_of_filter<S: Bytes>(filter: &RawFilter<S>, listed: SnapshotCopies<'_>, start: u64) -> Result<(), SnapshotError> {
    if !listed.is_canonical() {
        return Err(SnapshotError::new(Kind::Copies, start, text!("the counts of extra copies have a wrong length"), []));
    }
    let offsets = (start + wide(KEYS_AT), filter.keys().key_bytes());
    let missing = text!("an item has extra copies, but the table does not have it");
    copies(&mut listed.iter(), offsets, missing, &|key| filter.occurrences_of(key))?;
    let (total, sum) = (listed.total(), listed.iter().map(|(_, number)| number.into()).fold(0, u64::saturating_add));
    if sum == total {
        return Ok(());
    }
    let message = text!("the entries have {} extra copies, but the list says {}");
    Err(SnapshotError::new(Kind::Copies, start, message, [sum, total]))
}

/// Validates the extra copies of a generation, whose list begins at `start`: the entries, for whose items `occurrences` looks in
/// the tables, and that counts take no more bytes than they need.
pub(super) fn copies_of_generation(
    list: ListView<'_>,
    start: u64,
    plan: &GenerationPlan,
    occurrences: &dyn Fn(ClassKey) -> u32,
) -> Result<(), SnapshotError> {
    let offsets = (start, plan.entry_key_bytes());
    let missing = text!("an item has extra copies, but no table has it");
    copies(&mut list.iter(), offsets, missing, &|entry| occurrences(plan.entry_parts(entry).0))?;
    canonical(list, start, Kind::Copies)
}

/// Validates entries of extra copies, whose keys have this offset and length: they are in order, and `occurrences` finds the item of
/// each in a table. The error if it does not is `missing`.
fn copies(
    entries: &mut dyn Iterator<Item = (ClassKey, u32)>,
    offsets: (u64, u8),
    missing: Text,
    occurrences: &dyn Fn(ClassKey) -> u32,
) -> Result<(), SnapshotError> {
    each_entry(Kind::Copies, entries, offsets, &mut |is_in_order, key, number| {
        if !is_in_order || number == 0 {
            return Err(text!("an entry of extra copies is out of order, or has no copies"));
        }
        match occurrences(key) {
            0 => Err(missing),
            occurrences if occurrences.checked_add(number).is_none() => Err(text!("an item has more than 2³² − 1 copies")),
            _ => Ok(()),
        }
    })
}

/// Validates the list of a shard's items, which begins at `start`: the keys are in order, each is one that an item of this shard can
/// have, and counts take no more bytes than they need.
pub(super) fn list(list: ListView<'_>, start: u64, plan: &GenerationPlan, record: &Record) -> Result<(), SnapshotError> {
    let (shard, offsets) = (plan.class_keys_of(record.depth, record.prefix), (start, plan.key_bytes()));
    each_entry(Kind::Table, &mut list.iter(), offsets, &mut |is_in_order, key, count| {
        if !is_in_order {
            return Err(text!("the items of a shard's list are not in order"));
        }
        if !shard.contains(&key) || plan.item_of(key).is_none() {
            return Err(text!("an item of a shard's list is one that the shard cannot have"));
        }
        if count == 0 { Err(text!("an item of a shard's list has no copies")) } else { Ok(()) }
    })?;
    canonical(list, start, Kind::Table)
}

/// Calls `check` with each entry, and whether its key is above the one before. A message that it returns becomes an error at the
/// entry's offset.
fn each_entry(
    kind: Kind,
    entries: &mut dyn Iterator<Item = (ClassKey, u32)>,
    (start, key_bytes): (u64, u8),
    check: &mut dyn FnMut(bool, ClassKey, u32) -> Result<(), Text>,
) -> Result<(), SnapshotError> {
    let (mut last, mut at) = (None, start);
    for (key, count) in entries {
        check(last < Some(key), key, count).map_err(|message| SnapshotError::new(kind, at, message, []))?;
        (last, at) = (Some(key), at + u64::from(key_bytes));
    }
    Ok(())
}

fn canonical(list: ListView<'_>, start: u64, kind: Kind) -> Result<(), SnapshotError> {
    let message = text!("the counts of a list are longer than they need to be");
    if list.is_canonical() { Ok(()) } else { Err(SnapshotError::new(kind, start, message, [])) }
}

fn check_end<P: TableParams>(params: &P, bytes: &[u8], start: u64) -> Result<(), SnapshotError> {
    let mut end = 0;
    for bits in params.bits_of_a_bucket() {
        let used_bits = params.buckets() * u64::from(bits);
        end += index(used_bits.div_ceil(8));
        if !used_bits.is_multiple_of(8) && bytes[end - 1] >> (used_bits % 8) != 0 {
            let message = text!("bits beyond the last bucket are set");
            return Err(SnapshotError::new(Kind::Table, start + wide(end - 1), message, []));
        }
    }
    Ok(())
}
