//! Files of Go's linvon/cuckoo-filter: lookups give the results that they gave in Go, false positives included, and an unchanged
//! file is written byte for byte as it was read. data/go/README.md describes the files that Go wrote.

#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "small numbers")]

use crate::common::{Folder, GoFile, SplitMix64, kinds, same_bits, split_mix::unmixed};
use koel::{
    Addressing, CuckooFilter, FilterView, InsertErrorKind, Kernel, Prehashed, TableKind,
    go::{self, GoError, GoFilter, MetroHash64},
    hash::AnyHasher,
};
use proptest::{prelude::*, test_runner::RngSeed};
use serde_json::Value;
use std::{fs, path::Path};

/// A file that Go wrote, and Go's description of it.
struct Fixture {
    description: Value,
    bytes: Vec<u8>,
}

impl Fixture {
    fn number(&self, name: &str) -> u64 {
        self.description[name].as_u64().expect("a number")
    }

    fn text(&self, name: &str) -> &str {
        self.description[name].as_str().expect("a string")
    }

    fn decode(&self) -> GoFilter {
        go::decode(&self.bytes).unwrap_or_else(|error| panic!("{}: {error}", self.text("file")))
    }

    /// Returns the keys that were added and not deleted.
    fn keys(&self) -> impl Iterator<Item = String> {
        let has_deletions = self.number("deleted") > 0;
        (0..self.number("added"))
            .filter(move |n| !(has_deletions && n.is_multiple_of(3)))
            .map(|n| format!("{}{n}", self.text("key_prefix")))
    }

    fn probes(&self) -> Vec<String> {
        (0..self.number("probe_count")).map(|n| format!("{}{n}", self.text("probe_prefix"))).collect()
    }

    fn expected(&self) -> Vec<u64> {
        self.description["probe_hits"].as_array().expect("a list").iter().filter_map(Value::as_u64).collect()
    }
}

fn fixtures() -> Vec<Fixture> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/go");
    let text = fs::read_to_string(folder.join("fixtures.json")).expect("the fixtures are here");
    let list: Value = serde_json::from_str(&text).expect("it is JSON");
    let read = |description: &Value| {
        let bytes = fs::read(folder.join(description["file"].as_str().expect("a string"))).expect("the file is here");
        Fixture { description: description.clone(), bytes }
    };
    list["fixtures"].as_array().expect("a list").iter().map(read).collect()
}

fn hits(contains: impl Fn(&String) -> bool, probes: &[String]) -> Vec<u64> {
    (0..).zip(probes).filter(|(_, probe)| contains(probe)).map(|(n, _)| n).collect()
}

#[track_caller]
fn assert_equal(go: &GoFilter, other: &GoFilter) {
    assert!(same_bits(go.filter(), other.filter()));
    assert_eq!((go.len(), go.encode().ok()), (other.len(), other.encode().ok()));
}

#[test]
fn go_files_give_gos_results_and_round_trip() {
    let mut victims = 0;
    for fixture in fixtures() {
        let (go, file) = (fixture.decode(), fixture.text("file"));
        let params = go.filter().params();
        assert_eq!(params.table().to_string(), fixture.text("table"));
        assert_eq!(u64::from(params.fingerprint_bits()), fixture.number("fingerprint_bits"), "{file}");
        assert_eq!(u64::from(params.bucket_size()), fixture.number("bucket_size"), "{file}");
        assert_eq!(params.buckets(), fixture.number("num_buckets"), "{file}");
        assert_eq!(go.len() as u64, fixture.number("len"), "{file}");
        let load = go.len() as f64 / go.filter().slots() as f64;
        assert_eq!(fixture.description["load_factor"].as_f64(), Some(load), "{file}");
        let has_victim = go.len() != go.filter().len();
        assert_eq!(fixture.description["victim_used"].as_bool(), Some(has_victim), "{file}");
        victims += u32::from(has_victim);

        for key in fixture.keys() {
            assert!(go.contains(&key) && go.count(&key) > 0, "{file}: {key}");
        }
        let (probes, expected) = (fixture.probes(), fixture.expected());
        assert_eq!(hits(|probe| go.contains(probe), &probes), expected, "{file}");
        assert_eq!(hits(|probe| go.count(probe) > 0, &probes), expected, "{file}");
        let mut found = vec![false; probes.len()];
        go.contains_batch(&probes, &mut found);
        assert_eq!((0..).zip(found).filter_map(|(n, found)| found.then_some(n)).collect::<Vec<u64>>(), expected, "{file}");
        assert!(go.encode().expect("it can be encoded") == fixture.bytes, "{file}");

        // koel finds room for the victim that Go left out of the table, and lookups give the same results.
        let len = go.len();
        let filter = go.into_filter().unwrap_or_else(|_| panic!("{file}: the victim has no room"));
        assert_eq!(filter.len(), len);
        assert_eq!(hits(|probe| filter.contains(probe), &probes), expected, "{file}");
    }
    assert_eq!(victims, 3);
}

#[test]
fn a_decoded_filter_can_be_changed_and_written() {
    for fixture in fixtures() {
        let (mut go, file) = (fixture.decode(), fixture.text("file"));
        let (removed, mut kept): (Vec<_>, Vec<_>) = fixture.keys().enumerate().partition(|(n, _)| n.is_multiple_of(4));
        for (_, key) in removed {
            assert!(go.remove(&key), "{file}: {key}");
        }
        assert_eq!((go.len(), go.filter().len()), (kept.len(), kept.len()), "{file}: removals make room for the victim");
        for n in 0.. {
            let key = format!("later-{n}");
            if go.insert(&key).is_err() {
                break;
            }
            kept.push((n, key));
        }
        assert!(go.len() as f64 > 0.8 * go.filter().slots() as f64, "{file}");
        let bytes = go.encode().expect("it can be encoded");
        assert_eq!(bytes.len(), fixture.bytes.len());
        let read = go::decode(&bytes).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_equal(&read, &go);
        for (_, key) in &kept {
            assert!(read.contains(key), "{file}: {key}");
        }
        for (_, key) in &kept {
            assert!(go.remove(key), "{file}: {key}");
        }
        assert!(go.is_empty());
        let empty = go::decode(&go.encode().expect("it can be encoded")).expect("valid file");
        assert!(empty.is_empty() && !empty.contains("later-0"));
    }
}

/// Returns a hash with this bucket and fingerprint.
fn hash(bucket: u64, fingerprint: u64) -> u64 {
    unmixed(bucket << 32 | (fingerprint - 1))
}

/// The only bucket is full, so the victim has no room.
#[test]
fn a_victim_stays_until_there_is_room() {
    let full = GoFile { buckets: vec![vec![1, 2, 3, 4]], f: 8, victim: (0, 5, 1) };
    for bytes in [full.single(), full.packed()] {
        let mut go = go::decode(&bytes).expect("valid file");
        assert_eq!((go.len(), go.filter().len()), (5, 4));
        for fingerprint in 1..=5 {
            assert!(go.contains(&Prehashed(hash(0, fingerprint))));
            assert_eq!(go.count(&Prehashed(hash(0, fingerprint))), 1);
        }
        assert!(!go.contains(&Prehashed(hash(0, 6))));
        let error = go.insert(&Prehashed(hash(0, 6))).expect_err("there is no room");
        assert_eq!(go.encode().expect("it can be encoded"), bytes);
        assert!(error.to_string().contains("5 distinct items"), "{error}");
        go = go.into_filter().expect_err("there is no room");
        assert_eq!((go.len(), go.has_victim()), (5, true));
        assert_eq!(go.encode().expect("it can be encoded"), bytes);

        // Removing the victim clears only its flag in the header, as in Go.
        let mut without = go.clone();
        assert!(without.remove(&Prehashed(hash(0, 5))) && !without.remove(&Prehashed(hash(0, 5))));
        assert!(!without.contains(&Prehashed(hash(0, 5))));
        let mut expected = bytes.clone();
        expected[12] = 0;
        assert_eq!(without.encode().expect("it can be encoded"), expected);
        assert_equal(&go::decode(&expected).expect("valid file"), &without);
        assert_eq!(without.into_filter().expect("no victim").len(), 4);

        // Removing another item makes room for the victim.
        assert!(go.remove(&Prehashed(hash(0, 2))));
        assert_eq!((go.len(), go.filter().len()), (4, 4));
        assert!(go.contains(&Prehashed(hash(0, 5))) && !go.contains(&Prehashed(hash(0, 2))));
        assert_equal(&go::decode(&go.encode().expect("it can be encoded")).expect("valid file"), &go);
    }
}

#[test]
fn a_victim_and_its_copy_in_the_table_count_as_two() {
    let mut go = go::decode(&GoFile { buckets: vec![vec![7, 9]], f: 5, victim: (0, 9, 1) }.single()).expect("valid file");
    assert_eq!(go.count(&Prehashed(hash(0, 9))), 2);
    assert!(go.remove(&Prehashed(hash(0, 9))) && go.remove(&Prehashed(hash(0, 9))));
    assert!(!go.remove(&Prehashed(hash(0, 9))) && go.contains(&Prehashed(hash(0, 7))));
    assert_eq!(go.len(), 1);
}

/// If there is room for only one of the two, the new item takes it and the victim stays where it is.
#[test]
fn an_insertion_beside_a_victim_keeps_both() {
    for (slots, in_table) in [(vec![1, 2, 3, 0], 4), (vec![1, 2, 0, 0], 4), (vec![1, 0, 0, 0], 3)] {
        let file = GoFile { buckets: vec![slots.clone()], f: 9, victim: (0, 5, 1) };
        for bytes in [file.single(), file.packed()] {
            let mut go = go::decode(&bytes).expect("valid file");
            let before = go.len();
            go.insert(&Prehashed(hash(0, 6))).expect("there is room");
            assert_eq!((go.len(), go.filter().len()), (before + 1, in_table));
            for &fingerprint in slots.iter().filter(|&&value| value != 0).chain(&[5, 6]) {
                assert!(go.contains(&Prehashed(hash(0, fingerprint.into()))));
            }
            assert_equal(&go::decode(&go.encode().expect("it can be encoded")).expect("valid file"), &go);
        }
    }
}

/// A lookup finds the victim from either of its two buckets, and from no other.
#[test]
fn the_victim_is_found_from_both_buckets() {
    let file = GoFile { buckets: vec![vec![0; 4]; 16], f: 7, victim: (3, 77, 1) };
    let other = (3 ^ (77 * 0x5bd1_e995_u64)) & 15;
    for bytes in [file.single(), file.packed()] {
        let go = go::decode(&bytes).expect("valid file");
        for bucket in 0..16 {
            assert_eq!(go.contains(&Prehashed(hash(bucket, 77))), bucket == 3 || bucket == other);
            assert!(!go.contains(&Prehashed(hash(bucket, 78))));
        }
        assert!(!go.is_empty() && go.filter().is_empty());
        let items: Vec<String> = (0..10_000).map(|n: u64| n.to_string()).collect();
        let mut found = vec![false; items.len()];
        go.contains_batch(&items, &mut found);
        assert!(items.iter().zip(&found).all(|(item, &found)| found == go.contains(item)));
        let item =
            items.into_iter().find(|item| go.contains(item)).expect("about one item in a thousand collides with the victim");
        let mut unique = go.clone();
        assert_eq!((unique.insert_unique(&item), unique.len()), (Ok(false), 1));
        assert_eq!((unique.insert_unique("another"), unique.len()), (Ok(true), 2));
        let stale = GoFile { victim: (3, 77, 0), ..file.clone() };
        let stale = go::decode(&stale.single()).expect("valid file");
        assert!(stale.is_empty() && !stale.contains(&Prehashed(hash(3, 77))));
    }
}

#[test]
fn native_filters_are_written_as_go_files() {
    let singles = |f| (1..=16).map(move |b| (TableKind::Single, f, b));
    let powers = kinds().filter(|kind| kind.addressing == Addressing::PowerOfTwo).map(|kind| (kind.table, kind.f, kind.b));
    for (table, f, b) in powers.chain(singles(2)).chain(singles(3)).chain(singles(4)).chain(singles(12)) {
        for buckets in [1, 2, 32] {
            let builder = CuckooFilter::builder().table(table).fingerprint_bits(f).bucket_size(b).buckets(buckets);
            let builder = builder.addressing(Addressing::PowerOfTwo).hasher(MetroHash64).seed(1337);
            let mut filter = builder.build().expect("valid parameters");
            for hash in SplitMix64(f.into()).take(filter.slots()) {
                let before = filter.clone();
                // Go has no list of copies, so a filter with copies beside its table cannot be encoded.
                if filter.insert(&Prehashed(hash)).is_ok() && filter.table_len() < filter.len() {
                    let error = go::encode(&filter).expect_err("Go cannot represent this copy");
                    assert!(matches!(error, GoError::Copies(1..) | GoError::Aliasing { .. }), "{error}");
                    filter = before;
                }
            }
            let slots_share_bits = table == TableKind::Single
                && buckets > 1
                && (f == 2 && !b.is_multiple_of(4) || matches!(f, 4 | 12) && !b.is_multiple_of(2));
            if slots_share_bits {
                for error in [go::encode(&filter).map(drop), GoFilter::try_from(filter).map(drop)] {
                    let error = error.expect_err("Go's slots share bits");
                    let GoError::Aliasing { fingerprint_bits, bucket_size, .. } = error else { panic!("{error}") };
                    assert_eq!((fingerprint_bits, bucket_size), (f, b));
                }
                continue;
            }
            let bytes = go::encode(&filter).expect("compatible with Go");
            let own = |id| (id == koel::hash::HasherId::METRO_HASH_64).then_some(MetroHash64);
            let view = FilterView::over_with(filter.to_bytes(), own).expect("valid snapshot");
            assert_eq!(go::encode(&view.to_filter().expect("valid snapshot")).expect("compatible with Go"), bytes);
            let go = go::decode(&bytes).unwrap_or_else(|error| panic!("{table} f {f} b {b} m {buckets}: {error}"));
            assert!(same_bits(go.filter(), &filter) && go.len() == filter.len());
            assert_eq!(go.encode().expect("compatible with Go"), bytes);
            let converted = GoFilter::try_from(filter.clone()).expect("compatible with Go");
            assert!(same_bits(&converted, &go));
            assert!(same_bits(&converted.into_filter().expect("no victim"), &filter));
        }
    }
}

/// Generates packed files in any slot order that Go can write: it does not sort equal nibbles, nor empty slots among them.
fn packed_file() -> impl Strategy<Value = GoFile> {
    // There are few nibbles and high parts, so many nibbles and some fingerprints are equal.
    let slot = prop_oneof![Just(0), (0u32..3, any::<u32>()).prop_map(|(low, high)| low | high << 4), 1u32..0x40];
    let buckets = (0u32..6).prop_flat_map(move |log2| prop::collection::vec(prop::collection::vec(slot.clone(), 4), 1 << log2));
    (buckets, 4usize..=32, any::<bool>(), any::<u32>(), any::<u32>()).prop_map(
        |(mut buckets, f, is_used, bucket, fingerprint)| {
            let mask = u32::MAX >> (32 - f);
            buckets.iter_mut().flatten().for_each(|value| *value &= mask);
            let victim = (bucket % buckets.len() as u32, (fingerprint & mask).max(1), u8::from(is_used));
            GoFile { buckets, f, victim }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packed_files_round_trip_byte_for_byte(file in packed_file()) {
        let bytes = file.packed();
        let go = go::decode(&bytes).expect("valid file");
        for (bucket, &value) in (0..).zip(&file.buckets).flat_map(|(bucket, slots)| slots.iter().map(move |value| (bucket, value))) {
            prop_assert!(value == 0 || go.contains(&Prehashed(hash(bucket, value.into()))));
        }
        prop_assert_eq!(go.encode().expect("it can be encoded"), bytes);
    }

    /// The victim takes no slot, so the load of a full table with a victim is 1.
    #[test]
    fn the_load_is_the_share_of_taken_slots(file in packed_file()) {
        let go = go::decode(&file.packed()).expect("valid file");
        let taken = file.buckets.iter().flatten().filter(|&&value| value != 0).count();
        let taken_by_load = go.load_factor() * go.slots() as f64;
        prop_assert!((taken_by_load - taken as f64).abs() < 1e-9, "{taken_by_load} of {taken} slots");
        prop_assert_eq!(go.len(), taken + usize::from(go.has_victim()));
    }

    /// After any changes, the encoded file decodes to the same filter.
    #[test]
    fn a_changed_filter_round_trips(
        file in packed_file(),
        changes in prop::collection::vec((any::<bool>(), 0usize..128), 1..40),
    ) {
        let mut go = go::decode(&file.packed()).expect("valid file");
        let all: Vec<u64> = (0..).zip(&file.buckets).flat_map(|(bucket, slots)| {
            slots.iter().filter(|&&value| value != 0).map(move |&value| hash(bucket, value.into()))
        }).collect();
        prop_assume!(!all.is_empty());
        for (is_removal, n) in changes {
            let hash = all[n % all.len()];
            if is_removal { go.remove(&Prehashed(hash)); } else { drop(go.insert(&Prehashed(hash))); }
        }
        let read = go::decode(&go.encode().expect("it can be encoded")).expect("valid file");
        assert_equal(&read, &go);
    }
}

/// If removed items are inserted again, their bucket is written in its original order.
#[test]
fn a_restored_bucket_has_its_original_order() {
    // In ascending order, the first bucket would be 0, 0x10, 0x25, 0x35.
    let file = GoFile { buckets: vec![vec![0x10, 0, 0x35, 0x25], vec![0x41, 0x31, 0x21, 0x11]], f: 7, victim: (0, 0, 0) };
    let bytes = file.packed();
    let mut go = go::decode(&bytes).expect("valid file");
    assert!(go.remove(&Prehashed(hash(1, 0x31))));
    assert_ne!(go.encode().expect("it can be encoded"), bytes);
    assert_equal(&go::decode(&go.encode().expect("it can be encoded")).expect("valid file"), &go);
    assert!(go.remove(&Prehashed(hash(1, 0x21))));
    // Bucket 1 is at first the emptier one. Then both are equally full, and bucket 1 is the first bucket of the item.
    go.insert(&Prehashed(hash(1, 0x21))).expect("there is room");
    go.insert(&Prehashed(hash(1, 0x31))).expect("there is room");
    assert_eq!(go.encode().expect("it can be encoded"), bytes);
}

#[test]
fn filters_with_any_hasher_are_converted() {
    let builder = CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).addressing(Addressing::PowerOfTwo).seed(1337);
    let mut filter = builder.clone().hasher(AnyHasher::MetroHash64).build().expect("valid parameters");
    let mut typed = builder.clone().hasher(MetroHash64).build().expect("valid parameters");
    for n in 0..1000u64 {
        filter.insert(&n).and_then(|()| typed.insert(&n)).expect("there is room");
    }
    let file = go::encode(&filter).expect("compatible with Go");
    let go = GoFilter::try_from(filter).expect("compatible with Go");
    assert!(go.encode().is_ok_and(|bytes| bytes == file) && go::encode(&typed).is_ok_and(|bytes| bytes == file));
    assert!(same_bits(go.filter(), &typed) && (0..1000u64).all(|n| go.contains(&n)));
    let native = builder.hasher(AnyHasher::Xxh3).build().expect("valid parameters");
    let error = GoFilter::try_from(native).expect_err("Go has no such hasher");
    assert!(matches!(error, GoError::Hasher(koel::hash::HasherId::XXH3)), "{error}");
}

#[test]
fn all_kernels_give_gos_results() {
    for fixture in fixtures() {
        let (mut go, probes) = (fixture.decode(), fixture.probes());
        for kernel in Kernel::available() {
            go.set_kernel(kernel).expect("it is available");
            assert_eq!(go.filter().kernel(), kernel);
            assert_eq!(hits(|probe| go.contains(probe), &probes), fixture.expected(), "{kernel}");
        }
    }
}

#[test]
fn save_writes_the_encoded_file() {
    let folder = Folder::new("go");
    let path = folder.path("filter.go");
    for fixture in fixtures() {
        let go = fixture.decode();
        assert_eq!(go.has_victim(), go.len() > go.filter().len());
        go.save(&path).expect("it can be written");
        assert!(fs::read(&path).expect("it can be read") == fixture.bytes);
    }
    assert_eq!(folder.names(), ["filter.go"], "no temporary file is left");
    let error = fixtures()[0].decode().save(folder.path("missing/filter.go")).expect_err("there is no such folder");
    assert!(error.to_string().contains("filter.go: cannot be written: "), "{error}");
}

/// Go has no list of copies, so its filters refuse a ninth copy: both buckets of the item are full of copies. The error says so.
#[test]
fn too_many_copies_are_refused_as_copies() {
    let builder = CuckooFilter::builder().table(TableKind::Single).fingerprint_bits(8).bucket_size(4).buckets(64);
    let builder = builder.addressing(Addressing::PowerOfTwo).hasher(MetroHash64).seed(1337);
    let mut filter = GoFilter::try_from(builder.build().expect("valid parameters")).expect("compatible with Go");
    let refused = (0..9).find_map(|_| filter.insert("koel").err()).expect("its two buckets have eight slots");
    assert_eq!((refused.kind(), filter.count("koel")), (InsertErrorKind::BucketsFull { copies: 8 }, 8));
}

/// A refusal states the length of the filter, with the victim if there is one.
#[test]
fn a_full_filter_states_its_length() {
    let builder = CuckooFilter::builder().table(TableKind::Packed).fingerprint_bits(12).buckets(64);
    let builder = builder.addressing(Addressing::PowerOfTwo).hasher(MetroHash64).seed(1337);
    let without = GoFilter::try_from(builder.build().expect("valid parameters")).expect("compatible with Go");
    let with = fixtures().iter().map(Fixture::decode).find(GoFilter::has_victim).expect("a file with a victim");
    for mut filter in [without, with] {
        let refused = (0..).find_map(|item: u64| filter.insert(&item).err()).expect("it becomes full");
        assert_eq!(refused.kind(), InsertErrorKind::Full { distinct: filter.len(), len: filter.len() });
        assert!(filter.len() > filter.filter().slots() / 2, "{refused}");
    }
}
