//! Chunks, as `CF.SCANDUMP` gives and `CF.LOADCHUNK` takes them: an iterator and bytes.

use alloc::vec::Vec;
use core::{fmt, iter, mem};

use super::{
    filter::{RedisBloomFilter, SubFilter},
    header::Header,
};
use crate::{
    bits::wide,
    snapshot::{SnapshotError, SnapshotErrorKind as Kind, too_short},
    storage::OutOfMemory,
};

/// The iterator of the first chunk, which has the header.
const FIRST: u64 = 1;

/// The longest chunk that is written. RedisBloom's are no longer.
const MOST_BYTES: usize = 16 << 20;

const IN_ORDER: &str = "give the chunks in the order in which CF.SCANDUMP gave them, each once";

/// Takes the chunks of a filter one by one, as `CF.LOADCHUNK` does, and makes the filter of them when all have come.
///
/// # Example
/// ```
/// use koel::redisbloom::{Loader, RedisBloomFilter};
/// # let header = [&[1, 0, 0, 0, 0, 0, 0, 0, 2][..], &[0; 15], &[1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 20, 0, 1, 0]].concat();
/// # let filter = RedisBloomFilter::from_chunks([(1, &header[..]), (5, &[0, 213, 0, 0])])?;
/// let mut chunks = filter.chunks(); // or from a server
/// let Some((iterator, header)) = chunks.next() else { unreachable!("there is always a header") };
/// let mut loader = Loader::new(iterator, &header)?;
/// for (iterator, bytes) in chunks {
///     loader.load(iterator, &bytes)?;
/// }
/// assert!(loader.finish()? == filter);
/// # Ok::<(), koel::SnapshotError>(())
/// ```
#[derive(Clone)]
pub struct Loader {
    header: Header,
    filters: Vec<SubFilter>,
    /// The slots of the next sub-filter that have come.
    slots: Vec<u8>,
    /// The number of slots that have come.
    loaded: u64,
    /// The offset of the first slot.
    start: u64,
}

impl Loader {
    /// Takes the first chunk, the header.
    ///
    /// # Errors
    /// If it is not the header of a filter that RedisBloom could have, or has the wrong iterator. Offsets count from the start of
    /// the first chunk's bytes, in all chunks' bytes together.
    pub fn new(iterator: u64, header: &[u8]) -> Result<Self, SnapshotError> {
        Self::at(iterator, header, 0)
    }

    /// The same of a chunk at this offset.
    pub(super) fn at(iterator: u64, header: &[u8], offset: u64) -> Result<Self, SnapshotError> {
        if iterator != FIRST {
            return Err(not_in_order(iterator, wide(header.len()), FIRST, offset));
        }
        let start = offset + wide(header.len());
        Ok(Self { header: Header::decode(header, offset)?, filters: Vec::new(), slots: Vec::new(), loaded: 0, start })
    }

    /// Takes the next chunk. Allocates memory for its bytes, and at most a quarter of those before.
    ///
    /// # Errors
    /// If it is not the next one, or memory cannot be allocated. Nothing has changed then.
    pub fn load(&mut self, iterator: u64, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.expect(iterator, wide(bytes.len()), self.start + self.loaded)?;
        Ok(self.take(bytes)?)
    }

    /// Fails unless a chunk of so many bytes, at this offset, comes next.
    pub(super) fn expect(&self, iterator: u64, len: u64, offset: u64) -> Result<(), SnapshotError> {
        let Some(whole) = self.next_slots() else {
            let words = "all chunks of the filter have come, but there is another one";
            return Err(SnapshotError::new(Kind::TrailingBytes, offset, words, []).with_remedy(IN_ORDER));
        };
        let next = (FIRST + self.loaded).saturating_add(len);
        if iterator != next || len == 0 {
            return Err(not_in_order(iterator, len, next, offset));
        }
        let missing = whole - wide(self.slots.len());
        if len > missing {
            let words = "a chunk of {} bytes, but its sub-filter lacks {}";
            return Err(SnapshotError::new(Kind::Parameter, offset, words, [len, missing]));
        }
        Ok(())
    }

    /// Takes bytes of a chunk that was expected.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(), OutOfMemory> {
        let whole = self.next_slots().unwrap_or(0);
        let needed = self.slots.len() + bytes.len();
        if needed > self.slots.capacity() {
            let enough = needed.max(self.slots.len() / 4 * 5);
            let enough = usize::try_from(whole).map_or(enough, |whole| enough.min(whole));
            self.slots.try_reserve_exact(enough - self.slots.len()).map_err(|_| OutOfMemory::of(enough))?;
        }
        self.filters.try_reserve(1).map_err(|_| OutOfMemory::of(size_of::<SubFilter>()))?;
        self.slots.extend_from_slice(bytes);
        self.loaded += wide(bytes.len());
        if wide(self.slots.len()) == whole {
            self.filters.push(SubFilter::new(mem::take(&mut self.slots), self.header.bucket_size.into()));
        }
        Ok(())
    }

    /// The number of slots of the sub-filter that comes next, if there is one.
    fn next_slots(&self) -> Option<u64> {
        let next = wide(self.filters.len());
        if next < self.header.filters { self.header.slots(next) } else { None }
    }

    /// What has come so far, in chunks of 16 MiB at most, for another loader that is to go on from here. They need not be those
    /// that were loaded.
    pub fn chunks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let whole = self.filters.iter().map(SubFilter::slots);
        in_chunks(&self.header, whole.chain(iter::once(&self.slots[..])))
    }

    /// The number of slots of all sub-filters, one byte each, that will come according to the header.
    #[must_use]
    pub fn slots(&self) -> u64 {
        (0..self.header.filters).map(|filter| self.header.slots(filter).unwrap_or(0)).fold(0, u64::saturating_add)
    }

    /// The memory used, in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>() + size_of_filters(&self.filters) + self.slots.capacity()
    }

    /// True if all chunks have come.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.next_slots().is_none()
    }

    /// The filter.
    ///
    /// # Errors
    /// If chunks are missing.
    pub fn finish(self) -> Result<RedisBloomFilter, SnapshotError> {
        let offset = self.start + self.loaded;
        self.finish_at(offset)
    }

    /// The same of chunks that end at this offset.
    pub(super) fn finish_at(self, offset: u64) -> Result<RedisBloomFilter, SnapshotError> {
        match self.next_slots() {
            None => Ok(RedisBloomFilter::of(self.header, self.filters)),
            Some(whole) => Err(cut_off(offset, offset + whole - wide(self.slots.len()))),
        }
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader").field("header", &*self.header).field("loaded", &self.loaded).finish_non_exhaustive()
    }
}

fn not_in_order(iterator: u64, len: u64, next: u64, offset: u64) -> SnapshotError {
    let words = "a chunk of {} bytes with the iterator {}, where {} comes next";
    SnapshotError::new(Kind::Parameter, offset, words, [len, iterator, next]).with_remedy(IN_ORDER)
}

impl RedisBloomFilter {
    /// Reads the chunks that `CF.SCANDUMP` gave: each with the iterator that came with it, in order.
    ///
    /// Safe for untrusted input: validates everything that RedisBloom relies on, and allocates memory only for bytes that exist.
    /// Chunks have no checksum: other damage goes unnoticed.
    ///
    /// # Errors
    /// If the chunks are not those of one filter; the error says what is wrong and at which offset, counted in all chunks' bytes
    /// together. If there are none: of an empty filter, RedisBloom dumps nothing.
    pub fn from_chunks<'a>(chunks: impl IntoIterator<Item = (u64, &'a [u8])>) -> Result<Self, SnapshotError> {
        let mut chunks = chunks.into_iter();
        let (iterator, header) = chunks.next().ok_or_else(no_chunks)?;
        let mut loader = Loader::new(iterator, header)?;
        for (iterator, bytes) in chunks {
            loader.load(iterator, bytes)?;
        }
        loader.finish()
    }

    /// The chunks of the filter, in the order in which `CF.LOADCHUNK` takes them, with the iterator of each. They have 16 MiB at
    /// most.
    pub fn chunks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        in_chunks(&self.core.header, self.core.filters.iter().map(SubFilter::slots))
    }

    /// The chunk that follows the one with this iterator, of so many bytes at most, and its own iterator; `None` at the end. The
    /// first one, the header, follows iterator 0, and has 38 bytes.
    ///
    /// Takes time proportional to the number of sub-filters.
    ///
    /// # Panics
    /// If `most_bytes` is 0.
    #[must_use]
    pub fn chunk_after(&self, iterator: u64, most_bytes: usize) -> Option<(u64, &[u8])> {
        let Some(mut skipped) = iterator.checked_sub(FIRST) else {
            return Some((FIRST, &self.core.header.bytes()[..]));
        };
        assert!(most_bytes > 0, "a chunk has room for a byte");
        for filter in &self.core.filters {
            let slots = filter.slots();
            if let Some(rest) =
                usize::try_from(skipped).ok().and_then(|skipped| slots.get(skipped..)).filter(|rest| !rest.is_empty())
            {
                let bytes = &rest[..rest.len().min(most_bytes)];
                return Some((iterator + wide(bytes.len()), bytes));
            }
            skipped -= wide(slots.len());
        }
        None
    }
}

/// A header and the slots of sub-filters, in chunks.
fn in_chunks<'a>(header: &'a Header, filters: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = (u64, &'a [u8])> {
    let mut iterator = FIRST;
    let slots = filters.flat_map(|slots| slots.chunks(MOST_BYTES)).map(move |bytes| {
        iterator += wide(bytes.len());
        (iterator, bytes)
    });
    iter::once((FIRST, &header.bytes()[..])).chain(slots)
}

/// The memory behind a list of sub-filters, in bytes.
pub(super) fn size_of_filters(filters: &Vec<SubFilter>) -> usize {
    filters.capacity() * size_of::<SubFilter>() + filters.iter().map(SubFilter::capacity).sum::<usize>()
}

/// The error for chunks that end at this offset.
pub(super) fn cut_off(offset: u64, expected: u64) -> SnapshotError {
    too_short(offset, expected).with_remedy("the dump is cut off, use another copy or dump the filter again")
}

pub(super) fn no_chunks() -> SnapshotError {
    SnapshotError::new(Kind::Length, 0_u64, "there are no chunks", [])
        .with_remedy("make an empty filter: RedisBloom dumps nothing of one without items")
}
