//! The eviction walk, which finds a slot for an item whose two buckets are full.
//!
//! The walk finds the nearest bucket with room that evictions can reach: first among the alternates of the residents of the
//! item's buckets, then among the alternates of the residents found there, and so on. Fingerprints are moved only once a bucket
//! with room is found. So a walk that gives up has changed nothing and needs no rollback, and since it uses no random numbers, it
//! is reproducible.
//!
//! With several slots in a bucket, that is a breadth-first search. With one, there are only two chains to follow.
//!
//! A walk sees a table as [`Buckets`]: it is compiled once, and not for each kind of table and each kernel.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod crowd;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

pub(crate) use crowd::{Crowd, Crowded, FEW_BUCKETS, MOST_BUCKETS, Placed};

use super::{Change, Fingerprint, MOST_SLOTS, Pair, Table, TableMut, TableParams, fingerprints};
use crate::bits::index;

/// The number of full buckets whose residents a walk examines before it gives up. With a quarter of it, large tables refuse items
/// at a load lower by 0.002; measure with `cargo run --release --example tables -- max_load 4 12`.
const MAX_EXPANDED: usize = 4096;

/// The number of nodes above which tracking visited buckets pays. Most walks are shorter.
const LONG_WALK: usize = 64;

/// What a walk needs of a table, whose kind it does not know.
pub(crate) trait Buckets<P> {
    fn expand(&mut self, expand: Expand<'_, P>) -> bool;
    fn replace(&mut self, replace: Replace) -> bool;
    /// The values of a bucket's slots.
    fn slots(&mut self, bucket: u64) -> [u32; MOST_SLOTS];
    /// Prefetches a bucket.
    fn prefetch(&mut self, bucket: u64);
    /// Removes a fingerprint from a bucket.
    fn take(&mut self, take: Take) -> bool;
}

impl<T: TableMut, P: TableParams> Buckets<P> for T {
    fn expand(&mut self, expand: Expand<'_, P>) -> bool {
        self.outlined(expand)
    }

    fn replace(&mut self, replace: Replace) -> bool {
        self.outlined(replace)
    }

    fn slots(&mut self, bucket: u64) -> [u32; MOST_SLOTS] {
        self.outlined(SlotsOf(bucket))
    }

    fn prefetch(&mut self, bucket: u64) {
        Table::prefetch(self, bucket);
    }

    fn take(&mut self, take: Take) -> bool {
        self.outlined(take)
    }
}

/// Examines the residents of one node's bucket after the other: adds nodes for their alternates, until one has room, and returns
/// true; or until there are more than this many nodes.
pub(crate) struct Expand<'a, P> {
    search: &'a mut Search<P>,
    nodes: &'a mut [Node],
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
            for resident in fingerprints(&table.values(bucket)) {
                let alternate = search.params.alternate(bucket, resident);
                if is_tracking && !search.visited.is_new(alternate, search.len < MAX_EXPANDED) {
                    continue;
                }
                nodes[search.len] = Node { bucket: alternate, incoming: resident.get(), parent };
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

/// [`TableMut::replace`].
pub(crate) struct Replace(u64, Option<Fingerprint>, Fingerprint);

impl Change for Replace {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        table.replace(self.0, self.1, self.2)
    }
}

/// [`Buckets::slots`].
struct SlotsOf(u64);

impl Change for SlotsOf {
    type Output = [u32; MOST_SLOTS];

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> Self::Output {
        let (mut slots, values) = ([0; MOST_SLOTS], table.values(self.0));
        slots[..values.as_ref().len()].copy_from_slice(values.as_ref());
        slots
    }
}

/// [`Buckets::take`].
pub(crate) struct Take(u64, Fingerprint);

impl Change for Take {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        table.remove((self.0, self.0), self.1)
    }
}

/// What a walk does in a table where copies take many slots. They can move out of the table, which is quicker than a long walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AmongCopies {
    GoOn,
    /// A walk gives up.
    GiveUp,
    /// It gives up even if the only copy is of the item itself: items have been found to have copies.
    GiveUpForOne,
}

/// Stores a fingerprint in one of its two buckets, evicting others if necessary. Returns false, and changes nothing, if no slot
/// was found.
#[inline(always)]
pub(crate) fn place<T: TableMut, P: TableParams>(
    table: &mut T,
    params: &P,
    buckets: Pair,
    fingerprint: Fingerprint,
    among_copies: AmongCopies,
) -> bool {
    table.insert(buckets, fingerprint) || walk(&mut table.walked(), params, buckets, fingerprint, among_copies)
}

/// The same for a fingerprint of which one bucket is known to be full.
#[cold]
pub(crate) fn place_elsewhere<P: TableParams>(
    table: &mut dyn Buckets<P>,
    params: &P,
    full: u64,
    fingerprint: Fingerprint,
) -> bool {
    let alternate = params.alternate(full, fingerprint);
    table.replace(Replace(alternate, None, fingerprint)) || walk(table, params, (full, alternate), fingerprint, AmongCopies::GoOn)
}

/// The same for all fingerprints in the slots of another table, beginning with this bucket: each is stored in its bucket or its
/// alternate.
#[inline(never)]
pub(crate) fn place_all<P: TableParams>(table: &mut dyn Buckets<P>, params: &P, first_bucket: u64, values: &[u32]) -> bool {
    let buckets = (first_bucket..).zip(values.chunks_exact(index(params.bucket_size().into())));
    buckets.into_iter().all(|(bucket, values)| {
        fingerprints(&values).all(|fingerprint| {
            table.replace(Replace(bucket, None, fingerprint)) || place_elsewhere(table, params, bucket, fingerprint)
        })
    })
}

/// The same for a fingerprint whose two buckets are full.
#[cold]
#[inline(never)]
fn walk<P: TableParams>(
    table: &mut dyn Buckets<P>,
    params: &P,
    buckets: Pair,
    fingerprint: Fingerprint,
    among_copies: AmongCopies,
) -> bool {
    let search = Search { params: *params, visited: Visited::default(), among_copies, len: 2, next: 0 };
    let slots = index(params.bucket_size().into());
    if slots == 1 { search.follow(table, buckets, fingerprint) } else { search.breadth_first(table, slots, buckets, fingerprint) }
}

/// A bucket on the walk.
#[derive(Clone, Copy)]
pub(crate) struct Node {
    bucket: u64,
    /// The fingerprint that moves into this bucket: the item's, or that of the resident whose alternate is this bucket.
    incoming: u32,
    /// The node with that resident; the node itself for the item's own buckets.
    parent: u32,
}

impl Node {
    const NONE: Self = Self { bucket: 0, incoming: 0, parent: 0 };
}

/// How far a walk has come.
pub(crate) struct Search<P> {
    params: P,
    visited: Visited,
    among_copies: AmongCopies,
    /// The number of nodes, and the next one to expand.
    len: usize,
    next: u32,
}

impl<P: TableParams> Search<P> {
    /// The breadth-first search, for buckets of several slots.
    ///
    /// A path never contains a bucket twice: if its second occurrence led to room, the first one, expanded earlier, would have
    /// found that room.
    fn breadth_first(mut self, table: &mut dyn Buckets<P>, slots: usize, buckets: Pair, fingerprint: Fingerprint) -> bool {
        // Usually one step is enough. The nodes of the first steps need no allocation.
        let mut few = [Node::NONE; 2 + MOST_SLOTS];
        let mut many = Vec::new();
        few[0] = Node { bucket: buckets.0, incoming: fingerprint.get(), parent: 0 };
        few[1] = Node { bucket: buckets.1, incoming: fingerprint.get(), parent: 1 };
        let mut nodes = &mut few[..];
        loop {
            let mut most = nodes.len() - slots;
            if !self.visited.is_tracking() {
                most = most.min(LONG_WALK - 1);
            }
            if table.expand(Expand { search: &mut self, nodes, most }) {
                shift(table, nodes, self.len);
                return true;
            }
            if index(self.next.into()) == self.len {
                return false;
            }
            if self.len >= LONG_WALK && !self.visited.is_tracking() {
                let gives_up = self.gives_up(&nodes[..self.len]);
                // Without memory for the walk there is no room for the item.
                if gives_up || !self.visited.track(&nodes[..self.len]) {
                    return false;
                }
            }
            if nodes.len() - self.len < slots {
                let was_empty = many.is_empty();
                // Copies that fill both buckets lead nowhere else.
                if was_empty && self.next >= 2 && few.iter().all(|node| node.bucket == buckets.0 || node.bucket == buckets.1) {
                    return false;
                }
                if many.try_reserve(LONG_WALK + MOST_SLOTS).is_err() {
                    return false;
                }
                if was_empty {
                    many.extend_from_slice(&few);
                }
                many.resize(many.capacity(), Node::NONE);
                nodes = &mut many;
            }
        }
    }

    /// True if the walk is among copies: more nodes than chance explains lead where the resident before them in their bucket does.
    /// (Packed buckets are sorted; in others, half of the copies are overlooked.)
    fn gives_up(&self, nodes: &[Node]) -> bool {
        let is_there = || nodes[2..].iter().take_while(|node| node.parent < 2).any(|node| node.incoming == nodes[0].incoming);
        match self.among_copies {
            AmongCopies::GoOn => return false,
            AmongCopies::GiveUpForOne if is_there() => return true,
            _ => {}
        }
        let by_chance = (nodes.len() * index(self.params.bucket_size().into())) >> self.params.fingerprint_bits();
        let is_copy = |(before, node): &(&Node, &Node)| (before.incoming, before.bucket) == (node.incoming, node.bucket);
        nodes.iter().zip(&nodes[1..]).filter(is_copy).count() > 4 * by_chance + nodes.len() / 8
    }

    /// The walk for buckets of one slot. Such a bucket leads to one other, the alternate of its resident, so that all that
    /// evictions can reach are two chains, one from each bucket of the item. A chain ends at a bucket whose resident has room, or
    /// runs in a circle.
    ///
    /// Follows the two chains in turn, up to the nearer empty bucket. It needs no memory: a chain that ends contains no bucket
    /// twice, and circles are noticed by Brent's algorithm.
    fn follow(mut self, table: &mut dyn Buckets<P>, buckets: Pair, fingerprint: Fingerprint) -> bool {
        let starts = [buckets.0, buckets.1];
        let mut chains = starts.map(Chain::new);
        for step in 0..MAX_EXPANDED / chains.len() {
            for (chain, start) in chains.iter_mut().zip(starts) {
                if chain.is_circle {
                    continue;
                }
                let (next, has_room) = self.step(table, chain.bucket);
                if has_room {
                    self.push(table, start, fingerprint);
                    return true;
                }
                chain.bucket = next.bucket;
                chain.is_circle = chain.bucket == chain.milestone;
                if step.is_power_of_two() {
                    chain.milestone = chain.bucket;
                }
            }
            if chains.iter().all(|chain| chain.is_circle) {
                return false;
            }
        }
        false
    }

    /// Where the resident of a bucket of one slot may go, and whether there is room.
    fn step(&mut self, table: &mut dyn Buckets<P>, bucket: u64) -> (Node, bool) {
        let mut nodes = [Node { bucket, ..Node::NONE }, Node::NONE];
        (self.next, self.len) = (0, 1);
        let has_room = table.expand(Expand { search: self, nodes: &mut nodes, most: 1 });
        (nodes[1], has_room)
    }

    /// Stores the fingerprint in the first bucket of a chain, its resident in the next one, and so on, up to the empty bucket at
    /// its end.
    fn push(&mut self, table: &mut dyn Buckets<P>, mut bucket: u64, mut fingerprint: Fingerprint) {
        loop {
            let (next, has_room) = self.step(table, bucket);
            let Some(resident) = Fingerprint::new(next.incoming) else { return };
            let is_stored = table.replace(Replace(bucket, Some(resident), fingerprint));
            debug_assert!(is_stored);
            (bucket, fingerprint) = (next.bucket, resident);
            if has_room {
                let is_stored = table.replace(Replace(bucket, None, fingerprint));
                debug_assert!(is_stored);
                return;
            }
        }
    }
}

/// Moves the fingerprints along the path that ends at a node, the last one first.
fn shift<P>(table: &mut dyn Buckets<P>, nodes: &[Node], mut at: usize) {
    let mut outgoing = None;
    loop {
        let Node { bucket, incoming, parent } = nodes[at];
        let Some(incoming) = Fingerprint::new(incoming) else { return };
        let is_stored = table.replace(Replace(bucket, outgoing, incoming));
        debug_assert!(is_stored);
        if at == index(parent.into()) {
            return;
        }
        (at, outgoing) = (index(parent.into()), Some(incoming));
    }
}

/// The buckets that a walk has visited, one bit each. Buckets a multiple of [`Visited::BITS`] apart share a bit, so a walk in a
/// large table may skip a bucket that it has not visited. That costs less than visiting buckets repeatedly does in small tables.
#[derive(Default)]
struct Visited(Vec<u64>);

impl Visited {
    const BITS: usize = 1 << 14;

    /// False as long as nothing is remembered.
    fn is_tracking(&self) -> bool {
        !self.0.is_empty()
    }

    /// Begins with these nodes. Returns false if there is no memory.
    fn track(&mut self, nodes: &[Node]) -> bool {
        let has_memory = self.0.try_reserve_exact(Self::BITS / 64).is_ok();
        if has_memory {
            self.0.resize(Self::BITS / 64, 0);
            nodes.iter().for_each(|node| _ = self.is_new(node.bucket, true));
        }
        has_memory
    }

    /// Whether a bucket has not been visited; it has been from now on, if it is to be remembered.
    fn is_new(&mut self, bucket: u64, remember: bool) -> bool {
        let bit = index(bucket) % Self::BITS;
        let Some(word) = self.0.get_mut(bit / 64) else { return true };
        let is_new = *word >> (bit % 64) & 1 == 0;
        *word |= u64::from(remember) << (bit % 64);
        is_new
    }
}

/// How far a chain of full buckets has been followed.
#[derive(Clone, Copy)]
struct Chain {
    bucket: u64,
    /// The bucket after the last step whose number is a power of two. The chain runs in a circle if it comes back to it: which it
    /// does as soon as the milestone is on the circle, and the way to the next one is longer than the circle.
    milestone: u64,
    is_circle: bool,
}

impl Chain {
    fn new(bucket: u64) -> Self {
        Self { bucket, milestone: bucket, is_circle: false }
    }
}
