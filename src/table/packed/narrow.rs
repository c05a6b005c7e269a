//! Narrow buckets, which fit into a word: fingerprints of up to 16 bits, decoded into four lanes of 16 bits.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{
    hint::select_unpredictable,
    ops::{Deref, DerefMut},
};

use super::{Code, Instructions, Keys, Marks, Packed, PackedGeometry, Pair, codebook};
use crate::{
    bits::{self, Fields, low_half, low_quarter},
    table::Fingerprint,
};
use codebook::CODEWORD_BITS;

const LANE: u32 = u16::BITS;
const LANES: Fields = Fields::new(LANE, 4);

/// The encoding of narrow buckets.
pub(crate) struct Narrow;

impl Code for Narrow {
    type Keys = Quad;
    type Geometry = PackedGeometry;
    type Column = ();
    type Walked<I: Instructions> = I;

    #[inline(always)]
    fn walked<I: Instructions>(instructions: I) -> I {
        instructions
    }

    #[inline(always)]
    fn parts(geometry: &PackedGeometry) -> (&PackedGeometry, ()) {
        (geometry, ())
    }

    #[inline(always)]
    fn load<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) -> Quad {
        let (word, i) = (table.word(bucket), table.instructions);
        Quad(i.spread(word >> CODEWORD_BITS, table.geometry.high_bits()) | i.spread_nibbles(codebook::decode(word)))
    }

    #[inline(always)]
    fn store<B: DerefMut<Target = [u8]>, I: Instructions>(table: &mut Packed<'_, Self, B, I>, bucket: u64, Quad(lanes): Quad) {
        let (geometry, i) = (table.geometry, table.instructions);
        let codeword = u64::from(codebook::encode(i.gather_nibbles(lanes)));
        let word = i.gather(lanes, geometry.high_bits()) << CODEWORD_BITS | codeword;
        bits::set(&mut table.bytes, geometry.bit(bucket), geometry.bucket_bits(), word);
    }

    #[inline(always)]
    fn contains<B: Deref<Target = [u8]>, I: Instructions>(
        table: &Packed<'_, Self, B, I>,
        buckets: Pair,
        fingerprint: Fingerprint,
    ) -> bool {
        I::in_narrow(table, buckets, fingerprint)
    }
}

impl Marks for Narrow {
    #[inline(always)]
    fn high_marks<B: Deref<Target = [u8]>, I>(table: &Packed<'_, Self, B, I>, bucket: u64, high: u32) -> u64 {
        table.geometry.highs().equal(table.word(bucket) >> CODEWORD_BITS, high)
    }
}

/// Four keys in lanes, sorted from the lowest lane up. A key has the nibble in its highest four bits and the high part in the
/// bits below.
#[derive(Clone, Copy)]
pub(crate) struct Quad(u64);

impl Quad {
    /// A mask for the lowest `lanes` lanes.
    #[inline(always)]
    fn first(lanes: u32) -> u64 {
        // Two shifts, because four lanes are 64 bits, too many for one.
        (1u64 << (LANE / 2 * lanes) << (LANE / 2 * lanes)).wrapping_sub(1)
    }
}

impl Keys for Quad {
    type Key = u64;

    #[inline(always)]
    fn key(fingerprint: Fingerprint) -> u64 {
        fingerprint.wide() >> 4 | (fingerprint.wide() & 15) << 12
    }

    #[inline(always)]
    fn free(self) -> u32 {
        self.0.trailing_zeros() / LANE
    }

    #[inline(always)]
    fn find(self, key: u64) -> u64 {
        LANES.equal(self.0, low_half(key))
    }

    #[inline(always)]
    fn insert(self, key: u64) -> Self {
        let lane = |n: u32| u32::from((self.0 >> (n * LANE) & 0xffff) < key);
        // The lanes with smaller keys move down by one, over the empty lane; the key takes the place after them.
        let less = lane(1) + lane(2) + lane(3);
        let (moved, kept) = (Self::first(less), !Self::first(less + 1));
        Self(self.0 >> LANE & moved | key << (less * LANE) | self.0 & kept)
    }

    #[inline(always)]
    fn remove(self, _: u64, marks: u64) -> Self {
        // The lanes before the first copy move up by one. Its mark is the highest bit of its lane.
        let (upto, before) = (marks ^ (marks - 1), (marks ^ (marks - 1)) >> LANE);
        Self((self.0 & before) << LANE | self.0 & !upto)
    }

    #[inline(always)]
    fn select(condition: bool, keys: Self, others: Self) -> Self {
        Self(select_unpredictable(condition, keys.0, others.0))
    }

    #[inline(always)]
    fn values(self) -> [u32; 4] {
        let value = |n: u32| u32::from(low_quarter(self.0 >> (n * LANE)).rotate_left(4));
        [value(0), value(1), value(2), value(3)]
    }

    #[inline(always)]
    fn disorder(self) -> u64 {
        // Subtracts each lane from the one above it, all three at once. The highest bit of each minuend is set and that of each
        // subtrahend is cleared, so no lane borrows from the next. Where the original highest bits differ, they decide the
        // comparison; otherwise the difference does.
        let (less, greater) = (self.0 & Self::first(3), self.0 >> LANE);
        let tops = LANES.tops();
        let rest = (greater | tops) - (less & !tops);
        !(greater & !less | !(greater ^ less) & rest) & tops
    }

    #[inline(always)]
    fn without(self, mask: u64) -> u64 {
        LANES.without(self.0, low_half(mask))
    }
}
