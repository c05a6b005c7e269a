//! The experiment `sweep`: any measurements over any grid of parameters, one row for each filter.

mod charts;
mod grid;
mod measures;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use self::measures::Measures;
pub use self::{
    grid::{Grid, LeftOut},
    measures::Measure,
};
use super::{
    probe::{Kind, OVERHEAD},
    times::{self, Times},
};
use crate::{
    column::{Column, Role},
    experiment::{Experiment, Findings, Measured, Scope},
    interrupt::Interrupt,
};

/// Measurements of all filters of a grid.
#[derive(Clone, Debug)]
pub struct Sweep {
    grid: Grid,
    measures: Measures,
}

/// A filter, by its parameters and what is measured of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    table: Kind,
    b: u32,
    f: u32,
    load: f64,
    items: u64,
    measure: Measures,
    /// Fewer probes, tables and rounds.
    quick: bool,
}

/// What was measured. The fields of a measure that is not wanted, or not possible, are empty.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Row {
    slots: u64,
    /// Fewer than in the case if one was refused. Only `first_refusal` is measured then.
    inserted: u64,
    bytes: Option<u64>,
    bits_per_item: Option<f64>,
    probes: Option<u64>,
    found: Option<u64>,
    predicted_rate: Option<f64>,
    rate: Option<f64>,
    rate_low: Option<f64>,
    rate_high: Option<f64>,
    tables: Option<u32>,
    first_refusal: Option<f64>,
    first_refusal_min: Option<f64>,
    first_refusal_max: Option<f64>,
    rounds: Option<u32>,
    #[serde(flatten)]
    times: Times,
}

impl Sweep {
    /// Measures all of this for every filter of the grid that is possible.
    #[must_use]
    pub fn new(grid: Grid, measures: &[Measure]) -> Self {
        Self { grid, measures: Measures::new(measures) }
    }

    /// The combinations that are impossible, and why.
    #[must_use]
    pub fn left_out(&self) -> Vec<LeftOut> {
        self.grid.left_out()
    }

    /// The bytes of memory that the largest case takes.
    #[must_use]
    pub fn most_memory(&self, scope: &Scope) -> u64 {
        self.cases(scope).iter().map(|case| self.memory(case)).max().unwrap_or(0)
    }
}

impl Case {
    /// The number of buckets: even, and enough for the items at this load.
    fn buckets(&self) -> u64 {
        // A quotient such as 950/0.95 may be a little above 1000.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of slots, positive")]
        let slots = (self.items as f64 / self.load * (1.0 - 1e-12)).ceil() as u64;
        slots.max(1).div_ceil(u64::from(self.b)).div_ceil(2) * 2
    }

    fn slots(&self) -> u64 {
        self.buckets() * u64::from(self.b)
    }
}

impl Experiment for Sweep {
    type Case = Case;
    type Row = Row;

    fn name(&self) -> &'static str {
        "sweep"
    }

    fn title(&self) -> &'static str {
        "Sweep of parameters"
    }

    fn about(&self) -> &'static str {
        "For each combination of parameters, a filter is built with as many buckets as its items take at the load, and what was \
         asked for is measured: space (bits of the table per item), fpr (look-ups of absent items), load (tables of this size are \
         filled until they refuse an item), speed (of a filter at the load, one key at a time, with the best kernel; insertions and removals over the last five \
         per cent of the slots; medians of several rounds). If a filter refused an item before the load, only the load at the \
         first refusal is measured. Intervals are 99 % confidence intervals; those of times hold half of the rounds."
    }

    fn is_timed(&self) -> bool {
        self.measures.has(Measure::Speed)
    }

    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![
            Column::key("table", "", "packed or single"),
            Column::key("b", "slots", "slots per bucket"),
            Column::key("f", "bits", "length of a fingerprint"),
            Column::key("load", "", "load that was asked for, 0 to 1; `inserted` divided by `slots` is the exact one"),
            Column::key("items", "items", "items to insert"),
            Column::key("measure", "", "what was measured, of space, fpr, load and speed"),
            Column::key("quick", "", "true: fewer probes, tables, rounds, and timed keys"),
            Column::new("slots", "slots", "slots of the table").compared(Role::Exact),
            Column::new("inserted", "items", "items in the filter: fewer if one was refused").compared(Role::Exact),
            Column::new("bytes", "bytes", "size of the table").compared(Role::Exact),
            Column::new("bits_per_item", "bits", "bits of the table, divided by items").compared(Role::Exact),
            Column::new("probes", "probes", "absent items that were looked up").compared(Role::Exact),
            Column::new("found", "probes", "those that were found: false positives"),
            Column::new("predicted_rate", "", "false-positive rate by the formula, 0 to 1").compared(Role::Exact),
            Column::new("rate", "", "measured false-positive rate, 0 to 1").compared(Role::estimate("rate_low", "rate_high")),
            Column::new("rate_low", "", "lower end of its 99 % confidence interval"),
            Column::new("rate_high", "", "upper end of its 99 % confidence interval"),
            Column::new("tables", "tables", "tables of this size that were filled until they refused an item")
                .compared(Role::Exact),
            Column::new("first_refusal", "", "mean load at the first refusal, 0 to 1").compared(Role::mean(
                "first_refusal_min",
                "first_refusal_max",
                "tables",
            )),
            Column::new("first_refusal_min", "", "least load at the first refusal"),
            Column::new("first_refusal_max", "", "greatest load at the first refusal"),
        ];
        columns.extend(times::columns());
        columns
    }

    fn cases(&self, scope: &Scope) -> Vec<Case> {
        let mut cases = self.grid.cases(&self.measures, scope.quick);
        cases.retain(|case| scope.at_most(case.slots()) == case.slots());
        cases
    }

    fn effort(&self, case: &Case) -> u64 {
        measures::effort(case)
    }

    fn memory(&self, case: &Case) -> u64 {
        let slots = case.slots();
        // Times need their keys.
        let keys = if case.measure.has(Measure::Speed) { 8 } else { 0 };
        OVERHEAD + slots * (u64::from(case.f) / 8 + 1 + keys)
    }

    fn with_less_memory(&self) -> &'static str {
        "give fewer --items, or a higher --load"
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        Ok(vec![measures::measure(case, seed, interrupt)?])
    }

    fn findings(&self, measured: &[Measured<Case, Row>]) -> Findings {
        Findings {
            charts: charts::charts(measured),
            tables: grid::table(&self.left_out()).into_iter().collect(),
            warnings: warnings(measured),
        }
    }
}

/// What a reader of the rows must know: why cells are empty, why points are missing, and which times are too long.
fn warnings(measured: &[Measured<Case, Row>]) -> Vec<String> {
    let of = |is: fn(&Case, &Row) -> bool| {
        let rows = measured.iter().flat_map(|m| m.rows.iter().map(|row| (&m.case, row)));
        rows.filter(|(case, row)| is(case, row)).count()
    };
    let warnings = [
        (
            of(|case, row| row.inserted < case.items),
            "an item was refused before the load, so that only the load at the first refusal was measured; give a lower --load, a \
             greater f or other buckets",
        ),
        (
            of(|_, row| row.found == Some(0)),
            "no absent item was found: the rate is 0, with the upper end of its interval, and the chart leaves it out",
        ),
        (of(|_, row| row.times.are_disturbed()), "other work on the processor disturbed too many rounds: the times are too long"),
    ];
    let cases = measured.len();
    let found = warnings.into_iter().filter(|&(number, _)| number > 0);
    found.map(|(number, what)| format!("In {number} of {cases} cases, {what}.")).collect()
}
