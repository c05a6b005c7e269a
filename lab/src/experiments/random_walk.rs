//! The paper's insertion, a [random walk](RandomWalk), in a plain cuckoo table with one word per slot.
//!
//! Buckets and fingerprints follow koel's formulas for any number of buckets (docs/FORMAT.md, "Where an item is"), so tables differ
//! from koel's only in the walk. The library does not share this code; a test compares the two.

use super::Hashes;

/// The odd multiplier of all formulas: 2⁶⁴ divided by the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The value of an empty slot; fingerprints are never 0.
const EMPTY: u32 = 0;

/// The paper's limit of evictions for one insertion.
const MAX_EVICTIONS: u32 = 500;

/// A table with the paper's insertion (algorithm 1). An item whose two buckets are full evicts a random item from one of them. The
/// evicted item goes to its own other bucket, where it may evict the next item, at most 500 times.
pub(super) struct RandomWalk {
    slots: Vec<u32>,
    b: usize,
    buckets: u64,
    /// The number of fingerprints, 2ᶠ − 1.
    fingerprints: u64,
    random: Hashes,
}

#[allow(clippy::cast_possible_truncation, reason = "halves of products are wanted; buckets are below the length of a vector")]
impl RandomWalk {
    /// Returns an empty table with `buckets` buckets of `b` slots for fingerprints of `f` bits. `buckets` must be even. The seed
    /// determines which items are evicted.
    pub(super) fn new(f: u32, b: u32, buckets: u64, seed: u64) -> Self {
        let (slots, b) = (vec![EMPTY; buckets as usize * b as usize], b as usize);
        Self { slots, b, buckets, fingerprints: (1 << f) - 1, random: Hashes::new(!seed) }
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn clear(&mut self) {
        self.slots.fill(EMPTY);
    }

    /// Inserts an item by its hash, and returns the number of evictions. Returns `None` if 500 are not enough; the item evicted
    /// last is then lost.
    pub(super) fn insert(&mut self, hash: u64) -> Option<u32> {
        let (mut fingerprint, [first, second]) = self.locate(hash);
        if self.put(first, fingerprint) || self.put(second, fingerprint) {
            return Some(0);
        }
        let mut bucket = if self.random.next()? & 1 == 0 { first } else { second };
        for evictions in 1..=MAX_EVICTIONS {
            let slot = self.random.position(self.b);
            std::mem::swap(&mut fingerprint, &mut self.bucket(bucket)[slot]);
            bucket = self.alternate(bucket, fingerprint);
            if self.put(bucket, fingerprint) {
                return Some(evictions);
            }
        }
        None
    }

    /// Returns the fingerprint of an item, and its first and second bucket.
    fn locate(&self, hash: u64) -> (u32, [u64; 2]) {
        let spread = (hash ^ hash >> 31).wrapping_mul(MULTIPLIER);
        let spread = (spread ^ spread >> 32).wrapping_mul(MULTIPLIER);
        let product = u128::from(spread) * u128::from(self.buckets);
        let first = (product >> 64) as u64;
        let fingerprint = (((((product as u64) >> 32) * self.fingerprints) >> 32) + 1) as u32;
        (fingerprint, [first, self.alternate(first, fingerprint)])
    }

    /// Returns the other bucket of a fingerprint in this bucket: (s − i) mod m. Since s is odd and m is even, the two buckets
    /// always differ.
    fn alternate(&self, bucket: u64, fingerprint: u32) -> u64 {
        let spread = u64::from(fingerprint).wrapping_mul(MULTIPLIER);
        let spread = spread.wrapping_mul(spread >> 32);
        let sum = ((u128::from(spread) * u128::from(self.buckets)) >> 64) as u64 | 1;
        if sum >= bucket { sum - bucket } else { sum + self.buckets - bucket }
    }

    fn bucket(&mut self, bucket: u64) -> &mut [u32] {
        let start = bucket as usize * self.b;
        &mut self.slots[start..start + self.b]
    }

    /// Puts the fingerprint into the bucket's first empty slot. Returns false if there is none.
    fn put(&mut self, bucket: u64, fingerprint: u32) -> bool {
        let empty = self.bucket(bucket).iter_mut().find(|slot| **slot == EMPTY);
        empty.map(|slot| *slot = fingerprint).is_some()
    }
}

#[cfg(test)]
mod tests {
    use koel::{CuckooFilter, Prehashed, TableKind};

    use super::*;

    /// Both locate items by the same formulas, so they find the same items as long as nothing is evicted.
    #[test]
    fn the_random_walk_puts_items_where_the_library_does() {
        for (f, b) in [(2, 1), (5, 2), (13, 4), (32, 8)] {
            let builder = CuckooFilter::builder().table(TableKind::Single).fingerprint_bits(f).bucket_size(b);
            let mut filter = builder.buckets(1002).build().expect("valid parameters");
            let mut walk = RandomWalk::new(f, b, 1002, 1);
            let hashes: Vec<_> = Hashes::new(u64::from(f)).take(50).collect();
            for &hash in &hashes {
                filter.insert(&Prehashed(hash)).expect("there is room");
                assert_eq!(walk.insert(hash), Some(0));
            }
            let mut holds = |hash| {
                let (fingerprint, buckets) = walk.locate(hash);
                buckets.into_iter().any(|bucket| walk.bucket(bucket).contains(&fingerprint))
            };
            assert!(hashes.iter().all(|&hash| holds(hash)));
            for hash in Hashes::new(9).take(20_000) {
                assert_eq!(holds(hash), filter.contains(&Prehashed(hash)), "f {f}, b {b}");
            }
        }
    }

    #[test]
    fn the_alternate_of_the_alternate_is_the_bucket() {
        for buckets in [2, 128, 1002, 1 << 40, (1 << 40) + 2] {
            // Only the formulas are tested, so the table has no slots.
            let walk = RandomWalk { buckets, ..RandomWalk::new(13, 0, 0, 1) };
            for hash in Hashes::new(buckets).take(1000) {
                let (fingerprint, [first, second]) = walk.locate(hash);
                assert!(first < buckets && second < buckets && first != second);
                assert_eq!(walk.alternate(second, fingerprint), first);
            }
        }
    }

    /// A walk in a full table ends at the limit of 500 evictions.
    #[test]
    fn walks_end_at_the_limit() {
        let mut walk = RandomWalk::new(16, 4, 128, 1);
        let evictions: Vec<_> = Hashes::new(3).map_while(|hash| walk.insert(hash)).collect();
        assert!(evictions.iter().max().is_some_and(|most| (100..=500).contains(most)), "{evictions:?}");
        // The lost item's slot is taken by another item.
        let items = |walk: &RandomWalk| walk.slots.iter().filter(|&&slot| slot != EMPTY).count();
        assert!(items(&walk) > 128 * 4 * 9 / 10);
        walk.clear();
        assert_eq!(items(&walk), 0);
    }
}
