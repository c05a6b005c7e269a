//! Lookups, in a growing filter or in a snapshot of one: single lookups, and batches with vector instructions or in a loop that is
//! inlined and compiled for each kernel's instructions.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::ops::Deref;

use super::{
    directory::{Route, ShardBytes},
    generation_plan::GenerationPlan,
    shard::Key,
};
use crate::{
    bits::{IS_SMALL, IS_SMALLEST, beyond},
    filter::{Content, Located, Lookup},
    kernel::{BATCH, Dispatch, Hashes, MIN_FOR_VECTORS, Tables},
    table::{AnySize, Form as _, Geometry, Instructions, Narrow, Task, Uniform, list::ClassKey},
};

/// The shards of a generation, in a filter or in a snapshot, to look up items.
pub(crate) trait Shards<'a>: Copy + 'a {
    /// The position of a shard's table or list.
    type Place: Copy + PartialEq + Into<u64>;
    /// The memory of tables.
    type Block: Deref<Target = [u8]>;

    fn plan(self) -> &'a GenerationPlan;

    /// Returns the layout of all tables, without their columns.
    fn geometry(self) -> &'a Geometry;

    fn dispatch(self) -> Dispatch;

    fn route(self) -> Route<'a, Self::Place, Self::Block>;

    /// Returns true if every shard has a table.
    fn has_all_tables(self) -> bool;

    /// Returns the shard of a stream.
    fn shard_of(self, stream: u64) -> ShardBytes<'a>;

    /// Returns all shards with their prefixes.
    fn each_shard(self) -> impl Iterator<Item = (ShardBytes<'a>, u64)>;

    /// Returns the entries of extra copies, in order.
    fn entries(self) -> impl Iterator<Item = (ClassKey, u32)>;

    /// Returns the number of an item's extra copies beside its table: see [`GenerationPlan::extra_copies`].
    fn copies_beside(self, key: Key, extra: u32) -> u32;

    /// Returns true if a hash matches an item of the first generation, of which lookups compare the low fingerprint alone, unless the
    /// shard is a list.
    #[inline(always)]
    fn contains(self, hash: Uniform) -> bool {
        self.dispatch().run(ShardLookup { shards: self, hash })
    }

    /// Returns true if an item matches in all bits that the generation knows.
    #[inline(never)]
    fn contains_exactly(self, key: Key) -> bool {
        match self.shard_of(key.stream) {
            ShardBytes::Table(layout, table) if IS_SMALL => layout.count(self.dispatch(), table, key) > 0,
            ShardBytes::Table(layout, table) => {
                self.dispatch().read_deep(&layout.geometry, table, key.locate(layout.upper.extract(key.stream)).lookup())
            }
            ShardBytes::List(list) => list.get(self.plan().class_key(key)) > 0,
        }
    }

    /// Returns true if a hash matches an item in all bits that the generation knows. Its parameters are those that a lookup has in
    /// registers.
    #[cold]
    #[inline(never)]
    fn contains_all_bits_of(self, hash: Uniform) -> bool {
        self.contains_exactly(self.plan().key(hash))
    }

    /// Returns the number of an item's copies. Of those that are counted beside the tables, these are the ones with the same extra
    /// bits, and those whose extra bits are unknown.
    fn count(self, key: Key, extra: u32) -> u32 {
        match self.shard_of(key.stream) {
            ShardBytes::List(list) => list.get(self.plan().class_key(key)),
            ShardBytes::Table(layout, table) => match layout.count(self.dispatch(), table, key) {
                // Only items in a table have extra copies.
                0 => 0,
                in_table => in_table.saturating_add(self.copies_beside(key, extra)),
            },
        }
    }

    /// Returns the number of copies of a hash.
    fn count_hash(self, hash: Uniform) -> u32 {
        let key = self.plan().key(hash);
        self.count(key, self.plan().extra(key))
    }

    /// Returns how many copies of the item with this class key are in its table; 0 if there is none, or if the key is invalid.
    fn count_in_tables(self, class_key: ClassKey) -> u32 {
        let Some(key) = self.plan().item_of(class_key) else { return 0 };
        match self.shard_of(key.stream) {
            ShardBytes::Table(layout, table) => layout.count(self.dispatch(), table, key),
            ShardBytes::List(_) => 0,
        }
    }

    /// Returns the number of distinct items: one for each item that is stored, and one for each that is counted with other extra
    /// bits, except for the first of these.
    fn distinct(self) -> usize {
        let stored = self.each_shard().map(|(shard, _)| match shard {
            // Neither this nor `add_to` uses the number of items, here 0.
            ShardBytes::Table(layout, table) => layout.shard(self.dispatch(), table, 0).distinct(),
            ShardBytes::List(list) => list.len(),
        });
        stored.sum::<usize>() + self.plan().distinct_by_extra_bits(self.entries().map(|(entry, _)| entry))
    }

    /// Adds all copies of all items to the content of a partition with this first generation.
    fn add_to(self, content: &mut Content, first: &GenerationPlan) {
        let plan = self.plan();
        let add = |content: &mut Content, class_key, copies| {
            if let Some(key) = plan.item_of(class_key) {
                plan.earlier(key, first).add_to(content, first.whole, copies);
            }
        };
        self.entries().for_each(|(entry, copies)| add(content, plan.entry_parts(entry).0, copies));
        self.each_shard().for_each(|(shard, prefix)| match shard {
            ShardBytes::Table(layout, table) => {
                layout.shard(self.dispatch(), table, 0).each_fingerprint(|bucket, fingerprint| {
                    let key = Key::from_stored(layout.params, prefix, bucket, fingerprint);
                    plan.earlier(key, first).add_to(content, first.whole, 1);
                    true
                });
            }
            ShardBytes::List(list) => list.iter().for_each(|(class_key, copies)| add(content, class_key, copies)),
        });
    }
}

/// A lookup in the first generation, compiled as one function from the hash to the bits of the table. If the shard is a list, a
/// separate function looks up the item.
struct ShardLookup<S> {
    shards: S,
    hash: Uniform,
}

impl<'a, S: Shards<'a>> Task for ShardLookup<S> {
    type Output = bool;

    #[inline(always)]
    fn run<I: Instructions>(self, instructions: I) -> bool {
        let Self { shards, hash } = self;
        let (buckets, fingerprint) = shards.plan().address().buckets(hash);
        let Some(table) = shards.route().table(shards.plan().shares.stream(hash)) else {
            return shards.contains_all_bits_of(hash);
        };
        match shards.geometry() {
            Geometry::Narrow(geometry) if !IS_SMALLEST => {
                Narrow::read(geometry, table, instructions, Lookup(move || (buckets, fingerprint)))
            }
            // A separate function, so that this one need not save its registers.
            geometry => shards.dispatch().read(geometry, table, Located::new(buckets, fingerprint).lookup()),
        }
    }
}

/// The first generations of all partitions, of a filter or a snapshot, among whose tables a batch of items is distributed.
#[derive(Clone, Copy)]
pub(crate) struct Partitions<S, F> {
    /// Returns the first generation of a hash's partition.
    pub of: F,
    /// One of the first generations.
    pub any: S,
    /// True if there is no other one.
    #[cfg_attr(not(x86_kernels), expect(dead_code, reason = "only vectors are faster if they know it"))]
    pub is_only: bool,
}

impl<'a, S: Shards<'a>, F: Fn(Uniform) -> S + Copy> Partitions<S, F> {
    #[inline(always)]
    fn table(self, hash: Uniform, stream: u64) -> Option<&'a [u8]> {
        (self.of)(hash).route().table(stream)
    }
}

impl<'a, S: Shards<'a>, F: Fn(Uniform) -> S + Copy> Tables<'a> for Partitions<S, F> {
    #[inline]
    fn address(self) -> AnySize {
        self.any.plan().address()
    }

    fn geometry(self) -> &'a Geometry {
        self.any.geometry()
    }

    #[inline]
    fn stream(self, hash: Uniform) -> u64 {
        self.any.plan().shares.stream(hash)
    }

    #[cfg(x86_kernels)]
    #[inline(always)]
    fn each_table(self, hashes: &[u64], streams: &[u64], places: &mut [*const u8], place: impl Fn(&'a [u8]) -> *const u8) {
        let route = self.any.route();
        for (written, (&hash, &stream)) in places.iter_mut().zip(hashes.iter().zip(streams)) {
            let table = if self.is_only { route.table(stream) } else { self.table(Uniform(hash), stream) };
            *written = match table {
                Some(table) => place(table),
                None => beyond(),
            };
        }
    }
}

/// Looks up all hashes. Calls `answer` once for each [`BATCH`] of them, in order. Bit i of its argument is set if the i-th hash of
/// the batch was found. `later` looks up a hash in later generations, if there are any. If `prefetches`, the buckets of a batch are
/// prefetched first.
pub(crate) fn contains_all<'a, S: Shards<'a>>(
    partitions: Partitions<S, impl Fn(Uniform) -> S + Copy>,
    has_all_tables: bool,
    later: Option<&dyn Fn(Uniform) -> bool>,
    prefetches: bool,
    hashes: &impl Hashes,
    mut answer: impl FnMut(u64),
) {
    let mut answer = |hashes: &[u64], found: u64| {
        answer(later.map_or(found, |later| found | look_up_later(later, hashes, !found)));
    };
    let prefetches = prefetches && hashes.len() >= MIN_FOR_VECTORS;
    if has_all_tables {
        return contains_all_in_tables(partitions, prefetches, hashes, &mut answer);
    }
    // In a large filter, a shard is a list only if its items were chosen. Batches that need no list are as fast as without one.
    hashes.each_batch(0..hashes.len(), |batch| {
        // Vectors look up as many hashes as a whole batch has, even if there are fewer.
        let has_table = |&hash: &u64| partitions.table(Uniform(hash), partitions.stream(Uniform(hash))).is_some();
        if batch.len() == BATCH && batch.iter().all(has_table) {
            contains_all_in_tables(partitions, prefetches, &batch, &mut answer);
        } else {
            answer(batch, to_bits(batch.iter().map(|&hash| (partitions.of)(Uniform(hash)).contains(Uniform(hash)))));
        }
    });
}

/// Looks up hashes in the first generation, where all of them lead to tables.
fn contains_all_in_tables<'a, S: Shards<'a>>(
    partitions: Partitions<S, impl Fn(Uniform) -> S + Copy>,
    prefetches: bool,
    hashes: &impl Hashes,
    answer: &mut impl FnMut(&[u64], u64),
) {
    let dispatch = partitions.any.dispatch();
    #[cfg(x86_kernels)]
    if dispatch.contains_all_in(partitions, prefetches, hashes, &mut *answer) {
        return;
    }
    dispatch.run(TableLookups { partitions, prefetches, hashes, answer });
}

/// Looks up the hashes whose bits in `missing` are set in later generations. Bit i of the result is set if the i-th was found.
#[cold]
fn look_up_later(later: &dyn Fn(Uniform) -> bool, hashes: &[u64], missing: u64) -> u64 {
    let missing = (0..).zip(hashes).filter(|(bit, _)| missing >> bit & 1 == 1);
    missing.fold(0, |found, (bit, &hash)| found | u64::from(later(Uniform(hash))) << bit)
}

/// Lookups in tables of the first generation without vectors.
struct TableLookups<'h, S, F, H, A> {
    partitions: Partitions<S, F>,
    prefetches: bool,
    hashes: &'h H,
    answer: A,
}

impl<'a, S, F, H, A> Task for TableLookups<'_, S, F, H, A>
where
    S: Shards<'a>,
    F: Fn(Uniform) -> S + Copy,
    H: Hashes,
    A: FnMut(&[u64], u64),
{
    type Output = ();

    #[inline(always)]
    fn run<I: Instructions>(mut self, instructions: I) {
        let Self { partitions, hashes, prefetches, .. } = self;
        let (geometry, address, shares) = (*partitions.geometry(), partitions.address(), partitions.any.plan().shares);
        // The first generation has no spare bits, so the low fingerprint is all that is compared.
        let locate = |hash| {
            let (buckets, fingerprint) = address.buckets(Uniform(hash));
            let Some(table) = partitions.table(Uniform(hash), shares.stream(Uniform(hash))) else { beyond() };
            (table, Located::new(buckets, fingerprint))
        };
        hashes.each_batch(0..hashes.len(), |batch| {
            let found = if prefetches {
                let mut targets = [None; BATCH];
                for (&hash, target) in batch.iter().zip(&mut targets) {
                    let (table, located) = locate(hash);
                    geometry.read_with(table, instructions, located.prefetch());
                    *target = Some((table, located));
                }
                to_bits(
                    targets.iter().flatten().map(|&(table, located)| geometry.read_with(table, instructions, located.lookup())),
                )
            } else {
                to_bits(batch.iter().map(|&hash| {
                    let (table, located) = locate(hash);
                    geometry.read_with(table, instructions, located.lookup())
                }))
            };
            (self.answer)(batch, found);
        });
    }
}

/// Returns a word whose bit i is the i-th value.
#[inline(always)]
fn to_bits(found: impl Iterator<Item = bool>) -> u64 {
    (0..).zip(found).fold(0, |bits, (bit, found)| bits | u64::from(found) << bit)
}
