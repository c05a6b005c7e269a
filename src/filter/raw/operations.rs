//! The operations of [`RawFilter`](super::RawFilter), each as a type that is compiled for every kind of table and every kernel.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::ops::Range;

use crate::{
    kernel::{Hashes, PREFETCH_FROM, prefetch},
    params::Params,
    table::{Address, Change, Corrupt, Fingerprint, Read, Table, TableMut, Uniform, fingerprints, place},
};

pub(super) struct Contains<'a> {
    pub(super) params: &'a Params,
    pub(super) hash: Uniform,
}

impl Read for Contains<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> bool {
        let (buckets, fingerprint) = Address::new(self.params).buckets(self.hash);
        table.contains(buckets, fingerprint)
    }
}

pub(super) struct Count<'a> {
    pub(super) params: &'a Params,
    pub(super) hash: Uniform,
}

impl Read for Count<'_> {
    type Output = u32;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> u32 {
        let ((first, second), fingerprint) = Address::new(self.params).buckets(self.hash);
        let copies = |bucket| -> u32 { fingerprints(&table.values(bucket)).map(|other| u32::from(other == fingerprint)).sum() };
        let in_second = if second == first { 0 } else { copies(second) };
        in_second + copies(first)
    }
}

pub(super) struct Prefetch<'a> {
    pub(super) params: &'a Params,
    pub(super) hashes: &'a [u64],
}

impl Read for Prefetch<'_> {
    type Output = ();

    #[inline(always)]
    fn run<T: Table>(self, table: &T) {
        prefetch(table, Address::new(self.params), self.hashes);
    }
}

pub(super) struct Taken(pub(super) Range<u64>);

impl Read for Taken {
    type Output = Option<u64>;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> Option<u64> {
        table.taken(self.0)
    }
}

pub(super) struct FirstCorrupt(pub(super) Range<u64>);

impl Read for FirstCorrupt {
    type Output = Option<(u64, Corrupt)>;

    #[inline(always)]
    fn run<T: Table>(mut self, table: &T) -> Self::Output {
        self.0.find_map(|bucket| Some((bucket, table.corrupt(bucket)?)))
    }
}

#[cfg(go_files)]
pub(super) struct PackedValues(pub(super) u64);

#[cfg(go_files)]
impl Read for PackedValues {
    type Output = [u32; 4];

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> [u32; 4] {
        let values = table.values(self.0);
        let mut packed = [0; 4];
        packed.copy_from_slice(&values.as_ref()[..4]);
        packed
    }
}

pub(super) struct EachFingerprint<A> {
    pub(super) buckets: u64,
    pub(super) act: A,
}

impl<A: FnMut(u64, Fingerprint) -> bool> Read for EachFingerprint<A> {
    type Output = bool;

    #[inline(always)]
    fn run<T: Table>(mut self, table: &T) -> bool {
        (0..self.buckets).all(|bucket| fingerprints(&table.values(bucket)).all(|fingerprint| (self.act)(bucket, fingerprint)))
    }
}

pub(super) struct Insert<'a> {
    pub(super) params: &'a Params,
    pub(super) hash: Uniform,
}

impl Change for Insert<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let address = Address::new(self.params);
        let (buckets, fingerprint) = address.buckets(self.hash);
        place(table, address, buckets, fingerprint)
    }
}

pub(super) struct Place {
    pub(super) address: Address,
    pub(super) buckets: (u64, u64),
    pub(super) fingerprint: Fingerprint,
}

impl Change for Place {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        place(table, self.address, self.buckets, self.fingerprint)
    }
}

pub(super) struct PutFirst<'a> {
    pub(super) params: &'a Params,
    pub(super) hash: Uniform,
}

impl Change for PutFirst<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let (bucket, fingerprint) = Address::new(self.params).locate(self.hash);
        table.put(bucket, fingerprint)
    }
}

pub(super) struct Remove<'a> {
    pub(super) params: &'a Params,
    pub(super) hash: Uniform,
}

impl Change for Remove<'_> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let (buckets, fingerprint) = Address::new(self.params).buckets(self.hash);
        table.remove(buckets, fingerprint)
    }
}

pub(super) struct InsertAll<'a, H> {
    pub(super) params: &'a Params,
    pub(super) hashes: &'a H,
    pub(super) len: &'a mut usize,
}

impl<H: Hashes> Change for InsertAll<'_, H> {
    type Output = ();

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) {
        let address = Address::new(self.params);
        // Above this load, so many buckets are full that prefetching the alternates of their residents pays.
        let crowded = self.params.slots() / 4 * 3;
        self.hashes.each_batch(0..self.hashes.len(), |batch| {
            prefetch(table, address, batch);
            if *self.len >= crowded {
                prefetch_alternates(table, address, batch);
            }
            batch.iter().all(|&hash| {
                let (buckets, fingerprint) = address.buckets(Uniform(hash));
                let is_placed = place(table, address, buckets, fingerprint);
                *self.len += usize::from(is_placed);
                is_placed
            })
        });
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

pub(super) struct RemoveAll<'a, H, A> {
    pub(super) params: &'a Params,
    pub(super) hashes: &'a H,
    pub(super) len: &'a mut usize,
    pub(super) answer: A,
}

impl<H: Hashes, A: FnMut(bool)> Change for RemoveAll<'_, H, A> {
    type Output = ();

    #[inline(always)]
    fn run<T: TableMut>(mut self, table: &mut T) {
        let address = Address::new(self.params);
        self.hashes.each_batch(0..self.hashes.len(), |batch| {
            prefetch(table, address, batch);
            for &hash in batch {
                let (buckets, fingerprint) = address.buckets(Uniform(hash));
                let is_found = table.remove(buckets, fingerprint);
                *self.len -= usize::from(is_found);
                (self.answer)(is_found);
            }
            true
        });
    }
}
