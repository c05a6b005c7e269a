//! `--false-positive-cost TIME`: the column with the cost per lookup. docs/TUNING.md describes it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use clap::Args;
use koel::tuning::Candidate;
use koel_lab::{
    Machine,
    experiments::speed::{SpeedTable, Speeds},
    percent,
};
use serde::Serialize;
use serde_json::{Value, json};

use super::trial::Trial;
use crate::{
    experiment::FOLDER,
    numbers,
    text::{size, time},
};

/// The share of absent keys if neither an option nor the user's lookups determine it.
const ABSENT: f64 = 0.5;

// No doc comment here: clap would use it as the help of the command.
#[derive(Args)]
#[group(skip)]
pub(super) struct Options {
    /// The cost of a false positive: the time of the wasted work, such as 80ns, 100us or 5ms. Adds a column to the table: the cost
    /// per lookup, which is the time of the lookup + the share of absent keys × ε × this cost. The order of the table stays the
    /// same. Times are those in --times; with --keys, they are those measured with your keys, plus hashing
    #[arg(long, value_name = "TIME", value_parser = numbers::nanoseconds, allow_hyphen_values = true)]
    false_positive_cost: Option<f64>,

    /// The share of lookups whose key is absent [default: the share in --queries or --trace, otherwise 50%]
    #[arg(long, value_name = "SHARE", value_parser = numbers::part, allow_hyphen_values = true)]
    #[arg(requires = "false_positive_cost")]
    absent: Option<f64>,

    /// The folder with this machine's times, which `koel experiment speed` measures
    #[arg(long, value_name = "FOLDER", default_value = FOLDER, requires = "false_positive_cost", conflicts_with = "keys")]
    times: PathBuf,
}

impl Options {
    /// Returns the workload, if the cost of a false positive is given. `absent` is the share of absent keys in the user's lookups.
    ///
    /// # Errors
    /// Returns an error if there are neither times of the user's keys nor results of the experiment.
    pub(super) fn workload(&self, trial: Option<&Trial>, absent: Option<f64>) -> anyhow::Result<Option<Workload>> {
        let Some(false_positive) = self.false_positive_cost else { return Ok(None) };
        let absent = self.absent.or(absent).unwrap_or(ABSENT);
        let times = if trial.is_some() { None } else { Some(Times::read(&self.times)?) };
        Ok(Some(Workload { absent, false_positive, times }))
    }
}

/// The lookups, and the cost of their false positives.
pub(super) struct Workload {
    /// The share of absent keys, 0 to 1.
    absent: f64,
    /// The nanoseconds that a false positive wastes.
    false_positive: f64,
    /// The results of the experiment; `None` if the user's keys were measured.
    times: Option<Times>,
}

/// The results of the experiment `speed`.
struct Times {
    folder: PathBuf,
    table: SpeedTable,
    /// True if this machine measured them.
    is_this_machine: bool,
}

/// The parts of the cost per lookup, in nanoseconds.
#[derive(Clone, Copy, Serialize)]
pub(super) struct Cost {
    lookup: f64,
    false_positives: f64,
    pub(super) total: f64,
}

impl Times {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let there = folder.display();
        let read = SpeedTable::read(folder);
        // The other parts of the error have remedies for `koel experiment`.
        let table = read.map_err(|error| {
            let cause = error.root_cause();
            anyhow!("--times: {there}/speed.json: {cause}; `koel experiment speed --again --out {there}` measures them again")
        })?;
        let table = table.with_context(|| {
            format!(
                "--times: {there} has no times of this machine; measure them, which takes some minutes, with `koel experiment \
                 speed --out {there}`"
            )
        })?;
        let (current, measured) = (Machine::current(), table.machine());
        let is_this_machine = (&current.processor, &current.kernel) == (&measured.processor, &measured.kernel);
        Ok(Self { folder: folder.to_owned(), table, is_this_machine })
    }

    fn note(&self, best: &Candidate) -> String {
        let folder = self.folder.display();
        let again = format!("koel experiment speed --again --out {folder}");
        let mut parts = vec![format!("Times: {folder}/speed.json, measured on {}.", self.table.machine().processor)];
        if !self.is_this_machine {
            parts.push(format!("That is another machine: measure on this one with `{again}`."));
        }
        let (disturbed, all) = self.table.disturbed();
        if disturbed > 0 {
            parts.push(format!("Other work disturbed {disturbed} of its {all} rows: `{again}` measures them again."));
        }
        if best.bytes() as u64 > self.table.most_bytes() {
            parts.push(format!(
                "The largest table that was measured has {}; beyond it, times are assumed to rise as between the two largest.",
                size(self.table.most_bytes() as f64)
            ));
        }
        parts.join(" ")
    }

    fn object(&self) -> Value {
        let (disturbed, rows) = self.table.disturbed();
        json!({
            "processor": self.table.machine().processor,
            "this_machine": self.is_this_machine,
            "disturbed_rows": disturbed,
            "rows": rows,
            "largest_table_bytes": self.table.most_bytes(),
        })
    }
}

impl Workload {
    /// Returns the cost of a filter. Returns `None` if no time of its lookups was measured.
    pub(super) fn cost(&self, filter: &Candidate, trial: Option<&Trial>) -> Option<Cost> {
        let params = filter.params();
        let (absent, present) = match &self.times {
            Some(times) => {
                let speeds = times.table.at(params.table(), params.bucket_size(), filter.bytes() as f64)?;
                let Speeds { find_absent, find_present } = speeds;
                (Some(find_absent), Some(find_present))
            }
            None => trial?.lookup_ns(params)?,
        };
        // Without absent queries, no time of an absent key was measured, and none is needed.
        let part = |share: f64, ns: Option<f64>| if share == 0.0 { Some(0.0) } else { Some(share * ns?) };
        let lookup = part(self.absent, absent)? + part(1.0 - self.absent, present)?;
        let false_positives = self.absent * filter.false_positive_rate() * self.false_positive;
        Some(Cost { lookup, false_positives, total: lookup + false_positives })
    }

    /// Returns the cost without a filter: every lookup of an absent key wastes the work.
    fn without_filter(&self) -> f64 {
        self.absent * self.false_positive
    }

    pub(super) fn notes(&self, best: &Candidate) -> [String; 3] {
        [
            format!(
                "Cost: the expected time per lookup, if {} of lookups are of absent keys: the time of the lookup + share absent \
                 × ε × {}.",
                percent(self.absent, 1),
                time(self.false_positive)
            ),
            format!("Without a filter, wasted work costs {} per lookup.", time(self.without_filter())),
            self.times.as_ref().map_or_else(
                || String::from("Times: those of your keys, hashing included; -: not measured."),
                |times| times.note(best),
            ),
        ]
    }

    pub(super) fn object(&self) -> Value {
        json!({
            "absent_share": self.absent,
            "false_positive_ns": self.false_positive,
            "without_filter_ns": self.without_filter(),
            "times": self.times.as_ref().map(Times::object),
        })
    }
}
