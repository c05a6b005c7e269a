//! What a filter must do to be measured.

use std::hint::black_box;

use serde::{Deserialize, Serialize};

/// What kind of structure a filter is, whoever made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Family {
    Bloom,
    Blocked,
    Counting,
    Quotient,
    Cuckoo,
    Fuse,
    Koel,
}

/// A kind of filter, with its parameters.
///
/// Each method does its work for all keys, so that the loop is compiled for that filter and holds no dynamic call; and so
/// that a filter which takes many keys at a time can. Others use [`count`].
pub(crate) trait Peer {
    type Filter;

    /// What kind of structure it is.
    const FAMILY: Family;

    /// Whether its own documentation or code admits that it may lose keys. That is a note then, and no failure.
    const MAY_LOSE: bool = false;

    /// What the row is called, for so many items.
    fn title(&self, items: usize) -> String;

    /// The false-positive rate that it is built for; `None` if it has one of its own.
    fn asked_rate(&self) -> Option<f64>;

    /// A filter with all keys in it, from nothing.
    ///
    /// # Errors
    /// If that cannot be had; the message says why.
    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter>;

    /// The false-positive rate that theory expects of the filter with so many items in it.
    fn expected_rate(&self, filter: &Self::Filter, items: usize) -> f64;

    /// How many of the keys are found.
    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize;

    /// How many of the keys could be removed, one after another; `None` if the filter cannot delete.
    fn remove(&self, _filter: &mut Self::Filter, _keys: &[u64]) -> Option<usize> {
        None
    }
}

/// How many keys get the answer "yes". Each answer is made, whether or not the compiler would miss it.
#[inline]
pub(crate) fn count(keys: &[u64], mut answer: impl FnMut(u64) -> bool) -> usize {
    keys.iter().filter(|&&key| black_box(answer(key))).count()
}
