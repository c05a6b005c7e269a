//! The counts of INFO, over all filters. They are atomic, because threads of the server free values. They count values in memory:
//! each from its creation until it is freed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{filter::Refusal, server::allocated_bytes};

static FILTERS: AtomicU64 = AtomicU64::new(0);
static ITEMS: AtomicU64 = AtomicU64::new(0);
static IMPORTED: AtomicU64 = AtomicU64::new(0);
static LOADS: AtomicU64 = AtomicU64::new(0);
static GROWTHS: AtomicU64 = AtomicU64::new(0);
static REFUSALS: [AtomicU64; Refusal::COUNTED.len()] = [const { AtomicU64::new(0) }; Refusal::COUNTED.len()];

/// A filter's share of the counts.
pub(crate) struct FilterCounts {
    items: u64,
    is_imported: bool,
}

impl FilterCounts {
    pub(crate) fn new(items: u64, is_imported: bool) -> Self {
        FILTERS.fetch_add(1, Relaxed);
        ITEMS.fetch_add(items, Relaxed);
        IMPORTED.fetch_add(is_imported.into(), Relaxed);
        Self { items, is_imported }
    }

    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    /// Records that items were inserted and removed.
    pub(crate) fn change(&mut self, inserted: u64, removed: u64) {
        self.items = self.items + inserted - removed;
        ITEMS.fetch_add(inserted.wrapping_sub(removed), Relaxed);
    }
}

impl Drop for FilterCounts {
    fn drop(&mut self) {
        FILTERS.fetch_sub(1, Relaxed);
        ITEMS.fetch_sub(self.items, Relaxed);
        IMPORTED.fetch_sub(self.is_imported.into(), Relaxed);
    }
}

/// A half-loaded filter's share of the counts.
pub(crate) struct LoadCount(());

impl LoadCount {
    pub(crate) fn new() -> Self {
        LOADS.fetch_add(1, Relaxed);
        Self(())
    }
}

impl Drop for LoadCount {
    fn drop(&mut self) {
        LOADS.fetch_sub(1, Relaxed);
    }
}

/// Counts an insertion that allocated memory.
pub(crate) fn count_growth() {
    GROWTHS.fetch_add(1, Relaxed);
}

/// Counts refused items, or a refused filter as one.
pub(crate) fn count_refusals(refusal: Refusal, items: usize) {
    REFUSALS[refusal.counter()].fetch_add(items as u64, Relaxed);
}

/// Passes each field of the INFO section to `show`. Also called from a signal handler, when the server reports a crash.
pub(crate) fn each_field(mut show: impl FnMut(&'static std::ffi::CStr, u64)) {
    let own = [
        (c"filters", &FILTERS),
        (c"items", &ITEMS),
        (c"filters_with_imported_items", &IMPORTED),
        (c"half_loaded_filters", &LOADS),
        (c"growths", &GROWTHS),
    ];
    own.into_iter().for_each(|(name, count)| show(name, count.load(Relaxed)));
    show(c"bytes", allocated_bytes());
    for ((name, _), count) in Refusal::COUNTED.iter().zip(&REFUSALS) {
        show(name, count.load(Relaxed));
    }
}
