//! Very many items on large filters: their hashes are shared out first, by the shards that they belong to, so that the shards of one
//! part stay in a core's cache while they are used.

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

/// When and how hashes are shared out before they are used.
pub(crate) struct Grouping {
    /// The smallest tables, in bytes, for which it pays: smaller ones are in a cache anyway.
    least_tables: usize,
    /// The most bytes of tables for each hash, for which it pays: otherwise hardly two hashes of a part need the same cache line.
    bytes_per_hash: usize,
    /// Bytes of tables in a part: what a core has in its cache of the second level.
    part: usize,
    /// The most hashes at a time. Each takes twelve bytes meanwhile.
    most: usize,
}

pub(crate) const GROUPING: Grouping = Grouping { least_tables: 64 << 20, bytes_per_hash: 32, part: 1 << 20, most: 1 << 24 };

impl Grouping {
    /// How to share out this many hashes; none if that does not pay.
    pub fn size(&self, table_bytes: usize, hashes: usize) -> Option<GroupSize> {
        let pays = table_bytes >= self.least_tables && table_bytes / self.bytes_per_hash <= hashes;
        pays.then(|| GroupSize { hashes: self.most, bits: (table_bytes / self.part).next_power_of_two().trailing_zeros() })
    }
}

/// How many hashes are shared out at a time, and log₂ of the number of parts, if that is more than there are partitions.
#[derive(Clone, Copy)]
pub(crate) struct GroupSize {
    pub hashes: usize,
    pub bits: u32,
}

/// Hashes of one part, all of the same partition, and the index of each among those from `start` on.
#[derive(Clone, Copy)]
pub(crate) struct Group<'a> {
    pub hashes: &'a [u64],
    pub places: &'a [u32],
    pub start: usize,
}

impl Group<'_> {
    /// The hashes, and the index of each among those of the call.
    pub fn each(&self) -> impl Iterator<Item = (usize, Uniform)> {
        let start = self.start;
        self.places.iter().zip(self.hashes).map(move |(&place, &hash)| (start + index(place.into()), Uniform(hash)))
    }
}

/// Shares out hashes and calls `act` with each group. Returns how many were used, the first ones: fewer than all if there is no
/// memory to share them out, and none if that does not pay. Hashing, which may be the user's code, is done before.
pub(crate) fn group(shares: Shares, size: Option<GroupSize>, hashes: &impl Hashes, mut act: impl FnMut(Group<'_>)) -> usize {
    let (len, mut done) = (hashes.len(), 0);
    let Some(GroupSize { hashes: most, bits }) = size else { return 0 };
    let Ok(mut parts) = Groups::new(shares, len.min(most), bits) else { return 0 };
    while done < len && parts.fill(hashes, done..len.min(done + most)).is_ok() {
        parts.each(|hashes, places| act(Group { hashes, places, start: done }));
        done = len.min(done + most);
    }
    done
}

/// The error of the first item of a call that was refused, whatever the order in which they were used.
#[derive(Default)]
pub(crate) struct FirstRefused(Option<InsertError>);

impl FirstRefused {
    pub fn note(&mut self, place: usize, result: Result<(), InsertError>) {
        if let Err(error) = result
            && self.0.as_ref().is_none_or(|first| place < first.position())
        {
            self.0 = Some(error.at(place));
        }
    }

    pub fn result(self) -> Result<(), InsertError> {
        self.0.map_or(Ok(()), Err)
    }
}

impl<H> ElasticFilter<H> {
    /// [`insert`](Self::insert) for each item, in whichever order is fastest: into large filters, items are inserted shard by
    /// shard. The same items in the same order give the same filter, on every machine.
    ///
    /// Where that pays, it temporarily takes twelve bytes per item, up to 192 MiB; without that memory it is slower.
    ///
    /// # Errors
    /// The [`InsertError`] of the first item that is refused. Refused items are not in the filter; all others are.
    pub fn insert_unordered<I: Items<H> + ?Sized>(&mut self, items: &I) -> Result<(), InsertError> {
        let hashes = items.hashes(&self.hasher, self.core.seed());
        self.core.insert_all_unordered(&GROUPING, &hashes)
    }
}

impl Elastic {
    fn insert_all_unordered(&mut self, grouping: &Grouping, hashes: &impl Hashes) -> Result<(), InsertError> {
        let (len, mut refused) = (hashes.len(), FirstRefused::default());
        // What the tables will be at least.
        let size = grouping.size(self.table_bytes().max(len), len);
        let mut start = group(self.params.shares(), size, hashes, |group| {
            group.each().for_each(|(place, hash)| refused.note(place, self.insert(hash)));
        });
        hashes.each_batch(start..len, |batch| {
            self.prefetch(batch);
            for &hash in batch {
                refused.note(start, self.insert(Uniform(hash)));
                start += 1;
            }
            true
        });
        refused.result()
    }
}

/// Log₂ of the most parts: as many streams of writes as a core's cache and address translation can follow.
const MOST_BITS: u32 = 8;

/// Hashes, shared out by the first bits of their streams. In each part they are in the order in which they came.
///
/// Hashes are uniform, so that the lengths of the parts are nearly known, and need not be counted first. What exceeds a part's
/// room, as copies may, is spilt.
struct Groups {
    shares: Shares,
    bits: u32,
    /// Where each part begins, and where the last one ends.
    starts: Vec<usize>,
    hashes: Vec<u64>,
    /// The index of each hash among those that came.
    places: Vec<u32>,
    lens: Vec<usize>,
    spilt: Vec<(u32, u64)>,
}

impl Groups {
    /// Room for `len` hashes, fewer than 2³², in 2^`bits` parts or so, at most 2⁸: at least one for each partition.
    fn new(shares: Shares, len: usize, bits: u32) -> Result<Self, OutOfMemory> {
        let bits = bits.min(MOST_BITS).max(shares.partition_bits().into());
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
            let mean = (len as f64 * shares.of_first_bits(part, bits)) as usize;
            start += mean + 6 * mean.isqrt() + 8;
        }
        starts.push(start);
        let (mut hashes, mut places, mut lens) = (reserved(start)?, reserved(start)?, reserved(1 << bits)?);
        hashes.resize(start, 0);
        places.resize(start, 0);
        lens.resize(1 << bits, 0);
        Ok(Self { shares, bits, starts, hashes, places, lens, spilt: Vec::new() })
    }

    /// Shares out the hashes in `range`, instead of those before.
    fn fill(&mut self, source: &impl Hashes, range: Range<usize>) -> Result<(), OutOfMemory> {
        self.lens.fill(0);
        self.spilt.clear();
        let (mut place, mut result) = (0, Ok(()));
        source.each_batch(range, |batch| {
            for &hash in batch {
                let part = self.shares.first_bits(Uniform(hash), self.bits);
                let (at, len) = (self.starts[part] + self.lens[part], self.lens[part]);
                if at < self.starts[part + 1] {
                    (self.hashes[at], self.places[at], self.lens[part]) = (hash, place, len + 1);
                } else {
                    result = reserve(&mut self.spilt, 1);
                    if result.is_err() {
                        return false;
                    }
                    self.spilt.push((place, hash));
                }
                place += 1;
            }
            true
        });
        result
    }

    /// Calls `act` with the hashes of each part, and their indices among those that were shared out.
    fn each(&self, mut act: impl FnMut(&[u64], &[u32])) {
        for (&start, &len) in self.starts.iter().zip(&self.lens).filter(|(_, len)| **len > 0) {
            act(&self.hashes[start..start + len], &self.places[start..start + len]);
        }
        for &(place, hash) in &self.spilt {
            act(&[hash], &[place]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prehashed, Xxh3};
    use alloc::vec;

    /// As for large filters, at sizes that can be tested.
    const SMALL: Grouping = Grouping { least_tables: 1, bytes_per_hash: 1 << 20, part: 1 << 8, most: 3000 };

    fn hashes(range: core::ops::Range<u64>) -> Vec<u64> {
        range.map(crate::hash::split_mix).collect()
    }

    fn filter() -> ElasticFilter {
        ElasticFilter::builder().false_positive_rate(1e-4).capacity(1000).max_capacity(10_000).build().unwrap()
    }

    /// Within the planned range and beyond it, with and without repeats.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn hashes_that_are_shared_out_are_all_inserted() {
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
    fn what_is_refused_of_a_set_is_left_out() {
        let mut filter = filter();
        filter.insert_batch(&Prehashed(hashes(0..2000))).unwrap();
        let set = [hashes(2000..12_000), vec![11; 9], hashes(12_000..60_000)].concat();
        let key = Prehashed(&set);
        let source = key.hashes(&Xxh3, 0);
        filter.set_max_bytes(filter.charged_bytes() + 30_000);
        // Shared out, and in order, as it does not pay for so few.
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
    fn only_many_hashes_for_large_filters_are_shared_out() {
        assert!(GROUPING.size(1 << 20, usize::MAX).is_none());
        assert!(GROUPING.size(1 << 30, 1 << 20).is_none());
        assert_eq!(GROUPING.size(1 << 28, 1 << 24).map(|size| size.bits), Some(8));
    }
}
