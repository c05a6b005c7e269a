//! Filters that cannot be merged.

use super::*;
use crate::common::SplitMix64;
use koel::{AnyHasher, Builder, CuckooFilter, FilterView, MergeError, SnapshotErrorKind, StdHasher, TableKind, Xxh3};
use std::hash::RandomState;

fn builder() -> Builder {
    CuckooFilter::builder().capacity(1000).fingerprint_bits(13)
}

#[test]
fn filters_of_different_parameters_are_built_from_the_same() {
    for other in [
        builder().capacity(2000),
        builder().fingerprint_bits(14),
        builder().table(TableKind::Single),
        builder().seed(1),
        builder().addressing(koel::Addressing::PowerOfTwo),
    ] {
        let (mut ours, theirs) = (builder().build().expect("right"), other.build().expect("right"));
        let error = ours.merge(&theirs).expect_err("they differ");
        says(&error, &[&ours.params().to_string(), &theirs.params().to_string(), "build both from the same parameters"]);
        // The error has them.
        let MergeError::DifferentParams { theirs: params, .. } = error else { panic!("{error}") };
        let mut ours = CuckooFilter::new(params, Xxh3).expect("there is memory");
        ours.insert("koel").expect("there is room");
        ours.merge(&theirs).expect("they are of the same kind now");
    }
}

#[test]
fn filters_of_different_hashers_are_built_with_equal_ones() {
    let keyed = |hasher| builder().hasher(hasher).build().expect("right");
    let (mut ours, theirs) = (keyed(StdHasher::new(RandomState::new())), keyed(StdHasher::new(RandomState::new())));
    ours.insert("koel").expect("there is room");
    let error = ours.merge(&theirs).expect_err("each has keys of its own");
    assert!(matches!(error, MergeError::DifferentHasher));
    says(&error, &["same hasher", "build both with equal ones"]);
    let mut equal = keyed(ours.hasher().clone());
    equal.insert("cuckoo").expect("there is room");
    ours.merge(&equal).expect("their hashers are equal");
    assert!(ours.contains("koel") && ours.contains("cuckoo"));
    let any = builder().hasher(AnyHasher::Xxh3);
    any.clone().build().expect("right").merge(&any.build().expect("right")).expect("their hashers are equal");
}

/// A capacity of at least as many as the message says.
#[test]
fn filters_that_do_not_fit_together_are_built_larger() {
    for items in [600, 900, 1000] {
        let filled = |capacity, seed| {
            let mut filter = builder().capacity(capacity).build().expect("right");
            filter.insert_hashes(&SplitMix64(seed).take(items).collect::<Vec<_>>()).expect("they fit");
            filter
        };
        let (mut ours, theirs) = (filled(1000, 1), filled(1000, 2));
        let error = ours.merge(&theirs).expect_err("they do not fit");
        let MergeError::Full { items: both, slots, capacity, .. } = error else { panic!("{error}") };
        assert_eq!((both, slots, capacity), (2 * items, ours.slots(), ours.capacity()));
        let message = says(&error, &["build both with a capacity of at least"]);
        let enough = last_number(&message);
        assert_eq!(enough, 2 * items);
        let (mut ours, theirs) = (filled(enough, 1), filled(enough, 2));
        ours.merge(&theirs).expect("it is large enough");
        assert_eq!(ours.len(), 2 * items);
    }
}

#[test]
fn of_a_corrupt_snapshot_another_copy_is_merged() {
    let mut theirs = builder().build().expect("right");
    theirs.insert("koel").expect("there is room");
    let copy = theirs.to_bytes();
    let mut corrupt = copy.clone();
    corrupt[70] ^= 4;
    let mut ours = builder().build().expect("right");
    let error = ours.merge(&FilterView::over(&corrupt).expect("its header is right")).expect_err("it is corrupt");
    says(&error, &["the snapshot to merge is corrupt"]);
    let source = std::error::Error::source(&error).expect("why it is");
    says(&source, &["at byte", "use another copy"]);
    let MergeError::Snapshot(source) = &error else { panic!("{error}") };
    assert_eq!(source.kind(), SnapshotErrorKind::BodyChecksum);
    ours.merge(&FilterView::over(&copy).expect("a snapshot")).expect("the other copy is right");
    assert!(ours.contains("koel"));
}
