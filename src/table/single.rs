//! The single table: contiguous, unsorted slots of f bits. Any bucket size, any fingerprint length.
//!
//! A bucket is read through windows: words that begin at any bit. Each window covers as many slots as always fit into a word.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{
    hint::select_unpredictable,
    ops::{Deref, DerefMut, Range},
};

use super::{Change, Fingerprint, Form, Instructions, MAX_SLOTS, Pair, Read, Table, TableMut, Values};
use crate::bits::{self, Fields, index, window_bits};

/// The layout of buckets of b slots of f bits.
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct SingleGeometry {
    /// The layout of the slots in a window. The last window may have fewer slots.
    slots: Fields,
    bucket_bits: u16,
    slot_bits: u8,
    bucket_size: u8,
    windows: u8,
    /// The number of bits of slots per window: the distance between windows.
    stride: u8,
    /// The number of bits of slots in the last window.
    last: u8,
}

impl SingleGeometry {
    /// Plans as few windows as possible.
    pub(super) fn new(slot_bits: u32, count: u32) -> Self {
        let bucket_bits = slot_bits * count;
        let mut windows = 1;
        loop {
            let each = count.div_ceil(windows);
            let stride = each * slot_bits;
            // Windows begin at multiples of the largest power of two that divides both distances: between buckets, and between
            // windows.
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
    pub(super) fn slot_bits(&self) -> u32 {
        self.slot_bits.into()
    }

    #[inline]
    pub(super) fn bucket_size(&self) -> u32 {
        self.bucket_size.into()
    }

    /// Returns true for nearly all tables. Buckets with one window are read without a loop, which is faster.
    #[inline]
    fn has_one_window(&self) -> bool {
        self.windows == 1
    }

    /// Returns the first bit of a bucket.
    #[inline]
    pub(super) fn bit(&self, bucket: u64) -> u64 {
        bucket * u64::from(self.bucket_bits)
    }

    /// Iterates over the windows of a bucket: the offset of each in the bucket, in bits, and the layout of its slots.
    #[inline]
    pub fn windows(&self) -> impl Iterator<Item = (u64, Fields)> {
        let last = self.slots.first_bits(self.last.into());
        (1..=self.windows)
            .zip((0..).step_by(self.stride.into()))
            .map(move |(window, offset)| (offset, if window < self.windows { self.slots } else { last }))
    }

    /// Folds the marks of all windows with `add`, starting with 0. Marks are set at the slots that hold `value`.
    #[inline(always)]
    fn fold(&self, bytes: &[u8], bucket: u64, value: u32, add: impl Fn(u64, u64) -> u64) -> u64 {
        let bit = self.bit(bucket);
        if self.has_one_window() {
            add(0, self.slots.equal(bits::word(bytes, bit), value))
        } else {
            self.fold_windows(bytes, bit, value, add)
        }
    }

    #[inline(never)]
    fn fold_windows(&self, bytes: &[u8], bit: u64, value: u32, add: impl Fn(u64, u64) -> u64) -> u64 {
        self.windows().fold(0, |sum, (offset, slots)| add(sum, slots.equal(bits::word(bytes, bit + offset), value)))
    }

    /// Returns 0 if every occupied slot of the bucket has at least one of the bits of `mask`.
    #[inline]
    fn without(&self, bytes: &[u8], bucket: u64, mask: u32) -> u64 {
        let bit = self.bit(bucket);
        self.windows().fold(0, |any, (offset, slots)| any | slots.without(bits::word(bytes, bit + offset), mask))
    }

    /// Returns true if a slot of one of the two buckets holds `value`.
    #[inline(always)]
    fn contains(&self, bytes: &[u8], (first, second): Pair, value: u32) -> bool {
        let (first, second) = (self.bit(first), self.bit(second));
        if self.has_one_window() {
            let marks = |bit| self.slots.equal(bits::word(bytes, bit), value);
            marks(first) | marks(second) != 0
        } else {
            // Ends with a single call, so no registers have to be saved.
            self.contains_in_windows(bytes, (first, second), value)
        }
    }

    #[inline(never)]
    fn contains_in_windows(&self, bytes: &[u8], (first, second): (u64, u64), value: u32) -> bool {
        let any = |bit| self.fold_windows(bytes, bit, value, |any, marks| any | marks);
        any(first) | any(second) != 0
    }

    /// Returns the first bit of the first slot in the bucket that holds `value`.
    #[inline(always)]
    fn find(&self, bytes: &[u8], bucket: u64, value: u32) -> Option<u64> {
        let bit = self.bit(bucket);
        if self.has_one_window() {
            self.find_in_window(self.slots, bytes, bit, value)
        } else {
            self.find_in_windows(bytes, bit, value)
        }
    }

    #[inline(never)]
    fn find_in_windows(&self, bytes: &[u8], bit: u64, value: u32) -> Option<u64> {
        self.windows().find_map(|(offset, slots)| self.find_in_window(slots, bytes, bit + offset, value))
    }

    /// Returns the first bit of the first slot that holds `value`, in the window that begins at `bit`.
    #[inline(always)]
    fn find_in_window(&self, slots: Fields, bytes: &[u8], bit: u64, value: u32) -> Option<u64> {
        let marks = slots.equal(bits::word(bytes, bit), value);
        // A mark is the highest bit of its slot.
        (marks != 0).then(|| bit + u64::from(marks.trailing_zeros() + 1 - self.slot_bits()))
    }
}

/// A single table, bound to its bytes and to instructions for one operation. Slot j of bucket i is the field of f bits at bit
/// (i·b + j)·f.
struct Plain<'a, B, I> {
    geometry: &'a SingleGeometry,
    bytes: B,
    instructions: I,
}

impl<B: Deref<Target = [u8]>, I> Plain<'_, B, I> {
    /// Counts the slots that hold `value`; 0 counts empty slots.
    #[inline(always)]
    fn count(&self, bucket: u64, value: u32) -> u64 {
        self.geometry.fold(&self.bytes, bucket, value, |count, marks| count + u64::from(marks.count_ones()))
    }

    #[inline(always)]
    fn holds(&self, bucket: u64, value: u32) -> bool {
        self.geometry.fold(&self.bytes, bucket, value, |all, marks| all | marks) != 0
    }
}

impl<B: DerefMut<Target = [u8]>, I> Plain<'_, B, I> {
    /// Changes the first slot that holds `old` to `new`. The value 0 is an empty slot. Returns false if no slot holds `old`.
    #[inline(always)]
    fn change(&mut self, bucket: u64, old: u32, new: u32) -> bool {
        let slot = self.geometry.find(&self.bytes, bucket, old);
        if let Some(slot) = slot {
            bits::set(&mut self.bytes, slot, self.geometry.slot_bits(), new.into());
        }
        slot.is_some()
    }
}

impl<B: Deref<Target = [u8]>, I: Instructions> Table for Plain<'_, B, I> {
    type Slot = u32;
    type Values = Values<u32>;

    #[inline(always)]
    fn contains(&self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        self.geometry.contains(&self.bytes, buckets, fingerprint.get())
    }

    #[inline(always)]
    fn values(&self, bucket: u64) -> Values<u32> {
        let (first, f, b) = (self.geometry.bit(bucket), self.geometry.slot_bits(), self.geometry.bucket_size());
        let mut values = Values { slots: [0; MAX_SLOTS], len: b as usize };
        if self.geometry.has_one_window() {
            let word = bits::word(&self.bytes, first);
            for (value, slot) in values.slots.iter_mut().zip(0..b) {
                *value = bits::low_half(word >> (slot * f) & bits::mask(f));
            }
        } else {
            for (value, slot) in values.slots.iter_mut().zip(0..b) {
                *value = bits::get(&self.bytes, first + u64::from(slot * f), f);
            }
        }
        values
    }

    #[inline(always)]
    fn has_room(&self, bucket: u64) -> bool {
        self.holds(bucket, 0)
    }

    #[inline(always)]
    fn prefetch(&self, bucket: u64) {
        self.instructions.prefetch(&self.bytes, index(self.geometry.bit(bucket) / 8));
    }

    #[inline(always)]
    fn taken(&self, buckets: Range<u64>, low: Option<Fingerprint>) -> Option<u64> {
        if let Some(low) = low
            && buckets.clone().fold(0, |any, bucket| any | self.geometry.without(&self.bytes, bucket, low.get())) != 0
        {
            return None;
        }
        Some(buckets.map(|bucket| u64::from(self.geometry.bucket_size()) - self.count(bucket, 0)).sum())
    }
}

impl<B: DerefMut<Target = [u8]>, I: Instructions> TableMut for Plain<'_, B, I> {
    #[inline(always)]
    fn insert(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        let emptier = select_unpredictable(self.count(second, 0) > self.count(first, 0), second, first);
        self.change(emptier, 0, fingerprint.get())
    }

    #[inline(always)]
    fn remove(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        let holder = select_unpredictable(self.holds(first, fingerprint.get()), first, second);
        self.change(holder, fingerprint.get(), 0)
    }

    #[inline(always)]
    fn replace(&mut self, bucket: u64, old: Option<Fingerprint>, new: Option<Fingerprint>) -> bool {
        self.change(bucket, old.map_or(0, Fingerprint::get), new.map_or(0, Fingerprint::get))
    }

    #[inline(always)]
    fn outlined<C: Change>(&mut self, change: C) -> C::Output {
        self.instructions.outlined(self, change)
    }
}

/// The single table as a [`Form`].
pub(crate) struct Single;

impl Form for Single {
    type Geometry = SingleGeometry;

    #[inline(always)]
    fn read<I: Instructions, R: Read>(geometry: &SingleGeometry, bytes: &[u8], instructions: I, read: R) -> R::Output {
        read.run(&Plain { geometry, bytes, instructions })
    }

    #[inline(always)]
    fn change<I: Instructions, C: Change>(geometry: &SingleGeometry, bytes: &mut [u8], instructions: I, change: C) -> C::Output {
        change.run(&mut Plain { geometry, bytes, instructions })
    }
}
