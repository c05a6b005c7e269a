//! Validation of tables and lists from snapshots: checksums, buckets, number of items, keys and extra copies.

use core::ops::{Deref, Range};

use super::{
    SnapshotError, SnapshotErrorKind as Kind, bare,
    format::{CHECKSUM_AT, Checksum, HEADER_BYTES, ITEMS_AT, Record, TRAILER_BYTES, u64_at},
    read::verify_checksum,
};
use crate::{
    bits::{index, wide},
    elastic::GenerationPlan,
    filter::RawFilter,
    hash::HasherId,
    storage::{Snapshot, reserved},
    table::{
        Corrupt, TableParams,
        copies::{ClassKey, KEYS_AT, SnapshotCopies},
        list::ListView,
    },
};

/// The number of buckets checked at a time, small enough that they stay in the cache between checksum and check. It is a multiple
/// of 8, so each piece begins at a whole byte.
const PIECE: usize = 4096;
const _: () = assert!(PIECE.is_multiple_of(8));

/// Validates the table and the extra copies of a view.
pub(super) fn verify<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> Result<(), SnapshotError> {
    context(view, hasher).verify(view, view.listed())
}

/// Returns a validated copy of a view. It validates the copy, not the view, because mapped bytes may change at any time.
pub(super) fn verified_copy<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> Result<RawFilter, SnapshotError> {
    let mut copy = view.copied_table()?;
    let bytes = view.listed().bytes();
    let mut listed = reserved(bytes.len())?;
    listed.extend_from_slice(bytes);
    context(view, hasher).verify(&copy, SnapshotCopies::new(&listed, view.keys()))?;
    copy.set_listed(SnapshotCopies::new(&listed, view.keys()))?;
    Ok(copy)
}

/// Validates the table and the extra copies of a fixed filter whose checksum has been compared.
pub(super) fn table(filter: &RawFilter, listed: SnapshotCopies<'_>) -> Result<(), SnapshotError> {
    TableContext::in_snapshot(None).verify(filter, listed)
}

/// The checksum that a table should have.
pub(super) struct ExpectedChecksum {
    pub(super) seed: u64,
    pub(super) stored: u64,
    /// The bits of the checksum that are stored.
    pub(super) mask: u64,
}

/// The facts about a table that the bytes around it state.
pub(super) struct TableContext {
    /// The offset of the table.
    pub start: u64,
    /// The expected checksum; `None` if it has been compared.
    pub expected: Option<ExpectedChecksum>,
    /// The offset of the number of items, and the message for a wrong number.
    pub items: (u64, &'static str),
}

impl TableContext {
    /// Returns the context of a table in a fixed filter's snapshot.
    fn in_snapshot(expected: Option<ExpectedChecksum>) -> Self {
        let items = (wide(ITEMS_AT), "the table holds {} items, but the header says {}");
        Self { start: wide(HEADER_BYTES), expected, items }
    }

    /// Validates a table and its extra copies: the checksum and, since checksums can be forged, all buckets, the bits behind the
    /// last one, the number of items, and the list.
    fn verify<S: Deref<Target = [u8]>>(self, filter: &RawFilter<S>, listed: SnapshotCopies<'_>) -> Result<(), SnapshotError> {
        let start = self.start + wide(filter.table().len());
        buckets(filter, listed, self)?;
        copies(filter, listed, start)
    }
}

/// Returns the context of a view's table.
fn context<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> TableContext {
    if view.storage().is_bare() {
        return bare::context(view, hasher);
    }
    let snapshot = view.storage().all();
    let [seed, stored] = [CHECKSUM_AT, snapshot.len() - TRAILER_BYTES].map(|at| u64_at(snapshot, at));
    TableContext::in_snapshot(Some(ExpectedChecksum { seed, stored, mask: u64::MAX }))
}

/// Validates the table of a shard. It begins at `start`, and its checksum has been compared.
pub(super) fn shard<S: Deref<Target = [u8]>, P: TableParams>(shard: &RawFilter<S, P>, start: u64) -> Result<(), SnapshotError> {
    let items = (start, "the table of a shard holds {} items, but the list says {}");
    buckets(shard, SnapshotCopies::new(&[], shard.keys()), TableContext { start, expected: None, items })
}

/// Validates a table. Reports a wrong checksum rather than a corrupt bucket, since it shows that the bytes were altered after they
/// were written.
fn buckets<S: Deref<Target = [u8]>, P: TableParams>(
    filter: &RawFilter<S, P>,
    listed: SnapshotCopies<'_>,
    TableContext { start, expected, items: (len_at, message) }: TableContext,
) -> Result<(), SnapshotError> {
    let (params, bytes) = (filter.params(), filter.table());
    let bucket_bits = u64::from(params.bucket_bits());
    let mut checksum = expected.as_ref().map(|expected| Checksum::new(expected.seed));
    let mut items: Result<_, SnapshotError> = Ok(0);
    for first in (0..params.buckets()).step_by(PIECE) {
        let end = params.buckets().min(first + wide(PIECE));
        if let Some(checksum) = &mut checksum {
            checksum.update(&bytes[index(first * bucket_bits / 8)..index((end * bucket_bits).div_ceil(8))]);
        }
        items = items.and_then(|items| Ok(items + piece(filter, start, first..end)?));
    }
    if let Some(checksum) = &mut checksum {
        checksum.update(listed.bytes());
    }
    if let (Some(checksum), Some(ExpectedChecksum { stored, mask, .. })) = (checksum, expected) {
        let end = start + wide(bytes.len()) + wide(listed.bytes().len());
        verify_checksum(end, "table", stored, checksum.finish() & mask)?;
    }
    let items = items?;
    check_end(params, bytes, start)?;
    let (items, expected) = (items.saturating_add(listed.total()), filter.items());
    if items == expected { Ok(()) } else { Err(SnapshotError::new(Kind::Count, len_at, message, [items, expected])) }
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

/// Validates the extra copies of a fixed filter, whose list begins at `start`: the entries are in order, the table has each of
/// their items, and the total is their sum.
fn copies<S: Deref<Target = [u8]>>(filter: &RawFilter<S>, listed: SnapshotCopies<'_>, start: u64) -> Result<(), SnapshotError> {
    if !listed.is_canonical() {
        return Err(SnapshotError::new(Kind::Copies, start, "the counts of extra copies have a wrong length", []));
    }
    let (mut expected, mut sum) = (0, 0_u64);
    for ((key, number), at) in listed.iter().zip((start + wide(KEYS_AT)..).step_by(filter.keys().bytes())) {
        let corrupt = |message| Err(SnapshotError::new(Kind::Copies, at, message, []));
        if key < expected || number == 0 {
            return corrupt("an entry of extra copies is out of order, or has no copies");
        }
        match filter.occurrences_of(key) {
            0 => return corrupt("an item has extra copies, but the table does not have it"),
            occurrences if occurrences.checked_add(number).is_none() => return corrupt("an item has more than 2³² − 1 copies"),
            _ => {}
        }
        (expected, sum) = (key + 1, sum.saturating_add(number.into()));
    }
    let total = listed.total();
    if sum == total {
        return Ok(());
    }
    let message = "the entries have {} extra copies, but the list says {}";
    Err(SnapshotError::new(Kind::Copies, start, message, [sum, total]))
}

/// Validates the list of a shard's items, which begins at `start`: the keys are in order, each is one that an item of this shard can
/// have, and counts take no more bytes than they need.
pub(super) fn list(list: ListView<'_>, start: u64, plan: &GenerationPlan, record: &Record) -> Result<(), SnapshotError> {
    let shard = plan.class_keys_of(record.depth, record.prefix);
    let corrupt = |at, message| Err(SnapshotError::new(Kind::Table, at, message, []));
    let mut last = None;
    for ((key, count), at) in list.iter().zip((start..).step_by(plan.key_bytes().into())) {
        if last >= Some(key) {
            return corrupt(at, "the items of a shard's list are not in order");
        }
        if !shard.contains(&key) || plan.item_of(key).is_none() {
            return corrupt(at, "an item of a shard's list is one that the shard cannot have");
        }
        if count == 0 {
            return corrupt(at, "an item of a shard's list has no copies");
        }
        last = Some(key);
    }
    if list.is_canonical() { Ok(()) } else { corrupt(start, "the counts of a list are longer than they need to be") }
}

/// Validates the extra copies of a generation, whose list begins at `start`: the entries are in order, `occurrences` finds each of
/// their items in a table, and counts take no more bytes than they need.
pub(super) fn copies_of_generation(
    list: ListView<'_>,
    start: u64,
    plan: &GenerationPlan,
    occurrences: impl Fn(ClassKey) -> u32,
) -> Result<(), SnapshotError> {
    let corrupt = |at, message| Err(SnapshotError::new(Kind::Copies, at, message, []));
    let mut last = None;
    for ((entry, number), at) in list.iter().zip((start..).step_by(plan.entry_key_bytes().into())) {
        if last >= Some(entry) || number == 0 {
            return corrupt(at, "an entry of extra copies is out of order, or has no copies");
        }
        match occurrences(plan.entry_parts(entry).0) {
            0 => return corrupt(at, "an item has extra copies, but no table has it"),
            occurrences if occurrences.checked_add(number).is_none() => {
                return corrupt(at, "an item has more than 2³² − 1 copies");
            }
            _ => {}
        }
        last = Some(entry);
    }
    if list.is_canonical() { Ok(()) } else { corrupt(start, "the counts of a list are longer than they need to be") }
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
