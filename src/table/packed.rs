//! The semi-sorted table of the paper (section 5.2): four fingerprints, kept in order, cost one bit less each.
//!
//! Bucket i begins at bit i·4·(f−1): 12 bits of codeword for the four low nibbles, then the four high parts of f−4 bits,
//! in the order of the fingerprints. The order is total — by the low nibble, then by the high part — so that a bucket's
//! bits follow from what is in it, however it got there.

use alloc::vec::Vec;

use super::{Bucket, Corrupt, Fingerprint, Table};
use crate::{
    bits,
    codebook::{self, CODEWORD_BITS, CODEWORDS, CODEWORDS_WITH_ZERO},
    params::Params,
};

/// Slots of a packed bucket: the codebook is one of quadruples.
pub(crate) const SLOTS: u32 = 4;

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Packed {
    /// Bits of the high part, f − 4.
    high_bits: u32,
    bytes: Vec<u8>,
}

/// A fingerprint with its low nibble moved to the top: the integers' order is the order of the slots. 0 is empty.
type Key = u32;

#[inline]
fn key(fingerprint: Fingerprint) -> Key {
    fingerprint.get().rotate_right(4)
}

/// Puts `key` in the place of the empty slot, which is the first.
#[inline]
fn insert(keys: &mut [Key; 4], key: Key) {
    let mut place = 0;
    while place < 3 && keys[place + 1] < key {
        keys[place] = keys[place + 1];
        place += 1;
    }
    keys[place] = key;
}

/// Empties the last slot that holds `key`. False if there is none.
#[inline]
fn remove(keys: &mut [Key; 4], key: Key) -> bool {
    let Some(place) = keys.iter().rposition(|&other| other == key) else {
        return false;
    };
    keys.copy_within(..place, 1);
    keys[0] = 0;
    true
}

impl Packed {
    pub(super) fn new(params: &Params, bytes: Vec<u8>) -> Self {
        Self { high_bits: params.fingerprint_bits() - 4, bytes }
    }

    #[inline]
    fn bit(&self, bucket: u64) -> u64 {
        bucket * u64::from(self.bucket_bits())
    }

    #[inline]
    fn bucket_bits(&self) -> u32 {
        CODEWORD_BITS + SLOTS * self.high_bits
    }

    #[inline]
    fn codeword(&self, bit: u64) -> u16 {
        #[expect(clippy::cast_possible_truncation, reason = "12 bits")]
        let codeword = bits::get(&self.bytes, bit, CODEWORD_BITS) as u16;
        codeword
    }

    #[inline]
    fn high(&self, bit: u64, slot: u32) -> u32 {
        bits::get(&self.bytes, bit + u64::from(CODEWORD_BITS + slot * self.high_bits), self.high_bits)
    }

    #[inline]
    fn keys(&self, bucket: u64) -> [Key; 4] {
        let bit = self.bit(bucket);
        let nibbles = u32::from(codebook::decode(self.codeword(bit)));
        [0, 1, 2, 3].map(|slot| (nibbles >> (4 * slot)) << 28 | self.high(bit, slot))
    }

    #[inline]
    fn set_keys(&mut self, bucket: u64, keys: [Key; 4]) {
        let codeword = codebook::encode(keys.map(|key| (key >> 28) as u8));
        let high = keys.iter().rev().fold(0, |high, key| high << self.high_bits | u128::from(key & (u32::MAX >> 4)));
        let (bit, width) = (self.bit(bucket), self.bucket_bits());
        bits::set(&mut self.bytes, bit, width, high << CODEWORD_BITS | u128::from(codeword));
    }
}

impl Table for Packed {
    /// Compares the low nibbles all at once; only where one agrees is its high part fetched.
    #[inline]
    fn contains(&self, bucket: u64, fingerprint: Fingerprint) -> bool {
        let bit = self.bit(bucket);
        let (low, high) = (fingerprint.get() & 15, fingerprint.get() >> 4);
        let differences = u32::from(codebook::decode(self.codeword(bit))) ^ (low * 0x1111);
        // Marks every nibble of zero, and perhaps one of 1 above it: the exact test follows.
        let mut marks = differences.wrapping_sub(0x1111) & !differences & 0x8888;
        while marks != 0 {
            let slot = marks.trailing_zeros() / 4;
            if (differences >> (4 * slot)).trailing_zeros() >= 4 && self.high(bit, slot) == high {
                return true;
            }
            marks &= marks - 1;
        }
        false
    }

    #[inline]
    fn bucket(&self, bucket: u64) -> Bucket {
        Bucket::new(self.keys(bucket).map(|key| key.rotate_left(4)))
    }

    #[inline]
    fn taken(&self, bucket: u64) -> u32 {
        // Empty slots come first, and most buckets have none: then there is nothing to decode.
        if self.has_room(bucket) { self.keys(bucket).iter().map(|&key| u32::from(key != 0)).sum() } else { SLOTS }
    }

    #[inline]
    fn has_room(&self, bucket: u64) -> bool {
        let bit = self.bit(bucket);
        self.codeword(bit) < CODEWORDS_WITH_ZERO && self.high(bit, 0) == 0
    }

    #[inline]
    fn insert(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
        let mut keys = self.keys(bucket);
        let room = keys[0] == 0;
        if room {
            insert(&mut keys, key(fingerprint));
            self.set_keys(bucket, keys);
        }
        room
    }

    #[inline]
    fn remove(&mut self, bucket: u64, fingerprint: Fingerprint) -> bool {
        let mut keys = self.keys(bucket);
        let found = remove(&mut keys, key(fingerprint));
        if found {
            self.set_keys(bucket, keys);
        }
        found
    }

    #[inline]
    fn replace(&mut self, bucket: u64, old: Fingerprint, new: Fingerprint) {
        let mut keys = self.keys(bucket);
        let found = remove(&mut keys, key(old));
        debug_assert!(found);
        insert(&mut keys, key(new));
        self.set_keys(bucket, keys);
    }

    fn check(&self, bucket: u64) -> Result<(), Corrupt> {
        let codeword = self.codeword(self.bit(bucket));
        if codeword >= CODEWORDS {
            return Err(Corrupt::Codeword(codeword));
        }
        if self.keys(bucket).is_sorted() { Ok(()) } else { Err(Corrupt::Order) }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}
