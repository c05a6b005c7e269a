//! The choice of [`Params`] for a request: the smallest table that satisfies it. Nothing is allocated.

use super::{
    Addressing, DEFAULT_BUCKET_SIZE, ParamError, Params, TableKind,
    fitting::{fitting_items, min_buckets},
    mean_matches,
};
use crate::bits::{index, wide};

/// The settings of a [`Builder`](crate::Builder); `None` for those that were not set.
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

/// The fingerprint lengths and the rates that a request allows.
#[derive(Clone, Copy)]
struct Precision {
    shortest: u32,
    longest: u32,
    /// The highest rate; negative if no table can have the given rate.
    rate: f64,
}

impl Request {
    /// Returns the smallest table that satisfies the request. Of two equally large tables, it returns the single one, which is
    /// simpler.
    ///
    /// # Errors
    /// If no table satisfies the request. The error names the first parameter that must change. It names the size rather than the
    /// rate, unless some fingerprint length makes the size possible.
    pub(crate) fn params(&self) -> Result<Params, ParamError> {
        let (size, precision) = (self.size()?, self.precision()?);
        // The single table takes all lengths and bucket sizes that the packed one takes.
        let kind = self.table.unwrap_or(TableKind::Single);
        self.table_params(kind, precision.longest, self.addressing.min_buckets())?;
        let Search { smallest, lowest, .. } = Search::of(self, size, precision);
        match (smallest, lowest, self.false_positive_rate) {
            (Some(smallest), ..) => Ok(smallest),
            (None, Some(lowest), Some(given)) => Err(ParamError::FalsePositiveRate { given, min: lowest }),
            _ => Err(self.too_large(size, precision)),
        }
    }

    /// Returns the error for a size that no table has. The limit is the largest table that keeps the rate; if there is none, the
    /// largest with a rate below 1, and otherwise the largest of all.
    fn too_large(&self, size: Size, precision: Precision) -> ParamError {
        let mut most = (false, false, 0);
        for f in precision.shortest..=precision.longest {
            for kind in TableKind::ALL {
                if self.table.is_some_and(|only| only != kind) {
                    continue;
                }
                let Ok(least) = self.table_params(kind, f, self.addressing.min_buckets()) else { continue };
                let table = least.with_buckets(least.max_buckets()).unwrap_or(least);
                let reached = match size {
                    Size::Capacity(_) => wide(table.capacity()),
                    Size::Buckets(_) => table.buckets(),
                };
                let rate = table.false_positive_rate_at_capacity();
                most = most.max((rate <= precision.rate, rate < 1.0, reached));
            }
        }
        match size {
            Size::Capacity(given) => ParamError::Capacity { given, max: index(most.2) },
            Size::Buckets(given) => ParamError::Buckets { given, max: most.2, addressing: self.addressing },
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
            (Some(rate), None) => {
                let rate = if rate > 0.0 && rate < 1.0 { rate } else { -1.0 };
                Ok(Precision { shortest: 2, longest: 32, rate })
            }
            (None, Some(f)) => Ok(Precision { shortest: f, longest: f, rate: 1.0 }),
            (None, None) => Err(ParamError::NoPrecision),
            (Some(_), Some(_)) => Err(ParamError::TwoPrecisions),
        }
    }

    /// Returns the number of slots in a bucket.
    fn b(&self) -> u32 {
        self.bucket_size.unwrap_or(DEFAULT_BUCKET_SIZE)
    }

    /// Returns the parameters of a table, or why they are invalid. (Inlined, it would take more code than all its callers.)
    #[inline(never)]
    fn table_params(&self, kind: TableKind, f: u32, buckets: u64) -> Result<Params, ParamError> {
        Params::new(kind, f, self.b(), buckets, self.addressing, self.seed)
    }
}

/// A relative margin above the rounding errors of a few products.
const ROUNDING: f64 = 1e-9;

/// The search for the smallest table that keeps the rate.
///
/// It begins with the fingerprint length that keeps the rate in a full table, and continues with longer and then with shorter
/// fingerprints. Tables with very short fingerprints cannot be filled, so longer fingerprints may take less space, and shorter ones
/// may keep the rate. The search ends when no table can be smaller than the one found: with longer fingerprints, not even a full
/// table; with shorter ones, not even a table that is as full as the rate allows.
struct Search<'a> {
    request: &'a Request,
    size: Size,
    rate: f64,
    /// The highest number of items that may match an absent item on average; a table with more exceeds the rate.
    most_matches: f64,
    smallest: Option<Params>,
    /// The bytes of the smallest table, and as a tiebreaker, its kind and fingerprint length.
    rank: (usize, u32),
    /// The lowest rate below 1 of the tables compared so far. It is meaningful as long as no table keeps the rate.
    lowest: Option<f64>,
}

impl<'a> Search<'a> {
    /// Runs the search. Some table must take the bucket size and the fingerprint lengths.
    fn of(request: &'a Request, size: Size, Precision { shortest, longest, rate }: Precision) -> Self {
        let most_matches = if rate < 1.0 { rate * (1.0 + ROUNDING) } else { f64::INFINITY };
        let rank = (usize::MAX, u32::MAX);
        let mut search = Self { request, size, rate, most_matches, smallest: None, rank, lowest: None };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded to a number of 64 bits")]
        let fingerprints = (f64::from(2 * request.b()) / most_matches) as u64;
        let likely = (u64::BITS - fingerprints.leading_zeros()).clamp(shortest, longest);
        let mut f = likely;
        while f <= longest && search.compare(f) {
            f += 1;
        }
        f = likely;
        while f > shortest && search.compare(f - 1) {
            f -= 1;
        }
        search
    }

    /// Compares tables with fingerprints of `f` bits with the smallest one so far. Returns false if these and all that would be
    /// compared next are larger.
    fn compare(&mut self, f: u32) -> bool {
        let Request { addressing, table, .. } = *self.request;
        let b = self.request.b();
        // The packed table stores a fingerprint in one bit less.
        let bits = f64::from(f - u32::from(table != Some(TableKind::Single)));
        let most_bits = 8.0 * self.rank.0 as f64 * (1.0 + ROUNDING);
        if let Size::Capacity(capacity) = self.size {
            let highest_load = (self.most_matches * f64::from(u32::MAX >> (32 - f)) / f64::from(2 * b)).min(1.0);
            let least_slots = f64::from(b) * addressing.min_buckets() as f64;
            let least_bits = bits * least_slots.max(wide(capacity) as f64 / highest_load);
            if self.smallest.is_some() && least_bits > most_bits {
                return false;
            }
        }
        let buckets = match self.size {
            Size::Buckets(buckets) => buckets,
            Size::Capacity(capacity) => min_buckets(addressing, b, f, wide(capacity)),
        };
        let slots = buckets.saturating_mul(b.into());
        let load = fitting_items(addressing, b, f, buckets) as f64 / slots as f64;
        let is_excluded = slots as f64 * bits > most_bits || mean_matches(f, b, load) > self.most_matches;
        if self.smallest.is_some() && is_excluded {
            return true;
        }
        // An upper bound of the rate, for any number of copies.
        let rate = mean_matches(f, b, load).min(1.0);
        for kind in TableKind::ALL {
            if table.is_none_or(|only| only == kind)
                && let Ok(table) = self.request.table_params(kind, f, buckets)
            {
                if rate < 1.0 {
                    self.lowest = Some(self.lowest.map_or(rate, |lowest| lowest.min(rate)));
                }
                let rank = (table.table_bytes(), (kind as u32) << 8 | f);
                if rate <= self.rate && rank < self.rank {
                    (self.smallest, self.rank) = (Some(table), rank);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::{prelude::*, test_runner::RngSeed};

    fn request(addressing: Addressing, kind: TableKind, b: u32, capacity: usize) -> Request {
        Request { addressing, table: Some(kind), bucket_size: Some(b), capacity: Some(capacity), ..Request::default() }
    }

    /// Tries all smaller tables.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn no_smaller_table_has_the_capacity() {
        let kinds =
            [(TableKind::Packed, 4, 4), (TableKind::Packed, 13, 4), (TableKind::Single, 8, 1), (TableKind::Single, 12, 2)];
        for (kind, f, b) in kinds {
            for addressing in Addressing::ALL {
                for capacity in (0..200).chain([500, 1000, 2222, 5000]) {
                    let params =
                        Request { fingerprint_bits: Some(f), ..request(addressing, kind, b, capacity) }.params().unwrap();
                    assert!(params.capacity() >= capacity);
                    let mut smaller = (1..params.buckets()).filter_map(|buckets| params.with_buckets(buckets));
                    let found = smaller.find(|smaller| smaller.capacity() >= capacity);
                    assert!(found.is_none(), "{params:?}, but {found:?} is smaller and has the capacity");
                }
            }
        }
    }

    /// Every table is planned for at least one item, so it has a rate above 0.
    #[test]
    fn a_rate_of_0_is_refused() {
        let request = Request {
            capacity: None,
            buckets: Some(32),
            false_positive_rate: Some(0.0),
            ..request(Addressing::PowerOfTwo, TableKind::Single, 1, 0)
        };
        let Err(ParamError::FalsePositiveRate { given: 0.0, min }) = request.params() else { panic!("{request:?}") };
        assert!(min > 0.0);
        assert_eq!(exhaustive(&request), request.params());
    }

    /// Returns the smallest table with these fingerprints, by bisection in each range of tables with the same load.
    fn smallest_with(least: Params, size: Size) -> Option<Params> {
        let capacity = match size {
            Size::Buckets(buckets) => return least.with_buckets(buckets),
            Size::Capacity(capacity) => capacity,
        };
        let fits = |buckets: u64| least.with_buckets(buckets).is_some_and(|table| table.capacity() >= capacity);
        (least.buckets().ilog2()..=least.max_buckets().ilog2()).find_map(|log2| {
            let power = 1 << log2;
            let (mut too_few, mut enough) = (power / 2, least.max_buckets().min(2 * power - 2) / 2);
            if fits(power) {
                return least.with_buckets(power);
            }
            if enough <= too_few || !fits(2 * enough) {
                return None;
            }
            while too_few + 1 < enough {
                let middle = u64::midpoint(too_few, enough);
                *(if fits(2 * middle) { &mut enough } else { &mut too_few }) = middle;
            }
            least.with_buckets(2 * enough)
        })
    }

    /// Returns the tables with the fewest buckets, for each kind and each fingerprint length that the request allows; or the first
    /// error.
    fn least_tables(request: &Request) -> Result<Vec<Params>, ParamError> {
        let kinds = TableKind::ALL.into_iter().filter(|&kind| request.table.is_none_or(|only| only == kind));
        let lengths = |kind: TableKind| request.fingerprint_bits.map_or(kind.fingerprint_bits(), |f| f..=f);
        let all = kinds.flat_map(|kind| lengths(kind).map(move |f| (kind, f)));
        let fewest = request.addressing.min_buckets();
        let (tables, errors): (Vec<_>, Vec<_>) =
            all.map(|(kind, f)| request.table_params(kind, f, fewest)).partition(Result::is_ok);
        match errors.into_iter().next() {
            Some(error) if tables.is_empty() => error.map(|_| Vec::new()),
            _ => Ok(tables.into_iter().flatten().collect()),
        }
    }

    /// Returns the expected result of a request, by trying all tables.
    fn exhaustive(request: &Request) -> Result<Params, ParamError> {
        let size = request.size()?;
        request.precision()?;
        let is_allowed = |table: &Params| {
            let rate = request.false_positive_rate;
            rate.is_none_or(|rate| rate > 0.0 && rate < 1.0 && table.false_positive_rate_at_capacity() <= rate)
        };
        let least = least_tables(request)?;
        let tables: Vec<_> = least.iter().filter_map(|&least| smallest_with(least, size)).collect();
        let smallest = tables.iter().filter(|table| is_allowed(table)).min_by_key(|table| table.table_bytes());
        let rates = tables.iter().map(Params::false_positive_rate_at_capacity);
        let lowest = rates.filter(|&rate| rate < 1.0).min_by(f64::total_cmp);
        let largest = least.iter().filter_map(|least| least.with_buckets(least.max_buckets()));
        let precision = |table: &Params| (is_allowed(table), table.false_positive_rate_at_capacity() < 1.0);
        let by_precision = |table: Params| (precision(&table), table.buckets(), table.capacity());
        let largest: Vec<_> = largest.map(by_precision).collect();
        let best = largest.iter().map(|&(precision, ..)| precision).max();
        let largest = || largest.iter().filter(|&&(precision, ..)| Some(precision) == best);
        match (smallest, lowest, request.false_positive_rate, size) {
            (Some(&smallest), ..) => Ok(smallest),
            (None, Some(lowest), Some(given), _) => Err(ParamError::FalsePositiveRate { given, min: lowest }),
            (.., Size::Buckets(given)) => {
                let most = largest().map(|&(_, buckets, _)| buckets).max().unwrap();
                Err(ParamError::Buckets { given, max: most, addressing: request.addressing })
            }
            (.., Size::Capacity(given)) => {
                Err(ParamError::Capacity { given, max: largest().map(|&(.., capacity)| capacity).max().unwrap() })
            }
        }
    }

    fn any_size() -> impl Strategy<Value = (Option<usize>, Option<u64>)> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded to a number of items")]
        let capacity = (0.0..1e10f64.log2()).prop_map(|log2| (log2.exp2() - 1.0) as usize);
        let any_log = any::<u64>().prop_map(|bits| bits >> (bits % 64));
        prop_oneof![
            12 => capacity.prop_map(|items| (Some(items), None)),
            2 => (0..200usize).prop_map(|items| (Some(items), None)),
            2 => any_log.clone().prop_map(|items| (Some(index(items.min(wide(usize::MAX)))), None)),
            2 => any_log.prop_map(|buckets| (None, Some(buckets))),
            2 => (0..42).prop_map(|log2| (None, Some(1_u64 << log2))),
            1 => Just((None, None)),
        ]
    }

    fn any_precision() -> impl Strategy<Value = (Option<f64>, Option<u32>)> {
        const ODD: [f64; 9] = [0.0, -1.0, 1.0, 2.0, f64::NAN, f64::INFINITY, 1.0 - f64::EPSILON, 1e-300, f64::MIN_POSITIVE];
        prop_oneof![
            12 => (1e-12f64.log2()..0.999f64.log2()).prop_map(|log2| (Some(log2.exp2()), None)),
            4 => (0.001..0.999).prop_map(|rate| (Some(rate), None)),
            1 => prop::sample::select(&ODD[..]).prop_map(|rate| (Some(rate), None)),
            3 => (0..36u32).prop_map(|f| (None, Some(f))),
            1 => Just((Some(0.1), Some(9))),
        ]
    }

    fn any_request() -> impl Strategy<Value = Request> {
        let table = prop::sample::select(&[None, Some(TableKind::Single), Some(TableKind::Packed)][..]);
        let bucket_size = prop_oneof![2 => Just(None), 1 => Just(Some(4)), 4 => (0..18u32).prop_map(Some)];
        let addressing = prop::sample::select(&Addressing::ALL[..]);
        let all = (any_size(), any_precision(), table, bucket_size, addressing);
        all.prop_map(|((capacity, buckets), (false_positive_rate, fingerprint_bits), table, bucket_size, addressing)| Request {
            capacity,
            buckets,
            false_positive_rate,
            fingerprint_bits,
            table,
            bucket_size,
            addressing,
            seed: 7,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 2 } else { 5000 },
            rng_seed: RngSeed::Fixed(1),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        #[cfg_attr(miri, ignore = "takes too long")]
        fn the_search_agrees_with_trying_all_tables(request in any_request()) {
            // NaN does not equal itself.
            let comparable = |error| match error {
                ParamError::FalsePositiveRate { given, min: lowest } if given.is_nan() => {
                    ParamError::FalsePositiveRate { given: f64::MIN, min: lowest }
                }
                other => other,
            };
            prop_assert_eq!(request.params().map_err(comparable), exhaustive(&request).map_err(comparable));
        }
    }
}
