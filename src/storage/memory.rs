//! The memory of a table. With the feature `huge-pages` on Linux, it is aligned to cache lines, and memory of 2 MiB or more uses
//! huge pages, which saves TLB misses. Without huge pages, the allocator provides the zeros, usually as fresh pages of the system:
//! such a page costs memory and time only when it is first written to. Builds without unsafe code use a vector.
//!
//! A vector is converted without copying. Tables that are read from a stream grow in a vector, which the allocator can usually
//! extend in place or by remapping pages.

#[cfg(any(feature = "kernels", feature = "huge-pages"))]
pub(crate) use allocated::Owned;
#[cfg(not(any(feature = "kernels", feature = "huge-pages")))]
pub(crate) use vector::Owned;

#[cfg(any(feature = "kernels", feature = "huge-pages"))]
mod allocated {
    #![allow(unsafe_code, reason = "zeroed and aligned allocation that may fail, and `madvise`, have no safe interface")]

    use alloc::{
        alloc::{Layout, alloc, alloc_zeroed, dealloc, handle_alloc_error, realloc},
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
    /// `libc` defines this constant for glibc only; the kernel's value is the same everywhere.
    #[cfg(huge_pages)]
    const MADV_COLLAPSE: libc::c_int = 25;

    /// Bytes that a filter owns.
    pub(crate) struct Owned {
        start: NonNull<u8>,
        /// The layout of the allocation; its size is the number of bytes.
        layout: Layout,
    }

    // SAFETY: `Owned` owns its bytes exclusively, as a `Vec<u8>` does.
    unsafe impl Send for Owned {}
    // SAFETY: as above; shared access only reads.
    unsafe impl Sync for Owned {}

    impl Owned {
        /// Allocates `len` zeros. Returns `None` if `len` is 0 or the allocation fails.
        pub fn zeros(len: usize) -> Option<Self> {
            if !cfg!(huge_pages) {
                return Self::allocate(len, alloc_zeroed);
            }
            let memory = Self::allocate(len, alloc)?;
            // SAFETY: `len` bytes were just allocated at `start`.
            unsafe { memory.start.write_bytes(0, len) };
            Some(memory)
        }

        /// Copies `bytes` and appends zeros. Returns `None` if both are empty or the allocation fails.
        pub fn followed_by(bytes: &[u8], zeros: usize) -> Option<Self> {
            let len = bytes.len().checked_add(zeros)?;
            let memory = Self::allocate(len, alloc)?;
            // SAFETY: `bytes.len() + zeros` bytes were just allocated at `start`, so they cannot overlap `bytes`.
            unsafe {
                memory.start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
                memory.start.add(bytes.len()).write_bytes(0, zeros);
            }
            Some(memory)
        }

        /// Allocates `len` bytes with `allocator`. Returns `None` if `len` is 0 or the allocation fails. Unless `allocator` zeroes
        /// the bytes, they are uninitialized, and the caller must write all of them before anything reads them.
        fn allocate(len: usize, allocator: unsafe fn(Layout) -> *mut u8) -> Option<Self> {
            let align = match len {
                _ if !cfg!(huge_pages) => 1,
                ..HUGE_PAGE => CACHE_LINE,
                _ => HUGE_PAGE,
            };
            let layout = Layout::from_size_align(len, align).ok().filter(|layout| layout.size() > 0)?;
            // SAFETY: the layout's size is not zero.
            let start = NonNull::new(unsafe { allocator(layout) })?;
            #[cfg(huge_pages)]
            if len >= HUGE_PAGE {
                // Advise before the first write, when the kernel assigns pages. An incomplete huge page at the end stays small.
                advise(start, len - len % HUGE_PAGE, &[libc::MADV_HUGEPAGE]);
            }
            Some(Self { start, layout })
        }

        /// Takes over the vector's bytes, and may move them only if the vector has spare capacity. Returns `None` if there are no
        /// bytes or the allocator cannot free the spare capacity.
        pub fn from_vec(bytes: Vec<u8>) -> Option<Self> {
            let (len, capacity) = (bytes.len(), bytes.capacity());
            if len == 0 {
                return None;
            }
            let mut bytes = ManuallyDrop::new(bytes);
            let mut start = NonNull::new(bytes.as_mut_ptr())?;
            let [layout, whole] = [Layout::array::<u8>(len).ok()?, Layout::array::<u8>(capacity).ok()?];
            // `Vec::shrink_to_fit` would abort the program if the allocator failed.
            if capacity > len {
                // SAFETY: the vector was allocated with the layout of an array of `capacity` bytes; `len` is neither 0 nor larger.
                let shrunk = NonNull::new(unsafe { realloc(start.as_ptr(), whole, len) });
                let Some(shrunk) = shrunk else {
                    // A failed `realloc` leaves the allocation unchanged.
                    drop(ManuallyDrop::into_inner(bytes));
                    return None;
                };
                start = shrunk;
            }
            #[cfg(huge_pages)]
            collapse(start, len);
            Some(Self { start, layout })
        }
    }

    impl Drop for Owned {
        fn drop(&mut self) {
            // SAFETY: `start` was allocated with this layout and is not used afterwards.
            unsafe { dealloc(self.start.as_ptr(), self.layout) };
        }
    }

    /// Collapses small pages into huge ones where a whole huge page fits. Needs Linux 6.1 or later.
    #[cfg(huge_pages)]
    fn collapse(start: NonNull<u8>, len: usize) {
        let first = start.align_offset(HUGE_PAGE);
        if let Some(whole) = len.checked_sub(first).map(|rest| rest - rest % HUGE_PAGE).filter(|&whole| whole > 0) {
            // SAFETY: `first` is at most `len`, so this is inside the allocation.
            let start = unsafe { start.add(first) };
            advise(start, whole, &[libc::MADV_HUGEPAGE, MADV_COLLAPSE]);
        }
    }

    /// Advises the kernel how memory will be used. Errors are ignored: the contents stay the same either way.
    #[cfg(huge_pages)]
    fn advise(start: NonNull<u8>, len: usize, advice: &[i32]) {
        // Miri does not support `madvise`.
        for &advice in advice.iter().filter(|_| !cfg!(miri)) {
            // SAFETY: the range is inside an allocation of the caller, and these kinds of advice do not change its contents.
            _ = unsafe { libc::madvise(start.as_ptr().cast(), len, advice) };
        }
    }

    impl Deref for Owned {
        type Target = [u8];

        #[inline]
        fn deref(&self) -> &[u8] {
            // SAFETY: `start` points to `layout.size()` bytes, and the constructors have initialized all of them.
            unsafe { slice::from_raw_parts(self.start.as_ptr(), self.layout.size()) }
        }
    }

    impl DerefMut for Owned {
        #[inline]
        fn deref_mut(&mut self) -> &mut [u8] {
            // SAFETY: as for `deref`; `self` is borrowed mutably, so nothing else accesses the bytes.
            unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
        }
    }

    impl Clone for Owned {
        fn clone(&self) -> Self {
            Self::followed_by(self, 0).unwrap_or_else(|| handle_alloc_error(self.layout))
        }
    }
}

#[cfg(not(any(feature = "kernels", feature = "huge-pages")))]
mod vector {
    use alloc::vec::Vec;
    use core::ops::{Deref, DerefMut};

    /// Bytes that a filter owns.
    #[derive(Clone)]
    pub(crate) struct Owned(Vec<u8>);

    impl Owned {
        /// Allocates `len` zeros. Returns `None` if the allocation fails.
        pub fn zeros(len: usize) -> Option<Self> {
            let mut bytes = Vec::new();
            bytes.try_reserve_exact(len).ok()?;
            bytes.resize(len, 0);
            Some(Self(bytes))
        }

        /// Takes over the vector.
        #[expect(clippy::unnecessary_wraps, reason = "with huge pages it may fail")]
        pub fn from_vec(bytes: Vec<u8>) -> Option<Self> {
            Some(Self(bytes))
        }

        /// Copies `bytes` and appends zeros. Returns `None` if the allocation fails.
        pub fn followed_by(bytes: &[u8], zeros: usize) -> Option<Self> {
            let mut copy = Vec::new();
            copy.try_reserve_exact(bytes.len().checked_add(zeros)?).ok()?;
            copy.extend_from_slice(bytes);
            copy.resize(bytes.len() + zeros, 0);
            Some(Self(copy))
        }
    }

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
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Returns false in Miri if the length would take too long.
    fn can_run(len: usize) -> bool {
        !cfg!(miri) || len <= 1000
    }

    #[test]
    fn new_memory_is_zero_and_copies_are_equal() {
        for len in [1, 63, 64, 65, (2 << 20) - 1, 2 << 20, (4 << 20) + 5].into_iter().filter(|&len| can_run(len)) {
            let mut memory = Owned::zeros(len).unwrap();
            assert_eq!(memory.len(), len);
            assert!(memory.iter().all(|&byte| byte == 0));
            memory.fill(7);
            assert!(*memory.clone() == *memory);
            let copy = Owned::followed_by(&memory, 9).unwrap();
            assert!(copy[..len] == *memory && copy[len..] == [0; 9]);
        }
    }

    #[test]
    fn a_vector_becomes_memory_in_place() {
        let sizes = [(1, 0), (1, 10), (100, 0), (100, 1000), (5 << 20, 0)];
        for (len, spare) in sizes.into_iter().filter(|&(len, _)| can_run(len)) {
            let mut bytes = Vec::with_capacity(len + spare);
            bytes.resize(len, 7);
            let start = bytes.as_ptr();
            let memory = Owned::from_vec(bytes).unwrap();
            // Other allocators, such as Miri's and musl's, may move an allocation that shrinks.
            let stays = spare == 0 || cfg!(all(target_env = "gnu", not(miri)));
            assert!(memory.as_ptr() == start || !stays);
            assert_eq!(memory.len(), len);
            assert!(memory.iter().all(|&byte| byte == 7) && *memory.clone() == *memory);
        }
    }

    #[test]
    fn failed_allocations_return_none() {
        assert!(Owned::zeros(isize::MAX as usize).is_none());
        assert!(Owned::zeros(usize::MAX).is_none());
        assert!(Owned::followed_by(&[1], usize::MAX).is_none());
        #[cfg(any(feature = "kernels", feature = "huge-pages"))]
        assert!(Owned::zeros(0).is_none());
    }

    #[cfg(huge_pages)]
    #[test]
    fn memory_is_aligned() {
        for len in [1, 1000, 2 << 20, (2 << 20) + 1].into_iter().filter(|&len| can_run(len)) {
            let alignment = if len < 2 << 20 { 64 } else { 2 << 20 };
            assert!(Owned::zeros(len).unwrap().as_ptr().addr().is_multiple_of(alignment));
        }
    }
}
