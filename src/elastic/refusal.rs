//! Why a request is refused, in words, and what would work instead. The words cost little; what searches is called by `tuning` only.

use alloc::string::String;
use core::iter::successors;

use super::plan::{MOST_LANES, Request};
use crate::{
    bits::wide,
    params::{DEFAULT_BUCKET_SIZE, GrowingRequest, Nearest, ParamError, Parameter, Rate, TableKind, Value, Why},
};

impl Request {
    /// The error for a parameter that [`plan`](Self::plan) found to be the first that has to change.
    pub(super) fn refuse(&self, parameter: Parameter) -> ParamError {
        let words = match parameter {
            Parameter::BucketSize => self.wrong_bucket_size(),
            Parameter::FalsePositiveRate => self.wrong_rate(),
            Parameter::Lanes => self.wrong_lanes(),
            _ => self.wrong_capacity(),
        };
        ParamError::of(parameter, Why::Growing(words, self.kept(None)))
    }

    /// The error for a limit of memory that leaves too little for an empty filter, which is charged `needed` bytes.
    pub(super) fn refuse_max_bytes(&self, max_bytes: usize, needed: u64) -> ParamError {
        let words = text!("{max_bytes} given, but an empty filter takes up to {needed}; the nearest that works is {needed}");
        ParamError::of(Parameter::MaxBytes, Why::Growing(words, self.kept(Some(max_bytes))))
    }

    /// What an error keeps.
    fn kept(&self, max_bytes: Option<usize>) -> GrowingRequest {
        let Self { capacity, max_capacity, false_positive_rate, table, bucket_size, lanes, .. } = *self;
        GrowingRequest {
            capacity,
            max_capacity,
            false_positive_rate: false_positive_rate.map(Rate),
            table,
            bucket_size,
            // More than there can be are too many, whatever their number.
            lanes: lanes.map(|lanes| u16::try_from(lanes).unwrap_or(u16::MAX)),
            max_bytes,
        }
    }

    fn wrong_bucket_size(&self) -> String {
        let given = self.bucket_size.unwrap_or(DEFAULT_BUCKET_SIZE);
        let limits = self.table.unwrap_or(TableKind::Single).bucket_sizes();
        let (least, most) = limits.into_inner();
        let nearest = given.clamp(least, most);
        match self.table.map(TableKind::name) {
            Some(table) if least == most => {
                text!("{given} given, but the {table} table takes {least}; the nearest that works is {nearest}")
            }
            Some(table) => {
                text!("{given} given, but the {table} table takes {least} to {most}; the nearest that works is {nearest}")
            }
            None => text!("{given} given, but a table takes {least} to {most}; the nearest that works is {nearest}"),
        }
    }

    fn wrong_rate(&self) -> String {
        let limit = "a rate between 0 and 1 is needed, which fingerprints of 32 bits keep at a thousand times the maximal capacity, \
                     too; 0.001 is a good start";
        match self.false_positive_rate {
            Some(rate) => text!("{} given, but {limit}", Rate(rate)),
            None => text!("none given, but {limit}"),
        }
    }

    fn wrong_lanes(&self) -> String {
        let given = self.lanes.unwrap_or(1);
        let nearest = given.clamp(1, MOST_LANES).next_power_of_two();
        text!("{given} given, but their number is a power of two, {MOST_LANES} at most; the nearest that works is {nearest}")
    }

    fn wrong_capacity(&self) -> String {
        let capacity = self.capacity.unwrap_or_default();
        let limit = "the hashes have too few bits for so many items; give fewer, or a higher false-positive rate";
        match self.max_capacity {
            Some(max) if max < capacity => {
                text!("{capacity} given, but the maximal capacity is {max}; give at most {max}, or a larger maximal capacity")
            }
            Some(max) => text!("{capacity}, and {max} at most given, but {limit}"),
            None => text!("{capacity}, and the default at most given, but {limit}"),
        }
    }
}

/// What works in place of a parameter of a filter that grows, where the message does not say so.
pub(crate) fn nearest(parameter: Parameter, refused: GrowingRequest) -> Option<Nearest> {
    let GrowingRequest { capacity, max_capacity, false_positive_rate, table, bucket_size, lanes, max_bytes } = refused;
    let request = Request {
        capacity,
        max_capacity,
        false_positive_rate: false_positive_rate.map(|Rate(rate)| rate),
        table,
        bucket_size,
        seed: 0,
        lanes: lanes.map(usize::from),
    };
    let halves = |number: u64| successors(Some(number), |number| Some(number / 2)).take_while(|&number| number > 0);
    let value = match parameter {
        Parameter::FalsePositiveRate => {
            // Rates of fingerprint lengths that follow each other have a ratio of two, so that steps of a quarter skip none.
            let works = |rate: &f64| Request { false_positive_rate: Some(*rate), ..request }.plan().is_ok();
            let lowest = successors(Some(1e-12), |rate| Some(1.25 * rate)).take_while(|&rate| rate < 1.0).find(works)?;
            request.false_positive_rate.filter(|&rate| rate < lowest)?;
            Value::LowestRate(Rate(lowest))
        }
        Parameter::Capacity => {
            let max = max_capacity.filter(|&max| max >= capacity.unwrap_or_default())?;
            let works = |max: &u64| Request { max_capacity: Some(*max), ..request }.plan().is_ok();
            Value::MaxCapacity(halves(max).take_while(|&max| max >= capacity.unwrap_or_default()).find(works)?)
        }
        Parameter::MaxBytes => {
            let most = wide(max_bytes?);
            let works = |capacity: &u64| {
                Request { capacity: Some(*capacity), ..request }.plan().is_ok_and(|params| params.charged_when_empty() <= most)
            };
            Value::Capacity(halves(request.plan().ok()?.capacity / 2).find(works)?)
        }
        _ => return None,
    };
    Some(Nearest::alone(value))
}
