//! The plan of a growing filter: computes the sizes of partitions, shards and fingerprints from a request. docs/GROWTH.md has the
//! arithmetic.

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

/// The longest fingerprint that a table stores, in bits.
pub(crate) const MAX_STORED_BITS: u8 = 32;

/// The most slots of a shard in a filter that grows. Splits then take microseconds, and small filters little memory. Shards are
/// larger only if a partition would need more than 2²⁷ of them otherwise.
const GROWING_SHARD_SLOTS: u64 = 1 << 10;

/// The greatest depth of a shard.
pub(crate) const MAX_DEPTH: u8 = 27;

/// The most slots of a shard in a filter that is planned for its final size. Shards of this size differ little in their item
/// counts, and fit into a core's cache.
const FINAL_SHARD_SLOTS: u64 = 1 << 18;

/// The most generations of a partition. A snapshot stores a generation's number in one byte.
const MAX_GENERATIONS: usize = 256;

/// The most partitions.
pub(crate) const MAX_PARTITIONS: usize = 256;

/// The default number of partitions in a shared filter. With this many, threads of a large machine rarely wait for each other.
#[cfg(feature = "std")]
pub(crate) const SHARED_PARTITIONS: usize = 64;

/// The fewest items that each of several partitions is planned for: very small shards would take more space.
const MIN_ITEMS_PER_PARTITION: u64 = 2000;

/// Growing shards shrink so that a small partition ends with at least this many shards.
const MIN_FINAL_SHARDS: u64 = 4;

/// Growing shards never shrink below this many buckets: smaller tables become full at lower loads.
const MIN_GROWING_BUCKETS: u64 = 32;

/// A growing partition starts as an item list if its first shards have at most this depth: up to 2³ shards are allocated and filled
/// in microseconds.
const MAX_LIST_DEPTH: u8 = 3;

/// The most items in the item list of a filter with one partition. A list of this length takes less memory than tables, but its
/// lookups and insertions take several times as long.
const LIST_CAPACITY: usize = 1 << 10;

/// The most items in the item list of each of several partitions. It is smaller because a filter of ten thousand items should be
/// fast.
const PARTITION_LIST_CAPACITY: usize = 1 << 8;

/// The fewest buckets of a shard.
const MIN_BUCKETS: u64 = 8;

/// The default `max_capacity`, as a multiple of `capacity`.
const DEFAULT_GROWTH: u64 = 1000;

/// The smallest default `max_capacity`, in items.
const MIN_DEFAULT_MAX_CAPACITY: u64 = 16_000_000;

/// The most times that a later generation doubles beyond the greatest size of the previous one. While a generation is small, each
/// doubling takes a bit of every item; with fewer doublings, there are more generations, and lookups read two buckets in each.
/// docs/GROWTH.md has the figures.
const MAX_DOUBLINGS: u8 = 4;

/// Fingerprints are long enough to distinguish this many times `max_capacity` items. See [`distinguishable_items`].
const DISTINGUISHABLE_FACTOR: u64 = 32;

/// The fewest items that fingerprints are long enough to distinguish.
const MIN_DISTINGUISHABLE: u64 = 1 << 16;

/// The most items that a partition is planned for: 2^[`MAX_DEPTH`] shards of at most [`FINAL_SHARD_SLOTS`] slots hold them.
const MAX_ITEMS_PER_PARTITION: u64 = 1 << 44;

/// The longest low fingerprints that leave enough bits for [`MIN_DOUBLINGS_BEYOND`].
const MAX_LOW_BITS: u32 = 28;

/// The fewest times that a filter can double beyond its `max_capacity` while further generations keep the rate. A rate that they
/// could not keep for so long is refused.
const MIN_DOUBLINGS_BEYOND: u8 = 10;

/// A later generation with more doublings than this starts smaller than the greatest size of the previous one.
const SMALL_START_GROWTH: u8 = 5;

/// How much smaller such a generation starts, in halvings: at an eighth.
const SMALL_START_DOUBLINGS: u8 = 3;

/// The most buckets of a shard: a bucket number has at most 31 bits.
const MAX_BUCKETS: u32 = 1 << 31;

/// The most spare bits of a generation.
const MAX_SPARE_BITS: u8 = 12;

/// The settings of a builder; `None` for those that were not set.
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

/// The parameters of a growing filter. Two filters can be merged only if theirs are equal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ElasticParams {
    pub(crate) capacity: u64,
    pub(crate) max_capacity: u64,
    pub(crate) false_positive_rate: f64,
    pub(crate) seed: u64,
    /// The number of buckets in a shard.
    pub(crate) buckets: u32,
    /// The length of the low fingerprint in bits.
    pub(crate) low_bits: u8,
    pub(crate) table: TableKind,
    pub(crate) bucket_size: u8,
    pub(crate) shares: Shares,
    /// The depth of the first generation's shards at the start.
    pub(crate) min_depth: u8,
    /// The greatest depth in the first generation: there, its upper bits are used up.
    pub(crate) max_depth: u8,
    /// The spare bits of the second generation: upper bits that it keeps, so that the rates of both stay within the promised one.
    pub(crate) spare_bits: u8,
}

impl ElasticRequest {
    /// Returns the parameters of a filter that satisfies the request.
    ///
    /// # Errors
    /// Returns the first parameter that has to change.
    pub(crate) fn params(&self) -> Result<ElasticParams, ParamError> {
        let table = self.table.unwrap_or(match self.bucket_size {
            None | Some(DEFAULT_BUCKET_SIZE) => TableKind::Packed,
            Some(_) => TableKind::Single,
        });
        let b = self.bucket_size.unwrap_or(DEFAULT_BUCKET_SIZE);
        let bucket_size = u8::try_from(b).ok().filter(|_| table.bucket_sizes().contains(&b));
        let bucket_size = bucket_size.ok_or(ParamError::BucketSize { given: b, table })?;
        let partitions = self.partitions.unwrap_or(1);
        if !partitions.is_power_of_two() || partitions > MAX_PARTITIONS {
            return Err(ParamError::Partitions { given: partitions });
        }
        #[expect(clippy::cast_possible_truncation, reason = "eight at most")]
        let partition_bits = partitions.trailing_zeros() as u8;
        let most = max_items(b, partition_bits);
        let max_capacity = self.max_capacity.unwrap_or_else(|| {
            let default = self.capacity.map_or(0, |items| items.saturating_mul(DEFAULT_GROWTH));
            default.max(MIN_DEFAULT_MAX_CAPACITY).min(most)
        });
        let too_large = ParamError::MaxCapacity { given: in_memory(max_capacity), max: in_memory(most) };
        if max_capacity > most {
            return Err(too_large);
        }
        let capacity = self.capacity.unwrap_or(0);
        if max_capacity < capacity {
            return Err(ParamError::Capacity { given: in_memory(capacity), max: in_memory(max_capacity) });
        }
        let rate = self.false_positive_rate.ok_or(ParamError::NoRate)?;
        let mut lowest = f64::INFINITY;
        let mut suffices = |&f: &u32| {
            lowest = lowest.min(min_rate(f, b, max_capacity));
            lowest <= rate && rate < 1.0
        };
        let f = table.fingerprint_bits().find(&mut suffices);
        let f = f.ok_or(ParamError::FalsePositiveRate { given: rate, min: lowest })?;
        #[expect(clippy::cast_possible_truncation, reason = "32 at most")]
        let low_bits = f as u8;
        let is_final = max_capacity / 2 < capacity;
        let in_partition = |items: u64| items.max(1).div_ceil(1 << partition_bits);
        let most_in_partition = in_partition(max_capacity).max(if partitions > 1 { MIN_ITEMS_PER_PARTITION } else { 1 });
        // Without planned growth, the first tables are those for all items.
        let items = if is_final { most_in_partition } else { in_partition(capacity) };
        let shares = Shares::new(partition_bits, !is_final);
        let (buckets, mut min_depth, max_depth) = if is_final {
            let depth = (0..=MAX_DEPTH).find(|&depth| shares.largest_part(items, depth) <= FINAL_SHARD_SLOTS / 32 * 31);
            let depth = depth.ok_or(too_large)?;
            (buckets_for(shares.largest_part(items, depth), b, f).ok_or(too_large)?, depth, depth)
        } else {
            let shard = GROWING_SHARD_SLOTS.min(most_in_partition / MIN_FINAL_SHARDS).max(MIN_GROWING_BUCKETS * u64::from(b));
            let mut sizes =
                iter::successors(Some(shard), |slots| Some(slots * 2)).take_while(|&slots| slots <= FINAL_SHARD_SLOTS);
            sizes.find_map(|slots| growing_shards(shares, [items, most_in_partition], slots, b, f)).ok_or(too_large)?
        };
        // A table stores fingerprints of at most 32 bits. A filter whose fingerprints would be longer starts with more shards.
        min_depth = min_depth.max(max_depth.saturating_sub(max_upper_bits(low_bits)));
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
            min_depth,
            max_depth,
            spare_bits,
        })
    }
}

/// Returns the number of buckets in shards of at most `slots` slots, the depth at which they hold `items`, and the depth at which
/// they hold `most_items`.
fn growing_shards(shares: Shares, [items, most_items]: [u64; 2], slots: u64, b: u32, f: u32) -> Option<(u32, u8, u8)> {
    let full = slots / (2 * u64::from(b)) * 2;
    let first = |depth| buckets_for(shares.largest_part(items, depth), b, f).map_or(u64::MAX, u64::from);
    let has_room = |buckets, depth| planned_items(buckets, b, f) >= shares.largest_part(most_items, depth);
    let min_depth = (0..=MAX_DEPTH).find(|&depth| first(depth) <= full)?;
    // As few buckets as possible: enough for `items` if these need several shards, otherwise for `most_items`. If even the largest
    // shards were too small then, they have all their buckets.
    let fewest = if min_depth > 0 { first(min_depth) } else { full };
    let most = if slots > FINAL_SHARD_SLOTS / 2 { full } else { fewest };
    let max_depth = |buckets| (min_depth..=MAX_DEPTH).find(|&depth| has_room(buckets, depth));
    let (buckets, max_depth) = [fewest, most].into_iter().find_map(|buckets| Some((buckets, max_depth(buckets)?)))?;
    let (mut pairs, mut enough) = (first(min_depth).div_ceil(2), buckets.div_ceil(2));
    while pairs < enough {
        let middle = pairs.midpoint(enough);
        (pairs, enough) = if has_room(2 * middle, max_depth) { (pairs, middle) } else { (middle + 1, enough) };
    }
    Some((u32::try_from(2 * enough).ok()?, min_depth, max_depth))
}

/// Filters for fewer items may consist of one or two tables.
const SMALL_FILTER_ITEMS: u64 = 1 << 12;

/// Returns the average number of stored items that match an absent item, when tables for `items` items are as full as they get on
/// average. This is at least the false-positive rate, and halves with each bit of the fingerprint. Small filters have so few tables
/// that all may be full, so their load is taken as 1.
fn matches_when_full(f: u32, b: u32, items: u64) -> f64 {
    let load = match b {
        _ if items < SMALL_FILTER_ITEMS => 1.0,
        1 => 0.5,
        2 => 0.9,
        3 => 0.96,
        4 => 0.98,
        _ => 1.0,
    };
    mean_matches(f, b, load)
}

/// Returns the lowest false-positive rate of a filter for `items` items with low fingerprints of `f` bits. Returns infinity if
/// these are too short to distinguish the items, or leave too few bits for further generations. docs/GROWTH.md derives the
/// formula.
fn min_rate(f: u32, b: u32, items: u64) -> f64 {
    let matches = matches_when_full(f, b, items);
    // An upper bound of the first generation's rate, with any number of copies.
    let first = matches.min(1.0);
    let needed = items.saturating_mul(DISTINGUISHABLE_FACTOR).max(MIN_DISTINGUISHABLE) as f64;
    match max_spare_bits(f) {
        // `spare_bits` gives the second generation at most half of the rate that the first leaves, apart from rounding.
        Some(spare) if needed < distinguishable_items(f, b) => {
            let second = matches / (1_u64 << spare) as f64;
            (33.0 / 32.0 * first).max((first + 2.0 * second) * (1.0 + 1e-9))
        }
        _ => f64::INFINITY,
    }
}

/// Returns how many items fingerprints of `f` bits distinguish: among so many, the probability that more than 2b share a
/// fingerprint and both buckets is below 10⁻⁴. Two buckets hold 2b of them, and one more would be counted as if it were a copy.
/// The n items fall into the combinations of buckets and fingerprint like balls into bins, with mean λ. About n·λ²ᵇ / (2b + 1)!
/// of them are one too many.
fn distinguishable_items(f: u32, b: u32) -> f64 {
    let mean = f64::from(2 * b) / f64::from(u32::MAX >> (32 - f));
    (1..=2 * b).fold(1e-4, |items, n| items / mean * f64::from(n + 1))
}

/// Returns the largest allowed `max_capacity`: shards of the greatest depth hold that many items, and the longest fingerprints that
/// leave bits for further generations distinguish them.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn max_items(b: u32, partition_bits: u8) -> u64 {
    let distinguishable = distinguishable_items(MAX_LOW_BITS, b) / DISTINGUISHABLE_FACTOR as f64;
    (MAX_ITEMS_PER_PARTITION << partition_bits).min((distinguishable * (1.0 - 1e-9)) as u64)
}

/// Returns the most spare bits that a second generation may have with low fingerprints of `f` bits, if generations from it on,
/// each with one spare bit more, are to double [`MIN_DOUBLINGS_BEYOND`] times as [`ElasticParams::generation`] plans them.
/// Returns `None` if they cannot even without spare bits.
fn max_spare_bits(f: u32) -> Option<u8> {
    #[expect(clippy::cast_possible_truncation, reason = "32 at most")]
    let left = max_upper_bits(f as u8);
    let mut doublings = 0;
    let spare = (0..=left).rev().find(|spare| {
        doublings += generation_doublings(left - spare);
        doublings >= MIN_DOUBLINGS_BEYOND
    });
    spare.map(|spare| spare.min(MAX_SPARE_BITS))
}

/// Returns how many times a generation that can give up `growth` bits doubles beyond the greatest size of the previous one.
fn generation_doublings(growth: u8) -> u8 {
    let begins_smaller = if growth > SMALL_START_GROWTH { SMALL_START_DOUBLINGS } else { 0 };
    (growth - begins_smaller).min(MAX_DOUBLINGS)
}

/// Returns how many spare bits reduce the rate of a second generation to half of what the first leaves of `rate`, if an absent item
/// has this many matches in a full first generation.
fn spare_bits(rate: f64, matches: f64) -> u8 {
    let (mut bits, mut second) = (0, matches);
    while second > (rate - matches) / 2.0 && bits < MAX_SPARE_BITS {
        (bits, second) = (bits + 1, second / 2.0);
    }
    bits
}

/// Returns the number of items that fit into a shard.
#[inline(never)]
fn fitting_items(buckets: u64, b: u32, f: u32) -> u64 {
    safe_load(Addressing::AnySize, b, f, buckets).items_in(buckets * u64::from(b))
}

/// Returns the number of items that a shard is planned for. It is below the number that fits, because the item counts of shards
/// vary.
fn planned_items(buckets: u64, b: u32, f: u32) -> u64 {
    let fitting = fitting_items(buckets, b, f);
    fitting.saturating_sub(5 * fitting.isqrt()).max(fitting / 2)
}

/// Returns the fewest buckets with which a shard holds this many items on average, with a margin for variation.
#[inline(never)]
fn buckets_for(items: u64, b: u32, f: u32) -> Option<u32> {
    let most = items + 6 * items.isqrt();
    let mut buckets = most.div_ceil(b.into()).next_multiple_of(2).max(MIN_BUCKETS);
    while fitting_items(buckets, b, f) < most {
        buckets += (buckets / 128).next_multiple_of(2).max(2);
    }
    u32::try_from(buckets).ok()
}

impl ElasticParams {
    /// Returns the number of partitions.
    #[must_use]
    pub fn partitions(&self) -> usize {
        1 << self.shares.partition_bits()
    }

    #[inline]
    pub(crate) fn shares(&self) -> Shares {
        self.shares
    }

    /// Returns a `max_capacity` that is sufficient for this many items, or `None` if no filter can hold them.
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

    /// Returns the addressing by low fingerprints, which all shards share.
    #[inline]
    pub(crate) fn address(&self) -> AnySize {
        AnySize { buckets: self.buckets.into(), fingerprint_bits: self.low_bits.into() }
    }

    /// Returns the most generations that a partition may have, at most 256. Any further one would have too few spare bits to keep
    /// the rate.
    pub(crate) fn max_generations(&self) -> usize {
        match max_upper_bits(self.low_bits).checked_sub(self.spare_bits) {
            None => 1,
            Some(more) if more >= MAX_SPARE_BITS => MAX_GENERATIONS,
            Some(more) => 2 + usize::from(more),
        }
    }

    /// Returns the plan of the generation with this number.
    pub(crate) fn generation(&self, number: u8) -> GenerationPlan {
        let (mut min_depth, mut max_depth, mut spare_bits) = (self.min_depth, self.max_depth, 0);
        let max_upper_bits = max_upper_bits(self.low_bits);
        for before in 0..number {
            spare_bits = (self.spare_bits + before.min(MAX_SPARE_BITS)).min(max_upper_bits);
            let growth = max_upper_bits - spare_bits;
            let largest = (max_depth + MAX_DOUBLINGS).min(MAX_DEPTH);
            let smaller = if growth > SMALL_START_GROWTH { SMALL_START_DOUBLINGS } else { 0 };
            min_depth = max_depth.saturating_sub(smaller);
            max_depth = (min_depth + growth).min(largest).max(min_depth);
        }
        let upper_bits = max_depth + spare_bits;
        let Self { buckets, low_bits, table, bucket_size, shares, .. } = *self;
        let whole = ShardParams { buckets, low_bits, upper_bits, spare_bits, depth: 0, table, bucket_size };
        GenerationPlan { number, whole, min_depth, max_depth, shares }
    }
}

/// Validation of parameters that are read from untrusted bytes.
impl ElasticParams {
    /// Returns the parameters if they are valid, otherwise the reason why they are not.
    pub(crate) fn checked(self) -> Result<Self, &'static str> {
        let Self { false_positive_rate: rate, buckets, low_bits, table, bucket_size, .. } = self;
        let Self { shares, min_depth, max_depth, spare_bits, .. } = self;
        let check = |condition: bool, reason| if condition { Ok(()) } else { Err(reason) };
        check(rate > 0.0 && rate < 1.0, "the false-positive rate is not between 0 and 1")?;
        check(self.capacity <= self.max_capacity, "the capacity is more than the maximum capacity")?;
        check(table.fingerprint_bits().contains(&low_bits.into()), "the table does not have fingerprints of this length")?;
        check(table.bucket_sizes().contains(&bucket_size.into()), "the table does not have buckets of this size")?;
        check(shares.partition_bits() < 16 && 1 << shares.partition_bits() <= MAX_PARTITIONS, "there are too many partitions")?;
        check(
            buckets >= 2 && buckets.is_multiple_of(2) && buckets <= MAX_BUCKETS,
            "the number of buckets is odd or out of range",
        )?;
        check(min_depth <= max_depth && max_depth <= MAX_DEPTH, "the depths are out of range")?;
        check(low_bits + (max_depth - min_depth) <= MAX_STORED_BITS, "fingerprints have more than 32 bits")?;
        check(spare_bits <= MAX_SPARE_BITS, "there are too many spare bits")?;
        let bits = table.bucket_bits(MAX_STORED_BITS.into(), bucket_size.into());
        check(isize::try_from(u64::from(buckets) * u64::from(bits) / 8).is_ok(), "a shard is larger than the address space")?;
        Ok(self)
    }
}

/// Returns the most upper bits that a table can store above a low fingerprint.
fn max_upper_bits(low_bits: u8) -> u8 {
    MAX_STORED_BITS - low_bits
}

/// The plan of a generation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GenerationPlan {
    /// The number of the generation in its partition, from 0. Later generations know at least as many bits of each item.
    pub number: u8,
    /// The parameters of a shard of depth 0, which would hold all items.
    pub whole: ShardParams,
    /// The least depth of a shard. Shards of this depth are not merged.
    pub min_depth: u8,
    /// The greatest depth of a shard. Shards of this depth are not split.
    pub max_depth: u8,
    pub shares: Shares,
}

impl GenerationPlan {
    /// Returns the parameters of a shard of this depth.
    pub fn shard(&self, depth: u8) -> ShardParams {
        ShardParams { upper_bits: self.whole.upper_bits - depth, depth, ..self.whole }
    }

    /// Returns the layout of class keys, which represent the items of this generation in lists. A class key has the smaller of an
    /// item's two buckets, the low fingerprint, and all stream bits that the generation knows. Splits and merges do not change
    /// it.
    ///
    /// A class key has at most 90 bits: up to 31 for the bucket; up to 32 for the low fingerprint and the stored upper bits; and
    /// up to 27 for the least depth, whose bits are not stored. A snapshot has room for 88 bits. A generation with longer keys
    /// would start with 2⁵⁶ buckets, more than any machine can address.
    pub fn class_keys(&self) -> ClassKeys {
        ClassKeys::new(self.whole.buckets.into(), u32::from(self.whole.low_bits) + u32::from(self.whole.upper_bits))
    }

    /// Returns the class key of an item.
    pub fn class_key(&self, item: Key) -> copies::ClassKey {
        self.class_keys().key(item.buckets, item.known_bits(&self.whole))
    }

    /// Returns the item that a class key represents, or `None` if the key is invalid.
    pub fn item_of(&self, key: copies::ClassKey) -> Option<Key> {
        let keys = self.class_keys();
        let (bucket, known) = keys.parts(key);
        // A valid key has the smaller bucket.
        Key::from_known_bits(&self.whole, bucket, known).filter(|item| keys.is_in_range(key) && item.buckets.1 >= bucket)
    }

    /// Returns true if the generation starts as an item list: it grows, and its first shards would be few.
    pub fn begins_as_list(&self) -> bool {
        self.min_depth <= MAX_LIST_DEPTH && self.min_depth < self.max_depth
    }

    /// Returns the most items in the item list of a generation that starts as a list. They fill its first shards well.
    pub fn list_capacity(&self) -> usize {
        // Tables with one slot per bucket are full at half of their slots.
        let fitting = self.whole.slots() / if self.whole.bucket_size == 1 { 2 } else { 1 };
        let most = if self.shares.partition_bits() == 0 { LIST_CAPACITY } else { PARTITION_LIST_CAPACITY };
        // A third more than fit into the first shards, which then split.
        most.min((fitting / 3 * 4) << self.min_depth.min(MAX_LIST_DEPTH)).max(1)
    }

    /// Returns an upper bound of the false-positive rate of an item list. An absent item is found if it has the same low
    /// fingerprint, buckets and known stream bits as a listed one. In a staggered partition, some values of these bits are up to
    /// an eighth more frequent than the mean, which gives the factor 9/8.
    pub fn list_false_positive_rate(&self, items: usize) -> f64 {
        let matches =
            mean_matches(self.whole.low_bits.into(), self.whole.bucket_size(), items as f64 / self.whole.slots() as f64);
        (9.0 / 8.0 * matches / (1_u64 << self.whole.upper_bits) as f64).min(1.0)
    }

    /// Returns the number of distinct items that fit into a shard.
    pub(crate) fn items_that_fit(&self) -> usize {
        index(fitting_items(self.whole.buckets.into(), self.whole.bucket_size.into(), self.whole.low_bits.into()))
    }

    /// Returns the share of a partition's hashes that lead to this shard.
    pub(crate) fn share(&self, depth: u8, prefix: u32) -> f64 {
        self.shares.prefix_share(prefix.into(), depth.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the rates of all generations, each at its greatest depth, add up to at most the promised rate.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn generations_beyond_max_capacity_keep_the_rate() {
        for rate in [0.1, 0.03, 0.01, 0.001, 0.000_7, 1e-4] {
            for b in [1, 2, 4, 8] {
                let request =
                    ElasticRequest { false_positive_rate: Some(rate), bucket_size: Some(b), ..ElasticRequest::default() };
                let params = request.params().unwrap();
                let full = |number| {
                    let GenerationPlan { whole, max_depth, .. } = params.generation(number);
                    matches_when_full(params.low_bits.into(), b, MIN_DEFAULT_MAX_CAPACITY)
                        / (1_u64 << (whole.upper_bits - max_depth)) as f64
                };
                let sum: f64 = (0..6).map(full).sum();
                assert!(sum <= rate, "{sum} for {rate}, buckets of {b}");
                let distinguishes_all =
                    |f| distinguishable_items(f, b) > (DISTINGUISHABLE_FACTOR * MIN_DEFAULT_MAX_CAPACITY) as f64;
                let is_needed = !distinguishes_all(u32::from(params.low_bits) - 1);
                assert!(full(0) > rate / 4.0 || is_needed, "fingerprints are longer than necessary");
                assert!(distinguishes_all(params.low_bits.into()));
            }
        }
    }

    /// Returns true if fingerprints of `f` bits keep a rate, according to the plan of the generations.
    fn keeps(f: u32, b: u32, items: u64, rate: f64) -> bool {
        let matches = matches_when_full(f, b, items);
        let (spare, left) = (spare_bits(rate, matches), max_upper_bits(f as u8));
        let doublings: u8 = (spare..=left).map(|spare| generation_doublings(left - spare)).sum();
        let distinguishes_all = distinguishable_items(f, b) > (items * DISTINGUISHABLE_FACTOR).max(MIN_DISTINGUISHABLE) as f64;
        33.0 / 32.0 * matches <= rate && doublings >= MIN_DOUBLINGS_BEYOND && distinguishes_all
    }

    /// Checks the formula of the lowest rate against the plan of the generations: fingerprints keep that rate, but no lower one.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn generations_keep_the_lowest_rate_and_none_below() {
        let mut possible = 0;
        for b in 1..=16 {
            for items in [0, 100, SMALL_FILTER_ITEMS, 1_000_000, 1_000_000_000, 1_000_000_000_000] {
                for f in 2..=32 {
                    let lowest = min_rate(f, b, items);
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
        // Longer fingerprints keep no rate.
        assert!(max_spare_bits(MAX_LOW_BITS).is_some());
        assert!((MAX_LOW_BITS + 1..=32).all(|f| max_spare_bits(f).is_none()));
    }

    /// Checks plans for up to 0.8 · 10¹² items, with and without growth. No tables are allocated.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    #[cfg(target_pointer_width = "64")]
    fn plans_support_more_than_2_to_the_32_items() {
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
                // The shards at the greatest depth have enough slots for all items.
                let slots = (generation.whole.slots() as u64) << generation.max_depth;
                assert!(slots > items && generation.max_depth <= MAX_DEPTH, "{params:?}");
            }
            let generation = planned.generation(0);
            let bytes = (generation.shard(generation.min_depth).table_bytes() as u64) << generation.min_depth;
            assert!(bytes > 1 << 32 && 8.0 * bytes as f64 / (items as f64) < 12.7, "{bytes} bytes for {items} items");
            // Hashes are spread over all shards, and stay within the buckets.
            let (shares, depth) = (planned.shares(), planned.generation(0).min_depth);
            let first_bits = Window::new(0, depth.into(), 0);
            let mut greatest = 0;
            for hash in (0..10_000).map(|n| Uniform(split_mix(n))) {
                greatest = greatest.max(first_bits.extract(shares.stream(hash)));
                let ((first, second), _) = planned.address().buckets(hash);
                assert!(first.max(second) < planned.buckets.into());
            }
            assert!(greatest < 1 << depth && greatest > (1 << depth) / 1000 * 998, "{greatest} of {}", 1 << depth);
        }
    }

    /// Checks that each later generation has bits for few doublings, but grows to 16 times the previous one, until `MAX_DEPTH`.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn later_generations_grow_to_sixteen_times_the_previous_one() {
        for (capacity, max_capacity, first) in [(1_000_000, 1_000_000, (0, 6)), (1000, 1_000_000, (9, 16))] {
            let request = ElasticRequest {
                false_positive_rate: Some(0.01),
                capacity: Some(capacity),
                max_capacity: Some(max_capacity),
                ..ElasticRequest::default()
            };
            let params = request.params().unwrap();
            let depths = |number| (params.generation(number).min_depth, params.generation(number).max_depth);
            assert_eq!(depths(1), first, "{params:?}");
            for number in 1..200 {
                let ((before, most_before), (least, most)) = (depths(number), depths(number + 1));
                assert!(least >= before && most == (most_before + MAX_DOUBLINGS).min(MAX_DEPTH).max(least), "{number}");
                assert!(most - least <= 3 + MAX_DOUBLINGS, "{number}");
            }
            assert_eq!(depths(200).1, MAX_DEPTH);
        }
    }

    /// Checks that each generation knows all bits that the previous one knows, and that its first fingerprints fit into tables.
    #[test]
    fn later_generations_know_at_least_as_many_bits() {
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
                    let stored = plan.shard(plan.min_depth);
                    assert!(stored.low_bits + stored.upper_bits <= MAX_STORED_BITS, "{plan:?}");
                    assert!(plan.min_depth <= plan.max_depth);
                }
            }
        }
    }
}
