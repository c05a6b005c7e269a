//! The comparison as an experiment of the laboratory.

use koel_lab::{Experiment, Findings, Interrupt, Interrupted, Measured, Scope};
use serde::{Deserialize, Serialize};

use crate::{
    findings,
    keys::Keys,
    measure::Contestant,
    row::{Entry, Row},
    set::Set,
};

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

    fn name(&self) -> &'static str {
        self.set.name()
    }

    fn title(&self) -> &'static str {
        self.set.title()
    }

    fn about(&self) -> &'static str {
        self.set.about()
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
        case.items as u64 * self.set.bytes_per_item()
    }

    fn with_less_memory(&self) -> &'static str {
        "give fewer --items"
    }

    fn measure(&self, case: &Case, _: u64, interrupt: &Interrupt) -> anyhow::Result<Vec<Entry>> {
        // The same number of items always gives the same keys, whatever the seed.
        Ok(round(&self.set.contestants(case.rate()), &Keys::new(case.items)?, interrupt)?)
    }

    fn findings(&self, measured: &[Measured<Case, Entry>]) -> Findings {
        findings::of(self.set, measured)
    }
}

/// Measures every filter once. If one fails, the others are still measured.
pub(crate) fn round(contestants: &[Box<dyn Contestant>], keys: &Keys, interrupt: &Interrupt) -> Result<Vec<Entry>, Interrupted> {
    let mut entries = Vec::new();
    for contestant in contestants {
        interrupt.check()?;
        entries.push(Entry::new(contestant.facts(keys.len()), contestant.measure(keys)));
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
