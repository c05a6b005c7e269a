//! Operations of [`RawFilter`](super::RawFilter) on buckets and on batches of hashes, rather than on single items.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::ops::Range;

use crate::{
    bits::{low_half, wide},
    kernel::{PREFETCH_FROM, answers, prefetch},
    params::Params,
    table::{
        Address, AmongCopies, Change, Column, Corrupt, Fingerprint, MOST_SLOTS, Pair, Read, Table, TableMut, TableParams,
        Uniform, fingerprints, place, place_all, place_elsewhere,
    },
};

pub(super) struct Prefetch<'a> {
    pub params: &'a Params,
    pub hashes: &'a [u64],
}

impl Read for Prefetch<'_> {
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

/// The values of a bucket's slots; 0 for empty ones, and behind the last.
pub(crate) type Slots = [u32; MOST_SLOTS];

/// The copies of a fingerprint in its two buckets.
#[derive(Clone, Copy)]
pub(crate) struct Occurrences {
    pub buckets: Pair,
    pub fingerprint: Fingerprint,
}

impl Occurrences {
    /// Reads buckets through `slots`, so that it is compiled once, and not for each kind of table and each kernel.
    #[inline(never)]
    pub fn count(self, slots: &dyn Fn(u64) -> Slots) -> u32 {
        let (first, second) = self.buckets;
        let here = |bucket| low_half(wide(fingerprints(&slots(bucket)).filter(|&other| other == self.fingerprint).count()));
        here(first) + if second == first { 0 } else { here(second) }
    }
}

/// Looks up a fingerprint in these two buckets.
#[derive(Clone, Copy)]
pub(crate) struct Sought {
    pub buckets: Pair,
    pub fingerprint: Fingerprint,
}

impl Read for Sought {
    type Output = bool;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> bool {
        table.contains(self.buckets, self.fingerprint)
    }
}

/// Where a table of fewer than 2³² buckets keeps an item. Two words, which are passed in registers.
#[derive(Clone, Copy)]
pub(crate) struct Located {
    buckets: u64,
    pub fingerprint: Fingerprint,
}

impl Located {
    #[inline(always)]
    pub fn new((first, second): Pair, fingerprint: Fingerprint) -> Self {
        debug_assert!(first | second < 1 << 32);
        Self { buckets: first | second << 32, fingerprint }
    }

    #[inline(always)]
    pub fn buckets(self) -> Pair {
        (low_half(self.buckets).into(), self.buckets >> 32)
    }

    /// Prefetches its buckets.
    #[inline(always)]
    pub fn prefetch(self) -> PrefetchLocated {
        PrefetchLocated(self)
    }
}

/// Looks up a located item.
impl Read for Located {
    type Output = bool;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> bool {
        table.contains(self.buckets(), self.fingerprint)
    }
}

/// Removes one copy of a located item.
impl Change for Located {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        table.remove(self.buckets(), self.fingerprint)
    }
}

/// Inserts a fingerprint into these two buckets, if a slot can be found.
pub(crate) struct Store<'a, P> {
    pub(crate) params: &'a P,
    pub(crate) buckets: Pair,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) among_copies: AmongCopies,
}

impl<P: TableParams> Change for Store<'_, P> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        place(table, self.params, self.buckets, self.fingerprint, self.among_copies)
    }
}

/// Prefetches the buckets of a located item.
pub(crate) struct PrefetchLocated(Located);

impl Read for PrefetchLocated {
    type Output = ();

    #[inline(always)]
    fn run<T: Table>(self, table: &T) {
        let (first, second) = self.0.buckets();
        table.prefetch(first);
        table.prefetch(second);
    }
}

/// Copies the values of the slots of buckets, bucket after bucket.
pub(crate) struct CopyValues<'a> {
    pub buckets: Range<u64>,
    pub values: &'a mut [u32],
}

/// The values of one bucket's slots.
pub(crate) fn slots(bucket: u64, copy: impl FnOnce(CopyValues<'_>)) -> Slots {
    let mut values = [0; MOST_SLOTS];
    copy(CopyValues { buckets: bucket..bucket + 1, values: &mut values });
    values
}

impl Read for CopyValues<'_> {
    type Output = ();

    #[inline(always)]
    fn run<T: Table>(self, table: &T) {
        let mut rest = self.values;
        for bucket in self.buckets {
            let values = table.values(bucket);
            let (copy, behind) = rest.split_at_mut(values.as_ref().len());
            copy.copy_from_slice(values.as_ref());
            rest = behind;
        }
    }
}

/// [`Table::fill_part`].
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

/// [`TableMut::add_bucket`] for all buckets.
pub(super) struct AddHalf<'a, P> {
    pub params: &'a P,
    pub half: (&'a [u8], Column),
    pub bit: u32,
}

impl<P: TableParams> Change for AddHalf<'_, P> {
    /// Whether all found room, or `None` if nothing was done.
    type Output = Option<bool>;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> Option<bool> {
        let mut left = [0; 4];
        for bucket in 0..self.params.buckets() {
            let over = table.add_bucket(bucket, self.half, self.bit, &mut left)?;
            if over > 0 {
                for fingerprint in fingerprints(&&left[..over]) {
                    if !place_elsewhere(&mut table.walked(), self.params, bucket, fingerprint) {
                        return Some(false);
                    }
                }
            }
        }
        Some(true)
    }
}

/// Stores the values of another table's slots, each in its bucket or its alternate.
pub(super) struct Receive<'a, P> {
    pub params: &'a P,
    pub first_bucket: u64,
    pub values: &'a [u32],
}

impl<P: TableParams> Change for Receive<'_, P> {
    /// Whether all found room.
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        place_all(&mut table.walked(), self.params, self.first_bucket, self.values)
    }
}

/// Inserts hashes until one is refused.
pub(super) struct InsertBatch<'a> {
    pub params: &'a Params,
    pub hashes: &'a [u64],
    /// The number of items in the table before it.
    pub len: usize,
}

impl Change for InsertBatch<'_> {
    /// The number of hashes that were inserted.
    type Output = usize;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> usize {
        let Self { params, hashes, len } = self;
        let address = Address::new(params);
        prefetch(table, address, hashes);
        // Above this load, so many buckets are full that prefetching the alternates of their residents pays.
        if len >= params.slots() / 4 * 3 {
            prefetch_alternates(table, address, hashes);
        }
        let refused = hashes.iter().position(|&hash| {
            let (buckets, fingerprint) = address.buckets(Uniform(hash));
            !place(table, params, buckets, fingerprint, AmongCopies::GiveUp)
        });
        refused.unwrap_or(hashes.len())
    }
}

/// Removes one copy of each hash's fingerprint.
pub(super) struct RemoveBatch<'a> {
    pub params: &'a Params,
    pub hashes: &'a [u64],
}

impl Change for RemoveBatch<'_> {
    /// Bit i says whether the i-th was found.
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

/// For hashes whose two buckets are full, prefetches the alternate buckets of the residents.
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
