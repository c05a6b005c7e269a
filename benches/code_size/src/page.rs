//! Queries a filter that is embedded in a page of a browser.

use koel::FilterView;

static SNAPSHOT: &[u8] = include_bytes!("../../../tests/data/packed_f13_any.koel");

/// Returns 1 if the item may be in the filter, 0 if it is absent, and 2 if the filter is damaged.
#[unsafe(no_mangle)]
pub extern "C" fn contains(item: u64) -> u32 {
    let snapshot = std::hint::black_box(SNAPSHOT);
    FilterView::over(snapshot).map_or(2, |filter| filter.contains(&item).into())
}
