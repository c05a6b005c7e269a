//! Measures how much several threads speed up a shared filter, and how much slower it is on one thread than a growing filter that
//! the thread owns.
//!
//! ```sh
//! cargo bench --bench shared                # 10 M items, a minute
//! cargo bench --bench shared -- 3000000     # this many items
//! ```
//!
//! Prints Markdown. Times are in nanoseconds per item until the last thread is done, including hashing: medians of interleaved
//! rounds. Every result is checked.

#![allow(clippy::cast_precision_loss, reason = "the numbers are small")]

use std::{hint::black_box, num::NonZeroUsize, thread};

use koel::{ElasticFilter, SharedFilter};
use koel_benches::{Extent, RATE, count, growing, key, median, row, time};

const ROUNDS: usize = 5;
const DEFAULT_ITEMS: u64 = 10_000_000;

const OPERATIONS: [&str; 6] = ["insert", "contains", "remove", "insert_batch", "contains_batch", "remove_batch"];
type Times = [f64; OPERATIONS.len()];

fn elastic(keys: &[u64]) -> Times {
    let (mut filter, mut found) = (growing(), vec![false; keys.len()]);
    let mut times = Times::default();
    times[0] = time(keys.len(), || keys.iter().for_each(|key| filter.insert(black_box(key)).expect("the filter grows")));
    times[1] = time(keys.len(), || assert!(keys.iter().all(|key| filter.contains(black_box(key)))));
    times[2] = time(keys.len(), || assert!(keys.iter().all(|key| filter.remove(black_box(key)))));
    times[3] = time(keys.len(), || filter.insert_batch(keys).expect("the filter grows"));
    times[4] = time(keys.len(), || filter.contains_batch(keys, black_box(&mut found)));
    assert!(found.iter().all(|&found| found));
    times[5] = time(keys.len(), || filter.remove_batch(keys, black_box(&mut found)));
    assert!(found.iter().all(|&found| found) && filter.is_empty());
    times
}

/// Calls `act` on `threads` threads, each with a part of the keys and results. Returns the nanoseconds per item.
fn on_threads(threads: usize, keys: &[u64], found: &mut [bool], act: impl Fn(&[u64], &mut [bool]) + Sync) -> f64 {
    let each = keys.len().div_ceil(threads);
    time(keys.len(), || {
        thread::scope(|scope| {
            for (keys, found) in keys.chunks(each).zip(found.chunks_mut(each)) {
                scope.spawn(|| act(keys, found));
            }
        });
    })
}

fn shared(threads: usize, keys: &[u64]) -> Times {
    let filter: SharedFilter = ElasticFilter::builder().false_positive_rate(RATE).build_shared().expect("valid parameters");
    let mut found = vec![false; keys.len()];
    let mut times = Times::default();
    times[0] = on_threads(threads, keys, &mut found, |keys, _| {
        keys.iter().for_each(|key| filter.insert(key).expect("the filter grows"));
    });
    assert_eq!(filter.len(), keys.len());
    times[1] = on_threads(threads, keys, &mut found, |keys, _| assert!(keys.iter().all(|key| filter.contains(black_box(key)))));
    times[2] = on_threads(threads, keys, &mut found, |keys, _| assert!(keys.iter().all(|key| filter.remove(black_box(key)))));
    assert!(filter.is_empty());
    times[3] = on_threads(threads, keys, &mut found, |keys, _| filter.insert_batch(keys).expect("the filter grows"));
    times[4] = on_threads(threads, keys, &mut found, |keys, found| filter.contains_batch(keys, found));
    assert!(found.iter().all(|&found| found));
    times[5] = on_threads(threads, keys, &mut found, |keys, found| filter.remove_batch(keys, found));
    assert!(found.iter().all(|&found| found) && filter.is_empty());
    times
}

fn main() {
    let extent = Extent::of_arguments(&[], DEFAULT_ITEMS, ROUNDS);
    let (items, rounds) = (extent.length(), extent.rounds);
    let most_threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let thread_counts: Vec<usize> = [1, 2, 4, 8, 16].into_iter().filter(|&threads| threads <= most_threads.max(2)).collect();
    let keys: Vec<u64> = (0..items as u64).map(key).collect();
    let mut owned = Vec::new();
    let mut all = vec![Vec::new(); thread_counts.len()];
    for _ in 0..rounds {
        owned.push(elastic(&keys));
        for (&threads, all) in thread_counts.iter().zip(&mut all) {
            all.push(shared(threads, &keys));
        }
    }
    println!(
        "{} items, ε = {RATE}: ns per item until the last thread is done, medians of {rounds} rounds; in brackets, times as long as \
         an `ElasticFilter` in the same round, or times as fast as one thread (least to most).\n",
        count(items)
    );
    let threads =
        thread_counts.iter().map(|&n| if n == 1 { String::from("`SharedFilter`, one thread") } else { format!("{n} threads") });
    row("", ["`ElasticFilter`".into()].into_iter().chain(threads));
    println!("|---|{}", "---:|".repeat(thread_counts.len() + 1));
    for (operation, name) in OPERATIONS.iter().enumerate() {
        let column = |times: &[Times]| times.iter().map(|times| times[operation]).collect::<Vec<f64>>();
        let (owned, one) = (column(&owned), column(&all[0]));
        let cells = thread_counts.iter().zip(&all).map(|(&threads, all)| {
            let times = column(all);
            let ratio = |(time, one): (&f64, &f64)| if threads == 1 { time / one } else { one / time };
            let mut ratios: Vec<f64> = times.iter().zip(if threads == 1 { &owned } else { &one }).map(ratio).collect();
            ratios.sort_by(f64::total_cmp);
            let (least, most, what) = (ratios[0], ratios[ratios.len() - 1], if threads == 1 { "as long" } else { "as fast" });
            format!("{:.1} ({:.2} × {what}, {least:.2} to {most:.2})", median(&times), median(&ratios))
        });
        row(&format!("`{name}`"), [format!("{:.1}", median(&owned))].into_iter().chain(cells));
    }
}
