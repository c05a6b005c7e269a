//! The error of reading a snapshot.

use alloc::string::String;
use core::{error::Error, fmt};

use crate::{hash::HasherId, storage::OutOfMemory};

/// Bytes could not be read as a filter: they are not a snapshot, they are corrupt, or this build cannot read them.
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
    cause: Option<Cause>,
}

/// The error behind an error. Not boxed: a box is an allocation, which might fail, too.
#[derive(Debug)]
enum Cause {
    OutOfMemory(OutOfMemory),
    #[cfg(feature = "std")]
    Io(std::io::Error),
}

/// The kind of a [`SnapshotError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SnapshotErrorKind {
    /// The bytes do not begin with the magic number of a snapshot.
    Magic,
    /// The snapshot has a format version that this release cannot read.
    Version,
    /// A snapshot of another type of filter: of one that grows, or of one of fixed size.
    OtherType,
    /// The input ends before the snapshot does.
    Length,
    /// Other bytes follow the snapshot.
    TrailingBytes,
    /// The header does not match its checksum.
    HeaderChecksum,
    /// A field of the header is out of range.
    Parameter,
    /// The filter was built with a hasher other than the one given.
    Hasher,
    /// The table does not match its checksum.
    BodyChecksum,
    /// A packed bucket has an invalid codeword or unsorted fingerprints, or a bit behind the last bucket is set.
    Table,
    /// The number of items in the table is not the one in the header.
    Count,
    /// The list of a growing filter's shards is not one that such a filter has.
    Shards,
    /// A part of a growing filter, whose other lanes are in other parts.
    Part,
    /// A file of Go's library whose table that library itself corrupts: some of its slots share bits.
    Aliasing,
    /// A valid file of Go's library, but with a fingerprint length or bucket size that this library does not support.
    Unsupported,
    /// The memory for the table could not be allocated; [`source`](Error::source) has the number of bytes.
    OutOfMemory,
    /// The reader or the operating system failed; [`source`](Error::source) is its error.
    Io,
}

impl SnapshotErrorKind {
    /// The default remedy for this kind.
    fn remedy(self) -> &'static str {
        match self {
            Self::Magic => "give the bytes of a snapshot, all of them",
            Self::Version => "read it with a release that knows this version",
            Self::TrailingBytes => "give exactly one snapshot, or open it with over_prefix or read_from, which leave the rest",
            Self::Part => "join it with the other parts: ElasticPart::join_snapshots",
            Self::Aliasing | Self::Unsupported => "insert the items into a new filter with other parameters",
            Self::OutOfMemory => "read it on a machine with more memory, or query it in place, as a FilterView or ElasticView",
            Self::Io | Self::Hasher | Self::OtherType => "",
            Self::Length
            | Self::HeaderChecksum
            | Self::Parameter
            | Self::BodyChecksum
            | Self::Table
            | Self::Count
            | Self::Shards => "the snapshot is corrupt, use another copy",
        }
    }
}

impl SnapshotError {
    pub(crate) fn new(kind: SnapshotErrorKind, offset: impl Into<u64>, what: String) -> Self {
        Self { kind, offset: offset.into(), what, remedy: kind.remedy(), cause: None }
    }

    /// The error for a hasher other than the one that the filter needs.
    pub(crate) fn hasher(offset: impl Into<u64>, needed: HasherId) -> Self {
        let remedy = needed.remedy_if_missing().unwrap_or(match needed {
            HasherId::XXH3 => "read it with Xxh3, the default, or with AnyHasher::from_id",
            HasherId::METRO_HASH_64 => "read it with go::MetroHash64, or with AnyHasher::from_id",
            HasherId::REDIS_BLOOM => "read it with redisbloom::RedisBloomHash, or with AnyHasher::from_id",
            _ => "give that hasher to from_bytes_with, over_with, read_from_with or load_with",
        });
        let what = text!("the filter was built with {needed}, which is not the hasher asked for");
        Self { remedy, ..Self::new(SnapshotErrorKind::Hasher, offset, what) }
    }

    /// The error for a reader or operating system that failed.
    #[cfg(feature = "std")]
    pub(crate) fn io(offset: u64, what: String, source: std::io::Error) -> Self {
        Self { cause: Some(Cause::Io(source)), ..Self::new(SnapshotErrorKind::Io, offset, what) }
    }

    /// The same, with the path if it was the system that failed.
    #[cfg(feature = "std")]
    pub(crate) fn in_file(self, path: &std::path::Path) -> Self {
        if self.kind == SnapshotErrorKind::Io { Self { what: text!("{}: {}", path.display(), self.what), ..self } } else { self }
    }

    /// The same, with another remedy.
    pub(crate) fn with_remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }

    /// The kind of error.
    #[must_use]
    pub fn kind(&self) -> SnapshotErrorKind {
        self.kind
    }

    /// The offset of the error in bytes, from the start of the snapshot.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl From<OutOfMemory> for SnapshotError {
    fn from(error: OutOfMemory) -> Self {
        let what = text!("cannot allocate the table of {} bytes", error.bytes());
        let kind = SnapshotErrorKind::OutOfMemory;
        Self { cause: Some(Cause::OutOfMemory(error)), ..Self::new(kind, super::format::HEADER_BYTES as u64, what) }
    }
}

/// Has the kind of the reader's error if the reader failed, [`OutOfMemory`](std::io::ErrorKind::OutOfMemory) if an allocation
/// failed, and [`InvalidData`](std::io::ErrorKind::InvalidData) if the bytes are wrong. Where memory cannot be allocated, the
/// kind is all that it has.
#[cfg(feature = "std")]
impl From<SnapshotError> for std::io::Error {
    fn from(error: SnapshotError) -> Self {
        use std::io::ErrorKind;
        let kind = match &error.cause {
            Some(Cause::OutOfMemory(_)) => return ErrorKind::OutOfMemory.into(),
            Some(Cause::Io(source)) => source.kind(),
            None if error.kind == SnapshotErrorKind::Io => ErrorKind::Other,
            None => ErrorKind::InvalidData,
        };
        crate::text::boxed_io_error(kind, error)
    }
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A file that cannot be opened has no offset.
        if self.kind != SnapshotErrorKind::Io {
            write!(f, "at byte {}: ", self.offset)?;
        }
        f.write_str(if self.what.is_empty() { "there was no memory to say what is wrong" } else { &self.what })?;
        if self.remedy.is_empty() { Ok(()) } else { write!(f, "; {}", self.remedy) }
    }
}

impl Error for SnapshotError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self.cause.as_ref()? {
            Cause::OutOfMemory(error) => Some(error),
            #[cfg(feature = "std")]
            Cause::Io(error) => Some(error),
        }
    }
}
