//! Writing a snapshot to memory.

use alloc::vec::Vec;

use super::{
    format::{Header, HeaderBytes, checksum},
    verify::Expected,
};
#[cfg(feature = "serde")]
use crate::storage::{OutOfMemory, reserved};
use crate::{bits::index, filter::CuckooFilter, hash::Hasher, storage::Storage};

impl<H, S: Storage> CuckooFilter<H, S> {
    /// The filter as a snapshot: a header of 64 bytes, the table, and a checksum of 8 bytes (docs/FORMAT.md). Takes time
    /// proportional to the table.
    ///
    /// Equal filters give equal bytes on every machine. For a view, these are the bytes of its snapshot with the checksum stored
    /// there, so a corrupt snapshot stays one that [`verify`](crate::FilterView::verify) rejects.
    ///
    /// # Panics
    /// If the bytes would be more than the address space holds (on 32-bit targets). If the allocator has no memory for them, the
    /// program aborts, as with any vector. [`write_to`](Self::write_to) needs no memory.
    ///
    /// # Example
    /// ```
    /// use koel::CuckooFilter;
    /// let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// let read = CuckooFilter::from_bytes(&filter.to_bytes())?;
    /// assert!(read.contains("alice"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8>
    where
        H: Hasher,
    {
        // On 32-bit targets the length may exceed `usize` by a few bytes; then the vector grows, and panics.
        let mut bytes = Vec::with_capacity(index(self.params().snapshot_bytes()));
        self.append_to(&mut bytes);
        bytes
    }

    /// [`to_bytes`](Self::to_bytes), or an error if the memory cannot be allocated.
    #[cfg(feature = "serde")]
    pub(super) fn try_to_bytes(&self) -> Result<Vec<u8>, OutOfMemory>
    where
        H: Hasher,
    {
        let mut bytes = reserved(usize::try_from(self.params().snapshot_bytes()).unwrap_or(usize::MAX))?;
        self.append_to(&mut bytes);
        Ok(bytes)
    }

    fn append_to(&self, bytes: &mut Vec<u8>)
    where
        H: Hasher,
    {
        let (header, table, checksum) = self.parts();
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(table);
        bytes.extend_from_slice(&checksum.to_le_bytes());
    }

    /// The header, the table and its checksum. That is computed all at once: a program has the code for it anyway, for items, and
    /// none for a table in pieces.
    pub(super) fn parts(&self) -> (HeaderBytes, &[u8], u64)
    where
        H: Hasher,
    {
        let (header, seed) = Header::encode(&self.params(), self.hasher().id(), self.len());
        let table = self.raw().table();
        let stored = Expected::of(self.raw().storage()).map(|expected| expected.stored);
        (header, table, stored.unwrap_or_else(|| checksum(table, seed)))
    }
}
