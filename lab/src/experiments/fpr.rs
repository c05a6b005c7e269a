//! The experiment `fpr`: measured false-positive rates, compared with the formula. The paper's section 5.1.

use koel::{Addressing, CuckooFilter, tuning};
use serde::{Deserialize, Serialize};

use super::{
    Hashes,
    probe::{KINDS, Kind, LEAST_HITS, OVERHEAD, Probed, fill, probes_of_table},
};
use crate::{
    chart::{Axis, Chart, Mark, Series},
    column::{Column, Role},
    experiment::{Experiment, Findings, Measured, Scope, Table},
    interrupt::Interrupt,
};

/// False-positive rates.
pub struct Fpr;

/// A table that is filled step by step, and measured at each load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    table: Kind,
    b: u32,
    f: u32,
    slots: u64,
    /// How many hits are wanted at each load, and the most probes for that.
    hits: u64,
    most_probes: u64,
}

/// The false-positive rate at one load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// In per cent.
    load: u32,
    items: usize,
    probes: u64,
    found: u64,
    /// ε by [`tuning::false_positive_rate`].
    predicted: f64,
    /// The measured ε, and its 99 % confidence interval.
    rate: f64,
    low: f64,
    high: f64,
}

const LOADS: [u32; 4] = [25, 50, 75, 95];
/// From this length on, two items rarely have the same fingerprint by chance.
const LONG: u32 = 8;

impl Case {
    /// The number of buckets: even, as addressing of any size requires.
    fn buckets(&self) -> u64 {
        self.slots / u64::from(self.b) / 2 * 2
    }

    /// The number of probes for a rate.
    fn probes(&self, rate: f64) -> u64 {
        probes_of_table(self.f, self.buckets(), rate, self.hits, self.most_probes)
    }
}

impl Experiment for Fpr {
    type Case = Case;
    type Row = Row;

    fn name(&self) -> &'static str {
        "fpr"
    }

    fn title(&self) -> &'static str {
        "False-positive rate"
    }

    fn about(&self) -> &'static str {
        "Filters are queried, at several loads, for items that were not inserted. The measured rate of positive answers is compared \
         with the formula that koel plans by, 1 − e^(−2bα/(2ᶠ − 1)), and with the paper's upper bound, 2b/2ᶠ. All intervals are 99 % \
         confidence intervals: about one in a hundred misses the true rate."
    }

    fn columns(&self) -> Vec<Column> {
        vec![
            Column::key("table", "", "packed or single"),
            Column::key("b", "slots", "slots per bucket"),
            Column::key("f", "bits", "length of a fingerprint"),
            Column::key("slots", "slots", "slots of the table, before rounding to an even number of buckets"),
            Column::key("hits", "probes", "how many false positives were wanted"),
            Column::key("most_probes", "probes", "the most probes for that"),
            Column::key("load", "%", "load: items divided by slots"),
            Column::new("items", "items", "items in the filter").compared(Role::Exact),
            Column::new("probes", "probes", "absent items that were looked up").compared(Role::Exact),
            Column::new("found", "probes", "those that were found: false positives"),
            Column::new("predicted", "", "false-positive rate by the formula, 0 to 1").compared(Role::Exact),
            Column::new("rate", "", "measured false-positive rate, 0 to 1").compared(Role::estimate("low", "high")),
            Column::new("low", "", "lower end of its 99 % confidence interval"),
            Column::new("high", "", "upper end of its 99 % confidence interval"),
        ]
    }

    fn cases(&self, scope: &Scope) -> Vec<Case> {
        let slots = scope.at_most(scope.choose(1 << 17, 1 << 20));
        let (hits, most_probes) = scope.choose((20_000, 10_000_000), (100_000, 100_000_000));
        let mut cases = Vec::new();
        for (table, b) in KINDS {
            let shortest = if table == Kind::Packed { 4 } else { 2 };
            for f in shortest..=24 {
                let case = Case { table, b, f, slots, hits, most_probes };
                // Enough hits, at least at the highest load.
                let is_seen = tuning::false_positive_rate(f, b, 0.95) * most_probes as f64 > LEAST_HITS as f64;
                if is_seen && case.buckets() > 0 {
                    cases.push(case);
                }
            }
        }
        cases
    }

    fn effort(&self, case: &Case) -> u64 {
        let rate = |load| tuning::false_positive_rate(case.f, case.b, f64::from(load) / 100.0);
        // An insertion takes about as long as ten probes.
        case.slots * 10 + LOADS.into_iter().map(|load| case.probes(rate(load))).sum::<u64>()
    }

    fn memory(&self, case: &Case) -> u64 {
        OVERHEAD + case.slots * u64::from(case.f) / 8
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        let builder = CuckooFilter::builder().table(case.table.table()).bucket_size(case.b).fingerprint_bits(case.f);
        let mut filter = builder.buckets(case.buckets()).build()?;
        let (mut items, mut absent) = (Hashes::new(seed), Hashes::new(!seed));
        let safe = tuning::safe_load(Addressing::AnySize, case.b, case.f, case.buckets());
        let mut rows = Vec::new();
        for load in LOADS {
            // Short fingerprints and small buckets do not reach every load.
            let wanted = filter.slots() * load as usize / 100;
            if f64::from(load) / 100.0 > safe || !fill(&mut filter, &mut items, wanted, interrupt)? {
                break;
            }
            let predicted = tuning::false_positive_rate(case.f, case.b, filter.load_factor());
            let probes = case.probes(predicted);
            if predicted * (probes as f64) < LEAST_HITS as f64 {
                continue;
            }
            let probed = Probed::new(&filter, &mut absent, probes, interrupt)?;
            let (low, high) = probed.interval();
            let (items, found, rate) = (filter.len(), probed.hits, probed.rate());
            rows.push(Row { load, items, probes, found, predicted, rate, low, high });
        }
        Ok(rows)
    }

    fn findings(&self, measured: &[Measured<Case, Row>]) -> Findings {
        Findings {
            charts: vec![by_fingerprint(measured), beside_the_formula(measured)],
            tables: vec![how_often_right(measured)],
            ..Findings::default()
        }
    }
}

/// The rate if the 2b slots of a look-up were independent: 1 − (1 − α/(2ᶠ − 1))²ᵇ.
///
/// It is a little higher than [`koel::tuning::false_positive_rate`], which takes into account that the fingerprints in an
/// item's two buckets are not independent. The difference shows where fingerprints are short.
fn independent(f: u32, b: u32, load: f64) -> f64 {
    let miss = (-load / (f64::from(f).exp2() - 1.0)).ln_1p();
    -(f64::from(2 * b) * miss).exp_m1()
}

type Cases = [Measured<Case, Row>];

/// The rows of one kind of table at one load, sorted by length of fingerprint.
fn rows(measured: &Cases, kind: (Kind, u32), load: u32) -> Vec<(u32, &Row)> {
    let cases = measured.iter().filter(|m| (m.case.table, m.case.b) == kind);
    let all = cases.flat_map(|m| m.rows.iter().map(|row| (m.case.f, row)));
    let mut rows: Vec<_> = all.filter(|(_, row)| row.load == load).collect();
    rows.sort_by_key(|&(f, _)| f);
    rows
}

/// How many of all intervals contain the rate of the formula.
fn how_many_hold(measured: &Cases) -> Option<String> {
    let rows: Vec<_> = measured.iter().flat_map(|m| &m.rows).collect();
    let holding = rows.iter().filter(|row| (row.low..=row.high).contains(&row.predicted)).count();
    let all = rows.len();
    (all > 0).then(|| format!("The formula is within {holding} of {all} intervals of 99 % confidence"))
}

fn by_fingerprint(measured: &Cases) -> Chart {
    let mut series = Vec::new();
    // Single tables with buckets of four have the same rate as packed ones.
    for (colour, kind, load) in [(0, KINDS[0], 95), (1, KINDS[1], 75), (3, KINDS[3], 95)] {
        let found = rows(measured, kind, load);
        if found.is_empty() {
            continue;
        }
        let points = |y: fn(&Row) -> f64| found.iter().map(|&(f, row)| (f64::from(f), y(row))).collect();
        let intervals = found.iter().map(|(_, row)| (row.low, row.high)).collect();
        let name = format!("{}, {load} % full", kind.0.label(kind.1));
        series.push(Series::new("", colour, points(|row| row.predicted)).marked(Mark::Line));
        series.push(Series::new(name, colour, points(|row| row.rate)).marked(Mark::Dots).within(intervals));
    }
    let bound = |f: u32| (f64::from(f), 8.0 / f64::from(f).exp2());
    series.push(Series::new("2b/2ᶠ for b = 4 (paper)", 5, (3..=24).map(bound).collect()).marked(Mark::Dashes));
    Chart {
        file: String::from("rate"),
        topic: String::from("False-positive rate, by length of fingerprint"),
        finding: how_many_hold(measured),
        caption: String::from(
            "Marks: measured rates, with 99 % intervals, most of which are smaller than the marks. Lines: the formula. Dashed: the \
             paper's bound for buckets of four, packed or single. Tables with buckets of two do not reach a load of 95 %. One more \
             bit halves the rate; twice as many slots per bucket double it.",
        ),
        x: Axis::linear("fingerprint, bits").from_to(2.0, 24.0),
        y: Axis::log("false-positive rate ε").from_to(1e-6, 1.0),
        series,
    }
}

fn beside_the_formula(measured: &Cases) -> Chart {
    let kind = KINDS[0];
    let mut series = Vec::new();
    let range = (3.5, 24.5);
    series.push(Series::new("", 5, vec![(range.0, 1.0), (range.1, 1.0)]).marked(Mark::Line));
    for (colour, load) in LOADS.into_iter().enumerate() {
        let found = rows(measured, kind, load);
        if found.is_empty() {
            continue;
        }
        // Side by side, so that the marks do not hide each other.
        let at = |f: u32| f64::from(f) + 0.2 * (colour as f64 - 1.5);
        let points = found.iter().map(|&(f, row)| (at(f), row.rate / row.predicted)).collect();
        let intervals = found.iter().map(|(_, row)| (row.low / row.predicted, row.high / row.predicted)).collect();
        series.push(Series::new(format!("{load} % full"), colour, points).marked(Mark::Dots).within(intervals));
    }
    let fullest = 0.95;
    let other = |f: u32| (f64::from(f), independent(f, kind.1, fullest) / tuning::false_positive_rate(f, kind.1, fullest));
    series.push(Series::new("independent slots, 95 % full", 3, (4..=24).map(other).collect()).marked(Mark::Dashes));
    Chart {
        file: String::from("ratio"),
        topic: String::from("Measured rate over predicted rate, packed"),
        finding: None,
        caption: String::from(
            "1: equal to the formula. Bars are 99 % intervals: longer fingerprints give fewer hits, and so wider intervals. Dashed: \
             the rate if the slots of two buckets were independent, 1 − (1 − α/(2ᶠ − 1))²ᵇ. They are not: a false positive is an \
             item with the same fingerprint and the same two buckets, and a pair of buckets has no order.",
        ),
        x: Axis::linear("fingerprint, bits").from_to(range.0, range.1),
        y: Axis::linear("measured / predicted"),
        series,
    }
}

fn how_often_right(measured: &Cases) -> Table {
    let mut table = Table::new(
        "How many of the 99 % intervals contain the rate of a formula: koel's 1 − e^(−2bα/(2ᶠ − 1)), or 1 − (1 − α/(2ᶠ − 1))²ᵇ for \
         independent slots; and the largest deviation of a measured rate from koel's formula",
        &["table", "fingerprints", "intervals", "contain koel's", "contain the other", "largest deviation"],
    );
    for kind in KINDS {
        for (name, is_long) in [(format!("below {LONG} bits"), false), (format!("{LONG} bits and more"), true)] {
            let of_kind = measured.iter().filter(|m| (m.case.table, m.case.b) == kind && (m.case.f >= LONG) == is_long);
            let rows: Vec<_> = of_kind.flat_map(|m| m.rows.iter().map(|row| (m.case.f, row))).collect();
            let holds = |rate: &dyn Fn(u32, &Row) -> f64| {
                rows.iter().filter(|(f, row)| (row.low..=row.high).contains(&rate(*f, row))).count().to_string()
            };
            let off = |row: &Row| row.rate / row.predicted - 1.0;
            let worst = rows.iter().max_by(|one, other| off(one.1).abs().total_cmp(&off(other.1).abs()));
            let worst = worst.map(|(f, row)| format!("{:+.1} % (f = {f}, {} % full)", 100.0 * off(row), row.load));
            table.rows.push(vec![
                if kind.0 == Kind::Packed { kind.0.label(4) } else { format!("single, {}", kind.0.label(kind.1)) },
                name,
                rows.len().to_string(),
                holds(&|_, row| row.predicted),
                holds(&|f, row| independent(f, kind.1, f64::from(row.load) / 100.0)),
                worst.unwrap_or_else(|| String::from("-")),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests;
