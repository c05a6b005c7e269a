//! Copies of items: a filter holds as many distinct items as it is planned for, however often each is inserted. No copy is refused
//! or lost, and all copies can be counted and removed.

#![allow(clippy::cast_precision_loss, reason = "small numbers")]

use koel::{
    Addressing, CuckooFilter, ElasticBuilder, ElasticFilter, ElasticView, FilterView, InsertErrorKind, Prehashed, SharedFilter,
    TableKind, Xxh3,
};
use std::{collections::HashMap, iter};

use crate::common::{SplitMix64, same_bits};

/// The order in which repeated items are inserted.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// All copies of an item in a row.
    InARow,
    /// All items once, then all of them again.
    ByPasses,
    /// Random order with Zipf's frequencies, as in texts: item n comes 1/n times as often as the first.
    Zipf,
}

fn sequence(order: Order, items: u64, copies: u64) -> Vec<u64> {
    match order {
        Order::InARow => (0..items * copies).map(|n| n / copies).collect(),
        Order::ByPasses => (0..items * copies).map(|n| n % items).collect(),
        Order::Zipf => {
            let mut all: Vec<u64> =
                (0..items).flat_map(|item| (0..=items * copies / (16 * (item + 1))).map(move |_| item)).collect();
            SplitMix64(7).shuffle(&mut all);
            all
        }
    }
}

/// Inserts `inserted`, checks that no copy is refused or lost, and removes all copies individually.
fn check_fixed(mut filter: CuckooFilter, inserted: &[u64], case: &str) {
    let mut model = HashMap::new();
    for (position, &item) in inserted.iter().enumerate() {
        if let Err(error) = filter.insert(&Prehashed(item)) {
            panic!("{case}: {error}, after {position} of {} insertions", inserted.len());
        }
        *model.entry(item).or_insert(0_u32) += 1;
    }
    assert_eq!(filter.len(), inserted.len(), "{case}");
    let too_low =
        |filter: &CuckooFilter| model.iter().filter(|&(item, &copies)| filter.count(&Prehashed(*item)) < copies).count();
    assert_eq!(too_low(&filter), 0, "{case}: items counted too low");
    let colliding = model.iter().filter(|&(item, &copies)| filter.count(&Prehashed(*item)) > copies).count();
    let distinct = filter.distinct();
    assert!(distinct <= model.len() && model.len() <= distinct + colliding, "{case}: {distinct} of {}", model.len());
    let bytes = filter.to_bytes();
    let read = CuckooFilter::from_bytes(&bytes).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert!(same_bits(&read, &filter), "{case}");
    let view = FilterView::over(bytes).expect(case);
    view.verify().expect(case);
    assert!(model.keys().all(|&item| view.count(&Prehashed(item)) == filter.count(&Prehashed(item))), "{case}");
    for &item in inserted {
        assert!(filter.remove(&Prehashed(item)), "{case}");
    }
    assert!(filter.is_empty() && same_bits(&filter, &CuckooFilter::new(filter.params(), Xxh3).expect(case)), "{case}: not empty");
}

/// A refusal names the number of distinct items, and the length that the caller sees.
#[test]
fn a_full_filter_names_its_distinct_items_and_its_length() {
    for copies in [1, 3, 40] {
        let mut filter = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build().expect("a small filter");
        let item = |number: u64| Prehashed(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let refused = (0..).find_map(|number| (0..copies).find_map(|_| filter.insert(&item(number)).err()));
        let error = refused.expect("the filter is full at last");
        let InsertErrorKind::Full { distinct, len } = error.kind() else { panic!("{error}") };
        assert!(
            distinct == filter.distinct() && distinct >= 1000 && len == filter.len(),
            "{error}, distinct {}",
            filter.distinct()
        );
        assert_eq!(error.to_string().contains("(length "), copies > 1, "{error}");
    }
}

#[test]
fn planned_items_fit_with_any_number_of_copies() {
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
                    let builder = builder.clone().addressing(addressing);
                    let case = format!("{table}, b = {b}, f = {f}, {addressing}, {copies} copies {order:?}");
                    let inserted = sequence(order, items as u64, copies);
                    let built =
                        builder.clone().build_from_items(&Prehashed(&inserted)).unwrap_or_else(|error| panic!("{case}: {error}"));
                    assert_eq!(built.len(), inserted.len(), "{case}");
                    check_fixed(builder.build().expect("valid parameters"), &inserted, &case);
                }
            }
        }
    }
}

/// A filter that has as many distinct items as planned is full if even few of them have copies in its tables. These leave, and the
/// filter does not grow: not for insertions, and not for unions and sums. Only shards as large as these have so small a margin.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn planned_filters_do_not_grow_for_few_copies() {
    for (rate, items, one_in, copies) in [(0.001, 200_000_u64, 40, 2), (1e-6, 200_000, 45, 3), (0.001, 150_000, 5, 3)] {
        let capacity = usize::try_from(items).expect("a small number");
        let builder = ElasticFilter::builder().false_positive_rate(rate).capacity(capacity).max_capacity(capacity);
        let empty = || builder.clone().build().expect("valid parameters");
        let copies_of = |item: u64| if item.is_multiple_of(one_in) { copies } else { 1 };
        let in_a_row: Vec<u64> = (0..items).flat_map(|item| iter::repeat_n(item, copies_of(item))).collect();
        let by_passes: Vec<u64> = (0..copies).flat_map(|pass| (0..items).filter(move |&item| pass < copies_of(item))).collect();
        let [filter, other] = [in_a_row, by_passes].map(|inserted| {
            let mut filter = empty();
            filter.insert_iter(&inserted).expect("the filter grows");
            filter
        });
        let (mut union, mut sum) = (empty(), filter.clone());
        union.union(&filter).expect("no more items than planned");
        sum.merge(&other).expect("no more items than planned");
        for (filter, times) in [(&filter, 1), (&other, 1), (&union, 1), (&sum, 2)] {
            assert_eq!(filter.buckets_per_lookup(), 2, "{rate} {items} {one_in} {copies}: {filter}");
            let is_counted = |item| filter.count(&item) as usize >= times * copies_of(item);
            assert!((0..items).step_by(5).all(is_counted), "{rate} {items} {one_in} {copies}: {filter}");
        }
    }
}

/// Returns how many items have a lower count than in the model, and how many a higher one.
fn miscounted(model: &HashMap<u64, u32>, count: impl Fn(u64) -> u32) -> (usize, usize) {
    let (mut low, mut high) = (0, 0);
    for (&item, &copies) in model {
        low += usize::from(count(item) < copies);
        high += usize::from(count(item) > copies);
    }
    (low, high)
}

/// Checks the same for a growing filter, which may be only a little larger than one that has each item once.
fn check_growing(builder: &ElasticBuilder, inserted: &[u64], case: &str) {
    let (mut filter, mut once) =
        (builder.clone().build().expect("valid parameters"), builder.clone().build().expect("valid parameters"));
    let empty = filter.clone();
    let mut model = HashMap::new();
    for (position, &item) in inserted.iter().enumerate() {
        if let Err(error) = filter.insert(&Prehashed(item)) {
            panic!("{case}: {error}, after {position} of {} insertions", inserted.len());
        }
        *model.entry(item).or_insert(0_u32) += 1;
        if model[&item] == 1 {
            once.insert(&Prehashed(item)).expect(case);
        }
    }
    filter.assert_consistent();
    assert_eq!(filter.len(), inserted.len(), "{case}");
    let (low, high) = miscounted(&model, |item| filter.count(&Prehashed(item)));
    // Distinct items that collide are counted together.
    let colliding = model.keys().filter(|&&item| once.count(&Prehashed(item)) > 1).count();
    assert!(low == 0 && high <= 20 + 3 * colliding, "{case}: {low} items counted too low, {high} too high");
    if filter.buckets_per_lookup() == 2 {
        let distinct = filter.distinct();
        assert!(distinct <= model.len() && model.len() <= distinct + colliding, "{case}: {distinct} of {}", model.len());
    }
    let repeated = model.values().filter(|&&copies| copies > 1).count();
    // Second copies stay in tables while they are less than an eighth of a shard: up to 9/8 as many shards, and two more.
    let (most_shards, most_bytes) = (once.shards() + once.shards() / 8 + 2, once.size_in_bytes() + once.size_in_bytes() / 8);
    assert!(filter.shards() <= most_shards, "{case}: {} shards instead of {}", filter.shards(), once.shards());
    let most_bytes = most_bytes + 3000 + 16 * repeated;
    assert!(filter.size_in_bytes() <= most_bytes, "{case}: {} bytes instead of {}", filter.size_in_bytes(), once.size_in_bytes());
    assert_eq!(filter.buckets_per_lookup(), once.buckets_per_lookup(), "{case}");
    let bytes = filter.to_bytes();
    assert_eq!(bytes.len() as u64, filter.snapshot_bytes(), "{case}");
    let read = ElasticFilter::from_bytes(&bytes).unwrap_or_else(|error| panic!("{case}: {error}"));
    assert!(same_bits(&read, &filter) && read.charged_bytes() == filter.charged_bytes(), "{case}");
    let view = ElasticView::over(&bytes[..]).expect(case);
    view.verify().expect(case);
    assert_eq!((view.len(), view.table_len()), (filter.len(), filter.table_len()), "{case}");
    assert!(filter.load_factor() <= 1.0 && view.load_factor().to_bits() == filter.load_factor().to_bits(), "{case}");
    assert_eq!(miscounted(&model, |item| view.count(&Prehashed(item))), (low, high), "{case}");
    let mut shared = read.into_shared().expect(case);
    assert_eq!(shared.table_len(), filter.table_len(), "{case}");
    for &item in inserted {
        assert!(filter.remove(&Prehashed(item)), "{case}");
        assert!(shared.remove(&Prehashed(item)), "{case}");
    }
    assert!(filter.is_empty() && shared.is_empty(), "{case}");
    filter.shrink();
    shared.shrink();
    assert_eq!(filter.to_bytes(), empty.to_bytes(), "{case}");
    assert!(filter.size_in_bytes() <= empty.size_in_bytes() + 1000, "{case}: memory is not freed");
    shared = shared.into_elastic().expect(case).into_shared().expect(case);
    assert_eq!(shared.to_bytes(), empty.to_bytes(), "{case}");
}

/// Second copies stay in tables while fewer than an eighth of the items near a full bucket are ones. Where shards split, the filter may
/// have a third more of them, since those of a quarter of the streams split at about the same time: as many as with a fifth more items.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn second_copies_make_a_filter_grow_as_a_fifth_more_items_do() {
    let mut random = SplitMix64(12);
    let mut most = 0.0_f64;
    for items in iter::successors(Some(40_000_u64), |items| Some(items * 106 / 100)).take(12) {
        for share in [20, 50, 65, 80, 120] {
            let copied = items * share / 1000;
            let mut inserted: Vec<u64> = (0..items).chain(0..copied).chain(0..copied).collect();
            random.shuffle(&mut inserted);
            let build = || ElasticFilter::builder().false_positive_rate(0.001).build().expect("valid parameters");
            let [mut filter, mut once, mut more] = [(); 3].map(|()| build());
            filter.insert_iter(&inserted).expect("the filter grows");
            once.insert_iter(0..items).expect("the filter grows");
            more.insert_iter(0..items / 5 * 6).expect("the filter grows");
            let case = format!("{items} items, {share} of 1,000 three times: {filter}; each once: {once}");
            assert!(filter.shards() <= more.shards() + 2, "{case}; a fifth more: {more}");
            most = most.max(filter.shards() as f64 / once.shards() as f64);
        }
    }
    assert!((1.125..1.35).contains(&most), "{most}");
}

/// The only test that compares shards and bytes with those of a filter that has each item once, for every order of copies.
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
    ] {
        for order in [Order::InARow, Order::ByPasses, Order::Zipf] {
            for copies in [2, 3, 8, 50, 1000] {
                // Up to 8 copies, items are enough for many shards. With more, only counts differ, and their bytes.
                let items = match copies {
                    1000 => items / 20,
                    50 => items / 4,
                    _ => items,
                };
                check_growing(&builder, &sequence(order, items, copies), &format!("{name}, {copies} copies {order:?}"));
            }
        }
    }
}

/// Copies never raise the rate: it is highest if each item in the table is distinct.
#[test]
fn copies_do_not_raise_the_rate_above_the_promised_one() {
    const PROBES: usize = 200_000;
    let probes = || SplitMix64(99).take(PROBES);
    let check = |case: &str, found: usize, stated: f64, promised: f64| {
        let expected = PROBES as f64 * stated;
        let deviation = 5.0 * expected.sqrt();
        assert!(found as f64 <= expected + deviation, "{case}: {found} found, at a rate of {stated}");
        assert!(stated <= promised, "{case}: a rate of {stated}, {promised} promised");
    };
    for promised in [0.35, 0.3, 0.2, 0.1, 0.05, 0.01] {
        for copies in [1, 2, 9] {
            let numbers = sequence(Order::ByPasses, 20_000, copies);
            for b in [1, 2, 4, 8] {
                let builder = CuckooFilter::builder().capacity(20_000).false_positive_rate(promised);
                let mut fixed = builder.table(TableKind::Single).bucket_size(b).build().expect("valid parameters");
                fixed.insert_iter(&numbers).expect("there is room");
                let found = probes().filter(|&hash| fixed.contains(&Prehashed(hash))).count();
                let case = format!("fixed, {promised}, buckets of {b}, {copies} copies");
                check(&case, found, fixed.false_positive_rate(), promised);
            }
            let mut growing = ElasticFilter::builder().false_positive_rate(promised).build().expect("valid parameters");
            growing.insert_iter(&numbers).expect("there is room");
            let found = probes().filter(|&hash| growing.contains(&Prehashed(hash))).count();
            check(&format!("growing, {promised}, {copies} copies"), found, growing.false_positive_rate(), promised);
            let view = ElasticView::over(growing.to_bytes()).expect("valid snapshot");
            assert!((view.false_positive_rate() / growing.false_positive_rate() - 1.0).abs() < 1e-9);
        }
    }
}

/// Several threads insert and remove the same items, with a limit and without one.
#[test]
#[cfg_attr(target_family = "wasm", ignore = "WebAssembly has no threads")]
fn shared_filters_count_the_copies_of_all_threads() {
    const THREADS: u64 = 4;
    const ITEMS: u64 = 2000;
    for max_bytes in [usize::MAX, 1 << 22] {
        let builder = ElasticFilter::builder().false_positive_rate(1e-6).partitions(8).max_bytes(max_bytes);
        let filter = builder.build_shared().expect("valid parameters");
        let in_all_threads = |act: &(dyn Fn(u64) + Sync)| {
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    scope.spawn(move || (0..ITEMS).for_each(|n| act((n * 7 + thread * 501) % ITEMS)));
                }
            });
        };
        for _ in 0..5 {
            in_all_threads(&|item| filter.insert(&item).expect("copies always fit"));
        }
        filter.insert_batch(&(0..3 * ITEMS).map(|n| n % ITEMS).collect::<Vec<_>>()).expect("copies always fit");
        let copies = 5 * THREADS + 3;
        assert_eq!(filter.len() as u64, copies * ITEMS);
        assert!((0..ITEMS).all(|item| u64::from(filter.count(&item)) == copies));
        let read = SharedFilter::from_bytes(&filter.to_bytes()).expect("valid snapshot");
        assert!(
            same_bits(&read, &filter) && read.charged_bytes() == filter.charged_bytes() && filter.charged_bytes() <= max_bytes
        );
        let mut twice = filter.try_clone().expect("there is memory");
        twice.merge(&read).expect("copies always fit");
        assert!((0..ITEMS).all(|item| u64::from(twice.count(&item)) == 2 * copies));
        twice.union(&read).expect("the other filter has fewer copies");
        assert_eq!(twice.len() as u64, 2 * copies * ITEMS);
        for _ in 0..5 {
            in_all_threads(&|item| assert!(filter.remove(&item)));
        }
        assert!((0..ITEMS).all(|item| filter.count(&item) == 3 && (0..3).all(|_| filter.remove(&item))));
        assert!(filter.is_empty() && !(0..ITEMS).any(|item| filter.contains(&item)));
    }
}

/// A million copies of one item are accepted, and the filter does not grow.
#[test]
fn a_million_copies_of_one_item_take_few_bytes() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001);
    let (mut filter, shared) =
        (builder.clone().build().expect("valid parameters"), builder.build_shared().expect("valid parameters"));
    assert!(filter.load_factor() <= 0.0, "the load of an empty filter is 0, not NaN");
    filter.insert("alice").expect("there is room");
    let bytes = filter.size_in_bytes();
    for _ in 1..1 << 20 {
        filter.insert("alice").expect("copies always fit");
        shared.insert("alice").expect("copies always fit");
    }
    assert_eq!((filter.count("alice"), filter.len(), filter.buckets()), (1 << 20, 1 << 20, 0));
    assert_eq!((shared.count("alice"), shared.len(), shared.buckets()), ((1 << 20) - 1, (1 << 20) - 1, 0));
    assert!(filter.table_len() == 1 && filter.load_factor() <= 1.0, "the list has one item");
    assert!(filter.size_in_bytes() <= bytes + 300, "{} and {bytes} bytes", filter.size_in_bytes());
    assert!((0..1 << 20).all(|_| filter.remove("alice")) && filter.is_empty() && !filter.remove("alice"));
}

/// The message of a merge, with a remedy that works.
const TOO_MANY: &str =
    "an item would have more than 4294967295 copies, and no more are counted; union keeps the larger number of copies";

#[test]
fn growing_filters_refuse_more_than_four_billion_copies() {
    let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build().expect("valid parameters");
    filter.insert("alice").expect("there is room");
    for _ in 0..31 {
        let copy = filter.clone();
        filter.merge(&copy).expect("there is room");
    }
    assert_eq!((filter.count("alice"), filter.len(), filter.buckets()), (1 << 31, 1 << 31, 0));
    let copy = filter.clone();
    let error = filter.merge(&copy).unwrap_err();
    assert_eq!(error.to_string(), TOO_MANY);
    let union = filter.clone();
    filter.union(&copy).expect("the number is the same");
    assert!(same_bits(&filter, &union));
    assert!(same_bits(&filter, &copy) && filter.remove("alice"));
    let other = filter.clone();
    filter.merge(&other).expect("there is room");
    assert_eq!(filter.count("alice"), u32::MAX - 1);
    filter.insert("alice").expect("one more");
    let error = filter.insert("alice").unwrap_err();
    assert_eq!((error.kind(), filter.count("alice")), (InsertErrorKind::TooManyCopies, u32::MAX));
    filter.assert_consistent();
    let mut read = ElasticFilter::from_bytes(&filter.to_bytes()).expect("valid snapshot");
    assert_eq!((read.count("alice"), read.len()), (u32::MAX, u32::MAX as usize));
    // A union takes the larger count, so equal filters stay as they are.
    read.union(&filter).expect("they are equal");
    assert!(same_bits(&read, &filter));
    // More items than a `usize` of 32 bits counts are all there, also after a round trip.
    filter.insert("bob").expect("there is room");
    let mut read = ElasticFilter::from_bytes(&filter.to_bytes()).expect("valid snapshot");
    assert!(same_bits(&read, &filter) && read.len() == u32::MAX as usize + usize::from(cfg!(target_pointer_width = "64")));
    assert!(read.remove("alice") && read.remove("bob") && read.count("alice") == u32::MAX - 1 && read.count("bob") == 0);
    assert_eq!(read.len(), u32::MAX as usize - 1);
}

/// Merges a filter with itself, which doubles all counts, this many times.
fn doubled(mut filter: CuckooFilter, times: u32) -> CuckooFilter {
    for _ in 0..times {
        filter.merge(&filter.clone()).expect("there is room");
    }
    filter
}

/// All items share one bucket, the worst choice that an attacker can make.
#[test]
fn copies_of_items_that_share_a_bucket_all_fit() {
    let params = CuckooFilter::builder().capacity(4000).fingerprint_bits(12).params().expect("valid parameters");
    let mut filter = CuckooFilter::new(params, Xxh3).expect("there is memory");
    // Finds items that share a bucket with item 0: inserted alone, they change the same bytes of an empty table.
    let mut alone = CuckooFilter::new(params, Xxh3).expect("there is memory");
    alone.insert(&Prehashed(0)).expect("there is room");
    let one = alone.to_bytes();
    let table = |filter: &CuckooFilter| filter.to_bytes()[64..64 + params.table_bytes()].to_vec();
    let first = table(&alone).iter().position(|&byte| byte != 0).expect("it is in the table");
    let neighbors: Vec<u64> = (1..400_000)
        .filter(|&item| {
            let mut other = CuckooFilter::new(params, Xxh3).expect("there is memory");
            other.insert(&Prehashed(item)).expect("there is room");
            table(&other)[first..first + 4].iter().any(|&byte| byte != 0)
        })
        .take(40)
        .collect();
    assert!(one.len() > 64 && neighbors.len() == 40);
    let mut inserted = Vec::new();
    for copies in 0..30 {
        for &item in &neighbors {
            match filter.insert(&Prehashed(item)) {
                Ok(()) => inserted.push(item),
                // Only distinct items can fill the bucket and all slots that evictions reach.
                Err(error) => panic!("copy {copies} of {item}: {error}"),
            }
        }
    }
    assert!(neighbors.iter().all(|&item| filter.count(&Prehashed(item)) >= 30));
    assert!(inserted.iter().all(|&item| filter.remove(&Prehashed(item))) && filter.is_empty());
}

#[test]
fn fixed_filters_refuse_more_than_four_billion_copies() {
    let builder = CuckooFilter::builder().capacity(100).false_positive_rate(0.001);
    let mut filter = builder.clone().build().expect("valid parameters");
    filter.insert("alice").expect("there is room");
    filter = doubled(filter, 31);
    assert_eq!((filter.count("alice"), filter.len()), (1 << 31, 1 << 31));
    let copy = filter.clone();
    let error = filter.merge(&copy).unwrap_err();
    assert_eq!(error.to_string(), TOO_MANY);
    let union = filter.clone();
    filter.union(&copy).expect("the number is the same");
    assert!(same_bits(&filter, &union));
    assert!(same_bits(&filter, &copy));
    assert!(filter.remove("alice"));
    filter = doubled(filter, 1);
    assert_eq!(filter.count("alice"), u32::MAX - 1);
    filter.insert("alice").expect("one more");
    let error = filter.insert("alice").unwrap_err();
    assert_eq!((error.kind(), filter.count("alice")), (InsertErrorKind::TooManyCopies, u32::MAX));
    let read = CuckooFilter::from_bytes(&filter.to_bytes()).expect("valid snapshot");
    assert_eq!((read.count("alice"), read.len()), (u32::MAX, u32::MAX as usize));
    // More items than a `usize` of 32 bits counts are all there, also after a round trip.
    filter.insert("bob").expect("there is room");
    let mut read = CuckooFilter::from_bytes(&filter.to_bytes()).expect("valid snapshot");
    assert!(same_bits(&read, &filter) && read.len() == u32::MAX as usize + usize::from(cfg!(target_pointer_width = "64")));
    assert!(read.remove("alice") && read.remove("bob") && read.count("alice") == u32::MAX - 1 && read.count("bob") == 0);
    assert_eq!(read.len(), u32::MAX as usize - 1);
}

/// An item with the most copies makes room for others like any other, and gets no more copies where there is room for them.
#[test]
fn the_most_copies_are_neither_exceeded_nor_in_the_way() {
    let packed = CuckooFilter::builder().table(TableKind::Packed).fingerprint_bits(12).buckets(16);
    // In these, all extra copies may be distinct items that look equal by chance.
    let single = [2, 3, 4, 5].map(|f| CuckooFilter::builder().fingerprint_bits(f).bucket_size(16).buckets(8));
    for builder in single.into_iter().chain([packed]) {
        let mut filter = builder.build().expect("valid parameters");
        let mut most = filter.clone();
        most.insert("alice").expect("there is room");
        most = doubled(most, 31);
        assert!(most.remove("alice"));
        most = doubled(most, 1);
        assert_eq!(most.count("alice"), u32::MAX - 1);
        let case = filter.params().to_string();
        let others: Vec<u32> = (0..1000).filter(|item| !most.contains(item)).take(filter.slots() * 3 / 4).collect();
        let (twice, once) = others.split_at(2);
        for item in twice.iter().chain(twice) {
            filter.insert(item).expect("there is room");
        }
        filter.merge(&most).expect("there is room");
        // Each takes the slot of a copy of another item, some of them that of one of alice's.
        for item in (1000..3000).filter(|item| !most.contains(item)) {
            filter.clone().insert(&item).unwrap_or_else(|error| panic!("{case}, item {item}: {error}"));
        }
        for item in once {
            filter.insert(item).unwrap_or_else(|error| panic!("{case}, item {item}: {error}"));
        }
        for item in others.iter().chain(twice) {
            assert!(filter.remove(item), "{case}, item {item}");
        }
        let refused = (0..100).find_map(|_| filter.insert("alice").err()).unwrap_or_else(|| panic!("{case}: no copy is refused"));
        assert_eq!((refused.kind(), filter.count("alice")), (InsertErrorKind::TooManyCopies, u32::MAX), "{case}");
        let read = CuckooFilter::from_bytes(&filter.to_bytes()).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(same_bits(&read, &filter) && read.len() == u32::MAX as usize, "{case}, {} items", read.len());
    }
}

/// Copies take at most 12 bytes per repeated item, and none if all items are distinct.
#[test]
fn copies_take_at_most_12_bytes_per_repeated_item() {
    let mut filter = CuckooFilter::builder().capacity(100_000).false_positive_rate(0.001).build().expect("valid parameters");
    let empty = filter.size_in_bytes();
    filter.insert_iter(0..100_000_u64).expect("there is room");
    assert_eq!(filter.size_in_bytes(), empty, "distinct items need no list");
    for _ in 0..9 {
        filter.insert_iter(0..100_000_u64).expect("there is room");
    }
    let bytes = filter.size_in_bytes() - empty;
    assert!(bytes <= 12 * 100_000, "{bytes}");
    assert!(filter.to_bytes().len() as u64 <= filter.params().snapshot_bytes() + 8 + 12 * 100_000);
}
