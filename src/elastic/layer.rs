//! A layer: shards and the directory that leads to them, by the first bits of a stream.

use alloc::vec::Vec;
use core::iter;

use super::{
    error::Refused,
    level::{Level, Place, Record, Target},
    plan::LayerPlan,
    shard::{self, Key, Shard},
    stream::Window,
};
use crate::{
    bits::index,
    kernel::{Dispatch, Site},
    storage::{OutOfMemory, reserved},
    table::TableParams as _,
};

/// The share of its slots from which on a shard is split, if it can be. Fuller ones would take more time to fill than they save
/// in space.
const FULL: (usize, usize) = (15, 16);

/// A shard that has no room for an item is split only if one slot in so many is taken, and a new layer is begun only if one in so
/// many is: otherwise copies of a few items fill their buckets, and would make the filter many times as large as its items.
const LEAST_TO_SPLIT: usize = 4;
const LEAST_FOR_A_LAYER: usize = 2;

/// See the module.
#[derive(Clone)]
pub(super) struct Layer {
    plan: LayerPlan,
    /// For each value of a stream's first `depth` bits, the shard that they lead to. Shards of a smaller depth are there several
    /// times, in a row.
    directory: Vec<Place>,
    first_bits: Window,
    depth: u8,
    /// Shards by their depth, from the least one to the greatest.
    levels: Vec<Level>,
    /// The number of items from which on a shard is split.
    full_from: usize,
    /// The number of items.
    len: usize,
    dispatch: Dispatch,
}

impl Layer {
    /// Empty shards of the least depth.
    pub(super) fn new(plan: LayerPlan, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let depth = plan.least_depth;
        let mut layer = Self::with_levels(plan, |depth| plan.level(depth), dispatch)?;
        layer.levels[0].reserve(1 << depth)?;
        for prefix in 0..1 << depth {
            layer.levels[0].push(dispatch, prefix, |_| true);
        }
        layer.make_directory(depth)?;
        Ok(layer)
    }

    /// Adds a shard with this table and its padding.
    pub(super) fn push(&mut self, depth: u8, prefix: u32, items: u32, table: &[u8]) -> Result<(), OutOfMemory> {
        self.levels[usize::from(depth - self.plan.least_depth)].push_table(prefix, items, table)?;
        self.len += index(items.into());
        Ok(())
    }

    /// Makes a directory of this depth that leads to all shards.
    pub(super) fn make_directory(&mut self, depth: u8) -> Result<(), OutOfMemory> {
        self.directory = reserved(1 << depth)?;
        self.directory.resize(1 << depth, Place::new(0, 0));
        self.set_depth(depth);
        for level in 0..self.levels.len() {
            for at in 0..self.levels[level].len() {
                self.point_to(Place::new(level, at));
            }
        }
        Ok(())
    }

    /// A layer without shards and directory, which are added next.
    pub(super) fn with_levels(plan: LayerPlan, level: impl FnMut(u8) -> Level, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let mut levels = reserved(usize::from(plan.most_depth - plan.least_depth) + 1)?;
        levels.extend((plan.least_depth..=plan.most_depth).map(level));
        let full_from = plan.whole.slots() / FULL.1 * FULL.0;
        let (depth, first_bits) = (plan.least_depth, Window::new(0, 0, 0));
        Ok(Self { plan, directory: Vec::new(), first_bits, depth, levels, full_from, len: 0, dispatch })
    }

    /// The shard to which a stream leads.
    #[inline]
    fn find(&self, stream: u64) -> Place {
        self.directory[index(self.first_bits.of(stream))]
    }

    /// Where an item is looked up.
    #[inline]
    fn target(&self, key: Key) -> Target<'_> {
        Target::new(self.site(key.stream), key)
    }

    /// Where the item with this stream is.
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a look-up's instructions")]
    #[inline(always)]
    pub(super) fn site(&self, stream: u64) -> Site<'_> {
        let place = self.find(stream);
        self.levels[place.level()].site(place.at(), stream)
    }

    #[inline]
    pub(super) fn contains(&self, key: Key) -> bool {
        let Target { geometry, bytes, located } = self.target(key);
        self.dispatch.read(geometry, bytes, located)
    }

    /// Prefetches the buckets of an item.
    #[inline]
    pub(super) fn prefetch(&self, key: Key) {
        let Target { geometry, bytes, located } = self.target(key);
        self.dispatch.read(geometry, bytes, located.prefetch());
    }

    /// The number of copies of an item.
    pub(super) fn count(&self, key: Key) -> u32 {
        let place = self.find(key.stream);
        self.count_in(place, key)
    }

    fn count_in(&self, place: Place, key: Key) -> u32 {
        self.levels[place.level()].count(self.dispatch, place.at(), key)
    }

    /// Inserts an item. If its shard is full and should be split, returns its place, and nothing has changed.
    #[inline]
    pub(super) fn insert(&mut self, key: Key) -> Result<(), Place> {
        let place = self.find(key.stream);
        let is_full = self.levels[place.level()].items(place.at()) >= self.full_from;
        if is_full && self.depth_of(place) < self.plan.most_depth || !self.insert_at(place, key) {
            return Err(place);
        }
        Ok(())
    }

    /// Inserts an item into its shard, if that has room at all. Otherwise nothing has changed.
    #[inline]
    fn insert_at(&mut self, place: Place, key: Key) -> bool {
        let is_placed = self.levels[place.level()].insert(self.dispatch, place.at(), key);
        self.len += usize::from(is_placed);
        is_placed
    }

    /// Removes one copy of an item. Returns the place of the shard that had one.
    #[inline]
    pub(super) fn remove(&mut self, key: Key) -> Option<Place> {
        let place = self.find(key.stream);
        let is_removed = self.levels[place.level()].remove(self.dispatch, place.at(), key);
        self.len -= usize::from(is_removed);
        is_removed.then_some(place)
    }

    #[inline]
    fn depth_of(&self, place: Place) -> u8 {
        #[expect(clippy::cast_possible_truncation, reason = "below 32")]
        let level = place.level() as u8;
        self.plan.least_depth + level
    }

    /// The number of items in a shard.
    #[inline]
    pub(super) fn items(&self, place: Place) -> usize {
        self.levels[place.level()].items(place.at())
    }

    /// The number of slots of a shard.
    pub(super) fn slots_of_a_shard(&self) -> usize {
        self.plan.whole.slots()
    }

    pub(super) fn shards(&self) -> usize {
        self.levels.iter().map(Level::len).sum()
    }

    /// Shards in the order of the streams that lead to them, with the bits that do.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (Shard<'_>, u64)> {
        let mut next = 0;
        iter::from_fn(move || {
            let place = *self.directory.get(next)?;
            next += 1 << (self.depth - self.depth_of(place));
            let level = &self.levels[place.level()];
            Some((level.shard(self.dispatch, place.at()), level.records()[place.at()].prefix.into()))
        })
    }

    /// Inserts an item for which [`insert`](Self::insert) has found this shard full. The tables may take `allowed` more bytes.
    /// Returns false if the upper bits are used up, so that the shard cannot be split.
    ///
    /// The items are the same as before, unless this one was inserted.
    pub(super) fn insert_growing(&mut self, place: Place, key: Key, allowed: usize) -> Result<bool, Refused> {
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

    /// Writes the directory's entries for a shard.
    fn point_to(&mut self, place: Place) {
        let unused = self.depth - self.depth_of(place);
        let first = index(self.levels[place.level()].records()[place.at()].prefix.into()) << unused;
        self.directory[first..first + (1 << unused)].fill(place);
    }

    /// The directory for one bit more.
    fn doubled_directory(&self) -> Result<Vec<Place>, OutOfMemory> {
        let mut deeper = reserved(2 * self.directory.len())?;
        deeper.extend(self.directory.iter().flat_map(|&place| [place, place]));
        Ok(deeper)
    }

    fn set_depth(&mut self, depth: u8) {
        self.depth = depth;
        self.first_bits = Window::new(0, depth.into(), 0);
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
    pub(super) fn join(&mut self, place: Place, most: usize) -> Result<bool, OutOfMemory> {
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
    pub(super) fn join_all(&mut self, most: usize) -> Result<(), OutOfMemory> {
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

    pub(super) fn number(&self) -> u8 {
        self.plan.number
    }

    pub(super) fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    pub(super) fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.dispatch = dispatch;
    }

    /// A copy, or an error if memory cannot be allocated.
    pub(super) fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut levels = reserved(self.levels.len())?;
        for level in &self.levels {
            levels.push(level.try_clone()?);
        }
        let mut directory = reserved(self.directory.len())?;
        directory.extend_from_slice(&self.directory);
        Ok(Self { directory, levels, ..*self })
    }

    /// The number of items.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The mean of the shards' false-positive rates, each in proportion to the hashes that lead to it.
    pub(super) fn false_positive_rate(&self) -> f64 {
        let of_level = |(depth, level): (u8, &Level)| -> f64 {
            let rate = |record: &Record| level.shape().false_positive_rate(record.items());
            level.records().iter().map(|record| self.plan.share(depth, record.prefix) * rate(record)).sum()
        };
        (self.plan.least_depth..).zip(&self.levels).map(of_level).sum()
    }

    /// Bytes of all blocks of tables.
    pub(super) fn table_bytes(&self) -> usize {
        self.levels.iter().map(|level| level.tables().size_in_bytes()).sum()
    }

    /// The same, and of what leads to them.
    pub(super) fn size_in_bytes(&self) -> usize {
        let levels = self.levels.capacity() * size_of::<Level>();
        let directory = self.directory.capacity() * size_of::<Place>();
        levels + directory + self.levels.iter().map(Level::size_in_bytes).sum::<usize>()
    }
}
