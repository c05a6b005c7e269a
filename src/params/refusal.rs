//! Why a request is refused, in words, and the nearest value that works. That value is found by trying: whichever limits are in
//! the way, the remedy is one.

use alloc::{string::String, vec::Vec};
use core::{
    cmp::Reverse,
    fmt::{self, Display},
    ops::RangeInclusive,
};

use super::{
    ParamError, Parameter, Params, TableKind,
    sizing::{Request, equal_loads, sized},
};
use crate::storage::reserve;

impl Request {
    /// The error for a parameter that [`plan`](Self::plan) found to be the first that has to change.
    pub(super) fn refuse(&self, parameter: Parameter) -> ParamError {
        match parameter {
            Parameter::BucketSize => {
                let (given, limits) = (self.bucket_size.unwrap_or_default(), self.widest_kind().bucket_sizes());
                self.out_of_range(parameter, given, &limits, |b| Self { bucket_size: Some(b), ..*self })
            }
            Parameter::FingerprintBits => {
                let (given, limits) = (self.fingerprint_bits.unwrap_or_default(), self.widest_kind().fingerprint_bits());
                self.out_of_range(parameter, given, &limits, |f| Self { fingerprint_bits: Some(f), ..*self })
            }
            Parameter::FalsePositiveRate => match (self.false_positive_rate, self.fingerprint_bits) {
                (Some(rate), None) => self.wrong_rate(rate),
                (rate, _) => {
                    not_one_of_two(parameter, rate.is_some(), ["a rate", "a number of bits"], "the length of a fingerprint")
                }
            },
            _ => match (self.capacity, self.buckets) {
                (Some(capacity), None) => self.wrong_capacity(capacity),
                (None, Some(buckets)) => self.wrong_buckets(buckets),
                (capacity, _) => not_one_of_two(parameter, capacity.is_some(), ["a capacity", "a number of buckets"], "the size"),
            },
        }
    }

    /// The kind of table that was asked for, or else the one that takes whatever the others do.
    fn widest_kind(&self) -> TableKind {
        self.table.unwrap_or(TableKind::Single)
    }

    fn out_of_range(
        &self,
        parameter: Parameter,
        given: u32,
        limits: &RangeInclusive<u32>,
        with: impl Fn(u32) -> Self,
    ) -> ParamError {
        let range = match (limits.start(), limits.end()) {
            (least, most) if least == most => text!("{least}"),
            (least, most) => text!("{least} to {most}"),
        };
        let mut values = collected(limits.clone());
        values.sort_unstable_by_key(|&value| (value.abs_diff(given), value));
        ParamError {
            parameter,
            given: text!("{given}"),
            limit: self.table.map_or_else(|| text!("a table takes {range}"), |table| text!("the {table} table takes {range}")),
            remedy: remedy(parameter, values, with),
        }
    }

    fn wrong_buckets(&self, given: u64) -> ParamError {
        let tables = self.least_tables().into_iter().flatten();
        let (addressing, parameter) = (self.addressing, Parameter::Buckets);
        // Over a range of equal loads, the nearest number does if any does; unless that is too many for some fingerprints.
        let near = |range: RangeInclusive<u64>| {
            let (first, last) = range.into_inner();
            let nearest = given.clamp(first, last);
            if first == last { [first, last] } else { [nearest - nearest % 2, nearest + nearest % 2] }
        };
        let widest = tables.clone().max_by_key(Params::most_buckets);
        let most = widest.as_ref().map_or(0, Params::most_buckets);
        let ranges = widest.into_iter().flat_map(equal_loads);
        let mut values = collected(ranges.flat_map(near).chain(tables.map(|table| table.most_buckets())));
        // The larger one of two that are equally near.
        values.sort_unstable_by_key(|&buckets| (buckets.abs_diff(given), Reverse(buckets)));
        values.dedup();
        ParamError {
            parameter,
            given: text!("{given}"),
            limit: text!("{addressing} addressing takes {} from {} to {most}", addressing.rule(), addressing.fewest_buckets()),
            remedy: remedy(parameter, values, |buckets| Self { buckets: Some(buckets), ..*self }),
        }
    }

    fn wrong_capacity(&self, given: usize) -> ParamError {
        let parameter = Parameter::Capacity;
        let largest = |least: Params| equal_loads(least).filter_map(move |range| least.with_buckets(*range.end()));
        let tables = self.least_tables().into_iter().flatten().flat_map(largest).enumerate();
        let mut tables = collected(tables.map(|(place, table)| (Reverse(table.capacity()), place, table)));
        tables.sort_unstable_by_key(|&(capacity, place, _)| (capacity, place));
        let tables = || tables.iter().map(|(_, _, table)| table);
        // If none is precise enough, the rate has to change, too.
        let precise = tables().filter(|table| self.precision().is_ok_and(|precision| precision.allows(table)));
        let tables = precise.chain(tables().next());
        let limit = tables.clone().next().map_or_else(String::new, |table| {
            let slots = table.with_buckets(table.most_buckets()).unwrap_or(*table).slots();
            text!("a {} table with fingerprints of {} bits has {slots} slots at most", table.table(), table.fingerprint_bits())
        });
        let values = tables.map(Params::capacity);
        let remedy = remedy(parameter, values, |capacity| Self { capacity: Some(capacity), ..*self });
        ParamError { parameter, given: text!("{given}"), limit, remedy }
    }

    fn wrong_rate(&self, given: f64) -> ParamError {
        let parameter = Parameter::FalsePositiveRate;
        let with = |Rate(rate)| Self { false_positive_rate: Some(rate), ..*self };
        let (limit, remedy) = if given >= 1.0 {
            (None, remedy(parameter, (3..=16).map(Rate::just_below_one), with))
        } else {
            let tables = self.least_tables().into_iter().flatten();
            let sized = tables.filter_map(|least| sized(least, self.size().ok()?));
            let rates = sized.map(|table| (table.false_positive_rate_at_capacity(), table.fingerprint_bits()));
            let (lowest, f) = rates.min_by(|one, other| one.0.total_cmp(&other.0)).unwrap_or_default();
            let limit = match f {
                _ if given.is_nan() || given <= 0.0 => None,
                32 => Some(text!("fingerprints have 32 bits at most")),
                f => Some(text!("fingerprints in a table of that size have {f} bits at most")),
            };
            (limit, remedy(parameter, (3..=17).map(|digits| Rate::no_less_than(lowest, digits)), with))
        };
        let limit = limit.unwrap_or_else(|| text!("it lies between 0 and 1, both excluded"));
        ParamError { parameter, given: text!("{}", Rate(given)), limit, remedy }
    }
}

/// The values; or none where there is no memory for them, and the error then names no nearest one.
fn collected<T>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut collected = Vec::new();
    for value in values {
        if reserve(&mut collected, 1).is_err() {
            return Vec::new();
        }
        collected.push(value);
    }
    collected
}

/// The first of these values with which there is a table; or if there is none, the first for which this is another parameter's
/// fault.
fn remedy<T: Copy + Display>(parameter: Parameter, values: impl IntoIterator<Item = T>, with: impl Fn(T) -> Request) -> String {
    let mut not_enough = None;
    for value in values {
        match with(value).plan() {
            Ok(_) => return text!("the nearest that works is {value}"),
            Err(other) if other != parameter => not_enough = not_enough.or(Some((value, other))),
            Err(_) => {}
        }
    }
    not_enough.map_or_else(
        || text!("change the other parameters"),
        |(value, other)| text!("the nearest that works is {value}; the {other} must change, too"),
    )
}

/// Two parameters that exclude each other are both given, or neither is. `what` follows from either one.
fn not_one_of_two(parameter: Parameter, both: bool, [one, other]: [&str; 2], what: &str) -> ParamError {
    let (given, remedy) = if both {
        (text!("both {one} and {other}"), "leave one of them out")
    } else {
        (text!("neither {one} nor {other}"), "give one of them")
    };
    ParamError { parameter, given, limit: text!("{what} follows from exactly one of them"), remedy: text!("{remedy}") }
}

/// A rate in few characters, whatever it is.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rate(f64);

impl Rate {
    /// The largest one below 1 with so many digits: 0.999.
    fn just_below_one(digits: usize) -> Self {
        Self(text!("0.{:9<digits$}", "").parse().unwrap_or(f64::NAN))
    }

    /// The smallest positive one of so many significant digits that is no less than this rate.
    fn no_less_than(rate: f64, digits: usize) -> Self {
        let rate = rate.max(f64::MIN_POSITIVE);
        let parse = |text: &str| text.parse().unwrap_or(f64::NAN);
        let text = |rate: f64| text!("{rate:.*e}", digits - 1);
        let nearest = text(rate);
        if parse(&nearest) >= rate {
            return Self(parse(&nearest));
        }
        // With half a unit of the last digit more, it is rounded to the next number.
        let exponent = nearest.split_once('e').and_then(|(_, exponent)| exponent.parse::<i64>().ok()).unwrap_or_default();
        let half = parse(&text!("5e{exponent}")) * parse(&text!("1e-{digits}"));
        Self(parse(&text(rate + half)))
    }
}

impl Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.abs() {
            0.0 | 1e-4..1e7 => write!(f, "{}", self.0),
            _ => write!(f, "{:e}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString as _;

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn a_rate_is_rounded_up_to_so_many_digits() {
        for (rate, digits, rounded) in [
            (1.776e-9, 3, 1.78e-9),
            (1.774e-9, 3, 1.78e-9),
            (1.78e-9, 3, 1.78e-9),
            (9.991e-10, 3, 1e-9),
            (0.9982, 3, 0.999),
            (0.9992, 3, 1.0),
            (0.9992, 4, 0.9992),
            (0.5, 3, 0.5),
            (0.0, 3, 2.23e-308),
        ] {
            assert_eq!(Rate::no_less_than(rate, digits), Rate(rounded), "{rate:e}");
        }
        for n in 1..3000 {
            let rate = 1e-12 * 1.009_f64.powi(n);
            let Rate(rounded) = Rate::no_less_than(rate, 3);
            assert!(rounded >= rate && rounded <= rate * 1.01, "{rate:e}: {rounded:e}");
            assert_eq!(Rate::no_less_than(rate, 17), Rate(rate));
        }
    }

    #[test]
    fn rates_are_short() {
        let rates = [0.001, 1e-5, 2.0, -0.5, 1e300, f64::NAN, f64::NEG_INFINITY, 0.0].map(|rate| Rate(rate).to_string());
        assert_eq!(rates, ["0.001", "1e-5", "2", "-0.5", "1e300", "NaN", "-inf", "0"]);
        assert_eq!(Rate::just_below_one(3).to_string(), "0.999");
        assert_eq!(Rate::just_below_one(16).to_string(), "0.9999999999999999");
    }
}
