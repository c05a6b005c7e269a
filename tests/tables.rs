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
    assert!(groups.iter().map(|(group, _)| *group).eq(max_load::groups()), "other kinds of tables are measured");
    assert!(plan::file(seed, &groups) == MAX_LOAD, "run the command in tables/README.md");
}

/// A few of the cells, small enough for a test: if these come out as they are in the file, so do the others.
#[test]
fn the_measured_loads_are_measured_again() {
    let (_, groups) = plan::read(MAX_LOAD).expect("the file is a table of loads");
    for (b, f, log2_buckets) in [(1, 2, 3), (1, 20, 5), (2, 5, 2), (2, 10, 2), (3, 9, 2), (4, 5, 2), (4, 12, 1), (8, 3, 1)] {
        for (group, cells) in groups.iter().filter(|(group, _)| (group.b, group.f) == (b, f)) {
            let expected = cells.iter().find(|cell| cell.log2_buckets == log2_buckets).expect("it was measured");
            assert_eq!(max_load::measure(*group, log2_buckets), *expected, "{group:?} {log2_buckets}");
        }
    }
}

/// Why larger buckets need no more columns: from eight bits on, the mean load is the same, up to the error of the measurement.
#[test]
fn loads_of_larger_buckets_do_not_depend_on_the_fingerprint_from_eight_bits_on() {
    // The means are rounded to it.
    let digit = 1e-4;
    let (_, groups) = plan::read(MAX_LOAD).expect("the file is a table of loads");
    let mut compared = 0;
    for (group, cells) in groups.iter().filter(|(group, _)| group.b >= 4 && group.f == 8) {
        let twelve = groups.iter().find(|(other, _)| (other.addressing, other.b, other.f) == (group.addressing, group.b, 12));
        let (_, others) = twelve.expect("twelve bits were measured");
        for (cell, other) in cells.iter().zip(others) {
            let error = [cell, other].iter().map(|cell| cell.deviation.powi(2) / cell.trials as f64).sum::<f64>().sqrt();
            let difference = (cell.mean - other.mean).abs();
            assert!(difference <= 1.001 * digit + 4.0 * error, "{group:?}, 2^{} buckets: {difference}", cell.log2_buckets);
            compared += 1;
        }
    }
    assert_eq!(compared, 5 * (16 + 17));
}

/// With one slot in a bucket, plans trust a formula: it expects this many refusals in all tables of a size up to the load at which
/// the first of them refused an item. That is about one, and rarely a thousandth, if it overlooks no reason for a refusal.
#[test]
fn the_worst_tables_with_buckets_of_one_slot_are_as_bad_as_the_formula_says() {
    let (_, groups) = plan::read(MAX_LOAD).expect("the file is a table of loads");
    let mut logarithms = Vec::new();
    for (group, cells) in groups.iter().filter(|(group, _)| group.b == 1) {
        for cell in cells.iter().filter(|cell| cell.log2_buckets >= 8) {
            let expected = plan::crowded(*group, cell.log2_buckets, cell.min) * cell.trials as f64;
            assert!(expected > 1e-3, "{group:?} {cell:?}: {expected}");
            logarithms.push(expected.ln());
        }
    }
    let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
    assert!((-0.7..0.7).contains(&mean), "{mean}");
}

/// What docs/DESIGN.md says in "Capacity" about five bits, to the digits that it gives.
#[test]
fn nine_items_meet_as_often_as_the_design_says() {
    let chance = |log2_buckets: u32| format!("{:.1e}", koel::tuning::crowded_pairs(4, 5, 1 << log2_buckets, 0.97));
    assert_eq!([chance(19), chance(28)], ["6.9e-5", "3.5e-2"]);
}
