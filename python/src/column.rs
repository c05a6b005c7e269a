//! Columns: items that are read without the interpreter, in stretches and pieces.

use std::ops::Range;

use pyo3::prelude::*;

use crate::lock::check_signals;

/// The most items that are hashed before the filter is locked, where they are not integers of 64 bits.
pub const PIECE: usize = 1 << 15;

/// The most items of an array between two checks for Ctrl-C. It is longer than `PIECE` because a check may wait for the interpreter.
pub const STRETCH: usize = 1 << 20;

/// Calls `act` with one stretch of `len` items after the other, and handlers of signals between them. The thread must be detached.
pub fn each_stretch(len: usize, mut act: impl FnMut(Range<usize>) -> PyResult<()>) -> PyResult<()> {
    for first in (0..len).step_by(STRETCH) {
        if first > 0 {
            check_signals()?;
        }
        act(first..len.min(first + STRETCH))?;
    }
    Ok(())
}

/// Returns the first of `len` items for which `is_wanted` is true. Calls handlers of signals as `each_stretch` does.
pub fn find(len: usize, mut is_wanted: impl FnMut(usize) -> bool) -> PyResult<Option<usize>> {
    for first in (0..len).step_by(STRETCH) {
        if first > 0 {
            check_signals()?;
        }
        if let Some(item) = (first..len.min(first + STRETCH)).find(|&item| is_wanted(item)) {
            return Ok(Some(item));
        }
    }
    Ok(None)
}

/// Items of a batch that can be read without the interpreter.
pub trait Column: Send + Sync {
    /// Returns the number of items, with nulls.
    fn len(&self) -> usize;
    /// Returns the number of nulls.
    fn nulls(&self) -> usize;
    /// Returns whether an item is null.
    fn is_null(&self, item: usize) -> bool;
    /// Returns the items if they are integers of 64 bits, in one piece, and none is null.
    fn words(&self) -> Option<&[u64]>;
    /// Appends the hashes of the items that are not null.
    fn hash(&self, range: Range<usize>, seed: u64, hashes: &mut Vec<u64>);
}
