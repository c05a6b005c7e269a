//! From an item to 64 bits: [`Item`] says which bytes, a [`Hasher`] turns them into a hash.
//!
//! Not `core::hash::Hash`: its implementations add length prefixes, and write integers in the machine's own order, so
//! that the same item would have another place on another machine.

mod hashers;
mod item;

#[cfg(feature = "serde")]
pub use hashers::FromHasherId;
#[cfg(go_files)]
pub use hashers::MetroHash64;
pub use hashers::{AnyHasher, Hasher, HasherId, Xxh3};
pub use item::Item;

/// What a filter needs of its hasher to take items of type `T`.
pub trait HashItem<T: ?Sized> {
    /// The hash of an item.
    fn hash_item(&self, seed: u64, item: &T) -> u64;
}

impl<H: Hasher, T: Item + ?Sized> HashItem<T> for H {
    #[inline]
    fn hash_item(&self, seed: u64, item: &T) -> u64 {
        item.with_bytes(|bytes| self.hash(seed, bytes))
    }
}
