//! `PowerOfTwo` addressing with `MetroHash64` is Go's: tables that linvon/cuckoo-filter filled, put behind a header of
//! ours, answer every question as they did there, false positives included. (data/go/README.md describes the files.)

#![cfg(feature = "metrohash")]
#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use bitvec::{field::BitField, order::Lsb0, view::BitView};
use koel::{Addressing, AnyHasher, CuckooFilter, Hasher, MetroHash64, TableKind, Xxh3};
use serde_json::Value;
use std::{fs, path::Path};

const GO_SEED: u64 = 1337;
const GO_SINGLE_HEADER: usize = 20;
const GO_PACKED_HEADER: usize = 19;

#[test]
fn tables_filled_by_go_answer_as_in_go() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/go");
    let text = fs::read_to_string(folder.join("fixtures.json")).expect("the fixtures are here");
    let fixtures: Value = serde_json::from_str(&text).expect("it is JSON");
    let mut checked = 0;
    for fixture in fixtures["fixtures"].as_array().expect("a list") {
        let text = |name: &str| fixture[name].as_str().expect("a string");
        let number = |name: &str| fixture[name].as_u64().expect("a number");
        // The item in the victim cache is in no bucket; those files are for the reader of Go's format.
        if fixture["victim_used"].as_bool().expect("a bool") {
            continue;
        }
        let go = fs::read(folder.join(text("file"))).expect("the file is here");
        let filter = with_our_header(fixture, &go);
        let deleted = |n: u64| number("deleted") > 0 && n.is_multiple_of(3);
        for n in (0..number("added")).filter(|&n| !deleted(n)) {
            assert!(filter.contains(&format!("{}{n}", text("key_prefix"))), "{}: key {n}", text("file"));
        }
        let hits: Vec<u64> =
            (0..number("probe_count")).filter(|n| filter.contains(&format!("{}{n}", text("probe_prefix")))).collect();
        let expected: Vec<u64> = fixture["probe_hits"].as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
        assert_eq!(hits, expected, "{}", text("file"));
        checked += 1;
    }
    assert!(checked >= 11, "{checked} files only");
}

/// A snapshot with Go's table.
fn with_our_header(fixture: &Value, go: &[u8]) -> CuckooFilter<AnyHasher> {
    let number = |name: &str| fixture[name].as_u64().expect("a number");
    let (table, skipped) = match fixture["table"].as_str().expect("a string") {
        "single" => (TableKind::Single, GO_SINGLE_HEADER),
        _ => (TableKind::Packed, GO_PACKED_HEADER),
    };
    let filter = CuckooFilter::builder()
        .table(table)
        .fingerprint_bits(number("fingerprint_bits") as u32)
        .bucket_size(number("bucket_size") as u32)
        .buckets(number("num_buckets"))
        .addressing(Addressing::PowerOfTwo)
        .hasher(MetroHash64)
        .seed(GO_SEED)
        .build()
        .expect("right");
    let mut bytes = filter.to_bytes();
    bytes[32..40].copy_from_slice(&number("len").to_le_bytes());
    let header = Xxh3.hash(0, &bytes[..56]);
    bytes[56..64].copy_from_slice(&header.to_le_bytes());
    let end = bytes.len() - 8;
    bytes[64..end].copy_from_slice(&go[skipped..][..end - 64]);
    if table == TableKind::Packed {
        sort_equal_nibbles(&mut bytes[64..end], number("fingerprint_bits") as usize);
    }
    let body = Xxh3.hash(header, &bytes[64..end]);
    bytes[end..].copy_from_slice(&body.to_le_bytes());
    CuckooFilter::from_bytes_with(&bytes, AnyHasher::from_id).expect("a snapshot")
}

/// Go leaves fingerprints with the same low nibble in the order in which they came; ours is ascending.
fn sort_equal_nibbles(table: &mut [u8], f: usize) {
    let quadruples: Vec<[u8; 4]> = (0..0x1_0000u32)
        .map(|word| [12, 8, 4, 0].map(|shift| (word >> shift & 15) as u8))
        .filter(|nibbles| nibbles.is_sorted())
        .collect();
    for bucket in table.view_bits_mut::<Lsb0>().chunks_exact_mut(4 * (f - 1)) {
        let (codeword, high) = bucket.split_at_mut(12);
        let nibbles = quadruples[codeword.load_le::<usize>()];
        if f == 4 {
            continue;
        }
        let mut slots: Vec<(u8, u32)> = nibbles.into_iter().zip(high.chunks_exact(f - 4).map(BitField::load_le)).collect();
        slots.sort_unstable();
        for ((_, value), field) in slots.into_iter().zip(high.chunks_exact_mut(f - 4)) {
            field.store_le(value);
        }
    }
}
