//! The traits `Filter`, `Contains` and `Insert`: their methods give the results of a filter's own methods, also through pointers.

use crate::common::{SplitMix64, kinds, same_bits};
use koel::{
    Contains, CuckooFilter, ElasticFilter, Filter, FilterView, Insert, Prehashed,
    hash::{AnyHasher, StdHasher},
};
use std::{hash::RandomState, rc::Rc, sync::Arc};

const NAMES: [&str; 5] = ["alice", "bob", "carol", "dave", "eve"];

/// Returns more hashes than two batches of 64 have.
fn hashes() -> Vec<u64> {
    SplitMix64(1).take(150).collect()
}

fn names() -> CuckooFilter {
    let mut filter = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).build().expect("valid parameters");
    filter.insert_batch(&NAMES).expect("they fit");
    // Eve is inserted twice.
    filter.insert("eve").expect("it fits");
    filter
}

/// Results of the methods of a filter.
#[derive(Debug, PartialEq)]
struct Results {
    found: Vec<bool>,
    counts: Vec<u32>,
    len: usize,
    is_empty: bool,
    capacity: usize,
    /// False-positive rate, load factor and bits per item, each through `f64::to_bits`.
    rates: [u64; 3],
    bytes: usize,
}

/// Calls a filter's own methods.
macro_rules! by_inherent_methods {
    ($filter:expr) => {{
        let (filter, hashes) = ($filter, hashes());
        Results {
            found: hashes.iter().map(|&hash| filter.contains(&Prehashed(hash))).collect(),
            counts: hashes.iter().map(|&hash| filter.count(&Prehashed(hash))).collect(),
            len: filter.len(),
            is_empty: filter.is_empty(),
            capacity: filter.capacity(),
            rates: [filter.false_positive_rate(), filter.load_factor(), filter.bits_per_item()].map(f64::to_bits),
            bytes: filter.size_in_bytes(),
        }
    }};
}

/// Calls the methods of the trait, and checks that batches equal single lookups.
fn by_trait(filter: &(impl Contains + ?Sized)) -> Results {
    let hashes = hashes();
    let mut found = vec![false; hashes.len()];
    let keys: Vec<Prehashed> = hashes.iter().copied().map(Prehashed).collect();
    filter.contains_batch(&keys, &mut found);
    assert!(keys.iter().zip(&found).all(|(key, &found)| filter.contains(key) == found));
    assert_eq!(filter.count_members(&keys), found.iter().filter(|&&found| found).count());
    Results {
        found,
        counts: hashes.iter().map(|&hash| filter.count(&Prehashed(hash))).collect(),
        len: filter.len(),
        is_empty: filter.is_empty(),
        capacity: filter.capacity(),
        rates: [filter.false_positive_rate(), filter.load_factor(), filter.bits_per_item()].map(f64::to_bits),
        bytes: filter.size_in_bytes(),
    }
}

#[test]
fn trait_methods_equal_inherent_methods() {
    for kind in kinds().filter(|kind| [4, 9, 16, 25].contains(&kind.f)) {
        let mut filter = kind.filter(16);
        for hash in SplitMix64(1).take(filter.slots() / 2) {
            // Small tables with short fingerprints may refuse some items.
            let _ = filter.insert(&Prehashed(hash));
        }
        let view = FilterView::over(filter.to_bytes()).expect("valid snapshot");
        let (of_filter, of_view) = (by_inherent_methods!(&filter), by_inherent_methods!(&view));
        assert_eq!((&of_filter.found, &of_filter.counts), (&of_view.found, &of_view.counts), "{kind:?}");
        assert_eq!((by_trait(&filter), by_trait(&view)), (of_filter, of_view), "{kind:?}");
        let several: [&dyn Contains; 2] = [&filter, &view];
        assert_eq!(several.map(by_trait), [by_inherent_methods!(&filter), by_inherent_methods!(&view)], "{kind:?}");
    }
    let empty = CuckooFilter::builder().capacity(10).fingerprint_bits(9).build().expect("valid parameters");
    assert!(Filter::is_empty(&empty) && by_trait(&empty).is_empty && Filter::len(&names()) == 6 && !Filter::is_empty(&names()));
}

/// References, boxes and shared pointers implement the traits, for sized types and for trait objects.
#[test]
fn pointers_to_filters_implement_the_traits() {
    let filter = names();
    let expected = by_inherent_methods!(&filter);
    assert_eq!(by_trait(&&filter), expected);
    let pointers: [Box<dyn Contains>; 5] = [
        Box::new(filter.clone()),
        Box::new(Box::new(filter.clone())),
        Box::new(Rc::new(filter.clone())),
        Box::new(Arc::new(filter.clone())),
        Box::new(Box::new(filter.clone()) as Box<dyn Contains>),
    ];
    for pointer in pointers {
        assert_eq!(by_trait(&pointer), expected);
        assert_eq!(by_trait(&*pointer), expected);
    }
    let pointers: [Box<dyn Contains<str>>; 3] = [Box::new(filter.clone()), Box::new(Arc::new(filter.clone())), Box::new(filter)];
    for pointer in pointers {
        assert_eq!(by_trait(pointer.by_hash()), expected);
        check_names(&pointer, "a box");
        check_names(&*pointer, "the content of a box");
        check_names(&Rc::new(pointer), "a box in an Rc");
    }
}

#[track_caller]
fn check_names(filter: &(impl Contains<str> + ?Sized), case: &str) {
    for name in NAMES {
        assert!(filter.contains(name), "{case}: {name}");
        assert_eq!(filter.count(name), if name == "eve" { 2 } else { 1 }, "{case}: {name}");
    }
    for name in ["mallory", "trent", ""] {
        assert!(!filter.contains(name) && filter.count(name) == 0, "{case}: {name}");
    }
    assert_eq!(filter.len(), 6, "{case}");
}

/// One generic function accepts owned filters, views, and filters with any hasher.
#[test]
fn a_generic_function_accepts_all_filters_of_names() {
    let filter = names();
    check_names(&filter, "owned");
    check_names(&FilterView::over(filter.to_bytes()).expect("valid snapshot"), "a view that owns its bytes");
    check_names(&FilterView::over(&filter.to_bytes()[..]).expect("valid snapshot"), "a view that borrows its bytes");
    let any = CuckooFilter::from_bytes_with(&filter.to_bytes(), AnyHasher::from_id).expect("valid snapshot");
    check_names(&any, "read with any hasher");
    assert_eq!(Contains::hash(&any, "alice"), filter.hash("alice"));
    let builder = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).hasher(StdHasher::new(RandomState::new()));
    let mut with_random_state = builder.build().expect("valid parameters");
    with_random_state.insert_batch(&NAMES).and_then(|()| with_random_state.insert("eve")).expect("they fit");
    // A `&str` is hashed as the `str`.
    check_names(&with_random_state, "with RandomState");
}

/// Filters with the same hasher and seed can be queried with one hash, as a service with many filters does.
#[test]
fn one_hash_is_looked_up_in_many_filters() {
    let mut filters: Vec<Box<dyn Contains<u64>>> = Vec::new();
    for n in 0..20u64 {
        let mut filter = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).build().expect("valid parameters");
        filter.insert_iter((0..50).map(|item| n * 50 + item)).expect("they fit");
        if n % 2 == 0 {
            filters.push(Box::new(filter));
        } else {
            filters.push(Box::new(FilterView::over(filter.to_bytes()).expect("valid snapshot")));
        }
    }
    for item in (0..1000u64).step_by(7) {
        let hash = filters[0].hash(&item);
        let holders: Vec<usize> = (0..20).filter(|&n| filters[n].by_hash().contains(&Prehashed(hash))).collect();
        assert_eq!(holders, [usize::try_from(item / 50).expect("it fits usize")]);
    }
}

#[test]
#[should_panic(expected = "3 items but room for 2 answers")]
fn contains_batch_of_a_trait_object_panics_if_the_output_is_too_short() {
    let filter: &dyn Contains = &names();
    filter.contains_batch(&[1, 2, 3].map(Prehashed), &mut [false; 2]);
}

/// Through the trait, the victim of a Go filter is found and counted, too.
#[cfg(all(feature = "metrohash", target_endian = "little"))]
#[test]
fn go_filters_implement_the_traits() {
    use crate::common::{GoFile, split_mix::unmixed};
    use koel::{
        Addressing,
        go::{self, GoFilter, MetroHash64},
    };

    let builder = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).addressing(Addressing::PowerOfTwo);
    let mut filter = builder.hasher(MetroHash64).seed(1337).build().expect("valid parameters");
    filter.insert_batch(&NAMES).and_then(|()| filter.insert("eve")).expect("they fit");
    let go = GoFilter::try_from(filter).expect("compatible with Go");
    check_names(&go, "a Go filter");
    let boxed: Box<dyn Contains<str>> = Box::new(go.clone());
    check_names(&boxed, "a Go filter in a box");
    let expected = by_inherent_methods!(go.filter());
    let results = by_trait(&go);
    assert_eq!((&results.found, &results.counts, results.rates[0]), (&expected.found, &expected.counts, expected.rates[0]));
    assert!(results.bytes >= expected.bytes + size_of::<GoFilter>() - size_of_val(go.filter()));

    // Fingerprints 1 to 4 fill the only bucket, and fingerprint 5 is the victim.
    let full = GoFile { buckets: vec![vec![1, 2, 3, 4]], f: 8, victim: (0, 5, 1) };
    let go = go::decode(&full.packed()).expect("valid file");
    let filter: &dyn Contains = &go;
    let hashes: Vec<Prehashed> = (0..8).map(unmixed).map(Prehashed).collect();
    let mut found = [false; 8];
    filter.contains_batch(&hashes, &mut found);
    assert_eq!(found, [true, true, true, true, true, false, false, false]);
    assert_eq!((filter.len(), filter.count(&hashes[4]), filter.count(&hashes[5])), (5, 1, 0));
    // There are five items in four slots.
    let rate = go.filter().params().false_positive_rate_at(1.25);
    assert!((filter.false_positive_rate() - rate).abs() < 1e-12);
}

/// Changes any filter through the trait, with single items and batches.
fn check_changes(filter: &mut (impl Insert<str> + Insert<&'static str> + ?Sized)) {
    Insert::<str>::insert(filter, "alice").expect("there is room");
    assert!(!Insert::<str>::insert_unique(filter, "alice").expect("it is there"));
    assert!(Insert::<str>::insert_unique(filter, "bob").expect("there is room"));
    filter.insert_batch(&["carol", "dave"]).expect("there is room");
    let mut found = [false; 3];
    filter.contains_batch(&["alice", "dave", "mallory"], &mut found);
    assert_eq!((found, filter.len()), ([true, true, false], 4));
    assert!(Insert::<str>::remove(filter, "alice") && !Insert::<str>::remove(filter, "alice"));
    let mut removed = [false; 3];
    filter.remove_batch(&["bob", "mallory", "dave"], &mut removed);
    assert_eq!((removed, filter.len()), ([true, false, true], 1));
    assert!(Contains::<str>::contains(filter, "carol"));
}

#[test]
fn filters_can_be_changed_through_the_trait() {
    let mut fixed = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).build().expect("valid parameters");
    check_changes(&mut fixed);
    check_changes(&mut ElasticFilter::builder().false_positive_rate(1e-6).build().expect("valid parameters"));
    #[cfg(feature = "std")]
    check_changes(&mut ElasticFilter::builder().false_positive_rate(1e-6).build_shared().expect("valid parameters"));
    let boxed: &mut dyn Insert = &mut fixed;
    boxed.insert_batch(&[Prehashed(1), Prehashed(2)]).expect("there is room");
    assert!(boxed.remove(&Prehashed(1)) && boxed.contains(&Prehashed(2)) && boxed.len() == 2);
}

/// tests/equality.rs has other histories.
#[test]
fn growing_filters_with_the_same_history_have_the_same_bits() {
    let filter = |items: std::ops::Range<u64>| {
        let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build().expect("valid parameters");
        filter.insert_iter(items).expect("it grows");
        filter
    };
    let whole = filter(0..50_000);
    assert!(same_bits(&whole, &filter(0..50_000)) && same_bits(&whole, &whole.clone()));
    assert!(whole != filter(0..49_999) && whole != filter(1..50_001) && whole != filter(0..0));
    let other = ElasticFilter::builder().false_positive_rate(0.002).build().expect("valid parameters");
    assert!(other != filter(0..0));
    assert!(same_bits(&ElasticFilter::from_bytes(&whole.to_bytes()).expect("valid snapshot"), &whole));
}
