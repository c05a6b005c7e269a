//! Looking up many items. The loop over the items is compiled for each kernel's instructions, with all that it calls, since the
//! items are in many tables.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::mem;

use super::{lane::Lane, level::Target, partition::Partition, stream::Shares};
use crate::{
    kernel::{BATCH, Hashes, Task},
    table::{Instructions, Uniform},
};

/// Shards that can be asked, wherever they are: those of a lane, or of a whole filter.
pub(crate) trait Shards<'a>: Copy {
    /// Where a hash is looked up in the first layer, and whether there are later ones to look into.
    fn target(self, hash: Uniform) -> (Target<'a>, bool);

    /// True if a hash is in a later layer.
    fn later_contain(self, hash: Uniform) -> bool;

    /// True if a hash is in any layer.
    fn contains(self, hash: Uniform) -> bool;

    /// The number of copies of a hash's fingerprint.
    fn count(self, hash: Uniform) -> u32;
}

impl<'a> Shards<'a> for &'a Lane {
    #[inline(always)]
    fn target(self, hash: Uniform) -> (Target<'a>, bool) {
        Lane::target(self, hash)
    }

    fn later_contain(self, hash: Uniform) -> bool {
        Lane::later_contain(self, hash)
    }

    #[inline(always)]
    fn contains(self, hash: Uniform) -> bool {
        Lane::contains(self, hash)
    }

    fn count(self, hash: Uniform) -> u32 {
        Lane::count(self, hash)
    }
}

/// The lanes of a filter.
#[derive(Clone, Copy)]
#[allow(unreachable_pub, reason = "belongs to a sealed trait")]
pub struct Lanes<'a> {
    pub(super) lanes: &'a [Lane],
    pub(super) shares: Shares,
}

impl<'a> Lanes<'a> {
    #[inline(always)]
    pub(super) fn of(self, hash: Uniform) -> &'a Lane {
        &self.lanes[self.shares.lane(hash)]
    }
}

impl<'a> Shards<'a> for Lanes<'a> {
    #[inline(always)]
    fn target(self, hash: Uniform) -> (Target<'a>, bool) {
        self.of(hash).target(hash)
    }

    fn later_contain(self, hash: Uniform) -> bool {
        self.of(hash).later_contain(hash)
    }

    #[inline(always)]
    fn contains(self, hash: Uniform) -> bool {
        self.of(hash).contains(hash)
    }

    fn count(self, hash: Uniform) -> u32 {
        self.of(hash).count(hash)
    }
}

/// Looks up a hash, with these instructions.
#[inline(always)]
pub(super) fn contains<'a, I: Instructions>(instructions: I, shards: impl Shards<'a>, hash: u64) -> bool {
    let (Target { geometry, bytes, located }, has_later) = shards.target(Uniform(hash));
    geometry.read(bytes, instructions, located) || has_later && shards.later_contain(Uniform(hash))
}

/// Looks up hashes in order, a batch after the other.
pub(super) struct InOrder<'h, S, A> {
    pub(super) shards: A,
    pub(super) hashes: &'h S,
    pub(super) found: &'h mut [bool],
    /// Whether the buckets of a batch are prefetched first.
    pub(super) prefetches: bool,
}

impl<'a, S: Hashes, A: Shards<'a>> Task for InOrder<'_, S, A> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, instructions: I) {
        let Self { shards, hashes, found, prefetches } = self;
        let mut rest = found;
        hashes.each_batch(0..hashes.len(), |batch| {
            let (found, behind) = mem::take(&mut rest).split_at_mut(batch.len());
            rest = behind;
            if prefetches {
                look_up_prefetched(instructions, shards, batch, found);
            } else {
                for (&hash, found) in batch.iter().zip(found) {
                    *found = contains(instructions, shards, hash);
                }
            }
            true
        });
    }
}

/// Looks up a batch, after prefetching all its buckets.
#[inline(always)]
pub(super) fn look_up_prefetched<'a, I: Instructions>(
    instructions: I,
    shards: impl Shards<'a>,
    batch: &[u64],
    found: &mut [bool],
) {
    let mut targets = [None; BATCH];
    for (&hash, wanted) in batch.iter().zip(&mut targets) {
        let (target, has_later) = shards.target(Uniform(hash));
        target.geometry.read(target.bytes, instructions, target.located.prefetch());
        *wanted = Some((target, has_later));
    }
    for ((&hash, target), found) in batch.iter().zip(targets).zip(found) {
        *found = target.is_some_and(|(Target { geometry, bytes, located }, has_later)| {
            geometry.read(bytes, instructions, located) || has_later && shards.later_contain(Uniform(hash))
        });
    }
}

/// Looks up hashes that were shared out. The answer for the n-th hash that came is written to the n-th element of `found`.
pub(super) struct InPartition<'h, A> {
    pub(super) shards: A,
    pub(super) parts: &'h Partition,
    pub(super) found: &'h mut [bool],
}

impl<'a, A: Shards<'a>> Task for InPartition<'_, A> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, instructions: I) {
        self.parts.each(|place, Uniform(hash)| {
            self.found[place] = contains(instructions, self.shards, hash);
            true
        });
    }
}
