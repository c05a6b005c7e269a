//! The builder.

use alloc::vec::Vec;

use super::{Elastic, ElasticFilter, ElasticParams, partition::Partition, plan::ElasticRequest};
#[cfg(feature = "std")]
use super::{SharedFilter, plan::SHARED_PARTITIONS};
use crate::{
    bits::{in_memory, wide},
    filter::BuildError,
    hash::{HashItem, Xxh3},
    kernel::{Dispatch, Kernel},
    params::{ParamError, TableKind},
    storage::{OutOfMemory, reserved},
};

/// Builder for [`ElasticFilter`].
///
/// Only [`false_positive_rate`](Self::false_positive_rate) must be set. Values are checked when the filter is built.
///
/// # Example
/// ```
/// use koel::ElasticFilter;
/// // Begins with room for a million items, and is good for a hundred million.
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

/// The builder of [`ElasticFilter::builder`], without a rate.
impl Default for ElasticBuilder {
    fn default() -> Self {
        Self { request: ElasticRequest::default(), max_bytes: usize::MAX, hasher: Xxh3, kernel: None }
    }
}

impl ElasticFilter {
    /// A builder of filters with the hasher [`Xxh3`]; [`ElasticBuilder::hasher`] sets another one.
    pub fn builder() -> ElasticBuilder {
        ElasticBuilder::default()
    }
}

impl<H> ElasticBuilder<H> {
    /// The highest false-positive rate ε at any size, between 0 and 1. With buckets of four slots, a rate below about 10⁻⁷ is
    /// refused: a filter stores at most 32 bits of an item, too few to keep such a rate up to 1,000 times the maximal capacity.
    pub fn false_positive_rate(mut self, rate: f64) -> Self {
        self.request.false_positive_rate = Some(rate);
        self
    }

    /// The number of different items that fit before a shard is split. By default, the filter has no tables, but a list of some
    /// four bytes for each item, until it has a thousand. So it is with any capacity for which it would begin with a few shards.
    pub fn capacity(mut self, items: usize) -> Self {
        self.request.capacity = Some(wide(items));
        self
    }

    /// The number of different items up to which a lookup reads two buckets. By default, 1000 times [`capacity`](Self::capacity),
    /// and at least 16 million.
    ///
    /// Each doubling of the range costs one bit per item while the filter is small. A maximal capacity of less than twice the
    /// capacity plans no growth: the filter has room for all these items from the start, and takes hardly more space than a
    /// [`CuckooFilter`](crate::CuckooFilter). It can still grow beyond this number: see [Growth](ElasticFilter#growth).
    pub fn max_capacity(mut self, items: usize) -> Self {
        self.request.max_capacity = Some(wide(items));
        self
    }

    /// The most bytes that the filter may take ([`size_in_bytes`](ElasticFilter::size_in_bytes)), at least those of an empty one
    /// ([`ElasticParams::size_in_bytes`]). An item that needs more is refused. By default, there is no limit.
    ///
    /// Shards and lists of copies are charged the most that they can take, so filters of equal content refuse the same items: an
    /// item may be refused while the filter takes a tenth less than this, or about half of it if most items have copies.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// The kind of table. By default packed; single if buckets do not have four slots.
    pub fn table(mut self, table: TableKind) -> Self {
        self.request.table = Some(table);
        self
    }

    /// The number of slots in a bucket, b: 1 to 16 in the single table, 4 in the packed one. By default, 4.
    pub fn bucket_size(mut self, slots: u32) -> Self {
        self.request.bucket_size = Some(slots);
        self
    }

    /// The number of partitions, a power of two from 1 to 256: parts of the filter that grow on their own, and that a
    /// [`SharedFilter`](crate::SharedFilter) locks on their own. By default, 1, and 64 for [`build_shared`](Self::build_shared).
    ///
    /// A partition without items takes some 360 bytes, and one with up to 256 items a list of four bytes or so for each.
    pub fn partitions(mut self, partitions: usize) -> Self {
        self.request.partitions = Some(partitions);
        self
    }

    /// The hasher's seed. By default, 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.request.seed = seed;
        self
    }

    /// The instruction set that the filter uses. By default, [`Kernel::best`]. It changes the speed, not the results.
    pub fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }

    /// Sets another hasher.
    pub fn hasher<G: HashItem<u64>>(self, hasher: G) -> ElasticBuilder<G> {
        let Self { request, max_bytes, kernel, .. } = self;
        ElasticBuilder { request, max_bytes, hasher, kernel }
    }

    /// The parameters that the filter would have.
    ///
    /// # Errors
    /// As [`build`](Self::build), apart from memory, its limit, and the kernel.
    pub fn params(self) -> Result<ElasticParams, ParamError> {
        self.request.params()
    }

    /// An empty filter.
    ///
    /// # Errors
    /// If a parameter is missing or out of range, if an empty filter takes more than [`max_bytes`](Self::max_bytes), if the kernel
    /// is not available, or if memory cannot be allocated.
    pub fn build(self) -> Result<ElasticFilter<H>, BuildError> {
        let Self { request, max_bytes, hasher, kernel } = self;
        let dispatch = kernel.map_or_else(|| Ok(Dispatch::best()), Kernel::dispatch)?;
        let params = request.params()?;
        let needed = params.charged_when_empty();
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
    /// An empty filter for many threads.
    ///
    /// # Errors
    /// As [`build`](Self::build).
    pub fn build_shared(mut self) -> Result<SharedFilter<H>, BuildError> {
        self.request.partitions.get_or_insert(SHARED_PARTITIONS);
        let filter = self.build()?;
        let room = reserved(filter.core.partitions.len())?;
        Ok(filter.with_locks(room))
    }
}

impl<H> ElasticFilter<H> {
    /// An empty filter with the given parameters, such as those of another filter.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn new(params: ElasticParams, hasher: H) -> Result<Self, OutOfMemory> {
        Self::with_dispatch(params, hasher, Dispatch::best())
    }

    pub(crate) fn with_dispatch(params: ElasticParams, hasher: H, dispatch: Dispatch) -> Result<Self, OutOfMemory> {
        Ok(Self { core: Elastic::from_partitions(empty_partitions(&params, dispatch)?, params), hasher })
    }
}

pub(crate) fn empty_partitions(params: &ElasticParams, dispatch: Dispatch) -> Result<Vec<Partition>, OutOfMemory> {
    let mut partitions = reserved(params.partitions())?;
    for _ in 0..params.partitions() {
        partitions.push(Partition::new(params, dispatch)?);
    }
    Ok(partitions)
}
