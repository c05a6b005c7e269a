//! What reading filters through serde takes of memory, by the allocator's own count.

// Some of the lengths that its inputs claim do not fit into 32 bits.
#![cfg(target_pointer_width = "64")]

mod common;
#[path = "common/formats.rs"]
mod formats;
#[path = "common/heap.rs"]
mod heap;

use bincode::config;
use common::Kind;
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

const SOME: usize = 64 << 10;

/// Refused, with no more memory than the input is long.
#[track_caller]
fn refused<E>(what: &str, len: usize, run: impl FnOnce() -> Result<CuckooFilter, E>) {
    let (answer, peak) = peak(run);
    assert!(answer.is_err(), "{what}");
    assert!(peak <= len + SOME, "{what}: {peak} bytes for an input of {len}");
}

fn bincode(bytes: &[u8]) -> Result<CuckooFilter, bincode::error::DecodeError> {
    bincode::serde::borrow_decode_from_slice(bytes, config::standard()).map(|(filter, _)| filter)
}

/// Numbers one by one, with a length that lies.
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

/// As in formats that do not say what a value is: it has to be asked for as a byte.
struct Byte(u8);

impl<'de> Deserializer<'de> for Byte {
    type Error = value::Error;

    fn deserialize_u8<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, value::Error> {
        visitor.visit_u8(self.0)
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, value::Error> {
        Err(value::Error::custom("this format knows what it is asked for only"))
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

/// The bytes with another one at `at`.
fn with(bytes: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    assert_ne!(mem::replace(&mut bytes[at], byte), byte);
    bytes
}

/// A header of the longest table there could be, with the right checksum.
fn boastful(header: &[u8]) -> Vec<u8> {
    let mut header = header[..64].to_vec();
    let buckets = 1u64 << 50;
    header[24..32].copy_from_slice(&buckets.to_le_bytes());
    header[40..48].copy_from_slice(&(buckets * 6).to_le_bytes());
    let checksum = xxh3_64_with_seed(&header[..56], 0);
    header[56..].copy_from_slice(&checksum.to_le_bytes());
    header
}

#[test]
fn no_more_memory_than_the_input_warrants() {
    for buckets in [6, 20_000, 400_000] {
        let filter = filled(Kind { table: TableKind::Packed, f: 13, b: 4, addressing: Addressing::AnySize }, buckets);
        let bytes = filter.to_bytes();
        of_bytes(&filter, &bytes);
        of_lists(&filter, &bytes);
        of_json(&filter);
    }
    of_lengths();
    for items in [1, 10_000, 1_000_000] {
        of_growing(items);
    }
}

/// A growing filter takes more than its snapshot, for directories and incomplete blocks; reading it takes what `from_bytes` does.
fn of_growing(items: u64) {
    let mut filter = ElasticFilter::builder().false_positive_rate(0.001).build().expect("the parameters are right");
    filter.insert_iter(0..items).expect("it grows");
    let (bytes, text) = (filter.to_bytes(), serde_json::to_string(&filter).expect("it can be written"));
    let (_, plain) = peak(|| ElasticFilter::from_bytes(&bytes).expect("a filter"));
    let (_, listed) = peak(|| <ElasticFilter>::deserialize(List(&bytes)).expect("a filter"));
    let (_, texted) = peak(|| serde_json::from_str::<ElasticFilter>(&text).expect("a filter"));
    assert!(listed.max(texted) <= plain + 1024, "{listed} and {texted} bytes instead of {plain}");
    for len in [1, 100, text.len() / 2, text.len() - 1] {
        let (answer, most) = peak(|| serde_json::from_str::<ElasticFilter>(&text[..len]));
        assert!(answer.is_err() && most <= plain + SOME, "{most} bytes for a text of {len}");
    }
}

fn of_bytes(filter: &CuckooFilter, bytes: &[u8]) {
    let (ours, theirs) = (to_bincode(filter), to_postcard(filter));
    for (read, peak) in [peak(|| bincode(&ours).expect("a filter")), peak(|| postcard::from_bytes(&theirs).expect("a filter"))] {
        assert_eq!(read, *filter);
        assert!(peak <= filter.params().table_bytes() + 1024, "{peak} bytes for a snapshot of {}", bytes.len());
    }
    for len in [0, 1, 10, 70, theirs.len() / 2, theirs.len() - 1] {
        refused("bincode, cut off", len, || bincode(&ours[..len]));
        refused("postcard, cut off", len, || postcard::from_bytes(&theirs[..len]));
    }
    for at in [3, 20, 40, 60, ours.len() - 20, ours.len() - 1] {
        let altered = with(&ours, at, ours[at] ^ 0x55);
        refused("bincode, altered", ours.len(), || bincode(&altered));
    }
}

fn of_lists(filter: &CuckooFilter, bytes: &[u8]) {
    let (read, most) = peak(|| <CuckooFilter>::deserialize(List(bytes)).expect("a filter"));
    assert_eq!(read, *filter);
    assert!(most <= filter.params().table_bytes() + 1024, "{most} bytes for a list of {}", bytes.len());
    for len in [0, 1, 63, 64, 65, bytes.len() / 2, bytes.len() - 9, bytes.len() - 1] {
        // It may be a quarter ahead of what has come.
        refused("a list, cut off", len + len / 4, || <CuckooFilter>::deserialize(List(&bytes[..len])));
    }
    let long = [bytes, &[0; 100]].concat();
    refused("a list, too long", long.len(), || <CuckooFilter>::deserialize(List(&long)));
    let header = boastful(bytes);
    refused("a list's header", header.len(), || <CuckooFilter>::deserialize(List(&header)));
    let list = serde_json::to_string(bytes).expect("it can be written");
    for len in [1, 100, list.len() / 2, list.len() - 1] {
        refused("a list as JSON, cut off", len, || serde_json::from_str(&list[..len]));
    }
    let altered = serde_json::to_string(&with(bytes, bytes.len() - 1, bytes[bytes.len() - 1] ^ 1)).expect("it can be written");
    refused("a list as JSON, altered", altered.len(), || serde_json::from_str(&altered));
}

fn of_json(filter: &CuckooFilter) {
    let text = serde_json::to_string(filter).expect("it can be written");
    let (read, most) = peak(|| serde_json::from_str::<CuckooFilter>(&text).expect("a filter"));
    assert_eq!(read, *filter);
    assert!(most <= filter.params().table_bytes() + 1024, "{most} bytes for JSON of {}", text.len());
    for len in [1, 100, text.len() / 2, text.len() - 2, text.len() - 1] {
        refused("JSON, cut off", len, || serde_json::from_str(&text[..len]));
    }
    // In the header, in the table, and at the end.
    for at in [1, 30, 50, 90, 100, text.len() / 2, text.len() - 40, text.len() - 7] {
        for digit in *b"~AB=" {
            let mut altered = text.clone().into_bytes();
            if mem::replace(&mut altered[at], digit) != digit {
                refused("altered base64", altered.len(), || serde_json::from_slice(&altered));
            }
        }
    }
    // Base64, but not of a filter; and of a header that claims more than there is.
    let zeros = format!("\"{}\"", "A".repeat(text.len()));
    refused("zeros in base64", zeros.len(), || serde_json::from_str(&zeros));
    let header = format!("\"{}\"", base64_of(&boastful(&filter.to_bytes())));
    refused("a header in base64", header.len(), || serde_json::from_str(&header));
    let longer = format!("{}AAAA\"", text.trim_end_matches(['=', '"']));
    refused("a longer text", longer.len(), || serde_json::from_str(&longer));
    // Whatever is long where something else should be: no error repeats it.
    let long = "\u{7f}".repeat(filter.params().table_bytes());
    for (what, altered) in [
        ("a long text", format!("\"{long}\"")),
        ("a text in a list", format!("[\"{long}\"]")),
        ("a text in a map", format!("{{\"{long}\":1}}")),
    ] {
        refused(what, altered.len(), || serde_json::from_str(&altered));
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
        let (answer, peak) = peak(|| serde_json::from_str::<Params>(&altered));
        assert!(answer.is_err() && peak <= altered.len() + SOME, "{from}: {peak} bytes for an input of {}", altered.len());
    }
}

/// 28 bytes that claim 2⁴⁰.
fn of_lengths() {
    let mut claims = vec![253];
    claims.extend((1u64 << 40).to_le_bytes());
    claims.resize(28, b'K');
    refused("bincode, borrowed, without a limit", claims.len(), || bincode(&claims));
    refused("bincode, owned, without a limit", claims.len(), || {
        bincode::serde::decode_from_slice(&claims, config::standard()).map(|(filter, _)| filter)
    });
    refused("bincode, owned, with a limit", claims.len(), || {
        bincode::serde::decode_from_slice(&claims, config::standard().with_limit::<LIMIT>()).map(|(filter, _)| filter)
    });
    refused("bincode, streamed, with a limit", claims.len(), || {
        bincode::serde::decode_from_std_read(&mut &claims[..], config::standard().with_limit::<LIMIT>())
    });
    let mut claims = vec![0x80, 0x80, 0x80, 0x80, 0x80, 0x20];
    claims.resize(28, b'K');
    refused("postcard", claims.len(), || postcard::from_bytes(&claims));
}
