//! Arguments that are batches: numpy arrays, Arrow arrays, columns of pandas, and iterables of objects.

use numpy::PyUntypedArray;
use pyo3::{
    prelude::*,
    types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyString, PyTuple},
};

use crate::{
    array::{Nulls, Objects, Source},
    arrow,
    batch::Batch,
    error::type_error,
    fork, pandas,
    remedy::{Library, Subject},
};

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
        if items.is_exact_instance_of::<PyList>() || items.is_exact_instance_of::<PyTuple>() {
            // The most usual batches need no more checks.
            let subject = Subject::new(items, Library::Numpy);
            return Ok(Self::new(Source::Objects(Objects::of(items)?, Nulls::default()), subject));
        }
        let numpy = fork::numpy(items.py())?;
        if let Ok(array) = items.cast::<PyUntypedArray>() {
            return Self::of_array(array, Subject::new(items, Library::Numpy));
        }
        if let Some(batch) = pandas::read(items)? {
            return Ok(batch);
        }
        let subject = Subject::of_arrow(items)?;
        if let Some(columns) = arrow::Column::import(items, &subject)? {
            return Ok(Self::of_columns(columns, subject));
        }
        if items.hasattr("__array__")? {
            // Unlike `asarray`, this keeps masks.
            let array = numpy.call_method1("asanyarray", (items,))?;
            return Self::of_array(array.cast()?, Subject::of_numpy(&array));
        }
        Ok(Self::new(Source::Objects(Objects::of(items)?, Nulls::default()), subject))
    }
}
