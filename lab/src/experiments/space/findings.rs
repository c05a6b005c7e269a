//! Charts and tables of the space.

use koel::tuning;

use super::{Buckets, Case, RATE, Row, Shows};
use crate::{
    chart::{Axis, Chart, Mark, Series},
    experiment::{Findings, Measured, Table},
    experiments::probe::{KINDS, Kind},
    percent::percent,
    structures::Structure,
};

/// The lowest load in curves.
const LEAST_LOAD: f64 = 0.75;
/// The rates of the table beside the paper's figure 4.
const RATES: [f64; 4] = [0.1, 0.01, 0.001, 0.0001];

pub(super) fn of(measured: &Cases) -> Findings {
    Findings {
        charts: vec![by_items(measured), by_rate(measured), above_the_bound(measured)],
        tables: vec![beside_formulas(measured), through_powers_of_two(measured)],
        ..Findings::default()
    }
}

type Cases = [Measured<Case, Row>];

/// The rows of the cases that `which` selects, sorted by `by`.
fn rows(measured: &Cases, which: impl Fn(&Case) -> bool, by: impl Fn(&Case, &Row) -> f64) -> Vec<(&Case, &Row)> {
    let found = measured.iter().filter(|m| which(&m.case)).filter_map(|m| Some((&m.case, m.row()?)));
    let mut rows: Vec<_> = found.collect();
    rows.sort_by(|one, other| by(one.0, one.1).total_cmp(&by(other.0, other.1)));
    rows
}

/// The filters of one kind, by rate. Those with fingerprints too short for their number of items are left out: their tables
/// are planned so empty that nobody would choose them.
fn of_kind(measured: &Cases, kind: (Kind, u32)) -> Vec<(&Case, &Row)> {
    let which = |case: &Case| case.shows == Shows::Rate && (case.table, case.b) == kind;
    let mut rows = rows(measured, which, |_, row| row.rate);
    rows.retain(|(_, row)| row.inserted as f64 >= LEAST_LOAD * row.slots as f64);
    rows
}

/// The range of rates in which formulas are drawn.
const FROM: f64 = 4e-6;
const TO: f64 = 0.5;

/// The curve of a formula.
fn curve(name: &str, colour: usize, mark: Mark, bits: impl Fn(f64) -> Option<f64>) -> Series {
    let rates = (0..=80).map(|step| FROM * (TO / FROM).powf(f64::from(step) / 80.0));
    Series::new(name, colour, rates.filter_map(|rate| Some((rate, bits(rate)?))).collect()).marked(mark)
}

/// The curves of the measured filters.
fn measured_curves(measured: &Cases, bits: impl Fn(&Row) -> f64) -> Vec<Series> {
    let mut series = Vec::new();
    for (colour, (table, b)) in KINDS.into_iter().enumerate() {
        let points: Vec<_> = of_kind(measured, (table, b)).into_iter().map(|(_, row)| (row.rate, bits(row))).collect();
        if !points.is_empty() {
            series.push(Series::new(table.label(b), colour, points));
        }
    }
    series
}

fn by_rate(measured: &Cases) -> Chart {
    let mut series = measured_curves(measured, |row| row.bits_per_item);
    series.push(curve("Bloom (formula)", 4, Mark::Dashes, |rate| Structure::Bloom.bits_per_item(rate)));
    series.push(curve("lower bound (formula)", 5, Mark::Line, |rate| Some(tuning::lower_bound(rate))));
    Chart {
        file: String::from("rate"),
        topic: String::from("Bits per item, by false-positive rate"),
        finding: beside_bloom(measured),
        caption: String::from(
            "Bits of the table per item, by measured rate; one mark for each length of fingerprint. The packed table is smaller than \
             a Bloom filter at rates below a few per cent, the single one below a few tenths of a per cent. Bloom filters and the \
             lower bound, log₂(1/ε), are formulas and were not measured. Tables planned for a load below 75 % are left out: those with short \
             fingerprints.",
        ),
        x: Axis::log("false-positive rate ε").from_to(FROM, TO),
        y: Axis::linear("bits per item").from_to(0.0, 25.0),
        series,
    }
}

/// The packed table with the rate at which numbers of items are compared, or the next lower one, and a Bloom filter.
fn beside_bloom(measured: &Cases) -> Option<String> {
    let (_, row) = of_kind(measured, KINDS[0]).into_iter().rfind(|(_, row)| row.rate <= RATE)?;
    let bloom = Structure::Bloom.bits_per_item(row.rate)?;
    let rate = short(row.rate);
    Some(format!("At ε = {rate}, packed takes {:.1} bits per item and Bloom {bloom:.1}", row.bits_per_item))
}

/// The same curves as differences from the lower bound, which are easier to read.
fn above_the_bound(measured: &Cases) -> Chart {
    let mut series = measured_curves(measured, |row| row.bits_per_item - tuning::lower_bound(row.rate));
    let bloom = |rate| Some(Structure::Bloom.bits_per_item(rate)? - tuning::lower_bound(rate));
    series.push(curve("Bloom (formula)", 4, Mark::Dashes, bloom));
    series.push(curve("semi-sorted (paper)", 0, Mark::Dashes, |rate| Some(semi_sorted(rate) - tuning::lower_bound(rate))));
    Chart {
        file: String::from("overhead"),
        topic: String::from("Bits per item above the lower bound"),
        finding: None,
        caption: String::from(
            "The same filters, without the log₂(1/ε) bits that every filter needs. The packed table takes about one bit less than \
             the single one, a little less than the paper's formula for semi-sorted buckets, (log₂(1/ε) + 2)/0.955, and nearly the \
             same at all rates; the overhead of a Bloom filter grows as its rate falls. The lowest rates were measured with few \
             hits and may be 13 % off.",
        ),
        x: Axis::log("false-positive rate ε").from_to(FROM, TO),
        y: Axis::linear("bits per item − log₂(1/ε)").from_to(0.0, 8.0),
        series,
    }
}

/// Semi-sorted buckets by section 6 and table 2 of the paper, with the load of 0.955 that it found.
fn semi_sorted(rate: f64) -> f64 {
    (tuning::lower_bound(rate) + 2.0) / 0.955
}

pub(super) fn of_buckets(measured: &Cases, buckets: Buckets) -> Vec<(&Case, &Row)> {
    rows(measured, |case| case.shows == Shows::Size && case.buckets == buckets, |case, _| case.items as f64)
}

/// The most bits per item in tables of any size, and of a power of two.
fn beside_powers_of_two(measured: &Cases) -> Option<String> {
    let most = |buckets| of_buckets(measured, buckets).iter().map(|(_, row)| row.bits_per_item).max_by(f64::total_cmp);
    let (any, power) = (most(Buckets::Any)?, most(Buckets::Power)?);
    Some(format!("At most {any:.1} bits per item at any size, {power:.1} with powers of two"))
}

fn by_items(measured: &Cases) -> Chart {
    let mut series = Vec::new();
    for (colour, buckets, mark, name) in
        [(0, Buckets::Any, Mark::Line, "any size"), (1, Buckets::Power, Mark::Dashes, "power of two")]
    {
        let found = of_buckets(measured, buckets);
        let points: Vec<_> = found.into_iter().map(|(case, row)| (case.items as f64, row.bits_per_item)).collect();
        if !points.is_empty() {
            series.push(Series::new(name, colour, points).marked(mark));
        }
    }
    let ends = series.iter().flat_map(|one| &one.points).map(|point| point.0);
    let (first, last) = ends.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), items| (low.min(items), high.max(items)));
    let mut x = Axis::log("items");
    if first < last {
        x = x.from_to(first, last);
        let flat = |name, colour, mark, bits| Series::new(name, colour, vec![(first, bits), (last, bits)]).marked(mark);
        series.extend(Structure::Bloom.bits_per_item(RATE).map(|bits| flat("Bloom (formula)", 4, Mark::Dashes, bits)));
        series.push(flat("lower bound (formula)", 5, Mark::Line, tuning::lower_bound(RATE)));
    }
    Chart {
        file: String::from("items"),
        topic: String::from("Bits per item at ε = 0.1 %, by number of items"),
        finding: beside_powers_of_two(measured),
        caption: String::from(
            "Packed tables for ε = 0.1 % at most, filled with the number of items that they were built for. If the number of buckets \
             must be a power of two, as in the paper and in Go's libraries, an item takes up to 1.8 times as much space; the empty slots \
             lower ε to half at best. Any even number of buckets avoids this. Small tables are planned for lower loads.",
        ),
        x,
        y: Axis::linear("bits per item"),
        series,
    }
}

const NOTHING: &str = "-";

fn beside_formulas(measured: &Cases) -> Table {
    let mut table = Table::new(
        "Bits per item for a false-positive rate, with the measured rate in brackets: the table has the shortest fingerprints, in \
         whole bits, that meet the rate. The last three columns are formulas",
        &["ε at most", "packed", "single, b = 4", "Bloom", "semi-sorted (paper)", "lower bound"],
    );
    for rate in RATES {
        let shortest = |kind| {
            let found = of_kind(measured, (kind, 4)).into_iter().rfind(|(_, row)| row.rate <= rate);
            // In an incomplete run, the next longer fingerprints must not stand in for these.
            let found = found.filter(|(_, row)| row.rate > rate / 2.5);
            found.map_or_else(|| String::from(NOTHING), |(_, row)| format!("{:.2} ({})", row.bits_per_item, short(row.rate)))
        };
        let bits = |bits: f64| format!("{bits:.2}");
        table.rows.push(vec![
            short(rate),
            shortest(Kind::Packed),
            shortest(Kind::Single),
            Structure::Bloom.bits_per_item(rate).map_or_else(|| String::from(NOTHING), bits),
            bits(semi_sorted(rate)),
            bits(tuning::lower_bound(rate)),
        ]);
    }
    table
}

fn through_powers_of_two(measured: &Cases) -> Table {
    let mut table = Table::new(
        "Bits per item at ε = 0.1 % for all numbers of items, packed tables",
        &["buckets", "filters", "least", "mean", "most", "refused an item"],
    );
    for (buckets, name) in [(Buckets::Any, "any even number"), (Buckets::Power, "a power of two")] {
        let found = of_buckets(measured, buckets);
        let bits: Vec<_> = found.iter().map(|(_, row)| row.bits_per_item).collect();
        let refused = found.iter().filter(|(case, row)| row.inserted < case.items).count();
        let cell = |bits: f64| if found.is_empty() { String::from(NOTHING) } else { format!("{bits:.2}") };
        table.rows.push(vec![
            name.to_owned(),
            found.len().to_string(),
            cell(bits.iter().copied().fold(f64::INFINITY, f64::min)),
            cell(bits.iter().sum::<f64>() / bits.len() as f64),
            cell(bits.iter().copied().fold(0.0, f64::max)),
            refused.to_string(),
        ]);
    }
    table
}

/// A rate in per cent with two significant digits, without zeros at the end.
fn short(rate: f64) -> String {
    if rate < 1e-6 {
        return percent(rate, 1);
    }
    let rate = 100.0 * rate;
    let places = match rate {
        10.0.. => 0,
        1.0.. => 1,
        0.1.. => 2,
        0.01.. => 3,
        _ => 4,
    };
    let text = format!("{rate:.places$}");
    let text = if places > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}
