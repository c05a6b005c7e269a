//! Storage of a table's bytes: memory that the filter owns, or a snapshot that the caller holds. Both dereference to the table and
//! the padding behind it.

mod memory;

use alloc::{
    alloc::{Layout, handle_alloc_error},
    vec::Vec,
};
use core::{error::Error, fmt, hint::black_box, ops::Deref};

use crate::bits::PADDING;
pub(crate) use memory::Owned;

/// A table and its [`PADDING`] in memory that the filter owns, the storage of a [`CuckooFilter`](crate::CuckooFilter).
impl Owned {
    /// Allocates an empty table with padding. Returns `None` if the allocation fails.
    pub fn zeroed(table_bytes: usize) -> Option<Self> {
        Self::zeros(table_bytes.checked_add(PADDING)?)
    }

    /// Copies a table and adds padding. Returns `None` if the allocation fails.
    pub fn copied(table: &[u8]) -> Option<Self> {
        Self::followed_by(table, PADDING)
    }
}

/// A table inside a snapshot or a bare table, held in `D`: the storage of a [`FilterView`](crate::FilterView).
#[derive(Clone)]
pub(crate) struct Snapshot<D> {
    pub data: D,
    /// The offset of the table: the length of a header, or 0 for a bare table.
    pub start: usize,
    /// The end of the snapshot, whose trailer serves as padding, or the end of a bare table's padding. The data was at least as
    /// long when it was wrapped.
    pub end: usize,
}

impl<D: AsRef<[u8]>> Snapshot<D> {
    /// Returns true if there is no header.
    pub(crate) fn is_bare(&self) -> bool {
        self.start == 0
    }

    /// Returns all bytes up to the end. Calls `as_ref` and checks the length on every access, because an `AsRef` implementation may
    /// return different bytes each time.
    #[inline]
    pub(crate) fn all(&self) -> &[u8] {
        match self.data.as_ref().get(..self.end) {
            Some(bytes) => bytes,
            None => shrunk(),
        }
    }
}

/// The table and the [`PADDING`] behind it.
impl<D: AsRef<[u8]>> Deref for Snapshot<D> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self.data.as_ref().get(self.start..self.end) {
            Some(bytes) => bytes,
            None => shrunk(),
        }
    }
}

#[cold]
#[inline(never)]
fn shrunk() -> ! {
    panic!("the data of a view became shorter: its `as_ref` must always return the same bytes")
}

/// The bytes of a table.
pub(crate) trait Bytes: Deref<Target = [u8]> {
    /// True if extra copies may be in memory beside the bytes: in filters that are changed. Views have no code for them.
    const HAS_COPIES_BESIDE: bool = false;
}

impl Bytes for Owned {
    const HAS_COPIES_BESIDE: bool = true;
}

impl<D: AsRef<[u8]>> Bytes for Snapshot<D> {}
impl Bytes for &[u8] {}
impl Bytes for &mut [u8] {}

// Fallible allocation.

/// The error of a failed memory allocation. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    bytes: usize,
}

impl OutOfMemory {
    pub(crate) fn of(bytes: usize) -> Self {
        Self { bytes }
    }

    /// Returns the number of bytes requested.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Aborts the program, as functions do that return no error.
    #[cold]
    pub(crate) fn abort(self) -> ! {
        handle_alloc_error(Layout::array::<u8>(self.bytes).unwrap_or(Layout::new::<u8>()))
    }
}

/// Converts to the kind [`OutOfMemory`](std::io::ErrorKind::OutOfMemory) without a message, which would need memory.
#[cfg(feature = "std")]
impl From<OutOfMemory> for std::io::Error {
    fn from(_: OutOfMemory) -> Self {
        std::io::ErrorKind::OutOfMemory.into()
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes } = self;
        write!(
            f,
            "{bytes} bytes of memory could not be allocated; use a smaller capacity, a higher false-positive rate, or a machine \
             with more memory"
        )
    }
}

impl Error for OutOfMemory {}

/// Returns an empty vector with room for `len` elements.
pub(crate) fn reserved<T>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(len).map_err(|_| OutOfMemory::of(len.saturating_mul(size_of::<T>())))?;
    Ok(vector)
}

/// Collects elements in a vector, up to the first error.
pub(crate) fn collected<T, E: From<OutOfMemory>>(elements: impl ExactSizeIterator<Item = Result<T, E>>) -> Result<Vec<T>, E> {
    let mut vector = reserved(elements.len())?;
    for element in elements {
        vector.push(element?);
    }
    Ok(vector)
}

/// Copies elements to a vector.
pub(crate) fn copied<T: Copy>(elements: &[T]) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = reserved(elements.len())?;
    vector.extend_from_slice(elements);
    Ok(vector)
}

/// Fails if the system refuses a single request for this much memory, which callers then take in pieces. Linux grants pieces of
/// memory that it does not have, and ends the program that uses them.
///
/// Passes with 32 bits, where free addresses may be in several pieces, and for less than 1 GiB: some allocators serve later
/// requests differently after a smaller one was freed.
pub(crate) fn check_memory(bytes: usize) -> Result<(), OutOfMemory> {
    const ENOUGH_TO_ASK: usize = 1 << 30;
    if cfg!(target_pointer_width = "64") && bytes >= ENOUGH_TO_ASK {
        // Compilers may remove an allocation that is not used.
        black_box(reserved::<u8>(bytes)?);
    }
    Ok(())
}

/// Makes room for exactly `more` further elements.
pub(crate) fn reserve_exact<T>(vector: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    let needed = (vector.len() + more).saturating_mul(size_of::<T>());
    vector.try_reserve_exact(more).map_err(|_| OutOfMemory::of(needed))
}

/// Shrinks the capacity to `capacity` elements, or to the length if that is more. If the allocation fails, the vector stays
/// unchanged, where `Vec::shrink_to` would abort the process.
pub(crate) fn shrink_to<T>(vector: &mut Vec<T>, capacity: usize) {
    let capacity = vector.len().max(capacity);
    if vector.capacity() > capacity
        && let Ok(mut smaller) = reserved(capacity)
    {
        smaller.append(vector);
        *vector = smaller;
    }
}

/// Makes room for at least `more` further elements.
pub(crate) fn reserve<T>(vector: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    let needed = (vector.len() + more).saturating_mul(size_of::<T>());
    vector.try_reserve(more).map_err(|_| OutOfMemory::of(needed))
}
