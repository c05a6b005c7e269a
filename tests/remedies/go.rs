//! Filters that Go's library could not read.

use super::*;
use crate::common::split_mix::unmixed;
use koel::{
    Addressing, Builder, CuckooFilter, Prehashed, TableKind, Xxh3,
    go::{self, GoError, GoFilter, MetroHash64},
    hash::HasherId,
};

fn builder() -> Builder {
    CuckooFilter::builder().capacity(100).fingerprint_bits(12)
}

/// One of Go's kind, if it is told everything.
fn gos(builder: Builder) -> Builder<MetroHash64> {
    builder.addressing(Addressing::PowerOfTwo).hasher(MetroHash64).seed(1337)
}

#[track_caller]
fn refused(builder: Builder<MetroHash64>, parts: &[&str]) {
    let filter = builder.build().expect("right");
    says(&go::encode(&filter).expect_err("Go has no such filter"), parts);
    says(&GoFilter::try_from(filter).expect_err("Go has no such filter"), parts);
}

#[track_caller]
fn works(builder: Builder<MetroHash64>) {
    let mut filter = builder.build().expect("right");
    filter.insert("koel").expect("there is room");
    let file = go::encode(&filter).expect("Go has such filters");
    assert!(go::decode(&file).expect("a file").contains("koel"));
}

#[test]
fn what_go_does_not_have_is_built_as_go_has_it() {
    works(gos(builder()));
    refused(
        gos(builder()).addressing(Addressing::AnySize),
        &["any-size given", "power-of-two; build the filter with that addressing"],
    );
    works(gos(builder()).addressing("power-of-two".parse().expect("an addressing")));
    refused(gos(builder()).seed(7), &["seed: 7 given", "always uses 1337; build the filter with that seed"]);
    works(gos(builder()).seed(1337));
    let xxh3 = builder().addressing(Addressing::PowerOfTwo).seed(1337).hasher(Xxh3).build().expect("right");
    says(
        &go::encode(&xxh3).expect_err("Go has no such hasher"),
        &["xxh3 given", "metrohash64; build the filter with that hasher"],
    );
    assert_eq!("metrohash64".parse(), Ok(HasherId::METRO_HASH_64));
    // Both remedies, for each of the tables whose slots share bits.
    for (f, b) in [(2, 1), (2, 6), (4, 3), (12, 1), (12, 5)] {
        let single = |f, b| gos(builder().table(TableKind::Single).fingerprint_bits(f).bucket_size(b));
        let parts = [
            "share bits",
            "build the filter with a bucket size that is a multiple of 4, or with another fingerprint length",
            &format!("{f} given with buckets of {b}"),
        ];
        refused(single(f, b), &parts);
        [4, 8, 12, 16].into_iter().for_each(|b| works(single(f, b)));
        works(single(f + 1, b));
    }
    // Too large to be built here.
    says(&GoError::Buckets(1 << 32), &["4294967296 given", "at most 2147483648; build the filter with a smaller capacity"]);
    says(&GoError::Items(1 << 32), &["4294967296 in the filter", "at most 4294967295; use several filters"]);
}

#[test]
fn what_follows_a_file_is_left_off() {
    let file = go::encode(&gos(builder()).build().expect("right")).expect("Go has such filters");
    let longer = [&file[..], b"more"].concat();
    let error = go::decode(&longer).expect_err("something follows");
    let message = says(&error, &["4 more bytes follow", "give exactly one file, without what follows"]);
    assert!(!message.contains("over_prefix"), "that reads snapshots: {message}");
    go::decode(&longer[..number_before(&message, ": the filter ends here")]).expect("exactly one file");
}

/// A victim without room: remove an item, or go on with what it is.
#[test]
fn a_victim_without_room_gets_it_by_a_removal() {
    let full = common::GoFile { buckets: vec![vec![1, 2, 3, 4]], f: 8, victim: (0, 5, 1) };
    let go = go::decode(&full.single()).expect("a file");
    let mut go = go.into_filter().expect_err("there is no room");
    assert!(go.contains(&Prehashed(unmixed(4))), "it goes on");
    assert!(go.remove(&Prehashed(unmixed(0))));
    assert_eq!(go.into_filter().expect("there is room now").len(), 4);
}
