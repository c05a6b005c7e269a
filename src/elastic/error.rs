//! The error of an item that a growing filter refuses.

use core::{error::Error, fmt};

use crate::storage::OutOfMemory;

/// An item was refused by a filter that grows, and is not in it. If several were to be inserted, the method says which of them are
/// in the filter.
///
/// # Example
/// ```
/// use koel::{ElasticFilter, GrowErrorKind};
/// let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build()?;
/// let error = filter.insert_batch(&[7u8; 20]).unwrap_err();
/// assert_eq!((error.kind(), error.position()), (GrowErrorKind::Copies, 8));
/// assert_eq!(filter.count(&7u8), 8);
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowError {
    reason: Refused,
    /// The bytes of the tables, and their limit.
    table_bytes: usize,
    max_bytes: usize,
    position: usize,
}

/// Why an item was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrowErrorKind {
    /// Copies of items fill both its buckets. Growing would not help them.
    Copies,
    /// The tables would take more bytes than [`max_bytes`](super::ElasticBuilder::max_bytes).
    Limit,
    /// The filter holds so many times its maximal capacity that it has 256 layers, and can have no more.
    Layers,
    /// Memory could not be allocated.
    OutOfMemory,
}

/// The reason in numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// So many copies of the item's own fingerprint.
    Copies(u32),
    /// Copies of other items.
    OthersCopies,
    /// So many bytes are needed besides those that there are: more than are allowed.
    Limit {
        needed: usize,
    },
    /// There is no number left for a further layer.
    Layers,
    OutOfMemory(OutOfMemory),
}

impl From<OutOfMemory> for Refused {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory(error)
    }
}

impl GrowError {
    pub(super) fn new(reason: Refused, table_bytes: usize, max_bytes: usize) -> Self {
        Self { reason, table_bytes, max_bytes, position: 0 }
    }

    /// Why the item was refused.
    #[must_use]
    pub fn kind(&self) -> GrowErrorKind {
        match self.reason {
            Refused::Copies(_) | Refused::OthersCopies => GrowErrorKind::Copies,
            Refused::Limit { .. } => GrowErrorKind::Limit,
            Refused::Layers => GrowErrorKind::Layers,
            Refused::OutOfMemory(_) => GrowErrorKind::OutOfMemory,
        }
    }

    /// The index of the refused item among the items of the call; 0 for a single item.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// The same, if `items` others were inserted before these.
    pub(super) fn after(self, items: usize) -> Self {
        Self { position: items + self.position, ..self }
    }

    /// The same error, for the item at this index.
    pub(super) fn at(self, position: usize) -> Self {
        Self { position, ..self }
    }
}

impl fmt::Display for GrowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.position > 0 {
            write!(f, "item {}, counted from 0, was refused: ", self.position)?;
        }
        match &self.reason {
            Refused::Copies(copies) => write!(
                f,
                "no room for one more copy of the item: {copies} with its fingerprint fill its two buckets; insert_unique stores \
                 an item once"
            ),
            Refused::OthersCopies => f.write_str(
                "no room for the item: copies of a few other items fill its two buckets, and the filter does not grow for copies; \
                 insert_unique stores an item once",
            ),
            Refused::Limit { needed } => write!(
                f,
                "the tables would take {} bytes, and the limit is {}; remove items, or build the filter with a higher max_bytes",
                self.table_bytes.saturating_add(*needed),
                self.max_bytes
            ),
            Refused::Layers => f.write_str(
                "the filter holds many times its maximal capacity, in 256 layers, and can have no more; build it with a higher \
                 max_capacity",
            ),
            Refused::OutOfMemory(error) => error.fmt(f),
        }
    }
}

impl Error for GrowError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.reason {
            Refused::OutOfMemory(error) => error.source(),
            _ => None,
        }
    }
}
