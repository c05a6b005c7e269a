//! A layer: shards and the directory that leads to them, by the first bits of a stream.

mod resize;

use alloc::vec::Vec;
use core::iter;

use super::{
    level::{Level, Place, Record},
    plan::LayerPlan,
    shard::{Key, Probe, Shard},
    stream::Window,
};
use crate::{
    bits::{beyond, index},
    kernel::Dispatch,
    storage::{OutOfMemory, reserved},
    table::{Geometry, TableParams as _},
};

/// The share of its slots from which on a shard is split, if it can be. Fuller ones would take more time to fill than they save
/// in space.
const FULL: (usize, usize) = (15, 16);

/// See the module.
#[derive(Clone)]
pub(super) struct Layer {
    plan: LayerPlan,
    probe: Probe,
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
        Ok(Self {
            probe: Probe::new(&plan.whole),
            plan,
            directory: Vec::new(),
            first_bits,
            depth,
            levels,
            full_from,
            len: 0,
            dispatch,
        })
    }

    /// The shard to which a stream leads.
    #[inline]
    fn find(&self, stream: u64) -> Place {
        self.directory[index(self.first_bits.of(stream))]
    }

    /// The bit layout of all its tables, without their columns.
    #[inline]
    pub(super) fn geometry(&self) -> &Geometry {
        &self.probe.geometry
    }

    /// The table to which a stream leads.
    #[allow(clippy::inline_always, reason = "a call takes a tenth of a look-up's instructions")]
    #[inline(always)]
    pub(super) fn table(&self, stream: u64) -> &[u8] {
        let place = self.directory.get(index(self.first_bits.of(stream)));
        match place.and_then(|place| Some((self.levels.get(place.level())?, place.at()))) {
            Some((level, at)) => level.table(at),
            None => beyond(),
        }
    }

    #[inline]
    pub(super) fn contains(&self, key: Key) -> bool {
        self.dispatch.read(&self.probe.geometry, self.table(key.stream), self.probe.locate(key))
    }

    /// Prefetches the buckets of an item that is inserted.
    pub(super) fn prefetch(&self, key: Key) {
        let place = self.find(key.stream);
        self.levels[place.level()].prefetch(self.dispatch, place.at(), key);
    }

    /// The number of copies of an item.
    pub(super) fn count(&self, key: Key) -> u32 {
        let place = self.find(key.stream);
        self.count_in(place, key)
    }

    /// The number of bits of a stream that the layer knows of each item.
    pub(super) fn known_bits(&self) -> u8 {
        self.plan.whole.upper_bits
    }

    /// Removes one item that an item may be a copy of, of whose stream only so many bits are known. Returns false if there is none.
    pub(super) fn remove_known(&mut self, key: Key, known: u8) -> bool {
        // All shards to which such a stream may lead.
        let mut next = index(self.first_bits.of(key.stream));
        let end = next + (1 << self.depth.saturating_sub(known));
        while next < end {
            let place = self.directory[next];
            let depth = self.depth_of(place);
            if self.levels[place.level()].remove_known(self.dispatch, place.at(), key, known.saturating_sub(depth)) {
                self.len -= 1;
                return true;
            }
            next += 1 << (self.depth - depth);
        }
        false
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
    pub(super) fn in_order(&self) -> impl Iterator<Item = (Shard<'_>, u64)> + Clone {
        self.places().map(|place| {
            let level = &self.levels[place.level()];
            (level.shard(self.dispatch, place.at()), level.records()[place.at()].prefix.into())
        })
    }

    /// Their tables, without padding.
    pub(super) fn tables_in_order(&self) -> impl Iterator<Item = &[u8]> {
        self.places().map(|place| self.levels[place.level()].whole_table(place.at()))
    }

    /// Where they are.
    fn places(&self) -> impl Iterator<Item = Place> + Clone {
        let mut next = 0;
        iter::from_fn(move || {
            let place = *self.directory.get(next)?;
            next += 1 << (self.depth - self.depth_of(place));
            Some(place)
        })
    }

    /// Writes the directory's entries for a shard.
    fn point_to(&mut self, place: Place) {
        let unused = self.depth - self.depth_of(place);
        let first = index(self.levels[place.level()].records()[place.at()].prefix.into()) << unused;
        self.directory[first..first + (1 << unused)].fill(place);
    }

    fn set_depth(&mut self, depth: u8) {
        self.depth = depth;
        self.first_bits = Window::new(0, depth.into(), 0);
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
        self.levels.iter().map(|level| level.tables().table_bytes()).sum()
    }

    /// The same, and of what leads to them.
    pub(super) fn size_in_bytes(&self) -> usize {
        let levels = self.levels.capacity() * size_of::<Level>();
        let directory = self.directory.capacity() * size_of::<Place>();
        levels + directory + self.levels.iter().map(Level::size_in_bytes).sum::<usize>()
    }

    /// What the layer is charged against a limit, in bytes: at least [`size_in_bytes`](Self::size_in_bytes), and equal for all
    /// layers of equal content.
    pub(super) fn charged(&self) -> usize {
        let in_use = usize::from(self.depth - self.plan.least_depth);
        let of_level = |(number, level): (usize, &Level)| {
            let slack = if number <= in_use { level.slack() } else { 0 };
            level.charge().saturating_mul(level.len()).saturating_add(slack)
        };
        let fixed = self.levels.len() * size_of::<Level>() + (size_of::<Place>() << self.depth);
        self.levels.iter().enumerate().map(of_level).fold(fixed, usize::saturating_add)
    }
}

/// For [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Layer {
    pub(super) fn assert_consistent(&self, plan: &LayerPlan, dispatch: Dispatch) {
        let number = plan.number;
        assert!(self.plan == *plan, "layer {number} is {:?}, planned as {plan:?}", self.plan);
        assert!(self.dispatch.kernel() == dispatch.kernel(), "layer {number} has another kernel");
        assert_eq!(self.full_from, plan.whole.slots() / FULL.1 * FULL.0);
        assert_eq!(self.levels.len(), usize::from(plan.most_depth - plan.least_depth) + 1, "levels of layer {number}");
        let is_filled = |&depth: &u8| self.levels[usize::from(depth - plan.least_depth)].len() > 0;
        let deepest = (plan.least_depth..=plan.most_depth).rev().find(is_filled);
        assert_eq!(deepest.map(|depth| depth.max(plan.least_depth)), Some(self.depth), "depth of layer {number}");
        assert_eq!(self.directory.len(), 1 << self.depth, "directory of layer {number}");
        for (entry, &place) in self.directory.iter().enumerate() {
            let unused = self.depth.checked_sub(self.depth_of(place)).expect("no shard is deeper than the directory");
            let record = self.levels[place.level()].records().get(place.at()).expect("an entry leads to a shard");
            assert_eq!(entry >> unused, index(record.prefix.into()), "entry {entry} of layer {number} leads to another shard");
        }
        let mut len = 0;
        for (level, depth) in self.levels.iter().zip(plan.least_depth..) {
            level.assert_consistent(dispatch);
            for (at, record) in level.records().iter().enumerate() {
                let first = index(record.prefix.into()) << (self.depth - depth);
                let place = Place::new(usize::from(depth - plan.least_depth), at);
                assert_eq!(self.directory[first], place, "no entry leads to shard {at} of depth {depth} in layer {number}");
                len += record.items();
            }
        }
        assert_eq!(self.len, len, "items of layer {number}");
    }
}
