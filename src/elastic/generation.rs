//! A generation: shards and the directory that leads to them, by the first bits of a stream. Shards are split when they are full
//! and joined when they are underfull; the directory follows.
//!
//! ```text
//! stream 0110…                       directory, depth 2     pool
//!    │ its first 2 bits              00 ──▶ place ─────────▶ table of depth 2
//!    └──────────────────────────────▶01 ──▶ place ─────────▶ table of depth 2
//!                                    10 ──▶ place ──┬──────▶ table of depth 1
//!                                    11 ──▶ place ──┘
//! ```
//!
//! A generation that begins with few shards has none, and no directory, while it has few items: these are [in a list](Few).

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod copies;
mod split;

use super::{
    directory::Directory,
    few::Few,
    plan::GenerationPlan,
    pool::{Place, Pool, ShardRecord, charged_when_empty},
    shard::{Key, LookupLayout, Shard, ShardMut},
};
use crate::{
    bits::{beyond, in_memory, index},
    filter::InsertError,
    kernel::Dispatch,
    storage::OutOfMemory,
    table::{
        Deep, Form as _, Geometry, Instructions, TableParams as _,
        copies::{ClassKey, Further},
    },
};

/// A generation that began without shards gives them up when it has this share of the items with which it got them.
const FEW_AGAIN: usize = 4;

/// See the module.
#[derive(Clone)]
pub(crate) struct Generation {
    plan: GenerationPlan,
    lookup: LookupLayout,
    directory: Directory<Place>,
    pool: Pool,
    /// The number of items from which on a shard is split; and from which on one that cannot be split is full.
    full: [u32; 2],
    /// The same for insertions that do not [ask first](Self::asks_first): 0 where they have to.
    full_unasked: [u32; 2],
    /// The number of items up to which a removal joins a shard with its sibling, if that has few as well.
    thin_to: u32,
    /// The number of items up to which a removal gives up all shards.
    few_to: u32,
    /// The number of items in the tables, or in the list.
    len: usize,
    /// The items of a generation that has no shards yet.
    few: Few,
    /// The copies that are not in the tables.
    copies: Further,
    dispatch: Dispatch,
}

/// An item of a batch that is about to be inserted, and the place of its shard; [`Place::NONE`] if the generation has no shards.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    pub key: Key,
    pub place: Place,
}

impl Pending {
    /// No item.
    pub const NONE: Self = Self { key: Key::NONE, place: Place::NONE };
}

/// A copy of what a loop over streams needs to find their tables.
#[cfg(x86_kernels)]
#[derive(Clone, Copy)]
pub(crate) struct Routes<'a> {
    places: &'a [Place],
    first_bits: super::stream::Window,
    blocks: super::pool::Blocks<'a>,
}

#[cfg(x86_kernels)]
impl<'a> Routes<'a> {
    /// The table to which a stream leads, and what follows it in its block; none if the generation has none.
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    pub fn table(self, stream: u64) -> Option<&'a [u8]> {
        self.blocks.get(*self.places.get(index(self.first_bits.of(stream)))?)
    }
}

impl Generation {
    /// A generation without shards.
    pub fn unused(plan: GenerationPlan, dispatch: Dispatch) -> Self {
        let full = split::full(&plan);
        Self {
            lookup: LookupLayout::new(&plan.whole),
            directory: Directory::none(plan.least_depth),
            pool: Pool::new(&plan),
            full,
            full_unasked: full,
            thin_to: split::thin(&plan),
            few_to: if plan.begins_unused() { split::items_of_a_shard(plan.most_few() / FEW_AGAIN) } else { 0 },
            len: 0,
            few: Few::new(plan.keys().bits()),
            copies: Further::NONE,
            plan,
            dispatch,
        }
    }

    /// Empty shards of the least depth.
    pub fn new(plan: GenerationPlan, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let (mut generation, depth) = (Self::unused(plan, dispatch), plan.least_depth);
        let Self { directory, pool, .. } = &mut generation;
        *directory = Directory::filled(depth, Place::NONE)?;
        pool.add_levels(&plan, depth)?;
        pool.reserve(depth, 1 << depth)?;
        for prefix in 0..1 << depth {
            directory.point(depth, prefix, pool.push(ShardRecord::new(depth, prefix, 0)));
        }
        Ok(generation)
    }

    /// A generation that is read, with shards of these depths, which are [pushed](Self::push) one after the other.
    pub fn of_depths(
        plan: GenerationPlan,
        depths: &(impl Iterator<Item = u8> + Clone),
        dispatch: Dispatch,
    ) -> Result<Self, OutOfMemory> {
        let mut generation = Self::unused(plan, dispatch);
        let deepest = depths.clone().max().unwrap_or(plan.least_depth);
        generation.pool.add_levels(&plan, deepest)?;
        for depth in plan.least_depth..=deepest {
            generation.pool.expect_few(depth, depths.clone().filter(|&of_shard| of_shard == depth).count());
        }
        Ok(generation)
    }

    /// Adds a shard with this table and its padding. The directory does not lead to it yet.
    pub fn push(&mut self, depth: u8, prefix: u32, items: u32, table: &[u8]) -> Result<(), OutOfMemory> {
        self.pool.reserve(depth, 1)?;
        let place = self.pool.push(ShardRecord::new(depth, prefix, items));
        let bytes = self.plan.shard(depth).table_bytes();
        self.pool.table_mut(place)[..bytes].copy_from_slice(&table[..bytes]);
        self.len += index(items.into());
        Ok(())
    }

    /// Makes a directory that leads to all shards.
    pub fn make_directory(&mut self) -> Result<(), OutOfMemory> {
        let deepest = self.pool.greatest_depth();
        self.directory = Directory::filled(deepest, Place::NONE)?;
        for depth in self.plan.least_depth..=deepest {
            for number in 0..self.pool.level(depth).len() {
                self.point_to(self.pool.place(depth, number));
            }
        }
        Ok(())
    }

    /// True if the generation has no shards yet.
    #[inline]
    pub fn is_unused(&self) -> bool {
        self.directory.is_none()
    }

    /// The shard to which a stream leads; none if the generation has none.
    #[inline]
    fn find(&self, stream: u64) -> Option<Place> {
        self.directory.find(stream)
    }

    #[cfg(x86_kernels)]
    #[allow(clippy::inline_always, reason = "the compiler keeps in registers what a loop needs of it")]
    #[inline(always)]
    pub fn routes(&self) -> Routes<'_> {
        let (places, first_bits) = self.directory.parts();
        Routes { places, first_bits, blocks: self.pool.blocks() }
    }

    /// The bit layout of all its tables, without their columns.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.lookup.geometry
    }

    /// The table to which a stream leads. If there is none, [`is_among_few`](Self::is_among_few) answers.
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a lookup's instructions")]
    #[inline(always)]
    pub fn table(&self, stream: u64) -> Option<&[u8]> {
        self.find(stream).and_then(|place| self.pool.blocks().get(place))
    }

    /// The answer of a lookup that has found no table: there is none only if the generation has no shards yet.
    #[cold]
    #[inline(never)]
    pub fn is_among_few(&self, key: Key) -> bool {
        if self.is_unused() { self.few.has(self.listed(key)) } else { beyond() }
    }

    #[inline]
    pub fn contains(&self, key: Key) -> bool {
        let Some(table) = self.table(key.stream) else { return self.is_among_few(key) };
        self.dispatch.read(&self.lookup.geometry, table, self.lookup.locate(key))
    }

    /// Prefetches the buckets of an item that is inserted.
    pub fn prefetch(&self, key: Key) {
        if let Some(place) = self.find(key.stream) {
            let geometry = &self.pool.level(self.depth_of(place)).layout.geometry;
            self.dispatch.read_deep(geometry, self.pool.table(place), key.locate(0).prefetch());
        }
    }

    /// The number of copies of an item.
    pub fn count(&self, key: Key) -> u32 {
        match self.count_in_table(key) {
            // There are no further copies, either.
            0 => 0,
            in_table => in_table.saturating_add(self.further(key)),
        }
    }

    /// The number of those in the tables, or in the list of few items.
    pub fn count_in_table(&self, key: Key) -> u32 {
        self.find(key.stream).map_or_else(|| self.few.has(self.listed(key)).into(), |place| self.count_in(place, key))
    }

    fn count_in(&self, place: Place, key: Key) -> u32 {
        self.pool.level(self.depth_of(place)).layout.count(self.dispatch, self.pool.table(place), key)
    }

    /// Inserts an item. If there are no shards yet, or its shard is full, returns the place to call
    /// [`insert_growing`](Self::insert_growing) with, and nothing has changed.
    #[inline]
    pub fn insert(&mut self, key: Key) -> Result<(), Place> {
        let place = self.find(key.stream).ok_or(Place::NONE)?;
        if self.insert_below(place, key, self.full_unasked) { Ok(()) } else { Err(place) }
    }

    /// Finds the shard of an item that is to be inserted.
    #[inline(always)]
    pub fn pending(&self, key: Key) -> Pending {
        Pending { key, place: self.find(key.stream).unwrap_or(Place::NONE) }
    }

    /// Prefetches the shard's record, and its two buckets.
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

    /// [`insert`](Self::insert) for an item whose shard is known. Returns false where that returns an error.
    #[inline(always)]
    pub fn insert_pending(&mut self, instructions: impl Instructions, Pending { key, place }: Pending) -> bool {
        if place == Place::NONE {
            return false;
        }
        let limit = self.limit(place, self.full_unasked);
        let (layout, record, table) = self.pool.open(place);
        let items = record.items();
        if items >= limit {
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

    /// The number of items from which on a shard takes no more as it is, if shards are full from these numbers on.
    #[inline(always)]
    fn limit(&self, place: Place, [full_from, full_at_last]: [u32; 2]) -> usize {
        index(if self.depth_of(place) < self.plan.most_depth { full_from } else { full_from.max(full_at_last) }.into())
    }

    /// Inserts an item into its shard, if that has room at all. Otherwise nothing has changed.
    fn insert_at(&mut self, place: Place, key: Key) -> bool {
        self.insert_below(place, key, [u32::MAX; 2])
    }

    /// Inserts an item into its shard, if that has room and is not full, as shards are from these numbers of items on.
    #[inline]
    fn insert_below(&mut self, place: Place, key: Key, full: [u32; 2]) -> bool {
        let limit = self.limit(place, full);
        let (layout, record, table) = self.pool.open(place);
        let items = record.items();
        if items >= limit {
            return false;
        }
        let is_placed = self.dispatch.change_deep(&layout.geometry, table, key.store(&layout.params, layout.upper));
        if is_placed {
            record.set_items(items + 1);
            self.len += 1;
        }
        is_placed
    }

    /// Removes one copy of an item. Returns the place of the shard that had one, and how many items it has now.
    #[inline]
    fn remove(&mut self, key: Key) -> Option<(Place, usize)> {
        let place = self.find(key.stream)?;
        let (layout, record, table) = self.pool.open(place);
        if !self.dispatch.change_deep(&layout.geometry, table, key.locate(layout.upper.of(key.stream))) {
            return None;
        }
        let items = record.items() - 1;
        record.set_items(items);
        self.len -= 1;
        Some((place, items))
    }

    /// Removes one copy of an item, and joins its shard with its sibling if the two have become underfull. Returns whether there
    /// was a copy.
    #[inline]
    pub fn remove_and_join(&mut self, key: Key) -> bool {
        let Some((place, items)) = self.remove(key) else { return self.is_unused() && self.remove_of_few(key) };
        let thin_to = index(self.thin_to.into());
        if items <= thin_to {
            // Without memory for the joined shard, they stay two.
            let _ = self.join(place, 2 * thin_to);
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

    /// The number of items in a shard.
    #[inline]
    pub fn items(&self, place: Place) -> usize {
        self.pool.record(place).items()
    }

    /// The number of slots of a shard.
    pub fn slots_of_a_shard(&self) -> usize {
        self.plan.whole.slots()
    }

    pub fn shards(&self) -> usize {
        self.pool.len()
    }

    /// Shards, with the bits of the streams that lead to them, in the order of their reversed bits, so that a small generation
    /// which takes all items splits evenly: in the order of streams, some of its shards would become far deeper than the others, as
    /// with chosen items, and it would refuse them.
    pub fn evenly(&self) -> impl Iterator<Item = (Shard<'_>, u64)> {
        self.directory.evenly(|place| self.depth_of(place)).map(|place| {
            let (shard, prefix) = self.pool.shard(self.dispatch, place);
            (shard, prefix.into())
        })
    }

    /// Their records, and their tables without padding.
    pub fn tables_in_order(&self) -> impl Iterator<Item = (ShardRecord, &[u8])> + Clone {
        self.places().map(|place| self.pool.whole_table(place))
    }

    /// Where they are.
    fn places(&self) -> impl Iterator<Item = Place> + Clone {
        self.directory.places(|place| self.depth_of(place))
    }

    pub fn number(&self) -> u8 {
        self.plan.number
    }

    /// True if there are so few items that the generation may need no shards.
    #[inline]
    pub fn has_few(&self) -> bool {
        self.len <= index(self.few_to.into())
    }

    pub fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.dispatch = dispatch;
    }

    /// A copy, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        Ok(Self {
            directory: self.directory.try_clone()?,
            pool: self.pool.try_clone()?,
            few: self.few.try_clone()?,
            copies: self.copies.try_clone()?,
            ..*self
        })
    }

    /// The number of items in the tables.
    #[inline]
    pub fn table_len(&self) -> usize {
        self.len
    }

    /// The number of items, further copies included.
    pub fn len(&self) -> usize {
        self.len.saturating_add(in_memory(self.further_totals().0))
    }

    /// The mean of the shards' false-positive rates, each in proportion to the hashes that lead to it. With further copies, the
    /// partition has `times` as many items as its tables.
    pub fn false_positive_rate(&self, times: f64) -> f64 {
        if self.is_unused() {
            return self.plan.rate_of_few(self.len);
        }
        let of_shard = |place| {
            let record = self.pool.record(place);
            let share = self.plan.share(record.depth(), record.prefix());
            share * self.pool.level(record.depth()).layout.false_positive_rate(record.items(), times)
        };
        self.places().map(of_shard).sum()
    }

    /// Bytes of all blocks of tables, or of the list of few items.
    pub fn table_bytes(&self) -> usize {
        self.pool.table_bytes() + self.few.size_in_bytes()
    }

    /// Bytes of tables or list, of the directory, and of the list of copies.
    pub fn size_in_bytes(&self) -> usize {
        self.pool.size_in_bytes() + self.directory.size_in_bytes() + self.few.size_in_bytes() + self.copies.size_in_bytes()
    }

    /// What the generation is charged against a limit, in bytes: at least [`size_in_bytes`](Self::size_in_bytes), and equal for all
    /// generations of equal content.
    pub fn charged(&self) -> usize {
        let copies = self.plan.keys().charge(self.further_totals().1);
        if self.is_unused() {
            return self.few.charge(self.len).saturating_add(copies);
        }
        self.pool.charged().saturating_add(Directory::<Place>::bytes_of(self.global_depth())).saturating_add(copies)
    }

    /// What a generation with the shards that it begins with is charged.
    pub fn charged_when_empty(plan: &GenerationPlan) -> usize {
        charged_when_empty(plan).saturating_add(Directory::<Place>::bytes_of(plan.least_depth))
    }
}

// Few items.

impl Generation {
    /// The items of a generation without shards.
    pub fn list_of_few(&self) -> &Few {
        &self.few
    }

    /// The length of a key of that list in a snapshot.
    pub fn key_bytes(&self) -> usize {
        self.plan.keys().bytes()
    }

    /// A generation without shards that has these items, in order.
    pub fn of_few(
        plan: GenerationPlan,
        keys: impl ExactSizeIterator<Item = ClassKey>,
        dispatch: Dispatch,
    ) -> Result<Self, OutOfMemory> {
        let few = Few::from_sorted(plan.keys().bits(), keys)?;
        Ok(Self { len: few.len(), few, ..Self::unused(plan, dispatch) })
    }

    /// The items of a generation without shards, each with the number of its copies.
    pub fn few_items(&self) -> impl Iterator<Item = (Key, u32)> {
        self.few.keys().filter_map(|listed| {
            let key = self.plan.listed(listed)?;
            Some((key, 1 + self.further(key)))
        })
    }

    /// True if a generation without shards takes an item more as it is. If not, it is time for shards; and if chosen items do not
    /// fit into those, again when there are twice as many.
    pub fn has_room_for_few(&self) -> bool {
        let most = self.plan.most_few();
        !self.len.is_multiple_of(most) || !(self.len / most).is_power_of_two()
    }

    /// Inserts an item that is not there into a generation without shards. What the filter is charged may rise by `allowed` bytes.
    /// If it fails, nothing has changed.
    pub fn insert_among_few(&mut self, key: Key, allowed: usize) -> Result<(), InsertError> {
        let needed = self.few.charge(self.len + 1).saturating_sub(self.few.charge(self.len));
        if needed > allowed {
            return Err(InsertError::limit(needed));
        }
        self.few.insert(self.listed(key))?;
        self.len += 1;
        Ok(())
    }

    /// Removes an item from a generation without shards. Returns whether it was there.
    #[cold]
    fn remove_of_few(&mut self, key: Key) -> bool {
        let is_removed = self.few.remove(self.listed(key));
        self.len -= usize::from(is_removed);
        is_removed
    }

    /// Gives up all shards of a generation that began without any, if it has few items again. Without memory for the list of these,
    /// they stay. Returns whether it did.
    pub fn release(&mut self) -> bool {
        let may_be_few = self.has_few() && !self.is_unused() && self.plan.begins_unused();
        may_be_few && self.without_shards().map(|few| *self = few).is_ok()
    }

    /// A generation with the same items, and without shards.
    fn without_shards(&self) -> Result<Self, InsertError> {
        let mut generation = Self::unused(self.plan, self.dispatch);
        for place in self.places() {
            let (shard, prefix) = self.pool.shard(self.dispatch, place);
            let mut result = Ok(());
            shard.each_class(&mut |(bucket, _), fingerprint, in_table| {
                let key = Key::of_stored(shard.params(), prefix.into(), bucket, fingerprint);
                let further = (in_table - 1).saturating_add(self.further(key));
                result = generation.insert_among_few(key, usize::MAX).and_then(|()| match further {
                    0 => Ok(()),
                    _ => generation.count_further(key, further, usize::MAX),
                });
                result.is_ok()
            });
            result?;
        }
        Ok(generation)
    }
}

impl Generation {
    /// Removes all items. Shards stay as they are.
    pub fn empty(&mut self) {
        for &place in self.directory.entries() {
            let (layout, record, table) = self.pool.open(place);
            table[..layout.params.table_bytes()].fill(0);
            record.set_items(0);
        }
        (self.len, self.copies) = (0, Further::NONE);
        self.set_asks_first(false);
    }
}

/// For [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Generation {
    pub fn assert_consistent(&self, plan: &GenerationPlan, dispatch: Dispatch) {
        let number = plan.number;
        assert!(self.plan == *plan, "generation {number} is {:?}, planned as {plan:?}", self.plan);
        assert!(self.dispatch.kernel() == dispatch.kernel(), "generation {number} has another kernel");
        assert_eq!(self.thin_to, split::thin(plan));
        assert_eq!(self.full, split::full(plan));
        assert_eq!(self.full_unasked, if self.asks_first() { [0; 2] } else { self.full });
        if self.is_unused() {
            assert!(plan.begins_unused() && self.pool.len() == 0, "generation {number} has no directory");
            self.assert_copies();
            self.few.assert_consistent();
            assert_eq!(self.few.len(), self.len, "items of generation {number}");
            assert!(self.few.keys().all(|key| plan.listed(key).is_some()), "generation {number} lists what is no item");
            return;
        }
        assert!(self.few.len() == 0 && self.few.size_in_bytes() == 0, "generation {number} has shards and a list of items");
        assert_eq!(
            self.pool.levels().len(),
            usize::from(self.global_depth() - plan.least_depth) + 1,
            "levels of generation {number}"
        );
        assert!(
            self.global_depth() == plan.least_depth || self.pool.level(self.global_depth()).len() > 0,
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
