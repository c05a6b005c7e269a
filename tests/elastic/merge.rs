//! Merging filters that have grown differently.

use koel::{ElasticBuilder, ElasticFilter, ElasticMergeError, GrowErrorKind};

fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

fn filled(builder: ElasticBuilder, items: impl Iterator<Item = u64>) -> ElasticFilter {
    let mut filter = builder.build().expect("the parameters are right");
    filter.insert_iter(items.map(key)).expect("it grows");
    filter
}

/// Every item of both is found, as often as it was inserted, and removing all of them leaves nothing.
#[test]
fn filters_of_any_two_sizes_can_be_merged() {
    let builder = ElasticFilter::builder().false_positive_rate(1e-5).capacity(100).max_capacity(10_000);
    // Three sizes within the maximal capacity, and two beyond it.
    let sizes = [0, 90, 5000, 15_000, 60_000];
    for left_items in sizes {
        for right_items in sizes {
            let left = filled(builder.clone(), 0..left_items);
            let right = filled(builder.clone(), 1_000_000 - right_items / 2..1_000_000 + right_items.div_ceil(2));
            let mut merged = left.clone();
            merged.merge(&right).unwrap();
            let items = || (0..left_items).chain(1_000_000 - right_items / 2..1_000_000 + right_items.div_ceil(2)).map(key);
            assert_eq!(merged.len() as u64, left_items + right_items);
            assert!(items().all(|item| merged.contains(&item)), "{left_items} {right_items}");
            let absent = (2_000_000..2_200_000).map(key).filter(|item| merged.contains(item)).count() as f64;
            let expected = 200_000.0 * merged.false_positive_rate();
            assert!((absent - expected).abs() <= 5.0 * expected.sqrt() + 3.0, "{absent} found, {expected} expected");
            for item in items() {
                assert!(merged.remove(&item), "{left_items} {right_items}");
            }
            assert!(merged.is_empty());
        }
    }
}

#[test]
fn a_refused_merge_changes_nothing() {
    let builder = ElasticFilter::builder().false_positive_rate(1e-5).capacity(100);
    let first = builder.clone().params().unwrap().table_bytes();
    let mut filter = builder.clone().max_bytes(first as usize).build().unwrap();
    filter.insert_iter(0..2000u64).unwrap();
    let other = filled(builder.clone(), 0..50_000);
    let before = filter.to_string();
    match filter.merge(&other).unwrap_err() {
        ElasticMergeError::Refused(error) => assert_eq!(error.kind(), GrowErrorKind::Limit),
        error => panic!("{error}"),
    }
    assert_eq!(filter.to_string(), before);
    assert!((0..2000u64).all(|n| filter.contains(&n)));
    let mut copies = builder.clone().build().unwrap();
    let other = copies.clone();
    (0..8).for_each(|_| copies.insert("alice").unwrap());
    let mut more = other.clone();
    more.insert("alice").unwrap();
    assert!(matches!(copies.merge(&more), Err(ElasticMergeError::Refused(error)) if error.kind() == GrowErrorKind::Copies));
    assert_eq!(copies.count("alice"), 8);
    let mut seeded = builder.seed(1).build().unwrap();
    assert_eq!(seeded.merge(&other), Err(ElasticMergeError::DifferentParams));
}
