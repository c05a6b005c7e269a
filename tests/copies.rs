//! Any number of copies: as many different items as a filter is planned for fit, however often each is inserted; none is refused or
//! lost, and every copy can be counted and removed.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use koel::{Addressing, CuckooFilter, FilterView, InsertErrorKind, Prehashed, TableKind, Xxh3};
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
            (1..all.len()).rev().for_each(|at| all.swap(at, numbers.next().map_or(0, |number| number as usize % (at + 1))));
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
