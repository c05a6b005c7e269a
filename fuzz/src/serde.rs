//! Bytes in serde formats: they give the filter that the snapshot's reader gives, or an error.

#![allow(clippy::cast_possible_truncation, reason = "a byte of a number")]

use super::{repair::repair, same_bits::same_bits};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bincode::config;
use koel::{CuckooFilter, hash::AnyHasher};
use serde::{Serialize, Serializer, de::DeserializeOwned};
use std::fmt::{Debug, Display};

type Filter = CuckooFilter<AnyHasher>;

/// The most bytes that bincode may read.
const LIMIT: usize = 1 << 20;

/// Reads an input that begins like JSON as JSON. Otherwise, the binary formats read all bytes after the first one. Then the same
/// bytes become a snapshot, repaired as the first byte says, and each format reads that.
pub fn check(input: &[u8]) {
    if input.starts_with(b"[") || input.starts_with(b"\"") {
        round_trip(serde_json::from_slice::<Filter>(input));
        check_read(|| serde_json::from_slice::<Vec<Filter>>(input));
        round_trip(serde_json::from_reader::<_, Filter>(input));
        return;
    }
    let [parts, bytes @ ..] = input else { return };
    round_trip(postcard::from_bytes::<Filter>(bytes));
    round_trip(from_bincode::<Filter>(bytes));
    round_trip(bincode::serde::decode_from_std_read::<Filter, _, _>(&mut &bytes[..], limited()));
    check_read(|| postcard::from_bytes::<Vec<Option<Filter>>>(bytes));
    check_read(|| from_bincode::<Vec<Option<Filter>>>(bytes));
    let mut bytes = bytes.to_vec();
    repair(&mut bytes, *parts);
    check_wrapped(&bytes);
}

fn limited() -> config::Configuration<config::LittleEndian, config::Varint, config::Limit<LIMIT>> {
    config::standard().with_limit::<LIMIT>()
}

fn from_bincode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, bincode::error::DecodeError> {
    bincode::serde::decode_from_slice(bytes, limited()).map(|(value, _)| value)
}

/// Asserts that reading gives a value, or an error with a message.
fn check_read<T, E: Display>(read: impl FnOnce() -> Result<T, E>) {
    if let Err(error) = read() {
        assert!(!error.to_string().is_empty());
    }
}

/// Asserts that a filter that was read is valid, and survives every format.
fn round_trip<E: Display + Debug>(read: Result<Filter, E>) {
    let filter = match read {
        Ok(filter) => filter,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(same_bits(
        &Filter::from_bytes_with(&filter.to_bytes(), AnyHasher::from_id).expect("a written filter can be read"),
        &filter
    ));
    let json = serde_json::to_string(&filter).expect("a value can be written");
    assert!(same_bits(&serde_json::from_str::<Filter>(&json).expect("a written filter can be read"), &filter));
    let bytes = postcard::to_allocvec(&filter).expect("a value can be written");
    assert!(same_bits(&postcard::from_bytes::<Filter>(&bytes).expect("a written filter can be read"), &filter));
    let bytes = bincode::serde::encode_to_vec(&filter, limited()).expect("a value can be written");
    assert!(same_bits(&from_bincode::<Filter>(&bytes).expect("a written filter can be read"), &filter));
}

/// Bytes that serialize as bytes, not as a list.
struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// Asserts that every format reads a snapshot as `from_bytes_with` does, whether it is stored as bytes, a list or a text.
fn check_wrapped(snapshot: &[u8]) {
    let expected = Filter::from_bytes_with(snapshot, AnyHasher::from_id).ok();
    let postcard = postcard::to_allocvec(&Bytes(snapshot)).expect("a value can be written");
    assert!(same_bits(&postcard::from_bytes::<Filter>(&postcard).ok(), &expected), "postcard");
    let bincode = bincode::serde::encode_to_vec(Bytes(snapshot), limited()).expect("a value can be written");
    assert!(same_bits(&from_bincode::<Filter>(&bincode).ok(), &expected), "bincode");
    let streamed = bincode::serde::decode_from_std_read::<Filter, _, _>(&mut &bincode[..], limited());
    assert!(same_bits(&streamed.ok(), &expected), "bincode from a stream");
    let list = serde_json::to_string(snapshot).expect("a value can be written");
    let listed = serde_json::from_str::<Filter>(&list);
    assert!(same_bits(&listed.ok(), &expected), "a list");
    let text = serde_json::Value::from(base64(snapshot));
    assert!(same_bits(&serde_json::from_str::<Filter>(&text.to_string()).ok(), &expected), "a text");
    assert!(same_bits(&serde_json::from_value::<Filter>(text).ok(), &expected), "a value");
    round_trip(Filter::from_bytes_with(snapshot, AnyHasher::from_id));
}

fn base64(bytes: &[u8]) -> String {
    let mut text = vec![0; 4 * bytes.len().div_ceil(3)];
    let len = BASE64_STANDARD.encode_slice(bytes, &mut text).expect("the buffer is long enough");
    assert_eq!(len, text.len());
    String::from_utf8(text).expect("base64 is ASCII")
}
