//! The limits of a growing filter's parameters, for those that are read from untrusted bytes.

use super::{
    level::MOST_DEPTH,
    plan::{ElasticParams, MOST_LANES, MOST_STORED_BITS},
    stream::QUARTER_DEPTH,
};

/// The most buckets of a shard: bucket numbers have 32 bits.
const MOST_BUCKETS: u32 = 1 << 31;

/// The most spare bits of a layer.
pub(super) const MOST_SPARE_BITS: u8 = 12;

impl ElasticParams {
    /// The same parameters, or what is wrong with them.
    pub(super) fn checked(self) -> Result<Self, &'static str> {
        let Self { false_positive_rate: rate, buckets, low_bits, table, bucket_size, .. } = self;
        let Self { shares, least_depth, most_depth, spare_bits, .. } = self;
        let is = |condition: bool, what| if condition { Ok(()) } else { Err(what) };
        is(rate > 0.0 && rate < 1.0, "the false-positive rate is not between 0 and 1")?;
        is(self.capacity <= self.max_capacity, "the capacity is more than the maximal one")?;
        is(table.fingerprint_bits().contains(&low_bits.into()), "the table does not have fingerprints of this length")?;
        is(table.bucket_sizes().contains(&bucket_size.into()), "the table does not have buckets of this size")?;
        is(shares.lane_bits() < 16 && 1 << shares.lane_bits() <= MOST_LANES, "there are too many lanes")?;
        is(buckets >= 2 && buckets.is_multiple_of(2) && buckets <= MOST_BUCKETS, "the number of buckets is odd or out of range")?;
        let fewest = if shares.is_staggered() { QUARTER_DEPTH } else { 0 };
        is(fewest <= least_depth && least_depth <= most_depth && most_depth <= MOST_DEPTH, "the depths are out of range")?;
        is(low_bits + (most_depth - least_depth) <= MOST_STORED_BITS, "fingerprints have more than 32 bits")?;
        is(spare_bits <= MOST_SPARE_BITS, "there are too many spare bits")?;
        let bits = table.bucket_bits(MOST_STORED_BITS.into(), bucket_size.into());
        is(isize::try_from(u64::from(buckets) * u64::from(bits) / 8).is_ok(), "a shard is larger than the address space")?;
        Ok(self)
    }
}
