//! `==` compares what filters hold: which items, and how often. The order of insertion and the layout make no difference.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use crate::common::{SplitMix64, same_bits};
use koel::{
    Addressing, Builder, CuckooFilter, ElasticBuilder, ElasticFilter, ElasticView, FilterView, Insert, Prehashed, TableKind,
};
use proptest::{prelude::*, sample::select, test_runner::RngSeed};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, cases, ..ProptestConfig::default() }
}

/// Compares each of one list with each of the other, in both directions. All answers must be the same, and it is returned.
macro_rules! equal_in_all_forms {
    ([$($ours:expr),+], $theirs:tt) => {{
        let answers = [$(equal_in_all_forms!(@ $ours, $theirs)),+].concat();
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
        answers[0]
    }};
    (@ $ours:expr, [$($theirs:expr),+]) => {
        [$($ours == $theirs, $theirs == $ours, !($ours != $theirs)),+]
    };
}

/// Compares two filters, and views of them.
fn equal(ours: &CuckooFilter, theirs: &CuckooFilter) -> bool {
    let bytes = [ours, theirs].map(CuckooFilter::to_bytes);
    let [our_view, their_view] = [0, 1].map(|n| FilterView::over(&bytes[n][..]).expect("a valid snapshot"));
    let [our_owned, their_owned] = bytes.clone().map(|bytes| FilterView::over(bytes).expect("a valid snapshot"));
    equal_in_all_forms!([*ours, our_view, our_owned], [*theirs, their_view, their_owned])
}

/// Compares two growing filters, shared filters with the same bits, and views of them.
fn grown_equal(ours: &ElasticFilter, theirs: &ElasticFilter) -> bool {
    let bytes = [ours, theirs].map(ElasticFilter::to_bytes);
    let [our_view, their_view] = [0, 1].map(|n| ElasticView::over(&bytes[n][..]).expect("a valid snapshot"));
    let [our_owned, their_owned] = bytes.clone().map(|bytes| ElasticView::over(bytes).expect("a valid snapshot"));
    let [our_shared, their_shared] = [ours, theirs].map(|filter| filter.clone().into_shared().expect("there is memory"));
    equal_in_all_forms!([*ours, our_view, our_owned, our_shared], [*theirs, their_view, their_owned, their_shared])
}

/// A hash and its number of copies.
type Item = (u64, u32);

/// Returns that many items. One in three has two copies, one in nine has more.
fn items(len: usize, seed: u64) -> Vec<Item> {
    let copies = |hash: u64| match hash >> 7 {
        word if word.is_multiple_of(9) => 3 + (word % 40) as u32,
        word => 1 + u32::from(word.is_multiple_of(3)),
    };
    SplitMix64(seed).take(len).map(|hash| (hash, copies(hash))).collect()
}

fn shuffled(mut hashes: Vec<u64>, seed: u64) -> Vec<u64> {
    SplitMix64(seed).shuffle(&mut hashes);
    hashes
}

/// Returns the hash of each copy: all copies of an item follow each other.
fn in_a_row(items: &[Item]) -> Vec<u64> {
    items.iter().flat_map(|&(hash, copies)| (0..copies).map(move |_| hash)).collect()
}

/// Returns the hash of each copy: first the first copy of all items, then the second ones.
fn in_passes(items: &[Item]) -> Vec<u64> {
    let most = items.iter().map(|item| item.1).max().unwrap_or(0);
    let pass = |pass| items.iter().rev().filter(move |item| item.1 > pass).map(|item| item.0);
    (0..most).flat_map(pass).collect()
}

/// Inserts these hashes. Returns `None` if one is refused.
fn fill(filter: &mut dyn Insert, hashes: &[u64]) -> Option<()> {
    hashes.iter().try_for_each(|&hash| filter.insert(&Prehashed(hash))).ok()
}

/// Inserts the items, in between other items and more copies, which are then removed.
fn fill_and_remove(filter: &mut dyn Insert, items: &[Item], others: usize, seed: u64) -> Option<()> {
    let all = in_a_row(items);
    let more: Vec<u64> = SplitMix64(!seed).take(others).chain(items.iter().map(|item| item.0).step_by(3)).collect();
    fill(filter, &shuffled([&all[..], &more].concat(), seed))?;
    shuffled(more, !seed).into_iter().for_each(|hash| assert!(filter.remove(&Prehashed(hash)), "{hash:#x} is lost"));
    Some(())
}

/// Returns filters that got the same items in different ways, and the number of ways that refuse an item.
macro_rules! histories {
    ($filter:ident, $make:expr, $items:expr, $seed:expr) => {{
        let (make, items, seed): (_, &[Item], u64) = ($make, $items, $seed);
        let all = in_a_row(items);
        let mixed = shuffled(all.clone(), seed);
        let (left, right) = mixed.split_at(mixed.len() / 3);
        let of = |hashes: &[u64]| {
            let mut filter = make();
            fill(&mut filter, hashes).map(|()| filter)
        };
        let detour = |others| {
            let mut filter = make();
            fill_and_remove(&mut filter, items, others, seed).map(|()| filter)
        };
        let merged = || {
            let (mut left, right) = (of(left)?, of(right)?);
            left.merge(&right).ok().map(|()| left)
        };
        // Each item has as many copies in a part as in the whole, or fewer, so a union adds only what the part lacks.
        let united = |is_part_first| {
            let (mut part, mut whole) = (of(left)?, of(&mixed)?);
            let united = if is_part_first { part.union(&whole) } else { whole.union(&part) };
            united.ok().map(|()| if is_part_first { part } else { whole })
        };
        let reread = || {
            let mut filter = $filter::from_bytes(&of(right)?.to_bytes()).expect("a valid snapshot");
            fill(&mut filter, left).map(|()| filter)
        };
        let cleared = || {
            let mut filter = of(right)?;
            filter.clear();
            fill(&mut filter, &mixed).map(|()| filter)
        };
        let mut filters: Vec<$filter> =
            [of(&all), of(&in_passes(items)), of(&mixed), detour(items.len() / 4)].into_iter().flatten().collect();
        filters.extend([merged(), united(true), united(false), reread(), cleared()].into_iter().flatten());
        filters
    }};
}

fn fixed_histories(builder: &Builder, items: &[Item], seed: u64) -> Vec<CuckooFilter> {
    histories!(CuckooFilter, || builder.clone().build().expect("valid parameters"), items, seed)
}

fn grown_histories(builder: &ElasticBuilder, items: &[Item], seed: u64) -> Vec<ElasticFilter> {
    let make = || builder.clone().build().expect("valid parameters");
    let mut filters = histories!(ElasticFilter, make, items, seed);
    // Has many more items for a while.
    let mut large = make();
    if fill_and_remove(&mut large, items, 2000, seed).is_some() {
        filters.push(large.clone());
        large.shrink();
        filters.push(large);
    }
    let mut shared = builder.clone().build_shared().expect("valid parameters");
    fill(&mut shared, &in_passes(items)).expect("the filter grows");
    filters.push(shared.into_elastic().expect("there is memory"));
    filters
}

/// Asserts that all filters are equal, each to the next one, and the first to itself.
macro_rules! assert_equal {
    ($equal:ident, $filters:expr) => {
        prop_assert!($equal(&$filters[0], &$filters[0]), "{} and itself", $filters[0]);
        for (number, filter) in $filters.iter().enumerate() {
            let next = &$filters[(number + 1) % $filters.len()];
            prop_assert!($equal(filter, next), "{filter} and {next}");
        }
    };
}

/// Asserts that a filter is not equal to ones with other items. `$one` makes a filter with one item.
macro_rules! assert_differs {
    ($equal:ident, $filter:expr, $present:expr, $new:expr, $one:expr) => {{
        let (filter, present, new) = ($filter, Prehashed($present), Prehashed($new));
        let mut more = filter.clone();
        if more.insert(&new).is_ok() {
            prop_assert!(!$equal(filter, &more), "one item more: {filter}");
            prop_assert!(more.remove(&present));
            // Filters do not tell some items apart.
            let is_alike = $one(present.0).contains(&new);
            prop_assert_eq!($equal(filter, &more), is_alike, "another item: {}", filter);
        }
        let mut copies = filter.clone();
        copies.insert(&present).expect("copies always fit");
        prop_assert!(!$equal(filter, &copies), "a copy more: {filter}");
        let mut fewer = filter.clone();
        prop_assert!(fewer.remove(&present) && !$equal(filter, &fewer), "a copy less: {filter}");
    }};
}

fn fixed_builders() -> impl Strategy<Value = Builder> {
    let table = prop_oneof![
        (Just(TableKind::Single), 4..=32_u32, select(vec![1_u32, 2, 3, 4, 8, 16])),
        (Just(TableKind::Packed), 4..=32_u32, Just(4)),
    ];
    (table, any::<bool>(), 1..5_u32, any::<u64>()).prop_map(|((table, f, b), any_size, log, seed)| {
        let builder = CuckooFilter::builder().table(table).fingerprint_bits(f).bucket_size(b).seed(seed);
        if any_size {
            builder.addressing(Addressing::AnySize).buckets(6 << log)
        } else {
            builder.addressing(Addressing::PowerOfTwo).buckets(4 << log)
        }
    })
}

proptest! {
    #![proptest_config(config(128))]

    #[test]
    fn fixed_filters_with_the_same_items_are_equal(builder in fixed_builders(), seed: u64) {
        let one = |hash| {
            let mut filter = builder.clone().build().expect("valid parameters");
            filter.insert(&Prehashed(hash)).expect("it is empty");
            filter
        };
        let slots = one(1).slots();
        let items = items((slots * 3 / 10).max(1), seed);
        let filters = fixed_histories(&builder, &items, seed);
        prop_assert!(filters.len() >= 5, "{} of 9 filters", filters.len());
        assert_equal!(equal, filters);
        assert_differs!(equal, &filters[0], items[0].0, !seed, one);
        let other = fixed_histories(&builder.clone().seed(!seed), &items, seed);
        prop_assert!(other.iter().all(|other| !equal(&filters[0], other)));
    }
}

fn growing_builders() -> impl Strategy<Value = ElasticBuilder> {
    let sizes = select(vec![(1_usize, 100_usize), (1, 1000), (1, 1_000_000), (500, 500), (2000, 100_000)]);
    (sizes, select(vec![1_usize, 2, 8]), select(vec![0.05, 0.001, 1e-6]), any::<u64>()).prop_map(
        |((capacity, max), partitions, rate, seed)| {
            let builder = ElasticFilter::builder().false_positive_rate(rate).seed(seed);
            builder.capacity(capacity).max_capacity(max).partitions(partitions)
        },
    )
}

proptest! {
    #![proptest_config(config(16))]

    #[test]
    fn growing_filters_with_the_same_items_are_equal(builder in growing_builders(), len in select(vec![1_usize, 30, 300, 1000]), seed: u64) {
        let one = |hash| {
            let mut filter = builder.clone().build().expect("valid parameters");
            filter.insert(&Prehashed(hash)).expect("it is empty");
            filter
        };
        let items = items(len, seed);
        let filters = grown_histories(&builder, &items, seed);
        prop_assert!(filters.len() >= 7, "{} of 12 filters", filters.len());
        assert_equal!(grown_equal, filters);
        assert_differs!(grown_equal, filters.last().expect("there are filters"), items[0].0, !seed, one);
        let other = grown_histories(&builder.clone().seed(!seed), &items, seed);
        prop_assert!(!grown_equal(&filters[0], &other[0]));
    }
}

/// Equal filters have lists of items, few shards, many shards, and several generations; and their bits differ. Only here does `==`
/// compare all these forms, so this test alone finds contents that depend on the form.
#[test]
fn equal_filters_have_different_layouts() {
    let builder = |max_capacity, partitions| {
        let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(1).max_capacity(max_capacity);
        builder.partitions(partitions)
    };
    // With a maximum of 1000 items for each partition, there are several generations.
    for (max_capacity, partitions, len, generations) in
        [(100_000, 1, 3000, 1), (100_000, 4, 3000, 1), (1000, 1, 4000, 2), (4000, 4, 12_000, 2)]
    {
        let (builder, items) = (builder(max_capacity, partitions), items(len, 1));
        let filters = grown_histories(&builder, &items, 2);
        let all_pairs = || filters.iter().flat_map(|ours| filters.iter().map(move |theirs| (ours, theirs)));
        assert!(all_pairs().all(|(ours, theirs)| ours == theirs), "{}", filters[0]);
        assert_eq!(filters[0].buckets_per_lookup() > 2, generations >= 2, "{}", filters[0]);
        let different = all_pairs().filter(|(ours, theirs)| !same_bits(*ours, *theirs)).count();
        assert!(different >= 2 * filters.len(), "{different} of {} pairs", all_pairs().count());
        let last = filters.last().expect("there are filters");
        assert!(grown_equal(&filters[0], last));
        // The last item that is inserted is in the last generation.
        let mut other = filters[0].clone();
        let replaced = items.last().expect("there are items").0;
        assert!(other.remove(&Prehashed(replaced)) && !grown_equal(last, &other));
        other.insert(&Prehashed(!replaced)).expect("the filter grows");
        assert!(other.len() == last.len() && !grown_equal(last, &other), "{other}");
    }
    // A filter with few items has a list of them or a shard, which depends on how many it had before.
    let mut have_both = 0;
    for len in (10..800).step_by(10) {
        let filters = grown_histories(&builder(100_000, 1), &items(len, 1), 2);
        let in_list = filters.iter().filter(|filter| filter.buckets() == 0).count();
        have_both += usize::from(in_list > 0 && in_list < filters.len());
        assert!(filters.iter().all(|filter| grown_equal(filter, &filters[0])), "{len} items");
    }
    assert!(have_both > 0);
    let builder = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001);
    let filters = fixed_histories(&builder, &items(700, 1), 2);
    let different = filters.iter().filter(|filter| !same_bits(*filter, &filters[0])).count();
    assert!(
        filters.len() == 9 && filters.iter().all(|filter| equal(filter, &filters[0])) && different >= 5,
        "{different} differ"
    );
}

/// Checks filters with up to 2³² − 1 copies of one item.
macro_rules! check_counts {
    ($equal:ident, $builder:expr) => {{
        // Each merge with a clone doubles the count.
        let with = |item: &str, copies: u32| {
            let mut filter = $builder.build().expect("valid parameters");
            for bit in (0..32).rev() {
                let copy = filter.clone();
                filter.merge(&copy).expect("copies always fit");
                if copies >> bit & 1 == 1 {
                    filter.insert(item).expect("copies always fit");
                }
            }
            assert_eq!(filter.count(item), copies);
            filter
        };
        let (all, one_less) = (with("alice", u32::MAX), with("alice", u32::MAX - 1));
        assert!(!$equal(&all, &one_less) && !$equal(&all, &with("bob", u32::MAX)) && !$equal(&all, &with("alice", 1)));
        let mut again = one_less;
        again.insert("bob").expect("there is room");
        again.insert("alice").expect("one more");
        assert!(!$equal(&all, &again));
        let mut other = with("bob", u32::MAX);
        other.insert("alice").expect("there is room");
        assert_eq!(other.len(), again.len());
        assert!(!$equal(&other, &again));
        assert!(again.remove("bob") && $equal(&all, &again));
        // Removed from both ends.
        (0..100).for_each(|_| assert!(again.remove("alice")));
        assert!($equal(&again, &with("alice", u32::MAX - 100)) && !$equal(&again, &with("alice", u32::MAX - 101)));
    }};
}

#[test]
fn four_billion_copies_are_compared() {
    let fixed = CuckooFilter::builder().capacity(100).false_positive_rate(0.001);
    check_counts!(equal, fixed.clone());
    check_counts!(equal, fixed.clone().table(TableKind::Single).bucket_size(1));
    check_counts!(grown_equal, ElasticFilter::builder().false_positive_rate(0.001));
    check_counts!(grown_equal, ElasticFilter::builder().false_positive_rate(0.001).capacity(1000).max_capacity(1000));
}

#[test]
fn empty_filters_are_equal() {
    let builder = CuckooFilter::builder().capacity(100).false_positive_rate(0.001);
    let new = || builder.clone().build().expect("valid parameters");
    let (mut cleared, mut emptied) = (new(), new());
    for filter in [&mut cleared, &mut emptied] {
        (0..500_u64).for_each(|n| filter.insert(&(n % 100)).expect("there is room"));
        assert!(!equal(filter, &new()));
    }
    cleared.clear();
    (0..500_u64).rev().for_each(|n| assert!(emptied.remove(&(n % 100))));
    assert!(equal(&cleared, &new()) && equal(&emptied, &new()) && equal(&cleared, &emptied));
    let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(1).max_capacity(1000).partitions(2);
    let new = || builder.clone().build().expect("valid parameters");
    let (mut cleared, mut emptied) = (new(), new());
    for filter in [&mut cleared, &mut emptied] {
        (0..9000_u64).for_each(|n| filter.insert(&(n % 4500)).expect("the filter grows"));
        assert!(!grown_equal(filter, &new()));
    }
    cleared.clear();
    (0..9000_u64).rev().for_each(|n| assert!(emptied.remove(&(n % 4500))));
    let mut shrunk = emptied.clone();
    shrunk.shrink();
    for filter in [&cleared, &emptied, &shrunk] {
        assert!(grown_equal(filter, &new()) && grown_equal(filter, &shrunk), "{filter}");
    }
}

/// Views that nobody has verified can have any bytes in their tables and lists.
#[test]
fn corrupt_views_can_be_compared() {
    let mut differ = [0; 2];
    for (table, any_size) in [(TableKind::Packed, true), (TableKind::Single, true), (TableKind::Single, false)] {
        let addressing = if any_size { Addressing::AnySize } else { Addressing::PowerOfTwo };
        let builder = CuckooFilter::builder().table(table).fingerprint_bits(7).addressing(addressing).buckets(16);
        let filter = fixed_histories(&builder, &items(30, 1), 2).swap_remove(0);
        let bytes = filter.to_bytes();
        for at in 0..bytes.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut corrupt = bytes.clone();
                corrupt[at] ^= change;
                let Ok(view) = FilterView::over(&corrupt[..]) else { continue };
                let valid = FilterView::over(&bytes[..]).expect("a valid snapshot");
                differ[0] += usize::from(!equal_in_all_forms!([view], [filter, valid]));
                assert!(view == view.clone(), "byte {at}");
            }
        }
    }
    for (max_capacity, partitions, len) in [(1000, 1, 20), (1000, 2, 300), (100, 1, 600)] {
        let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(1).max_capacity(max_capacity);
        let filter = grown_histories(&builder.partitions(partitions), &items(len, 1), 2).swap_remove(0);
        let bytes = filter.to_bytes();
        for (at, random) in (0..bytes.len()).zip(SplitMix64(3)) {
            let mut corrupt = bytes.clone();
            corrupt[at] ^= 1 + (random % 255) as u8;
            let Ok(view) = ElasticView::over(&corrupt[..]) else { continue };
            differ[1] += usize::from(!equal_in_all_forms!([view], [filter]));
            assert!(view == view.clone(), "byte {at}");
        }
    }
    assert!(differ.iter().all(|&views| views > 100), "{differ:?}");
}

/// The victim of a Go file is an item like those in the table.
#[cfg(all(feature = "metrohash", target_endian = "little"))]
#[test]
fn go_filters_with_the_same_items_are_equal() {
    use crate::common::GoFile;
    use koel::go::{self, GoFilter};
    let table = |seed: u64| {
        let mut random = SplitMix64(seed).map(|word| if word % 4 < 3 { 1 + (word >> 8 & 0x7f) as u32 } else { 0 });
        (0..16).map(|_| random.by_ref().take(4).collect::<Vec<u32>>()).collect::<Vec<_>>()
    };
    let mut replaced = 0;
    for seed in 0..100 {
        let (buckets, bucket, item) = (table(seed), (seed % 16) as u32, 200 + (seed % 50) as u32);
        let both_tables = |buckets: &[Vec<u32>], victim: Option<u32>| -> [GoFilter; 2] {
            let victim = victim.map_or((0, 0, 0), |victim| (bucket, victim, 1));
            let file = GoFile { buckets: buckets.to_vec(), f: 8, victim };
            [file.single(), file.packed()].map(|file| go::decode(&file).expect("a valid file"))
        };
        let equal = |ours: &[GoFilter; 2], theirs: &[GoFilter; 2]| {
            let answers = [0, 1].map(|n| equal_in_all_forms!([ours[n]], [theirs[n]]));
            assert!(answers[0] == answers[1] && ours[0] != theirs[1], "{answers:?}");
            answers[0]
        };
        let with_victim = both_tables(&buckets, Some(item));
        assert!(with_victim.iter().all(GoFilter::has_victim));
        assert!(equal(&with_victim, &with_victim.clone()));
        assert!(
            !equal(&with_victim, &both_tables(&buckets, None)) && !equal(&with_victim, &both_tables(&buckets, Some(item ^ 1)))
        );
        // Sorted slots, and slots in reverse order.
        let mut sorted = buckets.clone();
        sorted.iter_mut().for_each(|slots| slots.sort_unstable_by(|a, b| b.cmp(a)));
        assert!(equal(&with_victim, &both_tables(&sorted, Some(item))));
        for slot in 0..4 {
            let mut other = buckets.clone();
            let in_slot = std::mem::replace(&mut other[bucket as usize][slot], item);
            // The victim gets an empty slot, or changes places with the item there.
            let changed = both_tables(&other, (in_slot != 0).then_some(in_slot));
            assert!(equal(&with_victim, &changed) && changed.iter().all(|go| go.has_victim() == (in_slot != 0)));
            other[bucket as usize][slot] = item ^ 1;
            assert!(!equal(&with_victim, &both_tables(&other, (in_slot != 0).then_some(in_slot))));
            replaced += usize::from(in_slot != 0);
        }
        // Insertions and removals move the victim into the table.
        for (mut go, before) in with_victim.clone().into_iter().zip(&with_victim) {
            let hashes: Vec<u64> = SplitMix64(!seed).take(3).filter(|&hash| go.insert(&Prehashed(hash)).is_ok()).collect();
            assert!(hashes.is_empty() || go != *before);
            hashes.iter().rev().for_each(|&hash| assert!(go.remove(&Prehashed(hash))));
            assert!(equal_in_all_forms!([go], [*before]), "{go} and {before}");
        }
    }
    assert!(replaced > 100, "{replaced}");
}

/// RedisBloom's sub-filters, filled by RedisBloom's rules in any order.
#[cfg(feature = "redisbloom")]
mod redisbloom {
    use super::{SplitMix64, config};
    use koel::redisbloom::RedisBloomFilter;
    use proptest::prelude::*;

    /// The sub-filters have 4, 8 and 16 buckets of this many slots.
    const SLOTS: u64 = 8;

    /// Puts each item into a free slot of a random sub-filter. The dump has a chunk for each sub-filter.
    fn placed(hashes: &[u64], filters: u32, seed: u64, header: [u16; 3]) -> RedisBloomFilter {
        let mut random = SplitMix64(seed);
        let mut tables: Vec<Vec<u8>> = (0..filters).map(|n| vec![0; SLOTS as usize * (4 << n)]).collect();
        for &hash in hashes {
            let fingerprint = hash % 255 + 1;
            loop {
                let [table, second, slot] = [(); 3].map(|()| random.next().expect("it is endless"));
                let table = &mut tables[(table % u64::from(filters)) as usize];
                let position = if second % 2 == 0 { hash } else { hash ^ (fingerprint * 0x5bd1_e995) };
                let bucket = position % (table.len() as u64 / SLOTS);
                let slot = &mut table[(bucket * SLOTS + slot % SLOTS) as usize];
                if *slot == 0 {
                    *slot = fingerprint as u8;
                    break;
                }
            }
        }
        let words = [hashes.len() as u64, 4, 0, filters.into()].map(u64::to_le_bytes).concat();
        let header = [words, header.map(u16::to_le_bytes).concat()].concat();
        let mut end = 1;
        let mut chunk = |bytes: &[u8], is_table: bool| {
            end += if is_table { bytes.len() as u64 } else { 0 };
            [&end.to_le_bytes()[..], &(bytes.len() as u64).to_le_bytes(), bytes].concat()
        };
        let mut dump = chunk(&header, false);
        tables.iter().for_each(|table| dump.extend(chunk(table, true)));
        RedisBloomFilter::from_dump(&dump).expect("a valid dump")
    }

    proptest! {
        #![proptest_config(config(128))]

        #[test]
        fn redisbloom_filters_with_the_same_items_are_equal(seed: u64, len in 2..20_usize) {
            const HEADER: [u16; 3] = [SLOTS as u16, 20, 2];
            let mut hashes: Vec<u64> = SplitMix64(seed).take(len).collect();
            hashes.push(hashes[0]);
            let filters: Vec<_> = (0..9).map(|n| placed(&hashes, n % 3 + 1, seed.wrapping_add(n.into()), HEADER)).collect();
            for ours in &filters {
                for theirs in &filters {
                    prop_assert!(equal_in_all_forms!([*ours], [*theirs]), "{ours} and {theirs}");
                }
                let mut compact = ours.clone();
                compact.compact();
                prop_assert!(equal_in_all_forms!([compact], [*ours]));
            }
            let fingerprint = |hash: u64| hash % 255 + 1;
            // Another fingerprint, another bucket, another number of copies, one item less, and other parameters.
            let mut others = vec![hashes.clone(); 4];
            let next = if fingerprint(hashes[1]) == 255 { hashes[1] - 1 } else { hashes[1] + 1 };
            others[0][1] = next;
            let moved = (1..9).map(|n| hashes[1].wrapping_add(255 * n)).find(|&hash| {
                let buckets = |hash: u64| [hash % 4, (hash ^ (fingerprint(hash) * 0x5bd1_e995)) % 4];
                fingerprint(hash) == fingerprint(hashes[1]) && !buckets(hashes[1]).contains(&(hash % 4))
            });
            others[1][1] = moved.expect("there are other buckets");
            // Two items with the same fingerprint may be in the same buckets, and are then copies of each other.
            if fingerprint(hashes[0]) == fingerprint(hashes[1]) {
                others[2].pop();
            } else {
                others[2][1] = hashes[0];
            }
            others[3].pop();
            for other in &others {
                for filter in &filters {
                    prop_assert!(!equal_in_all_forms!([*filter], [placed(other, 2, seed, HEADER)]));
                }
            }
            for header in [[SLOTS as u16, 20, 4], [SLOTS as u16, 50, 2]] {
                prop_assert!(filters[0] != placed(&hashes, 1, seed, header));
            }
        }
    }
}
