//! Reading a growing filter from untrusted bytes.

use super::{
    super::{ElasticFilter, lane::Lane, layer::Layer},
    format::Record,
    listing,
    reading::Reading,
};
use crate::{
    bits::wide,
    hash::{Hasher, HasherId, Xxh3},
    kernel::Dispatch,
    snapshot::{Slice, SnapshotError, Source, too_long, xxh3},
    storage::reserved,
};

impl ElasticFilter {
    /// Reads a filter from the bytes of one snapshot of a growing filter, with nothing after it.
    ///
    /// Safe for untrusted input: validates everything, and allocates no more than a few times the length of the input, and 32 MiB.
    /// Takes time proportional to the input. A limit of memory is not a part of a snapshot:
    /// [`set_max_bytes`](Self::set_max_bytes) sets it again.
    ///
    /// # Errors
    /// If the bytes are not a valid snapshot of a growing filter; the error says what is wrong and at which offset. If the
    /// filter's hasher is not [`Xxh3`]: then use [`from_bytes_with`](Self::from_bytes_with).
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes_with(bytes, xxh3)
    }
}

/// Reads a snapshot with [`from_bytes`](ElasticFilter::from_bytes).
impl TryFrom<&[u8]> for ElasticFilter<Xxh3> {
    type Error = SnapshotError;

    fn try_from(bytes: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes(bytes)
    }
}

impl<H: Hasher> ElasticFilter<H> {
    /// [`from_bytes`](ElasticFilter::from_bytes) for filters with other hashers. See
    /// [`CuckooFilter::from_bytes_with`](crate::CuckooFilter::from_bytes_with) for `hasher`.
    ///
    /// # Errors
    /// As `from_bytes`.
    pub fn from_bytes_with(bytes: &[u8], hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<Self, SnapshotError> {
        let (filter, end) = Self::read_pieces(Slice(bytes), hasher)?;
        if end < wide(bytes.len()) { Err(too_long(wide(bytes.len()), end)) } else { Ok(filter) }
    }

    /// Reads one snapshot, and not one byte more. Also returns its length.
    pub(crate) fn read_pieces(
        source: impl Source,
        hasher: impl FnOnce(HasherId) -> Option<H>,
    ) -> Result<(Self, u64), SnapshotError> {
        let mut reading = Reading::start(source)?;
        let hasher = reading.hasher(hasher)?;
        let params = reading.params;
        let mut lanes = reserved(params.lanes())?;
        for number in 0..wide(params.lanes()) {
            lanes.push(lane(&mut reading, number)?);
        }
        let end = reading.finish()?;
        Ok((Self::from_lanes(lanes, params, hasher), end))
    }
}

/// Reads the section of a lane.
fn lane<S: Source>(reading: &mut Reading<S>, number: u64) -> Result<Lane, SnapshotError> {
    let listing = reading.present(number)?;
    let mut layers = listing.layers();
    let first = layers.next().unwrap_or_default();
    let first = layer(reading, first)?;
    let mut lane = Lane::with_first(&reading.params, first);
    for records in layers {
        lane.push_layer(layer(reading, records)?)?;
    }
    Ok(lane)
}

/// Reads the shards of a layer, at least one.
fn layer<S: Source>(reading: &mut Reading<S>, records: &[Record]) -> Result<Layer, SnapshotError> {
    let (plan, depth) = listing::layer(&reading.params, records);
    let shards_of = |depth| records.iter().filter(|record| record.depth == depth).count();
    let mut layer = Layer::with_levels(plan, |depth| plan.level_for(depth, shards_of(depth)), Dispatch::best())?;
    for record in records {
        let table = reading.table(plan.shard(record.depth), record)?;
        layer.push(record.depth, record.prefix, record.items, table)?;
    }
    reading.allow_directory(depth)?;
    layer.make_directory(depth)?;
    Ok(layer)
}
