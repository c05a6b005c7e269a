//! Building a filter from a known set. In a large table, nearly every insertion is a cache miss; sorting the items by the region
//! of the table that they belong to keeps each region in the cache while it is filled.

use alloc::vec::Vec;
use core::ops::Range;

use super::{BuildError, CuckooFilter, RawFilter, batch::Hashed};
use crate::{
    bits::{index, wide},
    hash::HashItem,
    kernel::Hashes,
    storage::OutOfMemory,
    table::{Address, Uniform},
};

/// When and how a known set is sorted before insertion.
struct Sorting {
    /// The smallest table, in bytes, for which sorting pays: smaller ones fit into a cache.
    least_table: usize,
    /// Items sorted at a time; each takes eight bytes.
    part: usize,
    /// Buckets per region: few enough that a region and its items stay in the cache of one core.
    region: u64,
}

const SORTING: Sorting = Sorting { least_table: 64 << 20, part: 1 << 24, region: 1 << 14 };

impl<H> CuckooFilter<H> {
    /// Inserts the items into this filter, which must be empty.
    pub(super) fn filled_with_items<T>(mut self, items: &[T]) -> Result<Self, BuildError>
    where
        H: HashItem<T>,
    {
        let hashes = Hashed { items, hasher: &self.hasher, seed: self.raw.params().seed() };
        SORTING.fill(&mut self.raw, &hashes)?;
        Ok(self)
    }

    /// Inserts the hashes into this filter, which must be empty.
    pub(super) fn filled_with_hashes(mut self, hashes: &[u64]) -> Result<Self, BuildError> {
        let given = self.given(hashes);
        SORTING.fill(&mut self.raw, &given)?;
        Ok(self)
    }
}

impl Sorting {
    /// Fills an empty table: a small one as a single batch, a large one part by part.
    ///
    /// A part is sorted by the region of each item's first bucket (counting sort). Then every item is stored in its first bucket
    /// if that has room. The remaining items are inserted as usual, with an eviction walk if necessary.
    fn fill(&self, filter: &mut RawFilter, hashes: &impl Hashes) -> Result<(), BuildError> {
        if filter.params().table_bytes() < self.least_table {
            return Ok(filter.insert_all(hashes)?);
        }
        let address = Address::new(filter.params());
        let region = |hash| index(address.locate(Uniform(hash)).0 / self.region);
        let mut ends = zeros::<usize>(index(filter.params().buckets().div_ceil(self.region)))?;
        let mut sorted = zeros::<u64>(hashes.len().min(self.part))?;
        for start in (0..hashes.len()).step_by(self.part) {
            let part = start..hashes.len().min(start + self.part);
            let sorted = &mut sorted[..part.len()];
            ends.fill(0);
            for_each(hashes, part.clone(), |hash| ends[region(hash)] += 1);
            let mut end = 0;
            for count in &mut ends {
                (*count, end) = (end, end + *count);
            }
            for_each(hashes, part.clone(), |hash| {
                let end = &mut ends[region(hash)];
                sorted[*end] = hash;
                *end += 1;
            });
            let mut left = 0;
            for i in 0..sorted.len() {
                if !filter.put_first(Uniform(sorted[i])) {
                    sorted[left] = sorted[i];
                    left += 1;
                }
            }
            // Items are not stored in the order given, so the position is only the number of those stored.
            filter.insert_all(&&sorted[..left]).map_err(|full| full.at(filter.len()))?;
        }
        Ok(())
    }
}

fn for_each(hashes: &impl Hashes, part: Range<usize>, mut act: impl FnMut(u64)) {
    hashes.each_batch(part, |batch| {
        batch.iter().for_each(|&hash| act(hash));
        true
    });
}

/// A vector of `len` zeros, or an error if it cannot be allocated.
fn zeros<N: Copy + Default>(len: usize) -> Result<Vec<N>, OutOfMemory> {
    let mut zeros = Vec::new();
    let bytes = wide(len).saturating_mul(wide(size_of::<N>()));
    zeros.try_reserve_exact(len).map_err(|_| OutOfMemory::of(usize::try_from(bytes).unwrap_or(usize::MAX)))?;
    zeros.resize(len, N::default());
    Ok(zeros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Addressing;

    /// Sorts tables of any size, in several parts and regions.
    const SMALL: Sorting = Sorting { least_table: 0, part: 1 << 10, region: 1 << 8 };

    fn uniform(n: u64) -> u64 {
        Uniform::of(Addressing::AnySize, n).0
    }

    fn filter(items: usize) -> RawFilter {
        RawFilter::new(CuckooFilter::builder().capacity(items).fingerprint_bits(13).params().unwrap()).unwrap()
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn several_parts_make_one_filter() {
        let hashes: Vec<u64> = (0..10 * SMALL.part as u64 + 7).map(uniform).collect();
        let mut filter = filter(hashes.len());
        SMALL.fill(&mut filter, &&hashes[..]).unwrap();
        assert_eq!(filter.len(), hashes.len());
        assert!(hashes.iter().all(|&hash| filter.contains(Uniform(hash))));
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn what_does_not_fit_is_counted() {
        // First twice as many items as there are slots, then more copies of two items than their buckets can hold.
        let hashes: Vec<u64> = (0..3000).map(uniform).collect();
        let Err(BuildError::Full(full)) = SMALL.fill(&mut filter(1500), &&hashes[..]) else { unreachable!() };
        assert!(full.items() >= 1500 && full.items() < 1600 && !full.is_duplicate(), "{full:?}");
        let copies = [[uniform(7); 9].as_slice(), &[uniform(8); 1000]].concat();
        let Err(BuildError::Full(full)) = SMALL.fill(&mut filter(1500), &&copies[..]) else { unreachable!() };
        assert!(full.is_duplicate(), "{full:?}");
    }
}
