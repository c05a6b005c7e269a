//! Insertion after an eviction walk has found no room: a second copy of another item makes room. The second copy is then counted
//! beside the table.

use alloc::vec::Vec;

use super::{Buckets, Node, Replace, Visited, shift};
use crate::{
    bits::{low_half, wide},
    storage::{OutOfMemory, reserve},
    table::{Change, Fingerprint, Pair, Slot as _, TableMut, TableParams, copies::Copies, fingerprints, list::ClassKey},
};

/// The number of buckets in a long search for a second copy: half of those that a walk examines.
pub(crate) const LONG_SEARCH: usize = 1 << 11;

/// The number of buckets in a short search for a second copy. If a filter of fixed size finds one that near, copies are frequent,
/// and it [sweeps](Crowd::sweep_around) the buckets around it.
pub(crate) const SHORT_SEARCH: usize = 32;

/// The number of buckets that are swept at once. With more, single insertions take longer; with fewer, too little room stays free.
pub(crate) const PIECE_BUCKETS: u64 = 64;

/// The number of buckets by which a sweep's prefetches are ahead.
const AHEAD: u64 = 8;

/// An operation that passes a table in which copies take many slots to a function. One operation serves all purposes, because
/// each is compiled for every kind of table.
pub(crate) struct Crowded<'a, P> {
    pub params: &'a P,
    /// Returns the key by which copies of a bucket's fingerprint are counted.
    pub key: &'a dyn Fn(u64, Fingerprint) -> ClassKey,
    /// The list that counts copies that are moved out of the table.
    pub copies: &'a mut Copies,
    pub act: &'a mut dyn FnMut(&mut Crowd<'_, P>),
}

impl<P: TableParams> Change for Crowded<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) {
        let Self { params, key, copies, act } = self;
        act(&mut Crowd { table, params, key, copies });
    }
}

/// A [`Crowded`] table whose kind is not known, so that the code is compiled once, as for a walk.
pub(crate) struct Crowd<'a, P> {
    table: &'a mut dyn Buckets<P>,
    params: &'a P,
    key: &'a dyn Fn(u64, Fingerprint) -> ClassKey,
    copies: &'a mut Copies,
}

/// The result of [`Crowd::replace_second_copy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Replacement {
    /// The fingerprint is stored. The second copy was in this bucket, after this many others were searched.
    Stored { bucket: u64, searched: usize },
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
    pub fn replace_second_copy(
        &mut self,
        buckets: Pair,
        fingerprint: Fingerprint,
        most_buckets: usize,
        may_add: bool,
    ) -> Result<Replacement, OutOfMemory> {
        let mut nodes = Vec::new();
        let mut visited = Visited::default();
        let first = [Node::new(buckets.0, fingerprint, 0), Node::new(buckets.1, fingerprint, 1)];
        let first = &first[..if buckets.0 == buckets.1 { 1 } else { 2 }];
        if most_buckets > SHORT_SEARCH && !visited.track(first) {
            return Err(OutOfMemory::of(Visited::BITS / 8));
        }
        reserve(&mut nodes, first.len())?;
        nodes.extend_from_slice(first);
        let mut next = 0;
        while let Some(&Node { bucket, .. }) = nodes.get(next) {
            for resident in fingerprints(&self.slots(bucket)) {
                if self.has_second(bucket, resident) {
                    if !may_add && self.copies.get((self.key)(bucket, resident)) == 0 {
                        return Ok(Replacement::NeedsEntry);
                    }
                    if self.move_out(bucket, resident)? {
                        shift(self.table, &nodes, next);
                        return Ok(Replacement::Stored { bucket, searched: next });
                    }
                }
                let alternate = self.params.alternate(bucket, resident);
                let is_new = |nodes: &[Node<P::Slot>], visited: &mut Visited| {
                    let is_known = || nodes.iter().any(|node| node.bucket == alternate);
                    if visited.is_tracking() { visited.is_new(alternate, true) } else { !is_known() }
                };
                if nodes.len() < most_buckets && is_new(&nodes, &mut visited) {
                    reserve(&mut nodes, 1)?;
                    nodes.push(Node::new(alternate, resident, low_half(wide(next))));
                }
            }
            next += 1;
        }
        Ok(Replacement::NoSecondCopy)
    }

    /// Returns true if the table has another copy of a bucket's fingerprint.
    fn has_second(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
        self.count((bucket, self.params.alternate(bucket, fingerprint)), fingerprint) > 1
    }

    /// Counts the copies of a fingerprint in its two buckets.
    pub fn count(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> u32 {
        let value = P::Slot::new(fingerprint.wide());
        let mut count = |bucket| self.slots(bucket).as_ref().iter().map(|&other| u32::from(other == value)).sum::<u32>();
        count(first) + if first == second { 0 } else { count(second) }
    }

    /// Moves a fingerprint out of a bucket into the list. The item has as many copies as before, so the list can always count this
    /// one. If it fails, nothing has changed.
    fn move_out(&mut self, bucket: u64, fingerprint: Fingerprint) -> Result<bool, OutOfMemory> {
        let key = (self.key)(bucket, fingerprint);
        Ok(self.copies.add(key, 1)? && self.table.replace(Replace(bucket, Some(fingerprint), None)))
    }

    /// Moves a second copy out of one of an item's buckets that has a fingerprint twice, so that there is a slot for the item, and then
    /// all second copies out of the piece of the table around that bucket. Returns how many were moved: 0 if neither bucket has any, or
    /// without memory for one.
    #[cold]
    #[inline(never)]
    pub fn sweep_beside(&mut self, (first, second): Pair) -> usize {
        for bucket in [first, second] {
            let slots = self.slots(bucket);
            for (at, resident) in fingerprints(&slots).enumerate() {
                let is_second = fingerprints(&slots).take(at).any(|before| before == resident);
                if is_second && self.move_out(bucket, resident) == Ok(true) {
                    return 1 + self.sweep_around(bucket);
                }
            }
        }
        0
    }

    /// Moves all second copies out of the piece of the table that has this bucket, as far as memory allows, because the next items
    /// need room, too. A piece begins at a multiple of its length, so nothing about it is stored. Returns how many were moved.
    #[cold]
    #[inline(never)]
    pub fn sweep_around(&mut self, bucket: u64) -> usize {
        let (mut moved, start) = (0, bucket - bucket % PIECE_BUCKETS);
        let end = self.params.buckets().min(start + PIECE_BUCKETS);
        (start..end.min(start + AHEAD)).for_each(|bucket| self.prefetch_alternates(bucket));
        for bucket in start..end {
            if bucket + AHEAD < end {
                self.prefetch_alternates(bucket + AHEAD);
            }
            for resident in fingerprints(&self.slots(bucket)) {
                if self.has_second(bucket, resident) {
                    let Ok(is_moved) = self.move_out(bucket, resident) else { return moved };
                    moved += usize::from(is_moved);
                }
            }
        }
        moved
    }

    /// Returns the values of a bucket's slots.
    fn slots(&mut self, bucket: u64) -> P::Slots {
        #[cfg(test)]
        crate::table::steps::count_buckets(1);
        self.table.slots(bucket)
    }

    /// Prefetches the alternates of a bucket's residents.
    fn prefetch_alternates(&mut self, bucket: u64) {
        for resident in fingerprints(&self.slots(bucket)) {
            self.table.prefetch(self.params.alternate(bucket, resident));
        }
    }
}
