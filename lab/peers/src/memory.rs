//! How much memory is in use, by the allocator's own count: the same measure for all, whatever a crate says of itself.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes on the heap, as they were asked for.
pub(crate) fn live() -> usize {
    let stats = ALLOCATOR.stats();
    // The counts are read one after another, and where tests run side by side another thread may come between.
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}
