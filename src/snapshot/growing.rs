//! Snapshots of growing filters, which have a section for each partition.

use alloc::vec::Vec;

use super::{
    Body, ElasticView, ListedGeneration, Reading, Record, SnapshotError, Source, reads, reject_trailing_bytes, snapshot_bytes,
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
    table::list::List,
};

impl Partition {
    /// Reads the section of the partition `number`.
    fn read(reading: &mut Reading<'_>, number: u64) -> Result<Self, SnapshotError> {
        let (listing, params) = (reading.listing(number)?, reading.header.fields);
        let mut partition: Option<Self> = None;
        for listed in listing.generations(&params) {
            let generation = Generation::read(reading, listed)?;
            match &mut partition {
                Some(partition) => partition.push_generation(generation)?,
                None => partition = Some(Self::with_first(generation)),
            }
        }
        let mut partition = partition.map_or_else(|| Self::new(params.generation(0), Dispatch::best()), Ok)?;
        partition.note_copies();
        listing.check_items(partition.item_count())?;
        Ok(partition)
    }
}

impl Generation {
    /// Reads the shards and the extra copies of a generation.
    fn read(
        reading: &mut Reading<'_>,
        ListedGeneration { plan, depth, records }: ListedGeneration<'_>,
    ) -> Result<Self, SnapshotError> {
        let tables = records.iter().filter(|record| record.body == Body::Table).map(|record| record.depth);
        let mut generation = Self::with_levels(plan, &tables, Dispatch::best())?;
        for record in records {
            match record.body {
                Body::Table => {
                    let table = reading.table(&plan, record)?;
                    generation.push_table(record.depth, record.prefix, low_half(record.entries), table)?;
                }
                Body::List { count_bytes } => {
                    let list = reading.list(&plan, record, count_bytes)?;
                    generation.push_list(record.depth, record.prefix, List::from_sorted(plan.key_bytes(), list.iter())?)?;
                }
                Body::Copies { .. } => {}
            }
        }
        reading.allow_directory(depth)?;
        generation.make_directory(depth)?;
        if let Some(record @ &Record { body: Body::Copies { count_bytes }, .. }) = records.last() {
            let copies = reading.copies(&plan, record, count_bytes, |class_key| generation.count_in_tables(class_key))?;
            generation.set_extra_copies(&copies.iter())?;
        }
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
            reading.verify_partition(&listing, |generation, key| self.count_in_tables(partition, generation, key))?;
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
            assert_eq!(*partition.plan(), self.core.params.generation(0), "the plan of partition {number}");
            partition.assert_consistent();
        }
        let view = ElasticView::over_with(self.to_bytes(), |_| Some(self.hasher.clone()));
        let view = view.unwrap_or_else(|error| panic!("the snapshot is refused: {error}"));
        assert_eq!((view.len(), view.shards()), (self.len(), self.shards()), "items and shards of the snapshot");
    }
}
