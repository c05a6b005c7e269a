//! The eviction walk, which finds a slot for an item whose two buckets are full.
//!
//! The walk finds the nearest bucket with room that evictions can reach: first among the alternates of the residents of the
//! item's buckets, then among the alternates of the residents found there, and so on. Fingerprints are moved only once a bucket
//! with room is found. So a walk that gives up has changed nothing and needs no rollback, and since it uses no random numbers, it
//! is reproducible.
//!
//! With several slots in a bucket, that is a breadth-first [`Search`]. With one, there are only two [`Chains`] to follow.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod chains;
mod search;
#[cfg(test)]
mod tests;

use super::{Change, Fingerprint, Pair, Placement, TableMut, fingerprints};
use chains::Chains;
use search::Search;

/// The number of full buckets whose residents a walk examines before it gives up. With a quarter of it, large tables refuse items
/// at a load lower by 0.002; measure with `cargo run --release --example tables -- max_load 4 12`.
const MAX_EXPANDED: usize = 4096;

/// Stores a fingerprint in one of its two buckets, evicting others if necessary. Returns false, and changes nothing, if no slot
/// was found.
#[inline(always)]
pub(crate) fn place<T: TableMut>(table: &mut T, placement: impl Placement, buckets: Pair, fingerprint: Fingerprint) -> bool {
    table.insert(buckets, fingerprint) || table.outlined(Eviction { placement, buckets, fingerprint })
}

/// Inserts a fingerprint whose two buckets are full.
struct Eviction<P> {
    placement: P,
    buckets: Pair,
    fingerprint: Fingerprint,
}

impl<P: Placement> Change for Eviction<P> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        self.one_step(table) || if table.bucket_size() == 1 { table.outlined(Chains(self)) } else { table.outlined(Search(self)) }
    }
}

impl<P: Placement> Eviction<P> {
    /// The first step of the walk: moves one resident of the two buckets to its alternate. Usually this is enough, and it needs
    /// no list of nodes.
    #[inline(always)]
    fn one_step<T: TableMut>(&self, table: &mut T) -> bool {
        for bucket in [self.buckets.0, self.buckets.1] {
            for resident in fingerprints(&table.values(bucket)) {
                let alternate = self.placement.alternate(bucket, resident);
                if table.has_room(alternate) {
                    table.put(alternate, resident);
                    table.replace(bucket, resident, self.fingerprint);
                    return true;
                }
            }
        }
        false
    }
}
