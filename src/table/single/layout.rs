//! Where the slots of a bucket are: windows of a word, each with as many slots as surely fit into it.

use crate::{
    bits::Fields,
    bits::{self, window_bits},
};

/// The places of b slots of f bits in every bucket of a table, one behind the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    slot_bits: u32,
    bucket_bits: u32,
    windows: u32,
    /// Bits from one window to the next.
    stride: u32,
    /// The slots of every window but the last.
    slots: Fields,
    /// The slots of the last window.
    last: Fields,
}

impl Layout {
    /// As few windows as will do.
    pub(super) fn new(slot_bits: u32, count: u32) -> Self {
        let bucket_bits = slot_bits * count;
        let mut windows = 1;
        loop {
            let each = count.div_ceil(windows);
            let stride = each * slot_bits;
            // Windows begin at multiples of whatever power of two divides both distances.
            let step = if windows == 1 { bucket_bits } else { bucket_bits | stride };
            if stride <= window_bits(step) {
                let (slots, last) = (Fields::new(slot_bits, each), Fields::new(slot_bits, count - (windows - 1) * each));
                return Self { slot_bits, bucket_bits, windows, stride, slots, last };
            }
            windows += 1;
        }
    }

    pub(crate) fn bucket_bits(&self) -> u32 {
        self.bucket_bits
    }

    /// The windows of a bucket: where they begin in it, and the slots in each.
    #[inline]
    pub(crate) fn windows(&self) -> impl Iterator<Item = (u64, Fields)> {
        (0..self.windows).map(|window| {
            let slots = if window + 1 < self.windows { self.slots } else { self.last };
            (u64::from(window * self.stride), slots)
        })
    }

    /// The first bit of a bucket.
    #[inline]
    pub(super) fn bit(&self, bucket: u64) -> u64 {
        bucket * u64::from(self.bucket_bits)
    }

    /// Adds the marks of every window, at the slots that hold `value`, to a sum that begins with 0. Nearly all tables have one
    /// window, which is quicker without a loop.
    #[inline]
    pub(super) fn fold(&self, bytes: &[u8], bucket: u64, value: u32, add: impl Fn(u64, u64) -> u64) -> u64 {
        let bit = self.bit(bucket);
        if self.windows == 1 {
            return add(0, self.last.equal(bits::word(bytes, bit), value));
        }
        self.windows().fold(0, |sum, (offset, slots)| add(sum, slots.equal(bits::word(bytes, bit + offset), value)))
    }

    /// The first bit of the first slot of the bucket that holds `value`.
    #[inline]
    pub(super) fn find(&self, bytes: &[u8], bucket: u64, value: u32) -> Option<u64> {
        let bit = self.bit(bucket);
        let find = |(offset, slots): (u64, Fields)| {
            let marks = slots.equal(bits::word(bytes, bit + offset), value);
            // The lowest mark is its slot's highest bit.
            (marks != 0).then(|| bit + offset + u64::from(marks.trailing_zeros() + 1 - self.slot_bits))
        };
        if self.windows == 1 { find((0, self.last)) } else { self.windows().find_map(find) }
    }
}
