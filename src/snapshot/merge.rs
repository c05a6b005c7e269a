//! Merging two filters. It belongs to snapshots because a filter to merge from may be a view, which must be verified first.

use core::{error::Error, fmt};

use super::{
    SnapshotError,
    verify::{verify, verify_copy},
};
use crate::{
    filter::CuckooFilter,
    params::Params,
    storage::{OutOfMemory, Storage},
};

impl<H: PartialEq> CuckooFilter<H> {
    /// Inserts all items of `other`, duplicates included, into this filter. Takes time proportional to the table. Merging into an
    /// empty filter copies the other table; merging an empty filter changes nothing.
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
        // Cheap checks first: `verify` reads the whole table.
        let (ours, theirs) = (self.params(), other.params());
        if ours != theirs {
            return Err(MergeError::DifferentParams { ours, theirs });
        }
        if self.hasher() != other.hasher() {
            return Err(MergeError::DifferentHasher);
        }
        let (ours, theirs) = (self.raw_mut(), other.raw());
        if ours.len() == 0 {
            let copy = theirs.to_owned().map_err(MergeError::OutOfMemory)?;
            verify_copy(&copy, theirs).map_err(MergeError::Snapshot)?;
            *ours = copy.with_dispatch(ours.dispatch());
            return Ok(());
        }
        verify(theirs).map_err(MergeError::Snapshot)?;
        if theirs.len() == 0 || ours.merge(theirs).map_err(MergeError::OutOfMemory)? {
            return Ok(());
        }
        let params = ours.params();
        let (slots, capacity) = (params.slots(), params.capacity());
        Err(MergeError::Full { items: ours.len().saturating_add(theirs.len()), slots, capacity })
    }
}

/// Two filters could not be merged. Both are unchanged.
#[derive(Debug)]
#[non_exhaustive]
pub enum MergeError {
    /// The filters have different parameters, so an item has different buckets or fingerprints in them.
    #[non_exhaustive]
    DifferentParams {
        /// The parameters of the filter to merge into.
        ours: Params,
        /// The parameters of the filter to merge from.
        theirs: Params,
    },
    /// The filters have different hashers.
    DifferentHasher,
    /// The items of both filters do not fit into one.
    #[non_exhaustive]
    Full {
        /// The number of items in both filters together.
        items: usize,
        /// The number of slots in one filter.
        slots: usize,
        /// The number of distinct items that one filter is planned for.
        capacity: usize,
    },
    /// The filter to merge from is a view of a corrupt snapshot.
    Snapshot(SnapshotError),
    /// A merge works on a copy of the table, and this copy could not be allocated.
    OutOfMemory(OutOfMemory),
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DifferentParams { ours, theirs } => write!(
                f,
                "only filters with the same parameters can be merged, but this one has a {ours}, and the other a {theirs}; build \
                 both from the same parameters"
            ),
            Self::DifferentHasher => f.write_str("only filters with the same hasher can be merged; build both with equal ones"),
            Self::Full { items, slots, capacity } => write!(
                f,
                "{items} items do not fit into one filter of {slots} slots, planned for {capacity}; build both with a capacity of \
                 at least {items}"
            ),
            Self::Snapshot(_) => f.write_str("the snapshot to merge is corrupt"),
            Self::OutOfMemory(_) => f.write_str("the copy of the table on which a merge works cannot be allocated"),
        }
    }
}

impl Error for MergeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Snapshot(error) => Some(error),
            Self::OutOfMemory(error) => Some(error),
            Self::DifferentParams { .. } | Self::DifferentHasher | Self::Full { .. } => None,
        }
    }
}
