//! The experiments of `koel experiment`, one file or folder each.

pub mod fpr;
pub mod load;
mod probe;
mod random_walk;
pub mod space;
pub mod speed;
pub mod sweep;
pub(crate) mod times;

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{RngCore as _, SeedableRng as _},
};

pub use {fpr::Fpr, load::Load, space::Space, speed::Speed, sweep::Sweep};

/// The number of buckets of b slots for this many slots, rounded up to an even number.
fn buckets(slots: u64, b: u32) -> u64 {
    (slots / u64::from(b)).div_ceil(2) * 2
}

/// A round number with a unit: 100 k, 10 M.
fn count(number: u64) -> String {
    match number {
        1_000_000.. => format!("{} M", number / 1_000_000),
        1000.. => format!("{} k", number / 1000),
        _ => number.to_string(),
    }
}

/// Random numbers that stand for the hashes of items, without end: 64 uniformly distributed bits each, the same for the same
/// seed on every machine.
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
