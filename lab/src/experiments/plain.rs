//! A cuckoo table as plain as can be, a word per slot, and two ways to make room in it: the paper's [random walk](RandomWalk)
//! and koel's [search](insert_nearest) for the nearest free slot. Both count evictions, which the library does not.
//!
//! Buckets and fingerprints are found by koel's formulas for any number of buckets (docs/FORMAT.md, "Where an item is"), so
//! that the two differ in the walk only. The code is not shared with the library: a test compares the two, byte for byte.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::random::Hashes;

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

/// A search has no more nodes than this: it gives up after as many full buckets.
const MOST_NODES: usize = 4096;

/// From this number of nodes on, a search remembers the buckets it has visited: if they have several slots. With one slot, a
/// bucket leads to one other, and mistaking that for a visited one would end the search.
const LONG_WALK: usize = 64;

/// Buckets this far apart are taken for the same when they are remembered.
const REMEMBERED: u64 = 1 << 14;

/// A full bucket that the search has reached.
struct Node {
    bucket: u64,
    /// The node from which `incoming` would move into this bucket. None if this is one of the item's own buckets.
    parent: Option<usize>,
    incoming: u32,
}

/// Koel's insertion, written once more, by the item's hash: returns the number of evictions, or `None` if the item was refused.
///
/// An item goes into the emptier of its two buckets. When both are full, the walk
/// searches, breadth first, for the nearest bucket with an empty slot that evictions can reach, and then moves the items on
/// the path to it, the last one first. If there is no such bucket, nothing changes.
///
/// The library's walk has the same limits, and two shortcuts, which change nothing about the result: for paths of one eviction,
/// and for buckets of one slot, where it follows the two chains without a list of them.
pub(super) fn insert_nearest(table: &mut Plain, hash: u64) -> Option<u32> {
    let Place { buckets: [first, second], fingerprint } = table.locate(hash);
    let emptier = if table.free(second) > table.free(first) { second } else { first };
    if table.put(emptier, fingerprint) {
        return Some(0);
    }
    let root = |bucket| Node { bucket, parent: None, incoming: fingerprint };
    let mut nodes = vec![root(first), root(second)];
    let mut visited = HashSet::new();
    let mut next = 0;
    while let Some(&Node { bucket, .. }) = nodes.get(next) {
        if visited.is_empty() && nodes.len() >= LONG_WALK && table.b > 1 {
            visited.extend(nodes.iter().map(|node| node.bucket % REMEMBERED));
        }
        for slot in 0..table.b {
            let resident = table.bucket(bucket)[slot];
            let alternate = table.alternate(bucket, resident);
            if visited.contains(&(alternate % REMEMBERED)) {
                continue;
            }
            if table.put(alternate, resident) {
                return Some(shift(table, &nodes, next, resident));
            }
            if nodes.len() < MOST_NODES {
                nodes.push(Node { bucket: alternate, parent: Some(next), incoming: resident });
                if !visited.is_empty() {
                    visited.insert(alternate % REMEMBERED);
                }
            }
        }
        next += 1;
    }
    None
}

/// Moves the items on the path to a node: `outgoing` has been copied from there to its other bucket, so that its slot is
/// free for the node's `incoming`, and so on up to the new item. Returns the number of items moved, `outgoing` included.
fn shift(table: &mut Plain, nodes: &[Node], mut node: usize, mut outgoing: u32) -> u32 {
    let mut evictions = 1;
    loop {
        let Node { bucket, parent, incoming } = nodes[node];
        table.change(bucket, outgoing, incoming);
        let Some(parent) = parent else { return evictions };
        (node, outgoing) = (parent, incoming);
        evictions += 1;
    }
}

/// The paper's limit for one insertion.
const MOST_EVICTIONS: u32 = 500;

/// The paper's insertion (algorithm 1): an item whose two buckets are full takes the slot of a resident chosen at random,
/// which goes to its own other bucket and may evict the next one there, 500 times at most.
pub(super) struct RandomWalk {
    table: Plain,
    random: Hashes,
}

impl RandomWalk {
    /// The seed decides which residents are evicted.
    pub(super) fn new(table: Plain, seed: u64) -> Self {
        Self { table, random: Hashes::new(!seed) }
    }

    pub(super) fn clear(&mut self) {
        self.table.clear();
    }

    /// Inserts an item by its hash, and returns the number of evictions. `None` if 500 were not enough: then the item evicted
    /// last is lost.
    pub(super) fn insert(&mut self, hash: u64) -> Option<u32> {
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

#[cfg(test)]
mod tests {
    use koel::{CuckooFilter, Prehashed, TableKind};

    use super::*;

    /// Offset of the table in a snapshot, after its header (docs/FORMAT.md).
    const HEADER: usize = 64;

    fn filter(f: u32, b: u32, buckets: u64) -> CuckooFilter {
        let builder = CuckooFilter::builder().table(TableKind::Single).fingerprint_bits(f).bucket_size(b).buckets(buckets);
        builder.build().expect("the parameters are right")
    }

    impl Plain {
        /// The table's bytes in a snapshot: slot after slot, f bits each, the least significant first.
        fn bytes(&self, f: u32) -> Vec<u8> {
            let bits = self.slots.iter().flat_map(|&slot| (0..f).map(move |bit| slot >> bit & 1 == 1));
            let bits: Vec<_> = bits.collect();
            let byte = |bits: &[bool]| bits.iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
            bits.chunks(8).map(byte).collect()
        }

        fn items(&self) -> usize {
            self.slots.iter().filter(|&&slot| slot != EMPTY).count()
        }
    }

    fn assert_same(plain: &Plain, filter: &CuckooFilter, f: u32, what: &str) {
        let snapshot = filter.to_bytes();
        let table = &snapshot[HEADER..HEADER + filter.params().table_bytes()];
        assert!(plain.bytes(f) == table, "{what}: the tables differ");
        assert_eq!(plain.items(), filter.len(), "{what}");
    }

    /// Up to the first refusal, the search for the nearest slot does what the library does; the refusal, too, is the same.
    #[test]
    fn the_nearest_slot_is_the_librarys() {
        let mut evictions = [0; 5];
        let mut refusals = 0;
        for (f, b) in [(2, 1), (3, 16), (4, 2), (5, 8), (7, 3), (8, 4), (13, 4), (16, 2), (21, 5), (32, 1), (32, 4)] {
            // In 20,000 buckets, a search takes different ones for the same. Only in more do chains become so long.
            for buckets in [2, 6, 128, 1002, 20_000].into_iter().chain((b == 1).then_some(200_000)) {
                let what = format!("f {f}, b {b}, {buckets} buckets");
                let (mut plain, mut filter) = (Plain::new(f, b, buckets), filter(f, b, buckets));
                for hash in Hashes::new(buckets ^ u64::from(f)) {
                    let moved = insert_nearest(&mut plain, hash);
                    assert_eq!(
                        moved.is_some(),
                        filter.insert(&Prehashed(hash)).is_ok(),
                        "{what}: one of the two refused an item"
                    );
                    let Some(moved) = moved else { break };
                    evictions[moved.min(4) as usize] += 1;
                }
                refusals += 1;
                assert_same(&plain, &filter, f, &what);
            }
        }
        assert_eq!(refusals, 57);
        assert!(evictions.is_sorted_by(|more, fewer| more > fewer) && evictions[4] > 1000, "{evictions:?}");
    }

    /// An insertion without evictions fills one slot, one with k of them changes k slots more.
    #[test]
    fn evictions_are_those_that_happened() {
        let mut plain = Plain::new(16, 4, 128);
        let mut seen = [0; 4];
        let mut before = plain.slots.clone();
        for hash in Hashes::new(1) {
            let Some(evictions) = insert_nearest(&mut plain, hash) else { break };
            let changed = before.iter().zip(&plain.slots).filter(|(before, after)| before != after).count();
            assert_eq!(changed, evictions as usize + 1);
            seen[evictions.min(3) as usize] += 1;
            before.clone_from(&plain.slots);
        }
        assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
        assert!(before == plain.slots, "a refused item changed the table");
    }

    /// The random walk locates items by the same formulas: as long as nothing is evicted, both find the same items.
    #[test]
    fn the_random_walk_puts_items_where_the_library_does() {
        for (f, b) in [(2, 1), (5, 2), (13, 4), (32, 8)] {
            let (mut walk, mut filter) = (RandomWalk::new(Plain::new(f, b, 1002), 1), filter(f, b, 1002));
            let hashes: Vec<_> = Hashes::new(u64::from(f)).take(50).collect();
            for &hash in &hashes {
                filter.insert(&Prehashed(hash)).expect("there is room");
                assert_eq!(walk.insert(hash), Some(0));
            }
            let holds = |hash| {
                let place = walk.table.locate(hash);
                place.buckets.into_iter().any(|bucket| walk.table.bucket(bucket).contains(&place.fingerprint))
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
            // No slots: only the formulas are wanted.
            let plain = Plain { slots: Vec::new(), b: 0, buckets, fingerprints: (1 << 13) - 1 };
            for hash in Hashes::new(buckets).take(1000) {
                let place = plain.locate(hash);
                let [first, second] = place.buckets;
                assert!(first < buckets && second < buckets && first != second);
                assert_eq!(plain.alternate(second, place.fingerprint), first);
            }
        }
    }

    /// The limit of 500 evictions ends a walk in a full table.
    #[test]
    fn the_random_walk_gives_up() {
        let mut walk = RandomWalk::new(Plain::new(16, 4, 128), 1);
        let mut most = 0;
        for hash in Hashes::new(3) {
            let Some(evictions) = walk.insert(hash) else { break };
            most = evictions.max(most);
        }
        assert!((100..=500).contains(&most), "{most}");
        // One item is lost; its place is taken.
        assert!(walk.table.items() > 128 * 4 * 9 / 10);
        walk.clear();
        assert_eq!(walk.table.items(), 0);
    }
}
