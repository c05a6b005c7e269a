//! A table of any kind, read slot by slot: one piece of code instead of one for each kind, to find out what is wrong with a bucket,
//! and in the npm package for nearly everything.

use core::ops::Range;

use super::{
    Column, Corrupt, DeepGeometry, Fingerprint, Geometry, MAX_SLOTS, PackedGeometry, Pair, SingleGeometry, Table, Values,
    packed::codebook::{self, CODEWORD_BITS, CODEWORDS},
};
use crate::bits::{self, index, low_half, mask, wide};

/// The layout of a table of any kind.
#[derive(Clone, Copy)]
pub(crate) enum SlotwiseGeometry<'a> {
    Single(&'a SingleGeometry),
    Packed(&'a PackedGeometry, Column),
}

impl<'a> From<&'a Geometry> for SlotwiseGeometry<'a> {
    fn from(geometry: &'a Geometry) -> Self {
        match geometry {
            Geometry::Single(geometry) => Self::Single(geometry),
            Geometry::Wide(geometry) | Geometry::Narrow(geometry) => Self::Packed(geometry, Column::NONE),
        }
    }
}

impl<'a> From<&'a DeepGeometry> for SlotwiseGeometry<'a> {
    fn from(DeepGeometry { table, column }: &'a DeepGeometry) -> Self {
        Self::Packed(table, *column)
    }
}

/// A table of any kind, bound to its bytes for one operation.
pub(crate) struct Slotwise<'a> {
    pub geometry: SlotwiseGeometry<'a>,
    pub bytes: &'a [u8],
}

impl Slotwise<'_> {
    /// Reads the values of a bucket's slots. Returns their number, and the codeword, if there is one.
    // Not by value: in a browser, moving and clearing so many bytes takes longer than reading the bucket.
    #[inline(never)]
    fn read(&self, bucket: u64, slots: &mut [u64; MAX_SLOTS]) -> (usize, u32) {
        let (len, codeword) = match self.geometry {
            SlotwiseGeometry::Single(geometry) => {
                let (f, b) = (geometry.slot_bits(), geometry.bucket_size());
                for (slot, value) in (0..b).zip(&mut *slots) {
                    *value = bits::get(self.bytes, geometry.bit(bucket) + u64::from(slot * f), f).into();
                }
                (b, 0)
            }
            SlotwiseGeometry::Packed(geometry, column) => {
                let bit = geometry.bit(bucket);
                let codeword = bits::get(self.bytes, bit, CODEWORD_BITS);
                let (nibbles, width) = (u64::from(codebook::decode(codeword.into())), geometry.high_bits());
                for (slot, value) in (0..4).zip(slots) {
                    let high = bits::get(self.bytes, bit + u64::from(CODEWORD_BITS + slot * width), width);
                    *value = u64::from(high) << 4 | nibbles >> (4 * slot) & 15;
                    if column.width() > 0 {
                        *value |= column.field(self.bytes, bucket, slot) << (width + 4);
                    }
                }
                (4, codeword)
            }
        };
        (index(len.into()), codeword)
    }

    /// Returns true if a slot of the bucket holds a value.
    #[inline(never)]
    fn holds(&self, bucket: u64, value: u64) -> bool {
        let slot_equals = |first: u64, slot: u32, width: u32, value: u64| {
            u64::from(bits::get(self.bytes, first + u64::from(slot * width), width)) == value
        };
        match self.geometry {
            SlotwiseGeometry::Single(geometry) => {
                let (first, width) = (geometry.bit(bucket), geometry.slot_bits());
                (0..geometry.bucket_size()).any(|slot| slot_equals(first, slot, width, value))
            }
            // A bucket is decoded only if a high part is equal.
            SlotwiseGeometry::Packed(geometry, _) => {
                let (first, width) = (geometry.bit(bucket) + u64::from(CODEWORD_BITS), geometry.high_bits());
                let high = value >> 4 & mask(width);
                (0..4).any(|slot| slot_equals(first, slot, width, high)) && self.values(bucket).as_ref().contains(&value)
            }
        }
    }

    /// Counts the occupied slots of a bucket, unless it is corrupt.
    #[inline(never)]
    fn check(&self, bucket: u64, low: Option<Fingerprint>, slots: &mut [u64; MAX_SLOTS]) -> Result<u64, Corrupt> {
        let (len, codeword) = self.read(bucket, slots);
        let values = &slots[..len];
        if codeword >= CODEWORDS.into() {
            return Err(Corrupt::Codeword(codeword));
        }
        if let SlotwiseGeometry::Packed(geometry, _) = self.geometry {
            // By the nibble, then the high part, then the field in the column.
            let in_table = geometry.high_bits() + 4;
            let rank = |value: &u64| (low_half(value & mask(in_table)).rotate_right(4), value >> in_table);
            if !values.is_sorted_by_key(rank) {
                return Err(Corrupt::Order);
            }
        }
        let taken = values.iter().filter(|&&value| value != 0);
        if low.is_some_and(|low| taken.clone().any(|value| value & low.wide() == 0)) {
            return Err(Corrupt::Low);
        }
        Ok(wide(taken.count()))
    }

    /// Returns why the bucket is corrupt, or `None` if it is valid.
    pub fn corrupt(&self, bucket: u64, low: Option<Fingerprint>) -> Option<Corrupt> {
        self.check(bucket, low, &mut [0; MAX_SLOTS]).err()
    }
}

impl Table for Slotwise<'_> {
    type Slot = u64;
    type Values = Values<u64>;

    fn contains(&self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        self.holds(first, fingerprint.wide()) || self.holds(second, fingerprint.wide())
    }

    fn values(&self, bucket: u64) -> Values<u64> {
        let mut slots = [0; MAX_SLOTS];
        let (len, _) = self.read(bucket, &mut slots);
        Values { slots, len }
    }

    fn has_room(&self, bucket: u64) -> bool {
        self.values(bucket).as_ref().contains(&0)
    }

    /// Does nothing: the next bucket is read long after.
    fn prefetch(&self, _: u64) {}

    fn taken(&self, mut buckets: Range<u64>, low: Option<Fingerprint>) -> Option<u64> {
        let mut slots = [0; MAX_SLOTS];
        buckets.try_fold(0, |taken, bucket| Some(taken + self.check(bucket, low, &mut slots).ok()?))
    }
}
