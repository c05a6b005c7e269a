//! Views that own or share their bytes, and so have no lifetime.

use super::*;
use crate::common::same_bits;
use std::{rc::Rc, sync::Arc};

/// A service that keeps a view, without a lifetime.
struct Service<D> {
    seen: FilterView<D>,
}

impl<D: AsRef<[u8]>> Service<D> {
    fn new(data: D) -> Self {
        Self { seen: FilterView::over(data).expect("a valid snapshot") }
    }

    fn has_seen(&self, hash: u64) -> bool {
        self.seen.contains(&Prehashed(hash))
    }
}

/// Asserts that a view over `data` gives the results of `filter`, and returns the data.
fn check_service<D: AsRef<[u8]>>(data: D, filter: &CuckooFilter) -> D {
    let mut service = Service::new(data);
    for hash in hashes(filter) {
        assert_eq!(service.has_seen(hash), filter.contains(&Prehashed(hash)));
    }
    assert_same(&mut service.seen, filter);
    assert_eq!(service.seen.data().as_ref(), filter.to_bytes());
    let expected = size_of::<FilterView<D>>() + service.seen.params().table_bytes() + 8;
    assert_eq!(service.seen.size_in_bytes(), expected);
    service.seen.into_data()
}

#[test]
fn every_owner_of_bytes_can_be_queried() {
    for kind in [PACKED, Kind { table: TableKind::Single, f: 9, b: 3, ..PACKED }] {
        let filter = filled(kind, 300);
        let bytes = filter.to_bytes();
        let start = bytes.as_ptr();
        let bytes = check_service(bytes, &filter);
        assert_eq!(bytes.as_ptr(), start, "the bytes were copied");
        check_service(&bytes, &filter);
        check_service(&bytes[..], &filter);
        check_service(bytes.clone().into_boxed_slice(), &filter);
        check_service(Rc::<[u8]>::from(&bytes[..]), &filter);
        check_service(std::borrow::Cow::Borrowed(&bytes[..]), &filter);
        let shared: Arc<[u8]> = bytes.into();
        assert_eq!(Arc::strong_count(&check_service(shared.clone(), &filter)), 2);
        assert_eq!(Arc::strong_count(&shared), 1, "the view was not dropped");
    }
}

#[test]
fn views_of_shared_bytes_can_be_cloned_and_sent() {
    fn is_independent<T: Send + Sync + Clone + 'static>(_: &T) {}
    let filter = filled(PACKED, 300);
    let view = FilterView::over(Arc::<[u8]>::from(filter.to_bytes())).expect("a valid snapshot");
    is_independent(&view);
    let (other, hashes) = (view.clone(), hashes(&filter));
    assert_eq!(Arc::strong_count(view.data()), 2);
    drop(view);
    let expected = filter.count_members(&Prehashed(&hashes));
    if cfg!(not(target_family = "wasm")) {
        let thread = std::thread::spawn(move || other.count_members(&Prehashed(&hashes)));
        assert_eq!(thread.join().expect("the thread does not panic"), expected);
    }
}

/// An owned view supports everything that a borrowed one does.
#[test]
fn owned_views_can_be_compared_and_copied() {
    let filter = filled(PACKED, 64);
    let view = FilterView::over(filter.to_bytes()).expect("a valid snapshot");
    let borrowed = FilterView::over(view.data()).expect("a valid snapshot");
    assert!(same_bits(&view, &filter));
    assert!(same_bits(&filter, &view));
    assert!(same_bits(&view, &borrowed));
    assert!(same_bits(&view.to_filter().expect("a valid snapshot"), &filter));
    assert!(format!("{view:?}").contains("len: 192") && format!("{:?}", view.data()).len() > 100);
}

#[test]
fn bytes_that_cannot_be_opened_are_refused_for_every_owner() {
    let mut bytes = filled(PACKED, 16).to_bytes();
    bytes[20] ^= 1;
    let kinds = [
        FilterView::over(bytes.clone()).map(drop),
        FilterView::over(Arc::<[u8]>::from(&bytes[..])).map(drop),
        FilterView::over_prefix(bytes.into_boxed_slice()).map(drop),
    ];
    for refused in kinds {
        assert_eq!(refused.expect_err("a bit was flipped").kind(), SnapshotErrorKind::HeaderChecksum);
    }
}
