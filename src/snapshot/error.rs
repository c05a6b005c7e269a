//! The errors of reading and of saving snapshots.

use core::{error::Error, fmt};
#[cfg(feature = "std")]
use std::{
    boxed::Box,
    io,
    path::{Path, PathBuf},
};

#[cfg(feature = "std")]
use crate::storage::reserved;
use crate::{
    bits::wide,
    hash::HasherId,
    message::{Text, text},
    params::ParamError,
    storage::OutOfMemory,
};

/// The error of reading bytes as a filter: they are not a snapshot, they are corrupt, or this build cannot read them.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, SnapshotErrorKind};
/// let error = CuckooFilter::from_bytes(b"not a filter").unwrap_err();
/// assert_eq!(error.kind(), SnapshotErrorKind::Magic);
/// assert_eq!(error.offset(), 0);
/// ```
pub struct SnapshotError(Repr);

#[cfg(not(smallest))]
type Repr = Fields;
/// Returning a pointer takes less code than returning all fields. An error then takes 64 bytes of memory.
#[cfg(smallest)]
type Repr = alloc::boxed::Box<Fields>;

struct Fields {
    kind: SnapshotErrorKind,
    offset: u64,
    cause: Cause,
    /// The remedy, if it is not that of the kind.
    remedy: Option<Text>,
    /// The path of the file. It is in an array because a boxed array can be made from a vector, whose allocation may fail.
    #[cfg(feature = "std")]
    path: Option<Box<[PathBuf; 1]>>,
}

/// The cause of an error. Creating it needs no memory. Only the path of a file does, so an error lacks it when memory is short.
enum Cause {
    /// A message whose gaps, `{}`, are filled with these numbers in order. It has at most three gaps.
    Message(Text, [u64; 3]),
    /// A part of the snapshot does not match its checksum.
    Altered {
        part: Text,
        stored: u64,
        computed: u64,
    },
    /// The parameters are not those of any fixed filter.
    Params(ParamError),
    /// The filter needs this hasher, which was not given.
    Hasher(HasherId),
    OutOfMemory(OutOfMemory),
    /// The operating system or a reader failed.
    #[cfg(feature = "std")]
    Io {
        message: &'static str,
        error: io::Error,
    },
    /// A file cannot be saved. The reason is a part of the message.
    #[cfg(feature = "std")]
    NotSaved {
        message: &'static str,
        error: io::Error,
    },
}

/// The kind of a [`SnapshotError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SnapshotErrorKind {
    /// The bytes do not begin with the magic number of a snapshot.
    Magic,
    /// The snapshot has a format version that this release cannot read; [`SnapshotError::is_too_old`] tells on which side.
    Version,
    /// The snapshot has the other type of filter: growing instead of fixed, or fixed instead of growing.
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
    /// A table, a list or the trailer does not match its checksum.
    BodyChecksum,
    /// A packed bucket has an invalid codeword or unsorted fingerprints, a fingerprint of a shard is invalid, or a bit that must be
    /// 0 is set. Or a shard of a growing filter is a list, and that is invalid.
    Table,
    /// The number of items in a table or a list is not the stated one.
    Count,
    /// The list of items with extra copies is invalid.
    Copies,
    /// The list of a growing filter's shards is invalid.
    Shards,
    /// A file of Go's library whose table that library itself corrupts: some of its slots share bits.
    Aliasing,
    /// A valid file of Go's library, but with a fingerprint length or bucket size that this library does not support.
    Unsupported,
    /// Memory for the filter could not be allocated; [`source`](Error::source) has the number of bytes.
    OutOfMemory,
    /// The operating system failed: the message names the reason, and `SnapshotError::io_kind` returns its kind. Or a reader
    /// failed: its own error is the [`source`](Error::source).
    Io,
}

impl SnapshotErrorKind {
    /// Returns the default remedy for this kind.
    fn remedy(self) -> &'static str {
        match self {
            Self::Magic => "give a whole snapshot, as koel writes it",
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
            | Self::Copies
            | Self::Shards => "the snapshot is corrupt, use another copy",
        }
    }
}

impl SnapshotError {
    /// Creates the error with a message, each of whose gaps, `{}`, is filled with one of the numbers.
    pub(crate) fn new<const N: usize>(
        kind: SnapshotErrorKind,
        offset: impl Into<u64>,
        message: impl Into<Text>,
        numbers: [u64; N],
    ) -> Self {
        // Not by `copy_from_slice`: the code of an error is small only if that is inlined, which depends on its other callers.
        let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
        let (offset, message, numbers) = (offset.into(), message.into(), [number(0), number(1), number(2)]);
        if cfg!(smallest) {
            return Self::by_call(kind, offset, message, numbers[0], numbers[1], numbers[2]);
        }
        Self::from_cause(kind, offset, Cause::Message(message, numbers))
    }

    #[cold]
    #[inline(never)]
    fn by_call(kind: SnapshotErrorKind, offset: u64, message: Text, first: u64, second: u64, third: u64) -> Self {
        Self::from_cause(kind, offset, Cause::Message(message, [first, second, third]))
    }

    #[cfg_attr(not(smallest), allow(clippy::useless_conversion, reason = "or the fields are boxed"))]
    fn from_cause(kind: SnapshotErrorKind, offset: u64, cause: Cause) -> Self {
        let fields = Fields {
            kind,
            offset,
            cause,
            remedy: None,
            #[cfg(feature = "std")]
            path: None,
        };
        Self(fields.into())
    }

    /// Creates the error for a part of the snapshot that does not match its checksum.
    pub(crate) fn altered(kind: SnapshotErrorKind, offset: u64, part: Text, stored: u64, computed: u64) -> Self {
        Self::from_cause(kind, offset, Cause::Altered { part, stored, computed })
    }

    /// Creates the error for parameters that no filter has. The offsets are those of the fingerprint length, the bucket size and
    /// the number of buckets.
    pub(crate) fn params(kind: SnapshotErrorKind, offsets: [usize; 3], error: ParamError) -> Self {
        let [fingerprint_bits_at, bucket_size_at, buckets_at] = offsets;
        let at = match error {
            ParamError::FingerprintBits { .. } => fingerprint_bits_at,
            ParamError::BucketSize { .. } => bucket_size_at,
            _ => buckets_at,
        };
        Self::from_cause(kind, wide(at), Cause::Params(error))
    }

    /// Creates the error for a hasher other than the one that the filter needs.
    pub(crate) fn unknown_hasher(offset: u64, needed: HasherId) -> Self {
        Self::from_cause(SnapshotErrorKind::Hasher, offset, Cause::Hasher(needed))
    }

    /// Creates the error for a reader or operating system that failed. A gap in the message is for the offset.
    #[cfg(feature = "std")]
    pub(crate) fn io(offset: u64, message: &'static str, error: io::Error) -> Self {
        Self::from_cause(SnapshotErrorKind::Io, offset, Cause::Io { message, error })
    }

    /// Returns the error with the path of the file that was read, with which its message then begins. The methods that take a path
    /// do this, and programs that map a file should. Without memory for the path, returns the error as it is.
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    #[must_use]
    pub fn in_file(mut self, file: &Path) -> Self {
        let boxed = || {
            let mut paths = reserved(1).ok()?;
            paths.push(try_join(Path::new(""), file).ok()?);
            paths.try_into().ok()
        };
        self.0.path = boxed().or(self.0.path);
        self
    }

    /// Returns the error with another remedy at the end of its message, for programs whose users do not call this library.
    ///
    /// # Example
    /// ```
    /// let error = koel::CuckooFilter::from_bytes(b"PK").map_err(|error| error.with_remedy("choose a .koel file")).unwrap_err();
    /// assert!(error.to_string().ends_with("; choose a .koel file"), "{error}");
    /// ```
    #[must_use]
    pub fn with_remedy(self, remedy: &'static str) -> Self {
        self.with_remedy_text(Text::new(remedy))
    }

    pub(crate) fn with_remedy_text(mut self, remedy: Text) -> Self {
        self.0.remedy = Some(remedy);
        self
    }

    /// Returns the number of the message's text, and its numbers, for a program that has the texts (`message.rs`). With a wrong
    /// checksum, the text is the altered part, and the numbers are the stored and the computed checksum. If a hasher or memory is
    /// lacking, the text is empty, and the numbers are the hasher's id, or the bytes.
    #[doc(hidden)]
    #[must_use]
    pub fn parts(&self) -> (u32, [u64; 3]) {
        let (text, numbers) = match &self.0.cause {
            Cause::Message(message, numbers) => (*message, *numbers),
            Cause::Altered { part, stored, computed } => (*part, [*stored, *computed, 0]),
            Cause::Params(error) => error.table_limits(),
            Cause::Hasher(needed) => (text!(""), [needed.number().into(), 0, 0]),
            Cause::OutOfMemory(error) => (text!(""), [wide(error.bytes()), 0, 0]),
            #[cfg(feature = "std")]
            Cause::Io { message, .. } | Cause::NotSaved { message, .. } => (Text::new(message), [self.0.offset, 0, 0]),
        };
        (text.number(), numbers)
    }

    /// Returns the kind of error.
    #[must_use]
    pub fn kind(&self) -> SnapshotErrorKind {
        self.0.kind
    }

    /// Returns the offset of the error in bytes, from the start of the snapshot. With [`SnapshotErrorKind::OutOfMemory`], it has no
    /// meaning.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.0.offset
    }

    /// Returns true if the snapshot's format version is older than those that this release reads, and false if it is newer: with
    /// [`SnapshotErrorKind::Version`] only. Later releases do not read older versions, either.
    #[must_use]
    pub fn is_too_old(&self) -> bool {
        // The message names the snapshot's version first.
        matches!(self.0.cause, Cause::Message(_, [given, read, _]) if self.0.kind == SnapshotErrorKind::Version && given < read)
    }

    /// Returns the hasher that the filter was built with, if it is not the given one: with [`SnapshotErrorKind::Hasher`] only.
    #[must_use]
    pub fn hasher(&self) -> Option<HasherId> {
        match self.0.cause {
            Cause::Hasher(needed) => Some(needed),
            _ => None,
        }
    }
}

#[cfg(feature = "std")]
#[cfg_attr(docsrs, doc(cfg(feature = "std")))]
impl SnapshotError {
    /// Returns why the operating system or the reader failed: with [`SnapshotErrorKind::Io`] only.
    ///
    /// # Example
    /// ```
    /// use koel::CuckooFilter;
    /// use std::io::ErrorKind;
    ///
    /// let filter = match CuckooFilter::load("no such folder/seen.koel") {
    ///     Err(error) if error.io_kind() == Some(ErrorKind::NotFound) => {
    ///         CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?
    ///     }
    ///     loaded => loaded?,
    /// };
    /// assert!(filter.is_empty());
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    #[must_use]
    pub fn io_kind(&self) -> Option<io::ErrorKind> {
        match &self.0.cause {
            Cause::Io { error, .. } => Some(error.kind()),
            _ => None,
        }
    }
}

impl From<OutOfMemory> for SnapshotError {
    fn from(error: OutOfMemory) -> Self {
        Self::from_cause(SnapshotErrorKind::OutOfMemory, 0, Cause::OutOfMemory(error))
    }
}

/// Converts to an error with the kind of the reader's error if the reader failed, [`OutOfMemory`](std::io::ErrorKind::OutOfMemory)
/// if an allocation failed, and [`InvalidData`](std::io::ErrorKind::InvalidData) if the bytes are invalid. Without memory for the
/// message, the result is the reader's error, or a kind alone.
#[cfg(feature = "std")]
impl From<SnapshotError> for io::Error {
    fn from(error: SnapshotError) -> Self {
        let kind = match error.0.kind {
            SnapshotErrorKind::OutOfMemory => return io::ErrorKind::OutOfMemory.into(),
            SnapshotErrorKind::Io => error.io_kind().unwrap_or(io::ErrorKind::Other),
            _ => io::ErrorKind::InvalidData,
        };
        into_io(kind, error)
    }
}

/// Wraps an error. Without memory, returns its reason or its kind alone.
#[cfg(feature = "std")]
fn into_io(kind: io::ErrorKind, error: SnapshotError) -> io::Error {
    boxed(kind, error).unwrap_or_else(|error| match error.0.cause {
        Cause::Io { error, .. } | Cause::NotSaved { error, .. } => error,
        _ => kind.into(),
    })
}

/// Returns the error for an input that ends too early.
pub(crate) fn too_short(given: u64, expected: u64) -> SnapshotError {
    let message = text!("the bytes end too early: there are {}, and there should be at least {}");
    SnapshotError::new(SnapshotErrorKind::Length, given, message, [given, expected])
}

/// Returns the error for a snapshot that other bytes follow.
pub(super) fn too_long(given: u64, expected: u64) -> SnapshotError {
    let message = text!("the snapshot ends here, and {} more bytes follow it");
    SnapshotError::new(SnapshotErrorKind::TrailingBytes, expected, message, [given - expected])
}

/// Wraps an error in an I/O error, or returns it unchanged if there is no memory. `std` boxes the error and aborts the program if
/// it cannot, so this checks for memory first.
#[cfg(feature = "std")]
pub(crate) fn boxed<E: Error + Send + Sync + 'static>(kind: io::ErrorKind, error: E) -> Result<io::Error, E> {
    // A box of the error, a box of the pair of its kind and that box, and the allocator's overhead.
    let boxes = size_of::<(E, [usize; 8])>();
    if reserved::<u8>(boxes).is_ok() { Ok(io::Error::new(kind, error)) } else { Err(error) }
}

/// Joins two paths. Fails if the result cannot be allocated, where `Path::join` would abort the program.
#[cfg(feature = "std")]
pub(super) fn try_join(folder: &Path, path: &Path) -> io::Result<PathBuf> {
    let mut joined = PathBuf::new();
    let separator = 1;
    let len = folder.as_os_str().len() + separator + path.as_os_str().len();
    joined.try_reserve_exact(len).map_err(|_| io::ErrorKind::OutOfMemory)?;
    joined.push(folder);
    joined.push(path);
    Ok(joined)
}

/// The system's reason for an error. `std` allocates to display it, so this displays only its kind if there is no memory.
#[cfg(feature = "std")]
pub(super) struct Reason<'a>(pub &'a io::Error);

#[cfg(feature = "std")]
impl fmt::Display for Reason<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // No system has longer messages.
        const MAX_BYTES: usize = 256;
        let is_os = self.0.raw_os_error().is_some();
        if is_os && reserved::<u8>(MAX_BYTES).is_err() { self.0.kind().fmt(f) } else { self.0.fmt(f) }
    }
}

/// Returns the error for a file that cannot be saved, or only its reason if there is no memory for more.
#[cfg(feature = "std")]
pub(super) fn save_error(kind: io::ErrorKind, path: &Path, message: &'static str, reason: Option<io::Error>) -> io::Error {
    let error = match reason {
        Some(error) => SnapshotError::from_cause(SnapshotErrorKind::Io, 0, Cause::NotSaved { message, error }),
        None => SnapshotError::new(SnapshotErrorKind::Io, 0_u32, message, []),
    };
    into_io(kind, if path.as_os_str().is_empty() { error } else { error.in_file(path) })
}

impl fmt::Display for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[cfg(feature = "std")]
        if let Some([path]) = self.0.path.as_deref() {
            write!(f, "{}: ", path.display())?;
        }
        // No byte is at fault if memory cannot be allocated. The message of an I/O error names the offset if there is one.
        if !matches!(self.0.kind, SnapshotErrorKind::OutOfMemory | SnapshotErrorKind::Io) {
            write!(f, "at byte {}: ", self.0.offset)?;
        }
        match &self.0.cause {
            Cause::Message(message, numbers) => message.write(numbers, f)?,
            Cause::Altered { part, stored, computed } => {
                f.write_str("the ")?;
                part.write(&[], f)?;
                write!(f, " was altered: the checksum stored is {stored:#018x}, the one computed {computed:#018x}")?;
            }
            Cause::Params(error) => {
                let (message, numbers) = error.table_limits();
                message.write(&numbers, f)?;
            }
            Cause::Hasher(needed) => write!(f, "the filter was built with {needed}, which is not the given hasher")?,
            Cause::OutOfMemory(error) => write!(f, "cannot allocate {} bytes", error.bytes())?,
            #[cfg(feature = "std")]
            Cause::Io { message, error } => {
                Text::new(message).write(&[self.0.offset], f)?;
                // A reader's own error is the source.
                if error.get_ref().is_none() {
                    write!(f, ": {}", Reason(error))?;
                }
            }
            #[cfg(feature = "std")]
            Cause::NotSaved { message, error } => write!(f, "{message}: {}", Reason(error))?,
        }
        if let Some(remedy) = self.0.remedy {
            return if remedy.is_empty() { Ok(()) } else { f.write_str("; ").and_then(|()| remedy.write_all(f)) };
        }
        let remedy = match self.0.cause {
            Cause::Hasher(needed) => needed.remedy(),
            _ => self.0.kind.remedy(),
        };
        if remedy.is_empty() { Ok(()) } else { write!(f, "; {remedy}") }
    }
}

/// Shows the message. Each `Box<dyn Error>` brings this code into the program even if nothing calls it, and the code for the fields
/// would be kilobytes.
impl fmt::Debug for SnapshotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SnapshotError({self})")
    }
}

impl Error for SnapshotError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.0.cause {
            Cause::OutOfMemory(error) => Some(error),
            #[cfg(feature = "std")]
            Cause::Io { error, .. } => error.get_ref().map(|error| error as &(dyn Error + 'static)),
            #[cfg(feature = "std")]
            Cause::NotSaved { error, .. } => error.source(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::TableKind;
    use SnapshotErrorKind as Kind;
    use alloc::{format, string::ToString};

    /// Each message has the offset, if there is one, the numbers and one remedy.
    #[test]
    fn errors_are_displayed() {
        let invalid_bits = ParamError::FingerprintBits { given: 3, table: TableKind::Packed };
        for (error, message) in [
            (
                SnapshotError::new(Kind::Magic, 0_u32, "these bytes do not begin as a koel snapshot does", []),
                "at byte 0: these bytes do not begin as a koel snapshot does; give a whole snapshot, as koel writes it",
            ),
            (
                SnapshotError::new(Kind::TrailingBytes, 80_u32, "{} more bytes follow", [9]),
                "at byte 80: 9 more bytes follow; give exactly one snapshot, or open it with over_prefix or read_from, which leave \
                 the rest",
            ),
            (
                SnapshotError::new(Kind::Version, 8_u32, "a snapshot of version {}, but this release reads version {}", [2, 1]),
                "at byte 8: a snapshot of version 2, but this release reads version 1; read it with a release that knows this \
                 version",
            ),
            (
                SnapshotError::altered(Kind::HeaderChecksum, 56, text!("header"), 1, 0xabc),
                "at byte 56: the header was altered: the checksum stored is 0x0000000000000001, the one computed \
                 0x0000000000000abc; the snapshot is corrupt, use another copy",
            ),
            (
                SnapshotError::params(Kind::Parameter, [11, 12, 24], invalid_bits),
                "at byte 11: fingerprint bits: 3 given, but the packed table takes 4 to 32; the snapshot is \
                 corrupt, use another copy",
            ),
            (
                SnapshotError::unknown_hasher(14, HasherId::custom(0x8abc)),
                "at byte 14: the filter was built with 0x8abc, which is not the given hasher; give that hasher to \
                 from_bytes_with, over_with, read_from_with or load_with",
            ),
            (
                SnapshotError::from(OutOfMemory::of(1000)),
                "cannot allocate 1000 bytes; read it on a machine with more memory, or query it in place, as a FilterView or \
                 ElasticView",
            ),
            (
                SnapshotError::new(Kind::OtherType, 10_u32, "this is a filter that grows", []).with_remedy("read it as one"),
                "at byte 10: this is a filter that grows; read it as one",
            ),
        ] {
            assert_eq!(error.to_string(), message);
            assert_eq!(format!("{error:?}"), format!("SnapshotError({message})"));
            assert_eq!(error.source().is_some(), error.kind() == Kind::OutOfMemory);
        }
        assert!(size_of::<SnapshotError>() <= 88, "{}", size_of::<SnapshotError>());
    }

    /// The message has the system's reason; a reader's own error is the source.
    #[test]
    #[cfg(feature = "std")]
    fn io_errors_have_a_reason_or_a_source() {
        let eof = io::Error::from(io::ErrorKind::UnexpectedEof);
        let error = SnapshotError::io(0, "cannot be opened", eof).in_file(Path::new("folder/f.koel"));
        assert_eq!(error.to_string(), "folder/f.koel: cannot be opened: unexpected end of file");
        assert_eq!((error.io_kind(), error.source().is_none()), (Some(io::ErrorKind::UnexpectedEof), true));
        let error = SnapshotError::io(80, "reading failed at byte {}", io::Error::other("the line is dead"));
        assert_eq!(error.to_string(), "reading failed at byte 80");
        assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("the line is dead"));
        assert_eq!((error.io_kind(), io::Error::from(error).kind()), (Some(io::ErrorKind::Other), io::ErrorKind::Other));
        let error = SnapshotError::from(OutOfMemory::of(1));
        assert_eq!((error.io_kind(), io::Error::from(error).kind()), (None, io::ErrorKind::OutOfMemory));
        let corrupt =
            SnapshotError::altered(SnapshotErrorKind::BodyChecksum, 80, text!("table"), 1, 2).in_file(Path::new("f.koel"));
        assert!(corrupt.to_string().starts_with("f.koel: at byte 80: the table was altered: "), "{corrupt}");
    }
}
