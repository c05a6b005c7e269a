//! The filters that satisfy a request, the best first, and why others do not.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::cmp::{Ordering, Reverse};

use crate::params::{Addressing, Params, Request, TableKind};

/// The highest false-positive rate that is recommended: one half.
///
/// A filter is queried before something slower, and saves that for a share 1 − ε of all absent items. With a higher rate it would
/// save less than half of them, and little space: at this rate, each of a million items takes 4.1 bits, and no table has fewer
/// than two bits per slot.
///
/// # Example
/// ```
/// use koel::tuning::{Constraints, HIGHEST_RATE, best_rate, recommend};
/// let least = recommend(1_000_000, HIGHEST_RATE, &Constraints::default());
/// let bytes = least.best().expect("there is one").bytes();
/// assert!(best_rate(1_000_000, bytes, &Constraints::default()).best().is_some());
/// let too_few = best_rate(1_000_000, bytes - 1, &Constraints::default());
/// assert!(too_few.best().is_none() && too_few.rejections()[0].reason().contains(&bytes.to_string()));
/// ```
pub const HIGHEST_RATE: f64 = 0.5;

/// What a recommended filter must satisfy besides its capacity and its rate. By default, nothing.
///
/// All of these filters can delete.
///
/// # Example
/// ```
/// use koel::{TableKind, tuning::Constraints};
/// let small = Constraints::default().max_bytes(1 << 20);
/// let simple = Constraints::default().table(TableKind::Single).bucket_size(2);
/// # let _ = (small, simple);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Constraints {
    max_bytes: Option<usize>,
    table: Option<TableKind>,
    bucket_size: Option<u32>,
    addressing: Addressing,
}

impl Constraints {
    /// The table takes at most this many bytes.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Only this kind of table.
    pub fn table(mut self, table: TableKind) -> Self {
        self.table = Some(table);
        self
    }

    /// Only buckets of this many slots. If no table has such buckets, the reason of the [`Rejection`] says which it has.
    pub fn bucket_size(mut self, slots: u32) -> Self {
        self.bucket_size = Some(slots);
        self
    }

    /// This addressing instead of [`Addressing::AnySize`].
    pub fn addressing(mut self, addressing: Addressing) -> Self {
        self.addressing = addressing;
        self
    }

    /// Why a table with buckets of `b` slots is not even tried.
    fn excludes(&self, table: TableKind, b: u32) -> Option<String> {
        if self.table.is_some_and(|only| only != table) {
            return Some(format!("the {table} table was not requested"));
        }
        if let Some(only) = self.bucket_size.filter(|&only| only != b) {
            let some = if only == 1 { "" } else { "s" };
            return Some(format!("only buckets of {only} slot{some} were requested"));
        }
        // It is about the bucket: with fingerprints that every table takes.
        Params::new(table, 32, b, 2, self.addressing, 0).err().map(|error| error.to_string())
    }

    /// Why these parameters are not good enough.
    fn refuses(&self, params: &Params) -> Option<String> {
        let (bytes, most) = (params.table_bytes(), self.max_bytes?);
        (bytes > most).then(|| format!("it takes {bytes} bytes, and there may be {most}"))
    }
}

/// A filter that satisfies the request. Its load, rate and bits per item are those with the requested number of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    params: Params,
    items: usize,
}

impl Candidate {
    /// Its parameters. [`CuckooFilter::new`](crate::CuckooFilter::new) builds it from them.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// The length of the table in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.params.table_bytes()
    }

    /// Bits of the table per item; infinite for no items.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        8.0 * self.bytes() as f64 / self.items as f64
    }

    /// The load α = items/slots, 0 to 1.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.items as f64 / self.params.slots() as f64
    }

    /// The expected false-positive rate ε at that load ([`Params::false_positive_rate_at`]).
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.params.false_positive_rate_at(self.load())
    }

    /// The order of candidates for this many bytes: low rates before high ones, and then as always.
    fn by_rate(&self, other: &Self) -> Ordering {
        let rates = self.false_positive_rate().total_cmp(&other.false_positive_rate());
        rates.then_with(|| self.size_and_simplicity().cmp(&other.size_and_simplicity()))
    }

    /// The order of candidates: small before large, then the simpler table. Larger buckets come first only so that equals have an
    /// order.
    fn size_and_simplicity(&self) -> (usize, bool, Reverse<u32>) {
        (self.bytes(), self.params.table() == TableKind::Packed, Reverse(self.params.bucket_size()))
    }
}

/// A kind of filter that does not satisfy the request, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    table: TableKind,
    bucket_size: u32,
    reason: String,
}

impl Rejection {
    /// The kind of table.
    #[must_use]
    pub fn table(&self) -> TableKind {
        self.table
    }

    /// The number of slots in a bucket.
    #[must_use]
    pub fn bucket_size(&self) -> u32 {
        self.bucket_size
    }

    /// The reason, as a sentence without a full stop.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// The filters that satisfy a request, and those that do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recommendation {
    candidates: Vec<Candidate>,
    rejections: Vec<Rejection>,
}

impl Recommendation {
    /// The best candidate, if there is one.
    #[must_use]
    pub fn best(&self) -> Option<&Candidate> {
        self.candidates.first()
    }

    /// The candidates, the best first: for [`recommend`] the smallest, for [`best_rate`] the one with the lowest rate. Of those
    /// that are equally good, the single table comes before the packed one, and larger buckets before smaller ones.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The kinds of filters that do not satisfy the request.
    #[must_use]
    pub fn rejections(&self) -> &[Rejection] {
        &self.rejections
    }

    fn of(constraints: &Constraints, mut find: impl FnMut(Request) -> Result<Candidate, String>) -> Self {
        let mut recommendation = Self::default();
        for table in [TableKind::Packed, TableKind::Single] {
            // A size that no table takes is listed, too, with those that they take.
            let unknown = constraints.bucket_size.filter(|b| !TableKind::Single.bucket_sizes().contains(b));
            for b in table.bucket_sizes().chain(unknown) {
                let request = Request {
                    table: Some(table),
                    bucket_size: Some(b),
                    addressing: constraints.addressing,
                    ..Request::default()
                };
                let found = constraints.excludes(table, b).map_or_else(|| find(request), Err);
                match found {
                    Ok(candidate) => recommendation.candidates.push(candidate),
                    Err(reason) => recommendation.rejections.push(Rejection { table, bucket_size: b, reason }),
                }
            }
        }
        recommendation
    }
}

/// The filters for `items` different items with a false-positive rate of at most ε = `rate`, the smallest first.
///
/// There is at most one candidate for each kind of table and each bucket size, 1 to 16 slots: the smallest filter, which is the
/// one that a [`Builder`](crate::Builder) builds when it is given both. So the first candidate is the smallest filter that there
/// is. A rate above [`HIGHEST_RATE`], and a rate or a number of items that is out of range, are the reason of every
/// [`Rejection`].
///
/// Nothing is built, so that any number of items can be tried.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, Xxh3, tuning::{Constraints, recommend}};
/// let advice = recommend(10_000, 0.01, &Constraints::default());
/// let best = advice.best().expect("there is a filter like that");
/// let mut filter = CuckooFilter::new(*best.params(), Xxh3)?;
/// filter.insert("alice")?;
/// assert!(advice.rejections().iter().all(|rejection| !rejection.reason().is_empty()));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[must_use]
pub fn recommend(items: usize, rate: f64, constraints: &Constraints) -> Recommendation {
    let mut recommendation = Recommendation::of(constraints, |request| {
        if rate > HIGHEST_RATE {
            return Err(format!(
                "false-positive rate: {rate} given, but with more than {HIGHEST_RATE}, most absent items are reported as present; give \
                 {HIGHEST_RATE} or less"
            ));
        }
        let params = smallest(request, items, rate)?;
        constraints.refuses(&params).map_or_else(|| Ok(Candidate { params, items }), Err)
    });
    recommendation.candidates.sort_by_key(Candidate::size_and_simplicity);
    recommendation
}

/// The filters for `items` different items in a table of at most `bytes` bytes, the one with the lowest false-positive rate
/// first.
///
/// There is at most one candidate for each kind of table and each bucket size, as in [`recommend`]: of the tables that are planned
/// for that number of items, one for each length of fingerprints, the one with the lowest rate that fits. If not even a rate of
/// [`HIGHEST_RATE`] fits, the reason of the [`Rejection`] has the bytes that it takes.
///
/// # Example
/// ```
/// use koel::tuning::{Constraints, best_rate};
/// let best = best_rate(1_000_000, 1 << 20, &Constraints::default());
/// let rate = best.best().expect("that is enough for short fingerprints").false_positive_rate();
/// assert!((0.01..0.02).contains(&rate), "{rate}");
/// ```
#[must_use]
pub fn best_rate(items: usize, bytes: usize, constraints: &Constraints) -> Recommendation {
    let constraints = constraints.clone().max_bytes(constraints.max_bytes.map_or(bytes, |most| most.min(bytes)));
    let mut recommendation = Recommendation::of(&constraints, |request| {
        let lengths = request.table.unwrap_or(TableKind::Single).fingerprint_bits();
        let of_length = |f| Request { capacity: Some(items), fingerprint_bits: Some(f), ..request }.params().ok();
        let fit = lengths
            .filter_map(of_length)
            .filter(|params| constraints.refuses(params).is_none() && params.false_positive_rate_at_capacity() <= HIGHEST_RATE);
        let best = fit.map(|params| Candidate { params, items }).min_by(Candidate::by_rate);
        best.map_or_else(|| Err(too_large(&smallest(request, items, HIGHEST_RATE)?, &constraints)), Ok)
    });
    recommendation.candidates.sort_by(Candidate::by_rate);
    recommendation
}

/// The smallest filter for this many items at that rate, or why there is none.
fn smallest(request: Request, items: usize, rate: f64) -> Result<Params, String> {
    let request = Request { capacity: Some(items), false_positive_rate: Some(rate), ..request };
    request.params().map_err(|error| error.to_string())
}

/// Why not even the smallest filter that is of use fits.
fn too_large(smallest: &Params, constraints: &Constraints) -> String {
    let f = smallest.fingerprint_bits();
    let refusal = constraints.refuses(smallest).unwrap_or_default();
    format!("even at its smallest, with a rate of at most {HIGHEST_RATE} and fingerprints of {f} bits, {refusal}")
}
