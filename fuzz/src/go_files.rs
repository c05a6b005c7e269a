//! Bytes as a file of Go's: what src/guide/go.md says is read and nothing else, and it is written again as it was.

#![allow(clippy::cast_possible_truncation, reason = "a byte of a number")]

use super::{
    model::{Key, Model},
    snapshot::answers,
    split_mix::SplitMix64,
};
use koel::{
    CuckooFilter, Kernel, Prehashed,
    go::{self, GoFilter},
};
use std::collections::BTreeMap;

/// Longer tables are not made: there would be fewer of them.
const MOST_BUCKETS_LOG: u8 = 6;

/// What a file has beside its table.
struct Header {
    model: Model,
    items: u32,
    victim: (u32, u32),
    is_used: u8,
    /// Bytes before the table.
    start: usize,
    /// Bytes of zero behind it.
    padding: usize,
}

/// The bytes as they are, and then as little changed as it takes to make a file of them.
pub fn check(input: &[u8]) {
    check_file(input);
    let mut mended = input.to_vec();
    mend(&mut mended);
    go::decode(&mended).unwrap_or_else(|error| panic!("it should be a file now: {error}"));
    check_file(&mended);
}

fn check_file(bytes: &[u8]) {
    let read = go::decode(bytes);
    let Some((header, buckets)) = expected(bytes) else {
        let error = read.expect_err("these bytes are no file");
        assert!(error.offset() <= bytes.len() as u64, "{error}");
        return;
    };
    let filter = read.unwrap_or_else(|error| panic!("these bytes are a file: {error}"));
    assert_eq!(filter.encode().expect("Go had it"), bytes);
    let model = header.model;
    let mut items = model.items(&buckets);
    let mut table = filter.filter().clone();
    for kernel in Kernel::available() {
        table.set_kernel(kernel).expect("it is available");
        answers(&table, &model, &items);
    }
    let (bucket, fingerprint) = header.victim;
    if header.is_used == 1 {
        *items.entry(model.key_in(bucket.into(), fingerprint)).or_default() += 1;
    }
    asked(&filter, &model, &items);
    go_on(filter, &model, items);
}

fn number(bytes: &[u8], at: usize) -> u32 {
    (0..4).fold(0, |value, n| value | u32::from(bytes[at + n]) << (8 * n))
}

/// None if the header is not all there, or of no table.
fn header(bytes: &[u8]) -> Option<Header> {
    let is_packed = *bytes.get(13)? == 1;
    let start = if is_packed { 19 } else { 20 };
    if bytes[13] > 1 || bytes.len() < start {
        return None;
    }
    let (f, b) = if is_packed { (bytes[14], 4) } else { (bytes[15], bytes[14]) };
    let m = u64::from(number(bytes, start - 4));
    let model = Model { is_packed, f: f.into(), b: b.into(), m, is_power_of_two: true };
    let padding = if is_packed { 7 } else { 0 };
    Some(Header {
        model,
        items: number(bytes, 0),
        victim: (number(bytes, 4), number(bytes, 8)),
        is_used: bytes[12],
        start,
        padding,
    })
}

/// The values of all slots, if this is a file.
fn expected(bytes: &[u8]) -> Option<(Header, Vec<Vec<u32>>)> {
    let header = header(bytes)?;
    let Header { model, items, victim: (bucket, fingerprint), is_used, start, padding } = header;
    let end = start as u64 + model.table_bytes()?;
    let is_right = model.is_possible()
        && !shares_bits(&model)
        && bytes.len() as u64 == end + padding as u64
        && is_used <= 1
        && u64::from(bucket) < model.m
        && u64::from(fingerprint) < 1 << model.f
        && (fingerprint != 0 || is_used == 0 && bucket == 0);
    if !is_right {
        return None;
    }
    let (table, behind) = bytes[start..].split_at(end as usize - start);
    let buckets = model.slots(table)?;
    let taken = buckets.iter().flatten().filter(|&&slot| slot != 0).count();
    (taken == items as usize && behind.iter().all(|&byte| byte == 0)).then_some((header, buckets))
}

/// Does Go overwrite neighbours in this table?
fn shares_bits(model: &Model) -> bool {
    let step = match model.f {
        2 => 4,
        4 | 12 => 2,
        _ => 1,
    };
    !model.is_packed && model.m > 1 && !model.b.is_multiple_of(step)
}

/// Makes a file of any bytes.
fn mend(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().max(20), 0);
    bytes[13] &= 1;
    bytes[12] &= 1;
    let is_packed = bytes[13] == 1;
    let start = if is_packed { 19 } else { 20 };
    let buckets = 1u32 << (bytes[start - 4] % MOST_BUCKETS_LOG);
    if is_packed {
        bytes[14] = 4 + bytes[14] % 29;
    } else {
        bytes[14] = 1 + bytes[14] % 16;
        bytes[15] = 2 + bytes[15] % 31;
    }
    put(bytes, start - 4, buckets);
    let shares = header(bytes).is_some_and(|header| shares_bits(&header.model));
    if shares {
        bytes[14] = 4;
    }
    let Some(Header { model, victim: (bucket, fingerprint), is_used, padding, .. }) = header(bytes) else { return };
    let (bucket, mask) = (bucket & (buckets - 1), u32::MAX >> (32 - model.f));
    put(bytes, 4, bucket);
    let least = u32::from(is_used == 1 || bucket != 0);
    put(bytes, 8, (fingerprint & mask).max(least));
    let end = start + model.table_bytes().unwrap_or_default() as usize;
    bytes.resize(end, 0);
    model.mend(&mut bytes[start..], false);
    bytes.resize(end + padding, 0);
    let taken = model.slots(&bytes[start..end]).into_iter().flatten().flatten().filter(|&slot| slot != 0).count();
    put(bytes, 0, taken as u32);
}

fn put(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// The answers are the model's, of all that is in and of others.
fn asked(filter: &GoFilter, model: &Model, items: &BTreeMap<Key, u32>) {
    assert_eq!(filter.len(), items.values().sum::<u32>() as usize);
    let there = items.keys().map(|&key| model.hash(key));
    for hash in SplitMix64(5).take(77).chain(there) {
        let copies = items.get(&model.key(hash)).copied().unwrap_or(0);
        assert_eq!((filter.contains(&Prehashed(hash)), filter.count(&Prehashed(hash))), (copies > 0, copies), "{hash:#x}");
    }
    let numbers: Vec<u64> = (0..77).collect();
    let mut found = vec![false; numbers.len()];
    filter.contains_batch(&numbers, &mut found);
    assert!(numbers.iter().zip(found).all(|(number, found)| filter.contains(number) == found));
}

/// Insertions and removals, with the victim where it is and wherever it goes.
fn go_on(mut filter: GoFilter, model: &Model, mut items: BTreeMap<Key, u32>) {
    let removed: Vec<Key> = items.keys().copied().step_by(3).collect();
    for key in removed {
        remove(&mut filter, model, &mut items, key);
    }
    for hash in SplitMix64(6).take(77) {
        let before = filter.clone();
        if filter.insert(&Prehashed(hash)).is_ok() {
            *items.entry(model.key(hash)).or_default() += 1;
        } else {
            assert!(filter == before && filter.encode().ok() == before.encode().ok(), "a refused insertion changed something");
        }
    }
    asked(&filter, model, &items);
    let written = filter.encode().expect("Go can have it");
    let read = go::decode(&written).expect("what was written is read");
    assert_eq!(read.encode().expect("Go had it"), written);
    asked(&read, model, &items);
    match filter.clone().into_filter() {
        Ok(whole) => answers(&whole, model, &items),
        Err(no_room) => asked(&no_room, model, &items),
    }
    while let Some((&key, _)) = items.first_key_value() {
        remove(&mut filter, model, &mut items, key);
    }
    let drained: CuckooFilter<_> = filter.into_filter().expect("it is empty");
    let bytes = drained.to_bytes();
    assert!(drained.is_empty() && bytes[64..bytes.len() - 8].iter().all(|&byte| byte == 0), "a drained table is not zero");
}

fn remove(filter: &mut GoFilter, model: &Model, items: &mut BTreeMap<Key, u32>, key: Key) {
    let hash = model.hash(key);
    assert!(filter.remove(&Prehashed(hash)), "{key:?} is lost");
    if let Some(copies) = items.get_mut(&key) {
        *copies -= 1;
        if *copies == 0 {
            items.remove(&key);
        }
    }
    assert_eq!(filter.count(&Prehashed(hash)), items.get(&key).copied().unwrap_or(0), "{key:?}");
}
