//! Software pipelining: the buckets of one batch are loaded from memory while the batch before it is compared.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use crate::kernel::{BATCH, Hashes};

/// A look-up of batches in two stages.
pub(super) trait Stages {
    /// Where the items of a batch are.
    type Targets;

    /// Memory for the comparison.
    type Scratch;

    fn targets(&self) -> Self::Targets;

    fn scratch(&self) -> Self::Scratch;

    /// Finds out where the first `len` hashes are, and prefetches their buckets.
    fn locate(&self, hashes: &[u64; BATCH], len: usize, targets: &mut Self::Targets);

    /// Compares. Bit i of the result is the answer for item i < `len`; the other bits mean nothing.
    fn look_up(&self, targets: &mut Self::Targets, scratch: &mut Self::Scratch, len: usize) -> u64;

    /// Looks up all hashes. Calls `answer` with each batch of them, in order, and the answers: bit i is that for the i-th.
    #[inline(always)]
    fn run(&self, hashes: &impl Hashes, mut answer: impl FnMut(&[u64], u64)) {
        // Those of this batch and of the one before, alternating: copying the targets would take a quarter of the total time.
        let (mut batches, mut targets) = ([[0; BATCH]; 2], [self.targets(), self.targets()]);
        let mut scratch = self.scratch();
        let (mut start, mut len_before, mut turn) = (0, 0, 0);
        loop {
            let len = (hashes.len() - start).min(BATCH);
            if len > 0 {
                hashes.fill(start, &mut batches[turn]);
                self.locate(&batches[turn], len, &mut targets[turn]);
            }
            turn ^= 1;
            if len_before > 0 {
                let answers = self.look_up(&mut targets[turn], &mut scratch, len_before);
                answer(&batches[turn][..len_before], answers & u64::MAX >> (BATCH - len_before));
            }
            if len == 0 {
                return;
            }
            (start, len_before) = (start + len, len);
        }
    }
}
