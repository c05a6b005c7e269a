//! From an item to 64 bits: [`Item`] says which bytes, a [`Hasher`] turns them into a hash.
//!
//! Not `core::hash::Hash`: its implementations add length prefixes, and write integers in the machine's own order, so
//! that the same item would have another place on another machine.

mod hashers;
mod item;

#[cfg(feature = "serde")]
pub use hashers::FromHasherId;
#[cfg(all(feature = "metrohash", target_endian = "little"))]
pub use hashers::MetroHash64;
pub use hashers::{AnyHasher, Hasher, HasherId, Xxh3};
pub use item::Item;
