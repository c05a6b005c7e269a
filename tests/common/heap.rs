//! The most that a thread has on the heap at a time. A program that asks for it makes [`Counting`] its allocator. Each thread
//! counts for itself, so that stories may be told side by side.

#![allow(unsafe_code, reason = "an allocator that counts is an allocator")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    /// Bytes that this thread has taken and not given back. What others give back of them stays.
    static NOW: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

/// The most bytes that this thread had on the heap at a time while `run` ran, beyond those before it.
#[allow(dead_code, reason = "each story uses a part of it")]
pub(crate) fn peak<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    MOST.set(before);
    let answer = run();
    (answer, MOST.get() - before)
}

/// The bytes that this thread has on the heap once `run` is done, beyond those before it.
#[allow(dead_code, reason = "each story uses a part of it")]
pub(crate) fn held<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.get();
    let answer = run();
    (answer, NOW.get() - before)
}

/// The system's allocator, counted. What grows where it is, or is moved by pages, is not counted twice: that is the system's own
/// `realloc`, which must not be replaced by a copy here.
pub(crate) struct Counting;

// A thread that is ending has no counters any more, and nobody asks for them.
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
    // More than it has taken: another thread's.
    NOW.try_with(|now| now.set(now.get().saturating_sub(bytes))).ok();
}

// SAFETY: all of it is the system's allocator.
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
