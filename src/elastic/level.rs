//! The shards of one depth.

use alloc::vec::Vec;

use super::{
    shard::{Key, Shard, ShardMut, ShardParams},
    stream::Window,
    tables::Tables,
};
use crate::{
    bits::{index, low_half, wide},
    filter::RemoveKnown,
    kernel::Dispatch,
    params::{at_least_one, mean_matches},
    storage::{OutOfMemory, Part, PartMut, reserved, shrink_to},
    table::{DeepGeometry, Placement as _, TableParams as _},
};

/// Bits of a [`Place`] that number a shard in its level.
const NUMBER_BITS: u32 = 27;

/// The most bits of a stream that lead to a shard: every shard has a number.
pub(super) const MOST_DEPTH: u8 = 27;

/// Where a shard is: the index of its level, and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    pub(super) fn new(level: usize, at: usize) -> Self {
        debug_assert!(level < 1 << (32 - NUMBER_BITS) && at < 1 << NUMBER_BITS);
        Self(low_half(wide(level << NUMBER_BITS | at)))
    }

    #[inline]
    pub(super) fn level(self) -> usize {
        index((self.0 >> NUMBER_BITS).into())
    }

    #[inline]
    pub(super) fn at(self) -> usize {
        index((self.0 & ((1 << NUMBER_BITS) - 1)).into())
    }
}

/// What all shards of one depth have in common.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    params: ShardParams,
    geometry: DeepGeometry,
    /// The bits of a stream that the shards store.
    upper: Window,
}

impl Shape {
    pub(super) fn new(params: ShardParams) -> Self {
        Self { geometry: params.geometry(), upper: params.upper(), params }
    }

    /// A whole shard with this table and so many items.
    pub(super) fn shard<'a>(&self, dispatch: Dispatch, bytes: &'a [u8], items: usize) -> Shard<'a> {
        Shard::from_parts(self.params, Part(&bytes[..self.params.padded_bytes()]), items).with_dispatch(dispatch)
    }

    /// The number of copies of an item in such a shard.
    pub(super) fn count(&self, dispatch: Dispatch, bytes: &[u8], key: Key) -> u32 {
        dispatch.read(&self.geometry, bytes, key.count(self.upper))
    }

    /// The probability that an absent item is found in a shard with so many items.
    pub(super) fn false_positive_rate(&self, items: usize) -> f64 {
        let load = items as f64 / self.params.slots() as f64;
        let mean = mean_matches(self.params.low_bits.into(), self.params.bucket_size(), load);
        at_least_one(mean / (1_u64 << self.params.spare_bits) as f64)
    }
}

/// Shards of equal parameters, numbered from 0 without gaps.
#[derive(Clone)]
pub(super) struct Level {
    shape: Shape,
    tables: Tables,
    records: Vec<Record>,
}

/// What is known of a shard besides its table.
#[derive(Clone, Copy)]
pub(super) struct Record {
    /// The first bits of a stream, which lead to the shard.
    pub(super) prefix: u32,
    /// The number of items.
    len: u32,
}

impl Level {
    /// No shards yet.
    pub(super) fn new(params: ShardParams, tables: Tables) -> Self {
        Self { shape: Shape::new(params), tables, records: Vec::new() }
    }

    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    fn params(&self) -> &ShardParams {
        &self.shape.params
    }

    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    /// The number of shards.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }

    #[inline]
    pub(super) fn items(&self, at: usize) -> usize {
        self.records[at].items()
    }

    /// The table of a shard, and what follows it in its block.
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a look-up's instructions")]
    #[inline(always)]
    pub(super) fn table(&self, at: usize) -> &[u8] {
        self.tables.get(at)
    }

    /// Prefetches the buckets of an item, with their column.
    pub(super) fn prefetch(&self, dispatch: Dispatch, at: usize, key: Key) {
        dispatch.read(&self.shape.geometry, self.tables.get(at), key.locate(0).prefetch());
    }

    /// The number of copies of an item in a shard.
    pub(super) fn count(&self, dispatch: Dispatch, at: usize, key: Key) -> u32 {
        self.shape.count(dispatch, self.tables.get(at), key)
    }

    /// Removes an item from a shard that another may be a copy of, of whose upper bits only the first few are known. Returns false if
    /// there is none.
    pub(super) fn remove_known(&mut self, dispatch: Dispatch, at: usize, key: Key, known: u8) -> bool {
        let remove = RemoveKnown(key.count_known(&self.shape.params, self.shape.upper, known));
        let is_found = dispatch.change(&self.shape.geometry, self.tables.get_mut(at), remove);
        self.records[at].len -= u32::from(is_found);
        is_found
    }

    /// Inserts an item into a shard. Returns false, and changes nothing, if there is no room.
    #[inline]
    pub(super) fn insert(&mut self, dispatch: Dispatch, at: usize, key: Key) -> bool {
        let is_placed =
            dispatch.change(&self.shape.geometry, self.tables.get_mut(at), key.place(&self.shape.params, self.shape.upper));
        self.records[at].len += u32::from(is_placed);
        is_placed
    }

    /// Removes a copy of an item from a shard. Returns false if there is none.
    #[inline]
    pub(super) fn remove(&mut self, dispatch: Dispatch, at: usize, key: Key) -> bool {
        let is_found =
            dispatch.change(&self.shape.geometry, self.tables.get_mut(at), key.locate(self.shape.upper.of(key.stream)));
        self.records[at].len -= u32::from(is_found);
        is_found
    }

    /// The table of a shard, without padding.
    pub(super) fn whole_table(&self, at: usize) -> &[u8] {
        &self.tables.get(at)[..self.params().table_bytes()]
    }

    /// True if copies of a few items, and not too many different ones, leave no room for an item in a shard.
    pub(super) fn is_crowded_by_copies(&self, dispatch: Dispatch, at: usize, key: Key) -> bool {
        dispatch.read(&self.shape.geometry, self.tables.get(at), key.crowd(&self.shape.params))
    }

    /// A whole shard.
    pub(super) fn shard(&self, dispatch: Dispatch, at: usize) -> Shard<'_> {
        self.shape.shard(dispatch, self.tables.get(at), self.items(at))
    }

    /// Makes room for more shards. If that fails, nothing has changed.
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), OutOfMemory> {
        // A record for each table that there is room for: so their memory follows from the number of shards, too.
        let capacity = self.tables.capacity_for(more);
        if capacity <= self.records.capacity() {
            return self.tables.reserve(more);
        }
        let mut records = reserved(capacity)?;
        self.tables.reserve(more)?;
        records.append(&mut self.records);
        self.records = records;
        Ok(())
    }

    /// Adds a shard, for which there must be room, with what `fill` inserts. Returns its index; or `None`, and there is no such
    /// shard, if `fill` returns false.
    pub(super) fn push(
        &mut self,
        dispatch: Dispatch,
        prefix: u32,
        fill: impl FnOnce(&mut ShardMut<'_>) -> bool,
    ) -> Option<usize> {
        let (at, params) = (self.tables.push(), *self.params());
        let table = PartMut(&mut self.tables.get_mut(at)[..params.padded_bytes()]);
        let mut shard = ShardMut::from_parts(params, table, 0).with_dispatch(dispatch);
        let (is_filled, items) = (fill(&mut shard), shard.len());
        self.records.push(Record { prefix, len: low_half(wide(items)) });
        if !is_filled {
            self.swap_remove(at);
        }
        is_filled.then_some(at)
    }

    /// Adds a shard with this table and its padding, in which there are so many items. Returns its index.
    pub(super) fn push_table(&mut self, prefix: u32, items: u32, table: &[u8]) -> Result<usize, OutOfMemory> {
        self.reserve(1)?;
        let at = self.tables.push();
        self.tables.get_mut(at)[..table.len()].copy_from_slice(table);
        self.records.push(Record { prefix, len: items });
        Ok(at)
    }

    /// Removes a shard; the last one takes its place.
    pub(super) fn swap_remove(&mut self, at: usize) {
        self.records.swap_remove(at);
        self.tables.swap_remove(at);
        shrink_to(&mut self.records, self.tables.capacity());
    }

    /// Frees memory that has no shards, after room for some was made that were not added.
    pub(super) fn release(&mut self) {
        self.tables.release();
        shrink_to(&mut self.records, self.tables.capacity());
    }

    /// What a shard is charged: see [`Tables::charge`].
    pub(super) fn charge(&self) -> usize {
        self.tables.charge(size_of::<Record>())
    }

    /// See [`Tables::slack`].
    pub(super) fn slack(&self) -> usize {
        self.tables.slack(size_of::<Record>())
    }

    /// A copy, or an error if memory cannot be allocated.
    pub(super) fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut records = reserved(self.tables.capacity())?;
        records.extend_from_slice(&self.records);
        Ok(Self { tables: self.tables.try_clone()?, records, ..*self })
    }

    pub(super) fn size_in_bytes(&self) -> usize {
        self.tables.size_in_bytes() + self.records.capacity() * size_of::<Record>()
    }
}

impl Record {
    #[inline]
    pub(super) fn items(self) -> usize {
        index(self.len.into())
    }
}

/// For [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Level {
    pub(super) fn assert_consistent(&self, dispatch: Dispatch) {
        let params = self.params();
        assert_eq!(self.tables.len(), self.records.len(), "tables of depth {}", params.depth);
        self.tables.assert_consistent();
        let mut prefixes: Vec<u32> = self.records.iter().map(|record| record.prefix).collect();
        prefixes.sort_unstable();
        assert!(prefixes.windows(2).all(|two| two[0] < two[1]), "two shards have one prefix");
        assert!(prefixes.last().is_none_or(|&prefix| u64::from(prefix) < 1 << params.depth), "a prefix is too long");
        for (at, record) in self.records.iter().enumerate() {
            let shard = self.shard(dispatch, at);
            let corrupt = shard.first_corrupt(0..params.buckets());
            assert!(corrupt.is_none(), "shard {at} of depth {}: {corrupt:?}", params.depth);
            let (placement, mut stored) = (params.placement(), 0);
            shard.each_fingerprint(|bucket, fingerprint| {
                let other = placement.alternate(bucket, fingerprint);
                assert!(
                    other < params.buckets() && placement.alternate(other, fingerprint) == bucket,
                    "buckets {bucket}, {other}"
                );
                stored += 1;
                true
            });
            assert_eq!(record.items(), stored, "items of shard {at} of depth {}", params.depth);
            let padding = &self.tables.get(at)[params.table_bytes()..params.padded_bytes()];
            assert!(padding.iter().all(|&byte| byte == 0), "the padding of shard {at} of depth {} is not zero", params.depth);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_shard_of_the_last_level_has_a_place() {
        for (level, at) in [(0, 0), (31, (1 << NUMBER_BITS) - 1), (MOST_DEPTH.into(), 1 << 20)] {
            let place = Place::new(level, at);
            assert_eq!((place.level(), place.at()), (level, at));
        }
    }
}
