//! The operations of a growing filter on hashes.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use alloc::vec::Vec;
use core::fmt;

use super::{
    Elastic, ElasticFilter, ElasticParams,
    facts::{FILTER_BYTES, summarize},
    generation::Pending,
    lookup::{self, Shards as _, contains_all},
    partition::Partition,
    shard::Key,
};
use crate::{
    filter::{Content, Core, CoreMut, InsertError, InsertErrorKind},
    hash::Uniform,
    kernel::{BATCH, Dispatch, Hashes, PREFETCH_FROM},
    storage::{OutOfMemory, collected},
    table::{Instructions, Task},
};

impl Core for Elastic {
    #[inline]
    fn seed(&self) -> u64 {
        self.params.seed
    }

    #[inline]
    fn contains(&self, hash: Uniform) -> bool {
        self.partition(hash).contains(hash)
    }

    fn count(&self, hash: Uniform) -> u32 {
        self.partition(hash).count(hash)
    }

    fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(u64)) {
        let partitions = lookup::Partitions {
            of: |hash| &self.partition(hash).first,
            any: &self.partitions[0].first,
            is_only: self.partitions.len() == 1,
        };
        let has_all_tables = self.partitions.iter().all(|partition| (&partition.first).has_all_tables());
        let in_later: &dyn Fn(Uniform) -> bool = &|hash| self.partition(hash).later_contains(hash);
        let later = self.partitions.iter().any(Partition::has_later).then_some(in_later);
        contains_all(partitions, has_all_tables, later, self.table_bytes() >= PREFETCH_FROM, hashes, answer);
    }

    fn len(&self) -> usize {
        self.partitions.iter().map(Partition::len).fold(0, usize::saturating_add)
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

    fn external_bytes(&self) -> usize {
        self.partitions.capacity() * size_of::<Partition>() + self.partitions.iter().map(Partition::size_in_bytes).sum::<usize>()
    }
}

impl CoreMut for Elastic {
    #[inline]
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError> {
        let partition = self.params.shares.partition(hash);
        if self.partitions[partition].insert(hash) { Ok(()) } else { self.add(partition, hash) }
    }

    #[inline]
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError> {
        if self.partition(hash).contains_exactly(hash) { Ok(false) } else { self.insert(hash).map(|()| true) }
    }

    #[inline]
    fn remove(&mut self, hash: Uniform) -> bool {
        self.partitions[self.params.shares.partition(hash)].remove(hash)
    }

    fn clear(&mut self) {
        self.partitions.iter_mut().for_each(Partition::clear);
    }

    fn prefetch(&self, hashes: &[u64]) {
        if self.table_bytes() >= PREFETCH_FROM {
            for &hash in hashes {
                self.partition(Uniform(hash)).prefetch(Uniform(hash));
            }
        }
    }

    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), InsertError> {
        let prefetches = self.table_bytes() >= PREFETCH_FROM;
        self.dispatch().run(InsertSome { core: self, hashes, prefetches })
    }
}

/// The operation of [`CoreMut::insert_batch`]. It does each step for all hashes before the next step, so that memory reads
/// overlap. It also enters the kernel once, not once for each item. Together, this saves about a tenth of the time.
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
        let (address, shares) = (core.partitions[0].plan().address(), core.params.shares);
        let partition_of = |hash: u64| shares.partition(Uniform(hash));
        let pending = |core: &Elastic, hash| {
            let key = Key::new(&address, shares.stream(Uniform(hash)), Uniform(hash));
            core.partitions[partition_of(hash)].simple().map_or(Pending::NONE, |first| first.pending(key))
        };
        let mut items = [Pending::NONE; BATCH];
        for (item, &hash) in items.iter_mut().zip(hashes) {
            *item = pending(core, hash);
        }
        if prefetches {
            for (item, &hash) in items.iter().zip(hashes) {
                let partition = &core.partitions[partition_of(hash)];
                match partition.simple() {
                    Some(first) => first.prefetch_pending(instructions, *item),
                    None => partition.prefetch(Uniform(hash)),
                }
            }
        }
        let mut has_grown = false;
        for (position, (item, &hash)) in items.iter_mut().zip(hashes).enumerate() {
            if has_grown {
                // Shards may have moved.
                *item = pending(core, hash);
            }
            let first = core.partitions[partition_of(hash)].simple_mut();
            if !first.is_some_and(|first| first.insert_pending(instructions, *item)) {
                core.add(partition_of(hash), Uniform(hash)).map_err(|error| error.after(position))?;
                has_grown = true;
            }
        }
        Ok(())
    }
}

impl Clone for Elastic {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|error| error.abort())
    }
}

impl Elastic {
    /// Returns a filter without a limit. The number of partitions must match the parameters.
    pub fn from_partitions(partitions: Vec<Partition>, params: ElasticParams) -> Self {
        Self { partitions, params, max_bytes: usize::MAX }
    }

    pub fn params(&self) -> &ElasticParams {
        &self.params
    }

    /// Returns the number of distinct items.
    pub fn distinct(&self) -> usize {
        self.partitions.iter().map(Partition::distinct).sum()
    }

    /// Adds up all copies of all items in a partition.
    pub fn content(&self, partition: usize, salt: u64) -> Content {
        self.partitions[partition].content(salt)
    }

    pub fn dispatch(&self) -> Dispatch {
        self.partitions.first().map_or_else(Dispatch::best, Partition::dispatch)
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.partitions.iter_mut().for_each(|partition| partition.set_dispatch(dispatch));
    }

    /// Returns the partition of a hash.
    #[inline(always)]
    fn partition(&self, hash: Uniform) -> &Partition {
        match &*self.partitions {
            [partition] => partition,
            partitions => &partitions[self.params.shares.partition(hash)],
        }
    }

    pub fn shards(&self) -> usize {
        self.partitions.iter().map(Partition::shards).sum()
    }

    pub fn buckets(&self) -> u64 {
        self.partitions.iter().map(Partition::buckets).sum()
    }

    /// Returns the most generations that any partition has.
    pub fn generations(&self) -> usize {
        self.partitions.iter().map(|partition| partition.generations().count()).max().unwrap_or(0)
    }

    /// Returns the bytes of all tables with their padding, and of all item lists.
    pub fn table_bytes(&self) -> usize {
        self.partitions.iter().map(Partition::table_bytes).sum()
    }

    /// Returns the bytes that the filter is charged against its limit.
    pub fn charged_bytes(&self) -> usize {
        self.partitions.iter().map(Partition::charged_bytes).fold(FILTER_BYTES, usize::saturating_add)
    }

    /// Returns a copy of the same size, or an error if memory cannot be allocated.
    fn try_clone(&self) -> Result<Self, OutOfMemory> {
        Ok(Self { partitions: collected(self.partitions.iter().map(Partition::try_clone))?, ..*self })
    }

    /// Inserts a hash for which the partition may have to grow.
    #[cold]
    #[inline(never)]
    fn add(&mut self, partition: usize, hash: Uniform) -> Result<(), InsertError> {
        if self.max_bytes < usize::MAX {
            // Most insertions need no memory. Computing how much there is takes time.
            match self.partitions[partition].add(hash, 0) {
                Err(error) if matches!(error.kind(), InsertErrorKind::Limit { .. }) => {}
                result => return result.map_err(|error| self.with_limit(error)),
            }
        }
        let budget = self.budget();
        self.partitions[partition].add(hash, budget).map_err(|error| self.with_limit(error))
    }

    /// Returns by how many bytes the charge may rise.
    pub fn budget(&self) -> usize {
        match self.max_bytes {
            usize::MAX => usize::MAX,
            max_bytes => max_bytes.saturating_sub(self.charged_bytes()),
        }
    }

    /// Adds the filter's charge and limit to an error.
    pub fn with_limit(&self, error: InsertError) -> InsertError {
        error.within(self.charged_bytes(), self.max_bytes)
    }
}

impl<H> ElasticFilter<H> {
    /// Frees memory: merges all pairs of shards that together fill at most nine tenths of one shard. (Removals merge pairs that
    /// fill at most two fifths.) The next insertions may split them again. A pair is left alone if memory for the merged shard
    /// cannot be allocated.
    pub fn shrink(&mut self) {
        self.core.partitions.iter_mut().for_each(Partition::shrink);
    }

    /// Clones the filter. Returns an error where `clone` aborts the process.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory>
    where
        H: Clone,
    {
        Ok(Self { core: self.core.try_clone()?, hasher: self.hasher.clone() })
    }
}
