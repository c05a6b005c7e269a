//! A growing filter for many threads: its lanes are behind locks.
//!
//! ```text
//! SharedFilter ──hash──▶ LockedLane ──lock──▶ Lane, as in an ElasticFilter
//! ```

// Declared first so that rustdoc lists its methods first.
mod operations;

mod batch;

use alloc::vec::Vec;
use core::{
    error::Error,
    fmt,
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicUsize, Ordering},
};
use std::{
    io::{self, Write},
    path::Path,
    sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

use super::{
    ElasticFilter, ElasticParams, OwnedShards,
    facts::Summary,
    lane::{LANE_BYTES, Lane},
    storage::FILTER_BYTES,
};
use crate::{
    filter::by_own_methods,
    hash::{Hasher, Xxh3},
    kernel::{Dispatch, Kernel},
    snapshot::{replace, write},
    storage::{OutOfMemory, reserved},
};

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
        Ok(ElasticFilter { storage: OwnedShards { lanes: unlocked(lanes, room), max_bytes }, params, hasher })
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

// Properties: size, false-positive rate, parameters.

impl<H> SharedFilter<H> {
    /// The number of items in the filter, counting duplicates. Exact if no other thread writes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.read().len()).sum()
    }

    /// True if the filter holds no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.read().len() == 0)
    }

    /// The false-positive rate ε at the moment, as [`ElasticFilter::false_positive_rate`](crate::ElasticFilter::false_positive_rate)
    /// states it.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.lanes.iter().map(|lane| lane.read().false_positive_rate()).sum::<f64>() / self.lanes.len() as f64
    }

    /// The memory used by the filter, in bytes: tables with their padding, directories, locks, and the struct itself.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        let lanes = self.lanes.capacity() * size_of::<LockedLane>();
        size_of::<Self>() + lanes + self.lanes.iter().map(|lane| lane.read().size_in_bytes()).sum::<usize>()
    }

    /// Bytes of all tables, with their padding.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.read().table_bytes()).sum()
    }

    /// What the filter is charged against its limit.
    pub(super) fn charged(&self) -> usize {
        self.lanes.iter().map(LockedLane::charged).fold(FILTER_BYTES, usize::saturating_add)
    }

    /// Bits of memory per item; infinite for an empty filter.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        8.0 * self.size_in_bytes() as f64 / self.len() as f64
    }

    /// The number of lanes, each of which has a lock.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The number of shards.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.lanes.iter().map(|lane| lane.read().shards()).sum()
    }

    /// The filter's parameters.
    #[must_use]
    pub fn params(&self) -> ElasticParams {
        self.params
    }

    /// The kernel that the filter uses.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.dispatch.kernel()
    }

    /// The hasher.
    #[must_use]
    pub fn hasher(&self) -> &H {
        &self.hasher
    }
}

/// The parameters and the number of items, without the tables.
impl<H> fmt::Debug for SharedFilter<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedFilter").field("params", &self.params).field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A one-line summary: shards, items, size and false-positive rate.
impl<H> fmt::Display for SharedFilter<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (items, shards, bytes) = (self.len(), self.shards(), self.size_in_bytes());
        Summary { items, shards, bytes, false_positive_rate: self.false_positive_rate() }.fmt(f)
    }
}

by_own_methods!(SharedFilter<H>, H, H);

// Snapshots.

impl<H: Hasher> SharedFilter<H> {
    /// Writes a snapshot, which [`ElasticFilter::read_from`](crate::ElasticFilter::read_from) reads, while other threads use the filter.
    ///
    /// Each lane is written as it is at one moment; lanes are written one after the other. So an item that was inserted before the
    /// call, and is not removed, is in the snapshot; one that is inserted during the call may be.
    ///
    /// A lane is copied under its lock, and the copy is written, so that no thread waits for the writer, and the writer may use the
    /// filter itself. Takes the memory of one lane meanwhile.
    ///
    /// # Errors
    /// The writer's error; [`OutOfMemory`](io::ErrorKind::OutOfMemory) if a lane cannot be copied. What the writer has received by
    /// then is not a valid snapshot.
    ///
    /// # Example
    /// ```
    /// let seen = koel::ElasticFilter::builder().false_positive_rate(0.001).build_shared()?;
    /// seen.insert("alice")?;
    /// let mut bytes = Vec::new();
    /// seen.write_to(&mut bytes)?;
    /// let read = koel::ElasticFilter::from_bytes(&bytes)?.into_shared()?;
    /// assert!(read.contains("alice"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn write_to<W: Write>(&self, mut writer: W) -> io::Result<()> {
        let copy = |lane: &LockedLane| lane.read().try_clone();
        // An error without text: there is no memory for one.
        let lanes = self.lanes.iter().map(|lane| copy(lane).map(Some).map_err(|_| io::ErrorKind::OutOfMemory.into()));
        write(&self.params, self.hasher.id(), lanes, |piece| writer.write_all(piece))
    }

    /// Writes a snapshot to a file, which it creates or replaces as [`ElasticFilter::save`](crate::ElasticFilter::save) does, while other threads use the
    /// filter as in [`write_to`](Self::write_to).
    ///
    /// # Errors
    /// As `ElasticFilter::save`.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        replace(path.as_ref(), |file| self.write_to(file))
    }
}

// A lane behind a lock.

/// Processors fetch cache lines in pairs. Locks that are used by different threads are not in the same pair.
#[repr(align(128))]
pub(in crate::elastic) struct LockedLane {
    lane: RwLock<Lane>,
    /// What it is charged, for threads that do not hold the lock.
    charged: AtomicUsize,
}

const _: () = assert!(size_of::<LockedLane>() <= LANE_BYTES);

impl LockedLane {
    /// For reading. A lock is never poisoned in a way that matters: nothing that may panic runs while it is held.
    #[inline]
    pub(in crate::elastic) fn read(&self) -> RwLockReadGuard<'_, Lane> {
        self.lane.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For writing.
    #[inline]
    pub(super) fn write(&self) -> Writer<'_> {
        Writer { lane: self.lane.write().unwrap_or_else(PoisonError::into_inner), charged: &self.charged }
    }

    /// What it was charged at some moment.
    pub(super) fn charged(&self) -> usize {
        self.charged.load(Ordering::Relaxed)
    }
}

/// A lane that the thread may change.
pub(super) struct Writer<'a> {
    lane: RwLockWriteGuard<'a, Lane>,
    charged: &'a AtomicUsize,
}

impl Writer<'_> {
    /// Makes known what the lane is charged. To be called after everything that may have changed it.
    pub(super) fn publish(&self) {
        self.charged.store(self.lane.charged(), Ordering::Relaxed);
    }
}

impl Deref for Writer<'_> {
    type Target = Lane;

    #[inline]
    fn deref(&self) -> &Lane {
        &self.lane
    }
}

impl DerefMut for Writer<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Lane {
        &mut self.lane
    }
}

/// Puts lanes behind locks, into a vector that has room for them.
pub(in crate::elastic) fn locked(lanes: Vec<Lane>, mut locked: Vec<LockedLane>) -> Vec<LockedLane> {
    locked
        .extend(lanes.into_iter().map(|lane| LockedLane { charged: AtomicUsize::new(lane.charged()), lane: RwLock::new(lane) }));
    locked
}

/// The reverse.
pub(super) fn unlocked(locked: Vec<LockedLane>, mut lanes: Vec<Lane>) -> Vec<Lane> {
    lanes.extend(locked.into_iter().map(|lane| lane.lane.into_inner().unwrap_or_else(PoisonError::into_inner)));
    lanes
}
