//! Insertion where an eviction walk has found no room: a second copy of another item gives way. The caller counts it elsewhere.

use alloc::vec::Vec;

use super::{Buckets, Node, Take, Visited, shift};
use crate::{
    bits::{low_half, wide},
    storage::{OutOfMemory, reserve},
    table::{
        Change, Fingerprint, Pair, TableMut, TableParams,
        copies::{self, ClassKey, Copies},
        fingerprints,
    },
};

/// The most buckets that are searched for a second copy: half of those that a walk reaches.
pub(crate) const MOST_BUCKETS: usize = 1 << 11;

/// A table of which one in this many buckets has a second copy of something is swept.
pub(crate) const FEW_BUCKETS: usize = 32;

/// A sweep prefetches the other buckets of residents that it reaches so many buckets later.
const AHEAD: u64 = 8;

/// Shows a table in which copies take many slots to a function. (One operation for all that can be done there, because each is
/// compiled for every kind of table.)
pub(crate) struct Crowded<'a, P> {
    pub params: &'a P,
    /// What is above all its fingerprints in those that are counted.
    pub above: u64,
    /// Where copies are counted that are moved out of the table.
    pub copies: &'a mut Copies,
    pub act: &'a mut dyn FnMut(&mut Crowd<'_, P>),
}

impl<P: TableParams> Change for Crowded<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) {
        let Self { params, above, copies, act } = self;
        act(&mut Crowd { table: &mut table.walked(), params, above, copies });
    }
}

/// A [`Crowded`] table whose kind is not known: as for a walk, the code is compiled once.
pub(crate) struct Crowd<'a, P> {
    table: &'a mut dyn Buckets<P>,
    params: &'a P,
    above: u64,
    copies: &'a mut Copies,
}

/// What became of a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// It is stored. So many buckets were searched for a second copy before.
    Behind(usize),
    /// Nothing has changed: there is no second copy.
    NoSecond,
    /// Nothing has changed: a second copy would be an entry more.
    NoEntry,
}

impl<P: TableParams> Crowd<'_, P> {
    /// Stores a fingerprint in the place of a second copy of another one, which a walk through `most_buckets` reaches. If `may_add`
    /// is false, that one must have an entry. After an error, nothing has changed.
    #[cold]
    #[inline(never)]
    pub fn place(
        &mut self,
        buckets: Pair,
        fingerprint: Fingerprint,
        most_buckets: usize,
        may_add: bool,
    ) -> Result<Placed, OutOfMemory> {
        let mut nodes = Vec::new();
        let mut visited = Visited::default();
        let first = [(0, buckets.0), (1, buckets.1)].map(|(parent, bucket)| Node { bucket, incoming: fingerprint.get(), parent });
        let first = &first[..if buckets.0 == buckets.1 { 1 } else { 2 }];
        if most_buckets > FEW_BUCKETS && !visited.track(first) {
            return Err(OutOfMemory::of(Visited::BITS / 8));
        }
        reserve(&mut nodes, first.len())?;
        nodes.extend_from_slice(first);
        let mut next = 0;
        while let Some(&Node { bucket, .. }) = nodes.get(next) {
            for resident in fingerprints(&self.table.slots(bucket)) {
                if self.has_second(bucket, resident) {
                    if !may_add && self.copies.get(self.key(bucket, resident)) == 0 {
                        return Ok(Placed::NoEntry);
                    }
                    if self.move_out(bucket, resident)? {
                        shift(self.table, &nodes, next);
                        return Ok(Placed::Behind(next));
                    }
                }
                let alternate = self.params.alternate(bucket, resident);
                let is_new = |nodes: &[Node], visited: &mut Visited| {
                    let is_among_few = || nodes.iter().any(|node| node.bucket == alternate);
                    if visited.is_tracking() { visited.is_new(alternate, true) } else { !is_among_few() }
                };
                if nodes.len() < most_buckets && is_new(&nodes, &mut visited) {
                    reserve(&mut nodes, 1)?;
                    nodes.push(Node { bucket: alternate, incoming: resident.get(), parent: low_half(wide(next)) });
                }
            }
            next += 1;
        }
        Ok(Placed::NoSecond)
    }

    /// True if the table has another copy of a bucket's fingerprint.
    fn has_second(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
        self.count((bucket, self.params.alternate(bucket, fingerprint)), fingerprint) > 1
    }

    /// The number of copies of a fingerprint in its two buckets.
    pub fn count(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> u32 {
        let mut count = |bucket| self.table.slots(bucket).iter().map(|&value| u32::from(value == fingerprint.get())).sum::<u32>();
        count(first) + if first == second { 0 } else { count(second) }
    }

    /// The key of a bucket's fingerprint.
    fn key(&self, bucket: u64, fingerprint: Fingerprint) -> ClassKey {
        let buckets = (bucket, self.params.alternate(bucket, fingerprint));
        self.copies.keys().key(buckets, self.above | fingerprint.wide())
    }

    /// Moves a fingerprint out of a bucket. Returns false if it has too many further copies. Then, and if it fails, nothing has
    /// changed.
    fn move_out(&mut self, bucket: u64, fingerprint: Fingerprint) -> Result<bool, OutOfMemory> {
        let key = self.key(bucket, fingerprint);
        Ok(self.copies.add(key, 1, copies::MOST)? && self.table.take(Take(bucket, fingerprint)))
    }

    /// Moves all second copies out of the table, as far as there is memory: the next items need room, too. Returns how many.
    #[cold]
    #[inline(never)]
    pub fn sweep(&mut self) -> usize {
        let mut moved = 0;
        for bucket in 0..self.params.buckets() {
            self.prefetch_alternates(bucket + AHEAD);
            for resident in fingerprints(&self.table.slots(bucket)) {
                if self.has_second(bucket, resident) {
                    let Ok(is_moved) = self.move_out(bucket, resident) else { return moved };
                    moved += usize::from(is_moved);
                }
            }
        }
        moved
    }

    /// Prefetches the other buckets of a bucket's residents.
    fn prefetch_alternates(&mut self, bucket: u64) {
        if bucket < self.params.buckets() {
            for resident in fingerprints(&self.table.slots(bucket)) {
                self.table.prefetch(self.params.alternate(bucket, resident));
            }
        }
    }
}
