//! The trait of filters that can be compared.

use std::hint::black_box;

use serde::{Deserialize, Serialize};

/// The kind of structure, independent of the crate. Koel's filters are a kind of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Family {
    Bloom,
    Blocked,
    Counting,
    Quotient,
    Aleph,
    Cuckoo,
    Fuse,
    Koel,
}

/// The number of items that filters which grow have room for at the beginning.
pub(crate) const GROWN_FROM: usize = 1000;

/// A filter with its parameters.
///
/// Each method works on all keys, so that the loop is compiled for that filter without dynamic calls, and a filter with batch
/// operations can use them. The others use [`count`].
pub(crate) trait Peer {
    type Filter;

    /// Its kind of structure.
    const FAMILY: Family;

    /// Whether its documentation or code admits that it may lose keys. Lost keys are then a note and not a failure.
    const MAY_LOSE: bool = false;

    /// The name of its row, for this number of items.
    fn title(&self, items: usize) -> String;

    /// The false-positive rate that it is built for. `None` if its rate cannot be chosen.
    fn asked_rate(&self) -> Option<f64>;

    /// Builds a filter with all keys in it.
    ///
    /// # Errors
    /// If that is not possible; the message says why.
    fn build(&self, keys: &[u64]) -> anyhow::Result<Self::Filter>;

    /// The theoretical false-positive rate of the filter with this number of items.
    fn expected_rate(&self, filter: &Self::Filter, items: usize) -> f64;

    /// Looks up all keys, and returns how many were found.
    fn find(&self, filter: &Self::Filter, keys: &[u64]) -> usize;

    /// Removes all keys, and returns how many were found for that. `None` if the filter does not support deletion.
    fn remove(&self, _filter: &mut Self::Filter, _keys: &[u64]) -> Option<usize> {
        None
    }
}

/// The number of keys with a positive answer. The compiler cannot remove any call.
#[inline]
pub(crate) fn count(keys: &[u64], mut answer: impl FnMut(u64) -> bool) -> usize {
    keys.iter().filter(|&&key| black_box(answer(key))).count()
}
