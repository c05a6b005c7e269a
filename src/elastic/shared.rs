//! A growing filter for many threads: its lanes are behind locks.
//!
//! ```text
//! SharedFilter ──hash──▶ LockedLane ──lock──▶ Lane, as in an ElasticFilter
//! ```

use alloc::vec::Vec;
use core::{
    fmt,
    ops::{Deref, DerefMut},
    ptr, slice,
    sync::atomic::{AtomicUsize, Ordering},
};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{
    Elastic, ElasticFilter, ElasticParams,
    facts::{FILTER_BYTES, grows, summarize},
    lane::{LANE_BYTES, Lane},
    look_up::contains_all,
    pool::Place,
    sharing::{FirstRefused, Portion, SHARING, Together, share_out},
};
use crate::{
    bits::index,
    filter::{Core, CoreMut, Hashed, InsertError, insert_by_own_methods, lookups, merges, planned, same_length},
    hash::{HashItem, Items, Uniform, Xxh3},
    kernel::{BATCH, Dispatch, Hashes, PREFETCH_FROM},
    storage::{OutOfMemory, reserved},
};

/// An [`ElasticFilter`] that many threads read and write: all methods take `&self`, except [`merge`](SharedFilter::merge),
/// [`union`](SharedFilter::union) and [`set_kernel`](SharedFilter::set_kernel).
///
/// Built by [`ElasticBuilder::build_shared`](super::ElasticBuilder::build_shared), or made from an `ElasticFilter` by
/// [`ElasticFilter::into_shared`]. It grows, and keeps its false-positive rate, as an `ElasticFilter` does.
///
/// ```
/// use koel::{ElasticFilter, InsertError};
/// use std::thread;
///
/// let seen = ElasticFilter::builder().false_positive_rate(0.001).build_shared()?;
/// let items: Vec<u64> = (0..100_000).collect();
/// thread::scope(|scope| -> Result<(), InsertError> {
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
/// - [`insert_unique`](SharedFilter::insert_unique) is atomic: of several threads that insert the same new item, exactly one gets
///   `true`.
/// - A panic in the code of an item or a hasher leaves the filter as it was: items are hashed before a lock is taken.
/// - Whole-filter statistics ([`len`](SharedFilter::len), [`false_positive_rate`](SharedFilter::false_positive_rate), …) are read
///   lane after lane. While other threads write, they are not a consistent snapshot: each lane is read at some moment of the
///   call.
///
/// docs/CONCURRENCY.md has more, and says which filter to choose.
///
/// # Locks
/// The filter has 64 lanes by default, each with a lock of its own. Threads that read the same lane do not wait for each other.
/// A thread that writes to a lane stops the other threads only there, for the fraction of a microsecond that an insertion takes,
/// or a fraction of a millisecond if a shard is split. With [`max_bytes`](super::ElasticBuilder::max_bytes), lanes grow one after the
/// other. Methods never wait for anything else, and never call other code while they hold a lock, so that they cannot deadlock.
pub struct SharedFilter<H = Xxh3> {
    pub(crate) core: Shared,
    pub(crate) hasher: H,
}

/// Lanes behind locks: the core of a [`SharedFilter`].
pub(crate) struct Shared {
    pub(super) lanes: Vec<LockedLane>,
    pub(super) params: ElasticParams,
    /// The most bytes that the filter may be charged.
    max_bytes: AtomicUsize,
    /// Held by a thread that makes a lane larger, if there is a limit.
    growth: Mutex<()>,
}

lookups! {
    impl [H] SharedFilter<H>, H;
    example "ElasticFilter::builder().false_positive_rate(0.001).build_shared()?", open "# // Not a view."
}
planned!(impl [H] SharedFilter<H>, "SharedFilter", ElasticParams);
grows!(impl [H] SharedFilter<H>);
merges!(SharedFilter);
insert_by_own_methods!([H] SharedFilter<H>, H, SharedFilter<H>);
insert_by_own_methods!([H] SharedFilter<H>, H, &SharedFilter<H>);

impl<H> SharedFilter<H> {
    /// Inserts an item, even if it is already present: see [Duplicates](crate::CuckooFilter#duplicates). Locks one lane.
    ///
    /// # Errors
    /// If the item is refused, for a reason that [`InsertErrorKind`](crate::InsertErrorKind) lists. The filter is then unchanged,
    /// bit for bit.
    #[inline]
    pub fn insert<T: ?Sized>(&self, item: &T) -> Result<(), InsertError>
    where
        H: HashItem<T>,
    {
        (&self.core).insert(self.hash_of(item))
    }

    /// Inserts an item unless [`contains`](Self::contains) returns true for it, as one operation: no other thread inserts or removes
    /// the item between the lookup and the insertion. Returns true if it was inserted.
    ///
    /// [`ElasticFilter::insert_unique`] says what a false positive means here.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    ///
    /// # Example
    /// Each item is processed once, by whichever thread comes first:
    /// ```
    /// use std::{sync::atomic::{AtomicUsize, Ordering}, thread};
    /// let seen = koel::ElasticFilter::builder().false_positive_rate(1e-6).build_shared()?;
    /// let processed = AtomicUsize::new(0);
    /// thread::scope(|scope| {
    ///     for _ in 0..3 {
    ///         scope.spawn(|| {
    ///             for item in 0..1000u64 {
    ///                 if seen.insert_unique(&item).expect("there is memory") {
    ///                     processed.fetch_add(1, Ordering::Relaxed);
    ///                 }
    ///             }
    ///         });
    ///     }
    /// });
    /// assert_eq!(processed.into_inner(), 1000);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[inline]
    pub fn insert_unique<T: ?Sized>(&self, item: &T) -> Result<bool, InsertError>
    where
        H: HashItem<T>,
    {
        (&self.core).insert_unique(self.hash_of(item))
    }

    /// Removes one copy of an item. Returns true if a copy was found. Read [Removal](crate::CuckooFilter#removal) first.
    #[inline]
    pub fn remove<T: ?Sized>(&self, item: &T) -> bool
    where
        H: HashItem<T>,
    {
        (&self.core).remove(self.hash_of(item))
    }

    /// [`insert`](Self::insert) for each item, in any order. While other threads use the filter, this takes less time than single
    /// insertions, since a lane is locked once for many items.
    ///
    /// Temporarily takes twelve bytes per item, up to 192 MiB; without that memory it is slower.
    ///
    /// # Errors
    /// The [`InsertError`] of the first item that is refused. Refused items are not in the filter; all others are.
    pub fn insert_batch<I: Items<H> + ?Sized>(&self, items: &I) -> Result<(), InsertError> {
        (&self.core).insert_all(&items.hashes(&self.hasher, self.core.seed()))
    }

    /// [`insert_unique`](Self::insert_unique) for each item, in any order; writes to `inserted[i]` whether `items[i]` was inserted.
    /// Of equal items in one call, the first one is. Each item is one operation, as with `insert_unique`: of several threads that
    /// insert the same new item, exactly one gets `true`.
    ///
    /// Memory as for [`insert_batch`](Self::insert_batch).
    ///
    /// # Errors
    /// The [`InsertError`] of the first item that is refused. `inserted` is false for refused items, which are not in the filter; all
    /// others are.
    ///
    /// # Panics
    /// If the slices differ in length.
    ///
    /// # Example
    /// ```
    /// let seen = koel::ElasticFilter::builder().false_positive_rate(1e-6).build_shared()?;
    /// seen.insert("/about")?;
    /// let links = ["/", "/about", "/news", "/"];
    /// let mut new = [false; 4];
    /// seen.insert_unique_batch(&links, &mut new)?;
    /// assert_eq!(new, [true, false, true, false]);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn insert_unique_batch<I: Items<H> + ?Sized>(&self, items: &I, inserted: &mut [bool]) -> Result<(), InsertError> {
        let hashes = items.hashes(&self.hasher, self.core.seed());
        same_length(hashes.len(), inserted.len());
        (&self.core).insert_all_unique(&hashes, inserted)
    }

    /// [`remove`](Self::remove) for each item, in any order; writes to `removed[i]` whether `items[i]` was found.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_batch<I: Items<H> + ?Sized>(&self, items: &I, removed: &mut [bool]) {
        let hashes = items.hashes(&self.hasher, self.core.seed());
        same_length(hashes.len(), removed.len());
        (&self.core).remove_all(&hashes, removed);
    }

    /// [`insert`](Self::insert) for each item of an iterator, in order. Returns the number of items.
    ///
    /// # Errors
    /// That of the first item that is refused. Items before its [`position`](InsertError::position) are in the filter; the refused
    /// item and those after it are not. Up to 63 items after it have already been taken from the iterator.
    pub fn insert_iter<I: IntoIterator>(&self, items: I) -> Result<usize, InsertError>
    where
        H: HashItem<I::Item>,
    {
        (&self.core).insert_each(Hashed::new(items, &self.hasher, self.core.seed()))
    }

    /// [`insert_unique`](Self::insert_unique) for each item of an iterator, in order. Returns the number of items stored.
    ///
    /// # Errors
    /// That of the first item that is refused. Its [`position`](InsertError::position) is the number of items before it, stored or
    /// skipped. Up to 63 items after it have already been taken from the iterator.
    pub fn insert_unique_iter<I: IntoIterator>(&self, items: I) -> Result<usize, InsertError>
    where
        H: HashItem<I::Item>,
    {
        (&self.core).insert_each_unique(Hashed::new(items, &self.hasher, self.core.seed()))
    }

    /// [`ElasticFilter::shrink`](crate::ElasticFilter::shrink), lane after lane.
    pub fn shrink(&self) {
        for lane in &self.core.lanes {
            let mut lane = lane.write();
            lane.shrink();
            lane.publish();
        }
    }

    /// Removes all items, lane after lane, and frees the memory that the filter has grown by. An item that another thread inserts
    /// meanwhile may be removed or stay.
    pub fn clear(&self) {
        (&self.core).clear();
    }

    /// Clones the filter, lane after lane: each lane is copied as it is at one moment.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory>
    where
        H: Clone,
    {
        let (mut lanes, room) = (reserved(self.core.lanes.len())?, reserved(self.core.lanes.len())?);
        for lane in &self.core.lanes {
            lanes.push(lane.read().try_clone()?);
        }
        Ok(Self { core: Shared::new(lanes, room, self.core.params, self.core.max_bytes()), hasher: self.hasher.clone() })
    }

    /// The bytes that the filter is charged against its limit: see [`ElasticFilter::charged_bytes`].
    #[must_use]
    pub fn charged_bytes(&self) -> usize {
        self.core.charged()
    }

    /// Sets the most bytes that the filter may take, as [`ElasticBuilder::max_bytes`](super::ElasticBuilder::max_bytes) does; for
    /// filters that were read. A filter that already takes more keeps its items and stops growing. Insertions that began before the
    /// call may still use the old limit.
    ///
    /// # Example
    /// ```
    /// use koel::{ElasticFilter, SharedFilter};
    /// let seen = ElasticFilter::builder().false_positive_rate(0.001).max_bytes(1 << 20).build_shared()?;
    /// let read = SharedFilter::from_bytes(&seen.to_bytes())?; // a limit is not a part of a snapshot
    /// read.set_max_bytes(1 << 20);
    /// assert!(read.insert_iter(0..10_000_000u64).is_err() && read.charged_bytes() <= 1 << 20);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_max_bytes(&self, bytes: usize) {
        self.core.max_bytes.store(bytes, Ordering::Relaxed);
        // Without a limit, removals do not publish what they free.
        self.core.lanes.iter().for_each(|lane| lane.write().publish());
    }
}

/// [`insert_unique_iter`](SharedFilter::insert_unique_iter).
///
/// # Panics
/// If an item is refused.
impl<T, H: HashItem<T>> Extend<T> for &SharedFilter<H> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        if let Err(error) = self.insert_unique_iter(items) {
            panic!("the filter cannot be extended: {error}");
        }
    }
}

/// As for a reference to it.
impl<T, H: HashItem<T>> Extend<T> for SharedFilter<H> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        (&*self).extend(items);
    }
}

/// Equality of parameters, hashers, shards and tables. Lanes are compared one after the other, each pair as it is at one moment.
impl<H: PartialEq> PartialEq for SharedFilter<H> {
    fn eq(&self, other: &Self) -> bool {
        self.hasher == other.hasher && self.core == other.core
    }
}

impl<H: Eq> Eq for SharedFilter<H> {}

impl PartialEq for Shared {
    fn eq(&self, other: &Self) -> bool {
        // The locks of two filters are taken in the order of their addresses, so that threads which compare the same two do not wait
        // for each other.
        let (first, second) = if ptr::from_ref(self) < ptr::from_ref(other) { (self, other) } else { (other, self) };
        let is_same = |(first, second): (&LockedLane, &LockedLane)| {
            let first = first.read();
            *first == *second.read()
        };
        ptr::eq(self, other) || self.params == other.params && first.lanes.iter().zip(&second.lanes).all(is_same)
    }
}

impl Eq for Shared {}

impl Core for Shared {
    #[inline]
    fn seed(&self) -> u64 {
        self.params.seed()
    }

    #[inline]
    fn contains(&self, hash: Uniform) -> bool {
        self.lane(hash).read().contains(hash)
    }

    fn count(&self, hash: Uniform) -> u32 {
        Lane::count(&self.lane(hash).read(), hash)
    }

    fn contains_each(&self, hashes: &impl Hashes, found: &mut [bool]) {
        self.each_lane(hashes, self.by_lane(hashes.len()), |lane, Portion { hashes, places, start }| {
            Self::ask(lane, hashes, answers_at(places, &mut found[start..]));
        });
    }

    fn count_members(&self, hashes: &impl Hashes) -> usize {
        let mut count = 0;
        self.each_lane(hashes, self.by_lane(hashes.len()), |lane, portion| {
            Self::ask(lane, portion.hashes, |answers| count += answers.count_ones() as usize);
        });
        count
    }

    fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.read().len()).sum()
    }

    fn false_positive_rate(&self) -> f64 {
        self.lanes.iter().map(|lane| lane.read().false_positive_rate()).sum::<f64>() / self.lanes.len() as f64
    }

    fn capacity(&self) -> usize {
        self.params.max_capacity()
    }

    fn slots(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.read().slots()).sum()
    }

    fn table_len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.read().table_len()).sum()
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        summarize(f, self.len(), self.shards(), bytes)
    }

    fn bytes_behind(&self) -> usize {
        let lanes = self.lanes.capacity() * size_of::<LockedLane>();
        lanes + self.lanes.iter().map(|lane| lane.read().size_in_bytes()).sum::<usize>()
    }
}

impl Shared {
    pub fn params(&self) -> &ElasticParams {
        &self.params
    }

    pub fn dispatch(&self) -> Dispatch {
        self.lanes[0].read().dispatch()
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        for lane in &mut self.lanes {
            lane.lane.get_mut().unwrap_or_else(PoisonError::into_inner).set_dispatch(dispatch);
        }
    }

    fn max_bytes(&self) -> usize {
        self.max_bytes.load(Ordering::Relaxed)
    }

    fn shards(&self) -> usize {
        self.lanes.iter().map(|lane| lane.read().shards()).sum()
    }

    /// The most layers of a lane.
    fn layers(&self) -> usize {
        self.lanes.iter().map(|lane| lane.read().layers().count()).max().unwrap_or(0)
    }

    /// Bytes of all tables, with their padding.
    fn table_bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.read().table_bytes()).sum()
    }
}

// On hashes. Those of batches are shared out by lane, so that each lane is locked once for many of them.

/// Hashes that are shared out at a time: so many that a lane gets some hundreds, and that they stay in a core's cache.
const TOGETHER: usize = 1 << 14;

/// Fewer hashes than this many for each lane are used one after the other.
const FEWEST_PER_LANE: usize = 4;

impl CoreMut for &Shared {
    #[inline]
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError> {
        self.insert_into(&mut self.lane(hash).write(), hash)
    }

    #[inline]
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError> {
        let mut lane = self.lane(hash).write();
        if lane.holds(hash) { Ok(false) } else { self.insert_into(&mut lane, hash).map(|()| true) }
    }

    fn clear(&mut self) {
        for lane in &self.lanes {
            let mut lane = lane.write();
            lane.clear();
            lane.publish();
        }
    }

    fn insert_all(&mut self, hashes: &impl Hashes) -> Result<(), InsertError> {
        let mut refused = FirstRefused::default();
        self.change_each_lane(hashes, |lane, portion| {
            portion.each().for_each(|(place, hash)| refused.note(place, self.insert_into(lane, hash)));
        });
        refused.result()
    }

    fn insert_all_unique(&mut self, hashes: &impl Hashes, inserted: &mut [bool]) -> Result<(), InsertError> {
        let mut refused = FirstRefused::default();
        self.change_each_lane(hashes, |lane, portion| {
            for (place, hash) in portion.each() {
                inserted[place] = false;
                if !lane.holds(hash) {
                    let result = self.insert_into(lane, hash);
                    inserted[place] = result.is_ok();
                    refused.note(place, result);
                }
            }
        });
        refused.result()
    }

    #[inline]
    fn remove(&mut self, hash: Uniform) -> bool {
        self.remove_from(&mut self.lane(hash).write(), hash)
    }

    fn remove_all(&mut self, hashes: &impl Hashes, removed: &mut [bool]) {
        self.change_each_lane(hashes, |lane, portion| {
            portion.each().for_each(|(place, hash)| removed[place] = self.remove_from(lane, hash));
        });
    }
}

impl Shared {
    /// Puts lanes behind locks, for which there is room.
    fn new(lanes: Vec<Lane>, room: Vec<LockedLane>, params: ElasticParams, max_bytes: usize) -> Self {
        Self { lanes: locked(lanes, room), params, max_bytes: AtomicUsize::new(max_bytes), growth: Mutex::new(()) }
    }

    /// Inserts a hash into its lane.
    #[inline]
    fn insert_into(&self, lane: &mut Writer<'_>, hash: Uniform) -> Result<(), InsertError> {
        match lane.insert(hash) {
            Ok(()) => Ok(()),
            Err(full) => self.insert_growing(lane, hash, full),
        }
    }

    /// If there is a limit, lanes grow one after the other, so that together they do not exceed it. A thread that waits holds the
    /// lock of one lane, and the one for which it waits needs no further lock.
    #[cold]
    fn insert_growing(&self, lane: &mut Writer<'_>, hash: Uniform, full: Place) -> Result<(), InsertError> {
        let is_limited = self.max_bytes() < usize::MAX;
        // What needs no memory needs no turn.
        let entries = lane.entries();
        if lane.insert_asking(hash, full, is_limited) {
            if lane.entries() != entries {
                lane.publish();
            }
            return Ok(());
        }
        let turn = is_limited.then(|| self.growth.lock().unwrap_or_else(PoisonError::into_inner));
        let result = lane.insert_growing(hash, full, self.allowed());
        lane.publish();
        drop(turn);
        result.map_err(|error| self.refuse(error))
    }

    /// By how many bytes the charge may rise.
    pub(super) fn allowed(&self) -> usize {
        match self.max_bytes() {
            usize::MAX => usize::MAX,
            max_bytes => max_bytes.saturating_sub(self.charged()),
        }
    }

    pub(super) fn refuse(&self, error: InsertError) -> InsertError {
        error.within(self.charged(), self.max_bytes())
    }

    /// Removes a hash from its lane.
    #[inline]
    fn remove_from(&self, lane: &mut Writer<'_>, hash: Uniform) -> bool {
        let is_removed = lane.remove(hash);
        // Two shards may have been joined.
        if self.max_bytes() < usize::MAX {
            lane.publish();
        }
        is_removed
    }

    #[inline]
    fn lane(&self, hash: Uniform) -> &LockedLane {
        &self.lanes[self.params.shares().lane(hash)]
    }

    /// What the filter is charged against its limit.
    pub(super) fn charged(&self) -> usize {
        self.lanes.iter().map(LockedLane::charged).fold(FILTER_BYTES, usize::saturating_add)
    }

    fn ask(lane: &LockedLane, hashes: &[u64], answer: impl FnMut(u64)) {
        let lane = lane.read();
        let prefetches = lane.table_bytes() >= PREFETCH_FROM / 8;
        contains_all(lane.dispatch(), &*lane, prefetches, &hashes, answer);
    }

    /// How to share out this many hashes by their lanes; none of few.
    fn by_lane(&self, hashes: usize) -> Option<Together> {
        (hashes >= FEWEST_PER_LANE * self.lanes.len()).then_some(Together { hashes: TOGETHER, bits: 0 })
    }

    /// Calls `act` with all hashes, many of the same lane at a time if they can be shared out.
    fn each_lane(&self, hashes: &impl Hashes, together: Option<Together>, mut act: impl FnMut(&LockedLane, Portion<'_>)) {
        let mut start = share_out(self.params.shares(), together, hashes, |portion| {
            act(self.lane(Uniform(portion.hashes[0])), portion);
        });
        hashes.each_batch(start..hashes.len(), |batch| {
            for hash in batch {
                act(self.lane(Uniform(*hash)), Portion { hashes: slice::from_ref(hash), places: &[0], start });
                start += 1;
            }
            true
        });
    }

    /// The same with lanes that may be changed: those of large filters shard by shard, so that work stays in a core's cache.
    fn change_each_lane(&self, hashes: &impl Hashes, mut act: impl FnMut(&mut Writer<'_>, Portion<'_>)) {
        // What the tables will be at least.
        let together = SHARING.together(self.table_bytes().max(hashes.len()), hashes.len());
        self.each_lane(hashes, together.or_else(|| self.by_lane(hashes.len())), |lane, portion| {
            let mut lane = lane.write();
            // Of a lane with many hashes, more of its tables are in a cache by the time they are used.
            if portion.hashes.len() > 1 && Lane::table_bytes(&lane) >= PREFETCH_FROM / 8 {
                portion.hashes.iter().take(2 * BATCH).for_each(|&hash| lane.prefetch(Uniform(hash)));
            }
            act(&mut lane, portion);
        });
    }
}

/// Writes the answers of one batch after the other to those elements of `found`.
fn answers_at(places: &[u32], found: &mut [bool]) -> impl FnMut(u64) {
    let mut batches = places.chunks(BATCH);
    move |answers| {
        for (bit, &place) in batches.next().unwrap_or_default().iter().enumerate() {
            found[index(place.into())] = answers >> bit & 1 == 1;
        }
    }
}

impl<H> ElasticFilter<H> {
    /// Converts the filter for many threads, without copying. It keeps its number of lanes, and each gets a lock.
    ///
    /// **A filter built without [`ElasticBuilder::lanes`](super::ElasticBuilder::lanes) has one lane: all its writers wait for one
    /// lock.** To have several threads write at the same time, build it with lanes, a power of two and more than there are writers
    /// (64 are usual), or with [`ElasticBuilder::build_shared`](super::ElasticBuilder::build_shared), which makes 64 by itself.
    /// Lanes cannot be changed later. One lane is enough for one writer and many readers.
    ///
    /// # Errors
    /// This filter, as it was, if memory for the locks cannot be allocated.
    ///
    /// # Example
    /// ```
    /// use koel::ElasticFilter;
    /// let mut seen = ElasticFilter::builder().false_positive_rate(0.001).lanes(64).build()?;
    /// seen.insert_iter(0..1000u64)?; // by one thread, without locks
    /// let seen = seen.into_shared().expect("there is memory for the locks");
    /// std::thread::scope(|scope| {
    ///     for thread in 1..4u64 {
    ///         let seen = &seen;
    ///         scope.spawn(move || (0..1000u64).try_for_each(|n| seen.insert(&(1000 * thread + n))));
    ///     }
    /// });
    /// assert_eq!(seen.len(), 4000);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[allow(clippy::result_large_err, reason = "the error is the filter itself, which is hardly larger than the result")]
    pub fn into_shared(self) -> Result<SharedFilter<H>, Self> {
        match reserved(self.core.lanes.len()) {
            Ok(room) => Ok(self.with_locks(room)),
            Err(_) => Err(self),
        }
    }

    /// The same filter, with locks in this vector, which has room for them.
    pub(super) fn with_locks(self, room: Vec<LockedLane>) -> SharedFilter<H> {
        let Self { core: Elastic { lanes, params, max_bytes }, hasher } = self;
        SharedFilter { core: Shared::new(lanes, room, params, max_bytes), hasher }
    }
}

impl<H> SharedFilter<H> {
    /// Converts the filter for one owner, without copying. Threads that share it can then read without locks.
    ///
    /// # Errors
    /// This filter, as it was, if memory for the list of lanes cannot be allocated.
    #[allow(clippy::result_large_err, reason = "the error is the filter itself, which is hardly larger than the result")]
    pub fn into_elastic(self) -> Result<ElasticFilter<H>, Self> {
        let Ok(room) = reserved(self.core.lanes.len()) else { return Err(self) };
        let Self { core: Shared { lanes, params, max_bytes, .. }, hasher } = self;
        let core = Elastic { lanes: unlocked(lanes, room), params, max_bytes: max_bytes.into_inner() };
        Ok(ElasticFilter { core, hasher })
    }
}

// A lane behind a lock.

/// Processors fetch cache lines in pairs. Locks that are used by different threads are not in the same pair.
#[repr(align(128))]
pub(super) struct LockedLane {
    lane: RwLock<Lane>,
    /// What it is charged, for threads that do not hold the lock.
    charged: AtomicUsize,
}

const _: () = assert!(size_of::<LockedLane>() <= LANE_BYTES);

impl LockedLane {
    /// For reading. A lock is never poisoned in a way that matters: nothing that may panic runs while it is held.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, Lane> {
        self.lane.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For writing.
    #[inline]
    pub fn write(&self) -> Writer<'_> {
        Writer { lane: self.lane.write().unwrap_or_else(PoisonError::into_inner), charged: &self.charged }
    }

    /// What it was charged at some moment.
    pub fn charged(&self) -> usize {
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
pub(super) fn locked(lanes: Vec<Lane>, mut locked: Vec<LockedLane>) -> Vec<LockedLane> {
    locked
        .extend(lanes.into_iter().map(|lane| LockedLane { charged: AtomicUsize::new(lane.charged()), lane: RwLock::new(lane) }));
    locked
}

/// The reverse.
pub(super) fn unlocked(locked: Vec<LockedLane>, mut lanes: Vec<Lane>) -> Vec<Lane> {
    lanes.extend(locked.into_iter().map(|lane| lane.lane.into_inner().unwrap_or_else(PoisonError::into_inner)));
    lanes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ElasticFilter, hash::split_mix};
    use alloc::{vec, vec::Vec};

    /// However hashes are shared out, each comes once, with its place and its lane.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn every_hash_comes_to_its_lane_once() {
        let builder = ElasticFilter::builder().false_positive_rate(0.01).lanes(8);
        for filter in [builder.clone().build_shared().unwrap(), builder.capacity(9000).max_capacity(9000).build_shared().unwrap()]
        {
            let mut hashes: Vec<u64> = (0..5000).map(split_mix).collect();
            hashes.extend(vec![hashes[3]; 700]);
            let some = hashes.len() / 5;
            for together in
                [Together { hashes: some, bits: 0 }, Together { hashes: 1 << 20, bits: 8 }, Together { hashes: 7, bits: 2 }]
            {
                let mut seen = vec![0; hashes.len()];
                filter.core.each_lane(&hashes.as_slice(), Some(together), |lane, portion| {
                    for (place, hash) in portion.each() {
                        assert_eq!(hash.0, hashes[place]);
                        assert!(core::ptr::eq(lane, &raw const filter.core.lanes[filter.core.params.shares().lane(hash)]));
                        seen[place] += 1;
                    }
                });
                assert!(seen.iter().all(|&times| times == 1));
            }
        }
    }
}
