//! The errors of building filters, inserting items and merging filters.

use core::{error::Error, fmt};

use crate::{
    params::{ParamError, Params},
    storage::OutOfMemory,
};

/// The error of a refused insertion. A refused single insertion leaves the filter unchanged, bit for bit. The documentation of
/// methods for several items says which of the items are then in the filter.
///
/// # Example
/// ```
/// use koel::InsertErrorKind;
/// let mut filter = koel::CuckooFilter::builder().capacity(100).false_positive_rate(0.001).build()?;
/// let error = filter.insert_iter(0..200u32).unwrap_err();
/// // The items before the refused one are in the filter.
/// let InsertErrorKind::Full { distinct, len } = error.kind() else { panic!("{error}") };
/// assert!(distinct > 100 && len == filter.len() && len == error.position());
/// # Ok::<(), koel::BuildError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct InsertError {
    kind: InsertErrorKind,
    position: usize,
}

// Every insertion returns a `Result` of this size.
const _: () = assert!(size_of::<InsertError>() <= 32);

/// The reason why an item was refused, with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InsertErrorKind {
    /// The table has no room for another item. (Only a filter of fixed size is ever full.)
    Full {
        /// The number of distinct items, which fill the table. To count them takes too long for a refusal, so copies in the table that
        /// could not make room for this item, because no evictions lead there, count as distinct. (In a filter of Go's library, all
        /// copies do.)
        distinct: usize,
        /// The length of the filter, copies included.
        len: usize,
    },
    /// In a filter of Go's library, copies of the item's fingerprint fill both its buckets. These are most likely copies of the
    /// item. Other items may still fit.
    BucketsFull {
        /// The number of copies.
        copies: u32,
    },
    /// The item has 2³² − 1 copies, the largest possible count.
    TooManyCopies,
    /// The filter would take more bytes than [`max_bytes`](crate::ElasticBuilder::max_bytes).
    Limit {
        /// A number of bytes that the filter would take, at least: more may be needed for the same item, and for others of a merge.
        needed: usize,
        /// The limit in bytes.
        max_bytes: usize,
    },
    /// Too many items share the shard or the two buckets of this one, and splitting the shard does not separate them. Either the
    /// hashes are not uniform, or an attacker who knows the seed chose the items. Items of other shards are not affected.
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

    /// Returns the error for `needed` additional bytes. [`within`](Self::within) adds the bytes that the filter is charged already.
    pub(crate) const fn limit(needed: usize) -> Self {
        Self::of(InsertErrorKind::Limit { needed, max_bytes: usize::MAX })
    }

    /// Returns a [`limit`](Self::limit) error if more bytes are needed than the budget has.
    pub(crate) fn check_budget(needed: usize, budget: usize) -> Result<(), Self> {
        if needed > budget { Err(Self::limit(needed)) } else { Ok(()) }
    }

    /// Returns the reason why the item was refused.
    #[must_use]
    pub fn kind(&self) -> InsertErrorKind {
        self.kind
    }

    /// Returns the index of the refused item among the items of the call; 0 for a single item. Items that were skipped because they
    /// were present count, too.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the error with `items` added to its position: the number of items in earlier calls, for a caller that inserts a
    /// batch in pieces.
    ///
    /// # Example
    /// ```
    /// # let mut filter = koel::CuckooFilter::builder().capacity(50).false_positive_rate(0.01).build()?;
    /// let items: Vec<u32> = (0..1000).collect();
    /// let mut pieces = items.chunks(10).enumerate();
    /// let refused = pieces.find_map(|(number, piece)| filter.insert_batch(piece).map_err(|error| error.after(10 * number)).err());
    /// assert_eq!(refused.map(|error| error.position()), Some(filter.len()));
    /// # Ok::<(), koel::BuildError>(())
    /// ```
    #[must_use]
    pub fn after(self, items: usize) -> Self {
        Self { position: items.saturating_add(self.position), ..self }
    }

    /// Completes a [`limit`](Self::limit) error for a filter that is charged `charged` bytes. Returns other errors unchanged.
    pub(crate) fn within(self, charged: usize, max_bytes: usize) -> Self {
        match self.kind {
            InsertErrorKind::Limit { needed, .. } => {
                Self { kind: InsertErrorKind::Limit { needed: charged.saturating_add(needed), max_bytes }, ..self }
            }
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
            InsertErrorKind::Full { distinct, len } => {
                write!(f, "the filter is full: {distinct} distinct items")?;
                if len > distinct {
                    write!(f, " (length {len})")?;
                }
                f.write_str(" leave no room for another; build it with a larger capacity, or as an ElasticFilter")
            }
            InsertErrorKind::BucketsFull { copies } => write!(
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
            InsertErrorKind::Crowded => f.write_str(
                "no room for the item: too many items have hashes that begin with the same bits; insert items instead of \
                 hashes, use another hasher, or a seed that nobody else knows",
            ),
            InsertErrorKind::OutOfMemory { bytes } => OutOfMemory::of(bytes).fmt(f),
        }
    }
}

/// Shows the message. A `Box<dyn Error>` links this code even if nothing calls it, and derived code would take kilobytes.
impl fmt::Debug for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InsertError({self})")
    }
}

impl Error for InsertError {}

/// The error of building a filter.
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
    /// Returns the source of the inner error, because `Display` already shows the inner error itself.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Param(error) => error.source(),
            Self::OutOfMemory(error) => error.source(),
            Self::Insert(error) => error.source(),
        }
    }
}

/// The error of merging filters. Both filters are unchanged.
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
    /// The growing filters have different false-positive rates.
    #[non_exhaustive]
    DifferentRates {
        /// The rate of the filter to merge into.
        ours: f64,
        /// The rate of the filter to merge from.
        theirs: f64,
    },
    /// The growing filters have different parameters.
    #[non_exhaustive]
    DifferentPlans {
        /// The first parameter that differs: `capacity`, `max_capacity`, `partitions` or `seed`; or one that follows from these, if
        /// another version of the library planned one of the filters.
        parameter: &'static str,
        /// Its value in the filter to merge into.
        ours: u64,
        /// Its value in the filter to merge from.
        theirs: u64,
    },
    /// The filters have different hashers.
    DifferentHasher,
    /// The items of both filters do not fit into one filter of fixed size.
    #[non_exhaustive]
    Full {
        /// The number of distinct items in both filters together.
        items: usize,
        /// The number of slots in one filter.
        slots: usize,
        /// The number of distinct items that one filter is planned for.
        capacity: usize,
        /// A sufficient [`capacity`](crate::Builder::capacity) for both filters: the number of distinct items, and some more for
        /// items that collide at this size and may be distinct at a larger one.
        needed: usize,
    },
    /// Together, the growing filters hold more distinct items than their maximum capacity, and a generation has no room for those of
    /// both. A stored item has too few bits of its hash to move to a later generation, as an inserted one would. A union of filters
    /// with the same items may fail, too, if these came in other orders.
    #[non_exhaustive]
    MaxCapacity {
        /// The number of items in both filters together, copies included.
        items: usize,
        /// The maximum capacity of the filters.
        max_capacity: usize,
        /// A number that is sufficient as both `capacity` and `max_capacity`; `None` if no filter can be planned for so many items.
        needed: Option<usize>,
    },
    /// An item of the other filter was refused for another reason.
    Insert(InsertError),
    /// The copy on which a merge works could not be allocated.
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
            Self::DifferentRates { ours, theirs } => write!(
                f,
                "only filters with the same false_positive_rate can be merged, but this one has {ours:?}, and the other {theirs:?}; \
                 build both from the same parameters"
            ),
            Self::DifferentPlans { parameter, ours, theirs } => write!(
                f,
                "only filters with the same {parameter} can be merged, but this one has {ours}, and the other {theirs}; build both \
                 from the same parameters"
            ),
            Self::DifferentHasher => f.write_str("only filters with the same hasher can be merged; build both with equal ones"),
            Self::Full { items, slots, capacity, needed } => write!(
                f,
                "{items} distinct items do not fit into one filter of {slots} slots, planned for {capacity}; build both with a \
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
            Self::Insert(error) if error.kind() == InsertErrorKind::TooManyCopies => f.write_str(
                "an item would have more than 4294967295 copies, and no more are counted; union keeps the larger number of copies",
            ),
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

/// Writes the message about a filter that another program does not support: the parameter's value, the limit and the remedy.
#[cfg(any(go_files, feature = "redisbloom"))]
pub(crate) fn unsupported(
    f: &mut fmt::Formatter<'_>,
    parameter: &str,
    given: &dyn fmt::Display,
    limit: &str,
    remedy: &str,
) -> fmt::Result {
    write!(f, "{parameter}: {given} given, but {limit}; build the filter with {remedy}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{format, string::ToString as _};

    /// Every message has the numbers and a remedy.
    #[test]
    fn insert_errors_are_displayed() {
        for (kind, message) in [
            (
                InsertErrorKind::Full { distinct: 990, len: 990 },
                "the filter is full: 990 distinct items leave no room for another; build it with a larger capacity, or as an \
                 ElasticFilter",
            ),
            (
                InsertErrorKind::Full { distinct: 990, len: 5000 },
                "the filter is full: 990 distinct items (length 5000) leave no room for another; build it with a larger \
                 capacity, or as an ElasticFilter",
            ),
            (
                InsertErrorKind::BucketsFull { copies: 8 },
                "no room for one more copy of the item: 8 with its fingerprint fill its two buckets; insert_unique stores an item \
                 once",
            ),
            (
                InsertErrorKind::Limit { needed: 101, max_bytes: 100 },
                "the filter would take 101 bytes, and the limit is 100; remove items, or build the filter with a higher max_bytes",
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
            let at = error.clone().after(3);
            assert_eq!(at.to_string(), format!("item 3, counted from 0, was refused: {message}"));
            assert_eq!((at.clone().after(2).position(), at.source().is_none()), (5, true));
            assert_eq!([BuildError::from(error.clone()).to_string(), MergeError::from(error).to_string()], [message, message]);
        }
        assert!(
            size_of::<InsertError>() <= 40 && size_of::<BuildError>() <= 48 && size_of::<OutOfMemory>() == size_of::<usize>()
        );
    }

    #[test]
    fn within_completes_limit_errors_only() {
        let error = InsertError::limit(5).within(100, 102);
        assert_eq!(error.kind(), InsertErrorKind::Limit { needed: 105, max_bytes: 102 });
        assert_eq!(InsertError::of(InsertErrorKind::Crowded).within(100, 102).kind(), InsertErrorKind::Crowded);
    }
}
