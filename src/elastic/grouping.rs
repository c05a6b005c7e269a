//! Grouping of large batches for large filters. Hashes are first grouped by their shards, so that the shards of one group stay in a
//! core's cache while they are used.

use alloc::vec::Vec;
use core::ops::Range;

use super::{Elastic, ElasticFilter, stream::Shares};
use crate::{
    bits::index,
    filter::{Core as _, CoreMut as _, InsertError},
    hash::{Items, Uniform},
    kernel::Hashes,
    storage::{OutOfMemory, reserve, reserved},
};

/// The rule that decides whether and how hashes are grouped before they are used.
pub(crate) struct Grouping {
    /// The fewest bytes of tables. Smaller tables are in a cache anyway.
    min_table_bytes: usize,
    /// The most bytes of tables per hash. With more, hardly any two hashes of a part need the same cache line.
    max_bytes_per_hash: usize,
    /// The bytes of tables in a part: these fit into a core's second-level cache.
    part_bytes: usize,
    /// The most hashes that are grouped at a time. Each temporarily takes twelve bytes.
    max_hashes: usize,
}

pub(crate) const GROUPING: Grouping =
    Grouping { min_table_bytes: 64 << 20, max_bytes_per_hash: 32, part_bytes: 1 << 20, max_hashes: 1 << 24 };

impl Grouping {
    /// Returns how to group this many hashes, or `None` if that would not be faster.
    pub fn size(&self, table_bytes: usize, hashes: usize) -> Option<GroupSize> {
        let is_faster = table_bytes >= self.min_table_bytes && table_bytes / self.max_bytes_per_hash <= hashes;
        is_faster.then(|| GroupSize {
            hashes: self.max_hashes,
            bits: (table_bytes / self.part_bytes).next_power_of_two().trailing_zeros(),
        })
    }
}

/// The number of hashes that are grouped at a time, and log₂ of the number of parts. There are at least as many parts as
/// partitions.
#[derive(Clone, Copy)]
pub(crate) struct GroupSize {
    pub hashes: usize,
    pub bits: u32,
}

/// The hashes of one part, all in the same partition, and the index of each, counted from `start`.
#[derive(Clone, Copy)]
pub(crate) struct Group<'a> {
    pub hashes: &'a [u64],
    pub positions: &'a [u32],
    pub start: usize,
}

impl Group<'_> {
    /// Returns each hash with its index in the call.
    pub fn indexed(&self) -> impl Iterator<Item = (usize, Uniform)> {
        let start = self.start;
        self.positions.iter().zip(self.hashes).map(move |(&position, &hash)| (start + index(position.into()), Uniform(hash)))
    }
}

/// Groups hashes and calls `act` with each group. Returns how many hashes were processed, from the first one on: none if `size`
/// is `None`, and fewer than all if memory cannot be allocated. All hashes of a group are computed, perhaps by user code, before
/// `act` is called.
pub(crate) fn group(shares: Shares, size: Option<GroupSize>, hashes: &impl Hashes, mut act: impl FnMut(Group<'_>)) -> usize {
    let (len, mut done) = (hashes.len(), 0);
    let Some(GroupSize { hashes: max_hashes, bits }) = size else { return 0 };
    let Ok(mut parts) = Groups::new(shares, len.min(max_hashes), bits) else { return 0 };
    while done < len && parts.fill(hashes, done..len.min(done + max_hashes)).is_ok() {
        parts.for_each_part(|hashes, positions| act(Group { hashes, positions, start: done }));
        done = len.min(done + max_hashes);
    }
    done
}

/// The error of the refused item with the lowest index in a call. Items may be processed in any order.
#[derive(Default)]
pub(crate) struct FirstRefused(Option<InsertError>);

impl FirstRefused {
    /// Records the result of inserting the item with index `position`.
    pub fn record(&mut self, position: usize, result: Result<(), InsertError>) {
        if let Err(error) = result
            && self.0.as_ref().is_none_or(|first| position < first.position())
        {
            self.0 = Some(error.after(position));
        }
    }

    pub fn result(self) -> Result<(), InsertError> {
        self.0.map_or(Ok(()), Err)
    }
}

impl<H> ElasticFilter<H> {
    /// Inserts each item as [`insert`](Self::insert) does, in whatever order is fastest. Large filters are filled shard by shard.
    /// The same items in the same order give the same filter on every machine.
    ///
    /// For large filters, this temporarily takes twelve bytes per item, up to 192 MiB. Without that memory, it is slower.
    ///
    /// # Errors
    /// Returns the [`InsertError`] of the first refused item. Refused items are not in the filter; all others are.
    pub fn insert_unordered<I: Items<H> + ?Sized>(&mut self, items: &I) -> Result<(), InsertError> {
        let hashes = items.hashes(&self.hasher, self.core.seed());
        self.core.insert_all_unordered(&GROUPING, &hashes)
    }
}

impl Elastic {
    fn insert_all_unordered(&mut self, grouping: &Grouping, hashes: &impl Hashes) -> Result<(), InsertError> {
        let (len, mut refused) = (hashes.len(), FirstRefused::default());
        // A lower bound of the final table size.
        let size = grouping.size(self.table_bytes().max(len), len);
        let mut start = group(self.params.shares, size, hashes, |group| {
            group.indexed().for_each(|(position, hash)| refused.record(position, self.insert(hash)));
        });
        hashes.each_batch(start..len, |batch| {
            self.prefetch(batch);
            for &hash in batch {
                refused.record(start, self.insert(Uniform(hash)));
                start += 1;
            }
        });
        refused.result()
    }
}

/// Log₂ of the most parts. A core's cache and address translation can follow this many streams of writes.
const MAX_BITS: u32 = 8;

/// Hashes, grouped into parts by the first bits of their streams. Each part keeps its hashes in their original order.
///
/// Hashes are uniform, so the lengths of the parts are nearly known and need not be counted first. Hashes that exceed the room of
/// their part, as those of copies may, go to `spilled`.
struct Groups {
    shares: Shares,
    bits: u32,
    /// The start of each part in `hashes`, and the end of the last one.
    starts: Vec<usize>,
    hashes: Vec<u64>,
    /// The index of each hash in its range.
    positions: Vec<u32>,
    /// The number of hashes in each part.
    lens: Vec<usize>,
    /// The index and the hash of those without room in their part.
    spilled: Vec<(u32, u64)>,
}

impl Groups {
    /// Allocates room for `len` < 2³² hashes in 2^`bits` parts: at most 2⁸, and at least one for each partition.
    fn new(shares: Shares, len: usize, bits: u32) -> Result<Self, OutOfMemory> {
        let bits = bits.min(MAX_BITS).max(shares.partition_bits().into());
        let mut starts = reserved((1 << bits) + 1)?;
        let mut start = 0;
        for part in 0..1 << bits {
            starts.push(start);
            #[expect(
                clippy::cast_precision_loss,
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "an estimate"
            )]
            let mean = (len as f64 * shares.first_bits_share(part, bits)) as usize;
            start += mean + 6 * mean.isqrt() + 8;
        }
        starts.push(start);
        let (mut hashes, mut positions, mut lens) = (reserved(start)?, reserved(start)?, reserved(1 << bits)?);
        hashes.resize(start, 0);
        positions.resize(start, 0);
        lens.resize(1 << bits, 0);
        Ok(Self { shares, bits, starts, hashes, positions, lens, spilled: Vec::new() })
    }

    /// Replaces the hashes by those in `range`.
    fn fill(&mut self, source: &impl Hashes, range: Range<usize>) -> Result<(), OutOfMemory> {
        self.lens.fill(0);
        self.spilled.clear();
        let mut position = 0;
        source.try_each_batch(range, |_, batch| {
            for &hash in batch {
                let part = self.shares.first_bits(Uniform(hash), self.bits);
                let (at, len) = (self.starts[part] + self.lens[part], self.lens[part]);
                if at < self.starts[part + 1] {
                    (self.hashes[at], self.positions[at], self.lens[part]) = (hash, position, len + 1);
                } else {
                    reserve(&mut self.spilled, 1)?;
                    self.spilled.push((position, hash));
                }
                position += 1;
            }
            Ok(())
        })
    }

    /// Calls `act` with the hashes of each part and their indices in the range. Spilled hashes follow one at a time.
    fn for_each_part(&self, mut act: impl FnMut(&[u64], &[u32])) {
        for (&start, &len) in self.starts.iter().zip(&self.lens).filter(|(_, len)| **len > 0) {
            act(&self.hashes[start..start + len], &self.positions[start..start + len]);
        }
        for &(position, hash) in &self.spilled {
            act(&[hash], &[position]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prehashed, Xxh3};
    use alloc::vec;

    /// The rule for large filters, scaled to sizes that can be tested.
    const SMALL: Grouping = Grouping { min_table_bytes: 1, max_bytes_per_hash: 1 << 20, part_bytes: 1 << 8, max_hashes: 3000 };

    fn hashes(range: core::ops::Range<u64>) -> Vec<u64> {
        range.map(crate::hash::split_mix).collect()
    }

    fn filter() -> ElasticFilter {
        ElasticFilter::builder().false_positive_rate(1e-4).capacity(1000).max_capacity(10_000).build().unwrap()
    }

    /// Tests sets within the planned range and beyond it, with repeated hashes.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn all_grouped_hashes_are_inserted() {
        for items in [10, 5000, 40_000] {
            let (mut filter, mut present) = (filter(), hashes(0..items));
            present.extend_from_within(..4);
            filter.core.insert_all_unordered(&SMALL, &Prehashed(&present).hashes(&Xxh3, 0)).unwrap();
            assert_eq!(filter.len(), present.len());
            let mut counted = std::collections::HashMap::new();
            present.iter().for_each(|hash| *counted.entry(hash).or_insert(0) += 1);
            assert!(counted.into_iter().all(|(&hash, copies)| filter.core.count(Uniform::of_prehashed(hash)) >= copies));
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn refused_hashes_are_left_out() {
        let mut filter = filter();
        filter.insert_batch(&Prehashed(hashes(0..2000))).unwrap();
        let set = [hashes(2000..12_000), vec![11; 9], hashes(12_000..60_000)].concat();
        let key = Prehashed(&set);
        let source = key.hashes(&Xxh3, 0);
        filter.set_max_bytes(filter.charged_bytes() + 30_000);
        // `SMALL` groups these hashes. `GROUPING` does not, because they are too few.
        for grouping in [&SMALL, &GROUPING] {
            let mut filter = filter.clone();
            let error = filter.core.insert_all_unordered(grouping, &source).unwrap_err();
            assert!(matches!(error.kind(), crate::InsertErrorKind::Limit { .. }));
            assert!(error.position() > 2000 && filter.len() > 2000 + error.position() && filter.len() < 2000 + set.len());
            assert!(
                hashes(0..2000)
                    .into_iter()
                    .chain(set[..error.position()].iter().copied())
                    .all(|hash| filter.contains(&Prehashed(hash)))
            );
        }
    }

    #[test]
    fn only_many_hashes_for_large_filters_are_grouped() {
        assert!(GROUPING.size(1 << 20, usize::MAX).is_none());
        assert!(GROUPING.size(1 << 30, 1 << 20).is_none());
        assert_eq!(GROUPING.size(1 << 28, 1 << 24).map(|size| size.bits), Some(8));
    }
}
