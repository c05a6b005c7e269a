//! Filters that grow and shrink: many small tables, shards, that split when they are full and join when they are underfull.
//!
//! ```text
//! ElasticFilter ──hash──▶ Partition ──stream──▶ Generation ──directory──▶ place in a Pool ──▶ a shard's table
//! ```

mod builder;
mod directory;
mod facts;
mod few;
mod generation;
mod grouping;
mod look_up;
mod merge;
mod operations;
mod partition;
mod plan;
mod pool;
mod shard;
#[cfg(feature = "std")]
mod shared;
mod stream;

use alloc::vec::Vec;

use crate::{
    filter::{Core as _, CoreMut as _, changes, lookups, merges, planned},
    hash::{HashItem, Xxh3},
    kernel::Hashes as _,
};
#[cfg(feature = "std")]
pub(crate) use shared::Shared;
#[cfg(feature = "std")]
pub use shared::SharedFilter;
pub use {builder::ElasticBuilder, plan::ElasticParams};
pub(crate) use {
    directory::Directory,
    facts::{grows, summarize},
    few::FewInSnapshot,
    generation::Generation,
    look_up::{Shards, contains_all},
    partition::Partition,
    plan::GenerationPlan,
    pool::DepthLayout,
    shard::{Key, LookupLayout, Shard, ShardParams},
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
/// - The [`false_positive_rate`](Self::false_positive_rate) never exceeds the requested one, at any size.
///
/// # Growth
/// A filter of few items is a list of what its tables would know of them, in four bytes each or so: up to a thousand items, or 256 in each
/// of several partitions.
///
/// A larger one consists of shards, small tables of equal numbers of buckets. A full shard splits in two: each item gives up one
/// bit of its fingerprint, which selects its half. So splitting needs no items, and takes a fraction of a millisecond.
/// Fingerprints begin long enough for all splits up to [`max_capacity`](ElasticBuilder::max_capacity). Beyond it, the filter adds
/// a second generation of shards for new items, and lookups of absent items read two buckets more. Further generations follow, as
/// long as fingerprints have bits for the rate: to at least 1,000 times the maximal capacity. (docs/GROWTH.md)
///
/// # Refusals
/// An item is refused only for one of these reasons ([`InsertErrorKind`](crate::InsertErrorKind)):
/// - `Limit`: the filter would exceed [`max_bytes`](ElasticBuilder::max_bytes). There is no limit by default.
/// - `OutOfMemory`: memory cannot be allocated.
/// - `Generations`: the filter holds at least 1,000 times its maximal capacity, and no further generation could keep the rate.
/// - `Crowded`: too many items have hashes that begin with the same bits. Uniform hashes do not; chosen ones may. Use a secret
///   [`seed`](ElasticBuilder::seed) for untrusted input.
/// - `TooManyCopies`: the item has 2³² − 1 copies.
///
/// # Duplicates
/// An item can be inserted any number of times, up to 2³² − 1; [`count`](Self::count) says how often it was, and each copy can be
/// removed. Copies do not make the filter grow. Tables hold every item, and a few copies. Further ones are counted beside them
/// ([`table_len`](Self::table_len)), in about 10 bytes for each item that has some; insertions and removals take longer then
/// (docs/DESIGN.md, "Copies"). [`insert_unique`](Self::insert_unique) stores an item once.
///
/// # Removal
/// Remove only items that were inserted, as with a [`CuckooFilter`](crate::CuckooFilter#removal). Two underfull shards are joined
/// again.
///
/// # Hashes
/// As those of a [`CuckooFilter`](crate::CuckooFilter#hashes): any 64-bit numbers that tell items apart.
#[derive(Clone)]
pub struct ElasticFilter<H = Xxh3> {
    pub(crate) core: Elastic,
    pub(crate) hasher: H,
}

/// Partitions in memory, and their parameters: the core of an [`ElasticFilter`].
#[derive(Clone)]
pub(crate) struct Elastic {
    pub partitions: Vec<Partition>,
    pub params: ElasticParams,
    /// The most bytes that the filter may be charged.
    max_bytes: usize,
}

lookups! {
    impl [H] ElasticFilter<H>, H;
    example "ElasticFilter::builder().false_positive_rate(0.001).build()?", open "# // Not a view."
}
changes! { impl [H] ElasticFilter<H>, H; example "ElasticFilter::builder().false_positive_rate(0.001).build()?" }
merges!(ElasticFilter);
planned!(impl [H] ElasticFilter<H>, "ElasticFilter", ElasticParams);
grows!(impl [H] ElasticFilter<H>);

/// Equality of parameters, hashers, shards and tables.
impl<H: PartialEq> PartialEq for ElasticFilter<H> {
    fn eq(&self, other: &Self) -> bool {
        self.hasher == other.hasher && self.core == other.core
    }
}

impl<H: Eq> Eq for ElasticFilter<H> {}

/// [`insert_unique_iter`](Self::insert_unique_iter).
///
/// # Panics
/// If an item is refused.
impl<T, H: HashItem<T>> Extend<T> for ElasticFilter<H> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        if let Err(error) = self.insert_unique_iter(items) {
            panic!("the filter cannot be extended: {error}");
        }
    }
}
