//! The trial as JSON.

use koel::Params;
use koel_lab::{Rounds, Timing};
use serde_json::{Value, json};

use super::{Trial, measure::Tried};

impl Trial {
    /// What is the same for all filters.
    pub(in crate::tune) fn object(&self) -> Value {
        let (keys, absent) = (&self.keys, &self.absent);
        json!({
            "keys": {
                "read": keys.read,
                "different": keys.different(),
                "duplicates": keys.read - keys.different(),
                "most_copies": keys.most_copies,
            },
            "queries": absent.queries.as_ref().map(|queries| json!({
                "read": queries.read,
                "present": queries.present,
                "absent": absent.asked(),
                "present_share": queries.present as f64 / queries.read as f64,
            })),
            "absent_keys": absent.different,
            "absent_keys_from": if absent.queries.is_some() { "queries" } else { "keys" },
            "hash_ns": times(&self.measured.hash),
            "rounds": self.measured.rounds,
        })
    }

    /// What was measured of one of the filters; null if it was not tried.
    pub(in crate::tune) fn measured(&self, params: &Params) -> Value {
        let tried = self.measured.filters.iter().find(|filter| filter.params == *params);
        tried.map_or(Value::Null, |filter| self.filter(filter))
    }

    fn filter(&self, filter: &Tried) -> Value {
        let found = filter.false_positives;
        let (rate, interval) = filter.rate(&self.absent).unzip();
        let (low, high) = interval.unzip();
        json!({
            "fits": filter.fits(&self.keys),
            "stored": filter.stored,
            "load_factor": filter.load,
            "snapshot_bytes": filter.params.snapshot_bytes(),
            "expected_false_positive_rate": filter.expected_rate,
            "false_positive_rate": rate,
            "false_positive_rate_low": low,
            "false_positive_rate_high": high,
            "false_positives": found.map(|found| found.different),
            "query_false_positives": found.filter(|_| self.absent.queries.is_some()).map(|found| found.asked),
            "insert_ns": times(&filter.insert),
            "present_ns": times(&filter.present),
            "absent_ns": times(&filter.absent),
        })
    }
}

/// The quartiles; null if there are no times.
fn times(rounds: &Rounds) -> Value {
    rounds.timing().map_or(Value::Null, |Timing { quartiles, disturbed, .. }| {
        json!({ "median": quartiles.median, "low": quartiles.low, "high": quartiles.high, "disturbed": disturbed })
    })
}
