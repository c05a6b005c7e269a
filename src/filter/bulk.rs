//! A filter of a known set: the same table is read in order, not at random.

use alloc::{format, vec::Vec};
use core::ops::Range;

use super::{
    CuckooFilter,
    batch::{Hashed, insert_all},
};
use crate::{
    bits::{index, wide},
    error::{BuildError, ParamError, Parameter},
    hash::{Hasher, Item},
    kernel::{BATCH, Hashes, Kernel},
    params::Params,
    table::Address,
    table::AnyTable,
};

/// Bytes of a table from which on sorting pays: smaller ones are in some cache. In unit tests everything is sorted.
const fn sorted_from() -> usize {
    if cfg!(test) { 0 } else { 64 << 20 }
}

/// Items that are sorted at a time, eight bytes each. (In unit tests few, so that there are several parts.)
const PART: usize = if cfg!(test) { 1 << 10 } else { 1 << 24 };

/// Buckets that are filled before the next: so few that they and their items stay in the cache of one core.
const REGION: u64 = 1 << 14;

impl<H: Hasher> CuckooFilter<H> {
    /// A filter of these items, duplicates included: what [`insert_batch`](Self::insert_batch) makes of an empty one, as long as
    /// the table is smaller than 64 MiB. For a larger one the items are sorted by where they go, 16 M at a time; that is a
    /// little faster (docs/PERFORMANCE.md), and the filter is as good, but not the same.
    ///
    /// When sorting, each item is hashed twice (it must have the same bytes both times), and in the meantime eight bytes more
    /// are needed for each, up to 128 MiB. Same items in the same order give the same filter, on every machine.
    ///
    /// [`Builder::build_from_items`](crate::Builder::build_from_items) finds the parameters for it.
    ///
    /// # Errors
    /// If not everything fits, or if there is no memory.
    ///
    /// # Example
    /// ```
    /// use koel::{CuckooFilter, Xxh3};
    /// let params = CuckooFilter::builder().capacity(3).false_positive_rate(0.001).params()?;
    /// let filter = CuckooFilter::from_items(params, Xxh3, &["alice", "bob", "carol"])?;
    /// assert!(filter.contains("bob"));
    /// # Ok::<(), Box<dyn core::error::Error>>(())
    /// ```
    pub fn from_items<T: Item>(params: Params, hasher: H, items: &[T]) -> Result<Self, BuildError> {
        Self::new(params, hasher)?.filled_with_items(items)
    }

    /// [`from_items`](Self::from_items) for hashes.
    ///
    /// # Errors
    /// As `from_items`.
    pub fn from_hashes(params: Params, hasher: H, hashes: &[u64]) -> Result<Self, BuildError> {
        Self::new(params, hasher)?.filled_with_hashes(hashes)
    }

    /// This filter, which is empty, with the items in it.
    pub(crate) fn filled_with_items<T: Item>(mut self, items: &[T]) -> Result<Self, BuildError> {
        let hashes = Hashed { items, hasher: &self.hasher, seed: self.params.seed() };
        let refused = fill(&mut self.table, &mut self.len, &self.params, &self.address, self.kernel, &hashes)?;
        self.unless(refused)
    }

    /// This filter, which is empty, with the hashes in it.
    pub(crate) fn filled_with_hashes(mut self, hashes: &[u64]) -> Result<Self, BuildError> {
        let refused = fill(&mut self.table, &mut self.len, &self.params, &self.address, self.kernel, &hashes)?;
        self.unless(refused)
    }

    /// This filter, unless the item with some hash was refused.
    fn unless(self, refused: Option<u64>) -> Result<Self, BuildError> {
        match refused {
            None => Ok(self),
            Some(hash) => Err(BuildError::Full(self.refusal(hash))),
        }
    }
}

/// Puts everything into an empty table: a small one as a batch, a large one a part after the other. Gives the hash for which
/// there was no room, if there was one.
///
/// Each part is sorted by the region of the table in which the first buckets lie; then every item goes into its first bucket,
/// if that has room. Those that find it full go where there is room, if need be by an eviction walk.
fn fill(
    table: &mut AnyTable,
    len: &mut usize,
    params: &Params,
    address: &Address,
    kernel: Kernel,
    hashes: &impl Hashes,
) -> Result<Option<u64>, ParamError> {
    if params.table_bytes() < sorted_from() {
        insert_all(table, len, params, address, kernel, hashes);
        return Ok((*len < hashes.len()).then(|| hash_at(hashes, *len)));
    }
    let region = |hash| index(address.locate(hash).0 / REGION);
    let mut ends = zeros::<usize>(index(params.buckets().div_ceil(REGION)), hashes.len())?;
    let mut sorted = zeros::<u64>(hashes.len().min(PART), hashes.len())?;
    for start in (0..hashes.len()).step_by(PART) {
        let part = start..hashes.len().min(start + PART);
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
            if kernel.put(table, address, sorted[i]) {
                *len += 1;
            } else {
                sorted[left] = sorted[i];
                left += 1;
            }
        }
        let before = *len;
        insert_all(table, len, params, address, kernel, &&sorted[..left]);
        if *len - before < left {
            return Ok(Some(sorted[*len - before]));
        }
    }
    Ok(None)
}

fn hash_at(hashes: &impl Hashes, place: usize) -> u64 {
    let mut batch = [0; BATCH];
    hashes.fill(place, &mut batch);
    batch[0]
}

fn for_each(hashes: &impl Hashes, part: Range<usize>, mut act: impl FnMut(u64)) {
    hashes.each_batch(part, |batch| {
        batch.iter().for_each(|&hash| act(hash));
        true
    });
}

/// So many zeros, if there is memory for them, to build a filter of so many items.
fn zeros<N: Copy + Default>(len: usize, items: usize) -> Result<Vec<N>, ParamError> {
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(len).map_err(|_| ParamError {
        parameter: Parameter::Capacity,
        given: format!("{items} items to build from"),
        limit: format!("{} bytes of memory to sort them could not be allocated", wide(len).saturating_mul(wide(size_of::<N>()))),
        remedy: "insert them into an empty filter, which needs none".into(),
    })?;
    zeros.resize(len, N::default());
    Ok(zeros)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::Xxh3;

    #[test]
    fn several_parts_make_one_filter() {
        let items: Vec<u64> = (0..10 * PART as u64 + 7).collect();
        let params = CuckooFilter::builder().capacity(items.len()).fingerprint_bits(13).params().unwrap();
        let filter = CuckooFilter::from_items(params.clone(), Xxh3, &items).unwrap();
        assert_eq!((filter.len(), filter.count_batch(&items)), (items.len(), items.len()));
        let hashes: Vec<u64> = items.iter().map(|item| filter.hash(item)).collect();
        assert_eq!(CuckooFilter::from_hashes(params, Xxh3, &hashes).unwrap(), filter);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        // Twice as many items as there are slots; and, of two items, more copies than their buckets have room for.
        let params = CuckooFilter::builder().buckets(400).fingerprint_bits(13).params().unwrap();
        let items: Vec<u64> = (0..3000).collect();
        let Err(BuildError::Full(full)) = CuckooFilter::from_items(params.clone(), Xxh3, &items) else { unreachable!() };
        assert!(full.items() > 1500 && full.items() < 1600 && !full.is_duplicate(), "{full:?}");
        let copies = [[7u64; 9].as_slice(), &[8; 1000]].concat();
        let Err(BuildError::Full(full)) = CuckooFilter::from_items(params, Xxh3, &copies) else { unreachable!() };
        assert!(full.is_duplicate(), "{full:?}");
    }
}
