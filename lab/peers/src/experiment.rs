//! The comparison as an experiment of koel's laboratory.

use koel_lab::{Experiment, Findings, Interrupt, Interrupted, Measured, Scope};
use serde::{Deserialize, Serialize};

use crate::{
    contestants, findings,
    keys::Keys,
    measure::Contestant,
    row::{Entry, Row},
};

/// What the command's options ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peers {
    pub(crate) rate: f64,
    pub(crate) items: usize,
    pub(crate) rounds: u32,
}

/// A round, in which everybody is measured: if they were cases of their own, a machine that slows down, or is given up and
/// taken up again, would slow down some.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Case {
    items: usize,
    /// The false-positive rate that everybody is built for, in billionths: cases are equal or not, and whole numbers are.
    rate_per_billion: u32,
    round: u32,
}

impl Case {
    /// The one round of so many.
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

    fn name(&self) -> &'static str {
        "peers"
    }

    fn title(&self) -> &'static str {
        "Koel beside other filters"
    }

    fn about(&self) -> &'static str {
        "The paper's table 3 with filters that can be had today: koel and other crates, each built for the same false-positive \
         rate, of the same keys, in one thread and in the same rounds. The paper compares space, rate and speed of construction \
         of its cuckoo filter, plain and semi-sorted, with those of a Bloom, a blocked Bloom, a quotient and a d-left counting \
         Bloom filter. Of the last we know no crate; instead, there are a counting Bloom filter and the binary fuse filters, which \
         never change once they are built. Times of look-ups and of removals are shown, too."
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn cases(&self, _: &Scope) -> Vec<Case> {
        (1..=self.rounds).map(|round| Case::new(self.items, self.rate, round)).collect()
    }

    fn effort(&self, case: &Case) -> u64 {
        case.items as u64
    }

    fn memory(&self, case: &Case) -> u64 {
        /// Keys, and what a static filter takes while it is built.
        const BYTES_PER_ITEM: u64 = 60;
        case.items as u64 * BYTES_PER_ITEM
    }

    fn with_less_memory(&self) -> &'static str {
        "give fewer --items"
    }

    fn measure(&self, case: &Case, _: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Entry>> {
        // The keys are the same in all rounds, and for whoever asks for as many.
        Ok(round(&contestants(case.rate()), &Keys::new(case.items)?, interrupt)?)
    }

    fn findings(&self, measured: &[Measured<Case, Entry>]) -> Findings {
        findings::of(measured)
    }
}

/// Everybody once. Whoever fails does not keep the others from being measured.
pub(crate) fn round(contestants: &[Box<dyn Contestant>], keys: &Keys, interrupt: &Interrupt) -> Result<Vec<Entry>, Interrupted> {
    let mut entries = Vec::new();
    for contestant in contestants {
        interrupt.check()?;
        entries.push(Entry::new(contestant.facts(keys.len()), contestant.measure(keys)));
    }
    Ok(entries)
}

/// Everybody's rounds, in the order in which they were first measured.
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
