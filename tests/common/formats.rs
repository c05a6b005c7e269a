//! Small filters and serde formats for the tests of serde.

#![allow(dead_code, reason = "each test uses a part of it")]

use super::common::{Kind, SplitMix64};
use bincode::config;
use koel::{Addressing, CuckooFilter, Prehashed, TableKind};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::iter;

/// The most bytes that bincode may read.
pub(crate) const LIMIT: usize = 1 << 24;

pub(crate) fn filled(kind: Kind, buckets: u64) -> CuckooFilter {
    let mut filter = kind.filter(buckets);
    let items = filter.slots() / 2;
    // Small tables with short fingerprints may refuse an item or two.
    SplitMix64(1).take(items).for_each(|hash| drop(filter.insert(&Prehashed(hash))));
    filter
}

pub(crate) fn small() -> Vec<CuckooFilter> {
    let kind = |table, f, b, addressing| Kind { table, f, b, addressing };
    vec![
        filled(kind(TableKind::Packed, 13, 4, Addressing::AnySize), 6),
        filled(kind(TableKind::Packed, 32, 4, Addressing::PowerOfTwo), 4),
        filled(kind(TableKind::Single, 7, 3, Addressing::AnySize), 6),
        filled(kind(TableKind::Single, 8, 4, Addressing::PowerOfTwo), 1),
    ]
}

pub(crate) fn to_bincode<T: Serialize>(value: &T) -> Vec<u8> {
    bincode::serde::encode_to_vec(value, config::standard()).expect("the value can be written")
}

pub(crate) fn from_bincode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let read = bincode::serde::decode_from_slice(bytes, config::standard().with_limit::<LIMIT>());
    let (value, len) = read.map_err(|error| error.to_string())?;
    assert_eq!(len, bytes.len());
    Ok(value)
}

pub(crate) fn to_postcard<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_allocvec(value).expect("the value can be written")
}

pub(crate) fn from_postcard<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    postcard::from_bytes(bytes).map_err(|error| error.to_string())
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> Value {
    serde_json::to_value(value).expect("the value can be written")
}

pub(crate) fn from_json<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// Encodes bytes in the padded base64 of RFC 4648, three at a time.
pub(crate) fn base64_of(bytes: &[u8]) -> String {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let of_three = |bytes: &[u8]| {
        let word = (0..3).fold(0, |word, at| word << 8 | usize::from(bytes.get(at).copied().unwrap_or(0)));
        let digits = [18, 12, 6, 0].map(|shift| char::from(digits[word >> shift & 63]));
        digits.into_iter().take(bytes.len() + 1).chain(iter::repeat_n('=', 3 - bytes.len()))
    };
    bytes.chunks(3).flat_map(of_three).collect()
}
