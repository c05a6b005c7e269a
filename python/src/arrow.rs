//! Columns of other libraries, through Arrow's C data interface: strings, byte strings and integers, read in place.

#![allow(unsafe_code, reason = "the interface consists of C structs with pointers")]

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    mem,
    ops::Range,
    ptr, slice,
};

use koel::{Item, Prehashed, Xxh3};
use pyo3::{
    exceptions::{PyException, PyValueError},
    prelude::*,
    types::PyCapsule,
};

use crate::{batch::NO_FLOATS, error::type_error};

/// `struct ArrowSchema`.
#[repr(C)]
struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
struct Stream {
    get_schema: Option<unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut Stream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

/// A struct of the interface: `release` marks it as taken, or frees what it refers to.
///
/// # Safety
/// All bits zero are a valid value, without a release callback.
unsafe trait Released {
    const NAME: &CStr;

    fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)>;
}

macro_rules! released {
    ($($name:literal $released:ty),+) => {$(
        // SAFETY: its fields are pointers, integers and optional functions.
        unsafe impl Released for $released {
            const NAME: &CStr = $name;

            fn release(&mut self) -> &mut Option<unsafe extern "C" fn(*mut Self)> {
                &mut self.release
            }
        }
    )+};
}
released!(c"arrow_schema" Schema, c"arrow_array" Array, c"arrow_array_stream" Stream);

/// A struct that this module has to release.
struct Owned<T: Released>(T);

impl<T: Released> Owned<T> {
    /// Returns a released struct, for a callback to fill.
    fn empty() -> Self {
        // SAFETY: `Released` requires that zeros are valid.
        Self(unsafe { mem::zeroed() })
    }

    /// Takes the struct out of a capsule, which then holds a released one.
    fn take(capsule: &Bound<'_, PyAny>) -> PyResult<Self> {
        let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(T::NAME))?.cast::<T>();
        let mut taken = Self::empty();
        // SAFETY: a capsule of this name holds such a struct, which Python's users of the interface only move while attached.
        unsafe { ptr::swap(&raw mut taken.0, pointer.as_ptr()) };
        if taken.0.release().is_none() {
            return Err(PyValueError::new_err("the Arrow array was consumed already; export it again"));
        }
        Ok(taken)
    }
}

impl<T: Released> Drop for Owned<T> {
    fn drop(&mut self) {
        if let Some(release) = *self.0.release() {
            // SAFETY: the callback has not been called, or it would be absent.
            unsafe { release(&raw mut self.0) };
        }
    }
}

/// How a column stores its items.
#[derive(Clone, Copy)]
enum Layout {
    /// Integers of so many bytes.
    Integers { bytes: usize, is_signed: bool },
    /// Strings one after the other, between offsets of so many bytes.
    Offsets { bytes: usize },
    /// Views of 16 bytes.
    Views,
    /// No items, or only nulls.
    Nulls,
}

impl Layout {
    /// Returns the layout of the arrays that an object exports with this schema.
    fn of(schema: &Schema, object: &Bound<'_, PyAny>) -> PyResult<Self> {
        if !schema.dictionary.is_null() {
            return Err(type_error(
                "the column is dictionary-encoded; give its values (pyarrow: array.cast(array.type.value_type), polars: \
                 series.cast(pl.String), pandas: series.dropna().astype(series.cat.categories.dtype))"
                    .to_owned(),
            ));
        }
        // SAFETY: the format of a schema that was not released is a string.
        let format = if schema.format.is_null() { c"" } else { unsafe { CStr::from_ptr(schema.format) } };
        Ok(match format.to_bytes() {
            [letter @ (b'c' | b's' | b'i' | b'l')] => Self::Integers { bytes: width(*letter), is_signed: true },
            [letter @ (b'C' | b'S' | b'I' | b'L')] => {
                Self::Integers { bytes: width(letter.to_ascii_lowercase()), is_signed: false }
            }
            b"u" | b"z" => Self::Offsets { bytes: 4 },
            b"U" | b"Z" => Self::Offsets { bytes: 8 },
            b"vu" | b"vz" => Self::Views,
            b"n" => Self::Nulls,
            other => {
                let remedy = match other {
                    b"e" | b"f" | b"g" => NO_FLOATS,
                    [b't', ..] => "cast it to int64 or int32, in the unit of the other items",
                    b"+s" => "give one column of a table",
                    _ => "cast it to one of these, or give a list of its items",
                };
                // Columns of a table may have any name.
                let name = match other {
                    b"+s" => object.get_type().name()?.to_string(),
                    _ => ["dtype", "type"]
                        .iter()
                        .find_map(|name| object.getattr(name).ok())
                        .map_or_else(String::new, |of| of.to_string()),
                };
                return Err(type_error(format!(
                    "the column has the type {name}, but batches are strings, binary and integers; {remedy}"
                )));
            }
        })
    }
}

/// Returns the bytes of an integer type, by the letter of its format.
fn width(letter: u8) -> usize {
    match letter {
        b'c' => 1,
        b's' => 2,
        b'i' => 4,
        _ => 8,
    }
}

/// An array of strings or integers without nulls, whose structure was checked.
pub struct Column {
    array: Owned<Array>,
    layout: Layout,
    start: usize,
    len: usize,
}

// SAFETY: exported arrays do not change, and may be read and released by any thread.
unsafe impl Send for Column {}
// SAFETY: as above.
unsafe impl Sync for Column {}

impl Column {
    /// Imports the arrays of an object that exports some; `None` for other objects.
    pub fn import(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<Self>>> {
        if let Some(export) = object.getattr_opt("__arrow_c_array__")? {
            let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = export.call0()?.extract()?;
            let layout = Layout::of(&Owned::take(&schema)?.0, object)?;
            return Ok(Some(vec![Self::new(Owned::take(&array)?, layout)?]));
        }
        let Some(export) = object.getattr_opt("__arrow_c_stream__")? else { return Ok(None) };
        let exported = match export.call0() {
            // Pandas cannot export without pyarrow, nor columns of different objects.
            Err(error) if error.is_instance_of::<PyException>(object.py()) && object.hasattr("__array__")? => return Ok(None),
            exported => exported?,
        };
        let mut stream = Owned::<Stream>::take(&exported)?;
        let mut schema = Owned::<Schema>::empty();
        stream.call(stream.0.get_schema, &mut schema)?;
        let layout = Layout::of(&schema.0, object)?;
        let mut columns = Vec::new();
        loop {
            let mut array = Owned::<Array>::empty();
            stream.call(stream.0.get_next, &mut array)?;
            if array.0.release.is_none() {
                return Ok(Some(columns));
            }
            columns.push(Self::new(array, layout)?);
        }
    }

    fn new(array: Owned<Array>, layout: Layout) -> PyResult<Self> {
        let Array { length, offset, n_buffers, .. } = array.0;
        // A sum of these, in units of 16 bytes, must be a valid size.
        let most = i64::MAX >> 6;
        let (Ok(len), Ok(start)) = (usize::try_from(length), usize::try_from(offset)) else {
            return Err(invalid(&format!("length {length} and offset {offset}")));
        };
        let needed = match layout {
            Layout::Integers { .. } => 2..=2,
            Layout::Offsets { .. } => 3..=3,
            Layout::Views => 3..=most,
            Layout::Nulls => 0..=1,
        };
        let has_buffers = n_buffers == 0 || !array.0.buffers.is_null();
        if length > most || offset > most || !needed.contains(&n_buffers) || !has_buffers {
            return Err(invalid(&format!("length {length}, offset {offset} and {n_buffers} buffers")));
        }
        let column = Self { array, layout, start, len };
        if len > 0 && matches!(layout, Layout::Nulls) {
            return Err(nulls(len, len));
        }
        if len > 0 {
            if column.buffer(1).is_null() {
                return Err(invalid("no data"));
            }
            column.check_nulls()?;
            column.check_strings()?;
        }
        Ok(column)
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the items if they are integers of 64 bits, aligned.
    #[allow(clippy::cast_ptr_alignment, reason = "it is checked before use")]
    pub fn words(&self) -> Option<&[u64]> {
        if !matches!(self.layout, Layout::Integers { bytes: 8, .. }) || self.len == 0 {
            return None;
        }
        let data = self.buffer(1).cast::<u64>();
        if !data.is_aligned() {
            return None;
        }
        // SAFETY: the buffer has `start + len` integers, and is aligned.
        Some(unsafe { slice::from_raw_parts(data.add(self.start), self.len) })
    }

    /// Appends the hashes of these items.
    pub fn hash(&self, range: Range<usize>, seed: u64, hashes: &mut Vec<u64>) {
        assert!(range.end <= self.len, "the caller stays within the column");
        match self.layout {
            Layout::Integers { bytes: 1, is_signed: true } => {
                self.hash_integers::<i8>(range, seed, hashes, |n| i64::from(n).cast_unsigned());
            }
            Layout::Integers { bytes: 2, is_signed: true } => {
                self.hash_integers::<i16>(range, seed, hashes, |n| i64::from(n).cast_unsigned());
            }
            Layout::Integers { bytes: 4, is_signed: true } => {
                self.hash_integers::<i32>(range, seed, hashes, |n| i64::from(n).cast_unsigned());
            }
            Layout::Integers { bytes: 1, .. } => self.hash_integers::<u8>(range, seed, hashes, u64::from),
            Layout::Integers { bytes: 2, .. } => self.hash_integers::<u16>(range, seed, hashes, u64::from),
            Layout::Integers { bytes: 4, .. } => self.hash_integers::<u32>(range, seed, hashes, u64::from),
            Layout::Integers { .. } => self.hash_integers::<u64>(range, seed, hashes, |n| n),
            Layout::Offsets { bytes: 4 } => hashes.extend(range.map(|item| hash(seed, self.between::<i32>(item)))),
            Layout::Offsets { .. } => hashes.extend(range.map(|item| hash(seed, self.between::<i64>(item)))),
            Layout::Views => hashes.extend(range.map(|item| hash(seed, self.viewed(item)))),
            Layout::Nulls => {}
        }
    }

    fn hash_integers<T: Copy>(&self, range: Range<usize>, seed: u64, hashes: &mut Vec<u64>, widen: impl Fn(T) -> u64) {
        hashes.extend(range.map(|item| hash(seed, &widen(self.read::<T>(1, self.start + item)))));
    }

    /// Returns the start of a buffer.
    fn buffer(&self, number: usize) -> *const u8 {
        // SAFETY: `new` has checked that there are so many buffers, and callers that there is this one.
        unsafe { *self.array.0.buffers.add(number) }.cast()
    }

    /// Reads a number of a buffer. Callers stay within `start + len` numbers, or one more for offsets.
    fn read<T: Copy>(&self, buffer: usize, place: usize) -> T {
        // SAFETY: the interface promises that the buffer has so many numbers. They need not be aligned.
        unsafe { self.buffer(buffer).cast::<T>().add(place).read_unaligned() }
    }

    /// Returns a string between two offsets, which `check_strings` has checked.
    fn between<T: Copy + Into<i64>>(&self, item: usize) -> &[u8] {
        let [start, end] = [0, 1].map(|next| Into::<i64>::into(self.read::<T>(1, self.start + item + next)));
        self.bytes(2, start, end - start)
    }

    /// Returns the string of a view, which `check_strings` has checked.
    #[allow(clippy::cast_possible_wrap, reason = "arrays have fewer than 2⁶³ items")]
    fn viewed(&self, item: usize) -> &[u8] {
        let place = 4 * (self.start + item);
        let len: i32 = self.read(1, place);
        if len <= 12 {
            return self.bytes(1, 4 * (place as i64 + 1), len.into());
        }
        let (buffer, start): (i32, i32) = (self.read(1, place + 2), self.read(1, place + 3));
        self.bytes(2 + buffer.cast_unsigned() as usize, start.into(), len.into())
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked when the column was made")]
    fn bytes(&self, buffer: usize, start: i64, len: i64) -> &[u8] {
        if len == 0 {
            return &[];
        }
        // SAFETY: the range was checked as far as the interface allows; the producer promises the rest.
        unsafe { slice::from_raw_parts(self.buffer(buffer).add(start as usize), len as usize) }
    }

    /// Fails if an item is null.
    fn check_nulls(&self) -> PyResult<()> {
        let validity = self.buffer(0);
        let count = match self.array.0.null_count {
            0 => 0,
            count if validity.is_null() => usize::try_from(count).unwrap_or(0),
            _ => (self.start..self.start + self.len).filter(|bit| self.read::<u8>(0, bit / 8) >> (bit % 8) & 1 == 0).count(),
        };
        if count == 0 { Ok(()) } else { Err(nulls(count, self.len)) }
    }

    /// Fails if a string is not within the data, as far as that is known.
    fn check_strings(&self) -> PyResult<()> {
        match self.layout {
            Layout::Integers { .. } | Layout::Nulls => Ok(()),
            Layout::Offsets { bytes: 4 } => self.check_offsets::<i32>(),
            Layout::Offsets { .. } => self.check_offsets::<i64>(),
            Layout::Views => self.check_views(),
        }
    }

    fn check_offsets<T: Copy + Into<i64>>(&self) -> PyResult<()> {
        let offset = |place| Into::<i64>::into(self.read::<T>(1, self.start + place));
        let is_sorted = (0..self.len).fold(offset(0) >= 0, |is_sorted, item| is_sorted & (offset(item) <= offset(item + 1)));
        if !is_sorted || self.buffer(2).is_null() && offset(self.len) > offset(0) {
            return Err(invalid("offsets that decrease, or no data"));
        }
        Ok(())
    }

    fn check_views(&self) -> PyResult<()> {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at least 3, as checked by `new`")]
        let data = self.array.0.n_buffers as usize - 3;
        let is_valid = |item| {
            let place = 4 * (self.start + item);
            let len: i32 = self.read(1, place);
            if len <= 12 {
                return len >= 0;
            }
            let (buffer, start): (i32, i32) = (self.read(1, place + 2), self.read(1, place + 3));
            let is_known = |buffer: usize| {
                // The last buffer has the lengths of the data buffers.
                buffer < data && !self.buffer(2 + buffer).is_null() && {
                    i64::from(start) + i64::from(len) <= self.read::<i64>(2 + data, buffer)
                }
            };
            start >= 0 && !(data > 0 && self.buffer(2 + data).is_null()) && usize::try_from(buffer).is_ok_and(is_known)
        };
        match (0..self.len).find(|&item| !is_valid(item)) {
            Some(item) => Err(invalid(&format!("a view that leads outside its data, of item {item}"))),
            None => Ok(()),
        }
    }
}

impl Owned<Stream> {
    /// Calls a callback of the stream, which fills `result`.
    fn call<T: Released>(
        &mut self,
        callback: Option<unsafe extern "C" fn(*mut Stream, *mut T) -> c_int>,
        result: &mut Owned<T>,
    ) -> PyResult<()> {
        let callback = callback.ok_or_else(|| invalid("a stream without callbacks"))?;
        // SAFETY: neither the stream nor the struct to fill is in use otherwise.
        if unsafe { callback(&raw mut self.0, &raw mut result.0) } == 0 {
            return Ok(());
        }
        // SAFETY: as above; the message is valid until the next call.
        let message = self.0.get_last_error.map(|get| unsafe { get(&raw mut self.0) }).filter(|message| !message.is_null());
        // SAFETY: the message is a string.
        let message = message.map_or(c"no reason given", |message| unsafe { CStr::from_ptr(message) });
        Err(PyValueError::new_err(format!("the Arrow stream failed: {}", message.to_string_lossy())))
    }
}

#[inline]
fn hash<T: Item + ?Sized>(seed: u64, item: &T) -> u64 {
    Prehashed::of(&Xxh3, seed, item).0
}

fn nulls(count: usize, len: usize) -> PyErr {
    PyValueError::new_err(format!(
        "{count} of {len} items in an array are null, and a filter stores no nulls; leave them out (pyarrow: drop_null(), polars: \
         drop_nulls(), pandas: dropna()) or replace them"
    ))
}

fn invalid(what: &str) -> PyErr {
    PyValueError::new_err(format!("the Arrow array is invalid: it has {what}; its producer has a defect"))
}
