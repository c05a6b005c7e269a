//! Snapshots of growing filters, which have a section for each partition.

use alloc::vec::Vec;

use super::{
    ElasticView, Input, ListedGeneration, Listing, Reading, Source,
    error::too_long,
    filters::append,
    format::HEADER_BYTES,
    read::Contents,
    reads, snapshot_bytes,
    view::{ShardIndex, SnapshotShards},
    views, write, writes,
};
#[cfg(feature = "std")]
use crate::elastic::{Shared, SharedFilter};
use crate::{
    bits::{index, low_half, wide},
    elastic::{Elastic, ElasticFilter, Generation, Partition, Shards as _},
    hash::{Hasher, HasherId},
    kernel::Dispatch,
    snapshot::{Body, SnapshotError},
    storage::{OutOfMemory, Snapshot, reserved},
};

impl Partition {
    /// Reads the bodies of a section.
    fn read(reading: &mut Reading<'_, '_>, listing: &Listing) -> Result<Self, SnapshotError> {
        let params = reading.header.fields;
        let mut generations = listing.generations(&params);
        let mut partition = match generations.next() {
            Some(first) => Self::with_first(Generation::read(reading, first)?),
            None => Self::new(params.generation(0), Dispatch::best())?,
        };
        for listed in generations {
            partition.push_generation(Generation::read(reading, listed)?)?;
        }
        listing.check_items(partition.item_count())?;
        Ok(partition)
    }
}

impl Generation {
    /// Reads the shards and the extra copies of a generation.
    fn read(
        reading: &mut Reading<'_, '_>,
        ListedGeneration { plan, depth, records }: ListedGeneration<'_>,
    ) -> Result<Self, SnapshotError> {
        let tables = records.iter().filter(|record| record.body == Body::Table).map(|record| record.depth);
        let mut generation = Self::with_levels(plan, &tables, Dispatch::best())?;
        let shards = records.iter().filter(|record| record.is_shard()).count();
        for (number, record) in records.iter().enumerate() {
            match reading.body(&plan, record, &|class_key| generation.count_in_tables(class_key))? {
                Contents::Table(table) => {
                    generation.push_table(record.depth, record.prefix, low_half(record.entries), table)?;
                }
                Contents::List(list) => generation.push_list(record.depth, record.prefix, list.to_list()?)?,
                Contents::Copies(copies) => generation.set_extra_copies(&copies.iter())?,
            }
            if number + 1 == shards {
                reading.allow_directory(depth, reading.input.offset)?;
                generation.make_directory(depth)?;
            }
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
        self.write(hasher, append(bytes))
    }

    fn read(reading: Reading<'_, '_>) -> Result<Self, SnapshotError> {
        let params = reading.header.fields;
        let mut partitions = reserved(params.partitions())?;
        reading.sections(&mut |reading, listing| {
            partitions.push(Partition::read(reading, listing)?);
            Ok(())
        })?;
        Ok(Self::from_partitions(partitions, params))
    }
}

impl<H: Hasher> ElasticFilter<H> {
    fn read(input: &mut Input<'_>, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let reading = Reading::start(input)?;
        let hasher = reading.header.hasher(hasher)?;
        Ok(Self { core: Elastic::read(reading)?, hasher })
    }

    fn from_slice(bytes: &[u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let mut input = Input::new(Source::Slice(bytes));
        let filter = Self::read(&mut input, hasher)?;
        input.expect_end().map(|()| filter)
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
        self.write(hasher, append(bytes))
    }
}

#[cfg(feature = "std")]
impl<H: Hasher> SharedFilter<H> {
    fn read(input: &mut Input<'_>, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        Self::locked(ElasticFilter::read(input, hasher)?)
    }

    fn from_slice(bytes: &[u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        Self::locked(ElasticFilter::from_slice(bytes, hasher)?)
    }

    fn locked(filter: ElasticFilter<H>) -> Result<Self, SnapshotError> {
        let room = reserved(filter.core.params.partitions())?;
        Ok(filter.with_locks(room))
    }
}

impl<D: AsRef<[u8]>, H: Hasher> ElasticView<D, H> {
    fn open(data: D, hasher: impl FnOnce(HasherId) -> Option<H>, allow_trailing: bool) -> Result<Self, SnapshotError> {
        let bytes = data.as_ref();
        let mut input = Input::new(Source::Slice(bytes));
        let reading = Reading::start(&mut input)?;
        let hasher = reading.header.hasher(hasher)?;
        let shards = ShardIndex::read(reading)?;
        let (given, end) = (wide(bytes.len()), input.offset);
        let storage = Snapshot { data, start: HEADER_BYTES, end: index(end) };
        // Dropped as one: to drop the shards and the data alone takes 700 bytes of WebAssembly more.
        let view = Self { core: SnapshotShards { storage, index: shards }, hasher };
        if end < given && !allow_trailing { Err(too_long(given, end)) } else { Ok(view) }
    }
}

impl<D: AsRef<[u8]>> SnapshotShards<D> {
    fn verify(&self, _: HasherId) -> Result<(), SnapshotError> {
        self.index.verify(self.storage.all())
    }

    fn to_verified(&self, _: HasherId) -> Result<Elastic, SnapshotError> {
        let mut input = Input::new(Source::Slice(self.storage.all()));
        Elastic::read(Reading::start(&mut input)?)
    }

    fn snapshot_bytes(&self) -> u64 {
        wide(self.storage.end)
    }

    fn write<E>(&self, _: HasherId, mut piece: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        piece(self.storage.all())
    }

    fn append_to(&self, hasher: HasherId, bytes: &mut Vec<u8>) -> Result<(), OutOfMemory> {
        self.write(hasher, append(bytes))
    }
}

impl ShardIndex {
    fn verify(&self, bytes: &[u8]) -> Result<(), SnapshotError> {
        let mut input = Input::new(Source::Slice(bytes));
        Reading::start(&mut input)?.sections(&mut |reading, listing| {
            let (params, mut found) = (reading.header.fields, 0_u64);
            for ListedGeneration { plan, records, .. } in listing.generations(&params) {
                for record in records {
                    let in_tables = |class_key| self.count_in_tables(bytes, listing.partition, plan.number, class_key);
                    found = found.saturating_add(match reading.body(&plan, record, &in_tables)? {
                        Contents::Table(_) => record.entries,
                        Contents::List(list) | Contents::Copies(list) => list.total(),
                    });
                }
            }
            listing.check_items(found)
        })
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
