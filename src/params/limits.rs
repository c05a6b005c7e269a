//! Every limit of a filter's parameters, with its reason, and the one check against all of them.

use core::ops::RangeInclusive;

use super::{
    Addressing, ParamError, Parameter, Params, Request, TableKind,
    error::{Limit, Why},
};
use crate::bits::{PADDING, wide};

/// Slots of a bucket unless another number is asked for: the packed table's.
pub(crate) const DEFAULT_BUCKET_SIZE: u32 = 4;

/// Bits of the longest table: one allocation holds it, and the position of its last bit fits 64 bits.
const MAX_TABLE_BITS: u64 = {
    let allocation = wide(isize::MAX as usize) - wide(PADDING);
    8 * if allocation < u64::MAX / 8 { allocation } else { u64::MAX / 8 }
};

impl TableKind {
    /// The fingerprint lengths that the table takes, in bits: 2 to 32 in the single table, 4 to 32 in the packed one, whose
    /// codewords stand for four bits of each fingerprint.
    ///
    /// # Example
    /// ```
    /// assert_eq!(koel::TableKind::Packed.fingerprint_bits(), 4..=32);
    /// ```
    #[must_use]
    pub const fn fingerprint_bits(self) -> RangeInclusive<u32> {
        match self {
            Self::Single => 2..=32,
            Self::Packed => 4..=32,
        }
    }

    /// The bucket sizes that the table takes, in slots: 1 to 16 in the single table, 4 in the packed one, whose codewords
    /// stand for four slots.
    ///
    /// # Example
    /// ```
    /// assert_eq!(koel::TableKind::Single.bucket_sizes(), 1..=16);
    /// ```
    #[must_use]
    pub const fn bucket_sizes(self) -> RangeInclusive<u32> {
        match self {
            Self::Single => 1..=16,
            Self::Packed => 4..=4,
        }
    }
}

impl Addressing {
    /// The least number of buckets.
    pub(super) const fn fewest_buckets(self) -> u64 {
        match self {
            // A bucket and its alternate.
            Self::AnySize => 2,
            Self::PowerOfTwo => 1,
        }
    }

    /// Which numbers of buckets there can be, in words.
    pub(super) const fn rule(self) -> &'static str {
        match self {
            Self::AnySize => "even numbers",
            Self::PowerOfTwo => "powers of two",
        }
    }

    /// Whether this is a number of buckets, apart from their being too many.
    fn takes(self, buckets: u64) -> bool {
        match self {
            Self::AnySize => buckets >= self.fewest_buckets() && buckets.is_multiple_of(2),
            Self::PowerOfTwo => buckets.is_power_of_two(),
        }
    }
}

impl Params {
    /// The parameters, if they are within all limits but that of the memory at hand.
    ///
    /// # Errors
    /// If one is not. The error names the first of them. It plans nothing: a program that only reads filters has no code for that.
    pub(crate) fn new(
        table: TableKind,
        fingerprint_bits: u32,
        bucket_size: u32,
        buckets: u64,
        addressing: Addressing,
        seed: u64,
    ) -> Result<Self, ParamError> {
        Self::checked(table, fingerprint_bits, bucket_size, buckets, addressing, seed).map_err(|parameter| {
            let request = Request {
                table: Some(table),
                fingerprint_bits: Some(fingerprint_bits),
                bucket_size: Some(bucket_size),
                buckets: Some(buckets),
                addressing,
                ..Request::default()
            };
            let fewest = addressing.fewest_buckets();
            let limit = match Self::checked(table, fingerprint_bits, bucket_size, fewest, addressing, seed) {
                Ok(least) => Limit::Buckets(least.most_buckets()),
                Err(_) => Limit::OfRequest,
            };
            ParamError::of(parameter, Why::Fixed(request, limit))
        })
    }

    /// [`new`](Self::new) without the words: the error is the first parameter that is out of range.
    pub(super) fn checked(
        table: TableKind,
        fingerprint_bits: u32,
        bucket_size: u32,
        buckets: u64,
        addressing: Addressing,
        seed: u64,
    ) -> Result<Self, Parameter> {
        let bucket_size = within(bucket_size, &table.bucket_sizes()).ok_or(Parameter::BucketSize)?;
        let fingerprint_bits = within(fingerprint_bits, &table.fingerprint_bits()).ok_or(Parameter::FingerprintBits)?;
        let params = Self { buckets, seed, table, addressing, fingerprint_bits, bucket_size };
        let is_possible = addressing.takes(buckets) && buckets <= params.most_buckets();
        if is_possible { Ok(params) } else { Err(Parameter::Buckets) }
    }

    /// The same with another number of buckets, if there can be so many.
    pub(super) fn with_buckets(self, buckets: u64) -> Option<Self> {
        let Self { seed, table, addressing, .. } = self;
        Self::checked(table, self.fingerprint_bits(), self.bucket_size(), buckets, addressing, seed).ok()
    }

    /// The most buckets that a table of this kind can have.
    pub(super) fn most_buckets(&self) -> u64 {
        let in_bytes = MAX_TABLE_BITS / u64::from(self.bucket_bits());
        let most = in_bytes.min(wide(usize::MAX) / u64::from(self.bucket_size));
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
