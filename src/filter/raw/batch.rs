//! Operations of [`RawFilter`](super::RawFilter) on batches of hashes.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use crate::{
    kernel::{Hashes, PREFETCH_FROM, prefetch},
    params::Params,
    table::{Address, Change, Placement as _, Table, TableMut, Uniform, fingerprints, place},
};

pub(super) struct InsertAll<'a, H> {
    pub(super) params: &'a Params,
    pub(super) hashes: &'a H,
    pub(super) len: &'a mut usize,
}

impl<H: Hashes> Change for InsertAll<'_, H> {
    /// The hash that was refused.
    type Output = Option<Uniform>;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> Option<Uniform> {
        let address = Address::new(self.params);
        let mut refused = None;
        // Above this load, so many buckets are full that prefetching the alternates of their residents pays.
        let crowded = self.params.slots() / 4 * 3;
        self.hashes.each_batch(0..self.hashes.len(), |batch| {
            prefetch(table, address, batch);
            if *self.len >= crowded {
                prefetch_alternates(table, address, batch);
            }
            batch.iter().all(|&hash| {
                let (buckets, fingerprint) = address.buckets(Uniform(hash));
                let is_placed = place(table, address, buckets, fingerprint);
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

pub(super) struct RemoveAll<'a, H, A> {
    pub(super) params: &'a Params,
    pub(super) hashes: &'a H,
    pub(super) len: &'a mut usize,
    pub(super) answer: A,
}

impl<H: Hashes, A: FnMut(bool)> Change for RemoveAll<'_, H, A> {
    type Output = ();

    #[inline(always)]
    fn run<T: TableMut>(mut self, table: &mut T) {
        let address = Address::new(self.params);
        self.hashes.each_batch(0..self.hashes.len(), |batch| {
            prefetch(table, address, batch);
            for &hash in batch {
                let (buckets, fingerprint) = address.buckets(Uniform(hash));
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
fn prefetch_alternates(table: &impl Table, address: Address, hashes: &[u64]) {
    if table.len_in_bytes() < PREFETCH_FROM {
        return;
    }
    for &hash in hashes {
        let ((first, second), _) = address.buckets(Uniform(hash));
        if !table.has_room(first) & !table.has_room(second) {
            for bucket in [first, second] {
                for resident in fingerprints(&table.values(bucket)) {
                    table.prefetch(address.alternate(bucket, resident));
                }
            }
        }
    }
}
