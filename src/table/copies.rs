//! Extra copies: copies of items that are counted beside the table instead of stored in it (docs/DESIGN.md, "Copies").
//!
//! A table has every item at least once. Copies that take room from other items are counted here instead: a list maps a
//! fingerprint in its pair of buckets, which is all that a filter knows of an item, to the number of its extra copies. A
//! generation of a growing filter also knows bits of the item's stream, wherever it stores them; in this module, they are part of
//! the fingerprint.
//!
//! The list is a hash table with linear probing whose keys are in order: a key's home grows with the key, and a key is at home or
//! in the first slot behind smaller keys. So entries are written and read in order, and growing takes one pass over them. A
//! snapshot has the same entries in the same order, and views search them there.

use alloc::{boxed::Box, vec::Vec};

use crate::{
    bits::{index, low_half, mask, product, wide},
    storage::{OutOfMemory, reserved},
    table::{INVERSE, MULTIPLIER, Pair},
};

/// The number of extra copies that any item may have. A table holds at most 2 · 16 copies of an item, so that the sum fits into
/// 32 bits.
pub(crate) const MOST: u32 = u32::MAX - 2 * 16;

/// The length of an entry in the snapshot of a fixed filter: a key of 8 bytes and a count of 4.
pub(crate) const ENTRY_BYTES: usize = 12;

/// The length of what precedes the entries: the number of extra copies.
const TOTAL_BYTES: usize = 8;

/// Returns the length of a list of this many entries in the snapshot of a fixed filter.
pub(crate) fn snapshot_bytes(entries: u64) -> u64 {
    if entries == 0 { 0 } else { wide(TOTAL_BYTES) + entries.saturating_mul(wide(ENTRY_BYTES)) }
}

/// The most bytes that an entry takes on average, unless keys are longer than 48 bits.
const MAX_BYTES: usize = 12;

/// Slots are read and written in windows of this many bytes, and as many bytes follow the last slot.
const WINDOW: usize = size_of::<ClassKey>();
const _: () = assert!(ClassKeys::MAX_BITS.div_ceil(8) * 8 + u32::BITS <= ClassKey::BITS);

/// The inverse of [`MULTIPLIER`] modulo 2¹²⁸. A step of Newton's method doubles the number of correct bits.
const LONG_INVERSE: ClassKey = {
    let (inverse, multiplier) = (INVERSE as ClassKey, MULTIPLIER as ClassKey);
    inverse.wrapping_mul(2_u128.wrapping_sub(multiplier.wrapping_mul(inverse)))
};
const _: () = assert!(LONG_INVERSE.wrapping_mul(MULTIPLIER as ClassKey) == 1);

/// A number that represents an item in a list. Never 0.
pub(crate) type ClassKey = u128;

/// The keys of a filter: one for each fingerprint in its pair of buckets.
///
/// A key is the smaller bucket and the fingerprint, as one number, times an odd constant. This is a permutation, after which the
/// highest bits depend on all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassKeys {
    fingerprint_bits: u32,
    /// The number of bits in a key: at most 64 in a fixed filter.
    bits: u32,
}

impl ClassKeys {
    /// The number of bits in the longest key: the smaller bucket and the fingerprint in a growing filter with any parameters.
    const MAX_BITS: u32 = 31 + 32 + 27;

    pub fn new(buckets: u64, fingerprint_bits: u32) -> Self {
        let bits = u64::BITS - (buckets - 1).leading_zeros() + fingerprint_bits;
        debug_assert!(bits <= Self::MAX_BITS);
        Self { fingerprint_bits, bits: bits.min(Self::MAX_BITS) }
    }

    /// Returns the key of a fingerprint in its two buckets. The fingerprint must not be 0.
    #[inline]
    pub fn key(self, (first, second): Pair, fingerprint: u64) -> ClassKey {
        let number = ClassKey::from(first.min(second)) << self.fingerprint_bits | ClassKey::from(fingerprint);
        number.wrapping_mul(MULTIPLIER.into()) & self.mask()
    }

    /// Returns the smaller bucket and the fingerprint of a key. If the key is corrupt, no item may have them.
    pub fn parts(self, key: ClassKey) -> (u64, u64) {
        let number = key.wrapping_mul(LONG_INVERSE) & self.mask();
        (low_word(number >> self.fingerprint_bits), low_word(number) & mask(self.fingerprint_bits))
    }

    /// Returns the number of bits in a key.
    pub fn bits(self) -> u32 {
        self.bits
    }

    /// Returns true if the key has no more bits than a key of this filter may have.
    pub fn is_in_range(self, key: ClassKey) -> bool {
        key <= self.mask()
    }

    /// Returns the number of bytes that a list of this many entries is charged. The list never takes more, regardless of its
    /// history, unless its keys were chosen.
    pub fn charge(self, entries: usize) -> usize {
        let slot = Layout::for_count(self, u32::MAX).slot_bytes;
        let bytes = most_slots(entries).saturating_mul(slot).saturating_add(WINDOW + size_of::<Copies>());
        if entries == 0 { 0 } else { bytes }
    }

    /// Returns the length of a key in bytes.
    pub fn bytes(self) -> usize {
        index(self.bits.div_ceil(8).into())
    }

    #[inline]
    fn mask(self) -> ClassKey {
        ClassKey::MAX >> (ClassKey::BITS - self.bits)
    }
}

/// The layout of a slot: a key, then a count, each of whole bytes.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// The bit at which the count begins.
    count_at: u32,
    slot_bytes: usize,
    key_mask: ClassKey,
    max_count: u32,
}

impl Layout {
    /// Plans slots for counts of `count_bytes` bytes, 1 to 4.
    fn new(keys: ClassKeys, count_bytes: u32) -> Self {
        let count_at = keys.bits.next_multiple_of(8);
        let slot_bytes = index((count_at / 8 + count_bytes).into());
        Self { count_at, slot_bytes, key_mask: keys.mask(), max_count: u32::MAX >> (u32::BITS - 8 * count_bytes) }
    }

    /// Plans slots for counts up to this one.
    fn for_count(keys: ClassKeys, count: u32) -> Self {
        Self::new(keys, (u32::BITS - count.leading_zeros()).div_ceil(8).max(1))
    }

    /// Returns the number of homes for this many entries. They take between 2/3 and 8/9 of the homes, less if slots are short, so
    /// that an entry takes less than [`MAX_BYTES`].
    fn homes_for(self, entries: usize) -> usize {
        let by_memory = entries / (2 * self.slot_bytes) * (2 * MAX_BYTES - 1);
        by_memory.clamp(entries + entries / 8, entries + entries / 2) + 4
    }
}

/// Returns the number of slots above which a table with this many entries shrinks. About three eighths of its homes are empty
/// then.
fn most_slots(entries: usize) -> usize {
    entries.saturating_add(entries.saturating_mul(5) / 8).saturating_add(entries / 32).saturating_add(16)
}

/// A list of extra copies. The module's documentation describes it.
#[derive(Clone)]
pub(crate) struct Copies {
    keys: ClassKeys,
    layout: Layout,
    /// The slots: each has a key and its count, or zeros. The last slot is empty. No key is 0, because no fingerprint is.
    bytes: Vec<u8>,
    slots: usize,
    /// The number of slots in which keys may be at home: the first ones.
    homes: usize,
    entries: usize,
    /// The number of entries up to which the table does not grow. At this number, half of the homes that were free are taken.
    max_entries: usize,
    /// The sum of all counts.
    total: u64,
}

/// The extra copies of a filter, or of a generation: a list behind a pointer, or none, so that filters without extra copies stay
/// small. The list is in a boxed array, because that can be allocated fallibly.
#[derive(Clone)]
pub(crate) struct ExtraCopies(Option<Box<[Copies; 1]>>);

impl ExtraCopies {
    pub const NONE: Self = Self(None);

    /// Creates a list from entries that are in order, without duplicates, with keys and counts above 0.
    pub fn from_sorted(keys: ClassKeys, entries: &(impl Iterator<Item = (ClassKey, u32)> + Clone)) -> Result<Self, OutOfMemory> {
        let copies = Copies::from_sorted(keys, entries)?;
        if copies.entries == 0 { Ok(Self::NONE) } else { copies.into_extra_copies() }
    }

    /// Returns a copy of the same size, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        self.list().map_or(Ok(Self::NONE), |copies| copies.try_clone()?.into_extra_copies())
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub fn list(&self) -> Option<&Copies> {
        self.0.as_ref().map(|list| &list[0])
    }

    pub fn list_mut(&mut self) -> Option<&mut Copies> {
        self.0.as_mut().map(|list| &mut list[0])
    }

    /// Returns the list, or a new one, which [must not stay empty](Self::drop_empty).
    pub fn list_or_new(&mut self, keys: ClassKeys) -> Result<&mut Copies, OutOfMemory> {
        let list = match self.0.take() {
            Some(list) => list,
            None => Copies::new(keys).try_box()?,
        };
        Ok(&mut self.0.insert(list)[0])
    }

    /// Frees an empty list.
    pub fn drop_empty(&mut self) {
        self.0.take_if(|list| list[0].entries == 0);
    }

    /// Returns the number of extra copies of an item.
    pub fn get(&self, key: ClassKey) -> u32 {
        self.list().map_or(0, |copies| copies.get(key))
    }

    /// Removes up to `max` copies of an item. Returns how many were removed.
    pub fn take(&mut self, key: ClassKey, max: u32) -> u32 {
        let taken = self.list_mut().map_or(0, |copies| copies.take(key, max));
        self.drop_empty();
        taken
    }

    /// Returns the number of extra copies, and the number of items that have any.
    pub fn totals(&self) -> (u64, usize) {
        self.list().map_or((0, 0), |copies| (copies.total, copies.entries))
    }

    pub fn size_in_bytes(&self) -> usize {
        self.list().map_or(0, Copies::size_in_bytes)
    }
}

impl Copies {
    /// Creates an empty list. Allocates nothing.
    pub fn new(keys: ClassKeys) -> Self {
        let layout = Layout::for_count(keys, 0);
        Self { keys, layout, bytes: Vec::new(), slots: 0, homes: 0, entries: 0, max_entries: 0, total: 0 }
    }

    /// Returns a copy of the same size, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut bytes = reserved(self.bytes.len())?;
        bytes.extend_from_slice(&self.bytes);
        Ok(Self { bytes, ..*self })
    }

    fn into_extra_copies(self) -> Result<ExtraCopies, OutOfMemory> {
        Ok(ExtraCopies(Some(self.try_box()?)))
    }

    fn try_box(self) -> Result<Box<[Self; 1]>, OutOfMemory> {
        let mut one = reserved(1)?;
        one.push(self);
        one.try_into().map_err(|_| OutOfMemory::of(size_of::<Self>()))
    }

    /// Creates a list from entries that are in order, without duplicates, with keys and counts above 0.
    pub fn from_sorted(keys: ClassKeys, entries: &(impl Iterator<Item = (ClassKey, u32)> + Clone)) -> Result<Self, OutOfMemory> {
        let (len, max) = entries.clone().fold((0, 0), |(len, max), (_, count)| (len + 1, count.max(max)));
        let layout = Layout::for_count(keys, max);
        Self::with_homes(keys, layout, layout.homes_for(len), entries)
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
                copies.max_entries = copies.entries + homes.saturating_sub(copies.entries) / 2;
                return Ok(copies);
            }
            let end = entries.clone().fold(0, |next, (key, _)| copies.home(key).max(next) + 1);
            copies = Self { slots: end + 4 + homes / 64, bytes: Vec::new(), entries: 0, total: 0, ..copies };
        }
    }

    /// Adds entries, which are in order, to an empty table. Returns false if they need more slots. The last three slots stay
    /// empty.
    fn fill(&mut self, entries: impl Iterator<Item = (ClassKey, u32)>) -> bool {
        let mut next = 0;
        for (key, count) in entries {
            let slot = self.home(key).max(next);
            if slot + 3 >= self.slots {
                return false;
            }
            self.set(slot, key, count);
            self.entries += 1;
            self.total += u64::from(count);
            next = slot + 1;
        }
        true
    }

    pub fn size_in_bytes(&self) -> usize {
        size_of::<Self>() + self.bytes.capacity()
    }

    /// Returns the number of extra copies of an item.
    pub fn get(&self, key: ClassKey) -> u32 {
        self.find(key).map_or(0, |slot| self.count(slot))
    }

    pub fn keys(&self) -> ClassKeys {
        self.keys
    }

    /// Iterates over all entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (ClassKey, u32)> + Clone {
        self.iter_from(0).map(|(_, entry)| entry)
    }

    /// Iterates over the entries from a slot on, with their slots.
    pub fn iter_from(&self, slot: usize) -> impl Iterator<Item = (usize, (ClassKey, u32))> + Clone {
        (slot..self.slots).map(|slot| (slot, self.slot(slot))).filter(|&(_, (key, _))| key != 0)
    }

    /// Adds copies of an item. Returns false and changes nothing if the item would have more than `max` in this list. If it
    /// fails, nothing has changed.
    pub fn add(&mut self, key: ClassKey, copies: u32, max: u32) -> Result<bool, OutOfMemory> {
        let found = self.find(key);
        let count = found.map_or(0, |slot| self.count(slot));
        let Some(sum) = count.checked_add(copies).filter(|&sum| sum <= max) else { return Ok(false) };
        match found {
            Ok(slot) if sum <= self.layout.max_count => self.set(slot, key, sum),
            Err(slot) if sum <= self.layout.max_count && self.has_room() => self.insert_at(slot, key, sum),
            _ => {
                let wider = Layout::for_count(self.keys, sum.max(self.layout.max_count));
                self.rebuild(wider, self.entries + 1)?;
                return self.add(key, copies, max);
            }
        }
        self.total += u64::from(copies);
        Ok(true)
    }

    /// Returns true if there is room for another entry, wherever its home is. The last slot stays empty.
    fn has_room(&self) -> bool {
        self.entries < self.max_entries && self.key(self.slots - 2) == 0
    }

    /// Rebuilds the table with room for this many entries, in slots of this layout. If it fails, nothing has changed.
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

    /// Removes up to `max` copies of an item. Returns how many were removed.
    pub fn take(&mut self, key: ClassKey, max: u32) -> u32 {
        let Ok(slot) = self.find(key) else { return 0 };
        let count = self.count(slot);
        let taken = count.min(max);
        self.set(slot, key, count - taken);
        self.total -= u64::from(taken);
        if taken == count {
            self.remove_at(slot);
        }
        taken
    }

    /// Removes an entry, and moves the entries behind it up as long as they are not at home.
    fn remove_at(&mut self, slot: usize) {
        let size = self.layout.slot_bytes;
        let is_moved = |&slot: &usize| self.key(slot) != 0 && self.home(self.key(slot)) < slot;
        let end = slot + 1 + (slot + 1..self.slots).take_while(is_moved).count();
        self.bytes.copy_within((slot + 1) * size..end * size, slot * size);
        self.set(end - 1, 0, 0);
        self.entries -= 1;
        // If there is no memory for a smaller table, this one stays.
        if self.slots > most_slots(self.entries) {
            _ = self.rebuild(self.layout, self.entries);
        }
    }

    /// Returns the slot of a key, or as an error the slot where it would be inserted.
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

    /// Returns the key in a slot: 0 if the slot is empty or behind the last one.
    #[inline]
    fn key(&self, slot: usize) -> ClassKey {
        self.window(slot) & self.layout.key_mask
    }

    #[inline]
    fn count(&self, slot: usize) -> u32 {
        self.slot(slot).1
    }

    /// Returns the key and the count in a slot.
    #[inline]
    fn slot(&self, slot: usize) -> (ClassKey, u32) {
        let Layout { count_at, key_mask, max_count, .. } = self.layout;
        let window = self.window(slot);
        (window & key_mask, low_half(low_word(window >> count_at)) & max_count)
    }

    /// Reads the bytes from a slot on. Returns 0 behind the last slot.
    #[inline]
    fn window(&self, slot: usize) -> u128 {
        let window = self.bytes.get(slot * self.layout.slot_bytes..).and_then(|bytes| bytes.first_chunk::<WINDOW>());
        window.map_or(0, |window| u128::from_le_bytes(*window))
    }

    #[inline]
    fn set(&mut self, slot: usize, key: ClassKey, count: u32) {
        let Layout { count_at, slot_bytes, .. } = self.layout;
        let Some(window) = self.bytes.get_mut(slot * slot_bytes..).and_then(|bytes| bytes.first_chunk_mut::<WINDOW>()) else {
            return;
        };
        let entry = key | u128::from(count) << count_at;
        // Shifts in two steps, because a slot may be as long as a window.
        let others = u128::MAX << (8 * slot_bytes - 1) << 1;
        *window = (u128::from_le_bytes(*window) & others | entry).to_le_bytes();
    }
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "returns the lower half")]
pub(crate) fn low_word(value: u128) -> u64 {
    value as u64
}

#[inline]
fn load_u64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[inline]
fn load_u32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// The extra copies in the snapshot of a fixed filter: their total, and the entries in order. If the bytes are corrupt, results
/// may be wrong.
#[derive(Clone, Copy)]
pub(crate) struct SnapshotCopies<'a>(&'a [u8]);

impl<'a> SnapshotCopies<'a> {
    /// Wraps bytes whose number is [`snapshot_bytes`] of the entries.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns a copy of the bytes.
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

    /// Returns the number of extra copies that the snapshot states.
    pub fn total(self) -> u64 {
        load_u64(self.0, 0)
    }

    pub fn get(self, key: ClassKey) -> u32 {
        let list = self.list();
        list.binary_search_by_key(&key, |entry| decode(entry).0).map_or(0, |at| decode(&list[at]).1)
    }

    pub fn iter(self) -> impl Iterator<Item = (ClassKey, u32)> + Clone + use<'a> {
        self.list().iter().map(decode)
    }
}

/// Encodes an entry in the snapshot of a fixed filter.
pub(crate) fn encode((key, count): (ClassKey, u32)) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    bytes[..8].copy_from_slice(&low_word(key).to_le_bytes());
    bytes[8..].copy_from_slice(&count.to_le_bytes());
    bytes
}

fn decode(entry: &[u8; ENTRY_BYTES]) -> (ClassKey, u32) {
    (load_u64(entry, 0).into(), load_u32(entry, 8))
}

/// The length of an entry in the snapshot of a growing filter: a key of 11 bytes, a byte for its generation and a count of 4
/// bytes.
pub(crate) const LONG_ENTRY_BYTES: usize = 16;

/// The number of bits in the key of such an entry.
const LONG_KEY_BITS: u32 = 88;
const LONG_KEY_MASK: ClassKey = ClassKey::MAX >> (ClassKey::BITS - LONG_KEY_BITS);

/// The extra copies of a partition in a snapshot: entries in the order of generations, and then of keys. If the bytes are
/// corrupt, results may be wrong.
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

    /// Iterates over all entries: generation, key and count.
    pub fn iter(self) -> impl Iterator<Item = (u8, ClassKey, u32)> + Clone + use<'a> {
        self.0.iter().map(decode_long)
    }

    /// Iterates over the entries of a generation.
    pub fn of_generation(self, generation: u8) -> impl Iterator<Item = (ClassKey, u32)> + Clone + use<'a> {
        let start = self.0.partition_point(|entry| decode_long(entry).0 < generation);
        let end = self.0.partition_point(|entry| decode_long(entry).0 <= generation);
        Self(self.0.get(start..end).unwrap_or_default()).iter().map(|(_, key, count)| (key, count))
    }
}

/// Encodes an entry in the snapshot of a growing filter.
pub(crate) fn encode_long((generation, key, count): (u8, ClassKey, u32)) -> [u8; LONG_ENTRY_BYTES] {
    debug_assert!(key <= LONG_KEY_MASK);
    (ClassKey::from(count) << 96 | ClassKey::from(generation) << LONG_KEY_BITS | key).to_le_bytes()
}

fn decode_long(entry: &[u8; LONG_ENTRY_BYTES]) -> (u8, ClassKey, u32) {
    let (key, count) = (ClassKey::from_le_bytes(*entry) & LONG_KEY_MASK, [entry[12], entry[13], entry[14], entry[15]]);
    (entry[11], key, u32::from_le_bytes(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn check(copies: &Copies, model: &BTreeMap<ClassKey, u32>) {
        assert!(copies.iter().eq(model.iter().map(|(&key, &count)| (key, count))));
        assert_eq!((copies.entries, copies.total), (model.len(), model.values().map(|&count| u64::from(count)).sum()));
        let occupied: Vec<_> = (0..copies.slots).filter(|&slot| copies.count(slot) > 0).collect();
        for &slot in &occupied {
            let home = copies.home(copies.key(slot));
            assert!((home..=slot).all(|slot| copies.count(slot) > 0), "slot {slot}, home {home}");
        }
        assert!(copies.slots == 0 || copies.key(copies.slots - 1) == 0);
        if copies.keys.bits > u64::BITS {
            return;
        }
        let mut bytes = copies.total.to_le_bytes().to_vec();
        bytes.extend(copies.iter().flat_map(encode));
        let stored = SnapshotCopies::new(&bytes);
        assert_eq!((stored.entries(), stored.total()), (copies.entries, copies.total));
        assert!(stored.iter().eq(copies.iter()));
        assert!(model.iter().all(|(&key, &count)| stored.get(key) == count && copies.get(key) == count));
        let read = Copies::from_sorted(copies.keys, &stored.iter()).expect("there is memory");
        assert!(read.iter().eq(copies.iter()));
    }

    proptest! {
        /// Compares lists of all sizes with a map. Keys are close together, at both ends, and anywhere.
        #[test]
        fn lists_equal_a_map(
            bits in 8_u32..=ClassKeys::MAX_BITS,
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
                    let count = model.get_mut(&key).expect("the model has the key");
                    *count -= 1;
                    if *count == 0 {
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

        /// The charge covers a list regardless of its history, if nobody chose the keys. (Many keys near the last home need more
        /// slots behind it.)
        #[test]
        fn a_list_never_exceeds_its_charge(
            bits in 16_u32..=ClassKeys::MAX_BITS,
            inserted in prop::collection::vec((any::<ClassKey>(), any::<u32>()), 1..if cfg!(miri) { 60 } else { 1000 }),
            left in 0_usize..100,
        ) {
            let keys = ClassKeys { fingerprint_bits: 4, bits };
            let mut copies = Copies::new(keys);
            let is_covered = |copies: &Copies| copies.entries == 0 || copies.size_in_bytes() <= keys.charge(copies.entries);
            for &(key, count) in &inserted {
                copies.add((key & keys.mask()).max(1), count.max(1), u32::MAX).expect("there is memory");
                prop_assert!(is_covered(&copies), "{} entries in {} homes, {} slots", copies.entries, copies.homes, copies.slots);
            }
            for &(key, _) in inserted.get(left..).unwrap_or_default() {
                copies.take((key & keys.mask()).max(1), u32::MAX);
                prop_assert!(is_covered(&copies), "{} entries in {} homes, {} slots", copies.entries, copies.homes, copies.slots);
            }
        }
    }

    #[test]
    fn keys_identify_buckets_and_fingerprint() {
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
    fn each_generation_has_its_own_entries() {
        let entries = [(0, 7, 1), (0, LONG_KEY_MASK, 2), (3, 0, u32::MAX), (3, 7, 9), (255, LONG_KEY_MASK >> 8, 5)];
        let bytes: Vec<u8> = entries.into_iter().flat_map(encode_long).collect();
        let list = LongEntries::new(&bytes);
        assert!(list.iter().eq(entries));
        assert!(list.of_generation(3).eq([(0, u32::MAX), (7, 9)]) && list.of_generation(1).count() == 0);
        assert!(entries.into_iter().all(|(generation, key, count)| list.get(generation, key) == count));
        assert_eq!((list.get(1, 7), list.get(3, 8)), (0, 0));
    }

    /// An entry takes at most the 12 bytes that docs/DESIGN.md states.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn an_entry_takes_at_most_12_bytes() {
        // The last row is for a generation.
        for (buckets, fingerprint_bits) in [(1 << 18, 13), (1 << 25, 13), (1 << 20, 8), (1 << 8, 13 + 16)] {
            let keys = ClassKeys::new(buckets, fingerprint_bits);
            let mut copies = Copies::new(keys);
            let mut worst = 0.0_f64;
            for item in 0..20_000_u64 {
                copies
                    .add(ClassKey::from(item + 1).wrapping_mul(0x9e37_79b9_7f4a_7c55) & keys.mask(), 1, u32::MAX)
                    .expect("there is memory");
                if item > 1000 {
                    worst = worst.max(copies.size_in_bytes() as f64 / copies.entries as f64);
                }
            }
            assert!(worst <= 12.0, "{worst} bytes for {keys:?}");
        }
    }
}
