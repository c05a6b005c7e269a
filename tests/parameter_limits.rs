//! The limits in the errors of invalid parameters: they work, and nothing beyond them does.

#![allow(clippy::cast_precision_loss, reason = "capacities are compared as floats")]

use crate::common::ADDRESSINGS;
use koel::{Addressing, Builder, CuckooFilter, ParamError, TableKind};
use std::{
    fmt::Debug,
    mem::{Discriminant, discriminant},
    str::FromStr,
    sync::LazyLock,
};

/// The settings of a builder.
#[derive(Clone, Copy, Debug)]
struct Request {
    table: Option<TableKind>,
    bucket_size: Option<u32>,
    addressing: Addressing,
    size: Size,
    precision: Precision,
}

#[derive(Clone, Copy, Debug)]
enum Size {
    Capacity(usize),
    Buckets(u64),
}

#[derive(Clone, Copy, Debug)]
enum Precision {
    Bits(u32),
    Rate(f64),
}

impl Request {
    fn builder(self) -> Builder {
        let mut builder = CuckooFilter::builder().addressing(self.addressing);
        if let Some(table) = self.table {
            builder = builder.table(table);
        }
        if let Some(slots) = self.bucket_size {
            builder = builder.bucket_size(slots);
        }
        builder = match self.size {
            Size::Capacity(items) => builder.capacity(items),
            Size::Buckets(buckets) => builder.buckets(buckets),
        };
        match self.precision {
            Precision::Bits(bits) => builder.fingerprint_bits(bits),
            Precision::Rate(rate) => builder.false_positive_rate(rate),
        }
    }

    fn error(self) -> Option<ParamError> {
        self.builder().params().err()
    }

    /// Returns requests with the values that an error offers. From a range, it takes the first and the last value.
    fn remedied(self, error: ParamError) -> Vec<Self> {
        match error {
            ParamError::Capacity { max, .. } => vec![Self { size: Size::Capacity(max), ..self }],
            ParamError::Buckets { max, addressing, .. } => {
                let fewest = if addressing == Addressing::AnySize { 2 } else { 1 };
                [fewest, max].map(|buckets| Self { size: Size::Buckets(buckets), ..self }).to_vec()
            }
            ParamError::FalsePositiveRate { min: lowest, .. } => {
                // The message contains the rate in decimal.
                let message = error.to_string();
                let (_, range) = message.split_once("rates from ").expect("a range");
                let (written, _) = range.split_once(' ').expect("two limits");
                let rates = [lowest, number(written), 0.999];
                rates.map(|rate| Self { precision: Precision::Rate(rate), ..self }).to_vec()
            }
            ParamError::FingerprintBits { table, .. } => {
                let (first, last) = table.fingerprint_bits().into_inner();
                [first, last].map(|bits| Self { precision: Precision::Bits(bits), ..self }).to_vec()
            }
            ParamError::BucketSize { table, .. } => {
                let (first, last) = table.bucket_sizes().into_inner();
                [first, last].map(|slots| Self { bucket_size: Some(slots), ..self }).to_vec()
            }
            other => panic!("{self:?}: {other}"),
        }
    }

    /// Returns requests with values just beyond those that an error offers.
    fn beyond(self, error: ParamError) -> Vec<Self> {
        match error {
            ParamError::Capacity { max, .. } => vec![Self { size: Size::Capacity(max + 1), ..self }],
            ParamError::Buckets { max, addressing, .. } => {
                let more = if addressing == Addressing::AnySize { max + 2 } else { 2 * max };
                vec![Self { size: Size::Buckets(more), ..self }]
            }
            ParamError::FalsePositiveRate { min: lowest, .. } => {
                [lowest * 0.999, 1.0].map(|rate| Self { precision: Precision::Rate(rate), ..self }).to_vec()
            }
            ParamError::FingerprintBits { table, .. } => {
                let (first, last) = table.fingerprint_bits().into_inner();
                [first - 1, last + 1].map(|bits| Self { precision: Precision::Bits(bits), ..self }).to_vec()
            }
            ParamError::BucketSize { table, .. } => {
                let (first, last) = table.bucket_sizes().into_inner();
                [first - 1, last + 1].map(|slots| Self { bucket_size: Some(slots), ..self }).to_vec()
            }
            other => panic!("{self:?}: {other}"),
        }
    }
}

#[track_caller]
fn number<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error:?}"))
}

/// Requests with every combination of valid and invalid values that is refused, and the error of each.
static REFUSED: LazyLock<Vec<(Request, ParamError)>> = LazyLock::new(|| {
    let sizes = [
        Size::Capacity(0),
        Size::Capacity(1000),
        Size::Capacity(1_000_000_000_000),
        Size::Capacity(usize::MAX - 1),
        Size::Capacity(usize::MAX),
        Size::Buckets(0),
        Size::Buckets(1),
        Size::Buckets(3),
        Size::Buckets(600),
        Size::Buckets((1 << 33) - 1),
        Size::Buckets(u64::MAX - 1),
        Size::Buckets(u64::MAX),
    ];
    let rates = [f64::NAN, f64::NEG_INFINITY, -0.0, 1e-300, 1e-12, 2e-9, 0.001, 0.999_999_9, 1.0, f64::INFINITY];
    let bits = [0, 1, 3, 13, 32, 33, u32::MAX].map(Precision::Bits);
    let mut refused = Vec::new();
    for table in [None, Some(TableKind::Single), Some(TableKind::Packed)] {
        for bucket_size in [None, Some(0), Some(1), Some(8), Some(17), Some(u32::MAX)] {
            for addressing in ADDRESSINGS {
                for size in sizes {
                    for precision in rates.map(Precision::Rate).into_iter().chain(bits) {
                        let request = Request { table, bucket_size, addressing, size, precision };
                        refused.extend(request.error().map(|error| (request, error)));
                    }
                }
            }
        }
    }
    refused
});

/// Follows remedies until the request works, and returns how many were needed. Asserts that no parameter is named twice.
fn follow(wrong: Request, request: Request, error: ParamError, named: &mut Vec<Discriminant<ParamError>>) -> usize {
    assert!(!named.contains(&discriminant(&error)), "{wrong:?}: {request:?} was one remedy, and then {error}");
    named.push(discriminant(&error));
    let mut followed = 0;
    for remedied in request.remedied(error) {
        followed += 1 + remedied.error().map_or(0, |error| follow(wrong, remedied, error, named));
    }
    named.pop();
    followed
}

/// For any invalid request, each remedy names a parameter that was not named before, and the last one works.
#[test]
fn remedies_of_parameters_work() {
    let followed: usize = REFUSED.iter().map(|&(wrong, error)| follow(wrong, wrong, error, &mut Vec::new())).sum();
    assert!(REFUSED.len() > 5000 && followed > 2 * REFUSED.len(), "{} refused, {followed} remedies", REFUSED.len());
}

/// Values beyond the limits in an error are refused.
#[test]
fn limits_are_tight() {
    for &(request, error) in REFUSED.iter() {
        for beyond in request.beyond(error) {
            assert!(beyond.error().is_some(), "{request:?}: {error}, but {beyond:?} works");
        }
    }
}

/// The lowest rate in an error is the lowest rate of all fingerprint lengths.
#[test]
fn the_lowest_rate_is_the_best_of_all_fingerprint_lengths() {
    for addressing in ADDRESSINGS {
        for b in [1, 2, 4, 8, 16] {
            for capacity in [1, 10, 1000, 1_000_000, 10_000_000_000, 1_000_000_000_000] {
                let builder = CuckooFilter::builder().capacity(capacity).bucket_size(b).addressing(addressing);
                let possible = (2..=32).filter_map(|f| builder.clone().fingerprint_bits(f).params().ok());
                let Some(lowest) = possible.map(|params| params.false_positive_rate_at_capacity()).reduce(f64::min) else {
                    continue;
                };
                for wrong in [0.0, 1e-12, 1e-11, -1.0, 1.0, f64::NAN] {
                    let error = builder.clone().false_positive_rate(wrong).params().expect_err("the rate is out of range");
                    let ParamError::FalsePositiveRate { min: found, .. } = error else { panic!("{error}") };
                    assert!((found - lowest).abs() < f64::MIN_POSITIVE, "{capacity} items, b = {b}: {lowest:e}, but {error}");
                }
            }
        }
    }
}
