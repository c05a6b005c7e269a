//! Merging and uniting two filters.

#![allow(private_interfaces, private_bounds, reason = "the trait is sealed: nobody else can implement or call it")]

use super::{Combine, Core, Filter, MergeError, RawFilter};
use crate::{
    bits::index,
    params::explained,
    snapshot::{verify, verify_copy},
    storage::Storage,
};

/// A core into which another one can be merged.
///
/// This trait is sealed.
pub trait CoreMerge<Other>: Core {
    /// Only filters of equal parameters can be merged.
    #[doc(hidden)]
    fn have_equal_params(&self, other: &Other) -> Result<(), MergeError>;

    /// Merges one of equal parameters. If that fails, nothing has changed.
    #[doc(hidden)]
    fn combine(&mut self, other: &Other, how: Combine) -> Result<(), MergeError>;
}

impl<C, H: PartialEq> Filter<C, H> {
    /// Inserts all items of `other`, copies included, into this filter: an item of both has the sum of its copies. For the larger
    /// number instead, see [`union`](Self::union). Takes time proportional to both filters.
    ///
    /// `other` may be a view, which is [verified](crate::FilterView::verify) first. Growing filters may have grown differently. Other threads may use `other` meanwhile if it is a [`SharedFilter`](crate::SharedFilter): each
    /// of its lanes is merged as it is at one moment.
    ///
    /// The merge is atomic: it works on a copy, which temporarily doubles this filter's memory. The merged filter keeps the
    /// false-positive rate. A growing filter stores only some bits of an item's hash: enough up to
    /// [`max_capacity`](crate::ElasticBuilder::max_capacity), but not for a further layer. So items beyond it cannot be merged,
    /// although they could have been inserted.
    ///
    /// # Errors
    /// If the filters have different parameters (the seed included) or hashers, if `other` is a view of a corrupt snapshot, if not
    /// all items fit (into a growing filter, if they are more than the maximal capacity or one is refused, as by
    /// [`insert`](Self::insert)), or if memory for the copy cannot be allocated. This filter is then unchanged, bit for bit.
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
    pub fn merge<D>(&mut self, other: &Filter<D, H>) -> Result<(), MergeError>
    where
        C: CoreMerge<D>,
    {
        self.combine(other, Combine::Sum)
    }

    /// Inserts the items of `other` that this filter does not have: afterwards, it has the larger number of copies of each item.
    /// The union of a filter with itself, or with an earlier copy, is the filter. The rest is as for [`merge`](Self::merge).
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
    pub fn union<D>(&mut self, other: &Filter<D, H>) -> Result<(), MergeError>
    where
        C: CoreMerge<D>,
    {
        self.combine(other, Combine::Union)
    }

    fn combine<D>(&mut self, other: &Filter<D, H>, how: Combine) -> Result<(), MergeError>
    where
        C: CoreMerge<D>,
    {
        self.core.have_equal_params(&other.core)?;
        if self.hasher != other.hasher {
            return Err(MergeError::DifferentHasher);
        }
        self.core.combine(&other.core, how)
    }
}

impl<S: Storage> CoreMerge<RawFilter<S>> for RawFilter {
    fn have_equal_params(&self, other: &RawFilter<S>) -> Result<(), MergeError> {
        let (ours, theirs) = (*self.params(), *other.params());
        if ours == theirs { Ok(()) } else { Err(MergeError::DifferentParams { ours, theirs }) }
    }

    fn combine(&mut self, other: &RawFilter<S>, how: Combine) -> Result<(), MergeError> {
        if self.len() == 0 {
            let copy = other.to_owned()?;
            verify_copy(&copy, other).map_err(MergeError::Snapshot)?;
            *self = copy.with_dispatch(self.dispatch());
            return Ok(());
        }
        verify(other).map_err(MergeError::Snapshot)?;
        if other.len() == 0 || self.combine_verified(other, how)? {
            return Ok(());
        }
        Err(refusal(self, other, how))
    }
}

/// The error for filters that do not fit into one.
#[cold]
fn refusal<S: Storage>(ours: &RawFilter, theirs: &RawFilter<S>, how: Combine) -> MergeError {
    let params = ours.params();
    let together = ours.together(theirs);
    // Different items collide at the false-positive rate. In larger tables they do so less often, and need room of their own.
    let by_chance = params.false_positive_rate_at(ours.len() as f64 / params.slots() as f64) * theirs.len() as f64;
    let collisions = index(explained(by_chance)).min(together.in_both);
    let of_union = together.union.capacity(params).and_then(|capacity| capacity.checked_add(collisions));
    let is_more_than_chance = together.in_both > collisions;
    let (copies, needed, union) = match how {
        Combine::Sum => {
            let needed = together.sum.capacity(params);
            let union = of_union.filter(|&of_union| is_more_than_chance && needed.is_none_or(|needed| of_union < needed));
            (&together.sum, needed, union)
        }
        Combine::Union => (&together.union, of_union, None),
    };
    MergeError::Full {
        items: index(copies.items()),
        slots: params.slots(),
        capacity: params.capacity(),
        in_both: together.in_both,
        needed,
        union,
    }
}
