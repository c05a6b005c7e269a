//! Splitting and merging of shards: the decision, the tables and the directory.
//!
//! A full shard splits in two. Each item gives up the first of its upper bits, which selects its half:
//!
//! ```text
//! a shard, prefix 01            prefix 010                prefix 011
//! bucket 0  │ 1.a 0.b 1.c     │ │ b            │          │ a c          │
//! bucket 1  │ 0.d 0.e 1.f 1.g │ │ d e          │          │ f g          │
//! ```
//!
//! A split tries first, then commits. It fills only the half of the new item, and inserts the item there. If that half has no room
//! either, it tries the next depth. Then it allocates the other parts and a directory, and only then changes the directory. Merging
//! two underfull shards is the reverse.

use super::{Generation, Key, Place, Shard, ShardMut, ShardRecord};
use crate::{
    bits::{low_half, wide},
    elastic::{directory::Directory, plan::GenerationPlan, stream::Window},
    filter::{InsertError, InsertErrorKind},
    storage::OutOfMemory,
    table::{LONG_SEARCH, TableParams as _},
};

/// The load factor from which a shard splits. Fuller shards would cost more time to fill than they save space.
const SPLIT_LOAD: (usize, usize) = (15, 16);

/// The load factor from which a large shard of the greatest depth is full, unless it is planned for more items. The walks for the
/// last items of a large table take 10 microseconds each, and all shards of a filter that is planned for its size become full at
/// the same time.
const MAX_DEPTH_LOAD: (usize, usize) = (31, 32);

/// The fewest slots of a large shard.
const LARGE_SHARD_SLOTS: usize = 1 << 12;

/// The most directory entries per shard. Uniform hashes need a few. Chosen hashes can make one shard far deeper than the others,
/// and without this limit, the directory would grow exponentially with its depth.
const MAX_ENTRIES_PER_SHARD: u64 = 64;

/// The number of directory entries that is allowed with any number of shards.
const ALLOWED_ENTRIES: u64 = 1 << 10;

/// A generation that may have at most this many slots may be followed by another one at any load. After a larger one, the next
/// generation, which starts with an eighth of its slots, would take much memory for few items.
const SMALL_GENERATION_SLOTS: u64 = 1 << 14;

/// The load factor up to which a shard is underfull. A removal merges it with its sibling if the merged shard has at most twice
/// this load factor, which is far from full. (docs/GROWTH.md and the page of `ElasticFilter::shrink` call that two fifths.)
const UNDERFULL_LOAD: (usize, usize) = (1, 5);

/// The highest load factor of a shard that `shrink` makes by merging two.
const SHRINK_LOAD: (usize, usize) = (9, 10);

/// The item counts from which a shard is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FullAt {
    /// For shards that can be split.
    pub splittable: u32,
    /// For shards of the greatest depth. At least `splittable`.
    pub deepest: u32,
}

impl FullAt {
    /// Every shard is full.
    pub const ALWAYS: Self = Self { splittable: 0, deepest: 0 };
    /// No shard is full.
    pub const NEVER: Self = Self { splittable: u32::MAX, deepest: u32::MAX };

    /// Returns the counts for the shards of a generation.
    pub fn of(plan: &GenerationPlan) -> Self {
        Self { splittable: shard_items(share(plan, SPLIT_LOAD)), deepest: shard_items(max_depth_full_at(plan)) }
    }
}

/// Returns the item count up to which a shard is underfull.
pub(crate) fn merge_at(plan: &GenerationPlan) -> u32 {
    shard_items(share(plan, UNDERFULL_LOAD))
}

impl Generation {
    /// Returns true if a shard is full and should split, or needs a further generation.
    pub fn is_full(&self, place: Place) -> bool {
        self.items(place) >= self.full_from(place, self.full_at)
    }

    /// Inserts an item for which [`insert`](Self::insert) has returned this place, and splits shards as needed. The item is taken
    /// as absent. The charge may rise by at most `budget` bytes. Returns false if the upper bits are used up and a further
    /// generation is needed.
    ///
    /// Unless it returns true, no item has moved. `budget` decides only whether the item is accepted, not where it goes, so that
    /// filters with equal content stay equal.
    pub fn insert_growing(&mut self, place: Place, key: Key, budget: usize) -> Result<bool, InsertError> {
        if self.make_room_among_copies(place, key, budget)? {
            return Ok(true);
        }
        for depth in self.depth_of(place) + 1..=self.max_split_depth() {
            if self.split(place, depth, key.stream, budget, |generation, part| generation.insert_at(part, key))? {
                return Ok(true);
            }
        }
        let may_add_generation = self.justifies_generation();
        if may_add_generation && self.depth_of(place) == self.plan.max_depth && self.is_full(place) {
            return Ok(false);
        }
        if self.insert_at(place, key) || self.replace_second_copy(place, key, LONG_SEARCH, budget)? {
            return Ok(true);
        }
        if may_add_generation { Ok(false) } else { Err(InsertError::of(InsertErrorKind::Crowded)) }
    }

    /// Inserts an item into its shard without a split, even if the shard is full. Returns false, and changes nothing, if there is
    /// no slot for it.
    pub fn insert_without_splitting(&mut self, key: Key) -> bool {
        self.find(key.stream).is_some_and(|place| self.insert_at(place, key))
    }

    /// Returns true if a further generation takes little memory compared with this one: at least one in 16 of the slots that this
    /// one may have is taken, or it may have only few. Otherwise a full shard results from hashes that are not uniform. With
    /// buckets of one slot, uniform hashes can cause one much earlier, when three items share two buckets, so one slot in 256 is
    /// enough.
    fn justifies_generation(&self) -> bool {
        let slots = wide(self.shard_slots()) << self.plan.max_depth;
        let share = if self.plan.whole.bucket_size == 1 { 8 } else { 4 };
        wide(self.len) >= slots >> share || slots <= SMALL_GENERATION_SLOTS
    }

    /// Returns the greatest depth to which a shard may split.
    fn max_split_depth(&self) -> u8 {
        let entries = wide(self.shards()).saturating_mul(MAX_ENTRIES_PER_SHARD).max(ALLOWED_ENTRIES);
        #[expect(clippy::cast_possible_truncation, reason = "below 64")]
        let depth = entries.ilog2() as u8;
        self.plan.max_depth.min(self.global_depth().max(depth))
    }

    /// Splits a shard repeatedly, until the stream leads to a part of this depth. Calls `act` with that part, and returns its
    /// result. If `act` returns false, it must have changed nothing, and the split is undone. On failure, nothing changes.
    pub fn split(
        &mut self,
        place: Place,
        depth: u8,
        stream: u64,
        budget: usize,
        act: impl FnOnce(&mut Self, Place) -> bool,
    ) -> Result<bool, InsertError> {
        let from = self.depth_of(place);
        let needed = self.charge_for_splits(from, depth);
        if needed > budget {
            return Err(InsertError::limit(needed));
        }
        // The stream bits between the shard's prefix and that of a part.
        let bits_to = |depth: u8| low_half(Window::new(from.into(), (depth - from).into(), 0).extract(stream));
        self.pool.add_levels(&self.plan, depth)?;
        let reserved = self.pool.reserve(depth, 2);
        let part = reserved.map(|()| self.push_part(place, depth, bits_to(depth)));
        let before = part.as_ref().map_or(0, |&part| self.items(part));
        match part {
            Ok(part) if act(self, part) => {
                // Allocates the other parts and the directory.
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
                        // Subtracts the items that `act` has inserted.
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

    /// Replaces a shard by its parts. Their memory is reserved, so this cannot fail.
    fn commit_split(&mut self, whole: Place, part: Place, depth: u8, bits_to: impl Fn(u8) -> u32) {
        self.point_to(part);
        for depth in self.depth_of(whole) + 1..=depth {
            let other = self.push_part(whole, depth, bits_to(depth) ^ 1);
            self.point_to(other);
        }
        self.remove_shard(whole, &mut |_, _| ());
    }

    /// Removes what a split has added. The directory does not lead to it yet.
    fn undo_split(&mut self, part: Option<Place>, from: u8, depth: u8) {
        if let Some(part) = part {
            self.remove_shard(part, &mut |_, _| ());
        }
        for depth in from + 1..=depth {
            self.pool.free_empty_blocks(depth, &mut |_, _, _| ());
        }
        self.pool.drop_levels(self.global_depth());
    }

    /// Returns by how much splitting a shard from depth `from` to `depth` raises the charge while the shard itself still exists.
    fn charge_for_splits(&self, from: u8, depth: u8) -> usize {
        let charge_at = |part: u8| self.pool.charge_for_more(&self.plan, part, if part == depth { 2 } else { 1 });
        let directory = if depth > self.global_depth() { Directory::<Place>::bytes_at_depth(depth) } else { 0 };
        (from + 1..=depth).map(charge_at).fold(directory, usize::saturating_add)
    }

    /// Adds a shard of this depth with the items of `whole` whose upper bits begin with `bits`. Room must be reserved. The
    /// directory does not lead to the new shard yet.
    fn push_part(&mut self, whole: Place, depth: u8, bits: u32) -> Place {
        let record = self.pool.record(whole);
        let place = self.pool.push(ShardRecord::new(depth, record.prefix() << (depth - record.depth()) | bits, 0));
        let is_complete = self.fill(whole, place, |part, whole| fill_part(part, whole, bits));
        debug_assert!(is_complete, "a bucket of a part never has more items than that of the whole");
        place
    }

    /// Calls `fill` to copy items from one shard to another of a different depth. Returns its result.
    fn fill(&mut self, from: Place, to: Place, fill: impl FnOnce(&mut ShardMut<'_>, &Shard<'_>) -> bool) -> bool {
        let [source, target] = [from, to].map(|place| self.pool.record(place));
        let [source_layout, layout] = [source, target].map(|record| self.pool.level(record.depth()).layout);
        let (read, written) = self.pool.two_tables(from, to);
        let source = source_layout.shard(self.dispatch, read, source.items());
        let written = &mut written[..layout.params.padded_bytes()];
        let mut shard = ShardMut::from_parts(layout.params, written, wide(target.items())).with_dispatch(self.dispatch);
        let (is_filled, items) = (fill(&mut shard, &source), shard.len());
        self.pool.set_items(to, target, items);
        is_filled
    }

    /// Points the directory's entries for a shard at its place.
    pub fn point_to(&mut self, place: Place) {
        let record = self.pool.record(place);
        self.directory.point(record.depth(), record.prefix(), place);
    }

    /// Removes a shard to which the directory does not lead, or soon will not. Calls `moved` with the old and new place of each
    /// shard that has moved.
    fn remove_shard(&mut self, place: Place, moved: &mut dyn FnMut(Place, Place)) {
        let Self { directory, pool, .. } = self;
        pool.remove(place, &mut |record, from, to| {
            directory.point(record.depth(), record.prefix(), to);
            moved(from, to);
        });
    }
}

// Merging.

impl Generation {
    /// Makes the directory as shallow as the shards allow, and drops unused levels.
    fn shrink_directory(&mut self) {
        while self.global_depth() > self.plan.min_depth && self.pool.level(self.global_depth()).len() == 0 {
            self.directory.halve();
        }
        self.pool.drop_levels(self.global_depth());
    }

    /// Returns the other half of the shard whose split has made this one, or `None` if that half has been split further.
    fn sibling(&self, place: Place) -> Option<Place> {
        let record = self.pool.record(place);
        if record.depth() == self.plan.min_depth {
            return None;
        }
        let other = self.directory.at(record.depth(), record.prefix() ^ 1)?;
        (self.depth_of(other) == record.depth()).then_some(other)
    }

    /// Merges a shard with its sibling if the two have at most `most` items. Returns false, and changes nothing, if it does not.
    pub fn merge_with_sibling(&mut self, place: Place, most: usize) -> Result<bool, OutOfMemory> {
        let Some(other) = self.sibling(place).filter(|&other| self.items(place) + self.items(other) <= most) else {
            return Ok(false);
        };
        let record = self.pool.record(place);
        self.pool.reserve(record.depth() - 1, 1)?;
        let mut whole = self.pool.push(ShardRecord::new(record.depth() - 1, record.prefix() >> 1, 0));
        let mut halves = if record.prefix() & 1 == 0 { [place, other] } else { [other, place] };
        let is_filled = (0..).zip(halves).all(|(bit, half)| self.fill(half, whole, |whole, half| fill_half(whole, half, bit)));
        if !is_filled {
            // The directory does not lead to it.
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
        self.shrink_directory();
        Ok(true)
    }

    /// Merges all siblings that together fill at most [`SHRINK_LOAD`] of one shard, as far as there is memory for it.
    pub fn merge_all_siblings(&mut self) {
        let most = share(&self.plan, SHRINK_LOAD);
        for depth in (self.plan.min_depth + 1..=self.global_depth()).rev() {
            let mut table = 0;
            while depth <= self.global_depth() && table < self.pool.level(depth).len() {
                // After a merge, another shard has this index.
                if !self.merge_with_sibling(self.pool.place(depth, table), most).unwrap_or(false) {
                    table += 1;
                }
            }
        }
    }
}

/// Returns a fraction of a shard's slots. With fewer than 16 slots, [`SPLIT_LOAD`] gives 0 and a shard splits at its next
/// insertion: so small a table soon has no slot for an item whose buckets are both full.
fn share(plan: &GenerationPlan, (numerator, denominator): (usize, usize)) -> usize {
    plan.whole.slots() / denominator * numerator
}

/// Converts an item count of a shard, which has fewer than 2³² items. Larger numbers become `u32::MAX`.
pub(crate) fn shard_items(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

/// Returns the item count from which a shard of the greatest depth is full.
fn max_depth_full_at(plan: &GenerationPlan) -> usize {
    if plan.whole.slots() < LARGE_SHARD_SLOTS { usize::MAX } else { share(plan, MAX_DEPTH_LOAD).max(plan.items_that_fit()) }
}

/// Fills a shard with the items of a shallower one whose upper bits begin with `bits`, which are as many bits as the depths
/// differ by. Each item stays in the bucket with the same number, so there is always room.
fn fill_part(part: &mut ShardMut<'_>, whole: &Shard<'_>, bits: u32) -> bool {
    let stored_bits = part.params().stored_bits();
    part.copy_part_of(whole, bits)
        || part.add_all(whole, |fingerprint| (fingerprint.get() >> stored_bits == bits).then(|| fingerprint.low(stored_bits)))
}

/// Adds the items of one half to the merged shard. Returns false if they do not all fit.
fn fill_half(whole: &mut ShardMut<'_>, half: &Shard<'_>, bit: u32) -> bool {
    whole.add_half(half, bit).unwrap_or_else(|| {
        let stored_bits = half.params().stored_bits();
        whole.add_all(half, |fingerprint| Some(fingerprint.with(u64::from(bit) << stored_bits)))
    })
}
