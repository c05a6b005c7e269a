//! The filter with the least expected cost for a workload, `--false-positive-cost 100us`. docs/TUNING.md has the model.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use koel::{
    Params,
    tuning::{Candidate, HIGHEST_RATE},
};
use koel_lab::{
    Machine,
    experiments::speed::{SpeedTable, Speeds},
};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Answer, Tune,
    answer::{candidate, label, starred},
    call::Call,
};
use crate::{
    experiment::FOLDER,
    numbers::{self, Share},
    text::{narrow, paragraphs, size, table, three, time, wrapped},
};

/// Without --memory-cost, a filter of twice the size must save this share of the time.
const DOUBLING: f64 = 0.1;

/// Costs that differ by no more are equal, and the smallest filter is recommended: two measurements of the times differ by as much.
const ALIKE: f64 = 0.05;

/// The ratio between two rates that are tried: two for each bit of a fingerprint, so that no length is left out.
const STEP: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Lower than the rate of any filter that fits into memory: with fingerprints of 32 bits, it is about 10⁻⁹.
const LOWEST_RATE: f64 = 1e-10;

/// What is done with a filter, and what it costs. Shares are between 0 and 1, times in nanoseconds.
#[derive(Serialize)]
struct Workload {
    /// Of all operations.
    lookups: f64,
    /// Of the lookups.
    absent: f64,
    /// Of all operations.
    insertions: f64,
    /// Of all operations.
    removals: f64,
    /// The work that a false positive causes.
    #[serde(rename = "false_positive_ns")]
    false_positive: f64,
    /// A MiB of memory, per operation.
    #[serde(rename = "ns_per_mib")]
    mib: f64,
}

/// The parts of the expected time of an operation, in nanoseconds.
#[derive(Clone, Copy, Serialize)]
struct Cost {
    lookups: f64,
    changes: f64,
    false_positives: f64,
    memory: f64,
    total: f64,
}

impl Workload {
    /// The cost of a filter with these times, this false-positive rate and a table of so many bytes.
    fn cost(&self, speeds: &Speeds, rate: f64, bytes: f64) -> Cost {
        let Self { lookups, absent, insertions, removals, false_positive, mib } = *self;
        // Those that replace removed items go into a filter that is nearly full; the others fill it.
        let replacing = insertions.min(removals);
        let changes = replacing * speeds.insert + (insertions - replacing) * speeds.build + removals * speeds.remove;
        let false_positives = lookups * absent * rate * false_positive;
        let lookups = lookups * (absent * speeds.find_absent + (1.0 - absent) * speeds.find_present);
        let memory = bytes / f64::from(1 << 20) * mib;
        Cost { lookups, changes, false_positives, memory, total: lookups + changes + false_positives + memory }
    }

    /// The cost without a filter: the wasted work of every lookup of an absent key.
    fn without(&self) -> f64 {
        self.lookups * self.absent * self.false_positive
    }
}

// No doc comment here: clap would take it for the help of the command.
#[derive(Args)]
#[group(skip)]
pub(super) struct Options {
    /// What a false positive costs: the time of the wasted work, such as 80ns, 100us or 5ms. Finds the
    /// filter with the least expected time per operation, weighed against its memory, at whatever rate that is; --fpr and
    /// --bytes are limits then. Compares it with no filter
    #[arg(
        long,
        value_name = "TIME",
        value_parser = numbers::nanoseconds,
        allow_hyphen_values = true,
        conflicts_with = "lists"
    )]
    pub(super) false_positive_cost: Option<f64>,

    /// The share of the lookups whose key is absent
    #[arg(long, value_name = "SHARE", default_value = "50%", value_parser = numbers::part, allow_hyphen_values = true)]
    #[arg(requires = "false_positive_cost")]
    absent: Share,

    /// The share of all operations that insert an item. As many of them as remove one go into a filter that is nearly full; the
    /// others fill it
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = numbers::part, allow_hyphen_values = true)]
    #[arg(requires = "false_positive_cost")]
    insertions: Share,

    /// The share of all operations that remove an item
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = numbers::part, allow_hyphen_values = true)]
    #[arg(requires = "false_positive_cost")]
    removals: Share,

    /// What a MiB of memory costs: the time per operation that it would save elsewhere, such as 1ns [default: a filter of twice the
    /// size must save 10 % of the time]
    #[arg(long, value_name = "TIME", value_parser = numbers::nanoseconds, allow_hyphen_values = true)]
    #[arg(requires = "false_positive_cost")]
    memory_cost: Option<f64>,

    /// The folder with this machine's times, which `koel experiment speed` measures
    #[arg(long, value_name = "FOLDER", default_value = FOLDER, requires = "false_positive_cost")]
    times: PathBuf,
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
}

/// Everything to print.
struct Costs<'a> {
    asked: &'a Tune,
    workload: Workload,
    times: SpeedTable,
    /// Whether this machine measured the times.
    is_here: bool,
    /// All filters: the recommended one, and then the others, the cheapest first.
    filters: Vec<Priced>,
}

impl Options {
    fn workload(&self, false_positive: f64) -> anyhow::Result<Workload> {
        let Self { absent, insertions, removals, memory_cost, .. } = *self;
        let changes = insertions.0 + removals.0;
        // Thirds need not add up to exactly 1.
        if changes > 1.0 + 1e-9 {
            bail!(
                "--insertions: {insertions} given, but with --removals {removals} that is more than all operations; give less of \
                 one"
            );
        }
        let (lookups, mib) = ((1.0 - changes).max(0.0), memory_cost.unwrap_or(0.0));
        let [absent, insertions, removals] = [absent, insertions, removals].map(|part| part.0);
        Ok(Workload { lookups, absent, insertions, removals, false_positive, mib })
    }

    /// The costs of all filters, if those of a false positive are given.
    pub(super) fn answer(&self, asked: &Tune) -> anyhow::Result<Option<Answer>> {
        let Some(false_positive) = self.false_positive_cost else { return Ok(None) };
        let workload = self.workload(false_positive)?;
        if asked.planned(asked.items.now) == 0 {
            bail!("--items: 0 given, but a filter without items has no false positives; the nearest that works is 1");
        }
        let times = times(&self.times)?;
        let price = |candidate: Candidate| {
            let (params, bytes) = (candidate.params(), candidate.bytes() as f64);
            let speeds = times.at(params.table(), params.bucket_size(), bytes)?;
            let cost = workload.cost(&speeds, candidate.false_positive_rate(), bytes);
            Some(Priced { candidate, cost })
        };
        let mut filters: Vec<_> = candidates(asked).into_iter().filter_map(price).collect();
        filters.sort_by(|one, other| {
            let cost = one.cost.total.total_cmp(&other.cost.total);
            cost.then_with(|| one.candidate.bytes().cmp(&other.candidate.bytes()))
        });
        if let Some(best) = recommended(&filters, self.memory_cost.is_some()) {
            filters[..=best].rotate_right(1);
        }
        let (here, there) = (Machine::here(), times.machine());
        let is_here = (&here.processor, &here.kernel) == (&there.processor, &there.kernel);
        Costs { asked, workload, times, is_here, filters }.answer().map(Some)
    }
}

/// The times in a folder.
fn times(folder: &Path) -> anyhow::Result<SpeedTable> {
    let there = folder.display();
    let read = SpeedTable::read(folder);
    let read = read.with_context(|| format!("--times: koel experiment speed --again --out {there} measures them anew"))?;
    read.with_context(|| {
        format!(
            "--times: {there} has no times of this machine; measure them, which takes some minutes, with: koel experiment speed \
             --out {there}"
        )
    })
}

/// The recommended filter. Its time counts with a price of memory: that of --memory-cost, or by default a share of the time for each
/// doubling of the bytes. Of those that are within the error of the best, it is the smallest.
fn recommended(filters: &[Priced], priced_memory: bool) -> Option<usize> {
    let price = |bytes: f64| if priced_memory { 1.0 } else { bytes.powf(-(1.0 - DOUBLING).log2()) };
    let score = |one: &Priced| one.cost.total * price(one.candidate.bytes() as f64);
    let least = filters.iter().map(score).reduce(f64::min)?;
    let alike = filters.iter().enumerate().filter(|(_, one)| score(one) <= least * (1.0 + ALIKE));
    alike.min_by_key(|(_, one)| one.candidate.bytes()).map(|(place, _)| place)
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

impl Costs<'_> {
    fn answer(&self) -> anyhow::Result<Answer> {
        let (items, without) = (self.asked.planned(self.asked.items.now), self.workload.without());
        let best = self.filters.first();
        let pays = best.is_some_and(|best| best.cost.total < without);
        let call = best.map(|best| Call::of(&best.candidate, items, None)).transpose()?;
        let found = best.zip(call.as_ref()).map(|(best, call)| {
            // What does not pay is not to be built.
            let build = if pays { format!("\n{call}") } else { String::new() };
            (call, format!("\n{}\n{}{build}", self.table(), self.notes(best, pays)))
        });
        let mut asked = self.asked.object();
        asked["workload"] = json!(self.workload);
        let (disturbed, rows) = self.times.disturbed();
        let candidates = self.filters.iter().map(|priced| {
            let mut object = candidate(&priced.candidate, items);
            object["cost_ns"] = json!(priced.cost);
            object
        });
        let object = json!({
            "asked": asked,
            "times": {
                "processor": self.times.machine().processor,
                "this_machine": self.is_here,
                "disturbed_rows": disturbed,
                "rows": rows,
                "largest_table_bytes": self.times.most_bytes(),
            },
            "candidates": candidates.collect::<Value>(),
            "cost_without_filter_ns": without,
            "pays": pays,
        });
        Ok(Answer::of(self.asked, &self.question(), found, "", object))
    }

    fn question(&self) -> String {
        let workload = &self.workload;
        let per_cent = |share: f64| koel_lab::percent(share, 0);
        let (lookups, absent) = (per_cent(workload.lookups), per_cent(workload.absent));
        let mut parts = vec![format!("{lookups} lookups, {absent} of them of absent keys")];
        for (share, what) in [(workload.insertions, "insertions"), (workload.removals, "removals")] {
            parts.extend((share > 0.0).then(|| format!("{} {what}", per_cent(share))));
        }
        let mib = Some(workload.mib).filter(|&mib| mib > 0.0);
        let memory = mib.map(|mib| format!(", and a MiB {} per operation", time(mib))).unwrap_or_default();
        wrapped(&format!(
            "{}{}; {}. A false positive costs {}{memory}.",
            self.asked.said_items(),
            self.asked.said_limits(),
            parts.join(", "),
            time(workload.false_positive)
        ))
    }

    /// The cheapest filter of each shape that is shown, and no filter.
    fn table(&self) -> String {
        let shape = |priced: &Priced| (priced.params().table(), priced.params().bucket_size());
        let mut shapes: Vec<&Priced> = Vec::new();
        for priced in &self.filters {
            if shapes.iter().all(|other| shape(other) != shape(priced)) {
                shapes.push(priced);
            }
        }
        let header = ["cost", "lookups", "changes", "wasted", "memory", "size", "\u{3b5}", "filter"];
        let mut rows = vec![header.map(String::from).to_vec()];
        rows.extend(self.asked.shown(&shapes, |priced| &priced.candidate).into_iter().enumerate().map(|(place, priced)| {
            let Cost { lookups, changes, false_positives, memory, total } = priced.cost;
            let mut row = [total, lookups, changes, false_positives, memory].map(three).to_vec();
            row.push(size(priced.candidate.bytes() as f64));
            row.push(narrow(priced.candidate.false_positive_rate()));
            row.push(starred(label(priced.params()), place == 0));
            row
        }));
        let (filters, without) = (rows.len(), three(self.workload.without()));
        rows.push([&without, "-", "-", &without, "-", "-", "-", "no filter"].map(String::from).to_vec());
        if self.workload.mib == 0.0 {
            for row in &mut rows {
                row.remove(4);
            }
        }
        table(&rows, 1, &[rows[0].len() - 1], &[1, filters])
    }

    fn notes(&self, best: &Priced, pays: bool) -> String {
        let (cost, without) = (best.cost.total, self.workload.without());
        let mut notes = vec![if pays {
            format!(
                "* The recommended filter: {} per operation. Without a filter, it is {}, {:.1} times as much.",
                time(cost),
                time(without),
                without / cost
            )
        } else {
            format!(
                "No filter pays: an operation costs {} without one, and {} with this one (*). All that a filter can save is the \
                 wasted work for absent keys.",
                time(without),
                time(cost)
            )
        }];
        let second = self.filters.get(1);
        if let Some(cheapest) = second.filter(|second| second.cost.total < cost) {
            let why =
                if self.asked.workload.memory_cost.is_some() { "" } else { "twice the memory must save 10 % of the time, and " };
            notes.push(format!(
                "The least time: {}, with {} for {} instead of {}; {why}times within 5 % count as equal.",
                label(cheapest.params()),
                time(cheapest.cost.total),
                size(cheapest.candidate.bytes() as f64),
                size(best.candidate.bytes() as f64)
            ));
        }
        notes.push(String::from(
            "Expected times per operation, in ns; each kind of operation counts by its share. Wasted: the work for false positives. \
             f: bits per fingerprint, b: slots per bucket; each further row is the cheapest filter of its table and bucket \
             size.",
        ));
        notes.push(self.about_times(best));
        paragraphs(&notes)
    }

    fn about_times(&self, best: &Priced) -> String {
        let folder = self.asked.workload.times.display();
        let again = format!("koel experiment speed --again --out {folder}");
        let mut parts = vec![format!("Times: {folder}/speed.json, of {}.", self.times.machine().processor)];
        if !self.is_here {
            parts.push(format!("That is another machine than this one: measure here with `{again}`."));
        }
        let (disturbed, all) = self.times.disturbed();
        if disturbed > 0 {
            parts.push(format!("Other work disturbed {disturbed} of its {all} rows: `{again}` measures them again."));
        }
        if best.candidate.bytes() as u64 > self.times.most_bytes() {
            parts.push(format!(
                "The largest table that was measured has {}; from there on, times are taken to rise as they do up to there.",
                size(self.times.most_bytes() as f64)
            ));
        }
        parts.join(" ")
    }
}
