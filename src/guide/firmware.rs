//! Firmware of a door that opens for every card but the revoked ones. It queries their filter in flash, and allocates nothing.
#![no_std]
#![no_main]

use core::{
    alloc::{GlobalAlloc, Layout},
    hint::black_box,
    panic::PanicInfo,
    ptr,
    sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
};

use koel::FilterView;

/// Written by `koel build revoked.txt -o revoked.koel`: a line for each card, in eight hexadecimal digits.
static REVOKED: &[u8] = include_bytes!("revoked.koel");

/// The number of the card at the reader, which an interrupt stores, and whether the door is open.
static CARD: AtomicU32 = AtomicU32::new(0);
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// The start-up code of the board calls it.
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    loop {
        // This program works with any snapshot. Without `black_box`, it would lack the code that this one does not need.
        let revoked = FilterView::over(black_box(REVOKED));
        // Without a valid header, the door stays closed. The boot loader has checked all bytes, as it has those of the program.
        let is_revoked = revoked.map_or(true, |revoked| revoked.contains(&digits(CARD.load(Relaxed))));
        IS_OPEN.store(!is_revoked, Relaxed);
    }
}

fn digits(card: u32) -> [u8; 8] {
    core::array::from_fn(|at| b"0123456789abcdef"[(card >> (28 - 4 * at) & 15) as usize])
}

/// Programs that link `alloc` need an allocator. This one has no memory, and `FilterView` asks for none.
struct NoMemory;

// SAFETY: null means that there is no memory, so there is nothing to free either.
unsafe impl GlobalAlloc for NoMemory {
    unsafe fn alloc(&self, _: Layout) -> *mut u8 {
        ptr::null_mut()
    }
    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static NO_MEMORY: NoMemory = NoMemory;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}
