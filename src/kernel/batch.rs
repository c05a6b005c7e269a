//! Many hashes at a time: what all kernels have in common.

use crate::{address::Address, table::Fingerprint};

/// Hashes that are looked up at one go: as many as a word has bits for the answers.
pub(crate) const BATCH: usize = 64;

/// Bytes of a table from which on its buckets are fetched ahead: smaller ones are in the cache, and fetching only costs.
pub(super) const FETCH_FROM: usize = 1 << 20;

/// Where the hashes come from. A kernel is compiled for each source, so that hashing, too, is compiled for its processor.
pub(crate) trait Hashes {
    fn len(&self) -> usize;

    /// Writes the hashes from `start` on into `hashes`, as many as there are room for or left.
    fn fill(&self, start: usize, hashes: &mut [u64; BATCH]);
}

impl Hashes for &[u64] {
    #[inline(always)]
    fn len(&self) -> usize {
        <[u64]>::len(self)
    }

    #[inline(always)]
    fn fill(&self, start: usize, hashes: &mut [u64; BATCH]) {
        let wanted = &self[start..];
        let wanted = &wanted[..wanted.len().min(BATCH)];
        hashes[..wanted.len()].copy_from_slice(wanted);
    }
}

/// A batch of items: their buckets and fingerprints.
pub(crate) struct Located {
    /// First and second buckets.
    pub(crate) buckets: [[u64; 2]; BATCH],
    pub(crate) fingerprints: [Fingerprint; BATCH],
}

impl Located {
    #[inline(always)]
    pub(crate) fn new() -> Self {
        Self { buckets: [[0; 2]; BATCH], fingerprints: [Fingerprint::MIN; BATCH] }
    }

    /// Locates an item for each hash, and fetches its buckets.
    #[inline(always)]
    pub(crate) fn locate(&mut self, hashes: &[u64], address: &Address, fetch: impl Fn([u64; 2])) {
        for ((hash, buckets), fingerprint) in hashes.iter().zip(&mut self.buckets).zip(&mut self.fingerprints) {
            (*buckets, *fingerprint) = address.buckets(*hash);
            fetch(*buckets);
        }
    }
}

/// Two steps of looking up a batch, so that the memory is at work on one batch while the processor is on the other.
pub(super) trait Steps {
    type Located;

    /// Finds out where to look, and has it fetched.
    fn locate(&self, hashes: &[u64; BATCH], len: usize, located: &mut Self::Located);

    /// The answers, a bit for each.
    fn look_up(&self, located: &Self::Located, len: usize) -> u64;
}

/// Takes all hashes through both steps.
#[inline(always)]
pub(super) fn run<S: Steps>(steps: &S, mut located: [S::Located; 2], hashes: &impl Hashes, mut answer: impl FnMut(u64)) {
    let mut batch = [0; BATCH];
    let (total, mut start) = (hashes.len(), 0);
    let mut before = 0;
    loop {
        let [one, other] = &mut located;
        let len = (total - start).min(BATCH);
        if len > 0 {
            hashes.fill(start, &mut batch);
            steps.locate(&batch, len, one);
        }
        if before > 0 {
            answer(steps.look_up(other, before));
        }
        if len == 0 {
            return;
        }
        located.swap(0, 1);
        (start, before) = (start + len, len);
    }
}
