//! Columns of other libraries, through Arrow's C data interface: strings, byte strings and integers, and dictionaries of these, read in
//! place.

#![allow(unsafe_code, reason = "the interface consists of C structs with pointers")]

use std::{
    ffi::{CStr, c_char, c_int, c_void},
    iter, mem,
    ops::Range,
    ptr, slice,
    sync::OnceLock,
};

use pyo3::{
    exceptions::{PyException, PyValueError},
    prelude::*,
    types::PyCapsule,
};

use crate::{
    cells::{Cell, Cells, hash},
    column::{self, Column as _, STRETCH, each_stretch},
    remedy::{Library, Nullable, Refused, Subject},
};

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

/// How an array stores its values.
#[derive(Clone, Copy)]
enum Layout {
    /// Integers, or byte strings of a fixed length.
    Cells(Cell),
    /// Strings one after the other, between offsets that have `bytes` bytes each.
    Offsets { bytes: usize },
    /// Views of 16 bytes.
    Views { is_text: bool },
    /// No values, or only nulls.
    Nulls,
}

impl Layout {
    /// Returns the layout of the arrays of a schema, or why a batch cannot have it.
    fn of(schema: &Schema) -> Result<Self, Refused> {
        if is_extension(schema.metadata) {
            return Err(Refused::Extension);
        }
        let integer = |bytes, is_signed| Self::Cells(Cell::Integer { bytes, is_signed, is_swapped: false });
        // SAFETY: the format of a schema that was not released is a string.
        let format = if schema.format.is_null() { c"" } else { unsafe { CStr::from_ptr(schema.format) } };
        Ok(match format.to_bytes() {
            b"c" => integer(1, true),
            b"s" => integer(2, true),
            b"i" => integer(4, true),
            b"l" => integer(8, true),
            b"C" => integer(1, false),
            b"S" => integer(2, false),
            b"I" => integer(4, false),
            b"L" => integer(8, false),
            b"u" | b"z" => Self::Offsets { bytes: 4 },
            b"U" | b"Z" => Self::Offsets { bytes: 8 },
            b"vu" => Self::Views { is_text: true },
            b"vz" => Self::Views { is_text: false },
            b"n" => Self::Nulls,
            [b'w', b':', digits @ ..] => {
                let bytes = str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u32>().ok());
                Self::Cells(Cell::Bytes(bytes.ok_or(Refused::Other)? as usize))
            }
            b"e" | b"f" | b"g" => return Err(Refused::Float),
            b"b" => return Err(Refused::Bool),
            b"tdD" | b"tts" | b"ttm" => return Err(Refused::Time { bits: 32 }),
            [b't', b'd' | b't' | b's' | b'D', ..] => return Err(Refused::Time { bits: 64 }),
            [b'd', b':', ..] => return Err(Refused::Decimal),
            b"_pli128" | b"_plu128" => return Err(Refused::LongInteger),
            b"+s" => return Err(Refused::Struct),
            b"+r" => return Err(Refused::Runs),
            [b'+', b'l' | b'L' | b'w', ..] | b"+vl" | b"+vL" => return Err(Refused::List),
            _ => return Err(Refused::Other),
        })
    }
}

/// Returns whether a schema's metadata names an extension type, whose values are not those of its storage.
fn is_extension(metadata: *const c_char) -> bool {
    let mut place = metadata.cast::<u8>();
    // SAFETY: metadata is a number of pairs of keys and values, each with its length before it.
    unsafe {
        let pairs = if place.is_null() { 0 } else { length(&mut place).unwrap_or(0) };
        for _ in 0..pairs {
            let (key, value) = (text(&mut place), text(&mut place));
            if key == Some(b"ARROW:extension:name") {
                return true;
            }
            if key.is_none() || value.is_none() {
                break;
            }
        }
    }
    false
}

/// Reads a length, and goes on behind it; `None` if it is negative.
unsafe fn length(place: &mut *const u8) -> Option<usize> {
    // SAFETY: the caller says that there is one.
    unsafe {
        let length = place.cast::<i32>().read_unaligned();
        *place = place.add(size_of::<i32>());
        usize::try_from(length).ok()
    }
}

/// Reads a text behind its length, and goes on behind it.
unsafe fn text<'a>(place: &mut *const u8) -> Option<&'a [u8]> {
    // SAFETY: the caller says that there is one.
    unsafe {
        let length = length(place)?;
        let text = slice::from_raw_parts(*place, length);
        *place = place.add(length);
        Some(text)
    }
}

/// How a column stores its items.
#[derive(Clone, Copy)]
struct Form {
    layout: Layout,
    /// The layout of the values that the items are indices of.
    dictionary: Option<Layout>,
}

impl Form {
    /// Returns the form of the arrays of a schema, or why a batch cannot have it, and whether that is because of a dictionary's values.
    fn of(schema: &Schema) -> Result<Self, (Refused, bool)> {
        let layout = Layout::of(schema).map_err(|refused| (refused, false))?;
        if schema.dictionary.is_null() {
            return Ok(Self { layout, dictionary: None });
        }
        // SAFETY: a schema that was not released has a valid dictionary.
        let dictionary = unsafe { &*schema.dictionary };
        if !dictionary.dictionary.is_null() || !matches!(layout, Layout::Cells(Cell::Integer { .. })) {
            return Err((Refused::Other, false));
        }
        let values = Layout::of(dictionary).map_err(|refused| (refused, true))?;
        Ok(Self { layout, dictionary: Some(values) })
    }
}

/// The values of an array, which something else keeps.
struct Values {
    layout: Layout,
    start: usize,
    len: usize,
    buffers: *const *const c_void,
    n_buffers: usize,
    /// The values, if they have a fixed width.
    cells: Option<Cells>,
    /// A bit for each value that is not null; none if there are no nulls.
    validity: *const u8,
}

impl Values {
    /// Checks the structure of an array, except what depends on its values.
    fn of(array: &Array, layout: Layout) -> PyResult<Self> {
        let Array { length, offset, n_buffers, null_count, buffers, .. } = *array;
        // A sum of these, in units of 16 bytes, must be a valid size.
        let most = i64::MAX >> 6;
        let needed = match layout {
            Layout::Cells(_) => 2..=2,
            Layout::Offsets { .. } => 3..=3,
            Layout::Views { .. } => 3..=most,
            Layout::Nulls => 0..=1,
        };
        let sizes = [length, offset, n_buffers].map(usize::try_from);
        let [Ok(len), Ok(start), Ok(number)] = sizes else {
            return Err(invalid(&format!("length {length}, offset {offset} and {n_buffers} buffers")));
        };
        if length > most || offset > most || !needed.contains(&n_buffers) || n_buffers > 0 && buffers.is_null() {
            return Err(invalid(&format!("length {length}, offset {offset} and {n_buffers} buffers")));
        }
        let buffers = buffers.cast_const().cast::<*const c_void>();
        let mut values = Self { layout, start, len, buffers, n_buffers: number, cells: None, validity: ptr::null() };
        if len == 0 || matches!(layout, Layout::Nulls) {
            return Ok(values);
        }
        let bytes = if let Layout::Cells(cell) = layout { cell.bytes() } else { 16 };
        if (start + len).checked_mul(bytes).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
            return Err(invalid(&format!("length {length} and offset {offset} of {bytes} bytes each")));
        }
        if values.buffer(1).is_null() && bytes > 0 {
            return Err(invalid("no data"));
        }
        if let Layout::Cells(cell) = layout {
            let first = values.buffer(1).wrapping_add(start * bytes);
            // SAFETY: the interface promises `len` values, which stay as they are while the array is kept.
            values.cells = Some(unsafe { Cells::new(first, bytes.cast_signed(), len, cell) });
        }
        if null_count != 0 {
            values.validity = values.buffer(0);
            if null_count > 0 && values.validity.is_null() {
                return Err(invalid(&format!("{null_count} nulls, but does not say which")));
            }
        }
        Ok(values)
    }

    /// Returns the start of a buffer.
    fn buffer(&self, number: usize) -> *const u8 {
        debug_assert!(number < self.n_buffers);
        // SAFETY: `of` has checked that there are `n_buffers` buffers, and callers that this is one of them.
        unsafe { *self.buffers.add(number) }.cast()
    }

    /// Reads a number of a buffer. Callers stay within `start + len` numbers, or one more for offsets.
    fn read<T: Copy>(&self, buffer: usize, place: usize) -> T {
        // SAFETY: callers stay within the numbers that the interface promises. They need not be aligned.
        unsafe { self.buffer(buffer).cast::<T>().add(place).read_unaligned() }
    }

    #[inline]
    fn is_null(&self, item: usize) -> bool {
        let bit = self.start + item;
        // SAFETY: the interface promises a bit for each value.
        matches!(self.layout, Layout::Nulls)
            || !self.validity.is_null() && unsafe { *self.validity.add(bit / 8) } >> (bit % 8) & 1 == 0
    }

    fn has_nulls(&self) -> bool {
        self.len > 0 && (matches!(self.layout, Layout::Nulls) || !self.validity.is_null())
    }

    /// Appends the hashes of these values.
    fn hash(&self, items: impl Iterator<Item = usize>, seed: u64, hashes: &mut Vec<u64>) {
        if let Some(cells) = &self.cells {
            return cells.hash(items, seed, hashes);
        }
        match self.layout {
            Layout::Offsets { bytes: 4 } => hashes.extend(items.map(|item| hash(seed, self.between::<i32>(item)))),
            Layout::Offsets { .. } => hashes.extend(items.map(|item| hash(seed, self.between::<i64>(item)))),
            Layout::Views { .. } => hashes.extend(items.map(|item| hash(seed, self.viewed(item)))),
            // Without values, or with nulls only.
            Layout::Cells(_) | Layout::Nulls => {}
        }
    }

    /// Returns a string between two offsets, which `check` has checked.
    fn between<T: Copy + Into<i64>>(&self, item: usize) -> &[u8] {
        let [start, end] = [0, 1].map(|next| Into::<i64>::into(self.read::<T>(1, self.start + item + next)));
        self.bytes(2, start, end - start)
    }

    /// Returns the string of a view, which `check` has checked.
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

    /// Fails if a string is not within the data, as far as that is known. The thread must be detached.
    fn check(&self) -> PyResult<()> {
        match self.layout {
            Layout::Offsets { bytes: 4 } => self.check_offsets::<i32>(),
            Layout::Offsets { .. } => self.check_offsets::<i64>(),
            Layout::Views { .. } => each_stretch(self.len, |items| self.check_views(items)),
            // Columns that take no memory may be of any length.
            Layout::Cells(_) | Layout::Nulls => Ok(()),
        }
    }

    /// As `check`, for some of the strings.
    fn check_some(&self, items: impl Iterator<Item = usize>) -> PyResult<()> {
        match self.layout {
            Layout::Cells(_) | Layout::Nulls => Ok(()),
            Layout::Offsets { bytes: 4 } => self.check_some_offsets::<i32>(items),
            Layout::Offsets { .. } => self.check_some_offsets::<i64>(items),
            Layout::Views { .. } => self.check_views(items),
        }
    }

    fn check_offsets<T: Copy + Into<i64>>(&self) -> PyResult<()> {
        let offset = |place| Into::<i64>::into(self.read::<T>(1, self.start + place));
        // Offsets that do not decrease are between the first and the last one.
        each_stretch(self.len, |items| {
            let is_sorted = items.fold(true, |is_sorted, item| is_sorted & (offset(item) <= offset(item + 1)));
            if is_sorted { Ok(()) } else { Err(invalid("offsets that decrease")) }
        })?;
        self.check_some_offsets::<T>(iter::empty())
    }

    fn check_some_offsets<T: Copy + Into<i64>>(&self, mut items: impl Iterator<Item = usize>) -> PyResult<()> {
        if self.len == 0 {
            return Ok(());
        }
        let offset = |place| Into::<i64>::into(self.read::<T>(1, self.start + place));
        let [first, last] = [0, self.len].map(offset);
        let is_within = |item| first <= offset(item) && offset(item) <= offset(item + 1) && offset(item + 1) <= last;
        if first < 0 || self.buffer(2).is_null() && last > first || !items.all(is_within) {
            return Err(invalid("offsets that decrease, or no data"));
        }
        Ok(())
    }

    fn check_views(&self, mut items: impl Iterator<Item = usize>) -> PyResult<()> {
        // The last buffer has the lengths of the data buffers.
        let data = self.n_buffers - 3;
        let is_outside = |&item: &usize| {
            let place = 4 * (self.start + item);
            let len: i32 = self.read(1, place);
            if len <= 12 {
                // The view of a null may be anything.
                return len < 0 && !self.is_null(item);
            }
            let (buffer, start): (i32, i32) = (self.read(1, place + 2), self.read(1, place + 3));
            let is_known = |buffer: usize| {
                buffer < data && !self.buffer(2 + buffer).is_null() && {
                    i64::from(start) + i64::from(len) <= self.read::<i64>(2 + data, buffer)
                }
            };
            let is_within =
                start >= 0 && !(data > 0 && self.buffer(2 + data).is_null()) && usize::try_from(buffer).is_ok_and(is_known);
            !is_within && !self.is_null(item)
        };
        match items.find(is_outside) {
            Some(item) => Err(invalid(&format!("a view that leads outside its data, of item {item}"))),
            None => Ok(()),
        }
    }
}

/// An array whose structure was checked.
pub struct Column {
    values: Values,
    dictionary: Option<Values>,
    nulls: usize,
    /// The hashes of the dictionary's values, from the first use on.
    hashes: OnceLock<Vec<u64>>,
    /// Keeps the memory of the values.
    _array: Owned<Array>,
}

// SAFETY: exported arrays do not change, and may be read and released by any thread.
unsafe impl Send for Column {}
// SAFETY: as above.
unsafe impl Sync for Column {}

impl Column {
    /// Imports the arrays that an object exports; `None` for an object that exports none. `subject` is the object that a caller gave.
    pub fn import(object: &Bound<'_, PyAny>, subject: &Subject<'_>) -> PyResult<Option<Vec<Self>>> {
        let form = |schema: &Schema| match Form::of(schema) {
            // polars has no such type, and exports the addresses of objects.
            Ok(Form { layout: Layout::Cells(Cell::Bytes(_)), .. }) if subject.library() == Library::Polars => {
                Err(subject.refused(Refused::Object))
            }
            Ok(form) => Ok(form),
            Err((refused, false)) => Err(subject.refused(refused)),
            Err((refused, true)) => Err(subject.decoded().refused(refused)),
        };
        if let Some(export) = object.getattr_opt("__arrow_c_array__")? {
            let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = export.call0()?.extract()?;
            let form = form(&Owned::take(&schema)?.0)?;
            return Ok(Some(vec![Self::new(object.py(), Owned::take(&array)?, form)?]));
        }
        let Some(export) = object.getattr_opt("__arrow_c_stream__")? else { return Ok(None) };
        let exported = match export.call0() {
            // The library may lack what it needs to export.
            Err(error) if error.is_instance_of::<PyException>(object.py()) && object.hasattr("__array__")? => return Ok(None),
            exported => exported?,
        };
        let mut stream = Owned::<Stream>::take(&exported)?;
        let mut schema = Owned::<Schema>::empty();
        stream.call(stream.0.get_schema, &mut schema)?;
        let form = form(&schema.0)?;
        let mut columns = Vec::new();
        loop {
            // An array may be too short for a check of its own, and a stream endless.
            object.py().check_signals()?;
            let mut array = Owned::<Array>::empty();
            stream.call(stream.0.get_next, &mut array)?;
            if array.0.release.is_none() {
                return Ok(Some(columns));
            }
            columns.push(Self::new(object.py(), array, form)?);
        }
    }

    fn new(py: Python<'_>, array: Owned<Array>, form: Form) -> PyResult<Self> {
        let values = Values::of(&array.0, form.layout)?;
        let dictionary = match form.dictionary {
            // SAFETY: the interface promises a valid dictionary, which lives as long as the array.
            Some(layout) => Some(match unsafe { array.0.dictionary.as_ref() } {
                Some(dictionary) => Values::of(dictionary, layout)?,
                None => return Err(invalid("no dictionary")),
            }),
            None => None,
        };
        let mut column = Self { values, dictionary, nulls: 0, hashes: OnceLock::new(), _array: array };
        column.nulls = py.detach(|| {
            column.values.check()?;
            column.check_indices()?;
            column.count_nulls()
        })?;
        Ok(column)
    }

    /// Counts the nulls. The thread must be detached.
    fn count_nulls(&self) -> PyResult<usize> {
        let mut nulls = 0;
        if matches!(self.values.layout, Layout::Nulls) {
            // Such a column may be of any length, as it takes no memory.
            nulls = self.len();
        } else if self.values.has_nulls() || self.dictionary.as_ref().is_some_and(Values::has_nulls) {
            each_stretch(self.len(), |items| {
                nulls += items.filter(|&item| self.is_null(item)).count();
                Ok(())
            })?;
        }
        Ok(nulls)
    }

    /// Fails if an index is not within the dictionary, or what it refers to is not valid. The thread must be detached.
    fn check_indices(&self) -> PyResult<()> {
        let Some((cells, dictionary)) = self.indices() else { return Ok(()) };
        let present = |items: Range<usize>| items.filter(|&item| !self.values.is_null(item));
        let index = |item| cells.index(item).filter(|&index| index < dictionary.len);
        each_stretch(self.len(), |items| match present(items).find(|&item| index(item).is_none()) {
            Some(item) => {
                let len = dictionary.len;
                Err(invalid(&format!("an index that is not within the {len} values of its dictionary, of item {item}")))
            }
            None => Ok(()),
        })?;
        // Columns of many short arrays may share a long dictionary.
        if dictionary.len <= self.len() {
            dictionary.check()
        } else {
            each_stretch(self.len(), |items| dictionary.check_some(present(items).filter_map(index)))
        }
    }

    /// Returns the indices and the values of a column with a dictionary.
    fn indices(&self) -> Option<(&Cells, &Values)> {
        self.values.cells.as_ref().zip(self.dictionary.as_ref())
    }

    /// Returns how nulls can be left out of the column.
    pub fn nullable(&self) -> Nullable {
        match (self.values.layout, &self.dictionary) {
            (_, Some(_)) => Nullable::Dictionary,
            (Layout::Views { is_text: true }, None) => Nullable::TextViews,
            (Layout::Views { is_text: false }, None) => Nullable::ByteViews,
            _ => Nullable::Plain,
        }
    }

    fn hash_items(&self, items: impl Iterator<Item = usize>, seed: u64, hashes: &mut Vec<u64>) {
        let Some((cells, dictionary)) = self.indices() else { return self.values.hash(items, seed, hashes) };
        // `check_indices` has checked them.
        let indices = items.map(|item| cells.index(item).unwrap_or_default());
        if dictionary.len > self.len().min(STRETCH) {
            return dictionary.hash(indices, seed, hashes);
        }
        let known = self.hashes.get_or_init(|| {
            let mut known = Vec::with_capacity(dictionary.len);
            // Values of nulls need not be valid.
            for index in 0..dictionary.len {
                if dictionary.is_null(index) {
                    known.push(0);
                } else {
                    dictionary.hash(iter::once(index), seed, &mut known);
                }
            }
            known
        });
        hashes.extend(indices.map(|index| known[index]));
    }
}

impl column::Column for Column {
    fn len(&self) -> usize {
        self.values.len
    }

    fn nulls(&self) -> usize {
        self.nulls
    }

    fn is_null(&self, item: usize) -> bool {
        if self.values.is_null(item) {
            return true;
        }
        let Some((cells, dictionary)) = self.indices() else { return false };
        dictionary.has_nulls() && cells.index(item).is_some_and(|index| dictionary.is_null(index))
    }

    fn words(&self) -> Option<&[u64]> {
        let cells = self.values.cells.as_ref().filter(|_| self.nulls == 0 && self.dictionary.is_none());
        cells.and_then(Cells::words)
    }

    fn hash(&self, range: Range<usize>, seed: u64, hashes: &mut Vec<u64>) {
        assert!(range.end <= self.values.len, "the caller stays within the column");
        if self.nulls == 0 {
            self.hash_items(range, seed, hashes);
        } else {
            self.hash_items(range.filter(|&item| !self.is_null(item)), seed, hashes);
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

fn invalid(what: &str) -> PyErr {
    PyValueError::new_err(format!("the Arrow array is invalid: it has {what}; its producer has a defect"))
}
