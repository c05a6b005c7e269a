//! Where the shards of a growing filter are: in memory that it owns, or in a snapshot that the caller provides.

use alloc::vec::Vec;

use super::{ElasticParams, lane::Lane, look_up::Lanes};
use crate::{
    kernel::Dispatch,
    storage::{OutOfMemory, reserved},
};

/// Where the shards of a growing filter are: in memory that the filter owns ([`OwnedShards`]), or in a snapshot that the caller
/// provides ([`SnapshotShards`](super::SnapshotShards)).
///
/// This trait is sealed.
pub trait ShardStorage: sealed::Sealed {}

pub(crate) mod sealed {
    use super::super::{ElasticParams, look_up::Shards};
    use crate::kernel::Dispatch;

    #[allow(private_bounds, private_interfaces, reason = "nobody else can implement or call it")]
    pub trait Sealed {
        /// What is asked for hashes.
        type Shards<'a>: Shards<'a>
        where
            Self: 'a;

        fn shards<'a>(&'a self, params: &'a ElasticParams) -> Self::Shards<'a>;

        fn dispatch(&self) -> Dispatch;
        fn set_dispatch(&mut self, dispatch: Dispatch);

        fn len(&self) -> usize;
        fn false_positive_rate(&self) -> f64;
        fn shard_count(&self) -> usize;
        /// The most layers of a lane.
        fn layers(&self) -> usize;
        /// Bytes of all tables, with their padding.
        fn table_bytes(&self) -> usize;
        /// Bytes of memory behind this struct.
        fn size_in_bytes(&self) -> usize;
    }
}

/// Shards in memory that the filter owns: the storage of an [`ElasticFilter`](super::ElasticFilter).
#[derive(Clone)]
pub struct OwnedShards {
    pub(super) lanes: Vec<Lane>,
    /// The most bytes that the filter may be charged.
    pub(super) max_bytes: usize,
}

/// What a filter is charged against a limit beside its lanes, at least the size of its struct.
pub(super) const FILTER_BYTES: usize = 1 << 9;

impl ShardStorage for OwnedShards {}

impl OwnedShards {
    /// A copy, or an error if memory cannot be allocated.
    pub(super) fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut lanes = reserved(self.lanes.len())?;
        for lane in &self.lanes {
            lanes.push(lane.try_clone()?);
        }
        Ok(Self { lanes, max_bytes: self.max_bytes })
    }

    /// What the filter is charged against its limit.
    pub(super) fn charged(&self) -> usize {
        self.lanes.iter().map(Lane::charged).fold(FILTER_BYTES, usize::saturating_add)
    }
}

#[allow(private_interfaces, reason = "the trait is sealed")]
impl sealed::Sealed for OwnedShards {
    type Shards<'a> = Lanes<'a>;

    #[inline]
    fn shards<'a>(&'a self, params: &'a ElasticParams) -> Lanes<'a> {
        Lanes { lanes: &self.lanes, params }
    }

    fn dispatch(&self) -> Dispatch {
        self.lanes.first().map_or_else(Dispatch::best, Lane::dispatch)
    }

    fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.lanes.iter_mut().for_each(|lane| lane.set_dispatch(dispatch));
    }

    fn len(&self) -> usize {
        self.lanes.iter().map(Lane::len).sum()
    }

    fn false_positive_rate(&self) -> f64 {
        self.lanes.iter().map(Lane::false_positive_rate).sum::<f64>() / self.lanes.len() as f64
    }

    fn shard_count(&self) -> usize {
        self.lanes.iter().map(Lane::shards).sum()
    }

    fn layers(&self) -> usize {
        self.lanes.iter().map(|lane| lane.layers().count()).max().unwrap_or(0)
    }

    fn table_bytes(&self) -> usize {
        self.lanes.iter().map(Lane::table_bytes).sum()
    }

    fn size_in_bytes(&self) -> usize {
        self.lanes.capacity() * size_of::<Lane>() + self.lanes.iter().map(Lane::size_in_bytes).sum::<usize>()
    }
}
