//! The properties of growing filters: sizes, shards, parameters.

use core::fmt;

use super::{
    ElasticFilter, ElasticParams, generation::Generation, partition::PARTITION_BYTES, pool::initial_table_bytes,
    shard::BUCKET_SIZE,
};
use crate::{
    bits::{in_memory, wide},
    params::TableKind,
};

/// Bytes charged against a limit for all but the partitions: at least the size of the filter's struct.
pub(crate) const FILTER_BYTES: usize = 1 << 9;

/// Implements the properties of a filter whose core has shards.
macro_rules! grows {
    (impl [$($generics:tt)*] $filter:ty) => {
        impl<$($generics)*> $filter {
            /// Returns the bytes of all tables with their padding, and of the keys of shards that are lists. For a view, this is
            /// the length of the snapshot.
            #[must_use]
            pub fn table_bytes(&self) -> usize {
                self.core.table_bytes()
            }

            /// Returns the number of items in the tables, and of distinct items in lists: all items except the extra copies, which
            /// are only counted ([Duplicates](crate::ElasticFilter#duplicates)).
            #[must_use]
            pub fn table_len(&self) -> usize {
                self.core.table_len()
            }

            /// Returns the number of partitions, as set by [`ElasticBuilder::partitions`](crate::ElasticBuilder::partitions).
            #[must_use]
            pub fn partitions(&self) -> usize {
                self.params().partitions()
            }

            /// Returns the number of shards: tables and lists, of all generations. An empty filter has one for each partition,
            /// unless its capacity calls for tables.
            #[must_use]
            pub fn shards(&self) -> usize {
                self.core.shards()
            }

            /// Returns the number of buckets in all tables: 0 as long as all shards are lists.
            #[must_use]
            pub fn buckets(&self) -> u64 {
                self.core.buckets()
            }

            /// Returns the most buckets that a lookup reads: two, and two more for each generation that was added beyond
            /// `max_capacity`. (Where a shard is a list, a lookup searches that instead.)
            #[must_use]
            pub fn buckets_per_lookup(&self) -> usize {
                2 * self.core.generations()
            }
        }
    };
}
pub(crate) use grows;

/// Implements `==` for pairs of growing filters, which compares their contents, partition by partition.
macro_rules! equal {
    ($([$($generics:tt)*] $filter:ty, $other:ty;)+) => {$(
        /// Compares parameters, hashers and contents: see [Comparison](crate::ElasticFilter#comparison).
        impl<H: PartialEq, $($generics)*> PartialEq<$other> for $filter {
            fn eq(&self, other: &$other) -> bool {
                let (ours, theirs) = (&self.core, &other.core);
                let is_same = |partition| {
                    $crate::filter::same_content(|salt| [ours.content(partition, salt), theirs.content(partition, salt)])
                };
                self.hasher == other.hasher
                    && ours.params() == theirs.params()
                    && (core::ptr::addr_eq(ours, theirs)
                        || ours.len() == theirs.len() && (0..ours.params().partitions()).all(is_same))
            }
        }
    )+};
}
pub(crate) use equal;

/// Writes the start of a summary: items, shards and bytes.
pub(crate) fn summarize(f: &mut fmt::Formatter<'_>, items: usize, shards: usize, bytes: usize) -> fmt::Result {
    let plural = |count| if count == 1 { "" } else { "s" };
    write!(f, "{items} item{} in {shards} shard{}, {bytes} bytes", plural(items), plural(shards))
}

impl<H> ElasticFilter<H> {
    /// Returns the bytes that the filter is charged against [`ElasticBuilder::max_bytes`](super::ElasticBuilder::max_bytes): at
    /// least [`size_in_bytes`](Self::size_in_bytes). Filters with equal parameters, equal shards and equally many items with extra
    /// copies are charged the same, although the memory that they take depends on their history.
    ///
    /// # Example
    /// ```
    /// let mut filter = koel::ElasticFilter::builder().false_positive_rate(0.001).build()?;
    /// filter.insert_iter(0..100_000u64)?;
    /// let copy = koel::ElasticFilter::from_bytes(&filter.to_bytes())?;
    /// assert_eq!(copy.charged_bytes(), filter.charged_bytes());
    /// assert!(copy.charged_bytes() >= filter.size_in_bytes());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn charged_bytes(&self) -> usize {
        self.core.charged_bytes()
    }

    /// Limits the bytes that the filter may take, as [`ElasticBuilder::max_bytes`](super::ElasticBuilder::max_bytes) does. Use it
    /// for filters that were read, since snapshots contain no limit. A filter that already takes more keeps its items and stops
    /// growing.
    pub fn set_max_bytes(&mut self, bytes: usize) {
        self.core.max_bytes = bytes;
    }
}

impl ElasticParams {
    /// Returns the number of items that fit before a shard splits.
    #[must_use]
    pub fn capacity(&self) -> usize {
        in_memory(self.capacity)
    }

    /// Returns the number of items up to which a lookup reads two buckets.
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        in_memory(self.max_capacity)
    }

    /// Returns the highest false-positive rate at any size.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.false_positive_rate
    }

    /// Returns the bytes of an empty filter's tables with their padding, or `usize::MAX` if they do not fit into a `usize`.
    /// Returns 0 if partitions start as empty lists. Takes constant time.
    ///
    /// # Example
    /// ```
    /// let builder = koel::ElasticFilter::builder().capacity(100_000).false_positive_rate(0.001);
    /// assert_eq!(builder.clone().params()?.table_bytes(), builder.build()?.table_bytes());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        initial_table_bytes(&self.generation(0)).saturating_mul(self.partitions())
    }

    /// Returns the least [`max_bytes`](super::ElasticBuilder::max_bytes) of a filter with these parameters: the most that an empty
    /// one takes with its first tables, or with lists that have room for one item each. Returns `usize::MAX` if the bytes do not fit
    /// into a `usize`. Takes constant time.
    ///
    /// # Example
    /// ```
    /// let builder = koel::ElasticFilter::builder().capacity(1000).false_positive_rate(0.001);
    /// let least = builder.clone().params()?.size_in_bytes();
    /// assert!(builder.max_bytes(least).build()?.size_in_bytes() <= least);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn size_in_bytes(&self) -> usize {
        in_memory(self.empty_charged_bytes())
    }

    /// Returns the bytes that an empty filter is charged against its limit, with room for the first item.
    pub(crate) fn empty_charged_bytes(&self) -> u64 {
        let partition = Generation::empty_charged_bytes(&self.generation(0)).saturating_add(PARTITION_BYTES);
        wide(partition).saturating_mul(wide(self.partitions())).saturating_add(wide(FILTER_BYTES))
    }

    /// Returns the kind of table: growing filters have packed tables.
    #[must_use]
    pub fn table(&self) -> TableKind {
        TableKind::Packed
    }

    /// Returns the number of slots in a bucket, b: four.
    #[must_use]
    pub fn bucket_size(&self) -> u32 {
        BUCKET_SIZE
    }

    /// Returns the hasher's seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }
}
