//! The comparison as an experiment of the laboratory.

use koel_lab::{About, Column, Experiment, Findings, Interrupt, Interrupted, Measured, Role, Scope, Stopwatch};
use serde::{Deserialize, Serialize};

use crate::{
    findings,
    measure::{self, Contestant, Entry, Row},
    ours,
    peer::Keys,
    rivals,
};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Set {
    /// Each filter is built for the number of items that it gets.
    Fixed,
    /// Each filter begins small and grows with its items.
    Growing,
}

impl Set {
    /// All filters of the set, as near to this false-positive rate as possible: koel's first.
    pub(crate) fn contestants(self, rate: f64) -> Vec<Box<dyn Contestant>> {
        let (ours, rivals) = match self {
            Self::Fixed => (ours::fixed(rate), rivals::fixed(rate)),
            Self::Growing => (ours::growing(rate), rivals::growing(rate)),
        };
        ours.into_iter().chain(rivals).collect()
    }

    /// The name with which its files begin.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fixed => "peers",
            Self::Growing => "growth",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Fixed => "Koel and other filters",
            Self::Growing => "Koel and other filters that grow",
        }
    }

    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Fixed => {
                "The paper's table 3 with present crates: koel and others, each built for the same false-positive rate from \
                 the same keys, in one thread and in the same rounds. The paper compares space, rate and construction speed of \
                 its cuckoo filter, plain and semi-sorted, with a Bloom, a blocked Bloom, a quotient and a d-left counting \
                 Bloom filter. We know no crate of the last; instead, there are a counting Bloom filter and the binary fuse \
                 filters, which are static. Times of lookups and removals are measured, too."
            }
            Self::Growing => {
                "Filters that begin with room for 1000 items, or with koel's own choice, and grow, in one thread and in the \
                 same rounds: koel and other crates, each of which promises the same false-positive rate. The rate is measured \
                 when all items are in the filter. Then half of the items are removed, and the other half is looked up: it \
                 must still be found. A Bloom filter that has its final size from the beginning shows what growth costs."
            }
        }
    }

    /// The keys, and the most that one of the filters takes for an item while it is built.
    pub(crate) fn bytes_per_item(self) -> u64 {
        match self {
            // A static filter.
            Self::Fixed => 60,
            // aleph-filter with 10 M items, while it doubles.
            Self::Growing => 300,
        }
    }
}

/// The comparison, as the options of the command define it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peers {
    pub(crate) set: Set,
    pub(crate) rate: f64,
    pub(crate) items: usize,
    pub(crate) rounds: u32,
}

/// A round, in which every filter is measured. With a case for each filter, a machine that becomes slower, or a run that is
/// continued later, would put some filters at a disadvantage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Case {
    items: usize,
    /// The false-positive rate of all filters, in billionths: an integer, so that cases can be compared for equality.
    rate_per_billion: u32,
    round: u32,
}

impl Case {
    /// The round with this number, from 1.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is at most 1")]
    pub(crate) fn new(items: usize, rate: f64, round: u32) -> Self {
        Self { items, rate_per_billion: (rate * 1e9).round() as u32, round }
    }

    pub(crate) fn items(&self) -> usize {
        self.items
    }

    pub(crate) fn rate(&self) -> f64 {
        f64::from(self.rate_per_billion) / 1e9
    }
}

impl Experiment for Peers {
    type Case = Case;
    type Row = Entry;

    fn about(&self) -> About {
        let columns = vec![
            Column::key("items", "items", "keys that the filter was built for"),
            Column::key("rate_per_billion", "1e-9", "false-positive rate that filters were built for, in billionths"),
            Column::new("round", "", "number of the round, from 1").compared(Role::Round),
            Column::key("filter", "", "name of the filter"),
            Column::key("family", "", "kind of structure"),
            Column::new(
                "asked_rate",
                "",
                "false-positive rate that this filter was built for, 0 to 1; empty if it cannot be chosen",
            )
            .compared(Role::Exact),
            Column::new("add_ns", "ns", "time to insert a key").compared(Role::Time),
            Column::new("find_absent_ns", "ns", "time to look up a key that is absent").compared(Role::Time),
            Column::new("find_present_ns", "ns", "time to look up a key that is present").compared(Role::Time),
            Column::new("find_mixed_ns", "ns", "time to look up a key if about half of the keys are present")
                .compared(Role::Time),
            Column::new("remove_ns", "ns", "time to remove a key; empty without removal").compared(Role::Time),
            Column::new("rate", "", "measured false-positive rate, 0 to 1: absent keys that were found")
                .compared(Role::share("items")),
            Column::new("expected_rate", "", "false-positive rate by its formula, 0 to 1").compared(Role::Exact),
            Column::new("bits_per_item", "bits", "bits of memory on the heap, divided by items").compared(Role::Exact),
            Column::new("lost", "keys", "inserted keys that were not found").compared(Role::Exact),
            Column::new("stuck", "keys", "inserted keys that could not be removed").compared(Role::Exact),
            Column::new("left", "keys", "keys that were found after all had been removed").compared(Role::Exact),
            Column::new("lost_by_removal", "keys", "keys that were lost when others were removed; empty without removal")
                .compared(Role::Exact),
            Column::new(
                "disturbed",
                "times",
                "times of this round that other work on the processor disturbed, after three attempts",
            ),
            Column::new("error", "", "why this filter could not be measured"),
        ];
        let about = About::new(self.set.name(), self.set.title(), self.set.about());
        About { columns, is_timed: true, with_less_memory: "give fewer --items", ..about }
    }

    fn cases(&self, _: &Scope) -> Vec<Case> {
        (1..=self.rounds).map(|round| Case::new(self.items, self.rate, round)).collect()
    }

    fn memory(&self, _: &Case) -> u64 {
        self.items as u64 * self.set.bytes_per_item()
    }

    fn measure(&self, case: &Case, _: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Entry>> {
        // The same number of items always gives the same keys, whatever the seed.
        Ok(round(&self.set.contestants(case.rate()), &Keys::new(case.items)?, &mut Stopwatch::new(), interrupt)?)
    }

    fn findings(&self, measured: &[Measured<Case, Entry>]) -> Findings {
        findings::of(self.set, measured)
    }
}

/// Measures every filter once. If one fails, the others are still measured.
pub(crate) fn round(
    contestants: &[Box<dyn Contestant>],
    keys: &Keys,
    watch: &mut Stopwatch,
    interrupt: &Interrupt,
) -> Result<Vec<Entry>, Interrupted> {
    let mut entries = Vec::new();
    for contestant in contestants {
        interrupt.check()?;
        entries.push(Entry::new(contestant.facts(keys.len()), measure::round(&**contestant, keys, watch)));
    }
    Ok(entries)
}

/// A row for each filter with its results of all rounds, in the order of the first round.
pub(crate) fn rows(measured: &[Measured<Case, Entry>]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for entry in measured.iter().flat_map(|measured| &measured.rows) {
        let place = rows.iter().position(|row| row.filter() == entry.facts.filter).unwrap_or_else(|| {
            rows.push(Row::new(entry.facts.clone()));
            rows.len() - 1
        });
        rows[place].push(entry.sample());
    }
    rows
}
