//! Where the bytes of a table are: in a filter's own memory, or in somebody else's.

use core::{fmt, ops::Deref};

use crate::memory::Memory;

/// Where a filter's table is: in memory of its own ([`Memory`]), or in bytes that belong to somebody else ([`Borrowed`]).
/// There are these two and no others.
pub trait Storage: Deref<Target = [u8]> + sealed::Sealed {}

impl Storage for Memory {}
impl Storage for Borrowed<'_> {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Memory {}
    impl Sealed for super::Borrowed<'_> {}
}

/// Bytes of somebody else's, where they are: those of a [`FilterView`](crate::FilterView).
#[derive(Clone)]
pub struct Borrowed<'a> {
    bytes: &'a [u8],
    is_snapshot: bool,
    /// The file that the bytes are in, mapped for as long as there are views of it.
    #[cfg(feature = "mmap")]
    _map: Option<alloc::sync::Arc<memmap2::Mmap>>,
}

impl<'a> Borrowed<'a> {
    /// A table with its trailer: a snapshot but for the header.
    pub(crate) fn snapshot(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            is_snapshot: true,
            #[cfg(feature = "mmap")]
            _map: None,
        }
    }

    /// A filter's table, and its padding.
    pub(crate) fn table(bytes: &'a [u8]) -> Self {
        Self { is_snapshot: false, ..Self::snapshot(bytes) }
    }

    /// Does the table's checksum follow?
    pub(crate) fn is_snapshot(&self) -> bool {
        self.is_snapshot
    }
}

#[cfg(feature = "mmap")]
impl Borrowed<'static> {
    /// What comes behind the first `start` bytes of a mapped file, which stays mapped as long as this or a clone of it is there.
    ///
    /// # Panics
    /// If there are not so many.
    #[allow(unsafe_code, reason = "bytes that stay where they are as long as their owner, which is beside them, is there")]
    pub(crate) fn mapped(map: memmap2::Mmap, start: usize) -> Self {
        let bytes: *const [u8] = &raw const map[start..];
        // SAFETY: the bytes are mapped until the last owner is dropped, not where the owner itself is. They are never handed
        // out for longer than there is a borrow of this, or of a clone, which owns them, too.
        let bytes = unsafe { &*bytes };
        Self { bytes, is_snapshot: true, _map: Some(alloc::sync::Arc::new(map)) }
    }
}

impl Deref for Borrowed<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

impl fmt::Debug for Borrowed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Borrowed").field("len", &self.len()).finish_non_exhaustive()
    }
}
