//! The bytes of a filter, in chunks, as CF.SCANDUMP returns them.
//!
//! - The bytes of an own filter are a snapshot, which any program that uses koel can open (docs/FORMAT.md).
//! - The bytes of an imported filter are RedisBloom's chunks, which RedisBloom can load, too.
//! - The bytes of a filter with both parts begin with [`MAGIC`] and the length of the first part (8 bytes). Then come the imported
//!   filter, as a dump file of RedisBloom's chunks, and the snapshot.

use std::io::{self, Write};

use koel::{ElasticFilter, pieces::SnapshotIndex, redisbloom::RedisBloomFilter};

use crate::{
    filter::{Dump, Filter, imported_checksum},
    reply::{Failure, reserved},
    server::boxed,
};

/// The most bytes of a chunk.
pub(crate) const MAX_CHUNK_BYTES: usize = 1 << 20;

/// The first bytes of a dump with two parts.
pub(crate) const MAGIC: [u8; 8] = *b"KOEL+CF\n";
/// The length of the magic bytes and the length field after them.
pub(crate) const PREFIX_BYTES: usize = 16;

/// An iterator is an offset in its lower 38 bits, and above them a tag of 15 bits, which a checksum of the content gives. With the
/// tag, chunks of different contents are not mixed, and any server with the same filter can continue a dump. Iterators have 53
/// bits, which all clients can represent. With a probability of 1 in 32,767, two contents have the same tag; the snapshot's
/// checksums then reveal the mixture.
const OFFSET_BITS: u32 = 38;
const TAGS: u64 = (1 << 15) - 1;

/// A position in a dump, just after a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The tag of the content in koel's chunks from CF.SCANDUMP, 1 or more. 0 in all other chunks.
    pub(crate) tag: u64,
    pub(crate) offset: u64,
}

impl Position {
    pub(crate) fn from_iterator(iterator: i64) -> Option<Self> {
        let iterator = u64::try_from(iterator).ok()?;
        Some(Self { tag: iterator >> OFFSET_BITS, offset: iterator & ((1 << OFFSET_BITS) - 1) })
    }

    pub(crate) fn iterator(self) -> i64 {
        i64::try_from(self.tag << OFFSET_BITS | self.offset).unwrap_or(i64::MAX)
    }
}

impl Filter {
    /// Returns the tag of the content. Takes time proportional to the content, unless it is cached since the last change.
    pub(crate) fn tag(&self) -> Result<u64, Failure> {
        let Some(own) = &self.own else { return Ok(0) };
        self.with_dump(own, |dump| dump.tag)
    }

    /// Calls `act` with the cached data of the dump, after computing it if necessary.
    fn with_dump<T>(&self, own: &ElasticFilter, act: impl FnOnce(&Dump) -> T) -> Result<T, Failure> {
        let mut dump = self.dump.borrow_mut();
        let dump = match &mut *dump {
            Some(dump) => dump,
            none => {
                let index = own.snapshot_index().map_err(|_| Failure::out_of_memory())?;
                if (self.imported_bytes() + index.snapshot_bytes()) >> OFFSET_BITS > 0 {
                    return Err(Failure::new(format_args!("ERR the dump has 2^{OFFSET_BITS} bytes or more")));
                }
                // The snapshot's last checksum covers its other parts, the checksums of the tables included.
                let mut checksum = [0; 8];
                own.read_snapshot(&index, index.snapshot_bytes() - 8, &mut checksum);
                let checksum = u64::from_le_bytes(checksum) ^ self.imported.as_deref().map_or(0, imported_checksum);
                none.insert(boxed(Dump { index, tag: checksum % TAGS + 1 })?)
            }
        };
        Ok(act(dump))
    }

    /// Returns the imported filter if there is no own one: such a filter is dumped as RedisBloom's chunks.
    pub(crate) fn imported_alone(&self) -> Option<&RedisBloomFilter> {
        if self.own.is_none() { self.imported.as_deref() } else { None }
    }

    /// Returns at most `most` bytes, from this offset, of a dump that contains a snapshot.
    pub(crate) fn dump(&self, offset: u64, most: usize) -> Result<Vec<u8>, Failure> {
        let Some(own) = &self.own else { return Ok(Vec::new()) };
        self.with_dump(own, |dump| self.read_dump(own, &dump.index, offset, most))?
    }

    fn read_dump(&self, own: &ElasticFilter, index: &SnapshotIndex, offset: u64, most: usize) -> Result<Vec<u8>, Failure> {
        let length = self.imported_bytes() + index.snapshot_bytes();
        let taken = usize::try_from(length.saturating_sub(offset)).map_or(most, |left| left.min(most));
        let mut window = Window { skipped: offset, left: taken, bytes: reserved(taken)? };
        if let Some(imported) = &self.imported {
            // Writing to a window cannot fail.
            let _ = write_imported(imported, &mut window);
        }
        let Window { skipped, mut bytes, .. } = window;
        let before = bytes.len();
        bytes.resize(taken, 0);
        let read = own.read_snapshot(index, skipped, &mut bytes[before..]);
        bytes.truncate(before + read);
        Ok(bytes)
    }

    /// Writes all bytes of a dump that contains a snapshot. Allocates nothing.
    pub(crate) fn write_dump(&self, writer: &mut impl Write) -> io::Result<()> {
        let Some(own) = &self.own else { return Ok(()) };
        if let Some(imported) = &self.imported {
            write_imported(imported, writer)?;
        }
        own.write_to(writer)
    }

    /// Returns the length of a dump that contains a snapshot.
    pub(crate) fn dump_bytes(&self) -> u64 {
        self.imported_bytes() + self.own.as_ref().map_or(0, ElasticFilter::snapshot_bytes)
    }

    /// Returns the length of the part before the snapshot.
    fn imported_bytes(&self) -> u64 {
        self.imported.as_deref().map_or(0, |imported| PREFIX_BYTES as u64 + dump_file_bytes(imported))
    }
}

/// Writes the part before the snapshot.
fn write_imported(imported: &RedisBloomFilter, writer: &mut impl Write) -> io::Result<()> {
    writer.write_all(&MAGIC)?;
    writer.write_all(&dump_file_bytes(imported).to_le_bytes())?;
    imported.write_dump(writer)
}

/// Returns the length of [`RedisBloomFilter::to_dump`].
fn dump_file_bytes(imported: &RedisBloomFilter) -> u64 {
    imported.chunks().map(|(_, bytes)| 16 + bytes.len() as u64).sum()
}

/// A writer that keeps one range of the bytes written.
struct Window {
    /// Bytes still to skip before the range.
    skipped: u64,
    /// Bytes of the range that are still to come.
    left: usize,
    /// The bytes kept, with capacity for `left` more.
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
