//! Traits for code that accepts any kind of filter.

use alloc::{boxed::Box, rc::Rc};

use super::{Core, CoreMut, Filter, InsertError, Prehashed};
use crate::hash::HashItem;

/// What every filter tells about itself: a [`CuckooFilter`](crate::CuckooFilter), a [`FilterView`](crate::FilterView), an
/// [`ElasticFilter`](crate::ElasticFilter), a `SharedFilter`, or a filter of Go's library (`go::GoFilter`) or of RedisBloom
/// (`redisbloom::RedisBloomFilter`). [`Contains`] adds queries.
///
/// The trait is dyn-compatible.
pub trait AnyFilter {
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

/// A filter that can be queried for items of type `T`, or without a type, for their hashes.
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
pub trait Contains<T: ?Sized = Prehashed>: AnyFilter {
    /// The hash of an item, for [`Prehashed`].
    #[must_use]
    fn hash(&self, item: &T) -> u64;

    /// False if the item is not in the filter; true if it probably is.
    #[must_use]
    fn contains(&self, item: &T) -> bool;

    /// [`contains`](Self::contains) for each item; writes the result for `items[i]` to `found[i]`.
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

impl<C: Core, H> AnyFilter for Filter<C, H> {
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

impl<T: ?Sized, C: Core, H: HashItem<T>> Contains<T> for Filter<C, H> {
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

    fn by_hash(&self) -> &(dyn Contains + '_) {
        self
    }
}

/// A filter that can be changed, for items of type `T`, or without a type, for their hashes.
///
/// The trait is dyn-compatible: `&mut dyn Insert<str>` is any filter of strings that can be changed.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, ElasticFilter, Insert, InsertError};
///
/// fn block(names: &mut impl Insert<str>, name: &str) -> Result<(), InsertError> {
///     names.insert(name)
/// }
///
/// let mut fixed = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// let mut growing = ElasticFilter::builder().false_positive_rate(0.001).build()?;
/// block(&mut fixed, "mallory")?;
/// block(&mut growing, "mallory")?;
/// assert!(fixed.contains("mallory") && growing.contains("mallory"));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub trait Insert<T: ?Sized = Prehashed>: Contains<T> {
    /// Inserts an item, even if it is already present.
    ///
    /// # Errors
    /// If it is refused. The filter is then unchanged.
    fn insert(&mut self, item: &T) -> Result<(), InsertError>;

    /// Inserts an item unless the filter probably has it. Returns true if it was inserted.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    fn insert_unique(&mut self, item: &T) -> Result<bool, InsertError>;

    /// [`insert`](Self::insert) for each item.
    ///
    /// # Errors
    /// That of the first item that is refused; the filter's own method says which items are then in it.
    fn insert_batch(&mut self, items: &[T]) -> Result<(), InsertError>
    where
        T: Sized;

    /// Removes one copy of an item. Returns true if a copy was found. Read [Removal](crate::CuckooFilter#removal) first.
    fn remove(&mut self, item: &T) -> bool;

    /// [`remove`](Self::remove) for each item; writes to `removed[i]` whether `items[i]` was found.
    ///
    /// # Panics
    /// If the slices differ in length.
    fn remove_batch(&mut self, items: &[T], removed: &mut [bool])
    where
        T: Sized;
}

/// Implements [`Insert`] for a filter, or a pointer to one, by the filter's methods of the same names.
macro_rules! insert_by_own_methods {
    ([$($generics:tt)*] $filter:ty, $pointer:ty) => {
        impl<T: ?Sized, $($generics)* H: $crate::hash::HashItem<T>> $crate::filter::Insert<T> for $pointer {
            fn insert(&mut self, item: &T) -> Result<(), InsertError> {
                <$filter>::insert(self, item)
            }

            fn insert_unique(&mut self, item: &T) -> Result<bool, $crate::filter::InsertError> {
                <$filter>::insert_unique(self, item)
            }

            fn insert_batch(&mut self, items: &[T]) -> Result<(), $crate::filter::InsertError>
            where
                T: Sized,
            {
                <$filter>::insert_batch(self, items)
            }

            fn remove(&mut self, item: &T) -> bool {
                <$filter>::remove(self, item)
            }

            fn remove_batch(&mut self, items: &[T], removed: &mut [bool])
            where
                T: Sized,
            {
                <$filter>::remove_batch(self, items, removed);
            }
        }
    };
}
#[cfg(feature = "std")]
pub(crate) use insert_by_own_methods;

insert_by_own_methods!([C: Core + CoreMut,] Filter<C, H>, Filter<C, H>);

/// Implements the traits for pointers to a filter.
macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<F: AnyFilter + ?Sized> AnyFilter for $pointer {
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
