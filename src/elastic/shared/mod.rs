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
mod parallel;
mod save;

use alloc::vec::Vec;
use std::sync::Mutex;

use super::{ElasticFilter, ElasticParams, OwnedShards};
use crate::{hash::Xxh3, kernel::Dispatch, storage::OutOfMemory};
use lock::LockedLane;

/// An [`ElasticFilter`] that many threads read and write: all methods take `&self`.
///
/// Built by [`ElasticBuilder::build_shared`](super::ElasticBuilder::build_shared), or made of an `ElasticFilter` by
/// [`ElasticFilter::into_shared`]. It grows, and keeps its false-positive rate, as an `ElasticFilter` does.
///
/// ```
/// use koel::ElasticFilter;
/// use std::thread;
///
/// let seen = ElasticFilter::builder().false_positive_rate(0.001).build_shared()?;
/// thread::scope(|scope| {
///     for start in [0, 10_000, 20_000u64] {
///         let seen = &seen;
///         scope.spawn(move || (start..start + 10_000).try_for_each(|n| seen.insert(&n)));
///     }
/// });
/// assert!(seen.len() == 30_000 && seen.contains(&12_345u64));
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
/// or a fraction of a millisecond if a shard is split. Methods never wait for anything else, and never call other code while they
/// hold a lock, so that they cannot deadlock.
pub struct SharedFilter<H = Xxh3> {
    lanes: Vec<LockedLane>,
    params: ElasticParams,
    /// The most bytes that the tables may take.
    max_bytes: usize,
    /// Held by a thread that makes a lane larger, if there is a limit.
    growth: Mutex<()>,
    dispatch: Dispatch,
    hasher: H,
}

impl<H> ElasticFilter<H> {
    /// The same filter for many threads, without copying. Its number of lanes is that of this filter:
    /// [`ElasticBuilder::lanes`](super::ElasticBuilder::lanes).
    ///
    /// # Errors
    /// If memory for the locks cannot be allocated.
    pub fn into_shared(self) -> Result<SharedFilter<H>, OutOfMemory> {
        let dispatch = self.dispatch();
        let Self { storage: OwnedShards { lanes, max_bytes }, params, hasher } = self;
        let lanes = lock::locked(lanes)?;
        Ok(SharedFilter { lanes, params, max_bytes, growth: Mutex::new(()), dispatch, hasher })
    }
}

impl<H> SharedFilter<H> {
    /// The same filter for one owner, without copying. Threads that share it can then read without locks.
    ///
    /// # Errors
    /// If memory for the list of lanes cannot be allocated.
    pub fn into_elastic(self) -> Result<ElasticFilter<H>, OutOfMemory> {
        let Self { lanes, params, max_bytes, hasher, .. } = self;
        Ok(ElasticFilter { storage: OwnedShards { lanes: lock::unlocked(lanes)?, max_bytes }, params, hasher })
    }
}
