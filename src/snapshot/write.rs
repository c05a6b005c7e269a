//! Writing snapshots: to memory, to writers, or piece by piece from wherever a reader is.

use alloc::vec::Vec;
use core::{borrow::Borrow, fmt, ops::Deref};

use super::format::{
    CHECKSUM_BYTES, Checksum, HEADER_BYTES, Header, NUMBER_BYTES, RECORD_BYTES, Record, SECTION_BYTES, Section, TRAILER_BYTES,
    checksum, list_bytes, padded, padded_keys,
};
use crate::{
    bits::{in_memory, index, wide},
    elastic::{ElasticFilter, ElasticParams, Partition},
    hash::{Hasher, HasherId},
    storage::{OutOfMemory, reserved},
    table::copies::{LONG_ENTRY_BYTES, encode_long},
};

/// Passes all bytes of a growing filter's snapshot to `write`, piece after piece. Takes each partition when it is that one's turn.
/// Allocates nothing, so that where there is no memory left a filter can still be saved.
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

/// A snapshot of a growing filter of which the header has been written.
struct Writing<F> {
    write: F,
    /// The header's checksum.
    seed: u64,
    /// Of the sections' checksums.
    checksum: Checksum,
    /// The number of the next section, and the checksum of the last one.
    partition: u64,
    section: u64,
}

impl<E, F: FnMut(&[u8]) -> Result<(), E>> Writing<F> {
    /// Writes the header.
    fn start(params: &ElasticParams, hasher: HasherId, mut write: F) -> Result<Self, E> {
        let (header, seed) = Header::<ElasticParams>::encode(params, hasher);
        write(&header)?;
        Ok(Self { write, seed, checksum: Checksum::new(seed), partition: 0, section: 0 })
    }

    /// Writes what comes before the tables of a partition. Goes through the list of shards, and computes each table's checksum,
    /// twice, instead of keeping them in memory.
    fn section(&mut self, partition: &Partition) -> Result<(), E> {
        let few = wide(partition.number_of_few()).to_le_bytes();
        let few = &few[..number_bytes(partition)];
        let list = partition.records().map(|(record, table)| Record { checksum: checksum(table, 0), ..record }.encode());
        let (section, checksum) = match few {
            [] => section(partition).encode(list.clone(), self.partition, self.seed),
            few => section(partition).encode([few].into_iter(), self.partition, self.seed),
        };
        self.checksum.update(&checksum.to_le_bytes());
        (self.partition, self.section) = (self.partition + 1, checksum);
        (self.write)(&section)?;
        (self.write)(few)?;
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

    /// Writes what comes behind the tables of a partition, or instead of them; of this only the checksum, unless it `is_whole`.
    fn lists(&mut self, partition: &Partition, is_whole: bool) -> Result<(), E> {
        if bytes_of_lists(partition) == 0 {
            return Ok(());
        }
        let (mut checksum, mut piece, mut len) = (Checksum::new(self.section), [0; 256 * LONG_ENTRY_BYTES], 0);
        let mut pass = |piece: &[u8]| {
            checksum.update(piece);
            if is_whole { (self.write)(piece) } else { Ok(()) }
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

/// An item of a partition without shards, or a further copy: its first bytes, as many as the second field says.
struct Entry([u8; LONG_ENTRY_BYTES], usize);

/// Those of a partition: its few items, from the one with this number on, what they are filled up with, and its further copies,
/// from a slot of the generation with this number on.
fn entries(partition: &Partition, few: usize, (generation, slot): (u8, usize)) -> impl Iterator<Item = Entry> {
    let key_bytes = partition.key_bytes();
    let keys = partition.few().map(move |key| Entry(key.to_le_bytes(), key_bytes));
    let zeros = Entry([0; LONG_ENTRY_BYTES], index(bytes_of_keys(partition)) - partition.number_of_few() * key_bytes);
    let copies = partition.further_copies_from(generation, slot);
    let few = keys.chain([zeros]).skip(few);
    few.chain(copies.map(|(_, entry)| Entry(encode_long(entry), LONG_ENTRY_BYTES)))
}

/// The length of the items, filled up.
fn bytes_of_keys(partition: &Partition) -> u64 {
    padded_keys(wide(partition.number_of_few()), partition.key_bytes())
}

/// The length of all, with a checksum.
fn bytes_of_lists(partition: &Partition) -> u64 {
    list_bytes(wide(partition.number_of_few()), partition.key_bytes(), partition.entries())
}

/// The length of the number of its few items.
fn number_bytes(partition: &Partition) -> usize {
    if partition.number_of_few() == 0 { 0 } else { NUMBER_BYTES }
}

/// The length of a snapshot with these partitions.
pub(crate) fn snapshot_bytes<L: Deref<Target = Partition>>(partitions: impl Iterator<Item = L>) -> u64 {
    let sections = partitions.map(|partition| wide(SECTION_BYTES) + section(&partition).length);
    wide(HEADER_BYTES) + sections.sum::<u64>() + wide(TRAILER_BYTES)
}

/// The header of a partition's section.
fn section(partition: &Partition) -> Section {
    let of_shard = |(_, table): (Record, &[u8])| wide(RECORD_BYTES + padded(table.len()));
    let length = wide(number_bytes(partition)) + partition.records().map(of_shard).sum::<u64>() + bytes_of_lists(partition);
    Section { items: wide(partition.len()), shards: wide(partition.shards()), length }
}

/// What a snapshot of an [`ElasticFilter`] has besides its tables and its items in lists: header, lists of shards and checksums, about 24
/// bytes per shard. Made by [`ElasticFilter::snapshot_index`], so that [`ElasticFilter::read_snapshot`] can start anywhere.
///
/// It belongs to the filter as it was when the index was made. `read_snapshot` has an example.
#[derive(Clone)]
pub struct SnapshotIndex {
    /// Everything but the tables, in order.
    outline: Vec<u8>,
    /// Where the tables of each partition are.
    tables: Vec<TableRange>,
    /// Of every so many entries among further copies, where the first one is, partition after partition.
    marks: Vec<Mark>,
    /// The length of the snapshot.
    bytes: u64,
}

/// The tables of a partition, and its lists: a gap in the outline.
#[derive(Clone, Copy)]
struct TableRange {
    /// Bytes of the outline that come before them.
    outline: usize,
    /// Where they begin, where the lists do, and where these end in the snapshot.
    start: u64,
    lists: u64,
    end: u64,
    /// The first of the marks.
    mark: usize,
}

/// Where an entry is: the number of its generation, and its slot there.
#[derive(Clone, Copy)]
struct Mark(u8, usize);

/// Entries from one mark to the next.
const MARKED: usize = 256;

impl SnapshotIndex {
    /// The length of the snapshot in bytes.
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        self.bytes
    }

    /// The memory used by the index, in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        let marks = self.marks.capacity() * size_of::<Mark>();
        size_of::<Self>() + self.outline.capacity() + self.tables.capacity() * size_of::<TableRange>() + marks
    }

    /// Copies bytes from this offset on, as far as there are any. Returns how many, which is none only at the end.
    fn read_once(&self, partitions: &[Partition], offset: u64, bytes: &mut [u8]) -> usize {
        let partition = self.tables.partition_point(|tables| tables.end <= offset);
        let Some(&TableRange { outline, start, lists, end, mark }) = self.tables.get(partition) else {
            // Behind all tables.
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

    /// Copies the bytes of a partition's lists from this offset on. Where there are none, since the filter has changed, zeros.
    fn read_lists(&self, partition: Option<&Partition>, mark: usize, offset: usize, bytes: &mut [u8]) {
        let (few, key_bytes) = partition.map_or((0, 1), |partition| (partition.number_of_few(), partition.key_bytes()));
        let (first, from, behind, mut within) =
            match offset.checked_sub(partition.map_or(0, |partition| index(bytes_of_keys(partition)))) {
                None => {
                    let first = few.min(offset / key_bytes);
                    (first, (0, 0), 0, offset - first * key_bytes)
                }
                Some(offset) => {
                    let entry = offset / LONG_ENTRY_BYTES;
                    let from = self
                        .marks
                        .get(mark + entry / MARKED)
                        .map_or((u8::MAX, usize::MAX), |&Mark(generation, slot)| (generation, slot));
                    (few + 1, from, entry % MARKED, offset % LONG_ENTRY_BYTES)
                }
            };
        let mut done = 0;
        for Entry(entry, len) in partition.into_iter().flat_map(|partition| entries(partition, first, from)).skip(behind) {
            done += copy(&entry[within.min(len)..len], &mut bytes[done..]);
            within = 0;
            if done == bytes.len() {
                return;
            }
        }
        bytes[done..].fill(0);
    }
}

/// The length of the snapshot, without its bytes.
impl fmt::Debug for SnapshotIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotIndex").field("snapshot_bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl<H> ElasticFilter<H> {
    /// Prepares the filter's snapshot for [`read_snapshot`](Self::read_snapshot). Computes the checksums of all tables, so it
    /// takes time proportional to them, and about 24 bytes per shard.
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
        let lists = |partition: &Partition| SECTION_BYTES + number_bytes(partition) + partition.shards() * RECORD_BYTES;
        let ends = |partition: &Partition| if bytes_of_lists(partition) == 0 { 0 } else { CHECKSUM_BYTES };
        let mut outline = reserved(
            HEADER_BYTES + partitions.iter().map(|partition| lists(partition) + ends(partition)).sum::<usize>() + TRAILER_BYTES,
        )?;
        let mut marks = reserved(partitions.iter().map(|partition| index(partition.entries()).div_ceil(MARKED)).sum())?;
        let mut writing = Writing::start(&self.core.params, self.hasher.id(), |piece| {
            outline.extend_from_slice(piece);
            Ok::<(), OutOfMemory>(())
        })?;
        let mut tables = reserved(partitions.len())?;
        let (mut before, mut end) = (HEADER_BYTES, wide(HEADER_BYTES));
        for partition in partitions {
            writing.section(partition)?;
            writing.lists(partition, false)?;
            before += lists(partition);
            let (start, rest) = (end + wide(lists(partition)), wide(ends(partition)));
            end += wide(SECTION_BYTES) + section(partition).length;
            let lists = end - bytes_of_lists(partition);
            tables.push(TableRange { outline: before, start, lists, end: end - rest, mark: marks.len() });
            before += ends(partition);
            let entries = partition.further_copies_from(0, 0).step_by(MARKED);
            marks.extend(entries.map(|(slot, (generation, ..))| Mark(generation, slot)));
        }
        writing.finish()?;
        Ok(SnapshotIndex { outline, tables, marks, bytes: end + wide(TRAILER_BYTES) })
    }

    /// Copies the bytes of the filter's snapshot from this offset on, without making all of it. Returns how many bytes were
    /// copied: fewer than there is room for only at the end of the snapshot, and none behind it. Takes time proportional to the
    /// number of shards and of bytes.
    ///
    /// If the filter was changed after the index was made, or the index is another filter's, the bytes are not a valid snapshot,
    /// and a reader detects that by the checksums. They still have the length that the index says.
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

/// Copies the bytes of a partition's tables, as they follow each other in a snapshot, from this offset on. Where there are none,
/// since the filter has become smaller, zeros.
fn read_tables(partition: Option<&Partition>, mut offset: usize, bytes: &mut [u8]) {
    let mut done = 0;
    // Most of them come before the offset, so nothing else of a shard is looked at.
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

/// Copies as many bytes as there are in both. Returns their number.
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let len = from.len().min(to.len());
    to[..len].copy_from_slice(&from[..len]);
    len
}
