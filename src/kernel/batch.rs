//! Batches of hashes: the code that all kernels share.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{convert::Infallible, ops::Range};

use crate::{
    bits::{low_half, wide},
    params::Params,
    table::{Address, AnySize, Geometry, Read, Table, Uniform},
};

/// The number of hashes in a batch: one for each bit of a `u64` of results.
pub(crate) const BATCH: usize = 64;

/// The length in bytes of the smallest table whose buckets are prefetched. Smaller tables are in a cache already, where
/// prefetching only costs time.
pub(crate) const PREFETCH_FROM: usize = 1 << 20;

/// The smallest number of hashes for which vectors and prefetching pay. Preparing them takes as long as this many lookups.
pub(crate) const MIN_FOR_VECTORS: usize = 12;

/// A source of [`Uniform`] hashes. Vector kernels are generic over it, so that hashing is compiled for their instructions, too.
// `pub`, because a method of the public trait `Items` returns one. No other crate can name it.
pub trait Hashes {
    fn len(&self) -> usize;

    /// Writes the hashes from index `start` on to `hashes`, until it is full or none are left.
    fn fill(&self, start: usize, hashes: &mut [u64; BATCH]);

    /// Calls `act` with each batch of the hashes in `range`, in order.
    #[inline(always)]
    fn each_batch(&self, range: Range<usize>, mut act: impl FnMut(&[u64])) {
        let Ok(()) = self.try_each_batch(range, |_, batch| {
            act(batch);
            Ok::<(), Infallible>(())
        });
    }

    /// Calls `act` with the index of the first hash of each batch in `range`, and the batch, in order, until it returns an error.
    #[inline(always)]
    fn try_each_batch<E>(&self, range: Range<usize>, mut act: impl FnMut(usize, &[u64]) -> Result<(), E>) -> Result<(), E> {
        let mut batch = [0; BATCH];
        for start in range.clone().step_by(BATCH) {
            self.fill(start, &mut batch);
            act(start, &batch[..(range.end - start).min(BATCH)])?;
        }
        Ok(())
    }
}

/// Many tables among which items are distributed. All have the same layout and addressing.
pub(crate) trait Tables<'a>: Copy {
    /// Returns the addressing of each of the tables.
    fn address(self) -> AnySize;

    fn geometry(self) -> &'a Geometry;

    /// Returns the bits of a hash that determine its table. This is arithmetic without memory accesses.
    fn stream(self, hash: Uniform) -> u64;

    /// Writes to `places`, for each hash with its stream, the result of `place` for its table, which comes with its padding and
    /// possibly other bytes behind it. Must write all of `places`, because vectors read from them unchecked. Should be
    /// `#[inline(always)]`, and so should `place`.
    #[cfg(x86_kernels)]
    fn each_table(self, hashes: &[u64], streams: &[u64], places: &mut [*const u8], place: impl Fn(&'a [u8]) -> *const u8);
}

/// Implements the trait for hashes that are uniform already.
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

/// Prefetches the buckets of all hashes if the table is large.
#[inline(always)]
pub(crate) fn prefetch(table: &impl Table, params: &Params, hashes: &[u64]) {
    if params.table_bytes() < PREFETCH_FROM {
        return;
    }
    let address = Address::new(params);
    for &hash in hashes {
        let ((first, second), _) = address.buckets(Uniform(hash));
        table.prefetch(first);
        table.prefetch(second);
    }
}

/// Calls `act` with each hash. Bit i of the result is what `act` returns for the i-th hash.
#[inline(always)]
pub(crate) fn answers(hashes: &[u64], mut act: impl FnMut(Uniform) -> bool) -> u64 {
    // Rotates the results bit by bit instead of shifting each result to its place: that takes one register less.
    let rotated = hashes.iter().fold(0, |results, &hash| (results | u64::from(act(Uniform(hash)))).rotate_right(1));
    rotated.rotate_left(low_half(wide(hashes.len())))
}

/// An operation that looks up the hashes of a batch individually, after prefetching their buckets.
pub(super) struct BatchLookup<'a> {
    pub params: &'a Params,
    pub hashes: &'a [u64],
}

impl Read for BatchLookup<'_> {
    /// Bit i is the result for the i-th hash.
    type Output = u64;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> u64 {
        let address = Address::new(self.params);
        prefetch(table, self.params, self.hashes);
        answers(self.hashes, |hash| {
            let (buckets, fingerprint) = address.buckets(hash);
            table.contains(buckets, fingerprint)
        })
    }
}
