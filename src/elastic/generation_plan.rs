//! The plan of a generation, and the keys by which it knows items.
//!
//! The first generation knows an item by its two buckets, its low fingerprint, and the first bits of its stream. Later generations
//! have smaller shards. Their bucket numbers are those of the first generation without the last k bits, which are in the stream
//! instead. An item's second bucket follows from the first small bucket, so one more bit tells which of the two that is:
//!
//! ```text
//! first generation    bucket ▒▒▒▒▒▒▒▒▓▓▓   stream ░░│──────────────┤ known
//!                            ────────╲╲╲            ╲ ╲
//! later ones   small bucket ▒▒▒▒▒▒▒▒  ╲╲╲  stream ░░│▓▓▓│o│──────────────────────┤ known
//!                                      k last bits ──┘   └ 1 if the first small bucket is the larger one
//! ```
//!
//! So keys nest: two items with the same key in a generation have the same keys in all earlier ones ([`GenerationPlan::earlier`]).
//! Removal and counting rely on that.

use core::ops::Range;

use super::{
    shard::{BUCKET_SIZE, Key, ShardParams},
    stream::{Shares, insert_bits, remove_bits},
};
use crate::{
    bits::{index, low_half, low_word, mask},
    params::{self, Addressing, mean_matches, rate_beside_copies},
    table::{AnySize, Fingerprint, TableParams as _, Uniform, copies::ClassKeys, list::ClassKey},
};

/// The load factor from which a shard splits. Fuller shards would cost more time to fill than they save space.
const SPLIT_LOAD: (usize, usize) = (15, 16);

/// The load factor from which a large shard of the greatest depth is full, unless it is planned for more items. The walks for the
/// last items of a large table take 10 microseconds each, and all shards of a filter that is planned for its size become full at
/// the same time.
const MAX_DEPTH_LOAD: (usize, usize) = (31, 32);

/// The highest load factor of large shards.
pub(super) const HIGHEST_LOAD: (usize, usize) = (49, 50);

/// The fewest slots of a large shard.
const LARGE_SHARD_SLOTS: usize = 1 << 12;

/// The load factor up to which a shard is underfull. A removal merges it with its sibling if the merged shard has at most twice
/// this load factor, which is far from full. (docs/GROWTH.md and the page of `ElasticFilter::shrink` call that two fifths.)
const UNDERFULL_LOAD: (usize, usize) = (1, 5);

/// The highest load factor of a shard that `shrink` makes by merging two.
const SHRINK_LOAD: (usize, usize) = (9, 10);

/// Up to this depth, new tables that would take more memory than a list become one. In larger filters, they soon have so many items
/// that tables take less, and tables are faster.
const MAX_LIST_DEPTH: u8 = 2;

/// Other tables become lists when their items fill a quarter of the longest list.
const LIST_AGAIN_DIVISOR: usize = 4;

/// In a staggered partition, items match an absent one in the first bits of their streams more often than if all bits were
/// independent, but by less than this factor.
const STAGGERED_MATCHES: f64 = 9.0 / 8.0;

/// The plan of a generation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct GenerationPlan {
    /// The number of the generation in its partition, from 0.
    pub number: u8,
    /// The parameters of a shard of depth 0, which would hold all items. Its upper bits are all that the generation knows of an
    /// item's stream.
    pub whole: ShardParams,
    /// The least depth of a shard. Shards of this depth are not merged.
    pub min_depth: u8,
    /// The greatest depth of a shard. Shards of this depth are not split.
    pub max_depth: u8,
    pub shares: Shares,
    /// The number of buckets of a shard in the first generation.
    pub first_buckets: u32,
    /// The number of last bits of the first generation's bucket numbers that this generation has in the stream.
    pub dropped_bits: u8,
    /// The number of stream bits after those that this generation knows that are counted with an item's copies once it is full. All
    /// later generations know them.
    pub extra_bits: u8,
    /// Upper bits that the second generation keeps at its greatest depth, so that the rates of all generations add up to at most
    /// the promised one.
    pub spare_bits: u8,
}

impl GenerationPlan {
    /// Returns the parameters of a shard of this depth.
    pub fn shard(&self, depth: u8) -> ShardParams {
        ShardParams { upper_bits: self.whole.upper_bits - depth, depth, ..self.whole }
    }

    /// Returns the number of stream bits that the generation knows of an item.
    pub fn known_bits(&self) -> u8 {
        self.whole.upper_bits
    }

    /// Returns the addressing by low fingerprints in the first generation.
    #[inline]
    pub fn address(&self) -> AnySize {
        AnySize { buckets: self.first_buckets.into(), fingerprint_bits: self.whole.low_bits.into() }
    }

    /// Returns the key of a hash. All bits of its stream are known.
    pub fn key(&self, hash: Uniform) -> Key {
        let key = self.first_key(hash);
        if self.dropped_bits == 0 { key } else { self.with_small_buckets(key) }
    }

    /// Returns the key of a hash in the first generation.
    #[inline]
    pub fn first_key(&self, hash: Uniform) -> Key {
        Key::new(&self.address(), self.shares.stream(hash), hash)
    }

    /// Returns the key of a later generation for one of the first generation whose first bucket is that of the hash.
    fn with_small_buckets(&self, key: Key) -> Key {
        let (bucket, first) = (key.buckets.0, key.buckets.0 >> self.dropped_bits);
        let second = self.whole.alternate(first, key.low);
        let inserted = (bucket & mask(self.dropped_bits.into())) << 1 | u64::from(first > second);
        let stream = insert_bits(key.stream, inserted, self.inserted_bits());
        Key { buckets: (first, second), stream, ..key }
    }

    /// Returns the number of stream bits that the first generation does not have.
    fn inserted_bits(&self) -> u32 {
        inserted_stream_bits(self.dropped_bits).into()
    }

    /// Returns the key that an item of this generation has in an earlier one. Unknown bits of its stream are 0. It may know more
    /// bits than the earlier generation does.
    ///
    /// A corrupt key may have a bucket that the earlier generation does not have; it then gets the last bucket.
    pub fn earlier(&self, key: Key, earlier: &Self) -> Key {
        debug_assert!(earlier.number <= self.number);
        if earlier.dropped_bits == self.dropped_bits {
            return key;
        }
        let (dropped, stream) = self.first_bucket_and_stream(key);
        let first = dropped.min(earlier.whole.buckets() - 1);
        Key { buckets: (first, earlier.whole.alternate(first, key.low)), stream, ..key }
    }

    /// Returns the bucket of an item's hash in the first generation, and its stream there.
    fn first_bucket_and_stream(&self, key: Key) -> (u64, u64) {
        let (one, other) = key.buckets;
        let (inserted, stream) = remove_bits(key.stream, self.inserted_bits());
        let first = if inserted & 1 == 1 { one.max(other) } else { one.min(other) };
        (first << self.dropped_bits | inserted >> 1, stream)
    }

    /// Returns the extra bits of an item whose stream is known to that length. Not 0, which means that they are unknown, unless the
    /// generation has none.
    pub fn extra(&self, key: Key) -> u32 {
        if self.extra_bits == 0 {
            return 0;
        }
        let known = u32::from(self.known_bits());
        low_half(key.stream << known >> 1 >> (63 - u32::from(self.extra_bits))).max(1)
    }
}

// Class keys: numbers that represent items in lists.

impl GenerationPlan {
    /// Returns the encoding of class keys, which have at most 89 bits.
    pub fn class_keys(&self) -> ClassKeys {
        ClassKeys::new(self.whole.buckets(), self.whole.low_bits.into(), self.known_bits().into())
    }

    /// Returns the class key of an item: the known bits of its stream, the smaller of its two buckets, and the low fingerprint, from
    /// the highest bit to the lowest.
    ///
    /// So the keys of a shard are adjacent in an ordered list, a split of the shard cuts the list in two, and neighbors in a table
    /// are neighbors in the list.
    #[inline(never)]
    pub fn class_key(&self, key: Key) -> ClassKey {
        self.class_keys().key(key.known_stream(self.whole), key.buckets, key.low.wide())
    }

    /// Returns the item that a class key represents, or `None` if the key is invalid.
    pub fn item_of(&self, class_key: ClassKey) -> Option<Key> {
        let (stream, bucket, low) = self.class_keys().parts(class_key)?;
        let low = Fingerprint::new(low)?;
        let alternate = self.whole.alternate(bucket, low);
        let key = Key { buckets: (bucket, alternate), low, stream: stream << 1 << (63 - self.known_bits()) };
        // A class key has the smaller bucket, and the first generation has that of the item's hash.
        let is_in_first = || self.dropped_bits == 0 || self.first_bucket_and_stream(key).0 < self.first_buckets.into();
        (bucket < alternate && is_in_first()).then_some(key)
    }

    /// Returns the class keys of a shard.
    pub fn class_keys_of(&self, depth: u8, prefix: u32) -> Range<ClassKey> {
        let shift = self.class_keys().bits() - u32::from(depth);
        ClassKey::from(prefix) << shift..ClassKey::from(u64::from(prefix) + 1) << shift
    }

    /// Returns the keys of entries of extra copies: a class key, and below it the extra bits.
    pub fn entry_keys(&self) -> ClassKeys {
        let low_bits = self.whole.low_bits + self.extra_bits;
        ClassKeys::new(self.whole.buckets(), low_bits.into(), self.known_bits().into())
    }

    /// Returns the length of the key of an entry in bytes.
    pub fn entry_key_bytes(&self) -> u8 {
        self.entry_keys().key_bytes()
    }

    /// Returns the key of the entry of an item with these extra bits; 0 if they are unknown.
    pub fn entry_key(&self, class_key: ClassKey, extra: u32) -> ClassKey {
        class_key << self.extra_bits | ClassKey::from(extra)
    }

    /// Returns an item's extra copies, of which `copies_of` returns those of an entry: the ones with the same extra bits, and the ones
    /// whose extra bits are unknown.
    pub fn extra_copies(&self, class_key: ClassKey, extra: u32, copies_of: impl Fn(ClassKey) -> u32) -> u32 {
        let unknown = copies_of(self.entry_key(class_key, 0));
        if extra == 0 { unknown } else { unknown.saturating_add(copies_of(self.entry_key(class_key, extra))) }
    }

    /// Returns how many items are told apart only by their extra bits among the keys of entries in order, without the first of each
    /// class.
    pub fn distinct_by_extra_bits(&self, entries: impl Iterator<Item = ClassKey>) -> usize {
        let (mut last, mut distinct) = (None, 0);
        for (class_key, _) in entries.map(|entry| self.entry_parts(entry)).filter(|&(_, extra)| extra > 0) {
            distinct += usize::from(last == Some(class_key));
            last = Some(class_key);
        }
        distinct
    }

    /// Returns the class key and the extra bits in the key of an entry.
    pub fn entry_parts(&self, entry: ClassKey) -> (ClassKey, u32) {
        (entry >> self.extra_bits, low_half(low_word(entry) & mask(self.extra_bits.into())))
    }
}

// Sizes and rates.

impl GenerationPlan {
    /// Returns true if the generation starts as an empty list: it grows, and begins with a single shard.
    pub fn begins_as_list(&self) -> bool {
        self.min_depth == 0 && self.allows_lists()
    }

    /// Returns true if shards with few items may be lists: the generation grows.
    pub fn allows_lists(&self) -> bool {
        self.min_depth < self.max_depth
    }

    /// Returns the length of a class key in a list, in bytes.
    pub fn key_bytes(&self) -> u8 {
        self.class_keys().key_bytes()
    }

    /// Returns the number of items from which a list becomes a table: those for which a table takes less memory.
    #[inline(never)]
    pub fn list_capacity(&self) -> usize {
        let by_memory = self.shard(self.min_depth).table_bytes() / usize::from(self.key_bytes());
        by_memory.min(self.share(SPLIT_LOAD)).max(self.whole.slots() / 4).max(1)
    }

    /// Returns the number of items up to which a table of this depth becomes a list when it is made by a split, or by a merge of
    /// filters. Removals, which use it with any greater depth, replace a table later, so that it does not change back and forth.
    #[inline(never)]
    pub fn list_again_at(&self, depth: u8) -> usize {
        let most = if self.allows_lists() { self.list_capacity() } else { 0 };
        if depth <= MAX_LIST_DEPTH { most } else { most / LIST_AGAIN_DIVISOR }
    }

    /// Returns the number of items from which a table of this depth is full.
    pub fn full_at(&self, depth: u8) -> u32 {
        in_shard(match depth < self.max_depth {
            true => self.share(SPLIT_LOAD),
            false if self.whole.slots() < LARGE_SHARD_SLOTS => usize::MAX,
            false => self.share(MAX_DEPTH_LOAD).max(index(fitting_items(self.whole.buckets.into(), self.whole.low_bits.into()))),
        })
    }

    /// Returns the most items of a shard. The rates of large ones are planned for a lower load than 1.
    pub fn most_items(&self) -> usize {
        if self.whole.slots() < LARGE_SHARD_SLOTS { self.whole.slots() } else { self.share(HIGHEST_LOAD) }
    }

    /// Returns the item count up to which a shard is underfull.
    pub fn merge_at(&self) -> u32 {
        in_shard(self.share(UNDERFULL_LOAD))
    }

    /// Returns the most items in a table that `shrink` makes by merging two.
    pub fn shrink_at(&self) -> usize {
        self.share(SHRINK_LOAD)
    }

    /// Returns a fraction of a shard's slots. With fewer than 16 slots, [`SPLIT_LOAD`] gives 0 and a shard splits at its next
    /// insertion: so small a table soon has no slot for an item whose buckets are both full.
    fn share(&self, (numerator, denominator): (usize, usize)) -> usize {
        self.whole.slots() / denominator * numerator
    }

    /// Returns how many items match an absent item on average in a shard with this many items, if lookups compare low fingerprints.
    fn matches(&self, items: usize) -> f64 {
        let load = items as f64 / self.whole.slots() as f64;
        mean_matches(self.whole.low_bits.into(), BUCKET_SIZE, load)
    }

    /// Returns an upper bound of how many items do if lookups compare all known bits of the stream besides.
    fn matches_in_known_bits(&self, depth: u8, items: usize) -> f64 {
        let compared_bits = self.known_bits() - depth;
        // The prefixes of such shards do not include the whole quarter.
        let factor = if depth < 2 && compared_bits > 0 { STAGGERED_MATCHES } else { 1.0 };
        factor * self.matches(items) / (1_u64 << compared_bits) as f64
    }

    /// Returns an upper bound of the false-positive rate of an item list. An absent item is found if it has the same low
    /// fingerprint, buckets and known stream bits as a listed one.
    pub fn list_false_positive_rate(&self, depth: u8, items: usize) -> f64 {
        self.matches_in_known_bits(depth, items).min(1.0)
    }

    /// Returns the probability that a shard of this depth with this many items finds an absent item. `times` is the ratio of items,
    /// extra copies included, to those in the tables ([`times_in_table`](super::times_in_table)).
    ///
    /// Lookups compare low fingerprints in the first generation, and all known bits in later ones.
    pub fn false_positive_rate(&self, depth: u8, items: usize, times: f64) -> f64 {
        let matches = if self.number == 0 { self.matches(items) } else { self.matches_in_known_bits(depth, items) };
        rate_beside_copies(matches, times)
    }

    /// Returns the share of a partition's hashes that lead to this shard.
    pub(crate) fn share_of_hashes(&self, depth: u8, prefix: u32) -> f64 {
        self.shares.prefix_share(prefix.into(), depth.into())
    }
}

/// Returns the first bits of a stream, as many as a shard's depth.
pub(super) fn prefix_of(depth: u8, stream: u64) -> u32 {
    low_half(stream >> 1 >> (63 - depth))
}

/// Converts an item count of a shard, which has fewer than 2³² items. Larger numbers become `u32::MAX`.
fn in_shard(items: usize) -> u32 {
    u32::try_from(items).unwrap_or(u32::MAX)
}

/// Returns the number of items that fit into a shard.
#[inline(never)]
pub(super) fn fitting_items(buckets: u64, f: u32) -> u64 {
    params::fitting_items(Addressing::AnySize, BUCKET_SIZE, f, buckets)
}

/// Returns how many bits later generations insert into the stream: the dropped bits of the bucket, and one that tells which of the
/// two buckets is the first.
pub(super) fn inserted_stream_bits(dropped_bits: u8) -> u8 {
    if dropped_bits == 0 { 0 } else { dropped_bits + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        elastic::{ElasticParams, plan::ElasticRequest},
        hash::split_mix,
    };
    use proptest::{prelude::*, test_runner::RngSeed};

    /// Parameters of filters of all sizes, growing or planned, with one partition or many.
    fn params() -> impl Strategy<Value = ElasticParams> {
        let sizes = prop_oneof![
            Just((None, None)),
            (0u64..2_000_000).prop_map(|items| (Some(items), None)),
            (1u64..100_000_000).prop_map(|items| (Some(items), Some(items))),
            (1u64..1 << 40).prop_map(|items| (Some(items), Some(items))),
            (1u64..1 << 40).prop_map(|items| (None, Some(items))),
        ];
        (sizes, prop::sample::select(&[0.9, 0.5, 0.1, 0.01, 0.001, 1e-5, 1e-7, 1e-8][..]), 0u32..=8).prop_map(
            |((capacity, max_capacity), rate, partition_bits)| {
                let false_positive_rate = Some(rate);
                let partitions = Some(1 << partition_bits);
                ElasticRequest { capacity, max_capacity, false_positive_rate, partitions, seed: 0 }
                    .params()
                    .expect("a valid request")
            },
        )
    }

    /// Parameters of one of those filters, or a staggered one of shards with any number of buckets, as a snapshot may have them.
    fn any_params() -> impl Strategy<Value = ElasticParams> {
        let unusual = (params(), 1u32..1 << 16, 0u8..=8, any::<bool>(), 0u8..20).prop_map(
            |(params, pairs, partition_bits, is_staggered, max_depth)| {
                let shares = Shares::new(partition_bits, is_staggered);
                let params = ElasticParams { buckets: 2 * pairs, shares, min_depth: 0, max_depth, ..params };
                params.checked().expect("valid parameters")
            },
        );
        prop_oneof![params(), unusual]
    }

    /// Returns the bits by which a plan knows a key.
    fn known(plan: &GenerationPlan, key: Key) -> (u64, u64, u64, u64) {
        let (one, other) = key.buckets;
        (one.min(other), one.max(other), key.low.wide(), key.known_stream(plan.whole))
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, cases: if cfg!(miri) { 10 } else { 2000 }, ..ProptestConfig::default() })]

        /// The bits that a generation knows of an item determine those that each earlier one knows.
        #[test]
        fn keys_nest(params in any_params(), hash: u64, number in 0u8..40, before in 0u8..40) {
            let (number, before) = (number.max(before), number.min(before));
            let (plan, earlier) = (params.generation(number), params.generation(before));
            let (key, expected) = (plan.key(Uniform(hash)), earlier.key(Uniform(hash)));
            let projected = plan.earlier(key, &earlier);
            prop_assert_eq!(known(&earlier, projected), known(&earlier, expected));
            // The class key has no more than the generation knows.
            let stored = plan.item_of(plan.class_key(key)).expect("a valid key");
            prop_assert_eq!(known(&plan, stored), known(&plan, key));
            let projected = plan.earlier(stored, &earlier);
            prop_assert_eq!(known(&earlier, projected), known(&earlier, expected));
            prop_assert_eq!(earlier.class_key(projected), earlier.class_key(expected));
            // So does the projection by way of a generation between them.
            let between = params.generation(before.midpoint(number));
            let in_steps = between.earlier(plan.earlier(stored, &between), &earlier);
            prop_assert_eq!(known(&earlier, in_steps), known(&earlier, expected));
        }

        /// In the stream of a generation, every item of the next one has more known bits.
        #[test]
        fn the_next_generation_knows_extra_bits(params in any_params(), hash: u64, number in 0u8..40) {
            let (plan, next) = (params.generation(number), params.generation(number + 1));
            let more = ShardParams { upper_bits: plan.known_bits() + plan.extra_bits, ..plan.whole };
            let stored = next.item_of(next.class_key(next.key(Uniform(hash)))).expect("a valid key");
            let (expected, projected) = (plan.key(Uniform(hash)), next.earlier(stored, &plan));
            prop_assert_eq!(projected.known_stream(more), expected.known_stream(more));
            prop_assert_eq!(plan.extra(projected), plan.extra(expected));
        }

        /// An item's extra copies are those of each entry that may be its own, once.
        #[test]
        fn extra_copies_are_counted_once(params in any_params(), hash: u64, number in 0u8..40) {
            let plan = params.generation(number);
            let key = plan.key(Uniform(hash));
            let (class_key, extra) = (plan.class_key(key), plan.extra(key));
            let entries = if extra == 0 { 1 } else { 2 };
            prop_assert_eq!(plan.extra_copies(class_key, extra, |entry| u32::from(plan.entry_parts(entry).0 == class_key)), entries);
            prop_assert_eq!(extra == 0, plan.extra_bits == 0);
        }

        /// A shard of any depth stores what the generation knows of an item, in either bucket.
        #[test]
        fn shards_store_what_a_generation_knows(params in any_params(), hash: u64, number in 0u8..40, depth: u8, is_second: bool) {
            let plan = params.generation(number);
            let depth = plan.min_depth + depth % (plan.max_depth - plan.min_depth + 1);
            let (key, shard) = (plan.key(Uniform(hash)), plan.shard(depth));
            let prefix = key.known_stream(ShardParams { upper_bits: depth, ..plan.whole });
            let bucket = if is_second { key.buckets.1 } else { key.buckets.0 };
            let stored = Key::from_stored(shard, prefix, bucket, key.fingerprint(shard.upper()));
            prop_assert_eq!(known(&plan, stored), known(&plan, key));
            // Its list has the same, in the range of the shard.
            prop_assert_eq!(u64::from(prefix_of(depth, key.stream)), prefix);
            prop_assert!(plan.class_keys_of(depth, low_half(prefix)).contains(&plan.class_key(key)));
        }

        /// Each number is the class key of one item or of none.
        #[test]
        fn items_have_one_class_key(params in any_params(), number in 0u8..40, class_key: u128, longer in 0u32..10) {
            let plan = params.generation(number);
            let class_key = class_key >> (u128::BITS - plan.class_keys().bits() - longer / 9);
            if let Some(item) = plan.item_of(class_key) {
                prop_assert_eq!(plan.class_key(item), class_key);
                prop_assert!(item.buckets.0.max(item.buckets.1) < plan.whole.buckets());
                let first = plan.earlier(item, &params.generation(0));
                prop_assert!(params.generation(0).item_of(params.generation(0).class_key(first)).is_some());
            }
        }

        /// Class keys are in the order of streams, buckets and low fingerprints.
        #[test]
        fn class_keys_are_in_natural_order(params in any_params(), number in 0u8..40, hashes: [u64; 2], same in 0..3) {
            let plan = params.generation(number);
            let [one, mut other] = hashes.map(|hash| plan.key(Uniform(hash)));
            other.stream = if same > 0 { one.stream } else { other.stream };
            other.buckets = if same > 1 { one.buckets } else { other.buckets };
            let parts = |key: Key| (key.known_stream(plan.whole), key.buckets.0.min(key.buckets.1), key.low.wide());
            prop_assert_eq!(plan.class_key(one).cmp(&plan.class_key(other)), parts(one).cmp(&parts(other)));
        }

        /// A corrupt key leads to a bucket that exists.
        #[test]
        fn corrupt_keys_have_valid_buckets(params in any_params(), number in 1u8..40, bucket: u64, low: u32, stream: u64) {
            let plan = params.generation(number);
            let low = Fingerprint::new(low.max(1).into()).expect("not zero").low(params.low_bits.into());
            let bucket = bucket % plan.whole.buckets();
            let key = Key { buckets: (bucket, plan.whole.alternate(bucket, low)), low, stream };
            let Key { buckets: (first, second), .. } = plan.earlier(key, &params.generation(0));
            prop_assert!(first.max(second) < params.buckets.into());
        }
    }

    /// Checks that a class key is invalid if it leads to a bucket that the first generation does not have.
    #[test]
    fn class_keys_lead_to_buckets_of_the_first_generation() {
        let params = ElasticParams::planned(0.01, 1_000_000, 1_000_000);
        let plan = params.generation(1);
        let last = u64::from(params.buckets - 1);
        let (bucket, dropped) = (last >> plan.dropped_bits, last & mask(plan.dropped_bits.into()));
        assert_ne!(dropped, mask(plan.dropped_bits.into()), "the last bucket is incomplete");
        let mut valid = [0; 2];
        for low in (1..1000).filter_map(Fingerprint::new) {
            let buckets = (bucket, plan.whole.alternate(bucket, low));
            for (beyond, valid) in valid.iter_mut().enumerate() {
                let inserted = (dropped + beyond as u64) << 1 | u64::from(bucket > buckets.1);
                let key = Key { buckets, low, stream: insert_bits(0, inserted, plan.inserted_bits()) };
                *valid += u32::from(plan.item_of(plan.class_key(key)).is_some());
            }
        }
        assert_eq!(valid, [999, 0]);
    }

    /// Checks that items of a later generation are spread over its buckets and shards as stated.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn later_generations_distribute_hashes_as_stated() {
        const HASHES: u32 = 500_000;
        const BITS: u8 = 12;
        for (capacity, dropped_bits) in [(1_000_000, 8), (2_000, 2), (100, 0)] {
            let params = ElasticParams::planned(0.01, capacity, capacity);
            let plan = params.generation(1);
            assert_eq!(plan.dropped_bits, dropped_bits, "{plan:?}");
            let (mut buckets, mut prefixes) = ([0_u32; 256], [0_u32; 1 << BITS]);
            for n in 0..HASHES {
                let key = plan.key(Uniform(split_mix(n.into())));
                assert_ne!(key.buckets.0, key.buckets.1);
                buckets[index(key.buckets.0)] += 1;
                prefixes[index(key.known_stream(ShardParams { upper_bits: BITS, ..plan.whole }))] += 1;
            }
            let is_near = |count: u32, share: f64| {
                let mean = f64::from(HASHES) * share;
                (f64::from(count) - mean).abs() < 6.0 * mean.sqrt()
            };
            for (prefix, &count) in prefixes.iter().enumerate() {
                assert!(is_near(count, plan.share_of_hashes(BITS, low_half(prefix as u64))), "{prefix:b}: {count}, {plan:?}");
            }
            // The last bucket may have fewer hashes, and one that only rounds their number up has none.
            let full = index((params.buckets >> dropped_bits).into());
            let share = f64::from(1_u32 << dropped_bits) / f64::from(params.buckets);
            assert!(buckets[..full].iter().all(|&count| is_near(count, share)), "{buckets:?}");
        }
    }
}
