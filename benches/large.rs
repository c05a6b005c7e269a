//! Batches of a hundred million items, grouped by shard, compared with a fixed filter; and `insert_unique`.
//!
//! ```sh
//! cargo bench --bench large                 # 100 M items, three minutes, 2 GB
//! cargo bench --bench large -- 20000000     # this many items
//! ```
//!
//! Prints Markdown. Times are in nanoseconds per item, including hashing: medians of the rounds. Every result is checked.

#![allow(clippy::cast_precision_loss, reason = "the numbers are small")]

use std::{hint::black_box, thread};

use koel_benches::{Extent, RATE, count, fixed, key, median, planned, row, time};

const ROUNDS: usize = 3;
const DEFAULT_ITEMS: u64 = 100_000_000;
/// `insert_unique` is measured with at most this many items.
const UNIQUE_ITEMS: usize = 10_000_000;

/// The operations of a round, and their times in nanoseconds per item.
struct Times(Vec<(&'static str, f64)>);

impl Times {
    fn measure(&mut self, operation: &'static str, items: usize, action: impl FnOnce()) {
        self.0.push((operation, time(items, action)));
    }
}

fn round(keys: &[u64], queries: &[u64]) -> Times {
    let mut times = Times(Vec::new());
    let (items, mut found) = (keys.len(), vec![false; queries.len()]);
    // The first half of the queries are present.
    let check = |found: &mut [bool]| {
        let (present, absent) = found.split_at(found.len() / 2);
        assert!(present.iter().all(|&found| found) && absent.iter().filter(|&&found| found).count() <= absent.len() / 500);
        found.fill(false);
    };
    let mut flat = fixed(items);
    times.measure("`CuckooFilter::insert`", items, || {
        keys.iter().for_each(|key| flat.insert(black_box(key)).expect("there is room"));
    });
    times.measure("`CuckooFilter::contains_batch`", queries.len(), || flat.contains_batch(queries, black_box(&mut found)));
    check(&mut found);
    flat.clear();
    times.measure("`CuckooFilter::insert_batch`", items, || flat.insert_batch(keys).expect("there is room"));
    drop(flat);
    let mut shards = planned(items).build().expect("valid parameters");
    times.measure("`ElasticFilter::insert_unordered`", items, || shards.insert_unordered(keys).expect("the filter grows"));
    assert_eq!(shards.len(), items);
    times.measure("`ElasticFilter::contains_batch`", queries.len(), || shards.contains_batch(queries, black_box(&mut found)));
    check(&mut found);
    shards.clear();
    times.measure("`ElasticFilter::insert_batch`", items, || shards.insert_batch(keys).expect("the filter grows"));
    drop(shards);
    let shared = planned(items).build_shared().expect("valid parameters");
    times.measure("`SharedFilter::insert_batch`, two threads", items, || {
        thread::scope(|scope| {
            for keys in keys.chunks(items.div_ceil(2)) {
                scope.spawn(|| shared.insert_batch(keys).expect("the filter grows"));
            }
        });
    });
    assert_eq!(shared.len(), items);
    times.measure("`SharedFilter::contains_batch`, two threads", queries.len(), || {
        thread::scope(|scope| {
            let each = queries.len().div_ceil(2);
            for (queries, found) in queries.chunks(each).zip(found.chunks_mut(each)) {
                scope.spawn(|| shared.contains_batch(queries, black_box(found)));
            }
        });
    });
    check(&mut found);
    times
}

/// Measures `insert_unique` of absent items, individually and in a batch, and of present items in a batch.
fn unique(keys: &[u64]) -> Times {
    let mut times = Times(Vec::new());
    let items = keys.len();
    let mut inserted = vec![false; items];
    // Absent items are inserted unless they are false positives; present ones are not.
    let check = |inserted: &mut [bool], are_absent: bool| {
        let new = inserted.iter().filter(|&&new| new).count();
        let expected = if are_absent { items - items / 500..=items } else { 0..=0 };
        assert!(expected.contains(&new), "{new} of {items} were new");
        inserted.fill(false);
    };
    macro_rules! measure_single_and_batch {
        ($name:literal, $build:expr) => {{
            let filter = &mut $build;
            times.measure(concat!("`", $name, "::insert_unique`"), items, || {
                for (key, new) in keys.iter().zip(&mut inserted) {
                    *new = filter.insert_unique(black_box(key)).expect("there is room");
                }
            });
            check(&mut inserted, true);
            filter.clear();
            times.measure(concat!("`", $name, "::insert_unique_batch`"), items, || {
                filter.insert_unique_batch(keys, black_box(&mut inserted)).expect("there is room");
            });
            check(&mut inserted, true);
            times.measure(concat!("`", $name, "::insert_unique_batch`, all present"), items, || {
                filter.insert_unique_batch(keys, black_box(&mut inserted)).expect("there is room");
            });
            check(&mut inserted, false);
        }};
    }
    measure_single_and_batch!("CuckooFilter", fixed(items));
    measure_single_and_batch!("ElasticFilter", planned(items).build().expect("valid parameters"));
    measure_single_and_batch!("SharedFilter", planned(items).build_shared().expect("valid parameters"));
    times
}

fn print(all: &[Times]) {
    println!("| operation | ns |\n|---|---:|");
    for (at, (operation, _)) in all[0].0.iter().enumerate() {
        let mut times: Vec<f64> = all.iter().map(|times| times.0[at].1).collect();
        times.sort_by(f64::total_cmp);
        row(operation, [format!("{:.1} ({:.1} to {:.1})", median(&times), times[0], times[times.len() - 1])]);
    }
}

fn main() {
    let extent = Extent::of_arguments(&[], DEFAULT_ITEMS, ROUNDS);
    let (items, rounds) = (extent.length(), extent.rounds);
    let keys: Vec<u64> = (0..items as u64).map(key).collect();
    let each = (items as u64 / 20).max(1);
    // The present queries are spread over the whole set.
    let present = (0..each).map(|n| key(n * 19));
    let absent = (items as u64..items as u64 + each).map(key);
    let queries: Vec<u64> = present.chain(absent).collect();
    let all: Vec<Times> = (0..rounds).map(|_| round(&keys, &queries)).collect();
    println!(
        "<!-- large -->\n\n{} items, ε = {RATE}, {} keys looked up, half of them present: ns per item, medians of {rounds} rounds (least to most).\n",
        count(items),
        count(queries.len())
    );
    print(&all);
    let keys = &keys[..items.min(UNIQUE_ITEMS)];
    println!(
        "\n<!-- unique -->\n\n{} items, ε = {RATE}: ns per item, medians of {rounds} rounds (least to most).\n",
        count(keys.len())
    );
    print(&(0..rounds).map(|_| unique(keys)).collect::<Vec<_>>());
}
