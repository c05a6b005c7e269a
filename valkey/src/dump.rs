//! The bytes of a filter, in chunks, as CF.SCANDUMP gives them.
//!
//! - Those of one of koel's filters are a snapshot, which any program that uses koel can open (docs/FORMAT.md).
//! - Those of an imported filter are RedisBloom's chunks, which RedisBloom takes, too.
//! - Those of a filter with both begin with [`MAGIC`] and the length of the first part, 8 bytes; then come the imported filter as a
//!   dump file of RedisBloom's chunks, and the snapshot.

use std::borrow::Cow;

use koel::redisbloom::RedisBloomFilter;

use crate::{filter::Filter, reply::Failure};

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
        let mut bytes = Vec::new();
        let mut skipped = offset;
        if let Some(imported) = &self.imported {
            for piece in prefixed(imported) {
                let from = usize::try_from(skipped).map_or(piece.len(), |skipped| skipped.min(piece.len()));
                skipped -= from as u64;
                let taken = (piece.len() - from).min(most - bytes.len());
                reserve(&mut bytes, taken)?;
                bytes.extend_from_slice(&piece[from..from + taken]);
            }
        }
        let (before, left) = (bytes.len(), index.snapshot_bytes().saturating_sub(skipped));
        let taken = usize::try_from(left).map_or(most - before, |left| left.min(most - before));
        reserve(&mut bytes, taken)?;
        bytes.resize(before + taken, 0);
        let read = own.read_snapshot(index, skipped, &mut bytes[before..]);
        bytes.truncate(before + read);
        Ok(bytes)
    }

    /// The length of such a dump.
    pub(crate) fn dump_bytes(&self) -> u64 {
        let imported = self.imported.as_ref().map_or(0, |imported| (PREFIX_BYTES + dump_file_bytes(imported)) as u64);
        imported + self.own.as_ref().map_or(0, koel::ElasticFilter::snapshot_bytes)
    }
}

/// The pieces of an imported filter before a snapshot.
fn prefixed(imported: &RedisBloomFilter) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let prefix = [MAGIC, (dump_file_bytes(imported) as u64).to_le_bytes()].concat();
    let chunks = imported.chunks().flat_map(|(iterator, bytes)| {
        let frame = [iterator.to_le_bytes(), (bytes.len() as u64).to_le_bytes()].concat();
        [Cow::Owned(frame), bytes]
    });
    std::iter::once(Cow::Owned(prefix)).chain(chunks)
}

/// The length of [`RedisBloomFilter::to_dump`].
fn dump_file_bytes(imported: &RedisBloomFilter) -> usize {
    imported.chunks().map(|(_, bytes)| 16 + bytes.len()).sum()
}

/// Makes room for so many more bytes.
pub(crate) fn reserve(bytes: &mut Vec<u8>, more: usize) -> Result<(), Failure> {
    bytes.try_reserve_exact(more).map_err(|_| Failure::out_of_memory())
}
