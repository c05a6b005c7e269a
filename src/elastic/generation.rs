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

mod beside;

use alloc::vec::Vec;
use core::iter;

use super::{
    few::Few,
    plan::GenerationPlan,
    pool::{Place, Pool, ShardRecord, charged_when_empty},
    shard::{self, Key, LookupLayout, Shard, ShardMut},
    stream::Window,
};
use crate::{
    bits::{beyond, in_memory, index, low_half, wide},
    filter::{InsertError, InsertErrorKind},
    kernel::Dispatch,
    storage::{OutOfMemory, reserved, shrink_to},
    table::{
        Deep, Form as _, Geometry, Instructions, MOST_BUCKETS, TableParams as _,
        copies::{self, Further},
    },
};

/// The share of its slots from which on a shard is split, if it can be. Fuller ones would take more time to fill than they save
/// in space.
const FULL: (usize, usize) = (15, 16);

/// A removal joins a shard that fills at most this share of its slots with its sibling if together they fill at most twice as much,
/// so that the joined shard is far from full. On request, siblings are joined that together fill at most the other share of one.
const THIN: (usize, usize) = (1, 5);
const MOST_TO_SHRINK: (usize, usize) = (9, 10);

/// A generation that began without shards gives them up when it has this share of the items with which it got them.
const FEW_AGAIN: usize = 4;

/// The share from which on a shard that cannot be split is full if it is large, unless it is planned for more items. The walks for
/// the last items of a large table take 10 microseconds each, and the shards of a filter that is planned for its size are full at
/// the same time.
const FULL_AT_LAST: (usize, usize) = (31, 32);
const LARGE: usize = 1 << 12;

/// The most entries of a directory for each shard, or in all. Uniform hashes need a few. Chosen ones can make one shard far
/// deeper than the others, and a directory that follows takes as much memory as it likes.
const MOST_ENTRIES: u64 = 64;
const ENTRIES_OF_FEW: u64 = 1 << 10;

/// Slots of a generation beyond which a further one, which begins with an eighth of them, would take much memory for a few items.
const FEW_SLOTS: u64 = 1 << 14;

/// See the module.
#[derive(Clone)]
pub(super) struct Generation {
    plan: GenerationPlan,
    probe: LookupLayout,
    /// For each value of a stream's first `depth` bits, the shard that they lead to. Shards of a smaller depth are there several
    /// times, in a row.
    directory: Vec<Place>,
    first_bits: Window,
    global_depth: u8,
    pool: Pool,
    /// The number of items from which on a shard is split; and from which on one that cannot be split is full. Both are 0 where
    /// insertions [ask first](Self::asks_first).
    full_from: usize,
    full_at_last: usize,
    /// The two as they are elsewhere.
    full: [u32; 2],
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

/// An item of a batch that is about to be inserted, and its shard.
#[derive(Clone, Copy)]
pub(super) struct Pending {
    pub key: Key,
    /// [`Place::NONE`] if the generation has no shards.
    pub place: Place,
    /// Of the shard. Which layout its table has is known before its record, which changes with every insertion, is read.
    depth: u8,
}

impl Pending {
    /// No item.
    pub const NONE: Self = Self { key: Key::NONE, place: Place::NONE, depth: 0 };
}

/// What leads from streams to tables.
#[cfg(x86_kernels)]
#[derive(Clone, Copy)]
pub(super) struct Directory<'a> {
    places: &'a [Place],
    first_bits: Window,
    blocks: super::pool::Blocks<'a>,
}

#[cfg(x86_kernels)]
impl<'a> Directory<'a> {
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
        let full = [share(&plan, FULL), full_at_last(&plan)];
        Self {
            probe: LookupLayout::new(&plan.whole),
            directory: Vec::new(),
            first_bits: Window::new(0, 0, 0),
            global_depth: plan.least_depth,
            pool: Pool::new(&plan),
            full_from: full[0],
            full_at_last: full[1],
            full: full.map(items_of_a_shard),
            thin_to: items_of_a_shard(share(&plan, THIN)),
            few_to: if plan.begins_unused() { items_of_a_shard(plan.most_few() / FEW_AGAIN) } else { 0 },
            len: 0,
            few: Few::new(plan.keys().bits()),
            copies: Further::NONE,
            plan,
            dispatch,
        }
    }

    /// Empty shards of the least depth.
    pub fn new(plan: GenerationPlan, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let mut generation = Self::unused(plan, dispatch);
        generation.begin()?;
        Ok(generation)
    }

    /// Adds empty shards of the least depth to a generation that has none.
    fn begin(&mut self) -> Result<(), OutOfMemory> {
        let (depth, mut pool) = (self.plan.least_depth, Pool::new(&self.plan));
        let mut directory = reserved(1 << depth)?;
        pool.add_levels(&self.plan, depth)?;
        pool.reserve(depth, 1 << depth)?;
        directory.extend((0..1 << depth).map(|prefix| pool.push(ShardRecord::new(depth, prefix, 0))));
        (self.pool, self.directory) = (pool, directory);
        self.set_global_depth(depth);
        Ok(())
    }

    /// A generation that is read, with shards of these depths, which are [pushed](Self::push) one after the other.
    pub fn of_depths(
        plan: GenerationPlan,
        depths: &(impl Iterator<Item = u8> + Clone),
        dispatch: Dispatch,
    ) -> Result<Self, OutOfMemory> {
        let mut generation = Self::unused(plan, dispatch);
        generation.global_depth = depths.clone().max().unwrap_or(plan.least_depth);
        generation.pool.add_levels(&plan, generation.global_depth)?;
        for depth in plan.least_depth..=generation.global_depth {
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
        self.directory = reserved(1 << self.global_depth)?;
        self.directory.resize(1 << self.global_depth, Place::NONE);
        self.set_global_depth(self.global_depth);
        for depth in self.plan.least_depth..=self.global_depth {
            for number in 0..self.pool.level(depth).len() {
                self.point_to(self.pool.place(depth, number));
            }
        }
        Ok(())
    }

    /// True if the generation has no shards yet.
    #[inline]
    pub fn is_unused(&self) -> bool {
        self.directory.is_empty()
    }

    /// The shard to which a stream leads; none if the generation has none.
    #[inline]
    fn find(&self, stream: u64) -> Option<Place> {
        self.directory.get(index(self.first_bits.of(stream))).copied()
    }

    #[cfg(x86_kernels)]
    #[allow(clippy::inline_always, reason = "the compiler keeps in registers what a loop needs of it")]
    #[inline(always)]
    pub fn directory(&self) -> Directory<'_> {
        Directory { places: &self.directory, first_bits: self.first_bits, blocks: self.pool.blocks() }
    }

    /// The bit layout of all its tables, without their columns.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        &self.probe.geometry
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
        self.dispatch.read(&self.probe.geometry, table, self.probe.locate(key))
    }

    /// Prefetches the buckets of an item that is inserted.
    pub fn prefetch(&self, key: Key) {
        if let Some(place) = self.find(key.stream) {
            let geometry = &self.pool.level(self.depth_of(place)).shape.geometry;
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
        self.pool.level(self.depth_of(place)).shape.count(self.dispatch, self.pool.table(place), key)
    }

    /// Inserts an item. If there are no shards yet, or its shard is full, returns the place to call
    /// [`insert_growing`](Self::insert_growing) with, and nothing has changed.
    #[inline]
    pub fn insert(&mut self, key: Key) -> Result<(), Place> {
        let place = self.find(key.stream).ok_or(Place::NONE)?;
        if self.insert_below(place, key, self.full_from) { Ok(()) } else { Err(place) }
    }

    /// Finds the shard of an item that is to be inserted, and prefetches its record.
    #[inline(always)]
    pub fn pending(&self, instructions: impl Instructions, key: Key) -> Pending {
        let place = self.find(key.stream).unwrap_or(Place::NONE);
        self.pool.prefetch_record(instructions, place);
        Pending { key, place, depth: self.plan.least_depth }
    }

    /// Reads the record, and prefetches the buckets if that is wanted.
    #[inline(always)]
    pub fn approach(&self, instructions: impl Instructions, item: &mut Pending, prefetches: bool) {
        if item.place == Place::NONE {
            return;
        }
        item.depth = self.depth_of(item.place);
        if prefetches {
            let (geometry, table) = (&self.pool.level(item.depth).shape.geometry, self.pool.table(item.place));
            let prefetch = item.key.locate(0).prefetch();
            match geometry.deep() {
                Some(geometry) => Deep::read(&geometry, table, instructions, prefetch),
                None => self.dispatch.read_deep(geometry, table, prefetch),
            }
        }
    }

    /// [`insert`](Self::insert) for an item whose shard is known. Returns false where that returns an error.
    #[inline(always)]
    pub fn insert_pending(&mut self, instructions: impl Instructions, Pending { key, place, depth }: Pending) -> bool {
        if place == Place::NONE {
            return false;
        }
        let (shape, header, table) = self.pool.open_of_depth(place, depth);
        let items = header.record.items();
        if items >= self.full_from && (items >= self.full_at_last || depth < self.plan.most_depth) {
            return false;
        }
        let store = key.store(&shape.params, shape.upper);
        let is_placed = match shape.geometry.deep() {
            Some(geometry) => Deep::change(&geometry, table, instructions, store),
            None => self.dispatch.change_deep(&shape.geometry, table, store),
        };
        if is_placed {
            header.set_items(items + 1);
            self.len += 1;
        }
        is_placed
    }

    /// Inserts an item into its shard, if that has room at all. Otherwise nothing has changed.
    fn insert_at(&mut self, place: Place, key: Key) -> bool {
        self.insert_below(place, key, usize::MAX)
    }

    /// The same, if the shard has fewer than this many items, or is not full and cannot be split.
    #[inline]
    fn insert_below(&mut self, place: Place, key: Key, full_from: usize) -> bool {
        let (shape, header, table) = self.pool.open(place);
        let items = header.record.items();
        if items >= full_from && (items >= self.full_at_last || header.record.depth() < self.plan.most_depth) {
            return false;
        }
        let is_placed = self.dispatch.change_deep(&shape.geometry, table, key.store(&shape.params, shape.upper));
        if is_placed {
            header.set_items(items + 1);
            self.len += 1;
        }
        is_placed
    }

    /// Removes one copy of an item. Returns the place of the shard that had one, and how many items it has now.
    #[inline]
    fn remove(&mut self, key: Key) -> Option<(Place, usize)> {
        let place = self.find(key.stream)?;
        let (shape, header, table) = self.pool.open(place);
        if !self.dispatch.change_deep(&shape.geometry, table, key.locate(shape.upper.of(key.stream))) {
            return None;
        }
        let items = header.record.items() - 1;
        header.set_items(items);
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

    #[inline]
    fn depth_of(&self, place: Place) -> u8 {
        self.pool.record(place).depth()
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

    /// Shards, with the bits of the streams that lead to them. Entries of the directory come in the order of their reversed bits,
    /// so that a small generation which takes all items splits evenly: in the order of streams, some of its shards would become far
    /// deeper than the others, as with chosen items, and it would refuse them.
    pub fn evenly(&self) -> impl Iterator<Item = (Shard<'_>, u64)> {
        (0..self.directory.len()).filter_map(|number| {
            let entry = number.reverse_bits().unbounded_shr(usize::BITS - u32::from(self.global_depth));
            let place = self.directory[entry];
            let unused = self.global_depth - self.depth_of(place);
            // A shard has a row of entries, and is taken at the first of them.
            (entry.trailing_zeros() >= unused.into()).then(|| {
                let (shard, prefix) = self.pool.shard(self.dispatch, place);
                (shard, prefix.into())
            })
        })
    }

    /// Their records, and their tables without padding.
    pub fn tables_in_order(&self) -> impl Iterator<Item = (ShardRecord, &[u8])> + Clone {
        self.places().map(|place| self.pool.whole_table(place))
    }

    /// Where they are.
    fn places(&self) -> impl Iterator<Item = Place> + Clone {
        let mut next = 0;
        iter::from_fn(move || self.next_place(&mut next))
    }

    /// Where the shard is to which this entry of the directory leads, which becomes the first entry of the next one.
    #[inline(never)]
    fn next_place(&self, next: &mut usize) -> Option<Place> {
        let place = *self.directory.get(*next)?;
        *next += 1 << (self.global_depth - self.depth_of(place));
        Some(place)
    }

    fn set_global_depth(&mut self, depth: u8) {
        self.global_depth = depth;
        self.first_bits = Window::new(0, depth.into(), 0);
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
        let mut directory = reserved(self.directory.len())?;
        directory.extend_from_slice(&self.directory);
        Ok(Self {
            directory,
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
            share * self.pool.level(record.depth()).shape.false_positive_rate(record.items(), times)
        };
        self.places().map(of_shard).sum()
    }

    /// Bytes of all blocks of tables, or of the list of few items.
    pub fn table_bytes(&self) -> usize {
        self.pool.table_bytes() + self.few.size_in_bytes()
    }

    /// The same, and of what leads to them.
    pub fn size_in_bytes(&self) -> usize {
        self.pool.size_in_bytes()
            + self.directory.capacity() * size_of::<Place>()
            + self.few.size_in_bytes()
            + self.copies.size_in_bytes()
    }

    /// What the generation is charged against a limit, in bytes: at least [`size_in_bytes`](Self::size_in_bytes), and equal for all
    /// generations of equal content.
    pub fn charged(&self) -> usize {
        let copies = self.plan.keys().charge(self.further_totals().1);
        if self.is_unused() {
            return self.few.charge(self.len).saturating_add(copies);
        }
        self.pool.charged().saturating_add(size_of::<Place>() << self.global_depth).saturating_add(copies)
    }

    /// The same of a generation with the shards that it begins with.
    pub fn charged_when_empty(plan: &GenerationPlan) -> usize {
        charged_when_empty(plan).saturating_add(size_of::<Place>() << plan.least_depth)
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
        keys: impl ExactSizeIterator<Item = copies::ClassKey>,
        dispatch: Dispatch,
    ) -> Result<Self, OutOfMemory> {
        let few = Few::from_sorted(plan.keys().bits(), keys)?;
        Ok(Self { len: few.len(), few, ..Self::unused(plan, dispatch) })
    }

    /// The same as an iterator, with the copies of each.
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

// Splitting.

impl Generation {
    /// Inserts an item that the generation does not seem to have, for which [`insert`](Self::insert) has returned this place. What
    /// the filter is charged may rise by `allowed` bytes. Returns false if the upper bits are used up, so that a further generation
    /// is needed.
    ///
    /// Unless it returns true, no item has changed its place. What it does otherwise does not depend on `allowed`, so that filters
    /// of equal content stay equal.
    pub fn insert_growing(&mut self, place: Place, key: Key, allowed: usize) -> Result<bool, InsertError> {
        if self.insert_for_copies(place, key, allowed)? {
            return Ok(true);
        }
        for depth in self.depth_of(place) + 1..=self.greatest_depth() {
            if self.split(place, depth, key.stream, allowed, |generation, part| generation.insert_at(part, key))? {
                return Ok(true);
            }
        }
        let is_for_a_generation = self.has_grown_up();
        if is_for_a_generation && self.depth_of(place) == self.plan.most_depth && self.is_full(place) {
            return Ok(false);
        }
        if self.insert_at(place, key) || self.insert_for_a_copy(place, key, MOST_BUCKETS, allowed)? {
            return Ok(true);
        }
        if is_for_a_generation { Ok(false) } else { Err(InsertError::of(InsertErrorKind::Crowded)) }
    }

    /// Inserts an item into the shard to which its stream leads, as that is. Returns false, and changes nothing, if there is no
    /// room.
    pub fn insert_as_it_is(&mut self, key: Key) -> bool {
        self.find(key.stream).is_some_and(|place| self.insert_at(place, key))
    }

    /// True if a further generation takes little memory beside this one: one in sixteen slots of those that it may have is taken,
    /// or it may have few. Otherwise it is for unequal hashes that a shard is full. In buckets of one slot, it may be for three
    /// items in two buckets long before, and hashes are as good as any.
    fn has_grown_up(&self) -> bool {
        let slots = wide(self.slots_of_a_shard()) << self.plan.most_depth;
        let share = if self.plan.whole.bucket_size == 1 { 8 } else { 4 };
        wide(self.len) >= slots >> share || slots <= FEW_SLOTS
    }

    /// The greatest depth to which a shard may be split.
    fn greatest_depth(&self) -> u8 {
        let entries = wide(self.shards()).saturating_mul(MOST_ENTRIES).max(ENTRIES_OF_FEW);
        #[expect(clippy::cast_possible_truncation, reason = "below 64")]
        let depth = entries.ilog2() as u8;
        self.plan.most_depth.min(self.global_depth.max(depth))
    }

    /// Splits a shard as often as it takes to get one of this depth to which the stream leads, if `act` returns true for that.
    /// Returns what it returned. Otherwise, or if it fails, nothing has changed; `act` must have changed nothing, either.
    fn split(
        &mut self,
        place: Place,
        depth: u8,
        stream: u64,
        allowed: usize,
        act: impl FnOnce(&mut Self, Place) -> bool,
    ) -> Result<bool, InsertError> {
        let from = self.depth_of(place);
        let needed = self.charge_of_splits(from, depth);
        if needed > allowed {
            return Err(InsertError::limit(needed));
        }
        // The bits of the stream that lead from the shard to a part of this depth.
        let bits_to = |depth: u8| low_half(Window::new(from.into(), (depth - from).into(), 0).of(stream));
        self.pool.add_levels(&self.plan, depth)?;
        let reserved = self.pool.reserve(depth, 2);
        let part = reserved.map(|()| self.push_part(place, depth, bits_to(depth)));
        let before = part.as_ref().map_or(0, |&part| self.items(part));
        match part {
            Ok(part) if act(self, part) => {
                // The others of these parts, and a directory.
                let between = (from + 1..depth).try_for_each(|depth| self.pool.reserve(depth, 1));
                match between.and_then(|()| deepened(&self.directory, depth.saturating_sub(self.global_depth))) {
                    Ok(deeper) => {
                        if let Some(deeper) = deeper {
                            self.directory = deeper;
                            self.set_global_depth(depth);
                        }
                        self.commit_split(place, part, depth, bits_to);
                        Ok(true)
                    }
                    Err(error) => {
                        // With what `act` has inserted.
                        self.len -= self.items(part) - before;
                        self.undo_split(Some(part), from, depth);
                        Err(error.into())
                    }
                }
            }
            Ok(part) => {
                self.undo_split(Some(part), from, depth);
                Ok(false)
            }
            Err(error) => {
                self.undo_split(None, from, depth);
                Err(error.into())
            }
        }
    }

    /// Adds the other parts of a shard, instead of that. Nothing can fail.
    fn commit_split(&mut self, whole: Place, part: Place, depth: u8, bits_to: impl Fn(u8) -> u32) {
        self.point_to(part);
        for depth in self.depth_of(whole) + 1..=depth {
            let other = self.push_part(whole, depth, bits_to(depth) ^ 1);
            self.point_to(other);
        }
        self.remove_shard(whole, &mut |_, _| ());
    }

    /// Removes what was added for a split. The directory leads to none of it.
    fn undo_split(&mut self, part: Option<Place>, from: u8, depth: u8) {
        if let Some(part) = part {
            self.remove_shard(part, &mut |_, _| ());
        }
        for depth in from + 1..=depth {
            self.pool.release(depth, &mut |_, _, _| ());
        }
        self.pool.drop_levels(self.global_depth);
    }

    /// What splitting a shard of depth `from` adds to the charge, while the shard is still there.
    fn charge_of_splits(&self, from: u8, depth: u8) -> usize {
        let of_depth = |part: u8| self.pool.charge_of_more(&self.plan, part, if part == depth { 2 } else { 1 });
        let directory = if depth > self.global_depth { size_of::<Place>() << depth } else { 0 };
        (from + 1..=depth).map(of_depth).fold(directory, usize::saturating_add)
    }

    /// Adds a shard of this depth, for which there must be room, with those items of another one whose upper bits begin with
    /// `bits`. The directory does not lead to it yet.
    fn push_part(&mut self, whole: Place, depth: u8, bits: u32) -> Place {
        let record = self.pool.record(whole);
        let place = self.pool.push(ShardRecord::new(depth, record.prefix() << (depth - record.depth()) | bits, 0));
        let is_complete = self.fill(whole, place, |part, whole| shard::fill_part(part, whole, bits));
        debug_assert!(is_complete, "a bucket of a part never has more items than that of the whole");
        place
    }

    /// Fills a shard with items of another one, of another depth. Returns what `fill` did.
    fn fill(&mut self, from: Place, to: Place, fill: impl FnOnce(&mut ShardMut<'_>, &Shard<'_>) -> bool) -> bool {
        let [source, target] = [from, to].map(|place| self.pool.record(place));
        let [source_shape, shape] = [source, target].map(|record| self.pool.level(record.depth()).shape);
        let (read, written) = self.pool.two_tables(from, to);
        let source = source_shape.shard(self.dispatch, read, source.items());
        let written = &mut written[..shape.params.padded_bytes()];
        let mut shard = ShardMut::from_parts(shape.params, written, target.items()).with_dispatch(self.dispatch);
        let (is_filled, items) = (fill(&mut shard, &source), shard.len());
        self.pool.set_items(to, target, items);
        is_filled
    }

    /// Writes the directory's entries for a shard.
    fn point_to(&mut self, place: Place) {
        point(&mut self.directory, self.global_depth, self.pool.record(place), place);
    }

    /// Removes a shard to which the directory does not lead any more, or will not. Calls `moved` with the old and new place of each
    /// shard that has moved.
    fn remove_shard(&mut self, place: Place, moved: &mut dyn FnMut(Place, Place)) {
        let Self { directory, global_depth, pool, .. } = self;
        pool.remove(place, &mut |record, from, to| {
            point(directory, *global_depth, record, to);
            moved(from, to);
        });
    }
}

// Joining.

impl Generation {
    /// Makes the directory as shallow as the shards allow.
    fn halve(&mut self) {
        while self.global_depth > self.plan.least_depth && self.pool.level(self.global_depth).len() == 0 {
            let mut at = 0;
            self.directory.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            shrink_to(&mut self.directory, 0);
            self.set_global_depth(self.global_depth - 1);
        }
        self.pool.drop_levels(self.global_depth);
    }

    /// The other half of the shard that was split to make this one, unless it has been split further.
    fn sibling(&self, place: Place) -> Option<Place> {
        let record = self.pool.record(place);
        if record.depth() == self.plan.least_depth {
            return None;
        }
        let first = index((record.prefix() ^ 1).into()) << (self.global_depth - record.depth());
        let other = *self.directory.get(first)?;
        (self.depth_of(other) == record.depth()).then_some(other)
    }

    /// Joins a shard with its sibling if the two hold at most `most` items. Returns whether it did; otherwise nothing has changed.
    fn join(&mut self, place: Place, most: usize) -> Result<bool, OutOfMemory> {
        let Some(other) = self.sibling(place).filter(|&other| self.items(place) + self.items(other) <= most) else {
            return Ok(false);
        };
        let record = self.pool.record(place);
        self.pool.reserve(record.depth() - 1, 1)?;
        let mut whole = self.pool.push(ShardRecord::new(record.depth() - 1, record.prefix() >> 1, 0));
        let mut halves = if record.prefix() & 1 == 0 { [place, other] } else { [other, place] };
        let is_filled =
            (0..).zip(halves).all(|(bit, half)| self.fill(half, whole, |whole, half| shard::fill_half(whole, half, bit)));
        if !is_filled {
            // Nothing leads to it.
            self.remove_shard(whole, &mut |_, _| ());
            return Ok(false);
        }
        for half in 0..halves.len() {
            let mut places = halves;
            self.remove_shard(halves[half], &mut |from, to| {
                for place in places.iter_mut().chain([&mut whole]) {
                    if *place == from {
                        *place = to;
                    }
                }
            });
            halves = places;
        }
        self.point_to(whole);
        self.halve();
        Ok(true)
    }

    /// Joins all shards that can be, as far as there is memory for it.
    pub fn join_all(&mut self) {
        let most = share(&self.plan, MOST_TO_SHRINK);
        for depth in (self.plan.least_depth + 1..=self.global_depth).rev() {
            let mut number = 0;
            while depth <= self.global_depth && number < self.pool.level(depth).len() {
                // After a join, another shard is here.
                if !self.join(self.pool.place(depth, number), most).unwrap_or(false) {
                    number += 1;
                }
            }
        }
    }

    /// Removes all items. Shards stay as they are.
    pub fn empty(&mut self) {
        for &place in &self.directory {
            let (shape, header, table) = self.pool.open(place);
            table[..shape.params.table_bytes()].fill(0);
            header.set_items(0);
        }
        (self.len, self.copies) = (0, Further::NONE);
        self.set_asks_first(false);
    }
}

/// A share of the slots of a generation's shards. A shard of fewer than 16 slots is always split: so small a table is soon too full
/// for an item of which both buckets are taken.
fn share(plan: &GenerationPlan, (numerator, denominator): (usize, usize)) -> usize {
    plan.whole.slots() / denominator * numerator
}

/// A number of items in a shard, which has fewer than 2³².
fn items_of_a_shard(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

/// The number of items from which on a shard of the greatest depth is full.
fn full_at_last(plan: &GenerationPlan) -> usize {
    if plan.whole.slots() < LARGE { usize::MAX } else { share(plan, FULL_AT_LAST).max(plan.items_that_fit()) }
}

/// Writes a directory's entries for a shard.
fn point(directory: &mut [Place], depth: u8, record: ShardRecord, place: Place) {
    let unused = depth - record.depth();
    let first = index(record.prefix().into()) << unused;
    directory[first..first + (1 << unused)].fill(place);
}

/// The directory for this many bits more; `None` for none.
fn deepened(directory: &[Place], bits: u8) -> Result<Option<Vec<Place>>, OutOfMemory> {
    if bits == 0 {
        return Ok(None);
    }
    let mut deeper = reserved(directory.len() << bits)?;
    deeper.extend(directory.iter().flat_map(|&place| iter::repeat_n(place, 1 << bits)));
    Ok(Some(deeper))
}

/// For [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Generation {
    pub fn assert_consistent(&self, plan: &GenerationPlan, dispatch: Dispatch) {
        let number = plan.number;
        assert!(self.plan == *plan, "generation {number} is {:?}, planned as {plan:?}", self.plan);
        assert!(self.dispatch.kernel() == dispatch.kernel(), "generation {number} has another kernel");
        assert_eq!(self.thin_to, items_of_a_shard(share(plan, THIN)));
        assert_eq!(self.full, [share(plan, FULL), full_at_last(plan)].map(items_of_a_shard));
        let full_from = if self.asks_first() { 0 } else { index(self.full[0].into()) };
        assert_eq!(self.full_from, full_from);
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
            usize::from(self.global_depth - plan.least_depth) + 1,
            "levels of generation {number}"
        );
        assert!(
            self.global_depth == plan.least_depth || self.pool.level(self.global_depth).len() > 0,
            "depth of generation {number}"
        );
        assert_eq!(self.directory.len(), 1 << self.global_depth, "directory of generation {number}");
        for (entry, &place) in self.directory.iter().enumerate() {
            let record = self.pool.record(place);
            let unused = self.global_depth.checked_sub(record.depth()).expect("no shard is deeper than the directory");
            assert_eq!(
                entry >> unused,
                index(record.prefix().into()),
                "entry {entry} of generation {number} leads to another shard"
            );
        }
        let mut len = 0;
        self.pool.assert_consistent(|place, record| {
            let first = index(record.prefix().into()) << (self.global_depth - record.depth());
            assert_eq!(self.directory[first], place, "no entry leads to {record:?} in generation {number}");
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
