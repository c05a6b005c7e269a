//! Where the bytes of a table are: in a filter's own memory, or in somebody else's.

use core::{fmt, ops::Deref};

mod memory;

pub use memory::Memory;

/// Where a filter's table is: in memory of its own ([`Memory`]), or in bytes that belong to somebody else ([`Borrowed`]).
/// There are these two and no others.
pub trait Storage: Deref<Target = [u8]> + sealed::Sealed {}

impl Storage for Memory {}
impl Storage for Borrowed<'_> {}

pub(crate) mod sealed {
    use super::{Borrowed, Memory};

    pub trait Sealed {
        /// Are these bytes a snapshot's, its trailer behind the table, and nobody has looked at them yet?
        fn is_snapshot(&self) -> bool;
    }

    impl Sealed for Memory {
        fn is_snapshot(&self) -> bool {
            false
        }
    }

    impl Sealed for Borrowed<'_> {
        fn is_snapshot(&self) -> bool {
            self.is_snapshot
        }
    }
}

/// Bytes of somebody else's, where they are: those of a [`FilterView`](crate::FilterView).
#[derive(Clone)]
pub struct Borrowed<'a> {
    bytes: bytes::Bytes<'a>,
    is_snapshot: bool,
}

impl<'a> Borrowed<'a> {
    /// A table with its trailer: a snapshot but for the header.
    pub(crate) fn snapshot(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.into(), is_snapshot: true }
    }

    /// A filter's table, and its padding.
    pub(crate) fn table(bytes: &'a [u8]) -> Self {
        Self { bytes: bytes.into(), is_snapshot: false }
    }
}

#[cfg(feature = "mmap")]
impl Borrowed<'static> {
    /// What comes behind the first `start` bytes of a mapped snapshot, which stays mapped as long as this or a clone of it is
    /// there.
    ///
    /// # Panics
    /// If there are not so many.
    pub(crate) fn mapped(map: memmap2::Mmap, start: usize) -> Self {
        Self { bytes: bytes::Bytes::mapped(map, start), is_snapshot: true }
    }
}

impl Deref for Borrowed<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Borrowed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Borrowed").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(not(feature = "mmap"))]
mod bytes {
    use core::ops::Deref;

    /// Borrowed bytes.
    #[derive(Clone)]
    pub(super) struct Bytes<'a>(&'a [u8]);

    impl<'a> From<&'a [u8]> for Bytes<'a> {
        fn from(bytes: &'a [u8]) -> Self {
            Self(bytes)
        }
    }

    impl Deref for Bytes<'_> {
        type Target = [u8];

        #[inline]
        fn deref(&self) -> &[u8] {
            self.0
        }
    }
}

#[cfg(feature = "mmap")]
mod bytes {
    #![allow(unsafe_code, reason = "bytes beside the map that they are in, found without a detour")]

    use alloc::sync::Arc;
    use core::{marker::PhantomData, ops::Deref, ptr::NonNull};

    use memmap2::Mmap;

    /// Borrowed bytes, or some of a map's. Not a reference: one of a map that is dropped would outlive what it refers to.
    #[derive(Clone)]
    pub(super) struct Bytes<'a> {
        start: NonNull<[u8]>,
        borrowed: PhantomData<&'a [u8]>,
        /// What keeps the bytes, unless they are borrowed. It is never asked for them: it stays, and so do they.
        _map: Option<Arc<Mmap>>,
    }

    // SAFETY: bytes that nobody changes, as in `&[u8]` and in `Mmap`, both of which may be sent and shared.
    unsafe impl Send for Bytes<'_> {}
    // SAFETY: as above.
    unsafe impl Sync for Bytes<'_> {}

    impl<'a> From<&'a [u8]> for Bytes<'a> {
        fn from(bytes: &'a [u8]) -> Self {
            Self { start: NonNull::from(bytes), borrowed: PhantomData, _map: None }
        }
    }

    impl Bytes<'static> {
        pub(super) fn mapped(map: Mmap, start: usize) -> Self {
            Self { start: NonNull::from(&map[start..]), borrowed: PhantomData, _map: Some(Arc::new(map)) }
        }
    }

    impl Deref for Bytes<'_> {
        type Target = [u8];

        #[inline]
        fn deref(&self) -> &[u8] {
            // SAFETY: they are borrowed for longer than this is, or mapped as long as this is there. Where they are does not
            // depend on where the map's owner is.
            unsafe { self.start.as_ref() }
        }
    }
}
