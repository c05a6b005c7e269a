//! Operations on single items.

use std::sync::PoisonError;

use super::{
    super::{GrowError, builder::empty_lanes, error::Refused, lane::Lane, pool::Place},
    LockedLane, SharedFilter, Writer,
};
use crate::{hash::HashItem, params::Addressing, storage::OutOfMemory, table::Uniform};

impl<H> SharedFilter<H> {
    /// Inserts an item, even if it is already present, as [`ElasticFilter::insert`](crate::ElasticFilter::insert) does.
    ///
    /// # Errors
    /// As `ElasticFilter::insert`. The call has then changed nothing.
    #[inline]
    pub fn insert<T: ?Sized>(&self, item: &T) -> Result<(), GrowError>
    where
        H: HashItem<T>,
    {
        let hash = self.uniform(item);
        self.insert_into(&mut self.lane(hash).write(), hash)
    }

    /// Inserts a hash into its lane.
    #[inline]
    pub(super) fn insert_into(&self, lane: &mut Writer<'_>, hash: Uniform) -> Result<(), GrowError> {
        match lane.insert(hash) {
            Ok(()) => Ok(()),
            Err(full) => self.insert_growing(lane, hash, full),
        }
    }

    /// If there is a limit, lanes grow one after the other, so that together they do not exceed it. A thread that waits holds the
    /// lock of one lane, and the one for which it waits needs no further lock.
    #[cold]
    fn insert_growing(&self, lane: &mut Writer<'_>, hash: Uniform, full: Place) -> Result<(), GrowError> {
        let is_limited = self.max_bytes < usize::MAX;
        let turn = is_limited.then(|| self.growth.lock().unwrap_or_else(PoisonError::into_inner));
        let result = lane.insert_growing(hash, full, self.allowed());
        lane.publish();
        drop(turn);
        result.map_err(|refused| self.refuse(refused))
    }

    /// By how many bytes the charge may rise.
    pub(in crate::elastic) fn allowed(&self) -> usize {
        if self.max_bytes < usize::MAX { self.max_bytes.saturating_sub(self.charged()) } else { usize::MAX }
    }

    pub(in crate::elastic) fn refuse(&self, reason: Refused) -> GrowError {
        GrowError::new(reason, self.charged(), self.max_bytes)
    }

    /// [`ElasticFilter::insert_unique`](crate::ElasticFilter::insert_unique) as one operation: no other thread inserts or removes the
    /// item between the look-up and the insertion. Returns true if it was inserted.
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
    pub fn insert_unique<T: ?Sized>(&self, item: &T) -> Result<bool, GrowError>
    where
        H: HashItem<T>,
    {
        let hash = self.uniform(item);
        let mut lane = self.lane(hash).write();
        if lane.holds(hash) {
            return Ok(false);
        }
        self.insert_into(&mut lane, hash).map(|()| true)
    }

    /// Removes one copy of an item. Returns true if a copy was found. Read [Removal](crate::CuckooFilter#removal) first.
    #[inline]
    pub fn remove<T: ?Sized>(&self, item: &T) -> bool
    where
        H: HashItem<T>,
    {
        let hash = self.uniform(item);
        self.remove_from(&mut self.lane(hash).write(), hash)
    }

    /// Removes a hash from its lane.
    #[inline]
    pub(super) fn remove_from(&self, lane: &mut Writer<'_>, hash: Uniform) -> bool {
        let is_removed = lane.remove(hash);
        // Two shards may have been joined.
        if self.max_bytes < usize::MAX {
            lane.publish();
        }
        is_removed
    }

    /// Joins all shards that are thin enough, as [`ElasticFilter::shrink`](crate::ElasticFilter::shrink) does, lane after lane.
    pub fn shrink(&self) {
        for lane in &self.lanes {
            let mut lane = lane.write();
            lane.shrink();
            lane.publish();
        }
    }

    /// Removes all items, lane after lane, and gives back the memory that the filter has grown by. An item that another thread
    /// inserts meanwhile may be removed, or stay.
    ///
    /// # Errors
    /// If memory for the empty tables cannot be allocated. The filter is then unchanged.
    pub fn clear(&self) -> Result<(), OutOfMemory> {
        let empty = empty_lanes(&self.params, self.dispatch)?;
        for (lane, empty) in self.lanes.iter().zip(empty) {
            let mut lane = lane.write();
            *lane = empty;
            lane.publish();
        }
        Ok(())
    }

    /// False if the item is not in the filter; true if it probably is.
    #[inline]
    #[must_use]
    pub fn contains<T: ?Sized>(&self, item: &T) -> bool
    where
        H: HashItem<T>,
    {
        self.contains_uniform(self.uniform(item))
    }

    #[inline]
    pub(super) fn contains_uniform(&self, hash: Uniform) -> bool {
        self.lane(hash).read().contains(hash)
    }

    /// The number of copies of an item in the filter, as [`ElasticFilter::count`](crate::ElasticFilter::count) counts them.
    #[must_use]
    pub fn count<T: ?Sized>(&self, item: &T) -> u32
    where
        H: HashItem<T>,
    {
        let hash = self.uniform(item);
        Lane::count(&self.lane(hash).read(), hash)
    }

    /// The hash of an item, for [`Prehashed`](crate::Prehashed). The same as that of an [`ElasticFilter`](crate::ElasticFilter::hash).
    #[inline]
    #[must_use]
    pub fn hash<T: ?Sized>(&self, item: &T) -> u64
    where
        H: HashItem<T>,
    {
        self.uniform(item).hash(Addressing::AnySize)
    }

    #[inline]
    pub(super) fn uniform<T: ?Sized>(&self, item: &T) -> Uniform
    where
        H: HashItem<T>,
    {
        Uniform(self.hasher.place_item(self.params.seed(), Addressing::AnySize, item))
    }

    #[inline]
    fn lane(&self, hash: Uniform) -> &LockedLane {
        &self.lanes[self.params.shares().lane(hash)]
    }
}
