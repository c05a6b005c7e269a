//! Software pipelining: the buckets of one batch are loaded from memory while the batch before it is compared.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use super::lanes::Lanes;
use crate::kernel::{BATCH, Hashes};

/// Looks up all hashes in two stages. `locate` finds out where the first hashes of a batch are, as many as its second argument
/// says, and prefetches their buckets. `look_up` compares: bit i of its result is the answer for item i, if there are so many.
/// Calls `answer` with each batch, in order, and the answers.
///
/// Each stage must be a function of its own ([`Lanes::run`]), which is called once for a batch: inlined, it would be compiled for
/// every type of items and results.
#[inline(always)]
pub(super) fn pipelined<T>(
    hashes: &impl Hashes,
    mut targets: [T; 2],
    locate: impl Fn(&[u64; BATCH], usize, &mut T),
    look_up: impl Fn(&T, usize) -> u64,
    mut answer: impl FnMut(&[u64], u64),
) {
    // This batch and the one before, alternating: copying the targets would take a quarter of the total time.
    let mut batches = [[0; BATCH]; 2];
    let (mut start, mut len_before, mut turn) = (0, 0, 0);
    loop {
        let len = (hashes.len() - start).min(BATCH);
        if len > 0 {
            hashes.fill(start, &mut batches[turn]);
            locate(&batches[turn], len, &mut targets[turn]);
        }
        turn ^= 1;
        if len_before > 0 {
            let answers = look_up(&targets[turn], len_before);
            answer(&batches[turn][..len_before], answers & u64::MAX >> (BATCH - len_before));
        }
        if len == 0 {
            return;
        }
        (start, len_before) = (start + len, len);
    }
}

/// The answers for a batch, a vector at a time: `found` gives those of the vector that begins at its argument.
#[inline(always)]
pub(super) fn answers<L: Lanes>(len: usize, found: impl Fn(usize) -> u32) -> u64 {
    let mut answers = 0;
    for at in (0..len).step_by(L::COUNT) {
        answers |= u64::from(found(at) & ((1 << L::COUNT) - 1)) << at;
    }
    answers
}
