//! The rest of a filter's face: batches, merging, the facts, what it looks like.

#![allow(clippy::cast_precision_loss, reason = "small numbers")]

use crate::common::SplitMix64;
use koel::{Addressing, CuckooFilter, InsertErrorKind, Kernel, MergeError, Prehashed, TableKind, hash::AnyHasher};

fn filter(capacity: usize) -> CuckooFilter {
    CuckooFilter::builder().capacity(capacity).false_positive_rate(1e-6).build().expect("right")
}

#[test]
fn batches_do_what_single_calls_do() {
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
fn a_batch_that_does_not_fit_says_how_much_of_it_did() {
    let mut filter = CuckooFilter::builder().fingerprint_bits(12).buckets(8).build().expect("right");
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
fn answers_need_as_much_room_as_there_are_questions() {
    filter(10).contains_batch(&[1u8, 2], &mut [false; 3]);
}

#[test]
fn merging_adds_up() {
    // A capacity is one of different items.
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
fn what_does_not_fit_is_not_merged_in_part() {
    let build = || CuckooFilter::builder().fingerprint_bits(12).buckets(64).build().expect("right");
    let (mut left, mut right) = (build(), build());
    // More than all slots together; and fewer, but more than a table can be filled with.
    for (ours, theirs) in [(200, 100), (128, 128)] {
        left.clear();
        right.clear();
        SplitMix64(1).take(ours).for_each(|hash| left.insert(&Prehashed(hash)).expect("it fits"));
        SplitMix64(2).take(theirs).for_each(|hash| right.insert(&Prehashed(hash)).expect("it fits"));
        let before = left.clone();
        let error = left.merge(&right).expect_err("it does not fit");
        assert!(matches!(error, MergeError::Full { .. }), "{error}");
        let message = error.to_string();
        assert!(message.contains(" different items do not fit") && message.contains("256 slots"), "{message}");
        assert_eq!(left, before);
    }
}

#[test]
fn only_filters_of_a_kind_are_merged() {
    let builder = || CuckooFilter::builder().fingerprint_bits(12).buckets(64).hasher(AnyHasher::Xxh3);
    let single = || builder().table(TableKind::Single);
    // What the message says of ours, and of theirs.
    let others = [
        ("packed table", "single table", builder(), single()),
        ("12-bit", "13-bit", builder(), builder().fingerprint_bits(13)),
        ("64 buckets", "66 buckets", builder(), builder().buckets(66)),
        ("buckets of 4", "buckets of 8", single(), single().bucket_size(8)),
        ("any-size", "power-of-two", builder(), builder().addressing(Addressing::PowerOfTwo)),
        ("seed 0", "seed 1", builder(), builder().seed(1)),
    ];
    for (of_ours, of_theirs, ours, theirs) in others {
        let (mut ours, theirs) = (ours.build().expect("right"), theirs.build().expect("right"));
        ours.insert("koel").expect("it fits");
        let (before, message) = (ours.clone(), refused(&mut ours, &theirs));
        let (first, second) = message.split_once(", and the other a ").expect("what each of them is");
        assert!(first.contains(of_ours) && second.contains(of_theirs), "{of_ours}, {of_theirs}: {message}");
        assert_eq!(ours, before);
    }
    #[cfg(feature = "metrohash")]
    {
        let (mut ours, theirs) = (builder().build().expect("right"), builder().hasher(AnyHasher::MetroHash64));
        let error = ours.merge(&theirs.build().expect("right")).expect_err("they differ");
        assert!(matches!(error, MergeError::DifferentHasher), "{error}");
    }
}

/// Filled beyond its capacity, a filter could hardly be merged item by item; into an empty one it is copied.
#[test]
fn merging_into_an_empty_filter_copies() {
    let builder = || CuckooFilter::builder().fingerprint_bits(12).buckets(64);
    let full = || {
        let mut filter = builder().build().expect("right");
        let copies = SplitMix64(1).take(256).filter(|&hash| filter.insert(&Prehashed(hash)).is_ok()).count();
        assert!(copies > filter.capacity() && copies == filter.len(), "{copies} items, planned for {}", filter.capacity());
        filter
    };
    let theirs = full();
    for kernel in Kernel::available() {
        let mut emptied = full();
        emptied.clear();
        for ours in [builder().kernel(kernel).build().expect("right"), emptied] {
            let (mut merged, kernel) = (ours.clone(), ours.kernel());
            merged.merge(&theirs).expect("it is copied");
            assert!(merged == theirs && merged.to_bytes() == theirs.to_bytes());
            assert_eq!(merged.kernel(), kernel, "it is a copy of the table");
        }
    }
    // Not so into a filter that holds something, nor when they differ.
    let mut one = builder().build().expect("right");
    one.insert("koel").expect("it is empty");
    assert!(matches!(one.merge(&theirs), Err(MergeError::Full { .. })));
    let mut other = builder().seed(1).build().expect("right");
    assert!(matches!(other.merge(&theirs), Err(MergeError::DifferentParams { .. })) && other.is_empty());
}

#[track_caller]
fn refused(ours: &mut CuckooFilter<AnyHasher>, theirs: &CuckooFilter<AnyHasher>) -> String {
    let params = (ours.params(), theirs.params());
    let error = ours.merge(theirs).expect_err("they differ");
    let MergeError::DifferentParams { ours, theirs, .. } = error else { panic!("{error}") };
    assert_eq!((ours, theirs), params);
    error.to_string()
}

#[test]
fn the_facts_are_consistent() {
    let mut filter = CuckooFilter::builder().capacity(1_000_000).false_positive_rate(0.001).build().expect("right");
    assert!(filter.is_empty() && filter.bits_per_item().is_infinite() && filter.false_positive_rate() == 0.0);
    SplitMix64(4).take(1_000_000).for_each(|hash| filter.insert(&Prehashed(hash)).expect("the capacity fits"));
    assert_eq!(filter.len(), 1_000_000);
    assert!(filter.capacity() >= 1_000_000 && filter.slots() > filter.capacity());
    assert!((filter.load_factor() - 1e6 / filter.slots() as f64).abs() < 1e-12);
    assert!(filter.bits_per_item() < 12.5 && filter.false_positive_rate() < 0.001);
    let table = filter.params().table_bytes();
    assert!(filter.size_in_bytes() > table + size_of::<CuckooFilter>() && filter.size_in_bytes() <= table + 8 + 104);
    let line = filter.to_string();
    for fact in ["packed table", "13-bit", "1000000 of ", "any-size", "seed 0", "bits per item", "e-4"] {
        assert!(line.contains(fact), "{fact:?} is not in {line:?}");
    }
    for (items, says_bits) in [(0, false), (1, false), (100_000, true)] {
        filter.clear();
        SplitMix64(4).take(items).for_each(|hash| filter.insert(&Prehashed(hash)).expect("the capacity fits"));
        assert_eq!(filter.to_string().contains("bits per item"), says_bits, "{filter}");
    }
    SplitMix64(5).take(900_000).for_each(|hash| filter.insert(&Prehashed(hash)).expect("the capacity fits"));
    let debug = format!("{filter:?}");
    assert!(debug.len() < 400 && debug.contains("len: 1000000"), "{debug}");
    filter.clear();
    assert!(filter.is_empty() && filter.to_bytes()[64..].iter().rev().skip(8).all(|&byte| byte == 0));
}

/// Other tests take `==` for "unchanged": it must see every change.
#[test]
fn equality_sees_parameters_hashers_and_every_item() {
    let builder = || CuckooFilter::builder().fingerprint_bits(12).buckets(64).hasher(AnyHasher::Xxh3);
    let with = |builder: koel::Builder<AnyHasher>, item: &str| {
        let mut filter = builder.build().expect("right");
        filter.insert(item).expect("it fits");
        filter
    };
    let filter = with(builder(), "koel");
    assert_eq!(filter, with(builder(), "koel"));
    assert_ne!(filter, with(builder(), "owl"));
    assert_ne!(filter, with(builder().seed(1), "koel"));
    assert_ne!(filter, with(builder().buckets(66), "koel"));
    assert_ne!(filter, builder().build().expect("right"));
    #[cfg(feature = "metrohash")]
    assert_ne!(builder().build().expect("right"), builder().hasher(AnyHasher::MetroHash64).build().expect("right"));
}

/// With one bucket, both of an item's are the same: copies must not be counted twice.
#[test]
fn copies_in_a_single_bucket_are_counted_once() {
    let builder = CuckooFilter::builder().fingerprint_bits(12).addressing(Addressing::PowerOfTwo).buckets(1);
    let mut filter = builder.build().expect("right");
    for copies in 0..9 {
        assert_eq!(filter.count("koel"), copies);
        filter.insert("koel").expect("any number of copies");
    }
    for other in ["owl", "crow", "wren"] {
        filter.insert(other).expect("a copy gives way");
    }
    assert!(matches!(filter.insert("finch").expect_err("no slot is left").kind(), InsertErrorKind::Full { items: 4, slots: 4 }));
    assert_eq!((filter.count("koel"), filter.len()), (9, 12));
    assert!((0..9).all(|_| filter.remove("koel")) && !filter.remove("koel") && filter.contains("owl"));
    filter.insert("finch").expect("there is a slot");
}

#[test]
fn hashing_once_serves_several_filters() {
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
fn threads_may_share_a_filter() {
    fn shared<T: Send + Sync + Clone + 'static>() {}
    shared::<CuckooFilter>();
    shared::<CuckooFilter<AnyHasher>>();
    let mut filter = filter(1000);
    filter.insert_iter(0..1000u64).expect("they fit");
    std::thread::scope(|scope| {
        for part in 0..4u64 {
            let filter = &filter;
            scope.spawn(move || assert!((part * 250..part * 250 + 250).all(|n| filter.contains(&n))));
        }
    });
}
