//! From what a user wants to [`Params`]: the factory's decisions, before anything is allocated.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{Addressing, DEFAULT_BUCKET_SIZE, Params, TableKind, false_positive_rate, safe_load};
use crate::{
    bits::wide,
    error::{ParamError, Parameter},
};

/// What a [`Builder`](crate::Builder) was told. `None`: nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Request {
    pub(crate) capacity: Option<usize>,
    pub(crate) buckets: Option<u64>,
    pub(crate) false_positive_rate: Option<f64>,
    pub(crate) fingerprint_bits: Option<u32>,
    pub(crate) table: Option<TableKind>,
    pub(crate) bucket_size: Option<u32>,
    pub(crate) addressing: Addressing,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy)]
enum Size {
    Capacity(usize),
    Buckets(u64),
}

#[derive(Clone, Copy)]
enum Precision {
    Rate(f64),
    Bits(u32),
}

impl Request {
    /// The smallest table that does what was asked; the single one of two that are equally large, since it is simpler.
    ///
    /// # Errors
    /// If no table does.
    pub(crate) fn params(&self) -> Result<Params, ParamError> {
        let size = self.size()?;
        let b = self.bucket_size.unwrap_or(DEFAULT_BUCKET_SIZE);
        let precision = self.precision(b)?;
        let kinds = match self.table {
            Some(TableKind::Single) => &[TableKind::Single][..],
            Some(TableKind::Packed) => &[TableKind::Packed],
            None if TableKind::Packed.bucket_sizes().contains(&b) => &[TableKind::Single, TableKind::Packed],
            None => &[TableKind::Single],
        };
        let tables: Vec<_> = kinds.iter().map(|&kind| self.table(kind, b, size, precision)).collect();
        let smallest = tables.iter().flatten().min_by_key(|params| params.table_bytes()).cloned();
        // The single table takes whatever the packed one does, and more: its complaint is the one that counts.
        smallest.map_or_else(|| tables.into_iter().next().unwrap_or_else(|| unreachable!("there is a kind")), Ok)
    }

    fn size(&self) -> Result<Size, ParamError> {
        match (self.capacity, self.buckets) {
            (Some(capacity), None) => Ok(Size::Capacity(capacity)),
            (None, Some(buckets)) => Ok(Size::Buckets(buckets)),
            (capacity, _) => Err(either(
                Parameter::Capacity,
                capacity.is_some(),
                "the size follows from a capacity or from a number of buckets",
            )),
        }
    }

    fn precision(&self, b: u32) -> Result<Precision, ParamError> {
        match (self.false_positive_rate, self.fingerprint_bits) {
            (Some(rate), None) if rate > 0.0 && rate < 1.0 => Ok(Precision::Rate(rate)),
            (Some(rate), None) => Err(ParamError {
                parameter: Parameter::FalsePositiveRate,
                given: rate.to_string(),
                limit: String::from("it lies between 0 and 1, both excluded"),
                remedy: if rate >= 1.0 {
                    String::from("the nearest that works is about 0.99")
                } else {
                    // What the longest fingerprints do in a table that is full to the last slot; a little more, since it is rounded.
                    let least = false_positive_rate(32, b.min(16), 1.0) * 1.01;
                    format!("the nearest that works is about {least:.2e}")
                },
            }),
            (None, Some(bits)) => Ok(Precision::Bits(bits)),
            (rate, _) => Err(either(
                Parameter::FalsePositiveRate,
                rate.is_some(),
                "the fingerprints' length follows from a false-positive rate or from a number of bits",
            )),
        }
    }

    fn table(&self, kind: TableKind, b: u32, size: Size, precision: Precision) -> Result<Params, ParamError> {
        match precision {
            Precision::Bits(f) => sized(&self.smallest(kind, f, b)?, size),
            Precision::Rate(rate) => self.precise(kind, b, size, rate),
        }
    }

    /// The smallest table that keeps to the rate. Mostly the one with the shortest fingerprints that do; but very short
    /// ones cannot fill a very large table, and longer ones then take less.
    fn precise(&self, kind: TableKind, b: u32, size: Size, rate: f64) -> Result<Params, ParamError> {
        let mut best_rate = 1.0;
        let mut smallest_table: Option<Params> = None;
        let mut too_large: Option<(usize, ParamError)> = None;
        for f in kind.fingerprint_bits() {
            let smallest = self.smallest(kind, f, b)?;
            if smallest_table.as_ref().is_some_and(|params| params.table_bytes() <= full_table_bytes(&smallest, size)) {
                break;
            }
            match sized(&smallest, size) {
                Ok(params) => {
                    best_rate = params.false_positive_rate_at_capacity();
                    let smaller = smallest_table.as_ref().is_none_or(|other| params.table_bytes() < other.table_bytes());
                    if best_rate <= rate && smaller {
                        smallest_table = Some(params);
                    }
                }
                // Longer fingerprints may hold more. If they do not either: how much can be held at this rate?
                Err(error) => {
                    let largest = smallest.with_buckets(smallest.most_buckets())?;
                    let more = too_large.as_ref().is_none_or(|(capacity, _)| largest.capacity() > *capacity);
                    if largest.false_positive_rate_at_capacity() <= rate && more {
                        too_large = Some((largest.capacity(), error));
                    }
                }
            }
        }
        smallest_table.ok_or_else(|| match too_large {
            Some((_, error)) => error,
            None => ParamError {
                parameter: Parameter::FalsePositiveRate,
                given: format!("{rate:e}"),
                limit: format!("fingerprints have {} bits at most", kind.fingerprint_bits().end()),
                // A little more than the best, since it is rounded.
                remedy: format!("the nearest that works is {:.2e}", best_rate * 1.01),
            },
        })
    }

    fn smallest(&self, kind: TableKind, f: u32, b: u32) -> Result<Params, ParamError> {
        let buckets = match self.addressing {
            Addressing::AnySize => 2,
            Addressing::PowerOfTwo => 1,
        };
        Params::new(kind, f, b, buckets, self.addressing, self.seed)
    }
}

/// Bytes of a table of the kind of `smallest` if it could be filled to the last slot.
fn full_table_bytes(smallest: &Params, size: Size) -> usize {
    let buckets = match size {
        Size::Buckets(buckets) => buckets,
        Size::Capacity(capacity) => wide(capacity).div_ceil(smallest.bucket_size().into()),
    };
    smallest.table_bytes_of(buckets)
}

/// The kind of `smallest` in the size asked for.
fn sized(smallest: &Params, size: Size) -> Result<Params, ParamError> {
    match size {
        Size::Buckets(buckets) => smallest.with_buckets(buckets),
        Size::Capacity(capacity) => fit(smallest, capacity),
    }
}

/// The smallest table of the kind of `smallest` that is planned for `capacity` items.
///
/// A larger table may be planned for fewer, as the safe load changes with the size; but it is the same for all sizes between
/// two powers of two, so that each such range has a smallest one.
fn fit(smallest: &Params, capacity: usize) -> Result<Params, ParamError> {
    let (f, b, addressing) = (smallest.fingerprint_bits(), smallest.bucket_size(), smallest.addressing());
    let needed = |buckets| safe_load(addressing, b, f, buckets).slots_for(wide(capacity)).div_ceil(b.into());
    let most = smallest.most_buckets();
    for log2 in smallest.buckets().ilog2()..=most.ilog2() {
        let power = 1 << log2;
        if needed(power) <= power {
            return smallest.with_buckets(power);
        }
        let (first, last) = (power + 2, most.min(power + power.saturating_sub(2)));
        if addressing == Addressing::AnySize && first <= last {
            let buckets = needed(first).max(first).checked_next_multiple_of(2);
            if let Some(buckets) = buckets.filter(|&buckets| buckets <= last) {
                return smallest.with_buckets(buckets);
            }
        }
    }
    let largest = smallest.with_buckets(most)?;
    Err(ParamError {
        parameter: Parameter::Capacity,
        given: capacity.to_string(),
        limit: format!("a {} table with fingerprints of {f} bits has {} slots at most", largest.table(), largest.slots()),
        remedy: format!("the nearest that works is {}", largest.capacity()),
    })
}

fn either(parameter: Parameter, both: bool, limit: &str) -> ParamError {
    ParamError {
        parameter,
        given: String::from(if both { "two answers" } else { "nothing" }),
        limit: String::from(limit),
        remedy: String::from("give exactly one of the two"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESSINGS: [Addressing; 2] = [Addressing::AnySize, Addressing::PowerOfTwo];

    fn request(addressing: Addressing, kind: TableKind, b: u32, capacity: usize) -> Request {
        Request { addressing, table: Some(kind), bucket_size: Some(b), capacity: Some(capacity), ..Request::default() }
    }

    /// Against all smaller tables, one after the other.
    #[test]
    fn no_smaller_table_would_do() {
        let kinds =
            [(TableKind::Packed, 4, 4), (TableKind::Packed, 13, 4), (TableKind::Single, 8, 1), (TableKind::Single, 12, 2)];
        for (kind, f, b) in kinds {
            for addressing in ADDRESSINGS {
                for capacity in (0..200).chain([500, 1000, 2222, 5000]) {
                    let params =
                        Request { fingerprint_bits: Some(f), ..request(addressing, kind, b, capacity) }.params().unwrap();
                    assert!(params.capacity() >= capacity);
                    let mut smaller = (1..params.buckets()).filter_map(|buckets| params.with_buckets(buckets).ok());
                    let found = smaller.find(|smaller| smaller.capacity() >= capacity);
                    assert!(found.is_none(), "{params:?}, but {found:?} would do");
                }
            }
        }
    }

    /// A rate is refused only if no length of a fingerprint does.
    #[test]
    fn what_some_fingerprint_can_do_is_not_refused() {
        for addressing in ADDRESSINGS {
            for b in [1, 2, 3, 4, 8] {
                for capacity in [100_000, 1_000_000, 100_000_000, 1_000_000_000, 4_000_000_000] {
                    for rate in [0.5, 0.1, 0.01, 0.001, 1e-6] {
                        let request = request(addressing, TableKind::Single, b, capacity);
                        let by_rate = Request { false_positive_rate: Some(rate), ..request }.params();
                        let by_bits = (2..=32).filter_map(|f| Request { fingerprint_bits: Some(f), ..request }.params().ok());
                        let smallest = by_bits
                            .filter(|params| params.false_positive_rate_at_capacity() <= rate)
                            .min_by_key(Params::table_bytes);
                        assert_eq!(
                            by_rate.ok().map(|p| p.table_bytes()),
                            smallest.map(|p| p.table_bytes()),
                            "{request:?} {rate}"
                        );
                    }
                }
            }
        }
    }
}
