//! Finding the end of a snapshot while it arrives.

use super::{
    SnapshotError, SnapshotErrorKind as Kind,
    format::{Fixed, HEADER_BYTES, Header, MAGIC, SECTION_BYTES, Section, TRAILER_BYTES, is_growing, not_a_snapshot},
};
use crate::{
    bits::{index, wide},
    elastic::ElasticParams,
};

/// The end of a snapshot that arrives in pieces of any length, found without keeping the bytes. The snapshot may be one of a fixed
/// or of a growing filter.
///
/// Reads the header and, in a growing filter, the length of each partition. **Validates nothing else**: no lists of shards, no
/// tables, and no checksum but the header's. So a complete snapshot may still be corrupt; reading it into a filter reports that.
/// Takes about 100 bytes, and time proportional to the numbers of pieces and partitions.
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
    /// The number of bytes to skip before the next header, or before the end if no header follows.
    skipped: u64,
    /// The number of sections still to come; `None` until the snapshot's header is complete.
    sections: Option<u64>,
    /// The header that is arriving: the snapshot's or a section's.
    header: [u8; HEADER_BYTES],
    /// The number of bytes of `header` that have arrived.
    len: usize,
}

impl SnapshotExtent {
    /// Creates the extent of a snapshot that has not begun to arrive.
    #[must_use]
    pub fn new() -> Self {
        Self { received: 0, skipped: 0, sections: None, header: [0; HEADER_BYTES], len: 0 }
    }

    /// Takes the next bytes. Returns how many of them belong to the snapshot: fewer than given only if it ends among them, and 0 if
    /// it had ended before.
    ///
    /// # Errors
    /// If the bytes do not begin a snapshot that this release reads: the magic number or the version differs, the header does not
    /// match its checksum, or its parameters are invalid. If a partition claims a length with which the snapshot would have 2⁶⁴
    /// bytes or more. After an error, every further call fails, too.
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
            // An error returns before this, so the next call finds the same header and fails again.
            self.len = 0;
        }
        Ok(bytes.len() - rest.len())
    }

    /// Removes `len` bytes from `rest`, counts them as received, and returns them.
    fn take<'a>(&mut self, rest: &mut &'a [u8], len: usize) -> &'a [u8] {
        let (taken, left) = rest.split_at(len);
        *rest = left;
        self.received += wide(len);
        taken
    }

    /// Decodes the snapshot's header, which is complete.
    fn begin(&mut self) -> Result<(), SnapshotError> {
        let (skipped, sections) = if is_growing(&self.header) {
            (0, wide(Header::<ElasticParams>::decode(&self.header)?.fields.partitions()))
        } else {
            (Header::<Fixed>::decode(&self.header)?.fields.snapshot_bytes() - wide(HEADER_BYTES), 0)
        };
        (self.skipped, self.sections) = (skipped, Some(sections));
        Ok(())
    }

    /// Decodes the header of a section, which is complete; `others` more sections follow.
    fn begin_section(&mut self, others: u64) -> Result<(), SnapshotError> {
        let (first, _) = self.header.as_chunks();
        let (Section { length, .. }, _) = Section::decode(&first[0]);
        let least = others * wide(SECTION_BYTES) + wide(TRAILER_BYTES);
        if self.received.checked_add(length).and_then(|end| end.checked_add(least)).is_none() {
            let message = "a partition has {} bytes, so that the snapshot would have 2⁶⁴ or more";
            return Err(SnapshotError::new(Kind::Shards, self.received - wide(SECTION_BYTES), message, [length]));
        }
        (self.skipped, self.sections) = (length + if others == 0 { least } else { 0 }, Some(others));
        Ok(())
    }

    /// Returns true if the whole snapshot has arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.skipped == 0 && self.sections == Some(0)
    }

    /// Returns the number of bytes of the snapshot that have arrived: its length, once it is complete.
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
