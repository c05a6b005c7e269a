//! Validation of tables from snapshots: checksum, buckets, and number of items.

use core::ops::{Deref, Range};

use super::{
    SnapshotError, SnapshotErrorKind as Kind, bare,
    format::{CHECKSUM_AT, Checksum, HEADER_BYTES, ITEMS_AT, TRAILER_BYTES, number},
    read::check_sum,
};
use crate::{
    bits::{index, wide},
    elastic::{FewInSnapshot, GenerationPlan},
    filter::RawFilter,
    hash::HasherId,
    storage::Snapshot,
    table::{
        Corrupt, TableParams,
        copies::{ClassKey, ENTRY_BYTES, LONG_ENTRY_BYTES, Listed, LongEntries},
    },
};

/// Buckets checked at a time, few enough to stay in the cache between checksum and check. A multiple of 8, so that each piece
/// begins at a whole byte.
const PIECE: usize = 4096;
const _: () = assert!(PIECE.is_multiple_of(8));

/// Validates the table of a view.
pub(super) fn verify<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> Result<(), SnapshotError> {
    around(view, hasher).verify(view, view.listed())
}

/// A validated copy of a view. Validates the copy, because mapped bytes may change at any time.
pub(super) fn verified_copy<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> Result<RawFilter, SnapshotError> {
    let mut copy = view.copied_table()?;
    let listed = view.listed().copied()?;
    around(view, hasher).verify(&copy, Listed::new(&listed))?;
    copy.set_listed(Listed::new(&listed))?;
    Ok(copy)
}

/// Validates the table and the further copies of a snapshot of a filter of fixed size whose checksum has been compared.
pub(super) fn table(filter: &RawFilter, listed: Listed<'_>) -> Result<(), SnapshotError> {
    Around::header(None).verify(filter, listed)
}

/// The checksum that a table should have.
pub(super) struct ExpectedChecksum {
    pub(super) seed: u64,
    pub(super) stored: u64,
    /// The bits that are stored.
    pub(super) mask: u64,
}

/// What stands around a table.
pub(super) struct Around {
    /// The offset of the table.
    pub start: u64,
    /// The checksum, unless it has been compared.
    pub expected: Option<ExpectedChecksum>,
    /// The offset of the number of items, and the words for another number.
    pub items: (u64, &'static str),
}

impl Around {
    /// The header and the trailer of a snapshot.
    fn header(expected: Option<ExpectedChecksum>) -> Self {
        let items = (wide(ITEMS_AT), "the table holds {} items, but the header says {}");
        Self { start: wide(HEADER_BYTES), expected, items }
    }

    /// Validates a table and its further copies: the checksum and, since checksums can be forged, all buckets, the bits behind the
    /// last one, the number of items, and the list.
    fn verify<S: Deref<Target = [u8]>>(self, filter: &RawFilter<S>, listed: Listed<'_>) -> Result<(), SnapshotError> {
        let start = self.start + wide(filter.table().len());
        buckets(filter, listed, self)?;
        copies(filter, listed, start)
    }
}

/// What stands around the table of a view.
fn around<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> Around {
    if view.storage().is_bare() {
        return bare::around(view, hasher);
    }
    let snapshot = view.storage().all();
    let [seed, stored] = [CHECKSUM_AT, snapshot.len() - TRAILER_BYTES].map(|at| number(snapshot, at));
    Around::header(Some(ExpectedChecksum { seed, stored, mask: u64::MAX }))
}

/// The same of a shard, whose table begins at `start` and has the right checksum.
pub(super) fn shard<S: Deref<Target = [u8]>, P: TableParams>(shard: &RawFilter<S, P>, start: u64) -> Result<(), SnapshotError> {
    let items = (start, "the table of a shard holds {} items, but the list says {}");
    buckets(shard, Listed::new(&[]), Around { start, expected: None, items })
}

/// Validates a table. Reports a wrong checksum in preference to a corrupt bucket, since it shows that the bytes were altered after
/// they were written.
fn buckets<S: Deref<Target = [u8]>, P: TableParams>(
    filter: &RawFilter<S, P>,
    listed: Listed<'_>,
    Around { start, expected, items: (len_at, words) }: Around,
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
        check_sum(end, "table", stored, checksum.finish() & mask)?;
    }
    let items = items?;
    check_end(params, bytes, start)?;
    let (items, expected) = (items.saturating_add(listed.total()), wide(filter.len()));
    if items == expected { Ok(()) } else { Err(SnapshotError::new(Kind::Count, len_at, words, [items, expected])) }
}

/// Counts the items in a range of buckets.
fn piece<S: Deref<Target = [u8]>, P: TableParams>(
    filter: &RawFilter<S, P>,
    start: u64,
    buckets: Range<u64>,
) -> Result<u64, SnapshotError> {
    if let Some(taken) = filter.taken(buckets.clone()) {
        return Ok(taken);
    }
    let (bucket, words, codeword) = match filter.first_corrupt(buckets.clone()) {
        Some((bucket, Corrupt::Codeword(codeword))) => {
            (bucket, "bucket {} has the codeword {}, which is not in the codebook", codeword.into())
        }
        Some((bucket, Corrupt::Order)) => (bucket, "the fingerprints of bucket {} are not in order", 0),
        Some((bucket, Corrupt::Low)) => (bucket, "a fingerprint of bucket {} has upper bits only", 0),
        // Mapped bytes have changed between the two checks.
        None => (buckets.start, "the buckets changed while they were read", 0),
    };
    let bits = u64::from(filter.params().bucket_bits());
    Err(SnapshotError::new(Kind::Table, start + bucket * bits / 8, words, [bucket, codeword]))
}

/// Validates the further copies, whose list begins at `start`: the entries are in order, each of an item that the table has, and
/// the total is their sum.
fn copies<S: Deref<Target = [u8]>>(filter: &RawFilter<S>, listed: Listed<'_>, start: u64) -> Result<(), SnapshotError> {
    let (mut expected, mut sum) = (0, 0_u64);
    for ((key, number), at) in listed.iter().zip((start + 8..).step_by(ENTRY_BYTES)) {
        let corrupt = |words| Err(SnapshotError::new(Kind::Copies, at, words, []));
        if key < expected || number == 0 {
            return corrupt("the entry of an item with further copies is not in order, or has none");
        }
        match filter.occurrences_of(key) {
            0 => return corrupt("an item has further copies, but the table does not have it"),
            occurrences if occurrences.checked_add(number).is_none() => return corrupt("an item has more than 2³² − 1 copies"),
            _ => {}
        }
        (expected, sum) = (key + 1, sum.saturating_add(number.into()));
    }
    let total = listed.total();
    if sum == total {
        return Ok(());
    }
    let words = "there are {} further copies, but their number is given as {}";
    Err(SnapshotError::new(Kind::Copies, start, words, [sum, total]))
}

/// Validates the further copies of a partition, whose list begins at `start`: the entries are in order, each of an item that the
/// tables have, and there are as many as the section's header says.
pub(super) fn copies_of_generations(
    list: LongEntries<'_>,
    start: u64,
    total: u64,
    occurrences: impl Fn(u8, ClassKey) -> u32,
) -> Result<(), SnapshotError> {
    let (mut last, mut sum) = (None, 0_u64);
    for ((generation, key, number), at) in list.iter().zip((start..).step_by(LONG_ENTRY_BYTES)) {
        let corrupt = |words| Err(SnapshotError::new(Kind::Copies, at, words, []));
        if last >= Some((generation, key)) || number == 0 {
            return corrupt("the entry of an item with further copies is not in order, or has none");
        }
        match occurrences(generation, key) {
            0 => return corrupt("an item has further copies, but no table has it"),
            occurrences if occurrences.checked_add(number).is_none() => return corrupt("an item has more than 2³² − 1 copies"),
            _ => {}
        }
        (last, sum) = (Some((generation, key)), sum.saturating_add(number.into()));
    }
    let words = "further copies are {}, but they are {} by the header of their partition";
    if sum == total { Ok(()) } else { Err(SnapshotError::new(Kind::Copies, start, words, [sum, total])) }
}

/// Validates the items of a partition without shards, whose list begins at `start`: their keys are in order, and each is that of an
/// item.
pub(super) fn few(few: FewInSnapshot<'_>, start: u64, plan: &GenerationPlan) -> Result<(), SnapshotError> {
    let mut last = None;
    for (key, at) in few.keys().zip((start..).step_by(plan.keys().bytes())) {
        let corrupt = |words| Err(SnapshotError::new(Kind::Table, at, words, []));
        if last >= Some(key) {
            return corrupt("the keys of a partition's items are not in order");
        }
        if plan.listed(key).is_none() {
            return corrupt("the key of a partition's item is one that no item has");
        }
        last = Some(key);
    }
    Ok(())
}

fn check_end(params: &impl TableParams, bytes: &[u8], start: u64) -> Result<(), SnapshotError> {
    let mut end = 0;
    for bits in params.bits_of_a_bucket() {
        let used_bits = params.buckets() * u64::from(bits);
        end += index(used_bits.div_ceil(8));
        if !used_bits.is_multiple_of(8) && bytes[end - 1] >> (used_bits % 8) != 0 {
            let words = "bits beyond the last bucket are set";
            return Err(SnapshotError::new(Kind::Table, start + wide(end - 1), words, []));
        }
    }
    Ok(())
}
