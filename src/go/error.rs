//! The error for filters that a Go file cannot hold.

use core::{error::Error, fmt};

use super::format::{MOST_BUCKETS, MOST_ITEMS, SEED};
use crate::{hash::HasherId, params::Addressing, snapshot::SnapshotError, storage::OutOfMemory};

/// The filter cannot be written as a file for Go's library.
///
/// # Example
/// ```
/// use koel::{Addressing, CuckooFilter, go::{self, MetroHash64}};
/// let filter = CuckooFilter::builder().capacity(10).addressing(Addressing::PowerOfTwo).hasher(MetroHash64).seed(7);
/// let error = go::encode(&filter.fingerprint_bits(9).build()?).unwrap_err();
/// assert!(matches!(error, go::GoError::Seed(7)));
/// assert_eq!(error.to_string(), "seed: 7 given, but Go's library always uses 1337; build the filter with that seed");
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum GoError {
    /// The number of buckets must be a power of two.
    Addressing(Addressing),
    /// The hasher must be `MetroHash64`.
    Hasher(HasherId),
    /// The seed must be 1337.
    Seed(u64),
    /// There are more than 2³¹ buckets, the largest power of two that fits into the file's four bytes.
    Buckets(u64),
    /// There are 2³² items or more, which do not fit into the file's four bytes.
    Items(u64),
    /// With this fingerprint length and bucket size, slots of Go's single table overlap, and items are lost.
    #[non_exhaustive]
    Aliasing {
        /// The length of a fingerprint in bits.
        fingerprint_bits: u32,
        /// The number of slots in a bucket.
        bucket_size: u32,
    },
    /// The filter is a view of a corrupt snapshot.
    Snapshot(SnapshotError),
    /// Memory for the file cannot be allocated.
    OutOfMemory(OutOfMemory),
}

impl fmt::Display for GoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Addressing(addressing) => {
                write!(
                    f,
                    "addressing: {addressing} given, but Go's library uses power-of-two; build the filter with that addressing"
                )
            }
            Self::Hasher(hasher) => {
                write!(f, "hasher: {hasher} given, but Go's library uses metrohash64; build the filter with that hasher")
            }
            Self::Seed(seed) => {
                write!(f, "seed: {seed} given, but Go's library always uses {SEED}; build the filter with that seed")
            }
            Self::Snapshot(_) => f.write_str("the snapshot to convert is corrupt"),
            Self::OutOfMemory(_) => f.write_str("the file cannot be allocated"),
            Self::Buckets(buckets) => write!(
                f,
                "buckets: {buckets} given, but a Go file holds at most {MOST_BUCKETS}; build the filter with a smaller capacity"
            ),
            Self::Items(items) => {
                write!(f, "items: {items} in the filter, but a Go file holds at most {MOST_ITEMS}; use several filters")
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
            Self::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}
