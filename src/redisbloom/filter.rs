//! Queries and removals.

use alloc::vec::Vec;
use core::fmt;

use super::{
    chunks::size_of_filters,
    header::{Fields, Header},
};
use crate::{
    bits::{index, low_half, wide},
    filter::{Core, CoreRemove, Filter},
    hash::RedisBloomHash,
    kernel::{Hashes, answers},
    params::{Addressing, false_positive_rate},
    storage::{OutOfMemory, reserved},
    table::Uniform,
};

/// The constant of `MurmurHash2`: a fingerprint times it is the distance between its two buckets.
const MULTIPLIER: u64 = 0x5bd1_e995;

/// Different fingerprints: 1 to 255.
const FINGERPRINTS: u64 = 255;

/// The length of a fingerprint in bits.
pub(super) const FINGERPRINT_BITS: u32 = 8;

/// A slot without a fingerprint.
pub(super) const EMPTY: u8 = 0;

/// A cuckoo filter of RedisBloom: a chain of sub-filters with fingerprints of 8 bits.
///
/// Made by [`from_chunks`](RedisBloomFilter::from_chunks), by [`from_dump`](RedisBloomFilter::from_dump), or piece by piece by a
/// [`Loader`](super::Loader).
///
/// # Counting
/// `count` counts a copy twice that is in the only bucket of an item whose two buckets are one, as `CF.COUNT` does.
/// `len` is what the filter itself counts: a dump that was taken while clients wrote may have other items than it says.
///
/// # Removal
/// Remove only items that were added, as with a [`CuckooFilter`](crate::CuckooFilter#removal). A copy is removed from the last
/// sub-filter that has one. As in RedisBloom, that [compacts](RedisBloomFilter::compact) a chain when more than a tenth as many items
/// have been removed as are left; it stops at the first sub-filter whose items do not all fit into those before it.
pub type RedisBloomFilter = Filter<SubFilters, RedisBloomHash>;

/// A chain of sub-filters: the core of a [`RedisBloomFilter`].
#[derive(Clone, PartialEq, Eq)]
pub struct SubFilters {
    pub(super) header: Header,
    pub(super) filters: Vec<SubFilter>,
}

/// One of the chain.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SubFilter {
    /// The number of buckets less one.
    mask: u64,
    bucket_size: usize,
    /// A byte for each slot, bucket after bucket.
    slots: Vec<u8>,
    /// The number of slots that are taken.
    taken: u64,
}

/// Where a hash is, in every sub-filter: the number of a bucket is the rest of these by the number of buckets.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) fingerprint: u8,
    pub(super) first: u64,
    pub(super) second: u64,
}

impl Place {
    /// Of a hash of [`RedisBloomHash`]: there are no more than 2³² buckets, and 255 divides 2³² − 1.
    fn new(Uniform(hash): Uniform) -> Self {
        Self::of_stored((u64::from(low_half(hash)) % FINGERPRINTS) as u8 + 1, hash >> 32)
    }

    /// The place of a fingerprint that is in this bucket.
    pub(super) fn of_stored(fingerprint: u8, bucket: u64) -> Self {
        Self { fingerprint, first: bucket, second: bucket ^ (u64::from(fingerprint) * MULTIPLIER) }
    }
}

impl SubFilter {
    /// With these slots, a power of two of buckets.
    pub(super) fn new(slots: Vec<u8>, bucket_size: usize) -> Self {
        let taken = slots.iter().filter(|&&slot| slot != EMPTY).count();
        Self { mask: wide(slots.len() / bucket_size) - 1, bucket_size, slots, taken: wide(taken) }
    }

    pub(super) fn slots(&self) -> &[u8] {
        &self.slots
    }

    fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut slots = reserved(self.slots.len())?;
        slots.extend_from_slice(&self.slots);
        Ok(Self { slots, ..*self })
    }

    /// Bytes of memory.
    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// The number of slots that are taken.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken == 0
    }

    pub(super) fn buckets(&self) -> u64 {
        self.mask + 1
    }

    /// The first slot of a bucket.
    fn start(&self, bucket: u64) -> usize {
        index(bucket & self.mask) * self.bucket_size
    }

    pub(super) fn bucket(&self, bucket: u64) -> &[u8] {
        let start = self.start(bucket);
        &self.slots[start..start + self.bucket_size]
    }

    /// Writes a value to the first slot of a place that has another one. Returns false if there is none.
    pub(super) fn replace(&mut self, Place { first, second, .. }: Place, old: u8, new: u8) -> bool {
        for bucket in [first, second] {
            if let Some(slot) = self.bucket(bucket).iter().position(|&slot| slot == old) {
                self.set(bucket, slot, new);
                return true;
            }
        }
        false
    }

    pub(super) fn set(&mut self, bucket: u64, slot: usize, value: u8) {
        let at = self.start(bucket) + slot;
        self.taken = self.taken + u64::from(value != EMPTY) - u64::from(self.slots[at] != EMPTY);
        self.slots[at] = value;
    }

    fn contains(&self, Place { fingerprint, first, second }: Place) -> bool {
        self.bucket(first).contains(&fingerprint) || self.bucket(second).contains(&fingerprint)
    }

    /// Counts twice what is in a bucket that is both the first and the second, as RedisBloom does.
    fn count(&self, Place { fingerprint, first, second }: Place) -> usize {
        #[expect(clippy::naive_bytecount, reason = "buckets are short")]
        let in_bucket = |bucket| self.bucket(bucket).iter().filter(|&&slot| slot == fingerprint).count();
        in_bucket(first) + in_bucket(second)
    }
}

impl RedisBloomFilter {
    pub(super) fn of(header: Header, filters: Vec<SubFilter>) -> Self {
        Self { core: SubFilters { header, filters }, hasher: RedisBloomHash }
    }

    /// A copy. Unlike `clone`, it reports that there is no memory for it.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut filters = reserved(self.core.filters.len())?;
        for filter in &self.core.filters {
            filters.push(filter.try_clone()?);
        }
        Ok(RedisBloomFilter::of(self.core.header, filters))
    }

    /// The number of slots of all sub-filters.
    #[must_use]
    pub fn slots(&self) -> u64 {
        self.core.filters.iter().map(|filter| wide(filter.slots.len())).sum()
    }

    /// The number of slots that are taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.core.filters.iter().map(|filter| filter.taken).sum()
    }

    /// The number of items removed since the filter was made or compacted.
    #[must_use]
    pub fn deleted(&self) -> u64 {
        self.core.header.deleted
    }

    /// The number of sub-filters.
    #[must_use]
    pub fn sub_filters(&self) -> usize {
        self.core.filters.len()
    }

    /// Buckets of the first sub-filter, a power of two.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.core.header.buckets
    }

    /// Slots of a bucket, 1 to 255.
    #[must_use]
    pub fn bucket_size(&self) -> u32 {
        self.core.header.bucket_size.into()
    }

    /// How many times as many buckets each sub-filter has as the one before; 0 if the filter does not grow.
    #[must_use]
    pub fn expansion(&self) -> u32 {
        self.core.header.expansion.into()
    }

    /// The most evictions of an insertion, as it was reserved.
    #[must_use]
    pub fn max_iterations(&self) -> u32 {
        self.core.header.max_iterations.into()
    }
}

/// A summary in one line.
impl fmt::Display for RedisBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (slots, items, filters, size) =
            (self.slots(), self.core.header.items, self.core.filters.len(), self.core.header.bucket_size);
        let some = if filters == 1 { "" } else { "s" };
        write!(
            f,
            "RedisBloom: {items} items in {filters} sub-filter{some} of buckets of {size}: {} of {slots} slots taken",
            self.taken()
        )?;
        write!(f, ", false-positive rate {:.2e}", self.false_positive_rate())
    }
}

impl fmt::Debug for RedisBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBloomFilter").field("header", &*self.core.header).finish_non_exhaustive()
    }
}

/// RedisBloom's commands: `CF.EXISTS`, `CF.MEXISTS`, `CF.COUNT`.
#[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
impl Core for SubFilters {
    const NAME: &'static str = "RedisBloomFilter";

    fn seed(&self) -> u64 {
        0
    }

    fn addressing(&self) -> Addressing {
        Addressing::PowerOfTwo
    }

    fn contains(&self, hash: Uniform) -> bool {
        let place = Place::new(hash);
        self.filters.iter().any(|filter| filter.contains(place))
    }

    /// A copy in the only bucket of an item whose two buckets are one is counted twice.
    fn count(&self, hash: Uniform) -> u32 {
        let place = Place::new(hash);
        // No more than 2¹⁶ sub-filters, with twice 255 slots.
        self.filters.iter().map(|filter| low_half(wide(filter.count(place)))).sum()
    }

    fn contains_all(&self, hashes: &impl Hashes, mut answer: impl FnMut(u64)) {
        hashes.each_batch(0..hashes.len(), |batch| {
            answer(answers(batch, |hash| self.contains(hash)));
            true
        });
    }

    /// As the filter itself counts them. A dump that was taken while clients wrote may have others than it says.
    fn len(&self) -> usize {
        usize::try_from(self.header.items).unwrap_or(usize::MAX)
    }

    /// Those of the sub-filters add up. (The paper, section 5.1, for each of them.)
    fn false_positive_rate(&self) -> f64 {
        let items_of_a_bucket: f64 = self.filters.iter().map(|filter| filter.taken as f64 / filter.buckets() as f64).sum();
        false_positive_rate(FINGERPRINT_BITS, 1, items_of_a_bucket)
    }

    fn bytes_behind(&self) -> usize {
        size_of_filters(&self.filters)
    }
}

/// `CF.DEL`: from the last sub-filter that has a copy.
#[allow(private_bounds, private_interfaces, reason = "the trait is sealed")]
impl CoreRemove for SubFilters {
    fn remove(&mut self, hash: Uniform) -> bool {
        let place = Place::new(hash);
        if !self.filters.iter_mut().rev().any(|filter| filter.replace(place, place.fingerprint, EMPTY)) {
            return false;
        }
        self.header.update(|Fields { items, deleted, .. }| {
            *items = items.saturating_sub(1);
            *deleted = deleted.saturating_add(1);
        });
        if self.filters.len() > 1 && self.header.deleted as f64 > self.header.items as f64 * 0.1 {
            self.compact_while_it_frees();
        }
        true
    }
}

/// Moving fingerprints from later sub-filters to earlier ones, in the order in which RedisBloom does, so that the bytes are the
/// same.
impl RedisBloomFilter {
    /// Moves items from later sub-filters to earlier ones with room for them, and drops the last ones if that has emptied them.
    /// `CF.COMPACT`.
    ///
    /// Where sub-filters differ in size, an item that moves to a smaller one is found for more other items than before: the
    /// false-positive rate rises. Takes time proportional to the slots, times the sub-filters.
    pub fn compact(&mut self) {
        for filter in (1..self.core.filters.len()).rev() {
            self.core.empty_into_earlier(filter);
        }
        self.core.header.update(|fields| fields.deleted = 0);
    }
}

impl SubFilters {
    /// The same, but stops at the first sub-filter that cannot be emptied.
    pub(super) fn compact_while_it_frees(&mut self) {
        let _ = (1..self.filters.len()).rev().all(|filter| self.empty_into_earlier(filter));
        self.header.update(|fields| fields.deleted = 0);
    }

    /// Moves what it can from a sub-filter. Returns true if that was everything; then the sub-filter is dropped, if it is the last.
    fn empty_into_earlier(&mut self, filter: usize) -> bool {
        let (earlier, rest) = self.filters.split_at_mut(filter);
        let from = &mut rest[0];
        for bucket in 0..from.buckets() {
            for slot in 0..from.bucket(bucket).len() {
                let fingerprint = from.bucket(bucket)[slot];
                // Earlier sub-filters have as many buckets or fewer, so the bucket says which ones are meant there.
                let place = Place::of_stored(fingerprint, bucket);
                if fingerprint != EMPTY && earlier.iter_mut().any(|filter| filter.replace(place, EMPTY, fingerprint)) {
                    from.set(bucket, slot, EMPTY);
                }
            }
        }
        let is_empty = from.is_empty();
        if is_empty && filter + 1 == self.filters.len() {
            self.filters.pop();
            self.header.update(|fields| fields.filters -= 1);
        }
        is_empty
    }
}
