//! Traits for code that accepts any kind of filter.

use alloc::{boxed::Box, rc::Rc};

use super::{CuckooFilter, Prehashed};
use crate::storage::Storage;

/// What every filter says of itself: a [`CuckooFilter`], a [`FilterView`](crate::FilterView), an
/// [`ElasticFilter`](crate::ElasticFilter), a `SharedFilter`, or a filter of Go's library (`go::GoFilter`) or of RedisBloom
/// (`redisbloom::RedisBloomFilter`). [`Contains`] adds queries.
///
/// The trait is dyn-compatible.
pub trait Filter {
    /// The number of items in the filter, counting duplicates.
    #[must_use]
    fn len(&self) -> usize;

    /// True if the filter holds no items.
    #[must_use]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The expected false-positive rate ε at the current load, 0 to 1.
    #[must_use]
    fn false_positive_rate(&self) -> f64;

    /// The memory used by the filter, in bytes.
    #[must_use]
    fn size_in_bytes(&self) -> usize;
}

/// A [`Filter`] that can be queried for items of type `T`, or without a type, for their hashes.
///
/// The trait is dyn-compatible: `&dyn Contains<str>` is any filter of strings, and `&dyn Contains` any filter at all, queried with
/// [`Prehashed`] keys, so that one hash can serve several filters.
///
/// # Example
/// ```
/// use koel::{Contains, CuckooFilter, FilterView, Prehashed};
///
/// fn is_blocked(names: &impl Contains<str>, name: &str) -> bool {
///     names.contains(name)
/// }
///
/// /// The number of filters that probably contain the item with this hash.
/// fn votes(filters: &[&dyn Contains], hash: u64) -> usize {
///     filters.iter().filter(|filter| filter.contains(&Prehashed(hash))).count()
/// }
///
/// let mut blocked = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// blocked.insert("mallory")?;
/// assert!(is_blocked(&blocked, "mallory"));
/// let view = FilterView::over(blocked.to_bytes())?;
/// assert_eq!(votes(&[&blocked, &view], blocked.hash("mallory")), 2);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub trait Contains<T: ?Sized = Prehashed>: Filter {
    /// The hash of an item, for [`Prehashed`].
    #[must_use]
    fn hash(&self, item: &T) -> u64;

    /// False if the item is not in the filter; true if it probably is.
    #[must_use]
    fn contains(&self, item: &T) -> bool;

    /// [`contains`](Self::contains) for each item; the answer for `items[i]` is written to `found[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    fn contains_batch(&self, items: &[T], found: &mut [bool])
    where
        T: Sized;

    /// The number of copies of an item. Fingerprint collisions can only make it too high.
    #[must_use]
    fn count(&self, item: &T) -> u32;

    /// The number of items for which [`contains`](Self::contains) returns true.
    #[must_use]
    fn count_members(&self, items: &[T]) -> usize
    where
        T: Sized;

    /// The same filter, to be queried with [`Prehashed`] keys.
    #[must_use]
    fn by_hash(&self) -> &(dyn Contains + '_);
}

/// Implements both traits for a filter by its methods of the same names.
macro_rules! by_own_methods {
    ($filter:ty, $hasher:ty $(, $generic:ident $(: $bound:path)?)*) => {
        impl<$($generic $(: $bound)?),*> $crate::filter::Filter for $filter {
            fn len(&self) -> usize {
                self.len()
            }

            fn false_positive_rate(&self) -> f64 {
                self.false_positive_rate()
            }

            fn size_in_bytes(&self) -> usize {
                self.size_in_bytes()
            }
        }

        impl<T: ?Sized $(, $generic $(: $bound)?)*> $crate::filter::Contains<T> for $filter
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

            fn by_hash(&self) -> &(dyn $crate::filter::Contains + '_) {
                self
            }
        }
    };
}
pub(crate) use by_own_methods;

by_own_methods!(CuckooFilter<H, S>, H, H, S: Storage);

/// Implements the traits for pointers to a filter.
macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<F: Filter + ?Sized> Filter for $pointer {
            fn len(&self) -> usize {
                F::len(self)
            }

            fn false_positive_rate(&self) -> f64 {
                F::false_positive_rate(self)
            }

            fn size_in_bytes(&self) -> usize {
                F::size_in_bytes(self)
            }
        }

        impl<T: ?Sized, F: Contains<T> + ?Sized> Contains<T> for $pointer {
            fn hash(&self, item: &T) -> u64 {
                F::hash(self, item)
            }

            fn contains(&self, item: &T) -> bool {
                F::contains(self, item)
            }

            fn contains_batch(&self, items: &[T], found: &mut [bool])
            where
                T: Sized,
            {
                F::contains_batch(self, items, found);
            }

            fn count(&self, item: &T) -> u32 {
                F::count(self, item)
            }

            fn count_members(&self, items: &[T]) -> usize
            where
                T: Sized,
            {
                F::count_members(self, items)
            }

            fn by_hash(&self) -> &(dyn Contains + '_) {
                F::by_hash(self)
            }
        }
    )*};
}
pointers!(&F, &mut F, Box<F>, Rc<F>);
// Some embedded targets have no atomic pointers, and so no `Arc`.
#[cfg(target_has_atomic = "ptr")]
pointers!(alloc::sync::Arc<F>);
