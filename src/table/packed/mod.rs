//! The semi-sorted table of the paper (section 5.2): four fingerprints, kept in order, cost one bit less each.
//!
//! Bucket i begins at bit i·4·(f−1): 12 bits of codeword for the four low nibbles, then the four high parts of f−4 bits,
//! in the order of the fingerprints. The order is total — by the low nibble, then by the high part — so that a bucket's
//! bits follow from what is in it, however it got there.
//!
//! A bucket is decoded and encoded in one of two forms: `narrow`, where all of it is in one word, or `wide`.

#![allow(clippy::inline_always, reason = "what is inlined is compiled for the kernel's processor, what is called is not")]

pub(crate) mod codebook;
pub(crate) mod narrow;
mod wide;

use core::{hint::select_unpredictable, ops::Range};

use super::{Corrupt, Fingerprint, Pair, Table, TableMut};
use crate::{
    bits,
    bits::Fields,
    bits::{index, low_half},
    params::Params,
    storage::Memory,
    storage::Storage,
};
use codebook::{CODEWORD_BITS, CODEWORDS, CODEWORDS_WITH_ZERO};
use narrow::{Narrow, Shifts};
use wide::Wide;

/// Of shorter high parts, one mostly agrees by chance.
const MIN_HIGH_BITS: u32 = 4;

/// Slots of a packed bucket: the codebook is one of quadruples.
pub(crate) const SLOTS: u32 = 4;

/// The longest fingerprint with which a bucket is no longer than a word: buckets begin at whole nibbles.
const LONGEST_NARROW: u32 = bits::window_bits(SLOTS) / SLOTS + 1;

/// Buckets of four sorted fingerprints. A word holds all high parts of a narrow bucket, or two of a wide one.
#[derive(Clone)]
pub(crate) struct Packed<S = Memory> {
    is_narrow: bool,
    bucket_bits: u32,
    /// Bits of the high part, f − 4.
    high_bits: u32,
    /// The high parts in a word.
    highs: Fields,
    /// Where the high parts are once the fields of a word are spread over lanes of 16 bits, or of 32 if it is wide.
    spread: u64,
    /// 2¹⁶ / `high_bits`, and a little more.
    reciprocal: u32,
    memory: S,
}

/// A way to decode and encode a bucket.
pub(crate) trait Form {
    type Keys: Keys;

    fn load<S: Storage>(table: &Packed<S>, bucket: u64) -> Self::Keys;
    fn store(table: &mut Packed, bucket: u64, keys: Self::Keys);
}

/// The fingerprints of a decoded bucket, as numbers in the order of the slots: the low nibble on top. 0 is an empty slot, and
/// so empty slots come first. Nothing here branches on what is in a bucket: it could not be foretold.
pub(crate) trait Keys: Copy {
    type Key: Copy;

    fn key(fingerprint: Fingerprint) -> Self::Key;
    /// How many slots are empty.
    fn free(self) -> u32;
    fn holds(self, key: Self::Key) -> bool;
    /// Puts `key` into the place of an empty slot; there is one.
    fn insert(self, key: Self::Key) -> Self;
    /// Takes one copy of `key` out; there is one.
    fn remove(self, key: Self::Key) -> Self;
    /// One or the other.
    fn select(condition: bool, keys: Self, others: Self) -> Self;
    /// The values of the slots, 0 for empty ones.
    fn values(self) -> [u32; 4];
    /// 0 if the keys are in order, as those of all buckets are that this table has written.
    fn disorder(self) -> u64;
}

impl<S: Storage> Packed<S> {
    pub(super) fn new(params: &Params, memory: S) -> Self {
        let (f, bucket_bits) = (params.fingerprint_bits(), params.bucket_bits());
        let (is_narrow, high_bits) = (f <= LONGEST_NARROW, f - 4);
        let highs = Fields::new(high_bits, if is_narrow { 4 } else { 2 });
        let lanes = if is_narrow { 0x0001_0001_0001_0001 } else { 0x0000_0001_0000_0001 };
        let spread = (((1 << high_bits) - 1) << 4) * lanes;
        Self { is_narrow, bucket_bits, high_bits, highs, spread, reciprocal: (1 << 16) / high_bits.max(1) + 1, memory }
    }

    pub(super) fn storage(&self) -> &S {
        &self.memory
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

    pub(crate) fn highs(&self) -> Fields {
        self.highs
    }

    /// The word that begins with the bucket: all of it, if it is narrow.
    #[inline]
    pub(crate) fn word(&self, bucket: u64) -> u64 {
        bits::word(&self.memory, self.bit(bucket))
    }

    /// The words that begin with the first two and the last two high parts of a wide bucket.
    #[inline]
    pub(crate) fn pairs(&self, bucket: u64) -> [u64; 2] {
        let bit = self.bit(bucket);
        [bits::word(&self.memory, self.high_bit(bit, 0)), bits::word(&self.memory, self.high_bit(bit, 1))]
    }

    #[inline]
    fn bit(&self, bucket: u64) -> u64 {
        bucket * u64::from(self.bucket_bits)
    }

    /// The bits of one high part.
    #[inline]
    fn high_mask(&self) -> u64 {
        (1 << self.high_bits) - 1
    }

    /// Where a pair of high parts begins in the bucket that begins at `bit`.
    #[inline]
    fn high_bit(&self, bit: u64, pair: u32) -> u64 {
        bit + u64::from(CODEWORD_BITS + pair * 2 * self.high_bits)
    }

    #[inline(always)]
    fn holds_as<F: Form>(&self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        let key = F::Keys::key(fingerprint);
        F::load(self, first).holds(key) | F::load(self, second).holds(key)
    }

    /// [`Table::taken`], in a form that is the table's. There is nothing to branch on but the end.
    #[inline(always)]
    pub(crate) fn taken_as<F: Form>(&self, buckets: Range<u64>) -> Option<u64> {
        let (mut empty, mut disorder, mut highest) = (0, 0, 0);
        let slots = (buckets.end - buckets.start) * u64::from(SLOTS);
        for bucket in buckets {
            let keys = F::load(self, bucket);
            highest = self.codeword(bucket).max(highest);
            disorder |= keys.disorder();
            empty += u64::from(keys.free());
        }
        (highest < CODEWORDS.into() && disorder == 0).then(|| slots - empty)
    }

    #[inline]
    fn codeword(&self, bucket: u64) -> u32 {
        low_half(self.word(bucket)) & ((1 << CODEWORD_BITS) - 1)
    }

    /// Marks the slots whose high part is `high`; [`slot`](Self::slot) tells which they are.
    #[inline]
    fn high_marks(&self, bucket: u64, high: u32) -> u64 {
        if self.is_narrow {
            return self.highs.equal(self.word(bucket) >> CODEWORD_BITS, high);
        }
        let [first, second] = self.pairs(bucket);
        self.highs.equal(first, high) | self.highs.equal(second, high) << 1
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
        u32::from(codebook::decode(self.word(bucket))) >> (4 * slot) & 15
    }
}

impl Packed {
    /// [`TableMut::insert`], in a form that is the table's.
    #[inline(always)]
    pub(crate) fn insert_as<F: Form>(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        let (keys, others) = (F::load(self, first), F::load(self, second));
        let (free, others_free) = (keys.free(), others.free());
        if free + others_free == 0 {
            return false;
        }
        let second_is_emptier = others_free > free;
        let bucket = select_unpredictable(second_is_emptier, second, first);
        let keys = F::Keys::select(second_is_emptier, others, keys);
        F::store(self, bucket, keys.insert(F::Keys::key(fingerprint)));
        true
    }

    /// [`TableMut::remove`], in a form that is the table's.
    #[inline(always)]
    pub(crate) fn remove_as<F: Form>(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        let key = F::Keys::key(fingerprint);
        let (keys, others) = (F::load(self, first), F::load(self, second));
        let in_first = keys.holds(key);
        if !in_first & !others.holds(key) {
            return false;
        }
        let bucket = select_unpredictable(in_first, first, second);
        F::store(self, bucket, F::Keys::select(in_first, keys, others).remove(key));
        true
    }

    #[inline(always)]
    pub(crate) fn put_as<F: Form>(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
        let keys = F::load(self, bucket);
        let room = keys.free() > 0;
        if room {
            F::store(self, bucket, keys.insert(F::Keys::key(fingerprint)));
        }
        room
    }

    #[inline(always)]
    fn replace_as<F: Form>(&mut self, bucket: u64, old: Fingerprint, new: Fingerprint) {
        let keys = F::load(self, bucket);
        debug_assert!(keys.holds(F::Keys::key(old)));
        F::store(self, bucket, keys.remove(F::Keys::key(old)).insert(F::Keys::key(new)));
    }
}

/// Calls the method in whichever form is the table's.
macro_rules! in_form {
    ($table:ident.$method:ident($($argument:expr),*)) => {
        if $table.is_narrow { $table.$method::<Narrow<Shifts>>($($argument),*) } else { $table.$method::<Wide>($($argument),*) }
    };
}

impl<S: Storage> Table for Packed<S> {
    type Values = [u32; 4];

    /// Compares the high parts, all at once. Mostly none agrees, and there is nothing to decode.
    #[inline]
    fn contains(&self, (mut first, second): Pair, fingerprint: Fingerprint) -> bool {
        if self.high_bits < MIN_HIGH_BITS {
            return self.holds_as::<Narrow<Shifts>>((first, second), fingerprint);
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
    fn values(&self, bucket: u64) -> [u32; 4] {
        if self.is_narrow { Narrow::<Shifts>::load(self, bucket).values() } else { Wide::load(self, bucket).values() }
    }

    #[inline]
    fn has_room(&self, bucket: u64) -> bool {
        // Empty slots come first, and all their bits are zero.
        let bit = self.bit(bucket);
        let codeword = bits::word(&self.memory, bit);
        let first = if self.is_narrow { codeword >> CODEWORD_BITS } else { bits::word(&self.memory, self.high_bit(bit, 0)) };
        (low_half(codeword) & ((1 << CODEWORD_BITS) - 1) < u32::from(CODEWORDS_WITH_ZERO)) & (first & self.high_mask() == 0)
    }

    #[inline]
    fn position(&self, bucket: u64) -> usize {
        index(self.bit(bucket) / 8)
    }

    fn taken(&self, buckets: Range<u64>) -> Option<u64> {
        in_form!(self.taken_as(buckets))
    }

    fn corrupt(&self, bucket: u64) -> Option<Corrupt> {
        let codeword = self.codeword(bucket);
        if codeword >= CODEWORDS.into() {
            return Some(Corrupt::Codeword(codeword));
        }
        self.taken(bucket..bucket + 1).is_none().then_some(Corrupt::Order)
    }

    #[inline]
    fn memory(&self) -> &[u8] {
        &self.memory
    }
}

impl TableMut for Packed {
    #[inline]
    fn insert(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        in_form!(self.insert_as(buckets, fingerprint))
    }

    #[inline]
    fn remove(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        in_form!(self.remove_as(buckets, fingerprint))
    }

    #[inline]
    fn put(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
        in_form!(self.put_as(bucket, fingerprint))
    }

    #[inline]
    fn replace(&mut self, bucket: u64, old: Fingerprint, new: Fingerprint) {
        in_form!(self.replace_as(bucket, old, new));
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}
