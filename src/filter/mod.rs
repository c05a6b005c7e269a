//! The filter: items in, answers out. It never sees a bit offset.

// First, so that the documentation shows it first.
mod operations;

mod batch;
mod builder;
mod bulk;
mod facts;
mod merge;

pub use builder::Builder;

use crate::{
    error::ParamError,
    hash::{Hasher, Xxh3},
    kernel::Kernel,
    params::Params,
    storage::Memory,
    storage::{Borrowed, Storage},
    table::Address,
    table::{AnyTable, Table as _, with_table},
};

/// A cuckoo filter: a set that answers "surely not in it" or "probably in it", in a few bits per item, and that can
/// delete.
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
/// - An item never inserted is "found" with the probability [`false_positive_rate`](Self::false_positive_rate).
///
/// # Duplicates
/// The filter is a multiset of fingerprints: an item inserted twice is stored twice and must be removed twice. There is
/// room for 2b copies of it at most — eight with buckets of four — and fewer if others share its buckets;
/// [`insert_unique`](Self::insert_unique) stores it once. A capacity counts different items: of 2000 items among which 500
/// come twice, a filter for 2000 mostly has to refuse some (`tests/filters.rs`).
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
/// `S` is where the table is: in [`Memory`], and then the filter can be changed; or in [`Borrowed`] bytes, and then it is a
/// [`FilterView`], which has everything that only reads.
#[derive(Clone)]
pub struct CuckooFilter<H = Xxh3, S = Memory> {
    params: Params,
    address: Address,
    table: AnyTable<S>,
    len: usize,
    hasher: H,
    kernel: Kernel,
}

/// A filter in bytes that belong to somebody else, which are read where they are: a snapshot in memory
/// ([`over`](FilterView::over)), or in a file that is mapped ([`open`](FilterView::open)).
///
/// It has all that [`CuckooFilter`] has for reading, with the same kernels, at the same speed. Opening one takes
/// no longer for a large snapshot than for a small one, and no memory: only the header is checked, and that as many bytes are
/// there as it says. [`verify`](Self::verify) checks the rest. Until then the answers are only as good as the bytes: if these
/// were altered, an item may not be found; but whatever they are, nothing is read that is not theirs, and nothing panics.
///
/// [`to_filter`](Self::to_filter) makes a filter of it that can be changed.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, FilterView};
/// let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
/// filter.insert("alice")?;
/// let bytes = filter.to_bytes();
///
/// let view = FilterView::over(&bytes)?;
/// assert!(view.contains("alice"));
/// view.verify()?;
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
pub type FilterView<'a, H = Xxh3> = CuckooFilter<H, Borrowed<'a>>;

impl<H: Hasher> CuckooFilter<H> {
    /// An empty filter of known parameters: one like another, or one of many that are alike, for which the
    /// [`Builder`](crate::Builder) has done its planning once.
    ///
    /// # Errors
    /// If the memory for the table cannot be had.
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, Xxh3};
    /// let params = CuckooFilter::builder().capacity(10).false_positive_rate(0.001).params()?;
    /// let filters = (0..1000).map(|_| CuckooFilter::new(params.clone(), Xxh3)).collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(filters.len(), 1000);
    /// # Ok::<(), koel::ParamError>(())
    /// ```
    pub fn new(params: Params, hasher: H) -> Result<Self, ParamError> {
        let table = AnyTable::new(&params)?;
        Ok(Self::from_parts(params, table, 0, hasher))
    }
}

impl<H: Hasher, S: Storage> CuckooFilter<H, S> {
    /// A filter of a table that holds `len` items.
    pub(crate) fn from_parts(params: Params, table: AnyTable<S>, len: usize, hasher: H) -> Self {
        Self { address: Address::new(&params), params, table, len, hasher, kernel: Kernel::best() }
    }

    /// This filter as a view, for whatever takes one: it has the same type wherever the table is.
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, FilterView};
    /// fn known(view: &FilterView<'_>, names: &[&str]) -> usize {
    ///     view.count_batch(names)
    /// }
    ///
    /// let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?;
    /// filter.insert("alice")?;
    /// assert_eq!(known(&filter.view(), &["alice", "bob"]), 1);
    /// assert_eq!(known(&FilterView::over(&filter.to_bytes())?, &["alice", "bob"]), 1);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn view(&self) -> FilterView<'_, H>
    where
        H: Clone,
    {
        let memory = with_table!(&self.table, table => table.memory());
        let table = AnyTable::from_padded(&self.params, Borrowed::table(memory));
        let (params, hasher) = (self.params.clone(), self.hasher.clone());
        FilterView { params, address: self.address, table, len: self.len, hasher, kernel: self.kernel }
    }

    pub(crate) fn table(&self) -> &AnyTable<S> {
        &self.table
    }

    /// The same filter with another hasher, one that gives the same hashes.
    #[cfg(all(feature = "metrohash", target_endian = "little"))]
    pub(crate) fn with_hasher<G>(self, hasher: G) -> CuckooFilter<G, S> {
        let Self { params, address, table, len, hasher: _, kernel } = self;
        CuckooFilter { params, address, table, len, hasher, kernel }
    }

    /// The same filter in memory of its own, or the bytes of it that could not be had. Its table is known to be good.
    pub(crate) fn into_owned(self) -> Result<CuckooFilter<H>, usize> {
        let Self { params, address, table, len, hasher, kernel } = self;
        let table = table.to_owned(&params).ok_or(params.table_bytes())?;
        Ok(CuckooFilter { params, address, table, len, hasher, kernel })
    }
}
