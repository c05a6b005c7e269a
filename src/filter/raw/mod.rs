//! A filter of uniform hashes: everything that [`CuckooFilter`](super::CuckooFilter) does, except hashing items.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod crowd;
mod scan;

use core::ops::{Deref, DerefMut, Range};

use super::InsertError;
#[cfg(go_files)]
use super::InsertErrorKind;
use crate::{
    bits::{PADDING, in_memory, index, low_half, wide},
    kernel::{Dispatch, Hashes, answers},
    params::Params,
    storage::{OutOfMemory, Owned},
    table::{
        Address, AmongCopies, Change, Corrupt, DeepGeometry, Fingerprint, Geometry, MOST_SLOTS, Pair, Read, Table, TableMut,
        TableParams, Uniform,
        copies::{self, ClassKeys, Copies, Further, Listed},
        fingerprints, place,
    },
};
use scan::{AddHalf, CopyValues, FillPart, FirstCorrupt, InsertBatch, Prefetch, Receive, RemoveBatch, Taken};
pub(crate) use scan::{Located, Occurrences, Slots, Sought, Store, slots};

/// A table, its parameters and geometry, the number of items in it, and the kernel that works on it: the core of a
/// [`CuckooFilter`](crate::CuckooFilter), or one of the shards that make up a larger filter.
#[derive(Clone)]
pub(crate) struct RawFilter<S = Owned, P: TableParams = Params> {
    params: P,
    /// That of the table without its column.
    geometry: Geometry,
    storage: S,
    /// The number of items, further copies included.
    len: usize,
    dispatch: Dispatch,
    /// The copies that are not in the table. Those of a view follow its table.
    copies: Further,
}

impl RawFilter {
    /// An empty filter, or an error if the table cannot be allocated.
    pub fn new(params: Params) -> Result<Self, OutOfMemory> {
        let bytes = params.table_bytes();
        let storage = Owned::zeroed(bytes).ok_or(OutOfMemory::of(bytes))?;
        Ok(Self::from_parts(params, storage, 0))
    }
}

impl<S: Deref<Target = [u8]>, P: TableParams> RawFilter<S, P> {
    /// A filter with this table, which holds `len` items.
    ///
    /// # Panics
    /// If the length of the table is not the one that the parameters require.
    pub fn from_parts(params: P, storage: S, len: usize) -> Self {
        Self::with_listed(params, storage, len, 0)
    }

    /// The same, where a list of so many bytes is between table and padding: further copies.
    pub fn with_listed(params: P, storage: S, len: usize, listed: usize) -> Self {
        assert!(storage.len() == params.table_bytes() + listed + PADDING, "a table has the length of its parameters");
        // A call, before there is anything to keep across it.
        let dispatch = Dispatch::best();
        Self { geometry: Geometry::new(&params), params, storage, len, dispatch, copies: Further::NONE }
    }

    #[inline]
    pub fn params(&self) -> &P {
        &self.params
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    pub fn with_dispatch(self, dispatch: Dispatch) -> Self {
        Self { dispatch, ..self }
    }

    /// The further copies behind the table of a view; none elsewhere.
    pub fn listed(&self) -> Listed<'_> {
        Listed::new(&self.storage[self.params.table_bytes()..self.storage.len() - PADDING])
    }

    /// All further copies: keys and numbers, in order.
    pub fn further_copies(&self) -> impl Iterator<Item = (copies::ClassKey, u32)> + Clone {
        self.copies.list().into_iter().flat_map(Copies::iter).chain(self.listed().iter())
    }

    /// What they take: memory beside the storage, or a part of it.
    pub fn bytes_of_copies(&self) -> usize {
        self.memory_of_copies().max(self.listed().bytes().len())
    }

    /// The memory that they take beside the storage.
    pub fn memory_of_copies(&self) -> usize {
        self.copies.size_in_bytes()
    }

    /// Their total, and the number of items that have some.
    pub fn further_totals(&self) -> (u64, usize) {
        let listed = self.listed();
        if self.copies.are_none() { (listed.total(), listed.entries()) } else { self.copies.totals() }
    }

    /// Passes on the bytes that follow the table in a snapshot, in pieces: the number of further copies, and all entries. There are
    /// none without further copies.
    pub fn each_listed<E>(&self, mut act: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let (total, entries) = self.further_totals();
        if entries == 0 {
            return Ok(());
        }
        act(&total.to_le_bytes())?;
        self.further_copies().try_for_each(|entry| act(&copies::encode(entry)))
    }

    /// The number of items in the table, without further copies.
    pub fn in_table(&self) -> usize {
        self.len.saturating_sub(in_memory(self.further_totals().0))
    }

    #[inline(always)]
    pub fn read<R: Read>(&self, read: R) -> R::Output {
        let bytes = &self.storage;
        if P::HAS_COLUMN {
            self.dispatch.read_deep(&DeepGeometry::new(&self.params), bytes, read)
        } else {
            self.dispatch.read(&self.geometry, bytes, read)
        }
    }

    /// The table without its padding.
    pub fn table(&self) -> &[u8] {
        &self.storage[..self.params.table_bytes()]
    }

    /// The number of occupied slots in the buckets, or `None` if one of the buckets is corrupt.
    pub fn taken(&self, buckets: Range<u64>) -> Option<u64> {
        self.read(Taken(buckets, self.params.low_bits()))
    }

    /// The first corrupt bucket, and what is wrong with it.
    pub fn first_corrupt(&self, buckets: Range<u64>) -> Option<(u64, Corrupt)> {
        self.read(FirstCorrupt(buckets, self.params.low_bits()))
    }

    /// The values of a bucket's slots.
    fn slots(&self, bucket: u64) -> Slots {
        slots(bucket, |copy| self.read(copy))
    }

    /// Calls `act` with the number of each bucket and the values of its slots until it returns false. Returns false if it did.
    fn each_bucket(&self, mut act: impl FnMut(u64, &[u32]) -> bool) -> bool {
        let slots = index(self.params.bucket_size().into());
        self.each_piece(&mut |first, values| {
            (first..).zip(values.chunks_exact(slots)).all(|(bucket, values)| act(bucket, values))
        })
    }

    /// The same for some buckets at a time, of which the first one has that number.
    fn each_piece(&self, act: &mut dyn FnMut(u64, &mut [u32]) -> bool) -> bool {
        const BUCKETS: usize = 64;
        let mut values = [0; BUCKETS * MOST_SLOTS];
        let buckets = self.params.buckets();
        (0..buckets).step_by(BUCKETS).all(|first| {
            let end = buckets.min(first + wide(BUCKETS));
            let values = &mut values[..index((end - first) * u64::from(self.params.bucket_size()))];
            self.read(CopyValues { buckets: first..end, values });
            act(first, values)
        })
    }

    /// Calls `act` with each bucket number and fingerprint until it returns false. Returns false if it did.
    pub fn each_fingerprint(&self, mut act: impl FnMut(u64, Fingerprint) -> bool) -> bool {
        self.each_bucket(|bucket, values| fingerprints(&values).all(|fingerprint| act(bucket, fingerprint)))
    }

    /// Calls `act` with each fingerprint, its two buckets and the number of its copies in them, once for all copies, until it
    /// returns false. Returns false if it did.
    pub fn each_class(&self, act: &mut dyn FnMut(Pair, Fingerprint, u32) -> bool) -> bool {
        let count = |values: &[u32], value| low_half(wide(values.iter().filter(|&&other| other == value).count()));
        self.each_bucket(|bucket, values| {
            values.iter().enumerate().all(|(slot, &value)| {
                let Some(fingerprint) = Fingerprint::new(value) else { return true };
                let alternate = self.params.alternate(bucket, fingerprint);
                let there = if alternate == bucket { 0 } else { count(&self.slots(alternate), value) };
                // At the first of the copies in the table.
                let was_before = values[..slot].contains(&value) || alternate < bucket && there > 0;
                was_before || act((bucket, alternate), fingerprint, count(values, value) + there)
            })
        })
    }

    /// The number of distinct items.
    pub fn distinct(&self) -> usize {
        let mut distinct = 0;
        self.each_class(&mut |_, _, _| {
            distinct += 1;
            true
        });
        distinct
    }
}

impl<S: Deref<Target = [u8]>> RawFilter<S> {
    #[inline]
    pub fn storage(&self) -> &S {
        &self.storage
    }

    pub fn into_storage(self) -> S {
        self.storage
    }

    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.dispatch = dispatch;
    }

    /// A copy of the filter that owns its table, without further copies. The table must be valid, or be verified next.
    pub fn copied_table(&self) -> Result<RawFilter, OutOfMemory> {
        let table = self.table();
        let storage = Owned::copied(table).ok_or(OutOfMemory::of(table.len()))?;
        let Self { params, geometry, len, dispatch, .. } = *self;
        Ok(RawFilter { params, geometry, storage, len, dispatch, copies: Further::NONE })
    }

    /// The keys of further copies.
    fn keys(&self) -> ClassKeys {
        ClassKeys::new(self.params.buckets(), self.params.fingerprint_bits())
    }

    /// The number of further copies of a fingerprint in its two buckets.
    fn further(&self, buckets: Pair, fingerprint: Fingerprint) -> u32 {
        let key = || self.keys().key(buckets, fingerprint.wide());
        match self.copies.list() {
            Some(copies) => copies.get(key()),
            None if self.listed().entries() > 0 => self.listed().get(key()),
            None => 0,
        }
    }

    /// False if no item with this hash is in the filter; true if one probably is.
    #[inline]
    pub fn contains(&self, hash: Uniform) -> bool {
        self.read(ContainsHash { params: &self.params, hash })
    }

    /// The number of copies of the hash's fingerprint.
    pub fn count(&self, hash: Uniform) -> u32 {
        let (buckets, fingerprint) = Address::new(&self.params).buckets(hash);
        self.copies_of(buckets, fingerprint)
    }

    /// The same of a fingerprint and its two buckets.
    fn copies_of(&self, buckets: Pair, fingerprint: Fingerprint) -> u32 {
        self.occurrences(buckets, fingerprint).saturating_add(self.further(buckets, fingerprint))
    }

    /// Looks up all hashes. Calls `answer` once for each [`BATCH`](crate::kernel::BATCH) of them, in order; bit i of its argument
    /// is the answer for the i-th hash of the batch.
    pub fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(u64)) {
        self.dispatch.contains_all(&self.params, &self.geometry, &self.storage, hashes, answer);
    }

    /// The number of copies in the table of what a key stands for; 0 if that is nothing.
    pub fn occurrences_of(&self, key: copies::ClassKey) -> u32 {
        let (bucket, fingerprint) = self.keys().parts(key);
        let Some(fingerprint) = Fingerprint::new(low_half(fingerprint)) else { return 0 };
        let buckets = (bucket, self.params.alternate(bucket.min(self.params.buckets() - 1), fingerprint));
        // A key has the smaller bucket, and no bits above it.
        let is_key = bucket < self.params.buckets() && self.keys().key(buckets, fingerprint.wide()) == key && bucket <= buckets.1;
        if is_key { self.occurrences(buckets, fingerprint) } else { 0 }
    }

    /// The number of copies of a fingerprint in its two buckets.
    fn occurrences(&self, buckets: Pair, fingerprint: Fingerprint) -> u32 {
        Occurrences { buckets, fingerprint }.count(&|bucket| self.slots(bucket))
    }

    /// Prefetches the buckets of the hashes.
    pub fn prefetch(&self, hashes: &[u64]) {
        self.read(Prefetch { params: &self.params, hashes });
    }

    /// The values of the slots of a packed bucket; 0 for empty slots.
    #[cfg(go_files)]
    pub fn packed_values(&self, bucket: u64) -> [u32; 4] {
        let [first, second, third, fourth, ..] = self.slots(bucket);
        [first, second, third, fourth]
    }
}

impl<S: DerefMut<Target = [u8]>, P: TableParams> RawFilter<S, P> {
    #[cfg(test)]
    pub fn change<C: Change>(&mut self, change: C) -> C::Output {
        self.dispatch.change(&self.geometry, &mut self.storage, change)
    }

    /// Stores what `map` makes of the fingerprints of another table with as many buckets. Each one is stored in its bucket there,
    /// or in its alternate if that is full. Returns false if one found no room: then this filter is of no use.
    pub fn receive<T: Deref<Target = [u8]>>(
        &mut self,
        other: &RawFilter<T, P>,
        map: impl Fn(Fingerprint) -> Option<Fingerprint>,
    ) -> bool {
        other.each_piece(&mut |first_bucket, values| {
            // Here, and not where they are stored: that is compiled for each kind of table and each kernel.
            for value in values.iter_mut() {
                *value = Fingerprint::new(*value).and_then(&map).map_or(0, Fingerprint::get);
            }
            let Self { params, storage, len, dispatch, .. } = self;
            *len += fingerprints(&&*values).count();
            dispatch.change_deep(&DeepGeometry::new(params), storage, Receive { params, first_bucket, values })
        })
    }
}

impl<S: DerefMut<Target = [u8]>, P: TableParams> RawFilter<S, P> {
    /// Adds to an empty filter those fingerprints of another one with as many buckets whose bits in the column begin with `prefix`:
    /// those that are more than this one's. Returns false, and has done nothing, if there is no quicker way than one by one.
    pub fn take_part<T: Deref<Target = [u8]>>(&mut self, whole: &RawFilter<T, P>, prefix: u32) -> bool {
        let (buckets, column) = (self.params.buckets(), DeepGeometry::new(&self.params).column);
        let items = whole.read(FillPart { buckets, part: &mut self.storage, column, prefix });
        self.len += items.unwrap_or(0);
        items.is_some()
    }

    /// Adds all fingerprints of another one with as many buckets, which lacks the first bit of this one's column: it is `bit`. Returns
    /// whether they found room, or `None`, and has done nothing, if there is no quicker way than one by one.
    pub fn add_half<T: Deref<Target = [u8]>>(&mut self, half: &RawFilter<T, P>, bit: u32) -> Option<bool> {
        let Self { params, storage, len, dispatch, .. } = self;
        let add = AddHalf { params, half: (&half.storage, DeepGeometry::new(&half.params).column), bit };
        let is_added = dispatch.change_deep(&DeepGeometry::new(params), storage, add);
        *len += if is_added == Some(true) { half.len } else { 0 };
        is_added
    }
}

impl RawFilter {
    /// A copy of the filter.
    pub fn to_owned(&self) -> Result<Self, OutOfMemory> {
        let mut owned = self.copied_table()?;
        owned.copies = Further::from_sorted(self.keys(), &self.further_copies())?;
        Ok(owned)
    }

    /// Inserts a hash. If it fails, nothing has changed.
    #[inline(always)]
    pub fn insert(&mut self, hash: Uniform) -> Result<(), InsertError> {
        if !self.copies.are_none() {
            return self.insert_beside_copies(hash);
        }
        if self.place(hash, AmongCopies::GiveUp) { Ok(()) } else { self.insert_crowded(hash) }
    }

    /// Inserts a hash into the table, without counting copies. If it fails, nothing has changed.
    #[cfg(go_files)]
    pub fn insert_into_table(&mut self, hash: Uniform) -> Result<(), InsertError> {
        if self.place(hash, AmongCopies::GoOn) { Ok(()) } else { Err(self.refusal(hash)) }
    }

    /// The error for a hash for which the table has no room, where copies are not counted.
    #[cfg(go_files)]
    #[cold]
    fn refusal(&self, hash: Uniform) -> InsertError {
        let (buckets, fingerprint) = Address::new(&self.params).buckets(hash);
        let room = self.params.bucket_size() * (1 + u32::from(buckets.0 != buckets.1));
        InsertError::of(match self.occurrences(buckets, fingerprint) {
            copies if copies == room => InsertErrorKind::Copies { copies },
            _ => InsertErrorKind::Full { items: self.len, slots: self.params.slots() },
        })
    }

    /// Inserts a hash into the table. Returns false, and changes nothing, if no slot was found.
    #[inline]
    fn place(&mut self, hash: Uniform, among_copies: AmongCopies) -> bool {
        let params = &self.params;
        let is_placed = self.dispatch.change(&self.geometry, &mut self.storage, InsertHash { params, hash, among_copies });
        self.len += usize::from(is_placed);
        is_placed
    }

    /// Inserts a fingerprint with these two buckets into the table. Returns false, and changes nothing, if no slot was found.
    #[inline]
    fn place_fingerprint(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        let store = Store { params: &self.params, buckets, fingerprint, among_copies: AmongCopies::GiveUp };
        let is_placed = self.dispatch.change(&self.geometry, &mut self.storage, store);
        self.len += usize::from(is_placed);
        is_placed
    }

    /// Removes one copy of the hash's fingerprint. Returns false if there is none.
    #[inline]
    pub fn remove(&mut self, hash: Uniform) -> bool {
        if !self.copies.are_none() {
            return self.remove_beside_copies(hash);
        }
        self.remove_from_table(hash)
    }

    #[inline(always)]
    fn remove_from_table(&mut self, hash: Uniform) -> bool {
        let params = &self.params;
        let is_found = self.dispatch.change(&self.geometry, &mut self.storage, RemoveHash { params, hash });
        self.len -= usize::from(is_found);
        is_found
    }

    // These are functions of their own: inlined, they would be compiled anew for every type of items.

    /// Inserts at most 64 hashes, until one is refused.
    #[inline(never)]
    pub fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), InsertError> {
        let mut inserted = 0;
        if self.copies.are_none() {
            let Self { params, geometry, storage, len, dispatch, .. } = self;
            inserted = dispatch.change(geometry, storage, InsertBatch { params, hashes, len: *len });
            *len += inserted;
        } else {
            self.prefetch(hashes);
        }
        for (position, &hash) in hashes.iter().enumerate().skip(inserted) {
            let is_tried = position == inserted && self.copies.are_none();
            let done = if is_tried { self.insert_crowded(Uniform(hash)) } else { self.insert(Uniform(hash)) };
            done.map_err(|error| error.at(position))?;
        }
        Ok(())
    }

    /// Removes one copy of each of at most 64 hashes. Bit i of the result says whether the i-th was found.
    #[inline(never)]
    pub fn remove_batch(&mut self, hashes: &[u64]) -> u64 {
        if !self.copies.are_none() {
            self.prefetch(hashes);
            return answers(hashes, |hash| self.remove(hash));
        }
        let Self { params, geometry, storage, len, dispatch, .. } = self;
        let found = dispatch.change(geometry, storage, RemoveBatch { params, hashes });
        *len -= found.count_ones() as usize;
        found
    }

    /// The same table, with the number of items that it was found to hold.
    #[cfg(go_files)]
    pub fn with_len(self, len: usize) -> Self {
        Self { len, ..self }
    }

    pub fn clear(&mut self) {
        self.storage.fill(0);
        (self.len, self.copies) = (0, Further::NONE);
    }

    /// The table and its padding. The caller must leave buckets that this library could have written.
    #[cfg(go_files)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage
    }
}

struct ContainsHash<'a> {
    params: &'a Params,
    hash: Uniform,
}

impl Read for ContainsHash<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> bool {
        let (buckets, fingerprint) = Address::new(self.params).buckets(self.hash);
        table.contains(buckets, fingerprint)
    }
}

struct InsertHash<'a> {
    params: &'a Params,
    hash: Uniform,
    among_copies: AmongCopies,
}

impl Change for InsertHash<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let (buckets, fingerprint) = Address::new(self.params).buckets(self.hash);
        place(table, self.params, buckets, fingerprint, self.among_copies)
    }
}

struct RemoveHash<'a> {
    params: &'a Params,
    hash: Uniform,
}

impl Change for RemoveHash<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let (buckets, fingerprint) = Address::new(self.params).buckets(self.hash);
        table.remove(buckets, fingerprint)
    }
}

// Two filters in one.

/// What becomes of a fingerprint that both filters hold, in the same two buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// The copies of both.
    Sum,
    /// The larger number of copies.
    Union,
}

impl RawFilter {
    /// Adds the items of a filter with equal parameters. If it fails, nothing has changed.
    pub fn combine_equal(&mut self, other: &Self, how: Combine) -> Result<(), InsertError> {
        let mut combined = self.to_owned()?;
        let mut result = Ok(());
        other.each_class(&mut |buckets, fingerprint, occurrences| {
            let theirs = occurrences.saturating_add(other.further(buckets, fingerprint));
            // An insertion moves no copy out of its pair of buckets. So those counted in the copy are those of this filter.
            let more = match how {
                Combine::Sum => theirs,
                Combine::Union => theirs.saturating_sub(combined.copies_of(buckets, fingerprint)),
            };
            result = combined.insert_copies(buckets, fingerprint, more);
            result.is_ok()
        });
        result.map(|()| *self = combined)
    }

    /// The number of distinct items in two filters with equal parameters, and of those in both. Takes time proportional to both
    /// tables.
    #[cold]
    pub fn distinct_with(&self, other: &Self) -> (usize, usize) {
        let mut in_both = 0;
        other.each_class(&mut |buckets, fingerprint, _| {
            in_both += usize::from(self.occurrences(buckets, fingerprint) > 0);
            true
        });
        (self.distinct() + other.distinct() - in_both, in_both)
    }
}
