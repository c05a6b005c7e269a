//! Properties of a shared filter: size, false-positive rate, parameters.

use core::fmt;

use super::{
    super::{ElasticParams, facts::Summary, storage::FILTER_BYTES},
    SharedFilter,
    lock::LockedLane,
};
use crate::{filter::by_own_methods, kernel::Kernel};

impl<H> SharedFilter<H> {
    /// The number of items in the filter, counting duplicates. Exact if no other thread writes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.read().len()).sum()
    }

    /// True if the filter holds no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.read().len() == 0)
    }

    /// The false-positive rate ε at the moment, as [`ElasticFilter::false_positive_rate`](crate::ElasticFilter::false_positive_rate)
    /// states it.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.lanes.iter().map(|lane| lane.read().false_positive_rate()).sum::<f64>() / self.lanes.len() as f64
    }

    /// The memory used by the filter, in bytes: tables with their padding, directories, locks, and the struct itself.
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        let lanes = self.lanes.capacity() * size_of::<LockedLane>();
        size_of::<Self>() + lanes + self.lanes.iter().map(|lane| lane.read().size_in_bytes()).sum::<usize>()
    }

    /// Bytes of all tables, with their padding.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.read().table_bytes()).sum()
    }

    /// What the filter is charged against its limit.
    pub(super) fn charged(&self) -> usize {
        self.lanes.iter().map(LockedLane::charged).fold(FILTER_BYTES, usize::saturating_add)
    }

    /// Bits of memory per item; infinite for an empty filter.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        8.0 * self.size_in_bytes() as f64 / self.len() as f64
    }

    /// The number of lanes, each of which has a lock.
    #[must_use]
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// The number of shards.
    #[must_use]
    pub fn shards(&self) -> usize {
        self.lanes.iter().map(|lane| lane.read().shards()).sum()
    }

    /// The filter's parameters.
    #[must_use]
    pub fn params(&self) -> ElasticParams {
        self.params
    }

    /// The kernel that the filter uses.
    #[must_use]
    pub fn kernel(&self) -> Kernel {
        self.dispatch.kernel()
    }

    /// The hasher.
    #[must_use]
    pub fn hasher(&self) -> &H {
        &self.hasher
    }
}

/// The parameters and the number of items, without the tables.
impl<H> fmt::Debug for SharedFilter<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedFilter").field("params", &self.params).field("len", &self.len()).finish_non_exhaustive()
    }
}

/// A one-line summary: shards, items, size and false-positive rate.
impl<H> fmt::Display for SharedFilter<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (items, shards, bytes) = (self.len(), self.shards(), self.size_in_bytes());
        Summary { items, shards, bytes, false_positive_rate: self.false_positive_rate() }.fmt(f)
    }
}

by_own_methods!(SharedFilter<H>, H);
