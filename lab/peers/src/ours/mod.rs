//! The rows of koel.

mod fixed;
mod growing;

use std::hint::black_box;

pub(crate) use {fixed::all as fixed, growing::all as growing};

/// Items per batch: a realistic number for a caller, whose answers fit into the first-level cache.
const BATCH: usize = 1024;

/// The number of positive answers of `ask` to all keys, [`BATCH`] of them at a time.
fn count_in_batches(keys: &[u64], mut ask: impl FnMut(&[u64], &mut [bool])) -> usize {
    let mut answers = [false; BATCH];
    let batches = keys.chunks(BATCH).map(|batch| {
        let answers = &mut answers[..batch.len()];
        ask(batch, answers);
        black_box(&*answers).iter().filter(|&&answer| answer).count()
    });
    batches.sum()
}
