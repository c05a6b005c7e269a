//! The measured loads in `tables/max_load.tsv`, and the safe loads that follow from them, are what their generator writes.

#![allow(clippy::cast_precision_loss, dead_code, reason = "the generator's modules are used in part")]

#[path = "../tables/max_load.rs"]
mod max_load;
#[path = "../tables/plan.rs"]
mod plan;

use crate::common::split_mix;

const MAX_LOAD: &str = include_str!("../tables/max_load.tsv");

#[test]
fn safe_loads_follow_from_measured_loads() {
    let (seed, groups) = plan::read(MAX_LOAD).expect("valid table of loads");
    assert!(
        groups.iter().map(|(group, _)| *group).eq(max_load::groups()),
        "the file has other kinds of tables than the generator"
    );
    assert!(plan::file(seed, &groups) == MAX_LOAD, "run the command in tables/README.md");
    let source = plan::source(&groups, max_load::ADDRESSINGS, &max_load::BUCKET_SIZES);
    assert!(source == include_str!("../src/params/safe_loads.rs"), "run the command in src/params/safe_loads.rs");
}

/// Tables of all kinds refuse an item below their planned load as rarely as promised. With short fingerprints, this load is not
/// measured but computed.
#[test]
fn planned_loads_are_safe_for_all_measured_kinds() {
    let (_, groups) = plan::read(MAX_LOAD).expect("valid table of loads");
    // In smaller tables, there are so many trials that the worst one may be below the planned load.
    let cells = groups.iter().flat_map(|(group, cells)| cells.iter().map(move |cell| (*group, *cell)));
    // With three bits and large buckets, a few items are counted as copies before the table is full.
    let cells = cells.filter(|(group, cell)| cell.trials <= 5000 && !(group.f == 3 && group.b >= 12));
    let (mut expected, mut refused) = (0.0, Vec::new());
    for (group, cell) in cells {
        let planned = koel::tuning::safe_load(group.addressing, group.b, group.f, 1 << cell.log2_buckets);
        // At most this share of the cells has a trial that refused an item too early.
        expected += cell.trials as f64 * 1e-4;
        // Loads are rounded to four decimal places.
        if cell.min < planned - 6e-5 {
            refused.push((group, cell.log2_buckets, planned, cell.min));
        }
        assert!(planned < cell.mean, "{group:?} {cell:?}: {planned}");
    }
    assert!(refused.len() as f64 <= expected + 4.0 * expected.sqrt(), "{expected}: {refused:?}");
}

/// Measures some cells again that are small enough for a test. The others are measured by the same code.
#[test]
fn measured_loads_are_reproducible() {
    let (_, groups) = plan::read(MAX_LOAD).expect("valid table of loads");
    for (b, f, log2_buckets) in [(1, 2, 3), (1, 20, 5), (2, 5, 2), (2, 10, 2), (3, 9, 2), (4, 5, 2), (4, 12, 1), (8, 3, 1)] {
        for (group, cells) in groups.iter().filter(|(group, _)| (group.b, group.f) == (b, f)) {
            let expected = cells.iter().find(|cell| cell.log2_buckets == log2_buckets).expect("it was measured");
            assert_eq!(max_load::measure(*group, log2_buckets), *expected, "{group:?} {log2_buckets}");
        }
    }
}

/// With buckets of four slots or more, the mean load is the same from eight bits on, within the error of the measurement. So more
/// fingerprint lengths need not be measured.
#[test]
fn loads_with_larger_buckets_are_the_same_from_eight_bits_on() {
    // Means are rounded to four decimal places.
    let rounding = 1e-4;
    let (_, groups) = plan::read(MAX_LOAD).expect("valid table of loads");
    let mut compared = 0;
    for (group, cells) in groups.iter().filter(|(group, _)| group.b >= 4 && group.f == 8) {
        let twelve = groups.iter().find(|(other, _)| (other.addressing, other.b, other.f) == (group.addressing, group.b, 12));
        let (_, others) = twelve.expect("twelve bits were measured");
        for (cell, other) in cells.iter().zip(others) {
            let error = [cell, other].iter().map(|cell| cell.deviation.powi(2) / cell.trials as f64).sum::<f64>().sqrt();
            let difference = (cell.mean - other.mean).abs();
            assert!(difference <= 1.001 * rounding + 4.0 * error, "{group:?}, 2^{} buckets: {difference}", cell.log2_buckets);
            compared += 1;
        }
    }
    assert_eq!(compared, 5 * (16 + 17));
}

/// Checks the figures for five bits in docs/DESIGN.md, "Capacity".
#[test]
fn figures_for_five_bits_in_the_design_are_correct() {
    let chance = |log2_buckets: u32| format!("{:.1e}", koel::tuning::overfull_pairs(4, 5, 1 << log2_buckets, 0.97));
    assert_eq!([chance(19), chance(28)], ["6.9e-5", "3.5e-2"]);
}
