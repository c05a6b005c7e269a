//! Operations on many items. A batch prefetches the buckets of 64 items at once. Very large batches on large filters are shared
//! out first, by the shards that the items belong to.

use super::{ElasticFilter, ElasticParams, GrowError, ShardStorage, look_up::contains_all, sharing::SHARING};
use crate::{
    filter::{Batch, ContainsIter, Hashed, Items, LookUp, answers_in_order, same_length},
    hash::HashItem,
    kernel::{BATCH, Hashes, PREFETCH_FROM},
    params::Addressing,
    table::Uniform,
};

impl<H> ElasticFilter<H> {
    /// [`insert`](Self::insert) for each item, in order.
    ///
    /// # Errors
    /// [`GrowError`] at the first item that is refused. Items before [`GrowError::position`] are in the filter; the refused item
    /// and those after it are not.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::ElasticFilter::builder().false_positive_rate(0.001).build()?;
    /// filter.insert_batch(&["alice", "bob"])?;
    /// assert_eq!(filter.count_members(&["alice", "bob", "carol"]), 2);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn insert_batch<I: Items<H> + ?Sized>(&mut self, items: &I) -> Result<(), GrowError> {
        let (items, mut position) = (items.batch(), 0);
        while let (hashes, len @ 1..) = self.hashes_from(items, position) {
            position += self.insert_some(&hashes[..len]).map_err(|error| error.after(position))?;
        }
        Ok(())
    }

    /// [`insert`](Self::insert) for each item of an iterator, in order. Returns the number of items.
    ///
    /// # Errors
    /// [`GrowError`] at the first item that is refused. Items before [`GrowError::position`] are in the filter; the refused item
    /// and those after it are not. Up to 63 items after it have already been taken from the iterator.
    pub fn insert_iter<I: IntoIterator>(&mut self, items: I) -> Result<usize, GrowError>
    where
        H: HashItem<I::Item>,
    {
        let mut items = items.into_iter();
        let mut inserted = 0;
        loop {
            let (hashes, len) = self.next_hashes(&mut items);
            inserted += self.insert_some(&hashes[..len]).map_err(|error| error.after(inserted))?;
            if len < BATCH {
                return Ok(inserted);
            }
        }
    }

    /// [`insert_unique`](Self::insert_unique) for each item of an iterator, in order. Returns the number of items stored.
    ///
    /// # Errors
    /// [`GrowError`] at the first item that is refused; [`GrowError::position`] is the number of items before it, stored or
    /// skipped. Up to 63 items after it have already been taken from the iterator.
    pub fn insert_unique_iter<I: IntoIterator>(&mut self, items: I) -> Result<usize, GrowError>
    where
        H: HashItem<I::Item>,
    {
        let mut items = items.into_iter();
        let (mut stored, mut position) = (0, 0);
        loop {
            let (hashes, len) = self.next_hashes(&mut items);
            self.prefetch(&hashes[..len]);
            for &hash in &hashes[..len] {
                stored += usize::from(self.insert_unique_uniform(Uniform(hash)).map_err(|error| error.at(position))?);
                position += 1;
            }
            if len < BATCH {
                return Ok(stored);
            }
        }
    }

    /// The hashes of a batch from this position on, and their number, which is 0 at the end.
    fn hashes_from(&self, items: impl Batch<H>, start: usize) -> ([u64; BATCH], usize) {
        let mut hashes = [0; BATCH];
        Hashed { items, hasher: &self.hasher, seed: self.params.seed, addressing: Addressing::AnySize }.fill(start, &mut hashes);
        (hashes, (items.len() - start).min(BATCH))
    }

    /// The hashes of the next items and their number: a whole batch, or fewer at the end of the iterator.
    fn next_hashes<T>(&self, items: &mut impl Iterator<Item = T>) -> ([u64; BATCH], usize)
    where
        H: HashItem<T>,
    {
        let (mut hashes, mut len) = ([0; BATCH], 0);
        for (hash, item) in hashes.iter_mut().zip(items) {
            *hash = self.uniform(&item).0;
            len += 1;
        }
        (hashes, len)
    }

    /// Inserts a batch. Returns the number of hashes.
    fn insert_some(&mut self, hashes: &[u64]) -> Result<usize, GrowError> {
        self.prefetch(hashes);
        for (position, &hash) in hashes.iter().enumerate() {
            self.insert_uniform(Uniform(hash)).map_err(|error| error.at(position))?;
        }
        Ok(hashes.len())
    }

    /// Prefetches the buckets of a batch if the filter is large.
    pub(super) fn prefetch(&self, hashes: &[u64]) {
        if self.table_bytes() >= PREFETCH_FROM {
            for &hash in hashes {
                self.lane(Uniform(hash)).prefetch(Uniform(hash));
            }
        }
    }

    /// [`remove`](Self::remove) for each item, in order; whether `items[i]` was found is written to `removed[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_batch<I: Items<H> + ?Sized>(&mut self, items: &I, removed: &mut [bool]) {
        let items = items.batch();
        same_length(items.len(), removed.len());
        for (batch, removed) in removed.chunks_mut(BATCH).enumerate() {
            let (hashes, len) = self.hashes_from(items, batch * BATCH);
            self.remove_some(&hashes[..len], removed);
        }
    }

    fn remove_some(&mut self, hashes: &[u64], removed: &mut [bool]) {
        self.prefetch(hashes);
        for (&hash, removed) in hashes.iter().zip(removed) {
            *removed = self.remove_uniform(Uniform(hash));
        }
    }
}

impl<H, S: ShardStorage> ElasticFilter<H, S> {
    /// [`contains`](Self::contains) for each item; the answer for `items[i]` is written to `found[i]`.
    ///
    /// If there are very many items, twelve bytes more are used for each meanwhile, up to 192 MiB; without that memory it takes
    /// longer.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn contains_batch<I: Items<H> + ?Sized>(&self, items: &I, found: &mut [bool]) {
        let hashes = self.hashed(items);
        same_length(hashes.len(), found.len());
        if !self.contains_shared_out(&SHARING, &hashes, found) {
            self.each_answer(&hashes, answers_in_order(found));
        }
    }

    /// Looks up all hashes in order, as [`contains_all`] does.
    fn each_answer(&self, hashes: &impl Hashes, answer: impl FnMut(u64)) {
        let prefetches = self.table_bytes() >= PREFETCH_FROM;
        contains_all(self.dispatch(), self.all_shards(), prefetches, hashes, answer);
    }

    /// The number of items for which [`contains`](Self::contains) returns true.
    #[must_use]
    pub fn count_members<I: Items<H> + ?Sized>(&self, items: &I) -> usize {
        let mut count = 0;
        self.each_answer(&self.hashed(items), |answers| count += answers.count_ones() as usize);
        count
    }

    /// Looks up the items of an iterator and yields each one with its answer, as
    /// [`CuckooFilter::contains_iter`](crate::CuckooFilter::contains_iter) does. Takes up to 64 items ahead from the iterator.
    pub fn contains_iter<I: IntoIterator>(&self, items: I) -> ContainsIter<'_, I::IntoIter, Self>
    where
        H: HashItem<I::Item>,
    {
        ContainsIter::new(self, items.into_iter())
    }

    fn hashed<'a, I: Items<H> + ?Sized>(&'a self, items: &'a I) -> Hashed<'a, I::Batch<'a>, H> {
        hashed(&self.hasher, &self.params, items)
    }
}

/// Items, to be hashed as a filter with these parameters does.
pub(super) fn hashed<'a, H, I: Items<H> + ?Sized>(
    hasher: &'a H,
    params: &ElasticParams,
    items: &'a I,
) -> Hashed<'a, I::Batch<'a>, H> {
    Hashed { items: items.batch(), hasher, seed: params.seed, addressing: Addressing::AnySize }
}

impl<T, H: HashItem<T>, S: ShardStorage> LookUp<T> for ElasticFilter<H, S> {
    fn uniform_hash(&self, item: &T) -> u64 {
        self.uniform(item).0
    }

    fn look_up(&self, hashes: &[u64]) -> u64 {
        let mut answers = 0;
        self.each_answer(&hashes, |found| answers = found);
        answers
    }
}
