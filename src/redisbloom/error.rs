//! The error for filters that cannot be converted.

use core::{error::Error, fmt};

use super::header::MOST_SLOTS;
use crate::{
    hash::HasherId,
    params::{Addressing, TableKind},
    snapshot::SnapshotError,
    storage::OutOfMemory,
};

/// RedisBloom's filter cannot become a [`CuckooFilter`](crate::CuckooFilter), or the other way round.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, redisbloom::{RedisBloomError, RedisBloomFilter}};
/// let filter = CuckooFilter::builder().capacity(10).fingerprint_bits(8).build()?;
/// let error = RedisBloomFilter::from_filter(&filter).unwrap_err();
/// assert!(matches!(error, RedisBloomError::Hasher(_)));
/// assert_eq!(error.to_string(), "hasher: xxh3 given, but RedisBloom's is redisbloom; build the filter with that hasher");
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum RedisBloomError {
    /// RedisBloom's filter has grown: it has several sub-filters.
    SubFilters(usize),
    /// RedisBloom's filter has buckets of more than 16 slots.
    BucketSize(u32),
    /// The hasher must be `RedisBloomHash`.
    Hasher(HasherId),
    /// The seed must be 0.
    Seed(u64),
    /// The table must be the single one.
    Table(TableKind),
    /// Fingerprints must have 8 bits.
    FingerprintBits(u32),
    /// The number of buckets must be a power of two.
    Addressing(Addressing),
    /// There are more than 2³² slots, in which RedisBloom finds nothing.
    Slots(u64),
    /// The filter is a view of a corrupt snapshot.
    Snapshot(SnapshotError),
    /// The memory for the table could not be allocated.
    OutOfMemory(OutOfMemory),
}

impl fmt::Display for RedisBloomError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const AS_IT_IS: &str = "query the dump as it is, or insert the items into a new filter";
        match self {
            Self::SubFilters(filters) => {
                write!(f, "sub-filters: {filters} given, but a filter of fixed size has 1 table; {AS_IT_IS}")
            }
            Self::BucketSize(slots) => {
                let sizes = TableKind::Single.bucket_sizes();
                write!(
                    f,
                    "bucket size: {slots} given, but the single table takes {} to {}; {AS_IT_IS}",
                    sizes.start(),
                    sizes.end()
                )
            }
            Self::Hasher(hasher) => {
                let own = HasherId::REDIS_BLOOM;
                write!(f, "hasher: {hasher} given, but RedisBloom's is {own}; build the filter with that hasher")
            }
            Self::Seed(seed) => {
                write!(f, "seed: {seed} given, but RedisBloom always uses 0; build the filter with that seed")
            }
            Self::Table(table) => {
                let single = TableKind::Single;
                write!(f, "table: {table} given, but RedisBloom's is {single}; build the filter with that table")
            }
            Self::FingerprintBits(bits) => {
                write!(f, "fingerprint bits: {bits} given, but RedisBloom's have 8; build the filter with that length")
            }
            Self::Addressing(addressing) => {
                let own = Addressing::PowerOfTwo;
                write!(f, "addressing: {addressing} given, but RedisBloom uses {own}; build the filter with that addressing")
            }
            Self::Slots(slots) => write!(
                f,
                "slots: {slots} given, but RedisBloom can use at most {MOST_SLOTS}; build the filter with a smaller capacity"
            ),
            Self::Snapshot(_) => f.write_str("the snapshot to convert is corrupt"),
            Self::OutOfMemory(_) => f.write_str("the filter cannot be copied"),
        }
    }
}

impl Error for RedisBloomError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Snapshot(error) => Some(error),
            Self::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}

impl From<OutOfMemory> for RedisBloomError {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory(error)
    }
}
