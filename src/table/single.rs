//! The plain table: slots of f bits, one after the other, in no order. Any b, any f.

use alloc::vec::Vec;

use super::{Bucket, Fingerprint, Table};
use crate::{bits, params::Params};

/// Slot j of bucket i is the f-bit field at bit (i·b + j)·f.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Single {
    fingerprint_bits: u32,
    bucket_size: u32,
    bytes: Vec<u8>,
}

impl Single {
    pub(super) fn new(params: &Params, bytes: Vec<u8>) -> Self {
        Self { fingerprint_bits: params.fingerprint_bits(), bucket_size: params.bucket_size(), bytes }
    }

    #[inline]
    fn bit(&self, bucket: u64, slot: u32) -> u64 {
        (bucket * u64::from(self.bucket_size) + u64::from(slot)) * u64::from(self.fingerprint_bits)
    }

    #[inline]
    fn get(&self, bucket: u64, slot: u32) -> u32 {
        bits::get(&self.bytes, self.bit(bucket, slot), self.fingerprint_bits)
    }

    #[inline]
    fn set(&mut self, bucket: u64, slot: u32, value: u32) {
        let bit = self.bit(bucket, slot);
        bits::set(&mut self.bytes, bit, self.fingerprint_bits, value.into());
    }

    /// Changes the first slot that holds `old` to `new`, 0 meaning an empty one. False if there is none.
    #[inline]
    fn change(&mut self, bucket: u64, old: u32, new: u32) -> bool {
        let slot = (0..self.bucket_size).find(|&slot| self.get(bucket, slot) == old);
        if let Some(slot) = slot {
            self.set(bucket, slot, new);
        }
        slot.is_some()
    }
}

impl Table for Single {
    #[inline]
    fn contains(&self, bucket: u64, fingerprint: Fingerprint) -> bool {
        (0..self.bucket_size).any(|slot| self.get(bucket, slot) == fingerprint.get())
    }

    #[inline]
    fn bucket(&self, bucket: u64) -> Bucket {
        Bucket::new((0..self.bucket_size).map(|slot| self.get(bucket, slot)))
    }

    #[inline]
    fn taken(&self, bucket: u64) -> u32 {
        (0..self.bucket_size).map(|slot| u32::from(self.get(bucket, slot) != 0)).sum()
    }

    #[inline]
    fn has_room(&self, bucket: u64) -> bool {
        (0..self.bucket_size).any(|slot| self.get(bucket, slot) == 0)
    }

    #[inline]
    fn insert(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
        self.change(bucket, 0, fingerprint.get())
    }

    #[inline]
    fn remove(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
        self.change(bucket, fingerprint.get(), 0)
    }

    #[inline]
    fn replace(&mut self, bucket: u64, old: Fingerprint, new: Fingerprint) {
        let found = self.change(bucket, old.get(), new.get());
        debug_assert!(found);
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}
