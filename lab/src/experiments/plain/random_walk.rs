//! The paper's insertion (algorithm 1): an item whose two buckets are full takes the slot of a resident chosen at random,
//! which goes to its own other bucket and may evict the next one there, 500 times at most.

use super::Plain;
use crate::experiments::random::Hashes;

/// The paper's limit for one insertion.
const MOST_EVICTIONS: u32 = 500;

/// A table with this insertion.
pub(in crate::experiments) struct RandomWalk {
    pub(super) table: Plain,
    random: Hashes,
}

impl RandomWalk {
    /// The seed decides which residents are evicted.
    pub(in crate::experiments) fn new(table: Plain, seed: u64) -> Self {
        Self { table, random: Hashes::new(!seed) }
    }

    pub(in crate::experiments) fn clear(&mut self) {
        self.table.clear();
    }

    /// Inserts an item by its hash, and returns the number of evictions. `None` if 500 were not enough: then the item evicted
    /// last is lost.
    pub(in crate::experiments) fn insert(&mut self, hash: u64) -> Option<u32> {
        let Self { table, random } = self;
        let place = table.locate(hash);
        let [first, second] = place.buckets;
        let mut fingerprint = place.fingerprint;
        if table.put(first, fingerprint) || table.put(second, fingerprint) {
            return Some(0);
        }
        let mut bucket = if random.next()? & 1 == 0 { first } else { second };
        for evictions in 1..=MOST_EVICTIONS {
            let slot = random.position(table.b);
            std::mem::swap(&mut fingerprint, &mut table.bucket_mut(bucket)[slot]);
            bucket = table.alternate(bucket, fingerprint);
            if table.put(bucket, fingerprint) {
                return Some(evictions);
            }
        }
        None
    }
}
