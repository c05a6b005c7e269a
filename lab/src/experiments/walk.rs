//! The experiment `walk`: how many evictions an insertion takes, by load.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    buckets,
    plain::{Plain, RandomWalk, Walk, insert_nearest},
    random::Hashes,
};
use crate::{
    chart::{Axis, Chart, Mark, Series},
    column::{Column, Role},
    experiment::{Experiment, Findings, Measured, Scope, Table},
    interrupt::Interrupt,
    percent::percent,
};

/// Evictions per insertion.
pub struct Evictions;

/// Tables of one kind, filled until an item is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    walk: Walk,
    b: u32,
    slots: u64,
    /// How many tables are counted together.
    tables: u32,
}

/// The insertions between two loads that took a number of evictions, or, above 16, a number within a range.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The loads before and after these insertions, in per cent.
    from: u32,
    to: u32,
    /// The fewest and the most evictions of one of them.
    least: u32,
    most: u32,
    insertions: u64,
    /// The sum of the evictions of all of them.
    evictions: u64,
}

const BUCKET_SIZES: [u32; 3] = [2, 4, 8];
/// Long enough that their length does not matter.
const FINGERPRINT_BITS: u32 = 16;
/// The upper ends of the ranges of loads, in per cent.
const LOADS: [u32; 30] =
    [5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 82, 84, 86, 88, 90, 91, 92, 93, 94, 95, 96, 97, 98, 99];
/// Smaller tables have too few items between two of these loads.
const LEAST_SLOTS: u64 = 1000;
/// Items between two checks for an interrupt.
pub(super) const PACE: u64 = 1 << 16;

impl Experiment for Evictions {
    type Case = Case;
    type Row = Row;

    fn name(&self) -> &'static str {
        "walk"
    }

    fn title(&self) -> &'static str {
        "Evictions per insertion"
    }

    fn about(&self) -> &'static str {
        "Tables with fingerprints of 16 bits are filled until an item is refused, and the evictions of each insertion are counted: the items \
         that it moves to their other bucket. Koel searches breadth first for a free slot, through at most 4096 full buckets, and \
         moves items only when it has found one, so that its paths are short. The paper's random walk moves an item at each step and gives up after \
         500."
    }

    fn columns(&self) -> Vec<Column> {
        vec![
            Column::key("walk", "", "koel, or random: the paper's random walk"),
            Column::key("b", "slots", "slots per bucket"),
            Column::key("slots", "slots", "slots of a table, before rounding to an even number of buckets"),
            Column::key("tables", "tables", "how many tables were filled"),
            Column::key("from", "%", "load before these insertions"),
            Column::key("to", "%", "load after them"),
            Column::key("least", "evictions", "fewest evictions of one of these insertions"),
            Column::new("most", "evictions", "most evictions of one of them"),
            Column::new("insertions", "insertions", "insertions between these loads that took so many evictions")
                .compared(Role::Count),
            Column::new("evictions", "evictions", "sum of their evictions"),
        ]
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
        case.slots * 4 + (1 << 20)
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        let buckets = buckets(case.slots, case.b);
        let slots = buckets * u64::from(case.b);
        let mut hashes = Hashes::new(seed);
        let mut counts = BTreeMap::<_, Count>::new();
        for table in 0..u64::from(case.tables) {
            let mut insert = inserter(case.walk, FINGERPRINT_BITS, case.b, buckets, seed.wrapping_add(table));
            let mut items = 0;
            'filling: for (place, &load) in LOADS.iter().enumerate() {
                while items < slots * u64::from(load) / 100 {
                    if items % PACE == 0 {
                        interrupt.check()?;
                    }
                    let Some(evictions) = hashes.next().and_then(&mut insert) else { break 'filling };
                    counts.entry((place, class(evictions))).or_default().add(evictions);
                    items += 1;
                }
            }
        }
        let from = |place: usize| if place == 0 { 0 } else { LOADS[place - 1] };
        let row = |((place, _), count): ((usize, u32), Count)| {
            let Count { least, most, insertions, evictions } = count;
            Row { from: from(place), to: LOADS[place], least, most, insertions, evictions }
        };
        Ok(counts.into_iter().map(row).collect())
    }

    fn findings(&self, measured: &[Measured<Case, Row>]) -> Findings {
        Findings { charts: vec![means(measured)], tables: vec![numbers(measured)], ..Findings::default() }
    }
}

/// Inserts items into a table that is empty at first, and returns the number of evictions of each; `None` if it was refused.
pub(super) fn inserter(walk: Walk, f: u32, b: u32, buckets: u64, seed: u64) -> Box<dyn FnMut(u64) -> Option<u32>> {
    let mut table = Plain::new(f, b, buckets);
    match walk {
        Walk::Koel => Box::new(move |hash| insert_nearest(&mut table, hash)),
        Walk::Random => {
            let mut walk = RandomWalk::new(table, seed);
            Box::new(move |hash| walk.insert(hash))
        }
    }
}

/// The insertions of one class.
#[derive(Clone, Copy)]
struct Count {
    least: u32,
    most: u32,
    insertions: u64,
    evictions: u64,
}

impl Default for Count {
    fn default() -> Self {
        Self { least: u32::MAX, most: 0, insertions: 0, evictions: 0 }
    }
}

impl Count {
    fn add(&mut self, evictions: u32) {
        self.least = self.least.min(evictions);
        self.most = self.most.max(evictions);
        self.insertions += 1;
        self.evictions += u64::from(evictions);
    }
}

/// The class of a number of evictions: itself up to 16, beyond that the upper end of its range. Each range ends a quarter
/// above the one before.
fn class(evictions: u32) -> u32 {
    let mut limit = 16;
    if evictions <= limit {
        return evictions;
    }
    while limit < evictions {
        limit += limit / 4;
    }
    limit
}

type Cases = [Measured<Case, Row>];

/// The rows of one range of loads of a case.
struct Range<'a>(Vec<&'a Row>);

impl<'a> Range<'a> {
    /// The range that ends with this load. `None` if not all tables reached it.
    fn of(measured: &'a Measured<Case, Row>, to: u32) -> Option<Self> {
        let rows: Vec<_> = measured.rows.iter().filter(|row| row.to == to).collect();
        let Case { b, slots, tables, .. } = measured.case;
        let per_cent = u64::from(to - rows.first()?.from);
        let all = buckets(slots, b) * u64::from(b) * per_cent / 100 * u64::from(tables);
        let range = Self(rows);
        (range.at_least(0) >= all).then_some(range)
    }

    /// How many insertions took at least this many evictions, which must be the lower end of a class.
    fn at_least(&self, evictions: u32) -> u64 {
        self.0.iter().filter(|row| row.least >= evictions).map(|row| row.insertions).sum()
    }

    fn share(&self, evictions: u32) -> f64 {
        self.at_least(evictions) as f64 / self.at_least(0) as f64
    }

    fn mean(&self) -> f64 {
        self.0.iter().map(|row| row.evictions).sum::<u64>() as f64 / self.at_least(0) as f64
    }

    fn most(&self) -> u32 {
        self.0.iter().map(|row| row.most).max().unwrap_or(0)
    }
}

fn find(measured: &Cases, walk: Walk, b: u32) -> Option<&Measured<Case, Row>> {
    measured.iter().find(|m| (m.case.walk, m.case.b) == (walk, b))
}

/// The load in the title, in per cent.
const COMPARED: u32 = 95;

/// Both walks at this load in buckets of four, in words.
fn beside_the_random_walk(measured: &Cases) -> Option<String> {
    let mean = |walk| Some(Range::of(find(measured, walk, 4)?, COMPARED)?.mean());
    let (koel, random) = (mean(Walk::Koel)?, mean(Walk::Random)?);
    Some(format!("At a load of {COMPARED} %: Koel moves {koel:.2} items per insertion, the random walk {random:.2}"))
}

fn means(measured: &Cases) -> Chart {
    let mut series = Vec::new();
    for (colour, b) in BUCKET_SIZES.into_iter().enumerate() {
        for (walk, suffix, mark) in [(Walk::Koel, "", Mark::Points), (Walk::Random, ", random", Mark::DashedPoints)] {
            let Some(measured) = find(measured, walk, b) else { continue };
            let points = LOADS.iter().filter_map(|&load| Some((f64::from(load), Range::of(measured, load)?.mean())));
            series.push(Series::new(format!("b = {b}{suffix}"), colour, points.collect()).marked(mark));
        }
    }
    Chart {
        file: String::from("mean"),
        topic: String::from("Evictions per insertion, by load"),
        finding: beside_the_random_walk(measured),
        caption: String::from(
            "Mean number of evictions per insertion, over the last few per cent up to that load; the title is about buckets of four. \
             Solid: koel. Dashed: the paper's random walk. Each line ends where a table refused an item.",
        ),
        x: Axis::linear("load, %").from_to(20.0, 100.0),
        y: Axis::log("evictions per insertion").from_to(0.001, 100.0),
        series,
    }
}

fn numbers(measured: &Cases) -> Table {
    let header = ["load", "koel: mean", "no eviction", "maximum", "random walk: mean", "no eviction", "maximum"];
    let mut table = Table::new("Evictions per insertion at a load, buckets of four", &header);
    for load in [50, 75, 90, 95, 96, 97] {
        let mut cells = vec![format!("{load} %")];
        for walk in [Walk::Koel, Walk::Random] {
            let range = find(measured, walk, 4).and_then(|measured| Range::of(measured, load));
            cells.extend(range.map_or_else(
                || [(); 3].map(|()| String::from("-")),
                |range| [format!("{:.3}", range.mean()), percent(1.0 - range.share(1), 1), range.most().to_string()],
            ));
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
            let [koel, random] = [&koel, &random].map(|measured| Range::of(measured, load).expect("they got that far"));
            assert!(koel.mean() <= random.mean(), "{load} %: {} {}", koel.mean(), random.mean());
            assert!(koel.most() <= 12 && random.most() <= 500);
            // All insertions into two tables between the two loads.
            let place = LOADS.iter().position(|&other| other == load).expect("it is in the list");
            let slots = u64::from(load - LOADS[place - 1]) * 20_000 / 100;
            assert_eq!(koel.at_least(0), 2 * slots);
        }
        let end = |measured: &Measured<Case, Row>| measured.rows.iter().map(|row| row.to).max();
        assert!(end(&koel) >= end(&random));
        // No table gets this full.
        assert!(Range::of(&koel, 99).is_none());
    }

    #[test]
    fn sums_are_exact_also_of_what_is_counted_together() {
        let random = measured(Walk::Random);
        for row in &random.rows {
            let between = u64::from(row.least) * row.insertions..=u64::from(row.most) * row.insertions;
            assert!(row.insertions > 0 && between.contains(&row.evictions), "{row:?}");
            assert!(row.most <= 16 && row.least == row.most || row.least > 16, "{row:?}");
        }
        assert!(random.rows.iter().any(|row| row.least > 16 && row.least < row.most));
    }

    #[test]
    fn classes_are_in_order() {
        let all: Vec<_> = (0..=500).map(class).collect();
        assert!(all.is_sorted() && all[..=16].iter().zip(0..).all(|(&class, k)| class == k));
        assert!(all.iter().zip(0..).all(|(&class, k)| class >= k && class <= k.max(16) * 5 / 4));
    }

    #[test]
    fn findings_do_with_what_there_is() {
        let empty = Evictions.findings(&[]);
        assert!(empty.charts.iter().all(|chart| chart.series.is_empty()));
        let some = Evictions.findings(&[measured(Walk::Koel), measured(Walk::Random)]);
        assert!(some.charts.iter().all(|chart| !chart.series.is_empty()));
    }
}
