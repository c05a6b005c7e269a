//! Could the library itself have written this table?

use alloc::{format, string::String};
use core::ops::Range;

use super::format::{Checksum, Header, ITEMS_AT, differs, in_table};
use crate::{
    bits::PADDING,
    bits::{index, wide},
    error::{SnapshotError, SnapshotErrorKind as Kind},
    filter::CuckooFilter,
    hash::Hasher,
    kernel::Kernel,
    params::Params,
    storage::Storage,
    table::{AnyTable, Corrupt, Table as _, with_table},
};

/// Buckets that are checked at a time: their bytes are still in the cache when their checksum has been taken. A multiple of 8,
/// so that they begin where a byte does.
const PIECE: usize = 4096;

/// The checksum of a table, as a snapshot has it.
pub(super) struct Expected {
    /// The header's checksum.
    pub(super) seed: u64,
    pub(super) stored: u64,
}

impl Expected {
    /// What is stored behind the table, if a snapshot's trailer is.
    pub(super) fn of<H: Hasher, S: Storage>(filter: &CuckooFilter<H, S>) -> Option<Self> {
        if !filter.table().storage().is_snapshot() {
            return None;
        }
        let (_, seed) = Header::encode(filter.params(), filter.hasher().id(), filter.len());
        let memory = with_table!(filter.table(), table => table.memory());
        let mut trailer = [0; PADDING];
        trailer.copy_from_slice(&memory[memory.len() - PADDING..]);
        Some(Self { seed, stored: u64::from_le_bytes(trailer) })
    }
}

/// Checks a filter whose bytes nobody has looked at yet. All others are good.
pub(crate) fn filter<H: Hasher, S: Storage>(filter: &CuckooFilter<H, S>) -> Result<(), SnapshotError> {
    Expected::of(filter).map_or(Ok(()), |expected| table(filter.params(), filter.table(), filter.len(), Some(&expected)))
}

/// Checks a table from outside: its checksum, unless that has been done; and since checksums can be forged, all buckets, the
/// bits behind the last one, and that there are `len` items.
pub(super) fn table(
    params: &Params,
    any: &AnyTable<impl Storage>,
    len: usize,
    expected: Option<&Expected>,
) -> Result<(), SnapshotError> {
    let found = buckets(params, any, expected)?;
    check_end(params, any.bytes())?;
    if found == wide(len) {
        return Ok(());
    }
    let what = format!("the table holds {found} items, but the header says {len}");
    Err(SnapshotError::new(Kind::Count, ITEMS_AT as u64, what))
}

/// How many items are in the buckets. A wrong checksum goes before a wrong bucket: it says that bytes were altered on their way.
fn buckets(params: &Params, any: &AnyTable<impl Storage>, expected: Option<&Expected>) -> Result<u64, SnapshotError> {
    let bytes = any.bytes();
    let bucket_bits = u64::from(params.bucket_bits());
    let mut checksum = expected.map(|expected| Checksum::new(expected.seed));
    let mut items = Ok(0);
    for first in (0..params.buckets()).step_by(PIECE) {
        let end = params.buckets().min(first + wide(PIECE));
        if let Some(checksum) = &mut checksum {
            checksum.update(&bytes[index(first * bucket_bits / 8)..index((end * bucket_bits).div_ceil(8))]);
        }
        items = items.and_then(|items| Ok(items + piece(params, any, first..end)?));
    }
    if let (Some(checksum), Some(expected)) = (checksum, expected) {
        check_sum(params, expected.stored, checksum.finish())?;
    }
    items
}

/// How many items are in some buckets.
fn piece(params: &Params, any: &AnyTable<impl Storage>, buckets: Range<u64>) -> Result<u64, SnapshotError> {
    if let Some(taken) = Kernel::best().taken(any, buckets.clone()) {
        return Ok(taken);
    }
    let corrupt = buckets.clone().find_map(|bucket| Some((bucket, with_table!(any, table => table.corrupt(bucket))?)));
    let (bucket, what) = match corrupt {
        Some((bucket, Corrupt::Codeword(codeword))) => {
            (bucket, format!("bucket {bucket} has the codeword {codeword}, which is not in the codebook"))
        }
        Some((bucket, Corrupt::Order)) => (bucket, format!("the fingerprints of bucket {bucket} are not in order")),
        // Somebody has changed them meanwhile.
        None => (buckets.start, String::from("the buckets are not what they were a moment ago")),
    };
    Err(SnapshotError::new(Kind::Table, in_table(bucket * u64::from(params.bucket_bits()) / 8), what))
}

/// Compares the table's checksum, as it was stored behind the table and as it was computed.
pub(super) fn check_sum(params: &Params, stored: u64, computed: u64) -> Result<(), SnapshotError> {
    if stored == computed {
        return Ok(());
    }
    Err(differs(Kind::BodyChecksum, in_table(wide(params.table_bytes())), "table", stored, computed))
}

fn check_end(params: &Params, bytes: &[u8]) -> Result<(), SnapshotError> {
    let used_bits = params.buckets() * u64::from(params.bucket_bits());
    let last = bytes.len() - 1;
    if used_bits.is_multiple_of(8) || bytes[last] >> (used_bits % 8) == 0 {
        return Ok(());
    }
    let what = String::from("bits beyond the last bucket are set");
    Err(SnapshotError::new(Kind::Table, in_table(wide(last)), what))
}
