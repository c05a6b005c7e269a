//! Properties of growing filters: size, shards, parameters.

use core::fmt;

use super::{ElasticFilter, ElasticParams, partition::Partition, pool::first_table_bytes};
use crate::{
    bits::{in_memory, wide},
    params::TableKind,
};

/// Bytes charged against a limit beside the partitions, at least the size of the struct.
pub(crate) const FILTER_BYTES: usize = 1 << 9;

/// The properties of a filter with a core of shards.
macro_rules! grows {
    (impl [$($generics:tt)*] $filter:ty) => {
        impl<$($generics)*> $filter {
            /// Bytes of all tables with their padding, and of the lists of small partitions. For a view, the length of the
            /// snapshot.
            #[must_use]
            pub fn table_bytes(&self) -> usize {
                self.core.table_bytes()
            }

            /// The number of items in the tables: all of them, but for the copies that are counted beside the tables
            /// ([Duplicates](crate::ElasticFilter#duplicates)).
            #[must_use]
            pub fn table_len(&self) -> usize {
                self.core.table_len()
            }

            /// The number of partitions: [`ElasticBuilder::partitions`](crate::ElasticBuilder::partitions).
            #[must_use]
            pub fn partitions(&self) -> usize {
                self.params().partitions()
            }

            /// The number of shards; none of a partition with few items.
            #[must_use]
            pub fn shards(&self) -> usize {
                self.core.shards()
            }

            /// The number of buckets in all shards.
            #[must_use]
            pub fn buckets(&self) -> u64 {
                u64::from(self.params().buckets) * self.shards() as u64
            }

            /// The most buckets that a lookup reads: two, and two more for each generation that was added beyond the maximal
            /// capacity.
            #[must_use]
            pub fn buckets_per_lookup(&self) -> usize {
                2 * self.core.generations()
            }
        }
    };
}
pub(crate) use grows;

/// Writes the beginning of a summary.
pub(crate) fn summarize(f: &mut fmt::Formatter<'_>, items: usize, shards: usize, bytes: usize) -> fmt::Result {
    let plural = |number| if number == 1 { "" } else { "s" };
    write!(f, "{items} item{} in {shards} shard{}, {bytes} bytes", plural(items), plural(shards))
}

impl<H> ElasticFilter<H> {
    /// The bytes that the filter is charged against [`ElasticBuilder::max_bytes`](super::ElasticBuilder::max_bytes), at least
    /// [`size_in_bytes`](Self::size_in_bytes). Filters with the same parameters, shards and number of items with further copies are
    /// charged the same; how much memory they take depends on their history.
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
        self.core.charged()
    }

    /// Sets the most bytes that the filter may take, as [`ElasticBuilder::max_bytes`](super::ElasticBuilder::max_bytes) does; for
    /// filters that were read. A filter that already takes more keeps its items and stops growing.
    pub fn set_max_bytes(&mut self, bytes: usize) {
        self.core.max_bytes = bytes;
    }
}

impl ElasticParams {
    /// The number of slots of this many shards.
    pub(crate) fn slots_of(&self, shards: usize) -> u64 {
        u64::from(self.buckets) * u64::from(self.bucket_size) * wide(shards)
    }

    /// The number of items that fit before a shard is split.
    #[must_use]
    pub fn capacity(&self) -> usize {
        in_memory(self.capacity)
    }

    /// The number of items up to which a lookup reads two buckets.
    #[must_use]
    pub fn max_capacity(&self) -> usize {
        in_memory(self.max_capacity)
    }

    /// The highest false-positive rate at any size.
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.false_positive_rate
    }

    /// Bytes of an empty filter's tables, with their padding; `usize::MAX` if they are more. 0 if each partition keeps a list as
    /// long as it has few items. Takes constant time.
    ///
    /// # Example
    /// ```
    /// let builder = koel::ElasticFilter::builder().capacity(100_000).false_positive_rate(0.001);
    /// assert_eq!(builder.clone().params()?.table_bytes(), builder.build()?.table_bytes());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        first_table_bytes(&self.generation(0)).saturating_mul(self.partitions())
    }

    /// The most bytes that an empty filter with these parameters takes, with the tables that it gets when it no longer has few
    /// items: the least that [`max_bytes`](super::ElasticBuilder::max_bytes) has to allow. `usize::MAX` if they are more. Takes
    /// constant time.
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
        in_memory(self.charged_when_empty())
    }

    /// Bytes that an empty filter is charged against its limit.
    pub(crate) fn charged_when_empty(&self) -> u64 {
        wide(Partition::charged_when_empty(self)).saturating_mul(wide(self.partitions())).saturating_add(wide(FILTER_BYTES))
    }

    /// The kind of table.
    #[must_use]
    pub fn table(&self) -> TableKind {
        self.table
    }

    /// The number of slots in a bucket, b.
    #[must_use]
    pub fn bucket_size(&self) -> u32 {
        self.bucket_size.into()
    }

    /// The hasher's seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }
}
