//! The contents of a bucket: its keys, decoded from the table ([`Narrow`] in the quarters of a word, [`Wide`] in an array), and the
//! fields of its slots in a [`Column`].
//!
//! The column has the upper bits of all slots' fingerprints, in the order of the slots, behind a packed table. Lookups that do not
//! need the upper bits read the table alone, as a table of shorter fingerprints. When a table is split, all slots of a bucket are
//! selected at once ([`FillPart`]), which is faster than one fingerprint at a time.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{array, hint::select_unpredictable};

use super::{
    PackedGeometry, SLOTS,
    codebook::{self, CODEWORD_BITS},
};
use crate::{
    bits::{self, Fields, Writer, index, low_half, low_quarter, mask},
    table::{Instructions, Task},
};

const QUARTER: u32 = u16::BITS;
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
pub(crate) struct Narrow(u64);

impl Narrow {
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

    /// Returns the bits of a bucket with these keys.
    #[inline(always)]
    fn encode(self, geometry: &PackedGeometry, i: impl Instructions) -> u64 {
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
        let tops = QUARTERS.tops;
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

/// The most bits that a column has for each slot.
const MAX_COLUMN_BITS: u32 = 32;

/// The location of the column. It may have a width of 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Column {
    first_bit: u64,
    width: u8,
}

impl Column {
    pub const NONE: Self = Self { first_bit: 0, width: 0 };

    /// The most bits of a slot with which a bucket's fields always fit into a word. Four slots begin at a multiple of four bits, so
    /// 60 bits are always within a word.
    const MAX_IN_A_WORD: u32 = bits::window_bits(SLOTS) / SLOTS;

    /// Returns a column of `width` bits for each slot behind a table of this many bytes.
    pub fn new(table_bytes: usize, width: u32) -> Self {
        debug_assert!(width <= MAX_COLUMN_BITS);
        #[expect(clippy::cast_possible_truncation, reason = "32 at most")]
        let width = width as u8;
        Self { first_bit: bits::wide(table_bytes) * 8, width }
    }

    /// Returns the number of bits that the column has for each slot.
    #[inline]
    pub fn width(self) -> u32 {
        self.width.into()
    }

    /// Returns true if the fields of a bucket always fit into a word.
    #[inline(always)]
    pub fn fits_a_word(self) -> bool {
        self.width() <= Self::MAX_IN_A_WORD
    }

    /// Returns the first bit of a bucket's fields.
    #[inline(always)]
    pub fn bit(self, bucket: u64) -> u64 {
        self.first_bit + bucket * u64::from(SLOTS * self.width())
    }

    /// Reads the fields of a bucket that [fit into a word](Self::fits_a_word), each of `width` bits. Those of empty slots are 0.
    #[inline(always)]
    pub fn word(self, bytes: &[u8], bucket: u64) -> u64 {
        bits::word(bytes, self.bit(bucket)) & mask(SLOTS * self.width())
    }

    /// Writes the fields of a bucket that [fit into a word](Self::fits_a_word).
    #[inline(always)]
    pub fn set_word(self, bytes: &mut [u8], bucket: u64, fields: u64) {
        bits::set(bytes, self.bit(bucket), SLOTS * self.width(), fields);
    }

    /// Reads all fields of a bucket.
    #[inline(always)]
    pub fn fields(self, bytes: &[u8], bucket: u64) -> [u64; 4] {
        if self.fits_a_word() {
            let (word, width) = (self.word(bytes, bucket), self.width());
            let field = |slot: u32| word >> (slot * width) & mask(width);
            [field(0), field(1), field(2), field(3)]
        } else {
            self.fields_one_by_one(bytes, bucket)
        }
    }

    #[inline(never)]
    fn fields_one_by_one(self, bytes: &[u8], bucket: u64) -> [u64; 4] {
        array::from_fn(|slot| self.field(bytes, bucket, bits::low_half(bits::wide(slot))))
    }

    /// Reads the field of a slot.
    #[inline(always)]
    pub fn field(self, bytes: &[u8], bucket: u64, slot: u32) -> u64 {
        bits::word(bytes, self.field_bit(bucket, slot)) & mask(self.width())
    }

    #[inline(always)]
    fn field_bit(self, bucket: u64, slot: u32) -> u64 {
        self.bit(bucket) + u64::from(slot * self.width())
    }

    /// Moves the fields of slots up to `slot` down by one, over that of the empty first slot, and puts this field after them.
    #[inline(always)]
    pub fn insert(self, bytes: &mut [u8], bucket: u64, slot: u32, field: u64) {
        if self.fits_a_word() {
            let (word, width) = (self.word(bytes, bucket), self.width());
            let (moved, kept) = (mask(slot * width), !mask((slot + 1) * width));
            self.set_word(bytes, bucket, word >> width & moved | field << (slot * width) | word & kept);
        } else {
            self.insert_one_by_one(bytes, bucket, slot, field);
        }
    }

    #[inline(never)]
    fn insert_one_by_one(self, bytes: &mut [u8], bucket: u64, slot: u32, field: u64) {
        for slot in 0..slot {
            self.set(bytes, bucket, slot, self.field(bytes, bucket, slot + 1));
        }
        self.set(bytes, bucket, slot, field);
    }

    /// Moves the fields of slots before `slot` up by one, over that of `slot`.
    #[inline(always)]
    pub fn remove(self, bytes: &mut [u8], bucket: u64, slot: u32) {
        if self.fits_a_word() {
            let (word, width) = (self.word(bytes, bucket), self.width());
            let (moved, kept) = (mask(slot * width), !mask((slot + 1) * width));
            self.set_word(bytes, bucket, (word & moved) << width | word & kept);
        } else {
            self.remove_one_by_one(bytes, bucket, slot);
        }
    }

    #[inline(never)]
    fn remove_one_by_one(self, bytes: &mut [u8], bucket: u64, slot: u32) {
        for slot in (0..slot).rev() {
            self.set(bytes, bucket, slot + 1, self.field(bytes, bucket, slot));
        }
        self.set(bytes, bucket, 0, 0);
    }

    /// Copies a table and its narrower column to bytes where this column is to be. The further bits of each field become 0, so the order
    /// of the slots is the same.
    #[inline(never)]
    pub fn widen(self, bytes: &mut [u8], narrower: Self, from: &[u8], buckets: u64) {
        let (table, mut fields) = (index(self.first_bit / 8), Writer::new(self.first_bit));
        bytes[..table].copy_from_slice(&from[..table]);
        for slot in 0..buckets * u64::from(SLOTS) {
            let field = bits::word(from, narrower.first_bit + slot * u64::from(narrower.width)) & mask(narrower.width());
            fields.push(bytes, self.width(), field);
        }
        fields.finish(bytes);
    }

    fn set(self, bytes: &mut [u8], bucket: u64, slot: u32, field: u64) {
        bits::set(bytes, self.field_bit(bucket, slot), self.width(), field);
    }
}

/// A split: copies the fingerprints of a table whose bits in the column begin with `prefix` to an empty table of as many buckets,
/// whose column lacks these bits. The tables are [narrow](Narrow), and a bucket's fields [fit into a word](Column::fits_a_word).
pub(crate) struct FillPart<'a> {
    /// The layout of the buckets, which is the same in both tables.
    pub geometry: PackedGeometry,
    /// The table that is split, and its column.
    pub whole: (&'a [u8], Column),
    pub buckets: u64,
    pub part: (&'a mut [u8], Column),
    pub prefix: u32,
}

impl Task for FillPart<'_> {
    type Output = usize;

    /// Returns how many fingerprints were copied. Filtering keeps the order of the slots, so nothing is sorted again.
    ///
    /// A bucket with two of its four slots in this part, where the prefix is 1 and k is a key; lowest slots on the left:
    ///
    /// ```text
    /// keys, a quarter each      k0    k1    k2    k3         0     0     k1    k3
    /// fields in the column     0.a   1.b   0.c   1.d   ──▶   0     0      b     d
    /// marks                      0     1     0     1
    /// ```
    #[inline(always)]
    fn run<I: Instructions>(self, i: I) -> usize {
        let Self { ref geometry, whole: (bytes, whole_column), buckets, part: (part, column), prefix } = self;
        let (width, kept) = (whole_column.width(), column.width());
        let fields = Fields::new(width, SLOTS);
        let (prefixes, prefix) = (fields.splat(low_half(mask(width) & !mask(kept))), fields.splat(prefix << kept));
        let (mut low, mut upper) = (Writer::new(0), Writer::new(column.first_bit));
        let mut items = 0;
        for bucket in 0..buckets {
            let (keys, above) = (Narrow::load(geometry, bytes, i, bucket), whole_column.word(bytes, bucket));
            // Marks each slot to keep with the lowest bit of its field. Empty slots, the first ones, have the field 0.
            let occupied = !mask(keys.free() * width);
            let marks = (fields.zero((above ^ prefix) & prefixes) & occupied) >> (width - 1);
            let count = marks.count_ones();
            // Packs the keys and the fields of the slots to keep.
            let quarters = i.extract(keys.0, i.spread(marks, width) * 0xffff);
            let above = i.extract(above, marks * mask(kept)) << ((SLOTS - count) * kept);
            // Moves the slots behind the empty ones. Shifts twice, because four quarters are 64 bits, which one shift cannot
            // take.
            let half_of_empty = QUARTER / 2 * (SLOTS - count);
            let keys = Narrow(quarters << half_of_empty << half_of_empty);
            low.push(part, geometry.bucket_bits(), keys.encode(geometry, i));
            upper.push(part, SLOTS * kept, above);
            items += index(count.into());
        }
        low.finish(part);
        upper.finish(part);
        items
    }
}
