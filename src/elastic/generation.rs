//! A generation: shards, and the directory that maps the first bits of a stream to them. Full shards split, underfull shards are
//! merged, and the directory is updated.
//!
//! ```text
//! stream 0110…                       directory, depth 2     pool
//!    │ its first 2 bits              00 ──▶ place ─────────▶ table of depth 2
//!    └──────────────────────────────▶01 ──▶ place ─────────▶ table of depth 2
//!                                    10 ──▶ place ──┬──────▶ list of depth 1
//!                                    11 ──▶ place ──┘
//! ```
//!
//! A shard with few items is an ordered [list](List) of what a table would know of them, and becomes a table when that takes less
//! memory. A generation that is not planned for many items starts as one empty list.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod copies;
mod insert;
mod slots;
mod split;

pub(super) use slots::Slots;

use super::{
    directory::{Directory, Route, ShardBytes},
    generation_plan::GenerationPlan,
    lookup::Shards,
    pool::{Place, Pool, ShardRecord, empty_charged_bytes, times_in_table},
    shard::{Key, Shard, ShardMut},
};
use crate::{
    bits::{index, wide},
    kernel::Dispatch,
    storage::{OutOfMemory, Owned},
    table::{
        CopyPolicy, Deep, Form as _, Geometry, Instructions, Narrow, TableParams as _,
        copies::{Copies, ExtraCopies},
        list::{ClassKey, List},
    },
};

/// A generation of a partition.
pub(crate) struct Generation {
    plan: GenerationPlan,
    /// The layout of all tables, without their columns. Lookups in the first generation read these alone.
    geometry: Geometry,
    directory: Directory<Place>,
    pool: Pool,
    /// A removal that leaves at most this many items in a table merges it with its sibling if the two have at most twice as many.
    merge_at: u32,
    /// The number of items in the tables, and of different items in lists.
    len: usize,
    /// The extra copies of items in tables.
    copies: ExtraCopies,
    dispatch: Dispatch,
}

/// An item that is about to be inserted as part of a batch, and the place of its shard.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    pub key: Key,
    pub place: Place,
}

impl Pending {
    /// A placeholder that represents no item.
    pub const NONE: Self = Self { key: Key::NONE, place: Place::of_list(0) };
}

impl Generation {
    /// Returns a generation without shards, to which [`push_table`](Self::push_table) and [`push_list`](Self::push_list) add them.
    fn without_shards(plan: GenerationPlan, dispatch: Dispatch) -> Self {
        Self {
            geometry: Geometry::new(&plan.whole),
            directory: Directory::empty(plan.min_depth),
            pool: Pool::new(&plan),
            merge_at: plan.merge_at(),
            len: 0,
            copies: ExtraCopies::NONE,
            plan,
            dispatch,
        }
    }

    /// Returns an empty generation.
    pub fn new(plan: GenerationPlan, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let (mut generation, depth) = (Self::without_shards(plan, dispatch), plan.min_depth);
        if plan.begins_as_list() {
            generation.push_list(depth, 0, List::new(plan.key_bytes()))?;
        } else {
            generation.pool.add_levels(&plan, depth, usize::MAX)?;
            generation.pool.reserve(depth, 1 << depth)?;
            for prefix in 0..1 << depth {
                generation.pool.push(ShardRecord::new(depth, prefix, 0));
            }
        }
        generation.make_directory(depth)?;
        Ok(generation)
    }

    /// Returns a generation that is prepared for tables of these depths. [`push_table`](Self::push_table) adds each of them,
    /// [`push_list`](Self::push_list) adds lists, and [`make_directory`](Self::make_directory) completes it.
    pub fn with_levels(
        plan: GenerationPlan,
        depths: &(impl Iterator<Item = u8> + Clone),
        dispatch: Dispatch,
    ) -> Result<Self, OutOfMemory> {
        let mut generation = Self::without_shards(plan, dispatch);
        if let Some(deepest) = depths.clone().max() {
            generation.pool.add_levels(&plan, deepest, usize::MAX)?;
            for depth in plan.min_depth..=deepest {
                generation.pool.shorten_blocks(depth, depths.clone().filter(|&shard_depth| shard_depth == depth).count());
            }
        }
        Ok(generation)
    }

    /// Adds a shard with this table, which is followed by padding. The directory does not lead to it yet.
    pub fn push_table(&mut self, depth: u8, prefix: u32, items: u32, table: &[u8]) -> Result<(), OutOfMemory> {
        self.pool.reserve(depth, 1)?;
        let place = self.pool.push(ShardRecord::new(depth, prefix, items));
        let bytes = self.plan.shard(depth).table_bytes();
        self.pool.table_mut(place)[..bytes].copy_from_slice(&table[..bytes]);
        self.len += index(items.into());
        Ok(())
    }

    /// Adds a shard with this list. The directory does not lead to it yet.
    pub fn push_list(&mut self, depth: u8, prefix: u32, list: List) -> Result<(), OutOfMemory> {
        self.pool.reserve_lists(1)?;
        self.len += list.len();
        self.pool.push_list(depth, prefix, list);
        Ok(())
    }

    /// Builds the directory of all shards, of which the deepest has this depth.
    pub fn make_directory(&mut self, deepest: u8) -> Result<(), OutOfMemory> {
        self.directory = Directory::filled(deepest, Place::of_list(0))?;
        for place in self.pool.places() {
            self.directory.point(self.pool.record(place).depth(), self.pool.record(place).prefix(), place);
        }
        Ok(())
    }

    /// Returns the place of a stream's shard.
    #[inline]
    fn place(&self, stream: u64) -> Place {
        self.directory.find(stream).unwrap_or(Place::of_list(0))
    }

    /// Prefetches the buckets of an item that is about to be inserted.
    pub fn prefetch(&self, key: Key) {
        if let Some((layout, table)) = self.pool.layout_and_table(self.place(key.stream)) {
            self.dispatch.read_deep(&layout.geometry, table, key.locate(0).prefetch());
        }
    }

    /// Finds the shard into which to insert an item.
    #[inline(always)]
    pub fn pending(&self, key: Key) -> Pending {
        Pending { key, place: self.place(key.stream) }
    }

    /// Prefetches the record of an item's shard, and the item's two buckets.
    #[inline(always)]
    pub fn prefetch_pending(&self, instructions: impl Instructions, Pending { key, place }: Pending) {
        let Some((layout, table)) = self.pool.layout_and_table(place) else { return };
        self.pool.prefetch_record(instructions, place);
        let prefetch = key.locate(0).prefetch();
        if layout.geometry.table.is_narrow() {
            Deep::<Narrow>::read(&layout.geometry, table, instructions, prefetch);
        } else {
            self.dispatch.read_deep(&layout.geometry, table, prefetch);
        }
    }

    /// Inserts an item whose shard is known. Returns false where [`insert`](Self::insert) does.
    #[inline(always)]
    pub fn insert_pending(&mut self, instructions: impl Instructions, Pending { key, place }: Pending) -> bool {
        let Some((layout, record, table)) = self.pool.open(place) else { return false };
        let items = record.items();
        if items >= index(layout.full_at.into()) {
            return false;
        }
        let insertion = key.insertion(&layout.params, layout.upper, CopyPolicy::GiveUp);
        let is_stored = if layout.geometry.table.is_narrow() {
            Deep::<Narrow>::change(&layout.geometry, table, instructions, insertion)
        } else {
            self.dispatch.change_deep(&layout.geometry, table, insertion)
        };
        if is_stored {
            record.set_items(items + 1);
            self.len += 1;
        }
        is_stored
    }

    /// Inserts an item if its shard is a table that is not full and a walk finds a slot. The walk gives up among copies. Otherwise
    /// changes nothing, and returns false: then use [`add`](Self::add).
    #[inline]
    pub fn insert(&mut self, key: Key) -> bool {
        let Some(place) = self.directory.find(key.stream) else { return false };
        self.store_at(place, key, false, CopyPolicy::GiveUp)
    }

    /// Inserts an item into its shard if that is a table, is not full or `even_if_full`, and a walk finds a slot. Unless
    /// `even_if_full`, the walk gives up among copies. Otherwise changes nothing, and returns false.
    #[inline(never)]
    fn insert_at(&mut self, place: Place, key: Key, even_if_full: bool) -> bool {
        self.store_at(place, key, even_if_full, if even_if_full { CopyPolicy::Continue } else { CopyPolicy::GiveUp })
    }

    #[inline]
    fn store_at(&mut self, place: Place, key: Key, even_if_full: bool, copy_policy: CopyPolicy) -> bool {
        let Some((layout, record, table)) = self.pool.open(place) else { return false };
        let items = record.items();
        if items >= index(layout.full_at.into()) && !even_if_full {
            return false;
        }
        let insertion = key.insertion(&layout.params, layout.upper, copy_policy);
        let is_stored = self.dispatch.change_deep(&layout.geometry, table, insertion);
        if is_stored {
            record.set_items(items + 1);
            self.len += 1;
        }
        is_stored
    }

    /// Removes one copy of an item from its table, or from its list. Returns false if there is none.
    #[inline]
    pub fn remove_stored(&mut self, key: Key) -> bool {
        let place = self.place(key.stream);
        let Some((layout, record, table)) = self.pool.open(place) else { return self.remove_from_list(place, key, 1) };
        if !self.dispatch.change_deep(&layout.geometry, table, key.locate(layout.upper.extract(key.stream)).removal()) {
            return false;
        }
        let items = record.items() - 1;
        record.set_items(items);
        self.len -= 1;
        if items <= index(self.merge_at.into()) {
            self.shrink_shard(place);
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn remove_from_list(&mut self, place: Place, key: Key, most: u32) -> bool {
        let class_key = self.plan.class_key(key);
        let before = self.items(place);
        let is_removed = self.pool.take_from_list(place, class_key, most) > 0;
        if self.items(place) < before {
            self.len -= 1;
            self.shrink_shard(place);
        }
        is_removed
    }

    fn global_depth(&self) -> u8 {
        self.directory.global_depth()
    }

    /// Returns the number of items in a shard's table, or of different items in its list.
    fn items(&self, place: Place) -> usize {
        self.pool.record(place).items()
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.pool.tables() + self.pool.lists_len()
    }

    /// Returns the number of slots in all tables.
    pub fn slots(&self) -> u64 {
        wide(self.pool.tables()).saturating_mul(wide(self.plan.whole.slots()))
    }

    /// Returns the places of all shards with their prefixes, in bit-reversed order of these: a small generation that takes all items
    /// in this order splits evenly. In the order of prefixes, some of its shards would become far deeper than the others, as with
    /// chosen items.
    pub fn places_bit_reversed(&self) -> impl Iterator<Item = (Place, u64)> {
        self.directory.places_bit_reversed().map(|(place, _, prefix)| (place, prefix))
    }

    /// Returns the table at a place with its parameters, or `None` if there is a list.
    pub fn shard(&self, place: Place) -> Option<Shard<'_>> {
        self.pool.shard(self.dispatch, place).map(|(shard, _)| shard)
    }

    /// Calls `act` with each different item of the list at a place, as far as the generation knows it, and with the number of its
    /// copies there, until it returns an error.
    pub fn each_item_of_list<E>(&self, place: Place, act: &mut dyn FnMut(Key, u32) -> Result<(), E>) -> Result<(), E> {
        let entries = self.pool.list(place).into_iter().flat_map(List::iter);
        let mut items = entries.filter_map(|(class_key, copies)| Some((self.plan.item_of(class_key)?, copies)));
        items.try_for_each(|(key, copies)| act(key, copies))
    }

    /// Calls `act` with each different item, as far as the generation knows it, and with the number of its copies in its table or
    /// list, until it returns an error.
    pub fn each_item<E>(&self, act: &mut dyn FnMut(Key, u32) -> Result<(), E>) -> Result<(), E> {
        self.places_bit_reversed().try_for_each(|(place, prefix)| match self.shard(place) {
            Some(table) => table.each_item(prefix, act),
            None => self.each_item_of_list(place, act),
        })
    }

    /// Returns the number of different items in lists.
    pub fn items_in_lists(&self) -> u64 {
        self.pool.lists().map(|(_, list)| wide(list.len())).sum()
    }

    /// Returns the records of all shards in the order of their prefixes, and the table or the list of each.
    pub fn shards_in_order(&self) -> impl Iterator<Item = (ShardRecord, ShardBytes<'_>)> + Clone {
        self.directory.places().map(|place| (self.pool.record(place), self.pool.bytes(place)))
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.dispatch = dispatch;
    }

    /// Returns a copy, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        Ok(Self {
            directory: self.directory.try_clone()?,
            pool: self.pool.try_clone()?,
            copies: self.copies.try_clone()?,
            ..*self
        })
    }

    /// Returns the number of items in the tables, and of different items in lists.
    #[inline]
    pub fn table_len(&self) -> usize {
        self.len
    }

    /// Returns the number of items, extra copies included. It may exceed a `usize` of 32 bits.
    pub fn item_count(&self) -> u64 {
        wide(self.len).saturating_add(self.extra_copies()).saturating_add(self.pool.copies_in_lists())
    }

    /// Returns the mean of the shards' false-positive rates, weighted by their shares of the hashes. `extra_copies` is the
    /// number of extra copies in the partition.
    pub fn false_positive_rate(&self, extra_copies: u64) -> f64 {
        let times = times_in_table(self.table_len(), extra_copies);
        let weighted_rate = |place| {
            let record = self.pool.record(place);
            let rate = match self.pool.layout_and_table(place) {
                Some(_) => self.plan.false_positive_rate(record.depth(), record.items(), times),
                None => self.plan.list_false_positive_rate(record.depth(), record.items()),
            };
            self.plan.share_of_hashes(record.depth(), record.prefix()) * rate
        };
        self.directory.places().map(weighted_rate).sum()
    }

    /// Returns the bytes of all blocks of tables, and of lists.
    pub fn table_bytes(&self) -> usize {
        self.pool.table_bytes()
    }

    /// Returns the bytes of the tables and lists, the directory and the extra copies.
    pub fn size_in_bytes(&self) -> usize {
        self.pool.size_in_bytes() + self.directory.size_in_bytes() + self.copies.size_in_bytes()
    }

    /// Returns the bytes that the generation is charged against a limit: at least [`size_in_bytes`](Self::size_in_bytes), and equal
    /// for all generations with equal shards.
    #[inline(never)]
    pub fn charged_bytes(&self) -> usize {
        let directory = Directory::<Place>::bytes_at_depth(self.global_depth());
        self.pool.charged_bytes().saturating_add(directory).saturating_add(self.charge_for_copies(0))
    }

    /// Returns the bytes that a generation with its first shards is charged.
    pub fn empty_charged_bytes(plan: &GenerationPlan) -> usize {
        empty_charged_bytes(plan).saturating_add(Directory::<Place>::bytes_at_depth(plan.min_depth))
    }

    /// Removes all items and keeps the empty tables. Lists become empty.
    pub fn remove_all(&mut self) {
        for place in self.directory.places() {
            match self.pool.open(place) {
                Some((layout, record, table)) => {
                    table[..layout.params.table_bytes()].fill(0);
                    record.set_items(0);
                }
                None => self.pool.clear_list(place),
            }
        }
        (self.len, self.copies) = (0, ExtraCopies::NONE);
    }
}

impl<'a> Shards<'a> for &'a Generation {
    type Place = Place;
    type Block = Owned;

    #[inline]
    fn plan(self) -> &'a GenerationPlan {
        &self.plan
    }

    #[inline]
    fn geometry(self) -> &'a Geometry {
        &self.geometry
    }

    #[inline]
    fn dispatch(self) -> Dispatch {
        self.dispatch
    }

    #[inline(always)]
    fn route(self) -> Route<'a, Place, Owned> {
        self.pool.route(&self.directory)
    }

    #[inline]
    fn has_all_tables(self) -> bool {
        self.pool.lists_len() == 0
    }

    #[inline]
    fn shard_of(self, stream: u64) -> ShardBytes<'a> {
        self.pool.bytes(self.place(stream))
    }

    fn each_shard(self) -> impl Iterator<Item = (ShardBytes<'a>, u64)> {
        self.places_bit_reversed().map(|(place, prefix)| (self.pool.bytes(place), prefix))
    }

    fn entries(self) -> impl Iterator<Item = (ClassKey, u32)> {
        self.copies.list().into_iter().flat_map(Copies::iter)
    }

    fn copies_beside(self, key: Key, extra: u32) -> u32 {
        let count = |copies: &Copies| self.plan.extra_copies(self.plan.class_key(key), extra, |entry| copies.get(entry));
        self.copies.list().map_or(0, count)
    }
}

/// The checks of [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Generation {
    pub fn assert_consistent(&self, plan: &GenerationPlan, dispatch: Dispatch) {
        let number = plan.number;
        assert!(self.plan == *plan, "generation {number} is {:?}, planned as {plan:?}", self.plan);
        assert!(self.dispatch.kernel() == dispatch.kernel(), "generation {number} has another kernel");
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
        let (mut len, mut deepest) = (0, plan.min_depth);
        self.pool.assert_consistent(|place, record| {
            assert_eq!(
                self.directory.at(record.depth(), record.prefix()),
                Some(place),
                "no entry leads to {record:?} in generation {number}"
            );
            assert!((plan.min_depth..=plan.max_depth).contains(&record.depth()), "{record:?}");
            match self.pool.list(place) {
                Some(list) => self.assert_list(list, record),
                None => self.assert_table(place, record),
            }
            (len, deepest) = (len + record.items(), deepest.max(record.depth()));
        });
        assert_eq!(self.global_depth(), deepest, "depth of generation {number}");
        assert_eq!(self.len, len, "items of generation {number}");
        self.assert_copies();
    }

    fn assert_list(&self, list: &List, record: ShardRecord) {
        assert!(self.plan.allows_lists(), "a list in generation {}", self.plan.number);
        list.assert_consistent();
        for (class_key, copies) in list.iter() {
            let key = self.plan.item_of(class_key).expect("a list has valid keys");
            let shard = self.pool.record(self.place(key.stream));
            assert!(shard == record && copies > 0, "an item of {shard:?} with {copies} copies is in the list of {record:?}");
        }
    }

    fn assert_table(&self, place: Place, record: ShardRecord) {
        let (shard, _) = self.pool.shard(self.dispatch, place).expect("the shard is a table");
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
