//! Reading filters through serde takes no more memory than the input warrants, as a counting allocator measures.

// Some inputs claim lengths that do not fit into 32 bits.
#![cfg(target_pointer_width = "64")]

mod common;
#[path = "common/formats.rs"]
mod formats;
#[path = "common/heap.rs"]
mod heap;

use bincode::config;
use common::Kind;
use common::same_bits;
use formats::{LIMIT, base64_of, filled, to_bincode, to_postcard};
use heap::{Counting, peak};
use koel::{Addressing, CuckooFilter, ElasticFilter, Params, TableKind};
use serde::{
    Deserialize,
    de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor, value},
};
use std::mem;
use xxhash_rust::xxh3::xxh3_64_with_seed;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that a reader may take besides the length of its input.
const SLACK: usize = 64 << 10;

/// Asserts that `run` fails, and that it takes at most [`SLACK`] bytes more than `len`, the length of the input.
#[track_caller]
fn assert_refused<E>(case: &str, len: usize, run: impl FnOnce() -> Result<CuckooFilter, E>) {
    let (result, peak) = peak(run);
    assert!(result.is_err(), "{case}");
    assert!(peak <= len + SLACK, "{case}: {peak} bytes for an input of {len}");
}

fn bincode(bytes: &[u8]) -> Result<CuckooFilter, bincode::error::DecodeError> {
    bincode::serde::borrow_decode_from_slice(bytes, config::standard()).map(|(filter, _)| filter)
}

/// A deserializer of a list of bytes, with a size hint of 2⁴⁰.
struct List<'a>(&'a [u8]);

impl<'de> SeqAccess<'de> for List<'_> {
    type Error = value::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, value::Error> {
        let Some((&first, rest)) = self.0.split_first() else { return Ok(None) };
        self.0 = rest;
        seed.deserialize(Byte(first)).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(1 << 40)
    }
}

/// A deserializer of one byte, in a format that is not self-describing: the type must be requested.
struct Byte(u8);

impl<'de> Deserializer<'de> for Byte {
    type Error = value::Error;

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        visitor.visit_u8(self.0)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, value::Error> {
        Err(value::Error::custom("this format is not self-describing"))
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> Deserializer<'de> for List<'_> {
    type Error = value::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        visitor.visit_seq(self)
    }

    fn is_human_readable(&self) -> bool {
        false
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct newtype_struct seq
        tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Returns the bytes with `byte`, which must be another one, at `at`.
fn with_byte(bytes: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    assert_ne!(mem::replace(&mut bytes[at], byte), byte);
    bytes
}

/// Returns the header with 2⁵⁰ buckets and a valid checksum.
fn header_of_huge_table(header: &[u8]) -> Vec<u8> {
    let mut header = header[..64].to_vec();
    let buckets = 1u64 << 50;
    header[24..32].copy_from_slice(&buckets.to_le_bytes());
    header[40..48].copy_from_slice(&(buckets * 6).to_le_bytes());
    let checksum = xxh3_64_with_seed(&header[..56], 0);
    header[56..].copy_from_slice(&checksum.to_le_bytes());
    header
}

#[test]
fn reading_takes_no_more_memory_than_the_input_warrants() {
    for buckets in [6, 20_000, 400_000] {
        let filter = filled(Kind { table: TableKind::Packed, f: 13, b: 4, addressing: Addressing::AnySize }, buckets);
        let bytes = filter.to_bytes();
        check_bytes(&filter, &bytes);
        check_lists(&filter, &bytes);
        check_json(&filter);
    }
    check_claimed_lengths();
    for items in [1, 10_000, 1_000_000] {
        check_growing(items);
    }
}

/// Checks that reading a growing filter takes as much memory as `from_bytes`. That is more than its snapshot, because of
/// directories and incomplete blocks.
fn check_growing(items: u64) {
    let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build().expect("valid parameters");
    filter.insert_iter(0..items).expect("it grows");
    let (bytes, text) = (filter.to_bytes(), serde_json::to_string(&filter).expect("it can be written"));
    let (_, direct) = peak(|| ElasticFilter::from_bytes(&bytes).expect("valid filter"));
    let (_, from_list) = peak(|| <ElasticFilter>::deserialize(List(&bytes)).expect("valid filter"));
    let (_, from_text) = peak(|| serde_json::from_str::<ElasticFilter>(&text).expect("valid filter"));
    assert!(from_list.max(from_text) <= direct + 1024, "{from_list} and {from_text} bytes instead of {direct}");
    for len in [1, 100, text.len() / 2, text.len() - 1] {
        let (result, most) = peak(|| serde_json::from_str::<ElasticFilter>(&text[..len]));
        assert!(result.is_err() && most <= direct + SLACK, "{most} bytes for a text of {len}");
    }
}

fn check_bytes(filter: &CuckooFilter, bytes: &[u8]) {
    let (ours, theirs) = (to_bincode(filter), to_postcard(filter));
    for (read, peak) in
        [peak(|| bincode(&ours).expect("valid filter")), peak(|| postcard::from_bytes(&theirs).expect("valid filter"))]
    {
        assert!(same_bits(&read, filter));
        assert!(peak <= filter.params().table_bytes() + 1024, "{peak} bytes for a snapshot of {}", bytes.len());
    }
    for len in [0, 1, 10, 70, theirs.len() / 2, theirs.len() - 1] {
        assert_refused("bincode, cut off", len, || bincode(&ours[..len]));
        assert_refused("postcard, cut off", len, || postcard::from_bytes(&theirs[..len]));
    }
    for at in [3, 20, 40, 60, ours.len() - 20, ours.len() - 1] {
        let altered = with_byte(&ours, at, ours[at] ^ 0x55);
        assert_refused("bincode, altered", ours.len(), || bincode(&altered));
    }
}

fn check_lists(filter: &CuckooFilter, bytes: &[u8]) {
    let (read, most) = peak(|| <CuckooFilter>::deserialize(List(bytes)).expect("valid filter"));
    assert!(same_bits(&read, filter));
    assert!(most <= filter.params().table_bytes() + 1024, "{most} bytes for a list of {}", bytes.len());
    for len in [0, 1, 63, 64, 65, bytes.len() / 2, bytes.len() - 9, bytes.len() - 1] {
        // The buffer may be a quarter larger than the bytes read so far.
        assert_refused("a list, cut off", len + len / 4, || <CuckooFilter>::deserialize(List(&bytes[..len])));
    }
    let long = [bytes, &[0; 100]].concat();
    assert_refused("a list, too long", long.len(), || <CuckooFilter>::deserialize(List(&long)));
    let header = header_of_huge_table(bytes);
    assert_refused("a list's header", header.len(), || <CuckooFilter>::deserialize(List(&header)));
    let list = serde_json::to_string(bytes).expect("it can be written");
    for len in [1, 100, list.len() / 2, list.len() - 1] {
        assert_refused("a list as JSON, cut off", len, || serde_json::from_str(&list[..len]));
    }
    let altered =
        serde_json::to_string(&with_byte(bytes, bytes.len() - 1, bytes[bytes.len() - 1] ^ 1)).expect("it can be written");
    assert_refused("a list as JSON, altered", altered.len(), || serde_json::from_str(&altered));
}

fn check_json(filter: &CuckooFilter) {
    let text = serde_json::to_string(filter).expect("it can be written");
    let (read, most) = peak(|| serde_json::from_str::<CuckooFilter>(&text).expect("valid filter"));
    assert!(same_bits(&read, filter));
    assert!(most <= filter.params().table_bytes() + 1024, "{most} bytes for JSON of {}", text.len());
    for len in [1, 100, text.len() / 2, text.len() - 2, text.len() - 1] {
        assert_refused("JSON, cut off", len, || serde_json::from_str(&text[..len]));
    }
    // These positions are in the header, in the table, and at the end.
    for at in [1, 30, 50, 90, 100, text.len() / 2, text.len() - 40, text.len() - 7] {
        for digit in *b"~AB=" {
            let mut altered = text.clone().into_bytes();
            if mem::replace(&mut altered[at], digit) != digit {
                assert_refused("altered base64", altered.len(), || serde_json::from_slice(&altered));
            }
        }
    }
    // These texts are valid base64: zeros, and a header that claims a huge table.
    let zeros = format!("\"{}\"", "A".repeat(text.len()));
    assert_refused("zeros in base64", zeros.len(), || serde_json::from_str(&zeros));
    let header = format!("\"{}\"", base64_of(&header_of_huge_table(&filter.to_bytes())));
    assert_refused("a header in base64", header.len(), || serde_json::from_str(&header));
    let longer = format!("{}AAAA\"", text.trim_end_matches(['=', '"']));
    assert_refused("a longer text", longer.len(), || serde_json::from_str(&longer));
    // Error messages do not repeat a long text in the place of another value.
    let long = "\u{7f}".repeat(filter.params().table_bytes());
    for (case, altered) in [
        ("a long text", format!("\"{long}\"")),
        ("a text in a list", format!("[\"{long}\"]")),
        ("a text in a map", format!("{{\"{long}\":1}}")),
    ] {
        assert_refused(case, altered.len(), || serde_json::from_str(&altered));
    }
    let params = serde_json::to_string(&filter.params()).expect("it can be written");
    for (from, to) in [
        ("\"packed\"", format!("\"{long}\"")),
        ("\"0x0000000000000000\"", format!("\"{long}\"")),
        ("\"bucket_size\":4", format!("\"bucket_size\":\"{long}\"")),
        ("\"table\"", format!("\"{long}\"")),
    ] {
        let altered = params.replacen(from, &to, 1);
        assert_ne!(altered, params);
        let (result, peak) = peak(|| serde_json::from_str::<Params>(&altered));
        assert!(result.is_err() && peak <= altered.len() + SLACK, "{from}: {peak} bytes for an input of {}", altered.len());
    }
}

/// Checks inputs of 28 bytes that claim a length of 2⁴⁰.
fn check_claimed_lengths() {
    let mut claims = vec![253];
    claims.extend((1u64 << 40).to_le_bytes());
    claims.resize(28, b'K');
    assert_refused("bincode, borrowed, without a limit", claims.len(), || bincode(&claims));
    assert_refused("bincode, owned, without a limit", claims.len(), || {
        bincode::serde::decode_from_slice(&claims, config::standard()).map(|(filter, _)| filter)
    });
    assert_refused("bincode, owned, with a limit", claims.len(), || {
        bincode::serde::decode_from_slice(&claims, config::standard().with_limit::<LIMIT>()).map(|(filter, _)| filter)
    });
    assert_refused("bincode, streamed, with a limit", claims.len(), || {
        bincode::serde::decode_from_std_read(&mut &claims[..], config::standard().with_limit::<LIMIT>())
    });
    let mut claims = vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
    claims.resize(28, b'K');
    assert_refused("postcard", claims.len(), || postcard::from_bytes(&claims));
}
