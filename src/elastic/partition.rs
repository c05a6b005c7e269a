//! A partition: the part of a growing filter with the items whose spread hashes begin with the partition's bits. Partitions grow
//! independently.

use alloc::vec::Vec;
use core::iter;

use super::{generation::Generation, generation_plan::GenerationPlan, lookup::Shards, shard::BUCKET_SIZE};
use crate::{
    bits::{in_memory, wide},
    filter::{Content, InsertError, InsertErrorKind},
    kernel::Dispatch,
    storage::{OutOfMemory, collected, reserve_exact, shrink_to},
    table::Uniform,
};

/// The bytes that a partition is charged against a limit besides its generations: its struct, and its lock in a shared filter.
pub(crate) const PARTITION_BYTES: usize = 1 << 10;
const _: () = assert!(size_of::<Partition>() <= PARTITION_BYTES);

/// A partition of a growing filter.
pub(crate) struct Partition {
    pub(super) first: Generation,
    /// The later generations. Each is added when the bits of the previous one are used up.
    pub(super) later: Vec<Generation>,
    /// True if a generation has extra copies beside its tables.
    has_extra_copies: bool,
    /// True if so many items of the last generation are extra copies that insertions look for the item there.
    has_frequent_copies: bool,
}

impl Partition {
    /// Returns an empty partition.
    pub fn new(plan: GenerationPlan, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        Ok(Self::with_first(Generation::new(plan, dispatch)?))
    }

    /// Returns a partition whose only generation is `first`.
    pub fn with_first(first: Generation) -> Self {
        let mut partition = Self { first, later: Vec::new(), has_extra_copies: false, has_frequent_copies: false };
        partition.note_copies();
        partition
    }

    /// Adds a later generation.
    pub fn push_generation(&mut self, generation: Generation) -> Result<(), OutOfMemory> {
        reserve_exact(&mut self.later, 1)?;
        self.later.push(generation);
        self.note_copies();
        Ok(())
    }

    /// Updates what insertions and removals need to know of copies, which depends on the partition's content alone. Call this after
    /// every operation that may change the number of extra copies or the generations. Insertions into tables need not call it,
    /// because they only reduce the share of extra copies. Returns true if insertions look for the item in the last generation.
    pub fn note_copies(&mut self) -> bool {
        (self.has_extra_copies, self.has_frequent_copies) = self.extra_and_frequent_copies();
        self.has_frequent_copies
    }

    /// Returns true for extra copies in any generation, and for frequent ones in the last.
    #[inline(never)]
    fn extra_and_frequent_copies(&self) -> (bool, bool) {
        let (has_any, last) = (self.generations().any(Generation::has_extra_copies), self.last());
        (has_any, has_any && last.has_frequent_copies())
    }

    pub fn generations(&self) -> impl Iterator<Item = &Generation> + Clone {
        iter::once(&self.first).chain(&self.later)
    }

    pub(super) fn generations_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Generation> {
        iter::once(&mut self.first).chain(&mut self.later)
    }

    /// Returns the last generation, which takes new items.
    #[inline]
    fn last(&self) -> &Generation {
        self.later.last().unwrap_or(&self.first)
    }

    fn last_mut(&mut self) -> &mut Generation {
        self.later.last_mut().unwrap_or(&mut self.first)
    }

    /// Returns the plan of the first generation, from which those of the others follow.
    #[inline]
    pub fn plan(&self) -> &GenerationPlan {
        self.first.plan()
    }

    /// Returns the number of shards.
    pub fn shards(&self) -> usize {
        self.generations().map(Generation::shards).sum()
    }

    /// Returns the number of buckets in all tables.
    pub fn buckets(&self) -> u64 {
        self.generations().map(Generation::slots).sum::<u64>() / u64::from(BUCKET_SIZE)
    }

    /// Returns the number of slots in all tables, and of different items in lists.
    pub fn slots(&self) -> u64 {
        self.generations().map(|generation| generation.slots() + generation.items_in_lists()).sum()
    }

    #[inline]
    pub fn contains(&self, hash: Uniform) -> bool {
        if self.has_later() { self.any_generation_contains(hash) } else { (&self.first).contains(hash) }
    }

    /// Returns true if a hash matches an item in all bits that are known of it, not only in those that lookups compare.
    #[inline]
    pub fn contains_exactly(&self, hash: Uniform) -> bool {
        self.contains(hash) && ((&self.first).contains_exactly(self.plan().first_key(hash)) || self.later_contains(hash))
    }

    /// Returns true if there are later generations.
    #[inline]
    pub fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// Returns the first generation, into which [`insert`](Self::insert) inserts, or `None` if insertions look up the item first.
    #[inline]
    pub fn simple(&self) -> Option<&Generation> {
        if self.looks_first() { None } else { Some(&self.first) }
    }

    /// Returns [`simple`](Self::simple) to change.
    #[inline]
    pub fn simple_mut(&mut self) -> Option<&mut Generation> {
        if self.looks_first() { None } else { Some(&mut self.first) }
    }

    /// Returns true if insertions look up the item first: in all generations but the last one, and in this, too, if it has many
    /// copies.
    #[inline]
    fn looks_first(&self) -> bool {
        self.has_later() || self.has_frequent_copies
    }

    /// Prefetches the buckets of a hash in the first generation.
    pub fn prefetch(&self, hash: Uniform) {
        self.first.prefetch(self.plan().first_key(hash));
    }

    #[cold]
    #[inline(never)]
    fn any_generation_contains(&self, hash: Uniform) -> bool {
        (&self.first).contains(hash) || self.later_contains(hash)
    }

    /// Returns true if a later generation contains a hash.
    #[cold]
    pub fn later_contains(&self, hash: Uniform) -> bool {
        self.later.iter().any(|generation| generation.contains_exactly(generation.plan().key(hash)))
    }

    /// Returns the number of copies of a hash in all generations, extra copies included.
    pub fn count(&self, hash: Uniform) -> u32 {
        self.generations().map(|generation| generation.count_hash(hash)).fold(0, u32::saturating_add)
    }

    /// Inserts a hash if that needs neither growth nor a lookup of the item. Otherwise changes nothing, and returns false: then use
    /// [`add`](Self::add).
    #[inline]
    pub fn insert(&mut self, hash: Uniform) -> bool {
        self.simple_mut().is_some_and(|first| first.insert(first.plan().first_key(hash)))
    }

    /// Inserts a hash, and grows if necessary. The charge may rise by at most `budget` bytes. On failure, nothing changes.
    #[cold]
    #[inline(never)]
    pub fn add(&mut self, hash: Uniform, budget: usize) -> Result<(), InsertError> {
        let result = self.count_or_store(hash, budget);
        self.note_copies();
        result
    }

    /// If an earlier generation has the item, it is counted there: an item is one item, however far the filter has grown. Otherwise
    /// it goes into the last generation.
    fn count_or_store(&mut self, hash: Uniform, budget: usize) -> Result<(), InsertError> {
        let (earlier, looks_first) = (self.later.len(), self.has_frequent_copies);
        for generation in self.generations_mut().take(earlier) {
            let key = generation.plan().key(hash);
            if generation.add_if_present(key, generation.plan().extra(key), 1, budget)? {
                return Ok(());
            }
        }
        let last = self.last_mut();
        let error = match last.add(last.plan().key(hash), 1, looks_first, budget) {
            Ok(true) => return Ok(()),
            Ok(false) => match self.add_generation(hash, budget) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            },
            Err(error) => error,
        };
        // Tries earlier generations, but not after errors about memory: a replica with more memory must store the item in the
        // same place.
        let has_room = error.kind() == InsertErrorKind::Crowded
            && self.generations_mut().rev().any(|generation| generation.insert_even_if_full(generation.plan().key(hash)));
        if has_room { Ok(()) } else { Err(error) }
    }

    /// Adds a generation with one item. On failure, nothing changes.
    fn add_generation(&mut self, hash: Uniform, budget: usize) -> Result<(), InsertError> {
        let mut generation = self.next_generation()?;
        generation.add(generation.plan().key(hash), 1, false, usize::MAX)?;
        InsertError::check_budget(generation.charged_bytes().saturating_add(size_of::<Generation>()), budget)?;
        Ok(self.push_generation(generation)?)
    }

    /// Returns an empty generation that follows the last one. A snapshot stores its number in one byte; that many generations are in
    /// use only if items were chosen, since each may hold eight times as many as the previous one.
    pub(super) fn next_generation(&self) -> Result<Generation, InsertError> {
        let number = self.last().plan().number.checked_add(1).ok_or(InsertError::of(InsertErrorKind::Crowded))?;
        Ok(Generation::new(self.plan().generation(number), self.dispatch())?)
    }

    /// Returns a copy, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let later = collected(self.later.iter().map(Generation::try_clone))?;
        Ok(Self { first: self.first.try_clone()?, later, ..*self })
    }

    /// Removes one copy of a hash, from the last generation that contains it. Later generations know more bits of an item. If two
    /// items collide in an earlier generation, the copy with fewer known bits stays, and still matches both. Frees memory if two
    /// shards have become underfull.
    #[inline]
    pub fn remove(&mut self, hash: Uniform) -> bool {
        if self.has_extra_copies || self.has_later() {
            return self.remove_from_any(hash);
        }
        let is_removed = self.first.remove_stored(self.plan().first_key(hash));
        // A list may have become part of a table.
        if self.first.has_extra_copies() {
            self.note_copies();
        }
        is_removed
    }

    /// Removes one copy where there are extra copies or later generations. A generation gives up extra copies first, so that its
    /// table keeps one copy as long as there are others.
    #[cold]
    #[inline(never)]
    fn remove_from_any(&mut self, hash: Uniform) -> bool {
        let is_removed = self.generations_mut().rev().any(|generation| {
            let key = generation.plan().key(hash);
            generation.remove(key, generation.plan().extra(key))
        });
        if is_removed {
            self.drop_empty_generations();
        }
        is_removed
    }

    /// Drops the last generations if they are empty.
    pub(super) fn drop_empty_generations(&mut self) {
        let generations = self.later.len();
        while self.later.pop_if(|generation| generation.table_len() == 0).is_some() {}
        if self.later.len() < generations {
            shrink_to(&mut self.later, 0);
        }
        self.note_copies();
    }

    /// Merges sibling shards, as far as there is memory for it.
    pub fn shrink(&mut self) {
        self.generations_mut().for_each(Generation::merge_all_siblings);
        self.note_copies();
    }

    /// Removes all items, and frees the memory by which the partition has grown. If memory for its first tables cannot be
    /// allocated, it keeps the tables of the first generation.
    pub fn clear(&mut self) {
        if let Ok(empty) = Self::new(*self.plan(), self.dispatch()) {
            *self = empty;
        } else {
            self.later = Vec::new();
            self.first.remove_all();
            self.note_copies();
        }
    }

    /// Returns the probability that this partition finds a hash that was never inserted.
    pub fn false_positive_rate(&self) -> f64 {
        let extra_copies = self.item_count() - wide(self.table_len());
        self.generations().map(|generation| generation.false_positive_rate(extra_copies)).sum::<f64>().min(1.0)
    }

    pub fn dispatch(&self) -> Dispatch {
        self.first.dispatch()
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
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

    /// Returns the number of items in the tables, and of different items in lists.
    pub fn table_len(&self) -> usize {
        self.generations().map(Generation::table_len).sum()
    }

    /// Returns the number of distinct items.
    pub fn distinct(&self) -> usize {
        self.generations().map(Shards::distinct).sum()
    }

    /// Adds up all copies of all items, each known by the bits that the first generation knows of it.
    pub fn content(&self, salt: u64) -> Content {
        let mut content = Content::new(salt);
        self.generations().for_each(|generation| generation.add_to(&mut content, self.plan()));
        content
    }

    /// Returns the bytes of all tables with their padding, and of lists.
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
}

/// The checks of [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Partition {
    pub fn assert_consistent(&self) {
        for (position, generation) in self.generations().enumerate() {
            let number = generation.plan().number;
            assert_eq!(usize::from(number), position, "the number of a generation");
            generation.assert_consistent(&self.plan().generation(number), self.dispatch());
        }
        assert!(self.later.last().is_none_or(|generation| generation.table_len() > 0), "the last generation is empty");
        let noted = (self.has_extra_copies, self.has_frequent_copies);
        assert_eq!(noted, self.extra_and_frequent_copies(), "extra and frequent copies");
        assert!(
            self.size_in_bytes() <= self.charged_bytes(),
            "{} bytes, but charged for {}",
            self.size_in_bytes(),
            self.charged_bytes()
        );
    }
}
