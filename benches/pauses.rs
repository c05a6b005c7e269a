//! Measures the longest single insertion and removal, what chosen items cost, and merges of filters with equal plans.
//!
//! ```sh
//! cargo bench --bench pauses                 # 4 M items, and merges of 3 M
//! cargo bench --bench pauses -- 1000000      # this many items
//! cargo bench --bench pauses -- longest      # only single insertions and removals
//! cargo bench --bench pauses -- chosen       # only others' items beside chosen ones
//! cargo bench --bench pauses -- neighbors    # only copies of chosen items
//! cargo bench --bench pauses -- merge        # only merges, unions and intersections
//! ```
//!
//! Prints Markdown. Single operations are measured in processor time of the thread, so that other programs matter little. Every
//! result is checked.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "the numbers are small")]

#[path = "../tests/common/chosen.rs"]
mod chosen;
#[allow(dead_code, reason = "tests use more of it")]
#[path = "../tests/common/split_mix.rs"]
mod split_mix;

use std::hint::black_box;

use koel::{ElasticFilter, Insert, MergeError, Prehashed};
use koel_benches::{Extent, RATE, count, fixed, growing, is_given, key, median, planned, processor_time, row};

use self::chosen::Plan;

const ROUNDS: usize = 3;

/// Runs an operation on each key. Returns the mean and the longest time in nanoseconds of processor time.
fn each(keys: &[u64], mut run: impl FnMut(u64)) -> [f64; 2] {
    let (start, mut longest) = (processor_time(), 0);
    let mut last = start;
    for &key in keys {
        run(black_box(key));
        let now = processor_time();
        longest = longest.max(now - last);
        last = now;
    }
    [(last - start) as f64 / keys.len() as f64, longest as f64]
}

/// Runs operations on `items` items. Returns the mean time in nanoseconds of processor time.
fn mean(items: usize, run: impl FnOnce()) -> f64 {
    let start = processor_time();
    run();
    (processor_time() - start) as f64 / items as f64
}

/// The rows of the longest operations.
const LONGEST: [&str; 8] = [
    "insert: each once",
    "insert: second pass",
    "insert: third pass",
    "remove: third pass",
    "remove: second pass",
    "remove: all",
    "insert: each twice in a row",
    "remove: each twice in a row",
];

fn longest_of<F: Insert<u64>>(build: impl Fn(usize) -> F, keys: &[u64]) -> [[f64; 2]; LONGEST.len()] {
    let mut filter = build(keys.len());
    let mut times = [[0.0; 2]; LONGEST.len()];
    for time in &mut times[..3] {
        *time = each(keys, |key| filter.insert(&key).expect("there is room"));
    }
    for time in &mut times[3..6] {
        *time = each(keys, |key| assert!(filter.remove(&key)));
    }
    let mut filter = build(keys.len());
    let twice: Vec<u64> = keys.iter().flat_map(|&key| [key; 2]).collect();
    times[6] = each(&twice, |key| filter.insert(&key).expect("there is room"));
    times[7] = each(&twice, |key| assert!(filter.remove(&key)));
    times
}

/// Prints the longest insertion and removal of each kind of filter.
fn longest(items: u64) {
    let keys: Vec<u64> = (0..items).map(key).collect();
    let planned = |items| planned(items).build().expect("valid parameters");
    let columns = [
        longest_of(fixed, &keys),
        longest_of(|_| growing(), &keys),
        longest_of(planned, &keys),
        longest_of(|items| planned(items / 2), &keys),
    ];
    println!(
        "{} items, ε = {RATE}: µs of processor time of the longest single operation; in brackets, ns of an operation on average, \
         including the clock.\n",
        count(items)
    );
    let names = ["fixed", "growing", "growing, as planned", "growing, planned for half of the items"].map(String::from);
    row("operation", names);
    println!("|---|---:|---:|---:|---:|");
    for (at, operation) in LONGEST.iter().enumerate() {
        row(operation, columns.iter().map(|times| format!("{:.0} ({:.0})", times[at][1] / 1e3, times[at][0])));
    }
}

/// Prints what chosen items cost others.
fn chosen(items: u64, rounds: usize) {
    let keys: Vec<u64> = (0..items).map(key).collect();
    let lookups: Vec<u64> = keys.iter().copied().step_by((items as usize / 20_000).max(1)).collect();
    println!("Beside chosen hashes that no table holds, {} other items: ns of processor time per operation.\n", count(items));
    println!("| chosen hashes | insert | contains | shards |\n|---:|---:|---:|---:|");
    for number in [0, 10, 30] {
        let (mut times, mut shards) = ([Vec::new(), Vec::new()], 0);
        for _ in 0..rounds {
            let mut filter = growing();
            // A chosen item that is refused is not in the filter.
            let accepted =
                Plan::of(&filter).crowd(number).into_iter().filter(|&hash| filter.insert(&Prehashed(hash)).is_ok()).count();
            times[0].push(mean(keys.len(), || keys.iter().for_each(|key| filter.insert(black_box(key)).expect("it grows"))));
            times[1].push(mean(lookups.len(), || assert!(lookups.iter().all(|key| filter.contains(black_box(key))))));
            assert_eq!(filter.len(), keys.len() + accepted);
            shards = filter.shards();
        }
        row(&count(number), times.iter().map(|times| format!("{:.0}", median(times))).chain([count(shards)]));
    }
}

/// Prints what copies of items with consecutive keys cost.
fn neighbors(items: u64) {
    let keys: Vec<u64> = (0..items).map(key).collect();
    println!("Extra copies of items with consecutive keys: µs to remove one and insert it again, on average and at most.\n");
    println!("| copied items | by bucket | by stream |\n|---:|---:|---:|");
    for number in [10_000, 40_000, 100_000] {
        let number = number.min(keys.len());
        let cells = [true, false].map(|is_by_bucket| {
            let mut filter = growing();
            keys.iter().for_each(|key| filter.insert(key).expect("it grows"));
            let plan = Plan::of(&filter);
            let fingerprints = (1 << plan.f) - 1;
            let neighbors: Vec<u64> = (0..)
                .filter_map(|n: u64| {
                    let (bucket, t) = (n / fingerprints % plan.m, 1 + n % fingerprints);
                    // By bucket, keys differ in the fingerprint alone; by stream, there are sixteen to a bucket.
                    let stream = if is_by_bucket { 0 } else { n / 16 };
                    let (bucket, t) = if is_by_bucket { (bucket, t) } else { (n % 16 * 2 % plan.m, 1 + n % 7) };
                    plan.hash(bucket, t, [stream % (1 << 20), 20])
                })
                .take(number)
                .collect();
            for _ in 0..3 {
                neighbors.iter().for_each(|&hash| {
                    // Few are refused. The removal below skips them.
                    filter.insert(&Prehashed(hash)).ok();
                });
            }
            let some: Vec<u64> = neighbors.into_iter().step_by((number / 200).max(1)).collect();
            let [mean, longest] = each(&some, |hash| {
                if filter.remove(&Prehashed(hash)) {
                    filter.insert(&Prehashed(hash)).expect("there was room for it");
                }
            });
            format!("{:.1}; {:.0}", mean / 1e3, longest / 1e3)
        });
        row(&count(number), cells);
    }
}

/// Prints the time to combine two filters with equal plans that have no item in common, or the same items.
fn merge(items: u64, rounds: usize) {
    type Combine = fn(&mut ElasticFilter, &ElasticFilter) -> Result<(), MergeError>;
    let combinations: [(&str, Combine); 3] =
        [("merge", ElasticFilter::merge), ("union", ElasticFilter::union), ("intersect", ElasticFilter::intersect)];
    let filled = |first: u64, plan: Option<usize>| {
        let mut filter = plan.map_or_else(growing, |plan| planned(plan).build().expect("valid parameters"));
        let keys: Vec<u64> = (first..first + items).map(key).collect();
        filter.insert_unordered(&keys).expect("the filter grows");
        filter
    };
    println!(
        "Two filters of {} items each, ε = {RATE}: ns of processor time per item of the second one. Medians of {rounds} rounds.\n",
        count(items)
    );
    println!(
        "| filters | merge, other items | union | intersect | merge, equal items | union | intersect |\n|---|---:|---:|---:|---:|---:|---:|"
    );
    for (name, plan) in [("grown", None), ("planned for both", Some(2 * items as usize))] {
        let mut cells = Vec::new();
        for first in [items, 0] {
            let (one, other) = (filled(0, plan), filled(first, plan));
            for (combination, combine) in combinations {
                let mut times = Vec::new();
                for _ in 0..rounds {
                    let mut into = one.clone();
                    times.push(mean(items as usize, || combine(&mut into, &other).expect("the plan has room")));
                    let expected = if combination == "intersect" { items - first } else { items + first };
                    let difference = into.distinct().abs_diff(expected as usize) as f64 / items as f64;
                    assert!(difference <= 0.005 && (expected == 0 || into.contains(&key(expected - 1))), "{difference}");
                }
                cells.push(format!("{:.0}", median(&times)));
            }
        }
        row(name, cells);
    }
}

fn main() {
    let Extent { items, rounds } = Extent::of_arguments(&["longest", "chosen", "neighbors", "merge"], 4_000_000, ROUNDS);
    let parts: [(&str, &dyn Fn()); 4] = [
        ("longest", &|| longest(items)),
        ("chosen", &|| chosen(items.min(1_000_000), rounds)),
        ("neighbors", &|| neighbors(items.min(1_000_000))),
        ("merge", &|| merge(items * 3 / 4, rounds)),
    ];
    let are_all = !parts.iter().any(|(name, _)| is_given(name));
    for (_, run) in parts.iter().filter(|(name, _)| are_all || is_given(name)) {
        run();
        println!();
    }
}
