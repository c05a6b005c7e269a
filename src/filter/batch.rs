//! Operations on slices of items. Batches let the processor prefetch the buckets of many items at once.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use super::{CuckooFilter, Full, Hashed, Items};
use crate::{
    kernel::{BATCH, Hashes},
    params::Params,
    storage::Storage,
};

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
    pub fn contains_batch<I: Items<H> + ?Sized>(&self, items: &I, found: &mut [bool]) {
        let hashes = hashed(&self.hasher, self.raw.params(), items);
        same_length(hashes.len(), found.len());
        self.raw.contains_all(&hashes, answers_in_order(found));
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
    pub fn count_members<I: Items<H> + ?Sized>(&self, items: &I) -> usize {
        let mut count = 0;
        let hashes = hashed(&self.hasher, self.raw.params(), items);
        self.raw.contains_all(&hashes, |answers| count += answers.count_ones() as usize);
        count
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
    pub fn insert_batch<I: Items<H> + ?Sized>(&mut self, items: &I) -> Result<(), Full> {
        let hashes = hashed(&self.hasher, self.raw.params(), items);
        self.raw.insert_all(&hashes)
    }

    /// [`remove`](Self::remove) for each item, in order; whether `items[i]` was found is written to `removed[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_batch<I: Items<H> + ?Sized>(&mut self, items: &I, removed: &mut [bool]) {
        let hashes = hashed(&self.hasher, self.raw.params(), items);
        same_length(hashes.len(), removed.len());
        self.raw.remove_all(&hashes, answers_in_order(removed));
    }
}

pub(crate) fn hashed<'a, H, I: Items<H> + ?Sized>(hasher: &'a H, params: &Params, items: &'a I) -> Hashed<'a, I::Batch<'a>, H> {
    Hashed { items: items.batch(), hasher, seed: params.seed(), addressing: params.addressing() }
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
