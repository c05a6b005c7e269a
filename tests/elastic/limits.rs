//! Memory limits, and parameters at the ends of their ranges.

use crate::common::same_bits;
use koel::{BuildError, ElasticFilter, InsertErrorKind, ParamError, Prehashed};

#[test]
fn a_memory_limit_holds_and_removals_make_room() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001).capacity(1000).max_bytes(100_000);
    let mut filter = builder.build().unwrap();
    let refused = (0..1_000_000u64).find_map(|n| filter.insert(&n).err().map(|error| (n, error))).unwrap();
    let (items, error) = refused;
    assert!(matches!(error.kind(), InsertErrorKind::Limit { .. }));
    assert!(error.to_string().contains("the limit is 100000"), "{error}");
    assert!(filter.size_in_bytes() <= 100_000);
    assert_eq!(filter.len() as u64, items);
    assert!((0..items).all(|n| filter.contains(&n)));
    for n in 0..items / 2 {
        assert!(filter.remove(&n));
    }
    filter.insert(&items).unwrap();
}

#[test]
fn invalid_parameters_are_refused_with_their_limits() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001);
    let error = ParamError::Capacity { given: 10, max: 9 };
    assert_eq!(builder.clone().capacity(10).max_capacity(9).params(), Err(error));
    assert!(builder.capacity(9).max_capacity(9).build().is_ok());
    assert_eq!(ElasticFilter::builder().params(), Err(ParamError::NoRate));
}

/// The largest `max_capacity` works with every partition count, capacity and rate, and a larger one does not.
#[test]
#[cfg(target_pointer_width = "64")]
fn the_largest_max_capacity_works_and_a_larger_one_does_not() {
    for partitions in [1, 2, 64, 256] {
        let builder = ElasticFilter::builder().partitions(partitions);
        let too_large = builder.clone().max_capacity(usize::MAX).false_positive_rate(0.9).params();
        let Err(ParamError::MaxCapacity { given: usize::MAX, max: most }) = too_large else { panic!("{too_large:?}") };
        // Their first shards are just more than half as large as the largest shards.
        let many = (12..usize::BITS).step_by(6).map(|bits| (1 << bits) / 100 * 98).take_while(|&capacity| capacity < most);
        for capacity in [0, 1, most / 1000, most / 2, most / 2 + 1, most].into_iter().chain(many) {
            let builder = builder.clone().capacity(capacity).max_capacity(most);
            let lowest = match builder.clone().false_positive_rate(1.0).params() {
                Err(ParamError::FalsePositiveRate { min: lowest, .. }) => lowest,
                other => panic!("{other:?}"),
            };
            for rate in [lowest, 2.0 * lowest, 1e-3, 0.01, 0.1, 0.5, 0.999].into_iter().filter(|&rate| rate >= lowest) {
                let builder = builder.clone().false_positive_rate(rate);
                assert!(builder.clone().params().is_ok(), "{partitions} partitions, {capacity}..{most}, {rate:e}");
                let more = builder.max_capacity(most + 1).params();
                assert_eq!(more, Err(ParamError::MaxCapacity { given: most + 1, max: most }));
            }
        }
        // The default `max_capacity` does not exceed the largest one.
        let filter = builder.clone().capacity(most).false_positive_rate(0.5).params().expect("the largest capacity works");
        assert_eq!(filter.max_capacity(), most);
    }
}

fn param(error: BuildError) -> ParamError {
    match error {
        BuildError::Param(error) => error,
        other => panic!("{other}"),
    }
}

/// The first tables count toward the limit. If they exceed it, nothing is allocated, and the error says how many bytes they need.
#[test]
fn a_limit_below_the_first_tables_is_refused_with_the_bytes_they_need() {
    let builder = || ElasticFilter::builder().false_positive_rate(0.001);
    let builders = [
        builder(),
        builder().capacity(20_000),
        builder().capacity(100_000),
        builder().capacity(100_000).max_capacity(100_000),
        builder().capacity(3).max_capacity(5),
        builder().capacity(1_000_000).partitions(16),
        #[cfg(target_pointer_width = "64")]
        builder().capacity(1 << 40).max_capacity(1 << 40),
    ];
    for builder in builders {
        let needed = builder.clone().params().unwrap().size_in_bytes();
        for given in [needed - 1, needed / 3, needed / 1000, 0] {
            let error = builder.clone().max_bytes(given).build().unwrap_err();
            assert_eq!(param(error), ParamError::MaxBytes { given, needed });
        }
        // The largest filters would take more memory than the test machine has.
        if needed < 1 << 30 {
            let mut filter = builder.max_bytes(needed).build().unwrap();
            assert!(filter.size_in_bytes() <= needed);
            filter.insert(&1).expect("the least limit has room for an item");
            assert!(filter.size_in_bytes() <= needed);
        }
    }
}

#[test]
#[cfg(feature = "std")]
fn an_empty_shared_filter_must_fit_within_the_limit() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001).capacity(100_000).partitions(8);
    let params = builder.clone().params().unwrap();
    let whole = params.size_in_bytes();
    assert!(builder.clone().max_bytes(whole).build_shared().is_ok());
    let refused = |error| matches!(param(error), ParamError::MaxBytes { .. });
    assert!(builder.clone().max_bytes(whole - 1).build_shared().is_err_and(refused));
}

/// Far beyond the plan, filters with the longest fingerprints take all items, keep their rates, and lose nothing to removals.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn filters_with_low_rates_grow_beyond_their_plans() {
    for (rate, items) in [(2e-9, 20_000), (1e-8, 100_000), (1e-7, 20_000)] {
        let builder = ElasticFilter::builder().false_positive_rate(rate).capacity(1).max_capacity(1);
        let mut filter = builder.build().unwrap();
        filter.insert_iter(0..items).unwrap();
        assert!(filter.false_positive_rate() <= rate && filter.buckets_per_lookup() >= 10, "{filter}");
        assert!((0..items).all(|n: u64| filter.contains(&n) && filter.count(&n) == 1));
        assert!((items..3 * items).all(|n| !filter.contains(&n)));
        let mut read = ElasticFilter::from_bytes(&filter.to_bytes()).unwrap();
        assert!((0..items).all(|n| read.remove(&n)) && read.is_empty());
        let copy = filter.clone();
        filter.merge(&copy).unwrap();
        assert!((0..items).all(|n| filter.count(&n) == 2));
    }
}

/// A rate that is too low is refused with the lowest rate that works, for every capacity. The limit is tight: a rate a thousandth
/// lower does not work.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn rates_that_are_too_low_are_refused_with_the_lowest() {
    let (mut checked, mut lowest_of_all) = (0, f64::INFINITY);
    let capacities = [0, 1, 100, 4095, 4096, 1_000_000, 1_000_000_000, 300_000_000_000].map(|items: u64| items as usize);
    for max_capacity in capacities {
        for capacity in [0, max_capacity] {
            let builder = ElasticFilter::builder().capacity(capacity).max_capacity(max_capacity);
            let with = |rate| builder.clone().false_positive_rate(rate).params();
            for given in [f64::NAN, f64::NEG_INFINITY, 0.0, 1e-30, 1e-12, 1.5e-9, 1.0, 1.5] {
                let error = with(given).expect_err("the rate is out of range");
                let ParamError::FalsePositiveRate { min: lowest, .. } = error else { panic!("{error}") };
                let message = error.to_string();
                let (_, range) = message.split_once("rates from ").expect("a range");
                let written: f64 = range.split_once(' ').expect("two limits").0.parse().expect("a rate");
                assert!((lowest..lowest * 1.01).contains(&written), "{lowest:e}: {message}");
                for rate in [lowest, written, 0.999] {
                    assert!(with(rate).is_ok(), "{builder:?}, {rate:e}");
                }
                assert!(with(0.999 * lowest).is_err(), "{builder:?}, {lowest:e}");
                (checked, lowest_of_all) = (checked + 1, lowest.min(lowest_of_all));
            }
        }
    }
    assert!(checked > 120 && lowest_of_all > 1.5e-9, "{checked}, {lowest_of_all:e}");
    // The documentation of `ElasticBuilder::false_positive_rate` names this rate.
    let error = ElasticFilter::builder().false_positive_rate(1e-12).params().unwrap_err();
    assert!(matches!(error, ParamError::FalsePositiveRate { min: lowest, .. } if (1.8e-9..2e-9).contains(&lowest)), "{error}");
    let small = ElasticFilter::builder().capacity(100).max_capacity(100);
    let ParamError::FalsePositiveRate { min: lowest, .. } = small.clone().false_positive_rate(1e-12).params().unwrap_err() else {
        panic!("an unexpected error")
    };
    let mut filter = small.false_positive_rate(lowest).build().unwrap();
    filter.insert_iter(0..100_u64).unwrap();
    assert!(filter.false_positive_rate() <= lowest);
}

#[test]
fn the_smallest_filters_work() {
    for (capacity, max_capacity) in [(0, 0), (0, 1), (1, 1), (1, 2), (2, 1000)] {
        let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(capacity).max_capacity(max_capacity);
        let mut filter = builder.build().unwrap();
        for n in 0..3000u64 {
            filter.insert(&n).unwrap();
        }
        assert!((0..3000u64).all(|n| filter.contains(&n)));
        assert!(filter.false_positive_rate() <= 0.01, "{capacity} {max_capacity}: {filter}");
    }
}

/// Distinct items are accepted far beyond the plan, even if two with equal stored bits look like copies.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn distinct_items_are_accepted_beyond_the_plan() {
    let hash = |n: u64| {
        let folded = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let folded = (folded ^ folded >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        folded ^ folded >> 31
    };
    let mut next = 0;
    for max_capacity in [1, 2, 7, 17, 44, 100, 400, 1334] {
        for (rate, capacity) in [(0.5, 0), (0.5, max_capacity), (0.03, max_capacity / 5), (1e-5, 0)] {
            let builder = ElasticFilter::builder().false_positive_rate(rate);
            let builder = builder.capacity(capacity).max_capacity(max_capacity);
            for round in 0..20 {
                let mut filter = builder.clone().build().unwrap();
                let items = if round == 0 { 12_000 } else { 400.max(20 * max_capacity as u64).min(3000) };
                for n in 0..items {
                    next += 1;
                    let inserted = filter.insert(&Prehashed(hash(next)));
                    assert!(inserted.is_ok(), "item {n}, {next} in total: {inserted:?} {filter:?}");
                }
            }
        }
    }
}

/// Returns `count` hashes whose streams begin with `zeros` zeros, found by brute force. Anyone who knows the seed can do this.
#[cfg(target_pointer_width = "64")]
fn chosen(zeros: u32, count: usize) -> Vec<u64> {
    let stream = |hash: u64| {
        // docs/FORMAT.md defines the hash x of a prehashed number, and the stream of a hash.
        let folded = (hash ^ hash >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let x = (folded ^ folded >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x.wrapping_mul(0xb504_f333_f9de_6485)
    };
    (0..).filter(|&hash| stream(hash) >> (64 - zeros) == 0).take(count).collect()
}

/// Chosen items make one shard split again and again. The memory for this is bounded: each split adds one table, and neither the
/// directory nor a further generation is sized for `max_capacity`.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
#[cfg(target_pointer_width = "64")]
fn chosen_items_take_little_memory() {
    let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(1000).max_capacity(1 << 32);
    let hashes = chosen(14, 3000);
    let mut filter = builder.clone().build().unwrap();
    let empty = builder.clone().params().unwrap().size_in_bytes();
    let mut crowded = 0;
    for &hash in &hashes {
        let before = filter.len();
        if let Err(error) = filter.insert(&Prehashed(hash)) {
            assert_eq!(error.kind(), InsertErrorKind::Crowded, "{error}");
            assert_eq!(filter.len(), before);
            crowded += 1;
        }
    }
    assert!(filter.size_in_bytes() < 20 * empty, "{} bytes, {empty} when empty: {filter}", filter.size_in_bytes());
    // Other items are refused only if they belong to the crowded shard.
    let refused = (0..2000u64).filter(|n| filter.insert(n).is_err()).count();
    assert!(refused < 20, "{refused}");
    // A memory limit covers all of this.
    let limit = 2 * empty;
    let mut limited = builder.max_bytes(limit).build().unwrap();
    for &hash in &hashes {
        let before = limited.to_bytes();
        if limited.insert(&Prehashed(hash)).is_err() {
            assert_eq!(limited.to_bytes(), before);
        }
        assert!(limited.size_in_bytes() <= limit, "{limited}");
    }
    assert_eq!(filter.len() + crowded + refused, hashes.len() + 2000);
}

/// Without a limit, removals need not add up the charge, but it is the same as that of the filter without locks.
#[cfg(feature = "std")]
#[test]
fn a_shared_filter_is_charged_as_one_without_locks() {
    for limit in [usize::MAX, 1 << 24] {
        let builder = ElasticFilter::builder().false_positive_rate(0.001).partitions(4).max_bytes(limit);
        let shared = builder.build_shared().expect("valid parameters");
        shared.insert_iter(0..60_000_u64).expect("the filter grows");
        let before = shared.charged_bytes();
        assert!((0..60_000_u64).all(|n| shared.remove(&n)));
        let after = shared.charged_bytes();
        assert!(after < before / 10, "{after} after {before} bytes");
        let elastic = shared.into_elastic().unwrap_or_else(|_| panic!("nobody else has the filter"));
        assert_eq!(elastic.charged_bytes(), after);
    }
}

/// A filter, its clone and its reloaded copy refuse the same items under the same limit, and never exceed it.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn clones_and_reloaded_filters_refuse_the_same_items() {
    let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(100).max_capacity(20_000);
    let key = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
    for limit in (8000..60_000).step_by(1700) {
        let mut filter = builder.clone().max_bytes(limit).build().unwrap();
        let mut unlimited = builder.clone().build().unwrap();
        for round in 0..6 {
            let mut read = ElasticFilter::from_bytes(&filter.to_bytes()).unwrap();
            read.set_max_bytes(limit);
            let mut copy = filter.clone();
            for n in (0..1500).map(|n| key(round * 1500 + n)) {
                let answers = [&mut filter, &mut read, &mut copy].map(|filter| filter.insert(&n));
                assert!(answers[0] == answers[1] && answers[0] == answers[2], "{answers:?}");
                if answers[0].is_ok() {
                    unlimited.insert(&n).unwrap();
                }
                assert!(filter.size_in_bytes().max(read.size_in_bytes()).max(copy.size_in_bytes()) <= limit, "{filter}");
            }
            for n in (0..500).map(|n| key(round * 1500 + n * 2)) {
                let answers = [&mut filter, &mut read, &mut copy, &mut unlimited].map(|filter| filter.remove(&n));
                assert!(answers.iter().all(|answer| *answer == answers[0]));
                assert!(filter.size_in_bytes() <= limit);
            }
            let bytes = filter.to_bytes();
            assert!(read.to_bytes() == bytes && copy.to_bytes() == bytes);
            // The accepted items alone, inserted without a limit, give the same bytes.
            assert!(unlimited.to_bytes() == bytes);
        }
    }
}

/// Copies count toward the limit. A refused copy changes nothing. Further copies of an item that already has counted copies need no
/// memory, so they are accepted.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn copies_count_toward_the_memory_limit() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001).capacity(100);
    let mut refused = [0; 2];
    for limit in (8000..50_000).step_by(2900) {
        for copies in [2, 3, 20] {
            let mut filter = builder.clone().max_bytes(limit).build().unwrap();
            let mut unlimited = builder.clone().build().unwrap();
            let mut read = filter.clone();
            for n in 0..9000 {
                // The copies of an item come in rounds or in a row.
                let item = if limit % 200 == 0 { n % (9000 / copies) } else { n / copies };
                let before = (n % 7 == 0).then(|| filter.to_bytes());
                let (answer, again) = (filter.insert(&item), read.insert(&item));
                assert_eq!(answer, again);
                match answer {
                    Ok(()) => unlimited.insert(&item).unwrap(),
                    Err(error) => {
                        assert!(matches!(error.kind(), InsertErrorKind::Limit { .. }), "{error}");
                        refused[usize::from(filter.contains(&item))] += 1;
                        assert!(before.is_none_or(|before| before == filter.to_bytes()));
                    }
                }
                assert!(filter.size_in_bytes() <= limit && filter.charged_bytes() <= limit, "{filter}");
                if n % 500 == 0 {
                    read = ElasticFilter::from_bytes(&filter.to_bytes()).unwrap();
                    read.set_max_bytes(limit);
                    assert!(same_bits(&unlimited, &filter), "{n}: {unlimited} and {filter}");
                    filter.assert_consistent();
                }
                if n % 3 == 0 && filter.remove(&(item / 2)) {
                    assert!(read.remove(&(item / 2)) && unlimited.remove(&(item / 2)));
                }
            }
            assert!(same_bits(&read, &filter) && same_bits(&unlimited, &filter));
            // A merge stays within the limit, or changes nothing.
            let before = filter.clone();
            if filter.merge(&before).is_err() {
                assert!(same_bits(&filter, &before));
            }
            assert!(filter.charged_bytes() <= limit);
        }
    }
    assert!(refused.iter().all(|&times| times > 100), "{refused:?}");
}

/// Beyond the plan, a copy of an item whose list must become a table takes the first entry and the table. An insertion stays within each
/// limit between the charges before and after it, or changes nothing.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn copies_beyond_the_plan_count_toward_the_memory_limit() {
    let mut filter = ElasticFilter::builder().false_positive_rate(0.001).max_capacity(2000).build().unwrap();
    filter.insert_iter(0..5000u64).unwrap();
    // The first items are in the first generation, and the last ones in a later one.
    (1..3000u64).for_each(|item| assert!(filter.remove(&item)));
    let before = filter.charged_bytes();
    let mut unlimited = filter.clone();
    unlimited.insert(&0u64).unwrap();
    assert!(unlimited.buckets_per_lookup() > 2 && unlimited.charged_bytes() > before + 500, "the list has become a table");
    for limit in before..=unlimited.charged_bytes() {
        let mut limited = filter.clone();
        limited.set_max_bytes(limit);
        let result = limited.insert(&0u64);
        assert!(limited.charged_bytes() <= limit, "{} bytes, {limit} allowed", limited.charged_bytes());
        assert_eq!(result.is_ok(), limit >= unlimited.charged_bytes(), "{limit} allowed");
        assert!(result.is_ok() || same_bits(&limited, &filter));
    }
}

/// A reloaded filter of any growing type accepts and refuses the same items as before once the limit is set again.
#[test]
#[cfg(feature = "std")]
fn a_limit_set_after_loading_refuses_the_same_items() {
    use koel::{ElasticView, SharedFilter};

    const MAX_BYTES: usize = 200_000;
    let builder = ElasticFilter::builder().false_positive_rate(0.001).capacity(1000).partitions(4).max_bytes(MAX_BYTES);
    let mut owned = builder.clone().build().unwrap();
    let shared = builder.build_shared().unwrap();
    let full = owned.insert_iter(0..10_000_000u64).unwrap_err();
    assert!(matches!(full.kind(), InsertErrorKind::Limit { .. }), "{full}");
    assert_eq!(shared.insert_iter(0..10_000_000u64).unwrap_err().position(), full.position());

    let mut read = ElasticFilter::from_bytes(&owned.to_bytes()).unwrap();
    let read_shared = SharedFilter::from_bytes(&shared.to_bytes()).unwrap();
    let mut copied = ElasticView::over(owned.to_bytes()).unwrap().to_filter().unwrap();
    // A reloaded filter has no limit at first.
    assert!(read.clone().insert(&(full.position() as u64)).is_ok());
    read.set_max_bytes(MAX_BYTES);
    read_shared.set_max_bytes(MAX_BYTES);
    copied.set_max_bytes(MAX_BYTES);
    assert_eq!(read_shared.charged_bytes(), shared.charged_bytes());

    for round in 0..3_000u64 {
        let item = full.position() as u64 + round;
        let answer = owned.insert(&item).is_ok();
        for (other, kind) in
            [(read.insert(&item), "read"), (copied.insert(&item), "copied"), (read_shared.insert(&item), "shared")]
        {
            assert_eq!(other.is_ok(), answer, "{kind}, item {item}");
        }
        // Removals make room again.
        let gone = round * 7 % full.position() as u64;
        let removed = owned.remove(&gone);
        assert_eq!([read.remove(&gone), copied.remove(&gone), read_shared.remove(&gone)], [removed; 3]);
    }
    assert!(owned.charged_bytes() <= MAX_BYTES && read.to_bytes() == owned.to_bytes() && copied.to_bytes() == owned.to_bytes());
    assert_eq!(read_shared.into_elastic().unwrap().to_bytes(), owned.to_bytes());
}
