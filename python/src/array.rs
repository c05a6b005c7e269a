//! Arrays of numpy, read in place.

#![allow(unsafe_code, reason = "the arrays have any type, and gaps")]

use std::ops::Range;

use numpy::{PyArrayDescrMethods as _, PyUntypedArray, PyUntypedArrayMethods as _};
use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyIterator, PySlice},
};

use crate::{
    cells::{Cell, Cells},
    column::{self, PIECE, STRETCH},
    error::type_error,
    fork,
    remedy::{Refused, Subject},
};

/// Which items of a batch are null.
#[derive(Default)]
pub struct Nulls {
    /// Empty if there are none.
    nulls: Vec<bool>,
    count: usize,
}

impl Nulls {
    /// Describes the nulls of a batch, item by item, of which `count` are null.
    pub fn new(nulls: Vec<bool>, count: usize) -> Self {
        Self { nulls: if count == 0 { Vec::new() } else { nulls }, count }
    }

    /// Returns the number of nulls.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns whether an item is null.
    pub fn is_null(&self, item: usize) -> bool {
        self.nulls.get(item).is_some_and(|&is_null| is_null)
    }
}

/// Where the items of a batch are.
pub enum Source<'py> {
    /// In arrays.
    Columns(Vec<Box<dyn column::Column>>),
    /// In objects of Python.
    Objects(Objects<'py>, Nulls),
}

impl Source<'_> {
    /// Returns the items of one column.
    pub fn column(column: impl column::Column + 'static) -> Self {
        Self::Columns(vec![Box::new(column)])
    }
}

/// An array with a value in each place, some of which may be nulls.
pub struct Column {
    cells: Cells,
    nulls: Nulls,
    /// Keeps the memory of the values.
    _array: Py<PyAny>,
}

impl Column {
    /// Describes the integers or byte strings of an array.
    pub fn new(array: &Bound<'_, PyUntypedArray>, cell: Cell, nulls: Nulls) -> Self {
        Self { cells: cells(array, cell), nulls, _array: array.clone().into_any().unbind() }
    }
}

impl column::Column for Column {
    fn len(&self) -> usize {
        self.cells.len()
    }

    fn nulls(&self) -> usize {
        self.nulls.count()
    }

    fn is_null(&self, item: usize) -> bool {
        self.nulls.is_null(item)
    }

    fn words(&self) -> Option<&[u64]> {
        if self.nulls.count() == 0 { self.cells.words() } else { None }
    }

    fn hash(&self, range: Range<usize>, seed: u64, hashes: &mut Vec<u64>) {
        if self.nulls.count() == 0 {
            self.cells.hash(range, seed, hashes);
        } else {
            self.cells.hash(range.filter(|&item| !self.nulls.is_null(item)), seed, hashes);
        }
    }
}

/// Describes the values of an array with one dimension. The caller keeps the array as long as the result.
pub fn cells(array: &Bound<'_, PyUntypedArray>, cell: Cell) -> Cells {
    // SAFETY: numpy keeps an array's memory as long as the array. The documentation forbids to write meanwhile.
    unsafe { Cells::new((*array.as_array_ptr()).fields.data.cast(), array.strides()[0], array.len(), cell) }
}

/// Returns what the values of an array of integers are; `None` for another type.
pub fn integers(array: &Bound<'_, PyUntypedArray>) -> Option<Cell> {
    let dtype = array.dtype();
    let (bytes, is_signed) = (dtype.itemsize(), dtype.kind() == b'i');
    let is_integer = is_signed || dtype.kind() == b'u';
    let is_swapped = dtype.is_native_byteorder() == Some(false);
    (is_integer && matches!(bytes, 1 | 2 | 4 | 8)).then_some(Cell::Integer { bytes, is_signed, is_swapped })
}

/// Returns whether an array has a mask.
fn is_masked(array: &Bound<'_, PyUntypedArray>) -> PyResult<bool> {
    // Without this, there are no such arrays.
    let Some(masked) = fork::imported(array.py(), "numpy.ma")? else { return Ok(false) };
    masked.getattr_opt("MaskedArray")?.map_or(Ok(false), |class| array.is_instance(&class))
}

/// Reads an array as a batch.
pub fn read<'py>(array: &Bound<'py, PyUntypedArray>, subject: &Subject<'py>) -> PyResult<Source<'py>> {
    if array.ndim() != 1 {
        // A matrix always has two dimensions.
        let is_matrix = array.get_type().name()? == "matrix";
        let flat = if is_matrix { "numpy.asarray(x).ravel()".to_owned() } else { subject.method("ravel()") };
        let message = format!("array: {} dimensions given, but a batch has 1; give {flat}", array.ndim());
        return Err(PyValueError::new_err(message));
    }
    let numpy = fork::numpy(array.py())?;
    if is_masked(array)? {
        let remedy = subject.method("compressed()");
        return Err(type_error(format!("a masked array is not a batch; give {remedy}, which has the items that are not masked")));
    }
    if array.is_empty() {
        // numpy gives an empty list the type float64.
        return Ok(Source::Columns(Vec::new()));
    }
    let dtype = array.dtype();
    let refused = match dtype.kind() {
        b'i' | b'u' => match integers(array) {
            Some(cell) => return Ok(Source::column(Column::new(array, cell, Nulls::default()))),
            None => Refused::Other,
        },
        b'O' | b'T' => return Ok(Source::Objects(Objects::of_array(array)?, Nulls::default())),
        // Types of other packages have this kind, too.
        b'V' if dtype.typeobj().is(&numpy.getattr("void")?) => {
            if !dtype.has_fields() {
                return Ok(Source::column(Column::new(array, Cell::Bytes(dtype.itemsize()), Nulls::default())));
            }
            Refused::Record
        }
        b'S' => Refused::Padded { is_text: false },
        b'U' => Refused::Padded { is_text: true },
        b'f' if any(array, "isnan")? => Refused::MissingFloat,
        b'f' => Refused::Float,
        b'b' => Refused::Bool,
        b'M' | b'm' if any(array, "isnat")? => Refused::MissingTime,
        b'M' | b'm' => Refused::Time { bits: 64 },
        _ => Refused::Other,
    };
    Err(subject.refused(refused))
}

/// Returns whether a function of numpy is true for a value of an array.
fn any(array: &Bound<'_, PyUntypedArray>, function: &str) -> PyResult<bool> {
    fork::numpy(array.py())?.call_method1(function, (array,))?.call_method0("any")?.is_truthy()
}

/// The objects of an iterable, or of an array, which are made a piece at a time.
pub struct Objects<'py> {
    piece: Bound<'py, PyIterator>,
    /// The array that the piece is from, its length, and where the next piece begins.
    array: Option<(Bound<'py, PyUntypedArray>, usize, usize)>,
}

impl<'py> Objects<'py> {
    /// Returns the items of an iterable.
    pub fn of(items: &Bound<'py, PyAny>) -> PyResult<Self> {
        let piece = items.try_iter().or_else(|error| {
            let class = items.get_type();
            if items.hasattr("__iter__")? {
                return Err(error);
            }
            let name = class.name()?;
            Err(type_error(if class.module()?.to_string().starts_with("koel") {
                format!("{name} is not a batch, which has items; filters are combined by merge, union and intersection")
            } else {
                format!("{name} is not a batch, which is an iterable of items; give [x], or call the method for one item")
            }))
        })?;
        Ok(Self { piece, array: None })
    }

    /// Returns the items of an array as objects of Python.
    pub fn of_array(array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        let len = array.len();
        Ok(Self { piece: piece(array, 0)?, array: Some((array.clone(), len, PIECE)) })
    }

    /// Returns the number of items as far as it is known. Iterators may claim any.
    pub fn len_hint(&self) -> usize {
        match &self.array {
            Some((_, len, _)) => *len,
            None => self.piece.size_hint().0.min(STRETCH),
        }
    }
}

impl<'py> Iterator for Objects<'py> {
    type Item = PyResult<Bound<'py, PyAny>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if let Some(object) = self.piece.next() {
            return Some(object);
        }
        let (array, _, next) = self.array.as_mut().filter(|(_, len, next)| next < len)?;
        let first = *next;
        *next = first.saturating_add(PIECE);
        match piece(array, first) {
            Ok(piece) => self.piece = piece,
            Err(error) => return Some(Err(error)),
        }
        self.piece.next()
    }
}

/// Returns the objects of a piece of an array.
fn piece<'py>(array: &Bound<'py, PyUntypedArray>, first: usize) -> PyResult<Bound<'py, PyIterator>> {
    let py = array.py();
    let [first, last] = [first, first.saturating_add(PIECE)].map(usize::cast_signed);
    array.get_item(PySlice::new(py, first, last, 1))?.call_method0("tolist")?.try_iter()
}
