//! The filter with the least expected cost for a workload, `--false-positive-cost 100us`. docs/TUNING.md has the model.

mod cost;
mod object;
mod picture;
mod rivals;
mod text;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::Args;
use koel::{
    Params, TableKind,
    tuning::{Candidate, HIGHEST_RATE},
};
use koel_lab::{Machine, experiments::size::SpeedTable};

use super::{Tune, call::Call, nearest::Nearest};
use crate::{
    numbers::{self, Part},
    stdout,
};
use cost::{Cost, Workload};
use rivals::Rivals;

/// The ratio between two rates that are tried: two for each bit of a fingerprint, so that no length is left out.
const STEP: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Lower than the rate of any filter that fits into memory: with fingerprints of 32 bits, it is about 10⁻⁹.
const LOWEST_RATE: f64 = 1e-10;

// No doc comment here: clap would take it for the help of the command.
#[derive(Args)]
#[group(skip)]
pub(super) struct Options {
    /// What a false positive costs: the time of the work that is in vain, such as 80ns, 100us or 5ms. Finds the filter with the
    /// least expected time per operation, at whatever rate that is; --fpr and --bytes are limits then. Compares it with no filter,
    /// and with other crates' filters if koel-peers has measured them
    #[arg(
        long,
        value_name = "TIME",
        value_parser = numbers::nanoseconds,
        allow_negative_numbers = true,
        conflicts_with = "keys"
    )]
    false_positive_cost: Option<f64>,

    /// The share of the look-ups whose key is absent
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "50%",
        requires = "false_positive_cost",
        value_parser = numbers::part,
        allow_negative_numbers = true
    )]
    absent: Part,

    /// The share of all operations that insert an item
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0%",
        requires = "false_positive_cost",
        value_parser = numbers::part,
        allow_negative_numbers = true
    )]
    insertions: Part,

    /// The share of all operations that remove an item
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "0%",
        requires = "false_positive_cost",
        value_parser = numbers::part,
        allow_negative_numbers = true
    )]
    removals: Part,

    /// What a MiB of memory costs: the time per operation that it would save elsewhere, such as 1ns
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0ns",
        requires = "false_positive_cost",
        value_parser = numbers::nanoseconds,
        allow_negative_numbers = true
    )]
    memory_cost: f64,

    /// The part of the processor's last cache that is left for the filter, such as 8MiB: times are then those of a table that is
    /// larger by as much; by default, all of it
    #[arg(
        long,
        value_name = "BYTES",
        requires = "false_positive_cost",
        value_parser = numbers::bytes,
        allow_negative_numbers = true
    )]
    cache: Option<usize>,

    /// The folder with this machine's times, which `koel experiment size` measures
    #[arg(long, value_name = "FOLDER", default_value = "koel-experiments", requires = "false_positive_cost")]
    times: PathBuf,

    /// Write a picture of the cost by false-positive rate to this SVG file
    #[arg(long, value_name = "FILE", requires = "false_positive_cost")]
    picture: Option<PathBuf>,
}

/// A filter and what it costs.
struct Priced {
    candidate: Candidate,
    cost: Cost,
}

impl Priced {
    fn params(&self) -> &Params {
        self.candidate.params()
    }

    /// Its kind of table, and the slots of a bucket.
    fn shape(&self) -> (TableKind, u32) {
        (self.params().table(), self.params().bucket_size())
    }
}

/// Everything to print.
pub(super) struct Costs<'a> {
    asked: &'a Tune,
    workload: Workload,
    times: SpeedTable,
    folder: &'a Path,
    /// All filters, the cheapest first.
    filters: Vec<Priced>,
    rivals: Rivals,
    call: Option<Call>,
    /// Values that work, if those given do not.
    nearest: Option<Nearest>,
}

impl Options {
    /// Whether costs are wanted.
    pub(super) fn are_given(&self) -> bool {
        self.false_positive_cost.is_some()
    }

    /// The workload. `None` if no cost is given.
    fn workload(&self) -> anyhow::Result<Option<Workload>> {
        let Some(false_positive) = self.false_positive_cost else { return Ok(None) };
        let [absent, insertions, removals] = [self.absent, self.insertions, self.removals].map(Part::value);
        let changes = insertions + removals;
        // Thirds need not add up to exactly 1.
        if changes > 1.0 + 1e-9 {
            let (inserted, removed) = (self.insertions, self.removals);
            bail!(
                "--insertions: {inserted} given, but with --removals {removed} that is more than all operations; give less of one"
            );
        }
        let look_ups = (1.0 - changes).max(0.0);
        Ok(Some(Workload { look_ups, absent, insertions, removals, false_positive, mib: self.memory_cost }))
    }
}

impl<'a> Costs<'a> {
    /// The costs of all filters for a question. `None` if no cost is given.
    pub(super) fn of(asked: &'a Tune) -> anyhow::Result<Option<Self>> {
        let options = &asked.workload;
        let Some(workload) = options.workload()? else { return Ok(None) };
        let folder = &*options.times;
        let Some(times) = SpeedTable::read(folder)? else {
            let folder = folder.display();
            bail!(
                "--times: {folder} has no times of this machine; measure them, which takes some minutes, with: koel experiment \
                 size --out {folder}"
            );
        };
        let growth = growth(options.cache, &times)?;
        let items = asked.planned(asked.items.now);
        let price = |candidate: Candidate| {
            let (params, bytes) = (candidate.params(), candidate.bytes() as f64);
            let speeds = times.at(params.table(), params.bucket_size(), bytes * growth)?;
            let cost = workload.cost(&speeds, candidate.false_positive_rate(), bytes);
            Some(Priced { candidate, cost })
        };
        let mut filters: Vec<_> = candidates(asked).into_iter().filter_map(price).collect();
        filters.sort_by(|one, other| {
            let cost = one.cost.total().total_cmp(&other.cost.total());
            cost.then_with(|| one.candidate.bytes().cmp(&other.candidate.bytes()))
        });
        let call = filters.first().map(|best| Call::of(&best.candidate, items, None)).transpose()?;
        let costs = Self {
            workload,
            rivals: Rivals::read(folder, items, &workload, asked)?,
            nearest: if filters.is_empty() { Some(Nearest::to(asked)) } else { None },
            asked,
            times,
            folder,
            filters,
            call,
        };
        Ok(Some(costs))
    }

    pub(super) fn say(&self) -> anyhow::Result<ExitCode> {
        if let Some(path) = self.asked.workload.picture.as_ref().filter(|_| !self.filters.is_empty()) {
            koel_lab::chart::save(&self.picture(), path).context("--picture")?;
        }
        stdout::say(&if self.asked.json { format!("{:#}\n", self.object()) } else { self.text() })?;
        Ok(if self.filters.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    /// The time that an operation takes without a filter.
    fn without(&self) -> f64 {
        self.workload.without()
    }

    /// Whether the cheapest filter costs less than none.
    fn pays(&self) -> bool {
        self.filters.first().is_some_and(|best| best.cost.total() < self.without())
    }

    /// Whether this machine measured the times.
    fn is_here(&self) -> bool {
        let here = Machine::here();
        let there = self.times.machine();
        (&here.processor, &here.kernel) == (&there.processor, &there.kernel)
    }
}

/// By how much tables count as larger than they are.
fn growth(cache: Option<usize>, times: &SpeedTable) -> anyhow::Result<f64> {
    match (cache, times.cache()) {
        (None, _) => Ok(1.0),
        (Some(0), _) => bail!("--cache: 0 given; give at least one byte"),
        (Some(_), None) => bail!("--cache: the machine that measured did not tell how large its cache is; leave --cache out"),
        (Some(given), Some(all)) if given as u64 > all => {
            bail!("--cache: {given} given, but the machine that measured has {all} bytes; give no more")
        }
        (Some(given), Some(all)) => Ok(all as f64 / given as f64),
    }
}

/// Of each kind of table and each bucket size, the smallest filters for all rates within the limits, each once.
fn candidates(asked: &Tune) -> Vec<Candidate> {
    let highest = asked.fpr.unwrap_or(HIGHEST_RATE);
    let rates = std::iter::successors(Some(highest), |rate| Some(rate * STEP));
    let mut all: Vec<Candidate> = Vec::new();
    for rate in rates.take_while(|&rate| rate > LOWEST_RATE.min(highest / 2.0)) {
        let found = asked.recommend(asked.items.now, Some(rate), asked.bytes);
        for candidate in found.candidates() {
            if all.iter().all(|known| known.params() != candidate.params()) {
                all.push(candidate.clone());
            }
        }
    }
    all
}
