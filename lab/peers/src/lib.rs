//! The comparison and its examples use the same keys, and XXH3 for other crates' filters.

use std::hash::Hasher;

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Applies the last step of `SplitMix64` (Steele, Lea and Flood, 2014). It is a bijection, so distinct numbers give distinct keys,
/// which look random.
#[inline]
#[must_use]
pub fn mix(n: u64) -> u64 {
    let n = (n ^ n >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ n >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ n >> 31
}

/// XXH3 as a hasher for the standard library. On little-endian machines, it hashes a `u64` as koel does.
#[derive(Clone, Default)]
pub struct Xxh3(u64);

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

/// Returns the hash of a key, for filters that accept hashes.
#[inline]
#[must_use]
pub fn digest(key: u64) -> u64 {
    xxh3_64_with_seed(&key.to_le_bytes(), 0)
}

#[cfg(test)]
mod tests {
    use std::hash::{BuildHasher as _, BuildHasherDefault};

    use koel::hash::{Hasher as _, Uniform};

    use super::*;

    #[test]
    #[cfg(target_endian = "little")]
    fn all_filters_hash_alike() {
        for key in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
            assert_eq!(Uniform::new(digest(key)), koel::Xxh3.hash(0, &key.to_le_bytes()));
            assert_eq!(BuildHasherDefault::<Xxh3>::default().hash_one(key), digest(key));
        }
    }
}
