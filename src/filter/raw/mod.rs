//! A filter of uniform hashes: everything that [`CuckooFilter`](super::CuckooFilter) does, except hashing items.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod scan;

use core::ops::{Deref, DerefMut, Range};

use super::{InsertError, InsertErrorKind};
use crate::{
    bits::{PADDING, index, low_half, wide},
    kernel::{Dispatch, Hashes},
    params::{self, Params},
    storage::{OutOfMemory, Owned},
    table::{
        Address, Change, Corrupt, DeepGeometry, Fingerprint, Geometry, MOST_SLOTS, Pair, Read, Table, TableMut, TableParams,
        Uniform, fingerprints, place,
    },
};
use scan::{AddHalf, CopyValues, FillPart, FirstCorrupt, InsertBatch, Prefetch, Receive, RemoveBatch, Taken};
pub(crate) use scan::{Copies, Located, Place, Slots, Sought, is_crowded, slots};

/// A table, its parameters and geometry, the number of items in it, and the kernel that works on it: the core of a
/// [`CuckooFilter`](crate::CuckooFilter), or one of the shards that make up a larger filter.
#[derive(Clone)]
pub(crate) struct RawFilter<S = Owned, P: TableParams = Params> {
    params: P,
    /// That of the table without its column.
    geometry: Geometry,
    storage: S,
    len: usize,
    dispatch: Dispatch,
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
        assert!(storage.len() == params.table_bytes() + PADDING, "a table has the length of its parameters");
        // A call, before there is anything to keep across it.
        let dispatch = Dispatch::best();
        Self { geometry: Geometry::new(&params), params, storage, len, dispatch }
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
    pub fn each_class(&self, mut act: impl FnMut(Pair, Fingerprint, u32) -> bool) -> bool {
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

    /// A copy of the filter that owns its table. The table must be valid, or be verified next.
    pub fn to_owned(&self) -> Result<RawFilter, OutOfMemory> {
        let table = self.table();
        let storage = Owned::copied(table).ok_or(OutOfMemory::of(table.len()))?;
        let Self { params, geometry, len, dispatch, .. } = *self;
        Ok(RawFilter { params, geometry, storage, len, dispatch })
    }

    /// False if no item with this hash is in the filter; true if one probably is.
    #[inline]
    pub fn contains(&self, hash: Uniform) -> bool {
        self.read(Contains { params: &self.params, hash })
    }

    /// The number of copies of the hash's fingerprint in its two buckets.
    pub fn count(&self, hash: Uniform) -> u32 {
        let (buckets, fingerprint) = Address::new(&self.params).buckets(hash);
        self.copies(buckets, fingerprint)
    }

    /// Looks up all hashes. Calls `answer` once for each [`BATCH`](crate::kernel::BATCH) of them, in order; bit i of its argument
    /// is the answer for the i-th hash of the batch.
    pub fn contains_all(&self, hashes: &impl Hashes, answer: impl FnMut(u64)) {
        self.dispatch.contains_all(&self.params, &self.geometry, &self.storage, hashes, answer);
    }

    /// The number of copies of a fingerprint in its two buckets.
    fn copies(&self, buckets: Pair, fingerprint: Fingerprint) -> u32 {
        Copies { buckets, fingerprint, unknown: 0 }.count(&|bucket| self.slots(bucket))
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

    /// The error for a hash that was refused as the `position`-th of those to insert.
    #[cold]
    pub fn refusal(&self, hash: Uniform, position: usize) -> InsertError {
        let (buckets, fingerprint) = Address::new(&self.params).buckets(hash);
        let room = self.params.bucket_size() * (1 + u32::from(buckets.0 != buckets.1));
        let is_crowded = || is_crowded(&self.params, buckets, &|bucket| self.slots(bucket));
        let kind = match self.copies(buckets, fingerprint) {
            copies if copies == room => InsertErrorKind::Copies { copies },
            // Up to the capacity, different items have room.
            _ if self.len < self.params.capacity() && is_crowded() => InsertErrorKind::CopiesOfOthers,
            _ => InsertErrorKind::Full { items: self.len, slots: self.params.slots() },
        };
        InsertError::of(kind).at(position)
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

    /// Adds all fingerprints of another one with as many buckets, which lacks the first bit of this one's column: for all of them, it is
    /// `bit`. Returns whether they found room, or `None`, and has done nothing, if there is no quicker way than one by one.
    pub fn add_half<T: Deref<Target = [u8]>>(&mut self, half: &RawFilter<T, P>, bit: u32) -> Option<bool> {
        let Self { params, storage, len, dispatch, .. } = self;
        let add = AddHalf { params, half: (&half.storage, DeepGeometry::new(&half.params).column), bit };
        let is_added = dispatch.change_deep(&DeepGeometry::new(params), storage, add);
        *len += if is_added == Some(true) { half.len } else { 0 };
        is_added
    }
}

impl RawFilter {
    /// Inserts a hash. Returns false, and changes nothing, if no slot was found.
    #[inline]
    pub fn place(&mut self, hash: Uniform) -> bool {
        let params = &self.params;
        let is_placed = self.dispatch.change(&self.geometry, &mut self.storage, Insert { params, hash });
        self.len += usize::from(is_placed);
        is_placed
    }

    /// Inserts a fingerprint into these two buckets. Returns false, and changes nothing, if no slot was found.
    #[inline]
    pub fn insert_fingerprint(&mut self, buckets: Pair, fingerprint: Fingerprint) -> bool {
        let place = Place { params: &self.params, buckets, fingerprint };
        let is_placed = self.dispatch.change(&self.geometry, &mut self.storage, place);
        self.len += usize::from(is_placed);
        is_placed
    }

    /// Removes one copy of the hash's fingerprint. Returns false if there is none.
    #[inline]
    pub fn remove(&mut self, hash: Uniform) -> bool {
        let params = &self.params;
        let is_found = self.dispatch.change(&self.geometry, &mut self.storage, Remove { params, hash });
        self.len -= usize::from(is_found);
        is_found
    }

    // These are functions of their own: inlined, they would be compiled anew for every type of items.

    /// Inserts at most 64 hashes, until one is refused.
    #[inline(never)]
    pub fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), InsertError> {
        let Self { params, geometry, storage, len, dispatch } = self;
        let inserted = dispatch.change(geometry, storage, InsertBatch { params, hashes, len: *len });
        *len += inserted;
        hashes.get(inserted).map_or(Ok(()), |&refused| Err(self.refusal(Uniform(refused), inserted)))
    }

    /// Removes one copy of each of at most 64 hashes. Bit i of the result says whether the i-th was found.
    #[inline(never)]
    pub fn remove_batch(&mut self, hashes: &[u64]) -> u64 {
        let Self { params, geometry, storage, len, dispatch } = self;
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
        self.len = 0;
    }

    /// The table and its padding. The caller must leave buckets that this library could have written.
    #[cfg(go_files)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage
    }
}

struct Contains<'a> {
    params: &'a Params,
    hash: Uniform,
}

impl Read for Contains<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> bool {
        let (buckets, fingerprint) = Address::new(self.params).buckets(self.hash);
        table.contains(buckets, fingerprint)
    }
}

struct Insert<'a> {
    params: &'a Params,
    hash: Uniform,
}

impl Change for Insert<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let (buckets, fingerprint) = Address::new(self.params).buckets(self.hash);
        place(table, self.params, buckets, fingerprint)
    }
}

struct Remove<'a> {
    params: &'a Params,
    hash: Uniform,
}

impl Change for Remove<'_> {
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

impl Combine {
    fn copies(self, ours: u32, theirs: u32) -> u32 {
        match self {
            Self::Sum => ours.saturating_add(theirs),
            Self::Union => ours.max(theirs),
        }
    }
}

impl RawFilter {
    /// Adds the fingerprints of a filter with equal parameters. Returns false, and changes nothing, if they do not fit.
    pub fn combine_equal(&mut self, other: &Self, how: Combine) -> Result<bool, OutOfMemory> {
        // Do not copy the table if the items cannot fit.
        if how == Combine::Sum && self.len.checked_add(other.len).is_none_or(|len| len > self.params.slots()) {
            return Ok(false);
        }
        let mut combined = self.to_owned()?;
        let is_complete = match how {
            Combine::Sum => {
                let address = Address::new(&self.params);
                other.each_fingerprint(|bucket, fingerprint| {
                    combined.insert_fingerprint((bucket, address.alternate(bucket, fingerprint)), fingerprint)
                })
            }
            // A walk moves copies between their two buckets only. So those counted in the copy, before the first is added, are
            // those of this filter.
            Combine::Union => other.each_class(|buckets, fingerprint, theirs| {
                let ours = combined.copies(buckets, fingerprint);
                (ours..theirs).all(|_| combined.insert_fingerprint(buckets, fingerprint))
            }),
        };
        if is_complete {
            *self = combined;
        }
        Ok(is_complete)
    }
}

/// What two filters have together.
pub(crate) struct Together {
    /// Copies that both have: of each fingerprint and its buckets, the smaller number.
    pub(crate) in_both: usize,
    /// The copies after a merge.
    pub(crate) sum: params::Copies,
    /// The copies after a union.
    pub(crate) union: params::Copies,
}

impl<S: Deref<Target = [u8]>> RawFilter<S> {
    /// Counts what two filters with the same parameters have. Takes time proportional to both tables.
    #[cold]
    pub fn together<T: Deref<Target = [u8]>>(&self, other: &RawFilter<T>) -> Together {
        let mut together = Together { in_both: 0, sum: params::Copies::default(), union: params::Copies::default() };
        let mut add = |ours, theirs| {
            for (how, copies) in [(Combine::Sum, &mut together.sum), (Combine::Union, &mut together.union)] {
                copies.add(how.copies(ours, theirs));
            }
            together.in_both += index(ours.min(theirs).into());
        };
        other.each_class(|buckets, fingerprint, theirs| {
            add(self.copies(buckets, fingerprint), theirs);
            true
        });
        self.each_class(|buckets, fingerprint, ours| {
            if other.copies(buckets, fingerprint) == 0 {
                add(ours, 0);
            }
            true
        });
        together
    }
}
