//! The error of reading a snapshot.

#[cfg(any(feature = "std", feature = "serde"))]
use alloc::string::String;
use core::{error::Error, fmt};

use crate::{
    bits::wide,
    hash::HasherId,
    params::{Addressing, Params, TableKind},
    storage::OutOfMemory,
};

/// Bytes could not be read as a filter: they are not a snapshot, they are corrupt, or this build cannot read them.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, SnapshotErrorKind};
/// let error = CuckooFilter::from_bytes(b"not a filter").unwrap_err();
/// assert_eq!(error.kind(), SnapshotErrorKind::Magic);
/// assert_eq!(error.offset(), 0);
/// ```
pub struct SnapshotError {
    kind: SnapshotErrorKind,
    offset: u64,
    what: What,
    /// Other than that of the kind.
    remedy: Option<&'static str>,
}

/// What is wrong. It becomes words when they are asked for: a program that never does has no code for them, and most errors need no
/// memory.
enum What {
    /// Words with gaps, `{}`, for these numbers.
    Words(&'static str, [u64; 3]),
    /// A part of the snapshot does not match its checksum.
    Altered {
        part: &'static str,
        stored: u64,
        computed: u64,
    },
    /// No filter of fixed size has these parameters.
    Params(TableKind, u32, u32, Addressing, u64),
    /// The filter needs another hasher, this one.
    Hasher(HasherId),
    OutOfMemory(OutOfMemory),
    /// The operating system or a reader failed; of a file, with its path.
    #[cfg(feature = "std")]
    Io {
        path: String,
        words: &'static str,
        error: std::io::Error,
    },
    #[cfg(feature = "serde")]
    Text(String),
}

/// The kind of a [`SnapshotError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SnapshotErrorKind {
    /// The bytes do not begin with the magic number of a snapshot.
    Magic,
    /// The snapshot has a format version that this release cannot read.
    Version,
    /// A snapshot of the other type of filter, growing or of fixed size.
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
    /// The list of a growing filter's shards is invalid.
    Shards,
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
    /// The error with these words, of which each gap, `{}`, is filled with one of the numbers.
    pub(crate) fn new<const N: usize>(
        kind: SnapshotErrorKind,
        offset: impl Into<u64>,
        words: &'static str,
        numbers: [u64; N],
    ) -> Self {
        let mut all = [0; 3];
        all[..N].copy_from_slice(&numbers);
        Self::of(kind, offset.into(), What::Words(words, all))
    }

    fn of(kind: SnapshotErrorKind, offset: u64, what: What) -> Self {
        Self { kind, offset, what, remedy: None }
    }

    /// The error for a part of the snapshot that does not match its checksum.
    pub(crate) fn altered(kind: SnapshotErrorKind, offset: u64, part: &'static str, stored: u64, computed: u64) -> Self {
        Self::of(kind, offset, What::Altered { part, stored, computed })
    }

    /// The error for parameters that [`Params::new`] refuses.
    pub(crate) fn params(
        kind: SnapshotErrorKind,
        at: usize,
        table: TableKind,
        [fingerprint_bits, bucket_size]: [u32; 2],
        addressing: Addressing,
        buckets: u64,
    ) -> Self {
        Self::of(kind, wide(at), What::Params(table, fingerprint_bits, bucket_size, addressing, buckets))
    }

    /// The error for a hasher other than the one that the filter needs.
    pub(crate) fn unknown_hasher(offset: u64, needed: HasherId) -> Self {
        Self::of(SnapshotErrorKind::Hasher, offset, What::Hasher(needed))
    }

    /// The error for a reader or operating system that failed. A gap in the words is for the offset.
    #[cfg(feature = "std")]
    pub(crate) fn io(offset: u64, words: &'static str, error: std::io::Error) -> Self {
        Self::of(SnapshotErrorKind::Io, offset, What::Io { path: String::new(), words, error })
    }

    /// The error of serde's format that failed.
    #[cfg(feature = "serde")]
    pub(super) fn text(text: String) -> Self {
        Self::of(SnapshotErrorKind::Io, 0, What::Text(text))
    }

    /// The same, with the path if it was the system that failed.
    #[cfg(feature = "std")]
    pub(crate) fn in_file(mut self, file: &std::path::Path) -> Self {
        if let What::Io { path, .. } = &mut self.what {
            *path = text!("{}: ", file.display());
        }
        self
    }

    /// The same, with another remedy.
    pub(crate) fn with_remedy(self, remedy: &'static str) -> Self {
        Self { remedy: Some(remedy), ..self }
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

    /// The hasher that the filter was built with, if it is not the given one: with [`SnapshotErrorKind::Hasher`], and only then.
    #[must_use]
    pub fn hasher(&self) -> Option<HasherId> {
        match self.what {
            What::Hasher(needed) => Some(needed),
            _ => None,
        }
    }
}

impl From<OutOfMemory> for SnapshotError {
    fn from(error: OutOfMemory) -> Self {
        Self::of(SnapshotErrorKind::OutOfMemory, super::format::HEADER_BYTES as u64, What::OutOfMemory(error))
    }
}

/// Has the kind of the reader's error if the reader failed, [`OutOfMemory`](std::io::ErrorKind::OutOfMemory) if an allocation
/// failed, and [`InvalidData`](std::io::ErrorKind::InvalidData) if the bytes are wrong. Where memory cannot be allocated, the
/// kind is all that it has.
#[cfg(feature = "std")]
impl From<SnapshotError> for std::io::Error {
    fn from(error: SnapshotError) -> Self {
        use std::io::ErrorKind;
        let kind = match &error.what {
            What::OutOfMemory(_) => return ErrorKind::OutOfMemory.into(),
            What::Io { error, .. } => error.kind(),
            _ if error.kind == SnapshotErrorKind::Io => ErrorKind::Other,
            _ => ErrorKind::InvalidData,
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
        match &self.what {
            What::Words(words, numbers) => filled(words, numbers, f)?,
            What::Altered { part, stored, computed } => {
                write!(f, "the {part} was altered: the checksum stored is {stored:#018x}, the one computed {computed:#018x}")?;
            }
            &What::Params(table, fingerprint_bits, bucket_size, addressing, buckets) => {
                if let Err(error) = Params::new(table, fingerprint_bits, bucket_size, buckets, addressing, 0) {
                    error.fmt(f)?;
                }
            }
            What::Hasher(needed) => {
                write!(f, "the filter was built with {needed}, which is not the given hasher; ")?;
                return f.write_str(needed.remedy_if_missing().unwrap_or(match *needed {
                    HasherId::XXH3 => "read it with Xxh3, the default, or with AnyHasher::from_id",
                    HasherId::METRO_HASH_64 => "read it with go::MetroHash64, or with AnyHasher::from_id",
                    HasherId::REDIS_BLOOM => "read it with redisbloom::RedisBloomHash, or with AnyHasher::from_id",
                    _ => "give that hasher to from_bytes_with, over_with, read_from_with or load_with",
                }));
            }
            What::OutOfMemory(error) => write!(f, "cannot allocate the table of {} bytes", error.bytes())?,
            #[cfg(feature = "std")]
            What::Io { path, words, .. } => {
                f.write_str(path)?;
                filled(words, &[self.offset], f)?;
            }
            #[cfg(feature = "serde")]
            What::Text(text) => f.write_str(if text.is_empty() { "there was no memory to say what is wrong" } else { text })?,
        }
        let remedy = self.remedy.unwrap_or(self.kind.remedy());
        if remedy.is_empty() { Ok(()) } else { write!(f, "; {remedy}") }
    }
}

/// Writes words, with a number in each of their gaps.
fn filled(words: &str, numbers: &[u64], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut pieces = words.split("{}");
    f.write_str(pieces.next().unwrap_or_default())?;
    pieces.zip(numbers).try_for_each(|(piece, number)| write!(f, "{number}{piece}"))
}

/// Its words: a `Box<dyn Error>` has this in it even if nothing calls it, and the fields would be kilobytes of code.
impl fmt::Debug for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SnapshotError({self})")
    }
}

impl Error for SnapshotError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.what {
            What::OutOfMemory(error) => Some(error),
            #[cfg(feature = "std")]
            What::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
