//! The other crates, a file for each family. Each filter is built for the requested false-positive rate, or the nearest one
//! that it offers, as its documentation recommends: for the number of items that it will get, or to grow up to that number.

mod aleph;
mod blocked;
mod bloom;
mod counting;
mod cuckoo;
mod fuse;
mod quotient;

use std::hash::{BuildHasherDefault, DefaultHasher, Hasher};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::measure::Contestant;

pub(crate) fn fixed(rate: f64) -> Vec<Box<dyn Contestant>> {
    vec![
        Box::new(cuckoo::Cuckoo::<DefaultHasher>::new("its default hasher")),
        Box::new(cuckoo::Cuckoo::<Xxh3>::new("XXH3")),
        Box::new(cuckoo::ScalableCuckoo(rate)),
        Box::new(quotient::Quotient(rate)),
        Box::new(counting::Counting(rate)),
        Box::new(bloom::FastBloom::<fastbloom::DefaultHasher>::new(rate, "its default hasher")),
        Box::new(bloom::FastBloom::<BuildHasherDefault<Xxh3>>::new(rate, "XXH3")),
        Box::new(bloom::Bloom(rate)),
        Box::new(blocked::SplitBlock::new(rate)),
        Box::new(fuse::Fuse::<xorf::BinaryFuse8>::new("BinaryFuse8", 8)),
        Box::new(fuse::Fuse::<xorf::BinaryFuse16>::new("BinaryFuse16", 16)),
    ]
}

/// Filters that grow from [`GROWN_FROM`](crate::peer::GROWN_FROM) items to all of them; and a Bloom filter, which cannot.
pub(crate) fn growing(rate: f64) -> Vec<Box<dyn Contestant>> {
    vec![
        Box::new(quotient::GrownQuotient(rate)),
        Box::new(cuckoo::GrownCuckoo(rate)),
        Box::new(aleph::Aleph { rate, planned: false }),
        Box::new(aleph::Aleph { rate, planned: true }),
        Box::new(bloom::LockedBloom(rate)),
    ]
}

/// XXH3 as a hasher of the standard library. On little-endian machines, it hashes a `u64` as koel does.
#[derive(Clone, Default)]
struct Xxh3(u64);

impl Hasher for Xxh3 {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64_with_seed(bytes, self.0);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

/// The hash of a key, for filters that accept hashes.
fn digest(key: u64) -> u64 {
    xxh3_64_with_seed(&key.to_le_bytes(), 0)
}

/// The whole number of bits nearest to log₂ of `ratio`, at least 1.
#[expect(clippy::cast_possible_truncation, reason = "a logarithm of ratios between rates")]
fn nearest_bits(ratio: f64) -> i32 {
    (ratio.log2().round() as i32).max(1)
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher as _;

    use koel::HashItem as _;

    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn all_hash_alike() {
        for key in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            let koel = koel::Xxh3.hash_item(0, &key);
            assert_eq!(digest(key), koel);
            assert_eq!(BuildHasherDefault::<Xxh3>::default().hash_one(key), koel);
        }
    }
}
