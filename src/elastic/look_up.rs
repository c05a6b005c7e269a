//! Looking up many items. The loop over the items is compiled for each kernel's instructions, with all that it calls, since the
//! items are in many tables.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::mem;

use super::{lane::Lane, level::Target, parts::Parts, stream::Shares};
use crate::{
    kernel::{BATCH, Hashes, Task},
    table::{Instructions, Uniform},
};

/// The lanes of a filter.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'a> {
    pub(super) lanes: &'a [Lane],
    pub(super) shares: Shares,
}

impl<'a> Lanes<'a> {
    #[inline(always)]
    fn of(self, hash: u64) -> &'a Lane {
        &self.lanes[self.shares.lane(Uniform(hash))]
    }

    #[inline(always)]
    fn contains<I: Instructions>(self, instructions: I, hash: u64) -> bool {
        contains(instructions, self.of(hash), hash)
    }
}

/// Looks up a hash in its lane.
#[inline(always)]
pub(super) fn contains<I: Instructions>(instructions: I, lane: &Lane, hash: u64) -> bool {
    let Target { geometry, bytes, located } = lane.target(Uniform(hash));
    geometry.read(bytes, instructions, located) || lane.has_later(Uniform(hash))
}

/// Looks up hashes in order, a batch after the other.
pub(super) struct InOrder<'a, S> {
    pub(super) lanes: Lanes<'a>,
    pub(super) hashes: &'a S,
    pub(super) found: &'a mut [bool],
    /// Whether the buckets of a batch are prefetched first.
    pub(super) prefetches: bool,
}

impl<S: Hashes> Task for InOrder<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, instructions: I) {
        let Self { lanes, hashes, found, prefetches } = self;
        let mut rest = found;
        hashes.each_batch(0..hashes.len(), |batch| {
            let (found, behind) = mem::take(&mut rest).split_at_mut(batch.len());
            rest = behind;
            if prefetches {
                look_up_prefetched(instructions, |hash| lanes.of(hash), batch, found);
            } else {
                for (&hash, found) in batch.iter().zip(found) {
                    *found = lanes.contains(instructions, hash);
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
    lane_of: impl Fn(u64) -> &'a Lane,
    batch: &[u64],
    found: &mut [bool],
) {
    let mut targets = [None; BATCH];
    for (&hash, wanted) in batch.iter().zip(&mut targets) {
        let target = lane_of(hash).target(Uniform(hash));
        target.geometry.read(target.bytes, instructions, target.located.prefetch());
        *wanted = Some(target);
    }
    for ((&hash, target), found) in batch.iter().zip(targets).zip(found) {
        *found = target.is_some_and(|Target { geometry, bytes, located }| geometry.read(bytes, instructions, located))
            || lane_of(hash).has_later(Uniform(hash));
    }
}

/// Looks up hashes that were shared out. The answer for the n-th hash that came is written to the n-th element of `found`.
pub(super) struct InParts<'a> {
    pub(super) lanes: Lanes<'a>,
    pub(super) parts: &'a Parts,
    pub(super) found: &'a mut [bool],
}

impl Task for InParts<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(self, instructions: I) {
        self.parts.each(|place, Uniform(hash)| {
            self.found[place] = self.lanes.contains(instructions, hash);
            true
        });
    }
}
