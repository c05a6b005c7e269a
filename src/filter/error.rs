//! What a filter cannot do: hold one item more, be built, or be merged.

use core::{error::Error, fmt};

use super::RawFilter;
use crate::{
    params::{ParamError, Params},
    snapshot::SnapshotError,
    storage::{OutOfMemory, Storage},
};

/// The filter has no room for an item. Of a single item, nothing was changed; of several, those before it are in the
/// filter.
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
    /// How many copies there are, if they fill both buckets.
    copies: Option<u32>,
    position: usize,
}

impl Full {
    pub(crate) fn new(items: usize, slots: usize, copies: Option<u32>, position: usize) -> Self {
        Self { items, slots, copies, position }
    }

    /// Items in the filter.
    #[must_use]
    pub fn items(&self) -> usize {
        self.items
    }

    /// Slots of the filter, taken or not.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The place of the refused item among those of the call, counted from 0: so many items before it are in the filter. 0
    /// for a single item.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// True if the item's two buckets are full of its own fingerprint: of its copies, most likely. There may be room for
    /// other items, but not for this one.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        self.copies.is_some()
    }

    /// The same, of a filter with so many items.
    #[cfg(go_files)]
    pub(crate) fn with_items(self, items: usize) -> Self {
        Self { items, ..self }
    }

    /// The same, for an item at this place.
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
    /// No filter can have these parameters.
    Param(ParamError),
    /// There is no memory for the table.
    OutOfMemory(OutOfMemory),
    /// Not all items of the known set have room.
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
    /// This error says what the one behind it says, and so goes on to that one's source.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Param(error) => error.source(),
            Self::OutOfMemory(error) => error.source(),
            Self::Full(error) => error.source(),
        }
    }
}

/// Two filters could not be merged. Nothing was changed in either.
#[derive(Debug)]
#[non_exhaustive]
pub enum MergeError {
    /// The filters have different parameters, so that an item has different buckets or fingerprints in them.
    #[non_exhaustive]
    DifferentParams {
        /// Those of the filter to merge into.
        ours: Params,
        /// Those of the filter to be merged.
        theirs: Params,
    },
    /// The filters have different hashers.
    DifferentHasher,
    /// There are more items than one filter has room for.
    #[non_exhaustive]
    Full {
        /// Items of both filters.
        items: usize,
        /// Slots of one.
        slots: usize,
        /// How many different items one is planned for.
        capacity: usize,
    },
    /// The filter to be merged is a view of a corrupt snapshot.
    Snapshot(SnapshotError),
    /// A merge changes all or nothing, so that it works on a copy of the table, for which there is no memory.
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
