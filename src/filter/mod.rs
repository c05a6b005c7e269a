//! The public filter type and its operations.
//!
//! [`Filter`] hashes items and delegates to its core, which works on hashes only: a [`RawFilter`], which is one table, in a
//! [`CuckooFilter`]. None of them computes bit offsets: that is the job of `table`.

// Declared first so that rustdoc lists its methods first.
mod operations;

mod builder;
mod contains;
mod error;
mod facts;
mod items;
mod kind;
mod merge;
mod raw;

use crate::{
    hash::Xxh3,
    params::Params,
    storage::{OutOfMemory, Owned, Snapshot},
};
pub use {
    builder::Builder,
    contains::{AnyFilter, Contains, Insert},
    error::{BuildError, InsertError, InsertErrorKind, MergeError},
    items::{Items, Prehashed},
    kind::{Core, CoreMut, CoreRemove, Planned},
    merge::CoreMerge,
    operations::ContainsIter,
    raw::RawFilter,
};
#[cfg(feature = "std")]
pub(crate) use {contains::insert_by_own_methods, operations::hashed_iter};
pub(crate) use {
    items::{Batch, Hashed, answers_in_order, same_length},
    operations::hashed,
    raw::{Combine, Copies, Located, Place, Slots, Sought, is_crowded, slots},
};

/// A filter of any kind: [`CuckooFilter`], [`FilterView`](crate::FilterView), [`ElasticFilter`](crate::ElasticFilter),
/// [`ElasticView`](crate::ElasticView), `SharedFilter`, `GoFilter` and `RedisBloomFilter` are this type, with the operations that
/// their kind allows.
///
/// `C` is the kind ([`backing`](crate::backing)), `H` the hasher.
#[derive(Clone)]
pub struct Filter<C, H = Xxh3> {
    pub(crate) core: C,
    pub(crate) hasher: H,
}

/// A cuckoo filter: an approximate set that supports removal. A query answers "not in the set" or "probably in the set", at a
/// cost of a few bits per item.
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
/// - No false negatives: an item that was inserted is found until it is removed.
/// - A refused insertion leaves the filter unchanged.
/// - Deterministic: the same operations in the same order produce the same bytes on every machine.
/// - [`contains`](Filter::contains) returns true for an item that was never inserted with probability ε, the
///   [`false_positive_rate`](Filter::false_positive_rate).
///
/// # Duplicates
/// The filter is a multiset of fingerprints: an item inserted twice is stored twice and must be removed twice. An item has room
/// for at most 2b copies, where b is the bucket size (8 copies by default), and for fewer if other items share its buckets.
/// [`insert_unique`](Filter::insert_unique) and [`insert_unique_iter`](Filter::insert_unique_iter) store an item once. The capacity
/// counts different items: a filter with capacity 2000 usually refuses some of 2000 items if 500 of them occur twice
/// (`tests/filters.rs`).
///
/// # Hashes
/// Every operation takes the hash of an item in place of the item, as [`Prehashed`], so that one hash can serve several filters or
/// also select a shard. The hash does not have to be uniformly distributed: sequential integers, multiples of a small number, and hashes whose high bits,
/// low bits or remainder have already selected a shard all reach the planned capacity and false-positive rate
/// (`tests/hashes.rs`).
/// [`Addressing::PowerOfTwo`](crate::Addressing::PowerOfTwo) is the exception. Like Go's library, it takes the bucket from bits
/// 32 and up and the fingerprint from the lower 32 bits, and needs uniformly distributed hashes.
///
/// # Removal
/// Remove only items that were inserted. Removing an item that was never inserted may, with probability ε, remove the fingerprint
/// of another item, which then becomes a false negative. The filter cannot detect this.
///
/// # Threads
/// Queries take `&self`, so any number of threads can share a filter. Updates take `&mut self`: threads that both query and
/// update put the filter behind a lock (`RwLock<CuckooFilter>`), or each fill their own filter and [`merge`](CuckooFilter::merge) them at
/// the end.
///
/// # Complexity
/// Lookup, count and removal read two buckets: constant time. So does insertion while one of the two has room. Otherwise it
/// searches for a slot with an eviction walk (docs/DESIGN.md, "Insertion"); the walk examines a few buckets on average, more as
/// the load approaches the capacity, and at most 4096·b before the insertion is refused.
///
/// # Storage
/// `S` is where the table lives. With [`Owned`], the filter owns its memory and can be updated. With [`Snapshot`], the table is
/// read from a snapshot that the caller provides; this is a [`FilterView`], which has all methods that only read.
pub type CuckooFilter<H = Xxh3, S = Owned> = Filter<RawFilter<S>, H>;

/// A read-only filter that is queried in place, inside a snapshot held by `D`: a `&[u8]`, `Vec<u8>`, `Arc<[u8]>`, `Bytes` or a
/// memory-mapped file (`memmap2::Mmap`).
///
/// A view has all methods of [`CuckooFilter`] that only read, with the same kernels and the same speed.
/// [`over`](FilterView::over) takes constant time and copies nothing: it validates the header and the length.
/// [`verify`](FilterView::verify) validates the rest. Without it, corrupt bytes can give wrong answers, false negatives included,
/// but no bytes cause a read out of bounds.
///
/// [`to_filter`](FilterView::to_filter) copies the view into a filter that can be updated.
///
/// # Panics
/// Methods that read the table panic if `D::as_ref` returns fewer bytes than when the view was made. (It is called on every
/// access. The types above always return the same bytes.)
///
/// # Example
/// ```
/// use koel::{CuckooFilter, FilterView};
/// let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// filter.insert("alice")?;
///
/// /// Owns a snapshot and queries it in place.
/// struct Service { seen: FilterView<Vec<u8>> }
/// let service = Service { seen: FilterView::over(filter.to_bytes())? };
/// assert!(service.seen.contains("alice"));
/// service.seen.verify()?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub type FilterView<D, H = Xxh3> = CuckooFilter<H, Snapshot<D>>;

// A program may hold many small filters, so the struct must stay small beside the table.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<CuckooFilter>() <= 96);

impl<H> CuckooFilter<H> {
    /// An empty filter with the given parameters, such as those of another filter. To make many filters of the same size, plan
    /// their parameters once with the [`Builder`]. Takes time proportional to the table, which is zeroed.
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
}
