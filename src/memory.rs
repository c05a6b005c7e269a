//! The memory of a table. With the feature `huge-pages`, on Linux: aligned to cache lines, and in pages of 2 MiB from that
//! size on, so that the processor has fewer addresses to translate. Elsewhere: a vector.

#[cfg(all(feature = "huge-pages", target_os = "linux"))]
pub(crate) use aligned::Memory;
#[cfg(not(all(feature = "huge-pages", target_os = "linux")))]
pub(crate) use vector::Memory;

#[cfg(all(feature = "huge-pages", target_os = "linux"))]
mod aligned {
    #![allow(unsafe_code, reason = "memory with an alignment, and advice about it, are to be had in no other way")]

    use alloc::alloc::{Layout, alloc, dealloc, handle_alloc_error};
    use core::{
        ops::{Deref, DerefMut},
        ptr::NonNull,
        slice,
    };

    const CACHE_LINE: usize = 64;
    const HUGE_PAGE: usize = 2 << 20;

    /// Bytes that belong to one table, all of them initialised.
    pub(crate) struct Memory {
        start: NonNull<u8>,
        len: usize,
    }

    // SAFETY: the bytes belong to this alone, as those of a `Vec<u8>` do.
    unsafe impl Send for Memory {}
    // SAFETY: as above.
    unsafe impl Sync for Memory {}

    impl Memory {
        /// Zeros, if there is at least one, and memory for them.
        pub(crate) fn zeroed(len: usize) -> Option<Self> {
            let layout = Self::layout(len)?;
            // SAFETY: the layout is not empty.
            let start = NonNull::new(unsafe { alloc(layout) })?;
            if len >= HUGE_PAGE {
                // Before the first byte is written, for that is when pages are made. None is asked for at
                // the incomplete end. It is advice: an error changes nothing.
                // SAFETY: these bytes were allocated above.
                _ = unsafe { libc::madvise(start.as_ptr().cast(), len - len % HUGE_PAGE, libc::MADV_HUGEPAGE) };
            }
            // SAFETY: these bytes were allocated above.
            unsafe { start.write_bytes(0, len) };
            Some(Self { start, len })
        }

        fn layout(len: usize) -> Option<Layout> {
            let layout = Layout::from_size_align(len, if len < HUGE_PAGE { CACHE_LINE } else { HUGE_PAGE });
            layout.ok().filter(|layout| layout.size() > 0)
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            if let Some(layout) = Self::layout(self.len) {
                // SAFETY: allocated by `zeroed` with this layout.
                unsafe { dealloc(self.start.as_ptr(), layout) };
            }
        }
    }

    impl Deref for Memory {
        type Target = [u8];

        #[inline]
        fn deref(&self) -> &[u8] {
            // SAFETY: `zeroed` allocated and initialised them.
            unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
        }
    }

    impl DerefMut for Memory {
        #[inline]
        fn deref_mut(&mut self) -> &mut [u8] {
            // SAFETY: `zeroed` allocated and initialised them, and they belong to this alone.
            unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
        }
    }

    impl Clone for Memory {
        fn clone(&self) -> Self {
            self.try_clone().unwrap_or_else(|| match Self::layout(self.len) {
                Some(layout) => handle_alloc_error(layout),
                None => unreachable!("there is a layout for what was allocated"),
            })
        }
    }
}

#[cfg(not(all(feature = "huge-pages", target_os = "linux")))]
mod vector {
    use alloc::vec::Vec;
    use core::ops::{Deref, DerefMut};

    /// Bytes that belong to one table.
    #[derive(Clone)]
    pub(crate) struct Memory(Vec<u8>);

    impl Memory {
        /// Zeros, if there is memory for them.
        pub(crate) fn zeroed(len: usize) -> Option<Self> {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(len).ok()?;
            bytes.resize(len, 0);
            Some(Self(bytes))
        }
    }

    impl Deref for Memory {
        type Target = [u8];

        #[inline]
        fn deref(&self) -> &[u8] {
            &self.0
        }
    }

    impl DerefMut for Memory {
        #[inline]
        fn deref_mut(&mut self) -> &mut [u8] {
            &mut self.0
        }
    }
}

impl Memory {
    /// A copy, if there is memory for it.
    pub(crate) fn try_clone(&self) -> Option<Self> {
        let mut copy = Self::zeroed(self.len())?;
        copy.copy_from_slice(self);
        Some(copy)
    }

    /// The same bytes and then zeros, `len` in all, if there is memory for it.
    #[cfg(feature = "std")]
    pub(crate) fn grown(self, len: usize) -> Option<Self> {
        let mut grown = Self::zeroed(len)?;
        grown[..self.len()].copy_from_slice(&self);
        Some(grown)
    }
}

impl PartialEq for Memory {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Memory {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_zero_and_grows_and_is_copied() {
        for len in [1, 63, 64, 65, (2 << 20) - 1, 2 << 20, (4 << 20) + 5] {
            let mut memory = Memory::zeroed(len).unwrap();
            assert_eq!(memory.len(), len);
            assert!(memory.iter().all(|&byte| byte == 0));
            memory.fill(7);
            let copy = memory.clone();
            assert!(copy == memory && copy == memory.try_clone().unwrap());
            #[cfg(feature = "std")]
            {
                let grown = memory.grown(2 * len).unwrap();
                assert!(grown[..len] == *copy && grown[len..].iter().all(|&byte| byte == 0));
            }
        }
    }

    #[test]
    fn what_cannot_be_had_is_none() {
        assert!(Memory::zeroed(isize::MAX as usize).is_none());
        assert!(Memory::zeroed(usize::MAX).is_none());
        #[cfg(all(feature = "huge-pages", target_os = "linux"))]
        assert!(Memory::zeroed(0).is_none());
    }

    #[cfg(all(feature = "huge-pages", target_os = "linux"))]
    #[test]
    fn it_is_aligned() {
        for len in [1, 1000, 2 << 20, (2 << 20) + 1] {
            let alignment = if len < 2 << 20 { 64 } else { 2 << 20 };
            assert!(Memory::zeroed(len).unwrap().as_ptr().addr().is_multiple_of(alignment));
        }
    }
}
