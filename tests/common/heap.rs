//! Measures the peak heap use of a thread, in programs whose allocator is [`Counting`]. Each thread has its own counters, so tests
//! can run in parallel.

#![allow(unsafe_code, reason = "implementing an allocator is unsafe")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    /// Bytes that this thread has allocated and not freed. Bytes that another thread frees stay counted.
    static NOW: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

/// Runs `run`. Returns its result and the peak of this thread's heap use meanwhile, in bytes above the use before.
#[allow(dead_code, reason = "each test uses a part of it")]
pub(crate) fn peak<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    MOST.set(before);
    let answer = run();
    (answer, MOST.get() - before)
}

/// Runs `run`. Returns its result and the change of this thread's heap use, in bytes.
#[allow(dead_code, reason = "each test uses a part of it")]
pub(crate) fn held<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    let answer = run();
    (answer, NOW.get() - before)
}

/// The system's allocator, with counters. `realloc` is the system's own, which grows in place or moves pages; it counts only the
/// difference, not two copies.
pub(crate) struct Counting;

// The counters of a thread that is ending may already be gone, so errors are ignored.
fn more(bytes: usize) {
    let now = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        now.get()
    });
    if let Ok(now) = now {
        MOST.try_with(|most| most.set(most.get().max(now))).ok();
    }
}

fn less(bytes: usize) {
    // A thread may free more than it has allocated: memory of other threads.
    NOW.try_with(|now| now.set(now.get().saturating_sub(bytes))).ok();
}

// SAFETY: every method passes its arguments to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller keeps to the contract of the method of the same name.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        // SAFETY: the caller keeps to the contract of the method of the same name.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        less(layout.size());
        // SAFETY: the caller keeps to the contract of the method of the same name.
        unsafe { System.dealloc(start, layout) };
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size >= layout.size() {
            more(size - layout.size());
        } else {
            less(layout.size() - size);
        }
        // SAFETY: the caller keeps to the contract of the method of the same name.
        unsafe { System.realloc(start, layout, size) }
    }
}
