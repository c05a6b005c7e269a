//! The operations of a filter on hashes. The methods of the public types hash items and call these two traits.

use core::fmt;

use super::InsertError;
use crate::{
    hash::{HashItem, Hashed, Uniform, results_writer},
    kernel::{Hashes, answers},
};

/// Lookups and properties.
pub(crate) trait Core {
    /// The hasher's seed.
    fn seed(&self) -> u64;

    fn contains(&self, hash: Uniform) -> bool;

    fn count(&self, hash: Uniform) -> u32;

    /// Looks up all hashes. Calls `report` once for each [`BATCH`](crate::kernel::BATCH) of them, in order; bit i of its argument
    /// is the result for the i-th hash of the batch.
    fn contains_all(&self, hashes: &impl Hashes, mut report: impl FnMut(u64)) {
        hashes.each_batch(0..hashes.len(), |batch| report(answers(batch, |hash| self.contains(hash))));
    }

    /// Looks up all hashes, in any order, and writes the results in the order of the hashes.
    fn contains_into(&self, hashes: &impl Hashes, found: &mut [bool]) {
        self.contains_all(hashes, results_writer(found));
    }

    /// Returns the number of hashes that are found.
    fn count_members(&self, hashes: &impl Hashes) -> usize {
        let mut count = 0;
        self.contains_all(hashes, |results| count += results.count_ones() as usize);
        count
    }

    /// Returns the number of items, including copies.
    fn len(&self) -> usize;

    /// Returns the number of distinct items that the filter is planned for.
    fn capacity(&self) -> usize;

    fn slots(&self) -> u64;

    /// Returns the number of taken slots: items in the tables, without extra copies and others that have no slot.
    fn table_len(&self) -> usize;

    fn load_factor(&self) -> f64 {
        // A growing filter may have no slots yet.
        self.table_len() as f64 / self.slots().max(1) as f64
    }

    fn false_positive_rate(&self) -> f64;

    /// Writes the beginning of a summary, up to and including the bytes.
    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result;

    /// Returns the bytes of memory outside the struct.
    fn external_bytes(&self) -> usize;

    /// Returns the bytes that `bits_per_item` divides by the number of items, for a filter that takes `all` bytes.
    fn bytes_of_items(&self, all: usize) -> usize {
        all
    }
}

/// Changes. A reference to partitions behind locks also implements this trait, as `&File` implements `Write`.
pub(crate) trait CoreMut {
    /// Inserts a hash. An error changes nothing.
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError>;

    /// Inserts a hash unless it is found. Returns true if it was inserted.
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError>;

    /// Removes one copy. Returns true if a copy was found.
    fn remove(&mut self, hash: Uniform) -> bool;

    /// Removes all items.
    fn clear(&mut self);

    /// Prefetches the buckets of hashes that are about to be inserted or removed.
    fn prefetch(&self, _hashes: &[u64]) {}

    /// Inserts at most 64 hashes, and stops at the first refusal.
    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), InsertError> {
        self.prefetch(hashes);
        for (position, &hash) in hashes.iter().enumerate() {
            self.insert(Uniform(hash)).map_err(|error| error.after(position))?;
        }
        Ok(())
    }

    /// Inserts those of at most 64 hashes that are not found, and stops at the first refusal. Calls `inserted` with each result.
    fn insert_unique_batch(&mut self, hashes: &[u64], mut inserted: impl FnMut(bool)) -> Result<(), InsertError> {
        self.prefetch(hashes);
        for (position, &hash) in hashes.iter().enumerate() {
            inserted(self.insert_unique(Uniform(hash)).map_err(|error| error.after(position))?);
        }
        Ok(())
    }

    /// Removes one copy of each of at most 64 hashes. Bit i of the result is 1 if the i-th was found.
    fn remove_batch(&mut self, hashes: &[u64]) -> u64 {
        self.prefetch(hashes);
        answers(hashes, |hash| self.remove(hash))
    }

    /// Inserts all hashes. After a refusal, an implementation either stops or inserts the others.
    fn insert_all(&mut self, hashes: &impl Hashes) -> Result<(), InsertError> {
        hashes.try_each_batch(0..hashes.len(), |start, batch| self.insert_batch(batch).map_err(|refusal| refusal.after(start)))
    }

    /// Inserts the hashes that are not found, and writes which were inserted. Treats refusals as [`insert_all`](Self::insert_all)
    /// does.
    fn insert_all_unique(&mut self, hashes: &impl Hashes, inserted: &mut [bool]) -> Result<(), InsertError> {
        inserted.fill(false);
        hashes.try_each_batch(0..hashes.len(), |start, batch| {
            let mut results = inserted[start..].iter_mut();
            let record = |is_inserted| results.next().into_iter().for_each(|result| *result = is_inserted);
            self.insert_unique_batch(batch, record).map_err(|refusal| refusal.after(start))
        })
    }

    /// Removes one copy of each hash, and writes which were found.
    fn remove_all(&mut self, hashes: &impl Hashes, removed: &mut [bool]) {
        let mut report = results_writer(removed);
        hashes.each_batch(0..hashes.len(), |batch| report(self.remove_batch(batch)));
    }

    /// Inserts the items of an iterator, and stops at the first refusal. Returns the number of items.
    fn insert_iter<I: Iterator, H: HashItem<I::Item>>(&mut self, items: Hashed<'_, I, H>) -> Result<usize, InsertError> {
        items.each_batch(|start, batch| self.insert_batch(batch).map_err(|refusal| refusal.after(start)))
    }

    /// Inserts those items of an iterator that are not found, and stops at the first refusal. Returns the number inserted.
    fn insert_unique_iter<I: Iterator, H: HashItem<I::Item>>(&mut self, items: Hashed<'_, I, H>) -> Result<usize, InsertError> {
        let mut stored = 0;
        items.each_batch(|start, batch| {
            let record = |is_inserted| stored += usize::from(is_inserted);
            self.insert_unique_batch(batch, record).map_err(|refusal| refusal.after(start))
        })?;
        Ok(stored)
    }
}
