//! The eviction walk, which finds a slot for an item whose two buckets are full.
//!
//! The walk finds the nearest bucket with room that evictions can reach: first among the alternates of the residents of the
//! item's buckets, then among the alternates of the residents found there, and so on. Fingerprints move only once a bucket with
//! room is found. So a walk that gives up has changed nothing and needs no rollback. It uses no random numbers, so it is
//! reproducible.
//!
//! A walk accesses a table as [`Buckets`], so that it is compiled once, not for each kind of table and kernel.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod crowd;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;
use core::marker::PhantomData;

pub(crate) use crowd::{Crowd, Crowded, LONG_SEARCH, PIECE_BUCKETS, Replacement, SHORT_SEARCH};

use super::{Change, Fingerprint, MAX_SLOTS, Pair, Slot, Table, TableMut, TableParams, copy_values, fingerprints};
use crate::bits::{index, wide};

/// The number of full buckets whose residents a walk examines before it gives up. With a quarter of this number, large tables
/// refuse items at a load that is lower by 0.002; `cargo run --release --example tables -- max_load 4 12` measures it.
const MAX_EXPANDED: usize = 4096;

/// The number of nodes from which on tracking visited buckets pays. Most walks are shorter.
const LONG_WALK: usize = 64;

/// The operations that a walk needs of a table of any kind.
pub(crate) trait Buckets<P: TableParams> {
    fn expand(&mut self, expand: Expand<'_, P>) -> bool;
    fn replace(&mut self, replace: Replace) -> bool;
    /// Returns the values of a bucket's slots.
    fn slots(&mut self, bucket: u64) -> P::Slots;
    /// Prefetches a bucket.
    fn prefetch(&mut self, bucket: u64);
}

impl<T: TableMut, P: TableParams> Buckets<P> for T {
    fn expand(&mut self, expand: Expand<'_, P>) -> bool {
        self.outlined(expand)
    }

    fn replace(&mut self, replace: Replace) -> bool {
        self.outlined(replace)
    }

    fn slots(&mut self, bucket: u64) -> P::Slots {
        self.outlined(ReadSlots::<P>(bucket, PhantomData))
    }

    fn prefetch(&mut self, bucket: u64) {
        Table::prefetch(self, bucket);
    }
}

/// An operation that examines the residents of one node's bucket after the other and adds nodes for their alternates. It returns
/// true as soon as an alternate has room, or false once there are more than `most` nodes or none left to examine.
pub(crate) struct Expand<'a, P: TableParams> {
    search: &'a mut Search<P>,
    nodes: &'a mut [Node<P::Slot>],
    most: usize,
}

impl<P: TableParams> Change for Expand<'_, P> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let Self { search, nodes, most } = self;
        while index(search.next.into()) < search.len && search.len <= most {
            let (parent, is_tracking) = (search.next, search.visited.is_tracking());
            let bucket = nodes[index(parent.into())].bucket;
            #[cfg(test)]
            super::steps::count_read();
            for resident in fingerprints(&table.values(bucket)) {
                let alternate = search.params.alternate(bucket, resident);
                if is_tracking && !search.visited.is_new(alternate, search.len < MAX_EXPANDED) {
                    continue;
                }
                nodes[search.len] = Node::new(alternate, resident, parent);
                #[cfg(test)]
                super::steps::count_room_check();
                if table.has_room(alternate) {
                    return true;
                }
                search.len += 1;
            }
            search.len = search.len.min(MAX_EXPANDED);
            search.next += 1;
        }
        false
    }
}

/// [`TableMut::replace`] as an operation.
pub(crate) struct Replace(u64, Option<Fingerprint>, Option<Fingerprint>);

impl Change for Replace {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        table.replace(self.0, self.1, self.2)
    }
}

/// [`Buckets::slots`] as an operation.
struct ReadSlots<P>(u64, PhantomData<P>);

impl<P: TableParams> Change for ReadSlots<P> {
    type Output = P::Slots;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> Self::Output {
        let mut slots = P::EMPTY_SLOTS;
        copy_values(&table.values(self.0), slots.as_mut());
        slots
    }
}

/// The behavior of a walk in a table where copies take many slots. Moving copies out of the table is faster than a long walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyPolicy {
    /// There is no walk.
    NoWalk,
    /// The walk continues.
    Continue,
    /// A long walk gives up if many of the fingerprints that it meets are copies.
    GiveUp,
    /// A long walk also gives up if the item's own buckets hold its fingerprint: the filter is known to have copies.
    GiveUpForOwnCopy,
}

/// Inserts an item. Returns false, and changes nothing, if it finds no slot.
pub(crate) struct Insertion<'a, P, F> {
    pub params: &'a P,
    pub locate: F,
    pub copy_policy: CopyPolicy,
}

impl<P: TableParams, F: FnOnce(&P) -> (Pair, Fingerprint)> Change for Insertion<'_, P, F> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let (buckets, fingerprint) = (self.locate)(self.params);
        store_fingerprint(table, self.params, buckets, fingerprint, self.copy_policy)
    }
}

/// Stores a fingerprint in one of its two buckets, evicting others if necessary. Returns false and changes nothing if no slot was
/// found.
#[inline(always)]
pub(crate) fn store_fingerprint<T: TableMut, P: TableParams>(
    table: &mut T,
    params: &P,
    buckets: Pair,
    fingerprint: Fingerprint,
    copy_policy: CopyPolicy,
) -> bool {
    table.insert(buckets, fingerprint) || walk(table, params, buckets, fingerprint, copy_policy)
}

/// [Stores](store_fingerprint) a fingerprint whose first bucket is full, also if the walk meets only copies of it.
#[inline(always)]
pub(crate) fn store_in_second<P: TableParams>(
    table: &mut impl TableMut,
    params: &P,
    buckets: Pair,
    fingerprint: Fingerprint,
) -> bool {
    let table: &mut dyn Buckets<P> = table;
    table.replace(Replace(buckets.1, None, Some(fingerprint))) || walk(table, params, buckets, fingerprint, CopyPolicy::Continue)
}

/// Stores a fingerprint whose two buckets are full, by a walk. Returns false and changes nothing if no slot was found.
#[cold]
#[inline(never)]
fn walk<P: TableParams>(
    table: &mut dyn Buckets<P>,
    params: &P,
    buckets: Pair,
    fingerprint: Fingerprint,
    copy_policy: CopyPolicy,
) -> bool {
    if copy_policy == CopyPolicy::NoWalk {
        return false;
    }
    let search = Search { params: *params, visited: Visited::default(), copy_policy, len: 2, next: 0 };
    search.breadth_first(table, buckets, fingerprint)
}

/// A bucket on the walk.
#[derive(Copy)]
pub(crate) struct Node<S> {
    bucket: u64,
    /// The fingerprint that moves into this bucket: that of the item, or of the resident whose alternate this bucket is.
    incoming: S,
    /// The node of that resident's bucket. For the item's own buckets, it is the node itself.
    parent: u32,
}

#[expect(clippy::expl_impl_clone_on_copy, reason = "a derived one copies field by field, and so fills vectors more slowly")]
impl<S: Copy> Clone for Node<S> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Slot> Node<S> {
    const NONE: Self = Self { bucket: 0, incoming: S::EMPTY, parent: 0 };

    #[inline(always)]
    fn new(bucket: u64, incoming: Fingerprint, parent: u32) -> Self {
        Self { bucket, incoming: S::new(incoming.wide()), parent }
    }
}

/// The state of a walk.
pub(crate) struct Search<P> {
    params: P,
    visited: Visited,
    copy_policy: CopyPolicy,
    /// The number of nodes.
    len: usize,
    /// The next node to expand.
    next: u32,
}

impl<P: TableParams> Search<P> {
    /// Searches breadth first. A path never contains a bucket twice: if its second occurrence led to room, the first one, which was
    /// expanded earlier, would have found that room.
    fn breadth_first(mut self, table: &mut dyn Buckets<P>, buckets: Pair, fingerprint: Fingerprint) -> bool {
        let slots = index(self.params.bucket_size().into());
        // With one slot, each bucket leads to one other. Such chains end soon, or run into cycles, which are detected whenever the
        // number of nodes has doubled. They are not tracked: in large tables, that would end some of them early.
        let is_chain = slots == 1;
        // One step is usually enough. The nodes of the first steps need no allocation.
        let mut first_nodes = [Node::NONE; 2 + MAX_SLOTS];
        let mut more_nodes = Vec::new();
        first_nodes[0] = Node::new(buckets.0, fingerprint, 0);
        first_nodes[1] = Node::new(buckets.1, fingerprint, 1);
        let mut nodes = &mut first_nodes[..];
        loop {
            let mut most = nodes.len() - slots;
            if is_chain {
                most = most.min(2 * self.len);
            } else if !self.visited.is_tracking() {
                most = most.min(LONG_WALK - 1);
            }
            #[cfg(test)]
            let before = self.len;
            let has_found = table.expand(Expand { search: &mut self, nodes, most });
            #[cfg(test)]
            super::steps::count_buckets(wide(self.len - before));
            if has_found {
                shift(table, nodes, self.len);
                return true;
            }
            if self.is_closed(&nodes[..self.len]) {
                return false;
            }
            if !is_chain && self.len >= LONG_WALK && !self.visited.is_tracking() {
                let gives_up = self.gives_up(&nodes[..self.len]);
                // Without memory for the walk, the item finds no room.
                if gives_up || !self.visited.track(&nodes[..self.len]) {
                    return false;
                }
            }
            if nodes.len() - self.len < slots {
                let was_empty = more_nodes.is_empty();
                if more_nodes.try_reserve(LONG_WALK + MAX_SLOTS).is_err() {
                    return false;
                }
                if was_empty {
                    more_nodes.extend_from_slice(&first_nodes);
                }
                more_nodes.resize(more_nodes.capacity(), Node::NONE);
                nodes = &mut more_nodes;
            }
        }
    }

    /// Returns true if nothing is left to expand, or only buckets that were expanded before: copies that fill both buckets of an
    /// item lead to no other bucket, and chains may run into cycles.
    fn is_closed(&self, nodes: &[Node<P::Slot>]) -> bool {
        let (expanded, others) = nodes.split_at(index(self.next.into()));
        others.iter().all(|node| expanded.iter().any(|before| before.bucket == node.bucket))
    }

    /// Returns true if the walk should give up because of copies: more nodes than chance explains equal the node before them, in
    /// fingerprint and bucket. (Packed buckets are sorted. In others, half of the copies are overlooked.)
    fn gives_up(&self, nodes: &[Node<P::Slot>]) -> bool {
        let has_own_copy = || nodes[2..].iter().take_while(|node| node.parent < 2).any(|node| node.incoming == nodes[0].incoming);
        match self.copy_policy {
            CopyPolicy::NoWalk | CopyPolicy::Continue => return false,
            CopyPolicy::GiveUpForOwnCopy if has_own_copy() => return true,
            _ => {}
        }
        let by_chance = (wide(nodes.len()) * u64::from(self.params.bucket_size())) >> self.params.fingerprint_bits();
        let is_copy =
            |(before, node): &(&Node<P::Slot>, &Node<P::Slot>)| (before.incoming, before.bucket) == (node.incoming, node.bucket);
        nodes.iter().zip(&nodes[1..]).filter(is_copy).count() > 4 * index(by_chance) + nodes.len() / 8
    }
}

/// Moves the fingerprints along the path that ends at a node, the last one first.
fn shift<P: TableParams>(table: &mut dyn Buckets<P>, nodes: &[Node<P::Slot>], mut at: usize) {
    let mut outgoing = None;
    loop {
        let Node { bucket, incoming, parent } = nodes[at];
        let Some(incoming) = Fingerprint::new(incoming.into()) else { return };
        let is_stored = table.replace(Replace(bucket, outgoing, Some(incoming)));
        debug_assert!(is_stored);
        if at == index(parent.into()) {
            return;
        }
        (at, outgoing) = (index(parent.into()), Some(incoming));
    }
}

/// The set of buckets that a walk has visited, one bit each. Buckets that are a multiple of [`Visited::BITS`] apart share a bit,
/// so a walk in a large table may skip a bucket that it has not visited. This costs less than repeated visits do in small tables.
#[derive(Default)]
struct Visited(Vec<u64>);

impl Visited {
    const BITS: usize = 1 << 14;

    /// Returns false until [`track`](Self::track) is called.
    fn is_tracking(&self) -> bool {
        !self.0.is_empty()
    }

    /// Starts tracking, with these nodes as visited. Returns false if there is no memory.
    fn track<S>(&mut self, nodes: &[Node<S>]) -> bool {
        let has_memory = self.0.try_reserve_exact(Self::BITS / 64).is_ok();
        if has_memory {
            self.0.resize(Self::BITS / 64, 0);
            nodes.iter().for_each(|node| _ = self.is_new(node.bucket, true));
        }
        has_memory
    }

    /// Returns true if a bucket has not been visited, and marks it as visited if `remember` is true. Returns true for all buckets
    /// before [`track`](Self::track).
    fn is_new(&mut self, bucket: u64, remember: bool) -> bool {
        let bit = index(bucket) % Self::BITS;
        let Some(word) = self.0.get_mut(bit / 64) else { return true };
        let is_new = *word >> (bit % 64) & 1 == 0;
        *word |= u64::from(remember) << (bit % 64);
        is_new
    }
}
