//! The functions that koel.js calls, and what a program without std needs. A handle that is not open gives 0.
#![allow(unsafe_code, reason = "exported names, an allocator, and a static of a program with one thread")]

use core::{arch::wasm32, cell::RefCell, panic::PanicInfo, ptr};

use lol_alloc::{AssumeSingleThreaded, FreeListAllocator};

use crate::Module;

// SAFETY: a WebAssembly module without shared memory has one thread; each worker has a module of its own.
#[global_allocator]
static ALLOCATOR: AssumeSingleThreaded<FreeListAllocator> = unsafe { AssumeSingleThreaded::new(FreeListAllocator::new()) };

struct SingleThreaded(RefCell<Module>);

// SAFETY: as above, no second thread exists.
unsafe impl Sync for SingleThreaded {}

static MODULE: SingleThreaded = SingleThreaded(RefCell::new(Module::new()));

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    wasm32::unreachable()
}

fn with<R>(act: impl FnOnce(&mut Module) -> R) -> R {
    act(&mut MODULE.0.borrow_mut())
}

/// Returns the buffer, which has at least `len` bytes until the next call of `buffer` or `open`; null if there is no memory.
#[unsafe(no_mangle)]
extern "C" fn buffer(len: usize) -> *mut u8 {
    with(|module| module.reserve(len).unwrap_or(ptr::null_mut()))
}

/// Opens the snapshot in the first `len` bytes of the buffer. Returns its handle, or -1 if the buffer has an error.
#[unsafe(no_mangle)]
extern "C" fn open(len: usize, verify: bool) -> i32 {
    with(|module| module.open(len, verify).map_or(-1, u32::cast_signed))
}

#[unsafe(no_mangle)]
extern "C" fn error_len() -> usize {
    with(|module| module.buffer.len())
}

#[unsafe(no_mangle)]
extern "C" fn close(handle: u32) {
    with(|module| module.open.get_mut(handle as usize).map(Option::take));
}

#[unsafe(no_mangle)]
extern "C" fn property(handle: u32, number: u32) -> f64 {
    with(|module| module.snapshot(handle).map_or(f64::NAN, |snapshot| snapshot.property(number)))
}

fn hash_of(module: &Module, handle: u32, len: usize) -> u64 {
    module.snapshot(handle).map_or(0, |snapshot| snapshot.hash(module.item(len)))
}

fn contains(module: &Module, handle: u32, hash: u64) -> bool {
    module.snapshot(handle).is_some_and(|snapshot| snapshot.contains(hash))
}

#[unsafe(no_mangle)]
extern "C" fn has_bytes(handle: u32, len: usize) -> bool {
    with(|module| contains(module, handle, hash_of(module, handle, len)))
}

/// Looks up an integer by its halves, since halves of a number take less time in JavaScript than a `BigInt`.
#[unsafe(no_mangle)]
extern "C" fn has_halves(handle: u32, low: u32, high: u32) -> bool {
    has_integer(handle, u64::from(high) << 32 | u64::from(low))
}

#[unsafe(no_mangle)]
extern "C" fn has_integer(handle: u32, item: u64) -> bool {
    with(|module| {
        let hash = module.snapshot(handle).map_or(0, |snapshot| snapshot.hash(&item.to_le_bytes()));
        contains(module, handle, hash)
    })
}

#[unsafe(no_mangle)]
extern "C" fn has_hash(handle: u32, hash: u64) -> bool {
    with(|module| contains(module, handle, hash))
}

#[unsafe(no_mangle)]
extern "C" fn has_batch(handle: u32, count: usize) {
    with(|module| module.contains_batch(handle, count));
}

#[unsafe(no_mangle)]
extern "C" fn count(handle: u32, len: usize) -> u32 {
    with(|module| {
        let hash = hash_of(module, handle, len);
        module.snapshot(handle).map_or(0, |snapshot| snapshot.count(hash))
    })
}

#[unsafe(no_mangle)]
extern "C" fn hash(handle: u32, len: usize) -> u64 {
    with(|module| hash_of(module, handle, len))
}
