//! The item list of a small partition. Before a partition has tables, it keeps the bits that tables would know of its items, as a
//! sorted list of [keys](ClassKey). Each key is listed once: extra copies are counted beside the list, as they are beside tables.
//!
//! A key has about 33 bits, and in a list of a thousand keys, neighbors mostly share their first ten bits. The list is Elias-Fano
//! coded: the last bytes of each key are stored unchanged, and the high bits of all keys together in unary.
//!
//! ```text
//! for each value of the high bits: a one for each key that has it, and a zero │ the last bytes of each key
//! ```
//!
//! A thousand items take a tenth less than in the fullest table. Snapshots store keys as whole numbers.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::{
    bits::{index, wide},
    storage::{OutOfMemory, reserve_exact, reserved, shrink_to},
    table::copies::{ClassKey, low_word},
};

/// The bytes of a decoded key. A list stores fewer.
const KEY_BYTES: usize = size_of::<ClassKey>();

/// The smallest step in which memory grows, in bytes.
const MIN_STEP: usize = 8;

/// A longer list grows in steps of a 32nd to a 16th of its bytes.
const STEP_DIVISOR: usize = 32;

/// The layout of a list.
#[derive(Clone, Copy)]
struct Layout {
    items: usize,
    key_bits: u32,
    /// The bytes of each key that are stored unchanged.
    low_bytes: u32,
}

impl Layout {
    /// Returns a layout that is short and fast to read.
    fn new(key_bits: u32, items: usize) -> Self {
        let mut low_bytes = key_bits.div_ceil(8);
        // Drops a byte of each key while that adds at most half as many bits in unary as it saves: lookups scan those bits.
        while low_bytes > 0 && 4 * wide(items) >= 1_u64.unbounded_shl(key_bits - 8 * (low_bytes - 1)) {
            low_bytes -= 1;
        }
        Self { items, key_bits, low_bytes }
    }

    fn low_bytes(self) -> usize {
        index(self.low_bytes.into())
    }

    /// Returns the bytes of the unary part, which comes first.
    fn high_bytes(self) -> usize {
        let values = 1_usize << self.key_bits.saturating_sub(8 * self.low_bytes);
        (self.items + values).div_ceil(8)
    }

    fn bytes(self) -> usize {
        self.high_bytes() + self.items * self.low_bytes()
    }

    /// Returns the bytes to allocate. They depend on the item count alone, not on the history of the list.
    fn capacity(self) -> usize {
        let bytes = self.bytes();
        bytes.next_multiple_of((bytes / STEP_DIVISOR).next_power_of_two().max(MIN_STEP))
    }
}

/// A sorted, compressed list of keys.
#[derive(Clone)]
pub(crate) struct SmallList {
    bytes: Vec<u8>,
    items: u32,
    /// The `low_bytes` of the [`Layout`]: those of the best layout, unless a removal found no memory to change it.
    low_bytes: u8,
    key_bits: u8,
}

/// The position of a key, or the position at which to insert it.
struct Found {
    /// The number of smaller keys.
    rank: usize,
    /// The position of its one in the unary part.
    one: usize,
    is_present: bool,
}

impl SmallList {
    /// Returns an empty list of keys with `key_bits` bits.
    pub fn new(key_bits: u32) -> Self {
        let ([low_bytes, ..], [key_bits, ..]) = (Layout::new(key_bits, 0).low_bytes.to_le_bytes(), key_bits.to_le_bytes());
        Self { bytes: Vec::new(), items: 0, low_bytes, key_bits }
    }

    /// Returns a list of these keys, which must be in order.
    pub fn from_sorted(key_bits: u32, mut keys: impl ExactSizeIterator<Item = ClassKey>) -> Result<Self, OutOfMemory> {
        Self::build(key_bits, keys.len(), &mut keys)
    }

    /// Returns a list of `items` keys, which must be in order. Compiled once, not for each iterator.
    fn build(key_bits: u32, items: usize, keys: &mut dyn Iterator<Item = ClassKey>) -> Result<Self, OutOfMemory> {
        let mut list = Self::new(key_bits);
        if items == 0 {
            return Ok(list);
        }
        let layout = Layout::new(key_bits, items);
        list.bytes = reserved(layout.capacity())?;
        list.bytes.resize(layout.bytes(), 0);
        [list.low_bytes, ..] = layout.low_bytes.to_le_bytes();
        for (rank, key) in keys.take(items).enumerate() {
            list.set_one(list.high(key) + rank);
            list.set_low(layout.high_bytes(), rank, key);
            list.items += 1;
        }
        debug_assert_eq!(list.len(), items);
        Ok(list)
    }

    pub fn len(&self) -> usize {
        index(self.items.into())
    }

    /// Returns a copy of equal capacity, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut bytes = reserved(self.bytes.capacity())?;
        bytes.extend_from_slice(&self.bytes);
        Ok(Self { bytes, ..*self })
    }

    pub fn size_in_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the bytes that a list of this many keys allocates.
    pub fn bytes_for(&self, items: usize) -> usize {
        if items == 0 { 0 } else { Layout::new(self.key_bits.into(), items).capacity() }
    }

    pub fn contains(&self, key: ClassKey) -> bool {
        self.items > 0 && self.find(key).is_present
    }

    /// Returns all keys in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = ClassKey> + Clone {
        let (high_bytes, low_bits, mask) = (self.layout().high_bytes(), 8 * u32::from(self.low_bytes), self.low_mask());
        let mut high = 0;
        (0..self.len()).map(move |rank| {
            while !self.is_one(high + rank) {
                high += 1;
            }
            ClassKey::from(wide(high)) << low_bits | self.low(high_bytes, rank) & mask
        })
    }

    /// Inserts an absent key. If memory cannot be allocated, nothing changes.
    pub fn insert(&mut self, key: ClassKey) -> Result<(), OutOfMemory> {
        let after = Layout::new(self.key_bits.into(), self.len() + 1);
        if self.items == 0 || after.low_bytes != u32::from(self.low_bytes) {
            let is_before = |other: &ClassKey| *other < key;
            let mut keys = self.keys().take_while(is_before).chain([key]).chain(self.keys().skip_while(is_before));
            let longer = Self::build(self.key_bits.into(), after.items, &mut keys)?;
            drop(keys);
            *self = longer;
            return Ok(());
        }
        let (Found { rank, one, .. }, before) = (self.find(key), self.layout());
        reserve_exact(&mut self.bytes, after.capacity() - before.bytes())?;
        self.bytes.resize(after.bytes(), 0);
        let (high_bytes, new_high_bytes, low_bytes) = (before.high_bytes(), after.high_bytes(), after.low_bytes());
        // Moves bytes starting from the end, so that none is overwritten before it has moved.
        let low_at = |high_bytes: usize, rank: usize| high_bytes + rank * low_bytes;
        self.bytes.copy_within(low_at(high_bytes, rank)..before.bytes(), low_at(new_high_bytes, rank + 1));
        self.bytes.copy_within(high_bytes..low_at(high_bytes, rank), new_high_bytes);
        self.bytes[high_bytes..new_high_bytes].fill(0);
        shift_up(&mut self.bytes[..new_high_bytes], one);
        self.set_one(one);
        self.set_low(new_high_bytes, rank, key);
        self.items += 1;
        Ok(())
    }

    /// Removes a key. Returns true if it was in the list.
    pub fn remove(&mut self, key: ClassKey) -> bool {
        if !self.contains(key) {
            return false;
        }
        let (Found { rank, one, .. }, before) = (self.find(key), self.layout());
        let after = Layout { items: before.items - 1, ..before };
        let (high_bytes, new_high_bytes, low_bytes) = (before.high_bytes(), after.high_bytes(), after.low_bytes());
        shift_down(&mut self.bytes[..high_bytes], one);
        let low_at = |high_bytes: usize, rank: usize| high_bytes + rank * low_bytes;
        self.bytes.copy_within(high_bytes..low_at(high_bytes, rank), new_high_bytes);
        self.bytes.copy_within(low_at(high_bytes, rank + 1)..before.bytes(), low_at(new_high_bytes, rank));
        self.bytes.truncate(after.bytes());
        self.items -= 1;
        self.shorten();
        true
    }

    /// Frees memory that is no longer needed. Keeps the layout if there is no memory for a shorter one.
    fn shorten(&mut self) {
        let shortest = Layout::new(self.key_bits.into(), self.len());
        if self.items == 0 {
            *self = Self::new(self.key_bits.into());
        } else if shortest.low_bytes == u32::from(self.low_bytes) {
            shrink_to(&mut self.bytes, shortest.capacity());
        } else if let Ok(shorter) = Self::from_sorted(self.key_bits.into(), self.keys()) {
            *self = shorter;
        }
    }

    fn layout(&self) -> Layout {
        Layout { items: self.len(), key_bits: self.key_bits.into(), low_bytes: self.low_bytes.into() }
    }

    /// Returns the high bits of a key: those before its last bytes.
    fn high(&self, key: ClassKey) -> usize {
        index(low_word(key >> (8 * u32::from(self.low_bytes))))
    }

    /// Returns the mask of a key's last bytes.
    fn low_mask(&self) -> ClassKey {
        !(ClassKey::MAX << (8 * u32::from(self.low_bytes)))
    }

    /// Finds a key. The list must not be empty.
    fn find(&self, key: ClassKey) -> Found {
        let (high_bytes, high, mask) = (self.layout().high_bytes(), self.high(key), self.low_mask());
        let start = if high == 0 { 0 } else { self.select_zero(0, high - 1) + 1 };
        let mut range = start - high..self.select_zero(start, 0) - high;
        while !range.is_empty() {
            let middle = range.start.midpoint(range.end);
            match (self.low(high_bytes, middle) & mask).cmp(&(key & mask)) {
                Ordering::Less => range.start = middle + 1,
                Ordering::Equal => return Found { rank: middle, one: middle + high, is_present: true },
                Ordering::Greater => range.end = middle,
            }
        }
        Found { rank: range.start, one: range.start + high, is_present: false }
    }

    /// Returns the position of the zero with this index, counted from position `from`. Each value of the high bits has one zero.
    fn select_zero(&self, from: usize, mut zero: usize) -> usize {
        let (mut at, mut skipped) = (from / 8, !(u64::MAX << (from % 8)));
        while at < self.bytes.len() {
            let mut zeros = !(self.word(at) | skipped);
            let here = index(zeros.count_ones().into());
            if zero < here {
                let mut position = 8 * at;
                for half in [32, 16] {
                    let in_half = index((zeros & ((1 << half) - 1)).count_ones().into());
                    if zero >= in_half {
                        (zero, zeros, position) = (zero - in_half, zeros >> half, position + half);
                    }
                }
                zeros = (0..zero).fold(zeros, |zeros, _| zeros & (zeros - 1));
                return position + index(zeros.trailing_zeros().into());
            }
            (zero, at, skipped) = (zero - here, at + 8, 0);
        }
        8 * at
    }

    /// Returns the eight bytes at `at`, with ones beyond the last byte.
    fn word(&self, at: usize) -> u64 {
        match self.bytes.get(at..).and_then(<[u8]>::first_chunk) {
            Some(bytes) => u64::from_le_bytes(*bytes),
            None => self.bytes[at..].iter().rev().fold(u64::MAX, |word, &byte| word << 8 | u64::from(byte)),
        }
    }

    fn is_one(&self, position: usize) -> bool {
        self.bytes[position / 8] >> (position % 8) & 1 == 1
    }

    fn set_one(&mut self, position: usize) {
        self.bytes[position / 8] |= 1 << (position % 8);
    }

    /// Returns the last bytes of the key with this rank. The unary part takes `high_bytes` bytes. The bits above are arbitrary.
    fn low(&self, high_bytes: usize, rank: usize) -> ClassKey {
        let low_bytes = usize::from(self.low_bytes);
        let start = high_bytes + rank * low_bytes;
        if let Some(bytes) = self.bytes.get(start..).and_then(<[u8]>::first_chunk) {
            return ClassKey::from_le_bytes(*bytes);
        }
        let mut bytes = [0; KEY_BYTES];
        bytes[..low_bytes].copy_from_slice(&self.bytes[start..start + low_bytes]);
        ClassKey::from_le_bytes(bytes)
    }

    fn set_low(&mut self, high_bytes: usize, rank: usize, key: ClassKey) {
        let low_bytes = usize::from(self.low_bytes);
        self.bytes[high_bytes + rank * low_bytes..][..low_bytes].copy_from_slice(&key.to_le_bytes()[..low_bytes]);
    }
}

/// The checks of [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl SmallList {
    pub fn assert_consistent(&self) {
        let keys = self.keys();
        assert!(keys.clone().zip(keys.clone().skip(1)).all(|(one, next)| one < next), "keys are not in order");
        assert!(keys.clone().all(|key| self.contains(key)), "a key is not found");
        assert_eq!(keys.count(), self.len(), "the number of keys is not the stored one");
        assert!(self.bytes.is_empty() == (self.items == 0), "an empty list has memory, or a list with keys has none");
    }
}

/// Inserts a zero at a bit position and moves the bits after it up by one. The last bit is lost.
fn shift_up(bytes: &mut [u8], position: usize) {
    let (bytes, below) = (&mut bytes[position / 8..], !(u8::MAX << (position % 8)));
    let mut carry = 0;
    for (at, byte) in bytes.iter_mut().enumerate() {
        let stays = if at == 0 { *byte & below } else { 0 };
        let moves = *byte ^ stays;
        (*byte, carry) = (moves << 1 | carry | stays, moves >> 7);
    }
}

/// Removes the bit at a position and moves the bits after it down by one. The last bit becomes zero.
fn shift_down(bytes: &mut [u8], position: usize) {
    let (bytes, below) = (&mut bytes[position / 8..], !(u8::MAX << (position % 8)));
    for at in 0..bytes.len() {
        let next = bytes.get(at + 1).map_or(0, |next| next << 7);
        let stays = if at == 0 { bytes[0] & below } else { 0 };
        let moved = bytes[at] >> 1 & if at == 0 { !below } else { u8::MAX };
        bytes[at] = moved | next | stays;
    }
}

/// The item list of a partition in a snapshot: keys as whole numbers, in order. Corrupt bytes give wrong results, but no panic.
#[derive(Clone, Copy)]
pub(crate) struct SmallListInSnapshot<'a> {
    bytes: &'a [u8],
    key_bytes: usize,
}

impl<'a> SmallListInSnapshot<'a> {
    pub fn new(bytes: &'a [u8], key_bytes: usize) -> Self {
        Self { bytes, key_bytes }
    }

    pub fn keys(self) -> impl ExactSizeIterator<Item = ClassKey> + Clone + use<'a> {
        self.bytes.chunks_exact(self.key_bytes).map(decode)
    }

    pub fn contains(self, key: ClassKey) -> bool {
        let mut range = 0..self.bytes.len() / self.key_bytes;
        while !range.is_empty() {
            let middle = range.start.midpoint(range.end);
            match decode(&self.bytes[middle * self.key_bytes..][..self.key_bytes]).cmp(&key) {
                Ordering::Less => range.start = middle + 1,
                Ordering::Equal => return true,
                Ordering::Greater => range.end = middle,
            }
        }
        false
    }
}

fn decode(bytes: &[u8]) -> ClassKey {
    let mut key = [0; KEY_BYTES];
    key[..bytes.len()].copy_from_slice(bytes);
    ClassKey::from_le_bytes(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use proptest::prelude::*;

    fn check(list: &SmallList, model: &BTreeSet<ClassKey>) {
        list.assert_consistent();
        assert!(list.keys().eq(model.iter().copied()) && list.len() == model.len());
        assert_eq!(list.size_in_bytes(), list.bytes_for(list.len()));
        let read = SmallList::from_sorted(list.key_bits.into(), list.keys()).expect("memory is available");
        let clone = list.try_clone().expect("memory is available");
        assert!([read, clone].iter().all(|other| other.items == list.items && other.bytes == list.bytes));
        let key_bytes = usize::from(list.key_bits).div_ceil(8);
        let bytes: Vec<u8> = list.keys().flat_map(|key| key.to_le_bytes().into_iter().take(key_bytes)).collect();
        let in_snapshot = SmallListInSnapshot::new(&bytes, key_bytes);
        assert!(in_snapshot.keys().eq(list.keys()));
        assert!(model.iter().all(|&key| in_snapshot.contains(key) && list.contains(key)));
        let absent = |key: &ClassKey| !model.contains(key) && key >> list.key_bits == 0;
        let others = model.iter().flat_map(|&key| [key ^ 1, key ^ 2, key ^ 1 << 8]);
        assert!(others.filter(absent).all(|key| !list.contains(key) && !in_snapshot.contains(key)));
    }

    proptest! {
        /// Compares the list with a set. Keys are anywhere in the range, or close together at one of its ends.
        #[test]
        fn a_list_has_the_keys_of_a_set(
            key_bits in 7_u32..=90,
            operations in prop::collection::vec((0_u8..5, any::<ClassKey>()), 0..if cfg!(miri) { 30 } else { 1500 }),
        ) {
            let greatest = ClassKey::MAX >> (ClassKey::BITS - key_bits);
            let (mut list, mut model) = (SmallList::new(key_bits), BTreeSet::new());
            for (step, (kind, number)) in operations.into_iter().enumerate() {
                let key = match kind {
                    0 => number % 16,
                    1 => greatest - number % 16,
                    _ => number & greatest,
                };
                let present: Option<ClassKey> = model.range(key..).next().copied();
                match present.filter(|_| kind > 2 && step % 600 > 300) {
                    Some(key) => {
                        prop_assert!(list.remove(key) && model.remove(&key));
                    }
                    None => {
                        if model.insert(key) {
                            list.insert(key).expect("memory is available");
                        }
                    }
                }
                if step % 100 == 0 {
                    check(&list, &model);
                }
            }
            check(&list, &model);
            let keys: Vec<_> = list.keys().collect();
            for key in keys {
                prop_assert!(list.remove(key));
            }
            prop_assert!(!list.remove(0));
            check(&list, &BTreeSet::new());
        }
    }

    /// Tests keys of 33 bits, the default length.
    #[test]
    fn the_size_of_a_list_is_bounded() {
        let mut list = SmallList::new(33);
        for (items, most) in [(5, 24), (100, 416), (1000, 3328)] {
            while list.len() < items {
                let key = (list.len() as ClassKey).wrapping_mul(0x9e37_79b9_7f4a_7c15) & ((1 << 33) - 1);
                list.insert(key).expect("memory is available");
            }
            assert!(list.size_in_bytes() <= most, "{} bytes for {items} items", list.size_in_bytes());
        }
    }
}
