//! Lookups of many items in many tables: with vector instructions, or in a loop that is inlined and compiled for each kernel's
//! instructions.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use super::{ElasticParams, partition::Partition};
use crate::{
    bits::beyond,
    filter::Located,
    kernel::{BATCH, Dispatch, Hashes, MIN_FOR_VECTORS, Tables, Task},
    table::{AnySize, Geometry, Instructions, Uniform},
};

/// The shards of a partition, a filter or a snapshot, which can look up hashes. Their [`Tables`] are those of the first generation.
pub(crate) trait Shards<'a>: Tables<'a> {
    /// Returns the table of the first generation for a hash with this stream, or `None` if its shard is a list.
    fn table(self, hash: Uniform, stream: u64) -> Option<&'a [u8]>;

    /// Returns true if there is a table for every hash.
    fn has_all_tables(self) -> bool;

    /// Returns a hash's table, and the buckets and fingerprint to look up there. The first generation has no spare bits, so this
    /// is the low fingerprint alone.
    #[inline(always)]
    fn target(self, hash: Uniform) -> (&'a [u8], Located) {
        let (buckets, fingerprint) = self.address().buckets(hash);
        (self.table_of_all(hash, self.stream(hash)), Located::new(buckets, fingerprint))
    }

    /// Returns a hash's table.
    ///
    /// # Panics
    /// Panics unless [`has_all_tables`](Self::has_all_tables).
    #[inline(always)]
    fn table_of_all(self, hash: Uniform, stream: u64) -> &'a [u8] {
        match self.table(hash, stream) {
            Some(table) => table,
            None => beyond(),
        }
    }

    /// Returns true if a later generation contains a hash.
    fn later_contains(self, hash: Uniform) -> bool;

    /// Returns true if there are later generations.
    fn has_later(self) -> bool;

    /// Returns true if any generation contains a hash.
    fn contains(self, hash: Uniform) -> bool;

    /// Returns the number of copies of a hash, extra copies included.
    fn count(self, hash: Uniform) -> u32;
}

impl<'a> Tables<'a> for &'a Partition {
    #[inline]
    fn address(self) -> AnySize {
        self.plan().address()
    }

    fn geometry(self) -> &'a Geometry {
        Partition::geometry(self)
    }

    #[inline]
    fn stream(self, hash: Uniform) -> u64 {
        self.plan().shares.stream(hash)
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
        Partition::has_all_tables(self)
    }

    fn later_contains(self, hash: Uniform) -> bool {
        Partition::later_contains(self, hash)
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
    /// Returns the partition of a hash.
    #[inline(always)]
    pub fn partition(self, hash: Uniform) -> &'a Partition {
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
        self.partition(hash).table(stream)
    }

    fn has_all_tables(self) -> bool {
        self.partitions.iter().all(Partition::has_all_tables)
    }

    fn later_contains(self, hash: Uniform) -> bool {
        self.partition(hash).later_contains(hash)
    }

    fn has_later(self) -> bool {
        self.partitions.iter().any(Partition::has_later)
    }

    #[inline(always)]
    fn contains(self, hash: Uniform) -> bool {
        self.partition(hash).contains(hash)
    }

    fn count(self, hash: Uniform) -> u32 {
        self.partition(hash).count(hash)
    }
}

/// Looks up all hashes. Calls `answer` once for each [`BATCH`] of them, in order. Bit i of its argument is set if the i-th hash of
/// the batch was found. If `prefetches`, the buckets of a batch are prefetched first.
pub(crate) fn contains_all<'a>(
    dispatch: Dispatch,
    shards: impl Shards<'a>,
    prefetches: bool,
    hashes: &impl Hashes,
    mut answer: impl FnMut(u64),
) {
    let has_later = shards.has_later();
    let mut answer = |hashes: &[u64], found: u64| {
        answer(if has_later { found | look_up_later(shards, hashes, !found) } else { found });
    };
    let prefetches = prefetches && hashes.len() >= MIN_FOR_VECTORS;
    if shards.has_all_tables() {
        return contains_all_in_tables(dispatch, shards, prefetches, hashes, &mut answer);
    }
    // In a large filter, a shard is a list only if its items were chosen. Batches that need no list are as fast as without one.
    hashes.each_batch(0..hashes.len(), |batch| {
        // Vectors look up as many hashes as a whole batch has, even if there are fewer.
        let has_table = |&hash: &u64| shards.table(Uniform(hash), shards.stream(Uniform(hash))).is_some();
        if batch.len() == BATCH && batch.iter().all(has_table) {
            contains_all_in_tables(dispatch, shards, prefetches, &batch, &mut answer);
        } else {
            answer(batch, to_bits(batch.iter().map(|&hash| shards.contains(Uniform(hash)))));
        }
        true
    });
}

/// Looks up hashes in the first generation, where all of them lead to tables.
fn contains_all_in_tables<'a>(
    dispatch: Dispatch,
    shards: impl Shards<'a>,
    prefetches: bool,
    hashes: &impl Hashes,
    answer: &mut impl FnMut(&[u64], u64),
) {
    #[cfg(x86_kernels)]
    if dispatch.contains_all_in(shards, prefetches, hashes, &mut *answer) {
        return;
    }
    dispatch.run(ScalarLookup { shards, prefetches, hashes, answer });
}

/// Looks up the hashes whose bits in `missing` are set in later generations. Bit i of the result is set if the i-th was found.
#[cold]
fn look_up_later<'a>(shards: impl Shards<'a>, hashes: &[u64], missing: u64) -> u64 {
    let missing = (0..).zip(hashes).filter(|(bit, _)| missing >> bit & 1 == 1);
    missing.fold(0, |found, (bit, &hash)| found | u64::from(shards.later_contains(Uniform(hash))) << bit)
}

/// Lookups in the first generation without vectors.
struct ScalarLookup<'h, S, H, A> {
    shards: S,
    prefetches: bool,
    hashes: &'h H,
    answer: A,
}

impl<'a, S: Shards<'a>, H: Hashes, A: FnMut(&[u64], u64)> Task for ScalarLookup<'_, S, H, A> {
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
                to_bits(targets.iter().flatten().map(|&(table, located)| geometry.read_with(table, instructions, located)))
            } else {
                to_bits(batch.iter().map(|&hash| {
                    let (table, located) = shards.target(Uniform(hash));
                    geometry.read_with(table, instructions, located)
                }))
            };
            (self.answer)(batch, found);
            true
        });
    }
}

/// Returns a word whose bit i is the i-th value.
#[inline(always)]
fn to_bits(found: impl Iterator<Item = bool>) -> u64 {
    (0..).zip(found).fold(0, |bits, (bit, found)| bits | u64::from(found) << bit)
}
