//! Operations on slices of items. Batches let the processor prefetch the buckets of many items at once.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use super::{CuckooFilter, Full};
use crate::{
    hash::HashItem,
    kernel::{BATCH, Given, Hashes},
    storage::Storage,
};

/// Hashes the items of a slice on demand.
pub(crate) struct Hashed<'a, T, H> {
    pub(crate) items: &'a [T],
    pub(crate) hasher: &'a H,
    pub(crate) seed: u64,
}

impl<T, H: HashItem<T>> Hashes for Hashed<'_, T, H> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.items.len()
    }

    #[inline(always)]
    fn fill(&self, start: usize, hashes: &mut [u64; BATCH]) {
        for (hash, item) in hashes.iter_mut().zip(&self.items[start..]) {
            *hash = self.hasher.hash_item(self.seed, item);
        }
    }
}

impl<H, S: Storage> CuckooFilter<H, S> {
    /// [`contains`](Self::contains) for each item; the answer for `items[i]` is written to `found[i]`.
    ///
    /// With the vector kernels, two to three times as fast as single look-ups, because the memory accesses of many items overlap
    /// (docs/PERFORMANCE.md).
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
    pub fn contains_batch<T>(&self, items: &[T], found: &mut [bool])
    where
        H: HashItem<T>,
    {
        self.contains_all(&self.hashed(items), found);
    }

    /// [`contains_batch`](Self::contains_batch) for hashes.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        self.contains_all(&self.given(hashes), found);
    }

    fn contains_all(&self, hashes: &impl Hashes, found: &mut [bool]) {
        same_length(hashes.len(), found.len());
        self.raw.contains_all(hashes, answers_in_order(found));
    }

    /// The number of items for which [`contains`](Self::contains) returns true. As fast as
    /// [`contains_batch`](Self::contains_batch), without a slice for the answers.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert_batch(&["alice", "bob"])?;
    /// assert_eq!(filter.count_members(&["alice", "bob", "carol"]), 2);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn count_members<T>(&self, items: &[T]) -> usize
    where
        H: HashItem<T>,
    {
        self.count_all(&self.hashed(items))
    }

    /// [`count_members`](Self::count_members) for hashes.
    #[must_use]
    pub fn count_member_hashes(&self, hashes: &[u64]) -> usize {
        self.count_all(&self.given(hashes))
    }

    fn count_all(&self, hashes: &impl Hashes) -> usize {
        let mut count = 0;
        self.raw.contains_all(hashes, |answers| count += answers.count_ones() as usize);
        count
    }

    pub(super) fn given<'a>(&self, hashes: &'a [u64]) -> Given<'a> {
        Given { hashes, addressing: self.raw.params().addressing() }
    }

    fn hashed<'a, T>(&'a self, items: &'a [T]) -> Hashed<'a, T, H> {
        Hashed { items, hasher: &self.hasher, seed: self.raw.params().seed() }
    }
}

impl<H> CuckooFilter<H> {
    /// [`insert`](Self::insert) for each item, in order.
    ///
    /// # Errors
    /// [`Full`] at the first item for which no slot was found. Items before [`Full::position`] are in the filter; the refused
    /// item and those after it are not.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert_batch(&["alice", "bob"])?;
    /// assert_eq!(filter.len(), 2);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn insert_batch<T>(&mut self, items: &[T]) -> Result<(), Full>
    where
        H: HashItem<T>,
    {
        let hashes = Hashed { items, hasher: &self.hasher, seed: self.raw.params().seed() };
        self.raw.insert_all(&hashes)
    }

    /// [`insert_batch`](Self::insert_batch) for hashes.
    ///
    /// # Errors
    /// As `insert_batch`.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), Full> {
        let given = self.given(hashes);
        self.raw.insert_all(&given)
    }

    /// [`remove`](Self::remove) for each item, in order; whether `items[i]` was found is written to `removed[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_batch<T>(&mut self, items: &[T], removed: &mut [bool])
    where
        H: HashItem<T>,
    {
        same_length(items.len(), removed.len());
        let hashes = Hashed { items, hasher: &self.hasher, seed: self.raw.params().seed() };
        self.raw.remove_all(&hashes, answers_in_order(removed));
    }

    /// [`remove_batch`](Self::remove_batch) for hashes.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_hashes(&mut self, hashes: &[u64], removed: &mut [bool]) {
        same_length(hashes.len(), removed.len());
        let given = self.given(hashes);
        self.raw.remove_all(&given, answers_in_order(removed));
    }
}

/// Writes the answers for one batch after the other.
pub(crate) fn answers_in_order(found: &mut [bool]) -> impl FnMut(u64) {
    let mut rest = found;
    move |answers| {
        let found = core::mem::take(&mut rest);
        let (batch, behind) = found.split_at_mut(found.len().min(BATCH));
        rest = behind;
        if let Some(whole) = batch.first_chunk_mut::<BATCH>() {
            // A fixed length lets the compiler vectorize the loop.
            spread(answers, whole);
        } else {
            spread(answers, batch);
        }
    }
}

/// Unpacks the bits of `answers` into booleans, the lowest bit first.
#[inline(always)]
fn spread(answers: u64, found: &mut [bool]) {
    for (found, answers) in found.chunks_mut(8).zip(answers.to_le_bytes()) {
        // Byte i of the word keeps bit i of the eight.
        let spread = u64::from(answers).wrapping_mul(0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
        for (found, bit) in found.iter_mut().zip(spread.to_le_bytes()) {
            *found = bit != 0;
        }
    }
}

#[track_caller]
pub(crate) fn same_length(items: usize, answers: usize) {
    assert!(items == answers, "{items} items but room for {answers} answers: the two slices must have the same length");
}
