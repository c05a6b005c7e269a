//! Traits for code that accepts any kind of filter.

use alloc::{boxed::Box, rc::Rc};

use super::{CuckooFilter, batch::same_length};
use crate::storage::Storage;

/// A filter that can be queried: a [`CuckooFilter`], a [`FilterView`](crate::FilterView), an
/// [`ElasticFilter`](crate::ElasticFilter), or a filter of Go's library (`go::GoFilter`) or of RedisBloom
/// (`redisbloom::RedisBloomFilter`).
///
/// The trait is dyn-compatible. It works on hashes, so that one hash can serve several filters; [`Contains`] adds the methods
/// that take items.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, Filter, FilterView};
///
/// /// The number of filters that probably contain the item with this hash.
/// fn votes(filters: &[&dyn Filter], hash: u64) -> usize {
///     filters.iter().filter(|filter| filter.contains_hash(hash)).count()
/// }
///
/// let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// filter.insert("alice")?;
/// let view = FilterView::over(filter.to_bytes())?;
/// assert_eq!(votes(&[&filter, &view], filter.hash("alice")), 2);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub trait Filter {
    /// False if no item with this hash is in the filter; true if one probably is.
    #[must_use]
    fn contains_hash(&self, hash: u64) -> bool;

    /// [`contains_hash`](Self::contains_hash) for each hash; the answer for `hashes[i]` is written to `found[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
        same_length(hashes.len(), found.len());
        for (&hash, found) in hashes.iter().zip(found) {
            *found = self.contains_hash(hash);
        }
    }

    /// The number of copies of the item with this hash. Fingerprint collisions can only make it too high.
    #[must_use]
    fn count_hash(&self, hash: u64) -> u32;

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

/// A [`Filter`] that takes items of type `T`. Dyn-compatible: `&dyn Contains<str>` is any filter of strings.
///
/// # Example
/// ```
/// use koel::{Contains, CuckooFilter};
///
/// fn is_blocked(names: &impl Contains<str>, name: &str) -> bool {
///     names.contains(name)
/// }
///
/// let mut blocked = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// blocked.insert("mallory")?;
/// assert!(is_blocked(&blocked, "mallory"));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub trait Contains<T: ?Sized>: Filter {
    /// The hash of an item, for the methods of [`Filter`].
    #[must_use]
    fn hash(&self, item: &T) -> u64;

    /// False if the item is not in the filter; true if it probably is.
    #[must_use]
    fn contains(&self, item: &T) -> bool {
        self.contains_hash(self.hash(item))
    }
}

/// Implements both traits for a filter by its methods of the same names.
macro_rules! by_own_methods {
    ($filter:ty, $($generics:tt)*) => {
        impl<$($generics)*> $crate::filter::Filter for $filter {
            fn contains_hash(&self, hash: u64) -> bool {
                self.contains_hash(hash)
            }

            fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
                self.contains_hashes(hashes, found);
            }

            fn count_hash(&self, hash: u64) -> u32 {
                self.count_hash(hash)
            }

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

        impl<T: ?Sized, $($generics)*> $crate::filter::Contains<T> for $filter
        where
            H: $crate::hash::HashItem<T>,
        {
            fn hash(&self, item: &T) -> u64 {
                self.hash(item)
            }
        }
    };
}
pub(crate) use by_own_methods;

by_own_methods!(CuckooFilter<H, S>, H, S: Storage);

/// Implements the traits for pointers to a filter.
macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<F: Filter + ?Sized> Filter for $pointer {
            fn contains_hash(&self, hash: u64) -> bool {
                F::contains_hash(self, hash)
            }

            fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) {
                F::contains_hashes(self, hashes, found);
            }

            fn count_hash(&self, hash: u64) -> u32 {
                F::count_hash(self, hash)
            }

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
        }
    )*};
}
pointers!(&F, &mut F, Box<F>, Rc<F>);
// Some embedded targets have no atomic pointers, and so no `Arc`.
#[cfg(target_has_atomic = "ptr")]
pointers!(alloc::sync::Arc<F>);
