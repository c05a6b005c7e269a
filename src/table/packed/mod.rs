//! The packed table with the paper's semi-sorted buckets (section 5.2): storing the four fingerprints of a bucket in sorted order
//! saves one bit per fingerprint.
//!
//! Bucket i begins at bit i·4·(f − 1). With f = 13 it has 48 bits, here with the least significant bit on the left:
//!
//! ```text
//!  0           12        21        30        39        48
//!  ├───────────┼─────────┼─────────┼─────────┼─────────┤
//!  │ codeword  │ high 0  │ high 1  │ high 2  │ high 3  │
//!  └───────────┴─────────┴─────────┴─────────┴─────────┘
//!    12 bits     f − 4 bits each
//!
//!  fingerprint of slot j  =  high j · 16 + nibble j
//!  codeword               =  rank of nibble 0 ≤ nibble 1 ≤ nibble 2 ≤ nibble 3 among the 3876 sorted quadruples
//! ```
//!
//! Slots are sorted by nibble, then by high part. An empty slot is the fingerprint 0, so empty slots come first. The order is
//! total, so the bits of a bucket depend only on its contents, not on the order of updates.
//!
//! An update decodes a bucket into [`Keys`], changes one key and encodes the bucket again.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

pub(crate) mod codebook;
mod deep;

use core::{
    hint::select_unpredictable,
    ops::{Deref, DerefMut, Range},
};

use super::{Change, Corrupt, Fingerprint, Form, Instructions, Pair, Portable, Read, Slot, Table, TableMut};
use crate::bits::{self, Fields, index, low_half, low_quarter};
use codebook::{CODEWORD_BITS, CODEWORDS, CODEWORDS_WITH_ZERO};
pub(crate) use deep::{Deep, FillPart, WideDeep};

/// The length in bits of the shortest high parts that a lookup compares first. Shorter ones usually match by chance somewhere in
/// a bucket.
const MIN_HIGH_BITS: u32 = 4;

/// The number of slots in a packed bucket. The codebook fixes it, because it lists quadruples.
const SLOTS: u32 = 4;

const QUARTER: u32 = u16::BITS;
const QUARTERS: Fields = Fields::new(QUARTER, SLOTS);

/// The bit layout of a packed table.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct PackedGeometry {
    /// The lowest bit of each high part in a word: four in a narrow bucket, two in a wide one.
    ones: u64,
    /// A mask for the high parts of fingerprints that are unpacked into the quarters of a word. Unused for wide buckets.
    #[cfg(x86_kernels)]
    high_quarters: u64,
    /// ⌊2¹⁶ / `high_bits`⌋ + 1: multiplying by it replaces a division.
    reciprocal: u32,
    bucket_bits: u8,
    high_bits: u8,
    /// The length of the codeword and the first high part in bits.
    first_bits: u8,
}

impl PackedGeometry {
    /// The longest fingerprint with which a bucket always fits into a word. Buckets begin at multiples of four bits.
    const LONGEST_NARROW: u32 = bits::window_bits(SLOTS) / SLOTS + 1;

    pub(super) const fn new(fingerprint_bits: u32) -> Self {
        let high_bits = fingerprint_bits - 4;
        let is_narrow = fingerprint_bits <= Self::LONGEST_NARROW;
        #[expect(clippy::cast_possible_truncation, reason = "124 and 28 at most")]
        let (bucket_bits, narrow_high_bits, first_bits) =
            ((SLOTS * (fingerprint_bits - 1)) as u8, high_bits as u8, (CODEWORD_BITS + high_bits) as u8);
        Self {
            ones: Fields::new(high_bits, if is_narrow { SLOTS } else { SLOTS / 2 }).ones(),
            #[cfg(x86_kernels)]
            high_quarters: if is_narrow { (((1 << high_bits) - 1) << 4) * 0x0001_0001_0001_0001 } else { 0 },
            reciprocal: (1 << 16) / if high_bits == 0 { 1 } else { high_bits } + 1,
            bucket_bits,
            high_bits: narrow_high_bits,
            first_bits,
        }
    }

    pub const fn is_narrow(&self) -> bool {
        self.high_bits as u32 + 4 <= Self::LONGEST_NARROW
    }

    #[inline]
    pub fn bucket_bits(&self) -> u32 {
        self.bucket_bits.into()
    }

    /// Returns the length of a high part in bits, f − 4.
    #[inline]
    pub fn high_bits(&self) -> u32 {
        self.high_bits.into()
    }

    /// Returns a mask for the high parts in the quarters of a word.
    #[cfg(x86_kernels)]
    #[inline]
    pub fn high_quarters(&self) -> u64 {
        self.high_quarters
    }

    /// Returns the layout of the high parts in one word.
    #[inline]
    pub fn highs(&self) -> Fields {
        Fields::from_ones(self.ones, self.high_bits())
    }

    /// Returns a mask for one high part.
    #[inline]
    fn high_mask(&self) -> u64 {
        (1 << self.high_bits) - 1
    }

    /// Returns the first bit of a bucket.
    #[inline]
    pub fn bit(&self, bucket: u64) -> u64 {
        bucket * u64::from(self.bucket_bits)
    }

    /// Returns the first bit of a pair of high parts, in the bucket that begins at `bit`.
    #[inline]
    fn high_bit(&self, bit: u64, pair: u32) -> u64 {
        bit + u64::from(CODEWORD_BITS + pair * 2 * self.high_bits())
    }
}

/// A packed table, bound to its bytes and to instructions for one operation. `E` is the encoding of its buckets.
pub(crate) struct Packed<'a, E: Encoding, B, I> {
    geometry: &'a PackedGeometry,
    /// The location of the upper bits of fingerprints, if the encoding has a column.
    column: E::Column,
    bytes: B,
    instructions: I,
}

/// The encoding of a bucket: [`Narrow`] and [`Wide`], or with a column, [`Deep`] and [`WideDeep`].
pub(crate) trait Encoding: Sized {
    /// The parts of a bucket's keys that are in the table, without the column. They tell how full the bucket is, and nearly
    /// always whether it holds a fingerprint.
    type Low: Keys;
    type Keys: Keys;
    type Slot: Slot;
    type Geometry;
    type Column: Copy;
    /// True if [`Packed::contains_by_high_parts`] finds a whole bucket in one word.
    const FITS_A_WORD: bool = false;
    /// True if keys have bits that [`Low`](Self::Low) lacks.
    const HAS_COLUMN: bool = false;
    /// The instructions for eviction walks: portable ones, which are as fast, unless the encoding spreads and gathers fields.
    type Walked<I: Instructions>: Instructions;

    fn walked<I: Instructions>(instructions: I) -> Self::Walked<I>;
    /// Returns the layout of the buckets and the column.
    fn parts(geometry: &Self::Geometry) -> (&PackedGeometry, Self::Column);
    fn low<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) -> Self::Low;
    /// Reads the whole keys of a bucket, given their parts in the table.
    fn complete<B: Deref<Target = [u8]>, I: Instructions>(
        table: &Packed<'_, Self, B, I>,
        bucket: u64,
        low: Self::Low,
    ) -> Self::Keys;
    #[inline(always)]
    fn load<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) -> Self::Keys {
        Self::complete(table, bucket, Self::low(table, bucket))
    }
    fn store<B: DerefMut<Target = [u8]>, I: Instructions>(table: &mut Packed<'_, Self, B, I>, bucket: u64, keys: Self::Keys);
    /// Converts a fingerprint to a key: a number that sorts like the slots.
    fn key<B, I>(table: &Packed<'_, Self, B, I>, fingerprint: Fingerprint) -> <Self::Keys as Keys>::Key;
    /// Returns the part of a key that is in the table.
    fn low_key(key: <Self::Keys as Keys>::Key) -> <Self::Low as Keys>::Key;
    /// Converts keys to the fingerprints in the slots. Empty slots are 0.
    fn values<B, I>(table: &Packed<'_, Self, B, I>, keys: Self::Keys) -> [Self::Slot; 4];
    /// Implements [`Table::contains`].
    fn contains<B: Deref<Target = [u8]>, I: Instructions>(
        table: &Packed<'_, Self, B, I>,
        buckets: Pair,
        fingerprint: Fingerprint,
    ) -> bool;
    /// Prefetches the part of a bucket that is in the column.
    #[inline(always)]
    fn prefetch<B: Deref<Target = [u8]>, I: Instructions>(_: &Packed<'_, Self, B, I>, _bucket: u64) {}
    /// Prefetches the column of both buckets that a change is about to read, if the change needs only one of them. Which one
    /// depends on the table, so the change would otherwise wait for memory twice.
    #[inline(always)]
    fn prefetch_columns<B: Deref<Target = [u8]>, I: Instructions>(_: &Packed<'_, Self, B, I>, _buckets: Pair) {}
}

/// The fingerprints of a decoded bucket, as numbers that sort like the slots: the nibble is in the highest bits. An empty slot is
/// 0, so empty slots come first. No method branches on the contents of a bucket, because such branches are unpredictable.
pub(crate) trait Keys: Copy {
    type Key: Copy;

    /// Counts the empty slots.
    fn free(self) -> u32;
    /// Marks the slots that hold `key`. Returns 0 if there are none.
    fn find(self, key: Self::Key) -> u64;
    /// Marks the slots that hold `key`, among those where [`Encoding::Low`] matches: `marks`.
    fn exact(self, key: Self::Key, marks: u64) -> u64;
    /// Stores `key` in an empty slot. There must be one.
    fn insert(self, key: Self::Key) -> Self;
    /// Removes one of the copies of `key` that [`find`](Self::find) has marked.
    fn remove(self, key: Self::Key, marks: u64) -> Self;
    /// Returns `keys` if `condition` holds, otherwise `others`.
    fn select(condition: bool, keys: Self, others: Self) -> Self;
    /// Returns 0 if the keys are sorted, as in every valid bucket.
    fn disorder(self) -> u64;
    /// Returns 0 if every key of an occupied slot has at least one of the bits of `mask`.
    fn without(self, mask: Self::Key) -> u64;
}

impl<E: Encoding, B: Deref<Target = [u8]>, I> Packed<'_, E, B, I> {
    #[cfg(x86_kernels)]
    #[inline(always)]
    pub fn geometry(&self) -> &PackedGeometry {
        self.geometry
    }

    #[cfg(x86_kernels)]
    #[inline(always)]
    pub fn instructions(&self) -> I
    where
        I: Copy,
    {
        self.instructions
    }

    /// Reads the word that begins with the bucket. It contains all of a narrow bucket.
    #[inline(always)]
    pub fn word(&self, bucket: u64) -> u64 {
        bits::word(&self.bytes, self.geometry.bit(bucket))
    }

    /// Reads the words that begin with two narrow buckets.
    #[cfg(x86_kernels)]
    #[inline(always)]
    pub fn words(&self, (first, second): Pair) -> [u64; 2] {
        bits::words(&self.bytes, self.geometry.bit(first), self.geometry.bit(second))
    }

    /// Reads the words that begin with the first and the second pair of high parts of a wide bucket.
    #[inline(always)]
    pub fn pairs(&self, bucket: u64) -> [u64; 2] {
        let bit = self.geometry.bit(bucket);
        let pair = |number| bits::word(&self.bytes, self.geometry.high_bit(bit, number));
        [pair(0), pair(1)]
    }

    #[inline(always)]
    fn codeword(&self, bucket: u64) -> u32 {
        low_half(self.word(bucket)) & ((1 << CODEWORD_BITS) - 1)
    }

    /// Reads the codeword and the first high part. They are below [`CODEWORDS_WITH_ZERO`] if and only if the bucket has an empty
    /// slot: empty slots come first, and all their bits are zero, in the codeword's lowest nibble and in the high part next to
    /// the codeword.
    #[inline(always)]
    fn first_slot(&self, bucket: u64) -> u64 {
        self.word(bucket) & bits::mask(self.geometry.first_bits.into())
    }

    /// Returns the slot of the lowest mark.
    #[inline(always)]
    fn slot(&self, marks: u64) -> u32 {
        // The mark of the j-th field of w bits is bit (j + 1)·w − 1. Marks of the second pair of a wide bucket are one bit
        // higher.
        let end = marks.trailing_zeros() + 1;
        let fields = (end * self.geometry.reciprocal) >> 16;
        fields - 1 + 2 * (end - fields * self.geometry.high_bits())
    }

    #[inline(always)]
    fn nibble(&self, bucket: u64, slot: u32) -> u32 {
        u32::from(codebook::decode(self.word(bucket))) >> (4 * slot) & 15
    }
}

impl<E: Encoding, B: Deref<Target = [u8]>, I: Instructions> Packed<'_, E, B, I> {
    /// Marks the slots of a bucket whose high part is `high`. [`slot`](Self::slot) converts a mark to a slot.
    #[inline(always)]
    fn high_marks(&self, bucket: u64, high: u32) -> u64 {
        let highs = self.geometry.highs();
        if E::FITS_A_WORD {
            highs.equal(self.word(bucket) >> CODEWORD_BITS, high)
        } else {
            let [first, second] = self.pairs(bucket);
            highs.equal(first, high) | highs.equal(second, high) << 1
        }
    }

    /// Implements [`Table::contains`] by comparing the high parts first. With f = 13, an absent item matches no high part in 127
    /// of 128 buckets, and nothing is decoded.
    #[inline(always)]
    pub(super) fn contains_by_high_parts(&self, (mut first, second): Pair, fingerprint: Fingerprint) -> bool {
        if self.geometry.high_bits() < MIN_HIGH_BITS {
            let key = E::key(self, fingerprint);
            return E::load(self, first).find(key) | E::load(self, second).find(key) != 0;
        }
        let high = fingerprint.get() >> 4;
        let (mut marks, mut others) = (self.high_marks(first, high), self.high_marks(second, high));
        while marks | others != 0 {
            // Usually there is a single mark, in an unpredictable one of the two buckets. So the bucket is selected without a
            // branch.
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
}

impl<E: Encoding, B: Deref<Target = [u8]>, I: Instructions> Table for Packed<'_, E, B, I> {
    type Slot = E::Slot;
    type Values = [E::Slot; 4];

    #[inline(always)]
    fn contains(&self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        E::contains(self, buckets, fingerprint)
    }

    #[inline(always)]
    fn values(&self, bucket: u64) -> [E::Slot; 4] {
        E::values(self, E::load(self, bucket))
    }

    #[inline(always)]
    fn has_room(&self, bucket: u64) -> bool {
        self.first_slot(bucket) < CODEWORDS_WITH_ZERO.into()
    }

    #[inline(always)]
    fn prefetch(&self, bucket: u64) {
        self.instructions.prefetch(&self.bytes, index(self.geometry.bit(bucket) / 8));
        E::prefetch(self, bucket);
    }

    /// Collects errors instead of returning at the first one, so the loop has no branch except its end.
    #[inline(always)]
    fn taken(&self, buckets: Range<u64>, low: Option<Fingerprint>) -> Option<u64> {
        let (mut empty, mut disorder, mut highest) = (0, 0, 0);
        let low = low.map(|low| E::key(self, low));
        let slots = (buckets.end - buckets.start) * u64::from(SLOTS);
        for bucket in buckets {
            let keys = E::load(self, bucket);
            highest = self.codeword(bucket).max(highest);
            disorder |= keys.disorder() | low.map_or(0, |low| keys.without(low));
            empty += u64::from(keys.free());
        }
        (highest < CODEWORDS.into() && disorder == 0).then(|| slots - empty)
    }

    #[inline(always)]
    fn corrupt(&self, bucket: u64, low: Option<Fingerprint>) -> Option<Corrupt> {
        let codeword = self.codeword(bucket);
        if codeword >= CODEWORDS.into() {
            return Some(Corrupt::Codeword(codeword));
        }
        let is_valid = |low| self.taken(bucket..bucket + 1, low).is_some();
        if is_valid(None) { (!is_valid(low)).then_some(Corrupt::Low) } else { Some(Corrupt::Order) }
    }

    #[inline(always)]
    fn len_in_bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl<E: Encoding, B: DerefMut<Target = [u8]>, I: Instructions> TableMut for Packed<'_, E, B, I> {
    type Walked<'a>
        = Packed<'a, E, &'a mut [u8], E::Walked<I>>
    where
        Self: 'a;

    #[inline(always)]
    fn insert(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        E::prefetch_columns(self, (first, second));
        // Checks for room before decoding. (Two comparisons would be two branches.)
        if self.first_slot(first).min(self.first_slot(second)) >= CODEWORDS_WITH_ZERO.into() {
            return false;
        }
        let (low, other_low) = (E::low(self, first), E::low(self, second));
        let second_is_emptier = other_low.free() > low.free();
        let bucket = select_unpredictable(second_is_emptier, second, first);
        let keys = E::complete(self, bucket, E::Low::select(second_is_emptier, other_low, low));
        E::store(self, bucket, keys.insert(E::key(self, fingerprint)));
        true
    }

    #[inline(always)]
    fn remove(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        let key = E::key(self, fingerprint);
        E::prefetch_columns(self, (first, second));
        let (low, other_low) = (E::low(self, first), E::low(self, second));
        let (marks, other_marks) = (low.find(E::low_key(key)), other_low.find(E::low_key(key)));
        if marks | other_marks == 0 {
            return false;
        }
        let in_first = marks != 0;
        let bucket = select_unpredictable(in_first, first, second);
        let low = E::Low::select(in_first, low, other_low);
        let keys = E::complete(self, bucket, low);
        let exact = keys.exact(key, select_unpredictable(in_first, marks, other_marks));
        if !E::HAS_COLUMN || exact != 0 {
            E::store(self, bucket, keys.remove(key, exact));
            return true;
        }
        // The column differs from the key. The second bucket may still hold the fingerprint.
        let keys = E::complete(self, second, other_low);
        let exact = keys.exact(key, other_marks);
        let is_found = in_first && exact != 0;
        if is_found {
            E::store(self, second, keys.remove(key, exact));
        }
        is_found
    }

    #[inline(always)]
    fn replace(&mut self, bucket: u64, old: Option<Fingerprint>, new: Fingerprint) -> bool {
        let mut keys = E::load(self, bucket);
        if let Some(old) = old {
            let old = E::key(self, old);
            let marks = keys.find(old);
            if marks == 0 {
                return false;
            }
            keys = keys.remove(old, marks);
        }
        let has_room = keys.free() > 0;
        if has_room {
            E::store(self, bucket, keys.insert(E::key(self, new)));
        }
        has_room
    }

    /// Decodes and encodes the bucket once for all values.
    #[inline(always)]
    fn add<S: Slot>(&mut self, bucket: u64, values: &mut [S]) {
        let mut keys = E::load(self, bucket);
        let mut free = keys.free();
        for value in values.iter_mut().rev() {
            if let Some(fingerprint) = Fingerprint::new((*value).into())
                && free > 0
            {
                keys = keys.insert(E::key(self, fingerprint));
                free -= 1;
                *value = S::EMPTY;
            }
        }
        E::store(self, bucket, keys);
    }

    fn walked(&mut self) -> Self::Walked<'_> {
        Packed {
            geometry: self.geometry,
            column: self.column,
            bytes: &mut self.bytes,
            instructions: E::walked(self.instructions),
        }
    }

    #[inline(always)]
    fn outlined<C: Change>(&mut self, change: C) -> C::Output {
        self.instructions.outlined(self, change)
    }
}

impl<E: Encoding> Form for E {
    type Geometry = E::Geometry;

    #[inline(always)]
    fn read<I: Instructions, R: Read>(geometry: &E::Geometry, bytes: &[u8], instructions: I, read: R) -> R::Output {
        let (geometry, column) = E::parts(geometry);
        read.run(&Packed::<E, _, _> { geometry, column, bytes, instructions })
    }

    #[inline(always)]
    fn change<I: Instructions, C: Change>(geometry: &E::Geometry, bytes: &mut [u8], instructions: I, change: C) -> C::Output {
        let (geometry, column) = E::parts(geometry);
        change.run(&mut Packed::<E, _, _> { geometry, column, bytes, instructions })
    }
}

// The encodings of buckets without a column. Narrow buckets fit into a word, wide ones do not.

/// The encoding of fingerprints of up to 16 bits: one in each quarter of a word.
pub(crate) struct Narrow;

impl Encoding for Narrow {
    type Low = Quad;
    type Keys = Quad;
    type Slot = u32;
    type Geometry = PackedGeometry;
    type Column = ();
    const FITS_A_WORD: bool = true;
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
    fn low<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) -> Quad {
        table.quarters(bucket)
    }

    #[inline(always)]
    fn complete<B: Deref<Target = [u8]>, I: Instructions>(_: &Packed<'_, Self, B, I>, _: u64, low: Quad) -> Quad {
        low
    }

    #[inline(always)]
    fn store<B: DerefMut<Target = [u8]>, I: Instructions>(table: &mut Packed<'_, Self, B, I>, bucket: u64, keys: Quad) {
        set_quarters(table.geometry, &mut table.bytes, table.instructions, bucket, keys);
    }

    #[inline(always)]
    fn key<B, I>(_: &Packed<'_, Self, B, I>, fingerprint: Fingerprint) -> u64 {
        Quad::key(fingerprint.wide())
    }

    #[inline(always)]
    fn low_key(key: u64) -> u64 {
        key
    }

    #[inline(always)]
    fn values<B, I>(_: &Packed<'_, Self, B, I>, keys: Quad) -> [u32; 4] {
        [keys.value(0), keys.value(1), keys.value(2), keys.value(3)]
    }

    #[inline(always)]
    fn contains<B: Deref<Target = [u8]>, I: Instructions>(
        table: &Packed<'_, Self, B, I>,
        buckets: Pair,
        fingerprint: Fingerprint,
    ) -> bool {
        I::contains_narrow(table, buckets, fingerprint)
    }
}

impl<E: Encoding, B: Deref<Target = [u8]>, I: Instructions> Packed<'_, E, B, I> {
    /// Reads a bucket's fingerprints, or the parts of them that are in the table. They have up to 16 bits.
    #[inline(always)]
    fn quarters(&self, bucket: u64) -> Quad {
        let (word, i) = (self.word(bucket), self.instructions);
        Quad(i.spread(word >> CODEWORD_BITS, self.geometry.high_bits()) | i.spread_nibbles(codebook::decode(word)))
    }
}

#[inline(always)]
fn set_quarters(geometry: &PackedGeometry, bytes: &mut [u8], i: impl Instructions, bucket: u64, quarters: Quad) {
    bits::set(bytes, geometry.bit(bucket), geometry.bucket_bits(), packed(geometry, i, quarters));
}

/// Encodes a narrow bucket with these fingerprints.
#[inline(always)]
fn packed(geometry: &PackedGeometry, i: impl Instructions, Quad(quarters): Quad) -> u64 {
    let codeword = u64::from(codebook::encode(i.gather_nibbles(quarters)));
    i.gather(quarters, geometry.high_bits()) << CODEWORD_BITS | codeword
}

/// Four keys in the quarters of a word, sorted from the lowest quarter up. A key has the nibble in its highest four bits and the
/// high part in the bits below.
#[derive(Clone, Copy)]
pub(crate) struct Quad(u64);

impl Quad {
    #[inline(always)]
    fn key(fingerprint: u64) -> u64 {
        fingerprint >> 4 | (fingerprint & 15) << 12
    }

    /// Returns a mask for the lowest `quarters` quarters.
    #[inline(always)]
    fn first(quarters: u32) -> u64 {
        // Shifts twice, because four quarters are 64 bits, which one shift cannot take.
        (1u64 << (QUARTER / 2 * quarters) << (QUARTER / 2 * quarters)).wrapping_sub(1)
    }

    #[inline(always)]
    fn quarter(self, n: u32) -> u64 {
        self.0 >> (n * QUARTER) & 0xffff
    }

    #[inline(always)]
    fn value(self, n: u32) -> u32 {
        u32::from(low_quarter(self.0 >> (n * QUARTER)).rotate_left(4))
    }

    /// Counts the smaller keys above the lowest quarter, which must be empty.
    #[inline(always)]
    fn less(self, key: u64) -> u32 {
        let quarter = |n| u32::from(self.quarter(n) < key);
        quarter(1) + quarter(2) + quarter(3)
    }

    /// Moves the quarters with smaller keys down by one, over the empty quarter, and puts the key after them.
    #[inline(always)]
    fn insert_after(self, less: u32, key: u64) -> Self {
        let (moved, kept) = (Self::first(less), !Self::first(less + 1));
        Self(self.0 >> QUARTER & moved | key << (less * QUARTER) | self.0 & kept)
    }
}

impl Keys for Quad {
    type Key = u64;

    #[inline(always)]
    fn free(self) -> u32 {
        self.0.trailing_zeros() / QUARTER
    }

    #[inline(always)]
    fn find(self, key: u64) -> u64 {
        QUARTERS.equal(self.0, low_half(key))
    }

    #[inline(always)]
    fn exact(self, _: u64, marks: u64) -> u64 {
        marks
    }

    #[inline(always)]
    fn insert(self, key: u64) -> Self {
        self.insert_after(self.less(key), key)
    }

    #[inline(always)]
    fn remove(self, _: u64, marks: u64) -> Self {
        // Moves the quarters before the first copy up by one. The copy's mark is the highest bit of its quarter.
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

/// The encoding of fingerprints of more than 16 bits: an array of numbers.
pub(crate) struct Wide;

impl Encoding for Wide {
    type Low = [u32; 4];
    type Keys = [u32; 4];
    type Slot = u32;
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
    fn low<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) -> [u32; 4] {
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
    fn complete<B: Deref<Target = [u8]>, I: Instructions>(_: &Packed<'_, Self, B, I>, _: u64, low: [u32; 4]) -> [u32; 4] {
        low
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
    fn key<B, I>(_: &Packed<'_, Self, B, I>, fingerprint: Fingerprint) -> u32 {
        fingerprint.get().rotate_right(4)
    }

    #[inline(always)]
    fn low_key(key: u32) -> u32 {
        key
    }

    #[inline(always)]
    fn values<B, I>(_: &Packed<'_, Self, B, I>, [a, b, c, d]: [u32; 4]) -> [u32; 4] {
        [a.rotate_left(4), b.rotate_left(4), c.rotate_left(4), d.rotate_left(4)]
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

/// Avoids `map`, which is a call without link-time optimization.
impl<S: Slot> Keys for [S; 4] {
    type Key = S;

    #[inline(always)]
    fn free(self) -> u32 {
        let [a, b, c, d] = self;
        let empty = |key: S| u32::from(key == S::EMPTY);
        empty(a) + empty(b) + empty(c) + empty(d)
    }

    #[inline(always)]
    fn find(self, key: S) -> u64 {
        let [a, b, c, d] = self;
        u64::from(a == key) | u64::from(b == key) | u64::from(c == key) | u64::from(d == key)
    }

    #[inline(always)]
    fn exact(self, _: S, marks: u64) -> u64 {
        marks
    }

    /// Does one step of an insertion sort, over the empty first slot.
    #[inline(always)]
    fn insert(self, key: S) -> Self {
        let [_, a, b, c] = self;
        [key.min(a), key.min(b).max(a), key.min(c).max(b), key.max(c)]
    }

    #[inline(always)]
    fn remove(self, key: S, _: u64) -> Self {
        // Moves the keys before the last copy up by one.
        let [a, b, c, d] = self;
        let keep = |own: S, before: S| select_unpredictable(own <= key, before, own);
        [keep(a, S::EMPTY), keep(b, a), keep(c, b), keep(d, c)]
    }

    #[inline(always)]
    fn select(condition: bool, [a, b, c, d]: Self, [e, f, g, h]: Self) -> Self {
        let choose = |one: S, other: S| select_unpredictable(condition, one, other);
        [choose(a, e), choose(b, f), choose(c, g), choose(d, h)]
    }

    #[inline(always)]
    fn disorder(self) -> u64 {
        let [a, b, c, d] = self;
        u64::from(a > b) | u64::from(b > c) | u64::from(c > d)
    }

    #[inline(always)]
    fn without(self, mask: S) -> u64 {
        let [a, b, c, d] = self;
        let lacks = |key: S| u64::from(key != S::EMPTY && key.into() & mask.into() == 0);
        lacks(a) | lacks(b) | lacks(c) | lacks(d)
    }
}
