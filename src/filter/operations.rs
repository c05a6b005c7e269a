//! One item at a time.

use super::CuckooFilter;
use crate::{
    error::Full,
    hash::{Hasher, Item},
    storage::Storage,
    table::{Table as _, evict, fingerprints, with_table},
};

impl<H: Hasher> CuckooFilter<H> {
    /// Stores an item, also if it is there already: see [Duplicates](Self#duplicates).
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
    pub fn insert<T: Item + ?Sized>(&mut self, item: &T) -> Result<(), Full> {
        self.insert_hash(self.hash(item))
    }

    /// [`insert`](Self::insert) for a hash from [`hash`](Self::hash), or for any other whose 64 bits are uniform.
    ///
    /// # Errors
    /// As `insert`.
    #[inline]
    pub fn insert_hash(&mut self, hash: u64) -> Result<(), Full> {
        self.insert_hash_counted(hash).map(|_| ())
    }

    /// [`insert_hash`](Self::insert_hash), and how many items had to move to their other bucket to make room: 0 for nearly
    /// all in a table that is half full, 1 or 2 for most at 95 % in buckets of four (docs/TUNING.md). For experiments.
    ///
    /// # Errors
    /// As `insert`.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// assert_eq!(filter.insert_hash_counted(filter.hash("alice"))?, 0);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[inline]
    pub fn insert_hash_counted(&mut self, hash: u64) -> Result<u32, Full> {
        let evictions = if self.kernel.insert(&mut self.table, &self.address, hash) {
            Some(0)
        } else {
            with_table!(&mut self.table, table => evict(table, &self.address, hash))
        };
        match evictions {
            Some(evictions) => {
                self.len += 1;
                Ok(evictions)
            }
            None => Err(self.refusal(hash)),
        }
    }

    /// Stores an item unless it seems to be there. True if it was stored.
    ///
    /// With the probability ε an item that was not there is taken for one that was. It is found all the same; but if it
    /// is removed, what goes is the other's fingerprint. So do not mix this with removals unless the caller knows what is
    /// in the filter.
    ///
    /// # Errors
    /// [`Full`] if it is not there and there is no room. The filter is then bit for bit as it was.
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
    pub fn insert_unique<T: Item + ?Sized>(&mut self, item: &T) -> Result<bool, Full> {
        self.insert_unique_hash(self.hash(item))
    }

    /// [`insert_unique`](Self::insert_unique) for a hash.
    ///
    /// # Errors
    /// As `insert_unique`.
    #[inline]
    pub fn insert_unique_hash(&mut self, hash: u64) -> Result<bool, Full> {
        if self.contains_hash(hash) {
            return Ok(false);
        }
        self.insert_hash(hash).map(|()| true)
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
    pub fn remove<T: Item + ?Sized>(&mut self, item: &T) -> bool {
        self.remove_hash(self.hash(item))
    }

    /// [`remove`](Self::remove) for a hash.
    #[inline]
    pub fn remove_hash(&mut self, hash: u64) -> bool {
        let found = self.kernel.remove(&mut self.table, &self.address, hash);
        self.len -= usize::from(found);
        found
    }

    /// Removes everything. The table keeps its size.
    pub fn clear(&mut self) {
        self.table.clear();
        self.len = 0;
    }
}

impl<H: Hasher, S: Storage> CuckooFilter<H, S> {
    /// False: the item is not in the filter. True: it probably is.
    #[inline]
    #[must_use]
    pub fn contains<T: Item + ?Sized>(&self, item: &T) -> bool {
        self.contains_hash(self.hash(item))
    }

    /// [`contains`](Self::contains) for a hash.
    #[inline]
    #[must_use]
    pub fn contains_hash(&self, hash: u64) -> bool {
        self.kernel.contains(&self.table, &self.address, hash)
    }

    /// How many copies of an item are in the filter: no fewer than were inserted and not removed, and more only by
    /// chance, as others have the same fingerprint.
    #[inline]
    #[must_use]
    pub fn count<T: Item + ?Sized>(&self, item: &T) -> u32 {
        self.count_hash(self.hash(item))
    }

    /// [`count`](Self::count) for a hash.
    #[must_use]
    pub fn count_hash(&self, hash: u64) -> u32 {
        let ((first, second), fingerprint) = self.address.buckets(hash);
        let copies = |bucket| -> u32 {
            with_table!(&self.table, table => {
                fingerprints(&table.values(bucket)).map(|other| u32::from(other == fingerprint)).sum()
            })
        };
        let in_second = if second == first { 0 } else { copies(second) };
        in_second + copies(first)
    }

    /// The hash of an item, as the `*_hash` forms take it: hash once, ask several filters with the same hasher and seed.
    #[inline]
    #[must_use]
    pub fn hash<T: Item + ?Sized>(&self, item: &T) -> u64 {
        item.with_bytes(|bytes| self.hasher.hash(self.params.seed(), bytes))
    }

    /// What to say of an item that has no room.
    #[cold]
    pub(super) fn refusal(&self, hash: u64) -> Full {
        let ((first, second), _) = self.address.buckets(hash);
        let room = self.params.bucket_size() * (1 + u32::from(first != second));
        Full { items: self.len, slots: self.params.slots(), duplicate: self.count_hash(hash) == room }
    }
}
