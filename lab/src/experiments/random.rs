//! Random numbers that stand for the hashes of items: 64 uniformly distributed bits each, the same for the same seed on every
//! machine.

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{RngCore as _, SeedableRng as _},
};

/// An endless sequence of random hashes.
#[derive(Clone)]
pub(super) struct Hashes(Xoshiro256PlusPlus);

impl Hashes {
    pub(super) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// A random position in a list of this length.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "below the length")]
    pub(super) fn position(&mut self, len: usize) -> usize {
        ((u128::from(self.0.next_u64()) * len as u128) >> 64) as usize
    }
}

impl Iterator for Hashes {
    type Item = u64;

    #[inline]
    fn next(&mut self) -> Option<u64> {
        Some(self.0.next_u64())
    }
}
