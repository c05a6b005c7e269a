//! A growing filter is as large as `koel tune` says, and never larger than it says at most. This is a program of its own: its allocator
//! counts.

#![allow(clippy::cast_precision_loss, reason = "numbers of bytes are small")]

mod common;
#[path = "../../tests/common/heap.rs"]
mod heap;

use common::Koel;
use heap::{Counting, peak};
use koel::ElasticFilter;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Whatever the hashes are: at every number of items, and at the moment of a split. Of the shards, some hundred, a few are split early
/// or late by chance.
#[test]
fn a_growing_filter_takes_what_its_plan_says() {
    let mut shares = Vec::new();
    for (now, most, seeds) in [
        (0, 900, 40),
        (1000, 9000, 40),
        (20_000, 300_000, 8),
        (20_000, 500_000, 3),
        (50_000, 1_000_000, 3),
        (1_000_000, 10_000_000, 1),
    ] {
        let found = Koel::new().json(&format!("tune --items {now}..{most} --fpr 0.1% --json"));
        let mut plans = found["plans"].as_array().expect("plans").iter();
        let growing = plans.find(|plan| plan["name"] == "growing").expect("a plan");
        let planned = |name: &str| growing[name].as_f64().expect("a number");
        let bound = planned("most_bytes");
        for seed in 0..seeds {
            let builder = ElasticFilter::builder().capacity(now).max_capacity(most).false_positive_rate(0.001).seed(seed);
            assert_eq!(growing["table_bytes_now"], builder.clone().params().expect("a plan").table_bytes());
            let (filter, heap) = peak(|| {
                let mut filter = builder.build().expect("a filter");
                filter.insert_iter(0..most as u64).expect("room");
                filter
            });
            let peak = (heap + size_of_val(&filter)) as f64;
            assert!(peak <= bound, "{peak} bytes, at most {bound}: {now}..{most}, seed {seed}");
            if most >= 300_000 {
                assert!(bound < 1.2 * peak, "{peak} bytes, at most {bound}: {now}..{most}, seed {seed}");
                let bytes = planned("table_bytes_at_end") / filter.table_bytes() as f64;
                let rate = planned("false_positive_rate_at_end") / filter.false_positive_rate();
                assert!((bytes - 1.0).abs() < 0.08 && (rate - 1.0).abs() < 0.08, "{bytes} of the bytes, {rate} of the rate");
                shares.push(bytes);
            }
        }
    }
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!((mean - 1.0).abs() < 0.03, "{mean} of the bytes on average");
}
