//! Software pipelining: the buckets of one batch are loaded from memory while the batch before it is compared.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use crate::kernel::{BATCH, Hashes};

/// A lookup of batches in two stages.
///
/// Each stage is a function of its own, which is called once for a batch: inlined, it would be compiled for every type of items
/// and results.
pub(super) trait Stages {
    type Proof: Proof;

    /// Where the items of a batch are.
    type Targets;

    fn proof(&self) -> Self::Proof;

    fn targets(&self) -> Self::Targets;

    /// Finds out where the first `len` hashes are, and prefetches their buckets.
    fn locate(&self, hashes: &[u64; BATCH], len: usize, targets: &mut Self::Targets);

    /// Compares. Bit i of the result is the answer for item i < `len`; the other bits mean nothing.
    fn look_up(&self, targets: &Self::Targets, len: usize) -> u64;

    /// Looks up all hashes. Calls `answer` with each batch of them, in order, and the answers: bit i is that for the i-th.
    #[inline(always)]
    fn run(&self, hashes: &impl Hashes, mut answer: impl FnMut(&[u64], u64))
    where
        Self: Sized,
    {
        // Those of this batch and of the one before, alternating: copying the targets would take a quarter of the total time.
        let (mut batches, mut targets) = ([[0; BATCH]; 2], [self.targets(), self.targets()]);
        let (mut start, mut len_before, mut turn) = (0, 0, 0);
        loop {
            let len = (hashes.len() - start).min(BATCH);
            if len > 0 {
                hashes.fill(start, &mut batches[turn]);
                self.proof().run(Locate { stages: self, hashes: &batches[turn], len, targets: &mut targets[turn] });
            }
            turn ^= 1;
            if len_before > 0 {
                let answers = self.proof().run(LookUp { stages: self, targets: &targets[turn], len: len_before });
                answer(&batches[turn][..len_before], answers & u64::MAX >> (BATCH - len_before));
            }
            if len == 0 {
                return;
            }
            (start, len_before) = (start + len, len);
        }
    }
}

/// Proof that the processor supports a kernel's instructions.
pub(super) trait Proof: Copy {
    /// Does the work in a separate function, compiled for the instructions.
    fn run<W: Work>(self, work: W) -> W::Output;
}

/// Work for a function that is compiled for a kernel's instructions.
pub(super) trait Work {
    type Output;

    /// Should be `#[inline(always)]`: inlined code is compiled for the instructions.
    fn run(self) -> Self::Output;
}

/// [`Stages::locate`].
struct Locate<'a, S: Stages> {
    stages: &'a S,
    hashes: &'a [u64; BATCH],
    len: usize,
    targets: &'a mut S::Targets,
}

impl<S: Stages> Work for Locate<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.stages.locate(self.hashes, self.len, self.targets);
    }
}

/// [`Stages::look_up`].
struct LookUp<'a, S: Stages> {
    stages: &'a S,
    targets: &'a S::Targets,
    len: usize,
}

impl<S: Stages> Work for LookUp<'_, S> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        self.stages.look_up(self.targets, self.len)
    }
}
