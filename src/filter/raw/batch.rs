//! Operations of [`RawFilter`](super::RawFilter) on batches of hashes.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use crate::{
    kernel::{Hashes, PREFETCH_FROM, prefetch},
    table::{Change, Placement, Table, TableMut, TableParams, Uniform, fingerprints, place},
};

pub(super) struct InsertAll<'a, P, H> {
    pub(super) params: &'a P,
    pub(super) hashes: &'a H,
    pub(super) len: &'a mut usize,
}

impl<P: TableParams, H: Hashes> Change for InsertAll<'_, P, H> {
    /// The hash that was refused.
    type Output = Option<Uniform>;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> Option<Uniform> {
        let placement = self.params.placement();
        let mut refused = None;
        // Above this load, so many buckets are full that prefetching the alternates of their residents pays.
        let crowded = self.params.slots() / 4 * 3;
        self.hashes.each_batch(0..self.hashes.len(), |batch| {
            prefetch(table, placement, batch);
            if *self.len >= crowded {
                prefetch_alternates(table, placement, batch);
            }
            batch.iter().all(|&hash| {
                let (buckets, fingerprint) = placement.buckets(Uniform(hash));
                let is_placed = place(table, placement, buckets, fingerprint);
                *self.len += usize::from(is_placed);
                if !is_placed {
                    refused = Some(Uniform(hash));
                }
                is_placed
            })
        });
        refused
    }
}

pub(super) struct RemoveAll<'a, P, H, A> {
    pub(super) params: &'a P,
    pub(super) hashes: &'a H,
    pub(super) len: &'a mut usize,
    pub(super) answer: A,
}

impl<P: TableParams, H: Hashes, A: FnMut(bool)> Change for RemoveAll<'_, P, H, A> {
    type Output = ();

    #[inline(always)]
    fn run<T: TableMut>(mut self, table: &mut T) {
        let placement = self.params.placement();
        self.hashes.each_batch(0..self.hashes.len(), |batch| {
            prefetch(table, placement, batch);
            for &hash in batch {
                let (buckets, fingerprint) = placement.buckets(Uniform(hash));
                let is_found = table.remove(buckets, fingerprint);
                *self.len -= usize::from(is_found);
                (self.answer)(is_found);
            }
            true
        });
    }
}

/// For hashes whose two buckets are full, prefetches the alternate buckets of the residents.
#[inline(always)]
fn prefetch_alternates(table: &impl Table, placement: impl Placement, hashes: &[u64]) {
    if table.len_in_bytes() < PREFETCH_FROM {
        return;
    }
    for &hash in hashes {
        let ((first, second), _) = placement.buckets(Uniform(hash));
        if !table.has_room(first) & !table.has_room(second) {
            for bucket in [first, second] {
                for resident in fingerprints(&table.values(bucket)) {
                    table.prefetch(placement.alternate(bucket, resident));
                }
            }
        }
    }
}
