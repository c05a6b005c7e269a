//! Table operations of [`RawFilter`](super::RawFilter) on fingerprints, buckets, whole tables and batches of hashes.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::ops::Range;

use crate::{
    bits::{low_half, wide},
    kernel::{PREFETCH_FROM, answers, prefetch},
    params::Params,
    table::{
        Address, Change, Column, CopyPolicy, Corrupt, Fingerprint, Pair, Read, Slot, Table, TableMut, TableParams, Uniform,
        copy_values, fingerprints, place, place_all, place_elsewhere,
    },
};

/// Prefetches the buckets of hashes if the table is large.
pub(super) struct BatchPrefetch<'a> {
    pub params: &'a Params,
    pub hashes: &'a [u64],
}

impl Read for BatchPrefetch<'_> {
    type Output = ();

    #[inline(always)]
    fn run<T: Table>(self, table: &T) {
        prefetch(table, Address::new(self.params), self.hashes);
    }
}

pub(super) struct Taken(pub Range<u64>, pub Option<Fingerprint>);

impl Read for Taken {
    type Output = Option<u64>;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> Option<u64> {
        table.taken(self.0, self.1)
    }
}

pub(super) struct FirstCorrupt(pub Range<u64>, pub Option<Fingerprint>);

impl Read for FirstCorrupt {
    type Output = Option<(u64, Corrupt)>;

    #[inline(always)]
    fn run<T: Table>(mut self, table: &T) -> Self::Output {
        self.0.find_map(|bucket| Some((bucket, table.corrupt(bucket, self.1)?)))
    }
}

/// Counts the copies of a fingerprint in its two buckets.
#[derive(Clone, Copy)]
pub(crate) struct Occurrences {
    pub buckets: Pair,
    pub fingerprint: Fingerprint,
}

impl Occurrences {
    /// Returns the number of copies. Reads buckets through `slots`, so it is compiled once, not for each kind of table and each
    /// kernel.
    #[inline(never)]
    pub fn count<S: Slot, V: AsRef<[S]>>(self, slots: &dyn Fn(u64) -> V) -> u32 {
        let (first, second) = self.buckets;
        let count_in = |bucket| low_half(wide(fingerprints(&slots(bucket)).filter(|&other| other == self.fingerprint).count()));
        count_in(first) + if second == first { 0 } else { count_in(second) }
    }
}

// Operations on one item. They get its buckets and its fingerprint from a function, which is compiled with them for the kernel's
// instructions.

/// Looks up an item.
pub(crate) struct Lookup<F>(pub F);

impl<F: FnOnce() -> (Pair, Fingerprint)> Read for Lookup<F> {
    type Output = bool;

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

/// Inserts an item. Returns false, and changes nothing, if it finds no slot.
pub(crate) struct Insertion<'a, P, F> {
    pub params: &'a P,
    pub locate: F,
    pub among_copies: CopyPolicy,
}

impl<P: TableParams, F: FnOnce(&P) -> (Pair, Fingerprint)> Change for Insertion<'_, P, F> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let (buckets, fingerprint) = (self.locate)(self.params);
        place(table, self.params, buckets, fingerprint, self.among_copies)
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

/// Copies the values of all slots of a range of buckets, bucket by bucket.
pub(crate) struct CopyValues<'a, S> {
    pub buckets: Range<u64>,
    pub values: &'a mut [S],
}

/// Returns the values of one bucket's slots, which `copy` reads; 0 for empty slots, and beyond the last slot.
pub(crate) fn slots<P: TableParams>(bucket: u64, copy: impl FnOnce(CopyValues<'_, P::Slot>)) -> P::Slots {
    let mut values = P::EMPTY_SLOTS;
    copy(CopyValues { buckets: bucket..bucket + 1, values: values.as_mut() });
    values
}

impl<S: Slot> Read for CopyValues<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<T: Table>(self, table: &T) {
        let mut rest = self.values;
        for bucket in self.buckets {
            rest = copy_values(&table.values(bucket), rest);
        }
    }
}

/// Runs [`Table::fill_part`].
pub(super) struct FillPart<'a> {
    pub buckets: u64,
    pub part: &'a mut [u8],
    pub column: Column,
    pub prefix: u32,
}

impl Read for FillPart<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> Option<usize> {
        table.fill_part(self.buckets, self.part, self.column, self.prefix)
    }
}

/// Runs [`TableMut::add_bucket`] on all buckets.
pub(super) struct AddHalf<'a, P> {
    pub params: &'a P,
    pub half: (&'a [u8], Column),
    pub bit: u32,
}

impl<P: TableParams> Change for AddHalf<'_, P> {
    /// True if all fingerprints found room; `None` if nothing was done.
    type Output = Option<bool>;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> Option<bool> {
        let mut overflow = [0; 4];
        for bucket in 0..self.params.buckets() {
            let count = table.add_bucket(bucket, self.half, self.bit, &mut overflow)?;
            if count > 0 {
                for fingerprint in fingerprints(&&overflow[..count]) {
                    if !place_elsewhere(&mut table.walked(), self.params, bucket, fingerprint) {
                        return Some(false);
                    }
                }
            }
        }
        Some(true)
    }
}

/// Stores the values of another table's slots, each in the bucket that it has there or in its alternate.
pub(super) struct PlaceAll<'a, P: TableParams> {
    pub params: &'a P,
    pub first_bucket: u64,
    pub values: &'a [P::Slot],
}

impl<P: TableParams> Change for PlaceAll<'_, P> {
    /// True if all fingerprints found room.
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        place_all(&mut table.walked(), self.params, self.first_bucket, self.values)
    }
}

/// Inserts hashes, and stops at the first one that finds no slot.
pub(super) struct BatchInsertion<'a> {
    pub params: &'a Params,
    pub hashes: &'a [u64],
    /// The number of items in the table before the batch.
    pub len: usize,
}

impl Change for BatchInsertion<'_> {
    /// The number of hashes that were inserted.
    type Output = usize;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> usize {
        let Self { params, hashes, len } = self;
        let address = Address::new(params);
        prefetch(table, address, hashes);
        // From this load on, so many buckets are full that prefetching the alternates of their residents saves time.
        if len >= params.slots() / 4 * 3 {
            prefetch_alternates(table, address, hashes);
        }
        let refused = hashes.iter().position(|&hash| {
            let (buckets, fingerprint) = address.buckets(Uniform(hash));
            !place(table, params, buckets, fingerprint, CopyPolicy::GiveUp)
        });
        refused.unwrap_or(hashes.len())
    }
}

/// Removes one copy of each hash's fingerprint.
pub(super) struct BatchRemoval<'a> {
    pub params: &'a Params,
    pub hashes: &'a [u64],
}

impl Change for BatchRemoval<'_> {
    /// Bit i is 1 if the i-th hash was found.
    type Output = u64;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> u64 {
        let address = Address::new(self.params);
        prefetch(table, address, self.hashes);
        answers(self.hashes, |hash| {
            let (buckets, fingerprint) = address.buckets(hash);
            table.remove(buckets, fingerprint)
        })
    }
}

/// Prefetches the alternate buckets of all residents, for hashes whose two buckets are full.
#[inline(always)]
fn prefetch_alternates(table: &impl Table, address: Address, hashes: &[u64]) {
    if table.len_in_bytes() < PREFETCH_FROM {
        return;
    }
    for &hash in hashes {
        let ((first, second), _) = address.buckets(Uniform(hash));
        if !table.has_room(first) & !table.has_room(second) {
            for bucket in [first, second] {
                for resident in fingerprints(&table.values(bucket)) {
                    table.prefetch(address.alternate(bucket, resident));
                }
            }
        }
    }
}
