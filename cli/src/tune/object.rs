//! The recommendation as JSON.

use koel::tuning::Candidate;
use koel_lab::structures::Structure;
use serde_json::{Value, json};

use super::{Advice, Tune, call::Call, nearest::Nearest, others::is_real, trial::Trial};
use crate::facts;

impl Advice<'_> {
    /// Everything as one object. Names and meanings are stable.
    pub(super) fn object(&self) -> Value {
        let items = self.asked.planned(self.asked.items.now);
        let rejections = self.filters.rejections().iter().map(|rejection| {
            json!({
                "table": rejection.table().to_string(),
                "bucket_size": rejection.bucket_size(),
                "reason": rejection.reason(),
            })
        });
        let others = self.others.rows.iter().map(|&(structure, bits)| other(structure, bits, self.others.rate, items));
        let rejected = self.others.rejected.iter();
        json!({
            "asked": self.asked.object(),
            "candidates": self.filters.candidates().iter().map(|filter| self.candidate(filter)).collect::<Vec<_>>(),
            "rejections": rejections.collect::<Vec<_>>(),
            "others": others.collect::<Vec<_>>(),
            "others_rejected": rejected
                .map(|(structure, reason)| json!({ "name": structure.name(), "reason": reason }))
                .collect::<Vec<_>>(),
            "nearest": self.nearest.as_ref().map(Nearest::object),
            "trial": self.trial.as_ref().map(Trial::object),
            "builder": self.call.as_ref().map(Call::rust),
            "command": self.call.as_ref().map(Call::command),
        })
    }

    /// A filter, and what was measured of it.
    fn candidate(&self, filter: &Candidate) -> Value {
        let mut object = candidate(filter, self.asked.planned(self.asked.items.now));
        object["measured"] = self.trial.as_ref().map(|trial| trial.measured(filter.params())).into();
        object
    }
}

impl Nearest {
    pub(super) fn object(&self) -> Value {
        let Self { items, rate, bytes } = self;
        json!({ "items": items, "false_positive_rate": rate, "bytes": bytes })
    }
}

/// A filter, with the names of `koel info --json` for the same things.
pub(super) fn candidate(candidate: &Candidate, items: usize) -> Value {
    let object = json!({
        "copies": candidate.copies(),
        // Infinite when there are no items, for which JSON has no number.
        "bits_per_item": (items > 0).then(|| candidate.bits_per_item()),
        "load_factor": candidate.load(),
        "false_positive_rate": candidate.false_positive_rate(),
        "deletes": true,
        "grows": false,
        "static": false,
    });
    facts::with_params(candidate.params(), object)
}

impl Tune {
    /// What was asked for. `planned_items` has the headroom, too: of the most items, if there is a range.
    pub(super) fn object(&self) -> Value {
        let Self { items, fpr, bytes, bucket_size, copies, deletes, .. } = *self;
        json!({
            "items": items.now,
            "most_items": items.most,
            "planned_items": self.planned(self.most_items()),
            "false_positive_rate": fpr,
            "bytes": bytes,
            "table": self.table.map(|table| koel::TableKind::from(table).to_string()),
            "bucket_size": bucket_size,
            "addressing": koel::Addressing::from(self.addressing).to_string(),
            "copies": copies,
            "deletes": deletes,
        })
    }
}

/// A structure by its formula. For the lower bound, the operations are null.
fn other(structure: Structure, bits: f64, rate: Option<f64>, items: usize) -> Value {
    let real = is_real(structure);
    json!({
        "name": structure.name(),
        "bits_per_item": bits,
        "table_bytes": bits * items as f64 / 8.0,
        "false_positive_rate": rate,
        "deletes": real.then(|| structure.deletes()),
        "grows": real.then(|| structure.grows()),
        "static": real.then(|| structure.is_static()),
    })
}
