//! The keys of a decoded bucket: [`Narrow`] in the quarters of a word, [`Wide`] in an array.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::hint::select_unpredictable;

use super::{
    PackedGeometry, SLOTS,
    codebook::{self, CODEWORD_BITS},
};
use crate::{
    bits::{self, Fields, low_half, low_quarter},
    table::Instructions,
};

pub(super) const QUARTER: u32 = u16::BITS;
const QUARTERS: Fields = Fields::new(QUARTER, SLOTS);

/// The keys of a bucket, as numbers that sort like the slots: the nibble is in the highest bits, the high part below. An empty
/// slot is 0, so empty slots come first. The bits of a fingerprint that are in a column are not part of a key. No method branches
/// on the contents of a bucket, because such branches are unpredictable.
pub(crate) trait Keys: Copy {
    /// True if a whole bucket fits into a word.
    const FITS_A_WORD: bool;
    /// Decodes a bucket.
    fn load(geometry: &PackedGeometry, bytes: &[u8], instructions: impl Instructions, bucket: u64) -> Self;
    /// Encodes a bucket.
    fn store(self, geometry: &PackedGeometry, bytes: &mut [u8], instructions: impl Instructions, bucket: u64);
    /// Converts the part of a fingerprint that is in the table to a key.
    fn key(fingerprint: u64) -> u64;
    /// Converts a key to the part of a fingerprint that is in the table.
    fn value(key: u64) -> u64;
    /// Returns the keys in the order of the slots.
    fn keys(self) -> [u64; 4];

    /// Counts the empty slots.
    fn free(self) -> u32;
    /// Returns 0 if no slot holds `key`.
    fn find(self, key: u64) -> u64;
    /// Marks the slots that hold `key`.
    fn marks(self, key: u64) -> u64;
    /// Returns the slot of the lowest mark.
    fn slot(marks: u64) -> u32;
    /// Counts the smaller keys above the first slot, which must be empty.
    fn less(self, key: u64) -> u32;
    /// Returns the slot of `key` once it is [inserted](Self::insert): after smaller keys, and after those equal ones in whose slots
    /// `is_before` holds.
    #[inline(always)]
    fn slot_for(self, key: u64, is_before: impl Fn(u32) -> bool) -> u32 {
        // Two keys rarely are equal.
        let (mut slot, mut marks) = (self.less(key), self.marks(key));
        while marks != 0 {
            slot += u32::from(is_before(Self::slot(marks)));
            marks &= marks - 1;
        }
        slot
    }
    /// Stores `key` in an empty slot. There must be one.
    fn insert(self, key: u64) -> Self;
    /// Removes one of the copies of `key` that [`find`](Self::find) has marked.
    fn remove(self, key: u64, marks: u64) -> Self;
    /// Returns `keys` if `condition` holds, otherwise `others`.
    fn select(condition: bool, keys: Self, others: Self) -> Self;
    /// Returns 0 if the keys are sorted, as in every valid bucket.
    fn disorder(self) -> u64;
    /// Returns 0 if every key of an occupied slot has at least one of the bits of `mask`.
    fn without(self, mask: u64) -> u64;
}

/// Four keys of up to 16 bits in the quarters of a word, sorted from the lowest quarter up.
#[derive(Clone, Copy)]
pub(crate) struct Narrow(pub(super) u64);

impl Narrow {
    /// Returns a mask for the lowest `quarters` quarters.
    #[inline(always)]
    fn first(quarters: u32) -> u64 {
        // Shifts twice, because four quarters are 64 bits, which one shift cannot take.
        (1u64 << (QUARTER / 2 * quarters) << (QUARTER / 2 * quarters)).wrapping_sub(1)
    }

    #[inline(always)]
    pub(super) fn quarter(self, n: u32) -> u64 {
        self.0 >> (n * QUARTER) & 0xffff
    }

    /// Returns the bits of a bucket with these keys.
    #[inline(always)]
    pub(super) fn encode(self, geometry: &PackedGeometry, i: impl Instructions) -> u64 {
        let codeword = u64::from(codebook::encode(i.gather_nibbles(self.0)));
        i.gather(self.0, geometry.high_bits()) << CODEWORD_BITS | codeword
    }
}

impl Keys for Narrow {
    const FITS_A_WORD: bool = true;

    #[inline(always)]
    fn load(geometry: &PackedGeometry, bytes: &[u8], i: impl Instructions, bucket: u64) -> Self {
        let word = bits::word(bytes, geometry.bit(bucket));
        Self(i.spread(word >> CODEWORD_BITS, geometry.high_bits()) | i.spread_nibbles(codebook::decode(word)))
    }

    #[inline(always)]
    fn store(self, geometry: &PackedGeometry, bytes: &mut [u8], i: impl Instructions, bucket: u64) {
        bits::set(bytes, geometry.bit(bucket), geometry.bucket_bits(), self.encode(geometry, i));
    }

    #[inline(always)]
    fn key(fingerprint: u64) -> u64 {
        fingerprint >> 4 | (fingerprint & 15) << 12
    }

    #[inline(always)]
    fn value(key: u64) -> u64 {
        low_quarter(key).rotate_left(4).into()
    }

    #[inline(always)]
    fn keys(self) -> [u64; 4] {
        [self.quarter(0), self.quarter(1), self.quarter(2), self.quarter(3)]
    }

    #[inline(always)]
    fn free(self) -> u32 {
        self.0.trailing_zeros() / QUARTER
    }

    #[inline(always)]
    fn find(self, key: u64) -> u64 {
        self.marks(key)
    }

    /// A mark is the highest bit of its quarter.
    #[inline(always)]
    fn marks(self, key: u64) -> u64 {
        QUARTERS.equal(self.0, low_half(key))
    }

    #[inline(always)]
    fn slot(marks: u64) -> u32 {
        marks.trailing_zeros() / QUARTER
    }

    #[inline(always)]
    fn less(self, key: u64) -> u32 {
        let quarter = |n| u32::from(self.quarter(n) < key);
        quarter(1) + quarter(2) + quarter(3)
    }

    /// Moves the quarters with smaller keys down by one, over the empty quarter, and puts the key after them.
    #[inline(always)]
    fn insert(self, key: u64) -> Self {
        let less = self.less(key);
        let (moved, kept) = (Self::first(less), !Self::first(less + 1));
        Self(self.0 >> QUARTER & moved | key << (less * QUARTER) | self.0 & kept)
    }

    #[inline(always)]
    fn remove(self, _: u64, marks: u64) -> Self {
        // Moves the quarters before the first copy up by one.
        let (upto, before) = (marks ^ (marks - 1), (marks ^ (marks - 1)) >> QUARTER);
        Self((self.0 & before) << QUARTER | self.0 & !upto)
    }

    #[inline(always)]
    fn select(condition: bool, keys: Self, others: Self) -> Self {
        Self(select_unpredictable(condition, keys.0, others.0))
    }

    #[inline(always)]
    fn disorder(self) -> u64 {
        // Subtracts each quarter from the one above it, all three at once. The highest bit of each minuend is set and that of
        // each subtrahend is cleared, so no quarter borrows from the next. If the original highest bits differ, they decide the
        // comparison; otherwise the difference does.
        let (less, greater) = (self.0 & Self::first(3), self.0 >> QUARTER);
        let tops = QUARTERS.tops();
        let rest = (greater | tops) - (less & !tops);
        !(greater & !less | !(greater ^ less) & rest) & tops
    }

    #[inline(always)]
    fn without(self, mask: u64) -> u64 {
        QUARTERS.without(self.0, low_half(mask))
    }
}

/// Four keys of up to 32 bits. Avoids `map`, which is a call without link-time optimization.
#[derive(Clone, Copy)]
pub(crate) struct Wide([u32; 4]);

impl Keys for Wide {
    const FITS_A_WORD: bool = false;

    #[inline(always)]
    fn load(geometry: &PackedGeometry, bytes: &[u8], _: impl Instructions, bucket: u64) -> Self {
        let [first, second] = geometry.pairs(bytes, bucket);
        let nibbles = u32::from(codebook::decode(bits::word(bytes, geometry.bit(bucket))));
        let high = |word: u64| low_half(word & geometry.high_mask());
        Self([
            nibbles << 28 | high(first),
            nibbles >> 4 << 28 | high(first >> geometry.high_bits()),
            nibbles >> 8 << 28 | high(second),
            nibbles >> 12 << 28 | high(second >> geometry.high_bits()),
        ])
    }

    #[inline(always)]
    fn store(self, geometry: &PackedGeometry, bytes: &mut [u8], _: impl Instructions, bucket: u64) {
        let Self([a, b, c, d]) = self;
        let nibbles = a >> 28 | b >> 28 << 4 | c >> 28 << 8 | d >> 28 << 12;
        let codeword = codebook::encode(low_quarter(nibbles.into()));
        let high = |key: u32| u64::from(key) & geometry.high_mask();
        let (first, second) = (high(a) | high(b) << geometry.high_bits(), high(c) | high(d) << geometry.high_bits());
        let (bit, pair) = (geometry.bit(bucket), 2 * geometry.high_bits());
        bits::set(bytes, bit, CODEWORD_BITS, codeword.into());
        bits::set(bytes, geometry.high_bit(bit, 0), pair, first);
        bits::set(bytes, geometry.high_bit(bit, 1), pair, second);
    }

    #[inline(always)]
    fn key(fingerprint: u64) -> u64 {
        low_half(fingerprint).rotate_right(4).into()
    }

    #[inline(always)]
    fn value(key: u64) -> u64 {
        low_half(key).rotate_left(4).into()
    }

    #[inline(always)]
    fn keys(self) -> [u64; 4] {
        let Self([a, b, c, d]) = self;
        [a.into(), b.into(), c.into(), d.into()]
    }

    #[inline(always)]
    fn free(self) -> u32 {
        let Self([a, b, c, d]) = self;
        let empty = |key: u32| u32::from(key == 0);
        empty(a) + empty(b) + empty(c) + empty(d)
    }

    #[inline(always)]
    fn find(self, key: u64) -> u64 {
        let (Self([a, b, c, d]), key) = (self, low_half(key));
        u64::from(a == key) | u64::from(b == key) | u64::from(c == key) | u64::from(d == key)
    }

    /// The mark of a slot is the bit with its number.
    #[inline(always)]
    fn marks(self, key: u64) -> u64 {
        let (Self([a, b, c, d]), key) = (self, low_half(key));
        u64::from(a == key) | u64::from(b == key) << 1 | u64::from(c == key) << 2 | u64::from(d == key) << 3
    }

    #[inline(always)]
    fn slot(marks: u64) -> u32 {
        marks.trailing_zeros()
    }

    #[inline(always)]
    fn less(self, key: u64) -> u32 {
        let (Self([_, b, c, d]), key) = (self, low_half(key));
        u32::from(b < key) + u32::from(c < key) + u32::from(d < key)
    }

    /// Does one step of an insertion sort, over the empty first slot.
    #[inline(always)]
    fn insert(self, key: u64) -> Self {
        let (Self([_, a, b, c]), key) = (self, low_half(key));
        Self([key.min(a), key.min(b).max(a), key.min(c).max(b), key.max(c)])
    }

    #[inline(always)]
    fn remove(self, key: u64, _: u64) -> Self {
        // Moves the keys before the last copy up by one.
        let (Self([a, b, c, d]), key) = (self, low_half(key));
        let keep = |own: u32, before: u32| select_unpredictable(own <= key, before, own);
        Self([keep(a, 0), keep(b, a), keep(c, b), keep(d, c)])
    }

    #[inline(always)]
    fn select(condition: bool, Self([a, b, c, d]): Self, Self([e, f, g, h]): Self) -> Self {
        let choose = |one: u32, other: u32| select_unpredictable(condition, one, other);
        Self([choose(a, e), choose(b, f), choose(c, g), choose(d, h)])
    }

    #[inline(always)]
    fn disorder(self) -> u64 {
        let Self([a, b, c, d]) = self;
        u64::from(a > b) | u64::from(b > c) | u64::from(c > d)
    }

    #[inline(always)]
    fn without(self, mask: u64) -> u64 {
        let (Self([a, b, c, d]), mask) = (self, low_half(mask));
        let lacks = |key: u32| u64::from(key != 0 && key & mask == 0);
        lacks(a) | lacks(b) | lacks(c) | lacks(d)
    }
}
