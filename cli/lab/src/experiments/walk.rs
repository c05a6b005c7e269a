//! How many items have to move for a new one, by the load: what insertion costs besides finding its two buckets.

use std::collections::BTreeMap;

use koel::{CuckooFilter, TableKind};
use serde::{Deserialize, Serialize};

use super::{
    load::Walk,
    plain::{MOST_EVICTIONS, Plain},
    random::Hashes,
};
use crate::{
    chart::{Axis, Chart, Mark, Series},
    experiment::{Experiment, Findings, Measured, Scope, Table},
    interrupt::Interrupt,
};

/// Evictions per insertion.
pub struct Evictions;

/// Tables of one kind, filled until one item is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    walk: Walk,
    b: u32,
    slots: u64,
    /// So many tables, all counted together.
    tables: u32,
}

/// Insertions between two loads that took so many evictions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The loads at the beginning and at the end, in per cent.
    from: u32,
    to: u32,
    /// Exactly so many up to 16; beyond, at most so many and more than the next smaller number.
    evictions: u32,
    insertions: u64,
}

const BUCKET_SIZES: [u32; 3] = [2, 4, 8];
/// Long enough not to matter.
const FINGERPRINT_BITS: u32 = 16;
/// Ends of the ranges of loads, in per cent.
const LOADS: [u32; 30] =
    [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 82, 84, 86, 88, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99];
/// Those whose distributions are drawn.
const DRAWN: [u32; 4] = [80, 90, 95, 97];
/// In smaller tables there are no such loads.
const LEAST_SLOTS: u64 = 1000;
/// Items between two looks at whether to stop.
const PACE: u64 = 1 << 16;

impl Experiment for Evictions {
    type Case = Case;
    type Row = Row;

    fn name(&self) -> &'static str {
        "walk"
    }

    fn title(&self) -> &'static str {
        "How far an insertion goes"
    }

    fn about(&self) -> &'static str {
        "Tables with fingerprints of 16 bits are filled until an item is refused, and every insertion says how many items it moved to \
         their other bucket. Koel looks for the nearest free slot before it moves anything, so that its paths are the shortest \
         there are, up to a bound; the plain random walk, that of the paper, moves as it goes, and gives up after 500."
    }

    fn cases(&self, scope: &Scope) -> Vec<Case> {
        let slots = scope.at_most(scope.choose(1 << 20, 1 << 24));
        if slots < LEAST_SLOTS {
            return Vec::new();
        }
        let tables = scope.choose(1, 4);
        let kinds = BUCKET_SIZES.into_iter().flat_map(|b| [(Walk::Koel, b), (Walk::Random, b)]);
        kinds.map(|(walk, b)| Case { walk, b, slots, tables }).collect()
    }

    fn effort(&self, case: &Case) -> u64 {
        case.slots * u64::from(case.tables) * if case.walk == Walk::Koel { 1 } else { 2 }
    }

    fn memory(&self, case: &Case) -> u64 {
        let bytes = if case.walk == Walk::Koel { 2 } else { 4 };
        case.slots * bytes + (1 << 20)
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        let buckets = (case.slots / u64::from(case.b)).div_ceil(2) * 2;
        let slots = buckets * u64::from(case.b);
        let mut hashes = Hashes::new(seed);
        let mut counts = BTreeMap::new();
        for table in 0..u64::from(case.tables) {
            let mut insert = inserter(case, buckets, seed.wrapping_add(table))?;
            let mut items = 0;
            'filling: for (place, &load) in LOADS.iter().enumerate() {
                while items < slots * u64::from(load) / 100 {
                    if items % PACE == 0 {
                        interrupt.check()?;
                    }
                    let Some(evictions) = hashes.next().and_then(&mut insert) else { break 'filling };
                    *counts.entry((place, rounded(evictions))).or_insert(0) += 1;
                    items += 1;
                }
            }
        }
        let from = |place: usize| if place == 0 { 0 } else { LOADS[place - 1] };
        let row = |((place, evictions), insertions)| Row { from: from(place), to: LOADS[place], evictions, insertions };
        Ok(counts.into_iter().map(row).collect())
    }

    fn findings(&self, measured: &[Measured<Case, Row>]) -> Findings {
        Findings { charts: vec![means(measured), distributions(measured)], tables: vec![numbers(measured)] }
    }
}

/// What puts an item into an empty table of that kind, and says how many others moved; none if it was refused.
fn inserter(case: &Case, buckets: u64, seed: u64) -> anyhow::Result<Box<dyn FnMut(u64) -> Option<u32>>> {
    Ok(match case.walk {
        Walk::Koel => {
            let builder = CuckooFilter::builder().table(TableKind::Single).bucket_size(case.b);
            let mut filter = builder.fingerprint_bits(FINGERPRINT_BITS).buckets(buckets).build()?;
            Box::new(move |hash| filter.insert_hash_counted(hash).ok())
        }
        Walk::Random => {
            let mut plain = Plain::new(FINGERPRINT_BITS, case.b, buckets, seed);
            Box::new(move |hash| plain.insert(hash))
        }
    })
}

/// Small numbers as they are, large ones up to the next of 20, 25 … 500 in steps of a quarter.
fn rounded(evictions: u32) -> u32 {
    let mut limit = 16;
    if evictions <= limit {
        return evictions;
    }
    while limit < evictions {
        limit += limit / 4;
    }
    limit.min(MOST_EVICTIONS)
}

type Cases = [Measured<Case, Row>];

/// What a case's insertions up to a load, from the load before, took: how many took so many evictions.
struct Range<'a>(Vec<&'a Row>);

impl<'a> Range<'a> {
    fn of(measured: &'a Measured<Case, Row>, to: u32) -> Self {
        Self(measured.rows.iter().filter(|row| row.to == to).collect())
    }

    /// How many took at least so many.
    fn at_least(&self, evictions: u32) -> u64 {
        self.0.iter().filter(|row| row.evictions >= evictions).map(|row| row.insertions).sum()
    }

    fn share(&self, evictions: u32) -> Option<f64> {
        let all = self.at_least(0);
        (all > 0).then(|| self.at_least(evictions) as f64 / all as f64)
    }

    fn mean(&self) -> Option<f64> {
        let all = self.at_least(0);
        let evictions: f64 = self.0.iter().map(|row| f64::from(row.evictions) * row.insertions as f64).sum();
        (all > 0).then(|| evictions / all as f64)
    }

    fn most(&self) -> Option<u32> {
        self.0.iter().map(|row| row.evictions).max()
    }
}

fn find(measured: &Cases, walk: Walk, b: u32) -> Option<&Measured<Case, Row>> {
    measured.iter().find(|m| (m.case.walk, m.case.b) == (walk, b))
}

fn name(walk: Walk, what: &str) -> String {
    format!("{what}{}", if walk == Walk::Koel { "" } else { ", random" })
}

fn means(measured: &Cases) -> Chart {
    let mut series = Vec::new();
    for (colour, b) in BUCKET_SIZES.into_iter().enumerate() {
        for (walk, mark) in [(Walk::Koel, Mark::Line), (Walk::Random, Mark::Dashes)] {
            let Some(measured) = find(measured, walk, b) else { continue };
            let points = LOADS.iter().filter_map(|&load| Some((f64::from(load), Range::of(measured, load).mean()?)));
            series.push(Series::new(name(walk, &format!("b = {b}")), colour, points.collect()).marked(mark));
        }
    }
    Chart {
        file: String::from("mean"),
        title: String::from("Evictions per insertion, by load"),
        caption: String::from(
            "Mean number of items that move for a new one, at that load. Solid: koel. Dashed: the paper's random walk. Each line ends where the \
             table refused an item.",
        ),
        x: Axis::linear("load, %").from_to(20.0, 100.0),
        y: Axis::log("evictions per insertion").from_to(0.001, 100.0),
        series,
    }
}

fn distributions(measured: &Cases) -> Chart {
    let mut series = Vec::new();
    for (colour, load) in DRAWN.into_iter().enumerate() {
        for (walk, mark) in [(Walk::Koel, Mark::Points), (Walk::Random, Mark::Dashes)] {
            let Some(measured) = find(measured, walk, 4) else { continue };
            let range = Range::of(measured, load);
            let steps = range.0.iter().map(|row| row.evictions).filter(|&evictions| evictions > 0);
            let points: Vec<_> = steps.filter_map(|k| Some((f64::from(k), 100.0 * range.share(k)?))).collect();
            if !points.is_empty() {
                series.push(Series::new(name(walk, &format!("{load} %")), colour, points).marked(mark));
            }
        }
    }
    Chart {
        file: String::from("distribution"),
        title: String::from("Insertions with so many evictions or more, b = 4"),
        caption: String::from(
            "The share of insertions that move at least so many items, in the last one or two per cent up to the load in the legend. Solid: koel, \
             whose search finds the shortest path. Dashed: the random walk.",
        ),
        x: Axis::log("evictions").from_to(1.0, 1000.0),
        y: Axis::log("insertions, %"),
        series,
    }
}

fn numbers(measured: &Cases) -> Table {
    let header = ["load", "koel: mean", "without any", "most", "random walk: mean", "without any", "most"];
    let mut table = Table::new("Evictions per insertion at a load, buckets of four", &header);
    let dash = || String::from("-");
    for load in [50, 75, 90, 95, 96, 97] {
        let mut cells = vec![format!("{load} %")];
        for walk in [Walk::Koel, Walk::Random] {
            let range = find(measured, walk, 4).map(|measured| Range::of(measured, load));
            let range = range.as_ref();
            cells.push(range.and_then(Range::mean).map_or_else(dash, |mean| format!("{mean:.3}")));
            let none = range.and_then(|range| range.share(1)).map(|some| 100.0 * (1.0 - some));
            cells.push(none.map_or_else(dash, |none| format!("{none:.1} %")));
            cells.push(range.and_then(Range::most).map_or_else(dash, |most| most.to_string()));
        }
        table.rows.push(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(walk: Walk) -> Measured<Case, Row> {
        let case = Case { walk, b: 4, slots: 20_000, tables: 2 };
        let rows = Evictions.measure(&case, 1, &Interrupt::new()).expect("nobody interrupts it");
        Measured { case, rows }
    }

    #[test]
    fn koel_moves_fewer_and_gets_further() {
        let (koel, random) = (measured(Walk::Koel), measured(Walk::Random));
        for load in [50, 75, 90, 94] {
            let [koel, random] = [&koel, &random].map(|measured| Range::of(measured, load));
            let both = koel.mean().zip(random.mean());
            assert!(both.is_some_and(|(koel, random)| koel <= random), "{load} %: {both:?}");
            assert!(koel.most().is_some_and(|most| most <= 12));
            // All insertions of two tables, from load to load.
            let place = LOADS.iter().position(|&other| other == load).expect("it is in the list");
            let slots = u64::from(load - LOADS[place - 1]) * 20_000 / 100;
            assert_eq!(koel.at_least(0), 2 * slots);
        }
        let end = |measured: &Measured<Case, Row>| measured.rows.iter().map(|row| row.to).max();
        assert!(end(&koel) >= end(&random));
    }

    #[test]
    fn large_numbers_are_rounded_upwards_and_in_order() {
        let all: Vec<_> = (0..=500).map(rounded).collect();
        assert!(all.is_sorted() && all[..=16].iter().zip(0..).all(|(&rounded, k)| rounded == k));
        assert!(all.iter().zip(0..).all(|(&rounded, k)| rounded >= k && rounded <= k.max(16) * 5 / 4));
    }

    #[test]
    fn findings_do_with_what_there_is() {
        let empty = Evictions.findings(&[]);
        assert!(empty.charts.iter().all(|chart| chart.series.is_empty()));
        let some = Evictions.findings(&[measured(Walk::Koel)]);
        assert!(some.charts.iter().all(|chart| !chart.series.is_empty()));
    }
}
