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
    /// What the filter is charged, and the limit.
    charged: usize,
    max_bytes: usize,
    position: usize,
}

/// Why an item was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrowErrorKind {
    /// Copies of items fill both its buckets: of the item itself, or of others, where growing would take much memory for few items (a
    /// shard less than a quarter full, or one that cannot be split and is less than half full).
    Copies,
    /// The filter would take more bytes than [`max_bytes`](super::ElasticBuilder::max_bytes).
    Limit,
    /// The filter holds so many times its maximal capacity, at least a thousand times, that it can have no further layer.
    Layers,
    /// Too many items have hashes that begin with the same bits, so that splitting their shard does not help them. Hashes are not
    /// uniform, or an attacker who knows the seed chose the items.
    Crowded,
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
    /// No further layer could keep the rate.
    Layers,
    /// Splitting shards does not make room, though the filter is far from its planned size.
    Crowded,
    /// A merged item finds no room in the layers that know as many of its bits, and for another one not enough are known.
    BitsUsedUp,
    OutOfMemory(OutOfMemory),
}

impl From<OutOfMemory> for Refused {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory(error)
    }
}

impl GrowError {
    pub(super) fn new(reason: Refused, charged: usize, max_bytes: usize) -> Self {
        Self { reason, charged, max_bytes, position: 0 }
    }

    /// Why the item was refused.
    #[must_use]
    pub fn kind(&self) -> GrowErrorKind {
        match self.reason {
            Refused::Copies(_) | Refused::OthersCopies => GrowErrorKind::Copies,
            Refused::Limit { .. } => GrowErrorKind::Limit,
            Refused::Layers | Refused::BitsUsedUp => GrowErrorKind::Layers,
            Refused::Crowded => GrowErrorKind::Crowded,
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
                "the filter would take {} bytes, and the limit is {}; remove items, or build the filter with a higher max_bytes",
                self.charged.saturating_add(*needed),
                self.max_bytes
            ),
            Refused::Layers => f.write_str(
                "the filter holds many times its maximal capacity, and a further layer could not keep its false-positive rate; build \
                 it with a higher max_capacity",
            ),
            Refused::Crowded => f.write_str(
                "no room for the item: too many items have hashes that begin with the same bits; insert items instead of hashes, \
                 use another hasher, or a seed that nobody else knows",
            ),
            Refused::BitsUsedUp => f.write_str(
                "the merged filter would hold more than its maximal capacity, and of the items that are there already not enough \
                 bits are known for a further layer; build both with a higher max_capacity",
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
