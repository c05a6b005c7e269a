//! The builder of growing filters.

use super::{Elastic, ElasticFilter, ElasticParams, partition::Partition, plan::ElasticRequest};
#[cfg(feature = "std")]
use super::{SharedFilter, plan::SHARED_PARTITIONS};
#[cfg(feature = "std")]
use crate::storage::reserved;
use crate::{
    bits::{in_memory, wide},
    filter::BuildError,
    hash::{HashItem, Xxh3},
    kernel::{Dispatch, Kernel},
    params::ParamError,
    storage::{OutOfMemory, check_memory, collected},
};

/// Builder for [`ElasticFilter`].
///
/// Only [`false_positive_rate`](Self::false_positive_rate) is required. Values are checked when the filter is built.
///
/// # Example
/// ```
/// use koel::ElasticFilter;
/// // Starts with room for a million items, and is planned for a hundred million.
/// let filter = ElasticFilter::builder().capacity(1_000_000).max_capacity(100_000_000).false_positive_rate(0.001).build()?;
/// assert!(filter.is_empty());
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder builds nothing until `build` is called"]
pub struct ElasticBuilder<H = Xxh3> {
    request: ElasticRequest,
    max_bytes: usize,
    hasher: H,
    kernel: Option<Kernel>,
}

/// Returns the same builder as [`ElasticFilter::builder`].
impl Default for ElasticBuilder {
    fn default() -> Self {
        Self { request: ElasticRequest::default(), max_bytes: usize::MAX, hasher: Xxh3, kernel: None }
    }
}

impl ElasticFilter {
    /// Returns a builder of filters with the hasher [`Xxh3`]. [`ElasticBuilder::hasher`] sets another one.
    pub fn builder() -> ElasticBuilder {
        ElasticBuilder::default()
    }
}

impl<H> ElasticBuilder<H> {
    /// Sets the highest false-positive rate ε at any size, below 1. The lowest possible rate is about 2 × 10⁻⁹: lookups compare at
    /// most 32 bits of an item, and a small part of the rate is left for items beyond [`max_capacity`](Self::max_capacity).
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.request.false_positive_rate = Some(rate);
        self
    }

    /// Sets the number of distinct items that fit before a shard splits. The tables for them are allocated at the start if they
    /// are more than eight, or if no growth is planned ([`max_capacity`](Self::max_capacity)). Otherwise, and by default, each
    /// partition starts as an empty list: see [Growth](ElasticFilter#growth).
    pub fn capacity(mut self, items: usize) -> Self {
        self.request.capacity = Some(wide(items));
        self
    }

    /// Sets the number of distinct items up to which a lookup reads two buckets. The default is 1000 times
    /// [`capacity`](Self::capacity), and at least 16 million.
    ///
    /// Each doubling of the range costs one bit per item while the filter is small. A `max_capacity` below twice the `capacity`
    /// plans no growth: the filter has room for all these items from the start, and takes hardly more space than a
    /// [`CuckooFilter`](crate::CuckooFilter). It can still grow beyond this number: see [Growth](ElasticFilter#growth).
    pub fn max_capacity(mut self, items: usize) -> Self {
        self.request.max_capacity = Some(wide(items));
        self
    }

    /// Limits the bytes that the filter may take ([`size_in_bytes`](ElasticFilter::size_in_bytes)). The least limit is
    /// [`ElasticParams::size_in_bytes`], which has room for an item in each partition. An item that needs more is refused. By
    /// default, there is no limit.
    ///
    /// The limit is compared with [`charged_bytes`](ElasticFilter::charged_bytes), which depend on the content alone, so filters
    /// with equal content refuse the same items. Tables are charged with unused memory beside them, and extra copies as if all
    /// counts were long. An item may therefore be refused while the filter takes less than the limit. A removal never raises the
    /// charge.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets the number of partitions, a power of two from 1 to 256. Partitions grow independently, and a
    /// [`SharedFilter`](crate::SharedFilter) has one lock for each. The default is 1, or 64 for
    /// [`build_shared`](Self::build_shared).
    ///
    /// An empty partition takes about 400 bytes, unless [`capacity`](Self::capacity) calls for tables. Against
    /// [`max_bytes`](Self::max_bytes), it is charged little more than a KiB.
    pub fn partitions(mut self, partitions: usize) -> Self {
        self.request.partitions = Some(partitions);
        self
    }

    /// Sets the hasher's seed. The default is 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.request.seed = seed;
        self
    }

    /// Sets the instruction set that the filter uses. The default is [`Kernel::best`]. It changes the speed, not the results.
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// Sets the hasher.
    pub fn hasher<G: HashItem<u64>>(self, hasher: G) -> ElasticBuilder<G> {
        let Self { request, max_bytes, kernel, .. } = self;
        ElasticBuilder { request, max_bytes, hasher, kernel }
    }

    /// Returns the parameters that the filter would have.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build), except those about memory, the memory limit and the kernel.
    pub fn params(self) -> Result<ElasticParams, ParamError> {
        self.request.params()
    }

    /// Builds an empty filter.
    ///
    /// # Errors
    /// Returns an error if a parameter is missing or out of range, if [`max_bytes`](Self::max_bytes) is below the least limit, if
    /// the kernel is not available, or if memory cannot be allocated.
    pub fn build(self) -> Result<ElasticFilter<H>, BuildError> {
        let Self { request, max_bytes, hasher, kernel } = self;
        let dispatch = kernel.map_or_else(|| Ok(Dispatch::best()), Kernel::dispatch)?;
        let params = request.params()?;
        let needed = params.empty_charged_bytes();
        if needed > wide(max_bytes) {
            return Err(ParamError::MaxBytes { given: max_bytes, needed: in_memory(needed) }.into());
        }
        let mut filter = ElasticFilter::with_dispatch(params, hasher, dispatch)?;
        filter.set_max_bytes(max_bytes);
        Ok(filter)
    }
}

#[cfg(feature = "std")]
impl<H> ElasticBuilder<H> {
    /// Builds an empty filter for many threads.
    ///
    /// # Errors
    /// The errors of [`build`](Self::build).
    pub fn build_shared(mut self) -> Result<SharedFilter<H>, BuildError> {
        self.request.partitions.get_or_insert(SHARED_PARTITIONS);
        let filter = self.build()?;
        let room = reserved(filter.core.partitions.len())?;
        Ok(filter.with_locks(room))
    }
}

impl<H> ElasticFilter<H> {
    /// Builds an empty filter with the given parameters, for example those of another filter.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated.
    pub fn new(params: ElasticParams, hasher: H) -> Result<Self, OutOfMemory> {
        Self::with_dispatch(params, hasher, Dispatch::best())
    }

    pub(crate) fn with_dispatch(params: ElasticParams, hasher: H, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        let (needed, plan) = (in_memory(params.empty_charged_bytes()), params.generation(0));
        let partitions = (0..params.partitions()).map(|_| Partition::new(plan, dispatch));
        let partitions = check_memory(needed).and_then(|()| collected(partitions));
        // The error names what the whole filter takes, not the block of tables that failed.
        let partitions = partitions.map_err(|_| OutOfMemory::of(needed))?;
        Ok(Self { core: Elastic::from_partitions(partitions, params), hasher })
    }
}
