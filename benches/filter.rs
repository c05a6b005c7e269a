//! What one operation costs: `cargo bench --bench filter`. Every answer is consumed and asserted; the keys are hashed as
//! part of the operation, but generated before it.
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss, reason = "small numbers")]
#![allow(missing_docs, reason = "criterion's macros make functions")]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use koel::{CuckooFilter, TableKind};
use std::hint::black_box;

const ITEMS: u64 = 1_000_000;
const LOOKUPS: u64 = 10_000;

/// Packed and single at the same rate, and the packed table's shortest and longest fingerprints.
const TABLES: [(TableKind, u32); 4] =
    [(TableKind::Packed, 13), (TableKind::Single, 13), (TableKind::Packed, 5), (TableKind::Packed, 25)];

/// Distinct, and in no order.
fn key(n: u64) -> u64 {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn empty(table: TableKind, f: u32) -> CuckooFilter {
    CuckooFilter::builder().table(table).fingerprint_bits(f).capacity(ITEMS as usize).build().expect("the parameters are right")
}

fn full(table: TableKind, f: u32) -> CuckooFilter {
    let mut filter = empty(table, f);
    (0..ITEMS).for_each(|n| filter.insert(&key(n)).expect("the capacity fits"));
    filter
}

fn lookups(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("contains");
    group.throughput(Throughput::Elements(LOOKUPS));
    for (table, f) in TABLES {
        let filter = full(table, f);
        let mut start = 0;
        group.bench_function(BenchmarkId::new("present", format!("{table} {f}")), |bencher| {
            bencher.iter(|| {
                start = (start + LOOKUPS) % ITEMS;
                let found = (start..start + LOOKUPS).filter(|&n| black_box(filter.contains(&key(n)))).count();
                assert_eq!(found as u64, LOOKUPS);
            });
        });
        let most = (filter.false_positive_rate() * 2.0 * LOOKUPS as f64) as usize + 20;
        group.bench_function(BenchmarkId::new("absent", format!("{table} {f}")), |bencher| {
            bencher.iter(|| {
                start += LOOKUPS;
                let found = (start..start + LOOKUPS).filter(|&n| black_box(filter.contains(&!key(n)))).count();
                assert!(found < most);
            });
        });
    }
    group.finish();
}

fn changes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("change");
    group.throughput(Throughput::Elements(ITEMS)).sample_size(10);
    for (table, f) in TABLES {
        group.bench_function(BenchmarkId::new("insert to capacity", format!("{table} {f}")), |bencher| {
            bencher.iter_batched(
                || empty(table, f),
                |mut filter| {
                    (0..ITEMS).for_each(|n| filter.insert(&key(n)).expect("the capacity fits"));
                    assert_eq!(filter.len() as u64, ITEMS);
                    filter
                },
                BatchSize::PerIteration,
            );
        });
        let full = full(table, f);
        group.bench_function(BenchmarkId::new("remove all", format!("{table} {f}")), |bencher| {
            bencher.iter_batched(
                || full.clone(),
                |mut filter| {
                    (0..ITEMS).for_each(|n| assert!(filter.remove(&key(n))));
                    assert!(filter.is_empty());
                    filter
                },
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, lookups, changes);
criterion_main!(benches);
