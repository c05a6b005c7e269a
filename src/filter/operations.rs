//! The operations on items. Each public filter is a struct of a core and a hasher, and has these methods of its own: the macros write
//! the bodies, the text and the examples once.
//!
//! A macro takes the generics, the type and the type of its hasher. `example` is the expression by which the examples build a filter,
//! and `open` the line that turns it into a view; other filters have a hidden comment there.

use alloc::collections::VecDeque;
use core::mem;

use super::Core;
use crate::{hash::HashItem, kernel::BATCH};

/// Lookups and properties, [`Filter`](crate::Filter), [`Contains`](crate::Contains) and `Display`.
macro_rules! lookups {
    (impl [$($generics:tt)*] $filter:ty, $hasher:ty; example $example:literal, open $open:literal) => {
        impl<$($generics)*> $filter {
            /// False if the item is not in the filter; true if it probably is.
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

            /// The number of copies of an item in the filter: at least as many as were inserted and not removed. Other items with the
            /// same fingerprint and buckets make the count too high, with probability at most ε.
            ///
            /// A growing filter compares all stored bits, including those kept for growth: an item that [`contains`](Self::contains)
            /// finds by chance usually counts 0.
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

            /// [`contains`](Self::contains) for each item; writes the result for `items[i]` to `found[i]`.
            ///
            /// With the vector kernels, two to three times as fast as single lookups, because the memory accesses of many items
            /// overlap (docs/PERFORMANCE.md).
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
                $crate::hash::same_length(hashes.len(), found.len());
                self.core.contains_each(&hashes, found);
            }

            /// The number of items for which [`contains`](Self::contains) returns true. As fast as
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
            /// [`contains_batch`](Self::contains_batch). Takes up to 64 items ahead from the iterator.
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

            /// The hash of an item as a [`Prehashed`](crate::Prehashed) key: the number of
            /// [`Prehashed::of`](crate::Prehashed::of) with this filter's hasher and seed.
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

            /// The number of items in the filter, counting duplicates.
            #[must_use]
            pub fn len(&self) -> usize {
                self.core.len()
            }

            /// True if the filter holds no items.
            #[must_use]
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// The number of different items that the filter is planned for, at least the number requested. They fit, except with a
            /// probability below 10⁻⁴ ([`Params::capacity`](crate::Params::capacity)). A growing filter takes more than its maximal
            /// capacity, which is this number, but then needs longer.
            #[must_use]
            pub fn capacity(&self) -> usize {
                self.core.capacity()
            }

            /// The number of slots in all tables; for a table of m buckets of b slots, m·b. Where a growing filter has a list of its few items
            /// instead, each of them counts as one.
            #[must_use]
            pub fn slots(&self) -> usize {
                $crate::bits::in_memory(self.core.slots())
            }

            /// The load α: the fraction of the slots that are occupied, 0 to 1. A growing filter splits full tables, so its load stays
            /// about the same while it grows.
            #[must_use]
            pub fn load_factor(&self) -> f64 {
                self.core.load_factor()
            }

            /// The memory used by the filter, in bytes: the struct itself, tables with their padding, directories and locks. For a
            /// view, the caller's bytes are counted as well.
            #[must_use]
            pub fn size_in_bytes(&self) -> usize {
                size_of::<Self>() + self.core.bytes_behind()
            }

            /// Bits per item; infinite for an empty filter. For a filter of fixed size, bits of its table; for others, of all memory
            /// that [`size_in_bytes`](Self::size_in_bytes) counts.
            #[must_use]
            pub fn bits_per_item(&self) -> f64 {
                8.0 * self.core.bytes_of_items(self.size_in_bytes()) as f64 / self.len() as f64
            }

            /// The expected false-positive rate ε at the current load, 0 to 1
            /// ([`Params::false_positive_rate_at`](crate::Params::false_positive_rate_at)); with copies beside the table, its upper
            /// bound. For a growing filter, the mean over all shards, weighted by the share of the hashes that lead to each, in time
            /// proportional to the number of shards.
            #[must_use]
            pub fn false_positive_rate(&self) -> f64 {
                self.core.false_positive_rate()
            }

            /// Measures the false-positive rate by looking up `samples` pseudo-random hashes, the same ones in every call; 0 if
            /// `samples` is 0.
            ///
            /// The standard error is about √(ε/samples): 100/ε samples measure ε to within 10 %.
            #[must_use]
            pub fn measure_false_positive_rate(&self, samples: usize) -> f64 {
                $crate::filter::measured_rate(&self.core, samples)
            }

            /// The hasher.
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

        /// A one-line summary: what the filter is, items, load or shards, size, bits per item (unless it is nearly empty) and
        /// false-positive rate.
        impl<$($generics)*> core::fmt::Display for $filter {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                $crate::filter::summarized(&self.core, self.size_in_bytes(), f)
            }
        }
    };
}
pub(crate) use lookups;

/// Changes by one owner, and [`Insert`](crate::Insert).
macro_rules! changes {
    (impl [$($generics:tt)*] $filter:ty, $hasher:ty; example $example:literal) => {
        impl<$($generics)*> $filter {
            /// Inserts an item, even if it is already present: see [Duplicates](crate::CuckooFilter#duplicates). A growing filter
            /// grows if it has to.
            ///
            /// Takes constant time on average; an insertion that splits a shard of a growing filter takes a fraction of a
            /// millisecond.
            ///
            /// # Errors
            /// If the item is refused, for a reason that [`InsertErrorKind`](crate::InsertErrorKind) lists. The filter is then
            /// unchanged, bit for bit.
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

            /// Inserts an item unless [`contains`](Self::contains) returns true for it. Returns true if it was inserted.
            ///
            /// With probability ε, `contains` returns true for an item that was never inserted, and the item is not stored. It will be
            /// found all the same, but removing it later removes the fingerprint of another item. So combine this method with removal
            /// only if you know which items were stored.
            ///
            /// A growing filter compares all stored bits, including those kept for growth. So it may insert an item for which
            /// `contains` already returns true by chance, and an item that it skips is found at every later size.
            ///
            /// # Errors
            /// As [`insert`](Self::insert).
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

            /// [`insert`](Self::insert) for each item, in order. Prefetches the buckets of 64 items at once.
            ///
            /// # Errors
            /// That of the first item that is refused. Items before its [`position`](crate::InsertError::position) are in the filter;
            /// the refused item and those after it are not.
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

            /// [`insert_unique`](Self::insert_unique) for each item, in order; writes to `inserted[i]` whether `items[i]` was
            /// inserted. Prefetches the buckets of 64 items at once, so it takes less time than single calls in a filter larger than
            /// the caches.
            ///
            /// # Errors
            /// That of the first item that is refused. Items before its [`position`](crate::InsertError::position) are in the filter.
            /// The refused item and those after it are not, and `inserted` is false for them, as for those that were there already.
            ///
            /// # Panics
            /// If the slices differ in length.
            ///
            /// # Example
            /// A crawler asks which links are new:
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
                $crate::hash::same_length(hashes.len(), inserted.len());
                self.core.insert_all_unique(&hashes, inserted)
            }

            /// [`insert`](Self::insert) for each item of an iterator, in order. Returns the number of items. Works in batches of 64,
            /// as fast as [`insert_batch`](Self::insert_batch).
            ///
            /// # Errors
            /// That of the first item that is refused. Items before its [`position`](crate::InsertError::position) are in the filter;
            /// the refused item and those after it are not. Up to 63 items after it have already been taken from the iterator, so
            /// resume from the original sequence at that position.
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
                self.core.insert_each($crate::hash::Hashed::new(items, &self.hasher, seed))
            }

            /// [`insert_unique`](Self::insert_unique) for each item of an iterator, in order. Returns the number of items stored.
            ///
            /// # Errors
            /// That of the first item that is refused. Its [`position`](crate::InsertError::position) is the number of items before
            /// it, stored or skipped. The refused item and those after it are not in the filter; up to 63 items after it have already
            /// been taken from the iterator.
            ///
            /// # Example
            /// Words of a text, many of which occur repeatedly:
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
                self.core.insert_each_unique($crate::hash::Hashed::new(items, &self.hasher, seed))
            }

            /// Removes all items. A table of fixed size keeps its size; a growing filter frees the memory that it has grown by. Takes
            /// time proportional to the tables.
            pub fn clear(&mut self) {
                self.core.clear();
            }
        }

        $crate::filter::removals! { impl [$($generics)*] $filter, $hasher; example $example }
        $crate::filter::insert_by_own_methods! { [$($generics)*] $filter, $hasher, $filter }
    };
}
pub(crate) use changes;

/// Removal by one owner.
macro_rules! removals {
    (impl [$($generics:tt)*] $filter:ty, $hasher:ty; example $example:literal) => {
        impl<$($generics)*> $filter {
            /// Removes one copy of an item. Returns true if a copy was found. Read [Removal](crate::CuckooFilter#removal) first.
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

            /// [`remove`](Self::remove) for each item, in order; writes to `removed[i]` whether `items[i]` was found.
            ///
            /// # Panics
            /// If the slices differ in length.
            pub fn remove_batch<I: $crate::hash::Items<$hasher> + ?Sized>(&mut self, items: &I, removed: &mut [bool]) {
                let hashes = items.hashes(&self.hasher, self.core.seed());
                $crate::hash::same_length(hashes.len(), removed.len());
                self.core.remove_all(&hashes, removed);
            }
        }
    };
}
pub(crate) use removals;

/// Iterates over items and whether a filter contains them.
#[must_use = "iterators are lazy: nothing is looked up until the iterator is consumed"]
pub(crate) struct ContainsIter<'a, C, H, I: Iterator> {
    core: &'a C,
    hasher: &'a H,
    items: I,
    batch: VecDeque<I::Item>,
    /// One bit for each item of `batch`; the lowest bit is the next answer.
    answers: u64,
}

impl<'a, C, H, I: Iterator> ContainsIter<'a, C, H, I> {
    pub fn new(core: &'a C, hasher: &'a H, items: I) -> Self {
        Self { core, hasher, items, batch: VecDeque::new(), answers: 0 }
    }
}

impl<C: Core, H: HashItem<I::Item>, I: Iterator> Iterator for ContainsIter<'_, C, H, I> {
    type Item = (I::Item, bool);

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.is_empty() {
            let uniform = |item: &I::Item| self.hasher.uniform(self.core.seed(), item);
            if self.batch.try_reserve(BATCH).is_err() {
                // Without memory for a batch, one after the other.
                let item = self.items.next()?;
                let found = self.core.contains(uniform(&item));
                return Some((item, found));
            }
            // If hashing an item panics, `self` must not keep a batch without its answers.
            let mut batch = mem::take(&mut self.batch);
            batch.extend(self.items.by_ref().take(BATCH));
            let mut hashes = [0; BATCH];
            for (hash, item) in hashes.iter_mut().zip(&batch) {
                *hash = uniform(item).0;
            }
            self.core.contains_all(&&hashes[..batch.len()], |answers| self.answers = answers);
            self.batch = batch;
        }
        let item = self.batch.pop_front()?;
        let found = self.answers & 1 == 1;
        self.answers >>= 1;
        Some((item, found))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (ahead, (least, most)) = (self.batch.len(), self.items.size_hint());
        (least.saturating_add(ahead), most.and_then(|most| most.checked_add(ahead)))
    }
}
