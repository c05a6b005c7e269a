//! Two filters become one.

use alloc::string::{String, ToString};

use super::CuckooFilter;
use crate::{
    error::{DifferentParams, MergeError, MergedFull},
    hash::Hasher,
    storage::Storage,
    table::{Table as _, fingerprints, place, with_table},
};

impl<H: Hasher> CuckooFilter<H> {
    /// `merge` with a filter of the same parameters, whose table is known to be good. (What is put in is counted all the same, not added up: a mapped file
    /// may have changed since.)
    pub(crate) fn take_in<S: Storage>(&mut self, other: &CuckooFilter<H, S>) -> Result<(), MergeError> {
        let full = || {
            let (slots, capacity) = (self.params.slots(), self.params.capacity());
            MergeError::Full(MergedFull { ours: self.len, theirs: other.len, slots, capacity })
        };
        // What cannot fit is not copied first.
        self.len.checked_add(other.len).filter(|&len| len <= self.params.slots()).ok_or_else(full)?;
        let mut len = self.len;
        let bytes = self.table.size_in_bytes();
        let mut merged = self.table.to_owned(&self.params).ok_or(MergeError::OutOfMemory { bytes })?;
        let mut put = |bucket, fingerprint| {
            let buckets = (bucket, self.address.alternate(bucket, fingerprint));
            let placed = with_table!(&mut merged, table => place(table, &self.address, buckets, fingerprint));
            len += usize::from(placed);
            placed
        };
        for bucket in 0..self.params.buckets() {
            if !with_table!(&other.table, table => fingerprints(&table.values(bucket)).all(|fingerprint| put(bucket, fingerprint)))
            {
                return Err(full());
            }
        }
        self.table = merged;
        self.len = len;
        Ok(())
    }

    /// Can the two be merged at all? Whatever is in them, their parameters say so.
    pub(crate) fn check_same<S: Storage>(&self, other: &CuckooFilter<H, S>) -> Result<(), MergeError> {
        self.first_difference(other).map_or(Ok(()), |different| Err(MergeError::Different(different)))
    }

    fn first_difference<S: Storage>(&self, other: &CuckooFilter<H, S>) -> Option<DifferentParams> {
        let (ours, theirs) = (&self.params, &other.params);
        let rows: [(_, String, String); 7] = [
            ("table", ours.table().to_string(), theirs.table().to_string()),
            ("fingerprint's length", ours.fingerprint_bits().to_string(), theirs.fingerprint_bits().to_string()),
            ("bucket size", ours.bucket_size().to_string(), theirs.bucket_size().to_string()),
            ("number of buckets", ours.buckets().to_string(), theirs.buckets().to_string()),
            ("addressing", ours.addressing().to_string(), theirs.addressing().to_string()),
            ("seed", ours.seed().to_string(), theirs.seed().to_string()),
            ("hasher", self.hasher.id().to_string(), other.hasher.id().to_string()),
        ];
        let (parameter, ours, theirs) = rows.into_iter().find(|(_, ours, theirs)| ours != theirs)?;
        Some(DifferentParams { parameter, ours, theirs })
    }
}
