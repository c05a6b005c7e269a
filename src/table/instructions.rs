//! The operations that tables need in processor-specific versions: packing and unpacking fields, prefetching, and look-up in
//! packed buckets.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{hint::black_box, ops::Deref};

use super::{
    Change, Fingerprint, Pair, TableMut,
    packed::{Narrow, Packed},
};

/// Bits of a lane; a word has four lanes.
const LANE: u32 = u16::BITS;

/// The lowest bit of each half of a word.
const HALVES: u64 = 0x0000_0001_0000_0001;

/// Packs and unpacks the fields of a word, and prefetches memory. A value of an implementing type proves that the processor
/// supports the instructions.
pub(crate) trait Instructions: Copy {
    /// Unpacks the four lowest fields, of `width` < 16 bits each, into the lowest bits of the lanes.
    fn spread(self, fields: u64, width: u32) -> u64;
    /// The inverse of [`spread`](Self::spread). Ignores the other bits of the lanes.
    fn gather(self, lanes: u64, width: u32) -> u64;
    /// Unpacks four nibbles into the highest bits of the lanes.
    fn spread_nibbles(self, nibbles: u16) -> u64;
    /// The inverse of [`spread_nibbles`](Self::spread_nibbles).
    fn gather_nibbles(self, lanes: u64) -> u16;
    /// [`Table::contains`](super::Table::contains) for narrow buckets.
    fn in_narrow<B: Deref<Target = [u8]>>(table: &Packed<'_, Narrow, B, Self>, buckets: Pair, fingerprint: Fingerprint) -> bool;
    /// Prefetches the cache line of the byte at `position`.
    fn prefetch(self, bytes: &[u8], position: usize);
    /// Runs a change compiled for these instructions, in a function that is not.
    fn outlined<T: TableMut, C: Change>(self, table: &mut T, change: C) -> C::Output;
}

/// Safe Rust: shifts and masks.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Instructions for Portable {
    #[inline(always)]
    fn spread(self, fields: u64, width: u32) -> u64 {
        // First two fields into each half of the word, then one into each lane.
        let pairs = fields & u64::from(u32::MAX) | fields >> (2 * width) << (2 * LANE);
        let mask = ((1 << width) - 1) * HALVES;
        pairs & mask | (pairs >> width & mask) << LANE
    }

    #[inline(always)]
    fn gather(self, lanes: u64, width: u32) -> u64 {
        let mask = ((1 << width) - 1) * HALVES;
        let pairs = lanes & mask | (lanes >> LANE & mask) << width;
        pairs & u64::from(u32::MAX) | pairs >> (2 * LANE) << (2 * width)
    }

    #[inline(always)]
    fn spread_nibbles(self, nibbles: u16) -> u64 {
        let pairs = u64::from(nibbles);
        let pairs = (pairs | pairs << 24) & 0x0000_00ff_0000_00ff;
        (pairs | pairs << 12) << 12 & 0xf000_f000_f000_f000
    }

    #[inline(always)]
    fn gather_nibbles(self, lanes: u64) -> u16 {
        let nibbles = lanes >> 12 & 0x000f_000f_000f_000f;
        let pairs = (nibbles | nibbles >> 12) & 0x0000_00ff_0000_00ff;
        crate::bits::low_quarter(pairs | pairs >> 24)
    }

    #[inline(always)]
    fn in_narrow<B: Deref<Target = [u8]>>(table: &Packed<'_, Narrow, B, Self>, buckets: Pair, fingerprint: Fingerprint) -> bool {
        table.contains_by_high_parts(buckets, fingerprint)
    }

    /// Safe Rust has no prefetch: reads the byte, and nothing waits for the result.
    #[inline(always)]
    fn prefetch(self, bytes: &[u8], position: usize) {
        black_box(bytes[position]);
    }

    #[inline(always)]
    fn outlined<T: TableMut, C: Change>(self, table: &mut T, change: C) -> C::Output {
        change.run(table)
    }
}
