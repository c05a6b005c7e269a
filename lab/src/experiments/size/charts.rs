//! Charts and tables of the times.

use super::{Case, Row};
use crate::{
    chart::{Axis, Chart, Mark, Series},
    experiment::{Findings, Measured, Table},
    experiments::{probe::Kind, times::Operation},
    statistics::Quartiles,
};

/// The shapes that are drawn, as many as there are colours. The others lie between them.
const DRAWN: [(Kind, u32); 6] =
    [(Kind::Packed, 4), (Kind::Single, 4), (Kind::Single, 1), (Kind::Single, 2), (Kind::Single, 8), (Kind::Single, 16)];

/// An operation with the texts of its chart.
struct Shown {
    operation: Operation,
    file: &'static str,
    topic: &'static str,
    /// What one of them is called.
    one: &'static str,
}

const SHOWN: [Shown; 5] = [
    Shown {
        operation: Operation::FindAbsent,
        file: "find-absent",
        topic: "Look-ups of absent keys, by size of the table",
        one: "A look-up of an absent key",
    },
    Shown {
        operation: Operation::FindPresent,
        file: "find-present",
        topic: "Look-ups of present keys, by size of the table",
        one: "A look-up of a present key",
    },
    Shown {
        operation: Operation::Insert,
        file: "insert",
        topic: "Insertions into filters that are nearly full, by size of the table",
        one: "The last insertions: one",
    },
    Shown { operation: Operation::Remove, file: "remove", topic: "Removals, by size of the table", one: "A removal" },
    Shown {
        operation: Operation::Build,
        file: "build",
        topic: "Insertions into empty filters up to the planned load, by size of the table",
        one: "All insertions: one",
    },
];

pub(super) fn findings(measured: &[Measured<Case, Row>]) -> Findings {
    let mut rows: Vec<_> = measured.iter().flat_map(|measured| &measured.rows).collect();
    rows.sort_by_key(|row| row.bytes);
    let mut charts: Vec<_> = SHOWN.iter().map(|shown| chart(&rows, shown)).collect();
    charts.retain(|chart| !chart.series.is_empty());
    Findings {
        charts,
        tables: if measured.is_empty() { Vec::new() } else { vec![table(measured)] },
        warnings: warning(&rows).into_iter().collect(),
    }
}

fn warning(rows: &[&Row]) -> Option<String> {
    let disturbed = rows.iter().filter(|row| row.times.are_disturbed()).count();
    (disturbed > 0).then(|| {
        format!(
            "Other work on the processor disturbed more than half of the rounds, also when they were measured again, of \
             {disturbed} of {} filters: their times are too long. A star marks them in the table. Measure again on a machine that \
             does nothing else.",
            rows.len()
        )
    })
}

fn chart(rows: &[&Row], shown: &Shown) -> Chart {
    let mut series = Vec::new();
    for (colour, (table, b)) in DRAWN.into_iter().enumerate() {
        let time = |row: &Row| Some((row.bytes as f64 / 1024.0, row.times.of(shown.operation)?));
        let times: Vec<(f64, Quartiles)> = of_shape(rows, table, b).filter_map(time).collect();
        if !times.is_empty() {
            let points = times.iter().map(|(kib, time)| (*kib, time.median)).collect();
            let quartiles = times.iter().map(|(_, time)| (time.low, time.high)).collect();
            series.push(Series::new(table.label(b), colour, points).marked(Mark::Points).within(quartiles));
        }
    }
    let packed: Vec<_> = of_shape(rows, Kind::Packed, 4).collect();
    let ends = packed.first().zip(packed.last()).filter(|(first, last)| first.bytes < last.bytes);
    let finding = ends.and_then(|(first, last)| {
        let ns = |row: &Row| Some(row.times.of(shown.operation)?.median);
        let (one, small, large) = (shown.one, binary(first.bytes), binary(last.bytes));
        Some(format!("{one} takes {:.1} ns in {small} of a packed table, and {:.1} ns in {large}", ns(first)?, ns(last)?))
    });
    Chart {
        file: shown.file.to_owned(),
        topic: shown.topic.to_owned(),
        finding,
        caption: String::from(
            "Nanoseconds for a key, with hashing, one key at a time: medians of the rounds, and bars between their quartiles. \
             Times rise where a table no longer fits into one of the processor's caches. All but the packed ones are single \
             tables.",
        ),
        x: Axis::log("size of the table, KiB"),
        y: Axis::linear("ns").from_zero(),
        series,
    }
}

fn of_shape<'a>(rows: &'a [&Row], table: Kind, b: u32) -> impl Iterator<Item = &'a Row> {
    rows.iter().copied().filter(move |row| (row.table, row.b) == (table, b))
}

/// A size in a binary unit.
fn binary(bytes: u64) -> String {
    let (unit, shift) = if bytes >= 1 << 20 { ("MiB", 20) } else { ("KiB", 10) };
    format!("{:.0} {unit}", bytes as f64 / f64::from(1 << shift))
}

fn table(measured: &[Measured<Case, Row>]) -> Table {
    let mut table = Table::new(
        "Nanoseconds per key by the size of the table, one key at a time: medians (quartiles). A star: disturbed by other work \
         on the processor",
        &["size", "table", "items", "find absent", "find present", "insert", "remove", "build"],
    );
    for measured in measured {
        for row in &measured.rows {
            let star = if row.times.are_disturbed() { " *" } else { "" };
            let shape = format!("{} b = {}", row.table.name(), row.b);
            let mut cells = vec![binary(measured.case.size), shape, row.items.to_string()];
            cells.extend(SHOWN.iter().map(|shown| match row.times.of(shown.operation) {
                Some(Quartiles { low, median, high }) => format!("{median:.1} ({low:.1}–{high:.1}){star}"),
                None => String::from("-"),
            }));
            table.rows.push(cells);
        }
    }
    table
}
