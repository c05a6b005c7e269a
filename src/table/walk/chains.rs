//! The walk for buckets of one slot. Such a bucket leads to one other, the alternate of its resident, so that all that evictions
//! can reach are two chains, one from each bucket of the item. A chain ends at an empty bucket or runs in a circle.

use super::{Eviction, MAX_EXPANDED};
use crate::table::{Change, Fingerprint, Placement, TableMut, fingerprints};

/// Follows the two chains in turn, up to the nearer empty bucket. It needs no memory: a chain that ends contains no bucket twice,
/// and circles are noticed by Brent's algorithm.
pub(super) struct Chains<P>(pub(super) Eviction<P>);

/// How far a chain of full buckets has been followed.
#[derive(Clone, Copy)]
struct Chain {
    bucket: u64,
    /// The bucket after the last step whose number is a power of two. The chain runs in a circle if it comes back to it: which it
    /// does as soon as the milestone is on the circle, and the way to the next one is longer than the circle.
    milestone: u64,
    is_circle: bool,
}

impl Chain {
    fn new(bucket: u64) -> Self {
        Self { bucket, milestone: bucket, is_circle: false }
    }
}

impl<P: Placement> Change for Chains<P> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let Self(Eviction { placement, buckets, fingerprint }) = self;
        let starts = [buckets.0, buckets.1];
        let mut chains = starts.map(Chain::new);
        for step in 0..=MAX_EXPANDED / chains.len() {
            for (chain, start) in chains.iter_mut().zip(starts) {
                if chain.is_circle {
                    continue;
                }
                let Some(resident) = resident(table, chain.bucket) else {
                    push(table, placement, start, fingerprint);
                    return true;
                };
                chain.bucket = placement.alternate(chain.bucket, resident);
                chain.is_circle = chain.bucket == chain.milestone;
                if step.is_power_of_two() {
                    chain.milestone = chain.bucket;
                }
            }
            if chains.iter().all(|chain| chain.is_circle) {
                return false;
            }
        }
        false
    }
}

/// Stores the fingerprint in the first bucket of a chain, its resident in the next one, and so on, up to the empty bucket at its
/// end.
#[inline(always)]
fn push<T: TableMut>(table: &mut T, placement: impl Placement, mut bucket: u64, mut fingerprint: Fingerprint) {
    while let Some(resident) = resident(table, bucket) {
        table.replace(bucket, resident, fingerprint);
        bucket = placement.alternate(bucket, resident);
        fingerprint = resident;
    }
    table.put(bucket, fingerprint);
}

/// The fingerprint in a bucket of one slot.
#[inline(always)]
fn resident<T: TableMut>(table: &T, bucket: u64) -> Option<Fingerprint> {
    fingerprints(&table.values(bucket)).next()
}
