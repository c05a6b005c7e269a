//! Where a snapshot ends, found while it arrives.

use super::{
    SnapshotError, SnapshotErrorKind as Kind,
    format::{Fixed, HEADER_BYTES, Header, MAGIC, SECTION_BYTES, Section, TRAILER_BYTES, is_growing, not_a_snapshot},
};
use crate::{
    bits::{index, wide},
    elastic::ElasticParams,
};

/// Finds where a snapshot ends while it arrives in pieces of any length, without keeping it. It takes snapshots of both types of
/// filter.
///
/// It reads the header and, in a growing filter, the length of each partition. **It validates nothing else**: no lists of shards,
/// no tables, no checksums. So a complete snapshot may still be corrupt, which reading it into a filter reports. Takes about 100
/// bytes, and time proportional to the numbers of pieces and partitions.
///
/// # Example
/// ```
/// use koel::{ElasticFilter, pieces::SnapshotExtent};
/// let snapshot = ElasticFilter::builder().false_positive_rate(0.001).build()?.to_bytes();
/// let stream = [&snapshot[..], b"something else"].concat();
/// let (mut extent, mut kept) = (SnapshotExtent::new(), Vec::new());
/// for piece in stream.chunks(1000) {
///     let len = extent.push(piece)?;
///     kept.extend_from_slice(&piece[..len]);
///     if extent.is_complete() {
///         break;
///     }
/// }
/// assert_eq!(kept, snapshot);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct SnapshotExtent {
    /// Bytes of the snapshot that have arrived.
    received: u64,
    /// Bytes before the next header that are not looked at; or before the end, if there is none.
    skipped: u64,
    /// The number of sections that follow; `None` before the snapshot's header.
    sections: Option<u64>,
    /// The header that arrives, and how many bytes of it have.
    header: [u8; HEADER_BYTES],
    len: usize,
}

impl SnapshotExtent {
    /// The extent of a snapshot of which nothing has arrived yet.
    #[must_use]
    pub fn new() -> Self {
        Self { received: 0, skipped: 0, sections: None, header: [0; HEADER_BYTES], len: 0 }
    }

    /// Takes the next bytes. Returns how many of them belong to the snapshot: fewer than given only if it ends there, none if it
    /// has ended before.
    ///
    /// # Errors
    /// If the bytes do not begin a snapshot that this release reads: the magic number or the version is another, the header does
    /// not match its checksum, or has parameters that no filter has. If a partition claims a length with which the snapshot would
    /// have 2⁶⁴ bytes. After an error, every further call fails, too.
    pub fn push(&mut self, bytes: &[u8]) -> Result<usize, SnapshotError> {
        let mut rest = bytes;
        loop {
            let skipped = self.skipped.min(wide(rest.len()));
            self.skipped -= skipped;
            self.take(&mut rest, index(skipped));
            let header_bytes = match self.sections {
                _ if self.skipped > 0 => break,
                None => HEADER_BYTES,
                Some(0) => break,
                Some(_) => SECTION_BYTES,
            };
            let more = rest.len().min(header_bytes - self.len);
            let taken = self.take(&mut rest, more);
            self.header[self.len..self.len + more].copy_from_slice(taken);
            self.len += more;
            let is_whole = self.len == header_bytes;
            match self.sections {
                None if is_whole => self.begin()?,
                Some(sections) if is_whole => self.begin_section(sections - 1)?,
                None if !MAGIC.starts_with(&self.header[..self.len.min(MAGIC.len())]) => return Err(not_a_snapshot()),
                _ => break,
            }
            // After an error it stays as it is, so that the next call finds the same.
            self.len = 0;
        }
        Ok(bytes.len() - rest.len())
    }

    /// Takes bytes of the snapshot.
    fn take<'a>(&mut self, rest: &mut &'a [u8], len: usize) -> &'a [u8] {
        let (taken, left) = rest.split_at(len);
        *rest = left;
        self.received += wide(len);
        taken
    }

    /// The header has arrived.
    fn begin(&mut self) -> Result<(), SnapshotError> {
        let (skipped, sections) = if is_growing(&self.header) {
            (0, wide(Header::<ElasticParams>::decode(&self.header)?.fields.partitions()))
        } else {
            (Header::<Fixed>::decode(&self.header)?.fields.snapshot_bytes() - wide(HEADER_BYTES), 0)
        };
        (self.skipped, self.sections) = (skipped, Some(sections));
        Ok(())
    }

    /// The header of a section has arrived; `others` more follow.
    fn begin_section(&mut self, others: u64) -> Result<(), SnapshotError> {
        let (first, _) = self.header.as_chunks();
        let (Section { length, .. }, _) = Section::decode(&first[0]);
        let least = others * wide(SECTION_BYTES) + wide(TRAILER_BYTES);
        if self.received.checked_add(length).and_then(|end| end.checked_add(least)).is_none() {
            let words = "a partition has {} bytes, so that the snapshot would have 2⁶⁴ or more";
            return Err(SnapshotError::new(Kind::Shards, self.received - wide(SECTION_BYTES), words, [length]));
        }
        (self.skipped, self.sections) = (length + if others == 0 { least } else { 0 }, Some(others));
        Ok(())
    }

    /// True if the snapshot has arrived to its end.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.skipped == 0 && self.sections == Some(0)
    }

    /// The number of bytes of the snapshot that have arrived; when it is complete, its length.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }
}

impl Default for SnapshotExtent {
    fn default() -> Self {
        Self::new()
    }
}
