//! A table as the paper has it (algorithm 1): what finds no room in its two buckets throws out a resident chosen at random,
//! which goes to its own other bucket, where it may throw out the next one, 500 times at most. The measure of what koel's
//! search is worth.
//!
//! Buckets and alternates are found by koel's formulas for any number of buckets (docs/FORMAT.md, "Addressing"), so that the
//! walk is all that differs.

use serde::{Deserialize, Serialize};

use super::random::Hashes;

/// How room is found when both buckets are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Walk {
    /// Koel's search for the nearest free slot.
    Koel,
    /// The paper's: a resident chosen at random gives way, 500 times at most.
    Random,
}

/// As many evictions as the paper allows for an item.
const MOST_EVICTIONS: u32 = 500;

/// The table: a word for each slot, 0 where it is free.
pub(super) struct Plain {
    slots: Vec<u32>,
    b: usize,
    buckets: u64,
    fingerprints: u64,
    random: Hashes,
}

impl Plain {
    pub(super) fn new(f: u32, b: u32, buckets: u64, seed: u64) -> Self {
        let b = usize::try_from(b).unwrap_or(usize::MAX);
        let slots = usize::try_from(buckets).unwrap_or(usize::MAX).saturating_mul(b);
        Self { slots: vec![0; slots], b, buckets, fingerprints: (1 << f) - 1, random: Hashes::new(!seed) }
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill(0);
    }

    /// Stores a hash's fingerprint. The number of evictions it took; none if 500 were not enough, and then one item is lost.
    pub(super) fn insert(&mut self, hash: u64) -> Option<u32> {
        let product = u128::from(hash) * u128::from(self.buckets);
        let (first, rest) = (high(product), low(product) >> 32);
        let mut fingerprint = word(((rest * self.fingerprints) >> 32) + 1);
        let second = self.alternate(first, fingerprint);
        if self.put(first, fingerprint) || self.put(second, fingerprint) {
            return Some(0);
        }
        let mut bucket = if self.random.next()? & 1 == 0 { first } else { second };
        for evictions in 1..=MOST_EVICTIONS {
            let slot = high(u128::from(self.random.next()?) * self.b as u128);
            let place = index(bucket) * self.b + index(slot);
            std::mem::swap(&mut fingerprint, &mut self.slots[place]);
            bucket = self.alternate(bucket, fingerprint);
            if self.put(bucket, fingerprint) {
                return Some(evictions);
            }
        }
        None
    }

    fn put(&mut self, bucket: u64, fingerprint: u32) -> bool {
        let start = index(bucket) * self.b;
        let free = self.slots[start..start + self.b].iter_mut().find(|slot| **slot == 0);
        free.map(|slot| *slot = fingerprint).is_some()
    }

    fn alternate(&self, bucket: u64, fingerprint: u32) -> u64 {
        let mixed = u64::from(fingerprint).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let sum = high(u128::from(mixed) * u128::from(self.buckets)) | 1;
        if sum >= bucket { sum - bucket } else { sum + self.buckets - bucket }
    }
}

fn high(product: u128) -> u64 {
    low(product >> 64)
}

#[allow(clippy::cast_possible_truncation, reason = "the lower half is what is wanted")]
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

#[cfg(test)]
mod tests {
    use super::*;
    use koel::{CuckooFilter, TableKind};

    /// The same formulas: as long as nothing is evicted, each bucket holds the same fingerprints as koel's.
    #[test]
    fn items_go_where_koel_puts_them() {
        for (f, b) in [(2, 1), (5, 2), (13, 4), (32, 8)] {
            let mut filter = CuckooFilter::builder()
                .table(TableKind::Single)
                .fingerprint_bits(f)
                .bucket_size(b)
                .buckets(1002)
                .build()
                .expect("the parameters are right");
            let mut plain = Plain::new(f, b, 1002, 1);
            let hashes: Vec<_> = Hashes::new(u64::from(f)).take(50).collect();
            for &hash in &hashes {
                filter.insert_hash(hash).expect("there is room");
                assert_eq!(plain.insert(hash), Some(0));
            }
            // A copy of it in either table stands in one of the same two buckets, with the same fingerprint.
            for &hash in &hashes {
                let mut alone = Plain::new(f, b, 1002, 1);
                alone.insert(hash);
                let place = alone.slots.iter().position(|&slot| slot != 0).expect("it is in");
                let (bucket, fingerprint) = ((place / b as usize) as u64, alone.slots[place]);
                assert_eq!(plain.alternate(plain.alternate(bucket, fingerprint), fingerprint), bucket);
                assert_ne!(plain.alternate(bucket, fingerprint), bucket);
            }
            let count = |filter: &CuckooFilter| Hashes::new(9).take(20_000).filter(|&hash| filter.contains_hash(hash)).count();
            let found = Hashes::new(9).take(20_000).filter(|&hash| plain.holds(hash)).count();
            assert_eq!(count(&filter), found, "f {f} b {b}");
            assert!(hashes.iter().all(|&hash| plain.holds(hash)));
        }
    }

    impl Plain {
        fn holds(&self, hash: u64) -> bool {
            let product = u128::from(hash) * u128::from(self.buckets);
            let fingerprint = word((((low(product) >> 32) * self.fingerprints) >> 32) + 1);
            let first = high(product);
            [first, self.alternate(first, fingerprint)].into_iter().any(|bucket| {
                let start = index(bucket) * self.b;
                self.slots[start..start + self.b].contains(&fingerprint)
            })
        }
    }
}
