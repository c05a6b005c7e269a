//! Bytes as one of Go's files: exactly the files that src/guide/go.md describes are read, and they are written back unchanged.

#![allow(clippy::cast_possible_truncation, reason = "a byte of a number")]

use super::{
    formulas::{Formulas, Key},
    same_bits::same_bits,
    snapshot::check_queries as check_table,
    split_mix::SplitMix64,
};
use koel::{
    CuckooFilter, Kernel, Prehashed,
    go::{self, GoFilter},
};
use std::collections::BTreeMap;

/// Longer tables are not generated, so that more inputs can be tried.
const MAX_BUCKETS_LOG: u8 = 6;

/// A file's fields outside its table.
struct Header {
    formulas: Formulas,
    items: u32,
    /// The bucket and the fingerprint of the victim, the item outside the table.
    victim: (u32, u32),
    /// 1 if there is a victim, 0 if not. Other numbers are invalid.
    has_victim: u8,
    /// The offset of the table, in bytes.
    start: usize,
    /// Zero bytes behind the table.
    padding: usize,
}

/// Checks the bytes as they are, and then with the smallest changes that make them a valid file.
pub fn check(input: &[u8]) {
    check_file(input);
    let mut repaired = input.to_vec();
    repair(&mut repaired);
    go::decode(&repaired).unwrap_or_else(|error| panic!("a repaired file is refused: {error}"));
    check_file(&repaired);
}

fn check_file(bytes: &[u8]) {
    let read = go::decode(bytes);
    let Some((header, buckets)) = expected(bytes) else {
        let error = read.expect_err("the bytes are not a file");
        assert!(error.offset() <= bytes.len() as u64, "{error}");
        return;
    };
    let filter = read.unwrap_or_else(|error| panic!("a valid file is refused: {error}"));
    assert_eq!(filter.encode().expect("Go can read this filter"), bytes);
    let formulas = header.formulas;
    let mut items = formulas.items(&buckets);
    let mut table = filter.filter().clone();
    for kernel in Kernel::available() {
        table.set_kernel(kernel).expect("the kernel is available");
        check_table(&table, &formulas, &items);
    }
    let (bucket, fingerprint) = header.victim;
    if header.has_victim == 1 {
        *items.entry(formulas.key_in(bucket.into(), fingerprint)).or_default() += 1;
    }
    check_queries(&filter, &formulas, &items);
    check_changes(filter, &formulas, items);
}

fn number(bytes: &[u8], at: usize) -> u32 {
    (0..4).fold(0, |value, n| value | u32::from(bytes[at + n]) << (8 * n))
}

/// Returns `None` if the header is incomplete, or its table kind is unknown.
fn header(bytes: &[u8]) -> Option<Header> {
    let is_packed = *bytes.get(13)? == 1;
    let start = if is_packed { 19 } else { 20 };
    if bytes[13] > 1 || bytes.len() < start {
        return None;
    }
    let (f, b) = if is_packed { (bytes[14], 4) } else { (bytes[15], bytes[14]) };
    let m = u64::from(number(bytes, start - 4));
    let formulas = Formulas { is_packed, f: f.into(), b: b.into(), m, is_power_of_two: true };
    let padding = if is_packed { 7 } else { 0 };
    Some(Header {
        formulas,
        items: number(bytes, 0),
        victim: (number(bytes, 4), number(bytes, 8)),
        has_victim: bytes[12],
        start,
        padding,
    })
}

/// Returns the header and the slots of every bucket if the bytes are a valid file.
fn expected(bytes: &[u8]) -> Option<(Header, Vec<Vec<u32>>)> {
    let header = header(bytes)?;
    let Header { formulas, items, victim: (bucket, fingerprint), has_victim, start, padding } = header;
    let end = start as u64 + formulas.table_bytes()?;
    let is_valid = formulas.is_possible()
        && !shares_bits(&formulas)
        && bytes.len() as u64 == end + padding as u64
        && has_victim <= 1
        && u64::from(bucket) < formulas.m
        && u64::from(fingerprint) < 1 << formulas.f
        && (fingerprint != 0 || has_victim == 0 && bucket == 0);
    if !is_valid {
        return None;
    }
    let (table, behind) = bytes[start..].split_at(end as usize - start);
    let buckets = formulas.slots(table)?;
    let taken = buckets.iter().flatten().filter(|&&slot| slot != 0).count();
    (taken == items as usize && behind.iter().all(|&byte| byte == 0)).then_some((header, buckets))
}

/// Returns whether slots of this table share bits, so that Go overwrites neighbors.
fn shares_bits(formulas: &Formulas) -> bool {
    let slots_per_whole_bytes = match formulas.f {
        2 => 4,
        4 | 12 => 2,
        _ => 1,
    };
    !formulas.is_packed && formulas.m > 1 && !formulas.b.is_multiple_of(slots_per_whole_bytes)
}

/// Changes the bytes into a valid file.
fn repair(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().max(20), 0);
    bytes[13] &= 1;
    bytes[12] &= 1;
    let is_packed = bytes[13] == 1;
    let start = if is_packed { 19 } else { 20 };
    let buckets = 1u32 << (bytes[start - 4] % MAX_BUCKETS_LOG);
    if is_packed {
        bytes[14] = 4 + bytes[14] % 29;
    } else {
        bytes[14] = 1 + bytes[14] % 16;
        bytes[15] = 2 + bytes[15] % 31;
    }
    put(bytes, start - 4, buckets);
    let shares = header(bytes).is_some_and(|header| shares_bits(&header.formulas));
    if shares {
        bytes[14] = 4;
    }
    let Some(Header { formulas, victim: (bucket, fingerprint), has_victim, padding, .. }) = header(bytes) else { return };
    let (bucket, mask) = (bucket & (buckets - 1), u32::MAX >> (32 - formulas.f));
    put(bytes, 4, bucket);
    let least = u32::from(has_victim == 1 || bucket != 0);
    put(bytes, 8, (fingerprint & mask).max(least));
    let end = start + formulas.table_bytes().unwrap_or_default() as usize;
    bytes.resize(end, 0);
    formulas.repair(&mut bytes[start..], false);
    bytes.resize(end + padding, 0);
    let taken = formulas.slots(&bytes[start..end]).into_iter().flatten().flatten().filter(|&slot| slot != 0).count();
    put(bytes, 0, taken as u32);
}

fn put(bytes: &mut [u8], at: usize, number: u32) {
    bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// Asserts that queries of present and absent items return what the formulas say.
fn check_queries(filter: &GoFilter, formulas: &Formulas, items: &BTreeMap<Key, u32>) {
    assert_eq!(filter.len(), items.values().sum::<u32>() as usize);
    let present = items.keys().map(|&key| formulas.hash(key));
    for hash in SplitMix64(5).take(77).chain(present) {
        let copies = items.get(&formulas.key(hash)).copied().unwrap_or(0);
        assert_eq!((filter.contains(&Prehashed(hash)), filter.count(&Prehashed(hash))), (copies > 0, copies), "{hash:#x}");
    }
    let numbers: Vec<u64> = (0..77).collect();
    let mut found = vec![false; numbers.len()];
    filter.contains_batch(&numbers, &mut found);
    assert!(numbers.iter().zip(found).all(|(number, found)| filter.contains(number) == found));
}

/// Inserts and removes items, with the victim in any place, and compares the filter with the formulas.
fn check_changes(mut filter: GoFilter, formulas: &Formulas, mut items: BTreeMap<Key, u32>) {
    let removed: Vec<Key> = items.keys().copied().step_by(3).collect();
    for key in removed {
        remove(&mut filter, formulas, &mut items, key);
    }
    for hash in SplitMix64(6).take(77) {
        let before = filter.clone();
        if filter.insert(&Prehashed(hash)).is_ok() {
            *items.entry(formulas.key(hash)).or_default() += 1;
        } else {
            assert!(filter == before && same_bits(filter.filter(), before.filter()), "a refused insertion changed something");
            assert!(filter.encode().ok() == before.encode().ok(), "a refused insertion changed something");
        }
    }
    check_queries(&filter, formulas, &items);
    let written = filter.encode().expect("Go can read this filter");
    let read = go::decode(&written).expect("a written filter can be read");
    assert_eq!(read.encode().expect("Go can read this filter"), written);
    check_queries(&read, formulas, &items);
    match filter.clone().into_filter() {
        Ok(whole) => check_table(&whole, formulas, &items),
        Err(with_victim) => check_queries(&with_victim, formulas, &items),
    }
    while let Some((&key, _)) = items.first_key_value() {
        remove(&mut filter, formulas, &mut items, key);
    }
    let drained: CuckooFilter<_> = filter.into_filter().expect("there is room for the victim");
    let bytes = drained.to_bytes();
    assert!(drained.is_empty() && bytes[64..bytes.len() - 8].iter().all(|&byte| byte == 0), "a drained table is not zero");
}

fn remove(filter: &mut GoFilter, formulas: &Formulas, items: &mut BTreeMap<Key, u32>, key: Key) {
    let hash = formulas.hash(key);
    assert!(filter.remove(&Prehashed(hash)), "{key:?} is lost");
    if let Some(copies) = items.get_mut(&key) {
        *copies -= 1;
        if *copies == 0 {
            items.remove(&key);
        }
    }
    assert_eq!(filter.count(&Prehashed(hash)), items.get(&key).copied().unwrap_or(0), "{key:?}");
}
