//! Writes Go's files bit by bit, without code of the library.

#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]

use bitvec::{bitvec, field::BitField, order::Lsb0, vec::BitVec};

#[derive(Clone, Debug, Default)]
pub(crate) struct GoFile {
    /// The slots of each bucket, in order: b in a single table, four in a packed one.
    pub(crate) buckets: Vec<Vec<u32>>,
    pub(crate) f: usize,
    pub(crate) victim: (u32, u32, u8),
}

impl GoFile {
    fn start(&self, kind: u8) -> Vec<u8> {
        let items = self.buckets.iter().flatten().filter(|&&value| value != 0).count();
        let (bucket, fingerprint, is_used) = self.victim;
        let numbers = [u32::try_from(items).expect("a small number"), bucket, fingerprint];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        bytes.extend([is_used, kind]);
        bytes
    }

    fn bucket_count(&self) -> [u8; 4] {
        u32::try_from(self.buckets.len()).expect("a small number").to_le_bytes()
    }

    pub(crate) fn single(&self) -> Vec<u8> {
        let mut bytes = self.start(0);
        bytes.extend([self.buckets[0].len() as u8, self.f as u8]);
        bytes.extend(self.bucket_count());
        let mut bits: BitVec<u8, Lsb0> = BitVec::new();
        for &value in self.buckets.iter().flatten() {
            let mut slot = bitvec![u8, Lsb0; 0; self.f];
            slot.store_le(value);
            bits.extend_from_bitslice(&slot);
        }
        bits.set_uninitialized(false);
        bytes.extend(bits.into_vec());
        bytes
    }

    /// Writes a packed table. The slots of a bucket are sorted by their low nibbles; slots with equal nibbles keep their order.
    pub(crate) fn packed(&self) -> Vec<u8> {
        let mut bytes = self.start(1);
        bytes.push(self.f as u8);
        bytes.extend(self.bucket_count());
        let mut bits: BitVec<u8, Lsb0> = BitVec::new();
        for slots in &self.buckets {
            let mut slots = slots.clone();
            slots.sort_by_key(|value| value & 15);
            let mut bucket = bitvec![u8, Lsb0; 0; 4 * (self.f - 1)];
            bucket[..12].store_le(codeword(&slots));
            if self.f > 4 {
                for (field, value) in bucket[12..].chunks_exact_mut(self.f - 4).zip(slots) {
                    field.store_le(value >> 4);
                }
            }
            bits.extend_from_bitslice(&bucket);
        }
        bits.set_uninitialized(false);
        bytes.extend(bits.into_vec());
        bytes.extend([0; 7]);
        bytes
    }
}

/// Returns the number of ascending quadruples of nibbles before the one of these slots.
fn codeword(slots: &[u32]) -> u16 {
    let word = slots.iter().fold(0, |word, value| word << 4 | value & 15);
    let ascends = |word: u32| [12, 8, 4, 0].map(|shift| word >> shift & 15).is_sorted();
    (0..word).filter(|&word| ascends(word)).count() as u16
}
