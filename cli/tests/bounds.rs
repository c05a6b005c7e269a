//! What `koel tune` says that a growing filter takes at most is an upper bound. This is a program of its own: its allocator counts.

mod common;
#[path = "../../tests/common/heap.rs"]
mod heap;

use common::Koel;
use heap::{Counting, peak};
use koel::ElasticFilter;
use serde_json::Value;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Whatever the hashes are: at every number of items, and at the moment of a split.
#[test]
fn a_growing_filter_never_takes_more_than_its_plan_says() {
    for (now, most, seeds) in
        [(0, 900, 40), (1000, 9000, 40), (20_000, 300_000, 8), (50_000, 1_000_000, 3), (1_000_000, 10_000_000, 1)]
    {
        let run = Koel::new().run(["tune", "--items", &format!("{now}..{most}"), "--fpr", "0.1%", "--json"]);
        let found: Value = serde_json::from_slice(run.ok()).expect("JSON");
        let mut plans = found["plans"].as_array().expect("plans").iter();
        let growing = plans.find(|plan| plan["name"] == "growing").expect("a plan");
        let bound = usize::try_from(growing["most_bytes"].as_u64().expect("bytes")).expect("few");
        for seed in 0..seeds {
            let builder = ElasticFilter::builder().capacity(now).max_capacity(most).false_positive_rate(0.001).seed(seed);
            let (filter, heap) = peak(|| {
                let mut filter = builder.build().expect("a filter");
                filter.insert_iter(0..most as u64).expect("room");
                filter
            });
            let peak = heap + size_of_val(&filter);
            assert!(peak <= bound, "{peak} bytes, at most {bound}: {now}..{most}, seed {seed}");
            assert!(most < 300_000 || bound < peak + peak / 5, "{peak} bytes, at most {bound}: {now}..{most}, seed {seed}");
        }
    }
}
