//! The builder.

use super::{BuildError, CuckooFilter, RawFilter};
use crate::{
    hash::{HashItem, Items, Xxh3},
    kernel::{Dispatch, Hashes, Kernel},
    params::{Addressing, ParamError, Params, Request, TableKind},
    storage::{OutOfMemory, reserved},
};

/// A builder for [`CuckooFilter`].
///
/// It needs a size, either [`capacity`](Self::capacity) or [`buckets`](Self::buckets), and a precision, either
/// [`false_positive_rate`](Self::false_positive_rate) or [`fingerprint_bits`](Self::fingerprint_bits). Everything else has a
/// default. Values are checked by [`build`](Self::build) and [`params`](Self::params), not when they are set.
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

/// The builder that [`CuckooFilter::builder`] returns, without a size and a precision.
impl Default for Builder {
    fn default() -> Self {
        Self { request: Request::default(), hasher: Xxh3, kernel: None }
    }
}

impl CuckooFilter {
    /// Returns a builder of filters with the hasher [`Xxh3`]; [`Builder::hasher`] sets another one.
    pub fn builder() -> Builder {
        Builder::default()
    }
}

impl<H> Builder<H> {
    /// Sets the number of distinct items that the filter must hold, from 0 up. They fit, except with a probability below 10⁻⁴
    /// ([`Params::capacity`]); a few more usually do. The builder chooses the smallest table that is planned for them.
    pub fn capacity(mut self, items: usize) -> Self {
        self.request.capacity = Some(items);
        self
    }

    /// Sets the exact number of buckets instead of a capacity, for experiments: an even number, or a power of two with
    /// [`Addressing::PowerOfTwo`].
    pub fn buckets(mut self, buckets: u64) -> Self {
        self.request.buckets = Some(buckets);
        self
    }

    /// Sets the highest false-positive rate ε, between 0 and 1, when the filter holds its [capacity](Params::capacity). The builder
    /// chooses the smallest table, with buckets of [`bucket_size`](Self::bucket_size) slots, that keeps this rate. It compares the
    /// rate with [`Params::false_positive_rate_at_capacity`].
    ///
    /// The lowest possible rate is that of 32-bit fingerprints, about b·5·10⁻¹⁰ with buckets of b slots.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.request.false_positive_rate = Some(rate);
        self
    }

    /// Sets the exact fingerprint length f, in bits, instead of a rate: 2 to 32 in the single table, 4 to 32 in the packed one.
    pub fn fingerprint_bits(mut self, bits: u32) -> Self {
        self.request.fingerprint_bits = Some(bits);
        self
    }

    /// Sets the kind of table. By default, the builder chooses the one that takes fewer bytes.
    pub fn table(mut self, table: TableKind) -> Self {
        self.request.table = Some(table);
        self
    }

    /// Sets the number of slots in a bucket, b: 1 to 16 in the single table, 4 in the packed one. The default is 4; the builder
    /// does not compare other sizes. From 10,000 items on, the best of them would save less than 2.5 % of the bytes, and less
    /// than 0.1 % on average (docs/TUNING.md, "Parameters"). For a small filter, or to be sure, use `tuning::recommend`, which
    /// compares all sizes.
    pub fn bucket_size(mut self, slots: u32) -> Self {
        self.request.bucket_size = Some(slots);
        self
    }

    /// Sets how an item's two buckets are computed. The default is [`Addressing::AnySize`].
    pub fn addressing(mut self, addressing: Addressing) -> Self {
        self.request.addressing = addressing;
        self
    }

    /// Sets the hasher's seed. The default is 0. A secret seed makes it hard to find items that collide, for anyone who has neither
    /// the seed nor a snapshot, which contains it. The hashers are not cryptographic.
    pub fn seed(mut self, seed: u64) -> Self {
        self.request.seed = seed;
        self
    }

    /// Sets the instruction set that the filter uses. The default is [`Kernel::best`]. It affects the speed, not the results.
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// Sets the hasher. The default is [`Xxh3`].
    pub fn hasher<G: HashItem<u64>>(self, hasher: G) -> Builder<G> {
        Builder { request: self.request, hasher, kernel: self.kernel }
    }

    /// Returns the parameters that the filter would have. Allocates no table, so any size can be tried.
    ///
    /// # Errors
    /// The same as for [`build`](Self::build), except for memory and kernel.
    ///
    /// # Example
    /// ```
    /// use koel::ParamError;
    /// let builder = koel::CuckooFilter::builder().capacity(1000);
    /// let error = builder.clone().false_positive_rate(1e-12).params().unwrap_err();
    /// let ParamError::FalsePositiveRate { min: lowest, .. } = error else { panic!("{error}") };
    /// assert!(builder.false_positive_rate(lowest).params().is_ok());
    /// ```
    pub fn params(self) -> Result<Params, ParamError> {
        self.request.params()
    }

    /// Builds an empty filter. Takes time proportional to the table, which is zeroed.
    ///
    /// # Errors
    /// If a parameter is out of range, if the size or the precision was given twice or not at all, if the kernel is not
    /// available, or if the memory for the table cannot be allocated.
    pub fn build(self) -> Result<CuckooFilter<H>, BuildError> {
        // Check the kernel before allocating the table, which may be large.
        let dispatch = self.kernel.map_or_else(|| Ok(Dispatch::best()), Kernel::dispatch)?;
        let raw = RawFilter::new(self.request.params()?)?;
        Ok(CuckooFilter { core: raw.with_dispatch(dispatch), hasher: self.hasher })
    }

    /// Builds a filter of a known set: all these items, including duplicates. If no size was set, the capacity is the number of
    /// distinct items. Counting these takes eight bytes of memory per item until the filter is built, and the time to hash all
    /// items and to sort the hashes. With a [`capacity`](Self::capacity) or a number of [`buckets`](Self::buckets), nothing is
    /// counted.
    ///
    /// The filter is the same as after [`build`](Self::build) and [`insert_batch`](CuckooFilter::insert_batch). For a hundred
    /// million items and more, an [`ElasticFilter`](crate::ElasticFilter) planned for them fills in less than half the time
    /// (docs/GROWTH.md, "Known sets and large batches").
    ///
    /// # Errors
    /// The errors of [`build`](Self::build); and an error if there is no memory to count the items, or if not all items fit.
    ///
    /// # Example
    /// ```
    /// let items = ["alice", "bob", "carol"];
    /// let filter = koel::CuckooFilter::builder().false_positive_rate(0.001).build_from_items(&items)?;
    /// assert_eq!(filter.count_members(&items), 3);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn build_from_items<I: Items<H> + ?Sized>(mut self, items: &I) -> Result<CuckooFilter<H>, BuildError> {
        if self.request.buckets.is_none() && self.request.capacity.is_none() {
            self.request.capacity = Some(count_distinct(&items.hashes(&self.hasher, self.request.seed))?);
        }
        let mut filter = self.build()?;
        filter.insert_batch(items)?;
        Ok(filter)
    }
}

/// Returns the number of different hashes.
fn count_distinct(hashes: &impl Hashes) -> Result<usize, OutOfMemory> {
    let mut all = reserved(hashes.len())?;
    hashes.each_batch(0..hashes.len(), |batch| all.extend_from_slice(batch));
    all.sort_unstable();
    all.dedup();
    Ok(all.len())
}
