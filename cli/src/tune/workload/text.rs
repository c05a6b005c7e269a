//! The costs as text, 80 columns wide.

use std::ops::RangeInclusive;

use koel::{Addressing, TableKind};
use tabled::{
    builder::Builder,
    settings::{Alignment, Padding, Style, object::Columns, style::HorizontalLine},
};

use super::{Costs, Priced, cost::Cost};
use crate::{
    figures::{counted, narrow, size, time},
    tune::{
        Tune,
        nearest::Nearest,
        text::{label, trimmed, wrapped},
    },
};

/// Filters in the table without --all, beside those with the usual buckets.
const SHOWN: usize = 4;

/// Costs that differ by less may be the same: the times of two measurements differ by as much.
const ALIKE: f64 = 0.05;

/// The rates that koel-peers takes.
const PEERS_RATES: RangeInclusive<f64> = 1e-6..=0.1;

const HEADER: [&str; 8] = ["cost", "look-ups", "changes", "in vain", "memory", "size", "\u{3b5}", "filter"];

impl Costs<'_> {
    pub(super) fn text(&self) -> String {
        let question = self.question();
        let Some((best, call)) = self.filters.first().zip(self.call.as_ref()) else {
            let ways = self.nearest.as_ref().map_or_else(String::new, Nearest::text);
            return format!("{question}\nNo filter meets these requirements.\n{ways}");
        };
        let (table, notes) = (self.table(), self.notes(best));
        // What does not pay is not to be built.
        let calls = if self.pays() { format!("\n{}\n\n{}\n", call.command(), call.rust()) } else { String::new() };
        format!("{question}\n{table}\n{notes}{calls}")
    }

    fn question(&self) -> String {
        let workload = &self.workload;
        let per_cent = |share: f64| koel_lab::percent(share, 0);
        let (look_ups, absent) = (per_cent(workload.look_ups), per_cent(workload.absent));
        let mut parts = vec![format!("{look_ups} look-ups, {absent} of them of absent keys")];
        for (share, what) in [(workload.insertions, "insertions"), (workload.removals, "removals")] {
            parts.extend((share > 0.0).then(|| format!("{} {what}", per_cent(share))));
        }
        let mib = || format!(", and a MiB {} per operation", time(workload.mib));
        let memory = if workload.mib > 0.0 { mib() } else { String::new() };
        wrapped(&format!(
            "{}; {}. A false positive costs {}{memory}.{}",
            self.asked.said_items(),
            parts.join(", "),
            time(workload.false_positive),
            self.limits()
        ))
    }

    /// What the filters are limited to, as a sentence; nothing if that is nothing.
    fn limits(&self) -> String {
        let Tune { fpr, bytes, table, bucket_size, addressing, copies, .. } = *self.asked;
        let addressing = Addressing::from(addressing);
        let limits = [
            fpr.map(|rate| format!("\u{3b5} of at most {rate:?}")),
            bytes.map(|bytes| format!("at most {}", counted(bytes, "byte"))),
            table.map(|table| format!("{} tables", TableKind::from(table))),
            bucket_size.map(|slots| format!("buckets of {}", counted(slots, "slot"))),
            (addressing != Addressing::default()).then(|| format!("addressing {addressing}")),
            (copies > 1).then(|| format!("room for {copies} copies")),
            self.asked.workload.cache.map(|bytes| format!("{} of the cache", size(bytes as f64))),
        ];
        let limits: Vec<_> = limits.into_iter().flatten().collect();
        if limits.is_empty() { String::new() } else { format!(" Limits: {}.", limits.join(", ")) }
    }

    /// The cheapest filter of each shape that is shown.
    fn shown(&self) -> Vec<&Priced> {
        let is_first = |place: usize, priced: &Priced| self.filters[..place].iter().all(|other| other.shape() != priced.shape());
        let shapes = self.filters.iter().enumerate().filter(|&(place, priced)| is_first(place, priced));
        let is_usual = |priced: &Priced| TableKind::Packed.bucket_sizes().contains(&priced.params().bucket_size());
        let shown = shapes.enumerate().filter(|&(rank, (_, priced))| self.asked.all || rank < SHOWN || is_usual(priced));
        shown.map(|(_, (_, priced))| priced).collect()
    }

    fn table(&self) -> String {
        let mut table = Builder::new();
        table.push_record(HEADER.map(String::from));
        let shown = self.shown();
        for (place, priced) in shown.iter().enumerate() {
            let (bytes, rate) = (priced.candidate.bytes() as f64, priced.candidate.false_positive_rate());
            table.push_record(row(&priced.cost, bytes, rate, label(priced.params(), place == 0)));
        }
        for rival in self.rivals.shown(self.asked.all) {
            let name = if self.asked.all { &*rival.name } else { rival.product() };
            table.push_record(row(&rival.cost, rival.bytes, rival.rate, name.to_owned()));
        }
        let without = [&*ns(self.without()), "-", "-", &*ns(self.without()), "-", "-", "-", "no filter"];
        table.push_record(without.map(String::from));
        if self.workload.mib == 0.0 {
            table.remove_column(4);
        }
        let mut table = table.build();
        table
            .with(Style::empty().horizontals([1, shown.len() + 1].map(|row| (row, HorizontalLine::new('-')))))
            .modify(Columns::new(..), Padding::new(0, 1, 0, 0))
            .modify(Columns::new(..), Alignment::right())
            .modify(Columns::last(), Padding::zero())
            .modify(Columns::last(), Alignment::left());
        trimmed(&table.to_string())
    }

    fn notes(&self, best: &Priced) -> String {
        let (cost, without) = (best.cost.total(), self.without());
        let mut notes = vec![if self.pays() {
            format!(
                "* The least cost per operation: {}. Without a filter, it is {}, {:.1} times as much.",
                time(cost),
                time(without),
                without / cost
            )
        } else {
            format!(
                "No filter pays: an operation costs {} without one, and {} with the cheapest (*). All that a filter can save is \
                 the work for absent keys.",
                time(without),
                time(cost)
            )
        }];
        notes.extend(self.alike(best));
        notes.push(String::from(
            "Expected times per operation, in ns; each kind of operation counts by its share. In vain: the work for false \
             positives. f: bits per fingerprint, b: slots per bucket; of each kind of table and bucket size, it is the cheapest \
             filter.",
        ));
        if self.workload.mib == 0.0 {
            notes.push(String::from("Memory costs nothing here. --memory-cost 1ns, for example, prefers smaller filters."));
        }
        notes.push(self.about_times(best));
        notes.push(self.about_rivals());
        notes.iter().map(|note| wrapped(note)).collect()
    }

    /// The filters that may be as good.
    fn alike(&self, best: &Priced) -> Option<String> {
        let most = best.cost.total() * (1.0 + ALIKE);
        let others: Vec<_> = self.filters[1..].iter().take_while(|priced| priced.cost.total() <= most).collect();
        let smallest = others.iter().min_by_key(|priced| priced.candidate.bytes())?;
        let smaller = (smallest.candidate.bytes() < best.candidate.bytes()).then(|| {
            let label = label(smallest.params(), false);
            format!("; the smallest is {label}, with {}", size(smallest.candidate.bytes() as f64))
        });
        let (them, cost) =
            if others.len() == 1 { ("1 other filter", "costs") } else { (&*format!("{} other filters", others.len()), "cost") };
        let per_cent = ALIKE * 100.0;
        Some(format!(
            "{them} {cost} less than {per_cent} % more, as two measurements of the times may differ{}.",
            smaller.unwrap_or_default()
        ))
    }

    fn about_times(&self, best: &Priced) -> String {
        let folder = self.folder.display();
        let again = format!("koel experiment speed --again --out {folder}");
        let mut parts = vec![format!("Times: {folder}/speed.json, of {}.", self.times.machine().processor)];
        if !self.is_here() {
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

    fn about_rivals(&self) -> String {
        let Some(items) = self.rivals.items else {
            let rate = self.filters.first().map_or(0.001, |best| best.candidate.false_positive_rate());
            let (lowest, highest) = (*PEERS_RATES.start(), *PEERS_RATES.end());
            let only = if PEERS_RATES.contains(&rate) { "" } else { " at the nearest rate that it can" };
            return format!(
                "Other crates' filters: not measured with about so many items. In koel's repository, `cargo run --release -p \
                 koel-peers -- --items {} --rate {:.1e} --out {}` does{only}.",
                self.asked.planned(self.asked.items.now),
                rate.clamp(lowest, highest),
                self.folder.display()
            );
        };
        let rejected = &self.rivals.rejected;
        let left_out = if rejected.is_empty() {
            String::new()
        } else if self.asked.all {
            let each: Vec<_> = rejected.iter().map(|(name, reason)| format!("{name}: {reason}")).collect();
            format!(" Left out: {}.", each.join("; "))
        } else {
            format!(" {} of them are left out: --all says why.", rejected.len())
        };
        format!(
            "Below the line: other crates' filters, at the rates that koel-peers measured with {}, beside koel's in the same rounds; \
             insertions are those of a whole build.{left_out}",
            counted(items, "item")
        )
    }
}

fn row(cost: &Cost, bytes: f64, rate: f64, name: String) -> [String; 8] {
    let Cost { look_ups, changes, false_positives, memory } = *cost;
    let [look_ups, changes, false_positives, memory] = [look_ups, changes, false_positives, memory].map(ns);
    [ns(cost.total()), look_ups, changes, false_positives, memory, size(bytes), narrow(rate), name]
}

/// Nanoseconds with three significant digits or more.
fn ns(time: f64) -> String {
    match time {
        0.0 => String::from("0"),
        ..9.995 => format!("{time:.2}"),
        ..99.95 => format!("{time:.1}"),
        _ => format!("{time:.0}"),
    }
}
