//! The recommendation as text, 80 columns wide.

use koel::{
    Params, TableKind,
    tuning::{Candidate, Recommendation},
};
use koel_lab::{percent, structures::Structure};
use tabled::{
    builder::Builder,
    settings::{Alignment, Padding, Style, object::Columns, style::HorizontalLine},
};

use super::{Advice, Tune, nearest::Nearest, others::is_real};
use crate::figures::{counted, narrow, size, three_digits};

/// Columns of a terminal.
const WIDTH: usize = 80;

/// Filters in the table, and groups of those left out, without --all.
const SHOWN: usize = 4;

const HEADER: [&str; 8] = ["filter", "size", "bits/item", "\u{3b5}", "load", "delete", "grow", "static"];

impl Advice<'_> {
    pub(super) fn text(&self) -> String {
        let (question, left_out) = (self.question(), self.left_out());
        let Some((call, best)) = self.call.as_ref().zip(self.filters.best()) else {
            let nearest = self.nearest.as_ref().map_or_else(String::new, Nearest::text);
            return format!("{question}\nNo filter meets these requirements.\n{nearest}{left_out}");
        };
        let (table, notes) = (self.table(), self.notes(best));
        let trial = self.trial.as_ref().map_or_else(String::new, |trial| format!("{}\n", trial.text()));
        format!("{question}\n\n{table}\n{notes}{left_out}\n{trial}{}\n\n{}\n", call.command(), call.rust())
    }

    fn question(&self) -> String {
        let Tune { fpr, bytes, .. } = *self.asked;
        let items = self.asked.said_items();
        match (fpr, bytes) {
            (Some(rate), None) => format!("{items}, a false-positive rate \u{3b5} of at most {rate:?}."),
            (Some(rate), Some(bytes)) => {
                format!("{items}, a false-positive rate \u{3b5} of at most {rate:?}, at most {}.", counted(bytes, "byte"))
            }
            (None, bytes) => format!("{items}, at most {}.", counted(bytes.unwrap_or(usize::MAX), "byte")),
        }
    }

    fn table(&self) -> String {
        let mut table = Builder::new();
        table.push_record(HEADER);
        let filters = self.asked.shown(&self.filters);
        for (number, filter) in filters.iter().enumerate() {
            table.push_record(row(filter, number == 0));
        }
        for &(structure, bits) in &self.others.rows {
            table.push_record(other(structure, bits, self.others.rate, self.asked.planned(self.asked.items.now)));
        }
        aligned(table, filters.len() + 1)
    }

    /// The notes below the table.
    fn notes(&self, best: &Candidate) -> String {
        let params = best.params();
        let (what, worse) = if self.asked.fpr.is_some() { ("smallest", "no smaller") } else { ("lowest rate", "no better") };
        let mut notes = vec![
            format!(
                "* The {what}: {}, {} of {}. Room for {}, or for {} copies of one item if its two buckets have no \
                 others.",
                counted(best.bytes(), "byte"),
                counted(params.buckets(), "bucket"),
                counted(params.bucket_size(), "slot"),
                counted(params.capacity(), "distinct item"),
                best.copies()
            ),
            String::from("f: bits per fingerprint, b: slots per bucket."),
        ];
        let hidden = self.filters.candidates().len() - self.asked.shown(&self.filters).len();
        if hidden > 0 {
            notes.push(format!("{} are {worse}: --all shows them.", counted(hidden, "other filter")));
        }
        if let Some(rate) = self.others.rate {
            let rate = three_digits(rate);
            notes.push(format!("Below the line: formulas of their authors, for large sets, at \u{3b5} = {rate}."));
        }
        notes.iter().map(|note| wrapped(note)).collect()
    }

    /// What was left out, and why.
    fn left_out(&self) -> String {
        let mut groups: Vec<(String, String)> = Vec::new();
        let mut add = |name: String, further: String, reason: &str| match groups.last_mut() {
            Some((names, known)) if known == reason => *names += &further,
            _ => groups.push((name, reason.to_owned())),
        };
        let mut table = None;
        for rejection in self.filters.rejections() {
            let (kind, b) = (rejection.table(), rejection.bucket_size());
            let name = format!("{kind} b={b}");
            let further = if table == Some(kind) { format!(", {b}") } else { format!(", {name}") };
            table = Some(kind);
            add(name, further, rejection.reason());
        }
        for (structure, reason) in &self.others.rejected {
            add(structure.name().to_owned(), format!(", {}", structure.name()), reason);
        }
        if groups.is_empty() {
            return String::new();
        }
        let shown = if self.asked.all { groups.len() } else { SHOWN };
        let mut lines: String =
            groups.iter().take(shown).map(|(names, reason)| wrapped(&format!("- {names}: {reason}."))).collect();
        if groups.len() > shown {
            lines += &wrapped(&format!("- {}: --all shows them.", counted(groups.len() - shown, "further reason")));
        }
        format!("\nLeft out:\n{lines}")
    }
}

impl Nearest {
    /// The values, as options.
    pub(super) fn text(&self) -> String {
        let mut ways = Vec::new();
        if let Some(bytes) = self.bytes {
            ways.push(format!("--bytes {bytes}"));
        }
        if let Some(rate) = self.rate {
            ways.push(format!("--fpr {rate:?}"));
        }
        if let Some(items) = self.items {
            ways.push(format!("--items {items}"));
        }
        if ways.is_empty() {
            return wrapped("No single option is enough: change more than one.");
        }
        format!("Nearest values, any one of which is enough:\n  {}\n", ways.join("\n  "))
    }
}

impl Tune {
    /// The number of items, and with its headroom.
    pub(super) fn said_items(&self) -> String {
        let items = counted(self.items.now, "item");
        match self.headroom {
            Some(_) => format!("{items}, with headroom {}", self.planned(self.items.now)),
            None => items,
        }
    }

    /// The filters in the table: the best, and those with the buckets that every kind of table takes, as a builder does by itself.
    pub(super) fn shown<'a>(&self, filters: &'a Recommendation) -> Vec<&'a Candidate> {
        let is_usual = |filter: &Candidate| TableKind::Packed.bucket_sizes().contains(&filter.params().bucket_size());
        let shown = filters.candidates().iter().enumerate();
        let shown = shown.filter(|&(place, filter)| self.all || place < SHOWN || is_usual(filter));
        shown.map(|(_, filter)| filter).collect()
    }
}

/// The name of a filter, with a mark if it is the best.
pub(super) fn label(params: &Params, is_best: bool) -> String {
    let mark = if is_best { " *" } else { "" };
    format!("{} f={} b={}{mark}", params.table(), params.fingerprint_bits(), params.bucket_size())
}

/// A table with a line below its header, and one above row `line`, unless that is the same.
pub(super) fn aligned(table: Builder, line: usize) -> String {
    let mut table = table.build();
    table
        .with(Style::empty().horizontals([1, line].map(|row| (row, HorizontalLine::new('-')))))
        .modify(Columns::new(..), Padding::new(0, 2, 0, 0))
        .modify(Columns::last(), Padding::zero())
        .modify(Columns::new(1..), Alignment::right());
    trimmed(&table.to_string())
}

fn row(filter: &Candidate, is_best: bool) -> [String; 8] {
    let bits = filter.bits_per_item();
    [
        label(filter.params(), is_best),
        size(filter.bytes() as f64),
        if bits.is_finite() { format!("{bits:.2}") } else { String::from("-") },
        narrow(filter.false_positive_rate()),
        percent(filter.load(), 1),
        yes(true),
        yes(false),
        yes(false),
    ]
}

fn other(structure: Structure, bits: f64, rate: Option<f64>, items: usize) -> [String; 8] {
    let can = |it| if is_real(structure) { yes(it) } else { String::from("-") };
    [
        structure.name().to_owned(),
        size(bits * items as f64 / 8.0),
        format!("{bits:.2}"),
        rate.map_or_else(|| String::from("-"), narrow),
        String::from("-"),
        can(structure.deletes()),
        can(structure.grows()),
        can(structure.is_static()),
    ]
}

fn yes(it: bool) -> String {
    String::from(if it { "yes" } else { "no" })
}

/// Lines without trailing spaces.
pub(super) fn trimmed(text: &str) -> String {
    text.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// A paragraph in lines that fit, indented from the second on.
pub(super) fn wrapped(text: &str) -> String {
    let (mut lines, mut column) = (String::new(), 0);
    for word in text.split_whitespace() {
        let width = word.chars().count();
        let gap = match column {
            0 => "",
            _ if column + 1 + width <= WIDTH => " ",
            _ => "\n  ",
        };
        column = if gap.starts_with('\n') { 2 + width } else { column + gap.len() + width };
        lines.extend([gap, word]);
    }
    lines + "\n"
}
