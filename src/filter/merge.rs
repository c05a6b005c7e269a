//! Merge, union and intersection of two filters.

use super::{Combine, InsertErrorKind, MergeError, RawFilter};
use crate::{bits::index, params::Params};

/// Implements `merge`, `union` and `intersect`. `check_equal` of the parameters compares them; `combine` and `intersect` of the
/// core change nothing if they fail.
macro_rules! merges {
    ($filter:ident) => {
        impl<H: PartialEq> $filter<H> {
            /// Inserts all items of `other`, including copies, into this filter. If both have an item, its copies add up; to keep
            /// the larger count instead, use [`union`](Self::union). Takes time proportional to both filters.
            ///
            /// Merging is associative and commutative: the order in which several filters are merged does not affect items, counts
            /// and lookup results ([growing](crate::guide::growing#filled-by-many-workers)). Growing filters may have grown
            /// differently. If `other` is a [`SharedFilter`](crate::SharedFilter), other threads may use it meanwhile; each of its
            /// partitions is merged in its state at one moment. To merge a view, copy it first:
            /// [`FilterView::to_filter`](crate::FilterView::to_filter).
            ///
            /// The merge is atomic: it works on a copy, which temporarily takes the memory of the merged filter.
            ///
            /// The merged filter keeps the false-positive rate. A growing filter stores only some bits of an item's hash, too few
            /// to move the item to a later generation. So a merge may be refused if the filters together have more than
            /// [`max_capacity`](crate::ElasticBuilder::max_capacity) distinct items, even if these could be inserted
            /// ([`MergeError::MaxCapacity`](crate::MergeError::MaxCapacity)).
            ///
            /// # Errors
            /// If the filters have different hashers or different parameters, including the seed; if not all items fit (a growing
            /// filter may have no room beyond its maximum capacity, or may refuse an item as [`insert`](Self::insert) does); or if
            /// memory for the copy cannot be allocated. This filter is then unchanged, bit for bit.
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

            /// Inserts the items of `other` that this filter lacks. Afterwards, each item has the larger of its two counts, however
            /// the filters have grown. The union of a filter with itself is the filter. In all other respects, this is
            /// [`merge`](Self::merge).
            ///
            /// With probability ε, this filter already finds an item of `other` that it does not have. That item is not stored, as
            /// with [`insert_unique`](Self::insert_unique): it is found, but removing it removes the item that it collides with. Beyond
            /// the maximum capacity of a growing filter, it may be this filter's item of the two that is not stored.
            ///
            /// # Errors
            /// The same as for [`merge`](Self::merge). This filter is then unchanged, bit for bit.
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

            /// Removes the items that `other` lacks. Afterwards, each item has the smaller of its two counts, or more if it is
            /// confused with another item. So every item that both filters have is in the intersection. Takes time proportional to
            /// this filter and, beyond the maximum capacity, to the later generations of both.
            ///
            /// Of a number of items that only one of the filters has, that number times the other's
            /// [`false_positive_rate`](Self::false_positive_rate) are in the intersection, too, or fewer. If `other` has grown beyond
            /// its [`max_capacity`](crate::ElasticBuilder::max_capacity), so are those of this filter that one of the later items
            /// looks like: at most as many as there are such items, times this filter's rate. An item that neither has is found with
            /// the rate of the intersection, which falls with the number of items.
            ///
            /// Filters of fixed size keep their table. Growing filters shrink as far as with [`remove`](Self::remove). Their
            /// intersection is computed in a copy, which temporarily takes as much memory as this filter, and a list of the items
            /// that `other` has in later generations than this filter.
            ///
            /// # Errors
            /// If the filters have different hashers or different parameters, including the seed; or, for growing filters, if memory
            /// for the copy cannot be allocated. This filter is then unchanged, bit for bit.
            ///
            /// # Example
            /// ```
            /// let builder = koel::ElasticFilter::builder().false_positive_rate(0.001);
            /// let (mut here, mut there) = (builder.clone().build()?, builder.build()?);
            /// here.insert_iter(0..600u64)?;
            /// there.insert_iter(300..900u64)?;
            /// here.intersect(&there)?;
            /// assert!((300..600u64).all(|n| here.contains(&n)) && here.len() < 310);
            /// # Ok::<(), Box<dyn core::error::Error>>(())
            /// ```
            pub fn intersect(&mut self, other: &Self) -> Result<(), $crate::MergeError> {
                self.check_equal(other)?;
                self.core.intersect(&other.core)
            }

            fn combine(&mut self, other: &Self, how: $crate::filter::Combine) -> Result<(), $crate::MergeError> {
                self.check_equal(other)?;
                self.core.combine(&other.core, how)
            }

            /// Returns an error unless both filters have equal parameters and hashers.
            fn check_equal(&self, other: &Self) -> Result<(), $crate::MergeError> {
                self.core.params().check_equal(other.core.params())?;
                if self.hasher == other.hasher { Ok(()) } else { Err($crate::MergeError::DifferentHasher) }
            }
        }
    };
}
pub(crate) use merges;

impl Params {
    /// Returns an error unless both filters have equal parameters.
    pub(super) fn check_equal(&self, theirs: &Self) -> Result<(), MergeError> {
        if self == theirs { Ok(()) } else { Err(MergeError::DifferentParams { ours: *self, theirs: *theirs }) }
    }
}

impl RawFilter {
    /// Combines this filter with one that has equal parameters. An error changes nothing.
    pub(super) fn combine(&mut self, other: &Self, how: Combine) -> Result<(), MergeError> {
        if self.len() == 0 {
            *self = other.to_owned()?.with_dispatch(self.dispatch());
            return Ok(());
        }
        let mut combined = self.to_owned()?;
        match combined.add_items_of(other, how) {
            Err(error) if matches!(error.kind(), InsertErrorKind::Full { .. }) => return Err(merge_refusal(self, other)),
            added => added?,
        }
        *self = combined;
        Ok(())
    }
}

/// Returns the error for two filters whose items do not fit into one.
#[cold]
fn merge_refusal(ours: &RawFilter, theirs: &RawFilter) -> MergeError {
    let params = ours.params();
    let (distinct, in_both) = ours.distinct_with(theirs);
    // Distinct items collide at the false-positive rate. In a larger table, fewer collide, so some of those in both are two items.
    let expected = params.false_positive_rate_at(ours.table_len() as f64 / params.slots() as f64) * theirs.table_len() as f64;
    let collisions = index(upper_bound(expected)).min(in_both);
    MergeError::Full { items: distinct, slots: params.slots(), capacity: params.capacity(), needed: distinct + collisions }
}

/// Returns an upper bound for a random count with mean e = `expected`: at least e + 4√e, computed without a square root; 0 if e is
/// negligible.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive, and fewer than slots of a table")]
fn upper_bound(expected: f64) -> u64 {
    const NEGLIGIBLE: f64 = 1e-3;
    if expected < NEGLIGIBLE {
        return 0;
    }
    let bounds = [5.0 * expected + 1.0, 2.0 * expected + 8.0, 1.125 * expected + 32.0];
    bounds.into_iter().fold(f64::INFINITY, f64::min) as u64
}
