//! The errors. Each names the value, the limit and the remedy; their insides are their own.

use alloc::string::String;
use core::{error::Error, fmt};

pub(crate) use crate::params::{ParamError, Parameter};

/// The filter has no room for an item. Not one of its bits was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Full {
    pub(crate) items: usize,
    pub(crate) slots: usize,
    pub(crate) duplicate: bool,
}

impl Full {
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

    /// True if the item's two buckets hold nothing but its fingerprint: copies of it, most likely, which leave room for
    /// others but for no more of the same.
    #[must_use]
    pub fn is_duplicate(&self) -> bool {
        self.duplicate
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { items, slots, duplicate } = self;
        if *duplicate {
            f.write_str(
                "no room for one more copy of the item: its two buckets hold nothing but copies of it; \
                 insert_unique stores an item once",
            )
        } else {
            write!(
                f,
                "the filter is full: {items} items in {slots} slots ({:.1} %) left no room for another; \
                 build it with a larger capacity",
                100.0 * *items as f64 / *slots as f64
            )
        }
    }
}

impl Error for Full {}

/// A batch met a full filter: the items before that one are in, the others are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchFull {
    pub(crate) inserted: usize,
    pub(crate) full: Full,
}

impl BatchFull {
    /// How many items of the batch are in the filter: the first so many. The next one was refused.
    #[must_use]
    pub fn inserted(&self) -> usize {
        self.inserted
    }

    /// Why the next one was refused.
    #[must_use]
    pub fn full(&self) -> &Full {
        &self.full
    }
}

impl fmt::Display for BatchFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the first {} items of the batch are in, the next was refused: {}", self.inserted, self.full)
    }
}

impl Error for BatchFull {}

/// A set could not be made a filter of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// No filter can be like that, or there is no memory for it.
    Param(ParamError),
    /// Not everything fits.
    Full(Full),
}

impl From<ParamError> for BuildError {
    fn from(error: ParamError) -> Self {
        Self::Param(error)
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Param(error) => error.fmt(f),
            Self::Full(full) => full.fmt(f),
        }
    }
}

impl Error for BuildError {}

/// Two filters could not be merged. Not one bit of either was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeError {
    /// The filters differ in a parameter, so that an item has different buckets or fingerprints in them.
    Different(DifferentParams),
    /// The items of both do not fit into one.
    Full(MergedFull),
    /// The other one is a view of bytes that no filter wrote.
    Damaged {
        /// What is wrong with them.
        kind: SnapshotErrorKind,
        /// Where: the offset in bytes, from the start of the snapshot.
        offset: u64,
        /// All of it in words.
        what: String,
    },
    /// There was no memory for the copy that makes a merge all or nothing.
    OutOfMemory {
        /// Bytes of the copy.
        bytes: usize,
    },
}

/// More items than one filter has room for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedFull {
    pub(crate) ours: usize,
    pub(crate) theirs: usize,
    pub(crate) slots: usize,
    pub(crate) capacity: usize,
}

impl MergedFull {
    /// Items of both filters.
    #[must_use]
    pub fn items(&self) -> usize {
        self.ours.saturating_add(self.theirs)
    }

    /// Slots of either.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.slots
    }
}

/// The first parameter in which two filters differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferentParams {
    pub(crate) parameter: &'static str,
    pub(crate) ours: String,
    pub(crate) theirs: String,
}

impl DifferentParams {
    /// Which it is, in words.
    #[must_use]
    pub fn parameter(&self) -> &'static str {
        self.parameter
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Different(DifferentParams { parameter, ours, theirs }) => write!(
                f,
                "only filters with the same parameters can be merged: the {parameter} is {ours} here and {theirs} there; \
                 build both from the same parameters"
            ),
            Self::Full(MergedFull { ours, theirs, slots, capacity }) => write!(
                f,
                "{ours} and {theirs} items do not fit into one filter of {slots} slots, planned for {capacity}; \
                 build both with a capacity for all of them"
            ),
            Self::Damaged { what, .. } => write!(f, "the filter to merge with is damaged: {what}"),
            Self::OutOfMemory { bytes } => {
                write!(f, "a merge needs a copy of the table, {bytes} bytes, which could not be allocated")
            }
        }
    }
}

impl Error for MergeError {}

/// Bytes that are no snapshot of a filter, or not of one that can be read here.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, SnapshotErrorKind};
/// let error = CuckooFilter::from_bytes(b"not a filter").unwrap_err();
/// assert_eq!(error.kind(), SnapshotErrorKind::Magic);
/// assert_eq!(error.offset(), 0);
/// ```
#[derive(Debug)]
pub struct SnapshotError {
    pub(crate) kind: SnapshotErrorKind,
    pub(crate) offset: u64,
    pub(crate) what: String,
    #[cfg(feature = "std")]
    pub(crate) source: Option<std::io::Error>,
}

/// What is wrong with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SnapshotErrorKind {
    /// They do not begin as a snapshot does.
    Magic,
    /// They are a snapshot of a version that this release does not know.
    Version,
    /// They end too early, or go on after the end.
    Length,
    /// The header is not what was written.
    HeaderChecksum,
    /// The header describes a filter that cannot be.
    Parameter,
    /// The filter was built with a hasher other than the one asked for.
    Hasher,
    /// The table is not what was written.
    BodyChecksum,
    /// A packed bucket has a codeword that means nothing, or fingerprints out of order; or a bit beyond the last bucket
    /// is set.
    Table,
    /// The table does not hold as many items as the header says.
    Count,
    /// A file of Go's with a table that Go's own library corrupts: some of its slots share bits.
    Aliasing,
    /// A file of Go's that may well be right, but with fingerprints or buckets that this library does not have.
    Unsupported,
    /// The table does not fit into memory.
    OutOfMemory,
    /// The reader failed; [`source`](Error::source) says how.
    Io,
}

impl SnapshotErrorKind {
    fn remedy(self) -> &'static str {
        match self {
            Self::Magic => "read what a filter was written to",
            Self::Version => "read it with a release that knows this version",
            Self::Hasher => "read it with that hasher, or with AnyHasher",
            Self::Aliasing | Self::Unsupported => "fill a filter of other parameters with the items themselves",
            Self::OutOfMemory => "read it where there is more memory",
            Self::Io => "",
            Self::Length | Self::HeaderChecksum | Self::Parameter | Self::BodyChecksum | Self::Table | Self::Count => {
                "the bytes are damaged, get another copy"
            }
        }
    }
}

impl SnapshotError {
    pub(crate) fn new(kind: SnapshotErrorKind, offset: impl Into<u64>, what: String) -> Self {
        Self {
            kind,
            offset: offset.into(),
            what,
            #[cfg(feature = "std")]
            source: None,
        }
    }

    /// The reader, or the system, failed.
    #[cfg(feature = "std")]
    pub(crate) fn io(offset: u64, what: String, source: std::io::Error) -> Self {
        Self { kind: SnapshotErrorKind::Io, offset, what, source: Some(source) }
    }

    /// What is wrong.
    #[must_use]
    pub fn kind(&self) -> SnapshotErrorKind {
        self.kind
    }

    /// Where: the offset in bytes, from the start of the snapshot, of what is wrong.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What failed to be read may have no bytes at all.
        if self.kind != SnapshotErrorKind::Io {
            write!(f, "at byte {}: ", self.offset)?;
        }
        f.write_str(&self.what)?;
        match self.kind.remedy() {
            "" => Ok(()),
            remedy => write!(f, "; {remedy}"),
        }
    }
}

impl Error for SnapshotError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        #[cfg(feature = "std")]
        if let Some(source) = &self.source {
            return Some(source);
        }
        None
    }
}
