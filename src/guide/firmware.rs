//! Firmware of a door that opens for every card except revoked ones. It queries a filter in flash and allocates nothing.
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

/// The filter of revoked cards, written by `koel build revoked.txt -o revoked.koel`. The text file has a line of eight hexadecimal
/// digits for each card.
static REVOKED: &[u8] = include_bytes!("revoked.koel");

/// The number of the card at the reader. An interrupt handler stores it.
static CARD: AtomicU32 = AtomicU32::new(0);
/// True while the door is open.
static IS_OPEN: AtomicBool = AtomicBool::new(false);

/// The entry point, which the start-up code of the board calls.
#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    loop {
        // `black_box` keeps the code for all snapshots. Otherwise, the compiler would drop code that this snapshot does not need.
        let revoked = FilterView::over(black_box(REVOKED));
        // With an invalid header, the door stays closed. The boot loader has checked all other bytes together with the program.
        let is_revoked = revoked.map_or(true, |revoked| revoked.contains(&digits(CARD.load(Relaxed))));
        IS_OPEN.store(!is_revoked, Relaxed);
    }
}

fn digits(card: u32) -> [u8; 8] {
    core::array::from_fn(|at| b"0123456789abcdef"[(card >> (28 - 4 * at) & 15) as usize])
}

/// An allocator without memory. Programs that link `alloc` need an allocator, but `FilterView` allocates nothing.
struct NoMemory;

// SAFETY: `alloc` always returns null, which reports a failed allocation, so `dealloc` has nothing to free.
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
