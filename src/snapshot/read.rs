//! From bytes to a filter: nothing is believed.

use alloc::format;

#[cfg(feature = "serde")]
use super::format::Fields;
use super::{
    SnapshotError, SnapshotErrorKind as Kind,
    format::{HASHER_AT, HEADER_BYTES, Header, HeaderBytes, MAGIC, not_a_snapshot},
    verify::verified_copy,
};
#[cfg(feature = "serde")]
use crate::{
    bits::PADDING,
    filter::RawFilter,
    storage::{Owned, Sealed as _},
};
use crate::{
    bits::wide,
    filter::{CuckooFilter, FilterView},
    hash::{Hasher, HasherId, Xxh3},
};

impl CuckooFilter {
    /// The filter whose snapshot this is, all of it and nothing else.
    ///
    /// Verifies everything: whatever these bytes are, the result is an error or a filter that keeps its promises, and no
    /// more memory is taken than they are long. Takes time in proportion to them.
    ///
    /// # Errors
    /// What is wrong, and where. Among others if the filter's hasher is not [`Xxh3`]:
    /// [`from_bytes_with`](Self::from_bytes_with) reads it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes_with(bytes, xxh3)
    }
}

/// [`from_bytes`](CuckooFilter::from_bytes)
impl TryFrom<&[u8]> for CuckooFilter {
    type Error = SnapshotError;

    fn try_from(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes(bytes)
    }
}

impl<H: Hasher> CuckooFilter<H> {
    /// [`from_bytes`](CuckooFilter::from_bytes) for filters with other hashers: `hasher` gives the one with the
    /// snapshot's id, or `None` to refuse it; one with another id is refused, too.
    /// [`AnyHasher::from_id`](crate::AnyHasher::from_id) takes every one of this crate's.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn from_bytes_with(bytes: &[u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let (raw, hasher) = FilterView::over_with(bytes, hasher)?.into_raw();
        verified_copy(&raw).map(|raw| Self::from_raw(raw, hasher))
    }
}

pub(super) fn xxh3(id: HasherId) -> Option<Xxh3> {
    (id == Xxh3.id()).then_some(Xxh3)
}

/// Opens the snapshot that the bytes begin with: checks everything that does not take reading the table, and says how long it
/// is.
pub(super) fn open_prefix<H: Hasher>(
    bytes: &[u8],
    hasher: impl FnOnce(HasherId) -> Option<H>,
) -> Result<(Header, H, u64), SnapshotError> {
    let header = bytes.first_chunk().ok_or_else(|| header_too_short(bytes))?;
    let (header, hasher) = open_header(header, hasher)?;
    let (given, expected) = (wide(bytes.len()), header.params.snapshot_bytes());
    if given < expected { Err(too_short(given, expected)) } else { Ok((header, hasher, expected)) }
}

/// The header, and the hasher it asks for.
pub(super) fn open_header<H: Hasher>(
    header: &HeaderBytes,
    hasher: impl FnOnce(HasherId) -> Option<H>,
) -> Result<(Header, H), SnapshotError> {
    let header = Header::decode(header)?;
    let hasher = hasher(header.hasher).filter(|hasher| hasher.id() == header.hasher);
    let hasher = hasher.ok_or_else(|| SnapshotError::hasher(wide(HASHER_AT), header.hasher))?;
    Ok((header, hasher))
}

/// The filter of a header's fields and a table that came one by one, checked as in a snapshot.
#[cfg(feature = "serde")]
pub(super) fn from_fields<H: Hasher>(
    fields: &Fields,
    table: Owned,
    stored: u64,
    hasher: impl FnOnce(HasherId) -> Option<H>,
) -> Result<CuckooFilter<H>, SnapshotError> {
    let fields = Fields { table_bytes: wide(table.bytes().len() - PADDING), ..*fields };
    let (Header { params, len, checksum: seed, .. }, hasher) = open_header(&fields.encode().0, hasher)?;
    let raw = RawFilter::from_parts(params, table, len);
    super::verify::table(&raw, Some(&super::verify::Expected { seed, stored }))?;
    Ok(CuckooFilter::from_raw(raw, hasher))
}

pub(super) fn header_too_short(bytes: &[u8]) -> SnapshotError {
    if !MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) {
        return not_a_snapshot();
    }
    // How long they should be is in the header, which is not all there.
    let what = format!("the bytes end too early: there are {}, and the header alone has {HEADER_BYTES}", bytes.len());
    SnapshotError::new(Kind::Length, wide(bytes.len()), what)
}

pub(super) fn too_short(given: u64, expected: u64) -> SnapshotError {
    SnapshotError::new(Kind::Length, given, format!("the bytes end too early: there are {given}, and there should be {expected}"))
}

pub(super) fn too_long(given: u64, expected: u64) -> SnapshotError {
    let what = format!("the snapshot ends here, and {} more bytes follow it", given - expected);
    SnapshotError::new(Kind::TrailingBytes, expected, what)
}
