//! One item at a time.

use super::{CuckooFilter, Full};
use crate::{hash::HashItem, storage::Storage, table::Uniform};

impl<H> CuckooFilter<H> {
    /// Stores an item, even if it is already present: see [Duplicates](Self#duplicates).
    ///
    /// # Errors
    /// [`Full`] if there is no room. The filter is then bit for bit as it was.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// filter.insert(&42u64)?;
    /// assert!(filter.contains("alice") && filter.contains(&42u64));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert<T: ?Sized>(&mut self, item: &T) -> Result<(), Full>
    where
        H: HashItem<T>,
    {
        self.insert_uniform(self.uniform(item))
    }

    /// [`insert`](Self::insert) for a hash: one from [`hash`](Self::hash), or any other number whose 64 bits are uniformly
    /// distributed, or a sequence of integers. See [Hashes](Self#hashes).
    ///
    /// # Errors
    /// As `insert`.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<(), Full> {
        self.insert_uniform(self.spread(hash))
    }

    #[inline]
    fn insert_uniform(&mut self, hash: Uniform) -> Result<(), Full> {
        if self.raw.insert(hash) { Ok(()) } else { Err(self.raw.refusal(hash, 0)) }
    }

    /// Stores an item unless [`contains`](Self::contains) returns true for it. True if it was stored.
    ///
    /// With probability ε, `contains` returns true for an item that was never inserted, which is then not stored. It is found
    /// all the same; but removing it removes the fingerprint of another item. So do not mix this with removals unless you know
    /// what is in the filter.
    ///
    /// # Errors
    /// [`Full`] if there is no room for the item. The filter is then bit for bit as it was.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// assert!(filter.insert_unique("alice")?);
    /// assert!(!filter.insert_unique("alice")?);
    /// assert_eq!(filter.len(), 1);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert_unique<T: ?Sized>(&mut self, item: &T) -> Result<bool, Full>
    where
        H: HashItem<T>,
    {
        self.insert_unique_uniform(self.uniform(item))
    }

    /// [`insert_unique`](Self::insert_unique) for a hash.
    ///
    /// # Errors
    /// As `insert_unique`.
    #[inline]
    pub fn insert_unique_hash(&mut self, hash: u64) -> Result<bool, Full> {
        self.insert_unique_uniform(self.spread(hash))
    }

    #[inline]
    pub(super) fn insert_unique_uniform(&mut self, hash: Uniform) -> Result<bool, Full> {
        if self.raw.contains(hash) {
            return Ok(false);
        }
        self.insert_uniform(hash).map(|()| true)
    }

    /// Removes one copy of an item; true if one was found. Read [Removal](Self#removal) first.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// assert!(filter.remove("alice"));
    /// assert!(!filter.contains("alice"));
    /// assert!(!filter.remove("alice"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn remove<T: ?Sized>(&mut self, item: &T) -> bool
    where
        H: HashItem<T>,
    {
        self.raw.remove(self.uniform(item))
    }

    /// [`remove`](Self::remove) for a hash.
    #[inline]
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        self.raw.remove(self.spread(hash))
    }

    /// Removes all items. The table keeps its size.
    pub fn clear(&mut self) {
        self.raw.clear();
    }
}

impl<H, S: Storage> CuckooFilter<H, S> {
    /// False: the item is not in the filter. True: it probably is.
    #[inline]
    #[must_use]
    pub fn contains<T: ?Sized>(&self, item: &T) -> bool
    where
        H: HashItem<T>,
    {
        self.raw.contains(self.uniform(item))
    }

    /// [`contains`](Self::contains) for a hash.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.raw.contains(self.spread(hash))
    }

    /// How many copies of an item are in the filter: at least as many as were inserted and not removed. The count is higher
    /// only by chance, where other items have the same fingerprint and buckets.
    #[inline]
    #[must_use]
    pub fn count<T: ?Sized>(&self, item: &T) -> u32
    where
        H: HashItem<T>,
    {
        self.raw.count(self.uniform(item))
    }

    /// [`count`](Self::count) for a hash.
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> u32 {
        self.raw.count(self.spread(hash))
    }

    /// The hash of an item, as the `*_hash` methods take it: hash once, query several filters with equal hashers and seeds.
    /// See [Hashes](Self#hashes).
    #[inline]
    #[must_use]
    pub fn hash<T: ?Sized>(&self, item: &T) -> u64
    where
        H: HashItem<T>,
    {
        self.uniform(item).hash(self.raw.params().addressing())
    }

    /// What the hasher makes of an item.
    #[inline]
    pub(super) fn uniform<T: ?Sized>(&self, item: &T) -> Uniform
    where
        H: HashItem<T>,
    {
        Uniform(self.hasher.hash_item(self.raw.params().seed(), item))
    }

    /// What a hash of the user's becomes.
    #[inline]
    fn spread(&self, hash: u64) -> Uniform {
        Uniform::of(self.raw.params().addressing(), hash)
    }
}
