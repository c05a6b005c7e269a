//! Bytes as a snapshot of a growing filter: every reader refuses them with the same error, or they give a working filter.

#![allow(clippy::cast_possible_truncation, reason = "lengths of inputs")]

use super::{
    model::{HEADER, number},
    snapshot::Pieces,
    split_mix::SplitMix64,
};
use koel::{ElasticFilter, ElasticView, Kernel, Prehashed, SnapshotError, hash::AnyHasher};

type Filter = ElasticFilter<AnyHasher>;
type View<'a> = ElasticView<&'a [u8], AnyHasher>;

const SECTION: usize = 32;
const RECORD: usize = 24;

/// Filters with more items are not changed, so that more inputs can be tried.
const MOST_ITEMS: usize = 3000;

/// Returns whether this is a table kind of a growing filter.
pub fn is_kind(kind: u8) -> bool {
    matches!(kind, 2 | 3)
}

/// Checks the bytes with every reader. `odd` gives the lengths of the pieces in which a stream delivers them.
pub fn check(bytes: &[u8], odd: usize) {
    let error_of = |answer: &Result<Filter, SnapshotError>| {
        answer.as_ref().err().map(|error| (error.kind(), error.offset(), error.to_string()))
    };
    let read = Filter::from_bytes_with(bytes, AnyHasher::from_id);
    let mut pieces = Pieces::new(bytes, odd);
    let streamed = Filter::read_from_with(&mut pieces, AnyHasher::from_id);
    match &read {
        // A stream may continue behind the snapshot.
        Err(error) if error.kind() == koel::SnapshotErrorKind::TrailingBytes => {
            assert_eq!(bytes.len() as u64 - error.offset(), pieces.left() as u64);
            assert!(streamed.is_ok());
        }
        _ => assert_eq!(error_of(&streamed), error_of(&read), "read_from"),
    }
    let opened = View::over_with(bytes, AnyHasher::from_id);
    if let Ok(view) = &opened {
        query_unverified(view);
    }
    let verified = opened.and_then(|view| view.verify().map(|()| view));
    let view_error = verified.as_ref().err().map(|error| (error.kind(), error.to_string()));
    // A view reports errors in lists of shards before errors in tables, so only whether there is an error is compared.
    assert_eq!(view_error.is_some(), read.is_err(), "a view: {view_error:?}");
    let Ok(filter) = read else { return };
    assert!(filter.to_bytes() == bytes, "the filter is written differently");
    if let Ok(view) = verified {
        compare(view, &filter);
    }
    if filter.len() <= MOST_ITEMS {
        check_changes(filter);
    }
}

/// Asserts that queries of an unverified view return at all, and that batches agree with single lookups.
fn query_unverified(view: &View<'_>) {
    let hashes: Vec<u64> = SplitMix64(2).take(150).collect();
    let mut found = vec![false; 150];
    let _ = view.distinct();
    view.contains_batch(&Prehashed(&hashes), &mut found);
    for (&hash, &found) in hashes.iter().zip(&found) {
        assert_eq!(view.contains(&Prehashed(hash)), found);
        assert!(found || view.count(&Prehashed(hash)) == 0);
    }
}

/// Asserts that a view of the same bytes gives the same results as the filter.
fn compare(mut view: View<'_>, filter: &Filter) {
    assert_eq!((view.len(), view.shards(), view.params()), (filter.len(), filter.shards(), filter.params()));
    assert_eq!(view.distinct(), filter.distinct());
    let hashes: Vec<u64> = SplitMix64(1).take(150).collect();
    let (mut found, mut found_in_view) = (vec![false; 150], vec![false; 150]);
    for kernel in Kernel::available() {
        view.set_kernel(kernel).expect("the kernel is available");
        filter.contains_batch(&Prehashed(&hashes), &mut found);
        view.contains_batch(&Prehashed(&hashes), &mut found_in_view);
        assert_eq!(found, found_in_view);
    }
    assert!(hashes.iter().all(|&hash| view.count(&Prehashed(hash)) == filter.count(&Prehashed(hash))));
    filter.assert_consistent();
}

/// Inserts, merges and removes items, as with any other filter.
fn check_changes(mut filter: Filter) {
    // The original items are unknown, so only the inserted ones are checked.
    filter.set_max_bytes(filter.table_bytes() + (1 << 20));
    let before = filter.len();
    let hashes: Vec<u64> = SplitMix64(before as u64).take(150).collect();
    let mut inserted = Vec::new();
    // Some items are inserted several times.
    for &hash in hashes.iter().chain(&hashes[..20]).chain(&hashes[..3].repeat(20)) {
        if filter.insert(&Prehashed(hash)).is_ok() {
            inserted.push(hash);
        }
    }
    assert_eq!(filter.len(), before + inserted.len());
    let mut found = vec![false; inserted.len()];
    for kernel in Kernel::available() {
        filter.set_kernel(kernel).expect("the kernel is available");
        filter.contains_batch(&Prehashed(&inserted), &mut found);
        assert!(found.iter().all(|&found| found));
        assert!(inserted.iter().all(|&hash| filter.contains(&Prehashed(hash)) && filter.count(&Prehashed(hash)) > 0));
    }
    assert!((0.0..=1.0).contains(&filter.false_positive_rate()) && filter.size_in_bytes() > filter.table_bytes());
    let read = Filter::from_bytes_with(&filter.to_bytes(), AnyHasher::from_id).expect("a valid snapshot");
    assert_eq!(read.to_bytes(), filter.to_bytes());
    let mut merged = filter.clone();
    if merged.merge(&read).is_ok() {
        assert_eq!(merged.len(), 2 * filter.len());
        assert!(inserted.iter().all(|&hash| merged.contains(&Prehashed(hash))));
    }
    assert!(inserted.iter().all(|&hash| filter.remove(&Prehashed(hash))));
    filter.shrink();
    assert_eq!(filter.len(), before);
}

/// Recomputes the checksums of the header, of all sections that can be found, and of the trailer.
pub fn seal(bytes: &mut [u8]) {
    let checksum = xxhash_rust::xxh3::xxh3_64_with_seed;
    let header = checksum(&bytes[..56], 0);
    put(bytes, 56, header);
    let (mut at, mut all) = (HEADER, Vec::new());
    for partition in 0..1_u64 << (bytes[13] % 9) {
        if at.saturating_add(SECTION) > bytes.len() {
            return;
        }
        let (shards, length) = (number(bytes, at + 8) as usize, number(bytes, at + 16) as usize);
        let list = at + SECTION;
        // A partition without shards has its item count instead of records.
        let records = if shards == 0 && length > 0 { Some(8) } else { shards.checked_mul(RECORD) };
        let Some(tables) = records.and_then(|len| list.checked_add(len)).filter(|&end| end <= bytes.len()) else {
            return;
        };
        // The tables are located as if all were of generation 0.
        let mut start = tables;
        for shard in 0..shards {
            let depth = bytes[list + shard * RECORD + 1];
            let (f, b, column_bits) = (u64::from(bytes[11]), u64::from(bytes[12]), bytes[29].wrapping_sub(depth));
            let per_bucket = if bytes[10] == 3 { 4 * f.saturating_sub(1) } else { f * b };
            let m = u64::from(number(bytes, 24) as u32);
            // A table's checksum does not cover its padding.
            let used = (m * per_bucket).div_ceil(8).saturating_add((m * b * u64::from(column_bits)).div_ceil(8)) as usize;
            let Some(covered) = start.checked_add(used).and_then(|end| bytes.get(start..end)) else { break };
            let sum = checksum(covered, 0);
            put(bytes, list + shard * RECORD + 16, sum);
            start += used.next_multiple_of(8);
        }
        let covered = [&bytes[at..at + 24], &bytes[list..tables]].concat();
        let sum = checksum(&covered, header.wrapping_add(partition));
        put(bytes, at + 24, sum);
        // Behind the tables are lists of items or copies, and their checksum.
        let end = list.saturating_add(length).saturating_sub(8);
        if let Some(lists) = bytes.get(start..end).filter(|lists| !lists.is_empty()) {
            let sum_of_lists = checksum(lists, sum);
            if end + 8 <= bytes.len() {
                put(bytes, end, sum_of_lists);
            }
        }
        all.extend_from_slice(&sum.to_le_bytes());
        let Some(next) = list.checked_add(length) else { return };
        at = next;
    }
    if let Some(end) = bytes.len().checked_sub(8).filter(|&end| end == at) {
        let sum = checksum(&all, header);
        put(bytes, end, sum);
    }
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}
