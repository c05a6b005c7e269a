//! Wide buckets, which are longer than a word: fingerprints of more than 16 bits, decoded into an array.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{
    hint::select_unpredictable,
    ops::{Deref, DerefMut},
};

use super::{Code, Instructions, Keys, Marks, Packed, PackedGeometry, Pair, codebook};
use crate::{
    bits::{self, low_half, low_quarter},
    table::{Fingerprint, Portable},
};
use codebook::CODEWORD_BITS;

/// The encoding of wide buckets.
pub(crate) struct Wide;

impl Code for Wide {
    type Keys = [u32; 4];
    type Geometry = PackedGeometry;
    type Column = ();
    type Walked<I: Instructions> = Portable;

    #[inline(always)]
    fn walked<I: Instructions>(_: I) -> Portable {
        Portable
    }

    #[inline(always)]
    fn parts(geometry: &PackedGeometry) -> (&PackedGeometry, ()) {
        (geometry, ())
    }

    #[inline(always)]
    fn load<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) -> [u32; 4] {
        let (geometry, [first, second]) = (table.geometry, table.pairs(bucket));
        let nibbles = u32::from(codebook::decode(table.word(bucket)));
        let high = |word: u64| low_half(word & geometry.high_mask());
        [
            nibbles << 28 | high(first),
            nibbles >> 4 << 28 | high(first >> geometry.high_bits()),
            nibbles >> 8 << 28 | high(second),
            nibbles >> 12 << 28 | high(second >> geometry.high_bits()),
        ]
    }

    #[inline(always)]
    fn store<B: DerefMut<Target = [u8]>, I: Instructions>(
        table: &mut Packed<'_, Self, B, I>,
        bucket: u64,
        [a, b, c, d]: [u32; 4],
    ) {
        let geometry = table.geometry;
        let nibbles = a >> 28 | b >> 28 << 4 | c >> 28 << 8 | d >> 28 << 12;
        let codeword = codebook::encode(low_quarter(nibbles.into()));
        let high = |key: u32| u64::from(key) & geometry.high_mask();
        let (first, second) = (high(a) | high(b) << geometry.high_bits(), high(c) | high(d) << geometry.high_bits());
        let (bit, pair) = (geometry.bit(bucket), 2 * geometry.high_bits());
        bits::set(&mut table.bytes, bit, CODEWORD_BITS, codeword.into());
        bits::set(&mut table.bytes, geometry.high_bit(bit, 0), pair, first);
        bits::set(&mut table.bytes, geometry.high_bit(bit, 1), pair, second);
    }

    #[inline(always)]
    fn contains<B: Deref<Target = [u8]>, I: Instructions>(
        table: &Packed<'_, Self, B, I>,
        buckets: Pair,
        fingerprint: Fingerprint,
    ) -> bool {
        table.contains_by_high_parts(buckets, fingerprint)
    }
}

impl Marks for Wide {
    #[inline(always)]
    fn high_marks<B: Deref<Target = [u8]>, I>(table: &Packed<'_, Self, B, I>, bucket: u64, high: u32) -> u64 {
        let [first, second] = table.pairs(bucket);
        let highs = table.geometry.highs();
        highs.equal(first, high) | highs.equal(second, high) << 1
    }
}

/// Without `map`, which is a call where there is no link-time optimisation.
impl Keys for [u32; 4] {
    type Key = u32;

    #[inline(always)]
    fn key(fingerprint: Fingerprint) -> u32 {
        fingerprint.get().rotate_right(4)
    }

    #[inline(always)]
    fn free(self) -> u32 {
        let [a, b, c, d] = self;
        u32::from(a == 0) + u32::from(b == 0) + u32::from(c == 0) + u32::from(d == 0)
    }

    #[inline(always)]
    fn find(self, key: u32) -> u64 {
        let [a, b, c, d] = self;
        u64::from(a == key) | u64::from(b == key) | u64::from(c == key) | u64::from(d == key)
    }

    /// One step of an insertion sort, over the empty first slot.
    #[inline(always)]
    fn insert(self, key: u32) -> Self {
        let [_, a, b, c] = self;
        [key.min(a), key.min(b).max(a), key.min(c).max(b), key.max(c)]
    }

    #[inline(always)]
    fn remove(self, key: u32, _: u64) -> Self {
        // The keys before the last copy move up by one.
        let [a, b, c, d] = self;
        let keep = |own: u32, before: u32| select_unpredictable(own <= key, before, own);
        [keep(a, 0), keep(b, a), keep(c, b), keep(d, c)]
    }

    #[inline(always)]
    fn select(condition: bool, [a, b, c, d]: Self, [e, f, g, h]: Self) -> Self {
        let choose = |one: u32, other: u32| select_unpredictable(condition, one, other);
        [choose(a, e), choose(b, f), choose(c, g), choose(d, h)]
    }

    #[inline(always)]
    fn values(self) -> [u32; 4] {
        let [a, b, c, d] = self;
        [a.rotate_left(4), b.rotate_left(4), c.rotate_left(4), d.rotate_left(4)]
    }

    #[inline(always)]
    fn disorder(self) -> u64 {
        let [a, b, c, d] = self;
        u64::from(a > b) | u64::from(b > c) | u64::from(c > d)
    }

    #[inline(always)]
    fn without(self, mask: u32) -> u64 {
        let [a, b, c, d] = self;
        let lacks = |key: u32| u64::from(key != 0 && key & mask == 0);
        lacks(a) | lacks(b) | lacks(c) | lacks(d)
    }
}
