//! The table in Markdown, and the notes below it.

use koel_lab::Quartiles;

use crate::{
    measure::Sample,
    row::{Record, Row},
    set::Set,
};

/// A column: its header, and its cell for a filter with these results and this number of items.
pub(crate) struct Column {
    pub(crate) header: &'static str,
    cell: fn(&Record, usize) -> String,
}

const DASH: &str = "–";

const FILTER: Column = Column { header: "filter", cell: |record, _| record.filter.clone() };
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

pub(crate) fn columns(set: Set) -> &'static [Column] {
    match set {
        Set::Fixed => &FIXED,
        Set::Growing => &GROWING,
    }
}

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

/// The table, its explanation and notes.
pub(crate) fn markdown(set: Set, rows: &[Row], items: usize) -> String {
    let columns = columns(set);
    let header: Vec<_> = columns.iter().map(|column| column.header.to_owned()).collect();
    let cells: Vec<_> = rows.iter().map(|row| cells(columns, row, items)).collect();
    let width = |column: usize| {
        let cells = cells.iter().chain([&header]).map(|cells| cells[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns.len()).map(width).collect();
    // Names are aligned left, all else right.
    let rule = |(column, &width): (usize, &usize)| {
        if column > 0 { "-".repeat(width - 1) + ":" } else { "-".repeat(width) }
    };
    let rule: Vec<_> = widths.iter().enumerate().map(rule).collect();
    let mut text = String::new();
    for line in [&header, &rule].into_iter().chain(&cells) {
        text += "|";
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            let (before, after) = if column > 0 { (&*padding, "") } else { ("", &*padding) };
            text.extend([" ", before, cell, after, " |"]);
        }
        text += "\n";
    }
    text += "\n";
    text += match set {
        Set::Fixed => LEGEND_FIXED,
        Set::Growing => LEGEND_GROWING,
    };
    let notes: Vec<_> = rows
        .iter()
        .flat_map(|row| notes(row, items).into_iter().map(move |note| format!("- {}: {note}\n", row.filter())))
        .collect();
    if !notes.is_empty() {
        text += "\n";
        text.extend(notes);
    }
    text
}

/// The cells of a row. Of a filter that failed, only the name is known.
pub(crate) fn cells(columns: &[Column], row: &Row, items: usize) -> Vec<String> {
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
pub(crate) fn spread(times: Quartiles, form: impl Fn(f64) -> String) -> String {
    let [low, median, high] = [times.low, times.median, times.high].map(form);
    if low == high { median } else { format!("{median} ({low}–{high})") }
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| String::from(DASH))
}

/// A measured rate in per cent, with three digits; if no item was found, an upper bound of less than one item.
pub(crate) fn percent(rate: f64, items: usize) -> String {
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
pub(crate) fn notes(row: &Row, items: usize) -> Vec<String> {
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
}
