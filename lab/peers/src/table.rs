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

/// How the columns are to be read.
const LEGEND: &str = "\
All are built for the same ε, and those that only have whole bits to choose from, koel too, for the one nearest to it. *Its own
ε*: it has no choice; koel's has as many bits as the packed table. The last column makes them comparable, for any filter needs
log₂(1/ε) bits an item.

Times are nanoseconds an item, hashing included, in one thread: *add* is from nothing to the filter with all items in it, its
memory and whatever a static filter needs included; *find* asks for as many absent keys as there are items, for all items, and
for as many keys of which half are items, in no order; *remove* takes all items out again. *Bits per item* is what the filter
holds on the heap when all items are in. Where a crate takes a hasher, it has XXH3, as koel does; if not, or if its own is
faster, the row names the hasher. Other cuckoo filters and qfilter have a power of two of slots, so the number of items decides
how full they are, and with it their size, their speed and their ε; scalable_cuckoo_filter adds a table of twice the size when
the first is full. A dash: it cannot, or nothing was seen.
";

/// Table, legend and notes.
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
            // Names to the left, numbers to the right.
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

/// What must be known to read the row rightly.
pub(crate) fn notes(row: &Row, items: usize) -> Vec<String> {
    if let Some(error) = row.failure() {
        return vec![format!("could not be measured: {error:#}")];
    }
    let most = |column: fn(&Sample) -> usize| row.samples().iter().map(column).max().unwrap_or(0);
    let mut notes = Vec::new();
    let (lost, stuck) = (most(|sample| sample.lost), most(|sample| sample.stuck));
    if lost > 0 {
        notes.push(format!("false negatives: of {items} items, {lost} were lost while others were added"));
    }
    if stuck > 0 {
        notes.push(format!("of {items} items, {stuck} could not be removed any more"));
    }
    let left = most(|sample| sample.left);
    if left > 0 {
        notes.push(format!("of {items} items, {left} were still found when all had been removed"));
    }
    if let Some(sample) = row.samples().iter().find(|sample| !is_likely(sample, items)) {
        let (rate, expected) = (sample.rate, sample.expected_rate);
        notes.push(format!("ε was {rate:.2e}, where {expected:.2e} was expected"));
    }
    notes
}

/// Whether the measured rate is what was expected, within a factor of 3, and within what chance does to small counts.
pub(crate) fn is_likely(sample: &Sample, items: usize) -> bool {
    let (seen, expected) = (sample.rate * items as f64, sample.expected_rate * items as f64);
    seen <= 3.0 * expected + 10.0 && expected <= 3.0 * seen + 10.0
}
