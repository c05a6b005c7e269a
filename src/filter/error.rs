//! Errors of a filter: it is full, cannot be built, or cannot be merged.

use core::{error::Error, fmt};

use super::RawFilter;
use crate::{
    params::{ParamError, Params},
    snapshot::SnapshotError,
    storage::{OutOfMemory, Storage},
};

/// No slot was found for an item. If a single item was inserted, the filter is unchanged. If several were, those before the
/// refused one are in the filter.
///
/// # Example
/// ```
/// let mut filter = koel::CuckooFilter::builder().capacity(100).false_positive_rate(0.001).build()?;
/// let full = filter.insert_batch(&[7u8; 20]).unwrap_err();
/// assert_eq!(full.position(), 8); // eight copies are in the filter, the ninth was refused
/// assert!(full.is_duplicate());
/// assert_eq!(filter.count(&7u8), 8);
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    items: usize,
    slots: usize,
    /// The number of copies, if they fill both buckets.
    copies: Option<u32>,
    position: usize,
}

impl Full {
    pub(crate) fn new(items: usize, slots: usize, copies: Option<u32>, position: usize) -> Self {
        Self { items, slots, copies, position }
    }

    /// The number of items in the filter, counting duplicates.
    #[must_use]
    pub fn items(&self) -> usize {
        self.items
    }

    /// The number of slots in the table, occupied or empty.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The index of the refused item among the items of the call; those before it were inserted or, by `insert_unique_iter`,
    /// skipped. 0 for a single item. (Building a large filter from a known set inserts in another order: then this is the number
    /// of items inserted.)
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// True if copies of the item's own fingerprint fill both its buckets. These are most likely copies of the item. Other items
    /// may still fit, but this one does not.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        self.copies.is_some()
    }

    /// The same error, for a filter with this number of items.
    #[cfg(go_files)]
    pub(crate) fn with_items(self, items: usize) -> Self {
        Self { items, ..self }
    }

    /// The same error, for the item at this index.
    pub(crate) fn at(self, position: usize) -> Self {
        Self { position, ..self }
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { items, slots, copies, position } = self;
        if *position > 0 {
            write!(f, "item {position}, counted from 0, was refused, and those before it are in the filter: ")?;
        }
        match copies {
            Some(copies) => write!(
                f,
                "no room for one more copy of the item: {copies} with its fingerprint fill its two buckets; insert_unique stores \
                 an item once"
            ),
            None => write!(
                f,
                "the filter is full: {items} items in {slots} slots ({:.1} %) left no room for another; build it with a larger \
                 capacity",
                100.0 * *items as f64 / *slots as f64
            ),
        }
    }
}

impl Error for Full {}

/// A filter could not be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// A parameter is missing, duplicated or out of range.
    Param(ParamError),
    /// The memory for the table could not be allocated.
    OutOfMemory(OutOfMemory),
    /// Not all items of the known set fit.
    Full(Full),
}

impl From<ParamError> for BuildError {
    fn from(error: ParamError) -> Self {
        Self::Param(error)
    }
}

impl From<OutOfMemory> for BuildError {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory(error)
    }
}

impl From<Full> for BuildError {
    fn from(error: Full) -> Self {
        Self::Full(error)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Param(error) => error.fmt(f),
            Self::OutOfMemory(error) => error.fmt(f),
            Self::Full(error) => error.fmt(f),
        }
    }
}

impl Error for BuildError {
    /// `Display` forwards to the inner error, so the chain continues with the source of that error.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Param(error) => error.source(),
            Self::OutOfMemory(error) => error.source(),
            Self::Full(error) => error.source(),
        }
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

impl MergeError {
    pub(super) fn full<S: Storage>(ours: &RawFilter, theirs: &RawFilter<S>) -> Self {
        let (slots, capacity) = (ours.params().slots(), ours.params().capacity());
        Self::Full { items: ours.len().saturating_add(theirs.len()), slots, capacity }
    }
}

impl From<OutOfMemory> for MergeError {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory(error)
    }
}

impl From<SnapshotError> for MergeError {
    fn from(error: SnapshotError) -> Self {
        Self::Snapshot(error)
    }
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
