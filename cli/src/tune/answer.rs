//! The answer with the library's recommendation and the formulas of other structures, and the parts that all answers share.

use koel::{
    Addressing, Params, TableKind,
    tuning::{Candidate, Recommendation},
};
use koel_lab::{percent, structures::Structure};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Answer, Nearest, Tune, call::Call, trial::Trial};
use crate::text::{counted, or_dash, paragraphs, short_rate, size, table, wrapped};

/// The number of filters in a table, and of lines of those left out, without --all.
const SHOWN: usize = 4;

/// Everything that the answer prints.
pub(super) struct Advice<'a> {
    pub(super) request: &'a Tune,
    pub(super) filters: Recommendation,
    /// The rate at which other structures are compared.
    pub(super) rate: Option<f64>,
    /// The call that builds the best filter.
    pub(super) call: Option<Call>,
    /// The measurements, if there are keys.
    pub(super) trial: Option<Trial>,
}

/// A filter or structure that is left out, and the reason.
#[derive(Serialize)]
pub(super) struct Rejected {
    pub(super) name: String,
    pub(super) reason: String,
}

/// Another structure. The lower bound is not a structure, so its operations are `None`.
#[derive(Serialize)]
struct Other {
    name: &'static str,
    bits_per_item: f64,
    table_bytes: f64,
    false_positive_rate: f64,
    deletes: Option<bool>,
    grows: Option<bool>,
    #[serde(rename = "static")]
    is_static: Option<bool>,
}

impl Advice<'_> {
    pub(super) fn answer(&self) -> Answer {
        let (others, rejected) = self.others();
        let items = self.request.planned(self.request.items);
        let candidates = self.filters.candidates().iter().map(|filter| {
            let mut object = candidate(filter, items);
            object["measured"] = json!(self.trial.as_ref().and_then(|trial| trial.measured(filter.params())));
            object
        });
        let rejections = self.filters.rejections().iter().map(|rejection| {
            json!({
                "table": rejection.table().to_string(),
                "bucket_size": rejection.bucket_size(),
                "reason": rejection.reason(),
            })
        });
        let object = json!({
            "asked": self.request,
            "candidates": candidates.collect::<Value>(),
            "rejections": rejections.collect::<Value>(),
            "others": others,
            "others_rejected": rejected,
            "trial": self.trial,
        });
        let left_out = self.left_out(rejected);
        let found = self.call.as_ref().zip(self.filters.best()).map(|(call, best)| {
            let trial = self.trial.as_ref().map_or_else(String::new, |trial| format!("\n{}", trial.text()));
            let text = format!("\n{}\n{}{left_out}{trial}\n{call}", self.table(&others), self.notes(best));
            (call, text)
        });
        let question = wrapped(&format!("{}{}.", self.request.items_text(), self.request.limits_text()));
        Answer::new(self.request, &question, found, &left_out, object)
    }

    /// Returns the other structures, the smallest first, and those left out.
    fn others(&self) -> (Vec<Other>, Vec<Rejected>) {
        let (mut others, mut rejected) = (Vec::new(), Vec::new());
        // No structure can be compared at a rate of 0.
        let Some(rate) = self.rate.filter(|&rate| rate > 0.0) else { return (others, rejected) };
        let items = self.request.planned(self.request.items) as f64;
        for structure in Structure::ALL {
            let (name, real) = (structure.name(), (structure != Structure::LowerBound).then_some(structure));
            let (deletes, bits) = (real.map(Structure::deletes), structure.bits_per_item(rate));
            let mut reject = |reason| rejected.push(Rejected { name: String::from(name), reason: String::from(reason) });
            match bits {
                _ if self.request.deletes && deletes == Some(false) => reject("cannot delete"),
                None => reject("cannot have that rate"),
                Some(bits) => others.push(Other {
                    name,
                    bits_per_item: bits,
                    table_bytes: bits * items / 8.0,
                    false_positive_rate: rate,
                    deletes,
                    grows: real.map(Structure::grows),
                    is_static: real.map(Structure::is_static),
                }),
            }
        }
        others.sort_by(|one, other| one.bits_per_item.total_cmp(&other.bits_per_item));
        (others, rejected)
    }

    fn table(&self, others: &[Other]) -> String {
        let row = |name, bytes: f64, bits: f64, rate: f64, load: Option<f64>, can: [Option<bool>; 3]| {
            let bits = bits.is_finite().then(|| format!("{bits:.2}"));
            let mut row = vec![name, size(bytes), or_dash(bits), short_rate(rate), or_dash(load.map(|load| percent(load, 1)))];
            row.extend(can.map(|it| or_dash(it.map(|it| String::from(if it { "yes" } else { "no" })))));
            row
        };
        let header = ["filter", "size", "bits/item", "\u{3b5}", "load", "delete", "grow", "static"];
        let filters = self.request.shown(self.filters.candidates(), |filter| filter);
        let mut rows = vec![header.map(String::from).to_vec()];
        rows.extend(filters.iter().enumerate().map(|(place, filter)| {
            let (name, can) = (starred(label(filter.params()), place == 0), [true, false, false].map(Some));
            row(name, filter.bytes() as f64, filter.bits_per_item(), filter.false_positive_rate(), Some(filter.load()), can)
        }));
        rows.extend(others.iter().map(|other| {
            let can = [other.deletes, other.grows, other.is_static];
            row(String::from(other.name), other.table_bytes, other.bits_per_item, other.false_positive_rate, None, can)
        }));
        table(&rows, 2, &[0], &[1, filters.len() + 1])
    }

    /// Returns the notes below the table.
    fn notes(&self, best: &Candidate) -> String {
        let params = best.params();
        let (property, worse) =
            if self.request.fpr.is_some() { ("smallest", "no smaller") } else { ("lowest rate", "no better") };
        let mut notes = vec![
            format!(
                "* The {property}: {}, {} of {}. Room for {}.",
                counted(best.bytes(), "byte"),
                counted(params.buckets(), "bucket"),
                counted(params.bucket_size(), "slot"),
                counted(params.capacity(), "distinct item")
            ),
            String::from("f: bits per fingerprint, b: slots per bucket."),
        ];
        let filters = self.filters.candidates();
        let hidden = filters.len() - self.request.shown(filters, |filter| filter).len();
        notes.extend((hidden > 0).then(|| format!("{} are {worse}: --all shows them.", counted(hidden, "other filter"))));
        notes.extend(
            self.rate.filter(|&rate| rate > 0.0).map(|rate| {
                format!("Below the line: their authors' formulas, for large sets, at \u{3b5} = {}.", short_rate(rate))
            }),
        );
        notes.push(String::from("If the number of items will grow: koel build --grow."));
        paragraphs(&notes)
    }

    /// Lists what was left out, and why. Entries with the same reason share a line.
    fn left_out(&self, others: Vec<Rejected>) -> String {
        let mut last = None;
        let filters = self.filters.rejections().iter().map(|rejection| {
            let (kind, b) = (rejection.table(), rejection.bucket_size());
            let is_same = last.replace((kind, rejection.reason())) == Some((kind, rejection.reason()));
            let name = if is_same { b.to_string() } else { format!("{kind} b={b}") };
            Rejected { name, reason: String::from(rejection.reason()) }
        });
        let all: Vec<_> = filters.chain(others).collect();
        let groups = all.chunk_by(|one, other| one.reason == other.reason).map(|group| Rejected {
            name: group.iter().map(|one| one.name.as_str()).collect::<Vec<_>>().join(", "),
            reason: group[0].reason.clone(),
        });
        let text = left_out(&groups.collect::<Vec<_>>(), if self.request.all { usize::MAX } else { SHOWN });
        if text.is_empty() { text } else { format!("\n{text}") }
    }
}

impl Answer {
    /// Returns an answer with `found`, a filter's call and the text about it. If there is none, the answer has the nearest values
    /// that work.
    pub(super) fn new(request: &Tune, question: &str, found: Option<(&Call, String)>, left_out: &str, mut object: Value) -> Self {
        let (call, text, nearest) = if let Some((call, text)) = found {
            (Some(call), text, None)
        } else {
            let nearest = Nearest::find(request);
            (None, format!("No filter meets these requirements.\n{}{left_out}", nearest.text()), Some(nearest))
        };
        object["nearest"] = json!(nearest);
        object["builder"] = json!(call.map(Call::rust));
        object["command"] = json!(call.map(Call::command));
        Self { text: question.to_owned() + &text, object, found: call.is_some() }
    }
}

/// Formats a line for each of the first `most`, and one that counts the rest.
pub(super) fn left_out(rejected: &[Rejected], most: usize) -> String {
    if rejected.is_empty() {
        return String::new();
    }
    let lines = rejected.iter().take(most).map(|Rejected { name, reason }| format!("- {name}: {reason}."));
    let hidden = rejected.len().saturating_sub(most);
    let more = (hidden > 0).then(|| format!("- {}: --all shows them.", counted(hidden, "further reason")));
    format!("Left out:\n{}", paragraphs(&lines.chain(more).collect::<Vec<_>>()))
}

impl Tune {
    /// Formats the number of items, and the number with headroom.
    pub(super) fn items_text(&self) -> String {
        let items = counted(self.items, "item");
        match self.headroom {
            Some(_) => format!("{items}, with headroom {}", self.planned(self.items)),
            None => items,
        }
    }

    /// Formats the limits on the filters.
    pub(super) fn limits_text(&self) -> String {
        let Self { fpr, bytes, table, bucket_size, addressing, .. } = *self;
        let limits = [
            fpr.map(|rate| format!(", a false-positive rate \u{3b5} of at most {rate:?}")),
            bytes.map(|bytes| format!(", at most {}", counted(bytes, "byte"))),
            table.map(|table| format!(", {table} tables")),
            bucket_size.map(|slots| format!(", buckets of {}", counted(slots, "slot"))),
            (addressing != Addressing::default()).then(|| format!(", addressing {addressing}")),
        ];
        limits.into_iter().flatten().collect()
    }

    /// Selects the filters that a table shows, from a list that has the best first: the first [`SHOWN`], and those with the default
    /// bucket size, which every kind of table supports.
    pub(super) fn shown<'a, T>(&self, filters: &'a [T], candidate: impl Fn(&T) -> &Candidate) -> Vec<&'a T> {
        let has_default_buckets =
            |filter: &T| TableKind::Packed.bucket_sizes().contains(&candidate(filter).params().bucket_size());
        let shown =
            filters.iter().enumerate().filter(|&(place, filter)| self.all || place < SHOWN || has_default_buckets(filter));
        shown.map(|(_, filter)| filter).collect()
    }

    /// Returns the request as JSON. `planned_items` includes the headroom.
    pub(super) fn object(&self) -> Value {
        let Self { items, fpr, bytes, bucket_size, deletes, .. } = *self;
        json!({
            "items": items,
            "planned_items": self.planned(items),
            "false_positive_rate": fpr,
            "bytes": bytes,
            "table": self.table.map(|table| table.to_string()),
            "bucket_size": bucket_size,
            "addressing": self.addressing.to_string(),
            "deletes": deletes,
        })
    }
}

/// Returns the name of a filter in tables.
pub(super) fn label(params: &Params) -> String {
    format!("{} f={} b={}", params.table(), params.fingerprint_bits(), params.bucket_size())
}

/// Returns a name, with a mark if it is the best filter's.
pub(super) fn starred(name: String, is_best: bool) -> String {
    if is_best { name + " *" } else { name }
}

/// Returns a filter as JSON. Facts that `koel info --json` has, too, have the same names.
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
        // Infinite if there are no items, which JSON cannot represent, so it is null.
        "bits_per_item": (items > 0).then(|| candidate.bits_per_item()),
        "load_factor": candidate.load(),
        "false_positive_rate": candidate.false_positive_rate(),
        "deletes": true,
        "grows": false,
        "static": false,
    })
}
