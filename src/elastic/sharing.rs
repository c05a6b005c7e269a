//! Very many items on large filters: their hashes are shared out first, by the shards that they belong to.

use super::{
    Elastic, ElasticFilter, GrowError, ShardStorage,
    look_up::{answers_at, contains_all},
    partition::Partition,
    storage::sealed::Sealed as _,
};
use crate::{
    filter::{CoreMut as _, CoreRemove as _, Items, hashed},
    kernel::Hashes,
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
    /// Where that pays, twelve bytes more are needed for each item meanwhile, up to 192 MiB; without that memory it takes longer.
    ///
    /// # Errors
    /// The [`GrowError`] of the first item that is refused. Refused items are not in the filter; all others are.
    pub fn insert_unordered<I: Items<H> + ?Sized>(&mut self, items: &I) -> Result<(), GrowError> {
        let hashes = hashed(&self.core, &self.hasher, items);
        self.core.insert_all_unordered(&SHARING, &hashes)
    }
}

impl Elastic {
    fn insert_all_unordered(&mut self, sharing: &Sharing, hashes: &impl Hashes) -> Result<(), GrowError> {
        let (len, mut start) = (hashes.len(), 0);
        let mut first: Option<GrowError> = None;
        let mut insert = |filter: &mut Self, place: usize, hash: Uniform| {
            if let Err(error) = filter.insert(hash)
                && first.as_ref().is_none_or(|first| place < first.position())
            {
                first = Some(error.at(place));
            }
        };
        // What the tables will be at least.
        let bits = sharing.bits(self.storage.table_bytes().max(len), len);
        if bits > 0
            && let Ok(mut parts) = Partition::new(self.params.shares(), len.min(sharing.most), bits)
        {
            while start < len && parts.fill(hashes, start..len.min(start + sharing.most)).is_ok() {
                parts.each(|place, hash| insert(self, start + place, hash));
                start = len.min(start + sharing.most);
            }
        }
        hashes.each_batch(start..len, |batch| {
            self.prefetch(batch);
            for (place, &hash) in (start..).zip(batch) {
                insert(self, place, Uniform(hash));
            }
            start += batch.len();
            true
        });
        first.map_or(Ok(()), Err)
    }
}

impl<S: ShardStorage> Elastic<S> {
    /// Looks up all hashes, if sharing them out pays, and if there is memory for it.
    pub(super) fn contains_shared_out(&self, sharing: &Sharing, hashes: &impl Hashes, found: &mut [bool]) -> bool {
        let bits = sharing.bits(self.storage.table_bytes(), hashes.len());
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
                contains_all(self.storage.dispatch(), self.all_shards(), true, &hashes, answers_at(places, found));
            });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Prehashed, Xxh3};
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
            let key = Prehashed(&present);
            let source = hashed(&filter.core, &Xxh3, &key);
            filter.core.insert_all_unordered(&SMALL, &source).unwrap();
            assert_eq!(filter.len(), present.len());
            let asked = [present, hashes(items..3 * items), vec![7; 5000]].concat();
            let (mut plain, mut shared_out) = (vec![false; asked.len()], vec![false; asked.len()]);
            let key = Prehashed(&asked);
            let source = hashed(&filter.core, &Xxh3, &key);
            filter.contains_batch(&key, &mut plain);
            assert!(filter.core.contains_shared_out(&SMALL, &source, &mut shared_out));
            assert_eq!(plain, shared_out);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn what_is_refused_of_a_set_is_left_out() {
        let mut filter = filter();
        filter.insert_batch(&Prehashed(hashes(0..2000))).unwrap();
        // The ninth copy is among the last.
        let set = [hashes(2000..12_000), vec![11; 9], hashes(12_000..12_500)].concat();
        let key = Prehashed(&set);
        let source = hashed(&filter.core, &Xxh3, &key);
        // Shared out, and in order, as it does not pay for so few.
        for sharing in [&SMALL, &SHARING] {
            let mut filter = filter.clone();
            let error = filter.core.insert_all_unordered(sharing, &source).unwrap_err();
            assert_eq!((error.kind(), error.position()), (crate::GrowErrorKind::Copies, 10_008));
            assert_eq!((filter.len(), filter.count(&Prehashed(11))), (2000 + set.len() - 1, 8));
            assert!(hashes(0..12_500).into_iter().all(|hash| filter.contains(&Prehashed(hash))));
        }
    }

    #[test]
    fn only_many_hashes_for_large_filters_are_shared_out() {
        assert_eq!(SHARING.bits(1 << 20, usize::MAX), 0);
        assert_eq!(SHARING.bits(1 << 30, 1 << 20), 0);
        assert_eq!(SHARING.bits(1 << 28, 1 << 24), 8);
    }
}
