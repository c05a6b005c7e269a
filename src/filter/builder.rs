//! How a filter is asked for.

use super::{BuildError, CuckooFilter, RawFilter};
use crate::{
    error::ParamError,
    hash::{HashItem, Xxh3},
    kernel::{Dispatch, Kernel},
    params::{Addressing, Params, Request, TableKind},
};

/// What a filter shall be; made by [`CuckooFilter::builder`].
///
/// It must be told a size — [`capacity`](Self::capacity) or [`buckets`](Self::buckets) — and a precision —
/// [`false_positive_rate`](Self::false_positive_rate) or [`fingerprint_bits`](Self::fingerprint_bits). Everything else
/// has a default.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, TableKind};
/// let builder = CuckooFilter::builder().capacity(1_000_000).false_positive_rate(0.001);
/// let packed = builder.clone().params()?;
/// assert_eq!(packed.table(), TableKind::Packed); // the smaller one
/// let single = builder.table(TableKind::Single).params()?;
/// assert!(packed.table_bytes() < single.table_bytes());
/// # Ok::<(), koel::ParamError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder builds nothing until `build` is called"]
pub struct Builder<H = Xxh3> {
    request: Request,
    hasher: H,
    kernel: Option<Kernel>,
}

impl CuckooFilter {
    /// Starts the description of a new filter.
    pub fn builder() -> Builder {
        Builder { request: Request::default(), hasher: Xxh3, kernel: None }
    }
}

impl<H> Builder<H> {
    /// How many different items the filter must hold, from 0 up. They fit but for a chance below 10⁻⁴; a few more
    /// usually do.
    pub fn capacity(mut self, items: usize) -> Self {
        self.request.capacity = Some(items);
        self
    }

    /// The exact number of buckets, for experiments: even, or a power of two where the addressing wants that.
    pub fn buckets(mut self, buckets: u64) -> Self {
        self.request.buckets = Some(buckets);
        self
    }

    /// The share of absent items that may seem to be there, ε, when the capacity is used up; between 0 and 1. The
    /// smallest table that keeps to it is chosen. The least that can be had is about
    /// b·5·10⁻¹⁰.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.request.false_positive_rate = Some(rate);
        self
    }

    /// The length of a fingerprint, f: 2 to 32 bits in the single table, 4 to 32 in the packed one.
    pub fn fingerprint_bits(mut self, bits: u32) -> Self {
        self.request.fingerprint_bits = Some(bits);
        self
    }

    /// Which table. By default, whichever is smaller for the rate asked for.
    pub fn table(mut self, table: TableKind) -> Self {
        self.request.table = Some(table);
        self
    }

    /// Slots in a bucket, b: 1 to 16, 4 by default. The packed table has 4.
    pub fn bucket_size(mut self, slots: u32) -> Self {
        self.request.bucket_size = Some(slots);
        self
    }

    /// How an item's buckets are found. By default, [`Addressing::AnySize`].
    pub fn addressing(mut self, addressing: Addressing) -> Self {
        self.request.addressing = addressing;
        self
    }

    /// What the hasher is seeded with, 0 by default. A secret seed makes it hard to choose items that collide, for those who
    /// know neither it nor a snapshot, which contains it. The hashers are not cryptographic.
    pub fn seed(mut self, seed: u64) -> Self {
        self.request.seed = seed;
        self
    }

    /// The instructions with which the filter does its work. By default, [`Kernel::best`]. Only the speed depends on it.
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// Another hasher.
    pub fn hasher<G>(self, hasher: G) -> Builder<G> {
        Builder { request: self.request, hasher, kernel: self.kernel }
    }

    /// The parameters that the filter would have. Allocates no table, so that any size can be tried.
    ///
    /// # Errors
    /// As [`build`](Self::build), but for the memory and the kernel.
    pub fn params(self) -> Result<Params, ParamError> {
        self.request.params()
    }

    /// An empty filter. Takes time in proportion to its table, which is filled with zeros.
    ///
    /// # Errors
    /// If a parameter is out of its range, if two contradict each other, if a needed one is missing, if the kernel is not
    /// available, or if the memory for the table cannot be had. The message says what would work.
    pub fn build(self) -> Result<CuckooFilter<H>, BuildError> {
        // Before there is a table, which may be large.
        let dispatch = self.kernel.map_or_else(|| Ok(Dispatch::best()), Kernel::dispatch)?;
        let raw = RawFilter::new(self.request.params()?)?;
        Ok(CuckooFilter::from_raw(raw.with_dispatch(dispatch), self.hasher))
    }

    /// A filter of a known set: the items, duplicates included. Its capacity, unless another was asked for, is their number.
    ///
    /// Tables below 64 MiB are filled as [`insert_batch`](CuckooFilter::insert_batch) fills them. For larger ones the items are
    /// sorted by where they go, 16 M at a time, which is faster (docs/PERFORMANCE.md); the filter is as good, but not the same.
    /// Then each item is hashed twice, and must give the same hash both times, and eight bytes more are needed for each
    /// meanwhile, up to 128 MiB. The same items in the same order give the same filter, on every machine.
    ///
    /// # Errors
    /// As [`build`](Self::build); and if not everything fits, for example many copies of one item.
    ///
    /// # Example
    /// ```
    /// let items = ["alice", "bob", "carol"];
    /// let filter = koel::CuckooFilter::builder().false_positive_rate(0.001).build_from_items(&items)?;
    /// assert_eq!(filter.count_members(&items), 3);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn build_from_items<T>(self, items: &[T]) -> Result<CuckooFilter<H>, BuildError>
    where
        H: HashItem<T>,
    {
        self.with_room_for(items.len()).build()?.filled_with_items(items)
    }

    /// [`build_from_items`](Self::build_from_items) for hashes.
    ///
    /// # Errors
    /// As `build_from_items`.
    pub fn build_from_hashes(self, hashes: &[u64]) -> Result<CuckooFilter<H>, BuildError> {
        self.with_room_for(hashes.len()).build()?.filled_with_hashes(hashes)
    }

    fn with_room_for(mut self, items: usize) -> Self {
        if self.request.buckets.is_none() {
            self.request.capacity.get_or_insert(items);
        }
        self
    }
}
