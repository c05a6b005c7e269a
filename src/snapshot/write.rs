//! From a filter to bytes in memory.

use alloc::vec::Vec;

use super::format::{Checksum, Header, snapshot_capacity};
use crate::{filter::CuckooFilter, hash::Hasher, storage::Storage};

/// Bytes that are copied at a time: they are still in the cache when their checksum is taken.
const PIECE: usize = 32 << 10;

impl<H: Hasher, S: Storage> CuckooFilter<H, S> {
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
        let (header, seed) = Header::encode(self.params(), self.hasher().id(), self.len());
        bytes.extend_from_slice(&header);
        let mut checksum = Checksum::new(seed);
        for piece in self.table().bytes().chunks(PIECE) {
            checksum.update(piece);
            bytes.extend_from_slice(piece);
        }
        bytes.extend_from_slice(&checksum.finish().to_le_bytes());
        bytes
    }

    /// The table's bytes, and what stands behind them.
    #[cfg(feature = "serde")]
    pub(super) fn table_and_checksum(&self) -> (&[u8], u64) {
        let (_, seed) = Header::encode(self.params(), self.hasher().id(), self.len());
        let table = self.table().bytes();
        (table, super::format::checksum(table, seed))
    }
}
