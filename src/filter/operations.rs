//! The operations of all filters, each written once: on an item, on a batch, on an iterator.

#![allow(clippy::inline_always, reason = "a call takes as long as the rest of a lookup in a cache")]

use alloc::collections::VecDeque;
use core::{fmt, iter::FusedIterator, mem};

use super::{Core, CoreMut, CoreRemove, Filter, Hashed, InsertError, Items, same_length};
use crate::{
    hash::HashItem,
    kernel::{BATCH, Hashes as _},
    table::Uniform,
};

impl<C: Core + CoreMut, H> Filter<C, H> {
    /// Inserts an item, even if it is already present: see [Duplicates](crate::CuckooFilter#duplicates). A growing filter grows if it
    /// has to.
    ///
    /// Takes constant time on average; an insertion that splits a shard of a growing filter takes a fraction of a millisecond.
    ///
    /// # Errors
    /// If the item is refused, for a reason that [`InsertErrorKind`](crate::InsertErrorKind) lists. The filter is then unchanged, bit for bit.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// filter.insert(&42u64)?;
    /// assert!(filter.contains("alice") && filter.contains(&42u64));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert<T: ?Sized>(&mut self, item: &T) -> Result<(), InsertError>
    where
        H: HashItem<T>,
    {
        let hash = self.uniform(item);
        self.core.insert(hash)
    }

    /// Inserts an item unless [`contains`](Self::contains) returns true for it. Returns true if it was inserted.
    ///
    /// With probability ε, `contains` returns true for an item that was never inserted, and the item is not stored. It will be
    /// found all the same, but removing it later removes the fingerprint of another item. So combine this method with removal
    /// only if you know which items were stored.
    ///
    /// A growing filter compares all stored bits, including those kept for growth. So it may insert an item for which `contains`
    /// already returns true by chance, and an item that it skips is found at every later size.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// assert!(filter.insert_unique("alice")?);
    /// assert!(!filter.insert_unique("alice")?);
    /// assert_eq!(filter.len(), 1);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert_unique<T: ?Sized>(&mut self, item: &T) -> Result<bool, InsertError>
    where
        H: HashItem<T>,
    {
        let hash = self.uniform(item);
        self.core.insert_unique(hash)
    }

    /// [`insert`](Self::insert) for each item, in order. Prefetches the buckets of 64 items at once.
    ///
    /// # Errors
    /// That of the first item that is refused. Items before its [`position`](InsertError::position) are in the filter; the refused
    /// item and those after it are not.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert_batch(&["alice", "bob"])?;
    /// assert_eq!(filter.len(), 2);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn insert_batch<I: Items<H> + ?Sized>(&mut self, items: &I) -> Result<(), InsertError> {
        self.core.insert_all(&hashed(&self.core, &self.hasher, items))
    }

    /// [`insert`](Self::insert) for each item of an iterator, in order. Returns the number of items. Works in batches of 64, as
    /// fast as [`insert_batch`](Self::insert_batch).
    ///
    /// # Errors
    /// That of the first item that is refused. Items before its [`position`](InsertError::position) are in the filter; the refused
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
    pub fn insert_iter<I: IntoIterator>(&mut self, items: I) -> Result<usize, InsertError>
    where
        H: HashItem<I::Item>,
    {
        self.core.insert_each(hashed_iter(&self.core, &self.hasher, items))
    }

    /// [`insert_unique`](Self::insert_unique) for each item of an iterator, in order. Returns the number of items stored.
    ///
    /// # Errors
    /// That of the first item that is refused. Its [`position`](InsertError::position) is the number of items before it, stored or
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
    pub fn insert_unique_iter<I: IntoIterator>(&mut self, items: I) -> Result<usize, InsertError>
    where
        H: HashItem<I::Item>,
    {
        self.core.insert_each_unique(hashed_iter(&self.core, &self.hasher, items))
    }
}

impl<C: Core + CoreMut, H> Filter<C, H> {
    /// Removes all items. A table of fixed size keeps its size; a growing filter frees the memory that it has grown by. Takes
    /// time proportional to the tables.
    pub fn clear(&mut self) {
        self.core.clear();
    }
}

impl<C: Core + CoreRemove, H> Filter<C, H> {
    /// Removes one copy of an item. Returns true if a copy was found. Read [Removal](crate::CuckooFilter#removal) first.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// assert!(filter.remove("alice"));
    /// assert!(!filter.contains("alice"));
    /// assert!(!filter.remove("alice"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn remove<T: ?Sized>(&mut self, item: &T) -> bool
    where
        H: HashItem<T>,
    {
        let hash = self.uniform(item);
        self.core.remove(hash)
    }

    /// [`remove`](Self::remove) for each item, in order; writes to `removed[i]` whether `items[i]` was found.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_batch<I: Items<H> + ?Sized>(&mut self, items: &I, removed: &mut [bool]) {
        let hashes = hashed(&self.core, &self.hasher, items);
        same_length(hashes.len(), removed.len());
        self.core.remove_all(&hashes, removed);
    }
}

impl<C: Core, H> Filter<C, H> {
    /// False if the item is not in the filter; true if it probably is.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// assert!(filter.contains("alice"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline(always)]
    #[must_use]
    pub fn contains<T: ?Sized>(&self, item: &T) -> bool
    where
        H: HashItem<T>,
    {
        self.core.contains(self.uniform(item))
    }

    /// The number of copies of an item in the filter: at least as many as were inserted and not removed. Other items with the
    /// same fingerprint and buckets make the count too high, with probability at most ε.
    ///
    /// A growing filter compares all stored bits, including those kept for growth: an item that [`contains`](Self::contains)
    /// finds by chance usually counts 0.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// filter.insert("alice")?;
    /// assert_eq!(filter.count("alice"), 2);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn count<T: ?Sized>(&self, item: &T) -> u32
    where
        H: HashItem<T>,
    {
        self.core.count(self.uniform(item))
    }

    /// [`contains`](Self::contains) for each item; writes the result for `items[i]` to `found[i]`.
    ///
    /// With the vector kernels, two to three times as fast as single lookups, because the memory accesses of many items overlap
    /// (docs/PERFORMANCE.md). For very many items, a growing filter temporarily takes twelve bytes per item, up to 192 MiB;
    /// without that memory it is slower.
    ///
    /// # Panics
    /// If the slices differ in length.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert_batch(&["alice", "bob"])?;
    /// let mut found = [false; 3];
    /// filter.contains_batch(&["alice", "bob", "carol"], &mut found);
    /// assert_eq!(found, [true, true, false]);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn contains_batch<I: Items<H> + ?Sized>(&self, items: &I, found: &mut [bool]) {
        let hashes = hashed(&self.core, &self.hasher, items);
        same_length(hashes.len(), found.len());
        self.core.contains_each(&hashes, found);
    }

    /// The number of items for which [`contains`](Self::contains) returns true. As fast as
    /// [`contains_batch`](Self::contains_batch), without a slice for the results.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert_batch(&["alice", "bob"])?;
    /// assert_eq!(filter.count_members(&["alice", "bob", "carol"]), 2);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count_members<I: Items<H> + ?Sized>(&self, items: &I) -> usize {
        self.core.count_members(&hashed(&self.core, &self.hasher, items))
    }

    /// Looks up the items of an iterator and yields each one with its result. As fast as
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

    /// The hash of an item, for [`Prehashed`](crate::Prehashed). Hash once and query several filters, if their addressing, hashers
    /// and seeds are equal. See [Hashes](crate::CuckooFilter#hashes).
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, Prehashed};
    /// let builder = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001);
    /// let (mut today, yesterday) = (builder.clone().build()?, builder.build()?);
    /// let key = Prehashed(today.hash("alice"));
    /// today.insert(&key)?;
    /// assert!(today.contains(&key) && !yesterday.contains(&key));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<T: ?Sized>(&self, item: &T) -> u64
    where
        H: HashItem<T>,
    {
        self.uniform(item).hash(self.core.addressing())
    }

    /// The uniform hash of an item.
    #[inline]
    pub(crate) fn uniform<T: ?Sized>(&self, item: &T) -> Uniform
    where
        H: HashItem<T>,
    {
        Uniform(self.hasher.place_item(self.core.seed(), self.core.addressing(), item))
    }
}

/// A batch, to be hashed as this core requires.
pub(crate) fn hashed<'a, H, I: Items<H> + ?Sized>(core: &impl Core, hasher: &'a H, items: &'a I) -> Hashed<'a, I::Batch<'a>, H> {
    Hashed { items: items.batch(), hasher, seed: core.seed(), addressing: core.addressing() }
}

/// Items of an iterator, to be hashed as this core requires.
pub(crate) fn hashed_iter<'a, H, I: IntoIterator>(core: &impl Core, hasher: &'a H, items: I) -> Hashed<'a, I::IntoIter, H> {
    Hashed { items: items.into_iter(), hasher, seed: core.seed(), addressing: core.addressing() }
}

impl<I: Iterator, H: HashItem<I::Item>> Hashed<'_, I, H> {
    /// Calls `act` with the hashes of 64 items after the other, and at the end of fewer.
    pub(crate) fn each_batch(mut self, mut act: impl FnMut(&[u64]) -> Result<(), InsertError>) -> Result<(), InsertError> {
        loop {
            let (mut hashes, mut len) = ([0; BATCH], 0);
            for (hash, item) in hashes.iter_mut().zip(&mut self.items) {
                *hash = self.hasher.place_item(self.seed, self.addressing, &item);
                len += 1;
            }
            act(&hashes[..len])?;
            if len < BATCH {
                return Ok(());
            }
        }
    }
}

/// Iterator over items and whether the filter contains them; made by [`Filter::contains_iter`].
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

impl<I: Iterator, C: Core, H: HashItem<I::Item>> Iterator for ContainsIter<'_, I, Filter<C, H>> {
    type Item = (I::Item, bool);

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.is_empty() {
            if self.batch.try_reserve(BATCH).is_err() {
                // Without memory for a batch, one after the other.
                let item = self.items.next()?;
                let found = self.filter.contains(&item);
                return Some((item, found));
            }
            // If hashing an item panics, `self` must not keep a batch without its answers.
            let mut batch = mem::take(&mut self.batch);
            batch.extend(self.items.by_ref().take(BATCH));
            let mut hashes = [0; BATCH];
            for (hash, item) in hashes.iter_mut().zip(&batch) {
                *hash = self.filter.uniform(item).0;
            }
            self.filter.core.contains_all(&&hashes[..batch.len()], |answers| self.answers = answers);
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

impl<I: ExactSizeIterator, C: Core, H: HashItem<I::Item>> ExactSizeIterator for ContainsIter<'_, I, Filter<C, H>> {}
impl<I: FusedIterator, C: Core, H: HashItem<I::Item>> FusedIterator for ContainsIter<'_, I, Filter<C, H>> {}
