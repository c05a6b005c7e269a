//! Merging two filters, which may have grown differently, and their union.

use alloc::vec::Vec;
use core::ops::Deref;

#[cfg(feature = "std")]
use super::shared::{SharedFilter, locked};
use super::{ElasticFilter, ElasticParams, lane::Lane};
use crate::{
    bits::wide,
    filter::{InsertError, InsertErrorKind, MergeError},
    storage::reserved,
};

impl<H: PartialEq> ElasticFilter<H> {
    /// Inserts all items of `other`, copies included, into this filter. The filters must have equal parameters; how far each has
    /// grown does not matter. For sets that overlap, see [`union`](Self::union). Takes time proportional to both.
    ///
    /// The merge is atomic: it works on a copy, which temporarily doubles this filter's memory.
    ///
    /// The merged filter keeps the false-positive rate. Of an item that is stored already, only some bits of its hash are known:
    /// enough up to [`max_capacity`](super::ElasticBuilder::max_capacity), but not for a further layer. So what exceeds it cannot
    /// be merged, although it could have been inserted.
    ///
    /// # Errors
    /// If the filters have different parameters (the seed included) or hashers, if together they hold more than the maximal
    /// capacity, or if an item is refused, as by [`insert`](Self::insert). This filter is then unchanged, bit for bit.
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
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.merge_or_unite(other, false)
    }

    /// Makes this filter the union of both: of each item, it has as many copies afterwards as the filter that had more of them. The
    /// rest is as for [`merge`](Self::merge).
    ///
    /// An item of `other` is not inserted if this filter probably has it, as by [`insert_unique`](Self::insert_unique). So if a
    /// false positive was taken for it, removing that item removes this one, too.
    ///
    /// # Errors
    /// As `merge`.
    ///
    /// # Example
    /// ```
    /// let builder = koel::ElasticFilter::builder().false_positive_rate(0.001);
    /// let (mut monday, mut tuesday) = (builder.clone().build()?, builder.build()?);
    /// monday.insert_iter(["alice", "bob"])?;
    /// tuesday.insert_iter(["bob", "carol"])?;
    /// monday.union(&tuesday)?;
    /// assert_eq!((monday.len(), monday.count("bob")), (3, 1));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        self.merge_or_unite(other, true)
    }

    fn merge_or_unite(&mut self, other: &Self, is_union: bool) -> Result<(), MergeError> {
        are_equal((&self.core.params, &self.hasher), (&other.core.params, &other.hasher))?;
        let lanes = self.core.storage.lanes.iter().zip(&other.core.storage.lanes);
        self.core.storage.lanes = merged(lanes, is_union, self.core.storage.allowed()).map_err(|error| {
            let items = wide(self.len()).saturating_add(wide(other.len()));
            merge_error(error, items, &self.core.params, |error| self.core.storage.refuse(error))
        })?;
        Ok(())
    }
}

#[cfg(feature = "std")]
impl<H: PartialEq> SharedFilter<H> {
    /// Inserts all items of `other`, as [`ElasticFilter::merge`] does. Other threads may use `other` meanwhile: each of its lanes is
    /// merged as it is at one moment.
    ///
    /// # Errors
    /// As `ElasticFilter::merge`, and if memory for the locks cannot be allocated.
    ///
    /// # Example
    /// ```
    /// let builder = koel::ElasticFilter::builder().false_positive_rate(0.001);
    /// let (mut seen, others) = (builder.clone().build_shared()?, builder.build_shared()?);
    /// others.insert("alice")?;
    /// seen.merge(&others)?;
    /// seen.union(&others)?;
    /// assert_eq!(seen.count("alice"), 1);
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn merge(&mut self, other: &Self) -> Result<(), MergeError> {
        self.merge_or_unite(other, false)
    }

    /// Makes this filter the union of both, as [`ElasticFilter::union`] does.
    ///
    /// # Errors
    /// As [`merge`](Self::merge).
    pub fn union(&mut self, other: &Self) -> Result<(), MergeError> {
        self.merge_or_unite(other, true)
    }

    fn merge_or_unite(&mut self, other: &Self, is_union: bool) -> Result<(), MergeError> {
        are_equal((&self.core.params, &self.hasher), (&other.core.params, &other.hasher))?;
        let lanes = self.core.lanes.iter().zip(&other.core.lanes).map(|(ours, theirs)| (ours.read(), theirs.read()));
        let locked =
            merged(lanes, is_union, self.core.allowed()).and_then(|lanes| Ok(locked(lanes, reserved(self.core.lanes.len())?)));
        self.core.lanes = locked.map_err(|error| {
            let items = wide(self.len()).saturating_add(wide(other.len()));
            merge_error(error, items, &self.core.params, |error| self.core.refuse(error))
        })?;
        Ok(())
    }
}

/// Only filters of equal parameters and hashers can be merged.
fn are_equal<H: PartialEq>(ours: (&ElasticParams, &H), theirs: (&ElasticParams, &H)) -> Result<(), MergeError> {
    if ours.0 != theirs.0 {
        Err(MergeError::DifferentPlans)
    } else if ours.1 != theirs.1 {
        Err(MergeError::DifferentHasher)
    } else {
        Ok(())
    }
}

/// The merged lanes of two filters. What all are charged together may be `allowed` bytes more than the first of each pair is.
fn merged<L: Deref<Target = Lane>>(
    pairs: impl ExactSizeIterator<Item = (L, L)>,
    is_union: bool,
    allowed: usize,
) -> Result<Vec<Lane>, InsertError> {
    let (mut lanes, mut allowed) = (reserved(pairs.len())?, allowed);
    for (ours, theirs) in pairs {
        let mut lane = ours.try_clone()?;
        lane.merge(&theirs, is_union, allowed)?;
        allowed = allowed.saturating_sub(lane.charged().saturating_sub(ours.charged()));
        lanes.push(lane);
    }
    Ok(lanes)
}

/// The error for this reason, where two filters have so many items together. `refuse` completes that of an insertion.
fn merge_error(
    error: InsertError,
    items: u64,
    params: &ElasticParams,
    refuse: impl FnOnce(InsertError) -> InsertError,
) -> MergeError {
    if error.kind() != InsertErrorKind::Layers {
        return MergeError::Insert(refuse(error));
    }
    MergeError::MaxCapacity { items, max_capacity: params.max_capacity, needed: params.sufficient_capacity(items) }
}
