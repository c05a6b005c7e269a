//! What INFO says of all filters together. Threads of the server's own free values, so every number is atomic, and counts what is in
//! memory: a value counts from when it is made until it is freed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{filter::Refusal, server::memory_taken};

static FILTERS: AtomicU64 = AtomicU64::new(0);
static ITEMS: AtomicU64 = AtomicU64::new(0);
static IMPORTED: AtomicU64 = AtomicU64::new(0);
static LOADS: AtomicU64 = AtomicU64::new(0);
static GROWTHS: AtomicU64 = AtomicU64::new(0);
static REFUSALS: [AtomicU64; Refusal::COUNTED.len()] = [const { AtomicU64::new(0) }; Refusal::COUNTED.len()];

/// A filter's part of the counts.
pub(crate) struct OfFilter {
    items: u64,
    is_imported: bool,
}

impl OfFilter {
    pub(crate) fn new(items: u64, is_imported: bool) -> Self {
        FILTERS.fetch_add(1, Relaxed);
        ITEMS.fetch_add(items, Relaxed);
        IMPORTED.fetch_add(is_imported.into(), Relaxed);
        Self { items, is_imported }
    }

    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    /// This many items came, and this many went.
    pub(crate) fn change(&mut self, inserted: u64, removed: u64) {
        self.items = self.items + inserted - removed;
        ITEMS.fetch_add(inserted.wrapping_sub(removed), Relaxed);
    }
}

impl Drop for OfFilter {
    fn drop(&mut self) {
        FILTERS.fetch_sub(1, Relaxed);
        ITEMS.fetch_sub(self.items, Relaxed);
        IMPORTED.fetch_sub(self.is_imported.into(), Relaxed);
    }
}

/// A half-loaded filter's part of the counts.
pub(crate) struct OfLoad(());

impl OfLoad {
    pub(crate) fn new() -> Self {
        LOADS.fetch_add(1, Relaxed);
        Self(())
    }
}

impl Drop for OfLoad {
    fn drop(&mut self) {
        LOADS.fetch_sub(1, Relaxed);
    }
}

/// An insertion took memory.
pub(crate) fn grown() {
    GROWTHS.fetch_add(1, Relaxed);
}

/// This many items, or a filter, were refused.
pub(crate) fn refused(refusal: Refusal, items: usize) {
    REFUSALS[refusal.counter()].fetch_add(items as u64, Relaxed);
}

/// The fields of the section of INFO. Called from a signal handler, too, when the server reports a crash.
pub(crate) fn each(mut show: impl FnMut(&'static std::ffi::CStr, u64)) {
    let own = [
        (c"filters", &FILTERS),
        (c"items", &ITEMS),
        (c"filters_with_imported_items", &IMPORTED),
        (c"half_loaded_filters", &LOADS),
        (c"growths", &GROWTHS),
    ];
    own.into_iter().for_each(|(name, count)| show(name, count.load(Relaxed)));
    show(c"bytes", memory_taken());
    for ((name, _), count) in Refusal::COUNTED.iter().zip(&REFUSALS) {
        show(name, count.load(Relaxed));
    }
}
