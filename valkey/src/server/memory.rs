//! The module's allocator, which uses the server's memory.

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

/// The server's allocator, so that the server counts and limits the module's memory. In unit tests, which have no server, the
/// system's allocator.
///
/// Allocations return null on failure. The server's ordinary functions would end the server.
struct ServerMemory;

#[global_allocator]
static MEMORY: Counted<ServerMemory> = Counted(ServerMemory);

/// The alignment of every allocation of the server. (Where it keeps lengths in front of allocations, they are not aligned to more.)
const ALIGNMENT: usize = size_of::<usize>();

/// The server's handle for moving memory while it defragments a value; otherwise null. Only one thread allocates memory meanwhile.
pub(super) static DEFRAG: AtomicPtr<RawDefrag> = AtomicPtr::new(ptr::null_mut());

/// Returns newly allocated memory. While the server defragments, moves it away from nearly empty pages.
#[inline]
fn place_for_defrag(server: &Functions, memory: *mut c_void) -> *mut c_void {
    let defrag = DEFRAG.load(Relaxed);
    if defrag.is_null() || memory.is_null() {
        return memory;
    }
    // SAFETY: the server has just allocated it. If it moves the memory, it frees the old one.
    let moved = server.DefragAlloc.map_or(ptr::null_mut(), |relocate| unsafe { relocate(defrag, memory) });
    if moved.is_null() { memory } else { moved }
}

/// The smallest size that is zeroed by page: whole pages return to the system, which supplies zeroed ones at the first access.
/// Writing the zeros of a filter of 500 million items takes a quarter of a second, and the server's allocator writes them whenever
/// it reuses memory.
const LARGE: usize = 128 << 10;
/// The smallest size that is zeroed by page on servers without a function that allocates zeroed memory.
const LARGE_WITHOUT_CALLOC: usize = 32 << 10;

/// Fills memory that was just allocated with zeros.
///
/// # Safety
/// The memory must have `len` bytes.
unsafe fn zero(memory: *mut u8, len: usize) {
    #[cfg(target_os = "linux")]
    if len >= LARGE_WITHOUT_CALLOC {
        // SAFETY: as the caller promises; the bytes before and after the pages are inside, too.
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

/// Lets the system replace the whole pages in this memory by zeroed ones. Returns the range of bytes that are zero now.
///
/// # Safety
/// As for [`zero`].
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
    // SAFETY: the pages are inside the memory, and its content is not needed. Pages that are shared, or huge pages, may stay
    // unchanged, all of them or the last. So the last byte is marked first, and checked afterwards.
    unsafe {
        let (start, last) = (memory.add(first), memory.add(first + whole - 1));
        last.write_volatile(1);
        let is_done = madvise(start.cast(), whole, MADV_DONTNEED) == 0 && last.read_volatile() == 0;
        if is_done { first..first + whole } else { 0..0 }
    }
}

/// Returns the address that stores the start of an allocation, just before an aligned address in it.
fn stored_start(aligned: *mut u8) -> *mut *mut u8 {
    #[expect(clippy::cast_ptr_alignment, reason = "it is read and written without alignment")]
    aligned.cast::<*mut u8>().wrapping_sub(1)
}

// SAFETY: memory returns to where it came from, the server or the system, because the functions are set before the first
// allocation. Memory with a larger alignment lies inside a larger allocation, whose start is stored before it.
unsafe impl GlobalAlloc for ServerMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(server) = FUNCTIONS.get() else {
            // SAFETY: as the caller promises.
            return unsafe { System.alloc(layout) };
        };
        if layout.align() <= ALIGNMENT {
            // SAFETY: any size is allowed.
            let memory = unsafe { (server.TryAlloc)(layout.size()) };
            return place_for_defrag(server, memory).cast();
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
            stored_start(aligned).write_unaligned(start);
            aligned
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let Some(server) = FUNCTIONS.get() else {
            // SAFETY: as the caller promises.
            return unsafe { System.dealloc(memory, layout) };
        };
        let start =
            // SAFETY: `alloc` wrote the start there.
            if layout.align() <= ALIGNMENT { memory } else { unsafe { stored_start(memory).read_unaligned() } };
        // SAFETY: the server allocated it.
        unsafe { (server.Free)(start.cast()) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let is_simple = layout.size() < LARGE && layout.align() <= ALIGNMENT && DEFRAG.load(Relaxed).is_null();
        if let Some(calloc) = FUNCTIONS.get().and_then(|server| server.TryCalloc).filter(|_| is_simple) {
            // SAFETY: any size is allowed.
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
            // SAFETY: both have this many bytes, and the old memory is not used afterwards.
            unsafe {
                new.copy_from_nonoverlapping(memory, size.min(layout.size()));
                self.dealloc(memory, layout);
            }
        }
        new
    }
}

/// Moves a value to the heap. Returns an error if there is no memory, where `Box::new` would end the server.
pub(crate) fn boxed<T>(value: T) -> Result<Box<T>, Failure> {
    const { assert!(size_of::<T>() > 0) };
    // SAFETY: the layout is not empty.
    let memory: *mut T = unsafe { alloc(Layout::new::<T>()) }.cast();
    if memory.is_null() {
        return Err(Failure::out_of_memory());
    }
    // SAFETY: the memory fits the value, and comes from the allocator that the box returns it to.
    unsafe {
        memory.write(value);
        Ok(Box::from_raw(memory))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeroing_changes_only_the_given_bytes() {
        for len in [0, 1, LARGE_WITHOUT_CALLOC - 1, LARGE_WITHOUT_CALLOC, LARGE_WITHOUT_CALLOC + 1, LARGE + 4095, 1 << 20] {
            for start in [0, 1, 4095] {
                let mut bytes = vec![7; start + len + 4096];
                // SAFETY: the vector is longer.
                unsafe { zero(bytes.as_mut_ptr().wrapping_add(start), len) };
                let is_zero = |at: usize| (start..start + len).contains(&at);
                assert!(bytes.iter().enumerate().all(|(at, &byte)| (byte == 0) == is_zero(at)), "{len} bytes from {start}");
            }
        }
    }
}
