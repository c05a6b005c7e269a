//! Other operations of fixed filters: batches, equality, statistics and formatting.

#![allow(clippy::cast_precision_loss, reason = "small numbers")]

use crate::common::{SplitMix64, same_bits};
use koel::{Addressing, CuckooFilter, InsertErrorKind, Prehashed, hash::AnyHasher};

fn filter(capacity: usize) -> CuckooFilter {
    CuckooFilter::builder().capacity(capacity).false_positive_rate(1e-6).build().expect("valid parameters")
}

#[test]
fn batches_equal_single_operations() {
    let words: Vec<String> = (0..1000).map(|n| format!("word-{n}")).collect();
    let (mut batch, mut single) = (filter(1000), filter(1000));
    batch.insert_batch(&words).expect("they fit");
    words.iter().for_each(|word| single.insert(word).expect("they fit"));
    assert!(same_bits(&batch, &single));

    let probes: Vec<String> = (500..1500).map(|n| format!("word-{n}")).collect();
    let mut found = vec![false; probes.len()];
    batch.contains_batch(&probes, &mut found);
    assert!(probes.iter().zip(&found).all(|(probe, &found)| single.contains(probe) == found));
    assert_eq!(batch.count_members(&probes), 500);

    let mut removed = vec![false; probes.len()];
    batch.remove_batch(&probes, &mut removed);
    assert!(probes.iter().zip(&removed).all(|(probe, &removed)| single.remove(probe) == removed));
    assert!(same_bits(&batch, &single));
    batch.contains_batch(&[0_u8; 0], &mut []);
}

#[test]
fn a_refused_batch_reports_the_position_of_the_refused_item() {
    let mut filter = CuckooFilter::builder().fingerprint_bits(12).buckets(8).build().expect("valid parameters");
    let items: Vec<u64> = SplitMix64(1).take(100).collect();
    let error = filter.insert_batch(&items).expect_err("there are 32 slots");
    assert_eq!(error.position(), filter.len());
    assert!(items[..error.position()].iter().all(|item| filter.contains(item)));
    let (message, len) = (error.to_string(), filter.len());
    let full = format!("{} distinct items (length {len})", filter.distinct());
    for part in [format!("item {len}, counted from 0"), full, "larger capacity".into()] {
        assert!(message.contains(&part), "{part:?} is not in {message:?}");
    }
}

#[test]
#[should_panic(expected = "2 items but room for 3 answers")]
fn contains_batch_panics_if_the_output_has_another_length() {
    filter(10).contains_batch(&[1u8, 2], &mut [false; 3]);
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

#[test]
fn equality_compares_parameters_hashers_and_items() {
    let builder = || CuckooFilter::builder().fingerprint_bits(12).buckets(64).hasher(AnyHasher::Xxh3);
    let with = |builder: koel::Builder<AnyHasher>, item: &str| {
        let mut filter = builder.build().expect("valid parameters");
        filter.insert(item).expect("it fits");
        filter
    };
    let filter = with(builder(), "koel");
    assert!(same_bits(&filter, &with(builder(), "koel")));
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
    assert!(matches!(
        filter.insert("finch").expect_err("no slot is left").kind(),
        InsertErrorKind::Full { distinct: 4, len: 12 }
    ));
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
