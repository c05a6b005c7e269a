//! Times the library's own lookups of a batch, for comparison with those from Python: `speed ITEMS ROUNDS` prints, for each kind of
//! items, its name and the median of nanoseconds of processor time per item.

#![allow(clippy::cast_precision_loss, reason = "there are fewer than 2⁵³ items")]

use std::{env, fs, hint::black_box, time::Instant};

use koel::{CuckooFilter, hash::Items};

/// Returns seconds: of processor time on Linux, where other programs then matter less, and else since `start`.
fn seconds(start: Instant) -> f64 {
    let statistics = fs::read_to_string("/proc/self/schedstat").ok();
    let nanoseconds = statistics.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// Looks up a batch in a filter that holds half of it.
fn measure<I: Items<koel::Xxh3> + ?Sized>(name: &str, present: &I, queries: &I, items: usize, rounds: usize) {
    let start = Instant::now();
    let mut filter = CuckooFilter::builder().capacity(items).false_positive_rate(0.001).build().expect("there is memory");
    filter.insert_batch(present).expect("there is room");
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let before = seconds(start);
            let mut found = vec![false; items];
            filter.contains_batch(queries, &mut found);
            black_box(found);
            (seconds(start) - before) * 1e9 / items as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("{name} {:.2}", times[rounds / 2]);
}

fn main() {
    let numbers: Vec<usize> = env::args().skip(1).map(|number| number.parse().expect("a number")).collect();
    let [items, rounds] = numbers[..] else { panic!("usage: speed ITEMS ROUNDS") };
    let all: Vec<u64> = (0..2 * items as u64).collect();
    let half = items / 2;
    measure("int64", &all[..items], &all[half..half + items], items, rounds);
    let all: Vec<String> = all.iter().map(|number| format!("user-{number}")).collect();
    measure("strings", &all[..items], &all[half..half + items], items, rounds);
}
