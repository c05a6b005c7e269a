//! The memory of a table. With the feature `huge-pages`, on Linux: aligned to cache lines, and in pages of 2 MiB from that
//! size on, so that the processor has fewer addresses to translate. Elsewhere: a vector.
//!
//! A vector can become a table's memory, too: what comes in piece by piece grows in one, which the allocator mostly does by
//! moving pages, not bytes.

#[cfg(all(feature = "huge-pages", target_os = "linux"))]
pub use aligned::Memory;
#[cfg(not(all(feature = "huge-pages", target_os = "linux")))]
pub use vector::Memory;

#[cfg(all(feature = "huge-pages", target_os = "linux"))]
mod aligned {
    #![allow(unsafe_code, reason = "memory with an alignment, and advice about it, are to be had in no other way")]

    use alloc::{
        alloc::{Layout, alloc, dealloc, handle_alloc_error},
        vec::Vec,
    };
    use core::{
        mem::ManuallyDrop,
        ops::{Deref, DerefMut},
        ptr::NonNull,
        slice,
    };

    const CACHE_LINE: usize = 64;
    const HUGE_PAGE: usize = 2 << 20;
    /// `libc` has this number for glibc only; the kernel's is the same everywhere.
    const MADV_COLLAPSE: libc::c_int = 25;

    /// Memory of a filter's own: where a filter's table is, unless it is a [`FilterView`](crate::FilterView).
    pub struct Memory {
        start: NonNull<u8>,
        /// Bytes that are initialised: all of them, but for what a vector may have had to spare.
        len: usize,
        layout: Layout,
    }

    // SAFETY: the bytes belong to this alone, as those of a `Vec<u8>` do.
    unsafe impl Send for Memory {}
    // SAFETY: as above.
    unsafe impl Sync for Memory {}

    impl Memory {
        /// Zeros, if there is at least one, and memory for them.
        pub(crate) fn zeroed(len: usize) -> Option<Self> {
            let (start, layout) = Self::allocate(len)?;
            // SAFETY: these bytes were allocated for it.
            unsafe { start.write_bytes(0, len) };
            Some(Self { start, len, layout })
        }

        /// These bytes and so many zeros behind them, if there is at least one, and memory for them.
        pub(crate) fn copied(bytes: &[u8], zeros: usize) -> Option<Self> {
            let len = bytes.len().checked_add(zeros)?;
            let (start, layout) = Self::allocate(len)?;
            // SAFETY: these bytes were allocated for it, and nobody else has them.
            unsafe {
                start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
                start.add(bytes.len()).write_bytes(0, zeros);
            }
            Some(Self { start, len, layout })
        }

        /// At least one byte, if there is memory. They are not initialised.
        fn allocate(len: usize) -> Option<(NonNull<u8>, Layout)> {
            let layout = Self::layout(len)?;
            // SAFETY: the layout is not empty.
            let start = NonNull::new(unsafe { alloc(layout) })?;
            if len >= HUGE_PAGE {
                // Before the first byte is written, for that is when pages are made. None is asked for at
                // the incomplete end. It is advice: an error changes nothing.
                // SAFETY: these bytes were allocated above.
                _ = unsafe { libc::madvise(start.as_ptr().cast(), len - len % HUGE_PAGE, libc::MADV_HUGEPAGE) };
            }
            Some((start, layout))
        }

        fn layout(len: usize) -> Option<Layout> {
            let layout = Layout::from_size_align(len, if len < HUGE_PAGE { CACHE_LINE } else { HUGE_PAGE });
            layout.ok().filter(|layout| layout.size() > 0)
        }
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            if self.layout.size() > 0 {
                // SAFETY: allocated with this layout.
                unsafe { dealloc(self.start.as_ptr(), self.layout) };
            }
        }
    }

    impl Memory {
        /// The vector's bytes, where they are.
        pub(crate) fn from_vec(bytes: Vec<u8>) -> Self {
            let mut bytes = ManuallyDrop::new(bytes);
            let (len, capacity) = (bytes.len(), bytes.capacity());
            // Of all that was allocated, not only of what is used.
            match (NonNull::new(bytes.as_mut_ptr()), Layout::array::<u8>(capacity)) {
                (Some(start), Ok(layout)) => {
                    collapse(start, len);
                    Self { start, len, layout }
                }
                _ => unreachable!("a vector has a place, and a layout of what was allocated"),
            }
        }
    }

    /// Has memory that is in small pages copied into huge ones, where it fills them; Linux can do that from 6.1 on. It is advice,
    /// too.
    fn collapse(start: NonNull<u8>, len: usize) {
        let first = start.align_offset(HUGE_PAGE);
        if let Some(whole) = len.checked_sub(first).map(|rest| rest - rest % HUGE_PAGE).filter(|&whole| whole > 0) {
            // SAFETY: these bytes belong to the caller, and stay what they are.
            unsafe {
                let start = start.add(first).as_ptr().cast();
                _ = libc::madvise(start, whole, libc::MADV_HUGEPAGE);
                _ = libc::madvise(start, whole, MADV_COLLAPSE);
            }
        }
    }

    impl Deref for Memory {
        type Target = [u8];

        #[inline]
        fn deref(&self) -> &[u8] {
            // SAFETY: whoever made this has initialised them.
            unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
        }
    }

    impl DerefMut for Memory {
        #[inline]
        fn deref_mut(&mut self) -> &mut [u8] {
            // SAFETY: whoever made this has initialised them, and they belong to this alone.
            unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
        }
    }

    impl Clone for Memory {
        fn clone(&self) -> Self {
            Self::copied(self, 0).unwrap_or_else(|| handle_alloc_error(self.layout))
        }
    }
}

#[cfg(not(all(feature = "huge-pages", target_os = "linux")))]
mod vector {
    use alloc::vec::Vec;
    use core::ops::{Deref, DerefMut};

    /// Memory of a filter's own: where a filter's table is, unless it is a [`FilterView`](crate::FilterView).
    #[derive(Clone)]
    pub struct Memory(Vec<u8>);

    impl Memory {
        /// Zeros, if there is memory for them.
        pub(crate) fn zeroed(len: usize) -> Option<Self> {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(len).ok()?;
            bytes.resize(len, 0);
            Some(Self(bytes))
        }

        /// The vector's bytes, where they are.
        pub(crate) fn from_vec(bytes: Vec<u8>) -> Self {
            Self(bytes)
        }

        /// These bytes and so many zeros behind them, if there is memory for them.
        pub(crate) fn copied(bytes: &[u8], zeros: usize) -> Option<Self> {
            let mut copy = Vec::new();
            copy.try_reserve_exact(bytes.len().checked_add(zeros)?).ok()?;
            copy.extend_from_slice(bytes);
            copy.resize(bytes.len() + zeros, 0);
            Some(Self(copy))
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

impl core::fmt::Debug for Memory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Memory").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn it_is_zero_and_is_copied() {
        for len in [1, 63, 64, 65, (2 << 20) - 1, 2 << 20, (4 << 20) + 5] {
            let mut memory = Memory::zeroed(len).unwrap();
            assert_eq!(memory.len(), len);
            assert!(memory.iter().all(|&byte| byte == 0));
            memory.fill(7);
            assert!(*memory.clone() == *memory);
            let copy = Memory::copied(&memory, 9).unwrap();
            assert!(copy[..len] == *memory && copy[len..] == [0; 9]);
        }
    }

    #[test]
    fn a_vector_becomes_memory_where_it_is() {
        for (len, spare) in [(1, 0), (1, 10), (100, 0), (100, 1000), (5 << 20, 0)] {
            let mut bytes = Vec::with_capacity(len + spare);
            bytes.resize(len, 7);
            let start = bytes.as_ptr();
            let memory = Memory::from_vec(bytes);
            assert_eq!(memory.as_ptr(), start);
            assert_eq!(memory.len(), len);
            assert!(memory.iter().all(|&byte| byte == 7) && *memory.clone() == *memory);
        }
    }

    #[test]
    fn what_cannot_be_had_is_none() {
        assert!(Memory::zeroed(isize::MAX as usize).is_none());
        assert!(Memory::zeroed(usize::MAX).is_none());
        assert!(Memory::copied(&[1], usize::MAX).is_none());
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
