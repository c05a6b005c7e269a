//! Measures the cost of growth: compares a filter that grows from empty with a fixed and a growing filter that are planned for all items.
//!
//! ```sh
//! cargo bench --bench growth                # 100,000 to 10 M items, two minutes
//! cargo bench --bench growth -- 3000000     # this many items
//! cargo bench --bench growth -- space       # only the space of filters of all sizes, including empty ones
//! cargo bench --bench growth -- beyond      # only the space of filters that grow beyond their plan
//! cargo bench --bench growth -- edges       # only the space from half the plan to 20 times the plan, and at every rate
//! cargo bench --bench growth -- edges draw  # also draws it, in docs/tuning
//! cargo bench --bench growth -- merge       # only the cost of merging the filters of many workers
//! ```
//!
//! Prints Markdown. Times are per item in one thread, including hashing: medians of interleaved rounds. Every result is checked.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the numbers are small")]

mod edges;

use std::{collections::VecDeque, hint::black_box, path::Path, time::Instant};

use koel::{ElasticFilter, Insert};
use koel_benches::{Extent, RATE, count, fixed, growing, is_given, is_test, key, median, planned, refuse, row, time};

/// The words that arguments may be, besides a number of items.
const WORDS: [&str; 5] = ["space", "beyond", "edges", "draw", "merge"];
const SIZES: [u64; 4] = [100_000, 1_000_000, 3_000_000, 10_000_000];
/// The fewest and the most rounds. Small filters are measured more often.
const ROUNDS: [usize; 2] = [3, 15];

struct Keys {
    present: Vec<u64>,
    absent: Vec<u64>,
}

/// The times of one kind of filter in one round, in nanoseconds per item: `insert`, `contains` and `contains_batch` of present and
/// of absent keys, and `remove`.
type Times = [f64; 6];

/// The name of each row, and the times that it shows.
const ROWS: [(&str, &[usize]); 4] = [
    ("`insert`", &[0]),
    ("`contains`, present; absent", &[1, 2]),
    ("`contains_batch`, present; absent", &[3, 4]),
    ("`remove`", &[5]),
];

type Measure = fn(&Keys) -> Times;

/// Measures an empty filter.
fn measure(mut filter: impl Insert<u64>, keys: &Keys) -> Times {
    let items = keys.present.len();
    let mut found = vec![false; items];
    let most_false_positives = items / 500;
    let mut times = Times::default();
    times[0] = time(items, || keys.present.iter().for_each(|key| filter.insert(black_box(key)).expect("there is room")));
    times[1] = time(items, || assert!(keys.present.iter().all(|key| filter.contains(black_box(key)))));
    times[2] = time(items, || {
        let found = keys.absent.iter().filter(|key| black_box(filter.contains(black_box(*key)))).count();
        assert!(found <= most_false_positives);
    });
    times[3] = time(items, || filter.contains_batch(&keys.present, black_box(&mut found)));
    assert!(found.iter().all(|&found| found));
    times[4] = time(items, || filter.contains_batch(&keys.absent, black_box(&mut found)));
    assert!(found.iter().filter(|&&found| found).count() <= most_false_positives);
    times[5] = time(items, || assert!(keys.present.iter().all(|key| filter.remove(black_box(key)))));
    assert!(filter.is_empty());
    times
}

/// Prints the space of filters at every size, in bits per item.
fn space() {
    const SIZES: [usize; 5] = [1000, 10_000, 100_000, 1_000_000, 10_000_000];
    const FROM: [usize; 2] = [1000, 1_000_000];
    let items = Extent::of_arguments(&WORDS, 10_000_000, 1).length();
    let builder = ElasticFilter::builder().false_positive_rate(RATE);
    let shared = builder.clone().build_shared().expect("valid parameters").size_in_bytes();
    let mut columns = Vec::new();
    for builder in [builder.clone(), builder.capacity(1000)] {
        let mut filter = builder.build().expect("valid parameters");
        let mut column = vec![format!("{} bytes", count(filter.size_in_bytes()))];
        let (mut next, mut bits) = (1000.0, Vec::new());
        for n in 1..=items {
            filter.insert(&key(n as u64)).expect("the filter grows");
            // The samples are evenly spaced on a logarithmic scale.
            if n as f64 >= next {
                next *= 1.01;
                bits.push((n, filter.bits_per_item()));
                assert!(filter.false_positive_rate() <= RATE);
            }
            if SIZES.contains(&n) {
                column.push(format!("{:.1}", filter.bits_per_item()));
            }
        }
        for from in FROM.into_iter().filter(|&from| from < items) {
            let bits: Vec<f64> = bits.iter().filter(|(n, _)| *n >= from).map(|&(_, bits)| bits).collect();
            let (least, most) = extremes(&bits);
            column.push(format!("{:.1} ({least:.1} to {most:.1})", bits.iter().sum::<f64>() / bits.len() as f64));
        }
        columns.push(column);
    }
    let ranges = FROM.iter().map(|&from| format!("{} to {}, averaged over log n (least to most)", count(from), count(items)));
    let sizes = SIZES.iter().filter(|&&size| size <= items).map(|&size| count(size));
    let names = [String::from("none")].into_iter().chain(sizes).chain(ranges);
    println!(
        "Bits of memory per item of an `ElasticFilter`, ε = {RATE}. An empty `SharedFilter` takes {} bytes.\n",
        count(shared)
    );
    println!("| items | default options | `capacity(1000)` |\n|---|---:|---:|");
    for (at, name) in names.take(columns[0].len()).enumerate() {
        row(&name, columns.iter().map(|column| column[at].clone()));
    }
}

/// Returns the least and the greatest value.
fn extremes(values: &[f64]) -> (f64, f64) {
    (values.iter().copied().fold(f64::MAX, f64::min), values.iter().copied().fold(0.0, f64::max))
}

/// Returns the 99.9th percentile of the times of insertions into a growing filter, in nanoseconds.
fn insertion_percentile(keys: &Keys) -> f64 {
    let mut filter = growing();
    let mut times = Vec::with_capacity(keys.present.len());
    for key in &keys.present {
        let start = Instant::now();
        filter.insert(key).expect("the filter grows");
        times.push(start.elapsed().as_secs_f64() * 1e9);
    }
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() - 1 - times.len() / 1000]
}

/// Prints the space of filters that grow to 50 times their planned size.
fn beyond() {
    const TIMES: [usize; 6] = [1, 2, 5, 10, 20, 50];
    // The number is smaller in a test.
    let planned = Extent::of_arguments(&WORDS, 1_000_000, 1).length() / 10;
    println!("Bits per item, and in brackets buckets per lookup, of filters planned for {} items:\n", count(planned));
    println!(
        "| ε | `capacity` | as planned | 2 × | 5 × | 10 × | 20 × | 50 × | averaged over log n |\n|---|---:|{}",
        "---:|".repeat(7)
    );
    for rate in [0.01, 0.001] {
        for capacity in [planned, planned / 100] {
            let builder = ElasticFilter::builder().false_positive_rate(rate).capacity(capacity).max_capacity(planned);
            let mut filter = builder.build().expect("valid parameters");
            let (mut next, mut bits, mut buckets) = (planned as f64, Vec::new(), Vec::new());
            let mut cells = vec![count(capacity)];
            for items in 1..=50 * planned {
                filter.insert(&key(items as u64)).expect("the filter grows");
                // The samples are evenly spaced on a logarithmic scale.
                if items as f64 >= next {
                    next *= 1.02;
                    bits.push(filter.bits_per_item());
                    buckets.push(filter.buckets_per_lookup() as f64);
                    assert!(filter.false_positive_rate() <= rate);
                }
                if items.is_multiple_of(planned) && TIMES.contains(&(items / planned)) {
                    cells.push(format!("{:.1} ({})", filter.bits_per_item(), filter.buckets_per_lookup()));
                }
            }
            let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
            cells.push(format!("{:.1} ({:.1})", mean(&bits), mean(&buckets)));
            row(&format!("{} %", 100.0 * rate), cells);
        }
    }
}

/// Merges the filters of workers: all into the first, or neighbors in pairs. Returns the nanoseconds per item, and the peak of the
/// bytes that all filters took together.
fn merge_all(filters: Vec<ElasticFilter>, items: usize, into_first: bool) -> (f64, usize) {
    let (mut filters, mut most) = (VecDeque::from(filters), 0);
    let time = time(items, || {
        while filters.len() > 1 {
            let all: usize = filters.iter().map(ElasticFilter::size_in_bytes).sum();
            let [mut into, other] = [(); 2].map(|()| filters.pop_front().expect("there are two filters"));
            into.merge(&other).expect("the plan has room for all items");
            // During the merge, the result exists in addition to all filters.
            most = most.max(all + into.size_in_bytes());
            if into_first { filters.push_front(into) } else { filters.push_back(into) }
        }
    });
    assert_eq!(filters[0].len(), items);
    (time, most)
}

/// Prints the time and memory of filling and merging the filters of workers, as multiples of those of one filter for all items.
fn merge() {
    const WORKERS: [usize; 3] = [4, 16, 64];
    const ROWS: [&str; 4] = ["fill", "merge in turn", "merge in pairs", "most bytes at a time"];
    let extent = Extent::of_arguments(&WORDS, 3_000_000, 5);
    let (items, rounds) = (extent.length(), extent.rounds);
    let keys: Vec<u64> = (0..extent.items).map(key).collect();
    println!(
        "{} items, ε = {RATE}, in one thread; × one filter that is filled with all items. Medians of {rounds} rounds.\n",
        count(items)
    );
    println!("| workers | {} |\n|---|{}", WORKERS.map(count).join(" | "), "---:|".repeat(WORKERS.len()));
    let grown = ElasticFilter::builder().false_positive_rate(RATE).max_capacity(items);
    for (name, builder) in [("grown", grown.clone()), ("planned", grown.capacity(items))] {
        let filled = |keys: &[u64]| {
            let mut filter = builder.clone().build().expect("valid parameters");
            filter.insert_iter(keys).expect("the filter grows");
            filter
        };
        let column = |workers: usize| {
            let mut column = ROWS.map(|_| Vec::new());
            for _ in 0..rounds {
                let (mut whole, mut filters) = (filled(&[]), Vec::new());
                let once = time(items, || whole = filled(&keys));
                let fill = time(items, || filters = keys.chunks(items.div_ceil(workers)).map(filled).collect());
                let (in_turn, most) = merge_all(filters.clone(), items, true);
                let (in_pairs, _) = merge_all(filters, items, false);
                let figures = [fill / once, in_turn / once, in_pairs / once, most as f64 / whole.size_in_bytes() as f64];
                figures.into_iter().zip(&mut column).for_each(|(figure, all)| all.push(figure));
            }
            column.map(|figures| format!("{:.1} ×", median(&figures)))
        };
        let columns = WORKERS.map(column);
        for (at, operation) in ROWS.iter().enumerate() {
            row(&format!("{name}: {operation}"), columns.iter().map(|column| column[at].clone()));
        }
    }
}

/// Measures filters of `items` items, and returns the cells of their column.
fn column(items: u64, rounds: usize) -> Vec<String> {
    let keys = Keys { present: (0..items).map(key).collect(), absent: (items..2 * items).map(key).collect() };
    let kinds: [Measure; 3] = [
        |keys| measure(fixed(keys.present.len()), keys),
        |keys| measure(growing(), keys),
        |keys| measure(planned(keys.present.len()).build().expect("valid parameters"), keys),
    ];
    let mut all = vec![Vec::new(); kinds.len()];
    for _ in 0..rounds {
        for (measure, all) in kinds.iter().zip(&mut all) {
            all.push(measure(&keys));
        }
    }
    let mut cells = Vec::new();
    for (kind, times) in all.iter().enumerate() {
        for (_, operations) in ROWS {
            let figures = operations.iter().map(|&operation| {
                if kind == 0 {
                    return format!("{:.0}", median(&times.iter().map(|times| times[operation]).collect::<Vec<f64>>()));
                }
                let ratios = times.iter().zip(&all[0]).map(|(times, fixed)| times[operation] / fixed[operation]);
                format!("{:.1}", median(&ratios.collect::<Vec<f64>>()))
            });
            cells.push(figures.collect::<Vec<String>>().join("; ") + if kind == 0 { " ns" } else { " ×" });
        }
    }
    cells.push(format!("{:.1} µs", insertion_percentile(&keys) / 1000.0));
    cells
}

fn main() {
    let Extent { items, rounds: most } = Extent::of_arguments(&WORDS, 0, ROUNDS[1]);
    // A test has other numbers than the charts in docs/tuning, which it would replace.
    if is_given("draw") && (is_test() || !is_given("edges")) {
        refuse("draw: only `cargo bench --bench growth -- edges draw` draws");
    }
    let parts: [(&str, fn()); 3] = [("merge", merge), ("beyond", beyond), ("space", space)];
    if let Some((_, run)) = parts.iter().find(|(name, _)| is_given(name)) {
        return run();
    }
    if is_given("edges") {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/tuning");
        return edges::edges(&Extent::of_arguments(&WORDS, 1_000_000, 1), is_given("draw").then_some(&folder));
    }
    let sizes = if items == 0 { SIZES.to_vec() } else { vec![items] };
    let rounds = |items: u64| (usize::try_from(30_000_000 / items).unwrap_or(0) | 1).clamp(ROUNDS[0], ROUNDS[1]).min(most);
    let columns: Vec<Vec<String>> = sizes.iter().map(|&items| column(items, rounds(items))).collect();
    println!(
        "Per item in one thread, ε = {RATE}, medians of {} rounds and more; × the fixed filter in the same rounds.\n",
        rounds(sizes[sizes.len() - 1])
    );
    println!(
        "| items | {} |\n|---|{}",
        sizes.iter().map(|&items| count(items)).collect::<Vec<_>>().join(" | "),
        "---:|".repeat(sizes.len())
    );
    let names = ["fixed", "grown", "planned"].iter().flat_map(|kind| ROWS.map(|(name, _)| format!("{kind}: {name}")));
    for (at, name) in names.chain([String::from("grown: 99.9 % of the insertions take at most")]).enumerate() {
        row(&name, columns.iter().map(|column| column[at].clone()));
    }
}
