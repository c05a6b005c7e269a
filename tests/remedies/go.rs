//! Filters that Go's library cannot read.

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

/// Sets everything that Go's filters have in common.
fn for_go(builder: Builder) -> Builder<MetroHash64> {
    builder.addressing(Addressing::PowerOfTwo).hasher(MetroHash64).seed(1337)
}

#[track_caller]
fn refused(builder: Builder<MetroHash64>, parts: &[&str]) {
    let filter = builder.build().expect("valid parameters");
    says(&go::encode(&filter).expect_err("Go cannot read this filter"), parts);
    says(&GoFilter::try_from(filter).expect_err("Go cannot read this filter"), parts);
}

#[track_caller]
fn works(builder: Builder<MetroHash64>) {
    let mut filter = builder.build().expect("valid parameters");
    filter.insert("koel").expect("there is room");
    let file = go::encode(&filter).expect("Go can read this filter");
    assert!(go::decode(&file).expect("a valid file").contains("koel"));
}

#[test]
fn a_filter_that_go_cannot_read_is_built_with_gos_parameters() {
    works(for_go(builder()));
    refused(
        for_go(builder()).addressing(Addressing::AnySize),
        &["any-size given", "power-of-two; build the filter with that addressing"],
    );
    works(for_go(builder()).addressing("power-of-two".parse().expect("a valid name")));
    refused(for_go(builder()).seed(7), &["seed: 7 given", "always uses 1337; build the filter with that seed"]);
    works(for_go(builder()).seed(1337));
    let xxh3 = builder().addressing(Addressing::PowerOfTwo).seed(1337).hasher(Xxh3).build().expect("valid parameters");
    says(
        &go::encode(&xxh3).expect_err("Go does not have this hasher"),
        &["xxh3 given", "metrohash64; build the filter with that hasher"],
    );
    assert_eq!("metrohash64".parse(), Ok(HasherId::METRO_HASH_64));
    // Both remedies work for each of the tables whose slots share bits.
    for (f, b) in [(2, 1), (2, 6), (4, 3), (12, 1), (12, 5)] {
        let single = |f, b| for_go(builder().table(TableKind::Single).fingerprint_bits(f).bucket_size(b));
        let parts = [
            "share bits",
            "build the filter with a bucket size that is a multiple of 4, or with another fingerprint length",
            &format!("{f} given with buckets of {b}"),
        ];
        refused(single(f, b), &parts);
        [4, 8, 12, 16].into_iter().for_each(|b| works(single(f, b)));
        works(single(f + 1, b));
    }
    // Such filters are too large to build here.
    says(&GoError::Buckets(1 << 32), &["4294967296 given", "at most 2147483648; build the filter with a smaller capacity"]);
    says(&GoError::Items(1 << 32), &["4294967296 in the filter", "at most 4294967295; use several filters"]);
}

#[test]
fn bytes_behind_a_file_are_cut_off() {
    let file = go::encode(&for_go(builder()).build().expect("valid parameters")).expect("Go can read this filter");
    let longer = [&file[..], b"more"].concat();
    let error = go::decode(&longer).expect_err("more bytes follow");
    let message = says(&error, &["4 more bytes follow", "give exactly one file, without what follows"]);
    assert!(!message.contains("over_prefix"), "over_prefix reads snapshots only: {message}");
    go::decode(&longer[..number_before(&message, ": the filter ends here")]).expect("a valid file");
}

/// A filter whose victim has no room can be used as it is; removing an item makes room.
#[test]
fn a_removal_makes_room_for_the_victim() {
    let full = common::GoFile { buckets: vec![vec![1, 2, 3, 4]], f: 8, victim: (0, 5, 1) };
    let go = go::decode(&full.single()).expect("a valid file");
    let mut go = go.into_filter().expect_err("there is no room for the victim");
    assert!(go.contains(&Prehashed(unmixed(4))), "the filter has lost an item");
    assert!(go.remove(&Prehashed(unmixed(0))));
    assert_eq!(go.into_filter().expect("there is room for the victim").len(), 4);
}
