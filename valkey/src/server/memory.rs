//! The module's memory, which is the server's.

use std::{
    alloc::{GlobalAlloc, Layout, System, alloc},
    ffi::{c_int, c_void},
    ops::Range,
    ptr,
    sync::atomic::{AtomicPtr, Ordering::Relaxed},
};

use super::{
    counted::Counted,
    functions::{FUNCTIONS, Functions, RawDefrag},
};
use crate::reply::Failure;

/// The server's memory, so that it is counted and limited there. Without a server, in unit tests, the system's.
///
/// Requests that cannot be met fail, where the server's ordinary functions would end it.
struct ServerMemory;

#[global_allocator]
static MEMORY: Counted<ServerMemory> = Counted(ServerMemory);

/// What every allocation of the server is aligned to. (Where it keeps lengths in front of allocations, not to more.)
const ALIGNMENT: usize = size_of::<usize>();

/// While the server defragments a value, what it moves memory with. Only one thread allocates memory then.
pub(super) static MOVING: AtomicPtr<RawDefrag> = AtomicPtr::new(ptr::null_mut());

/// New memory, moved away from pages that are nearly empty while the server defragments.
#[inline]
fn well_placed(server: &Functions, memory: *mut c_void) -> *mut c_void {
    let moving = MOVING.load(Relaxed);
    if moving.is_null() || memory.is_null() {
        return memory;
    }
    // SAFETY: the server has just allocated it. If it moves it, it frees the former memory.
    let moved = server.DefragAlloc.map_or(ptr::null_mut(), |defrag| unsafe { defrag(moving, memory) });
    if moved.is_null() { memory } else { moved }
}

/// Allocations of at least this size do not write zeros: whole pages go back to the system, which supplies zeroed ones at the first
/// touch. Writing the zeros of a filter of 500 million items takes a quarter of a second, and the server's allocator does that whenever
/// it reuses memory.
const MANY: usize = 128 << 10;
/// The same for servers without a function that allocates zeroed memory.
const FEW: usize = 32 << 10;

/// Fills memory that was just allocated with zeros.
///
/// # Safety
/// It must have this many bytes.
unsafe fn zero(memory: *mut u8, len: usize) {
    #[cfg(target_os = "linux")]
    if len >= FEW {
        // SAFETY: as the caller promises; the first bytes, and those after the pages, are inside as well.
        unsafe {
            let pages = zero_pages(memory, len);
            memory.write_bytes(0, pages.start);
            memory.add(pages.end).write_bytes(0, len - pages.end);
        }
        return;
    }
    // SAFETY: as the caller promises.
    unsafe { memory.write_bytes(0, len) };
}

/// Lets the system replace the whole pages in this memory by zeros. Returns which bytes are zeros now.
///
/// # Safety
/// As of [`zero`].
#[cfg(target_os = "linux")]
unsafe fn zero_pages(memory: *mut u8, len: usize) -> Range<usize> {
    const MADV_DONTNEED: c_int = 4;
    unsafe extern "C" {
        fn madvise(start: *mut c_void, len: usize, advice: c_int) -> c_int;
        safe fn getpagesize() -> c_int;
    }
    let page = usize::try_from(getpagesize()).unwrap_or(usize::MAX);
    let first = memory.align_offset(page);
    let Some(whole) = len.checked_sub(first).map(|rest| rest / page * page).filter(|&whole| whole > 0) else { return 0..0 };
    // SAFETY: all of it is inside the memory, of which nobody needs the content. Memory that is shared, or in huge pages of its own,
    // may stay as it is, in whole or at its end: so the end is marked, and looked at afterwards.
    unsafe {
        let (start, last) = (memory.add(first), memory.add(first + whole - 1));
        last.write_volatile(1);
        let is_done = madvise(start.cast(), whole, MADV_DONTNEED) == 0 && last.read_volatile() == 0;
        if is_done { first..first + whole } else { 0..0 }
    }
}

/// Where the start of an allocation stands, before an aligned address in it.
fn before(aligned: *mut u8) -> *mut *mut u8 {
    #[expect(clippy::cast_ptr_alignment, reason = "it is read and written without alignment")]
    aligned.cast::<*mut u8>().wrapping_sub(1)
}

// SAFETY: memory comes from the server or from the system, and goes back to where it came from: the functions are there before
// the first allocation. What needs more alignment is found inside a larger allocation, whose start stands before it.
unsafe impl GlobalAlloc for ServerMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(server) = FUNCTIONS.get() else {
            // SAFETY: as the caller promises.
            return unsafe { System.alloc(layout) };
        };
        if layout.align() <= ALIGNMENT {
            // SAFETY: any length is allowed.
            let memory = unsafe { (server.TryAlloc)(layout.size()) };
            return well_placed(server, memory).cast();
        }
        let Some(whole) = layout.size().checked_add(layout.align() + ALIGNMENT) else { return ptr::null_mut() };
        // SAFETY: as above.
        let start: *mut u8 = unsafe { (server.TryAlloc)(whole) }.cast();
        if start.is_null() {
            return start;
        }
        let skipped = ALIGNMENT + start.wrapping_add(ALIGNMENT).align_offset(layout.align());
        // SAFETY: `skipped` is less than `align + ALIGNMENT`, and a pointer fits between the start and the aligned address.
        unsafe {
            let aligned = start.add(skipped);
            before(aligned).write_unaligned(start);
            aligned
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let Some(server) = FUNCTIONS.get() else {
            // SAFETY: as the caller promises.
            return unsafe { System.dealloc(memory, layout) };
        };
        let start =
            // SAFETY: `alloc` has written the start there.
            if layout.align() <= ALIGNMENT { memory } else { unsafe { before(memory).read_unaligned() } };
        // SAFETY: the server allocated it.
        unsafe { (server.Free)(start.cast()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let is_simple = layout.size() < MANY && layout.align() <= ALIGNMENT && MOVING.load(Relaxed).is_null();
        if let Some(calloc) = FUNCTIONS.get().and_then(|server| server.TryCalloc).filter(|_| is_simple) {
            // SAFETY: any length is allowed.
            return unsafe { calloc(1, layout.size()) }.cast();
        }
        // SAFETY: as the caller promises.
        let memory = unsafe { self.alloc(layout) };
        if !memory.is_null() {
            // SAFETY: this many bytes were just allocated.
            unsafe { zero(memory, layout.size()) };
        }
        memory
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if let Some(realloc) = FUNCTIONS.get().and_then(|server| server.TryRealloc).filter(|_| layout.align() <= ALIGNMENT) {
            // SAFETY: the server allocated it.
            return unsafe { realloc(memory.cast(), size) }.cast();
        }
        // SAFETY: the caller promises that this layout is possible.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both have this many bytes, and the old memory is not used any more.
            unsafe {
                new.copy_from_nonoverlapping(memory, size.min(layout.size()));
                self.dealloc(memory, layout);
            }
        }
        new
    }
}

/// Moves a value into memory of its own, if there is any. `Box::new` would end the server.
pub(crate) fn boxed<T>(value: T) -> Result<Box<T>, Failure> {
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: the layout is not empty.
    let memory: *mut T = unsafe { alloc(Layout::new::<T>()) }.cast();
    if memory.is_null() {
        return Err(Failure::out_of_memory());
    }
    // SAFETY: the memory was allocated for such a value by the allocator that a box gives it back to.
    unsafe {
        memory.write(value);
        Ok(Box::from_raw(memory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_zeroed_is_zero_and_nothing_beside_it() {
        for len in [0, 1, FEW - 1, FEW, FEW + 1, MANY + 4095, 1 << 20] {
            for before in [0, 1, 4095] {
                let mut bytes = vec![7; before + len + 4096];
                // SAFETY: the vector is longer.
                unsafe { zero(bytes.as_mut_ptr().wrapping_add(before), len) };
                let is_zero = |at: usize| (before..before + len).contains(&at);
                assert!(bytes.iter().enumerate().all(|(at, &byte)| (byte == 0) == is_zero(at)), "{len} bytes from {before}");
            }
        }
    }
}
