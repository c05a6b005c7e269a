//! The exceptions, with the library's messages.

use std::io;

use koel::{BuildError, InsertError, InsertErrorKind, MergeError, OutOfMemory, ParamError, SnapshotError, SnapshotErrorKind};
use pyo3::{
    create_exception,
    exceptions::{PyException, PyMemoryError, PyTypeError, PyValueError},
    prelude::*,
};

/// The classes of the exceptions.
pub mod classes {
    use super::{PyException, PyValueError, create_exception};

    create_exception!(
        koel,
        FullError,
        PyException,
        "An item was refused: the filter is full, or has reached a limit.\n\n`position` is the index of the first refused item among \
         the items of the call. If that was `update` or `insert_batch` of any class except `SharedFilter`, the items before it are in \
         the filter."
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
        PyValueError::new_err(self.to_string())
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
            Self::OutOfMemory(error) => error.into_py_err(),
            Self::Insert(error) => error.into_py_err(),
            error => PyValueError::new_err(error.to_string()),
        }
    }
}

impl IntoPyErr for InsertError {
    fn into_py_err(self) -> PyErr {
        if matches!(self.kind(), InsertErrorKind::OutOfMemory { .. }) {
            return PyMemoryError::new_err(self.to_string());
        }
        let exception = classes::FullError::new_err(self.to_string());
        with_attribute(exception, |error| error.setattr("position", self.position()))
    }
}

impl IntoPyErr for MergeError {
    fn into_py_err(self) -> PyErr {
        match self {
            Self::OutOfMemory(error) => error.into_py_err(),
            Self::Insert(error) => error.into_py_err(),
            Self::Full { .. } => {
                with_attribute(classes::FullError::new_err(self.to_string()), |error| error.setattr("position", 0))
            }
            error => PyValueError::new_err(error.to_string()),
        }
    }
}

impl IntoPyErr for io::Error {
    fn into_py_err(self) -> PyErr {
        self.into()
    }
}

impl IntoPyErr for SnapshotError {
    fn into_py_err(self) -> PyErr {
        match self.kind() {
            // The message names the path and the system's reason.
            SnapshotErrorKind::Io => io::Error::from(self).into(),
            SnapshotErrorKind::OutOfMemory => PyMemoryError::new_err(self.to_string()),
            kind => {
                let exception = classes::SnapshotError::new_err(self.to_string());
                with_attribute(exception, |error| {
                    error.setattr("kind", format!("{kind:?}"))?;
                    error.setattr("offset", self.offset())
                })
            }
        }
    }
}

/// Sets attributes of an exception. If that fails, for lack of memory, that failure is the exception.
fn with_attribute(exception: PyErr, set: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<()>) -> PyErr {
    Python::attach(|py| set(exception.value(py)).err().unwrap_or(exception))
}

/// Returns a `TypeError`.
pub fn type_error(message: String) -> PyErr {
    PyTypeError::new_err(message)
}
