//! Reads, queries and writes the cuckoo filters of RedisBloom: the chunks that its `CF.SCANDUMP` gives and its `CF.LOADCHUNK`
//! takes. [`guide::redisbloom`](crate::guide::redisbloom) describes the format.
//!
//! ```
//! use koel::redisbloom::RedisBloomFilter;
//!
//! // RESERVE of two buckets; one item, "alice", was added.
//! let header = [[1, 0, 0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0], [0; 8], [1, 0, 0, 0, 0, 0, 0, 0]].concat();
//! let header = [&header[..], &[2, 0, 20, 0, 1, 0]].concat();
//! let mut filter = RedisBloomFilter::from_chunks([(1, &header[..]), (5, &[0, 213, 0, 0])])?;
//! assert!(filter.contains("alice") && filter.count("alice") == 1 && !filter.contains("bob"));
//! assert!(filter.remove("alice"));
//! // What CF.LOADCHUNK takes, in order.
//! assert_eq!(filter.chunks().map(|(iterator, bytes)| (iterator, bytes.len())).collect::<Vec<_>>(), [(1, 38), (5, 4)]);
//! # Ok::<(), koel::SnapshotError>(())
//! ```
//!
//! - Answers equal those of RedisBloom, false positives and counts included. Chunks that are read and not changed are written back
//!   byte for byte; so is what removals leave.
//! - Items are bytes, as in the server: the argument of `CF.ADD`, a number in its decimal digits.
//! - A filter that has not grown converts to a [`CuckooFilter`](crate::CuckooFilter), and back
//!   ([`to_filter`](RedisBloomFilter::to_filter), [`from_filter`](RedisBloomFilter::from_filter)).
//! - Nothing can be inserted otherwise: the chunks have 8 bits of each item's hash, which is too few for a table of another size.
//!   New items belong in an [`ElasticFilter`](crate::ElasticFilter) beside this one.
//! - Safe for untrusted input: reading validates everything, and allocates memory only for bytes that exist.

mod convert;
mod format;

use alloc::vec::Vec;
use core::fmt;

pub use crate::hash::hashers::RedisBloomHash;
use crate::{
    bits::{in_memory, index, low_half, wide},
    filter::{Core, lookups, removals},
    hash::{Uniform, answers_in_order},
    kernel::{Hashes, answers},
    params::false_positive_rate,
    storage::{OutOfMemory, reserved},
};
use format::{Fields, Header, size_of_filters};
pub use {convert::RedisBloomError, format::Loader};

/// The constant of `MurmurHash2`: a fingerprint times it is the distance between its two buckets.
const MULTIPLIER: u64 = 0x5bd1_e995;

/// Different fingerprints: 1 to 255.
const FINGERPRINTS: u64 = 255;

/// The length of a fingerprint in bits.
const FINGERPRINT_BITS: u32 = 8;

/// A slot without a fingerprint.
const EMPTY: u8 = 0;

/// A cuckoo filter of RedisBloom: a chain of sub-filters with fingerprints of 8 bits.
///
/// Made by [`from_chunks`](RedisBloomFilter::from_chunks), by [`from_dump`](RedisBloomFilter::from_dump), or piece by piece by a
/// [`Loader`].
///
/// # Counting
/// As `CF.COUNT` does, `count` counts a copy twice if the item's two buckets are the same. `len` is what the filter itself
/// counts: a dump that was taken while clients wrote may have other items than it says.
///
/// # Removal
/// Remove only items that were added, as with a [`CuckooFilter`](crate::CuckooFilter#removal). A copy is removed from the last
/// sub-filter that has one. As in RedisBloom, that [compacts](RedisBloomFilter::compact) a chain when more than a tenth as many items
/// have been removed as are left; it stops at the first sub-filter whose items do not all fit into those before it.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisBloomFilter {
    core: SubFilters,
    hasher: RedisBloomHash,
}

lookups! {
    impl [] RedisBloomFilter, RedisBloomHash;
    example "CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?", open "# // Not a view."
}
removals! {
    impl [] RedisBloomFilter, RedisBloomHash;
    example "CuckooFilter::builder().capacity(1000).false_positive_rate(0.001).build()?"
}

/// A chain of sub-filters: the core of a [`RedisBloomFilter`].
#[derive(Clone, PartialEq, Eq)]
struct SubFilters {
    header: Header,
    filters: Vec<SubFilter>,
}

/// One of the chain.
#[derive(Clone, PartialEq, Eq)]
struct SubFilter {
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
struct Position {
    fingerprint: u8,
    first: u64,
    second: u64,
}

impl Position {
    /// Of a hash of [`RedisBloomHash`]: there are no more than 2³² buckets, and 255 divides 2³² − 1.
    fn new(Uniform(hash): Uniform) -> Self {
        Self::of_stored((u64::from(low_half(hash)) % FINGERPRINTS) as u8 + 1, hash >> 32)
    }

    /// The place of a fingerprint that is in this bucket.
    fn of_stored(fingerprint: u8, bucket: u64) -> Self {
        Self { fingerprint, first: bucket, second: bucket ^ (u64::from(fingerprint) * MULTIPLIER) }
    }
}

impl SubFilter {
    /// With these slots, a power of two of buckets.
    fn new(slots: Vec<u8>, bucket_size: usize) -> Self {
        let taken = slots.iter().filter(|&&slot| slot != EMPTY).count();
        Self { mask: wide(slots.len() / bucket_size) - 1, bucket_size, slots, taken: wide(taken) }
    }

    fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let mut slots = reserved(self.slots.len())?;
        slots.extend_from_slice(&self.slots);
        Ok(Self { slots, ..*self })
    }

    fn buckets(&self) -> u64 {
        self.mask + 1
    }

    /// The first slot of a bucket.
    fn start(&self, bucket: u64) -> usize {
        index(bucket & self.mask) * self.bucket_size
    }

    fn bucket(&self, bucket: u64) -> &[u8] {
        let start = self.start(bucket);
        &self.slots[start..start + self.bucket_size]
    }

    /// Writes a value to the first slot of a place that has another one. Returns false if there is none.
    fn replace(&mut self, Position { first, second, .. }: Position, old: u8, new: u8) -> bool {
        for bucket in [first, second] {
            if let Some(slot) = self.bucket(bucket).iter().position(|&slot| slot == old) {
                self.set(bucket, slot, new);
                return true;
            }
        }
        false
    }

    fn set(&mut self, bucket: u64, slot: usize, value: u8) {
        let at = self.start(bucket) + slot;
        self.taken = self.taken + u64::from(value != EMPTY) - u64::from(self.slots[at] != EMPTY);
        self.slots[at] = value;
    }

    fn contains(&self, Position { fingerprint, first, second }: Position) -> bool {
        self.bucket(first).contains(&fingerprint) || self.bucket(second).contains(&fingerprint)
    }

    /// Counts twice what is in a bucket that is both the first and the second, as RedisBloom does.
    fn count(&self, Position { fingerprint, first, second }: Position) -> usize {
        #[expect(clippy::naive_bytecount, reason = "buckets are short")]
        let in_bucket = |bucket| self.bucket(bucket).iter().filter(|&&slot| slot == fingerprint).count();
        in_bucket(first) + in_bucket(second)
    }
}

impl RedisBloomFilter {
    fn of(header: Header, filters: Vec<SubFilter>) -> Self {
        Self { core: SubFilters { header, filters }, hasher: RedisBloomHash }
    }

    /// Clones the filter. Returns an error where `clone` aborts the process.
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

    /// The number of slots that are taken.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.core.taken()
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

    /// The number of buckets of a sub-filter as a multiple of the one before; 0 if the filter does not grow.
    #[must_use]
    pub fn expansion(&self) -> u32 {
        self.core.header.expansion.into()
    }

    /// The most evictions of an insertion, as reserved.
    #[must_use]
    pub fn max_iterations(&self) -> u32 {
        self.core.header.max_iterations.into()
    }
}

impl fmt::Debug for RedisBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBloomFilter").field("header", &*self.core.header).finish_non_exhaustive()
    }
}

/// RedisBloom's commands: `CF.EXISTS`, `CF.MEXISTS`, `CF.COUNT`.
impl Core for SubFilters {
    fn seed(&self) -> u64 {
        0
    }

    fn contains(&self, hash: Uniform) -> bool {
        let position = Position::new(hash);
        self.filters.iter().any(|filter| filter.contains(position))
    }

    /// A copy in the only bucket of an item whose two buckets are one is counted twice.
    fn count(&self, hash: Uniform) -> u32 {
        let position = Position::new(hash);
        // No more than 2¹⁶ sub-filters, with twice 255 slots.
        self.filters.iter().map(|filter| low_half(wide(filter.count(position)))).sum()
    }

    /// As the filter itself counts them. A dump that was taken while clients wrote may have others than it says.
    fn len(&self) -> usize {
        in_memory(self.header.items)
    }

    fn capacity(&self) -> usize {
        in_memory(self.slots())
    }

    fn slots(&self) -> u64 {
        self.filters.iter().map(|filter| wide(filter.slots.len())).sum()
    }

    /// Those of the sub-filters add up. (The paper, section 5.1, for each of them.)
    fn false_positive_rate(&self) -> f64 {
        let items_of_a_bucket: f64 = self.filters.iter().map(|filter| filter.taken as f64 / filter.buckets() as f64).sum();
        false_positive_rate(FINGERPRINT_BITS, 1, items_of_a_bucket)
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        let (items, filters, size) = (self.header.items, self.filters.len(), self.header.bucket_size);
        let some = if filters == 1 { "" } else { "s" };
        write!(f, "RedisBloom: {items} items in {filters} sub-filter{some} of buckets of {size}: ")?;
        write!(f, "{} of {} slots taken, {bytes} bytes", self.taken(), self.slots())
    }

    fn bytes_behind(&self) -> usize {
        size_of_filters(&self.filters)
    }
}

impl SubFilters {
    /// `CF.DEL`: from the last sub-filter that has a copy.
    fn remove(&mut self, hash: Uniform) -> bool {
        let position = Position::new(hash);
        if !self.filters.iter_mut().rev().any(|filter| filter.replace(position, position.fingerprint, EMPTY)) {
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

    /// Removes all hashes, and writes which were found.
    fn remove_all(&mut self, hashes: &impl Hashes, removed: &mut [bool]) {
        let mut answer = answers_in_order(removed);
        hashes.each_batch(0..hashes.len(), |batch| {
            answer(answers(batch, |hash| self.remove(hash)));
            true
        });
    }
}

/// Moving fingerprints from later sub-filters to earlier ones, in the order in which RedisBloom does, so that the bytes are the
/// same.
impl RedisBloomFilter {
    /// Moves items from later sub-filters to earlier ones with room for them, and drops the last ones if that has emptied them.
    /// `CF.COMPACT`.
    ///
    /// Where sub-filters differ in size, an item that moves to a smaller one collides with more other items than before: the
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
    fn compact_while_it_frees(&mut self) {
        let _ = (1..self.filters.len()).rev().all(|filter| self.empty_into_earlier(filter));
        self.header.update(|fields| fields.deleted = 0);
    }

    fn taken(&self) -> u64 {
        self.filters.iter().map(|filter| filter.taken).sum()
    }

    /// Moves what it can from a sub-filter. Returns true if that was everything; then the sub-filter is dropped, if it is the last.
    fn empty_into_earlier(&mut self, filter: usize) -> bool {
        let (earlier, rest) = self.filters.split_at_mut(filter);
        let from = &mut rest[0];
        for bucket in 0..from.buckets() {
            for slot in 0..from.bucket(bucket).len() {
                let fingerprint = from.bucket(bucket)[slot];
                // Earlier sub-filters have as many buckets or fewer, so the bucket says which ones are meant there.
                let position = Position::of_stored(fingerprint, bucket);
                if fingerprint != EMPTY && earlier.iter_mut().any(|filter| filter.replace(position, EMPTY, fingerprint)) {
                    from.set(bucket, slot, EMPTY);
                }
            }
        }
        let is_empty = from.taken == 0;
        if is_empty && filter + 1 == self.filters.len() {
            self.filters.pop();
            self.header.update(|fields| fields.filters -= 1);
        }
        is_empty
    }
}
