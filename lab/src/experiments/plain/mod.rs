//! A cuckoo table as plain as can be, a word per slot, and two ways to make room in it: the paper's [random walk](RandomWalk)
//! and koel's [search](nearest) for the nearest free slot. Both count evictions, which the library does not.
//!
//! Buckets and fingerprints are found by koel's formulas for any number of buckets (docs/FORMAT.md, "Where an item is"), so
//! that the two differ in the walk only. The code is not shared with the library: a test compares the two, byte for byte.

mod nearest;
mod random_walk;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub(super) use nearest::insert as insert_nearest;
pub(super) use random_walk::RandomWalk;

/// How room is made when both buckets of an item are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Walk {
    /// Koel's breadth-first search for the nearest free slot.
    Koel,
    /// The paper's random walk, of 500 evictions at most.
    Random,
}

/// The odd multiplier of all formulas: 2⁶⁴ divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The value of an empty slot. No fingerprint is 0.
const EMPTY: u32 = 0;

/// A table without a walk.
pub(super) struct Plain {
    slots: Vec<u32>,
    b: usize,
    buckets: u64,
    /// The number of fingerprints, 2ᶠ − 1.
    fingerprints: u64,
}

/// Where an item goes: its first and second bucket, and its fingerprint.
#[derive(Clone, Copy)]
struct Place {
    buckets: [u64; 2],
    fingerprint: u32,
}

impl Plain {
    /// An empty table of `buckets` buckets, of which there must be an even number, each of `b` slots for fingerprints of `f`
    /// bits.
    pub(super) fn new(f: u32, b: u32, buckets: u64) -> Self {
        let b = usize::try_from(b).unwrap_or(usize::MAX);
        let slots = usize::try_from(buckets).unwrap_or(usize::MAX).saturating_mul(b);
        Self { slots: vec![EMPTY; slots], b, buckets, fingerprints: (1 << f) - 1 }
    }

    fn clear(&mut self) {
        self.slots.fill(EMPTY);
    }

    fn locate(&self, hash: u64) -> Place {
        let spread = (hash ^ hash >> 31).wrapping_mul(MULTIPLIER);
        let spread = (spread ^ spread >> 32).wrapping_mul(MULTIPLIER);
        let product = u128::from(spread) * u128::from(self.buckets);
        let first = high(product);
        let fingerprint = word((((low(product) >> 32) * self.fingerprints) >> 32) + 1);
        Place { buckets: [first, self.alternate(first, fingerprint)], fingerprint }
    }

    /// The other bucket of a fingerprint in this bucket: (s − i) mod m, where s is odd and m even, so that it is never the
    /// same one.
    fn alternate(&self, bucket: u64, fingerprint: u32) -> u64 {
        let spread = u64::from(fingerprint).wrapping_mul(MULTIPLIER);
        let spread = spread.wrapping_mul(spread >> 32);
        let sum = high(u128::from(spread) * u128::from(self.buckets)) | 1;
        if sum >= bucket { sum - bucket } else { sum + self.buckets - bucket }
    }

    fn bucket(&self, bucket: u64) -> &[u32] {
        let start = index(bucket) * self.b;
        &self.slots[start..start + self.b]
    }

    fn bucket_mut(&mut self, bucket: u64) -> &mut [u32] {
        let start = index(bucket) * self.b;
        &mut self.slots[start..start + self.b]
    }

    fn free(&self, bucket: u64) -> usize {
        self.bucket(bucket).iter().filter(|&&slot| slot == EMPTY).count()
    }

    /// Changes the first slot of the bucket that holds `old` to `new`. False if there is none.
    fn change(&mut self, bucket: u64, old: u32, new: u32) -> bool {
        let found = self.bucket_mut(bucket).iter_mut().find(|slot| **slot == old);
        found.map(|slot| *slot = new).is_some()
    }

    /// Puts the fingerprint into the bucket's first empty slot. False if there is none.
    fn put(&mut self, bucket: u64, fingerprint: u32) -> bool {
        self.change(bucket, EMPTY, fingerprint)
    }
}

fn high(product: u128) -> u64 {
    low(product >> 64)
}

#[allow(clippy::cast_possible_truncation, reason = "the lower half is wanted")]
fn low(product: u128) -> u64 {
    product as u64
}

#[allow(clippy::cast_possible_truncation, reason = "a fingerprint has 32 bits at most")]
fn word(fingerprint: u64) -> u32 {
    fingerprint as u32
}

#[allow(clippy::cast_possible_truncation, reason = "below the length of a vector")]
fn index(number: u64) -> usize {
    number as usize
}
