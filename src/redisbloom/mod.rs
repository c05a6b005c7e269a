//! Reads, queries and writes RedisBloom's cuckoo filters, as the chunks of its `CF.SCANDUMP` and `CF.LOADCHUNK`.
//! [`guide::redisbloom`](crate::guide::redisbloom) describes the format.
//!
//! ```
//! use koel::redisbloom::RedisBloomFilter;
//!
//! // The header of a filter with two buckets and one item, "alice".
//! let header = [[1, 0, 0, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0], [0; 8], [1, 0, 0, 0, 0, 0, 0, 0]].concat();
//! let header = [&header[..], &[2, 0, 20, 0, 1, 0]].concat();
//! let mut filter = RedisBloomFilter::from_chunks([(1, &header[..]), (5, &[0, 213, 0, 0])])?;
//! assert!(filter.contains("alice") && filter.count("alice") == 1 && !filter.contains("bob"));
//! assert!(filter.remove("alice"));
//! // The chunks for CF.LOADCHUNK, in order.
//! assert_eq!(filter.chunks().map(|(iterator, bytes)| (iterator, bytes.len())).collect::<Vec<_>>(), [(1, 38), (5, 4)]);
//! # Ok::<(), koel::SnapshotError>(())
//! ```
//!
//! - Lookups and counts return what RedisBloom returns, false positives included. Unchanged chunks are written back byte for byte,
//!   except for the padding of a header of 40 bytes. After removals, the chunks equal those that RedisBloom would write.
//! - Items are bytes, as on the server: the argument of `CF.ADD`. Write a number in decimal digits.
//! - A `RedisBloomFilter` accepts no insertions. One that has not grown converts to a [`CuckooFilter`](crate::CuckooFilter), which
//!   does, and back ([`to_filter`](RedisBloomFilter::to_filter), [`from_filter`](RedisBloomFilter::from_filter)). The chunks of one
//!   that has grown have 8 bits of each item's hash, too few for a table of another size: insert new items into an
//!   [`ElasticFilter`](crate::ElasticFilter) beside it.
//! - Safe for untrusted input: reading validates everything, and allocates memory only for bytes that exist.

mod convert;
mod format;

use alloc::vec::Vec;
use core::fmt;

pub use crate::hash::hashers::RedisBloomHash;
use crate::{
    bits::{in_memory, index, low_half, wide},
    filter::{Content, Core, lookups, removals, same_content},
    hash::{Uniform, results_writer},
    kernel::{Hashes, answers},
    params::false_positive_rate,
    storage::{OutOfMemory, collected, copied, reserve_exact},
    table::{Address, Fingerprint, Pair},
};
use format::{BUCKET_SIZE, BUCKETS, DELETED, EXPANSION, FILTERS, Header, ITEMS, MAX_ITERATIONS};
pub use {convert::RedisBloomError, format::Loader};

/// The length of a fingerprint in bits.
const FINGERPRINT_BITS: u32 = 8;

/// Computes an item's two buckets and its fingerprint from its [`RedisBloomHash`], for 2³² buckets. A smaller sub-filter takes bucket
/// numbers modulo its number of buckets. The lower half of the hash is RedisBloom's hash modulo 2³² − 1, which keeps the remainder
/// by 255, because 255 divides 2³² − 1.
const ADDRESS: Address = Address::power_of_two(1 << 32, FINGERPRINT_BITS);

/// A slot without a fingerprint.
const EMPTY: u8 = 0;

/// A cuckoo filter of RedisBloom: a chain of sub-filters with fingerprints of 8 bits.
///
/// Create one with [`from_chunks`](RedisBloomFilter::from_chunks), with [`from_dump`](RedisBloomFilter::from_dump), or chunk by
/// chunk with a [`Loader`].
///
/// # Counting
/// As `CF.COUNT` does, `count` counts a copy twice if the item's two buckets are the same. `len` is the header's count of items. It
/// differs from the number of taken slots if clients wrote to the filter during the dump.
///
/// # Removal
/// Remove only items that were added, as with a [`CuckooFilter`](crate::CuckooFilter#removal). A copy is removed from the last
/// sub-filter that has one. As in RedisBloom, a removal [compacts](RedisBloomFilter::compact) a chain of sub-filters once the
/// removed items exceed a tenth of the items left. This compaction stops at the first sub-filter whose items do not all fit into
/// earlier ones.
#[derive(Clone)]
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

/// Compares parameters and contents: which items there are and how often, but not which sub-filter has them. Items are told apart as
/// far as the first sub-filter does. Takes time proportional to the number of slots.
impl PartialEq for RedisBloomFilter {
    fn eq(&self, other: &Self) -> bool {
        let params = |filter: &Self| {
            (filter.buckets(), filter.bucket_size(), filter.expansion(), filter.max_iterations(), filter.len(), filter.taken())
        };
        params(self) == params(other) && same_content(|salt| [self.core.content(salt), other.core.content(salt)])
    }
}

impl Eq for RedisBloomFilter {}

/// A chain of sub-filters: the core of a [`RedisBloomFilter`].
#[derive(Clone)]
struct SubFilters {
    header: Header,
    filters: Vec<SubFilter>,
}

/// A table of a chain.
#[derive(Clone)]
struct SubFilter {
    /// The number of buckets minus one.
    mask: u64,
    bucket_size: usize,
    /// The slots, one byte each, bucket after bucket.
    slots: Vec<u8>,
    /// The number of taken slots.
    taken: u64,
}

/// Returns the two buckets and the fingerprint of an item.
fn located(hash: Uniform) -> (Pair, u8) {
    let (buckets, fingerprint) = ADDRESS.buckets(hash);
    #[expect(clippy::cast_possible_truncation, reason = "fingerprints have 8 bits")]
    let fingerprint = fingerprint.get() as u8;
    (buckets, fingerprint)
}

impl SubFilter {
    /// Creates a sub-filter with this number of buckets, a power of two, whose slots are to be appended.
    fn new(buckets: u64, bucket_size: usize) -> Self {
        Self { mask: buckets - 1, bucket_size, slots: Vec::new(), taken: 0 }
    }

    /// Appends slots, at most as many as are missing. Allocates memory for them, and at most a quarter more for those before.
    fn append(&mut self, slots: &[u8]) -> Result<(), OutOfMemory> {
        let spare = self.slots.capacity() - self.slots.len();
        if slots.len() > spare {
            let more = slots.len().max(self.slots.len() / 4).min(in_memory(self.missing()));
            reserve_exact(&mut self.slots, more)?;
        }
        self.slots.extend_from_slice(slots);
        self.taken += wide(slots.iter().filter(|&&slot| slot != EMPTY).count());
        Ok(())
    }

    /// Returns the number of slots that have not been appended yet.
    fn missing(&self) -> u64 {
        self.buckets() * wide(self.bucket_size) - wide(self.slots.len())
    }

    fn try_clone(&self) -> Result<Self, OutOfMemory> {
        Ok(Self { slots: copied(&self.slots)?, ..*self })
    }

    fn buckets(&self) -> u64 {
        self.mask + 1
    }

    /// Returns the index of a bucket's first slot.
    fn start(&self, bucket: u64) -> usize {
        index(bucket & self.mask) * self.bucket_size
    }

    fn bucket(&self, bucket: u64) -> &[u8] {
        let start = self.start(bucket);
        &self.slots[start..start + self.bucket_size]
    }

    /// Replaces the first `old` in the two buckets by `new`. Returns false if there is no `old`.
    fn replace(&mut self, (first, second): Pair, old: u8, new: u8) -> bool {
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

    fn contains(&self, (first, second): Pair, fingerprint: u8) -> bool {
        self.bucket(first).contains(&fingerprint) || self.bucket(second).contains(&fingerprint)
    }

    /// Counts the fingerprint in each of the two buckets: twice if they are the same one, as RedisBloom does.
    fn count(&self, (first, second): Pair, fingerprint: u8) -> usize {
        #[expect(clippy::naive_bytecount, reason = "buckets are short")]
        let in_bucket = |bucket| self.bucket(bucket).iter().filter(|&&slot| slot == fingerprint).count();
        in_bucket(first) + in_bucket(second)
    }
}

impl RedisBloomFilter {
    fn of(core: SubFilters) -> Self {
        Self { core, hasher: RedisBloomHash }
    }

    /// Clones the filter. Returns an error where `clone` aborts the process.
    ///
    /// # Errors
    /// If memory cannot be allocated.
    pub fn try_clone(&self) -> Result<Self, OutOfMemory> {
        let filters = collected(self.core.filters.iter().map(SubFilter::try_clone))?;
        Ok(Self::of(SubFilters { header: self.core.header, filters }))
    }

    /// Returns the number of taken slots.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.core.taken()
    }

    /// Returns the number of items removed since the filter was created or compacted.
    #[must_use]
    pub fn deleted(&self) -> u64 {
        self.core.header.get(DELETED)
    }

    /// Returns the number of sub-filters.
    #[must_use]
    pub fn sub_filters(&self) -> usize {
        self.core.filters.len()
    }

    /// Returns the number of buckets in the first sub-filter, a power of two.
    #[must_use]
    pub fn buckets(&self) -> u64 {
        self.core.header.get(BUCKETS)
    }

    /// Returns the number of slots per bucket, 1 to 255.
    #[must_use]
    pub fn bucket_size(&self) -> u32 {
        low_half(self.core.header.get(BUCKET_SIZE))
    }

    /// Returns the growth factor of the number of buckets from each sub-filter to the next, or 0 if the filter does not grow.
    #[must_use]
    pub fn expansion(&self) -> u32 {
        low_half(self.core.header.get(EXPANSION))
    }

    /// Returns the most evictions of an insertion, as set by `CF.RESERVE`.
    #[must_use]
    pub fn max_iterations(&self) -> u32 {
        low_half(self.core.header.get(MAX_ITERATIONS))
    }
}

impl fmt::Debug for RedisBloomFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBloomFilter").field("header", &self.core.header).finish_non_exhaustive()
    }
}

/// The commands `CF.EXISTS`, `CF.MEXISTS` and `CF.COUNT`.
impl Core for SubFilters {
    fn seed(&self) -> u64 {
        0
    }

    fn contains(&self, hash: Uniform) -> bool {
        let (buckets, fingerprint) = located(hash);
        self.filters.iter().any(|filter| filter.contains(buckets, fingerprint))
    }

    /// Counts a copy twice if the item's two buckets are the same.
    fn count(&self, hash: Uniform) -> u32 {
        let (buckets, fingerprint) = located(hash);
        // The sum fits: there are fewer than 2¹⁶ sub-filters, each with at most 2 · 255 matching slots.
        self.filters.iter().map(|filter| low_half(wide(filter.count(buckets, fingerprint)))).sum()
    }

    /// Returns the header's count, which differs from the taken slots if clients wrote to the filter during the dump.
    fn len(&self) -> usize {
        in_memory(self.header.get(ITEMS))
    }

    fn capacity(&self) -> usize {
        in_memory(self.slots())
    }

    fn slots(&self) -> u64 {
        self.filters.iter().map(|filter| wide(filter.slots.len())).sum()
    }

    fn table_len(&self) -> usize {
        in_memory(self.taken())
    }

    /// Adds up the loads of all sub-filters, then applies the formula in section 5.1 of the paper.
    fn false_positive_rate(&self) -> f64 {
        let items_per_bucket: f64 = self.filters.iter().map(|filter| filter.taken as f64 / filter.buckets() as f64).sum();
        false_positive_rate(FINGERPRINT_BITS, 1, items_per_bucket)
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        let (items, filters, size) = (self.header.get(ITEMS), self.filters.len(), self.header.get(BUCKET_SIZE));
        let plural = if filters == 1 { "" } else { "s" };
        write!(f, "RedisBloom: {items} items in {filters} sub-filter{plural} of buckets of {size}: ")?;
        write!(f, "{} of {} slots taken, {bytes} bytes", self.taken(), self.slots())
    }

    fn external_bytes(&self) -> usize {
        let tables: usize = self.filters.iter().map(|filter| filter.slots.capacity()).sum();
        tables + self.filters.capacity() * size_of::<SubFilter>()
    }
}

impl SubFilters {
    /// Removes a copy from the last sub-filter that has one, as `CF.DEL` does.
    fn remove(&mut self, hash: Uniform) -> bool {
        let (buckets, fingerprint) = located(hash);
        if !self.filters.iter_mut().rev().any(|filter| filter.replace(buckets, fingerprint, EMPTY)) {
            return false;
        }
        let [items, deleted] = [self.header.get(ITEMS).saturating_sub(1), self.header.get(DELETED).saturating_add(1)];
        self.header.set(ITEMS, items);
        self.header.set(DELETED, deleted);
        if self.filters.len() > 1 && deleted as f64 > items as f64 * 0.1 {
            self.auto_compact();
        }
        true
    }

    /// Removes one copy for each hash, and writes to `removed` which were found.
    fn remove_all(&mut self, hashes: &impl Hashes, removed: &mut [bool]) {
        let mut answer = results_writer(removed);
        hashes.each_batch(0..hashes.len(), |batch| answer(answers(batch, |hash| self.remove(hash))));
    }
}

/// Compaction moves fingerprints in the same order as RedisBloom does, so that the bytes are equal.
impl RedisBloomFilter {
    /// Moves items from later sub-filters to earlier ones with room for them, and drops the last sub-filters if they are then
    /// empty, as `CF.COMPACT` does.
    ///
    /// Where sub-filters differ in size, an item that moves to a smaller one collides with more items than before, so the
    /// false-positive rate rises. Takes time proportional to the number of slots times the number of sub-filters.
    pub fn compact(&mut self) {
        for filter in (1..self.core.filters.len()).rev() {
            self.core.empty_into_earlier(filter);
        }
        self.core.header.set(DELETED, 0);
    }
}

impl SubFilters {
    /// Compacts after a removal: as `compact`, but stops at the first sub-filter that cannot be emptied.
    fn auto_compact(&mut self) {
        let _ = (1..self.filters.len()).rev().all(|filter| self.empty_into_earlier(filter));
        self.header.set(DELETED, 0);
    }

    /// Adds up all copies of all items, each known by its fingerprint and its buckets in the first and smallest sub-filter.
    fn content(&self, salt: u64) -> Content {
        let (mut content, mask) = (Content::new(salt), self.header.get(BUCKETS) - 1);
        for filter in &self.filters {
            for bucket in 0..filter.buckets() {
                for fingerprint in filter.bucket(bucket).iter().filter_map(|&slot| Fingerprint::new(slot.into())) {
                    let alternate = ADDRESS.alternate(bucket, fingerprint);
                    content.add((bucket & mask).min(alternate & mask), fingerprint.wide(), 1);
                }
            }
        }
        content
    }

    fn taken(&self) -> u64 {
        self.filters.iter().map(|filter| filter.taken).sum()
    }

    /// Moves as many items as fit from a sub-filter to earlier ones. Returns true if the sub-filter is then empty; the last one is
    /// then dropped.
    fn empty_into_earlier(&mut self, filter: usize) -> bool {
        let (earlier, rest) = self.filters.split_at_mut(filter);
        let from = &mut rest[0];
        for bucket in 0..from.buckets() {
            for slot in 0..from.bucket(bucket).len() {
                let value = from.bucket(bucket)[slot];
                let Some(fingerprint) = Fingerprint::new(value.into()) else { continue };
                // Earlier sub-filters have at most as many buckets, so these bucket numbers are valid for them, too.
                let buckets = (bucket, ADDRESS.alternate(bucket, fingerprint));
                if earlier.iter_mut().any(|filter| filter.replace(buckets, EMPTY, value)) {
                    from.set(bucket, slot, EMPTY);
                }
            }
        }
        let is_empty = from.taken == 0;
        if is_empty && filter + 1 == self.filters.len() {
            self.filters.pop();
            self.header.set(FILTERS, wide(self.filters.len()));
        }
        is_empty
    }
}
