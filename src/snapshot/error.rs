//! Why bytes cannot be read as a filter.

use alloc::{boxed::Box, format, string::String};
use core::{error::Error, fmt};

use crate::{hash::HasherId, storage::OutOfMemory};

/// The bytes are not a snapshot of a filter, or not of one that can be read here.
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
    kind: SnapshotErrorKind,
    offset: u64,
    what: String,
    remedy: &'static str,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// What is wrong with the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SnapshotErrorKind {
    /// They do not begin as a snapshot does.
    Magic,
    /// They are a snapshot of a version that this release does not know.
    Version,
    /// They end too early.
    Length,
    /// Other bytes follow the snapshot.
    TrailingBytes,
    /// The header is not what was written.
    HeaderChecksum,
    /// The header describes a filter that cannot exist.
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
    /// A valid file of Go's, but with fingerprints or buckets that this library does not have.
    Unsupported,
    /// There is no memory for the table; [`source`](Error::source) says how much was asked for.
    OutOfMemory,
    /// The reader failed; [`source`](Error::source) says how.
    Io,
}

impl SnapshotErrorKind {
    /// What to do, unless the error says otherwise.
    fn remedy(self) -> &'static str {
        match self {
            Self::Magic => "give the bytes that a filter was written to",
            Self::Version => "read it with a release that knows this version",
            Self::TrailingBytes => "give exactly one snapshot, or open it with over_prefix or read_from, which leave the rest",
            Self::Aliasing | Self::Unsupported => "fill a filter of other parameters with the items themselves",
            Self::OutOfMemory => "read it on a machine with more memory, or query it in place as a FilterView",
            Self::Io | Self::Hasher => "",
            Self::Length | Self::HeaderChecksum | Self::Parameter | Self::BodyChecksum | Self::Table | Self::Count => {
                "the snapshot is corrupt, use another copy"
            }
        }
    }
}

impl SnapshotError {
    pub(crate) fn new(kind: SnapshotErrorKind, offset: impl Into<u64>, what: String) -> Self {
        Self { kind, offset: offset.into(), what, remedy: kind.remedy(), source: None }
    }

    /// The filter needs a hasher that was not given.
    pub(crate) fn hasher(offset: impl Into<u64>, needed: HasherId) -> Self {
        let remedy = match needed {
            HasherId::XXH3 => "read it with Xxh3, the default, or with AnyHasher::from_id",
            HasherId::METRO_HASH_64 if cfg!(go_files) => "read it with MetroHash64, or with AnyHasher::from_id",
            HasherId::METRO_HASH_64 => "read it with koel's feature metrohash, on a little-endian machine",
            _ => "give that hasher to from_bytes_with, over_with, read_from_with or load_with",
        };
        let what = format!("the filter was built with {needed}, which is not the hasher asked for");
        Self { remedy, ..Self::new(SnapshotErrorKind::Hasher, offset, what) }
    }

    /// The reader, or the system, failed.
    #[cfg(feature = "std")]
    pub(crate) fn io(offset: u64, what: String, source: std::io::Error) -> Self {
        Self { source: Some(source.into()), ..Self::new(SnapshotErrorKind::Io, offset, what) }
    }

    /// The same, with the path if it was the system that failed.
    #[cfg(feature = "std")]
    pub(crate) fn in_file(self, path: &std::path::Path) -> Self {
        if self.kind == SnapshotErrorKind::Io {
            Self { what: format!("{}: {}", path.display(), self.what), ..self }
        } else {
            self
        }
    }

    /// The same, with another remedy.
    #[cfg(go_files)]
    pub(crate) fn with_remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
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

impl From<OutOfMemory> for SnapshotError {
    fn from(error: OutOfMemory) -> Self {
        let what = format!("there is no memory for a table of {} bytes", error.bytes());
        let kind = SnapshotErrorKind::OutOfMemory;
        Self { source: Some(error.into()), ..Self::new(kind, super::format::HEADER_BYTES as u64, what) }
    }
}

/// With the kind [`Other`](std::io::ErrorKind::Other) or that of the reader's error where the reader failed, and
/// [`InvalidData`](std::io::ErrorKind::InvalidData) where the bytes are wrong.
#[cfg(feature = "std")]
impl From<SnapshotError> for std::io::Error {
    fn from(error: SnapshotError) -> Self {
        use std::io::ErrorKind;
        let kind = match error.kind {
            SnapshotErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
            SnapshotErrorKind::Io => {
                let source = error.source.as_ref().and_then(|source| source.downcast_ref::<Self>());
                source.map_or(ErrorKind::Other, Self::kind)
            }
            _ => ErrorKind::InvalidData,
        };
        Self::new(kind, error)
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What failed to be read may have no bytes at all.
        if self.kind != SnapshotErrorKind::Io {
            write!(f, "at byte {}: ", self.offset)?;
        }
        f.write_str(&self.what)?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "; {}", self.remedy) }
    }
}

impl Error for SnapshotError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
