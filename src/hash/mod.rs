//! From an item to 64 bits.
//!
//! [`Item`] says which bytes an item has, and a [`Hasher`] turns bytes into a hash: both are the same on every machine, so
//! a filter can be stored and read elsewhere. [`StdHasher`] uses `core::hash::Hash` instead, which is implemented for more
//! types but promises nothing beyond the process. [`HashItem`] is what the two have in common, and all that a filter's
//! operations need.

mod hasher;
mod item;
mod std_hasher;

#[cfg(feature = "serde")]
pub use hasher::FromHasherId;
#[cfg(go_files)]
pub use hasher::MetroHash64;
#[cfg(feature = "redisbloom")]
pub use hasher::RedisBloomHash;
pub(crate) use std_hasher::split_mix;
pub use {
    hasher::{AnyHasher, HashItem, Hasher, HasherId, Xxh3},
    item::Item,
    std_hasher::StdHasher,
};
