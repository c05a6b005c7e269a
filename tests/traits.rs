//! Filters behind the traits `Filter` and `Contains`: whatever it is, and however it is reached, it answers as it does itself.

use crate::common::{SplitMix64, kinds};
use koel::{
    Contains, CuckooFilter, ElasticFilter, Filter, FilterView, Insert, Prehashed,
    hash::{AnyHasher, StdHasher},
};
use std::{hash::RandomState, rc::Rc, sync::Arc};

const NAMES: [&str; 5] = ["alice", "bob", "carol", "dave", "eve"];

/// More than a batch of them.
fn hashes() -> Vec<u64> {
    SplitMix64(1).take(150).collect()
}

fn names() -> CuckooFilter {
    let mut filter = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).build().expect("right");
    filter.insert_batch(&NAMES).expect("they fit");
    // There twice.
    filter.insert("eve").expect("it fits");
    filter
}

/// What the methods of a filter's own say.
#[derive(Debug, PartialEq)]
struct Answers {
    found: Vec<bool>,
    counts: Vec<u32>,
    len: usize,
    is_empty: bool,
    capacity: usize,
    /// False-positive rate, load and bits per item.
    rates: [u64; 3],
    bytes: usize,
}

macro_rules! inherent {
    ($filter:expr) => {{
        let (filter, hashes) = ($filter, hashes());
        Answers {
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

/// What the trait says, of any type; and of all hashes at a time, the same.
fn by_trait(filter: &(impl Contains + ?Sized)) -> Answers {
    let hashes = hashes();
    let mut found = vec![false; hashes.len()];
    let keys: Vec<Prehashed> = hashes.iter().copied().map(Prehashed).collect();
    filter.contains_batch(&keys, &mut found);
    assert!(keys.iter().zip(&found).all(|(key, &found)| filter.contains(key) == found));
    assert_eq!(filter.count_members(&keys), found.iter().filter(|&&found| found).count());
    Answers {
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
fn every_filter_answers_by_the_trait_as_by_itself() {
    for kind in kinds().filter(|kind| [4, 9, 16, 25].contains(&kind.f)) {
        let mut filter = kind.filter(16);
        for hash in SplitMix64(1).take(filter.slots() / 2) {
            // Small tables of few fingerprints may refuse one or two.
            let _ = filter.insert(&Prehashed(hash));
        }
        let view = FilterView::over(filter.to_bytes()).expect("a snapshot");
        let (of_filter, of_view) = (inherent!(&filter), inherent!(&view));
        assert_eq!((&of_filter.found, &of_filter.counts), (&of_view.found, &of_view.counts), "{kind:?}");
        assert_eq!((by_trait(&filter), by_trait(&view)), (of_filter, of_view), "{kind:?}");
        let several: [&dyn Contains; 2] = [&filter, &view];
        assert_eq!(several.map(by_trait), [inherent!(&filter), inherent!(&view)], "{kind:?}");
    }
    let empty = CuckooFilter::builder().capacity(10).fingerprint_bits(9).build().expect("right");
    assert!(Filter::is_empty(&empty) && by_trait(&empty).is_empty && Filter::len(&names()) == 6 && !Filter::is_empty(&names()));
}

/// References, boxes and shared pointers, to what has a known type and to what has none.
#[test]
fn what_leads_to_a_filter_is_one() {
    let filter = names();
    let expected = inherent!(&filter);
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
    let of_items: [Box<dyn Contains<str>>; 3] = [Box::new(filter.clone()), Box::new(Arc::new(filter.clone())), Box::new(filter)];
    for pointer in of_items {
        assert_eq!(by_trait(pointer.by_hash()), expected);
        asked(&pointer, "by a box");
        asked(&*pointer, "by what is in it");
        asked(&Rc::new(pointer), "by a box in an Rc");
    }
}

#[track_caller]
fn asked(filter: &(impl Contains<str> + ?Sized), what: &str) {
    for name in NAMES {
        assert!(filter.contains(name), "{what}: {name}");
        assert_eq!(filter.count(name), if name == "eve" { 2 } else { 1 }, "{what}: {name}");
    }
    for name in ["mallory", "trent", ""] {
        assert!(!filter.contains(name) && filter.count(name) == 0, "{what}: {name}");
    }
    assert_eq!(filter.len(), 6, "{what}");
}

/// One function for whatever holds names: owned, viewed, read at run time, or of one process only.
#[test]
fn names_are_asked_of_any_filter_that_takes_them() {
    let filter = names();
    asked(&filter, "owned");
    asked(&FilterView::over(filter.to_bytes()).expect("a snapshot"), "a view that owns");
    asked(&FilterView::over(&filter.to_bytes()[..]).expect("a snapshot"), "a view that borrows");
    let any = CuckooFilter::from_bytes_with(&filter.to_bytes(), AnyHasher::from_id).expect("a snapshot");
    asked(&any, "read with any hasher");
    assert_eq!(Contains::hash(&any, "alice"), filter.hash("alice"));
    let builder = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).hasher(StdHasher::new(RandomState::new()));
    let mut of_process = builder.build().expect("right");
    of_process.insert_batch(&NAMES).and_then(|()| of_process.insert("eve")).expect("they fit");
    // A `&str` is hashed as the `str`.
    asked(&of_process, "under RandomState");
}

/// The hash of one filter serves all of its kind, as a service that asks many filters at a time has it.
#[test]
fn one_hash_is_asked_of_many() {
    let mut filters: Vec<Box<dyn Contains<u64>>> = Vec::new();
    for n in 0..20u64 {
        let mut filter = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).build().expect("right");
        filter.insert_iter((0..50).map(|item| n * 50 + item)).expect("they fit");
        if n % 2 == 0 {
            filters.push(Box::new(filter));
        } else {
            filters.push(Box::new(FilterView::over(filter.to_bytes()).expect("a snapshot")));
        }
    }
    for item in (0..1000u64).step_by(7) {
        let hash = filters[0].hash(&item);
        let holders: Vec<usize> = (0..20).filter(|&n| filters[n].by_hash().contains(&Prehashed(hash))).collect();
        assert_eq!(holders, [usize::try_from(item / 50).expect("few")]);
    }
}

#[test]
#[should_panic(expected = "3 items but room for 2 answers")]
fn answers_need_as_much_room_behind_the_trait_too() {
    let filter: &dyn Contains = &names();
    filter.contains_batch(&[1, 2, 3].map(Prehashed), &mut [false; 2]);
}

/// The victim of Go's counts: behind the trait, too.
#[cfg(all(feature = "metrohash", target_endian = "little"))]
#[test]
fn files_of_go_are_filters() {
    use crate::common::{GoFile, split_mix::unmixed};
    use koel::{
        Addressing,
        go::{self, GoFilter, MetroHash64},
    };

    let builder = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).addressing(Addressing::PowerOfTwo);
    let mut filter = builder.hasher(MetroHash64).seed(1337).build().expect("right");
    filter.insert_batch(&NAMES).and_then(|()| filter.insert("eve")).expect("they fit");
    let go = GoFilter::try_from(filter).expect("Go could have it");
    asked(&go, "of Go's");
    let boxed: Box<dyn Contains<str>> = Box::new(go.clone());
    asked(&boxed, "of Go's, in a box");
    let expected = inherent!(go.filter());
    let answers = by_trait(&go);
    assert_eq!((&answers.found, &answers.counts, answers.rates[0]), (&expected.found, &expected.counts, expected.rates[0]));
    assert!(answers.bytes >= expected.bytes + size_of::<GoFilter>() - size_of_val(go.filter()));

    // Four items in one bucket, and a fifth in hand: fingerprints 1 to 5 of bucket 0.
    let full = GoFile { buckets: vec![vec![1, 2, 3, 4]], f: 8, victim: (0, 5, 1) };
    let go = go::decode(&full.packed()).expect("a file");
    let filter: &dyn Contains = &go;
    let hashes: Vec<Prehashed> = (0..8).map(unmixed).map(Prehashed).collect();
    let mut found = [false; 8];
    filter.contains_batch(&hashes, &mut found);
    assert_eq!(found, [true, true, true, true, true, false, false, false]);
    assert_eq!((filter.len(), filter.count(&hashes[4]), filter.count(&hashes[5])), (5, 1, 0));
    // Five items in four slots.
    let rate = go.filter().params().false_positive_rate_at(1.25);
    assert!((filter.false_positive_rate() - rate).abs() < 1e-12);
}

/// The same operations, by the same names, whatever is behind them: one by one, in batches, and with hashes.
fn changes(filter: &mut (impl Insert<str> + Insert<&'static str> + ?Sized)) {
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
fn every_filter_is_changed_by_the_trait() {
    let mut fixed = CuckooFilter::builder().capacity(100).false_positive_rate(1e-6).build().expect("right");
    changes(&mut fixed);
    changes(&mut ElasticFilter::builder().false_positive_rate(1e-6).build().expect("right"));
    #[cfg(feature = "std")]
    changes(&mut ElasticFilter::builder().false_positive_rate(1e-6).build_shared().expect("right"));
    let boxed: &mut dyn Insert = &mut fixed;
    boxed.insert_batch(&[Prehashed(1), Prehashed(2)]).expect("there is room");
    assert!(boxed.remove(&Prehashed(1)) && boxed.contains(&Prehashed(2)) && boxed.len() == 2);
}

/// The order of insertion matters, and so does how far a filter has grown.
#[test]
fn growing_filters_are_equal_if_their_tables_are() {
    let filter = |items: std::ops::Range<u64>| {
        let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build().expect("right");
        filter.insert_iter(items).expect("it grows");
        filter
    };
    let whole = filter(0..50_000);
    assert!(whole == filter(0..50_000) && whole == whole.clone());
    assert!(whole != filter(0..49_999) && whole != filter(1..50_001) && whole != filter(0..0));
    let other = ElasticFilter::builder().false_positive_rate(0.002).build().expect("right");
    assert!(other != filter(0..0));
    assert_eq!(ElasticFilter::from_bytes(&whole.to_bytes()).expect("a snapshot"), whole);
}
