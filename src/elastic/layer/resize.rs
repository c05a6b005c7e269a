//! Shards that are split when they are full, and joined when they are thin; the directory follows.

use alloc::vec::Vec;
use core::iter;

use super::{
    super::{
        error::Refused,
        level::{Level, Place},
        shard::{self, Key},
        stream::Window,
    },
    Layer,
};
use crate::{
    bits::{index, low_half, wide},
    storage::{OutOfMemory, reserved, shrink_to},
    table::TableParams as _,
};

/// Where copies of a few items leave no room for another one, a shard is split only if one slot in so many is taken, and a new layer
/// is begun only if one in so many is: otherwise copies would make the filter many times as large as its items.
const LEAST_TO_SPLIT: usize = 4;
const LEAST_FOR_A_LAYER: usize = 2;

/// A directory has at most so many entries for each shard, or so many in all. Uniform hashes need a few. Chosen ones can make one
/// shard far deeper than the others, and a directory that follows takes as much memory as it likes.
const MOST_ENTRIES: u64 = 64;
const ENTRIES_OF_FEW: u64 = 1 << 10;

/// Slots of a layer beyond which a further one, which begins with an eighth of them, would take much memory for a few items.
const FEW_SLOTS: u64 = 1 << 14;

impl Layer {
    /// Inserts an item for which [`insert`](Self::insert) has found this shard full. What the filter is charged may rise by
    /// `allowed` bytes. Returns false if the upper bits are used up, so that a further layer is needed.
    ///
    /// Unless it returns true, nothing has changed. What it does otherwise does not depend on `allowed`, so that filters of equal
    /// content stay equal.
    pub(in crate::elastic) fn insert_growing(&mut self, place: Place, key: Key, allowed: usize) -> Result<bool, Refused> {
        let copies = self.count_in(place, key);
        if copies == self.room_for_copies() {
            return Err(Refused::Copies(copies));
        }
        let mut for_copies = self.is_crowded_by_copies(place, key);
        if for_copies && self.is_thin(place, LEAST_TO_SPLIT) {
            return Err(Refused::OthersCopies);
        }
        for depth in self.depth_of(place) + 1..=self.greatest_depth() {
            let mut is_thin = false;
            let is_inserted = self.split(place, depth, key.stream, allowed, |layer, part| {
                let is_inserted = layer.insert_at(part, key);
                if !is_inserted {
                    (is_thin, for_copies) = (layer.is_thin(part, LEAST_TO_SPLIT), layer.is_crowded_by_copies(part, key));
                }
                is_inserted
            })?;
            if is_inserted {
                return Ok(true);
            }
            if is_thin && for_copies {
                return Err(Refused::OthersCopies);
            }
        }
        if self.insert_at(place, key) {
            return Ok(true);
        }
        let is_for_a_layer = self.has_grown_up() && !(for_copies && self.is_thin(place, LEAST_FOR_A_LAYER));
        match for_copies {
            _ if is_for_a_layer => Ok(false),
            true => Err(Refused::OthersCopies),
            false => Err(Refused::Crowded),
        }
    }

    /// Inserts an item into the shard to which its stream leads, as that is. Returns false, and changes nothing, if there is no
    /// room.
    pub(in crate::elastic) fn insert_as_it_is(&mut self, key: Key) -> bool {
        self.insert_at(self.find(key.stream), key)
    }

    /// The number of copies of an item that its two buckets have room for.
    fn room_for_copies(&self) -> u32 {
        2 * self.plan.whole.bucket_size()
    }

    /// True if fewer than one slot in `share` are taken.
    fn is_thin(&self, place: Place, share: usize) -> bool {
        self.items(place) < self.slots_of_a_shard() / share
    }

    /// True if it is for copies of others that a shard has no room for an item.
    fn is_crowded_by_copies(&self, place: Place, key: Key) -> bool {
        self.levels[place.level()].is_crowded_by_copies(self.dispatch, place.at(), key)
    }

    /// True if a further layer takes little memory beside this one: one in sixteen slots of those that it may have is taken, or it may
    /// have few. Otherwise it is for unequal hashes that a shard is full.
    fn has_grown_up(&self) -> bool {
        let slots = wide(self.slots_of_a_shard()) << self.plan.most_depth;
        wide(self.len) >= slots >> 4 || slots <= FEW_SLOTS
    }

    /// The greatest depth to which a shard may be split.
    fn greatest_depth(&self) -> u8 {
        let entries = wide(self.shards()).saturating_mul(MOST_ENTRIES).max(ENTRIES_OF_FEW);
        #[expect(clippy::cast_possible_truncation, reason = "below 64")]
        let depth = entries.ilog2() as u8;
        self.plan.most_depth.min(self.depth.max(depth))
    }

    /// Splits a shard as often as it takes to get one of this depth to which the stream leads, if `act` returns true for that. Returns
    /// what it returned. Otherwise, or if it fails, nothing has changed; `act` must have changed nothing, either.
    fn split(
        &mut self,
        place: Place,
        depth: u8,
        stream: u64,
        allowed: usize,
        act: impl FnOnce(&mut Self, Place) -> bool,
    ) -> Result<bool, Refused> {
        let from = self.depth_of(place);
        let needed = self.charge_of_splits(from, depth);
        if needed > allowed {
            return Err(Refused::Limit { needed });
        }
        // The bits of the stream that lead from the shard to a part of this depth.
        let bits_to = |depth: u8| low_half(Window::new(from.into(), (depth - from).into(), 0).of(stream));
        let [level, deepest] = [from, depth].map(|depth| usize::from(depth - self.plan.least_depth));
        self.levels[deepest].reserve(2)?;
        let Some(part) = self.push_part(place, depth, bits_to(depth)) else { return Ok(false) };
        let before = self.items(part);
        if !act(self, part) {
            self.levels[deepest].swap_remove(part.at());
            return Ok(false);
        }
        // The others of these parts, and a directory.
        let between = self.levels[level + 1..deepest].iter_mut().try_for_each(|level| level.reserve(1));
        let deeper = between.and_then(|()| deepened(&self.directory, depth.saturating_sub(self.depth)));
        let deeper = deeper.inspect_err(|_| {
            // With what `act` has inserted.
            self.len -= self.items(part) - before;
            self.levels[deepest].swap_remove(part.at());
            self.levels[level + 1..deepest].iter_mut().for_each(Level::release);
        })?;
        // Nothing can fail from here on.
        if let Some(deeper) = deeper {
            self.directory = deeper;
            self.set_depth(depth);
        }
        self.point_to(part);
        for depth in from + 1..=depth {
            if let Some(other) = self.push_part(place, depth, bits_to(depth) ^ 1) {
                self.point_to(other);
            }
        }
        self.remove_shard(place);
        Ok(true)
    }

    /// What splitting a shard of depth `from` adds to the charge, while the shard is still there.
    fn charge_of_splits(&self, from: u8, depth: u8) -> usize {
        let levels = (self.plan.least_depth..).zip(&self.levels).filter(|(deeper, _)| (from + 1..=depth).contains(deeper));
        let of_level = |(deeper, level): (u8, &Level)| {
            let shards = if deeper == depth { 2 } else { 1 };
            let slack = if deeper > self.depth { level.slack() } else { 0 };
            (level.charge() * shards).saturating_add(slack)
        };
        let directory = if depth > self.depth { size_of::<Place>() << depth } else { 0 };
        levels.map(of_level).fold(directory, usize::saturating_add)
    }

    /// Adds a shard of this depth, for which there must be room, with those items of another one whose upper bits begin with `bits`.
    /// The directory does not lead to it yet.
    fn push_part(&mut self, whole: Place, depth: u8, bits: u32) -> Option<Place> {
        let dispatch = self.dispatch;
        let split = depth - self.depth_of(whole);
        let deepest = whole.level() + usize::from(split);
        let (levels, deeper) = self.levels.split_at_mut(deepest);
        let level = &levels[whole.level()];
        let (shard, prefix) = (level.shard(dispatch, whole.at()), level.records()[whole.at()].prefix);
        let at = deeper[0].push(dispatch, prefix << split | bits, |part| shard::fill_part(part, &shard, bits))?;
        Some(Place::new(deepest, at))
    }

    /// Removes a shard to which the directory does not lead any more.
    fn remove_shard(&mut self, place: Place) {
        let level = &mut self.levels[place.level()];
        level.swap_remove(place.at());
        if place.at() < level.len() {
            self.point_to(place);
        }
    }

    /// Makes the directory as shallow as the shards allow.
    fn halve(&mut self) {
        while self.depth > self.plan.least_depth && self.levels[usize::from(self.depth - self.plan.least_depth)].len() == 0 {
            let mut at = 0;
            self.directory.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            shrink_to(&mut self.directory, 0);
            self.set_depth(self.depth - 1);
        }
    }

    /// The other half of the shard that was split to make this one, unless it has been split further.
    fn sibling(&self, place: Place) -> Option<Place> {
        let prefix = self.levels[place.level()].records()[place.at()].prefix;
        let first = index((prefix ^ 1).into()) << (self.depth - self.depth_of(place));
        let other = *self.directory.get(first)?;
        (place.level() > 0 && other.level() == place.level()).then_some(other)
    }

    /// Joins a shard with its sibling if the two hold at most `most` items. Returns whether it did; otherwise nothing has changed.
    pub(in crate::elastic) fn join(&mut self, place: Place, most: usize) -> Result<bool, OutOfMemory> {
        let Some(other) = self.sibling(place).filter(|&other| self.items(place) + self.items(other) <= most) else {
            return Ok(false);
        };
        let (levels, rest) = self.levels.split_at_mut(place.level());
        let (level, dispatch) = (&rest[0], self.dispatch);
        let prefix = level.records()[place.at()].prefix;
        let [first, second] = if prefix & 1 == 0 { [place, other] } else { [other, place] };
        let halves = [first, second].map(|place| level.shard(dispatch, place.at()));
        let shallower = &mut levels[place.level() - 1];
        shallower.reserve(1)?;
        let whole = shallower.push(dispatch, prefix >> 1, |whole| shard::fill_whole(whole, [&halves[0], &halves[1]]));
        let Some(at) = whole else { return Ok(false) };
        self.point_to(Place::new(place.level() - 1, at));
        // The one with the higher number first, since the last shard takes its place.
        let [lower, higher] = if place.at() < other.at() { [place, other] } else { [other, place] };
        self.remove_shard(higher);
        self.remove_shard(lower);
        self.halve();
        Ok(true)
    }

    /// Joins all shards that can be, siblings of `most` items together at most. Those for which there is no memory stay two.
    pub(in crate::elastic) fn join_all(&mut self, most: usize) {
        for level in (1..self.levels.len()).rev() {
            let mut at = 0;
            while at < self.levels[level].len() {
                // After a join, another shard is here.
                if !self.join(Place::new(level, at), most).unwrap_or(false) {
                    at += 1;
                }
            }
        }
    }
}

/// The directory for so many bits more; `None` for none.
fn deepened(directory: &[Place], bits: u8) -> Result<Option<Vec<Place>>, OutOfMemory> {
    if bits == 0 {
        return Ok(None);
    }
    let mut deeper = reserved(directory.len() << bits)?;
    deeper.extend(directory.iter().flat_map(|&place| iter::repeat_n(place, 1 << bits)));
    Ok(Some(deeper))
}

#[cfg(test)]
mod tests;
