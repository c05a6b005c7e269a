//! Operations on many items. Their hashes are shared out by lane, so that each lane is locked once for many of them.

use super::{
    super::{
        GrowError,
        batch::hashed,
        lane::Lane,
        look_up::{answers_at, contains_all},
        partition::Partition,
        sharing::SHARING,
    },
    LockedLane, SharedFilter, Writer,
};
use crate::{
    bits::index,
    filter::{ContainsIter, Items, LookUp, same_length},
    hash::HashItem,
    kernel::{BATCH, Hashes, PREFETCH_FROM},
    table::Uniform,
};

/// Hashes that are shared out at a time: so many that a lane gets some hundreds, and that they stay in a core's cache.
const TOGETHER: usize = 1 << 14;

/// Fewer hashes than so many for each lane are used one after the other.
const FEWEST_PER_LANE: usize = 4;

/// How many hashes are shared out at a time, and log₂ of the number of parts, if that is more than there are lanes.
#[derive(Clone, Copy)]
struct Together {
    hashes: usize,
    bits: u32,
}

/// Hashes of one lane, and the index of each among those of the call.
struct Portion<'a> {
    hashes: &'a [u64],
    places: &'a [u32],
    start: usize,
}

impl Portion<'_> {
    fn each(&self) -> impl Iterator<Item = (usize, Uniform)> {
        let start = self.start;
        self.places.iter().zip(self.hashes).map(move |(&place, &hash)| (start + index(place.into()), Uniform(hash)))
    }
}

impl<H> SharedFilter<H> {
    /// [`insert`](Self::insert) for each item, in any order. While other threads use the filter, this takes less time than single
    /// insertions, since a lane is locked once for many items.
    ///
    /// Twelve bytes more are needed for each item meanwhile, up to 192 MiB; without that memory it takes longer.
    ///
    /// # Errors
    /// The [`GrowError`] of the first item that is refused. Refused items are not in the filter; all others are.
    pub fn insert_batch<I: Items<H> + ?Sized>(&self, items: &I) -> Result<(), GrowError> {
        let hashes = hashed(&self.hasher, &self.params, items);
        let mut first: Option<GrowError> = None;
        self.each_lane(&hashes, self.together(hashes.len()), |lane, portion| {
            let mut lane = lane.write();
            prefetch(&lane, portion.hashes);
            for (place, hash) in portion.each() {
                if let Err(error) = self.insert_into(&mut lane, hash)
                    && first.as_ref().is_none_or(|first| place < first.position())
                {
                    first = Some(error.at(place));
                }
            }
        });
        first.map_or(Ok(()), Err)
    }

    /// [`contains`](Self::contains) for each item; the answer for `items[i]` is written to `found[i]`. Each answer is true of a
    /// moment during the call, not all of the same.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn contains_batch<I: Items<H> + ?Sized>(&self, items: &I, found: &mut [bool]) {
        let hashes = hashed(&self.hasher, &self.params, items);
        same_length(hashes.len(), found.len());
        self.each_lane(&hashes, Together { hashes: TOGETHER, bits: 0 }, |lane, Portion { hashes, places, start }| {
            self.ask(lane, hashes, answers_at(places, &mut found[start..]));
        });
    }

    /// The number of items for which [`contains`](Self::contains) returns true, each at a moment during the call.
    #[must_use]
    pub fn count_members<I: Items<H> + ?Sized>(&self, items: &I) -> usize {
        let (hashes, mut count) = (hashed(&self.hasher, &self.params, items), 0);
        self.each_lane(&hashes, Together { hashes: TOGETHER, bits: 0 }, |lane, portion| {
            self.ask(lane, portion.hashes, |answers| count += answers.count_ones() as usize);
        });
        count
    }

    fn ask(&self, lane: &LockedLane, hashes: &[u64], answer: impl FnMut(u64)) {
        let lane = lane.read();
        let prefetches = lane.table_bytes() >= PREFETCH_FROM / 8;
        contains_all(self.dispatch, &*lane, prefetches, &hashes, answer);
    }

    /// Looks up the items of an iterator and yields each one with its answer. Takes up to 64 items ahead from the iterator.
    pub fn contains_iter<I: IntoIterator>(&self, items: I) -> ContainsIter<'_, I::IntoIter, Self>
    where
        H: HashItem<I::Item>,
    {
        ContainsIter::new(self, items.into_iter())
    }

    /// [`remove`](Self::remove) for each item, in any order; whether `items[i]` was found is written to `removed[i]`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn remove_batch<I: Items<H> + ?Sized>(&self, items: &I, removed: &mut [bool]) {
        let hashes = hashed(&self.hasher, &self.params, items);
        same_length(hashes.len(), removed.len());
        self.each_lane(&hashes, self.together(hashes.len()), |lane, portion| {
            let mut lane = lane.write();
            prefetch(&lane, portion.hashes);
            for (place, hash) in portion.each() {
                removed[place] = self.remove_from(&mut lane, hash);
            }
        });
    }

    /// How to share out so many hashes that change the filter: for large filters by shard, so that work stays in a core's cache.
    fn together(&self, hashes: usize) -> Together {
        // What the tables will be at least.
        match SHARING.bits(self.table_bytes().max(hashes), hashes) {
            0 => Together { hashes: TOGETHER, bits: 0 },
            bits => Together { hashes: SHARING.most, bits },
        }
    }

    /// Calls `act` with all hashes, many of the same lane at a time if there are enough of them and memory to share them out.
    /// Hashing, which may be the user's code, is done before.
    fn each_lane(&self, hashes: &impl Hashes, together: Together, mut act: impl FnMut(&LockedLane, Portion<'_>)) {
        let (len, lane_bits) = (hashes.len(), u32::from(self.params.shares().lane_bits()));
        let mut start = 0;
        if len >= FEWEST_PER_LANE * self.lanes.len() {
            let parts = Partition::new(self.params.shares(), len.min(together.hashes), together.bits.max(lane_bits));
            if let Ok(mut parts) = parts {
                while start < len {
                    let end = len.min(start + together.hashes);
                    if parts.fill(hashes, start..end).is_err() {
                        break;
                    }
                    parts.each_part(|part, hashes, places| {
                        act(&self.lanes[part >> (parts.bits() - lane_bits)], Portion { hashes, places, start });
                    });
                    start = end;
                }
            }
        }
        hashes.each_batch(start..len, |batch| {
            for (place, hash) in (start..).zip(batch) {
                let lane = &self.lanes[self.params.shares().lane(Uniform(*hash))];
                act(lane, Portion { hashes: &[*hash], places: &[0], start: place });
            }
            start += batch.len();
            true
        });
    }
}

/// Prefetches the buckets of some hashes. (A lane with many has more of them in a cache by the time they are used.)
fn prefetch(lane: &Writer<'_>, hashes: &[u64]) {
    if hashes.len() > 1 && Lane::table_bytes(lane) >= PREFETCH_FROM / 8 {
        for &hash in hashes.iter().take(2 * BATCH) {
            lane.prefetch(Uniform(hash));
        }
    }
}

impl<T, H: HashItem<T>> LookUp<T> for SharedFilter<H> {
    fn uniform_hash(&self, item: &T) -> u64 {
        self.uniform(item).0
    }

    fn look_up(&self, hashes: &[u64]) -> u64 {
        hashes.iter().rev().fold(0, |answers, &hash| answers << 1 | u64::from(self.contains_uniform(Uniform(hash))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ElasticFilter, hash::split_mix};
    use alloc::{vec, vec::Vec};

    /// However hashes are shared out, each comes once, with its place and its lane.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn every_hash_comes_to_its_lane_once() {
        let builder = ElasticFilter::builder().false_positive_rate(0.01).lanes(8);
        for filter in [builder.clone().build_shared().unwrap(), builder.capacity(9000).max_capacity(9000).build_shared().unwrap()]
        {
            let mut hashes: Vec<u64> = (0..5000).map(split_mix).collect();
            hashes.extend(vec![hashes[3]; 700]);
            let some = hashes.len() / 5;
            for together in
                [Together { hashes: some, bits: 0 }, Together { hashes: 1 << 20, bits: 8 }, Together { hashes: 7, bits: 2 }]
            {
                let mut seen = vec![0; hashes.len()];
                filter.each_lane(&hashes.as_slice(), together, |lane, portion| {
                    for (place, hash) in portion.each() {
                        assert_eq!(hash.0, hashes[place]);
                        assert!(core::ptr::eq(lane, &raw const filter.lanes[filter.params.shares().lane(hash)]));
                        seen[place] += 1;
                    }
                });
                assert!(seen.iter().all(|&times| times == 1));
            }
        }
    }
}
