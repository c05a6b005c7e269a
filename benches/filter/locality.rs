//! What would be gained if an item's two buckets often lay side by side? An upper bound, found without building it: the
//! floor, with a share of the second reads in the same block of 128 bytes as the first, which is what the processor fetches
//! at one go. Whatever such a table had to do besides, and it would fill less, comes on top.
//!
//! "plain" and "dense" are those of the floor; a "floor" has no share at all.

use crate::{
    keys::{CHUNK, Numbers, key, none, timed},
    sizes::{is_large, is_test},
    tables::PACKED_13,
};
use criterion::{Criterion, Throughput};
use koel_floor::{Floor, READ, Reads, position, second_hash};
use std::hint::{black_box, select_unpredictable};

const BLOCK: usize = 128;
/// In per cent.
const SHARES: [u32; 6] = [0, 25, 50, 62, 75, 100];

pub(crate) fn benches(criterion: &mut Criterion) {
    locality(criterion, "160 MB", 160_000_000);
    if is_large() {
        locality(criterion, "1 GB", 1_000_000_000);
    }
}

fn locality(criterion: &mut Criterion, size: &str, len: usize) {
    // Of several huge pages, also in a test: nothing else tests these.
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

/// Of 256 hashes, `near` have their second position near the first.
#[inline]
fn positions(hash: u64, len: usize, near: u32) -> [usize; 2] {
    let other = second_hash(hash);
    let first = position(hash, len);
    let beside = first / BLOCK * BLOCK + position(other, BLOCK - READ + 1);
    // A branch would be mispredicted, and cost more than what is to be measured.
    let second = select_unpredictable((hash as u32 & 255) < near, beside, position(other, len));
    // The last block may be an incomplete one.
    [first, second.min(len)]
}
