//! What a filter does with hashes. The methods of the public types hash items and call these two traits.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{fmt, ops::Deref};

use super::{InsertError, RawFilter, facts::Load};
use crate::{
    hash::{HashItem, Hashed, Uniform, answers_in_order},
    kernel::{Hashes, answers},
    params::{mean_matches, rate_beside_copies},
};

/// Reading: lookups and properties.
pub(crate) trait Core {
    /// The hasher's seed.
    fn seed(&self) -> u64;

    fn contains(&self, hash: Uniform) -> bool;

    fn count(&self, hash: Uniform) -> u32;

    /// Looks up all hashes. Calls `answer` once for each [`BATCH`](crate::kernel::BATCH) of them, in order; bit i of its argument
    /// is the answer for the i-th hash of the batch.
    fn contains_all(&self, hashes: &impl Hashes, mut answer: impl FnMut(u64)) {
        hashes.each_batch(0..hashes.len(), |batch| {
            answer(answers(batch, |hash| self.contains(hash)));
            true
        });
    }

    /// Looks up all hashes, in any order.
    fn contains_each(&self, hashes: &impl Hashes, found: &mut [bool]) {
        self.contains_all(hashes, answers_in_order(found));
    }

    /// The number of hashes that are found.
    fn count_members(&self, hashes: &impl Hashes) -> usize {
        let mut count = 0;
        self.contains_all(hashes, |answers| count += answers.count_ones() as usize);
        count
    }

    /// The number of items, copies included.
    fn len(&self) -> usize;

    /// The number of different items that it is planned for.
    fn capacity(&self) -> usize;

    fn slots(&self) -> u64;

    /// The number of items in the tables: those that are not copies beside them.
    fn table_len(&self) -> usize {
        self.len()
    }

    fn load_factor(&self) -> f64 {
        // A growing filter may have no slots yet.
        self.table_len() as f64 / self.slots().max(1) as f64
    }

    fn false_positive_rate(&self) -> f64;

    /// Adds to `Debug` what the parameters do not say.
    fn describe(&self, _debug: &mut fmt::DebugStruct<'_, '_>) {}

    /// Writes the beginning of a summary, up to the bytes.
    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result;

    /// Bytes of memory behind the struct.
    fn bytes_behind(&self) -> usize;

    /// The bytes that `bits_per_item` divides among the items, of a filter that takes `all` bytes.
    fn bytes_of_items(&self, all: usize) -> usize {
        all
    }
}

/// Changing. A reference to partitions behind locks implements it, too, as `&File` implements `Write`.
pub(crate) trait CoreMut {
    /// Inserts a hash. If it fails, nothing has changed.
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError>;

    /// Inserts a hash that is not there. Returns true if it was inserted.
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError>;

    /// Removes one copy. Returns false if there is none.
    fn remove(&mut self, hash: Uniform) -> bool;

    /// Removes all items.
    fn clear(&mut self);

    /// Prefetches the buckets of hashes that are about to be inserted or removed.
    fn prefetch(&self, _hashes: &[u64]) {}

    /// Inserts at most 64 hashes, until one is refused.
    fn insert_some(&mut self, hashes: &[u64]) -> Result<(), InsertError> {
        self.prefetch(hashes);
        for (position, &hash) in hashes.iter().enumerate() {
            self.insert(Uniform(hash)).map_err(|error| error.at(position))?;
        }
        Ok(())
    }

    /// Inserts those of at most 64 hashes that are not there, until one is refused. Calls `inserted` with each answer.
    fn insert_some_unique(&mut self, hashes: &[u64], mut inserted: impl FnMut(bool)) -> Result<(), InsertError> {
        self.prefetch(hashes);
        for (position, &hash) in hashes.iter().enumerate() {
            inserted(self.insert_unique(Uniform(hash)).map_err(|error| error.at(position))?);
        }
        Ok(())
    }

    /// Removes at most 64 hashes. Bit i of the result says whether the i-th was found.
    fn remove_some(&mut self, hashes: &[u64]) -> u64 {
        self.prefetch(hashes);
        answers(hashes, |hash| self.remove(hash))
    }

    /// Inserts all hashes: those before one that is refused, or all others.
    fn insert_all(&mut self, hashes: &impl Hashes) -> Result<(), InsertError> {
        let (mut inserted, mut result) = (0, Ok(()));
        hashes.each_batch(0..hashes.len(), |batch| {
            result = self.insert_some(batch).map_err(|refusal| refusal.after(inserted));
            inserted += batch.len();
            result.is_ok()
        });
        result
    }

    /// Inserts the hashes that are not there, as far as [`insert_all`](Self::insert_all) does, and writes which were inserted.
    fn insert_all_unique(&mut self, hashes: &impl Hashes, inserted: &mut [bool]) -> Result<(), InsertError> {
        let (mut position, mut result) = (0, Ok(()));
        inserted.fill(false);
        hashes.each_batch(0..hashes.len(), |batch| {
            let mut answers = inserted[position..].iter_mut();
            let note = |is_inserted| answers.next().into_iter().for_each(|answer| *answer = is_inserted);
            result = self.insert_some_unique(batch, note).map_err(|refusal| refusal.after(position));
            position += batch.len();
            result.is_ok()
        });
        result
    }

    /// Removes all hashes, and writes which were found.
    fn remove_all(&mut self, hashes: &impl Hashes, removed: &mut [bool]) {
        let mut answer = answers_in_order(removed);
        hashes.each_batch(0..hashes.len(), |batch| {
            answer(self.remove_some(batch));
            true
        });
    }

    /// Inserts the items of an iterator until one is refused. Returns their number.
    fn insert_each<I: Iterator, H: HashItem<I::Item>>(&mut self, items: Hashed<'_, I, H>) -> Result<usize, InsertError> {
        let mut inserted = 0;
        items.each_batch(|batch| {
            self.insert_some(batch).map_err(|refusal| refusal.after(inserted))?;
            inserted += batch.len();
            Ok::<(), InsertError>(())
        })?;
        Ok(inserted)
    }

    /// Inserts those items of an iterator that are not there, until one is refused. Returns the number of those inserted.
    fn insert_each_unique<I: Iterator, H: HashItem<I::Item>>(&mut self, items: Hashed<'_, I, H>) -> Result<usize, InsertError> {
        let (mut stored, mut position) = (0, 0);
        items.each_batch(|batch| {
            let note = |is_inserted| stored += usize::from(is_inserted);
            self.insert_some_unique(batch, note).map_err(|refusal| refusal.after(position))?;
            position += batch.len();
            Ok::<(), InsertError>(())
        })?;
        Ok(stored)
    }
}

impl<S: Deref<Target = [u8]>> Core for RawFilter<S> {
    #[inline(always)]
    fn seed(&self) -> u64 {
        self.params().seed()
    }

    #[inline(always)]
    fn contains(&self, hash: Uniform) -> bool {
        self.contains(hash)
    }

    #[inline(always)]
    fn count(&self, hash: Uniform) -> u32 {
        self.count(hash)
    }

    #[inline(always)]
    fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(u64)) {
        self.contains_all(hashes, answer);
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn capacity(&self) -> usize {
        self.params().capacity()
    }

    fn slots(&self) -> u64 {
        self.params().buckets() * u64::from(self.params().bucket_size())
    }

    fn table_len(&self) -> usize {
        self.in_table()
    }

    fn false_positive_rate(&self) -> f64 {
        let (params, load) = (self.params(), self.load_factor());
        let mean = mean_matches(params.fingerprint_bits(), params.bucket_size(), load);
        rate_beside_copies(mean, self.len() as f64 / self.in_table().max(1) as f64)
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        let (params, items, slots) = (self.params(), self.in_table(), self.params().slots());
        write!(f, "{params}: {items} of {slots} slots taken ({}), ", Load { items, slots })?;
        match self.further_totals().0 {
            0 => {}
            further => write!(f, "{further} further copies, ")?,
        }
        write!(f, "{bytes} bytes")
    }

    fn bytes_behind(&self) -> usize {
        self.storage().len() + self.memory_of_copies()
    }

    /// The table alone, as planned, and what copies take.
    fn bytes_of_items(&self, _: usize) -> usize {
        self.params().table_bytes() + self.bytes_of_copies()
    }
}

impl CoreMut for RawFilter {
    #[inline(always)]
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError> {
        self.insert(hash)
    }

    #[inline]
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError> {
        if self.contains(hash) { Ok(false) } else { CoreMut::insert(self, hash).map(|()| true) }
    }

    #[inline(always)]
    fn remove(&mut self, hash: Uniform) -> bool {
        self.remove(hash)
    }

    fn clear(&mut self) {
        self.clear();
    }

    fn prefetch(&self, hashes: &[u64]) {
        self.prefetch(hashes);
    }

    fn insert_some(&mut self, hashes: &[u64]) -> Result<(), InsertError> {
        self.insert_batch(hashes)
    }

    fn remove_some(&mut self, hashes: &[u64]) -> u64 {
        self.remove_batch(hashes)
    }
}

impl<S: Deref<Target = [u8]>, T: Deref<Target = [u8]>> PartialEq<RawFilter<T>> for RawFilter<S> {
    fn eq(&self, other: &RawFilter<T>) -> bool {
        self.params() == other.params()
            && self.len() == other.len()
            && self.table() == other.table()
            && self.further_copies().eq(other.further_copies())
    }
}

impl<S: Deref<Target = [u8]>> Eq for RawFilter<S> {}
