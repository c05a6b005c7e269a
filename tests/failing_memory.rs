//! Runs every operation while allocations fail: allocation k alone, or k and all later ones, for every k. The program does not
//! abort, a refused insertion or merge changes nothing, errors can be displayed, and no inserted item is lost.
//!
//! If the program does abort, `cargo test --test failing_memory -- --nocapture` prints the operation.

#[path = "common/same_bits.rs"]
mod same_bits;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    error::Error,
    fmt::{self, Display},
    io::{self, Write},
    ops::{Range, RangeInclusive},
    path::PathBuf,
    ptr,
};

use koel::{
    Addressing, BuildError, CuckooFilter, ElasticBuilder, ElasticFilter, ElasticView, FilterView, InsertErrorKind, Kernel,
    MergeError, SnapshotError, SnapshotErrorKind, TableKind, Xxh3,
    hash::{AnyHasher, HasherId},
    pieces::SnapshotExtent,
};
use same_bits::same_bits;

/// The allocations of this thread that fail: one alone, that one and all later ones, or those of more than so many bytes.
#[derive(Clone, Copy, Debug)]
enum Failing {
    Once,
    FromThenOn,
    LargerThan(usize),
}

#[derive(Clone, Copy)]
struct State {
    failing: Failing,
    /// The number of allocations that succeed before one fails.
    left: usize,
    has_failed: bool,
    /// If set, allocations of an [`io::Error`] succeed until another allocation has failed.
    spares_io_errors: bool,
}

thread_local! {
    /// `None` while all allocations succeed.
    static STATE: Cell<Option<State>> = const { Cell::new(None) };
}

/// Allocations of `std` whose failure aborts the program: the boxed error in an [`io::Error`], the pair of its kind and the box,
/// and the system's text when it is displayed. The library checks for memory first, but one of these may still fail.
const ALLOCATIONS_OF_IO_ERRORS: [Layout; 4] = [
    Layout::new::<(io::ErrorKind, Box<dyn Error>)>(),
    Layout::new::<SnapshotError>(),
    // The library's error for a file that cannot be saved.
    Layout::new::<(PathBuf, &str, Option<io::Error>)>(),
    Layout::new::<[u8; "No such file or directory".len()]>(),
];

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Returns whether this allocation must fail, and counts it.
fn must_fail(layout: Layout) -> bool {
    // The thread-local state is gone if the thread is ending.
    STATE
        .try_with(|state| {
            let Some(mut now) = state.get() else { return false };
            if now.spares_io_errors && !now.has_failed && ALLOCATIONS_OF_IO_ERRORS.contains(&layout) {
                return false;
            }
            let fails = match now.failing {
                Failing::Once => now.left == 0 && !now.has_failed,
                Failing::FromThenOn => now.left == 0,
                Failing::LargerThan(most) => layout.size() > most,
            };
            now.left = now.left.saturating_sub(1);
            now.has_failed |= fails;
            state.set(Some(now));
            fails
        })
        .unwrap_or(false)
}

#[allow(unsafe_code, reason = "an allocator")]
// SAFETY: every call goes to the system's allocator or returns null, as an allocator may.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc`.
        if must_fail(layout) { ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        if must_fail(layout) { ptr::null_mut() } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `realloc`.
        if must_fail(layout) { ptr::null_mut() } else { unsafe { System.realloc(start, layout, size) } }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: the block was allocated by the system's allocator, with this layout.
        unsafe { System.dealloc(start, layout) }
    }
}

/// Runs `action` while `allocations` succeed before one fails. Returns its result, and whether an allocation failed.
fn with_allocations<T>(failing: Failing, allocations: usize, spares_io_errors: bool, action: impl FnOnce() -> T) -> (T, bool) {
    STATE.set(Some(State { failing, left: allocations, has_failed: false, spares_io_errors }));
    let result = action();
    let has_failed = STATE.take().is_some_and(|state| state.has_failed);
    (result, has_failed)
}

/// A sink that counts the bytes written to it and never allocates.
struct CountingSink(usize);

impl fmt::Write for CountingSink {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

impl Write for CountingSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An operation under test.
struct Operation<'a, S> {
    name: &'a str,
    /// Makes the state that the operation runs on, once per run.
    make: &'a dyn Fn() -> S,
    spares_io_errors: bool,
    may_need_no_memory: bool,
}

fn operation<'a, S>(name: &'a str, make: &'a dyn Fn() -> S) -> Operation<'a, S> {
    Operation { name, make, spares_io_errors: false, may_need_no_memory: false }
}

impl<S> Operation<'_, S> {
    /// Allows the operation to return an [`io::Error`] with a message.
    fn with_io_errors(self) -> Self {
        Self { spares_io_errors: true, ..self }
    }

    /// Allows the operation to succeed without any allocation.
    fn perhaps_without_memory(self) -> Self {
        Self { may_need_no_memory: true, ..self }
    }

    /// Runs the operation while each of its allocations fails in turn. Calls `check` with the state and the result after each run.
    fn run<T, E: Display>(self, run: impl Fn(&mut S) -> Result<T, E>, check: impl Fn(&S, Result<&T, &E>)) {
        println!("{}", self.name);
        let succeeds = run(&mut (self.make)()).is_ok();
        let mut runs = 0;
        for failing in [Failing::Once, Failing::FromThenOn] {
            for allocations in 0.. {
                let mut state = (self.make)();
                let (result, has_failed) = with_allocations(failing, allocations, self.spares_io_errors, || {
                    let result = run(&mut state);
                    if let Err(error) = &result {
                        let mut message = CountingSink(0);
                        fmt::write(&mut message, format_args!("{error}")).expect("it accepts everything");
                        assert!(message.0 > 0);
                    }
                    result
                });
                let place = || format!("{}: allocation {allocations} fails, {failing:?}", self.name);
                if succeeds {
                    assert!(result.is_ok() || has_failed, "{}", place());
                } else {
                    assert!(result.is_err(), "{}", place());
                }
                check(&state, result.as_ref());
                runs += u32::from(has_failed);
                if !has_failed {
                    assert_eq!(result.is_ok(), succeeds, "{}", place());
                    break;
                }
            }
        }
        println!("{runs} runs with a failed allocation");
        // An operation that is refused anyway may be refused before it needs memory.
        assert!(runs > 0 || !succeeds || self.may_need_no_memory, "{}: no allocation failed", self.name);
    }
}

fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
}

fn keys(items: u64) -> Vec<u64> {
    (0..items).map(key).collect()
}

fn ignore<S, T, E>(_: &S, _: Result<&T, &E>) {}

// Filters of fixed size.

fn fixed(items: u64) -> CuckooFilter {
    let mut filter = CuckooFilter::builder().capacity(400).false_positive_rate(0.01).build().expect("valid parameters");
    filter.insert_batch(&keys(items)).expect("there is room");
    filter
}

#[test]
fn fixed_filters_survive_failed_allocations() {
    let builder = CuckooFilter::builder;
    let set = keys(300);
    operation("build", &|| ()).run(|()| builder().capacity(1000).false_positive_rate(0.001).build(), ignore);
    operation("build from items", &|| ()).run(
        |()| builder().false_positive_rate(0.001).table(TableKind::Single).build_from_items(&set),
        |(), filter| assert!(filter.is_err() || set.iter().all(|item| filter.is_ok_and(|filter| filter.contains(item)))),
    );
    let filter = || fixed(300);
    let bytes = filter().to_bytes();
    let assert_unchanged = |filter: &CuckooFilter| assert!(filter.to_bytes() == bytes);
    operation("insert into a fixed filter", &filter).run(
        |filter| filter.insert_iter((300..1000).map(key)),
        |filter, _| {
            assert!(filter.len() > 300 && set.iter().all(|item| filter.contains(item)));
        },
    );
    operation("iterate over results", &filter).run(
        |filter| {
            let found = filter.contains_iter((0..300).map(key)).filter(|(_, found)| *found).count();
            if found == 300 { Ok(()) } else { Err(found) }
        },
        |filter, result| {
            assert!(result.is_ok());
            assert_unchanged(filter);
        },
    );
    operation("remove from a fixed filter", &filter).perhaps_without_memory().run(
        |filter| if (0..300).all(|n| filter.remove(&key(n))) { Ok(()) } else { Err("a lost item") },
        |filter, _| assert!(filter.is_empty()),
    );
    let other = fixed(50);
    operation("merge fixed filters", &filter).run(
        |filter| filter.merge(&other),
        |filter, merged| {
            assert_eq!(filter.len(), if merged.is_ok() { 350 } else { 300 });
            let is_out_of_memory = matches!(merged, Err(MergeError::OutOfMemory(_)));
            assert!(merged.is_ok() || is_out_of_memory && filter.to_bytes() == bytes);
        },
    );
    operation("merge into an empty fixed filter", &|| fixed(0))
        .run(|filter| filter.merge(&other), |filter, merged| assert_eq!(filter.len(), if merged.is_ok() { 50 } else { 0 }));
    let different = builder().capacity(99).false_positive_rate(0.1).build().expect("valid parameters");
    operation("merge different fixed filters", &filter)
        .run(|filter| filter.merge(&different), |filter, _| assert_unchanged(filter));
    let mut others = fixed(0);
    others.insert_iter((300..600).map(key)).expect("there is room");
    operation("merge too many", &filter).run(|filter| filter.merge(&others), |filter, _| assert_unchanged(filter));
}

/// Copies are inserted, removed, merged and read.
#[test]
fn copies_in_fixed_filters_survive_failed_allocations() {
    let filter_with_copies = || {
        let mut filter = fixed(20);
        (0..20).for_each(|_| filter.insert_iter((0..20).map(key)).map(drop).expect("copies always fit"));
        filter
    };
    let with_copies = filter_with_copies();
    let assert_unchanged = |filter: &CuckooFilter| assert!(same_bits(filter, &with_copies));
    operation("insert copies", &|| fixed(20)).run(
        |filter| filter.insert_iter((0..400).map(|n| key(n % 20))),
        |filter, _| assert!((0..20).all(|n| filter.count(&key(n)) >= 1)),
    );
    for item in [3, 1000] {
        let insert = |filter: &mut CuckooFilter| filter.insert(&key(item));
        operation("insert beside copies", &filter_with_copies).perhaps_without_memory().run(insert, |filter, inserted| {
            if inserted.is_err() {
                assert_unchanged(filter);
            }
        });
    }
    // Nearly all slots have second copies, of items that have extra copies already and of others.
    let crowded = || {
        let mut filter = CuckooFilter::builder().fingerprint_bits(12).buckets(16).build().expect("valid parameters");
        let items = (0..4).flat_map(|_| 0..14).chain((0..4).flat_map(|_| 0..4));
        filter.insert_iter(items.map(key)).expect("copies always fit");
        filter
    };
    for item in 1000..1040 {
        let insert = |filter: &mut CuckooFilter| filter.insert(&key(item));
        operation("insert between copies", &crowded).perhaps_without_memory().run(insert, |filter, inserted| {
            assert!(inserted.is_ok() || same_bits(filter, &crowded()), "{item}");
        });
    }
    operation("remove copies", &filter_with_copies).run(
        |filter| if (0..420).all(|n| filter.remove(&key(n % 20))) { Ok(()) } else { Err("a lost copy") },
        |filter, _| assert!(filter.is_empty()),
    );
    operation("clone a fixed filter", &filter_with_copies).run(
        |filter| filter.try_clone(),
        |filter, copy| {
            assert!(copy.ok().is_none_or(|copy| same_bits(copy, filter)));
            assert_unchanged(filter);
        },
    );
    operation("merge copies", &filter_with_copies).run(
        |filter| filter.merge(&with_copies),
        |filter, merged| {
            assert!(if merged.is_ok() { filter.len() == 2 * with_copies.len() } else { same_bits(filter, &with_copies) });
        },
    );
    let fewer = fixed(20);
    operation("unite copies", &|| fixed(20)).run(
        |filter| filter.union(&with_copies),
        |filter, united| assert!(if united.is_ok() { *filter == with_copies } else { same_bits(filter, &fewer) }),
    );
    operation("intersect copies", &filter_with_copies)
        .run(|filter| filter.intersect(&fewer), |filter, done| assert!(done.is_ok() && *filter == fewer));
    let bytes = with_copies.to_bytes();
    operation("read copies", &|| ())
        .run(|()| CuckooFilter::from_bytes(&bytes), |(), read| assert!(read.map_or(true, |read| same_bits(read, &with_copies))));
}

/// Returns altered, truncated, extended and forged versions of a snapshot, so that each check of a reader fails in turn.
fn damaged(bytes: &[u8]) -> Vec<Vec<u8>> {
    let end = bytes.len() - 8;
    let mut damaged: Vec<Vec<u8>> = [0, 8, 20, 70, end].map(|at| with_byte(bytes, at, bytes[at] ^ 1)).to_vec();
    damaged.extend([0, 30, 64, 80, end].map(|len| bytes[..len].to_vec()));
    damaged.push([bytes, b"more"].concat());
    // These have a valid checksum of the header.
    for (at, byte) in [(10, 7), (11, 99), (12, 77), (13, 9), (14, 200), (24, 3), (31, 99), (39, 99), (47, 99), (48, 9)] {
        let mut bytes = with_byte(bytes, at, byte);
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..56]);
        bytes[56..64].copy_from_slice(&sum.to_le_bytes());
        damaged.push(bytes);
    }
    damaged
}

fn with_byte(bytes: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] = byte;
    bytes
}

#[test]
fn snapshots_of_fixed_filters_survive_failed_allocations() {
    let filter = fixed(300);
    let bytes = filter.to_bytes();
    let check_read = |(): &(), read: Result<&CuckooFilter, &SnapshotError>| {
        assert!(read.map_or_else(|error| error.kind() == SnapshotErrorKind::OutOfMemory, |read| same_bits(read, &filter)));
    };
    operation("from_bytes", &|| ()).run(|()| CuckooFilter::from_bytes(&bytes), check_read);
    operation("read_from", &|| ()).run(|()| CuckooFilter::read_from(&bytes[..]), check_read);
    operation("view", &|| ()).perhaps_without_memory().run(|()| FilterView::over(&bytes).and_then(|view| view.verify()), ignore);
    operation("to_filter", &|| ()).run(|()| FilterView::over(&bytes)?.to_filter(), check_read);
    operation("write_to", &|| ())
        .perhaps_without_memory()
        .run(|()| filter.write_to(CountingSink(0)), |(), written| assert!(written.is_ok()));
    for (number, bytes) in damaged(&bytes).into_iter().enumerate() {
        let name = format!("damaged fixed snapshot {number}");
        operation(&name, &|| ()).run(|()| CuckooFilter::from_bytes(&bytes), ignore);
        operation(&name, &|| ())
            .perhaps_without_memory()
            .run(|()| FilterView::over(&bytes).and_then(|view| view.verify()), ignore);
        operation(&name, &|| ()).run(|()| CuckooFilter::from_bytes_with(&bytes, AnyHasher::from_id), ignore);
        operation(&name, &|| ()).with_io_errors().run(|()| CuckooFilter::from_bytes(&bytes).map_err(io::Error::from), ignore);
        operation(&name, &|| ()).perhaps_without_memory().run(|()| SnapshotExtent::new().push(&bytes).map(drop), ignore);
    }
}

/// Asserts that `run` fails, and that neither it nor the display of its error allocates.
#[track_caller]
fn assert_fails_without_allocating<T, E: Display + fmt::Debug>(name: &str, run: impl FnOnce() -> Result<T, E>) {
    let (displayed, has_allocated) = with_allocations(Failing::FromThenOn, 0, false, || {
        run().map_or_else(|error| fmt::write(&mut CountingSink(0), format_args!("{error}{error:?}")), |_| Err(fmt::Error))
    });
    assert!(displayed.is_ok() && !has_allocated, "{name}");
}

#[test]
fn refusing_parameters_does_not_allocate() {
    let builder = CuckooFilter::builder;
    // A table for `usize::MAX >> 3` items is too large for 64-bit targets, but not for 32-bit ones.
    let huge = if cfg!(target_pointer_width = "64") { usize::MAX >> 3 } else { usize::MAX / 8 * 7 };
    let refused = [
        ("neither capacity nor buckets", builder().false_positive_rate(0.01)),
        ("both capacity and buckets", builder().false_positive_rate(0.01).capacity(1).buckets(2)),
        ("neither rate nor fingerprint bits", builder().capacity(1)),
        ("both rate and fingerprint bits", builder().capacity(1).false_positive_rate(0.01).fingerprint_bits(8)),
        ("odd buckets", builder().buckets(99).fingerprint_bits(13)),
        ("many buckets", builder().buckets(u64::MAX).fingerprint_bits(13)),
        ("huge capacity", builder().capacity(usize::MAX).false_positive_rate(0.01)),
        ("huge capacity of one table", builder().capacity(huge).table(TableKind::Packed).false_positive_rate(0.01)),
        ("a rate above 1", builder().capacity(10).false_positive_rate(1.5)),
        ("a low rate", builder().capacity(10).false_positive_rate(1e-12)),
        ("a rate that is not a number", builder().capacity(10).false_positive_rate(f64::NAN)),
        ("long fingerprints", builder().capacity(10).fingerprint_bits(99)),
        ("large buckets", builder().capacity(10).false_positive_rate(0.01).bucket_size(99)),
        ("packed buckets", builder().capacity(10).false_positive_rate(0.01).bucket_size(3).table(TableKind::Packed)),
        ("powers of two", builder().buckets(100).fingerprint_bits(8).addressing(Addressing::PowerOfTwo)),
    ];
    for (name, builder) in refused {
        assert_fails_without_allocating(name, || builder.build());
    }
    assert_fails_without_allocating("name of a table", || "shelf".parse::<TableKind>());
    assert_fails_without_allocating("name of an addressing", || {
        "a very long name that is not one of the known ones".parse::<Addressing>()
    });
    assert_fails_without_allocating("name of a hasher", || "md5".parse::<AnyHasher>());
    assert_fails_without_allocating("number of a hasher", || "0x8".parse::<HasherId>());
    assert_fails_without_allocating("name of a kernel", || "mmx".parse::<Kernel>());
    let builder = || ElasticFilter::builder().false_positive_rate(0.01);
    let refused = [
        ("no rate of a growing filter", ElasticFilter::builder()),
        ("a low rate of a growing filter", builder().false_positive_rate(1e-30)),
        ("partitions of a growing filter", builder().partitions(3)),
        ("capacity above the maximum", builder().capacity(10).max_capacity(5)),
        ("huge capacity of a growing filter", builder().capacity(usize::MAX)),
        ("max_bytes of a growing filter", builder().max_bytes(10)),
    ];
    for (name, builder) in refused {
        assert_fails_without_allocating(name, || builder.build());
    }
}

// Growing filters.

/// Builds filters whose shards split at about 20 items, and which need further generations beyond 1000 items.
fn growing() -> ElasticBuilder {
    ElasticFilter::builder().false_positive_rate(0.01).capacity(1).max_capacity(1000)
}

#[track_caller]
fn assert_has_all(filter: &ElasticFilter, items: u64) {
    assert!((0..items).all(|n| filter.contains(&key(n))), "{filter}");
}

fn grown(items: u64) -> ElasticFilter {
    let mut filter = growing().build().expect("valid parameters");
    filter.insert_iter((0..items).map(key)).expect("the filter grows");
    filter
}

/// Linux grants small requests for memory that it does not have, and ends the program that uses it, but refuses a large one.
#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "only filters with 64 bits ask")]
fn a_growing_filter_that_is_larger_than_memory_is_refused_before_it_takes_any() {
    let builder = || ElasticFilter::builder().false_positive_rate(0.001).capacity(1 << 30);
    let params = builder().params().expect("the parameters are valid");
    let build = || (builder().build_shared().err(), ElasticFilter::new(params, Xxh3).err());
    let ((shared, exclusive), _) = with_allocations(Failing::LargerThan(1 << 29), 0, false, build);
    let Some(BuildError::OutOfMemory(shared)) = shared else { panic!("{shared:?}") };
    for error in [shared, exclusive.expect("the filter is larger than what can be allocated")] {
        assert!(error.bytes() > 1 << 30, "the error names the whole filter: {error}");
    }
}

/// A filter that begins with tables keeps its present ones if there is no memory for new ones.
#[test]
fn clearing_growing_filters_survives_failed_allocations() {
    let large = growing().capacity(20_000).max_capacity(100_000);
    for (builder, has_tables) in [(growing(), false), (large, true), (growing().capacity(1000), true)] {
        assert_eq!(builder.clone().build().expect("valid parameters").table_bytes() > 0, has_tables);
        let make = || {
            let mut filter = builder.clone().build().expect("valid parameters");
            filter.insert_iter((0..5000).map(key)).expect("the filter grows");
            filter
        };
        let clear = |filter: &mut ElasticFilter| {
            filter.clear();
            Ok::<(), koel::OutOfMemory>(())
        };
        operation("clear", &make).run(clear, |filter, _| {
            filter.assert_consistent();
            assert!(filter.is_empty() && !(0..5000).any(|n| filter.contains(&key(n))));
            let mut filter = filter.clone();
            filter.insert_iter((0..5000).map(key)).expect("the filter grows");
            assert_has_all(&filter, 5000);
        });
    }
}

/// Filters change from a list to tables while they grow, and back while they shrink.
#[test]
fn changing_between_list_and_tables_survives_failed_allocations() {
    let before = grown(100);
    assert_eq!(before.buckets(), 0);
    operation("insert into a filter of few items", &|| before.clone()).run(
        |filter| filter.insert_iter((100..900).chain(0..20).map(key)).map_err(|error| error.position()),
        |filter, inserted| {
            let items = 100 + inserted.map_or_else(|&position| position as u64, |_| 820);
            assert_eq!(filter.len() as u64, items);
            assert_has_all(filter, items.min(900));
            filter.assert_consistent();
            assert!(filter.buckets() > 0 || items < 900);
        },
    );
    let before = grown(400);
    assert!(before.buckets() > 0);
    let remove = |filter: &mut ElasticFilter| {
        (0..390).for_each(|n| assert!(filter.remove(&key(n)), "item {n}"));
        Ok::<(), koel::OutOfMemory>(())
    };
    operation("remove until few items are left", &|| before.clone()).run(remove, |filter, _| {
        assert_eq!(filter.len(), 10);
        assert!((390..400).all(|n| filter.contains(&key(n))), "{filter}");
        let read = ElasticFilter::from_bytes(&filter.to_bytes()).expect("valid snapshot");
        assert!(same_bits(&read, filter));
    });
}

/// Returns a filter whose first generation is full, so that there are others.
fn beyond_the_plan() -> ElasticFilter {
    grown(5000)
}

#[test]
fn insertions_into_growing_filters_survive_failed_allocations() {
    operation("build a growing filter", &|| ()).run(|()| growing().build(), ignore);
    let before = beyond_the_plan();
    let filter = || before.clone();
    operation("insert into a growing filter", &filter).run(
        |filter| filter.insert_iter((5000..6000).map(key)).map_err(|error| error.position()),
        |filter, inserted| {
            let items = 5000 + inserted.map_or_else(|&position| position as u64, |_| 1000);
            assert_eq!(filter.len() as u64, items);
            assert_has_all(filter, items);
        },
    );
    let more = (5000..6000).map(key).collect::<Vec<_>>();
    operation("insert a batch into a growing filter", &filter).run(
        |filter| filter.insert_batch(&more),
        |filter, inserted| {
            assert!(inserted.err().is_none_or(|error| matches!(error.kind(), InsertErrorKind::OutOfMemory { .. })));
            let items = 5000 + inserted.map_or_else(|error| error.position() as u64, |()| 1000);
            assert_has_all(filter, items);
        },
    );
    operation("insert unordered", &filter).run(
        |filter| filter.insert_unordered(&more),
        |filter, inserted| {
            assert!(inserted.is_ok() == (filter.len() == 6000));
            assert_has_all(filter, inserted.map_or_else(|error| 5000 + error.position() as u64, |()| 6000));
        },
    );
    operation("insert copies", &filter)
        .run(|filter| (0..100).try_for_each(|_| filter.insert(&7_u8)), |filter, _| assert_has_all(filter, 5000));
    let limited = growing().max_bytes(before.size_in_bytes()).build().expect("valid parameters");
    operation("insert up to a limit", &|| limited.clone()).run(
        |filter| filter.insert_iter((0..100_000).map(key)).map(drop),
        |filter, _| assert_has_all(filter, filter.len() as u64),
    );
}

#[test]
fn removals_from_growing_filters_survive_failed_allocations() {
    let before = beyond_the_plan();
    let filter = || before.clone();
    operation("remove from a growing filter", &filter).run(
        |filter| if (100..5000).all(|n| filter.remove(&key(n))) { Ok(()) } else { Err("a lost item") },
        |filter, removed| {
            assert!(removed.is_ok() && filter.len() == 100);
            assert_has_all(filter, 100);
        },
    );
    let underfull = {
        let mut filter = filter();
        (1000..5000).for_each(|n| assert!(filter.remove(&key(n))));
        filter
    };
    let shrink = |filter: &mut ElasticFilter| {
        filter.shrink();
        Ok::<(), koel::OutOfMemory>(())
    };
    operation("shrink", &|| underfull.clone()).run(shrink, |filter, _| {
        assert_eq!(filter.len(), 1000);
        assert_has_all(filter, 1000);
    });
}

#[test]
fn copying_and_merging_growing_filters_survives_failed_allocations() {
    let before = beyond_the_plan();
    let bytes = before.to_bytes();
    let filter = || before.clone();
    let assert_unchanged = |filter: &ElasticFilter| assert!(filter.to_bytes() == bytes);
    operation("try_clone", &filter).run(
        |filter| filter.try_clone(),
        |filter, copy| {
            assert!(copy.ok().is_none_or(|copy| copy.to_bytes() == bytes));
            assert_unchanged(filter);
        },
    );
    let mut other = growing().build().expect("valid parameters");
    other.insert_iter((5000..5500).map(key)).expect("the filter grows");
    let smaller = grown(1000);
    operation("merge growing filters", &|| smaller.clone()).run(
        |filter| filter.merge(&other),
        |filter, merged| {
            if merged.is_ok() {
                assert_eq!(filter.len(), 1500);
                assert!((0..1000).chain(5000..5500).all(|n| filter.contains(&key(n))));
            } else {
                assert!(filter.to_bytes() == smaller.to_bytes());
            }
        },
    );
    let different = growing().seed(1).build().expect("valid parameters");
    operation("merge different growing filters", &filter)
        .run(|filter| filter.merge(&different), |filter, _| assert_unchanged(filter));
    operation("iterate over results of a growing filter", &filter).run(
        |filter| {
            let found = filter.contains_iter((0..5000).map(key)).filter(|(_, found)| *found).count();
            if found == 5000 { Ok(()) } else { Err(found) }
        },
        |_, result| assert!(result.is_ok()),
    );
}

fn assert_same(filter: &ElasticFilter, expected: &ElasticFilter) {
    assert!(same_bits(filter, expected));
    filter.assert_consistent();
}

/// Reads and writes a filter with this many copies of each item.
fn read_and_write_copies(with_copies: &ElasticFilter, items: u64, copies: u64) {
    let bytes = with_copies.to_bytes();
    let check_read =
        |(): &(), read: Result<&ElasticFilter, &SnapshotError>| read.map_or((), |read| assert_same(read, with_copies));
    operation("growing from_bytes with copies", &|| ()).run(|()| ElasticFilter::from_bytes(&bytes), check_read);
    operation("growing read_from with copies", &|| ()).run(|()| ElasticFilter::read_from(&bytes[..]), check_read);
    operation("growing view of copies", &|| ()).run(
        |()| {
            let view = ElasticView::over(&bytes)?;
            assert!((0..items).all(|n| u64::from(view.count(&key(n))) >= copies));
            view.verify()
        },
        ignore,
    );
    operation("write copies", &|| ())
        .perhaps_without_memory()
        .run(|()| with_copies.write_to(CountingSink(0)), |(), written| assert!(written.is_ok()));
    operation("snapshot_index of copies", &|| vec![0; bytes.len()]).run(
        |copy| with_copies.snapshot_index().map(|index| with_copies.read_snapshot(&index, 0, copy)),
        |copy, read| assert!(read.is_err() || *copy == bytes),
    );
}

/// Merges a filter with itself, and with one that has a single copy of each item.
fn merge_copies(with_copies: &ElasticFilter, fewer: &ElasticFilter) {
    operation("merge copies in growing filters", &|| with_copies.clone()).run(
        |filter| filter.merge(with_copies),
        |filter, merged| {
            if merged.is_ok() { assert_eq!(filter.len(), 2 * with_copies.len()) } else { assert_same(filter, with_copies) }
        },
    );
    operation("unite copies in growing filters", &|| fewer.clone()).run(
        |filter| filter.union(with_copies),
        |filter, united| if united.is_ok() { assert_eq!(filter.len(), with_copies.len()) } else { assert_same(filter, fewer) },
    );
    operation("intersect growing filters with copies", &|| with_copies.clone()).run(
        |filter| filter.intersect(fewer),
        |filter, done| if done.is_ok() { assert_eq!(filter.len(), fewer.len()) } else { assert_same(filter, with_copies) },
    );
    // The other one has items in later generations.
    operation("intersect with a growing filter with copies", &|| fewer.clone())
        .run(|filter| filter.intersect(with_copies), |filter, _| assert_same(filter, fewer));
}

/// Copies are inserted, moved out of full shards, removed, merged, written and read.
#[test]
fn copies_in_growing_filters_survive_failed_allocations() {
    let filter_with_copies = |items: u64, copies: u64| {
        let mut filter = growing().build().expect("valid parameters");
        (0..items * copies).for_each(|n| filter.insert(&key(n / copies)).expect("copies always fit"));
        filter
    };
    // The largest filter has several generations.
    for (items, copies) in [(30, 20), (400, 2), (3000, 3)] {
        let with_copies = filter_with_copies(items, copies);
        let assert_unchanged = |filter: &ElasticFilter| assert_same(filter, &with_copies);
        for more in [key(0), key(items - 1), key(items), 5, 6] {
            operation("insert beside copies in a growing filter", &|| with_copies.clone()).perhaps_without_memory().run(
                |filter| filter.insert(&more),
                |filter, inserted| {
                    if inserted.is_ok() {
                        assert_eq!(filter.len(), with_copies.len() + 1);
                    } else {
                        assert_unchanged(filter);
                    }
                },
            );
        }
        operation("remove copies from a growing filter", &|| with_copies.clone()).run(
            |filter| if (0..items * copies).all(|n| filter.remove(&key(n / copies))) { Ok(()) } else { Err("a lost copy") },
            |filter, _| assert!(filter.is_empty()),
        );
        operation("clone copies", &|| with_copies.clone()).run(
            |filter| filter.try_clone(),
            |filter, copy| {
                assert!(copy.ok().is_none_or(|copy| same_bits(copy, filter)));
                assert_unchanged(filter);
            },
        );
        operation("clear copies", &|| with_copies.clone()).run(
            |filter| {
                filter.clear();
                Ok::<(), koel::OutOfMemory>(())
            },
            |filter, _| {
                filter.assert_consistent();
                assert!(filter.is_empty() && filter.count(&key(0)) == 0);
            },
        );
        read_and_write_copies(&with_copies, items, copies);
        if items < 3000 {
            merge_copies(&with_copies, &filter_with_copies(items, 1));
        }
    }
    operation("insert copies into a growing filter", &|| growing().build().expect("valid parameters"))
        .run(|filter| filter.insert_iter((0..1200).map(|n| key(n / 3))), |filter, _| filter.assert_consistent());
}

#[test]
fn insertions_that_allocate_survive_failed_allocations() {
    // These insertions split a shard or add a generation.
    let mut filter = grown(0);
    for items in 0..1500 {
        let before = filter.clone();
        let (inserted, allocates) = with_allocations(Failing::Once, 0, false, || filter.insert(&key(items)));
        if inserted.is_err() {
            filter.insert(&key(items)).expect("there is memory");
        }
        if allocates {
            let bytes = before.to_bytes();
            operation("insert one item that needs memory", &|| before.clone()).run(
                |filter| filter.insert(&key(items)),
                |filter, inserted| match inserted {
                    Ok(()) => assert_has_all(filter, items + 1),
                    Err(_) => assert!(filter.to_bytes() == bytes, "{items}"),
                },
            );
        }
    }
}

#[test]
fn snapshots_of_growing_filters_survive_failed_allocations() {
    let filter = grown(3000);
    let bytes = filter.to_bytes();
    let check_read = |(): &(), read: Result<&ElasticFilter, &SnapshotError>| {
        let is_out_of_memory = |error: &SnapshotError| error.kind() == SnapshotErrorKind::OutOfMemory;
        assert!(read.map_or_else(is_out_of_memory, |read| read.to_bytes() == bytes));
    };
    operation("growing from_bytes", &|| ()).run(|()| ElasticFilter::from_bytes(&bytes), check_read);
    operation("growing read_from", &|| ()).run(|()| ElasticFilter::read_from(&bytes[..]), check_read);
    operation("growing view", &|| ()).run(|()| ElasticView::over(&bytes).and_then(|view| view.verify()), ignore);
    operation("growing to_filter", &|| ()).run(|()| ElasticView::over(&bytes)?.to_filter(), check_read);
    operation("growing write_to", &|| ()).perhaps_without_memory().run(|()| filter.write_to(CountingSink(0)), ignore);
    operation("snapshot_index", &|| vec![0; bytes.len()]).run(
        |copy| filter.snapshot_index().map(|index| filter.read_snapshot(&index, 0, copy)),
        |copy, read| assert!(read.is_err() || *copy == bytes),
    );
    for (number, bytes) in damaged(&bytes).into_iter().enumerate() {
        let name = format!("damaged growing snapshot {number}");
        operation(&name, &|| ()).run(|()| ElasticFilter::from_bytes(&bytes), ignore);
        operation(&name, &|| ()).run(|()| ElasticView::over(&bytes).and_then(|view| view.verify()), ignore);
        operation(&name, &|| ()).run(|()| ElasticFilter::from_bytes_with(&bytes, AnyHasher::from_id), ignore);
        operation(&name, &|| ()).perhaps_without_memory().run(|()| SnapshotExtent::new().push(&bytes).map(drop), ignore);
    }
}

fn shared() -> koel::SharedFilter {
    grown(2000).into_shared().expect("there is memory")
}

fn assert_shared_has_all(filter: &koel::SharedFilter, items: u64) {
    assert!((0..items).all(|n| filter.contains(&key(n))));
}

#[test]
fn conversions_of_shared_filters_survive_failed_allocations() {
    operation("build_shared", &|| ()).run(|()| growing().build_shared().map(drop), ignore);
    // A failed conversion returns the filter in its error.
    operation("into_shared", &|| (Some(grown(2000)), None)).run(
        |(filter, converted)| match filter.take().expect("it is here").into_shared() {
            Ok(shared) => {
                *converted = Some(shared);
                Ok(())
            }
            Err(unconverted) => {
                *filter = Some(unconverted);
                Err("there is no memory")
            }
        },
        |(filter, converted), _| {
            filter.iter().for_each(|filter| assert_has_all(filter, 2000));
            converted.iter().for_each(|filter| assert_shared_has_all(filter, 2000));
            assert!(filter.is_some() != converted.is_some());
        },
    );
    operation("into_elastic", &|| (Some(shared()), None)).run(
        |(filter, converted)| match filter.take().expect("it is here").into_elastic() {
            Ok(elastic) => {
                *converted = Some(elastic);
                Ok(())
            }
            Err(unconverted) => {
                *filter = Some(unconverted);
                Err("there is no memory")
            }
        },
        |(filter, converted), _| {
            filter.iter().for_each(|filter| assert_shared_has_all(filter, 2000));
            converted.iter().for_each(|filter| assert_has_all(filter, 2000));
            assert!(filter.is_some() != converted.is_some());
        },
    );
}

#[test]
fn shared_filters_survive_failed_allocations() {
    operation("insert into a shared filter", &shared).run(
        |filter| (2000..3000).map(key).try_for_each(|item| filter.insert(&item)),
        |filter, inserted| {
            assert_shared_has_all(filter, filter.len() as u64);
            assert!(inserted.is_err() || filter.len() == 3000);
        },
    );
    let more = (2000..3000).map(key).collect::<Vec<_>>();
    operation("insert a batch into a shared filter", &shared).run(
        |filter| filter.insert_batch(&more),
        |filter, inserted| {
            assert_shared_has_all(filter, if inserted.is_ok() { 3000 } else { 2000 });
        },
    );
    operation("remove from a shared filter", &shared).run(
        |filter| if (100..2000).all(|n| filter.remove(&key(n))) { Ok(()) } else { Err("a lost item") },
        |filter, removed| {
            assert!(removed.is_ok() && filter.len() == 100);
            assert_shared_has_all(filter, 100);
        },
    );
    let shrink = |filter: &mut koel::SharedFilter| {
        filter.shrink();
        Ok::<(), koel::OutOfMemory>(())
    };
    let underfull = || {
        let mut filter = beyond_the_plan();
        (1000..5000).for_each(|n| assert!(filter.remove(&key(n))));
        filter.into_shared().expect("there is memory")
    };
    operation("shrink a shared filter", &underfull).run(shrink, |filter, _| assert_shared_has_all(filter, 1000));
    let clear = |filter: &mut koel::SharedFilter| {
        filter.clear();
        Ok::<(), koel::OutOfMemory>(())
    };
    operation("clear a shared filter", &shared).run(clear, |filter, _| assert!(filter.is_empty()));
    operation("write a shared filter", &shared)
        .run(|filter| filter.write_to(CountingSink(0)), |filter, _| assert_shared_has_all(filter, 2000));
}

#[test]
fn copying_and_merging_shared_filters_survives_failed_allocations() {
    let filled = |items: Range<u64>| {
        let filter = growing().max_capacity(4000).partitions(4).build_shared().expect("valid parameters");
        filter.insert_iter(items.map(key)).expect("the filter grows");
        filter
    };
    let (before, other) = (filled(0..1000), filled(500..1500));
    let bytes = before.to_bytes();
    let make = || before.try_clone().expect("there is memory");
    let check = |filter: &koel::SharedFilter, is_done: bool, items: Range<u64>, lengths: RangeInclusive<usize>| {
        if is_done {
            assert!(lengths.contains(&filter.len()) && items.clone().all(|n| filter.contains(&key(n))));
        } else {
            assert!(filter.to_bytes() == bytes);
        }
    };
    operation("try_clone a shared filter", &make).run(
        |filter| filter.try_clone(),
        |filter, copy| {
            assert!(copy.ok().is_none_or(|copy| copy.to_bytes() == bytes));
            assert!(filter.to_bytes() == bytes);
        },
    );
    operation("merge shared filters", &make)
        .run(|filter| filter.merge(&other), |filter, merged| check(filter, merged.is_ok(), 0..1500, 2000..=2000));
    // Few items look like others.
    operation("unite shared filters", &make)
        .run(|filter| filter.union(&other), |filter, united| check(filter, united.is_ok(), 0..1500, 1450..=1500));
    operation("intersect shared filters", &make)
        .run(|filter| filter.intersect(&other), |filter, done| check(filter, done.is_ok(), 500..1000, 500..=550));
}

// Other formats.

#[cfg(all(feature = "metrohash", target_endian = "little"))]
#[test]
fn files_of_go_survive_failed_allocations() {
    use koel::go::{self, MetroHash64};
    let filter = |table, f| {
        let builder = CuckooFilter::builder().hasher(MetroHash64).seed(1337).table(table).fingerprint_bits(f);
        let mut filter = builder.addressing(Addressing::PowerOfTwo).capacity(500).build().expect("valid parameters");
        filter.insert_batch(&keys(400)).expect("there is room");
        filter
    };
    for filter in [filter(TableKind::Packed, 13), filter(TableKind::Single, 8)] {
        let bytes = go::encode(&filter).expect("compatible with Go");
        operation("go::encode", &|| ())
            .run(|()| go::encode(&filter), |(), file| assert!(file.is_err() || file.ok() == Some(&bytes)));
        operation("go::decode", &|| ()).run(|()| go::decode(&bytes), ignore);
        let read = go::decode(&bytes).expect("valid file");
        operation("encode a Go filter", &|| ()).run(|()| read.encode(), ignore);
        operation("insert into a Go filter", &|| read.clone()).perhaps_without_memory().run(
            |filter| (400..500).map(key).try_for_each(|item| filter.insert(&item)),
            |filter, _| assert!((0..400).all(|n| filter.contains(&key(n)))),
        );
        let mut damaged = [0, 9, 12, 13, 14, 17].map(|at| with_byte(&bytes, at, 99)).to_vec();
        damaged.extend([
            vec![],
            bytes[..15].to_vec(),
            bytes[..40].to_vec(),
            [&bytes[..], &[0]].concat(),
            with_byte(&bytes, 30, 255),
        ]);
        for bytes in damaged {
            operation("damaged Go file", &|| ()).run(|()| go::decode(&bytes).map(drop), ignore);
        }
    }
    let other = fixed(300);
    operation("encode a filter that Go does not have", &|| ()).run(|()| go::encode(&other), ignore);
}

#[cfg(feature = "redisbloom")]
fn redisbloom_filter() -> CuckooFilter<koel::redisbloom::RedisBloomHash> {
    let builder = CuckooFilter::builder().hasher(koel::redisbloom::RedisBloomHash).table(TableKind::Single).fingerprint_bits(8);
    let mut filter = builder.addressing(Addressing::PowerOfTwo).capacity(400).build().expect("valid parameters");
    filter.insert_iter((0..300_u32).map(u32::to_le_bytes)).expect("there is room");
    filter
}

#[cfg(feature = "redisbloom")]
#[test]
fn dumps_of_redisbloom_survive_failed_allocations() {
    use koel::redisbloom::{Loader, RedisBloomFilter};
    let fixed = redisbloom_filter();
    let filter = RedisBloomFilter::from_filter(&fixed).expect("compatible with RedisBloom");
    let dump = filter.to_dump();
    let check_read = |(): &(), read: Result<&RedisBloomFilter, &SnapshotError>| {
        assert!(read.is_err() || read.is_ok_and(|read| *read == filter && read.to_dump() == dump));
    };
    operation("from_dump", &|| ()).run(|()| RedisBloomFilter::from_dump(&dump), check_read);
    operation("read_dump", &|| ()).run(|()| RedisBloomFilter::read_dump(&dump[..]), check_read);
    operation("write_dump", &|| ())
        .perhaps_without_memory()
        .run(|()| filter.write_dump(CountingSink(0)), |(), written| assert!(written.is_ok()));
    operation("iterate over chunks", &|| ()).perhaps_without_memory().run(
        |()| {
            let lengths = filter.chunks().map(|(_, bytes)| bytes.len()).sum::<usize>();
            let first = filter.chunk_after(0, 1).map_or(0, |(_, bytes)| bytes.len());
            if (first, lengths) == (38, dump.len() - 32) { Ok(()) } else { Err(lengths) }
        },
        |(), result| assert!(result.is_ok()),
    );
    operation("from_filter", &|| ()).run(|()| RedisBloomFilter::from_filter(&fixed), ignore);
    operation("RedisBloom's to_filter", &|| ()).run(|()| filter.to_filter(), ignore);
    operation("compact", &|| filter.clone()).perhaps_without_memory().run(
        |filter| {
            let removed = (0..300_u32).filter(|n| filter.remove(&n.to_le_bytes())).count();
            filter.compact();
            if removed == 300 { Ok(()) } else { Err(removed) }
        },
        |filter, removed| assert!(removed.is_ok() && filter.is_empty()),
    );
    let chunks: Vec<_> = filter.chunks().map(|(iterator, bytes)| (iterator, bytes.to_owned())).collect();
    let loader = || Loader::new(chunks[0].0, &chunks[0].1).expect("valid header");
    operation("load chunks", &|| Some(loader())).run(
        |loader| {
            let mut taken = loader.take().expect("it is here");
            taken.load(chunks[1].0, &chunks[1].1)?;
            taken.finish()
        },
        |_, read| assert!(read.is_err() || read.is_ok_and(|read| *read == filter && read.to_dump() == dump)),
    );
    operation("load no chunks", &|| Some(loader())).run(|loader| loader.take().expect("it is here").finish(), ignore);
    let other = self::fixed(300);
    operation("convert a filter that RedisBloom does not have", &|| ()).run(|()| RedisBloomFilter::from_filter(&other), ignore);
    for at in [0, 8, 16, 24, 40, 48, 49, 52] {
        let bytes = with_byte(&dump, at, 99);
        operation("damaged dump", &|| ()).run(|()| RedisBloomFilter::from_dump(&bytes).map(drop), ignore);
    }
    for len in [0, 3, 20, 60, dump.len() - 1] {
        operation("truncated dump", &|| ()).run(|()| RedisBloomFilter::from_dump(&dump[..len]).map(drop), ignore);
    }
}

/// Most serde formats allocate, and abort the program if that fails. postcard does not allocate if it reads and writes slices.
#[cfg(feature = "serde")]
#[test]
fn serde_survives_failed_allocations() {
    let (fixed, growing) = (fixed(300), grown(1000));
    let (fixed_bytes, growing_bytes) =
        (postcard::to_allocvec(&fixed).expect("it can be written"), postcard::to_allocvec(&growing).expect("it can be written"));
    operation("serialize a fixed filter", &|| vec![0; fixed_bytes.len()]).run(
        |buffer| postcard::to_slice(&fixed, buffer).map(drop),
        |buffer, written| assert!(written.is_err() || *buffer == fixed_bytes),
    );
    operation("deserialize a fixed filter", &|| ()).run(|()| postcard::from_bytes::<CuckooFilter>(&fixed_bytes), ignore);
    operation("serialize a growing filter", &|| vec![0; growing_bytes.len()]).run(
        |buffer| postcard::to_slice(&growing, buffer).map(drop),
        |buffer, written| assert!(written.is_err() || *buffer == growing_bytes),
    );
    operation("deserialize a growing filter", &|| ()).run(|()| postcard::from_bytes::<ElasticFilter>(&growing_bytes), ignore);
    let damaged = with_byte(&fixed_bytes, 9, 99);
    operation("deserialize a damaged filter", &|| ()).run(|()| postcard::from_bytes::<CuckooFilter>(&damaged), ignore);
}

/// Lets allocation k and all later ones fail, for every k, in each insertion that allocates, until a thousand have been refused.
#[test]
fn a_thousand_interrupted_splits_lose_nothing() {
    let builder = ElasticFilter::builder().false_positive_rate(1e-4).capacity(4000).max_capacity(400_000);
    let mut filter = builder.build().expect("valid parameters");
    let (mut refused, mut shards, mut items) = (0, filter.shards(), 0_u64);
    while refused < 1000 {
        let mut allocations = 0;
        loop {
            let before = filter.to_string();
            let (result, has_failed) = with_allocations(Failing::FromThenOn, allocations, false, || filter.insert(&key(items)));
            let Err(error) = result else { break };
            assert!(has_failed);
            assert!(matches!(error.kind(), InsertErrorKind::OutOfMemory { .. }));
            assert_eq!(filter.to_string(), before);
            (refused, allocations) = (refused + 1, allocations + 1);
        }
        items += 1;
        if filter.shards() > shards {
            shards = filter.shards();
            // Every 97th item is enough: some are in the new shards, and some in the others.
            assert!((0..items).step_by(97).all(|n| filter.contains(&key(n))), "{filter}");
        }
    }
    assert_eq!(filter.len() as u64, items);
    assert!((0..items).all(|n| filter.contains(&key(n))));
    assert!((0..items).all(|n| filter.remove(&key(n))));
    assert!(filter.is_empty());
}

/// The allocator fails the requested allocations and reports it.
#[test]
fn the_allocator_fails_the_requested_allocations() {
    for failing in [Failing::Once, Failing::FromThenOn] {
        let reserve = || {
            let mut vector = Vec::<u8>::new();
            vector.try_reserve_exact(1).is_ok()
        };
        let (results, has_failed) = with_allocations(failing, 1, false, || [reserve(), reserve(), reserve()]);
        assert_eq!(results, [true, false, matches!(failing, Failing::Once)]);
        assert!(has_failed);
        assert!(!with_allocations(failing, 3, false, || [reserve(), reserve(), reserve()]).1);
    }
}

/// Tests with files; WebAssembly has no folder for temporary ones.
#[cfg(not(target_family = "wasm"))]
mod files {
    use std::{fs, path::Path, process};

    use super::*;

    /// A file that is deleted on drop.
    struct File(PathBuf);

    impl File {
        fn create(name: &str, bytes: &[u8]) -> Self {
            let file = Self(std::env::temp_dir().join(format!("koel-failing-{}-{name}", process::id())));
            fs::write(&file.0, bytes).expect("it can be written");
            file
        }

        fn bytes(&self) -> Vec<u8> {
            fs::read(&self.0).expect("it can be read")
        }
    }

    impl AsRef<Path> for File {
        fn as_ref(&self) -> &Path {
            &self.0
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            fs::remove_file(&self.0).ok();
        }
    }

    /// Checks that `save` replaces a file by one of `bytes`, or fails and leaves it unchanged.
    fn check_save<T, E: Display>(name: &str, bytes: &[u8], save: impl Fn(&File) -> Result<T, E>) {
        operation(&format!("save {name}"), &|| File::create(name, b"old"))
            .with_io_errors()
            .run(|file| save(file), |file, saved| assert!(file.bytes() == if saved.is_ok() { bytes } else { b"old" }));
    }

    /// Returns a path that does not exist.
    fn missing_path() -> PathBuf {
        File::create("nothing", b"").0.join("nothing")
    }

    #[test]
    fn saving_and_loading_fixed_filters_survives_failed_allocations() {
        let filter = fixed(300);
        let bytes = filter.to_bytes();
        check_save("a fixed filter", &bytes, |file| filter.save(file));
        // Without memory for a message with the path, the error is the system's. (`std` allocates to display it.)
        let save = |path: &mut PathBuf| {
            filter.save(path).map_err(|error| {
                let is_out_of_memory = error.kind() == io::ErrorKind::OutOfMemory;
                let has_reason = is_out_of_memory || error.raw_os_error().is_some() || error.get_ref().is_some();
                if has_reason { "a reason" } else { "a kind alone" }
            })
        };
        operation("save into a missing folder", &|| missing_path().join("f.koel"))
            .with_io_errors()
            .run(save, |_, saved| assert_eq!(saved, Err(&"a reason")));
        operation("save over a folder", &std::env::temp_dir).with_io_errors().run(|folder| filter.save(folder), ignore);
        let file = File::create("fixed", &bytes);
        operation("load a fixed filter", &|| ()).run(
            |()| CuckooFilter::load(&file),
            |(), read| {
                assert!(
                    read.map_or_else(|error| error.kind() == SnapshotErrorKind::OutOfMemory, |read| same_bits(read, &filter))
                );
            },
        );
        for bytes in damaged(&bytes) {
            let file = File::create("damaged fixed", &bytes);
            operation("load a damaged fixed filter", &|| ()).run(|()| CuckooFilter::load(&file), ignore);
        }
        operation("load a missing file", &missing_path).with_io_errors().run(
            |path| CuckooFilter::load(path),
            |_, read| assert!(read.is_err_and(|error| error.io_kind() == Some(io::ErrorKind::NotFound))),
        );
    }

    #[test]
    fn saving_and_loading_growing_filters_survives_failed_allocations() {
        let filter = grown(3000);
        let bytes = filter.to_bytes();
        check_save("a growing filter", &bytes, |file| filter.save(file));
        let shared = grown(3000).into_shared().expect("there is memory");
        check_save("a shared filter", &bytes, |file| shared.save(file));
        let file = File::create("growing", &bytes);
        operation("load a growing filter", &|| ()).run(
            |()| ElasticFilter::load(&file),
            |(), read| {
                let is_out_of_memory = |error: &SnapshotError| error.kind() == SnapshotErrorKind::OutOfMemory;
                assert!(read.map_or_else(is_out_of_memory, |read| read.to_bytes() == bytes));
            },
        );
        for bytes in damaged(&bytes) {
            let file = File::create("damaged growing", &bytes);
            operation("load a damaged growing filter", &|| ()).run(|()| ElasticFilter::load(&file), ignore);
        }
    }

    #[cfg(all(feature = "metrohash", target_endian = "little"))]
    #[test]
    fn saving_go_files_survives_failed_allocations() {
        let builder = CuckooFilter::builder().hasher(koel::go::MetroHash64).seed(1337).fingerprint_bits(8);
        let mut filter = builder.addressing(Addressing::PowerOfTwo).capacity(500).build().expect("valid parameters");
        filter.insert_batch(&keys(400)).expect("there is room");
        let bytes = koel::go::encode(&filter).expect("compatible with Go");
        let read = koel::go::decode(&bytes).expect("valid file");
        check_save("a Go filter", &bytes, |file| read.save(file));
    }

    #[cfg(feature = "redisbloom")]
    #[test]
    fn saving_redisbloom_dumps_survives_failed_allocations() {
        let filter =
            koel::redisbloom::RedisBloomFilter::from_filter(&super::redisbloom_filter()).expect("compatible with RedisBloom");
        let dump = filter.to_dump();
        check_save("a dump", &dump, |file| filter.save_dump(file));
    }
}
