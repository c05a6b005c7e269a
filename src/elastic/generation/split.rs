//! Splitting and joining: from the decision to the directory.
//!
//! A full shard splits in two, and each item gives up the first of its upper bits, which says to which half it belongs:
//!
//! ```text
//! a shard, prefix 01            prefix 010                prefix 011
//! bucket 0  │ 1.a 0.b 1.c     │ │ b            │          │ a c          │
//! bucket 1  │ 0.d 0.e 1.f 1.g │ │ d e          │          │ f g          │
//! ```
//!
//! A split tries first and commits then: it fills only the half to which the new item leads, and inserts the item there. If that
//! half has no room either, it tries the next deeper one. Then it allocates the other parts and a directory, and only when it has
//! both, it changes the directory. Two underfull shards are joined by the reverse.

use super::{Generation, Key, Place, Shard, ShardMut, ShardRecord};
use crate::{
    bits::{low_half, wide},
    elastic::{directory::Directory, plan::GenerationPlan, stream::Window},
    filter::{InsertError, InsertErrorKind},
    storage::OutOfMemory,
    table::{MOST_BUCKETS, TableParams as _},
};

/// The share of its slots from which on a shard is split, if it can be. Fuller ones would take more time to fill than they save
/// in space.
const FULL: (usize, usize) = (15, 16);

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

/// A removal joins a shard that fills at most this share of its slots with its sibling if together they fill at most twice as much,
/// so that the joined shard is far from full. On request, siblings are joined that together fill at most the other share of one.
const THIN: (usize, usize) = (1, 5);
const MOST_TO_SHRINK: (usize, usize) = (9, 10);

/// The number of items from which on a shard is split; and from which on one that cannot be split is full.
pub(crate) fn full(plan: &GenerationPlan) -> [u32; 2] {
    [share(plan, FULL), full_at_last(plan)].map(items_of_a_shard)
}

/// The number of items up to which a removal joins a shard with its sibling, if that has few as well.
pub(crate) fn thin(plan: &GenerationPlan) -> u32 {
    items_of_a_shard(share(plan, THIN))
}

impl Generation {
    /// True if a shard is full: it is to be split, or a further generation begun.
    pub fn is_full(&self, place: Place) -> bool {
        self.items(place) >= self.limit(place, self.full)
    }

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
        self.plan.most_depth.min(self.global_depth().max(depth))
    }

    /// Splits a shard as often as it takes to get one of this depth to which the stream leads, if `act` returns true for that.
    /// Returns what it returned. Otherwise, or if it fails, nothing has changed; `act` must have changed nothing, either.
    pub fn split(
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
                match between.and_then(|()| self.directory.deepened(depth)) {
                    Ok(deeper) => {
                        if let Some(deeper) = deeper {
                            self.directory = deeper;
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
        self.pool.drop_levels(self.global_depth());
    }

    /// What splitting a shard of depth `from` adds to the charge, while the shard is still there.
    fn charge_of_splits(&self, from: u8, depth: u8) -> usize {
        let of_depth = |part: u8| self.pool.charge_of_more(&self.plan, part, if part == depth { 2 } else { 1 });
        let directory = if depth > self.global_depth() { Directory::<Place>::bytes_of(depth) } else { 0 };
        (from + 1..=depth).map(of_depth).fold(directory, usize::saturating_add)
    }

    /// Adds a shard of this depth, for which there must be room, with those items of another one whose upper bits begin with
    /// `bits`. The directory does not lead to it yet.
    fn push_part(&mut self, whole: Place, depth: u8, bits: u32) -> Place {
        let record = self.pool.record(whole);
        let place = self.pool.push(ShardRecord::new(depth, record.prefix() << (depth - record.depth()) | bits, 0));
        let is_complete = self.fill(whole, place, |part, whole| fill_part(part, whole, bits));
        debug_assert!(is_complete, "a bucket of a part never has more items than that of the whole");
        place
    }

    /// Fills a shard with items of another one, of another depth. Returns what `fill` did.
    fn fill(&mut self, from: Place, to: Place, fill: impl FnOnce(&mut ShardMut<'_>, &Shard<'_>) -> bool) -> bool {
        let [source, target] = [from, to].map(|place| self.pool.record(place));
        let [source_layout, layout] = [source, target].map(|record| self.pool.level(record.depth()).layout);
        let (read, written) = self.pool.two_tables(from, to);
        let source = source_layout.shard(self.dispatch, read, source.items());
        let written = &mut written[..layout.params.padded_bytes()];
        let mut shard = ShardMut::from_parts(layout.params, written, target.items()).with_dispatch(self.dispatch);
        let (is_filled, items) = (fill(&mut shard, &source), shard.len());
        self.pool.set_items(to, target, items);
        is_filled
    }

    /// Writes the directory's entries for a shard.
    pub fn point_to(&mut self, place: Place) {
        let record = self.pool.record(place);
        self.directory.point(record.depth(), record.prefix(), place);
    }

    /// Removes a shard to which the directory does not lead any more, or will not. Calls `moved` with the old and new place of each
    /// shard that has moved.
    fn remove_shard(&mut self, place: Place, moved: &mut dyn FnMut(Place, Place)) {
        let Self { directory, pool, .. } = self;
        pool.remove(place, &mut |record, from, to| {
            directory.point(record.depth(), record.prefix(), to);
            moved(from, to);
        });
    }
}

// Joining.

impl Generation {
    /// Makes the directory as shallow as the shards allow.
    fn halve(&mut self) {
        while self.global_depth() > self.plan.least_depth && self.pool.level(self.global_depth()).len() == 0 {
            self.directory.halve();
        }
        self.pool.drop_levels(self.global_depth());
    }

    /// The other half of the shard that was split to make this one, unless it has been split further.
    fn sibling(&self, place: Place) -> Option<Place> {
        let record = self.pool.record(place);
        if record.depth() == self.plan.least_depth {
            return None;
        }
        let other = self.directory.at(record.depth(), record.prefix() ^ 1)?;
        (self.depth_of(other) == record.depth()).then_some(other)
    }

    /// Joins a shard with its sibling if the two hold at most `most` items. Returns whether it did; otherwise nothing has changed.
    pub fn join(&mut self, place: Place, most: usize) -> Result<bool, OutOfMemory> {
        let Some(other) = self.sibling(place).filter(|&other| self.items(place) + self.items(other) <= most) else {
            return Ok(false);
        };
        let record = self.pool.record(place);
        self.pool.reserve(record.depth() - 1, 1)?;
        let mut whole = self.pool.push(ShardRecord::new(record.depth() - 1, record.prefix() >> 1, 0));
        let mut halves = if record.prefix() & 1 == 0 { [place, other] } else { [other, place] };
        let is_filled = (0..).zip(halves).all(|(bit, half)| self.fill(half, whole, |whole, half| fill_half(whole, half, bit)));
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
        for depth in (self.plan.least_depth + 1..=self.global_depth()).rev() {
            let mut number = 0;
            while depth <= self.global_depth() && number < self.pool.level(depth).len() {
                // After a join, another shard is here.
                if !self.join(self.pool.place(depth, number), most).unwrap_or(false) {
                    number += 1;
                }
            }
        }
    }
}

/// A share of the slots of a generation's shards. A shard of fewer than 16 slots is always split: so small a table is soon too full
/// for an item of which both buckets are taken.
fn share(plan: &GenerationPlan, (numerator, denominator): (usize, usize)) -> usize {
    plan.whole.slots() / denominator * numerator
}

/// A number of items in a shard, which has fewer than 2³².
pub(crate) fn items_of_a_shard(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

/// The number of items from which on a shard of the greatest depth is full.
fn full_at_last(plan: &GenerationPlan) -> usize {
    if plan.whole.slots() < LARGE { usize::MAX } else { share(plan, FULL_AT_LAST).max(plan.items_that_fit()) }
}

/// Fills a shard with those items of a shallower one whose upper bits begin with `bits`, as many as the two differ in depth. It has
/// as many buckets, and each item is where it was, so that there is always room.
fn fill_part(part: &mut ShardMut<'_>, whole: &Shard<'_>, bits: u32) -> bool {
    let stored_bits = part.params().stored_bits();
    part.take_part(whole, bits)
        || part.receive(whole, |fingerprint| (fingerprint.get() >> stored_bits == bits).then(|| fingerprint.low(stored_bits)))
}

/// Adds the items of one of two halves to a shard. Returns false if they do not all fit.
fn fill_half(whole: &mut ShardMut<'_>, half: &Shard<'_>, bit: u32) -> bool {
    whole.add_half(half, bit).unwrap_or_else(|| {
        let stored_bits = half.params().stored_bits();
        whole.receive(half, |fingerprint| Some(fingerprint.with(u64::from(bit) << stored_bits)))
    })
}
