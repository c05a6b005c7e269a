//! The semi-sorted table of the paper (section 5.2): four fingerprints, kept in order, cost one bit less each.
//!
//! Bucket i begins at bit i·4·(f−1): 12 bits of codeword for the four low nibbles, then the four high parts of f−4 bits,
//! in the order of the fingerprints. The order is total — by the low nibble, then by the high part — so that a bucket's
//! bits follow from what is in it, however it got there.

use core::hint::select_unpredictable;

use super::{Bucket, Corrupt, Fingerprint, Table};
use crate::{
    bits,
    codebook::{self, CODEWORD_BITS, CODEWORDS, CODEWORDS_WITH_ZERO},
    fields::Fields,
    kernel::Memory,
    num::{index, low_half},
    params::Params,
};

/// Of shorter high parts, one mostly agrees by chance.
const MIN_HIGH_BITS: u32 = 4;

/// Slots of a packed bucket: the codebook is one of quadruples.
pub(crate) const SLOTS: u32 = 4;

/// The longest fingerprint with which a bucket is no longer than a word: buckets begin at whole nibbles.
const LONGEST_NARROW: u32 = bits::window_bits(SLOTS) / SLOTS + 1;

/// The lowest bits of the four fields of a word, each for a fingerprint of a narrow bucket.
pub(crate) const NARROW: u64 = Fields::new(16, 4).splat(1);
/// The lowest bits of the two fields of a word, each for a fingerprint of a wide bucket.
pub(crate) const WIDE: u64 = Fields::new(32, 2).splat(1);

/// A word has all four high parts of a narrow bucket, or two of a wide one.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Packed {
    is_narrow: bool,
    bucket_bits: u32,
    /// Bits of the high part, f − 4.
    high_bits: u32,
    /// The high parts in a word.
    highs: Fields,
    /// Where the high parts are once a word is spread into such fields.
    spread: u64,
    /// 2¹⁶ / `high_bits`, and a little more.
    reciprocal: u32,
    memory: Memory,
}

/// A fingerprint with its low nibble moved to the top: the integers' order is the order of the slots. 0 is empty.
type Key = u32;

#[inline]
fn key(fingerprint: Fingerprint) -> Key {
    fingerprint.get().rotate_right(4)
}

/// Puts `key` in the place of the empty slot, which is the first: one step of an insertion sort, without a branch that
/// could be mispredicted.
#[inline]
fn insert([_, a, b, c]: [Key; 4], key: Key) -> [Key; 4] {
    [key.min(a), key.min(b).max(a), key.min(c).max(b), key.max(c)]
}

/// Takes one copy of `key` out, which is there: whatever comes before the last of them moves up.
#[inline]
fn remove([a, b, c, d]: [Key; 4], key: Key) -> [Key; 4] {
    let keep = |own: Key, before: Key| select_unpredictable(own <= key, before, own);
    [keep(a, 0), keep(b, a), keep(c, b), keep(d, c)]
}

/// How many slots hold `key`.
#[inline]
fn count(keys: [Key; 4], key: Key) -> u32 {
    keys.map(|other| u32::from(other == key)).iter().sum()
}

/// One or the other bucket's, without a branch.
#[inline]
fn select(condition: bool, [a, b, c, d]: [Key; 4], [e, f, g, h]: [Key; 4]) -> [Key; 4] {
    [(a, e), (b, f), (c, g), (d, h)].map(|(one, other)| select_unpredictable(condition, one, other))
}

/// A bucket as it is stored.
#[derive(Clone, Copy)]
pub(crate) struct Stored {
    /// The codeword, in the lowest 12 bits.
    pub(crate) codeword: u64,
    /// The high parts of the slots 0 and 1, and of 2 and 3, in the lowest bits; in a narrow bucket, the second are behind the
    /// first as well.
    pub(crate) high: [u64; 2],
}

impl Packed {
    pub(super) fn new(params: &Params, memory: Memory) -> Self {
        let (f, bucket_bits) = (params.fingerprint_bits(), params.bucket_bits());
        let (is_narrow, high_bits) = (f <= LONGEST_NARROW, f - 4);
        let highs = Fields::new(high_bits, if is_narrow { 4 } else { 2 });
        let spread = (((1 << high_bits) - 1) << 4) * if is_narrow { NARROW } else { WIDE };
        Self { is_narrow, bucket_bits, high_bits, highs, spread, reciprocal: (1 << 16) / high_bits.max(1) + 1, memory }
    }

    pub(crate) fn is_narrow(&self) -> bool {
        self.is_narrow
    }

    pub(crate) fn bucket_bits(&self) -> u32 {
        self.bucket_bits
    }

    pub(crate) fn high_bits(&self) -> u32 {
        self.high_bits
    }

    pub(crate) fn spread(&self) -> u64 {
        self.spread
    }

    /// A narrow bucket, in the lowest bits.
    #[inline]
    pub(crate) fn narrow(&self, bucket: u64) -> u64 {
        bits::word(&self.memory, self.bit(bucket))
    }

    pub(crate) fn highs(&self) -> Fields {
        self.highs
    }

    #[inline]
    fn bit(&self, bucket: u64) -> u64 {
        bucket * u64::from(self.bucket_bits)
    }

    #[inline]
    pub(crate) fn stored(&self, bucket: u64) -> Stored {
        let (bit, pair) = (self.bit(bucket), 2 * self.high_bits);
        let codeword = bits::word(&self.memory, bit);
        let high = if self.is_narrow {
            [codeword >> CODEWORD_BITS, codeword >> CODEWORD_BITS >> pair]
        } else {
            [bits::word(&self.memory, self.high_bit(bit, 0)), bits::word(&self.memory, self.high_bit(bit, 1))]
        };
        Stored { codeword, high }
    }

    /// Where a pair of high parts begins in the bucket that begins at `bit`.
    #[inline]
    fn high_bit(&self, bit: u64, pair: u32) -> u64 {
        bit + u64::from(CODEWORD_BITS + pair * 2 * self.high_bits)
    }

    #[inline]
    fn keys_of(&self, Stored { codeword, high: [first, second] }: Stored) -> [Key; 4] {
        let nibbles = u32::from(codebook::decode(codeword));
        let mask = (1 << self.high_bits) - 1;
        let high = |word: u64| low_half(word & mask);
        [
            nibbles << 28 | high(first),
            nibbles >> 4 << 28 | high(first >> self.high_bits),
            nibbles >> 8 << 28 | high(second),
            nibbles >> 12 << 28 | high(second >> self.high_bits),
        ]
    }

    #[inline]
    fn keys(&self, bucket: u64) -> [Key; 4] {
        self.keys_of(self.stored(bucket))
    }

    #[inline]
    fn set_keys(&mut self, bucket: u64, keys: [Key; 4]) {
        let codeword = u64::from(codebook::encode(keys.map(|key| (key >> 28) as u8)));
        let [a, b, c, d] = keys.map(|key| u64::from(key & (u32::MAX >> 4)));
        let (first, second) = (a | b << self.high_bits, c | d << self.high_bits);
        let (bit, pair) = (self.bit(bucket), 2 * self.high_bits);
        if self.is_narrow {
            bits::set(&mut self.memory, bit, self.bucket_bits, (first | second << pair) << CODEWORD_BITS | codeword);
        } else {
            let (first_bit, second_bit) = (self.high_bit(bit, 0), self.high_bit(bit, 1));
            bits::set(&mut self.memory, bit, CODEWORD_BITS, codeword);
            bits::set(&mut self.memory, first_bit, pair, first);
            bits::set(&mut self.memory, second_bit, pair, second);
        }
    }

    /// Marks the slots whose high part is `high`; [`slot`](Self::slot) tells which they are.
    #[inline]
    fn high_marks(&self, bucket: u64, high: u32) -> u64 {
        let bit = self.bit(bucket);
        if self.is_narrow {
            return self.highs.equal(bits::word(&self.memory, bit) >> CODEWORD_BITS, high);
        }
        let marks = |pair| self.highs.equal(bits::word(&self.memory, self.high_bit(bit, pair)), high);
        marks(0) | marks(1) << 1
    }

    /// The slot of the lowest mark.
    #[inline]
    fn slot(&self, marks: u64) -> u32 {
        // In fields of w bits, the j-th has its mark at (j + 1)·w − 1; those of the second pair are one bit higher.
        let end = marks.trailing_zeros() + 1;
        let fields = (end * self.reciprocal) >> 16;
        fields - 1 + 2 * (end - fields * self.high_bits)
    }

    #[inline]
    fn nibble(&self, bucket: u64, slot: u32) -> u32 {
        u32::from(codebook::decode(bits::word(&self.memory, self.bit(bucket)))) >> (4 * slot) & 15
    }

    #[inline]
    fn is_full(&self, Stored { codeword, high: [first, _] }: Stored) -> bool {
        // Empty slots come first, and all their bits are zero.
        low_half(codeword) & 0xfff >= u32::from(CODEWORDS_WITH_ZERO) || first & ((1 << self.high_bits) - 1) != 0
    }
}

impl Table for Packed {
    /// Compares the high parts, all at once. Mostly none agrees, and there is nothing to decode.
    #[inline]
    fn contains(&self, [mut first, second]: [u64; 2], fingerprint: Fingerprint) -> bool {
        if self.high_bits < MIN_HIGH_BITS {
            let key = key(fingerprint);
            return count(self.keys(first), key) + count(self.keys(second), key) > 0;
        }
        let high = fingerprint.get() >> 4;
        let (mut marks, mut others) = (self.high_marks(first, high), self.high_marks(second, high));
        while marks | others != 0 {
            // Mostly there is one mark, in either bucket: which of them is nothing to branch on.
            let none = marks == 0;
            first = select_unpredictable(none, second, first);
            marks = select_unpredictable(none, others, marks);
            others = select_unpredictable(none, 0, others);
            if self.nibble(first, self.slot(marks)) == fingerprint.get() & 15 {
                return true;
            }
            marks &= marks - 1;
        }
        false
    }

    #[inline]
    fn insert(&mut self, [first, second]: [u64; 2], fingerprint: Fingerprint) -> bool {
        let (stored, other) = (self.stored(first), self.stored(second));
        if self.is_full(stored) & self.is_full(other) {
            return false;
        }
        let (keys, other) = (self.keys_of(stored), self.keys_of(other));
        let second_is_emptier = count(other, 0) > count(keys, 0);
        let bucket = select_unpredictable(second_is_emptier, second, first);
        let keys = select(second_is_emptier, other, keys);
        self.set_keys(bucket, insert(keys, key(fingerprint)));
        true
    }

    #[inline]
    fn remove(&mut self, [first, second]: [u64; 2], fingerprint: Fingerprint) -> bool {
        let key = key(fingerprint);
        let (keys, other) = (self.keys(first), self.keys(second));
        let in_first = count(keys, key) > 0;
        if !in_first & (count(other, key) == 0) {
            return false;
        }
        let bucket = select_unpredictable(in_first, first, second);
        let keys = select(in_first, keys, other);
        self.set_keys(bucket, remove(keys, key));
        true
    }

    #[inline]
    fn bucket(&self, bucket: u64) -> Bucket {
        Bucket::new(self.keys(bucket).map(|key| key.rotate_left(4)))
    }

    #[inline]
    fn has_room(&self, bucket: u64) -> bool {
        !self.is_full(self.stored(bucket))
    }

    #[inline]
    fn put(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
        let keys = self.keys(bucket);
        let room = keys[0] == 0;
        if room {
            self.set_keys(bucket, insert(keys, key(fingerprint)));
        }
        room
    }

    #[inline]
    fn position(&self, bucket: u64) -> usize {
        index(self.bit(bucket) / 8)
    }

    #[inline]
    fn replace(&mut self, bucket: u64, old: Fingerprint, new: Fingerprint) {
        let keys = self.keys(bucket);
        debug_assert!(keys.contains(&key(old)));
        self.set_keys(bucket, insert(remove(keys, key(old)), key(new)));
    }

    fn check(&self, bucket: u64) -> Result<(), Corrupt> {
        let codeword = bits::get(&self.memory, self.bit(bucket), CODEWORD_BITS);
        if codeword >= CODEWORDS.into() {
            return Err(Corrupt::Codeword(codeword));
        }
        if self.keys(bucket).is_sorted() { Ok(()) } else { Err(Corrupt::Order) }
    }

    #[inline]
    fn memory(&self) -> &Memory {
        &self.memory
    }

    fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }
}
