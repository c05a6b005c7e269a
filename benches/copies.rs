//! Measures insertion and removal of items that are inserted several times each, beside items inserted once.
//!
//! ```sh
//! cargo bench --bench copies                # 1 M different items, two minutes
//! cargo bench --bench copies -- 3000000     # as many as that
//! ```
//!
//! Prints Markdown. Times are nanoseconds per insertion or removal, with hashing: medians of the rounds, which take turns. Every
//! answer is checked.

#![allow(clippy::cast_precision_loss, reason = "small numbers")]

use std::hint::black_box;

use koel::CuckooFilter;
use koel_benches::{Extent, count, key, median, row, time};

const RATE: f64 = 0.001;
const ROUNDS: usize = 3;
const DEFAULT_ITEMS: u64 = 1_000_000;

/// How often each item is inserted.
const COPIES: [usize; 5] = [1, 2, 3, 8, 50];

const OPERATIONS: [&str; 4] = ["insert, in a row", "insert, by passes", "`insert_batch`, by passes", "remove, by passes"];
type Times = [f64; OPERATIONS.len()];

/// Returns the times, and the bytes for each item with further copies.
fn measure(keys: &[u64], copies: usize) -> (Times, f64) {
    let build =
        || CuckooFilter::builder().capacity(keys.len()).false_positive_rate(RATE).build().expect("the parameters are right");
    let (mut filter, all) = (build(), keys.len() * copies);
    let empty = filter.size_in_bytes();
    let mut times = Times::default();
    let insert = |filter: &mut CuckooFilter, key: &u64| filter.insert(black_box(key)).expect("copies take no room");
    times[0] = time(all, || keys.iter().for_each(|key| (0..copies).for_each(|_| insert(&mut filter, key))));
    check(&filter, keys, copies);
    let mut filter = build();
    times[1] = time(all, || (0..copies).for_each(|_| keys.iter().for_each(|key| insert(&mut filter, key))));
    check(&filter, keys, copies);
    let further = (filter.size_in_bytes() - empty) as f64 / keys.len() as f64;
    times[3] = time(all, || (0..copies).for_each(|_| keys.iter().for_each(|key| assert!(filter.remove(black_box(key))))));
    assert!(filter.is_empty() && filter.size_in_bytes() == empty);
    times[2] = time(all, || (0..copies).for_each(|_| filter.insert_batch(black_box(keys)).expect("copies take no room")));
    check(&filter, keys, copies);
    (times, further)
}

/// Every item has its copies; a few have those of an item that collides with them, too.
fn check(filter: &CuckooFilter, keys: &[u64], copies: usize) {
    assert_eq!(filter.len(), keys.len() * copies);
    let more = keys.iter().step_by(97).filter(|key| filter.count(key) as usize > copies).count();
    assert!(keys.iter().step_by(97).all(|key| filter.count(key) as usize >= copies) && more * 97 < keys.len() / 50);
}

fn main() {
    let extent = Extent::of_arguments(DEFAULT_ITEMS, ROUNDS);
    let keys: Vec<u64> = (0..extent.length() as u64).map(key).collect();
    let mut all = vec![Vec::new(); COPIES.len()];
    for _ in 0..extent.rounds {
        for (&copies, all) in COPIES.iter().zip(&mut all) {
            all.push(measure(&keys, copies));
        }
    }
    println!(
        "{} items in a `CuckooFilter` with that capacity and a rate of {RATE}: ns per insertion or removal; in brackets, times as long as \
         without copies; and bytes beside the table for each item.\n",
        count(keys.len())
    );
    row("copies of each item", OPERATIONS.iter().copied().chain(["bytes"]).map(String::from));
    row("---:", [OPERATIONS.len() + 1].map(|columns| vec!["---:"; columns].join(" | ")));
    let times = |rounds: &[(Times, f64)], of: usize| median(&rounds.iter().map(|(times, _)| times[of]).collect::<Vec<_>>());
    for (copies, rounds) in COPIES.iter().zip(&all) {
        let cell = |of| format!("{:.0} ({:.1})", times(rounds, of), times(rounds, of) / times(&all[0], of));
        row(&copies.to_string(), (0..OPERATIONS.len()).map(cell).chain([format!("{:.1}", rounds[0].1)]));
    }
}
