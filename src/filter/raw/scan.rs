//! Operations of [`RawFilter`](super::RawFilter) on buckets, rather than on single items.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::ops::Range;

use crate::{
    kernel::prefetch,
    params::Params,
    table::{Address, Change, Corrupt, Fingerprint, Read, Table, TableMut, Uniform, fingerprints},
};

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
