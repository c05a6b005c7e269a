//! Buckets that have only the lower bits of their fingerprints: the upper ones are in a column behind the table. Look-ups that do
//! without them read the table alone, as one of shorter fingerprints.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::ops::{Deref, DerefMut};

use super::{Code, Instructions, Keys, Packed, PackedGeometry, Pair, SLOTS, codebook};
use crate::{
    bits::{self, index, low_half, low_quarter, window_bits},
    table::{Column, Fingerprint, Portable},
};
use codebook::CODEWORD_BITS;

/// The encoding of buckets with a column.
pub(crate) struct Deep;

impl Column {
    /// The first bit of what a packed bucket has in the column.
    #[inline(always)]
    fn bit(self, bucket: u64) -> u64 {
        self.first_bit + bucket * u64::from(SLOTS * self.width())
    }

    /// Whether one word has the upper bits of all four slots.
    #[inline(always)]
    fn is_narrow(self) -> bool {
        SLOTS * self.width() <= window_bits(1)
    }
}

/// Words that begin with the first and with the third of four fields of that width. `is_narrow` if one word has them all.
#[inline(always)]
fn halves(bytes: &[u8], bit: u64, skipped: u32, width: u32, is_narrow: bool) -> [u64; 2] {
    if is_narrow {
        let word = bits::word(bytes, bit) >> skipped;
        [word, word >> (2 * width)]
    } else {
        let bit = bit + u64::from(skipped);
        [bits::word(bytes, bit), bits::word(bytes, bit + u64::from(2 * width))]
    }
}

impl Code for Deep {
    type Keys = [u32; 4];
    type Geometry = (PackedGeometry, Column);
    type Column = Column;
    type Walked<I: Instructions> = Portable;

    #[inline(always)]
    fn walked<I: Instructions>(_: I) -> Portable {
        Portable
    }

    #[inline(always)]
    fn parts((geometry, column): &(PackedGeometry, Column)) -> (&PackedGeometry, Column) {
        (geometry, *column)
    }

    #[inline(always)]
    fn load<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) -> [u32; 4] {
        let (geometry, column, bytes) = (table.geometry, table.column, &table.bytes);
        let nibbles = u32::from(codebook::decode(table.word(bucket)));
        let (bit, width) = (geometry.bit(bucket), geometry.high_bits());
        let [first, second] = halves(bytes, bit, CODEWORD_BITS, width, geometry.is_narrow());
        let [above, others_above] = halves(bytes, column.bit(bucket), 0, column.width(), column.is_narrow());
        let mask = (1 << column.width()) - 1;
        let high = |word: u64, above: u64| low_half(word & geometry.high_mask() | (above & mask) << geometry.high_bits());
        [
            nibbles << 28 | high(first, above),
            nibbles >> 4 << 28 | high(first >> geometry.high_bits(), above >> column.width()),
            nibbles >> 8 << 28 | high(second, others_above),
            nibbles >> 12 << 28 | high(second >> geometry.high_bits(), others_above >> column.width()),
        ]
    }

    #[inline(always)]
    fn store<B: DerefMut<Target = [u8]>, I: Instructions>(
        table: &mut Packed<'_, Self, B, I>,
        bucket: u64,
        [a, b, c, d]: [u32; 4],
    ) {
        let (geometry, column) = (table.geometry, table.column);
        let nibbles = a >> 28 | b >> 28 << 4 | c >> 28 << 8 | d >> 28 << 12;
        let codeword = codebook::encode(low_quarter(nibbles.into()));
        let high = |key: u32| u64::from(key) & geometry.high_mask();
        let (first, second) = (high(a) | high(b) << geometry.high_bits(), high(c) | high(d) << geometry.high_bits());
        let (bit, pair) = (geometry.bit(bucket), 2 * geometry.high_bits());
        if geometry.is_narrow() {
            let word = u64::from(codeword) | (first | second << pair) << CODEWORD_BITS;
            bits::set(&mut table.bytes, bit, geometry.bucket_bits(), word);
        } else {
            bits::set(&mut table.bytes, bit, CODEWORD_BITS, codeword.into());
            bits::set(&mut table.bytes, geometry.high_bit(bit, 0), pair, first);
            bits::set(&mut table.bytes, geometry.high_bit(bit, 1), pair, second);
        }
        // Without the nibble.
        let above = |key: u32| u64::from(key << 4 >> 4) >> geometry.high_bits();
        let (first, second) = (above(a) | above(b) << column.width(), above(c) | above(d) << column.width());
        let (bit, pair) = (column.bit(bucket), 2 * column.width());
        if column.is_narrow() {
            bits::set(&mut table.bytes, bit, 2 * pair, first | second << pair);
        } else {
            bits::set(&mut table.bytes, bit, pair, first);
            bits::set(&mut table.bytes, bit + u64::from(pair), pair, second);
        }
    }

    #[inline(always)]
    fn contains<B: Deref<Target = [u8]>, I: Instructions>(
        table: &Packed<'_, Self, B, I>,
        (first, second): Pair,
        fingerprint: Fingerprint,
    ) -> bool {
        let key = <[u32; 4]>::key(fingerprint);
        Self::load(table, first).find(key) | Self::load(table, second).find(key) != 0
    }

    #[inline(always)]
    fn prefetch<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) {
        table.instructions.prefetch(&table.bytes, index(table.column.bit(bucket) / 8));
    }
}
