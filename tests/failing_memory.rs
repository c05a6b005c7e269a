//! Growing while allocations fail: an insertion that lacks memory is refused, and nothing has changed.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    ptr,
};

use koel::{ElasticFilter, GrowErrorKind};

/// Smaller allocations never fail: they are those of the tests themselves.
const SMALLEST: usize = 1024;

thread_local! {
    /// So many more large allocations of this thread succeed; none fails if it is `None`.
    static LEFT: Cell<Option<usize>> = const { Cell::new(None) };
}

struct Failing;

#[global_allocator]
static ALLOCATOR: Failing = Failing;

/// Whether an allocation of this size must fail.
fn fails(size: usize) -> bool {
    // The thread may be ending.
    LEFT.try_with(|left| match left.get() {
        Some(0) if size >= SMALLEST => true,
        Some(more) if size >= SMALLEST => {
            left.set(Some(more - 1));
            false
        }
        _ => false,
    })
    .unwrap_or(false)
}

#[allow(unsafe_code, reason = "an allocator")]
// SAFETY: it hands on to the system's allocator, or returns null, as an allocator may.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `alloc`.
        if fails(layout.size()) { ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: it was allocated by the system's allocator.
        unsafe { System.dealloc(start, layout) }
    }
}

/// What `action` returns if its n-th large allocation and all later ones fail, and whether one did.
fn with_allocations<T>(allocations: usize, action: impl FnOnce() -> T) -> (T, bool) {
    LEFT.set(Some(allocations));
    let result = action();
    let left = LEFT.take();
    (result, left == Some(0))
}

fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

/// Every large allocation of every split fails once.
#[test]
fn a_thousand_splits_are_interrupted() {
    let builder = ElasticFilter::builder().false_positive_rate(1e-4).capacity(20_000).max_capacity(2_000_000);
    let mut filter = builder.build().expect("the parameters are right");
    let (mut refused, mut shards, mut items) = (0, filter.shards(), 0_u64);
    while refused < 1000 {
        let mut allocations = 0;
        loop {
            let before = filter.to_string();
            let (result, has_failed) = with_allocations(allocations, || filter.insert(&key(items)));
            let Err(error) = result else { break };
            assert!(has_failed);
            assert_eq!(error.kind(), GrowErrorKind::OutOfMemory);
            assert_eq!(filter.to_string(), before);
            (refused, allocations) = (refused + 1, allocations + 1);
        }
        items += 1;
        if filter.shards() > shards {
            shards = filter.shards();
            // Some of those in the shard that was split, and some of all others.
            assert!((0..items).step_by(97).all(|n| filter.contains(&key(n))), "{filter}");
        }
    }
    assert_eq!(filter.len() as u64, items);
    assert!((0..items).all(|n| filter.contains(&key(n))));
    assert!((0..items).all(|n| filter.remove(&key(n))));
    assert!(filter.is_empty());
}

/// The same for merging, joining, and building.
#[test]
fn so_are_merges_and_joins() {
    let builder = ElasticFilter::builder().false_positive_rate(1e-4).capacity(2000);
    let mut left = builder.clone().build().expect("the parameters are right");
    let mut right = builder.clone().build().expect("the parameters are right");
    left.insert_iter((0..30_000).map(key)).expect("it grows");
    right.insert_iter((30_000..90_000).map(key)).expect("it grows");
    let mut allocations = 0;
    while with_allocations(allocations, || left.merge(&right)).0.is_err() {
        assert_eq!(left.len(), 30_000);
        allocations += 1 + allocations / 4;
    }
    assert!(allocations > 20);
    assert!((0..90_000).all(|n| left.contains(&key(n))));
    // Without memory for the joined shards, there are only more of them.
    let (removed, _) = with_allocations(0, || (0..90_000).skip(100).all(|n| left.remove(&key(n))));
    assert!(removed);
    let shards = left.shards();
    assert!(with_allocations(0, || left.shrink()).0.is_err());
    left.shrink().expect("there is memory");
    assert!(left.shards() < shards && left.len() == 100);
    assert!((0..100).all(|n| left.contains(&key(n))));
    assert!(with_allocations(0, || builder.build()).0.is_err());
}
