//! The list of a lane's shards, which says where their tables are.

use alloc::vec::Vec;

use super::{
    super::{ElasticParams, plan::LayerPlan},
    format::{RECORD_BYTES, Record, SECTION_BYTES, Section, filler},
};
use crate::{
    bits::{index, wide},
    snapshot::{SnapshotError, SnapshotErrorKind as Kind},
    storage::reserved,
    table::TableParams as _,
};

/// A validated list. That of a lane which is in another part has no shards.
pub(in crate::elastic) struct Listing {
    records: Vec<Record>,
    /// The length of all tables with what they are filled up with.
    pub(super) table_bytes: u64,
}

impl Listing {
    /// Validates the list of a lane, of which the section begins at `start`.
    pub(super) fn decode(
        params: &ElasticParams,
        list: &[u8],
        lane: u64,
        section: &Section,
        start: u64,
    ) -> Result<Self, SnapshotError> {
        let records = if list.is_empty() { Vec::new() } else { records(params, list, start + wide(SECTION_BYTES))? };
        let found: u64 = records.iter().map(|record| u64::from(record.items)).sum();
        if found != section.items {
            let words = "the shards of lane {} hold {} items, but its header says {}";
            return Err(SnapshotError::new(Kind::Count, start, words, [lane, found, section.items]));
        }
        let table_bytes = records.chunk_by(same_layer).fold(0, |sum: u64, records| sum.saturating_add(in_layer(params, records)));
        // A sum that has reached the greatest number is no length, whatever the header says.
        match table_bytes.checked_add(wide(list.len())) {
            Some(found) if found == section.length => Ok(Self { records, table_bytes }),
            found => {
                let found = found.unwrap_or(u64::MAX);
                let words = "lane {} has {} bytes, but its header says {}";
                Err(SnapshotError::new(Kind::Shards, start, words, [lane, found, section.length]))
            }
        }
    }

    /// Is the lane in another part?
    pub(in crate::elastic) fn is_absent(&self) -> bool {
        self.records.is_empty()
    }

    /// The number of items in the lane.
    #[cfg(feature = "std")]
    pub(in crate::elastic) fn items(&self) -> u64 {
        self.records.iter().map(|record| u64::from(record.items)).sum()
    }

    /// The header of the section, as it was.
    #[cfg(feature = "std")]
    pub(super) fn section(&self) -> Section {
        let list = wide(self.records.len() * RECORD_BYTES);
        Section { items: self.items(), shards: wide(self.records.len()), length: self.table_bytes + list }
    }

    /// The list, as it was.
    #[cfg(feature = "std")]
    pub(super) fn records(&self) -> impl Iterator<Item = Record> + Clone {
        self.records.iter().copied()
    }

    /// The records of each layer, which are never none, in order.
    pub(super) fn layers(&self) -> impl Iterator<Item = &[Record]> {
        self.records.chunk_by(same_layer)
    }
}

fn same_layer(one: &Record, next: &Record) -> bool {
    one.layer == next.layer
}

/// Bytes of the tables of a layer.
fn in_layer(params: &ElasticParams, records: &[Record]) -> u64 {
    let plan = params.layer(records[0].layer);
    records.iter().map(|record| padded(plan.shard(record.depth).table_bytes())).fold(0, u64::saturating_add)
}

/// The length of a table with what it is filled up with.
pub(super) fn padded(table_bytes: usize) -> u64 {
    wide(table_bytes) + wide(filler(table_bytes))
}

/// The plan of a layer with these shards, and the depth of a directory for them.
pub(super) fn layer(params: &ElasticParams, records: &[Record]) -> (LayerPlan, u8) {
    let plan = params.layer(records[0].layer);
    (plan, records.iter().map(|record| record.depth).max().unwrap_or(plan.least_depth))
}

/// Decodes and validates the records of a list, which begins at this offset.
fn records(params: &ElasticParams, bytes: &[u8], start: u64) -> Result<Vec<Record>, SnapshotError> {
    let mut list = reserved(bytes.len() / RECORD_BYTES)?;
    let mut expected = Expected::new(params);
    for (bytes, at) in bytes.chunks_exact(RECORD_BYTES).zip((start..).step_by(RECORD_BYTES)) {
        let mut record = [0; RECORD_BYTES];
        record.copy_from_slice(bytes);
        let record = Record::decode(&record).ok_or("the record of a shard: its reserved bytes are not zero");
        let record = record.and_then(|record| expected.accept(&record).map(|()| record));
        list.push(record.map_err(|what| SnapshotError::new(Kind::Shards, at, what, []))?);
    }
    if expected.next != WHOLE {
        let words = "the list of shards ends before every hash has one";
        return Err(SnapshotError::new(Kind::Shards, start + wide(bytes.len()), words, []));
    }
    Ok(list)
}

/// All streams, in units of those that have their first 32 bits in common.
const WHOLE: u64 = 1 << 32;

/// Which shards may come next in the list of a lane: those of a layer have all streams, in order.
struct Expected<'a> {
    params: &'a ElasticParams,
    plan: LayerPlan,
    /// The first stream that has no shard yet.
    next: u64,
}

impl<'a> Expected<'a> {
    fn new(params: &'a ElasticParams) -> Self {
        Self { params, plan: params.layer(0), next: 0 }
    }

    fn accept(&mut self, record: &Record) -> Result<(), &'static str> {
        let number = record.layer;
        if usize::from(number) >= self.params.most_layers() {
            return Err("the record of a shard: its layer is one that could not keep the rate");
        }
        if self.next == WHOLE && number > self.plan.number {
            (self.plan, self.next) = (self.params.layer(number), 0);
        }
        if number != self.plan.number {
            return Err("the record of a shard: its layer is not the one that follows");
        }
        if !(self.plan.least_depth..=self.plan.most_depth).contains(&record.depth) {
            return Err("the record of a shard: its depth is out of range");
        }
        let unit = WHOLE >> record.depth;
        if u64::from(record.prefix) * unit != self.next {
            return Err("the record of a shard: its prefix is not the one that follows");
        }
        if index(record.items.into()) > self.plan.whole.slots() {
            return Err("the record of a shard: it has more items than slots");
        }
        self.next += unit;
        Ok(())
    }
}
