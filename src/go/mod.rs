//! Reads and writes the files of Go's linvon/cuckoo-filter, version 0.4: those that its `Encode` writes and its `Decode` reads.
//! [`guide::go`](crate::guide::go) describes the format.
//!
//! ```
//! use koel::{Addressing, CuckooFilter, go::{self, MetroHash64}};
//!
//! // Go's library needs these three settings; all others are free.
//! let mut filter = CuckooFilter::builder()
//!     .capacity(1000)
//!     .false_positive_rate(0.001)
//!     .addressing(Addressing::PowerOfTwo)
//!     .hasher(MetroHash64)
//!     .seed(1337)
//!     .build()?;
//! filter.insert("alice")?; // in Go: Contain([]byte("alice"))
//! let file = go::encode(&filter)?;
//!
//! let mut read = go::decode(&file)?;
//! assert!(read.contains("alice"));
//! read.insert("bob")?;
//! let file = read.encode()?;
//! # assert!(go::decode(&file)?.contains("bob"));
//! # Ok::<(), Box<dyn core::error::Error>>(())
//! ```
//!
//! - Answers equal those of Go's library, false positives included. A file that is read and not changed is written back byte for
//!   byte.
//! - If Go's library finds no slot for an item, it keeps that one item outside the table: the *victim*. So does [`GoFilter`],
//!   until there is room for it.
//! - Safe for untrusted input: [`decode`] validates everything, and allocates memory only for bytes that exist.
//! - Items are hashed as the bytes of their [`Item`](crate::Item) implementation. Go's program must pass the same bytes to `Add`.

mod filter;
mod format;

use core::{error::Error, fmt};

pub use crate::hash::MetroHash64;
use crate::{hash::HasherId, params::Addressing, snapshot::SnapshotError, storage::OutOfMemory, text::other_wanted};
pub use {
    filter::{GoFilter, WithVictim},
    format::{decode, encode},
};

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
            Self::Addressing(given) => other_wanted(f, "addressing", given, "Go's library uses power-of-two", "that addressing"),
            Self::Hasher(given) => other_wanted(f, "hasher", given, "Go's library uses metrohash64", "that hasher"),
            Self::Seed(given) => other_wanted(f, "seed", given, "Go's library always uses 1337", "that seed"),
            Self::Buckets(given) => other_wanted(f, "buckets", given, "a Go file holds at most 2147483648", "a smaller capacity"),
            Self::Items(items) => {
                write!(f, "items: {items} in the filter, but a Go file holds at most {}; use several filters", u32::MAX)
            }
            Self::Aliasing { fingerprint_bits, bucket_size } => write!(
                f,
                "fingerprint bits: {fingerprint_bits} given with buckets of {bucket_size}, but in Go's single table such slots \
                 share bits; build the filter with a bucket size that is a multiple of 4, or with another fingerprint length"
            ),
            Self::Snapshot(_) => f.write_str("the snapshot to convert is corrupt"),
            Self::OutOfMemory(_) => f.write_str("the file cannot be allocated"),
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
