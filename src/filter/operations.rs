//! The operations on items. Each public filter is a struct of a core and a hasher with inherent methods. These macros write the
//! bodies, the text and the examples of the methods once.
//!
//! A macro takes the generics, the filter type and its hasher type. `example` is the expression that builds a filter in the
//! examples. `open` is the line that turns it into a view; for other filters, it is a hidden comment.

use alloc::collections::VecDeque;
use core::mem;

use super::Core;
use crate::{hash::HashItem, kernel::BATCH};

/// Implements lookups and properties, [`Filter`](crate::Filter), [`Contains`](crate::Contains) and `Display`.
macro_rules! lookups {
    (impl [$($generics:tt)*] $filter:ty, $hasher:ty; example $example:literal, open $open:literal) => {
        impl<$($generics)*> $filter {
            /// Returns false if the item is not in the filter, and true if it probably is.
            ///
            /// # Example
            /// ```
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// filter.insert("alice")?;
            #[doc = $open]
            /// assert!(filter.contains("alice"));
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            #[allow(clippy::inline_always, reason = "a call takes as long as the rest of a lookup in a cache")]
            #[inline(always)]
            #[must_use]
            pub fn contains<T: ?Sized>(&self, item: &T) -> bool
            where
                $hasher: $crate::hash::HashItem<T>,
            {
                self.core.contains(self.hash_of(item))
            }

            /// Returns the number of copies of an item in the filter: at least as many as were inserted and not removed. Other
            /// items with the same fingerprint and buckets make the count too high, with probability at most ε.
            ///
            /// A growing filter compares all stored bits, including those kept for growth. So the count of an item that
            /// [`contains`](Self::contains) finds by chance is usually 0.
            ///
            /// # Example
            /// ```
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// filter.insert("alice")?;
            /// filter.insert("alice")?;
            #[doc = $open]
            /// assert_eq!(filter.count("alice"), 2);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            #[inline]
            #[must_use]
            pub fn count<T: ?Sized>(&self, item: &T) -> u32
            where
                $hasher: $crate::hash::HashItem<T>,
            {
                self.core.count(self.hash_of(item))
            }

            /// Looks up each item, as [`contains`](Self::contains) does, and writes the result for `items[i]` to `found[i]`.
            ///
            /// With the vector kernels, an item takes a fifth to nine tenths of the time of a single lookup, because the memory
            /// accesses of many items overlap (docs/PERFORMANCE.md).
            ///
            /// # Panics
            /// If the slices differ in length.
            ///
            /// # Example
            /// ```
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// filter.insert_batch(&["alice", "bob"])?;
            #[doc = $open]
            /// let mut found = [false; 3];
            /// filter.contains_batch(&["alice", "bob", "carol"], &mut found);
            /// assert_eq!(found, [true, true, false]);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn contains_batch<I: $crate::hash::Items<$hasher> + ?Sized>(&self, items: &I, found: &mut [bool]) {
                let hashes = items.hashes(&self.hasher, self.core.seed());
                $crate::hash::assert_same_length(hashes.len(), found.len());
                self.core.contains_into(&hashes, found);
            }

            /// Returns the number of items that [`contains`](Self::contains) finds. As fast as
            /// [`contains_batch`](Self::contains_batch), without a slice for the results.
            ///
            /// # Example
            /// ```
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// filter.insert_batch(&["alice", "bob"])?;
            #[doc = $open]
            /// assert_eq!(filter.count_members(&["alice", "bob", "carol"]), 2);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            #[must_use]
            pub fn count_members<I: $crate::hash::Items<$hasher> + ?Sized>(&self, items: &I) -> usize {
                self.core.count_members(&items.hashes(&self.hasher, self.core.seed()))
            }

            /// Looks up the items of an iterator and yields each one with its result. As fast as
            /// [`contains_batch`](Self::contains_batch). Reads up to 64 items ahead.
            ///
            /// # Example
            /// ```
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// filter.insert("alice")?;
            #[doc = $open]
            /// let names = ["alice", "bob"].into_iter();
            /// let unknown: Vec<&str> = filter.contains_iter(names).filter(|(_, found)| !found).map(|(name, _)| name).collect();
            /// assert_eq!(unknown, ["bob"]);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn contains_iter<I: IntoIterator>(&self, items: I) -> impl Iterator<Item = (I::Item, bool)>
            where
                $hasher: $crate::hash::HashItem<I::Item>,
            {
                $crate::filter::ContainsIter::new(&self.core, &self.hasher, items.into_iter())
            }

            /// Returns the hash of an item for a [`Prehashed`](crate::Prehashed) key: the number that
            /// [`Prehashed::of`](crate::Prehashed::of) computes with this filter's hasher and seed.
            ///
            /// # Example
            /// ```
            /// use koel::Prehashed;
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// filter.insert("alice")?;
            #[doc = $open]
            /// let key = Prehashed(filter.hash("alice"));
            /// assert!(filter.contains(&key));
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            #[inline]
            #[must_use]
            pub fn hash<T: ?Sized>(&self, item: &T) -> u64
            where
                $hasher: $crate::hash::HashItem<T>,
            {
                self.hash_of(item).prehashed()
            }

            #[inline]
            fn hash_of<T: ?Sized>(&self, item: &T) -> $crate::hash::Uniform
            where
                $hasher: $crate::hash::HashItem<T>,
            {
                <$hasher as $crate::hash::HashItem<T>>::uniform(&self.hasher, self.core.seed(), item)
            }

            /// Returns the number of items in the filter, including copies.
            #[must_use]
            pub fn len(&self) -> usize {
                self.core.len()
            }

            /// Returns true if the filter holds no items.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns the number of distinct items that the filter is planned for, at least the number requested. They fit, except
            /// with a probability below 10⁻⁴ ([`Params::capacity`](crate::Params::capacity)). For a growing filter, this is its
            /// maximum capacity. It takes more items, but operations then take longer.
            #[must_use]
            pub fn capacity(&self) -> usize {
                self.core.capacity()
            }

            /// Returns the number of slots in all tables: m·b for a table of m buckets of b slots. Where a shard of a growing filter
            /// is a list, each of its distinct items counts as one slot.
            #[must_use]
            pub fn slots(&self) -> usize {
                $crate::bits::in_memory(self.core.slots())
            }

            /// Returns the load factor α: the fraction of slots that are occupied, 0 to 1. A growing filter splits full tables,
            /// so its load factor stays about the same while it grows.
            #[must_use]
            pub fn load_factor(&self) -> f64 {
                self.core.load_factor()
            }

            /// Returns the memory that the filter uses, in bytes: the struct itself, tables with their padding, extra copies,
            /// directories and locks. For a view, this includes the caller's bytes, except for a fixed filter's header.
            #[must_use]
            pub fn size_in_bytes(&self) -> usize {
                size_of::<Self>() + self.core.external_bytes()
            }

            /// Returns the number of bits per item; infinite for an empty filter. For a filter of fixed size, it counts the table
            /// and extra copies; for others, all memory that [`size_in_bytes`](Self::size_in_bytes) counts.
            #[must_use]
            pub fn bits_per_item(&self) -> f64 {
                8.0 * self.core.bytes_of_items(self.size_in_bytes()) as f64 / self.len() as f64
            }

            /// Returns the expected false-positive rate ε at the current load, 0 to 1
            /// ([`Params::false_positive_rate_at`](crate::Params::false_positive_rate_at)). With copies beside the table, it
            /// returns an upper bound. For a growing filter, it returns the mean over all shards, weighted by each shard's share
            /// of the hashes, in time proportional to the number of shards. The formula is for items that were inserted whether or
            /// not the filter seemed to contain them. Where each of them looked new, as for `insert_unique` and unions, the rate is
            /// about ε/2 of itself higher, but not higher than the promised one.
            #[must_use]
            pub fn false_positive_rate(&self) -> f64 {
                self.core.false_positive_rate()
            }

            /// Measures the false-positive rate by looking up `samples` pseudo-random hashes, which are the same in every call.
            /// Returns 0 if `samples` is 0.
            ///
            /// The standard error is about √(ε/samples): 100/ε samples measure ε to within 10 %.
            #[must_use]
            pub fn measure_false_positive_rate(&self, samples: usize) -> f64 {
                $crate::filter::measure_rate(&self.core, samples)
            }

            /// Returns the hasher.
            #[must_use]
            pub fn hasher(&self) -> &$hasher {
                &self.hasher
            }
        }

        impl<T: ?Sized, $($generics)*> $crate::Contains<T> for $filter
        where
            $hasher: $crate::hash::HashItem<T>,
        {
            fn hash(&self, item: &T) -> u64 {
                self.hash(item)
            }

            fn contains(&self, item: &T) -> bool {
                self.contains(item)
            }

            fn contains_batch(&self, items: &[T], found: &mut [bool])
            where
                T: Sized,
            {
                self.contains_batch(items, found);
            }

            fn count(&self, item: &T) -> u32 {
                self.count(item)
            }

            fn count_members(&self, items: &[T]) -> usize
            where
                T: Sized,
            {
                self.count_members(items)
            }

            fn by_hash(&self) -> &(dyn $crate::Contains + '_) {
                self
            }
        }

        impl<$($generics)*> $crate::Filter for $filter {
            fn len(&self) -> usize {
                self.len()
            }

            fn capacity(&self) -> usize {
                self.capacity()
            }

            fn load_factor(&self) -> f64 {
                self.load_factor()
            }

            fn size_in_bytes(&self) -> usize {
                self.size_in_bytes()
            }

            fn bits_per_item(&self) -> f64 {
                self.bits_per_item()
            }

            fn false_positive_rate(&self) -> f64 {
                self.false_positive_rate()
            }
        }

        /// A one-line summary: kind of filter, items, load or shards, size, bits per item (unless it is nearly empty) and
        /// false-positive rate.
        impl<$($generics)*> core::fmt::Display for $filter {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                $crate::filter::write_summary(&self.core, self.size_in_bytes(), f)
            }
        }
    };
}
pub(crate) use lookups;

/// Implements changes through `&mut self`, and [`Insert`](crate::Insert).
macro_rules! changes {
    (impl [$($generics:tt)*] $filter:ty, $hasher:ty; example $example:literal) => {
        impl<$($generics)*> $filter {
            /// Inserts an item, even if it is already present ([Duplicates](crate::CuckooFilter#duplicates)). A growing filter
            /// grows if necessary.
            ///
            /// Takes constant time on average. An insertion that splits a shard of a growing filter takes a fraction of a
            /// millisecond.
            ///
            /// # Errors
            /// If the item is refused; [`InsertErrorKind`](crate::InsertErrorKind) lists the reasons. The filter is then unchanged,
            /// bit for bit.
            ///
            /// # Example
            /// ```
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// filter.insert("alice")?;
            /// filter.insert(&42u64)?;
            /// assert!(filter.contains("alice") && filter.contains(&42u64));
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            #[inline]
            pub fn insert<T: ?Sized>(&mut self, item: &T) -> Result<(), $crate::InsertError>
            where
                $hasher: $crate::hash::HashItem<T>,
            {
                let hash = self.hash_of(item);
                self.core.insert(hash)
            }

            /// Inserts an item unless the filter has it already. Returns true if the item was inserted.
            ///
            /// A new item is mistaken for one that the filter has, and skipped, with a probability of at most ε. It is found all
            /// the same, but removing it later removes the fingerprint of another item. So combine this method with removal only
            /// if you know which items were stored.
            ///
            /// A filter of fixed size skips exactly the items for which [`contains`](Self::contains) returns true. A growing filter
            /// skips fewer: it compares all stored bits here, and `contains` only some of them. So it may insert an item that
            /// `contains` already finds by chance, and an item that it skips is found at every later size.
            ///
            /// # Errors
            /// The same as for [`insert`](Self::insert).
            ///
            /// # Example
            /// ```
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// assert!(filter.insert_unique("alice")?);
            /// assert!(!filter.insert_unique("alice")?);
            /// assert_eq!(filter.len(), 1);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            #[inline]
            pub fn insert_unique<T: ?Sized>(&mut self, item: &T) -> Result<bool, $crate::InsertError>
            where
                $hasher: $crate::hash::HashItem<T>,
            {
                let hash = self.hash_of(item);
                self.core.insert_unique(hash)
            }

            /// Inserts each item, in order, as [`insert`](Self::insert) does. Prefetches the buckets of 64 items at a time.
            ///
            /// # Errors
            /// The error of the first refused item. Items before its [`position`](crate::InsertError::position) are in the
            /// filter; the refused item and those after it are not.
            ///
            /// # Example
            /// ```
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// filter.insert_batch(&["alice", "bob"])?;
            /// assert_eq!(filter.len(), 2);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn insert_batch<I: $crate::hash::Items<$hasher> + ?Sized>(&mut self, items: &I) -> Result<(), $crate::InsertError> {
                let hashes = items.hashes(&self.hasher, self.core.seed());
                self.core.insert_all(&hashes)
            }

            /// Inserts each item that is not present, in order, as [`insert_unique`](Self::insert_unique) does. Sets
            /// `inserted[i]` to true if `items[i]` was inserted. Prefetches the buckets of 64 items at a time, so it takes less
            /// time than single calls in a filter larger than the caches.
            ///
            /// # Errors
            /// The error of the first refused item. Items before its [`position`](crate::InsertError::position) are in the
            /// filter. The refused item and those after it are not; `inserted` is false for them and for items that were already
            /// present.
            ///
            /// # Panics
            /// If the slices differ in length.
            ///
            /// # Example
            /// A crawler finds out which links are new:
            /// ```
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// filter.insert("/about")?;
            /// let links = ["/", "/about", "/news", "/"];
            /// let mut new = [false; 4];
            /// filter.insert_unique_batch(&links, &mut new)?;
            /// assert_eq!(new, [true, false, true, false]);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn insert_unique_batch<I: $crate::hash::Items<$hasher> + ?Sized>(
                &mut self,
                items: &I,
                inserted: &mut [bool],
            ) -> Result<(), $crate::InsertError> {
                let hashes = items.hashes(&self.hasher, self.core.seed());
                $crate::hash::assert_same_length(hashes.len(), inserted.len());
                self.core.insert_all_unique(&hashes, inserted)
            }

            /// Inserts each item of an iterator, in order, as [`insert`](Self::insert) does. Returns the number of items. Works in
            /// batches of 64, as fast as [`insert_batch`](Self::insert_batch).
            ///
            /// # Errors
            /// The error of the first refused item. Items before its [`position`](crate::InsertError::position) are in the
            /// filter; the refused item and those after it are not. Up to 63 items after it have already been taken from the
            /// iterator, so resume from the original sequence at that position.
            ///
            /// # Example
            /// ```
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// let inserted = filter.insert_iter("to be or not to be".split(' '))?;
            /// assert_eq!((inserted, filter.len(), filter.count("to")), (6, 6, 2));
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn insert_iter<I: IntoIterator>(&mut self, items: I) -> Result<usize, $crate::InsertError>
            where
                $hasher: $crate::hash::HashItem<I::Item>,
            {
                let seed = self.core.seed();
                self.core.insert_iter($crate::hash::Hashed::new(items, &self.hasher, seed))
            }

            /// Inserts each item of an iterator that is not present, in order, as [`insert_unique`](Self::insert_unique) does.
            /// Returns the number of items stored.
            ///
            /// # Errors
            /// The error of the first refused item. Its [`position`](crate::InsertError::position) is the number of items before
            /// it, stored or skipped. The refused item and those after it are not in the filter; up to 63 items after it have
            /// already been taken from the iterator.
            ///
            /// # Example
            /// The words of a text, some of which repeat:
            /// ```
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// assert_eq!(filter.insert_unique_iter("to be or not to be".split(' '))?, 4);
            /// assert_eq!(filter.len(), 4);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn insert_unique_iter<I: IntoIterator>(&mut self, items: I) -> Result<usize, $crate::InsertError>
            where
                $hasher: $crate::hash::HashItem<I::Item>,
            {
                let seed = self.core.seed();
                self.core.insert_unique_iter($crate::hash::Hashed::new(items, &self.hasher, seed))
            }

            /// Removes all items. A filter of fixed size keeps its table; a growing filter frees the memory that it has grown by.
            /// Takes time proportional to the tables.
            pub fn clear(&mut self) {
                self.core.clear();
            }
        }

        $crate::filter::removals! { impl [$($generics)*] $filter, $hasher; example $example }
        $crate::filter::insert_by_own_methods! { [$($generics)*] $filter, $hasher, $filter }
    };
}
pub(crate) use changes;

/// Implements removal through `&mut self`.
macro_rules! removals {
    (impl [$($generics:tt)*] $filter:ty, $hasher:ty; example $example:literal) => {
        impl<$($generics)*> $filter {
            /// Removes one copy of an item. Returns true if a copy was found. Remove only items that were inserted
            /// ([Removal](crate::CuckooFilter#removal)).
            ///
            /// # Example
            /// ```
            #[doc = concat!("let mut filter = koel::", $example, ";")]
            /// filter.insert("alice")?;
            /// assert!(filter.remove("alice"));
            /// assert!(!filter.contains("alice"));
            /// assert!(!filter.remove("alice"));
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            #[inline]
            pub fn remove<T: ?Sized>(&mut self, item: &T) -> bool
            where
                $hasher: $crate::hash::HashItem<T>,
            {
                let hash = self.hash_of(item);
                self.core.remove(hash)
            }

            /// Removes one copy of each item, in order, as [`remove`](Self::remove) does. Sets `removed[i]` to true if `items[i]`
            /// was found, otherwise to false.
            ///
            /// # Panics
            /// If the slices differ in length.
            pub fn remove_batch<I: $crate::hash::Items<$hasher> + ?Sized>(&mut self, items: &I, removed: &mut [bool]) {
                let hashes = items.hashes(&self.hasher, self.core.seed());
                $crate::hash::assert_same_length(hashes.len(), removed.len());
                self.core.remove_all(&hashes, removed);
            }
        }
    };
}
pub(crate) use removals;

/// An iterator over items, each with its lookup result.
#[must_use = "iterators are lazy: nothing is looked up until the iterator is consumed"]
pub(crate) struct ContainsIter<'a, C, H, I: Iterator> {
    core: &'a C,
    hasher: &'a H,
    items: I,
    batch: VecDeque<I::Item>,
    /// The results for `batch`, one bit an item; the lowest bit is the next result.
    results: u64,
}

impl<'a, C, H, I: Iterator> ContainsIter<'a, C, H, I> {
    pub fn new(core: &'a C, hasher: &'a H, items: I) -> Self {
        Self { core, hasher, items, batch: VecDeque::new(), results: 0 }
    }
}

impl<C: Core, H: HashItem<I::Item>, I: Iterator> Iterator for ContainsIter<'_, C, H, I> {
    type Item = (I::Item, bool);

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.is_empty() {
            let uniform = |item: &I::Item| self.hasher.uniform(self.core.seed(), item);
            if self.batch.try_reserve(BATCH).is_err() {
                // Without memory for a batch, look up a single item.
                let item = self.items.next()?;
                let found = self.core.contains(uniform(&item));
                return Some((item, found));
            }
            // If hashing an item panics, `self` must not keep a batch without results.
            let mut batch = mem::take(&mut self.batch);
            batch.extend(self.items.by_ref().take(BATCH));
            let mut hashes = [0; BATCH];
            for (hash, item) in hashes.iter_mut().zip(&batch) {
                *hash = uniform(item).0;
            }
            self.core.contains_all(&&hashes[..batch.len()], |results| self.results = results);
            self.batch = batch;
        }
        let item = self.batch.pop_front()?;
        let found = self.results & 1 == 1;
        self.results >>= 1;
        Some((item, found))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (ahead, (lower, upper)) = (self.batch.len(), self.items.size_hint());
        (lower.saturating_add(ahead), upper.and_then(|upper| upper.checked_add(ahead)))
    }
}
