//! Every operation while allocations fail: the k-th alone, and the k-th and all later ones, for every k from the first byte on.
//! The program is not aborted; an operation that fails has changed nothing, and its error is displayed; what was inserted is found.
//!
//! An abort names the operation with `cargo test --test failing_memory -- --nocapture`.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    error::Error,
    fmt::{self, Display},
    io::{self, Write},
    path::PathBuf,
    ptr,
};

use koel::{
    Addressing, CuckooFilter, ElasticBuilder, ElasticFilter, ElasticView, FilterView, InsertErrorKind, Kernel, SnapshotError,
    SnapshotErrorKind, TableKind,
    hash::{AnyHasher, HasherId},
    pieces::SnapshotExtent,
};

/// Which allocations of this thread fail.
#[derive(Clone, Copy, Debug)]
enum Failing {
    Once,
    FromThenOn,
}

#[derive(Clone, Copy)]
struct State {
    failing: Failing,
    /// This many more allocations succeed.
    left: usize,
    has_failed: bool,
    /// Whether the allocations of an [`io::Error`] succeed, until another has failed.
    spares_io_errors: bool,
}

thread_local! {
    /// None fails if it is `None`.
    static STATE: Cell<Option<State>> = const { Cell::new(None) };
}

/// `std` boxes the error in an [`io::Error`], and the pair of kind and box, allocates the system's reason to display it, and aborts
/// the program if it cannot. The library checks first that there is memory, but one of the allocations that follow may still fail.
const ALLOCATIONS_OF_IO_ERRORS: [Layout; 4] = [
    Layout::new::<(io::ErrorKind, Box<dyn Error>)>(),
    Layout::new::<SnapshotError>(),
    // The error of a file that cannot be saved.
    Layout::new::<(PathBuf, &str, Option<io::Error>)>(),
    Layout::new::<[u8; "No such file or directory".len()]>(),
];

struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Whether this allocation must fail.
fn fails(layout: Layout) -> bool {
    // The thread may be ending.
    STATE
        .try_with(|state| {
            let Some(mut now) = state.get() else { return false };
            if now.spares_io_errors && !now.has_failed && ALLOCATIONS_OF_IO_ERRORS.contains(&layout) {
                return false;
            }
            let fails = match now.failing {
                Failing::Once => now.left == 0 && !now.has_failed,
                Failing::FromThenOn => now.left == 0,
            };
            now.left = now.left.saturating_sub(1);
            now.has_failed |= fails;
            state.set(Some(now));
            fails
        })
        .unwrap_or(false)
}

#[allow(unsafe_code, reason = "an allocator")]
// SAFETY: it hands on to the system's allocator, or returns null, as an allocator may.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `alloc`.
        if fails(layout) { ptr::null_mut() } else { unsafe { System.alloc(layout) } }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `alloc_zeroed`.
        if fails(layout) { ptr::null_mut() } else { unsafe { System.alloc_zeroed(layout) } }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `realloc`.
        if fails(layout) { ptr::null_mut() } else { unsafe { System.realloc(start, layout, size) } }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: it was allocated by the system's allocator.
        unsafe { System.dealloc(start, layout) }
    }
}

/// What `action` returns while this many allocations succeed before one fails, and whether one did.
fn with_allocations<T>(failing: Failing, allocations: usize, spares_io_errors: bool, action: impl FnOnce() -> T) -> (T, bool) {
    STATE.set(Some(State { failing, left: allocations, has_failed: false, spares_io_errors }));
    let result = action();
    let has_failed = STATE.take().is_some_and(|state| state.has_failed);
    (result, has_failed)
}

/// Takes words, and allocates nothing.
struct Nowhere(usize);

impl fmt::Write for Nowhere {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One line of the table: what is done, and to what.
struct Operation<'a, S> {
    name: &'a str,
    /// What it is done to, anew each time.
    make: &'a dyn Fn() -> S,
    spares_io_errors: bool,
}

fn operation<'a, S>(name: &'a str, make: &'a dyn Fn() -> S) -> Operation<'a, S> {
    Operation { name, make, spares_io_errors: false }
}

impl<S> Operation<'_, S> {
    /// It may end in an [`io::Error`] with words.
    fn with_io_errors(self) -> Self {
        Self { spares_io_errors: true, ..self }
    }

    /// Does it while each of its allocations fails. Calls `check` with what it was done to, and with what it gave.
    fn run<T, E: Display>(self, run: impl Fn(&mut S) -> Result<T, E>, check: impl Fn(&S, Result<&T, &E>)) {
        println!("{}", self.name);
        let usual = run(&mut (self.make)()).is_ok();
        let mut runs = 0;
        for failing in [Failing::Once, Failing::FromThenOn] {
            for allocations in 0.. {
                let mut state = (self.make)();
                let (result, has_failed) = with_allocations(failing, allocations, self.spares_io_errors, || {
                    let result = run(&mut state);
                    if let Err(error) = &result {
                        let mut words = Nowhere(0);
                        fmt::write(&mut words, format_args!("{error}")).expect("it takes all");
                        assert!(words.0 > 0);
                    }
                    result
                });
                let place = || format!("{}: allocation {allocations} fails, {failing:?}", self.name);
                if usual {
                    assert!(result.is_ok() || has_failed, "{}", place());
                } else {
                    assert!(result.is_err(), "{}", place());
                }
                check(&state, result.as_ref());
                runs += u32::from(has_failed);
                if !has_failed {
                    assert_eq!(result.is_ok(), usual, "{}", place());
                    break;
                }
            }
        }
        println!("failed {runs} times");
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
    let mut filter = CuckooFilter::builder().capacity(400).false_positive_rate(0.01).build().expect("right");
    filter.insert_batch(&keys(items)).expect("there is room");
    filter
}

#[test]
fn filters_of_fixed_size() {
    let builder = CuckooFilter::builder;
    let set = keys(300);
    operation("build", &|| ()).run(|()| builder().capacity(1000).false_positive_rate(0.001).build(), ignore);
    operation("build from items", &|| ()).run(
        |()| builder().false_positive_rate(0.001).table(TableKind::Single).build_from_items(&set),
        |(), filter| assert!(filter.is_err() || set.iter().all(|item| filter.is_ok_and(|filter| filter.contains(item)))),
    );
    let filter = || fixed(300);
    let bytes = filter().to_bytes();
    let is_whole = |filter: &CuckooFilter| assert!(filter.to_bytes() == bytes);
    operation("insert into a fixed filter", &filter).run(
        |filter| filter.insert_iter((300..1000).map(key)),
        |filter, _| {
            assert!(filter.len() > 300 && set.iter().all(|item| filter.contains(item)));
        },
    );
    operation("iterate over answers", &filter).run(
        |filter| {
            let found = filter.contains_iter((0..300).map(key)).filter(|(_, found)| *found).count();
            if found == 300 { Ok(()) } else { Err(found) }
        },
        |filter, answer| {
            assert!(answer.is_ok());
            is_whole(filter);
        },
    );
    operation("remove from a fixed filter", &filter).run(
        |filter| if (0..300).all(|n| filter.remove(&key(n))) { Ok(()) } else { Err("a lost item") },
        |filter, _| assert!(filter.is_empty()),
    );
    let other = fixed(50);
    operation("merge fixed filters", &filter).run(
        |filter| filter.merge(&other),
        |filter, merged| {
            assert_eq!(filter.len(), if merged.is_ok() { 350 } else { 300 });
            assert!(merged.is_ok() || filter.to_bytes() == bytes);
        },
    );
    operation("merge into an empty fixed filter", &|| fixed(0))
        .run(|filter| filter.merge(&other), |filter, merged| assert_eq!(filter.len(), if merged.is_ok() { 50 } else { 0 }));
    let different = builder().capacity(99).false_positive_rate(0.1).build().expect("right");
    operation("merge different fixed filters", &filter).run(|filter| filter.merge(&different), |filter, _| is_whole(filter));
    let mut others = fixed(0);
    others.insert_iter((300..600).map(key)).expect("as many as in the filter");
    operation("merge too many", &filter).run(|filter| filter.merge(&others), |filter, _| is_whole(filter));
    // Copies: counted one by one, removed, merged, written and read.
    let copied = || {
        let mut filter = fixed(20);
        (0..20).for_each(|_| filter.insert_iter((0..20).map(key)).map(drop).expect("any number of copies"));
        filter
    };
    let with_copies = copied();
    let is_whole = |filter: &CuckooFilter| assert!(*filter == with_copies);
    operation("insert copies", &|| fixed(20)).run(
        |filter| filter.insert_iter((0..400).map(|n| key(n % 20))),
        |filter, _| assert!((0..20).all(|n| filter.count(&key(n)) >= 1)),
    );
    for item in [3, 1000] {
        let insert = |filter: &mut CuckooFilter| filter.insert(&key(item));
        operation("insert beside copies", &copied).run(insert, |filter, inserted| {
            if inserted.is_err() {
                is_whole(filter);
            }
        });
    }
    operation("remove copies", &copied).run(
        |filter| if (0..420).all(|n| filter.remove(&key(n % 20))) { Ok(()) } else { Err("a lost copy") },
        |filter, _| assert!(filter.is_empty()),
    );
    operation("merge copies", &copied).run(
        |filter| filter.merge(&with_copies),
        |filter, merged| assert!(if merged.is_ok() { filter.len() == 2 * with_copies.len() } else { *filter == with_copies }),
    );
    let bytes = with_copies.to_bytes();
    operation("read copies", &|| ())
        .run(|()| CuckooFilter::from_bytes(&bytes), |(), read| assert!(read.map_or(true, |read| *read == with_copies)));
}

/// Snapshots with one byte changed, and forged so that each check is reached in turn.
fn damaged(bytes: &[u8]) -> Vec<Vec<u8>> {
    let end = bytes.len() - 8;
    let mut damaged: Vec<Vec<u8>> = [0, 8, 20, 70, end].map(|at| with(bytes, at, bytes[at] ^ 1)).to_vec();
    damaged.extend([0, 30, 64, 80, end].map(|len| bytes[..len].to_vec()));
    damaged.push([bytes, b"more"].concat());
    // With the right checksum of the header.
    for (at, byte) in [(10, 7), (11, 99), (12, 77), (13, 9), (14, 200), (24, 3), (31, 99), (39, 99), (47, 99), (48, 9)] {
        let mut bytes = with(bytes, at, byte);
        let sum = xxhash_rust::xxh3::xxh3_64(&bytes[..56]);
        bytes[56..64].copy_from_slice(&sum.to_le_bytes());
        damaged.push(bytes);
    }
    damaged
}

fn with(bytes: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] = byte;
    bytes
}

#[test]
fn snapshots_of_fixed_filters() {
    let filter = fixed(300);
    let bytes = filter.to_bytes();
    let is_whole = |(): &(), read: Result<&CuckooFilter, &SnapshotError>| {
        assert!(read.map_or_else(|error| error.kind() == SnapshotErrorKind::OutOfMemory, |read| *read == filter));
    };
    operation("from_bytes", &|| ()).run(|()| CuckooFilter::from_bytes(&bytes), is_whole);
    operation("read_from", &|| ()).run(|()| CuckooFilter::read_from(&bytes[..]), is_whole);
    operation("view", &|| ()).run(|()| FilterView::over(&bytes).and_then(|view| view.verify()), ignore);
    operation("to_filter", &|| ()).run(|()| FilterView::over(&bytes)?.to_filter(), is_whole);
    operation("write_to", &|| ()).run(|()| filter.write_to(Nowhere(0)), |(), written| assert!(written.is_ok()));
    for (number, bytes) in damaged(&bytes).into_iter().enumerate() {
        let name = format!("damaged fixed snapshot {number}");
        operation(&name, &|| ()).run(|()| CuckooFilter::from_bytes(&bytes), ignore);
        operation(&name, &|| ()).run(|()| FilterView::over(&bytes).and_then(|view| view.verify()), ignore);
        operation(&name, &|| ()).run(|()| CuckooFilter::from_bytes_with(&bytes, AnyHasher::from_id), ignore);
        operation(&name, &|| ()).with_io_errors().run(|()| CuckooFilter::from_bytes(&bytes).map_err(io::Error::from), ignore);
        operation(&name, &|| ()).run(|()| SnapshotExtent::new().push(&bytes).map(drop), ignore);
    }
}

/// An operation that fails, and neither it nor the display of its error asks for memory.
#[track_caller]
fn fails_without_memory<T, E: Display + fmt::Debug>(name: &str, run: impl FnOnce() -> Result<T, E>) {
    let (displayed, asked) = with_allocations(Failing::FromThenOn, 0, false, || {
        run().map_or_else(|error| fmt::write(&mut Nowhere(0), format_args!("{error}{error:?}")), |_| Err(fmt::Error))
    });
    assert!(displayed.is_ok() && !asked, "{name}");
}

#[test]
fn refused_parameters() {
    let builder = CuckooFilter::builder;
    // On a machine of 32 bits, an eighth of all addresses is enough for a table.
    let great = if cfg!(target_pointer_width = "64") { usize::MAX >> 3 } else { usize::MAX / 8 * 7 };
    let refused = [
        ("no size", builder().false_positive_rate(0.01)),
        ("two sizes", builder().false_positive_rate(0.01).capacity(1).buckets(2)),
        ("no precision", builder().capacity(1)),
        ("two precisions", builder().capacity(1).false_positive_rate(0.01).fingerprint_bits(8)),
        ("odd buckets", builder().buckets(99).fingerprint_bits(13)),
        ("many buckets", builder().buckets(u64::MAX).fingerprint_bits(13)),
        ("great capacity", builder().capacity(usize::MAX).false_positive_rate(0.01)),
        ("great capacity of one table", builder().capacity(great).table(TableKind::Packed).false_positive_rate(0.01)),
        ("a rate above 1", builder().capacity(10).false_positive_rate(1.5)),
        ("a low rate", builder().capacity(10).false_positive_rate(1e-12)),
        ("no number", builder().capacity(10).false_positive_rate(f64::NAN)),
        ("long fingerprints", builder().capacity(10).fingerprint_bits(99)),
        ("large buckets", builder().capacity(10).false_positive_rate(0.01).bucket_size(99)),
        ("packed buckets", builder().capacity(10).false_positive_rate(0.01).bucket_size(3).table(TableKind::Packed)),
        ("powers of two", builder().buckets(100).fingerprint_bits(8).addressing(Addressing::PowerOfTwo)),
    ];
    for (name, builder) in refused {
        fails_without_memory(name, || builder.build());
    }
    fails_without_memory("name of a table", || "shelf".parse::<TableKind>());
    fails_without_memory("name of an addressing", || "a very long name that is not one of those there are".parse::<Addressing>());
    fails_without_memory("name of a hasher", || "md5".parse::<AnyHasher>());
    fails_without_memory("number of a hasher", || "0x8".parse::<HasherId>());
    fails_without_memory("name of a kernel", || "mmx".parse::<Kernel>());
    let builder = || ElasticFilter::builder().false_positive_rate(0.01);
    let refused = [
        ("no rate of a growing filter", ElasticFilter::builder()),
        ("a low rate of a growing filter", builder().false_positive_rate(1e-30)),
        ("bucket size of a growing filter", builder().bucket_size(99)),
        ("packed growing filter", builder().bucket_size(3).table(TableKind::Packed)),
        ("partitions of a growing filter", builder().partitions(3)),
        ("capacity above the maximal one", builder().capacity(10).max_capacity(5)),
        ("great capacity of a growing filter", builder().capacity(usize::MAX)),
        ("max_bytes of a growing filter", builder().max_bytes(10)),
    ];
    for (name, builder) in refused {
        fails_without_memory(name, || builder.build());
    }
}

// Growing filters.

/// Small shards, which are split at 20 items or so, and further generations from 1000 items on.
fn growing() -> ElasticBuilder {
    ElasticFilter::builder().false_positive_rate(0.01).capacity(1).max_capacity(1000)
}

#[track_caller]
fn has_all(filter: &ElasticFilter, items: u64) {
    assert!((0..items).all(|n| filter.contains(&key(n))), "{filter}");
}

fn grown(items: u64) -> ElasticFilter {
    let mut filter = growing().build().expect("right");
    filter.insert_iter((0..items).map(key)).expect("it grows");
    filter
}

/// Of a filter that begins with tables, too: where there is no memory for them, it keeps those that it has.
#[test]
fn growing_filters_that_are_cleared() {
    let large = growing().capacity(20_000).max_capacity(100_000);
    for (builder, has_tables) in [(growing(), false), (large, true), (growing().capacity(1000), true)] {
        assert_eq!(builder.clone().build().expect("right").table_bytes() > 0, has_tables);
        let make = || {
            let mut filter = builder.clone().build().expect("right");
            filter.insert_iter((0..5000).map(key)).expect("it grows");
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
            filter.insert_iter((0..5000).map(key)).expect("it grows");
            has_all(&filter, 5000);
        });
    }
}

/// On the way from a list to tables, and back.
#[test]
fn growing_filters_of_few_items() {
    let before = grown(100);
    assert_eq!(before.shards(), 0);
    operation("insert into a filter of few items", &|| before.clone()).run(
        |filter| filter.insert_iter((100..400).chain(0..20).map(key)).map_err(|error| error.position()),
        |filter, inserted| {
            let items = 100 + inserted.map_or_else(|&position| position as u64, |_| 320);
            assert_eq!(filter.len() as u64, items);
            has_all(filter, items.min(400));
            filter.assert_consistent();
            assert!(filter.shards() > 0 || items < 400);
        },
    );
    let before = grown(400);
    assert!(before.shards() > 0);
    let remove = |filter: &mut ElasticFilter| {
        (0..390).for_each(|n| assert!(filter.remove(&key(n)), "item {n}"));
        Ok::<(), koel::OutOfMemory>(())
    };
    operation("remove until few items are left", &|| before.clone()).run(remove, |filter, _| {
        assert_eq!(filter.len(), 10);
        assert!((390..400).all(|n| filter.contains(&key(n))), "{filter}");
        let read = ElasticFilter::from_bytes(&filter.to_bytes()).expect("as it was written");
        assert!(read == *filter);
    });
}

#[test]
fn growing_filters() {
    operation("build a growing filter", &|| ()).run(|()| growing().build(), ignore);
    // The first generation is full, and others follow.
    let before = grown(5000);
    let bytes = before.to_bytes();
    let filter = || before.clone();
    let is_whole = |filter: &ElasticFilter| assert!(filter.to_bytes() == bytes);
    operation("insert into a growing filter", &filter).run(
        |filter| filter.insert_iter((5000..6000).map(key)).map_err(|error| error.position()),
        |filter, inserted| {
            let items = 5000 + inserted.map_or_else(|&position| position as u64, |_| 1000);
            assert_eq!(filter.len() as u64, items);
            has_all(filter, items);
        },
    );
    let more = (5000..6000).map(key).collect::<Vec<_>>();
    operation("insert a batch into a growing filter", &filter).run(
        |filter| filter.insert_batch(&more),
        |filter, inserted| {
            assert!(inserted.err().is_none_or(|error| matches!(error.kind(), InsertErrorKind::OutOfMemory { .. })));
            let items = 5000 + inserted.map_or_else(|error| error.position() as u64, |()| 1000);
            has_all(filter, items);
        },
    );
    operation("insert unordered", &filter).run(
        |filter| filter.insert_unordered(&more),
        |filter, inserted| {
            assert!(inserted.is_ok() == (filter.len() == 6000));
            has_all(filter, inserted.map_or_else(|error| 5000 + error.position() as u64, |()| 6000));
        },
    );
    operation("insert copies", &filter)
        .run(|filter| (0..100).try_for_each(|_| filter.insert(&7_u8)), |filter, _| has_all(filter, 5000));
    operation("remove from a growing filter", &filter).run(
        |filter| if (100..5000).all(|n| filter.remove(&key(n))) { Ok(()) } else { Err("a lost item") },
        |filter, removed| {
            assert!(removed.is_ok() && filter.len() == 100);
            has_all(filter, 100);
        },
    );
    let thin = {
        let mut filter = filter();
        (1000..5000).for_each(|n| assert!(filter.remove(&key(n))));
        filter
    };
    let shrink = |filter: &mut ElasticFilter| {
        filter.shrink();
        Ok::<(), koel::OutOfMemory>(())
    };
    operation("shrink", &|| thin.clone()).run(shrink, |filter, _| {
        assert_eq!(filter.len(), 1000);
        has_all(filter, 1000);
    });
    operation("try_clone", &filter).run(
        |filter| filter.try_clone(),
        |filter, copy| {
            assert!(copy.ok().is_none_or(|copy| copy.to_bytes() == bytes));
            is_whole(filter);
        },
    );
    let mut other = growing().build().expect("right");
    other.insert_iter((5000..5500).map(key)).expect("it grows");
    let few = grown(1000);
    operation("merge growing filters", &|| few.clone()).run(
        |filter| filter.merge(&other),
        |filter, merged| {
            if merged.is_ok() {
                assert_eq!(filter.len(), 1500);
                assert!((0..1000).chain(5000..5500).all(|n| filter.contains(&key(n))));
            } else {
                assert!(filter.to_bytes() == few.to_bytes());
            }
        },
    );
    let different = growing().seed(1).build().expect("right");
    operation("merge different growing filters", &filter).run(|filter| filter.merge(&different), |filter, _| is_whole(filter));
    operation("iterate over answers of a growing filter", &filter).run(
        |filter| {
            let found = filter.contains_iter((0..5000).map(key)).filter(|(_, found)| *found).count();
            if found == 5000 { Ok(()) } else { Err(found) }
        },
        |_, answer| assert!(answer.is_ok()),
    );
    let limited = growing().max_bytes(before.size_in_bytes()).build().expect("right");
    operation("insert up to a limit", &|| limited.clone())
        .run(|filter| filter.insert_iter((0..100_000).map(key)).map(drop), |filter, _| has_all(filter, filter.len() as u64));
}

/// Copies: counted one by one, moved out of full shards, removed, merged, written and read.
#[test]
fn copies_in_growing_filters() {
    let copied = |items: u64, copies: u64| {
        let mut filter = growing().build().expect("right");
        (0..items * copies).for_each(|n| filter.insert(&key(n / copies)).expect("any number of copies"));
        filter
    };
    // With several generations.
    for (items, copies) in [(30, 20), (400, 2), (3000, 3)] {
        let with_copies = copied(items, copies);
        let bytes = with_copies.to_bytes();
        let is_whole = |filter: &ElasticFilter| {
            assert!(*filter == with_copies && filter.to_bytes() == bytes);
            filter.assert_consistent();
        };
        for more in [key(0), key(items - 1), key(items), 5, 6] {
            operation("insert beside copies in a growing filter", &|| with_copies.clone()).run(
                |filter| filter.insert(&more),
                |filter, inserted| {
                    if inserted.is_ok() {
                        assert_eq!(filter.len(), with_copies.len() + 1);
                    } else {
                        is_whole(filter);
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
                assert!(copy.ok().is_none_or(|copy| *copy == *filter));
                is_whole(filter);
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
        let is_read = |(): &(), read: Result<&ElasticFilter, &SnapshotError>| read.map_or((), is_whole);
        operation("growing from_bytes with copies", &|| ()).run(|()| ElasticFilter::from_bytes(&bytes), is_read);
        operation("growing read_from with copies", &|| ()).run(|()| ElasticFilter::read_from(&bytes[..]), is_read);
        operation("growing view of copies", &|| ()).run(
            |()| {
                let view = ElasticView::over(&bytes)?;
                assert!((0..items).all(|n| u64::from(view.count(&key(n))) >= copies));
                view.verify()
            },
            ignore,
        );
        operation("write copies", &|| ()).run(|()| with_copies.write_to(Nowhere(0)), |(), written| assert!(written.is_ok()));
        operation("snapshot_index of copies", &|| vec![0; bytes.len()]).run(
            |copy| with_copies.snapshot_index().map(|index| with_copies.read_snapshot(&index, 0, copy)),
            |copy, read| assert!(read.is_err() || *copy == bytes),
        );
        if items < 3000 {
            operation("merge copies in growing filters", &|| with_copies.clone()).run(
                |filter| filter.merge(&with_copies),
                |filter, merged| if merged.is_ok() { assert_eq!(filter.len(), 2 * with_copies.len()) } else { is_whole(filter) },
            );
            let fewer = copied(items, 1);
            operation("unite copies in growing filters", &|| fewer.clone()).run(
                |filter| filter.union(&with_copies),
                |filter, united| assert!(united.is_ok() == (filter.len() == with_copies.len()) || filter.len() == fewer.len()),
            );
        }
    }
    operation("insert copies into a growing filter", &|| growing().build().expect("right"))
        .run(|filter| filter.insert_iter((0..1200).map(|n| key(n / 3))), |filter, _| filter.assert_consistent());
}

#[test]
fn insertions_of_one_item() {
    // Items for which a shard is split, or a generation is added.
    let mut one_by_one = grown(0);
    for items in 0..1500 {
        let before = one_by_one.clone();
        let (inserted, allocates) = with_allocations(Failing::Once, 0, false, || one_by_one.insert(&key(items)));
        if inserted.is_err() {
            one_by_one.insert(&key(items)).expect("there is memory");
        }
        if allocates {
            let bytes = before.to_bytes();
            operation("insert one item that needs memory", &|| before.clone()).run(
                |filter| filter.insert(&key(items)),
                |filter, inserted| match inserted {
                    Ok(()) => has_all(filter, items + 1),
                    Err(_) => assert!(filter.to_bytes() == bytes, "{items}"),
                },
            );
        }
    }
}

#[test]
fn snapshots_of_growing_filters() {
    let filter = grown(3000);
    let bytes = filter.to_bytes();
    let is_whole = |(): &(), read: Result<&ElasticFilter, &SnapshotError>| {
        let is_memory = |error: &SnapshotError| error.kind() == SnapshotErrorKind::OutOfMemory;
        assert!(read.map_or_else(is_memory, |read| read.to_bytes() == bytes));
    };
    operation("growing from_bytes", &|| ()).run(|()| ElasticFilter::from_bytes(&bytes), is_whole);
    operation("growing read_from", &|| ()).run(|()| ElasticFilter::read_from(&bytes[..]), is_whole);
    operation("growing view", &|| ()).run(|()| ElasticView::over(&bytes).and_then(|view| view.verify()), ignore);
    operation("growing to_filter", &|| ()).run(|()| ElasticView::over(&bytes)?.to_filter(), is_whole);
    operation("growing write_to", &|| ()).run(|()| filter.write_to(Nowhere(0)), ignore);
    operation("snapshot_index", &|| vec![0; bytes.len()]).run(
        |copy| filter.snapshot_index().map(|index| filter.read_snapshot(&index, 0, copy)),
        |copy, read| assert!(read.is_err() || *copy == bytes),
    );
    for (number, bytes) in damaged(&bytes).into_iter().enumerate() {
        let name = format!("damaged growing snapshot {number}");
        operation(&name, &|| ()).run(|()| ElasticFilter::from_bytes(&bytes), ignore);
        operation(&name, &|| ()).run(|()| ElasticView::over(&bytes).and_then(|view| view.verify()), ignore);
        operation(&name, &|| ()).run(|()| ElasticFilter::from_bytes_with(&bytes, AnyHasher::from_id), ignore);
        operation(&name, &|| ()).run(|()| SnapshotExtent::new().push(&bytes).map(drop), ignore);
    }
}

#[test]
fn shared_filters() {
    operation("build_shared", &|| ()).run(|()| growing().build_shared().map(drop), ignore);
    let shared = || grown(2000).into_shared().expect("there is memory");
    let all = |filter: &koel::SharedFilter, items: u64| assert!((0..items).all(|n| filter.contains(&key(n))));
    // Where it fails, the filter is in the error.
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
            filter.iter().for_each(|filter| has_all(filter, 2000));
            converted.iter().for_each(|filter| all(filter, 2000));
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
            filter.iter().for_each(|filter| all(filter, 2000));
            converted.iter().for_each(|filter| has_all(filter, 2000));
            assert!(filter.is_some() != converted.is_some());
        },
    );
    operation("insert into a shared filter", &shared).run(
        |filter| (2000..3000).map(key).try_for_each(|item| filter.insert(&item)),
        |filter, inserted| {
            all(filter, filter.len() as u64);
            assert!(inserted.is_err() || filter.len() == 3000);
        },
    );
    let more = (2000..3000).map(key).collect::<Vec<_>>();
    operation("insert a batch into a shared filter", &shared).run(
        |filter| filter.insert_batch(&more),
        |filter, inserted| {
            all(filter, if inserted.is_ok() { 3000 } else { 2000 });
        },
    );
    operation("remove from a shared filter", &shared).run(
        |filter| if (100..2000).all(|n| filter.remove(&key(n))) { Ok(()) } else { Err("a lost item") },
        |filter, removed| {
            assert!(removed.is_ok() && filter.len() == 100);
            all(filter, 100);
        },
    );
    let shrink = |filter: &mut koel::SharedFilter| {
        filter.shrink();
        Ok::<(), koel::OutOfMemory>(())
    };
    operation("shrink a shared filter", &shared).run(shrink, |filter, _| all(filter, 2000));
    let clear = |filter: &mut koel::SharedFilter| {
        filter.clear();
        Ok::<(), koel::OutOfMemory>(())
    };
    operation("clear a shared filter", &shared).run(clear, |filter, _| assert!(filter.is_empty()));
    operation("write a shared filter", &shared).run(|filter| filter.write_to(Nowhere(0)), |filter, _| all(filter, 2000));
}

// Other formats.

#[cfg(all(feature = "metrohash", target_endian = "little"))]
#[test]
fn files_of_go() {
    use koel::go::{self, MetroHash64};
    let filter = |table, f| {
        let builder = CuckooFilter::builder().hasher(MetroHash64).seed(1337).table(table).fingerprint_bits(f);
        let mut filter = builder.addressing(Addressing::PowerOfTwo).capacity(500).build().expect("right");
        filter.insert_batch(&keys(400)).expect("there is room");
        filter
    };
    for filter in [filter(TableKind::Packed, 13), filter(TableKind::Single, 8)] {
        let bytes = go::encode(&filter).expect("it is one of Go's");
        operation("go::encode", &|| ())
            .run(|()| go::encode(&filter), |(), file| assert!(file.is_err() || file.ok() == Some(&bytes)));
        operation("go::decode", &|| ()).run(|()| go::decode(&bytes), ignore);
        let read = go::decode(&bytes).expect("a file");
        operation("encode a filter of Go's", &|| ()).run(|()| read.encode(), ignore);
        operation("insert into a filter of Go's", &|| read.clone()).run(
            |filter| (400..500).map(key).try_for_each(|item| filter.insert(&item)),
            |filter, _| assert!((0..400).all(|n| filter.contains(&key(n)))),
        );
        let mut damaged = [0, 9, 12, 13, 14, 17].map(|at| with(&bytes, at, 99)).to_vec();
        damaged.extend([vec![], bytes[..15].to_vec(), bytes[..40].to_vec(), [&bytes[..], &[0]].concat(), with(&bytes, 30, 255)]);
        for bytes in damaged {
            operation("damaged file of Go's", &|| ()).run(|()| go::decode(&bytes).map(drop), ignore);
        }
    }
    let other = fixed(300);
    operation("a filter that Go has not", &|| ()).run(|()| go::encode(&other), ignore);
}

#[cfg(feature = "redisbloom")]
fn of_redisbloom() -> CuckooFilter<koel::redisbloom::RedisBloomHash> {
    let builder = CuckooFilter::builder().hasher(koel::redisbloom::RedisBloomHash).table(TableKind::Single).fingerprint_bits(8);
    let mut filter = builder.addressing(Addressing::PowerOfTwo).capacity(400).build().expect("right");
    filter.insert_iter((0..300_u32).map(u32::to_le_bytes)).expect("there is room");
    filter
}

#[cfg(feature = "redisbloom")]
#[test]
fn dumps_of_redisbloom() {
    use koel::redisbloom::{Loader, RedisBloomFilter};
    let fixed = of_redisbloom();
    let filter = RedisBloomFilter::from_filter(&fixed).expect("one of RedisBloom's");
    let dump = filter.to_dump();
    let is_whole = |(): &(), read: Result<&RedisBloomFilter, &SnapshotError>| {
        assert!(read.is_err() || read.ok() == Some(&filter));
    };
    operation("from_dump", &|| ()).run(|()| RedisBloomFilter::from_dump(&dump), is_whole);
    operation("read_dump", &|| ()).run(|()| RedisBloomFilter::read_dump(&dump[..]), is_whole);
    operation("write_dump", &|| ()).run(|()| filter.write_dump(Nowhere(0)), |(), written| assert!(written.is_ok()));
    operation("give chunks", &|| ()).run(
        |()| {
            let lengths = filter.chunks().map(|(_, bytes)| bytes.len()).sum::<usize>();
            let first = filter.chunk_after(0, 1).map_or(0, |(_, bytes)| bytes.len());
            if (first, lengths) == (38, dump.len() - 32) { Ok(()) } else { Err(lengths) }
        },
        |(), given| assert!(given.is_ok()),
    );
    operation("from_filter", &|| ()).run(|()| RedisBloomFilter::from_filter(&fixed), ignore);
    operation("to_filter of RedisBloom's", &|| ()).run(|()| filter.to_filter(), ignore);
    operation("compact", &|| filter.clone()).run(
        |filter| {
            let removed = (0..300_u32).filter(|n| filter.remove(&n.to_le_bytes())).count();
            filter.compact();
            if removed == 300 { Ok(()) } else { Err(removed) }
        },
        |filter, removed| assert!(removed.is_ok() && filter.is_empty()),
    );
    let chunks: Vec<_> = filter.chunks().map(|(iterator, bytes)| (iterator, bytes.to_owned())).collect();
    let loader = || Loader::new(chunks[0].0, &chunks[0].1).expect("a header");
    operation("load chunks", &|| Some(loader())).run(
        |loader| {
            let mut taken = loader.take().expect("it is here");
            taken.load(chunks[1].0, &chunks[1].1)?;
            taken.finish()
        },
        |_, read| assert!(read.is_err() || read.ok() == Some(&filter)),
    );
    operation("load no chunks", &|| Some(loader())).run(|loader| loader.take().expect("it is here").finish(), ignore);
    let other = self::fixed(300);
    operation("a filter that RedisBloom has not", &|| ()).run(|()| RedisBloomFilter::from_filter(&other), ignore);
    for at in [0, 8, 16, 24, 40, 48, 49, 52] {
        let bytes = with(&dump, at, 99);
        operation("damaged dump", &|| ()).run(|()| RedisBloomFilter::from_dump(&bytes).map(drop), ignore);
    }
    for len in [0, 3, 20, 60, dump.len() - 1] {
        operation("dump cut off", &|| ()).run(|()| RedisBloomFilter::from_dump(&dump[..len]).map(drop), ignore);
    }
}

/// Formats of serde allocate themselves, and abort where they cannot; this one does not.
#[cfg(feature = "serde")]
#[test]
fn serde() {
    let (fixed, growing) = (fixed(300), grown(1000));
    let (of_fixed, of_growing) = (postcard::to_allocvec(&fixed).expect("right"), postcard::to_allocvec(&growing).expect("right"));
    operation("serialize a fixed filter", &|| vec![0; of_fixed.len()]).run(
        |buffer| postcard::to_slice(&fixed, buffer).map(drop),
        |buffer, written| assert!(written.is_err() || *buffer == of_fixed),
    );
    operation("deserialize a fixed filter", &|| ()).run(|()| postcard::from_bytes::<CuckooFilter>(&of_fixed), ignore);
    operation("serialize a growing filter", &|| vec![0; of_growing.len()]).run(
        |buffer| postcard::to_slice(&growing, buffer).map(drop),
        |buffer, written| assert!(written.is_err() || *buffer == of_growing),
    );
    operation("deserialize a growing filter", &|| ()).run(|()| postcard::from_bytes::<ElasticFilter>(&of_growing), ignore);
    let damaged = with(&of_fixed, 9, 99);
    operation("deserialize a damaged filter", &|| ()).run(|()| postcard::from_bytes::<CuckooFilter>(&damaged), ignore);
}

/// Every allocation of every split of a large filter fails once.
#[test]
fn a_thousand_splits_are_interrupted() {
    let builder = ElasticFilter::builder().false_positive_rate(1e-4).capacity(4000).max_capacity(400_000);
    let mut filter = builder.build().expect("the parameters are right");
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
            // Some of those in the shard that was split, and some of all others.
            assert!((0..items).step_by(97).all(|n| filter.contains(&key(n))), "{filter}");
        }
    }
    assert_eq!(filter.len() as u64, items);
    assert!((0..items).all(|n| filter.contains(&key(n))));
    assert!((0..items).all(|n| filter.remove(&key(n))));
    assert!(filter.is_empty());
}

/// The allocator fails as it should, and so does a test that an operation does not pass.
#[test]
fn what_fails_is_counted() {
    for failing in [Failing::Once, Failing::FromThenOn] {
        let reserve = || {
            let mut vector = Vec::<u8>::new();
            vector.try_reserve_exact(1).is_ok()
        };
        let (answers, has_failed) = with_allocations(failing, 1, false, || [reserve(), reserve(), reserve()]);
        assert_eq!(answers, [true, false, matches!(failing, Failing::Once)]);
        assert!(has_failed);
        assert!(!with_allocations(failing, 3, false, || [reserve(), reserve(), reserve()]).1);
    }
}

/// Files, where there is a folder for temporary ones.
#[cfg(not(target_family = "wasm"))]
mod files {
    use std::{fs, path::Path, process};

    use super::*;

    /// A file that is deleted on drop.
    struct File(PathBuf);

    impl File {
        fn of(name: &str, bytes: &[u8]) -> Self {
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

    /// Writes over an old file, which then holds all of `bytes`, or what it held.
    fn save<T, E: Display>(name: &str, bytes: &[u8], save: impl Fn(&File) -> Result<T, E>) {
        operation(&format!("save {name}"), &|| File::of(name, b"old"))
            .with_io_errors()
            .run(|file| save(file), |file, saved| assert!(file.bytes() == if saved.is_ok() { bytes } else { b"old" }));
    }

    fn nothing() -> PathBuf {
        File::of("nothing", b"").0.join("nothing")
    }

    #[test]
    fn of_fixed_filters() {
        let filter = fixed(300);
        let bytes = filter.to_bytes();
        save("a fixed filter", &bytes, |file| filter.save(file));
        // Without memory for a path, the system's reason is the error. (To display it, `std` allocates.)
        let save = |path: &mut PathBuf| {
            filter.save(path).map_err(|error| {
                let is_memory = error.kind() == io::ErrorKind::OutOfMemory;
                let has_reason = is_memory || error.raw_os_error().is_some() || error.get_ref().is_some();
                if has_reason { "a reason" } else { "a kind alone" }
            })
        };
        operation("save into no folder", &|| nothing().join("f.koel"))
            .with_io_errors()
            .run(save, |_, saved| assert_eq!(saved, Err(&"a reason")));
        operation("save over a folder", &std::env::temp_dir).with_io_errors().run(|folder| filter.save(folder), ignore);
        let file = File::of("fixed", &bytes);
        operation("load a fixed filter", &|| ()).run(
            |()| CuckooFilter::load(&file),
            |(), read| assert!(read.map_or_else(|error| error.kind() == SnapshotErrorKind::OutOfMemory, |read| *read == filter)),
        );
        for bytes in damaged(&bytes) {
            let file = File::of("damaged fixed", &bytes);
            operation("load a damaged fixed filter", &|| ()).run(|()| CuckooFilter::load(&file), ignore);
        }
        operation("load nothing", &nothing).with_io_errors().run(
            |path| CuckooFilter::load(path),
            |_, read| assert!(read.is_err_and(|error| error.io_kind() == Some(io::ErrorKind::NotFound))),
        );
    }

    #[test]
    fn of_growing_filters() {
        let filter = grown(3000);
        let bytes = filter.to_bytes();
        save("a growing filter", &bytes, |file| filter.save(file));
        let shared = grown(3000).into_shared().expect("there is memory");
        save("a shared filter", &bytes, |file| shared.save(file));
        let file = File::of("growing", &bytes);
        operation("load a growing filter", &|| ()).run(
            |()| ElasticFilter::load(&file),
            |(), read| {
                let is_memory = |error: &SnapshotError| error.kind() == SnapshotErrorKind::OutOfMemory;
                assert!(read.map_or_else(is_memory, |read| read.to_bytes() == bytes));
            },
        );
        for bytes in damaged(&bytes) {
            let file = File::of("damaged growing", &bytes);
            operation("load a damaged growing filter", &|| ()).run(|()| ElasticFilter::load(&file), ignore);
        }
    }

    #[cfg(all(feature = "metrohash", target_endian = "little"))]
    #[test]
    fn of_go() {
        let builder = CuckooFilter::builder().hasher(koel::go::MetroHash64).seed(1337).fingerprint_bits(8);
        let mut filter = builder.addressing(Addressing::PowerOfTwo).capacity(500).build().expect("right");
        filter.insert_batch(&keys(400)).expect("there is room");
        let bytes = koel::go::encode(&filter).expect("it is one of Go's");
        let read = koel::go::decode(&bytes).expect("a file");
        save("a filter of Go's", &bytes, |file| read.save(file));
    }

    #[cfg(feature = "redisbloom")]
    #[test]
    fn of_redisbloom() {
        let filter = koel::redisbloom::RedisBloomFilter::from_filter(&super::of_redisbloom()).expect("one of RedisBloom's");
        let dump = filter.to_dump();
        save("a dump", &dump, |file| filter.save_dump(file));
    }
}
