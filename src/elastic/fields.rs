//! The parameters of a growing filter as they are written to a snapshot, and read from untrusted ones.

use super::{
    level::MOST_DEPTH,
    plan::{ElasticParams, MOST_LANES, MOST_STORED_BITS},
    stream::{QUARTER_DEPTH, Shares},
};
use crate::params::TableKind;

/// The most buckets of a shard: bucket numbers have 32 bits.
const MOST_BUCKETS: u32 = 1 << 31;

/// The most spare bits of a layer.
pub(super) const MOST_SPARE_BITS: u8 = 12;

/// All parameters, not validated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub(super) capacity: u64,
    pub(super) max_capacity: u64,
    pub(super) false_positive_rate: f64,
    pub(super) seed: u64,
    pub(super) buckets: u32,
    pub(super) low_bits: u8,
    pub(super) table: TableKind,
    pub(super) bucket_size: u8,
    pub(super) lane_bits: u8,
    pub(super) is_staggered: bool,
    pub(super) least_depth: u8,
    pub(super) most_depth: u8,
    pub(super) spare_bits: u8,
}

impl ElasticParams {
    pub(super) fn fields(&self) -> Fields {
        let Self { capacity, max_capacity, false_positive_rate, seed, buckets, low_bits, table, bucket_size, .. } = *self;
        let Self { shares, least_depth, most_depth, spare_bits, .. } = *self;
        let (lane_bits, is_staggered) = (shares.lane_bits(), shares.is_staggered());
        Fields {
            capacity,
            max_capacity,
            false_positive_rate,
            seed,
            buckets,
            low_bits,
            table,
            bucket_size,
            lane_bits,
            is_staggered,
            least_depth,
            most_depth,
            spare_bits,
        }
    }

    /// The parameters with these fields, or what is wrong with them.
    pub(super) fn from_fields(fields: &Fields) -> Result<Self, &'static str> {
        let Fields { capacity, max_capacity, false_positive_rate, seed, buckets, low_bits, table, bucket_size, .. } = *fields;
        let Fields { lane_bits, is_staggered, least_depth, most_depth, spare_bits, .. } = *fields;
        let lengths = table.fingerprint_bits();
        let is = |condition: bool, what| if condition { Ok(()) } else { Err(what) };
        is(false_positive_rate > 0.0 && false_positive_rate < 1.0, "the false-positive rate is not between 0 and 1")?;
        is(capacity <= max_capacity, "the capacity is more than the maximal one")?;
        is(lengths.contains(&low_bits.into()), "the table does not have fingerprints of this length")?;
        is(table.bucket_sizes().contains(&bucket_size.into()), "the table does not have buckets of this size")?;
        is(lane_bits < 16 && 1 << lane_bits <= MOST_LANES, "there are too many lanes")?;
        is(buckets >= 2 && buckets.is_multiple_of(2) && buckets <= MOST_BUCKETS, "the number of buckets is odd or out of range")?;
        let fewest = if is_staggered { QUARTER_DEPTH } else { 0 };
        is(fewest <= least_depth && least_depth <= most_depth && most_depth <= MOST_DEPTH, "the depths are out of range")?;
        is(low_bits + (most_depth - least_depth) <= MOST_STORED_BITS, "fingerprints have more than 32 bits")?;
        is(spare_bits <= MOST_SPARE_BITS, "there are too many spare bits")?;
        let bits = table.bucket_bits(MOST_STORED_BITS.into(), bucket_size.into());
        is(isize::try_from(u64::from(buckets) * u64::from(bits) / 8).is_ok(), "a shard is larger than the address space")?;
        let shares = Shares::new(lane_bits, is_staggered);
        Ok(Self {
            capacity,
            max_capacity,
            false_positive_rate,
            seed,
            buckets,
            low_bits,
            table,
            bucket_size,
            shares,
            least_depth,
            most_depth,
            spare_bits,
        })
    }
}
