//! The single table: contiguous slots of f bits, unsorted. Any bucket size, any fingerprint length.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod deep;
mod geometry;

use core::{
    hint::select_unpredictable,
    ops::{Deref, DerefMut, Range},
};

use super::{Change, Corrupt, Fingerprint, Form, Instructions, MOST_SLOTS, Pair, Portable, Read, Table, TableMut};
use crate::bits::{self, index};
pub(crate) use {deep::SingleDeep, geometry::SingleGeometry};

/// A single table, bound to its bytes and to instructions for one operation. Slot j of bucket i is the f-bit field at bit (i·b +
/// j)·f.
pub(crate) struct Plain<'a, B, I> {
    geometry: &'a SingleGeometry,
    bytes: B,
    instructions: I,
}

/// The values of the slots of a bucket, in order; 0 for empty slots.
pub(crate) struct Values {
    slots: [u32; MOST_SLOTS],
    len: usize,
}

impl AsRef<[u32]> for Values {
    #[inline(always)]
    fn as_ref(&self) -> &[u32] {
        &self.slots[..self.len]
    }
}

impl<B: Deref<Target = [u8]>, I> Plain<'_, B, I> {
    /// The number of slots that hold `value`; 0 counts empty slots.
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
    /// Changes the first slot that holds `old` to `new`; 0 is an empty slot. Returns false if no slot holds `old`.
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
    type Values = Values;

    #[inline(always)]
    fn contains(&self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        self.geometry.contains(&self.bytes, buckets, fingerprint.get())
    }

    #[inline(always)]
    fn values(&self, bucket: u64) -> Values {
        let (first, f, b) = (self.geometry.bit(bucket), self.geometry.slot_bits(), self.geometry.bucket_size());
        let mut values = Values { slots: [0; MOST_SLOTS], len: b as usize };
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

    /// Any bits are valid fingerprints, if there are some of the low ones.
    #[inline(always)]
    fn corrupt(&self, bucket: u64, low: Option<Fingerprint>) -> Option<Corrupt> {
        self.taken(bucket..bucket + 1, low).is_none().then_some(Corrupt::Low)
    }

    #[inline(always)]
    fn len_in_bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl<B: DerefMut<Target = [u8]>, I: Instructions> TableMut for Plain<'_, B, I> {
    type Walked<'a>
        = Plain<'a, &'a mut [u8], Portable>
    where
        Self: 'a;

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
    fn replace(&mut self, bucket: u64, old: Option<Fingerprint>, new: Fingerprint) -> bool {
        self.change(bucket, old.map_or(0, Fingerprint::get), new.get())
    }

    #[inline(always)]
    fn walked(&mut self) -> Self::Walked<'_> {
        Plain { geometry: self.geometry, bytes: &mut self.bytes, instructions: Portable }
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
