//! Moving fingerprints from later sub-filters to earlier ones, in the order in which RedisBloom does, so that the bytes are the
//! same.

use super::filter::{EMPTY, Place, RedisBloomFilter};

impl RedisBloomFilter {
    /// Moves items from later sub-filters to earlier ones with room for them, and drops the last ones if that has emptied them.
    /// `CF.COMPACT`.
    ///
    /// Where sub-filters differ in size, an item that moves to a smaller one is found for more other items than before: the
    /// false-positive rate rises. Takes time proportional to the slots, times the sub-filters.
    pub fn compact(&mut self) {
        for filter in (1..self.filters.len()).rev() {
            self.empty_into_earlier(filter);
        }
        self.header.update(|fields| fields.deleted = 0);
    }

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
