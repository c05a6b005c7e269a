//! Views of growing filters: an index of the shards in a snapshot that the caller keeps, and lookups in place.

use alloc::vec::Vec;
use core::{fmt, iter};

use super::{Body, ListedGeneration, Reading, Record, SnapshotError};
#[cfg(feature = "std")]
use crate::SharedFilter;
use crate::{
    bits::{in_memory, index, wide},
    elastic::{
        DepthLayout, Directory, ElasticFilter, ElasticParams, GenerationPlan, Key, Partitions, PlaceCode, Route, ShardBytes,
        Shards, contains_all, equal, grows, summarize, times_in_table,
    },
    filter::{Content, Core, lookups, planned, read_only},
    hash::{Uniform, Xxh3},
    kernel::{Dispatch, Hashes, PREFETCH_FROM},
    storage::{OutOfMemory, Snapshot, reserved},
    table::{
        Geometry, TableParams as _,
        list::{ClassKey, ListView},
    },
};

/// A read-only growing filter that is queried in place, inside a snapshot held by `D`: what a [`FilterView`](crate::FilterView) is
/// to a [`CuckooFilter`](crate::CuckooFilter). Opening it reads 24 bytes for each shard, and none of the tables (docs/GROWTH.md,
/// "Opening a view").
///
/// It gives the results of the [`ElasticFilter`](crate::ElasticFilter) that was written. An unverified view of corrupt bytes can
/// give wrong results, but never reads out of bounds, and panics only if `D::as_ref` returns fewer bytes than when the view was
/// made.
///
/// # Example
/// ```
/// use koel::{ElasticFilter, ElasticView};
/// let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build()?;
/// filter.insert_iter(0..100_000u64)?;
///
/// let seen = ElasticView::over(filter.to_bytes())?;
/// assert!(seen.contains(&7u64) && seen.len() == 100_000);
/// seen.verify()?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ElasticView<D, H = Xxh3> {
    pub(crate) core: SnapshotShards<D>,
    pub(crate) hasher: H,
}

/// The shards inside a snapshot held in `D`, and the facts that opening collects of them: the core of an [`ElasticView`].
#[derive(Clone)]
pub(crate) struct SnapshotShards<D> {
    pub storage: Snapshot<D>,
    pub index: ShardIndex,
}

/// The shards inside a snapshot, without its bytes.
#[derive(Clone)]
pub(crate) struct ShardIndex {
    params: ElasticParams,
    partitions: Vec<PartitionIndex>,
    dispatch: Dispatch,
    items: usize,
    /// The number of items in tables, and of different items in lists.
    in_tables: usize,
    /// The number of different items in lists.
    in_lists: u64,
    shards: usize,
    /// The number of buckets in all tables.
    buckets: u64,
    false_positive_rate: f64,
}

lookups! {
    impl [D: AsRef<[u8]>, H] ElasticView<D, H>, H;
    example "ElasticFilter::builder().false_positive_rate(0.001).build()?",
    open "let filter = koel::ElasticView::over(filter.to_bytes())?;"
}
read_only!([D: AsRef<[u8]>, H] ElasticView<D, H>);
planned!(impl [D: AsRef<[u8]>, H] ElasticView<D, H>, "ElasticView", ElasticParams);
grows!(impl [D: AsRef<[u8]>, H] ElasticView<D, H>);

equal! {
    [D: AsRef<[u8]>, E: AsRef<[u8]>] ElasticView<D, H>, ElasticView<E, H>;
    [D: AsRef<[u8]>] ElasticView<D, H>, ElasticFilter<H>;
    [D: AsRef<[u8]>] ElasticFilter<H>, ElasticView<D, H>;
}
#[cfg(feature = "std")]
equal! {
    [D: AsRef<[u8]>] ElasticView<D, H>, SharedFilter<H>;
    [D: AsRef<[u8]>] SharedFilter<H>, ElasticView<D, H>;
}
impl<D: AsRef<[u8]>, H: Eq> Eq for ElasticView<D, H> {}

/// The first generation, and the later ones.
#[derive(Clone)]
struct PartitionIndex {
    first: GenerationIndex,
    later: Vec<GenerationIndex>,
}

#[derive(Clone)]
struct GenerationIndex {
    plan: GenerationPlan,
    geometry: Geometry,
    /// Its places are the starts of tables in units of 8 bytes, or [`LISTS`] plus the index of a list.
    directory: Directory<u64>,
    /// The layout of the tables of each depth, from the least to the greatest; none without tables.
    layouts: Vec<DepthLayout>,
    /// The shards that are lists.
    lists: Vec<ListIndex>,
    copies: Option<ListIndex>,
}

/// The list of a shard, or of extra copies, in a snapshot.
#[derive(Clone, Copy)]
struct ListIndex {
    start: usize,
    len: usize,
    count_bytes: u8,
}

/// The place of the list with index 0: beyond those of all tables, which are their starts in units of 8 bytes.
const LISTS: u64 = 1 << 61;

impl ShardIndex {
    /// Reads the lists of shards, up to the end of the snapshot. Compiled once, not for each type of data.
    pub fn read(reading: Reading<'_, '_>) -> Result<Self, SnapshotError> {
        let params = reading.header.fields;
        let (mut items, mut in_tables, mut in_lists, mut shards, mut buckets, mut rates) = (0_u64, 0, 0_u64, 0, 0_u64, 0.0);
        let mut partitions = reserved(params.partitions())?;
        reading.sections(&mut |reading, listing| {
            let (mut first, mut later) = (None, reserved(listing.generations(&params).count().saturating_sub(1))?);
            let (mut offset, mut rate) = (reading.input.offset, 0.0);
            // Once this succeeds, all that is allocated is for bytes that exist.
            reading.skip(listing)?;
            let stored = listing.generations(&params).map(|listed| listed.stored()).sum::<u64>();
            for listed in listing.generations(&params) {
                let times = times_in_table(in_memory(listed.stored()), listing.items - stored);
                rate += listed.false_positive_rate(times);
                let generation = GenerationIndex::new(&listed, &mut offset)?;
                let (tables, lists) = (listed.shards() - generation.lists.len(), &generation.lists);
                in_lists += lists.iter().map(|list| wide(list.len)).sum::<u64>();
                buckets += generation.plan.whole.buckets() * wide(tables);
                shards += listed.shards();
                if first.is_none() { first = Some(generation) } else { later.push(generation) }
            }
            (items, in_tables) = (items.saturating_add(listing.items), in_tables + in_memory(stored));
            rates += rate.min(1.0);
            let Some(first) = first else { return Ok(()) };
            partitions.push(PartitionIndex { first, later });
            Ok(())
        })?;
        let false_positive_rate = rates / partitions.len() as f64;
        let dispatch = Dispatch::best();
        // With extra copies, a `usize` may be too small for the number of items.
        let items = in_memory(items);
        Ok(Self { params, partitions, dispatch, items, in_tables, in_lists, shards, buckets, false_positive_rate })
    }
}

impl ListedGeneration<'_> {
    /// Returns the number of items in tables, and of different items in lists.
    fn stored(&self) -> u64 {
        self.records.iter().filter(|record| record.is_shard()).map(|record| record.entries).sum()
    }

    fn shards(&self) -> usize {
        self.records.iter().filter(|record| record.is_shard()).count()
    }

    /// Returns the false-positive rate of the shards. `times` is [`times_in_table`].
    fn false_positive_rate(&self, times: f64) -> f64 {
        let plan = &self.plan;
        let shard_rate = |record: &Record| {
            let items = in_memory(record.entries);
            let rate = match record.body {
                Body::Table => plan.false_positive_rate(record.depth, items, times),
                Body::List { .. } => plan.list_false_positive_rate(record.depth, items),
                Body::Copies { .. } => 0.0,
            };
            plan.share_of_hashes(record.depth, record.prefix) * rate
        };
        self.records.iter().filter(|record| record.is_shard()).map(shard_rate).sum()
    }
}

impl GenerationIndex {
    /// Creates the index of a generation whose bodies begin at `offset`, and moves `offset` behind them.
    fn new(listed: &ListedGeneration<'_>, offset: &mut u64) -> Result<Self, OutOfMemory> {
        let ListedGeneration { plan, depth, records } = *listed;
        let has_tables = records.iter().any(|record| matches!(record.body, Body::Table));
        let depths = if has_tables { usize::from(plan.max_depth - plan.min_depth) + 1 } else { 0 };
        let mut layouts = reserved(depths)?;
        layouts.extend((plan.min_depth..).take(depths).map(|depth| DepthLayout::read_only(&plan, depth)));
        let mut lists = reserved(records.iter().filter(|record| matches!(record.body, Body::List { .. })).count())?;
        let (mut directory, mut copies) = (Directory::filled(depth, LISTS)?, None);
        for record in records {
            let list = |count_bytes| ListIndex { start: index(*offset), len: in_memory(record.entries), count_bytes };
            match record.body {
                Body::Table => directory.point(record.depth, record.prefix, *offset / 8),
                Body::List { count_bytes } => {
                    directory.point(record.depth, record.prefix, LISTS + wide(lists.len()));
                    lists.push(list(count_bytes));
                }
                Body::Copies { count_bytes } => copies = Some(list(count_bytes)),
            }
            *offset += record.padded_bytes(&plan);
        }
        Ok(Self { plan, geometry: Geometry::new(&plan.whole), directory, layouts, lists, copies })
    }

    fn size_in_bytes(&self) -> usize {
        let lists = self.lists.capacity() * size_of::<ListIndex>();
        self.directory.size_in_bytes() + self.layouts.capacity() * size_of::<DepthLayout>() + lists
    }
}

/// The shards of a generation in a snapshot, with its bytes as one operation sees them.
#[derive(Clone, Copy)]
struct InSnapshot<'a> {
    bytes: &'a [&'a [u8]; 1],
    dispatch: Dispatch,
    index: &'a GenerationIndex,
}

impl<'a> InSnapshot<'a> {
    fn list(self, index: Option<&ListIndex>, key_bytes: u8) -> ListView<'a> {
        let Some(&ListIndex { start, len, count_bytes }) = index else { return ListView::new(&[], 1, 0, 0) };
        let entry_bytes = usize::from(key_bytes) + usize::from(count_bytes);
        let list = self.bytes[0].get(start..).and_then(|bytes| bytes.get(..len * entry_bytes));
        ListView::new(list.unwrap_or_default(), key_bytes, count_bytes, len)
    }

    /// Returns the extra copies.
    fn copies(self) -> ListView<'a> {
        self.list(self.index.copies.as_ref(), self.index.plan.entry_key_bytes())
    }

    fn shard_at(self, place: u64, depth: u8) -> ShardBytes<'a> {
        let GenerationIndex { plan, layouts, lists, .. } = self.index;
        match place.checked_sub(LISTS) {
            None => ShardBytes::Table(&layouts[usize::from(depth - plan.min_depth)], &self.bytes[0][index(place * 8)..]),
            Some(list) => ShardBytes::List(self.list(lists.get(index(list)), plan.key_bytes())),
        }
    }
}

impl<'a> Shards<'a> for InSnapshot<'a> {
    type Place = u64;
    type Block = &'a [u8];

    #[inline]
    fn plan(self) -> &'a GenerationPlan {
        &self.index.plan
    }

    #[inline]
    fn geometry(self) -> &'a Geometry {
        &self.index.geometry
    }

    #[inline]
    fn dispatch(self) -> Dispatch {
        self.dispatch
    }

    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    fn route(self) -> Route<'a, u64, &'a [u8]> {
        Route::new(&self.index.directory, self.bytes, PlaceCode::ONE_BLOCK)
    }

    fn has_all_tables(self) -> bool {
        self.index.lists.is_empty()
    }

    fn shard_of(self, stream: u64) -> ShardBytes<'a> {
        let (place, depth) = self.index.directory.find_with_depth(stream).unwrap_or((u64::MAX, 0));
        self.shard_at(place, depth)
    }

    fn each_shard(self) -> impl Iterator<Item = (ShardBytes<'a>, u64)> {
        self.index.directory.places_bit_reversed().map(move |(place, depth, prefix)| (self.shard_at(place, depth), prefix))
    }

    fn entries(self) -> impl Iterator<Item = (ClassKey, u32)> {
        self.copies().iter()
    }

    fn copies_beside(self, key: Key, extra: u32) -> u32 {
        let (plan, copies) = (self.plan(), self.copies());
        if copies.len() == 0 { 0 } else { plan.extra_copies(plan.class_key(key), extra, |entry| copies.get(entry)) }
    }
}

impl PartitionIndex {
    fn generations(&self) -> impl Iterator<Item = &GenerationIndex> {
        iter::once(&self.first).chain(&self.later)
    }
}

/// What needs the bytes of the snapshot takes them as they are, so that it is compiled once, not for each type of data.
impl ShardIndex {
    /// Returns the partition of a hash.
    #[inline]
    fn partition(&self, hash: Uniform) -> &PartitionIndex {
        &self.partitions[self.params.shares.partition(hash)]
    }

    #[inline]
    fn shards_in<'a>(&self, bytes: &'a [&'a [u8]; 1], index: &'a GenerationIndex) -> InSnapshot<'a> {
        InSnapshot { bytes, dispatch: self.dispatch, index }
    }

    /// Calls `act` with each generation of a partition.
    fn each_generation(&self, bytes: &[u8], partition: &PartitionIndex, mut act: impl FnMut(InSnapshot<'_>)) {
        partition.generations().for_each(|generation| act(self.shards_in(&[bytes], generation)));
    }

    #[inline]
    fn contains(&self, bytes: &[u8], hash: Uniform) -> bool {
        let (bytes, partition) = ([bytes], self.partition(hash));
        self.shards_in(&bytes, &partition.first).contains(hash)
            || !partition.later.is_empty() && self.later_contains(&bytes, hash)
    }

    #[cold]
    fn later_contains(&self, bytes: &[&[u8]; 1], hash: Uniform) -> bool {
        let mut later = self.partition(hash).later.iter().map(|generation| self.shards_in(bytes, generation));
        later.any(|generation| generation.contains_exactly(generation.plan().key(hash)))
    }

    fn count(&self, bytes: &[u8], hash: Uniform) -> u32 {
        let mut count = 0_u32;
        let add = |generation: InSnapshot<'_>| count = count.saturating_add(generation.count_hash(hash));
        self.each_generation(bytes, self.partition(hash), add);
        count
    }

    /// Returns the number of copies, in the tables, of the item that a class key represents in a generation; 0 if it represents
    /// none.
    pub fn count_in_tables(&self, bytes: &[u8], partition: u64, generation: u8, class_key: ClassKey) -> u32 {
        // Bytes that changed since they were opened may have other partitions.
        let partition = self.partitions.get(index(partition));
        let generation = partition.and_then(|partition| partition.generations().nth(generation.into()));
        generation.map_or(0, |generation| self.shards_in(&[bytes], generation).count_in_tables(class_key))
    }

    /// Returns the memory outside the struct, in bytes.
    fn size_in_bytes(&self) -> usize {
        let partition_bytes = |partition: &PartitionIndex| {
            partition.later.capacity() * size_of::<GenerationIndex>()
                + partition.generations().map(GenerationIndex::size_in_bytes).sum::<usize>()
        };
        let partitions = self.partitions.capacity() * size_of::<PartitionIndex>();
        partitions + self.partitions.iter().map(partition_bytes).sum::<usize>()
    }
}

impl<D: AsRef<[u8]>> SnapshotShards<D> {
    pub fn params(&self) -> &ElasticParams {
        &self.index.params
    }

    pub fn distinct(&self) -> usize {
        let mut distinct = 0;
        let partitions = &self.index.partitions;
        partitions.iter().for_each(|partition| {
            self.index.each_generation(self.storage.all(), partition, |generation| distinct += generation.distinct());
        });
        distinct
    }

    /// Adds up all copies of all items in a partition.
    pub fn content(&self, partition: usize, salt: u64) -> Content {
        let (partition, mut content) = (&self.index.partitions[partition], Content::new(salt));
        self.index
            .each_generation(self.storage.all(), partition, |generation| generation.add_to(&mut content, &partition.first.plan));
        content
    }

    pub fn dispatch(&self) -> Dispatch {
        self.index.dispatch
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.index.dispatch = dispatch;
    }

    pub fn shards(&self) -> usize {
        self.index.shards
    }

    pub fn buckets(&self) -> u64 {
        self.index.buckets
    }

    /// Returns the greatest number of generations in a partition.
    pub fn generations(&self) -> usize {
        self.index.partitions.iter().map(|partition| 1 + partition.later.len()).max().unwrap_or(0)
    }

    /// Returns the length of the snapshot.
    pub fn table_bytes(&self) -> usize {
        self.storage.end
    }
}

impl<D: AsRef<[u8]>> Core for SnapshotShards<D> {
    #[inline]
    fn seed(&self) -> u64 {
        self.index.params.seed
    }

    #[inline]
    fn contains(&self, hash: Uniform) -> bool {
        self.index.contains(self.storage.all(), hash)
    }

    fn count(&self, hash: Uniform) -> u32 {
        self.index.count(self.storage.all(), hash)
    }

    fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(u64)) {
        let (bytes, all) = (&[self.storage.all()], &self.index.partitions);
        let partitions = Partitions {
            of: |hash| self.index.shards_in(bytes, &self.index.partition(hash).first),
            any: self.index.shards_in(bytes, &all[0].first),
            is_only: all.len() == 1,
        };
        let has_all_tables = all.iter().all(|partition| partition.first.lists.is_empty());
        let in_later: &dyn Fn(Uniform) -> bool = &|hash| self.index.later_contains(bytes, hash);
        let later = all.iter().any(|partition| !partition.later.is_empty()).then_some(in_later);
        contains_all(partitions, has_all_tables, later, self.table_bytes() >= PREFETCH_FROM, hashes, answer);
    }

    fn len(&self) -> usize {
        self.index.items
    }

    fn capacity(&self) -> usize {
        self.index.params.max_capacity()
    }

    fn slots(&self) -> u64 {
        u64::from(self.index.params.bucket_size()) * self.buckets() + self.index.in_lists
    }

    fn table_len(&self) -> usize {
        self.index.in_tables
    }

    fn false_positive_rate(&self) -> f64 {
        self.index.false_positive_rate
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        summarize(f, self.len(), self.shards(), bytes)
    }

    fn external_bytes(&self) -> usize {
        self.storage.end + self.index.size_in_bytes()
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn tables_may_begin_anywhere_in_4_pebibytes() {
        for start in [64, 1 << 32, (1 << 52) - 8] {
            assert_eq!(PlaceCode::ONE_BLOCK.split(start / 8), (0, index(start)));
        }
        // There is no second block, so a list is there.
        assert_eq!(PlaceCode::ONE_BLOCK.split(LISTS + 7), (1, 56));
    }
}
