//! Filters that RedisBloom does not support, and RedisBloom's filters that `CuckooFilter` does not support.

use super::*;
use koel::{
    Addressing, Builder, CuckooFilter, TableKind, Xxh3,
    hash::Hasher,
    redisbloom::{RedisBloomError, RedisBloomFilter, RedisBloomHash},
};

/// Returns a builder with RedisBloom's parameters.
fn builder() -> Builder<RedisBloomHash> {
    let builder = CuckooFilter::builder().capacity(100).table(TableKind::Single).fingerprint_bits(8);
    builder.addressing(Addressing::PowerOfTwo).hasher(RedisBloomHash)
}

#[track_caller]
fn refused<H: Hasher + Clone>(builder: Builder<H>, parts: &[&str]) {
    says(
        &RedisBloomFilter::from_filter(&builder.build().expect("valid parameters"))
            .expect_err("RedisBloom does not support this filter"),
        parts,
    );
}

#[track_caller]
fn works(builder: Builder<RedisBloomHash>) {
    let mut filter = builder.build().expect("valid parameters");
    filter.insert("koel").expect("there is room");
    assert!(RedisBloomFilter::from_filter(&filter).expect("RedisBloom supports this filter").contains("koel"));
}

#[test]
fn unsupported_filters_are_built_with_redisblooms_parameters() {
    works(builder());
    refused(builder().hasher(Xxh3), &["hasher: xxh3 given", "RedisBloom's is redisbloom; build the filter with that hasher"]);
    refused(builder().seed(7), &["seed: 7 given", "always uses 0; build the filter with that seed"]);
    works(builder().seed(0));
    refused(builder().table(TableKind::Packed), &["table: packed given", "is single; build the filter with that table"]);
    works(builder().table("single".parse().expect("a valid name")));
    refused(builder().fingerprint_bits(9), &["fingerprint bits: 9 given", "have 8; build the filter with that length"]);
    refused(
        builder().addressing(Addressing::AnySize),
        &["any-size given", "uses power-of-two; build the filter with that addressing"],
    );
    works(builder().addressing("power-of-two".parse().expect("a valid name")));
    (1..=16).for_each(|b| works(builder().bucket_size(b)));
    // Such a filter is too large to build here.
    says(
        &RedisBloomError::Slots(1 << 33),
        &["slots: 8589934592 given", "at most 4294967296; build the filter with a smaller capacity"],
    );
}

/// Returns a filter with this many sub-filters of one bucket each, and one item in the last slot.
fn sub_filters(filters: u64, b: u16) -> RedisBloomFilter {
    let words = [1, 1, 0, filters].map(u64::to_le_bytes).concat();
    let header = [words, [b, 20, 1].map(u16::to_le_bytes).concat()].concat();
    let fingerprint = 213; // The fingerprint of "alice".
    let chunks: Vec<(u64, Vec<u8>)> = (1..=filters)
        .map(|filter| {
            (
                1 + filter * u64::from(b),
                [vec![0; usize::from(b) - 1], vec![if filter == filters { fingerprint } else { 0 }]].concat(),
            )
        })
        .collect();
    let chunks = chunks.iter().map(|(iterator, bytes)| (*iterator, &bytes[..]));
    RedisBloomFilter::from_chunks([(1, &header[..])].into_iter().chain(chunks)).expect("valid chunks")
}

#[test]
fn an_unsupported_dump_is_queried_directly() {
    let remedy = "query the dump as it is, or insert the items into a new filter";
    for (filters, b, part) in [
        (2, 4, "sub-filters: 2 given, but a filter of fixed size has 1 table"),
        (1, 17, "bucket size: 17 given, but the single table takes 1 to 16"),
        (1, 255, "255 given"),
    ] {
        let dumped = sub_filters(filters, b);
        says(&dumped.to_filter().expect_err("CuckooFilter does not support this filter"), &[part, remedy]);
        assert!(dumped.contains("alice"));
        builder().build_from_items(&["alice"]).expect("valid parameters");
    }
    assert!(sub_filters(1, 16).to_filter().expect("CuckooFilter supports this filter").contains("alice"));
}
