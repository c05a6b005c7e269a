//! A growing filter for many threads: its lanes are behind locks.
//!
//! ```text
//! SharedFilter ──hash──▶ LockedLane ──lock──▶ Lane, as in an ElasticFilter
//! ```

// Declared first so that rustdoc lists its methods first.
mod operations;

mod batch;
mod facts;
mod lock;
mod save;

use alloc::vec::Vec;
use core::{error::Error, fmt};
use std::sync::Mutex;

use super::{ElasticFilter, ElasticParams, OwnedShards};
use crate::{
    hash::Xxh3,
    kernel::Dispatch,
    storage::{OutOfMemory, reserved},
};
use lock::LockedLane;
pub(super) use lock::locked;

/// An [`ElasticFilter`] that many threads read and write: all methods take `&self`, but for [`merge`](Self::merge) and
/// [`union`](Self::union).
///
/// Built by [`ElasticBuilder::build_shared`](super::ElasticBuilder::build_shared), or made of an `ElasticFilter` by
/// [`ElasticFilter::into_shared`]. It grows, and keeps its false-positive rate, as an `ElasticFilter` does.
///
/// ```
/// use koel::{ElasticFilter, GrowError};
/// use std::thread;
///
/// let seen = ElasticFilter::builder().false_positive_rate(0.001).build_shared()?;
/// let items: Vec<u64> = (0..100_000).collect();
/// thread::scope(|scope| -> Result<(), GrowError> {
///     let threads: Vec<_> = items.chunks(25_000).map(|part| scope.spawn(|| seen.insert_batch(part))).collect();
///     threads.into_iter().try_for_each(|thread| thread.join().expect("no item panics"))
/// })?;
/// assert!(seen.len() == 100_000 && seen.contains(&12_345u64));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
///
/// # Guarantees
/// - Operations on an item are linearizable: each takes effect at one moment between its call and its return. What one thread has
///   inserted, all threads find as soon as `insert` has returned.
/// - [`insert_unique`](Self::insert_unique) is one operation: of several threads that insert the same new item, one is told that
///   it did.
/// - A panic in the code of an item or a hasher leaves the filter as it was: hashing is done before a lock is taken.
/// - What concerns the whole filter ([`len`](Self::len), [`false_positive_rate`](Self::false_positive_rate), …) is read lane after
///   lane. While other threads write, the result is one that each lane had at some moment of the call.
///
/// docs/CONCURRENCY.md has more, and says which filter to choose.
///
/// # Locks
/// The filter has 64 lanes by default, each with a lock of its own. Threads that read the same lane do not wait for each other.
/// A thread that writes to a lane stops the other threads only there, for the fraction of a microsecond that an insertion takes,
/// or a fraction of a millisecond if a shard is split. With [`max_bytes`](super::ElasticBuilder::max_bytes), lanes grow one after the
/// other. Methods never wait for anything else, and never call other code while they hold a lock, so that they cannot deadlock.
pub struct SharedFilter<H = Xxh3> {
    pub(super) lanes: Vec<LockedLane>,
    pub(super) params: ElasticParams,
    /// The most bytes that the filter may be charged.
    max_bytes: usize,
    /// Held by a thread that makes a lane larger, if there is a limit.
    growth: Mutex<()>,
    dispatch: Dispatch,
    pub(super) hasher: H,
}

impl<H> ElasticFilter<H> {
    /// The same filter for many threads, without copying. It keeps its number of lanes, each of which has a lock.
    ///
    /// **A filter built without [`ElasticBuilder::lanes`](super::ElasticBuilder::lanes) has one lane: all its writers wait for one
    /// lock.** To have several threads write at the same time, build it with lanes, a power of two and more than there are writers
    /// (64 are usual), or with [`ElasticBuilder::build_shared`](super::ElasticBuilder::build_shared), which makes 64 by itself.
    /// Lanes cannot be changed later. One lane is enough for one writer and many readers.
    ///
    /// # Errors
    /// If memory for the locks cannot be allocated. The filter is in the error.
    ///
    /// # Example
    /// ```
    /// use koel::ElasticFilter;
    /// let mut seen = ElasticFilter::builder().false_positive_rate(0.001).lanes(64).build()?;
    /// seen.insert_iter(0..1000u64)?; // by one thread, without locks
    /// let seen = seen.into_shared()?;
    /// std::thread::scope(|scope| {
    ///     for thread in 1..4u64 {
    ///         let seen = &seen;
    ///         scope.spawn(move || (0..1000u64).try_for_each(|n| seen.insert(&(1000 * thread + n))));
    ///     }
    /// });
    /// assert_eq!(seen.len(), 4000);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn into_shared(self) -> Result<SharedFilter<H>, Unconverted<Self>> {
        let room = match reserved(self.storage.lanes.len()) {
            Ok(room) => room,
            Err(error) => return Err(Unconverted::new(self, error)),
        };
        let dispatch = self.dispatch();
        let Self { storage: OwnedShards { lanes, max_bytes }, params, hasher } = self;
        Ok(SharedFilter { lanes: locked(lanes, room), params, max_bytes, growth: Mutex::new(()), dispatch, hasher })
    }
}

impl<H> SharedFilter<H> {
    /// The same filter for one owner, without copying. Threads that share it can then read without locks.
    ///
    /// # Errors
    /// If memory for the list of lanes cannot be allocated. The filter is in the error.
    pub fn into_elastic(self) -> Result<ElasticFilter<H>, Unconverted<Self>> {
        let room = match reserved(self.lanes.len()) {
            Ok(room) => room,
            Err(error) => return Err(Unconverted::new(self, error)),
        };
        let Self { lanes, params, max_bytes, hasher, .. } = self;
        Ok(ElasticFilter { storage: OwnedShards { lanes: lock::unlocked(lanes, room), max_bytes }, params, hasher })
    }
}

/// A filter could not be converted to another type, since there is no memory. It is in here, as it was.
///
/// # Example
/// ```
/// let filter = koel::ElasticFilter::builder().false_positive_rate(0.001).build()?;
/// let seen = match filter.into_shared() {
///     Ok(seen) => seen,
///     // Free memory that is not needed, and try again.
///     Err(error) => error.into_filter().into_shared()?,
/// };
/// assert!(seen.is_empty());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub struct Unconverted<F> {
    filter: F,
    error: OutOfMemory,
}

impl<F> Unconverted<F> {
    fn new(filter: F, error: OutOfMemory) -> Self {
        Self { filter, error }
    }

    /// The filter, as it was.
    pub fn into_filter(self) -> F {
        self.filter
    }
}

impl<F> From<Unconverted<F>> for OutOfMemory {
    fn from(unconverted: Unconverted<F>) -> Self {
        unconverted.error
    }
}

/// The error, without the filter.
impl<F> fmt::Debug for Unconverted<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unconverted").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<F> fmt::Display for Unconverted<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<F> Error for Unconverted<F> {}
