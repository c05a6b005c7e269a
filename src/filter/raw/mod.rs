//! A filter of uniform hashes: everything that a [`CuckooFilter`](super::CuckooFilter) does except hashing items.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

mod crowd;
mod scan;

use alloc::vec::Vec;
use core::{
    fmt,
    ops::{DerefMut, Range},
};

use super::{Content, Core, CoreMut, InsertError, MergeError, facts::Load, same_content};
use crate::{
    bits::{IS_SMALLEST, PADDING, in_memory, index, low_half, mask, wide},
    kernel::{Dispatch, Hashes, answers},
    params::{Params, mean_matches, rate_beside_copies},
    storage::{Bytes, OutOfMemory, Owned, reserved},
    table::{
        Address, Change, CopyPolicy, Corrupt, DeepGeometry, FillPart, Fingerprint, Geometry, Insertion, Pair, Read, Slot as _,
        Slotwise, Table, TableMut, TableParams, Uniform,
        copies::{ClassKeys, Copies, ExtraCopies, SnapshotCopies},
        fingerprints,
        list::ClassKey,
    },
};
use scan::{AddAll, BatchInsertion, BatchPrefetch, BatchRemoval, CopyValues, KeepPresent, StoreCopies, Taken};
pub(crate) use scan::{classes, occurrences, slots};

/// A table with its parameters, geometry, number of items and kernel: the core of a [`CuckooFilter`](crate::CuckooFilter), or one
/// shard of a growing filter.
#[derive(Clone)]
pub(crate) struct RawFilter<S = Owned, P: TableParams = Params> {
    params: P,
    /// The geometry of the table without its column.
    geometry: Geometry,
    pub storage: S,
    /// The number of items, including extra copies. These may exceed a `usize` of 32 bits.
    items: u64,
    dispatch: Dispatch,
    /// The extra copies. A view has none here: they follow the table in its storage.
    copies: ExtraCopies,
}

impl RawFilter {
    /// Returns an empty filter, or an error if the table cannot be allocated.
    pub fn new(params: Params) -> Result<Self, OutOfMemory> {
        let bytes = params.table_bytes();
        let storage = Owned::zeroed(bytes).ok_or(OutOfMemory::of(bytes))?;
        Ok(Self::from_parts(params, storage, 0))
    }
}

impl<S: Bytes, P: TableParams> RawFilter<S, P> {
    /// Returns a filter with this table, which holds this number of items.
    ///
    /// # Panics
    /// If the storage does not have the length that the parameters require.
    pub fn from_parts(params: P, storage: S, items: u64) -> Self {
        Self::with_listed(params, storage, items, 0)
    }

    /// Returns a filter with this table, behind which the storage has `listed` bytes of extra copies before the padding.
    ///
    /// # Panics
    /// If the storage does not have the length that the parameters and the copies require.
    pub fn with_listed(params: P, storage: S, items: u64, listed: usize) -> Self {
        assert!(storage.len() == params.table_bytes() + listed + PADDING, "the storage length does not match the parameters");
        // A call: it comes first, so that no registers are saved across it.
        let dispatch = Dispatch::best();
        Self { geometry: Geometry::new(&params), params, storage, items, dispatch, copies: ExtraCopies::NONE }
    }

    #[inline]
    pub fn params(&self) -> &P {
        &self.params
    }

    /// Returns the number of items, including extra copies.
    #[inline]
    pub fn items(&self) -> u64 {
        self.items
    }

    /// Returns [`items`](Self::items), or `usize::MAX` if that is less.
    #[inline]
    pub fn len(&self) -> usize {
        in_memory(self.items)
    }

    pub fn dispatch(&self) -> Dispatch {
        self.dispatch
    }

    pub fn with_dispatch(self, dispatch: Dispatch) -> Self {
        Self { dispatch, ..self }
    }

    /// Returns the encoding of the keys of extra copies.
    pub fn keys(&self) -> ClassKeys {
        ClassKeys::new(self.params.buckets(), self.params.fingerprint_bits(), 0)
    }

    /// Returns the extra copies behind the table of a view; empty for other filters.
    pub fn listed(&self) -> SnapshotCopies<'_> {
        SnapshotCopies::new(&self.storage[self.params.table_bytes()..self.storage.len() - PADDING], self.keys())
    }

    /// Returns the extra copies in memory beside the storage, if there are any.
    fn kept(&self) -> Option<&Copies> {
        if S::HAS_COPIES_BESIDE { self.copies.list() } else { None }
    }

    /// Returns all extra copies: keys and counts, in the order of the keys.
    pub fn extra_copies(&self) -> impl Iterator<Item = (ClassKey, u32)> + Clone {
        self.kept().into_iter().flat_map(Copies::iter).chain(self.listed().iter())
    }

    /// Returns the bytes that extra copies take beside the storage.
    pub fn memory_of_copies(&self) -> usize {
        if S::HAS_COPIES_BESIDE { self.copies.size_in_bytes() } else { 0 }
    }

    /// Returns the number of extra copies, and the number of items that have any.
    pub fn extra_totals(&self) -> (u64, usize) {
        let listed = self.listed();
        if self.kept().is_none() { (listed.total(), listed.entries()) } else { self.copies.totals() }
    }

    /// Returns the number of bytes that follow the table in a snapshot: none without extra copies.
    pub fn listed_bytes(&self) -> usize {
        self.kept().map_or(self.listed().bytes().len(), Copies::snapshot_bytes)
    }

    /// Calls `act` with these bytes, in pieces.
    pub fn write_extra_copies<E>(&self, mut act: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        match self.kept() {
            Some(copies) => copies.write(act),
            None if self.listed().bytes().is_empty() => Ok(()),
            None => act(self.listed().bytes()),
        }
    }

    /// Returns the number of items in the table, without extra copies.
    pub fn table_len(&self) -> usize {
        in_memory(self.items.saturating_sub(self.extra_totals().0))
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

    /// Returns the bytes of the table without padding.
    pub fn table(&self) -> &[u8] {
        &self.storage[..self.params.table_bytes()]
    }

    /// Returns the number of occupied slots in the buckets, or `None` if one of the buckets is corrupt.
    pub fn taken(&self, buckets: Range<u64>) -> Option<u64> {
        self.read(Taken(buckets, self.params.nonzero_mask()))
    }

    /// Returns the first corrupt bucket and why it is corrupt.
    pub fn first_corrupt(&self, mut buckets: Range<u64>) -> Option<(u64, Corrupt)> {
        let deep = P::HAS_COLUMN.then(|| DeepGeometry::new(&self.params));
        let geometry = deep.as_ref().map_or_else(|| (&self.geometry).into(), Into::into);
        let (table, low) = (Slotwise { geometry, bytes: &self.storage }, self.params.nonzero_mask());
        buckets.find_map(|bucket| Some((bucket, table.corrupt(bucket, low)?)))
    }

    /// Returns the values of a bucket's slots.
    fn slots(&self, bucket: u64) -> P::Slots {
        slots::<P>(bucket, |copy| self.read(copy))
    }

    /// Calls `act` with the number of each bucket and the values of its slots, until it returns false. Returns false if it did.
    fn each_bucket(&self, mut act: impl FnMut(u64, &[P::Slot]) -> bool) -> bool {
        let slots = index(self.params.bucket_size().into());
        self.each_piece(&mut |first, values| {
            (first..).zip(values.chunks_exact(slots)).all(|(bucket, values)| act(bucket, values))
        })
    }

    /// Calls `act` for as many buckets at a time as have up to 256 slots, with the number of the first and the values of all their
    /// slots, until it returns false. Returns false if it did.
    fn each_piece(&self, act: &mut dyn FnMut(u64, &mut [P::Slot]) -> bool) -> bool {
        const SLOTS: usize = 256;
        let mut values = [P::Slot::EMPTY; SLOTS];
        let (buckets, in_piece) = (self.params.buckets(), SLOTS / index(self.params.bucket_size().into()));
        (0..buckets).step_by(in_piece).all(|first| {
            let end = buckets.min(first + wide(in_piece));
            // Not `&mut values[..]`: the compiler would then share the code for slicing arrays of `u64`, also in programs that need
            // nothing else of this. One that queries a snapshot would take 3 KiB more in WebAssembly.
            let (values, _) = values.split_at_mut(index((end - first) * u64::from(self.params.bucket_size())));
            self.read(CopyValues { buckets: first..end, values });
            act(first, values)
        })
    }

    /// Calls `act` with each fingerprint and the number of its bucket, until it returns false. Returns false if it did.
    pub fn each_fingerprint(&self, mut act: impl FnMut(u64, Fingerprint) -> bool) -> bool {
        self.each_bucket(|bucket, values| fingerprints(&values).all(|fingerprint| act(bucket, fingerprint)))
    }

    /// Returns the values of all slots, bucket by bucket.
    pub fn values(&self) -> Result<Vec<P::Slot>, OutOfMemory> {
        let (buckets, slots) = (self.params.buckets(), self.params.slots());
        let mut values = reserved(slots)?;
        values.resize(slots, P::Slot::EMPTY);
        self.read(CopyValues { buckets: 0..buckets, values: &mut values });
        Ok(values)
    }

    /// Of the values of another table's slots, keeps those that this one has with the bits `above` added. The others become 0. Both
    /// tables have as many buckets.
    pub fn keep_present(&self, values: &mut [P::Slot], above: u64) {
        self.read(KeepPresent { params: &self.params, values, above });
    }

    /// Calls `act` once for all copies of a fingerprint in its two buckets, with the buckets, the fingerprint and the number of
    /// these copies, until it returns false. Returns false if it did.
    pub fn each_class(&self, act: &mut dyn FnMut(Pair, Fingerprint, u32) -> bool) -> bool {
        self.each_bucket(|bucket, values| classes(&self.params, bucket, values, |bucket| self.slots(bucket), act))
    }

    /// Returns the number of distinct items: fingerprints with the same two buckets count once.
    pub fn distinct(&self) -> usize {
        let mut distinct = 0;
        self.each_class(&mut |_, _, _| {
            distinct += 1;
            true
        });
        distinct
    }
}

impl<S: Bytes> RawFilter<S> {
    pub fn set_dispatch(&mut self, dispatch: Dispatch) {
        self.dispatch = dispatch;
    }

    /// Returns a copy of the filter that owns its table, without extra copies. The table must be valid, or be verified next.
    pub fn copied_table(&self) -> Result<RawFilter, OutOfMemory> {
        let table = self.table();
        let storage = Owned::copied(table).ok_or(OutOfMemory::of(table.len()))?;
        let Self { params, geometry, items, dispatch, .. } = *self;
        Ok(RawFilter { params, geometry, storage, items, dispatch, copies: ExtraCopies::NONE })
    }

    /// Returns the number of extra copies of a fingerprint with these two buckets.
    fn extra_copies_of(&self, buckets: Pair, fingerprint: Fingerprint) -> u32 {
        let key = || self.keys().key(0, buckets, fingerprint.wide());
        match self.kept() {
            Some(copies) => copies.get(key()),
            None if self.listed().entries() > 0 => self.listed().get(key()),
            None => 0,
        }
    }

    /// Returns the number of copies of a fingerprint with these two buckets, in the table and beside it.
    fn copies_of(&self, buckets: Pair, fingerprint: Fingerprint) -> u32 {
        self.occurrences(buckets, fingerprint).saturating_add(self.extra_copies_of(buckets, fingerprint))
    }

    /// Returns the number of copies in the table of the item that a key represents; 0 if the key represents no item.
    pub fn occurrences_of(&self, key: ClassKey) -> u32 {
        let Some((_, bucket, low)) = self.keys().parts(key) else { return 0 };
        let Some(fingerprint) = Fingerprint::new(low) else { return 0 };
        let buckets = (bucket, self.params.alternate(bucket, fingerprint));
        // A valid key has the smaller of the two buckets.
        if bucket <= buckets.1 { self.occurrences(buckets, fingerprint) } else { 0 }
    }

    /// Adds up all copies of all items. With a salt of its own, each sum is another one.
    pub fn content(&self, salt: u64) -> Content {
        let mut content = Content::new(salt);
        self.each_fingerprint(|bucket, fingerprint| {
            content.add(bucket.min(self.params.alternate(bucket, fingerprint)), fingerprint.wide(), 1);
            true
        });
        for (key, copies) in self.extra_copies() {
            if let Some((_, bucket, low)) = self.keys().parts(key) {
                content.add(bucket, low, copies);
            }
        }
        content
    }

    /// Returns the number of copies of a fingerprint in its two buckets, without extra copies.
    pub fn occurrences(&self, buckets: Pair, fingerprint: Fingerprint) -> u32 {
        occurrences(buckets, fingerprint, &|bucket| self.slots(bucket))
    }

    /// Returns the values of the slots of a packed bucket; 0 for empty slots.
    #[cfg(go_files)]
    pub fn packed_values(&self, bucket: u64) -> [u32; 4] {
        let [first, second, third, fourth, ..] = self.slots(bucket);
        [first, second, third, fourth]
    }
}

impl<S: Bytes + DerefMut, P: TableParams> RawFilter<S, P> {
    #[cfg(test)]
    pub fn change<C: Change>(&mut self, change: C) -> C::Output {
        self.dispatch.change(&self.geometry, &mut self.storage, change)
    }

    /// Stores the values of slots of another table with as many buckets, from `first_bucket` on, with the bits `above` added to
    /// each. Each goes into the bucket that it has there, or into its alternate if that is full. Returns false if one found no
    /// room; the filter must then be discarded.
    pub fn add_all(&mut self, first_bucket: u64, values: &[P::Slot], above: u64) -> bool {
        let Self { params, storage, items, dispatch, .. } = self;
        *items += wide(fingerprints(&values).count());
        dispatch.change_deep(&DeepGeometry::new(params), storage, AddAll { params, first_bucket, values, above })
    }

    /// Stores values of another table's slots, with the bits `above` added: each that finds a free slot in one of its two buckets, at
    /// most `most` of them. Those that are stored become 0. Both tables have as many buckets.
    pub fn store_copies(&mut self, values: &mut [P::Slot], above: u64, most: usize) {
        let Self { params, storage, items, dispatch, .. } = self;
        let copies = StoreCopies { params, values, above, most };
        *items += wide(dispatch.change_deep(&DeepGeometry::new(params), storage, copies));
    }

    /// Fills an empty filter with those fingerprints of a filter with as many buckets whose column bits begin with `prefix`: the
    /// bits that the column of `whole` has in addition. Each stays in the bucket with the same number, so there is always room.
    pub fn fill_part<T: Bytes>(&mut self, whole: &RawFilter<T, P>, prefix: u32) -> bool {
        let [geometry, own] = [&whole.params, &self.params].map(DeepGeometry::new);
        if geometry.table.is_narrow() && geometry.column.fits_a_word() {
            let (buckets, part) = (self.params.buckets(), (&mut self.storage[..], own.column));
            let split = FillPart { geometry: geometry.table, whole: (&whole.storage, geometry.column), buckets, part, prefix };
            self.items += wide(self.dispatch.run(split));
            return true;
        }
        let stored_bits = self.params.fingerprint_bits() + self.params.column_bits();
        whole.each_piece(&mut |first_bucket, values| {
            for value in values.iter_mut() {
                let stored: u64 = (*value).into();
                *value = P::Slot::new(if stored >> stored_bits == u64::from(prefix) { stored & mask(stored_bits) } else { 0 });
            }
            self.add_all(first_bucket, values, 0)
        })
    }

    /// Adds all fingerprints of a filter with as many buckets, whose column lacks the first bit of this one's; `bit` is its value. The
    /// half with bit 0 comes first, into an empty filter. Returns false if one found no room; the filter must then be discarded.
    pub fn add_half<T: Bytes>(&mut self, half: &RawFilter<T, P>, bit: u32) -> bool {
        if bit == 0 {
            debug_assert!(self.items == 0, "the lower half comes first");
            let [lower, own] = [&half.params, &self.params].map(|params| DeepGeometry::new(params).column);
            own.widen(&mut self.storage, lower, &half.storage, self.params.buckets());
            self.items = half.items;
            return true;
        }
        let above = u64::from(bit) << (half.params.fingerprint_bits() + half.params.column_bits());
        half.each_piece(&mut |first_bucket, values| self.add_all(first_bucket, values, above))
    }
}

impl RawFilter {
    /// Returns a copy of the filter, or an error if memory cannot be allocated.
    pub fn to_owned(&self) -> Result<Self, OutOfMemory> {
        let mut owned = self.copied_table()?;
        owned.copies = ExtraCopies::from_sorted(self.keys(), &self.extra_copies())?;
        Ok(owned)
    }

    /// Inserts a hash into the table, without counting copies. Returns false, and changes nothing, if it finds no slot.
    #[cfg(go_files)]
    pub fn insert_into_table(&mut self, hash: Uniform) -> bool {
        self.store_hash(hash, CopyPolicy::Continue)
    }

    /// Inserts a hash into the table. Returns false, and changes nothing, if it finds no slot.
    #[inline]
    fn store_hash(&mut self, hash: Uniform, copy_policy: CopyPolicy) -> bool {
        self.store(move |params| Address::new(params).buckets(hash), copy_policy)
    }

    /// Inserts an item into the table. Returns false, and changes nothing, if it finds no slot.
    #[inline]
    fn store(&mut self, locate: impl FnOnce(&Params) -> (Pair, Fingerprint), copy_policy: CopyPolicy) -> bool {
        let insertion = Insertion { params: &self.params, locate, copy_policy };
        let is_stored = self.dispatch.change(&self.geometry, &mut self.storage, insertion);
        self.items += u64::from(is_stored);
        is_stored
    }

    #[inline(always)]
    fn remove_from_table(&mut self, hash: Uniform) -> bool {
        let params = &self.params;
        let removal = Removal(move || Address::new(params).buckets(hash));
        let is_found = self.dispatch.change(&self.geometry, &mut self.storage, removal);
        self.items -= u64::from(is_found);
        is_found
    }

    /// Returns the table and its padding. The caller must leave only buckets that this library could have written.
    #[cfg(go_files)]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.storage
    }
}

impl<S: Bytes> Core for RawFilter<S> {
    #[inline(always)]
    fn seed(&self) -> u64 {
        self.params().seed()
    }

    #[inline]
    fn contains(&self, hash: Uniform) -> bool {
        let params = &self.params;
        if IS_SMALLEST {
            // The lookup that growing filters have.
            let (buckets, fingerprint) = Address::new(params).buckets(hash);
            return self.read(Located::new(buckets, fingerprint).lookup());
        }
        self.read(Lookup(move || Address::new(params).buckets(hash)))
    }

    fn count(&self, hash: Uniform) -> u32 {
        let (buckets, fingerprint) = Address::new(&self.params).buckets(hash);
        self.copies_of(buckets, fingerprint)
    }

    fn contains_all(&self, hashes: &impl Hashes, report: impl FnMut(u64)) {
        self.dispatch.contains_all(&self.params, &self.geometry, &self.storage, hashes, report);
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn capacity(&self) -> usize {
        self.params().capacity()
    }

    fn slots(&self) -> u64 {
        self.params().buckets() * u64::from(self.params().bucket_size())
    }

    fn table_len(&self) -> usize {
        self.table_len()
    }

    fn false_positive_rate(&self) -> f64 {
        let (params, load) = (self.params(), self.load_factor());
        let mean = mean_matches(params.fingerprint_bits(), params.bucket_size(), load);
        rate_beside_copies(mean, self.len() as f64 / self.table_len().max(1) as f64)
    }

    fn summarize(&self, f: &mut fmt::Formatter<'_>, bytes: usize) -> fmt::Result {
        let (params, items, slots) = (self.params(), self.table_len(), self.params().slots());
        write!(f, "{params}: {items} of {slots} slots taken ({}), ", Load { items, slots })?;
        match self.extra_totals().0 {
            0 => {}
            extra => write!(f, "{extra} extra copies, ")?,
        }
        write!(f, "{bytes} bytes")
    }

    fn external_bytes(&self) -> usize {
        self.storage.len() + self.memory_of_copies()
    }

    /// Returns the bytes of the table, without padding, and of extra copies, which are in memory or, for a view, in the storage.
    fn bytes_of_items(&self, _: usize) -> usize {
        self.params().table_bytes() + self.memory_of_copies().max(self.listed().bytes().len())
    }
}

impl CoreMut for RawFilter {
    #[inline(always)]
    fn insert(&mut self, hash: Uniform) -> Result<(), InsertError> {
        if !self.copies.is_empty() {
            return self.insert_beside_copies(hash);
        }
        if self.store_hash(hash, CopyPolicy::GiveUp) { Ok(()) } else { self.insert_crowded(hash) }
    }

    #[inline]
    fn insert_unique(&mut self, hash: Uniform) -> Result<bool, InsertError> {
        if self.contains(hash) { Ok(false) } else { self.insert(hash).map(|()| true) }
    }

    #[inline]
    fn remove(&mut self, hash: Uniform) -> bool {
        if !self.copies.is_empty() {
            return self.remove_beside_copies(hash);
        }
        self.remove_from_table(hash)
    }

    fn clear(&mut self) {
        self.storage.fill(0);
        (self.items, self.copies) = (0, ExtraCopies::NONE);
    }

    fn prefetch(&self, hashes: &[u64]) {
        self.read(BatchPrefetch { params: &self.params, hashes });
    }

    // Batches are not inlined: they would be compiled again for every item type.

    #[inline(never)]
    fn insert_batch(&mut self, hashes: &[u64]) -> Result<(), InsertError> {
        let mut inserted = 0;
        if self.copies.is_empty() {
            let Self { params, geometry, storage, items, dispatch, .. } = self;
            inserted = dispatch.change(geometry, storage, BatchInsertion { params, hashes, len: index(*items) });
            *items += wide(inserted);
        } else {
            self.prefetch(hashes);
        }
        for (position, &hash) in hashes.iter().enumerate().skip(inserted) {
            // The batch has already tried the hash at which it stopped.
            let was_tried = position == inserted && self.copies.is_empty();
            let done = if was_tried { self.insert_crowded(Uniform(hash)) } else { self.insert(Uniform(hash)) };
            done.map_err(|error| error.after(position))?;
        }
        Ok(())
    }

    #[inline(never)]
    fn remove_batch(&mut self, hashes: &[u64]) -> u64 {
        if !self.copies.is_empty() {
            self.prefetch(hashes);
            return answers(hashes, |hash| self.remove(hash));
        }
        let Self { params, geometry, storage, items, dispatch, .. } = self;
        let found = dispatch.change(geometry, storage, BatchRemoval { params, hashes });
        *items -= u64::from(found.count_ones());
        found
    }
}

/// Compares contents. If the bytes are the same, this takes a fraction of the time.
impl<S: Bytes, T: Bytes> PartialEq<RawFilter<T>> for RawFilter<S> {
    fn eq(&self, other: &RawFilter<T>) -> bool {
        self.params() == other.params()
            && self.items() == other.items()
            && (self.table() == other.table() && self.extra_copies().eq(other.extra_copies())
                || same_content(|salt| [self.content(salt), other.content(salt)]))
    }
}

impl<S: Bytes> Eq for RawFilter<S> {}

/// The number of copies that two combined filters have of an item that is in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// The sum of both counts.
    Sum,
    /// The larger of both counts.
    Union,
}

impl Combine {
    /// Returns how many copies to add. A sum does not need to know `ours`.
    pub fn added(self, ours: impl FnOnce() -> u32, theirs: u32) -> u32 {
        match self {
            Self::Sum => theirs,
            Self::Union => theirs.saturating_sub(ours()),
        }
    }
}

impl RawFilter {
    /// Adds the items of a filter with equal parameters. After an error, some have been added.
    pub fn add_items_of(&mut self, other: &Self, how: Combine) -> Result<(), InsertError> {
        let mut result = Ok(());
        other.each_class(&mut |buckets, fingerprint, occurrences| {
            let theirs = occurrences.saturating_add(other.extra_copies_of(buckets, fingerprint));
            // Insertions keep every copy in its two buckets, so there are still as many copies of this item as before.
            let added = how.added(|| self.copies_of(buckets, fingerprint), theirs);
            result = self.insert_copies(buckets, fingerprint, added);
            result.is_ok()
        });
        result
    }

    /// Keeps the smaller number of copies of each item that two filters with equal parameters have. Works in place and never fails. The
    /// order does not matter: what is removed for one fingerprint is not there for the next equal one.
    #[expect(clippy::unnecessary_wraps, reason = "those of growing filters can fail")]
    pub fn intersect(&mut self, other: &Self) -> Result<(), MergeError> {
        for bucket in 0..self.params.buckets() {
            let values = self.slots(bucket);
            for fingerprint in fingerprints(&values) {
                let buckets = (bucket, self.params.alternate(bucket, fingerprint));
                let surplus = self.copies_of(buckets, fingerprint).saturating_sub(other.copies_of(buckets, fingerprint));
                if surplus > 0 {
                    self.remove_copies(buckets, fingerprint, surplus);
                }
            }
        }
        Ok(())
    }

    /// Returns the number of distinct items in two filters with equal parameters together, and the number of those that are in
    /// both. Takes time proportional to both tables.
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

// Operations on one item. They get its buckets and its fingerprint from a function, which is compiled with them for the kernel's
// instructions.

/// Looks up an item.
pub(crate) struct Lookup<F>(pub F);

impl<F: FnOnce() -> (Pair, Fingerprint)> Read for Lookup<F> {
    type Output = bool;
    const IS_HOT: bool = true;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> bool {
        let (buckets, fingerprint) = (self.0)();
        table.contains(buckets, fingerprint)
    }
}

/// Prefetches an item's buckets.
pub(crate) struct Prefetch<F>(pub F);

impl<F: FnOnce() -> (Pair, Fingerprint)> Read for Prefetch<F> {
    type Output = ();

    #[inline(always)]
    fn run<T: Table>(self, table: &T) {
        let ((first, second), _) = (self.0)();
        table.prefetch(first);
        table.prefetch(second);
    }
}

/// Removes one copy of an item. Returns false, and changes nothing, if there is none.
pub(crate) struct Removal<F>(pub F);

impl<F: FnOnce() -> (Pair, Fingerprint)> Change for Removal<F> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let (buckets, fingerprint) = (self.0)();
        table.remove(buckets, fingerprint)
    }
}

/// The buckets and fingerprint of an item in a table of at most 2³² buckets. It has two words, which are passed in registers.
#[derive(Clone, Copy)]
pub(crate) struct Located {
    buckets: u64,
    fingerprint: Fingerprint,
}

impl Located {
    #[inline(always)]
    pub fn new((first, second): Pair, fingerprint: Fingerprint) -> Self {
        debug_assert!(first | second < 1 << 32);
        Self { buckets: first | second << 32, fingerprint }
    }

    #[inline(always)]
    fn parts(self) -> (Pair, Fingerprint) {
        ((low_half(self.buckets).into(), self.buckets >> 32), self.fingerprint)
    }

    #[inline(always)]
    pub fn lookup(self) -> Lookup<impl FnOnce() -> (Pair, Fingerprint)> {
        Lookup(move || self.parts())
    }

    #[inline(always)]
    pub fn removal(self) -> Removal<impl FnOnce() -> (Pair, Fingerprint)> {
        Removal(move || self.parts())
    }

    #[inline(always)]
    pub fn prefetch(self) -> Prefetch<impl FnOnce() -> (Pair, Fingerprint)> {
        Prefetch(move || self.parts())
    }
}
