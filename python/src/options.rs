//! Arguments that are numbers, rates, names and paths, and errors about them that name the keywords of Python.

use std::{path::PathBuf, str::FromStr};

use koel::{ParamError, TableKind};
use pyo3::{
    exceptions::{PyOverflowError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyFloat, PyString},
};

use crate::{
    error::{message, type_error},
    item,
};

/// An argument that may be absent.
pub type Given<'py> = Option<Bound<'py, PyAny>>;

/// A number of items, bytes or bits.
pub struct Number(pub u64);

impl Number {
    /// Reads an integer of any type. Others than 0 to 2**64-1 raise ValueError.
    pub fn of(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Some(number) = item::index(given)? else {
            let mut remedy = "give an int".to_owned();
            if name == "capacity" && given.extract::<f64>().is_ok_and(|rate| 0.0 < rate && rate < 1.0) {
                remedy = format!("give a number of items, and a rate as false_positive_rate={given}");
            }
            return Err(wrong_type(name, given, &remedy));
        };
        let out_of_range = |_| {
            let number = item::shown(&number);
            PyValueError::new_err(format!("{name}: {number} given; give a number from 0 to 2**64-1"))
        };
        number.extract().map(Self).map_err(out_of_range)
    }

    /// Returns a number of items or bytes.
    pub fn size(self) -> usize {
        self.0.try_into().unwrap_or(usize::MAX)
    }
}

/// Sets an option of a builder if it is given.
pub fn set<B, T>(builder: B, value: Option<T>, set: impl FnOnce(B, T) -> B) -> B {
    match value {
        Some(value) => set(builder, value),
        None => builder,
    }
}

/// Reads a number, if it is given.
pub fn number(name: &str, given: &Given<'_>) -> PyResult<Option<Number>> {
    given.as_ref().map(|given| Number::of(name, given)).transpose()
}

/// Reads a number of bits of a fingerprint. The library limits it further for a packed table.
pub fn fingerprint_bits(given: &Given<'_>) -> PyResult<Option<u32>> {
    small("fingerprint_bits", given, *TableKind::Single.fingerprint_bits().end())
}

/// Reads a number of slots. The library limits it further for a packed table.
pub fn bucket_size(given: &Given<'_>) -> PyResult<Option<u32>> {
    small("bucket_size", given, *TableKind::Single.bucket_sizes().end())
}

/// Reads a number that, if it does not have 32 bits, is above `max` in any case.
fn small(name: &str, given: &Given<'_>, max: u32) -> PyResult<Option<u32>> {
    let in_range = |Number(number)| {
        u32::try_from(number).map_err(|_| PyValueError::new_err(format!("{name}: {number} given; give a number up to {max}")))
    };
    number(name, given)?.map(in_range).transpose()
}

/// Reads a false-positive rate, if it is given.
pub fn rate(given: &Given<'_>) -> PyResult<Option<f64>> {
    let read = |given: &Bound<'_, PyAny>| {
        given.extract().map_err(|error: PyErr| {
            let is_type = error.is_instance_of::<PyTypeError>(given.py());
            if is_type {
                wrong_type("false_positive_rate", given, "give a float between 0 and 1, such as 0.001")
            } else if error.is_instance_of::<PyOverflowError>(given.py()) {
                let reason = error.value(given.py());
                PyValueError::new_err(format!("false_positive_rate: {reason}; give one between 0 and 1, such as 0.001"))
            } else {
                error
            }
        })
    };
    given.as_ref().map(read).transpose()
}

/// Parses the name of a table, an addressing or a kernel, if it is given.
pub fn parse<T: FromStr<Err = ParamError>>(name: &str, given: &Given<'_>) -> PyResult<Option<T>> {
    let parse = |given: &Bound<'_, PyAny>| {
        if let Ok(text) = given.cast::<PyString>() {
            let text = text.to_str()?;
            return text.parse().map_err(|error| PyValueError::new_err(format!("{}, not {text:?}", message(&error))));
        }
        // No name is empty, so the error lists them.
        let names = "".parse::<T>().err().map_or_else(|| name.to_owned(), |error| message(&error));
        Err(type_error(format!("{names}, not {}", given.get_type().name()?)))
    };
    given.as_ref().map(parse).transpose()
}

/// Reads a path: a `str`, or an object that stands for one.
pub fn path(given: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    let path = match given.py().import("os")?.call_method1("fspath", (given,)) {
        Err(error) if error.is_instance_of::<PyTypeError>(given.py()) => given.clone(),
        path => path?,
    };
    if path.is_instance_of::<PyString>() {
        return path.extract();
    }
    let is_bytes = path.is_instance_of::<PyBytes>();
    let more = if is_bytes { ": os.fsdecode(path) is the str" } else { "" };
    Err(wrong_type("path", given, &format!("give a str or a PathLike{more}")))
}

/// Returns the error for an argument of another type.
fn wrong_type(name: &str, given: &Bound<'_, PyAny>, remedy: &str) -> PyErr {
    let class = given.get_type().name().map_or_else(|_| "object".to_owned(), |class| class.to_string());
    let given = if given.is_instance_of::<PyFloat>() { format!("{given:?}") } else { class };
    type_error(format!("{name}: {given} given; {remedy}"))
}
