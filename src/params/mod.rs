//! The parameters of a filter: what they are and their limits, and how they follow from what a user asks for (`sizing`).

mod error;
mod formulas;
mod kind;
mod max_load;
mod rate;
mod sizing;

use core::{fmt, ops::RangeInclusive};

use crate::bits::{PADDING, index, wide};
pub use {
    error::ParamError,
    kind::{Addressing, TableKind},
};
pub(crate) use {
    formulas::{false_positive_rate, mean_matches, rate_beside_copies},
    max_load::safe_load,
    sizing::Request,
};

/// Slots of a bucket unless another number is asked for: the packed table's.
pub(crate) const DEFAULT_BUCKET_SIZE: u32 = 4;

/// Bits of the longest table: one allocation holds it, and the position of its last bit fits 64 bits.
const MAX_TABLE_BITS: u64 = {
    let allocation = wide(isize::MAX as usize) - wide(PADDING);
    8 * if allocation < u64::MAX / 8 { allocation } else { u64::MAX / 8 }
};

/// The parameters of a filter: what two filters must share to be merged, and what a snapshot's header holds.
///
/// They are valid: [`Builder::params`](crate::Builder::params) makes them from a request, without a table, and every filter
/// has its own ([`CuckooFilter::params`](crate::CuckooFilter::params)). [`CuckooFilter::new`](crate::CuckooFilter::new) builds
/// an empty filter from them.
///
/// With the feature `serde`, they are a struct with the fields `table`, `fingerprint_bits`, `bucket_size`, `addressing`, `seed`
/// and `buckets`. Human-readable formats get names and a hexadecimal seed, binary ones get numbers. Reading checks every limit.
///
/// # Example
/// What would a filter for a billion items take?
/// ```
/// let params = koel::CuckooFilter::builder().capacity(1_000_000_000).false_positive_rate(0.001).params()?;
/// assert_eq!(params.fingerprint_bits(), 13);
/// assert!(params.table_bytes() < 1_600_000_000);
/// # Ok::<(), koel::ParamError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Params {
    buckets: u64,
    seed: u64,
    table: TableKind,
    addressing: Addressing,
    // Neither exceeds 32.
    fingerprint_bits: u8,
    bucket_size: u8,
}

// Every filter has them, and there may be millions of small filters. (Where `u64` is aligned to four bytes, they are 20.)
const _: () = assert!(size_of::<Params>() <= 24);

impl Params {
    /// How the table stores its fingerprints.
    #[must_use]
    pub fn table(&self) -> TableKind {
        self.table
    }

    /// The length of a fingerprint, f, in bits: 2 to 32.
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits.into()
    }

    /// The number of slots in a bucket, b: 1 to 16.
    #[must_use]
    pub fn bucket_size(&self) -> u32 {
        self.bucket_size.into()
    }

    /// The number of buckets in the table, m.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.buckets
    }

    /// How an item's two buckets are found.
    #[must_use]
    pub fn addressing(&self) -> Addressing {
        self.addressing
    }

    /// The hasher's seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The number of slots in the table, m·b. They can hardly ever be filled to the last: see [`capacity`](Self::capacity).
    #[must_use]
    pub fn slots(&self) -> usize {
        index(self.buckets * u64::from(self.bucket_size))
    }

    /// The length of the table in bytes: m·b·f bits in the single table, m·b·(f − 1) bits in the packed one, rounded up.
    #[inline]
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        index((self.buckets * u64::from(self.bucket_bits())).div_ceil(8))
    }

    pub(crate) fn bucket_bits(&self) -> u32 {
        self.table.bucket_bits(self.fingerprint_bits(), self.bucket_size())
    }

    /// The number of different items that fit, except with a probability below 10⁻⁴; a few more usually do.
    ///
    /// It is the number of slots times the safe load, which was measured (tables/README.md) and is what
    /// `tuning::safe_load` returns.
    #[must_use]
    pub fn capacity(&self) -> usize {
        let load = safe_load(self.addressing, self.bucket_size(), self.fingerprint_bits(), self.buckets);
        index(load.of(wide(self.slots())))
    }

    /// The expected false-positive rate ε at a load α = items/slots from 0 to 1: 1 − e^(−2bα/(2ᶠ − 1)).
    ///
    /// The paper's bound (section 5.1) is 2b/2ᶠ. docs/TUNING.md compares the formula with measurements.
    ///
    /// # Example
    /// ```
    /// let params = koel::CuckooFilter::builder().buckets(1 << 20).fingerprint_bits(13).params()?;
    /// assert!((params.false_positive_rate_at(0.5) - 4.88e-4).abs() < 1e-6);
    /// # Ok::<(), koel::ParamError>(())
    /// ```
    #[must_use]
    pub fn false_positive_rate_at(&self, load: f64) -> f64 {
        false_positive_rate(self.fingerprint_bits(), self.bucket_size(), load)
    }

    /// The highest expected false-positive rate with [`capacity`](Self::capacity) items, however many copies they have: 2bα/(2ᶠ − 1),
    /// or 1 if that is more. Items of which none has copies have a
    /// [slightly lower one](Self::false_positive_rate_at) (docs/TUNING.md). A builder compares it with the rate that it was given.
    #[must_use]
    pub fn false_positive_rate_at_capacity(&self) -> f64 {
        mean_matches(self.fingerprint_bits(), self.bucket_size(), self.capacity() as f64 / self.slots() as f64).min(1.0)
    }
}

impl Params {
    /// The parameters, if they are within all limits but that of the memory at hand.
    ///
    /// # Errors
    /// If one is not. The error names the first of them.
    pub(crate) fn new(
        table: TableKind,
        fingerprint_bits: u32,
        bucket_size: u32,
        buckets: u64,
        addressing: Addressing,
        seed: u64,
    ) -> Result<Self, ParamError> {
        let wrong_size = ParamError::BucketSize { given: bucket_size, table };
        let bucket_size = within(bucket_size, &table.bucket_sizes()).ok_or(wrong_size)?;
        let wrong_bits = ParamError::FingerprintBits { given: fingerprint_bits, table };
        let fingerprint_bits = within(fingerprint_bits, &table.fingerprint_bits()).ok_or(wrong_bits)?;
        let params = Self { buckets, seed, table, addressing, fingerprint_bits, bucket_size };
        if addressing.takes(buckets) && params.fits() {
            return Ok(params);
        }
        Err(ParamError::Buckets { given: buckets, most: params.most_buckets(), addressing })
    }

    /// True if the buckets are at most [`most_buckets`](Self::most_buckets), which takes two divisions: opening a view takes none.
    #[inline]
    fn fits(&self) -> bool {
        let most = match self.addressing {
            Addressing::AnySize => 1 << (64 - self.fingerprint_bits),
            Addressing::PowerOfTwo => 1 << 32,
        };
        let times = |factor: u32, limit| self.buckets.checked_mul(factor.into()).is_some_and(|product| product <= limit);
        // On 64-bit machines, the bits exceed their limit before the slots do.
        let slots_fit = usize::BITS == u64::BITS || times(self.bucket_size(), wide(usize::MAX));
        self.buckets <= most && times(self.bucket_bits(), MAX_TABLE_BITS) && slots_fit
    }

    /// The same with another number of buckets, if there can be so many.
    pub(super) fn with_buckets(self, buckets: u64) -> Option<Self> {
        let Self { seed, table, addressing, .. } = self;
        Self::new(table, self.fingerprint_bits(), self.bucket_size(), buckets, addressing, seed).ok()
    }

    /// The most buckets that a table of this kind can have.
    pub(super) fn most_buckets(&self) -> u64 {
        // MAX_TABLE_BITS / bits, by divisions as wide as an address: code for 64-bit ones would be a tenth of a small program.
        let (bytes, bits) = (index(MAX_TABLE_BITS / 8), self.bucket_bits() as usize);
        let in_bytes = 8 * wide(bytes / bits) + wide(8 * (bytes % bits) / bits);
        let most = in_bytes.min(wide(usize::MAX / usize::from(self.bucket_size)));
        match self.addressing {
            // Beyond these, a bucket's share of the 2⁶⁴ hashes is too small to have all the fingerprints in it.
            Addressing::AnySize => most.min(1 << (64 - self.fingerprint_bits)) & !1,
            // The index is drawn from the hash's upper 32 bits, as in Go.
            Addressing::PowerOfTwo => 1 << most.ilog2().min(32),
        }
    }
}

/// The value, if it lies within these limits.
fn within(value: u32, limits: &RangeInclusive<u32>) -> Option<u8> {
    u8::try_from(value).ok().filter(|_| limits.contains(&value))
}

/// The parameters in one line.
///
/// # Example
/// ```
/// let params = koel::CuckooFilter::builder().buckets(256_412).fingerprint_bits(13).params()?;
/// assert_eq!(params.to_string(), "packed table, 13-bit fingerprints, 256412 buckets of 4 (any-size), seed 0");
/// # Ok::<(), koel::ParamError>(())
/// ```
impl fmt::Display for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { buckets, seed, table, addressing, fingerprint_bits, bucket_size } = self;
        write!(
            f,
            "{table} table, {fingerprint_bits}-bit fingerprints, {buckets} buckets of {bucket_size} ({addressing}), seed {seed}"
        )
    }
}
