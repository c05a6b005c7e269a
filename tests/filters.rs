//! Other operations of fixed filters: batches, merging, equality, statistics and formatting.

#![allow(clippy::cast_precision_loss, reason = "small numbers")]

use crate::common::SplitMix64;
use koel::{Addressing, CuckooFilter, InsertErrorKind, Kernel, MergeError, Prehashed, TableKind, hash::AnyHasher};

fn filter(capacity: usize) -> CuckooFilter {
    CuckooFilter::builder().capacity(capacity).false_positive_rate(1e-6).build().expect("valid parameters")
}

#[test]
fn batches_equal_single_operations() {
    let words: Vec<String> = (0..1000).map(|n| format!("word-{n}")).collect();
    let (mut batch, mut single) = (filter(1000), filter(1000));
    batch.insert_batch(&words).expect("they fit");
    words.iter().for_each(|word| single.insert(word).expect("they fit"));
    assert_eq!(batch, single);

    let probes: Vec<String> = (500..1500).map(|n| format!("word-{n}")).collect();
    let mut found = vec![false; probes.len()];
    batch.contains_batch(&probes, &mut found);
    assert!(probes.iter().zip(&found).all(|(probe, &found)| single.contains(probe) == found));
    assert_eq!(batch.count_members(&probes), 500);

    let mut removed = vec![false; probes.len()];
    batch.remove_batch(&probes, &mut removed);
    assert!(probes.iter().zip(&removed).all(|(probe, &removed)| single.remove(probe) == removed));
    assert_eq!(batch, single);
    batch.contains_batch(&[0_u8; 0], &mut []);
}

#[test]
fn a_refused_batch_reports_the_position_of_the_refused_item() {
    let mut filter = CuckooFilter::builder().fingerprint_bits(12).buckets(8).build().expect("valid parameters");
    let items: Vec<u64> = SplitMix64(1).take(100).collect();
    let error = filter.insert_batch(&items).expect_err("there are 32 slots");
    assert_eq!(error.position(), filter.len());
    assert!(items[..error.position()].iter().all(|item| filter.contains(item)));
    let message = error.to_string();
    for part in [format!("item {}, counted from 0", filter.len()), "items in 32 slots".into(), "larger capacity".into()] {
        assert!(message.contains(&part), "{part:?} is not in {message:?}");
    }
}

#[test]
#[should_panic(expected = "2 items but room for 3 answers")]
fn contains_batch_panics_if_the_output_has_another_length() {
    filter(10).contains_batch(&[1u8, 2], &mut [false; 3]);
}

#[test]
fn merging_adds_counts() {
    // Capacity counts distinct items, of which there are 1500.
    let (mut left, mut right) = (filter(1500), filter(1500));
    (0..1000u64).for_each(|n| left.insert(&n).expect("it fits"));
    (500..1500u64).for_each(|n| right.insert(&n).expect("it fits"));
    left.merge(&right).expect("they fit");
    assert_eq!(left.len(), 2000);
    assert!((0..1500u64).all(|n| left.count(&n) > u32::from((500..1000).contains(&n))));
    for n in (0..1000u64).chain(500..1500) {
        assert!(left.remove(&n));
    }
    assert!(left.is_empty());
}

#[test]
fn a_refused_merge_changes_nothing() {
    let build = || CuckooFilter::builder().fingerprint_bits(12).buckets(64).build().expect("valid parameters");
    let (mut left, mut right) = (build(), build());
    // First more items than slots, then as many, which is more than a table can hold.
    for (ours, theirs) in [(200, 100), (128, 128)] {
        left.clear();
        right.clear();
        SplitMix64(1).take(ours).for_each(|hash| left.insert(&Prehashed(hash)).expect("it fits"));
        SplitMix64(2).take(theirs).for_each(|hash| right.insert(&Prehashed(hash)).expect("it fits"));
        let before = left.clone();
        let error = left.merge(&right).expect_err("it does not fit");
        assert!(matches!(error, MergeError::Full { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains(" distinct items do not fit") && message.contains("256 slots"), "{message}");
        assert_eq!(left, before);
    }
}

#[test]
fn filters_with_different_parameters_are_not_merged() {
    let builder = || CuckooFilter::builder().fingerprint_bits(12).buckets(64).hasher(AnyHasher::Xxh3);
    let single = || builder().table(TableKind::Single);
    // A part of the message about each filter, and the two filters.
    let others = [
        ("packed table", "single table", builder(), single()),
        ("12-bit", "13-bit", builder(), builder().fingerprint_bits(13)),
        ("64 buckets", "66 buckets", builder(), builder().buckets(66)),
        ("buckets of 4", "buckets of 8", single(), single().bucket_size(8)),
        ("any-size", "power-of-two", builder(), builder().addressing(Addressing::PowerOfTwo)),
        ("seed 0", "seed 1", builder(), builder().seed(1)),
    ];
    for (ours_part, theirs_part, ours, theirs) in others {
        let (mut ours, theirs) = (ours.build().expect("valid parameters"), theirs.build().expect("valid parameters"));
        ours.insert("koel").expect("it fits");
        let (before, message) = (ours.clone(), merge_error(&mut ours, &theirs));
        let (first, second) = message.split_once(", and the other a ").expect("the message describes both filters");
        assert!(first.contains(ours_part) && second.contains(theirs_part), "{ours_part}, {theirs_part}: {message}");
        assert_eq!(ours, before);
    }
    #[cfg(feature = "metrohash")]
    {
        let (mut ours, theirs) = (builder().build().expect("valid parameters"), builder().hasher(AnyHasher::MetroHash64));
        let error = ours.merge(&theirs.build().expect("valid parameters")).expect_err("they differ");
        assert!(matches!(error, MergeError::DifferentHasher), "{error}");
    }
}

/// A filter that is filled beyond its capacity can still be merged into an empty one, because it is copied.
#[test]
fn merging_into_an_empty_filter_copies() {
    let builder = || CuckooFilter::builder().fingerprint_bits(12).buckets(64);
    let full = || {
        let mut filter = builder().build().expect("valid parameters");
        let inserted = SplitMix64(1).take(256).filter(|&hash| filter.insert(&Prehashed(hash)).is_ok()).count();
        assert!(inserted > filter.capacity() && inserted == filter.len(), "{inserted} items, planned for {}", filter.capacity());
        filter
    };
    let theirs = full();
    for kernel in Kernel::available() {
        let mut emptied = full();
        emptied.clear();
        for ours in [builder().kernel(kernel).build().expect("valid parameters"), emptied] {
            let (mut merged, kernel) = (ours.clone(), ours.kernel());
            merged.merge(&theirs).expect("merging into an empty filter copies");
            assert!(merged == theirs && merged.to_bytes() == theirs.to_bytes());
            assert_eq!(merged.kernel(), kernel, "only the table is copied");
        }
    }
    // Neither a filter with items nor one with other parameters becomes a copy.
    let mut one = builder().build().expect("valid parameters");
    one.insert("koel").expect("it is empty");
    assert!(matches!(one.merge(&theirs), Err(MergeError::Full { .. })));
    let mut other = builder().seed(1).build().expect("valid parameters");
    assert!(matches!(other.merge(&theirs), Err(MergeError::DifferentParams { .. })) && other.is_empty());
}

#[track_caller]
fn merge_error(ours: &mut CuckooFilter<AnyHasher>, theirs: &CuckooFilter<AnyHasher>) -> String {
    let params = (ours.params(), theirs.params());
    let error = ours.merge(theirs).expect_err("they differ");
    let MergeError::DifferentParams { ours, theirs, .. } = error else { panic!("{error}") };
    assert_eq!((ours, theirs), params);
    error.to_string()
}

#[test]
fn statistics_are_consistent() {
    let mut filter = CuckooFilter::builder().capacity(1_000_000).false_positive_rate(0.001).build().expect("valid parameters");
    assert!(filter.is_empty() && filter.bits_per_item().is_infinite() && filter.false_positive_rate() == 0.0);
    SplitMix64(4).take(1_000_000).for_each(|hash| filter.insert(&Prehashed(hash)).expect("the capacity fits"));
    assert_eq!(filter.len(), 1_000_000);
    assert!(filter.capacity() >= 1_000_000 && filter.slots() > filter.capacity());
    assert!((filter.load_factor() - 1e6 / filter.slots() as f64).abs() < 1e-12);
    assert!(filter.bits_per_item() < 12.5 && filter.false_positive_rate() < 0.001);
    let table = filter.params().table_bytes();
    assert!(filter.size_in_bytes() > table + size_of::<CuckooFilter>() && filter.size_in_bytes() <= table + 8 + 104);
    let line = filter.to_string();
    for part in ["packed table", "13-bit", "1000000 of ", "any-size", "seed 0", "bits per item", "e-4"] {
        assert!(line.contains(part), "{part:?} is not in {line:?}");
    }
    for (items, has_bits) in [(0, false), (1, false), (100_000, true)] {
        filter.clear();
        SplitMix64(4).take(items).for_each(|hash| filter.insert(&Prehashed(hash)).expect("the capacity fits"));
        assert_eq!(filter.to_string().contains("bits per item"), has_bits, "{filter}");
    }
    SplitMix64(5).take(900_000).for_each(|hash| filter.insert(&Prehashed(hash)).expect("the capacity fits"));
    let debug = format!("{filter:?}");
    assert!(debug.len() < 400 && debug.contains("len: 1000000"), "{debug}");
    filter.clear();
    assert!(filter.is_empty() && filter.to_bytes()[64..].iter().rev().skip(8).all(|&byte| byte == 0));
}

/// Other tests rely on `==` to detect every change.
#[test]
fn equality_compares_parameters_hashers_and_items() {
    let builder = || CuckooFilter::builder().fingerprint_bits(12).buckets(64).hasher(AnyHasher::Xxh3);
    let with = |builder: koel::Builder<AnyHasher>, item: &str| {
        let mut filter = builder.build().expect("valid parameters");
        filter.insert(item).expect("it fits");
        filter
    };
    let filter = with(builder(), "koel");
    assert_eq!(filter, with(builder(), "koel"));
    assert_ne!(filter, with(builder(), "owl"));
    assert_ne!(filter, with(builder().seed(1), "koel"));
    assert_ne!(filter, with(builder().buckets(66), "koel"));
    assert_ne!(filter, builder().build().expect("valid parameters"));
    #[cfg(feature = "metrohash")]
    assert_ne!(
        builder().build().expect("valid parameters"),
        builder().hasher(AnyHasher::MetroHash64).build().expect("valid parameters")
    );
}

/// If there is only one bucket, it is both buckets of an item, and its copies must not be counted twice.
#[test]
fn copies_in_a_single_bucket_are_counted_once() {
    let builder = CuckooFilter::builder().fingerprint_bits(12).addressing(Addressing::PowerOfTwo).buckets(1);
    let mut filter = builder.build().expect("valid parameters");
    for copies in 0..9 {
        assert_eq!(filter.count("koel"), copies);
        filter.insert("koel").expect("copies always fit");
    }
    for other in ["owl", "crow", "wren"] {
        filter.insert(other).expect("a copy moves to the list");
    }
    assert!(matches!(filter.insert("finch").expect_err("no slot is left").kind(), InsertErrorKind::Full { items: 4, slots: 4 }));
    assert_eq!((filter.count("koel"), filter.len()), (9, 12));
    assert!((0..9).all(|_| filter.remove("koel")) && !filter.remove("koel") && filter.contains("owl"));
    filter.insert("finch").expect("there is room");
}

#[test]
fn one_hash_works_in_several_filters() {
    let (mut a, b) = (filter(100), filter(100));
    let hash = a.hash("koel");
    assert_eq!(hash, b.hash("koel"));
    a.insert(&Prehashed(hash)).expect("it fits");
    assert!(a.contains("koel") && a.contains(&Prehashed(hash)) && !b.contains(&Prehashed(hash)));
    assert_eq!((a.count(&Prehashed(hash)), a.insert_unique(&Prehashed(hash))), (1, Ok(false)));
    assert!(a.remove(&Prehashed(hash)) && a.is_empty());
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "WebAssembly has no threads")]
fn threads_can_share_a_filter() {
    fn assert_shareable<T: Send + Sync + Clone + 'static>() {}
    assert_shareable::<CuckooFilter>();
    assert_shareable::<CuckooFilter<AnyHasher>>();
    let mut filter = filter(1000);
    filter.insert_iter(0..1000u64).expect("they fit");
    std::thread::scope(|scope| {
        for part in 0..4u64 {
            let filter = &filter;
            scope.spawn(move || assert!((part * 250..part * 250 + 250).all(|n| filter.contains(&n))));
        }
    });
}
