//! Insertion beside copies: of an item that is in the table, further copies are counted instead of stored.

use super::{
    super::{InsertError, InsertErrorKind},
    RawFilter,
};
use crate::{
    bits::{index, wide},
    params::Params,
    storage::OutOfMemory,
    table::{
        Address, AmongCopies, Crowd, Crowded, FEW_BUCKETS, Fingerprint, MOST_BUCKETS, Pair, Placed, Uniform,
        copies::{self, Further, Listed},
    },
};

impl RawFilter {
    /// [`insert`](Self::insert), where there are further copies.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_beside_copies(&mut self, hash: Uniform) -> Result<(), InsertError> {
        if self.has_copies() && self.contains(hash) {
            // Where there are many, a copy is not stored.
            let (buckets, fingerprint) = Address::new(&self.params).buckets(hash);
            return self.count_further(buckets, fingerprint, 1);
        }
        // Otherwise it is, as long as there is room.
        if self.place(hash, AmongCopies::GiveUpForOne) { Ok(()) } else { self.insert_crowded(hash) }
    }

    /// Inserts a hash for which the table has no room: counts a copy of an item that is there, or places another item.
    #[cold]
    #[inline(never)]
    pub(super) fn insert_crowded(&mut self, hash: Uniform) -> Result<(), InsertError> {
        let (buckets, fingerprint) = Address::new(&self.params).buckets(hash);
        if self.contains(hash) { self.count_further(buckets, fingerprint, 1) } else { self.place_crowded(buckets, fingerprint) }
    }

    /// Inserts copies of a fingerprint with these two buckets, as many as one by one would go into the table. If it fails, some may
    /// have been inserted.
    pub(super) fn insert_copies(&mut self, buckets: Pair, fingerprint: Fingerprint, copies: u32) -> Result<(), InsertError> {
        let (mut left, mut is_present) = (copies, self.occurrences(buckets, fingerprint) > 0);
        while left > 0 && !(is_present && self.has_copies()) && self.place_fingerprint(buckets, fingerprint) {
            (left, is_present) = (left - 1, true);
        }
        if left == 0 {
            return Ok(());
        }
        if !is_present {
            self.place_crowded(buckets, fingerprint)?;
            left -= 1;
        }
        if left > 0 { self.count_further(buckets, fingerprint, left) } else { Ok(()) }
    }

    /// True if items have copies, more than different items have that share fingerprint and buckets. Then copies are looked for
    /// before they are inserted; elsewhere, that would take time, and count different items as copies.
    fn has_copies(&self) -> bool {
        let by_chance = (wide(self.len) * u64::from(self.params.bucket_size())) >> self.params.fingerprint_bits();
        !self.copies.are_none() && self.copies.totals().0 >= by_chance
    }

    /// Counts further copies of an item that the table has. If it fails, nothing has changed.
    fn count_further(&mut self, buckets: Pair, fingerprint: Fingerprint, number: u32) -> Result<(), InsertError> {
        let keys = self.keys();
        let key = keys.key(buckets, fingerprint.wide());
        let mut added = self.copies.list_or_new(keys)?.add(key, number, copies::MOST);
        if added == Ok(false) {
            let mut in_table = 0;
            self.crowded(&mut |crowd| in_table = crowd.count(buckets, fingerprint))?;
            added = self.copies.list_or_new(keys)?.add(key, number, u32::MAX - in_table);
        }
        if added != Ok(true) {
            self.copies.drop_empty();
            added?;
            return Err(InsertError::of(InsertErrorKind::TooManyCopies));
        }
        self.len += index(number.into());
        Ok(())
    }

    /// [`remove`](Self::remove), where there are further copies: these first, so that the table has one as long as there are
    /// others.
    #[cold]
    #[inline(never)]
    pub(super) fn remove_beside_copies(&mut self, hash: Uniform) -> bool {
        let (buckets, fingerprint) = Address::new(&self.params).buckets(hash);
        let key = self.keys().key(buckets, fingerprint.wide());
        if self.copies.take(key, 1) == 0 {
            return self.remove_from_table(hash);
        }
        self.len -= 1;
        true
    }

    /// Adds the further copies of a snapshot, which have been verified.
    pub fn set_listed(&mut self, listed: Listed<'_>) -> Result<(), OutOfMemory> {
        self.copies = Further::from_sorted(self.keys(), &listed.iter())?;
        Ok(())
    }

    /// Inserts a fingerprint for which the table has no room: a second copy of another one gives way, and if there are many, all of
    /// them. If it fails, nothing has changed.
    fn place_crowded(&mut self, buckets: Pair, fingerprint: Fingerprint) -> Result<(), InsertError> {
        let mut placed = Ok(Placed::NoSecond);
        self.crowded(&mut |crowd| {
            placed = crowd.place(buckets, fingerprint, MOST_BUCKETS, true);
            if matches!(placed, Ok(Placed::Behind(searched)) if searched < FEW_BUCKETS) {
                crowd.sweep();
            }
        })?;
        let Placed::Behind(_) = placed? else {
            return Err(InsertError::of(InsertErrorKind::Full { items: self.in_table(), slots: self.params.slots() }));
        };
        self.len += 1;
        Ok(())
    }

    /// Shows the table to a function, which may move copies out of it.
    fn crowded(&mut self, act: &mut dyn FnMut(&mut Crowd<'_, Params>)) -> Result<(), OutOfMemory> {
        self.copies.list_or_new(self.keys())?;
        let Self { params, geometry, storage, dispatch, copies, .. } = self;
        if let Some(copies) = copies.list_mut() {
            dispatch.change(geometry, storage, Crowded { params: &*params, above: 0, copies, act });
        }
        self.copies.drop_empty();
        Ok(())
    }
}
