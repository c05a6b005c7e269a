//! Many items at a time.

#![allow(clippy::inline_always, reason = "what is inlined is compiled for the kernel's processor, what is called is not")]

use core::cell::Cell;

use super::CuckooFilter;
use crate::{
    error::BatchFull,
    hash::{Hasher, Item},
    kernel::{BATCH, Hashes, Kernel},
    params::Params,
    storage::Storage,
    table::Address,
    table::{AnyTable, evict, with_table},
};

/// The hashes of items.
pub(super) struct Hashed<'a, T, H> {
    pub(super) items: &'a [T],
    pub(super) hasher: &'a H,
    pub(super) seed: u64,
}

impl<T: Item, H: Hasher> Hashes for Hashed<'_, T, H> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.items.len()
    }

    #[inline(always)]
    fn fill(&self, start: usize, hashes: &mut [u64; BATCH]) {
        for (hash, item) in hashes.iter_mut().zip(&self.items[start..]) {
            *hash = item.with_bytes(|bytes| self.hasher.hash(self.seed, bytes));
        }
    }
}

impl<H: Hasher, S: Storage> CuckooFilter<H, S> {
    /// [`contains`](Self::contains) for each item: the answer for `items[i]` goes to `found[i]`.
    ///
    /// With the vector kernels two to three times as fast as asking one by one, for the memory is at work on many items at once
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
    pub fn contains_batch<T: Item>(&self, items: &[T], found: &mut [bool]) {
        self.contains_all(&self.hashed(items), found);
    }

    /// [`contains_batch`](Self::contains_batch) for hashes.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        self.contains_all(&hashes, found);
    }

    fn contains_all(&self, hashes: &impl Hashes, found: &mut [bool]) {
        same_length(hashes.len(), found.len());
        let mut rest = found;
        self.kernel.contains_all(&self.table, &self.address, hashes, |answers| {
            let found = core::mem::take(&mut rest);
            let (batch, behind) = found.split_at_mut(found.len().min(BATCH));
            rest = behind;
            if let Some(whole) = batch.first_chunk_mut::<BATCH>() {
                // Of a known length, they are written many at a time.
                spread(answers, whole);
            } else {
                spread(answers, batch);
            }
        });
    }

    /// How many of the items seem to be in the filter: what [`contains_batch`](Self::contains_batch) finds, counted.
    #[must_use]
    pub fn count_batch<T: Item>(&self, items: &[T]) -> usize {
        self.count_all(&self.hashed(items))
    }

    /// [`count_batch`](Self::count_batch) for hashes.
    #[must_use]
    pub fn count_hashes(&self, hashes: &[u64]) -> usize {
        self.count_all(&hashes)
    }

    fn count_all(&self, hashes: &impl Hashes) -> usize {
        let mut count = 0;
        self.kernel.contains_all(&self.table, &self.address, hashes, |answers| count += answers.count_ones() as usize);
        count
    }

    fn hashed<'a, T: Item>(&'a self, items: &'a [T]) -> Hashed<'a, T, H> {
        Hashed { items, hasher: &self.hasher, seed: self.params.seed() }
    }
}

impl<H: Hasher> CuckooFilter<H> {
    /// [`insert`](Self::insert) for each item, in their order.
    ///
    /// # Errors
    /// At the first item that has no room: it and those after it are not in the filter, those before it are.
    pub fn insert_batch<T: Item>(&mut self, items: &[T]) -> Result<(), BatchFull> {
        let before = self.len;
        let hashes = Hashed { items, hasher: &self.hasher, seed: self.params.seed() };
        insert_all(&mut self.table, &mut self.len, &self.params, &self.address, self.kernel, &hashes);
        self.inserted(before, items.len(), |filter, next| filter.hash(&items[next]))
    }

    /// [`insert_batch`](Self::insert_batch) for hashes.
    ///
    /// # Errors
    /// As `insert_batch`.
    pub fn insert_hashes(&mut self, hashes: &[u64]) -> Result<(), BatchFull> {
        let before = self.len;
        insert_all(&mut self.table, &mut self.len, &self.params, &self.address, self.kernel, &hashes);
        self.inserted(before, hashes.len(), |_, next| hashes[next])
    }

    /// What came of inserting `total` items, when there were so many before; `hash` gives that of the one that was refused.
    fn inserted(&self, before: usize, total: usize, hash: impl FnOnce(&Self, usize) -> u64) -> Result<(), BatchFull> {
        let inserted = self.len - before;
        if inserted == total { Ok(()) } else { Err(BatchFull { inserted, full: self.refusal(hash(self, inserted)) }) }
    }

    /// [`remove`](Self::remove) for each item, in their order: whether `items[i]` was there goes to `removed[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_batch<T: Item>(&mut self, items: &[T], removed: &mut [bool]) {
        let hashes = Hashed { items, hasher: &self.hasher, seed: self.params.seed() };
        remove_all(&mut self.table, &mut self.len, &self.address, self.kernel, &hashes, removed);
    }

    /// [`remove_batch`](Self::remove_batch) for hashes.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_hashes(&mut self, hashes: &[u64], removed: &mut [bool]) {
        remove_all(&mut self.table, &mut self.len, &self.address, self.kernel, &hashes, removed);
    }
}

/// Each bit of the answers as one of its own.
#[inline(always)]
fn spread(answers: u64, found: &mut [bool]) {
    for (found, answers) in found.chunks_mut(8).zip(answers.to_le_bytes()) {
        // Byte i keeps bit i.
        let spread = u64::from(answers).wrapping_mul(0x0101_0101_0101_0101) & 0x8040_2010_0804_0201;
        for (found, bit) in found.iter_mut().zip(spread.to_le_bytes()) {
            *found = bit != 0;
        }
    }
}

/// Inserts the items, until one has no room. Each is counted as soon as it is in: an item of the user's may panic.
pub(super) fn insert_all(
    table: &mut AnyTable,
    len: &mut usize,
    params: &Params,
    address: &Address,
    kernel: Kernel,
    hashes: &impl Hashes,
) {
    // From here on so many buckets are full that it pays to fetch where evicted items would go.
    let crowded = params.slots() / 4 * 3;
    let len = Cell::from_mut(len);
    let fetch = |table: &AnyTable, batch: &[u64]| {
        with_table!(table, table => {
            kernel.fetch(table, address, batch);
            if len.get() >= crowded {
                kernel.fetch_alternates(table, address, batch);
            }
        });
    };
    for_each(table, hashes, fetch, |table, hash| {
        let placed = kernel.insert(table, address, hash) || with_table!(table, table => evict(table, address, hash).is_some());
        len.set(len.get() + usize::from(placed));
        placed
    });
}

/// Removes the items, and says which were there.
#[track_caller]
fn remove_all(
    table: &mut AnyTable,
    len: &mut usize,
    address: &Address,
    kernel: Kernel,
    hashes: &impl Hashes,
    removed: &mut [bool],
) {
    same_length(hashes.len(), removed.len());
    let mut answers = removed.iter_mut();
    let fetch = |table: &AnyTable, batch: &[u64]| with_table!(table, table => kernel.fetch(table, address, batch));
    for_each(table, hashes, fetch, |table, hash| {
        let found = kernel.remove(table, address, hash);
        *len -= usize::from(found);
        answers.next().map(|answer| *answer = found).is_some()
    });
}

/// Calls `change` with one hash after the other until it says no, and `fetch` with each batch before its hashes' turn comes.
fn for_each(
    table: &mut AnyTable,
    hashes: &impl Hashes,
    fetch: impl Fn(&AnyTable, &[u64]),
    mut change: impl FnMut(&mut AnyTable, u64) -> bool,
) {
    hashes.each_batch(0..hashes.len(), |batch| {
        fetch(table, batch);
        batch.iter().all(|&hash| change(table, hash))
    });
}

#[track_caller]
fn same_length(items: usize, answers: usize) {
    assert!(items == answers, "{items} items but room for {answers} answers: the two slices must have the same length");
}

/// Inserts every item.
///
/// # Panics
/// If one has no room, since `extend` cannot report it and must not lose it. Where that can happen, use
/// [`insert`](CuckooFilter::insert) or [`insert_batch`](CuckooFilter::insert_batch).
impl<T: Item, H: Hasher> Extend<T> for CuckooFilter<H> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        for item in items {
            if let Err(full) = self.insert(&item) {
                panic!("{full}");
            }
        }
    }
}
