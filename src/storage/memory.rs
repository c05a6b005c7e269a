//! The memory of a table. With the feature `huge-pages`, on Linux: aligned to cache lines, and in pages of 2 MiB from that
//! size on, so that the processor has fewer addresses to translate. Elsewhere: a vector.
//!
//! A vector can become a table's memory, too: what comes in piece by piece grows in one, which the allocator mostly does by
//! moving pages, not bytes.

#[cfg(huge_pages)]
pub(crate) use aligned::Memory;
#[cfg(not(huge_pages))]
pub(crate) use vector::Memory;

#[cfg(huge_pages)]
mod aligned {
    #![allow(unsafe_code, reason = "memory with an alignment, and advice about it, are to be had in no other way")]

    use alloc::{
        alloc::{Layout, alloc, dealloc, handle_alloc_error},
        boxed::Box,
        vec::Vec,
    };
    use core::{
        ops::{Deref, DerefMut},
        ptr::NonNull,
        slice,
    };

    const CACHE_LINE: usize = 64;
    const HUGE_PAGE: usize = 2 << 20;
    /// `libc` has this number for glibc only; the kernel's is the same everywhere.
    const MADV_COLLAPSE: libc::c_int = 25;

    /// Bytes of a filter's own.
    pub(crate) struct Memory {
        start: NonNull<u8>,
        len: usize,
        /// With which alignment the bytes were allocated: as the logarithm, to take no more room than the padding.
        log2_align: u8,
    }

    // SAFETY: the bytes belong to this alone, as those of a `Vec<u8>` do.
    unsafe impl Send for Memory {}
    // SAFETY: as above.
    unsafe impl Sync for Memory {}

    impl Memory {
        /// Zeros, if there is at least one, and memory for them.
        pub(crate) fn zeroed(len: usize) -> Option<Self> {
            let memory = Self::allocate(len)?;
            // SAFETY: these bytes were allocated for it.
            unsafe { memory.start.write_bytes(0, len) };
            Some(memory)
        }

        /// These bytes and so many zeros behind them, if there is at least one, and memory for them.
        pub(crate) fn copied(bytes: &[u8], zeros: usize) -> Option<Self> {
            let len = bytes.len().checked_add(zeros)?;
            let memory = Self::allocate(len)?;
            // SAFETY: these bytes were allocated for it, and nobody else has them.
            unsafe {
                memory.start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
                memory.start.add(bytes.len()).write_bytes(0, zeros);
            }
            Some(memory)
        }

        /// At least one byte, if there is memory. The bytes are not initialised: the caller has to write all of them.
        fn allocate(len: usize) -> Option<Self> {
            let align = if len < HUGE_PAGE { CACHE_LINE } else { HUGE_PAGE };
            let layout = Layout::from_size_align(len, align).ok().filter(|layout| layout.size() > 0)?;
            // SAFETY: the layout is not empty.
            let start = NonNull::new(unsafe { alloc(layout) })?;
            if len >= HUGE_PAGE {
                // Before the first byte is written, for that is when pages are made; none for the incomplete end.
                advise(start, len - len % HUGE_PAGE, &[libc::MADV_HUGEPAGE]);
            }
            Some(Self { start, len, log2_align: log2(align) })
        }

        fn layout(&self) -> Layout {
            // What was allocated with it was a layout, and a vector's is one.
            Layout::from_size_align(self.len, 1 << self.log2_align).unwrap_or(Layout::new::<()>())
        }

        /// The vector's bytes, where they are unless it has some to spare.
        #[cfg(any(feature = "std", feature = "serde", test))]
        pub(crate) fn from_vec(mut bytes: Vec<u8>) -> Self {
            // So that the layout is known from the length.
            bytes.shrink_to_fit();
            let bytes: &'static mut [u8] = Box::leak(bytes.into_boxed_slice());
            let (start, len) = (NonNull::from(&mut *bytes).cast(), bytes.len());
            collapse(start, len);
            Self { start, len, log2_align: log2(align_of::<u8>()) }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "an alignment has fewer than 64 bits")]
    const fn log2(align: usize) -> u8 {
        align.ilog2() as u8
    }

    impl Drop for Memory {
        fn drop(&mut self) {
            if self.len > 0 {
                // SAFETY: allocated with this layout.
                unsafe { dealloc(self.start.as_ptr(), self.layout()) };
            }
        }
    }

    /// Has memory that is in small pages copied into huge ones, where it fills them; Linux can do that from 6.1 on.
    fn collapse(start: NonNull<u8>, len: usize) {
        let first = start.align_offset(HUGE_PAGE);
        if let Some(whole) = len.checked_sub(first).map(|rest| rest - rest % HUGE_PAGE).filter(|&whole| whole > 0) {
            // SAFETY: it is inside these bytes.
            let start = unsafe { start.add(first) };
            advise(start, whole, &[libc::MADV_HUGEPAGE, MADV_COLLAPSE]);
        }
    }

    /// Tells the system how memory will be used. The bytes stay what they are; an error changes nothing.
    fn advise(start: NonNull<u8>, len: usize, advice: &[i32]) {
        // Miri knows no such call.
        for &advice in advice.iter().filter(|_| !cfg!(miri)) {
            // SAFETY: the caller's own memory, of which the advice changes nothing that the program can see.
            _ = unsafe { libc::madvise(start.as_ptr().cast(), len, advice) };
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
            Self::copied(self, 0).unwrap_or_else(|| handle_alloc_error(self.layout()))
        }
    }
}

#[cfg(not(huge_pages))]
mod vector {
    use alloc::vec::Vec;
    use core::ops::{Deref, DerefMut};

    /// Bytes of a filter's own.
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

        /// The vector's bytes, where they are.
        #[cfg(any(feature = "std", feature = "serde", test))]
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
        #[cfg(huge_pages)]
        assert!(Memory::zeroed(0).is_none());
    }

    #[cfg(huge_pages)]
    #[test]
    fn it_is_aligned() {
        for len in [1, 1000, 2 << 20, (2 << 20) + 1] {
            let alignment = if len < 2 << 20 { 64 } else { 2 << 20 };
            assert!(Memory::zeroed(len).unwrap().as_ptr().addr().is_multiple_of(alignment));
        }
    }
}
