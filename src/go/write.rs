//! Writing filters as Go's files.

use alloc::vec::Vec;

use super::{
    GoError,
    format::{self, Victim, header_bytes, padding},
    order::Order,
    packed,
};
use crate::{
    bits::{PADDING, wide},
    filter::CuckooFilter,
    hash::Hasher,
    params::TableKind,
    snapshot::verify,
    storage::{Storage, reserved},
};

/// Writes a filter as a file for Go's `Decode`, without a victim. A view of a snapshot is [verified](crate::FilterView::verify)
/// first.
///
/// # Errors
/// If Go's library cannot read the filter: it requires `PowerOfTwo` addressing, `MetroHash64`, the seed 1337, at most 2³¹ buckets
/// and fewer than 2³² items. Its single table also loses items if fingerprints have 2, 4 or 12 bits and buckets are not whole
/// bytes. If a view's snapshot is corrupt.
///
/// # Panics
/// If the memory for the bytes cannot be allocated.
///
/// # Example
/// ```
/// use koel::{Addressing, CuckooFilter, go::{self, MetroHash64}};
/// let builder = CuckooFilter::builder().false_positive_rate(0.001).hasher(MetroHash64).seed(1337);
/// let filter = builder.addressing(Addressing::PowerOfTwo).build_from_items(&["alice", "bob"])?;
/// let file = go::encode(&filter)?;
/// assert!(go::decode(&file)?.filter() == &filter);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub fn encode<H: Hasher, S: Storage>(filter: &CuckooFilter<H, S>) -> Result<Vec<u8>, GoError> {
    let victim = Victim::default();
    // Cheap checks first: `verify` reads the whole table.
    format::header(&filter.params(), filter.hasher().id(), wide(filter.len()), victim)?;
    // Go's files have no checksum that would reveal corruption later.
    verify(filter.raw()).map_err(GoError::Snapshot)?;
    file(filter, victim, &Order::default())
}

pub(super) fn file<H: Hasher, S: Storage>(
    filter: &CuckooFilter<H, S>,
    victim: Victim,
    order: &Order,
) -> Result<Vec<u8>, GoError> {
    let params = &filter.params();
    let header = format::header(params, filter.hasher().id(), wide(filter.len()), victim)?;
    let start = header_bytes(params);
    let end = start + params.table_bytes();
    let mut bytes = reserved(end + PADDING).map_err(GoError::OutOfMemory)?;
    header.encode(&mut bytes);
    bytes.extend_from_slice(filter.raw().table());
    if params.table() == TableKind::Packed {
        bytes.resize(end + PADDING, 0);
        packed::restore(order, filter.raw(), &mut bytes[start..]);
        bytes.truncate(end + padding(params));
    }
    Ok(bytes)
}
