//! What growing costs: a filter that grows from nothing, beside one of fixed size that is planned for all items, and a growing
//! one that is.
//!
//! ```sh
//! cargo bench --bench growth                # 10 M items, a minute
//! cargo bench --bench growth -- 3000000     # as many as that
//! cargo bench --bench growth -- space       # only the space of filters of all sizes, from empty ones on
//! cargo bench --bench growth -- beyond      # only the space of filters that grow beyond their plan
//! ```
//!
//! Times are nanoseconds per item in one thread, with hashing: medians of the rounds, which take turns. Every answer is checked.

#![allow(clippy::cast_precision_loss, reason = "small numbers")]

use std::{env, fmt::Write as _, hint::black_box, time::Instant};

use koel::{CuckooFilter, ElasticFilter};
use koel_benches::{Extent, key, median, time};

const RATE: f64 = 0.001;
const ROUNDS: usize = 3;
const DEFAULT_ITEMS: u64 = 10_000_000;

struct Keys {
    present: Vec<u64>,
    absent: Vec<u64>,
}

/// One kind of filter in one round: the times of [`OPERATIONS`], in nanoseconds per item.
type Times = [f64; 6];
const OPERATIONS: [&str; 6] = ["insert", "present", "absent", "batch present", "batch absent", "remove"];

/// Times of one kind of filter, and what it says of itself when it is full.
type Measure = fn(&Keys) -> (Times, String);

/// The two types have the same methods, but no trait for updates in common.
macro_rules! measure {
    ($filter:expr, $keys:expr) => {{
        let (mut filter, keys): (_, &Keys) = ($filter, $keys);
        let items = keys.present.len();
        let mut found = vec![false; items];
        let most_wrong = items / 500;
        let mut times = [0.0; OPERATIONS.len()];
        times[0] = time(items, || keys.present.iter().for_each(|key| filter.insert(black_box(key)).expect("there is room")));
        times[1] = time(items, || assert!(keys.present.iter().all(|key| filter.contains(black_box(key)))));
        times[2] = time(items, || {
            let wrong = keys.absent.iter().filter(|key| black_box(filter.contains(black_box(*key)))).count();
            assert!(wrong <= most_wrong);
        });
        times[3] = time(items, || filter.contains_batch(&keys.present, black_box(&mut found)));
        assert!(found.iter().all(|&found| found));
        times[4] = time(items, || filter.contains_batch(&keys.absent, black_box(&mut found)));
        assert!(found.iter().filter(|&&found| found).count() <= most_wrong);
        let summary = filter.to_string();
        times[5] = time(items, || assert!(keys.present.iter().all(|key| filter.remove(black_box(key)))));
        assert!(filter.is_empty());
        (times, summary)
    }};
}

fn fixed(keys: &Keys) -> (Times, String) {
    let builder = CuckooFilter::builder().capacity(keys.present.len()).false_positive_rate(RATE);
    measure!(builder.build().expect("the parameters are right"), keys)
}

fn grown(keys: &Keys) -> (Times, String) {
    measure!(ElasticFilter::builder().false_positive_rate(RATE).build().expect("the parameters are right"), keys)
}

fn planned(keys: &Keys) -> (Times, String) {
    let items = keys.present.len();
    let builder = ElasticFilter::builder().false_positive_rate(RATE).capacity(items).max_capacity(items);
    measure!(builder.build().expect("the parameters are right"), keys)
}

/// Space of filters with default options at every size, and with a capacity for the smallest size that is printed.
fn space() {
    const SIZES: [u64; 9] = [1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000];
    let items = Extent::of_arguments(DEFAULT_ITEMS, 1).length() as u64;
    let builder = ElasticFilter::builder().false_positive_rate(RATE);
    let shared = builder.clone().build_shared().expect("the parameters are right");
    println!("an empty SharedFilter takes {} bytes; bits per item of an ElasticFilter:", shared.size_in_bytes());
    for (name, builder) in [("default", builder.clone()), ("capacity 1000", builder.capacity(1000))] {
        let mut filter = builder.build().expect("the parameters are right");
        let mut line = format!("{name}: empty {} bytes", filter.size_in_bytes());
        let (mut next, mut bits) = (1000.0, Vec::new());
        for n in 1..=items {
            filter.insert(&key(n)).expect("it grows");
            // Evenly on a logarithmic scale.
            if n as f64 >= next {
                next *= 1.01;
                bits.push((n, filter.bits_per_item()));
                assert!(filter.false_positive_rate() <= RATE);
            }
            if SIZES.contains(&n) {
                let _ = write!(line, ", {n}: {:.1}", filter.bits_per_item());
            }
        }
        println!("{line}");
        for from in SIZES {
            let bits: Vec<f64> = bits.iter().filter(|(n, _)| *n >= from).map(|&(_, bits)| bits).collect();
            if !bits.is_empty() {
                let (least, most) = (bits.iter().copied().fold(f64::MAX, f64::min), bits.iter().copied().fold(0.0, f64::max));
                let mean = bits.iter().sum::<f64>() / bits.len() as f64;
                println!("    from {from} to {items}: {mean:.1}, averaged over log n ({least:.1} to {most:.1})");
            }
        }
    }
}

/// The times of single insertions while a filter grows.
fn pauses(keys: &Keys) {
    let mut filter = ElasticFilter::builder().false_positive_rate(RATE).build().expect("the parameters are right");
    let mut longest: Vec<u64> = Vec::with_capacity(keys.present.len());
    for key in &keys.present {
        let start = Instant::now();
        filter.insert(key).expect("it grows");
        longest.push(u64::try_from(start.elapsed().as_nanos()).expect("less than 500 years"));
    }
    longest.sort_unstable();
    let quantile = |share: f64| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an index")]
        let at = ((longest.len() as f64 * share) as usize).min(longest.len() - 1);
        longest[at]
    };
    println!(
        "single insertions, ns (each with some 25 for the clock): median {}, 99.9 % {}, 99.999 % {}, longest {}",
        quantile(0.5),
        quantile(0.999),
        quantile(0.99999),
        quantile(1.0)
    );
}

/// The space of filters that grow to 50 times the number that they are planned for.
fn beyond() {
    const TIMES: [usize; 6] = [1, 2, 5, 10, 20, 50];
    // A smaller number, when it is a test.
    let planned = Extent::of_arguments(1_000_000, 1).length() / 10;
    println!("planned for {planned} items; bits per item and buckets per look-up with so many times as many: {TIMES:?}");
    for rate in [0.01, 0.001] {
        for capacity in [planned, planned / 100] {
            let builder = ElasticFilter::builder().false_positive_rate(rate).capacity(capacity).max_capacity(planned);
            let mut filter = builder.build().expect("the parameters are right");
            let (mut next, mut bits, mut buckets, mut highest) = (planned as f64, Vec::new(), Vec::new(), 0.0_f64);
            let mut line = format!("rate {rate}, capacity {capacity:>7}:");
            for items in 1..=50 * planned {
                filter.insert(&key(items as u64)).expect("it grows");
                // Evenly on a logarithmic scale.
                if items as f64 >= next {
                    next *= 1.02;
                    bits.push(filter.bits_per_item());
                    buckets.push(filter.buckets_per_lookup() as f64);
                    highest = highest.max(filter.false_positive_rate());
                }
                if items.is_multiple_of(planned) && TIMES.contains(&(items / planned)) {
                    let _ = write!(line, " {:.1} ({})", filter.bits_per_item(), filter.buckets_per_lookup());
                }
            }
            assert!(highest <= rate);
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            let most = bits.iter().copied().fold(0.0, f64::max);
            println!("{line}; at most {most:.1}, on average {:.1} ({:.1}); rate {highest:.5}", mean(&bits), mean(&buckets));
        }
    }
}

fn main() {
    if env::args().any(|argument| argument == "beyond") {
        return beyond();
    }
    if env::args().any(|argument| argument == "space") {
        return space();
    }
    let extent = Extent::of_arguments(DEFAULT_ITEMS, ROUNDS);
    let (items, rounds) = (extent.length(), extent.rounds);
    let keys =
        Keys { present: (0..items as u64).map(key).collect(), absent: (items as u64..2 * items as u64).map(key).collect() };
    let kinds: [(&str, Measure); 3] = [("fixed", fixed), ("grown from nothing", grown), ("planned", planned)];
    let mut all = vec![Vec::new(); kinds.len()];
    let mut summaries = vec![String::new(); kinds.len()];
    for _ in 0..rounds {
        for (kind, (_, measure)) in kinds.iter().enumerate() {
            let (times, summary) = measure(&keys);
            all[kind].push(times);
            summaries[kind] = summary;
        }
    }
    println!("{items} items, ε = {RATE}, medians of {rounds} rounds: ns per item, × fixed (least and most of the rounds)");
    for (kind, (name, _)) in kinds.iter().enumerate() {
        println!("{name}: {}", summaries[kind]);
        for (operation, name) in OPERATIONS.iter().enumerate() {
            let of = |kind: usize| all[kind].iter().map(|times: &Times| times[operation]).collect::<Vec<f64>>();
            let (times, fixed) = (of(kind), of(0));
            let ratios: Vec<f64> = times.iter().zip(&fixed).map(|(time, fixed)| time / fixed).collect();
            let (least, most) = (ratios.iter().copied().fold(f64::MAX, f64::min), ratios.iter().copied().fold(0.0, f64::max));
            let mut line = format!("    {name:<14}{:>8.1}", median(&times));
            if kind > 0 {
                let _ = write!(line, "{:>8.2}   ({least:.2} to {most:.2})", median(&ratios));
            }
            println!("{line}");
        }
    }
    pauses(&keys);
}
