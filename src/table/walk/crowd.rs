//! Insertion where an eviction walk has found no room: a second copy of another item gives way. The caller counts it elsewhere.

use alloc::vec::Vec;

use super::{Buckets, Node, Take, Visited, shift};
use crate::{
    bits::{low_half, wide},
    storage::{OutOfMemory, reserve},
    table::{Change, Fingerprint, Pair, TableMut, TableParams, copies::Copies, fingerprints},
};

/// The most buckets that are searched for a second copy: half of those that a walk reaches.
const MOST_BUCKETS: usize = 1 << 11;

/// A table of which one in this many buckets has a second copy of something is swept.
const FEW_BUCKETS: usize = 32;

/// A sweep prefetches the other buckets of residents that it reaches so many buckets later.
const AHEAD: u64 = 8;

/// What to do with a fingerprint in a table where copies take many slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crowding {
    /// Store it in the place of a second copy of another one that a walk reaches. If there are many second copies, all of them move
    /// out of the table: the next items need room, too.
    Place,
    /// Count it.
    Count,
}

/// Does that with a fingerprint and its two buckets. (One operation for both, because each is compiled for every kind of table.)
pub(crate) struct Crowded<'a, P> {
    pub params: &'a P,
    pub buckets: Pair,
    pub fingerprint: Fingerprint,
    /// Where copies are counted that are moved out of the table.
    pub copies: &'a mut Copies,
    pub crowding: Crowding,
}

impl<P: TableParams> Change for Crowded<'_, P> {
    /// The number of its copies that were stored, or that there are. If none was stored, and after an error, nothing has changed:
    /// without second copies, the table is full of different items.
    type Output = Result<u32, OutOfMemory>;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> Self::Output {
        let Self { params, buckets, fingerprint, copies, crowding } = self;
        let mut crowd = Crowd { table: &mut table.walked(), params, copies };
        crowd.run(buckets, fingerprint, crowding)
    }
}

/// A table in which copies give way, whose kind is not known: as for a walk, the code is compiled once.
struct Crowd<'a, P> {
    table: &'a mut dyn Buckets<P>,
    params: &'a P,
    copies: &'a mut Copies,
}

impl<P: TableParams> Crowd<'_, P> {
    #[cold]
    #[inline(never)]
    fn run(&mut self, buckets: Pair, fingerprint: Fingerprint, crowding: Crowding) -> Result<u32, OutOfMemory> {
        match crowding {
            Crowding::Place => self.place(buckets, fingerprint).map(u32::from),
            Crowding::Count => Ok(self.count(buckets, fingerprint)),
        }
    }

    fn place(&mut self, buckets: Pair, fingerprint: Fingerprint) -> Result<bool, OutOfMemory> {
        let mut nodes = Vec::new();
        let mut visited = Visited::default();
        let first = [(0, buckets.0), (1, buckets.1)].map(|(parent, bucket)| Node { bucket, incoming: fingerprint.get(), parent });
        let first = &first[..if buckets.0 == buckets.1 { 1 } else { 2 }];
        if !visited.track(first) {
            return Err(OutOfMemory::of(Visited::BITS / 8));
        }
        reserve(&mut nodes, first.len())?;
        nodes.extend_from_slice(first);
        let mut next = 0;
        while let Some(&Node { bucket, .. }) = nodes.get(next) {
            for resident in fingerprints(&self.table.slots(bucket)) {
                if self.has_second(bucket, resident) && self.move_out(bucket, resident)? {
                    shift(self.table, &nodes, next);
                    if next < FEW_BUCKETS {
                        // The item has its place, whatever memory there is.
                        _ = self.sweep();
                    }
                    return Ok(true);
                }
                let alternate = self.params.alternate(bucket, resident);
                if nodes.len() < MOST_BUCKETS && visited.is_new(alternate, true) {
                    reserve(&mut nodes, 1)?;
                    nodes.push(Node { bucket: alternate, incoming: resident.get(), parent: low_half(wide(next)) });
                }
            }
            next += 1;
        }
        Ok(false)
    }

    /// True if the table has another copy of a bucket's fingerprint.
    fn has_second(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
        self.count((bucket, self.params.alternate(bucket, fingerprint)), fingerprint) > 1
    }

    /// The number of copies of a fingerprint in its two buckets.
    fn count(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> u32 {
        let mut count = |bucket| self.table.slots(bucket).iter().map(|&value| u32::from(value == fingerprint.get())).sum::<u32>();
        count(first) + if first == second { 0 } else { count(second) }
    }

    /// Moves a fingerprint out of a bucket. Returns false if it has too many further copies. Then, and if it fails, nothing has
    /// changed.
    fn move_out(&mut self, bucket: u64, fingerprint: Fingerprint) -> Result<bool, OutOfMemory> {
        let buckets = (bucket, self.params.alternate(bucket, fingerprint));
        Ok(self.copies.add_pair(buckets, fingerprint)? && self.table.take(Take(bucket, fingerprint)))
    }

    /// Moves all second copies out of the table, as far as there is memory.
    fn sweep(&mut self) -> Result<(), OutOfMemory> {
        for bucket in 0..self.params.buckets() {
            self.prefetch_alternates(bucket + AHEAD);
            for resident in fingerprints(&self.table.slots(bucket)) {
                if self.has_second(bucket, resident) {
                    self.move_out(bucket, resident)?;
                }
            }
        }
        Ok(())
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
