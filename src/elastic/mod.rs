//! Filters that grow and shrink: many small tables, shards, that split when they are full and join when they are underfull.
//!
//! ```text
//! ElasticFilter ──hash──▶ Lane ──stream──▶ Layer ──directory──▶ place in a Pool ──▶ a shard's table
//! ```

// Declared first so that rustdoc lists its methods first.
mod operations;

mod builder;
mod facts;
mod lane;
mod layer;
mod look_up;
mod merge;
mod plan;
mod pool;
mod refusal;
mod shard;
#[cfg(feature = "std")]
mod shared;
mod sharing;
mod storage;
mod stored;
mod stream;

use crate::{filter::Filter, hash::Xxh3};
#[cfg(feature = "std")]
pub use shared::{Shared, SharedFilter};
pub use {
    builder::ElasticBuilder,
    facts::CoreGrow,
    plan::ElasticParams,
    storage::{OwnedShards, ShardStorage, SnapshotShards},
};
pub(crate) use {
    lane::Lane,
    plan::LayerPlan,
    refusal::nearest,
    shard::{Shard, ShardParams},
    stream::Shares,
};

/// A cuckoo filter that grows with its items, shrinks when they are removed, and keeps its false-positive rate at every size.
///
/// A [`CuckooFilter`](crate::CuckooFilter) has a table of fixed size, which must be planned. This filter starts small and grows when
/// it has to. Up to [`max_capacity`](ElasticBuilder::max_capacity), a lookup reads two buckets.
///
/// ```
/// use koel::ElasticFilter;
/// let mut seen = ElasticFilter::builder().false_positive_rate(0.001).build()?;
/// seen.insert_iter(0..100_000u64)?;
/// assert!(seen.contains(&7u64) && seen.len() == 100_000);
/// assert!(seen.false_positive_rate() < 0.001);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
///
/// # Guarantees
/// - No false negatives: an item that was inserted is found until it is removed, however the filter has grown or shrunk.
/// - A refused insertion changes no bit.
/// - Deterministic: the same operations in the same order give the same filter on every machine.
/// - The [`false_positive_rate`](Filter::false_positive_rate) never exceeds the requested one, at any size.
///
/// # Growth
/// The filter consists of shards, small tables of equal numbers of buckets. A full shard splits in two: each item gives up one
/// bit of its fingerprint, which selects its half. So splitting needs no items, and takes a fraction of a millisecond.
/// Fingerprints begin long enough for all splits up to [`max_capacity`](ElasticBuilder::max_capacity). Beyond it, the filter adds
/// a second layer of shards for new items, and lookups of absent items read two buckets more. Further layers follow, as long as
/// fingerprints have bits for the rate: to at least 1,000 times the maximal capacity. (docs/GROWTH.md)
///
/// # Refusals
/// An item is refused only for one of these reasons ([`InsertErrorKind`](crate::InsertErrorKind)):
/// - `Copies`, `CopiesOfOthers`: copies fill its buckets; see [Duplicates](ElasticFilter#duplicates).
/// - `Limit`: the filter would exceed [`max_bytes`](ElasticBuilder::max_bytes). There is no limit by default.
/// - `OutOfMemory`: memory cannot be allocated.
/// - `Layers`: the filter holds at least 1,000 times its maximal capacity, and no further layer could keep the rate.
/// - `Crowded`: too many items have hashes that begin with the same bits. Uniform hashes do not; chosen ones may. Use a secret
///   [`seed`](ElasticBuilder::seed) for untrusted input.
///
/// # Duplicates
/// The filter is a multiset, as a [`CuckooFilter`](crate::CuckooFilter#duplicates) is. An item has room for 2b copies, eight by
/// default, in each layer. A further one is refused, and never makes the filter grow. In a shard less than a quarter full, an item
/// is also refused if copies of other items fill more than half of its two buckets.
///
/// # Removal
/// Remove only items that were inserted, as with a [`CuckooFilter`](crate::CuckooFilter#removal). Two underfull shards are joined
/// again.
///
/// # Hashes
/// As those of a [`CuckooFilter`](crate::CuckooFilter#hashes): any 64-bit numbers that tell items apart.
///
/// # Storage
/// `S` is where the shards are. With [`OwnedShards`], the filter owns its memory and can be updated. With [`SnapshotShards`], it
/// is an [`ElasticView`](crate::ElasticView): the shards are read from a snapshot that the caller provides.
pub type ElasticFilter<H = Xxh3, S = OwnedShards> = Filter<Elastic<S>, H>;

/// Shards and their parameters: the core of an [`ElasticFilter`].
#[derive(Clone)]
pub struct Elastic<S = OwnedShards> {
    pub(crate) storage: S,
    pub(crate) params: ElasticParams,
}
