//! Copies beside the tables of a generation: of an item that is in a table, further copies are counted instead of stored, so that
//! they never make the generation grow.
//!
//! Insertions do not look for copies until there are many: a copy goes into a table as any other item. Where a shard has no room
//! for one, it is counted. Where it has none for another item, its second copies are counted instead of a split, if they are many;
//! if they are few, it is split, as without them.

use super::{Generation, Place};
use crate::{
    bits::{index, wide},
    elastic::shard::{Key, ShardParams},
    filter::{InsertError, InsertErrorKind},
    storage::OutOfMemory,
    table::{
        Crowd, Crowded, FEW_BUCKETS, Fingerprint, Pair, Placed, TableParams as _,
        copies::{self, Copies, Further},
        fingerprints,
    },
};

/// A shard has many second copies if one in this many of its items is one. Then they are moved out; to move fewer takes longer than
/// a split.
const MANY: u64 = 8;

/// [`MANY`] of a shard that cannot be split: hardly more than chance explains, since the alternative is a further generation.
const MANY_AT_LAST: u64 = 1 << 10;

/// Insertions ask first whether an item is there if one in this many items is a further copy. Asking takes time.
const MANY_FURTHER: u64 = 64;

/// A sample of a shard, before all of it is searched for copies, has [`MANY`] times this many slots.
const SAMPLED: u64 = 2;

impl Generation {
    /// Whether insertions have to ask first whether an item is there, so that copies are counted at once:
    /// [`insert`](Self::insert) always returns a place then.
    pub fn asks_first(&self) -> bool {
        self.full_unasked[0] == 0
    }

    pub fn set_asks_first(&mut self, asks_first: bool) {
        self.full_unasked = if asks_first { [0; 2] } else { self.full };
    }

    /// The number of further copies from which on insertions should ask first: more than there are of different items that share
    /// everything that is known of them, as estimated for shards of the greatest depth.
    pub fn many_copies(&self) -> u64 {
        let shard = self.plan.shard(self.global_depth());
        let by_chance =
            wide(self.len).saturating_mul(shard.bucket_size.into()) >> (u32::from(shard.low_bits) + u32::from(shard.upper_bits));
        by_chance.max(wide(self.len) / MANY_FURTHER)
    }

    /// [`insert`](Self::insert) for an item that is known not to be there.
    pub fn insert_unasked(&mut self, place: Place, key: Key) -> bool {
        place != Place::NONE && !self.is_full(place) && self.insert_at(place, key)
    }

    /// The same, for an item whose place is not known.
    pub fn insert_where_it_leads(&mut self, key: Key) -> bool {
        self.insert_unasked(self.place(key), key)
    }

    /// The place of an item's shard.
    pub fn place(&self, key: Key) -> Place {
        self.find(key.stream).unwrap_or(Place::NONE)
    }

    /// True if an item is there, as far as all bits tell that the generation knows.
    pub fn has(&self, key: Key) -> bool {
        self.contains(key) && self.count_in_table(key) > 0
    }

    /// True if the shard of an item is not of the greatest depth.
    pub fn may_split(&self, key: Key) -> bool {
        let place = self.place(key);
        place != Place::NONE && self.depth_of(place) < self.plan.most_depth
    }

    /// True if an item, which is there, is a copy; if it may be another one, only where more items of its shard are there twice
    /// than different ones are alike by chance.
    pub fn is_copy(&self, key: Key, may_be_another: bool) -> bool {
        !may_be_another || self.has_copies_beside(key)
    }

    fn has_copies_beside(&self, key: Key) -> bool {
        let place = self.place(key);
        // In sixteenths.
        let by_chance = |place| self.by_chance(place, 16 * wide(self.items(place)));
        place != Place::NONE && 16 * self.seconds(place).copies > 16 + 4 * by_chance(place)
    }

    /// What stands for an item in the list of copies.
    pub fn listed(&self, key: Key) -> copies::ClassKey {
        self.plan.key_of(key)
    }

    /// The number of further copies of an item: those that are not in a table.
    pub fn further(&self, key: Key) -> u32 {
        if self.copies.are_none() { 0 } else { self.copies.get(self.listed(key)) }
    }

    /// The total of further copies, and the number of items that have some.
    pub fn further_totals(&self) -> (u64, usize) {
        self.copies.totals()
    }

    pub fn has_further(&self) -> bool {
        !self.copies.are_none()
    }

    /// All further copies.
    pub fn further_copies(&self) -> Option<&Copies> {
        self.copies.list()
    }

    /// Those of a snapshot, which must be valid.
    pub fn set_further(&mut self, entries: &(impl Iterator<Item = (copies::ClassKey, u32)> + Clone)) -> Result<(), OutOfMemory> {
        self.copies = Further::from_sorted(self.plan.keys(), entries)?;
        Ok(())
    }

    /// The number of copies in the tables of what a key stands for; 0 if that is nothing.
    pub fn occurrences_of(&self, listed: copies::ClassKey) -> u32 {
        self.plan.listed(listed).map_or(0, |key| self.count_in_table(key))
    }

    /// What so many entries more add to the charge.
    fn charge_of_entries(&self, more: usize) -> usize {
        let (keys, (_, entries)) = (self.plan.keys(), self.further_totals());
        keys.charge(entries.saturating_add(more)).saturating_sub(keys.charge(entries))
    }

    /// Counts a copy more of an item that has further ones; or of any that is in a table, where other items have further copies, if
    /// that may need memory. Returns false, and has changed nothing, if it is not there, has nearly 2³², or if there is no memory.
    pub fn count_another(&mut self, key: Key, may_need_memory: bool) -> bool {
        let listed = self.listed(key);
        let is_there = |generation: &Self| generation.further(key) > 0 || may_need_memory && generation.count_in_table(key) > 0;
        self.has_further()
            && is_there(self)
            && self.copies.list_mut().is_some_and(|copies| copies.add(listed, 1, copies::MOST) == Ok(true))
    }

    /// Counts further copies of an item that is in a table. The charge may rise by `allowed`. If it fails, nothing has changed.
    pub fn count_further(&mut self, key: Key, copies: u32, allowed: usize) -> Result<(), InsertError> {
        let (listed, here) = (self.listed(key), self.further(key));
        let needed = if here == 0 { self.charge_of_entries(1) } else { 0 };
        if needed > allowed {
            return Err(InsertError::limit(needed));
        }
        let most = u32::MAX - self.count_in_table(key);
        let added = self.copies.list_or_new(self.plan.keys())?.add(listed, copies, most);
        self.copies.drop_empty();
        if added? { Ok(()) } else { Err(InsertError::of(InsertErrorKind::TooManyCopies)) }
    }

    /// Removes up to so many of an item's further copies. Returns how many.
    pub fn take_copies(&mut self, key: Key, most: u32) -> u32 {
        let listed = self.listed(key);
        self.copies.take(listed, most)
    }

    /// Inserts an item for which its shard has no room, if that is because of copies. Returns false, and has changed nothing, if it
    /// is not.
    pub fn insert_for_copies(&mut self, place: Place, key: Key, allowed: usize) -> Result<bool, InsertError> {
        let many = self.may_have_many(place).then(|| self.seconds(place));
        let Some(Seconds { entries, .. }) = many.filter(|seconds| self.are_many(place, seconds.copies)) else {
            let is_in_the_way = !self.is_full(place) && self.is_between_copies(place, key);
            return if is_in_the_way { self.insert_for_a_copy(place, key, FEW_BUCKETS, allowed) } else { Ok(false) };
        };
        // An item that looks like another one there becomes a second copy, too.
        let is_alike = self.count_in_table(key) == 1 && self.further(key) == 0;
        // The item first: if it finds no room even so, all stays as it was.
        let needed = self.charge_of_entries(entries + usize::from(is_alike));
        if needed > allowed {
            return Err(InsertError::limit(needed));
        }
        let is_inserted = self.insert_at(place, key) || self.insert_for_a_copy(place, key, FEW_BUCKETS, allowed)?;
        if is_inserted {
            // The item has its place, whatever memory there is.
            _ = self.sweep(place);
        }
        Ok(is_inserted)
    }

    /// Inserts an item in the place of a second copy of another one that is found in so many buckets. Returns false, and has
    /// changed nothing, if there is none.
    pub fn insert_for_a_copy(
        &mut self,
        place: Place,
        key: Key,
        most_buckets: usize,
        allowed: usize,
    ) -> Result<bool, InsertError> {
        let needed = self.charge_of_entries(1);
        let mut placed = Ok(Placed::NoSecond);
        let fingerprint = key.fingerprint(self.pool.level(self.depth_of(place)).layout.upper);
        self.crowded(place, &mut |crowd| placed = crowd.place(key.buckets, fingerprint, most_buckets, needed <= allowed))?;
        match placed? {
            // What was moved out makes room for what was stored: their number is as before.
            Placed::Behind(_) => Ok(true),
            Placed::NoSecond => Ok(false),
            Placed::NoEntry => Err(InsertError::limit(needed)),
        }
    }

    /// Moves all second copies out of a shard, as far as there is memory.
    fn sweep(&mut self, place: Place) -> Result<(), OutOfMemory> {
        let mut moved = 0;
        self.crowded(place, &mut |crowd| moved = crowd.sweep())?;
        let record = self.pool.open(place).1;
        let items = record.items() - moved;
        record.set_items(items);
        self.len -= moved;
        Ok(())
    }

    /// Shows the table of a shard to a function, which may move copies out of it.
    fn crowded(&mut self, place: Place, act: &mut dyn FnMut(&mut Crowd<'_, ShardParams>)) -> Result<(), OutOfMemory> {
        self.copies.list_or_new(self.plan.keys())?;
        if let Some(copies) = self.copies.list_mut() {
            let (layout, record, table) = self.pool.open(place);
            let above = u64::from(record.prefix()) << layout.params.stored_bits();
            self.dispatch.change_deep(&layout.geometry, table, Crowded { params: &layout.params, above, copies, act });
        }
        self.copies.drop_empty();
        Ok(())
    }

    /// Looks at a part of a shard: false if few items are there twice.
    fn may_have_many(&self, place: Place) -> bool {
        let (params, many) = (&self.pool.level(self.depth_of(place)).layout.params, self.many(place));
        let step = (params.buckets() * u64::from(params.bucket_size()) / (SAMPLED * many)).max(1);
        let (repeated, all) = self.repeated(place, (0..params.buckets()).step_by(index(step)));
        // Of each second copy, there is a first one, too.
        2 * many * repeated > all && repeated > 2 * self.by_chance(place, 2 * all)
    }

    /// True if half of what an item's two buckets have is there twice, and it is not by chance.
    fn is_between_copies(&self, place: Place, Key { buckets: (first, second), .. }: Key) -> bool {
        let (repeated, all) = self.repeated(place, [first, second].into_iter());
        2 * repeated >= all && repeated > 1
    }

    /// The number of items in these buckets that are there twice, and that of all.
    fn repeated(&self, place: Place, buckets: impl Iterator<Item = u64>) -> (u64, u64) {
        let layout = &self.pool.level(self.depth_of(place)).layout;
        let slots = |bucket| layout.slots(self.dispatch, self.pool.table(place), bucket);
        let (mut repeated, mut all) = (0, 0);
        for bucket in buckets {
            let here = slots(bucket);
            for fingerprint in fingerprints(&here) {
                let (value, alternate) = (fingerprint.get(), layout.params.alternate(bucket, fingerprint));
                let is_twice = here.iter().filter(|&&other| other == value).count() > 1;
                repeated += u64::from(is_twice || alternate != bucket && slots(alternate).contains(&value));
                all += 1;
            }
        }
        (repeated, all)
    }

    /// A shard has many second copies if one in this many of its items is one.
    fn many(&self, place: Place) -> u64 {
        if self.depth_of(place) < self.plan.most_depth { MANY } else { MANY_AT_LAST }
    }

    /// Of so many items of a shard, this many share everything that is known of them with a different one, or fewer.
    fn by_chance(&self, place: Place, items: u64) -> u64 {
        let params = self.plan.shard(self.depth_of(place));
        (items * u64::from(params.bucket_size)) >> params.stored_bits()
    }

    /// Counts the second copies in a shard.
    fn seconds(&self, place: Place) -> Seconds {
        let (shard, prefix) = self.pool.shard(self.dispatch, place);
        let above = u64::from(prefix) << shard.params().stored_bits();
        let mut seconds = Seconds { copies: 0, entries: 0 };
        shard.each_class(&mut |buckets: Pair, fingerprint: Fingerprint, copies| {
            if copies > 1 {
                let listed = self.plan.keys().key(buckets, above | fingerprint.wide());
                seconds.copies += u64::from(copies - 1);
                seconds.entries += usize::from(self.copies.get(listed) == 0);
            }
            true
        });
        seconds
    }

    /// True if a shard has so many second copies that they are to be moved out: more than chance makes different items alike.
    fn are_many(&self, place: Place, copies: u64) -> bool {
        let items = wide(self.items(place));
        copies * self.many(place) >= items && copies > 2 * self.by_chance(place, items)
    }
}

/// What would be moved out of a shard: this many copies of items, of which so many have no further ones yet.
struct Seconds {
    copies: u64,
    entries: usize,
}

/// For [`ElasticFilter::assert_consistent`](crate::ElasticFilter::assert_consistent).
impl Generation {
    pub fn assert_copies(&self) {
        let Some(copies) = self.further_copies() else { return };
        let (mut last, mut total, mut entries) = (None, 0, 0);
        for (listed, number) in copies.iter() {
            assert!(last < Some(listed), "entries are in order");
            let here = self.occurrences_of(listed);
            assert!(here > 0, "an item has {number} further copies, and is in no table");
            assert!(here.checked_add(number).is_some(), "{here} and {number} copies");
            (last, total, entries) = (Some(listed), total + u64::from(number), entries + 1);
        }
        assert_eq!((total, entries), self.further_totals());
        assert!(entries > 0, "a list of nothing");
    }
}
