//! The sets of filters to compare, with the columns of their tables and the texts of their result files.

use std::collections::HashSet;

use koel_lab::percent;

use crate::{
    measure::{Contestant, Row, Sample},
    ours, rivals,
};

/// A set of filters to compare.
pub(crate) struct Set {
    /// The beginning of the names of result files.
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    /// The functions that return koel's filters and those of other crates, given a false-positive rate and a number of items. Rates
    /// are as near as possible to the given one.
    contestants: [fn(f64, usize) -> Vec<Contestant>; 2],
    /// The bytes that an item takes at most: those of its keys, and those of the largest filter while it is built.
    pub(crate) bytes_per_item: u64,
    /// The columns of the table.
    pub(crate) columns: &'static [Column],
    /// The beginning of the table's caption.
    pub(crate) built: &'static str,
    /// The end of the table's caption.
    pub(crate) note: &'static str,
    /// The topics of the charts: lookups, building, removals.
    pub(crate) topics: [&'static str; 3],
    /// Returns true if a filter meets the requirements of the comparison.
    pub(crate) is_comparable: fn(&Row) -> bool,
    /// A description of the filters that do not meet them.
    pub(crate) others: &'static str,
}

impl Set {
    /// Returns the filters, each name once.
    pub(crate) fn contestants(&self, rate: f64, items: usize) -> Vec<Contestant> {
        // With few items, different plans give the same filter. Names tell rows apart, so its two would be one with twice the rounds.
        let mut names = HashSet::new();
        let all = self.contestants.iter().flat_map(|some| some(rate, items));
        all.filter(|contestant| names.insert(contestant.facts.filter.clone())).collect()
    }
}

/// The filters of a fixed size. Each is built for the number of items that it gets.
pub(crate) static FIXED: Set = Set {
    name: "peers",
    title: "Koel and other filters",
    about: "The paper's table 3 with today's crates: koel and others, each built for the same false-positive rate ε from the same \
            keys, in one thread and in the same rounds. The paper compares its cuckoo filter, plain and semi-sorted, with a Bloom, \
            a blocked Bloom, a quotient and a d-left counting Bloom filter. We know no crate of the last; instead, there are a \
            counting Bloom filter and the binary fuse filters, which are static. Filters with fingerprints of whole bits, koel \
            among them, are built for the nearest ε that they can have. \"Its own ε\": it cannot be chosen, or, for koel, the \
            filter has as many bits per item as the packed table. Other cuckoo filters and qfilter have a power of two of slots, \
            so the number of items determines their load, and with it their size, speed and ε. Filters that accept a hasher use \
            XXH3, as koel does; otherwise, or if their own is faster, the row names it.",
    contestants: [ours::fixed, rivals::fixed],
    // A static filter takes the most.
    bytes_per_item: 60,
    columns: &FIXED_COLUMNS,
    built: "Built for",
    note: "Times include hashing. The overhead is the bits per item beyond log₂(1/ε) for the measured ε, which makes filters of \
           different rates comparable",
    topics: ["Time to look up an absent item, by space", "Time to build, by space", "Time to remove, by space"],
    is_comparable: |row| row.facts.asked_rate.is_some(),
    others: "filters with a rate of their own, higher or lower; the table has it, and the overhead, which takes it into account",
};

/// The filters that begin small and grow with their items.
pub(crate) static GROWING: Set = Set {
    name: "growth",
    title: "Koel and other filters that grow",
    about: "Filters that begin with room for 1000 items, or with koel's own choice, and grow, in one thread and in the same rounds: \
            koel and other crates, each of which promises the same false-positive rate ε, which is measured when all items are in \
            the filter. Then half of the items are removed, and the other half is looked up: it must still be found. \
            \"max_capacity\" is how many items a filter is told that it may get. qfilter has to be told, and then does not grow any \
            further; koel grows beyond its plan. In its second row, aleph-filter is built for a lower ε, which doubles with its \
            size, up to the promised one. A Bloom filter that has its final size from the beginning shows what growth costs.",
    contestants: [ours::growing, rivals::growing],
    // aleph-filter takes the most: this was measured with 10 M items, while it doubles.
    bytes_per_item: 300,
    columns: &GROWING_COLUMNS,
    built: "Grown to",
    note: "Times include hashing and all growth. ε is kept if the share of absent keys that were found is at most the promised one, \
           with a margin of three standard deviations. Lost by removals are items that were not found any more when the other half \
           had been removed",
    topics: [
        "Time to look up an absent item after growth, by space",
        "Time to add, by space",
        "Time to remove after growth, by space",
    ],
    is_comparable: |row| row.keeps_rate() == Some(true) && row.lost_by_removal().unwrap_or(0) == 0,
    others: "filters that did not keep the promised rate, or lost items when others were removed",
};

/// A column of the table. `cell` returns `None` if the value is unknown or the filter does not support the operation.
pub(crate) struct Column {
    pub(crate) header: &'static str,
    pub(crate) cell: fn(&Row) -> Option<String>,
}

const FILTER: Column =
    Column { header: "filter", cell: |row| Some(row.facts.filter.clone() + if row.disturbed().is_some() { " *" } else { "" }) };
const ADD: Column = Column { header: "add ns", cell: |row| time(row, |sample| Some(sample.add_ns)) };
const FIND_ABSENT: Column = Column { header: "find absent ns", cell: |row| time(row, |sample| Some(sample.find_absent_ns)) };
const FIND_PRESENT: Column = Column { header: "find present ns", cell: |row| time(row, |sample| Some(sample.find_present_ns)) };
const FIND_MIXED: Column = Column { header: "find mixed ns", cell: |row| time(row, |sample| Some(sample.find_mixed_ns)) };
const REMOVE: Column = Column { header: "remove ns", cell: |row| time(row, |sample| sample.remove_ns) };
const RATE: Column = Column {
    header: "measured ε",
    cell: |row| match row.rate()? {
        // No absent item was found.
        0.0 => Some(format!("< {}", percent(1.0 / row.items as f64, 0))),
        rate => Some(percent(rate, 2)),
    },
};
const KEPT: Column = Column { header: "ε kept", cell: |row| Some(String::from(if row.keeps_rate()? { "yes" } else { "no" })) };
const BITS: Column = Column { header: "bits per item", cell: |row| Some(format!("{:.2}", row.bits_per_item()?)) };
const OVERHEAD: Column =
    Column { header: "overhead over log₂(1/ε), bits", cell: |row| Some(format!("{:.2}", row.overhead()?)) };
const LOST: Column = Column { header: "lost by removals", cell: |row| Some(row.lost_by_removal()?.to_string()) };

const FIXED_COLUMNS: [Column; 9] = [FILTER, ADD, FIND_ABSENT, FIND_PRESENT, FIND_MIXED, REMOVE, RATE, BITS, OVERHEAD];
const GROWING_COLUMNS: [Column; 9] = [FILTER, ADD, FIND_ABSENT, FIND_PRESENT, REMOVE, RATE, KEPT, BITS, LOST];

/// Formats the median of a time with its quartiles, or without them if they look equal.
fn time(row: &Row, of: fn(&Sample) -> Option<f64>) -> Option<String> {
    let time = row.time(of)?;
    let [low, median, high] = [time.low, time.median, time.high].map(|time| format!("{time:.1}"));
    Some(if low == high { median } else { format!("{median} ({low}–{high})") })
}
