//! Where a table's bytes are: in memory owned by the filter, or in a snapshot held by the caller. Both dereference to the table and the
//! padding behind it.

mod memory;

use alloc::vec::Vec;
use core::{
    error::Error,
    fmt,
    ops::{Deref, DerefMut},
};

use crate::bits::PADDING;
use memory::Memory;

/// The length of a snapshot's header in bytes; the table follows it.
pub(crate) const HEADER_BYTES: usize = 64;

/// A table in memory that the filter owns: the storage of a [`CuckooFilter`](crate::CuckooFilter).
#[derive(Clone)]
pub(crate) struct Owned(Memory);

impl Owned {
    /// An empty table and its padding, or `None` if the memory cannot be allocated.
    pub fn zeroed(table_bytes: usize) -> Option<Self> {
        Memory::zeroed(table_bytes.checked_add(PADDING)?).map(Self)
    }

    /// A copy of a table, with padding, or `None` if the memory cannot be allocated.
    pub fn copied(table: &[u8]) -> Option<Self> {
        Memory::copied(table, PADDING).map(Self)
    }

    /// Takes over a vector that holds a table and its padding, or `None` if memory cannot be allocated.
    pub fn from_vec(padded: Vec<u8>) -> Option<Self> {
        Memory::from_vec(padded).map(Self)
    }
}

/// The table and the [`PADDING`] behind it.
impl Deref for Owned {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl DerefMut for Owned {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl fmt::Debug for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("bytes", &self.len()).finish()
    }
}

/// A table held in `D`, inside a snapshot or bare: the storage of a [`FilterView`](crate::FilterView).
#[derive(Clone)]
pub(crate) struct Snapshot<D> {
    data: D,
    /// The offset of the table: the length of a header, or 0 for a bare table.
    start: usize,
    /// The end of the snapshot, whose trailer serves as padding, or of a bare table's padding.
    end: usize,
}

impl<D> Snapshot<D> {
    /// The snapshot that ends at `end`. The caller has checked that there are as many bytes.
    pub(crate) fn new(data: D, end: usize) -> Self {
        Self { data, start: HEADER_BYTES, end }
    }

    /// The bare table at the start of the data, whose padding ends at `end`. The caller has checked that there are as many bytes.
    pub(crate) fn bare(data: D, end: usize) -> Self {
        Self { data, start: 0, end }
    }

    /// True if there is no header.
    pub(crate) fn is_bare(&self) -> bool {
        self.start == 0
    }

    /// The length of the snapshot.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    pub(crate) fn data(&self) -> &D {
        &self.data
    }

    pub(crate) fn into_data(self) -> D {
        self.data
    }
}

impl<D: AsRef<[u8]>> Snapshot<D> {
    /// Calls `as_ref` and checks the length on every access, because an implementation of `AsRef` may return different bytes each
    /// time.
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
    panic!("the bytes of a view became fewer: `as_ref` of its data must always return the same bytes")
}

impl<D> fmt::Debug for Snapshot<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("bytes", &self.end).finish_non_exhaustive()
    }
}

// Memory that may be refused.

/// Memory for a table, or for a copy of one, could not be allocated. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    bytes: usize,
}

impl OutOfMemory {
    pub(crate) fn of(bytes: usize) -> Self {
        Self { bytes }
    }

    /// The number of bytes requested.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// With the kind [`OutOfMemory`](std::io::ErrorKind::OutOfMemory), and no more: words would need memory.
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

/// An empty vector with room for this many.
pub(crate) fn reserved<T>(len: usize) -> Result<Vec<T>, OutOfMemory> {
    let mut vector = Vec::new();
    vector.try_reserve_exact(len).map_err(|_| OutOfMemory::of(len.saturating_mul(size_of::<T>())))?;
    Ok(vector)
}

/// Makes room for this many more, and no others.
pub(crate) fn reserve_exact<T>(vector: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    let needed = (vector.len() + more).saturating_mul(size_of::<T>());
    vector.try_reserve_exact(more).map_err(|_| OutOfMemory::of(needed))
}

/// Frees memory beyond that for `capacity` elements, or for those that there are. `Vec::shrink_to` would abort the process if the
/// allocator refuses: here the vector stays as it is.
pub(crate) fn shrink_to<T>(vector: &mut Vec<T>, capacity: usize) {
    let capacity = vector.len().max(capacity);
    if vector.capacity() > capacity
        && let Ok(mut smaller) = reserved(capacity)
    {
        smaller.append(vector);
        *vector = smaller;
    }
}

/// Makes room for this many more.
pub(crate) fn reserve<T>(vector: &mut Vec<T>, more: usize) -> Result<(), OutOfMemory> {
    let needed = (vector.len() + more).saturating_mul(size_of::<T>());
    vector.try_reserve(more).map_err(|_| OutOfMemory::of(needed))
}
