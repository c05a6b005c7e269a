//! What a table needs of the processor, beyond what the compiler finds by itself.

#![allow(clippy::inline_always, reason = "what is inlined is compiled for the kernel's instructions, what is called is not")]

use core::{hint::black_box, ops::Deref};

use super::{
    Change, Fingerprint, Pair, TableMut,
    packed::{Narrow, Packed, Wide},
};

/// Bits of a lane, of which a word has four.
const LANE: u32 = u16::BITS;

/// How the fields of a word are moved to lanes of 16 bits and back, and how memory is prefetched.
///
/// Values of a type that implements this prove that the processor has the instructions.
pub(crate) trait Instructions: Copy {
    /// The four lowest fields of `width` < 16 bits as the lowest bits of the lanes.
    fn spread(self, fields: u64, width: u32) -> u64;
    /// The reverse. The other bits of the lanes are ignored.
    fn gather(self, lanes: u64, width: u32) -> u64;
    /// The four lowest nibbles as the highest bits of the lanes.
    fn spread_nibbles(self, nibbles: u16) -> u64;
    /// The reverse.
    fn gather_nibbles(self, lanes: u64) -> u16;
    /// [`Table::contains`](super::Table::contains) of narrow buckets.
    fn in_narrow<B: Deref<Target = [u8]>>(table: &Packed<'_, Narrow, B, Self>, buckets: Pair, fingerprint: Fingerprint) -> bool;
    /// The same of wide ones.
    fn in_wide<B: Deref<Target = [u8]>>(table: &Packed<'_, Wide, B, Self>, buckets: Pair, fingerprint: Fingerprint) -> bool;
    /// Starts to load the cache line of a byte.
    fn prefetch(self, bytes: &[u8], position: usize);
    /// Runs a change in a function of its own, compiled for these instructions.
    fn outlined<T: TableMut, C: Change>(self, table: &mut T, change: C) -> C::Output;
}

/// Safe Rust: shifts and masks.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Instructions for Portable {
    #[inline(always)]
    fn spread(self, fields: u64, width: u32) -> u64 {
        let mask = (1 << width) - 1;
        let (second, third, fourth) = (fields >> width, fields >> (2 * width), fields >> (3 * width));
        fields & mask | (second & mask) << LANE | (third & mask) << (2 * LANE) | (fourth & mask) << (3 * LANE)
    }

    #[inline(always)]
    fn gather(self, lanes: u64, width: u32) -> u64 {
        let mask = (1 << width) - 1;
        let (second, third, fourth) = (lanes >> LANE, lanes >> (2 * LANE), lanes >> (3 * LANE));
        lanes & mask | (second & mask) << width | (third & mask) << (2 * width) | (fourth & mask) << (3 * width)
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

    #[inline(always)]
    fn in_wide<B: Deref<Target = [u8]>>(table: &Packed<'_, Wide, B, Self>, buckets: Pair, fingerprint: Fingerprint) -> bool {
        table.contains_by_high_parts(buckets, fingerprint)
    }

    /// A read whose result nothing waits for.
    #[inline(always)]
    fn prefetch(self, bytes: &[u8], position: usize) {
        black_box(bytes[position]);
    }

    #[cold]
    #[inline(never)]
    fn outlined<T: TableMut, C: Change>(self, table: &mut T, change: C) -> C::Output {
        change.run(table)
    }
}
