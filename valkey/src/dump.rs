//! The bytes of a filter, in chunks, as CF.SCANDUMP gives them.
//!
//! - Those of one of koel's filters are a snapshot, which any program that uses koel can open (docs/FORMAT.md).
//! - Those of an imported filter are RedisBloom's chunks, which RedisBloom takes, too.
//! - Those of a filter with both begin with [`MAGIC`] and the length of the first part, 8 bytes; then come the imported filter as a
//!   dump file of RedisBloom's chunks, and the snapshot.

use std::io::{self, Write};

use koel::redisbloom::RedisBloomFilter;

use crate::{
    filter::Filter,
    reply::{Failure, reserved},
};

/// The longest chunk.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// The start of a dump that has two parts.
pub(crate) const MAGIC: [u8; 8] = *b"KOEL+CF\n";
pub(crate) const PREFIX_BYTES: usize = 16;

/// An iterator has an offset in its lower bits, and above them a number that changes with the filter, so that chunks of different
/// moments do not go together. Clients that have 53 bits for integers can take it.
const OFFSET_BITS: u32 = 40;
const MOMENTS: u64 = (1 << 12) - 1;

/// Where a dump goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The filter's changes at the beginning of the dump, 1 and above; 0 if nobody knows.
    pub(crate) moment: u64,
    pub(crate) offset: u64,
}

impl Position {
    pub(crate) fn of_iterator(iterator: i64) -> Option<Self> {
        let iterator = u64::try_from(iterator).ok()?;
        Some(Self { moment: iterator >> OFFSET_BITS, offset: iterator & ((1 << OFFSET_BITS) - 1) })
    }

    pub(crate) fn iterator(self) -> i64 {
        i64::try_from(self.moment << OFFSET_BITS | self.offset).unwrap_or(i64::MAX)
    }
}

impl Filter {
    /// The moment of the present content.
    pub(crate) fn moment(&self) -> u64 {
        self.changes % MOMENTS + 1
    }

    /// Does the filter have chunks of RedisBloom's?
    pub(crate) fn is_only_imported(&self) -> Option<&RedisBloomFilter> {
        if self.own.is_none() { self.imported.as_ref() } else { None }
    }

    /// The bytes of a dump that is not RedisBloom's, from an offset on, so many at most.
    pub(crate) fn dump(&self, offset: u64, most: usize) -> Result<Vec<u8>, Failure> {
        let Some(own) = &self.own else { return Ok(Vec::new()) };
        let mut index = self.index.borrow_mut();
        let index = match &mut *index {
            Some(index) => index,
            none => none.insert(own.snapshot_index().map_err(|_| Failure::out_of_memory())?),
        };
        let length = self.imported_bytes() + index.snapshot_bytes();
        let taken = usize::try_from(length.saturating_sub(offset)).map_or(most, |left| left.min(most));
        let mut window = Window { skipped: offset, left: taken, bytes: reserved(taken)? };
        if let Some(imported) = &self.imported {
            // A window takes everything.
            let _ = write_imported(imported, &mut window);
        }
        let Window { skipped, mut bytes, .. } = window;
        let before = bytes.len();
        bytes.resize(taken, 0);
        let read = own.read_snapshot(index, skipped, &mut bytes[before..]);
        bytes.truncate(before + read);
        Ok(bytes)
    }

    /// Writes all bytes of such a dump, and allocates nothing.
    pub(crate) fn write_dump(&self, writer: &mut impl Write) -> io::Result<()> {
        let Some(own) = &self.own else { return Ok(()) };
        if let Some(imported) = &self.imported {
            write_imported(imported, writer)?;
        }
        own.write_to(writer)
    }

    /// The length of such a dump.
    pub(crate) fn dump_bytes(&self) -> u64 {
        self.imported_bytes() + self.own.as_ref().map_or(0, koel::ElasticFilter::snapshot_bytes)
    }

    /// The length of what comes before the snapshot.
    fn imported_bytes(&self) -> u64 {
        self.imported.as_ref().map_or(0, |imported| PREFIX_BYTES as u64 + dump_file_bytes(imported))
    }
}

/// Writes what comes before a snapshot.
fn write_imported(imported: &RedisBloomFilter, writer: &mut impl Write) -> io::Result<()> {
    writer.write_all(&MAGIC)?;
    writer.write_all(&dump_file_bytes(imported).to_le_bytes())?;
    imported.write_dump(writer)
}

/// The length of [`RedisBloomFilter::to_dump`].
fn dump_file_bytes(imported: &RedisBloomFilter) -> u64 {
    imported.chunks().map(|(_, bytes)| 16 + bytes.len() as u64).sum()
}

/// Keeps some of what is written.
struct Window {
    /// Bytes that are still to come before those.
    skipped: u64,
    left: usize,
    /// With room for what is left.
    bytes: Vec<u8>,
}

impl Write for Window {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let from = usize::try_from(self.skipped).map_or(bytes.len(), |skipped| skipped.min(bytes.len()));
        let taken = self.left.min(bytes.len() - from);
        self.bytes.extend_from_slice(&bytes[from..from + taken]);
        self.skipped -= from as u64;
        self.left -= taken;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
