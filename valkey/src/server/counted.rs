//! Counts the memory of the module.

use std::{
    alloc::{GlobalAlloc, Layout},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// An allocator whose memory is counted.
pub(super) struct Counted<A>(pub(super) A);

static TAKEN: AtomicU64 = AtomicU64::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// Bytes that are allocated.
pub(crate) fn memory_taken() -> u64 {
    TAKEN.load(Relaxed)
}

/// The number of allocations so far. Those that commands make are all made by one thread.
pub(crate) fn allocations() -> u64 {
    ALLOCATIONS.load(Relaxed)
}

impl<A> Counted<A> {
    fn count(memory: *mut u8, taken: usize, given_back: usize) -> *mut u8 {
        if !memory.is_null() {
            TAKEN.fetch_add((taken as u64).wrapping_sub(given_back as u64), Relaxed);
            ALLOCATIONS.fetch_add(1, Relaxed);
        }
        memory
    }
}

// SAFETY: the inner allocator does everything.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        Self::count(unsafe { self.0.alloc(layout) }, layout.size(), 0)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.0.dealloc(memory, layout) };
        TAKEN.fetch_sub(layout.size() as u64, Relaxed);
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        Self::count(unsafe { self.0.alloc_zeroed(layout) }, layout.size(), 0)
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as the caller promises.
        Self::count(unsafe { self.0.realloc(memory, layout, size) }, size, layout.size())
    }
}
