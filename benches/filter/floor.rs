//! The memory floor of a table: the same keys, hashed in the same way, each read two random places in a buffer of the table's size,
//! in the same kind of pages.
//!
//! "floor" reads one key at a time in a plain loop, and "dense floor" 64 keys at a time.

use crate::{
    keys::{Numbers, key, none, timed},
    tables::Table,
};
use criterion::{BenchmarkGroup, measurement::WallTime};
use koel_floor::{Floor, Reads};
use std::hint::black_box;

/// Measures a table's floors. An iteration reads `keys` keys.
pub(crate) fn floors(group: &mut BenchmarkGroup<'_, WallTime>, table: Table, items: u64, keys: u64) {
    let (mut floor, mut numbers) = (None, Numbers::default());
    for reads in Reads::ALL {
        let name = match reads {
            Reads::Plain => format!("{table} floor"),
            Reads::Dense => format!("{table} dense floor"),
        };
        group.bench_function(name, |bencher| {
            let hasher = table.empty(1);
            let len = table.params(items).table_bytes();
            let floor = floor.get_or_insert_with(|| Floor::new(len).expect("there is memory"));
            let positions = |key| floor.positions(hasher.hash(&key));
            bencher.iter_custom(|iterations| {
                timed(numbers.take(iterations * keys), key, none, |keys, _| {
                    _ = black_box(floor.read(reads, keys, positions));
                })
            });
        });
    }
}
