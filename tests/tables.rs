//! The files in tables/ are what their generator writes.

#![allow(clippy::cast_precision_loss, dead_code, reason = "the generator's modules are used in part")]

#[path = "../tables/max_load.rs"]
mod max_load;
#[path = "../tables/plan.rs"]
mod plan;

use crate::common::split_mix;

const MAX_LOAD: &str = include_str!("../tables/max_load.tsv");

#[test]
fn the_safe_loads_follow_from_the_measured_ones() {
    let (seed, groups) = plan::read(MAX_LOAD).expect("the file is a table of loads");
    assert_eq!(groups.len(), 2 * max_load::BUCKET_SIZES.len() * max_load::FINGERPRINT_BITS.len());
    assert!(plan::file(seed, &groups) == MAX_LOAD, "run the command in tables/README.md");
}

/// A few of the cells, small enough for a test: if these come out as they are in the file, so do the others.
#[test]
fn the_measured_loads_are_measured_again() {
    let (_, groups) = plan::read(MAX_LOAD).expect("the file is a table of loads");
    for (b, f, log2_buckets) in [(1, 2, 3), (2, 5, 2), (4, 5, 2), (4, 12, 1), (8, 3, 1)] {
        for (group, cells) in groups.iter().filter(|(group, _)| (group.b, group.f) == (b, f)) {
            let expected = cells.iter().find(|cell| cell.log2_buckets == log2_buckets).expect("it was measured");
            assert_eq!(max_load::measure(*group, log2_buckets), *expected, "{group:?} {log2_buckets}");
        }
    }
}

/// What docs/DESIGN.md says in "Capacity" about five bits, to the digits that it gives.
#[test]
fn nine_items_meet_as_often_as_the_design_says() {
    let chance = |log2_buckets: u32| format!("{:.1e}", koel::tuning::crowded_pairs(4, 5, 1 << log2_buckets, 0.97));
    assert_eq!([chance(19), chance(28)], ["6.9e-5", "3.5e-2"]);
}
