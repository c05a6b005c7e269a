//! A little of everything that has `unsafe` code beneath it, short enough for Miri, which sees a read or write outside of an
//! allocation even where nothing comes of it. `just miri` runs this; the other tests ask for the answers.

use crate::common::{Kind, SplitMix64};
#[cfg(feature = "std")]
use crate::elastic::composed::operations as composed;
use koel::{Addressing, CuckooFilter, ElasticFilter, FilterView, Kernel, Prehashed, TableKind};
use std::{
    panic::catch_unwind,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Few, since Miri takes its time. A single table with f = 7 ends within a byte.
const BUCKETS: u64 = 10;

/// Narrow and wide packed tables, and single ones whose buckets straddle bytes.
const KINDS: [Kind; 4] = [
    Kind { table: TableKind::Packed, f: 5, b: 4, addressing: Addressing::AnySize },
    Kind { table: TableKind::Packed, f: 29, b: 4, addressing: Addressing::AnySize },
    Kind { table: TableKind::Single, f: 7, b: 3, addressing: Addressing::AnySize },
    Kind { table: TableKind::Single, f: 32, b: 4, addressing: Addressing::AnySize },
];

/// Every kind with every kernel.
fn filters() -> impl Iterator<Item = CuckooFilter> {
    let with = |kind: Kind, kernel| kind.builder().buckets(BUCKETS).kernel(kernel).build().expect("it is available");
    KINDS.into_iter().flat_map(move |kind| Kernel::available().map(move |kernel| with(kind, kernel)))
}

/// More than a batch of the kernels.
fn hashes() -> Vec<u64> {
    SplitMix64(1).take(70).collect()
}

/// Fills it until it refuses.
fn fill(filter: &mut CuckooFilter) {
    // Before it is full, it has to make room.
    let refused = SplitMix64(2).take(200).find(|&hash| filter.insert(&Prehashed(hash)).is_err());
    assert!(refused.is_some(), "{filter}");
}

#[test]
fn filters_are_changed() {
    for mut filter in filters() {
        filter.insert_batch(&Prehashed(&hashes()[..20])).expect("there is room");
        fill(&mut filter);
        let mut found = [false; 70];
        filter.contains_batch(&Prehashed(&hashes()), &mut found);
        assert!(found[..20].iter().all(|&found| found), "{filter}");
        assert!(
            hashes()[..20].iter().all(|&hash| filter.contains(&Prehashed(hash)) && filter.remove(&Prehashed(hash))),
            "{filter}"
        );
        let copy = filter.clone();
        filter.clear();
        filter.merge(&copy).expect("there is room");
        assert!(filter == copy);
    }
}

/// Every shard is an allocation of its own.
#[test]
fn a_filter_grows_and_shrinks() {
    for kernel in Kernel::available() {
        let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(1).max_capacity(500).kernel(kernel);
        let mut filter = builder.build().expect("it is available");
        let hashes: Vec<u64> = SplitMix64(3).take(400).collect();
        filter.insert_batch(&Prehashed(&hashes)).expect("it grows");
        assert!(filter.shards() >= 4, "{filter}");
        let mut found = [false; 400];
        filter.contains_batch(&Prehashed(&hashes), &mut found);
        assert!(found.iter().all(|&found| found));
        filter.remove_batch(&Prehashed(&hashes), &mut found);
        assert!(filter.is_empty() && found.iter().all(|&found| found));
    }
}

/// All kinds of operations on a growing filter that has several generations, in a few of their orders.
#[test]
#[cfg(feature = "std")]
fn operations_are_composed() {
    // ε = 1 %, buckets of two slots, planned for one item; items by their hashes, 300 different ones.
    let header = [3, 4, 0, 0, 0, 0, 1, 0];
    let (insert, remove, swap, merge, share, reread) = (0, 27, 37, 41, 51, 55);
    let steps = [
        [insert, 0, 1, 4],
        [share, 0, 0, 0],
        [remove, 9, 1, 3],
        [insert, 90, 0, 4],
        [reread, 3, 0, 0],
        [swap, 0, 0, 0],
        [insert, 180, 2, 4],
        [merge, 0, 0, 0],
    ];
    composed::check(&[&header[..], steps.as_flattened()].concat(), composed::Size::LARGE, &[]);
}

/// The bytes end where their allocation does, and begin at every address.
#[test]
fn views_read_no_byte_beyond_theirs() {
    for mut filter in filters() {
        fill(&mut filter);
        let snapshot = filter.to_bytes();
        for before in 0..2 {
            let bytes = [&vec![0xff; before], &snapshot[..]].concat().into_boxed_slice();
            let mut view = FilterView::over(&bytes[before..]).expect("a snapshot");
            view.set_kernel(filter.kernel()).expect("it is available");
            view.verify().expect("it is as it was written");
            let (mut ours, mut theirs) = ([false; 70], [true; 70]);
            filter.contains_batch(&Prehashed(&hashes()), &mut ours);
            view.contains_batch(&Prehashed(&hashes()), &mut theirs);
            assert_eq!(ours, theirs, "{filter}");
            assert!(CuckooFilter::from_bytes(&bytes[before..]).expect("a snapshot") == filter);
        }
    }
}

/// An `AsRef` that returns fewer bytes the second time.
struct Shrinking(Vec<u8>, AtomicUsize);

impl AsRef<[u8]> for Shrinking {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1.load(Relaxed)]
    }
}

#[test]
#[cfg_attr(not(panic = "unwind"), ignore = "a panic ends the process")]
fn views_notice_that_bytes_are_gone() {
    for filter in filters() {
        let snapshot = filter.to_bytes();
        for fewer in [1, 9, snapshot.len()] {
            let len = snapshot.len();
            let mut view = FilterView::over(Shrinking(snapshot.clone(), len.into())).expect("a snapshot");
            view.set_kernel(filter.kernel()).expect("it is available");
            view.data().1.store(len - fewer, Relaxed);
            assert!(catch_unwind(|| view.contains_batch(&Prehashed(&hashes()), &mut [false; 70])).is_err(), "{filter}");
        }
    }
}
