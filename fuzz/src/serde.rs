//! Bytes in serde formats: they give the filter that the snapshot's reader gives, or an error; or the parameters that their fields give.

#![allow(clippy::cast_possible_truncation, reason = "a byte of a number")]

use super::{
    repair::repair,
    same_bits::{Bits, same_bits},
    sections::is_growing,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use bincode::config;
use koel::{Addressing, CuckooFilter, ElasticFilter, Params, SnapshotError, TableKind, hash::AnyHasher};
use serde::{Serialize, Serializer, de::DeserializeOwned};
use serde_json::Value;
use std::fmt::{Debug, Display};

type Fixed = CuckooFilter<AnyHasher>;
type Growing = ElasticFilter<AnyHasher>;

/// A filter of either type.
trait Filter: Bits + PartialEq + Serialize + DeserializeOwned {
    fn of(snapshot: &[u8]) -> Result<Self, SnapshotError>;
}

impl Filter for Fixed {
    fn of(snapshot: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes_with(snapshot, AnyHasher::from_id)
    }
}

impl Filter for Growing {
    fn of(snapshot: &[u8]) -> Result<Self, SnapshotError> {
        Self::from_bytes_with(snapshot, AnyHasher::from_id)
    }
}

/// The most bytes that bincode may read.
const LIMIT: usize = 1 << 20;

/// Reads an input that begins like JSON as JSON. Otherwise, the binary formats read all bytes after the first one. Then the same
/// bytes become a snapshot, repaired as the first byte says, and each format reads that.
pub fn check(input: &[u8]) {
    if input.starts_with(b"[") || input.starts_with(b"\"") || input.starts_with(b"{") {
        check_json::<Fixed>(input);
        check_json::<Growing>(input);
        check_json_params(input);
        return;
    }
    let [parts, bytes @ ..] = input else { return };
    check_binary::<Fixed>(bytes);
    check_binary::<Growing>(bytes);
    check_binary_params(bytes);
    let mut bytes = bytes.to_vec();
    repair(&mut bytes, *parts);
    if bytes.get(10).is_some_and(|&kind| is_growing(kind)) {
        check_wrapped::<Growing>(&bytes);
    } else {
        check_wrapped::<Fixed>(&bytes);
    }
}

fn check_json<F: Filter>(input: &[u8]) {
    round_trip(serde_json::from_slice::<F>(input));
    check_read(|| serde_json::from_slice::<Vec<F>>(input));
    round_trip(serde_json::from_reader::<_, F>(input));
}

fn check_binary<F: Filter>(bytes: &[u8]) {
    round_trip(postcard::from_bytes::<F>(bytes));
    round_trip(from_bincode::<F>(bytes));
    round_trip(bincode::serde::decode_from_std_read::<F, _, _>(&mut &bytes[..], limited()));
    check_read(|| postcard::from_bytes::<Vec<Option<F>>>(bytes));
    check_read(|| from_bincode::<Vec<Option<F>>>(bytes));
}

/// The names of the fields of [`Params`], in their order.
const FIELDS: [&str; 6] = ["table", "fingerprint_bits", "bucket_size", "addressing", "seed", "buckets"];

/// Asserts that JSON gives the parameters of its fields.
fn check_json_params(input: &[u8]) {
    let (sliced, streamed) = (serde_json::from_slice::<Params>(input), serde_json::from_reader::<_, Params>(input));
    assert_eq!(sliced.as_ref().ok(), streamed.as_ref().ok());
    let value = serde_json::from_slice::<Value>(input);
    let expected = value.as_ref().ok().and_then(params_of);
    if let Ok(value) = value {
        // A repeated field is refused in a text, and replaces the first one in a value.
        assert_eq!(serde_json::from_str(&value.to_string()).ok(), expected, "{value}");
        assert_eq!(serde_json::from_value(value).ok(), expected);
    }
    assert!(sliced.is_err() || sliced.as_ref().ok() == expected.as_ref(), "{sliced:?} instead of {expected:?}");
    round_trip_params(sliced);
}

/// Returns the parameters that a map or a list gives.
fn params_of(value: &Value) -> Option<Params> {
    let fields: Vec<&Value> = match value {
        Value::Object(map) => FIELDS.iter().map(|&field| map.get(field)).collect::<Option<_>>().filter(|_| map.len() == 6)?,
        Value::Array(list) => list.iter().collect(),
        _ => return None,
    };
    let [table, fingerprint_bits, bucket_size, addressing, seed, buckets] = fields[..] else { return None };
    let one_of = |value: &Value, names: [&str; 2]| match value {
        Value::String(text) => names.iter().position(|name| name == text).map(|at| at as u64),
        number => number.as_u64(),
    };
    let seed = match seed {
        Value::String(text) => {
            // Its only representation.
            let seed = u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()?;
            (*text == format!("{seed:#018x}")).then_some(seed)?
        }
        number => number.as_u64()?,
    };
    params_of_numbers([
        one_of(table, ["single", "packed"])?,
        fingerprint_bits.as_u64()?,
        bucket_size.as_u64()?,
        one_of(addressing, ["any-size", "power-of-two"])?,
        seed,
        buckets.as_u64()?,
    ])
}

/// Asserts that the binary formats give the parameters of the six numbers that they read.
fn check_binary_params(bytes: &[u8]) {
    let read = postcard::from_bytes::<Params>(bytes);
    let numbers = postcard::from_bytes(bytes).ok();
    assert_eq!(read.as_ref().ok(), numbers.and_then(params_of_numbers).as_ref(), "postcard: {numbers:?}");
    round_trip_params(read);
    let read = from_bincode::<Params>(bytes);
    let numbers = from_bincode(bytes).ok();
    assert_eq!(read.as_ref().ok(), numbers.and_then(params_of_numbers).as_ref(), "bincode: {numbers:?}");
    round_trip_params(read);
}

/// Returns the parameters with the numbers of a snapshot's header.
fn params_of_numbers([table, fingerprint_bits, bucket_size, addressing, seed, buckets]: [u64; 6]) -> Option<Params> {
    let table = *[TableKind::Single, TableKind::Packed].get(usize::try_from(table).ok()?)?;
    let addressing = *[Addressing::AnySize, Addressing::PowerOfTwo].get(usize::try_from(addressing).ok()?)?;
    let (fingerprint_bits, bucket_size) = (fingerprint_bits.try_into().ok()?, bucket_size.try_into().ok()?);
    let builder = CuckooFilter::builder().table(table).fingerprint_bits(fingerprint_bits).bucket_size(bucket_size);
    builder.addressing(addressing).seed(seed).buckets(buckets).params().ok()
}

/// Asserts that parameters that were read survive every format.
fn round_trip_params<E: Display>(read: Result<Params, E>) {
    let params = match read {
        Ok(params) => params,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let json = serde_json::to_string(&params).expect("a value can be written");
    assert_eq!(serde_json::from_str::<Params>(&json).expect("written parameters can be read"), params);
    let bytes = postcard::to_allocvec(&params).expect("a value can be written");
    assert_eq!(postcard::from_bytes::<Params>(&bytes).expect("written parameters can be read"), params);
    let bytes = bincode::serde::encode_to_vec(params, limited()).expect("a value can be written");
    assert_eq!(from_bincode::<Params>(&bytes).expect("written parameters can be read"), params);
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
fn round_trip<F: Filter, E: Display + Debug>(read: Result<F, E>) {
    let filter = match read {
        Ok(filter) => filter,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(same_bits(&F::of(&filter.bits()).expect("a written filter can be read"), &filter));
    let json = serde_json::to_string(&filter).expect("a value can be written");
    assert!(same_bits(&serde_json::from_str::<F>(&json).expect("a written filter can be read"), &filter));
    let bytes = postcard::to_allocvec(&filter).expect("a value can be written");
    assert!(same_bits(&postcard::from_bytes::<F>(&bytes).expect("a written filter can be read"), &filter));
    let bytes = bincode::serde::encode_to_vec(&filter, limited()).expect("a value can be written");
    assert!(same_bits(&from_bincode::<F>(&bytes).expect("a written filter can be read"), &filter));
}

/// Bytes that serialize as bytes, not as a list.
struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// Asserts that every format reads a snapshot as `from_bytes_with` does, whether it is stored as bytes, a list or a text.
fn check_wrapped<F: Filter>(snapshot: &[u8]) {
    let expected = F::of(snapshot).ok();
    let postcard = postcard::to_allocvec(&Bytes(snapshot)).expect("a value can be written");
    assert!(same_bits(&postcard::from_bytes::<F>(&postcard).ok(), &expected), "postcard");
    let bincode = bincode::serde::encode_to_vec(Bytes(snapshot), limited()).expect("a value can be written");
    assert!(same_bits(&from_bincode::<F>(&bincode).ok(), &expected), "bincode");
    let streamed = bincode::serde::decode_from_std_read::<F, _, _>(&mut &bincode[..], limited());
    assert!(same_bits(&streamed.ok(), &expected), "bincode from a stream");
    let list = serde_json::to_string(snapshot).expect("a value can be written");
    let listed = serde_json::from_str::<F>(&list);
    assert!(same_bits(&listed.ok(), &expected), "a list");
    let text = serde_json::Value::from(base64(snapshot));
    assert!(same_bits(&serde_json::from_str::<F>(&text.to_string()).ok(), &expected), "a text");
    assert!(same_bits(&serde_json::from_value::<F>(text).ok(), &expected), "a value");
    round_trip(F::of(snapshot));
}

fn base64(bytes: &[u8]) -> String {
    let mut text = vec![0; 4 * bytes.len().div_ceil(3)];
    let len = BASE64_STANDARD.encode_slice(bytes, &mut text).expect("the buffer is long enough");
    assert_eq!(len, text.len());
    String::from_utf8(text).expect("base64 is ASCII")
}
