//! From a request to [`Params`]: the smallest table that satisfies it, before anything is allocated.

use super::{Addressing, DEFAULT_BUCKET_SIZE, ParamError, Params, TableKind, safe_load};
use crate::bits::{index, wide};

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
enum Size {
    Capacity(usize),
    Buckets(u64),
}

#[derive(Clone, Copy)]
enum Precision {
    Rate(f64),
    Bits(u32),
}

impl Precision {
    /// Whether a table is precise enough.
    fn allows(self, table: &Params) -> bool {
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
    /// If no table does: the first parameter that has to change. The size comes before the rate, which is to blame only if some
    /// length of fingerprints makes the size possible.
    pub(crate) fn params(&self) -> Result<Params, ParamError> {
        let (size, precision) = (self.size()?, self.precision()?);
        let mut smallest: Option<Params> = None;
        // The lowest rate of a table of that size.
        let mut lowest: Option<f64> = None;
        self.least_tables(|least| {
            if smallest.is_some_and(|smallest| smallest.table_bytes() <= full_table_bytes(&least, size)) {
                return;
            }
            let Some(table) = sized(least, size) else { return };
            let rate = table.false_positive_rate_at_capacity();
            if lowest.is_none_or(|lowest| rate < lowest) {
                lowest = Some(rate);
            }
            // Mostly the shortest fingerprints that are precise enough; but very short ones cannot fill a very large table, and
            // longer ones then take less.
            if precision.allows(&table) && smallest.is_none_or(|smallest| table.table_bytes() < smallest.table_bytes()) {
                smallest = Some(table);
            }
        })?;
        smallest.ok_or_else(|| match (lowest, precision) {
            (Some(lowest), Precision::Rate(given)) => ParamError::FalsePositiveRate { given, lowest },
            _ => self.too_large(size, precision),
        })
    }

    /// The error for a size that no table has. Tables that are precise enough set the limit, if there are any.
    fn too_large(&self, size: Size, precision: Precision) -> ParamError {
        let mut most = (false, 0);
        // There are some: they were tried.
        _ = self.least_tables(|least| {
            let table = least.with_buckets(least.most_buckets()).unwrap_or(least);
            let reached = match size {
                Size::Capacity(_) => wide(table.capacity()),
                Size::Buckets(_) => table.buckets(),
            };
            most = most.max((precision.allows(&table), reached));
        });
        match size {
            Size::Capacity(given) => ParamError::Capacity { given, most: index(most.1) },
            Size::Buckets(given) => ParamError::Buckets { given, most: most.1, addressing: self.addressing },
        }
    }

    fn size(&self) -> Result<Size, ParamError> {
        match (self.capacity, self.buckets) {
            (Some(capacity), None) => Ok(Size::Capacity(capacity)),
            (None, Some(buckets)) => Ok(Size::Buckets(buckets)),
            (None, None) => Err(ParamError::NoSize),
            (Some(_), Some(_)) => Err(ParamError::TwoSizes),
        }
    }

    fn precision(&self) -> Result<Precision, ParamError> {
        match (self.false_positive_rate, self.fingerprint_bits) {
            (Some(rate), None) => Ok(Precision::Rate(rate)),
            (None, Some(bits)) => Ok(Precision::Bits(bits)),
            (None, None) => Err(ParamError::NoPrecision),
            (Some(_), Some(_)) => Err(ParamError::TwoPrecisions),
        }
    }

    /// Calls `each` for each kind of table and each length of fingerprints that the request allows, with the table that has the
    /// fewest buckets. (A loop and not an iterator: adapters that are nested so deep become kilobytes of code.)
    ///
    /// # Errors
    /// If there is none: what the first kind refuses. It takes whatever the others do, so that its limits count.
    fn least_tables(&self, mut each: impl FnMut(Params)) -> Result<(), ParamError> {
        let Self { addressing, seed, .. } = *self;
        let (precision, b) = (self.precision()?, self.bucket_size.unwrap_or(DEFAULT_BUCKET_SIZE));
        let (mut refused, mut is_any) = (None, false);
        for kind in TableKind::ALL {
            if self.table.is_some_and(|only| only != kind) {
                continue;
            }
            let lengths = match precision {
                Precision::Rate(_) => kind.fingerprint_bits(),
                Precision::Bits(f) => f..=f,
            };
            for f in lengths {
                match Params::new(kind, f, b, addressing.fewest_buckets(), addressing, seed) {
                    Ok(least) => {
                        is_any = true;
                        each(least);
                    }
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
        }
        refused.filter(|_| !is_any).map_or(Ok(()), Err)
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
fn sized(least: Params, size: Size) -> Option<Params> {
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
    for log2 in least.buckets.ilog2()..=least.most_buckets().ilog2() {
        for (first, last) in equal_loads(&least, log2).into_iter().flatten() {
            // Not even full tables with fewer buckets hold as much.
            if last.saturating_mul(b) < capacity {
                continue;
            }
            let load = safe_load(least.addressing(), least.bucket_size(), least.fingerprint_bits(), first);
            let needed = load.slots_for(capacity).div_ceil(b);
            let buckets = if needed <= first { first } else { needed.saturating_add(needed % 2) };
            if buckets <= last {
                return least.with_buckets(buckets);
            }
        }
    }
    None
}

/// The numbers of buckets of tables of the kind of `least` from 2ⁿ on, n = `log2`, and below twice as many: in two ranges, first
/// and last, over which the safe load is the same. A range that is not a single number has the even ones in it.
fn equal_loads(least: &Params, log2: u32) -> [Option<(u64, u64)>; 2] {
    let power = 1_u64 << log2;
    let last = least.most_buckets().min(2 * power - 2);
    let between = least.addressing() == Addressing::AnySize && power + 2 <= last;
    [Some((power, power)), between.then_some((power + 2, last))]
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
