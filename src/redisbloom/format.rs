//! The dump format: the chunks of `CF.SCANDUMP` and `CF.LOADCHUNK`, which begin with a header, and files of such chunks.

use alloc::vec::Vec;
use core::{fmt, iter, ops::Range};

use super::{RedisBloomFilter, SubFilter, SubFilters};
use crate::{
    bits::{in_memory, index, low_half, wide},
    filter::Core as _,
    snapshot::{SnapshotError, SnapshotErrorKind as Kind, Source, too_short},
    storage::{OutOfMemory, reserve},
};

// The header.

/// The length of the first chunk, the header, in bytes. Some versions of RedisBloom do not pack it: they add two bytes of padding.
const HEADER_BYTES: usize = 38;
const UNPACKED_BYTES: usize = 40;

/// The most slots of a sub-filter. RedisBloom computes slot positions in 32 bits, and finds nothing in larger sub-filters.
pub(super) const MAX_SLOTS: u64 = 1 << 32;

/// The most slots of a bucket. RedisBloom searches no more than this.
const MAX_BUCKET_SIZE: u64 = 255;

/// The most sub-filters. RedisBloom stores their number in 16 bits.
const MAX_FILTERS: u64 = (1 << 16) - 1;

// The fields, as ranges of bytes.

pub(super) const ITEMS: Range<usize> = 0..8;
/// The number of buckets in the first sub-filter, a power of two.
pub(super) const BUCKETS: Range<usize> = 8..16;
pub(super) const DELETED: Range<usize> = 16..24;
/// The number of sub-filters.
pub(super) const FILTERS: Range<usize> = 24..32;
pub(super) const BUCKET_SIZE: Range<usize> = 32..34;
pub(super) const MAX_ITERATIONS: Range<usize> = 34..36;
/// The growth factor of the number of buckets, from each sub-filter to the next: a power of two, or 0 if there is only one
/// sub-filter.
pub(super) const EXPANSION: Range<usize> = 36..38;

/// A validated header, without padding. It is stored as bytes so that chunks can borrow it.
#[derive(Clone, Copy)]
pub(super) struct Header([u8; HEADER_BYTES]);

impl Header {
    /// Creates a header with these fields, which must be valid. The others are 0.
    pub(super) fn new<const N: usize>(fields: [(Range<usize>, u64); N]) -> Self {
        let mut header = Self([0; HEADER_BYTES]);
        fields.into_iter().for_each(|(field, number)| header.set(field, number));
        header
    }

    /// Reads and validates the first chunk, which begins at this offset.
    fn decode(bytes: &[u8], offset: u64) -> Result<Self, SnapshotError> {
        let (HEADER_BYTES | UNPACKED_BYTES, Some(packed)) = (bytes.len(), bytes.first_chunk()) else {
            return Err(header_length_error(wide(bytes.len()), offset));
        };
        let header = Self(*packed);
        match header.first_invalid() {
            None => Ok(header),
            Some((field, message, numbers)) => {
                Err(SnapshotError::new(Kind::Parameter, offset + wide(field.start), message, numbers))
            }
        }
    }

    /// Returns the first invalid field, if any, with the message and the numbers for its gaps.
    fn first_invalid(&self) -> Option<(Range<usize>, &'static str, [u64; 2])> {
        let [buckets, filters, bucket_size, expansion] = [BUCKETS, FILTERS, BUCKET_SIZE, EXPANSION].map(|field| self.get(field));
        if !buckets.is_power_of_two() {
            return Some((BUCKETS, "{} buckets, but the number must be a power of two", [buckets, 0]));
        }
        if bucket_size == 0 || bucket_size > MAX_BUCKET_SIZE {
            return Some((BUCKET_SIZE, "buckets of {} slots, but RedisBloom's have 1 to {}", [bucket_size, MAX_BUCKET_SIZE]));
        }
        if filters == 0 || filters > MAX_FILTERS {
            return Some((FILTERS, "{} sub-filters, but a filter has 1 to {}", [filters, MAX_FILTERS]));
        }
        if !expansion.is_power_of_two() && (expansion > 0 || filters > 1) {
            let message = "expansion {}, but it must be a power of two, or 0 for a filter that does not grow";
            return Some((EXPANSION, message, [expansion, 0]));
        }
        // The last sub-filter is the largest.
        if self.slots(filters - 1).is_none() {
            let message = "sub-filter {} has more than {} slots, the most that RedisBloom can use";
            return Some((FILTERS, message, [filters, MAX_SLOTS]));
        }
        None
    }

    /// Returns the number of slots of the sub-filter with this index, or `None` if RedisBloom cannot use that many.
    fn slots(&self, filter: u64) -> Option<u64> {
        let growth = self.get(EXPANSION).checked_pow(low_half(filter))?;
        let slots = growth.checked_mul(self.get(BUCKETS))?.checked_mul(self.get(BUCKET_SIZE))?;
        (slots <= MAX_SLOTS).then_some(slots)
    }

    pub(super) fn get(&self, field: Range<usize>) -> u64 {
        let mut number = [0; 8];
        number[..field.len()].copy_from_slice(&self.0[field]);
        u64::from_le_bytes(number)
    }

    pub(super) fn set(&mut self, field: Range<usize>, number: u64) {
        let len = field.len();
        self.0[field].copy_from_slice(&number.to_le_bytes()[..len]);
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Header");
        for (name, field) in [
            ("items", ITEMS),
            ("buckets", BUCKETS),
            ("deleted", DELETED),
            ("filters", FILTERS),
            ("bucket_size", BUCKET_SIZE),
            ("max_iterations", MAX_ITERATIONS),
            ("expansion", EXPANSION),
        ] {
            debug.field(name, &self.get(field));
        }
        debug.finish()
    }
}

/// Returns the error for a first chunk of invalid length.
fn header_length_error(given: u64, offset: u64) -> SnapshotError {
    let message = "the first chunk has {} bytes, but RedisBloom's has {} or {}";
    SnapshotError::new(Kind::Length, offset, message, [given, wide(HEADER_BYTES), wide(UNPACKED_BYTES)])
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
    /// The sub-filters that have arrived. The last one may lack slots.
    core: SubFilters,
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
        let core = SubFilters { header: Header::decode(header, offset)?, filters: Vec::new() };
        Ok(Self { core, loaded: 0, offset: end })
    }

    /// Takes the next chunk. Allocates memory for its bytes, at most a quarter more for the bytes before it, and about 150 bytes for a
    /// sub-filter that begins with it.
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
        let Some(missing) = self.missing() else {
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
        if len > missing {
            let message = "a chunk of {} bytes, but its sub-filter lacks only {}";
            return Err(SnapshotError::new(Kind::Parameter, offset, message, [len, missing]));
        }
        Ok(())
    }

    /// Appends bytes of a chunk that passed `check_next`.
    fn take(&mut self, bytes: &[u8]) -> Result<(), OutOfMemory> {
        let SubFilters { header, filters } = &mut self.core;
        match filters.last_mut() {
            Some(last) if last.missing() > 0 => last.append(bytes)?,
            _ => {
                reserve(filters, 1)?;
                let buckets = header.slots(wide(filters.len())).unwrap_or(0) / header.get(BUCKET_SIZE);
                let mut next = SubFilter::new(buckets, index(header.get(BUCKET_SIZE)));
                next.append(bytes)?;
                filters.push(next);
            }
        }
        self.loaded += wide(bytes.len());
        self.offset += wide(bytes.len());
        Ok(())
    }

    /// Returns the number of slots that the next sub-filter lacks, or `None` if all have arrived.
    fn missing(&self) -> Option<u64> {
        let SubFilters { header, filters } = &self.core;
        let of_last = filters.last().map_or(0, SubFilter::missing);
        if of_last > 0 {
            return Some(of_last);
        }
        let next = wide(filters.len());
        if next < header.get(FILTERS) { header.slots(next) } else { None }
    }

    /// Returns what has arrived so far, in chunks of at most 16 MiB, for another loader that continues from here. The boundaries
    /// may differ from those of the loaded chunks.
    pub fn chunks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.core.chunks()
    }

    /// Returns the number of slots of all sub-filters, one byte each, according to the header.
    #[must_use]
    pub fn slots(&self) -> u64 {
        let header = &self.core.header;
        (0..header.get(FILTERS)).map(|filter| header.slots(filter).unwrap_or(0)).sum()
    }

    /// Returns the memory in use, in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>() + self.core.external_bytes()
    }

    /// Returns true if all chunks have arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.missing().is_none()
    }

    /// Returns the filter.
    ///
    /// # Errors
    /// If chunks are missing.
    pub fn finish(self) -> Result<RedisBloomFilter, SnapshotError> {
        match self.missing() {
            None => Ok(RedisBloomFilter::of(self.core)),
            Some(missing) => Err(cut_off(self.offset, self.offset + missing)),
        }
    }
}

impl fmt::Debug for Loader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader").field("header", &self.core.header).field("loaded", &self.loaded).finish_non_exhaustive()
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
        self.core.chunks()
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
            return Some((HEADER_ITERATOR, &self.core.header.0));
        };
        assert!(most_bytes > 0, "a chunk has room for a byte");
        for filter in &self.core.filters {
            if let Some(rest @ [_, ..]) = filter.slots.get(in_memory(skipped)..) {
                let bytes = &rest[..rest.len().min(most_bytes)];
                return Some((iterator + wide(bytes.len()), bytes));
            }
            skipped -= wide(filter.slots.len());
        }
        None
    }
}

impl SubFilters {
    /// Returns the chunks of the header and of the slots, with their iterators.
    fn chunks(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut iterator = HEADER_ITERATOR;
        let slots = self.filters.iter().flat_map(|filter| filter.slots.chunks(MAX_CHUNK_BYTES)).map(move |bytes| {
            iterator += wide(bytes.len());
            (iterator, bytes)
        });
        iter::once((HEADER_ITERATOR, &self.header.0[..])).chain(slots)
    }
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
            dump.extend_from_slice(frame(iterator, bytes).as_flattened());
            dump.extend_from_slice(bytes);
        }
        dump
    }

    /// Writes the bytes of [`to_dump`](Self::to_dump) without holding all of them in memory. Does not flush the writer.
    ///
    /// # Errors
    /// The writer's error. The bytes written until then are not a valid dump.
    #[cfg(feature = "std")]
    pub fn write_dump<W: std::io::Write>(&self, mut writer: W) -> std::io::Result<()> {
        self.chunks().try_for_each(|(iterator, bytes)| {
            writer.write_all(frame(iterator, bytes).as_flattened())?;
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
fn frame(iterator: u64, bytes: &[u8]) -> [[u8; 8]; 2] {
    [iterator, wide(bytes.len())].map(u64::to_le_bytes)
}

/// Reads the iterator and the length of the next chunk, or returns `None` at the end.
fn read_frame(source: &mut Source<'_>, offset: u64) -> Result<Option<(u64, u64)>, SnapshotError> {
    let mut frame = [[0; 8]; 2];
    match source.fill(frame.as_flattened_mut(), offset)? {
        0 => Ok(None),
        FRAME_BYTES => Ok(Some(frame.map(u64::from_le_bytes).into())),
        read => Err(cut_off(offset + wide(read), offset + wide(FRAME_BYTES))),
    }
}

/// Fills `bytes`. Returns an error if the source ends before that.
fn fill(source: &mut Source<'_>, bytes: &mut [u8], offset: u64) -> Result<(), SnapshotError> {
    let read = source.fill(bytes, offset)?;
    if read < bytes.len() { Err(cut_off(offset + wide(read), offset + wide(bytes.len()))) } else { Ok(()) }
}
