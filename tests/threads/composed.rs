//! Threads run random operations on a shared filter. Each has its own items, so it knows exactly what must be in the filter.

use std::collections::BTreeMap;

use koel::{ElasticFilter, InsertErrorKind, MergeError, Prehashed, SharedFilter};

use super::{Random, THREADS, on_threads};

const STEPS: u64 = if cfg!(miri) { 20 } else { 250 };

/// The number of distinct items of a thread.
const ITEMS: u64 = if cfg!(miri) { 50 } else { 4000 };

/// The most copies of an item.
const COPIES: u32 = 2;

type Model = BTreeMap<u64, u32>;

/// Returns a random run of this thread's items.
fn random_items(random: &mut Random, thread: u64) -> Vec<u64> {
    let (first, len) = (random.below(ITEMS), [1, 10, 70, 200][random.below(4) as usize]);
    (first..ITEMS.min(first + len)).map(|n| n * THREADS + thread).collect()
}

/// Inserts items, and asserts that each has one copy more, or as many as before if one was refused. Returns whether one was.
fn insert(filter: &SharedFilter, model: &mut Model, random: &mut Random, items: &[u64]) -> bool {
    let hashes: Vec<u64> = items.iter().map(|item| filter.hash(item)).collect();
    let result = match random.below(3) {
        0 => filter.insert_batch(items),
        1 => filter.insert_batch(&Prehashed(&hashes)),
        _ => items.iter().try_for_each(|item| filter.insert(item)),
    };
    for item in items {
        let (before, copies) = (model.get(item).copied().unwrap_or(0), filter.count(item));
        assert!(copies == before + 1 || result.is_err() && copies == before, "{before} copies, then {copies}");
        if copies > 0 {
            model.insert(*item, copies);
        }
    }
    if let Err(error) = &result {
        assert!(matches!(error.kind(), InsertErrorKind::Limit { .. }), "{error}");
    }
    result.is_err()
}

/// Inserts items that are absent, and asserts which were. Returns whether one was refused.
fn insert_unique(filter: &SharedFilter, model: &mut Model, items: &[u64]) -> bool {
    let mut refused = false;
    for item in items {
        match filter.insert_unique(item) {
            Ok(is_new) => {
                assert_eq!(is_new, !model.contains_key(item), "{item}");
                model.entry(*item).or_insert(1);
            }
            Err(error) => {
                refused = true;
                assert!(matches!(error.kind(), InsertErrorKind::Limit { .. }), "{error}");
            }
        }
    }
    refused
}

/// Removes a copy of each item, and asserts which had one.
fn remove(filter: &SharedFilter, model: &mut Model, items: &[u64]) {
    let mut removed = vec![false; items.len()];
    filter.remove_batch(items, &mut removed);
    for (item, removed) in items.iter().zip(removed) {
        let copies = model.remove(item).unwrap_or(0);
        assert_eq!(removed, copies > 0, "{item}");
        if copies > 1 {
            model.insert(*item, copies - 1);
        }
    }
}

/// Runs one random operation and checks its results. Returns whether an item was refused, which only a memory limit may cause.
fn step(filter: &SharedFilter, model: &mut Model, random: &mut Random, thread: u64) -> bool {
    let mut items = random_items(random, thread);
    match random.below(13) {
        0..4 => {
            items.retain(|item| model.get(item).is_none_or(|&copies| copies < COPIES));
            return insert(filter, model, random, &items);
        }
        4 => return insert_unique(filter, model, &items),
        5..8 => remove(filter, model, &items),
        8 => {
            let mut found = vec![false; items.len()];
            filter.contains_batch(&items, &mut found);
            assert!(items.iter().zip(&found).all(|(item, &found)| found == model.contains_key(item)));
        }
        9 => assert!(items.iter().all(|item| filter.count(item) == model.get(item).copied().unwrap_or(0))),
        10 => filter.shrink(),
        11 => {
            let mut copy = filter.try_clone().expect("there is memory");
            let combined = if random.below(2) == 0 { copy.union(filter) } else { copy.intersect(filter) };
            // The copy may have no room for what others have inserted in the meantime.
            let is_limit =
                |error| matches!(error, MergeError::Insert(error) if matches!(error.kind(), InsertErrorKind::Limit { .. }));
            assert!(combined.is_ok() || combined.is_err_and(is_limit));
            assert!(
                model.iter().all(|(item, &copies)| copy.count(item) == copies),
                "the combination lacks changes of this thread"
            );
        }
        _ => {
            let mut bytes = Vec::new();
            filter.write_to(&mut bytes).expect("writing to a vector succeeds");
            let read = ElasticFilter::from_bytes(&bytes).expect("a written filter can be read");
            assert!(model.iter().all(|(item, &copies)| read.count(item) == copies), "the snapshot lacks changes of this thread");
        }
    }
    false
}

#[test]
fn concurrent_operations_lose_no_items() {
    for (partitions, more) in [(1, None), (4, None), (4, Some(2000))] {
        let builder = ElasticFilter::builder().false_positive_rate(1e-7).capacity(100).max_capacity(400).partitions(partitions);
        let empty = builder.clone().params().expect("valid parameters").size_in_bytes();
        let limited = more.map_or(builder.clone(), |more| builder.max_bytes(empty + more));
        let filter = limited.build_shared().expect("valid parameters");
        let (models, refused): (Vec<_>, Vec<_>) = on_threads(|thread| {
            let (mut model, mut random, mut refused) = (Model::new(), Random(thread), 0);
            for _ in 0..STEPS {
                refused += u64::from(step(&filter, &mut model, &mut random, thread));
            }
            (model, refused)
        })
        .into_iter()
        .unzip();
        assert_eq!(refused.iter().any(|&refused| refused > 0), more.is_some() && !cfg!(miri), "{refused:?}");
        let mut filter = filter.into_elastic().expect("there is memory");
        filter.assert_consistent();
        assert_eq!(filter.len(), models.iter().flat_map(BTreeMap::values).map(|&copies| copies as usize).sum::<usize>());
        for (item, copies) in models.into_iter().flatten() {
            assert_eq!(filter.count(&item), copies);
            assert!((0..copies).all(|_| filter.remove(&item)));
        }
        filter.assert_consistent();
        assert!(filter.is_empty());
    }
}
