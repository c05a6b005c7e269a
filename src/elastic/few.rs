//! The small form of a partition: before it has tables, it keeps what these would know of its items, as a list of [keys](ClassKey)
//! in order. Each is there once: further copies are counted beside the list, as they are beside tables.
//!
//! A key is a number of 33 bits or so, and in a list of a thousand the first ten hardly differ from one key to the next. So a key's
//! last bytes are stored as they are, and the bits before them in unary, all keys together (the code of Elias and Fano):
//!
//! ```text
//! for each value of the first bits: a one for each key that has it, and a zero │ the last bytes of each key
//! ```
//!
//! A thousand items take a tenth less than in the fullest table. A snapshot has the keys as whole numbers.

use alloc::vec::Vec;
use core::cmp::Ordering;

use crate::{
    bits::{index, wide},
    storage::{OutOfMemory, reserve_exact, reserved, shrink_to},
    table::copies::{ClassKey, low_word},
};

/// Bytes of a key, of which a list stores fewer.
const KEY_BYTES: usize = size_of::<ClassKey>();

/// Memory comes in steps of 8 bytes at least, or of so many: 32 to 64 to a doubling.
const STEP: usize = 8;
const STEPS: usize = 32;

/// How keys are written.
#[derive(Clone, Copy)]
struct Layout {
    items: usize,
    key_bits: u32,
    /// Bytes that are stored of each key.
    low_bytes: u32,
}

impl Layout {
    /// One that is short, and quickly read.
    fn new(key_bits: u32, items: usize) -> Self {
        let mut low_bytes = key_bits.div_ceil(8);
        // A byte less of each key, if all are twice the bits in unary, one for each value of the first bits: lookups read them.
        while low_bytes > 0 && 4 * wide(items) >= 1_u64.unbounded_shl(key_bits - 8 * (low_bytes - 1)) {
            low_bytes -= 1;
        }
        Self { items, key_bits, low_bytes }
    }

    fn low_bytes(self) -> usize {
        index(self.low_bytes.into())
    }

    /// Bytes of the first bits, which come first.
    fn high_bytes(self) -> usize {
        let values = 1_usize << self.key_bits.saturating_sub(8 * self.low_bytes);
        (self.items + values).div_ceil(8)
    }

    fn bytes(self) -> usize {
        self.high_bytes() + self.items * self.low_bytes()
    }

    /// The memory of a list: it follows from the number of items, whatever was in it before.
    fn capacity(self) -> usize {
        let bytes = self.bytes();
        bytes.next_multiple_of((bytes / STEPS).next_power_of_two().max(STEP))
    }
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Few {
    bytes: Vec<u8>,
    items: u32,
    /// As in a [`Layout`]: the one for so many items, unless there was no memory for it after a removal.
    low_bytes: u8,
    key_bits: u8,
}

/// Where a key is, or would be: its number, and the position of its one.
struct Found {
    number: usize,
    one: usize,
    is_there: bool,
}

impl Few {
    /// No keys, which have so many bits.
    pub fn new(key_bits: u32) -> Self {
        let ([low_bytes, ..], [key_bits, ..]) = (Layout::new(key_bits, 0).low_bytes.to_le_bytes(), key_bits.to_le_bytes());
        Self { bytes: Vec::new(), items: 0, low_bytes, key_bits }
    }

    /// Keys that are in order.
    pub fn from_sorted(key_bits: u32, mut keys: impl ExactSizeIterator<Item = ClassKey>) -> Result<Self, OutOfMemory> {
        Self::of_many(key_bits, keys.len(), &mut keys)
    }

    /// So many keys, which are in order.
    fn of_many(key_bits: u32, items: usize, keys: &mut dyn Iterator<Item = ClassKey>) -> Result<Self, OutOfMemory> {
        let mut few = Self::new(key_bits);
        if items == 0 {
            return Ok(few);
        }
        let layout = Layout::new(key_bits, items);
        few.bytes = reserved(layout.capacity())?;
        few.bytes.resize(layout.bytes(), 0);
        [few.low_bytes, ..] = layout.low_bytes.to_le_bytes();
        for (number, key) in keys.take(items).enumerate() {
            few.set_one(few.high(key) + number);
            few.set_low(layout.high_bytes(), number, key);
            few.items += 1;
        }
        debug_assert_eq!(few.len(), items);
        Ok(few)
    }

    pub fn len(&self) -> usize {
        index(self.items.into())
    }

    /// A copy of the same size, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut bytes = reserved(self.bytes.capacity())?;
        bytes.extend_from_slice(&self.bytes);
        Ok(Self { bytes, ..*self })
    }

    pub fn size_in_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The memory of a list of this many keys, in bytes.
    pub fn charge(&self, items: usize) -> usize {
        if items == 0 { 0 } else { Layout::new(self.key_bits.into(), items).capacity() }
    }

    pub fn has(&self, key: ClassKey) -> bool {
        self.items > 0 && self.find(key).is_there
    }

    /// All keys, in order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = ClassKey> + Clone {
        let (highs, low_bits, mask) = (self.layout().high_bytes(), 8 * u32::from(self.low_bytes), self.mask());
        let mut high = 0;
        (0..self.len()).map(move |number| {
            while !self.is_one(high + number) {
                high += 1;
            }
            ClassKey::from(wide(high)) << low_bits | self.low(highs, number) & mask
        })
    }

    /// Adds a key that is not there. If there is no memory for it, nothing has changed.
    pub fn insert(&mut self, key: ClassKey) -> Result<(), OutOfMemory> {
        let after = Layout::new(self.key_bits.into(), self.len() + 1);
        if self.items == 0 || after.low_bytes != u32::from(self.low_bytes) {
            let is_before = |other: &ClassKey| *other < key;
            let mut keys = self.keys().take_while(is_before).chain([key]).chain(self.keys().skip_while(is_before));
            let longer = Self::of_many(self.key_bits.into(), after.items, &mut keys)?;
            drop(keys);
            *self = longer;
            return Ok(());
        }
        let (Found { number, one, .. }, before) = (self.find(key), self.layout());
        reserve_exact(&mut self.bytes, after.capacity() - before.bytes())?;
        self.bytes.resize(after.bytes(), 0);
        let (highs, new_highs, low_bytes) = (before.high_bytes(), after.high_bytes(), after.low_bytes());
        // From the end on, so that no byte is overwritten before it has been moved.
        let lows = |highs: usize, number: usize| highs + number * low_bytes;
        self.bytes.copy_within(lows(highs, number)..before.bytes(), lows(new_highs, number + 1));
        self.bytes.copy_within(highs..lows(highs, number), new_highs);
        self.bytes[highs..new_highs].fill(0);
        shift_up(&mut self.bytes[..new_highs], one);
        self.set_one(one);
        self.set_low(new_highs, number, key);
        self.items += 1;
        Ok(())
    }

    /// Removes a key. Returns whether it was there.
    pub fn remove(&mut self, key: ClassKey) -> bool {
        if !self.has(key) {
            return false;
        }
        let (Found { number, one, .. }, before) = (self.find(key), self.layout());
        let after = Layout { items: before.items - 1, ..before };
        let (highs, new_highs, low_bytes) = (before.high_bytes(), after.high_bytes(), after.low_bytes());
        shift_down(&mut self.bytes[..highs], one);
        let lows = |highs: usize, number: usize| highs + number * low_bytes;
        self.bytes.copy_within(highs..lows(highs, number), new_highs);
        self.bytes.copy_within(lows(highs, number + 1)..before.bytes(), lows(new_highs, number));
        self.bytes.truncate(after.bytes());
        self.items -= 1;
        self.shorten();
        true
    }

    /// Frees memory that fewer keys do not need. Without memory for a shorter list, this one stays.
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

    /// The first bits of a key.
    fn high(&self, key: ClassKey) -> usize {
        index(low_word(key >> (8 * u32::from(self.low_bytes))))
    }

    /// The bits of a key that are its last bytes.
    fn mask(&self) -> ClassKey {
        !(ClassKey::MAX << (8 * u32::from(self.low_bytes)))
    }

    /// There must be keys.
    fn find(&self, key: ClassKey) -> Found {
        let (highs, high, mask) = (self.layout().high_bytes(), self.high(key), self.mask());
        let start = if high == 0 { 0 } else { self.zero(0, high - 1) + 1 };
        let mut range = start - high..self.zero(start, 0) - high;
        while !range.is_empty() {
            let middle = range.start.midpoint(range.end);
            match (self.low(highs, middle) & mask).cmp(&(key & mask)) {
                Ordering::Less => range.start = middle + 1,
                Ordering::Equal => return Found { number: middle, one: middle + high, is_there: true },
                Ordering::Greater => range.end = middle,
            }
        }
        Found { number: range.start, one: range.start + high, is_there: false }
    }

    /// The position of the zero with this number, from a position on. There is one for each value of the first bits.
    fn zero(&self, from: usize, mut number: usize) -> usize {
        let (mut at, mut before) = (from / 8, !(u64::MAX << (from % 8)));
        while at < self.bytes.len() {
            let mut zeros = !(self.word(at) | before);
            let here = index(zeros.count_ones().into());
            if number < here {
                let mut position = 8 * at;
                for half in [32, 16] {
                    let in_half = index((zeros & ((1 << half) - 1)).count_ones().into());
                    if number >= in_half {
                        (number, zeros, position) = (number - in_half, zeros >> half, position + half);
                    }
                }
                zeros = (0..number).fold(zeros, |zeros, _| zeros & (zeros - 1));
                return position + index(zeros.trailing_zeros().into());
            }
            (number, at, before) = (number - here, at + 8, 0);
        }
        8 * at
    }

    /// Eight bytes, with ones behind the last byte.
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

    /// The last bytes of the key with this number, behind so many bytes of first bits; and above them anything.
    fn low(&self, highs: usize, number: usize) -> ClassKey {
        let low_bytes = usize::from(self.low_bytes);
        let start = highs + number * low_bytes;
        if let Some(bytes) = self.bytes.get(start..).and_then(<[u8]>::first_chunk) {
            return ClassKey::from_le_bytes(*bytes);
        }
        let mut bytes = [0; KEY_BYTES];
        bytes[..low_bytes].copy_from_slice(&self.bytes[start..start + low_bytes]);
        ClassKey::from_le_bytes(bytes)
    }

    fn set_low(&mut self, highs: usize, number: usize, key: ClassKey) {
        let low_bytes = usize::from(self.low_bytes);
        self.bytes[highs + number * low_bytes..][..low_bytes].copy_from_slice(&key.to_le_bytes()[..low_bytes]);
    }
}

/// For [`ElasticFilter::assert_consistent`](super::ElasticFilter::assert_consistent).
impl Few {
    pub fn assert_consistent(&self) {
        let keys = self.keys();
        assert!(keys.clone().zip(keys.clone().skip(1)).all(|(one, next)| one < next), "keys are not in order");
        assert!(keys.clone().all(|key| self.has(key)), "a key is not found");
        assert_eq!(keys.count(), self.len(), "keys in the list");
        assert!(self.bytes.is_empty() == (self.items == 0), "memory for no keys, or none for some");
    }
}

/// Equal keys.
impl PartialEq for Few {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items && self.keys().eq(other.keys())
    }
}

/// Moves the bits from a position on one further, and leaves a zero there. The last bit is lost.
fn shift_up(bytes: &mut [u8], position: usize) {
    let (bytes, before) = (&mut bytes[position / 8..], !(u8::MAX << (position % 8)));
    let mut carry = 0;
    for (number, byte) in bytes.iter_mut().enumerate() {
        let stays = if number == 0 { *byte & before } else { 0 };
        let moves = *byte ^ stays;
        (*byte, carry) = (moves << 1 | carry | stays, moves >> 7);
    }
}

/// The reverse: the bit at the position is lost, and the last one is a zero.
fn shift_down(bytes: &mut [u8], position: usize) {
    let (bytes, before) = (&mut bytes[position / 8..], !(u8::MAX << (position % 8)));
    for number in 0..bytes.len() {
        let next = bytes.get(number + 1).map_or(0, |next| next << 7);
        let stays = if number == 0 { bytes[0] & before } else { 0 };
        let moved = bytes[number] >> 1 & if number == 0 { !before } else { u8::MAX };
        bytes[number] = moved | next | stays;
    }
}

/// The keys of a partition in a snapshot: whole numbers, in order. If the bytes are corrupt, answers may be wrong.
#[derive(Clone, Copy)]
pub(crate) struct FewInSnapshot<'a> {
    bytes: &'a [u8],
    key_bytes: usize,
}

impl<'a> FewInSnapshot<'a> {
    pub fn new(bytes: &'a [u8], key_bytes: usize) -> Self {
        Self { bytes, key_bytes }
    }

    pub fn keys(self) -> impl ExactSizeIterator<Item = ClassKey> + Clone + use<'a> {
        self.bytes.chunks_exact(self.key_bytes).map(decode)
    }

    pub fn has(self, key: ClassKey) -> bool {
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

    fn check(few: &Few, model: &BTreeSet<ClassKey>) {
        few.assert_consistent();
        assert!(few.keys().eq(model.iter().copied()) && few.len() == model.len());
        assert_eq!(few.size_in_bytes(), few.charge(few.len()));
        let read = Few::from_sorted(few.key_bits.into(), few.keys()).expect("there is memory");
        assert!(read == *few && read.bytes == few.bytes && few.try_clone().expect("there is memory") == read);
        let key_bytes = usize::from(few.key_bits).div_ceil(8);
        let bytes: Vec<u8> = few.keys().flat_map(|key| key.to_le_bytes().into_iter().take(key_bytes)).collect();
        let listed = FewInSnapshot::new(&bytes, key_bytes);
        assert!(listed.keys().eq(few.keys()));
        assert!(model.iter().all(|&key| listed.has(key) && few.has(key)));
        let absent = |key: &ClassKey| !model.contains(key) && key >> few.key_bits == 0;
        let others = model.iter().flat_map(|&key| [key ^ 1, key ^ 2, key ^ 1 << 8]);
        assert!(others.filter(absent).all(|key| !few.has(key) && !listed.has(key)));
    }

    proptest! {
        /// Against a set: keys close together, at both ends, and anywhere.
        #[test]
        fn keys_are_those_of_a_set(
            key_bits in 7_u32..=90,
            operations in prop::collection::vec((0_u8..5, any::<ClassKey>()), 0..if cfg!(miri) { 30 } else { 1500 }),
        ) {
            let greatest = ClassKey::MAX >> (ClassKey::BITS - key_bits);
            let (mut few, mut model) = (Few::new(key_bits), BTreeSet::new());
            for (step, (kind, number)) in operations.into_iter().enumerate() {
                let key = match kind {
                    0 => number % 16,
                    1 => greatest - number % 16,
                    _ => number & greatest,
                };
                let present: Option<ClassKey> = model.range(key..).next().copied();
                match present.filter(|_| kind > 2 && step % 600 > 300) {
                    Some(key) => {
                        prop_assert!(few.remove(key) && model.remove(&key));
                    }
                    None => {
                        if model.insert(key) {
                            few.insert(key).expect("there is memory");
                        }
                    }
                }
                if step % 100 == 0 {
                    check(&few, &model);
                }
            }
            check(&few, &model);
            let keys: Vec<_> = few.keys().collect();
            for key in keys {
                prop_assert!(few.remove(key));
            }
            prop_assert!(!few.remove(0));
            check(&few, &BTreeSet::new());
        }
    }

    /// Keys of 33 bits, as by default.
    #[test]
    fn a_key_takes_few_bytes() {
        let mut few = Few::new(33);
        for (items, most) in [(5, 24), (100, 416), (1000, 3328)] {
            while few.len() < items {
                let key = (few.len() as ClassKey).wrapping_mul(0x9e37_79b9_7f4a_7c15) & ((1 << 33) - 1);
                few.insert(key).expect("there is memory");
            }
            assert!(few.size_in_bytes() <= most, "{} bytes for {items} items", few.size_in_bytes());
        }
    }
}
