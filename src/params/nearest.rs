//! The nearest value that works in place of one that was refused. It is found by trying: whichever limits are in the way, the remedy
//! is one. Only `tuning` and reading `Params` by serde call this, so programs without them have none of it.

use alloc::{string::String, vec::Vec};
use core::{
    cmp::Reverse,
    fmt::{self, Display},
};

use super::{
    ParamError, Parameter, Params,
    error::{Rate, Why},
    sizing::{Request, equal_loads, sized},
};
use crate::{bits::wide, storage::reserve};

/// What would work in place of a parameter that was refused, in words: [`nearest`](crate::tuning::nearest) finds it.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, tuning::nearest};
/// let error = CuckooFilter::builder().buckets(99).fingerprint_bits(33).params().unwrap_err();
/// let nearest = nearest(&error).expect("there is one");
/// assert_eq!(nearest.to_string(), "the nearest that works is 32; the buckets must change, too");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nearest {
    value: Value,
    /// What else must change.
    other: Option<Parameter>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u64),
    Rate(Rate),
    /// Of a filter that grows: its lowest rate, or a capacity instead of the parameter that was refused.
    LowestRate(Rate),
    MaxCapacity(u64),
    Capacity(u64),
}

impl Nearest {
    /// What works if nothing else changes.
    pub(crate) fn alone(value: Value) -> Self {
        Self { value, other: None }
    }
}

impl Display for Nearest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Value::Number(number) => write!(f, "the nearest that works is {number}")?,
            Value::Rate(Rate(rate)) => {
                f.write_str("the nearest that works is ")?;
                // With all digits, unlike a rate that was refused.
                if (1e-4..1.0).contains(&rate) { write!(f, "{rate}")? } else { write!(f, "{rate:e}")? }
            }
            Value::LowestRate(Rate(rate)) => write!(f, "the lowest that works is about {rate:.1e}")?,
            Value::MaxCapacity(items) => write!(f, "a maximal capacity of {items} works")?,
            Value::Capacity(items) => write!(f, "a capacity of {items} works, too")?,
        }
        self.other.map_or(Ok(()), |other| write!(f, "; the {other} must change, too"))
    }
}

/// The nearest value that works in place of the one that was refused, of a filter of fixed size: the first of those that could be
/// with which there is a table; or if there is none, the first for which this is another parameter's fault. `None` if there is none.
pub(crate) fn nearest(error: &ParamError) -> Option<Nearest> {
    let Why::Fixed(request, _) = error.why() else { return None };
    let kind = request.widest_kind();
    let values = match error.parameter() {
        Parameter::BucketSize => by_distance(request.bucket_size?, kind.bucket_sizes()),
        Parameter::FingerprintBits => by_distance(request.fingerprint_bits?, kind.fingerprint_bits()),
        Parameter::Buckets => request.near_buckets(request.buckets?),
        Parameter::Capacity => request.capacities()?,
        Parameter::FalsePositiveRate => request.rates()?,
        _ => return None,
    };
    let mut not_enough = None;
    for value in values {
        match request.with(error.parameter(), value).plan() {
            Ok(_) => return Some(Nearest::alone(value)),
            Err((other, _)) if other != error.parameter() => {
                not_enough = not_enough.or(Some(Nearest { value, other: Some(other) }));
            }
            Err(_) => {}
        }
    }
    not_enough
}

/// These values, the nearest to `given` first, and of two the smaller.
fn by_distance(given: u32, values: impl Iterator<Item = u32>) -> Vec<Value> {
    let mut values = collected(values);
    values.sort_unstable_by_key(|&value| (value.abs_diff(given), value));
    collected(values.into_iter().map(|value| Value::Number(value.into())))
}

/// All ranges of equal loads of tables of a kind, ascending.
fn all_equal_loads(least: Params) -> impl Iterator<Item = (u64, u64)> {
    let sizes = least.buckets().ilog2()..=least.most_buckets().ilog2();
    sizes.flat_map(move |log2| equal_loads(&least, log2).into_iter().flatten())
}

impl Request {
    /// The request with another value of a parameter.
    #[expect(clippy::cast_possible_truncation, reason = "within the limits of 32 bits; capacities are those of tables")]
    fn with(mut self, parameter: Parameter, value: Value) -> Self {
        match (parameter, value) {
            (Parameter::BucketSize, Value::Number(slots)) => self.bucket_size = Some(slots as u32),
            (Parameter::FingerprintBits, Value::Number(bits)) => self.fingerprint_bits = Some(bits as u32),
            (Parameter::Buckets, Value::Number(buckets)) => self.buckets = Some(buckets),
            (_, Value::Number(capacity)) => self.capacity = Some(capacity as usize),
            (_, Value::Rate(rate)) => self.false_positive_rate = Some(rate),
            _ => {}
        }
        self
    }

    /// The tables with the fewest buckets, of all kinds that the request allows.
    fn kinds(&self) -> Vec<Params> {
        let mut tables = Vec::new();
        // Without memory, or without a table, there are none.
        let all = self.least_tables(|least| {
            if reserve(&mut tables, 1).is_ok() {
                tables.push(least);
            }
        });
        if all.is_ok() { tables } else { Vec::new() }
    }

    /// Numbers of buckets, the nearest to `given` first.
    fn near_buckets(&self, given: u64) -> Vec<Value> {
        let tables = self.kinds();
        // Over a range of equal loads, the nearest number does if any does; unless that is too many for some fingerprints.
        let near = |(first, last): (u64, u64)| {
            let nearest = given.clamp(first, last);
            if first == last { [first, last] } else { [nearest - nearest % 2, nearest + nearest % 2] }
        };
        let widest = tables.iter().max_by_key(|table| table.most_buckets());
        let ranges = widest.into_iter().flat_map(|widest| all_equal_loads(*widest));
        let mut values = collected(ranges.flat_map(near).chain(tables.iter().map(Params::most_buckets)));
        // The larger one of two that are equally near.
        values.sort_unstable_by_key(|&buckets| (buckets.abs_diff(given), Reverse(buckets)));
        values.dedup();
        collected(values.into_iter().map(Value::Number))
    }

    /// Capacities below one that no table has: the greatest first.
    fn capacities(&self) -> Option<Vec<Value>> {
        self.capacity.filter(|_| self.buckets.is_none())?;
        let largest = |least: &Params| {
            let least = *least;
            all_equal_loads(least).filter_map(move |(_, last)| least.with_buckets(last))
        };
        let tables = self.kinds();
        let tables = tables.iter().flat_map(largest).enumerate();
        let mut tables = collected(tables.map(|(place, table)| (Reverse(table.capacity()), place, table)));
        tables.sort_unstable_by_key(|&(capacity, place, _)| (capacity, place));
        let tables = || tables.iter().map(|(_, _, table)| table);
        // If none is precise enough, the rate has to change, too.
        let precise = tables().filter(|table| self.precision().is_ok_and(|precision| precision.allows(table)));
        Some(collected(precise.chain(tables().next()).map(|table| Value::Number(wide(table.capacity())))))
    }

    /// Rates in more and more digits: those just below 1 in place of too high a rate, otherwise the lowest of all tables.
    fn rates(&self) -> Option<Vec<Value>> {
        let Rate(given) = self.false_positive_rate.filter(|_| self.fingerprint_bits.is_none())?;
        if given >= 1.0 {
            return Some(collected((3..=16).map(|digits| Value::Rate(just_below_one(digits)))));
        }
        let tables = self.kinds();
        let sized = tables.iter().filter_map(|least| sized(*least, self.size().ok()?));
        let lowest = sized.map(|table| table.false_positive_rate_at_capacity()).min_by(f64::total_cmp)?;
        Some(collected((3..=17).map(|digits| Value::Rate(no_less_than(lowest, digits)))))
    }
}

/// The values; or none where there is no memory for them, and there is no nearest one then.
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

/// The largest rate below 1 with this many digits: 0.999.
fn just_below_one(digits: usize) -> Rate {
    Rate(text!("0.{:9<digits$}", "").parse().unwrap_or(f64::NAN))
}

/// The smallest positive rate of this many significant digits that is no less than this one.
fn no_less_than(rate: f64, digits: usize) -> Rate {
    let rate = rate.max(f64::MIN_POSITIVE);
    let parse = |text: &str| text.parse().unwrap_or(f64::NAN);
    let text = |rate: f64| -> String { text!("{rate:.*e}", digits - 1) };
    let nearest = text(rate);
    if parse(&nearest) >= rate {
        return Rate(parse(&nearest));
    }
    // With half a unit of the last digit more, it is rounded to the next number.
    let exponent = nearest.split_once('e').and_then(|(_, exponent)| exponent.parse::<i64>().ok()).unwrap_or_default();
    let half = parse(&text!("5e{exponent}")) * parse(&text!("1e-{digits}"));
    Rate(parse(&text(rate + half)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(no_less_than(rate, digits), Rate(rounded), "{rate:e}");
        }
        for n in 1..3000 {
            let rate = 1e-12 * 1.009_f64.powi(n);
            let Rate(rounded) = no_less_than(rate, 3);
            assert!(rounded >= rate && rounded <= rate * 1.01, "{rate:e}: {rounded:e}");
            assert_eq!(no_less_than(rate, 17), Rate(rate));
        }
    }
}
