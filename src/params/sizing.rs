//! From a request to [`Params`]: the smallest table that satisfies it, before anything is allocated.

use core::{iter, ops::RangeInclusive};

use super::{Addressing, DEFAULT_BUCKET_SIZE, ParamError, Parameter, Params, TableKind, safe_load};
use crate::bits::wide;

/// What a [`Builder`](crate::Builder) was told; `None` for what it was not.
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
pub(super) enum Size {
    Capacity(usize),
    Buckets(u64),
}

#[derive(Clone, Copy)]
pub(super) enum Precision {
    Rate(f64),
    Bits(u32),
}

impl Precision {
    /// Whether a table is precise enough.
    pub(super) fn allows(self, table: &Params) -> bool {
        match self {
            Self::Rate(rate) => rate > 0.0 && rate < 1.0 && table.false_positive_rate_at_capacity() <= rate,
            // A table with other fingerprints is not even tried.
            Self::Bits(_) => true,
        }
    }
}

impl Request {
    /// The smallest table that satisfies the request; of two that are equally large the single one, which is simpler.
    ///
    /// # Errors
    /// If no table does.
    pub(crate) fn params(&self) -> Result<Params, ParamError> {
        self.plan().map_err(|parameter| self.refuse(parameter))
    }

    /// [`params`](Self::params) without the words: the error is the first parameter that has to change.
    ///
    /// The size comes before the rate: it is to blame only if no length of fingerprints makes it possible.
    pub(super) fn plan(&self) -> Result<Params, Parameter> {
        let (size, precision) = (self.size()?, self.precision()?);
        let mut is_size_possible = false;
        let mut smallest: Option<Params> = None;
        for least in self.least_tables()? {
            if smallest.is_some_and(|smallest| smallest.table_bytes() <= full_table_bytes(&least, size)) {
                continue;
            }
            let Some(table) = sized(least, size) else { continue };
            is_size_possible = true;
            // Mostly the shortest fingerprints that are precise enough; but very short ones cannot fill a very large table, and
            // longer ones then take less.
            if precision.allows(&table) && smallest.is_none_or(|smallest| table.table_bytes() < smallest.table_bytes()) {
                smallest = Some(table);
            }
        }
        smallest.ok_or(match size {
            _ if is_size_possible => Parameter::FalsePositiveRate,
            Size::Capacity(_) => Parameter::Capacity,
            Size::Buckets(_) => Parameter::Buckets,
        })
    }

    pub(super) fn size(&self) -> Result<Size, Parameter> {
        match (self.capacity, self.buckets) {
            (Some(capacity), None) => Ok(Size::Capacity(capacity)),
            (None, Some(buckets)) => Ok(Size::Buckets(buckets)),
            _ => Err(Parameter::Capacity),
        }
    }

    pub(super) fn precision(&self) -> Result<Precision, Parameter> {
        match (self.false_positive_rate, self.fingerprint_bits) {
            (Some(rate), None) => Ok(Precision::Rate(rate)),
            (None, Some(bits)) => Ok(Precision::Bits(bits)),
            _ => Err(Parameter::FalsePositiveRate),
        }
    }

    /// For each kind of table and each length of fingerprints that the request allows, the table with the fewest buckets.
    pub(super) fn least_tables(&self) -> Result<impl Iterator<Item = Params> + Clone, Parameter> {
        let Self { addressing, seed, table, .. } = *self;
        let (precision, b) = (self.precision()?, self.bucket_size.unwrap_or(DEFAULT_BUCKET_SIZE));
        let kinds = TableKind::ALL.into_iter().filter(move |&kind| table.is_none_or(|only| only == kind));
        let tables = kinds.flat_map(move |kind| {
            let lengths = match precision {
                Precision::Rate(_) => kind.fingerprint_bits(),
                Precision::Bits(f) => f..=f,
            };
            lengths.map(move |f| Params::checked(kind, f, b, addressing.fewest_buckets(), addressing, seed))
        });
        // If there is none, the first kind says why, which takes whatever the others do: its limits count.
        if let Some(Err(parameter)) = tables.clone().next()
            && tables.clone().all(|table| table.is_err())
        {
            return Err(parameter);
        }
        Ok(tables.filter_map(Result::ok))
    }
}

/// Bytes of a table of the kind of `least` if it could be filled to the last slot.
fn full_table_bytes(least: &Params, size: Size) -> usize {
    let buckets = match size {
        Size::Buckets(buckets) => buckets,
        Size::Capacity(capacity) => wide(capacity).div_ceil(least.bucket_size().into()),
    };
    least.table_bytes_of(buckets)
}

/// The smallest table of the kind of `least` that has this size.
pub(super) fn sized(least: Params, size: Size) -> Option<Params> {
    match size {
        Size::Buckets(buckets) => least.with_buckets(buckets),
        Size::Capacity(capacity) => fit(least, wide(capacity)),
    }
}

/// The smallest table of the kind of `least` that is planned for `capacity` items.
///
/// A larger table may be planned for fewer, as the safe load changes with the size; but each range of equal loads has a smallest
/// one.
fn fit(least: Params, capacity: u64) -> Option<Params> {
    let b = u64::from(least.bucket_size());
    // Not even full tables with fewer buckets hold as much.
    let mut enough = equal_loads(least).skip_while(|range| range.end().saturating_mul(b) < capacity);
    let buckets = enough.find_map(|range| {
        let (first, last) = range.into_inner();
        let load = safe_load(least.addressing(), least.bucket_size(), least.fingerprint_bits(), first);
        let needed = load.slots_for(capacity).div_ceil(b);
        let buckets = if needed <= first { Some(first) } else { needed.checked_next_multiple_of(2) };
        buckets.filter(|&buckets| buckets <= last)
    });
    least.with_buckets(buckets?)
}

/// All numbers of buckets of tables of the kind of `least`, ascending, in ranges over which the safe load is the same. A range
/// that is not a single number has the even ones in it.
pub(super) fn equal_loads(least: Params) -> impl Iterator<Item = RangeInclusive<u64>> {
    let most = least.most_buckets();
    (least.buckets().ilog2()..=most.ilog2()).flat_map(move |log2| {
        let power = 1_u64 << log2;
        let between = match least.addressing() {
            Addressing::AnySize => Some(power + 2..=most.min(power + (power - 2))),
            Addressing::PowerOfTwo => None,
        };
        iter::once(power..=power).chain(between.filter(|range| !range.is_empty()))
    })
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
    #[cfg_attr(miri, ignore = "takes too long")]
    fn no_smaller_table_would_do() {
        let kinds =
            [(TableKind::Packed, 4, 4), (TableKind::Packed, 13, 4), (TableKind::Single, 8, 1), (TableKind::Single, 12, 2)];
        for (kind, f, b) in kinds {
            for addressing in ADDRESSINGS {
                for capacity in (0..200).chain([500, 1000, 2222, 5000]) {
                    let params =
                        Request { fingerprint_bits: Some(f), ..request(addressing, kind, b, capacity) }.params().unwrap();
                    assert!(params.capacity() >= capacity);
                    let mut smaller = (1..params.buckets()).filter_map(|buckets| params.with_buckets(buckets));
                    let found = smaller.find(|smaller| smaller.capacity() >= capacity);
                    assert!(found.is_none(), "{params:?}, but {found:?} would do");
                }
            }
        }
    }

    /// A rate is refused only if no length of a fingerprint does.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
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
