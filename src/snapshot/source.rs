//! Sources of untrusted bytes, read in pieces: memory grows with the bytes that arrive, not with what a header claims.

use alloc::vec::Vec;

use super::SnapshotError;
use crate::{bits::wide, storage::OutOfMemory};

/// The size of the first pieces in bytes; a forged header makes a reader allocate no more than this.
pub(super) const LEAST: usize = 32 << 10;

/// The largest piece in bytes, small enough to stay in the cache for the checksum.
pub(super) const MOST: usize = 256 << 10;

/// A source of bytes.
pub(crate) trait Source {
    /// Fills `bytes` with the snapshot's bytes from `offset` on, or with fewer at the end of the input. Returns the number of
    /// bytes read.
    fn fill(&mut self, bytes: &mut [u8], offset: u64) -> Result<usize, SnapshotError>;
}

/// Bytes in memory as a [`Source`].
pub(crate) struct Slice<'a>(pub(crate) &'a [u8]);

impl Source for Slice<'_> {
    fn fill(&mut self, bytes: &mut [u8], _: u64) -> Result<usize, SnapshotError> {
        let (read, rest) = self.0.split_at(bytes.len().min(self.0.len()));
        bytes[..read.len()].copy_from_slice(read);
        self.0 = rest;
        Ok(read.len())
    }
}

impl<S: Source> Source for &mut S {
    fn fill(&mut self, bytes: &mut [u8], offset: u64) -> Result<usize, SnapshotError> {
        S::fill(self, bytes, offset)
    }
}

/// Replaces `bytes` by the next `len` bytes, or by fewer at the end of the input. Returns their number.
pub(crate) fn fill_gradually(
    source: &mut impl Source,
    bytes: &mut Vec<u8>,
    len: usize,
    offset: u64,
) -> Result<usize, SnapshotError> {
    bytes.clear();
    while bytes.len() < len {
        let start = bytes.len();
        let end = len.min(start + start.clamp(LEAST, MOST));
        if end > bytes.capacity() {
            let enough = len.min(end.max(start + start / 4));
            bytes.try_reserve_exact(enough - start).map_err(|_| SnapshotError::from(OutOfMemory::of(enough)))?;
        }
        bytes.resize(end, 0);
        let read = source.fill(&mut bytes[start..], offset + wide(start))?;
        if start + read < end {
            bytes.truncate(start + read);
            break;
        }
    }
    Ok(bytes.len())
}
