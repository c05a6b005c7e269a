//! Lookups of keys that are in the filter, that are not, and of both in random order.

use crate::{
    floor::floors,
    keys::{CHUNK, Form, Numbers, key, timed},
    sizes::{Size, sizes},
    tables::{PACKED_13, SINGLE_13, Table},
};
use criterion::{Criterion, Throughput};
use koel::CuckooFilter;
use std::{
    ops::{Range, RangeInclusive},
    time::Duration,
};

/// Packed 13 and single 12 are of one size, packed 13 and single 13 of one rate.
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

/// Numbers from here on are of keys that no filter has.
const ABSENT: u64 = 1 << 40;

#[derive(Clone, Copy)]
enum Asked {
    Present,
    Absent,
    Mixed,
}

impl Asked {
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
            // A coin that knows nothing of the key.
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
            for (kernel, form, asked) in variants(table) {
                group.bench_function(format!("{table} {kernel} {} {}", form.name(), asked.name()), |bencher| {
                    // Only if a selected benchmark needs it.
                    let filter = filter.get_or_insert_with(|| table.full(size.items));
                    filter.set_kernel(kernel).expect("it is available");
                    bencher.iter_custom(|iterations| look_up(filter, form, asked, numbers.take(iterations * CHUNK as u64)));
                });
            }
        }
        group.finish();
    }
}

fn tables(size: Size) -> impl Iterator<Item = Table> {
    TABLES.into_iter().filter(move |table| size.is_small || table.is_main())
}

fn variants(table: Table) -> impl Iterator<Item = (koel::Kernel, Form, Asked)> {
    let forms = |kernel| Form::ALL.map(|form| (kernel, form));
    let asked = |(kernel, form)| Asked::ALL.map(|asked| (kernel, form, asked));
    table.kernels().into_iter().flat_map(forms).flat_map(asked)
}

fn look_up(filter: &CuckooFilter, form: Form, asked: Asked, numbers: Range<u64>) -> Duration {
    let items = filter.len() as u64;
    let key = |n| if asked.is_present(n) { key(n % items) } else { key(n + ABSENT) };
    let rate = filter.false_positive_rate();
    let expected = |chunk| expected(asked, rate, chunk);
    match form {
        Form::Each => timed(numbers, key, expected, |keys, found| {
            for (key, found) in keys.iter().zip(found) {
                *found = filter.contains(key);
            }
        }),
        Form::Batch => timed(numbers, key, expected, |keys, found| filter.contains_batch(keys, found)),
    }
}

/// All that are there, and of the others no more than six standard deviations allow.
fn expected(asked: Asked, rate: f64, chunk: Range<u64>) -> RangeInclusive<usize> {
    let keys = (chunk.end - chunk.start) as usize;
    let present = chunk.filter(|&n| asked.is_present(n)).count();
    let positives = rate * (keys - present) as f64;
    let allowed = if present == keys { 0 } else { (positives + 6.0 * positives.sqrt()) as usize + 6 };
    present..=present + allowed
}
