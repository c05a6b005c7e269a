//! Defines the comparison as an experiment of the laboratory.

use koel_lab::{About, Column, Experiment, Findings, Interrupt, Interrupted, Measured, Role, Scope, Stopwatch};

use crate::{
    findings,
    measure::{Case, Contestant, Entry},
    peer::Keys,
    sets::Set,
};

/// A comparison, as the command's options define it.
#[derive(Clone, Copy)]
pub(crate) struct Peers {
    pub(crate) set: &'static Set,
    pub(crate) rate: f64,
    pub(crate) items: usize,
    pub(crate) rounds: u32,
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
            // Some of the filters that may lose keys evict at random, so these four vary from run to run. In all others, they are 0, or
            // the filter fails.
            ("lost", "keys", "inserted keys that were not found", Role::Detail),
            ("stuck", "keys", "inserted keys that could not be removed", Role::Detail),
            ("left", "keys", "keys that were found after all had been removed", Role::Detail),
            ("lost_by_removal", "keys", "keys that were lost when others were removed; empty without removal", Role::Detail),
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
