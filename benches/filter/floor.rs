//! The two-random-reads floor: what an operation costs that hashes a key, and reads its two buckets without looking at them.
//! Hash, keys, bytes and pages are those of the table.
//!
//! "floor" reads in a plain loop, "dense floor" 64 keys at a time.

use crate::{
    buffer::Buffer,
    keys::{Numbers, key, none, timed},
    reads::{ODD, READ, Reads, position},
    tables::Table,
};
use criterion::{BenchmarkGroup, measurement::WallTime};
use std::hint::black_box;

/// Measures a table's floors; `keys` of them are an iteration.
pub(crate) fn floors(group: &mut BenchmarkGroup<'_, WallTime>, table: Table, items: u64, keys: u64) {
    let (mut buffer, mut numbers) = (None, Numbers::default());
    for reads in Reads::ALL {
        let name = match reads {
            Reads::Plain => format!("{table} floor"),
            Reads::Dense => format!("{table} dense floor"),
        };
        group.bench_function(name, |bencher| {
            let hasher = table.empty(1);
            let len = table.params(items).table_bytes();
            let buffer =
                buffer.get_or_insert_with(|| Buffer::new(len + READ, cfg!(feature = "huge-pages")).expect("there is memory"));
            let positions = |key| {
                let hash = hasher.hash(&key);
                [position(hash, len), position(hash.wrapping_mul(ODD), len)]
            };
            bencher.iter_custom(|iterations| {
                timed(numbers.take(iterations * keys), key, none, |keys, _| {
                    _ = black_box(reads.sum(buffer.bytes(), keys, positions));
                })
            });
        });
    }
}
