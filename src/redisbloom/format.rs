//! The dump format: the chunks of `CF.SCANDUMP` and `CF.LOADCHUNK`, which begin with a header, and files of such chunks.

use alloc::vec::Vec;
use core::{fmt, iter, mem, ops::Deref};

use super::{RedisBloomFilter, SubFilter};
use crate::{
    bits::{index, wide},
    snapshot::{SnapshotError, SnapshotErrorKind as Kind, Source, too_short},
    storage::OutOfMemory,
};

// The header.

/// The length of the first chunk, the header, in bytes. Some versions of RedisBloom do not pack it: they add two bytes of padding.
const HEADER_BYTES: usize = 38;
const UNPACKED_BYTES: usize = 40;

/// The most slots of a sub-filter. RedisBloom computes slot positions in 32 bits, and finds nothing in larger sub-filters.
pub(super) const MAX_SLOTS: u64 = 1 << 32;

/// The most slots of a bucket. RedisBloom searches no more than this.
const MAX_BUCKET_SIZE: u16 = 255;

/// The most sub-filters. RedisBloom stores their number in 16 bits.
const MAX_FILTERS: u64 = (1 << 16) - 1;

// The offsets of the fields.
const ITEMS_AT: usize = 0;
const BUCKETS_AT: usize = 8;
const DELETED_AT: usize = 16;
const FILTERS_AT: usize = 24;
const BUCKET_SIZE_AT: usize = 32;
const MAX_ITERATIONS_AT: usize = 34;
const EXPANSION_AT: usize = 36;

/// Returns the error for a first chunk of invalid length.
fn header_length_error(given: u64, offset: u64) -> SnapshotError {
    let message = "the first chunk has {} bytes, but RedisBloom's has {} or {}";
    SnapshotError::new(Kind::Length, offset, message, [given, wide(HEADER_BYTES), wide(UNPACKED_BYTES)])
}

/// A header with validated fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    fields: Fields,
    /// The encoded fields, stored so that chunks can borrow them.
    bytes: [u8; HEADER_BYTES],
}

/// The fields of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) items: u64,
    /// The number of buckets in the first sub-filter, a power of two.
    pub(super) buckets: u64,
    pub(super) deleted: u64,
    /// The number of sub-filters.
    pub(super) filters: u64,
    pub(super) bucket_size: u16,
    pub(super) max_iterations: u16,
    /// The growth factor of the number of buckets, from each sub-filter to the next: a power of two, or 0 if there is only one
    /// sub-filter.
    pub(super) expansion: u16,
}

impl Header {
    /// Reads and validates the first chunk, which begins at this offset.
    pub(super) fn decode(bytes: &[u8], offset: u64) -> Result<Self, SnapshotError> {
        if bytes.len() != HEADER_BYTES && bytes.len() != UNPACKED_BYTES {
            return Err(header_length_error(wide(bytes.len()), offset));
        }
        let word = |at: usize| bytes[at..at + 8].iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let fields = Fields {
            items: word(ITEMS_AT),
            buckets: word(BUCKETS_AT),
            deleted: word(DELETED_AT),
            filters: word(FILTERS_AT),
            bucket_size: half(BUCKET_SIZE_AT),
            max_iterations: half(MAX_ITERATIONS_AT),
            expansion: half(EXPANSION_AT),
        };
        match fields.first_invalid() {
            None => Ok(Self::new(fields)),
            Some((at, message, numbers)) => Err(SnapshotError::new(Kind::Parameter, offset + wide(at), message, numbers)),
        }
    }

    /// Creates a header with these fields, which must be valid.
    pub(super) fn new(fields: Fields) -> Self {
        Self { fields, bytes: fields.encode() }
    }

    /// Changes the fields, and encodes them again.
    pub(super) fn update(&mut self, change: impl FnOnce(&mut Fields)) {
        change(&mut self.fields);
        self.bytes = self.fields.encode();
    }

    /// Returns the first chunk.
    pub(super) fn bytes(&self) -> &[u8; HEADER_BYTES] {
        &self.bytes
    }
}

impl Deref for Header {
    type Target = Fields;

    fn deref(&self) -> &Fields {
        &self.fields
    }
}

impl Fields {
    /// Returns the first invalid field, if any: its offset, the message, and the numbers for the gaps in the message.
    fn first_invalid(&self) -> Option<(usize, &'static str, [u64; 2])> {
        let Self { buckets, filters, bucket_size, expansion, .. } = *self;
        if !buckets.is_power_of_two() {
            return Some((BUCKETS_AT, "{} buckets, but the number must be a power of two", [buckets, 0]));
        }
        if bucket_size == 0 || bucket_size > MAX_BUCKET_SIZE {
            let message = "buckets of {} slots, but RedisBloom's have 1 to {}";
            return Some((BUCKET_SIZE_AT, message, [bucket_size.into(), MAX_BUCKET_SIZE.into()]));
        }
        if filters == 0 || filters > MAX_FILTERS {
            return Some((FILTERS_AT, "{} sub-filters, but a filter has 1 to {}", [filters, MAX_FILTERS]));
        }
        if !expansion.is_power_of_two() && (expansion > 0 || filters > 1) {
            let message = "expansion {}, but it must be a power of two, or 0 for a filter that does not grow";
            return Some((EXPANSION_AT, message, [expansion.into(), 0]));
        }
        // The last sub-filter is the largest.
        if self.slots(filters - 1).is_none() {
            let message = "sub-filter {} has more than {} slots, the most that RedisBloom can use";
            return Some((FILTERS_AT, message, [filters, MAX_SLOTS]));
        }
        None
    }

    /// Returns the number of slots of the sub-filter with this index, or `None` if RedisBloom cannot use that many.
    pub(super) fn slots(&self, filter: u64) -> Option<u64> {
        let growth = u64::from(self.expansion).checked_pow(if filter > 0 { u32::try_from(filter).ok()? } else { 0 })?;
        let slots = self.buckets.checked_mul(growth)?.checked_mul(self.bucket_size.into())?;
        (slots <= MAX_SLOTS).then_some(slots)
    }

    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        for (at, word) in
            [(ITEMS_AT, self.items), (BUCKETS_AT, self.buckets), (DELETED_AT, self.deleted), (FILTERS_AT, self.filters)]
        {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        for (at, half) in
            [(BUCKET_SIZE_AT, self.bucket_size), (MAX_ITERATIONS_AT, self.max_iterations), (EXPANSION_AT, self.expansion)]
        {
            bytes[at..at + 2].copy_from_slice(&half.to_le_bytes());
        }
        bytes
    }
}

// Chunks.

/// The iterator of the first chunk, the header.
const HEADER_ITERATOR: u64 = 1;

/// The most bytes of a chunk that this library writes. RedisBloom's chunks are no longer.
const MAX_CHUNK_BYTES: usize = 16 << 20;

const IN_ORDER: &str = "give the chunks in the order in which CF.SCANDUMP gave them, each once";

/// A loader that takes the chunks of a filter one at a time, as `CF.LOADCHUNK` does, and returns the filter when all have arrived.
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
    /// The slots that have arrived of the next sub-filter.
    slots: Vec<u8>,
    /// The number of slots that have arrived, in all sub-filters.
    loaded: u64,
    /// The offset of the next byte, counted from the beginning of the dump.
    offset: u64,
}

impl Loader {
    /// Takes the first chunk, the header.
    ///
    /// # Errors
    /// If it is not a valid header of RedisBloom's, or has an invalid iterator. Offsets count from the start of the first chunk's
    /// bytes, through the bytes of all chunks.
    pub fn new(iterator: u64, header: &[u8]) -> Result<Self, SnapshotError> {
        Self::new_at(iterator, header, 0)
    }

    /// Takes the first chunk, as `new` does, from this offset in a dump.
    fn new_at(iterator: u64, header: &[u8], offset: u64) -> Result<Self, SnapshotError> {
        if iterator != HEADER_ITERATOR {
            return Err(not_in_order(iterator, wide(header.len()), HEADER_ITERATOR, offset));
        }
        let end = offset + wide(header.len());
        Ok(Self { header: Header::decode(header, offset)?, filters: Vec::new(), slots: Vec::new(), loaded: 0, offset: end })
    }

    /// Takes the next chunk. Allocates memory for its bytes, and at most a quarter more for the bytes before it.
    ///
    /// # Errors
    /// If it is not the next chunk, or memory cannot be allocated. The loader is then unchanged.
    pub fn load(&mut self, iterator: u64, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.check_next(iterator, wide(bytes.len()))?;
        Ok(self.take(bytes)?)
    }

    /// Returns an error unless the next chunk has this iterator and may have this length.
    fn check_next(&self, iterator: u64, len: u64) -> Result<(), SnapshotError> {
        let offset = self.offset;
        let Some(whole) = self.next_slots() else {
            let message = "all chunks of the filter have arrived, but there is another one";
            return Err(SnapshotError::new(Kind::TrailingBytes, offset, message, []).with_remedy(IN_ORDER));
        };
        if len == 0 {
            let message = "an empty chunk with the iterator {}, but chunks of the filter are still missing";
            return Err(SnapshotError::new(Kind::Parameter, offset, message, [iterator]).with_remedy(IN_ORDER));
        }
        let next = (HEADER_ITERATOR + self.loaded).saturating_add(len);
        if iterator != next {
            return Err(not_in_order(iterator, len, next, offset));
        }
        let missing = whole - wide(self.slots.len());
        if len > missing {
            let message = "a chunk of {} bytes, but its sub-filter lacks only {}";
            return Err(SnapshotError::new(Kind::Parameter, offset, message, [len, missing]));
        }
        Ok(())
    }

    /// Appends bytes of a chunk that passed `check_next`.
    fn take(&mut self, bytes: &[u8]) -> Result<(), OutOfMemory> {
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
        self.offset += wide(bytes.len());
        if wide(self.slots.len()) == whole {
            self.filters.push(SubFilter::new(mem::take(&mut self.slots), self.header.bucket_size.into()));
        }
        Ok(())
    }

    /// Returns the number of slots of the next sub-filter, or `None` if all have arrived.
    fn next_slots(&self) -> Option<u64> {
        let next = wide(self.filters.len());
        if next < self.header.filters { self.header.slots(next) } else { None }
    }

    /// Returns what has arrived so far, in chunks of at most 16 MiB, for another loader that continues from here. The boundaries
    /// may differ from those of the loaded chunks.
    pub fn chunks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let whole = self.filters.iter().map(|filter| &filter.slots[..]);
        in_chunks(&self.header, whole.chain(iter::once(&self.slots[..])))
    }

    /// Returns the number of slots of all sub-filters, one byte each, according to the header.
    #[must_use]
    pub fn slots(&self) -> u64 {
        (0..self.header.filters).map(|filter| self.header.slots(filter).unwrap_or(0)).fold(0, u64::saturating_add)
    }

    /// Returns the memory in use, in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>() + size_of_filters(&self.filters) + self.slots.capacity()
    }

    /// Returns true if all chunks have arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.next_slots().is_none()
    }

    /// Returns the filter.
    ///
    /// # Errors
    /// If chunks are missing.
    pub fn finish(self) -> Result<RedisBloomFilter, SnapshotError> {
        match self.next_slots() {
            None => Ok(RedisBloomFilter::of(self.header, self.filters)),
            Some(whole) => Err(cut_off(self.offset, self.offset + whole - wide(self.slots.len()))),
        }
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader").field("header", &*self.header).field("loaded", &self.loaded).finish_non_exhaustive()
    }
}

/// Returns the error for a chunk of `len` bytes that has another iterator than `next`.
fn not_in_order(iterator: u64, len: u64, next: u64, offset: u64) -> SnapshotError {
    let message = "a chunk of {} bytes with the iterator {}, but its iterator should be {}";
    SnapshotError::new(Kind::Parameter, offset, message, [len, iterator, next]).with_remedy(IN_ORDER)
}

impl RedisBloomFilter {
    /// Reads the chunks of `CF.SCANDUMP` in order, each with its iterator.
    ///
    /// Safe for untrusted input: validates everything that RedisBloom relies on, and allocates memory only for bytes that exist.
    /// Chunks have no checksum, so other damage goes unnoticed.
    ///
    /// # Errors
    /// If the chunks are not those of one filter, all of them and in order. The error says what is wrong and at which offset,
    /// counted through the bytes of all chunks. RedisBloom dumps no chunks of an empty filter, so having none is an error, too.
    pub fn from_chunks<'a>(chunks: impl IntoIterator<Item = (u64, &'a [u8])>) -> Result<Self, SnapshotError> {
        let mut chunks = chunks.into_iter();
        let (iterator, header) = chunks.next().ok_or_else(no_chunks)?;
        let mut loader = Loader::new(iterator, header)?;
        for (iterator, bytes) in chunks {
            loader.load(iterator, bytes)?;
        }
        loader.finish()
    }

    /// Returns the chunks of the filter with their iterators, in the order that `CF.LOADCHUNK` requires. Each has at most 16 MiB.
    pub fn chunks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        in_chunks(&self.core.header, self.core.filters.iter().map(|filter| &filter.slots[..]))
    }

    /// Returns the chunk that follows the one with this iterator, together with its own iterator, or `None` at the end. The chunk
    /// has at most `most_bytes` bytes, except for the header, which follows iterator 0 and always has 38.
    ///
    /// Takes time proportional to the number of sub-filters.
    ///
    /// # Panics
    /// If `most_bytes` is 0.
    #[must_use]
    pub fn chunk_after(&self, iterator: u64, most_bytes: usize) -> Option<(u64, &[u8])> {
        let Some(mut skipped) = iterator.checked_sub(HEADER_ITERATOR) else {
            return Some((HEADER_ITERATOR, &self.core.header.bytes()[..]));
        };
        assert!(most_bytes > 0, "a chunk has room for a byte");
        for filter in &self.core.filters {
            let slots = &filter.slots;
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

/// Returns the chunks for a header and the slots of sub-filters, with their iterators.
fn in_chunks<'a>(header: &'a Header, filters: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = (u64, &'a [u8])> {
    let mut iterator = HEADER_ITERATOR;
    let slots = filters.flat_map(|slots| slots.chunks(MAX_CHUNK_BYTES)).map(move |bytes| {
        iterator += wide(bytes.len());
        (iterator, bytes)
    });
    iter::once((HEADER_ITERATOR, &header.bytes()[..])).chain(slots)
}

/// Returns the heap memory of a list of sub-filters, in bytes.
pub(super) fn size_of_filters(filters: &Vec<SubFilter>) -> usize {
    filters.capacity() * size_of::<SubFilter>() + filters.iter().map(|filter| filter.slots.capacity()).sum::<usize>()
}

/// Returns the error for chunks that end at this offset, before the expected one.
fn cut_off(offset: u64, expected: u64) -> SnapshotError {
    too_short(offset, expected).with_remedy("the dump is cut off, use another copy or dump the filter again")
}

fn no_chunks() -> SnapshotError {
    SnapshotError::new(Kind::Length, 0_u64, "there are no chunks", [])
        .with_remedy("make an empty filter: RedisBloom dumps no chunks of a filter without items")
}

// Files of chunks: the iterator, the length and the bytes of each.

/// The bytes of a frame: the iterator and the length of the chunk that follows.
const FRAME_BYTES: usize = 16;

/// The most bytes that are read at a time.
const PIECE_BYTES: usize = 16 << 10;

impl RedisBloomFilter {
    /// Reads chunks from the bytes of a file: for each chunk, the iterator and the length as 64-bit little-endian numbers, then its
    /// bytes. (RedisBloom has no file format; [`guide::redisbloom`](crate::guide::redisbloom) has a script that writes these
    /// files.)
    ///
    /// Safe for untrusted input, as [`from_chunks`](Self::from_chunks).
    ///
    /// # Errors
    /// As `from_chunks`; offsets count from the beginning of the file.
    pub fn from_dump(bytes: &[u8]) -> Result<Self, SnapshotError> {
        read(Source::Slice(bytes))
    }

    /// Reads chunks as [`from_dump`](Self::from_dump) does, from a reader, up to its end. Memory grows as bytes arrive. Reads large
    /// pieces, so the reader needs no buffer.
    ///
    /// # Errors
    /// As `from_dump`, and if the reader fails: then the kind is [`Io`](crate::SnapshotErrorKind::Io).
    #[cfg(feature = "std")]
    pub fn read_dump(reader: impl std::io::Read) -> Result<Self, SnapshotError> {
        read(Source::Stream(&mut crate::snapshot::stream(reader)))
    }

    /// Returns the bytes of a file of all chunks, for [`from_dump`](Self::from_dump).
    #[must_use]
    pub fn to_dump(&self) -> Vec<u8> {
        let mut dump = Vec::new();
        for (iterator, bytes) in self.chunks() {
            dump.extend_from_slice(&encode_frame(iterator, bytes));
            dump.extend_from_slice(bytes);
        }
        dump
    }

    /// Writes the bytes of [`to_dump`](Self::to_dump) without holding all of them in memory.
    ///
    /// # Errors
    /// The writer's error. The bytes written until then are not a valid dump.
    #[cfg(feature = "std")]
    pub fn write_dump<W: std::io::Write>(&self, mut writer: W) -> std::io::Result<()> {
        self.chunks().try_for_each(|(iterator, bytes)| {
            writer.write_all(&encode_frame(iterator, bytes))?;
            writer.write_all(bytes)
        })
    }

    /// Writes the bytes of [`to_dump`](Self::to_dump) to a file, which is created or replaced as by
    /// [`CuckooFilter::save`](crate::CuckooFilter::save).
    ///
    /// # Errors
    /// The error of the operating system, with the path. The old file is unchanged, unless the message says otherwise.
    #[cfg(feature = "std")]
    pub fn save_dump(&self, path: impl AsRef<std::path::Path>) -> std::io::Result<()> {
        // Reads the whole file back: only the chunks themselves tell whether all of them are there.
        let check = |mut file: &std::fs::File| {
            let rewound = std::io::Seek::rewind(&mut file);
            rewound.map_err(|error| SnapshotError::io(0, "the file cannot be read again", error))?;
            read(Source::Stream(&mut crate::snapshot::stream(file))).map(drop)
        };
        crate::snapshot::replace_with(path.as_ref(), |file| self.write_dump(file), check)
    }
}

/// Reads the filter from a file of chunks.
fn read(mut source: Source<'_>) -> Result<RedisBloomFilter, SnapshotError> {
    let mut piece = [0; PIECE_BYTES];
    let (iterator, len) = read_frame(&mut source, 0)?.ok_or_else(no_chunks)?;
    let offset = wide(FRAME_BYTES);
    if len > wide(UNPACKED_BYTES) {
        return Err(header_length_error(len, offset));
    }
    let header = &mut piece[..index(len)];
    fill(&mut source, header, offset)?;
    let mut loader = Loader::new_at(iterator, header, offset)?;
    while let Some((iterator, len)) = read_frame(&mut source, loader.offset)? {
        loader.offset += wide(FRAME_BYTES);
        loader.check_next(iterator, len)?;
        let mut left = len;
        while left > 0 {
            let piece = &mut piece[..index(left.min(wide(PIECE_BYTES)))];
            fill(&mut source, piece, loader.offset)?;
            loader.take(piece)?;
            left -= wide(piece.len());
        }
    }
    loader.finish()
}

/// Returns the frame before a chunk: its iterator and its length.
fn encode_frame(iterator: u64, bytes: &[u8]) -> [u8; FRAME_BYTES] {
    let mut frame = [0; FRAME_BYTES];
    frame[..8].copy_from_slice(&iterator.to_le_bytes());
    frame[8..].copy_from_slice(&wide(bytes.len()).to_le_bytes());
    frame
}

/// Reads the iterator and the length of the next chunk, or returns `None` at the end.
fn read_frame(source: &mut Source<'_>, offset: u64) -> Result<Option<(u64, u64)>, SnapshotError> {
    let (mut iterator, mut len) = ([0; 8], [0; 8]);
    match source.fill(&mut iterator, offset)? {
        0 => return Ok(None),
        8 => {}
        read => return Err(cut_off(offset + wide(read), offset + wide(FRAME_BYTES))),
    }
    fill(source, &mut len, offset + 8)?;
    Ok(Some((u64::from_le_bytes(iterator), u64::from_le_bytes(len))))
}

/// Fills `bytes`. Returns an error if the source ends before that.
fn fill(source: &mut Source<'_>, bytes: &mut [u8], offset: u64) -> Result<(), SnapshotError> {
    let read = source.fill(bytes, offset)?;
    if read < bytes.len() { Err(cut_off(offset + wide(read), offset + wide(bytes.len()))) } else { Ok(()) }
}
