//! The bit layout of the single table. A bucket is read through windows, words at any bit position; each window covers as many
//! slots as always fit into it.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use crate::{
    bits::{self, Fields, window_bits},
    table::Pair,
};

/// The layout of buckets of b slots of f bits.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct SingleGeometry {
    /// The slots of a window; the last one may have fewer.
    slots: Fields,
    bucket_bits: u16,
    slot_bits: u8,
    bucket_size: u8,
    windows: u8,
    /// Bits of slots per window, and so the distance between windows.
    stride: u8,
    /// Bits of slots in the last window.
    last: u8,
}

impl SingleGeometry {
    /// Uses as few windows as possible.
    pub(in crate::table) fn new(slot_bits: u32, count: u32) -> Self {
        let bucket_bits = slot_bits * count;
        let mut windows = 1;
        loop {
            let each = count.div_ceil(windows);
            let stride = each * slot_bits;
            // Windows begin at multiples of the largest power of two that divides both distances.
            let step = if windows == 1 { bucket_bits } else { bucket_bits | stride };
            if stride <= window_bits(step) {
                let last = (count - (windows - 1) * each) * slot_bits;
                #[expect(clippy::cast_possible_truncation, reason = "32 · 16 bits, 16 slots, and 64 bits in a window at most")]
                return Self {
                    slots: Fields::new(slot_bits, each),
                    bucket_bits: bucket_bits as u16,
                    slot_bits: slot_bits as u8,
                    bucket_size: count as u8,
                    windows: windows as u8,
                    stride: stride as u8,
                    last: last as u8,
                };
            }
            windows += 1;
        }
    }

    #[inline]
    pub(in crate::table) fn slot_bits(&self) -> u32 {
        self.slot_bits.into()
    }

    #[inline]
    pub(super) fn bucket_size(&self) -> u32 {
        self.bucket_size.into()
    }

    /// True for nearly all tables: those that have one are read without a loop, which is faster.
    #[inline]
    pub(super) fn has_one_window(&self) -> bool {
        self.windows == 1
    }

    /// The first bit of a bucket.
    #[inline]
    pub(super) fn bit(&self, bucket: u64) -> u64 {
        bucket * u64::from(self.bucket_bits)
    }

    /// The windows of a bucket: the offset of each in the bucket, in bits, and its slots.
    #[inline]
    pub(crate) fn windows(&self) -> impl Iterator<Item = (u64, Fields)> {
        let last = self.slots.first_bits(self.last.into());
        (1..=self.windows)
            .zip((0..).step_by(self.stride.into()))
            .map(move |(window, offset)| (offset, if window < self.windows { self.slots } else { last }))
    }

    /// Folds the marks of all windows, which are set at the slots that hold `value`, starting with 0.
    #[inline(always)]
    pub(super) fn fold(&self, bytes: &[u8], bucket: u64, value: u32, add: impl Fn(u64, u64) -> u64) -> u64 {
        let bit = self.bit(bucket);
        if self.has_one_window() {
            add(0, self.slots.equal(bits::word(bytes, bit), value))
        } else {
            self.fold_all(bytes, bit, value, add)
        }
    }

    #[inline(never)]
    fn fold_all(&self, bytes: &[u8], bit: u64, value: u32, add: impl Fn(u64, u64) -> u64) -> u64 {
        self.windows().fold(0, |sum, (offset, slots)| add(sum, slots.equal(bits::word(bytes, bit + offset), value)))
    }

    /// 0 if every slot of the bucket that is not empty has one of the bits of `mask`.
    #[inline]
    pub(super) fn without(&self, bytes: &[u8], bucket: u64, mask: u32) -> u64 {
        let bit = self.bit(bucket);
        self.windows().fold(0, |any, (offset, slots)| any | slots.without(bits::word(bytes, bit + offset), mask))
    }

    /// True if a slot of one of the two buckets holds `value`.
    #[inline(always)]
    pub(super) fn contains(&self, bytes: &[u8], (first, second): Pair, value: u32) -> bool {
        let (first, second) = (self.bit(first), self.bit(second));
        if self.has_one_window() {
            let marks = |bit| self.slots.equal(bits::word(bytes, bit), value);
            marks(first) | marks(second) != 0
        } else {
            // A single call at the end needs no saved registers.
            self.contains_in_all(bytes, (first, second), value)
        }
    }

    #[inline(never)]
    fn contains_in_all(&self, bytes: &[u8], (first, second): (u64, u64), value: u32) -> bool {
        let any = |bit| self.fold_all(bytes, bit, value, |any, marks| any | marks);
        any(first) | any(second) != 0
    }

    /// The first bit of the first slot of the bucket that holds `value`.
    #[inline(always)]
    pub(super) fn find(&self, bytes: &[u8], bucket: u64, value: u32) -> Option<u64> {
        let bit = self.bit(bucket);
        if self.has_one_window() { self.find_in(self.slots, bytes, bit, value) } else { self.find_in_all(bytes, bit, value) }
    }

    #[inline(never)]
    fn find_in_all(&self, bytes: &[u8], bit: u64, value: u32) -> Option<u64> {
        self.windows().find_map(|(offset, slots)| self.find_in(slots, bytes, bit + offset, value))
    }

    /// The same, for the window that begins at `bit`.
    #[inline(always)]
    fn find_in(&self, slots: Fields, bytes: &[u8], bit: u64, value: u32) -> Option<u64> {
        let marks = slots.equal(bits::word(bytes, bit), value);
        // A mark is the highest bit of its slot.
        (marks != 0).then(|| bit + u64::from(marks.trailing_zeros() + 1 - self.slot_bits()))
    }
}
