//! Batches: numpy arrays, Arrow arrays and iterables of objects, as pieces that the library takes.

use std::ops::Range;

use koel::InsertError;
use numpy::{PyArray1, PyArrayDescrMethods as _, PyArrayMethods as _, PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::{
    exceptions::{PyMemoryError, PyValueError},
    prelude::*,
    types::{PyByteArray, PyBytes, PyIterator, PyMemoryView, PyString},
};

use crate::{
    arrow::Column,
    error::{IntoPyErr as _, type_error},
    item,
};

/// The most items that are hashed before the filter is locked, where they are not integers of 64 bits.
const PIECE: usize = 1 << 15;

/// The most items of an array between two checks for Ctrl-C. It is longer than `PIECE` because a check may wait for the interpreter.
const STRETCH: usize = 1 << 20;

/// The remedy for floats, which no batch has.
pub const NO_FLOATS: &str = "cast it to int64 (numpy, pandas: astype('int64'), polars: cast(pl.Int64)) if all its values are \
                             integers; pandas reads integers as floats if some are missing: give series.dropna().astype('int64')";

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
        let is_bytes = items.is_instance_of::<PyBytes>() || items.is_instance_of::<PyByteArray>();
        if is_bytes || items.is_instance_of::<PyString>() || items.is_instance_of::<PyMemoryView>() {
            return Err(type_error(format!(
                "{} is one item and not a batch; give [x], or call the method for one item",
                items.get_type().name()?
            )));
        }
        if let Ok(array) = items.cast::<PyUntypedArray>() {
            return Self::of_array(array);
        }
        if let Some(columns) = Column::import(items)? {
            return Ok(Self::Columns(columns));
        }
        if items.hasattr("__array__")? {
            // Unlike `asarray`, this keeps masks.
            return Self::of_array(items.py().import("numpy")?.call_method1("asanyarray", (items,))?.cast()?);
        }
        Ok(Self::Objects(items.try_iter()?))
    }

    /// Converts an array of integers to 64 bits, unless it has them. Strings and objects become those of Python.
    fn of_array(array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        if array.ndim() != 1 {
            let message = format!("array: {} dimensions given, but a batch has 1; give array.ravel()", array.ndim());
            return Err(PyValueError::new_err(message));
        }
        let numpy = array.py().import("numpy")?;
        if array.is_instance(&numpy.getattr("ma")?.getattr("MaskedArray")?)? {
            return Err(type_error(
                "a masked array is not a batch; give array.compressed(), which has the items that are not masked".to_owned(),
            ));
        }
        if array.is_empty() {
            // numpy gives an empty list the type float64.
            return Ok(Self::Columns(Vec::new()));
        }
        let dtype = array.dtype();
        let wide = match dtype.kind() {
            b'i' => "int64",
            b'u' => "uint64",
            b'O' | b'U' | b'S' | b'T' => return Ok(Self::Objects(array.call_method0("tolist")?.try_iter()?)),
            kind => {
                let remedy = match kind {
                    b'f' => NO_FLOATS,
                    b'b' => "give array.astype('int64')",
                    b'M' | b'm' => "give array.view('int64'), which counts units",
                    _ => "give a list of items",
                };
                return Err(type_error(format!("an array of {dtype} is not a batch, which has integers or strings; {remedy}")));
            }
        };
        // Without a copy if the array has this type, and no gaps.
        let words = numpy.call_method1("require", (array, wide, "CA"))?;
        Ok(Self::Words(words.call_method1("view", ("uint64",))?.cast_into()?))
    }

    /// Returns an empty vector with room for a result for each item, as far as their number is known.
    pub fn reserve<T>(&self) -> PyResult<Vec<T>> {
        let (mut results, len) = (Vec::new(), self.len_hint());
        match results.try_reserve_exact(len) {
            Ok(()) => Ok(results),
            Err(_) => Err(PyMemoryError::new_err(format!("there is no memory for {len} results; pass fewer items at a time"))),
        }
    }

    /// Returns the number of items as far as it is known before they are read. Iterators may claim any.
    fn len_hint(&self) -> usize {
        match self {
            Self::Words(array) => array.len(),
            Self::Columns(columns) => columns.iter().map(Column::len).sum(),
            Self::Objects(objects) => objects.size_hint().0.min(STRETCH),
        }
    }

    /// Calls `act` with one piece after the other, detached from the interpreter. `done` is the number of items in earlier batches of
    /// a call, and counts those that `act` has processed: if an item fails, all before it, and if a signal handler raises an exception,
    /// those of whole pieces.
    pub fn each(
        self,
        py: Python<'_>,
        seed: u64,
        done: &mut usize,
        mut act: impl FnMut(Keys<'_>) -> PyResult<Result<(), InsertError>> + Send,
    ) -> PyResult<()> {
        let mut hashes = Vec::with_capacity(self.len_hint().min(PIECE));
        match self {
            Self::Words(array) => {
                let array = array.try_readonly()?;
                for words in array.as_slice()?.chunks(STRETCH) {
                    py.detach(|| process(Keys::Words(words), done, &mut act))?;
                    py.check_signals()?;
                }
            }
            Self::Columns(columns) => {
                for column in &columns {
                    for first in (0..column.len()).step_by(STRETCH) {
                        let stretch = first..column.len().min(first + STRETCH);
                        py.detach(|| each_of_column(column, stretch, seed, &mut hashes, done, &mut act))?;
                        py.check_signals()?;
                    }
                }
            }
            Self::Objects(mut objects) => loop {
                hashes.clear();
                let mut failed = None;
                for object in objects.by_ref().take(PIECE) {
                    match object
                        .and_then(|object| item::hash(seed, &object).map_err(|error| item::at(py, error, *done + hashes.len())))
                    {
                        Ok(hash) => hashes.push(hash),
                        Err(error) => {
                            failed = Some(error);
                            break;
                        }
                    }
                }
                // Items before one that fails are processed, as by the methods of a set. They may be nowhere else: iterators do not
                // go back.
                py.detach(|| process(Keys::Hashes(&hashes), done, &mut act))?;
                failed.map_or(Ok(()), Err)?;
                py.check_signals()?;
                if hashes.len() < PIECE {
                    break;
                }
            },
        }
        Ok(())
    }
}

/// Calls `act` with a piece, and counts the items that it processed.
fn process(
    keys: Keys<'_>,
    done: &mut usize,
    act: &mut impl FnMut(Keys<'_>) -> PyResult<Result<(), InsertError>>,
) -> PyResult<()> {
    match act(keys)? {
        Ok(()) => {
            *done += keys.len();
            Ok(())
        }
        Err(error) => {
            let error = error.after(*done);
            *done = error.position();
            Err(error.into_py_err())
        }
    }
}

/// Calls `act` with one piece of a stretch after the other.
fn each_of_column(
    column: &Column,
    stretch: Range<usize>,
    seed: u64,
    hashes: &mut Vec<u64>,
    done: &mut usize,
    act: &mut impl FnMut(Keys<'_>) -> PyResult<Result<(), InsertError>>,
) -> PyResult<()> {
    if let Some(words) = column.words() {
        return process(Keys::Words(&words[stretch]), done, act);
    }
    for first in stretch.clone().step_by(PIECE) {
        hashes.clear();
        column.hash(first..stretch.end.min(first + PIECE), seed, hashes);
        process(Keys::Hashes(hashes), done, act)?;
    }
    Ok(())
}

/// Calls `act` with so many pseudo-random hashes, always the same ones, in pieces, detached from the interpreter.
pub fn each_sample(py: Python<'_>, samples: u64, mut act: impl FnMut(&[u64]) -> PyResult<()> + Send) -> PyResult<()> {
    let mut hashes = Vec::with_capacity(PIECE);
    let mut numbers = (1..=samples).peekable();
    while numbers.peek().is_some() {
        py.detach(|| {
            for _ in 0..STRETCH / PIECE {
                hashes.clear();
                hashes.extend(numbers.by_ref().take(PIECE).map(split_mix));
                act(&hashes)?;
            }
            PyResult::Ok(())
        })?;
        py.check_signals()?;
    }
    Ok(())
}

/// Returns the n-th number of SplitMix64 (Steele, Lea and Flood, 2014). All are different.
fn split_mix(n: u64) -> u64 {
    let n = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}
