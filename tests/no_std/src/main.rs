//! Builds, writes, reads and queries a filter without std. Exits with 0 if all results are correct.

#![no_std]
#![no_main]

use core::{
    alloc::{GlobalAlloc, Layout},
    cell::UnsafeCell,
    ffi::c_int,
    panic::PanicInfo,
    sync::atomic::{AtomicUsize, Ordering},
};
use koel::{CuckooFilter, FilterView};

const ARENA: usize = 4 << 20;

/// A bump allocator: it never reuses freed memory.
struct Bump {
    arena: UnsafeCell<[u8; ARENA]>,
    used: AtomicUsize,
}

// SAFETY: `used` is only ever increased, atomically, so no two allocations share a byte of `arena`.
unsafe impl Sync for Bump {}

// SAFETY: every block lies within `arena`, is aligned as requested, and is returned once.
unsafe impl GlobalAlloc for Bump {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = self.used.fetch_add(layout.size() + layout.align(), Ordering::Relaxed);
        if start + layout.size() + layout.align() > ARENA {
            return core::ptr::null_mut();
        }
        let block = self.arena.get().cast::<u8>().wrapping_add(start);
        block.wrapping_add(block.align_offset(layout.align()))
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static MEMORY: Bump = Bump { arena: UnsafeCell::new([0; ARENA]), used: AtomicUsize::new(0) };

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: C's `abort` may be called at any time.
    unsafe { abort() }
}

unsafe extern "C" {
    fn abort() -> !;
}

/// Returns true if all results are correct, and `None` if an operation fails.
fn run() -> Option<bool> {
    let mut filter = CuckooFilter::builder().capacity(10_000).false_positive_rate(0.001).build().ok()?;
    for item in 0..10_000u32 {
        filter.insert(&item).ok()?;
    }
    let bytes = filter.to_bytes();
    // Firmware that only looks items up may have no allocator, so opening and querying must not allocate.
    let used = MEMORY.used.load(Ordering::Relaxed);
    let view = FilterView::over(&bytes).ok()?;
    let view_finds_all = view.verify().is_ok() && (0..10_000u32).all(|item| view.contains(&item));
    if !view_finds_all || MEMORY.used.load(Ordering::Relaxed) != used {
        return None;
    }
    let mut read = CuckooFilter::from_bytes(&bytes).ok()?;
    let found = (0..10_000u32).all(|item| read.contains(&item));
    let removed = (0..10_000u32).all(|item| read.remove(&item));
    let rate = filter.measure_false_positive_rate(100_000);
    Some(found && removed && read.is_empty() && rate < 0.002)
}

#[unsafe(no_mangle)]
extern "C" fn main() -> c_int {
    if run() == Some(true) { 0 } else { 1 }
}

/// `alloc` was compiled to unwind, and so needs this symbol and the next one. Nothing here unwinds.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    // SAFETY: C's `abort` may be called at any time.
    unsafe { abort() }
}
