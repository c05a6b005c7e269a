//! The filter: items in, answers out. It never sees a bit offset.

// First, so that the documentation shows it first.
mod operations;

mod batch;
mod bulk;
mod facts;
mod merge;
mod place;

use crate::{
    address::Address,
    error::ParamError,
    hash::{Hasher, Xxh3},
    kernel::Kernel,
    params::Params,
    table::AnyTable,
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
#[derive(Clone)]
pub struct CuckooFilter<H = Xxh3> {
    params: Params,
    address: Address,
    table: AnyTable,
    len: usize,
    hasher: H,
    kernel: Kernel,
}

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

    /// A filter of a table that holds `len` items.
    pub(crate) fn from_parts(params: Params, table: AnyTable, len: usize, hasher: H) -> Self {
        Self { address: Address::new(&params), params, table, len, hasher, kernel: Kernel::best() }
    }

    pub(crate) fn table(&self) -> &AnyTable {
        &self.table
    }
}
