//! What the results show: a table, notes on its rows, and charts of time against space. A row that other work on the processor
//! disturbed has a star, and is in no headline.

use koel_lab::{Axis, Chart, Findings, Mark, Measured, Quartiles, Series, Table};

use crate::{
    experiment::{self, Case, Peers, Set},
    measure::{Entry, Record, Row, Sample},
    peer::Family,
};

pub(crate) fn of(set: Set, measured: &[Measured<Case, Entry>]) -> Findings {
    let rows = experiment::rows(measured);
    let records: Vec<_> = rows.iter().filter_map(Row::record).collect();
    let peers = measured.first().map(|Measured { case, .. }| {
        let rounds = u32::try_from(measured.len()).unwrap_or(u32::MAX);
        Peers { set, rate: case.rate(), items: case.items(), rounds }
    });
    Findings {
        charts: charts(set, &records, peers.map_or(0, |peers| peers.items), records.len() < rows.len()),
        tables: peers.map_or_else(Vec::new, |peers| tables(peers, &rows)),
        warnings: warning(&rows).into_iter().collect(),
    }
}

/// The tables in Markdown, with an explanation.
pub(crate) fn markdown(peers: Peers, rows: &[Row]) -> String {
    let mut text = String::new();
    for table in tables(peers, rows) {
        let rule: Vec<_> = (0..table.header.len()).map(|column| String::from(if column > 0 { "---:" } else { "---" })).collect();
        for cells in [&table.header, &rule].into_iter().chain(&table.rows) {
            text.extend(["| ", &cells.join(" | "), " |\n"]);
        }
        text.extend(["\n", &table.caption, ".\n\n"]);
    }
    text + match peers.set {
        Set::Fixed => LEGEND_FIXED,
        Set::Growing => LEGEND_GROWING,
    }
}

/// The results, and the notes on them if there are any.
fn tables(Peers { set, rate, items, rounds }: Peers, rows: &[Row]) -> Vec<Table> {
    let rounds = if rounds == 1 { String::from("one round") } else { format!("medians of {rounds} rounds (quartiles)") };
    let (columns, caption) = match set {
        Set::Fixed => (
            &FIXED,
            format!(
                "Built for ε = {rate}, with {items} items; {rounds}, times with hashing, in one thread. The overhead is the bits per \
                 item beyond log₂(1/ε) for the measured ε, which makes filters of different rates comparable"
            ),
        ),
        Set::Growing => (
            &GROWING,
            format!(
                "Grown to {items} items, with a promised ε of {rate}; {rounds}, times with hashing and all growth, in one thread. Lost \
                 by removals are items that were not found any more when the other half had been removed"
            ),
        ),
    };
    let is_any_disturbed = rows.iter().any(|row| row.disturbed().is_some());
    let caption = caption + if is_any_disturbed { ". A star: other work on the processor disturbed the times" } else { "" };
    let mut table = Table::new(&caption, &columns.each_ref().map(|column| column.header));
    table.rows.extend(rows.iter().map(|row| cells(columns, row, items)));
    let mut noted = Table::new("Notes on the rows", &["filter", "note"]);
    for row in rows {
        noted.rows.extend(notes(row, items).into_iter().map(|note| vec![row.filter().to_owned(), note]));
    }
    [table].into_iter().chain((!noted.rows.is_empty()).then_some(noted)).collect()
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

/// A column: its header, and its cell for a filter with these results and this number of items.
struct Column {
    header: &'static str,
    cell: fn(&Record, usize) -> String,
}

const DASH: &str = "–";

const FILTER: Column =
    Column { header: "filter", cell: |record, _| record.filter.clone() + if record.disturbed { " *" } else { "" } };
const ADD: Column = Column { header: "add ns", cell: |record, _| time(record.add_ns) };
const FIND_ABSENT: Column = Column { header: "find absent ns", cell: |record, _| time(record.find_absent_ns) };
const FIND_PRESENT: Column = Column { header: "find present ns", cell: |record, _| time(record.find_present_ns) };
const REMOVE: Column = Column { header: "remove ns", cell: |record, _| or_dash(record.remove_ns.map(time)) };

const FIXED: [Column; 9] = [
    FILTER,
    ADD,
    FIND_ABSENT,
    FIND_PRESENT,
    Column { header: "find mixed ns", cell: |record, _| time(record.find_mixed_ns) },
    REMOVE,
    Column {
        header: "measured ε",
        cell: |record, items| {
            if record.rate > 0.0 { format!("{:.2e}", record.rate) } else { format!("< {:.0e}", 1.0 / items as f64) }
        },
    },
    Column { header: "bits per item", cell: |record, _| format!("{:.2}", record.bits_per_item) },
    Column {
        header: "overhead over log₂(1/ε), bits",
        cell: |record, _| or_dash(record.overhead().map(|overhead| format!("{overhead:.2}"))),
    },
];

const GROWING: [Column; 9] = [
    FILTER,
    ADD,
    FIND_ABSENT,
    FIND_PRESENT,
    REMOVE,
    Column { header: "measured ε", cell: |record, items| percent(record.rate, items) },
    Column {
        header: "ε kept",
        cell: |record, items| or_dash(record.keeps_rate(items).map(|kept| String::from(if kept { "yes" } else { "no" }))),
    },
    Column { header: "bits per item", cell: |record, _| format!("{:.1}", record.bits_per_item) },
    Column { header: "lost by removals", cell: |record, _| or_dash(record.lost_by_removal.map(|lost| lost.to_string())) },
];

/// The explanation of the columns.
const LEGEND_FIXED: &str = "\
All filters are built for the same ε; those with fingerprints of whole bits, koel among them, for the nearest one that they can
have. *Its own ε*: the filter's rate cannot be chosen, or, for koel, it has as many bits per item as the packed table. The last
column is comparable between rates, since any filter needs log₂(1/ε) bits per item.

Times are nanoseconds per item in one thread, hashing included: medians, and in brackets the quartiles. *Add* builds the filter with all items, including its memory and
whatever a static filter needs. *Find* looks up as many absent keys as there are items, all items, and as many keys of which half
are present, in random order. *Remove* removes all items. *Bits per item* is the heap memory of the filter with all items.
Filters that accept a hasher use XXH3, as koel does; if they do not, or if their own hasher is faster, the row names it. Other
cuckoo filters and qfilter have a power of two of slots, so the number of items determines their load, and with it their size,
their speed and their ε; scalable_cuckoo_filter adds a table of twice the size when the first is full. A dash: not supported, or
no false positive was seen.
";

const LEGEND_GROWING: &str = "\
Each filter has room for 1000 items at the beginning, or koel for 16,000 if it is told no *capacity*, and then gets all of them,
one after the other. *max_capacity* is how many items it is told that it may get. qfilter has to be told, and then does not grow
any further; koel is otherwise planned for 16 M items, and grows beyond its plan. In its second row, aleph-filter is built for a
lower ε, which doubles with its size, up to the promised one. A fastbloom filter cannot grow: it has its final size from the
beginning.

Times are nanoseconds per item in one thread, hashing included, with all growth: medians, and in brackets the
quartiles. *Find* looks up as many absent keys as there
are items, and all items. *Remove* removes every other block of 1024 items, then the rest. *ε kept*: the share of absent keys
that were found is at most the promised one, with a margin of three standard deviations. *Bits per item* is the heap memory of
the filter with all items. *Lost by removals*: items that were not found any more when the other half had been removed. A
dash: not supported.
";

/// The cells of a row. Of a filter that failed, only the name is known.
fn cells(columns: &[Column], row: &Row, items: usize) -> Vec<String> {
    match row.record() {
        Some(record) => columns.iter().map(|column| (column.cell)(&record, items)).collect(),
        None => [row.filter()].into_iter().chain(columns.iter().skip(1).map(|_| DASH)).map(String::from).collect(),
    }
}

/// The median, with the quartiles if they differ from it.
pub(crate) fn time(time: Quartiles) -> String {
    spread(time, |time| format!("{time:.1}"))
}

/// The median with its quartiles in some form, without quartiles that look the same.
fn spread(times: Quartiles, form: impl Fn(f64) -> String) -> String {
    let [low, median, high] = [times.low, times.median, times.high].map(form);
    if low == high { median } else { format!("{median} ({low}–{high})") }
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| String::from(DASH))
}

/// A measured rate in per cent, with three digits; if no item was found, an upper bound of less than one item.
fn percent(rate: f64, items: usize) -> String {
    if rate <= 0.0 {
        return format!("< {} %", 100.0 / items as f64);
    }
    // Only all is shown as 100 %.
    let percent = if rate < 1.0 { (100.0 * rate).min(99.9) } else { 100.0 };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a few digits")]
    let digits = (2.0 - percent.log10().floor()).clamp(0.0, 9.0) as usize;
    format!("{percent:.digits$} %")
}

/// What a reader must know about the row.
fn notes(row: &Row, items: usize) -> Vec<String> {
    if let Some(error) = row.failure() {
        return vec![format!("could not be measured: {error:#}")];
    }
    let most = |column: fn(&Sample) -> usize| row.samples().iter().map(column).max().unwrap_or(0);
    let mut notes = Vec::new();
    if let Some((disturbed, rounds)) = row.disturbed() {
        notes.push(format!("other work on the processor disturbed {disturbed} of {rounds} rounds, also when they were repeated"));
    }
    let (lost, stuck) = (most(|sample| sample.lost), most(|sample| sample.stuck));
    if lost > 0 {
        notes.push(format!("false negatives: of {items} items, {lost} were lost when others were inserted"));
    }
    if stuck > 0 {
        notes.push(format!("of {items} items, {stuck} could not be removed"));
    }
    let left = most(|sample| sample.left);
    if left > 0 {
        notes.push(format!("of {items} items, {left} were still found after all had been removed"));
    }
    let lost = most(|sample| sample.lost_by_removal.unwrap_or(0));
    if lost > 0 {
        notes.push(format!("false negatives: {lost} items were lost when half of the {items} items were removed"));
    }
    if let Some(sample) = row.samples().iter().find(|sample| !is_likely(sample, items)) {
        let (rate, expected) = (sample.rate, sample.expected_rate);
        notes.push(format!("ε was {rate:.2e}, but {expected:.2e} was expected"));
    }
    notes
}

/// Whether the measured rate is within a factor of 3 of the expected one, with a margin for small counts.
pub(crate) fn is_likely(sample: &Sample, items: usize) -> bool {
    let (seen, expected) = (sample.rate * items as f64, sample.expected_rate * items as f64);
    seen <= 3.0 * expected + 10.0 && expected <= 3.0 * seen + 10.0
}

// The charts.

/// The charts of these results. Some filters may have failed: the titles then do not compare.
fn charts(set: Set, records: &[Record], items: usize, some_failed: bool) -> Vec<Chart> {
    let chart = |file, label, what, topic, time| {
        let chart = against_space(set, records, items, &Texts { file, label, what, topic }, time);
        if some_failed { Chart { finding: None, ..chart } } else { chart }
    };
    let [find, build, remove] = match set {
        Set::Fixed => ["Time to look up an absent item, by space", "Time to build, by space", "Time to remove, by space"],
        Set::Growing => {
            ["Time to look up after growth, by space", "Time to add, by space", "Time to remove after growth, by space"]
        }
    };
    vec![
        chart("find", "find an absent item, ns", "lookup", find, |record| Some(record.find_absent_ns)),
        chart("build", "build, ns per item", "item built", build, |record| Some(record.add_ns)),
        chart("remove", "remove an item, ns", "removal", remove, |record| record.remove_ns),
    ]
}

/// The families in the charts of filters of a fixed size. There are six colours that can be told apart, and counting Bloom
/// filters, four times as large as others, would squeeze all the rest into a corner.
const FAMILIES_FIXED: [(Family, &str); 6] = [
    (Family::Koel, "koel"),
    (Family::Cuckoo, "other cuckoo"),
    (Family::Quotient, "quotient"),
    (Family::Bloom, "Bloom"),
    (Family::Blocked, "blocked Bloom"),
    (Family::Fuse, "binary fuse (static)"),
];

/// The families in the charts of filters that grow.
const FAMILIES_GROWING: [(Family, &str); 5] = [
    (Family::Koel, "koel"),
    (Family::Cuckoo, "a list of cuckoo filters"),
    (Family::Quotient, "quotient"),
    (Family::Locked, "a lock in each call"),
    (Family::Aleph, "Aleph"),
];

/// The texts of a chart that differ between its kinds.
struct Texts {
    file: &'static str,
    label: &'static str,
    /// What takes time.
    what: &'static str,
    topic: &'static str,
}

fn against_space(set: Set, records: &[Record], items: usize, texts: &Texts, time: fn(&Record) -> Option<Quartiles>) -> Chart {
    let drawn = match set {
        Set::Fixed => &FAMILIES_FIXED[..],
        Set::Growing => &FAMILIES_GROWING[..],
    };
    let shown: Vec<_> = records.iter().filter(|record| drawn.iter().any(|(family, _)| *family == record.family)).collect();
    let point = |record| Some(Point { record, label: label(record), time: time(record)? });
    let all: Vec<_> = shown.into_iter().filter_map(point).collect();
    // Filled marks are comparable, hollow ones are not.
    let (alike, own): (Vec<_>, Vec<_>) = all.into_iter().partition(|point| is_comparable(set, point.record, items));
    let mut series = Vec::new();
    for (colour, &(family, name)) in drawn.iter().enumerate() {
        let [alike, own] =
            [&alike, &own].map(|points| points.iter().filter(|point| point.record.family == family).collect::<Vec<_>>());
        if !alike.is_empty() || !own.is_empty() {
            series.push(marks(name, colour, Mark::Dots, &alike));
        }
        // Hollow marks: a dashed line of one point is not visible.
        let hollow = |point| marks("", colour, Mark::DashedPoints, &[point]);
        series.extend(own.into_iter().map(hollow));
    }
    let sizes = alike.iter().chain(&own).map(|point| point.record.bits_per_item);
    let times = alike.iter().chain(&own).flat_map(|point| [point.time.low, point.time.median, point.time.high]);
    let y = within(Axis::log(texts.label), times);
    let (x, caption) = match set {
        Set::Fixed => (Axis::linear("bits per item"), CAPTION_FIXED),
        // The largest filter takes more than thirty times the space of the smallest.
        Set::Growing => (within(Axis::log("bits per item"), sizes), CAPTION_GROWING),
    };
    Chart {
        file: texts.file.to_owned(),
        topic: texts.topic.to_owned(),
        finding: finding(&alike, texts.what),
        caption: caption.to_owned(),
        x,
        y,
        series,
    }
}

/// A short name: without what every reader sees from the colour, or can do without. A star marks a disturbed row.
fn label(record: &Record) -> String {
    let is_ours = record.filter.starts_with("koel ");
    let is_detail = |part: &str| {
        ["XXH3", "foldhash", "SipHash", "its own ε"].contains(&part)
            || !is_ours && ["f = ", "load ", "remainders ", "sized ", "max_capacity "].iter().any(|start| part.starts_with(start))
    };
    let without_version = |part: &str| {
        let words = part.split(' ').filter(|word| !word.starts_with(|first: char| first.is_ascii_digit()) || is_ours);
        words.collect::<Vec<_>>().join(" ")
    };
    let parts = record.filter.split(", ").filter(|part| !is_detail(part)).enumerate();
    let parts = parts.map(|(place, part)| if place == 0 { without_version(part) } else { part.to_owned() });
    let name = parts.collect::<Vec<_>>().join(", ").replace("koel ", "").replace(" of 1024", "");
    let name = name.replace("load ", "").replace("0000000", "0 M").replace("000000", " M");
    name + if record.disturbed { " *" } else { "" }
}

/// A filter in a chart.
struct Point<'a> {
    record: &'a Record,
    label: String,
    time: Quartiles,
}

/// Whether the filter does what all of them were asked for.
fn is_comparable(set: Set, record: &Record, items: usize) -> bool {
    match set {
        Set::Fixed => record.asked_rate.is_some(),
        Set::Growing => record.keeps_rate(items) == Some(true) && record.lost_by_removal.unwrap_or(0) == 0,
    }
}

/// The smallest of koel's filters beside the smallest of the others that can delete, too: of those without locks, and not disturbed.
/// `None` without such a filter.
fn finding(comparable: &[Point<'_>], what: &str) -> Option<String> {
    let smallest = |is_ours: bool| {
        let deleting = comparable.iter().filter(|Point { record, .. }| {
            record.deletes && !record.disturbed && record.family != Family::Locked && (record.family == Family::Koel) == is_ours
        });
        // Of equal ones, the first: without batches.
        deleting.min_by(|one, other| one.record.bits_per_item.total_cmp(&other.record.bits_per_item))
    };
    let (ours, theirs) = (smallest(true)?, smallest(false)?);
    let [(bits, ns), (their_bits, their_ns)] = [ours, theirs].map(|point| (point.record.bits_per_item, point.time.median));
    let them = &theirs.label;
    Some(format!("Koel: {ns:.1} ns per {what}, {bits:.1} bits per item; {them}: {their_ns:.1} ns, {their_bits:.1} bits"))
}

/// A series of times with their quartiles, by bits per item.
fn marks(name: &str, colour: usize, mark: Mark, points: &[&Point<'_>]) -> Series {
    let at = |point: &&Point<'_>| (point.record.bits_per_item, point.time.median);
    let quartiles = points.iter().map(|point| (point.time.low, point.time.high)).collect();
    let labels = points.iter().map(|point| point.label.clone()).collect();
    Series::new(name, colour, points.iter().map(at).collect()).marked(mark).within(quartiles).labelled(labels)
}

const CAPTION_FIXED: &str = "Each mark is a row of the table with the same bits per item; nearer to the lower left corner is \
    better. The title compares the smallest two that delete and have the same rate, koel's and another's. Bars are quartiles of \
    the rounds. Hollow marks are filters with a rate of their own, higher or lower; the table has it, and the overhead, which \
    takes it into account. A star marks a row that other work on the processor disturbed. The counting Bloom filter is left out: \
    it takes four times the space of a plain one.";

const CAPTION_GROWING: &str = "Each mark is a row of the table with the same bits per item; nearer to the lower left corner \
    is better. The title compares the smallest two that delete, kept the promised rate, lost nothing and take no lock, koel's and \
    another's. Bars are quartiles of the rounds. Hollow marks are filters that did not keep the promised rate, or lost items when \
    others were removed. A star marks a row that other work on the processor disturbed.";

/// The axis with round ends close to these values, if there are any.
fn within(axis: Axis, values: impl Iterator<Item = f64>) -> Axis {
    match ends(values) {
        Some((low, high)) => axis.from_to(low, high),
        None => axis,
    }
}

/// The nearest round numbers below and above all values: whole powers of ten would leave most of a chart empty.
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
    fn shares_have_three_digits() {
        for (rate, text) in [
            (0.0, "< 0.00001 %"),
            (0.000_000_1, "0.0000100 %"),
            (0.000_935, "0.0935 %"),
            (0.001_25, "0.125 %"),
            (0.1, "10.0 %"),
            (0.999_7, "99.9 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(rate, 10_000_000), text);
        }
    }

    #[test]
    fn axes_end_close_to_the_points() {
        assert_eq!(ends([4.4, 170.0, 33.0].into_iter()), Some((4.0, 200.0)));
        assert_eq!(ends([1.0, 10.0].into_iter()), Some((1.0, 10.0)));
        assert_eq!(ends([0.55, 102.0].into_iter()), Some((0.5, 120.0)));
        assert_eq!(ends([].into_iter()), None);
        assert_eq!(ends([0.0].into_iter()), None);
    }
}
