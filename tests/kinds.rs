//! Each operation has the same name in all filters that have it, and all forms of an operation have the same effect.
//!
//! All filters have the same lookups, and all but views can remove items. `CuckooFilter`, `ElasticFilter`, `SharedFilter` and
//! `GoFilter` have all forms of insertion. The first three can be merged.

use crate::common::same_bits;
use koel::{Contains, CuckooFilter, ElasticFilter, ElasticView, FilterView, Insert, Prehashed};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// More than two batches of 64 items.
const ITEMS: u64 = 150;

/// A false-positive rate so low that no false positive is expected.
const RATE: f64 = 1e-6;

fn fixed() -> CuckooFilter {
    CuckooFilter::builder().capacity(1000).false_positive_rate(RATE).build().expect("valid parameters")
}

fn growing() -> koel::ElasticBuilder {
    ElasticFilter::builder().false_positive_rate(RATE).capacity(50).partitions(4)
}

fn items() -> Vec<u64> {
    (0..ITEMS).collect()
}

/// Compares all forms of lookup in a filter that has each item of `present` once. `name` is the type's name in `Debug`.
macro_rules! check_lookups {
    ($name:literal, $filter:expr, $present:expr) => {{
        let (name, filter, present): (_, _, Vec<u64>) = ($name, &$filter, $present);
        let queried: Vec<u64> = (0..2 * ITEMS).collect();
        let expected: Vec<bool> = queried.iter().map(|item| filter.contains(item)).collect();
        assert!(present.iter().all(|item| filter.contains(item) && filter.count(item) >= 1), "{name}");
        assert!(filter.len() == present.len() && filter.is_empty() == present.is_empty(), "{name}");
        let hashes: Vec<u64> = queried.iter().map(|item| filter.hash(item)).collect();
        assert!(hashes.iter().map(|&hash| filter.contains(&Prehashed(hash))).eq(expected.iter().copied()), "{name}");
        assert!(filter.contains_iter(&queried).map(|(_, found)| found).eq(expected.iter().copied()), "{name}");
        let members = expected.iter().filter(|&&found| found).count();
        assert_eq!((filter.count_members(&queried), filter.count_members(&Prehashed(&hashes))), (members, members), "{name}");
        let mut found = vec![false; queried.len()];
        filter.contains_batch(&queried, &mut found);
        assert_eq!(found, expected, "{name}");
        filter.contains_batch(&Prehashed(&hashes), &mut found);
        assert_eq!(found, expected, "{name}");
        // Repeats the lookups through a trait object.
        let any: &dyn Contains<u64> = filter;
        any.contains_batch(&queried, &mut found);
        assert_eq!((&found, any.count_members(&queried), any.len()), (&expected, members, filter.len()), "{name}");
        let keys: Vec<Prehashed> = hashes.into_iter().map(Prehashed).collect();
        any.by_hash().contains_batch(&keys, &mut found);
        assert_eq!((&found, any.by_hash().count_members(&keys)), (&expected, members), "{name}");
        assert_eq!((any.size_in_bytes(), any.false_positive_rate()), (filter.size_in_bytes(), filter.false_positive_rate()));
        assert!((0.0..1.0).contains(&filter.false_positive_rate()) && filter.measure_false_positive_rate(200) < 0.1, "{name}");
        assert!(format!("{filter:?}").starts_with(name) && filter.to_string().contains("false-positive rate"), "{name}");
    }};
}

/// Checks what only filters with parameters have: statistics and kernels.
macro_rules! check_statistics_and_kernels {
    ($filter:expr) => {{
        let filter = &mut $filter;
        assert!(filter.bits_per_item() > 0.0 && filter.params().seed() == 0);
        assert!(filter.distinct() > 0 && filter.distinct() <= filter.len());
        for kernel in koel::Kernel::available() {
            filter.set_kernel(kernel).expect("it is available");
            assert_eq!(filter.kernel(), kernel);
        }
    }};
}

/// Compares all forms of insertion and removal. `$make` makes an empty filter.
macro_rules! check_changes {
    ($name:literal, $make:expr) => {{
        let (items, hashes_in) =
            (items(), |filter: &dyn Contains<u64>| items().iter().map(|item| filter.hash(item)).collect::<Vec<u64>>());
        #[allow(unused_mut, reason = "shared filters are changed through a shared reference")]
        let [mut single, mut batch, mut hashes, mut iterator, mut unique, mut dynamic] = std::array::from_fn(|_| $make);
        items.iter().for_each(|item| single.insert(item).expect("there is room"));
        batch.insert_batch(&items).expect("there is room");
        hashes.insert_batch(&Prehashed(hashes_in(&hashes))).expect("there is room");
        assert_eq!(iterator.insert_iter(&items).expect("there is room"), items.len());
        assert_eq!(unique.insert_unique_iter(items.iter().chain(&items)).expect("there is room"), items.len());
        let any: &mut dyn Insert<u64> = &mut dynamic;
        any.insert_batch(&items).expect("there is room");
        for filter in [&batch, &hashes, &iterator, &unique, &dynamic] {
            assert!(same_bits(filter, &single), "{}", $name);
            check_lookups!($name, *filter, items.clone());
        }
        let (mut again, mut new) = ($make, vec![false; items.len() + 2]);
        let twice: Vec<u64> = items.iter().chain(&items[..2]).copied().collect();
        again.insert_unique_batch(&twice, &mut new).expect("there is room");
        assert!(
            same_bits(&again, &single) && new[..items.len()].iter().all(|&new| new) && !new[items.len()] && !new[items.len() + 1]
        );
        let (any, mut new): (&mut dyn Insert<u64>, _) = (&mut again, [false; 3]);
        any.insert_unique_batch(&[0, ITEMS, ITEMS], &mut new).expect("there is room");
        assert_eq!(new, [false, true, false], "{}", $name);
        assert!(!unique.insert_unique(&3_u64).expect("it is there") && unique.insert_unique(&ITEMS).expect("there is room"));
        assert!(unique.remove(&ITEMS) && !unique.remove(&ITEMS), "{}", $name);
        let (some, mut removed) = ([1, ITEMS, 2], [false; 3]);
        batch.remove_batch(&some, &mut removed);
        assert_eq!(removed, [true, false, true], "{}", $name);
        let any: &mut dyn Insert<u64> = &mut dynamic;
        any.remove_batch(&some, &mut removed);
        assert_eq!(removed, [true, false, true], "{}", $name);
        assert!(same_bits(&batch, &dynamic) && batch != single, "{}", $name);
        check_lookups!($name, batch, items.into_iter().filter(|item| !some.contains(item)).collect());
    }};
}

#[test]
fn all_forms_of_insertion_and_removal_agree() {
    check_changes!("CuckooFilter", fixed());
    check_changes!("ElasticFilter", growing().build().expect("valid parameters"));
    #[cfg(feature = "std")]
    check_changes!("SharedFilter", growing().build_shared().expect("valid parameters"));
    #[cfg(all(feature = "metrohash", target_endian = "little"))]
    check_changes!("GoFilter", go_filter());
}

#[cfg(all(feature = "metrohash", target_endian = "little"))]
fn go_filter() -> koel::go::GoFilter {
    let builder = CuckooFilter::builder().hasher(koel::go::MetroHash64).seed(1337).fingerprint_bits(25);
    let filter = builder.addressing(koel::Addressing::PowerOfTwo).capacity(1000).build().expect("valid parameters");
    filter.try_into().expect("compatible with Go")
}

/// Merges two halves, unites overlapping filters, and intersects them. The other filter is used as it is, or read from a view of its
/// snapshot.
macro_rules! check_merges {
    ($make:expr, $view:ident) => {{
        let all: Vec<u64> = items();
        #[allow(unused_mut, reason = "shared filters are changed through a shared reference")]
        let [mut both, mut left, mut right] = std::array::from_fn(|_| $make);
        both.insert_batch(&all).expect("there is room");
        left.insert_batch(&all[..70]).expect("there is room");
        right.insert_batch(&all[70..]).expect("there is room");
        left.merge(&right).expect("there is room");
        assert!(left.len() == both.len() && all.iter().all(|item| left.count(item) == 1));
        left.union(&both).expect("there is room");
        assert_eq!(left.len(), both.len());
        left.merge(&check_merges!(@ $view, both)).expect("there is room");
        assert!(all.iter().all(|item| left.count(item) == 2));
        left.union(&check_merges!(@ $view, right)).expect("there is room");
        assert_eq!(left.len(), 2 * both.len());
        left.intersect(&check_merges!(@ $view, right)).expect("equal parameters");
        assert!(left.len() == right.len() && all[70..].iter().all(|item| left.count(item) == 1));
    }};
    (@ itself, $filter:ident) => {
        $filter
    };
    (@ $view:ident, $filter:ident) => {{
        let views = [$view::over($filter.to_bytes()), $view::over($filter.to_bytes())].map(|view| view.expect("valid snapshot"));
        assert!(same_bits(&views[0], &views[1]));
        views[0].to_filter().expect("valid snapshot")
    }};
}

#[test]
fn filters_and_views_are_merged() {
    check_merges!(fixed(), itself);
    check_merges!(fixed(), FilterView);
    check_merges!(growing().build().expect("valid parameters"), itself);
    check_merges!(growing().build().expect("valid parameters"), ElasticView);
    #[cfg(feature = "std")]
    check_merges!(growing().build_shared().expect("valid parameters"), itself);
}

/// `&SharedFilter` implements `Insert`, as `&File` implements `Write`.
#[cfg(feature = "std")]
#[test]
fn references_to_shared_filters_can_insert() {
    fn fill(mut filter: impl Insert<u64>) {
        filter.insert_batch(&items()).expect("there is room");
        assert!(filter.insert_unique(&ITEMS).expect("there is room") && filter.remove(&ITEMS));
    }
    let shared = growing().build_shared().expect("valid parameters");
    fill(&shared);
    check_lookups!("SharedFilter", shared, items());
}

/// Calls a function that must panic since its two slices differ in length.
#[track_caller]
fn assert_lengths_are_compared(call: impl FnOnce()) {
    let panic = catch_unwind(AssertUnwindSafe(call)).expect_err("the lengths differ");
    let text = panic.downcast_ref::<String>().expect("the panic has a message");
    assert!(text.contains("the two slices must have the same length"), "{text}");
}

/// Calls each batch operation of filters with three items, and with room for fewer or more answers.
macro_rules! check_lengths {
    ($filter:expr) => {{
        #[allow(unused_mut, reason = "shared filters are changed through a shared reference")]
        let mut filter = $filter;
        filter.insert(&1_u64).expect("there is room");
        let before = filter.to_bytes();
        for len in [0, 2, 4] {
            let (items, mut answers) = ([1_u64, 2, 3], vec![false; len]);
            assert_lengths_are_compared(|| filter.contains_batch(&items, &mut answers));
            assert_lengths_are_compared(|| filter.insert_unique_batch(&items, &mut answers).expect("there is room"));
            assert_lengths_are_compared(|| filter.remove_batch(&items, &mut answers));
        }
        assert!(filter.to_bytes() == before);
    }};
}

#[test]
#[cfg_attr(not(panic = "unwind"), ignore = "a panic ends the process")]
fn batches_need_room_for_as_many_answers_as_items() {
    check_lengths!(fixed());
    check_lengths!(growing().build().expect("valid parameters"));
    #[cfg(feature = "std")]
    check_lengths!(growing().build_shared().expect("valid parameters"));
}

#[test]
fn all_forms_of_lookup_agree() {
    let (mut fixed, mut grown) = (fixed(), growing().build().expect("valid parameters"));
    fixed.insert_batch(&items()).expect("there is room");
    grown.insert_batch(&items()).expect("the filter grows");
    check_statistics_and_kernels!(fixed);
    check_statistics_and_kernels!(grown);
    let mut view = FilterView::over(fixed.to_bytes()).expect("valid snapshot");
    check_lookups!("FilterView", view, items());
    check_statistics_and_kernels!(view);
    let mut view = ElasticView::over(grown.to_bytes()).expect("valid snapshot");
    check_lookups!("ElasticView", view, items());
    check_statistics_and_kernels!(view);
    #[cfg(feature = "std")]
    {
        let mut shared = grown.into_shared().expect("there is memory");
        check_lookups!("SharedFilter", shared, items());
        check_statistics_and_kernels!(shared);
    }
    #[cfg(feature = "redisbloom")]
    {
        let mut redis =
            koel::redisbloom::RedisBloomFilter::from_filter(&redisbloom_filter()).expect("compatible with RedisBloom");
        check_lookups!("RedisBloomFilter", redis, items());
        let mut removed = [false; 2];
        redis.remove_batch(&[0_u64, 1], &mut removed);
        assert!(removed == [true; 2] && redis.remove(&2_u64) && redis.len() == items().len() - 3);
    }
}

#[cfg(feature = "redisbloom")]
fn redisbloom_filter() -> CuckooFilter<koel::redisbloom::RedisBloomHash> {
    use koel::{Addressing, TableKind, redisbloom::RedisBloomHash};
    let builder = CuckooFilter::builder().hasher(RedisBloomHash).table(TableKind::Single).fingerprint_bits(8);
    let mut filter = builder.addressing(Addressing::PowerOfTwo).capacity(400).build().expect("valid parameters");
    filter.insert_batch(&items()).expect("there is room");
    filter
}
