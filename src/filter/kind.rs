//! What a kind of filter has to do itself, on hashes. All operations on items are written once, over these traits.

#![allow(clippy::inline_always, reason = "what only forwards")]
#![allow(private_interfaces, private_bounds, reason = "the traits are sealed: nobody else can implement or call them")]

use core::fmt;

use super::{Hashed, InsertError, RawFilter, answers_in_order, facts::Load};
use crate::{
    hash::HashItem,
    kernel::{Dispatch, Hashes, answers},
    params::{Addressing, Params},
    storage::Storage,
    table::Uniform,
};

/// A kind of filter: the `C` of [`Filter<C, H>`](crate::Filter).
///
/// This trait is sealed.
#[allow(clippy::len_without_is_empty, reason = "filters have the method")]
pub trait Core {
    /// The name of the type that users know.
    #[doc(hidden)]
    const NAME: &'static str;

    #[doc(hidden)]
    fn seed(&self) -> u64;

    #[doc(hidden)]
    fn addressing(&self) -> Addressing;

    #[doc(hidden)]
    fn contains(&self, hash: Uniform) -> bool;

    #[doc(hidden)]
    fn count(&self, hash: Uniform) -> u32;

    /// Looks up all hashes. Calls `answer` once for each [`BATCH`](crate::kernel::BATCH) of them, in order; bit i of its argument is
    /// the answer for the i-th hash of the batch.
    #[doc(hidden)]
    fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(u64));

    /// Looks up all hashes, in any order.
    #[doc(hidden)]
    fn contains_each(&self, hashes: &impl Hashes, found: &mut [bool]) {
        self.contains_all(hashes, answers_in_order(found));
    }

    /// The number of hashes that are found.
    #[doc(hidden)]
    fn count_members(&self, hashes: &impl Hashes) -> usize {
        let mut count = 0;
        self.contains_all(hashes, |answers| count += answers.count_ones() as usize);
        count
    }

    #[doc(hidden)]
    fn len(&self) -> usize;

    #[doc(hidden)]
    fn false_positive_rate(&self) -> f64;

    /// What identifies it beside its parameters.
    #[doc(hidden)]
    fn describe(&self, _debug: &mut fmt::DebugStruct<'_, '_>) {}

    /// The beginning of a summary, before bits per item and the false-positive rate.
    #[doc(hidden)]
    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result;

    /// Bytes of memory behind the struct.
    #[doc(hidden)]
    fn bytes_behind(&self) -> usize;

    /// The bytes of which an item has its share, of a filter that takes this many.
    #[doc(hidden)]
    fn bytes_of_items(&self, all: usize) -> usize {
        all
    }
}

/// A [`Core`] with parameters and a kernel.
pub trait Planned: Core {
    /// The parameters of the filter.
    type Params: fmt::Debug;

    #[doc(hidden)]
    fn params(&self) -> Self::Params;

    #[doc(hidden)]
    fn dispatch(&self) -> Dispatch;

    #[doc(hidden)]
    fn set_dispatch(&mut self, dispatch: Dispatch);
}

/// A core from which items can be removed. A reference to one that is shared is such a core, too, as a `&File` is a writer.
///
/// This trait is sealed.
pub trait CoreRemove {
    #[doc(hidden)]
    fn remove(&mut self, hash: Uniform) -> bool;

    /// Prefetches the buckets of hashes that are to be inserted or removed.
    #[doc(hidden)]
    fn prefetch(&self, _hashes: &[u64]) {}

    /// Removes at most 64 hashes. Bit i of the result says whether the i-th was found.
    #[doc(hidden)]
    fn remove_some(&mut self, hashes: &[u64]) -> u64 {
        self.prefetch(hashes);
        answers(hashes, |hash| self.remove(hash))
    }

    /// Removes all hashes, and writes which were found.
    #[doc(hidden)]
    fn remove_all(&mut self, hashes: &impl Hashes, removed: &mut [bool]) {
        let mut answer = answers_in_order(removed);
        hashes.each_batch(0..hashes.len(), |batch| {
            answer(self.remove_some(batch));
            true
        });
    }
}

/// A core that can be changed, as [`CoreRemove`] is.
///
/// This trait is sealed.
pub trait CoreMut: CoreRemove {
    /// If it fails, nothing has changed.
    #[doc(hidden)]
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError>;

    /// Returns true if the hash was inserted.
    #[doc(hidden)]
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError>;

    /// Removes all items.
    #[doc(hidden)]
    fn clear(&mut self);

    /// Inserts at most 64 hashes, until one is refused.
    #[doc(hidden)]
    fn insert_some(&mut self, hashes: &[u64]) -> Result<(), InsertError> {
        self.prefetch(hashes);
        for (position, &hash) in hashes.iter().enumerate() {
            self.insert(Uniform(hash)).map_err(|error| error.at(position))?;
        }
        Ok(())
    }

    /// Inserts all hashes: those before one that is refused, or all others.
    #[doc(hidden)]
    fn insert_all(&mut self, hashes: &impl Hashes) -> Result<(), InsertError> {
        let (mut inserted, mut result) = (0, Ok(()));
        hashes.each_batch(0..hashes.len(), |batch| {
            result = self.insert_some(batch).map_err(|refusal| refusal.after(inserted));
            inserted += batch.len();
            result.is_ok()
        });
        result
    }

    /// Inserts the items of an iterator until one is refused. Returns their number.
    #[doc(hidden)]
    fn insert_each<I: Iterator, H: HashItem<I::Item>>(&mut self, items: Hashed<'_, I, H>) -> Result<usize, InsertError> {
        let mut inserted = 0;
        items.each_batch(|batch| {
            self.insert_some(batch).map_err(|refusal| refusal.after(inserted))?;
            inserted += batch.len();
            Ok(())
        })?;
        Ok(inserted)
    }

    /// The same with [`insert_unique`](Self::insert_unique). Returns the number of those that were inserted.
    #[doc(hidden)]
    fn insert_each_unique<I: Iterator, H: HashItem<I::Item>>(&mut self, items: Hashed<'_, I, H>) -> Result<usize, InsertError> {
        let (mut stored, mut position) = (0, 0);
        items.each_batch(|batch| {
            self.prefetch(batch);
            for &hash in batch {
                stored += usize::from(self.insert_unique(Uniform(hash)).map_err(|refusal| refusal.at(position))?);
                position += 1;
            }
            Ok(())
        })?;
        Ok(stored)
    }
}

// A table of fixed size.

impl<S: Storage> Core for RawFilter<S> {
    const NAME: &'static str = "CuckooFilter";

    #[inline(always)]
    fn seed(&self) -> u64 {
        self.params().seed()
    }

    #[inline(always)]
    fn addressing(&self) -> Addressing {
        self.params().addressing()
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

    fn false_positive_rate(&self) -> f64 {
        self.params().false_positive_rate_at(self.len() as f64 / self.params().slots() as f64)
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        let (params, items, slots) = (self.params(), self.len(), self.params().slots());
        write!(f, "{params}: {items} of {slots} slots taken ({}), {bytes} bytes", Load { items, slots })
    }

    fn bytes_behind(&self) -> usize {
        self.storage().bytes().len()
    }

    /// The table alone, as planned.
    fn bytes_of_items(&self, _: usize) -> usize {
        self.params().table_bytes()
    }
}

impl<S: Storage> Planned for RawFilter<S> {
    type Params = Params;

    fn params(&self) -> Params {
        *self.params()
    }

    fn dispatch(&self) -> Dispatch {
        self.dispatch()
    }

    fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.set_dispatch(dispatch);
    }
}

impl CoreMut for RawFilter {
    #[inline(always)]
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError> {
        if self.insert(hash) { Ok(()) } else { Err(self.refusal(hash, 0)) }
    }

    #[inline]
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError> {
        if self.contains(hash) { Ok(false) } else { CoreMut::insert(self, hash).map(|()| true) }
    }

    fn insert_some(&mut self, hashes: &[u64]) -> Result<(), InsertError> {
        self.insert_batch(hashes)
    }

    fn clear(&mut self) {
        self.clear();
    }
}

impl CoreRemove for RawFilter {
    #[inline(always)]
    fn remove(&mut self, hash: Uniform) -> bool {
        self.remove(hash)
    }

    fn prefetch(&self, hashes: &[u64]) {
        self.prefetch(hashes);
    }

    fn remove_some(&mut self, hashes: &[u64]) -> u64 {
        self.remove_batch(hashes)
    }
}

impl<S: Storage, T: Storage> PartialEq<RawFilter<T>> for RawFilter<S> {
    fn eq(&self, other: &RawFilter<T>) -> bool {
        self.params() == other.params() && self.len() == other.len() && self.table() == other.table()
    }
}

impl<S: Storage> Eq for RawFilter<S> {}
