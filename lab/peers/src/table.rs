//! The table in Markdown, and the notes below it.

use crate::{measure::Sample, row::Row};

const COLUMNS: usize = 9;

const HEADER: [&str; COLUMNS] = [
    "filter",
    "add ns",
    "find absent ns",
    "find present ns",
    "find mixed ns",
    "remove ns",
    "measured ε",
    "bits per item",
    "overhead over log₂(1/ε), bits",
];

/// The explanation of the columns.
const LEGEND: &str = "\
All filters are built for the same ε; those with fingerprints of whole bits, koel among them, for the nearest one that they can
have. *Its own ε*: the filter's rate cannot be chosen, or, for koel, it has as many bits per item as the packed table. The last
column is comparable between rates, since any filter needs log₂(1/ε) bits per item.

Times are nanoseconds per item in one thread, hashing included. *Add* builds the filter with all items, including its memory and
whatever a static filter needs. *Find* looks up as many absent keys as there are items, all items, and as many keys of which half
are present, in random order. *Remove* removes all items. *Bits per item* is the heap memory of the filter with all items.
Filters that accept a hasher use XXH3, as koel does; if they do not, or if their own hasher is faster, the row names it. Other
cuckoo filters and qfilter have a power of two of slots, so the number of items determines their load, and with it their size,
their speed and their ε; scalable_cuckoo_filter adds a table of twice the size when the first is full. A dash: not supported, or
no false positive was seen.
";

/// The table, its explanation and notes.
pub(crate) fn markdown(rows: &[Row], items: usize) -> String {
    let cells: Vec<_> = rows.iter().map(|row| cells(row, items)).collect();
    let header = HEADER.map(String::from);
    let width = |column: usize| {
        let cells = cells.iter().chain([&header]).map(|cells| cells[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let rule: [String; COLUMNS] = std::array::from_fn(|column| {
        let dashes = "-".repeat(widths[column] - usize::from(column > 0));
        if column > 0 { dashes + ":" } else { dashes }
    });
    let mut text = String::new();
    for line in [&header, &rule].into_iter().chain(&cells) {
        text += "|";
        for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
            let padding = " ".repeat(width - cell.chars().count());
            // Names are aligned left, numbers right.
            let (before, after) = if column > 0 { (&*padding, "") } else { ("", &*padding) };
            text.extend([" ", before, cell, after, " |"]);
        }
        text += "\n";
    }
    text += "\n";
    text += LEGEND;
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

fn cells(row: &Row, items: usize) -> [String; COLUMNS] {
    let dash = || String::from("–");
    let Some(record) = row.record() else {
        return std::array::from_fn(|column| if column == 0 { row.filter().to_owned() } else { dash() });
    };
    let time = |time: f64| format!("{time:.1}");
    let seen = record.rate > 0.0;
    [
        row.filter().to_owned(),
        time(record.add_ns),
        time(record.find_absent_ns),
        time(record.find_present_ns),
        time(record.find_mixed_ns),
        record.remove_ns.map_or_else(dash, time),
        if seen { format!("{:.2e}", record.rate) } else { format!("< {:.0e}", 1.0 / items as f64) },
        format!("{:.2}", record.bits_per_item),
        record.overhead().map_or_else(dash, |overhead| format!("{overhead:.2}")),
    ]
}

/// What a reader must know about the row.
pub(crate) fn notes(row: &Row, items: usize) -> Vec<String> {
    if let Some(error) = row.failure() {
        return vec![format!("could not be measured: {error:#}")];
    }
    let most = |column: fn(&Sample) -> usize| row.samples().iter().map(column).max().unwrap_or(0);
    let mut notes = Vec::new();
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
