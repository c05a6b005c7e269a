//! Hostile serde input gives an error, or a filter that koel could have written.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use crate::common::{Kind, same_bits};
use crate::formats::{LIMIT, base64_of, filled, from_bincode, from_json, from_postcard, small, to_bincode, to_json, to_postcard};
use bincode::config;
use koel::{Addressing, CuckooFilter, TableKind};
use serde::{Deserialize, de::value};
use serde_json::{Value, json};
use std::iter;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const HEADER: usize = 64;

#[track_caller]
fn assert_refused(value: &Value, parts: &[&str]) {
    let error = from_json::<CuckooFilter>(value.clone()).expect_err("invalid filter");
    for part in parts {
        assert!(error.contains(part), "{part:?} expected in: {error}");
    }
    // For text, the error has the position, too.
    let text = value.to_string();
    let error = serde_json::from_str::<CuckooFilter>(&text).expect_err("invalid filter").to_string();
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
            // These have the correct length of the list or text, so only the snapshot itself is too short.
            let part = serde_json::to_vec(&bytes[..len]).expect("it can be written");
            let error = serde_json::from_slice::<CuckooFilter>(&part).expect_err("too short").to_string();
            assert!(error.contains("end too early") && error.contains(&format!("at byte {len}")), "{error}");
            let error = from_json::<CuckooFilter>(json!(base64_of(&bytes[..len]))).expect_err("too short");
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
        let list = filter.to_bytes();
        for bit in 0..8 * list.len() {
            assert!(from_json::<CuckooFilter>(json!(flipped(&list, bit))).is_err(), "bit {bit}");
        }
    }
}

#[test]
fn a_text_that_is_not_padded_base64_is_refused() {
    // A table of 36 bytes and 72 other bytes need no padding.
    let filter = &small()[0];
    let text = base64_of(&filter.to_bytes());
    assert_eq!(to_json(filter), json!(text));
    let not_base64 = "expected padded base64, but it is invalid from digit ";
    for (other, parts) in [
        (String::new(), &["end too early: there are 0"][..]),
        ("koel".into(), &["do not begin as a koel snapshot does"]),
        ("alice".into(), &["\"alice\" given", not_base64, "digit 5 on"]),
        ("!".repeat(1000), &["a text of 1000 bytes given", not_base64]),
        (text[..text.len() - 1].into(), &["a text of 143 bytes given", not_base64]),
        (text[..text.len() - 4].into(), &["end too early: there are 105, and there should be at least 108"]),
        (text.clone() + "=", &[not_base64]),
        (text.clone() + "====", &[not_base64]),
        (text.clone() + "AA==", &["at byte 108", "1 more bytes follow it"]),
        (text.clone() + "AB==", &[not_base64]),
        (text.clone() + "\n", &[not_base64, "digit 144 on"]),
        (" ".to_owned() + &text, &[not_base64, "digit 0 on"]),
        (format!("{}_{}", &text[..60], &text[61..]), &[not_base64]),
        (format!("{}-{}", &text[..60], &text[61..]), &[not_base64]),
        ("=".repeat(144), &[not_base64]),
    ] {
        assert_refused(&json!(other), parts);
    }
}

/// Digits are decoded in chunks of 4096. Padding is refused at the end of all chunks but the last.
#[test]
fn padding_within_a_text_is_refused() {
    let filter = filled(Kind { table: TableKind::Packed, f: 13, b: 4, addressing: Addressing::AnySize }, 2000);
    let bytes = filter.to_bytes();
    let text = base64_of(&bytes);
    assert!(from_json::<CuckooFilter>(json!(text)).is_ok_and(|read| same_bits(&read, &filter)));
    let padded = |len: usize| json!(base64_of(&bytes[..len]) + &base64_of(&bytes[len..]));
    for len in [3071, 3070, 6143] {
        let end = if len < 6143 { 4096 } else { 8192 };
        assert_refused(&padded(len), &[&format!("expected padded base64, but it is invalid from digit {end} on")]);
    }
    for len in [1, 61, 3073, 3074] {
        assert_refused(&padded(len), &["expected padded base64"]);
    }
    assert_eq!(padded(3072), json!(text));
}

#[test]
fn other_values_are_refused() {
    for (value, part) in [
        (json!(null), "null"),
        (json!(1), "integer `1`"),
        (json!({}), "map"),
        (json!([true]), "boolean"),
        (json!([256]), "256 given"),
        (json!([-1]), "-1 given"),
        (json!([75, 79, "x".repeat(1000)]), "a text of 1000 bytes"),
        (json!([75, 79]), "at byte 2"),
        (json!([1, 2, 3]), "do not begin as a koel snapshot does"),
    ] {
        assert_refused(&value, &[part]);
    }
}

/// Returns a small snapshot after `change`, with valid checksums.
fn forged(change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut bytes = small()[0].to_bytes();
    change(&mut bytes);
    let header = xxh3_64_with_seed(&bytes[..HEADER - 8], 0);
    bytes[HEADER - 8..HEADER].copy_from_slice(&header.to_le_bytes());
    let end = bytes.len() - 8;
    let checksum = xxh3_64_with_seed(&bytes[HEADER..end], header);
    bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

#[test]
fn forged_snapshots_are_refused() {
    let bytes = forged(|_| ());
    for value in [json!(base64_of(&bytes)), json!(bytes)] {
        assert!(from_json::<CuckooFilter>(value).is_ok_and(|read| same_bits(&read, &small()[0])));
    }
    for (at, field, part) in [
        (10, &[0][..], "the bytes end too early"),
        (10, &[7], "table kind 7"),
        (11, &[14], "the bytes end too early"),
        (11, &[33], "4 to 32"),
        (12, &[3], "packed table takes 4"),
        (13, &[1], "powers of two"),
        (13, &[2], "addressing 2"),
        (14, &[2], "built with metrohash64, which is not the given hasher"),
        (14, &[0, 0x80], "built with 0x8000"),
        (24, &[7], "even number"),
        (24, &[8], "the bytes end too early"),
        (24, &[0xff; 8], "18446744073709551615"),
        (24, &(1_u64 << 50).to_le_bytes(), "the bytes end too early"),
        (32, &[25], "25 items in 24 slots"),
        (32, &[0xff; 8], "items in 24 slots"),
        (32, &[11], "holds 12 items, but the header says 11"),
        (32, &[0], "holds 12 items, but the header says 0"),
        (40, &[9], "and 9 bytes of extra copies"),
        (40, &[12], "the bytes end too early"),
        (48, &[25], "a reserved field is 25"),
        (HEADER, &[0xff; 2], "bucket 0 has the codeword 4095"),
    ] {
        let bytes = forged(|bytes| bytes[at..at + field.len()].copy_from_slice(field));
        assert_refused(&json!(base64_of(&bytes)), &[part]);
        assert_refused(&json!(bytes), &[part]);
        assert!(from_bincode::<CuckooFilter>(&to_bincode(&serde_bytes(&bytes))).expect_err("forged").contains(part));
    }
}

/// Returns a value that serializes as bytes.
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
        from_json::<CuckooFilter>(json!(base64_of(&bytes))).expect_err("too long"),
        from_bincode::<CuckooFilter>(&to_bincode(&serde_bytes(&bytes))).expect_err("too long"),
    ] {
        assert!(error.contains(&format!("at byte {end}")) && error.contains("3 more bytes follow it"), "{error}");
    }
}

/// The input claims 2⁴⁰ bytes and has 28 or fewer.
#[test]
#[cfg(target_pointer_width = "64")]
fn a_huge_length_is_refused() {
    let mut bytes = vec![253];
    bytes.extend((1u64 << 40).to_le_bytes());
    bytes.extend(&small()[0].to_bytes()[..19]);
    assert_eq!(bytes.len(), 28);
    let error = from_bincode::<CuckooFilter>(&bytes).expect_err("the length is wrong");
    assert!(error.contains("Limit"), "{error}");
    // bincode borrows the bytes here, so it allocates nothing even without a limit.
    assert!(bincode::serde::borrow_decode_from_slice::<CuckooFilter, _>(&bytes, config::standard()).is_err());
    // 2⁴⁰ in groups of seven bits.
    let mut bytes = vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
    bytes.extend(&small()[0].to_bytes()[..19]);
    assert!(from_postcard::<CuckooFilter>(&bytes).is_err());
}

/// An iterator whose size hint exceeds all memory.
struct WrongSizeHint<'a>(iter::Copied<std::slice::Iter<'a, u8>>);

impl Iterator for WrongSizeHint<'_> {
    type Item = u8;
    fn next(&mut self) -> Option<u8> {
        self.0.next()
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, Some(usize::MAX))
    }
}

#[test]
fn a_wrong_size_hint_is_ignored() {
    for filter in small() {
        let bytes = filter.to_bytes();
        let read = |bytes: &[u8]| {
            <CuckooFilter>::deserialize(value::SeqDeserializer::<_, value::Error>::new(WrongSizeHint(bytes.iter().copied())))
        };
        assert!(read(&bytes).is_ok_and(|read| same_bits(&read, &filter)));
        for len in 0..bytes.len() {
            assert!(read(&bytes[..len]).expect_err("too short").to_string().contains("end too early"));
        }
    }
}
