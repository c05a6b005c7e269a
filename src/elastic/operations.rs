//! What a growing filter does with hashes.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use alloc::vec::Vec;
use core::fmt;

use super::{
    Elastic, ElasticFilter, ElasticParams,
    facts::{FILTER_BYTES, summarize},
    generation::Pending,
    look_up::{Partitions, Shards as _, contains_all},
    partition::Partition,
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
        self.partitions.iter().map(Partition::len).sum()
    }

    fn capacity(&self) -> usize {
        self.params.max_capacity()
    }

    fn table_len(&self) -> usize {
        self.partitions.iter().map(Partition::table_len).sum()
    }

    fn slots(&self) -> u64 {
        self.partitions.iter().map(Partition::slots).sum()
    }

    fn false_positive_rate(&self) -> f64 {
        self.partitions.iter().map(Partition::false_positive_rate).sum::<f64>() / self.partitions.len() as f64
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        summarize(f, self.len(), self.shards(), bytes)
    }

    fn bytes_behind(&self) -> usize {
        self.partitions.capacity() * size_of::<Partition>() + self.partitions.iter().map(Partition::size_in_bytes).sum::<usize>()
    }
}

impl CoreMut for Elastic {
    #[inline]
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError> {
        self.insert_into(self.partition_of(hash), hash)
    }

    #[inline]
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError> {
        if self.all().of(hash).holds(hash) { Ok(false) } else { self.insert(hash).map(|()| true) }
    }

    #[inline]
    fn remove(&mut self, hash: Uniform) -> bool {
        let partition = self.partition_of(hash);
        self.partitions[partition].remove(hash)
    }

    fn clear(&mut self) {
        self.partitions.iter_mut().for_each(Partition::clear);
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
        let partition_of = |hash: u64| shares.partition(Uniform(hash));
        let mut items = [Pending::NONE; BATCH];
        for (item, &hash) in items.iter_mut().zip(hashes) {
            let key = Key::new(&address, shares.stream(Uniform(hash)), Uniform(hash));
            *item = core.partitions[partition_of(hash)].last().pending(key);
        }
        if prefetches {
            for (item, &hash) in items.iter().zip(hashes) {
                core.partitions[partition_of(hash)].last().prefetch_pending(instructions, *item);
            }
        }
        let mut has_grown = false;
        for (position, (item, &hash)) in items.iter_mut().zip(hashes).enumerate() {
            let partition = partition_of(hash);
            if has_grown {
                // Shards may be elsewhere.
                *item = core.partitions[partition].last().pending(item.key);
            }
            if !core.partitions[partition].last_mut().insert_pending(instructions, *item)
                && !core.partitions[partition].insert_asking(Uniform(hash), item.place, core.max_bytes < usize::MAX)
            {
                core.grow(partition, Uniform(hash), item.place).map_err(|error| error.at(position))?;
                has_grown = true;
            }
        }
        Ok(())
    }
}

impl PartialEq for Elastic {
    fn eq(&self, other: &Self) -> bool {
        self.params == other.params && self.partitions == other.partitions
    }
}

impl Eq for Elastic {}

impl Elastic {
    /// A filter with these partitions, as many as the parameters have, without a limit.
    pub fn from_partitions(partitions: Vec<Partition>, params: ElasticParams) -> Self {
        Self { partitions, params, max_bytes: usize::MAX }
    }

    pub fn params(&self) -> &ElasticParams {
        &self.params
    }

    pub fn distinct(&self) -> usize {
        self.partitions.iter().map(Partition::distinct).sum()
    }

    pub fn dispatch(&self) -> Dispatch {
        self.partitions.first().map_or_else(Dispatch::best, Partition::dispatch)
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.partitions.iter_mut().for_each(|partition| partition.set_dispatch(dispatch));
    }

    #[inline]
    pub fn all(&self) -> Partitions<'_> {
        Partitions { partitions: &self.partitions, params: &self.params }
    }

    #[inline]
    fn partition_of(&self, hash: Uniform) -> usize {
        self.params.shares().partition(hash)
    }

    pub fn shards(&self) -> usize {
        self.partitions.iter().map(Partition::shards).sum()
    }

    /// The most generations of a partition.
    pub fn generations(&self) -> usize {
        self.partitions.iter().map(|partition| partition.generations().count()).max().unwrap_or(0)
    }

    /// Bytes of all tables, with their padding.
    pub fn table_bytes(&self) -> usize {
        self.partitions.iter().map(Partition::table_bytes).sum()
    }

    /// The bytes charged against the limit.
    pub fn charged(&self) -> usize {
        self.partitions.iter().map(Partition::charged).fold(FILTER_BYTES, usize::saturating_add)
    }

    /// A copy, or an error if memory cannot be allocated.
    fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut partitions = reserved(self.partitions.len())?;
        for partition in &self.partitions {
            partitions.push(partition.try_clone()?);
        }
        Ok(Self { partitions, ..*self })
    }

    /// Inserts a hash into the partition with this index.
    #[inline]
    fn insert_into(&mut self, partition: usize, hash: Uniform) -> Result<(), InsertError> {
        match self.partitions[partition].insert(hash) {
            Ok(()) => Ok(()),
            Err(full) => self.insert_growing(partition, hash, full),
        }
    }

    #[cold]
    fn insert_growing(&mut self, partition: usize, hash: Uniform, full: Place) -> Result<(), InsertError> {
        // To find out how much is allowed takes time.
        if self.partitions[partition].insert_asking(hash, full, self.max_bytes < usize::MAX) {
            Ok(())
        } else {
            self.grow(partition, hash, full)
        }
    }

    /// The same where asking first does not help.
    fn grow(&mut self, partition: usize, hash: Uniform, full: Place) -> Result<(), InsertError> {
        let allowed = self.allowed();
        self.partitions[partition].insert_growing(hash, full, allowed).map_err(|error| self.refuse(error))
    }

    /// By how many bytes the charge may rise.
    pub fn allowed(&self) -> usize {
        match self.max_bytes {
            usize::MAX => usize::MAX,
            max_bytes => max_bytes.saturating_sub(self.charged()),
        }
    }

    pub fn refuse(&self, error: InsertError) -> InsertError {
        error.within(self.charged(), self.max_bytes)
    }
}

impl<H> ElasticFilter<H> {
    /// Frees memory: joins all pairs of shards that together fill at most nine tenths of one. (Removals join those below two
    /// fifths.) The next insertions may split them again. A pair stays as it is if memory for the joined shard cannot be
    /// allocated.
    pub fn shrink(&mut self) {
        self.core.partitions.iter_mut().for_each(Partition::shrink);
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
