//! Bytes as a snapshot of a growing filter: every reader of bytes and streams refuses them, or they give a working filter.

use super::{
    pieces::{Pieces, check_extent},
    same_bits::same_bits,
    split_mix::SplitMix64,
};
use koel::{ElasticFilter, ElasticView, Kernel, Prehashed, SnapshotError, hash::AnyHasher};

type Filter = ElasticFilter<AnyHasher>;
type View<'a> = ElasticView<&'a [u8], AnyHasher>;

/// Filters with more items are not changed, so that more inputs can be tried.
const MAX_ITEMS: usize = 3000;

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
            assert_eq!(bytes.len() as u64 - error.offset(), pieces.bytes.len() as u64);
            assert!(streamed.is_ok());
        }
        _ => assert_eq!(error_of(&streamed), error_of(&read), "read_from"),
    }
    let opened = View::over_with(bytes, AnyHasher::from_id);
    let prefix = View::over_prefix_with(bytes, AnyHasher::from_id);
    check_extent(bytes, odd, read.as_ref().err(), prefix.as_ref().ok().map(|&(_, end)| end));
    match (&opened, &prefix) {
        (Ok(view), Ok((same, end))) => assert!(view.to_bytes() == same.to_bytes() && *end == bytes.len()),
        (Err(error), Ok((view, end))) => {
            assert_eq!((error.kind(), error.offset()), (koel::SnapshotErrorKind::TrailingBytes, *end as u64));
            assert_eq!(view.to_filter().is_ok(), streamed.is_ok(), "over_prefix");
        }
        (Ok(_), Err(error)) => panic!("over_prefix: {error}"),
        (Err(error), Err(same)) => assert_eq!(error.to_string(), same.to_string(), "over_prefix"),
    }
    if let Ok(view) = &opened {
        query_unverified(view);
        let filter = view.to_filter();
        assert_eq!(filter.is_ok(), read.is_ok(), "to_filter: {:?}", filter.err());
        assert!(same_bits(&filter.ok(), &read.as_ref().ok().cloned()), "to_filter");
    }
    let verified = opened.and_then(|view| view.verify().map(|()| view));
    let view_error = verified.as_ref().err().map(|error| (error.kind(), error.to_string()));
    // A view reports errors in lists of shards before errors in tables, so only whether there is an error is compared.
    assert_eq!(view_error.is_some(), read.is_err(), "a view: {view_error:?}");
    let Ok(filter) = read else { return };
    assert!(filter.to_bytes() == bytes, "the filter is written differently");
    if let Ok(view) = verified {
        compare(view, &filter, &[]);
    }
    if filter.len() <= MAX_ITEMS {
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

/// Asserts that a view of the same bytes gives the same results as the filter, for random items and these, which are present.
fn compare(mut view: View<'_>, filter: &Filter, present: &[u64]) {
    assert_eq!((view.len(), view.shards(), view.params()), (filter.len(), filter.shards(), filter.params()));
    assert_eq!(view.distinct(), filter.distinct());
    let hashes: Vec<u64> = present.iter().copied().chain(SplitMix64(1).take(150)).collect();
    let (mut found, mut found_in_view) = (vec![false; hashes.len()], vec![false; hashes.len()]);
    for kernel in Kernel::available() {
        view.set_kernel(kernel).expect("the kernel is available");
        filter.contains_batch(&Prehashed(&hashes), &mut found);
        view.contains_batch(&Prehashed(&hashes), &mut found_in_view);
        assert_eq!(found, found_in_view);
        assert!(found[..present.len()].iter().all(|&found| found), "an item is lost");
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
    let bytes = filter.to_bytes();
    let read = Filter::from_bytes_with(&bytes, AnyHasher::from_id).expect("a valid snapshot");
    assert_eq!(read.to_bytes(), bytes);
    compare(View::over_with(&bytes, AnyHasher::from_id).expect("a valid snapshot"), &filter, &inserted);
    let mut merged = filter.clone();
    if merged.merge(&read).is_ok() {
        assert_eq!(merged.len(), 2 * filter.len());
        assert!(inserted.iter().all(|&hash| merged.contains(&Prehashed(hash))));
    }
    assert!(inserted.iter().all(|&hash| filter.remove(&Prehashed(hash))));
    filter.shrink();
    assert_eq!(filter.len(), before);
}
