//! Batches as pieces that the library takes.

use std::ops::Range;

use koel::InsertError;
use numpy::PyUntypedArray;
use pyo3::prelude::*;

use crate::{
    array::{self, Source},
    arrow,
    column::{Column, PIECE, STRETCH, find},
    error::{IntoPyErr as _, no_memory},
    item,
    remedy::{Nullable, Subject},
};

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
pub(crate) use with_items;

/// The items of one call.
pub struct Batch<'py> {
    source: Source<'py>,
    subject: Subject<'py>,
    nullable: Nullable,
    /// The first place in the columns whose value is no item, and its error.
    wrong: Option<(usize, PyErr)>,
}

impl<'py> Batch<'py> {
    /// Returns a batch whose nulls, if it has some, are left out in the usual way.
    pub fn new(source: Source<'py>, subject: Subject<'py>) -> Self {
        Self { source, subject, nullable: Nullable::Plain, wrong: None }
    }

    /// Returns the batch with the first place in its columns whose value is no item, and its error.
    pub fn with_wrong(self, wrong: Option<(usize, PyErr)>) -> Self {
        Self { wrong, ..self }
    }

    /// Reads an array as a batch.
    pub fn of_array(array: &Bound<'py, PyUntypedArray>, subject: Subject<'py>) -> PyResult<Self> {
        Ok(Self::new(array::read(array, &subject)?, subject))
    }

    /// Returns the batch of the arrays that an object has exported.
    pub fn of_columns(columns: Vec<arrow::Column>, subject: Subject<'py>) -> Self {
        let nullable = columns.first().map_or(Nullable::Plain, arrow::Column::nullable);
        let columns = columns.into_iter().map(|column| Box::new(column) as Box<dyn Column>);
        Self { nullable, ..Self::new(Source::Columns(columns.collect()), subject) }
    }

    /// Returns an empty vector with room for a result for each item, as far as their number is known.
    pub fn reserve<T>(&self) -> PyResult<Vec<T>> {
        let (mut results, len) = (Vec::new(), self.len_hint());
        results.try_reserve_exact(len).map_err(|_| no_room(len))?;
        Ok(results)
    }

    /// Returns the number of items as far as it is known before they are read. Iterators may claim any.
    fn len_hint(&self) -> usize {
        match &self.source {
            Source::Columns(columns) => columns.iter().map(|column| column.len()).sum(),
            Source::Objects(objects, _) => objects.len_hint(),
        }
    }

    /// Fails if an item is null. `start` is the number of items in earlier batches of a call.
    fn refuse_nulls(&self, py: Python<'_>, start: usize) -> PyResult<()> {
        let count = match &self.source {
            Source::Columns(columns) => columns.iter().map(|column| column.nulls()).sum(),
            Source::Objects(_, nulls) => nulls.count(),
        };
        if count == 0 {
            return Ok(());
        }
        let len = self.len_hint();
        let mut before = 0;
        let first = match &self.source {
            Source::Columns(columns) => {
                let column = columns.iter().find(|column| {
                    let has_nulls = column.nulls() > 0;
                    before += if has_nulls { 0 } else { column.len() };
                    has_nulls
                });
                column.map_or(Ok(None), |column| py.detach(|| find(column.len(), |item| column.is_null(item))))
            }
            Source::Objects(_, nulls) => py.detach(|| find(len, |item| nulls.is_null(item))),
        };
        Err(self.subject.null(start + before + first?.unwrap_or(0), count, len, self.nullable))
    }

    /// Calls `act` with one piece after the other, detached from the interpreter. Nulls raise before the first. `done` is the number of
    /// items in earlier batches of a call, and counts those that `act` has processed: if an item fails, all before it, and if a signal
    /// handler raises an exception, those of whole pieces.
    pub fn each(
        self,
        py: Python<'_>,
        seed: u64,
        done: &mut usize,
        mut act: impl FnMut(Keys<'_>) -> PyResult<Result<(), InsertError>> + Send,
    ) -> PyResult<()> {
        self.refuse_nulls(py, *done)?;
        self.pieces(py, seed, done, |keys, _| act(keys))
    }

    /// Calls `look` with one piece after the other, without the nulls.
    pub fn each_present(self, py: Python<'_>, seed: u64, mut look: impl FnMut(Keys<'_>) -> PyResult<()> + Send) -> PyResult<()> {
        self.pieces(py, seed, &mut 0, |keys, _| look(keys).map(Ok))
    }

    /// Calls `look` with one piece after the other, and a slice for the results of these items. Those of nulls are the default.
    pub fn look_up<T: Copy + Default + Send>(
        self,
        py: Python<'_>,
        seed: u64,
        mut look: impl FnMut(Keys<'_>, &mut [T]) -> PyResult<()> + Send,
    ) -> PyResult<Vec<T>> {
        let mut results = self.reserve()?;
        self.pieces(py, seed, &mut 0, |keys, present| {
            let (start, known) = (results.len(), keys.len());
            add_places(&mut results, present.map_or(known, <[bool]>::len))?;
            look(keys, &mut results[start..start + known])?;
            if let Some(present) = present {
                spread(&mut results[start..], known, present);
            }
            Ok(Ok(()))
        })?;
        Ok(results)
    }

    /// Calls `act` with one piece after the other, detached from the interpreter, and with which of its items are no nulls, if there
    /// are nulls. `done` counts as in [`each`](Self::each).
    fn pieces(
        self,
        py: Python<'_>,
        seed: u64,
        done: &mut usize,
        mut act: impl FnMut(Keys<'_>, Option<&[bool]>) -> PyResult<Result<(), InsertError>> + Send,
    ) -> PyResult<()> {
        let (mut hashes, mut present) = (Vec::with_capacity(self.len_hint().min(PIECE)), Vec::new());
        match self.source {
            Source::Columns(columns) => {
                let (mut left, error) = self.wrong.map_or((usize::MAX, None), |(place, error)| (place, Some(error)));
                for column in &columns {
                    let len = column.len().min(left);
                    left -= len;
                    for first in (0..len).step_by(STRETCH) {
                        let stretch = first..len.min(first + STRETCH);
                        py.detach(|| each_of_column(&**column, stretch, seed, &mut hashes, &mut present, done, &mut act))?;
                        py.check_signals()?;
                    }
                }
                error.map_or(Ok(()), |error| Err(item::at(py, error, *done)))?;
            }
            Source::Objects(mut objects, nulls) => {
                for first in (0..).step_by(PIECE) {
                    hashes.clear();
                    present.clear();
                    let read = objects.by_ref().take(PIECE).try_for_each(|object| {
                        let (place, is_null) = (*done + present.len(), nulls.is_null(first + present.len()));
                        let hash = |object| item::hash(seed, &object).map_err(|error| item::at(py, error, place));
                        hashes.extend(object.and_then(|object| if is_null { Ok(None) } else { hash(object).map(Some) })?);
                        present.push(!is_null);
                        PyResult::Ok(())
                    });
                    // Items before one that fails are processed, as by the methods of a set. They may be nowhere else: iterators do not
                    // go back.
                    let nulls = (hashes.len() < present.len()).then_some(&*present);
                    py.detach(|| process(Keys::Hashes(&hashes), nulls, done, &mut act))?;
                    read?;
                    py.check_signals()?;
                    if present.len() < PIECE {
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Appends places for the results of a piece. Iterators may have more items than [`Batch::reserve`] knew of.
pub fn add_places<T: Copy + Default>(results: &mut Vec<T>, items: usize) -> PyResult<()> {
    let len = results.len() + items;
    results.try_reserve(items).map_err(|_| no_room(len))?;
    results.resize(len, T::default());
    Ok(())
}

fn no_room(results: usize) -> PyErr {
    no_memory(&format!("{results} results; pass fewer items at a time"))
}

/// Calls `act` with a piece, and counts the items that it processed.
fn process(
    keys: Keys<'_>,
    present: Option<&[bool]>,
    done: &mut usize,
    act: &mut impl FnMut(Keys<'_>, Option<&[bool]>) -> PyResult<Result<(), InsertError>>,
) -> PyResult<()> {
    let len = present.map_or(keys.len(), <[bool]>::len);
    match act(keys, present)? {
        Ok(()) => {
            *done += len;
            Ok(())
        }
        Err(error) => {
            let error = error.after(*done);
            *done = error.position();
            Err(error.into_py_err())
        }
    }
}

/// Moves the results of `known` items to the places of those that are present.
fn spread<T: Copy + Default>(results: &mut [T], mut known: usize, present: &[bool]) {
    for (place, &is_present) in present.iter().enumerate().rev() {
        results[place] = if is_present {
            known -= 1;
            results[known]
        } else {
            T::default()
        };
    }
}

/// Calls `act` with one piece of a stretch after the other.
fn each_of_column(
    column: &dyn Column,
    stretch: Range<usize>,
    seed: u64,
    hashes: &mut Vec<u64>,
    present: &mut Vec<bool>,
    done: &mut usize,
    act: &mut impl FnMut(Keys<'_>, Option<&[bool]>) -> PyResult<Result<(), InsertError>>,
) -> PyResult<()> {
    if let Some(words) = column.words() {
        return process(Keys::Words(&words[stretch]), None, done, act);
    }
    for first in stretch.clone().step_by(PIECE) {
        let piece = first..stretch.end.min(first + PIECE);
        hashes.clear();
        column.hash(piece.clone(), seed, hashes);
        present.clear();
        if column.nulls() > 0 {
            present.extend(piece.clone().map(|item| !column.is_null(item)));
        }
        let nulls = (hashes.len() < piece.len()).then_some(&**present);
        process(Keys::Hashes(hashes), nulls, done, act)?;
    }
    Ok(())
}

/// Calls `act` with `samples` pseudo-random hashes in pieces, detached from the interpreter. Every call generates the same hashes.
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
