//! What a filter is made of, validated: the only place where limits live.

mod formulas;
mod kind;
mod max_load;
mod sizing;

use alloc::{format, string::ToString};
use core::ops::RangeInclusive;

use crate::bits::{PADDING, index, wide};
pub(crate) use crate::error::{ParamError, Parameter};
pub(crate) use formulas::false_positive_rate;
pub use kind::{Addressing, TableKind};
pub(crate) use max_load::safe_load;
pub(crate) use sizing::Request;

/// The parameters of a filter: what two filters must share to be merged, and what a snapshot's header holds.
///
/// Made by [`Builder::params`](crate::Builder::params), which allocates no table, and by every filter
/// ([`CuckooFilter::params`](crate::CuckooFilter::params)).
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
    table: TableKind,
    fingerprint_bits: u8,
    bucket_size: u8,
    buckets: u64,
    addressing: Addressing,
    seed: u64,
}

/// Slots in a bucket when nobody says otherwise: the packed table's.
pub(crate) const DEFAULT_BUCKET_SIZE: u32 = 4;

/// The longest table: one allocation holds it, and the position of its last bit fits 64 bits.
pub(crate) const MAX_TABLE_BYTES: u64 = {
    let allocation = wide(isize::MAX as usize) - wide(PADDING);
    if allocation < u64::MAX / 8 { allocation } else { u64::MAX / 8 }
};

impl Params {
    /// Checks everything but the memory at hand.
    pub(crate) fn new(
        table: TableKind,
        fingerprint_bits: u32,
        bucket_size: u32,
        buckets: u64,
        addressing: Addressing,
        seed: u64,
    ) -> Result<Self, ParamError> {
        check_range(Parameter::BucketSize, bucket_size, table.bucket_sizes(), table)?;
        check_range(Parameter::FingerprintBits, fingerprint_bits, table.fingerprint_bits(), table)?;
        let params =
            Self { table, fingerprint_bits: fingerprint_bits as u8, bucket_size: bucket_size as u8, buckets, addressing, seed };
        params.check_buckets()?;
        Ok(params)
    }

    fn check_buckets(&self) -> Result<(), ParamError> {
        let (buckets, largest) = (self.buckets, self.most_buckets());
        let (works, limit, nearest) = match self.addressing {
            Addressing::AnySize => (
                buckets >= 2 && buckets.is_multiple_of(2),
                "addressing of any size takes an even number from 2",
                buckets.saturating_add(buckets % 2).clamp(2, largest),
            ),
            Addressing::PowerOfTwo => (
                buckets.is_power_of_two(),
                "addressing by powers of two takes one from 1",
                buckets.min(largest).next_power_of_two(),
            ),
        };
        if works && buckets <= largest {
            return Ok(());
        }
        Err(ParamError {
            parameter: Parameter::Buckets,
            given: buckets.to_string(),
            limit: format!("{limit} to {largest}"),
            remedy: format!("the nearest that works is {nearest}"),
        })
    }

    /// The most buckets of this kind that a machine can address.
    pub(crate) fn most_buckets(&self) -> u64 {
        let in_bytes = u128::from(MAX_TABLE_BYTES) * 8 / u128::from(self.bucket_bits());
        let in_slots = wide(usize::MAX) / u64::from(self.bucket_size);
        let most = u64::try_from(in_bytes).map_or(in_slots, |in_bytes| in_bytes.min(in_slots));
        match self.addressing {
            // Beyond these, a bucket's share of the 2⁶⁴ hashes is too small to have all the fingerprints in it.
            Addressing::AnySize => most.min(1 << (64 - self.fingerprint_bits)) & !1,
            // The index is drawn from the hash's upper 32 bits, as Go does it.
            Addressing::PowerOfTwo => 1 << most.ilog2().min(32),
        }
    }

    /// The same, with another number of buckets.
    pub(crate) fn with_buckets(&self, buckets: u64) -> Result<Self, ParamError> {
        Self::new(self.table, self.fingerprint_bits(), self.bucket_size(), buckets, self.addressing, self.seed)
    }

    pub(crate) fn bucket_bits(&self) -> u32 {
        self.table.bucket_bits(self.fingerprint_bits.into(), self.bucket_size.into())
    }

    /// How fingerprints are stored.
    #[must_use]
    pub fn table(&self) -> TableKind {
        self.table
    }

    /// Length of a fingerprint, f, in bits.
    #[must_use]
    pub fn fingerprint_bits(&self) -> u32 {
        self.fingerprint_bits.into()
    }

    /// Slots in a bucket, b.
    #[must_use]
    pub fn bucket_size(&self) -> u32 {
        self.bucket_size.into()
    }

    /// Buckets in the table, m.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.buckets
    }

    /// How an item's buckets are found.
    #[must_use]
    pub fn addressing(&self) -> Addressing {
        self.addressing
    }

    /// What the hasher is seeded with.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Slots in the table, m·b. Hardly ever can all be taken: see [`capacity`](Self::capacity).
    #[must_use]
    pub fn slots(&self) -> usize {
        index(self.buckets * u64::from(self.bucket_size))
    }

    /// Bytes of the table, ⌈m·(bits of a bucket)/8⌉.
    #[must_use]
    pub fn table_bytes(&self) -> usize {
        self.table_bytes_of(self.buckets)
    }

    /// Bytes of a table like this one with so many buckets, or as many as a `usize` can say.
    pub(crate) fn table_bytes_of(&self, buckets: u64) -> usize {
        let bits = u128::from(buckets) * u128::from(self.bucket_bits());
        usize::try_from(bits.div_ceil(8)).unwrap_or(usize::MAX)
    }

    /// How many different items surely fit: the chance that fewer do is below 10⁻⁴, by measurement
    /// (`tables/max_load.tsv`). A few more usually do.
    #[must_use]
    pub fn capacity(&self) -> usize {
        let load = safe_load(self.addressing, self.bucket_size(), self.fingerprint_bits(), self.buckets);
        index(load.of(wide(self.slots())))
    }

    /// The false-positive rate ε to expect at `load` = items/slots: 1 − e^(−2bα/(2ᶠ − 1)).
    ///
    /// The paper's bound (section 5.1) is 2b/2ᶠ; docs/TUNING.md has what was measured. Meaningful for loads from 0 to 1.
    #[must_use]
    pub fn false_positive_rate_at(&self, load: f64) -> f64 {
        false_positive_rate(self.fingerprint_bits.into(), self.bucket_size.into(), load)
    }

    /// The false-positive rate to expect when [`capacity`](Self::capacity) items are in: what a builder's rate is compared with.
    #[must_use]
    pub fn false_positive_rate_at_capacity(&self) -> f64 {
        self.false_positive_rate_at(self.capacity() as f64 / self.slots() as f64)
    }
}

fn check_range(parameter: Parameter, given: u32, limits: RangeInclusive<u32>, table: TableKind) -> Result<(), ParamError> {
    if limits.contains(&given) {
        return Ok(());
    }
    let (least, most) = limits.into_inner();
    let limit = if least == most {
        format!("the {table} table takes {least}")
    } else {
        format!("the {table} table takes {least} to {most}")
    };
    let remedy = format!("the nearest that works is {}", given.clamp(least, most));
    Err(ParamError { parameter, given: given.to_string(), limit, remedy })
}

impl core::fmt::Display for Params {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} table", self.table)
    }
}

impl Params {
    /// Length of a snapshot.
    #[must_use]
    pub fn snapshot_bytes(&self) -> u64 {
        crate::snapshot::snapshot_bytes(self)
    }
}
