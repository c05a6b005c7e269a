//! Merging and uniting two filters.

use super::{Combine, InsertErrorKind, MergeError, RawFilter};
use crate::bits::index;

/// `merge` and `union`. The core's `combine` checks its parameters and changes nothing if it fails.
macro_rules! merges {
    ($filter:ident) => {
        impl<H: PartialEq> $filter<H> {
            /// Inserts all items of `other`, copies included, into this filter: an item of both has the sum of its copies. For the
            /// larger number instead, see [`union`](Self::union). Takes time proportional to both filters.
            ///
            /// Merging is associative and commutative: the order in which several filters are merged makes no difference to their
            /// items, copies and answers ([growing](crate::guide::growing#filled-by-many-workers)). Growing filters may have grown
            /// differently. Other threads may use `other` meanwhile if it is a [`SharedFilter`](crate::SharedFilter): each of its
            /// partitions is merged as it is at one moment. To merge a view, copy it first:
            /// [`FilterView::to_filter`](crate::FilterView::to_filter).
            ///
            /// The merge is atomic: it works on a copy, which temporarily takes the memory of the merged filter. That keeps the
            /// false-positive rate. A growing filter stores only some bits of an item's hash, too few for a further generation
            /// than the one it is in. So a merge may be refused if the filters together have more than
            /// [`max_capacity`](crate::ElasticBuilder::max_capacity) items, although these could have been inserted.
            ///
            /// # Errors
            /// If the filters have different parameters (the seed included) or hashers, if not all items fit (a growing
            /// filter may have no room for more than its maximal capacity, or refuse one, as by [`insert`](Self::insert)), or if memory for the
            /// copy cannot be allocated. This filter is then unchanged, bit for bit.
            ///
            /// # Example
            /// ```
            /// let builder = koel::ElasticFilter::builder().false_positive_rate(0.001);
            /// let (mut left, mut right) = (builder.clone().build()?, builder.build()?);
            /// left.insert("alice")?;
            /// right.insert_iter(0..100_000u64)?;
            /// left.merge(&right)?;
            /// assert!(left.contains("alice") && left.contains(&7u64) && left.len() == 100_001);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn merge(&mut self, other: &Self) -> Result<(), $crate::MergeError> {
                self.combine(other, $crate::filter::Combine::Sum)
            }

            /// Inserts the items of `other` that this filter does not have: afterwards, it has the larger number of copies of each
            /// item. (In growing filters beyond their maximal capacity, an item that the two have in different generations keeps
            /// the copies of both.) The union of a filter with itself is the filter. The rest is as for [`merge`](Self::merge).
            ///
            /// With probability ε, this filter reports an item of `other` as present by mistake. That item is not stored, as with
            /// [`insert_unique`](Self::insert_unique): it is found, but removing it would remove the other item.
            ///
            /// # Errors
            /// As `merge`. This filter is then unchanged, bit for bit.
            ///
            /// # Example
            /// ```
            /// let builder = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001);
            /// let (mut monday, mut tuesday) = (builder.clone().build()?, builder.build()?);
            /// monday.insert_iter(0..600u64)?;
            /// tuesday.insert_iter(300..900u64)?;
            /// monday.union(&tuesday)?;
            /// assert!((0..900u64).all(|n| monday.contains(&n)) && monday.len() <= 900);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn union(&mut self, other: &Self) -> Result<(), $crate::MergeError> {
                self.combine(other, $crate::filter::Combine::Union)
            }

            fn combine(&mut self, other: &Self, how: $crate::filter::Combine) -> Result<(), $crate::MergeError> {
                self.core.check_params(&other.core)?;
                if self.hasher != other.hasher {
                    return Err($crate::MergeError::DifferentHasher);
                }
                self.core.combine(&other.core, how)
            }
        }
    };
}
pub(crate) use merges;

impl RawFilter {
    /// Fails unless the other filter has equal parameters.
    pub(super) fn check_params(&self, other: &Self) -> Result<(), MergeError> {
        let (ours, theirs) = (*self.params(), *other.params());
        if ours == theirs { Ok(()) } else { Err(MergeError::DifferentParams { ours, theirs }) }
    }

    /// Merges a filter with equal parameters. If that fails, nothing has changed.
    pub(super) fn combine(&mut self, other: &Self, how: Combine) -> Result<(), MergeError> {
        if self.len() == 0 {
            *self = other.to_owned()?.with_dispatch(self.dispatch());
            return Ok(());
        }
        match self.combine_equal(other, how) {
            Err(error) if matches!(error.kind(), InsertErrorKind::Full { .. }) => Err(refusal(self, other)),
            combined => Ok(combined?),
        }
    }
}

/// The error for filters that do not fit into one.
#[cold]
fn refusal(ours: &RawFilter, theirs: &RawFilter) -> MergeError {
    let params = ours.params();
    let (distinct, in_both) = ours.distinct_with(theirs);
    // Different items collide at the false-positive rate. In larger tables they do so less often, and need room of their own.
    let by_chance = params.false_positive_rate_at(ours.in_table() as f64 / params.slots() as f64) * theirs.in_table() as f64;
    let collisions = index(explained(by_chance)).min(in_both);
    MergeError::Full { items: distinct, slots: params.slots(), capacity: params.capacity(), needed: distinct + collisions }
}

/// An upper bound of a number of which this many are expected: e + 4√e, without a square root.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive, and fewer than slots of a table")]
fn explained(expected: f64) -> u64 {
    const NEGLIGIBLE: f64 = 1e-3;
    if expected < NEGLIGIBLE {
        return 0;
    }
    let bounds = [5.0 * expected + 1.0, 2.0 * expected + 8.0, 1.125 * expected + 32.0];
    bounds.into_iter().fold(f64::INFINITY, f64::min) as u64
}
