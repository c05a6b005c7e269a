//! The filter: items in, answers out. It never sees a bit offset.
//!
//! [`CuckooFilter`] turns items into hashes, and leaves the rest to [`RawFilter`], which knows no items.

// First, so that the documentation shows it first.
mod operations;

mod batch;
mod builder;
mod bulk;
mod contains;
mod error;
mod facts;
mod iter;
mod merge;
mod raw;

use crate::{
    hash::Xxh3,
    params::Params,
    storage::{OutOfMemory, Owned, Snapshot},
};
pub(crate) use raw::RawFilter;
pub use {
    builder::Builder,
    contains::{Contains, Filter},
    error::{BuildError, Full, MergeError},
    iter::ContainsIter,
};

/// A cuckoo filter: a set that answers "not in it" or "probably in it", in a few bits per item, and from which items can be
/// removed.
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
/// # What it promises
/// - No false negative: an item that was inserted is found until it is removed.
/// - A refused insertion changes nothing.
/// - The same operations in the same order give the same bytes, on every machine.
/// - [`contains`](Self::contains) returns true for an item that was never inserted with the probability
///   [`false_positive_rate`](Self::false_positive_rate).
///
/// # Duplicates
/// The filter is a multiset of fingerprints: an item inserted twice is stored twice and must be removed twice. There is
/// room for 2b copies of it at most — eight with buckets of four — and for fewer if other items share its buckets;
/// [`insert_unique`](Self::insert_unique) and [`insert_unique_iter`](Self::insert_unique_iter) store it once. A capacity counts
/// different items: of 2000 items among which 500 occur twice, a filter for 2000 mostly has to refuse some
/// (`tests/filters.rs`).
///
/// # Hashes
/// Every operation has a form for hashes of 64 bits, so that one hash serves several filters, or something else beside a
/// filter: its high bits, its low bits or a remainder may have chosen a shard before. Sequential integers, and multiples of a
/// small number, work as hashes, too: all of this at the planned capacity and false-positive rate (`tests/hashes.rs`).
/// [`Addressing::PowerOfTwo`](crate::Addressing::PowerOfTwo) is different: it takes the bucket from bits 32 and up and the
/// fingerprint from the lower half, as Go's library does, and needs all of them uniformly distributed.
///
/// # Removal
/// Remove only what was inserted. Removing an item that never was may, with the probability ε, remove the fingerprint of
/// another, which is then no longer found: a false negative. Nothing can tell the two apart.
///
/// # Threads
/// Reading takes `&self` and changes nothing, so any number of threads may share a filter; writing takes `&mut self`.
/// Threads that both read and write put it behind a lock (`RwLock<CuckooFilter>`), or have a filter each and
/// [`merge`](Self::merge) them.
///
/// # Complexity
/// Looking up, counting and removing read two buckets. Inserting reads two as long as one of them has room, and a few
/// more as the load approaches the capacity; a refused insertion has looked at 4096·b at most.
///
/// # Storage
/// `S` says where the table is: in memory of the filter's own ([`Owned`]), and then the filter can be changed; or in a
/// [`Snapshot`] that the caller keeps, and then the filter is a [`FilterView`], which has every method that only reads.
#[derive(Clone)]
pub struct CuckooFilter<H = Xxh3, S = Owned> {
    raw: RawFilter<S>,
    hasher: H,
}

/// A filter inside a snapshot that the caller keeps in `D`: in a `&[u8]`, a `Vec<u8>`, an `Arc<[u8]>`, a `Bytes`, a file that
/// is mapped (`memmap2::Mmap`). It is queried in place.
///
/// A view has every method of [`CuckooFilter`] that only reads, with the same kernels, at the same speed. Opening one
/// ([`over`](FilterView::over)) takes constant time and copies nothing: it validates the header, and that as many bytes are
/// there as it says. [`verify`](FilterView::verify) validates the rest. Until then the answers are only as good as the
/// bytes: if these were altered, an item may not be found; but whatever they are, nothing outside them is read.
///
/// [`to_filter`](FilterView::to_filter) copies it into a filter that can be changed.
///
/// # Panics
/// Every method that reads the table panics if `D::as_ref` returns fewer bytes than when the view was made. (It is asked anew
/// each time. The types above always return the same bytes.)
///
/// # Example
/// ```
/// use koel::{CuckooFilter, FilterView};
/// let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// filter.insert("alice")?;
///
/// /// Owns the bytes of the snapshot, and queries them in place.
/// struct Service { seen: FilterView<Vec<u8>> }
/// let service = Service { seen: FilterView::over(filter.to_bytes())? };
/// assert!(service.seen.contains("alice"));
/// service.seen.verify()?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub type FilterView<D, H = Xxh3> = CuckooFilter<H, Snapshot<D>>;

// Many small filters are kept in one program: the filter itself must stay small beside its table.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<CuckooFilter>() <= 96);

impl<H> CuckooFilter<H> {
    /// An empty filter of known parameters: one like another, or one of many that are alike, for which the
    /// [`Builder`] has planned once.
    ///
    /// # Errors
    /// If there is no memory for the table.
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
        RawFilter::new(params).map(|raw| Self { raw, hasher })
    }
}

impl<H, S> CuckooFilter<H, S> {
    pub(crate) fn from_raw(raw: RawFilter<S>, hasher: H) -> Self {
        Self { raw, hasher }
    }

    pub(crate) fn into_raw(self) -> (RawFilter<S>, H) {
        (self.raw, self.hasher)
    }

    pub(crate) fn raw(&self) -> &RawFilter<S> {
        &self.raw
    }
}
