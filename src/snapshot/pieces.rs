//! Pieces of snapshots: a table without header and trailer, the bytes from any offset on, and the end of a snapshot that arrives in
//! pieces.

use alloc::vec::Vec;
use core::{fmt, iter};

use super::{
    SnapshotError, SnapshotErrorKind as Kind,
    error::too_short,
    format::{
        Fixed, HEADER_BYTES, Header, HeaderBytes, MAGIC, RECORD_BYTES, SECTION_BYTES, Section, TRAILER_BYTES, checksum,
        is_growing, not_a_snapshot,
    },
    verify::Frame,
    write::{Writing, bodies, section},
};
use crate::{
    bits::{PADDING, in_memory, index, low_half, wide},
    elastic::{ElasticFilter, ElasticParams, Partition},
    filter::{CuckooFilter, FilterView, RawFilter},
    hash::{Hasher, HasherId, Xxh3},
    message::text,
    params::Params,
    storage::{Bytes, OutOfMemory, Snapshot, reserved},
};

// Bare tables: the table of a fixed filter, and the first half of the checksum that would follow it in a snapshot. The caller keeps
// the contents of the header, once for many tables.

/// The length of a bare table's checksum.
const CHECKSUM_BYTES: usize = 4;

impl Params {
    /// Returns the length in bytes of a bare table of a filter with these parameters: the table and 4 bytes of checksum
    /// (docs/FORMAT.md, "Bare tables"). It does not depend on the number of items.
    ///
    /// # Example
    /// ```
    /// let params = koel::CuckooFilter::builder().capacity(100).false_positive_rate(1.0 / 256.0).params()?;
    /// assert_eq!(params.bare_table_bytes(), 164);
    /// assert_eq!(params.bare_table_bytes(), params.table_bytes() + 4);
    /// # Ok::<(), koel::ParamError>(())
    /// ```
    #[must_use]
    pub fn bare_table_bytes(&self) -> usize {
        self.table_bytes() + CHECKSUM_BYTES
    }
}

impl<H: Hasher> CuckooFilter<H> {
    /// Returns the table and 4 bytes of checksum, without the header of a snapshot: [`Params::bare_table_bytes`] bytes. They are
    /// meant for programs that keep many small filters with the same parameters (see the [guide](crate::guide::small_filters)).
    /// Takes time proportional to the table.
    ///
    /// [`FilterView::over_table`] opens them. It also needs the contents of the header, which are not in these bytes: the
    /// [parameters](Self::params), the [number of items in the table](Self::table_len), and the hasher. Extra copies, which are
    /// counted beside the table, are left out; a [snapshot](Self::to_bytes) has them.
    ///
    /// # Panics
    /// If the bytes would not fit into the address space (on 32-bit targets). If the allocator has no memory for them, the program
    /// aborts, as with any vector. [`write_table`](Self::write_table) needs no memory.
    #[must_use]
    pub fn to_table(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.core.params().bare_table_bytes());
        bytes.extend_from_slice(self.core.table());
        bytes.extend_from_slice(&self.table_checksum());
        bytes
    }

    /// Writes the bytes of [`to_table`](Self::to_table) without copying them. Does not flush the writer.
    ///
    /// # Errors
    /// The writer's error.
    ///
    /// # Example
    /// Many tables in a row, all filled in the same filter:
    /// ```
    /// use koel::{CuckooFilter, FilterView};
    /// let mut filter = CuckooFilter::builder().capacity(102).false_positive_rate(0.01).build()?;
    /// let (params, mut file) = (filter.params(), Vec::new());
    /// for block in 0..50u64 {
    ///     filter.clear();
    ///     filter.insert_iter(block * 100..block * 100 + 100)?;
    ///     filter.write_table(&mut file)?;
    /// }
    /// file.extend([0; 4]); // lookups in the last table load up to four bytes behind its checksum
    /// let last = FilterView::over_table(&file[49 * params.bare_table_bytes()..], params, 100)?;
    /// assert!(last.contains(&4999u64));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[cfg(feature = "std")]
    pub fn write_table<W: std::io::Write>(&self, mut writer: W) -> std::io::Result<()> {
        writer.write_all(self.core.table())?;
        writer.write_all(&self.table_checksum())
    }

    fn table_checksum(&self) -> [u8; CHECKSUM_BYTES] {
        let (_, seed) = header(&self.core, self.hasher.id());
        low_half(checksum(self.core.table(), seed)).to_le_bytes()
    }
}

impl<D: AsRef<[u8]>> FilterView<D> {
    /// Opens the bare table at the start of the data, which [`CuckooFilter::to_table`] or [`CuckooFilter::write_table`] wrote.
    /// Copies nothing and takes constant time.
    ///
    /// `params` are those of the filter that was written. `items` is its [`table_len`](CuckooFilter::table_len), which is the
    /// number of its items if each was inserted once. Any bytes may follow the checksum, and at least 4 must: lookups load them and
    /// ignore their values. In a buffer of many tables they belong to the next one; append zeros behind the last one.
    ///
    /// [`verify`](Self::verify) validates the table, as it does in a snapshot. The checksum depends on parameters, hasher and
    /// number of items, so it rejects any that differ from those of the written filter. Altered bytes pass its 32 bits by chance
    /// once in 4 billion. [`to_bytes`](Self::to_bytes) makes a snapshot.
    ///
    /// # Errors
    /// If there are fewer than [`Params::bare_table_bytes`] + 4 bytes, or more items than slots.
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, FilterView};
    /// let items = ["alice", "bob"];
    /// let filter = CuckooFilter::builder().capacity(100).false_positive_rate(0.01).build_from_items(&items)?;
    /// let params = filter.params(); // kept once for all tables
    /// let buffer = [filter.to_table(), filter.to_table(), vec![0; 4]].concat();
    ///
    /// let second = FilterView::over_table(&buffer[params.bare_table_bytes()..], params, 2)?;
    /// second.verify()?;
    /// assert!(second.contains("alice"));
    /// assert!(second == filter);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn over_table(data: D, params: Params, items: usize) -> Result<Self, SnapshotError> {
        Self::over_table_with(data, params, items, Xxh3)
    }
}

impl<D: AsRef<[u8]>, H: Hasher> FilterView<D, H> {
    /// Opens a bare table of a filter with any hasher, as [`over_table`](Self::over_table) does.
    ///
    /// # Errors
    /// As `over_table`.
    pub fn over_table_with(data: D, params: Params, items: usize, hasher: H) -> Result<Self, SnapshotError> {
        let (given, end) = (data.as_ref().len(), params.table_bytes() + PADDING);
        if given < end {
            let remedy = "give the table, its checksum, and at least 4 bytes behind them";
            return Err(too_short(wide(given), wide(end)).with_remedy(remedy));
        }
        if items > params.slots() {
            let error = SnapshotError::new(Kind::Parameter, 0u64, "{} items in {} slots", [wide(items), wide(params.slots())]);
            return Err(
                error.with_remedy("give the number of items that the filter's table held (table_len) when it was written")
            );
        }
        Ok(Self { core: RawFilter::from_parts(params, Snapshot { data, start: 0, end }, wide(items)), hasher })
    }
}

/// Returns the header that a snapshot would have, and its checksum.
fn header<S: Bytes>(filter: &RawFilter<S>, hasher: HasherId) -> (HeaderBytes, u64) {
    Fixed { items: wide(filter.table_len()), listed_bytes: 0, params: *filter.params() }.header(hasher)
}

/// Returns the checksum that is stored behind a bare table.
fn stored<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>) -> u32 {
    let behind = view.storage[view.params().table_bytes()..].first_chunk();
    behind.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Returns the frame of a bare table.
pub(super) fn bare_frame<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> Frame {
    let (_, seed) = header(view, hasher);
    let items = (0, text!("the table holds {} items, but {} were given"));
    Frame { start: 0, seed, stored: stored(view).into(), mask: u32::MAX.into(), items }
}

/// Returns the header and the trailer of a bare table's snapshot. The lower half of the trailer is the stored checksum, so a
/// corrupt table makes a corrupt snapshot.
pub(super) fn around_bare<D: AsRef<[u8]>>(view: &RawFilter<Snapshot<D>>, hasher: HasherId) -> (HeaderBytes, [u8; TRAILER_BYTES]) {
    let (header, seed) = header(view, hasher);
    let computed = checksum(view.table(), seed);
    (header, (computed & !u64::from(u32::MAX) | u64::from(stored(view))).to_le_bytes())
}

// Receiving in pieces.

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
        let (Section { length, .. }, _) = Section::decode(&self.header);
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

// Sending in pieces.

/// An index of an [`ElasticFilter`]'s snapshot, with which [`ElasticFilter::read_snapshot`] can start at any offset. Made by
/// [`ElasticFilter::snapshot_index`].
///
/// It has all of the snapshot but the tables and lists: the header, the records and the checksums, about 24 bytes per shard. It is
/// valid until the filter changes. `read_snapshot` has an example.
#[derive(Clone)]
pub struct SnapshotIndex {
    /// The bytes of the snapshot without bodies.
    outline: Vec<u8>,
    /// Where the bodies of each partition are left out.
    gaps: Vec<Gap>,
}

/// A gap in the outline.
#[derive(Clone, Copy)]
struct Gap {
    /// The number of bytes of the outline before it.
    at: usize,
    /// The number of bytes that are left out.
    len: u64,
}

impl SnapshotIndex {
    /// Returns the length of the snapshot in bytes.
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        wide(self.outline.len()) + self.gaps.iter().map(|gap| gap.len).sum::<u64>()
    }

    /// Returns the memory used by the index, in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>() + self.outline.capacity() + self.gaps.capacity() * size_of::<Gap>()
    }
}

/// Shows the length of the snapshot, without its bytes.
impl fmt::Debug for SnapshotIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotIndex").field("snapshot_bytes", &self.snapshot_bytes()).finish_non_exhaustive()
    }
}

impl<H> ElasticFilter<H> {
    /// Prepares the filter's snapshot for [`read_snapshot`](Self::read_snapshot). Takes time proportional to the tables, since it
    /// computes their checksums, and about 24 bytes per shard.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    ///
    /// # Example
    /// ```
    /// let filter = koel::ElasticFilter::builder().false_positive_rate(0.001).build()?;
    /// let index = filter.snapshot_index()?;
    /// assert_eq!(index.snapshot_bytes(), filter.snapshot_bytes());
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn snapshot_index(&self) -> Result<SnapshotIndex, OutOfMemory>
    where
        H: Hasher,
    {
        let (partitions, mut len) = (&self.core.partitions, HEADER_BYTES);
        let mut gaps = reserved(partitions.len())?;
        for section in partitions.iter().map(section) {
            let records = index(section.records) * RECORD_BYTES;
            len += SECTION_BYTES + records;
            gaps.push(Gap { at: len, len: section.length - wide(records) });
        }
        let mut outline = reserved(len + TRAILER_BYTES)?;
        let mut writing = Writing::start(&self.core.params, self.hasher.id(), |piece| {
            outline.extend_from_slice(piece);
            Ok::<(), OutOfMemory>(())
        })?;
        partitions.iter().try_for_each(|partition| writing.section(partition))?;
        writing.finish()?;
        Ok(SnapshotIndex { outline, gaps })
    }

    /// Copies the bytes of the filter's snapshot from `offset` on, without making the whole snapshot. Returns how many bytes were
    /// copied: fewer than `bytes` has only at the end of the snapshot, and 0 behind it. Takes time proportional to the numbers of
    /// shards, of lists of extra copies, and of bytes.
    ///
    /// If the filter has changed since the index was made, or the index is another filter's, the bytes are not a valid snapshot,
    /// and readers detect that by the checksums. Their number is still that of the index.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::ElasticFilter::builder().false_positive_rate(0.001).build()?;
    /// filter.insert_iter(0..100_000u64)?;
    /// let index = filter.snapshot_index()?;
    /// let (mut sent, mut piece) = (Vec::new(), [0; 4096]);
    /// while let len @ 1.. = filter.read_snapshot(&index, sent.len() as u64, &mut piece) {
    ///     sent.extend_from_slice(&piece[..len]);
    /// }
    /// assert_eq!(sent, filter.to_bytes());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn read_snapshot(&self, index: &SnapshotIndex, offset: u64, bytes: &mut [u8]) -> usize {
        let (mut window, mut before) = (Window { skipped: offset, bytes, len: 0 }, 0);
        let partitions = self.core.partitions.iter().map(Some).chain(iter::repeat(None));
        for (&Gap { at, len }, partition) in index.gaps.iter().zip(partitions) {
            window.copy(&index.outline[before..at]);
            window.pass(len, |from, bytes| read_bodies(partition, from, bytes));
            before = at;
        }
        window.copy(&index.outline[before..]);
        window.len
    }
}

/// A buffer for the bytes of a snapshot from an offset on. All bytes are passed in order, and those from the offset on are kept, until
/// the buffer is full.
struct Window<'a> {
    /// The number of bytes to pass before the first one that is kept.
    skipped: u64,
    bytes: &'a mut [u8],
    /// The number of bytes that were kept.
    len: usize,
}

impl Window<'_> {
    /// Passes `len` bytes. Calls `read` with the offset among them from which to keep them, and room for those that fit.
    fn pass(&mut self, len: u64, read: impl FnOnce(u64, &mut [u8])) {
        let Some(left) = len.checked_sub(self.skipped) else {
            self.skipped -= len;
            return;
        };
        let end = self.bytes.len().min(self.len.saturating_add(in_memory(left)));
        read(self.skipped, &mut self.bytes[self.len..end]);
        (self.skipped, self.len) = (0, end);
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.pass(wide(bytes.len()), |from, room| room.copy_from_slice(&bytes[index(from)..][..room.len()]));
    }
}

/// Reads a partition's padded bodies, in the order of the snapshot, from `offset` on. Where a changed filter has no bytes, they are
/// zeros.
fn read_bodies(partition: Option<&Partition>, offset: u64, bytes: &mut [u8]) {
    bytes.fill(0);
    let mut window = Window { skipped: offset, bytes, len: 0 };
    // Most bodies come before the offset, so only their lengths are read.
    for (record, body, plan) in partition.into_iter().flat_map(bodies) {
        if window.len == window.bytes.len() {
            return;
        }
        window.pass(record.padded_bytes(plan), |from, room| _ = body.read(index(from), room));
    }
}
