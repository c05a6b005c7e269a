//! Series, indices and arrays of pandas, by their types. What pandas itself exports depends on its version, and on whether pyarrow is
//! there.

use std::{collections::BTreeMap, ops::Range, sync::OnceLock};

use koel::Item as _;
use numpy::{PyArray1, PyArrayDescrMethods as _, PyArrayMethods as _, PyUntypedArray, PyUntypedArrayMethods as _, ndarray::s};
use pyo3::{prelude::*, types::PyDict};

use crate::{
    array::{self, Nulls, Objects, Source},
    arrow,
    batch::Batch,
    cells::{Cells, hash},
    column::{Column, PIECE, each_stretch},
    error::{append, no_memory},
    fork,
    item::Key,
    remedy::{Library, Refused, Subject},
};

/// Reads an object of pandas as a batch; `None` for other objects.
pub fn read<'py>(items: &Bound<'py, PyAny>) -> PyResult<Option<Batch<'py>>> {
    // Without this, there are no such objects.
    let Some(pandas) = fork::imported(items.py(), "pandas")? else { return Ok(None) };
    // A module of this name may be another one, or be imported right now.
    let is_of = |name: &str| match pandas.getattr_opt(name)? {
        Some(class) => items.is_instance(&class),
        None => Ok(false),
    };
    let subject = Subject::new(items, Library::Pandas);
    if is_of("DataFrame")? {
        return Err(subject.refused(Refused::Table));
    }
    if is_of("MultiIndex")? {
        return objects(&items.call_method0("to_numpy")?, &pandas, subject).map(Some);
    }
    if is_of("Series")? || is_of("Index")? {
        return read_array(&items.getattr("array")?, &pandas, subject).map(Some);
    }
    let Some(api) = pandas.getattr_opt("api")? else { return Ok(None) };
    if items.is_instance(&api.getattr("extensions")?.getattr("ExtensionArray")?)? {
        return read_array(items, &pandas, subject).map(Some);
    }
    Ok(None)
}

fn read_array<'py>(array: &Bound<'py, PyAny>, pandas: &Bound<'py, PyAny>, subject: Subject<'py>) -> PyResult<Batch<'py>> {
    let arrays = pandas.getattr("arrays")?;
    // Not all versions have all classes.
    let is_of = |names: &[&str]| -> PyResult<bool> {
        for name in names {
            if arrays.getattr_opt(*name)?.map_or(Ok(false), |class| array.is_instance(&class))? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    if is_of(&["ArrowExtensionArray", "ArrowStringArray"])? {
        let subject = subject.in_library(Library::PandasArrow);
        return match arrow::Column::import(&array.call_method0("__arrow_array__")?, &subject)? {
            Some(columns) => Ok(Batch::of_columns(columns, subject)),
            None => objects(array, pandas, subject),
        };
    }
    if is_of(&["Categorical"])? {
        return Categories::read(array, subject);
    }
    if is_of(&["DatetimeArray", "TimedeltaArray"])? {
        let is_missing = array.call_method0("isna")?.call_method0("any")?.is_truthy()?;
        return Err(subject.refused(if is_missing { Refused::MissingTime } else { Refused::Time { bits: 64 } }));
    }
    if is_of(&["PeriodArray", "IntervalArray"])? {
        return Err(subject.refused(Refused::Other));
    }
    if is_of(&["BooleanArray"])? {
        return Err(subject.refused(Refused::Bool));
    }
    if is_of(&["FloatingArray"])? {
        return Err(subject.refused(Refused::Float));
    }
    if is_of(&["IntegerArray"])? {
        let nulls = nulls(&array.call_method0("isna")?)?;
        let options = PyDict::new(array.py());
        options.set_item("dtype", array.getattr("dtype")?.getattr("numpy_dtype")?)?;
        options.set_item("na_value", 0)?;
        let values = array.call_method("to_numpy", (), Some(&options))?.cast_into::<PyUntypedArray>()?;
        let Some(cell) = array::integers(&values) else { return Err(subject.refused(Refused::Other)) };
        return Ok(Batch::new(Source::column(array::Column::new(&values, cell, nulls)), subject));
    }
    let values = if is_of(&["SparseArray"])? {
        array.call_method0("to_dense")?
    } else if is_of(&["NumpyExtensionArray", "PandasArray"])? {
        array.call_method0("to_numpy")?
    } else {
        return objects(array, pandas, subject);
    };
    let values = values.cast_into::<PyUntypedArray>()?;
    if values.dtype().kind() == b'O' {
        return objects(values.as_any(), pandas, subject);
    }
    Batch::of_array(&values, subject)
}

/// Reads the objects of an array. Objects that pandas takes for missing are null.
fn objects<'py>(array: &Bound<'py, PyAny>, pandas: &Bound<'py, PyAny>, subject: Subject<'py>) -> PyResult<Batch<'py>> {
    let numpy = fork::numpy(array.py())?;
    let values = numpy.call_method1("asarray", (array, "object"))?.cast_into::<PyUntypedArray>()?;
    let nulls = nulls(&pandas.call_method1("isna", (&values,))?)?;
    Ok(Batch::new(Source::Objects(Objects::of_array(&values)?, nulls), subject))
}

fn nulls(is_null: &Bound<'_, PyAny>) -> PyResult<Nulls> {
    let py = is_null.py();
    let is_null = is_null.cast::<PyArray1<bool>>()?.try_readonly()?;
    let (is_null, mut nulls, mut count) = (is_null.as_array(), Vec::new(), 0);
    nulls.try_reserve_exact(is_null.len()).map_err(|_| no_memory(&format!("the nulls of {} items", is_null.len())))?;
    py.detach(|| {
        each_stretch(is_null.len(), |items| {
            let stretch = is_null.slice(s![items]);
            count += stretch.iter().filter(|&&is_null| is_null).count();
            nulls.extend(stretch);
            Ok(())
        })
    })?;
    Ok(Nulls::new(nulls, count))
}

/// A column of codes, each of which stands for a category.
struct Categories {
    codes: Cells,
    nulls: usize,
    /// The bytes of each category.
    keys: Vec<Vec<u8>>,
    hashes: OnceLock<Vec<u64>>,
    /// Keeps the memory of the codes.
    _array: Py<PyAny>,
}

impl Categories {
    fn read<'py>(array: &Bound<'py, PyAny>, subject: Subject<'py>) -> PyResult<Batch<'py>> {
        let codes = array.getattr("codes")?.cast_into::<PyUntypedArray>()?;
        let Some(cell) = array::integers(&codes) else { return Err(subject.refused(Refused::Other)) };
        let cells = array::cells(&codes, cell);
        let (mut categories, mut errors) = (Vec::new(), BTreeMap::new());
        for category in Objects::of(&array.getattr("categories")?.call_method0("tolist")?)? {
            let (category, mut bytes) = (category?, Vec::new());
            match Key::of(&category) {
                Ok(key) => key.with_bytes(|key| append(&mut bytes, key))?,
                Err(error) => drop(errors.insert(categories.len(), error)),
            }
            categories.try_reserve(1).map_err(|_| no_memory(&format!("{} categories", categories.len() + 1)))?;
            categories.push(bytes);
            if categories.len() % PIECE == 0 {
                array.py().check_signals()?;
            }
        }
        // A category that is no item matters if an item has it.
        let is_wrong = |&item: &usize| cells.index(item).is_some_and(|category| errors.contains_key(&category));
        let is_null = |&item: &usize| cells.index(item).is_none_or(|category| category >= categories.len());
        let (mut first, mut nulls) = (None, 0);
        array.py().detach(|| {
            each_stretch(cells.len(), |mut items| {
                nulls += items.clone().filter(is_null).count();
                if first.is_none() && !errors.is_empty() {
                    first = items.find(is_wrong);
                }
                Ok(())
            })
        })?;
        let wrong = first.and_then(|item| Some((item, errors.remove(&cells.index(item)?)?)));
        let column = Self { codes: cells, nulls, keys: categories, hashes: OnceLock::new(), _array: codes.into_any().unbind() };
        Ok(Batch::new(Source::column(column), subject).with_wrong(wrong))
    }

    /// Returns the category of an item; `None` if it is missing.
    fn category(&self, item: usize) -> Option<usize> {
        self.codes.index(item).filter(|&code| code < self.keys.len())
    }
}

impl Column for Categories {
    fn len(&self) -> usize {
        self.codes.len()
    }

    fn nulls(&self) -> usize {
        self.nulls
    }

    fn is_null(&self, item: usize) -> bool {
        self.category(item).is_none()
    }

    fn words(&self) -> Option<&[u64]> {
        None
    }

    fn hash(&self, range: Range<usize>, seed: u64, hashes: &mut Vec<u64>) {
        let hash = |category: usize| hash(seed, &*self.keys[category]);
        let known = self.hashes.get_or_init(|| {
            let mut known = Vec::new();
            // Without memory for them, each item is hashed anew.
            if known.try_reserve_exact(self.keys.len()).is_ok() {
                known.extend((0..self.keys.len()).map(hash));
            }
            known
        });
        let categories = range.filter_map(|item| self.category(item));
        hashes.extend(categories.map(|category| known.get(category).copied().unwrap_or_else(|| hash(category))));
    }
}
