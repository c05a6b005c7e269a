#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
// Loads and rates are for people to read: the last bits of a count beyond 2⁵³ are not missed.
#![allow(clippy::cast_precision_loss)]
#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "tests count in small numbers"))]

extern crate alloc;
#[cfg(any(feature = "std", test))]
extern crate std;

mod address;
mod bits;
mod builder;
mod codebook;
mod error;
mod filter;
mod hash;
mod kind;
mod max_load;
mod num;
mod params;
mod sizing;
mod snapshot;
mod table;
mod tuning;

#[cfg(all(feature = "metrohash", target_endian = "little"))]
pub use hash::MetroHash64;
pub use {
    builder::Builder,
    error::{BatchFull, DifferentParams, Full, MergeError, ParamError, SnapshotError, SnapshotErrorKind},
    filter::CuckooFilter,
    hash::{AnyHasher, Hasher, HasherId, Item, Xxh3},
    kind::{Addressing, TableKind},
    params::Params,
};
