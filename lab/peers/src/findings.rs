//! The findings of the experiment: a table, charts of time against space, and for filters of a fixed size the paper's table 3.

mod charts;
mod labels;

use koel_lab::{Findings, Measured, Quartiles, Table};

use crate::{
    experiment::{self, Case},
    row::{Entry, Row},
    set::Set,
    table,
};

pub(crate) fn of(set: Set, measured: &[Measured<Case, Entry>]) -> Findings {
    let rows = experiment::rows(measured);
    let records: Vec<_> = rows.iter().filter_map(Row::record).collect();
    let case = measured.first().map(|measured| &measured.case);
    let mut tables = Vec::new();
    if let Some(case) = case {
        tables.push(match set {
            Set::Fixed => fixed(&rows, case, measured.len()),
            Set::Growing => growing(&rows, case, measured.len()),
        });
    }
    if set == Set::Fixed {
        tables.push(paper());
    }
    tables.extend(case.and_then(|case| notes(&rows, case.items())));
    Findings {
        charts: charts::of(set, &records, case.map_or(0, Case::items), records.len() < rows.len()),
        tables,
        warnings: warning(&rows).into_iter().collect(),
    }
}

/// Which filters other work disturbed in too many rounds, if any.
fn warning(rows: &[Row]) -> Option<String> {
    let disturbed: Vec<_> = rows.iter().filter(|row| row.disturbed().is_some()).map(Row::filter).collect();
    (!disturbed.is_empty()).then(|| {
        format!(
            "Other work on the processor disturbed half of the rounds or more, also when they were repeated, of {} of {} filters: {}. \
             Measure again on a machine that does nothing else.",
            disturbed.len(),
            rows.len(),
            disturbed.join("; ")
        )
    })
}

const DASH: &str = "–";

fn in_rounds(rounds: usize) -> String {
    if rounds == 1 { String::from("one round") } else { format!("medians of {rounds} rounds (quartiles)") }
}

fn growing(rows: &[Row], case: &Case, rounds: usize) -> Table {
    let (rate, items, rounds) = (case.rate(), case.items(), in_rounds(rounds));
    let caption = format!(
        "Grown to {items} items, with a promised ε of {rate}; {rounds}, times with hashing and all growth, in one thread. Lost by \
         removals are items that were not found any more when the other half had been removed"
    );
    let columns = table::columns(Set::Growing);
    let header: Vec<_> = columns.iter().map(|column| column.header).collect();
    let mut table = Table::new(&caption, &header);
    table.rows.extend(rows.iter().map(|row| table::cells(columns, row, items)));
    table
}

fn fixed(rows: &[Row], case: &Case, rounds: usize) -> Table {
    let rounds = in_rounds(rounds);
    let caption = format!(
        "Built for ε = {}, with {} items; {rounds}, times with hashing, in one thread. The overhead is the bits per item beyond \
         log₂(1/ε) for the measured ε, which makes filters of different rates comparable",
        case.rate(),
        case.items()
    );
    let header = [
        "filter",
        "deletes",
        "bits per item",
        "overhead, bits",
        "measured ε",
        "build, M items/s",
        "find absent, ns",
        "find present, ns",
        "remove, ns",
    ];
    let mut table = Table::new(&caption, &header);
    table.rows.extend(rows.iter().map(|row| {
        let Some(record) = row.record() else {
            let dashes = vec![String::from(DASH); header.len() - 1];
            return [vec![row.filter().to_owned()], dashes].concat();
        };
        let Quartiles { low, median, high } = record.add_ns;
        let per_microsecond = Quartiles { low: 1000.0 / high, median: 1000.0 / median, high: 1000.0 / low };
        vec![
            row.filter().to_owned(),
            String::from(if record.deletes { "yes" } else { "no" }),
            format!("{:.2}", record.bits_per_item),
            record.overhead().map_or_else(|| String::from(DASH), |overhead| format!("{overhead:.2}")),
            table::percent(record.rate, case.items()),
            // Items per microsecond are millions per second.
            table::spread(per_microsecond, |pace| format!("{pace:.2}")),
            table::time(record.find_absent_ns),
            table::time(record.find_present_ns),
            record.remove_ns.map_or_else(|| String::from(DASH), table::time),
        ]
    }));
    table
}

/// The paper's table 3, with the column "deletes" of its table 1: bits per item, ε in per cent, million items built per second.
const PAPER: [(&str, bool, f64, f64, &str); 6] = [
    ("cuckoo, fingerprints of 12 bits", true, 12.60, 0.19, "5.00"),
    ("cuckoo, semi-sorted, 13 bits", true, 12.58, 0.09, "3.13"),
    ("Bloom, 9 hash functions", false, 13.00, 0.19, "3.91"),
    ("blocked Bloom, blocks of 64 bytes", false, 13.00, 0.43, "7.64"),
    ("quotient, remainders of 9 bits", true, 13.33, 0.18, "about 1.9"),
    ("d-left counting Bloom", true, 15.51, 0.76, "4.78"),
];

fn paper() -> Table {
    let mut table = Table::new(
        "The paper's table 3, for comparison: filters of 192 MiB on two Xeon L5640 of 2.27 GHz, keys of 64 bits and CityHash. The \
         overhead is calculated from the columns of bits and ε",
        &["filter", "deletes", "bits per item", "overhead, bits", "measured ε", "build, M items/s"],
    );
    table.rows.extend(PAPER.iter().map(|&(filter, deletes, bits, percent, build)| {
        vec![
            filter.to_owned(),
            String::from(if deletes { "yes" } else { "no" }),
            format!("{bits:.2}"),
            format!("{:.2}", bits + (percent / 100.0).log2()),
            format!("{percent:.2} %"),
            build.to_owned(),
        ]
    }));
    table
}

/// The notes on all filters. `None` if there are none.
fn notes(rows: &[Row], items: usize) -> Option<Table> {
    let mut table = Table::new("Notes on the rows", &["filter", "note"]);
    for row in rows {
        table.rows.extend(table::notes(row, items).into_iter().map(|note| vec![row.filter().to_owned(), note]));
    }
    (!table.rows.is_empty()).then_some(table)
}
