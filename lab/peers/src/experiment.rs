//! Defines the comparison as an experiment of the laboratory: the sets of filters, and the texts of the result files.

use koel_lab::{About, Column, Experiment, Findings, Interrupt, Interrupted, Measured, Role, Scope, Stopwatch};
use serde::{Deserialize, Serialize};

use crate::{
    findings,
    measure::{Contestant, Entry, Row},
    ours,
    peer::Keys,
    rivals,
};

/// A set of filters to compare.
pub(crate) struct Set {
    /// The beginning of the names of result files.
    pub(crate) name: &'static str,
    title: &'static str,
    about: &'static str,
    /// The functions that return koel's filters and those of other crates, given a false-positive rate and a number of items. Rates
    /// are as near as possible to the given one.
    contestants: [fn(f64, usize) -> Vec<Contestant>; 2],
    /// The bytes that an item takes at most: those of its keys, and those of the largest filter while it is built.
    pub(crate) bytes_per_item: u64,
    /// The columns of the table.
    pub(crate) columns: &'static [findings::Column],
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
    pub(crate) fn contestants(&self, rate: f64, items: usize) -> Vec<Contestant> {
        self.contestants.iter().flat_map(|some| some(rate, items)).collect()
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
    columns: &findings::FIXED,
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
    columns: &findings::GROWING,
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

/// A comparison, as the command's options define it.
#[derive(Clone, Copy)]
pub(crate) struct Peers {
    pub(crate) set: &'static Set,
    pub(crate) rate: f64,
    pub(crate) items: usize,
    pub(crate) rounds: u32,
}

/// A round that measures every filter. With one case per filter, a machine that becomes slower, or a run that is continued later,
/// would put some filters at a disadvantage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Case {
    pub(crate) items: usize,
    /// The false-positive rate of all filters, in billionths. It is an integer, so that cases can be compared for equality.
    rate_per_billion: u32,
    round: u32,
}

impl Case {
    /// Returns the case of a round. Rounds are numbered from 1.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is at most 1")]
    pub(crate) fn new(items: usize, rate: f64, round: u32) -> Self {
        Self { items, rate_per_billion: (rate * 1e9).round() as u32, round }
    }

    pub(crate) fn rate(&self) -> f64 {
        f64::from(self.rate_per_billion) / 1e9
    }
}

impl Experiment for Peers {
    type Case = Case;
    type Row = Entry;

    fn about(&self) -> About {
        let columns = [
            ("items", "items", "keys that the filter was built for", Role::Key),
            ("rate_per_billion", "1e-9", "false-positive rate that filters were built for, in billionths", Role::Key),
            ("round", "", "number of the round, from 1", Role::Round),
            ("filter", "", "name of the filter", Role::Key),
            ("family", "", "kind of structure", Role::Key),
            ("asked_rate", "", "false-positive rate that this filter was built for; empty if it cannot be chosen", Role::Exact),
            ("add_ns", "ns", "time to insert a key", Role::Time),
            ("find_absent_ns", "ns", "time to look up a key that is absent", Role::Time),
            ("find_present_ns", "ns", "time to look up a key that is present", Role::Time),
            ("find_mixed_ns", "ns", "time to look up a key if about half of the keys are present", Role::Time),
            ("remove_ns", "ns", "time to remove a key; empty without removal", Role::Time),
            ("rate", "", "measured false-positive rate, 0 to 1: absent keys that were found", Role::share("items")),
            ("expected_rate", "", "false-positive rate by its formula, 0 to 1", Role::Exact),
            ("bits_per_item", "bits", "bits of memory on the heap, divided by items", Role::Exact),
            ("lost", "keys", "inserted keys that were not found", Role::Exact),
            ("stuck", "keys", "inserted keys that could not be removed", Role::Exact),
            ("left", "keys", "keys that were found after all had been removed", Role::Exact),
            ("lost_by_removal", "keys", "keys that were lost when others were removed; empty without removal", Role::Exact),
            ("disturbed", "times", "times that other work on the processor disturbed", Role::Detail),
            ("error", "", "why this filter could not be measured", Role::Detail),
        ];
        let columns = columns.map(|(name, unit, about, role)| Column::new(name, unit, about).compared(role)).into();
        let about = About::new(self.set.name, self.set.title, self.set.about);
        About { columns, is_timed: true, memory_remedy: "give fewer --items", ..about }
    }

    fn cases(&self, _: &Scope) -> Vec<Case> {
        (1..=self.rounds).map(|round| Case::new(self.items, self.rate, round)).collect()
    }

    fn memory(&self, case: &Case) -> u64 {
        case.items as u64 * self.set.bytes_per_item
    }

    fn measure(&self, case: &Case, _: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Entry>> {
        // Keys depend only on the number of items, not on the seed.
        let keys = Keys::new(case.items)?;
        Ok(round(&self.set.contestants(case.rate(), case.items), &keys, &mut Stopwatch::new(), interrupt)?)
    }

    fn findings(&self, measured: &[Measured<Case, Entry>]) -> Findings {
        findings::findings(self.set, measured)
    }
}

/// Measures every filter once. If one of them fails, it still measures the others.
pub(crate) fn round(
    contestants: &[Contestant],
    keys: &Keys,
    watch: &mut Stopwatch,
    interrupt: &Interrupt,
) -> Result<Vec<Entry>, Interrupted> {
    let mut entries = Vec::new();
    for contestant in contestants {
        interrupt.check()?;
        entries.push(Entry::new(contestant.facts.clone(), contestant.measure(keys, watch)));
    }
    Ok(entries)
}
