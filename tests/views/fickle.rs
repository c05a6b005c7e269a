//! An `AsRef` that returns different bytes at each call must not cause undefined behavior.
//!
//! For any bytes, a view returns a result or panics with the documented message. The result depends only on the bytes returned.

use super::*;
#[cfg(feature = "std")]
use koel::{ElasticFilter, ElasticView};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
};

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Silences the panics of this thread, of which there are thousands. Those of other threads are still printed.
fn silence_panics() {
    IS_QUIET.set(true);
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !IS_QUIET.get() {
            usual(panic);
        }
    }));
}

/// Returns `honest` for `patience` calls, and then `others` in turn.
struct Fickle {
    honest: Vec<u8>,
    others: Vec<Vec<u8>>,
    /// Calls that still return the honest bytes.
    patience: Cell<usize>,
    turn: Cell<usize>,
}

impl AsRef<[u8]> for Fickle {
    fn as_ref(&self) -> &[u8] {
        if let Some(left) = self.patience.get().checked_sub(1) {
            self.patience.set(left);
            return &self.honest;
        }
        let turn = self.turn.get();
        self.turn.set(turn + 1);
        &self.others[turn % self.others.len()]
    }
}

impl Fickle {
    fn view(honest: &[u8], others: Vec<Vec<u8>>) -> FilterView<Self> {
        let data = Self { honest: honest.to_vec(), others, patience: Cell::new(usize::MAX), turn: Cell::new(0) };
        FilterView::over(data).expect("the bytes are still valid")
    }

    /// Opens a view of the bare table of a filter.
    fn bare(filter: &CuckooFilter, honest: &[u8], others: Vec<Vec<u8>>) -> FilterView<Self> {
        let data = Self { honest: honest.to_vec(), others, patience: Cell::new(usize::MAX), turn: Cell::new(0) };
        FilterView::over_table(data, filter.params(), filter.len()).expect("the bytes are still valid")
    }
}

/// The name of an operation on a view, and a function that runs it and returns its results.
type Action = (&'static str, fn(&FilterView<Fickle>, &[u64]) -> Vec<bool>);

const LOOKUPS: [Action; 7] = [
    ("contains prehashed", |view, hashes| hashes.iter().map(|&hash| view.contains(&Prehashed(hash))).collect()),
    ("contains", |view, hashes| hashes.iter().map(|hash| view.contains(hash)).collect()),
    ("count prehashed", |view, hashes| hashes.iter().map(|&hash| view.count(&Prehashed(hash)) > 0).collect()),
    ("contains_batch prehashed", |view, hashes| {
        let mut found = vec![false; hashes.len()];
        view.contains_batch(&Prehashed(hashes), &mut found);
        found
    }),
    ("contains_batch", |view, hashes| {
        let mut found = vec![false; hashes.len()];
        view.contains_batch(hashes, &mut found);
        found
    }),
    ("contains_iter", |view, hashes| view.contains_iter(hashes).map(|(_, found)| found).collect()),
    ("count_members prehashed", |view, hashes| vec![view.count_members(&Prehashed(hashes)) > 0]),
];

const OTHERS: [Action; 8] = [
    ("verify", |view, _| vec![view.verify().is_ok()]),
    ("to_filter", |view, _| vec![view.to_filter().is_ok()]),
    ("to_bytes", |view, _| vec![view.to_bytes().is_empty()]),
    ("==", |view, _| {
        let filter = CuckooFilter::from_bytes(&view.data().honest).expect("a valid snapshot");
        vec![*view == filter]
    }),
    ("measure", |view, _| vec![view.measure_false_positive_rate(100) > 0.5]),
    ("size_in_bytes", |view, _| vec![view.size_in_bytes() > 0]),
    ("display", |view, _| vec![format!("{view} {view:?}").is_empty()]),
    ("to_filter", |view, _| vec![view.to_filter().is_ok()]),
];

/// Returns the results, or `None` after the documented panic. Asserts that there is no other panic.
#[track_caller]
fn outcome((name, act): Action, view: &FilterView<Fickle>, hashes: &[u64]) -> Option<Vec<bool>> {
    let is_quiet = IS_QUIET.get();
    let caught = catch_unwind(AssertUnwindSafe(|| act(view, hashes)));
    IS_QUIET.set(false);
    let answers = match caught {
        Ok(answers) => Some(answers),
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).expect("the panic has a message");
            assert!(text.contains("the data of a view became shorter"), "{name} {}: {text}", view.kernel());
            None
        }
    };
    IS_QUIET.set(is_quiet);
    answers
}

/// Returns tables for every lookup path: small ones, and large ones whose buckets are prefetched.
fn tables() -> impl Iterator<Item = CuckooFilter> {
    let small = some_kinds().filter(|kind| kind.addressing == Addressing::AnySize).map(|kind| filled(kind, 16));
    small.chain([filled(PACKED, 200_000), filled(Kind { table: TableKind::Single, f: 8, ..PACKED }, 270_000)])
}

/// Makes the view's data return the honest bytes `patience` more times, and then the others.
fn lie(view: &FilterView<Fickle>, patience: usize) {
    view.data().patience.set(patience);
    view.data().turn.set(0);
}

#[test]
#[cfg_attr(not(panic = "unwind"), ignore = "a panic ends the process")]
fn shortened_bytes_give_the_documented_panic() {
    silence_panics();
    let mut panics = 0;
    for filter in tables() {
        let honest = filter.to_bytes();
        let lengths = [0, 1, 8, HEADER - 1, HEADER, HEADER + 1, honest.len() / 2, honest.len() - 8, honest.len() - 1];
        let hashes: Vec<u64> = hashes(&filter).into_iter().take(130).collect();
        for len in lengths {
            let mut view = Fickle::view(&honest, vec![honest[..len].to_vec()]);
            for kernel in Kernel::available() {
                view.set_kernel(kernel).expect("the kernel is available");
                for action in LOOKUPS {
                    lie(&view, 0);
                    assert_eq!(outcome(action, &view, &hashes), None, "{} {kernel}: {len} bytes", action.0);
                    // The bytes become shorter during the operation.
                    for patience in [1, 2, 3] {
                        lie(&view, patience);
                        panics += usize::from(outcome(action, &view, &hashes).is_none());
                    }
                }
            }
            for action in OTHERS {
                for patience in 0..6 {
                    lie(&view, patience);
                    panics += usize::from(outcome(action, &view, &hashes).is_none());
                }
            }
        }
    }
    IS_QUIET.set(false);
    assert!(panics > 1000, "{panics}");
}

#[test]
#[cfg_attr(not(panic = "unwind"), ignore = "a panic ends the process")]
fn shortened_bare_tables_give_the_documented_panic() {
    silence_panics();
    for filter in tables() {
        let honest = [filter.to_table(), vec![0; 4]].concat();
        let hashes: Vec<u64> = hashes(&filter).into_iter().take(130).collect();
        for len in [0, 1, honest.len() / 2, honest.len() - 8, honest.len() - 1] {
            let mut view = Fickle::bare(&filter, &honest, vec![honest[..len].to_vec()]);
            for kernel in Kernel::available() {
                view.set_kernel(kernel).expect("the kernel is available");
                for action in LOOKUPS {
                    lie(&view, 0);
                    assert_eq!(outcome(action, &view, &hashes), None, "{} {kernel}: {len} bytes", action.0);
                }
            }
            for action in OTHERS.into_iter().filter(|(name, _)| *name != "==") {
                for patience in 0..6 {
                    lie(&view, patience);
                    outcome(action, &view, &hashes);
                }
            }
        }
    }
    IS_QUIET.set(false);
}

/// With changed or longer bytes, lookups give the results of a view over those bytes; with bytes that keep changing, any result.
#[test]
fn changed_bytes_give_results_without_panics() {
    for filter in tables() {
        let honest = filter.to_bytes();
        let noise = |seed: u64, len: usize| -> Vec<u8> {
            let noise = SplitMix64(seed).take(len).map(|word| word as u8).collect::<Vec<_>>();
            [&honest[..HEADER], &noise[HEADER.min(len)..]].concat()
        };
        let all = |byte: u8| [&honest[..HEADER], &vec![byte; honest.len() - HEADER]].concat();
        let hashes: Vec<u64> = hashes(&filter).into_iter().take(130).collect();
        let longer = [noise(1, honest.len()), vec![0xff; 100]].concat();
        for other in [noise(1, honest.len()), all(0), all(0xff), longer] {
            let mut view = Fickle::view(&honest, vec![other.clone()]);
            let mut plain = FilterView::over(&other[..honest.len()]).expect("the header is unchanged");
            for kernel in Kernel::available() {
                view.set_kernel(kernel).and_then(|()| plain.set_kernel(kernel)).expect("the kernel is available");
                let expected: Vec<bool> = hashes.iter().map(|&hash| plain.contains(&Prehashed(hash))).collect();
                lie(&view, 0);
                for action in
                    LOOKUPS.into_iter().filter(|(name, _)| name.contains("prehashed") && *name != "count_members prehashed")
                {
                    assert_eq!(outcome(action, &view, &hashes).as_ref(), Some(&expected), "{} {kernel}", action.0);
                }
            }
        }
        // The bytes differ at each call, so any result is allowed.
        let mut view = Fickle::view(&honest, vec![honest.clone(), noise(2, honest.len()), all(0xff), all(0)]);
        for kernel in Kernel::available() {
            view.set_kernel(kernel).expect("the kernel is available");
            for action in LOOKUPS.into_iter().chain(OTHERS) {
                lie(&view, 1);
                assert!(outcome(action, &view, &hashes).is_some(), "{} {kernel}", action.0);
            }
        }
        // `to_filter` verifies its copy, not the source.
        lie(&view, 0);
        if let Ok(copy) = view.to_filter() {
            assert!(CuckooFilter::from_bytes(&copy.to_bytes()).is_ok());
        }
    }
}

/// Results do not depend on the bytes around the snapshot.
#[test]
fn bytes_outside_the_snapshot_do_not_matter() {
    for filter in tables() {
        let (honest, hashes) = (filter.to_bytes(), hashes(&filter));
        let surrounded_by = |byte: u8| {
            let buffer = [&[byte; 64], &honest[..], &[byte; 64]].concat();
            let mut view = FilterView::over(&buffer[64..64 + honest.len()]).expect("a valid snapshot");
            let answers = |kernel| {
                view.set_kernel(kernel).expect("the kernel is available");
                let mut found = vec![false; hashes.len()];
                view.contains_batch(&Prehashed(&hashes), &mut found);
                (found, hashes.iter().map(|&hash| view.count(&Prehashed(hash))).collect::<Vec<_>>())
            };
            Kernel::available().map(answers).collect::<Vec<_>>()
        };
        assert_eq!(surrounded_by(0), surrounded_by(0xff));
    }
}

/// A file in which another snapshot was written meanwhile, with more partitions than the one that was opened.
#[test]
#[cfg(feature = "std")]
fn a_growing_view_of_other_bytes_is_verified_without_a_panic() {
    let builder = ElasticFilter::builder().false_positive_rate(0.01);
    let mut large = builder.clone().build().expect("valid parameters");
    large.insert_iter(0..20_000u64).expect("the filter grows");
    let other = builder.build_shared().expect("valid parameters");
    for _ in 0..100 {
        (0..10u64).for_each(|item| other.insert(&item).expect("copies are always accepted"));
    }
    let (honest, mut written) = (large.to_bytes(), other.to_bytes());
    written.extend_from_slice(&honest[written.len()..]);
    for patience in 0..20 {
        let data =
            Fickle { honest: honest.clone(), others: vec![written.clone()], patience: Cell::new(usize::MAX), turn: Cell::new(0) };
        let view = ElasticView::over(data).expect("the bytes are still valid");
        view.data().patience.set(patience);
        view.verify().expect("the other bytes are valid, too");
        assert_eq!(view.len(), large.len());
        // Lookups give any results.
        std::hint::black_box((0..1000_u64).map(|item| u64::from(view.count(&item))).sum::<u64>());
    }
}
