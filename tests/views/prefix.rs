//! Several snapshots in one buffer.

use super::*;
use crate::common::same_bits;
use koel::hash::AnyHasher;

/// Returns filters of different kinds and sizes.
fn filters() -> Vec<CuckooFilter> {
    some_kinds().enumerate().map(|(n, kind)| filled(kind, 2 << (n % 5))).collect()
}

#[test]
fn snapshots_in_one_buffer_are_opened_in_order() {
    let filters = filters();
    let buffer: Vec<u8> = filters.iter().flat_map(CuckooFilter::to_bytes).collect();
    let mut rest = &buffer[..];
    for filter in &filters {
        let (mut view, end) = FilterView::over_prefix(rest).expect("a valid snapshot");
        assert_eq!(end as u64, filter.params().snapshot_bytes());
        assert_same(&mut view, filter);
        view.verify().expect("the bytes are unchanged");
        assert!(same_bits(&view.to_filter().expect("a valid snapshot"), filter));
        let (any, same_end) = FilterView::over_prefix_with(rest, AnyHasher::from_id).expect("a valid snapshot");
        assert_eq!((any.to_bytes(), same_end), (filter.to_bytes(), end));
        rest = &rest[end..];
    }
    assert!(rest.is_empty());
    let error = FilterView::over_prefix(rest).expect_err("no bytes are left");
    assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::Length, 0));
}

/// A view ignores the bytes behind its snapshot.
#[test]
fn bytes_behind_the_snapshot_are_ignored() {
    for filter in filters() {
        let bytes = filter.to_bytes();
        for (more, byte) in [(0, 0), (1, 0xff), (7, 0), (8, 0xff), (1000, 0x4b)] {
            let buffer = [&bytes[..], &vec![byte; more]].concat();
            let (mut view, end) = FilterView::over_prefix(buffer).expect("a valid snapshot");
            assert_eq!(end, bytes.len());
            assert_same(&mut view, &filter);
            view.verify().expect("the bytes are unchanged");
            assert_eq!(view.into_data().len(), bytes.len() + more);
        }
    }
}

#[test]
fn a_prefix_that_is_not_a_snapshot_is_refused() {
    let bytes = filled(PACKED, 16).to_bytes();
    for len in 0..bytes.len() {
        let error = FilterView::over_prefix(&bytes[..len]).expect_err("the bytes are truncated");
        assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::Length, len as u64));
    }
    for bit in 0..8 * HEADER {
        let mut damaged = [&bytes[..], &[0; 100]].concat();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = FilterView::over_prefix(&damaged).expect_err("a bit was flipped");
        let alone = FilterView::over(&damaged[..bytes.len()]).expect_err("a bit was flipped");
        assert_eq!((error.kind(), error.to_string()), (alone.kind(), alone.to_string()));
    }
}

/// The message names two remedies, for a buffer that is too long and for one with several snapshots. Both work.
#[test]
fn trailing_bytes_are_refused_with_remedies_that_work() {
    let (filter, next) = (filled(PACKED, 16), filled(PACKED, 30));
    let buffer = [filter.to_bytes(), next.to_bytes()].concat();
    let error = FilterView::over(&buffer).expect_err("there are two snapshots");
    let end = filter.to_bytes().len();
    assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::TrailingBytes, end as u64));
    let message = error.to_string();
    assert!(message.contains(&format!("{} more bytes follow", buffer.len() - end)), "{message}");
    assert!(message.contains("give exactly one snapshot") && message.contains("over_prefix"), "{message}");
    assert_same(&mut FilterView::over(&buffer[..end]).expect("exactly one snapshot"), &filter);
    let (mut first, behind) = FilterView::over_prefix(&buffer).expect("a valid snapshot");
    assert_eq!(behind, end);
    assert_same(&mut first, &filter);
    assert_same(&mut FilterView::over(&buffer[behind..]).expect("the second snapshot"), &next);
}
