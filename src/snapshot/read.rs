//! Reading a snapshot from untrusted bytes in memory.

use super::{
    SnapshotError, SnapshotErrorKind as Kind,
    format::{HASHER_AT, HEADER_BYTES, Header, HeaderBytes, MAGIC, not_a_snapshot},
    verify::verified_copy,
};
use crate::{
    bits::wide,
    filter::{CuckooFilter, FilterView},
    hash::{Hasher, HasherId, Xxh3},
};

impl CuckooFilter {
    /// Reads a filter from the bytes of one snapshot, with nothing after it.
    ///
    /// Safe for untrusted input: validates everything, and allocates no more memory than the input is long. Takes time
    /// proportional to the input.
    ///
    /// # Errors
    /// If the bytes are not a valid snapshot; the error says what is wrong and at which offset. If the filter's hasher is not
    /// [`Xxh3`]: then use [`from_bytes_with`](Self::from_bytes_with).
    ///
    /// # Example
    /// ```
    /// use koel::CuckooFilter;
    /// let bytes = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?.to_bytes();
    /// let filter = CuckooFilter::from_bytes(&bytes)?;
    /// assert!(CuckooFilter::from_bytes(&bytes[1..]).is_err());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes_with(bytes, xxh3)
    }
}

/// Reads a snapshot with [`from_bytes`](CuckooFilter::from_bytes).
impl TryFrom<&[u8]> for CuckooFilter {
    type Error = SnapshotError;

    fn try_from(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes(bytes)
    }
}

impl<H: Hasher> CuckooFilter<H> {
    /// [`from_bytes`](CuckooFilter::from_bytes) for filters with other hashers. `hasher` maps the hasher id in the snapshot to a
    /// hasher, or to `None` to reject the snapshot. A hasher with a different id is rejected, too.
    /// [`AnyHasher::from_id`](crate::AnyHasher::from_id) accepts all hashers of this crate.
    ///
    /// # Errors
    /// As `from_bytes`.
    ///
    /// # Example
    /// ```
    /// use koel::{AnyHasher, CuckooFilter};
    /// let bytes = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?.to_bytes();
    /// let filter = CuckooFilter::from_bytes_with(&bytes, AnyHasher::from_id)?;
    /// assert!(filter.is_empty());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn from_bytes_with(bytes: &[u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let (raw, hasher) = FilterView::over_with(bytes, hasher)?.into_raw();
        verified_copy(&raw).map(|raw| Self::from_raw(raw, hasher))
    }
}

pub(crate) fn xxh3(id: HasherId) -> Option<Xxh3> {
    (id == Xxh3.id()).then_some(Xxh3)
}

/// Validates the header and the length of the snapshot at the start of the bytes. Returns the header, the hasher and the length.
pub(super) fn open_prefix<H: Hasher>(
    bytes: &[u8],
    hasher: impl FnOnce(HasherId) -> Option<H>,
) -> Result<(Header, H, u64), SnapshotError> {
    let header = bytes.first_chunk().ok_or_else(|| header_too_short(bytes))?;
    let (header, hasher) = open_header(header, hasher)?;
    let (given, expected) = (wide(bytes.len()), header.params.snapshot_bytes());
    if given < expected { Err(too_short(given, expected)) } else { Ok((header, hasher, expected)) }
}

/// Validates a header. Returns it with the hasher that it names.
pub(super) fn open_header<H: Hasher>(
    header: &HeaderBytes,
    hasher: impl FnOnce(HasherId) -> Option<H>,
) -> Result<(Header, H), SnapshotError> {
    let header = Header::decode(header)?;
    let hasher = hasher(header.hasher).filter(|hasher| hasher.id() == header.hasher);
    let hasher = hasher.ok_or_else(|| SnapshotError::hasher(wide(HASHER_AT), header.hasher))?;
    Ok((header, hasher))
}

pub(crate) fn header_too_short(bytes: &[u8]) -> SnapshotError {
    if !MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) {
        return not_a_snapshot();
    }
    // The expected length is in the header, which is incomplete.
    let given = wide(bytes.len());
    let words = "the bytes end too early: there are {}, and the header alone has {}";
    SnapshotError::new(Kind::Length, given, words, [given, wide(HEADER_BYTES)])
}

pub(crate) fn too_short(given: u64, expected: u64) -> SnapshotError {
    SnapshotError::new(Kind::Length, given, "the bytes end too early: there are {}, and there should be {}", [given, expected])
}

pub(crate) fn too_long(given: u64, expected: u64) -> SnapshotError {
    let more = given - expected;
    SnapshotError::new(Kind::TrailingBytes, expected, "the snapshot ends here, and {} more bytes follow it", [more])
}
