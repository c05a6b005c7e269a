//! The breadth-first search, for buckets of several slots.

use alloc::vec::Vec;

use super::{Eviction, MAX_EXPANDED};
use crate::{
    bits::index,
    table::{Change, Fingerprint, Placement, TableMut, fingerprints},
};

/// Slots of a bucket, at most: so many nodes are added at a time.
const MAX_SLOTS: usize = 16;

/// The number of nodes above which tracking visited buckets pays. Most walks are shorter.
pub(super) const LONG_WALK: usize = 64;

/// A full bucket on the walk. Kept small, so that the nodes of a short walk fit into a small allocation.
struct Node {
    bucket: u64,
    /// The node with the resident whose alternate is this bucket; the node itself for the item's own buckets.
    parent: u16,
    /// The fingerprint that moves into this bucket: that resident, or the item's.
    incoming: Fingerprint,
}

/// The search. The last fingerprint on the path is moved first.
///
/// A path never contains a bucket twice: if its second occurrence led to room, the first one, expanded earlier, would have found
/// that room.
pub(super) struct Search<P>(pub(super) Eviction<P>);

impl<P: Placement> Change for Search<P> {
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
