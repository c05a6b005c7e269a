//! Operations on single items.

use super::{CuckooFilter, Full};
use crate::{hash::HashItem, storage::Storage, table::Uniform};

impl<H> CuckooFilter<H> {
    /// Inserts an item, even if it is already present: see [Duplicates](Self#duplicates).
    ///
    /// # Errors
    /// [`Full`] if no slot was found for the item. The filter is then unchanged, bit for bit.
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

    #[inline]
    pub(crate) fn insert_uniform(&mut self, hash: Uniform) -> Result<(), Full> {
        if self.raw.insert(hash) { Ok(()) } else { Err(self.raw.refusal(hash, 0)) }
    }

    /// Inserts an item unless [`contains`](Self::contains) returns true for it. Returns true if it was inserted.
    ///
    /// With probability ε, `contains` returns true for an item that was never inserted, and the item is not stored. It will be
    /// found all the same, but removing it later removes the fingerprint of another item. So combine this method with removal
    /// only if you know which items were stored.
    ///
    /// # Errors
    /// [`Full`] if no slot was found for the item. The filter is then unchanged, bit for bit.
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

    #[inline]
    pub(super) fn insert_unique_uniform(&mut self, hash: Uniform) -> Result<bool, Full> {
        if self.raw.contains(hash) {
            return Ok(false);
        }
        self.insert_uniform(hash).map(|()| true)
    }

    /// Removes one copy of an item. Returns true if a copy was found. Read [Removal](Self#removal) first.
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

    /// Removes all items. The table keeps its size. Takes time proportional to the table.
    pub fn clear(&mut self) {
        self.raw.clear();
    }
}

impl<H, S: Storage> CuckooFilter<H, S> {
    /// False if the item is not in the filter; true if it probably is.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// assert!(filter.contains("alice"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn contains<T: ?Sized>(&self, item: &T) -> bool
    where
        H: HashItem<T>,
    {
        self.raw.contains(self.uniform(item))
    }

    /// The number of copies of an item in the filter: at least as many as were inserted and not removed. Other items with the
    /// same fingerprint and buckets make the count too high, with probability at most ε.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// filter.insert("alice")?;
    /// assert_eq!(filter.count("alice"), 2);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn count<T: ?Sized>(&self, item: &T) -> u32
    where
        H: HashItem<T>,
    {
        self.raw.count(self.uniform(item))
    }

    /// The hash of an item, for [`Prehashed`](crate::Prehashed). Hash once and query several filters, if their addressing, hashers
    /// and seeds are equal. See [Hashes](Self#hashes).
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, Prehashed};
    /// let builder = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001);
    /// let (mut today, yesterday) = (builder.clone().build()?, builder.build()?);
    /// let key = Prehashed(today.hash("alice"));
    /// today.insert(&key)?;
    /// assert!(today.contains(&key) && !yesterday.contains(&key));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn hash<T: ?Sized>(&self, item: &T) -> u64
    where
        H: HashItem<T>,
    {
        self.uniform(item).hash(self.raw.params().addressing())
    }

    /// The uniform hash of an item.
    #[inline]
    pub(crate) fn uniform<T: ?Sized>(&self, item: &T) -> Uniform
    where
        H: HashItem<T>,
    {
        let params = self.raw.params();
        Uniform(self.hasher.place_item(params.seed(), params.addressing(), item))
    }
}
