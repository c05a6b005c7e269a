//! Snapshots of growing filters, which have a section for each partition.

use alloc::vec::Vec;

use super::{
    ElasticView, ListedGeneration, Reading, Record, SnapshotError, Source, reads, reject_trailing_bytes, snapshot_bytes,
    view::SnapshotShards, views, write, writes,
};
#[cfg(feature = "std")]
use crate::elastic::{Shared, SharedFilter};
use crate::{
    bits::{low_half, wide},
    elastic::{Elastic, ElasticFilter, ElasticParams, Generation, Partition},
    hash::{Hasher, HasherId},
    kernel::Dispatch,
    storage::{OutOfMemory, reserved},
};

impl Partition {
    /// Returns the record of each shard, with a checksum of 0, and its table without padding.
    pub fn records(&self) -> impl Iterator<Item = (Record, &[u8])> + Clone {
        self.tables().map(|(generation, record, table)| {
            let (depth, prefix, items) = (record.depth(), record.prefix(), low_half(wide(record.items())));
            (Record { generation, depth, prefix, items, checksum: 0 }, table)
        })
    }

    /// Reads the section of the partition `number`.
    fn read(reading: &mut Reading<'_>, number: u64) -> Result<Self, SnapshotError> {
        let (listing, params) = (reading.listing(number)?, reading.header.fields);
        let mut generations = listing.generations(&params);
        let first = match generations.next() {
            Some(listed) => Generation::read(reading, listed)?,
            None => Generation::without_shards(params.generation(0), Dispatch::best()),
        };
        let mut partition = Self::with_first(&params, first);
        for listed in generations {
            partition.push_generation(Generation::read(reading, listed)?)?;
        }
        let lists = reading.lists(&listing)?;
        if listing.keys > 0 {
            partition =
                Self::with_first(&params, Generation::from_list(params.generation(0), lists.key_list.keys(), Dispatch::best())?);
        }
        let copies = lists.copies(|generation, key| partition.count_class_in_table(generation, key))?;
        partition.set_extra_copies(copies)?;
        Ok(partition)
    }
}

impl Generation {
    /// Reads the shards of a generation.
    fn read(
        reading: &mut Reading<'_>,
        ListedGeneration { plan, depth, records }: ListedGeneration<'_>,
    ) -> Result<Self, SnapshotError> {
        let mut generation = Self::with_levels(plan, &records.iter().map(|record| record.depth), Dispatch::best())?;
        for record in records {
            let table = reading.table(plan.shard(record.depth), record)?;
            generation.push(record.depth, record.prefix, record.items, table)?;
        }
        reading.allow_directory(depth)?;
        generation.make_directory()?;
        Ok(generation)
    }
}

writes!(impl [H] ElasticFilter<H>, H);
writes!(impl [D: AsRef<[u8]>, H] ElasticView<D, H>, H);
reads!(ElasticFilter);
views!(ElasticView, ElasticFilter);
#[cfg(feature = "std")]
writes!(impl [H] SharedFilter<H>, H);
#[cfg(feature = "std")]
reads!(SharedFilter);

impl Elastic {
    fn snapshot_bytes(&self) -> u64 {
        snapshot_bytes(self.partitions.iter())
    }

    fn write<E>(&self, hasher: HasherId, piece: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        write(&self.params, hasher, self.partitions.iter().map(Ok), piece)
    }

    fn append_to(&self, hasher: HasherId, bytes: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        self.write(hasher, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
    }

    fn read(mut reading: Reading<'_>) -> Result<(Self, u64), SnapshotError> {
        let params = reading.header.fields;
        let mut partitions = reserved(params.partitions())?;
        for number in 0..wide(params.partitions()) {
            partitions.push(Partition::read(&mut reading, number)?);
        }
        Ok((Self::from_partitions(partitions, params), reading.finish()?))
    }
}

impl<H: Hasher> ElasticFilter<H> {
    fn read(source: Source<'_>, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<(Self, u64), SnapshotError> {
        let reading = Reading::<ElasticParams>::start(source)?;
        let hasher = reading.header.hasher(hasher)?;
        let (core, end) = Elastic::read(reading)?;
        Ok((Self { core, hasher }, end))
    }

    fn from_slice(bytes: &[u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        reject_trailing_bytes(bytes.len(), Self::read(Source::Slice(bytes), hasher)?)
    }
}

/// Writing copies each partition under its lock, and then writes the copy. So no thread waits for the writer, and the writer may
/// use the filter.
#[cfg(feature = "std")]
impl Shared {
    fn snapshot_bytes(&self) -> u64 {
        snapshot_bytes(self.partitions.iter().map(|partition| partition.read()))
    }

    fn write<E: From<OutOfMemory>>(&self, hasher: HasherId, piece: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        write(&self.params, hasher, self.partitions.iter().map(|partition| Ok(partition.read().try_clone()?)), piece)
    }

    fn append_to(&self, hasher: HasherId, bytes: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        self.write(hasher, |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
    }
}

#[cfg(feature = "std")]
impl<H: Hasher> SharedFilter<H> {
    fn read(source: Source<'_>, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<(Self, u64), SnapshotError> {
        let (filter, end) = ElasticFilter::read(source, hasher)?;
        let room = reserved(filter.core.params.partitions())?;
        Ok((filter.with_locks(room), end))
    }

    fn from_slice(bytes: &[u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        reject_trailing_bytes(bytes.len(), Self::read(Source::Slice(bytes), hasher)?)
    }
}

impl<D: AsRef<[u8]>, H: Hasher> ElasticView<D, H> {
    fn open(data: D, hasher: impl FnOnce(HasherId) -> Option<H>, allow_trailing: bool) -> Result<Self, SnapshotError> {
        let given = data.as_ref().len();
        let (core, hasher) = SnapshotShards::open(data, hasher)?;
        let end = core.snapshot_bytes();
        let view = Self { core, hasher };
        if allow_trailing { Ok(view) } else { reject_trailing_bytes(given, (view, end)) }
    }
}

impl<D: AsRef<[u8]>> SnapshotShards<D> {
    fn verify(&self, _: HasherId) -> Result<(), SnapshotError> {
        let mut reading = Reading::<ElasticParams>::start(Source::Slice(self.snapshot().all()))?;
        for partition in 0..wide(self.params().partitions()) {
            let listing = reading.listing(partition)?;
            reading.verify_partition(&listing, |generation, key| self.count_class_in_table(partition, generation, key))?;
        }
        reading.finish().map(|_| ())
    }

    fn to_verified(&self, _: HasherId) -> Result<Elastic, SnapshotError> {
        let (owned, _) = Elastic::read(Reading::<ElasticParams>::start(Source::Slice(self.snapshot().all()))?)?;
        Ok(owned)
    }

    fn snapshot_bytes(&self) -> u64 {
        wide(self.snapshot().end())
    }

    #[cfg_attr(not(feature = "std"), expect(dead_code, reason = "without std, there are no writers"))]
    fn write<E>(&self, _: HasherId, mut piece: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        piece(self.snapshot().all())
    }

    #[expect(clippy::unnecessary_wraps, reason = "other cores may need memory")]
    fn append_to(&self, _: HasherId, bytes: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        bytes.extend_from_slice(self.snapshot().all());
        Ok(())
    }
}

impl<H: Hasher + Clone> ElasticFilter<H> {
    /// Checks partitions, generations, directories, lists of shards and tables against each other, and that a reader accepts the
    /// snapshot. Takes time proportional to the filter.
    ///
    /// # Panics
    /// If anything is inconsistent, which is a defect of this library.
    #[doc(hidden)]
    pub fn assert_consistent(&self) {
        let partitions = &self.core.partitions;
        assert_eq!(partitions.len(), self.core.params.partitions(), "partitions");
        for (number, partition) in partitions.iter().enumerate() {
            assert!(*partition.params() == self.core.params, "partition {number} has other parameters");
            partition.assert_consistent();
        }
        let view = ElasticView::over_with(self.to_bytes(), |_| Some(self.hasher.clone()));
        let view = view.unwrap_or_else(|error| panic!("the snapshot is refused: {error}"));
        assert_eq!((view.len(), view.shards()), (self.len(), self.shards()), "items and shards of the snapshot");
    }
}
