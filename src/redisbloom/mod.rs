//! Reads, queries and writes the cuckoo filters of RedisBloom: the chunks that its `CF.SCANDUMP` gives and its `CF.LOADCHUNK`
//! takes. [`guide::redisbloom`](crate::guide::redisbloom) describes the format.
//!
//! ```
//! use koel::redisbloom::RedisBloomFilter;
//!
//! // RESERVE of two buckets; one item, "alice", was added.
//! let header = [[1, 0, 0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0], [0; 8], [1, 0, 0, 0, 0, 0, 0, 0]].concat();
//! let header = [&header[..], &[2, 0, 20, 0, 1, 0]].concat();
//! let mut filter = RedisBloomFilter::from_chunks([(1, &header[..]), (5, &[0, 213, 0, 0])])?;
//! assert!(filter.contains("alice") && filter.count("alice") == 1 && !filter.contains("bob"));
//! assert!(filter.remove("alice"));
//! // What CF.LOADCHUNK takes, in order.
//! assert_eq!(filter.chunks().map(|(iterator, bytes)| (iterator, bytes.len())).collect::<Vec<_>>(), [(1, 38), (5, 4)]);
//! # Ok::<(), koel::SnapshotError>(())
//! ```
//!
//! - Answers equal those of RedisBloom, false positives and counts included. Chunks that are read and not changed are written back
//!   byte for byte; so is what removals leave.
//! - Items are bytes, as in the server: the argument of `CF.ADD`, a number in its decimal digits.
//! - A filter that has not grown converts to a [`CuckooFilter`](crate::CuckooFilter), and back
//!   ([`to_filter`](RedisBloomFilter::to_filter), [`from_filter`](RedisBloomFilter::from_filter)).
//! - Nothing can be inserted otherwise: the chunks have 8 bits of each item's hash, which is too few for a table of another size.
//!   New items belong in an [`ElasticFilter`](crate::ElasticFilter) beside this one.
//! - Safe for untrusted input: reading validates everything, and allocates memory only for bytes that exist.

mod chunks;
mod convert;
mod dump;
mod error;
mod filter;
mod header;

pub use crate::hash::RedisBloomHash;
pub use {
    chunks::Loader,
    error::RedisBloomError,
    filter::{RedisBloomFilter, SubFilters},
};
