//! The findings of the experiment: the paper's table 3 with measurements of today, the original beside it, and charts of time
//! against space.

use koel_lab::{Axis, Chart, Findings, Mark, Measured, Series, Table};

use crate::{
    experiment::{self, Case},
    peer::Family,
    row::{Entry, Record, Row},
    table,
};

pub(crate) fn of(measured: &[Measured<Case, Entry>]) -> Findings {
    let rows = experiment::rows(measured);
    let records: Vec<_> = rows.iter().filter_map(Row::record).collect();
    let charts = vec![
        against_space(&records, "find", "find an absent item, ns", "Looking up, by space", |record| Some(record.find_absent_ns)),
        against_space(&records, "build", "build, ns per item", "Building, by space", |record| Some(record.add_ns)),
        against_space(&records, "remove", "remove an item, ns", "Removing, by space", |record| record.remove_ns),
    ];
    let Some(case) = measured.first().map(|measured| &measured.case) else {
        return Findings { charts, tables: vec![paper()] };
    };
    let mut tables = vec![here(&rows, case, measured.len()), paper()];
    tables.extend(notes(&rows, case.items()));
    Findings { charts, tables }
}

const DASH: &str = "–";

fn here(rows: &[Row], case: &Case, rounds: usize) -> Table {
    let rounds = if rounds == 1 { String::from("one round") } else { format!("medians of {rounds} rounds") };
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
        let time = |time: f64| format!("{time:.1}");
        vec![
            row.filter().to_owned(),
            String::from(if record.deletes { "yes" } else { "no" }),
            format!("{:.2}", record.bits_per_item),
            record.overhead().map_or_else(|| String::from(DASH), |overhead| format!("{overhead:.2}")),
            seen(record.rate, case.items()),
            // Items per microsecond are millions per second.
            format!("{:.2}", 1000.0 / record.add_ns),
            time(record.find_absent_ns),
            time(record.find_present_ns),
            record.remove_ns.map_or_else(|| String::from(DASH), time),
        ]
    }));
    table
}

/// A measured rate in per cent, with three digits; if no item was found, an upper bound of less than one item.
fn seen(rate: f64, items: usize) -> String {
    if rate <= 0.0 {
        return format!("< {} %", 100.0 / items as f64);
    }
    let percent = 100.0 * rate;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few digits")]
    let digits = (2.0 - percent.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{percent:.digits$} %")
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

/// The families in the charts. There are six colours that can be told apart, and counting Bloom filters, four times as large
/// as others, would squeeze all the rest into a corner.
const DRAWN: [(Family, &str); 6] = [
    (Family::Koel, "koel"),
    (Family::Cuckoo, "other cuckoo"),
    (Family::Quotient, "quotient"),
    (Family::Bloom, "Bloom"),
    (Family::Blocked, "blocked Bloom"),
    (Family::Fuse, "binary fuse (static)"),
];

fn against_space(records: &[Record], file: &str, label: &str, title: &str, time: fn(&Record) -> Option<f64>) -> Chart {
    let mut series = Vec::new();
    for (colour, (family, name)) in DRAWN.into_iter().enumerate() {
        let records = records.iter().filter(|record| record.family == family);
        let points = records.filter_map(|record| Some((record.asked_rate.is_some(), (record.bits_per_item, time(record)?))));
        let (alike, own): (Vec<_>, Vec<_>) = points.partition(|(asked, _)| *asked);
        if !alike.is_empty() || !own.is_empty() {
            let alike = alike.into_iter().map(|(_, point)| point).collect();
            series.push(Series::new(name, colour, alike).marked(Mark::Dots));
        }
        // Hollow marks: a dashed line of one point is not visible.
        let hollow = |(_, point)| Series::new("", colour, vec![point]).marked(Mark::DashedPoints);
        series.extend(own.into_iter().map(hollow));
    }
    let y = Axis::log(label);
    let y = match ends(series.iter().flat_map(|series| &series.points).map(|point| point.1)) {
        Some((low, high)) => y.from_to(low, high),
        None => y,
    };
    Chart {
        file: file.to_owned(),
        title: title.to_owned(),
        caption: String::from(
            "Each mark is a row of the table with the same bits per item; nearer to the lower left corner is better. \
             Hollow marks and crosses are filters with a rate of their own, higher or lower; the table has it, and the overhead, which \
             takes it into account. The counting Bloom filter is left out: it takes four times the space of a plain one.",
        ),
        x: Axis::linear("bits per item"),
        y,
        series,
    }
}

/// The nearest 1, 2 or 5 times a power of ten below and above all values: whole powers would leave most of a chart empty.
fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let round = |value: f64| {
        let power = 10_f64.powf(value.log10().floor());
        [1.0, 2.0, 5.0, 10.0].map(|digit| digit * power)
    };
    let below = round(low).into_iter().rev().find(|&end| end <= low);
    let above = round(high).into_iter().find(|&end| end >= high);
    if low > 0.0 && low <= high { below.zip(above) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_three_digits() {
        for (rate, text) in [
            (0.0, "< 0.00001 %"),
            (0.000_000_1, "0.0000100 %"),
            (0.000_935, "0.0935 %"),
            (0.001_25, "0.125 %"),
            (0.1, "10.0 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(seen(rate, 10_000_000), text);
        }
    }

    #[test]
    fn axes_end_close_to_the_points() {
        assert_eq!(ends([4.4, 170.0, 33.0].into_iter()), Some((2.0, 200.0)));
        assert_eq!(ends([1.0, 10.0].into_iter()), Some((1.0, 10.0)));
        assert_eq!(ends([0.6, 95.0].into_iter()), Some((0.5, 100.0)));
        assert_eq!(ends([].into_iter()), None);
        assert_eq!(ends([0.0].into_iter()), None);
    }
}
