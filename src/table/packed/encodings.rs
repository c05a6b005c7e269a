//! The encodings of buckets. [`Narrow`] buckets fit into a word, [`Wide`] ones do not. [`Deep`] and [`WideDeep`] buckets have only the
//! lower bits of their fingerprints, and the upper ones in a column behind the table. Lookups that do without these read the table
//! alone, as one of shorter fingerprints.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{
    hint::select_unpredictable,
    ops::{Deref, DerefMut},
};

use super::{Code, Instructions, Keys, Packed, PackedGeometry, Pair, SLOTS, codebook};
use crate::{
    bits::{self, Fields, Writer, index, low_half, low_quarter, mask, window_bits},
    table::{Column, Fingerprint, Portable},
};
use codebook::CODEWORD_BITS;

const LANE: u32 = u16::BITS;
const LANES: Fields = Fields::new(LANE, SLOTS);

/// The encoding of fingerprints of up to 16 bits, in four lanes of 16 bits.
pub(crate) struct Narrow;

impl Code for Narrow {
    type Low = Quad;
    type Keys = Quad;
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
        table.lanes(bucket)
    }

    #[inline(always)]
    fn complete<B: Deref<Target = [u8]>, I: Instructions>(_: &Packed<'_, Self, B, I>, _: u64, low: Quad) -> Quad {
        low
    }

    #[inline(always)]
    fn store<B: DerefMut<Target = [u8]>, I: Instructions>(table: &mut Packed<'_, Self, B, I>, bucket: u64, keys: Quad) {
        set_lanes(table.geometry, &mut table.bytes, table.instructions, bucket, keys);
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
        I::in_narrow(table, buckets, fingerprint)
    }
}

impl<F: Code, B: Deref<Target = [u8]>, I: Instructions> Packed<'_, F, B, I> {
    /// A bucket's fingerprints, or the parts of them that are in the table, of up to 16 bits.
    #[inline(always)]
    fn lanes(&self, bucket: u64) -> Quad {
        let (word, i) = (self.word(bucket), self.instructions);
        Quad(i.spread(word >> CODEWORD_BITS, self.geometry.high_bits()) | i.spread_nibbles(codebook::decode(word)))
    }
}

#[inline(always)]
fn set_lanes(geometry: &PackedGeometry, bytes: &mut [u8], i: impl Instructions, bucket: u64, lanes: Quad) {
    bits::set(bytes, geometry.bit(bucket), geometry.bucket_bits(), packed(geometry, i, lanes));
}

/// A narrow bucket with these fingerprints.
#[inline(always)]
fn packed(geometry: &PackedGeometry, i: impl Instructions, Quad(lanes): Quad) -> u64 {
    let codeword = u64::from(codebook::encode(i.gather_nibbles(lanes)));
    i.gather(lanes, geometry.high_bits()) << CODEWORD_BITS | codeword
}

/// Four keys in lanes, sorted from the lowest lane up. A key has the nibble in its highest four bits and the high part in the
/// bits below.
#[derive(Clone, Copy)]
pub(crate) struct Quad(u64);

impl Quad {
    #[inline(always)]
    fn key(fingerprint: u64) -> u64 {
        fingerprint >> 4 | (fingerprint & 15) << 12
    }

    /// A mask for the lowest `lanes` lanes.
    #[inline(always)]
    fn first(lanes: u32) -> u64 {
        // Two shifts, because four lanes are 64 bits, too many for one.
        (1u64 << (LANE / 2 * lanes) << (LANE / 2 * lanes)).wrapping_sub(1)
    }

    #[inline(always)]
    fn lane(self, n: u32) -> u64 {
        self.0 >> (n * LANE) & 0xffff
    }

    #[inline(always)]
    fn value(self, n: u32) -> u32 {
        u32::from(low_quarter(self.0 >> (n * LANE)).rotate_left(4))
    }

    /// The number of smaller keys beside an empty lane.
    #[inline(always)]
    fn less(self, key: u64) -> u32 {
        let lane = |n| u32::from(self.lane(n) < key);
        lane(1) + lane(2) + lane(3)
    }

    /// The lanes with smaller keys move down by one, over the empty lane; the key takes the place after them.
    #[inline(always)]
    fn insert_after(self, less: u32, key: u64) -> Self {
        let (moved, kept) = (Self::first(less), !Self::first(less + 1));
        Self(self.0 >> LANE & moved | key << (less * LANE) | self.0 & kept)
    }
}

impl Keys for Quad {
    type Key = u64;

    #[inline(always)]
    fn free(self) -> u32 {
        self.0.trailing_zeros() / LANE
    }

    #[inline(always)]
    fn find(self, key: u64) -> u64 {
        LANES.equal(self.0, low_half(key))
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
        // The lanes before the first copy move up by one. Its mark is the highest bit of its lane.
        let (upto, before) = (marks ^ (marks - 1), (marks ^ (marks - 1)) >> LANE);
        Self((self.0 & before) << LANE | self.0 & !upto)
    }

    #[inline(always)]
    fn select(condition: bool, keys: Self, others: Self) -> Self {
        Self(select_unpredictable(condition, keys.0, others.0))
    }

    #[inline(always)]
    fn disorder(self) -> u64 {
        // Subtracts each lane from the one above it, all three at once. The highest bit of each minuend is set and that of each
        // subtrahend is cleared, so no lane borrows from the next. Where the original highest bits differ, they decide the
        // comparison; otherwise the difference does.
        let (less, greater) = (self.0 & Self::first(3), self.0 >> LANE);
        let tops = LANES.tops();
        let rest = (greater | tops) - (less & !tops);
        !(greater & !less | !(greater ^ less) & rest) & tops
    }

    #[inline(always)]
    fn without(self, mask: u64) -> u64 {
        LANES.without(self.0, low_half(mask))
    }
}

/// The encoding of narrow buckets with so few bits of each slot in the column that one word has them all.
pub(crate) struct Deep;

impl Deep {
    pub(crate) const MOST_COLUMN_BITS: u32 = 15;
}

impl Column {
    /// The first bit of what a packed bucket has in the column.
    #[inline(always)]
    fn bit(self, bucket: u64) -> u64 {
        self.first_bit + bucket * u64::from(SLOTS * self.width())
    }
}

impl Code for Deep {
    type Low = Quad;
    type Keys = DeepQuad;
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
        table.lanes(bucket)
    }

    #[inline(always)]
    fn complete<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64, low: Quad) -> DeepQuad {
        let width = table.column.width();
        DeepQuad { low, above: bits::word(&table.bytes, table.column.bit(bucket)) & mask(SLOTS * width), width }
    }

    #[inline(always)]
    fn store<B: DerefMut<Target = [u8]>, I: Instructions>(table: &mut Packed<'_, Self, B, I>, bucket: u64, keys: DeepQuad) {
        set_lanes(table.geometry, &mut table.bytes, table.instructions, bucket, keys.low);
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
    fn values<B, I>(table: &Packed<'_, Self, B, I>, keys: DeepQuad) -> [u32; 4] {
        let in_table = table.geometry.high_bits() + 4;
        let value = |n| keys.low.value(n) | low_half(keys.field(n) << in_table);
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

    /// What is kept of a bucket is in the same order, so that nothing is compared.
    #[inline(always)]
    fn fill_part<B: Deref<Target = [u8]>, I: Instructions>(
        table: &Packed<'_, Self, B, I>,
        buckets: u64,
        part: &mut [u8],
        column: Column,
        prefix: u32,
    ) -> Option<usize> {
        let (i, width, kept) = (table.instructions, table.column.width(), column.width());
        let fields = Fields::new(width, SLOTS);
        let (prefixes, prefix) = (fields.splat(low_half(mask(width) & !mask(kept))), fields.splat(prefix << kept));
        let (mut low, mut upper) = (Writer::new(0), Writer::new(column.first_bit));
        let mut items = 0;
        for bucket in 0..buckets {
            let keys = Self::load(table, bucket);
            // One bit for each slot that is kept, in fields and in lanes.
            let taken = !mask(keys.free() * width);
            let marks = (fields.zero((keys.above ^ prefix) & prefixes) & taken) >> (width - 1);
            let count = marks.count_ones();
            let lanes = i.extract(keys.low.0, i.spread(marks, width) * 0xffff);
            let above = i.extract(keys.above, marks * mask(kept)) << ((SLOTS - count) * kept);
            // Behind empty slots. Two shifts, since one by 64 is none.
            let empty = LANE / 2 * (SLOTS - count);
            low.push(part, table.geometry.bucket_bits(), packed(table.geometry, i, Quad(lanes << empty << empty)));
            upper.push(part, SLOTS * kept, above);
            items += index(count.into());
        }
        low.finish(part);
        upper.finish(part);
        Some(items)
    }

    #[inline(always)]
    fn add_bucket<B: DerefMut<Target = [u8]>, I: Instructions>(
        table: &mut Packed<'_, Self, B, I>,
        bucket: u64,
        (bytes, column): (&[u8], Column),
        bit: u32,
        left: &mut [u32; 4],
    ) -> Option<usize> {
        let (geometry, instructions, width) = (table.geometry, table.instructions, table.column.width());
        let half = Self::load(&Packed::<Self, _, _> { geometry, column, bytes, instructions }, bucket);
        let mut keys = Self::load(table, bucket);
        let field = |n| half.field(n) | u64::from(bit) << half.width;
        let (mut slot, mut over) = (SLOTS, 0);
        if keys.low.0 == 0 {
            let free = half.free();
            (keys.low, slot) = (half.low, free);
            keys.above = field(0) | field(1) << width | field(2) << (2 * width) | field(3) << (3 * width);
            keys.above &= !mask(free * width);
        }
        while slot > 0 && half.low.lane(slot - 1) != 0 {
            slot -= 1;
            let key = (half.low.lane(slot), field(slot));
            if keys.free() > 0 {
                keys = keys.insert(key);
            } else {
                left[over] = half.low.value(slot) | low_half(key.1 << (geometry.high_bits() + 4));
                over += 1;
            }
        }
        Self::store(table, bucket, keys);
        Some(over)
    }
}

/// Four keys, sorted by what is in the table, and where that is equal, by what is in the column.
#[derive(Clone, Copy)]
pub(crate) struct DeepQuad {
    low: Quad,
    /// Four fields of that width, as in the column. Those of empty slots are 0.
    above: u64,
    width: u32,
}

impl DeepQuad {
    #[inline(always)]
    fn field(self, n: u32) -> u64 {
        self.above >> (n * self.width) & mask(self.width)
    }

    /// Of lanes that are marked, those that have this field.
    #[inline(always)]
    fn with_field(self, mut marks: u64, is_wanted: impl Fn(u64) -> bool) -> u64 {
        let mut found = 0;
        while marks != 0 {
            let mark = marks & marks.wrapping_neg();
            found |= if is_wanted(self.field(marks.trailing_zeros() / LANE)) { mark } else { 0 };
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
        self.with_field(marks, |field| field == above)
    }

    #[inline(always)]
    fn insert(self, (low, above): (u64, u64)) -> Self {
        // Hardly ever are two parts in the table equal.
        let before = self.with_field(self.low.find(low), |field| field < above).count_ones();
        let (less, width) = (self.low.less(low) + before, self.width);
        let (moved, kept) = (mask(less * width), !mask((less + 1) * width));
        let above = self.above >> width & moved | above << (less * width) | self.above & kept;
        Self { low: self.low.insert_after(less, low), above, width }
    }

    #[inline(always)]
    fn remove(self, key: (u64, u64), marks: u64) -> Self {
        let (slot, width) = (marks.trailing_zeros() / LANE, self.width);
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
        let key = |n| self.low.lane(n) << LANE | self.field(n);
        u64::from(key(0) > key(1)) | u64::from(key(1) > key(2)) | u64::from(key(2) > key(3))
    }

    /// Nothing that is in the column alone is a key.
    #[inline(always)]
    fn without(self, (low, _): (u64, u64)) -> u64 {
        let above = |n| u64::from(self.low.lane(n) == 0 && self.field(n) != 0);
        self.low.without(low) | above(0) | above(1) | above(2) | above(3)
    }
}

/// The encoding of fingerprints of more than 16 bits, in an array.
pub(crate) struct Wide;

impl Code for Wide {
    type Low = [u32; 4];
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

/// The encoding of all other buckets with a column: keys have what is in the column below the high part.
pub(crate) struct WideDeep;

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

impl Code for WideDeep {
    type Low = [u32; 4];
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
    fn low<B: Deref<Target = [u8]>, I: Instructions>(table: &Packed<'_, Self, B, I>, bucket: u64) -> [u32; 4] {
        let (geometry, column, bytes) = (table.geometry, table.column, &table.bytes);
        let nibbles = u32::from(codebook::decode(table.word(bucket)));
        let [first, second] = halves(bytes, geometry.bit(bucket), CODEWORD_BITS, geometry.high_bits(), geometry.is_narrow());
        let [above, others_above] =
            halves(bytes, column.bit(bucket), 0, column.width(), SLOTS * column.width() <= window_bits(4));
        let key =
            |word: u64, above: u64| low_half((word & geometry.high_mask()) << column.width() | above & mask(column.width()));
        [
            nibbles << 28 | key(first, above),
            nibbles >> 4 << 28 | key(first >> geometry.high_bits(), above >> column.width()),
            nibbles >> 8 << 28 | key(second, others_above),
            nibbles >> 12 << 28 | key(second >> geometry.high_bits(), others_above >> column.width()),
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
        let (geometry, column) = (table.geometry, table.column);
        let nibbles = a >> 28 | b >> 28 << 4 | c >> 28 << 8 | d >> 28 << 12;
        let codeword = codebook::encode(low_quarter(nibbles.into()));
        let high = |key: u32| u64::from(key >> column.width()) & geometry.high_mask();
        let (first, second) = (high(a) | high(b) << geometry.high_bits(), high(c) | high(d) << geometry.high_bits());
        let (bit, pair) = (geometry.bit(bucket), 2 * geometry.high_bits());
        bits::set(&mut table.bytes, bit, CODEWORD_BITS, codeword.into());
        bits::set(&mut table.bytes, geometry.high_bit(bit, 0), pair, first);
        bits::set(&mut table.bytes, geometry.high_bit(bit, 1), pair, second);
        let above = |key: u32| u64::from(key) & mask(column.width());
        let (first, second) = (above(a) | above(b) << column.width(), above(c) | above(d) << column.width());
        let (bit, pair) = (column.bit(bucket), 2 * column.width());
        bits::set(&mut table.bytes, bit, pair, first);
        bits::set(&mut table.bytes, bit + u64::from(pair), pair, second);
    }

    #[inline(always)]
    fn key<B, I>(table: &Packed<'_, Self, B, I>, fingerprint: Fingerprint) -> u32 {
        let (value, high_bits, width) = (fingerprint.wide(), table.geometry.high_bits(), table.column.width());
        low_half(value & 15) << 28 | low_half((value >> 4 & mask(high_bits)) << width | value >> (high_bits + 4))
    }

    #[inline(always)]
    fn low_key(key: u32) -> u32 {
        key
    }

    #[inline(always)]
    fn values<B, I>(table: &Packed<'_, Self, B, I>, [a, b, c, d]: [u32; 4]) -> [u32; 4] {
        let (high_bits, width) = (table.geometry.high_bits(), table.column.width());
        let value = |key: u32| {
            let above = (u64::from(key) & mask(width)) << (high_bits + 4);
            key >> 28 | (key << 4 >> 4 >> width) << 4 | low_half(above)
        };
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

/// Without `map`, which is a call where there is no link-time optimisation.
impl Keys for [u32; 4] {
    type Key = u32;

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

    #[inline(always)]
    fn exact(self, _: u32, marks: u64) -> u64 {
        marks
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
