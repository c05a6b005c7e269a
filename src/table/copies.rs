//! Extra copies: copies of items that are counted beside the table instead of stored in it (docs/DESIGN.md, "Copies").
//!
//! A table has every item at least once. Copies that take room from other items are counted here instead: lists map a fingerprint
//! in its pair of buckets, which is all that a filter knows of an item, to the number of its extra copies. A generation of a
//! growing filter also knows bits of the item's stream.
//!
//! Each list has a range of keys: those that begin with the same bits. Linear hashing says how many lists there are: one more for
//! every [`Copies::MEAN`] entries. The next list is the upper half of an older one, so an insertion or a removal moves the entries
//! of two lists at most, and a key's list follows from the number of lists, without a directory.
//!
//! ```text
//! first bits of a key    0      1                    00     01     1
//! lists                  ├──────┼──────┤    ──▶      ├──────┼──────┼─────────────┤
//!                         list 0  list 1              list 0 list 2     list 1
//! ```

use alloc::{boxed::Box, vec::Vec};
use core::ops::Range;

use super::list::{ClassKey, List, ListView};
use crate::{
    bits::{index, low_word, mask, product, wide},
    storage::{OutOfMemory, reserve, reserve_exact, reserved, shrink_to},
    table::Pair,
};

/// The number of extra copies that an item may have, however many of its copies are in the table: at most 2 · 16, so that the sum
/// fits into 32 bits.
pub(crate) const MOST: u32 = u32::MAX - 2 * 16;

/// The fields before the keys in a snapshot of a fixed filter: the number of extra copies, and the length of a count in bytes.
const COUNT_BYTES_AT: usize = size_of::<u64>();
pub(crate) const KEYS_AT: usize = COUNT_BYTES_AT + 1;

/// The length of the pieces in which entries are written.
const PIECE: usize = 4096;

/// The keys of a filter: one for each fingerprint in its pair of buckets.
///
/// A key has the known bits of the item's stream, if it has one; then the smaller bucket; then the low fingerprint. So items that
/// are near each other in a table are near each other in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClassKeys {
    buckets: u64,
    stream_bits: u32,
    bucket_bits: u32,
    low_bits: u32,
}

impl ClassKeys {
    /// The most bits of the stream, of a smaller bucket, of a low fingerprint and of extra bits. No key has the most of all parts.
    const MAX_BITS: u32 = 48 + 17 + 32 + 16;

    pub fn new(buckets: u64, low_bits: u32, stream_bits: u32) -> Self {
        let keys = Self { buckets, stream_bits, bucket_bits: u64::BITS - (buckets - 1).leading_zeros(), low_bits };
        debug_assert!(keys.bits() <= Self::MAX_BITS);
        keys
    }

    /// Returns the key of an item with these known bits of its stream, these two buckets and this low fingerprint.
    #[inline]
    pub fn key(self, stream: u64, (first, second): Pair, low: u64) -> ClassKey {
        (ClassKey::from(stream) << self.bucket_bits | ClassKey::from(first.min(second))) << self.low_bits | ClassKey::from(low)
    }

    /// Returns the stream, the smaller bucket and the low fingerprint of a key, or `None` if the filter has no such bucket, or the
    /// key is too long.
    pub fn parts(self, key: ClassKey) -> Option<(u64, u64, u64)> {
        let (bucket, low) = (self.bucket(key), low_word(key) & mask(self.low_bits));
        let is_valid = key >> self.bits() == 0 && bucket < self.buckets;
        is_valid.then_some((low_word(self.stream(key)), bucket, low))
    }

    #[inline]
    fn stream(self, key: ClassKey) -> ClassKey {
        key >> (self.low_bits + self.bucket_bits)
    }

    #[inline]
    fn bucket(self, key: ClassKey) -> u64 {
        low_word(key >> self.low_bits) & mask(self.bucket_bits)
    }

    /// Returns the number of bits in a key.
    pub fn bits(self) -> u32 {
        self.stream_bits + self.bucket_bits + self.low_bits
    }

    /// Returns the number of bytes that lists of this many entries are charged. They never take more, whatever their keys and their
    /// history, unless a removal found no memory for smaller ones.
    #[inline(never)]
    pub fn charge(self, entries: usize) -> usize {
        let (lists, entry) = (lists_for(entries), usize::from(self.key_bytes()) + size_of::<u32>());
        let bytes = entries.saturating_mul(entry);
        let rounded = bytes.saturating_add(bytes / List::STEPS).saturating_add(List::MIN_STEP * lists.min(entries));
        if entries == 0 { 0 } else { rounded.saturating_add(size_of::<Copies>() + capacity_for(lists) * size_of::<List>()) }
    }

    /// Returns the length of a key in bytes.
    pub fn key_bytes(self) -> u8 {
        let [bytes, ..] = self.bits().div_ceil(8).to_le_bytes();
        bytes
    }
}

/// Returns the number of lists for this many entries.
fn lists_for(entries: usize) -> usize {
    entries.div_ceil(Copies::MEAN)
}

/// Returns the number of lists for which to allocate memory: a function of their number, in steps of a 32nd to a 16th.
fn capacity_for(lists: usize) -> usize {
    let step = (lists / 32).next_power_of_two();
    (lists + step - 1) & !(step - 1)
}

/// Lists of extra copies. The module's documentation describes them.
pub(crate) struct Copies {
    pub keys: ClassKeys,
    /// The share of 2⁶⁴ that a bucket takes.
    bucket_share: u64,
    /// As many lists as [`lists_for`] says, unless memory was lacking. The number of a key's list is the first bits of its
    /// [spread](Self::spread) key, in reverse order.
    lists: Vec<List>,
    entries: usize,
    /// The sum of all counts.
    total: u64,
    /// The bytes that the largest count has needed since there were no entries.
    most_count_bytes: u8,
}

/// Where an item is in [`Copies`], until these change.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    key: ClassKey,
    list: usize,
    /// The position in that list, or as an error the position at which to insert the item.
    at: Result<usize, usize>,
}

impl Found {
    /// Returns true if the item has extra copies.
    pub fn is_present(self) -> bool {
        self.at.is_ok()
    }
}

/// The extra copies of a filter, or of a generation: lists behind a pointer, or none, so that filters without extra copies stay
/// small. They are in a boxed array, because that can be allocated fallibly.
pub(crate) struct ExtraCopies(Option<Box<[Copies; 1]>>);

impl Clone for ExtraCopies {
    fn clone(&self) -> Self {
        self.try_clone().unwrap_or_else(|error| error.abort())
    }
}

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
    #[inline(never)]
    pub fn list_or_new(&mut self, keys: ClassKeys) -> Result<&mut Copies, OutOfMemory> {
        let list = match self.0.take() {
            Some(list) => list,
            None => Copies::new(keys).try_box()?,
        };
        Ok(&mut self.0.insert(list)[0])
    }

    /// Frees an empty list.
    #[inline(never)]
    pub fn drop_empty(&mut self) {
        self.0.take_if(|list| list[0].entries == 0);
    }

    /// Finds an item. The result is for the list that [`list_or_new`](Self::list_or_new) returns.
    pub fn find(&self, key: ClassKey) -> Found {
        self.list().map_or(Found { key, list: 0, at: Err(0) }, |copies| copies.find(key))
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

    /// [Removes](Copies::take_one) one copy of an item. Returns false if there is none.
    #[inline]
    pub fn take_one(&mut self, keys: Range<ClassKey>, preferred: ClassKey) -> bool {
        let is_taken = self.list_mut().is_some_and(|copies| copies.take_one(keys, preferred));
        self.drop_empty();
        is_taken
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
    /// The number of entries for which there is a list. With more, insertions move more bytes; with fewer, the lists themselves
    /// take more.
    const MEAN: usize = 128;

    /// If fewer entries are added at once than one in this many that a list has, each is inserted: writing the list would take longer.
    const FEW_ONE_IN: usize = 16;

    /// Creates an empty list. Allocates nothing.
    pub fn new(keys: ClassKeys) -> Self {
        Self { keys, bucket_share: u64::MAX / keys.buckets, lists: Vec::new(), entries: 0, total: 0, most_count_bytes: 0 }
    }

    /// Returns a copy of the same size, or an error if memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut lists = reserved(self.lists.capacity())?;
        for list in &self.lists {
            lists.push(list.try_clone()?);
        }
        Ok(Self { lists, ..*self })
    }

    fn into_extra_copies(self) -> Result<ExtraCopies, OutOfMemory> {
        Ok(ExtraCopies(Some(self.try_box()?)))
    }

    fn try_box(self) -> Result<Box<[Self; 1]>, OutOfMemory> {
        let mut one = reserved(1)?;
        one.push(self);
        one.try_into().map_err(|_| OutOfMemory::of(size_of::<Self>()))
    }

    /// Creates lists of entries that are in order, without duplicates, with counts above 0.
    pub fn from_sorted(keys: ClassKeys, entries: &(impl Iterator<Item = (ClassKey, u32)> + Clone)) -> Result<Self, OutOfMemory> {
        let (len, total) = entries.clone().fold((0, 0), |(len, total), (_, count)| (len + 1, total + u64::from(count)));
        let lists = reserved(capacity_for(lists_for(len)))?;
        let mut copies = Self { entries: len, total, lists, ..Self::new(keys) };
        copies.lists.resize_with(lists_for(len), || List::new(copies.keys.key_bytes()));
        let mut entries = entries.clone();
        for range in 0..copies.ranges() {
            let Some(at) = copies.list_of_range(range) else { continue };
            let here = entries.clone().take_while(|&(key, _)| copies.list_of(key).0 == at);
            let (len, largest) = here.fold((0, 0), |(len, largest), (_, count)| (len + 1, count.max(largest)));
            let list = List::build(copies.keys.key_bytes(), largest, len, &mut entries.by_ref().take(len))?;
            copies.most_count_bytes = copies.most_count_bytes.max(list.view().count_bytes());
            copies.lists[at] = list;
        }
        Ok(copies)
    }

    pub fn size_in_bytes(&self) -> usize {
        let lists = self.lists.iter().map(List::size_in_bytes).sum::<usize>();
        size_of::<Self>() + self.lists.capacity() * size_of::<List>() + lists
    }

    /// Returns an upper bound of the bytes that the largest count needs.
    pub fn most_count_bytes(&self) -> u8 {
        self.most_count_bytes
    }

    /// Returns the bytes that the largest count needs. Reads each list.
    #[inline(never)]
    pub fn count_bytes(&self) -> u8 {
        let has = |bytes: &u8| self.lists.iter().any(|list| list.view().count_bytes() == *bytes);
        [4, 2, 1].into_iter().find(has).unwrap_or(0)
    }

    /// Returns the length of the list in the snapshot of a fixed filter.
    pub fn snapshot_bytes(&self) -> usize {
        let entry = usize::from(self.keys.key_bytes() + self.count_bytes());
        if self.entries == 0 { 0 } else { KEYS_AT + self.entries * entry }
    }

    /// Calls `act` with the bytes of the list in the snapshot of a fixed filter, in pieces.
    pub fn write<E>(&self, mut act: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        act(&self.total.to_le_bytes())?;
        act(&[self.count_bytes()])?;
        self.write_entries(&mut act)
    }

    /// Calls `act` with the bytes of one list of all entries, in pieces.
    pub fn write_entries<E>(&self, act: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let mut result = Ok(());
        self.each_piece(&mut |piece| {
            result = act(piece);
            result.is_ok()
        });
        result
    }

    /// Calls `act` with these bytes, in pieces, until it returns false.
    #[inline(never)]
    fn each_piece(&self, act: &mut dyn FnMut(&[u8]) -> bool) {
        let bytes = usize::from(self.count_bytes());
        if !self.in_order().all(|list| act(list.view().keys())) || bytes == 0 {
            return;
        }
        let mut piece = [0; PIECE + 4];
        _ = self.in_order().all(|list| {
            (0..list.len()).step_by(PIECE / 4).all(|first| {
                let counts = list.view().range(first..list.len().min(first + PIECE / 4));
                let mut len = 0;
                for (_, count) in counts {
                    // The next count overwrites the bytes that this one does not need.
                    piece[len..][..4].copy_from_slice(&count.to_le_bytes());
                    len += bytes;
                }
                act(&piece[..len])
            })
        });
    }

    /// Returns the number of ranges of keys that lists have once each list has been split that is next.
    fn ranges(&self) -> usize {
        self.lists.len().checked_ilog2().map_or(0, |bits| 2 << bits)
    }

    /// Returns the list whose keys begin in a range. A list that is not split yet has two ranges.
    fn list_of_range(&self, range: usize) -> Option<usize> {
        let at = range.reverse_bits() >> (self.ranges() - 1).leading_zeros();
        (at < self.lists.len()).then_some(at)
    }

    /// Returns a number that grows with the key. Its first bits are uniform unless the keys were chosen.
    ///
    /// The bits of the stream are uniform, but the smaller of two buckets is not: with x for its share of the table, it is below
    /// that share with a probability of 1 − (1 − x)².
    #[inline]
    fn spread(&self, key: ClassKey) -> u64 {
        let above = !self.keys.bucket(key).saturating_mul(self.bucket_share);
        let uniform = !product(above, above).0;
        low_word((self.keys.stream(key) << u64::BITS | ClassKey::from(uniform)) >> self.keys.stream_bits)
    }

    /// Returns the number of a key's list, and where it would be in that list if keys were exactly uniform. There must be a list.
    #[inline]
    fn list_of(&self, key: ClassKey) -> (usize, usize) {
        let (spread, mut bits) = (self.spread(key), self.lists.len().ilog2() + 1);
        let mut at = index(spread.reverse_bits() & mask(bits));
        if at >= self.lists.len() {
            bits -= 1;
            at = index(spread.reverse_bits() & mask(bits));
        }
        (at, index(product(spread << bits, wide(self.lists[at].len())).0))
    }

    /// Returns the lists, each of which has about as many entries, so that any number of them is spread over all keys.
    pub fn lists(&self) -> impl Iterator<Item = &List> {
        self.lists.iter()
    }

    fn in_order(&self) -> impl Iterator<Item = &List> + Clone {
        (0..self.ranges()).filter_map(|range| self.lists.get(self.list_of_range(range)?))
    }

    /// Finds an entry, or where to insert it.
    #[inline]
    pub fn find(&self, key: ClassKey) -> Found {
        if self.lists.is_empty() {
            return Found { key, list: 0, at: Err(0) };
        }
        let (list, guess) = self.list_of(key);
        Found { key, list, at: self.lists[list].view().find(key, guess) }
    }

    /// Returns the number of extra copies of an item.
    pub fn get(&self, key: ClassKey) -> u32 {
        let Found { list, at, .. } = self.find(key);
        at.map_or(0, |at| self.lists[list].view().count(at))
    }

    /// Iterates over all entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (ClassKey, u32)> + Clone {
        self.in_order().flat_map(List::iter)
    }

    /// Iterates over the entries from a position on.
    pub fn iter_from(&self, start: usize) -> impl Iterator<Item = (ClassKey, u32)> + Clone {
        let mut skipped = start;
        self.in_order().flat_map(move |list| {
            let here = skipped.min(list.len());
            skipped -= here;
            list.view().range(here..list.len())
        })
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Returns the first entry whose key is at least `key`.
    #[inline(never)]
    pub fn next(&self, key: ClassKey) -> Option<(ClassKey, u32)> {
        let first = index(self.spread(key) >> (u64::BITS - self.ranges().checked_ilog2()?));
        // The list of the second of two ranges may have the entry.
        let mut lists = (first & !1..self.ranges()).filter_map(|range| self.lists.get(self.list_of_range(range)?));
        lists.find_map(|list| list.view().next(key))
    }

    /// [Adds](Self::add_at) copies of an item, with no other limit than that of a count.
    pub fn add(&mut self, key: ClassKey, copies: u32) -> Result<bool, OutOfMemory> {
        self.add_at(self.find(key), copies, u32::MAX)
    }

    /// Adds copies of an item that was [found](Self::find) there. Returns false and changes nothing if the item would have more
    /// than `max` in this list. If it fails, nothing has changed.
    pub fn add_at(&mut self, Found { key, list, at }: Found, copies: u32, max: u32) -> Result<bool, OutOfMemory> {
        if self.lists.is_empty() {
            reserve_exact(&mut self.lists, 1)?;
            self.lists.push(List::new(self.keys.key_bytes()));
        }
        let before = self.lists[list].len();
        let is_added = self.lists[list].add_at(at, key, copies, max)?;
        if is_added {
            self.total += u64::from(copies);
            self.most_count_bytes = self.most_count_bytes.max(self.lists[list].view().count_bytes());
            if self.lists[list].len() > before {
                self.entries += 1;
                self.adjust();
            }
        }
        Ok(is_added)
    }

    /// Adds copies of items in the order of their keys, which differ. Each list is written once, unless few are added to it, in a
    /// fraction of the time that single additions take. There are at most [`MOST`] copies in all. If it fails, some have been added.
    pub fn add_sorted(&mut self, mut added: &[(ClassKey, u32)]) -> Result<(), OutOfMemory> {
        if self.entries == 0 {
            *self = Self::from_sorted(self.keys, &added.iter().copied())?;
            return Ok(());
        }
        let mut merged = Vec::new();
        while let Some(&(first, _)) = added.first() {
            let at = self.list_of(first).0;
            let (here, rest) = added.split_at(added.partition_point(|&(key, _)| self.list_of(key).0 == at));
            if here.len() < self.lists[at].len() / Self::FEW_ONE_IN {
                here.iter().try_for_each(|&(key, copies)| self.add(key, copies).map(|_| ()))?;
                added = rest;
                continue;
            }
            let mut present = self.lists[at].iter().peekable();
            merged.clear();
            reserve(&mut merged, present.len() + here.len())?;
            for &(key, copies) in here {
                while let Some(entry) = present.next_if(|entry| entry.0 < key) {
                    merged.push(entry);
                }
                let count = present.next_if(|entry| entry.0 == key).map_or(0, |(_, count)| count);
                merged.push((key, count + copies));
            }
            merged.extend(present);
            #[cfg(test)]
            super::steps::count_entries(wide(merged.len()));
            let largest = merged.iter().map(|&(_, count)| count).max().unwrap_or(0);
            let list = List::build(self.keys.key_bytes(), largest, merged.len(), &mut merged.iter().copied())?;
            self.entries += list.len() - self.lists[at].len();
            self.total += here.iter().map(|&(_, copies)| u64::from(copies)).sum::<u64>();
            self.most_count_bytes = self.most_count_bytes.max(list.view().count_bytes());
            self.lists[at] = list;
            added = rest;
        }
        self.adjust();
        Ok(())
    }

    /// Removes up to `max` copies of an item. Returns how many were removed.
    #[inline(never)]
    pub fn take(&mut self, key: ClassKey, max: u32) -> u32 {
        let Found { list, at: Ok(at), .. } = self.find(key) else { return 0 };
        self.take_at(list, at, max)
    }

    /// Removes one copy of an item, whose entries have these keys and are in one list: of the `preferred` entry, or else of the first
    /// one. Returns false if there is none.
    #[inline(never)]
    pub fn take_one(&mut self, keys: Range<ClassKey>, preferred: ClassKey) -> bool {
        let Found { list, at: Ok(first) | Err(first), .. } = self.find(keys.start);
        let key_at = |at| Some(self.lists.get(list)?.view().get_at(at)?.0).filter(|key| *key < keys.end);
        let Some(key) = key_at(first) else { return false };
        let is_only = key == preferred || key_at(first + 1).is_none();
        let at = if is_only { first } else { self.find(preferred).at.unwrap_or(first) };
        self.take_at(list, at, 1) == 1
    }

    /// Removes up to `max` copies of the entry at a position of a list.
    #[inline]
    fn take_at(&mut self, list: usize, at: usize, max: u32) -> u32 {
        let before = self.lists[list].len();
        let taken = self.lists[list].take_at(at, max);
        self.total -= u64::from(taken);
        if self.lists[list].len() < before {
            self.entries -= 1;
            self.adjust();
        }
        taken
    }

    /// Splits a list, or joins two, if the number of entries calls for it: one list at a time, unless memory was lacking before.
    /// Without memory, the lists stay as they are.
    #[inline]
    fn adjust(&mut self) {
        let lists = lists_for(self.entries).max(1);
        while self.lists.len() != lists {
            let changed = if self.lists.len() < lists { self.split() } else { self.join() };
            if changed.is_err() {
                return;
            }
        }
    }

    /// Splits the list whose turn it is.
    #[cold]
    #[inline(never)]
    fn split(&mut self) -> Result<(), OutOfMemory> {
        let Some(bits) = self.lists.len().checked_ilog2() else { return Ok(()) };
        let at = self.lists.len() - (1 << bits);
        let capacity = capacity_for(self.lists.len() + 1);
        if self.lists.capacity() < capacity {
            let more = capacity - self.lists.len();
            reserve_exact(&mut self.lists, more)?;
        }
        let rank = self.lists[at].view().partition_point(|key| self.spread(key) << bits >> (u64::BITS - 1) == 0);
        let upper = self.lists[at].split_at(rank)?;
        self.lists.push(upper);
        Ok(())
    }

    /// Joins the list that was split last with the other half.
    #[cold]
    #[inline(never)]
    fn join(&mut self) -> Result<(), OutOfMemory> {
        let Some((upper, lists)) = self.lists.split_last_mut() else { return Ok(()) };
        let Some(bits) = lists.len().checked_ilog2() else { return Ok(()) };
        let at = lists.len() - (1 << bits);
        lists[at].append(upper)?;
        self.lists.pop();
        let capacity = capacity_for(self.lists.len());
        shrink_to(&mut self.lists, capacity);
        Ok(())
    }
}

/// The extra copies in the snapshot of a fixed filter: their number, the length of a count, and a [`List`] of all entries. If the
/// bytes are corrupt, results may be wrong.
#[derive(Clone, Copy)]
pub(crate) struct SnapshotCopies<'a> {
    bytes: &'a [u8],
    list: ListView<'a>,
}

impl<'a> SnapshotCopies<'a> {
    pub fn new(bytes: &'a [u8], keys: ClassKeys) -> Self {
        let (list, count_bytes) = (bytes.get(KEYS_AT..).unwrap_or_default(), bytes.get(COUNT_BYTES_AT).map_or(0, |&bytes| bytes));
        let len = list.len() / (usize::from(keys.key_bytes()) + usize::from(count_bytes));
        Self { bytes, list: ListView::new(list, keys.key_bytes(), count_bytes, len) }
    }

    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    pub fn entries(self) -> usize {
        self.list.len()
    }

    /// Returns the number of extra copies that the snapshot states.
    pub fn total(self) -> u64 {
        self.bytes.first_chunk().map_or(0, |total| u64::from_le_bytes(*total))
    }

    /// Returns true if the bytes have the length of their entries, and counts are not longer than the largest needs.
    pub fn is_canonical(self) -> bool {
        self.bytes.is_empty() || self.bytes.len() > KEYS_AT && self.list.is_canonical()
    }

    pub fn get(self, key: ClassKey) -> u32 {
        self.list.get(key)
    }

    pub fn iter(self) -> impl Iterator<Item = (ClassKey, u32)> + Clone + use<'a> {
        self.list.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::*, test_runner::RngSeed};
    use std::collections::BTreeMap;

    fn check(copies: &Copies, model: &BTreeMap<ClassKey, u32>) {
        assert!(copies.iter().eq(model.iter().map(|(&key, &count)| (key, count))));
        assert_eq!((copies.entries, copies.total), (model.len(), model.values().map(|&count| u64::from(count)).sum()));
        assert_eq!(copies.lists.len(), lists_for(copies.entries).max(copies.lists.len().min(1)));
        for start in [0, 1, model.len() / 2, model.len()] {
            assert!(copies.iter_from(start).eq(copies.iter().skip(start)));
        }
        for &key in model.keys() {
            for near in [key.saturating_sub(1), key, key + 1] {
                assert_eq!(copies.next(near), model.range(near..).next().map(|(&key, &count)| (key, count)));
            }
        }
        if copies.keys.bits() > u64::BITS {
            return;
        }
        let mut bytes = Vec::new();
        copies
            .write(|piece| {
                bytes.extend_from_slice(piece);
                Ok::<_, core::convert::Infallible>(())
            })
            .unwrap_or_else(|never| match never {});
        assert!(copies.entries == 0 || bytes.len() == copies.snapshot_bytes());
        let stored = SnapshotCopies::new(&bytes, copies.keys);
        assert!(copies.entries == 0 || stored.is_canonical());
        assert_eq!((stored.entries(), stored.total()), (copies.entries, copies.total));
        assert!(stored.iter().eq(copies.iter()));
        assert!(model.iter().all(|(&key, &count)| stored.get(key) == count && copies.get(key) == count));
        let read = Copies::from_sorted(copies.keys, &stored.iter()).expect("there is memory");
        assert!(read.iter().eq(copies.iter()));
        assert!(copies.entries == 0 || read.size_in_bytes() == copies.size_in_bytes());
    }

    /// Keys of filters of all kinds.
    fn any_keys() -> impl Strategy<Value = ClassKeys> {
        (1_u64..=1 << 31, 1_u32..=32, 0_u32..=40)
            .prop_map(|(buckets, low_bits, stream_bits)| ClassKeys::new(buckets, low_bits, stream_bits))
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        /// Compares lists of all sizes with a map. Keys are close together, at both ends, and anywhere.
        #[test]
        fn lists_equal_a_map(
            keys in any_keys(),
            operations in prop::collection::vec((0_u8..4, any::<ClassKey>(), 1_u32..1000), 0..if cfg!(miri) { 60 } else { 3000 }),
            at_once in 1_usize..400,
        ) {
            let mut copies = Copies::new(keys);
            let mut model = BTreeMap::new();
            let last = ClassKey::MAX >> (ClassKey::BITS - keys.bits());
            let key_of = |kind, number: ClassKey| match kind {
                0 => (number % 4096) & last,
                1 => last - ((number % 4096) & last),
                _ => number & last,
            };
            for added in operations.chunks(at_once).step_by(2) {
                let sorted: BTreeMap<_, _> = added.iter().map(|&(kind, number, more)| (key_of(kind, number), more)).collect();
                copies.add_sorted(&sorted.iter().map(|(&key, &more)| (key, more)).collect::<Vec<_>>()).expect("there is memory");
                copies.add_sorted(&[]).expect("there is memory");
                sorted.into_iter().for_each(|(key, more)| *model.entry(key).or_insert(0) += more);
                prop_assert!(copies.size_in_bytes() <= keys.charge(copies.entries));
            }
            check(&copies, &model);
            for (kind, number, more) in operations {
                let key = key_of(kind, number);
                let present: Option<ClassKey> = model.range(key..).next().map(|(&key, _)| key);
                if let (3, Some(key)) = (kind, present) {
                    // An item's entries differ in the lowest bits.
                    let bits = keys.low_bits.min(3);
                    let (start, end) = (key >> bits << bits, ((key >> bits) + 1) << bits);
                    let preferred = start + (ClassKey::from(more) & ((1 << bits) - 1));
                    prop_assert!(copies.take_one(start..end, preferred));
                    let first = model.range(start..).next().map_or(key, |(&first, _)| first);
                    let taken = if model.contains_key(&preferred) { preferred } else { first };
                    let count = model.get_mut(&taken).expect("the model has the key");
                    *count -= 1;
                    if *count == 0 {
                        model.remove(&taken);
                    }
                } else {
                    let more = if kind == 2 { 1 } else { more };
                    copies.add(key, more).expect("there is memory");
                    *model.entry(key).or_insert(0) += more;
                }
                prop_assert_eq!(copies.get(key), model.get(&key).copied().unwrap_or(0));
                prop_assert!(copies.entries == 0 || copies.size_in_bytes() <= keys.charge(copies.entries));
            }
            check(&copies, &model);
            for key in model.keys().copied().collect::<Vec<_>>() {
                let half = model[&key] / 2;
                prop_assert_eq!((copies.take(key, half), copies.take(key, u32::MAX)), (half, model[&key] - half));
                prop_assert!(copies.take(key, 1) == 0 && !copies.take_one(key..key + 1, key));
                prop_assert!(copies.entries == 0 || copies.size_in_bytes() <= keys.charge(copies.entries));
            }
            check(&copies, &BTreeMap::new());
        }

        #[test]
        fn spread_keys_are_in_the_order_of_keys(keys in any_keys(), one: ClassKey, other: ClassKey) {
            let (buckets, copies) = (keys.buckets, Copies::new(keys));
            let [one, other] = [one, other].map(|number| {
                let bucket = low_word(number) % buckets;
                keys.key(low_word(number >> 88) & mask(keys.stream_bits), (bucket, bucket), low_word(number >> 56) & mask(keys.low_bits))
            });
            prop_assert!(one > other || copies.spread(one) <= copies.spread(other));
        }
    }

    #[test]
    fn keys_identify_buckets_and_known_bits() {
        let keys = ClassKeys::new(1 << 20, 13, 0);
        assert_eq!((keys.bits(), keys.key_bytes()), (33, 5));
        for (bucket, low) in [(0, 1), (7, 8191), (1 << 19, 4096)] {
            let key = keys.key(0, (bucket, (1 << 20) - 1), low);
            assert_eq!(key, keys.key(0, ((1 << 20) - 1, bucket), low));
            assert_eq!(keys.parts(key), Some((0, bucket, low)));
        }
        assert_eq!(keys.parts(1 << 33), None);
        assert_eq!(ClassKeys::new(1 << 32, 32, 0).bits(), 64);
        let longest = ClassKeys::new(3 << 29, 32, 40);
        let parts = [mask(40) - 7, 1 << 30, mask(32) - 7];
        let [stream, bucket, low] = parts;
        assert_eq!(
            (longest.bits(), longest.parts(longest.key(stream, (bucket, u64::MAX), low))),
            (103, Some((stream, bucket, low)))
        );
        assert_eq!(longest.parts(longest.key(stream, (3 << 29, u64::MAX), low)), None, "there is no such bucket");
    }

    /// No operation moves many entries, because no list has many.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn lists_are_short_and_an_entry_takes_few_bytes() {
        // The last two rows are for generations.
        for (buckets, low_bits, stream_bits) in
            [(1 << 18, 13, 0), (300_000, 13, 0), (1 << 20, 8, 0), (256, 13, 16), (1 << 16, 13, 0)]
        {
            let keys = ClassKeys::new(buckets, low_bits, stream_bits);
            let mut copies = Copies::new(keys);
            for item in 0..40_000_u64 {
                let number = item.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let (first, second) = (product(number, buckets).0, product(number.wrapping_mul(number | 1), buckets).0);
                let known = number.rotate_left(32).wrapping_mul(0xb504_f333_f9de_6485) >> 8;
                let (stream, low) = (known >> low_bits & mask(stream_bits), known & mask(low_bits));
                copies.add(keys.key(stream, (first, second), low), 1).expect("there is memory");
                let longest = copies.lists.iter().map(List::len).max().unwrap_or(0);
                assert!(longest <= 3 * Copies::MEAN, "{longest} entries in a list of {item}, {keys:?}");
                let bytes = copies.size_in_bytes() as f64 / copies.entries as f64 - f64::from(keys.key_bytes());
                assert!(item < 1000 || bytes <= 0.7, "{bytes} more bytes than the key, {item} items, {keys:?}");
            }
        }
    }
}
