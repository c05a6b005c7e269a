//! Views of growing filters: an index of the shards in a snapshot that the caller keeps, and lookups in place.

use alloc::vec::Vec;
use core::{fmt, iter};

use super::{Body, Input, ListedGeneration, Reading, Record, SnapshotError, Source};
#[cfg(feature = "std")]
use crate::SharedFilter;
use crate::{
    bits::{in_memory, index, wide},
    elastic::{
        DepthLayout, Directory, ElasticFilter, ElasticParams, GenerationPlan, Key, MAX_DEPTH, Shards, contains_all, equal, grows,
        summarize, times_in_table,
    },
    filter::{Content, Core, lookups, planned, read_only},
    hash::{Hasher, HasherId, Uniform, Xxh3},
    kernel::{Dispatch, Hashes, PREFETCH_FROM, Tables},
    storage::{OutOfMemory, Snapshot, reserved},
    table::{AnySize, Geometry, TableParams as _, copies::ClassKey, list::ListView},
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

/// The shards inside a snapshot held in `D`: the core of an [`ElasticView`].
#[derive(Clone)]
pub(crate) struct SnapshotShards<D> {
    snapshot: Snapshot<D>,
    params: ElasticParams,
    index: Index,
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

/// The facts that opening collects from a snapshot.
#[derive(Clone)]
struct Index {
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
    directory: Directory<ShardStart>,
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
    depth: u8,
}

/// The start of a shard's table in units of 8 bytes, and the index of its layout; or the index of its list, and [`LIST`].
#[derive(Clone, Copy)]
struct ShardStart(u64);

/// The number of bits of a layout's index in a [`ShardStart`], enough for all depths and for [`LIST`].
const LAYOUT_BITS: u32 = 5;

/// Marks a list, in place of a layout's index.
const LIST: u64 = (1 << LAYOUT_BITS) - 1;
const _: () = assert!((MAX_DEPTH as u64) < LIST);

impl ShardStart {
    fn of_table(start: u64, layout: u8) -> Self {
        debug_assert!(start.is_multiple_of(8));
        Self((start / 8) << LAYOUT_BITS | u64::from(layout))
    }

    fn of_list(index: usize) -> Self {
        Self(wide(index) << LAYOUT_BITS | LIST)
    }

    /// Returns the start of the table, or `None` if the shard is a list.
    #[inline]
    fn table(self) -> Option<usize> {
        if self.0 & LIST == LIST { None } else { Some(index(self.0 >> LAYOUT_BITS << 3)) }
    }

    #[inline]
    fn layout(self) -> usize {
        index(self.0 & LIST)
    }

    fn list(self) -> usize {
        index(self.0 >> LAYOUT_BITS)
    }
}

impl<D: AsRef<[u8]>> SnapshotShards<D> {
    /// Opens the snapshot at the start of the data. Also returns its hasher.
    pub fn open<H: Hasher>(data: D, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<(Self, H), SnapshotError> {
        let mut input = Input::new(Source::Slice(data.as_ref()));
        let reading = Reading::start(&mut input)?;
        let (hasher, params) = (reading.header.hasher(hasher)?, reading.header.fields);
        let (mut items, mut in_tables, mut in_lists, mut shards, mut buckets, mut rates) = (0_u64, 0, 0_u64, 0, 0_u64, 0.0);
        let mut partitions = reserved(params.partitions())?;
        reading.sections(|reading, listing| {
            let mut generations = reserved(listing.generations(&params).count())?;
            let (mut offset, mut rate) = (reading.offset(), 0.0);
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
                generations.push(generation);
            }
            (items, in_tables) = (items.saturating_add(listing.items), in_tables + in_memory(stored));
            rates += rate.min(1.0);
            let mut generations = generations.into_iter();
            let Some(first) = generations.next() else { return Ok(()) };
            let mut later = reserved(generations.len())?;
            later.extend(generations);
            partitions.push(PartitionIndex { first, later });
            Ok(())
        })?;
        let end = index(input.offset);
        let false_positive_rate = rates / partitions.len() as f64;
        let dispatch = Dispatch::best();
        // With extra copies, a `usize` may be too small for the number of items.
        let items = in_memory(items);
        let index = Index { partitions, dispatch, items, in_tables, in_lists, shards, buckets, false_positive_rate };
        Ok((Self { snapshot: Snapshot::new(data, end), params, index }, hasher))
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

impl<D> SnapshotShards<D> {
    pub fn snapshot(&self) -> &Snapshot<D> {
        &self.snapshot
    }

    pub fn into_snapshot(self) -> Snapshot<D> {
        self.snapshot
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
        let (mut directory, mut copies) = (Directory::filled(depth, ShardStart::of_list(0))?, None);
        for record in records {
            let list = |count_bytes| ListIndex {
                start: index(*offset),
                len: in_memory(record.entries),
                count_bytes,
                depth: record.depth,
            };
            match record.body {
                Body::Table => {
                    let table = ShardStart::of_table(*offset, record.depth - plan.min_depth);
                    directory.point(record.depth, record.prefix, table);
                }
                Body::List { count_bytes } => {
                    lists.push(list(count_bytes));
                    directory.point(record.depth, record.prefix, ShardStart::of_list(lists.len() - 1));
                }
                Body::Copies { count_bytes } => copies = Some(list(count_bytes)),
            }
            *offset += record.padded_bytes(&plan);
        }
        Ok(Self { plan, geometry: Geometry::new(&plan.whole), directory, layouts, lists, copies })
    }

    /// Returns the bytes from the start of the stream's table on, or `None` if its shard is a list.
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    fn table<'a>(&self, bytes: &'a [u8], stream: u64) -> Option<&'a [u8]> {
        self.directory.find(stream).and_then(ShardStart::table).map(|start| &bytes[start..])
    }

    /// Returns the list of a shard, or an empty one if the shard has a table.
    fn list<'a>(&self, bytes: &'a [u8], shard: ShardStart) -> ListView<'a> {
        let list = if shard.table().is_some() { None } else { self.lists.get(shard.list()) };
        list.map_or(ListView::new(&[], 1, 0, 0), |list| list.view(bytes, self.plan.key_bytes()))
    }

    /// Returns the extra copies.
    fn copies<'a>(&self, bytes: &'a [u8]) -> ListView<'a> {
        self.copies.map_or(ListView::new(&[], 1, 0, 0), |list| list.view(bytes, self.plan.entry_key_bytes()))
    }

    #[inline]
    fn contains(&self, dispatch: Dispatch, bytes: &[u8], key: Key) -> bool {
        match self.table(bytes, key.stream) {
            Some(table) if self.plan.number == 0 => dispatch.read(&self.geometry, table, key.locate(0)),
            _ => self.stored(dispatch, bytes, key) > 0,
        }
    }

    /// Returns the number of copies of an item in its table or its list.
    fn stored(&self, dispatch: Dispatch, bytes: &[u8], key: Key) -> u32 {
        let Some(shard) = self.directory.find(key.stream) else { return 0 };
        match shard.table() {
            Some(start) => self.layouts[shard.layout()].count(dispatch, &bytes[start..], key),
            None => self.list(bytes, shard).get(self.plan.class_key(key)),
        }
    }

    /// Returns the number of copies of an item with these extra bits.
    fn count(&self, dispatch: Dispatch, bytes: &[u8], key: Key) -> u32 {
        let (stored, copies) = (self.stored(dispatch, bytes, key), self.copies(bytes));
        // Only items in a table have extra copies.
        if stored == 0 || copies.len() == 0 {
            return stored;
        }
        let plan = &self.plan;
        stored.saturating_add(plan.extra_copies(plan.class_key(key), plan.extra(key), |entry| copies.get(entry)))
    }

    fn depth_of(&self, shard: ShardStart) -> u8 {
        let list = || self.lists.get(shard.list()).map_or(self.plan.min_depth, |list| list.depth);
        if shard.table().is_some() { self.layouts[shard.layout()].params.depth } else { list() }
    }

    /// Returns the shards and their prefixes.
    fn shards(&self) -> impl Iterator<Item = (ShardStart, u64)> {
        self.directory.places_bit_reversed(|shard| self.depth_of(shard))
    }

    /// Returns the number of distinct items.
    fn distinct(&self, dispatch: Dispatch, bytes: &[u8]) -> usize {
        let in_shard = |(shard, _): (ShardStart, u64)| match shard.table() {
            // Nothing uses the number of items of this shard, here 0.
            Some(start) => self.layouts[shard.layout()].shard(dispatch, &bytes[start..], 0).distinct(),
            None => self.list(bytes, shard).len(),
        };
        let entries = self.copies(bytes).iter().map(|(entry, _)| entry);
        self.shards().map(in_shard).sum::<usize>() + self.plan.distinct_by_extra_bits(entries)
    }

    /// Adds all copies of all items to the content of a partition with this first generation.
    fn add_to(&self, content: &mut Content, first: &GenerationPlan, dispatch: Dispatch, bytes: &[u8]) {
        let mut add = |class_key, copies| {
            if let Some(key) = self.plan.item_of(class_key) {
                self.plan.earlier(key, first).add_to(content, first.whole, copies);
            }
        };
        self.copies(bytes).iter().for_each(|(entry, copies)| add(self.plan.entry_parts(entry).0, copies));
        for (shard, _) in self.shards() {
            self.list(bytes, shard).iter().for_each(|(class_key, copies)| add(class_key, copies));
        }
        for (shard, prefix) in self.shards() {
            if let Some(start) = shard.table() {
                self.layouts[shard.layout()].shard(dispatch, &bytes[start..], 0).add_to(content, &self.plan, first, prefix);
            }
        }
    }

    fn size_in_bytes(&self) -> usize {
        let lists = self.lists.capacity() * size_of::<ListIndex>();
        self.directory.size_in_bytes() + self.layouts.capacity() * size_of::<DepthLayout>() + lists
    }
}

impl ListIndex {
    fn view(self, bytes: &[u8], key_bytes: u8) -> ListView<'_> {
        let entry_bytes = usize::from(key_bytes) + usize::from(self.count_bytes);
        let list = bytes.get(self.start..).and_then(|bytes| bytes.get(..self.len * entry_bytes));
        ListView::new(list.unwrap_or_default(), key_bytes, self.count_bytes, self.len)
    }
}

/// The shards of a snapshot, with its bytes as one operation sees them.
#[derive(Clone, Copy)]
struct InSnapshot<'a> {
    bytes: &'a [u8],
    index: &'a Index,
    params: &'a ElasticParams,
}

impl<'a> InSnapshot<'a> {
    #[inline]
    fn partition(self, hash: Uniform) -> &'a PartitionIndex {
        &self.index.partitions[self.params.shares().partition(hash)]
    }
}

impl<'a> Tables<'a> for InSnapshot<'a> {
    #[inline]
    fn address(self) -> AnySize {
        self.params.address()
    }

    fn geometry(self) -> &'a Geometry {
        &self.index.partitions[0].first.geometry
    }

    #[inline]
    fn stream(self, hash: Uniform) -> u64 {
        self.params.shares().stream(hash)
    }

    #[cfg(x86_kernels)]
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    fn each_table(self, hashes: &[u64], streams: &[u64], places: &mut [*const u8], place: impl Fn(&'a [u8]) -> *const u8) {
        for (written, (&hash, &stream)) in places.iter_mut().zip(hashes.iter().zip(streams)) {
            *written = place(self.table_of_all(Uniform(hash), stream));
        }
    }
}

impl<'a> Shards<'a> for InSnapshot<'a> {
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    fn table(self, hash: Uniform, stream: u64) -> Option<&'a [u8]> {
        self.partition(hash).first.table(self.bytes, stream)
    }

    fn has_all_tables(self) -> bool {
        self.index.partitions.iter().all(|partition| partition.first.lists.is_empty())
    }

    fn has_later(self) -> bool {
        self.index.partitions.iter().any(|partition| !partition.later.is_empty())
    }

    #[cold]
    fn later_contains(self, hash: Uniform) -> bool {
        let later = &self.partition(hash).later;
        later.iter().any(|generation| generation.contains(self.index.dispatch, self.bytes, generation.plan.key(hash)))
    }

    #[inline]
    fn contains(self, hash: Uniform) -> bool {
        let partition = self.partition(hash);
        let key = Key::new(&self.address(), self.stream(hash), hash);
        partition.first.contains(self.index.dispatch, self.bytes, key) || !partition.later.is_empty() && self.later_contains(hash)
    }

    fn count(self, hash: Uniform) -> u32 {
        let generations = self.partition(hash).generations();
        let count = |generation: &GenerationIndex| generation.count(self.index.dispatch, self.bytes, generation.plan.key(hash));
        generations.map(count).fold(0, u32::saturating_add)
    }
}

impl PartitionIndex {
    fn generations(&self) -> impl Iterator<Item = &GenerationIndex> {
        iter::once(&self.first).chain(&self.later)
    }
}

impl<D: AsRef<[u8]>> SnapshotShards<D> {
    #[inline]
    fn all(&self) -> InSnapshot<'_> {
        InSnapshot { bytes: self.snapshot.all(), index: &self.index, params: &self.params }
    }

    /// Returns the number of copies, in the tables, of the item that a class key represents in a generation; 0 if it represents
    /// none.
    pub fn count_in_tables(&self, partition: u64, generation: u8, class_key: ClassKey) -> u32 {
        let partition = &self.index.partitions[index(partition)];
        let Some(generation) = partition.generations().nth(generation.into()) else { return 0 };
        let key = generation.plan.item_of(class_key);
        let key = key.filter(|key| generation.table(self.snapshot.all(), key.stream).is_some());
        key.map_or(0, |key| generation.stored(self.index.dispatch, self.snapshot.all(), key))
    }

    pub fn params(&self) -> &ElasticParams {
        &self.params
    }

    pub fn distinct(&self) -> usize {
        let generations = self.index.partitions.iter().flat_map(PartitionIndex::generations);
        generations.map(|generation| generation.distinct(self.index.dispatch, self.snapshot.all())).sum()
    }

    /// Adds up all copies of all items in a partition.
    pub fn content(&self, partition: usize, salt: u64) -> Content {
        let (partition, mut content) = (&self.index.partitions[partition], Content::new(salt));
        for generation in partition.generations() {
            generation.add_to(&mut content, &partition.first.plan, self.index.dispatch, self.snapshot.all());
        }
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
        self.snapshot.end()
    }
}

impl<D: AsRef<[u8]>> Core for SnapshotShards<D> {
    #[inline]
    fn seed(&self) -> u64 {
        self.params.seed
    }

    #[inline]
    fn contains(&self, hash: Uniform) -> bool {
        self.all().contains(hash)
    }

    fn count(&self, hash: Uniform) -> u32 {
        self.all().count(hash)
    }

    fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(u64)) {
        contains_all(self.dispatch(), self.all(), self.table_bytes() >= PREFETCH_FROM, hashes, answer);
    }

    fn len(&self) -> usize {
        self.index.items
    }

    fn capacity(&self) -> usize {
        self.params.max_capacity()
    }

    fn slots(&self) -> u64 {
        u64::from(self.params.bucket_size()) * self.buckets() + self.index.in_lists
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
        let partition_bytes = |partition: &PartitionIndex| {
            partition.later.capacity() * size_of::<GenerationIndex>()
                + partition.generations().map(GenerationIndex::size_in_bytes).sum::<usize>()
        };
        let partitions = self.index.partitions.capacity() * size_of::<PartitionIndex>();
        self.snapshot.end() + partitions + self.index.partitions.iter().map(partition_bytes).sum::<usize>()
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn tables_may_begin_anywhere_in_4_pebibytes() {
        for (start, layout) in [(64, 0), (1 << 32, 5), ((1 << 52) - 8, 27)] {
            let place = ShardStart::of_table(start, layout);
            assert_eq!((place.table(), place.layout()), (Some(start as usize), layout.into()));
        }
        assert_eq!((ShardStart::of_list(7).table(), ShardStart::of_list(7).list()), (None, 7));
    }
}
