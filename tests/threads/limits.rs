//! The memory limit that all partitions share, and limits of parameters.

use koel::{ElasticFilter, InsertErrorKind, ParamError};

use super::{THREADS, builder, on_threads};

#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn all_partitions_share_one_memory_limit() {
    const LIMIT: usize = 3_000_000;
    let filter = builder().max_bytes(LIMIT).build_shared().expect("valid parameters");
    let refused = on_threads(|thread| {
        let mut refused = None;
        for n in 0.. {
            let result = filter.insert(&(n * THREADS + thread));
            assert!(filter.table_bytes() <= LIMIT);
            if let Err(error) = result {
                refused = Some((n, error));
                break;
            }
        }
        refused.expect("memory is limited")
    });
    let mut items = 0;
    for (thread, (accepted, error)) in (0..).zip(&refused) {
        assert!(matches!(error.kind(), InsertErrorKind::Limit { .. }));
        assert!(error.to_string().contains("the limit is 3000000"), "{error}");
        assert!((0..*accepted).all(|n| filter.contains(&(n * THREADS + thread))));
        items += accepted;
    }
    assert_eq!(filter.len() as u64, items);
    // Removals make room again, in any partition.
    on_threads(|thread| assert!((0..refused[thread as usize].0).all(|n| filter.remove(&(n * THREADS + thread)))));
    filter.shrink();
    assert!(filter.table_bytes() < LIMIT / 2);
    for n in 0..items / 2 {
        filter.insert(&(n | 1 << 40)).expect("there is room again");
    }
}

#[test]
fn the_partition_count_must_be_a_power_of_two() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001);
    for partitions in [0, 3, 257, usize::MAX] {
        assert_eq!(builder.clone().partitions(partitions).params(), Err(ParamError::Partitions { given: partitions }));
    }
    for partitions in [1, 256] {
        assert!(builder.clone().partitions(partitions).params().is_ok());
    }
}

/// Filters with many small partitions keep the promised rate, with and without planned growth.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn many_partitions_keep_the_promised_rate() {
    for (partitions, items) in [(1, 100_000), (64, 100_000), (256, 1_000_000_u64)] {
        let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(items as usize).max_capacity(items as usize);
        for (grows, builder) in [(false, builder.clone()), (true, builder.max_capacity(100 * items as usize))] {
            let filter = builder.partitions(partitions).build_shared().expect("valid parameters");
            // If growth is planned, partitions whose capacity takes at most eight tables begin as lists.
            let has_first_tables = filter.table_bytes() > 0;
            assert_eq!(has_first_tables, partitions == 1 || !grows, "{filter}");
            // With this many items, every partition has too many for a list.
            let most = items / 8 * 7;
            filter.insert_batch(&(0..most).collect::<Vec<u64>>()).expect("the filter grows");
            let (bytes, shards) = (filter.table_bytes(), filter.shards());
            let is_split = shards % partitions != 0 || !(shards / partitions).is_power_of_two();
            assert!(!is_split || !has_first_tables, "a shard was split: {filter}");
            filter.insert_batch(&(most..items).collect::<Vec<u64>>()).expect("the filter grows");
            assert!(filter.table_bytes() == bytes || !has_first_tables, "a shard was split below the capacity: {filter}");
            let samples = 400_000_u64;
            let found = (0..samples).filter(|n| filter.contains(&(n | 1 << 50))).count() as f64;
            let stated = filter.false_positive_rate();
            let error = (stated * samples as f64).sqrt();
            assert!((found - stated * samples as f64).abs() <= 5.0 * error + 1.0, "{found} found, {stated} stated");
            assert!(stated <= 0.01);
        }
    }
}
