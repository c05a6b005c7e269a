//! Known sets and batches of a hundred million items, shared out by shard, beside a flat table; and insertion of new items.
//!
//! ```sh
//! cargo bench --bench large                 # 100 M items, three minutes, 2 GB
//! cargo bench --bench large -- 20000000     # as many as that
//! ```
//!
//! Prints Markdown. Times are nanoseconds per item, with hashing: medians of the rounds, which take turns. Every answer is checked.

#![allow(clippy::cast_precision_loss, reason = "small numbers")]

use std::{hint::black_box, thread};

use koel::{CuckooFilter, ElasticBuilder, ElasticFilter};
use koel_benches::{Extent, count, key, median, row, time};

const RATE: f64 = 0.001;
const ROUNDS: usize = 3;
const DEFAULT_ITEMS: u64 = 100_000_000;
/// `insert_unique` is measured with at most this many items.
const UNIQUE_ITEMS: usize = 10_000_000;

/// The times of a round.
struct Times(Vec<(&'static str, f64)>);

impl Times {
    fn take(&mut self, what: &'static str, items: usize, action: impl FnOnce()) {
        self.0.push((what, time(items, action)));
    }
}

fn planned(items: usize) -> ElasticBuilder {
    ElasticFilter::builder().false_positive_rate(RATE).capacity(items).max_capacity(items)
}

fn round(keys: &[u64], asked: &[u64]) -> Times {
    let mut times = Times(Vec::new());
    let (items, mut found) = (keys.len(), vec![false; asked.len()]);
    // Half of the keys that are asked for are present.
    let check = |found: &mut [bool]| {
        let (present, absent) = found.split_at(found.len() / 2);
        assert!(present.iter().all(|&found| found) && absent.iter().filter(|&&found| found).count() <= absent.len() / 500);
        found.fill(false);
    };
    let mut flat = CuckooFilter::builder().capacity(items).false_positive_rate(RATE).build().expect("the parameters are right");
    times.take("`CuckooFilter::insert`", items, || {
        keys.iter().for_each(|key| flat.insert(black_box(key)).expect("there is room"));
    });
    times.take("`CuckooFilter::contains_batch`", asked.len(), || flat.contains_batch(asked, black_box(&mut found)));
    check(&mut found);
    flat.clear();
    times.take("`CuckooFilter::insert_batch`", items, || flat.insert_batch(keys).expect("there is room"));
    drop(flat);
    let mut shards = planned(items).build().expect("the parameters are right");
    times.take("`ElasticFilter::insert_unordered`", items, || shards.insert_unordered(keys).expect("it grows"));
    assert_eq!(shards.len(), items);
    times.take("`ElasticFilter::contains_batch`", asked.len(), || shards.contains_batch(asked, black_box(&mut found)));
    check(&mut found);
    shards.clear();
    times.take("`ElasticFilter::insert_batch`", items, || shards.insert_batch(keys).expect("it grows"));
    drop(shards);
    let shared = planned(items).build_shared().expect("the parameters are right");
    times.take("`SharedFilter::insert_batch`, two threads", items, || {
        thread::scope(|scope| {
            for keys in keys.chunks(items.div_ceil(2)) {
                scope.spawn(|| shared.insert_batch(keys).expect("it grows"));
            }
        });
    });
    assert_eq!(shared.len(), items);
    times.take("`SharedFilter::contains_batch`, two threads", asked.len(), || {
        thread::scope(|scope| {
            let each = asked.len().div_ceil(2);
            for (asked, found) in asked.chunks(each).zip(found.chunks_mut(each)) {
                scope.spawn(|| shared.contains_batch(asked, black_box(found)));
            }
        });
    });
    check(&mut found);
    times
}

/// Insertions of what is not there yet, one by one and in a batch, into empty filters; then in a batch of what is there.
fn unique(keys: &[u64]) -> Times {
    let mut times = Times(Vec::new());
    let items = keys.len();
    let mut inserted = vec![false; items];
    // Absent items are new unless they are false positives. Present ones are not.
    let check = |inserted: &mut [bool], are_absent: bool| {
        let new = inserted.iter().filter(|&&new| new).count();
        let expected = if are_absent { items - items / 500..=items } else { 0..=0 };
        assert!(expected.contains(&new), "{new} of {items} were new");
        inserted.fill(false);
    };
    macro_rules! one_by_one_and_in_a_batch {
        ($name:literal, $build:expr) => {{
            let filter = &mut $build;
            times.take(concat!("`", $name, "::insert_unique`"), items, || {
                for (key, new) in keys.iter().zip(&mut inserted) {
                    *new = filter.insert_unique(black_box(key)).expect("there is room");
                }
            });
            check(&mut inserted, true);
            filter.clear();
            times.take(concat!("`", $name, "::insert_unique_batch`"), items, || {
                filter.insert_unique_batch(keys, black_box(&mut inserted)).expect("there is room");
            });
            check(&mut inserted, true);
            times.take(concat!("`", $name, "::insert_unique_batch`, all present"), items, || {
                filter.insert_unique_batch(keys, black_box(&mut inserted)).expect("there is room");
            });
            check(&mut inserted, false);
        }};
    }
    let flat = || CuckooFilter::builder().capacity(items).false_positive_rate(RATE).build().expect("the parameters are right");
    one_by_one_and_in_a_batch!("CuckooFilter", flat());
    one_by_one_and_in_a_batch!("ElasticFilter", planned(items).build().expect("the parameters are right"));
    one_by_one_and_in_a_batch!("SharedFilter", planned(items).build_shared().expect("the parameters are right"));
    times
}

fn print(all: &[Times]) {
    println!("| operation | ns |\n|---|---:|");
    for (at, (what, _)) in all[0].0.iter().enumerate() {
        let mut times: Vec<f64> = all.iter().map(|times| times.0[at].1).collect();
        times.sort_by(f64::total_cmp);
        row(what, [format!("{:.1} ({:.1} to {:.1})", median(&times), times[0], times[times.len() - 1])]);
    }
}

fn main() {
    let extent = Extent::of_arguments(DEFAULT_ITEMS, ROUNDS);
    let (items, rounds) = (extent.length(), extent.rounds);
    let keys: Vec<u64> = (0..items as u64).map(key).collect();
    let each = items as u64 / 20;
    // From all over the set.
    let present = (0..each).map(|n| key(n * 19));
    let absent = (items as u64..items as u64 + each).map(key);
    let asked: Vec<u64> = present.chain(absent).collect();
    let all: Vec<Times> = (0..rounds).map(|_| round(&keys, &asked)).collect();
    println!(
        "<!-- large -->\n\n{} items, ε = {RATE}, {} keys looked up, half of them present: ns per item, medians of {rounds} rounds (least to most).\n",
        count(items),
        count(asked.len())
    );
    print(&all);
    let keys = &keys[..items.min(UNIQUE_ITEMS)];
    println!(
        "\n<!-- unique -->\n\n{} items, ε = {RATE}: ns per item, medians of {rounds} rounds (least to most).\n",
        count(keys.len())
    );
    print(&(0..rounds).map(|_| unique(keys)).collect::<Vec<_>>());
}
