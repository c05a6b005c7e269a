//! How much memory is in use, as counted by the allocator: the same measure for all filters, whatever they report.

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The number of allocated bytes on the heap.
pub(crate) fn live() -> usize {
    let stats = ALLOCATOR.stats();
    // The two counts are not read atomically: while tests run in parallel, the difference may be negative.
    stats.bytes_allocated.saturating_sub(stats.bytes_deallocated)
}
