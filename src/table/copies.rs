//! Further copies: how often items are in a filter beyond what its table holds (docs/DESIGN.md, "Copies").
//!
//! A table has every item at least once. Copies that are in the way of other items are counted here instead: for a fingerprint in
//! its pair of buckets, which is all that a filter knows of an item, the number of further copies. (A generation of a growing
//! filter also knows bits of the item's stream, wherever it stores them. They are a part of the fingerprint here.)
//!
//! The list is a table of linear probing in which keys are in order: a key's home grows with the key, and a key is at home or in
//! the first slot behind smaller keys. So entries are written and read in order, and growing is one pass over them. A snapshot has
//! the same entries in the same order, and views search them there.

use alloc::{boxed::Box, vec::Vec};

use crate::{
    bits::{index, low_half, mask, product, wide},
    storage::{OutOfMemory, reserved},
    table::{INVERSE, MULTIPLIER, Pair},
};

/// The number of further copies that an item may have, whatever its number in the table, which has room for 2 · 16.
pub(crate) const MOST: u32 = u32::MAX - 2 * 16;

/// An entry in a snapshot: a key of 8 bytes and a number of 4.
pub(crate) const ENTRY_BYTES: usize = 12;

/// Before the entries: the number of further copies.
const TOTAL_BYTES: usize = 8;

/// The length in a snapshot of so many entries.
pub(crate) fn listed_bytes(entries: u64) -> u64 {
    if entries == 0 { 0 } else { wide(TOTAL_BYTES) + entries.saturating_mul(wide(ENTRY_BYTES)) }
}

/// The most bytes that an entry takes on average, unless its key is very long.
const MOST_BYTES: usize = 12;

/// Slots are read and written in windows of so many bytes, and as many follow the last one.
const WINDOW: usize = size_of::<ClassKey>();
const _: () = assert!(ClassKeys::MOST_BITS.div_ceil(8) * 8 + u32::BITS <= ClassKey::BITS);

/// The inverse of [`MULTIPLIER`] modulo 2¹²⁸. (A step of Newton's method doubles the bits that are right.)
const LONG_INVERSE: ClassKey = {
    let (inverse, multiplier) = (INVERSE as ClassKey, MULTIPLIER as ClassKey);
    inverse.wrapping_mul(2_u128.wrapping_sub(multiplier.wrapping_mul(inverse)))
};
const _: () = assert!(LONG_INVERSE.wrapping_mul(MULTIPLIER as ClassKey) == 1);

/// What stands for an item in a list. Never 0.
pub(crate) type ClassKey = u128;

/// The keys of a filter: one for each fingerprint in its pair of buckets.
///
/// A key is the smaller bucket and the fingerprint, as one number, times an odd constant: a permutation, after which the first bits
/// depend on all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassKeys {
    /// Bits of a fingerprint, and of a key. In a filter of fixed size, a key has 64 at most.
    fingerprint_bits: u32,
    bits: u32,
}

impl ClassKeys {
    /// Bits of the longest key: those of the buckets and of the fingerprint of a growing filter, whatever its parameters.
    const MOST_BITS: u32 = 31 + 32 + 27;

    pub fn new(buckets: u64, fingerprint_bits: u32) -> Self {
        let bits = u64::BITS - (buckets - 1).leading_zeros() + fingerprint_bits;
        debug_assert!(bits <= Self::MOST_BITS);
        Self { fingerprint_bits, bits: bits.min(Self::MOST_BITS) }
    }

    /// The key of a fingerprint, which is not 0, in two buckets.
    #[inline]
    pub fn key(self, (first, second): Pair, fingerprint: u64) -> ClassKey {
        let number = ClassKey::from(first.min(second)) << self.fingerprint_bits | ClassKey::from(fingerprint);
        number.wrapping_mul(MULTIPLIER.into()) & self.mask()
    }

    /// The smaller bucket and the fingerprint of a key. Both may be ones that no item has.
    pub fn parts(self, key: ClassKey) -> (u64, u64) {
        let number = key.wrapping_mul(LONG_INVERSE) & self.mask();
        (low_word(number >> self.fingerprint_bits), low_word(number) & mask(self.fingerprint_bits))
    }

    /// The bits of a key.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Whether there are keys of so many bits.
    pub fn has(self, key: ClassKey) -> bool {
        key <= self.mask()
    }

    /// At least what a list of so many entries takes, whatever was in it before, unless its keys were chosen.
    pub fn charge(self, entries: usize) -> usize {
        let slot = Layout::for_number(self, u32::MAX).slot_bytes;
        let bytes = most_slots(entries).saturating_mul(slot).saturating_add(WINDOW + size_of::<Copies>());
        if entries == 0 { 0 } else { bytes }
    }

    /// The length of a key in bytes.
    pub fn bytes(self) -> usize {
        index(self.bits.div_ceil(8).into())
    }

    #[inline]
    fn mask(self) -> ClassKey {
        ClassKey::MAX >> (ClassKey::BITS - self.bits)
    }
}

/// The layout of a slot: a key, then a number, each of whole bytes.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// The bit at which the number begins.
    number_at: u32,
    slot_bytes: usize,
    key_mask: ClassKey,
    most_number: u32,
}

impl Layout {
    /// Slots for numbers of 1 to 4 bytes.
    fn new(keys: ClassKeys, number_bytes: u32) -> Self {
        let number_at = keys.bits.next_multiple_of(8);
        let slot_bytes = index((number_at / 8 + number_bytes).into());
        Self { number_at, slot_bytes, key_mask: keys.mask(), most_number: u32::MAX >> (u32::BITS - 8 * number_bytes) }
    }

    /// Slots for numbers up to this one.
    fn for_number(keys: ClassKeys, number: u32) -> Self {
        Self::new(keys, (u32::BITS - number.leading_zeros()).div_ceil(8).max(1))
    }

    /// Homes for so many entries, before there are more. Between 8/9 and 2/3 of them are taken, fewer the fewer bytes a slot takes:
    /// an entry takes less than [`MOST_BYTES`].
    fn homes_for(self, entries: usize) -> usize {
        let by_memory = entries / (2 * self.slot_bytes) * (2 * MOST_BYTES - 1);
        by_memory.clamp(entries + entries / 8, entries + entries / 2) + 4
    }
}

/// The slots above which a table of so many entries is made smaller: three eighths of its homes are empty.
fn most_slots(entries: usize) -> usize {
    entries.saturating_add(entries.saturating_mul(5) / 8).saturating_add(entries / 32).saturating_add(16)
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Copies {
    keys: ClassKeys,
    layout: Layout,
    /// Slots: a key and its number, or zeros. The last slot is empty. No key is 0, since no fingerprint is.
    bytes: Vec<u8>,
    slots: usize,
    /// The slots in which keys may be at home: the first ones.
    homes: usize,
    entries: usize,
    /// The number of entries up to which the table does not grow: until half of the homes are taken that were free.
    most: usize,
    /// The sum of all numbers.
    total: u64,
}

/// The further copies of a filter, or of a generation: none, or a list behind a pointer, so that filters without any stay small. (A
/// box of one, which is allocated fallibly.)
#[derive(Clone)]
pub(crate) struct Further(Option<Box<[Copies; 1]>>);

impl Further {
    pub const NONE: Self = Self(None);

    /// Entries that are in order, none of them twice, with keys and numbers above 0.
    pub fn from_sorted(keys: ClassKeys, entries: &(impl Iterator<Item = (ClassKey, u32)> + Clone)) -> Result<Self, OutOfMemory> {
        let copies = Copies::from_sorted(keys, entries)?;
        if copies.entries == 0 { Ok(Self::NONE) } else { copies.boxed() }
    }

    /// A copy of the same size, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        self.list().map_or(Ok(Self::NONE), |copies| copies.try_clone()?.boxed())
    }

    #[inline]
    pub fn are_none(&self) -> bool {
        self.0.is_none()
    }

    pub fn list(&self) -> Option<&Copies> {
        self.0.as_ref().map(|list| &list[0])
    }

    pub fn list_mut(&mut self) -> Option<&mut Copies> {
        self.0.as_mut().map(|list| &mut list[0])
    }

    /// The list, if need be a new one, which [must not stay empty](Self::drop_empty).
    pub fn list_or_new(&mut self, keys: ClassKeys) -> Result<&mut Copies, OutOfMemory> {
        let list = match self.0.take() {
            Some(list) => list,
            None => Copies::new(keys).in_a_box()?,
        };
        Ok(&mut self.0.insert(list)[0])
    }

    /// Frees an empty list.
    pub fn drop_empty(&mut self) {
        self.0.take_if(|list| list[0].entries == 0);
    }

    /// The number of further copies of an item.
    pub fn get(&self, key: ClassKey) -> u32 {
        self.list().map_or(0, |copies| copies.get(key))
    }

    /// Removes up to so many copies of an item. Returns how many: fewer if it has no further ones.
    pub fn take(&mut self, key: ClassKey, most: u32) -> u32 {
        let taken = self.list_mut().map_or(0, |copies| copies.take(key, most));
        self.drop_empty();
        taken
    }

    /// Their number, and that of items that have some.
    pub fn totals(&self) -> (u64, usize) {
        self.list().map_or((0, 0), |copies| (copies.total, copies.entries))
    }

    pub fn size_in_bytes(&self) -> usize {
        self.list().map_or(0, Copies::size_in_bytes)
    }
}

impl Copies {
    /// None yet.
    pub fn new(keys: ClassKeys) -> Self {
        let layout = Layout::for_number(keys, 0);
        Self { keys, layout, bytes: Vec::new(), slots: 0, homes: 0, entries: 0, most: 0, total: 0 }
    }

    /// A copy of the same size, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut bytes = reserved(self.bytes.len())?;
        bytes.extend_from_slice(&self.bytes);
        Ok(Self { bytes, ..*self })
    }

    fn boxed(self) -> Result<Further, OutOfMemory> {
        Ok(Further(Some(self.in_a_box()?)))
    }

    fn in_a_box(self) -> Result<Box<[Self; 1]>, OutOfMemory> {
        let mut one = reserved(1)?;
        one.push(self);
        one.try_into().map_err(|_| OutOfMemory::of(size_of::<Self>()))
    }

    /// Entries that are in order, none of them twice, with keys and numbers above 0.
    pub fn from_sorted(keys: ClassKeys, entries: &(impl Iterator<Item = (ClassKey, u32)> + Clone)) -> Result<Self, OutOfMemory> {
        let (count, most) = entries.clone().fold((0, 0), |(count, most), (_, number)| (count + 1, number.max(most)));
        let layout = Layout::for_number(keys, most);
        Self::with_homes(keys, layout, layout.homes_for(count), entries)
    }

    fn with_homes(
        keys: ClassKeys,
        layout: Layout,
        homes: usize,
        entries: &(impl Iterator<Item = (ClassKey, u32)> + Clone),
    ) -> Result<Self, OutOfMemory> {
        // Keys near the last home may overflow into the slots behind it.
        let mut copies = Self { layout, homes, slots: homes + 4 + homes / 64, ..Self::new(keys) };
        loop {
            let len = copies.slots * layout.slot_bytes + WINDOW;
            copies.bytes = reserved(len)?;
            copies.bytes.resize(len, 0);
            if copies.fill(entries.clone()) {
                copies.most = copies.entries + homes.saturating_sub(copies.entries) / 2;
                return Ok(copies);
            }
            let end = entries.clone().fold(0, |next, (key, _)| copies.home(key).max(next) + 1);
            copies = Self { slots: end + 4 + homes / 64, bytes: Vec::new(), entries: 0, total: 0, ..copies };
        }
    }

    /// Adds entries, which are in order, to an empty table. Returns false if they need more slots. Three remain empty behind them.
    fn fill(&mut self, entries: impl Iterator<Item = (ClassKey, u32)>) -> bool {
        let mut next = 0;
        for (key, number) in entries {
            let slot = self.home(key).max(next);
            if slot + 3 >= self.slots {
                return false;
            }
            self.set(slot, key, number);
            self.entries += 1;
            self.total += u64::from(number);
            next = slot + 1;
        }
        true
    }

    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }

    /// The number of further copies of an item.
    pub fn get(&self, key: ClassKey) -> u32 {
        self.find(key).map_or(0, |slot| self.number(slot))
    }

    pub fn keys(&self) -> ClassKeys {
        self.keys
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = (ClassKey, u32)> + Clone {
        self.iter_from(0).map(|(_, entry)| entry)
    }

    /// Those from a slot on, with their slots.
    pub fn iter_from(&self, slot: usize) -> impl Iterator<Item = (usize, (ClassKey, u32))> + Clone {
        (slot..self.slots).map(|slot| (slot, self.slot(slot))).filter(|&(_, (key, _))| key != 0)
    }

    /// Adds copies of an item. Returns false, and does nothing, if it would have more than `most` here. If it fails, nothing has
    /// changed.
    pub fn add(&mut self, key: ClassKey, copies: u32, most: u32) -> Result<bool, OutOfMemory> {
        let found = self.find(key);
        let number = found.map_or(0, |slot| self.number(slot));
        let Some(sum) = number.checked_add(copies).filter(|&sum| sum <= most) else { return Ok(false) };
        match found {
            Ok(slot) if sum <= self.layout.most_number => self.set(slot, key, sum),
            Err(slot) if sum <= self.layout.most_number && self.has_room() => self.insert_at(slot, key, sum),
            _ => {
                let wider = Layout::for_number(self.keys, sum.max(self.layout.most_number));
                self.rebuild(wider, self.entries + 1)?;
                return self.add(key, copies, most);
            }
        }
        self.total += u64::from(copies);
        Ok(true)
    }

    /// True if another entry has room, wherever it is at home. The last slot stays empty.
    fn has_room(&self) -> bool {
        self.entries < self.most && self.key(self.slots - 2) == 0
    }

    /// Makes room for so many entries in slots of this layout. If it fails, nothing has changed.
    #[cold]
    fn rebuild(&mut self, layout: Layout, entries: usize) -> Result<(), OutOfMemory> {
        let rebuilt = Self::with_homes(self.keys, layout, layout.homes_for(entries), &self.iter())?;
        *self = rebuilt;
        Ok(())
    }

    fn insert_at(&mut self, slot: usize, key: ClassKey, copies: u32) {
        let size = self.layout.slot_bytes;
        let end = (slot..self.slots).find(|&slot| self.key(slot) == 0).unwrap_or(slot);
        self.bytes.copy_within(slot * size..end * size, (slot + 1) * size);
        self.set(slot, key, copies);
        self.entries += 1;
    }

    /// Removes up to so many copies of an item. Returns how many: fewer if it has no further ones.
    pub fn take(&mut self, key: ClassKey, most: u32) -> u32 {
        let Ok(slot) = self.find(key) else { return 0 };
        let number = self.number(slot);
        let taken = number.min(most);
        self.set(slot, key, number - taken);
        self.total -= u64::from(taken);
        if taken == number {
            self.close(slot);
        }
        taken
    }

    /// Removes an entry. Those behind it that are not at home move up.
    fn close(&mut self, slot: usize) {
        let size = self.layout.slot_bytes;
        let is_moved = |&slot: &usize| self.key(slot) != 0 && self.home(self.key(slot)) < slot;
        let end = slot + 1 + (slot + 1..self.slots).take_while(is_moved).count();
        self.bytes.copy_within((slot + 1) * size..end * size, slot * size);
        self.set(end - 1, 0, 0);
        self.entries -= 1;
        // Without memory for a smaller table, this one stays.
        if self.slots > most_slots(self.entries) {
            _ = self.rebuild(self.layout, self.entries);
        }
    }

    /// The slot of a key, or else that where it would be inserted.
    #[inline]
    fn find(&self, key: ClassKey) -> Result<usize, usize> {
        let mut slot = self.home(key);
        loop {
            match self.key(slot) {
                other if other == key => return Ok(slot),
                other if other > key || other == 0 => return Err(slot),
                _ => slot += 1,
            }
        }
    }

    #[inline]
    fn home(&self, key: ClassKey) -> usize {
        let first_bits = low_word(key << (ClassKey::BITS - self.keys.bits) >> u64::BITS);
        index(product(first_bits, wide(self.homes)).0)
    }

    /// 0 in an empty slot, and behind the last one.
    #[inline]
    fn key(&self, slot: usize) -> ClassKey {
        self.window(slot) & self.layout.key_mask
    }

    #[inline]
    fn number(&self, slot: usize) -> u32 {
        self.slot(slot).1
    }

    /// The key and the number in a slot.
    #[inline]
    fn slot(&self, slot: usize) -> (ClassKey, u32) {
        let Layout { number_at, key_mask, most_number, .. } = self.layout;
        let window = self.window(slot);
        (window & key_mask, low_half(low_word(window >> number_at)) & most_number)
    }

    /// The bytes from a slot on.
    #[inline]
    fn window(&self, slot: usize) -> u128 {
        let window = self.bytes.get(slot * self.layout.slot_bytes..).and_then(|bytes| bytes.first_chunk::<WINDOW>());
        window.map_or(0, |window| u128::from_le_bytes(*window))
    }

    #[inline]
    fn set(&mut self, slot: usize, key: ClassKey, number: u32) {
        let Layout { number_at, slot_bytes, .. } = self.layout;
        let Some(window) = self.bytes.get_mut(slot * slot_bytes..).and_then(|bytes| bytes.first_chunk_mut::<WINDOW>()) else {
            return;
        };
        let entry = key | u128::from(number) << number_at;
        // In two steps, since a slot may be as long as a window.
        let others = u128::MAX << (8 * slot_bytes - 1) << 1;
        *window = (u128::from_le_bytes(*window) & others | entry).to_le_bytes();
    }
}

/// Equal entries.
impl PartialEq for Copies {
    fn eq(&self, other: &Self) -> bool {
        self.entries == other.entries && self.iter().eq(other.iter())
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "returns the lower half")]
pub(crate) fn low_word(value: u128) -> u64 {
    value as u64
}

#[inline]
fn load(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[inline]
fn load_number(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// The further copies in a snapshot: their total, and the entries in order. If the bytes are corrupt, answers may be wrong.
#[derive(Clone, Copy)]
pub(crate) struct Listed<'a>(&'a [u8]);

impl<'a> Listed<'a> {
    /// These bytes, of which there are [as many as that](listed_bytes).
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// A copy of the bytes.
    pub fn copied(self) -> Result<Vec<u8>, OutOfMemory> {
        let mut bytes = reserved(self.0.len())?;
        bytes.extend_from_slice(self.0);
        Ok(bytes)
    }

    fn list(self) -> &'a [[u8; ENTRY_BYTES]] {
        self.0.get(TOTAL_BYTES..).unwrap_or_default().as_chunks().0
    }

    pub fn entries(self) -> usize {
        self.list().len()
    }

    /// The number of further copies, as stated.
    pub fn total(self) -> u64 {
        load(self.0, 0)
    }

    pub fn get(self, key: ClassKey) -> u32 {
        let list = self.list();
        list.binary_search_by_key(&key, |entry| decode(entry).0).map_or(0, |at| decode(&list[at]).1)
    }

    pub fn iter(self) -> impl Iterator<Item = (ClassKey, u32)> + Clone + use<'a> {
        self.list().iter().map(decode)
    }
}

/// The bytes of an entry in a snapshot.
pub(crate) fn encode((key, number): (ClassKey, u32)) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    bytes[..8].copy_from_slice(&low_word(key).to_le_bytes());
    bytes[8..].copy_from_slice(&number.to_le_bytes());
    bytes
}

fn decode(entry: &[u8; ENTRY_BYTES]) -> (ClassKey, u32) {
    (load(entry, 0).into(), load_number(entry, 8))
}

/// An entry in the snapshot of a growing filter: a key of 11 bytes, a byte for its generation and a number of 4 bytes.
pub(crate) const LONG_ENTRY_BYTES: usize = 16;

/// Bits of a key there.
const LONG_KEY_BITS: u32 = 88;
const LONG_KEY_MASK: ClassKey = ClassKey::MAX >> (ClassKey::BITS - LONG_KEY_BITS);

/// The further copies of a partition in a snapshot: entries in the order of generations, and then of keys. If the bytes are
/// corrupt, answers may be wrong.
#[derive(Clone, Copy)]
pub(crate) struct LongEntries<'a>(&'a [[u8; LONG_ENTRY_BYTES]]);

impl<'a> LongEntries<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.as_chunks().0)
    }

    pub fn get(self, generation: u8, key: ClassKey) -> u32 {
        let found = self.0.binary_search_by_key(&(generation, key), |entry| {
            let (generation, key, _) = decode_long(entry);
            (generation, key)
        });
        found.map_or(0, |at| decode_long(&self.0[at]).2)
    }

    /// All entries: generation, key and number.
    pub fn iter(self) -> impl Iterator<Item = (u8, ClassKey, u32)> + Clone + use<'a> {
        self.0.iter().map(decode_long)
    }

    /// Those of a generation.
    pub fn of_generation(self, generation: u8) -> impl Iterator<Item = (ClassKey, u32)> + Clone + use<'a> {
        let start = self.0.partition_point(|entry| decode_long(entry).0 < generation);
        let end = self.0.partition_point(|entry| decode_long(entry).0 <= generation);
        Self(self.0.get(start..end).unwrap_or_default()).iter().map(|(_, key, number)| (key, number))
    }
}

/// The bytes of such an entry.
pub(crate) fn encode_long((generation, key, number): (u8, ClassKey, u32)) -> [u8; LONG_ENTRY_BYTES] {
    debug_assert!(key <= LONG_KEY_MASK);
    (ClassKey::from(number) << 96 | ClassKey::from(generation) << LONG_KEY_BITS | key).to_le_bytes()
}

fn decode_long(entry: &[u8; LONG_ENTRY_BYTES]) -> (u8, ClassKey, u32) {
    let (key, number) = (ClassKey::from_le_bytes(*entry) & LONG_KEY_MASK, [entry[12], entry[13], entry[14], entry[15]]);
    (entry[11], key, u32::from_le_bytes(number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn check(copies: &Copies, model: &BTreeMap<ClassKey, u32>) {
        assert!(copies.iter().eq(model.iter().map(|(&key, &number)| (key, number))));
        assert_eq!((copies.entries, copies.total), (model.len(), model.values().map(|&number| u64::from(number)).sum()));
        let homes: Vec<_> = (0..copies.slots).filter(|&slot| copies.number(slot) > 0).collect();
        for &slot in &homes {
            let home = copies.home(copies.key(slot));
            assert!((home..=slot).all(|slot| copies.number(slot) > 0), "slot {slot}, home {home}");
        }
        assert!(copies.slots == 0 || copies.key(copies.slots - 1) == 0);
        if copies.keys.bits > u64::BITS {
            return;
        }
        let mut bytes = copies.total.to_le_bytes().to_vec();
        bytes.extend(copies.iter().flat_map(encode));
        let listed = Listed::new(&bytes);
        assert_eq!((listed.entries(), listed.total()), (copies.entries, copies.total));
        assert!(listed.iter().eq(copies.iter()));
        assert!(model.iter().all(|(&key, &number)| listed.get(key) == number && copies.get(key) == number));
        let read = Copies::from_sorted(copies.keys, &listed.iter()).expect("there is memory");
        assert!(read == *copies);
    }

    proptest! {
        /// Against a map, in tables of all sizes; keys close together, at both ends, and anywhere.
        #[test]
        fn entries_are_those_of_a_map(
            bits in 8_u32..=ClassKeys::MOST_BITS,
            operations in prop::collection::vec((0_u8..4, any::<ClassKey>(), 1_u32..1000), 0..600),
        ) {
            let keys = ClassKeys { fingerprint_bits: 4, bits };
            let mut copies = Copies::new(keys);
            let mut model = BTreeMap::new();
            for (kind, number, more) in operations {
                let key = match kind {
                    0 => 1 + number % 16,
                    1 => keys.mask() - number % 16,
                    _ => (number & keys.mask()).max(1),
                };
                let present: Option<ClassKey> = model.range(key..).next().map(|(&key, _)| key);
                if let (3, Some(key)) = (kind, present) {
                    prop_assert_eq!(copies.take(key, 1), 1);
                    let number = model.get_mut(&key).expect("it is there");
                    *number -= 1;
                    if *number == 0 {
                        model.remove(&key);
                    }
                } else {
                    let more = if kind == 2 { 1 } else { more };
                    copies.add(key, more, u32::MAX).expect("there is memory");
                    *model.entry(key).or_insert(0) += more;
                }
                prop_assert_eq!(copies.get(key), model.get(&key).copied().unwrap_or(0));
            }
            check(&copies, &model);
            for key in model.keys().copied().collect::<Vec<_>>() {
                let half = model[&key] / 2;
                prop_assert_eq!((copies.take(key, half), copies.take(key, u32::MAX)), (half, model[&key] - half));
                prop_assert_eq!(copies.take(key, 1), 0);
            }
            check(&copies, &BTreeMap::new());
        }

        /// Whatever was in it before, if nobody chose the keys. (Many keys near the last home need more slots behind it.)
        #[test]
        fn a_list_takes_no_more_than_it_is_charged_for(
            bits in 16_u32..=ClassKeys::MOST_BITS,
            growing in prop::collection::vec((any::<ClassKey>(), any::<u32>()), 1..1000),
            left in 0_usize..100,
        ) {
            let keys = ClassKeys { fingerprint_bits: 4, bits };
            let mut copies = Copies::new(keys);
            let charged = |copies: &Copies| copies.entries == 0 || copies.size_in_bytes() <= keys.charge(copies.entries);
            for &(key, number) in &growing {
                copies.add((key & keys.mask()).max(1), number.max(1), u32::MAX).expect("there is memory");
                prop_assert!(charged(&copies), "{} entries in {} homes, {} slots", copies.entries, copies.homes, copies.slots);
            }
            for &(key, _) in growing.get(left..).unwrap_or_default() {
                copies.take((key & keys.mask()).max(1), u32::MAX);
                prop_assert!(charged(&copies), "{} entries in {} homes, {} slots", copies.entries, copies.homes, copies.slots);
            }
        }
    }

    #[test]
    fn keys_are_those_of_no_other_pair_and_fingerprint() {
        let keys = ClassKeys::new(1 << 20, 13);
        assert_eq!((keys.bits, Layout::new(keys, 1).slot_bytes), (33, 6));
        for (bucket, value) in [(0, 1), (7, 8191), (1 << 19, 4096)] {
            let key = keys.key((bucket, (1 << 20) - 1), value);
            assert_eq!(key, keys.key(((1 << 20) - 1, bucket), value));
            assert_eq!(keys.parts(key), (bucket, value));
        }
        assert_eq!(ClassKeys::new(1 << 32, 32).bits, 64);
        let longest = ClassKeys::new(1 << 31, 59);
        assert_eq!((longest.bits, longest.parts(longest.key((1 << 30, u64::MAX), mask(59) - 7))), (90, (1 << 30, mask(59) - 7)));
    }

    #[test]
    fn generations_have_entries_of_their_own() {
        let entries = [(0, 7, 1), (0, LONG_KEY_MASK, 2), (3, 0, u32::MAX), (3, 7, 9), (255, LONG_KEY_MASK >> 8, 5)];
        let bytes: Vec<u8> = entries.into_iter().flat_map(encode_long).collect();
        let list = LongEntries::new(&bytes);
        assert!(list.iter().eq(entries));
        assert!(list.of_generation(3).eq([(0, u32::MAX), (7, 9)]) && list.of_generation(1).count() == 0);
        assert!(entries.into_iter().all(|(generation, key, number)| list.get(generation, key) == number));
        assert_eq!((list.get(1, 7), list.get(3, 8)), (0, 0));
    }

    /// The memory that docs/DESIGN.md states: at most 12 bytes for each entry.
    #[test]
    fn an_entry_takes_few_bytes() {
        // The last one is that of a generation.
        for (buckets, fingerprint_bits) in [(1 << 18, 13), (1 << 25, 13), (1 << 20, 8), (1 << 8, 13 + 16)] {
            let keys = ClassKeys::new(buckets, fingerprint_bits);
            let mut copies = Copies::new(keys);
            let mut most = 0.0_f64;
            for item in 0..if cfg!(miri) { 1500 } else { 20_000_u64 } {
                copies
                    .add(ClassKey::from(item + 1).wrapping_mul(0x9e37_79b9_7f4a_7c55) & keys.mask(), 1, u32::MAX)
                    .expect("there is memory");
                if item > 1000 {
                    most = most.max(copies.size_in_bytes() as f64 / copies.entries as f64);
                }
            }
            assert!(most <= 12.0, "{most} bytes for {keys:?}");
        }
    }
}
