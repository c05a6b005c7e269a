//! From a filter to bytes.

use alloc::vec::Vec;

use super::format::{Header, HeaderBytes, checksum, snapshot_capacity};
use crate::{filter::CuckooFilter, hash::Hasher};

impl<H: Hasher> CuckooFilter<H> {
    /// The filter as a snapshot: 64 bytes of header, the table, 8 bytes of checksum. docs/FORMAT.md describes it.
    ///
    /// Equal filters give equal bytes, on every machine.
    ///
    /// # Panics
    /// As every vector does if there is no memory for them; [`write_to`](Self::write_to) needs none.
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
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(snapshot_capacity(self.params()));
        let (header, table, trailer) = self.parts();
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(table);
        bytes.extend_from_slice(&trailer);
        bytes
    }

    /// Writes the bytes of [`to_bytes`](Self::to_bytes), without holding them a second time. Few large writes: a buffer
    /// would only slow them down.
    ///
    /// # Errors
    /// What the writer says. What it has taken by then is no snapshot.
    #[cfg(feature = "std")]
    pub fn write_to<W: std::io::Write>(&self, mut writer: W) -> std::io::Result<()> {
        let (header, table, trailer) = self.parts();
        writer.write_all(&header)?;
        writer.write_all(table)?;
        writer.write_all(&trailer)
    }

    pub(super) fn parts(&self) -> (HeaderBytes, &[u8], [u8; 8]) {
        let (header, checksum_seed) = Header::encode(self.params(), self.hasher().id(), self.len());
        let table = self.table().bytes();
        (header, table, checksum(table, checksum_seed).to_le_bytes())
    }
}
