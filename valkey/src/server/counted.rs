//! An allocator that counts the module's memory.

use std::{
    alloc::{GlobalAlloc, Layout},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// An allocator that counts the memory of another one.
pub(super) struct Counted<A>(pub(super) A);

static ALLOCATED_BYTES: AtomicU64 = AtomicU64::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// Returns the number of bytes that are allocated.
pub(crate) fn allocated_bytes() -> u64 {
    ALLOCATED_BYTES.load(Relaxed)
}

/// Returns the number of allocations so far. Commands allocate in one thread.
pub(crate) fn allocation_count() -> u64 {
    ALLOCATIONS.load(Relaxed)
}

impl<A> Counted<A> {
    fn count(memory: *mut u8, allocated: usize, freed: usize) -> *mut u8 {
        if !memory.is_null() {
            ALLOCATED_BYTES.fetch_add((allocated as u64).wrapping_sub(freed as u64), Relaxed);
            ALLOCATIONS.fetch_add(1, Relaxed);
        }
        memory
    }
}

// SAFETY: all memory comes from the inner allocator.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counted<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as the caller promises.
        Self::count(unsafe { self.0.alloc(layout) }, layout.size(), 0)
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { self.0.dealloc(memory, layout) };
        ALLOCATED_BYTES.fetch_sub(layout.size() as u64, Relaxed);
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
