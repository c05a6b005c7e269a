//! Packed buckets with a column: [`Deep`] and [`WideDeep`]. A bucket has the lower bits of its fingerprints; the upper bits are
//! in a column behind the table. Lookups do not need the upper bits, so they read the table alone, as a table of shorter
//! fingerprints.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{
    array,
    hint::select_unpredictable,
    ops::{Deref, DerefMut},
};

use super::{Encoding, Instructions, Keys, Packed, PackedGeometry, Pair, QUARTER, Quad, SLOTS, codebook, packed, set_quarters};
use crate::{
    bits::{self, Fields, Writer, index, low_half, low_quarter, mask, wide},
    table::{Column, Fingerprint, Portable},
};
use codebook::CODEWORD_BITS;

/// The encoding of narrow buckets whose part of the column fits into a word.
pub(crate) struct Deep;

impl Deep {
    /// The most bits of a slot in the column. Four slots begin at a multiple of four bits, so 60 bits are always within a word.
    pub const MAX_COLUMN_BITS: u32 = 15;
}

impl Column {
    /// Returns the first bit that a packed bucket has in the column.
    #[inline(always)]
    fn bit(self, bucket: u64) -> u64 {
        self.first_bit + bucket * u64::from(SLOTS * self.width())
    }
}

impl Encoding for Deep {
    type Low = Quad;
    type Keys = DeepQuad;
    type Slot = u64;
    type Geometry = (PackedGeometry, Column);
    type Column = Column;
    const HAS_COLUMN: bool = true;
    type Walked<I: Instructions> = I;

    #[inline(always)]
    fn walked<I: Instructions>(instructions: I) -> I {
        instructions
    }

    #[inline(always)]
    fn parts((geometry, column): &(PackedGeometry, Column)) -> (&PackedGeometry, Column) {
        (geometry, *column)
    }

    #[inline(always)]
    fn low<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) -> Quad {
        table.quarters(bucket)
    }

    #[inline(always)]
    fn complete<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64, low: Quad) -> DeepQuad {
        let width = table.column.width();
        DeepQuad { low, above: bits::word(&table.bytes, table.column.bit(bucket)) & mask(SLOTS * width), width }
    }

    #[inline(always)]
    fn store<B: DerefMut<Target = [u8]>, I: Instructions>(table: &mut Packed<'_, Self, B, I>, bucket: u64, keys: DeepQuad) {
        set_quarters(table.geometry, &mut table.bytes, table.instructions, bucket, keys.low);
        bits::set(&mut table.bytes, table.column.bit(bucket), SLOTS * table.column.width(), keys.above);
    }

    #[inline(always)]
    fn key<B, I>(table: &Packed<'_, Self, B, I>, fingerprint: Fingerprint) -> (u64, u64) {
        let in_table = table.geometry.high_bits() + 4;
        (Quad::key(fingerprint.wide() & mask(in_table)), fingerprint.wide() >> in_table)
    }

    #[inline(always)]
    fn low_key((low, _): (u64, u64)) -> u64 {
        low
    }

    #[inline(always)]
    fn values<B, I>(table: &Packed<'_, Self, B, I>, keys: DeepQuad) -> [u64; 4] {
        let in_table = table.geometry.high_bits() + 4;
        let value = |n| u64::from(keys.low.value(n)) | keys.field(n) << in_table;
        [value(0), value(1), value(2), value(3)]
    }

    #[inline(always)]
    fn contains<B: Deref<Target = [u8]>, I: Instructions>(
        table: &Packed<'_, Self, B, I>,
        (first, second): Pair,
        fingerprint: Fingerprint,
    ) -> bool {
        let key = Self::key(table, fingerprint);
        Self::load(table, first).find(key) | Self::load(table, second).find(key) != 0
    }

    #[inline(always)]
    fn prefetch<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) {
        table.instructions.prefetch(&table.bytes, index(table.column.bit(bucket) / 8));
    }

    #[inline(always)]
    fn prefetch_columns<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, (first, second): Pair) {
        Self::prefetch(table, first);
        Self::prefetch(table, second);
    }
}

/// A split: copies the fingerprints of a table of [`Deep`] buckets whose bits in the column begin with `prefix` to an empty table of
/// as many buckets, whose column lacks these bits.
pub(crate) struct FillPart<'a> {
    /// The layout of the table that is split, and its bytes.
    pub geometry: (PackedGeometry, Column),
    pub whole: &'a [u8],
    pub buckets: u64,
    pub part: &'a mut [u8],
    pub column: Column,
    pub prefix: u32,
}

impl FillPart<'_> {
    /// Returns how many fingerprints were copied. Filtering keeps the order of the slots, so nothing is sorted again.
    #[inline(always)]
    pub fn copy<I: Instructions>(self, instructions: I) -> usize {
        let Self { geometry: (ref geometry, whole_column), whole: bytes, buckets, part, column, prefix } = self;
        let table = Packed::<Deep, _, _> { geometry, column: whole_column, bytes, instructions };
        let (i, width, kept) = (instructions, whole_column.width(), column.width());
        let fields = Fields::new(width, SLOTS);
        let (prefixes, prefix) = (fields.splat(low_half(mask(width) & !mask(kept))), fields.splat(prefix << kept));
        let (mut low, mut upper) = (Writer::new(0), Writer::new(column.first_bit));
        let mut items = 0;
        for bucket in 0..buckets {
            let keys = Deep::load(&table, bucket);
            // Marks each slot to keep with one bit, in its field.
            let taken = !mask(keys.free() * width);
            let marks = (fields.zero((keys.above ^ prefix) & prefixes) & taken) >> (width - 1);
            let count = marks.count_ones();
            let quarters = i.extract(keys.low.0, i.spread(marks, width) * 0xffff);
            let above = i.extract(keys.above, marks * mask(kept)) << ((SLOTS - count) * kept);
            // Moves the slots behind the empty ones. Shifts twice, because four quarters are 64 bits, which one shift cannot
            // take.
            let empty = QUARTER / 2 * (SLOTS - count);
            low.push(part, geometry.bucket_bits(), packed(geometry, i, Quad(quarters << empty << empty)));
            upper.push(part, SLOTS * kept, above);
            items += index(count.into());
        }
        low.finish(part);
        upper.finish(part);
        items
    }
}

/// Four keys, sorted by their part in the table, and if that is equal, by their part in the column.
#[derive(Clone, Copy)]
pub(crate) struct DeepQuad {
    low: Quad,
    /// Four fields of `width` bits, as in the column. Those of empty slots are 0.
    above: u64,
    width: u32,
}

impl DeepQuad {
    #[inline(always)]
    fn field(self, n: u32) -> u64 {
        self.above >> (n * self.width) & mask(self.width)
    }

    /// Returns the marks of those quarters whose fields satisfy `is_wanted`.
    #[inline(always)]
    fn filter_marks(self, mut marks: u64, is_wanted: impl Fn(u64) -> bool) -> u64 {
        let mut found = 0;
        while marks != 0 {
            let mark = marks & marks.wrapping_neg();
            found |= if is_wanted(self.field(marks.trailing_zeros() / QUARTER)) { mark } else { 0 };
            marks ^= mark;
        }
        found
    }
}

impl Keys for DeepQuad {
    type Key = (u64, u64);

    #[inline(always)]
    fn free(self) -> u32 {
        self.low.free()
    }

    #[inline(always)]
    fn find(self, key: (u64, u64)) -> u64 {
        self.exact(key, self.low.find(key.0))
    }

    #[inline(always)]
    fn exact(self, (_, above): (u64, u64), marks: u64) -> u64 {
        self.filter_marks(marks, |field| field == above)
    }

    #[inline(always)]
    fn insert(self, (low, above): (u64, u64)) -> Self {
        // Two keys rarely have equal parts in the table.
        let before = self.filter_marks(self.low.find(low), |field| field < above).count_ones();
        let (less, width) = (self.low.less(low) + before, self.width);
        let (moved, kept) = (mask(less * width), !mask((less + 1) * width));
        let above = self.above >> width & moved | above << (less * width) | self.above & kept;
        Self { low: self.low.insert_after(less, low), above, width }
    }

    #[inline(always)]
    fn remove(self, key: (u64, u64), marks: u64) -> Self {
        let (slot, width) = (marks.trailing_zeros() / QUARTER, self.width);
        let above = (self.above & mask(slot * width)) << width | self.above & !mask((slot + 1) * width);
        Self { low: self.low.remove(key.0, marks), above, width }
    }

    #[inline(always)]
    fn select(condition: bool, keys: Self, others: Self) -> Self {
        Self {
            low: Quad::select(condition, keys.low, others.low),
            above: select_unpredictable(condition, keys.above, others.above),
            width: keys.width,
        }
    }

    #[inline(always)]
    fn disorder(self) -> u64 {
        let key = |n| self.low.quarter(n) << QUARTER | self.field(n);
        u64::from(key(0) > key(1)) | u64::from(key(1) > key(2)) | u64::from(key(2) > key(3))
    }

    /// Also returns a nonzero value if an empty slot has bits in the column.
    #[inline(always)]
    fn without(self, (low, _): (u64, u64)) -> u64 {
        let above = |n| u64::from(self.low.quarter(n) == 0 && self.field(n) != 0);
        self.low.without(low) | above(0) | above(1) | above(2) | above(3)
    }
}

/// The encoding of all other buckets with a column. A key has 64 bits: the nibble is in the highest four, the high part below, and
/// the part in the column in the lowest.
pub(crate) struct WideDeep;

/// Reads a bucket's keys. A call, because few lookups read columns, and inlined it would be half of the code for these tables.
#[inline(never)]
fn load_wide(geometry: &PackedGeometry, column: Column, bytes: &[u8], bucket: u64) -> [u64; 4] {
    let (bit, width) = (geometry.bit(bucket), column.width());
    let nibbles = u64::from(codebook::decode(bits::word(bytes, bit)));
    array::from_fn(|slot| {
        let field = |first: u64, width: u32| bits::word(bytes, first + wide(slot) * u64::from(width)) & mask(width);
        let high = field(geometry.high_bit(bit, 0), geometry.high_bits());
        nibbles >> (4 * slot) << 60 | high << width | field(column.bit(bucket), width)
    })
}

/// Writes a bucket's keys.
#[inline(never)]
fn store_wide(geometry: &PackedGeometry, column: Column, bytes: &mut [u8], bucket: u64, keys: [u64; 4]) {
    let (bit, width, mut nibbles) = (geometry.bit(bucket), column.width(), 0);
    for (slot, key) in keys.into_iter().enumerate() {
        let mut set = |first: u64, width: u32, value| bits::set(bytes, first + wide(slot) * u64::from(width), width, value);
        set(geometry.high_bit(bit, 0), geometry.high_bits(), key >> width);
        set(column.bit(bucket), width, key);
        nibbles |= key >> 60 << (4 * slot);
    }
    bits::set(bytes, bit, CODEWORD_BITS, codebook::encode(low_quarter(nibbles)).into());
}

impl Encoding for WideDeep {
    type Low = [u64; 4];
    type Keys = [u64; 4];
    type Slot = u64;
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
    fn low<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) -> [u64; 4] {
        load_wide(table.geometry, table.column, &table.bytes, bucket)
    }

    #[inline(always)]
    fn complete<B: Deref<Target = [u8]>, I: Instructions>(_: &Packed<'_, Self, B, I>, _: u64, low: [u64; 4]) -> [u64; 4] {
        low
    }

    #[inline(always)]
    fn store<B: DerefMut<Target = [u8]>, I: Instructions>(table: &mut Packed<'_, Self, B, I>, bucket: u64, keys: [u64; 4]) {
        store_wide(table.geometry, table.column, &mut table.bytes, bucket, keys);
    }

    #[inline(always)]
    fn key<B, I>(table: &Packed<'_, Self, B, I>, fingerprint: Fingerprint) -> u64 {
        let (value, high_bits, width) = (fingerprint.wide(), table.geometry.high_bits(), table.column.width());
        value << 60 | (value >> 4 & mask(high_bits)) << width | value >> (high_bits + 4)
    }

    #[inline(always)]
    fn low_key(key: u64) -> u64 {
        key
    }

    #[inline(always)]
    fn values<B, I>(table: &Packed<'_, Self, B, I>, [a, b, c, d]: [u64; 4]) -> [u64; 4] {
        let (high_bits, width) = (table.geometry.high_bits(), table.column.width());
        let value = |key: u64| key >> 60 | (key << 4 >> 4 >> width) << 4 | (key & mask(width)) << (high_bits + 4);
        [value(a), value(b), value(c), value(d)]
    }

    #[inline(always)]
    fn contains<B: Deref<Target = [u8]>, I: Instructions>(
        table: &Packed<'_, Self, B, I>,
        (first, second): Pair,
        fingerprint: Fingerprint,
    ) -> bool {
        let key = Self::key(table, fingerprint);
        Self::load(table, first).find(key) | Self::load(table, second).find(key) != 0
    }

    #[inline(always)]
    fn prefetch<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) {
        table.instructions.prefetch(&table.bytes, index(table.column.bit(bucket) / 8));
    }
}
