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
use crate::{
    chart::Series,
    experiment::{About, Untyped},
    plan::{Plan, Settings},
};

/// All that take no parameters, in the order in which they run.
const ALL: [fn() -> Box<dyn Untyped>; 4] = [|| Box::new(Load), || Box::new(Space), || Box::new(Fpr), || Box::new(Speed)];

/// What koel's experiments say of themselves, in the order in which they run. A [sweep] is not among them: it takes parameters.
#[must_use]
pub fn all() -> Vec<About> {
    ALL.iter().map(|new| new().about()).collect()
}

/// Plans those that are wanted, by their names.
///
/// # Errors
/// Those of [`Plan::new`], before anything is measured.
pub fn plans(is_wanted: impl Fn(&str) -> bool, settings: &Settings) -> anyhow::Result<Vec<Plan<'static>>> {
    let wanted = ALL.iter().map(|new| new()).filter(|experiment| is_wanted(experiment.about().name));
    wanted.map(|experiment| Plan::of(experiment, settings)).collect()
}

/// The number of buckets of b slots for this many slots, rounded up to an even number.
fn buckets(slots: u64, b: u32) -> u64 {
    (slots / u64::from(b)).div_ceil(2) * 2
}

/// A round number with a unit: 100 k, 10 M.
fn count(number: u64) -> String {
    match number {
        1_000_000.. => format!("{} M", number / 1_000_000),
        1000.. => format!("{} k", number / 1000),
        _ => number.to_string(),
    }
}

/// The series that have points: what was not measured is not in the legend.
fn with_points(series: impl IntoIterator<Item = Series>) -> Vec<Series> {
    series.into_iter().filter(|series| !series.points.is_empty()).collect()
}

/// Random numbers that stand for the hashes of items, without end: 64 uniformly distributed bits each, the same for the same
/// seed on every machine.
#[derive(Clone)]
pub(super) struct Hashes(Xoshiro256PlusPlus);

impl Hashes {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A random position in a list of this length.
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

    use super::{
        sweep::{Grid, Measure},
        *,
    };
    use crate::{
        chart::{Chart, draw},
        experiment::{Experiment, Findings, Measured, Scope},
        interrupt::{Interrupt, Interrupted},
    };

    /// What holds for every experiment.
    #[test]
    fn all_of_them_keep_to_their_limits_stop_when_told_to_and_do_with_no_results() {
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
            let cases = |quick, max_slots| experiment.cases(&Scope { quick, seed: 1, max_slots }).expect("they have fields");
            let (full, quick, few) = (cases(false, None), cases(true, None), cases(true, Some(5000)));
            assert!(full.len() >= quick.len() && quick.len() >= few.len() && !few.is_empty(), "{name}");
            assert!(
                few.iter().all(|planned| planned.case.get("slots").is_none_or(|slots| slots.as_u64() <= Some(5000))),
                "{name}"
            );
            assert!(cases(true, Some(1)).is_empty(), "{name}");
            for cases in [full, quick, few] {
                let different: HashSet<_> = cases.iter().map(|case| &case.key).collect();
                assert_eq!(different.len(), cases.len(), "{name}");
                assert!(cases.iter().all(|case| case.effort > 0 && case.memory > 0), "{name}");
            }
            let interrupt = Interrupt::new();
            interrupt.set();
            let error = experiment.measure(&cases(true, None)[0].case, 1, &interrupt).expect_err("it was told to stop");
            assert!(error.is::<Interrupted>(), "{name}: {error}");
            let findings = experiment.findings(&[]).expect("there is nothing wrong with nothing");
            assert!(findings.charts.iter().all(|chart| chart.finding.is_none()), "{name}");
            check(&findings);
        }
    }

    /// What these cases show with the seed 1.
    pub(super) fn measured<E: Experiment>(experiment: &E, cases: Vec<E::Case>) -> Vec<Measured<E::Case, E::Row>> {
        let measure = |case| experiment.measure(&case, 1, &Interrupt::new()).map(|rows| Measured { case, rows });
        cases.into_iter().map(measure).collect::<Result<_, _>>().expect("nobody interrupts it")
    }

    /// The findings of these results, and a check that those of some of them can be shown, too.
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

    /// Everything can be drawn, in the colours that there are, and no cell is missing.
    fn check(Findings { charts, tables, .. }: &Findings) {
        for chart in charts {
            assert!(draw(chart).starts_with("<svg"), "{}", chart.file);
            assert!(chart.series.iter().all(|series| series.colour < Chart::MOST_COLOURS), "{}", chart.file);
        }
        for table in tables {
            assert!(table.rows.iter().all(|row| row.len() == table.header.len()), "{table:?}");
            assert!(table.rows.iter().flatten().all(|cell| !cell.contains("inf") && !cell.contains("NaN")), "{table:?}");
        }
    }
}
