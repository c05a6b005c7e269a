//! Very many items on large filters: their hashes are shared out first, by the shards that they belong to.

use super::{
    ElasticFilter, GrowError, ShardStorage,
    look_up::{answers_at, contains_all},
    partition::Partition,
};
use crate::{
    filter::Hashed,
    hash::HashItem,
    kernel::{Given, Hashes},
    params::Addressing,
    table::Uniform,
};

/// When and how hashes are shared out before they are used.
pub(super) struct Sharing {
    /// The smallest tables, in bytes, for which it pays: smaller ones are in a cache anyway.
    least_tables: usize,
    /// The most bytes of tables for each hash, for which it pays: otherwise hardly two hashes of a part need the same cache line.
    bytes_per_hash: usize,
    /// Bytes of tables in a part: what a core has in its cache of the second level.
    part: usize,
    /// The most hashes at a time. Each takes twelve bytes meanwhile.
    pub(super) most: usize,
}

pub(super) const SHARING: Sharing = Sharing { least_tables: 64 << 20, bytes_per_hash: 32, part: 1 << 20, most: 1 << 24 };

impl Sharing {
    /// Log₂ of the number of parts into which so many hashes are shared out; 0 if that does not pay.
    pub(super) fn bits(&self, table_bytes: usize, hashes: usize) -> u32 {
        if table_bytes < self.least_tables || table_bytes / self.bytes_per_hash > hashes {
            return 0;
        }
        (table_bytes / self.part).next_power_of_two().trailing_zeros()
    }
}

impl<H> ElasticFilter<H> {
    /// [`insert`](Self::insert) for each item, in whichever order is fastest: into large filters, items are inserted shard by
    /// shard. The same items in the same order give the same filter, on every machine.
    ///
    /// Where that pays, twelve bytes more are needed for each item meanwhile, up to 192 MiB.
    ///
    /// # Errors
    /// [`GrowError`] if an item is refused. Then none of the items is in the filter, and all others are; but the filter may have
    /// grown.
    pub fn insert_unordered<T>(&mut self, items: &[T]) -> Result<(), GrowError>
    where
        H: HashItem<T> + Clone,
    {
        let hasher = self.hasher.clone();
        self.insert_all_unordered(&SHARING, &Hashed { items, hasher: &hasher, seed: self.params.seed })
    }

    /// [`insert_unordered`](Self::insert_unordered) for hashes.
    ///
    /// # Errors
    /// As `insert_unordered`.
    pub fn insert_hashes_unordered(&mut self, hashes: &[u64]) -> Result<(), GrowError> {
        self.insert_all_unordered(&SHARING, &Given { hashes, addressing: Addressing::AnySize })
    }

    fn insert_all_unordered(&mut self, sharing: &Sharing, hashes: &impl Hashes) -> Result<(), GrowError> {
        let len = hashes.len();
        // What the tables will be at least.
        let bits = sharing.bits(self.table_bytes().max(len), len);
        if bits == 0 {
            return self.insert_all_in_order(hashes);
        }
        let mut parts = Partition::new(self.params.shares(), len.min(sharing.most), bits).map_err(|error| self.refuse(error))?;
        let (mut inserted, mut result) = (0, Ok(()));
        for start in (0..len).step_by(sharing.most) {
            result = parts.fill(hashes, start..len.min(start + sharing.most)).map_err(|error| self.refuse(error));
            if result.is_ok() {
                parts.each(|place, hash| {
                    result = self.insert_uniform(hash).map_err(|error| error.at(start + place));
                    inserted += usize::from(result.is_ok());
                    result.is_ok()
                });
            }
            if result.is_err() {
                self.remove_again(sharing, hashes, &mut parts, inserted);
                break;
            }
        }
        result
    }

    /// Inserts all hashes, or if one is refused, none.
    fn insert_all_in_order(&mut self, hashes: &impl Hashes) -> Result<(), GrowError> {
        let (mut inserted, mut result) = (0, Ok(()));
        hashes.each_batch(0..hashes.len(), |batch| {
            result = self.insert_some(batch).map(|len| inserted += len).map_err(|error| error.after(inserted));
            result.is_ok()
        });
        if let Err(error) = &result {
            hashes.each_batch(0..error.position(), |batch| batch.iter().all(|&hash| self.remove_uniform(Uniform(hash))));
        }
        result
    }

    /// Removes the first `inserted` hashes, in the order in which they are shared out.
    fn remove_again(&mut self, sharing: &Sharing, hashes: &impl Hashes, parts: &mut Partition, mut inserted: usize) {
        for start in (0..hashes.len()).step_by(sharing.most) {
            // There was memory for it before.
            if parts.fill(hashes, start..hashes.len().min(start + sharing.most)).is_err() {
                return;
            }
            parts.each(|_, hash| {
                if inserted > 0 {
                    self.remove_uniform(hash);
                    inserted -= 1;
                }
                inserted > 0
            });
        }
    }
}

impl<H, S: ShardStorage> ElasticFilter<H, S> {
    /// Looks up all hashes, if sharing them out pays, and if there is memory for it.
    pub(super) fn contains_shared_out(&self, sharing: &Sharing, hashes: &impl Hashes, found: &mut [bool]) -> bool {
        let bits = sharing.bits(self.table_bytes(), hashes.len());
        if bits == 0 {
            return false;
        }
        let Ok(mut parts) = Partition::new(self.params.shares(), hashes.len().min(sharing.most), bits) else { return false };
        let mut start = 0;
        for found in found.chunks_mut(sharing.most) {
            if parts.fill(hashes, start..start + found.len()).is_err() {
                return false;
            }
            start += found.len();
            parts.each_part(|_, hashes, places| {
                // Prefetched, since the first read of each cache line would wait for it.
                contains_all(self.dispatch(), self.all_shards(), true, &hashes, answers_at(places, found));
            });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::{vec, vec::Vec};

    /// As for large filters, at sizes that can be tested.
    const SMALL: Sharing = Sharing { least_tables: 1, bytes_per_hash: 1 << 20, part: 1 << 8, most: 3000 };

    fn hashes(range: core::ops::Range<u64>) -> Vec<u64> {
        range.map(crate::hash::split_mix).collect()
    }

    fn filter() -> ElasticFilter {
        ElasticFilter::builder().false_positive_rate(1e-4).capacity(1000).max_capacity(10_000).build().unwrap()
    }

    /// Within the planned range and beyond it, with and without repeats.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn hashes_that_are_shared_out_get_the_same_answers() {
        for items in [10, 5000, 40_000] {
            let (mut filter, mut present) = (filter(), hashes(0..items));
            present.extend_from_within(..4);
            let source = Given { hashes: &present, addressing: Addressing::AnySize };
            filter.insert_all_unordered(&SMALL, &source).unwrap();
            assert_eq!(filter.len(), present.len());
            let asked = [present, hashes(items..3 * items), vec![7; 5000]].concat();
            let (mut plain, mut shared_out) = (vec![false; asked.len()], vec![false; asked.len()]);
            let source = Given { hashes: &asked, addressing: Addressing::AnySize };
            filter.contains_hashes(&asked, &mut plain);
            assert!(filter.contains_shared_out(&SMALL, &source, &mut shared_out));
            assert_eq!(plain, shared_out);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn a_set_that_is_refused_leaves_nothing() {
        let mut filter = filter();
        filter.insert_hashes(&hashes(0..2000)).unwrap();
        // The ninth copy is among the last.
        let set = [hashes(2000..12_000), vec![11; 9], hashes(12_000..12_500)].concat();
        let before = filter.len();
        let source = Given { hashes: &set, addressing: Addressing::AnySize };
        // Shared out, and in order, as it does not pay for so few.
        for sharing in [&SMALL, &SHARING] {
            let error = filter.insert_all_unordered(sharing, &source).unwrap_err();
            assert_eq!((error.kind(), filter.len()), (crate::GrowErrorKind::Copies, before));
            assert!(hashes(0..2000).into_iter().all(|hash| filter.contains_hash(hash)));
            let left = hashes(2000..12_500).into_iter().filter(|&hash| filter.contains_hash(hash)).count();
            assert!(left < 20, "{left}");
        }
    }

    #[test]
    fn only_many_hashes_for_large_filters_are_shared_out() {
        assert_eq!(SHARING.bits(1 << 20, usize::MAX), 0);
        assert_eq!(SHARING.bits(1 << 30, 1 << 20), 0);
        assert_eq!(SHARING.bits(1 << 28, 1 << 24), 8);
    }
}
