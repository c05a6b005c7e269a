//! The parameters of a filter, their limits, and the choice of parameters for a request (`sizing`).

mod error;
mod fitting;
mod formulas;
mod kind;
mod names;
mod rate;
mod safe_loads;
mod sizing;

use core::{fmt, ops::RangeInclusive};

use crate::bits::{PADDING, index, wide};
pub use {
    error::ParamError,
    kind::{Addressing, TableKind},
};
pub(crate) use {
    fitting::fitting_items,
    formulas::{excess_items, false_positive_rate, mean_matches, rate_beside_copies},
    sizing::Request,
};

/// The default number of slots in a bucket, which is that of the packed table.
pub(crate) const DEFAULT_BUCKET_SIZE: u32 = 4;

/// The bits of the longest table. One allocation holds it, and the position of its last bit fits into 64 bits.
const MAX_TABLE_BITS: u64 = {
    let allocation = wide(isize::MAX as usize) - wide(PADDING);
    8 * if allocation < u64::MAX / 8 { allocation } else { u64::MAX / 8 }
};

/// The parameters of a filter. Filters can be merged if their parameters are equal, and a snapshot's header stores them.
///
/// Parameters are always valid. [`Builder::params`](crate::Builder::params) computes them for a request without allocating a table,
/// [`CuckooFilter::params`](crate::CuckooFilter::params) returns those of a filter, and
/// [`CuckooFilter::new`](crate::CuckooFilter::new) builds an empty filter from them.
///
/// With the feature `serde`, they serialize as a struct with the fields `table`, `fingerprint_bits`, `bucket_size`, `addressing`,
/// `seed` and `buckets`. Human-readable formats get names and a hexadecimal seed; binary ones get numbers. Deserializing checks
/// every limit.
///
/// # Example
/// Plan a filter for a billion items:
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
    // At most 32, as is `bucket_size`.
    fingerprint_bits: u8,
    bucket_size: u8,
}

// Every filter stores its parameters, and there may be millions of small filters. (Where `u64` is aligned to 4 bytes, they take
// 20.)
const _: () = assert!(size_of::<Params>() <= 24);

impl Params {
    /// Returns the kind of table.
    #[must_use]
    pub fn table(&self) -> TableKind {
        self.table
    }

    /// Returns the length of a fingerprint in bits, f: 2 to 32.
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits.into()
    }

    /// Returns the number of slots in a bucket, b: 1 to 16.
    #[must_use]
    pub fn bucket_size(&self) -> u32 {
        self.bucket_size.into()
    }

    /// Returns the number of buckets in the table, m.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.buckets
    }

    /// Returns how an item's two buckets are computed.
    #[must_use]
    pub fn addressing(&self) -> Addressing {
        self.addressing
    }

    /// Returns the hasher's seed.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of slots in the table, m·b. A filter usually refuses items before all are occupied; see
    /// [`capacity`](Self::capacity).
    #[must_use]
    pub fn slots(&self) -> usize {
        index(self.buckets * u64::from(self.bucket_size))
    }

    /// Returns the length of the table in bytes: m·b·f bits in the single table, m·b·(f − 1) bits in the packed one, rounded up.
    #[inline]
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        index((self.buckets * u64::from(self.bucket_bits())).div_ceil(8))
    }

    pub(crate) fn bucket_bits(&self) -> u32 {
        self.table.bucket_bits(self.fingerprint_bits(), self.bucket_size())
    }

    /// Returns the number of distinct items that fit, except with a probability below 10⁻⁴; a few more usually do.
    ///
    /// It follows from measured loads, and with short fingerprints from a formula (docs/DESIGN.md, "Capacity").
    /// `tuning::safe_load` returns it as a share of the slots.
    #[must_use]
    pub fn capacity(&self) -> usize {
        index(fitting_items(self.addressing, self.bucket_size(), self.fingerprint_bits(), self.buckets))
    }

    /// Returns the expected false-positive rate ε at a load α = items/slots from 0 to 1: 1 − e^(−2bα/(2ᶠ − 1)).
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

    /// Returns the highest expected false-positive rate with [`capacity`](Self::capacity) distinct items and any number of copies:
    /// 2bα/(2ᶠ − 1), or 1 if that is more. Without copies, the rate is [slightly lower](Self::false_positive_rate_at)
    /// (docs/TUNING.md). A builder compares this rate with the requested one.
    #[must_use]
    pub fn false_positive_rate_at_capacity(&self) -> f64 {
        mean_matches(self.fingerprint_bits(), self.bucket_size(), self.capacity() as f64 / self.slots() as f64).min(1.0)
    }
}

impl Params {
    /// Returns the parameters if they are within all limits. Available memory is not checked.
    ///
    /// # Errors
    /// If a parameter is out of range. The error names the first one.
    pub(crate) fn new(
        table: TableKind,
        fingerprint_bits: u32,
        bucket_size: u32,
        buckets: u64,
        addressing: Addressing,
        seed: u64,
    ) -> Result<Self, ParamError> {
        let invalid_size = ParamError::BucketSize { given: bucket_size, table };
        let bucket_size = within(bucket_size, &table.bucket_sizes()).ok_or(invalid_size)?;
        let invalid_bits = ParamError::FingerprintBits { given: fingerprint_bits, table };
        let fingerprint_bits = within(fingerprint_bits, &table.fingerprint_bits()).ok_or(invalid_bits)?;
        let params = Self { buckets, seed, table, addressing, fingerprint_bits, bucket_size };
        if addressing.accepts(buckets) && params.fits() {
            return Ok(params);
        }
        Err(ParamError::Buckets { given: buckets, max: params.max_buckets(), addressing })
    }

    /// Returns true if the number of buckets is at most [`max_buckets`](Self::max_buckets). Unlike that method, it needs no
    /// division, so opening a view needs none.
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

    /// Returns these parameters with another number of buckets, or `None` if that number is out of range.
    pub(super) fn with_buckets(self, buckets: u64) -> Option<Self> {
        let Self { seed, table, addressing, .. } = self;
        Self::new(table, self.fingerprint_bits(), self.bucket_size(), buckets, addressing, seed).ok()
    }

    /// Returns the largest number of buckets that a table of this kind can have.
    pub(super) fn max_buckets(&self) -> u64 {
        // MAX_TABLE_BITS / bits, with divisions as wide as an address: on 32-bit machines, code for 64-bit divisions would be a
        // tenth of a small program.
        let (bytes, bits) = (index(MAX_TABLE_BITS / 8), self.bucket_bits() as usize);
        let in_bytes = 8 * wide(bytes / bits) + wide(8 * (bytes % bits) / bits);
        let most = in_bytes.min(wide(usize::MAX / usize::from(self.bucket_size)));
        match self.addressing {
            // With more buckets, a bucket's share of the 2⁶⁴ hashes would be too small for all fingerprints.
            Addressing::AnySize => most.min(1 << (64 - self.fingerprint_bits)) & !1,
            // The bucket is computed from the upper 32 bits of the hash, as in Go's library.
            Addressing::PowerOfTwo => 1 << most.ilog2().min(32),
        }
    }
}

/// Returns the value if it is within the limits.
fn within(value: u32, limits: &RangeInclusive<u32>) -> Option<u8> {
    u8::try_from(value).ok().filter(|_| limits.contains(&value))
}

/// Shows the parameters in one line.
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
