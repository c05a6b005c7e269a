//! What a kind of filter has to do itself, on hashes. All operations on items are written once, over these traits.

#![allow(clippy::inline_always, reason = "what only forwards")]
#![allow(private_interfaces, private_bounds, reason = "the traits are sealed: nobody else can implement or call them")]

use core::fmt;

use super::{InsertError, RawFilter, answers_in_order};
use crate::{
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

    /// Bytes of memory behind the struct.
    #[doc(hidden)]
    fn bytes_behind(&self) -> usize;
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

/// A [`Core`] from which items can be removed.
///
/// This trait is sealed.
pub trait CoreRemove: Core {
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
}

/// A [`Core`] that can be changed.
///
/// This trait is sealed.
pub trait CoreMut: CoreRemove {
    /// If it fails, nothing has changed.
    #[doc(hidden)]
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError>;

    /// Returns true if the hash was inserted.
    #[doc(hidden)]
    #[inline]
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError> {
        if self.contains(hash) { Ok(false) } else { self.insert(hash).map(|()| true) }
    }

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

    fn bytes_behind(&self) -> usize {
        self.storage().bytes().len()
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
