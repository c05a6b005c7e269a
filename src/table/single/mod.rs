//! The plain table: slots of f bits, one after the other, in no order. Any b, any f.

use core::{hint::select_unpredictable, ops::Range};

mod layout;

use super::{Corrupt, Fingerprint, Pair, Table, TableMut};
use crate::{bits, bits::index, params::Params, storage::Memory, storage::Storage};
use layout::Layout;

/// Slot j of bucket i is the f-bit field at bit (i·b + j)·f.
#[derive(Clone)]
pub(crate) struct Single<S = Memory> {
    layout: Layout,
    fingerprint_bits: u32,
    bucket_size: u32,
    memory: S,
}

/// Slots in the largest bucket.
const MAX_BUCKET_SIZE: usize = 16;

/// The slots of a bucket.
pub(crate) struct Values {
    slots: [u32; MAX_BUCKET_SIZE],
    len: usize,
}

impl AsRef<[u32]> for Values {
    #[inline]
    fn as_ref(&self) -> &[u32] {
        &self.slots[..self.len]
    }
}

impl<S: Storage> Single<S> {
    pub(super) fn new(params: &Params, memory: S) -> Self {
        let (f, b) = (params.fingerprint_bits(), params.bucket_size());
        Self { layout: Layout::new(f, b), fingerprint_bits: f, bucket_size: b, memory }
    }

    pub(super) fn storage(&self) -> &S {
        &self.memory
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// How many slots hold `value`, 0 being an empty one.
    #[inline]
    fn count(&self, bucket: u64, value: u32) -> u64 {
        self.layout.fold(&self.memory, bucket, value, |count, marks| count + u64::from(marks.count_ones()))
    }

    #[inline]
    fn holds(&self, bucket: u64, value: u32) -> bool {
        self.layout.fold(&self.memory, bucket, value, |all, marks| all | marks) != 0
    }
}

impl Single {
    /// Changes the first slot that holds `old` to `new`, 0 meaning an empty one. False if there is none.
    #[inline]
    fn change(&mut self, bucket: u64, old: u32, new: u32) -> bool {
        let slot = self.layout.find(&self.memory, bucket, old);
        if let Some(slot) = slot {
            bits::set(&mut self.memory, slot, self.fingerprint_bits, new.into());
        }
        slot.is_some()
    }
}

impl<S: Storage> Table for Single<S> {
    type Values = Values;

    #[inline]
    fn contains(&self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        self.holds(first, fingerprint.get()) | self.holds(second, fingerprint.get())
    }

    #[inline]
    fn values(&self, bucket: u64) -> Values {
        let first = self.layout.bit(bucket);
        let mut values = Values { slots: [0; MAX_BUCKET_SIZE], len: self.bucket_size as usize };
        for (value, slot) in values.slots.iter_mut().zip(0..self.bucket_size) {
            *value = bits::get(&self.memory, first + u64::from(slot * self.fingerprint_bits), self.fingerprint_bits);
        }
        values
    }

    #[inline]
    fn has_room(&self, bucket: u64) -> bool {
        self.holds(bucket, 0)
    }

    #[inline]
    fn position(&self, bucket: u64) -> usize {
        index(self.layout.bit(bucket) / 8)
    }

    fn taken(&self, buckets: Range<u64>) -> Option<u64> {
        Some(buckets.map(|bucket| u64::from(self.bucket_size) - self.count(bucket, 0)).sum())
    }

    /// Whatever the bits are, they are fingerprints.
    fn corrupt(&self, _: u64) -> Option<Corrupt> {
        None
    }

    #[inline]
    fn memory(&self) -> &[u8] {
        &self.memory
    }
}

impl TableMut for Single {
    #[inline]
    fn insert(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        let emptier = select_unpredictable(self.count(second, 0) > self.count(first, 0), second, first);
        self.change(emptier, 0, fingerprint.get())
    }

    #[inline]
    fn remove(&mut self, (first, second): Pair, fingerprint: Fingerprint) -> bool {
        let holder = select_unpredictable(self.holds(first, fingerprint.get()), first, second);
        self.change(holder, fingerprint.get(), 0)
    }

    #[inline]
    fn put(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
        self.change(bucket, 0, fingerprint.get())
    }

    #[inline]
    fn replace(&mut self, bucket: u64, old: Fingerprint, new: Fingerprint) {
        let found = self.change(bucket, old.get(), new.get());
        debug_assert!(found);
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}
