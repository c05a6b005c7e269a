//! A filter of hashes: all that a filter is, but for how items become hashes.

#![allow(clippy::inline_always, reason = "what is inlined is compiled for the kernel's instructions, what is called is not")]

mod operations;

use core::ops::Range;

use super::{Full, MergeError};
use crate::{
    bits::PADDING,
    kernel::{Dispatch, Hashes, Kernel},
    params::{ParamError, Params},
    storage::{OutOfMemory, Owned, Storage},
    table::{Address, Change, Corrupt, Fingerprint, Geometry, Read, Uniform},
};
#[cfg(go_files)]
use operations::PackedValues;
use operations::{
    Contains, Count, EachFingerprint, FirstCorrupt, Insert, InsertAll, Place, Prefetch, PutFirst, Remove, RemoveAll, Taken,
};

/// The table, what it is made of, and how many items are in it.
#[derive(Clone)]
pub(crate) struct RawFilter<S = Owned> {
    params: Params,
    geometry: Geometry,
    storage: S,
    len: usize,
    dispatch: Dispatch,
}

impl RawFilter {
    /// An empty filter.
    pub(crate) fn new(params: Params) -> Result<Self, OutOfMemory> {
        let bytes = params.table_bytes();
        let storage = Owned::zeroed(bytes).ok_or(OutOfMemory::of(bytes))?;
        Ok(Self::from_parts(params, storage, 0))
    }
}

impl<S: Storage> RawFilter<S> {
    /// A filter of a table that holds `len` items.
    ///
    /// # Panics
    /// If the table has not the length that the parameters say.
    pub(crate) fn from_parts(params: Params, storage: S, len: usize) -> Self {
        assert!(storage.bytes().len() == params.table_bytes() + PADDING, "a table has the length of its parameters");
        Self { geometry: Geometry::new(&params), params, storage, len, dispatch: Dispatch::best() }
    }

    #[inline]
    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    #[inline]
    pub(crate) fn storage(&self) -> &S {
        &self.storage
    }

    pub(crate) fn into_storage(self) -> S {
        self.storage
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn kernel(&self) -> Kernel {
        self.dispatch.kernel()
    }

    pub(crate) fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    pub(crate) fn with_dispatch(self, dispatch: Dispatch) -> Self {
        Self { dispatch, ..self }
    }

    pub(crate) fn set_kernel(&mut self, kernel: Kernel) -> Result<(), ParamError> {
        self.dispatch = kernel.dispatch()?;
        Ok(())
    }

    /// The table's bytes, without the padding.
    pub(crate) fn table(&self) -> &[u8] {
        &self.storage.bytes()[..self.params.table_bytes()]
    }

    /// The same filter in memory of its own. Its table is known to be good, or is checked next.
    pub(crate) fn to_owned(&self) -> Result<RawFilter, OutOfMemory> {
        let table = self.table();
        let storage = Owned::copied(table).ok_or(OutOfMemory::of(table.len()))?;
        let Self { params, geometry, len, dispatch, .. } = *self;
        Ok(RawFilter { params, geometry, storage, len, dispatch })
    }

    #[inline(always)]
    pub(crate) fn read<R: Read>(&self, read: R) -> R::Output {
        self.dispatch.read(&self.geometry, &self.storage, read)
    }

    /// Is an item of this hash in the filter?
    #[inline]
    pub(crate) fn contains(&self, hash: Uniform) -> bool {
        self.read(Contains { params: &self.params, hash })
    }

    /// How many copies of the hash's fingerprint are in its buckets.
    #[inline]
    pub(crate) fn count(&self, hash: Uniform) -> u32 {
        self.read(Count { params: &self.params, hash })
    }

    /// Looks all hashes up. Each [`BATCH`](crate::kernel::BATCH) of them, in their order, gives `answer` one number whose bit i is
    /// the answer for the i-th of them.
    pub(crate) fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(u64)) {
        self.dispatch.contains_all(&self.params, &self.geometry, &self.storage, hashes, answer);
    }

    /// Starts to load the buckets of hashes.
    pub(crate) fn prefetch(&self, hashes: &[u64]) {
        self.read(Prefetch { params: &self.params, hashes });
    }

    /// How many slots of the buckets are taken, or `None` if this library cannot have written one of them.
    pub(crate) fn taken(&self, buckets: Range<u64>) -> Option<u64> {
        self.read(Taken(buckets))
    }

    /// The first of the buckets that this library cannot have written, and why.
    pub(crate) fn first_corrupt(&self, buckets: Range<u64>) -> Option<(u64, Corrupt)> {
        self.read(FirstCorrupt(buckets))
    }

    /// The values of the slots of a bucket of the packed table, 0 for empty ones.
    #[cfg(go_files)]
    pub(crate) fn packed_values(&self, bucket: u64) -> [u32; 4] {
        self.read(PackedValues(bucket))
    }

    /// Calls `act` with each bucket and each fingerprint in it, until it returns false; false if it did.
    fn each_fingerprint(&self, act: impl FnMut(u64, Fingerprint) -> bool) -> bool {
        self.read(EachFingerprint { buckets: self.params.buckets(), act })
    }

    /// Why a hash had no room that is the `position`-th of those that were to be inserted.
    #[cold]
    pub(crate) fn refusal(&self, hash: Uniform, position: usize) -> Full {
        let ((first, second), _) = Address::new(&self.params).buckets(hash);
        let room = self.params.bucket_size() * (1 + u32::from(first != second));
        Full::new(self.len, self.params.slots(), (self.count(hash) == room).then_some(room), position)
    }
}

impl RawFilter {
    #[inline(always)]
    pub(crate) fn change<C: Change>(&mut self, change: C) -> C::Output {
        self.dispatch.change(&self.geometry, &mut self.storage, change)
    }

    /// Stores a hash. False, and nothing changed, if there is no room.
    #[inline]
    pub(crate) fn insert(&mut self, hash: Uniform) -> bool {
        let params = &self.params;
        let is_placed = self.dispatch.change(&self.geometry, &mut self.storage, Insert { params, hash });
        self.len += usize::from(is_placed);
        is_placed
    }

    /// Removes one copy of the hash's fingerprint. False if there is none.
    #[inline]
    pub(crate) fn remove(&mut self, hash: Uniform) -> bool {
        let params = &self.params;
        let is_found = self.dispatch.change(&self.geometry, &mut self.storage, Remove { params, hash });
        self.len -= usize::from(is_found);
        is_found
    }

    /// Stores all hashes until one has no room, and says how many there were before it. Each is counted as soon as it is
    /// stored: an item of the user's may panic.
    pub(crate) fn insert_all(&mut self, hashes: &impl Hashes) -> usize {
        let before = self.len;
        let Self { params, geometry, storage, len, dispatch } = self;
        dispatch.change(geometry, storage, InsertAll { params, hashes, len });
        self.len - before
    }

    /// Removes one copy of each hash's fingerprint, and tells `answer` which were there.
    pub(crate) fn remove_all(&mut self, hashes: &impl Hashes, answer: impl FnMut(bool)) {
        let Self { params, geometry, storage, len, dispatch } = self;
        dispatch.change(geometry, storage, RemoveAll { params, hashes, len, answer });
    }

    /// Stores a hash in its first bucket only. False, and nothing changed, if that is full.
    pub(crate) fn put_first(&mut self, hash: Uniform) -> bool {
        let params = &self.params;
        let is_placed = self.dispatch.change(&self.geometry, &mut self.storage, PutFirst { params, hash });
        self.len += usize::from(is_placed);
        is_placed
    }

    /// The same table, which turned out to hold so many items.
    #[cfg(go_files)]
    pub(crate) fn with_len(self, len: usize) -> Self {
        Self { len, ..self }
    }

    pub(crate) fn clear(&mut self) {
        self.storage.bytes_mut().fill(0);
        self.len = 0;
    }

    /// The table's bytes and the padding. Whoever writes into them leaves buckets that this library could have written.
    #[cfg(go_files)]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.storage.bytes_mut()
    }

    /// Adds all fingerprints of a filter with the same parameters, whose table is known to be good, or changes nothing. (They
    /// are counted all the same: mapped bytes may have changed since.)
    pub(crate) fn merge<S: Storage>(&mut self, other: &RawFilter<S>) -> Result<(), MergeError> {
        let full = || MergeError::full(self, other);
        // What cannot fit is not copied first.
        self.len.checked_add(other.len).filter(|&len| len <= self.params.slots()).ok_or_else(full)?;
        let mut merged = self.to_owned()?;
        let address = Address::new(&self.params);
        let is_complete = other.each_fingerprint(|bucket, fingerprint| {
            let buckets = (bucket, address.alternate(bucket, fingerprint));
            let is_placed = merged.change(Place { address, buckets, fingerprint });
            merged.len += usize::from(is_placed);
            is_placed
        });
        if !is_complete {
            return Err(full());
        }
        *self = merged;
        Ok(())
    }
}
