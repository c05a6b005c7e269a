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
//! An update decodes a bucket into [`Keys`], changes one key and encodes the bucket again. In a growing filter, a fingerprint has
//! further bits, which are in a [`Column`] behind the table.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod bucket;
pub(crate) mod codebook;

use core::{
    hint::select_unpredictable,
    marker::PhantomData,
    ops::{Deref, DerefMut, Range},
};

use super::{Change, DeepGeometry, Fingerprint, Form, Instructions, Pair, Read, Slot, Table, TableMut};
use crate::bits::{self, Fields, index, low_half, mask};
pub(crate) use bucket::{Column, FillPart, Keys, Narrow, Wide};
use codebook::{CODEWORD_BITS, CODEWORDS, CODEWORDS_WITH_ZERO};

/// The length in bits of the shortest high parts that a lookup compares first. Shorter ones usually match by chance somewhere in
/// a bucket.
const MIN_HIGH_BITS: u32 = 4;

/// The number of slots in a packed bucket. The codebook fixes it, because it lists quadruples.
const SLOTS: u32 = 4;

/// The bit layout of a packed table.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct PackedGeometry {
    /// The lowest bit of each high part in a word: four in a narrow bucket, two in a wide one.
    ones: u64,
    /// A mask for the high parts of fingerprints that are unpacked into the quarters of a word. Unused for wide buckets.
    #[cfg(x86_kernels)]
    pub high_quarters: u64,
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

    #[inline(never)]
    pub(super) const fn new(fingerprint_bits: u32) -> Self {
        let high_bits = fingerprint_bits - 4;
        let is_narrow = fingerprint_bits <= Self::LONGEST_NARROW;
        #[expect(clippy::cast_possible_truncation, reason = "124 and 28 at most")]
        let (bucket_bits, narrow_high_bits, first_bits) =
            ((SLOTS * (fingerprint_bits - 1)) as u8, high_bits as u8, (CODEWORD_BITS + high_bits) as u8);
        Self {
            ones: Fields::new(high_bits, if is_narrow { SLOTS } else { SLOTS / 2 }).ones,
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

    /// Reads the words that begin with the first and the second pair of high parts of a wide bucket.
    #[inline(always)]
    fn pairs(&self, bytes: &[u8], bucket: u64) -> [u64; 2] {
        let bit = self.bit(bucket);
        let pair = |number| bits::word(bytes, self.high_bit(bit, number));
        [pair(0), pair(1)]
    }
}

/// A packed table, bound to its bytes and to instructions for one operation. `K` determines the encoding of its buckets. Only if
/// `COLUMN` is true, fingerprints have bits in a column.
pub(crate) struct Packed<'a, K, B, I, const COLUMN: bool> {
    pub geometry: &'a PackedGeometry,
    column: Column,
    bytes: B,
    pub instructions: I,
    keys: PhantomData<K>,
}

impl<K: Keys, B: Deref<Target = [u8]>, I: Instructions, const COLUMN: bool> Packed<'_, K, B, I, COLUMN> {
    /// Reads the word that begins with the bucket. It contains all of a narrow bucket.
    #[inline(always)]
    fn word(&self, bucket: u64) -> u64 {
        bits::word(&self.bytes, self.geometry.bit(bucket))
    }

    /// Reads the words that begin with two narrow buckets.
    #[cfg(x86_kernels)]
    #[inline(always)]
    pub fn words(&self, (first, second): Pair) -> [u64; 2] {
        bits::words(&self.bytes, self.geometry.bit(first), self.geometry.bit(second))
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

    /// Returns the slot of the lowest mark of [`high_marks`](Self::high_marks).
    ///
    /// The mark of a field of w bits is its last bit, so with the mark, this many bits end:
    ///
    /// ```text
    /// slot              0        1          2          3
    /// narrow bucket     w       2·w        3·w        4·w
    /// wide bucket       w       2·w       w + 1     2·w + 1     the marks of the second pair are one bit higher
    /// ```
    ///
    /// So w divides the end, and the remainder, 0 or 1, counts the pairs before.
    #[inline(always)]
    fn slot(&self, marks: u64) -> u32 {
        let end = marks.trailing_zeros() + 1;
        let fields = (end * self.geometry.reciprocal) >> 16;
        let pairs_before = end - fields * self.geometry.high_bits();
        fields - 1 + 2 * pairs_before
    }

    #[inline(always)]
    fn nibble(&self, bucket: u64, slot: u32) -> u32 {
        u32::from(codebook::decode(self.word(bucket))) >> (4 * slot) & 15
    }

    /// Marks the slots of a bucket whose high part is `high`. [`slot`](Self::slot) converts a mark to a slot.
    #[inline(always)]
    fn high_marks(&self, bucket: u64, high: u32) -> u64 {
        let highs = self.geometry.highs();
        if K::FITS_A_WORD {
            highs.equal(self.word(bucket) >> CODEWORD_BITS, high)
        } else {
            let [first, second] = self.geometry.pairs(&self.bytes, bucket);
            highs.equal(first, high) | highs.equal(second, high) << 1
        }
    }

    /// Implements [`Table::contains`] by comparing the high parts first. With f = 13, an absent item matches no high part in 127
    /// of 128 buckets, and nothing is decoded.
    #[inline(always)]
    pub(super) fn contains_by_high_parts(&self, (mut first, second): Pair, fingerprint: Fingerprint) -> bool {
        if self.geometry.high_bits() < MIN_HIGH_BITS {
            let key = K::key(fingerprint.wide());
            return self.load(first).find(key) | self.load(second).find(key) != 0;
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

    /// True for tables with a column and wide buckets: few, so that decoding and encoding their buckets is a call. Inlined, it would be
    /// most of the code for these tables.
    const CALLS: bool = COLUMN && !K::FITS_A_WORD;

    #[inline(always)]
    fn load(&self, bucket: u64) -> K {
        if Self::CALLS { self.load_by_call(bucket) } else { K::load(self.geometry, &self.bytes, self.instructions, bucket) }
    }

    #[inline(never)]
    fn load_by_call(&self, bucket: u64) -> K {
        K::load(self.geometry, &self.bytes, self.instructions, bucket)
    }

    /// Returns the values of a bucket with these keys.
    #[inline(always)]
    fn values_of(&self, bucket: u64, keys: K) -> [u64; 4] {
        let [a, b, c, d] = keys.keys();
        let [a, b, c, d] = [K::value(a), K::value(b), K::value(c), K::value(d)];
        if self.has_column() {
            let (in_table, [e, f, g, h]) = (self.geometry.high_bits() + 4, self.column.fields(&self.bytes, bucket));
            [a | e << in_table, b | f << in_table, c | g << in_table, d | h << in_table]
        } else {
            [a, b, c, d]
        }
    }

    #[inline(never)]
    fn values_by_call(&self, bucket: u64) -> [u64; 4] {
        self.values_of(bucket, K::load(self.geometry, &self.bytes, self.instructions, bucket))
    }

    /// Splits a fingerprint into the key in the table and the field in the column.
    #[inline(always)]
    fn split(&self, fingerprint: Fingerprint) -> (u64, u64) {
        if COLUMN {
            let in_table = self.geometry.high_bits() + 4;
            (K::key(fingerprint.wide() & mask(in_table)), fingerprint.wide() >> in_table)
        } else {
            (K::key(fingerprint.wide()), 0)
        }
    }

    /// Marks the slots that hold `key`. Without a column, the result only tells whether there are any, which takes fewer
    /// instructions.
    #[inline(always)]
    fn find(keys: K, key: u64) -> u64 {
        if COLUMN { keys.marks(key) } else { keys.find(key) }
    }

    /// Returns a slot of the bucket that has this field, among the slots where the key matches: `marks`. Without a column, any of
    /// them does.
    #[inline(always)]
    fn find_field(&self, bucket: u64, mut marks: u64, field: u64) -> Option<u32> {
        while marks != 0 {
            let slot = K::slot(marks);
            if !COLUMN || self.column.field(&self.bytes, bucket, slot) == field {
                return Some(slot);
            }
            marks &= marks - 1;
        }
        None
    }

    /// Returns the bucket's keys above its fields, as numbers.
    #[inline(always)]
    fn whole_keys(&self, bucket: u64, keys: K) -> [u64; 4] {
        let ([a, b, c, d], [e, f, g, h]) = (keys.keys(), self.column.fields(&self.bytes, bucket));
        [a << 32 | e, b << 32 | f, c << 32 | g, d << 32 | h]
    }

    /// Returns true if there is a column with a width above 0.
    #[inline(always)]
    fn has_column(&self) -> bool {
        COLUMN && self.column.width() > 0
    }

    #[inline(always)]
    fn prefetch_column(&self, bucket: u64) {
        self.instructions.prefetch(&self.bytes, index(self.column.bit(bucket) / 8));
    }

    /// Prefetches the column of both buckets that a change is about to read, if the change needs only one of them. Which one
    /// depends on the table, so the change would otherwise wait for memory twice.
    #[inline(always)]
    fn prefetch_columns(&self, (first, second): Pair) {
        if self.has_column() {
            self.prefetch_column(first);
            self.prefetch_column(second);
        }
    }
}

impl<K: Keys, B: DerefMut<Target = [u8]>, I: Instructions, const COLUMN: bool> Packed<'_, K, B, I, COLUMN> {
    #[inline(always)]
    fn store(&mut self, bucket: u64, keys: K) {
        if Self::CALLS {
            self.store_by_call(bucket, keys);
        } else {
            keys.store(self.geometry, &mut self.bytes, self.instructions, bucket);
        }
    }

    #[inline(never)]
    fn store_by_call(&mut self, bucket: u64, keys: K) {
        keys.store(self.geometry, &mut self.bytes, self.instructions, bucket);
    }

    /// Adds a fingerprint to the bucket, which has these keys and an empty slot. Returns the keys with that one, which are to be
    /// stored.
    #[inline(always)]
    fn with(&mut self, bucket: u64, keys: K, fingerprint: Fingerprint) -> K {
        let mut key = K::key(fingerprint.wide());
        if self.has_column() {
            let field;
            (key, field) = self.split(fingerprint);
            let slot = keys.slot_for(key, |slot| self.column.field(&self.bytes, bucket, slot) < field);
            self.column.insert(&mut self.bytes, bucket, slot, field);
        }
        keys.insert(key)
    }

    /// Takes a fingerprint, split into these parts, out of the bucket, which has these keys. `marks` are the slots with its key; without
    /// a column, there must be one. Returns the other keys, which are to be stored, or `None` if no slot has the fingerprint's field.
    #[inline(always)]
    fn take(&mut self, bucket: u64, keys: K, marks: u64, (key, field): (u64, u64)) -> Option<K> {
        if self.has_column() {
            let slot = self.find_field(bucket, marks, field)?;
            self.column.remove(&mut self.bytes, bucket, slot);
        }
        Some(keys.remove(key, marks))
    }
}

impl<K: Keys, B: Deref<Target = [u8]>, I: Instructions, const COLUMN: bool> Table for Packed<'_, K, B, I, COLUMN> {
    type Slot = u64;
    type Values = [u64; 4];

    #[inline(always)]
    fn contains(&self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        if COLUMN {
            let (key, field) = self.split(fingerprint);
            let (marks, others) = (Self::find(self.load(first), key), Self::find(self.load(second), key));
            marks | others != 0
                && (self.find_field(first, marks, field).is_some() || self.find_field(second, others, field).is_some())
        } else if K::FITS_A_WORD {
            I::contains_narrow(self, (first, second), fingerprint)
        } else {
            self.contains_by_high_parts((first, second), fingerprint)
        }
    }

    #[inline(always)]
    fn values(&self, bucket: u64) -> [u64; 4] {
        if Self::CALLS { self.values_by_call(bucket) } else { self.values_of(bucket, self.load(bucket)) }
    }

    #[inline(always)]
    fn has_room(&self, bucket: u64) -> bool {
        self.first_slot(bucket) < CODEWORDS_WITH_ZERO.into()
    }

    #[inline(always)]
    fn prefetch(&self, bucket: u64) {
        self.instructions.prefetch(&self.bytes, index(self.geometry.bit(bucket) / 8));
        if COLUMN {
            self.prefetch_column(bucket);
        }
    }

    /// Collects errors instead of returning at the first one, so the loop has no branch except its end.
    #[inline(always)]
    fn taken(&self, buckets: Range<u64>, low: Option<Fingerprint>) -> Option<u64> {
        let (mut empty, mut disorder, mut highest) = (0, 0, 0);
        let low = low.map(|low| self.split(low).0);
        let slots = (buckets.end - buckets.start) * u64::from(SLOTS);
        for bucket in buckets {
            let keys = self.load(bucket);
            highest = self.codeword(bucket).max(highest);
            disorder |= low.map_or(0, |low| keys.without(low));
            if COLUMN {
                let [a, b, c, d] = self.whole_keys(bucket, keys);
                disorder |= u64::from(a > b) | u64::from(b > c) | u64::from(c > d);
                // Empty slots have no bits in the column.
                let stray = |key: u64| u64::from(key.wrapping_sub(1) < mask(32));
                disorder |= low.map_or(0, |_| stray(a) | stray(b) | stray(c) | stray(d));
            } else {
                disorder |= keys.disorder();
            }
            empty += u64::from(keys.free());
        }
        (highest < CODEWORDS.into() && disorder == 0).then(|| slots - empty)
    }
}

impl<K: Keys, B: DerefMut<Target = [u8]>, I: Instructions, const COLUMN: bool> TableMut for Packed<'_, K, B, I, COLUMN> {
    #[inline(always)]
    fn insert(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        self.prefetch_columns((first, second));
        // Checks for room before decoding. (Two comparisons would be two branches.)
        if self.first_slot(first).min(self.first_slot(second)) >= CODEWORDS_WITH_ZERO.into() {
            return false;
        }
        let (keys, others) = (self.load(first), self.load(second));
        let second_is_emptier = others.free() > keys.free();
        let bucket = select_unpredictable(second_is_emptier, second, first);
        let keys = self.with(bucket, K::select(second_is_emptier, others, keys), fingerprint);
        self.store(bucket, keys);
        true
    }

    #[inline(always)]
    fn remove(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        let parts = self.split(fingerprint);
        self.prefetch_columns((first, second));
        let (keys, others) = (self.load(first), self.load(second));
        let (marks, other_marks) = (Self::find(keys, parts.0), Self::find(others, parts.0));
        if marks | other_marks == 0 {
            return false;
        }
        let mut in_first = marks != 0;
        let mut bucket = select_unpredictable(in_first, first, second);
        let mut keys = K::select(in_first, keys, others);
        let mut marks = select_unpredictable(in_first, marks, other_marks);
        loop {
            if let Some(rest) = self.take(bucket, keys, marks, parts) {
                self.store(bucket, rest);
                return true;
            }
            // The column differs from the fingerprint. The second bucket may still hold it.
            if !in_first {
                return false;
            }
            (in_first, bucket, keys, marks) = (false, second, others, other_marks);
        }
    }

    #[inline(always)]
    fn replace(&mut self, bucket: u64, old: Option<Fingerprint>, new: Option<Fingerprint>) -> bool {
        let mut keys = self.load(bucket);
        if let Some(old) = old {
            let parts = self.split(old);
            let marks = Self::find(keys, parts.0);
            if marks == 0 {
                return false;
            }
            let Some(rest) = self.take(bucket, keys, marks, parts) else { return false };
            keys = rest;
        }
        if let Some(new) = new {
            if keys.free() == 0 {
                return false;
            }
            keys = self.with(bucket, keys, new);
        }
        self.store(bucket, keys);
        true
    }

    /// Decodes and encodes the bucket once for all values.
    #[inline(always)]
    fn add<S: Slot>(&mut self, bucket: u64, values: &mut [S]) {
        let mut keys = self.load(bucket);
        let mut free = keys.free();
        for value in values.iter_mut().rev() {
            if let Some(fingerprint) = Fingerprint::new((*value).into())
                && free > 0
            {
                keys = self.with(bucket, keys, fingerprint);
                free -= 1;
                *value = S::EMPTY;
            }
        }
        self.store(bucket, keys);
    }

    #[inline(always)]
    fn outlined<C: Change>(&mut self, change: C) -> C::Output {
        self.instructions.outlined(self, change)
    }
}

impl<K: Keys> Form for K {
    type Geometry = PackedGeometry;

    #[inline(always)]
    fn read<I: Instructions, R: Read>(geometry: &PackedGeometry, bytes: &[u8], instructions: I, read: R) -> R::Output {
        read.run(&Packed::<K, _, _, false> { geometry, column: Column::NONE, bytes, instructions, keys: PhantomData })
    }

    #[inline(always)]
    fn change<I: Instructions, C: Change>(geometry: &PackedGeometry, bytes: &mut [u8], instructions: I, change: C) -> C::Output {
        change.run(&mut Packed::<K, _, _, false> { geometry, column: Column::NONE, bytes, instructions, keys: PhantomData })
    }
}

/// A packed table with its column.
pub(crate) struct Deep<K>(PhantomData<K>);

impl<K: Keys> Form for Deep<K> {
    type Geometry = DeepGeometry;

    #[inline(always)]
    fn read<I: Instructions, R: Read>(
        DeepGeometry { table, column }: &DeepGeometry,
        bytes: &[u8],
        instructions: I,
        read: R,
    ) -> R::Output {
        read.run(&Packed::<K, _, _, true> { geometry: table, column: *column, bytes, instructions, keys: PhantomData })
    }

    #[inline(always)]
    fn change<I: Instructions, C: Change>(
        DeepGeometry { table, column }: &DeepGeometry,
        bytes: &mut [u8],
        instructions: I,
        change: C,
    ) -> C::Output {
        change.run(&mut Packed::<K, _, _, true> { geometry: table, column: *column, bytes, instructions, keys: PhantomData })
    }
}
