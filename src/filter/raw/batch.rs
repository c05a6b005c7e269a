//! Operations of [`RawFilter`](super::RawFilter) on a batch of hashes.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use crate::{
    kernel::{PREFETCH_FROM, answers, prefetch},
    params::Params,
    table::{Address, Change, Placement as _, Table, TableMut, Uniform, fingerprints, place},
};

/// Inserts hashes until one is refused.
pub(super) struct InsertBatch<'a> {
    pub(super) params: &'a Params,
    pub(super) hashes: &'a [u64],
    /// The number of items in the table before it.
    pub(super) len: usize,
}

impl Change for InsertBatch<'_> {
    /// The number of hashes that were inserted.
    type Output = usize;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> usize {
        let Self { params, hashes, len } = self;
        let address = Address::new(params);
        prefetch(table, address, hashes);
        // Above this load, so many buckets are full that prefetching the alternates of their residents pays.
        if len >= params.slots() / 4 * 3 {
            prefetch_alternates(table, address, hashes);
        }
        let refused = hashes.iter().position(|&hash| {
            let (buckets, fingerprint) = address.buckets(Uniform(hash));
            !place(table, params, buckets, fingerprint)
        });
        refused.unwrap_or(hashes.len())
    }
}

/// Removes one copy of each hash's fingerprint.
pub(super) struct RemoveBatch<'a> {
    pub(super) params: &'a Params,
    pub(super) hashes: &'a [u64],
}

impl Change for RemoveBatch<'_> {
    /// Bit i says whether the i-th was found.
    type Output = u64;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> u64 {
        let address = Address::new(self.params);
        prefetch(table, address, self.hashes);
        answers(self.hashes, |hash| {
            let (buckets, fingerprint) = address.buckets(hash);
            table.remove(buckets, fingerprint)
        })
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
