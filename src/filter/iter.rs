//! Operations on iterators, which collect items into batches to prefetch their buckets.

use alloc::collections::VecDeque;
use core::{fmt, iter::FusedIterator, mem};

use super::{CuckooFilter, Full};
use crate::{hash::HashItem, kernel::BATCH, storage::Storage, table::Uniform};

impl<H> CuckooFilter<H> {
    /// [`insert`](Self::insert) for each item of an iterator, in order. Returns the number of items. Works in batches of 64, as
    /// fast as [`insert_batch`](Self::insert_batch).
    ///
    /// # Errors
    /// [`Full`] at the first item for which no slot was found. Items before [`Full::position`] are in the filter; the refused
    /// item and those after it are not. Up to 63 items after it have already been taken from the iterator, so resume from the
    /// original sequence at that position.
    ///
    /// # Example
    /// ```
    /// let mut words = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// let inserted = words.insert_iter("to be or not to be".split(' '))?;
    /// assert_eq!((inserted, words.len(), words.count("to")), (6, 6, 2));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn insert_iter<I: IntoIterator>(&mut self, items: I) -> Result<usize, Full>
    where
        H: HashItem<I::Item>,
    {
        let mut items = items.into_iter();
        let mut inserted = 0;
        loop {
            let (hashes, len) = self.next_hashes(&mut items);
            self.raw.insert_all(&&hashes[..len]).map_err(|full| full.after(inserted))?;
            inserted += len;
            if len < BATCH {
                return Ok(inserted);
            }
        }
    }

    /// [`insert_unique`](Self::insert_unique) for each item of an iterator, in order. Returns the number of items stored.
    ///
    /// # Errors
    /// [`Full`] at the first item for which no slot was found. [`Full::position`] is the number of items before it, stored or
    /// skipped. The refused item and those after it are not in the filter; up to 63 items after it have already been taken from
    /// the iterator.
    ///
    /// # Example
    /// Words of a text, many of which occur repeatedly:
    /// ```
    /// let mut words = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(1e-6).build()?;
    /// assert_eq!(words.insert_unique_iter("to be or not to be".split(' '))?, 4);
    /// assert_eq!(words.len(), 4);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn insert_unique_iter<I: IntoIterator>(&mut self, items: I) -> Result<usize, Full>
    where
        H: HashItem<I::Item>,
    {
        let mut items = items.into_iter();
        let (mut stored, mut position) = (0, 0);
        loop {
            let (hashes, len) = self.next_hashes(&mut items);
            self.raw.prefetch(&hashes[..len]);
            for &hash in &hashes[..len] {
                stored += usize::from(self.insert_unique_uniform(Uniform(hash)).map_err(|full| full.at(position))?);
                position += 1;
            }
            if len < BATCH {
                return Ok(stored);
            }
        }
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
}

impl<H, S: Storage> CuckooFilter<H, S> {
    /// Looks up the items of an iterator and yields each one with its answer. As fast as
    /// [`contains_batch`](Self::contains_batch). Takes up to 64 items ahead from the iterator.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// let names = ["alice", "bob"].into_iter();
    /// let unknown: Vec<&str> = filter.contains_iter(names).filter(|(_, found)| !found).map(|(name, _)| name).collect();
    /// assert_eq!(unknown, ["bob"]);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn contains_iter<I: IntoIterator>(&self, items: I) -> ContainsIter<'_, I::IntoIter, Self>
    where
        H: HashItem<I::Item>,
    {
        ContainsIter::new(self, items.into_iter())
    }
}

pub(crate) mod sealed {
    /// A filter that looks up batches.
    pub trait LookUp<T> {
        /// The uniform hash of an item.
        fn uniform_hash(&self, item: &T) -> u64;

        /// Bit i of the result is the answer for the i-th of at most 64 uniform hashes.
        fn look_up(&self, hashes: &[u64]) -> u64;
    }
}
pub(crate) use sealed::LookUp;

impl<T, H: HashItem<T>, S: Storage> LookUp<T> for CuckooFilter<H, S> {
    fn uniform_hash(&self, item: &T) -> u64 {
        self.uniform(item).0
    }

    fn look_up(&self, hashes: &[u64]) -> u64 {
        let mut answers = 0;
        self.raw.contains_all(&hashes, |found| answers = found);
        answers
    }
}

/// Iterator over items and whether the filter contains them; made by [`CuckooFilter::contains_iter`] and
/// `ElasticFilter::contains_iter`.
#[must_use = "iterators are lazy: nothing is looked up until the iterator is consumed"]
pub struct ContainsIter<'a, I: Iterator, F> {
    filter: &'a F,
    items: I,
    batch: VecDeque<I::Item>,
    /// One bit for each item of `batch`; the lowest bit is the next answer.
    answers: u64,
}

impl<'a, I: Iterator, F> ContainsIter<'a, I, F> {
    pub(crate) fn new(filter: &'a F, items: I) -> Self {
        Self { filter, items, batch: VecDeque::new(), answers: 0 }
    }
}

impl<I: Iterator, F: LookUp<I::Item>> Iterator for ContainsIter<'_, I, F> {
    type Item = (I::Item, bool);

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.is_empty() {
            if self.batch.try_reserve(BATCH).is_err() {
                // Without memory for a batch, one after the other.
                let item = self.items.next()?;
                let found = self.filter.look_up(&[self.filter.uniform_hash(&item)]) & 1 == 1;
                return Some((item, found));
            }
            // If hashing an item panics, `self` must not keep a batch without its answers.
            let mut batch = mem::take(&mut self.batch);
            batch.extend(self.items.by_ref().take(BATCH));
            let mut hashes = [0; BATCH];
            for (hash, item) in hashes.iter_mut().zip(&batch) {
                *hash = self.filter.uniform_hash(item);
            }
            self.answers = self.filter.look_up(&hashes[..batch.len()]);
            self.batch = batch;
        }
        let item = self.batch.pop_front()?;
        let found = self.answers & 1 == 1;
        self.answers >>= 1;
        Some((item, found))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (ahead, (least, most)) = (self.batch.len(), self.items.size_hint());
        (least.saturating_add(ahead), most.and_then(|most| most.checked_add(ahead)))
    }
}

impl<I: Iterator<Item: Clone> + Clone, F> Clone for ContainsIter<'_, I, F> {
    fn clone(&self) -> Self {
        Self { filter: self.filter, items: self.items.clone(), batch: self.batch.clone(), answers: self.answers }
    }
}

impl<I: Iterator, F> fmt::Debug for ContainsIter<'_, I, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainsIter").field("ahead", &self.batch.len()).finish_non_exhaustive()
    }
}

impl<I: ExactSizeIterator, F: LookUp<I::Item>> ExactSizeIterator for ContainsIter<'_, I, F> {}
impl<I: FusedIterator, F: LookUp<I::Item>> FusedIterator for ContainsIter<'_, I, F> {}
