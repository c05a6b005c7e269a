//! The exceptions, with the library's messages.

use std::{io, path::Path};

use koel::{BuildError, InsertError, InsertErrorKind, MergeError, OutOfMemory, ParamError, SnapshotError, SnapshotErrorKind};
use pyo3::{
    create_exception,
    exceptions::{PyException, PyMemoryError, PyOSError, PyTypeError, PyValueError},
    prelude::*,
    types::PyList,
};

/// The classes of the exceptions.
pub mod classes {
    use super::{PyException, PyValueError, create_exception};

    create_exception!(
        koel,
        FullError,
        PyException,
        "An item was refused: the filter is full, or has reached a limit.\n\n`position` is the index of the first refused item among \
         the items of the call. The items before it are in the filter; a `SharedFilter` may also have some of those after it."
    );
    create_exception!(
        koel,
        SnapshotError,
        PyValueError,
        "The bytes are not a snapshot, are corrupt, or have a filter that this class cannot read.\n\n`kind` is the name of the \
         reason, such as 'BodyChecksum', and `offset` the place in bytes."
    );
}

/// Converts an error of the library to an exception.
pub trait IntoPyErr {
    /// Returns the exception with the message of this error.
    fn into_py_err(self) -> PyErr;
}

impl IntoPyErr for ParamError {
    fn into_py_err(self) -> PyErr {
        PyValueError::new_err(message(&self))
    }
}

impl IntoPyErr for OutOfMemory {
    fn into_py_err(self) -> PyErr {
        PyMemoryError::new_err(self.to_string())
    }
}

impl IntoPyErr for BuildError {
    fn into_py_err(self) -> PyErr {
        match self {
            Self::Param(error) => error.into_py_err(),
            Self::OutOfMemory(error) => error.into_py_err(),
            Self::Insert(error) => error.into_py_err(),
            error => PyValueError::new_err(error.to_string()),
        }
    }
}

impl IntoPyErr for InsertError {
    fn into_py_err(self) -> PyErr {
        // The library's remedies name its builder and its hashers.
        let message = match self.kind() {
            InsertErrorKind::OutOfMemory { .. } => return PyMemoryError::new_err(self.to_string()),
            InsertErrorKind::Limit { needed, max_bytes } => format!(
                "the filter would take {needed} bytes, and the limit is {max_bytes}; remove items, or raise the limit with \
                 set_max_bytes"
            ),
            InsertErrorKind::Crowded => {
                "no room for the item: too many items have hashes that begin with the same bits; build the \
                                         filter with another seed, one that nobody else knows"
                    .to_owned()
            }
            _ => String::new(),
        };
        let message = match self.position() {
            _ if message.is_empty() => self.to_string(),
            0 => message,
            position => format!("item {position}, counted from 0, was refused: {message}"),
        };
        let exception = classes::FullError::new_err(message);
        with_attribute(exception, |error| error.setattr("position", self.position()))
    }
}

impl IntoPyErr for MergeError {
    fn into_py_err(self) -> PyErr {
        match self {
            Self::OutOfMemory(error) => error.into_py_err(),
            Self::Insert(error) if error.kind() != InsertErrorKind::TooManyCopies => error.into_py_err(),
            Self::Insert(_) | Self::Full { .. } | Self::MaxCapacity { .. } => {
                with_attribute(classes::FullError::new_err(self.to_string()), |error| error.setattr("position", 0))
            }
            error => PyValueError::new_err(error.to_string()),
        }
    }
}

impl IntoPyErr for SnapshotError {
    fn into_py_err(self) -> PyErr {
        let (kind, offset) = (self.kind(), self.offset());
        // The library's remedies name functions of Rust.
        let error = match kind {
            SnapshotErrorKind::OutOfMemory => {
                let error = self.with_remedy("read it on a machine with more memory, or query it as a FilterView");
                return PyMemoryError::new_err(error.to_string());
            }
            SnapshotErrorKind::TrailingBytes => self.with_remedy("give exactly one snapshot"),
            SnapshotErrorKind::Hasher => self.with_remedy("only filters with xxh3 can be read; build one from its items"),
            SnapshotErrorKind::OtherType => self.with_remedy("open it as a FilterView; its to_filter() returns the right class"),
            _ => self,
        };
        snapshot_error(error.to_string(), kind, offset)
    }
}

fn snapshot_error(message: String, kind: SnapshotErrorKind, offset: u64) -> PyErr {
    with_attribute(classes::SnapshotError::new_err(message), |error| {
        error.setattr("kind", format!("{kind:?}"))?;
        error.setattr("offset", offset)
    })
}

/// Returns the exception for a file that cannot be read as a filter.
pub fn not_read(error: SnapshotError, path: &Path) -> PyErr {
    match error.kind() {
        SnapshotErrorKind::Io => os_error(&error.into(), path),
        _ => error.into_py_err(),
    }
}

/// Returns the exception for a file that goes on after a snapshot, with the library's message.
pub fn trailing_bytes(path: &Path, offset: u64) -> PyErr {
    let message =
        format!("{}: at byte {offset}: the file goes on after the snapshot's end; give exactly one snapshot", path.display());
    snapshot_error(message, SnapshotErrorKind::TrailingBytes, offset)
}

/// Returns the exception for bytes that cannot be read as a filter. They may be a path, to which the remedy refers.
pub fn not_bytes(error: SnapshotError, remedy: &'static str) -> PyErr {
    let error = if error.kind() == SnapshotErrorKind::Magic { error.with_remedy(remedy) } else { error };
    error.into_py_err()
}

/// Returns the exception that Python itself would raise for a file, with the library's message.
pub fn os_error(error: &io::Error, path: &Path) -> PyErr {
    let name = match error.kind() {
        io::ErrorKind::OutOfMemory => return PyMemoryError::new_err(error.to_string()),
        io::ErrorKind::NotFound => "ENOENT",
        io::ErrorKind::PermissionDenied => "EACCES",
        io::ErrorKind::IsADirectory => "EISDIR",
        io::ErrorKind::NotADirectory => "ENOTDIR",
        io::ErrorKind::StorageFull => "ENOSPC",
        io::ErrorKind::QuotaExceeded => "EDQUOT",
        io::ErrorKind::FileTooLarge => "EFBIG",
        io::ErrorKind::ReadOnlyFilesystem => "EROFS",
        io::ErrorKind::InvalidInput => "EINVAL",
        io::ErrorKind::InvalidFilename => "ENAMETOOLONG",
        _ => "EIO",
    };
    let named = || Python::attach(|py| py.import("errno")?.getattr(name)?.extract()).ok();
    let code: Option<i32> = error.raw_os_error().or_else(named);
    let message = error.to_string();
    let reason = message.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&message);
    // The exception shows the number.
    let reason = reason.split(" (os error").next().unwrap_or_default().to_owned();
    PyOSError::new_err((code, reason, path.as_os_str().to_owned()))
}

/// Sets attributes of an exception. If that fails, for lack of memory, that failure is the exception.
fn with_attribute(exception: PyErr, set: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) -> PyErr {
    Python::attach(|py| set(exception.value(py)).err().unwrap_or(exception))
}

/// Returns the exception for bytes or results that do not fit into memory.
#[cold]
pub fn no_memory(what: &str) -> PyErr {
    PyMemoryError::new_err(format!("there is no memory for {what}"))
}

/// Appends a copy of bytes of any length.
pub fn append(copies: &mut Vec<u8>, bytes: &[u8]) -> PyResult<()> {
    copies.try_reserve(bytes.len()).map_err(|_| no_memory(&format!("a copy of {} bytes", bytes.len())))?;
    copies.extend_from_slice(bytes);
    Ok(())
}

/// Returns a `TypeError`.
pub fn type_error(message: String) -> PyErr {
    PyTypeError::new_err(message)
}

/// Adds a note to an exception. Exceptions of any origin have room for notes, which tracebacks show.
pub fn with_note(py: Python<'_>, error: PyErr, note: &str) -> PyErr {
    let exception = error.value(py);
    let add = || match exception.getattr_opt("add_note")? {
        Some(add) => add.call1((note,)).map(drop),
        // As of Python 3.11, `add_note` appends to this list.
        None => match exception.getattr_opt("__notes__")? {
            Some(notes) => notes.call_method1("append", (note,)).map(drop),
            None => exception.setattr("__notes__", PyList::new(py, [note])?),
        },
    };
    // Without memory for the note, the exception itself says more than another one.
    add().unwrap_or_default();
    error
}

/// Returns the library's message with the keywords of Python.
pub fn message(error: &ParamError) -> String {
    let keyword = match error {
        ParamError::NoSize => return "neither capacity nor buckets given; give one of them".to_owned(),
        ParamError::TwoSizes => return "both capacity and buckets given; leave one of them out".to_owned(),
        ParamError::NoPrecision => return "neither false_positive_rate nor fingerprint_bits given; give one of them".to_owned(),
        ParamError::TwoPrecisions => {
            return "both false_positive_rate and fingerprint_bits given; leave one of them out".to_owned();
        }
        ParamError::NoRate | ParamError::FalsePositiveRate { .. } => "false_positive_rate",
        ParamError::MaxCapacity { .. } => "max_capacity",
        ParamError::FingerprintBits { .. } => "fingerprint_bits",
        ParamError::BucketSize { .. } => "bucket_size",
        ParamError::MaxBytes { .. } => "max_bytes",
        // The library has the same name.
        _ => return error.to_string(),
    };
    format!("{keyword}: {}", error.reason())
}
