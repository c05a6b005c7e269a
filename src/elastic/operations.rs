//! What a growing filter does with hashes.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use alloc::vec::Vec;
use core::fmt;

use super::{
    Elastic, ElasticFilter, ElasticParams,
    facts::{FILTER_BYTES, summarize},
    lane::Lane,
    layer::Coming,
    look_up::{Lanes, Shards as _, contains_all},
    pool::Place,
    shard::Key,
};
use crate::{
    filter::{Core, CoreMut, InsertError},
    hash::Uniform,
    kernel::{BATCH, Dispatch, Hashes, PREFETCH_FROM, Task},
    storage::{OutOfMemory, reserved},
    table::Instructions,
};

impl Core for Elastic {
    #[inline]
    fn seed(&self) -> u64 {
        self.params.seed
    }

    #[inline]
    fn contains(&self, hash: Uniform) -> bool {
        self.all().contains(hash)
    }

    fn count(&self, hash: Uniform) -> u32 {
        self.all().count(hash)
    }

    fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(u64)) {
        contains_all(self.dispatch(), self.all(), self.table_bytes() >= PREFETCH_FROM, hashes, answer);
    }

    fn len(&self) -> usize {
        self.lanes.iter().map(Lane::len).sum()
    }

    fn capacity(&self) -> usize {
        self.params.max_capacity()
    }

    fn table_len(&self) -> usize {
        self.lanes.iter().map(Lane::table_len).sum()
    }

    fn slots(&self) -> u64 {
        self.lanes.iter().map(Lane::slots).sum()
    }

    fn false_positive_rate(&self) -> f64 {
        self.lanes.iter().map(Lane::false_positive_rate).sum::<f64>() / self.lanes.len() as f64
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        summarize(f, self.len(), self.shards(), bytes)
    }

    fn bytes_behind(&self) -> usize {
        self.lanes.capacity() * size_of::<Lane>() + self.lanes.iter().map(Lane::size_in_bytes).sum::<usize>()
    }
}

impl CoreMut for Elastic {
    #[inline]
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError> {
        self.insert_into(self.lane_of(hash), hash)
    }

    #[inline]
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError> {
        if self.all().of(hash).holds(hash) { Ok(false) } else { self.insert(hash).map(|()| true) }
    }

    #[inline]
    fn remove(&mut self, hash: Uniform) -> bool {
        let lane = self.lane_of(hash);
        self.lanes[lane].remove(hash)
    }

    fn clear(&mut self) {
        self.lanes.iter_mut().for_each(Lane::clear);
    }

    fn prefetch(&self, hashes: &[u64]) {
        if self.table_bytes() >= PREFETCH_FROM {
            for &hash in hashes {
                self.all().of(Uniform(hash)).prefetch(Uniform(hash));
            }
        }
    }

    fn insert_some(&mut self, hashes: &[u64]) -> Result<(), InsertError> {
        let prefetches = self.table_bytes() >= PREFETCH_FROM;
        self.dispatch().run(InsertSome { core: self, hashes, prefetches })
    }
}

/// [`CoreMut::insert_some`], step by step for all items: the reads of one step do not wait for those of another. Together with the
/// compiled kernel, which is not called for each item, that takes a tenth of the time.
struct InsertSome<'a> {
    core: &'a mut Elastic,
    hashes: &'a [u64],
    prefetches: bool,
}

impl Task for InsertSome<'_> {
    type Output = Result<(), InsertError>;

    #[inline(always)]
    fn run<I: Instructions>(self, instructions: I) -> Self::Output {
        let Self { core, hashes, prefetches } = self;
        let (address, shares) = (core.params.address(), core.params.shares());
        let lane_of = |hash: u64| shares.lane(Uniform(hash));
        let mut items = [Coming::NONE; BATCH];
        for (item, &hash) in items.iter_mut().zip(hashes) {
            let key = Key::new(&address, shares.stream(Uniform(hash)), Uniform(hash));
            *item = core.lanes[lane_of(hash)].last().coming(instructions, key);
        }
        for (item, &hash) in items.iter_mut().zip(hashes) {
            core.lanes[lane_of(hash)].last().approach(instructions, item, prefetches);
        }
        let mut has_grown = false;
        for (position, (item, &hash)) in items.iter_mut().zip(hashes).enumerate() {
            let lane = lane_of(hash);
            if has_grown {
                // Shards may be elsewhere.
                let last = core.lanes[lane].last();
                *item = last.coming(instructions, item.key);
                last.approach(instructions, item, false);
            }
            if !core.lanes[lane].last_mut().insert_coming(instructions, *item)
                && !core.lanes[lane].insert_asking(Uniform(hash), item.place, core.max_bytes < usize::MAX)
            {
                core.grow(lane, Uniform(hash), item.place).map_err(|error| error.at(position))?;
                has_grown = true;
            }
        }
        Ok(())
    }
}

impl PartialEq for Elastic {
    fn eq(&self, other: &Self) -> bool {
        self.params == other.params && self.lanes == other.lanes
    }
}

impl Eq for Elastic {}

impl Elastic {
    /// A filter with these lanes, as many as the parameters have, without a limit.
    pub(super) fn from_lanes(lanes: Vec<Lane>, params: ElasticParams) -> Self {
        Self { lanes, params, max_bytes: usize::MAX }
    }

    pub fn params(&self) -> &ElasticParams {
        &self.params
    }

    pub fn dispatch(&self) -> Dispatch {
        self.lanes.first().map_or_else(Dispatch::best, Lane::dispatch)
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.lanes.iter_mut().for_each(|lane| lane.set_dispatch(dispatch));
    }

    #[inline]
    pub(super) fn all(&self) -> Lanes<'_> {
        Lanes { lanes: &self.lanes, params: &self.params }
    }

    #[inline]
    fn lane_of(&self, hash: Uniform) -> usize {
        self.params.shares().lane(hash)
    }

    pub(super) fn shards(&self) -> usize {
        self.lanes.iter().map(Lane::shards).sum()
    }

    /// The most layers of a lane.
    pub(super) fn layers(&self) -> usize {
        self.lanes.iter().map(|lane| lane.layers().count()).max().unwrap_or(0)
    }

    /// Bytes of all tables, with their padding.
    pub(super) fn table_bytes(&self) -> usize {
        self.lanes.iter().map(Lane::table_bytes).sum()
    }

    /// The bytes charged against the limit.
    pub(super) fn charged(&self) -> usize {
        self.lanes.iter().map(Lane::charged).fold(FILTER_BYTES, usize::saturating_add)
    }

    /// A copy, or an error if memory cannot be allocated.
    fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut lanes = reserved(self.lanes.len())?;
        for lane in &self.lanes {
            lanes.push(lane.try_clone()?);
        }
        Ok(Self { lanes, ..*self })
    }

    /// Inserts a hash into the lane with this index.
    #[inline]
    fn insert_into(&mut self, lane: usize, hash: Uniform) -> Result<(), InsertError> {
        match self.lanes[lane].insert(hash) {
            Ok(()) => Ok(()),
            Err(full) => self.insert_growing(lane, hash, full),
        }
    }

    #[cold]
    fn insert_growing(&mut self, lane: usize, hash: Uniform, full: Place) -> Result<(), InsertError> {
        // To find out how much is allowed takes time.
        if self.lanes[lane].insert_asking(hash, full, self.max_bytes < usize::MAX) { Ok(()) } else { self.grow(lane, hash, full) }
    }

    /// The same where asking first does not help.
    fn grow(&mut self, lane: usize, hash: Uniform, full: Place) -> Result<(), InsertError> {
        let allowed = self.allowed();
        self.lanes[lane].insert_growing(hash, full, allowed).map_err(|error| self.refuse(error))
    }

    /// By how many bytes the charge may rise.
    pub(super) fn allowed(&self) -> usize {
        match self.max_bytes {
            usize::MAX => usize::MAX,
            max_bytes => max_bytes.saturating_sub(self.charged()),
        }
    }

    pub(super) fn refuse(&self, error: InsertError) -> InsertError {
        error.within(self.charged(), self.max_bytes)
    }
}

impl<H> ElasticFilter<H> {
    /// Frees memory: joins all pairs of shards that together fill at most nine tenths of one. (Removals join those below two
    /// fifths.) The next insertions may split them again. A pair stays as it is if memory for the joined shard cannot be
    /// allocated.
    pub fn shrink(&mut self) {
        self.core.lanes.iter_mut().for_each(Lane::shrink);
    }

    /// Clones the filter. Returns an error where `clone` aborts the process.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory>
    where
        H: Clone,
    {
        Ok(Self { core: self.core.try_clone()?, hasher: self.hasher.clone() })
    }
}
