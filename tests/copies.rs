//! Any number of copies: as many different items as a filter is planned for fit, however often each is inserted; none is refused or
//! lost, and every copy can be counted and removed.

#![allow(clippy::cast_precision_loss, reason = "small numbers")]

use koel::{
    Addressing, CuckooFilter, ElasticBuilder, ElasticFilter, ElasticView, FilterView, InsertErrorKind, Prehashed, SharedFilter,
    TableKind, Xxh3,
};
use proptest::{prelude::*, test_runner::RngSeed};
use std::collections::HashMap;

use crate::common::SplitMix64;

/// Orders in which items come, each so many times.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// All copies of an item one after the other.
    InARow,
    /// All items, then all of them again.
    ByPasses,
    /// At random; multiplicities as in texts, the n-th item 1/n as often as the first.
    Zipf,
}

fn sequence(order: Order, items: u64, copies: u64) -> Vec<u64> {
    match order {
        Order::InARow => (0..items * copies).map(|n| n / copies).collect(),
        Order::ByPasses => (0..items * copies).map(|n| n % items).collect(),
        Order::Zipf => {
            let mut all: Vec<u64> =
                (0..items).flat_map(|item| (0..=items * copies / (16 * (item + 1))).map(move |_| item)).collect();
            let mut numbers = SplitMix64(7);
            #[expect(clippy::cast_possible_truncation, reason = "below the end")]
            let mut below = |end: usize| numbers.next().map_or(0, |number| ((u128::from(number) * end as u128) >> 64) as usize);
            (1..all.len()).rev().for_each(|at| all.swap(at, below(at + 1)));
            all
        }
    }
}

/// Inserts all, and checks that none is refused or lost; then removes all, copy by copy.
fn all_fit(mut filter: CuckooFilter, inserted: &[u64], what: &str) {
    let mut model = HashMap::new();
    for (position, &item) in inserted.iter().enumerate() {
        if let Err(error) = filter.insert(&Prehashed(item)) {
            panic!("{what}: {error}, after {position} of {} insertions", inserted.len());
        }
        *model.entry(item).or_insert(0_u32) += 1;
    }
    assert_eq!(filter.len(), inserted.len(), "{what}");
    let counted =
        |filter: &CuckooFilter| model.iter().filter(|&(item, &copies)| filter.count(&Prehashed(*item)) < copies).count();
    assert_eq!(counted(&filter), 0, "{what}: items counted too low");
    let collide = model.iter().filter(|&(item, &copies)| filter.count(&Prehashed(*item)) > copies).count();
    let distinct = filter.distinct();
    assert!(distinct <= model.len() && model.len() <= distinct + collide, "{what}: {distinct} of {}", model.len());
    let bytes = filter.to_bytes();
    let read = CuckooFilter::from_bytes(&bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(read, filter, "{what}");
    let view = FilterView::over(bytes).expect(what);
    view.verify().expect(what);
    assert!(model.keys().all(|&item| view.count(&Prehashed(item)) == filter.count(&Prehashed(item))), "{what}");
    for &item in inserted {
        assert!(filter.remove(&Prehashed(item)), "{what}");
    }
    assert!(filter.is_empty() && filter == CuckooFilter::new(filter.params(), Xxh3).expect(what), "{what}: not empty");
}

#[test]
fn as_many_items_as_planned_fit_however_often_each_is_inserted() {
    for (table, b, f) in [
        (TableKind::Packed, 4, 4),
        (TableKind::Packed, 4, 8),
        (TableKind::Packed, 4, 13),
        (TableKind::Packed, 4, 32),
        (TableKind::Single, 1, 12),
        (TableKind::Single, 2, 8),
        (TableKind::Single, 4, 4),
        (TableKind::Single, 8, 16),
        (TableKind::Single, 16, 12),
    ] {
        for addressing in [Addressing::AnySize, Addressing::PowerOfTwo] {
            let items = 2000;
            let builder = CuckooFilter::builder().capacity(items).table(table).bucket_size(b).fingerprint_bits(f);
            for order in [Order::InARow, Order::ByPasses, Order::Zipf] {
                for copies in [2, 3, 8, 50] {
                    let filter = builder.clone().addressing(addressing).build().expect("the parameters are right");
                    let what = format!("{table}, b = {b}, f = {f}, {addressing}, {copies} copies {order:?}");
                    all_fit(filter, &sequence(order, items as u64, copies), &what);
                }
            }
        }
    }
}

/// The same of a growing filter, which is no larger than one that has each item once, but for the copies.
fn all_fit_growing(builder: &ElasticBuilder, inserted: &[u64], what: &str) {
    let (mut filter, mut once) = (builder.clone().build().expect("right"), builder.clone().build().expect("right"));
    let empty = filter.clone();
    let mut model = HashMap::new();
    for (position, &item) in inserted.iter().enumerate() {
        if let Err(error) = filter.insert(&Prehashed(item)) {
            panic!("{what}: {error}, after {position} of {} insertions", inserted.len());
        }
        *model.entry(item).or_insert(0_u32) += 1;
        if model[&item] == 1 {
            once.insert(&Prehashed(item)).expect(what);
        }
    }
    filter.assert_consistent();
    assert_eq!(filter.len(), inserted.len(), "{what}");
    let wrong = |count: &dyn Fn(u64) -> u32| {
        let (mut low, mut high) = (0, 0);
        for (&item, &copies) in &model {
            low += usize::from(count(item) < copies);
            high += usize::from(count(item) > copies);
        }
        (low, high)
    };
    let (low, high) = wrong(&|item| filter.count(&Prehashed(item)));
    // Some items collide.
    let collide = model.keys().filter(|&&item| once.count(&Prehashed(item)) > 1).count();
    assert!(low == 0 && high <= 20 + 3 * collide, "{what}: {low} items counted too low, {high} too high");
    if filter.buckets_per_lookup() == 2 {
        let distinct = filter.distinct();
        assert!(distinct <= model.len() && model.len() <= distinct + collide, "{what}: {distinct} of {}", model.len());
    }
    let several = model.values().filter(|&&copies| copies > 1).count();
    // Second copies are stored as long as they are few: an eighth of a shard, and a few in tables that are not full.
    let (shards, bytes) = (once.shards() + once.shards() / 8 + 2, once.size_in_bytes() + once.size_in_bytes() / 8);
    assert!(filter.shards() <= shards, "{what}: {} shards, and {}", filter.shards(), once.shards());
    let bytes = bytes + 3000 + 16 * several;
    assert!(filter.size_in_bytes() <= bytes, "{what}: {} bytes, and {}", filter.size_in_bytes(), once.size_in_bytes());
    assert_eq!(filter.buckets_per_lookup(), once.buckets_per_lookup(), "{what}");
    let bytes = filter.to_bytes();
    assert_eq!(bytes.len() as u64, filter.snapshot_bytes(), "{what}");
    let read = ElasticFilter::from_bytes(&bytes).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(read == filter && read.to_bytes() == bytes && read.charged_bytes() == filter.charged_bytes(), "{what}");
    let view = ElasticView::over(&bytes[..]).expect(what);
    view.verify().expect(what);
    assert_eq!((view.len(), view.table_len()), (filter.len(), filter.table_len()), "{what}");
    assert!(filter.load_factor() <= 1.0 && view.load_factor().to_bits() == filter.load_factor().to_bits(), "{what}");
    assert_eq!(wrong(&|item| view.count(&Prehashed(item))), (low, high), "{what}");
    let mut shared = read.into_shared().expect(what);
    assert_eq!(shared.table_len(), filter.table_len(), "{what}");
    for &item in inserted {
        assert!(filter.remove(&Prehashed(item)), "{what}");
        assert!(shared.remove(&Prehashed(item)), "{what}");
    }
    assert!(filter.is_empty() && shared.is_empty(), "{what}");
    filter.shrink();
    shared.shrink();
    assert_eq!(filter.to_bytes(), empty.to_bytes(), "{what}");
    assert!(filter.size_in_bytes() <= empty.size_in_bytes() + 1000, "{what}: not small");
    shared = shared.into_elastic().expect(what).into_shared().expect(what);
    assert_eq!(shared.to_bytes(), empty.to_bytes(), "{what}");
}

#[test]
fn growing_filters_never_grow_for_copies() {
    let builder = ElasticFilter::builder;
    for (name, builder, items) in [
        ("default", builder().false_positive_rate(0.001), 6000),
        ("partitions", builder().false_positive_rate(0.001).partitions(4), 6000),
        ("planned", builder().false_positive_rate(0.001).capacity(6000).max_capacity(6000), 6000),
        ("beyond the plan", builder().false_positive_rate(0.001).capacity(500).max_capacity(1000), 6000),
        ("a high rate", builder().false_positive_rate(0.2).capacity(100), 6000),
        ("a low rate", builder().false_positive_rate(1e-6).capacity(100), 6000),
        ("buckets of one", builder().false_positive_rate(0.01).bucket_size(1), 3000),
        ("buckets of two", builder().false_positive_rate(0.01).bucket_size(2), 3000),
        ("buckets of eight", builder().false_positive_rate(0.01).bucket_size(8), 3000),
    ] {
        for order in [Order::InARow, Order::ByPasses, Order::Zipf] {
            for copies in [2, 3, 8, 50, 1000] {
                let items = if copies == 1000 { items / 20 } else { items };
                all_fit_growing(&builder, &sequence(order, items, copies), &format!("{name}, {copies} copies {order:?}"));
            }
        }
    }
}

/// Of a table that has each item once, the rate is the greatest that it can be with as many items.
#[test]
fn the_rate_is_no_more_than_promised_however_often_items_are_inserted() {
    const PROBES: usize = 200_000;
    let probes = || SplitMix64(99).take(PROBES);
    let check = |what: &str, found: usize, stated: f64, promised: f64| {
        let expected = PROBES as f64 * stated;
        let deviation = 5.0 * expected.sqrt();
        assert!(found as f64 <= expected + deviation, "{what}: {found} found, at a rate of {stated}");
        assert!(stated <= promised, "{what}: a rate of {stated}, {promised} promised");
    };
    for promised in [0.35, 0.3, 0.2, 0.1, 0.05, 0.01] {
        for b in [1, 2, 4, 8] {
            for copies in [1, 2, 9] {
                let what = format!("{promised}, buckets of {b}, {copies} copies");
                let numbers = sequence(Order::ByPasses, 20_000, copies);
                let builder = CuckooFilter::builder().capacity(20_000).false_positive_rate(promised);
                let mut fixed = builder.table(TableKind::Single).bucket_size(b).build().expect("right");
                let builder = ElasticFilter::builder().false_positive_rate(promised).table(TableKind::Single);
                let mut growing = builder.bucket_size(b).build().expect("right");
                for number in numbers {
                    fixed.insert(&number).expect("there is room");
                    growing.insert(&number).expect("there is room");
                }
                let found = probes().filter(|&hash| fixed.contains(&Prehashed(hash))).count();
                check(&format!("fixed, {what}"), found, fixed.false_positive_rate(), promised);
                let found = probes().filter(|&hash| growing.contains(&Prehashed(hash))).count();
                check(&format!("growing, {what}"), found, growing.false_positive_rate(), promised);
                let view = ElasticView::over(growing.to_bytes()).expect("it was written");
                assert!((view.false_positive_rate() / growing.false_positive_rate() - 1.0).abs() < 1e-9);
            }
        }
    }
}

/// Threads that insert and remove the same items, with a limit and without one.
#[test]
fn shared_filters_count_the_copies_of_all_threads() {
    const THREADS: u64 = 4;
    const ITEMS: u64 = 2000;
    for max_bytes in [usize::MAX, 1 << 22] {
        let builder = ElasticFilter::builder().false_positive_rate(1e-6).partitions(8).max_bytes(max_bytes);
        let filter = builder.build_shared().expect("right");
        let each = |act: &(dyn Fn(u64) + Sync)| {
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    scope.spawn(move || (0..ITEMS).for_each(|n| act((n * 7 + thread * 501) % ITEMS)));
                }
            });
        };
        for _ in 0..5 {
            each(&|item| filter.insert(&item).expect("any number of copies"));
        }
        filter.insert_batch(&(0..3 * ITEMS).map(|n| n % ITEMS).collect::<Vec<_>>()).expect("any number of copies");
        let copies = 5 * THREADS + 3;
        assert_eq!(filter.len() as u64, copies * ITEMS);
        assert!((0..ITEMS).all(|item| u64::from(filter.count(&item)) == copies));
        let read = SharedFilter::from_bytes(&filter.to_bytes()).expect("it was written");
        assert!(read == filter && read.charged_bytes() == filter.charged_bytes() && filter.charged_bytes() <= max_bytes);
        let mut twice = filter.try_clone().expect("there is memory");
        twice.merge(&read).expect("any number of copies");
        assert!((0..ITEMS).all(|item| u64::from(twice.count(&item)) == 2 * copies));
        twice.union(&read).expect("they are fewer");
        assert_eq!(twice.len() as u64, 2 * copies * ITEMS);
        for _ in 0..5 {
            each(&|item| assert!(filter.remove(&item)));
        }
        assert!((0..ITEMS).all(|item| filter.count(&item) == 3 && (0..3).all(|_| filter.remove(&item))));
        assert!(filter.is_empty() && !(0..ITEMS).any(|item| filter.contains(&item)));
    }
}

/// One item a million times: nothing grows, and nothing is refused.
#[test]
fn a_million_copies_of_one_item_take_a_few_bytes() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001);
    let (mut filter, shared) = (builder.clone().build().expect("right"), builder.build_shared().expect("right"));
    assert!(filter.load_factor() <= 0.0, "a number");
    filter.insert("alice").expect("there is room");
    let bytes = filter.size_in_bytes();
    for _ in 1..1 << 20 {
        filter.insert("alice").expect("any number of copies");
        shared.insert("alice").expect("any number of copies");
    }
    assert_eq!((filter.count("alice"), filter.len(), filter.shards()), (1 << 20, 1 << 20, 0));
    assert_eq!((shared.count("alice"), shared.len(), shared.shards()), ((1 << 20) - 1, (1 << 20) - 1, 0));
    assert!(filter.table_len() == 1 && filter.load_factor() <= 1.0, "a list of one");
    assert!(filter.size_in_bytes() <= bytes + 300, "{} and {bytes} bytes", filter.size_in_bytes());
    assert!((0..1 << 20).all(|_| filter.remove("alice")) && filter.is_empty() && !filter.remove("alice"));
}

#[test]
fn an_item_of_a_growing_filter_has_at_most_four_billion_copies() {
    let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build().expect("right");
    filter.insert("alice").expect("there is room");
    for _ in 0..31 {
        let copy = filter.clone();
        filter.merge(&copy).expect("there is room");
    }
    assert_eq!((filter.count("alice"), filter.len(), filter.shards()), (1 << 31, 1 << 31, 0));
    let copy = filter.clone();
    let error = filter.merge(&copy).unwrap_err();
    assert_eq!(error.to_string(), "the item has 4294967295 copies, and no more are counted; insert_unique stores an item once");
    assert!(filter == copy && filter.remove("alice"));
    let other = filter.clone();
    filter.merge(&other).expect("there is room");
    assert_eq!(filter.count("alice"), u32::MAX - 1);
    filter.insert("alice").expect("one more");
    let error = filter.insert("alice").unwrap_err();
    assert_eq!((error.kind(), filter.count("alice")), (InsertErrorKind::TooManyCopies, u32::MAX));
    filter.assert_consistent();
    let mut read = ElasticFilter::from_bytes(&filter.to_bytes()).expect("it was written");
    assert_eq!((read.count("alice"), read.len()), (u32::MAX, u32::MAX as usize));
    // The larger number of copies is the same.
    read.union(&filter).expect("they are equal");
    assert!(read == filter);
    assert!(filter.insert("bob").is_ok() && filter.contains("bob"));
}

/// Items of which all have one bucket in common: the worst that an attacker can choose.
#[test]
fn copies_of_items_with_one_bucket_in_common_all_fit() {
    let params = CuckooFilter::builder().capacity(4000).fingerprint_bits(12).params().expect("right");
    let mut filter = CuckooFilter::new(params, Xxh3).expect("there is memory");
    // Found by asking which bucket changes: the first item that is not alone in a table of its own.
    let mut alone = CuckooFilter::new(params, Xxh3).expect("there is memory");
    alone.insert(&Prehashed(0)).expect("there is room");
    let one = alone.to_bytes();
    let table = |filter: &CuckooFilter| filter.to_bytes()[64..64 + params.table_bytes()].to_vec();
    let first = table(&alone).iter().position(|&byte| byte != 0).expect("it is in the table");
    let neighbours: Vec<u64> = (1..400_000)
        .filter(|&item| {
            let mut other = CuckooFilter::new(params, Xxh3).expect("there is memory");
            other.insert(&Prehashed(item)).expect("there is room");
            table(&other)[first..first + 4].iter().any(|&byte| byte != 0)
        })
        .take(40)
        .collect();
    assert!(one.len() > 64 && neighbours.len() == 40);
    let mut inserted = Vec::new();
    for copies in 0..30 {
        for &item in &neighbours {
            match filter.insert(&Prehashed(item)) {
                Ok(()) => inserted.push(item),
                // Different items fill the bucket and all that evictions reach: never copies.
                Err(error) => panic!("copy {copies} of {item}: {error}"),
            }
        }
    }
    assert!(neighbours.iter().all(|&item| filter.count(&Prehashed(item)) >= 30));
    assert!(inserted.iter().all(|&item| filter.remove(&Prehashed(item))) && filter.is_empty());
}

#[test]
fn an_item_has_at_most_four_billion_copies() {
    let builder = CuckooFilter::builder().capacity(100).false_positive_rate(0.001);
    let mut filter = builder.clone().build().expect("right");
    filter.insert("alice").expect("there is room");
    // Doubled by merging.
    for _ in 0..31 {
        let copy = filter.clone();
        filter.merge(&copy).expect("there is room");
    }
    assert_eq!((filter.count("alice"), filter.len()), (1 << 31, 1 << 31));
    let copy = filter.clone();
    let error = filter.merge(&copy).unwrap_err();
    assert_eq!(error.to_string(), "the item has 4294967295 copies, and no more are counted; insert_unique stores an item once");
    assert_eq!(filter, copy);
    assert!(filter.remove("alice"));
    let other = filter.clone();
    filter.merge(&other).expect("there is room");
    assert_eq!(filter.count("alice"), u32::MAX - 1);
    filter.insert("alice").expect("one more");
    let error = filter.insert("alice").unwrap_err();
    assert_eq!((error.kind(), filter.count("alice")), (InsertErrorKind::TooManyCopies, u32::MAX));
    let read = CuckooFilter::from_bytes(&filter.to_bytes()).expect("it was written");
    assert_eq!((read.count("alice"), read.len()), (u32::MAX, u32::MAX as usize));
    assert!(filter.insert("bob").is_ok() && filter.contains("bob"));
}

/// What copies take: at most 12 bytes for each item that has some, and nothing where there are none.
#[test]
fn copies_take_few_bytes() {
    let mut filter = CuckooFilter::builder().capacity(100_000).false_positive_rate(0.001).build().expect("right");
    let empty = filter.size_in_bytes();
    filter.insert_iter(0..100_000_u64).expect("there is room");
    assert_eq!(filter.size_in_bytes(), empty, "different items have no copies");
    for _ in 0..9 {
        filter.insert_iter(0..100_000_u64).expect("there is room");
    }
    let bytes = filter.size_in_bytes() - empty;
    assert!(bytes <= 12 * 100_000, "{bytes}");
    assert!(filter.to_bytes().len() as u64 <= filter.params().snapshot_bytes() + 8 + 12 * 100_000);
}

#[derive(Clone, Debug)]
enum Operation {
    Insert(u64, u32),
    Remove(u64, u32),
    Clear,
    RoundTrip,
    Merge(Vec<u64>),
    Union(Vec<u64>),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let item = 0_u64..40;
    let several = prop_oneof![4 => 1_u32..4, 1 => 4_u32..200];
    let operation = prop_oneof![
        12 => (item.clone(), several.clone()).prop_map(|(item, copies)| Operation::Insert(item, copies)),
        8 => (item.clone(), several).prop_map(|(item, copies)| Operation::Remove(item, copies)),
        1 => Just(Operation::Clear),
        3 => Just(Operation::RoundTrip),
        2 => prop::collection::vec(item.clone(), 0..60).prop_map(Operation::Merge),
        2 => prop::collection::vec(item, 0..60).prop_map(Operation::Union),
    ];
    prop::collection::vec(operation, 0..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, rng_seed: RngSeed::Fixed(42), failure_persistence: None, ..ProptestConfig::default() })]

    /// Against a multiset, in tables that different items just fit.
    #[test]
    fn copies_are_those_of_a_multiset(
        operations in operations(),
        (table, b) in prop_oneof![
            Just((TableKind::Packed, 4)),
            (0_u32..5).prop_map(|log2| (TableKind::Single, 1 << log2)),
        ],
        addressing in prop_oneof![Just(Addressing::AnySize), Just(Addressing::PowerOfTwo)],
    ) {
        let builder = CuckooFilter::builder().capacity(40).table(table).bucket_size(b).fingerprint_bits(24).addressing(addressing);
        let mut filter = builder.build().expect("right");
        let mut model: HashMap<u64, u32> = HashMap::new();
        let empty = filter.clone();
        for operation in operations {
            match operation {
                Operation::Insert(item, copies) => {
                    for _ in 0..copies {
                        filter.insert(&Prehashed(item)).expect("any number of copies");
                    }
                    *model.entry(item).or_default() += copies;
                }
                Operation::Remove(item, copies) => {
                    let has = model.entry(item).or_default();
                    for _ in 0..copies {
                        prop_assert_eq!(filter.remove(&Prehashed(item)), *has > 0);
                        *has = has.saturating_sub(1);
                    }
                }
                Operation::Clear => {
                    filter.clear();
                    model.clear();
                }
                Operation::RoundTrip => {
                    let bytes = filter.to_bytes();
                    prop_assert_eq!(bytes.len() as u64, filter.snapshot_bytes());
                    let view = FilterView::over(&bytes[..]).expect("it was written");
                    view.verify().expect("it was written");
                    prop_assert!(view == filter && view.to_filter().expect("it is valid") == filter);
                    let mut written = Vec::new();
                    filter.write_to(&mut written).expect("there is memory");
                    prop_assert!(written == bytes && view.to_bytes() == bytes);
                    filter = CuckooFilter::read_from(&bytes[..]).expect("it was written");
                }
                Operation::Merge(items) => {
                    let mut other = empty.clone();
                    for &item in &items {
                        other.insert(&Prehashed(item)).expect("any number of copies");
                        *model.entry(item).or_default() += 1;
                    }
                    filter.merge(&other).expect("any number of copies");
                }
                Operation::Union(items) => {
                    let mut other = empty.clone();
                    let mut counts: HashMap<u64, u32> = HashMap::new();
                    for &item in &items {
                        other.insert(&Prehashed(item)).expect("any number of copies");
                        *counts.entry(item).or_default() += 1;
                    }
                    filter.union(&other).expect("any number of copies");
                    for (item, copies) in counts {
                        let has = model.entry(item).or_default();
                        *has = copies.max(*has);
                    }
                }
            }
            for item in 0..40 {
                prop_assert_eq!(filter.count(&Prehashed(item)), model.get(&item).copied().unwrap_or(0), "of {}", item);
            }
            prop_assert_eq!(filter.len(), model.values().map(|&copies| copies as usize).sum::<usize>());
        }
    }
}
