//! Measures insertion and removal of items that are inserted several times each, compared with items inserted once.
//!
//! ```sh
//! cargo bench --bench copies                # 1 M distinct items, two minutes
//! cargo bench --bench copies -- 3000000     # this many items
//! ```
//!
//! Prints Markdown. Times are in nanoseconds per insertion or removal, including hashing: medians of interleaved rounds. Every
//! result is checked.

#![allow(clippy::cast_precision_loss, reason = "the numbers are small")]

use std::hint::black_box;

use koel::Insert;
use koel_benches::{Extent, RATE, count, fixed, growing, key, median, row, time};

const ROUNDS: usize = 3;
const DEFAULT_ITEMS: u64 = 1_000_000;

/// How often each item is inserted.
const COPIES: [usize; 5] = [1, 2, 3, 8, 50];

const OPERATIONS: [&str; 4] = ["insert, in a row", "insert, by passes", "`insert_batch`, by passes", "remove, by passes"];
type Times = [f64; OPERATIONS.len()];

/// Returns the times, and the bytes that the filter with all copies takes.
fn measure<F: Insert<u64>>(build: impl Fn(usize) -> F, keys: &[u64], copies: usize) -> (Times, usize) {
    let (mut filter, all) = (build(keys.len()), keys.len() * copies);
    let mut times = Times::default();
    times[0] = time(all, || {
        keys.iter().for_each(|key| (0..copies).for_each(|_| filter.insert(black_box(key)).expect("there is room")));
    });
    check(&filter, keys, copies);
    let mut filter = build(keys.len());
    times[1] = time(all, || {
        (0..copies).for_each(|_| keys.iter().for_each(|key| filter.insert(black_box(key)).expect("there is room")));
    });
    check(&filter, keys, copies);
    let bytes = filter.size_in_bytes();
    times[3] = time(all, || (0..copies).for_each(|_| keys.iter().for_each(|key| assert!(filter.remove(black_box(key))))));
    assert_eq!(filter.len(), 0);
    let mut filter = build(keys.len());
    times[2] = time(all, || (0..copies).for_each(|_| filter.insert_batch(black_box(keys)).expect("there is room")));
    check(&filter, keys, copies);
    (times, bytes)
}

/// Asserts that every item has its copies. A few have more: the copies of an item that collides with them.
fn check(filter: &impl Insert<u64>, keys: &[u64], copies: usize) {
    assert_eq!(filter.len(), keys.len() * copies);
    let more = keys.iter().step_by(97).filter(|&key| filter.count(key) as usize > copies).count();
    assert!(keys.iter().step_by(97).all(|key| filter.count(key) as usize >= copies) && more * 97 < keys.len() / 50);
}

/// Prints the table of one kind of filter.
fn table<F: Insert<u64>>(build: impl Fn(usize) -> F, keys: &[u64], rounds: usize) {
    let mut all = vec![Vec::new(); COPIES.len()];
    for _ in 0..rounds {
        for (&copies, all) in COPIES.iter().zip(&mut all) {
            all.push(measure(&build, keys, copies));
        }
    }
    row("copies of each item", OPERATIONS.iter().copied().chain(["bytes"]).map(String::from));
    row("---:", [OPERATIONS.len() + 1].map(|columns| vec!["---:"; columns].join(" | ")));
    let times = |rounds: &[(Times, usize)], at: usize| median(&rounds.iter().map(|(times, _)| times[at]).collect::<Vec<_>>());
    for (copies, rounds) in COPIES.iter().zip(&all) {
        let cell = |at| format!("{:.0} ({:.1})", times(rounds, at), times(rounds, at) / times(&all[0], at));
        let further = (rounds[0].1 as f64 - all[0][0].1 as f64) / keys.len() as f64;
        row(&copies.to_string(), (0..OPERATIONS.len()).map(cell).chain([format!("{further:.1}")]));
    }
}

fn main() {
    let extent = Extent::of_arguments(&[], DEFAULT_ITEMS, ROUNDS);
    let keys: Vec<u64> = (0..extent.length() as u64).map(key).collect();
    println!(
        "{} items, a rate of {RATE}: ns per insertion or removal; in brackets, times as long as without copies; and bytes for each item, more \
         than without.\n",
        count(keys.len())
    );
    println!("A `CuckooFilter` with that capacity:\n");
    table(fixed, &keys, extent.rounds);
    println!("\nAn `ElasticFilter`:\n");
    table(|_| growing(), &keys, extent.rounds);
}
