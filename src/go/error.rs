//! What Go's files cannot say.

use core::{error::Error, fmt};

use super::format::{MOST_BUCKETS, MOST_ITEMS, SEED};
use crate::{hash::HasherId, params::Addressing, snapshot::SnapshotError};

/// A filter that Go's library could not read.
///
/// # Example
/// ```
/// use koel::{Addressing, CuckooFilter, MetroHash64, go};
/// let filter = CuckooFilter::builder().capacity(10).addressing(Addressing::PowerOfTwo).hasher(MetroHash64).seed(7);
/// let error = go::encode(&filter.fingerprint_bits(9).build()?).unwrap_err();
/// assert!(matches!(error, go::GoError::Seed(7)));
/// assert_eq!(error.to_string(), "seed: 7 given, but Go's library has no other than 1337; build the filter with that one");
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum GoError {
    /// Go's buckets are a power of two.
    Addressing(Addressing),
    /// Go hashes with `MetroHash64`.
    Hasher(HasherId),
    /// Go's seed is 1337.
    Seed(u64),
    /// The number of buckets has four bytes in the file.
    Buckets(u64),
    /// The number of items has four bytes in the file.
    Items(u64),
    /// In Go's table slots of this length in buckets of this size share bits, and so it loses items.
    #[non_exhaustive]
    Aliasing {
        /// The length of a fingerprint.
        fingerprint_bits: u32,
        /// Slots of a bucket.
        bucket_size: u32,
    },
    /// The filter is a view of a corrupt snapshot.
    Snapshot(SnapshotError),
}

impl fmt::Display for GoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addressing(addressing) => {
                write!(f, "addressing: {addressing} given, but Go's library has powers of two; build the filter with those")
            }
            Self::Hasher(hasher) => {
                write!(f, "hasher: {hasher} given, but Go's library has metrohash64; build the filter with that one")
            }
            Self::Seed(seed) => {
                write!(f, "seed: {seed} given, but Go's library has no other than {SEED}; build the filter with that one")
            }
            Self::Snapshot(_) => f.write_str("the snapshot to convert is corrupt"),
            Self::Buckets(buckets) => write!(
                f,
                "buckets: {buckets} given, but Go's files say up to {MOST_BUCKETS}; build the filter with a smaller capacity"
            ),
            Self::Items(items) => {
                write!(f, "items: {items} in the filter, but Go's files say up to {MOST_ITEMS}; spread them over several filters")
            }
            Self::Aliasing { fingerprint_bits, bucket_size } => write!(
                f,
                "fingerprint bits: {fingerprint_bits} given with buckets of {bucket_size}, but in Go's single table such slots \
                 share bits; build the filter with a bucket size that is a multiple of 4, or with another fingerprint length"
            ),
        }
    }
}

impl Error for GoError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Snapshot(error) => Some(error),
            _ => None,
        }
    }
}
