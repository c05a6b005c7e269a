//! The answer as text and as JSON: one table of the candidates, whatever was given, and other structures by their formulas.

use koel::{
    Addressing, TableKind,
    tuning::{Candidate, Recommendation, Rejection},
};
use koel_lab::{percent, structures::Structure};
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Nearest, Tune,
    call::Call,
    cost::{Cost, Workload},
    trace::Replays,
    trial::Trial,
};
use crate::text::{Part, counted, label, or_dash, paragraphs, short_rate, size, table, time, wrapped};

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
    /// The replays, if there is a log.
    pub(super) replays: Option<Replays<'a>>,
    /// The lookups and their costs, if the cost of a false positive is given.
    pub(super) workload: Option<Workload>,
}

/// A filter or structure that is left out, and the reason.
#[derive(Serialize)]
struct Rejected {
    name: String,
    reason: String,
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
    /// Formats the answer. `nearest` has the values that work if there is no filter.
    pub(super) fn text(&self, nearest: Option<&Nearest>) -> String {
        let (others, rejected) = self.others();
        let (question, left_out) = (self.request.question(), self.left_out(rejected));
        let found = self.call.as_ref().zip(self.filters.best()).map(|(call, best)| {
            let (input, table, notes) = (paragraphs(&self.input()), self.table(&others), self.notes(best));
            format!("{question}{input}\n{table}\n{notes}{left_out}\n{call}")
        });
        found.unwrap_or_else(|| {
            let nearest = nearest.map(Nearest::text).unwrap_or_default();
            format!("{question}No filter meets these requirements.\n{nearest}{left_out}")
        })
    }

    /// Returns the answer as JSON.
    pub(super) fn object(&self, nearest: Option<&Nearest>) -> Value {
        let (others, rejected) = self.others();
        let items = self.request.planned(self.request.items);
        let candidates = self.filters.candidates().iter().map(|filter| {
            let mut object = candidate(filter, items);
            object["measured"] = json!(self.trial.as_ref().and_then(|trial| trial.measured(filter.params())));
            object["replay"] = json!(self.replays.as_ref().and_then(|replays| replays.of(filter.params())));
            object["cost_ns"] = json!(self.cost(filter));
            object
        });
        let growing = self.replays.as_ref().and_then(Replays::growing);
        let rejections = self.filters.rejections().iter().map(|rejection| {
            json!({
                "table": rejection.table().to_string(),
                "bucket_size": rejection.bucket_size(),
                "reason": reason(rejection),
            })
        });
        json!({
            "asked": self.request.object(),
            "candidates": candidates.chain(growing.map(|(.., object)| object)).collect::<Value>(),
            "rejections": rejections.collect::<Value>(),
            "others": others,
            "others_rejected": rejected,
            "trial": self.trial,
            "trace": self.replays.as_ref().map(|replays| replays.trace),
            "picture": self.replays.as_ref().and_then(|replays| replays.picture.as_ref()).map(|picture| picture.display().to_string()),
            "cost": self.workload.as_ref().map(Workload::object),
            "nearest": nearest,
            "builder": self.call.as_ref().map(Call::rust),
            "command": self.call.as_ref().map(Call::command),
        })
    }

    fn cost(&self, filter: &Candidate) -> Option<Cost> {
        self.workload.as_ref()?.cost(filter, self.trial.as_ref())
    }

    /// Returns what was read of the user's keys, queries or log.
    fn input(&self) -> Vec<String> {
        let trial = self.trial.iter().flat_map(Trial::input);
        trial.chain(self.replays.iter().flat_map(Replays::input)).collect()
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

    /// Formats the table: the filters, and below a line other structures. Each part has the filters that it has cells for.
    fn table(&self, others: &[Other]) -> String {
        let filters = self.request.shown(self.filters.candidates());
        let labels = filters.iter().enumerate().map(|(place, filter)| {
            let star = if place == 0 { " *" } else { "" };
            label(filter.params()) + star
        });
        let growing = self.replays.as_ref().and_then(Replays::growing);
        let mut names: Vec<_> = labels.chain(growing.iter().map(|(label, ..)| label.clone())).collect();
        let group = names.len();
        names.extend(others.iter().map(|other| String::from(other.name)));
        let mut parts = vec![self.first_part(&filters, growing.map(|(_, bytes, _)| bytes), others)];
        parts.extend(self.trial.iter().flat_map(Trial::parts));
        parts.extend(self.replays.iter().map(Replays::part));
        let parts = parts.into_iter().map(|Part { header, rows }| {
            let header = ["filter"].iter().chain(&header).map(|name| String::from(*name)).collect();
            let rows = names.iter().zip(rows).map(|(name, cells)| [name.clone()].into_iter().chain(cells).collect());
            table(&[header].into_iter().chain(rows).collect::<Vec<_>>(), &[0], &[1, group + 1])
        });
        parts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the columns that follow from the parameters, and the cost. Of a growing filter, only the bytes are known.
    fn first_part(&self, filters: &[&Candidate], growing: Option<usize>, others: &[Other]) -> Part {
        let has_cost = self.workload.is_some();
        let row = |bytes: f64, [bits, rate, load]: [Option<f64>; 3], cost: Option<Cost>, changes: &str| {
            let bits = bits.filter(|bits| bits.is_finite()).map(|bits| format!("{bits:.2}"));
            let mut row =
                vec![size(bytes), or_dash(bits), or_dash(rate.map(short_rate)), or_dash(load.map(|load| percent(load, 1)))];
            row.extend(has_cost.then(|| or_dash(cost.map(|cost| time(cost.total)))));
            row.push(String::from(changes));
            row
        };
        let mut rows: Vec<_> = filters
            .iter()
            .map(|filter| {
                let facts = [filter.bits_per_item(), filter.false_positive_rate(), filter.load()].map(Some);
                row(filter.bytes() as f64, facts, self.cost(filter), changes(true, false, false))
            })
            .collect();
        rows.extend(growing.map(|bytes| row(bytes as f64, [None; 3], None, changes(true, true, false))));
        rows.extend(others.iter().map(|other| {
            let Other { bits_per_item, table_bytes, false_positive_rate, deletes, grows, is_static, .. } = *other;
            let can = deletes.zip(grows).zip(is_static).map(|((deletes, grows), is_static)| changes(deletes, grows, is_static));
            row(table_bytes, [Some(bits_per_item), Some(false_positive_rate), None], None, can.unwrap_or("-"))
        }));
        let header = ["size", "bits", "\u{3b5}", "load", "cost", "changes"];
        Part::new(&header.into_iter().filter(|&name| has_cost || name != "cost").collect::<Vec<_>>(), rows)
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
            String::from("f: bits per fingerprint, b: slots per bucket; bits: per item."),
        ];
        let filters = self.filters.candidates();
        let hidden = filters.len() - self.request.shown(filters).len();
        notes.extend((hidden > 0).then(|| format!("{} are {worse}: --all shows them.", counted(hidden, "other filter"))));
        notes.extend(
            self.rate.filter(|&rate| rate > 0.0).map(|rate| {
                format!("Below the line: their authors' formulas, for large sets, at \u{3b5} = {}.", short_rate(rate))
            }),
        );
        notes.push(String::from("If the number of items will grow: koel build --grow."));
        notes.extend(self.trial.iter().flat_map(Trial::notes));
        notes.extend(self.replays.iter().flat_map(Replays::notes));
        notes.extend(self.workload.iter().flat_map(|workload| workload.notes(best)));
        paragraphs(&notes)
    }

    /// Lists what was left out, and why. Entries with the same reason share a line.
    fn left_out(&self, others: Vec<Rejected>) -> String {
        let mut last = None;
        let filters = self.filters.rejections().iter().map(|rejection| {
            let (kind, b) = (rejection.table(), rejection.bucket_size());
            let is_same = last.replace((kind, rejection.reason())) == Some((kind, rejection.reason()));
            let name = if is_same { b.to_string() } else { format!("{kind} b={b}") };
            Rejected { name, reason: reason(rejection) }
        });
        let all: Vec<_> = filters.chain(others).collect();
        let groups = all.chunk_by(|one, other| one.reason == other.reason).map(|group| {
            let names: Vec<_> = group.iter().map(|one| one.name.as_str()).collect();
            format!("- {}: {}.", names.join(", "), group[0].reason)
        });
        let mut lines: Vec<_> = groups.collect();
        if !self.request.all && lines.len() > SHOWN {
            let hidden = lines.split_off(SHOWN).len();
            lines.push(format!("- {}: --all shows them.", counted(hidden, "further reason")));
        }
        if lines.is_empty() { String::new() } else { format!("\nLeft out:\n{}", paragraphs(&lines)) }
    }
}

/// Returns why a filter is left out. The library's message about a rate does not say that other buckets may keep it.
fn reason(rejection: &Rejection) -> String {
    let filters = format!("filters with {} per bucket", counted(rejection.bucket_size(), "slot"));
    rejection.reason().replacen("false-positive rate: ", "--fpr: ", 1).replacen("filters of this size", &filters, 1)
}

impl Tune {
    /// Formats the number of items, with and without headroom, and the limits on the filters.
    fn question(&self) -> String {
        let Self { items, headroom, fpr, bytes, table, bucket_size, addressing, .. } = *self;
        let parts = [
            Some(counted(items, "item")),
            headroom.map(|_| format!("with headroom {}", self.planned(items))),
            fpr.map(|rate| format!("a false-positive rate \u{3b5} of at most {rate:?}")),
            bytes.map(|bytes| format!("at most {}", counted(bytes, "byte"))),
            table.map(|table| format!("{table} tables")),
            bucket_size.map(|slots| format!("buckets of {}", counted(slots, "slot"))),
            (addressing != Addressing::default()).then(|| format!("addressing {addressing}")),
        ];
        wrapped(&format!("{}.", parts.into_iter().flatten().collect::<Vec<_>>().join(", ")))
    }

    /// Selects the filters that the table shows, from a list that has the best first: the first [`SHOWN`], and those with the
    /// default bucket size, which every kind of table supports.
    pub(super) fn shown<'a>(&self, filters: &'a [Candidate]) -> Vec<&'a Candidate> {
        let has_default_buckets = |filter: &Candidate| TableKind::Packed.bucket_sizes().contains(&filter.params().bucket_size());
        let shown =
            filters.iter().enumerate().filter(|&(place, filter)| self.all || place < SHOWN || has_default_buckets(filter));
        shown.map(|(_, filter)| filter).collect()
    }

    /// Returns the request as JSON. `planned_items` includes the headroom.
    fn object(&self) -> Value {
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

/// Names the changes that a structure supports. One that grows needs no planned number of items.
fn changes(deletes: bool, grows: bool, is_static: bool) -> &'static str {
    match (is_static, grows, deletes) {
        (true, ..) => "static",
        (false, true, true) => "grow, delete",
        (false, true, false) => "grow",
        (false, false, true) => "add, delete",
        (false, false, false) => "add",
    }
}

/// Returns a filter as JSON. Facts that `koel info --json` has, too, have the same names.
fn candidate(candidate: &Candidate, items: usize) -> Value {
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
