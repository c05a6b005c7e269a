//! The extra copies of a generation. Those of an item in a list are counted there; those of an item in a table are counted beside
//! the tables, so that copies never make the generation grow.
//!
//! Tables may also hold second copies: all copies of an item there except the first. While there are few copies, insertions do
//! not look them up, and store a copy like any other item. If a shard has no room for a copy, the copy is counted. If it has no room
//! for a new item, second copies near the item's buckets leave the table if there are many, and otherwise the shard splits.
//!
//! An item that is inserted after its generation has become full is known by more bits than that generation stores. These, its
//! _extra bits_, are counted with the copy, so that later items which match a stored one by chance are not taken for each other.
//! They are the lowest bits of an entry's key, and 0 where they are unknown.

use alloc::vec::Vec;
use core::ops::Range;

use super::{Generation, Key, Place, Slots};
use crate::{
    bits::{index, low_half, low_word, wide},
    elastic::{directory::ShardBytes, lookup::Shards as _, shard::ShardParams},
    filter::{InsertError, InsertErrorKind},
    storage::{OutOfMemory, reserved},
    table::{
        Crowd, Crowded, PIECE_BUCKETS, Replacement, TableParams as _,
        copies::{self, Copies, ExtraCopies, Found},
        fingerprints,
        list::ClassKey,
    },
};

/// Second copies leave a table that may split if at least one in this many items around is one. Moving fewer would take longer than
/// a split.
const SWEEP_ONE_IN: u64 = 8;

/// The same ratio for a shard that cannot be split, where the alternative is a further generation.
const SWEEP_ONE_IN_AT_MAX_DEPTH: u64 = 1 << 6;

/// Before a generation is added, copies are looked for in this many buckets. A planned shard of n items has a margin of 6/√n, and at most
/// 2¹⁸ slots. So copies are in its way only if at least one in 86 items has some: 95 in these buckets.
const MANY_BUCKETS: u64 = 1 << 11;

/// A table that may split is taken to have few copies if none are in this many buckets.
const SAMPLE_BUCKETS: u64 = 6;

/// Insertions look up the item first if at least one in this many items is an extra copy. With fewer, lookups cost more than they
/// save.
pub(super) const LOOK_FIRST_ONE_IN: u64 = 64;

/// Sorts `len` keys. Returns the different ones, converted to keys of entries, with how often each was among them.
fn counted<K: Ord + Copy>(
    keys: impl Iterator<Item = K>,
    len: usize,
    entry_key: impl Fn(K) -> ClassKey,
) -> Result<Vec<(ClassKey, u32)>, OutOfMemory> {
    let (mut all, mut entries) = (reserved(len)?, reserved(len)?);
    all.extend(keys);
    all.sort_unstable();
    entries.extend(all.chunk_by(|one, other| one == other).map(|equal| (entry_key(equal[0]), low_half(wide(equal.len())))));
    Ok(entries)
}

impl Generation {
    /// Returns true if this generation has so many extra copies that insertions should look up the item first.
    ///
    /// There must be at least twice as many as distinct items that are expected to look equal by chance, if all shards have the
    /// greatest depth in use. Otherwise, items of a filter with a high false-positive rate would be taken for copies.
    pub fn has_frequent_copies(&self) -> bool {
        let stored = self.plan.shard(self.global_depth()).stored_bits();
        let by_chance = self.item_count().saturating_mul(self.plan.whole.bucket_size().into()).unbounded_shr(stored);
        let least = by_chance.saturating_mul(2).max(wide(self.len) / LOOK_FIRST_ONE_IN);
        self.has_extra_copies() && self.extra_copies() >= least
    }

    /// Returns the number of copies that are counted beside the tables.
    pub fn extra_copies(&self) -> u64 {
        self.copies.totals().0
    }

    /// Returns the number of entries of extra copies.
    pub fn entries(&self) -> usize {
        self.copies.totals().1
    }

    pub fn has_extra_copies(&self) -> bool {
        !self.copies.is_empty()
    }

    /// Returns the extra copies beside the tables, if there are any.
    pub fn extra_copy_list(&self) -> Option<&Copies> {
        self.copies.list()
    }

    /// Returns the entries of an item in the order of their extra bits: these bits, and the number of copies.
    pub fn entries_of(&self, class_key: ClassKey) -> impl Iterator<Item = (u32, u32)> {
        let keys = self.entry_keys(class_key);
        let mut next = keys.start;
        core::iter::from_fn(move || {
            let (key, copies) = self.next_entry(next, keys.end)?;
            next = key + 1;
            Some((low_half(low_word(key - keys.start)), copies))
        })
    }

    /// Returns the first entry with a key in this range, and the number of its copies.
    #[inline(never)]
    fn next_entry(&self, start: ClassKey, end: ClassKey) -> Option<(ClassKey, u32)> {
        self.copies.list()?.next(start).filter(|(key, _)| *key < end)
    }

    fn entry_keys(&self, class_key: ClassKey) -> Range<ClassKey> {
        self.plan.entry_key(class_key, 0)..self.plan.entry_key(class_key + 1, 0)
    }

    /// Returns the number of an item's extra copies beside the tables, whatever their extra bits.
    pub fn extra_copies_of(&self, class_key: ClassKey) -> u32 {
        self.entries_of(class_key).fold(0, |sum, (_, copies)| sum.saturating_add(copies))
    }

    /// Removes copies from each entry of an item whose extra bits are known: as many as `surplus` returns for those that there are.
    pub fn take_from_each_entry(&mut self, class_key: ClassKey, surplus: impl Fn(u32) -> u32) {
        let keys = self.entry_keys(class_key);
        let mut next = keys.start + 1;
        while let Some((entry, copies)) = self.next_entry(next, keys.end) {
            self.copies.take(entry, surplus(copies));
            next = entry + 1;
        }
    }

    /// Returns the number of an item's copies, whatever their extra bits.
    pub fn count_all(&self, key: Key) -> u32 {
        let with_extra_bits = self.entries_of(self.plan.class_key(key)).filter(|&(extra, _)| extra > 0);
        with_extra_bits.fold(self.count(key, 0), |sum, (_, copies)| sum.saturating_add(copies))
    }

    /// Removes copies of an item until there are at most `most`: of the stored item and, if it is counted with different extra bits, of
    /// each item that these tell apart.
    pub fn keep_at_most(&mut self, key: Key, most: u32) {
        let (place, class_key) = (self.place(key.stream), self.plan.class_key(key));
        if let Some(list) = self.pool.list(place) {
            let surplus = list.get(class_key).saturating_sub(most);
            self.remove_from_list(place, key, surplus);
            return;
        }
        // Copies with unknown extra bits may be those of each such item.
        let unknown = self.count(key, 0);
        self.take_from_each_entry(class_key, |copies| copies.saturating_sub(most.saturating_sub(unknown)));
        let surplus = unknown.saturating_sub(most);
        for _ in self.copies.take(self.plan.entry_key(class_key, 0), surplus)..surplus {
            self.remove_stored(key);
        }
    }

    /// Sets the extra copies to those of a snapshot, which must be valid.
    pub fn set_extra_copies(&mut self, entries: &(impl Iterator<Item = (ClassKey, u32)> + Clone)) -> Result<(), OutOfMemory> {
        self.copies = ExtraCopies::from_sorted(self.plan.entry_keys(), entries)?;
        Ok(())
    }

    /// Returns what the extra copies would be charged with `more` entries.
    #[inline(never)]
    pub(super) fn charge_for_copies(&self, more: usize) -> usize {
        self.plan.entry_keys().charge(self.entries().saturating_add(more))
    }

    /// Counts copies of an item if the generation has it: in its list or beside its table. Returns false if it does not. The charge
    /// may rise by at most `budget` bytes. On failure, nothing changes.
    pub fn add_if_present(&mut self, key: Key, extra: u32, copies: u32, budget: usize) -> Result<bool, InsertError> {
        let (place, class_key) = (self.place(key.stream), self.plan.class_key(key));
        if let Some(list) = self.pool.list(place) {
            let is_present = list.get(class_key) > 0;
            return if is_present { self.add_copies(key, extra, copies, budget).map(|()| true) } else { Ok(false) };
        }
        // An item with an entry is in its table. Otherwise, the table's buckets arrive meanwhile.
        self.prefetch(key);
        let found = self.copies.find(self.plan.entry_key(class_key, extra));
        if !found.is_present() && !self.contains_exactly(key) {
            return Ok(false);
        }
        self.add_at(found, key, extra, copies, budget).map(|()| true)
    }

    /// [Counts](Self::add_if_present) copies of an item that the generation has.
    pub fn add_copies(&mut self, key: Key, extra: u32, copies: u32, budget: usize) -> Result<(), InsertError> {
        let (place, class_key) = (self.place(key.stream), self.plan.class_key(key));
        let (entry, is_in_list) = (self.plan.entry_key(class_key, extra), self.pool.list(place).is_some());
        if is_in_list && extra == 0 {
            return self.count_in_list(place, class_key, copies, budget);
        }
        let for_entry = if is_in_list { self.charge_for_copies(1) - self.charge_for_copies(0) } else { 0 };
        self.add_at(self.copies.find(entry), key, extra, copies, budget)?;
        if !is_in_list {
            return Ok(());
        }
        // A list has no room for extra bits, without which items that match this one by chance would be taken for its copies.
        let is_table = self.list_to_table(place, None, budget.saturating_sub(for_entry));
        if !matches!(is_table, Ok(true)) {
            self.copies.take(entry, copies);
        }
        if is_table? { Ok(()) } else { self.count_in_list(place, class_key, copies, budget) }
    }

    /// Counts copies of an item, whose entry was found there, beside the tables.
    fn add_at(&mut self, found: Found, key: Key, extra: u32, copies: u32, budget: usize) -> Result<(), InsertError> {
        if !found.is_present() && budget < usize::MAX {
            InsertError::check_budget(self.charge_for_copies(1) - self.charge_for_copies(0), budget)?;
        }
        // An item has no more copies than all items have. Looking up the others of this one takes as long as counting it.
        let all = self.extra_copies().saturating_add(self.pool.copies_in_lists()).saturating_add(copies.into());
        let most = if all <= copies::MOST.into() { u32::MAX } else { u32::MAX - self.others(key, extra) };
        let added = self.copies.list_or_new(self.plan.entry_keys())?.add_at(found, copies, most);
        self.copies.drop_empty();
        if added? { Ok(()) } else { Err(InsertError::of(InsertErrorKind::TooManyCopies)) }
    }

    /// Returns the most copies that an item, which is in a table or a list, may have besides those with these extra bits. Copies with
    /// unknown ones may be those of any item that the known ones tell apart.
    #[cold]
    #[inline(never)]
    fn others(&self, key: Key, extra: u32) -> u32 {
        let class_key = self.plan.class_key(key);
        let stored = match self.shard_of(key.stream) {
            ShardBytes::Table(layout, table) => layout.count(self.dispatch, table, key),
            ShardBytes::List(list) => list.get(class_key),
        };
        let counted = self.entries_of(class_key).filter(|&(other, _)| (other == 0) != (extra == 0)).map(|(_, copies)| copies);
        stored.saturating_add(counted.max().unwrap_or(0))
    }

    /// Counts copies of items beside the tables, which have the items. On failure, nothing changes.
    pub(super) fn count_each(&mut self, counted: impl Iterator<Item = (ClassKey, u32)> + Clone) -> Result<(), OutOfMemory> {
        for (done, (class_key, copies)) in counted.clone().enumerate() {
            let entry = self.plan.entry_key(class_key, 0);
            let added = self.copies.list_or_new(self.plan.entry_keys()).and_then(|list| list.add(entry, copies));
            if let Err(error) = added {
                for (class_key, copies) in counted.take(done) {
                    self.copies.take(self.plan.entry_key(class_key, 0), copies);
                }
                self.copies.drop_empty();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Adds copies of items that this generation has. If `stores` is true, each that finds a free slot in one of its two buckets goes
    /// into the table, as long as the rate allows more items. The others are counted. On failure, some have been added.
    pub fn add_present(&mut self, mut slots: Slots, stores: bool) -> Result<(), InsertError> {
        if stores {
            let place = self.place(slots.stream());
            if self.pool.depth(place) > slots.depth() {
                return slots.split()?.into_iter().try_for_each(|half| self.add_present(half, stores));
            }
            self.store_copies(place, &mut slots);
        }
        let len = slots.len();
        if len == 0 {
            return Ok(());
        }
        let keys = slots.keys().map(|key| self.plan.entry_key(self.plan.class_key(key), 0));
        // All begin with the prefix. If the bits behind it fit into 64, as they mostly do, numbers of that length are sorted, in less time.
        let entries = if self.plan.entry_keys().bits() - u32::from(slots.depth()) <= u64::BITS {
            let common = keys.clone().next().map_or(0, |key| key >> u64::BITS << u64::BITS);
            counted(keys.map(low_word), len, |low| common | ClassKey::from(low))?
        } else {
            counted(keys, len, |key| key)?
        };
        self.add_entries(entries)
    }

    /// Adds entries of extra copies in order, whose items this generation has: beside its tables in bulk, and to its lists one by one. On
    /// failure, some have been added.
    pub fn add_entries(&mut self, mut entries: Vec<(ClassKey, u32)>) -> Result<(), InsertError> {
        if !(&*self).has_all_tables() {
            self.add_each(&mut entries, true)?;
        }
        // A list may have become a table, whose copies are counted among these.
        let copies = entries.iter().map(|&(_, copies)| u64::from(copies)).sum();
        if self.extra_copies().saturating_add(copies) > copies::MOST.into() {
            return self.add_each(&mut entries, false);
        }
        let added = self.copies.list_or_new(self.plan.entry_keys())?.add_sorted(&entries);
        self.copies.drop_empty();
        Ok(added?)
    }

    /// Adds entries one by one, and removes these from `entries`: all, or only those of items in lists.
    #[inline(never)]
    fn add_each(&mut self, entries: &mut Vec<(ClassKey, u32)>, only_in_lists: bool) -> Result<(), InsertError> {
        let mut added = Ok(());
        entries.retain(|&(entry, copies)| {
            let (class_key, extra) = self.plan.entry_parts(entry);
            let Some(key) = self.plan.item_of(class_key) else { return false };
            let is_left = only_in_lists && self.pool.list(self.place(key.stream)).is_none();
            if !is_left && added.is_ok() {
                added = self.add_copies(key, extra, copies, usize::MAX);
            }
            is_left
        });
        added
    }

    /// Removes one copy of an item: one that was counted with the same extra bits, or with unknown ones, before the table's. If only
    /// copies of other items are left beside the table, the table's copy becomes one of these. Returns false if there is no copy.
    pub fn remove(&mut self, key: Key, extra: u32) -> bool {
        if self.has_extra_copies() {
            // Unknown extra bits are 0, so the first entry has them, if any has.
            let class_key = self.plan.class_key(key);
            if self.copies.take_one(self.entry_keys(class_key), self.plan.entry_key(class_key, extra)) {
                return true;
            }
        }
        self.remove_stored(key)
    }

    /// Moves a second copy of another item out of the table and inserts this item into the freed slot. Searches at most
    /// `max_buckets` buckets. Returns false, and changes nothing, if they contain no second copy.
    pub(super) fn replace_second_copy(
        &mut self,
        place: Place,
        key: Key,
        max_buckets: usize,
        budget: usize,
    ) -> Result<bool, InsertError> {
        let needed = self.charge_for_copies(1) - self.charge_for_copies(0);
        let mut replaced = Ok(Replacement::NoSecondCopy);
        let Some((layout, _)) = self.pool.layout_and_table(place) else { return Ok(false) };
        let fingerprint = key.fingerprint(layout.upper);
        self.with_crowd(place, &mut |crowd| {
            replaced = crowd.replace_second_copy(key.buckets, fingerprint, max_buckets, needed <= budget);
        })?;
        match replaced? {
            // One copy has left the table and one item has entered it, so the item count stays the same.
            Replacement::Stored { .. } => Ok(true),
            Replacement::NoSecondCopy => Ok(false),
            Replacement::NeedsEntry => Err(InsertError::limit(needed)),
        }
    }

    /// Moves second copies out of a table with `sweep`, which returns their number: as many as there is memory for.
    pub(super) fn sweep(&mut self, place: Place, sweep: &mut dyn FnMut(&mut Crowd<'_, ShardParams>) -> usize) {
        let mut moved = 0;
        _ = self.with_crowd(place, &mut |crowd| moved = sweep(crowd));
        if let Some((_, record, _)) = self.pool.open(place) {
            let items = record.items() - moved;
            record.set_items(items);
            self.len -= moved;
        }
    }

    /// Calls a function that may move copies out of a shard's table.
    fn with_crowd(&mut self, place: Place, act: &mut dyn FnMut(&mut Crowd<'_, ShardParams>)) -> Result<(), OutOfMemory> {
        self.copies.list_or_new(self.plan.entry_keys())?;
        if let (Some(copies), Some((layout, record, table))) = (self.copies.list_mut(), self.pool.open(place)) {
            let (plan, prefix) = (&self.plan, record.prefix());
            let key = &|bucket, fingerprint| {
                plan.entry_key(plan.class_key(Key::from_stored(layout.params, prefix.into(), bucket, fingerprint)), 0)
            };
            self.dispatch.change_deep(&layout.geometry, table, Crowded { params: &layout.params, key, copies, act });
        }
        self.copies.drop_empty();
        Ok(())
    }

    /// Counts the items near this one's first bucket that have another copy in the table: if the item is present, only until they
    /// are beyond chance.
    pub(super) fn copies_around(&self, place: Place, key: Key, is_present: bool) -> Around {
        let none = Around { repeated: 0, are_beyond_chance: false, are_many: false };
        let Some((layout, table)) = self.pool.layout_and_table(place) else { return none };
        let slots = |bucket| layout.slots(self.dispatch, table, bucket);
        let by_chance =
            |items: u64| (2 * items * u64::from(layout.params.bucket_size())).unbounded_shr(layout.params.stored_bits());
        let most_by_chance = by_chance(PIECE_BUCKETS * u64::from(layout.params.bucket_size()));
        let first = key.buckets.0 / PIECE_BUCKETS * PIECE_BUCKETS;
        let may_split = self.may_split(place);
        let (mut repeated, mut all) = (0, 0);
        for bucket in first..layout.params.buckets().min(first + PIECE_BUCKETS) {
            let here = slots(bucket);
            for fingerprint in fingerprints(&here) {
                let (value, alternate) = (fingerprint.wide(), layout.params.alternate(bucket, fingerprint));
                let is_repeated_here = here.iter().filter(|&&other| other == value).count() > 1;
                repeated += u64::from(is_repeated_here || alternate != bucket && slots(alternate).contains(&value));
                all += 1;
            }
            // Counting takes as long as a split.
            if may_split && repeated == 0 && bucket + 1 == first + SAMPLE_BUCKETS {
                return none;
            }
            if is_present && repeated > 2 + 2 * most_by_chance {
                break;
            }
        }
        let one_in = if may_split { SWEEP_ONE_IN } else { SWEEP_ONE_IN_AT_MAX_DEPTH };
        // A repeated item has a first copy as well, so half of `repeated` are second copies.
        Around {
            repeated: index(repeated),
            are_beyond_chance: repeated > 2 + 2 * by_chance(all),
            are_many: one_in * repeated > 2 * all && repeated > 2 * by_chance(all),
        }
    }

    /// Returns true if this generation has copies beside its tables, or more buckets of the table have an item twice than chance explains.
    /// Copies of an item are often in one bucket. To look for others in the other bucket of every item takes many times as long.
    pub(super) fn has_copies_to_move(&self, place: Place, key: Key) -> bool {
        let Some((layout, table)) = self.pool.layout_and_table(place) else { return false };
        self.has_extra_copies() || {
            let buckets = layout.params.buckets();
            let first = key.buckets.0.min(buckets.saturating_sub(MANY_BUCKETS));
            let is_twice = |&bucket: &u64| {
                let here = layout.slots(self.dispatch, table, bucket);
                // Equal fingerprints are neighbors.
                here.windows(2).any(|pair| pair[0] == pair[1] && pair[0] != 0)
            };
            let twice = wide((first..buckets.min(first + MANY_BUCKETS)).filter(is_twice).count());
            let pairs = u64::from(layout.params.bucket_size() * (layout.params.bucket_size() - 1) / 2);
            let by_chance = (MANY_BUCKETS * pairs).unbounded_shr(layout.params.stored_bits());
            twice > by_chance + 4 * by_chance.isqrt() + 2
        }
    }
}

/// The items near a bucket that have another copy in the table.
pub(super) struct Around {
    /// The number of their copies.
    pub repeated: usize,
    /// True if they are more than chance explains, so that an item which matches another one is probably its copy.
    pub are_beyond_chance: bool,
    /// True if moving all but one copy of each is worthwhile.
    pub are_many: bool,
}

/// The checks of [`ElasticFilter::assert_consistent`](crate::ElasticFilter::assert_consistent).
impl Generation {
    pub fn assert_copies(&self) {
        let Some(copies) = self.extra_copy_list() else { return };
        let (mut last, mut total, mut entries) = (None, 0, 0);
        for (entry, extra) in copies.iter() {
            assert!(last < Some(entry), "entries are not in order");
            let (class_key, _) = self.plan.entry_parts(entry);
            let key = self.plan.item_of(class_key).expect("an entry has a valid key");
            let place = self.place(key.stream);
            assert!(self.pool.list(place).is_none(), "an item of a list has {extra} extra copies beside it");
            let in_table = self.count_in_tables(class_key);
            assert!(in_table > 0, "an item has {extra} extra copies, but no copy in a table");
            assert!(
                in_table.checked_add(extra).is_some(),
                "{in_table} copies in a table and {extra} extra ones exceed the limit"
            );
            (last, total, entries) = (Some(entry), total + u64::from(extra), entries + 1);
        }
        assert_eq!((total, entries), self.copies.totals());
        assert!(entries > 0, "the list of extra copies is empty");
    }
}
