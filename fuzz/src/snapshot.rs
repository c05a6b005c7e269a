//! Bytes as a snapshot: all readers of bytes and streams give the same error, or a filter with the items that the table's bits say. All
//! queries return.
//! `just reader` compares the readers' errors with tests/reader.py on the stored inputs.

use super::{
    formulas::{Formulas, Key},
    growing,
    pieces::{Pieces, check_extent},
    repair,
    same_bits::same_bits,
    sections::is_growing,
    split_mix::SplitMix64,
};
use koel::{Contains, CuckooFilter, FilterView, Kernel, Prehashed, SnapshotError, hash::AnyHasher};
use std::{collections::BTreeMap, hint::black_box};

type Filter = CuckooFilter<AnyHasher>;
type View<'a> = FilterView<&'a [u8], AnyHasher>;

/// The most hashes of each kind that are looked up: more than a batch, and not a multiple of any vector's length.
const LOOKUPS: usize = 77;

/// [`repair::snapshot`] says how an input gives a snapshot.
pub fn check(input: &[u8]) {
    let (mut bytes, odd) = repair::snapshot(input);
    let start = odd % 8;
    bytes.splice(0..0, vec![0; start]);
    if bytes.get(start + 10).is_some_and(|&kind| is_growing(kind)) {
        growing::check(&bytes[start..], odd);
    }
    check_snapshot(&bytes[start..], odd);
}

fn check_snapshot(bytes: &[u8], odd: usize) {
    let read = read_all_ways(bytes, odd);
    if let Ok(mut view) = FilterView::over_with(bytes, AnyHasher::from_id)
        && read.is_err()
    {
        query_damaged(&mut view);
        assert_eq!(view.to_bytes(), bytes, "damaged bytes were changed");
    }
    if let Ok(view) = FilterView::over_with(bytes, AnyHasher::from_id) {
        compare_with_bare(&view, bytes);
    }
    let Ok(filter) = read else { return };
    let formulas = Formulas::of(&filter.params());
    let items = formulas.contents(bytes).expect("the table or the copies are invalid, but the snapshot is accepted");
    let mut view = FilterView::over_with(bytes, AnyHasher::from_id).expect("a valid snapshot");
    assert!(same_bits(&filter, &view) && filter.to_bytes() == bytes);
    let mut written = Vec::new();
    filter.write_to(&mut written).expect("writing to a vector succeeds");
    assert_eq!(written, bytes);
    let mut owned = filter.clone();
    for kernel in Kernel::available() {
        owned.set_kernel(kernel).expect("the kernel is available");
        view.set_kernel(kernel).expect("the kernel is available");
        check_queries(&owned, &formulas, &items);
        check_queries(&view, &formulas, &items);
    }
    check_changes(filter, &formulas, items);
}

/// Asserts that a bare table, without a header and with half of the checksum, behaves as in its snapshot.
fn compare_with_bare(view: &View<'_>, bytes: &[u8]) {
    if view.snapshot_bytes() != view.params().snapshot_bytes() {
        // A bare table cannot have copies beside it.
        return;
    }
    let bare = [&bytes[64..bytes.len() - 4], &[0xff; 4]].concat();
    let bare =
        FilterView::over_table_with(&bare[..], view.params(), view.len(), *view.hasher()).expect("the tables have equal lengths");
    let before_checksum = ..bytes.len() - 8;
    assert!(bare == *view && bare.to_bytes()[before_checksum] == bytes[before_checksum]);
    let (verified, expected) = (bare.verify(), view.verify());
    match (&verified, &expected) {
        (Ok(()), Ok(())) => assert_eq!(bare.to_bytes(), bytes),
        // The error was in the half of the checksum that a bare table does not have.
        (Ok(()), Err(error)) => assert_eq!(error.kind(), koel::SnapshotErrorKind::BodyChecksum),
        (Err(error), Err(expected)) => {
            let half = expected.kind() == koel::SnapshotErrorKind::BodyChecksum;
            assert!(half || error.kind() == expected.kind(), "{error} / {expected}");
        }
        (Err(error), Ok(())) => panic!("{error}"),
    }
    assert_eq!(verified.is_ok(), bare.to_filter().is_ok());
    for hash in SplitMix64(3).take(LOOKUPS) {
        assert_eq!(bare.count(&Prehashed(hash)), view.count(&Prehashed(hash)));
    }
}

/// Reads the bytes with every reader, asserts that the results are equal, and returns the result.
fn read_all_ways(bytes: &[u8], odd: usize) -> Result<Filter, SnapshotError> {
    let error_of = |answer: &Result<Filter, SnapshotError>| {
        answer.as_ref().err().map(|error| (error.kind(), error.offset(), error.to_string()))
    };
    let read = Filter::from_bytes_with(bytes, AnyHasher::from_id);
    let view = View::over_with(bytes, AnyHasher::from_id);
    if let Ok(view) = &view {
        let verified = view.verify().map_err(|error| (error.kind(), error.offset(), error.to_string()));
        assert_eq!(verified.err(), error_of(&read), "verify");
    }
    let prefix = View::over_prefix_with(bytes, AnyHasher::from_id);
    if bytes.get(10).is_none_or(|&kind| !is_growing(kind)) {
        check_extent(bytes, odd, read.as_ref().err(), prefix.as_ref().ok().map(|&(_, end)| end));
    }
    match (&view, &prefix) {
        (Ok(view), Ok((same, end))) => assert!(same_bits(view, same) && *end == bytes.len()),
        (Err(error), Ok((_, end))) => {
            assert_eq!((error.kind(), error.offset()), (koel::SnapshotErrorKind::TrailingBytes, *end as u64));
        }
        (Ok(_), Err(error)) => panic!("over_prefix: {error}"),
        (Err(error), Err(same)) => assert_eq!(error.to_string(), same.to_string(), "over_prefix"),
    }
    assert_eq!(error_of(&view.and_then(|view| view.to_filter())), error_of(&read), "to_filter");
    // A stream may continue behind the snapshot.
    let end = match &read {
        Err(error) if error.kind() == koel::SnapshotErrorKind::TrailingBytes => bytes.len().min(index(error.offset())),
        _ => bytes.len(),
    };
    let mut pieces = Pieces::new(bytes, odd);
    let streamed = Filter::read_from_with(&mut pieces, AnyHasher::from_id);
    if end < bytes.len() {
        let alone = Filter::from_bytes_with(&bytes[..end], AnyHasher::from_id);
        assert_eq!(error_of(&streamed), error_of(&alone), "read_from, before something else");
        let (view, _) = prefix.expect("something else follows a whole snapshot");
        assert_eq!(error_of(&view.to_filter()), error_of(&alone), "over_prefix");
        assert!(streamed.is_err() || pieces.bytes == &bytes[end..], "the wrong number of bytes was read");
    } else {
        assert_eq!(error_of(&streamed), error_of(&read), "read_from");
        assert!(streamed.is_err() || pieces.bytes.is_empty(), "bytes were left");
    }
    read
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

/// Queries of a damaged table return, possibly with wrong results.
fn query_damaged(view: &mut View<'_>) {
    let hashes: Vec<u64> = SplitMix64(1).take(LOOKUPS).collect();
    let mut found = vec![false; hashes.len()];
    for kernel in Kernel::available() {
        view.set_kernel(kernel).expect("the kernel is available");
        for &hash in &hashes {
            black_box((view.contains(&Prehashed(hash)), view.count(&Prehashed(hash)), view.contains(&hash), view.count(&hash)));
        }
        view.contains_batch(&Prehashed(&hashes), &mut found);
        view.contains_batch(&hashes, &mut found);
        black_box((view.count_members(&Prehashed(&hashes)), view.count_members(&hashes)));
        black_box(view.measure_false_positive_rate(LOOKUPS));
    }
    black_box((format!("{view} {view:?}"), view.load_factor(), view.bits_per_item(), view.distinct()));
    assert!(same_bits(view, &view.clone()));
    view.to_filter().expect_err("the table is damaged");
}

/// Asserts that single and batched lookups return what the formulas say.
pub fn check_queries(filter: &dyn Contains, formulas: &Formulas, items: &BTreeMap<Key, u32>) {
    let present = items.keys().take(LOOKUPS).map(|&key| formulas.hash(key));
    let hashes: Vec<u64> = SplitMix64(filter.len() as u64).take(LOOKUPS).chain(present).collect();
    let copies = |hash| items.get(&formulas.key(hash)).copied().unwrap_or(0);
    for &hash in &hashes {
        assert_eq!(
            (filter.contains(&Prehashed(hash)), filter.count(&Prehashed(hash))),
            (copies(hash) > 0, copies(hash)),
            "{hash:#x}"
        );
    }
    let expected: Vec<bool> = hashes.iter().map(|&hash| copies(hash) > 0).collect();
    let mut found = vec![false; hashes.len()];
    let keys: Vec<Prehashed> = hashes.iter().copied().map(Prehashed).collect();
    filter.contains_batch(&keys, &mut found);
    assert_eq!(found, expected);
    assert_eq!(filter.count_members(&keys), found.iter().filter(|&&found| found).count());
}

/// Merges, inserts and removes items, as with any other filter.
fn check_changes(mut filter: Filter, formulas: &Formulas, mut items: BTreeMap<Key, u32>) {
    let mut twice = filter.clone();
    let doubled = items.iter().map(|(&key, &copies)| Some((key, copies.checked_mul(2)?))).collect::<Option<_>>();
    assert_eq!(twice.merge(&filter).is_ok(), doubled.is_some(), "a merge may be refused only beyond the maximum count");
    if let Some(doubled) = doubled {
        check_queries(&twice, formulas, &doubled);
    }
    for hash in SplitMix64(2).take(LOOKUPS) {
        let before = filter.to_bytes();
        if filter.insert(&Prehashed(hash)).is_ok() {
            *items.entry(formulas.key(hash)).or_default() += 1;
        } else {
            assert_eq!(filter.to_bytes(), before, "a refused insertion changed something");
        }
    }
    check_queries(&filter, formulas, &items);
    assert!(Filter::from_bytes_with(&filter.to_bytes(), AnyHasher::from_id).is_ok_and(|read| same_bits(&read, &filter)));
    // Forged counts may be in the billions.
    let most = 1000;
    for (&key, &copies) in &items {
        for left in (0..copies).rev().take(most) {
            assert!(filter.remove(&Prehashed(formulas.hash(key))), "{key:?} is lost");
            assert_eq!(filter.count(&Prehashed(formulas.hash(key))), left);
        }
    }
    if items.values().any(|&copies| copies as usize > most) {
        return;
    }
    let bytes = filter.to_bytes();
    assert!(filter.is_empty() && bytes[64..bytes.len() - 8].iter().all(|&byte| byte == 0), "a drained table is not zero");
}
