//! Table operations of [`RawFilter`](super::RawFilter) on buckets, whole tables and batches of hashes.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::ops::Range;

use crate::{
    bits::{index, low_half, wide},
    kernel::{PREFETCH_FROM, answers, prefetch},
    params::Params,
    table::{
        Address, Change, CopyPolicy, Fingerprint, Pair, Read, Slot, Table, TableMut, TableParams, Uniform, copy_values,
        fingerprints, store_fingerprint, store_in_second,
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
        prefetch(table, self.params, self.hashes);
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

/// Counts the copies of a fingerprint in its two buckets. Reads these through `slots`, so it is compiled once, not for each kind of
/// table and each kernel.
#[inline(never)]
pub(crate) fn occurrences<S: Slot, V: AsRef<[S]>>(
    (first, second): Pair,
    fingerprint: Fingerprint,
    slots: &dyn Fn(u64) -> V,
) -> u32 {
    let count_in = |bucket| low_half(wide(fingerprints(&slots(bucket)).filter(|&other| other == fingerprint).count()));
    count_in(first) + if second == first { 0 } else { count_in(second) }
}

/// Calls `act` once for all copies of each fingerprint of which the first copy in the table is in this bucket, as
/// [`each_class`](super::RawFilter::each_class) does. Reads other buckets through `slots`.
#[inline]
pub(crate) fn classes<P: TableParams>(
    params: &P,
    bucket: u64,
    values: &[P::Slot],
    slots: impl Fn(u64) -> P::Slots,
    act: &mut dyn FnMut(Pair, Fingerprint, u32) -> bool,
) -> bool {
    let count = |values: &[P::Slot], value| low_half(wide(values.iter().filter(|&&other| other == value).count()));
    values.iter().enumerate().all(|(slot, &value)| {
        let Some(fingerprint) = Fingerprint::new(value.into()) else { return true };
        let alternate = params.alternate(bucket, fingerprint);
        let in_alternate = if alternate == bucket { 0 } else { count(slots(alternate).as_ref(), value) };
        let copies = count(values, value) + in_alternate;
        let is_repeated = || values[..slot].contains(&value) || alternate < bucket && in_alternate > 0;
        copies > 1 && is_repeated() || act((bucket, alternate), fingerprint, copies)
    })
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

/// Stores the values of another table's slots, from `first_bucket` on, with the bits `above` added: each in the bucket that it has
/// there or in its alternate.
pub(super) struct AddAll<'a, P: TableParams> {
    pub params: &'a P,
    pub first_bucket: u64,
    pub values: &'a [P::Slot],
    pub above: u64,
}

impl<P: TableParams> Change for AddAll<'_, P> {
    /// True if all fingerprints found room.
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let Self { params, first_bucket, values, above } = self;
        for (bucket, values) in (first_bucket..).zip(values.chunks_exact(index(params.bucket_size().into()))) {
            if values.iter().all(|&value| value == P::Slot::EMPTY) {
                continue;
            }
            let mut added = P::EMPTY_SLOTS;
            for (added, &value) in added.as_mut().iter_mut().zip(values) {
                *added = P::Slot::new(if value == P::Slot::EMPTY { 0 } else { value.into() | above });
            }
            table.add(bucket, added.as_mut());
            // From the last one on, as `add` stores them.
            for fingerprint in added.as_ref().iter().rev().filter_map(|&left| Fingerprint::new(left.into())) {
                let pair = (bucket, params.alternate(bucket, fingerprint));
                if !store_in_second(table, params, pair, fingerprint) {
                    return false;
                }
            }
        }
        true
    }
}

/// Of the values of another table's slots, keeps those that a table has with the bits `above` added. The others become 0.
pub(super) struct KeepPresent<'a, P: TableParams> {
    pub params: &'a P,
    pub values: &'a mut [P::Slot],
    pub above: u64,
}

impl<P: TableParams> Read for KeepPresent<'_, P> {
    type Output = ();

    #[inline(always)]
    fn run<T: Table>(self, table: &T) {
        let Self { params, values, above } = self;
        for (bucket, values) in (0..).zip(values.chunks_exact_mut(index(params.bucket_size().into()))) {
            let mut here = P::EMPTY_SLOTS;
            copy_values(&table.values(bucket), here.as_mut());
            for value in values {
                let Some(fingerprint) = Fingerprint::new((*value).into()) else { continue };
                let sought = fingerprint.with(above);
                // Most copies are in the same bucket as here.
                if !here.as_ref().contains(&P::Slot::new(sought.wide())) {
                    let alternate = params.alternate(bucket, fingerprint);
                    if !table.contains((alternate, alternate), sought) {
                        *value = P::Slot::EMPTY;
                    }
                }
            }
        }
    }
}

/// Stores values of another table's slots, with the bits `above` added: each that finds a free slot in one of its two buckets, at most
/// `most` of them. Those that are stored become 0.
pub(super) struct StoreCopies<'a, P: TableParams> {
    pub params: &'a P,
    pub values: &'a mut [P::Slot],
    pub above: u64,
    pub most: usize,
}

impl<P: TableParams> Change for StoreCopies<'_, P> {
    /// The number of values that were stored.
    type Output = usize;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> usize {
        let Self { params, values, above, most } = self;
        let mut stored = 0;
        for (bucket, values) in (0..).zip(values.chunks_exact_mut(index(params.bucket_size().into()))) {
            for value in values {
                if let Some(fingerprint) = Fingerprint::new((*value).into())
                    && stored < most
                    && table.insert((bucket, params.alternate(bucket, fingerprint)), fingerprint.with(above))
                {
                    (*value, stored) = (P::Slot::EMPTY, stored + 1);
                }
            }
        }
        stored
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
        prefetch(table, params, hashes);
        // From this load on, so many buckets are full that prefetching the alternates of their residents saves time.
        if len >= params.slots() / 4 * 3 {
            prefetch_alternates(table, params, hashes);
        }
        let refused = hashes.iter().position(|&hash| {
            let (buckets, fingerprint) = address.buckets(Uniform(hash));
            !store_fingerprint(table, params, buckets, fingerprint, CopyPolicy::GiveUp)
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
        prefetch(table, self.params, self.hashes);
        answers(self.hashes, |hash| {
            let (buckets, fingerprint) = address.buckets(hash);
            table.remove(buckets, fingerprint)
        })
    }
}

/// Prefetches the alternate buckets of all residents, for hashes whose two buckets are full.
#[inline(always)]
fn prefetch_alternates(table: &impl Table, params: &Params, hashes: &[u64]) {
    if params.table_bytes() < PREFETCH_FROM {
        return;
    }
    let address = Address::new(params);
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
