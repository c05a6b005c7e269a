//! Operations of [`RawFilter`](super::RawFilter) on buckets, rather than on single items.

#![allow(clippy::inline_always, reason = "inlined code is compiled for the kernel's instructions, called functions are not")]

use core::ops::Range;

use crate::{
    bits::{index, low_half},
    kernel::prefetch,
    params::Params,
    table::{Address, Change, Corrupt, Fingerprint, Pair, Placement, Read, Table, TableMut, TableParams, fingerprints, place},
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

pub(super) struct Taken(pub(super) Range<u64>, pub(super) Option<Fingerprint>);

impl Read for Taken {
    type Output = Option<u64>;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> Option<u64> {
        table.taken(self.0, self.1)
    }
}

pub(super) struct FirstCorrupt(pub(super) Range<u64>, pub(super) Option<Fingerprint>);

impl Read for FirstCorrupt {
    type Output = Option<(u64, Corrupt)>;

    #[inline(always)]
    fn run<T: Table>(mut self, table: &T) -> Self::Output {
        self.0.find_map(|bucket| Some((bucket, table.corrupt(bucket, self.1)?)))
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

/// Where a table of fewer than 2³² buckets keeps an item. Two words, which are passed in registers.
#[derive(Clone, Copy)]
pub(crate) struct Located {
    buckets: u64,
    pub(crate) fingerprint: Fingerprint,
}

impl Located {
    #[inline(always)]
    pub(crate) fn new((first, second): Pair, fingerprint: Fingerprint) -> Self {
        debug_assert!(first | second < 1 << 32);
        Self { buckets: first | second << 32, fingerprint }
    }

    #[inline(always)]
    pub(crate) fn buckets(self) -> Pair {
        (low_half(self.buckets).into(), self.buckets >> 32)
    }

    /// Prefetches its buckets.
    #[inline(always)]
    pub(crate) fn prefetch(self) -> PrefetchLocated {
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

/// The number of copies of a fingerprint in its two buckets.
pub(crate) struct CountIn {
    pub(crate) buckets: Pair,
    pub(crate) fingerprint: Fingerprint,
}

impl Read for CountIn {
    type Output = u32;

    #[inline(always)]
    fn run<T: Table>(self, table: &T) -> u32 {
        let Self { buckets: (first, second), fingerprint } = self;
        let copies = |bucket| -> u32 { fingerprints(&table.values(bucket)).map(|other| u32::from(other == fingerprint)).sum() };
        let in_second = if second == first { 0 } else { copies(second) };
        in_second + copies(first)
    }
}

/// Inserts a fingerprint into these two buckets, if a slot can be found.
pub(crate) struct Place<P> {
    pub(crate) placement: P,
    pub(crate) buckets: Pair,
    pub(crate) fingerprint: Fingerprint,
}

impl<P: Placement> Change for Place<P> {
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        place(table, self.placement, self.buckets, self.fingerprint)
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
pub(super) struct CopyValues<'a> {
    pub(super) buckets: Range<u64>,
    pub(super) values: &'a mut [u32],
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

/// Stores fingerprints made of the values of another table's slots, each in its bucket if that has room.
pub(super) struct Receive<'a, P, M> {
    pub(super) params: &'a P,
    pub(super) first_bucket: u64,
    pub(super) values: &'a [u32],
    pub(super) map: M,
    pub(super) len: &'a mut usize,
}

impl<P: TableParams, M: Fn(Fingerprint) -> Option<Fingerprint>> Change for Receive<'_, P, M> {
    /// Whether all found room.
    type Output = bool;

    #[inline(always)]
    fn run<T: TableMut>(self, table: &mut T) -> bool {
        let placement = self.params.placement();
        let buckets = (self.first_bucket..).zip(self.values.chunks_exact(index(self.params.bucket_size().into())));
        for (bucket, values) in buckets {
            for fingerprint in fingerprints(&values).filter_map(&self.map) {
                let is_stored = table.put(bucket, fingerprint)
                    || place(table, placement, (bucket, placement.alternate(bucket, fingerprint)), fingerprint);
                if !is_stored {
                    return false;
                }
                *self.len += 1;
            }
        }
        true
    }
}
