//! Insertions into an empty table up to a load, and removals of all items.
//!
//! An iteration fills or drains a whole table, since the cost of an insertion depends on the load. The result is the mean over all
//! operations.

use crate::{
    floor::floors,
    keys::{Form, all, each, key, timed},
    sizes::{Size, sizes},
    tables::{PACKED_13, SINGLE_13, Table},
};
use criterion::{BenchmarkGroup, Criterion, Throughput, measurement::WallTime};
use koel::{CuckooFilter, Kernel};
use std::time::{Duration, Instant};

const LOADS: [f64; 3] = [0.5, 0.95, 0.97];

const TABLES: [Table; 6] = [PACKED_13, SINGLE_13, Table::packed(5), Table::packed(9), Table::packed(17), Table::packed(25)];

/// Returns the tables and kernels to measure: for large sizes, which take long, only the default ones.
fn tables(size: Size) -> Vec<(Table, Vec<Kernel>)> {
    if size.is_small {
        TABLES.into_iter().map(|table| (table, table.kernels_of_changes())).collect()
    } else {
        vec![(PACKED_13, vec![Kernel::best()])]
    }
}

pub(crate) fn benches(criterion: &mut Criterion) {
    for size in sizes() {
        let mut group = criterion.benchmark_group(format!("insert/{}", size.name));
        group.sample_size(10);
        for (table, kernels) in tables(size) {
            insertions(&mut group, table, &kernels, size.items);
        }
        group.finish();
        let mut group = criterion.benchmark_group(format!("remove/{}", size.name));
        group.sample_size(10).throughput(Throughput::Elements(size.items));
        for (table, kernels) in tables(size) {
            removals(&mut group, table, &kernels, size.items);
        }
        group.finish();
    }
}

fn insertions(group: &mut BenchmarkGroup<'_, WallTime>, table: Table, kernels: &[Kernel], items: u64) {
    group.throughput(Throughput::Elements(items));
    floors(group, table, items, items);
    let slots = table.params(items).slots();
    let mut filter = None;
    for &kernel in kernels {
        for (load, form) in LOADS.iter().flat_map(|load| Form::ALL.map(|form| (load, form))) {
            let keys = (load * slots as f64) as u64;
            group.throughput(Throughput::Elements(keys));
            group.bench_function(format!("{table} {kernel} {} to {load}", form.name()), |bencher| {
                let filter = filter.get_or_insert_with(|| table.empty(items));
                filter.set_kernel(kernel).expect("the kernel is available");
                bencher.iter_custom(|iterations| (0..iterations).map(|_| fill(filter, form, keys)).sum());
            });
        }
        if kernel == Kernel::best() {
            let mut keys = None;
            group.throughput(Throughput::Elements(items));
            group.bench_function(format!("{table} {kernel} known set to 0.95"), |bencher| {
                let keys: &Vec<u64> = keys.get_or_insert_with(|| (0..items).map(key).collect());
                bencher.iter_custom(|iterations| (0..iterations).map(|_| build(table, keys)).sum());
            });
        }
    }
}

fn fill(filter: &mut CuckooFilter, form: Form, keys: u64) -> Duration {
    filter.clear();
    let time = match form {
        Form::Each => timed(0..keys, key, all, |keys, inserted| each(keys, inserted, |key| filter.insert(key).is_ok())),
        Form::Batch => timed(0..keys, key, all, |keys, inserted| inserted.fill(filter.insert_batch(keys).is_ok())),
    };
    assert_eq!(filter.len() as u64, keys);
    time
}

fn build(table: Table, keys: &[u64]) -> Duration {
    let builder = table.builder(keys.len() as u64);
    let clock = Instant::now();
    let filter = builder.build_from_items(keys).expect("there is room");
    let time = clock.elapsed();
    assert_eq!((filter.len(), filter.count_members(keys)), (keys.len(), keys.len()));
    time
}

fn removals(group: &mut BenchmarkGroup<'_, WallTime>, table: Table, kernels: &[Kernel], items: u64) {
    floors(group, table, items, items);
    let mut full = None;
    for &kernel in kernels {
        for form in Form::ALL {
            group.bench_function(format!("{table} {kernel} {}", form.name()), |bencher| {
                let full = full.get_or_insert_with(|| table.full(items));
                full.set_kernel(kernel).expect("the kernel is available");
                bencher.iter_custom(|iterations| (0..iterations).map(|_| drain(full.clone(), form)).sum());
            });
        }
    }
}

fn drain(mut filter: CuckooFilter, form: Form) -> Duration {
    let keys = 0..filter.len() as u64;
    let time = match form {
        Form::Each => timed(keys, key, all, |keys, removed| each(keys, removed, |key| filter.remove(key))),
        Form::Batch => timed(keys, key, all, |keys, removed| filter.remove_batch(keys, removed)),
    };
    assert!(filter.is_empty());
    time
}
