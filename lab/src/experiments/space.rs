//! The experiment `space`: measures bits per item, as in sections 5.1 and 6 and figures 3 and 4 of the paper.

use koel::{Addressing, Builder, CuckooFilter, TableKind, tuning};
use serde::{Deserialize, Serialize};

use super::{
    Hashes,
    probe::{self, KINDS, Probed, by_name, label},
    rows,
};
use crate::{
    About, Axis, Chart, Column, Experiment, Findings, Interrupt, Mark, Measured, Role, Scope, Series, Table, percent,
    structures::Structure,
};

pub(super) struct Space;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shows {
    Rate,
    Size,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Buckets {
    Any,
    Power,
}

/// A filter that is built for a number of items and filled with all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Case {
    shows: Shows,
    #[serde(with = "by_name")]
    table: TableKind,
    buckets: Buckets,
    b: u32,
    f: u32,
    items: usize,
    probes: u64,
}

/// The size and the false-positive rate of the filter.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    slots: usize,
    inserted: usize,
    bits_per_item: f64,
    hits: u64,
    rate: f64,
    low: f64,
    high: f64,
}

/// The ε at which numbers of items are compared.
const RATE: f64 = 0.001;
/// The number of cases per doubling of the items.
const CASES_PER_DOUBLING: u32 = 8;
const MIN_ITEMS: usize = 1000;
/// The number of hits to aim for where ε is shown, within the limit of probes.
const HITS: u64 = 20_000;
/// The number of hits to aim for where ε is not shown.
const FEW_HITS: u64 = 1000;

impl Case {
    fn builder(&self) -> Builder {
        let addressing = match self.buckets {
            Buckets::Any => Addressing::AnySize,
            Buckets::Power => Addressing::PowerOfTwo,
        };
        let builder = CuckooFilter::builder().table(self.table).bucket_size(self.b).addressing(addressing);
        builder.capacity(self.items).fingerprint_bits(self.f)
    }

    /// Returns the expected rate of the filter with all items, or `None` if there is no such filter.
    fn rate(&self) -> Option<f64> {
        let params = self.builder().params().ok()?;
        Some(params.false_positive_rate_at(self.items as f64 / params.slots() as f64))
    }

    /// Sets the number of probes for this many hits. Returns `None` if the filter is larger than allowed or cannot be measured.
    fn within(self, scope: &Scope, hits: u64) -> Option<Self> {
        let (slots, rate) = (self.builder().params().ok()?.slots() as u64, self.rate()?);
        let probes = probe::probes(rate, hits, scope.choose(10_000_000, 100_000_000));
        let fits = scope.at_most(slots) == slots && rate < 0.5 && rate * probes as f64 > probe::MIN_HITS as f64;
        fits.then_some(Self { probes, ..self })
    }
}

impl Experiment for Space {
    type Case = Case;
    type Row = Row;

    fn about(&self) -> About {
        let text = "Each filter is built for a number of items and filled with as many. The bits of its table are counted, and \
         its false-positive rate is measured with items that were not inserted. The paper's figures 3 and 4 show the same. Its \
         curves, and those of Bloom filters here, are formulas for any ε; real fingerprints have whole numbers of bits.";
        let columns = vec![
            Column::key(
                "shows",
                "",
                "what the case shows: rate (space for a false-positive rate) or size (space for a number of items)",
            ),
            Column::key("table", "", "packed or single"),
            Column::key("buckets", "", "possible numbers of buckets: any (even number) or power (of two)"),
            Column::key("b", "slots", "slots per bucket"),
            Column::key("f", "bits", "length of a fingerprint"),
            Column::key("items", "items", "items that the filter was built for"),
            Column::key("probes", "probes", "absent items that were looked up"),
            Column::new("slots", "slots", "slots of the table").compared(Role::Exact),
            Column::new("inserted", "items", "items in the filter: fewer if one was refused").compared(Role::Exact),
            Column::new("bits_per_item", "bits", "bits of the table, divided by items").compared(Role::Exact),
            Column::new("hits", "probes", "probes that were found: false positives"),
            Column::new("rate", "", "measured false-positive rate, 0 to 1").compared(Role::estimate("low", "high")),
            Column::new("low", "", "lower end of its 99 % confidence interval"),
            Column::new("high", "", "upper end of its 99 % confidence interval"),
        ];
        About { columns, ..About::new("space", "Space per item", text) }
    }

    fn cases(&self, scope: &Scope) -> Vec<Case> {
        let mut cases = Vec::new();
        let most = scope.max_slots.and_then(|slots| usize::try_from(slots).ok()).unwrap_or(usize::MAX);
        // If the limit does not allow tables for this many items, there are fewer.
        let items = scope.choose(100_000, 1_000_000).min(most / 4 * 3);
        for (table, b) in KINDS {
            let case = |f| Case { shows: Shows::Rate, table, buckets: Buckets::Any, b, f, items, probes: 0 };
            cases.extend((4..=24).filter_map(|f| case(f).within(scope, HITS)));
        }
        for items in item_counts(scope.choose(200_000, 10_000_000)) {
            for buckets in [Buckets::Any, Buckets::Power] {
                let case = |f| Case { shows: Shows::Size, table: TableKind::Packed, buckets, b: 4, f, items, probes: 0 };
                // A half-empty table may meet the rate with fingerprints that are a bit shorter.
                let shortest = (4..=32).map(case).find(|case| case.rate().is_some_and(|rate| rate <= RATE));
                cases.extend(shortest.and_then(|case| case.within(scope, FEW_HITS)));
            }
        }
        cases
    }

    fn effort(&self, case: &Case) -> u64 {
        // An insertion takes about as long as ten probes.
        case.items as u64 * 10 + case.probes
    }

    fn memory(&self, case: &Case) -> u64 {
        probe::OVERHEAD + case.builder().params().map_or(0, |params| params.table_bytes() as u64)
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        let mut filter = case.builder().build()?;
        probe::fill(&mut filter, &mut Hashes::new(seed), case.items, interrupt)?;
        let probed = Probed::measure(&filter, &mut Hashes::new(!seed), case.probes, interrupt)?;
        let (low, high) = probed.interval();
        let (slots, inserted, bits_per_item) = (filter.slots(), filter.len(), filter.bits_per_item());
        Ok(vec![Row { slots, inserted, bits_per_item, hits: probed.hits, rate: probed.rate(), low, high }])
    }

    fn findings(&self, measured: &Cases) -> Findings {
        Findings {
            charts: vec![by_items(measured), by_rate(measured), above_the_bound(measured)],
            tables: vec![formula_table(measured), bucket_count_table(measured)],
            ..Findings::default()
        }
    }
}

/// Returns numbers of items in equal ratios, at the same positions between any two powers of two.
fn item_counts(most: usize) -> Vec<usize> {
    let number = |step: u32| MIN_ITEMS as f64 * (f64::from(step) / f64::from(CASES_PER_DOUBLING)).exp2();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of items, some millions at most")]
    let numbers = (0..).map(|step| number(step).round() as usize);
    numbers.take_while(|&items| items <= most).collect()
}

/// The least load in curves.
const MIN_LOAD: f64 = 0.75;
/// The rates in the table of bits per item.
const RATES: [f64; 4] = [0.1, 0.01, 0.001, 0.0001];

type Cases = [Measured<Case, Row>];

/// Returns the filters of one kind, sorted by rate. It leaves out those whose fingerprints are too short for their number of items:
/// their tables are planned at such a low load that nobody would choose them.
fn rows_of_kind(measured: &Cases, kind: (TableKind, u32)) -> Vec<(&Case, &Row)> {
    let is_full = |row: &Row| row.inserted as f64 >= MIN_LOAD * row.slots as f64;
    let which = |case: &Case, row: &Row| case.shows == Shows::Rate && (case.table, case.b) == kind && is_full(row);
    rows(measured, which, |_, row| row.rate)
}

/// The ends of the range of rates in which formulas are drawn.
const FROM: f64 = 4e-6;
const TO: f64 = 0.5;

/// Returns the curve of a formula.
fn curve(name: &str, color: usize, mark: Mark, bits: impl Fn(f64) -> Option<f64>) -> Series {
    let rates = (0..=80).map(|step| FROM * (TO / FROM).powf(f64::from(step) / 80.0));
    Series::new(name, color, rates.filter_map(|rate| Some((rate, bits(rate)?))).collect()).marked(mark)
}

fn measured_curves(measured: &Cases, bits: impl Fn(&Row) -> f64) -> Vec<Series> {
    let curve = |(color, (table, b)): (usize, (TableKind, u32))| {
        let points = rows_of_kind(measured, (table, b)).into_iter().map(|(_, row)| (row.rate, bits(row)));
        Series::new(label(table, b), color, points.collect())
    };
    KINDS.into_iter().enumerate().map(curve).collect()
}

fn by_rate(measured: &Cases) -> Chart {
    let mut series = measured_curves(measured, |row| row.bits_per_item);
    series.push(curve("Bloom (formula)", 4, Mark::Dashes, |rate| Structure::Bloom.bits_per_item(rate)));
    series.push(curve("lower bound (formula)", 5, Mark::Line, |rate| Some(tuning::lower_bound(rate))));
    let axes = [Axis::log("false-positive rate ε").from_to(FROM, TO), Axis::linear("bits per item").from_to(0.0, 25.0)];
    Chart::new("rate", "Bits per item, by false-positive rate", axes, series).showing(bloom_finding(measured)).captioned(
        "Bits of the table per item, by measured rate; one mark for each length of fingerprint. The packed table is smaller \
         than a Bloom filter at rates below a few percent, the single one below a few tenths of a percent. Bloom filters \
         and the lower bound, log₂(1/ε), are formulas and were not measured. Tables planned for a load below 75 % are left \
         out: those with short fingerprints.",
    )
}

/// Returns a sentence that compares a Bloom filter with the packed table whose rate is [`RATE`] or the next lower one.
fn bloom_finding(measured: &Cases) -> Option<String> {
    let (_, row) = rows_of_kind(measured, KINDS[0]).into_iter().rfind(|(_, row)| row.rate <= RATE)?;
    let bloom = Structure::Bloom.bits_per_item(row.rate)?;
    let rate = percent(row.rate, 1);
    Some(format!("At ε = {rate}, packed takes {:.1} bits per item and Bloom {bloom:.1}", row.bits_per_item))
}

/// Draws the curves of [`by_rate`] as differences from the lower bound, which are easier to read.
fn above_the_bound(measured: &Cases) -> Chart {
    let mut series = measured_curves(measured, |row| row.bits_per_item - tuning::lower_bound(row.rate));
    let bloom = |rate| Some(Structure::Bloom.bits_per_item(rate)? - tuning::lower_bound(rate));
    series.push(curve("Bloom (formula)", 4, Mark::Dashes, bloom));
    series.push(curve("semi-sorted (paper)", 0, Mark::Dashes, |rate| Some(semi_sorted(rate) - tuning::lower_bound(rate))));
    let axes =
        [Axis::log("false-positive rate ε").from_to(FROM, TO), Axis::linear("bits per item − log₂(1/ε)").from_to(0.0, 8.0)];
    Chart::new("overhead", "Bits per item above the lower bound", axes, series).captioned(
        "The same filters, without the log₂(1/ε) bits that every filter needs. The packed table takes about one bit less \
         than the single one, a little less than the paper's formula for semi-sorted buckets, (log₂(1/ε) + 2)/0.955, and \
         nearly the same at all rates; the overhead of a Bloom filter grows as its rate falls. The lowest rates were \
         measured with few hits and may be 13 % off.",
    )
}

/// Returns the bits per item of semi-sorted buckets, by section 6 and table 2 of the paper, at its load of 0.955.
fn semi_sorted(rate: f64) -> f64 {
    (tuning::lower_bound(rate) + 2.0) / 0.955
}

fn rows_with_buckets(measured: &Cases, buckets: Buckets) -> Vec<(&Case, &Row)> {
    rows(measured, |case, _| case.shows == Shows::Size && case.buckets == buckets, |case, _| case.items as f64)
}

/// Returns a sentence with the most bits per item in tables of any size and in those of a power of two.
fn sizes_finding(measured: &Cases) -> Option<String> {
    let most = |buckets| rows_with_buckets(measured, buckets).iter().map(|(_, row)| row.bits_per_item).max_by(f64::total_cmp);
    let (any, power) = (most(Buckets::Any)?, most(Buckets::Power)?);
    let least = rows_with_buckets(measured, Buckets::Any).first()?.0.items;
    Some(format!("From {least} items on, at most {any:.1} bits per item; with powers of two, {power:.1}"))
}

fn by_items(measured: &Cases) -> Chart {
    let mut series = Vec::new();
    for (color, buckets, mark, name) in
        [(0, Buckets::Any, Mark::Line, "any size"), (1, Buckets::Power, Mark::Dashes, "power of two")]
    {
        let found = rows_with_buckets(measured, buckets);
        let points = found.into_iter().map(|(case, row)| (case.items as f64, row.bits_per_item)).collect();
        series.push(Series::new(name, color, points).marked(mark));
    }
    let ends = series.iter().flat_map(|one| &one.points).map(|point| point.0);
    let (first, last) = ends.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), items| (low.min(items), high.max(items)));
    let mut x = Axis::log("items");
    if first < last {
        x = x.from_to(first, last);
        let flat = |name, color, mark, bits| Series::new(name, color, vec![(first, bits), (last, bits)]).marked(mark);
        series.extend(Structure::Bloom.bits_per_item(RATE).map(|bits| flat("Bloom (formula)", 4, Mark::Dashes, bits)));
        series.push(flat("lower bound (formula)", 5, Mark::Line, tuning::lower_bound(RATE)));
    }
    let axes = [x, Axis::linear("bits per item")];
    let chart = Chart::new("items", "Bits per item at ε = 0.1 %, by number of items", axes, series);
    chart.showing(sizes_finding(measured)).captioned(
        "Packed tables for ε = 0.1 % at most, filled with the number of items that they were built for. If the number of \
         buckets must be a power of two, as in the paper and in Go's libraries, an item takes up to twice as much space; \
         the empty slots lower ε to half at best. Any even number of buckets avoids this. Small tables are planned for \
         lower loads.",
    )
}

/// Formats a number of bits, or a dash if there is none.
fn cell(bits: Option<f64>) -> String {
    bits.map_or_else(|| String::from("-"), |bits| format!("{bits:.2}"))
}

fn formula_table(measured: &Cases) -> Table {
    let row = |rate| {
        let shortest = |kind| {
            let found = rows_of_kind(measured, (kind, 4)).into_iter().rfind(|(_, row)| row.rate <= rate);
            // In an incomplete run, longer fingerprints must not appear in place of the missing ones.
            let found = found.filter(|(_, row)| row.rate > rate / 2.5);
            cell(found.map(|(_, row)| row.bits_per_item))
                + &found.map_or_else(String::new, |(_, row)| format!(" ({})", percent(row.rate, 1)))
        };
        vec![
            percent(rate, 1),
            shortest(TableKind::Packed),
            shortest(TableKind::Single),
            cell(Structure::Bloom.bits_per_item(rate)),
            cell(Some(semi_sorted(rate))),
            cell(Some(tuning::lower_bound(rate))),
        ]
    };
    Table::new(
        "Bits per item for a false-positive rate, with the measured rate in brackets: the table has the shortest fingerprints, \
         in whole bits, that meet the rate. The last three columns are formulas",
        &["ε at most", "packed", "single, b = 4", "Bloom", "semi-sorted (paper)", "lower bound"],
        RATES.map(row),
    )
}

fn bucket_count_table(measured: &Cases) -> Table {
    let row = |(buckets, name): (Buckets, &str)| {
        let found = rows_with_buckets(measured, buckets);
        let bits = || found.iter().map(|(_, row)| row.bits_per_item);
        let refused = found.iter().filter(|(case, row)| row.inserted < case.items).count();
        vec![
            name.to_owned(),
            found.len().to_string(),
            cell(bits().min_by(f64::total_cmp)),
            cell((!found.is_empty()).then(|| bits().sum::<f64>() / found.len() as f64)),
            cell(bits().max_by(f64::total_cmp)),
            refused.to_string(),
        ]
    };
    Table::new(
        "Bits per item at ε = 0.1 % for all numbers of items, packed tables",
        &["buckets", "filters", "least", "mean", "most", "refused an item"],
        [(Buckets::Any, "any even number"), (Buckets::Power, "a power of two")].map(row),
    )
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::{
        super::tests::{measured, shown},
        *,
    };

    /// The results with small filters and few probes, which are fast even without optimization.
    static MEASURED: LazyLock<Vec<Measured<Case, Row>>> = LazyLock::new(|| {
        let mut cases = Space.cases(&Scope { quick: true, seed: 1, max_slots: Some(10_000) });
        cases.iter_mut().for_each(|case| case.probes = case.probes.min(200_000));
        measured(&Space, cases)
    });

    #[test]
    fn measured_sizes_and_rates_match_the_parameters() {
        assert!(MEASURED.len() > 80);
        for Measured { case, rows } in MEASURED.iter() {
            let [row] = &rows[..] else { panic!("one row, not {}", rows.len()) };
            let params = case.builder().params().expect("valid parameters");
            assert_eq!((row.inserted, row.slots), (case.items, params.slots()), "{case:?}");
            assert!(row.slots <= 10_000 && Space.memory(case) > row.slots as u64 / 4, "{case:?}");
            let load = row.inserted as f64 / row.slots as f64;
            // The sizes differ by less than one byte.
            let bits = tuning::bits_per_item(case.table, case.f, load);
            assert!((row.bits_per_item - bits).abs() <= 8.0 / case.items as f64, "{case:?}: {row:?}");
            // Among this many 99 % intervals, some miss the prediction; at twice the width, none does.
            let expected = tuning::false_positive_rate(case.f, case.b, load);
            let (below, above) = (row.rate - row.low, row.high - row.rate);
            assert!(below > 0.0 && above > 0.0);
            assert!((row.rate - 2.0 * below..=row.rate + 2.0 * above).contains(&expected), "{case:?}: {row:?} {expected}");
            if case.shows == Shows::Size {
                assert!(expected <= RATE && expected > RATE / 3.0, "{case:?}: {expected}");
            }
        }
    }

    #[test]
    fn incomplete_results_are_shown() {
        let Findings { charts, tables, .. } = shown(&Space, &MEASURED);
        assert_eq!((charts.len(), tables.len()), (3, 2));
    }
}
