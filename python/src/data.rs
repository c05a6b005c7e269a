//! The bytes of a view: a mapped file, or a buffer of Python.

#![allow(unsafe_code, reason = "mapped files and Python's buffers are borrowed memory")]

use std::{
    fs::File,
    io::{self, ErrorKind},
    path::Path,
    slice,
};

use memmap2::Mmap;
use numpy::{PyArray1, PyArrayMethods as _, PyUntypedArrayMethods as _};
use pyo3::{
    exceptions::{PyBufferError, PyTypeError},
    prelude::*,
    types::PyMemoryView,
};

use crate::{
    error::{os_error, type_error},
    fork,
};

/// Bytes that stay where they are.
pub enum Data {
    /// A file.
    Mapped(Mmap),
    /// A buffer, which the array keeps.
    Held {
        /// Keeps the memory.
        _array: Py<PyArray1<u8>>,
        /// Its first byte.
        start: *const u8,
        /// The number of bytes.
        len: usize,
    },
}

// SAFETY: the array is only kept, and the bytes do not change, as `hold` says.
unsafe impl Send for Data {}
// SAFETY: as above.
unsafe impl Sync for Data {}

impl AsRef<[u8]> for Data {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            // SAFETY: the array keeps the buffer of this length exported, so it is neither moved nor freed.
            Self::Held { start, len, .. } => unsafe { slice::from_raw_parts(*start, *len) },
        }
    }
}

impl Data {
    /// Maps a file for reading. Refuses pipes without opening them, because opening a pipe waits for a writer.
    pub fn map(py: Python<'_>, path: &Path) -> PyResult<Self> {
        if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            let reason = "a pipe or device cannot be mapped; read it with load, or give a view its bytes";
            return Err(os_error(&io::Error::new(ErrorKind::InvalidInput, reason), path));
        }
        // SAFETY: the documentation of `FilterView` demands that files are replaced, as `save` does, and not overwritten.
        let map = py.detach(|| File::open(path).and_then(|file| unsafe { Mmap::map(&file) }));
        // Mapping a folder fails with another reason.
        map.map(Self::Mapped).map_err(|error| os_error(&if path.is_dir() { ErrorKind::IsADirectory.into() } else { error }, path))
    }

    /// Holds a buffer that cannot be written to. Others are copied, as they may change at any time. The error for an object that is
    /// no buffer says what is `expected`.
    pub fn hold(buffer: &Bound<'_, PyAny>, expected: &str) -> PyResult<Self> {
        let numpy = fork::numpy(buffer.py())?;
        // Closed buffers have no such view.
        let has_gaps =
            || -> PyResult<bool> { PyMemoryView::from(buffer)?.getattr("c_contiguous")?.extract().map(|all: bool| !all) };
        let array = numpy.call_method1("frombuffer", (buffer, "uint8"));
        let mut array = array.map_err(|error| match buffer.get_type().name() {
            Ok(class) if error.is_instance_of::<PyTypeError>(buffer.py()) => {
                type_error(format!("{class} given; give {expected}"))
            }
            Ok(class) if has_gaps().unwrap_or(false) => {
                PyBufferError::new_err(format!("the bytes of this {class} are not contiguous; give bytes(x)"))
            }
            _ => error,
        })?;
        if array.getattr("flags")?.getattr("writeable")?.extract()? {
            array = array.call_method0("copy")?;
        }
        let array = array.cast_into::<PyArray1<u8>>()?;
        let (start, len) = (array.data().cast_const(), array.len());
        Ok(Self::Held { _array: array.unbind(), start, len })
    }
}
