//! The counts of INFO, over all filters. They are atomic, because threads of the server free values. They count values in memory:
//! each from its creation until it is freed.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::{refusal::Refusal, server::allocated_bytes};

static FILTERS: AtomicU64 = AtomicU64::new(0);
static ITEMS: AtomicU64 = AtomicU64::new(0);
static IMPORTED: AtomicU64 = AtomicU64::new(0);
static LOADS: AtomicU64 = AtomicU64::new(0);
static GROWTHS: AtomicU64 = AtomicU64::new(0);
static REFUSALS: [AtomicU64; Refusal::COUNTED.len()] = [const { AtomicU64::new(0) }; Refusal::COUNTED.len()];

static BEYOND_PLAN: AtomicU64 = AtomicU64::new(0);

/// Filters by their memory: each class has sizes that differ by at most an eighth.
static SIZES: [SizeClass; SizeClass::COUNT] =
    [const { SizeClass { filters: AtomicU64::new(0), largest: AtomicU64::new(0) } }; SizeClass::COUNT];

/// The filters whose sizes in bytes agree in the position of the first bit and in the three bits after it.
struct SizeClass {
    filters: AtomicU64,
    /// The largest size since the class was empty.
    largest: AtomicU64,
}

impl SizeClass {
    const COUNT: usize = 64 << 3;

    fn of(bytes: u64) -> &'static Self {
        let position = bytes.max(8).ilog2();
        let class = u64::from(position) << 3 | bytes >> (position - 3) & 7;
        &SIZES[usize::try_from(class).unwrap_or(0)]
    }

    fn add(&self, bytes: u64) {
        // Only one thread adds filters. Others free them, which leaves at most a size that is an eighth too large.
        if self.filters.fetch_add(1, Relaxed) == 0 {
            self.largest.store(bytes, Relaxed);
        } else {
            self.largest.fetch_max(bytes, Relaxed);
        }
    }

    fn remove(&self) {
        self.filters.fetch_sub(1, Relaxed);
    }
}

/// Returns the size of the largest filter.
fn largest_filter_bytes() -> u64 {
    SIZES.iter().rev().find(|class| class.filters.load(Relaxed) > 0).map_or(0, |class| class.largest.load(Relaxed))
}

/// A filter's share of the counts.
pub(crate) struct FilterCounts {
    items: u64,
    /// The memory of the filter when it was last recorded.
    bytes: u64,
    is_imported: bool,
    is_beyond_plan: bool,
}

impl FilterCounts {
    pub(crate) fn new(items: u64, is_imported: bool) -> Self {
        FILTERS.fetch_add(1, Relaxed);
        ITEMS.fetch_add(items, Relaxed);
        IMPORTED.fetch_add(is_imported.into(), Relaxed);
        SizeClass::of(0).add(0);
        Self { items, bytes: 0, is_imported, is_beyond_plan: false }
    }

    /// Records the memory of the filter, and whether it has grown beyond its plan.
    pub(crate) fn set_memory(&mut self, bytes: u64, is_beyond_plan: bool) {
        if bytes != self.bytes {
            SizeClass::of(self.bytes).remove();
            SizeClass::of(bytes).add(bytes);
            self.bytes = bytes;
        }
        if is_beyond_plan != self.is_beyond_plan {
            BEYOND_PLAN.fetch_add(u64::from(is_beyond_plan).wrapping_sub(self.is_beyond_plan.into()), Relaxed);
            self.is_beyond_plan = is_beyond_plan;
        }
    }

    pub(crate) fn items(&self) -> u64 {
        self.items
    }

    /// Records that the filter has no imported part any more.
    pub(crate) fn imported_is_gone(&mut self) {
        IMPORTED.fetch_sub(self.is_imported.into(), Relaxed);
        self.is_imported = false;
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
        BEYOND_PLAN.fetch_sub(self.is_beyond_plan.into(), Relaxed);
        SizeClass::of(self.bytes).remove();
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
        (c"filters_beyond_plan", &BEYOND_PLAN),
        (c"half_loaded_filters", &LOADS),
        (c"growths", &GROWTHS),
    ];
    own.into_iter().for_each(|(name, count)| show(name, count.load(Relaxed)));
    show(c"bytes", allocated_bytes());
    show(c"largest_filter_bytes", largest_filter_bytes());
    for ((name, _), count) in Refusal::COUNTED.iter().zip(&REFUSALS) {
        show(name, count.load(Relaxed));
    }
}
