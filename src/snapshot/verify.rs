//! Validation of tables from snapshots: checksum, buckets, and number of items.

use core::ops::{Deref, Range};

use super::{
    SnapshotError, SnapshotErrorKind as Kind, bare,
    format::{CHECKSUM_AT, Checksum, HEADER_BYTES, ITEMS_AT, TRAILER_BYTES, number},
    read::check_sum,
};
use crate::{
    bits::{index, wide},
    filter::RawFilter,
    hash::HasherId,
    storage::Snapshot,
    table::{Corrupt, TableParams},
};

/// Buckets checked at a time, few enough to stay in the cache between checksum and check. A multiple of 8, so that each piece
/// begins at a whole byte.
const PIECE: usize = 4096;
const _: () = assert!(PIECE.is_multiple_of(8));

/// Validates the table of a view.
pub(super) fn verify<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> Result<(), SnapshotError> {
    around(view, hasher).verify(view)
}

/// A validated copy of a view. Validates the copy, because mapped bytes may change at any time.
pub(super) fn verified_copy<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> Result<RawFilter, SnapshotError> {
    let copy = view.to_owned()?;
    around(view, hasher).verify(&copy)?;
    Ok(copy)
}

/// Validates the table of a snapshot of a filter of fixed size whose checksum has been compared.
pub(super) fn table<S: Deref<Target = [u8]>>(filter: &RawFilter<S>) -> Result<(), SnapshotError> {
    Around::header(None).verify(filter)
}

/// The checksum that a table should have.
pub(super) struct Expected {
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
    pub expected: Option<Expected>,
    /// The offset of the number of items, and the words for another number.
    pub items: (u64, &'static str),
}

impl Around {
    /// The header and the trailer of a snapshot.
    fn header(expected: Option<Expected>) -> Self {
        let items = (wide(ITEMS_AT), "the table holds {} items, but the header says {}");
        Self { start: wide(HEADER_BYTES), expected, items }
    }

    /// Validates a table: its checksum and, since checksums can be forged, all buckets, the bits behind the last one, and the number of
    /// items.
    fn verify<S: Deref<Target = [u8]>>(self, filter: &RawFilter<S>) -> Result<(), SnapshotError> {
        buckets(filter, self)
    }
}

/// What stands around the table of a view.
fn around<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> Around {
    if view.storage().is_bare() {
        return bare::around(view, hasher);
    }
    let snapshot = view.storage().all();
    let [seed, stored] = [CHECKSUM_AT, snapshot.len() - TRAILER_BYTES].map(|at| number(snapshot, at));
    Around::header(Some(Expected { seed, stored, mask: u64::MAX }))
}

/// The same of a shard, whose table begins at `start` and has the right checksum.
pub(super) fn shard<S: Deref<Target = [u8]>, P: TableParams>(shard: &RawFilter<S, P>, start: u64) -> Result<(), SnapshotError> {
    let items = (start, "the table of a shard holds {} items, but the list says {}");
    buckets(shard, Around { start, expected: None, items })
}

/// Validates a table. Reports a wrong checksum in preference to a corrupt bucket, since it shows that the bytes were altered after
/// they were written.
fn buckets<S: Deref<Target = [u8]>, P: TableParams>(
    filter: &RawFilter<S, P>,
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
    if let (Some(checksum), Some(Expected { stored, mask, .. })) = (checksum, expected) {
        check_sum(start + wide(bytes.len()), "table", stored, checksum.finish() & mask)?;
    }
    let items = items?;
    check_end(params, bytes, start)?;
    if items == wide(filter.len()) {
        return Ok(());
    }
    Err(SnapshotError::new(Kind::Count, len_at, words, [items, wide(filter.len())]))
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
