//! Merging and uniting filters that may have grown differently.

use alloc::vec::Vec;
use core::ops::Deref;

#[cfg(feature = "std")]
use super::shared::{Shared, locked};
use super::{Elastic, ElasticParams, partition::Partition};
use crate::{
    bits::{in_memory, wide},
    filter::{Combine, Core as _, InsertError, InsertErrorKind, MergeError},
    storage::reserved,
};

impl Elastic {
    /// Fails unless the other filter has equal parameters.
    pub fn check_params(&self, other: &Self) -> Result<(), MergeError> {
        are_equal(&self.params, &other.params)
    }

    /// Merges a filter with equal parameters. If that fails, nothing has changed.
    pub fn combine(&mut self, other: &Self, how: Combine) -> Result<(), MergeError> {
        let partitions = self.partitions.iter().zip(&other.partitions);
        self.partitions = merged(partitions, how, self.allowed()).map_err(|error| {
            let items = self.len().saturating_add(other.len());
            merge_error(error, items, &self.params, |error| self.refuse(error))
        })?;
        Ok(())
    }
}

#[cfg(feature = "std")]
impl Shared {
    /// Fails unless the other filter has equal parameters.
    pub fn check_params(&self, other: &Self) -> Result<(), MergeError> {
        are_equal(&self.params, &other.params)
    }

    /// Merges a filter with equal parameters, each of its partitions as it is at one moment. If that fails, nothing has changed.
    pub fn combine(&mut self, other: &Self, how: Combine) -> Result<(), MergeError> {
        let partitions = self.partitions.iter().zip(&other.partitions).map(|(ours, theirs)| (ours.read(), theirs.read()));
        let locked = merged(partitions, how, self.allowed())
            .and_then(|partitions| Ok(locked(partitions, reserved(self.partitions.len())?)));
        self.partitions = locked.map_err(|error| {
            let items = self.len().saturating_add(other.len());
            merge_error(error, items, &self.params, |error| self.refuse(error))
        })?;
        Ok(())
    }
}

fn are_equal(ours: &ElasticParams, theirs: &ElasticParams) -> Result<(), MergeError> {
    if ours == theirs { Ok(()) } else { Err(MergeError::DifferentPlans) }
}

/// The merged partitions of two filters. What all are charged together may be `allowed` bytes more than the first of each pair is.
fn merged<L: Deref<Target = Partition>>(
    pairs: impl ExactSizeIterator<Item = (L, L)>,
    how: Combine,
    allowed: usize,
) -> Result<Vec<Partition>, InsertError> {
    let (mut partitions, mut allowed) = (reserved(pairs.len())?, allowed);
    for (ours, theirs) in pairs {
        let most = ours.charged().saturating_add(allowed);
        let partition = ours.merged(&theirs, how, most)?;
        allowed = most.saturating_sub(partition.charged());
        partitions.push(partition);
    }
    Ok(partitions)
}

/// The error for this reason, where two filters have this many items together. `refuse` completes that of an insertion.
fn merge_error(
    error: InsertError,
    items: usize,
    params: &ElasticParams,
    refuse: impl FnOnce(InsertError) -> InsertError,
) -> MergeError {
    if error.kind() != InsertErrorKind::Generations {
        return MergeError::Insert(refuse(error));
    }
    MergeError::MaxCapacity {
        items,
        max_capacity: params.max_capacity(),
        needed: params.sufficient_capacity(wide(items)).map(in_memory),
    }
}
