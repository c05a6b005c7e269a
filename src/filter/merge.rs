//! Merging and uniting two filters. The one to merge from may be a view, which must be verified first.

use super::{Combine, CuckooFilter, MergeError, RawFilter};
use crate::{
    bits::index,
    params::explained,
    snapshot::{verify, verify_copy},
    storage::Storage,
};

impl<H: PartialEq> CuckooFilter<H> {
    /// Inserts all items of `other`, duplicates included, into this filter: an item of both has the sum of its copies. For the
    /// larger number instead, see [`union`](Self::union). Takes time proportional to the table. Merging into an empty filter copies
    /// the other table; merging an empty filter changes nothing.
    ///
    /// The merge is atomic: it works on a copy of the table, which temporarily doubles this filter's memory. A view of a snapshot
    /// is [verified](crate::FilterView::verify) first.
    ///
    /// # Errors
    /// If the filters have different parameters (the seed included) or hashers, if `other` is a view of a corrupt snapshot, if
    /// not all items fit, or if the copy cannot be allocated. This filter is then unchanged, bit for bit.
    ///
    /// # Example
    /// ```
    /// let builder = koel::CuckooFilter::builder().capacity(1000).false_positive_rate(0.001);
    /// let (mut left, mut right) = (builder.clone().build()?, builder.build()?);
    /// left.insert("alice")?;
    /// right.insert("bob")?;
    /// left.merge(&right)?;
    /// assert!(left.contains("alice") && left.contains("bob"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn merge<S: Storage>(&mut self, other: &CuckooFilter<H, S>) -> Result<(), MergeError> {
        self.combine(other, Combine::Sum)
    }

    /// Inserts the items of `other` that this filter does not have. An item of both has the larger number of its copies, not the
    /// sum as after [`merge`](Self::merge): the union of a filter with itself, or with an earlier copy, is the filter.
    ///
    /// An item of `other` that this filter reports as present by mistake, which has the probability ε, is not stored again, as
    /// with [`insert_unique`](Self::insert_unique): it is found, but removing it would remove the other item.
    ///
    /// Takes time proportional to the table, and is atomic, as `merge` is.
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
    pub fn union<S: Storage>(&mut self, other: &CuckooFilter<H, S>) -> Result<(), MergeError> {
        self.combine(other, Combine::Union)
    }

    fn combine<S: Storage>(&mut self, other: &CuckooFilter<H, S>, how: Combine) -> Result<(), MergeError> {
        // Cheap checks first: `verify` reads the whole table.
        let (ours, theirs) = (self.params(), other.params());
        if ours != theirs {
            return Err(MergeError::DifferentParams { ours, theirs });
        }
        if self.hasher() != other.hasher() {
            return Err(MergeError::DifferentHasher);
        }
        let (ours, theirs) = (&mut self.core, &other.core);
        if ours.len() == 0 {
            let copy = theirs.to_owned()?;
            verify_copy(&copy, theirs).map_err(MergeError::Snapshot)?;
            *ours = copy.with_dispatch(ours.dispatch());
            return Ok(());
        }
        verify(theirs).map_err(MergeError::Snapshot)?;
        if theirs.len() == 0 || ours.combine(theirs, how)? {
            return Ok(());
        }
        Err(refusal(ours, theirs, how))
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
