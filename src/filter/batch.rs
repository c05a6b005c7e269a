//! Many items at a time.

use super::CuckooFilter;
use crate::{
    error::BatchFull,
    hash::{Hasher, Item},
};

impl<H: Hasher> CuckooFilter<H> {
    /// [`contains`](Self::contains) for each item: the answer for `items[i]` goes to `found[i]`.
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
        same_length(items.len(), found.len());
        for (item, found) in items.iter().zip(found) {
            *found = self.contains(item);
        }
    }

    /// How many of the items seem to be in the filter: what [`contains_batch`](Self::contains_batch) finds, counted.
    #[must_use]
    pub fn count_batch<T: Item>(&self, items: &[T]) -> usize {
        items.iter().filter(|item| self.contains(*item)).count()
    }

    /// [`insert`](Self::insert) for each item, in their order.
    ///
    /// # Errors
    /// At the first item that has no room: it and those after it are not in the filter, those before it are.
    pub fn insert_batch<T: Item>(&mut self, items: &[T]) -> Result<(), BatchFull> {
        for (inserted, item) in items.iter().enumerate() {
            self.insert(item).map_err(|full| BatchFull { inserted, full })?;
        }
        Ok(())
    }

    /// [`remove`](Self::remove) for each item, in their order: whether `items[i]` was there goes to `removed[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_batch<T: Item>(&mut self, items: &[T], removed: &mut [bool]) {
        same_length(items.len(), removed.len());
        for (item, removed) in items.iter().zip(removed) {
            *removed = self.remove(item);
        }
    }
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
