//! Filters that grow and shrink. They consist of shards, which are small tables, or lists of few items: full shards split, and
//! underfull ones are merged.
//!
//! ```text
//! ElasticFilter ──hash──▶ Partition ──stream──▶ Generation ──directory──▶ place in a Pool ──▶ a shard's table or list
//! ```

mod builder;
mod directory;
mod facts;
mod generation;
mod generation_plan;
mod grouping;
mod lookup;
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
#[cfg(test)]
pub(crate) use shard::ShardParams;
#[cfg(feature = "std")]
pub(crate) use shared::Shared;
#[cfg(feature = "std")]
pub use shared::SharedFilter;
pub use {builder::ElasticBuilder, plan::ElasticParams};
pub(crate) use {
    directory::{DepthLayout, Directory, PlaceCode, Route, ShardBytes},
    facts::{equal, grows, summarize},
    generation::Generation,
    generation_plan::GenerationPlan,
    lookup::{Partitions, Shards, contains_all},
    partition::Partition,
    pool::times_in_table,
    shard::{BUCKET_SIZE, Key, Shard},
    stream::Shares,
};

/// A cuckoo filter that grows with its items, shrinks when they are removed, and keeps its false-positive rate at every size.
///
/// The table of a [`CuckooFilter`](crate::CuckooFilter) has a fixed size, which must be planned. This filter starts small and grows
/// as needed. Up to [`max_capacity`](ElasticBuilder::max_capacity), a lookup reads two buckets.
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
/// - No false negatives: an inserted item is found until it is removed, however the filter grows or shrinks meanwhile.
/// - A refused insertion changes no bit.
/// - Deterministic: the same operations in the same order give the same filter on every machine.
/// - The [`false_positive_rate`](Self::false_positive_rate) never exceeds the requested one, at any size.
///
/// # Growth
/// The filter consists of shards, each with a range of the hashes. A shard with few items is a sorted list of what a table would
/// store: five bytes per item at a rate of 0.1 %, up to about 700 items. Other shards are small tables with equal numbers of
/// buckets. An empty filter is an empty list, unless it is planned for many items ([`capacity`](ElasticBuilder::capacity)).
///
/// A full shard splits in two. Each item gives up one of its stored bits, which selects its half, so a split does not need the
/// items. It takes a fraction of a millisecond. Items have enough stored bits for all splits up to
/// [`max_capacity`](ElasticBuilder::max_capacity).
///
/// Beyond it, the filter adds a second generation of shards for new items. It starts as an empty list, too, and may have eight
/// times as many slots as the first one. Lookups of absent items then read two more buckets. Further generations follow, and the
/// rate holds at any size. An item that is in an earlier generation is counted there. (docs/GROWTH.md)
///
/// # Refusals
/// An item is refused only for one of these reasons ([`InsertErrorKind`](crate::InsertErrorKind)):
/// - `Limit`: the filter would exceed [`max_bytes`](ElasticBuilder::max_bytes). There is no limit by default.
/// - `OutOfMemory`: memory cannot be allocated.
/// - `Crowded`: too many items share a shard or two buckets, and splits do not separate them. Uniform hashes never cause this;
///   chosen ones may, for items of their own shard. Use a secret [`seed`](ElasticBuilder::seed) for untrusted input.
/// - `TooManyCopies`: the item has 2³² − 1 copies.
///
/// # Duplicates
/// An item can be inserted up to 2³² − 1 times. [`count`](Self::count) returns how often it was inserted, and each copy can be
/// removed. Copies do not make the filter grow. A list counts them. Tables hold every item and a few copies; extra copies are
/// counted beside the tables ([`table_len`](Self::table_len)). At a rate of 0.1 %, these take 5 to 8 bytes for each item that has
/// some, as long as none has more than 255 (docs/PERFORMANCE.md, "Copies"). They make insertions and removals slower.
/// [`insert_unique`](Self::insert_unique) stores an item only once.
///
/// # Removal
/// Remove only items that were inserted, as with a [`CuckooFilter`](crate::CuckooFilter#removal). Two underfull shards are merged,
/// a table that is left with few items becomes a list, and an empty last generation is dropped.
///
/// # Comparison
/// `==` compares contents, as for a [`CuckooFilter`](crate::CuckooFilter#comparison): how far the filters have grown does not matter,
/// nor does it matter which of them is an `ElasticFilter`, a `SharedFilter` or an [`ElasticView`](crate::ElasticView). Items are
/// told apart by the bits that are known of them up to `max_capacity`. Equal bytes take as long as equal contents. A `SharedFilter`
/// locks one partition at a time, so the result is of no single moment if other threads write meanwhile.
///
/// ```
/// use koel::{ElasticFilter, ElasticView};
/// let builder = ElasticFilter::builder().false_positive_rate(0.001).partitions(4);
/// let (mut filter, shared) = (builder.clone().build()?, builder.build_shared()?);
/// filter.insert_iter((0..5000u32).chain(10_000..30_000))?;
/// (10_000..30_000u32).for_each(|item| assert!(filter.remove(&item)));
/// shared.insert_iter((0..5000u32).rev())?;
/// assert!(filter == shared && ElasticView::over(shared.to_bytes())? == filter);
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
///
/// # Hashes
/// As for a [`CuckooFilter`](crate::CuckooFilter#hashes), hashes are 64-bit numbers that distinguish items.
#[derive(Clone)]
pub struct ElasticFilter<H = Xxh3> {
    pub(crate) core: Elastic,
    pub(crate) hasher: H,
}

/// The core of an [`ElasticFilter`]: its partitions and their parameters.
pub(crate) struct Elastic {
    pub partitions: Vec<Partition>,
    pub params: ElasticParams,
    /// The limit on [`charged_bytes`](Self::charged_bytes).
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

equal!([] ElasticFilter<H>, ElasticFilter<H>;);
impl<H: Eq> Eq for ElasticFilter<H> {}

/// Extends the filter as [`insert_unique_iter`](Self::insert_unique_iter) does.
///
/// # Panics
/// Panics if an item is refused.
impl<T, H: HashItem<T>> Extend<T> for ElasticFilter<H> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        if let Err(error) = self.insert_unique_iter(items) {
            panic!("the filter cannot be extended: {error}");
        }
    }
}
