//! Slots that have only the lower bits of their fingerprints: the upper ones are in a column behind the table.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::{
    hint::select_unpredictable,
    ops::{Deref, DerefMut, Range},
};

use super::{SingleGeometry, Values};
use crate::{
    bits::{self, index},
    table::{Change, Column, Corrupt, Fingerprint, Form, Instructions, MOST_SLOTS, Pair, Portable, Read, Table, TableMut},
};

/// A single table with a column, bound to its bytes and to instructions for one operation.
struct PlainDeep<'a, B, I> {
    geometry: &'a SingleGeometry,
    column: Column,
    bytes: B,
    instructions: I,
}

impl<B: Deref<Target = [u8]>, I> PlainDeep<'_, B, I> {
    /// The first bits of a slot, in the table and in the column.
    #[inline(always)]
    fn slot(&self, bucket: u64, slot: u32) -> (u64, u64) {
        let (b, f) = (self.geometry.bucket_size(), self.geometry.slot_bits());
        let number = bucket * u64::from(b) + u64::from(slot);
        (number * u64::from(f), self.column.first_bit + number * u64::from(self.column.width()))
    }

    #[inline(always)]
    fn value(&self, bucket: u64, slot: u32) -> u32 {
        let (low, upper) = self.slot(bucket, slot);
        let upper = u64::from(bits::get(&self.bytes, upper, self.column.width()));
        bits::get(&self.bytes, low, self.geometry.slot_bits()) | bits::low_half(upper << self.geometry.slot_bits())
    }

    #[inline(always)]
    fn find(&self, bucket: u64, value: u32) -> Option<u32> {
        (0..self.geometry.bucket_size()).find(|&slot| self.value(bucket, slot) == value)
    }

    /// The number of empty slots. A fingerprint has bits in the table, so that this alone tells.
    #[inline(always)]
    fn free(&self, bucket: u64) -> u64 {
        self.geometry.fold(&self.bytes, bucket, 0, |count, marks| count + u64::from(marks.count_ones()))
    }

    #[inline(always)]
    fn first_free(&self, bucket: u64) -> Option<u32> {
        let bit = self.geometry.find(&self.bytes, bucket, 0)? - self.geometry.bit(bucket);
        Some(bits::low_half(bit) / self.geometry.slot_bits())
    }
}

impl<B: DerefMut<Target = [u8]>, I> PlainDeep<'_, B, I> {
    /// Changes a slot to this value; 0 is an empty slot. Returns false if there is no slot.
    #[inline(always)]
    fn set(&mut self, bucket: u64, slot: Option<u32>, new: u32) -> bool {
        let Some(slot) = slot else { return false };
        let (low, upper) = self.slot(bucket, slot);
        let (f, new) = (self.geometry.slot_bits(), u64::from(new));
        bits::set(&mut self.bytes, low, f, new);
        bits::set(&mut self.bytes, upper, self.column.width(), new >> f);
        true
    }
}

impl<B: Deref<Target = [u8]>, I: Instructions> Table for PlainDeep<'_, B, I> {
    type Values = Values;

    #[inline(always)]
    fn contains(&self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        self.find(first, fingerprint.get()).or_else(|| self.find(second, fingerprint.get())).is_some()
    }

    #[inline(always)]
    fn values(&self, bucket: u64) -> Values {
        let b = self.geometry.bucket_size();
        let mut values = Values { slots: [0; MOST_SLOTS], len: b as usize };
        for (value, slot) in values.slots.iter_mut().zip(0..b) {
            *value = self.value(bucket, slot);
        }
        values
    }

    #[inline(always)]
    fn has_room(&self, bucket: u64) -> bool {
        self.free(bucket) > 0
    }

    #[inline(always)]
    fn prefetch(&self, bucket: u64) {
        let (low, upper) = self.slot(bucket, 0);
        self.instructions.prefetch(&self.bytes, index(low / 8));
        self.instructions.prefetch(&self.bytes, index(upper / 8));
    }

    #[inline(always)]
    fn taken(&self, buckets: Range<u64>, low: Option<Fingerprint>) -> Option<u64> {
        let low = low.map_or(u32::MAX, Fingerprint::get);
        let mut taken = 0;
        for bucket in buckets {
            let values = self.values(bucket);
            let stored = || values.as_ref().iter().filter(|&&value| value != 0);
            if stored().any(|value| value & low == 0) {
                return None;
            }
            taken += stored().count() as u64;
        }
        Some(taken)
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

impl<B: DerefMut<Target = [u8]>, I: Instructions> TableMut for PlainDeep<'_, B, I> {
    type Walked<'a>
        = PlainDeep<'a, &'a mut [u8], Portable>
    where
        Self: 'a;

    #[inline(always)]
    fn insert(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        let emptier = select_unpredictable(self.free(second) > self.free(first), second, first);
        self.replace(emptier, None, fingerprint)
    }

    #[inline(always)]
    fn remove(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        self.set(first, self.find(first, fingerprint.get()), 0) || self.set(second, self.find(second, fingerprint.get()), 0)
    }

    #[inline(always)]
    fn replace(&mut self, bucket: u64, old: Option<Fingerprint>, new: Fingerprint) -> bool {
        let slot = old.map_or_else(|| self.first_free(bucket), |old| self.find(bucket, old.get()));
        self.set(bucket, slot, new.get())
    }

    #[inline(always)]
    fn walked(&mut self) -> Self::Walked<'_> {
        PlainDeep { geometry: self.geometry, column: self.column, bytes: &mut self.bytes, instructions: Portable }
    }

    #[inline(always)]
    fn outlined<C: Change>(&mut self, change: C) -> C::Output {
        self.instructions.outlined(self, change)
    }
}

/// The single table with a column as a [`Form`].
pub(crate) struct SingleDeep;

impl Form for SingleDeep {
    type Geometry = (SingleGeometry, Column);

    #[inline(always)]
    fn read<I: Instructions, R: Read>((geometry, column): &Self::Geometry, bytes: &[u8], instructions: I, read: R) -> R::Output {
        read.run(&PlainDeep { geometry, column: *column, bytes, instructions })
    }

    #[inline(always)]
    fn change<I: Instructions, C: Change>(
        (geometry, column): &Self::Geometry,
        bytes: &mut [u8],
        instructions: I,
        change: C,
    ) -> C::Output {
        change.run(&mut PlainDeep { geometry, column: *column, bytes, instructions })
    }
}
