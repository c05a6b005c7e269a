//! Writing a growing filter, lane after lane.

use alloc::vec::Vec;
use core::{borrow::Borrow, convert::Infallible, iter};

use super::{
    super::{ElasticFilter, ElasticParams, lane::Lane, shard::Shard},
    format::{HEADER_BYTES, Header, RECORD_BYTES, Record, SECTION_BYTES, Section, TRAILER_BYTES, filler},
};
#[cfg(feature = "serde")]
use crate::storage::{OutOfMemory, reserved};
use crate::{
    bits::{index, low_half, wide},
    hash::{Hasher, HasherId},
    snapshot::{Checksum, checksum},
    table::TableParams as _,
};

impl<H> ElasticFilter<H> {
    /// The filter as a snapshot: a header, and for each lane a list of its shards and their tables (docs/FORMAT.md). Takes time
    /// proportional to the tables.
    ///
    /// The same operations in the same order give the same bytes on every machine.
    ///
    /// # Panics
    /// As [`CuckooFilter::to_bytes`](crate::CuckooFilter::to_bytes).
    ///
    /// # Example
    /// ```
    /// use koel::ElasticFilter;
    /// let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build()?;
    /// filter.insert_iter(0..100_000u64)?;
    /// let mut read = ElasticFilter::from_bytes(&filter.to_bytes())?;
    /// assert!(read.contains(&7u64) && read.len() == 100_000);
    /// read.insert("alice")?; // it goes on growing
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8>
    where
        H: Hasher,
    {
        let mut bytes = Vec::with_capacity(index(self.snapshot_bytes()));
        self.append_to(&mut bytes);
        bytes
    }

    /// [`to_bytes`](Self::to_bytes), or an error if the memory cannot be allocated.
    #[cfg(feature = "serde")]
    pub(crate) fn try_to_bytes(&self) -> Result<Vec<u8>, OutOfMemory>
    where
        H: Hasher,
    {
        let mut bytes = reserved(usize::try_from(self.snapshot_bytes()).unwrap_or(usize::MAX))?;
        self.append_to(&mut bytes);
        Ok(bytes)
    }

    fn append_to(&self, bytes: &mut Vec<u8>)
    where
        H: Hasher,
    {
        let lanes = self.storage.lanes.iter().map(|lane| Ok(Some(lane)));
        let Ok(()) = write(&self.params, self.hasher.id(), lanes, |piece| {
            bytes.extend_from_slice(piece);
            Ok::<(), Infallible>(())
        });
    }

    /// The length of [`to_bytes`](Self::to_bytes) in bytes, without making them. Takes time proportional to the number of shards.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::ElasticFilter::builder().false_positive_rate(0.001).build()?;
    /// filter.insert_iter(0..100_000u64)?;
    /// assert_eq!(filter.snapshot_bytes(), filter.to_bytes().len() as u64);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        let sections = self.storage.lanes.iter().map(|lane| wide(SECTION_BYTES + length(lane))).sum::<u64>();
        wide(HEADER_BYTES) + sections + wide(TRAILER_BYTES)
    }
}

/// Passes all bytes of a snapshot to `write`, piece after piece. Takes each lane when it is that one's turn; `None` for a lane that
/// is in another part. Allocates nothing, so that where there is no memory left a filter can still be saved.
pub(in crate::elastic) fn write<L: Borrow<Lane>, E>(
    params: &ElasticParams,
    hasher: HasherId,
    lanes: impl Iterator<Item = Result<Option<L>, E>>,
    write: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut writing = Writing::start(params, hasher, write)?;
    for lane in lanes {
        let Some(lane) = lane? else {
            writing.absent()?;
            continue;
        };
        writing.section_of(lane.borrow())?;
        for (_, shard) in shards(lane.borrow()) {
            writing.table(shard.table())?;
        }
    }
    writing.finish()
}

/// A snapshot of which the header has been written.
pub(in crate::elastic) struct Writing<F> {
    write: F,
    /// The header's checksum.
    seed: u64,
    /// Of the sections' checksums.
    checksums: Checksum,
    /// The number of the next section.
    lane: u64,
}

impl<E, F: FnMut(&[u8]) -> Result<(), E>> Writing<F> {
    /// Writes the header.
    pub(in crate::elastic) fn start(params: &ElasticParams, hasher: HasherId, mut write: F) -> Result<Self, E> {
        let (header, seed) = Header { params: *params, hasher }.encode();
        write(&header)?;
        Ok(Self { write, seed, checksums: Checksum::new(seed), lane: 0 })
    }

    /// Writes what comes before the tables of a lane: twice, the list of shards is gone through.
    fn section(&mut self, section: &Section, list: impl Iterator<Item = Record> + Clone) -> Result<(), E> {
        let (section, checksum) = section.encode(list.clone(), self.lane, self.seed);
        self.checksums.update(&checksum.to_le_bytes());
        self.lane += 1;
        (self.write)(&section)?;
        let (mut piece, mut len) = ([0; 128 * RECORD_BYTES], 0);
        for record in list {
            if len == piece.len() {
                (self.write)(&piece)?;
                len = 0;
            }
            piece[len..len + RECORD_BYTES].copy_from_slice(&record.encode());
            len += RECORD_BYTES;
        }
        (self.write)(&piece[..len])
    }

    /// The same for this lane. Each table's checksum is computed twice, instead of keeping them in memory.
    pub(super) fn section_of(&mut self, lane: &Lane) -> Result<(), E> {
        let section = Section { items: wide(lane.len()), shards: wide(lane.shards()), length: wide(length(lane)) };
        let with_checksum = |(record, shard): (Record, Shard<'_>)| Record { checksum: checksum(shard.table(), 0), ..record };
        self.section(&section, shards(lane).map(with_checksum))
    }

    /// The same for a list that was read.
    #[cfg(feature = "std")]
    pub(in crate::elastic) fn list(&mut self, listing: &super::Listing) -> Result<(), E> {
        self.section(&listing.section(), listing.records())
    }

    /// Writes the section of a lane that is in another part.
    pub(in crate::elastic) fn absent(&mut self) -> Result<(), E> {
        self.section(&Section { items: 0, shards: 0, length: 0 }, iter::empty())
    }

    pub(in crate::elastic) fn table(&mut self, table: &[u8]) -> Result<(), E> {
        (self.write)(table)?;
        (self.write)(&[0; 8][..filler(table.len())])
    }

    /// Writes the trailer.
    pub(in crate::elastic) fn finish(mut self) -> Result<(), E> {
        (self.write)(&self.checksums.finish().to_le_bytes())
    }
}

/// All shards of a lane with what the list says of them, but for their checksums.
fn shards(lane: &Lane) -> impl Iterator<Item = (Record, Shard<'_>)> + Clone {
    lane.layers().flat_map(|layer| {
        layer.in_order().map(|(shard, prefix)| {
            let (depth, items) = (shard.params().depth, low_half(wide(shard.len())));
            (Record { layer: layer.number(), depth, prefix: low_half(prefix), items, checksum: 0 }, shard)
        })
    })
}

/// The length of a lane's list and tables in bytes.
pub(super) fn length(lane: &Lane) -> usize {
    let of_shard = |(_, shard): (Record, Shard<'_>)| {
        let bytes = shard.params().table_bytes();
        RECORD_BYTES + bytes + filler(bytes)
    };
    shards(lane).map(of_shard).sum()
}
