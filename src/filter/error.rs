//! What goes wrong with a filter: it cannot be built, an item is refused, or two cannot be merged.

use core::{error::Error, fmt};

use crate::{
    params::{ParamError, Params},
    storage::OutOfMemory,
};

/// An item was refused, and is not in the filter. A single insertion has then changed nothing, bit for bit; the methods for several
/// items say which of them are in the filter.
///
/// # Example
/// ```
/// use koel::InsertErrorKind;
/// let mut filter = koel::CuckooFilter::builder().capacity(100).false_positive_rate(0.001).build()?;
/// let error = filter.insert_iter(0..200u32).unwrap_err();
/// // The items before the one that was refused are in the filter.
/// assert!(matches!(error.kind(), InsertErrorKind::Full { slots: 120.., .. }) && error.position() > 100);
/// assert_eq!(filter.len(), error.position());
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct InsertError {
    kind: InsertErrorKind,
    position: usize,
}

// Every insertion may return one.
const _: () = assert!(size_of::<InsertError>() <= 32);

/// Why an item was refused, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertErrorKind {
    /// The table has no room for another item. (Only a filter of fixed size is ever full.)
    Full {
        /// The number of items in its table, without copies that are counted beside it.
        items: usize,
        /// The number of slots in its table.
        slots: usize,
    },
    /// In a filter of Go's: copies of the item's own fingerprint fill both its buckets. These are most likely copies of the item.
    /// Other items may still fit.
    Copies {
        /// The number of copies.
        copies: u32,
    },
    /// The item has 2³² − 1 copies, and no more are counted.
    TooManyCopies,
    /// The filter would take more bytes than [`max_bytes`](crate::ElasticBuilder::max_bytes).
    Limit {
        /// The number of bytes that it would take.
        needed: usize,
        /// The limit.
        max_bytes: usize,
    },
    /// The filter holds at least a thousand times its maximal capacity, and has no bits left for a further generation.
    Generations,
    /// Too many items have hashes that begin with the same bits, so that splitting their shard does not help them. Hashes are not
    /// uniform, or an attacker who knows the seed chose the items.
    Crowded,
    /// Memory could not be allocated.
    OutOfMemory {
        /// The number of bytes requested.
        bytes: usize,
    },
}

impl InsertError {
    pub(crate) const fn of(kind: InsertErrorKind) -> Self {
        Self { kind, position: 0 }
    }

    /// This many bytes are needed: besides those that there are, until [`within`](Self::within) adds them.
    pub(crate) const fn limit(needed: usize) -> Self {
        Self::of(InsertErrorKind::Limit { needed, max_bytes: usize::MAX })
    }

    /// Why the item was refused.
    #[must_use]
    pub fn kind(&self) -> InsertErrorKind {
        self.kind
    }

    /// The index of the refused item among the items of the call, whether those before it were inserted or, by
    /// `insert_unique_iter`, skipped. 0 for a single item.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// The same error, for the item at this index.
    pub(crate) fn at(self, position: usize) -> Self {
        Self { position, ..self }
    }

    /// The same, if `items` others were inserted before these.
    pub(crate) fn after(self, items: usize) -> Self {
        Self { position: items + self.position, ..self }
    }

    /// The same error, for a filter that is charged this many bytes and may take this many.
    pub(crate) fn within(self, charged: usize, max_bytes: usize) -> Self {
        match self.kind {
            InsertErrorKind::Limit { needed, .. } => {
                Self { kind: InsertErrorKind::Limit { needed: charged.saturating_add(needed), max_bytes }, ..self }
            }
            _ => self,
        }
    }

    /// The same error, for a full filter that has an item besides those in its table.
    #[cfg(go_files)]
    pub(crate) fn with_one_more(self) -> Self {
        match self.kind {
            InsertErrorKind::Full { items, slots } => Self { kind: InsertErrorKind::Full { items: items + 1, slots }, ..self },
            _ => self,
        }
    }
}

impl From<OutOfMemory> for InsertError {
    fn from(error: OutOfMemory) -> Self {
        Self::of(InsertErrorKind::OutOfMemory { bytes: error.bytes() })
    }
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.position > 0 {
            write!(f, "item {}, counted from 0, was refused: ", self.position)?;
        }
        match self.kind {
            InsertErrorKind::Full { items, slots } => write!(
                f,
                "the filter is full: {items} items in {slots} slots left no room for another; build it with a larger capacity"
            ),
            InsertErrorKind::Copies { copies } => write!(
                f,
                "no room for one more copy of the item: {copies} with its fingerprint fill its two buckets; insert_unique stores \
                 an item once"
            ),
            InsertErrorKind::TooManyCopies => {
                f.write_str("the item has 4294967295 copies, and no more are counted; insert_unique stores an item once")
            }
            InsertErrorKind::Limit { needed, max_bytes } => write!(
                f,
                "the filter would take {needed} bytes, and the limit is {max_bytes}; remove items, or build the filter with a \
                 higher max_bytes"
            ),
            InsertErrorKind::Generations => f.write_str(
                "the filter holds many times its maximal capacity, and a further generation could not keep its false-positive rate; \
                 build it with a higher max_capacity",
            ),
            InsertErrorKind::Crowded => f.write_str(
                "no room for the item: too many items have hashes that begin with the same bits; insert items instead of \
                 hashes, use another hasher, or a seed that nobody else knows",
            ),
            InsertErrorKind::OutOfMemory { bytes } => OutOfMemory::of(bytes).fmt(f),
        }
    }
}

/// Its message: a `Box<dyn Error>` has this in it even if nothing calls it, and the fields would be kilobytes of code.
impl fmt::Debug for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InsertError({self})")
    }
}

impl Error for InsertError {}

/// A filter could not be built.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// A parameter is missing, duplicated or out of range.
    Param(ParamError),
    /// The memory for the table could not be allocated.
    OutOfMemory(OutOfMemory),
    /// Not all items of the known set fit.
    Insert(InsertError),
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

impl From<InsertError> for BuildError {
    fn from(error: InsertError) -> Self {
        Self::Insert(error)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Param(error) => error.fmt(f),
            Self::OutOfMemory(error) => error.fmt(f),
            Self::Insert(error) => error.fmt(f),
        }
    }
}

impl Error for BuildError {
    /// `Display` forwards to the inner error, so the chain continues with the source of that error.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Param(error) => error.source(),
            Self::OutOfMemory(error) => error.source(),
            Self::Insert(error) => error.source(),
        }
    }
}

/// Filters could not be merged. They are unchanged.
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
    /// Growing filters have different parameters.
    DifferentPlans,
    /// The filters have different hashers.
    DifferentHasher,
    /// The items of both filters do not fit into one of fixed size.
    #[non_exhaustive]
    Full {
        /// The number of different items of both filters.
        items: usize,
        /// The number of slots in one filter.
        slots: usize,
        /// The number of different items that one filter is planned for.
        capacity: usize,
        /// A [`capacity`](crate::Builder::capacity) with which both filters should be built: the number of different items, and a
        /// few more that this filter cannot tell from others.
        needed: usize,
    },
    /// Together, growing filters hold more than their maximal capacity.
    #[non_exhaustive]
    MaxCapacity {
        /// The number of items in both filters together.
        items: usize,
        /// The maximal capacity of the filters.
        max_capacity: usize,
        /// A number that as capacity and as maximal capacity makes room for all of them; `None` if no filter can have so many.
        needed: Option<usize>,
    },
    /// A growing filter refused an item of the other one.
    Insert(InsertError),
    /// A merge works on a copy, which could not be allocated.
    OutOfMemory(OutOfMemory),
}

impl From<InsertError> for MergeError {
    fn from(error: InsertError) -> Self {
        Self::Insert(error)
    }
}

impl From<OutOfMemory> for MergeError {
    fn from(error: OutOfMemory) -> Self {
        Self::OutOfMemory(error)
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
            Self::DifferentPlans => {
                f.write_str("the filters have different parameters; build both from those of one of them: ElasticFilter::new")
            }
            Self::DifferentHasher => f.write_str("only filters with the same hasher can be merged; build both with equal ones"),
            Self::Full { items, slots, capacity, needed } => write!(
                f,
                "{items} different items do not fit into one filter of {slots} slots, planned for {capacity}; build both with a \
                 capacity of at least {needed}"
            ),
            Self::MaxCapacity { items, max_capacity, needed } => {
                write!(f, "{items} items do not fit into one filter, planned for at most {max_capacity}; ")?;
                match needed {
                    Some(needed) => write!(f, "build both with {needed} as capacity and max_capacity"),
                    None => f.write_str("build both with a higher false-positive rate"),
                }?;
                f.write_str(", or insert the items of one into the other")
            }
            Self::Insert(error) => error.fmt(f),
            Self::OutOfMemory(_) => f.write_str("the copy on which a merge works cannot be allocated"),
        }
    }
}

impl Error for MergeError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Insert(error) => error.source(),
            Self::OutOfMemory(error) => Some(error),
            _ => None,
        }
    }
}

/// The message about a filter that another program cannot have.
#[cfg(any(go_files, feature = "redisbloom"))]
pub(crate) fn other_wanted(
    f: &mut fmt::Formatter<'_>,
    what: &str,
    given: &dyn fmt::Display,
    but: &str,
    with: &str,
) -> fmt::Result {
    write!(f, "{what}: {given} given, but {but}; build the filter with {with}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, string::ToString as _};

    /// Every refusal in words: the numbers, and one remedy.
    #[test]
    fn insert_errors_are_displayed() {
        for (kind, message) in [
            (
                InsertErrorKind::Full { items: 990, slots: 1000 },
                "the filter is full: 990 items in 1000 slots left no room for another; build it with a larger capacity",
            ),
            (
                InsertErrorKind::Copies { copies: 8 },
                "no room for one more copy of the item: 8 with its fingerprint fill its two buckets; insert_unique stores an item \
                 once",
            ),
            (
                InsertErrorKind::Limit { needed: 101, max_bytes: 100 },
                "the filter would take 101 bytes, and the limit is 100; remove items, or build the filter with a higher max_bytes",
            ),
            (
                InsertErrorKind::Generations,
                "the filter holds many times its maximal capacity, and a further generation could not keep its false-positive rate; \
                 build it with a higher max_capacity",
            ),
            (
                InsertErrorKind::Crowded,
                "no room for the item: too many items have hashes that begin with the same bits; insert items instead of hashes, \
                 use another hasher, or a seed that nobody else knows",
            ),
            (
                InsertErrorKind::OutOfMemory { bytes: 64 },
                "64 bytes of memory could not be allocated; use a smaller capacity, a higher false-positive rate, or a machine \
                 with more memory",
            ),
        ] {
            let error = InsertError::of(kind);
            assert_eq!((error.to_string(), error.kind(), error.position()), (message.into(), kind, 0));
            assert_eq!(format!("{error:?}"), format!("InsertError({message})"));
            let at = error.clone().at(3);
            assert_eq!(at.to_string(), format!("item 3, counted from 0, was refused: {message}"));
            assert_eq!((at.clone().after(2).position(), at.source().is_none()), (5, true));
            assert_eq!([BuildError::from(error.clone()).to_string(), MergeError::from(error).to_string()], [message, message]);
        }
        assert!(
            size_of::<InsertError>() <= 40 && size_of::<BuildError>() <= 48 && size_of::<OutOfMemory>() == size_of::<usize>()
        );
    }

    #[test]
    fn a_limit_is_completed_by_the_filter() {
        let error = InsertError::limit(5).within(100, 102);
        assert_eq!(error.kind(), InsertErrorKind::Limit { needed: 105, max_bytes: 102 });
        assert_eq!(InsertError::of(InsertErrorKind::Crowded).within(100, 102).kind(), InsertErrorKind::Crowded);
    }
}
