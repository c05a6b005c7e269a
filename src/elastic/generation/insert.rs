//! Insertion into a generation where a shard has no room: the one place that decides what happens then.
//!
//! ```text
//! list   │ room: in order │ becomes a table │ no table holds chosen items: splits │ refused
//! table  │ room: stored │ among copies, a copy: counted │ second copies leave │ splits │ a copy: counted │ next generation │ refused
//! ```
//!
//! The first of these that is possible is done. Except for the last ones, all of them take time for one shard, or for 64 buckets of
//! one that is large.

use core::ops::Range;

use super::{Generation, Key, List, Place, copies::LOOK_FIRST_ONE_IN};
use crate::{
    bits::{index, wide},
    elastic::{
        directory::Directory, generation_plan::prefix_of, lookup::Shards as _, pool::EMPTY_LIST_BYTES, shard::BUCKET_SIZE,
    },
    filter::{InsertError, InsertErrorKind},
    storage::{OutOfMemory, reserved},
    table::{CopyPolicy, LONG_SEARCH, PIECE_BUCKETS, SHORT_SEARCH, TableParams as _, list::ClassKey},
};

/// The most directory entries per shard. Uniform hashes need fewer. Chosen hashes can make one shard far deeper than the others, and
/// without this limit, the directory would grow exponentially with its depth. Small directories may have more.
///
/// In a snapshot, a shard takes at least 24 bytes. So after a split, directories with four entries of 4 bytes for each do not exceed what
/// a reader allows.
const MAX_ENTRIES_PER_SHARD: u64 = 4;

/// The most entries per shard of a small directory. With so many, the other items of a crowded shard get shards of their own.
const MAX_ENTRIES_PER_SHARD_OF_SMALL: u64 = 64;

/// The most entries of all partitions' small directories in a generation.
const SMALL_DIRECTORIES_ENTRIES: u64 = 1 << 18;

/// The number of directory entries that is allowed with any number of shards.
const ALLOWED_ENTRIES: u64 = 1 << 10;

/// A generation that may have at most this many slots may be followed by another one at any load.
const SMALL_GENERATION_SLOTS: u64 = 1 << 14;

/// The number of times that a list of chosen items, which cannot become a table, tries to become one while it grows by as many items
/// as other lists have.
const CHOSEN_LIST_ATTEMPTS: usize = 8;

/// Returns the most entries that splits give the directory of a partition with this many shards.
pub(super) fn most_entries(shards: u64, partition_bits: u8) -> u64 {
    let small = (shards * MAX_ENTRIES_PER_SHARD_OF_SMALL).min(SMALL_DIRECTORIES_ENTRIES >> partition_bits);
    small.max(shards * MAX_ENTRIES_PER_SHARD).max(ALLOWED_ENTRIES)
}

impl Generation {
    /// Inserts copies of an item, and grows if necessary. The first copy is stored, and the others are counted; with `looks_first`,
    /// all are counted if the generation has the item. Returns false if a further generation is needed.
    ///
    /// Unless it returns true, no item has moved, except that one of several copies may have been inserted. The charge rises by at
    /// most `budget` bytes. That decides only whether the item is accepted, not where it goes, so that filters with equal content stay
    /// equal.
    pub fn add(&mut self, key: Key, copies: u32, looks_first: bool, budget: usize) -> Result<bool, InsertError> {
        let place = self.place(key.stream);
        if self.pool.list(place).is_some() {
            return self.add_to_list(place, key, copies, budget).map(|()| true);
        }
        if looks_first && self.add_if_present(key, 0, copies, budget)? {
            return Ok(true);
        }
        let has_many_copies = looks_first && !self.may_split(place);
        let is_stored =
            if has_many_copies { self.insert_beside_copies(place, key, budget)? } else { self.insert_at(place, key, false) };
        if !is_stored {
            let is_present = self.contains_exactly(key);
            let around = self.copies_around(place, key, is_present);
            let has_copies = around.are_beyond_chance || self.has_extra_copies();
            if is_present && (has_copies || !self.may_split(place)) {
                // What looks like a copy by chance is stored as long as there is a slot. If a full table decided, the order of
                // insertions would.
                if copies == 1 && !around.are_beyond_chance && self.insert_at(place, key, true) {
                    return Ok(true);
                }
                return self.add_copies(key, 0, copies, budget).map(|()| true);
            }
            if !self.make_room(place, key, if around.are_many { around.repeated } else { 0 }, budget)? {
                return Ok(false);
            }
        }
        if copies > 1 {
            self.add_copies(key, 0, copies - 1, budget)?;
        }
        Ok(true)
    }

    /// Inserts a new item into its table as [`insert`](Self::insert) does, but if neither bucket has a free slot, and one of them has
    /// a fingerprint twice, the second copies of the piece around that one leave the table before any walk. That leaves a slot free
    /// for the item. The budget must have room for all copies that a piece can have, since how many it has depends on the order of
    /// insertions.
    fn insert_beside_copies(&mut self, place: Place, key: Key, budget: usize) -> Result<bool, InsertError> {
        if self.is_full(place) {
            return Ok(false);
        }
        if self.store_at(place, key, false, CopyPolicy::NoWalk) {
            return Ok(true);
        }
        let slots = index(PIECE_BUCKETS * u64::from(BUCKET_SIZE));
        InsertError::check_budget(self.charge_for_copies(slots) - self.charge_for_copies(0), budget)?;
        self.sweep(place, &mut |crowd| crowd.sweep_beside(key.buckets));
        Ok(self.insert_at(place, key, false))
    }

    /// Inserts an item into its shard even if that is full, as long as there is a slot for it, and the rate allows more items. Returns
    /// false, and changes nothing, if not.
    pub fn insert_even_if_full(&mut self, key: Key) -> bool {
        let place = self.place(key.stream);
        self.items(place) < self.plan.most_items() && self.insert_at(place, key, true)
    }

    /// Inserts an item into a table that is full or has no slot for it, or counts it if it is a copy for which nothing makes room. Up
    /// to `around` second copies near its bucket can leave the table. Returns false if a further generation is needed.
    fn make_room(&mut self, place: Place, key: Key, around: usize, budget: usize) -> Result<bool, InsertError> {
        InsertError::check_budget(self.charge_for_copies(around) - self.charge_for_copies(0), budget)?;
        // In a table that is not full, copies are in the way: in the item's buckets, or where the walk gave up.
        let may_replace = around > 0 || !self.is_full(place) || self.has_extra_copies() && !self.may_split(place);
        // Where copies are nearly as frequent as items, walks are long.
        let is_stored = around > 0 && self.store_at(place, key, true, CopyPolicy::NoWalk)
            || may_replace && self.replace_second_copy(place, key, SHORT_SEARCH, budget)?
            || around > 0 && self.insert_at(place, key, true);
        if is_stored {
            if around > 0 {
                self.sweep(place, &mut |crowd| crowd.sweep_around(key.buckets.0));
            }
            return Ok(true);
        }
        for depth in self.pool.depth(place) + 1..=self.max_split_depth() {
            if self.split(place, depth, key.stream, budget, |generation, part| generation.insert_at(part, key, true))? {
                return Ok(true);
            }
        }
        let may_add_generation = self.justifies_generation();
        // Rather than fill a shard beyond its load, a generation is added, but not for copies: these leave the table first.
        let may_overfill = !may_add_generation || self.may_split(place) || !self.is_full(place);
        // A budget that has no room for one more copy has none for a generation either. Such refusals do not take long.
        let is_affordable = self.charge_for_copies(1) - self.charge_for_copies(0) <= budget;
        let may_move_copies = may_overfill || is_affordable && self.has_copies_to_move(place, key);
        if may_overfill && self.insert_at(place, key, true)
            || may_move_copies && self.replace_second_copy(place, key, LONG_SEARCH, budget)?
        {
            return Ok(true);
        }
        // Among chosen items, too, a copy neither adds a generation nor is refused.
        if self.contains_exactly(key) {
            return self.add_copies(key, 0, 1, budget).map(|()| true);
        }
        if may_add_generation { Ok(false) } else { Err(InsertError::of(InsertErrorKind::Crowded)) }
    }

    /// Returns true if a table has as many items as it should have.
    fn is_full(&self, place: Place) -> bool {
        let full_at = self.pool.layout_and_table(place).map_or(0, |(layout, _)| layout.full_at);
        wide(self.items(place)) >= full_at.into()
    }

    /// Returns true if a shard is not yet of the greatest depth.
    pub(super) fn may_split(&self, place: Place) -> bool {
        self.pool.depth(place) < self.plan.max_depth
    }

    /// Returns true if a further generation is justified: at least one in 16 of the slots that this one may have is taken, or it may
    /// have only few. Otherwise a full shard results from hashes that are not uniform, and a generation for these would slow down
    /// the lookups of all items.
    fn justifies_generation(&self) -> bool {
        let slots = wide(self.plan.whole.slots()) << self.plan.max_depth;
        wide(self.len) >= slots / 16 || slots <= SMALL_GENERATION_SLOTS
    }

    /// Returns the greatest depth to which a shard may split.
    pub fn max_split_depth(&self) -> u8 {
        let entries = most_entries(wide(self.shards()), self.plan.shares.partition_bits());
        #[expect(clippy::cast_possible_truncation, reason = "below 64")]
        let depth = entries.ilog2() as u8;
        self.plan.max_depth.min(self.global_depth().max(depth))
    }
}

// Lists.

impl Generation {
    /// Inserts copies of an item into a list. If the list is long enough, it becomes a table.
    fn add_to_list(&mut self, place: Place, key: Key, copies: u32, budget: usize) -> Result<(), InsertError> {
        let class_key = self.plan.class_key(key);
        let (capacity, depth, len) = (self.plan.list_capacity(), self.pool.depth(place), self.items(place));
        // A list of chosen items tries to become a table now and then, because each attempt takes as long as many insertions.
        let is_due = len >= capacity && (len - capacity).is_multiple_of((capacity / CHOSEN_LIST_ATTEMPTS).max(1));
        // With more items than a table has slots, the rates of all shards could add up to more than the promised one.
        let is_longest = len >= self.plan.whole.slots();
        if (is_due || is_longest) && self.pool.list(place).is_some_and(|list| list.get(class_key) == 0) {
            if self.list_to_table(place, Some(key), budget)? {
                return if copies > 1 { self.add_copies(key, 0, copies - 1, budget) } else { Ok(()) };
            }
            // No table holds these items, so they were chosen. They stay in a list, and others are separated from them.
            let part = |list, depth| self.part_of_list(list, depth, prefix_of(depth, key.stream)).len();
            let has_room = |&depth: &u8| self.pool.list(place).map_or(0, |list| part(list, depth)) < capacity;
            if let Some(depth) = (depth + 1..=self.max_split_depth()).find(has_room) {
                return self.split_list(place, depth, key, copies, budget);
            }
            if is_longest {
                return Err(InsertError::of(InsertErrorKind::Crowded));
            }
        }
        self.count_in_list(place, class_key, copies, budget)
    }

    /// Adds copies of an item, which may be new, to a list.
    pub(super) fn count_in_list(
        &mut self,
        place: Place,
        class_key: ClassKey,
        copies: u32,
        budget: usize,
    ) -> Result<(), InsertError> {
        let Some(list) = self.pool.list(place) else { return Ok(()) };
        let found = list.find(class_key);
        InsertError::check_budget(list.growth(found, copies), budget)?;
        if !self.pool.add_to_list(place, found, class_key, copies)? {
            return Err(InsertError::of(InsertErrorKind::TooManyCopies));
        }
        self.len += usize::from(found.is_err() && copies > 0);
        Ok(())
    }

    /// Replaces a list by a table with the same items, and with `key` if it is given. Returns false if the table does not hold all of
    /// them. Unless it returns true, nothing changes.
    pub(super) fn list_to_table(&mut self, place: Place, key: Option<Key>, budget: usize) -> Result<bool, InsertError> {
        let (record, Some(list)) = (self.pool.record(place), self.pool.list(place)) else { return Ok(false) };
        let (list, len, plan) = (list.try_clone()?, self.len, self.plan);
        // As with insertions into tables: if few items have copies, the second one is stored.
        let copies_in_list = list.iter().map(|(_, copies)| u64::from(copies - 1)).sum::<u64>();
        let most_stored = if copies_in_list.saturating_mul(LOOK_FIRST_ONE_IN) < wide(list.len()) { 2 } else { 1 };
        let counted = || list.iter().filter(|&(_, copies)| copies > most_stored).map(|(key, copies)| (key, copies - most_stored));
        let entries = self.charge_for_copies(counted().count()) - self.charge_for_copies(0);
        let needed = self.pool.charge_for_more(&plan, record.depth(), 1).saturating_add(entries);
        InsertError::check_budget(needed.saturating_sub(EMPTY_LIST_BYTES + list.size_in_bytes()), budget)?;
        let table = self.push_table_for(record)?;
        let stored = list.iter().map(|(class_key, copies)| (plan.item_of(class_key), copies.min(most_stored)));
        let mut stored = stored.chain(key.map(|key| (Some(key), 1)));
        let is_filled = stored.all(|(key, copies)| key.is_some_and(|key| (0..copies).all(|_| self.insert_at(table, key, true))));
        let counted = if is_filled { self.count_each(counted()) } else { Ok(()) };
        if !is_filled || counted.is_err() {
            self.len = len;
            self.remove_shard(table, &mut |_, _| ());
            counted?;
            return Ok(false);
        }
        self.len -= list.len();
        self.point_to(table);
        self.remove_shard(place, &mut |_, _| ());
        Ok(true)
    }

    /// Replaces a table with few items by a list, unless copies of an item are counted with extra bits, for which a list has no room. On
    /// failure, nothing changes.
    pub(super) fn table_to_list(&mut self, place: Place) -> Result<(), OutOfMemory> {
        let Some((shard, prefix)) = self.pool.shard(self.dispatch, place) else { return Ok(()) };
        let (mut list, mut added) = (List::new(self.plan.key_bytes()), Ok(true));
        shard.each_fingerprint(|bucket, fingerprint| {
            let key = Key::from_stored(*shard.params(), prefix.into(), bucket, fingerprint);
            added = list.add(self.plan.class_key(key), 1, u32::MAX);
            added.is_ok()
        });
        added?;
        let has_extra_copies = self.has_extra_copies();
        for at in (0..list.len()).filter(|_| has_extra_copies) {
            let Some((class_key, copies)) = list.view().get_at(at) else { break };
            if self.entries_of(class_key).any(|(extra, _)| extra > 0) {
                return Ok(());
            }
            list.add(class_key, self.extra_copies_of(class_key).min(u32::MAX - copies), u32::MAX)?;
        }
        self.pool.reserve_lists(1)?;
        if has_extra_copies {
            list.iter().for_each(|(class_key, _)| _ = self.copies.take(self.plan.entry_key(class_key, 0), u32::MAX));
        }
        let record = self.pool.record(place);
        self.len = self.len + list.len() - record.items();
        let list = self.pool.push_list(record.depth(), record.prefix(), list);
        self.point_to(list);
        self.remove_shard(place, &mut |_, _| ());
        Ok(())
    }

    /// Returns the positions in a list of the items whose streams begin with this prefix.
    fn part_of_list(&self, list: &List, depth: u8, prefix: u32) -> Range<usize> {
        let keys = self.plan.class_keys_of(depth, prefix);
        list.view().rank(keys.start)..list.view().rank(keys.end)
    }

    /// Splits a list repeatedly, until the stream of `key` leads to a part of this depth, and adds copies of that item there. On
    /// failure, nothing changes.
    fn split_list(&mut self, place: Place, depth: u8, key: Key, copies: u32, budget: usize) -> Result<(), InsertError> {
        let (record, Some(list)) = (self.pool.record(place), self.pool.list(place)) else { return Ok(()) };
        let part = |depth, prefix| list.part(self.part_of_list(list, depth, prefix));
        let mut parts = reserved(usize::from(depth - record.depth()) + 1)?;
        for depth in record.depth() + 1..=depth {
            let prefix = prefix_of(depth, key.stream) ^ 1;
            parts.push((depth, prefix, part(depth, prefix)?));
        }
        let prefix = prefix_of(depth, key.stream);
        let mut own = part(depth, prefix)?;
        own.add(self.plan.class_key(key), copies, u32::MAX)?;
        parts.push((depth, prefix, own));
        let deeper = self.directory.deepened(depth)?;
        let directory = if deeper.is_some() { Directory::<Place>::bytes_at_depth(depth) } else { 0 };
        let contents: usize = parts.iter().map(|(_, _, list)| list.size_in_bytes() + EMPTY_LIST_BYTES).sum();
        InsertError::check_budget((directory + contents).saturating_sub(list.size_in_bytes() + EMPTY_LIST_BYTES), budget)?;
        self.pool.reserve_lists(parts.len())?;
        if let Some(deeper) = deeper {
            self.directory = deeper;
        }
        for (depth, prefix, list) in parts {
            let part = self.pool.push_list(depth, prefix, list);
            self.point_to(part);
        }
        self.remove_shard(place, &mut |_, _| ());
        self.len += 1;
        Ok(())
    }
}
