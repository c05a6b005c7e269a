//! Looking up many items: in vectors, or in a loop that is compiled for each kernel's instructions, with all that it calls, since
//! the items are in many tables.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use super::{ElasticParams, partition::Partition};
use crate::{
    bits::beyond,
    filter::Located,
    kernel::{BATCH, Dispatch, FEWEST_FOR_VECTORS, Hashes, Tables, Task},
    table::{AnySize, Geometry, Instructions, Uniform},
};

/// Shards that can be asked, wherever they are: those of a partition, or of a whole filter. As [`Tables`], they are those of the first
/// generation.
pub(crate) trait Shards<'a>: Tables<'a> {
    /// The table of the first generation where a hash with this stream is; none if nothing was ever inserted there.
    fn table(self, hash: Uniform, stream: u64) -> Option<&'a [u8]>;

    /// True if there is a table for every hash.
    fn has_all_tables(self) -> bool;

    /// That table, and what is looked for there: the low fingerprint alone, since the first generation has no spare bits.
    #[inline(always)]
    fn target(self, hash: Uniform) -> (&'a [u8], Located) {
        let (buckets, fingerprint) = self.address().buckets(hash);
        (self.table_of_all(hash, self.stream(hash)), Located::new(buckets, fingerprint))
    }

    /// The table, where there is one for every hash.
    #[inline(always)]
    fn table_of_all(self, hash: Uniform, stream: u64) -> &'a [u8] {
        match self.table(hash, stream) {
            Some(table) => table,
            None => beyond(),
        }
    }

    /// True if a hash is in a later generation.
    fn later_contain(self, hash: Uniform) -> bool;

    /// True if some hashes have to be looked up in later generations, too.
    fn has_later(self) -> bool;

    /// True if a hash is in any generation.
    fn contains(self, hash: Uniform) -> bool;

    /// The number of copies of a hash's fingerprint.
    fn count(self, hash: Uniform) -> u32;
}

impl<'a> Tables<'a> for &'a Partition {
    #[inline]
    fn address(self) -> AnySize {
        self.params().address()
    }

    fn geometry(self) -> &'a Geometry {
        Partition::geometry(self)
    }

    #[inline]
    fn stream(self, hash: Uniform) -> u64 {
        self.params().shares().stream(hash)
    }

    #[cfg(x86_kernels)]
    #[inline(always)]
    fn each_table(self, _: &[u64], streams: &[u64], places: &mut [*const u8], place: impl Fn(&'a [u8]) -> *const u8) {
        let routes = self.routes();
        for (written, &stream) in places.iter_mut().zip(streams) {
            *written = match routes.table(stream) {
                Some(table) => place(table),
                None => beyond(),
            };
        }
    }
}

impl<'a> Shards<'a> for &'a Partition {
    #[inline(always)]
    fn table(self, _: Uniform, stream: u64) -> Option<&'a [u8]> {
        Partition::table(self, stream)
    }

    fn has_all_tables(self) -> bool {
        !self.is_unused()
    }

    fn later_contain(self, hash: Uniform) -> bool {
        Partition::later_contain(self, hash)
    }

    fn has_later(self) -> bool {
        Partition::has_later(self)
    }

    #[inline(always)]
    fn contains(self, hash: Uniform) -> bool {
        Partition::contains(self, hash)
    }

    fn count(self, hash: Uniform) -> u32 {
        Partition::count(self, hash)
    }
}

/// The partitions of a filter.
#[derive(Clone, Copy)]
pub(crate) struct Partitions<'a> {
    pub partitions: &'a [Partition],
    pub params: &'a ElasticParams,
}

impl<'a> Partitions<'a> {
    #[inline(always)]
    pub fn of(self, hash: Uniform) -> &'a Partition {
        match self.partitions {
            [partition] => partition,
            partitions => &partitions[self.params.shares().partition(hash)],
        }
    }
}

impl<'a> Tables<'a> for Partitions<'a> {
    #[inline]
    fn address(self) -> AnySize {
        self.params.address()
    }

    fn geometry(self) -> &'a Geometry {
        self.partitions[0].geometry()
    }

    #[inline]
    fn stream(self, hash: Uniform) -> u64 {
        self.params.shares().stream(hash)
    }

    #[cfg(x86_kernels)]
    #[inline(always)]
    fn each_table(self, hashes: &[u64], streams: &[u64], places: &mut [*const u8], place: impl Fn(&'a [u8]) -> *const u8) {
        if let [partition] = self.partitions {
            return partition.each_table(hashes, streams, places, place);
        }
        for (written, (&hash, &stream)) in places.iter_mut().zip(hashes.iter().zip(streams)) {
            *written = place(self.table_of_all(Uniform(hash), stream));
        }
    }
}

impl<'a> Shards<'a> for Partitions<'a> {
    #[inline(always)]
    fn table(self, hash: Uniform, stream: u64) -> Option<&'a [u8]> {
        self.of(hash).table(stream)
    }

    fn has_all_tables(self) -> bool {
        !self.partitions.iter().any(Partition::is_unused)
    }

    fn later_contain(self, hash: Uniform) -> bool {
        self.of(hash).later_contain(hash)
    }

    fn has_later(self) -> bool {
        self.partitions.iter().any(Partition::has_later)
    }

    #[inline(always)]
    fn contains(self, hash: Uniform) -> bool {
        self.of(hash).contains(hash)
    }

    fn count(self, hash: Uniform) -> u32 {
        self.of(hash).count(hash)
    }
}

/// Looks up all hashes. Calls `answer` once for each [`BATCH`] of them, in order; bit i of its argument is the answer for the i-th
/// hash of the batch. If `prefetches`, the buckets of a batch are prefetched first.
pub(crate) fn contains_all<'a>(
    dispatch: Dispatch,
    shards: impl Shards<'a>,
    prefetches: bool,
    hashes: &impl Hashes,
    mut answer: impl FnMut(u64),
) {
    if !shards.has_all_tables() {
        // There are few items.
        hashes.each_batch(0..hashes.len(), |batch| {
            answer(answers(batch.iter().map(|&hash| shards.contains(Uniform(hash)))));
            true
        });
        return;
    }
    let has_later = shards.has_later();
    let mut answer = |hashes: &[u64], found: u64| {
        answer(if has_later { found | later(shards, hashes, !found) } else { found });
    };
    let prefetches = prefetches && hashes.len() >= FEWEST_FOR_VECTORS;
    #[cfg(x86_kernels)]
    if dispatch.contains_all_in(shards, prefetches, hashes, &mut answer) {
        return;
    }
    dispatch.run(OneByOne { shards, prefetches, hashes, answer: &mut answer });
}

/// Looks up those hashes in later generations whose bit in `asked` is set.
#[cold]
fn later<'a>(shards: impl Shards<'a>, hashes: &[u64], asked: u64) -> u64 {
    let bits = (0..).zip(hashes).filter(|(place, _)| asked >> place & 1 == 1);
    bits.fold(0, |found, (place, &hash)| found | u64::from(shards.later_contain(Uniform(hash))) << place)
}

/// Looks up hashes in the first generation without vectors.
struct OneByOne<'h, S, H, A> {
    shards: S,
    prefetches: bool,
    hashes: &'h H,
    answer: A,
}

impl<'a, S: Shards<'a>, H: Hashes, A: FnMut(&[u64], u64)> Task for OneByOne<'_, S, H, A> {
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(mut self, instructions: I) {
        let Self { shards, hashes, prefetches, .. } = self;
        let geometry = *shards.geometry();
        hashes.each_batch(0..hashes.len(), |batch| {
            let found = if prefetches {
                let mut targets = [None; BATCH];
                for (&hash, target) in batch.iter().zip(&mut targets) {
                    let (table, located) = shards.target(Uniform(hash));
                    geometry.read_with(table, instructions, located.prefetch());
                    *target = Some((table, located));
                }
                answers(targets.iter().flatten().map(|&(table, located)| geometry.read_with(table, instructions, located)))
            } else {
                answers(batch.iter().map(|&hash| {
                    let (table, located) = shards.target(Uniform(hash));
                    geometry.read_with(table, instructions, located)
                }))
            };
            (self.answer)(batch, found);
            true
        });
    }
}

/// Bit i of the result is the i-th answer.
#[inline(always)]
fn answers(found: impl Iterator<Item = bool>) -> u64 {
    (0..).zip(found).fold(0, |answers, (place, found)| answers | u64::from(found) << place)
}
