//! The most that is on the heap at a time. A program that asks for it makes [`Counting`] its allocator, and has one test: the
//! count is of the whole program.

#![allow(unsafe_code, reason = "an allocator that counts is an allocator")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// The most bytes that were on the heap at a time while `run` ran, beyond those before it.
pub(crate) fn peak<T>(run: impl FnOnce() -> T) -> (T, usize) {
    let before = NOW.load(Relaxed);
    MOST.store(before, Relaxed);
    let answer = run();
    (answer, MOST.load(Relaxed) - before)
}

/// The system's allocator, counted. What grows where it is, or is moved by pages, is not counted twice: that is the system's own
/// `realloc`, which must not be replaced by a copy here.
pub(crate) struct Counting;

fn more(bytes: usize) {
    MOST.fetch_max(NOW.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: all of it is the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        more(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(start, layout) };
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if size >= layout.size() {
            more(size - layout.size());
        } else {
            NOW.fetch_sub(layout.size() - size, Relaxed);
        }
        unsafe { System.realloc(start, layout, size) }
    }
}
