//! Times the library's own lookups of a batch, for comparison with those from Python. `speed ITEMS` reads the kind of items,
//! `int64` or `strings`, from each line of its input, and prints nanoseconds of processor time per item.

#![allow(clippy::cast_precision_loss, reason = "there are fewer than 2⁵³ items")]

use std::{env, fs, hint::black_box, io, time::Instant};

use koel::{CuckooFilter, hash::Items};

/// Returns seconds: of processor time on Linux, where other programs then matter less, and else since `start`.
fn seconds(start: Instant) -> f64 {
    let statistics = fs::read_to_string("/proc/self/schedstat").ok();
    let nanoseconds = statistics.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    nanoseconds.map_or_else(|| start.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// Returns a function that looks up a batch in a filter that holds half of it, and returns nanoseconds per item.
fn lookups<I: Items<koel::Xxh3> + ?Sized>(present: &I, queries: &I, items: usize) -> impl Fn() -> f64 {
    let start = Instant::now();
    let mut filter = CuckooFilter::builder().capacity(items).false_positive_rate(0.001).build().expect("there is memory");
    filter.insert_batch(present).expect("there is room");
    move || {
        let before = seconds(start);
        let mut found = vec![false; items];
        filter.contains_batch(queries, &mut found);
        let after = seconds(start);
        assert!(black_box(found)[..items / 2].iter().all(|&found| found));
        (after - before) * 1e9 / items as f64
    }
}

fn main() {
    let Some(Ok(items)) = env::args().nth(1).map(|items| items.parse::<usize>()) else { panic!("usage: speed ITEMS") };
    let numbers: Vec<u64> = (0..2 * items as u64).collect();
    let strings: Vec<String> = numbers.iter().map(|number| format!("user-{number}")).collect();
    let half = items / 2;
    let of_numbers = lookups(&numbers[..items], &numbers[half..half + items], items);
    let of_strings = lookups(&strings[..items], &strings[half..half + items], items);
    for kind in io::stdin().lines() {
        let time = if kind.expect("the kind of items") == "int64" { of_numbers() } else { of_strings() };
        println!("{time:.2}");
    }
}
