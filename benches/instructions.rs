//! Counts the instructions of each operation. Counts do not depend on the load of the machine; `just instructions` compares them
//! with `benches/instructions.tsv`. Operations include hashing, but not the generation of keys.
#![allow(missing_docs, reason = "gungraun's macros generate public functions")]

use gungraun::{Callgrind, prelude::*};
use koel::{CuckooFilter, ElasticFilter, Kernel, TableKind};
use std::hint::black_box;

/// Buckets of four slots, which the items fill to a load of 0.95.
const BUCKETS: u64 = 26_316;
const ITEMS: u64 = 100_000;
/// Operations per benchmark: a power of ten, so that the count per operation can be read off.
const OPERATIONS: u64 = 10_000;

/// A kind of filter. To add one, define a constant here, and add a line at each operation.
struct Kind {
    table: TableKind,
    fingerprint_bits: u32,
    kernel: Kernel,
}

/// This and the next have tables of equal size: a packed table stores a fingerprint in one bit less.
const PACKED_13: Kind = Kind { table: TableKind::Packed, fingerprint_bits: 13, kernel: Kernel::Portable };
const SINGLE_12: Kind = Kind { table: TableKind::Single, fingerprint_bits: 12, kernel: Kernel::Portable };
const PACKED_13_BMI2: Kind = Kind { kernel: Kernel::Bmi2, ..PACKED_13 };
/// Valgrind does not know AVX-512.
const PACKED_13_AVX2: Kind = Kind { kernel: Kernel::Avx2, ..PACKED_13 };
const SINGLE_12_AVX2: Kind = Kind { kernel: Kernel::Avx2, ..SINGLE_12 };

struct Prepared<F = CuckooFilter> {
    filter: F,
    keys: Vec<u64>,
    /// The results of a batch.
    found: Vec<bool>,
}

impl<F> Prepared<F> {
    fn new(filter: F, keys: impl Iterator<Item = u64>) -> Self {
        let keys: Vec<u64> = keys.collect();
        Self { filter, found: vec![false; keys.len()], keys }
    }
}

/// Returns the n-th key. Keys are distinct and unordered.
fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn filter(kind: &Kind, items: u64) -> CuckooFilter {
    let builder =
        CuckooFilter::builder().table(kind.table).fingerprint_bits(kind.fingerprint_bits).buckets(BUCKETS).kernel(kind.kernel);
    let mut filter = builder.build().expect("valid parameters");
    (0..items).for_each(|n| filter.insert(&key(n)).expect("there is room"));
    filter
}

/// Prepares a filter without the last items, which fill it from a load of 0.855 to 0.95.
fn nearly_full(kind: Kind) -> Prepared {
    Prepared::new(filter(&kind, ITEMS - OPERATIONS), (ITEMS - OPERATIONS..ITEMS).map(key))
}

/// Prepares lookups of items from the whole range, some of which were evicted to their other bucket.
fn present(kind: Kind) -> Prepared {
    let step = usize::try_from(ITEMS / OPERATIONS).expect("a small number");
    Prepared::new(filter(&kind, ITEMS), (0..ITEMS).step_by(step).map(key))
}

fn absent(kind: Kind) -> Prepared {
    Prepared::new(filter(&kind, ITEMS), (ITEMS..ITEMS + OPERATIONS).map(key))
}

/// Runs an operation on every key, and returns how often it returned true.
fn count(keys: &[u64], mut operation: impl FnMut(&u64) -> bool) -> u64 {
    keys.iter().map(|key| u64::from(black_box(operation(black_box(key))))).sum()
}

type Growing = Prepared<ElasticFilter>;

/// Prepares lookups of absent items in a filter that has grown to its items or was planned for them.
fn growing(is_planned: bool, kernel: Kernel) -> Growing {
    let mut builder = ElasticFilter::builder().false_positive_rate(0.001).kernel(kernel);
    if is_planned {
        let items = usize::try_from(ITEMS).expect("a small number");
        builder = builder.capacity(items).max_capacity(items);
    }
    let mut filter = builder.build().expect("valid parameters");
    filter.insert_iter((0..ITEMS).map(key)).expect("the filter grows");
    Prepared::new(filter, (ITEMS..ITEMS + OPERATIONS).map(key))
}

// Benchmarks return what was prepared, so that dropping it is not counted.

#[library_benchmark(setup = nearly_full)]
#[bench::packed_13(PACKED_13)]
#[bench::packed_13_bmi2(PACKED_13_BMI2)]
#[bench::single_12(SINGLE_12)]
fn insert(mut prepared: Prepared) -> Prepared {
    assert_eq!(count(&prepared.keys, |key| prepared.filter.insert(key).is_ok()), OPERATIONS);
    prepared
}

/// Prepares an empty filter that the distinct items fill to a load of 0.95, and keys that contain each item twice: in a row, or in
/// two passes.
fn twice(is_in_a_row: bool) -> Prepared {
    let distinct = OPERATIONS / 2;
    let builder = CuckooFilter::builder()
        .table(TableKind::Packed)
        .fingerprint_bits(13)
        .buckets((distinct * 5 / 19).next_multiple_of(2))
        .kernel(Kernel::Bmi2);
    let number = |n| if is_in_a_row { n / 2 } else { n % distinct };
    Prepared::new(builder.build().expect("valid parameters"), (0..OPERATIONS).map(number).map(key))
}

#[library_benchmark(setup = twice)]
#[bench::in_a_row(true)]
#[bench::by_passes(false)]
fn insert_twice(mut prepared: Prepared) -> Prepared {
    assert_eq!(count(&prepared.keys, |key| prepared.filter.insert(key).is_ok()), OPERATIONS);
    prepared
}

#[library_benchmark(setup = present)]
#[bench::packed_13(PACKED_13)]
#[bench::packed_13_bmi2(PACKED_13_BMI2)]
#[bench::single_12(SINGLE_12)]
fn contains_present(prepared: Prepared) -> Prepared {
    assert_eq!(count(&prepared.keys, |key| prepared.filter.contains(key)), OPERATIONS);
    prepared
}

#[library_benchmark(setup = absent)]
#[bench::packed_13(PACKED_13)]
#[bench::packed_13_bmi2(PACKED_13_BMI2)]
#[bench::single_12(SINGLE_12)]
fn contains_absent(prepared: Prepared) -> Prepared {
    assert!(count(&prepared.keys, |key| prepared.filter.contains(key)) < OPERATIONS / 100);
    prepared
}

fn trues(found: &[bool]) -> u64 {
    found.iter().map(|&found| u64::from(found)).sum()
}

// Results of batches are checked in a teardown, which is not counted.

#[allow(clippy::needless_pass_by_value, reason = "a teardown takes what the benchmark returns")]
fn none_found(prepared: Prepared) {
    assert!(trues(&prepared.found) < OPERATIONS / 100);
}

#[allow(clippy::needless_pass_by_value, reason = "as above")]
fn all_found(prepared: Prepared) {
    assert_eq!(trues(&prepared.found), OPERATIONS);
}

#[library_benchmark(setup = absent, teardown = none_found)]
#[bench::packed_13(PACKED_13)]
#[bench::packed_13_avx2(PACKED_13_AVX2)]
#[bench::single_12_avx2(SINGLE_12_AVX2)]
fn contains_batch(mut prepared: Prepared) -> Prepared {
    prepared.filter.contains_batch(black_box(&prepared.keys), black_box(&mut prepared.found));
    prepared
}

#[library_benchmark(setup = nearly_full)]
#[bench::packed_13(PACKED_13)]
#[bench::packed_13_bmi2(PACKED_13_BMI2)]
fn insert_batch(mut prepared: Prepared) -> Prepared {
    prepared.filter.insert_batch(black_box(&prepared.keys)).expect("there is room");
    prepared
}

#[library_benchmark(setup = present, teardown = all_found)]
#[bench::packed_13(PACKED_13)]
#[bench::packed_13_bmi2(PACKED_13_BMI2)]
fn remove_batch(mut prepared: Prepared) -> Prepared {
    prepared.filter.remove_batch(black_box(&prepared.keys), black_box(&mut prepared.found));
    prepared
}

#[library_benchmark(setup = present)]
#[bench::packed_13(PACKED_13)]
#[bench::packed_13_bmi2(PACKED_13_BMI2)]
#[bench::single_12(SINGLE_12)]
fn remove(mut prepared: Prepared) -> Prepared {
    assert_eq!(count(&prepared.keys, |key| prepared.filter.remove(key)), OPERATIONS);
    prepared
}

#[library_benchmark(setup = growing)]
#[bench::planned(true, Kernel::Bmi2)]
#[bench::grown(false, Kernel::Bmi2)]
fn growing_contains_absent(prepared: Growing) -> Growing {
    assert!(count(&prepared.keys, |key| prepared.filter.contains(key)) < OPERATIONS / 100);
    prepared
}

// The filter is between two doublings, so some shards split.
#[library_benchmark(setup = growing)]
#[bench::grown(false, Kernel::Bmi2)]
fn growing_insert(mut prepared: Growing) -> Growing {
    assert_eq!(count(&prepared.keys, |key| prepared.filter.insert(key).is_ok()), OPERATIONS);
    prepared
}

/// Prepares removals of present items.
fn growing_present(is_planned: bool, kernel: Kernel) -> Growing {
    let step = usize::try_from(ITEMS / OPERATIONS).expect("a small number");
    Growing { keys: (0..ITEMS).step_by(step).map(key).collect(), ..growing(is_planned, kernel) }
}

#[library_benchmark(setup = growing_present)]
#[bench::planned(true, Kernel::Bmi2)]
#[bench::grown(false, Kernel::Bmi2)]
fn growing_remove(mut prepared: Growing) -> Growing {
    assert_eq!(count(&prepared.keys, |key| prepared.filter.remove(key)), OPERATIONS);
    prepared
}

fn none_found_growing(Growing { found, .. }: Growing) {
    assert!(trues(&found) < OPERATIONS / 100);
}

#[library_benchmark(setup = growing, teardown = none_found_growing)]
#[bench::planned(true, Kernel::Bmi2)]
#[bench::grown(false, Kernel::Bmi2)]
#[bench::planned_avx2(true, Kernel::Avx2)]
#[bench::grown_avx2(false, Kernel::Avx2)]
fn growing_contains_batch(mut prepared: Growing) -> Growing {
    prepared.filter.contains_batch(black_box(&prepared.keys), black_box(&mut prepared.found));
    prepared
}

// Measures planning alone; nothing is allocated.
#[library_benchmark]
#[bench::items_100(100)]
#[bench::items_1000000(1_000_000)]
fn params(capacity: usize) {
    let builder = || CuckooFilter::builder().capacity(black_box(capacity)).false_positive_rate(black_box(0.001));
    let planned = (0..OPERATIONS).map(|_| u64::from(black_box(builder().params()).is_ok())).sum::<u64>();
    assert_eq!(planned, OPERATIONS);
}

library_benchmark_group!(
    name = operations,
    benchmarks = [
        insert,
        insert_twice,
        contains_present,
        contains_absent,
        remove,
        contains_batch,
        insert_batch,
        remove_batch,
        growing_contains_absent,
        growing_contains_batch,
        growing_insert,
        growing_remove,
        params
    ]
);
main!(
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["--cache-sim=no"])),
    library_benchmark_groups = operations
);
