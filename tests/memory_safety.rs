//! Short tests of everything that uses `unsafe` code, for `just miri`. Miri detects every access outside of an allocation, even a
//! harmless one. Other tests check the results.

use crate::common::{Kind, SplitMix64, same_bits};
#[cfg(feature = "std")]
use crate::elastic::composed::operations as composed;
use koel::{Addressing, CuckooFilter, ElasticFilter, FilterView, Kernel, Prehashed, TableKind};
use std::{
    panic::catch_unwind,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// A small number, because Miri is slow. With it, a single table with f = 7 ends within a byte.
const BUCKETS: u64 = 10;

/// Narrow and wide packed tables, and single ones whose buckets straddle bytes.
const KINDS: [Kind; 4] = [
    Kind { table: TableKind::Packed, f: 5, b: 4, addressing: Addressing::AnySize },
    Kind { table: TableKind::Packed, f: 29, b: 4, addressing: Addressing::AnySize },
    Kind { table: TableKind::Single, f: 7, b: 3, addressing: Addressing::AnySize },
    Kind { table: TableKind::Single, f: 32, b: 4, addressing: Addressing::AnySize },
];

/// Returns an empty filter of each kind, with each kernel.
fn filters() -> impl Iterator<Item = CuckooFilter> {
    let with = |kind: Kind, kernel| kind.builder().buckets(BUCKETS).kernel(kernel).build().expect("it is available");
    KINDS.into_iter().flat_map(move |kind| Kernel::available().map(move |kernel| with(kind, kernel)))
}

/// Returns more hashes than a batch of 64 has.
fn hashes() -> Vec<u64> {
    SplitMix64(1).take(70).collect()
}

/// Inserts until an item is refused.
fn fill(filter: &mut CuckooFilter) {
    // The last insertions evict items.
    let refused = SplitMix64(2).take(200).find(|&hash| filter.insert(&Prehashed(hash)).is_err());
    assert!(refused.is_some(), "{filter}");
}

#[test]
fn changing_fixed_filters_is_memory_safe() {
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
        assert!(same_bits(&filter, &copy));
    }
}

#[test]
fn growing_and_shrinking_is_memory_safe() {
    for kernel in Kernel::available() {
        let builder = ElasticFilter::builder().false_positive_rate(0.01).capacity(1).max_capacity(500).kernel(kernel);
        let mut filter = builder.build().expect("it is available");
        let hashes: Vec<u64> = SplitMix64(3).take(400).collect();
        filter.insert_batch(&Prehashed(&hashes)).expect("the filter grows");
        assert!(filter.shards() >= 4, "{filter}");
        let mut found = [false; 400];
        filter.contains_batch(&Prehashed(&hashes), &mut found);
        assert!(found.iter().all(|&found| found));
        filter.remove_batch(&Prehashed(&hashes), &mut found);
        assert!(filter.is_empty() && found.iter().all(|&found| found));
    }
}

/// Composes all kinds of operations on growing filters with several generations.
#[test]
#[cfg(feature = "std")]
fn composed_operations_are_memory_safe() {
    // ε = 1 %, buckets of two slots, planned for one item; 300 distinct items, given by their hashes.
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

/// The bytes end at the end of their allocation, and begin at two adjacent addresses.
#[test]
fn views_read_only_their_bytes() {
    for mut filter in filters() {
        fill(&mut filter);
        let snapshot = filter.to_bytes();
        for before in 0..2 {
            let bytes = [&vec![0xff; before], &snapshot[..]].concat().into_boxed_slice();
            let mut view = FilterView::over(&bytes[before..]).expect("valid snapshot");
            view.set_kernel(filter.kernel()).expect("it is available");
            view.verify().expect("valid snapshot");
            let (mut ours, mut theirs) = ([false; 70], [true; 70]);
            filter.contains_batch(&Prehashed(&hashes()), &mut ours);
            view.contains_batch(&Prehashed(&hashes()), &mut theirs);
            assert_eq!(ours, theirs, "{filter}");
            assert!(same_bits(&CuckooFilter::from_bytes(&bytes[before..]).expect("valid snapshot"), &filter));
        }
    }
}

/// An `AsRef` whose bytes can be made fewer.
struct ShrinkingBytes(Vec<u8>, AtomicUsize);

impl AsRef<[u8]> for ShrinkingBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0[..self.1.load(Relaxed)]
    }
}

#[test]
#[cfg_attr(not(panic = "unwind"), ignore = "a panic ends the process")]
fn lookups_in_views_panic_if_bytes_are_missing() {
    for filter in filters() {
        let snapshot = filter.to_bytes();
        for fewer in [1, 9, snapshot.len()] {
            let len = snapshot.len();
            let mut view = FilterView::over(ShrinkingBytes(snapshot.clone(), len.into())).expect("valid snapshot");
            view.set_kernel(filter.kernel()).expect("it is available");
            view.data().1.store(len - fewer, Relaxed);
            assert!(catch_unwind(|| view.contains_batch(&Prehashed(&hashes()), &mut [false; 70])).is_err(), "{filter}");
        }
    }
}
