//! An ordered list of keys with counts.
//!
//! ```text
//! the keys, of whole bytes each, in order │ their counts, of 0, 1, 2 or 4 bytes each
//! ```
//!
//! A count takes as many bytes as the largest count of the list needs, and none while all counts are 1. So the entries alone
//! determine the bytes, and a snapshot has the same bytes as memory. [`ListView`] queries them in either place.
//!
//! An insertion or removal moves the entries behind it, so a list is meant for a thousand entries at most.

use alloc::vec::Vec;
use core::ops::Range;

use crate::{
    bits::{IS_SMALL, index, low_word, mask, wide},
    storage::{OutOfMemory, reserve_exact, reserved, shrink_to},
};

/// A number that represents an item in a list.
pub(crate) type ClassKey = u128;

/// An ordered list of keys with counts above 0.
#[derive(Debug)]
pub(crate) struct List {
    bytes: Vec<u8>,
    len: u32,
    key_bytes: u8,
    /// The bytes that the largest count needs.
    count_bytes: u8,
}

/// The bytes of a list. If they are corrupt, results may be wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListView<'a> {
    bytes: &'a [u8],
    len: usize,
    key_bytes: usize,
    count_bytes: usize,
}

/// Returns the bytes that a count takes in a list where it is the largest.
const fn width(count: u32) -> usize {
    match count {
        0..=1 => 0,
        2..=0xff => 1,
        0x100..=0xffff => 2,
        _ => 4,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "at most 16")]
const fn narrow(bytes: usize) -> u8 {
    bytes as u8
}

/// Reads a number of `N` bytes. Beyond the end of the bytes, it reads zeros.
#[inline]
fn load<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    match bytes.get(at..).and_then(|bytes| bytes.first_chunk()) {
        Some(chunk) => *chunk,
        None => load_last(bytes.get(at..).unwrap_or_default()),
    }
}

#[cold]
#[inline(never)]
fn load_last<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut chunk = [0; N];
    chunk.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    chunk
}

/// A search is linear up to this distance from its guess. In a list of a thousand uniform keys, the key is mostly nearer.
const NEAR: usize = 32;

/// Narrows the search for the first of `len` positions that is not below a bound: it is in the range, or the range's end. It is probably
/// near `guess`, and then the range is empty. A binary search would take longer, except far from there: each of its steps is
/// unpredictable, and reads memory elsewhere.
#[inline(always)]
fn near(len: usize, guess: usize, is_below: impl Fn(usize) -> bool) -> Range<usize> {
    let guess = guess.min(len);
    if guess < len && is_below(guess) {
        let last = len.min(guess + NEAR);
        (guess + 1..last).find(|&at| !is_below(at)).map_or(last..len, |at| at..at)
    } else {
        let first = guess.saturating_sub(NEAR);
        (first..guess).rev().find(|&at| is_below(at)).map_or(0..first, |at| at + 1..at + 1)
    }
}

/// Returns the first position in a range that is not below a bound, or its end.
#[inline]
fn lower_bound(range: Range<usize>, is_below: impl Fn(usize) -> bool) -> usize {
    let Range { mut start, mut end } = range;
    while start < end {
        let at = start.midpoint(end);
        if is_below(at) { start = at + 1 } else { end = at }
    }
    start
}

impl<'a> ListView<'a> {
    /// Wraps a list of `len` entries, whose keys have at most 16 bytes. Bytes that are missing count as zeros.
    pub fn new(bytes: &'a [u8], key_bytes: u8, count_bytes: u8, len: usize) -> Self {
        let (key_bytes, count_bytes) = (usize::from(key_bytes).min(size_of::<ClassKey>()), usize::from(count_bytes).min(4));
        // No entry begins beyond the bytes, so positions do not overflow.
        Self { bytes, len: len.min(bytes.len() / key_bytes.max(1)), key_bytes, count_bytes }
    }

    pub fn len(self) -> usize {
        self.len
    }

    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the bytes of all keys.
    pub fn keys(self) -> &'a [u8] {
        self.bytes.get(..self.len * self.key_bytes).unwrap_or_default()
    }

    pub fn count_bytes(self) -> u8 {
        narrow(self.count_bytes)
    }

    #[inline]
    fn key(self, at: usize) -> ClassKey {
        ClassKey::from_le_bytes(load(self.bytes, at * self.key_bytes)) & self.mask()
    }

    #[inline]
    fn mask(self) -> ClassKey {
        ClassKey::MAX.unbounded_shr(ClassKey::BITS - 8 * u32::from(narrow(self.key_bytes)))
    }

    #[inline(never)]
    pub fn count(self, at: usize) -> u32 {
        if self.count_bytes == 0 {
            return 1;
        }
        let count = u32::from_le_bytes(load(self.bytes, self.len * self.key_bytes + at * self.count_bytes));
        count & u32::MAX >> (u32::BITS - 8 * u32::from(narrow(self.count_bytes)))
    }

    #[inline(never)]
    fn entry(self, at: usize) -> (ClassKey, u32) {
        (self.key(at), self.count(at))
    }

    /// Returns where a key would be if keys were exactly uniform.
    #[inline(never)]
    pub fn guess(self, key: ClassKey) -> usize {
        let Some(last) = self.len.checked_sub(1).filter(|_| !IS_SMALL) else { return 0 };
        let (lowest, highest) = (self.key(0), self.key(last));
        let shift = (ClassKey::BITS - highest.leading_zeros()).saturating_sub(32);
        let [offset, span] = [key.min(highest), highest].map(|key| low_word(key.saturating_sub(lowest) >> shift) & mask(32));
        index(offset * (wide(last) & mask(32)) / span.max(1))
    }

    /// Returns the number of keys below this one.
    pub fn rank(self, key: ClassKey) -> usize {
        let (Ok(rank) | Err(rank)) = self.find(key, self.guess(key));
        rank
    }

    /// Returns the position of a key, or as an error the position at which to insert it. It is probably near `guess`, because keys
    /// are nearly uniform unless they were chosen.
    #[inline(never)]
    pub fn find(self, key: ClassKey, guess: usize) -> Result<usize, usize> {
        let at = match u64::try_from(key) {
            // Most keys are short. Comparing these takes a fraction of the time.
            Ok(short) if !IS_SMALL && self.key_bytes <= size_of::<u64>() => {
                let mask = low_word(self.mask());
                let is_below = |at| u64::from_le_bytes(load(self.bytes, at * self.key_bytes)) & mask < short;
                lower_bound(near(self.len, guess, is_below), is_below)
            }
            _ => self.partition_point(|other| other < key),
        };
        if at < self.len && self.key(at) == key { Ok(at) } else { Err(at) }
    }

    /// Returns the count of a key; 0 if it is not in the list.
    pub fn get(self, key: ClassKey) -> u32 {
        self.find(key, self.guess(key)).map_or(0, |at| self.count(at))
    }

    /// Returns the first entry whose key is at least `key`.
    #[inline(never)]
    pub fn next(self, key: ClassKey) -> Option<(ClassKey, u32)> {
        self.get_at(self.rank(key))
    }

    /// Returns the entry at a position.
    pub fn get_at(self, at: usize) -> Option<(ClassKey, u32)> {
        (at < self.len).then(|| self.entry(at))
    }

    pub fn iter(self) -> impl ExactSizeIterator<Item = (ClassKey, u32)> + Clone + use<'a> {
        self.range(0..self.len)
    }

    /// Returns the sum of all counts.
    pub fn total(self) -> u64 {
        self.iter().map(|(_, count)| u64::from(count)).fold(0, u64::saturating_add)
    }

    /// Iterates over the entries at these positions, which must exist.
    pub fn range(self, range: Range<usize>) -> impl ExactSizeIterator<Item = (ClassKey, u32)> + Clone + use<'a> {
        range.map(move |at| self.entry(at))
    }

    /// Returns the number of entries before the first one whose key is not below a bound.
    pub fn partition_point(self, is_below: impl Fn(ClassKey) -> bool) -> usize {
        lower_bound(0..self.len, |at| is_below(self.key(at)))
    }

    /// Copies a list with valid bytes into memory of its own.
    pub fn to_list(self) -> Result<List, OutOfMemory> {
        let (key_bytes, count_bytes) = (narrow(self.key_bytes), narrow(self.count_bytes));
        let capacity = List::bytes_for(key_bytes, self.len, count_bytes);
        let (mut bytes, len) = (reserved(capacity)?, u32::try_from(self.len).map_err(|_| OutOfMemory::of(capacity))?);
        bytes.extend_from_slice(self.bytes);
        Ok(List { bytes, len, key_bytes, count_bytes })
    }

    /// Returns true if the bytes have the length of their entries, and counts are not longer than the largest needs.
    pub fn is_canonical(self) -> bool {
        let is_length =
            matches!(self.count_bytes, 0..=2 | 4) && self.bytes.len() == self.len * (self.key_bytes + self.count_bytes);
        is_length && self.widest(0..self.len) == self.count_bytes
    }

    /// Returns the bytes that the largest count at these positions needs.
    #[inline(never)]
    fn widest(self, range: Range<usize>) -> usize {
        if self.count_bytes == 1 {
            // Eight counts at a time, because most counts that change make this necessary.
            let counts = self.bytes.get(self.len * self.key_bytes..).and_then(|counts| counts.get(range)).unwrap_or_default();
            let (words, rest) = counts.as_chunks();
            let is_wide = |word: &[u8; 8]| u64::from_le_bytes(*word) & !(u64::MAX / 0xff) != 0;
            return usize::from(words.iter().any(is_wide) || rest.iter().any(|count| *count > 1));
        }
        let mut widest = 0;
        for at in range {
            if widest == self.count_bytes {
                break;
            }
            widest = widest.max(width(self.count(at)));
        }
        widest
    }
}

impl List {
    /// The least bytes that a list with entries allocates, and the least step in which its memory grows.
    pub const MIN_STEP: usize = 8;

    /// A longer list grows in steps of at most a 16th of its bytes.
    pub const STEPS: usize = 16;

    /// Returns an empty list of keys with `key_bytes` bytes, 1 to 16. Allocates nothing.
    pub const fn new(key_bytes: u8) -> Self {
        Self { bytes: Vec::new(), len: 0, key_bytes, count_bytes: 0 }
    }

    /// Returns a list of the first `len` of these entries, whose keys are in order and differ, and whose counts are above 0 and at
    /// most `largest`. Compiled once, not for each iterator.
    pub fn build(
        key_bytes: u8,
        largest: u32,
        len: usize,
        entries: &mut dyn Iterator<Item = (ClassKey, u32)>,
    ) -> Result<Self, OutOfMemory> {
        let count_bytes = width(largest);
        let entry_bytes = usize::from(key_bytes) + count_bytes;
        let capacity = Self::bytes_for(key_bytes, len, narrow(count_bytes));
        let too_long = OutOfMemory::of(capacity);
        let mut list =
            Self { bytes: reserved(capacity)?, len: u32::try_from(len).map_err(|_| too_long)?, ..Self::new(key_bytes) };
        list.bytes.resize(len * entry_bytes, 0);
        list.count_bytes = narrow(count_bytes);
        entries.take(len).enumerate().for_each(|(at, (key, count))| list.set(at, key, count));
        Ok(list)
    }

    pub fn view(&self) -> ListView<'_> {
        let Self { ref bytes, key_bytes, count_bytes, .. } = *self;
        ListView { bytes, len: self.len(), key_bytes: key_bytes.into(), count_bytes: count_bytes.into() }
    }

    pub fn len(&self) -> usize {
        index(self.len.into())
    }

    /// Returns the length of a key in bytes.
    pub fn key_bytes(&self) -> u8 {
        self.key_bytes
    }

    pub fn get(&self, key: ClassKey) -> u32 {
        self.view().get(key)
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ClassKey, u32)> + Clone {
        self.view().iter()
    }

    /// Returns a copy of the same size, or an error if memory cannot be allocated.
    #[inline(never)]
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut bytes = reserved(self.bytes.capacity())?;
        bytes.extend_from_slice(&self.bytes);
        Ok(Self { bytes, ..*self })
    }

    pub fn size_in_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the bytes that a list of `len` entries allocates.
    #[inline(never)]
    pub const fn bytes_for(key_bytes: u8, len: usize, count_bytes: u8) -> usize {
        let bytes = len.saturating_mul(key_bytes as usize + count_bytes as usize);
        let step = (bytes / (2 * Self::STEPS)).next_power_of_two();
        let step = if step > Self::MIN_STEP { step } else { Self::MIN_STEP };
        bytes.saturating_add(step - 1) & !(step - 1)
    }

    /// Returns the bytes that the list allocates, unless there was no memory to shrink it.
    pub fn needed_bytes(&self) -> usize {
        self.capacity_for(self.len())
    }

    /// Returns [`bytes_for`](Self::bytes_for) this list, with `len` entries.
    fn capacity_for(&self, len: usize) -> usize {
        Self::bytes_for(self.key_bytes, len, self.count_bytes)
    }

    /// Finds a key as [`ListView::find`] does.
    pub fn find(&self, key: ClassKey) -> Result<usize, usize> {
        self.view().find(key, self.view().guess(key))
    }

    /// Returns by how many bytes [`add_at`](Self::add_at) raises what [`bytes_for`](Self::bytes_for) says of the list.
    pub fn growth(&self, found: Result<usize, usize>, copies: u32) -> usize {
        let count = found.map_or(0, |at| self.view().count(at));
        let (len, count_bytes) = (self.len() + usize::from(count == 0 && copies > 0), width(count.saturating_add(copies)));
        Self::bytes_for(self.key_bytes, len, self.count_bytes.max(narrow(count_bytes))) - self.capacity_for(self.len())
    }

    /// Adds copies of a key. Returns false and changes nothing if its count would exceed `most`. If it fails, nothing has changed.
    #[inline(never)]
    pub fn add(&mut self, key: ClassKey, copies: u32, most: u32) -> Result<bool, OutOfMemory> {
        self.add_at(self.find(key), key, copies, most)
    }

    /// [Adds](Self::add) copies of a key that was [found](ListView::find) there.
    #[inline(never)]
    pub fn add_at(&mut self, found: Result<usize, usize>, key: ClassKey, copies: u32, most: u32) -> Result<bool, OutOfMemory> {
        let count = found.map_or(0, |at| self.view().count(at));
        let Some(sum) = count.checked_add(copies).filter(|&sum| sum <= most) else { return Ok(false) };
        if sum == 0 {
            return Ok(true);
        }
        let widened = self.count_bytes.max(narrow(width(sum)));
        if found.is_err() || widened > self.count_bytes {
            self.reserve(self.len() + usize::from(found.is_err()), widened)?;
        }
        // Nothing fails from here on.
        self.set_count_bytes(widened.into());
        match found {
            Ok(at) => self.set_count(at, sum),
            Err(at) => self.insert_at(at, key, sum),
        }
        Ok(true)
    }

    /// Removes up to `most` copies of a key, and its entry with the last one. Returns how many were removed. If there is no memory
    /// for a smaller list, the list keeps its memory.
    pub fn take(&mut self, key: ClassKey, most: u32) -> u32 {
        self.find(key).map_or(0, |at| self.take_at(at, most))
    }

    /// [Removes](Self::take) copies of the key at a position.
    #[inline(never)]
    pub fn take_at(&mut self, at: usize, most: u32) -> u32 {
        let (before, count) = (self.count_bytes, self.view().count(at));
        let taken = count.min(most);
        if taken == 0 {
            return 0;
        }
        if taken == count {
            self.remove_at(at);
        } else {
            self.set_count(at, count - taken);
        }
        // Otherwise, this count still needs as many bytes as any, or another one does.
        if width(count) == usize::from(self.count_bytes) && width(count - taken) < width(count) {
            let widest = self.view().widest(0..self.len());
            self.set_count_bytes(widest);
        }
        if taken == count || self.count_bytes < before {
            self.fit();
        }
        taken
    }

    /// Moves the entries from a position on to the list that it returns. If it fails, nothing has changed.
    pub fn split_at(&mut self, rank: usize) -> Result<Self, OutOfMemory> {
        #[cfg(test)]
        super::steps::count_entries(wide(self.len()));
        let upper = self.part(rank..self.len())?;
        *self = self.part(0..rank)?;
        Ok(upper)
    }

    /// Returns a list of the entries at these positions.
    #[inline(never)]
    pub fn part(&self, range: Range<usize>) -> Result<Self, OutOfMemory> {
        let ListView { len, key_bytes, count_bytes, .. } = self.view();
        let widest = self.view().widest(range.clone());
        let (counts, part) = (len * key_bytes, range.len());
        let mut bytes = reserved(self.capacity_for(part))?;
        bytes.extend_from_slice(&self.bytes[range.start * key_bytes..range.end * key_bytes]);
        bytes.extend_from_slice(&self.bytes[counts + range.start * count_bytes..counts + range.end * count_bytes]);
        let mut list = Self { bytes, len: u32::try_from(part).unwrap_or(self.len), ..*self };
        if widest < count_bytes {
            list.set_count_bytes(widest);
            list.fit();
        }
        Ok(list)
    }

    /// Appends the entries of a list whose keys are all above those of this one. If it fails, nothing has changed.
    #[inline(never)]
    pub fn append(&mut self, upper: &Self) -> Result<(), OutOfMemory> {
        #[cfg(test)]
        super::steps::count_entries(wide(self.len() + upper.len()));
        let count_bytes = self.count_bytes.max(upper.count_bytes);
        self.reserve(self.len() + upper.len(), count_bytes)?;
        self.set_count_bytes(count_bytes.into());
        let (ListView { len, key_bytes, .. }, lower_end) = (self.view(), self.bytes.len());
        let (counts, upper_keys) = (len * key_bytes, upper.len() * key_bytes);
        self.bytes.resize(lower_end + upper_keys + upper.len() * usize::from(count_bytes), 0);
        self.bytes.copy_within(counts..lower_end, counts + upper_keys);
        self.bytes[counts..][..upper_keys].copy_from_slice(&upper.bytes[..upper_keys]);
        self.len += upper.len;
        if count_bytes > 0 {
            upper.iter().enumerate().for_each(|(at, (_, count))| self.set_count(len + at, count));
        }
        Ok(())
    }

    /// Makes room for a list of `len` entries, with counts of `count_bytes` bytes.
    #[inline(never)]
    fn reserve(&mut self, len: usize, count_bytes: u8) -> Result<(), OutOfMemory> {
        let more = Self::bytes_for(self.key_bytes, len, count_bytes).saturating_sub(self.bytes.len());
        reserve_exact(&mut self.bytes, more)
    }

    /// Changes the length of each count. All counts fit, and longer ones have been reserved.
    fn set_count_bytes(&mut self, count_bytes: usize) {
        if count_bytes != self.view().count_bytes {
            self.change_count_bytes(count_bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn change_count_bytes(&mut self, count_bytes: usize) {
        let before = self.view().count_bytes;
        let (len, counts) = (self.len(), self.len() * self.view().key_bytes);
        // Without bytes for them, all counts are 1.
        self.bytes.resize(counts + len * count_bytes.max(before), (count_bytes == 1).into());
        let move_count = |list: &mut Self, at: usize| {
            list.count_bytes = narrow(before);
            let count = list.view().count(at);
            list.count_bytes = narrow(count_bytes);
            list.set_count(at, count);
        };
        match (before, count_bytes) {
            (0, 1) | (_, 0) => {}
            _ if count_bytes > before => (0..len).rev().for_each(|at| move_count(self, at)),
            _ => (0..len).for_each(|at| move_count(self, at)),
        }
        self.count_bytes = narrow(count_bytes);
        self.bytes.truncate(counts + len * count_bytes);
    }

    /// Inserts an entry. There is memory for it, and its count fits.
    #[inline(never)]
    fn insert_at(&mut self, at: usize, key: ClassKey, count: u32) {
        let ListView { len, key_bytes, count_bytes, .. } = self.view();
        #[cfg(test)]
        super::steps::count_entries(wide(len - at));
        let (counts, end) = (len * key_bytes, len * (key_bytes + count_bytes));
        self.bytes.resize(end + key_bytes + count_bytes, 0);
        self.bytes.copy_within(counts + at * count_bytes..end, counts + key_bytes + (at + 1) * count_bytes);
        self.bytes.copy_within(at * key_bytes..counts + at * count_bytes, (at + 1) * key_bytes);
        self.len += 1;
        self.set(at, key, count);
    }

    #[inline(never)]
    fn remove_at(&mut self, at: usize) {
        let ListView { len, key_bytes, count_bytes, .. } = self.view();
        #[cfg(test)]
        super::steps::count_entries(wide(len - at));
        let (counts, end) = (len * key_bytes, len * (key_bytes + count_bytes));
        self.bytes.copy_within((at + 1) * key_bytes..counts + at * count_bytes, at * key_bytes);
        self.bytes.copy_within(counts + (at + 1) * count_bytes..end, counts - key_bytes + at * count_bytes);
        self.bytes.truncate(end - key_bytes - count_bytes);
        self.len -= 1;
    }

    /// Frees memory that the entries no longer need.
    #[inline(never)]
    fn fit(&mut self) {
        let capacity = self.capacity_for(self.len());
        if capacity == 0 {
            self.bytes = Vec::new();
        } else if self.bytes.capacity() > capacity {
            shrink_to(&mut self.bytes, capacity);
        }
    }

    fn set(&mut self, at: usize, key: ClassKey, count: u32) {
        let key_bytes = self.view().key_bytes;
        self.bytes[at * key_bytes..][..key_bytes].copy_from_slice(&key.to_le_bytes()[..key_bytes]);
        if self.count_bytes > 0 {
            self.set_count(at, count);
        }
    }

    #[inline(never)]
    fn set_count(&mut self, at: usize, count: u32) {
        let ListView { len, key_bytes, count_bytes, .. } = self.view();
        debug_assert!(width(count) <= count_bytes);
        let bytes = &mut self.bytes[len * key_bytes + at * count_bytes..][..count_bytes];
        let [first, ..] = count.to_le_bytes();
        match bytes {
            [byte] => *byte = first,
            bytes => bytes.copy_from_slice(&count.to_le_bytes()[..count_bytes]),
        }
    }
}

/// Checks for [`assert_consistent`](crate::ElasticFilter::assert_consistent).
impl List {
    pub fn assert_consistent(&self) {
        let view = self.view();
        assert!(self.iter().zip(self.iter().skip(1)).all(|((one, _), (next, _))| one < next), "keys are not in order");
        assert!(self.iter().all(|(_, count)| count > 0), "a count is 0");
        assert!(view.is_canonical(), "the length of the bytes");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::{prelude::*, test_runner::RngSeed};
    use std::collections::BTreeMap;

    const MOST: u32 = u32::MAX - 7;

    fn check(list: &List, model: &BTreeMap<ClassKey, u32>) {
        list.assert_consistent();
        let entries = model.iter().map(|(&key, &count)| (key, count));
        assert!(list.iter().eq(entries.clone()) && list.len() == model.len());
        assert_eq!(list.size_in_bytes(), list.capacity_for(list.len()));
        for (key, count) in entries {
            assert_eq!(list.get(key), count);
            for near in [key.saturating_sub(1), key, key.saturating_add(1)] {
                assert_eq!(list.view().next(near), model.range(near..).next().map(|(&key, &count)| (key, count)));
            }
        }
        // The entries alone determine bytes and memory.
        let largest = list.iter().map(|(_, count)| count).max().unwrap_or(0);
        let rebuilt = List::build(list.key_bytes, largest, list.len(), &mut list.iter()).expect("there is memory");
        let copied = list.view().to_list().expect("there is memory");
        for other in [rebuilt, copied] {
            assert_eq!((&other.bytes, other.size_in_bytes()), (&list.bytes, list.size_in_bytes()));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn lists_equal_a_map(
            key_bytes in 1_u8..=16,
            operations in prop::collection::vec((0_u8..8, any::<ClassKey>(), 0_u32..5), 0..if cfg!(miri) { 30 } else { 400 }),
            cut in any::<ClassKey>(),
        ) {
            let last = ClassKey::MAX >> (ClassKey::BITS - 8 * u32::from(key_bytes));
            let (mut list, mut model) = (List::new(key_bytes), BTreeMap::new());
            for (kind, number, size) in operations {
                let key = match kind {
                    0 => number % 16,
                    1 => last - number % 16,
                    _ => number & last,
                };
                let copies = [1, 1, 2, 300, 1 << 31][size as usize];
                let present = model.range(key..).next().map(|(&key, _)| key);
                if let (6.., Some(key)) = (kind, present) {
                    let count: u32 = model[&key];
                    prop_assert_eq!(list.take(key, copies), count.min(copies));
                    if count > copies { model.insert(key, count - copies); } else { model.remove(&key); }
                } else {
                    let key = if kind == 5 { present.unwrap_or(key) } else { key };
                    let sum = model.get(&key).copied().unwrap_or(0).checked_add(copies).filter(|&sum| sum <= MOST);
                    prop_assert_eq!(list.add(key, copies, MOST), Ok(sum.is_some()));
                    sum.map(|sum| model.insert(key, sum));
                }
                list.assert_consistent();
            }
            check(&list, &model);
            let copy = list.try_clone().expect("there is memory");
            check(&copy, &model);
            let cut = match (cut % 3, model.keys().nth(model.len() / 2)) {
                (0, Some(&key)) => key,
                _ => cut & last,
            };
            let rank = list.view().rank(cut);
            let upper = list.split_at(rank).expect("there is memory");
            let upper_model = model.split_off(&cut);
            check(&list, &model);
            check(&upper, &upper_model);
            list.append(&upper).expect("there is memory");
            model.extend(upper_model);
            check(&list, &model);
            prop_assert_eq!(&list.bytes, &copy.bytes);
            for (key, count) in model {
                prop_assert_eq!((list.take(key, u32::MAX), list.take(key, 1)), (count, 0));
            }
            check(&list, &BTreeMap::new());
        }

        #[test]
        fn hostile_bytes_never_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            key_bytes in any::<u8>(),
            count_bytes in any::<u8>(),
            len in prop::sample::select([0, 1, 2, 7, 12, 60, usize::MAX / 4, usize::MAX].to_vec()),
            key in any::<ClassKey>(),
        ) {
            let view = ListView::new(&bytes, key_bytes, count_bytes, len);
            let entries: Vec<_> = view.iter().collect();
            prop_assert!(entries.len() == view.len() && view.len() <= len.min(bytes.len()));
            for key in entries.into_iter().map(|(key, _)| key).chain([key, 0, ClassKey::MAX]) {
                view.get(key);
                view.next(key);
            }
        }
    }

    #[test]
    fn memory_grows_in_small_steps() {
        for (key_bytes, count_bytes) in [(1, 0), (5, 0), (5, 1), (12, 4)] {
            assert_eq!(List::bytes_for(key_bytes, 0, count_bytes), 0);
            for len in 1..3000 {
                let (bytes, needed) = (List::bytes_for(key_bytes, len, count_bytes), len * usize::from(key_bytes + count_bytes));
                assert!(bytes >= needed.max(8) && bytes <= needed + (needed / 16).max(8), "{len} entries: {bytes} bytes");
            }
        }
        assert!(List::bytes_for(16, usize::MAX, 4) >= usize::MAX / 2);
        assert!(size_of::<List>() <= 32);
    }

    /// Counts take no byte while all are 1, and become short again when the large ones go.
    #[test]
    fn counts_take_as_many_bytes_as_the_largest_needs() {
        let mut list = List::new(5);
        for key in 0..100 {
            assert_eq!(list.add(key, 1, MOST), Ok(true));
        }
        for (key, copies, count_bytes) in [(7, 1, 1), (9, 254, 1), (9, 1, 2), (3, 65_535, 4)] {
            assert_eq!(list.add(key, copies, MOST), Ok(true));
            assert_eq!(list.count_bytes, count_bytes);
        }
        assert_eq!((list.get(7), list.get(9), list.get(3), list.get(99)), (2, 256, 65_536, 1));
        for (key, copies, count_bytes) in [(3, 65_536, 2), (9, 1, 1), (9, 255, 1), (7, 1, 0)] {
            assert_eq!(list.take(key, copies), copies);
            assert_eq!(list.count_bytes, count_bytes);
            list.assert_consistent();
        }
        assert_eq!((list.len(), list.bytes.len()), (98, 490));
    }
}
