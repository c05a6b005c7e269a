//! Whatever other people's formats bring: an error, or a filter that a filter was written as.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use crate::formats::{LIMIT, from_bincode, from_json, from_postcard, small, to_bincode, to_json, to_postcard};
use bincode::config;
use koel::{CuckooFilter, Hasher, Xxh3};
use serde::{Deserialize, de::value};
use serde_json::{Value, json};
use std::iter;

const HEADER: usize = 64;

#[track_caller]
fn refused(value: &Value, parts: &[&str]) {
    let error = from_json::<CuckooFilter>(value.clone()).expect_err("this map is no filter");
    for part in parts {
        assert!(error.contains(part), "{part:?} expected in: {error}");
    }
    // As text, the place is said, too.
    let text = value.to_string();
    let error = serde_json::from_str::<CuckooFilter>(&text).expect_err("nor is its text").to_string();
    assert!(parts.iter().all(|part| error.contains(part)) && error.contains("line 1 column"), "{error}");
}

#[test]
fn every_truncation_is_refused() {
    for filter in small() {
        let (bincode, postcard, json) = (to_bincode(&filter), to_postcard(&filter), to_json(&filter).to_string());
        for len in 0..bincode.len() {
            assert!(from_bincode::<CuckooFilter>(&bincode[..len]).is_err());
        }
        for len in 0..postcard.len() {
            assert!(from_postcard::<CuckooFilter>(&postcard[..len]).is_err());
        }
        for len in 0..json.len() {
            assert!(serde_json::from_str::<CuckooFilter>(&json[..len]).is_err());
        }
        let bytes = filter.to_bytes();
        for len in 0..bytes.len() {
            // With the length that they have, so that nothing but the snapshot gives them away.
            let part = serde_json::to_vec(&bytes[..len]).expect("it can be written");
            let error = serde_json::from_slice::<CuckooFilter>(&part).expect_err("too short").to_string();
            assert!(error.contains("end too early") && error.contains(&format!("at byte {len}")), "{error}");
            let error = <CuckooFilter>::deserialize(value::BytesDeserializer::<value::Error>::new(&bytes[..len]));
            let error = error.expect_err("too short").to_string();
            assert!(error.contains("end too early") && error.contains(&format!("at byte {len}")), "{error}");
        }
    }
}

#[test]
fn every_flipped_bit_is_refused() {
    for filter in small() {
        let flipped = |bytes: &[u8], bit: usize| {
            let mut bytes = bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        };
        let (bincode, postcard) = (to_bincode(&filter), to_postcard(&filter));
        for bit in 0..8 * bincode.len() {
            let read = bincode::serde::decode_from_slice::<CuckooFilter, _>(
                &flipped(&bincode, bit),
                config::standard().with_limit::<{ LIMIT }>(),
            );
            assert!(read.is_err(), "bit {bit}");
        }
        for bit in 0..8 * postcard.len() {
            assert!(from_postcard::<CuckooFilter>(&flipped(&postcard, bit)).is_err(), "bit {bit}");
        }
        let json = serde_json::to_vec(&filter).expect("it can be written");
        for bit in 0..8 * json.len() {
            let text = flipped(&json, bit);
            assert!(serde_json::from_slice::<CuckooFilter>(&text).is_err(), "{}", String::from_utf8_lossy(&text));
        }
        // White space may change into other white space.
        let pretty = serde_json::to_vec_pretty(&filter).expect("it can be written");
        let mut equal = 0;
        for bit in 0..8 * pretty.len() {
            if let Ok(read) = serde_json::from_slice::<CuckooFilter>(&flipped(&pretty, bit)) {
                assert_eq!(read, filter);
                assert!(pretty[bit / 8].is_ascii_whitespace());
                equal += 1;
            }
        }
        assert!(equal < pretty.len());
        let list = filter.to_bytes();
        for bit in 0..8 * list.len() {
            assert!(from_json::<CuckooFilter>(json!(flipped(&list, bit))).is_err(), "bit {bit}");
        }
    }
}

#[test]
fn an_entry_that_lies_is_refused_by_its_name() {
    let packed = to_json(&small()[0]);
    let put = |key: &str, value: Value| {
        let mut map = packed.clone();
        map[key] = value;
        map
    };
    for (key, value, parts) in [
        ("version", json!(2), &["`version`", "version 2"][..]),
        ("version", json!(65_536), &["65536 given", "version of koel's snapshots", "16 bits"]),
        ("version", json!("1"), &["\"1\"", "version of koel's snapshots"]),
        ("table", json!("single"), &["`table_base64`", "a table of 36 bytes, but 39 follow"]),
        ("table", json!("Packed"), &["\"Packed\" given", "single or packed"]),
        ("table", json!(1), &["integer `1`", "single or packed"]),
        ("fingerprint_bits", json!(14), &["`table_base64`", "a table of 36 bytes, but 39 follow"]),
        ("fingerprint_bits", json!(33), &["`fingerprint_bits`", "4 to 32"]),
        ("fingerprint_bits", json!(269), &["269 given", "8 bits"]),
        ("fingerprint_bits", json!(-13), &["-13 given", "8 bits"]),
        ("fingerprint_bits", json!(13.0), &["13.0", "8 bits"]),
        ("bucket_size", json!(3), &["`bucket_size`", "packed table takes 4"]),
        ("addressing", json!("power-of-two"), &["`buckets`", "powers of two"]),
        ("addressing", json!("any size"), &["\"any size\" given", "any-size or power-of-two"]),
        ("hasher", json!("metrohash64"), &["`hasher`", "metrohash64", "not the hasher asked for"]),
        ("hasher", json!("0x8000"), &["`hasher`", "built with 0x8000"]),
        ("hasher", json!("0x0001"), &["\"0x0001\" given", "xxh3, metrohash64"]),
        ("hasher", json!("0x80000"), &["\"0x80000\" given", "xxh3, metrohash64"]),
        ("seed", json!("0x0000000000000001"), &["`checksum`", "this or another entry was altered"]),
        ("seed", json!("0x000000000000000A"), &["given", "sixteen digits"]),
        ("seed", json!("0x0"), &["\"0x0\" given", "sixteen digits"]),
        ("seed", json!(0), &["integer `0`", "sixteen digits"]),
        ("buckets", json!(7), &["`buckets`", "even number"]),
        ("buckets", json!(8), &["`table_base64`", "a table of 36 bytes, but 48 follow"]),
        ("buckets", json!(u64::MAX), &["`buckets`", "18446744073709551615"]),
        ("buckets", json!(1u64 << 50), &["`table_base64`", "a table of 36 bytes"]),
        ("buckets", json!("6"), &["\"6\"", "number of buckets"]),
        ("items", json!(25), &["`items`", "25 items in 24 slots"]),
        ("items", json!(11), &["`checksum`", "this or another entry was altered"]),
        ("items", json!(u64::MAX), &["`items`", "items in 24 slots"]),
        ("items", json!(null), &["null", "number of items"]),
        ("checksum", json!("0x0123456789abcdef"), &["`checksum`", "0x0123456789abcdef"]),
        ("checksum", json!([]), &["sequence", "sixteen digits"]),
        ("table_base64", json!(""), &["`table_base64`", "a table of 0 bytes"]),
        ("table_base64", json!([1, 2]), &["sequence", "base64"]),
        ("table_base64", json!("A".repeat(44)), &["`table_base64`", "a table of 33 bytes, but 36 follow"]),
        ("table_base64", json!("A".repeat(52)), &["`table_base64`", "a table of 39 bytes, but 36 follow"]),
        ("table_base64", json!("A".repeat(48)), &["`checksum`", "altered"]),
        ("table_base64", json!("A".repeat(47)), &["`table_base64`", "47 digits"]),
        ("table_base64", json!("=".repeat(48)), &["`table_base64`", "not padded base64"]),
        ("table_base64", json!("A".repeat(45) + "==="), &["`table_base64`", "not padded base64"]),
        ("table_base64", json!("A".repeat(46) + "B="), &["`table_base64`", "not padded base64"]),
        ("table_base64", json!("-".repeat(48)), &["`table_base64`", "not padded base64"]),
        ("table_base64", json!("\n".repeat(48)), &["`table_base64`", "not padded base64"]),
        ("items_", json!(1), &["unknown field \"items_\"", "table_base64"]),
        ("x", json!("y".repeat(100)), &["unknown field \"x\""]),
    ] {
        refused(&put(key, value), parts);
    }
}

#[test]
fn missing_and_repeated_entries_are_refused() {
    let map = to_json(&small()[0]);
    let entries = map.as_object().expect("a map");
    assert_eq!(entries.len(), 11);
    for (key, value) in entries {
        let mut without = entries.clone();
        without.remove(key);
        refused(&Value::Object(without), &["missing field", key]);
        let text = map.to_string();
        let twice = format!("{},{key:?}:{value}}}", &text[..text.len() - 1]);
        let error = serde_json::from_str::<CuckooFilter>(&twice).expect_err("once is enough").to_string();
        assert!(error.contains("duplicate field") && error.contains(key), "{error}");
    }
    refused(&json!({}), &["missing field", "version"]);
}

/// The values in the order of their keys, as some formats write a struct, are a list, and no list of bytes.
#[test]
fn other_values_are_no_filter() {
    let map = to_json(&small()[0]);
    let values: Vec<&Value> = map.as_object().expect("a map").values().collect();
    refused(&json!(values), &["a byte of the snapshot"]);
    for (value, part) in [
        (json!(null), "null"),
        (json!(1), "integer `1`"),
        (json!("koel"), "\"koel\""),
        (json!("k".repeat(1000)), "a text of 1000 bytes"),
        (json!([true]), "boolean"),
        (json!([256]), "256 given"),
        (json!([75, 79, "x".repeat(1000)]), "a text of 1000 bytes"),
        (json!([75, 79]), "at byte 2"),
        (json!([1, 2, 3]), "do not begin as a koel snapshot does"),
    ] {
        refused(&value, &[part]);
    }
}

/// The map of a snapshot of the golden kind whose bytes were changed, with the right checksum.
fn forged(change: impl FnOnce(&mut [u8])) -> (Value, Vec<u8>) {
    let filter = &small()[0];
    let (mut map, mut bytes) = (to_json(filter), filter.to_bytes());
    change(&mut bytes);
    let header = Xxh3.hash(0, &bytes[..HEADER - 8]);
    bytes[HEADER - 8..HEADER].copy_from_slice(&header.to_le_bytes());
    let end = bytes.len() - 8;
    let checksum = Xxh3.hash(header, &bytes[HEADER..end]);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    map["items"] = json!(bytes[32]);
    map["table_base64"] = json!(base64_of(&bytes[HEADER..end]));
    map["checksum"] = json!(format!("{checksum:#018x}"));
    (map, bytes)
}

/// As RFC 4648 has it, three bytes at a time.
fn base64_of(bytes: &[u8]) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    assert!(bytes.len().is_multiple_of(3));
    let words = bytes.chunks(3).map(|three| three.iter().fold(0, |word, &byte| word << 8 | usize::from(byte)));
    words.flat_map(|word| [18, 12, 6, 0].map(|shift| char::from(digits[word >> shift & 63]))).collect()
}

#[test]
fn what_no_filter_writes_is_refused_even_with_the_right_checksum() {
    let (map, bytes) = forged(|_| ());
    assert_eq!(from_json::<CuckooFilter>(map).as_ref(), Ok(&small()[0]));
    assert_eq!(from_json::<CuckooFilter>(json!(bytes)).as_ref(), Ok(&small()[0]));
    for (at, field, parts) in [
        (32, &[11][..], &["`items`", "holds 12 items, but the header says 11"][..]),
        (32, &[0], &["`items`", "holds 12 items, but the header says 0"]),
        (HEADER, &[0xff; 2], &["`table_base64`", "bucket 0 has the codeword 4095"]),
    ] {
        let (map, bytes) = forged(|bytes| bytes[at..at + field.len()].copy_from_slice(field));
        refused(&map, parts);
        let error = from_json::<CuckooFilter>(json!(bytes)).expect_err("forged");
        assert!(error.contains(parts[1]), "{error}");
        assert!(from_bincode::<CuckooFilter>(&to_bincode(&serde_bytes(&bytes))).expect_err("forged").contains(parts[1]));
    }
}

/// Bytes, as serde has them.
fn serde_bytes(bytes: &[u8]) -> impl serde::Serialize + '_ {
    struct Bytes<'a>(&'a [u8]);
    impl serde::Serialize for Bytes<'_> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_bytes(self.0)
        }
    }
    Bytes(bytes)
}

#[test]
fn bytes_after_the_end_are_refused() {
    let mut bytes = small()[0].to_bytes();
    let end = bytes.len();
    bytes.extend([0; 3]);
    for error in [
        from_json::<CuckooFilter>(json!(bytes)).expect_err("too long"),
        from_bincode::<CuckooFilter>(&to_bincode(&serde_bytes(&bytes))).expect_err("too long"),
    ] {
        assert!(error.contains(&format!("at byte {end}")) && error.contains("3 more bytes follow it"), "{error}");
    }
}

/// A length that is nowhere near.
#[test]
#[cfg(target_pointer_width = "64")]
fn a_length_that_lies_is_refused() {
    let mut bytes = vec![253];
    bytes.extend((1u64 << 40).to_le_bytes());
    bytes.extend(&small()[0].to_bytes()[..19]);
    assert_eq!(bytes.len(), 28);
    let error = from_bincode::<CuckooFilter>(&bytes).expect_err("no such length");
    assert!(error.contains("Limit"), "{error}");
    // Without a limit, but borrowed: bincode has nothing to allocate.
    assert!(bincode::serde::borrow_decode_from_slice::<CuckooFilter, _>(&bytes, config::standard()).is_err());
    // 2⁴⁰ in groups of seven bits.
    let mut bytes = vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
    bytes.extend(&small()[0].to_bytes()[..19]);
    assert!(from_postcard::<CuckooFilter>(&bytes).is_err());
}

/// A list that says it is longer than any memory.
struct Lying<'a>(iter::Copied<std::slice::Iter<'a, u8>>);

impl Iterator for Lying<'_> {
    type Item = u8;
    fn next(&mut self) -> Option<u8> {
        self.0.next()
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, Some(usize::MAX))
    }
}

#[test]
fn a_size_hint_that_lies_is_not_believed() {
    for filter in small() {
        let bytes = filter.to_bytes();
        let read = |bytes: &[u8]| {
            <CuckooFilter>::deserialize(value::SeqDeserializer::<_, value::Error>::new(Lying(bytes.iter().copied())))
        };
        assert_eq!(read(&bytes), Ok(filter));
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).expect_err("too short").to_string().contains("end too early"));
        }
    }
}
