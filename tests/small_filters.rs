//! Thousands of small filters in one program: the memory that they take, as a counting allocator measures, and how they are stored.

#![allow(clippy::cast_precision_loss, reason = "small numbers")]

#[path = "common/heap.rs"]
mod heap;
#[path = "common/same_bits.rs"]
mod same_bits;

use heap::{Counting, held};
use koel::{CuckooFilter, FilterView, Params, Xxh3};
use same_bits::same_bits;
use std::collections::BTreeMap;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const FILTERS: u64 = 2000;
const ITEMS: u64 = 1000;
/// Bytes of padding after every table.
#[cfg(target_pointer_width = "64")]
const PADDING: usize = 8;
/// Bytes of a snapshot besides its table: the header and the checksum.
const FRAME: usize = 64 + 8;

fn params() -> Params {
    CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).params().expect("valid parameters")
}

/// Returns item `n` of a filter.
fn item(filter: u64, n: u64) -> (u64, u64) {
    (filter, n)
}

fn filled(number: u64) -> CuckooFilter {
    let mut filter = CuckooFilter::new(params(), Xxh3).expect("there is memory");
    for n in 0..ITEMS {
        filter.insert(&item(number, n)).expect("the capacity fits");
    }
    filter
}

fn all_filters() -> Vec<CuckooFilter> {
    let mut filters = Vec::with_capacity(2000);
    filters.extend((0..FILTERS).map(filled));
    filters
}

#[cfg(target_pointer_width = "64")]
fn bits_per_item(bytes: usize) -> f64 {
    8.0 * bytes as f64 / (FILTERS * ITEMS) as f64
}

#[test]
#[cfg(target_pointer_width = "64")]
fn filter_structs_are_small() {
    assert!(size_of::<CuckooFilter>() <= 104, "{}", size_of::<CuckooFilter>());
    assert!(size_of::<Params>() <= 24, "{}", size_of::<Params>());
    // A view stores a slice and two offsets, four words in all, where a filter stores three words for its memory.
    assert!(size_of::<FilterView<&[u8]>>() <= size_of::<CuckooFilter>() + 8, "{}", size_of::<FilterView<&[u8]>>());
}

/// Checks the table in the guide to small filters: bytes of a bare table, a snapshot and a filter.
#[test]
#[cfg(target_pointer_width = "64")]
fn sizes_in_the_guide_are_correct() {
    let guide = include_str!("../src/guide/small_filters.md");
    for items in [100, 1000, 10_000_usize] {
        let filter = CuckooFilter::builder().capacity(items).false_positive_rate(1.0 / 256.0).build().expect("valid parameters");
        // If there is only one kernel, filters do not store it.
        let kernel = if cfg!(all(target_arch = "x86_64", feature = "kernels")) { 0 } else { size_of::<usize>() };
        let sizes = [filter.to_table().len(), filter.to_bytes().len(), filter.size_in_bytes() + kernel];
        assert_eq!(sizes[0], filter.params().bare_table_bytes());
        let cells = sizes.map(|bytes| format!(" {bytes} ({:.2}) |", 8.0 * bytes as f64 / items as f64)).concat();
        let items = if items < 1000 { items.to_string() } else { format!("{},000", items / 1000) };
        assert!(guide.contains(&format!("| {items} |{cells}\n")), "| {items} |{cells}");
    }
}

/// Filters hold no memory but their structs and tables.
#[test]
#[cfg(target_pointer_width = "64")]
fn filters_take_little_more_than_their_tables() {
    let (filters, bytes) = held(all_filters);
    let table = params().table_bytes();
    assert_eq!(bytes, filters.len() * (size_of::<CuckooFilter>() + table + PADDING));
    assert_eq!(
        bytes,
        filters.iter().map(CuckooFilter::size_in_bytes).sum::<usize>(),
        "size_in_bytes is the memory that filters take"
    );
    let (tables, whole) = (bits_per_item(filters.len() * table), bits_per_item(bytes));
    println!("{tables:.2} bits per item in the tables, {whole:.2} with everything around them");
    assert!(tables < 12.75 && whole < 13.6, "{tables}, {whole}");
    // Each filter contains items of another one only as false positives.
    let results = filters.iter().zip(1u64..).flat_map(|(filter, other)| (0..100).map(move |n| filter.contains(&item(other, n))));
    let found = results.filter(|&found| found).count();
    assert!(found < 2 * 200, "{found} of 200,000 found, at most 200 expected");
    drop(filters);
    assert_eq!(held(|| drop(all_filters())).1, 0, "dropped filters are freed");
}

/// Snapshots in one buffer need only an index of their offsets to be queried in place.
#[test]
fn snapshots_in_one_buffer_are_queried_in_place() {
    let filters = all_filters();
    let buffer: Vec<u8> = filters.iter().flat_map(CuckooFilter::to_bytes).collect();
    assert_eq!(buffer.len(), filters.len() * (params().table_bytes() + FRAME));
    let mut starts = BTreeMap::new();
    let mut start = 0;
    for number in 0..FILTERS {
        let (view, len) = FilterView::over_prefix(&buffer[start..]).expect("valid snapshot");
        assert_eq!(view.params(), params());
        starts.insert(number, start);
        start += len;
    }
    assert_eq!(start, buffer.len());
    for (number, filter) in (0u64..).zip(&filters) {
        let (view, _) = FilterView::over_prefix(&buffer[starts[&number]..]).expect("valid snapshot");
        view.verify().expect("valid snapshot");
        assert!(same_bits(&view, filter));
        assert!((0..ITEMS).all(|n| view.contains(&item(number, n))));
    }
}

/// Bare tables of equal parameters need no index, because they are at equal distances.
#[test]
fn bare_tables_in_one_buffer_are_queried_in_place() {
    let filters = all_filters();
    let mut buffer: Vec<u8> = filters.iter().flat_map(CuckooFilter::to_table).collect();
    let stride = params().table_bytes() + 4;
    assert_eq!(buffer.len(), filters.len() * stride);
    buffer.extend([0; 4]);
    for (number, filter) in filters.iter().enumerate() {
        let view = FilterView::over_table(&buffer[number * stride..], params(), filter.len()).expect("valid table");
        view.verify().expect("valid table");
        assert!(same_bits(&view, filter));
        assert!((0..ITEMS).all(|n| view.contains(&item(number as u64, n))));
    }
}

/// Views of small snapshots and tables hold no memory besides the bytes that they are given.
#[test]
fn views_hold_no_memory_of_their_own() {
    let filter = filled(1);
    let bytes = [filter.to_table(), vec![0; 4]].concat();
    let (view, taken) = held(|| FilterView::over_table(&bytes, params(), filter.len()).expect("valid table"));
    assert_eq!(taken, 0);
    let ((), taken) = held(|| view.verify().expect("valid table"));
    assert_eq!(taken, 0);
    let bytes = filled(1).to_bytes();
    let (view, taken) = held(|| FilterView::over(&bytes).expect("valid snapshot"));
    assert_eq!(taken, 0);
    let ((), taken) = held(|| view.verify().expect("valid snapshot"));
    assert_eq!(taken, 0);
}
