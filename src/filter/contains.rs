//! Traits for code that takes any kind of filter.

use alloc::{boxed::Box, rc::Rc};

use super::InsertError;
use crate::hash::Prehashed;

/// Sizes and rates of any filter: [`CuckooFilter`](crate::CuckooFilter), [`FilterView`](crate::FilterView),
/// [`ElasticFilter`](crate::ElasticFilter), [`ElasticView`](crate::ElasticView), `SharedFilter`, `go::GoFilter` and
/// `redisbloom::RedisBloomFilter`. [`Contains`] adds lookups.
///
/// The trait is dyn-compatible.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, ElasticFilter, Filter};
///
/// /// Returns the metrics of a service that has filters of several types.
/// fn report(filters: &[(&str, &dyn Filter)]) -> String {
///     let line = |(name, filter): &(&str, &dyn Filter)| {
///         format!("{name}: {} items, {} bytes, load {:.2}\n", filter.len(), filter.size_in_bytes(), filter.load_factor())
///     };
///     filters.iter().map(line).collect()
/// }
///
/// let blocked = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// let seen = ElasticFilter::builder().false_positive_rate(0.001).build()?;
/// assert!(report(&[("blocked", &blocked), ("seen", &seen)]).starts_with("blocked: 0 items"));
/// # Ok::<(), koel::BuildError>(())
/// ```
pub trait Filter {
    /// Returns the number of items in the filter, including copies.
    #[must_use]
    fn len(&self) -> usize;

    /// Returns true if the filter holds no items.
    #[must_use]
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of distinct items that the filter is planned for. For a growing filter, this is its maximum capacity.
    #[must_use]
    fn capacity(&self) -> usize;

    /// Returns the load factor: the fraction of slots that are occupied, 0 to 1.
    #[must_use]
    fn load_factor(&self) -> f64;

    /// Returns the memory that the filter uses, in bytes.
    #[must_use]
    fn size_in_bytes(&self) -> usize;

    /// Returns the number of bits per item; infinite for an empty filter.
    #[must_use]
    fn bits_per_item(&self) -> f64;

    /// Returns the expected false-positive rate ε at the current load, 0 to 1.
    #[must_use]
    fn false_positive_rate(&self) -> f64;
}

/// A filter that looks up items of type `T`; without a type, hashes of items.
///
/// The trait is dyn-compatible. `&dyn Contains<str>` is any filter of strings. `&dyn Contains` is any filter at all, queried with
/// [`Prehashed`] keys, so one hash can query several filters.
///
/// # Example
/// ```
/// use koel::{Contains, CuckooFilter, FilterView, Prehashed, Xxh3};
///
/// fn is_blocked(names: &impl Contains<str>, name: &str) -> bool {
///     names.contains(name)
/// }
///
/// /// Returns the number of filters that probably contain the item with this hash.
/// fn votes(filters: &[&dyn Contains], key: Prehashed) -> usize {
///     filters.iter().filter(|filter| filter.contains(&key)).count()
/// }
///
/// let mut blocked = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// blocked.insert("mallory")?;
/// assert!(is_blocked(&blocked, "mallory"));
/// let view = FilterView::over(blocked.to_bytes())?;
/// assert_eq!(votes(&[&blocked, &view], Prehashed::of(&Xxh3, 0, "mallory")), 2);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub trait Contains<T: ?Sized = Prehashed>: Filter {
    /// Returns the hash of an item for a [`Prehashed`] key.
    #[must_use]
    fn hash(&self, item: &T) -> u64;

    /// Returns false if the item is not in the filter, and true if it probably is.
    #[must_use]
    fn contains(&self, item: &T) -> bool;

    /// Looks up each item and writes the result for `items[i]` to `found[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    fn contains_batch(&self, items: &[T], found: &mut [bool])
    where
        T: Sized;

    /// Returns the number of copies of an item. Fingerprint collisions can only make it too high.
    #[must_use]
    fn count(&self, item: &T) -> u32;

    /// Returns the number of items that [`contains`](Self::contains) finds.
    #[must_use]
    fn count_members(&self, items: &[T]) -> usize
    where
        T: Sized;

    /// Returns this filter as one that is queried with [`Prehashed`] keys.
    #[must_use]
    fn by_hash(&self) -> &(dyn Contains + '_);
}

/// A filter that inserts and removes items of type `T`; without a type, hashes of items.
///
/// The trait is dyn-compatible: `&mut dyn Insert<str>` is any filter of strings that can be changed.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, ElasticFilter, Insert, InsertError};
///
/// // `?Sized` admits `&mut dyn Insert<str>`, and `&mut *boxed` for a boxed filter.
/// fn block(names: &mut (impl Insert<str> + ?Sized), name: &str) -> Result<(), InsertError> {
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be changed",
    note = "`FilterView` and `ElasticView` only read: `view.to_filter()` copies them into a filter that can be changed",
    note = "pass a filter instead of a pointer to it: `&mut *pointer`; a `SharedFilter` is changed through a reference: `&mut &*shared`",
    note = "other filters accept the item types that their hashers take: see `koel::hash::HashItem`"
)]
pub trait Insert<T: ?Sized = Prehashed>: Contains<T> {
    /// Inserts an item, even if it is already present.
    ///
    /// # Errors
    /// If the item is refused. The filter is then unchanged.
    fn insert(&mut self, item: &T) -> Result<(), InsertError>;

    /// Inserts an item unless the filter probably has it. Returns true if the item was inserted.
    ///
    /// # Errors
    /// The same as for [`insert`](Self::insert).
    fn insert_unique(&mut self, item: &T) -> Result<bool, InsertError>;

    /// Inserts each item, as [`insert`](Self::insert) does.
    ///
    /// # Errors
    /// The error of the first refused item. The filter's own method says which items are then in the filter.
    fn insert_batch(&mut self, items: &[T]) -> Result<(), InsertError>
    where
        T: Sized;

    /// Inserts each item that is not present, as [`insert_unique`](Self::insert_unique) does. Sets `inserted[i]` to true if
    /// `items[i]` was inserted.
    ///
    /// # Errors
    /// The same as for [`insert_batch`](Self::insert_batch).
    ///
    /// # Panics
    /// If the slices differ in length.
    fn insert_unique_batch(&mut self, items: &[T], inserted: &mut [bool]) -> Result<(), InsertError>
    where
        T: Sized;

    /// Removes one copy of an item. Returns true if a copy was found. Remove only items that were inserted
    /// ([Removal](crate::CuckooFilter#removal)).
    fn remove(&mut self, item: &T) -> bool;

    /// Removes one copy of each item, as [`remove`](Self::remove) does. Sets `removed[i]` to true if `items[i]` was found,
    /// otherwise to false.
    ///
    /// # Panics
    /// If the slices differ in length.
    fn remove_batch(&mut self, items: &[T], removed: &mut [bool])
    where
        T: Sized;
}

/// Implements [`Insert`] for a filter, or a reference to one, with the filter's methods of the same names. The arguments are the
/// generics, the type with the methods, its hasher, and the type that gets the trait. The methods of a `SharedFilter` take `&self`,
/// so a reference to one gets the trait, too:
///
/// ```text
/// insert_by_own_methods!([H] SharedFilter<H>, H, &SharedFilter<H>);
///
/// impl<T: ?Sized, H> Insert<T> for &SharedFilter<H> where H: HashItem<T> {
///     fn insert(&mut self, item: &T) -> Result<(), InsertError> {
///         <SharedFilter<H>>::insert(self, item)
///     }
///     …
/// }
/// ```
macro_rules! insert_by_own_methods {
    ([$($generics:tt)*] $filter:ty, $hasher:ty, $implementor:ty) => {
        impl<T: ?Sized, $($generics)*> $crate::Insert<T> for $implementor
        where
            $hasher: $crate::hash::HashItem<T>,
        {
            fn insert(&mut self, item: &T) -> Result<(), $crate::InsertError> {
                <$filter>::insert(self, item)
            }

            fn insert_unique(&mut self, item: &T) -> Result<bool, $crate::InsertError> {
                <$filter>::insert_unique(self, item)
            }

            fn insert_batch(&mut self, items: &[T]) -> Result<(), $crate::InsertError>
            where
                T: Sized,
            {
                <$filter>::insert_batch(self, items)
            }

            fn insert_unique_batch(&mut self, items: &[T], inserted: &mut [bool]) -> Result<(), $crate::InsertError>
            where
                T: Sized,
            {
                <$filter>::insert_unique_batch(self, items, inserted)
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
pub(crate) use insert_by_own_methods;

/// Gives a view hidden `insert` and `remove` methods that cannot be called, so that the compiler shows the notes of [`Insert`].
/// Without them, it would say only that there is no such method:
///
/// ```text
/// view.insert("alice")    error: `FilterView<…>` cannot be changed
///                         note: `FilterView` and `ElasticView` only read: `view.to_filter()` copies them …
/// ```
macro_rules! read_only {
    ([$($generics:tt)*] $view:ty) => {
        impl<$($generics)*> $view {
            #[doc(hidden)]
            pub fn insert<T: ?Sized>(&mut self, item: &T) -> Result<(), $crate::InsertError>
            where
                Self: $crate::Insert<T>,
            {
                $crate::Insert::insert(self, item)
            }

            #[doc(hidden)]
            pub fn remove<T: ?Sized>(&mut self, item: &T) -> bool
            where
                Self: $crate::Insert<T>,
            {
                $crate::Insert::remove(self, item)
            }
        }
    };
}
pub(crate) use read_only;

/// Implements [`Filter`] and [`Contains`] for pointers to a filter `F`: each method calls that of `F`, as in
/// `impl<F: Filter + ?Sized> Filter for Box<F> { fn len(&self) -> usize { F::len(self) } … }`.
macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<F: Filter + ?Sized> Filter for $pointer {
            fn len(&self) -> usize {
                F::len(self)
            }

            fn capacity(&self) -> usize {
                F::capacity(self)
            }

            fn load_factor(&self) -> f64 {
                F::load_factor(self)
            }

            fn size_in_bytes(&self) -> usize {
                F::size_in_bytes(self)
            }

            fn bits_per_item(&self) -> f64 {
                F::bits_per_item(self)
            }

            fn false_positive_rate(&self) -> f64 {
                F::false_positive_rate(self)
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
// `&mut F` does not implement the traits: a trait method would hide the filter's own, since method calls try `&&mut F` before `&F`.
pointers!(&F, Box<F>, Rc<F>);
// Some embedded targets have no atomic pointers, and so no `Arc`.
#[cfg(target_has_atomic = "ptr")]
pointers!(alloc::sync::Arc<F>);
