//! A partition: the part of a growing filter that has the items whose hash, spread, begins with certain bits. Partitions grow
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
    bits::wide,
    filter::{Combine, InsertError, InsertErrorKind, Located, Sought},
    kernel::{Dispatch, Task},
    storage::{OutOfMemory, reserve_exact, reserved, shrink_to},
    table::{Fingerprint, Form as _, Geometry, Instructions, Narrow, Uniform, copies},
};

/// What a partition is charged against a limit beside its generations: its struct, and the lock of one that is shared.
pub(crate) const PARTITION_BYTES: usize = 1 << 10;
const _: () = assert!(size_of::<Partition>() <= PARTITION_BYTES);

/// See the module.
#[derive(Clone)]
pub(crate) struct Partition {
    params: ElasticParams,
    first: Generation,
    /// Added when the bits of the generation before were used up.
    later: Vec<Generation>,
    /// True if a generation has further copies.
    has_further: bool,
    dispatch: Dispatch,
}

impl Partition {
    pub fn new(params: &ElasticParams, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let plan = params.generation(0);
        let first = if plan.begins_unused() { Generation::unused(plan, dispatch) } else { Generation::new(plan, dispatch)? };
        Ok(Self::with_first(params, first))
    }

    /// A partition with this first generation alone.
    pub fn with_first(params: &ElasticParams, first: Generation) -> Self {
        let dispatch = first.dispatch();
        Self { params: *params, first, later: Vec::new(), has_further: false, dispatch }
    }

    /// Adds a later generation.
    pub fn push_generation(&mut self, generation: Generation) -> Result<(), OutOfMemory> {
        reserve_exact(&mut self.later, 1)?;
        self.later.push(generation);
        Ok(())
    }

    /// Adds the further copies of a snapshot, which are valid.
    pub fn set_further(&mut self, copies: copies::LongEntries<'_>) -> Result<(), OutOfMemory> {
        self.generations_mut().try_for_each(|generation| generation.set_further(&copies.of_generation(generation.number())))?;
        self.note_copies();
        Ok(())
    }

    /// The number of copies in the tables of what a key stands for in the generation with this number; 0 if that is nothing.
    pub fn occurrences_of(&self, generation: u8, listed: copies::ClassKey) -> u32 {
        self.generations().nth(generation.into()).map_or(0, |generation| generation.occurrences_of(listed))
    }

    /// To be called after everything that may have changed the number of further copies, or where items go: whether insertions ask
    /// first follows from what the partition holds. Insertions into tables need not call it: they only make further copies a
    /// smaller share.
    pub fn note_copies(&mut self) {
        let (had_further, has_further) = (self.has_further, self.generations().any(Generation::has_further));
        self.has_further = has_further;
        if has_further || had_further {
            let (further, many) = self.generations().fold((0_u64, 0_u64), |(further, many), generation| {
                (further.saturating_add(generation.further_totals().0), many.saturating_add(generation.many_copies()))
            });
            let asks_first = has_further && further >= many;
            self.generations_mut().for_each(|generation| generation.set_asks_first(false));
            self.last_mut().set_asks_first(asks_first);
        }
    }

    pub fn generations(&self) -> impl Iterator<Item = &Generation> + Clone {
        iter::once(&self.first).chain(&self.later)
    }

    fn generations_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut Generation> {
        iter::once(&mut self.first).chain(&mut self.later)
    }

    /// The generation with this index, the first one included.
    fn generation_mut(&mut self, at: usize) -> &mut Generation {
        if at == 0 { &mut self.first } else { &mut self.later[at - 1] }
    }

    /// The generation that takes new items.
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

    /// The number of shards.
    pub fn shards(&self) -> usize {
        self.generations().map(Generation::shards).sum()
    }

    /// The number of slots of all shards; or of the items in a list instead.
    pub fn slots(&self) -> u64 {
        self.params.slots_of(self.shards()) + wide(self.number_of_few())
    }

    #[inline]
    pub fn contains(&self, hash: Uniform) -> bool {
        self.dispatch.run(Find { partition: self, hash })
    }

    /// True if a hash has been inserted, as far as all stored bits tell, and not only those that lookups compare.
    #[inline]
    pub fn holds(&self, hash: Uniform) -> bool {
        self.contains(hash) && self.count(hash) > 0
    }

    /// What the partition needs of a hash.
    #[inline]
    pub fn key(&self, hash: Uniform) -> Key {
        Key::new(&self.params.address(), self.params.shares().stream(hash), hash)
    }

    /// The layout of the first generation's tables.
    #[inline]
    pub fn geometry(&self) -> &Geometry {
        self.first.geometry()
    }

    /// The table of the first generation to which a stream leads; none if the partition has no tables.
    #[inline(always)]
    pub fn table(&self, stream: u64) -> Option<&[u8]> {
        self.first.table(stream)
    }

    /// What leads to the tables of the first generation.
    #[cfg(x86_kernels)]
    #[inline(always)]
    pub fn routes(&self) -> super::generation::Routes<'_> {
        self.first.routes()
    }

    /// True if the partition has no tables, since it has few items.
    #[inline]
    pub fn is_unused(&self) -> bool {
        self.first.is_unused()
    }

    /// True if there are later generations.
    #[inline]
    pub fn has_later(&self) -> bool {
        !self.later.is_empty()
    }

    /// The answer of a lookup that has found no table. Takes what that has in registers.
    #[cold]
    #[inline(never)]
    fn is_among_few(&self, first: u64, second: u64, low: Fingerprint, stream: u64) -> bool {
        self.first.is_among_few(Key::of_parts((first, second), low, stream))
    }

    /// Prefetches the buckets of a hash in the generation that takes new items.
    pub fn prefetch(&self, hash: Uniform) {
        self.last().prefetch(self.key(hash));
    }

    /// True if a hash is in any generation.
    #[cold]
    #[inline(never)]
    fn is_in_any_generation(&self, hash: Uniform) -> bool {
        let key = self.key(hash);
        self.generations().any(|generation| generation.contains(key))
    }

    /// True if a hash is in a later generation.
    #[cold]
    pub fn later_contain(&self, hash: Uniform) -> bool {
        let key = self.key(hash);
        self.later.iter().any(|generation| generation.contains(key))
    }

    pub fn count(&self, hash: Uniform) -> u32 {
        let key = self.key(hash);
        self.generations().map(|generation| generation.count(key)).fold(0, u32::saturating_add)
    }

    /// Inserts a hash, if it fits into the last generation as that is; otherwise nothing has changed, and the place of the full
    /// shard is returned. (Or of its shard, where insertions ask first.)
    #[inline]
    pub fn insert(&mut self, hash: Uniform) -> Result<(), Place> {
        let key = self.key(hash);
        self.last_mut().insert(key)
    }

    /// Inserts a hash for which [`insert`](Self::insert) has returned this place, where insertions ask first. Returns false, and
    /// has changed nothing, if that takes longer; or if it may change what the partition is charged, and must not.
    pub fn insert_asking(&mut self, hash: Uniform, place: Place, is_limited: bool) -> bool {
        self.last().asks_first() && self.insert_after_asking(self.key(hash), place, is_limited)
    }

    #[inline(never)]
    fn insert_after_asking(&mut self, key: Key, place: Place, is_limited: bool) -> bool {
        for generation in self.generations_mut().rev().filter(|generation| generation.contains(key)) {
            if generation.count_another(key, !is_limited) {
                // A copy more: insertions go on asking.
                return true;
            }
            if generation.count_in_table(key) > 0 {
                return false;
            }
        }
        let is_inserted = self.last_mut().insert_unasked(place, key);
        self.note_copies();
        is_inserted
    }

    /// Inserts a hash for which [`insert`](Self::insert) has returned this place. What the partition is charged may rise by
    /// `allowed` bytes. If it fails, nothing has changed.
    #[cold]
    pub fn insert_growing(&mut self, hash: Uniform, place: Place, allowed: usize) -> Result<(), InsertError> {
        let key = self.key(hash);
        let result = self.insert_with(place, key, allowed);
        self.note_copies();
        result
    }

    fn insert_with(&mut self, place: Place, key: Key, allowed: usize) -> Result<(), InsertError> {
        if self.is_unused() && !self.first.is_among_few(key) {
            return self.insert_among_few(key, allowed);
        }
        // A copy never makes the partition grow.
        let may_be_another = self.may_be_another(key);
        if let Some(generation) = self
            .generations_mut()
            .rev()
            .find(|generation| generation.has(key))
            .filter(|generation| generation.is_copy(key, may_be_another))
        {
            return generation.count_further(key, 1, allowed);
        }
        let last = self.last_mut();
        if last.asks_first() && last.insert_unasked(place, key) {
            return Ok(());
        }
        let refused = match last.insert_growing(place, key, allowed) {
            Ok(true) => return Ok(()),
            Ok(false) => match self.add_generation(allowed, Some(key)) {
                Ok(()) => return Ok(()),
                Err(refused) => refused,
            },
            Err(refused) => refused,
        };
        // Where an item goes must not depend on the memory that there is: a replica may have more.
        let may_go_elsewhere = matches!(refused.kind(), InsertErrorKind::Crowded | InsertErrorKind::Generations);
        let has_room = may_go_elsewhere && self.generations_mut().rev().any(|generation| generation.insert_as_it_is(key));
        if has_room { Ok(()) } else { Err(refused) }
    }

    /// Inserts an item into a partition without tables that does not have it. If the list has no room for one more, the partition
    /// gets tables.
    fn insert_among_few(&mut self, key: Key, allowed: usize) -> Result<(), InsertError> {
        if !self.first.has_room_for_few() {
            match self.with_tables(Some(key)) {
                Ok(grown) => return self.replace_by(grown, allowed),
                // Chosen items, for which tables have no room, must not keep out all others.
                Err(refused) if matches!(refused.kind(), InsertErrorKind::Crowded | InsertErrorKind::Generations) => {}
                Err(refused) => return Err(refused),
            }
        }
        self.first.insert_among_few(key, allowed)
    }

    /// A partition with the items of this one, which has no tables, and with this one, if there is one, in tables.
    fn with_tables(&self, key: Option<Key>) -> Result<Self, InsertError> {
        let mut grown = Self::with_first(&self.params, Generation::new(self.params.generation(0), self.dispatch)?);
        for (key, copies) in self.first.few_items().chain(key.map(|key| (key, 1))) {
            grown.insert_stored(key, 0, copies, usize::MAX)?;
        }
        Ok(grown)
    }

    /// Replaces the partition, if the charge does not rise by more than `allowed`.
    fn replace_by(&mut self, other: Self, allowed: usize) -> Result<(), InsertError> {
        let needed = other.charged().saturating_sub(self.charged());
        if needed > allowed {
            return Err(InsertError::limit(needed));
        }
        *self = other;
        Ok(())
    }

    /// True if what looks like a copy of an item that is there may well be another item, alike by chance, that would make room for
    /// itself by a split. (If it were counted, filters of the same different items would not be of the same size, as they are
    /// within the maximal capacity.)
    fn may_be_another(&self, key: Key) -> bool {
        !self.has_further && !self.has_later() && self.first.may_split(key)
    }

    /// Adds an empty generation, and this item to it, if there is one. If that is not possible, nothing has changed.
    fn add_generation(&mut self, allowed: usize, key: Option<Key>) -> Result<(), InsertError> {
        let number = self.last().number().checked_add(1).filter(|&number| usize::from(number) < self.params.most_generations());
        let number = number.ok_or(InsertError::of(InsertErrorKind::Generations))?;
        let plan = self.params.generation(number);
        let needed = Generation::charged_when_empty(&plan).saturating_add(size_of::<Generation>());
        if needed > allowed {
            return Err(InsertError::limit(needed));
        }
        let mut generation = Generation::new(plan, self.dispatch)?;
        // An empty shard has room.
        let is_inserted = key.is_none_or(|key| generation.insert(key).is_ok());
        debug_assert!(is_inserted);
        Ok(self.push_generation(generation)?)
    }

    /// A copy, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut later = reserved(self.later.len())?;
        for generation in &self.later {
            later.push(generation.try_clone()?);
        }
        Ok(Self { first: self.first.try_clone()?, later, ..*self })
    }

    /// A partition with the items of this one and of another one with the same number, of each as many copies as `how` says. It may
    /// be charged `most` bytes.
    ///
    /// Inserting an item takes longer than copying it. So a sum begins with a copy of the larger partition.
    pub fn merged(&self, other: &Self, how: Combine, most: usize) -> Result<Self, InsertError> {
        let (copied, inserted) = if how == Combine::Sum && self.len() < other.len() { (other, self) } else { (self, other) };
        if copied.charged() > most {
            return Err(InsertError::limit(copied.charged() - self.charged()));
        }
        let mut partition = copied.try_clone()?;
        partition.set_dispatch(self.dispatch);
        partition.merge(inserted, how, most)?;
        Ok(partition)
    }

    /// Inserts all items of another partition with the same number, each into the generation of the same number; or for a union, of
    /// each item as many copies as that generation lacks. The partition may be charged `most` bytes. If it fails, some have been
    /// inserted.
    fn merge(&mut self, other: &Self, how: Combine, most: usize) -> Result<(), InsertError> {
        for (at, generation) in other.generations().enumerate() {
            self.add_generations_up_to(at, most)?;
            let mut take = |key, copies: u32| {
                let ours = if how == Combine::Union { self.generation_mut(at).count(key) } else { 0 };
                self.insert_stored(key, at, copies.saturating_sub(ours), most)
            };
            generation.few_items().try_for_each(|(key, copies)| take(key, copies))?;
            for (shard, prefix) in generation.evenly() {
                let mut result = Ok(());
                shard.each_class(&mut |(bucket, _), fingerprint, in_table| {
                    let key = Key::of_stored(shard.params(), prefix, bucket, fingerprint);
                    result = take(key, in_table.saturating_add(generation.further(key)));
                    result.is_ok()
                });
                result?;
            }
        }
        self.drop_empty_generations();
        self.note_copies();
        Ok(())
    }

    /// Adds empty generations, until there is one with this number.
    fn add_generations_up_to(&mut self, number: usize, most: usize) -> Result<(), InsertError> {
        if number > 0 && self.is_unused() {
            self.replace_by(self.with_tables(None)?, most.saturating_sub(self.charged()))?;
        }
        while self.later.len() < number {
            self.add_generation(most.saturating_sub(self.charged()), None)?;
        }
        // Where insertions ask first, it is in the last generation.
        self.note_copies();
        Ok(())
    }

    /// Inserts copies of an item into the generation with this number: as many as one by one would go into tables, and the others
    /// are counted at once. The partition may be charged `most` bytes. If it fails, some have been inserted.
    fn insert_stored(&mut self, key: Key, at: usize, copies: u32, most: usize) -> Result<(), InsertError> {
        let mut left = copies;
        while left > 0 {
            if self.is_unused() && !self.first.is_among_few(key) {
                self.insert_among_few(key, most.saturating_sub(self.charged()))?;
                self.note_copies();
                left -= 1;
                continue;
            }
            let asks_first = self.last().asks_first();
            let generation = self.generation_mut(at);
            if !(asks_first && generation.has(key)) && generation.insert_where_it_leads(key) {
                left -= 1;
                continue;
            }
            let (may_be_another, allowed) = (self.may_be_another(key), most.saturating_sub(self.charged()));
            let generation = self.generation_mut(at);
            if generation.has(key) && generation.is_copy(key, may_be_another) {
                generation.count_further(key, left, allowed)?;
                left = 0;
            } else if generation.insert_growing(generation.place(key), key, allowed)? || generation.insert_as_it_is(key) {
                left -= 1;
            } else {
                return Err(InsertError::of(InsertErrorKind::Generations));
            }
            self.note_copies();
        }
        Ok(())
    }

    /// Removes one copy of the hash's fingerprint, of the longest that there is: an item in a later generation, where more of its
    /// bits are known, is never taken for another one in an earlier generation. Frees memory if two shards have become underfull.
    #[inline]
    pub fn remove(&mut self, hash: Uniform) -> bool {
        let key = self.key(hash);
        if self.has_further {
            return self.remove_beside_copies(key);
        }
        if self.has_later() && self.remove_later(key) {
            return true;
        }
        let is_removed = self.first.remove_and_join(key);
        if self.first.has_few() {
            self.drop_empty_generations();
        }
        is_removed
    }

    /// The same where there are further copies. A generation gives up those first, so that a table has one as long as there are
    /// others.
    #[cold]
    fn remove_beside_copies(&mut self, key: Key) -> bool {
        let is_removed =
            self.generations_mut().rev().any(|generation| generation.take_copies(key, 1) == 1 || generation.remove_and_join(key));
        self.drop_empty_generations();
        self.note_copies();
        is_removed
    }

    /// The same, from later generations.
    #[cold]
    fn remove_later(&mut self, key: Key) -> bool {
        let is_removed = self.later.iter_mut().rev().any(|generation| generation.remove_and_join(key));
        if is_removed {
            self.drop_empty_generations();
        }
        is_removed
    }

    /// A later generation that has become empty is not needed, and neither are the shards of a partition with few items.
    #[inline(never)]
    fn drop_empty_generations(&mut self) {
        let generations = self.later.len();
        while self.later.pop_if(|generation| generation.len() == 0).is_some() {}
        if self.later.len() < generations {
            shrink_to(&mut self.later, 0);
        }
        if self.later.is_empty() && self.first.release() {
            self.note_copies();
        }
    }

    /// Joins all shards that are underfull, as far as there is memory for it.
    pub fn shrink(&mut self) {
        self.drop_empty_generations();
        for generation in self.generations_mut() {
            generation.join_all();
        }
        self.note_copies();
    }

    /// Removes all items, and frees the memory that the partition has grown by; without memory for the tables that it begins with,
    /// it keeps those of the first generation.
    pub fn clear(&mut self) {
        if let Ok(empty) = Self::new(&self.params, self.dispatch) {
            *self = empty;
        } else {
            self.later = Vec::new();
            self.first.empty();
            self.note_copies();
        }
    }

    /// The probability that a hash of this partition is found that was never inserted.
    pub fn false_positive_rate(&self) -> f64 {
        let times = self.len() as f64 / self.table_len().max(1) as f64;
        self.generations().map(|generation| generation.false_positive_rate(times)).sum::<f64>().min(1.0)
    }

    pub fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.dispatch = dispatch;
        self.generations_mut().for_each(|generation| generation.set_dispatch(dispatch));
    }

    pub fn len(&self) -> usize {
        self.generations().map(Generation::len).fold(0, usize::saturating_add)
    }

    /// The number of items in the tables.
    pub fn table_len(&self) -> usize {
        self.generations().map(Generation::table_len).sum()
    }

    /// The number of distinct items, in each generation.
    pub fn distinct(&self) -> usize {
        let shards = self.generations().flat_map(Generation::evenly);
        self.first.list_of_few().len() + shards.map(|(shard, _)| shard.distinct()).sum::<usize>()
    }

    /// All tables, without padding: the number of the generation, the record, and the bytes.
    pub fn tables(&self) -> impl Iterator<Item = (u8, ShardRecord, &[u8])> + Clone {
        self.generations().flat_map(move |generation| {
            generation.tables_in_order().map(move |(record, table)| (generation.number(), record, table))
        })
    }

    /// All further copies: the number of the generation, the key and the number of copies, in order.
    pub fn further_copies(&self) -> impl Iterator<Item = (u8, copies::ClassKey, u32)> + Clone {
        self.further_copies_from(0, 0).map(|(_, entry)| entry)
    }

    /// Those from a slot of the generation with this number on, and their slots.
    pub fn further_copies_from(
        &self,
        number: u8,
        slot: usize,
    ) -> impl Iterator<Item = (usize, (u8, copies::ClassKey, u32))> + Clone {
        let generations = self.generations().filter(move |generation| generation.number() >= number);
        generations.filter_map(|generation| Some((generation.number(), generation.further_copies()?))).flat_map(
            move |(generation, copies)| {
                let entries = copies.iter_from(if generation == number { slot } else { 0 });
                entries.map(move |(slot, (key, copies))| (slot, (generation, key, copies)))
            },
        )
    }

    /// What stands for the different items of a partition without tables, in order.
    pub fn few(&self) -> impl Iterator<Item = copies::ClassKey> {
        self.first.list_of_few().keys()
    }

    /// Their number.
    pub fn number_of_few(&self) -> usize {
        self.first.list_of_few().len()
    }

    /// The length of such a key in a snapshot.
    pub fn key_bytes(&self) -> usize {
        self.first.key_bytes()
    }

    /// The number of items that have some, each generation by itself.
    pub fn entries(&self) -> u64 {
        self.generations().map(|generation| wide(generation.further_totals().1)).sum()
    }

    /// Bytes of all tables, with their padding.
    pub fn table_bytes(&self) -> usize {
        self.generations().map(Generation::table_bytes).sum()
    }

    pub fn size_in_bytes(&self) -> usize {
        self.later.capacity() * size_of::<Generation>() + self.generations().map(Generation::size_in_bytes).sum::<usize>()
    }

    /// What the partition is charged against a limit: see [`Generation::charged`].
    pub fn charged(&self) -> usize {
        let later = self.later.len() * size_of::<Generation>();
        self.generations().map(Generation::charged).fold(PARTITION_BYTES + later, usize::saturating_add)
    }

    /// What an empty partition is charged.
    pub fn charged_when_empty(params: &ElasticParams) -> usize {
        Generation::charged_when_empty(&params.generation(0)).saturating_add(PARTITION_BYTES)
    }
}

/// Equal shards, with equal tables, and equal copies beside them.
impl PartialEq for Partition {
    fn eq(&self, other: &Self) -> bool {
        let has_equal_few = self.first.list_of_few() == other.first.list_of_few();
        has_equal_few && self.tables().eq(other.tables()) && self.further_copies().eq(other.further_copies())
    }
}

impl Eq for Partition {}

/// A lookup in the first generation, as one function from the hash to the bits of the table; later generations are looked up behind
/// it.
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
            return partition.is_in_any_generation(hash);
        }
        // The first generation has no spare bits, so that nothing but the low fingerprint is compared.
        let (buckets, fingerprint) = partition.params.address().buckets(hash);
        let stream = partition.params.shares().stream(hash);
        let Some(table) = partition.table(stream) else {
            return partition.is_among_few(buckets.0, buckets.1, fingerprint, stream);
        };
        match partition.geometry() {
            Geometry::Narrow(geometry) => Narrow::read(geometry, table, instructions, Sought { buckets, fingerprint }),
            // A function of its own, so that this one needs none of its registers.
            geometry => partition.dispatch.read(geometry, table, Located::new(buckets, fingerprint)),
        }
    }
}

/// For [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Partition {
    pub fn assert_consistent(&self) {
        for (position, generation) in self.generations().enumerate() {
            let number = generation.number();
            assert_eq!(usize::from(number), position, "the number of a generation");
            generation.assert_consistent(&self.params.generation(number), self.dispatch);
        }
        assert!(self.later.last().is_none_or(|generation| generation.len() > 0), "the last generation is empty");
        assert!(
            !self.is_unused() || self.later.is_empty(),
            "the partition has later generations, and no tables in the first one"
        );
        let is_needed = self.len() > 0 || self.is_unused() || !self.params.generation(0).begins_unused();
        assert!(is_needed, "the partition has shards without items");
        assert_eq!(self.has_further, self.generations().any(Generation::has_further), "further copies");
        let mut noted = self.clone();
        noted.note_copies();
        let asks_first = |partition: &Self| partition.generations().map(Generation::asks_first).collect::<Vec<_>>();
        assert_eq!(asks_first(&noted), asks_first(self), "which generation asks first");
        assert!(self.size_in_bytes() <= self.charged(), "{} bytes, charged {}", self.size_in_bytes(), self.charged());
    }
}
