//! What a filter needs of its hasher.

use super::{Hasher, Item};

/// A hasher that takes items of type `T`: the bound of every operation that takes an item.
///
/// Every [`Hasher`] takes every [`Item`], and [`StdHasher`](super::StdHasher) takes every type that implements
/// `core::hash::Hash`. To write a hasher, implement [`Hasher`]; to add a type of items, implement [`Item`].
///
/// # Example
/// A function for filters with any hasher, as long as it takes strings:
/// ```
/// use koel::{HashItem, Xxh3};
///
/// fn shard(hasher: &impl HashItem<str>, name: &str) -> u64 {
///     hasher.hash_item(0, name) % 16
/// }
///
/// assert_eq!(shard(&Xxh3, "alice"), shard(&Xxh3, "alice"));
/// ```
#[diagnostic::on_unimplemented(
    message = "the hasher `{Self}` does not take items of type `{T}`",
    note = "a `koel::Hasher`, such as `Xxh3`, takes every type that implements `koel::Item`",
    note = "`koel::StdHasher` takes every type that implements `core::hash::Hash`"
)]
pub trait HashItem<T: ?Sized> {
    /// The hash of `item` under `seed`: 64 uniformly distributed bits.
    fn hash_item(&self, seed: u64, item: &T) -> u64;
}

impl<H: Hasher, T: Item + ?Sized> HashItem<T> for H {
    #[inline]
    fn hash_item(&self, seed: u64, item: &T) -> u64 {
        item.with_bytes(|bytes| self.hash(seed, bytes))
    }
}
