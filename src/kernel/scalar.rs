//! One at a time, but with their buckets fetched ahead.

use super::{
    Kernel,
    batch::{BATCH, FETCH_FROM, Hashes, Located, Steps, run},
};
use crate::{
    address::Address,
    table::{Fingerprint, Table},
};

/// Look-ups in a table, by whatever function.
struct Scalar<'a, C, F> {
    address: &'a Address,
    contains: C,
    fetch: F,
}

impl<C: Fn([u64; 2], Fingerprint) -> bool, F: Fn([u64; 2])> Steps for Scalar<'_, C, F> {
    type Located = Located;

    #[inline(always)]
    fn locate(&self, hashes: &[u64; BATCH], len: usize, located: &mut Located) {
        located.locate(&hashes[..len], self.address, &self.fetch);
    }

    #[inline(always)]
    fn look_up(&self, located: &Located, len: usize) -> u64 {
        let mut answers = 0;
        for (i, (&buckets, &fingerprint)) in located.buckets.iter().zip(&located.fingerprints).enumerate().take(len) {
            answers |= u64::from((self.contains)(buckets, fingerprint)) << i;
        }
        answers
    }
}

/// Looks all hashes up, by whatever function.
#[inline(always)]
pub(super) fn contains_all<T: Table>(
    kernel: Kernel,
    table: &T,
    address: &Address,
    hashes: &impl Hashes,
    contains: impl Fn([u64; 2], Fingerprint) -> bool,
    mut answer: impl FnMut(u64),
) {
    if table.memory().len() >= FETCH_FROM {
        let fetch = |buckets| kernel.fetch(table, buckets);
        return run(&Scalar { address, contains, fetch }, [Located::new(), Located::new()], hashes, answer);
    }
    let mut batch = [0; BATCH];
    for start in (0..hashes.len()).step_by(BATCH) {
        hashes.fill(start, &mut batch);
        let len = (hashes.len() - start).min(BATCH);
        let mut answers = 0;
        for (i, &hash) in batch[..len].iter().enumerate() {
            let (buckets, fingerprint) = address.buckets(hash);
            answers |= u64::from(contains(buckets, fingerprint)) << i;
        }
        answer(answers);
    }
}
