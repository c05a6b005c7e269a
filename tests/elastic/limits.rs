//! A limit of memory, and parameters at the edge.

use koel::{ElasticFilter, GrowErrorKind, Parameter, TableKind};

#[test]
fn a_limit_is_kept_and_removals_make_room_again() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001).capacity(1000).max_bytes(100_000);
    let mut filter = builder.build().unwrap();
    let refused = (0..1_000_000u64).find_map(|n| filter.insert(&n).err().map(|error| (n, error))).unwrap();
    let (items, error) = refused;
    assert_eq!(error.kind(), GrowErrorKind::Limit);
    assert!(error.to_string().contains("the limit is 100000"), "{error}");
    assert!(filter.table_bytes() <= 100_000);
    assert_eq!(filter.len() as u64, items);
    assert!((0..items).all(|n| filter.contains(&n)));
    for n in 0..items / 2 {
        assert!(filter.remove(&n));
    }
    filter.insert(&items).unwrap();
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy_that_works() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001);
    let error = builder.clone().bucket_size(17).params().unwrap_err();
    assert_eq!(error.parameter(), Parameter::BucketSize);
    assert!(error.to_string().ends_with("the nearest that works is 16"), "{error}");
    assert!(builder.clone().bucket_size(16).build().is_ok());
    let error = builder.clone().table(TableKind::Packed).bucket_size(3).params().unwrap_err();
    assert!(error.to_string().ends_with("the nearest that works is 4"), "{error}");
    let error = builder.clone().capacity(10).max_capacity(9).params().unwrap_err();
    assert_eq!(error.parameter(), Parameter::Capacity);
    for rate in [f64::NAN, 0.0, -1.0, 1.0, f64::INFINITY, 1e-30] {
        let error = builder.clone().false_positive_rate(rate).params().unwrap_err();
        assert_eq!(error.parameter(), Parameter::FalsePositiveRate, "{error}");
    }
    assert_eq!(ElasticFilter::builder().params().unwrap_err().parameter(), Parameter::FalsePositiveRate);
    #[cfg(target_pointer_width = "64")]
    {
        let wide = builder.clone().false_positive_rate(0.01).capacity(0);
        let message = wide.clone().max_capacity(1_000_000_000_000).params().unwrap_err().to_string();
        let (_, most) = message.split_once("a maximal capacity of ").expect(&message);
        let most = most.split_once(',').expect(&message).0.parse().unwrap();
        assert!(wide.max_capacity(most).params().is_ok(), "{message}");
    }
    #[cfg(target_pointer_width = "64")]
    assert!(builder.capacity(usize::MAX).max_capacity(usize::MAX).params().is_err());
}

/// The first tables are within the limit, too: otherwise nothing is allocated, and both remedies work.
#[test]
fn a_limit_below_the_first_tables_is_refused_with_remedies_that_work() {
    let builder = || ElasticFilter::builder().false_positive_rate(0.001);
    let builders = [
        builder(),
        builder().capacity(100_000),
        builder().capacity(100_000).max_capacity(100_000),
        builder().capacity(3).max_capacity(5),
        builder().capacity(1_000_000).lanes(16),
        builder().table(TableKind::Single).bucket_size(2).capacity(5000),
        #[cfg(target_pointer_width = "64")]
        builder().capacity(1 << 40).max_capacity(1 << 40),
    ];
    let mut capacities = 0;
    for builder in builders {
        let first = builder.clone().params().unwrap().table_bytes();
        let fits = |builder: &koel::ElasticBuilder| {
            // Without the memory for a petabyte.
            let limit = builder.clone().params().unwrap().table_bytes();
            if limit > 1 << 30 {
                return;
            }
            let filter = builder.clone().build().unwrap();
            assert_eq!(filter.table_bytes() as u64, limit);
        };
        fits(&builder.clone().max_bytes(first as usize));
        for limit in [first - 1, first / 3, first / 1000, 0].map(|limit| limit as usize) {
            let error = builder.clone().max_bytes(limit).build().unwrap_err();
            let message = error.to_string();
            let koel::BuildError::Param(error) = error else { panic!("{message}") };
            assert_eq!(error.parameter(), Parameter::MaxBytes);
            let number = |before: &str| {
                let (_, after) = message.split_once(before)?;
                after.split(|c: char| !c.is_ascii_digit()).next()?.parse::<usize>().ok()
            };
            let beginning = format!("max bytes: {limit} given, but the tables take {first} from the beginning; ");
            assert!(message.starts_with(&beginning), "{message}");
            fits(&builder.clone().max_bytes(number("the nearest that works is ").expect(&message)));
            if let Some(capacity) = number("or a capacity of ") {
                fits(&builder.clone().max_bytes(limit).capacity(capacity));
                capacities += 1;
            }
        }
    }
    assert!(capacities > 8, "{capacities}");
}

/// A part has the bytes of its own lanes; a shared filter those of all.
#[test]
#[cfg(feature = "std")]
fn parts_and_shared_filters_begin_within_the_limit() {
    let builder = ElasticFilter::builder().false_positive_rate(0.001).capacity(100_000).lanes(8);
    let whole = builder.clone().params().unwrap().table_bytes() as usize;
    assert!(builder.clone().max_bytes(whole).build_shared().is_ok());
    let refused =
        |error: koel::BuildError| matches!(error, koel::BuildError::Param(error) if error.parameter() == Parameter::MaxBytes);
    assert!(builder.clone().max_bytes(whole - 1).build_shared().is_err_and(refused));
    assert!(builder.clone().max_bytes(whole / 4).build_part(1, 4).is_ok());
    assert!(builder.max_bytes(whole / 4 - 1).build_part(1, 4).is_err_and(refused));
}

/// A filter with long fingerprints, which leave no room for growth in a layer, has 256 layers in the end.
#[test]
#[cfg_attr(miri, ignore = "takes too long")]
fn layers_come_to_an_end() {
    let builder = ElasticFilter::builder().false_positive_rate(3e-9).capacity(1).max_capacity(1);
    let mut filter = builder.build().unwrap();
    let (items, error) = (0..).find_map(|n: u64| filter.insert(&n).err().map(|error| (n, error))).unwrap();
    assert_eq!(error.kind(), GrowErrorKind::Layers);
    assert!(error.to_string().ends_with("build it with a higher max_capacity"), "{error}");
    assert_eq!((filter.len() as u64, filter.buckets_per_lookup()), (items, 512));
    assert!((0..items).all(|n| filter.contains(&n)));
    let mut read = ElasticFilter::from_bytes(&filter.to_bytes()).unwrap();
    assert!((0..items).all(|n| read.remove(&n)) && read.is_empty());
    let (before, copy) = (filter.len(), filter.clone());
    assert!(filter.merge(&copy).is_err() && filter.len() == before);
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
