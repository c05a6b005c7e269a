//! The column: the upper bits of all slots' fingerprints, in the order of the slots, behind a packed table. Lookups that do not
//! need the upper bits read the table alone, as a table of shorter fingerprints.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::array;

use super::SLOTS;
use crate::bits::{self, mask};

/// The most bits that a column has for each slot.
pub(crate) const MAX_COLUMN_BITS: u32 = 32;

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

    #[inline]
    pub fn first_bit(self) -> u64 {
        self.first_bit
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

    /// Reads the fields of a bucket that [fit into a word](Self::fits_a_word).
    #[inline(always)]
    pub fn word(self, bytes: &[u8], bucket: u64) -> FieldsWord {
        let width = self.width();
        FieldsWord { word: bits::word(bytes, self.bit(bucket)) & mask(SLOTS * width), width }
    }

    /// Writes the fields of a bucket that [fit into a word](Self::fits_a_word).
    #[inline(always)]
    pub fn set_word(self, bytes: &mut [u8], bucket: u64, fields: FieldsWord) {
        bits::set(bytes, self.bit(bucket), SLOTS * self.width(), fields.word);
    }

    /// Reads all fields of a bucket.
    #[inline(always)]
    pub fn fields(self, bytes: &[u8], bucket: u64) -> [u64; 4] {
        if self.fits_a_word() {
            let fields = self.word(bytes, bucket);
            [fields.get(0), fields.get(1), fields.get(2), fields.get(3)]
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
            self.set_word(bytes, bucket, self.word(bytes, bucket).insert(slot, field));
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
            self.set_word(bytes, bucket, self.word(bytes, bucket).remove(slot));
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

    fn set(self, bytes: &mut [u8], bucket: u64, slot: u32, field: u64) {
        bits::set(bytes, self.field_bit(bucket, slot), self.width(), field);
    }
}

/// The fields of a bucket: four of `width` bits. Those of empty slots are 0.
#[derive(Clone, Copy)]
pub(crate) struct FieldsWord {
    pub word: u64,
    pub width: u32,
}

impl FieldsWord {
    #[inline(always)]
    pub fn get(self, slot: u32) -> u64 {
        self.word >> (slot * self.width) & mask(self.width)
    }

    /// Implements [`Column::insert`].
    #[inline(always)]
    pub fn insert(self, slot: u32, field: u64) -> Self {
        let Self { word, width } = self;
        let (moved, kept) = (mask(slot * width), !mask((slot + 1) * width));
        Self { word: word >> width & moved | field << (slot * width) | word & kept, width }
    }

    /// Implements [`Column::remove`].
    #[inline(always)]
    fn remove(self, slot: u32) -> Self {
        let Self { word, width } = self;
        Self { word: (word & mask(slot * width)) << width | word & !mask((slot + 1) * width), width }
    }
}
