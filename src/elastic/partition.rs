//! A partition: the part of a growing filter with the items whose spread hashes begin with the partition's bits. Partitions grow
//! independently.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use alloc::vec::Vec;
use core::iter;

use super::{
    ElasticParams,
    generation::Generation,
    pool::{Place, ShardRecord},
    shard::Key,
};
use crate::{
    bits::{in_memory, wide},
    filter::{Combine, Content, InsertError, InsertErrorKind, Located, Lookup},
    kernel::{Dispatch, Task},
    storage::{OutOfMemory, reserve_exact, reserved, shrink_to},
    table::{
        Fingerprint, Form as _, Geometry, Instructions, Narrow, Uniform,
        copies::{self, Copies},
    },
};

/// The bytes that a partition is charged against a limit besides its generations: its struct, and its lock in a shared filter.
pub(crate) const PARTITION_BYTES: usize = 1 << 10;
const _: () = assert!(size_of::<Partition>() <= PARTITION_BYTES);

/// A partition of a growing filter.
#[derive(Clone)]
pub(crate) struct Partition {
    params: ElasticParams,
    first: Generation,
    /// The later generations. Each is added when the bits of the previous one are used up.
    later: Vec<Generation>,
    /// True if a generation has extra copies.
    has_extra_copies: bool,
    dispatch: Dispatch,
}

impl Partition {
    /// Returns an empty partition.
    pub fn new(params: &ElasticParams, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let plan = params.generation(0);
        let first =
            if plan.begins_as_list() { Generation::without_shards(plan, dispatch) } else { Generation::new(plan, dispatch)? };
        Ok(Self::with_first(params, first))
    }

    /// Returns a partition whose only generation is `first`.
    pub fn with_first(params: &ElasticParams, first: Generation) -> Self {
        let dispatch = first.dispatch();
        Self { params: *params, first, later: Vec::new(), has_extra_copies: false, dispatch }
    }

    /// Adds a later generation.
    pub fn push_generation(&mut self, generation: Generation) -> Result<(), OutOfMemory> {
        reserve_exact(&mut self.later, 1)?;
        self.later.push(generation);
        Ok(())
    }

    /// Sets the extra copies to those of a snapshot, which must be valid.
    pub fn set_extra_copies(&mut self, copies: copies::LongEntries<'_>) -> Result<(), OutOfMemory> {
        self.generations_mut()
            .try_for_each(|generation| generation.set_extra_copies(&copies.of_generation(generation.number())))?;
        self.update_copy_state();
        Ok(())
    }

    /// Returns how many copies of the item with this class key are in the tables or the item list of a generation; 0 if
    /// generation or key are invalid.
    pub fn count_class_in_table(&self, generation: u8, class_key: copies::ClassKey) -> u32 {
        self.generations().nth(generation.into()).map_or(0, |generation| generation.count_class_in_table(class_key))
    }

    /// Recomputes whether there are extra copies, and whether insertions look up the item first. Both depend on the partition's
    /// content alone. Call this after every operation that may change the number of extra copies or the generations. Insertions
    /// into tables need not call it, because they only reduce the share of extra copies.
    pub fn update_copy_state(&mut self) {
        let (had_extra_copies, has_extra_copies) = (self.has_extra_copies, self.generations().any(Generation::has_extra_copies));
        self.has_extra_copies = has_extra_copies;
        if has_extra_copies || had_extra_copies {
            let mut items = self.item_count();
            let (mut extra, mut threshold) = (0_u64, 0_u64);
            for generation in self.generations() {
                extra = extra.saturating_add(generation.extra_copy_totals().0);
                threshold = threshold.saturating_add(generation.look_up_first_threshold(items));
                items = items.saturating_sub(generation.item_count());
            }
            let looks_up_first = has_extra_copies && extra >= threshold;
            self.generations_mut().for_each(|generation| generation.set_looks_up_first(false));
            self.last_mut().set_looks_up_first(looks_up_first);
        }
    }

    pub fn generations(&self) -> impl Iterator<Item = &Generation> + Clone {
        iter::once(&self.first).chain(&self.later)
    }

    fn generations_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Generation> {
        iter::once(&mut self.first).chain(&mut self.later)
    }

    /// Returns the generation with this index; the first one has index 0.
    fn generation_mut(&mut self, at: usize) -> &mut Generation {
        if at == 0 { &mut self.first } else { &mut self.later[at - 1] }
    }

    /// Returns the last generation, which takes new items.
    #[inline]
    pub fn last(&self) -> &Generation {
        self.later.last().unwrap_or(&self.first)
    }

    #[inline]
    pub fn last_mut(&mut self) -> &mut Generation {
        self.later.last_mut().unwrap_or(&mut self.first)
    }

    pub fn params(&self) -> &ElasticParams {
        &self.params
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.generations().map(Generation::shards).sum()
    }

    /// Returns the number of slots in all shards, or the number of items in the list.
    pub fn slots(&self) -> u64 {
        self.params.slots_of(self.shards()) + wide(self.list_len())
    }

    #[inline]
    pub fn contains(&self, hash: Uniform) -> bool {
        self.dispatch.run(Find { partition: self, hash })
    }

    /// Returns true if a hash matches an item in all bits that are known of it, not only in those that lookups compare.
    #[inline]
    pub fn contains_exactly(&self, hash: Uniform) -> bool {
        self.contains(hash) && self.count(hash) > 0
    }

    /// Returns the key of a hash.
    #[inline]
    pub fn key(&self, hash: Uniform) -> Key {
        Key::new(&self.params.address(), self.params.shares().stream(hash), hash)
    }

    /// Returns the layout of the first generation's tables.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        self.first.geometry()
    }

    /// Returns a stream's table in the first generation, or `None` if the partition has no tables.
    #[inline(always)]
    pub fn table(&self, stream: u64) -> Option<&[u8]> {
        self.first.table(stream)
    }

    /// Returns the path from streams to the tables of the first generation.
    #[cfg(x86_kernels)]
    #[inline(always)]
    pub fn routes(&self) -> super::generation::Routes<'_> {
        self.first.routes()
    }

    /// Returns true if the partition has an item list instead of tables.
    #[inline]
    pub fn is_list(&self) -> bool {
        self.first.is_list()
    }

    /// Returns true if there are later generations.
    #[inline]
    pub fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// Looks up an item in the list. Parameters are those that [`Find`] has in registers.
    #[cold]
    #[inline(never)]
    fn list_contains(&self, first: u64, second: u64, low: Fingerprint, stream: u64) -> bool {
        self.first.list_contains(Key::from_parts((first, second), low, stream))
    }

    /// Prefetches the buckets of a hash in the last generation.
    pub fn prefetch(&self, hash: Uniform) {
        self.last().prefetch(self.key(hash));
    }

    /// Returns true if any generation contains a hash.
    #[cold]
    #[inline(never)]
    fn any_generation_contains(&self, hash: Uniform) -> bool {
        let key = self.key(hash);
        self.generations().any(|generation| generation.contains(key))
    }

    /// Returns true if a later generation contains a hash.
    #[cold]
    pub fn later_contains(&self, hash: Uniform) -> bool {
        let key = self.key(hash);
        self.later.iter().any(|generation| generation.contains(key))
    }

    /// Returns the number of copies of a hash in all generations, extra copies included.
    pub fn count(&self, hash: Uniform) -> u32 {
        let key = self.key(hash);
        self.generations().map(|generation| generation.count(key)).fold(0, u32::saturating_add)
    }

    /// Inserts a hash into the last generation if that needs no growth. Otherwise, or if insertions look up the item first, changes
    /// nothing and returns the place of its shard.
    #[inline]
    pub fn insert(&mut self, hash: Uniform) -> Result<(), Place> {
        let key = self.key(hash);
        self.last_mut().insert(key)
    }

    /// Inserts or counts a hash for which [`insert`](Self::insert) has returned this place, if insertions look up the item first.
    /// Returns false, and changes nothing, if it needs growth, or if `is_limited` and it might change the partition's charge.
    pub fn insert_after_lookup(&mut self, hash: Uniform, place: Place, is_limited: bool) -> bool {
        self.last().looks_up_first() && self.look_up_then_insert(self.key(hash), place, is_limited)
    }

    #[inline(never)]
    fn look_up_then_insert(&mut self, key: Key, place: Place, is_limited: bool) -> bool {
        for generation in self.generations_mut().rev().filter(|generation| generation.contains(key)) {
            if generation.count_one_more(key, !is_limited) {
                // One more copy cannot change whether insertions look up the item first.
                return true;
            }
            if generation.count_in_table(key) > 0 {
                return false;
            }
        }
        let is_inserted = self.last_mut().insert_unless_full(place, key);
        self.update_copy_state();
        is_inserted
    }

    /// Inserts a hash for which [`insert`](Self::insert) has returned this place, and grows if necessary. The charge may rise by
    /// at most `budget` bytes. On failure, nothing changes.
    #[cold]
    pub fn insert_growing(&mut self, hash: Uniform, place: Place, budget: usize) -> Result<(), InsertError> {
        let key = self.key(hash);
        let result = self.insert_or_count(place, key, budget);
        self.update_copy_state();
        result
    }

    fn insert_or_count(&mut self, place: Place, key: Key, budget: usize) -> Result<(), InsertError> {
        if self.is_list() && !self.first.list_contains(key) {
            return self.insert_into_list(key, budget);
        }
        // Counts a copy of a stored item, so that copies never make the partition grow.
        let may_be_distinct = self.may_be_distinct(key);
        if let Some(generation) = self
            .generations_mut()
            .rev()
            .find(|generation| generation.contains_exactly(key))
            .filter(|generation| generation.is_likely_copy(key, may_be_distinct))
        {
            return generation.add_extra_copies(key, 1, budget);
        }
        let last = self.last_mut();
        if last.looks_up_first() && last.insert_unless_full(place, key) {
            return Ok(());
        }
        let error = match last.insert_growing(place, key, budget) {
            Ok(true) => return Ok(()),
            Ok(false) => match self.add_generation(budget, Some(key)) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            },
            Err(error) => error,
        };
        // Tries earlier generations, but not after errors about memory: a replica with more memory must store the item in the
        // same place.
        let may_go_elsewhere = matches!(error.kind(), InsertErrorKind::Crowded | InsertErrorKind::Generations);
        let has_room =
            may_go_elsewhere && self.generations_mut().rev().any(|generation| generation.insert_without_splitting(key));
        if has_room { Ok(()) } else { Err(error) }
    }

    /// Inserts an absent item into the list. If the list has no room, moves all items into tables.
    fn insert_into_list(&mut self, key: Key, budget: usize) -> Result<(), InsertError> {
        if !self.first.list_has_room() {
            match self.to_tables(Some(key)) {
                Ok(grown) => return self.replace_with(grown, budget),
                // Chosen items that do not fit into tables stay in the list, so that other items are not refused.
                Err(error) if matches!(error.kind(), InsertErrorKind::Crowded | InsertErrorKind::Generations) => {}
                Err(error) => return Err(error),
            }
        }
        self.first.insert_into_list(key, budget)
    }

    /// Returns a partition with tables that hold the items of this one's list, and `key` if it is given.
    fn to_tables(&self, key: Option<Key>) -> Result<Self, InsertError> {
        let mut grown = Self::with_first(&self.params, Generation::new(self.params.generation(0), self.dispatch)?);
        for (key, copies) in self.first.list_items().chain(key.map(|key| (key, 1))) {
            grown.insert_copies(key, 0, copies, usize::MAX)?;
        }
        Ok(grown)
    }

    /// Replaces the partition if the charge rises by at most `budget` bytes.
    fn replace_with(&mut self, other: Self, budget: usize) -> Result<(), InsertError> {
        let needed = other.charged_bytes().saturating_sub(self.charged_bytes());
        if needed > budget {
            return Err(InsertError::limit(needed));
        }
        *self = other;
        Ok(())
    }

    /// Returns true if an item that matches a stored one may be a distinct item for which a split would make room. It is then not
    /// counted as a copy: up to `max_capacity`, filters of the same distinct items must have the same shards.
    fn may_be_distinct(&self, key: Key) -> bool {
        !self.has_extra_copies && !self.has_later() && self.first.may_split(key)
    }

    /// Adds an empty generation, and inserts `key` into it if it is given. On failure, nothing changes.
    fn add_generation(&mut self, budget: usize, key: Option<Key>) -> Result<(), InsertError> {
        let number = self.last().number().checked_add(1).filter(|&number| usize::from(number) < self.params.max_generations());
        let number = number.ok_or(InsertError::of(InsertErrorKind::Generations))?;
        let plan = self.params.generation(number);
        let needed = Generation::empty_charged_bytes(&plan).saturating_add(size_of::<Generation>());
        if needed > budget {
            return Err(InsertError::limit(needed));
        }
        let mut generation = Generation::new(plan, self.dispatch)?;
        // An empty shard has room for any item.
        let is_inserted = key.is_none_or(|key| generation.insert(key).is_ok());
        debug_assert!(is_inserted);
        Ok(self.push_generation(generation)?)
    }

    /// Returns a copy, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut later = reserved(self.later.len())?;
        for generation in &self.later {
            later.push(generation.try_clone()?);
        }
        Ok(Self { first: self.first.try_clone()?, later, ..*self })
    }

    /// Returns the merge of this partition and the one with the same index in another filter. `how` determines the number of
    /// copies of each item. The result may be charged at most `max_charge` bytes.
    ///
    /// Inserting an item takes longer than copying it, so a sum starts with a copy of the larger partition.
    pub fn merged(&self, other: &Self, how: Combine, max_charge: usize) -> Result<Self, InsertError> {
        let (copied, inserted) =
            if how == Combine::Sum && self.item_count() < other.item_count() { (other, self) } else { (self, other) };
        if copied.charged_bytes() > max_charge {
            return Err(InsertError::limit(copied.charged_bytes() - self.charged_bytes()));
        }
        let mut partition = copied.try_clone()?;
        partition.set_dispatch(self.dispatch);
        partition.insert_all_of(inserted, how, max_charge)?;
        Ok(partition)
    }

    /// Inserts all items of another partition, each into the generation with the same number. A union inserts only the copies
    /// that this generation lacks. The partition may be charged at most `max_charge` bytes. On failure, some items have been
    /// inserted.
    fn insert_all_of(&mut self, other: &Self, how: Combine, max_charge: usize) -> Result<(), InsertError> {
        for (at, generation) in other.generations().enumerate() {
            self.add_generations_up_to(at, max_charge)?;
            let mut insert = |key, copies: u32| {
                let ours = if how == Combine::Union { self.generation_mut(at).count(key) } else { 0 };
                self.insert_copies(key, at, copies.saturating_sub(ours), max_charge)
            };
            generation.list_items().try_for_each(|(key, copies)| insert(key, copies))?;
            for (shard, prefix) in generation.shards_bit_reversed() {
                let mut result = Ok(());
                shard.each_class(&mut |(bucket, _), fingerprint, in_table| {
                    let key = Key::from_stored(shard.params(), prefix, bucket, fingerprint);
                    result = insert(key, in_table.saturating_add(generation.extra_copies(key)));
                    result.is_ok()
                });
                result?;
            }
        }
        self.drop_empty_generations();
        self.update_copy_state();
        Ok(())
    }

    /// Adds empty generations up to the one with this number.
    fn add_generations_up_to(&mut self, number: usize, max_charge: usize) -> Result<(), InsertError> {
        if number > 0 && self.is_list() {
            self.replace_with(self.to_tables(None)?, max_charge.saturating_sub(self.charged_bytes()))?;
        }
        while self.later.len() < number {
            self.add_generation(max_charge.saturating_sub(self.charged_bytes()), None)?;
        }
        // Insertions look up the item first in the last generation only, which may be a new one.
        self.update_copy_state();
        Ok(())
    }

    /// Inserts copies of an item into the generation with index `at`. As many go into tables as with single insertions; the
    /// others are counted together. The partition may be charged at most `max_charge` bytes. On failure, some copies have been
    /// inserted.
    fn insert_copies(&mut self, key: Key, at: usize, copies: u32, max_charge: usize) -> Result<(), InsertError> {
        let mut left = copies;
        while left > 0 {
            if self.is_list() && !self.first.list_contains(key) {
                self.insert_into_list(key, max_charge.saturating_sub(self.charged_bytes()))?;
                self.update_copy_state();
                left -= 1;
                continue;
            }
            let looks_up_first = self.last().looks_up_first();
            let generation = self.generation_mut(at);
            let is_counted = looks_up_first && generation.contains_exactly(key);
            if !is_counted && generation.insert_unless_full(generation.place(key), key) {
                left -= 1;
                continue;
            }
            let (may_be_distinct, budget) = (self.may_be_distinct(key), max_charge.saturating_sub(self.charged_bytes()));
            let generation = self.generation_mut(at);
            if generation.contains_exactly(key) && generation.is_likely_copy(key, may_be_distinct) {
                generation.add_extra_copies(key, left, budget)?;
                left = 0;
            } else if generation.insert_growing(generation.place(key), key, budget)? || generation.insert_without_splitting(key) {
                left -= 1;
            } else {
                return Err(InsertError::of(InsertErrorKind::Generations));
            }
            self.update_copy_state();
        }
        Ok(())
    }

    /// Removes one copy of a hash, from the last generation that contains it. Later generations know more bits of an item. If two
    /// items collide in an earlier generation, the copy with fewer known bits stays, and still matches both. Frees memory if two
    /// shards have become underfull.
    #[inline]
    pub fn remove(&mut self, hash: Uniform) -> bool {
        let key = self.key(hash);
        if self.has_extra_copies {
            return self.remove_with_extra_copies(key);
        }
        if self.has_later() && self.remove_later(key) {
            return true;
        }
        let is_removed = self.first.remove_and_merge(key);
        if self.first.may_fit_list() {
            self.drop_empty_generations();
        }
        is_removed
    }

    /// Removes one copy where there are extra copies. A generation gives up extra copies first, so that its table keeps one copy as
    /// long as there are others.
    #[cold]
    fn remove_with_extra_copies(&mut self, key: Key) -> bool {
        let is_removed = self
            .generations_mut()
            .rev()
            .any(|generation| generation.remove_extra_copies(key, 1) == 1 || generation.remove_and_merge(key));
        self.drop_empty_generations();
        self.update_copy_state();
        is_removed
    }

    /// Removes one copy from later generations.
    #[cold]
    fn remove_later(&mut self, key: Key) -> bool {
        let is_removed = self.later.iter_mut().rev().any(|generation| generation.remove_and_merge(key));
        if is_removed {
            self.drop_empty_generations();
        }
        is_removed
    }

    /// Drops the last generations if they are empty. If only the first one is left and has few items, replaces its shards by a
    /// list.
    #[inline(never)]
    fn drop_empty_generations(&mut self) {
        let generations = self.later.len();
        while self.later.pop_if(|generation| generation.len() == 0).is_some() {}
        if self.later.len() < generations {
            shrink_to(&mut self.later, 0);
        }
        if self.later.is_empty() && self.first.shrink_to_list() {
            self.update_copy_state();
        }
    }

    /// Drops empty generations and merges sibling shards, as far as there is memory for it.
    pub fn shrink(&mut self) {
        self.drop_empty_generations();
        for generation in self.generations_mut() {
            generation.merge_all_siblings();
        }
        self.update_copy_state();
    }

    /// Removes all items, and frees the memory by which the partition has grown. If memory for its first tables cannot be
    /// allocated, it keeps the tables of the first generation.
    pub fn clear(&mut self) {
        if let Ok(empty) = Self::new(&self.params, self.dispatch) {
            *self = empty;
        } else {
            self.later = Vec::new();
            self.first.remove_all();
            self.update_copy_state();
        }
    }

    /// Returns the probability that this partition finds a hash that was never inserted.
    pub fn false_positive_rate(&self) -> f64 {
        let extra_copies = self.item_count() - wide(self.table_len());
        self.generations().map(|generation| generation.false_positive_rate(extra_copies)).sum::<f64>().min(1.0)
    }

    pub fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.dispatch = dispatch;
        self.generations_mut().for_each(|generation| generation.set_dispatch(dispatch));
    }

    /// Returns the number of items, extra copies included. It may exceed a `usize` of 32 bits.
    pub fn item_count(&self) -> u64 {
        self.generations().map(Generation::item_count).fold(0, u64::saturating_add)
    }

    /// Returns [`item_count`](Self::item_count), or `usize::MAX` if that is less.
    pub fn len(&self) -> usize {
        in_memory(self.item_count())
    }

    /// Returns the number of items in the tables or in the item list.
    pub fn table_len(&self) -> usize {
        self.generations().map(Generation::table_len).sum()
    }

    /// Returns the number of distinct items. An item counts once in each generation that has it.
    pub fn distinct(&self) -> usize {
        let shards = self.generations().flat_map(Generation::shards_bit_reversed);
        self.first.list().len() + shards.map(|(shard, _)| shard.distinct()).sum::<usize>()
    }

    /// Adds up all copies of all items, each known by the bits that the first generation knows of it.
    pub fn content(&self, salt: u64) -> Content {
        let (mut content, first) = (Content::new(salt), &self.first.plan().whole);
        for generation in self.generations() {
            generation.shards_bit_reversed().for_each(|(shard, prefix)| shard.add_to(&mut content, first, prefix));
            let in_list = generation.list().keys().map(|key| (key, 1));
            let extra = generation.extra_copy_list().into_iter().flat_map(Copies::iter);
            for (key, copies) in in_list.chain(extra) {
                if let Some(item) = generation.plan().item_of(key) {
                    item.add_to(&mut content, first, copies);
                }
            }
        }
        content
    }

    /// Returns all tables: the number of the generation, the record, and the bytes without padding.
    pub fn tables(&self) -> impl Iterator<Item = (u8, ShardRecord, &[u8])> + Clone {
        self.generations().flat_map(move |generation| {
            generation.tables_in_order().map(move |(record, table)| (generation.number(), record, table))
        })
    }

    /// Returns the extra copies, starting at a slot in the list of the generation with this number, with their slots.
    pub fn extra_copies_from(
        &self,
        number: u8,
        slot: usize,
    ) -> impl Iterator<Item = (usize, (u8, copies::ClassKey, u32))> + Clone {
        let generations = self.generations().filter(move |generation| generation.number() >= number);
        generations.filter_map(|generation| Some((generation.number(), generation.extra_copy_list()?))).flat_map(
            move |(generation, copies)| {
                let entries = copies.iter_from(if generation == number { slot } else { 0 });
                entries.map(move |(slot, (key, copies))| (slot, (generation, key, copies)))
            },
        )
    }

    /// Returns the class keys in the item list, in order.
    pub fn list_keys(&self) -> impl Iterator<Item = copies::ClassKey> {
        self.first.list().keys()
    }

    /// Returns the number of items in the item list.
    pub fn list_len(&self) -> usize {
        self.first.list().len()
    }

    /// Returns the bytes of a class key of the item list in a snapshot.
    pub fn key_bytes(&self) -> usize {
        self.first.key_bytes()
    }

    /// Returns the number of items with extra copies. An item counts once in each generation where it has some.
    pub fn items_with_extra_copies(&self) -> u64 {
        self.generations().map(|generation| wide(generation.extra_copy_totals().1)).sum()
    }

    /// Returns the bytes of all tables with their padding, and of the item list.
    pub fn table_bytes(&self) -> usize {
        self.generations().map(Generation::table_bytes).sum()
    }

    pub fn size_in_bytes(&self) -> usize {
        self.later.capacity() * size_of::<Generation>() + self.generations().map(Generation::size_in_bytes).sum::<usize>()
    }

    /// Returns the bytes that the partition is charged against a limit: see [`Generation::charged_bytes`].
    pub fn charged_bytes(&self) -> usize {
        let later = self.later.len() * size_of::<Generation>();
        self.generations().map(Generation::charged_bytes).fold(PARTITION_BYTES + later, usize::saturating_add)
    }

    /// Returns the bytes that an empty partition with its first tables is charged.
    pub fn empty_charged_bytes(params: &ElasticParams) -> usize {
        Generation::empty_charged_bytes(&params.generation(0)).saturating_add(PARTITION_BYTES)
    }
}

/// A lookup, compiled as one function from the hash to the bits of the table. If there are later generations, a separate function
/// looks up all generations.
struct Find<'a> {
    partition: &'a Partition,
    hash: Uniform,
}

impl Task for Find<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<I: Instructions>(self, instructions: I) -> bool {
        let Self { partition, hash } = self;
        if partition.has_later() {
            return partition.any_generation_contains(hash);
        }
        // The first generation has no spare bits, so only the low fingerprint is compared.
        let (buckets, fingerprint) = partition.params.address().buckets(hash);
        let stream = partition.params.shares().stream(hash);
        let Some(table) = partition.table(stream) else {
            return partition.list_contains(buckets.0, buckets.1, fingerprint, stream);
        };
        match partition.geometry() {
            Geometry::Narrow(geometry) => Narrow::read(geometry, table, instructions, Lookup { buckets, fingerprint }),
            // A separate function, so that this one need not save its registers.
            geometry => partition.dispatch.read(geometry, table, Located::new(buckets, fingerprint)),
        }
    }
}

/// The checks of [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Partition {
    pub fn assert_consistent(&self) {
        for (position, generation) in self.generations().enumerate() {
            let number = generation.number();
            assert_eq!(usize::from(number), position, "the number of a generation");
            generation.assert_consistent(&self.params.generation(number), self.dispatch);
        }
        assert!(self.later.last().is_none_or(|generation| generation.len() > 0), "the last generation is empty");
        assert!(
            !self.is_list() || self.later.is_empty(),
            "the partition has later generations, but only a list in the first one"
        );
        let is_needed = self.len() > 0 || self.is_list() || !self.params.generation(0).begins_as_list();
        assert!(is_needed, "an empty partition should be a list, but has shards");
        assert_eq!(self.has_extra_copies, self.generations().any(Generation::has_extra_copies), "has_extra_copies");
        let mut updated = self.clone();
        updated.update_copy_state();
        let looks_up_first = |partition: &Self| partition.generations().map(Generation::looks_up_first).collect::<Vec<_>>();
        assert_eq!(looks_up_first(&updated), looks_up_first(self), "generations that look up items first");
        assert!(
            self.size_in_bytes() <= self.charged_bytes(),
            "{} bytes, but charged for {}",
            self.size_in_bytes(),
            self.charged_bytes()
        );
    }
}
