//! A growing filter for many threads: its partitions are behind locks.
//!
//! ```text
//! SharedFilter ──hash──▶ LockedPartition ──lock──▶ Partition, as in an ElasticFilter
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
    grouping::{FirstRefused, GROUPING, Group, GroupSize, group},
    look_up::contains_all,
    partition::{PARTITION_BYTES, Partition},
    pool::Place,
};
use crate::{
    bits::index,
    filter::{Core, CoreMut, InsertError, insert_by_own_methods, lookups, merges, planned},
    hash::{HashItem, Hashed, Items, Uniform, Xxh3, same_length},
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
///   partition after partition. While other threads write, they are not a consistent snapshot: each partition is read at some
///   moment of the call.
///
/// docs/CONCURRENCY.md has more, and says which filter to choose.
///
/// # Locks
/// The filter has 64 partitions by default, each with a lock of its own. Threads that read the same partition do not wait for each
/// other. A thread that writes to a partition stops the other threads only there, for the fraction of a microsecond that an
/// insertion takes, or a fraction of a millisecond if a shard is split. With [`max_bytes`](super::ElasticBuilder::max_bytes),
/// partitions grow one after the other. Methods never wait for anything else, and never call other code while they hold a lock, so
/// that they cannot deadlock.
pub struct SharedFilter<H = Xxh3> {
    pub(crate) core: Shared,
    pub(crate) hasher: H,
}

/// Partitions behind locks: the core of a [`SharedFilter`].
pub(crate) struct Shared {
    pub partitions: Vec<LockedPartition>,
    pub params: ElasticParams,
    /// The most bytes that the filter may be charged.
    max_bytes: AtomicUsize,
    /// Held by a thread that makes a partition larger, if there is a limit.
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
    /// Inserts an item, even if it is already present: see [Duplicates](crate::CuckooFilter#duplicates). Locks one partition.
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
    /// insertions, since a partition is locked once for many items.
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

    /// [`ElasticFilter::shrink`](crate::ElasticFilter::shrink), partition after partition.
    pub fn shrink(&self) {
        for partition in &self.core.partitions {
            let mut partition = partition.write();
            partition.shrink();
            partition.publish();
        }
    }

    /// Removes all items, partition after partition, and frees the memory that the filter has grown by. An item that another thread
    /// inserts meanwhile may be removed or stay.
    pub fn clear(&self) {
        (&self.core).clear();
    }

    /// Clones the filter, partition after partition: each partition is copied as it is at one moment.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory>
    where
        H: Clone,
    {
        let (mut partitions, room) = (reserved(self.core.partitions.len())?, reserved(self.core.partitions.len())?);
        for partition in &self.core.partitions {
            partitions.push(partition.read().try_clone()?);
        }
        Ok(Self { core: Shared::new(partitions, room, self.core.params, self.core.max_bytes()), hasher: self.hasher.clone() })
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
        self.core.partitions.iter().for_each(|partition| partition.write().publish());
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

/// Equality of parameters, hashers, shards and tables. Partitions are compared one after the other, each pair as it is at one
/// moment.
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
        let is_same = |(first, second): (&LockedPartition, &LockedPartition)| {
            let first = first.read();
            *first == *second.read()
        };
        ptr::eq(self, other) || self.params == other.params && first.partitions.iter().zip(&second.partitions).all(is_same)
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
        self.partition(hash).read().contains(hash)
    }

    fn count(&self, hash: Uniform) -> u32 {
        Partition::count(&self.partition(hash).read(), hash)
    }

    fn contains_each(&self, hashes: &impl Hashes, found: &mut [bool]) {
        self.each_partition(hashes, self.by_partition(hashes.len()), |partition, Group { hashes, places, start }| {
            Self::ask(partition, hashes, answers_at(places, &mut found[start..]));
        });
    }

    fn count_members(&self, hashes: &impl Hashes) -> usize {
        let mut count = 0;
        self.each_partition(hashes, self.by_partition(hashes.len()), |partition, group| {
            Self::ask(partition, group.hashes, |answers| count += answers.count_ones() as usize);
        });
        count
    }

    fn len(&self) -> usize {
        self.partitions.iter().map(|partition| partition.read().len()).sum()
    }

    fn false_positive_rate(&self) -> f64 {
        self.partitions.iter().map(|partition| partition.read().false_positive_rate()).sum::<f64>() / self.partitions.len() as f64
    }

    fn capacity(&self) -> usize {
        self.params.max_capacity()
    }

    fn slots(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.read().slots()).sum()
    }

    fn table_len(&self) -> usize {
        self.partitions.iter().map(|partition| partition.read().table_len()).sum()
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        summarize(f, self.len(), self.shards(), bytes)
    }

    fn bytes_behind(&self) -> usize {
        let partitions = self.partitions.capacity() * size_of::<LockedPartition>();
        partitions + self.partitions.iter().map(|partition| partition.read().size_in_bytes()).sum::<usize>()
    }
}

impl Shared {
    pub fn params(&self) -> &ElasticParams {
        &self.params
    }

    pub fn distinct(&self) -> usize {
        self.partitions.iter().map(|partition| partition.read().distinct()).sum()
    }

    pub fn dispatch(&self) -> Dispatch {
        self.partitions[0].read().dispatch()
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        for partition in &mut self.partitions {
            partition.partition.get_mut().unwrap_or_else(PoisonError::into_inner).set_dispatch(dispatch);
        }
    }

    fn max_bytes(&self) -> usize {
        self.max_bytes.load(Ordering::Relaxed)
    }

    fn shards(&self) -> usize {
        self.partitions.iter().map(|partition| partition.read().shards()).sum()
    }

    /// The most generations of a partition.
    fn generations(&self) -> usize {
        self.partitions.iter().map(|partition| partition.read().generations().count()).max().unwrap_or(0)
    }

    /// Bytes of all tables, with their padding.
    fn table_bytes(&self) -> usize {
        self.partitions.iter().map(|partition| partition.read().table_bytes()).sum()
    }
}

// On hashes. Those of batches are shared out by partition, so that each partition is locked once for many of them.

/// Hashes that are shared out at a time: so many that a partition gets some hundreds, and that they stay in a core's cache.
const TOGETHER: usize = 1 << 14;

/// Fewer hashes than this many for each partition are used one after the other.
const FEWEST_PER_PARTITION: usize = 4;

impl CoreMut for &Shared {
    #[inline]
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError> {
        self.insert_into(&mut self.partition(hash).write(), hash)
    }

    #[inline]
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError> {
        let mut partition = self.partition(hash).write();
        if partition.holds(hash) { Ok(false) } else { self.insert_into(&mut partition, hash).map(|()| true) }
    }

    fn clear(&mut self) {
        for partition in &self.partitions {
            let mut partition = partition.write();
            partition.clear();
            partition.publish();
        }
    }

    fn insert_all(&mut self, hashes: &impl Hashes) -> Result<(), InsertError> {
        let mut refused = FirstRefused::default();
        self.change_each_partition(hashes, |partition, group| {
            group.each().for_each(|(place, hash)| refused.note(place, self.insert_into(partition, hash)));
        });
        refused.result()
    }

    fn insert_all_unique(&mut self, hashes: &impl Hashes, inserted: &mut [bool]) -> Result<(), InsertError> {
        let mut refused = FirstRefused::default();
        self.change_each_partition(hashes, |partition, group| {
            for (place, hash) in group.each() {
                inserted[place] = false;
                if !partition.holds(hash) {
                    let result = self.insert_into(partition, hash);
                    inserted[place] = result.is_ok();
                    refused.note(place, result);
                }
            }
        });
        refused.result()
    }

    #[inline]
    fn remove(&mut self, hash: Uniform) -> bool {
        self.remove_from(&mut self.partition(hash).write(), hash)
    }

    fn remove_all(&mut self, hashes: &impl Hashes, removed: &mut [bool]) {
        self.change_each_partition(hashes, |partition, group| {
            group.each().for_each(|(place, hash)| removed[place] = self.remove_from(partition, hash));
        });
    }
}

impl Shared {
    /// Puts partitions behind locks, for which there is room.
    fn new(partitions: Vec<Partition>, room: Vec<LockedPartition>, params: ElasticParams, max_bytes: usize) -> Self {
        Self { partitions: locked(partitions, room), params, max_bytes: AtomicUsize::new(max_bytes), growth: Mutex::new(()) }
    }

    /// Inserts a hash into its partition.
    #[inline]
    fn insert_into(&self, partition: &mut Writer<'_>, hash: Uniform) -> Result<(), InsertError> {
        match partition.insert(hash) {
            Ok(()) => Ok(()),
            Err(full) => self.insert_growing(partition, hash, full),
        }
    }

    /// If there is a limit, partitions grow one after the other, so that together they do not exceed it. A thread that waits holds
    /// the lock of one partition, and the one for which it waits needs no further lock.
    #[cold]
    fn insert_growing(&self, partition: &mut Writer<'_>, hash: Uniform, full: Place) -> Result<(), InsertError> {
        let is_limited = self.max_bytes() < usize::MAX;
        // What needs no memory needs no turn.
        let entries = partition.entries();
        if partition.insert_asking(hash, full, is_limited) {
            if partition.entries() != entries {
                partition.publish();
            }
            return Ok(());
        }
        let turn = is_limited.then(|| self.growth.lock().unwrap_or_else(PoisonError::into_inner));
        let result = partition.insert_growing(hash, full, self.allowed());
        partition.publish();
        drop(turn);
        result.map_err(|error| self.refuse(error))
    }

    /// By how many bytes the charge may rise.
    pub fn allowed(&self) -> usize {
        match self.max_bytes() {
            usize::MAX => usize::MAX,
            max_bytes => max_bytes.saturating_sub(self.charged()),
        }
    }

    pub fn refuse(&self, error: InsertError) -> InsertError {
        error.within(self.charged(), self.max_bytes())
    }

    /// Removes a hash from its partition.
    #[inline]
    fn remove_from(&self, partition: &mut Writer<'_>, hash: Uniform) -> bool {
        let is_removed = partition.remove(hash);
        // Two shards may have been joined.
        if self.max_bytes() < usize::MAX {
            partition.publish();
        }
        is_removed
    }

    #[inline]
    fn partition(&self, hash: Uniform) -> &LockedPartition {
        &self.partitions[self.params.shares().partition(hash)]
    }

    /// What the filter is charged against its limit.
    pub fn charged(&self) -> usize {
        self.partitions.iter().map(LockedPartition::charged).fold(FILTER_BYTES, usize::saturating_add)
    }

    fn ask(partition: &LockedPartition, hashes: &[u64], answer: impl FnMut(u64)) {
        let partition = partition.read();
        let prefetches = partition.table_bytes() >= PREFETCH_FROM / 8;
        contains_all(partition.dispatch(), &*partition, prefetches, &hashes, answer);
    }

    /// How to share out this many hashes by their partitions; none of few.
    fn by_partition(&self, hashes: usize) -> Option<GroupSize> {
        (hashes >= FEWEST_PER_PARTITION * self.partitions.len()).then_some(GroupSize { hashes: TOGETHER, bits: 0 })
    }

    /// Calls `act` with all hashes, many of the same partition at a time if they can be shared out.
    fn each_partition(&self, hashes: &impl Hashes, size: Option<GroupSize>, mut act: impl FnMut(&LockedPartition, Group<'_>)) {
        let mut start = group(self.params.shares(), size, hashes, |group| {
            act(self.partition(Uniform(group.hashes[0])), group);
        });
        hashes.each_batch(start..hashes.len(), |batch| {
            for hash in batch {
                act(self.partition(Uniform(*hash)), Group { hashes: slice::from_ref(hash), places: &[0], start });
                start += 1;
            }
            true
        });
    }

    /// The same with partitions that may be changed: those of large filters shard by shard, so that work stays in a core's cache.
    fn change_each_partition(&self, hashes: &impl Hashes, mut act: impl FnMut(&mut Writer<'_>, Group<'_>)) {
        // What the tables will be at least.
        let size = GROUPING.size(self.table_bytes().max(hashes.len()), hashes.len());
        self.each_partition(hashes, size.or_else(|| self.by_partition(hashes.len())), |partition, group| {
            let mut partition = partition.write();
            // Of a partition with many hashes, more of its tables are in a cache by the time they are used.
            if group.hashes.len() > 1 && Partition::table_bytes(&partition) >= PREFETCH_FROM / 8 {
                group.hashes.iter().take(2 * BATCH).for_each(|&hash| partition.prefetch(Uniform(hash)));
            }
            act(&mut partition, group);
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
    /// Converts the filter for many threads, without copying. It keeps its number of partitions, and each gets a lock.
    ///
    /// **A filter built without [`ElasticBuilder::partitions`](super::ElasticBuilder::partitions) has one partition: all its
    /// writers wait for one lock.** To have several threads write at the same time, build it with partitions, a power of two and
    /// more than there are writers (64 are usual), or with [`ElasticBuilder::build_shared`](super::ElasticBuilder::build_shared),
    /// which makes 64 by itself. Partitions cannot be changed later. One partition is enough for one writer and many readers.
    ///
    /// # Errors
    /// This filter, as it was, if memory for the locks cannot be allocated.
    ///
    /// # Example
    /// ```
    /// use koel::ElasticFilter;
    /// let mut seen = ElasticFilter::builder().false_positive_rate(0.001).partitions(64).build()?;
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
        match reserved(self.core.partitions.len()) {
            Ok(room) => Ok(self.with_locks(room)),
            Err(_) => Err(self),
        }
    }

    /// The same filter, with locks in this vector, which has room for them.
    pub(crate) fn with_locks(self, room: Vec<LockedPartition>) -> SharedFilter<H> {
        let Self { core: Elastic { partitions, params, max_bytes }, hasher } = self;
        SharedFilter { core: Shared::new(partitions, room, params, max_bytes), hasher }
    }
}

impl<H> SharedFilter<H> {
    /// Converts the filter for one owner, without copying. Threads that share it can then read without locks.
    ///
    /// # Errors
    /// This filter, as it was, if memory for the list of partitions cannot be allocated.
    #[allow(clippy::result_large_err, reason = "the error is the filter itself, which is hardly larger than the result")]
    pub fn into_elastic(self) -> Result<ElasticFilter<H>, Self> {
        let Ok(room) = reserved(self.core.partitions.len()) else { return Err(self) };
        let Self { core: Shared { partitions, params, max_bytes, .. }, hasher } = self;
        let core = Elastic { partitions: unlocked(partitions, room), params, max_bytes: max_bytes.into_inner() };
        Ok(ElasticFilter { core, hasher })
    }
}

// A partition behind a lock.

/// Processors fetch cache lines in pairs. Locks that are used by different threads are not in the same pair.
#[repr(align(128))]
pub(crate) struct LockedPartition {
    partition: RwLock<Partition>,
    /// What it is charged, for threads that do not hold the lock.
    charged: AtomicUsize,
}

const _: () = assert!(size_of::<LockedPartition>() <= PARTITION_BYTES);

impl LockedPartition {
    /// For reading. A lock is never poisoned in a way that matters: nothing that may panic runs while it is held.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, Partition> {
        self.partition.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// For writing.
    #[inline]
    pub fn write(&self) -> Writer<'_> {
        Writer { partition: self.partition.write().unwrap_or_else(PoisonError::into_inner), charged: &self.charged }
    }

    /// What it was charged at some moment.
    pub fn charged(&self) -> usize {
        self.charged.load(Ordering::Relaxed)
    }
}

/// A partition that the thread may change.
pub(crate) struct Writer<'a> {
    partition: RwLockWriteGuard<'a, Partition>,
    charged: &'a AtomicUsize,
}

impl Writer<'_> {
    /// Makes known what the partition is charged. To be called after everything that may have changed it.
    pub fn publish(&self) {
        self.charged.store(self.partition.charged(), Ordering::Relaxed);
    }
}

impl Deref for Writer<'_> {
    type Target = Partition;

    #[inline]
    fn deref(&self) -> &Partition {
        &self.partition
    }
}

impl DerefMut for Writer<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Partition {
        &mut self.partition
    }
}

/// Puts partitions behind locks, into a vector that has room for them.
pub(crate) fn locked(partitions: Vec<Partition>, mut locked: Vec<LockedPartition>) -> Vec<LockedPartition> {
    locked.extend(
        partitions.into_iter().map(|partition| LockedPartition {
            charged: AtomicUsize::new(partition.charged()),
            partition: RwLock::new(partition),
        }),
    );
    locked
}

/// The reverse.
pub(crate) fn unlocked(locked: Vec<LockedPartition>, mut partitions: Vec<Partition>) -> Vec<Partition> {
    partitions
        .extend(locked.into_iter().map(|partition| partition.partition.into_inner().unwrap_or_else(PoisonError::into_inner)));
    partitions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ElasticFilter, hash::split_mix};
    use alloc::{vec, vec::Vec};

    /// However hashes are shared out, each comes once, with its place and its partition.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn every_hash_comes_to_its_partition_once() {
        let builder = ElasticFilter::builder().false_positive_rate(0.01).partitions(8);
        for filter in [builder.clone().build_shared().unwrap(), builder.capacity(9000).max_capacity(9000).build_shared().unwrap()]
        {
            let mut hashes: Vec<u64> = (0..5000).map(split_mix).collect();
            hashes.extend(vec![hashes[3]; 700]);
            let some = hashes.len() / 5;
            for size in
                [GroupSize { hashes: some, bits: 0 }, GroupSize { hashes: 1 << 20, bits: 8 }, GroupSize { hashes: 7, bits: 2 }]
            {
                let mut seen = vec![0; hashes.len()];
                filter.core.each_partition(&hashes.as_slice(), Some(size), |partition, group| {
                    for (place, hash) in group.each() {
                        assert_eq!(hash.0, hashes[place]);
                        assert!(core::ptr::eq(
                            partition,
                            &raw const filter.core.partitions[filter.core.params.shares().partition(hash)]
                        ));
                        seen[place] += 1;
                    }
                });
                assert!(seen.iter().all(|&times| times == 1));
            }
        }
    }
}
