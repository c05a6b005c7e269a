//! Finding a slot: the eviction walk.
//!
//! An item goes into the emptier of its two buckets. When both are full, the walk looks, breadth first, for the nearest
//! bucket with room that evictions can reach: first among the alternates of the residents of the two (the look one step
//! ahead), then among the alternates of those alternates' residents, and so on. Only once it has found one does anything
//! move, last move first. So a walk that gives up has changed nothing, there is nothing to roll back, and no generator of
//! random numbers to make two runs differ.
//!
//! A path never visits a bucket twice: had its second visit led to room, the first, expanded earlier, would have too.

use alloc::vec::Vec;

use crate::{
    bits::index,
    table::Address,
    table::{Fingerprint, Pair, TableMut, fingerprints},
};

/// Full buckets that a walk expands before it gives up. With a quarter of them, large tables refuse an item at a load 0.002
/// lower: change it, and run `cargo run --release --example tables -- max_load 4 12`.
const MAX_EXPANDED: usize = 4096;

/// Nodes of a walk from which on it pays to remember where it has been. Most walks are over by then.
const LONG_WALK: usize = 64;

/// A full bucket of the walk. Small, so that the list of a short walk is what an allocator has at hand.
struct Node {
    bucket: u64,
    /// The node whose resident has this bucket as its alternate; itself for the item's own buckets.
    parent: u16,
    /// What moves into this bucket: that resident, or the item itself.
    incoming: Fingerprint,
}

/// Stores a fingerprint in one of its two buckets. False, and nothing changed, if no room was found.
pub(crate) fn place<T: TableMut>(table: &mut T, address: &Address, buckets: Pair, fingerprint: Fingerprint) -> bool {
    table.insert(buckets, fingerprint) || make_room(table, address, buckets, fingerprint).is_some()
}

/// Stores an item whose two buckets are full. The number of evictions it took, or none, and nothing changed, if no room was
/// found.
#[inline(never)]
pub(crate) fn evict<T: TableMut>(table: &mut T, address: &Address, hash: u64) -> Option<u32> {
    let (buckets, fingerprint) = address.buckets(hash);
    make_room(table, address, buckets, fingerprint)
}

fn make_room<T: TableMut>(table: &mut T, address: &Address, roots: Pair, fingerprint: Fingerprint) -> Option<u32> {
    if one_step(table, address, roots, fingerprint) { Some(1) } else { walk(table, address, roots, fingerprint) }
}

/// The walk's beginning, which mostly is all of it, and needs no list of nodes: moves one of the residents of the two buckets
/// to its alternate.
#[inline]
fn one_step<T: TableMut>(table: &mut T, address: &Address, roots: Pair, fingerprint: Fingerprint) -> bool {
    for bucket in [roots.0, roots.1] {
        for resident in fingerprints(&table.values(bucket)) {
            let alternate = address.alternate(bucket, resident);
            if table.has_room(alternate) {
                table.put(alternate, resident);
                table.replace(bucket, resident, fingerprint);
                return true;
            }
        }
    }
    false
}

/// The walk from the beginning, and how many evictions it led to.
#[cold]
fn walk<T: TableMut>(table: &mut T, address: &Address, roots: Pair, fingerprint: Fingerprint) -> Option<u32> {
    let mut nodes = Vec::with_capacity(LONG_WALK);
    for (parent, bucket) in [(0, roots.0), (1, roots.1)] {
        nodes.push(Node { bucket, parent, incoming: fingerprint });
    }
    let mut visited = None;
    let mut next: u16 = 0;
    while usize::from(next) < nodes.len() {
        if visited.is_none() && nodes.len() >= LONG_WALK {
            visited = Some(Visited::all(&nodes));
        }
        let bucket = nodes[usize::from(next)].bucket;
        for resident in fingerprints(&table.values(bucket)) {
            let alternate = address.alternate(bucket, resident);
            if visited.as_ref().is_some_and(|visited| visited.contains(alternate)) {
                continue;
            }
            if table.has_room(alternate) {
                table.put(alternate, resident);
                return Some(shift(table, &nodes, next, resident));
            }
            if nodes.len() < MAX_EXPANDED {
                nodes.push(Node { bucket: alternate, parent: next, incoming: resident });
                if let Some(visited) = &mut visited {
                    visited.insert(alternate);
                }
            }
        }
        next += 1;
    }
    None
}

/// Moves everything along the path that ends at node `last`, whose `outgoing` resident has already been copied onwards. The
/// number of residents moved, that one included.
fn shift<T: TableMut>(table: &mut T, nodes: &[Node], mut last: u16, mut outgoing: Fingerprint) -> u32 {
    let mut evictions = 1;
    loop {
        let Node { bucket, parent, incoming } = nodes[usize::from(last)];
        table.replace(bucket, outgoing, incoming);
        if parent == last {
            return evictions;
        }
        (last, outgoing) = (parent, incoming);
        evictions += 1;
    }
}

/// Where a walk has been, a bit for each bucket; buckets that are a multiple of [`Visited::BITS`] apart share one. In
/// larger tables a walk may thus miss a bucket it has not seen, which costs it less than visiting others again and again
/// would cost it in smaller ones.
struct Visited([u64; Self::BITS / 64]);

impl Visited {
    const BITS: usize = 1 << 14;

    fn all(nodes: &[Node]) -> Self {
        let mut visited = Self([0; Self::BITS / 64]);
        for node in nodes {
            visited.insert(node.bucket);
        }
        visited
    }

    fn place(bucket: u64) -> (usize, u64) {
        let bit = index(bucket) % Self::BITS;
        (bit / 64, 1 << (bit % 64))
    }

    fn insert(&mut self, bucket: u64) {
        let (word, bit) = Self::place(bucket);
        self.0[word] |= bit;
    }

    fn contains(&self, bucket: u64) -> bool {
        let (word, bit) = Self::place(bucket);
        self.0[word] & bit != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        params::Params,
        params::{Addressing, TableKind},
        table::{AnyTable, Corrupt, Packed, Table},
    };
    use core::{cell::Cell, ops::Range};

    /// Counts how often it is asked whether a bucket has room, and how often an item takes another's place.
    struct Counting<'a> {
        table: &'a mut Packed,
        asked: Cell<u32>,
        replaced: u32,
    }

    impl<'a> Counting<'a> {
        fn new(table: &'a mut Packed) -> Self {
            Self { table, asked: Cell::new(0), replaced: 0 }
        }
    }

    impl Table for Counting<'_> {
        type Values = [u32; 4];

        fn contains(&self, buckets: Pair, fingerprint: Fingerprint) -> bool {
            self.table.contains(buckets, fingerprint)
        }
        fn values(&self, bucket: u64) -> [u32; 4] {
            self.table.values(bucket)
        }
        fn has_room(&self, bucket: u64) -> bool {
            self.asked.set(self.asked.get() + 1);
            self.table.has_room(bucket)
        }
        fn position(&self, bucket: u64) -> usize {
            self.table.position(bucket)
        }
        fn taken(&self, buckets: Range<u64>) -> Option<u64> {
            self.table.taken(buckets)
        }
        fn corrupt(&self, bucket: u64) -> Option<Corrupt> {
            self.table.corrupt(bucket)
        }
        fn memory(&self) -> &[u8] {
            self.table.memory()
        }
    }

    impl TableMut for Counting<'_> {
        fn insert(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool {
            self.table.insert(buckets, fingerprint)
        }
        fn remove(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool {
            self.table.remove(buckets, fingerprint)
        }
        fn put(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
            self.table.put(bucket, fingerprint)
        }
        fn replace(&mut self, bucket: u64, old: Fingerprint, new: Fingerprint) {
            self.replaced += 1;
            self.table.replace(bucket, old, new);
        }
        fn memory_mut(&mut self) -> &mut [u8] {
            self.table.memory_mut()
        }
    }

    fn hash(n: u64) -> u64 {
        n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    /// Each eviction puts one item into another's place.
    #[test]
    fn evictions_are_counted() {
        let params = Params::new(TableKind::Packed, 13, 4, 1024, Addressing::AnySize, 0).unwrap();
        let address = Address::new(&params);
        let mut seen = [0; 4];
        for round in 0..8 {
            let AnyTable::Packed(mut table) = AnyTable::new(&params).unwrap() else { unreachable!() };
            for n in 1.. {
                let mut counting = Counting::new(&mut table);
                let (buckets, fingerprint) = address.buckets(hash(n << 8 | round));
                if !counting.insert(buckets, fingerprint) {
                    let Some(evictions) = make_room(&mut counting, &address, buckets, fingerprint) else { break };
                    assert_eq!(evictions, counting.replaced);
                    seen[(evictions as usize).min(3)] += 1;
                }
            }
        }
        assert!(seen[0] == 0 && seen[1] > seen[2] && seen[2] > seen[3] && seen[3] > 0, "{seen:?}");
    }

    /// A refusal that has been everywhere once is soon over; without a memory it would ask 4 · 4096 times.
    #[test]
    fn a_long_walk_visits_no_bucket_twice() {
        let params = Params::new(TableKind::Packed, 13, 4, 128, Addressing::AnySize, 0).unwrap();
        let address = Address::new(&params);
        let AnyTable::Packed(mut table) = AnyTable::new(&params).unwrap() else { unreachable!() };
        let mut refusals = 0;
        for n in 1..2000 {
            let mut counting = Counting::new(&mut table);
            let (buckets, fingerprint) = address.buckets(hash(n));
            if !place(&mut counting, &address, buckets, fingerprint) {
                refusals += 1;
                assert!(counting.asked.get() <= 4 * LONG_WALK as u32 + 128, "{} buckets asked", counting.asked.get());
            }
        }
        assert!(refusals > 1000, "{refusals}");
    }
}
