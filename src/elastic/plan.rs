//! The plan of a growing filter: computes the sizes of partitions, shards and fingerprints from a request. docs/GROWTH.md has the
//! arithmetic.

use core::iter;

use super::{
    generation_plan::{GenerationPlan, HIGHEST_LOAD, fitting_items, inserted_stream_bits},
    shard::{BUCKET_SIZE, MAX_UPPER_BITS, ShardParams},
    stream::Shares,
};
use crate::{
    bits::in_memory,
    message::{Text, text},
    params::{ParamError, TableKind, excess_items, mean_matches},
};

/// The slots of a shard in a filter that grows. Splits then take microseconds, and a table holds a thousand items, so that a filter
/// of so many takes little memory. Shards are larger only if a partition would need more than 2²⁷ of them otherwise, and smaller
/// if a partition is planned for few items.
const GROWING_SHARD_SLOTS: u64 = 1072;

/// The greatest depth of a shard.
const MAX_DEPTH: u8 = 27;

/// The most slots of a shard in a filter that is planned for its final size. Shards of this size differ little in their item
/// counts, and fit into a core's cache.
const FINAL_SHARD_SLOTS: u64 = 1 << 18;

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

/// A filter whose first shards would have at most this depth begins as a list: up to 2³ tables are allocated and filled in
/// microseconds.
const MAX_LIST_DEPTH: u8 = 3;

/// The fewest buckets of a shard.
const MIN_BUCKETS: u64 = 8;

/// The default `max_capacity`, as a multiple of `capacity`.
const DEFAULT_GROWTH: u64 = 1000;

/// The smallest default `max_capacity`, in items.
const MIN_DEFAULT_MAX_CAPACITY: u64 = 16_000_000;

/// The number of times that a later generation doubles beyond the greatest size of the previous one. While a generation is small,
/// each doubling takes a bit of every item; with fewer doublings, there are more generations, and lookups read two buckets in each.
/// docs/GROWTH.md has the figures.
const LATER_DOUBLINGS: u8 = 3;

/// The most buckets of a shard in a later generation, which starts with a single shard: of at most [`GROWING_SHARD_SLOTS`] slots.
#[expect(clippy::cast_possible_truncation, reason = "a small constant")]
const MAX_LATER_BUCKETS: u32 = GROWING_SHARD_SLOTS as u32 / BUCKET_SIZE;

/// The second generation knows at least this many stream bits more of an item than the first one. They tell later items that match
/// one of the first generation by chance from each other, when copies are counted.
const FIRST_EXTRA_BITS: u8 = 6;

/// Each further generation knows this many stream bits more of an item than the previous one, until it knows [`MAX_KNOWN_BITS`].
const MIN_EXTRA_BITS: u8 = 4;
const _: () = assert!(MIN_EXTRA_BITS > LATER_DOUBLINGS);

/// The most stream bits that a generation knows of an item. Only those after a generation of 2³² slots need as many. With them, a
/// class key has at most 89 bits: 9 for a bucket of a later generation, and 32 for the low fingerprint.
const MAX_KNOWN_BITS: u8 = 48;

/// The most extra bits of an item that are counted with its copies.
const MAX_EXTRA_BITS: u8 = 16;

/// Fingerprints are long enough to distinguish this many times `max_capacity` items. See [`distinguishes`].
const DISTINGUISHABLE_FACTOR: u64 = 32;

/// The fewest items that fingerprints are long enough to distinguish.
const MIN_DISTINGUISHABLE: u64 = 1 << 16;

/// The most items that a partition is planned for: 2^[`MAX_DEPTH`] shards of at most [`FINAL_SHARD_SLOTS`] slots hold them.
const MAX_ITEMS_PER_PARTITION: u64 = 1 << 44;

/// The rates of all generations relative to the promised one: the first leaves at least one part in this many, in thirty-seconds
/// of its own rate.
const LEAST_LEFT: f64 = 1.0 / 32.0;

/// The share of what the first generation leaves of the promised rate that the second one may take. All others together take at
/// most as much, and a sixteenth of it more: each knows a bit more than it needs to double as often, so the rates halve, until
/// they stay the same at [`MAX_KNOWN_BITS`].
const SECOND_SHARE: f64 = 16.0 / 33.0;

/// The most spare bits of the second generation, which follow from [`LEAST_LEFT`] and [`SECOND_SHARE`].
const MAX_SPARE_BITS: u8 = 7;

/// The most buckets of a shard: a bucket number has at most 31 bits.
const MAX_BUCKETS: u32 = 1 << 31;

/// The settings of a builder; `None` for those that were not set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ElasticRequest {
    pub(crate) capacity: Option<u64>,
    pub(crate) max_capacity: Option<u64>,
    pub(crate) false_positive_rate: Option<f64>,
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
    pub(crate) shares: Shares,
    /// The depth of the first generation's shards at the start.
    pub(crate) min_depth: u8,
    /// The greatest depth in the first generation: there, its upper bits are used up.
    pub(crate) max_depth: u8,
    /// The spare bits of the second generation: upper bits that it keeps at its greatest depth, so that the rates of all
    /// generations add up to at most the promised one.
    pub(crate) spare_bits: u8,
}

impl ElasticRequest {
    /// Returns the parameters of a filter that satisfies the request.
    ///
    /// # Errors
    /// Returns the first parameter that has to change.
    pub(crate) fn params(&self) -> Result<ElasticParams, ParamError> {
        let partitions = self.partitions.unwrap_or(1);
        if !partitions.is_power_of_two() || partitions > MAX_PARTITIONS {
            return Err(ParamError::Partitions { given: partitions });
        }
        #[expect(clippy::cast_possible_truncation, reason = "eight at most")]
        let partition_bits = partitions.trailing_zeros() as u8;
        let most = MAX_ITEMS_PER_PARTITION << partition_bits;
        let (capacity, max_capacity) = self.capacities(most)?;
        let rate = self.false_positive_rate.ok_or(ParamError::NoRate)?;
        let f = shortest_fingerprint(rate, max_capacity)?;
        #[expect(clippy::cast_possible_truncation, reason = "32 at most")]
        let low_bits = f as u8;
        let is_final = max_capacity / 2 < capacity;
        let in_partition = |items: u64| items.max(1).div_ceil(1 << partition_bits);
        let most_in_partition = in_partition(max_capacity).max(if partitions > 1 { MIN_ITEMS_PER_PARTITION } else { 1 });
        // Without planned growth, the first tables are those for all items.
        let items = if is_final { most_in_partition } else { in_partition(capacity) };
        let shares = Shares::new(partition_bits, !is_final);
        let shards = if is_final {
            final_shards(shares, items, f)
        } else {
            smallest_growing_shards(shares, [items, most_in_partition], f)
        };
        let too_large = ParamError::MaxCapacity { given: in_memory(max_capacity), max: in_memory(most) };
        let (buckets, min_depth, max_depth) = shards.ok_or(too_large)?;
        let spare_bits = spare_bits(rate, matches_when_full(f, max_capacity));
        Ok(ElasticParams {
            capacity,
            max_capacity,
            false_positive_rate: rate,
            seed: self.seed,
            buckets,
            low_bits,
            shares,
            min_depth,
            max_depth,
            spare_bits,
        })
    }

    /// Returns `capacity` and `max_capacity`, with their defaults if they were not set. The filter can be planned for at most `most`
    /// items.
    fn capacities(&self, most: u64) -> Result<(u64, u64), ParamError> {
        let capacity = self.capacity.unwrap_or(0);
        let default = || capacity.saturating_mul(DEFAULT_GROWTH).max(MIN_DEFAULT_MAX_CAPACITY).min(most);
        let max_capacity = self.max_capacity.unwrap_or_else(default);
        if max_capacity > most {
            return Err(ParamError::MaxCapacity { given: in_memory(max_capacity), max: in_memory(most) });
        }
        if max_capacity < capacity {
            return Err(ParamError::Capacity { given: in_memory(capacity), max: in_memory(max_capacity) });
        }
        Ok((capacity, max_capacity))
    }
}

/// Returns the length of the shortest low fingerprints with which a filter for `max_capacity` items keeps the rate.
fn shortest_fingerprint(rate: f64, max_capacity: u64) -> Result<u32, ParamError> {
    let mut lowest = f64::INFINITY;
    let mut suffices = |&f: &u32| {
        lowest = lowest.min(min_rate(f, max_capacity));
        lowest <= rate && rate < 1.0
    };
    let f = TableKind::Packed.fingerprint_bits().find(&mut suffices);
    f.ok_or(ParamError::FalsePositiveRate { given: rate, min: lowest })
}

/// Returns the number of buckets in the shards of a partition for `items` items that need not grow, and their depth, twice: it is the
/// least and the greatest.
fn final_shards(shares: Shares, items: u64, f: u32) -> Option<(u32, u8, u8)> {
    let depth = (0..=MAX_DEPTH).find(|&depth| shares.largest_part(items, depth) <= FINAL_SHARD_SLOTS / 32 * 31)?;
    Some((buckets_for(shares.largest_part(items, depth), f)?, depth, depth))
}

/// Returns the smallest [`growing_shards`] of a partition that begins with room for `items` and is planned for `most_items`.
fn smallest_growing_shards(shares: Shares, [items, most_items]: [u64; 2], f: u32) -> Option<(u32, u8, u8)> {
    let smallest = GROWING_SHARD_SLOTS.min(most_items / MIN_FINAL_SHARDS).max(MIN_GROWING_BUCKETS * u64::from(BUCKET_SIZE));
    let larger = |&slots: &u64| (slots < FINAL_SHARD_SLOTS).then(|| FINAL_SHARD_SLOTS.min(2 * slots));
    let mut sizes = iter::successors(Some(smallest), larger);
    sizes.find_map(|slots| growing_shards(shares, [items, most_items], slots, f))
}

/// Returns the number of buckets in shards of at most `slots` slots, the depth at which they hold `items`, and the depth at which
/// they hold `most_items`.
fn growing_shards(shares: Shares, [items, most_items]: [u64; 2], slots: u64, f: u32) -> Option<(u32, u8, u8)> {
    let full = slots / (2 * u64::from(BUCKET_SIZE)) * 2;
    let first = |depth| buckets_for(shares.largest_part(items, depth), f).map_or(u64::MAX, u64::from);
    let has_room = |buckets, depth| planned_items(buckets, f) >= shares.largest_part(most_items, depth);
    let min_depth = (0..=MAX_DEPTH).find(|&depth| first(depth) <= full)?;
    let max_depth = |buckets| (min_depth..=MAX_DEPTH).find(|&depth| has_room(buckets, depth));
    if min_depth <= MAX_LIST_DEPTH {
        return Some((u32::try_from(full).ok()?, 0, max_depth(full)?));
    }
    // As few buckets as possible: enough for `items`. If even the largest shards were too small then, they have all their buckets.
    let fewest = first(min_depth);
    let most = if slots > FINAL_SHARD_SLOTS / 2 { full } else { fewest };
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
fn matches_when_full(f: u32, items: u64) -> f64 {
    let highest = HIGHEST_LOAD.0 as f64 / HIGHEST_LOAD.1 as f64;
    mean_matches(f, BUCKET_SIZE, if items < SMALL_FILTER_ITEMS { 1.0 } else { highest })
}

/// Returns the lowest false-positive rate of a filter for `items` items with low fingerprints of `f` bits. Returns infinity if
/// these are too short to distinguish the items.
fn min_rate(f: u32, items: u64) -> f64 {
    let needed = items.saturating_mul(DISTINGUISHABLE_FACTOR).max(MIN_DISTINGUISHABLE) as f64;
    // An upper bound of the first generation's rate, with any number of copies.
    let first = matches_when_full(f, items).min(1.0);
    if distinguishes(f, needed) { (1.0 + LEAST_LEFT) * first } else { f64::INFINITY }
}

/// Returns true if fingerprints of `f` bits distinguish this many items in a full table: the probability that more than 2b share a
/// fingerprint and both buckets is below 10⁻⁴. Two buckets hold 2b of them, and one more would be counted as if it were a copy.
fn distinguishes(f: u32, items: f64) -> bool {
    excess_items(items, BUCKET_SIZE, mean_matches(f, BUCKET_SIZE, 1.0) / items) < 1e-4
}

/// Returns how many spare bits reduce the rate of a second generation to its share of what the first leaves of `rate`, if an absent
/// item has this many matches in a full first generation.
fn spare_bits(rate: f64, matches: f64) -> u8 {
    let (mut bits, mut second) = (0, matches);
    while second > (rate - matches) * SECOND_SHARE && bits < MAX_SPARE_BITS {
        (bits, second) = (bits + 1, second / 2.0);
    }
    bits
}

/// Returns the number of items that a shard is planned for. It is below the number that fits, because the item counts of shards
/// vary.
fn planned_items(buckets: u64, f: u32) -> u64 {
    let fitting = fitting_items(buckets, f);
    fitting.saturating_sub(5 * fitting.isqrt()).max(fitting / 2)
}

/// Returns the fewest buckets with which a shard holds this many items on average, with a margin for variation.
#[inline(never)]
fn buckets_for(items: u64, f: u32) -> Option<u32> {
    let most = items + 6 * items.isqrt();
    let mut buckets = most.div_ceil(BUCKET_SIZE.into()).next_multiple_of(2).max(MIN_BUCKETS);
    while fitting_items(buckets, f) < most {
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

    /// Returns a `max_capacity` that is sufficient for this many items, or `None` if no filter can hold them.
    pub(crate) fn sufficient_capacity(&self, items: u64) -> Option<u64> {
        let capacity = items.max(self.max_capacity);
        let request = ElasticRequest {
            capacity: Some(capacity),
            max_capacity: Some(capacity),
            false_positive_rate: Some(self.false_positive_rate),
            seed: self.seed,
            partitions: Some(self.partitions()),
        };
        request.params().ok().map(|_| capacity)
    }

    /// Returns an upper bound of the distinct items of which this many are in tables or lists. The others look equal to one of these,
    /// and are counted as its copies: at most as many of all as absent items are found. A twentieth more is for chance.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is positive, and larger numbers saturate")]
    pub(crate) fn most_distinct(&self, in_tables: u64) -> u64 {
        ((1.05 * in_tables as f64 / (1.0 - self.false_positive_rate)) as u64).saturating_add(1)
    }

    /// Returns the plan of the generation with this number.
    pub(crate) fn generation(&self, number: u8) -> GenerationPlan {
        let &Self { buckets, low_bits, shares, min_depth, max_depth, spare_bits, .. } = self;
        let whole = ShardParams { buckets, low_bits, upper_bits: max_depth, depth: 0 };
        let first_buckets = buckets;
        let alone = GenerationPlan {
            number: 0,
            whole,
            min_depth,
            max_depth,
            shares,
            first_buckets,
            dropped_bits: 0,
            extra_bits: 0,
            spare_bits,
        };
        alone.generation(number)
    }
}

/// The plans of later generations.
impl GenerationPlan {
    /// Returns the plan of the generation with this number in a partition whose first generation has this plan.
    ///
    /// Later generations have small shards, and may hold eight times as many items as the previous one. They know so many more bits
    /// of each item that keys nest ([`earlier`](Self::earlier)) and that their rates halve.
    #[inline(never)]
    pub fn generation(&self, number: u8) -> Self {
        debug_assert!(self.number == 0, "the plan of generation {}", self.number);
        let [plan, next] = [number, number.saturating_add(1)].map(|number| self.generation_alone(number));
        // At least four, unless a generation before that has reached its greatest depth and number of known bits.
        let inserted = inserted_stream_bits(next.dropped_bits) - inserted_stream_bits(plan.dropped_bits);
        Self { extra_bits: (next.known_bits() - inserted - plan.known_bits()).min(MAX_EXTRA_BITS), ..plan }
    }

    /// Returns the plan of the generation with this number, without the bits that the next one knows.
    fn generation_alone(&self, number: u8) -> Self {
        let Self { first_buckets: buckets, max_depth, whole: ShardParams { low_bits, .. }, .. } = *self;
        let Some(before) = number.checked_sub(1) else { return *self };
        let dropped_bits = dropped_bucket_bits(buckets);
        let doubled = |times| (max_depth + dropped_bits).saturating_add(LATER_DOUBLINGS.saturating_mul(times)).min(MAX_DEPTH);
        let least = max_depth + inserted_stream_bits(dropped_bits) + FIRST_EXTRA_BITS;
        let second = least.max(doubled(1) + self.spare_bits);
        let known_bits = second.saturating_add(MIN_EXTRA_BITS.saturating_mul(before)).min(MAX_KNOWN_BITS);
        let whole = ShardParams { buckets: later_buckets(buckets, dropped_bits), low_bits, upper_bits: known_bits, depth: 0 };
        // A shard of depth d stores all known bits but the first d.
        let min_depth = known_bits.saturating_sub(MAX_UPPER_BITS);
        Self { number, whole, min_depth, max_depth: doubled(number), dropped_bits, ..*self }
    }
}

/// Returns the number of buckets of later generations, whose bucket numbers are the first generation's without their last bits.
fn later_buckets(buckets: u32, dropped_bits: u8) -> u32 {
    buckets.div_ceil(1 << dropped_bits).next_multiple_of(2)
}

/// Returns how many of the last bits of the first generation's bucket numbers later generations do without.
fn dropped_bucket_bits(buckets: u32) -> u8 {
    (0..32).find(|&bits| later_buckets(buckets, bits) <= MAX_LATER_BUCKETS).unwrap_or(0)
}

/// Validation of parameters that are read from untrusted bytes.
impl ElasticParams {
    /// Returns the parameters if they are valid, otherwise the reason why they are not.
    pub(crate) fn checked(self) -> Result<Self, Text> {
        let Self { false_positive_rate: rate, buckets, low_bits, shares, min_depth, max_depth, spare_bits, .. } = self;
        let check = |condition: bool, reason| if condition { Ok(()) } else { Err(reason) };
        check(rate > 0.0 && rate < 1.0, text!("the false-positive rate is not between 0 and 1"))?;
        check(self.capacity <= self.max_capacity, text!("the capacity is more than the maximum capacity"))?;
        let lengths = TableKind::Packed.fingerprint_bits();
        check(lengths.contains(&low_bits.into()), text!("the table does not have fingerprints of this length"))?;
        check(
            shares.partition_bits() < 16 && 1 << shares.partition_bits() <= MAX_PARTITIONS,
            text!("there are too many partitions"),
        )?;
        check(
            buckets >= 2 && buckets.is_multiple_of(2) && buckets <= MAX_BUCKETS,
            text!("the number of buckets is odd or out of range"),
        )?;
        check(min_depth <= max_depth && max_depth <= MAX_DEPTH, text!("the depths are out of range"))?;
        let inserted_bits = inserted_stream_bits(dropped_bucket_bits(buckets));
        check(max_depth + inserted_bits + FIRST_EXTRA_BITS <= MAX_KNOWN_BITS, text!("the shards are too large for their depth"))?;
        check(spare_bits <= MAX_SPARE_BITS, text!("there are too many spare bits"))?;
        let bits = TableKind::Packed.bucket_bits(u32::from(low_bits) + u32::from(MAX_UPPER_BITS), BUCKET_SIZE);
        check(
            isize::try_from(u64::from(buckets) * u64::from(bits) / 8).is_ok(),
            text!("a shard is larger than the address space"),
        )?;
        Ok(self)
    }
}

#[cfg(test)]
impl ElasticParams {
    /// Returns the parameters of a filter that is planned for these numbers of items.
    pub(crate) fn planned(rate: f64, capacity: u64, max_capacity: u64) -> Self {
        let request = ElasticRequest { capacity: Some(capacity), max_capacity: Some(max_capacity), ..ElasticRequest::default() };
        ElasticRequest { false_positive_rate: Some(rate), ..request }.params().expect("the request is valid")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{bits::wide, table::TableParams as _};
    use alloc::vec::Vec;

    const RATES: [f64; 13] = [0.999, 0.5, 0.1, 0.03, 0.01, 0.001, 0.000_7, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 2e-9];

    /// Filters that start empty, that are planned to grow, and that are planned for a number of items, in one partition or more.
    fn requests() -> impl Iterator<Item = ElasticRequest> {
        let sizes = [
            (None, None),
            (None, Some(1)),
            (None, Some(1_000_000_000)),
            (Some(10), Some(10)),
            (Some(1000), Some(1000)),
            (Some(1000), Some(1_000_000)),
            (Some(1_000_000), Some(1_000_000)),
            (Some(1_000_000), None),
            (Some(30_000_000), Some(40_000_000)),
        ];
        sizes.into_iter().flat_map(|(capacity, max_capacity)| {
            [1, 16, 256].map(|partitions| ElasticRequest {
                capacity,
                max_capacity,
                partitions: Some(partitions),
                ..ElasticRequest::default()
            })
        })
    }

    fn all_params() -> Vec<ElasticParams> {
        let rates = |request: ElasticRequest| {
            RATES
                .map(|rate| ElasticRequest { false_positive_rate: Some(rate), ..request }.params().expect("the request is valid"))
        };
        let params: Vec<_> = requests().flat_map(rates).collect();
        if cfg!(miri) { params.into_iter().step_by(17).collect() } else { params }
    }

    /// Checks that the rates of all generations, each full and at its greatest depth, add up to at most the promised rate.
    #[test]
    fn rates_of_all_generations_add_up_to_the_promised_one() {
        for params in all_params() {
            let (f, items) = (params.low_bits.into(), params.max_capacity);
            let full = |number| {
                let plan = params.generation(number);
                let compared = if number == 0 { 0 } else { plan.known_bits() - plan.max_depth };
                matches_when_full(f, items) / (1_u64 << compared) as f64
            };
            let sum: f64 = (0..=u8::MAX).map(full).sum();
            assert!(sum <= params.false_positive_rate, "{sum:e} of {params:?}");
            let distinguishes_all = |f| distinguishes(f, (DISTINGUISHABLE_FACTOR * items).max(MIN_DISTINGUISHABLE) as f64);
            let is_needed = f == 4 || !distinguishes_all(f - 1);
            assert!(
                full(0) > params.false_positive_rate / 2.1 || is_needed,
                "fingerprints are longer than necessary: {params:?}"
            );
            assert!(distinguishes_all(f));
        }
    }

    /// Checks that a plan keeps the lowest rate that an error states, but no lower one.
    #[test]
    fn the_lowest_rate_works_and_none_below() {
        for request in requests() {
            let params = |rate| ElasticRequest { false_positive_rate: Some(rate), ..request }.params();
            let Err(ParamError::FalsePositiveRate { min, .. }) = params(1e-12) else { panic!("{request:?}") };
            assert!((1e-9..2e-9).contains(&min), "{min:e}");
            assert_eq!(params(min).map(|params| params.low_bits), Ok(32));
            assert!(params(0.999 * min).is_err());
        }
    }

    /// Checks that only planned tables exist at the start, whatever the rate and the number of items that a filter may grow to.
    #[test]
    fn filters_and_later_generations_start_with_one_small_shard() {
        for max_capacity in [None, Some(1), Some(20_000_000), Some(1_000_000_000), Some(100_000_000_000)] {
            for rate in RATES {
                let request = ElasticRequest { false_positive_rate: Some(rate), max_capacity, ..ElasticRequest::default() };
                let plan = request.params().expect("the request is valid").generation(0);
                assert!(plan.min_depth == 0 && plan.begins_as_list() || plan.max_depth == 0, "{plan:?}");
                let most = if max_capacity > Some(1_000_000_000) { 2 * GROWING_SHARD_SLOTS } else { GROWING_SHARD_SLOTS };
                assert!(wide(plan.whole.slots()) <= most, "{plan:?}");
            }
        }
        for params in all_params() {
            let mut buckets = u64::from(params.buckets) << params.max_depth;
            for number in 1..=u8::MAX {
                let plan = params.generation(number);
                let is_small = buckets < 1 << 21;
                assert!(plan.whole.slots() <= 1072 && (plan.min_depth == 0 || !is_small), "{plan:?}");
                // The longest fingerprints and columns take 31 and 32 bits.
                let bytes = wide(plan.shard(plan.min_depth).table_bytes()) << plan.min_depth;
                assert!(bytes <= 1072 * (31 + 32) / 8 || bytes < buckets, "{bytes} bytes after {buckets} buckets: {plan:?}");
                let more = u64::from(plan.whole.buckets) << plan.max_depth;
                assert!(more >= 8 * buckets || plan.max_depth == MAX_DEPTH, "{plan:?}");
                assert!(more <= 16 * buckets, "{more} buckets after {buckets}: {plan:?}");
                buckets = more;
            }
        }
    }

    /// Checks that each generation knows more bits than the previous one, and that shards of all depths can store them.
    #[test]
    fn later_generations_know_more_bits() {
        for params in all_params() {
            for number in 0..u8::MAX {
                let (plan, next) = (params.generation(number), params.generation(number + 1));
                let is_longest = next.known_bits() == MAX_KNOWN_BITS;
                assert!(plan.extra_bits >= MIN_EXTRA_BITS || is_longest, "{plan:?} {next:?}");
                assert!(!is_longest || number > 3, "{params:?}");
                assert!(plan.min_depth <= plan.max_depth && plan.max_depth <= plan.known_bits(), "{plan:?}");
                assert!(plan.shard(plan.min_depth).upper_bits <= MAX_UPPER_BITS, "{plan:?}");
                assert!(plan.class_keys().bits() <= 89, "{plan:?}");
            }
        }
    }

    /// Checks plans for up to 0.8 · 10¹² items, with and without growth. No tables are allocated.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    #[cfg(target_pointer_width = "64")]
    fn plans_support_more_than_2_to_the_32_items() {
        use super::super::stream::Window;
        use crate::{hash::split_mix, table::Uniform};

        for items in [5_000_000_000, 100_000_000_000, 800_000_000_000, MAX_ITEMS_PER_PARTITION / 2] {
            let request =
                ElasticRequest { false_positive_rate: Some(0.001), max_capacity: Some(items), ..ElasticRequest::default() };
            let growing = request.params().unwrap();
            let planned = ElasticRequest { capacity: Some(items), ..request }.params().unwrap();
            for params in [growing, planned] {
                let generation = params.generation(0);
                // The shards at the greatest depth have enough slots for all items.
                let slots = (generation.whole.slots() as u64) << generation.max_depth;
                assert!(slots > items && generation.max_depth <= MAX_DEPTH, "{params:?}");
                assert!(params.checked().is_ok(), "{params:?}");
                assert!(params.generation(1).known_bits() < MAX_KNOWN_BITS, "{params:?}");
                assert!((1..40).all(|number| params.generation(number).class_keys().bits() <= 89));
            }
            let generation = planned.generation(0);
            let bytes = (generation.shard(generation.min_depth).table_bytes() as u64) << generation.min_depth;
            let bits = 8.0 * bytes as f64 / items as f64;
            assert!(bytes > 1 << 32 && bits < if items < 1 << 40 { 12.7 } else { 13.7 }, "{bytes} bytes for {items} items");
            // Hashes are spread over all shards, and stay within the buckets.
            let (shares, depth) = (planned.shares, planned.generation(0).min_depth);
            let first_bits = Window::new(0, depth.into());
            let mut greatest = 0;
            for hash in (0..10_000).map(|n| Uniform(split_mix(n))) {
                greatest = greatest.max(first_bits.extract(shares.stream(hash)));
                let ((first, second), _) = generation.address().buckets(hash);
                assert!(first.max(second) < planned.buckets.into());
            }
            assert!(greatest < 1 << depth && greatest > (1 << depth) / 1000 * 998, "{greatest} of {}", 1 << depth);
        }
    }

    /// Checks that parameters of hostile bytes are refused, or that all generations can be planned.
    #[test]
    fn checked_parameters_have_valid_plans() {
        let params = all_params()[0];
        let mut valid = 0;
        for buckets in [0, 1, 2, 256, 258, 300, 1 << 16, 65_892, 1 << 17, 1 << 24, 1 << 31, u32::MAX] {
            for low_bits in [0, 3, 4, 17, 32, 33, 255] {
                for (min_depth, max_depth) in [(0, 0), (0, 27), (27, 27), (3, 2), (0, 28), (0, 255), (14, 20)] {
                    for spare_bits in [0, 3, 7, 8, 255] {
                        let params = ElasticParams { buckets, low_bits, min_depth, max_depth, spare_bits, ..params };
                        let Ok(params) = params.checked() else { continue };
                        valid += 1;
                        for number in [0, 1, 2, 3, 4, 5, 9, 20, 255] {
                            let plan = params.generation(number);
                            assert!(plan.class_keys().bits() <= 89 && plan.known_bits() <= MAX_KNOWN_BITS, "{plan:?}");
                            assert!(plan.min_depth <= plan.max_depth && plan.max_depth <= MAX_DEPTH, "{plan:?}");
                            assert!(plan.shard(plan.min_depth).upper_bits <= MAX_UPPER_BITS, "{plan:?}");
                            assert!(number == 0 || plan.whole.buckets <= MAX_LATER_BUCKETS, "{plan:?}");
                        }
                    }
                }
            }
        }
        assert!(valid > 100, "{valid}");
    }
}
