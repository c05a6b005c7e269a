//! Measures how much lookups could gain at most if an item's two buckets were often close together: the floor makes a share of its
//! second reads in the same block of 128 bytes as the first, which the processor fetches at once. A real table would also do other
//! work, and fill less.
//!
//! "plain" and "dense" are the two ways in which the floors read. A name with "floor" has a share of 0.

use crate::{
    keys::{CHUNK, Numbers, key, none, timed},
    sizes::{is_large, is_test},
    tables::PACKED_13,
};
use criterion::{Criterion, Throughput};
use koel_floor::{Floor, READ, Reads, position, second_hash};
use std::hint::{black_box, select_unpredictable};

const BLOCK: usize = 128;
/// Shares of second reads near the first, in percent.
const SHARES: [u32; 6] = [0, 25, 50, 62, 75, 100];

pub(crate) fn benches(criterion: &mut Criterion) {
    locality(criterion, "160 MB", 160_000_000);
    if is_large() {
        locality(criterion, "1 GB", 1_000_000_000);
    }
}

fn locality(criterion: &mut Criterion, size: &str, len: usize) {
    // Even in a test, the buffer has several huge pages, which nothing else tests.
    let len = if is_test() { 5 << 20 } else { len };
    let mut group = criterion.benchmark_group(format!("locality/{size}"));
    group.throughput(Throughput::Elements(CHUNK as u64));
    let hasher = PACKED_13.empty(1);
    let (mut floor, mut numbers) = (None, Numbers::default());
    for (reads, share) in Reads::ALL.into_iter().flat_map(|reads| SHARES.map(|share| (reads, share))) {
        let name = match reads {
            Reads::Plain => "plain",
            Reads::Dense => "dense",
        };
        let name = if share == 0 { format!("{name} floor") } else { format!("{name} {share} %") };
        group.bench_function(name, |bencher| {
            let floor = floor.get_or_insert_with(|| Floor::new(len).expect("there is memory"));
            let positions = |key| positions(hasher.hash(&key), len, share * 256 / 100);
            bencher.iter_custom(|iterations| {
                timed(numbers.take(iterations * CHUNK as u64), key, none, |keys, _| {
                    _ = black_box(floor.read(reads, keys, positions));
                })
            });
        });
    }
    group.finish();
}

/// Returns the two positions of a hash. For `near` of 256 hashes, the second is near the first.
#[inline]
fn positions(hash: u64, len: usize, near: u32) -> [usize; 2] {
    let other = second_hash(hash);
    let first = position(hash, len);
    let beside = first / BLOCK * BLOCK + position(other, BLOCK - READ + 1);
    // A mispredicted branch would cost more than the measured difference.
    let second = select_unpredictable((hash as u32 & 255) < near, beside, position(other, len));
    // The last block may be incomplete.
    [first, second.min(len)]
}
