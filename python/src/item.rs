//! Items: Python objects, and the bytes that the library hashes for them. These are the bytes of the corresponding Rust types.

use koel::{Item, Prehashed, Xxh3};
use pyo3::{
    exceptions::{PyAttributeError, PyOverflowError, PyTypeError, PyUnicodeEncodeError},
    prelude::*,
    types::{PyBool, PyByteArray, PyBytes, PyInt, PyMemoryView, PyString, PyTuple},
};

use crate::error::{append, type_error, with_note};

/// Tuples nested deeper than this are refused, so that reading them needs little stack.
const MAX_LEVELS: usize = 64;

/// The bytes of an item.
pub enum Key<'a> {
    /// A string or a byte string, in place.
    Bytes(&'a [u8]),
    /// An integer: those of an `i64` or `u64`.
    Word([u8; 8]),
    /// The parts of a tuple, or a copy of bytes that may change.
    Owned(Vec<u8>),
}

impl Item for Key<'_> {
    #[inline]
    fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> R {
        match self {
            Self::Bytes(bytes) => read(bytes),
            // Its length is known to the compiler, so hashing is shorter.
            Self::Word(bytes) => read(bytes),
            Self::Owned(bytes) => read(bytes),
        }
    }
}

impl<'a> Key<'a> {
    /// Reads an object as an item. The first three checks compare addresses, which costs less than asking for a subclass.
    #[inline]
    pub fn of(item: &'a Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = item.cast_exact::<PyString>() {
            Ok(Self::Bytes(text.to_str()?.as_bytes()))
        } else if let Ok(int) = item.cast_exact::<PyInt>() {
            Self::of_int(int)
        } else if let Ok(bytes) = item.cast_exact::<PyBytes>() {
            Ok(Self::Bytes(bytes.as_bytes()))
        } else {
            Self::of_other(item)
        }
    }

    #[inline]
    fn of_int(int: &Bound<'_, PyInt>) -> PyResult<Key<'static>> {
        match int.extract::<i64>() {
            Ok(number) => Ok(Key::Word(number.to_le_bytes())),
            Err(_) => int.extract::<u64>().map(|number| Key::Word(number.to_le_bytes())).map_err(|_| {
                let remedy = if digits(int).is_some() { "str(n) or n.to_bytes(…)" } else { "n.to_bytes(…)" };
                let int = shown(int);
                PyOverflowError::new_err(format!(
                    "int: {int} given, but items are integers from -2**63 to 2**64-1; pass {remedy} instead"
                ))
            }),
        }
    }

    #[cold]
    fn of_other(item: &'a Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(text) = item.cast::<PyString>() {
            Ok(Self::Bytes(text.to_str()?.as_bytes()))
        } else if let Ok(bytes) = item.cast::<PyBytes>() {
            Ok(Self::Bytes(bytes.as_bytes()))
        } else if item.is_instance_of::<PyBool>() {
            Err(not_an_item(item))
        } else if let Ok(tuple) = item.cast::<PyTuple>() {
            let mut parts = Vec::new();
            write_fields(tuple, &mut parts, MAX_LEVELS)?;
            Ok(Self::Owned(parts))
        } else if let Ok(bytes) = item.cast::<PyByteArray>() {
            // A copy by Python, which reports a lack of memory, and whose bytes do not change meanwhile.
            let (bytes, mut copy) = (item.py().get_type::<PyBytes>().call1((bytes,))?, Vec::new());
            append(&mut copy, bytes.cast::<PyBytes>()?.as_bytes())?;
            Ok(Self::Owned(copy))
        } else if item.is_instance_of::<PyMemoryView>() {
            let mut copy = Vec::new();
            append(&mut copy, item.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes())?;
            Ok(Self::Owned(copy))
        } else {
            // Integers of other libraries, such as numpy's. Its arrays of one element are no scalars, and before numpy 2.3, its
            // bool is an index.
            if item.get_type().name().is_ok_and(|class| class == "bool" || class == "bool_") {
                return Err(not_an_item(item));
            }
            let index = index(item)?.ok_or_else(|| not_an_item(item))?;
            if item.getattr("shape").is_ok_and(|shape| !shape.eq(PyTuple::empty(item.py())).unwrap_or(true)) {
                return Err(not_an_item(item));
            }
            Self::of_int(&index)
        }
    }

    /// Appends the bytes that the item has as a part of a tuple: unless it is an integer or a tuple, its length comes first.
    fn write_part(item: &Bound<'_, PyAny>, parts: &mut Vec<u8>, levels: usize) -> PyResult<()> {
        if let Ok(tuple) = item.cast::<PyTuple>() {
            return write_fields(tuple, parts, levels);
        }
        let key = Key::of(item)?;
        key.with_bytes(|bytes| {
            if !matches!(key, Key::Word(_)) {
                parts.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            }
            append(parts, bytes)
        })
    }
}

/// Appends the parts of a tuple's fields.
fn write_fields(tuple: &Bound<'_, PyTuple>, parts: &mut Vec<u8>, levels: usize) -> PyResult<()> {
    let Some(levels) = levels.checked_sub(1) else {
        return Err(type_error(format!("tuple: nested more than {MAX_LEVELS} levels deep; pass a flat tuple")));
    };
    if tuple.is_empty() {
        // The unit type, which must have a byte.
        parts.push(0);
    }
    tuple.iter().try_for_each(|field| Key::write_part(&field, parts, levels))
}

/// Returns an integer of any type as one of Python; `None` if the object is no integer.
pub fn index<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyInt>>> {
    match object.call_method0("__index__") {
        Ok(index) => Ok(index.cast_into().ok()),
        Err(error) if error.is_instance_of::<PyTypeError>(object.py()) => Ok(None),
        Err(error) if error.is_instance_of::<PyAttributeError>(object.py()) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the digits of an integer; `None` if Python refuses to convert so many.
fn digits(int: &Bound<'_, PyInt>) -> Option<String> {
    int.str().ok().map(|digits| digits.to_string())
}

/// Returns an integer for a message.
#[cold]
pub fn shown(int: &Bound<'_, PyInt>) -> String {
    let length = || match int.call_method0("bit_length") {
        Ok(bits) => format!("an int of {bits} bits"),
        Err(_) => "an int".to_owned(),
    };
    digits(int).unwrap_or_else(length)
}

/// Returns the hash of an item for a batch.
#[inline]
pub fn hash(seed: u64, item: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(Prehashed::of(&Xxh3, seed, &Key::of(item)?).0)
}

/// Adds to the error for an object its place in a batch.
#[cold]
pub fn at(py: Python<'_>, error: PyErr, position: usize) -> PyErr {
    let (class, place) = (error.get_type(py), format!("item {position}, counted from 0"));
    if class.is(py.get_type::<PyTypeError>()) || class.is(py.get_type::<PyOverflowError>()) {
        return PyErr::from_type(class, format!("{place}: {}", error.value(py)));
    }
    if error.is_instance_of::<PyUnicodeEncodeError>(py) {
        let value = error.value(py);
        let placed = value.getattr("reason").and_then(|reason| value.setattr("reason", format!("{reason}; {place}")));
        // Without memory for it, the exception itself says more than another one.
        placed.unwrap_or_default();
        return error;
    }
    // Other exceptions come from elsewhere, and stay as they are.
    with_note(py, error, &place)
}

/// Returns true for an array of numpy whose elements are Python's objects, or strings of any length.
fn has_objects(array: &Bound<'_, PyAny>) -> bool {
    let kind = array.getattr("dtype").and_then(|dtype| dtype.getattr("kind")?.extract::<String>());
    kind.is_ok_and(|kind| kind == "O" || kind == "T")
}

/// Returns the error for an object that has no bytes.
#[cold]
fn not_an_item(item: &Bound<'_, PyAny>) -> PyErr {
    let class = item.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
    let remedy = match &*class {
        "bool" | "bool_" => {
            "pass int(x), which is another item than the bool of a Rust program, or bytes([int(x)]), which is the same"
        }
        "NoneType" | "NAType" | "NaTType" => "leave it out, or pass a string that stands for it",
        "UUID" => "pass x.bytes or str(x)",
        "void" => "pass x.tobytes()",
        // The bytes of such an array are addresses.
        "ndarray" if has_objects(item) => "pass tuple(x.tolist()); for an array of items, call update or contains_batch",
        "ndarray" => "pass x.tobytes(); for an array of items, call update or contains_batch",
        "set" | "frozenset" => "pass tuple(sorted(x)); for a batch of items, call update or contains_batch",
        class if class.ends_with("Scalar") => "pass x.as_py()",
        class if class.contains("float") => "pass float(x).hex() or struct.pack('<d', x), and take care of -0.0 and nan",
        _ if item.hasattr("__iter__").unwrap_or(false) => {
            "for a batch of items, call update or contains_batch; for one item, pass a tuple"
        }
        _ => "pass str(x), or a tuple of its fields",
    };
    type_error(format!("{class} is not an item; items are str, bytes, int, and tuples of these: {remedy}"))
}
