//! Buckets that are longer than a word: fingerprints of more than 16 bits.

use core::hint::select_unpredictable;

use super::{Form, Keys, Packed};
use crate::{
    bits,
    bits::{low_half, low_quarter},
    storage::Storage,
    table::Fingerprint,
    table::codebook::{self, CODEWORD_BITS},
};

/// The form of wide buckets.
pub(super) struct Wide;

impl Form for Wide {
    type Keys = [u32; 4];

    #[inline(always)]
    fn load<S: Storage>(table: &Packed<S>, bucket: u64) -> [u32; 4] {
        let nibbles = u32::from(codebook::decode(table.word(bucket)));
        let [first, second] = table.pairs(bucket);
        let high = |word: u64| low_half(word & table.high_mask());
        [
            nibbles << 28 | high(first),
            nibbles >> 4 << 28 | high(first >> table.high_bits),
            nibbles >> 8 << 28 | high(second),
            nibbles >> 12 << 28 | high(second >> table.high_bits),
        ]
    }

    #[inline(always)]
    fn store(table: &mut Packed, bucket: u64, [a, b, c, d]: [u32; 4]) {
        let nibbles = a >> 28 | b >> 28 << 4 | c >> 28 << 8 | d >> 28 << 12;
        let codeword = codebook::encode(low_quarter(nibbles.into()));
        let high = |key: u32| u64::from(key) & table.high_mask();
        let (first, second) = (high(a) | high(b) << table.high_bits, high(c) | high(d) << table.high_bits);
        let (bit, pair) = (table.bit(bucket), 2 * table.high_bits);
        let (first_bit, second_bit) = (table.high_bit(bit, 0), table.high_bit(bit, 1));
        bits::set(&mut table.memory, bit, CODEWORD_BITS, codeword.into());
        bits::set(&mut table.memory, first_bit, pair, first);
        bits::set(&mut table.memory, second_bit, pair, second);
    }
}

impl Keys for [u32; 4] {
    type Key = u32;

    #[inline(always)]
    fn key(fingerprint: Fingerprint) -> u32 {
        fingerprint.get().rotate_right(4)
    }

    #[inline(always)]
    fn free(self) -> u32 {
        let [a, b, c, d] = self.map(|key| u32::from(key == 0));
        a + b + c + d
    }

    #[inline(always)]
    fn holds(self, key: u32) -> bool {
        let [a, b, c, d] = self.map(|other| other == key);
        a | b | c | d
    }

    /// One step of an insertion sort.
    #[inline(always)]
    fn insert(self, key: u32) -> Self {
        let [_, a, b, c] = self;
        [key.min(a), key.min(b).max(a), key.min(c).max(b), key.max(c)]
    }

    #[inline(always)]
    fn remove(self, key: u32) -> Self {
        // Whatever comes before the last copy moves up.
        let [a, b, c, d] = self;
        let keep = |own: u32, before: u32| select_unpredictable(own <= key, before, own);
        [keep(a, 0), keep(b, a), keep(c, b), keep(d, c)]
    }

    #[inline(always)]
    fn select(condition: bool, [a, b, c, d]: Self, [e, f, g, h]: Self) -> Self {
        [(a, e), (b, f), (c, g), (d, h)].map(|(one, other)| select_unpredictable(condition, one, other))
    }

    #[inline(always)]
    fn values(self) -> [u32; 4] {
        self.map(|key| key.rotate_left(4))
    }

    #[inline(always)]
    fn disorder(self) -> u64 {
        let [a, b, c, d] = self;
        u64::from(a > b) | u64::from(b > c) | u64::from(c > d)
    }
}
