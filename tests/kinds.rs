//! An operation has the same name in every kind of filter that has it, and all forms of an operation do the same.
//!
//! All kinds are queried alike, and all but views remove. `CuckooFilter`, `ElasticFilter`, `SharedFilter` and `GoFilter` have all
//! forms of insertion; the first three are merged.

use koel::{Contains, CuckooFilter, ElasticFilter, ElasticView, FilterView, Insert, Prehashed};

/// More than a batch.
const ITEMS: u64 = 150;

/// So few errors that none is expected.
const RATE: f64 = 1e-6;

fn fixed() -> CuckooFilter {
    CuckooFilter::builder().capacity(1000).false_positive_rate(RATE).build().expect("right")
}

fn growing() -> koel::ElasticBuilder {
    ElasticFilter::builder().false_positive_rate(RATE).capacity(50).partitions(4)
}

fn items() -> Vec<u64> {
    (0..ITEMS).collect()
}

/// Questions to a filter that has these items once, and perhaps others; `name` is what `Debug` calls it.
macro_rules! asked {
    ($name:literal, $filter:expr, $present:expr) => {{
        let (name, filter, present): (_, _, Vec<u64>) = ($name, &$filter, $present);
        let asked: Vec<u64> = (0..2 * ITEMS).collect();
        let expected: Vec<bool> = asked.iter().map(|item| filter.contains(item)).collect();
        assert!(present.iter().all(|item| filter.contains(item) && filter.count(item) >= 1), "{name}");
        assert!(filter.len() == present.len() && filter.is_empty() == present.is_empty(), "{name}");
        let hashes: Vec<u64> = asked.iter().map(|item| filter.hash(item)).collect();
        assert!(hashes.iter().map(|&hash| filter.contains(&Prehashed(hash))).eq(expected.iter().copied()), "{name}");
        assert!(filter.contains_iter(&asked).map(|(_, found)| found).eq(expected.iter().copied()), "{name}");
        let members = expected.iter().filter(|&&found| found).count();
        assert_eq!((filter.count_members(&asked), filter.count_members(&Prehashed(&hashes))), (members, members), "{name}");
        let mut found = vec![false; asked.len()];
        filter.contains_batch(&asked, &mut found);
        assert_eq!(found, expected, "{name}");
        filter.contains_batch(&Prehashed(&hashes), &mut found);
        assert_eq!(found, expected, "{name}");
        // Without its type.
        let any: &dyn Contains<u64> = filter;
        any.contains_batch(&asked, &mut found);
        assert_eq!((&found, any.count_members(&asked), any.len()), (&expected, members, filter.len()), "{name}");
        let keys: Vec<Prehashed> = hashes.into_iter().map(Prehashed).collect();
        any.by_hash().contains_batch(&keys, &mut found);
        assert_eq!((&found, any.by_hash().count_members(&keys)), (&expected, members), "{name}");
        assert_eq!((any.size_in_bytes(), any.false_positive_rate()), (filter.size_in_bytes(), filter.false_positive_rate()));
        assert!((0.0..1.0).contains(&filter.false_positive_rate()) && filter.measure_false_positive_rate(200) < 0.1, "{name}");
        assert!(format!("{filter:?}").starts_with(name) && filter.to_string().contains("false-positive rate"), "{name}");
    }};
}

/// Facts of filters with parameters.
macro_rules! planned {
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

/// All forms of insertion and removal, of filters that `$make` makes empty.
macro_rules! changed {
    ($name:literal, $make:expr) => {{
        let (items, hashed) =
            (items(), |filter: &dyn Contains<u64>| items().iter().map(|item| filter.hash(item)).collect::<Vec<u64>>());
        #[allow(unused_mut, reason = "shared filters are changed through a shared reference")]
        let [mut one_by_one, mut batch, mut hashes, mut iterator, mut unique, mut dynamic] = std::array::from_fn(|_| $make);
        items.iter().for_each(|item| one_by_one.insert(item).expect("there is room"));
        batch.insert_batch(&items).expect("there is room");
        hashes.insert_batch(&Prehashed(hashed(&hashes))).expect("there is room");
        assert_eq!(iterator.insert_iter(&items).expect("there is room"), items.len());
        assert_eq!(unique.insert_unique_iter(items.iter().chain(&items)).expect("there is room"), items.len());
        let any: &mut dyn Insert<u64> = &mut dynamic;
        any.insert_batch(&items).expect("there is room");
        for filter in [&batch, &hashes, &iterator, &unique, &dynamic] {
            assert!(*filter == one_by_one, "{}", $name);
            asked!($name, *filter, items.clone());
        }
        let (mut again, mut new) = ($make, vec![false; items.len() + 2]);
        let twice: Vec<u64> = items.iter().chain(&items[..2]).copied().collect();
        again.insert_unique_batch(&twice, &mut new).expect("there is room");
        assert!(again == one_by_one && new[..items.len()].iter().all(|&new| new) && !new[items.len()] && !new[items.len() + 1]);
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
        assert!(batch == dynamic && batch != one_by_one, "{}", $name);
        asked!($name, batch, items.into_iter().filter(|item| !some.contains(item)).collect());
    }};
}

#[test]
fn all_forms_of_an_operation_do_the_same() {
    changed!("CuckooFilter", fixed());
    changed!("ElasticFilter", growing().build().expect("right"));
    #[cfg(feature = "std")]
    changed!("SharedFilter", growing().build_shared().expect("right"));
    #[cfg(all(feature = "metrohash", target_endian = "little"))]
    changed!("GoFilter", go());
}

#[cfg(all(feature = "metrohash", target_endian = "little"))]
fn go() -> koel::go::GoFilter {
    let builder = CuckooFilter::builder().hasher(koel::go::MetroHash64).seed(1337).fingerprint_bits(25);
    let filter = builder.addressing(koel::Addressing::PowerOfTwo).capacity(1000).build().expect("right");
    filter.try_into().expect("one of Go's")
}

/// Merges two halves, and unites two that overlap, of which the second is a view or not.
macro_rules! merged {
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
        left.merge(&merged!(@ $view, both)).expect("there is room");
        assert!(all.iter().all(|item| left.count(item) == 2));
        left.union(&merged!(@ $view, right)).expect("there is room");
        assert_eq!(left.len(), 2 * both.len());
    }};
    (@ itself, $filter:ident) => {
        $filter
    };
    (@ $view:ident, $filter:ident) => {{
        let views = [$view::over($filter.to_bytes()), $view::over($filter.to_bytes())].map(|view| view.expect("a snapshot"));
        assert!(views[0] == views[1]);
        views[0].to_filter().expect("it is right")
    }};
}

#[test]
fn filters_and_views_are_merged() {
    merged!(fixed(), itself);
    merged!(fixed(), FilterView);
    merged!(growing().build().expect("right"), itself);
    merged!(growing().build().expect("right"), ElasticView);
    #[cfg(feature = "std")]
    merged!(growing().build_shared().expect("right"), itself);
}

/// As `&File` is a writer, a reference to a shared filter is a filter that can be changed.
#[cfg(feature = "std")]
#[test]
fn a_reference_to_a_shared_filter_can_insert() {
    fn fill(mut filter: impl Insert<u64>) {
        filter.insert_batch(&items()).expect("there is room");
        assert!(filter.insert_unique(&ITEMS).expect("there is room") && filter.remove(&ITEMS));
    }
    let shared = growing().build_shared().expect("right");
    fill(&shared);
    asked!("SharedFilter", shared, items());
}

#[test]
fn every_kind_answers_alike() {
    let (mut fixed, mut growing_) = (fixed(), growing().build().expect("right"));
    fixed.insert_batch(&items()).expect("there is room");
    growing_.insert_batch(&items()).expect("it grows");
    planned!(fixed);
    planned!(growing_);
    let mut view = FilterView::over(fixed.to_bytes()).expect("a snapshot");
    asked!("FilterView", view, items());
    planned!(view);
    let mut view = ElasticView::over(growing_.to_bytes()).expect("a snapshot");
    asked!("ElasticView", view, items());
    planned!(view);
    #[cfg(feature = "std")]
    {
        let mut shared = growing_.into_shared().expect("there is memory");
        asked!("SharedFilter", shared, items());
        planned!(shared);
    }
    #[cfg(feature = "redisbloom")]
    {
        let mut redis = koel::redisbloom::RedisBloomFilter::from_filter(&of_redisbloom()).expect("one of RedisBloom's");
        asked!("RedisBloomFilter", redis, items());
        let mut removed = [false; 2];
        redis.remove_batch(&[0_u64, 1], &mut removed);
        assert!(removed == [true; 2] && redis.remove(&2_u64) && redis.len() == items().len() - 3);
    }
}

#[cfg(feature = "redisbloom")]
fn of_redisbloom() -> CuckooFilter<koel::redisbloom::RedisBloomHash> {
    use koel::{Addressing, TableKind, redisbloom::RedisBloomHash};
    let builder = CuckooFilter::builder().hasher(RedisBloomHash).table(TableKind::Single).fingerprint_bits(8);
    let mut filter = builder.addressing(Addressing::PowerOfTwo).capacity(400).build().expect("right");
    filter.insert_batch(&items()).expect("there is room");
    filter
}
