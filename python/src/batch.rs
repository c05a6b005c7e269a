//! Batches: numpy arrays, Arrow arrays and iterables of objects, as pieces that the library takes.

use koel::InsertError;
use numpy::{PyArray1, PyArrayDescrMethods as _, PyArrayMethods as _, PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyByteArray, PyBytes, PyIterator, PyString},
};

use crate::{
    arrow::Column,
    error::{IntoPyErr as _, type_error},
    item,
};

/// The most items that are hashed before the filter is locked, where they are not integers of 64 bits.
const PIECE: usize = 1 << 15;

/// A piece of a batch.
#[derive(Clone, Copy)]
pub enum Keys<'a> {
    /// Integers, or those that are signed as unsigned ones: both have the same bytes.
    Words(&'a [u64]),
    /// The hashes of items.
    Hashes(&'a [u64]),
}

impl Keys<'_> {
    /// Returns the number of items.
    pub fn len(&self) -> usize {
        let (Self::Words(items) | Self::Hashes(items)) = self;
        items.len()
    }
}

/// Evaluates an expression with the items of a piece, as an argument of the library's methods for batches.
#[macro_export]
macro_rules! with_items {
    ($keys:expr, $items:ident => $value:expr) => {
        match $keys {
            $crate::batch::Keys::Words($items) => $value,
            $crate::batch::Keys::Hashes(hashes) => {
                let $items = &koel::Prehashed(hashes);
                $value
            }
        }
    };
}

/// The items of one call.
pub enum Batch<'py> {
    /// An array of 64-bit integers.
    Words(Bound<'py, PyArray1<u64>>),
    /// Arrays of other libraries.
    Columns(Vec<Column>),
    /// Python objects.
    Objects(Bound<'py, PyIterator>),
}

impl<'py> Batch<'py> {
    /// Reads an argument as a batch.
    pub fn of(items: &Bound<'py, PyAny>) -> PyResult<Self> {
        if items.is_instance_of::<PyString>() || items.is_instance_of::<PyBytes>() || items.is_instance_of::<PyByteArray>() {
            return Err(type_error(format!(
                "{} is one item and not a batch; give [x], or call the method for one item",
                items.get_type().name()?
            )));
        }
        if let Ok(array) = items.cast::<PyUntypedArray>() {
            return Self::of_array(array);
        }
        match Column::import(items)? {
            Some(columns) => Ok(Self::Columns(columns)),
            None => Ok(Self::Objects(items.try_iter()?)),
        }
    }

    /// Converts an array of integers to 64 bits, unless it has them. Strings and objects become those of Python.
    fn of_array(array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        if array.ndim() != 1 {
            let message = format!("array: {} dimensions given, but a batch has 1; give array.ravel()", array.ndim());
            return Err(PyValueError::new_err(message));
        }
        let dtype = array.dtype();
        let wide = match dtype.kind() {
            b'i' => "int64",
            b'u' => "uint64",
            b'O' | b'U' | b'S' | b'T' => return Ok(Self::Objects(array.call_method0("tolist")?.try_iter()?)),
            b'M' | b'm' => {
                return Err(type_error(format!("array of {dtype}: a batch has integers or strings; give array.view('int64')")));
            }
            _ => {
                let message = format!(
                    "array of {dtype}: a batch has integers or strings; give array.astype('int64') or array.view('int64')"
                );
                return Err(type_error(message));
            }
        };
        // Without a copy if the array has this type, and no gaps.
        let words = array.py().import("numpy")?.call_method1("require", (array, wide, "CA"))?;
        Ok(Self::Words(words.call_method1("view", ("uint64",))?.cast_into()?))
    }

    /// Calls `act` with one piece after the other, detached from the interpreter.
    pub fn each(
        self,
        py: Python<'_>,
        seed: u64,
        mut act: impl FnMut(Keys<'_>) -> Result<(), InsertError> + Send,
    ) -> PyResult<()> {
        match self {
            Self::Words(array) => {
                let array = array.try_readonly()?;
                let words = array.as_slice()?;
                py.detach(|| act(Keys::Words(words))).map_err(InsertError::into_py_err)
            }
            Self::Columns(columns) => {
                let mut start = 0;
                let done = py.detach(|| columns.iter().try_for_each(|column| each_of_column(column, seed, &mut start, &mut act)));
                done.map_err(|error| error.after(start).into_py_err())
            }
            Self::Objects(mut objects) => {
                let (mut start, mut hashes) = (0, Vec::with_capacity(objects.size_hint().0.min(PIECE)));
                loop {
                    hashes.clear();
                    for object in objects.by_ref().take(PIECE) {
                        hashes.push(item::hash(seed, &object?)?);
                    }
                    if hashes.is_empty() && start > 0 {
                        return Ok(());
                    }
                    py.detach(|| act(Keys::Hashes(&hashes))).map_err(|error| error.after(start).into_py_err())?;
                    if hashes.len() < PIECE {
                        return Ok(());
                    }
                    start += hashes.len();
                    // So that a key can interrupt a long call.
                    py.check_signals()?;
                }
            }
        }
    }
}

/// Calls `act` with one piece of a column after the other. `start` is the number of items before the piece.
fn each_of_column<E>(
    column: &Column,
    seed: u64,
    start: &mut usize,
    mut act: impl FnMut(Keys<'_>) -> Result<(), E>,
) -> Result<(), E> {
    if let Some(words) = column.words() {
        act(Keys::Words(words))?;
        *start += words.len();
        return Ok(());
    }
    let mut hashes = Vec::with_capacity(column.len().min(PIECE));
    for first in (0..column.len()).step_by(PIECE) {
        hashes.clear();
        column.hash(first..first + PIECE, seed, &mut hashes);
        act(Keys::Hashes(&hashes))?;
        *start += hashes.len();
    }
    Ok(())
}
