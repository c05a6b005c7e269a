//! The experiments of `koel experiment`, one file or folder each.

mod fpr;
mod load;
mod probe;
mod random_walk;
mod space;
pub mod speed;
pub mod sweep;
pub(crate) mod times;

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{RngCore as _, SeedableRng as _},
};

pub use self::sweep::Sweep;
use self::{fpr::Fpr, load::Load, space::Space, speed::Speed};
use crate::{About, Measured, Plan, Settings, experiment::Untyped};

/// The experiments without parameters, in the order in which they run.
const ALL: [fn() -> Box<dyn Untyped>; 4] = [|| Box::new(Load), || Box::new(Space), || Box::new(Fpr), || Box::new(Speed)];

/// Returns the descriptions of koel's experiments, in the order in which they run. A [sweep] is not included, because it takes
/// parameters.
#[must_use]
pub fn all() -> Vec<About> {
    ALL.iter().map(|new| new().about()).collect()
}

/// Plans the experiments whose names `is_wanted` selects.
///
/// # Errors
/// The errors of [`Plan::new`], before anything is measured.
pub fn plans(is_wanted: impl Fn(&str) -> bool, settings: &Settings) -> anyhow::Result<Vec<Plan<'static>>> {
    let wanted = ALL.iter().map(|new| new()).filter(|experiment| is_wanted(experiment.about().name));
    wanted.map(|experiment| Plan::from_untyped(experiment, settings)).collect()
}

/// Returns the number of buckets of `b` slots that this many slots fill, rounded up to an even number.
fn buckets(slots: u64, b: u32) -> u64 {
    (slots / u64::from(b)).div_ceil(2) * 2
}

/// Formats a round number with a unit: 100 k, 10 M.
fn count(number: u64) -> String {
    match number {
        1_000_000.. => format!("{} M", number / 1_000_000),
        1000.. => format!("{} k", number / 1000),
        _ => number.to_string(),
    }
}

/// Returns the rows that `which` selects, with their cases, sorted by `by`.
fn rows<C, R>(measured: &[Measured<C, R>], which: impl Fn(&C, &R) -> bool, by: impl Fn(&C, &R) -> f64) -> Vec<(&C, &R)> {
    let all = measured.iter().flat_map(|m| m.rows.iter().map(|row| (&m.case, row)));
    let mut rows: Vec<_> = all.filter(|&(case, row)| which(case, row)).collect();
    rows.sort_by(|one, other| by(one.0, one.1).total_cmp(&by(other.0, other.1)));
    rows
}

/// An endless sequence of random numbers that represent the hashes of items. Each has 64 uniformly distributed bits. The seed
/// determines the sequence, on every machine.
#[derive(Clone)]
pub(super) struct Hashes(Xoshiro256PlusPlus);

impl Hashes {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Returns a random index into a list of this length.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "below the length")]
    pub(super) fn position(&mut self, len: usize) -> usize {
        ((u128::from(self.0.next_u64()) * len as u128) >> 64) as usize
    }
}

impl Iterator for Hashes {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        Some(self.0.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use serde_json::Value;

    use super::{
        sweep::{Grid, Measure},
        *,
    };
    use crate::{Chart, Experiment, Findings, Interrupt, Interrupted, Scope, chart::draw, record::ORDER};

    #[test]
    fn reports_have_the_experiments_in_order() {
        let names: Vec<_> = all().iter().map(|about| about.name).collect();
        assert!(ORDER.starts_with(&names), "`ORDER` in lab/src/record.rs should begin with {names:?}, as `ALL` does");
    }

    /// Checks the contract of [`Experiment`] for all experiments.
    #[test]
    fn experiments_respect_limits_interrupts_and_empty_results() {
        let grid = Grid {
            tables: vec![koel::TableKind::Packed],
            bucket_sizes: vec![4],
            fingerprint_bits: vec![8],
            loads: vec![0.5],
            items: vec![1000],
        };
        let sweep: Box<dyn Untyped> = Box::new(Sweep::new(grid, &Measure::ALL));
        for experiment in ALL.iter().map(|new| new()).chain([sweep]) {
            let name = experiment.about().name;
            let cases = |quick, max_slots| experiment.cases(&Scope { quick, seed: 1, max_slots }).expect("cases have fields");
            let (full, quick, limited) = (cases(false, None), cases(true, None), cases(true, Some(5000)));
            assert!(full.len() >= quick.len(), "{name}: `quick` should not give more cases than without it");
            assert!(quick.len() >= limited.len(), "{name}: `max_slots` should not give more cases than without it");
            assert!(!limited.is_empty(), "{name}: `quick` with `max_slots: Some(5000)` should leave at least one case");
            assert!(
                cases(true, Some(1)).is_empty(),
                "{name}: no table has one slot, so `max_slots: Some(1)` should leave no case"
            );
            for planned in &limited {
                let slots = planned.case.get("slots").and_then(Value::as_u64);
                assert!(slots <= Some(5000), "{name}: `max_slots: Some(5000)` gives {}", planned.key);
            }
            for cases in [full, quick, limited] {
                let mut seen = HashSet::new();
                for planned in &cases {
                    assert!(seen.insert(&planned.key), "{name}: has this case twice: {}", planned.key);
                    assert!(planned.effort > 0, "{name}: `effort` should be above 0 for {}", planned.key);
                    assert!(planned.memory > 0, "{name}: `memory` should be above 0 for {}", planned.key);
                }
            }
            let interrupt = Interrupt::new();
            interrupt.set();
            let error = experiment.measure(&cases(true, None)[0].case, 1, &interrupt).err();
            assert!(
                error.as_ref().is_some_and(anyhow::Error::is::<Interrupted>),
                "{name}: `measure` should call `interrupt.check()?` before it returns, but gave {error:?}"
            );
            let findings = experiment.findings(&[]).expect("empty results are valid");
            for chart in &findings.charts {
                assert_eq!(chart.finding, None, "{name}: without results, a chart should claim nothing");
            }
            check(&findings);
        }
    }

    /// Measures these cases with the seed 1.
    pub(super) fn measured<E: Experiment>(experiment: &E, cases: Vec<E::Case>) -> Vec<Measured<E::Case, E::Row>> {
        let measure = |case| experiment.measure(&case, 1, &Interrupt::new()).map(|rows| Measured { case, rows });
        cases.into_iter().map(measure).collect::<Result<_, _>>().expect("the measurement is not interrupted")
    }

    /// Returns the findings of these results. Also checks that the findings of a part of them can be shown.
    pub(super) fn shown<E>(experiment: &E, measured: &[Measured<E::Case, E::Row>]) -> Findings
    where
        E: Experiment<Case: Clone, Row: Clone>,
    {
        let some: Vec<_> = measured.iter().step_by(7).cloned().collect();
        let unmeasured = Measured { case: measured[0].case.clone(), rows: Vec::new() };
        let [findings, ..] = [measured, &some[..], &[unmeasured][..]].map(|measured| {
            let findings = experiment.findings(measured);
            check(&findings);
            findings
        });
        findings
    }

    /// Checks that all charts can be drawn with the available colors, and that no table lacks a cell.
    fn check(Findings { charts, tables, .. }: &Findings) {
        for chart in charts {
            assert!(draw(chart).starts_with("<svg"), "chart {}", chart.file);
            let most = Chart::MAX_COLORS;
            assert!(chart.series.iter().all(|series| series.color < most), "chart {}: colors should be below {most}", chart.file);
        }
        for table in tables {
            assert!(table.rows.iter().all(|row| row.len() == table.header.len()), "a row should have all columns: {table:?}");
            let is_a_number = |cell: &String| !cell.contains("inf") && !cell.contains("NaN");
            assert!(table.rows.iter().flatten().all(is_a_number), "a cell should have no inf or NaN: {table:?}");
        }
    }
}
