//! From bytes to a filter, or to a view of them: nothing is believed.

use alloc::format;

#[cfg(feature = "serde")]
use super::format::Fields;
use super::{
    format::{HASHER_AT, HEADER_BYTES, Header, HeaderBytes, MAGIC, in_table, not_a_snapshot},
    verify,
};
#[cfg(feature = "serde")]
use crate::{bits::PADDING, storage::Memory};
use crate::{
    bits::wide,
    error::{SnapshotError, SnapshotErrorKind as Kind},
    filter::{CuckooFilter, FilterView},
    hash::{Hasher, HasherId, Xxh3},
    storage::Borrowed,
    table::AnyTable,
};

impl CuckooFilter {
    /// The filter whose snapshot this is, all of it and nothing else.
    ///
    /// Checks everything: whatever these bytes are, the answer is an error or a filter that keeps its promises, and no
    /// more memory is taken than they are long. Takes time in proportion to them.
    ///
    /// # Errors
    /// What is wrong, and where. Among others if the filter's hasher is not [`Xxh3`]:
    /// [`from_bytes_with`](Self::from_bytes_with) reads it.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes_with(bytes, xxh3)
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
        CuckooFilter::over_with(bytes, hasher)?.into_filter()
    }
}

impl<'a> FilterView<'a> {
    /// The filter in a snapshot that is in memory, where it is.
    ///
    /// Checks the header, and that the snapshot is all there and nothing else: see [`FilterView`] for what that means, and
    /// [`verify`](Self::verify) for the rest. The bytes may begin at any address.
    ///
    /// # Errors
    /// What is wrong, and where. Among others if the filter's hasher is not [`Xxh3`]: [`over_with`](Self::over_with)
    /// reads it.
    ///
    /// # Example
    /// A filter that is part of the program:
    /// ```
    /// use koel::FilterView;
    /// # const BYTES: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/packed_f13_any.koel"));
    /// # /*
    /// const BYTES: &[u8] = include_bytes!("items.koel");
    /// # */
    /// let items = FilterView::over(BYTES)?;
    /// assert!(items.contains("item-0"));
    /// # Ok::<(), koel::SnapshotError>(())
    /// ```
    pub fn over(bytes: &'a [u8]) -> Result<Self, SnapshotError> {
        Self::over_with(bytes, xxh3)
    }
}

impl<'a, H: Hasher> FilterView<'a, H> {
    /// [`over`](FilterView::over) for filters with other hashers, as [`CuckooFilter::from_bytes_with`] takes them.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn over_with(bytes: &'a [u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        Ok(view(open(bytes, hasher)?, Borrowed::snapshot(&bytes[HEADER_BYTES..])))
    }

    /// Checks everything that opening did not: the table's checksum, that a koel filter could have written every bucket,
    /// and that as many items are in it as the header says. Takes time in proportion to the snapshot, and no memory.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn verify(&self) -> Result<(), SnapshotError> {
        verify::filter(self)
    }

    /// A filter with memory of its own, which can be changed. [Verified](Self::verify).
    ///
    /// # Errors
    /// What is wrong, and where; or if there is no memory for the table.
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, FilterView};
    /// let bytes = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?.to_bytes();
    /// let mut filter = FilterView::over(&bytes)?.to_filter()?;
    /// filter.insert("alice")?;
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn to_filter(&self) -> Result<CuckooFilter<H>, SnapshotError>
    where
        H: Clone,
    {
        self.clone().into_filter()
    }

    /// The same, where the hasher cannot be cloned.
    pub(super) fn into_filter(self) -> Result<CuckooFilter<H>, SnapshotError> {
        let expected = verify::Expected::of(&self);
        let filter = self.into_owned().map_err(out_of_memory)?;
        // The copy, not what was copied: a mapped file may have changed in between.
        verify::table(filter.params(), filter.table(), filter.len(), expected.as_ref())?;
        Ok(filter)
    }
}

pub(super) fn xxh3(id: HasherId) -> Option<Xxh3> {
    (id == Xxh3.id()).then_some(Xxh3)
}

/// Opens a whole snapshot: checks everything that does not take reading the table.
pub(super) fn open<H: Hasher>(bytes: &[u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<(Header, H), SnapshotError> {
    let header = bytes.first_chunk().ok_or_else(|| header_too_short(bytes))?;
    let (header, hasher) = open_header(header, hasher)?;
    let (given, expected) = (wide(bytes.len()), header.params.snapshot_bytes());
    if given == expected { Ok((header, hasher)) } else { Err(wrong_length(given, expected)) }
}

/// The header, and the hasher it asks for.
pub(super) fn open_header<H: Hasher>(
    header: &HeaderBytes,
    hasher: impl FnOnce(HasherId) -> Option<H>,
) -> Result<(Header, H), SnapshotError> {
    let header = Header::decode(header)?;
    let hasher = hasher(header.hasher).filter(|hasher| hasher.id() == header.hasher).ok_or_else(|| {
        let what = format!("the filter was built with {}, which is not the hasher asked for", header.hasher);
        SnapshotError::new(Kind::Hasher, HASHER_AT as u64, what)
    })?;
    Ok((header, hasher))
}

/// The filter of a header's fields and a table that came one by one, checked as in a snapshot. The memory is [`PADDING`]
/// longer than the table.
#[cfg(feature = "serde")]
pub(super) fn from_fields<H: Hasher>(
    fields: &Fields,
    memory: Memory,
    stored: u64,
    hasher: impl FnOnce(HasherId) -> Option<H>,
) -> Result<CuckooFilter<H>, SnapshotError> {
    let fields = Fields { table_bytes: wide(memory.len() - PADDING), ..*fields };
    let (Header { params, len, checksum: seed, .. }, hasher) = open_header(&fields.encode().0, hasher)?;
    let table = AnyTable::from_padded(&params, memory);
    verify::table(&params, &table, len, Some(&verify::Expected { seed, stored }))?;
    Ok(CuckooFilter::from_parts(params, table, len, hasher))
}

/// A view of what was opened, `body` being all that follows the header. The trailer is as long as the padding that a table
/// has behind it.
pub(super) fn view<H: Hasher>((header, hasher): (Header, H), body: Borrowed<'_>) -> FilterView<'_, H> {
    let Header { params, len, .. } = header;
    let table = AnyTable::from_padded(&params, body);
    CuckooFilter::from_parts(params, table, len, hasher)
}

pub(super) fn out_of_memory(bytes: usize) -> SnapshotError {
    SnapshotError::new(Kind::OutOfMemory, in_table(0), format!("{bytes} bytes of memory for the table could not be had"))
}

pub(super) fn header_too_short(bytes: &[u8]) -> SnapshotError {
    if !MAGIC.starts_with(&bytes[..bytes.len().min(MAGIC.len())]) {
        return not_a_snapshot();
    }
    // How long they should be is in the header, which is not all there.
    let what = format!("the bytes end too early: there are {}, and the header alone has {HEADER_BYTES}", bytes.len());
    SnapshotError::new(Kind::Length, wide(bytes.len()), what)
}

pub(super) fn wrong_length(given: u64, expected: u64) -> SnapshotError {
    let (what, offset) = if given < expected { ("end too early", given) } else { ("go on after the snapshot's end", expected) };
    SnapshotError::new(Kind::Length, offset, format!("the bytes {what}: there are {given}, and there should be {expected}"))
}
