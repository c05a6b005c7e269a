//! The experiment `load`: measures the load at which tables first refuse an item, as in section 4 and figure 2 of the paper.

use koel::{CuckooFilter, Prehashed, TableKind};
use serde::{Deserialize, Serialize};

use super::{Hashes, buckets, count, probe::BATCH, random_walk::RandomWalk, rows};
use crate::{
    About, Axis, Chart, Column, Experiment, Findings, Interrupt, Interrupted, Mark, Measured, Role, Scope, Series, Table, percent,
};

/// The experiment on loads at the first refusal.
pub(super) struct Load;

/// The method that finds room when both buckets of an item are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Walk {
    /// Koel's breadth-first search for the nearest free slot.
    Koel,
    /// The paper's random walk of at most 500 evictions.
    Random,
}

/// Tables of one kind and size, filled one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Case {
    walk: Walk,
    b: u32,
    f: u32,
    slots: u64,
    trials: u32,
}

/// The loads of these tables at the first refusal, 0 to 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Row {
    pub(super) min: f64,
    pub(super) mean: f64,
    pub(super) max: f64,
}

const BUCKET_SIZES: [u32; 3] = [2, 4, 8];
const SIZES: [u64; 7] = [100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];
/// The lengths of fingerprints in large tables, which take long, and in quick runs.
const SELECTED_BITS: [u32; 12] = [2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32];
/// The slots per bucket in the chart by length of fingerprint, which compares table sizes.
const COMMON_SLOTS: u32 = 4;
/// The length of fingerprints in the chart by table size, which compares bucket sizes.
const COMMON_BITS: u32 = 16;
/// The least number of slots of a large table.
const LARGE: u64 = 10_000_000;
/// The greatest number of slots in the chart that compares bucket sizes. Larger tables are filled only a few times.
const MIDDLE: u64 = 1_000_000;
/// The longest fingerprints in charts. With longer ones, no load changes by more than a percentage point.
const MAX_BITS: f64 = 13.0;

impl Experiment for Load {
    type Case = Case;
    type Row = Row;

    fn about(&self) -> About {
        let text = "Tables are filled with random items until one is refused. Koel searches breadth first for a free slot, \
         through at most 4096 full buckets, and moves items only when it has found one. The paper's random walk evicts an item \
         chosen at random, at most 500 times. The two get different items. Small tables are filled up to a thousand times, \
         those of 10 M slots three times, and those of 100 M slots once; the two largest sizes with twelve lengths of \
         fingerprint in buckets of four, and with 16 bits in the others. The paper's figure 2 shows the minimum of ten runs.";
        let columns = vec![
            Column::key("walk", "", "koel, or random: the paper's random walk"),
            Column::key("b", "slots", "slots per bucket"),
            Column::key("f", "bits", "length of a fingerprint"),
            Column::key("slots", "slots", "slots of the table, before rounding to an even number of buckets"),
            Column::key("trials", "tables", "how many tables were filled"),
            Column::new("min", "load", "least load at the first refusal: items divided by slots"),
            Column::new("mean", "load", "mean load at the first refusal").compared(Role::mean("min", "max", "trials")),
            Column::new("max", "load", "greatest load at the first refusal"),
        ];
        About { columns, ..About::new("load", "Load at the first refusal", text) }
    }

    fn cases(&self, scope: &Scope) -> Vec<Case> {
        let sizes = scope.allowed(&SIZES[..scope.choose(5, 7)]);
        let mut cases = Vec::new();
        for slots in sizes {
            for f in (2..=32).filter(|f| SELECTED_BITS.contains(f) || !scope.quick && slots < LARGE) {
                for b in BUCKET_SIZES.into_iter().filter(|&b| slots < LARGE || b == COMMON_SLOTS || f == COMMON_BITS) {
                    let trials = trials(slots, scope.quick);
                    let case = |walk| Case { walk, b, f, slots, trials };
                    cases.extend([case(Walk::Koel), case(Walk::Random)]);
                }
            }
        }
        cases
    }

    fn effort(&self, case: &Case) -> u64 {
        // Tables with short fingerprints refuse an item early.
        let share = match (case.b, case.f) {
            (_, 2..=4) => 3,
            (2, _) => 7,
            _ => 10,
        };
        let effort_per_item = if case.walk == Walk::Koel { 1 } else { 2 };
        case.slots * u64::from(case.trials) * share * effort_per_item
    }

    fn memory(&self, case: &Case) -> u64 {
        let bits = if case.walk == Walk::Koel { case.f } else { 32 };
        case.slots * u64::from(bits) / 8 + (1 << 20)
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        let &Case { walk, b, f, slots, trials } = case;
        Ok(vec![Row::measure(Filled::new(walk, f, b, buckets(slots, b), seed)?, trials, seed, interrupt)?])
    }

    fn findings(&self, measured: &Cases) -> Findings {
        let charts = vec![by_size(measured), by_fingerprint(measured), by_bucket(measured)];
        Findings { charts, tables: vec![paper_table(measured)], ..Findings::default() }
    }
}

/// Returns the number of times that a table of this size is filled.
pub(super) fn trials(slots: u64, quick: bool) -> u32 {
    let (least, most, items) = if quick { (2, 100, 200_000) } else { (10, 1000, LARGE) };
    let least = if slots >= LARGE { LARGE * 3 / slots } else { least };
    u32::try_from((items / slots.max(1)).clamp(least.max(1), most)).unwrap_or(1)
}

impl Row {
    /// Fills the table this many times, and returns the statistics of its loads.
    pub(super) fn measure(mut table: Filled, trials: u32, seed: u64, interrupt: &Interrupt) -> Result<Self, Interrupted> {
        let mut hashes = Hashes::new(seed);
        let mut loads = Vec::new();
        for _ in 0..trials {
            loads.push(table.fill(&mut hashes, interrupt)?);
        }
        Ok(Self {
            min: loads.iter().copied().fold(1.0, f64::min),
            mean: loads.iter().sum::<f64>() / loads.len() as f64,
            max: loads.iter().copied().fold(0.0, f64::max),
        })
    }
}

/// A table that is filled repeatedly.
pub(super) enum Filled {
    Koel(CuckooFilter),
    Random(RandomWalk),
}

impl Filled {
    pub(super) fn new(walk: Walk, f: u32, b: u32, buckets: u64, seed: u64) -> anyhow::Result<Self> {
        Ok(match walk {
            Walk::Koel => {
                // Packed tables reach the same loads, because the encoding of a bucket does not affect its contents.
                let builder = CuckooFilter::builder().table(TableKind::Single).bucket_size(b).fingerprint_bits(f);
                Self::Koel(builder.buckets(buckets).build()?)
            }
            Walk::Random => Self::Random(RandomWalk::new(f, b, buckets, seed)),
        })
    }

    /// Fills the table until it has no room for an item, and returns its load.
    fn fill(&mut self, hashes: &mut Hashes, interrupt: &Interrupt) -> Result<f64, Interrupted> {
        match self {
            Self::Koel(filter) => {
                filter.clear();
                let mut load = 0.0;
                // The filter counts copies that the table has no room for. With short fingerprints, many distinct items look like
                // copies.
                until_refused(hashes, interrupt, |hash| {
                    let is_stored = filter.insert(&Prehashed(hash)).is_ok() && filter.table_len() == filter.len();
                    load = if is_stored { filter.load_factor() } else { load };
                    is_stored
                })?;
                Ok(load)
            }
            Self::Random(walk) => {
                walk.clear();
                let items = until_refused(hashes, interrupt, |hash| walk.insert(hash).is_some())?;
                Ok(items as f64 / walk.slots() as f64)
            }
        }
    }
}

/// Inserts items until one is refused, and returns the number of accepted items.
fn until_refused(hashes: &mut Hashes, interrupt: &Interrupt, mut insert: impl FnMut(u64) -> bool) -> Result<u64, Interrupted> {
    let mut items = 0;
    loop {
        interrupt.check()?;
        for hash in hashes.by_ref().take(BATCH) {
            if !insert(hash) {
                return Ok(items);
            }
            items += 1;
        }
    }
}

type Cases = [Measured<Case, Row>];

/// Returns the mean loads of the cases that `which` selects, in percent, as a series over `x`, with intervals from the least load
/// to the greatest.
fn loads(name: String, color: usize, measured: &Cases, which: impl Fn(&Case) -> bool, x: fn(&Case) -> f64) -> Series {
    let found = rows(measured, |case, _| which(case), |case, _| x(case));
    let points = found.iter().map(|(case, row)| (x(case), 100.0 * row.mean)).collect();
    Series::new(name, color, points).within(found.iter().map(|(_, row)| (100.0 * row.min, 100.0 * row.max)).collect())
}

/// Returns the loads of the cases that `which` selects: koel's as a solid line, and the random walk's as a dashed one.
fn walks(name: &str, color: usize, measured: &Cases, which: impl Fn(&Case) -> bool, x: fn(&Case) -> f64) -> [Series; 2] {
    let line = |walk, suffix, mark| {
        loads(format!("{name}{suffix}"), color, measured, |case| case.walk == walk && which(case), x).marked(mark)
    };
    [line(Walk::Koel, "", Mark::Points), line(Walk::Random, ", random", Mark::DashedPoints)]
}

/// Draws the load by length of fingerprint, in buckets of four. Only every second size has a line.
fn by_fingerprint(measured: &Cases) -> Chart {
    let lines = SIZES.into_iter().step_by(2).enumerate().flat_map(|(color, slots)| {
        let name = format!("{} slots", count(slots));
        walks(&name, color, measured, move |case| (case.b, case.slots) == (COMMON_SLOTS, slots), |case| case.f.into())
    });
    let axes = [Axis::linear("fingerprint, bits").from_to(2.0, MAX_BITS), Axis::linear("load, %").from_to(80.0, 100.0)];
    Chart::new("bits", "Load at the first refusal by length of fingerprint, buckets of four", axes, lines).captioned(
        "Mean load at which a table first refuses an item, with bars from the least load to the greatest. Solid: koel. \
         Dashed: the paper's random walk. If fingerprints are too short for a large table, many items have the same two \
         buckets (paper, section 4). Tables of 100 M slots were filled once.",
    )
}

/// Draws the load by length of fingerprint, in tables of one size.
fn by_bucket(measured: &Cases) -> Chart {
    let slots = measured.iter().map(|m| m.case.slots).filter(|&slots| slots <= MIDDLE).max().unwrap_or(MIDDLE);
    let lines = BUCKET_SIZES.into_iter().enumerate().flat_map(|(color, b)| {
        walks(&format!("b = {b}"), color, measured, move |case| (case.b, case.slots) == (b, slots), |case| case.f.into())
    });
    let topic = format!("Load at the first refusal by length of fingerprint, {} slots", count(slots));
    let axes = [Axis::linear("fingerprint, bits").from_to(2.0, MAX_BITS), Axis::linear("load, %").from_to(60.0, 100.0)];
    Chart::new("buckets", topic, axes, lines).captioned(
        "Mean load at which a table first refuses an item, by slots per bucket, with bars from the least load to the \
         greatest. Solid: koel. Dashed: the paper's random walk.",
    )
}

/// Returns the largest tables that `which` selects, and their mean load.
fn largest(measured: &Cases, which: impl Fn(&Case) -> bool) -> Option<(&Case, f64)> {
    let found = rows(measured, |case, _| which(case), |case, _| case.slots as f64);
    found.last().map(|(case, row)| (*case, row.mean))
}

/// Returns a sentence that compares both walks in the largest tables with buckets of four that were filled more than once.
fn walk_finding(measured: &Cases) -> Option<String> {
    let by = |walk| largest(measured, |case| (case.walk, case.b, case.f) == (walk, COMMON_SLOTS, COMMON_BITS) && case.trials > 1);
    let ((case, koel), (other, random)) = (by(Walk::Koel)?, by(Walk::Random)?);
    let size = count(case.slots);
    let text = format!("Koel fills {size} slots to {}, the random walk to {}", percent(koel, 1), percent(random, 1));
    (case.slots == other.slots).then_some(text)
}

/// Draws the load by size of table, with long fingerprints.
fn by_size(measured: &Cases) -> Chart {
    let lines = BUCKET_SIZES.into_iter().enumerate().flat_map(|(color, b)| {
        walks(&format!("b = {b}"), color, measured, move |case| (case.b, case.f) == (b, COMMON_BITS), |case| case.slots as f64)
    });
    let axes = [Axis::log("slots"), Axis::linear("load, %").from_to(80.0, 100.0)];
    let chart = Chart::new("size", "Load at the first refusal, by size of table", axes, lines);
    chart.showing(walk_finding(measured)).captioned(
        "Mean load with fingerprints of 16 bits, in buckets of two, four and eight; the title is about four. Bars: from the \
         least load to the greatest. The larger the table, the lower the load at which an item takes the random walk more \
         than 500 evictions. The loads of small tables vary more, so they are planned for lower loads.",
    )
}

/// The slots per bucket, and the load in percent that section 5.1 of the paper gives for large tables with long fingerprints.
const PAPER: [(u32, f64); 3] = [(2, 84.0), (4, 95.0), (8, 98.0)];

fn paper_table(measured: &Cases) -> Table {
    let row = |(b, paper): (u32, f64)| {
        let by = |walk| largest(measured, |case| (case.walk, case.b, case.f) == (walk, b, COMMON_BITS));
        let (koel, random) = (by(Walk::Koel), by(Walk::Random));
        let cell = |found: Option<(&Case, f64)>, text: fn(&Case, f64) -> String| {
            found.map_or_else(|| String::from("-"), |(case, load)| text(case, load))
        };
        let mean = |_: &Case, load| percent(load, 1);
        vec![
            b.to_string(),
            cell(koel, |case, _| count(case.slots)),
            cell(koel, |case, _| format!("{} ×", case.trials)),
            cell(koel, mean),
            cell(random, mean),
            format!("{paper:.0} %"),
        ]
    };
    Table::new(
        "Mean load at the first refusal with fingerprints of 16 bits, in the largest tables measured",
        &["slots per bucket", "table, slots", "filled", "koel", "random walk", "the paper, section 5.1"],
        PAPER.map(row),
    )
}
