//! What snapshots ask of a growing filter: each lane is a section, from which it is read again.

#![allow(private_interfaces, private_bounds, reason = "the traits are sealed")]

#[cfg(feature = "std")]
use super::Shared;
use super::{Elastic, ElasticParams, SnapshotShards, lane::Lane, layer::Layer};
#[cfg(feature = "std")]
use crate::storage::OutOfMemory;
use crate::{
    bits::{low_half, wide},
    filter::Filter,
    hash::{Hasher, HasherId},
    kernel::Dispatch,
    snapshot::{
        FromSnapshot, Listed, Reading, Record, Slice, SnapshotError, Source, ToSnapshot, ViewSnapshot, snapshot_bytes, write,
    },
    storage::{Snapshot, reserved},
};

impl Lane {
    /// What the list says of all shards, but for their checksums, and their tables without padding.
    pub(crate) fn records(&self) -> impl Iterator<Item = (Record, &[u8])> + Clone {
        self.layers().flat_map(|layer| {
            layer.tables_in_order().map(|(record, table)| {
                let items = low_half(wide(record.items()));
                (Record { layer: layer.number(), depth: record.depth(), prefix: record.prefix(), items, checksum: 0 }, table)
            })
        })
    }

    /// Reads the section of the lane with this number.
    fn read<S: Source>(reading: &mut Reading<S>, number: u64) -> Result<Self, SnapshotError> {
        let (listing, params) = (reading.listing(number)?, reading.header.fields);
        let mut layers = listing.layers(&params);
        let first = match layers.next() {
            Some(listed) => Layer::read(reading, listed)?,
            None => Layer::unused(params.layer(0), Dispatch::best()),
        };
        let mut lane = Self::with_first(&params, first);
        for listed in layers {
            lane.push_layer(Layer::read(reading, listed)?)?;
        }
        Ok(lane)
    }
}

impl Layer {
    /// Reads the shards of a layer.
    fn read<S: Source>(reading: &mut Reading<S>, Listed { plan, depth, records }: Listed<'_>) -> Result<Self, SnapshotError> {
        let mut layer = Self::of_depths(plan, &records.iter().map(|record| record.depth), Dispatch::best())?;
        for record in records {
            let table = reading.table(plan.shard(record.depth), record)?;
            layer.push(record.depth, record.prefix, record.items, table)?;
        }
        reading.allow_directory(depth)?;
        layer.make_directory()?;
        Ok(layer)
    }
}

impl ToSnapshot for Elastic {
    fn snapshot_bytes(&self) -> u64 {
        snapshot_bytes(self.storage.lanes.iter())
    }

    fn write<E>(&self, hasher: HasherId, piece: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        write(&self.params, hasher, self.storage.lanes.iter().map(Ok), piece)
    }
}

impl FromSnapshot for Elastic {
    fn read<H: Hasher>(
        source: impl Source,
        hasher: impl FnOnce(HasherId) -> Option<H>,
    ) -> Result<(Filter<Self, H>, u64), SnapshotError> {
        let reading = Reading::start(source)?;
        let hasher = reading.header.hasher(hasher)?;
        let (core, end) = Self::read_lanes(reading)?;
        Ok((Filter { core, hasher }, end))
    }
}

impl Elastic {
    fn read_lanes<S: Source>(mut reading: Reading<S>) -> Result<(Self, u64), SnapshotError> {
        let params = reading.header.fields;
        let mut lanes = reserved(params.lanes())?;
        for number in 0..wide(params.lanes()) {
            lanes.push(Lane::read(&mut reading, number)?);
        }
        Ok((Self::from_lanes(lanes, params), reading.finish()?))
    }
}

/// Each lane is copied under its lock, and the copy is written, so that no thread waits for the writer, which may use the filter.
#[cfg(feature = "std")]
impl ToSnapshot for Shared {
    fn snapshot_bytes(&self) -> u64 {
        snapshot_bytes(self.lanes.iter().map(|lane| lane.read()))
    }

    fn write<E: From<OutOfMemory>>(&self, hasher: HasherId, piece: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        write(&self.params, hasher, self.lanes.iter().map(|lane| Ok(lane.read().try_clone()?)), piece)
    }
}

#[cfg(feature = "std")]
impl FromSnapshot for Shared {
    fn read<H: Hasher>(
        source: impl Source,
        hasher: impl FnOnce(HasherId) -> Option<H>,
    ) -> Result<(Filter<Self, H>, u64), SnapshotError> {
        let (filter, end) = Elastic::read(source, hasher)?;
        let room = reserved(filter.core.params.lanes())?;
        Ok((filter.with_locks(room), end))
    }
}

impl<D: AsRef<[u8]>> ToSnapshot for Elastic<SnapshotShards<D>> {
    fn snapshot_bytes(&self) -> u64 {
        wide(self.snapshot().end())
    }

    fn write<E>(&self, _: HasherId, mut piece: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        piece(self.snapshot().all())
    }
}

impl<D: AsRef<[u8]>> ViewSnapshot for Elastic<SnapshotShards<D>> {
    type Data = D;
    type Owned = Elastic;

    fn open<H: Hasher>(data: D, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Filter<Self, H>, SnapshotError> {
        let (storage, params, hasher) = SnapshotShards::open(data, hasher)?;
        Ok(Filter { core: Self { storage, params }, hasher })
    }

    fn verify(&self) -> Result<(), SnapshotError> {
        let mut reading = Reading::<_, ElasticParams>::start(Slice(self.snapshot().all()))?;
        for lane in 0..wide(self.params.lanes()) {
            let listing = reading.listing(lane)?;
            reading.verify_tables(&listing)?;
        }
        reading.finish().map(|_| ())
    }

    fn to_owned(&self) -> Result<Elastic, SnapshotError> {
        let (owned, _) = Elastic::read_lanes(Reading::start(Slice(self.snapshot().all()))?)?;
        Ok(owned)
    }

    fn snapshot(&self) -> &Snapshot<D> {
        self.storage.snapshot()
    }

    fn into_snapshot(self) -> Snapshot<D> {
        self.storage.into_snapshot()
    }
}
