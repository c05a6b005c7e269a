//! What snapshots ask of a growing filter: each lane is a section, from which it is read again.

use alloc::vec::Vec;

use super::{ElasticFilter, lane::Lane, layer::Layer};
use crate::{
    bits::{low_half, wide},
    kernel::Dispatch,
    snapshot::{Listed, Reading, Record, SnapshotError, Source},
    storage::reserved,
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
        let (listing, params) = (reading.present(number)?, reading.header.fields);
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

impl<H> ElasticFilter<H> {
    /// Reads all lanes of a snapshot.
    pub(crate) fn read_lanes<S: Source>(reading: &mut Reading<S>) -> Result<Vec<Lane>, SnapshotError> {
        let lanes = reading.header.fields.lanes();
        let mut list = reserved(lanes)?;
        for number in 0..wide(lanes) {
            list.push(Lane::read(reading, number)?);
        }
        Ok(list)
    }
}
