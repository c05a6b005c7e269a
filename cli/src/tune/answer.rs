//! The library's recommendation, beside other structures' formulas.

use koel::{
    Params, TableKind,
    tuning::{Candidate, Recommendation},
};
use koel_lab::{percent, structures::Structure};
use serde_json::{Value, json};

use super::{Answer, Nearest, Tune, call::Call, trial::Trial};
use crate::text::{counted, narrow, size, table, three_digits, wrapped};

/// Filters in the table, and groups of those left out, without --all.
const SHOWN: usize = 4;

/// Everything to print.
pub(super) struct Advice<'a> {
    pub(super) asked: &'a Tune,
    pub(super) filters: Recommendation,
    pub(super) others: Others,
    /// The call that builds the best filter.
    pub(super) call: Option<Call>,
    /// Values that work, if those given do not.
    pub(super) nearest: Option<Nearest>,
    /// What was measured, if there are keys.
    pub(super) trial: Option<Trial>,
}

/// Other structures at one rate.
pub(super) struct Others {
    /// The smallest first, each with its bits per item.
    rows: Vec<(Structure, f64)>,
    /// Those left out, each with the reason.
    rejected: Vec<(Structure, &'static str)>,
    rate: Option<f64>,
}

impl Others {
    /// All structures at this rate; with `deletes`, only those that support deletion. Without a rate above 0, none can be compared.
    pub(super) fn at(rate: Option<f64>, deletes: bool) -> Self {
        let rate = rate.filter(|&rate| rate > 0.0);
        let mut others = Self { rows: Vec::new(), rejected: Vec::new(), rate };
        let Some(rate) = rate else { return others };
        for structure in Structure::ALL {
            match structure.bits_per_item(rate) {
                _ if deletes && !structure.deletes() && is_real(structure) => others.rejected.push((structure, "cannot delete")),
                Some(bits) => others.rows.push((structure, bits)),
                None => others.rejected.push((structure, "cannot have that rate")),
            }
        }
        others.rows.sort_by(|(_, one), (_, other)| one.total_cmp(other));
        others
    }
}

/// The lower bound is not a structure: no operations can be supported or not.
fn is_real(structure: Structure) -> bool {
    structure != Structure::LowerBound
}

impl Advice<'_> {
    pub(super) fn answer(&self) -> Answer {
        Answer { found: self.call.is_some(), text: self.text(), object: self.object() }
    }

    fn planned(&self) -> usize {
        self.asked.planned(self.asked.items.now)
    }

    fn text(&self) -> String {
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
        let rate = fpr.map(|rate| format!(", a false-positive rate \u{3b5} of at most {rate:?}")).unwrap_or_default();
        let bytes = bytes.map(|bytes| format!(", at most {}", counted(bytes, "byte"))).unwrap_or_default();
        format!("{}{rate}{bytes}.", self.asked.said_items())
    }

    fn table(&self) -> String {
        let header = ["filter", "size", "bits/item", "\u{3b5}", "load", "delete", "grow", "static"];
        let filters = self.asked.shown(&self.filters);
        let yes = |it| String::from(if it { "yes" } else { "no" });
        let mut rows = vec![header.map(String::from).to_vec()];
        rows.extend(filters.iter().enumerate().map(|(number, filter)| {
            let bits = filter.bits_per_item();
            vec![
                label(filter.params(), number == 0),
                size(filter.bytes() as f64),
                if bits.is_finite() { format!("{bits:.2}") } else { String::from("-") },
                narrow(filter.false_positive_rate()),
                percent(filter.load(), 1),
                yes(true),
                yes(false),
                yes(false),
            ]
        }));
        rows.extend(self.others.rows.iter().map(|&(structure, bits)| {
            let can = |it| if is_real(structure) { yes(it) } else { String::from("-") };
            vec![
                structure.name().to_owned(),
                size(bits * self.planned() as f64 / 8.0),
                format!("{bits:.2}"),
                self.others.rate.map_or_else(|| String::from("-"), narrow),
                String::from("-"),
                can(structure.deletes()),
                can(structure.grows()),
                can(structure.is_static()),
            ]
        }));
        table(&rows, 2, &[0], &[1, filters.len() + 1])
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
        let mut last = None;
        for rejection in self.filters.rejections() {
            let (kind, b) = (rejection.table(), rejection.bucket_size());
            let name = format!("{kind} b={b}");
            let further = if last == Some(kind) { format!(", {b}") } else { format!(", {name}") };
            last = Some(kind);
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

    /// Everything as one object. Names and meanings are stable.
    fn object(&self) -> Value {
        let items = self.planned();
        let candidates = self.filters.candidates().iter().map(|filter| {
            let mut object = candidate(filter, items);
            object["measured"] = self.trial.as_ref().map(|trial| trial.measured(filter.params())).into();
            object
        });
        let rejections = self.filters.rejections().iter().map(|rejection| {
            json!({
                "table": rejection.table().to_string(),
                "bucket_size": rejection.bucket_size(),
                "reason": rejection.reason(),
            })
        });
        // For the lower bound, the operations are null.
        let others = self.others.rows.iter().map(|&(structure, bits)| {
            let real = is_real(structure);
            json!({
                "name": structure.name(),
                "bits_per_item": bits,
                "table_bytes": bits * items as f64 / 8.0,
                "false_positive_rate": self.others.rate,
                "deletes": real.then(|| structure.deletes()),
                "grows": real.then(|| structure.grows()),
                "static": real.then(|| structure.is_static()),
            })
        });
        let rejected = self.others.rejected.iter();
        let rejected = rejected.map(|(structure, reason)| json!({ "name": structure.name(), "reason": reason }));
        json!({
            "asked": self.asked.object(),
            "candidates": candidates.collect::<Vec<_>>(),
            "rejections": rejections.collect::<Vec<_>>(),
            "others": others.collect::<Vec<_>>(),
            "others_rejected": rejected.collect::<Vec<_>>(),
            "nearest": self.nearest,
            "trial": self.trial.as_ref().map(Trial::object),
            "builder": self.call.as_ref().map(Call::rust),
            "command": self.call.as_ref().map(Call::command),
        })
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

    /// What was asked for. `planned_items` has the headroom, too: of the most items, if there is a range.
    pub(super) fn object(&self) -> Value {
        let Self { items, fpr, bytes, bucket_size, copies, deletes, .. } = *self;
        json!({
            "items": items.now,
            "most_items": items.most,
            "planned_items": self.planned(self.most_items()),
            "false_positive_rate": fpr,
            "bytes": bytes,
            "table": self.table.map(|table| table.to_string()),
            "bucket_size": bucket_size,
            "addressing": self.addressing.to_string(),
            "copies": copies,
            "deletes": deletes,
        })
    }
}

/// The name of a filter, with a mark if it is the best.
pub(super) fn label(params: &Params, is_best: bool) -> String {
    let mark = if is_best { " *" } else { "" };
    format!("{} f={} b={}{mark}", params.table(), params.fingerprint_bits(), params.bucket_size())
}

/// A filter, with the names of `koel info --json` for the same things.
pub(super) fn candidate(candidate: &Candidate, items: usize) -> Value {
    let params = candidate.params();
    json!({
        "table": params.table().to_string(),
        "fingerprint_bits": params.fingerprint_bits(),
        "bucket_size": params.bucket_size(),
        "buckets": params.buckets(),
        "addressing": params.addressing().to_string(),
        "slots": params.slots(),
        "capacity": params.capacity(),
        "table_bytes": params.table_bytes(),
        "false_positive_rate_at_capacity": params.false_positive_rate_at_capacity(),
        "copies": candidate.copies(),
        // Infinite when there are no items, for which JSON has no number.
        "bits_per_item": (items > 0).then(|| candidate.bits_per_item()),
        "load_factor": candidate.load(),
        "false_positive_rate": candidate.false_positive_rate(),
        "deletes": true,
        "grows": false,
        "static": false,
    })
}
