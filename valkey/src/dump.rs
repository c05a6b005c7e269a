//! The bytes of a filter, in chunks, as CF.SCANDUMP gives them.
//!
//! - Those of one of koel's filters are a snapshot, which any program that uses koel can open (docs/FORMAT.md).
//! - Those of an imported filter are RedisBloom's chunks, which RedisBloom takes, too.
//! - Those of a filter with both begin with [`MAGIC`] and the length of the first part, 8 bytes; then come the imported filter as a
//!   dump file of RedisBloom's chunks, and the snapshot.

use std::io::{self, Write};

use koel::{ElasticFilter, pieces::SnapshotIndex, redisbloom::RedisBloomFilter};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    filter::Filter,
    reply::{Failure, reserved},
    server::boxed,
};

/// The longest chunk.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// The start of a dump that has two parts.
pub(crate) const MAGIC: [u8; 8] = *b"KOEL+CF\n";
pub(crate) const PREFIX_BYTES: usize = 16;

/// An iterator has an offset in its lower bits, and above them bits of a checksum of the content, so that chunks of different
/// contents do not go together, and any server that has the filter can go on with a dump. Clients that have 53 bits for integers
/// can take it. In one case of 32,767, another content has the same bits; the snapshot's checksums then tell the reader.
const OFFSET_BITS: u32 = 38;
const MOMENTS: u64 = (1 << 15) - 1;

/// Where a dump goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// Bits of the content's checksum, 1 and above; 0 in a chunk that is no server's.
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

/// What is known of a dump besides the filter.
pub(crate) struct Dump {
    pub(crate) index: SnapshotIndex,
    moment: u64,
}

impl Dump {
    /// Bytes of memory, with those of the struct.
    pub(crate) fn size_in_bytes(&self) -> usize {
        size_of::<Self>() - size_of::<SnapshotIndex>() + self.index.size_in_bytes()
    }
}

impl Filter {
    /// The moment of the present content. Takes time in proportion to the content, unless it is known since the last change.
    pub(crate) fn moment(&self) -> Result<u64, Failure> {
        let Some(own) = &self.own else { return Ok(0) };
        self.with_dump(own, |dump| dump.moment)
    }

    /// Acts on what is known of the dump, after computing it if necessary.
    fn with_dump<T>(&self, own: &ElasticFilter, act: impl FnOnce(&Dump) -> T) -> Result<T, Failure> {
        let mut dump = self.dump.borrow_mut();
        let dump = match &mut *dump {
            Some(dump) => dump,
            none => {
                let index = own.snapshot_index().map_err(|_| Failure::out_of_memory())?;
                if (self.imported_bytes() + index.snapshot_bytes()) >> OFFSET_BITS > 0 {
                    return Err(Failure::new(format_args!("ERR the dump has 2^{OFFSET_BITS} bytes or more")));
                }
                // A snapshot ends with a checksum of all that leads to its tables, their checksums included.
                let mut checksum = [0; 8];
                own.read_snapshot(&index, index.snapshot_bytes() - 8, &mut checksum);
                let checksum = u64::from_le_bytes(checksum) ^ self.imported.as_deref().map_or(0, imported_checksum);
                none.insert(boxed(Dump { index, moment: checksum % MOMENTS + 1 })?)
            }
        };
        Ok(act(dump))
    }

    /// Does the filter have chunks of RedisBloom's?
    pub(crate) fn is_only_imported(&self) -> Option<&RedisBloomFilter> {
        if self.own.is_none() { self.imported.as_deref() } else { None }
    }

    /// The bytes of a dump that is not RedisBloom's, from an offset on, this many at most.
    pub(crate) fn dump(&self, offset: u64, most: usize) -> Result<Vec<u8>, Failure> {
        let Some(own) = &self.own else { return Ok(Vec::new()) };
        self.with_dump(own, |dump| self.dumped(own, &dump.index, offset, most))?
    }

    fn dumped(&self, own: &ElasticFilter, index: &SnapshotIndex, offset: u64, most: usize) -> Result<Vec<u8>, Failure> {
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
        self.imported_bytes() + self.own.as_ref().map_or(0, ElasticFilter::snapshot_bytes)
    }

    /// The length of what comes before the snapshot.
    fn imported_bytes(&self) -> u64 {
        self.imported.as_deref().map_or(0, |imported| PREFIX_BYTES as u64 + dump_file_bytes(imported))
    }
}

/// A checksum of all that was imported.
pub(crate) fn imported_checksum(imported: &RedisBloomFilter) -> u64 {
    imported.chunks().fold(0, |checksum, (_, bytes)| xxh3_64_with_seed(bytes, checksum))
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
