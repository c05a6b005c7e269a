//! What a growing filter is planned as: from a request to the sizes of its partitions, shards and fingerprints. docs/GROWTH.md has
//! the arithmetic.

use core::iter;

use super::{
    shard::{Key, ShardParams},
    stream::Shares,
};
use crate::{
    bits::{in_memory, index},
    params::{Addressing, DEFAULT_BUCKET_SIZE, ParamError, TableKind, mean_matches, safe_load},
    table::{
        AnySize, TableParams as _,
        copies::{self, ClassKeys},
    },
};

/// The longest fingerprint that a table stores.
pub(crate) const MOST_STORED_BITS: u8 = 32;

/// Slots of a shard in a filter that grows, or fewer: so few that a split takes microseconds and a few items little memory. More, if
/// there would be too many shards.
const GROWING_SHARD: u64 = 1 << 10;

/// The most bits of a stream that lead to a shard.
pub(crate) const MOST_DEPTH: u8 = 27;

/// Slots of a shard in a filter that is planned for its final size: so many that the numbers of items in its shards differ
/// little, and so few that a shard fits into a core's cache.
const FINAL_SHARD: u64 = 1 << 18;

/// The most generations of a partition: a snapshot has a byte for the number of a generation.
const MOST_GENERATIONS: usize = 256;

/// The most partitions.
pub(crate) const MOST_PARTITIONS: usize = 256;

/// Partitions of a shared filter by default: so many that threads of a large machine seldom wait for each other.
#[cfg(feature = "std")]
pub(crate) const SHARED_PARTITIONS: usize = 64;

/// If there are several partitions, each is planned for this many items at least: very small shards would take more space.
const FEWEST_IN_PARTITION: u64 = 2000;

/// Fewer, if a partition is planned for so few items that it would have fewer shards than this at last, but at least this many
/// buckets: those of smaller tables get full too soon.
const FEWEST_SHARDS: u64 = 4;
const FEWEST_GROWING_BUCKETS: u64 = 32;

/// A partition that grows begins without shards if they would be 2³ at most: so few are allocated and filled in microseconds.
const FEW_SHARDS: u8 = 3;

/// How many items a partition without shards has at most: with so many, they take less memory than tables, but lookups and
/// insertions several times as long. Fewer, if there are several partitions: a filter of ten thousand items and more is made for
/// speed.
const MOST_FEW: usize = 1 << 10;
const MOST_FEW_IN_PARTITION: usize = 1 << 8;

/// The fewest buckets of a shard.
const FEWEST_BUCKETS: u64 = 8;

/// By default, a filter may grow to this many times its capacity, and at least to this many items.
const DEFAULT_GROWTH: u64 = 1000;
const LEAST_MAX_CAPACITY: u64 = 16_000_000;

/// How many times a later generation doubles beyond the greatest size of the generation before, at most. A bit for each doubling is
/// in every item while the generation is small, and each further generation costs a lookup two buckets: docs/GROWTH.md has the
/// figures.
const MOST_DOUBLINGS: u8 = 4;

/// This many times the planned number of items hardly ever look like copies of each other, and at least this many items.
const TOLD_APART: u64 = 32;
const FEWEST_TOLD_APART: u64 = 1 << 16;

/// A partition is planned for this many items at most: with shards of at most [`FINAL_SHARD`] slots, [`MOST_DEPTH`] bits lead to as
/// many.
const MOST_IN_PARTITION: u64 = 1 << 44;

/// The longest low fingerprints that leave bits for [`FEWEST_DOUBLINGS_BEYOND`].
const LONGEST_LOW_BITS: u32 = 28;

/// A filter can double this many times beyond its maximal capacity, at least: further generations have bits to spare for that, and
/// keep the rate. A lower rate, for which they would not, is refused.
const FEWEST_DOUBLINGS_BEYOND: u8 = 10;

/// A later generation that can grow further than this begins at an eighth of the greatest size of the generation before.
const LEAST_GROWTH: u8 = 5;
const DOUBLINGS_SMALLER: u8 = 3;

/// The most buckets of a shard: bucket numbers have 32 bits.
const MOST_BUCKETS: u32 = 1 << 31;

/// The most spare bits of a generation.
const MOST_SPARE_BITS: u8 = 12;

/// What a builder was told; `None` for what it was not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ElasticRequest {
    pub(crate) capacity: Option<u64>,
    pub(crate) max_capacity: Option<u64>,
    pub(crate) false_positive_rate: Option<f64>,
    pub(crate) table: Option<TableKind>,
    pub(crate) bucket_size: Option<u32>,
    pub(crate) seed: u64,
    pub(crate) partitions: Option<usize>,
}

/// The parameters of a growing filter: what two of them must share to be merged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElasticParams {
    pub(crate) capacity: u64,
    pub(crate) max_capacity: u64,
    pub(crate) false_positive_rate: f64,
    pub(crate) seed: u64,
    /// Buckets of a shard.
    pub(crate) buckets: u32,
    /// The length of the low fingerprint.
    pub(crate) low_bits: u8,
    pub(crate) table: TableKind,
    pub(crate) bucket_size: u8,
    pub(crate) shares: Shares,
    /// The depth of the shards at the beginning, and when the first generation has used up its upper bits.
    pub(crate) least_depth: u8,
    pub(crate) most_depth: u8,
    /// Upper bits that the second generation keeps, so that its rate fits into what the first one leaves of the promised rate.
    pub(crate) spare_bits: u8,
}

impl ElasticRequest {
    /// The parameters of a filter that does what was asked for.
    ///
    /// # Errors
    /// The first parameter that has to change.
    pub(crate) fn params(&self) -> Result<ElasticParams, ParamError> {
        let table = self.table.unwrap_or(match self.bucket_size {
            None | Some(DEFAULT_BUCKET_SIZE) => TableKind::Packed,
            Some(_) => TableKind::Single,
        });
        let b = self.bucket_size.unwrap_or(DEFAULT_BUCKET_SIZE);
        let bucket_size = u8::try_from(b).ok().filter(|_| table.bucket_sizes().contains(&b));
        let bucket_size = bucket_size.ok_or(ParamError::BucketSize { given: b, table })?;
        let partitions = self.partitions.unwrap_or(1);
        if !partitions.is_power_of_two() || partitions > MOST_PARTITIONS {
            return Err(ParamError::Partitions { given: partitions });
        }
        #[expect(clippy::cast_possible_truncation, reason = "eight at most")]
        let partition_bits = partitions.trailing_zeros() as u8;
        let most = most_items(b, partition_bits);
        let max_capacity = self.max_capacity.unwrap_or_else(|| {
            let default = self.capacity.map_or(0, |items| items.saturating_mul(DEFAULT_GROWTH));
            default.max(LEAST_MAX_CAPACITY).min(most)
        });
        let too_large = ParamError::MaxCapacity { given: in_memory(max_capacity), most: in_memory(most) };
        if max_capacity > most {
            return Err(too_large);
        }
        let capacity = self.capacity.unwrap_or(0);
        if max_capacity < capacity {
            return Err(ParamError::Capacity { given: in_memory(capacity), most: in_memory(max_capacity) });
        }
        let rate = self.false_positive_rate.ok_or(ParamError::NoRate)?;
        let mut lowest = f64::INFINITY;
        let mut suffices = |&f: &u32| {
            lowest = lowest.min(lowest_rate(f, b, max_capacity));
            lowest <= rate && rate < 1.0
        };
        let f = table.fingerprint_bits().find(&mut suffices);
        let f = f.ok_or(ParamError::FalsePositiveRate { given: rate, lowest })?;
        #[expect(clippy::cast_possible_truncation, reason = "32 at most")]
        let low_bits = f as u8;
        let is_final = max_capacity / 2 < capacity;
        let in_partition = |items: u64| items.max(1).div_ceil(1 << partition_bits);
        let most_in_partition = in_partition(max_capacity).max(if partitions > 1 { FEWEST_IN_PARTITION } else { 1 });
        // Without room to grow, tables are those for all items from the beginning.
        let items = if is_final { most_in_partition } else { in_partition(capacity) };
        let shares = Shares::new(partition_bits, !is_final);
        let (buckets, mut least_depth, most_depth) = if is_final {
            let depth = (0..=MOST_DEPTH).find(|&depth| shares.largest(items, depth) <= FINAL_SHARD / 32 * 31);
            let depth = depth.ok_or(too_large)?;
            (buckets_for(shares.largest(items, depth), b, f).ok_or(too_large)?, depth, depth)
        } else {
            let shard = GROWING_SHARD.min(most_in_partition / FEWEST_SHARDS).max(FEWEST_GROWING_BUCKETS * u64::from(b));
            let mut sizes = iter::successors(Some(shard), |slots| Some(slots * 2)).take_while(|&slots| slots <= FINAL_SHARD);
            sizes.find_map(|slots| growing_shards(shares, [items, most_in_partition], slots, b, f)).ok_or(too_large)?
        };
        // A table stores fingerprints of 32 bits at most. A filter with long ones begins larger.
        least_depth = least_depth.max(most_depth.saturating_sub(most_upper_bits(low_bits)));
        let spare_bits = spare_bits(rate, matches_when_full(f, b, max_capacity));
        Ok(ElasticParams {
            capacity,
            max_capacity,
            false_positive_rate: rate,
            seed: self.seed,
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

/// The buckets of shards of this many slots at most, and the depths at which they have room for the fewest and for the most items.
fn growing_shards(shares: Shares, [items, most_items]: [u64; 2], slots: u64, b: u32, f: u32) -> Option<(u32, u8, u8)> {
    let full = slots / (2 * u64::from(b)) * 2;
    let first = |depth| buckets_for(shares.largest(items, depth), b, f).map_or(u64::MAX, u64::from);
    let has_room = |buckets, depth| planned_items(buckets, b, f) >= shares.largest(most_items, depth);
    let least_depth = (0..=MOST_DEPTH).find(|&depth| first(depth) <= full)?;
    // No more buckets than it takes: for the fewest items, if these have several shards; otherwise for the most.
    let mut buckets = if least_depth > 0 { first(least_depth) } else { full };
    let most_depth = (least_depth..=MOST_DEPTH).find(|&depth| has_room(buckets, depth))?;
    let (mut pairs, mut enough) = (first(least_depth).div_ceil(2), buckets.div_ceil(2));
    while pairs < enough {
        let middle = pairs.midpoint(enough);
        (pairs, enough) = if has_room(2 * middle, most_depth) { (pairs, middle) } else { (middle + 1, enough) };
    }
    buckets = 2 * enough;
    Some((u32::try_from(buckets).ok()?, least_depth, most_depth))
}

/// Up to this many items, a filter may consist of a table or two.
const FEW: u64 = 1 << 12;

/// The number of matches that an absent item has on average, in tables for `items` items that are as full as they get on average:
/// for each bit more of a fingerprint, half of it, and at least the false-positive rate. A few small tables may happen to get
/// full.
fn matches_when_full(f: u32, b: u32, items: u64) -> f64 {
    let load = match b {
        _ if items < FEW => 1.0,
        1 => 0.5,
        2 => 0.9,
        3 => 0.96,
        4 => 0.98,
        _ => 1.0,
    };
    mean_matches(f, b, load)
}

/// The lowest false-positive rate of a filter for `items` items with low fingerprints of `f` bits; infinite if they are too short to
/// tell the items apart, or too long for further generations. docs/GROWTH.md derives it.
fn lowest_rate(f: u32, b: u32, items: u64) -> f64 {
    let matches = matches_when_full(f, b, items);
    // Which the rate is at most, whatever copies there are.
    let first = matches.min(1.0);
    let needed = items.saturating_mul(TOLD_APART).max(FEWEST_TOLD_APART) as f64;
    match most_spare_bits(f) {
        // `spare_bits` halves what the first generation leaves, but for rounding.
        Some(spare) if needed < told_apart(f, b) => {
            let second = matches / (1_u64 << spare) as f64;
            (33.0 / 32.0 * first).max((first + 2.0 * second) * (1.0 + 1e-9))
        }
        _ => f64::INFINITY,
    }
}

/// The number of items among which it is improbable (less than 10⁻⁴) that there are more than 2b with the same fingerprint and
/// buckets. There is room for 2b of them: a further one would be counted as if it were a copy. The items are spread over the
/// combinations of buckets and fingerprint like balls over bins, λ in each: n·λ²ᵇ / (2b + 1)! of them, or so, are the one too
/// many.
fn told_apart(f: u32, b: u32) -> f64 {
    let mean = f64::from(2 * b) / f64::from(u32::MAX >> (32 - f));
    (1..=2 * b).fold(1e-4, |items, n| items / mean * f64::from(n + 1))
}

/// The largest maximal capacity: shards of the greatest depth have room for so many items, and the longest fingerprints that leave
/// bits for further generations tell them apart.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn most_items(b: u32, partition_bits: u8) -> u64 {
    let told_apart = told_apart(LONGEST_LOW_BITS, b) / TOLD_APART as f64;
    (MOST_IN_PARTITION << partition_bits).min((told_apart * (1.0 - 1e-9)) as u64)
}

/// The most bits that the second generation may add to low fingerprints of `f` bits, so that further generations, each with one
/// more, still double [`FEWEST_DOUBLINGS_BEYOND`] times. (As [`ElasticParams::generation`] plans them.)
fn most_spare_bits(f: u32) -> Option<u8> {
    #[expect(clippy::cast_possible_truncation, reason = "32 at most")]
    let left = most_upper_bits(f as u8);
    let mut doublings = 0;
    let spare = (0..=left).rev().find(|spare| {
        doublings += generation_doublings(left - spare);
        doublings >= FEWEST_DOUBLINGS_BEYOND
    });
    spare.map(|spare| spare.min(MOST_SPARE_BITS))
}

/// How many times larger than the one before, as log₂, a generation gets that has this many bits to give up.
fn generation_doublings(growth: u8) -> u8 {
    let begins_smaller = if growth > LEAST_GROWTH { DOUBLINGS_SMALLER } else { 0 };
    (growth - begins_smaller).min(MOST_DOUBLINGS)
}

/// Upper bits that reduce the rate of a second generation to half of what the first one leaves, if that has this many matches when
/// it is full.
fn spare_bits(rate: f64, matches: f64) -> u8 {
    let (mut bits, mut second) = (0, matches);
    while second > (rate - matches) / 2.0 && bits < MOST_SPARE_BITS {
        (bits, second) = (bits + 1, second / 2.0);
    }
    bits
}

/// The number of items that fit into a shard.
#[inline(never)]
fn fit(buckets: u64, b: u32, f: u32) -> u64 {
    safe_load(Addressing::AnySize, b, f, buckets).of(buckets * u64::from(b))
}

/// Items that a shard is planned for, fewer than fit: the numbers of items in the shards vary.
fn planned_items(buckets: u64, b: u32, f: u32) -> u64 {
    let fit = fit(buckets, b, f);
    fit.saturating_sub(5 * fit.isqrt()).max(fit / 2)
}

/// The fewest buckets of a shard that takes this many items on average.
#[inline(never)]
fn buckets_for(items: u64, b: u32, f: u32) -> Option<u32> {
    let most = items + 6 * items.isqrt();
    let mut buckets = most.div_ceil(b.into()).next_multiple_of(2).max(FEWEST_BUCKETS);
    while fit(buckets, b, f) < most {
        buckets += (buckets / 128).next_multiple_of(2).max(2);
    }
    u32::try_from(buckets).ok()
}

impl ElasticParams {
    /// The number of partitions.
    #[must_use]
    pub fn partitions(&self) -> usize {
        1 << self.shares.partition_bits()
    }

    #[inline]
    pub(crate) fn shares(&self) -> Shares {
        self.shares
    }

    /// A maximal capacity for this many items. `None` if no filter has room for them.
    pub(crate) fn sufficient_capacity(&self, items: u64) -> Option<u64> {
        let capacity = items.max(self.max_capacity);
        let request = ElasticRequest {
            capacity: Some(capacity),
            max_capacity: Some(capacity),
            false_positive_rate: Some(self.false_positive_rate),
            table: Some(self.table),
            bucket_size: Some(self.bucket_size.into()),
            seed: self.seed,
            partitions: Some(self.partitions()),
        };
        request.params().ok().map(|_| capacity)
    }

    /// Where the low fingerprints go, in all shards: as in tables of this many buckets and bits.
    #[inline]
    pub(crate) fn address(&self) -> AnySize {
        AnySize { buckets: self.buckets.into(), fingerprint_bits: self.low_bits.into() }
    }

    /// The number of generations that a partition may have, 256 at most: further ones would have no bits to spare for the rate.
    pub(crate) fn most_generations(&self) -> usize {
        match most_upper_bits(self.low_bits).checked_sub(self.spare_bits) {
            None => 1,
            Some(more) if more >= MOST_SPARE_BITS => MOST_GENERATIONS,
            Some(more) => 2 + usize::from(more),
        }
    }

    /// The generation of a partition with this number.
    pub(crate) fn generation(&self, number: u8) -> GenerationPlan {
        let (mut least_depth, mut most_depth, mut spare_bits) = (self.least_depth, self.most_depth, 0);
        let most_upper_bits = most_upper_bits(self.low_bits);
        for before in 0..number {
            spare_bits = (self.spare_bits + before.min(MOST_SPARE_BITS)).min(most_upper_bits);
            let growth = most_upper_bits - spare_bits;
            let largest = (most_depth + MOST_DOUBLINGS).min(MOST_DEPTH);
            let smaller = if growth > LEAST_GROWTH { DOUBLINGS_SMALLER } else { 0 };
            least_depth = most_depth.saturating_sub(smaller);
            most_depth = (least_depth + growth).min(largest).max(least_depth);
        }
        let upper_bits = most_depth + spare_bits;
        let Self { buckets, low_bits, table, bucket_size, shares, .. } = *self;
        let whole = ShardParams { buckets, low_bits, upper_bits, spare_bits, depth: 0, table, bucket_size };
        GenerationPlan { number, whole, least_depth, most_depth, shares }
    }
}

/// Parameters that are read from untrusted bytes.
impl ElasticParams {
    /// The same parameters, or what is wrong with them.
    pub(crate) fn checked(self) -> Result<Self, &'static str> {
        let Self { false_positive_rate: rate, buckets, low_bits, table, bucket_size, .. } = self;
        let Self { shares, least_depth, most_depth, spare_bits, .. } = self;
        let is = |condition: bool, what| if condition { Ok(()) } else { Err(what) };
        is(rate > 0.0 && rate < 1.0, "the false-positive rate is not between 0 and 1")?;
        is(self.capacity <= self.max_capacity, "the capacity is more than the maximal one")?;
        is(table.fingerprint_bits().contains(&low_bits.into()), "the table does not have fingerprints of this length")?;
        is(table.bucket_sizes().contains(&bucket_size.into()), "the table does not have buckets of this size")?;
        is(shares.partition_bits() < 16 && 1 << shares.partition_bits() <= MOST_PARTITIONS, "there are too many partitions")?;
        is(buckets >= 2 && buckets.is_multiple_of(2) && buckets <= MOST_BUCKETS, "the number of buckets is odd or out of range")?;
        is(least_depth <= most_depth && most_depth <= MOST_DEPTH, "the depths are out of range")?;
        is(low_bits + (most_depth - least_depth) <= MOST_STORED_BITS, "fingerprints have more than 32 bits")?;
        is(spare_bits <= MOST_SPARE_BITS, "there are too many spare bits")?;
        let bits = table.bucket_bits(MOST_STORED_BITS.into(), bucket_size.into());
        is(isize::try_from(u64::from(buckets) * u64::from(bits) / 8).is_ok(), "a shard is larger than the address space")?;
        Ok(self)
    }
}

/// Upper bits that a table can store above a low fingerprint.
fn most_upper_bits(low_bits: u8) -> u8 {
    MOST_STORED_BITS - low_bits
}

/// What a generation is planned as.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GenerationPlan {
    /// Its number among the plans of its partition. Generations of higher numbers know more bits of each item.
    pub number: u8,
    /// The parameters of a shard of depth 0.
    pub whole: ShardParams,
    /// Shards of this depth are not joined, and those of the other are not split.
    pub least_depth: u8,
    pub most_depth: u8,
    pub shares: Shares,
}

impl GenerationPlan {
    pub fn shard(&self, depth: u8) -> ShardParams {
        ShardParams { upper_bits: self.whole.upper_bits - depth, depth, ..self.whole }
    }

    /// What stands for its items where their copies are counted: the smaller of an item's two buckets, the low fingerprint, and all bits of
    /// the stream that the generation knows. No split and no join changes them.
    ///
    /// The parameters allow for keys of 90 bits: those of bucket numbers have 31 at most, and low fingerprints with the known bits 59,
    /// since a shard stores no more than 32, of which the least depth, at most 27, is not stored. A snapshot has room for 88 bits.
    /// A generation with longer ones would begin with 2⁵⁶ buckets, more than any machine can address.
    pub fn keys(&self) -> ClassKeys {
        ClassKeys::new(self.whole.buckets.into(), u32::from(self.whole.low_bits) + u32::from(self.whole.upper_bits))
    }

    /// What stands for an item there.
    pub fn key_of(&self, item: Key) -> copies::ClassKey {
        self.keys().key(item.buckets, item.known(&self.whole))
    }

    /// The item for which a key stands; none if that is nothing.
    pub fn listed(&self, key: copies::ClassKey) -> Option<Key> {
        let keys = self.keys();
        let (bucket, known) = keys.parts(key);
        // A key has the smaller bucket.
        Key::of_known(&self.whole, bucket, known).filter(|item| keys.has(key) && item.buckets.1 >= bucket)
    }

    /// Whether a partition has no shards while it has few items, since it begins with few and grows.
    pub fn begins_unused(&self) -> bool {
        self.least_depth <= FEW_SHARDS && self.least_depth < self.most_depth
    }

    /// How many items such a partition takes without shards: so many that the shards that it gets then are well filled.
    pub fn most_few(&self) -> usize {
        // Tables of buckets with one slot are full at half of their slots.
        let fit = self.whole.slots() / if self.whole.bucket_size == 1 { 2 } else { 1 };
        let most = if self.shares.partition_bits() == 0 { MOST_FEW } else { MOST_FEW_IN_PARTITION };
        // A third more than fit into the first shards, which are split then.
        most.min((fit / 3 * 4) << self.least_depth.min(FEW_SHARDS)).max(1)
    }

    /// The highest false-positive rate of a partition without shards that has this many items. An absent item is found if its low
    /// fingerprint, its buckets and the known bits of its stream are those of one that is there. In a staggered partition, some
    /// values of these bits are an eighth more frequent than the mean.
    pub fn rate_of_few(&self, items: usize) -> f64 {
        let matches =
            mean_matches(self.whole.low_bits.into(), self.whole.bucket_size(), items as f64 / self.whole.slots() as f64);
        (9.0 / 8.0 * matches / (1_u64 << self.whole.upper_bits) as f64).min(1.0)
    }

    /// The number of items that fit into a shard, whatever they are.
    pub(crate) fn items_that_fit(&self) -> usize {
        index(fit(self.whole.buckets.into(), self.whole.bucket_size.into(), self.whole.low_bits.into()))
    }

    /// The share of a partition's hashes that lead to a shard.
    pub(crate) fn share(&self, depth: u8, prefix: u32) -> f64 {
        self.shares.of_prefix(prefix.into(), depth.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rates of all generations, each at its greatest depth, add up to no more than what was promised.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn generations_beyond_the_range_keep_the_rate() {
        for rate in [0.1, 0.03, 0.01, 0.001, 0.000_7, 1e-4] {
            for b in [1, 2, 4, 8] {
                let request =
                    ElasticRequest { false_positive_rate: Some(rate), bucket_size: Some(b), ..ElasticRequest::default() };
                let params = request.params().unwrap();
                let full = |number| {
                    let GenerationPlan { whole, most_depth, .. } = params.generation(number);
                    matches_when_full(params.low_bits.into(), b, LEAST_MAX_CAPACITY)
                        / (1_u64 << (whole.upper_bits - most_depth)) as f64
                };
                let sum: f64 = (0..6).map(full).sum();
                assert!(sum <= rate, "{sum} for {rate}, buckets of {b}");
                let tells_apart = |f| told_apart(f, b) > (TOLD_APART * LEAST_MAX_CAPACITY) as f64;
                let is_needed = !tells_apart(u32::from(params.low_bits) - 1);
                assert!(full(0) > rate / 4.0 || is_needed, "fingerprints are no longer than they must be");
                assert!(tells_apart(params.low_bits.into()));
            }
        }
    }

    /// Whether fingerprints of `f` bits keep a rate, as the plan of the generations says.
    fn keeps(f: u32, b: u32, items: u64, rate: f64) -> bool {
        let matches = matches_when_full(f, b, items);
        let (spare, left) = (spare_bits(rate, matches), most_upper_bits(f as u8));
        let doublings: u8 = (spare..=left).map(|spare| generation_doublings(left - spare)).sum();
        let told_apart = told_apart(f, b) > (items * TOLD_APART).max(FEWEST_TOLD_APART) as f64;
        33.0 / 32.0 * matches <= rate && doublings >= FEWEST_DOUBLINGS_BEYOND && told_apart
    }

    /// The formula of the lowest rate agrees with the plan of the generations: fingerprints keep that rate, but none that is lower.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn the_lowest_rate_is_the_lowest_that_generations_keep() {
        let mut possible = 0;
        for b in 1..=16 {
            for items in [0, 100, FEW, 1_000_000, 1_000_000_000, 1_000_000_000_000] {
                for f in 2..=32 {
                    let lowest = lowest_rate(f, b, items);
                    if lowest < 1.0 {
                        assert!(keeps(f, b, items, lowest), "{f} bits, buckets of {b}, {items} items: {lowest:e}");
                        possible += 1;
                    }
                    for lower in [0.999, 0.9, 0.5, 0.1].map(|share| share * lowest.min(1.0)) {
                        assert!(!keeps(f, b, items, lower), "{f} bits, buckets of {b}, {items} items: {lowest:e} {lower:e}");
                    }
                }
            }
        }
        assert!(possible > 1000, "{possible}");
        // With longer fingerprints, no rate is kept.
        assert!(most_spare_bits(LONGEST_LOW_BITS).is_some());
        assert!((LONGEST_LOW_BITS + 1..=32).all(|f| most_spare_bits(f).is_none()));
    }

    /// Up to 0.8 · 10¹² items, planned and growing, without the memory for them.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    #[cfg(target_pointer_width = "64")]
    fn plans_go_beyond_32_bits() {
        use super::super::stream::Window;
        use crate::{
            hash::split_mix,
            table::{TableParams as _, Uniform},
        };

        for items in [5_000_000_000, 100_000_000_000, 800_000_000_000] {
            let request =
                ElasticRequest { false_positive_rate: Some(0.001), max_capacity: Some(items), ..ElasticRequest::default() };
            let growing = request.params().unwrap();
            let planned = ElasticRequest { capacity: Some(items), ..request }.params().unwrap();
            for params in [growing, planned] {
                let generation = params.generation(0);
                // The shards of the greatest depth have room for all items.
                let slots = (generation.whole.slots() as u64) << generation.most_depth;
                assert!(slots > items && generation.most_depth <= MOST_DEPTH, "{params:?}");
            }
            let generation = planned.generation(0);
            let bytes = (generation.shard(generation.least_depth).table_bytes() as u64) << generation.least_depth;
            assert!(bytes > 1 << 32 && 8.0 * bytes as f64 / (items as f64) < 12.7, "{bytes} bytes for {items} items");
            // Where hashes go: into shards of every number, and into their buckets.
            let (shares, depth) = (planned.shares(), planned.generation(0).least_depth);
            let first_bits = Window::new(0, depth.into(), 0);
            let mut greatest = 0;
            for hash in (0..10_000).map(|n| Uniform(split_mix(n))) {
                greatest = greatest.max(first_bits.of(shares.stream(hash)));
                let ((first, second), _) = planned.address().buckets(hash);
                assert!(first.max(second) < planned.buckets.into());
            }
            assert!(greatest < 1 << depth && greatest > (1 << depth) / 1000 * 998, "{greatest} of {}", 1 << depth);
        }
    }

    /// A later generation begins with bits for few doublings, and still grows to 16 times the one before, up to the deepest.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn later_generations_are_planned_for_sixteen_times_as_many() {
        for (capacity, max_capacity, first) in [(1_000_000, 1_000_000, (0, 6)), (1000, 1_000_000, (9, 16))] {
            let request = ElasticRequest {
                false_positive_rate: Some(0.01),
                capacity: Some(capacity),
                max_capacity: Some(max_capacity),
                ..ElasticRequest::default()
            };
            let params = request.params().unwrap();
            let depths = |number| (params.generation(number).least_depth, params.generation(number).most_depth);
            assert_eq!(depths(1), first, "{params:?}");
            for number in 1..200 {
                let ((before, most_before), (least, most)) = (depths(number), depths(number + 1));
                assert!(least >= before && most == (most_before + MOST_DOUBLINGS).min(MOST_DEPTH).max(least), "{number}");
                assert!(most - least <= 3 + MOST_DOUBLINGS, "{number}");
            }
            assert_eq!(depths(200).1, MOST_DEPTH);
        }
    }

    /// Each generation knows all bits that the one before knows, and begins small enough for its fingerprints.
    #[test]
    fn generations_refine_each_other() {
        for (rate, capacity, max_capacity) in [(0.001, 1000, 1_000_000), (1e-6, 10, 10), (1e-7, 1_000_000, 4_000_000)] {
            let request = ElasticRequest {
                false_positive_rate: Some(rate),
                capacity: Some(capacity),
                max_capacity: Some(max_capacity),
                ..ElasticRequest::default()
            };
            let params = request.params().unwrap();
            {
                for number in 0..6 {
                    let (plan, next) = (params.generation(number), params.generation(number + 1));
                    assert!(next.whole.upper_bits >= plan.whole.upper_bits, "{plan:?} {next:?}");
                    let stored = plan.shard(plan.least_depth);
                    assert!(stored.low_bits + stored.upper_bits <= MOST_STORED_BITS, "{plan:?}");
                    assert!(plan.least_depth <= plan.most_depth);
                }
            }
        }
    }
}
