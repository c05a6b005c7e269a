//! Memory and counts follow what is in a filter, at every rate, with every plan, before and beyond it, even with chosen items.
//!
//! These tests compare sizes, charges and counts, which are the same on every machine. `cargo bench --bench growth -- edges` and
//! `cargo bench --bench pauses` measure times, and more items.

#![allow(clippy::cast_sign_loss, reason = "the numbers are positive")]

use crate::{
    common::{SplitMix64, chosen::Plan, filled, key},
    operations::sections::{RECORD, sections},
};
use koel::{ElasticBuilder, ElasticFilter, InsertErrorKind, MergeError, ParamError, Prehashed};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    iter,
    ops::Range,
};

const RATES: [f64; 9] = [0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8];

fn builder(rate: f64) -> ElasticBuilder {
    ElasticFilter::builder().false_positive_rate(rate)
}

fn planned(rate: f64, capacity: usize, max_capacity: usize) -> ElasticBuilder {
    builder(rate).capacity(capacity).max_capacity(max_capacity)
}

/// Checks many cases, and reports all that fail.
#[derive(Default)]
struct Sweep {
    cases: usize,
    failures: Vec<String>,
}

impl Sweep {
    fn at_most(&mut self, value: f64, limit: f64, case: impl Display) {
        self.check(value <= limit, format_args!("{value:.4} of at most {limit:.4}: {case}"));
    }

    /// Returns a filter with this number of items, or reports that it is refused or large when it is empty. Then it is not built.
    fn filled(&mut self, builder: ElasticBuilder, items: u64, case: &str) -> Option<ElasticFilter> {
        let bytes = builder.clone().params().map(|params| params.size_in_bytes());
        self.check(bytes.as_ref().is_ok_and(|&bytes| bytes <= 1 << 16), format_args!("{bytes:?} bytes when it is empty: {case}"));
        bytes.is_ok_and(|bytes| bytes <= 1 << 16).then(|| filled(builder, items))
    }

    fn check(&mut self, holds: bool, case: impl Display) {
        self.cases += 1;
        if !holds {
            self.failures.push(case.to_string());
        }
    }

    fn finish(self) {
        let (failed, first) = (self.failures.len(), self.failures.iter().take(40).map(String::as_str).collect::<Vec<_>>());
        assert!(self.cases > 0 && failed == 0, "{failed} of {} cases failed:\n{}", self.cases, first.join("\n"));
    }
}

mod memory {
    use super::*;

    /// Returns the largest `max_capacity`, which does not depend on the rate.
    fn largest() -> usize {
        match builder(0.1).max_capacity(usize::MAX).params() {
            Err(ParamError::MaxCapacity { max, .. }) => max,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_empty_filter_takes_460_bytes_at_every_rate_and_with_every_plan() {
        let mut sweep = Sweep::default();
        let plans = [None, Some(1_000_000), Some(1_000_000_000), Some(largest())];
        for rate in RATES {
            for plan in plans {
                let builder = plan.map_or(builder(rate), |items| builder(rate).max_capacity(items));
                let case = format!("empty, a rate of {rate:e}, max_capacity {plan:?}");
                if let Some(filter) = sweep.filled(builder, 0, &case) {
                    sweep.at_most(filter.size_in_bytes() as f64, 460.0, case);
                }
            }
        }
        sweep.finish();
    }

    /// A thousand items take 27 bits each, and what the rate needs.
    #[test]
    fn a_thousand_items_take_little_memory_at_every_rate() {
        let mut sweep = Sweep::default();
        for rate in RATES {
            let case = format!("a rate of {rate:e}");
            if let Some(filter) = sweep.filled(builder(rate), 1000, &case) {
                sweep.at_most(filter.bits_per_item(), (1.0 / rate).log2() + 27.0, case);
            }
        }
        sweep.finish();
    }

    /// Returns the bytes of a filter with as many items as planned, and those with each multiple of it.
    fn multiples(builder: ElasticBuilder, items: u64, times: &[f64]) -> (f64, Vec<f64>) {
        let mut filter = filled(builder, items);
        let first = filter.size_in_bytes() as f64;
        let bytes = times.iter().map(|times| {
            let more = (items as f64 * times) as u64;
            filter.insert_iter((filter.len() as u64..more).map(key)).expect("the filter grows");
            filter.size_in_bytes() as f64
        });
        (first, bytes.collect())
    }

    fn check_beyond(rate: f64) {
        const ITEMS: u64 = 200_000;
        let mut sweep = Sweep::default();
        let items = ITEMS as usize;
        let (times, limits) = ([1.02, 1.1, 2.0], [1.03, 1.3, 3.7]);
        for capacity in [items, 1000] {
            let (first, bytes) = multiples(planned(rate, capacity, items), ITEMS, &times);
            for ((bytes, times), limit) in bytes.iter().zip(times).zip(limits) {
                let case = format_args!("{times} × the plan, a rate of {rate}, capacity {capacity}");
                sweep.at_most(bytes / first, limit, case);
            }
        }
        let (first, bytes) = multiples(planned(rate, items, items).partitions(16), ITEMS, &[1.1]);
        sweep.at_most(bytes[0] / first, 1.2, format_args!("1.1 × the plan in 16 partitions, a rate of {rate}"));
        sweep.finish();
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn beyond_the_plan_memory_follows_the_items_at_1e_2() {
        check_beyond(1e-2);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn beyond_the_plan_memory_follows_the_items_at_1e_3() {
        check_beyond(1e-3);
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn beyond_the_plan_memory_follows_the_items_at_1e_5() {
        check_beyond(1e-5);
    }

    /// A hundredth more items never take a fifth more memory, from half the plan to twenty times the plan.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn no_hundredth_more_items_take_a_fifth_more_memory() {
        const ITEMS: usize = 20_000;
        let mut sweep = Sweep::default();
        for (rate, capacity) in [(1e-2, ITEMS), (1e-3, ITEMS), (1e-3, ITEMS / 20), (1e-5, ITEMS)] {
            let mut filter = filled(planned(rate, capacity, ITEMS), ITEMS as u64 / 2);
            let mut before = filter.size_in_bytes() as f64;
            while filter.len() < 20 * ITEMS {
                let items = filter.len() as u64;
                filter.insert_iter((items..items + items / 100).map(key)).expect("the filter grows");
                let bytes = filter.size_in_bytes() as f64;
                // The shards of a later generation have equal shares of the items, so many of them split at nearly the same size.
                sweep.at_most(bytes / before, 1.2, format_args!("{items} items, a rate of {rate}, capacity {capacity}"));
                before = bytes;
            }
        }
        sweep.finish();
    }

    /// A rate that is a twentieth lower never takes a quarter more memory with a list of items, or a tenth with tables.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn no_slightly_lower_rate_takes_much_more_memory() {
        let mut sweep = Sweep::default();
        for (items, limit) in [(0, 1.0), (500, 1.25), (5000, 1.1)] {
            let (mut rate, mut before) = (0.5, f64::MAX);
            while rate > 1e-8 {
                let case = format!("{items} items, a rate of {rate:e}");
                if let Some(filter) = sweep.filled(builder(rate), items, &case) {
                    let bytes = filter.size_in_bytes() as f64;
                    sweep.at_most(bytes / before, limit, case);
                    before = bytes;
                }
                rate *= 0.95;
            }
        }
        sweep.finish();
    }

    /// The mean over log n, with the samples of `cargo bench --bench growth -- space`.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn a_default_filter_takes_34_bits_per_item_on_average() {
        let mut filter = builder(0.001).build().expect("valid parameters");
        let (mut next, mut bits) = (1000.0, Vec::new());
        while next < 1e6 {
            filter.insert_iter((filter.len() as u64..next as u64).map(key)).expect("the filter grows");
            bits.push(filter.bits_per_item());
            next *= 1.01;
        }
        let mean = bits.iter().sum::<f64>() / bits.len() as f64;
        assert!(mean <= 34.16, "{mean:.2} bits, at most 34.16");
    }
}

mod counts {
    use super::*;

    const ITEMS: u64 = 100_000;
    const COPIES: u32 = 3;

    /// The order in which all copies of the items are inserted.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Order {
        /// Each item's copies one after another.
        InARow,
        /// All items once, then all items again.
        Passes,
        /// The last pass in the opposite direction.
        Reversed,
        /// Each item's copies at random times.
        Interleaved,
    }

    use Order::{InARow, Interleaved, Passes, Reversed};

    fn ordered(items: Range<u64>, copies: u32, order: Order) -> Vec<u64> {
        let all = || items.clone().map(key);
        match order {
            InARow => all().flat_map(|item| iter::repeat_n(item, copies as usize)).collect(),
            Passes => (0..copies).flat_map(|_| all()).collect(),
            Reversed => (0..copies)
                .flat_map(|pass| if pass + 1 < copies { all().collect::<Vec<_>>() } else { all().rev().collect() })
                .collect(),
            Interleaved => {
                let mut keys = ordered(items, copies, Passes);
                SplitMix64(7 << 32).shuffle(&mut keys);
                keys
            }
        }
    }

    /// How a filter with a given `max_capacity` is planned.
    #[derive(Clone, Copy, Debug)]
    enum Shape {
        /// `capacity` is `max_capacity`: within the plan, it does not grow.
        Whole,
        /// It is planned as `Whole`, with 16 partitions.
        Partitions,
        /// `capacity` is 1: it grows within the plan, too.
        Grown,
    }

    use Shape::{Grown, Partitions, Whole};

    impl Shape {
        fn builder(self, rate: f64, plan: usize) -> ElasticBuilder {
            match self {
                Whole => planned(rate, plan, plan),
                Partitions => planned(rate, plan, plan).partitions(16),
                Grown => planned(rate, 1, plan),
            }
        }
    }

    fn with_copies(builder: ElasticBuilder, items: Range<u64>, copies: u32, order: Order) -> ElasticFilter {
        let mut filter = builder.build().expect("valid parameters");
        filter.insert_iter(ordered(items, copies, order)).expect("the filter grows");
        filter
    }

    /// Checks that each item has at least this many copies, and that few have more.
    fn check_counts(sweep: &mut Sweep, filter: &ElasticFilter, copies: u32, items: u64, share: f64, case: &str) {
        let (mut low, mut high) = (0, 0);
        for count in (0..items).map(|item| filter.count(&key(item))) {
            low += u64::from(count < copies);
            high += u64::from(count > copies);
        }
        sweep.check(low == 0, format_args!("{low} counts are too low: {case}"));
        // A collision makes the counts of two items too high.
        let margin = 6.0 * (2.0 * share / items as f64).sqrt();
        sweep.at_most(high as f64 / items as f64, share + margin, format_args!("counts are too high: {case}"));
    }

    fn check(rate: f64, plan: usize) {
        let mut sweep = Sweep::default();
        for (order, shape) in [(InARow, Whole), (Passes, Whole), (Passes, Partitions), (Passes, Grown), (Interleaved, Grown)] {
            let filter = with_copies(shape.builder(rate, plan), 0..ITEMS, COPIES, order);
            let case = format!("{order:?}, {shape:?}, a rate of {rate:e}, planned for {plan}");
            assert_eq!(filter.len() as u64, ITEMS * u64::from(COPIES));
            let off = filter.distinct() as f64 / ITEMS as f64 - 1.0;
            sweep.at_most(off.abs(), rate + 0.001, format_args!("{off}, distinct: {case}"));
            check_counts(&mut sweep, &filter, COPIES, ITEMS, rate, &case);
            sweep.at_most(filter.false_positive_rate(), rate, &case);
        }
        sweep.finish();
    }

    /// Filters with equal, overlapping and other items, which came in other orders.
    fn check_unions(rate: f64, plan: usize) {
        const ITEMS: u64 = 30_000;
        let mut sweep = Sweep::default();
        let mut possible = 0;
        for (first, order, other, shape) in [
            (0, Passes, Passes, Whole),
            (0, Passes, Reversed, Whole),
            (0, Passes, Reversed, Partitions),
            (0, InARow, Passes, Grown),
            (ITEMS / 2, Passes, Interleaved, Whole),
            (ITEMS / 2, Passes, Interleaved, Grown),
            (ITEMS, InARow, Passes, Whole),
        ] {
            let case = format!("{order:?} and {other:?}, {shape:?}, from {first}, a rate of {rate:e}, planned for {plan}");
            let mut union = with_copies(shape.builder(rate, plan), 0..ITEMS, 2, order);
            let second = with_copies(shape.builder(rate, plan), first..first + ITEMS, 2, other);
            match union.union(&second) {
                Ok(()) => {
                    possible += 1;
                    let items = first + ITEMS;
                    for (what, number, truth) in [("len", union.len(), 2 * items), ("distinct", union.distinct(), items)] {
                        let off = number as f64 / truth as f64 - 1.0;
                        sweep.at_most(off.abs(), rate + 0.001, format_args!("{off}, {what} of the union: {case}"));
                    }
                    check_counts(&mut sweep, &union, 2, items, rate, &case);
                    union.assert_consistent();
                }
                // The items of one filter's first generation may be in a later one of the other, which knows too few of them.
                Err(error) => sweep.check(matches!(error, MergeError::MaxCapacity { .. }), format_args!("{error}: {case}")),
            }
        }
        sweep.check(possible >= 4, format_args!("{possible} unions: a rate of {rate:e}, planned for {plan}"));
        sweep.finish();
    }

    /// Beyond the plan, each of the two filters has other items in its first generation.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn a_union_of_equal_items_in_another_order_is_right_or_refused() {
        const ITEMS: u64 = 20_000;
        let (mut sweep, mut possible) = (Sweep::default(), 0);
        for (rate, plan) in [(0.1, 20_000), (0.1, 10_000), (0.01, 400), (1e-3, 20_000), (1e-3, 10_000), (1e-3, 400), (1e-6, 400)]
        {
            let mut union = with_copies(Whole.builder(rate, plan), 0..ITEMS, 2, Passes);
            let case = format!("a rate of {rate:e}, planned for {plan}");
            match union.union(&with_copies(Whole.builder(rate, plan), 0..ITEMS, 2, Interleaved)) {
                Ok(()) => {
                    possible += 1;
                    let off = union.len() as f64 / (2 * ITEMS) as f64 - 1.0;
                    sweep.at_most(off.abs(), rate + 0.001, format_args!("{off}, len of the union: {case}"));
                    check_counts(&mut sweep, &union, 2, ITEMS, rate, &case);
                }
                // The items of one filter's first generation may be in a later one of the other, which knows too few of them.
                Err(error) => sweep.check(matches!(error, MergeError::MaxCapacity { .. }), format_args!("{error}: {case}")),
            }
        }
        sweep.check(possible >= 2, format_args!("{possible} unions"));
        sweep.finish();
    }

    macro_rules! tests {
        ($($rate:ident, $value:expr;)*) => {$(
            mod $rate {
                use super::*;

                #[test]
                #[cfg_attr(miri, ignore = "takes too long")]
                fn an_item_is_one_item_up_to_twice_the_plan() {
                    check($value, 50_000);
                }

                #[test]
                #[cfg_attr(miri, ignore = "takes too long")]
                fn an_item_is_one_item_up_to_50_times_the_plan() {
                    check($value, 2000);
                }

                #[test]
                #[cfg_attr(miri, ignore = "takes too long")]
                fn a_union_has_each_item_once_up_to_twice_the_plan() {
                    check_unions($value, 15_000);
                }

                #[test]
                #[cfg_attr(miri, ignore = "takes too long")]
                fn a_union_has_each_item_once_up_to_50_times_the_plan() {
                    check_unions($value, 600);
                }
            }
        )*};
    }

    tests! {
        at_1e_1, 0.1;
        at_1e_2, 0.01;
        at_1e_3, 1e-3;
        at_1e_6, 1e-6;
    }
}

mod merges {
    use super::*;

    fn number(n: u64) -> u64 {
        SplitMix64(n).next().unwrap_or_default()
    }

    /// Returns the items of one of three filters.
    fn items(seed: u64, which: u64) -> impl Iterator<Item = u64> {
        let first = seed << 40;
        let items = 200 + number(first + which) % 1500;
        (0..items).map(move |n| number(first + (which + 1) * 10_000 + n))
    }

    fn filled_with(builder: &ElasticBuilder, items: impl Iterator<Item = u64>) -> ElasticFilter {
        let mut filter = builder.clone().build().expect("valid parameters");
        filter.insert_iter(items).expect("the filter grows");
        filter
    }

    /// Returns three filters, the second of which has grown and shrunk before.
    fn three(builder: &ElasticBuilder, seed: u64) -> [ElasticFilter; 3] {
        let before = 1 << 60;
        let [one, mut two, three] = [0, 1, 2].map(|which| filled_with(builder, items(seed, which)));
        two.insert_iter((0..1500).map(|n| number(before + n))).expect("the filter grows");
        (0..1500).for_each(|n| assert!(two.remove(&number(before + n))));
        [one, two, three]
    }

    /// Merges three filters in two orders.
    fn merged_in_two_orders([one, two, three]: &[ElasticFilter; 3]) -> [ElasticFilter; 2] {
        let merged = |into: &ElasticFilter, other: &ElasticFilter| {
            let mut into = into.clone();
            into.merge(other).expect("the plan has room");
            into
        };
        [merged(&merged(one, two), three), merged(one, &merged(two, three))]
    }

    /// (x + y) + z answers as x + (y + z), for filters that grew and shrank before.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn the_order_of_merges_does_not_matter_after_growth_and_removals() {
        let mut sweep = Sweep::default();
        for (seed, builder) in (100..290).map(|seed| {
            let rate = [0.1, 0.01, 0.001][seed as usize % 3];
            (seed, builder(rate).capacity(100).max_capacity(5000).partitions(1 + 3 * (seed as usize / 3 % 2)))
        }) {
            let [left, right] = merged_in_two_orders(&three(&builder, seed));
            let differ = (0..1000_u64).filter(|n| left.contains(n) != right.contains(n)).count();
            let differ = differ + (0..1000_u64).filter(|n| left.count(n) != right.count(n)).count();
            let shards = [&left, &right].map(ElasticFilter::shards);
            let case = format!("{differ} of 2000 answers differ with {shards:?} shards: seed {seed}");
            sweep.check(differ == 0 && left.len() == right.len(), case);
        }
        sweep.finish();
    }

    /// If a filter tells all items apart, its shards and sizes follow from them, in whatever order filters are merged. (In those with
    /// the last seeds, a merged list takes more memory than its two halves, because the memory of lists is rounded up.)
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn shards_follow_from_the_items() {
        let mut sweep = Sweep::default();
        for seed in (290..320).chain([770, 1130, 1544, 2042, 2252]) {
            let builder = planned(1e-5, 100, 5000).partitions(1 + 3 * (seed as usize / 3 % 2));
            let all = filled_with(&builder, (0..3).flat_map(|which| items(seed, which)));
            assert_eq!(all.distinct(), all.len(), "seed {seed}: the filter takes items for copies");
            let facts = |filter: &ElasticFilter| {
                let sizes = [filter.shards(), filter.table_len(), filter.size_in_bytes(), filter.charged_bytes()];
                (sizes, filter.slots(), filter.false_positive_rate().to_bits())
            };
            for merged in merged_in_two_orders(&three(&builder, seed)) {
                merged.assert_consistent();
                let (found, expected) = (facts(&merged), facts(&all));
                sweep.check(found == expected, format_args!("{found:?} instead of {expected:?}: seed {seed}"));
            }
        }
        sweep.finish();
    }

    /// A merge gives the sum of both counts, also beyond the plan and with itself.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn a_merge_with_itself_doubles_all_counts() {
        const ITEMS: u64 = 4000;
        let mut sweep = Sweep::default();
        for (rate, plan) in [(0.1, 2000), (0.01, 200), (1e-3, 2000), (1e-3, 80), (1e-6, 200), (1e-3, 10_000)] {
            let mut filter = filled(planned(rate, plan, plan), ITEMS);
            let (distinct, bytes) = (filter.distinct(), filter.table_bytes());
            for doublings in 1..=20 {
                let copy = filter.clone();
                filter.merge(&copy).expect("copies need no further generation");
                let case = format!("doubled {doublings} times, a rate of {rate:e}, planned for {plan}");
                sweep.check(filter.len() as u64 == ITEMS << doublings, &case);
                sweep.check(
                    filter.distinct() == distinct,
                    format_args!("{} instead of {distinct} distinct items: {case}", filter.distinct()),
                );
                sweep.check(
                    filter.table_bytes() == bytes,
                    format_args!("tables of {} instead of {bytes} bytes: {case}", filter.table_bytes()),
                );
            }
            let counts = || (0..ITEMS).map(|n| filter.count(&key(n)));
            sweep.check(counts().all(|count| count >= 1 << 20), format_args!("a count is too low: a rate of {rate:e}"));
            let high = counts().filter(|&count| count > 1 << 20).count() as f64 / ITEMS as f64;
            let margin = 6.0 * (2.0 * rate / ITEMS as f64).sqrt();
            sweep.at_most(high, rate + margin, format_args!("counts are too high: a rate of {rate:e}, planned for {plan}"));
            filter.assert_consistent();
        }
        sweep.finish();
    }
}

mod chosen {
    use super::*;
    use koel::{CuckooFilter, TableKind};

    #[test]
    fn the_inverse_leads_to_the_chosen_bucket_and_fingerprint() {
        for (f, m) in [(8, 1002), (16, 256), (32, 6)] {
            let plan = Plan { f, m, partition_bits: 0, is_staggered: false, known_bits: 0 };
            for (i, t) in [(0, 1), (m - 1, 2), (m / 2, (1 << f) - 1), (m / 3, 77)] {
                let builder = CuckooFilter::builder().table(TableKind::Single).fingerprint_bits(f).bucket_size(1).buckets(m);
                let mut filter = builder.build().expect("valid parameters");
                filter.insert(&Prehashed(plan.hash(i, t, [1, 2]).expect("a hash exists"))).expect("there is room");
                let (width, table) = (f as usize / 8, filter.to_table());
                let slot = &table[i as usize * width..][..width];
                assert_eq!(slot, &t.to_le_bytes()[..width], "bucket {i}, fingerprint {t}, f = {f}, m = {m}");
                let j = plan.alternate(i, t);
                assert_eq!(plan.alternate(j, t), i, "the alternate bucket is an involution");
            }
        }
    }

    #[test]
    fn items_with_a_chosen_stream_are_copies_of_each_other() {
        for builder in [builder(0.001), builder(0.001).partitions(4), planned(0.01, 1000, 1000), builder(0.1)] {
            let mut filter = builder.build().expect("valid parameters");
            let plan = Plan::of(&filter);
            for (bucket, prefix) in [(0, 0), (plan.m - 1, (1 << 20) - 1), (plan.m / 2, 0x5_5555), (1, 0xb_0000)] {
                let copies: Vec<u64> = plan.hashes(bucket, 5, [prefix << 14, 34]).take(3).collect();
                assert_eq!(copies.len(), 3);
                copies.iter().for_each(|&hash| filter.insert(&Prehashed(hash)).expect("there is room"));
                assert!(copies.iter().all(|&hash| filter.count(&Prehashed(hash)) == 3), "bucket {bucket}, prefix {prefix:x}");
                let other = plan.hash(bucket, 6, [prefix << 14, 34]).expect("a hash exists");
                assert_eq!(filter.count(&Prehashed(other)), 0);
            }
        }
    }

    /// Hashes with one bucket, of which some are in one shard, fill that one while it cannot split. Another copy of an item there has no
    /// room as a new item has: it is counted.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn copies_of_chosen_items_are_accepted_and_add_no_generation() {
        let mut beyond = 0;
        for (rate, plan, max_capacity) in [(1e-8, 1, 1), (1e-8, 100, 200), (1e-6, 1, 1), (0.001, 100, 100)] {
            for (step, items) in (100..3000).step_by(100).enumerate() {
                let mut filter = planned(rate, plan, max_capacity).build().expect("valid parameters");
                let addressing = Plan::of(&filter);
                let chosen = |n: u64| addressing.hashes(0, 1 + n, [0, 30]).nth(step % 3).unwrap_or(n);
                let accepted: Vec<_> =
                    (0..items).map(|n| Prehashed(chosen(n))).filter(|hash| filter.insert(hash).is_ok()).collect();
                let case = format!("{} of {items} items, rate {rate:e}, planned for {plan} to {max_capacity}", accepted.len());
                let lookup = filter.buckets_per_lookup();
                for copies in 2..4 {
                    accepted.iter().for_each(|hash| filter.insert(hash).unwrap_or_else(|error| panic!("{case}: {error}")));
                    assert!(accepted.iter().all(|hash| filter.count(hash) >= copies), "{case}");
                }
                assert_eq!(filter.buckets_per_lookup(), lookup, "copies add a generation: {case}");
                filter.assert_consistent();
                beyond += usize::from(lookup > 2);
                // The union has an item more, which may be in the first generation, so all later ones are united item by item.
                let mut other = planned(rate, plan, max_capacity).build().expect("valid parameters");
                other.insert(&key(7)).expect("there is room");
                if filter.union(&other).is_ok() {
                    assert!(accepted.iter().all(|hash| filter.count(hash) >= 3), "the union has lost a copy: {case}");
                }
                let are_removed = accepted.iter().all(|hash| (0..3).all(|_| filter.remove(hash)));
                assert!(are_removed, "a copy is lost: {case}");
            }
        }
        assert!(beyond > 50, "only {beyond} filters have more than one generation");
    }

    /// Where the last generation has no room for chosen items of one pair of buckets, they go into the first one. It does not tell them
    /// apart from items of the last one, whose further copies are counted there, too. A union has all of them.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn a_union_has_the_copies_of_chosen_items_in_several_generations() {
        let (mut united, mut refused) = (0, 0);
        for (rate, plan) in [(1e-3, 2000), (1e-3, 2400), (0.01, 2000), (0.01, 2400)] {
            for seed in 0..60 {
                let mut random = SplitMix64(seed);
                let mut filter = planned(rate, plan, plan).build().expect("valid parameters");
                filter.insert_iter((0..plan as u64 * 139 / 100).map(key)).expect("the filter grows");
                // The first generation has room again, and the last one few items.
                let removed: Vec<u64> = (0..plan as u64).filter(|_| random.below(5) < 2).collect();
                assert!(removed.iter().all(|&n| filter.remove(&key(n))) && filter.buckets_per_lookup() > 2);
                let addressing = Plan::of(&filter);
                let bucket = addressing.m / 3;
                let fingerprints = addressing.fingerprints_of_one_pair(bucket);
                let (prefix, shift) = (random.below(4), 14 + random.below(16));
                let mut crowd = |filter: &mut ElasticFilter, model: &mut BTreeMap<u64, u32>, items: u64| {
                    for _ in 0..items {
                        let t = *random.pick(&fingerprints[..fingerprints.len().min(12)]);
                        let hash = addressing.hash(bucket, t, [prefix << 30 | random.below(8) << shift, 32]);
                        for hash in iter::repeat_n(hash, 1 + random.below(5) as usize).flatten() {
                            match filter.insert(&Prehashed(hash)) {
                                Ok(()) => *model.entry(hash).or_default() += 1,
                                Err(error) => assert_eq!(error.kind(), InsertErrorKind::Crowded),
                            }
                            refused += usize::from(!filter.contains(&Prehashed(hash)));
                        }
                    }
                };
                // One has other items, and one the same ones and some copies.
                let mut others = [planned(rate, plan, plan).build().expect("valid parameters"), filter.clone()];
                let mut models = [BTreeMap::new(), BTreeMap::new()];
                others[0].insert_iter((1_000_000..1_000_003).map(key)).expect("there is room");
                crowd(&mut others[1], &mut models[1], seed % 40);
                let mut model = BTreeMap::new();
                crowd(&mut filter, &mut model, 20 + seed * 6);
                for (other, copies) in others.iter().zip(&models) {
                    for (mut union, other) in [(filter.clone(), other), (other.clone(), &filter)] {
                        if union.union(other).is_ok() {
                            united += 1;
                            let case = format!("a rate of {rate:e}, planned for {plan}, seed {seed}: {union}");
                            let has_all = |(&hash, &copies): (&u64, &u32)| union.count(&Prehashed(hash)) >= copies;
                            assert!(model.iter().chain(copies).all(has_all), "{case}");
                            union.assert_consistent();
                        }
                    }
                }
            }
        }
        assert!(united > 100 && refused > 0, "{united} unions, {refused} refused items");
    }

    /// Extra bits tell copies in the second of three generations apart: in a union, those of another item do not count.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn a_union_has_the_copies_of_each_chosen_item_in_several_generations() {
        let (mut united, mut refused) = (0, 0);
        for (rate, plan, percent) in
            [(1e-3, 300, 1300), (1e-3, 350, 1340), (1e-3, 500, 1240), (0.01, 300, 1300), (0.01, 400, 1400)]
        {
            let mut filter = planned(rate, plan, plan).build().expect("valid parameters");
            let (plan, addressing) = (plan as u64, Plan::of(&filter));
            let bucket = addressing.m / 3;
            let fingerprints = addressing.fingerprints_of_one_pair(bucket);
            let chosen =
                |t: usize, prefix| addressing.hash(bucket, fingerprints[t], [prefix, 32]).map(Prehashed).expect("a hash exists");
            let (item, neighbor, other) = (chosen(0, 0), chosen(0, 1 << 23), chosen(0, 1 << 30));
            filter.insert_iter((0..3 * plan).map(key)).expect("the filter grows");
            filter.insert(&item).expect("there is room");
            filter.insert_iter((3 * plan..plan * percent / 100).map(key)).expect("the filter grows");
            assert!((0..plan).filter(|n| n % 5 < 3).all(|n| filter.remove(&key(n))) && filter.buckets_per_lookup() > 4);
            for crowd in 8..30 {
                let (mut ours, mut theirs) = (filter.clone(), filter.clone());
                (0..3).for_each(|_| theirs.insert(&item).expect("a copy is accepted"));
                (0..3).for_each(|_| ours.insert(&neighbor).expect("a copy is accepted"));
                // They fill the pair of buckets in the last generation, so that the last of them go into the first one.
                let others = (1..fingerprints.len()).take(crowd).map(|t| chosen(t, 1 << 30)).chain([other]);
                refused += others.filter(|hash| ours.insert(hash).is_err()).count();
                for (mut union, other) in [(ours.clone(), &theirs), (theirs.clone(), &ours)] {
                    united += usize::from(union.union(other).is_ok());
                    let counts = [&item, &neighbor].map(|hash| (union.count(hash), ours.count(hash).max(theirs.count(hash))));
                    let case = format!("{counts:?}, {crowd} others, a rate of {rate:e}, planned for {plan}: {union}");
                    assert!(union.count(&item) >= 4 && union.count(&neighbor) >= 3, "{case}");
                    union.assert_consistent();
                }
            }
        }
        assert!(united > 200 && refused > 0, "{united} unions, {refused} refused items");
    }

    /// Beside chosen items, others have as many shards as without them, and take hardly more memory.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn hashes_that_no_table_holds_do_not_keep_others_from_shards() {
        const ITEMS: u64 = 25_000;
        let mut sweep = Sweep::default();
        for (number, builder) in [
            (10, builder(0.001)),
            (30, builder(0.001)),
            (10, builder(0.01)),
            (10, builder(0.001).partitions(4)),
            (10, builder(0.001).capacity(1000)),
            (10, planned(0.001, 1000, 100_000)),
            (10, planned(0.001, 2000, 2000)),
        ] {
            let without = filled(builder.clone(), ITEMS);
            let mut filter = builder.build().expect("valid parameters");
            let crowd: Vec<_> = Plan::of(&filter).crowd(number).into_iter().map(Prehashed).collect();
            let accepted: Vec<_> = crowd.iter().filter(|&hash| filter.insert(hash).is_ok()).collect();
            filter.insert_iter((0..ITEMS).map(key)).expect("others are accepted");
            let case = format!("{} of {number} chosen hashes: {filter}, without them {without}", accepted.len());
            sweep.check(crowd.len() == number, format_args!("not enough hashes: {case}"));
            sweep.check(filter.shards() as f64 >= 0.95 * without.shards() as f64, format_args!("too few shards: {case}"));
            sweep.at_most(filter.size_in_bytes() as f64 / without.size_in_bytes() as f64, 1.05, format_args!("bytes: {case}"));
            sweep.check((0..ITEMS).all(|n| filter.contains(&key(n))), format_args!("an item is lost: {case}"));
            sweep.check(accepted.iter().all(|&&hash| filter.contains(&hash)), format_args!("a chosen item is lost: {case}"));
            filter.assert_consistent();
            accepted.iter().for_each(|&&hash| sweep.check(filter.remove(&hash), format_args!("a chosen item is lost: {case}")));
        }
        sweep.finish();
    }

    /// Where no table holds the items of a shard, its list has no more of them than a table has slots: lists of all shards that are
    /// as long as possible keep the promised rate.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn hashes_that_no_table_holds_keep_the_promised_rate() {
        const ITEMS: usize = 6000;
        let mut sweep = Sweep::default();
        for rate in [0.5, 0.01, 1e-3, 1e-6, 1e-8] {
            for (capacity, max_capacity) in [(1, 64), (1, 150), (100, 1000), (1000, 1000), (0, 100_000)] {
                for prefix_bits in [0, 2, 4, 6] {
                    let mut filter = planned(rate, capacity, max_capacity).build().expect("valid parameters");
                    let plan = Plan::of(&filter);
                    let bucket = plan.m / 3;
                    let fingerprints = plan.fingerprints_of_one_pair(bucket);
                    let prefixes = (0..1_u64 << 14).flat_map(|rest| (0..1 << prefix_bits).map(move |first| first << 14 | rest));
                    let hashes = prefixes.flat_map(|prefix| fingerprints.iter().map(move |&t| (prefix, t)));
                    let hashes = hashes.filter_map(|(prefix, t)| plan.hash(bucket, t, [prefix, 14 + prefix_bits]));
                    let (mut highest, mut accepted) = (0.0_f64, 0);
                    for (n, hash) in hashes.take(ITEMS).enumerate() {
                        accepted += usize::from(filter.insert(&Prehashed(hash)).is_ok());
                        if n % 50 == 0 {
                            highest = highest.max(filter.false_positive_rate());
                        }
                    }
                    let case = format!("{capacity} to {max_capacity}, {prefix_bits} bits, {accepted} accepted: {filter}");
                    sweep.at_most(highest / rate, 1.0, format_args!("the rate over {rate:e}, planned for {case}"));
                }
            }
        }
        sweep.finish();
    }

    /// Returns hashes whose keys are the greatest ones: by the stream, then by the smaller bucket. No more than eight have the same
    /// stream, so that tables have room for them.
    fn greatest(plan: &Plan, number: usize) -> Vec<Prehashed<u64>> {
        let mut pairs: Vec<(u64, u64)> = (1..200).flat_map(|t| (0..plan.m).map(move |bucket| (bucket, t))).collect();
        pairs.retain(|&(bucket, t)| bucket <= plan.alternate(bucket, t));
        pairs.sort_unstable();
        let bits = plan.known_bits.into();
        pairs.dedup_by_key(|&mut (bucket, _)| bucket);
        let prefixes = (0..1_u64 << bits).rev().flat_map(|prefix| pairs.iter().rev().take(8).map(move |&pair| (prefix, pair)));
        let hashes = prefixes.filter_map(|(prefix, (bucket, t))| plan.hash(bucket, t, [prefix, bits]));
        hashes.map(Prehashed).take(number).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn a_filter_never_takes_more_than_its_limit() {
        let mut sweep = Sweep::default();
        for (items, copies) in [(3000, 2000), (0, 900), (3000, 200)] {
            let mut filter = builder(0.001).build().expect("valid parameters");
            filter.insert_iter((0..items).map(key)).expect("the filter grows");
            for _ in 0..5000 {
                filter.insert(&Prehashed(1)).expect("copies are accepted");
            }
            let hashes = greatest(&Plan::of(&filter), copies);
            for more in [100, 1000, 5000, 10_000, 30_000, 1 << 20] {
                let mut filter = filter.clone();
                // Chosen streams that are equal far along may be refused.
                let accepted = hashes.iter().take_while(|&hash| filter.insert(hash).is_ok()).count();
                let limit = filter.charged_bytes() + more;
                filter.set_max_bytes(limit);
                let case = format!("{items} items and {copies} with the greatest keys, {more} bytes more, {accepted} accepted");
                for (n, hash) in hashes.iter().enumerate() {
                    let is_full = filter.insert(hash).is_err();
                    if is_full || n + 1 == hashes.len() {
                        let (size, charge) = (filter.size_in_bytes(), filter.charged_bytes());
                        sweep.check(size <= charge, format_args!("{size} bytes, charged {charge}: {case}"));
                        sweep.check(charge <= limit, format_args!("charged {charge} of {limit}: {case}"));
                        break;
                    }
                }
            }
        }
        sweep.finish();
    }

    /// Few items with many copies make all counts of a list long. A table whose parts would be such lists splits only if these are within
    /// the limit.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn splits_into_lists_with_long_counts_obey_the_limit() {
        let (mut sweep, mut refused) = (Sweep::default(), 0);
        for (rate, max_capacity, doublings) in [(0.01, 100_000, 17), (0.5, 100_000, 17), (0.03, 20_000, 17), (0.03, 8000, 9)] {
            let builder = ElasticFilter::builder().false_positive_rate(rate).max_capacity(max_capacity);
            let mut filter = builder.build().expect("valid parameters");
            filter.insert_iter((0..16).map(key)).expect("the filter grows");
            for _ in 0..doublings {
                let copy = filter.clone();
                filter.merge(&copy).expect("copies are added");
            }
            for limit in (6000..20_000).step_by(140) {
                let mut filter = filter.clone();
                filter.set_max_bytes(limit);
                let is_refused = (16..5000).any(|n| filter.insert(&key(n)).is_err());
                refused += u32::from(is_refused);
                let (size, charge) = (filter.size_in_bytes(), filter.charged_bytes());
                let case = format!("a rate of {rate}, {max_capacity} items, counts of {doublings} bits, a limit of {limit}");
                sweep.check(size <= charge, format_args!("{size} bytes, charged {charge}: {case}"));
                sweep.check(charge <= limit, format_args!("charged {charge} of {limit}: {case}"));
                filter.assert_consistent();
            }
        }
        assert!(refused > 200, "{refused}");
        sweep.finish();
    }

    /// The streams of all items are equal for some bits, and the next bit tells the filters apart. Their merge splits as far as single
    /// insertions would, and no further.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn merges_of_chosen_items_do_not_deepen_the_directory() {
        const EACH: usize = 900;
        let empty = || builder(0.001).max_capacity(1_000_000_000).build().expect("valid parameters");
        let plan = Plan::of(&empty());
        for (common, has_room) in [(6, true), (20, false)] {
            let mut random = SplitMix64(1);
            let mut filled = |last: u64| {
                let hashes = || {
                    let (bucket, t) = (random.below(plan.m), 1 + random.below(4000));
                    plan.hash(bucket, t, [last, common + 1])
                };
                let items = std::iter::repeat_with(hashes).flatten().map(Prehashed);
                let mut filter = empty();
                filter.insert_iter(items.take(EACH)).expect("one table has room");
                filter
            };
            let (ours, theirs) = (filled(0), filled(1));
            for how in [ElasticFilter::merge, ElasticFilter::union] {
                let mut both = ours.clone();
                match how(&mut both, &theirs) {
                    Ok(()) => {
                        assert!(has_room && both.len() == 2 * EACH, "{common} common bits: {both}");
                        let (size, most) = (both.size_in_bytes(), ours.size_in_bytes() + theirs.size_in_bytes() + 20_000);
                        assert!(size <= most, "{common} common bits: {size} bytes, at most {most} expected");
                    }
                    Err(MergeError::Insert(error)) if error.kind() == InsertErrorKind::Crowded && !has_room => {
                        assert_eq!(both.to_bytes(), ours.to_bytes());
                    }
                    Err(error) => panic!("{common} common bits: {error}"),
                }
                both.assert_consistent();
            }
        }
    }

    /// A list whose sibling becomes underfull is joined with it, unless chosen items of one pair of buckets are in both. Then it is a
    /// list again, however long it has become.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn lists_that_cannot_be_joined_with_tables_stay_lists() {
        for (list, table) in [(200, 150), (500, 400)] {
            let mut filter = builder(0.001).build().expect("valid parameters");
            let (plan, mut random) = (Plan::of(&filter), SplitMix64(1));
            let bucket = plan.m / 3;
            let crowd = plan.fingerprints_of_one_pair(bucket);
            // The items of each of eight shards.
            let mut item = |shard: u64| {
                let hashes = || {
                    let (bucket, t, rest) = (random.below(plan.m), 1 + random.below(4000), random.below(256));
                    plan.hash(bucket, t, [shard << 8 | rest, 11])
                };
                Prehashed(std::iter::repeat_with(hashes).flatten().next().expect("most hashes exist"))
            };
            let mut shards: Vec<Vec<_>> = (0..8).map(|shard| (0..1000).map(|_| item(shard)).collect()).collect();
            for n in 0..1000 {
                filter.insert_iter(shards.iter().map(|items| items[n])).expect("the filter grows");
            }
            shards[0].drain(150..).for_each(|item| assert!(filter.remove(&item)));
            let chosen = |shard: u64, range: std::ops::Range<usize>| {
                let hash = |&t: &u64| Prehashed(plan.hash(bucket, t, [shard << 8, 11]).expect("a hash exists"));
                crowd[range].iter().map(hash).collect::<Vec<_>>()
            };
            filter.insert_iter(chosen(0, 0..5)).expect("there is room");
            shards[0].extend((150..list).map(|_| item(0)));
            filter.insert_iter(shards[0][150..].iter().copied()).expect("there is room");
            let removed = shards[1].split_off(995);
            removed.iter().for_each(|item| assert!(filter.remove(item)));
            filter.insert_iter(chosen(1, 5..10)).expect("there is room");
            while shards[1].len() > table {
                let charge = filter.charged_bytes();
                assert!(shards[1].pop().is_some_and(|item| filter.remove(&item)));
                assert!(filter.charged_bytes() <= charge, "{} items: {} after {charge}", shards[1].len(), filter.charged_bytes());
            }
            filter.assert_consistent();
            let (size, charge) = (filter.size_in_bytes(), filter.charged_bytes());
            filter.shrink();
            assert!(filter.charged_bytes() <= charge && filter.size_in_bytes() <= size, "{size}, {charge}: {filter}");
            assert!(shards.iter().flatten().all(|item| filter.contains(item)));
            filter.assert_consistent();
        }
    }

    /// Fills a filter with items, some of which have copies. Returns all keys in it.
    fn filled_with_copies(builder: ElasticBuilder, [items, copied, copies]: [u64; 3]) -> (ElasticFilter, Vec<u64>) {
        let mut filter = builder.build().expect("valid parameters");
        let more = (1..copies).flat_map(|_| (0..copied).map(key));
        let keys: Vec<u64> = (0..items).map(key).chain(more).collect();
        filter.insert_iter(&keys).expect("the filter grows");
        (filter, keys)
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn no_removal_raises_the_charge() {
        let mut sweep = Sweep::default();
        for seed in 0..100 {
            let mut random = SplitMix64(seed << 32);
            let (plan, rate) = (*random.pick(&[100, 1000, 10_000]), *random.pick(&[0.1, 0.01, 1e-3, 1e-5]));
            let items = 1 + random.below(6000);
            let copied = random.below(items);
            let builder = planned(rate, plan, plan << random.below(6));
            let (mut filter, mut keys) = filled_with_copies(builder, [items, copied, 2]);
            let case = format!("seed {seed}, {items} items, a rate of {rate}, planned for {plan}");
            let mut charge = filter.charged_bytes();
            while !keys.is_empty() {
                let at = random.below(keys.len() as u64);
                assert!(filter.remove(&keys.swap_remove(at as usize)));
                let (before, size) = (charge, filter.size_in_bytes());
                charge = filter.charged_bytes();
                sweep.check(charge <= before, format_args!("charged {before}, then {charge} with {} items: {case}", keys.len()));
                sweep.check(size <= charge, format_args!("{size} bytes, charged {charge}: {case}"));
            }
        }
        sweep.finish();
    }

    /// Only here are size and charge compared before and after a shrink.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn no_shrink_raises_the_size_or_the_charge() {
        let (mut sweep, mut filters_with) = (Sweep::default(), [0; 3]);
        for seed in 0..800 {
            let mut random = SplitMix64(seed << 32);
            let (plan, rate) = (*random.pick(&[1, 3, 10, 100]), *random.pick(&[0.1, 0.01, 1e-3, 1e-5]));
            let items = 1 + random.below(5000);
            let copied = random.below(items);
            let builder = planned(rate, plan, plan << random.below(6));
            let (mut filter, mut keys) = filled_with_copies(builder, [items, copied, 1 + random.below(8)]);
            for _ in 0..random.below(keys.len() as u64) {
                let at = random.below(keys.len() as u64);
                assert!(filter.remove(&keys.swap_remove(at as usize)));
            }
            // A copy takes as much memory, and insertions between removals leave lists beside tables.
            let copy = filter.clone();
            let sizes = [&filter, &copy].map(ElasticFilter::size_in_bytes);
            sweep.check(sizes[0] == sizes[1], format_args!("{sizes:?} bytes of a filter and its copy: seed {seed}, {filter}"));
            if random.below(2) == 0 {
                filter = copy;
                filter.insert_iter((items..items + random.below(500)).map(key)).expect("the filter grows");
            }
            let bytes = filter.to_bytes();
            let kinds = sections(&bytes).into_iter().flat_map(|section| section.records.step_by(RECORD)).map(|at| bytes[at + 2]);
            kinds.collect::<BTreeSet<u8>>().into_iter().for_each(|kind| filters_with[usize::from(kind)] += 1);
            let before = [filter.size_in_bytes(), filter.charged_bytes()];
            filter.shrink();
            let after = [filter.size_in_bytes(), filter.charged_bytes()];
            let holds = after[0] <= before[0] && after[1] <= before[1];
            sweep.check(holds, format_args!("{before:?} bytes and charge to {after:?}: seed {seed}, {filter}"));
        }
        sweep.check(
            filters_with.iter().all(|&filters| filters >= 200),
            format_args!("{filters_with:?} filters with tables, lists and copies"),
        );
        sweep.finish();
    }
}
