//! The filter with the least expected cost for a workload, `--false-positive-cost 100us`. docs/TUNING.md has the model.

mod cost;
mod object;
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
use koel_lab::{Machine, experiments::speed::SpeedTable};

use super::{Tune, call::Call, nearest::Nearest};
use crate::{
    experiment::FOLDER,
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

    /// The share of the look-ups whose key is absent [default: 50%]
    #[arg(long, value_name = "SHARE", value_parser = numbers::part, allow_negative_numbers = true)]
    absent: Option<Part>,

    /// The share of all operations that insert an item. As many of them as remove one go into a filter that is nearly full; the
    /// others fill it [default: 0%]
    #[arg(long, value_name = "SHARE", value_parser = numbers::part, allow_negative_numbers = true)]
    insertions: Option<Part>,

    /// The share of all operations that remove an item [default: 0%]
    #[arg(long, value_name = "SHARE", value_parser = numbers::part, allow_negative_numbers = true)]
    removals: Option<Part>,

    /// What a MiB of memory costs: the time per operation that it would save elsewhere, such as 1ns [default: 0ns]
    #[arg(long, value_name = "TIME", value_parser = numbers::nanoseconds, allow_negative_numbers = true)]
    memory_cost: Option<f64>,

    /// The part of the processor's last cache that is left for the filter, such as 8MiB. If that is a quarter of the cache, times
    /// are those of a table of four times the size [default: all of it]
    #[arg(long, value_name = "BYTES", value_parser = numbers::bytes, allow_negative_numbers = true)]
    cache: Option<usize>,

    /// The folder with this machine's times, which `koel experiment speed` measures [default: koel-experiments]
    #[arg(long, value_name = "FOLDER")]
    times: Option<PathBuf>,
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
        let Some(false_positive) = self.false_positive_cost else {
            return match self.given() {
                None => Ok(None),
                Some(option) => bail!("{option}: counts only with --false-positive-cost; give it, or leave {option} out"),
            };
        };
        let (inserted, removed) = (self.insertions.unwrap_or_default(), self.removals.unwrap_or_default());
        let [absent, insertions, removals] = [self.absent.unwrap_or(Part(0.5)), inserted, removed].map(|part| part.0);
        let changes = insertions + removals;
        // Thirds need not add up to exactly 1.
        if changes > 1.0 + 1e-9 {
            bail!(
                "--insertions: {inserted} given, but with --removals {removed} that is more than all operations; give less of one"
            );
        }
        let look_ups = (1.0 - changes).max(0.0);
        Ok(Some(Workload { look_ups, absent, insertions, removals, false_positive, mib: self.memory_cost.unwrap_or(0.0) }))
    }

    /// One of the options that are of no use without the cost of a false positive, if one is given.
    fn given(&self) -> Option<&'static str> {
        let given = [
            ("--absent", self.absent.is_some()),
            ("--insertions", self.insertions.is_some()),
            ("--removals", self.removals.is_some()),
            ("--memory-cost", self.memory_cost.is_some()),
            ("--cache", self.cache.is_some()),
            ("--times", self.times.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(option, _)| option)
    }
}

impl<'a> Costs<'a> {
    /// The costs of all filters for a question. `None` if no cost is given.
    pub(super) fn of(asked: &'a Tune) -> anyhow::Result<Option<Self>> {
        let options = &asked.workload;
        let Some(workload) = options.workload()? else { return Ok(None) };
        let items = asked.planned(asked.items.now);
        if items == 0 {
            bail!("--items: 0 given, but a filter without items has no false positives; the nearest that works is 1");
        }
        let folder = options.times.as_deref().unwrap_or(Path::new(FOLDER));
        let times = times(folder)?;
        let growth = growth(options.cache, &times)?;
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

/// The times in a folder.
fn times(folder: &Path) -> anyhow::Result<SpeedTable> {
    let there = folder.display();
    let read = SpeedTable::read(folder);
    let read = read.with_context(|| format!("--times: koel experiment speed --again --out {there} measures them anew"))?;
    match read {
        Some(times) => Ok(times),
        None => bail!(
            "--times: {there} has no times of this machine; measure them, which takes some minutes, with: koel experiment speed \
             --out {there}"
        ),
    }
}

/// How many times as large tables count as they are.
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
