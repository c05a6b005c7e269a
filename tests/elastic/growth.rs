//! Growing a thousandfold and shrinking to nothing.

use koel::{ElasticFilter, Kernel, TableKind};

const RATE: f64 = 0.001;

fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17)
}

/// Measured rates are compared with stated ones: at most five standard errors apart.
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
        filter.insert(&key(n)).expect("it grows");
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
    assert!(filter.size_in_bytes() <= 2 * empty, "{} bytes, {empty} at the beginning", filter.size_in_bytes());
}

/// A filter that is planned for less than twice its capacity has the tables for all of them from the beginning.
#[test]
fn up_to_the_maximal_capacity_two_buckets_are_read() {
    for (capacity, most) in [(100_000, 100_000), (100_000, 150_000), (100_000, 199_999), (100_000, 200_001)] {
        let builder = ElasticFilter::builder().capacity(capacity).max_capacity(most).false_positive_rate(0.01);
        let mut filter = builder.build().expect("the parameters are right");
        filter.insert_iter(0..most as u64).expect("it grows");
        assert_eq!(filter.buckets_per_lookup(), 2, "{capacity} to {most}");
        assert!(filter.false_positive_rate() <= 0.01);
    }
}

#[test]
fn a_filter_grows_a_thousandfold_and_shrinks_to_nothing() {
    for kernel in Kernel::available() {
        let builder = ElasticFilter::builder().false_positive_rate(RATE).capacity(200).max_capacity(200_000);
        grow_and_shrink(builder.kernel(kernel).build().unwrap(), 200_000);
    }
}

#[test]
fn so_does_one_with_single_tables() {
    let builder = ElasticFilter::builder().false_positive_rate(RATE).capacity(100).max_capacity(100_000);
    for bucket_size in [2, 4, 8] {
        let builder = builder.clone().table(TableKind::Single).bucket_size(bucket_size);
        grow_and_shrink(builder.build().unwrap(), 50_000);
    }
}

#[test]
fn it_grows_from_nothing_by_default() {
    let mut filter = ElasticFilter::builder().false_positive_rate(RATE).build().unwrap();
    let mut most_bits = 0.0_f64;
    for n in 0..500_000 {
        filter.insert(&key(n)).unwrap();
        if n >= 64_000 {
            most_bits = most_bits.max(filter.bits_per_item());
        }
    }
    // Three times a fixed filter's. Without partitions of different sizes it would be 3.5 times.
    assert!(most_bits <= 3.0 * 12.4, "{most_bits}");
    assert!((0..500_000).all(|n| filter.contains(&key(n))));
    assert_rate(&filter, 1_000_000);
}

#[test]
fn beyond_the_maximal_capacity_it_goes_on_at_the_promised_rate() {
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
fn a_filter_planned_for_its_size_takes_hardly_more_than_a_fixed_one() {
    let builder = ElasticFilter::builder().false_positive_rate(RATE).capacity(1_000_000).max_capacity(1_000_000);
    let mut filter = builder.build().unwrap();
    let shards = filter.shards();
    for n in 0..1_000_000 {
        filter.insert(&key(n)).unwrap();
    }
    assert_eq!(filter.shards(), shards, "nothing is split before the capacity");
    assert!(filter.bits_per_item() <= 12.6, "{}", filter.bits_per_item());
    assert_rate(&filter, 1_000_000);
}
