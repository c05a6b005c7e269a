//! Filters grow a thousandfold and shrink back to empty.

use crate::common::key;
use koel::{ElasticFilter, Kernel};

const RATE: f64 = 0.001;

/// Asserts that the measured rate is within five standard errors of the stated one, and that the stated one is at most `RATE`.
fn assert_rate(filter: &ElasticFilter, samples: usize) {
    let (stated, measured) = (filter.false_positive_rate(), filter.measure_false_positive_rate(samples));
    let error = (stated / samples as f64).sqrt();
    assert!((measured - stated).abs() <= 5.0 * error + 1.0 / samples as f64, "{measured} measured, {stated} stated");
    assert!(stated <= RATE, "{stated} at {} items", filter.len());
}

fn grow_and_shrink(mut filter: ElasticFilter, items: u64) {
    let (empty, shards) = (filter.size_in_bytes(), filter.shards());
    let mut next = 1000;
    for n in 0..items {
        filter.insert(&key(n)).expect("the filter grows");
        if n + 1 == next {
            assert_eq!(filter.len() as u64, next);
            assert!((0..next).all(|n| filter.contains(&key(n))), "at {next} items");
            assert_rate(&filter, 300_000);
            next *= 2;
        }
    }
    assert!(filter.shards() > 4 * shards);
    assert_eq!(filter.buckets_per_lookup(), 2);
    for n in 0..items {
        assert!(filter.remove(&key(n)), "{n}");
        if (items - n).is_power_of_two() {
            assert_eq!(filter.len() as u64, items - n - 1);
            assert!((n + 1..items).all(|n| filter.contains(&key(n))));
        }
    }
    assert!(filter.is_empty());
    filter.shrink();
    assert_eq!(filter.shards(), shards);
    assert!(filter.size_in_bytes() <= 2 * empty, "{} bytes, {empty} when empty", filter.size_in_bytes());
}

/// A filter whose `max_capacity` is less than twice its `capacity` starts with the tables for all items.
#[test]
fn lookups_read_two_buckets_up_to_max_capacity() {
    for (capacity, most) in [(100_000, 100_000), (100_000, 150_000), (100_000, 199_999), (100_000, 200_001)] {
        let builder = ElasticFilter::builder().capacity(capacity).max_capacity(most).false_positive_rate(0.01);
        let mut filter = builder.build().expect("valid parameters");
        filter.insert_iter(0..most as u64).expect("the filter grows");
        assert_eq!(filter.buckets_per_lookup(), 2, "{capacity} to {most}");
        assert!(filter.false_positive_rate() <= 0.01);
    }
}

#[test]
fn a_packed_filter_grows_a_thousandfold_and_shrinks_to_empty() {
    for kernel in Kernel::available() {
        let builder = ElasticFilter::builder().false_positive_rate(RATE).capacity(200).max_capacity(200_000);
        grow_and_shrink(builder.kernel(kernel).build().unwrap(), 200_000);
    }
}

#[test]
fn a_default_filter_grows_from_empty_in_bounded_memory() {
    let mut filter = ElasticFilter::builder().false_positive_rate(RATE).build().unwrap();
    let mut most_bits = 0.0_f64;
    for n in 0..500_000 {
        filter.insert(&key(n)).unwrap();
        if n >= 64_000 {
            most_bits = most_bits.max(filter.bits_per_item());
        }
    }
    // The bound is three times a fixed filter's 12.4 bits. If all shards split at the same time, it would be 3.5 times.
    assert!(most_bits <= 3.0 * 12.4, "{most_bits}");
    assert!((0..500_000).all(|n| filter.contains(&key(n))));
    assert_rate(&filter, 1_000_000);
}

#[test]
fn the_rate_is_kept_beyond_max_capacity() {
    let builder = ElasticFilter::builder().false_positive_rate(RATE).capacity(500).max_capacity(5000);
    let mut filter = builder.build().unwrap();
    for n in 0..100_000 {
        filter.insert(&key(n)).unwrap();
    }
    assert!(filter.buckets_per_lookup() > 2);
    assert!((0..100_000).all(|n| filter.contains(&key(n))));
    assert_rate(&filter, 1_000_000);
    for n in 0..100_000 {
        assert!(filter.remove(&key(n)), "{n}");
    }
    assert!(filter.is_empty());
    assert_eq!(filter.buckets_per_lookup(), 2);
}

#[test]
fn a_filter_without_planned_growth_is_nearly_as_small_as_a_fixed_one() {
    let builder = ElasticFilter::builder().false_positive_rate(RATE).capacity(1_000_000).max_capacity(1_000_000);
    let mut filter = builder.build().unwrap();
    let shards = filter.shards();
    for n in 0..1_000_000 {
        filter.insert(&key(n)).unwrap();
    }
    assert_eq!(filter.shards(), shards, "a shard was split below the capacity");
    assert!(filter.bits_per_item() <= 12.6, "{}", filter.bits_per_item());
    assert_rate(&filter, 1_000_000);
}
