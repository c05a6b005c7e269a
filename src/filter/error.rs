//! Errors of a filter: it is full, or cannot be built.

use core::{error::Error, fmt};

use super::facts::Load;
use crate::{params::ParamError, storage::OutOfMemory};

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
    why: Why,
    position: usize,
}

/// Why an item has no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// There are too many items.
    Items,
    /// So many copies of its fingerprint fill both its buckets.
    Copies(u32),
    /// Copies of other items fill the table below its capacity.
    OthersCopies,
}

impl Full {
    pub(super) fn new(items: usize, slots: usize, why: Why, position: usize) -> Self {
        Self { items, slots, why, position }
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
    /// skipped. 0 for a single item.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// True if copies of the item's own fingerprint fill both its buckets. These are most likely copies of the item. Other items
    /// may still fit, but this one does not.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        matches!(self.why, Why::Copies(_))
    }

    /// True if copies, and not the number of different items, fill the filter: it has fewer items than its
    /// [`capacity`](crate::CuckooFilter::capacity), and items of which there are several copies take most slots in the two buckets
    /// of the refused one. Copies of an item share two buckets, so that they need more room than different items. Then
    /// [`insert_unique`](crate::CuckooFilter::insert_unique) helps, which stores an item once.
    #[must_use]
    pub fn is_filled_by_copies(&self) -> bool {
        self.why == Why::OthersCopies
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

    /// The same, if `items` others were inserted before these.
    pub(super) fn after(self, items: usize) -> Self {
        Self { position: items + self.position, ..self }
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { items, slots, why, position } = self;
        if *position > 0 {
            write!(f, "item {position}, counted from 0, was refused, and those before it are in the filter: ")?;
        }
        if let Why::Copies(copies) = why {
            return write!(
                f,
                "no room for one more copy of the item: {copies} with its fingerprint fill its two buckets; insert_unique stores \
                 an item once"
            );
        }
        let load = Load { items: *items, slots: *slots };
        write!(f, "the filter is full: {items} items in {slots} slots ({load}) left no room for another; ")?;
        if *why == Why::OthersCopies {
            f.write_str("they are fewer than its capacity, but have many copies: store an item once with insert_unique, or ")?;
        }
        f.write_str("build it with a larger capacity")
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
