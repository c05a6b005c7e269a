//! Views of growing filters: an index of the shards in a snapshot that the caller keeps, and lookups in place.

use alloc::vec::Vec;
use core::{fmt, iter, ops::Range};

use super::{ListedGeneration, Reading, Record, SnapshotError, Source, padded, padded_keys};
#[cfg(feature = "std")]
use crate::SharedFilter;
use crate::{
    bits::{in_memory, index, wide},
    elastic::{
        DepthLayout, Directory, ElasticFilter, ElasticParams, GenerationPlan, Key, LookupLayout, ShardParams, Shards,
        SmallListInSnapshot, contains_all, equal, grows, summarize, times_in_table,
    },
    filter::{Content, Core, lookups, planned, read_only},
    hash::{Hasher, HasherId, Uniform, Xxh3},
    kernel::{Dispatch, Hashes, PREFETCH_FROM, Tables},
    storage::{OutOfMemory, Snapshot, reserved},
    table::{
        AnySize, Geometry, TableParams as _,
        copies::{self, LONG_ENTRY_BYTES, LongEntries},
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
    /// The number of items in tables and key lists, without extra copies.
    in_tables: usize,
    /// The number of keys in all key lists.
    keys: u64,
    shards: usize,
    false_positive_rate: f64,
}

#[derive(Clone)]
struct PartitionIndex {
    first: GenerationIndex,
    later: Vec<GenerationIndex>,
    /// The range of the key list in the snapshot, empty if there are shards.
    keys: Range<usize>,
    /// The range of the entries of extra copies in the snapshot.
    copies: Range<usize>,
}

#[derive(Clone)]
struct GenerationIndex {
    plan: GenerationPlan,
    lookup: LookupLayout,
    directory: Directory<TableStart>,
    /// The layout of the shards of each depth, from the least depth to the greatest.
    layouts: Vec<DepthLayout>,
}

/// The start of a shard's table, in units of 8 bytes, and the index of its layout.
#[derive(Clone, Copy)]
struct TableStart(u64);

/// The number of bits of a layout's index in a [`TableStart`], enough for all depths.
const LAYOUT_BITS: u32 = 5;

impl TableStart {
    fn new(start: u64, layout: u8) -> Self {
        debug_assert!(start.is_multiple_of(8));
        Self((start / 8) << LAYOUT_BITS | u64::from(layout))
    }

    #[inline]
    fn start(self) -> usize {
        index(self.0 >> LAYOUT_BITS << 3)
    }

    #[inline]
    fn layout(self) -> usize {
        index(self.0 & ((1 << LAYOUT_BITS) - 1))
    }
}

impl<D: AsRef<[u8]>> SnapshotShards<D> {
    /// Opens the snapshot at the start of the data. Also returns its hasher.
    pub fn open<H: Hasher>(data: D, hasher: impl FnOnce(HasherId) -> Option<H>) -> Result<(Self, H), SnapshotError> {
        let mut reading = Reading::<ElasticParams>::start(Source::Slice(data.as_ref()))?;
        let (hasher, params) = (reading.header.hasher(hasher)?, reading.header.fields);
        let (mut items, mut in_tables, mut all_keys, mut shards, mut rates) = (0_u64, 0, 0_u64, 0, 0.0);
        let mut partitions = reserved(params.partitions())?;
        for number in 0..wide(params.partitions()) {
            let listing = reading.listing(number)?;
            let mut generations = reserved(listing.generations(&params).count())?;
            let (mut offset, mut rate) = (reading.offset, 0.0);
            // Once this succeeds, all that is allocated is for bytes that exist.
            reading.skip(listing.rest())?;
            for ListedGeneration { plan, depth, records } in listing.generations(&params) {
                reading.allow_directory(depth)?;
                let generation = GenerationIndex::new(&plan, depth, records, &mut offset)?;
                let table_len = records.iter().map(|record| index(record.items.into())).sum();
                rate += generation.false_positive_rate(&plan, records, times_in_table(table_len, listing.extra_copies));
                generations.push(generation);
                in_tables += table_len;
                shards += records.len();
            }
            let plan = params.generation(0);
            rate += plan.list_false_positive_rate(index(listing.keys));
            in_tables += index(listing.keys);
            (items, all_keys) = (items.saturating_add(listing.items()), all_keys + listing.keys);
            rates += rate.min(1.0);
            let first = if generations.is_empty() { GenerationIndex::unused(&plan) } else { generations.remove(0) };
            let keys = index(offset)..index(offset) + index(listing.keys) * plan.class_keys().bytes();
            let copies = index(offset + padded_keys(listing.keys, plan.class_keys().bytes()));
            let copies = copies..copies + index(listing.entries) * LONG_ENTRY_BYTES;
            partitions.push(PartitionIndex { first, later: generations, keys, copies });
        }
        let end = index(reading.finish()?);
        let false_positive_rate = rates / partitions.len() as f64;
        let dispatch = Dispatch::best();
        // With extra copies, a `usize` may be too small for the number of items.
        let items = in_memory(items);
        let index = Index { partitions, dispatch, items, in_tables, keys: all_keys, shards, false_positive_rate };
        Ok((Self { snapshot: Snapshot::new(data, end), params, index }, hasher))
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
    /// Creates the index of a generation without shards.
    fn unused(plan: &GenerationPlan) -> Self {
        let directory = Directory::empty(plan.min_depth);
        Self { plan: *plan, lookup: LookupLayout::new(&plan.whole), directory, layouts: Vec::new() }
    }

    /// Creates the index of a generation whose tables begin at `offset`, and moves `offset` behind them.
    fn new(plan: &GenerationPlan, depth: u8, records: &[Record], offset: &mut u64) -> Result<Self, OutOfMemory> {
        let mut layouts = reserved(usize::from(plan.max_depth - plan.min_depth) + 1)?;
        layouts.extend((plan.min_depth..=plan.max_depth).map(|depth| DepthLayout::new(plan.shard(depth))));
        let mut directory = Directory::filled(depth, TableStart::new(0, 0))?;
        for record in records {
            let table = TableStart::new(*offset, record.depth - plan.min_depth);
            directory.point(record.depth, record.prefix, table);
            *offset += wide(padded(plan.shard(record.depth).table_bytes()));
        }
        Ok(Self { plan: *plan, lookup: LookupLayout::new(&plan.whole), directory, layouts })
    }

    /// Returns the bytes from the start of the stream's table on, or `None` if there are no shards.
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    fn table<'a>(&self, bytes: &'a [u8], stream: u64) -> Option<&'a [u8]> {
        self.directory.find(stream).map(|table| &bytes[table.start()..])
    }

    #[inline]
    fn contains(&self, dispatch: Dispatch, bytes: &[u8], key: Key) -> bool {
        let table = self.table(bytes, key.stream);
        table.is_some_and(|table| dispatch.read(&self.lookup.geometry, table, self.lookup.locate(key)))
    }

    /// Returns the number of copies of an item in the tables.
    fn count(&self, dispatch: Dispatch, bytes: &[u8], key: Key) -> u32 {
        let table = self.directory.find(key.stream);
        table.map_or(0, |table| self.layouts[table.layout()].count(dispatch, &bytes[table.start()..], key))
    }

    /// Returns the number of distinct items in the tables.
    fn distinct(&self, dispatch: Dispatch, bytes: &[u8]) -> usize {
        let depth_of = |table: TableStart| self.layouts[table.layout()].params.depth;
        // Nothing uses the number of items of these shards, here 0.
        let shard = |table: TableStart| self.layouts[table.layout()].shard(dispatch, &bytes[table.start()..], 0);
        self.directory.places_bit_reversed(depth_of).map(|(table, _)| shard(table).distinct()).sum()
    }

    /// Adds all copies in the tables to the content of a partition whose first generation is `whole`, undivided.
    fn add_to(&self, content: &mut Content, whole: &ShardParams, dispatch: Dispatch, bytes: &[u8]) {
        let layout = |table: TableStart| &self.layouts[table.layout()];
        for (table, prefix) in self.directory.places_bit_reversed(|table| layout(table).params.depth) {
            layout(table).shard(dispatch, &bytes[table.start()..], 0).add_to(content, whole, prefix);
        }
    }

    /// Returns the false-positive rate of these shards. `times` is [`times_in_table`].
    fn false_positive_rate(&self, plan: &GenerationPlan, records: &[Record], times: f64) -> f64 {
        let shard_rate = |record: &Record| {
            let layout = &self.layouts[usize::from(record.depth - plan.min_depth)];
            plan.share(record.depth, record.prefix) * layout.false_positive_rate(index(record.items.into()), times)
        };
        records.iter().map(shard_rate).sum()
    }

    fn size_in_bytes(&self) -> usize {
        self.directory.size_in_bytes() + self.layouts.capacity() * size_of::<DepthLayout>()
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

    /// Returns true if the key list of a partition without shards has the item.
    #[cold]
    fn is_in_key_list(self, partition: &PartitionIndex, key: Key) -> bool {
        let keys = self.bytes.get(partition.keys.clone()).unwrap_or_default();
        SmallListInSnapshot::new(keys, partition.first.plan.class_keys().bytes()).contains(partition.first.plan.class_key(key))
    }

    /// Returns the number of copies of an item in the tables of a generation, or in the key list of a partition without shards.
    fn occurrences(self, partition: &PartitionIndex, generation: &GenerationIndex, key: Key) -> u32 {
        if generation.directory.is_empty() {
            return self.is_in_key_list(partition, key).into();
        }
        generation.count(self.index.dispatch, self.bytes, key)
    }

    #[inline]
    fn key(self, hash: Uniform) -> Key {
        Key::new(&self.address(), self.stream(hash), hash)
    }
}

impl<'a> Tables<'a> for InSnapshot<'a> {
    #[inline]
    fn address(self) -> AnySize {
        self.params.address()
    }

    fn geometry(self) -> &'a Geometry {
        &self.index.partitions[0].first.lookup.geometry
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
        !self.index.partitions.iter().any(|partition| partition.first.directory.is_empty())
    }

    fn has_later(self) -> bool {
        self.index.partitions.iter().any(|partition| !partition.later.is_empty())
    }

    #[cold]
    fn later_contains(self, hash: Uniform) -> bool {
        let key = self.key(hash);
        self.partition(hash).later.iter().any(|generation| generation.contains(self.index.dispatch, self.bytes, key))
    }

    #[inline]
    fn contains(self, hash: Uniform) -> bool {
        let (partition, key) = (self.partition(hash), self.key(hash));
        if partition.first.directory.is_empty() {
            return self.is_in_key_list(partition, key);
        }
        partition.first.contains(self.index.dispatch, self.bytes, key) || !partition.later.is_empty() && self.later_contains(hash)
    }

    fn count(self, hash: Uniform) -> u32 {
        let (partition, key) = (self.partition(hash), self.key(hash));
        let copies = LongEntries::new(self.bytes.get(partition.copies.clone()).unwrap_or_default());
        let count = |generation: &GenerationIndex| {
            match self.occurrences(partition, generation, key) {
                // An item that is not in a table has no extra copies.
                0 => 0,
                in_table if partition.copies.is_empty() => in_table,
                in_table => in_table.saturating_add(copies.get(generation.plan.number, generation.plan.class_key(key))),
            }
        };
        partition.generations().map(count).fold(0, u32::saturating_add)
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

    /// Returns the number of copies, in the tables or the key list, of the item that a key represents in a generation; 0 if it
    /// represents none.
    pub fn count_class_in_table(&self, partition: u64, generation: u8, listed: copies::ClassKey) -> u32 {
        let partition = &self.index.partitions[index(partition)];
        let found = partition.generations().nth(generation.into());
        let item = found.and_then(|index| Some((index, index.plan.item_of(listed)?)));
        item.map_or(0, |(index, key)| self.all().occurrences(partition, index, key))
    }

    pub fn params(&self) -> &ElasticParams {
        &self.params
    }

    pub fn distinct(&self) -> usize {
        let all = self.all();
        let in_tables = |generation: &GenerationIndex| generation.distinct(all.index.dispatch, all.bytes);
        let in_partition = |partition: &PartitionIndex| {
            let keys = partition.keys.len() / partition.first.plan.class_keys().bytes();
            keys + partition.generations().map(in_tables).sum::<usize>()
        };
        self.index.partitions.iter().map(in_partition).sum()
    }

    /// Adds up all copies of all items in a partition.
    pub fn content(&self, partition: usize, salt: u64) -> Content {
        let (all, partition, mut content) = (self.all(), &self.index.partitions[partition], Content::new(salt));
        let first = &partition.first.plan;
        let bytes_of = |range: &Range<usize>| all.bytes.get(range.clone()).unwrap_or_default();
        let in_list = SmallListInSnapshot::new(bytes_of(&partition.keys), first.class_keys().bytes()).keys();
        let extra = LongEntries::new(bytes_of(&partition.copies)).iter();
        for (generation, key, copies) in in_list.map(|key| (0, key, 1)).chain(extra) {
            let generation = partition.generations().nth(generation.into());
            if let Some(item) = generation.and_then(|generation| generation.plan.item_of(key)) {
                item.add_to(&mut content, &first.whole, copies);
            }
        }
        for generation in partition.generations() {
            generation.add_to(&mut content, &first.whole, all.index.dispatch, all.bytes);
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
        self.params.slots_of(self.shards()) + self.index.keys
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
            let place = TableStart::new(start, layout);
            assert_eq!((place.start() as u64, place.layout()), (start, layout.into()));
        }
    }
}
