//! Lookups of present keys, of absent keys, and of both in random order.

use crate::{
    floor::floors,
    keys::{CHUNK, Form, Numbers, each, key, timed},
    sizes::{Size, sizes},
    tables::{PACKED_13, SINGLE_13, Table},
};
use criterion::{Criterion, Throughput};
use koel::CuckooFilter;
use std::{
    ops::{Range, RangeInclusive},
    time::Duration,
};

/// Packed 13 and single 12 have equal sizes, packed 13 and single 13 equal rates.
const TABLES: [Table; 9] = [
    PACKED_13,
    SINGLE_13,
    Table::packed(5),
    Table::packed(9),
    Table::packed(17),
    Table::packed(25),
    Table::single(8),
    Table::single(12),
    Table::single(16),
];

/// Keys with numbers from here on are in no filter.
const ABSENT: u64 = 1 << 40;

#[derive(Clone, Copy)]
enum Queries {
    Present,
    Absent,
    Mixed,
}

impl Queries {
    const ALL: [Self; 3] = [Self::Present, Self::Absent, Self::Mixed];

    fn name(self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Absent => "absent",
            Self::Mixed => "mixed",
        }
    }

    fn is_present(self, n: u64) -> bool {
        match self {
            Self::Present => true,
            Self::Absent => false,
            // A coin flip that is independent of the key.
            Self::Mixed => key(!n) & 1 == 0,
        }
    }
}

pub(crate) fn benches(criterion: &mut Criterion) {
    for size in sizes() {
        let mut group = criterion.benchmark_group(format!("find/{}", size.name));
        group.throughput(Throughput::Elements(CHUNK as u64));
        for table in tables(size) {
            floors(&mut group, table, size.items, CHUNK as u64);
            let (mut filter, mut numbers) = (None, Numbers::default());
            for (kernel, form, queries) in variants(table) {
                group.bench_function(format!("{table} {kernel} {} {}", form.name(), queries.name()), |bencher| {
                    // The filter is built only if a selected benchmark needs it.
                    let filter = filter.get_or_insert_with(|| table.full(size.items));
                    filter.set_kernel(kernel).expect("the kernel is available");
                    bencher.iter_custom(|iterations| look_up(filter, form, queries, numbers.take(iterations * CHUNK as u64)));
                });
            }
        }
        group.finish();
    }
}

fn tables(size: Size) -> impl Iterator<Item = Table> {
    TABLES.into_iter().filter(move |table| size.is_small || table.is_main())
}

fn variants(table: Table) -> impl Iterator<Item = (koel::Kernel, Form, Queries)> {
    let forms = |kernel| Form::ALL.map(|form| (kernel, form));
    let queries = |(kernel, form)| Queries::ALL.map(|queries| (kernel, form, queries));
    table.kernels().into_iter().flat_map(forms).flat_map(queries)
}

fn look_up(filter: &CuckooFilter, form: Form, queries: Queries, numbers: Range<u64>) -> Duration {
    let items = filter.len() as u64;
    let key = |n| if queries.is_present(n) { key(n % items) } else { key(n + ABSENT) };
    let rate = filter.false_positive_rate();
    let expected = |chunk| expected(queries, rate, chunk);
    match form {
        Form::Each => timed(numbers, key, expected, |keys, found| each(keys, found, |key| filter.contains(key))),
        Form::Batch => timed(numbers, key, expected, |keys, found| filter.contains_batch(keys, found)),
    }
}

/// Returns the expected range of keys found: all present ones, and false positives up to six standard deviations above the mean.
fn expected(queries: Queries, rate: f64, chunk: Range<u64>) -> RangeInclusive<usize> {
    let keys = (chunk.end - chunk.start) as usize;
    let present = chunk.filter(|&n| queries.is_present(n)).count();
    let positives = rate * (keys - present) as f64;
    let allowed = if present == keys { 0 } else { (positives + 6.0 * positives.sqrt()) as usize + 6 };
    present..=present + allowed
}
