//! The route from a hash's stream to the bytes of its shard, in a growing filter or in a snapshot of one, and the layout of these
//! bytes, which all shards of one depth share.
//!
//! ```text
//! stream ──directory──▶ place ─┬─ block, offset ──▶ a table
//!                              └─ beyond all blocks: a list
//! ```

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::ops::Deref;

use super::{
    directory::Directory,
    generation_plan::GenerationPlan,
    shard::{Key, Shard, ShardParams, Upper},
    stream::Window,
};
use crate::{
    bits::{index, wide},
    filter::slots,
    kernel::Dispatch,
    table::{DeepGeometry, TableParams, list::ListView},
};

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
        let (places, first_bits) = directory.parts();
        Self { places, first_bits, blocks, code }
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
        key.occurrences(self.upper).count(&|bucket| self.slots(dispatch, bytes, bucket))
    }

    /// Returns the slots of a bucket in such a shard.
    #[inline(never)]
    pub fn slots(&self, dispatch: Dispatch, bytes: &[u8], bucket: u64) -> <ShardParams as TableParams>::Slots {
        slots::<ShardParams>(bucket, |copy| dispatch.read_deep(&self.geometry, bytes, copy))
    }
}
