//! Views of growing filters, which query snapshots in place.

use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::snapshots::{kinds, small};
use crate::common::{filled, key};
use koel::{Contains, ElasticFilter, ElasticView, Kernel, Prehashed, SnapshotErrorKind as Kind, Xxh3};

/// Returns the hashes of all items of the filter, and of at least as many absent ones.
fn hashes(filter: &ElasticFilter) -> Vec<u64> {
    (0..2 * filter.len() as u64 + 100).map(|n| filter.hash(&key(n))).collect()
}

#[test]
fn a_view_gives_the_results_of_its_filter() {
    for filter in kinds() {
        let bytes = filter.to_bytes();
        // The bytes may have any alignment.
        let shifted = [&[0], &bytes[..]].concat();
        let mut view = ElasticView::over(&shifted[1..]).unwrap_or_else(|error| panic!("{filter}: {error}"));
        assert_eq!((view.len(), view.shards(), view.params()), (filter.len(), filter.shards(), filter.params()));
        assert_eq!((view.is_empty(), view.buckets_per_lookup()), (filter.is_empty(), filter.buckets_per_lookup()));
        let (rate, again) = (filter.false_positive_rate(), view.false_positive_rate());
        assert!((rate - again).abs() <= 1e-12 * rate);
        let hashes = hashes(&filter);
        let (mut found, mut found_in_view) = (vec![false; hashes.len()], vec![false; hashes.len()]);
        filter.contains_batch(&Prehashed(&hashes), &mut found);
        for kernel in Kernel::available() {
            view.set_kernel(kernel).expect("the kernel is available");
            assert_eq!(view.kernel(), kernel);
            view.contains_batch(&Prehashed(&hashes), &mut found_in_view);
            assert_eq!(found, found_in_view, "{filter}, {kernel}");
            for (&hash, &found) in hashes.iter().zip(&found) {
                assert_eq!(
                    (view.contains(&Prehashed(hash)), view.count(&Prehashed(hash))),
                    (found, filter.count(&Prehashed(hash)))
                );
            }
        }
        let measured = [view.measure_false_positive_rate(10_000), filter.measure_false_positive_rate(10_000)];
        assert!((measured[0] - measured[1]).abs() < 1e-12);
        view.verify().expect("a valid snapshot");
        assert_eq!(view.to_filter().expect("a valid snapshot").to_bytes(), bytes);
        assert!(view.size_in_bytes() > bytes.len() && view.table_bytes() == bytes.len());
        assert_eq!(*view.data(), bytes);
        assert_eq!(view.into_data(), bytes);
    }
}

#[test]
fn a_view_looks_up_items_and_implements_contains() {
    fn lookups(filter: &(impl Contains<str> + ?Sized)) -> [bool; 2] {
        ["alice", "mallory"].map(|name| filter.contains(name))
    }
    let mut filter = filled(small(), 300);
    filter.insert("alice").expect("the filter grows");
    let view = ElasticView::over(filter.to_bytes()).expect("a valid snapshot");
    assert_eq!(lookups(&view), [true, false]);
    let mut found = [false; 2];
    view.contains_batch(&["alice", "mallory"], &mut found);
    assert_eq!(found, [true, false]);
    assert_eq!((view.count("alice"), view.count_members(&["alice", "mallory"])), (1, 1));
    assert_eq!(view.contains_iter(["mallory", "alice"]).collect::<Vec<_>>(), [("mallory", false), ("alice", true)]);
    let any: &dyn Contains = &view;
    assert_eq!((any.len(), any.size_in_bytes()), (301, view.size_in_bytes()));
    assert!(view.to_string().starts_with("301 items in "), "{view}");
    assert!(format!("{view:?}").contains("len: 301"));
}

#[test]
fn snapshots_can_be_stored_back_to_back() {
    let [first, second] = [200, 3000].map(|items| filled(small(), items).to_bytes());
    let both = [&first[..], &second].concat();
    let (view, end) = ElasticView::over_prefix(&both[..]).expect("two snapshots");
    assert_eq!((view.len(), end), (200, first.len()));
    let (view, end) = ElasticView::over_prefix(&both[end..]).expect("the second snapshot");
    assert_eq!((view.len(), end), (3000, second.len()));
    let error = ElasticView::over(&both).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (Kind::TrailingBytes, first.len() as u64));
    let other = ElasticView::over_with(&first, |_| None::<Xxh3>).map(drop);
    assert_eq!(other.unwrap_err().kind(), Kind::Hasher);
}

#[test]
fn truncated_bytes_are_refused() {
    let bytes = filled(small().partitions(2), 5000).to_bytes();
    for len in (0..300).chain((300..bytes.len()).step_by(397)).chain(bytes.len() - 20..bytes.len()) {
        let error = ElasticView::over(&bytes[..len]).unwrap_err();
        assert!(error.kind() == Kind::Length && error.offset() == len as u64, "{len}: {error}");
    }
}

/// Opening validates the header, the lists of shards and the trailer; `verify` validates the tables.
#[test]
fn every_flipped_bit_is_detected_in_place() {
    let bytes = filled(ElasticFilter::builder().false_positive_rate(0.001).capacity(10).max_capacity(300), 100).to_bytes();
    let mut opened = 0;
    for bit in 0..8 * bytes.len() {
        let mut altered = bytes.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        let expected = ElasticFilter::from_bytes(&altered).unwrap_err();
        match ElasticView::over(&altered) {
            Err(error) => assert_eq!(error.to_string(), expected.to_string(), "bit {bit}"),
            Ok(view) => {
                opened += 1;
                assert_eq!(view.verify().unwrap_err().to_string(), expected.to_string(), "bit {bit}");
                assert_eq!(view.to_filter().unwrap_err().kind(), expected.kind());
            }
        }
    }
    assert!(opened > 4 * bytes.len(), "too few altered snapshots could be opened");
}

/// Bytes that change: `honest` until `is_honest` is cleared, and `other` from then on.
struct Fickle {
    honest: Vec<u8>,
    other: Vec<u8>,
    is_honest: Cell<bool>,
}

impl AsRef<[u8]> for Fickle {
    fn as_ref(&self) -> &[u8] {
        if self.is_honest.get() { &self.honest } else { &self.other }
    }
}

#[test]
#[cfg_attr(not(panic = "unwind"), ignore = "a panic ends the process")]
fn changing_bytes_give_any_result_or_a_clear_panic() {
    let filter = filled(small(), 2000);
    let (bytes, hashes) = (filter.to_bytes(), hashes(&filter));
    let others = [bytes[..bytes.len() - 1].to_vec(), Vec::new(), vec![0xff; bytes.len()], vec![0x5a; 2 * bytes.len()]];
    for other in others {
        let is_shorter = other.len() < bytes.len();
        let data = Fickle { honest: bytes.clone(), other, is_honest: Cell::new(true) };
        let mut view = ElasticView::over(data).expect("the bytes are still valid");
        view.data().is_honest.set(false);
        for kernel in Kernel::available() {
            view.set_kernel(kernel).expect("the kernel is available");
            let mut found = vec![false; hashes.len()];
            let outcomes = [
                catch_unwind(AssertUnwindSafe(|| view.contains_batch(&Prehashed(&hashes), &mut found))),
                catch_unwind(AssertUnwindSafe(|| {
                    std::hint::black_box(hashes.iter().map(|&hash| view.count(&Prehashed(hash))).sum::<u32>());
                    std::hint::black_box(hashes.iter().filter(|&&hash| view.contains(&Prehashed(hash))).count());
                })),
            ];
            for outcome in outcomes {
                assert_eq!(outcome.is_err(), is_shorter);
                let Err(panic) = outcome else { continue };
                let text = panic.downcast_ref::<&str>().map(ToString::to_string);
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).expect("the panic has a message");
                assert!(text.contains("the data of a view became shorter"), "{text}");
            }
        }
    }
}
