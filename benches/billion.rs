//! Filters of more than a billion items with f = 9: built, saved, mapped, verified, and queried for every item.
//!
//! ```sh
//! cargo bench --bench billion                  # 1.2 · 10⁹ items: ten minutes, 2 GB of memory, 2 GB of disk
//! cargo bench --bench billion -- 4400000000    # more than 2³² items, and a table of more than 2³² bytes
//! ```
//!
//! Prints Markdown. The files are in the folder for temporary files, and are deleted. Every item must be found. The measured
//! false-positive rate must be within five standard deviations of the expected one.

#![allow(clippy::cast_precision_loss, reason = "figures are rounded for display")]

use std::{fs, path::Path, time::Instant};

use koel::{Contains, CuckooFilter, ElasticFilter, ElasticView, FilterView};
use koel_benches::{Extent, Scratch, count, key, row};

const ITEMS: u64 = 1_200_000_000;
/// A rate for which fingerprints of nine bits suffice.
const RATE: f64 = 0.016;
/// The number of keys that are in memory at a time.
const PIECE: u64 = 1 << 24;

/// Calls `act` with the keys of these numbers, in pieces.
fn each_piece(numbers: std::ops::Range<u64>, mut act: impl FnMut(&[u64])) {
    let mut keys = Vec::new();
    for start in numbers.clone().step_by(usize::try_from(PIECE).expect("a small number")) {
        keys.clear();
        keys.extend((start..numbers.end.min(start + PIECE)).map(key));
        act(&keys);
    }
}

/// The times of a filter's operations, in seconds.
struct Times {
    items: u64,
    last: Instant,
    rows: Vec<(&'static str, f64)>,
}

impl Times {
    fn new(items: u64) -> Self {
        Self { items, last: Instant::now(), rows: Vec::new() }
    }

    /// Adds a row for the time since the previous row.
    fn row(&mut self, operation: &'static str) {
        self.rows.push((operation, self.last.elapsed().as_secs_f64()));
        self.last = Instant::now();
    }

    /// Returns the column of a filter in the table.
    fn column(&self, path: &Path, [measured, expected]: [f64; 2]) -> Vec<(&'static str, String)> {
        let bytes = fs::metadata(path).expect("the file exists").len();
        let time = |seconds: f64| match seconds * 1e9 / self.items as f64 {
            each if each >= 5.0 => format!("{each:.1} ns per item"),
            _ => format!("{seconds:.2} s"),
        };
        let mut column =
            vec![("bytes", count(bytes)), ("bits per item", format!("{:.2}", 8.0 * bytes as f64 / self.items as f64))];
        column.extend(self.rows.iter().map(|&(operation, seconds)| (operation, time(seconds))));
        column.extend([
            ("false-positive rate, expected", format!("{:.4} %", 100.0 * expected)),
            ("false-positive rate, measured", format!("{:.4} %", 100.0 * measured)),
        ]);
        column
    }
}

/// Looks up all items, which must be found, and as many absent ones. Returns the measured rate and the expected one.
fn look_up(view: &impl Contains<u64>, times: &mut Times) -> [f64; 2] {
    let (items, expected) = (times.items, view.false_positive_rate());
    assert_eq!(view.len() as u64, items);
    let mut found = vec![false; usize::try_from(PIECE).expect("a small number")];
    let mut counts = [0_u64; 2];
    let ranges = [("`contains_batch`, present", 0..items), ("`contains_batch`, absent", items..2 * items)];
    for ((operation, range), count) in ranges.into_iter().zip(&mut counts) {
        each_piece(range, |keys| {
            let found = &mut found[..keys.len()];
            view.contains_batch(keys, found);
            *count += found.iter().filter(|&&found| found).count() as u64;
        });
        times.row(operation);
    }
    assert_eq!(counts[0], items, "an item is lost");
    let rate = counts[1] as f64 / items as f64;
    // Chance alone exceeds five standard deviations in one of a million runs. One hit more or less is always possible.
    let deviation = ((expected * (1.0 - expected) + 1.0 / items as f64) / items as f64).sqrt();
    assert!((rate - expected).abs() <= 5.0 * deviation, "{rate} instead of {expected} ± {deviation}");
    [rate, expected]
}

fn fixed(items: u64) -> Vec<(&'static str, String)> {
    let (file, mut times) = (Scratch::new("fixed"), Times::new(items));
    let capacity = usize::try_from(items).expect("64 bits");
    let builder = CuckooFilter::builder().capacity(capacity).fingerprint_bits(9);
    let mut filter = builder.build().expect("there is memory");
    times.row("allocate");
    filter.insert_iter((0..items).map(key)).expect("there is room");
    times.row("`insert_iter`, `insert_unordered`");
    filter.save(file.path()).expect("there is disk space");
    times.row("`save`");
    drop(filter);
    let view = FilterView::over(file.map()).expect("a saved snapshot is valid");
    times.row("`over`, of a mapped file");
    view.verify().expect("a saved snapshot is valid");
    times.row("`verify`");
    let rates = look_up(&view, &mut times);
    times.column(file.path(), rates)
}

fn elastic(items: u64) -> Vec<(&'static str, String)> {
    let (file, mut times) = (Scratch::new("elastic"), Times::new(items));
    let capacity = usize::try_from(items).expect("64 bits");
    let builder = ElasticFilter::builder().capacity(capacity).max_capacity(capacity).false_positive_rate(RATE);
    let mut filter = builder.build().expect("there is memory");
    times.row("allocate");
    each_piece(0..items, |keys| filter.insert_unordered(keys).expect("the filter grows"));
    times.row("`insert_iter`, `insert_unordered`");
    filter.save(file.path()).expect("there is disk space");
    times.row("`save`");
    drop(filter);
    let view = ElasticView::over(file.map()).expect("a saved snapshot is valid");
    times.row("`over`, of a mapped file");
    view.verify().expect("a saved snapshot is valid");
    times.row("`verify`");
    let rates = look_up(&view, &mut times);
    times.column(file.path(), rates)
}

fn main() {
    let items = Extent::of_arguments(&[], ITEMS, 1).items;
    println!("{} items, f = 9, one thread, one run; times per item include making the keys.\n", count(items));
    println!("| | `CuckooFilter` | `ElasticFilter`, planned |\n|---|---:|---:|");
    for ((name, fixed), (_, elastic)) in fixed(items).into_iter().zip(elastic(items)) {
        row(name, [fixed, elastic]);
    }
}
