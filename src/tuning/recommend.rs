//! Recommendations: the filters that satisfy a request, best first, and why the others do not.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::cmp::{Ordering, Reverse};

use crate::params::{Addressing, Params, Request, TableKind};

/// The highest recommended false-positive rate: one half.
///
/// A filter is queried before something slower, and avoids that for a fraction 1 − ε of all absent items. With a higher rate, it
/// would avoid fewer than half of these slow lookups and save little space: at this rate, each of a million items takes 4.1 bits,
/// and no table has fewer than two bits per slot.
///
/// # Example
/// ```
/// use koel::tuning::{Constraints, MAX_RATE, best_rate, recommend};
/// let least = recommend(1_000_000, MAX_RATE, &Constraints::default());
/// let bytes = least.best().expect("such a filter exists").bytes();
/// assert!(best_rate(1_000_000, bytes, &Constraints::default()).best().is_some());
/// let too_few = best_rate(1_000_000, bytes - 1, &Constraints::default());
/// assert!(too_few.best().is_none() && too_few.rejections()[0].reason().contains(&bytes.to_string()));
/// ```
pub const MAX_RATE: f64 = 0.5;

/// Constraints on recommended filters, besides capacity and rate. By default, there are none.
///
/// All recommended filters support removal.
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
    /// Limits the table to this many bytes.
    pub fn max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Allows this kind of table only.
    pub fn table(mut self, table: TableKind) -> Self {
        self.table = Some(table);
        self
    }

    /// Allows buckets of this many slots only. If no table has such buckets, the reason in the [`Rejection`] names the valid sizes.
    pub fn bucket_size(mut self, slots: u32) -> Self {
        self.bucket_size = Some(slots);
        self
    }

    /// Sets the addressing. The default is [`Addressing::AnySize`].
    pub fn addressing(mut self, addressing: Addressing) -> Self {
        self.addressing = addressing;
        self
    }

    /// Returns the reason why tables with buckets of `b` slots are not tried, if there is one.
    fn exclusion(&self, table: TableKind, b: u32) -> Option<String> {
        if self.table.is_some_and(|only| only != table) {
            return Some(format!("the {table} table was not requested"));
        }
        if let Some(only) = self.bucket_size.filter(|&only| only != b) {
            let plural = if only == 1 { "" } else { "s" };
            return Some(format!("only buckets of {only} slot{plural} were requested"));
        }
        // Every table takes 32 bits and 2 buckets, so an error is about the bucket size.
        Params::new(table, 32, b, 2, self.addressing, 0).err().map(|error| error.to_string())
    }

    /// Returns the reason why these parameters violate the constraints, if they do.
    fn violation(&self, params: &Params) -> Option<String> {
        let (bytes, most) = (params.table_bytes(), self.max_bytes?);
        (bytes > most).then(|| format!("it takes {bytes} bytes, and there may be {most}"))
    }
}

/// A filter that satisfies the request. Its load, rate and bits per item are given for the requested number of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    params: Params,
    items: usize,
}

impl Candidate {
    /// Returns the parameters. [`CuckooFilter::new`](crate::CuckooFilter::new) builds the filter from them.
    #[must_use]
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// Returns the length of the table in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.params.table_bytes()
    }

    /// Returns the bits of the table per item; infinite for 0 items.
    #[must_use]
    pub fn bits_per_item(&self) -> f64 {
        8.0 * self.bytes() as f64 / self.items as f64
    }

    /// Returns the load factor α = items/slots, 0 to 1.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.items as f64 / self.params.slots() as f64
    }

    /// Returns the expected false-positive rate ε at that load ([`Params::false_positive_rate_at`]).
    #[must_use]
    pub fn false_positive_rate(&self) -> f64 {
        self.params.false_positive_rate_at(self.load())
    }

    /// Compares candidates by rate, lowest first, then by size and simplicity.
    fn compare_rates(&self, other: &Self) -> Ordering {
        let rates = self.false_positive_rate().total_cmp(&other.false_positive_rate());
        rates.then_with(|| self.size_and_simplicity().cmp(&other.size_and_simplicity()))
    }

    /// Returns the sort key of candidates: the smaller table first, then the simpler one, then the one with larger buckets. (The
    /// bucket size only makes the order total.)
    fn size_and_simplicity(&self) -> (usize, bool, Reverse<u32>) {
        (self.bytes(), self.params.table() == TableKind::Packed, Reverse(self.params.bucket_size()))
    }
}

/// A kind of filter that does not satisfy the request, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    table: TableKind,
    bucket_size: u32,
    reason: String,
}

impl Rejection {
    /// Returns the kind of table.
    #[must_use]
    pub fn table(&self) -> TableKind {
        self.table
    }

    /// Returns the number of slots in a bucket.
    #[must_use]
    pub fn bucket_size(&self) -> u32 {
        self.bucket_size
    }

    /// Returns the reason, as a sentence without a period.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// The filters that satisfy a request, and the kinds of filters that do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recommendation {
    candidates: Vec<Candidate>,
    rejections: Vec<Rejection>,
}

impl Recommendation {
    /// Returns the best candidate, if there is one.
    #[must_use]
    pub fn best(&self) -> Option<&Candidate> {
        self.candidates.first()
    }

    /// Returns the candidates, best first: for [`recommend`] the smallest, for [`best_rate`] the one with the lowest rate. Among
    /// equally good candidates, the single table comes before the packed one, and larger buckets before smaller ones.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Returns the kinds of filters that do not satisfy the request.
    #[must_use]
    pub fn rejections(&self) -> &[Rejection] {
        &self.rejections
    }

    fn of(constraints: &Constraints, mut find: impl FnMut(Request) -> Result<Candidate, String>) -> Self {
        let mut recommendation = Self::default();
        for table in [TableKind::Packed, TableKind::Single] {
            // A requested size that no table takes becomes a rejection that names the valid sizes.
            let invalid = constraints.bucket_size.filter(|b| !TableKind::Single.bucket_sizes().contains(b));
            for b in table.bucket_sizes().chain(invalid) {
                let request = Request {
                    table: Some(table),
                    bucket_size: Some(b),
                    addressing: constraints.addressing,
                    ..Request::default()
                };
                let found = constraints.exclusion(table, b).map_or_else(|| find(request), Err);
                match found {
                    Ok(candidate) => recommendation.candidates.push(candidate),
                    Err(reason) => recommendation.rejections.push(Rejection { table, bucket_size: b, reason }),
                }
            }
        }
        recommendation
    }
}

/// Recommends filters for `items` distinct items with a false-positive rate of at most ε = `rate`, smallest first.
///
/// There is at most one candidate for each kind of table and each bucket size, 1 to 16 slots. It is the smallest filter of that
/// kind, which a [`Builder`](crate::Builder) builds for the same table and bucket size. So the first candidate is the smallest
/// filter of all. If the rate is above [`MAX_RATE`], or the rate or the number of items is out of range, every [`Rejection`]
/// gives that as its reason.
///
/// Nothing is built, so any number of items can be tried.
///
/// # Example
/// ```
/// use koel::{CuckooFilter, Xxh3, tuning::{Constraints, recommend}};
/// let advice = recommend(10_000, 0.01, &Constraints::default());
/// let best = advice.best().expect("such a filter exists");
/// let mut filter = CuckooFilter::new(*best.params(), Xxh3)?;
/// filter.insert("alice")?;
/// assert!(advice.rejections().iter().all(|rejection| !rejection.reason().is_empty()));
/// # Ok::<(), Box<dyn core::error::Error>>(())
/// ```
#[must_use]
pub fn recommend(items: usize, rate: f64, constraints: &Constraints) -> Recommendation {
    let mut recommendation = Recommendation::of(constraints, |request| {
        if rate > MAX_RATE {
            return Err(format!(
                "false-positive rate: {rate} given, but with more than {MAX_RATE}, most absent items are reported as present; give \
                 {MAX_RATE} or less"
            ));
        }
        let params = smallest(request, items, rate)?;
        constraints.violation(&params).map_or_else(|| Ok(Candidate { params, items }), Err)
    });
    recommendation.candidates.sort_by_key(Candidate::size_and_simplicity);
    recommendation
}

/// Recommends filters for `items` distinct items in a table of at most `bytes` bytes, lowest false-positive rate first.
///
/// There is at most one candidate for each kind of table and each bucket size, as in [`recommend`]: the one with the lowest rate,
/// which has the longest fingerprints that fit, and then as many buckets as fit, so that its capacity may exceed `items`. (With the
/// longest fingerprints that there are, it is planned for `items`.) If not even a rate of [`MAX_RATE`] fits, the reason in the
/// [`Rejection`] names the bytes that this rate takes.
///
/// # Example
/// ```
/// use koel::tuning::{Constraints, best_rate};
/// let best = best_rate(1_000_000, 1 << 20, &Constraints::default());
/// let rate = best.best().expect("short fingerprints fit").false_positive_rate();
/// assert!((0.01..0.02).contains(&rate), "{rate}");
/// ```
#[must_use]
pub fn best_rate(items: usize, bytes: usize, constraints: &Constraints) -> Recommendation {
    let constraints = constraints.clone().max_bytes(constraints.max_bytes.map_or(bytes, |most| most.min(bytes)));
    let mut recommendation = Recommendation::of(&constraints, |request| {
        let lengths = request.table.unwrap_or(TableKind::Single).fingerprint_bits();
        let best = lengths.rev().find_map(|f| largest(Request { fingerprint_bits: Some(f), ..request }, items, &constraints));
        let best = best.map(|params| Candidate { params, items });
        best.map_or_else(|| Err(too_large(&smallest(request, items, MAX_RATE)?, &constraints)), Ok)
    });
    recommendation.candidates.sort_by(Candidate::compare_rates);
    recommendation
}

/// Returns the largest useful filter for at least this many items that fits, or `None` if none fits. Fingerprints of one bit more do
/// not fit, unless there are none.
fn largest(request: Request, items: usize, constraints: &Constraints) -> Option<Params> {
    let fitting = |capacity| {
        let params = Request { capacity: Some(capacity), ..request }.params().ok()?;
        constraints.violation(&params).is_none().then_some(params)
    };
    let is_useful = |params: &Params| params.false_positive_rate_at_capacity() <= MAX_RATE;
    let (smallest, mut largest) = (fitting(items)?, None);
    let is_longest = request.fingerprint_bits == request.table.map(|table| *table.fingerprint_bits().end());
    // Without items, no rate is lower than another.
    if items > 0 && !is_longest {
        // An item takes at least one bit.
        let bits = constraints.max_bytes.unwrap_or(usize::MAX).saturating_mul(8);
        let (mut good, mut bad) = (items, bits.saturating_add(1));
        while bad - good > 1 {
            let middle = good.midpoint(bad);
            match fitting(middle) {
                Some(params) => (good, largest) = (middle, Some(params)),
                None => bad = middle,
            }
        }
    }
    largest.into_iter().chain([smallest]).find(is_useful)
}

/// The smallest filter for this many items at that rate, or why there is none.
fn smallest(request: Request, items: usize, rate: f64) -> Result<Params, String> {
    let request = Request { capacity: Some(items), false_positive_rate: Some(rate), ..request };
    request.params().map_err(|error| error.to_string())
}

/// Returns the reason why not even the smallest filter with a rate of [`MAX_RATE`] fits.
fn too_large(smallest: &Params, constraints: &Constraints) -> String {
    let f = smallest.fingerprint_bits();
    let violation = constraints.violation(smallest).unwrap_or_default();
    format!("even at its smallest, with a rate of at most {MAX_RATE} and fingerprints of {f} bits, {violation}")
}
