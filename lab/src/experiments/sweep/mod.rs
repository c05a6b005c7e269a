//! The experiment `sweep`: measures filters of any grid of parameters, with the code of the other experiments. Each filter has one
//! row.

mod charts;
#[cfg(test)]
mod tests;

use koel::{Builder, CuckooFilter, ParamError, TableKind, tuning};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Hashes,
    load::{self, Filled, Walk},
    probe::{self, OVERHEAD, Probed, by_name},
    times::{self, Sampling, Subject, is_disturbed},
};
use crate::{About, Column, Experiment, Fields, Findings, Interrupt, Measured, Role, Scope, Table};

/// A grid of parameters. Every combination of values is a case, if such a filter is possible.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grid {
    /// The kinds of tables.
    pub tables: Vec<TableKind>,
    /// The numbers of slots per bucket.
    pub bucket_sizes: Vec<u32>,
    /// The lengths of fingerprints, in bits.
    pub fingerprint_bits: Vec<u32>,
    /// The loads, above 0 and at most 1. They determine the number of slots.
    pub loads: Vec<f64>,
    /// The numbers of items.
    pub items: Vec<u64>,
}

/// Combinations that are impossible for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The reason why there is no such filter.
    pub reason: String,
    /// The number of combinations.
    pub combinations: usize,
}

/// A property of filters to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// The size in bytes, and in bits per item.
    Space,
    /// The false-positive rate.
    Fpr,
    /// The load at the first refusal.
    Load,
    /// The nanoseconds per operation.
    Speed,
}

impl Measure {
    /// All measures, in the order of their columns.
    pub const ALL: [Self; 4] = [Self::Space, Self::Fpr, Self::Load, Self::Speed];

    /// Returns the name, which is also the name of an experiment.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Space => "space",
            Self::Fpr => "fpr",
            Self::Load => "load",
            Self::Speed => "speed",
        }
    }
}

/// The experiment that measures all filters of a grid.
#[derive(Clone, Debug)]
pub struct Sweep {
    grid: Grid,
    measures: Vec<Measure>,
}

/// The parameters of a filter, and what to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Case {
    #[serde(with = "by_name")]
    table: TableKind,
    b: u32,
    f: u32,
    load: f64,
    items: u64,
    measure: Vec<Measure>,
    quick: bool,
}

impl Sweep {
    /// Returns an experiment with these measures for every possible filter of the grid.
    #[must_use]
    pub fn new(grid: Grid, measures: &[Measure]) -> Self {
        let measures = Measure::ALL.into_iter().filter(|measure| measures.contains(measure)).collect();
        Self { grid, measures }
    }

    /// Returns all combinations. The kind of table changes slowest, followed by buckets, fingerprints, items and loads.
    fn combinations(&self, quick: bool) -> Vec<Case> {
        let Grid { tables, bucket_sizes, fingerprint_bits, loads, items } = &self.grid;
        let mut cases = Vec::new();
        for &table in tables {
            for &b in bucket_sizes {
                for &f in fingerprint_bits {
                    for &items in items {
                        let case = |&load| Case { table, b, f, load, items, measure: self.measures.clone(), quick };
                        cases.extend(loads.iter().map(case));
                    }
                }
            }
        }
        cases
    }

    /// Returns the impossible combinations by reason, in the order of their first occurrence.
    #[must_use]
    pub fn left_out(&self) -> Vec<LeftOut> {
        let mut left_out: Vec<LeftOut> = Vec::new();
        for reason in self.combinations(false).iter().filter_map(Case::reason_left_out) {
            match left_out.iter_mut().find(|other| other.reason == reason) {
                Some(known) => known.combinations += 1,
                None => left_out.push(LeftOut { reason, combinations: 1 }),
            }
        }
        left_out
    }

    /// Returns the bytes of memory that the largest case takes.
    #[must_use]
    pub fn most_memory(&self, scope: &Scope) -> u64 {
        self.cases(scope).iter().map(|case| self.memory(case)).max().unwrap_or(0)
    }
}

impl Case {
    /// Returns the number of buckets, which is even and sufficient for the items at this load.
    fn buckets(&self) -> u64 {
        // A quotient such as 950/0.95 may be slightly above 1000.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of slots, positive")]
        let slots = (self.items as f64 / self.load * (1.0 - 1e-12)).ceil() as u64;
        // Buckets without slots are refused later, with the reason.
        slots.max(1).div_ceil(u64::from(self.b.max(1))).div_ceil(2) * 2
    }

    fn slots(&self) -> u64 {
        self.buckets() * u64::from(self.b)
    }

    fn builder(&self) -> Builder {
        let builder = CuckooFilter::builder().table(self.table).bucket_size(self.b).fingerprint_bits(self.f);
        builder.buckets(self.buckets())
    }

    /// Returns the reason why there is no such filter, or `None` if it is possible.
    fn reason_left_out(&self) -> Option<String> {
        self.builder().params().err().map(|error| match error {
            ParamError::Buckets { .. } => String::from("the table has too many buckets; give fewer --items, or a higher --load"),
            error => error.to_string(),
        })
    }

    fn predicted(&self) -> f64 {
        tuning::false_positive_rate(self.f, self.b, self.items as f64 / self.slots() as f64)
    }

    fn probes(&self) -> u64 {
        let (hits, most) = if self.quick { (1000, 1_000_000) } else { (20_000, 100_000_000) };
        probe::probes_of_table(self.f, self.buckets(), self.predicted(), hits, most)
    }

    /// Measures the requested properties. If an item is refused, it measures only the load at the first refusal.
    fn row(&self, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Fields> {
        let mut row = Fields::new();
        let mut set = |name: &str, value: Value| row.insert(name.to_owned(), value);
        let mut filter = self.builder().build()?;
        let fits = probe::fill(&mut filter, &mut Hashes::new(seed), usize::try_from(self.items)?, interrupt)?;
        set("slots", filter.slots().into());
        set("inserted", filter.table_len().into());
        if fits && self.measure.contains(&Measure::Space) {
            set("bytes", filter.params().table_bytes().into());
            set("bits_per_item", filter.bits_per_item().into());
        }
        if fits && self.measure.contains(&Measure::Fpr) {
            let probed = Probed::measure(&filter, &mut Hashes::new(!seed), self.probes(), interrupt)?;
            let (low, high) = probed.interval();
            set("probes", probed.probes.into());
            set("found", probed.hits.into());
            set("predicted_rate", self.predicted().into());
            set("rate", probed.rate().into());
            set("rate_low", low.into());
            set("rate_high", high.into());
        }
        drop(filter);
        if self.measure.contains(&Measure::Load) {
            let tables = load::trials(self.slots(), self.quick);
            let table = Filled::new(Walk::Koel, self.f, self.b, self.buckets(), seed)?;
            let loads = load::Row::measure(table, tables, seed, interrupt)?;
            set("tables", tables.into());
            set("first_refusal", loads.mean.into());
            set("first_refusal_min", loads.min.into());
            set("first_refusal_max", loads.max.into());
        }
        if fits && self.measure.contains(&Measure::Speed) {
            let present: Vec<_> = Hashes::new(seed).take(usize::try_from(self.items)?).collect();
            let sampling = Sampling::new(self.quick);
            let mut subject = [Subject::new(self.builder().params()?, &present, seed, sampling)?];
            sampling.measure(&mut subject, interrupt)?;
            // There are no times if the filter refused a key in every round.
            row.extend(subject[0].times().into_iter().flat_map(|times| times.0));
        }
        Ok(row)
    }
}

impl Experiment for Sweep {
    type Case = Case;
    type Row = Fields;

    fn about(&self) -> About {
        let text = "For each combination of parameters, a filter is built with as many buckets as its items take at the load, \
             and what was asked for is measured: space (bits of the table per item), fpr (lookups of absent items), load \
             (tables of this size are filled until they refuse an item), speed (of a filter at the load, one key at a time, \
             with the best kernel; insertions and removals over the last 5 % of the slots; medians of several \
             rounds). If a filter refused an item before the load, only the load at the first refusal is measured. Intervals \
             are 99 % confidence intervals; those of times hold half of the rounds.";
        let refusal = Role::mean("first_refusal_min", "first_refusal_max", "tables");
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
            Column::new("first_refusal", "", "mean load at the first refusal, 0 to 1").compared(refusal),
            Column::new("first_refusal_min", "", "least load at the first refusal"),
            Column::new("first_refusal_max", "", "greatest load at the first refusal"),
        ];
        columns.extend(times::columns());
        let memory_remedy = "give fewer --items, or a higher --load";
        let is_timed = self.measures.contains(&Measure::Speed);
        About { columns, is_timed, memory_remedy, ..About::new("sweep", "Sweep of parameters", text) }
    }

    /// Returns the possible combinations within the limit of slots.
    fn cases(&self, scope: &Scope) -> Vec<Case> {
        let mut cases = self.combinations(scope.quick);
        cases.retain(|case| case.reason_left_out().is_none() && scope.at_most(case.slots()) == case.slots());
        cases
    }

    /// Estimates the time; the unit is a tenth of an insertion.
    fn effort(&self, case: &Case) -> u64 {
        let efforts = case.measure.iter().map(|measure| match measure {
            Measure::Space => 0,
            Measure::Fpr => case.probes(),
            Measure::Load => case.slots() * 10 * u64::from(load::trials(case.slots(), case.quick)),
            Measure::Speed => Sampling::new(case.quick).effort(case.slots(), case.items),
        });
        efforts.fold(case.items * 10, u64::saturating_add)
    }

    fn memory(&self, case: &Case) -> u64 {
        // Times need a list of keys.
        let keys = if case.measure.contains(&Measure::Speed) { 8 } else { 0 };
        OVERHEAD + case.slots() * (u64::from(case.f) / 8 + 1 + keys)
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Fields>> {
        Ok(vec![case.row(seed, interrupt)?])
    }

    fn findings(&self, measured: &[Measured<Case>]) -> Findings {
        let left_out = self.left_out().into_iter().map(|one| vec![one.combinations.to_string(), one.reason]);
        let caption = "Combinations that were left out, since there is no such filter";
        let table = Table::new(caption, &["combinations", "reason"], left_out);
        let tables = if table.rows.is_empty() { Vec::new() } else { vec![table] };
        Findings { charts: charts::charts(measured), tables, warnings: warnings(measured) }
    }
}

/// Returns warnings about empty cells, missing points and disturbed times.
fn warnings(measured: &[Measured<Case>]) -> Vec<String> {
    let count = |matches: fn(&Case, &Fields) -> bool| {
        measured.iter().filter(|m| m.row().is_some_and(|row| matches(&m.case, row))).count()
    };
    let warnings = [
        (
            count(|case, row| row.get("inserted").and_then(Value::as_u64) < Some(case.items)),
            "an item was refused before the load, so that only the load at the first refusal was measured; give a lower --load, \
             a greater f or other buckets",
        ),
        (
            count(|_, row| row.get("found").and_then(Value::as_u64) == Some(0)),
            "no absent item was found: the rate is 0, with the upper end of its interval, and the chart leaves it out",
        ),
        (
            count(|_, row| is_disturbed(row)),
            "other work on the processor disturbed too many rounds: the times are too long, and marked in the charts",
        ),
    ];
    let cases = measured.len();
    let found = warnings.into_iter().filter(|&(number, _)| number > 0);
    found.map(|(number, what)| format!("In {number} of {cases} cases, {what}.")).collect()
}
