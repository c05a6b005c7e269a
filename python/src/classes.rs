//! The classes. What all filters can do is in `Filter`, and what changes them in `MutableFilter`.

use koel::Prehashed;
use numpy::{Element, IntoPyArray as _, PyArray1};
use pyo3::{
    basic::CompareOp,
    exceptions::{PyKeyError, PyValueError},
    prelude::*,
    types::{PyBytes, PyDict, PyString, PyTuple, PyType},
};

use crate::{
    batch::{self, Batch, Keys, with_items},
    data::Data,
    error::{IntoPyErr, classes::FullError, not_bytes, not_read, os_error, type_error, with_note},
    filter::{AnyFilter, Changeable, Combine, Source, change, look},
    fork,
    item::Key,
    options::{self, Given, Number, number, parse, rate, set},
};

/// A filter: an approximate set. `item in filter` is False if the item is not in it, and True if it probably is.
///
/// This is the base class of all filters. It cannot be instantiated.
#[pyclass(frozen, subclass, module = "koel")]
pub struct Filter {
    any: AnyFilter,
    seed: u64,
}

impl Filter {
    fn new(mut any: AnyFilter) -> Self {
        let seed = any.seed();
        Self { any, seed }
    }

    /// Returns a new object of the filter's class.
    fn into_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let any = &self.any;
        Ok(match any {
            AnyFilter::Fixed(_) => Bound::new(py, self.changeable().add_subclass(CuckooFilter))?.into_any(),
            AnyFilter::Elastic(_) => Bound::new(py, self.changeable().add_subclass(ElasticFilter))?.into_any(),
            AnyFilter::Shared(_) => {
                let elastic = self.changeable().add_subclass(ElasticFilter);
                Bound::new(py, elastic.add_subclass(SharedFilter))?.into_any()
            }
            AnyFilter::View(_) | AnyFilter::ElasticView(_) => {
                Bound::new(py, PyClassInitializer::from(self).add_subclass(FilterView))?.into_any()
            }
        })
    }

    fn changeable(self) -> PyClassInitializer<MutableFilter> {
        PyClassInitializer::from(self).add_subclass(MutableFilter)
    }
}

#[pymethods]
impl Filter {
    /// Raises TypeError: copies, unions and loaded filters would not be of a subclass.
    #[classmethod]
    #[pyo3(signature = (**_options))]
    fn __init_subclass__(class: &Bound<'_, PyType>, _options: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let (name, base) = (class.name()?, class.getattr("__base__")?.getattr("__name__")?);
        Err(type_error(format!("{name}: koel.{base} cannot be subclassed; keep a filter in an attribute of your class")))
    }

    fn __contains__(&self, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = Key::of(item)?;
        look!(Some(item.py()), &self.any, filter => filter.contains(&key))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        look!(Some(py), &self.any, filter => filter.len())
    }

    fn __richcmp__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, operator: CompareOp) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let is_equal = match operator {
            CompareOp::Eq => true,
            CompareOp::Ne => false,
            _ => return Ok(py.NotImplemented()),
        };
        let (ours, theirs) = (slf.get(), other.cast::<Self>().ok().map(Bound::get));
        let equal = match theirs {
            Some(theirs) => py.detach(|| ours.any.equals(&theirs.any))?,
            None => None,
        };
        Ok(match equal {
            Some(equal) => (equal == is_equal).into_pyobject(py)?.to_owned().into_any().unbind(),
            None => py.NotImplemented(),
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let class = self.any.class();
        look!(Some(py), &self.any, filter => {
            let items = if filter.len() == 1 { "item" } else { "items" };
            let rate = filter.false_positive_rate();
            let rate = if rate > 0.0 { format!("{rate:.2e}") } else { "0".to_owned() };
            let (len, load, bytes) = (filter.len(), 100.0 * filter.load_factor(), filter.size_in_bytes());
            format!("<koel.{class}: {len} {items}, load {load:.1} %, {bytes} bytes, false-positive rate {rate}>")
        })
    }

    fn __str__(&self, py: Python<'_>) -> PyResult<String> {
        look!(Some(py), &self.any, filter => filter.to_string())
    }

    /// The number of copies of an item: at least as many as were added and not removed.
    ///
    /// >>> filter = koel.CuckooFilter(1000, 0.001)
    /// >>> filter.update(["alice", "bob", "alice"])
    /// >>> filter.count("alice")
    /// 2
    #[pyo3(signature = (item, /))]
    fn count(&self, item: &Bound<'_, PyAny>) -> PyResult<u32> {
        let key = Key::of(item)?;
        look!(Some(item.py()), &self.any, filter => filter.count(&key))
    }

    /// Looks up each item of a numpy or Arrow array or an iterable. Returns an array of bool, which is False for a null.
    ///
    /// >>> filter = koel.CuckooFilter(1000, 0.001)
    /// >>> filter.update(range(3))
    /// >>> filter.contains_batch(numpy.arange(5)).tolist()
    /// [True, True, True, False, False]
    #[pyo3(signature = (items, /))]
    fn contains_batch<'py>(&self, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let found = Batch::of(items)?.look_up(
            items.py(),
            self.seed,
            |keys, found| look!(None, &self.any, filter => with_items!(keys, items => filter.contains_batch(items, found))),
        )?;
        to_array(items.py(), found)
    }

    /// Counts the copies of each item of a batch, as `count` does. Returns an array of uint32, which is 0 for a null.
    #[pyo3(signature = (items, /))]
    fn count_batch<'py>(&self, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let counts = Batch::of(items)?.look_up(items.py(), self.seed, |keys, counts| {
            look!(None, &self.any, filter => match keys {
                Keys::Words(items) => counts.iter_mut().zip(items).for_each(|(count, item)| *count = filter.count(item)),
                Keys::Hashes(hashes) => {
                    counts.iter_mut().zip(hashes).for_each(|(count, &hash)| *count = filter.count(&Prehashed(hash)));
                }
            })
        })?;
        to_array(items.py(), counts)
    }

    /// Returns how many items of a batch are found, without an array of results. Nulls are not.
    #[pyo3(signature = (items, /))]
    fn count_members(&self, items: &Bound<'_, PyAny>) -> PyResult<usize> {
        let mut count = 0;
        Batch::of(items)?.each_present(items.py(), self.seed, |keys| {
            count += look!(None, &self.any, filter => with_items!(keys, items => filter.count_members(items)))?;
            Ok(())
        })?;
        Ok(count)
    }

    /// The number of distinct items that the filter is planned for. If it grows, this is `max_capacity`.
    #[getter]
    fn capacity(&self, py: Python<'_>) -> PyResult<usize> {
        look!(Some(py), &self.any, filter => filter.capacity())
    }

    /// The expected false-positive rate at the current load, from 0 to 1.
    #[getter]
    fn false_positive_rate(&self, py: Python<'_>) -> PyResult<f64> {
        look!(Some(py), &self.any, filter => filter.false_positive_rate())
    }

    /// The share of slots that are taken, from 0 to 1.
    #[getter]
    fn load_factor(&self, py: Python<'_>) -> PyResult<f64> {
        look!(Some(py), &self.any, filter => filter.load_factor())
    }

    /// The number of slots in all tables.
    #[getter]
    fn slots(&self, py: Python<'_>) -> PyResult<usize> {
        look!(Some(py), &self.any, filter => filter.slots())
    }

    /// The memory that the filter takes, in bytes. For a view, this includes the snapshot, except for a fixed filter's header.
    #[getter]
    fn size_in_bytes(&self, py: Python<'_>) -> PyResult<usize> {
        look!(Some(py), &self.any, filter => filter.size_in_bytes())
    }

    /// Returns the memory that the filter takes, in bytes, for sys.getsizeof.
    fn __sizeof__(&self, py: Python<'_>) -> PyResult<usize> {
        self.size_in_bytes(py)
    }

    /// The number of bits per item; inf for an empty filter.
    #[getter]
    fn bits_per_item(&self, py: Python<'_>) -> PyResult<f64> {
        look!(Some(py), &self.any, filter => filter.bits_per_item())
    }

    /// The length of `to_bytes()`.
    #[getter]
    fn snapshot_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        look!(Some(py), &self.any, filter => filter.snapshot_bytes())
    }

    /// The seed of the hash function.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// The instruction set that lookups use, such as 'avx2'.
    #[getter]
    fn kernel(&self, py: Python<'_>) -> PyResult<String> {
        look!(Some(py), &self.any, filter => filter.kernel().to_string())
    }

    /// The parameters by their names: `CuckooFilter(**params)`, or that of the filter's own class, makes an empty filter with equal
    /// parameters.
    #[getter]
    fn params<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let (fixed, growing) = match &self.any {
            AnyFilter::Fixed(lock) => (Some(lock.read(Some(py), koel::CuckooFilter::params)?), None),
            AnyFilter::View(view) => (Some(view.params()), None),
            AnyFilter::Elastic(lock) => (None, Some(lock.read(Some(py), koel::ElasticFilter::params)?)),
            AnyFilter::Shared(lock) => (None, Some(lock.read(Some(py), koel::SharedFilter::params)?)),
            AnyFilter::ElasticView(view) => (None, Some(view.params())),
        };
        if let Some(params) = fixed {
            dict.set_item("buckets", params.buckets())?;
            dict.set_item("fingerprint_bits", params.fingerprint_bits())?;
            dict.set_item("table", params.table().to_string())?;
            dict.set_item("bucket_size", params.bucket_size())?;
            dict.set_item("addressing", params.addressing().to_string())?;
        }
        if let Some(params) = growing {
            dict.set_item("capacity", params.capacity())?;
            dict.set_item("false_positive_rate", params.false_positive_rate())?;
            dict.set_item("max_capacity", params.max_capacity())?;
            dict.set_item("partitions", params.partitions())?;
        }
        dict.set_item("seed", self.seed)?;
        Ok(dict)
    }

    /// Counts the distinct items, in time proportional to their number.
    fn distinct(&self, py: Python<'_>) -> PyResult<usize> {
        py.detach(|| look!(None, &self.any, filter => filter.distinct()))
    }

    /// Measures the false-positive rate by looking up `samples` pseudo-random hashes, which are the same in every call.
    #[pyo3(signature = (samples, /))]
    fn measure_false_positive_rate(&self, samples: &Bound<'_, PyAny>) -> PyResult<f64> {
        let Number(number) = Number::of("samples", samples)?;
        let mut found = 0;
        batch::each_sample(samples.py(), number, |hashes| {
            found += look!(None, &self.any, filter => filter.count_members(&Prehashed(hashes)))?;
            Ok(())
        })?;
        #[allow(clippy::cast_precision_loss, reason = "the rate is not as precise")]
        Ok(found as f64 / number.max(1) as f64)
    }

    /// Returns the filter as a snapshot: bytes that every program with koel can read.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = length(look!(Some(py), &self.any, filter => filter.snapshot_bytes())?)?;
        let mut is_written = false;
        let snapshot = PyBytes::new_with(py, bytes, |bytes| {
            is_written = py.detach(|| self.any.write_to(bytes))?;
            Ok(())
        })?;
        if is_written {
            return Ok(snapshot);
        }
        // Another thread has changed the filter between the two steps. Python allocates bytes of a known length only, and while
        // nothing is locked.
        drop(snapshot);
        Ok(PyBytes::new(py, &py.detach(|| self.any.to_vec())?))
    }

    /// Writes the snapshot to a file, which it creates or replaces as a whole. Raises OSError, and then keeps the old file.
    #[pyo3(signature = (path, /))]
    fn save(&self, path: &Bound<'_, PyAny>) -> PyResult<()> {
        let (py, path) = (path.py(), options::path(path)?);
        py.detach(|| look!(None, &self.any, filter => filter.save(&path)))?.map_err(|error| os_error(&error, &path))
    }

    /// Returns a copy. That of a view is a view.
    fn copy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let any = &slf.get().any;
        match slf.py().detach(|| any.duplicate())? {
            Some(copy) => Self::new(copy.map_err(IntoPyErr::into_py_err)?).into_object(slf.py()),
            // A view never changes.
            None => Ok(slf.clone().into_any()),
        }
    }

    fn __copy__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::copy(slf)
    }

    fn __deepcopy__<'py>(slf: &Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::copy(slf)
    }

    fn __reduce_ex__<'py>(slf: &Bound<'py, Self>, protocol: u32) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyAny>,))> {
        let (filter, class) = (slf.get(), slf.get_type().into_any());
        let is_view = matches!(filter.any, AnyFilter::View(_) | AnyFilter::ElasticView(_));
        let constructor = if is_view { class } else { class.getattr("from_bytes")? };
        let mut bytes = filter.to_bytes(slf.py())?.into_any();
        if protocol >= 5 {
            bytes = slf.py().import("pickle")?.getattr("PickleBuffer")?.call1((bytes,))?;
        }
        Ok((constructor, (bytes,)))
    }
}

/// Returns the length of a snapshot that fits into memory.
fn length(bytes: u64) -> PyResult<usize> {
    usize::try_from(bytes).map_err(|_| PyValueError::new_err(format!("{bytes} bytes exceed the memory; use save instead")))
}

/// A filter that can be changed: the base class of `CuckooFilter` and `ElasticFilter`. It cannot be instantiated.
#[pyclass(frozen, subclass, extends = Filter, module = "koel")]
pub struct MutableFilter;

impl MutableFilter {
    /// Calls an operation of a batch whose result is a bool for each item. If an item fails, `fate` ends the note about those before it.
    fn results<'py>(
        slf: &Bound<'py, Self>,
        items: &Bound<'py, PyAny>,
        [method, fate]: [&str; 2],
        mut act: impl FnMut(&AnyFilter, Keys<'_>, &mut [bool]) -> PyResult<Result<(), koel::InsertError>> + Send,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (filter, batch, mut done) = (slf.as_super().get(), Batch::of(items)?, 0);
        let mut results = batch.reserve()?;
        let all = batch.each(slf.py(), filter.seed, &mut done, |keys| {
            let start = results.len();
            batch::add_places(&mut results, keys.len())?;
            act(&filter.any, keys, &mut results[start..])
        });
        all.map_err(|error| Self::stopped(slf, error, method, done, fate))?;
        to_array(slf.py(), results)
    }

    /// Adds to an exception how many items a method has processed.
    fn stopped(slf: &Bound<'_, Self>, error: PyErr, method: &str, done: usize, fate: &str) -> PyErr {
        let is_refused = error.is_instance_of::<FullError>(slf.py());
        let others = match slf.as_super().get().any {
            AnyFilter::Shared(_) if is_refused => "; some of those after the refused one may be, too",
            _ if done == 0 => return error,
            _ => "",
        };
        with_note(
            slf.py(),
            error,
            &format!("{method} stopped after {done} {}{fate}{others}", if done == 1 { "item" } else { "items" }),
        )
    }

    /// Combines the filter with another object, which must be a filter of the same class.
    fn combine(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, how: Combine) -> PyResult<()> {
        let (ours, theirs) = (slf.as_super().get(), other.cast::<Filter>().ok().map(Bound::get));
        let done = match theirs {
            Some(theirs) => slf.py().detach(|| ours.any.combine(&theirs.any, how))?,
            None => None,
        };
        if let Some(done) = done {
            return done.map_err(IntoPyErr::into_py_err);
        }
        let remedy = match theirs.map(|theirs| (&ours.any, &theirs.any)) {
            None if matches!(how, Combine::Intersection) => "build a filter of the items first",
            None => "to add items, call update",
            Some((_, AnyFilter::View(_) | AnyFilter::ElasticView(_))) => "call its to_filter() first",
            Some((AnyFilter::Fixed(_), _) | (_, AnyFilter::Fixed(_))) => "build both with the same class and parameters",
            Some(_) => "build both with the same class and parameters, or load the file of one as the other class",
        };
        let (own, class) = (ours.any.class(), other.get_type().name()?);
        let verb = if matches!(how, Combine::Intersection) { "intersected" } else { "merged" };
        Err(type_error(format!("only filters of one class can be {verb}, but {class} and {own} are given; {remedy}")))
    }

    /// Returns a copy of the filter that is combined with others, one after the other.
    fn combined<'py>(slf: &Bound<'py, Self>, others: &Bound<'py, PyTuple>, how: Combine) -> PyResult<Bound<'py, PyAny>> {
        let combined = Filter::copy(slf.as_super())?;
        let filter = combined.cast::<Self>()?;
        others.iter().try_for_each(|other| {
            Self::combine(filter, &other, how)?;
            slf.py().check_signals()
        })?;
        Ok(combined)
    }

    /// Returns the result of an operator between the filter and another object.
    fn operator<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>, how: Combine) -> PyResult<Bound<'py, PyAny>> {
        if !other.is_instance_of::<Filter>() {
            return Ok(slf.py().NotImplemented().into_bound(slf.py()));
        }
        Self::combined(slf, &PyTuple::new(slf.py(), [other])?, how)
    }
}

#[pymethods]
impl MutableFilter {
    /// Reads a snapshot of a filter of this class. Raises SnapshotError if the bytes are not one.
    #[classmethod]
    #[pyo3(signature = (data, /))]
    fn from_bytes<'py>(class: &Bound<'py, PyType>, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let data = Data::hold(data, "a bytes-like object with a snapshot; load reads a file")?;
        read_as(class, Source::Bytes(data.as_ref()))
    }

    /// Reads a file. Raises OSError if it cannot be read, and SnapshotError if it is not a snapshot of a filter of this class.
    #[classmethod]
    #[pyo3(signature = (path, /))]
    fn load<'py>(class: &Bound<'py, PyType>, path: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        read_as(class, Source::File(&options::path(path)?))
    }

    /// Adds an item, or one more copy of it. Raises FullError if the filter has no room.
    #[pyo3(signature = (item, /))]
    fn add(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        let key = Key::of(item)?;
        change!(Some(item.py()), &slf.as_super().get().any, filter => filter.insert(&key))?.map_err(IntoPyErr::into_py_err)
    }

    /// Adds an item unless the filter has it already. Returns whether it was added.
    #[pyo3(signature = (item, /))]
    fn insert_unique(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = Key::of(item)?;
        change!(Some(item.py()), &slf.as_super().get().any, filter => filter.insert_unique(&key))?.map_err(IntoPyErr::into_py_err)
    }

    /// Removes one copy of an item, if it is found. Returns whether it was. Remove only items that were added.
    #[pyo3(signature = (item, /))]
    fn discard(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = Key::of(item)?;
        change!(Some(item.py()), &slf.as_super().get().any, filter => filter.remove(&key))
    }

    /// Removes one copy of an item. Raises KeyError if it is not found. Remove only items that were added.
    #[pyo3(signature = (item, /))]
    fn remove(slf: &Bound<'_, Self>, item: &Bound<'_, PyAny>) -> PyResult<()> {
        if Self::discard(slf, item)? { Ok(()) } else { Err(PyKeyError::new_err((item.clone().unbind(),))) }
    }

    /// Adds each item of a batch, or one more copy of it. Raises ValueError, and adds none, if an item is null. If another item fails,
    /// those before it are in the filter.
    ///
    /// >>> filter = koel.ElasticFilter(false_positive_rate=0.001)
    /// >>> filter.insert_batch(numpy.arange(100_000))
    /// >>> len(filter)
    /// 100000
    #[pyo3(signature = (items, /))]
    fn insert_batch(slf: &Bound<'_, Self>, items: &Bound<'_, PyAny>) -> PyResult<()> {
        insert_all(slf, "insert_batch", [items.clone()])
    }

    /// Adds each item of these batches, or one more copy of it. Raises ValueError, and adds none of its batch, if an item is null. If
    /// another item fails, those before it are in the filter. Earlier batches stay in the filter.
    #[pyo3(signature = (*batches))]
    fn update(slf: &Bound<'_, Self>, batches: &Bound<'_, PyTuple>) -> PyResult<()> {
        insert_all(slf, "update", batches)
    }

    /// Adds each item of a batch, unless the filter has it already. Returns an array of bool: which ones were added. New items that are
    /// mistaken for others are not added: at most the share `false_positive_rate`.
    #[pyo3(signature = (items, /))]
    fn insert_unique_batch<'py>(slf: &Bound<'py, Self>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        Self::results(
            slf,
            items,
            ["insert_unique_batch", IN_FILTER],
            |any, keys, added| change!(None, any, filter => with_items!(keys, items => filter.insert_unique_batch(items, added))),
        )
    }

    /// Removes one copy of each item of a batch. Returns an array of bool: which ones were found.
    #[pyo3(signature = (items, /))]
    fn remove_batch<'py>(slf: &Bound<'py, Self>, items: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        Self::results(slf, items, ["remove_batch", "; a copy of each was removed if found"], |any, keys, removed| {
            change!(None, any, filter => with_items!(keys, items => filter.remove_batch(items, removed))).map(Ok)
        })
    }

    /// Removes all items.
    fn clear(slf: &Bound<'_, Self>) -> PyResult<()> {
        let any = &slf.as_super().get().any;
        slf.py().detach(|| change!(None, any, filter => filter.clear()))
    }

    /// Adds all items of another filter with equal parameters. Copies add up.
    ///
    /// Raises ValueError if the parameters differ, and FullError if the items do not fit. The filter is then unchanged.
    #[pyo3(signature = (other, /))]
    fn merge(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::combine(slf, other, Combine::Merge)
    }

    /// Returns a new filter with the items of this one and of others with equal parameters. Of an item's copies, it has as many as
    /// the filter that has most.
    #[pyo3(signature = (*others))]
    fn union<'py>(slf: &Bound<'py, Self>, others: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        Self::combined(slf, others, Combine::Union)
    }

    /// Returns a new filter with the items that this one and others with equal parameters have in common. Of an item's copies, it has
    /// as many as the filter that has fewest. An item that only one of two filters has is found if the other finds it, too: with a
    /// probability of at most its false_positive_rate.
    #[pyo3(signature = (*others))]
    fn intersection<'py>(slf: &Bound<'py, Self>, others: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        Self::combined(slf, others, Combine::Intersection)
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operator(slf, other, Combine::Union)
    }

    fn __ior__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::combine(slf, other, Combine::Union)
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::operator(slf, other, Combine::Intersection)
    }

    fn __iand__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::combine(slf, other, Combine::Intersection)
    }
}

/// Notes say this about the items before one that cannot be added.
const IN_FILTER: &str = ", now in the filter";

/// Returns the results of a batch.
fn to_array<T: Element>(py: Python<'_>, results: Vec<T>) -> PyResult<Bound<'_, PyArray1<T>>> {
    fork::numpy(py)?;
    Ok(results.into_pyarray(py))
}

/// Adds each item of these batches.
fn insert_all<'py>(
    slf: &Bound<'py, MutableFilter>,
    method: &str,
    batches: impl IntoIterator<Item = Bound<'py, PyAny>>,
) -> PyResult<()> {
    let (filter, mut done) = (slf.as_super().get(), 0);
    let all = batches.into_iter().try_for_each(|items| {
        Batch::of(&items)?.each(
            slf.py(),
            filter.seed,
            &mut done,
            |keys| change!(None, &filter.any, filter => with_items!(keys, items => filter.insert_batch(items))),
        )
    });
    all.map_err(|error| MutableFilter::stopped(slf, error, method, done, IN_FILTER))
}

/// Reads a snapshot as a filter of this class.
fn read_as<'py>(class: &Bound<'py, PyType>, source: Source<'_>) -> PyResult<Bound<'py, PyAny>> {
    let read = if class.is_subclass_of::<SharedFilter>()? {
        koel::SharedFilter::read_locked
    } else if class.is_subclass_of::<ElasticFilter>()? {
        koel::ElasticFilter::read_locked
    } else if class.is_subclass_of::<CuckooFilter>()? {
        koel::CuckooFilter::read_locked
    } else {
        return Err(type_error(format!("{class} is abstract; call this method of CuckooFilter, ElasticFilter or SharedFilter")));
    };
    let filter = class.py().detach(|| read(source))?.map_err(|error| match source {
        Source::File(path) => not_read(error, path),
        Source::Bytes(_) => not_bytes(error, "give the whole content of a snapshot; load reads a file"),
    })?;
    Filter::new(filter).into_object(class.py())
}

/// A filter of fixed size, the smallest and fastest one. It holds at least `capacity` distinct items, and finds others with a
/// probability of at most `false_positive_rate`, a number between 0 and 1.
///
/// The other parameters have good defaults:
/// - `buckets` instead of `capacity`: an even number, or a power of two with `addressing='power-of-two'`.
/// - `fingerprint_bits` instead of `false_positive_rate`: 2 to 32, or 4 to 32 in a packed table.
/// - `table`: 'packed' or 'single', by default the smaller one.
/// - `bucket_size`: slots in a bucket, 1 to 16, by default 4, which a packed table needs.
/// - `addressing`: how an item's second bucket is computed, 'any-size' or 'power-of-two'.
/// - `seed`: of the hash function, by default 0. Filters with different seeds cannot be merged. A secret one makes it hard to find
///   items that collide.
/// - `kernel`: the instruction set, by default the best one. It changes the speed only.
///
/// >>> filter = koel.CuckooFilter(1_000_000, 0.001)
/// >>> filter.add("alice")
/// >>> "alice" in filter
/// True
/// >>> filter.remove("alice")
/// >>> "alice" in filter
/// False
#[pyclass(frozen, extends = MutableFilter, module = "koel")]
pub struct CuckooFilter;

#[pymethods]
impl CuckooFilter {
    #[new]
    #[pyo3(signature = (capacity=None, false_positive_rate=None, *, buckets=None, fingerprint_bits=None, table=None, bucket_size=None,
        addressing=None, seed=None, kernel=None))]
    #[allow(clippy::too_many_arguments, reason = "they are keywords")]
    fn new(
        capacity: Given<'_>,
        false_positive_rate: Given<'_>,
        buckets: Given<'_>,
        fingerprint_bits: Given<'_>,
        table: Given<'_>,
        bucket_size: Given<'_>,
        addressing: Given<'_>,
        seed: Given<'_>,
        kernel: Given<'_>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let builder = koel::CuckooFilter::builder().seed(number("seed", &seed)?.map_or(0, |seed| seed.0));
        let builder = set(builder, number("capacity", &capacity)?, |builder, items| builder.capacity(items.size()));
        let builder = set(builder, rate(&false_positive_rate)?, koel::Builder::false_positive_rate);
        let builder = set(builder, number("buckets", &buckets)?, |builder, number| builder.buckets(number.0));
        let builder = set(builder, options::fingerprint_bits(&fingerprint_bits)?, koel::Builder::fingerprint_bits);
        let builder = set(builder, parse("table", &table)?, koel::Builder::table);
        let builder = set(builder, options::bucket_size(&bucket_size)?, koel::Builder::bucket_size);
        let builder = set(builder, parse("addressing", &addressing)?, koel::Builder::addressing);
        let builder = set(builder, parse("kernel", &kernel)?, koel::Builder::kernel);
        let filter = builder.build().map_err(IntoPyErr::into_py_err)?;
        Ok(Filter::new(filter.lock()).changeable().add_subclass(Self))
    }
}

/// A filter that grows and shrinks with its items, and keeps its false-positive rate at every size.
///
/// Only `false_positive_rate` is needed, a number between 0 and 1. The other parameters:
/// - `capacity`: the number of distinct items that fit before the filter grows, 0 by default. If they need more than eight tables,
///   these are allocated at once.
/// - `max_capacity`: the number of distinct items up to which a lookup reads two buckets; more may be added. By default it is 1000
///   times the capacity, and at least 16 million. If it is close to the number of items, the filter takes fewer bytes.
/// - `max_bytes`: the memory that the filter may take. Beyond it, `add` raises FullError.
/// - `partitions`: a power of two from 1 to 256, by default 1, and 64 in a SharedFilter, which has a lock for each.
/// - `seed`, `kernel`: as in CuckooFilter.
///
/// >>> seen = koel.ElasticFilter(false_positive_rate=0.001)
/// >>> seen.update(range(100_000))
/// >>> 7 in seen, len(seen), seen.false_positive_rate < 0.001
/// (True, 100000, True)
#[pyclass(frozen, subclass, extends = MutableFilter, module = "koel")]
pub struct ElasticFilter;

/// Implements a class of growing filters: its constructor, which has the same keywords in both, and its own methods.
macro_rules! growing {
    ($class:ident, $build:ident, |$filter:ident| $object:expr, { $($methods:tt)* }) => {
        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(signature = (capacity=None, false_positive_rate=None, *, max_capacity=None, max_bytes=None,
                partitions=None, seed=None, kernel=None))]
            fn new(
                capacity: Given<'_>,
                false_positive_rate: Given<'_>,
                max_capacity: Given<'_>,
                max_bytes: Given<'_>,
                partitions: Given<'_>,
                seed: Given<'_>,
                kernel: Given<'_>,
            ) -> PyResult<PyClassInitializer<Self>> {
                let builder = koel::ElasticFilter::builder().seed(number("seed", &seed)?.map_or(0, |seed| seed.0));
                let builder = set(builder, number("capacity", &capacity)?, |builder, items| builder.capacity(items.size()));
                let builder = set(builder, rate(&false_positive_rate)?, koel::ElasticBuilder::false_positive_rate);
                let builder = set(builder, number("max_capacity", &max_capacity)?, |builder, items| builder.max_capacity(items.size()));
                let builder = set(builder, number("max_bytes", &max_bytes)?, |builder, bytes| builder.max_bytes(bytes.size()));
                let builder = set(builder, number("partitions", &partitions)?, |builder, number| builder.partitions(number.size()));
                let builder = set(builder, parse("kernel", &kernel)?, koel::ElasticBuilder::kernel);
                let $filter = builder.$build().map_err(IntoPyErr::into_py_err)?;
                Ok($object)
            }

            $($methods)*
        }
    };
}

growing!(ElasticFilter, build, |filter| Filter::new(filter.lock()).changeable().add_subclass(Self), {
    /// Frees the memory that removals have left.
    fn shrink(slf: &Bound<'_, Self>) -> PyResult<()> {
        let any = &slf.as_super().as_super().get().any;
        slf.py().detach(|| match any {
            AnyFilter::Elastic(lock) => lock.write(None, koel::ElasticFilter::shrink),
            AnyFilter::Shared(lock) => lock.share(None, koel::SharedFilter::shrink),
            _ => Ok(()),
        })
    }

    /// Limits the memory that the filter may take, in bytes; None removes the limit. A filter that takes more already stays as it is, and
    /// refuses the next item that needs more memory. Snapshots and pickles do not keep the limit.
    #[pyo3(signature = (bytes, /))]
    fn set_max_bytes(slf: &Bound<'_, Self>, bytes: Given<'_>) -> PyResult<()> {
        let bytes = number("bytes", &bytes)?.map_or(usize::MAX, Number::size);
        match &slf.as_super().as_super().get().any {
            AnyFilter::Elastic(lock) => lock.write(Some(slf.py()), |filter| filter.set_max_bytes(bytes)),
            AnyFilter::Shared(lock) => lock.share(Some(slf.py()), |filter| filter.set_max_bytes(bytes)),
            _ => Ok(()),
        }
    }

    /// The bytes that `max_bytes` limits: at least `size_in_bytes`.
    #[getter]
    fn charged_bytes(slf: &Bound<'_, Self>) -> PyResult<usize> {
        match &slf.as_super().as_super().get().any {
            AnyFilter::Elastic(lock) => lock.read(Some(slf.py()), koel::ElasticFilter::charged_bytes),
            AnyFilter::Shared(lock) => lock.share(Some(slf.py()), koel::SharedFilter::charged_bytes),
            _ => Ok(0),
        }
    }
});

/// An ElasticFilter that many threads change at the same time. It has 64 partitions by default, each with a lock; one that is loaded
/// has as many as its file.
///
/// All classes may be used by several threads. The others lock the whole filter while a call changes it.
#[pyclass(frozen, extends = ElasticFilter, module = "koel")]
pub struct SharedFilter;

growing!(
    SharedFilter,
    build_shared,
    |filter| Filter::new(filter.lock()).changeable().add_subclass(ElasticFilter).add_subclass(Self),
    {}
);

/// A snapshot that is queried in place, in a mapped file or in bytes. It is of a fixed or a growing filter.
///
/// Opening checks the header and the length; `verify` checks the rest. While a view is open, no program may write into the file.
/// `save` and the command `koel` replace files instead. A buffer that can be written to is copied.
///
/// >>> filter = koel.CuckooFilter(1000, 0.001)
/// >>> filter.add("alice")
/// >>> view = koel.FilterView(filter.to_bytes())
/// >>> "alice" in view, view == filter
/// (True, True)
#[pyclass(frozen, extends = Filter, module = "koel")]
pub struct FilterView;

#[pymethods]
impl FilterView {
    #[new]
    #[pyo3(signature = (path_or_buffer, /))]
    fn new(path_or_buffer: &Bound<'_, PyAny>) -> PyResult<PyClassInitializer<Self>> {
        let py = path_or_buffer.py();
        let is_path = path_or_buffer.is_instance_of::<PyString>() || path_or_buffer.hasattr("__fspath__")?;
        let any = if is_path {
            let path = options::path(path_or_buffer)?;
            let data = Data::map(py, &path)?;
            py.detach(|| AnyFilter::open(data)).map_err(|error| not_read(error.in_file(&path), &path))
        } else {
            let data =
                Data::hold(path_or_buffer, "a path, which is a str or a PathLike, or a bytes-like object with a snapshot")?;
            py.detach(|| AnyFilter::open(data)).map_err(|error| {
                not_bytes(error, "bytes are the content of a snapshot; to open a file, give its path as a str or a PathLike")
            })
        };
        Ok(PyClassInitializer::from(Filter::new(any?)).add_subclass(Self))
    }

    /// Checks all that opening did not. Raises SnapshotError if the snapshot is corrupt.
    fn verify(slf: &Bound<'_, Self>) -> PyResult<()> {
        let any = &slf.as_super().get().any;
        let verified = slf.py().detach(|| match any {
            AnyFilter::View(view) => view.verify(),
            AnyFilter::ElasticView(view) => view.verify(),
            _ => Ok(()),
        });
        verified.map_err(IntoPyErr::into_py_err)
    }

    /// Returns a CuckooFilter or an ElasticFilter, which can be changed. Verifies the snapshot.
    fn to_filter<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let any = &slf.as_super().get().any;
        let filter = slf.py().detach(|| match any {
            AnyFilter::View(view) => view.to_filter().map(|filter| Some(filter.lock())),
            AnyFilter::ElasticView(view) => view.to_filter().map(|filter| Some(filter.lock())),
            _ => Ok(None),
        });
        match filter.map_err(IntoPyErr::into_py_err)? {
            Some(filter) => Filter::new(filter).into_object(slf.py()),
            None => Filter::copy(slf.as_super()),
        }
    }
}
