//! Many hashes at a time: what all kernels have in common.

use core::ops::Range;

use super::Kernel;
use crate::{table::Address, table::Table};

/// Hashes that are looked up at one go: as many as a word has bits for the answers.
pub(crate) const BATCH: usize = 64;

/// Bytes of a table from which on its buckets are fetched ahead: smaller ones are in the cache, and fetching only costs.
pub(super) const FETCH_FROM: usize = 1 << 20;

/// Where the hashes come from. A kernel is compiled for each source, so that hashing, too, is compiled for its processor.
pub(crate) trait Hashes {
    fn len(&self) -> usize;

    /// Writes the hashes from `start` on into `hashes`, as many as there are room for or left.
    fn fill(&self, start: usize, hashes: &mut [u64; BATCH]);

    /// Calls `act` with one batch after the other of those in `range`, until it says no.
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

/// Looks all hashes up one after the other, by whatever function; but the buckets of a batch are fetched all at once.
#[inline(always)]
pub(super) fn one_by_one<T: Table>(
    kernel: Kernel,
    table: &T,
    address: &Address,
    hashes: &impl Hashes,
    contains: impl Fn(u64) -> bool,
    mut answer: impl FnMut(u64),
) {
    hashes.each_batch(0..hashes.len(), |batch| {
        kernel.fetch(table, address, batch);
        let mut answers = 0;
        for (i, &hash) in batch.iter().enumerate() {
            answers |= u64::from(contains(hash)) << i;
        }
        answer(answers);
        true
    });
}
