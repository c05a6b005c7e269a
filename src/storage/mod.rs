//! Where the bytes of a table are: in a filter's own memory, or in a snapshot that the caller keeps.

mod error;
mod memory;

use core::fmt;

use crate::bits::PADDING;
pub use error::OutOfMemory;
use memory::Memory;

/// Bytes of a snapshot before its table.
pub(crate) const HEADER_BYTES: usize = 64;

/// Where a filter keeps its table: in memory of its own ([`Owned`]), or in a [`Snapshot`] that the caller keeps.
///
/// This trait is sealed: these two implement it, and no others.
pub trait Storage: sealed::Sealed {}

impl Storage for Owned {}
impl<D: AsRef<[u8]>> Storage for Snapshot<D> {}

pub(crate) mod sealed {
    pub trait Sealed {
        /// The table and the [`PADDING`](crate::bits::PADDING) behind it, as they are now.
        fn bytes(&self) -> &[u8];

        /// Of a snapshot, whose table may never have been verified: the checksums of its header and of its table, as they are
        /// stored there. `None` for a table that is known to be good.
        fn stored_checksums(&self) -> Option<[u64; 2]>;
    }
}
pub(crate) use sealed::Sealed;

/// A table in memory that belongs to the filter: the storage of a [`CuckooFilter`](crate::CuckooFilter).
#[derive(Clone)]
pub struct Owned(Memory);

impl Owned {
    /// An empty table of so many bytes and its padding, or `None` if there is no memory for it.
    pub(crate) fn zeroed(table_bytes: usize) -> Option<Self> {
        Memory::zeroed(table_bytes.checked_add(PADDING)?).map(Self)
    }

    /// A copy of a table, or `None` if there is no memory for it.
    pub(crate) fn copied(table: &[u8]) -> Option<Self> {
        Memory::copied(table, PADDING).map(Self)
    }

    /// A table with its padding.
    #[cfg(any(feature = "std", feature = "serde"))]
    pub(crate) fn from_vec(padded: alloc::vec::Vec<u8>) -> Self {
        Self(Memory::from_vec(padded))
    }

    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}

impl Sealed for Owned {
    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn stored_checksums(&self) -> Option<[u64; 2]> {
        None
    }
}

impl fmt::Debug for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("bytes", &self.bytes().len()).finish()
    }
}

/// A table inside a snapshot that the caller keeps in `D`: the storage of a [`FilterView`](crate::FilterView).
#[derive(Clone, Copy)]
pub struct Snapshot<D> {
    data: D,
    /// Of the table and the trailer, which serves as padding.
    len: usize,
}

impl<D: AsRef<[u8]>> Snapshot<D> {
    /// The `len` bytes behind the header. They are there: the caller has looked.
    pub(crate) fn new(data: D, len: usize) -> Self {
        Self { data, len }
    }

    pub(crate) fn data(&self) -> &D {
        &self.data
    }

    pub(crate) fn into_data(self) -> D {
        self.data
    }

    /// The snapshot. Asks `D` anew each time, and believes nothing that it said before.
    #[inline]
    fn all(&self) -> &[u8] {
        match self.data.as_ref().get(..HEADER_BYTES + self.len) {
            Some(bytes) => bytes,
            None => shrunk(),
        }
    }
}

impl<D: AsRef<[u8]>> Sealed for Snapshot<D> {
    #[inline]
    fn bytes(&self) -> &[u8] {
        &self.all()[HEADER_BYTES..]
    }

    fn stored_checksums(&self) -> Option<[u64; 2]> {
        let bytes = self.all();
        let number = |end: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[end - 8..end]);
            u64::from_le_bytes(number)
        };
        Some([number(HEADER_BYTES), number(bytes.len())])
    }
}

#[cold]
#[inline(never)]
fn shrunk() -> ! {
    panic!("the bytes of a FilterView became fewer: their type's `as_ref` must always return the same ones")
}

impl<D> fmt::Debug for Snapshot<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("bytes", &(HEADER_BYTES + self.len)).finish_non_exhaustive()
    }
}
