//! Shards that are split when they are full, and joined when they are thin; the directory follows.

use alloc::vec::Vec;

use super::{
    super::{
        error::Refused,
        level::{Level, Place},
        shard::{self, Key},
    },
    Layer,
};
use crate::{
    bits::index,
    storage::{OutOfMemory, reserved},
    table::TableParams as _,
};

/// A shard that has no room for an item is split only if one slot in so many is taken, and a new layer is begun only if one in so
/// many is: otherwise copies of a few items fill their buckets, and would make the filter many times as large as its items.
const LEAST_TO_SPLIT: usize = 4;
const LEAST_FOR_A_LAYER: usize = 2;

impl Layer {
    /// Inserts an item for which [`insert`](Self::insert) has found this shard full. The tables may take `allowed` more bytes.
    /// Returns false if the upper bits are used up, so that the shard cannot be split.
    ///
    /// The items are the same as before, unless this one was inserted.
    pub(in crate::elastic) fn insert_growing(&mut self, place: Place, key: Key, allowed: usize) -> Result<bool, Refused> {
        let mut place = place;
        let most_bytes = self.table_bytes().saturating_add(allowed);
        loop {
            if let Some(refused) = self.refused_for_copies(place, key) {
                return Err(refused);
            }
            match self.split(place, most_bytes) {
                Ok(true) => place = self.find(key.stream),
                Ok(false) if self.insert_at(place, key) => return Ok(true),
                Ok(false) if self.is_thin(place, LEAST_FOR_A_LAYER) => return Err(Refused::OthersCopies),
                Ok(false) => return Ok(false),
                // There may be room as it is.
                Err(refused) => return if self.insert_at(place, key) { Ok(true) } else { Err(refused) },
            }
            if self.insert_at(place, key) {
                return Ok(true);
            }
        }
    }

    /// Whether it is for copies that a shard has no room for an item: splitting the shard would be of no use.
    fn refused_for_copies(&self, place: Place, key: Key) -> Option<Refused> {
        let copies = self.count_in(place, key);
        if copies == 2 * self.plan.whole.bucket_size() {
            Some(Refused::Copies(copies))
        } else {
            self.is_thin(place, LEAST_TO_SPLIT).then_some(Refused::OthersCopies)
        }
    }

    /// True if fewer than one slot in `share` are taken.
    fn is_thin(&self, place: Place, share: usize) -> bool {
        self.items(place) < self.slots_of_a_shard() / share
    }

    /// Splits a shard. Returns false if its upper bits are used up. If it fails, nothing has changed. Meanwhile the tables may
    /// take `most_bytes`.
    fn split(&mut self, place: Place, most_bytes: usize) -> Result<bool, Refused> {
        let depth = self.depth_of(place);
        if depth == self.plan.most_depth {
            return Ok(false);
        }
        let needed = self.levels[place.level() + 1].tables().bytes_for(2);
        if self.table_bytes().saturating_add(needed) > most_bytes {
            return Err(Refused::Limit { needed });
        }
        let deeper = if depth == self.depth { Some(self.doubled_directory()?) } else { None };
        self.levels[place.level() + 1].reserve(2)?;
        // Nothing can fail from here on.
        if let Some(deeper) = deeper {
            self.directory = deeper;
            self.set_depth(depth + 1);
        }
        let (levels, deeper) = self.levels.split_at_mut(place.level() + 1);
        let (level, dispatch) = (&levels[place.level()], self.dispatch);
        let (shard, prefix) = (level.shard(dispatch, place.at()), level.records()[place.at()].prefix);
        let halves = [0, 1].map(|bit| {
            let half = deeper[0].push(dispatch, prefix << 1 | bit, |half| shard::fill_half(half, &shard, bit));
            half.map(|at| Place::new(place.level() + 1, at))
        });
        for half in halves.into_iter().flatten() {
            self.point_to(half);
        }
        self.remove_shard(place);
        Ok(true)
    }

    /// Removes a shard to which the directory does not lead any more.
    fn remove_shard(&mut self, place: Place) {
        let level = &mut self.levels[place.level()];
        level.swap_remove(place.at());
        if place.at() < level.len() {
            self.point_to(place);
        }
    }

    /// The directory for one bit more.
    fn doubled_directory(&self) -> Result<Vec<Place>, OutOfMemory> {
        let mut deeper = reserved(2 * self.directory.len())?;
        deeper.extend(self.directory.iter().flat_map(|&place| [place, place]));
        Ok(deeper)
    }

    /// Makes the directory as shallow as the shards allow.
    fn halve(&mut self) {
        while self.depth > self.plan.least_depth && self.levels[usize::from(self.depth - self.plan.least_depth)].len() == 0 {
            let mut at = 0;
            self.directory.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.directory.shrink_to_fit();
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

    /// Joins all shards that can be, siblings of `most` items together at most.
    pub(in crate::elastic) fn join_all(&mut self, most: usize) -> Result<(), OutOfMemory> {
        for level in (1..self.levels.len()).rev() {
            let mut at = 0;
            while at < self.levels[level].len() {
                // After a join, another shard is here.
                if !self.join(Place::new(level, at), most)? {
                    at += 1;
                }
            }
        }
        self.levels.iter_mut().for_each(Level::release);
        Ok(())
    }
}
