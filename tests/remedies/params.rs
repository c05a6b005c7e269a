//! Parameters that no filter has.

#![allow(clippy::cast_precision_loss, reason = "capacities are compared as floats")]

use crate::common::{ADDRESSINGS, with_nearest};
use koel::{Addressing, Builder, CuckooFilter, Kernel, ParamError, Parameter, TableKind};
use std::{collections::HashMap, fmt::Debug, str::FromStr, sync::LazyLock};

/// What a builder is told.
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

    fn works(self) -> bool {
        self.error().is_none()
    }

    /// With another value of one parameter, as a message writes it.
    fn with(self, parameter: Parameter, value: &str) -> Self {
        match parameter {
            Parameter::Capacity => Self { size: Size::Capacity(number(value)), ..self },
            Parameter::Buckets => Self { size: Size::Buckets(number(value)), ..self },
            Parameter::FalsePositiveRate => Self { precision: Precision::Rate(number(value)), ..self },
            Parameter::FingerprintBits => Self { precision: Precision::Bits(number(value)), ..self },
            Parameter::BucketSize => Self { bucket_size: Some(number(value)), ..self },
            other => panic!("a request has no {other}"),
        }
    }

    /// The request without the value of one parameter, and where that value lies: below what is possible, or above it.
    fn question(self, parameter: Parameter) -> String {
        let is_above = match (parameter, self.size, self.precision) {
            (Parameter::FalsePositiveRate, _, Precision::Rate(rate)) => rate >= 1.0,
            (Parameter::FingerprintBits, _, Precision::Bits(bits)) => bits > 4,
            (Parameter::BucketSize, _, _) => self.bucket_size > Some(4),
            (Parameter::Buckets, Size::Buckets(buckets), _) => buckets > 1 << 20,
            _ => true,
        };
        format!("{parameter} {is_above} {:?}", self.with(parameter, "1"))
    }
}

#[track_caller]
fn number<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error:?}"))
}

/// The value that is called the nearest that works, and whether that is all that has to change.
fn nearest(error: &ParamError) -> (String, bool) {
    let message = with_nearest(error);
    let (_, remedy) = message.split_once("; the nearest that works is ").unwrap_or_else(|| panic!("no value in {message:?}"));
    match remedy.split_once("; ") {
        Some((value, more)) => {
            assert!(more.ends_with(" must change, too"), "{message}");
            (value.to_owned(), false)
        }
        None => (remedy.to_owned(), true),
    }
}

/// Requests with wrong values of every kind and in every combination, and the error of each.
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

/// Whatever is wrong with a request: each remedy names a parameter that was not named before, and the last one works. Where one
/// parameter is enough, one remedy is.
#[test]
fn remedies_of_parameters_work() {
    let mut followed = 0;
    for (wrong, error) in REFUSED.iter() {
        let (mut request, mut next) = (*wrong, Some(error.clone()));
        let mut named = Vec::new();
        while let Some(error) = next {
            let (value, is_enough) = nearest(&error);
            assert!(!named.contains(&error.parameter()), "{wrong:?}: {named:?} were followed, and then {error}");
            named.push(error.parameter());
            request = request.with(error.parameter(), &value);
            next = request.error();
            assert_eq!(is_enough, next.is_none(), "{wrong:?}: {error}");
            followed += 1;
        }
    }
    assert!(REFUSED.len() > 5000 && followed > REFUSED.len() + 1000, "{} refused, {followed} remedies", REFUSED.len());
}

/// One question has one answer, whichever wrong value it is asked with.
#[test]
fn there_is_one_nearest_value() {
    let (mut answers, mut asked) = (HashMap::new(), 0);
    for (request, error) in REFUSED.iter() {
        // Between the smallest and the largest, each number of buckets is near to others.
        if matches!((error.parameter(), request.size), (Parameter::Buckets, Size::Buckets(2..0xffff_0000_0000_0000))) {
            continue;
        }
        let (value, _) = nearest(error);
        let known = answers.entry(request.question(error.parameter())).or_insert_with(|| value.clone());
        assert_eq!(*known, value, "{request:?}: {error}");
        asked += 1;
    }
    assert!(asked > answers.len() + 2000, "{asked} questions, {} answers", answers.len());
}

/// What is a little nearer to the value given does not work.
#[test]
fn the_nearest_value_is_the_nearest() {
    for (request, error) in REFUSED.iter() {
        let (value, true) = nearest(error) else { continue };
        let with = |value: &dyn ToString| request.with(error.parameter(), &value.to_string());
        let nearer: Vec<Request> = match (error.parameter(), request.size, request.precision) {
            (Parameter::Capacity, ..) => vec![with(&(number::<usize>(&value) + 1))],
            (Parameter::BucketSize, ..) => {
                let (given, value) = (request.bucket_size.expect("given"), number::<u32>(&value));
                (1..=16_u32).filter(|b| b.abs_diff(given) < value.abs_diff(given)).map(|b| with(&b)).collect()
            }
            (Parameter::FingerprintBits, _, Precision::Bits(given)) => {
                let value = number::<u32>(&value);
                (2..=32_u32).filter(|f| f.abs_diff(given) < value.abs_diff(given)).map(|f| with(&f)).collect()
            }
            (Parameter::Buckets, Size::Buckets(given), _) => {
                let distance = number::<u64>(&value).abs_diff(given);
                let near = [distance - 1, distance.saturating_sub(2), distance / 2, distance / 16, 1, 0];
                let near = near.into_iter().filter(|&near| near < distance);
                near.flat_map(|near| [given.saturating_add(near), given.saturating_sub(near)]).map(|m| with(&m)).collect()
            }
            // To three digits, or to more where three are not enough.
            (Parameter::FalsePositiveRate, _, Precision::Rate(given)) if given >= 1.0 => {
                let (rate, is_short) = (number::<f64>(&value), value == "0.999");
                assert!(is_short || !with(&0.999).works(), "{request:?}: {error}");
                vec![with(&(rate * 1.01))]
            }
            (Parameter::FalsePositiveRate, ..) => vec![with(&(number::<f64>(&value) * 0.99))],
            (other, ..) => panic!("{other}: {error}"),
        };
        for nearer in nearer {
            assert!(!nearer.works(), "{request:?}: {error}, but so does {nearer:?}");
        }
    }
}

/// The rate is that of the best filter of its kind, to three digits.
#[test]
fn the_lowest_rate_is_that_of_the_longest_fingerprints() {
    for addressing in ADDRESSINGS {
        for b in [1, 2, 4, 8, 16] {
            for capacity in [1, 10, 1000, 1_000_000, 10_000_000_000, 1_000_000_000_000] {
                let builder = CuckooFilter::builder().capacity(capacity).bucket_size(b).addressing(addressing);
                let possible = (2..=32).filter_map(|f| builder.clone().fingerprint_bits(f).params().ok());
                let Some(lowest) = possible.map(|params| params.false_positive_rate_at_capacity()).reduce(f64::min) else {
                    continue;
                };
                for wrong in [0.0, 1e-12, 1e-11, -1.0, f64::NAN] {
                    let error = builder.clone().false_positive_rate(wrong).params().expect_err("too low");
                    let rate: f64 = number(&nearest(&error).0);
                    assert!(rate >= lowest && rate <= lowest * 1.01, "{capacity} items, b = {b}: {lowest:e}, but {error}");
                }
            }
        }
    }
}

/// Where the limits of several parameters meet, the value is one that keeps to all of them.
#[test]
fn other_limits_are_kept() {
    let builder = CuckooFilter::builder;
    let cases = [
        (builder().capacity(1000).false_positive_rate(1.0), "0.999"),
        // So low a rate takes buckets of four or less.
        (builder().capacity(1000).false_positive_rate(2e-9).bucket_size(17), "4"),
        // Fingerprints of 32 bits leave room for 2³² buckets.
        (builder().capacity(100_000_000_000).fingerprint_bits(33), "29"),
        (builder().buckets(1 << 40).fingerprint_bits(33), "24"),
        (builder().buckets((1 << 40) + 1).false_positive_rate(2e-9), "4294967296"),
        // Two of their powers are near, and the nearer one is not always the larger one.
        (builder().buckets(600).fingerprint_bits(13).addressing(Addressing::PowerOfTwo), "512"),
        (builder().buckets(1000).fingerprint_bits(13).addressing(Addressing::PowerOfTwo), "1024"),
        (builder().buckets(7).fingerprint_bits(13), "8"),
    ];
    for (builder, value) in cases {
        let error = builder.params().expect_err("wrong");
        assert_eq!(nearest(&error), (value.to_owned(), true), "{error}");
    }
}

#[test]
fn a_parameter_given_twice_or_not_at_all_is_given_once() {
    let bits = CuckooFilter::builder().fingerprint_bits(13);
    let sized = CuckooFilter::builder().capacity(1000);
    for (wrong, right) in [
        (bits.clone(), bits.clone().buckets(6)),
        (bits.clone().capacity(10).buckets(6), bits.capacity(10)),
        (sized.clone(), sized.clone().false_positive_rate(0.01)),
        (sized.clone().false_positive_rate(0.01).fingerprint_bits(9), sized.fingerprint_bits(9)),
    ] {
        let error = wrong.params().expect_err("not once").to_string();
        let remedy = if error.contains("both a ") { "; leave one of them out" } else { "; give one of them" };
        assert!(error.ends_with(remedy), "{error}");
        assert!(right.params().is_ok());
    }
}

/// The words of a message that are a value's names.
fn names<T: FromStr>(error: &ParamError) -> Vec<T> {
    let message = error.to_string();
    let (_, choices) = message.split_once(", but ").expect("a limit");
    choices.split(|c: char| !c.is_alphanumeric() && c != '-').filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn names_that_messages_offer_are_names() {
    let error = "semi-sorted".parse::<TableKind>().expect_err("no such table");
    assert_eq!(names::<TableKind>(&error), [TableKind::Single, TableKind::Packed], "{error}");
    let error = "AnySize".parse::<Addressing>().expect_err("no such addressing");
    assert_eq!(names::<Addressing>(&error), ADDRESSINGS, "{error}");
    let error = "mmx".parse::<Kernel>().expect_err("no such kernel");
    let kernels = names::<Kernel>(&error);
    assert!(Kernel::available().all(|kernel| kernels.contains(&kernel)), "{error}");
    for kernel in kernels {
        assert!(CuckooFilter::builder().capacity(1).fingerprint_bits(9).kernel(kernel).build().is_ok(), "{error}");
    }
}
