//! Snapshots that follow each other in one buffer.

use super::*;
use koel::hash::AnyHasher;

/// Of different kinds and lengths.
fn filters() -> Vec<CuckooFilter> {
    some_kinds().enumerate().map(|(n, kind)| filled(kind, 2 << (n % 5))).collect()
}

#[test]
fn snapshots_side_by_side_are_opened_one_after_the_other() {
    let filters = filters();
    let buffer: Vec<u8> = filters.iter().flat_map(CuckooFilter::to_bytes).collect();
    let mut rest = &buffer[..];
    for filter in &filters {
        let (mut view, end) = FilterView::over_prefix(rest).expect("a snapshot");
        assert_eq!(end as u64, filter.params().snapshot_bytes());
        same(&mut view, filter);
        view.verify().expect("it is as it was written");
        assert!(view.to_filter().expect("it is right") == *filter);
        let (any, same_end) = FilterView::over_prefix_with(rest, AnyHasher::from_id).expect("a snapshot");
        assert_eq!((any.to_bytes(), same_end), (filter.to_bytes(), end));
        rest = &rest[end..];
    }
    assert!(rest.is_empty());
    let error = FilterView::over_prefix(rest).expect_err("nothing is left");
    assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::Length, 0));
}

/// What follows is not the view's: neither read nor judged.
#[test]
fn what_follows_does_not_matter() {
    for filter in filters() {
        let bytes = filter.to_bytes();
        for (more, byte) in [(0, 0), (1, 0xff), (7, 0), (8, 0xff), (1000, 0x4b)] {
            let buffer = [&bytes[..], &vec![byte; more]].concat();
            let (mut view, end) = FilterView::over_prefix(buffer).expect("a snapshot");
            assert_eq!(end, bytes.len());
            same(&mut view, &filter);
            view.verify().expect("it is as it was written");
            assert_eq!(view.into_data().len(), bytes.len() + more);
        }
    }
}

#[test]
fn a_prefix_that_is_no_snapshot_is_refused_as_ever() {
    let bytes = filled(PACKED, 16).to_bytes();
    for len in 0..bytes.len() {
        let error = FilterView::over_prefix(&bytes[..len]).expect_err("it ends too early");
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

/// A buffer of a fixed size, or the next snapshot: the message says which way to take, and that way works.
#[test]
fn longer_bytes_are_refused_with_a_remedy_that_works() {
    let (filter, next) = (filled(PACKED, 16), filled(PACKED, 30));
    let buffer = [filter.to_bytes(), next.to_bytes()].concat();
    let error = FilterView::over(&buffer).expect_err("two of them");
    let end = filter.to_bytes().len();
    assert_eq!((error.kind(), error.offset()), (SnapshotErrorKind::TrailingBytes, end as u64));
    let message = error.to_string();
    assert!(message.contains(&format!("{} more bytes follow", buffer.len() - end)), "{message}");
    assert!(message.contains("give exactly one snapshot") && message.contains("over_prefix"), "{message}");
    same(&mut FilterView::over(&buffer[..end]).expect("exactly one"), &filter);
    let (mut first, behind) = FilterView::over_prefix(&buffer).expect("a snapshot");
    assert_eq!(behind, end);
    same(&mut first, &filter);
    same(&mut FilterView::over(&buffer[behind..]).expect("the other one"), &next);
}
