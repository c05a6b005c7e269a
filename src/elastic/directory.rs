//! The directory of a generation: it maps the first bits of a stream to a shard's table, as in extendible hashing.
//!
//! ```text
//! global depth 2    00 ──▶ shard of local depth 2, prefix 00
//!                   01 ──▶ shard of local depth 2, prefix 01
//!                   10 ──┬▶ shard of local depth 1, prefix 1
//!                   11 ──┘
//! ```
//!
//! A [`Route`] leads on to the bytes of the shard, in a growing filter or in a snapshot of one. All shards of one depth have the same
//! layout of these bytes ([`DepthLayout`]).
//!
//! ```text
//! stream ──directory──▶ place ─┬─ block, offset ──▶ a table
//!                              └─ beyond all blocks: a list
//! ```

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use alloc::vec::Vec;
use core::{iter, ops::Deref};

use super::{
    generation_plan::GenerationPlan,
    shard::{Key, Shard, ShardParams, Upper},
    stream::Window,
};
use crate::{
    bits::{index, wide},
    filter::{occurrences, slots},
    kernel::Dispatch,
    storage::{OutOfMemory, copied, reserved, shrink_to},
    table::{DeepGeometry, TableParams, list::ListView},
};

/// A directory: its entry for each value of a stream's first `global_depth` bits is the place `P` of a shard. A shard of depth d
/// has a row of 2^(`global_depth` − d) adjacent entries.
#[derive(Clone)]
pub(crate) struct Directory<P> {
    entries: Vec<P>,
    first_bits: Window,
}

impl<P: Copy + PartialEq> Directory<P> {
    /// Returns a directory without entries.
    pub fn empty(global_depth: u8) -> Self {
        Self::from_entries(Vec::new(), global_depth)
    }

    /// Returns a directory of this depth whose entries are all `place`.
    pub fn filled(global_depth: u8, place: P) -> Result<Self, OutOfMemory> {
        let mut entries = reserved(1 << global_depth)?;
        entries.resize(1 << global_depth, place);
        Ok(Self::from_entries(entries, global_depth))
    }

    fn from_entries(entries: Vec<P>, global_depth: u8) -> Self {
        Self { entries, first_bits: Window::new(0, global_depth.into()) }
    }

    #[inline]
    pub fn global_depth(&self) -> u8 {
        self.first_bits.len()
    }

    /// Returns the place to which a stream leads, or `None` if there are no entries.
    #[inline]
    pub fn find(&self, stream: u64) -> Option<P> {
        self.entries.get(index(self.first_bits.extract(stream))).copied()
    }

    /// Returns the place to which a stream leads, and the depth of the shard there; `None` if there are no entries.
    pub fn find_with_depth(&self, stream: u64) -> Option<(P, u8)> {
        let entry = index(self.first_bits.extract(stream));
        Some((*self.entries.get(entry)?, self.depth_at(entry)))
    }

    pub fn entries(&self) -> &[P] {
        &self.entries
    }

    /// Returns the index of the first entry in a shard's row.
    fn first_entry(&self, depth: u8, prefix: u32) -> usize {
        index(prefix.into()) << (self.global_depth() - depth)
    }

    /// Returns the first entry in the row of a shard with this depth and prefix, whether or not there is such a shard.
    pub fn at(&self, depth: u8, prefix: u32) -> Option<P> {
        self.entries.get(self.first_entry(depth, prefix)).copied()
    }

    /// Writes `place` to all entries of a shard's row.
    #[inline(never)]
    pub fn point(&mut self, depth: u8, prefix: u32, place: P) {
        let (first, row) = (self.first_entry(depth, prefix), 1 << (self.global_depth() - depth));
        self.entries[first..][..row].fill(place);
    }

    /// Returns the depth of the shard that has an entry in its row.
    fn depth_at(&self, entry: usize) -> u8 {
        // A row is aligned to its length: the bits of an entry's index that make no difference are the lowest ones.
        let is_in_row = |bit: &u8| self.entries[entry ^ 1 << bit] == self.entries[entry];
        (0..self.global_depth()).find(|bit| !is_in_row(bit)).map_or(0, |unused| self.global_depth() - unused)
    }

    /// Returns the places of all shards in the order of their prefixes.
    pub fn places(&self) -> impl Iterator<Item = P> + Clone {
        let mut next = 0;
        iter::from_fn(move || {
            let place = *self.entries.get(next)?;
            next += 1 << (self.global_depth() - self.depth_at(next));
            Some(place)
        })
    }

    /// Returns the places of all shards with their depths and prefixes, in bit-reversed order of these.
    pub fn places_bit_reversed(&self) -> impl Iterator<Item = (P, u8, u64)> {
        (0..self.entries.len()).filter_map(move |number| {
            let entry = number.reverse_bits().unbounded_shr(usize::BITS - u32::from(self.global_depth()));
            let depth = self.depth_at(entry);
            let unused = self.global_depth() - depth;
            // Each shard is returned once: at the first entry of its row.
            (entry.trailing_zeros() >= unused.into()).then_some((self.entries[entry], depth, wide(entry >> unused)))
        })
    }

    /// Returns a copy with a greater depth, or `None` if the directory is already that deep.
    pub fn deepened(&self, global_depth: u8) -> Result<Option<Self>, OutOfMemory> {
        let bits = global_depth.saturating_sub(self.global_depth());
        if bits == 0 {
            return Ok(None);
        }
        let mut deeper = reserved(self.entries.len() << bits)?;
        deeper.extend(self.entries.iter().flat_map(|&place| iter::repeat_n(place, 1 << bits)));
        Ok(Some(Self::from_entries(deeper, global_depth)))
    }

    /// Halves the directory. All shards must be shallower than `global_depth`.
    pub fn halve(&mut self) {
        let mut at = 0;
        self.entries.retain(|_| {
            at += 1;
            at % 2 == 1
        });
        shrink_to(&mut self.entries, 0);
        self.first_bits = Window::new(0, u32::from(self.global_depth()) - 1);
    }

    /// Returns a copy, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        Ok(Self { entries: copied(&self.entries)?, ..*self })
    }

    /// Returns the bytes of a directory with this depth.
    pub fn bytes_at_depth(global_depth: u8) -> usize {
        size_of::<P>() << global_depth
    }

    pub fn size_in_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<P>()
    }
}

/// The route from streams to the tables of a generation, whose directory has places `P`, in blocks of memory `B`. A loop over streams
/// keeps it in registers.
pub(crate) struct Route<'a, P, B> {
    places: &'a [P],
    first_bits: Window,
    blocks: &'a [B],
    code: PlaceCode,
}

impl<'a, P: Copy + PartialEq + Into<u64>, B: Deref<Target = [u8]>> Route<'a, P, B> {
    #[inline(always)]
    pub fn new(directory: &'a Directory<P>, blocks: &'a [B], code: PlaceCode) -> Self {
        Self { places: &directory.entries, first_bits: directory.first_bits, blocks, code }
    }

    /// Returns a stream's table with all that follows it in its block (cutting that off costs time), or `None` if its shard is a
    /// list.
    #[inline(always)]
    pub fn table(&self, stream: u64) -> Option<&'a [u8]> {
        let place = *self.places.get(index(self.first_bits.extract(stream)))?;
        let (block, start) = self.code.split(place);
        self.blocks.get(block)?.get(start..)
    }
}

/// The encoding of places: the number of a block, and a table's offset in it.
#[derive(Clone, Copy)]
pub(crate) struct PlaceCode {
    /// Log₂ of the unit of offsets in bytes.
    pub log2_unit: u8,
    /// The number of bits for a table's offset in its block.
    pub start_bits: u8,
}

impl PlaceCode {
    /// The encoding of 64-bit places in a single block, with tables at multiples of 8 bytes.
    pub const ONE_BLOCK: Self = Self { log2_unit: 3, start_bits: 61 };

    /// Returns the block of a place, and the table's offset there in bytes.
    #[inline(always)]
    pub fn split(self, place: impl Into<u64>) -> (usize, usize) {
        let place = place.into();
        let (block, start) = (place >> self.start_bits, place & ((1 << self.start_bits) - 1));
        (index(block), index(start << self.log2_unit))
    }
}

/// The contents of a shard.
#[derive(Clone, Copy)]
pub(crate) enum ShardBytes<'a> {
    /// The layout of the table and its column, and their bytes, with padding and possibly other bytes behind them.
    Table(&'a DepthLayout, &'a [u8]),
    List(ListView<'a>),
}

/// The properties that all shards of one depth share.
#[derive(Clone, Copy)]
pub(crate) struct DepthLayout {
    pub params: ShardParams,
    pub geometry: DeepGeometry,
    /// The window of stream bits that the shards store.
    pub upper: Upper,
    /// The number of items from which a table is full: it splits, or a further generation follows.
    pub full_at: u32,
}

impl DepthLayout {
    /// Returns the layout of tables that change.
    pub fn new(plan: &GenerationPlan, depth: u8) -> Self {
        Self { full_at: plan.full_at(depth), ..Self::read_only(plan, depth) }
    }

    /// Returns the layout of tables that are only read, without the number of items from which they are full, so that views do not
    /// contain the measured loads.
    pub fn read_only(plan: &GenerationPlan, depth: u8) -> Self {
        let params = plan.shard(depth);
        Self { geometry: DeepGeometry::new(&params), upper: params.upper(), params, full_at: 0 }
    }

    /// Returns the shard with this table and this many items.
    pub fn shard<'a>(&self, dispatch: Dispatch, bytes: &'a [u8], items: usize) -> Shard<'a> {
        Shard::from_parts(self.params, &bytes[..self.params.padded_bytes()], wide(items)).with_dispatch(dispatch)
    }

    /// Returns the number of an item's copies in such a shard.
    pub fn count(&self, dispatch: Dispatch, bytes: &[u8], key: Key) -> u32 {
        occurrences(key.buckets, key.fingerprint(self.upper), &|bucket| self.slots(dispatch, bytes, bucket))
    }

    /// Returns the slots of a bucket in such a shard.
    #[inline(never)]
    pub fn slots(&self, dispatch: Dispatch, bytes: &[u8], bucket: u64) -> <ShardParams as TableParams>::Slots {
        slots::<ShardParams>(bucket, |copy| dispatch.read_deep(&self.geometry, bytes, copy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a directory with shards of local depths 2, 2 and 1. Each place is the shard's depth and prefix.
    fn uneven() -> Directory<(u8, u32)> {
        let mut directory = Directory::filled(2, (0, 0)).unwrap();
        for (depth, prefix) in [(2, 0), (2, 1), (1, 1)] {
            directory.point(depth, prefix, (depth, prefix));
        }
        directory
    }

    #[test]
    fn streams_lead_to_the_shard_with_their_prefix() {
        let mut directory = uneven();
        for deeper in [2, 5] {
            if let Some(deepened) = directory.deepened(deeper).unwrap() {
                directory = deepened;
            }
            for top in 0..32_u64 {
                let (depth, prefix) = directory.find(top << 59).unwrap();
                assert_eq!(u64::from(prefix), top >> (5 - depth), "{top:05b}");
                assert_eq!(directory.at(depth, prefix), Some((depth, prefix)));
                assert_eq!(directory.find_with_depth(top << 59), Some(((depth, prefix), depth)));
            }
            assert_eq!(directory.places().collect::<Vec<_>>(), [(2, 0), (2, 1), (1, 1)]);
            let bit_reversed = directory.places_bit_reversed().collect::<Vec<_>>();
            assert_eq!(bit_reversed, [((2, 0), 2, 0), ((1, 1), 1, 1), ((2, 1), 2, 1)]);
        }
        assert_eq!((directory.global_depth(), directory.entries().len()), (5, 32));
        while directory.global_depth() > 2 {
            directory.halve();
        }
        assert!(directory.entries() == uneven().entries() && directory.deepened(2).unwrap().is_none());
        assert_eq!(directory.size_in_bytes(), Directory::<(u8, u32)>::bytes_at_depth(2));
    }

    #[test]
    fn an_empty_directory_finds_no_place() {
        let directory = Directory::<u32>::empty(3);
        assert!(directory.entries().is_empty() && directory.find(u64::MAX).is_none() && directory.size_in_bytes() == 0);
    }
}
