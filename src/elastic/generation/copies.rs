//! The extra copies of a generation. A list counts them beside the tables, so that copies never make the generation grow.
//!
//! Tables may also hold second copies: all copies of an item there except the first. While there are few copies, insertions do
//! not look them up, and store a copy like any other item. If a shard has no room for a copy, the copy is counted in the list. If
//! it has no room for a new item, its second copies move to the list if there are many, and otherwise the shard splits.

use super::{FullAt, Generation, Place};
use crate::{
    bits::{index, wide},
    elastic::shard::{Key, ShardParams},
    filter::{InsertError, InsertErrorKind},
    storage::OutOfMemory,
    table::{
        Crowd, Crowded, Fingerprint, Pair, Placed, SHORT_SEARCH, TableParams as _,
        copies::{self, Copies, ExtraCopies},
        fingerprints,
    },
};

/// The second copies of a full shard move to the list if at least one in this many items is one. Moving fewer would take longer
/// than a split.
const SWEEP_ONE_IN: u64 = 8;

/// The same ratio for a shard that cannot be split. It is hardly more than chance explains, since the alternative is a further
/// generation.
const SWEEP_ONE_IN_AT_MAX_DEPTH: u64 = 1 << 10;

/// Insertions look up the item first if at least one in this many items is an extra copy. With fewer, lookups cost more than they
/// save.
const LOOK_UP_FIRST_ONE_IN: u64 = 64;

/// Before a whole shard is searched for copies, a sample is searched. It has this many slots times the ratio for the shard
/// ([`Generation::sweep_one_in`]).
const SAMPLE_FACTOR: u64 = 2;

impl Generation {
    /// Returns true if insertions look up the item first, so that its copies are counted without storing them.
    /// [`insert`](Self::insert) then always returns an error with a place.
    pub fn looks_up_first(&self) -> bool {
        self.slow_from == FullAt::ALWAYS
    }

    /// Sets whether insertions look up the item first.
    pub fn set_looks_up_first(&mut self, looks_up_first: bool) {
        self.slow_from = if looks_up_first { FullAt::ALWAYS } else { self.full_at };
    }

    /// Returns the number of this generation's extra copies from which insertions should look up the item first. `items` is the
    /// number of items in this and all later generations: later items that match one of this generation may be counted here, too.
    ///
    /// It is at least twice the number of distinct items that are expected to look equal by chance, if all shards have the
    /// greatest depth in use. Otherwise, items of a filter with a high false-positive rate would be taken for copies.
    pub fn look_up_first_threshold(&self, items: u64) -> u64 {
        let shard = self.plan.shard(self.global_depth());
        let expected_collisions =
            items.saturating_mul(shard.bucket_size.into()) >> (u32::from(shard.low_bits) + u32::from(shard.upper_bits));
        expected_collisions.saturating_mul(2).max(wide(self.len) / LOOK_UP_FIRST_ONE_IN)
    }

    /// Inserts an item into this shard without looking it up. Returns false, and changes nothing, if the shard is full or has no
    /// slot for the item, or if there is no shard.
    pub fn insert_unless_full(&mut self, place: Place, key: Key) -> bool {
        place != Place::NONE && !self.is_full(place) && self.insert_at(place, key)
    }

    /// Returns the place of an item's shard, or [`Place::NONE`] if there are no shards.
    pub fn place(&self, key: Key) -> Place {
        self.find(key.stream).unwrap_or(Place::NONE)
    }

    /// Returns true if an item matches in all bits that the generation knows, not only in those that lookups compare.
    pub fn contains_exactly(&self, key: Key) -> bool {
        self.contains(key) && self.count_in_table(key) > 0
    }

    /// Returns true if an item's shard is not yet of the greatest depth.
    pub fn may_split(&self, key: Key) -> bool {
        let place = self.place(key);
        place != Place::NONE && self.depth_of(place) < self.plan.max_depth
    }

    /// Returns true if an item that matches a stored one should be counted as its copy. If it may be a distinct item, its shard
    /// must have more second copies than chance explains.
    pub fn is_likely_copy(&self, key: Key, may_be_distinct: bool) -> bool {
        !may_be_distinct || self.shard_has_copies(key)
    }

    /// Returns true if an item's shard has more second copies than chance explains.
    fn shard_has_copies(&self, key: Key) -> bool {
        let place = self.place(key);
        // More than 1 + 4 × the expected collisions. All terms are in sixteenths, so that rounding matters less.
        let expected = |place| self.expected_collisions(place, 16 * wide(self.items(place)));
        place != Place::NONE && 16 * self.second_copies(place).copies > 16 + 4 * expected(place)
    }

    /// Returns the class key that represents an item in lists.
    pub fn class_key(&self, key: Key) -> copies::ClassKey {
        self.plan.class_key(key)
    }

    /// Returns the number of an item's extra copies.
    pub fn extra_copies(&self, key: Key) -> u32 {
        if self.copies.is_empty() { 0 } else { self.copies.get(self.class_key(key)) }
    }

    /// Returns the total of extra copies, and the number of items that have some.
    pub fn extra_copy_totals(&self) -> (u64, usize) {
        self.copies.totals()
    }

    pub fn has_extra_copies(&self) -> bool {
        !self.copies.is_empty()
    }

    /// Returns the list of extra copies, if there are any.
    pub fn extra_copy_list(&self) -> Option<&Copies> {
        self.copies.list()
    }

    /// Sets the extra copies to those of a snapshot, which must be valid.
    pub fn set_extra_copies(
        &mut self,
        entries: &(impl Iterator<Item = (copies::ClassKey, u32)> + Clone),
    ) -> Result<(), OutOfMemory> {
        self.copies = ExtraCopies::from_sorted(self.plan.class_keys(), entries)?;
        Ok(())
    }

    /// Returns how many copies of the item with this class key are in its table or in the item list; 0 if the key is invalid.
    pub fn count_class_in_table(&self, class_key: copies::ClassKey) -> u32 {
        self.plan.item_of(class_key).map_or(0, |key| self.count_in_table(key))
    }

    /// Returns by how much `more` entries in the list of extra copies raise the charge.
    fn charge_for_entries(&self, more: usize) -> usize {
        let (keys, (_, entries)) = (self.plan.class_keys(), self.extra_copy_totals());
        keys.charge(entries.saturating_add(more)).saturating_sub(keys.charge(entries))
    }

    /// Counts one more copy of an item in the list of extra copies, if the generation has such a list. The item must be in the
    /// list; if the list may need memory, it is enough that the item is in a table. Returns false, and changes nothing, if the
    /// item is not there, has nearly 2³² copies, or if memory cannot be allocated.
    pub fn count_one_more(&mut self, key: Key, may_need_memory: bool) -> bool {
        let class_key = self.class_key(key);
        self.has_extra_copies()
            && (self.extra_copies(key) > 0 || may_need_memory && self.count_in_table(key) > 0)
            && self.copies.list_mut().is_some_and(|copies| copies.add(class_key, 1, copies::MOST) == Ok(true))
    }

    /// Counts extra copies of an item that is in a table or in the item list. The charge may rise by at most `budget` bytes. On
    /// failure, nothing changes.
    pub fn add_extra_copies(&mut self, key: Key, copies: u32, budget: usize) -> Result<(), InsertError> {
        let (class_key, here) = (self.class_key(key), self.extra_copies(key));
        let needed = if here == 0 { self.charge_for_entries(1) } else { 0 };
        if needed > budget {
            return Err(InsertError::limit(needed));
        }
        let most = u32::MAX - self.count_in_table(key);
        let added = self.copies.list_or_new(self.plan.class_keys())?.add(class_key, copies, most);
        self.copies.drop_empty();
        if added? { Ok(()) } else { Err(InsertError::of(InsertErrorKind::TooManyCopies)) }
    }

    /// Removes up to `most` of an item's extra copies. Returns how many it has removed.
    pub fn remove_extra_copies(&mut self, key: Key, most: u32) -> u32 {
        let class_key = self.class_key(key);
        self.copies.take(class_key, most)
    }

    /// Inserts an item for which its shard has no room, if copies take that room: moves second copies to the list. Returns false,
    /// and changes nothing, if copies are not the reason.
    pub fn make_room_among_copies(&mut self, place: Place, key: Key, budget: usize) -> Result<bool, InsertError> {
        let seconds = self.sample_has_many_copies(place).then(|| self.second_copies(place));
        let Some(SecondCopies { entries, .. }) = seconds.filter(|seconds| self.is_worth_sweeping(place, seconds.copies)) else {
            let is_blocked = !self.is_full(place) && self.is_blocked_by_copies(place, key);
            return if is_blocked { self.replace_second_copy(place, key, SHORT_SEARCH, budget) } else { Ok(false) };
        };
        // An item that matches a stored one becomes a second copy, too.
        let matches_one = self.count_in_table(key) == 1 && self.extra_copies(key) == 0;
        // Inserts the item first, so that nothing changes if there is no room for it.
        let needed = self.charge_for_entries(entries + usize::from(matches_one));
        if needed > budget {
            return Err(InsertError::limit(needed));
        }
        let is_inserted = self.insert_at(place, key) || self.replace_second_copy(place, key, SHORT_SEARCH, budget)?;
        if is_inserted {
            // The item is stored even if the sweep fails for lack of memory.
            _ = self.sweep(place);
        }
        Ok(is_inserted)
    }

    /// Moves a second copy of another item to the list and inserts this item into the freed slot. Searches at most `max_buckets`
    /// buckets. Returns false, and changes nothing, if they contain no second copy.
    pub fn replace_second_copy(
        &mut self,
        place: Place,
        key: Key,
        max_buckets: usize,
        budget: usize,
    ) -> Result<bool, InsertError> {
        let needed = self.charge_for_entries(1);
        let mut placed = Ok(Placed::NoSecondCopy);
        let fingerprint = key.fingerprint(self.pool.level(self.depth_of(place)).layout.upper);
        self.with_crowd(place, &mut |crowd| placed = crowd.place(key.buckets, fingerprint, max_buckets, needed <= budget))?;
        match placed? {
            // One copy has left the table and one item has entered it, so the item count stays the same.
            Placed::Stored(_) => Ok(true),
            Placed::NoSecondCopy => Ok(false),
            Placed::NeedsEntry => Err(InsertError::limit(needed)),
        }
    }

    /// Moves the second copies of a shard to the list, as many as there is memory for.
    fn sweep(&mut self, place: Place) -> Result<(), OutOfMemory> {
        let mut moved = 0;
        self.with_crowd(place, &mut |crowd| moved = crowd.sweep())?;
        let record = self.pool.open(place).1;
        let items = record.items() - moved;
        record.set_items(items);
        self.len -= moved;
        Ok(())
    }

    /// Calls a function that may move copies from a shard's table to the list.
    fn with_crowd(&mut self, place: Place, act: &mut dyn FnMut(&mut Crowd<'_, ShardParams>)) -> Result<(), OutOfMemory> {
        self.copies.list_or_new(self.plan.class_keys())?;
        if let Some(copies) = self.copies.list_mut() {
            let (layout, record, table) = self.pool.open(place);
            let above = u64::from(record.prefix()) << layout.params.stored_bits();
            self.dispatch.change_deep(&layout.geometry, table, Crowded { params: &layout.params, above, copies, act });
        }
        self.copies.drop_empty();
        Ok(())
    }

    /// Searches a sample of a shard's buckets. Returns false if they have few repeated items.
    fn sample_has_many_copies(&self, place: Place) -> bool {
        let (params, one_in) = (&self.pool.level(self.depth_of(place)).layout.params, self.sweep_one_in(place));
        let step = (params.buckets() * u64::from(params.bucket_size()) / (SAMPLE_FACTOR * one_in)).max(1);
        let (repeated, all) = self.count_repeated(place, (0..params.buckets()).step_by(index(step)));
        // A repeated item has a first copy as well, so half of `repeated` are second copies.
        2 * one_in * repeated > all && repeated > 2 * self.expected_collisions(place, 2 * all)
    }

    /// Returns true if at least two, and at least half, of the items in this item's two buckets are repeated.
    fn is_blocked_by_copies(&self, place: Place, Key { buckets: (first, second), .. }: Key) -> bool {
        let (repeated, all) = self.count_repeated(place, [first, second].into_iter());
        2 * repeated >= all && repeated > 1
    }

    /// Returns the number of repeated items in these buckets, and the number of all items there.
    fn count_repeated(&self, place: Place, buckets: impl Iterator<Item = u64>) -> (u64, u64) {
        let layout = &self.pool.level(self.depth_of(place)).layout;
        let slots = |bucket| layout.slots(self.dispatch, self.pool.table(place), bucket);
        let (mut repeated, mut all) = (0, 0);
        for bucket in buckets {
            let here = slots(bucket);
            for fingerprint in fingerprints(&here) {
                let (value, alternate) = (fingerprint.get(), layout.params.alternate(bucket, fingerprint));
                let is_repeated_here = here.iter().filter(|&&other| other == value).count() > 1;
                repeated += u64::from(is_repeated_here || alternate != bucket && slots(alternate).contains(&value));
                all += 1;
            }
        }
        (repeated, all)
    }

    /// Returns the ratio for this shard: [`SWEEP_ONE_IN`] or [`SWEEP_ONE_IN_AT_MAX_DEPTH`].
    fn sweep_one_in(&self, place: Place) -> u64 {
        if self.depth_of(place) < self.plan.max_depth { SWEEP_ONE_IN } else { SWEEP_ONE_IN_AT_MAX_DEPTH }
    }

    /// Returns an upper bound of how many of `items` items in a shard are expected to share all known bits with a distinct item.
    fn expected_collisions(&self, place: Place, items: u64) -> u64 {
        let params = self.plan.shard(self.depth_of(place));
        (items * u64::from(params.bucket_size)) >> params.stored_bits()
    }

    /// Counts the second copies in a shard.
    fn second_copies(&self, place: Place) -> SecondCopies {
        let (shard, prefix) = self.pool.shard(self.dispatch, place);
        let above = u64::from(prefix) << shard.params().stored_bits();
        let mut seconds = SecondCopies { copies: 0, entries: 0 };
        shard.each_class(&mut |buckets: Pair, fingerprint: Fingerprint, copies| {
            if copies > 1 {
                let class_key = self.plan.class_keys().key(buckets, above | fingerprint.wide());
                seconds.copies += u64::from(copies - 1);
                seconds.entries += usize::from(self.copies.get(class_key) == 0);
            }
            true
        });
        seconds
    }

    /// Returns true if moving this many second copies out of a shard is worthwhile: they are enough to save a split, and more than
    /// chance explains.
    fn is_worth_sweeping(&self, place: Place, copies: u64) -> bool {
        let items = wide(self.items(place));
        copies * self.sweep_one_in(place) >= items && copies > 2 * self.expected_collisions(place, items)
    }
}

/// The second copies in a shard.
struct SecondCopies {
    copies: u64,
    /// The number of items that have second copies but no extra ones yet: each would need a new entry in the list.
    entries: usize,
}

/// The checks of [`ElasticFilter::assert_consistent`](crate::ElasticFilter::assert_consistent).
impl Generation {
    pub fn assert_copies(&self) {
        let Some(copies) = self.extra_copy_list() else { return };
        let (mut last, mut total, mut entries) = (None, 0, 0);
        for (class_key, extra) in copies.iter() {
            assert!(last < Some(class_key), "entries are not in order");
            let in_table = self.count_class_in_table(class_key);
            assert!(in_table > 0, "an item has {extra} extra copies, but no copy in a table");
            assert!(
                in_table.checked_add(extra).is_some(),
                "{in_table} copies in a table and {extra} extra ones exceed the limit"
            );
            (last, total, entries) = (Some(class_key), total + u64::from(extra), entries + 1);
        }
        assert_eq!((total, entries), self.extra_copy_totals());
        assert!(entries > 0, "the list of extra copies is empty");
    }
}
