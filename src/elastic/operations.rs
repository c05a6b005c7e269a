//! What a growing filter does with hashes, and what other filters do not do.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::fmt;

use super::{
    CoreGrow, Elastic, ElasticFilter, ElasticParams, OwnedShards, ShardStorage, SnapshotShards,
    facts::summarize,
    lane::Lane,
    layer::Coming,
    look_up::{Shards as _, contains_all},
    pool::Place,
    shard::Key,
    sharing::SHARING,
    storage::sealed::Sealed as _,
};
use crate::{
    filter::{Core, CoreMut, CoreRemove, Filter, InsertError, Planned, answers_in_order},
    hash::HashItem,
    kernel::{BATCH, Dispatch, Hashes, PREFETCH_FROM, Task},
    params::Addressing,
    storage::OutOfMemory,
    table::{Instructions, Uniform},
};

#[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
impl<S: ShardStorage> Core for Elastic<S> {
    const NAME: &'static str = "ElasticFilter";

    #[inline]
    fn seed(&self) -> u64 {
        self.params.seed
    }

    #[inline]
    fn addressing(&self) -> Addressing {
        Addressing::AnySize
    }

    #[inline]
    fn contains(&self, hash: Uniform) -> bool {
        self.all_shards().contains(hash)
    }

    fn count(&self, hash: Uniform) -> u32 {
        self.all_shards().count(hash)
    }

    fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(u64)) {
        let prefetches = self.storage.table_bytes() >= PREFETCH_FROM;
        contains_all(self.storage.dispatch(), self.all_shards(), prefetches, hashes, answer);
    }

    fn contains_each(&self, hashes: &impl Hashes, found: &mut [bool]) {
        if !self.contains_shared_out(&SHARING, hashes, found) {
            self.contains_all(hashes, answers_in_order(found));
        }
    }

    fn len(&self) -> usize {
        self.storage.len()
    }

    fn false_positive_rate(&self) -> f64 {
        self.storage.false_positive_rate()
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        summarize(self, f, bytes)
    }

    fn bytes_behind(&self) -> usize {
        self.storage.size_in_bytes()
    }
}

#[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
impl<S: ShardStorage> Planned for Elastic<S> {
    type Params = ElasticParams;

    fn params(&self) -> ElasticParams {
        self.params
    }

    fn dispatch(&self) -> Dispatch {
        self.storage.dispatch()
    }

    fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.storage.set_dispatch(dispatch);
    }
}

#[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
impl<S: ShardStorage> CoreGrow for Elastic<S> {
    fn shards(&self) -> usize {
        self.storage.shard_count()
    }

    fn layers(&self) -> usize {
        self.storage.layers()
    }

    fn table_bytes(&self) -> usize {
        self.storage.table_bytes()
    }
}

#[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
impl CoreMut for Elastic {
    #[inline]
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError> {
        let lane = self.lane_of(hash);
        self.storage.insert(lane, hash)
    }

    #[inline]
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError> {
        if self.all_shards().of(hash).holds(hash) { Ok(false) } else { self.insert(hash).map(|()| true) }
    }

    fn insert_some(&mut self, hashes: &[u64]) -> Result<(), InsertError> {
        let prefetches = self.storage.table_bytes() >= PREFETCH_FROM;
        self.storage.dispatch().run(InsertSome { core: self, hashes, prefetches })
    }

    fn clear(&mut self) {
        self.storage.lanes.iter_mut().for_each(Lane::clear);
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
        let Self { core: Elastic { storage, params }, hashes, prefetches } = self;
        let (address, shares) = (params.address(), params.shares());
        let lane_of = |hash: u64| shares.lane(Uniform(hash));
        let mut items = [Coming::NONE; BATCH];
        for (item, &hash) in items.iter_mut().zip(hashes) {
            let key = Key::new(&address, shares.stream(Uniform(hash)), Uniform(hash));
            *item = storage.lanes[lane_of(hash)].last().coming(instructions, key);
        }
        for (item, &hash) in items.iter_mut().zip(hashes) {
            storage.lanes[lane_of(hash)].last().approach(instructions, item, prefetches);
        }
        let mut has_grown = false;
        for (position, (item, &hash)) in items.iter_mut().zip(hashes).enumerate() {
            let lane = lane_of(hash);
            if has_grown {
                // Shards may be elsewhere.
                let last = storage.lanes[lane].last();
                *item = last.coming(instructions, item.key);
                last.approach(instructions, item, false);
            }
            if !storage.lanes[lane].last_mut().insert_coming(instructions, *item) {
                storage.insert_growing(lane, Uniform(hash), item.place).map_err(|error| error.at(position))?;
                has_grown = true;
            }
        }
        Ok(())
    }
}

#[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
impl CoreRemove for Elastic {
    #[inline]
    fn remove(&mut self, hash: Uniform) -> bool {
        let lane = self.lane_of(hash);
        self.storage.lanes[lane].remove(hash)
    }

    fn prefetch(&self, hashes: &[u64]) {
        if self.storage.table_bytes() >= PREFETCH_FROM {
            for &hash in hashes {
                self.all_shards().of(Uniform(hash)).prefetch(Uniform(hash));
            }
        }
    }
}

/// Filters are equal if their parameters, shards and tables are.
impl PartialEq for Elastic {
    fn eq(&self, other: &Self) -> bool {
        self.params == other.params && self.storage.lanes == other.storage.lanes
    }
}

impl Eq for Elastic {}

/// Views are equal if their snapshots are, byte for byte.
impl<D: AsRef<[u8]>, E: AsRef<[u8]>> PartialEq<Elastic<SnapshotShards<E>>> for Elastic<SnapshotShards<D>> {
    fn eq(&self, other: &Elastic<SnapshotShards<E>>) -> bool {
        self.storage.snapshot().all() == other.storage.snapshot().all()
    }
}

impl<D: AsRef<[u8]>> Eq for Elastic<SnapshotShards<D>> {}

impl<S: ShardStorage> Elastic<S> {
    #[inline]
    pub(super) fn all_shards(&self) -> S::Shards<'_> {
        self.storage.shards(&self.params)
    }
}

impl Elastic {
    /// The index of the lane of a hash.
    #[inline]
    fn lane_of(&self, hash: Uniform) -> usize {
        self.params.shares().lane(hash)
    }
}

impl OwnedShards {
    /// Inserts a hash into the lane with this index.
    #[inline]
    pub(super) fn insert(&mut self, lane: usize, hash: Uniform) -> Result<(), InsertError> {
        match self.lanes[lane].insert(hash) {
            Ok(()) => Ok(()),
            Err(full) => self.insert_growing(lane, hash, full),
        }
    }

    #[cold]
    fn insert_growing(&mut self, lane: usize, hash: Uniform, full: Place) -> Result<(), InsertError> {
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
        self.core.storage.lanes.iter_mut().for_each(Lane::shrink);
    }

    /// Clones the filter. Returns an error where `clone` aborts the process.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory>
    where
        H: Clone,
    {
        let core = Elastic { storage: self.core.storage.try_clone()?, params: self.core.params };
        Ok(Self { core, hasher: self.hasher.clone() })
    }
}

/// [`insert_unique_iter`](Filter::insert_unique_iter).
///
/// # Panics
/// If an item is refused.
impl<T, C: Core + CoreMut + CoreGrow, H: HashItem<T>> Extend<T> for Filter<C, H> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        extended(self.insert_unique_iter(items));
    }
}

/// What becomes of an extension that cannot be refused.
pub(super) fn extended(result: Result<usize, InsertError>) {
    if let Err(error) = result {
        panic!("the filter cannot be extended: {error}");
    }
}
