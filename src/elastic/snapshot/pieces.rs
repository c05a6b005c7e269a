//! Reading a snapshot of a filter in memory piece by piece, each from wherever it is asked for: without a copy of the tables.

use alloc::vec::Vec;
use core::fmt;

use super::{
    super::{ElasticFilter, lane::Lane, layer::Layer},
    format::{HEADER_BYTES, RECORD_BYTES, SECTION_BYTES, TRAILER_BYTES, filler},
    write::{Writing, length},
};
use crate::{
    bits::{index, wide},
    hash::Hasher,
    storage::{OutOfMemory, reserved},
};

/// What a snapshot of an [`ElasticFilter`] has beside its tables: header, lists of shards, and checksums, some 24 bytes for each
/// shard. Made by [`ElasticFilter::snapshot_index`], so that [`ElasticFilter::read_snapshot`] can start anywhere.
///
/// It belongs to the filter as it was when the index was made. `read_snapshot` has an example.
#[derive(Clone)]
pub struct SnapshotIndex {
    /// Everything but the tables, in order.
    outline: Vec<u8>,
    /// Where the tables of each lane are.
    tables: Vec<Tables>,
    /// The length of the snapshot.
    bytes: u64,
}

/// The tables of a lane: a gap in the outline.
#[derive(Clone, Copy)]
struct Tables {
    /// Bytes of the outline that come before them.
    outline: usize,
    /// Where they begin and end in the snapshot.
    start: u64,
    end: u64,
}

impl SnapshotIndex {
    /// The length of the snapshot in bytes.
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        self.bytes
    }

    /// The memory used by the index, in bytes.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>() + self.outline.capacity() + self.tables.capacity() * size_of::<Tables>()
    }

    /// Copies bytes from this offset on, as far as there are any. Returns how many, which is none only at the end.
    fn read_once(&self, lanes: &[Lane], offset: u64, bytes: &mut [u8]) -> usize {
        let lane = self.tables.partition_point(|tables| tables.end <= offset);
        let Some(&Tables { outline, start, end }) = self.tables.get(lane) else {
            // Behind all tables.
            let left = index(self.bytes.saturating_sub(offset));
            return copy(&self.outline[self.outline.len() - left..], bytes);
        };
        if offset < start {
            return copy(&self.outline[outline - index(start - offset)..outline], bytes);
        }
        let len = usize::try_from(end - offset).unwrap_or(usize::MAX).min(bytes.len());
        read_tables(lanes.get(lane), index(offset - start), &mut bytes[..len]);
        len
    }
}

/// The length of the snapshot, without its bytes.
impl fmt::Debug for SnapshotIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SnapshotIndex").field("snapshot_bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl<H: Hasher> ElasticFilter<H> {
    /// Prepares the filter's snapshot for [`read_snapshot`](Self::read_snapshot). Takes time proportional to the tables, of which
    /// it computes the checksums, and some 24 bytes for each shard.
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
    pub fn snapshot_index(&self) -> Result<SnapshotIndex, OutOfMemory> {
        let lanes = &self.storage.lanes;
        let sections = lanes.iter().map(|lane| SECTION_BYTES + lane.shards() * RECORD_BYTES);
        let mut outline = reserved(HEADER_BYTES + sections.clone().sum::<usize>() + TRAILER_BYTES)?;
        let mut writing = Writing::start(&self.params, self.hasher.id(), |piece| {
            outline.extend_from_slice(piece);
            Ok::<(), OutOfMemory>(())
        })?;
        let mut tables = reserved(lanes.len())?;
        let (mut before, mut end) = (HEADER_BYTES, wide(HEADER_BYTES));
        for (lane, section) in lanes.iter().zip(sections) {
            writing.section_of(lane)?;
            before += section;
            let start = end + wide(section);
            end += wide(SECTION_BYTES + length(lane));
            tables.push(Tables { outline: before, start, end });
        }
        writing.finish()?;
        Ok(SnapshotIndex { outline, tables, bytes: end + wide(TRAILER_BYTES) })
    }
}

impl<H> ElasticFilter<H> {
    /// Copies the bytes of the filter's snapshot from this offset on, without making all of it. Returns how many bytes were copied:
    /// fewer than asked for only where the snapshot ends, and none behind it. Takes time proportional to the number of shards and
    /// of bytes.
    ///
    /// If the filter was changed after the index was made, or the index is another filter's, the bytes are not a valid snapshot:
    /// the checksums tell a reader so, unless the tables are as they were. It has the length that the index says.
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
            done += index.read_once(&self.storage.lanes, offset + wide(done), &mut bytes[done..]);
        }
        done
    }
}

/// Copies the bytes of a lane's tables, as they follow each other in a snapshot, from this offset on. Where there are none, since
/// the filter has become smaller, zeros.
fn read_tables(lane: Option<&Lane>, mut offset: usize, bytes: &mut [u8]) {
    let mut done = 0;
    // Most of them come before the offset, so nothing else of a shard is looked at.
    for table in lane.into_iter().flat_map(Lane::layers).flat_map(Layer::tables_in_order) {
        let padded = table.len() + filler(table.len());
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
