//! Operations on single items.

use super::{
    ElasticFilter, GrowError, ShardStorage, builder::empty_lanes, error::Refused, lane::Lane, look_up::Shards as _, pool::Place,
    storage::sealed::Sealed as _,
};
use crate::{hash::HashItem, params::Addressing, storage::OutOfMemory, table::Uniform};

impl<H> ElasticFilter<H> {
    /// Inserts an item, even if it is already present: see [Duplicates](Self#duplicates). The filter grows if it has to.
    ///
    /// Takes constant time on average; an insertion that splits a shard takes a fraction of a millisecond.
    ///
    /// # Errors
    /// If copies fill the item's buckets, if the filter would exceed [`max_bytes`](super::ElasticBuilder::max_bytes), if memory
    /// cannot be allocated, or for one of the rare reasons that [`GrowErrorKind`](super::GrowErrorKind) lists. The filter is then
    /// unchanged, bit for bit.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::ElasticFilter::builder().false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// assert!(filter.contains("alice"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert<T: ?Sized>(&mut self, item: &T) -> Result<(), GrowError>
    where
        H: HashItem<T>,
    {
        self.insert_uniform(self.uniform(item))
    }

    #[inline]
    pub(super) fn insert_uniform(&mut self, hash: Uniform) -> Result<(), GrowError> {
        let lane = self.lane_of(hash);
        match self.storage.lanes[lane].insert(hash) {
            Ok(()) => Ok(()),
            Err(full) => self.insert_growing(lane, hash, full),
        }
    }

    #[cold]
    fn insert_growing(&mut self, lane: usize, hash: Uniform, full: Place) -> Result<(), GrowError> {
        let allowed = self.allowed();
        self.storage.lanes[lane].insert_growing(hash, full, allowed).map_err(|refused| self.refuse(refused))
    }

    /// By how many bytes the charge may rise.
    pub(super) fn allowed(&self) -> usize {
        match self.storage.max_bytes {
            usize::MAX => usize::MAX,
            max_bytes => max_bytes.saturating_sub(self.storage.charged()),
        }
    }

    pub(super) fn refuse(&self, reason: impl Into<Refused>) -> GrowError {
        GrowError::new(reason.into(), self.storage.charged(), self.storage.max_bytes)
    }

    /// Inserts an item unless the filter has it, as far as the stored bits tell. Returns true if it was inserted.
    ///
    /// All stored bits are compared, also those that only growing needs: so an item may be inserted for which
    /// [`contains`](Self::contains) happens to return true already, and one that was not is found at every later size. The caveat of [`CuckooFilter::insert_unique`](crate::CuckooFilter::insert_unique) about removal applies.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    #[inline]
    pub fn insert_unique<T: ?Sized>(&mut self, item: &T) -> Result<bool, GrowError>
    where
        H: HashItem<T>,
    {
        self.insert_unique_uniform(self.uniform(item))
    }

    #[inline]
    pub(super) fn insert_unique_uniform(&mut self, hash: Uniform) -> Result<bool, GrowError> {
        if self.all_shards().of(hash).holds(hash) {
            return Ok(false);
        }
        self.insert_uniform(hash).map(|()| true)
    }

    /// Removes one copy of an item. Returns true if a copy was found. Read [Removal](Self#removal) first.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::ElasticFilter::builder().false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// assert!(filter.remove("alice") && !filter.remove("alice"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn remove<T: ?Sized>(&mut self, item: &T) -> bool
    where
        H: HashItem<T>,
    {
        self.remove_uniform(self.uniform(item))
    }

    #[inline]
    pub(super) fn remove_uniform(&mut self, hash: Uniform) -> bool {
        let lane = self.lane_of(hash);
        self.storage.lanes[lane].remove(hash)
    }

    /// Joins all pairs of shards that fill at most nine tenths of one, to free memory; removals join those below four tenths. The next
    /// insertions may split them again. A pair stays as it is if memory for the joined shard cannot be allocated.
    pub fn shrink(&mut self) {
        self.storage.lanes.iter_mut().for_each(Lane::shrink);
    }

    /// Removes all items, and gives back the memory that the filter has grown by.
    ///
    /// # Errors
    /// If memory for the empty tables cannot be allocated. The filter is then unchanged.
    pub fn clear(&mut self) -> Result<(), OutOfMemory> {
        self.storage.lanes = empty_lanes(&self.params, self.dispatch())?;
        Ok(())
    }

    /// A copy, as `clone` makes it, but with an error where that aborts the process.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory>
    where
        H: Clone,
    {
        Ok(Self { storage: self.storage.try_clone()?, params: self.params, hasher: self.hasher.clone() })
    }

    #[inline]
    pub(super) fn lane(&self, hash: Uniform) -> &Lane {
        self.storage.shards(&self.params).of(hash)
    }

    /// The index of the lane of a hash.
    #[inline]
    fn lane_of(&self, hash: Uniform) -> usize {
        self.params.shares().lane(hash)
    }
}

impl<H, S: ShardStorage> ElasticFilter<H, S> {
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
        self.all_shards().contains(hash)
    }

    /// The number of copies of an item in the filter: at least as many as were inserted and not removed. Other items with the
    /// same fingerprint and buckets make the count too high, with probability at most ε. All stored bits are compared, also those that
    /// only growing needs: so an item that [`contains`](Self::contains) finds by chance mostly counts 0.
    #[must_use]
    pub fn count<T: ?Sized>(&self, item: &T) -> u32
    where
        H: HashItem<T>,
    {
        self.all_shards().count(self.uniform(item))
    }

    /// The hash of an item, for [`Prehashed`](crate::Prehashed). The same as that of a [`CuckooFilter`](crate::CuckooFilter::hash) with the
    /// same hasher and seed.
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
        Uniform(self.hasher.place_item(self.params.seed, Addressing::AnySize, item))
    }

    #[inline]
    pub(super) fn all_shards(&self) -> S::Shards<'_> {
        self.storage.shards(&self.params)
    }
}
