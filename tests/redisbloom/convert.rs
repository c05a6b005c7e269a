//! Conversion of dumps to `CuckooFilter` and back.

use super::{Fixture, fixtures};
use crate::common::same_bits;
use koel::{
    Addressing, Builder, Contains, CuckooFilter, FilterView, TableKind, Xxh3,
    hash::{AnyHasher, Hasher},
    redisbloom::{RedisBloomError, RedisBloomFilter, RedisBloomHash},
};
use proptest::{prelude::*, test_runner::RngSeed};

/// Offset of the count of removed items in a dump: after the frame, the item count and the bucket count.
const DELETED_AT: usize = 16 + 16;

/// Returns a dump of one sub-filter with these slots, whose header states `items`.
pub(super) fn dump(b: u16, slots: &[u8], items: u64) -> Vec<u8> {
    let buckets = slots.len() as u64 / u64::from(b);
    let words = [items, buckets, 0, 1].map(u64::to_le_bytes).concat();
    let header = [words, [b, 20, 1].map(u16::to_le_bytes).concat()].concat();
    let chunk = |iterator: u64, bytes: &[u8]| [&iterator.to_le_bytes()[..], &(bytes.len() as u64).to_le_bytes(), bytes].concat();
    [chunk(1, &header), chunk(1 + slots.len() as u64, slots)].concat()
}

/// Returns whether both buckets of an item are the same; RedisBloom then counts each copy twice.
fn has_one_bucket(filter: &RedisBloomFilter, item: &str) -> bool {
    let fingerprint = murmur2::murmur64a(item.as_bytes(), 0) % 255 + 1;
    (fingerprint * 0x5bd1_e995).is_multiple_of(filter.buckets())
}

/// Asserts that both find and count the item alike, except that RedisBloom counts twice in such a bucket.
fn assert_same(dumped: &RedisBloomFilter, own: &dyn Contains<str>, item: &str) {
    assert_eq!(own.contains(item), dumped.contains(item), "{item} in {dumped}");
    let times = if has_one_bucket(dumped, item) { 2 } else { 1 };
    assert_eq!(times * own.count(item), dumped.count(item), "{item} in {dumped}");
}

fn own(filter: &RedisBloomFilter) -> CuckooFilter<RedisBloomHash> {
    filter.to_filter().unwrap_or_else(|error| panic!("{filter}: {error}"))
}

fn back(filter: &CuckooFilter<RedisBloomHash>) -> RedisBloomFilter {
    RedisBloomFilter::from_filter(filter).unwrap_or_else(|error| panic!("{filter}: {error}"))
}

fn items(fixture: &Fixture) -> Vec<String> {
    let probes = (0..fixture.number("probe_count")).map(|n| fixture.key("probe_prefix", n));
    (0..fixture.number("added")).map(|n| fixture.key("key_prefix", n)).chain(probes).collect()
}

#[test]
fn a_dump_of_one_sub_filter_converts_with_the_same_results() {
    let mut converted = 0;
    for fixture in fixtures() {
        let dumped = fixture.filter();
        if dumped.sub_filters() > 1 {
            let error = dumped.to_filter().expect_err("there are several sub-filters");
            assert!(matches!(error, RedisBloomError::SubFilters(filters) if filters == dumped.sub_filters()), "{error}");
            continue;
        }
        let filter = own(&dumped);
        let params = filter.params();
        assert_eq!((params.table(), params.fingerprint_bits(), params.seed()), (TableKind::Single, 8, 0));
        assert_eq!((params.buckets(), params.bucket_size()), (dumped.buckets(), dumped.bucket_size()));
        assert_eq!((params.addressing(), filter.len()), (Addressing::PowerOfTwo, dumped.len()));
        assert!((filter.false_positive_rate() - dumped.false_positive_rate()).abs() < 1e-12);
        let snapshot = filter.to_bytes();
        assert!(snapshot[64..snapshot.len() - 8] == fixture.bytes[54 + 16..], "the table differs from the slots");
        let view = FilterView::over_with(&snapshot[..], |_| Some(RedisBloomHash)).expect("a valid snapshot");
        view.verify().expect("a valid snapshot");
        for item in items(&fixture) {
            assert_same(&dumped, &filter, &item);
            assert_same(&dumped, &view, &item);
        }
        let mut expected = fixture.bytes.clone();
        expected[DELETED_AT..DELETED_AT + 8].fill(0);
        assert_eq!(expected == fixture.bytes, dumped.deleted() == 0);
        let any = CuckooFilter::from_bytes_with(&snapshot, AnyHasher::from_id).expect("a valid snapshot");
        for same in [
            back(&filter),
            back(&view.to_filter().expect("a valid snapshot")),
            RedisBloomFilter::from_filter(&any).expect("the hashers are equal"),
        ] {
            assert!(same.to_dump() == expected, "{same}");
        }
        converted += 1;
    }
    assert_eq!(converted, 2);
}

#[test]
fn a_converted_filter_can_be_changed() {
    for fixture in fixtures() {
        let Ok(mut filter) = fixture.filter().to_filter() else { continue };
        let keys: Vec<String> = fixture.keys().collect();
        let more: Vec<String> = (0..200).map(|n| format!("more-{n}")).collect();
        more.iter().for_each(|item| filter.insert(item).expect("there is room"));
        assert!(keys.iter().chain(&more).all(|item| filter.contains(item)));
        let mut dumped = back(&filter);
        assert_eq!((dumped.len(), dumped.taken()), (filter.len(), filter.len() as u64));
        assert_eq!((dumped.deleted(), dumped.max_iterations(), dumped.expansion()), (0, 20, 1));
        for key in &keys {
            assert!(filter.remove(key) && dumped.remove(key), "{key}");
        }
        assert!(more.iter().all(|item| filter.contains(item)));
        more.iter().for_each(|item| assert_same(&dumped, &filter, item));
        assert_eq!(filter.len(), 200);
    }
}

/// `CF.COUNT` returns 2 for one copy in a table of one bucket.
#[test]
fn a_copy_in_the_only_bucket_of_an_item_counts_once() {
    let dumped = RedisBloomFilter::from_dump(&dump(2, &[213, 0], 1)).expect("a valid dump");
    assert_eq!((dumped.count("alice"), own(&dumped).count("alice")), (2, 1));
    let dumped = RedisBloomFilter::from_dump(&dump(2, &[0, 213, 0, 0], 1)).expect("a valid dump");
    assert_eq!((dumped.count("alice"), own(&dumped).count("alice")), (1, 1));
}

#[test]
fn fields_without_a_place_in_snapshots_get_redisblooms_defaults() {
    let plain = dump(4, &[1, 0, 0, 2, 3, 0, 0, 255], 4);
    let mut other = plain.clone();
    // A wrong item count, 7 removed items, 50 iterations of eviction, and an expansion of 0.
    for (at, new) in [(16, 9), (DELETED_AT, 7), (16 + 34, 50), (16 + 36, 0)] {
        other[at] = new;
    }
    let dumped = RedisBloomFilter::from_dump(&other).expect("a valid dump");
    assert_eq!((dumped.len(), dumped.deleted(), dumped.max_iterations(), dumped.expansion()), (9, 7, 50, 0));
    assert_eq!(own(&dumped).len(), 4);
    assert!((dumped.load_factor() - 0.5).abs() < 1e-9, "half of the slots are taken, whatever the header says");
    assert!(back(&own(&dumped)).to_dump() == plain);
    // Some versions write padding behind the header; it is not kept.
    let padded = [&plain[..8], &[40], &plain[9..54], &[0, 0], &plain[54..]].concat();
    assert!(back(&own(&RedisBloomFilter::from_dump(&padded).expect("a valid dump"))).to_dump() == plain);
}

#[track_caller]
fn assert_unsupported<H: Hasher + Clone>(builder: Builder<H>, message: &str) {
    let filter = builder.build().expect("valid parameters");
    let error = RedisBloomFilter::from_filter(&filter).expect_err("RedisBloom does not support this filter");
    assert_eq!(error.to_string(), message);
}

#[test]
fn filters_that_redisbloom_does_not_support_are_refused() {
    let builder = || {
        let builder = CuckooFilter::builder().capacity(100).table(TableKind::Single).fingerprint_bits(8);
        builder.addressing(Addressing::PowerOfTwo).hasher(RedisBloomHash)
    };
    (1..=16).for_each(|b| drop(back(&builder().bucket_size(b).build().expect("valid parameters"))));
    assert_unsupported(
        builder().hasher(Xxh3),
        "hasher: xxh3 given, but RedisBloom's is redisbloom; build the filter with that hasher",
    );
    assert_unsupported(builder().seed(7), "seed: 7 given, but RedisBloom always uses 0; build the filter with that seed");
    let packed = builder().table(TableKind::Packed);
    assert_unsupported(packed, "table: packed given, but RedisBloom's is single; build the filter with that table");
    let longer = builder().fingerprint_bits(9);
    assert_unsupported(longer, "fingerprint bits: 9 given, but RedisBloom's have 8; build the filter with that length");
    let any_size = builder().addressing(Addressing::AnySize);
    let message = "addressing: any-size given, but RedisBloom uses power-of-two; build the filter with that addressing";
    assert_unsupported(any_size, message);
    // Such a filter is too large to build here.
    let message = "slots: 8589934592 given, but RedisBloom can use at most 4294967296; build the filter with a smaller capacity";
    assert_eq!(RedisBloomError::Slots(1 << 33).to_string(), message);
}

/// A dump that `CuckooFilter` does not support can still be queried.
#[test]
fn dumps_that_have_no_filter_of_fixed_size_are_not_converted() {
    let large = RedisBloomFilter::from_dump(&dump(17, &[&[0; 16][..], &[213]].concat(), 1)).expect("a valid dump");
    let message = "bucket size: 17 given, but the single table takes 1 to 16; query the dump as it is, or insert the items into a new \
                   filter";
    assert_eq!(large.to_filter().expect_err("the buckets are too large").to_string(), message);
    assert!(large.contains("alice"));
    let message = "sub-filters: 2 given, but a filter of fixed size has 1 table; query the dump as it is, or insert the items into a \
                   new filter";
    assert_eq!(RedisBloomError::SubFilters(2).to_string(), message);
}

#[cfg(all(feature = "std", not(target_family = "wasm")))]
#[test]
fn dumps_can_be_written_to_files_and_writers() {
    let folder = crate::common::Folder::new("redisbloom-save");
    for fixture in fixtures() {
        let filter = fixture.filter();
        let mut written = Vec::new();
        filter.write_dump(&mut written).expect("writing to a vector succeeds");
        assert!(written == fixture.bytes);
        filter.save_dump(folder.path("f.chunks")).expect("the file can be written");
        assert!(std::fs::read(folder.path("f.chunks")).expect("the file exists") == fixture.bytes);
        let full = filter.write_dump(&mut [0; 100][..]).expect_err("the writer is full");
        assert_eq!(full.kind(), std::io::ErrorKind::WriteZero);
    }
    assert_eq!(folder.names(), ["f.chunks"]);
    assert!(fixtures()[0].filter().save_dump(folder.path("no/f.chunks")).is_err());
}

/// Generates tables with random slots, from empty to full.
fn tables() -> impl Strategy<Value = (u16, Vec<u8>)> {
    (0..7u32, 1..=16u16, 0..=4u8).prop_flat_map(|(log2, b, fullness)| {
        let slot = (any::<u8>(), 0..4u8).prop_map(move |(slot, chance)| if chance < fullness { slot } else { 0 });
        (Just(b), prop::collection::vec(slot, (1 << log2) * usize::from(b)))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_tables_survive_conversion_in_both_directions((b, slots) in tables()) {
        let taken = slots.iter().filter(|slot| **slot != 0).count();
        let bytes = dump(b, &slots, taken as u64);
        let mut dumped = RedisBloomFilter::from_dump(&bytes).expect("a valid dump");
        let mut filter = own(&dumped);
        prop_assert_eq!(filter.len(), taken);
        prop_assert!(back(&filter).to_dump() == bytes);
        let snapshot = filter.to_bytes();
        prop_assert!(same_bits(&CuckooFilter::from_bytes_with(&snapshot, |_| Some(RedisBloomHash)).expect("a valid snapshot"), &filter));
        for n in 0..100 {
            let item = n.to_string().repeat(n % 9 + 1);
            assert_same(&dumped, &filter, &item);
            if n % 3 == 0 {
                prop_assert_eq!(filter.remove(&item), dumped.remove(&item));
            }
        }
        prop_assert_eq!(filter.len() as u64, dumped.taken());
        // RedisBloom finds all items that koel inserts into the table.
        let mut inserted = Vec::new();
        for item in (0..50).map(|n| format!("new-{n}")) {
            let before = filter.clone();
            match filter.insert(&item) {
                Ok(()) if filter.table_len() < filter.len() => {
                    let error = RedisBloomFilter::from_filter(&filter).expect_err("a copy is counted beside the table");
                    prop_assert!(matches!(error, RedisBloomError::Copies(1..)), "{error}");
                    filter = before;
                }
                Ok(()) => inserted.push(item),
                Err(_) => {}
            }
        }
        let dumped = back(&filter);
        prop_assert!(inserted.iter().all(|item| dumped.contains(item)));
        (0..100).for_each(|n| assert_same(&dumped, &filter, &n.to_string()));
    }
}
