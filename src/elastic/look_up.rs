//! Looking up many items. The loop over the items is compiled for each kernel's instructions, with all that it calls, since the
//! items are in many tables.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::mem;

use super::{
    lane::Lane,
    parts::Parts,
    shard::{Window, stream},
};
use crate::{
    bits::index,
    kernel::{BATCH, Hashes, Task},
    table::{Instructions, Uniform},
};

/// The lanes of a filter.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'a> {
    pub(super) lanes: &'a [Lane],
    pub(super) bits: Window,
}

impl<'a> Lanes<'a> {
    #[inline(always)]
    fn of(self, hash: u64) -> &'a Lane {
        &self.lanes[index(self.bits.of(stream(Uniform(hash))))]
    }

    #[inline(always)]
    fn contains<I: Instructions>(self, instructions: I, hash: u64) -> bool {
        let lane = self.of(hash);
        let (shard, located) = lane.locate(Uniform(hash));
        shard.read_with(instructions, located) || lane.has_later(Uniform(hash))
    }
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
                look_up_prefetched(instructions, lanes, batch, found);
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
fn look_up_prefetched<I: Instructions>(instructions: I, lanes: Lanes<'_>, batch: &[u64], found: &mut [bool]) {
    let mut places = [None; BATCH];
    for (&hash, place) in batch.iter().zip(&mut places) {
        let (shard, located) = lanes.of(hash).locate(Uniform(hash));
        shard.read_with(instructions, located.prefetch());
        *place = Some((shard, located));
    }
    for ((&hash, place), found) in batch.iter().zip(places).zip(found) {
        *found = place.is_some_and(|(shard, located)| shard.read_with(instructions, located))
            || lanes.of(hash).has_later(Uniform(hash));
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
