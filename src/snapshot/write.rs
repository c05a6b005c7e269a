//! Writing snapshots of growing filters: all at once, or in pieces from any offset.

use alloc::vec::Vec;
use core::{borrow::Borrow, fmt, ops::Deref};

use super::format::{
    ALIGNMENT, Body, Checksum, HEADER_BYTES, Header, RECORD_BYTES, Record, SECTION_BYTES, Section, TRAILER_BYTES, checksum,
};
use crate::{
    bits::{in_memory, index, wide},
    elastic::{ElasticFilter, ElasticParams, GenerationPlan, Partition, ShardBytes},
    hash::{Hasher, HasherId},
    storage::{OutOfMemory, reserved},
    table::copies::Copies,
};

/// The length of the pieces in which the lists of extra copies are written.
const PIECE: usize = 4096;

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
        for (record, bytes, plan) in bodies(partition.borrow()) {
            bytes.each_piece(&mut writing.write)?;
            let padding = index(record.padded_bytes(plan) - record.body_bytes(plan));
            (writing.write)(&[0; ALIGNMENT][..padding])?;
        }
    }
    writing.finish()
}

/// The body of a record.
#[derive(Clone, Copy)]
enum BodyBytes<'a> {
    Whole(&'a [u8]),
    /// The entries of a list in parts, with keys and counts of these lengths.
    Copies {
        copies: &'a Copies,
        key_bytes: usize,
        count_bytes: usize,
    },
}

impl BodyBytes<'_> {
    /// Passes all bytes to `act`, piece by piece.
    fn each_piece<E>(self, act: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if let Self::Whole(bytes) = self {
            return act(bytes);
        }
        let (mut piece, mut offset) = ([0; PIECE], 0);
        loop {
            match self.read(offset, &mut piece) {
                0 => return Ok(()),
                len => act(&piece[..len])?,
            }
            offset += PIECE;
        }
    }

    /// Copies the bytes from `offset` on. Returns their number.
    fn read(self, offset: usize, bytes: &mut [u8]) -> usize {
        let (copies, key_bytes, count_bytes) = match self {
            Self::Whole(whole) => return copy(whole.get(offset..).unwrap_or_default(), bytes),
            Self::Copies { copies, key_bytes, count_bytes } => (copies, key_bytes, count_bytes),
        };
        let keys = copies.len() * key_bytes;
        let mut done = 0;
        if offset < keys {
            let mut within = offset % key_bytes;
            for (key, _) in copies.iter_from(offset / key_bytes) {
                done += copy(&key.to_le_bytes()[within..key_bytes], &mut bytes[done..]);
                within = 0;
                if done == bytes.len() {
                    return done;
                }
            }
        }
        let offset = (offset + done).saturating_sub(keys);
        if count_bytes > 0 {
            let mut within = offset % count_bytes;
            for (_, count) in copies.iter_from(offset / count_bytes) {
                done += copy(&count.to_le_bytes()[within..count_bytes], &mut bytes[done..]);
                within = 0;
                if done == bytes.len() {
                    break;
                }
            }
        }
        done
    }

    fn checksum(self) -> u64 {
        if let Self::Whole(bytes) = self {
            return checksum(bytes, 0);
        }
        let mut checksum = Checksum::new(0);
        let all = self.each_piece(&mut |piece: &[u8]| {
            checksum.update(piece);
            Ok::<(), core::convert::Infallible>(())
        });
        all.map_or_else(|never| match never {}, |()| checksum.finish())
    }
}

/// Returns the records of a partition, with checksums of 0, the bodies, and the plans of their generations.
fn bodies(partition: &Partition) -> impl Iterator<Item = (Record, BodyBytes<'_>, &GenerationPlan)> + Clone {
    partition.generations().flat_map(|generation| {
        let (plan, number) = (generation.plan(), generation.number());
        let shards = generation.shards_in_order().map(move |(shard, bytes)| {
            let (body, bytes) = match bytes {
                ShardBytes::Table(table) => (Body::Table, table),
                ShardBytes::List(list) => (Body::List { count_bytes: list.view().count_bytes() }, list.view().bytes()),
            };
            let (depth, prefix, entries) = (shard.depth(), shard.prefix(), wide(shard.items()));
            let record = Record { generation: number, body, depth, prefix, entries, checksum: 0 };
            (record, BodyBytes::Whole(bytes), plan)
        });
        let copies = generation.extra_copy_list().map(move |copies| {
            let count_bytes = copies.count_bytes();
            let body = Body::Copies { count_bytes };
            let record = Record { generation: number, body, depth: 0, prefix: 0, entries: wide(copies.len()), checksum: 0 };
            let (key_bytes, count_bytes) = (plan.entry_key_bytes().into(), count_bytes.into());
            (record, BodyBytes::Copies { copies, key_bytes, count_bytes }, plan)
        });
        shards.chain(copies)
    })
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
}

impl<E, F: FnMut(&[u8]) -> Result<(), E>> Writing<F> {
    /// Writes the header.
    fn start(params: &ElasticParams, hasher: HasherId, mut write: F) -> Result<Self, E> {
        let (header, seed) = Header::<ElasticParams>::encode(params, hasher);
        write(&header)?;
        Ok(Self { write, seed, checksum: Checksum::new(seed), partition: 0 })
    }

    /// Writes the section header of a partition, and its records. Visits all bodies and computes their checksums twice, instead of
    /// keeping them in memory.
    fn section(&mut self, partition: &Partition) -> Result<(), E> {
        let list = bodies(partition).map(|(record, body, _)| Record { checksum: body.checksum(), ..record }.encode());
        let (section, checksum) = section(partition).encode(list.clone(), self.partition, self.seed);
        self.checksum.update(&checksum.to_le_bytes());
        self.partition += 1;
        (self.write)(&section)?;
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

    /// Writes the trailer.
    fn finish(mut self) -> Result<(), E> {
        (self.write)(&self.checksum.finish().to_le_bytes())
    }
}

/// Returns the length of a snapshot with these partitions.
pub(crate) fn snapshot_bytes<L: Deref<Target = Partition>>(partitions: impl Iterator<Item = L>) -> u64 {
    let sections = partitions.map(|partition| wide(SECTION_BYTES) + section(&partition).length);
    wide(HEADER_BYTES) + sections.sum::<u64>() + wide(TRAILER_BYTES)
}

/// Returns the section header of a partition.
fn section(partition: &Partition) -> Section {
    let (records, length) = bodies(partition).fold((0, 0), |(records, length), (record, _, plan)| {
        (records + 1, length + wide(RECORD_BYTES) + record.padded_bytes(plan))
    });
    Section { items: partition.item_count(), records, length }
}

/// An index of an [`ElasticFilter`]'s snapshot, with which [`ElasticFilter::read_snapshot`] can start at any offset. Made by
/// [`ElasticFilter::snapshot_index`].
///
/// It has all of the snapshot but the tables and lists: the header, the records and the checksums, about 24 bytes per shard. It is
/// valid until the filter changes. `read_snapshot` has an example.
#[derive(Clone)]
pub struct SnapshotIndex {
    /// The bytes of the snapshot without bodies.
    outline: Vec<u8>,
    /// The bodies of each partition.
    bodies: Vec<BodyRange>,
    /// The length of the snapshot.
    bytes: u64,
}

/// The bodies of a partition, which are a gap in the outline.
#[derive(Clone, Copy)]
struct BodyRange {
    /// The number of bytes of the outline before the gap.
    outline: usize,
    /// The offset of the bodies in the snapshot, and their end.
    start: u64,
    end: u64,
}

impl SnapshotIndex {
    /// Returns the length of the snapshot in bytes.
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the memory used by the index, in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>() + self.outline.capacity() + self.bodies.capacity() * size_of::<BodyRange>()
    }

    /// Copies bytes from `offset` on, up to the next boundary between outline and bodies. Returns their number, which is 0 only at
    /// the end of the snapshot.
    fn read_once(&self, partitions: &[Partition], offset: u64, bytes: &mut [u8]) -> usize {
        let partition = self.bodies.partition_point(|bodies| bodies.end <= offset);
        let Some(&BodyRange { outline, start, end }) = self.bodies.get(partition) else {
            // The offset is behind all bodies.
            let left = index(self.bytes.saturating_sub(offset));
            return copy(&self.outline[self.outline.len() - left..], bytes);
        };
        if offset < start {
            return copy(&self.outline[outline - index(start - offset)..outline], bytes);
        }
        let len = in_memory(end - offset).min(bytes.len());
        read_bodies(partitions.get(partition), offset - start, &mut bytes[..len]);
        len
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
        let record_bytes = |partition: &Partition| SECTION_BYTES + bodies(partition).count() * RECORD_BYTES;
        let mut outline = reserved(HEADER_BYTES + partitions.iter().map(record_bytes).sum::<usize>() + TRAILER_BYTES)?;
        let mut writing = Writing::start(&self.core.params, self.hasher.id(), |piece| {
            outline.extend_from_slice(piece);
            Ok::<(), OutOfMemory>(())
        })?;
        let mut ranges = reserved(partitions.len())?;
        let (mut before, mut end) = (HEADER_BYTES, wide(HEADER_BYTES));
        for partition in partitions {
            writing.section(partition)?;
            before += record_bytes(partition);
            let start = end + wide(record_bytes(partition));
            end += wide(SECTION_BYTES) + section(partition).length;
            ranges.push(BodyRange { outline: before, start, end });
        }
        writing.finish()?;
        Ok(SnapshotIndex { outline, bodies: ranges, bytes: end + wide(TRAILER_BYTES) })
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

/// Copies the bytes of a partition's padded bodies, in the order of the snapshot, from `offset` on. Writes zeros where a changed
/// filter has no bytes.
fn read_bodies(partition: Option<&Partition>, mut offset: u64, bytes: &mut [u8]) {
    let mut done = 0;
    // Most bodies come before the offset, so only their lengths are read.
    for (record, body, plan) in partition.into_iter().flat_map(bodies) {
        let padded = record.padded_bytes(plan);
        if offset >= padded {
            offset -= padded;
            continue;
        }
        let end = bytes.len().min(done + in_memory(padded - offset));
        done += body.read(index(offset), &mut bytes[done..end]);
        bytes[done..end].fill(0);
        (done, offset) = (end, 0);
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
