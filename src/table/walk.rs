//! The eviction walk, which finds a slot for an item whose two buckets are full.
//!
//! The walk is a breadth-first search for the nearest bucket with room that evictions can reach: first among the alternates of
//! the residents of the item's buckets, then among the alternates of the residents found there, and so on. Fingerprints are moved
//! only once a bucket with room is found, the last one on the path first. So a walk that gives up has changed nothing and needs
//! no rollback, and since it uses no random numbers, it is reproducible.
//!
//! A path never contains a bucket twice: if its second occurrence led to room, the first one, expanded earlier, would have found
//! that room.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use alloc::vec::Vec;

use super::{Change, Fingerprint, Pair, Placement, TableMut, fingerprints};
use crate::bits::index;

/// The number of full buckets that a walk expands before it gives up. With a quarter of it, large tables refuse items at a load
/// lower by 0.002; measure with `cargo run --release --example tables -- max_load 4 12`.
const MAX_EXPANDED: usize = 4096;

/// Slots of a bucket, at most: so many nodes are added at a time.
const MAX_SLOTS: usize = 16;

/// The number of nodes above which tracking visited buckets pays. Most walks are shorter.
const LONG_WALK: usize = 64;

/// A full bucket on the walk. Kept small, so that the nodes of a short walk fit into a small allocation.
struct Node {
    bucket: u64,
    /// The node with the resident whose alternate is this bucket; the node itself for the item's own buckets.
    parent: u16,
    /// The fingerprint that moves into this bucket: that resident, or the item's.
    incoming: Fingerprint,
}

/// Stores a fingerprint in one of its two buckets, evicting others if necessary. Returns false, and changes nothing, if no slot
/// was found.
#[inline(always)]
pub(crate) fn place<T: TableMut>(table: &mut T, placement: impl Placement, buckets: Pair, fingerprint: Fingerprint) -> bool {
    table.insert(buckets, fingerprint) || table.outlined(Eviction { placement, buckets, fingerprint })
}

/// Inserts a fingerprint whose two buckets are full.
struct Eviction<P> {
    placement: P,
    buckets: Pair,
    fingerprint: Fingerprint,
}

impl<P: Placement> Change for Eviction<P> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        self.one_step(table) || table.outlined(Walk(self))
    }
}

impl<P: Placement> Eviction<P> {
    /// The first step of the walk: moves one resident of the two buckets to its alternate. Usually this is enough, and it needs
    /// no list of nodes.
    #[inline(always)]
    fn one_step<T: TableMut>(&self, table: &mut T) -> bool {
        for bucket in [self.buckets.0, self.buckets.1] {
            for resident in fingerprints(&table.values(bucket)) {
                let alternate = self.placement.alternate(bucket, resident);
                if table.has_room(alternate) {
                    table.put(alternate, resident);
                    table.replace(bucket, resident, self.fingerprint);
                    return true;
                }
            }
        }
        false
    }
}

/// The complete walk.
struct Walk<P>(Eviction<P>);

impl<P: Placement> Change for Walk<P> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let Self(Eviction { placement, buckets, fingerprint }) = self;
        // Without memory for the walk there is no room for the item.
        let mut nodes = Vec::new();
        if nodes.try_reserve_exact(LONG_WALK).is_err() {
            return false;
        }
        for (parent, bucket) in [(0, buckets.0), (1, buckets.1)] {
            nodes.push(Node { bucket, parent, incoming: fingerprint });
        }
        let mut visited = None;
        let mut next: u16 = 0;
        while usize::from(next) < nodes.len() {
            if nodes.capacity() - nodes.len() < MAX_SLOTS && nodes.try_reserve(MAX_SLOTS).is_err() {
                return false;
            }
            if visited.is_none() && nodes.len() >= LONG_WALK {
                visited = Some(Visited::all(&nodes));
            }
            let bucket = nodes[usize::from(next)].bucket;
            for resident in fingerprints(&table.values(bucket)) {
                let alternate = placement.alternate(bucket, resident);
                if visited.as_ref().is_some_and(|visited| visited.contains(alternate)) {
                    continue;
                }
                if table.has_room(alternate) {
                    table.put(alternate, resident);
                    shift(table, &nodes, next, resident);
                    return true;
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
        false
    }
}

/// Moves the fingerprints along the path that ends at node `last`. Its resident `outgoing` has already been copied to the next
/// bucket.
#[inline(always)]
fn shift<T: TableMut>(table: &mut T, nodes: &[Node], mut last: u16, mut outgoing: Fingerprint) {
    loop {
        let Node { bucket, parent, incoming } = nodes[usize::from(last)];
        table.replace(bucket, outgoing, incoming);
        if parent == last {
            return;
        }
        (last, outgoing) = (parent, incoming);
    }
}

/// The buckets that a walk has visited, one bit each. Buckets a multiple of [`Visited::BITS`] apart share a bit, so a walk in a
/// large table may skip a bucket that it has not visited. That costs less than visiting buckets repeatedly does in small tables.
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
    use super::{
        super::{Address, Corrupt, Form, Geometry, Portable, Table, Uniform, packed::Narrow},
        *,
    };
    use crate::{
        params::{Addressing, Params, TableKind},
        storage::{Owned, StorageMut as _},
    };
    use core::{cell::Cell, ops::Range};

    /// Counts the calls of `has_room`.
    struct Counting<'a, T> {
        table: &'a mut T,
        asked: Cell<u32>,
    }

    impl<T: Table> Table for Counting<'_, T> {
        type Values = T::Values;

        fn contains(&self, buckets: Pair, fingerprint: Fingerprint) -> bool {
            self.table.contains(buckets, fingerprint)
        }
        fn values(&self, bucket: u64) -> T::Values {
            self.table.values(bucket)
        }
        fn has_room(&self, bucket: u64) -> bool {
            self.asked.set(self.asked.get() + 1);
            self.table.has_room(bucket)
        }
        fn prefetch(&self, bucket: u64) {
            self.table.prefetch(bucket);
        }
        fn taken(&self, buckets: Range<u64>) -> Option<u64> {
            self.table.taken(buckets)
        }
        fn corrupt(&self, bucket: u64) -> Option<Corrupt> {
            self.table.corrupt(bucket)
        }
        fn len_in_bytes(&self) -> usize {
            self.table.len_in_bytes()
        }
    }

    impl<T: TableMut> TableMut for Counting<'_, T> {
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
            self.table.replace(bucket, old, new);
        }
        fn outlined<C: Change>(&mut self, change: C) -> C::Output {
            change.run(self)
        }
    }

    /// Runs [`place`], and also returns how many buckets were examined for room.
    struct Counted(Address, u64);

    impl Change for Counted {
        type Output = (bool, u32);

        fn run<T: TableMut>(self, table: &mut T) -> (bool, u32) {
            let mut counting = Counting { table, asked: Cell::new(0) };
            let (buckets, fingerprint) = self.0.buckets(Uniform(self.1));
            let is_placed = place(&mut counting, self.0, buckets, fingerprint);
            (is_placed, counting.asked.get())
        }
    }

    struct Filling {
        params: Params,
        geometry: Geometry,
        storage: Owned,
    }

    impl Filling {
        fn new(buckets: u64) -> Self {
            let params = Params::new(TableKind::Packed, 13, 4, buckets, Addressing::AnySize, 0).unwrap();
            Self { geometry: Geometry::new(&params), storage: Owned::zeroed(params.table_bytes()).unwrap(), params }
        }

        fn insert(&mut self, n: u64) -> (bool, u32) {
            let hash = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xd6e8_feb8_6659_fd93);
            let Geometry::Narrow(geometry) = &self.geometry else { unreachable!() };
            Narrow::change(geometry, self.storage.bytes_mut(), Portable, Counted(Address::new(&self.params), hash))
        }
    }

    /// In a small table a walk that is refused visits every bucket once and ends early. Without [`Visited`] it would examine 4 ·
    /// 4096 buckets.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn a_long_walk_visits_no_bucket_twice() {
        let mut table = Filling::new(128);
        let mut refusals = 0;
        for n in 1..2000 {
            let (is_placed, asked) = table.insert(n);
            if !is_placed {
                refusals += 1;
                assert!(asked <= 4 * LONG_WALK as u32 + 128, "{asked} buckets asked");
            }
        }
        assert!(refusals > 1000, "{refusals}");
    }
}
