//! A growing filter for many threads, with a lock for each partition.
//!
//! ```text
//! SharedFilter ──hash──▶ LockedPartition ──lock──▶ Partition, as in an ElasticFilter
//! ```

use alloc::vec::Vec;
use core::{
    fmt,
    ops::{Deref, DerefMut},
    slice,
    sync::atomic::{AtomicUsize, Ordering},
};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::{
    Elastic, ElasticFilter, ElasticParams,
    facts::{FILTER_BYTES, equal, grows, summarize},
    grouping::{FirstRefused, GROUPING, Group, GroupSize, group},
    lookup::{Partitions, Shards as _, contains_all},
    partition::{PARTITION_BYTES, Partition},
};
use crate::{
    bits::index,
    filter::{Content, Core, CoreMut, InsertError, InsertErrorKind, insert_by_own_methods, lookups, merges, planned},
    hash::{HashItem, Hashed, Items, Uniform, Xxh3, assert_same_length},
    kernel::{BATCH, Dispatch, Hashes, PREFETCH_FROM},
    storage::{OutOfMemory, collected, reserved},
};

/// An [`ElasticFilter`] that many threads can read and write at the same time. All methods take `&self`, except
/// [`merge`](SharedFilter::merge), [`union`](SharedFilter::union), [`intersect`](SharedFilter::intersect),
/// [`set_kernel`](SharedFilter::set_kernel) and [`into_elastic`](SharedFilter::into_elastic).
///
/// Build it with [`ElasticBuilder::build_shared`](super::ElasticBuilder::build_shared), or convert an `ElasticFilter` with
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
/// - Operations on an item are linearizable: each takes effect at one moment between its call and its return. As soon as `insert`
///   has returned in one thread, all threads find the item.
/// - [`insert_unique`](SharedFilter::insert_unique) is atomic: of several threads that insert the same new item, exactly one gets
///   `true`.
/// - A panic in the code of an item or a hasher leaves the filter unchanged: items are hashed before a lock is taken.
/// - Whole-filter statistics ([`len`](SharedFilter::len), [`false_positive_rate`](SharedFilter::false_positive_rate), …) read one
///   partition at a time. While other threads write, they are not a consistent snapshot: each partition is read at some moment
///   during the call.
///
/// docs/CONCURRENCY.md has details, and helps to choose a filter.
///
/// # Locks
/// The filter has 64 partitions by default, each with its own lock. Threads that read the same partition do not wait for each
/// other. A thread that writes to a partition blocks other threads only there: for a fraction of a microsecond per insertion, or
/// a fraction of a millisecond if a shard splits. With [`max_bytes`](super::ElasticBuilder::max_bytes), only one partition grows
/// at a time. Methods never wait for anything else, and never call other code while they hold a lock, so they cannot deadlock.
pub struct SharedFilter<H = Xxh3> {
    pub(crate) core: Shared,
    pub(crate) hasher: H,
}

/// The core of a [`SharedFilter`]: its partitions behind locks.
pub(crate) struct Shared {
    pub partitions: Vec<LockedPartition>,
    pub params: ElasticParams,
    /// The limit on [`charged_bytes`](Self::charged_bytes).
    max_bytes: AtomicUsize,
    /// If there is a limit, a thread holds this lock while it grows a partition.
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
    /// Returns an error if the item is refused, for one of the reasons in [`InsertErrorKind`](crate::InsertErrorKind). The filter
    /// is then unchanged, bit for bit.
    #[inline]
    pub fn insert<T: ?Sized>(&self, item: &T) -> Result<(), InsertError>
    where
        H: HashItem<T>,
    {
        (&self.core).insert(self.hash_of(item))
    }

    /// Inserts an item unless the filter has it already, as one atomic operation: no other thread inserts or removes the item
    /// between the lookup and the insertion. Returns true if it was inserted.
    ///
    /// As in [`ElasticFilter::insert_unique`], a new item is skipped by mistake with a probability of at most ε, and `contains` may
    /// already find by chance an item that is inserted.
    ///
    /// # Errors
    /// The errors of [`insert`](Self::insert).
    ///
    /// # Example
    /// Each item is processed once, by the thread that comes first:
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

    /// Inserts each item as [`insert`](Self::insert) does, in any order. While other threads use the filter, this is faster than
    /// single insertions, because it locks a partition once for many items.
    ///
    /// This temporarily takes twelve bytes per item, up to 192 MiB. Without that memory, it is slower.
    ///
    /// # Errors
    /// Returns the [`InsertError`] of the first refused item. Refused items are not in the filter; all others are.
    pub fn insert_batch<I: Items<H> + ?Sized>(&self, items: &I) -> Result<(), InsertError> {
        (&self.core).insert_all(&items.hashes(&self.hasher, self.core.seed()))
    }

    /// Inserts each item as [`insert_unique`](Self::insert_unique) does, in any order, and writes to `inserted[i]` whether
    /// `items[i]` was inserted. If a call contains equal items, the first one is inserted. Each item is one atomic operation: of
    /// several threads that insert the same new item, exactly one gets `true`.
    ///
    /// This takes as much memory as [`insert_batch`](Self::insert_batch).
    ///
    /// # Errors
    /// Returns the [`InsertError`] of the first refused item. `inserted` is false for refused items, which are not in the filter;
    /// all others are.
    ///
    /// # Panics
    /// Panics if the slices differ in length.
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
        assert_same_length(hashes.len(), inserted.len());
        (&self.core).insert_all_unique(&hashes, inserted)
    }

    /// Removes each item as [`remove`](Self::remove) does, in any order, and writes to `removed[i]` whether `items[i]` was found.
    ///
    /// # Panics
    /// Panics if the slices differ in length.
    pub fn remove_batch<I: Items<H> + ?Sized>(&self, items: &I, removed: &mut [bool]) {
        let hashes = items.hashes(&self.hasher, self.core.seed());
        assert_same_length(hashes.len(), removed.len());
        (&self.core).remove_all(&hashes, removed);
    }

    /// Inserts each item of an iterator as [`insert`](Self::insert) does, in order. Returns the number of items.
    ///
    /// # Errors
    /// Returns the error of the first refused item. Items before its [`position`](InsertError::position) are in the filter; the
    /// refused item and those after it are not. Up to 63 items after it have already been taken from the iterator.
    pub fn insert_iter<I: IntoIterator>(&self, items: I) -> Result<usize, InsertError>
    where
        H: HashItem<I::Item>,
    {
        (&self.core).insert_iter(Hashed::new(items, &self.hasher, self.core.seed()))
    }

    /// Inserts each item of an iterator as [`insert_unique`](Self::insert_unique) does, in order. Returns the number of items
    /// stored.
    ///
    /// # Errors
    /// Returns the error of the first refused item. Its [`position`](InsertError::position) is the number of items before it,
    /// stored or skipped. Up to 63 items after it have already been taken from the iterator.
    pub fn insert_unique_iter<I: IntoIterator>(&self, items: I) -> Result<usize, InsertError>
    where
        H: HashItem<I::Item>,
    {
        (&self.core).insert_unique_iter(Hashed::new(items, &self.hasher, self.core.seed()))
    }

    /// Frees memory as [`ElasticFilter::shrink`](crate::ElasticFilter::shrink) does, one partition at a time.
    pub fn shrink(&self) {
        for partition in &self.core.partitions {
            let mut partition = partition.write();
            partition.shrink();
            partition.publish_charge();
        }
    }

    /// Removes all items, one partition at a time, and frees the memory by which the filter has grown. An item that another thread
    /// inserts meanwhile may or may not be removed.
    pub fn clear(&self) {
        (&self.core).clear();
    }

    /// Clones the filter, one partition at a time. Each partition is copied at one moment.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory>
    where
        H: Clone,
    {
        let partitions = collected(self.core.partitions.iter().map(|partition| partition.read().try_clone()))?;
        let room = reserved(partitions.len())?;
        Ok(Self { core: Shared::new(partitions, room, self.core.params, self.core.max_bytes()), hasher: self.hasher.clone() })
    }

    /// Returns the bytes that the filter is charged against its limit: see [`ElasticFilter::charged_bytes`].
    #[must_use]
    pub fn charged_bytes(&self) -> usize {
        self.core.charged_bytes()
    }

    /// Limits the bytes that the filter may take, as [`ElasticBuilder::max_bytes`](super::ElasticBuilder::max_bytes) does. Use it
    /// for filters that were read, since snapshots contain no limit. A filter that already takes more keeps its items and stops
    /// growing. Insertions that began before the call may still use the old limit.
    ///
    /// # Example
    /// ```
    /// use koel::{ElasticFilter, SharedFilter};
    /// let seen = ElasticFilter::builder().false_positive_rate(0.001).max_bytes(1 << 20).build_shared()?;
    /// let read = SharedFilter::from_bytes(&seen.to_bytes())?; // a snapshot contains no limit
    /// read.set_max_bytes(1 << 20);
    /// assert!(read.insert_iter(0..10_000_000u64).is_err() && read.charged_bytes() <= 1 << 20);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn set_max_bytes(&self, bytes: usize) {
        self.core.max_bytes.store(bytes, Ordering::Relaxed);
        // Without a limit, removals do not publish the lower charge.
        self.core.partitions.iter().for_each(|partition| partition.write().publish_charge());
    }
}

/// Extends the filter as [`insert_unique_iter`](SharedFilter::insert_unique_iter) does.
///
/// # Panics
/// Panics if an item is refused.
impl<T, H: HashItem<T>> Extend<T> for &SharedFilter<H> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        if let Err(error) = self.insert_unique_iter(items) {
            panic!("the filter cannot be extended: {error}");
        }
    }
}

/// Extends the filter as a reference to it does.
impl<T, H: HashItem<T>> Extend<T> for SharedFilter<H> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        (&*self).extend(items);
    }
}

equal! {
    [] SharedFilter<H>, SharedFilter<H>;
    [] SharedFilter<H>, ElasticFilter<H>;
    [] ElasticFilter<H>, SharedFilter<H>;
}
impl<H: Eq> Eq for SharedFilter<H> {}

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

    fn contains_into(&self, hashes: &impl Hashes, found: &mut [bool]) {
        self.each_partition(hashes, self.partition_groups(hashes.len()), |partition, Group { hashes, positions, start }| {
            Self::look_up(partition, hashes, scatter(positions, &mut found[start..]));
        });
    }

    fn count_members(&self, hashes: &impl Hashes) -> usize {
        let mut count = 0;
        self.each_partition(hashes, self.partition_groups(hashes.len()), |partition, group| {
            Self::look_up(partition, group.hashes, |answers| count += answers.count_ones() as usize);
        });
        count
    }

    fn len(&self) -> usize {
        self.partitions.iter().map(|partition| partition.read().len()).fold(0, usize::saturating_add)
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

    fn external_bytes(&self) -> usize {
        let partitions = self.partitions.capacity() * size_of::<LockedPartition>();
        partitions + self.partitions.iter().map(|partition| partition.read().size_in_bytes()).sum::<usize>()
    }
}

impl Shared {
    /// Adds up all copies of all items in a partition, which is locked meanwhile.
    pub fn content(&self, partition: usize, salt: u64) -> Content {
        self.partitions[partition].read().content(salt)
    }

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

    fn buckets(&self) -> u64 {
        self.partitions.iter().map(|partition| partition.read().buckets()).sum()
    }

    /// Returns the most generations that any partition has.
    fn generations(&self) -> usize {
        self.partitions.iter().map(|partition| partition.read().generations().count()).max().unwrap_or(0)
    }

    /// Returns the bytes of all tables with their padding, and of all item lists.
    fn table_bytes(&self) -> usize {
        self.partitions.iter().map(|partition| partition.read().table_bytes()).sum()
    }
}

// Operations on hashes. Those of a batch are grouped by partition, so that each partition is locked once for many of them.

/// The number of hashes that are grouped at a time. A partition gets some hundreds of them, and they fit into a core's cache.
const GROUP_HASHES: usize = 1 << 14;

/// The fewest hashes per partition that are grouped. Fewer are processed individually.
const MIN_HASHES_PER_PARTITION: usize = 4;

impl CoreMut for &Shared {
    #[inline]
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError> {
        self.insert_into(&mut self.partition(hash).write(), hash)
    }

    #[inline]
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError> {
        let mut partition = self.partition(hash).write();
        if partition.contains_exactly(hash) { Ok(false) } else { self.insert_into(&mut partition, hash).map(|()| true) }
    }

    fn clear(&mut self) {
        for partition in &self.partitions {
            let mut partition = partition.write();
            partition.clear();
            partition.publish_charge();
        }
    }

    fn insert_all(&mut self, hashes: &impl Hashes) -> Result<(), InsertError> {
        let mut refused = FirstRefused::default();
        self.change_each_partition(hashes, |partition, group| {
            group.indexed().for_each(|(position, hash)| refused.record(position, self.insert_into(partition, hash)));
        });
        refused.result()
    }

    fn insert_all_unique(&mut self, hashes: &impl Hashes, inserted: &mut [bool]) -> Result<(), InsertError> {
        let mut refused = FirstRefused::default();
        self.change_each_partition(hashes, |partition, group| {
            for (position, hash) in group.indexed() {
                inserted[position] = false;
                if !partition.contains_exactly(hash) {
                    let result = self.insert_into(partition, hash);
                    inserted[position] = result.is_ok();
                    refused.record(position, result);
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
            group.indexed().for_each(|(position, hash)| removed[position] = self.remove_from(partition, hash));
        });
    }
}

impl Shared {
    /// Returns a core with these partitions. `room` must have room for their locks.
    fn new(partitions: Vec<Partition>, room: Vec<LockedPartition>, params: ElasticParams, max_bytes: usize) -> Self {
        Self { partitions: add_locks(partitions, room), params, max_bytes: AtomicUsize::new(max_bytes), growth: Mutex::new(()) }
    }

    /// Inserts a hash into its locked partition.
    #[inline]
    fn insert_into(&self, partition: &mut Writer<'_>, hash: Uniform) -> Result<(), InsertError> {
        if partition.insert(hash) { Ok(()) } else { self.add(partition, hash) }
    }

    /// Inserts a hash for which its partition may have to grow. If there is a limit, only one partition grows at a time, so that
    /// together they do not exceed it. A thread that waits for the growth lock holds the lock of its partition; this cannot
    /// deadlock, because the thread with the growth lock takes no further lock.
    #[cold]
    #[inline(never)]
    fn add(&self, partition: &mut Writer<'_>, hash: Uniform) -> Result<(), InsertError> {
        let is_limited = self.max_bytes() < usize::MAX;
        if is_limited {
            // An insertion that needs no memory does not need the growth lock.
            match partition.add(hash, 0) {
                Err(error) if matches!(error.kind(), InsertErrorKind::Limit { .. }) => {}
                result => {
                    partition.publish_charge();
                    return result.map_err(|error| self.with_limit(error));
                }
            }
        }
        let growth_lock = is_limited.then(|| self.growth.lock().unwrap_or_else(PoisonError::into_inner));
        let result = partition.add(hash, self.budget());
        partition.publish_charge();
        drop(growth_lock);
        result.map_err(|error| self.with_limit(error))
    }

    /// Returns by how many bytes the charge may rise.
    pub fn budget(&self) -> usize {
        match self.max_bytes() {
            usize::MAX => usize::MAX,
            max_bytes => max_bytes.saturating_sub(self.published_charge()),
        }
    }

    /// Adds the filter's charge and limit to an error.
    pub fn with_limit(&self, error: InsertError) -> InsertError {
        error.within(self.published_charge(), self.max_bytes())
    }

    /// Removes a hash from its locked partition.
    #[inline]
    fn remove_from(&self, partition: &mut Writer<'_>, hash: Uniform) -> bool {
        let is_removed = partition.remove(hash);
        // The removal may have merged two shards.
        if self.max_bytes() < usize::MAX {
            partition.publish_charge();
        }
        is_removed
    }

    /// Returns the partition of a hash.
    #[inline]
    fn partition(&self, hash: Uniform) -> &LockedPartition {
        &self.partitions[self.params.shares.partition(hash)]
    }

    /// Returns the bytes that the filter is charged against its limit.
    pub fn charged_bytes(&self) -> usize {
        let charges = self.partitions.iter().map(|partition| partition.read().charged_bytes());
        charges.fold(FILTER_BYTES, usize::saturating_add)
    }

    /// Returns the same without locks. It may be too high as long as there is no limit.
    fn published_charge(&self) -> usize {
        let published = self.partitions.iter().map(|partition| partition.charged_bytes.load(Ordering::Relaxed));
        published.fold(FILTER_BYTES, usize::saturating_add)
    }

    /// Looks up hashes in a partition. Calls `answer` as [`contains_all`] does.
    fn look_up(partition: &LockedPartition, hashes: &[u64], answer: impl FnMut(u64)) {
        let partition = &*partition.read();
        let first = &partition.first;
        let in_later: &dyn Fn(Uniform) -> bool = &|hash| partition.later_contains(hash);
        let later = partition.has_later().then_some(in_later);
        let prefetches = partition.table_bytes() >= PREFETCH_FROM / 8;
        let partitions = Partitions { of: |_| first, any: first, is_only: true };
        contains_all(partitions, first.has_all_tables(), later, prefetches, &hashes, answer);
    }

    /// Returns how to group this many hashes by partition, or `None` if they are too few.
    fn partition_groups(&self, hashes: usize) -> Option<GroupSize> {
        (hashes >= MIN_HASHES_PER_PARTITION * self.partitions.len()).then_some(GroupSize { hashes: GROUP_HASHES, bits: 0 })
    }

    /// Calls `act` with all hashes: with groups in the same partition if `size` is given and memory is available, otherwise
    /// individually.
    fn each_partition(&self, hashes: &impl Hashes, size: Option<GroupSize>, mut act: impl FnMut(&LockedPartition, Group<'_>)) {
        let mut start = group(self.params.shares, size, hashes, |group| {
            act(self.partition(Uniform(group.hashes[0])), group);
        });
        hashes.each_batch(start..hashes.len(), |batch| {
            for hash in batch {
                act(self.partition(Uniform(*hash)), Group { hashes: slice::from_ref(hash), positions: &[0], start });
                start += 1;
            }
        });
    }

    /// Calls `act` with all hashes and their partitions, locked for writing. In large filters, groups follow shards rather than
    /// whole partitions, so that the tables in use stay in a core's cache.
    fn change_each_partition(&self, hashes: &impl Hashes, mut act: impl FnMut(&mut Writer<'_>, Group<'_>)) {
        // A lower bound of the final table size.
        let size = GROUPING.size(self.table_bytes().max(hashes.len()), hashes.len());
        self.each_partition(hashes, size.or_else(|| self.partition_groups(hashes.len())), |partition, group| {
            let mut partition = partition.write();
            // Only the first hashes are prefetched: later ones mostly find their tables in a cache.
            if group.hashes.len() > 1 && Partition::table_bytes(&partition) >= PREFETCH_FROM / 8 {
                group.hashes.iter().take(2 * BATCH).for_each(|&hash| partition.prefetch(Uniform(hash)));
            }
            act(&mut partition, group);
        });
    }
}

/// Returns a function that writes the results of consecutive batches to the elements of `found` with these indices.
fn scatter(positions: &[u32], found: &mut [bool]) -> impl FnMut(u64) {
    let mut batches = positions.chunks(BATCH);
    move |answers| {
        for (bit, &position) in batches.next().unwrap_or_default().iter().enumerate() {
            found[index(position.into())] = answers >> bit & 1 == 1;
        }
    }
}

impl<H> ElasticFilter<H> {
    /// Converts the filter for many threads, without copying. It keeps its number of partitions, and each gets a lock.
    ///
    /// **A filter built without [`ElasticBuilder::partitions`](super::ElasticBuilder::partitions) has one partition: all its
    /// writers wait for one lock.** If several threads write at the same time, build the filter with more partitions than writers
    /// (a power of two, usually 64), or with [`ElasticBuilder::build_shared`](super::ElasticBuilder::build_shared), whose default
    /// is 64. The number of partitions cannot be changed later. One partition is enough for one writer and many readers.
    ///
    /// # Errors
    /// Returns this filter unchanged if memory for the locks cannot be allocated.
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

    /// Returns this filter with locks in `room`, which must have room for them.
    pub(crate) fn with_locks(self, room: Vec<LockedPartition>) -> SharedFilter<H> {
        let Self { core: Elastic { partitions, params, max_bytes }, hasher } = self;
        SharedFilter { core: Shared::new(partitions, room, params, max_bytes), hasher }
    }
}

impl<H> SharedFilter<H> {
    /// Converts the filter for one owner, without copying. Threads that share it can then read without locks.
    ///
    /// # Errors
    /// Returns this filter unchanged if memory for the list of partitions cannot be allocated.
    #[allow(clippy::result_large_err, reason = "the error is the filter itself, which is hardly larger than the result")]
    pub fn into_elastic(self) -> Result<ElasticFilter<H>, Self> {
        let Ok(mut partitions) = reserved(self.core.partitions.len()) else { return Err(self) };
        let Self { core: Shared { partitions: locked, params, max_bytes, .. }, hasher } = self;
        partitions.extend(locked.into_iter().map(|lock| lock.partition.into_inner().unwrap_or_else(PoisonError::into_inner)));
        let core = Elastic { partitions, params, max_bytes: max_bytes.into_inner() };
        Ok(ElasticFilter { core, hasher })
    }
}

// A partition behind a lock.

/// A partition behind a lock.
///
/// Its alignment keeps locks of different threads out of the same pair of cache lines, because processors fetch lines in pairs.
#[repr(align(128))]
pub(crate) struct LockedPartition {
    partition: RwLock<Partition>,
    /// The charge of the partition, readable without the lock.
    charged_bytes: AtomicUsize,
}

const _: () = assert!(size_of::<LockedPartition>() <= PARTITION_BYTES);

impl LockedPartition {
    /// Locks the partition for reading. Ignores poisoning, because no code that may panic runs while the lock is held.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, Partition> {
        self.partition.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the partition for writing.
    #[inline]
    pub fn write(&self) -> Writer<'_> {
        Writer { partition: self.partition.write().unwrap_or_else(PoisonError::into_inner), charged_bytes: &self.charged_bytes }
    }
}

/// A partition that is locked for writing.
pub(crate) struct Writer<'a> {
    partition: RwLockWriteGuard<'a, Partition>,
    charged_bytes: &'a AtomicUsize,
}

impl Writer<'_> {
    /// Publishes the partition's charge. Call this after every change that may affect it.
    pub fn publish_charge(&self) {
        self.charged_bytes.store(self.partition.charged_bytes(), Ordering::Relaxed);
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

/// Puts partitions behind locks, in the vector `locked`, which must have room for them.
pub(crate) fn add_locks(partitions: Vec<Partition>, mut locked: Vec<LockedPartition>) -> Vec<LockedPartition> {
    locked.extend(partitions.into_iter().map(|partition| LockedPartition {
        charged_bytes: AtomicUsize::new(partition.charged_bytes()),
        partition: RwLock::new(partition),
    }));
    locked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ElasticFilter, hash::split_mix};
    use alloc::{vec, vec::Vec};

    /// Checks that each hash is passed once, with its index and its partition, for several ways to group hashes.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn each_hash_reaches_its_partition_once() {
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
                    for (position, hash) in group.indexed() {
                        assert_eq!(hash.0, hashes[position]);
                        assert!(core::ptr::eq(
                            partition,
                            &raw const filter.core.partitions[filter.core.params.shares.partition(hash)]
                        ));
                        seen[position] += 1;
                    }
                });
                assert!(seen.iter().all(|&times| times == 1));
            }
        }
    }
}
