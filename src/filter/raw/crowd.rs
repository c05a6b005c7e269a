//! Insertion and removal where an item has extra copies: these are counted beside the table instead of stored in it.

use super::{
    super::{Core as _, InsertError, InsertErrorKind},
    RawFilter, Removal,
};
use crate::{
    params::Params,
    storage::OutOfMemory,
    table::{
        Address, CopyPolicy, Crowd, Crowded, Fingerprint, LONG_SEARCH, Pair, Replacement, SHORT_SEARCH, TableParams as _,
        Uniform,
        copies::{self, ExtraCopies, SnapshotCopies},
    },
};

impl RawFilter {
    /// [`insert`](Self::insert) for a filter that has extra copies.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_beside_copies(&mut self, hash: Uniform) -> Result<(), InsertError> {
        let (buckets, fingerprint) = Address::new(&self.params).buckets(hash);
        if self.has_copies() && self.contains(hash) {
            // With many copies, count this one without trying the table.
            return self.count_extra(buckets, fingerprint, 1);
        }
        // Otherwise, store it in the table if there is room.
        let is_stored = self.store_beside_copies(buckets, |filter, copy_policy| filter.store_hash(hash, copy_policy));
        if is_stored { Ok(()) } else { self.insert_crowded(hash) }
    }

    /// Stores a fingerprint in the table of a filter that has extra copies, with `store`. Returns false if it finds no slot.
    fn store_beside_copies(&mut self, buckets: Pair, store: impl Fn(&mut Self, CopyPolicy) -> bool) -> bool {
        if self.has_copies() {
            if store(self, CopyPolicy::NoWalk) {
                return true;
            }
            // Second copies in the way make room for this item and the next ones, which is faster than a walk. Without memory for
            // them, the walk follows all the same.
            _ = self.with_crowd(&mut |crowd| _ = crowd.sweep_beside(buckets));
        }
        store(self, CopyPolicy::GiveUpForOwnCopy)
    }

    /// Inserts a hash for which the table has no room: counts a copy if the table has the item, otherwise makes room for it.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_crowded(&mut self, hash: Uniform) -> Result<(), InsertError> {
        let (buckets, fingerprint) = Address::new(&self.params).buckets(hash);
        if self.contains(hash) {
            self.count_extra(buckets, fingerprint, 1)
        } else {
            self.replace_second_copy(buckets, fingerprint)
        }
    }

    /// Inserts copies of a fingerprint with these two buckets. As many go into the table as if they were inserted individually; the
    /// others are counted. After an error, some may have been inserted.
    pub(super) fn insert_copies(&mut self, buckets: Pair, fingerprint: Fingerprint, copies: u32) -> Result<(), InsertError> {
        let (mut remaining, mut is_present) = (copies, self.occurrences(buckets, fingerprint) > 0);
        while remaining > 0 && !(is_present && self.has_copies()) && self.store_once(buckets, fingerprint) {
            (remaining, is_present) = (remaining - 1, true);
        }
        if remaining == 0 {
            return Ok(());
        }
        if !is_present {
            self.replace_second_copy(buckets, fingerprint)?;
            remaining -= 1;
        }
        if remaining > 0 { self.count_extra(buckets, fingerprint, remaining) } else { Ok(()) }
    }

    /// Stores a fingerprint in the table as [`insert`](Self::insert) would. Returns false if it finds no slot.
    fn store_once(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        let store = |filter: &mut Self, copy_policy| filter.store(move |_| (buckets, fingerprint), copy_policy);
        if self.copies.is_empty() { store(self, CopyPolicy::GiveUp) } else { self.store_beside_copies(buckets, store) }
    }

    /// Returns true if there are more extra copies than distinct items explain that share fingerprint and buckets by chance. If so,
    /// insertions first look for a copy. Elsewhere, that would take time, and would count distinct items as copies. It is also true if
    /// an item may have so many that another one must not be stored without counting them.
    fn has_copies(&self) -> bool {
        let by_chance = self.items.saturating_mul(self.params.bucket_size().into()) >> self.params.fingerprint_bits();
        !self.copies.is_empty() && self.copies.totals().0 >= by_chance.min(copies::MOST.into())
    }

    /// Counts `added_copies` extra copies of an item that the table has. An error changes nothing.
    fn count_extra(&mut self, buckets: Pair, fingerprint: Fingerprint, added_copies: u32) -> Result<(), InsertError> {
        let keys = self.keys();
        let found = self.copies.find(keys.key(0, buckets, fingerprint.wide()));
        let mut added = self.copies.list_or_new(keys)?.add_at(found, added_copies, copies::MOST);
        if added == Ok(false) {
            let mut in_table = 0;
            self.with_crowd(&mut |crowd| in_table = crowd.count(buckets, fingerprint))?;
            added = self.copies.list_or_new(keys)?.add_at(found, added_copies, u32::MAX - in_table);
        }
        if added != Ok(true) {
            self.copies.drop_empty();
            added?;
            return Err(InsertError::of(InsertErrorKind::TooManyCopies));
        }
        self.items += u64::from(added_copies);
        Ok(())
    }

    /// [`remove`](Self::remove) for a filter that has extra copies. It removes these first, so that the table keeps one copy as
    /// long as there are others.
    #[cold]
    #[inline(never)]
    pub(super) fn remove_beside_copies(&mut self, hash: Uniform) -> bool {
        let (buckets, fingerprint) = Address::new(&self.params).buckets(hash);
        let key = self.keys().key(0, buckets, fingerprint.wide());
        if self.copies.take(key, 1) == 0 {
            return self.remove_from_table(hash);
        }
        self.items -= 1;
        true
    }

    /// Removes copies of a fingerprint with these two buckets, which the filter has: extra copies first.
    pub(super) fn remove_copies(&mut self, buckets: Pair, fingerprint: Fingerprint, copies: u32) {
        let key = self.keys().key(0, buckets, fingerprint.wide());
        let counted = self.copies.take(key, copies);
        let Self { geometry, storage, items, dispatch, .. } = self;
        *items -= u64::from(counted);
        for _ in counted..copies {
            *items -= u64::from(dispatch.change(geometry, storage, Removal(move || (buckets, fingerprint))));
        }
    }

    /// Sets the extra copies to those of a snapshot, which must have been verified.
    pub fn set_listed(&mut self, listed: SnapshotCopies<'_>) -> Result<(), OutOfMemory> {
        self.copies = ExtraCopies::from_sorted(self.keys(), &listed.iter())?;
        Ok(())
    }

    /// Inserts a fingerprint for which the table has no room: moves a second copy of another item out of the table, and if that was
    /// near, all second copies around it. An error changes nothing.
    fn replace_second_copy(&mut self, buckets: Pair, fingerprint: Fingerprint) -> Result<(), InsertError> {
        let mut replaced = Ok(Replacement::NoSecondCopy);
        // The first one may be a distinct item that looks like a copy by chance.
        let may_sweep = !self.copies.is_empty();
        self.with_crowd(&mut |crowd| {
            replaced = crowd.replace_second_copy(buckets, fingerprint, LONG_SEARCH, true);
            if let Ok(Replacement::Stored { bucket, searched: ..SHORT_SEARCH }) = replaced
                && may_sweep
            {
                crowd.sweep_around(bucket);
            }
        })?;
        let Replacement::Stored { .. } = replaced? else {
            return Err(InsertError::of(InsertErrorKind::Full { distinct: self.table_len(), len: self.len() }));
        };
        self.items += 1;
        Ok(())
    }

    /// Calls `act` with the table and the list of extra copies, to which it may move copies.
    fn with_crowd(&mut self, act: &mut dyn FnMut(&mut Crowd<'_, Params>)) -> Result<(), OutOfMemory> {
        let keys = self.keys();
        self.copies.list_or_new(keys)?;
        let Self { params, geometry, storage, dispatch, copies, .. } = self;
        if let Some(copies) = copies.list_mut() {
            let key = &|bucket, fingerprint: Fingerprint| {
                keys.key(0, (bucket, params.alternate(bucket, fingerprint)), fingerprint.wide())
            };
            dispatch.change(geometry, storage, Crowded { params: &*params, key, copies, act });
        }
        self.copies.drop_empty();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{CuckooFilter, table::steps};

    /// No operation reads more buckets than a walk and a piece of the table have, or moves more entries than two lists have, however
    /// large the filter is.
    #[test]
    #[cfg_attr(miri, ignore = "takes too long")]
    fn no_operation_waits_for_a_pass() {
        const ITEMS: u64 = 100_000;
        let mut most = (0, 0);
        let mut track = |name: &str, act: &mut dyn FnMut()| {
            steps::taken();
            act();
            let (buckets, entries) = steps::taken();
            most = (buckets.max(most.0), entries.max(most.1));
            assert!(buckets <= 5_000 && entries <= 40_000, "{name}: {buckets} buckets, {entries} entries");
        };
        let new_filter = || CuckooFilter::builder().capacity(100_000).false_positive_rate(0.001).build().expect("valid");
        let mut filter = new_filter();
        for item in (0..2 * ITEMS).map(|number| number / 2) {
            track("twice in a row", &mut || filter.insert(&item).expect("copies are always accepted"));
        }
        for item in 0..ITEMS {
            track("removal in a row", &mut || assert!(filter.remove(&item)));
        }
        let mut filter = new_filter();
        for item in (0..3 * ITEMS).map(|number| number % ITEMS) {
            track("by passes", &mut || filter.insert(&item).expect("copies are always accepted"));
        }
        for item in (0..3 * ITEMS).map(|number| number % ITEMS) {
            track("removal by passes", &mut || assert!(filter.remove(&item)));
        }
        assert!(most.0 > 0 && most.1 > 0, "nothing was counted");
    }
}
