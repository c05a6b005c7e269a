//! Why a request is refused, in words, with a remedy.

use alloc::string::String;

use super::plan::{ElasticParams, MOST_LANES, Request};
use crate::{
    bits::wide,
    params::{DEFAULT_BUCKET_SIZE, ParamError, Parameter, TableKind},
};

impl Request {
    /// The error for a parameter that [`plan`](Self::plan) found to be the first that has to change.
    pub(super) fn refuse(&self, parameter: Parameter) -> ParamError {
        let [given, limit, remedy] = match parameter {
            Parameter::BucketSize => self.wrong_bucket_size(),
            Parameter::FalsePositiveRate => self.wrong_rate(),
            Parameter::Lanes => self.wrong_lanes(),
            _ => self.wrong_capacity(),
        };
        ParamError { parameter, given, limit, remedy }
    }

    /// The error for a limit of memory that leaves too little for an empty filter. `bytes` is what such a filter takes.
    pub(super) fn refuse_max_bytes(&self, max_bytes: usize, needed: u64, bytes: impl Fn(&ElasticParams) -> u64) -> ParamError {
        let works = |capacity: &u64| {
            let smaller = Self { capacity: Some(*capacity), ..*self };
            smaller.plan().is_ok_and(|params| bytes(&params) <= wide(max_bytes))
        };
        let asked_for = self.plan().map_or(0, |params| params.capacity);
        let halves =
            core::iter::successors(Some(asked_for / 2), |capacity| Some(capacity / 2)).take_while(|&capacity| capacity > 0);
        let smaller = { halves }.find(works).map_or_else(String::new, |capacity| text!(", or a capacity of {capacity}"));
        ParamError {
            parameter: Parameter::MaxBytes,
            given: text!("{max_bytes}"),
            limit: text!("an empty filter takes up to {needed}"),
            remedy: text!("the nearest that works is {needed}{smaller}"),
        }
    }

    fn wrong_bucket_size(&self) -> [String; 3] {
        let given = self.bucket_size.unwrap_or(DEFAULT_BUCKET_SIZE);
        let (table, limits) = match self.table {
            Some(table) => (text!("the {table} table"), table.bucket_sizes()),
            None => (text!("a table"), TableKind::Single.bucket_sizes()),
        };
        let nearest = given.clamp(*limits.start(), *limits.end());
        let range =
            if limits.start() == limits.end() { text!("{nearest}") } else { text!("{} to {}", limits.start(), limits.end()) };
        [text!("{given}"), text!("{table} takes {range}"), text!("the nearest that works is {nearest}")]
    }

    fn wrong_rate(&self) -> [String; 3] {
        let given = self.false_positive_rate.map_or_else(|| text!("none"), |rate| text!("{rate}"));
        // Rates of fingerprint lengths that follow each other have a ratio of two, so that steps of a quarter skip none.
        let works = |rate: &f64| Self { false_positive_rate: Some(*rate), ..*self }.plan().is_ok();
        let lowest = core::iter::successors(Some(1e-12), |rate| Some(1.25 * rate)).take_while(|&rate| rate < 1.0).find(works);
        let remedy = match (self.false_positive_rate, lowest) {
            (Some(rate), Some(lowest)) if rate < lowest => text!("the lowest that works is about {lowest:.1e}"),
            _ => text!("0.001 is a good start"),
        };
        [
            given,
            text!(
                "a rate between 0 and 1 is needed, which fingerprints of 32 bits keep at a thousand times the maximal capacity, too"
            ),
            remedy,
        ]
    }

    fn wrong_lanes(&self) -> [String; 3] {
        let given = self.lanes.unwrap_or(1);
        let nearest = given.clamp(1, MOST_LANES).next_power_of_two();
        let limit = text!("their number is a power of two, {MOST_LANES} at most");
        [text!("{given}"), limit, text!("the nearest that works is {nearest}")]
    }

    fn wrong_capacity(&self) -> [String; 3] {
        let (capacity, max) = (self.capacity.unwrap_or_default(), self.max_capacity);
        match max {
            Some(max) if max < capacity => [
                text!("{capacity}"),
                text!("the maximal capacity is {max}"),
                text!("give at most {max}, or a larger maximal capacity"),
            ],
            _ => {
                let works = |max: &u64| Self { max_capacity: Some(*max), ..*self }.plan().is_ok();
                let mut halves = core::iter::successors(max, |max| Some(max / 2)).take_while(|&max| max >= capacity.max(1));
                let remedy = match halves.find(works) {
                    Some(max) => text!("give a higher false-positive rate, or a maximal capacity of {max}, which works"),
                    None => text!("give a higher false-positive rate"),
                };
                [
                    text!("{capacity}, and {} at most", max.map_or_else(|| text!("the default"), |max| text!("{max}"))),
                    text!("the hashes have too few bits for so many items"),
                    remedy,
                ]
            }
        }
    }
}
