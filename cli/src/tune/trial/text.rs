//! The trial as text.

use koel_lab::{Rounds, percent};
use tabled::builder::Builder;

use super::{
    Trial,
    absent::{Absent, Queries},
    measure::Tried,
};
use crate::{
    figures::{counted, narrow},
    tune::text::{aligned, label, wrapped},
};

/// A time that other work disturbed.
const DISTURBED: &str = "!";

impl Trial {
    pub(in crate::tune) fn text(&self) -> String {
        let notes: String = [self.keys_note(), self.queries_note()].iter().map(|note| wrapped(note)).collect();
        let legend: String = self.legend().iter().map(|note| wrapped(note)).collect();
        format!("{notes}\n{}\n{}\n{legend}", self.space_and_times(), self.rates())
    }

    fn keys_note(&self) -> String {
        let (keys, different) = (&self.keys, self.keys.different());
        let read = counted(keys.read, "key");
        if !keys.has_duplicates() {
            return format!("Measured with {read}, all different.");
        }
        format!(
            "Measured with {read}, {different} of them different, each stored once: {}; the most frequent key occurs {} times.",
            counted(keys.read - different, "duplicate"),
            keys.most_copies
        )
    }

    fn queries_note(&self) -> String {
        let Absent { queries, different, .. } = &self.absent;
        let Some(Queries { read, present }) = queries else {
            return format!("{different} absent keys, derived from yours: KEY~1, KEY~2, and so on.");
        };
        let (share, absent) = (percent(*present as f64 / *read as f64, 1), self.absent.asked());
        let read = if *read == 1 { String::from("1 query") } else { format!("{read} queries") };
        let repeats = if *different < absent { format!(", {different} of these different") } else { String::new() };
        format!("{read}: {present} present ({share}), {absent} absent{repeats}.")
    }

    /// One table: what the filters take.
    fn space_and_times(&self) -> String {
        let mut table = Builder::new();
        table.push_record(["filter", "load", "bytes", "snapshot", "insert", "present", "absent"]);
        for (number, filter) in self.measured.filters.iter().enumerate() {
            let [insert, present, absent] = [&filter.insert, &filter.present, &filter.absent].map(time);
            let (bytes, snapshot) = (filter.params.table_bytes().to_string(), filter.params.snapshot_bytes().to_string());
            let load = percent(filter.load, 1);
            table.push_record([label(&filter.params, number == 0), load, bytes, snapshot, insert, present, absent]);
        }
        aligned(table, 1)
    }

    /// And one: how often they are wrong.
    fn rates(&self) -> String {
        let mut table = Builder::new();
        let asks = self.absent.queries.is_some();
        let mut header = vec!["filter", "\u{3b5}", "measured", "99 % interval"];
        header.extend(asks.then_some("of the queries"));
        table.push_record(header);
        for (number, filter) in self.measured.filters.iter().enumerate() {
            let mut row = vec![label(&filter.params, number == 0), narrow(filter.expected_rate)];
            row.extend(match filter.rate(&self.absent) {
                Some((rate, (low, high))) => [narrow(rate), format!("{} to {}", narrow(low), narrow(high))],
                None => ["-", "-"].map(String::from),
            });
            row.extend(asks.then(|| self.mistaken(filter)));
            table.push_record(row);
        }
        aligned(table, 1)
    }

    /// False positives among all absent queries, as often as they were asked.
    fn mistaken(&self, filter: &Tried) -> String {
        filter.false_positives.map_or_else(|| String::from("-"), |found| format!("{} of {}", found.asked, self.absent.asked()))
    }

    fn legend(&self) -> Vec<String> {
        let full = self.measured.filters.iter().filter(|filter| !filter.fits(&self.keys));
        let mut notes: Vec<_> = full
            .map(|filter| {
                format!("{}: full after {}; give a larger --items.", label(&filter.params, false), counted(filter.stored, "key"))
            })
            .collect();
        if notes.is_empty() {
            notes.push(String::from("Each filter has room for all keys."));
        }
        let hash = time(&self.measured.hash);
        notes.push(format!(
            "insert, present, absent: ns per insertion, and per look-up of a present and of an absent key, one at a time, medians \
             of {}. Hashing is not included: {hash} ns per key (XXH3).",
            counted(self.measured.rounds, "round")
        ));
        let times = self.measured.filters.iter().flat_map(|filter| [&filter.insert, &filter.present, &filter.absent]);
        if times.chain([&self.measured.hash]).any(is_disturbed) {
            notes.push(format!(
                "{DISTURBED} Other work on the processor disturbed half of the rounds or more; measure again when it is idle."
            ));
        }
        notes.push(match (&self.absent.queries, self.absent.different) {
            (Some(_), 0) => String::from("No query is absent, so that no rate can be measured: give --queries with absent ones."),
            (Some(_), _) => String::from(
                "\u{3b5}: expected at this load, and measured with the different absent queries; of the queries: false positives \
                 among all absent ones, as often as they were asked.",
            ),
            (None, _) => String::from("\u{3b5}: expected at this load, and measured."),
        });
        notes
    }
}

fn is_disturbed(rounds: &Rounds) -> bool {
    rounds.timing().is_some_and(|timing| timing.disturbed)
}

/// The median, with a mark if it was disturbed.
fn time(rounds: &Rounds) -> String {
    let Some(timing) = rounds.timing() else { return String::from("-") };
    format!("{:.1}{}", timing.quartiles.median, if timing.disturbed { DISTURBED } else { "" })
}
