//! Writing snapshots of growing filters: all at once, or in pieces from any offset.

use alloc::vec::Vec;
use core::{borrow::Borrow, fmt, ops::Deref};

use super::format::{
    CHECKSUM_BYTES, Checksum, HEADER_BYTES, Header, KEY_COUNT_BYTES, RECORD_BYTES, Record, SECTION_BYTES, Section, TRAILER_BYTES,
    checksum, list_bytes, padded, padded_keys,
};
use crate::{
    bits::{in_memory, index, wide},
    elastic::{ElasticFilter, ElasticParams, Partition},
    hash::{Hasher, HasherId},
    storage::{OutOfMemory, reserved},
    table::copies::{LONG_ENTRY_BYTES, encode_long},
};

/// Passes all bytes of a growing filter's snapshot to `write`, piece by piece. Takes each partition from the iterator only when its
/// turn comes. Allocates nothing, so a filter can be saved even if no memory is left.
pub(crate) fn write<L: Borrow<Partition>, E>(
    params: &ElasticParams,
    hasher: HasherId,
    partitions: impl Iterator<Item = Result<L, E>>,
    write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut writing = Writing::start(params, hasher, write)?;
    for partition in partitions {
        let partition = partition?;
        writing.section(partition.borrow())?;
        for (_, table) in partition.borrow().records() {
            writing.table(table)?;
        }
        writing.lists(partition.borrow(), true)?;
    }
    writing.finish()
}

/// A snapshot of a growing filter whose header has been written.
struct Writing<F> {
    write: F,
    /// The header's checksum, which seeds the others.
    seed: u64,
    /// The checksum of the sections' checksums.
    checksum: Checksum,
    /// The number of the next section.
    partition: u64,
    /// The checksum of the last section.
    section: u64,
}

impl<E, F: FnMut(&[u8]) -> Result<(), E>> Writing<F> {
    /// Writes the header.
    fn start(params: &ElasticParams, hasher: HasherId, mut write: F) -> Result<Self, E> {
        let (header, seed) = Header::<ElasticParams>::encode(params, hasher);
        write(&header)?;
        Ok(Self { write, seed, checksum: Checksum::new(seed), partition: 0, section: 0 })
    }

    /// Writes the section header of a partition, and its records or its number of keys. Visits all shards and computes the
    /// checksums of their tables twice, instead of keeping them in memory.
    fn section(&mut self, partition: &Partition) -> Result<(), E> {
        let key_count = wide(partition.list_len()).to_le_bytes();
        let key_count = &key_count[..key_count_bytes(partition)];
        let list = partition.records().map(|(record, table)| Record { checksum: checksum(table, 0), ..record }.encode());
        let (section, checksum) = match key_count {
            [] => section(partition).encode(list.clone(), self.partition, self.seed),
            key_count => section(partition).encode([key_count].into_iter(), self.partition, self.seed),
        };
        self.checksum.update(&checksum.to_le_bytes());
        (self.partition, self.section) = (self.partition + 1, checksum);
        (self.write)(&section)?;
        (self.write)(key_count)?;
        let (mut piece, mut len) = ([0; 128 * RECORD_BYTES], 0);
        for record in list {
            if len == piece.len() {
                (self.write)(&piece)?;
                len = 0;
            }
            piece[len..len + RECORD_BYTES].copy_from_slice(&record);
            len += RECORD_BYTES;
        }
        (self.write)(&piece[..len])
    }

    fn table(&mut self, table: &[u8]) -> Result<(), E> {
        (self.write)(table)?;
        (self.write)(&[0; 8][..padded(table.len()) - table.len()])
    }

    /// Writes the lists of a partition: keys, extra copies, and their checksum. Without `with_entries`, writes only the checksum.
    fn lists(&mut self, partition: &Partition, with_entries: bool) -> Result<(), E> {
        if lists_bytes(partition) == 0 {
            return Ok(());
        }
        let (mut checksum, mut piece, mut len) = (Checksum::new(self.section), [0; 256 * LONG_ENTRY_BYTES], 0);
        let mut pass = |piece: &[u8]| {
            checksum.update(piece);
            if with_entries { (self.write)(piece) } else { Ok(()) }
        };
        for Entry(bytes, entry_len) in entries(partition, 0, (0, 0)) {
            if len + entry_len > piece.len() {
                pass(&piece[..len])?;
                len = 0;
            }
            piece[len..len + entry_len].copy_from_slice(&bytes[..entry_len]);
            len += entry_len;
        }
        pass(&piece[..len])?;
        (self.write)(&checksum.finish().to_le_bytes())
    }

    /// Writes the trailer.
    fn finish(mut self) -> Result<(), E> {
        (self.write)(&self.checksum.finish().to_le_bytes())
    }
}

/// A key of a key list, its padding, or an entry of extra copies. The second field is its length in bytes.
struct Entry([u8; LONG_ENTRY_BYTES], usize);

/// Returns the entries of a partition's lists: keys, their padding as one entry, and extra copies from a slot of a generation on.
/// The first `skipped` of keys and padding are left out.
fn entries(partition: &Partition, skipped: usize, (generation, slot): (u8, usize)) -> impl Iterator<Item = Entry> {
    let key_bytes = partition.key_bytes();
    let keys = partition.list_keys().map(move |key| Entry(key.to_le_bytes(), key_bytes));
    let zeros = Entry([0; LONG_ENTRY_BYTES], index(key_list_bytes(partition)) - partition.list_len() * key_bytes);
    let copies = partition.extra_copies_from(generation, slot);
    let keys = keys.chain([zeros]).skip(skipped);
    keys.chain(copies.map(|(_, entry)| Entry(encode_long(entry), LONG_ENTRY_BYTES)))
}

/// Returns the length of the key list, padding included.
fn key_list_bytes(partition: &Partition) -> u64 {
    padded_keys(wide(partition.list_len()), partition.key_bytes())
}

/// Returns the length of the key list, the entries of extra copies, and their checksum.
fn lists_bytes(partition: &Partition) -> u64 {
    list_bytes(wide(partition.list_len()), partition.key_bytes(), partition.items_with_extra_copies())
}

/// Returns the length of the number of keys, which is there only if the partition has a key list.
fn key_count_bytes(partition: &Partition) -> usize {
    if partition.list_len() == 0 { 0 } else { KEY_COUNT_BYTES }
}

/// Returns the length of a snapshot with these partitions.
pub(crate) fn snapshot_bytes<L: Deref<Target = Partition>>(partitions: impl Iterator<Item = L>) -> u64 {
    let sections = partitions.map(|partition| wide(SECTION_BYTES) + section(&partition).length);
    wide(HEADER_BYTES) + sections.sum::<u64>() + wide(TRAILER_BYTES)
}

/// Returns the section header of a partition.
fn section(partition: &Partition) -> Section {
    let shard_bytes = |(_, table): (Record, &[u8])| wide(RECORD_BYTES + padded(table.len()));
    let length = wide(key_count_bytes(partition)) + partition.records().map(shard_bytes).sum::<u64>() + lists_bytes(partition);
    Section { items: partition.item_count(), shards: wide(partition.shards()), length }
}

/// An index of an [`ElasticFilter`]'s snapshot, with which [`ElasticFilter::read_snapshot`] can start at any offset. Made by
/// [`ElasticFilter::snapshot_index`].
///
/// It has all of the snapshot but the tables and the lists of items: the header, the lists of shards and the checksums, about 24
/// bytes per shard. It is valid until the filter changes. `read_snapshot` has an example.
#[derive(Clone)]
pub struct SnapshotIndex {
    /// The bytes of the snapshot without tables, keys and entries of extra copies.
    outline: Vec<u8>,
    /// The tables and lists of each partition.
    tables: Vec<TableRange>,
    /// The place of every [`MARK_INTERVAL`]-th entry of extra copies, from the first one on, partition by partition.
    marks: Vec<Mark>,
    /// The length of the snapshot.
    bytes: u64,
}

/// The tables and lists of a partition, which are a gap in the outline.
#[derive(Clone, Copy)]
struct TableRange {
    /// The number of bytes of the outline before the gap.
    outline: usize,
    /// The offset of the tables in the snapshot.
    start: u64,
    /// The offset of the lists.
    lists: u64,
    /// The end of the lists, before their checksum.
    end: u64,
    /// The index of the partition's first mark.
    mark: usize,
}

/// The place of an entry: the number of its generation, and its slot there.
#[derive(Clone, Copy)]
struct Mark(u8, usize);

/// The number of entries from one mark to the next.
const MARK_INTERVAL: usize = 256;

impl SnapshotIndex {
    /// Returns the length of the snapshot in bytes.
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the memory used by the index, in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        let marks = self.marks.capacity() * size_of::<Mark>();
        size_of::<Self>() + self.outline.capacity() + self.tables.capacity() * size_of::<TableRange>() + marks
    }

    /// Copies bytes from `offset` on, up to the next boundary between outline, tables and lists. Returns their number, which is 0
    /// only at the end of the snapshot.
    fn read_once(&self, partitions: &[Partition], offset: u64, bytes: &mut [u8]) -> usize {
        let partition = self.tables.partition_point(|tables| tables.end <= offset);
        let Some(&TableRange { outline, start, lists, end, mark }) = self.tables.get(partition) else {
            // The offset is behind all tables and lists.
            let left = index(self.bytes.saturating_sub(offset));
            return copy(&self.outline[self.outline.len() - left..], bytes);
        };
        if offset < start {
            return copy(&self.outline[outline - index(start - offset)..outline], bytes);
        }
        let part_end = if offset < lists { lists } else { end };
        let len = in_memory(part_end - offset).min(bytes.len());
        if offset < lists {
            read_tables(partitions.get(partition), index(offset - start), &mut bytes[..len]);
        } else {
            self.read_lists(partitions.get(partition), mark, index(offset - lists), &mut bytes[..len]);
        }
        len
    }

    /// Copies the bytes of a partition's lists from `offset` on. Writes zeros where a changed filter has no bytes.
    fn read_lists(&self, partition: Option<&Partition>, mark: usize, offset: usize, bytes: &mut [u8]) {
        let (keys, key_bytes) = partition.map_or((0, 1), |partition| (partition.list_len(), partition.key_bytes()));
        let (first, from, skipped, mut within) =
            match offset.checked_sub(partition.map_or(0, |partition| index(key_list_bytes(partition)))) {
                None => {
                    let first = keys.min(offset / key_bytes);
                    (first, (0, 0), 0, offset - first * key_bytes)
                }
                Some(offset) => {
                    let entry = offset / LONG_ENTRY_BYTES;
                    let from = self
                        .marks
                        .get(mark + entry / MARK_INTERVAL)
                        .map_or((u8::MAX, usize::MAX), |&Mark(generation, slot)| (generation, slot));
                    (keys + 1, from, entry % MARK_INTERVAL, offset % LONG_ENTRY_BYTES)
                }
            };
        let mut done = 0;
        for Entry(entry, len) in partition.into_iter().flat_map(|partition| entries(partition, first, from)).skip(skipped) {
            done += copy(&entry[within.min(len)..len], &mut bytes[done..]);
            within = 0;
            if done == bytes.len() {
                return;
            }
        }
        bytes[done..].fill(0);
    }
}

/// Shows the length of the snapshot, without its bytes.
impl fmt::Debug for SnapshotIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotIndex").field("snapshot_bytes", &self.bytes).finish_non_exhaustive()
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
        let partitions = &self.core.partitions;
        let list_len = |partition: &Partition| SECTION_BYTES + key_count_bytes(partition) + partition.shards() * RECORD_BYTES;
        let checksum_len = |partition: &Partition| if lists_bytes(partition) == 0 { 0 } else { CHECKSUM_BYTES };
        let mut outline = reserved(
            HEADER_BYTES
                + partitions.iter().map(|partition| list_len(partition) + checksum_len(partition)).sum::<usize>()
                + TRAILER_BYTES,
        )?;
        let mut marks = reserved(
            partitions.iter().map(|partition| index(partition.items_with_extra_copies()).div_ceil(MARK_INTERVAL)).sum(),
        )?;
        let mut writing = Writing::start(&self.core.params, self.hasher.id(), |piece| {
            outline.extend_from_slice(piece);
            Ok::<(), OutOfMemory>(())
        })?;
        let mut tables = reserved(partitions.len())?;
        let (mut before, mut end) = (HEADER_BYTES, wide(HEADER_BYTES));
        for partition in partitions {
            writing.section(partition)?;
            writing.lists(partition, false)?;
            before += list_len(partition);
            let (start, rest) = (end + wide(list_len(partition)), wide(checksum_len(partition)));
            end += wide(SECTION_BYTES) + section(partition).length;
            let lists = end - lists_bytes(partition);
            tables.push(TableRange { outline: before, start, lists, end: end - rest, mark: marks.len() });
            before += checksum_len(partition);
            let entries = partition.extra_copies_from(0, 0).step_by(MARK_INTERVAL);
            marks.extend(entries.map(|(slot, (generation, ..))| Mark(generation, slot)));
        }
        writing.finish()?;
        Ok(SnapshotIndex { outline, tables, marks, bytes: end + wide(TRAILER_BYTES) })
    }

    /// Copies the bytes of the filter's snapshot from `offset` on, without making the whole snapshot. Returns how many bytes were
    /// copied: fewer than `bytes` has only at the end of the snapshot, and 0 behind it. Takes time proportional to the number of
    /// shards and of bytes.
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
        let mut done = 0;
        while done < bytes.len() && offset.saturating_add(wide(done)) < index.bytes {
            done += index.read_once(&self.core.partitions, offset + wide(done), &mut bytes[done..]);
        }
        done
    }
}

/// Copies the bytes of a partition's padded tables, in the order of the snapshot, from `offset` on. Writes zeros where a changed
/// filter has no bytes.
fn read_tables(partition: Option<&Partition>, mut offset: usize, bytes: &mut [u8]) {
    let mut done = 0;
    // Most tables come before the offset, so only their lengths are read.
    for (_, table) in partition.into_iter().flat_map(Partition::records) {
        let padded = padded(table.len());
        if offset >= padded {
            offset -= padded;
            continue;
        }
        done += copy(table.get(offset..).unwrap_or_default(), &mut bytes[done..]);
        let zeros = (padded - offset.max(table.len())).min(bytes.len() - done);
        bytes[done..done + zeros].fill(0);
        (done, offset) = (done + zeros, 0);
        if done == bytes.len() {
            return;
        }
    }
    bytes[done..].fill(0);
}

/// Copies as many bytes as both slices have. Returns their number.
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let len = from.len().min(to.len());
    to[..len].copy_from_slice(&from[..len]);
    len
}
