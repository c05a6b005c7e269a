//! A generation: shards, and the directory that maps the first bits of a stream to them. Full shards split, underfull shards are
//! merged, and the directory is updated.
//!
//! ```text
//! stream 0110…                       directory, depth 2     pool
//!    │ its first 2 bits              00 ──▶ place ─────────▶ table of depth 2
//!    └──────────────────────────────▶01 ──▶ place ─────────▶ table of depth 2
//!                                    10 ──▶ place ──┬──────▶ table of depth 1
//!                                    11 ──▶ place ──┘
//! ```
//!
//! A generation that would start with few shards starts with an [item list](SmallList) instead, without shards and directory.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod copies;
mod split;

use split::FullAt;

use super::{
    directory::Directory,
    plan::GenerationPlan,
    pool::{Place, Pool, ShardRecord, empty_charged_bytes, times_in_table},
    shard::{Key, LookupLayout, Shard, ShardMut},
    small_list::SmallList,
};
use crate::{
    bits::{beyond, in_memory, index, wide},
    filter::InsertError,
    kernel::Dispatch,
    storage::OutOfMemory,
    table::{
        Deep, Form as _, Geometry, Instructions, TableParams as _,
        copies::{ClassKey, ExtraCopies},
    },
};

/// Removals replace the shards by an item list again when the items fill 1/4 of its capacity.
const LIST_AGAIN_DIVISOR: usize = 4;

/// A generation of a partition.
#[derive(Clone)]
pub(crate) struct Generation {
    plan: GenerationPlan,
    lookup: LookupLayout,
    directory: Directory<Place>,
    pool: Pool,
    /// The item counts from which a shard is full.
    full_at: FullAt,
    /// The item counts from which [`insert`](Self::insert) leaves a shard to the slow path: `full_at`, or [`FullAt::ALWAYS`] if
    /// insertions [look up the item first](Self::looks_up_first). So the fast path makes one comparison for both reasons.
    slow_from: FullAt,
    /// A removal that leaves at most this many items in a shard merges it with its sibling if the two have at most twice as many.
    merge_at: u32,
    /// A removal that leaves at most this many items replaces all shards by an item list.
    shrink_to_list_at: u32,
    /// The number of items in the tables or in the item list, without extra copies.
    len: usize,
    /// The items, while the generation has no shards.
    list: SmallList,
    /// The extra copies, which are counted beside the tables or the item list.
    copies: ExtraCopies,
    dispatch: Dispatch,
}

/// An item that is about to be inserted as part of a batch, and the place of its shard: [`Place::NONE`] if there are no shards.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    pub key: Key,
    pub place: Place,
}

impl Pending {
    /// A placeholder that represents no item.
    pub const NONE: Self = Self { key: Key::NONE, place: Place::NONE };
}

/// The path from streams to tables. It is a copy that a loop over streams keeps in registers.
#[cfg(x86_kernels)]
#[derive(Clone, Copy)]
pub(crate) struct Routes<'a> {
    places: &'a [Place],
    first_bits: super::stream::Window,
    blocks: super::pool::Blocks<'a>,
}

#[cfg(x86_kernels)]
impl<'a> Routes<'a> {
    /// Returns the table of a stream with all that follows it in its block, or `None` if the generation has no shards.
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    pub fn table(self, stream: u64) -> Option<&'a [u8]> {
        self.blocks.get(*self.places.get(index(self.first_bits.extract(stream)))?)
    }
}

impl Generation {
    /// Returns an empty generation without shards.
    pub fn without_shards(plan: GenerationPlan, dispatch: Dispatch) -> Self {
        let full_at = FullAt::of(&plan);
        Self {
            lookup: LookupLayout::new(&plan.whole),
            directory: Directory::empty(plan.min_depth),
            pool: Pool::new(&plan),
            full_at,
            slow_from: full_at,
            merge_at: split::merge_at(&plan),
            shrink_to_list_at: if plan.begins_as_list() {
                split::shard_items(plan.list_capacity() / LIST_AGAIN_DIVISOR)
            } else {
                0
            },
            len: 0,
            list: SmallList::new(plan.class_keys().bits()),
            copies: ExtraCopies::NONE,
            plan,
            dispatch,
        }
    }

    /// Returns a generation with empty shards of the least depth.
    pub fn new(plan: GenerationPlan, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let (mut generation, depth) = (Self::without_shards(plan, dispatch), plan.min_depth);
        let Self { directory, pool, .. } = &mut generation;
        *directory = Directory::filled(depth, Place::NONE)?;
        pool.add_levels(&plan, depth)?;
        pool.reserve(depth, 1 << depth)?;
        for prefix in 0..1 << depth {
            directory.point(depth, prefix, pool.push(ShardRecord::new(depth, prefix, 0)));
        }
        Ok(generation)
    }

    /// Returns a generation that is prepared for shards of these depths: [`push`](Self::push) adds each of them, and
    /// [`make_directory`](Self::make_directory) completes it.
    pub fn with_levels(
        plan: GenerationPlan,
        depths: &(impl Iterator<Item = u8> + Clone),
        dispatch: Dispatch,
    ) -> Result<Self, OutOfMemory> {
        let mut generation = Self::without_shards(plan, dispatch);
        let deepest = depths.clone().max().unwrap_or(plan.min_depth);
        generation.pool.add_levels(&plan, deepest)?;
        for depth in plan.min_depth..=deepest {
            generation.pool.shorten_blocks(depth, depths.clone().filter(|&shard_depth| shard_depth == depth).count());
        }
        Ok(generation)
    }

    /// Adds a shard with this table, which is followed by padding. The directory does not lead to it yet.
    pub fn push(&mut self, depth: u8, prefix: u32, items: u32, table: &[u8]) -> Result<(), OutOfMemory> {
        self.pool.reserve(depth, 1)?;
        let place = self.pool.push(ShardRecord::new(depth, prefix, items));
        let bytes = self.plan.shard(depth).table_bytes();
        self.pool.table_mut(place)[..bytes].copy_from_slice(&table[..bytes]);
        self.len += index(items.into());
        Ok(())
    }

    /// Builds the directory of all shards.
    pub fn make_directory(&mut self) -> Result<(), OutOfMemory> {
        let deepest = self.pool.greatest_depth();
        self.directory = Directory::filled(deepest, Place::NONE)?;
        for depth in self.plan.min_depth..=deepest {
            for table in 0..self.pool.level(depth).len() {
                self.point_to(self.pool.place(depth, table));
            }
        }
        Ok(())
    }

    /// Returns true if the generation has an item list instead of shards.
    #[inline]
    pub fn is_list(&self) -> bool {
        self.directory.is_empty()
    }

    /// Returns the place of a stream's shard, or `None` if the generation has no shards.
    #[inline]
    fn find(&self, stream: u64) -> Option<Place> {
        self.directory.find(stream)
    }

    /// Returns the path from streams to tables.
    #[cfg(x86_kernels)]
    #[allow(clippy::inline_always, reason = "the compiler keeps in registers what a loop needs of it")]
    #[inline(always)]
    pub fn routes(&self) -> Routes<'_> {
        let (places, first_bits) = self.directory.parts();
        Routes { places, first_bits, blocks: self.pool.blocks() }
    }

    /// Returns the layout of all tables, without their columns.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.lookup.geometry
    }

    /// Returns the table of a stream, or `None` if the items are in a list. Then use [`list_contains`](Self::list_contains).
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    pub fn table(&self, stream: u64) -> Option<&[u8]> {
        self.find(stream).and_then(|place| self.pool.blocks().get(place))
    }

    /// Returns true if the item list contains an item.
    ///
    /// # Panics
    /// Panics if the generation has shards: then each stream leads to a table.
    #[cold]
    #[inline(never)]
    pub fn list_contains(&self, key: Key) -> bool {
        if self.is_list() { self.list.contains(self.class_key(key)) } else { beyond() }
    }

    /// Returns true if an item is found by the bits that lookups compare.
    #[inline]
    pub fn contains(&self, key: Key) -> bool {
        let Some(table) = self.table(key.stream) else { return self.list_contains(key) };
        self.dispatch.read(&self.lookup.geometry, table, self.lookup.locate(key))
    }

    /// Prefetches the buckets of an item that is about to be inserted.
    pub fn prefetch(&self, key: Key) {
        if let Some(place) = self.find(key.stream) {
            let geometry = &self.pool.level(self.depth_of(place)).layout.geometry;
            self.dispatch.read_deep(geometry, self.pool.table(place), key.locate(0).prefetch());
        }
    }

    /// Returns the number of an item's copies, extra copies included.
    pub fn count(&self, key: Key) -> u32 {
        match self.count_in_table(key) {
            // Only items in a table have extra copies.
            0 => 0,
            in_table => in_table.saturating_add(self.extra_copies(key)),
        }
    }

    /// Returns the number of an item's copies in the tables or in the item list.
    pub fn count_in_table(&self, key: Key) -> u32 {
        self.find(key.stream).map_or_else(|| self.list.contains(self.class_key(key)).into(), |place| self.count_in(place, key))
    }

    fn count_in(&self, place: Place, key: Key) -> u32 {
        self.pool.level(self.depth_of(place)).layout.count(self.dispatch, self.pool.table(place), key)
    }

    /// Inserts an item. If there are no shards, if its shard is full or has no slot, or if insertions look up the item first,
    /// changes nothing and returns the place for [`insert_growing`](Self::insert_growing).
    #[inline]
    pub fn insert(&mut self, key: Key) -> Result<(), Place> {
        let place = self.find(key.stream).ok_or(Place::NONE)?;
        if self.insert_below(place, key, self.slow_from) { Ok(()) } else { Err(place) }
    }

    /// Finds the shard into which to insert an item.
    #[inline(always)]
    pub fn pending(&self, key: Key) -> Pending {
        Pending { key, place: self.find(key.stream).unwrap_or(Place::NONE) }
    }

    /// Prefetches the record of an item's shard, and the item's two buckets.
    #[inline(always)]
    pub fn prefetch_pending(&self, instructions: impl Instructions, Pending { key, place }: Pending) {
        if place == Place::NONE {
            return;
        }
        self.pool.prefetch_record(instructions, place);
        let (geometry, table) = (&self.pool.level(self.depth_of(place)).layout.geometry, self.pool.table(place));
        let prefetch = key.locate(0).prefetch();
        match geometry.deep() {
            Some(geometry) => Deep::read(&geometry, table, instructions, prefetch),
            None => self.dispatch.read_deep(geometry, table, prefetch),
        }
    }

    /// Inserts an item whose shard is known. Returns false where [`insert`](Self::insert) returns an error.
    #[inline(always)]
    pub fn insert_pending(&mut self, instructions: impl Instructions, Pending { key, place }: Pending) -> bool {
        if place == Place::NONE {
            return false;
        }
        let full_from = self.full_from(place, self.slow_from);
        let (layout, record, table) = self.pool.open(place);
        let items = record.items();
        if items >= full_from {
            return false;
        }
        let store = key.store(&layout.params, layout.upper);
        let is_placed = match layout.geometry.deep() {
            Some(geometry) => Deep::change(&geometry, table, instructions, store),
            None => self.dispatch.change_deep(&layout.geometry, table, store),
        };
        if is_placed {
            record.set_items(items + 1);
            self.len += 1;
        }
        is_placed
    }

    /// Returns the one of these item counts that applies to this shard.
    #[inline(always)]
    fn full_from(&self, place: Place, FullAt { splittable, deepest }: FullAt) -> usize {
        index(if self.depth_of(place) < self.plan.max_depth { splittable } else { deepest }.into())
    }

    /// Inserts an item into its shard, even if that is full, as long as there is a slot for it. Returns false, and changes
    /// nothing, if there is none.
    fn insert_at(&mut self, place: Place, key: Key) -> bool {
        self.insert_below(place, key, FullAt::NEVER)
    }

    /// Inserts an item into its shard if that has fewer items than `full_at` says, and a slot for this one. Returns false, and
    /// changes nothing, otherwise.
    #[inline]
    fn insert_below(&mut self, place: Place, key: Key, full_at: FullAt) -> bool {
        let full_from = self.full_from(place, full_at);
        let (layout, record, table) = self.pool.open(place);
        let items = record.items();
        if items >= full_from {
            return false;
        }
        let is_placed = self.dispatch.change_deep(&layout.geometry, table, key.store(&layout.params, layout.upper));
        if is_placed {
            record.set_items(items + 1);
            self.len += 1;
        }
        is_placed
    }

    /// Removes one copy of an item from its table. Returns the place of the shard and its new item count, or `None` if there is
    /// no copy.
    #[inline]
    fn remove(&mut self, key: Key) -> Option<(Place, usize)> {
        let place = self.find(key.stream)?;
        let (layout, record, table) = self.pool.open(place);
        if !self.dispatch.change_deep(&layout.geometry, table, key.locate(layout.upper.extract(key.stream))) {
            return None;
        }
        let items = record.items() - 1;
        record.set_items(items);
        self.len -= 1;
        Some((place, items))
    }

    /// Removes one copy of an item from its table or from the item list. Merges its shard with its sibling if both have become
    /// underfull. Returns false if there is no copy.
    #[inline]
    pub fn remove_and_merge(&mut self, key: Key) -> bool {
        let Some((place, items)) = self.remove(key) else { return self.is_list() && self.remove_from_list(key) };
        let merge_at = index(self.merge_at.into());
        if items <= merge_at {
            // Without memory for the merged shard, both shards stay.
            let _ = self.merge_with_sibling(place, 2 * merge_at);
        }
        true
    }

    fn global_depth(&self) -> u8 {
        self.directory.global_depth()
    }

    #[inline]
    fn depth_of(&self, place: Place) -> u8 {
        self.pool.depth(place)
    }

    /// Returns the number of items in a shard's table.
    #[inline]
    pub fn items(&self, place: Place) -> usize {
        self.pool.record(place).items()
    }

    /// Returns the number of slots in a shard.
    pub fn shard_slots(&self) -> usize {
        self.plan.whole.slots()
    }

    pub fn shards(&self) -> usize {
        self.pool.len()
    }

    /// Returns all shards with their prefixes, in bit-reversed order of the prefixes. A small generation that takes all their
    /// items in this order splits evenly. In the order of prefixes, some of its shards would become far deeper than the others,
    /// as with chosen items, and it would refuse items.
    pub fn shards_bit_reversed(&self) -> impl Iterator<Item = (Shard<'_>, u64)> {
        let places = self.directory.places_bit_reversed(|place| self.depth_of(place));
        places.map(|(place, prefix)| (self.pool.shard(self.dispatch, place).0, prefix))
    }

    /// Returns the records of all shards and their tables without padding, in the order of their prefixes.
    pub fn tables_in_order(&self) -> impl Iterator<Item = (ShardRecord, &[u8])> + Clone {
        self.places().map(|place| self.pool.record_and_table(place))
    }

    /// Returns the places of all shards in the order of their prefixes.
    fn places(&self) -> impl Iterator<Item = Place> + Clone {
        self.directory.places(|place| self.depth_of(place))
    }

    pub fn plan(&self) -> &GenerationPlan {
        &self.plan
    }

    pub fn number(&self) -> u8 {
        self.plan.number
    }

    /// Returns true if there are so few items that a list may replace the shards.
    #[inline]
    pub fn may_fit_list(&self) -> bool {
        self.len <= index(self.shrink_to_list_at.into())
    }

    pub fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.dispatch = dispatch;
    }

    /// Returns a copy, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        Ok(Self {
            directory: self.directory.try_clone()?,
            pool: self.pool.try_clone()?,
            list: self.list.try_clone()?,
            copies: self.copies.try_clone()?,
            ..*self
        })
    }

    /// Returns the number of items in the tables or in the item list.
    #[inline]
    pub fn table_len(&self) -> usize {
        self.len
    }

    /// Returns the number of items, extra copies included. It may exceed a `usize` of 32 bits.
    pub fn item_count(&self) -> u64 {
        wide(self.len).saturating_add(self.extra_copy_totals().0)
    }

    /// Returns [`item_count`](Self::item_count), or `usize::MAX` if that is less.
    pub fn len(&self) -> usize {
        in_memory(self.item_count())
    }

    /// Returns the mean of the shards' false-positive rates, weighted by their shares of the hashes. `extra_copies` is the
    /// number of extra copies in the partition.
    pub fn false_positive_rate(&self, extra_copies: u64) -> f64 {
        if self.is_list() {
            return self.plan.list_false_positive_rate(self.len);
        }
        let times = times_in_table(self.table_len(), extra_copies);
        let weighted_rate = |place| {
            let record = self.pool.record(place);
            let share = self.plan.share(record.depth(), record.prefix());
            share * self.pool.level(record.depth()).layout.false_positive_rate(record.items(), times)
        };
        self.places().map(weighted_rate).sum()
    }

    /// Returns the bytes of all blocks of tables, or of the item list.
    pub fn table_bytes(&self) -> usize {
        self.pool.table_bytes() + self.list.size_in_bytes()
    }

    /// Returns the bytes of the tables or the item list, the directory and the list of extra copies.
    pub fn size_in_bytes(&self) -> usize {
        self.pool.size_in_bytes() + self.directory.size_in_bytes() + self.list.size_in_bytes() + self.copies.size_in_bytes()
    }

    /// Returns the bytes that the generation is charged against a limit: at least [`size_in_bytes`](Self::size_in_bytes), and equal
    /// for all generations with equal content.
    pub fn charged_bytes(&self) -> usize {
        let copies = self.plan.class_keys().charge(self.extra_copy_totals().1);
        if self.is_list() {
            return self.list.bytes_for(self.len).saturating_add(copies);
        }
        self.pool.charged_bytes().saturating_add(Directory::<Place>::bytes_at_depth(self.global_depth())).saturating_add(copies)
    }

    /// Returns the bytes that a generation with its first shards is charged.
    pub fn empty_charged_bytes(plan: &GenerationPlan) -> usize {
        empty_charged_bytes(plan).saturating_add(Directory::<Place>::bytes_at_depth(plan.min_depth))
    }
}

// The item list.

impl Generation {
    /// Returns the item list, which is empty if there are shards.
    pub fn list(&self) -> &SmallList {
        &self.list
    }

    /// Returns the bytes of a key of the item list in a snapshot.
    pub fn key_bytes(&self) -> usize {
        self.plan.class_keys().bytes()
    }

    /// Returns a generation without shards whose item list has these keys, which must be in order.
    pub fn from_list(
        plan: GenerationPlan,
        keys: impl ExactSizeIterator<Item = ClassKey>,
        dispatch: Dispatch,
    ) -> Result<Self, OutOfMemory> {
        let list = SmallList::from_sorted(plan.class_keys().bits(), keys)?;
        Ok(Self { len: list.len(), list, ..Self::without_shards(plan, dispatch) })
    }

    /// Returns the items in the list, each with the number of its copies.
    pub fn list_items(&self) -> impl Iterator<Item = (Key, u32)> {
        self.list.keys().filter_map(|class_key| {
            let key = self.plan.item_of(class_key)?;
            Some((key, 1 + self.extra_copies(key)))
        })
    }

    /// Returns true if the list takes one more item. Returns false when shards should replace it: at its capacity, and, since
    /// chosen items may not fit into shards, again at each doubling.
    pub fn list_has_room(&self) -> bool {
        let capacity = self.plan.list_capacity();
        !self.len.is_multiple_of(capacity) || !(self.len / capacity).is_power_of_two()
    }

    /// Inserts an absent item into the list. The charge may rise by at most `budget` bytes. On failure, nothing changes.
    pub fn insert_into_list(&mut self, key: Key, budget: usize) -> Result<(), InsertError> {
        let needed = self.list.bytes_for(self.len + 1).saturating_sub(self.list.bytes_for(self.len));
        if needed > budget {
            return Err(InsertError::limit(needed));
        }
        self.list.insert(self.class_key(key))?;
        self.len += 1;
        Ok(())
    }

    /// Removes an item from the list. Returns true if it was there.
    #[cold]
    fn remove_from_list(&mut self, key: Key) -> bool {
        let is_removed = self.list.remove(self.class_key(key));
        self.len -= usize::from(is_removed);
        is_removed
    }

    /// Replaces all shards by an item list if there are few items and the generation may be a list. Returns false if not, or if
    /// memory for the list cannot be allocated.
    pub fn shrink_to_list(&mut self) -> bool {
        let may_shrink = self.may_fit_list() && !self.is_list() && self.plan.begins_as_list();
        may_shrink && self.to_list().map(|generation| *self = generation).is_ok()
    }

    /// Returns a generation with the same items in a list.
    fn to_list(&self) -> Result<Self, InsertError> {
        let mut generation = Self::without_shards(self.plan, self.dispatch);
        for place in self.places() {
            let (shard, prefix) = self.pool.shard(self.dispatch, place);
            let mut result = Ok(());
            shard.each_class(&mut |(bucket, _), fingerprint, in_table| {
                let key = Key::from_stored(shard.params(), prefix.into(), bucket, fingerprint);
                let extra = (in_table - 1).saturating_add(self.extra_copies(key));
                result = generation.insert_into_list(key, usize::MAX).and_then(|()| match extra {
                    0 => Ok(()),
                    _ => generation.add_extra_copies(key, extra, usize::MAX),
                });
                result.is_ok()
            });
            result?;
        }
        Ok(generation)
    }
}

impl Generation {
    /// Removes all items and keeps the empty shards.
    pub fn remove_all(&mut self) {
        for &place in self.directory.entries() {
            let (layout, record, table) = self.pool.open(place);
            table[..layout.params.table_bytes()].fill(0);
            record.set_items(0);
        }
        (self.len, self.copies) = (0, ExtraCopies::NONE);
        self.set_looks_up_first(false);
    }
}

/// The checks of [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Generation {
    pub fn assert_consistent(&self, plan: &GenerationPlan, dispatch: Dispatch) {
        let number = plan.number;
        assert!(self.plan == *plan, "generation {number} is {:?}, planned as {plan:?}", self.plan);
        assert!(self.dispatch.kernel() == dispatch.kernel(), "generation {number} has another kernel");
        assert_eq!(self.merge_at, split::merge_at(plan));
        assert_eq!(self.full_at, FullAt::of(plan));
        assert_eq!(self.slow_from, if self.looks_up_first() { FullAt::ALWAYS } else { self.full_at });
        if self.is_list() {
            assert!(plan.begins_as_list() && self.pool.len() == 0, "generation {number} has no directory");
            self.assert_copies();
            self.list.assert_consistent();
            assert_eq!(self.list.len(), self.len, "items of generation {number}");
            assert!(
                self.list.keys().all(|key| plan.item_of(key).is_some()),
                "the list of generation {number} has an invalid key"
            );
            return;
        }
        assert!(self.list.len() == 0 && self.list.size_in_bytes() == 0, "generation {number} has shards and a list of items");
        assert_eq!(
            self.pool.levels().len(),
            usize::from(self.global_depth() - plan.min_depth) + 1,
            "levels of generation {number}"
        );
        assert!(
            self.global_depth() == plan.min_depth || self.pool.level(self.global_depth()).len() > 0,
            "depth of generation {number}"
        );
        assert_eq!(self.directory.entries().len(), 1 << self.global_depth(), "directory of generation {number}");
        for (entry, &place) in self.directory.entries().iter().enumerate() {
            let record = self.pool.record(place);
            let unused = self.global_depth().checked_sub(record.depth()).expect("no shard is deeper than the directory");
            assert_eq!(
                entry >> unused,
                index(record.prefix().into()),
                "entry {entry} of generation {number} leads to another shard"
            );
        }
        let mut len = 0;
        self.pool.assert_consistent(|place, record| {
            assert_eq!(
                self.directory.at(record.depth(), record.prefix()),
                Some(place),
                "no entry leads to {record:?} in generation {number}"
            );
            self.assert_shard(place, record);
            len += record.items();
        });
        assert_eq!(self.len, len, "items of generation {number}");
        self.assert_copies();
    }

    fn assert_shard(&self, place: Place, record: ShardRecord) {
        let (shard, _) = self.pool.shard(self.dispatch, place);
        let params = shard.params();
        let corrupt = shard.first_corrupt(0..params.buckets());
        assert!(corrupt.is_none(), "{record:?}: {corrupt:?}");
        let mut stored = 0;
        shard.each_fingerprint(|bucket, fingerprint| {
            let other = params.alternate(bucket, fingerprint);
            assert!(other < params.buckets() && params.alternate(other, fingerprint) == bucket, "buckets {bucket}, {other}");
            stored += 1;
            true
        });
        assert_eq!(record.items(), stored, "items of {record:?}");
    }
}

#[cfg(test)]
mod tests;
