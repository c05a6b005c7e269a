//! Merging and uniting filters that may have grown differently.

use alloc::vec::Vec;
use core::ops::Deref;

#[cfg(feature = "std")]
use super::shared::{Shared, add_locks};
use super::{Elastic, ElasticParams, partition::Partition};
use crate::{
    bits::{in_memory, wide},
    filter::{Combine, Core as _, InsertError, InsertErrorKind, MergeError},
    storage::reserved,
};

impl Elastic {
    /// Returns an error unless the other filter has equal parameters.
    pub fn check_params(&self, other: &Self) -> Result<(), MergeError> {
        check_equal(&self.params, &other.params)
    }

    /// Merges a filter with equal parameters into this one. On failure, nothing changes.
    pub fn combine(&mut self, other: &Self, how: Combine) -> Result<(), MergeError> {
        let partitions = self.partitions.iter().zip(&other.partitions);
        self.partitions = merged(partitions, how, self.budget()).map_err(|error| {
            let items = self.len().saturating_add(other.len());
            merge_error(error, items, &self.params, |error| self.with_limit(error))
        })?;
        Ok(())
    }
}

#[cfg(feature = "std")]
impl Shared {
    /// Returns an error unless the other filter has equal parameters.
    pub fn check_params(&self, other: &Self) -> Result<(), MergeError> {
        check_equal(&self.params, &other.params)
    }

    /// Merges a filter with equal parameters into this one. Each of its partitions is read at one moment. On failure, nothing
    /// changes.
    pub fn combine(&mut self, other: &Self, how: Combine) -> Result<(), MergeError> {
        let partitions = self.partitions.iter().zip(&other.partitions).map(|(ours, theirs)| (ours.read(), theirs.read()));
        let locked = merged(partitions, how, self.budget())
            .and_then(|partitions| Ok(add_locks(partitions, reserved(self.partitions.len())?)));
        self.partitions = locked.map_err(|error| {
            let items = self.len().saturating_add(other.len());
            merge_error(error, items, &self.params, |error| self.with_limit(error))
        })?;
        Ok(())
    }
}

fn check_equal(ours: &ElasticParams, theirs: &ElasticParams) -> Result<(), MergeError> {
    if ours == theirs { Ok(()) } else { Err(MergeError::DifferentPlans) }
}

/// Returns the merged partitions of two filters. Their total charge may exceed that of the first partitions of all pairs by
/// `budget` bytes.
fn merged<L: Deref<Target = Partition>>(
    pairs: impl ExactSizeIterator<Item = (L, L)>,
    how: Combine,
    budget: usize,
) -> Result<Vec<Partition>, InsertError> {
    let (mut partitions, mut budget) = (reserved(pairs.len())?, budget);
    for (ours, theirs) in pairs {
        let max_charge = ours.charged_bytes().saturating_add(budget);
        let partition = ours.merged(&theirs, how, max_charge)?;
        budget = max_charge.saturating_sub(partition.charged_bytes());
        partitions.push(partition);
    }
    Ok(partitions)
}

/// Returns the error of a failed merge. `items` is the number of items in both filters. `with_limit` adds the filter's limit to an
/// insertion error.
fn merge_error(
    error: InsertError,
    items: usize,
    params: &ElasticParams,
    with_limit: impl FnOnce(InsertError) -> InsertError,
) -> MergeError {
    if error.kind() != InsertErrorKind::Generations {
        return MergeError::Insert(with_limit(error));
    }
    MergeError::MaxCapacity {
        items,
        max_capacity: params.max_capacity(),
        needed: params.sufficient_capacity(wide(items)).map(in_memory),
    }
}
