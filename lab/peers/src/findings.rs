//! Presents the results: a table, notes on its rows, and charts of times with the smallest filters first. A row that other work on
//! the processor disturbed has a star in the table and a special mark in the charts, and is not in a finding.

use koel_lab::{Axis, Chart, Findings, Mark, Measured, Quartiles, Series, Table};

use crate::{
    measure::{Case, Entry, Row, Sample},
    peer::Family,
    sets::{Column, Set},
};

pub(crate) fn findings(set: &Set, measured: &[Measured<Case, Entry>]) -> Findings {
    let rows = Row::all(measured);
    Findings { charts: charts(set, &rows), tables: tables(set, measured, &rows), warnings: warning(&rows).into_iter().collect() }
}

pub(crate) fn markdown(set: &Set, measured: &[Measured<Case, Entry>]) -> String {
    let text = |table: &Table| format!("{}\n{}.\n\n", table.markdown(), table.caption);
    tables(set, measured, &Row::all(measured)).iter().map(text).collect()
}

/// Returns the table of results, and a table of notes if there are any.
fn tables(set: &Set, measured: &[Measured<Case, Entry>], rows: &[Row]) -> Vec<Table> {
    let Some(Measured { case, .. }) = measured.first() else { return Vec::new() };
    let rounds = match measured.len() {
        1 => String::from("one round"),
        rounds => format!("medians of {rounds} rounds (quartiles)"),
    };
    let star = if rows.iter().any(|row| row.disturbed().is_some()) {
        ". A star: other work on the processor disturbed the times"
    } else {
        ""
    };
    let caption = format!("{} {} items, ε = {}; {rounds}, in one thread. {}{star}", set.built, case.items, case.rate(), set.note);
    let header: Vec<_> = set.columns.iter().map(|column| column.header).collect();
    let cell = |row: &Row, column: &Column| (column.cell)(row).unwrap_or_else(|| String::from("–"));
    let cells = rows.iter().map(|row| set.columns.iter().map(|column| cell(row, column)).collect());
    let table = Table::new(&caption, &header, cells);
    let notes = rows.iter().flat_map(|row| notes(row).into_iter().map(|note| vec![row.facts.filter.clone(), note]));
    let noted = Table::new("Notes on the rows", &["filter", "note"], notes);
    [table].into_iter().chain((!noted.rows.is_empty()).then_some(noted)).collect()
}

/// Returns a warning about filters that other work disturbed in too many rounds.
fn warning(rows: &[Row]) -> Option<String> {
    let disturbed: Vec<_> = rows.iter().filter(|row| row.disturbed().is_some()).map(|row| &*row.facts.filter).collect();
    (!disturbed.is_empty()).then(|| {
        format!(
            "Other work on the processor disturbed half of the rounds or more of {} of {} filters: {}. \
             Measure again on a machine that does nothing else.",
            disturbed.len(),
            rows.len(),
            disturbed.join("; ")
        )
    })
}

/// Returns notes on problems of a row.
fn notes(row: &Row) -> Vec<String> {
    if let Some(error) = &row.failure {
        return vec![format!("could not be measured: {error}")];
    }
    let items = row.items;
    let mut notes = Vec::new();
    if let Some((disturbed, rounds)) = row.disturbed() {
        notes.push(format!("other work on the processor disturbed {disturbed} of {rounds} rounds"));
    }
    let most = |column: fn(&Sample) -> usize| row.samples.iter().map(column).max().filter(|&most| most > 0);
    if let Some(lost) = most(|sample| sample.lost) {
        notes.push(format!("false negatives: of {items} items, {lost} were lost when others were inserted"));
    }
    if let Some(stuck) = most(|sample| sample.stuck) {
        notes.push(format!("of {items} items, {stuck} could not be removed"));
    }
    if let Some(left) = most(|sample| sample.left) {
        notes.push(format!("of {items} items, {left} were still found after all had been removed"));
    }
    if let Some(lost) = most(|sample| sample.lost_by_removal.unwrap_or(0)) {
        notes.push(format!("false negatives: {lost} items were lost when half of the {items} items were removed"));
    }
    if let Some(Sample { rate, expected_rate, .. }) = row.samples.iter().find(|sample| !is_likely(sample, items)) {
        notes.push(format!("ε was {rate:.2e}, but {expected_rate:.2e} was expected"));
    }
    notes
}

/// Returns true if the measured rate is within a factor of 3 of the expected one, with a margin for small counts.
pub(crate) fn is_likely(sample: &Sample, items: usize) -> bool {
    let (seen, expected) = (sample.rate * items as f64, sample.expected_rate * items as f64);
    seen <= 3.0 * expected + 10.0 && expected <= 3.0 * seen + 10.0
}

// Charts.

/// A filter in a chart.
struct Point<'a> {
    row: &'a Row,
    bits: f64,
    time: Quartiles,
}

fn charts(set: &Set, rows: &[Row]) -> Vec<Chart> {
    let [find, build, remove] = set.topics;
    vec![
        scatter(set, rows, ["find", find, "find an absent item, ns", "lookup"], |sample| Some(sample.find_absent_ns)),
        by_filter(set, rows, ["build", build, "build, ns per item", "item built"], |sample| Some(sample.add_ns)),
        by_filter(set, rows, ["remove", remove, "remove an item, ns", "removal"], |sample| sample.remove_ns),
    ]
}

/// The kinds of filters in the legend, each in its own color.
const KINDS: [&str; 4] = ["koel", "others that remove items", "others without removal", "a lock in each call"];
const DISTURBED: (usize, &str) = (Chart::MAX_COLORS - 1, "disturbed by other work");

fn color(row: &Row) -> usize {
    match row.facts.family {
        _ if row.disturbed().is_some() => DISTURBED.0,
        Family::Koel => 0,
        Family::Locked => 3,
        _ if row.deletes() => 1,
        _ => 2,
    }
}

/// Returns the filters that have this time, the smallest first.
fn points(rows: &[Row], time: fn(&Sample) -> Option<f64>) -> Vec<Point<'_>> {
    let mut points: Vec<_> =
        rows.iter().filter_map(|row| Some(Point { row, bits: row.bits_per_item()?, time: row.time(time)? })).collect();
    points.sort_by(|one, other| one.bits.total_cmp(&other.bits));
    points
}

impl Point<'_> {
    /// Returns the text that names the filter, with its figures.
    fn label(&self) -> String {
        format!("{}: {:.1} ns, {:.1} bits", name(self.row), self.time.median, self.bits)
    }
}

/// Returns the series of all filters, one for each color and mark. `series` returns the series of the points at these positions.
fn by_kind(set: &Set, points: &[Point<'_>], series: impl Fn(&[usize]) -> Series) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for (kind, name) in KINDS.into_iter().enumerate().chain([DISTURBED]) {
        for (mark, comparable) in [(Mark::Dots, true), (Mark::Rings, false)] {
            let is_in = |row: &Row| color(row) == kind && (set.is_comparable)(row) == comparable;
            let positions: Vec<_> = (0..points.len()).filter(|&position| is_in(points[position].row)).collect();
            if !positions.is_empty() {
                let is_new = all.iter().all(|other| other.color != kind);
                let name = String::from(if is_new { name } else { "" });
                all.push(Series { name, color: kind, mark, ..series(&positions) });
            }
        }
    }
    all
}

/// Returns a chart of time by space, in which the filters have numbers.
fn scatter(set: &Set, rows: &[Row], [file, topic, label, what]: [&str; 4], time: fn(&Sample) -> Option<f64>) -> Chart {
    let points = points(rows, time);
    let series = by_kind(set, &points, |positions| {
        let at = positions.iter().map(|&position| (points[position].bits, points[position].time.median));
        Series::new("", 0, at.collect()).numbered(positions.iter().map(|position| position + 1).collect())
    });
    let x = Axis { range: ends(points.iter().map(|point| point.bits)), ..Axis::log("bits per item") };
    let y = Axis { range: ends(points.iter().map(|point| point.time.median)), ..Axis::log(label) };
    Chart::new(file, topic, [x, y], series)
        .naming(points.iter().map(|point| format!("{}{}", if is_ours(point.row) { "koel " } else { "" }, point.label())).collect())
        .showing(finding(set, rows, &points, what))
        .captioned(format!(
            "Filters further left are smaller, and lower ones faster. The title compares the smallest two that remove items and have \
             a filled mark, koel's and another's, without locks and undisturbed. Hollow marks: {}.",
            set.others
        ))
}

/// Returns a chart of times, with a row for each filter.
fn by_filter(set: &Set, rows: &[Row], [file, topic, label, what]: [&str; 4], time: fn(&Sample) -> Option<f64>) -> Chart {
    let points = points(rows, time);
    // Rows are numbered from the lowest, and the smallest filter is in the highest.
    let rows_of_names = Axis::rows(points.iter().rev().map(Point::label).collect());
    let series = by_kind(set, &points, |positions| {
        let row = |position: usize| (points.len() - 1 - position) as f64;
        let at = positions.iter().rev().map(|&position| (points[position].time.median, row(position)));
        let quartiles = positions.iter().rev().map(|&position| (points[position].time.low, points[position].time.high));
        Series::new("", 0, at.collect()).within(quartiles.collect())
    });
    let times = points.iter().flat_map(|point| [point.time.low, point.time.high]);
    let x = Axis { range: ends(times), ..Axis::log(label) };
    Chart::new(file, topic, [x, rows_of_names], series).showing(finding(set, rows, &points, what)).captioned(format!(
        "The smallest filters are at the top; bars are quartiles of the rounds. The title compares the smallest two that remove \
         items and have a filled mark, koel's and another's, without locks and undisturbed. Hollow marks: {}.",
        set.others
    ))
}

fn is_ours(row: &Row) -> bool {
    row.facts.filter.starts_with("koel ")
}

/// Returns a short name, without the parts that the color shows or that readers do not need.
fn name(row: &Row) -> String {
    let is_detail = |part: &str| {
        ["XXH3", "foldhash", "SipHash", "its own ε"].contains(&part)
            || !is_ours(row) && ["f = ", "load ", "remainders ", "sized "].iter().any(|start| part.starts_with(start))
    };
    let parts: Vec<_> = row.facts.filter.split(", ").filter(|part| !is_detail(part)).collect();
    let name = parts.join(", ").replace("koel ", "").replace(" of 1024", "").replace("capacity 1000, max_", "max_");
    name.replace("0000000", "0 M").replace("000000", " M")
}

/// Returns a sentence that compares koel's smallest filter with the smallest of the others. Only filters that are comparable,
/// undisturbed and without locks count, and only if they support deletion. Returns `None` if there is no such pair.
fn finding(set: &Set, rows: &[Row], points: &[Point<'_>], what: &str) -> Option<String> {
    // After a failure, the smallest filter may be missing.
    if rows.iter().any(|row| row.failure.is_some()) {
        return None;
    }
    let smallest = |kind: usize| {
        let comparable = points.iter().filter(|point| color(point.row) == kind && (set.is_comparable)(point.row));
        // Among filters of equal size, the first is the one without batches.
        comparable.filter(|point| point.row.deletes()).min_by(|one, other| one.bits.total_cmp(&other.bits))
    };
    let (ours, theirs) = (smallest(0)?, smallest(1)?);
    let [(bits, ns), (their_bits, their_ns)] = [ours, theirs].map(|point| (point.bits, point.time.median));
    let them = theirs.row.facts.filter.split([' ', ',']).next()?;
    Some(format!("Koel: {ns:.1} ns per {what}, {bits:.1} bits per item; {them}: {their_ns:.1} ns, {their_bits:.1} bits"))
}

/// Returns the nearest round numbers below and above all values. Powers of ten alone would leave most of a chart empty.
fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let round = |value: f64| {
        let power = 10_f64.powf(value.log10().floor());
        [1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0].map(|digit| digit * power)
    };
    let below = round(low).into_iter().rev().find(|&end| end <= low);
    let above = round(high).into_iter().find(|&end| end >= high);
    if low > 0.0 && low <= high { below.zip(above) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_close_to_the_points() {
        assert_eq!(ends([4.4, 170.0, 33.0].into_iter()), Some((4.0, 200.0)));
        assert_eq!(ends([1.0, 10.0].into_iter()), Some((1.0, 10.0)));
        assert_eq!(ends([0.55, 102.0].into_iter()), Some((0.5, 120.0)));
        assert_eq!(ends([].into_iter()), None);
        assert_eq!(ends([0.0].into_iter()), None);
    }
}
