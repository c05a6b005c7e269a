//! Filters of fixed size, and the operations and traits that all filters share.
//!
//! A public filter is a struct of a hasher and a core. The core works on hashes only ([`Core`], [`CoreMut`]). A fixed filter's core
//! is a [`RawFilter`], which has one table. Filters never compute bit offsets; `table` does.

mod builder;
mod contains;
mod content;
mod cores;
mod error;
mod facts;
mod merge;
mod operations;
mod raw;

use crate::{
    hash::Xxh3,
    kernel::Hashes as _,
    params::Params,
    storage::{OutOfMemory, Snapshot},
};
#[cfg(any(go_files, feature = "redisbloom"))]
pub(crate) use error::unsupported;
pub use {
    builder::Builder,
    contains::{Contains, Filter, Insert},
    error::{BuildError, InsertError, InsertErrorKind, MergeError},
};
pub(crate) use {
    contains::{insert_by_own_methods, read_only},
    content::{Content, same_content},
    cores::{Core, CoreMut},
    facts::{measure_rate, planned, write_summary},
    merge::merges,
    operations::{ContainsIter, changes, lookups, removals},
    raw::{Combine, Located, Lookup, RawFilter, classes, occurrences, slots},
};

/// A cuckoo filter of fixed size: an approximate set that supports removal and takes a few bits per item. A lookup returns "not in
/// the set" or "probably in the set".
///
/// ```
/// use koel::CuckooFilter;
/// let mut seen = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// seen.insert("alice")?;
/// assert!(seen.contains("alice"));
/// seen.remove("alice");
/// assert!(!seen.contains("alice"));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
///
/// # Guarantees
/// - No false negatives: an inserted item is found until it is removed.
/// - A refused insertion leaves the filter unchanged.
/// - Deterministic: the same operations in the same order produce the same bytes on every machine.
/// - [`contains`](Self::contains) returns true for an item that was never inserted with probability ε, the
///   [`false_positive_rate`](Self::false_positive_rate).
///
/// # Duplicates
/// An item can be inserted up to 2³² − 1 times. [`count`](Self::count) returns how often it was inserted, and each copy can be
/// removed. The [`capacity`](Self::capacity) counts distinct items: copies do not use it up.
///
/// The table holds every item, and copies while there is room for them. Extra copies are counted beside the table, in about five
/// bytes for each item that has any at a rate of 0.1 %, and up to 14 for long fingerprints and large counts, allocated as needed
/// (docs/DESIGN.md, "Copies"). To store each item once, use [`insert_unique`](Self::insert_unique) or
/// [`insert_unique_iter`](Self::insert_unique_iter).
///
/// # Hashes
/// Every operation accepts the hash of an item in place of the item, as [`Prehashed`](crate::Prehashed). So one hash can serve
/// several filters, or also select a shard. The hash need not be uniformly distributed: sequential integers, multiples of a small
/// number, and hashes whose high bits, low bits or remainder have already selected a shard all reach the planned capacity and
/// false-positive rate (`tests/hashes.rs`).
///
/// # Removal
/// Remove only items that were inserted. Removing an item that was never inserted may, with probability ε, remove the fingerprint
/// of another item, which then becomes a false negative. The filter cannot detect this.
///
/// # Comparison
/// `==` compares contents. Two filters are equal if they have equal parameters and hashers, and hold the same items, each as often,
/// as far as the filters can tell items apart. The order of insertions does not matter, nor does it matter whether one of them is a
/// [`FilterView`]. To compare bit for bit, compare [`to_bytes`](CuckooFilter::to_bytes).
///
/// Filters of different lengths or parameters are told apart in constant time. Otherwise, both tables are read, like by
/// [`distinct`](Self::distinct): once if the contents differ, twice if they are equal. If even the bytes are equal, they are
/// compared instead, which takes a fraction of that time. No memory is allocated. Different contents pass for equal with a
/// probability of 2⁻¹²⁸, even if someone has chosen the items.
///
/// ```
/// use koel::{CuckooFilter, FilterView};
/// let mut up = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// let mut down = up.clone();
/// up.insert_iter(0..1000u32)?;
/// down.insert_iter((0..1000u32).rev())?;
/// assert!(up == down && FilterView::over(up.to_bytes())? == down);
/// assert_ne!(up.to_bytes(), down.to_bytes());
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
///
/// # Threads
/// Lookups take `&self`, so any number of threads can share a filter. Changes take `&mut self`. Threads that both query and change
/// a filter put it behind a lock (`RwLock<CuckooFilter>`), or each fill their own filter and [`merge`](CuckooFilter::merge) them at
/// the end.
///
/// # Complexity
/// Lookup, count and removal read two buckets and take constant time. So does insertion while one of the two has room. Otherwise an
/// eviction walk searches for a slot (docs/DESIGN.md, "Insertion"). The walk examines a few buckets on average, more as the load
/// approaches the capacity, and at most 4096·b before the insertion is refused. A refusal also searches up to 2048 buckets for second
/// copies. Where copies take many slots, an insertion moves those near its buckets out of the table, from at most 64 buckets at a time.
#[derive(Clone)]
pub struct CuckooFilter<H = Xxh3> {
    pub(crate) core: RawFilter,
    pub(crate) hasher: H,
}

/// A read-only filter that is queried in place, inside a snapshot held by `D`: a `&[u8]`, `Vec<u8>`, `Arc<[u8]>`, `Bytes` or a
/// memory-mapped file (`memmap2::Mmap`).
///
/// A view returns the same results as the [`CuckooFilter`] that was written, with the same kernels at the same speed.
/// [`over`](FilterView::over) takes constant time and copies nothing: it validates the header and the length.
/// [`verify`](FilterView::verify) validates the rest. In an unverified view, corrupt bytes can give wrong results, including false
/// negatives, but no bytes cause an out-of-bounds read.
///
/// [`to_filter`](FilterView::to_filter) copies the view into a filter that can be changed.
///
/// # Panics
/// Methods that read the table panic if `D::as_ref` returns fewer bytes than when the view was opened. (It is called on every
/// access. The types above always return the same bytes.)
///
/// # Example
/// ```
/// use koel::{CuckooFilter, FilterView};
/// let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// filter.insert("alice")?;
///
/// /// A service that owns a snapshot and queries it in place.
/// struct Service { seen: FilterView<Vec<u8>> }
/// let service = Service { seen: FilterView::over(filter.to_bytes())? };
/// assert!(service.seen.contains("alice"));
/// service.seen.verify()?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct FilterView<D, H = Xxh3> {
    pub(crate) core: RawFilter<Snapshot<D>>,
    pub(crate) hasher: H,
}

// A program may hold many small filters, so the struct must stay small compared with the table.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<CuckooFilter>() <= 104);

impl<H> CuckooFilter<H> {
    /// Returns an empty filter with the given parameters, such as those of another filter. To build many filters of the same size,
    /// plan their parameters once with the [`Builder`]. Takes time proportional to the table, which is zeroed.
    ///
    /// # Errors
    /// If the memory for the table cannot be allocated.
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, Xxh3};
    /// let params = CuckooFilter::builder().capacity(10).false_positive_rate(0.001).params()?;
    /// let filters = (0..1000).map(|_| CuckooFilter::new(params, Xxh3)).collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(filters.len(), 1000);
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    pub fn new(params: Params, hasher: H) -> Result<Self, OutOfMemory> {
        RawFilter::new(params).map(|core| Self { core, hasher })
    }

    /// Returns the number of items in the table: all items except the extra copies that are counted beside it
    /// ([Duplicates](CuckooFilter#duplicates)). Takes constant time.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::CuckooFilter::builder().capacity(10).false_positive_rate(0.001).build()?;
    /// filter.insert_batch(&["cuckoo"; 50])?;
    /// assert_eq!(filter.len(), 50);
    /// assert!(filter.table_len() <= 8); // two buckets of four slots
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn table_len(&self) -> usize {
        self.core.table_len()
    }

    /// Clones the filter. Returns an error where `clone` aborts the process.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory>
    where
        H: Clone,
    {
        Ok(Self { core: self.core.to_owned()?, hasher: self.hasher.clone() })
    }
}

lookups! {
    impl [H] CuckooFilter<H>, H;
    example "CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?", open "# // Not a view."
}
lookups! {
    impl [D: AsRef<[u8]>, H] FilterView<D, H>, H;
    example "CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?",
    open "let filter = koel::FilterView::over(filter.to_bytes())?;"
}
changes! {
    impl [H] CuckooFilter<H>, H;
    example "CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?"
}
merges!(CuckooFilter);

planned!(impl [H] CuckooFilter<H>, "CuckooFilter", Params);
planned!(impl [D: AsRef<[u8]>, H] FilterView<D, H>, "FilterView", Params);
read_only!([D: AsRef<[u8]>, H] FilterView<D, H>);

/// Implements `==`, which compares contents.
macro_rules! equal {
    ($([$($generics:tt)*] $filter:ty, $other:ty;)+) => {$(
        /// Compares parameters, hashers and contents: see [Comparison](crate::CuckooFilter#comparison).
        impl<H: PartialEq, $($generics)*> PartialEq<$other> for $filter {
            fn eq(&self, other: &$other) -> bool {
                self.hasher == other.hasher && self.core == other.core
            }
        }
    )+};
}
equal! {
    [] CuckooFilter<H>, CuckooFilter<H>;
    [D: AsRef<[u8]>] CuckooFilter<H>, FilterView<D, H>;
    [D: AsRef<[u8]>] FilterView<D, H>, CuckooFilter<H>;
    [D: AsRef<[u8]>, E: AsRef<[u8]>] FilterView<D, H>, FilterView<E, H>;
}
impl<H: Eq> Eq for CuckooFilter<H> {}
impl<D: AsRef<[u8]>, H: Eq> Eq for FilterView<D, H> {}
