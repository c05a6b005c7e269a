//! The experiment `fpr`: compares measured false-positive rates with the formula, as in section 5.1 of the paper.

use koel::{Addressing, CuckooFilter, TableKind, tuning};
use serde::{Deserialize, Serialize};

use super::{
    Hashes,
    probe::{KINDS, MIN_HITS, OVERHEAD, Probed, by_name, fill, label, probes_of_table},
    rows,
};
use crate::{About, Axis, Chart, Column, Experiment, Findings, Interrupt, Mark, Measured, Role, Scope, Series, Table};

pub(super) struct Fpr;

/// A table that is filled step by step and measured at each load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Case {
    #[serde(with = "by_name")]
    table: TableKind,
    b: u32,
    f: u32,
    slots: u64,
    hits: u64,
    most_probes: u64,
}

/// The false-positive rate at one load.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    load: u32,
    items: usize,
    probes: u64,
    found: u64,
    predicted: f64,
    rate: f64,
    low: f64,
    high: f64,
}

const LOADS: [u32; 4] = [25, 50, 75, 95];
/// The length from which on two items rarely have the same fingerprint by chance.
const LONG: u32 = 8;

impl Case {
    /// Returns the number of buckets. It is even, as addressing of any size requires.
    fn buckets(&self) -> u64 {
        self.slots / u64::from(self.b) / 2 * 2
    }

    fn probes(&self, rate: f64) -> u64 {
        probes_of_table(self.f, self.buckets(), rate, self.hits, self.most_probes)
    }
}

impl Experiment for Fpr {
    type Case = Case;
    type Row = Row;

    fn about(&self) -> About {
        let text = "Filters are queried, at several loads, for items that were not inserted. The measured rate of positive \
         answers is compared with the formula that koel plans by, 1 − e^(−2bα/(2ᶠ − 1)), and with the paper's upper bound, \
         2b/2ᶠ. All intervals are 99 % confidence intervals: about one in a hundred misses the true rate.";
        let columns = vec![
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
        ];
        About { columns, ..About::new("fpr", "False-positive rate", text) }
    }

    fn cases(&self, scope: &Scope) -> Vec<Case> {
        let slots = scope.at_most(scope.choose(1 << 17, 1 << 20));
        let (hits, most_probes) = scope.choose((20_000, 10_000_000), (100_000, 100_000_000));
        let mut cases = Vec::new();
        for (table, b) in KINDS {
            let shortest = if table == TableKind::Packed { 4 } else { 2 };
            for f in shortest..=24 {
                let case = Case { table, b, f, slots, hits, most_probes };
                // At least at the highest load, there must be enough hits.
                let has_hits = tuning::false_positive_rate(f, b, 0.95) * most_probes as f64 > MIN_HITS as f64;
                if has_hits && case.buckets() > 0 {
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
        let &Case { table, b, f, .. } = case;
        let builder = CuckooFilter::builder().table(table).bucket_size(b).fingerprint_bits(f);
        let mut filter = builder.buckets(case.buckets()).build()?;
        let (mut items, mut absent) = (Hashes::new(seed), Hashes::new(!seed));
        let safe = tuning::safe_load(Addressing::AnySize, b, f, case.buckets());
        let mut rows = Vec::new();
        for load in LOADS {
            // Tables with short fingerprints or small buckets do not reach every load.
            let wanted = filter.slots() * load as usize / 100;
            if f64::from(load) / 100.0 > safe || !fill(&mut filter, &mut items, wanted, interrupt)? {
                break;
            }
            let predicted = tuning::false_positive_rate(f, b, filter.load_factor());
            let probes = case.probes(predicted);
            if predicted * (probes as f64) < MIN_HITS as f64 {
                continue;
            }
            let probed = Probed::measure(&filter, &mut absent, probes, interrupt)?;
            let (low, high) = probed.interval();
            let (items, found, rate) = (filter.len(), probed.hits, probed.rate());
            rows.push(Row { load, items, probes, found, predicted, rate, low, high });
        }
        Ok(rows)
    }

    fn findings(&self, measured: &[Measured<Case, Row>]) -> Findings {
        Findings {
            charts: vec![by_fingerprint(measured), by_ratio(measured)],
            tables: vec![coverage_table(measured)],
            ..Findings::default()
        }
    }
}

/// Returns the rate if the 2b slots of a lookup were independent: 1 − (1 − α/(2ᶠ − 1))²ᵇ.
///
/// It is slightly higher than [`koel::tuning::false_positive_rate`], which accounts for the dependence between the fingerprints in
/// an item's two buckets. The difference is visible for short fingerprints.
fn independent(f: u32, b: u32, load: f64) -> f64 {
    let miss = (-load / (f64::from(f).exp2() - 1.0)).ln_1p();
    -(f64::from(2 * b) * miss).exp_m1()
}

type Cases = [Measured<Case, Row>];

/// Returns the rows of one kind of table at one load, sorted by length of fingerprint.
fn at_load(measured: &Cases, kind: (TableKind, u32), load: u32) -> Vec<(&Case, &Row)> {
    rows(measured, |case, row| (case.table, case.b, row.load) == (kind.0, kind.1, load), |case, _| case.f.into())
}

/// Returns a sentence on how many intervals contain the rate of the formula, or `None` without intervals.
fn coverage(measured: &Cases) -> Option<String> {
    let rows: Vec<_> = measured.iter().flat_map(|m| &m.rows).collect();
    let holding = rows.iter().filter(|row| (row.low..=row.high).contains(&row.predicted)).count();
    let all = rows.len();
    (all > 0).then(|| format!("The formula is within {holding} of {all} intervals of 99 % confidence"))
}

fn by_fingerprint(measured: &Cases) -> Chart {
    let mut series = Vec::new();
    // Single tables with buckets of four have the same rate as packed ones.
    for (color, kind, load) in [(0, KINDS[0], 95), (1, KINDS[1], 75), (3, KINDS[3], 95)] {
        let found = at_load(measured, kind, load);
        let points = |y: fn(&Row) -> f64| found.iter().map(|(case, row)| (f64::from(case.f), y(row))).collect();
        let intervals = found.iter().map(|(_, row)| (row.low, row.high)).collect();
        let name = format!("{}, {load} % full", label(kind.0, kind.1));
        series.push(Series::new("", color, points(|row| row.predicted)).marked(Mark::Line));
        series.push(Series::new(name, color, points(|row| row.rate)).marked(Mark::Dots).within(intervals));
    }
    let bound = |f: u32| (f64::from(f), 8.0 / f64::from(f).exp2());
    series.push(Series::new("2b/2ᶠ for b = 4 (paper)", 5, (3..=24).map(bound).collect()).marked(Mark::Dashes));
    let axes = [Axis::linear("fingerprint, bits").from_to(2.0, 24.0), Axis::log("false-positive rate ε").from_to(1e-6, 1.0)];
    Chart::new("rate", "False-positive rate, by length of fingerprint", axes, series).showing(coverage(measured)).captioned(
        "Marks: measured rates, with 99 % intervals, most of which are smaller than the marks. Lines: the formula. Dashed: \
         the paper's bound for buckets of four, packed or single. Tables with buckets of two do not reach a load of 95 %. \
         One more bit halves the rate; twice as many slots per bucket double it.",
    )
}

fn by_ratio(measured: &Cases) -> Chart {
    let kind = KINDS[0];
    let mut series = Vec::new();
    let range = (3.5, 24.5);
    series.push(Series::new("", 5, vec![(range.0, 1.0), (range.1, 1.0)]).marked(Mark::Line));
    for (color, load) in LOADS.into_iter().enumerate() {
        // The marks are side by side, so that they do not hide each other.
        let at = |f: u32| f64::from(f) + 0.2 * (color as f64 - 1.5);
        let ratios = |(case, row): (&Case, &Row)| {
            ((at(case.f), row.rate / row.predicted), (row.low / row.predicted, row.high / row.predicted))
        };
        let (points, intervals) = at_load(measured, kind, load).into_iter().map(ratios).unzip();
        series.push(Series::new(format!("{load} % full"), color, points).marked(Mark::Dots).within(intervals));
    }
    let fullest = 0.95;
    let other = |f: u32| (f64::from(f), independent(f, kind.1, fullest) / tuning::false_positive_rate(f, kind.1, fullest));
    series.push(Series::new("independent slots, 95 % full", 3, (4..=24).map(other).collect()).marked(Mark::Dashes));
    let axes = [Axis::linear("fingerprint, bits").from_to(range.0, range.1), Axis::linear("measured / predicted")];
    Chart::new("ratio", "Measured rate over predicted rate, packed", axes, series).captioned(
        "1: equal to the formula. Bars are 99 % intervals: longer fingerprints give fewer hits, and so wider intervals. \
         Dashed: the rate if the slots of two buckets were independent, 1 − (1 − α/(2ᶠ − 1))²ᵇ. They are not: a false \
         positive is an item with the same fingerprint and the same two buckets, and a pair of buckets has no order.",
    )
}

fn coverage_table(measured: &Cases) -> Table {
    let row = |(kind, is_long): ((TableKind, u32), bool)| {
        let which = |case: &Case, _: &Row| (case.table, case.b) == kind && (case.f >= LONG) == is_long;
        let rows = rows(measured, which, |case, _| case.f.into());
        let holds = |rate: &dyn Fn(u32, &Row) -> f64| {
            rows.iter().filter(|(case, row)| (row.low..=row.high).contains(&rate(case.f, row))).count().to_string()
        };
        let off = |row: &Row| row.rate / row.predicted - 1.0;
        let worst = rows.iter().max_by(|one, other| off(one.1).abs().total_cmp(&off(other.1).abs()));
        let worst = worst.map(|(case, row)| format!("{:+.1} % (f = {}, {} % full)", 100.0 * off(row), case.f, row.load));
        vec![
            if kind.0 == TableKind::Packed { label(kind.0, 4) } else { format!("single, {}", label(kind.0, kind.1)) },
            if is_long { format!("{LONG} bits and more") } else { format!("below {LONG} bits") },
            rows.len().to_string(),
            holds(&|_, row| row.predicted),
            holds(&|f, row| independent(f, kind.1, f64::from(row.load) / 100.0)),
            worst.unwrap_or_else(|| String::from("-")),
        ]
    };
    Table::new(
        "How many of the 99 % intervals contain the rate of a formula: koel's 1 − e^(−2bα/(2ᶠ − 1)), or 1 − (1 − α/(2ᶠ − 1))²ᵇ \
         for independent slots; and the largest deviation of a measured rate from koel's formula",
        &["table", "fingerprints", "intervals", "contain koel's", "contain the other", "largest deviation"],
        KINDS.into_iter().flat_map(|kind| [(kind, false), (kind, true)]).map(row),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::{
        super::tests::{measured, shown},
        *,
    };

    /// The results with small tables and few probes, which are fast even without optimization.
    static MEASURED: LazyLock<Vec<Measured<Case, Row>>> = LazyLock::new(|| {
        let cases = Fpr.cases(&Scope { quick: true, seed: 1, max_slots: Some(10_000) }).into_iter();
        // With longer fingerprints, there would be too few hits.
        let cases = cases.filter(|case| case.f <= 11);
        measured(&Fpr, cases.map(|case| Case { hits: 1000, most_probes: 100_000, ..case }).collect())
    });

    #[test]
    fn measured_rates_match_the_formula() {
        let mut seen = [0; LOADS.len()];
        let mut missed = 0;
        for Measured { case, rows } in MEASURED.iter() {
            for row in rows {
                let slots = case.buckets() * u64::from(case.b);
                let load = row.items as f64 / slots as f64;
                assert!(slots <= 10_000 && (100.0 * load - f64::from(row.load)).abs() < 0.1, "{case:?}: {row:?}");
                assert!(row.low < row.rate && row.rate < row.high && row.found >= MIN_HITS / 2, "{case:?}: {row:?}");
                let predicted = tuning::false_positive_rate(case.f, case.b, load);
                assert!((row.predicted - predicted).abs() < 1e-12);
                // Among this many 99 % intervals, some miss the prediction; at twice the width, none does.
                let twice = 2.0 * row.low - row.rate..=2.0 * row.high - row.rate;
                assert!(twice.contains(&predicted), "{case:?}: {row:?}");
                missed += usize::from(!(row.low..=row.high).contains(&predicted));
                seen[LOADS.iter().position(|&one| one == row.load).expect("a load of the experiment")] += 1;
            }
        }
        assert!(seen.iter().all(|&rows| rows >= 10), "{seen:?}");
        // One interval in a hundred misses the prediction; more than five do with a probability of about 10⁻³.
        assert!(seen.iter().sum::<usize>() >= 80 && missed <= 5, "{seen:?} {missed}");
    }

    #[test]
    fn incomplete_results_are_shown() {
        let Findings { charts, tables, .. } = shown(&Fpr, &MEASURED);
        assert_eq!((charts.len(), tables.len()), (2, 1));
        // Each row is counted once.
        let counted: usize = tables[0].rows.iter().map(|row| row[2].parse::<usize>().expect("a number")).sum();
        assert_eq!(counted, MEASURED.iter().map(|m| m.rows.len()).sum::<usize>());
    }
}
