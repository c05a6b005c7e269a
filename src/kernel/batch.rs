//! Batches of hashes: what all kernels share.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::ops::Range;

use crate::{
    params::{Addressing, Params},
    table::{Address, Read, Table, Uniform},
};

/// The number of hashes looked up together: one for each bit of a `u64` of answers.
pub(crate) const BATCH: usize = 64;

/// The smallest table, in bytes, whose buckets are prefetched. Smaller tables are in a cache already, and prefetching only costs
/// time.
pub(crate) const PREFETCH_FROM: usize = 1 << 20;

/// Preparing vectors, or prefetching, takes as long as so many look-ups.
pub(crate) const FEWEST_FOR_VECTORS: usize = 12;

/// A source of [`Uniform`] hashes. Kernels are generic over it, so that hashing is compiled for the kernel's instructions, too.
pub(crate) trait Hashes {
    fn len(&self) -> usize;

    /// Writes the hashes from index `start` on to `hashes`, until it is full or no more are left.
    fn fill(&self, start: usize, hashes: &mut [u64; BATCH]);

    /// Calls `act` with each batch of the hashes in `range`, in order, until it returns false.
    #[inline(always)]
    fn each_batch(&self, range: Range<usize>, mut act: impl FnMut(&[u64]) -> bool) {
        let mut batch = [0; BATCH];
        for start in range.clone().step_by(BATCH) {
            self.fill(start, &mut batch);
            if !act(&batch[..(range.end - start).min(BATCH)]) {
                return;
            }
        }
    }
}

/// Hashes that are uniform already.
impl Hashes for &[u64] {
    #[inline(always)]
    fn len(&self) -> usize {
        <[u64]>::len(self)
    }

    #[inline(always)]
    fn fill(&self, start: usize, hashes: &mut [u64; BATCH]) {
        for (hash, wanted) in hashes.iter_mut().zip(&self[start..]) {
            *hash = *wanted;
        }
    }
}

/// Hashes given by the user, which need not be uniform.
pub(crate) struct Given<'a> {
    pub(crate) hashes: &'a [u64],
    pub(crate) addressing: Addressing,
}

impl Hashes for Given<'_> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.hashes.len()
    }

    #[inline(always)]
    fn fill(&self, start: usize, hashes: &mut [u64; BATCH]) {
        for (hash, &given) in hashes.iter_mut().zip(&self.hashes[start..]) {
            *hash = Uniform::of(self.addressing, given).0;
        }
    }
}

/// Prefetches the buckets of all hashes if the table is large.
#[inline(always)]
pub(crate) fn prefetch(table: &impl Table, address: Address, hashes: &[u64]) {
    if table.len_in_bytes() < PREFETCH_FROM {
        return;
    }
    for &hash in hashes {
        let ((first, second), _) = address.buckets(Uniform(hash));
        table.prefetch(first);
        table.prefetch(second);
    }
}

/// Looks up hashes one by one, after prefetching the buckets of a whole batch.
pub(super) struct LookUp<'a, H, A> {
    pub(super) params: &'a Params,
    pub(super) hashes: &'a H,
    pub(super) answer: A,
}

impl<H: Hashes, A: FnMut(u64)> Read for LookUp<'_, H, A> {
    type Output = ();

    #[inline(always)]
    fn run<T: Table>(mut self, table: &T) {
        let address = Address::new(self.params);
        self.hashes.each_batch(0..self.hashes.len(), |batch| {
            prefetch(table, address, batch);
            let mut answers = 0;
            for (i, &hash) in batch.iter().enumerate() {
                let (buckets, fingerprint) = address.buckets(Uniform(hash));
                answers |= u64::from(table.contains(buckets, fingerprint)) << i;
            }
            (self.answer)(answers);
            true
        });
    }
}
