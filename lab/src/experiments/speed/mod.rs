//! The experiment `speed`: measures the times of insertions, lookups and removals by the size of the table, for all bucket sizes.
//! It shows the effect of the caches. [`SpeedTable`] reads its results.

mod table;

use koel::{CuckooFilter, Params, TableKind};
use serde::{Deserialize, Serialize};

pub use self::table::{SpeedTable, Speeds};
use super::{
    Hashes, buckets,
    probe::{by_name, label},
    times::{self, Operation, Sampling, Subject, Times},
};
use crate::{About, Axis, Chart, Column, Experiment, Findings, Interrupt, Measured, Quartiles, Role, Scope, Series, Table};

const NAME: &str = "speed";

/// The experiment on times by the size of the table.
#[derive(Clone, Copy, Debug)]
pub struct Speed;

/// Tables of one size and all shapes, which are measured in the same rounds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    size: u64,
    quick: bool,
}

/// The times of a shape.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    #[serde(with = "by_name")]
    table: TableKind,
    b: u32,
    f: u32,
    items: u64,
    bytes: u64,
    #[serde(flatten)]
    times: Times,
}

/// Returns the length of fingerprints. Both kinds of tables take 12 bits per slot. Single tables with buckets of one slot take 32,
/// because with fewer bits, large ones are planned nearly empty.
const fn fingerprint_bits(table: TableKind, b: u32) -> u32 {
    match (table, b) {
        (TableKind::Packed, _) => 13,
        (_, 1) => 32,
        _ => 12,
    }
}

/// Returns the number of slots of 12 bits in this many bytes, which is the most of any shape.
const fn most_slots(size: u64) -> u64 {
    size * 8 / 12
}

/// The measured kinds of tables and slots per bucket. Bucket sizes in between are like their neighbors.
const SHAPES: [(TableKind, u32); 9] = [
    (TableKind::Packed, 4),
    (TableKind::Single, 1),
    (TableKind::Single, 2),
    (TableKind::Single, 3),
    (TableKind::Single, 4),
    (TableKind::Single, 6),
    (TableKind::Single, 8),
    (TableKind::Single, 12),
    (TableKind::Single, 16),
];

/// The measured sizes in bytes, from the first-level cache to memory, by factors of four.
const SIZES: [u64; 7] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// The least size in bytes. Smaller tables have only a few buckets of 16 slots.
const MIN_SIZE: u64 = 1 << 10;
/// The size in bytes from which on filling a table takes so long that there are fewer rounds.
const LARGE: u64 = 16 << 20;
const FEWER_ROUNDS: usize = 5;
/// The number of sizes that a quick run measures.
const QUICK_SIZES: usize = 5;

impl Case {
    fn sampling(&self) -> Sampling {
        let mut sampling = Sampling::new(self.quick);
        if self.size >= LARGE {
            sampling.rounds = sampling.rounds.min(FEWER_ROUNDS);
        }
        sampling
    }
}

/// Returns the parameters of a table of about this many bytes.
fn params(table: TableKind, b: u32, size: u64) -> anyhow::Result<Params> {
    let f = fingerprint_bits(table, b);
    let slots = if b == 1 { size * 8 / u64::from(f) } else { most_slots(size) };
    let builder = CuckooFilter::builder().table(table).bucket_size(b).fingerprint_bits(f);
    Ok(builder.buckets(buckets(slots, b)).params()?)
}

impl Experiment for Speed {
    type Case = Case;
    type Row = Row;

    fn about(&self) -> About {
        let text = "Filters with tables of 16 KiB to 64 MiB are filled up to their planned capacity; all insertions are timed, \
         and those over the last 5 % of the slots. Then absent and present keys are looked up, and the last keys \
         removed again, all of them one key at a time, with the best kernel, in one thread. Keys are 64-bit numbers; times \
         include hashing (XXH3). Tables have 12 bits per slot, those with buckets of one 32: with fewer bits, large ones are \
         planned nearly empty. Small tables are measured several times in a round. All shapes of a size are measured in the \
         same rounds. Times that other work on the processor disturbed do not count, and are measured again, in half as many \
         rounds at most. `koel tune` takes its times from here.";
        let mut columns = vec![
            Column::key("size", "bytes", "size of the table that was asked for"),
            Column::key("quick", "", "true: fewer rounds, of fewer keys"),
            Column::key("table", "", "packed or single"),
            Column::key("b", "slots", "slots per bucket"),
            Column::new("f", "bits", "length of a fingerprint").compared(Role::Exact),
            Column::new("items", "items", "items in the filter: its capacity").compared(Role::Exact),
            Column::new("bytes", "bytes", "size of the table").compared(Role::Exact),
        ];
        columns.extend(times::columns());
        About { columns, is_timed: true, ..About::new(NAME, "Speed, by size of the table", text) }
    }

    fn cases(&self, scope: &Scope) -> Vec<Case> {
        let sizes = &SIZES[..scope.choose(QUICK_SIZES, SIZES.len())];
        // The limit itself becomes a size, so that a low limit leaves a case.
        let within = |&size: &u64| match scope.max_slots {
            Some(most) if most < most_slots(size) => most * 12 / 8,
            _ => size,
        };
        let mut sizes: Vec<_> = sizes.iter().map(within).collect();
        sizes.dedup();
        sizes.into_iter().filter(|&size| size >= MIN_SIZE).map(|size| Case { size, quick: scope.quick }).collect()
    }

    fn effort(&self, case: &Case) -> u64 {
        let slots = most_slots(case.size);
        SHAPES.len() as u64 * case.sampling().effort(slots, slots)
    }

    fn memory(&self, case: &Case) -> u64 {
        // This is the memory of the keys and of a filter.
        most_slots(case.size) * 8 + 2 * case.size + (64 << 20)
    }

    fn measure(&self, case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Row>> {
        let shapes = SHAPES.iter().map(|&(table, b)| Ok((table, b, params(table, b, case.size)?)));
        let shapes = shapes.collect::<anyhow::Result<Vec<_>>>()?;
        let most = shapes.iter().map(|(.., params)| params.capacity()).max().unwrap_or(0);
        let keys: Vec<_> = Hashes::new(seed).take(most).collect();
        let sampling = case.sampling();
        let subjects = shapes.iter().map(|(.., params)| Subject::new(*params, &keys[..params.capacity()], seed, sampling));
        let mut subjects = subjects.collect::<anyhow::Result<Vec<_>>>()?;
        sampling.measure(&mut subjects, interrupt)?;
        let row = |(&(table, b, params), subject): (&(TableKind, u32, Params), &Subject<'_>)| {
            // There are no times if the filter refused a key in every round. At a planned load, at most one in a thousand does.
            let times = subject.times()?;
            let (items, bytes) = (params.capacity() as u64, params.table_bytes() as u64);
            Some(Row { table, b, f: params.fingerprint_bits(), items, bytes, times })
        };
        Ok(shapes.iter().zip(&subjects).filter_map(row).collect())
    }

    fn findings(&self, measured: &[Measured<Case, Row>]) -> Findings {
        let mut rows: Vec<_> = measured.iter().flat_map(|measured| &measured.rows).collect();
        rows.sort_by_key(|row| row.bytes);
        if rows.is_empty() {
            return Findings::default();
        }
        let charts = Operation::ALL.into_iter().map(|operation| chart(&rows, operation)).collect();
        Findings { charts, tables: vec![table(measured)], warnings: warning(&rows).into_iter().collect() }
    }
}

/// The shapes in charts. The times of most others lie between theirs. One more color marks disturbed times.
const DRAWN: [(TableKind, u32); 5] =
    [(TableKind::Packed, 4), (TableKind::Single, 4), (TableKind::Single, 2), (TableKind::Single, 8), (TableKind::Single, 16)];

fn warning(rows: &[&Row]) -> Option<String> {
    let disturbed = rows.iter().filter(|row| row.times.are_disturbed()).count();
    (disturbed > 0).then(|| {
        format!(
            "Other work on the processor disturbed more than half of the rounds, also when they were measured again, of \
             {disturbed} of {} filters: their times are too long. They are marked in the charts and in the table. Measure again \
             on a machine that does nothing else.",
            rows.len()
        )
    })
}

fn chart(rows: &[&Row], operation: Operation) -> Chart {
    let mut series = Vec::new();
    for (color, (table, b)) in DRAWN.into_iter().enumerate() {
        let times = rows_of_shape(rows, table, b).filter_map(|row| {
            let Quartiles { low, median, high } = row.times.of(operation)?;
            Some(((row.bytes as f64 / 1024.0, median), (low, high)))
        });
        let (points, quartiles) = times.unzip();
        series.push(Series::new(label(table, b), color, points).within(quartiles));
    }
    let disturbed = rows.iter().filter(|row| row.times.are_disturbed() && DRAWN.contains(&(row.table, row.b)));
    let disturbed = disturbed.filter_map(|row| Some((row.bytes as f64 / 1024.0, row.times.of(operation)?.median)));
    series.push(times::disturbed(disturbed.collect()));
    let packed: Vec<_> = rows_of_shape(rows, TableKind::Packed, 4).collect();
    let ends = packed
        .first()
        .zip(packed.last())
        .filter(|(first, last)| first.bytes < last.bytes && !first.times.are_disturbed() && !last.times.are_disturbed());
    let finding = ends.and_then(|(first, last)| {
        let ns = |row: &Row| Some(row.times.of(operation)?.median);
        let (what, small, large) = (operation.title(), format_bytes(first.bytes), format_bytes(last.bytes));
        Some(format!("{what}: {:.1} ns in {small} of a packed table, {:.1} ns in {large}", ns(first)?, ns(last)?))
    });
    let topic = format!("{}, by size of the table", operation.title());
    let axes = [Axis::log("size of the table, KiB"), Axis::linear("ns").from_zero()];
    Chart::new(operation.file(), topic, axes, series).showing(finding).captioned(
        "Nanoseconds for a key, with hashing, one key at a time: medians of the rounds, and bars between their quartiles. \
         Times rise where a table no longer fits into one of the processor's caches. All but the packed ones are single \
         tables.",
    )
}

fn rows_of_shape<'a>(rows: &'a [&Row], table: TableKind, b: u32) -> impl Iterator<Item = &'a Row> {
    rows.iter().copied().filter(move |row| (row.table, row.b) == (table, b))
}

fn format_bytes(bytes: u64) -> String {
    let (unit, shift) = if bytes >= 1 << 20 { ("MiB", 20) } else { ("KiB", 10) };
    format!("{:.0} {unit}", bytes as f64 / f64::from(1 << shift))
}

fn table(measured: &[Measured<Case, Row>]) -> Table {
    let cells = |(case, row): (&Case, &Row)| {
        let star = if row.times.are_disturbed() { " *" } else { "" };
        let time = |operation| match row.times.of(operation) {
            Some(Quartiles { low, median, high }) => format!("{median:.1} ({low:.1}–{high:.1}){star}"),
            None => String::from("-"),
        };
        let shape = format!("{} b = {}", row.table, row.b);
        [format_bytes(case.size), shape, row.items.to_string()].into_iter().chain(Operation::ALL.map(time)).collect()
    };
    Table::new(
        "Nanoseconds per key by the size of the table, one key at a time: medians (quartiles). A star: disturbed by other work \
         on the processor",
        &["size", "table", "items", "find absent", "find present", "insert", "remove", "build"],
        measured.iter().flat_map(|m| m.rows.iter().map(|row| (&m.case, row))).map(cells),
    )
}

#[cfg(test)]
mod tests {
    use super::{super::tests::shown, *};

    #[test]
    fn sizes_are_within_the_limit() {
        let sizes = |quick, max_slots| {
            let cases = Speed.cases(&Scope { quick, seed: 1, max_slots });
            cases.iter().map(|case| case.size).collect::<Vec<_>>()
        };
        assert_eq!(sizes(false, None), SIZES);
        assert_eq!(sizes(true, None), SIZES[..QUICK_SIZES]);
        assert_eq!(sizes(false, Some(50_000)), [SIZES[0], SIZES[1], 75_000]);
        assert_eq!(sizes(true, Some(1000)), [1500]);
        assert!(sizes(true, Some(600)).is_empty());
    }

    #[test]
    fn tables_have_the_requested_size() {
        for size in SIZES {
            for (table, b) in SHAPES {
                let params = params(table, b, size).expect("valid parameters");
                let load = params.capacity() as f64 / params.slots() as f64;
                assert!(load > if b == 1 { 0.24 } else { 0.85 }, "{size} {b}: {load}");
                assert!((0.99..1.01).contains(&(params.table_bytes() as f64 / size as f64)), "{size} {b}: {params}");
            }
        }
    }

    #[test]
    fn every_shape_is_timed() {
        let set_disturbed = |row: &mut Row, is: bool| row.times.0.insert(String::from("disturbed"), is.into());
        let case = Case { size: 4 << 10, quick: true };
        let mut rows = Speed.measure(&case, 1, &Interrupt::new()).expect("the measurement is not interrupted");
        assert_eq!(rows.iter().map(|row| (row.table, row.b)).collect::<Vec<_>>(), SHAPES);
        for row in &mut rows {
            assert!(row.items > 100 && row.times.medians().is_some_and(|times| times.iter().all(|&ns| ns > 0.0)), "{row:?}");
            set_disturbed(row, false);
        }
        // A second size makes a finding possible.
        let larger = rows.iter().cloned().map(|row| Row { bytes: 4 * row.bytes, ..row }).collect();
        let mut measured = [Measured { case, rows }, Measured { case: Case { size: 16 << 10, quick: true }, rows: larger }];
        let found = shown(&Speed, &measured[..1]);
        assert_eq!((found.charts.len(), found.tables[0].rows.len()), (5, SHAPES.len()));
        let has_no_finding = |chart: &Chart| chart.finding.is_none() && chart.series.len() == DRAWN.len();
        assert!(found.charts.iter().all(has_no_finding), "{:?}", found.charts);
        assert!(shown(&Speed, &measured).charts.iter().all(|chart| chart.finding.is_some()));
        set_disturbed(&mut measured[1].rows[0], true);
        let disturbed = shown(&Speed, &measured);
        assert_eq!(disturbed.warnings.len(), 1);
        for chart in &disturbed.charts {
            let marked = chart.series.last().expect("a series");
            assert!(chart.finding.is_none() && marked.name == "disturbed" && marked.points.len() == 1, "{}", chart.file);
        }
        assert!(Speed.findings(&[]).charts.is_empty());
    }
}
