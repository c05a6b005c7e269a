//! `--false-positive-cost 100us`: finds the filter with the least expected cost for a workload. docs/TUNING.md describes the model.

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
    text::{paragraphs, short_rate, size, table, three_digits, time, wrapped},
};

/// The share of the time that a filter of twice the size must save, without --memory-cost.
const DOUBLING: f64 = 0.1;

/// The relative difference up to which costs count as equal, because two measurements of the times differ by as much. Of equal
/// filters, the smallest is recommended.
const ALIKE: f64 = 0.05;

/// The ratio between successive rates. A bit of a fingerprint is two steps, so that no length is left out.
const STEP: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// A limit below the rate of any filter: with fingerprints of 32 bits, the rate is about 10⁻⁹.
const LOWEST_RATE: f64 = 1e-10;

/// The use of a filter, and its costs. Shares are between 0 and 1, times in nanoseconds.
#[derive(Serialize)]
struct Workload {
    /// The share of lookups among all operations.
    lookups: f64,
    /// The share of absent keys among the lookups.
    absent: f64,
    /// The share of insertions among all operations.
    insertions: f64,
    /// The share of removals among all operations.
    removals: f64,
    /// The time of the work that a false positive causes.
    #[serde(rename = "false_positive_ns")]
    false_positive: f64,
    /// The time per operation that a MiB of memory is worth.
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
    /// Returns the cost of a filter with these times, false-positive rate `rate` and a table of `bytes` bytes.
    fn cost(&self, speeds: &Speeds, rate: f64, bytes: f64) -> Cost {
        let Self { lookups, absent, insertions, removals, false_positive, mib } = *self;
        // Insertions that replace removed items go into a filter that is nearly full. The others fill it.
        let replacing = insertions.min(removals);
        let changes = replacing * speeds.insert + (insertions - replacing) * speeds.build + removals * speeds.remove;
        let false_positives = lookups * absent * rate * false_positive;
        let lookups = lookups * (absent * speeds.find_absent + (1.0 - absent) * speeds.find_present);
        let memory = bytes / f64::from(1 << 20) * mib;
        Cost { lookups, changes, false_positives, memory, total: lookups + changes + false_positives + memory }
    }

    /// Returns the cost without a filter: the wasted work of every lookup of an absent key.
    fn without(&self) -> f64 {
        self.lookups * self.absent * self.false_positive
    }
}

// No doc comment here: clap would use it as the help of the command.
#[derive(Args)]
#[group(skip)]
pub(super) struct Options {
    /// The cost of a false positive: the time of the wasted work, such as 80ns, 100us or 5ms. Finds the filter and the rate
    /// with the least expected time per operation, weighed against memory; --fpr and --bytes are limits then. Compares it with no
    /// filter
    #[arg(
        long,
        value_name = "TIME",
        value_parser = numbers::nanoseconds,
        allow_hyphen_values = true,
        conflicts_with = "lists"
    )]
    pub(super) false_positive_cost: Option<f64>,

    /// The share of lookups whose key is absent
    #[arg(long, value_name = "SHARE", default_value = "50%", value_parser = numbers::part, allow_hyphen_values = true)]
    #[arg(requires = "false_positive_cost")]
    absent: Share,

    /// The share of all operations that insert an item. Those that replace removed items go into a filter that is nearly full; the
    /// others fill it
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = numbers::part, allow_hyphen_values = true)]
    #[arg(requires = "false_positive_cost")]
    insertions: Share,

    /// The share of all operations that remove an item
    #[arg(long, value_name = "SHARE", default_value = "0%", value_parser = numbers::part, allow_hyphen_values = true)]
    #[arg(requires = "false_positive_cost")]
    removals: Share,

    /// The cost of a MiB of memory: the time per operation that it would save elsewhere, such as 1ns [default: a filter of twice
    /// the size must save 10 % of the time]
    #[arg(long, value_name = "TIME", value_parser = numbers::nanoseconds, allow_hyphen_values = true)]
    #[arg(requires = "false_positive_cost")]
    memory_cost: Option<f64>,

    /// The folder with this machine's times, which `koel experiment speed` measures
    #[arg(long, value_name = "FOLDER", default_value = FOLDER, requires = "false_positive_cost")]
    times: PathBuf,
}

/// A filter and its cost.
struct Priced {
    candidate: Candidate,
    cost: Cost,
}

impl Priced {
    fn params(&self) -> &Params {
        self.candidate.params()
    }
}

/// Everything that the answer prints.
struct Costs<'a> {
    request: &'a Tune,
    workload: Workload,
    times: SpeedTable,
    /// `true` if this machine measured the times.
    is_here: bool,
    /// All filters: the recommended one, then the others, the cheapest first.
    filters: Vec<Priced>,
}

impl Options {
    fn workload(&self, false_positive: f64) -> anyhow::Result<Workload> {
        let Self { absent, insertions, removals, memory_cost, .. } = *self;
        let changes = insertions.0 + removals.0;
        // Rounding may put a sum of shares, such as three thirds, just above 1.
        if changes > 1.0 + 1e-9 {
            bail!(
                "--insertions: {insertions} given, but with --removals {removals} that is more than all operations; lower one of \
                 them"
            );
        }
        let (lookups, mib) = ((1.0 - changes).max(0.0), memory_cost.unwrap_or(0.0));
        let [absent, insertions, removals] = [absent, insertions, removals].map(|part| part.0);
        Ok(Workload { lookups, absent, insertions, removals, false_positive, mib })
    }

    /// Compares the costs of all filters, if the cost of a false positive is given.
    pub(super) fn answer(&self, request: &Tune) -> anyhow::Result<Option<Answer>> {
        let Some(false_positive) = self.false_positive_cost else { return Ok(None) };
        let workload = self.workload(false_positive)?;
        if request.planned(request.items) == 0 {
            bail!("--items: 0 given, but a filter without items has no false positives; the nearest that works is 1");
        }
        let times = times(&self.times)?;
        let price = |candidate: Candidate| {
            let (params, bytes) = (candidate.params(), candidate.bytes() as f64);
            let speeds = times.at(params.table(), params.bucket_size(), bytes)?;
            let cost = workload.cost(&speeds, candidate.false_positive_rate(), bytes);
            Some(Priced { candidate, cost })
        };
        let mut filters: Vec<_> = candidates(request).into_iter().filter_map(price).collect();
        filters.sort_by(|one, other| {
            let cost = one.cost.total.total_cmp(&other.cost.total);
            cost.then_with(|| one.candidate.bytes().cmp(&other.candidate.bytes()))
        });
        if let Some(best) = recommended(&filters, self.memory_cost.is_some()) {
            filters[..=best].rotate_right(1);
        }
        let (here, there) = (Machine::here(), times.machine());
        let is_here = (&here.processor, &here.kernel) == (&there.processor, &there.kernel);
        Costs { request, workload, times, is_here, filters }.answer().map(Some)
    }
}

/// Reads the times in a folder.
fn times(folder: &Path) -> anyhow::Result<SpeedTable> {
    let there = folder.display();
    let read = SpeedTable::read(folder);
    let read = read.with_context(|| format!("--times: koel experiment speed --again --out {there} measures them again"))?;
    read.with_context(|| {
        format!(
            "--times: {there} has no times of this machine; measure them, which takes some minutes, with: koel experiment speed \
             --out {there}"
        )
    })
}

/// Returns the place of the recommended filter: the smallest of those whose scores are within [`ALIKE`] of the best. A score is the
/// total cost. Without --memory-cost, it is weighted so that each doubling of the bytes must save the share [`DOUBLING`].
fn recommended(filters: &[Priced], priced_memory: bool) -> Option<usize> {
    let price = |bytes: f64| if priced_memory { 1.0 } else { bytes.powf(-(1.0 - DOUBLING).log2()) };
    let score = |one: &Priced| one.cost.total * price(one.candidate.bytes() as f64);
    let least = filters.iter().map(score).reduce(f64::min)?;
    let alike = filters.iter().enumerate().filter(|(_, one)| score(one) <= least * (1.0 + ALIKE));
    alike.min_by_key(|(_, one)| one.candidate.bytes()).map(|(place, _)| place)
}

/// Returns the smallest filters of each kind of table and each bucket size, for all rates within the limits, without duplicates.
fn candidates(request: &Tune) -> Vec<Candidate> {
    let highest = request.fpr.unwrap_or(HIGHEST_RATE);
    let rates = std::iter::successors(Some(highest), |rate| Some(rate * STEP));
    let mut all: Vec<Candidate> = Vec::new();
    for rate in rates.take_while(|&rate| rate > LOWEST_RATE.min(highest / 2.0)) {
        let found = request.recommend(request.items, Some(rate), request.bytes);
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
        let (items, without) = (self.request.planned(self.request.items), self.workload.without());
        let best = self.filters.first();
        let pays = best.is_some_and(|best| best.cost.total < without);
        let call = best.map(|best| Call::fixed(&best.candidate, items, None)).transpose()?;
        let found = best.zip(call.as_ref()).map(|(best, call)| {
            // If no filter pays off, the call is not shown.
            let build = if pays { format!("\n{call}") } else { String::new() };
            (call, format!("\n{}\n{}{build}", self.table(), self.notes(best, pays)))
        });
        let mut request = self.request.object();
        request["workload"] = json!(self.workload);
        let (disturbed, rows) = self.times.disturbed();
        let candidates = self.filters.iter().map(|priced| {
            let mut object = candidate(&priced.candidate, items);
            object["cost_ns"] = json!(priced.cost);
            object
        });
        let object = json!({
            "asked": request,
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
        Ok(Answer::new(self.request, &self.question(), found, "", object))
    }

    fn question(&self) -> String {
        let workload = &self.workload;
        let percent = |share: f64| koel_lab::percent(share, 0);
        let (lookups, absent) = (percent(workload.lookups), percent(workload.absent));
        let mut parts = vec![format!("{lookups} lookups, {absent} of them of absent keys")];
        for (share, operations) in [(workload.insertions, "insertions"), (workload.removals, "removals")] {
            parts.extend((share > 0.0).then(|| format!("{} {operations}", percent(share))));
        }
        let mib = Some(workload.mib).filter(|&mib| mib > 0.0);
        let memory = mib.map(|mib| format!(", and a MiB {} per operation", time(mib))).unwrap_or_default();
        wrapped(&format!(
            "{}{}; {}. A false positive costs {}{memory}.",
            self.request.items_text(),
            self.request.limits_text(),
            parts.join(", "),
            time(workload.false_positive)
        ))
    }

    /// Formats the cheapest filter of each shape that is shown, and the cost without a filter.
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
        rows.extend(self.request.shown(&shapes, |priced| &priced.candidate).into_iter().enumerate().map(|(place, priced)| {
            let Cost { lookups, changes, false_positives, memory, total } = priced.cost;
            let mut row = [total, lookups, changes, false_positives, memory].map(three_digits).to_vec();
            row.push(size(priced.candidate.bytes() as f64));
            row.push(short_rate(priced.candidate.false_positive_rate()));
            row.push(starred(label(priced.params()), place == 0));
            row
        }));
        let (filters, without) = (rows.len(), three_digits(self.workload.without()));
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
                "No filter pays off: an operation costs {} without one, and {} with this one (*). A filter can save only the wasted \
                 work for absent keys.",
                time(without),
                time(cost)
            )
        }];
        let second = self.filters.get(1);
        if let Some(cheapest) = second.filter(|second| second.cost.total < cost) {
            let why = if self.request.workload.memory_cost.is_some() {
                ""
            } else {
                "twice the memory must save 10 % of the time, and "
            };
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
        let folder = self.request.workload.times.display();
        let again = format!("koel experiment speed --again --out {folder}");
        let mut parts = vec![format!("Times: {folder}/speed.json, measured on {}.", self.times.machine().processor)];
        if !self.is_here {
            parts.push(format!("That is another machine: measure on this one with `{again}`."));
        }
        let (disturbed, all) = self.times.disturbed();
        if disturbed > 0 {
            parts.push(format!("Other work disturbed {disturbed} of its {all} rows: `{again}` measures them again."));
        }
        if best.candidate.bytes() as u64 > self.times.most_bytes() {
            parts.push(format!(
                "The largest table that was measured has {}; beyond it, times are assumed to rise as between the two largest.",
                size(self.times.most_bytes() as f64)
            ));
        }
        parts.join(" ")
    }
}
