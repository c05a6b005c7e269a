//! Insertion after an eviction walk has found no room: a second copy of another item makes room. The second copy is then counted
//! beside the table.

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

/// The number of buckets in a long search for a second copy: half of those that a walk examines.
pub(crate) const LONG_SEARCH: usize = 1 << 11;

/// The number of buckets in a short search for a second copy. If a filter of fixed size finds one that near, copies are frequent,
/// and it sweeps the table.
pub(crate) const SHORT_SEARCH: usize = 32;

/// The number of buckets by which a sweep's prefetches are ahead.
const AHEAD: u64 = 8;

/// An operation that passes a table in which copies take many slots to a function. One operation serves all purposes, because
/// each is compiled for every kind of table.
pub(crate) struct Crowded<'a, P> {
    pub params: &'a P,
    /// The bits above those of the table's fingerprints in the keys of extra copies.
    pub above: u64,
    /// The list that counts copies that are moved out of the table.
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

/// A [`Crowded`] table whose kind is not known, so that the code is compiled once, as for a walk.
pub(crate) struct Crowd<'a, P> {
    table: &'a mut dyn Buckets<P>,
    params: &'a P,
    above: u64,
    copies: &'a mut Copies,
}

/// The result of [`Crowd::place`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Placed {
    /// The fingerprint is stored. This many buckets before the one with the second copy were searched.
    Stored(usize),
    /// Nothing has changed: there is no second copy.
    NoSecondCopy,
    /// Nothing has changed: the second copy would need a new entry in the list.
    NeedsEntry,
}

impl<P: TableParams> Crowd<'_, P> {
    /// Stores a fingerprint in place of a second copy of another one that evictions reach within `most_buckets` buckets. If
    /// `may_add` is false, that fingerprint must have an entry in the list already. If it fails, nothing has changed.
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
        if most_buckets > SHORT_SEARCH && !visited.track(first) {
            return Err(OutOfMemory::of(Visited::BITS / 8));
        }
        reserve(&mut nodes, first.len())?;
        nodes.extend_from_slice(first);
        let mut next = 0;
        while let Some(&Node { bucket, .. }) = nodes.get(next) {
            for resident in fingerprints(&self.table.slots(bucket)) {
                if self.has_second(bucket, resident) {
                    if !may_add && self.copies.get(self.key(bucket, resident)) == 0 {
                        return Ok(Placed::NeedsEntry);
                    }
                    if self.move_out(bucket, resident)? {
                        shift(self.table, &nodes, next);
                        return Ok(Placed::Stored(next));
                    }
                }
                let alternate = self.params.alternate(bucket, resident);
                let is_new = |nodes: &[Node], visited: &mut Visited| {
                    let is_known = || nodes.iter().any(|node| node.bucket == alternate);
                    if visited.is_tracking() { visited.is_new(alternate, true) } else { !is_known() }
                };
                if nodes.len() < most_buckets && is_new(&nodes, &mut visited) {
                    reserve(&mut nodes, 1)?;
                    nodes.push(Node { bucket: alternate, incoming: resident.get(), parent: low_half(wide(next)) });
                }
            }
            next += 1;
        }
        Ok(Placed::NoSecondCopy)
    }

    /// Returns true if the table has another copy of a bucket's fingerprint.
    fn has_second(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
        self.count((bucket, self.params.alternate(bucket, fingerprint)), fingerprint) > 1
    }

    /// Counts the copies of a fingerprint in its two buckets.
    pub fn count(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> u32 {
        let mut count = |bucket| self.table.slots(bucket).iter().map(|&value| u32::from(value == fingerprint.get())).sum::<u32>();
        count(first) + if first == second { 0 } else { count(second) }
    }

    /// Returns the key of a bucket's fingerprint.
    fn key(&self, bucket: u64, fingerprint: Fingerprint) -> ClassKey {
        let buckets = (bucket, self.params.alternate(bucket, fingerprint));
        self.copies.keys().key(buckets, self.above | fingerprint.wide())
    }

    /// Moves a fingerprint out of a bucket into the list. Returns false if it has too many extra copies. If it returns false or
    /// fails, nothing has changed.
    fn move_out(&mut self, bucket: u64, fingerprint: Fingerprint) -> Result<bool, OutOfMemory> {
        let key = self.key(bucket, fingerprint);
        Ok(self.copies.add(key, 1, copies::MOST)? && self.table.take(Take(bucket, fingerprint)))
    }

    /// Moves all second copies out of the table, as far as memory allows, because the next items need room, too. Returns how many
    /// were moved.
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

    /// Prefetches the alternates of a bucket's residents.
    fn prefetch_alternates(&mut self, bucket: u64) {
        if bucket < self.params.buckets() {
            for resident in fingerprints(&self.table.slots(bucket)) {
                self.table.prefetch(self.params.alternate(bucket, resident));
            }
        }
    }
}
