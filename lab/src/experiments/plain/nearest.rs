//! Koel's insertion, written once more: an item goes into the emptier of its two buckets. When both are full, the walk
//! searches, breadth first, for the nearest bucket with an empty slot that evictions can reach, and then moves the items on
//! the path to it, the last one first. If there is no such bucket, nothing changes.
//!
//! The library's walk has the same limits, and two shortcuts, which change nothing about the result: for paths of one eviction,
//! and for buckets of one slot, where it follows the two chains without a list of them.

use std::collections::HashSet;

use super::{Place, Plain};

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

/// Inserts an item by its hash, and returns the number of evictions. `None` if the item was refused.
pub(in crate::experiments) fn insert(table: &mut Plain, hash: u64) -> Option<u32> {
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
