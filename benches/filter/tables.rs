//! The tables that are measured.

use crate::keys::{CHUNK, key};
use koel::{CuckooFilter, Kernel, Params, TableKind};
use std::fmt;

/// How full tables are when they are asked.
pub(crate) const LOAD: f64 = 0.95;

#[derive(Clone, Copy)]
pub(crate) struct Table {
    kind: TableKind,
    fingerprint_bits: u32,
}

pub(crate) const PACKED_13: Table = Table::packed(13);
pub(crate) const SINGLE_13: Table = Table::single(13);

impl Table {
    pub(crate) const fn packed(fingerprint_bits: u32) -> Self {
        Self { kind: TableKind::Packed, fingerprint_bits }
    }

    pub(crate) const fn single(fingerprint_bits: u32) -> Self {
        Self { kind: TableKind::Single, fingerprint_bits }
    }

    /// Is it the one of its kind that is looked at closely?
    pub(crate) fn is_main(self) -> bool {
        self.fingerprint_bits == 13
    }

    /// This many items fill it to [`LOAD`].
    pub(crate) fn empty(self, items: u64) -> CuckooFilter {
        self.builder(items).build().expect("the parameters are right, and there is memory")
    }

    pub(crate) fn params(self, items: u64) -> Params {
        self.builder(items).params().expect("the parameters are right")
    }

    pub(crate) fn builder(self, items: u64) -> koel::Builder {
        let buckets = (items as f64 / LOAD / 4.0).ceil() as u64;
        CuckooFilter::builder().table(self.kind).fingerprint_bits(self.fingerprint_bits).buckets(buckets.next_multiple_of(2))
    }

    /// The keys of the numbers from 0 on are in it.
    pub(crate) fn full(self, items: u64) -> CuckooFilter {
        let mut filter = self.empty(items);
        for start in (0..items).step_by(CHUNK) {
            let keys: Vec<u64> = (start..items.min(start + CHUNK as u64)).map(key).collect();
            filter.insert_batch(&keys).expect("there is room");
        }
        assert_eq!(filter.len() as u64, items);
        filter
    }

    /// With one by which insertion and removal differ, and with the default one.
    pub(crate) fn kernels_of_changes(self) -> Vec<Kernel> {
        let mut kernels = vec![Kernel::Portable, Kernel::best()];
        kernels.dedup();
        if self.is_main() { kernels } else { vec![Kernel::best()] }
    }

    pub(crate) fn kernels(self) -> Vec<Kernel> {
        if self.is_main() { Kernel::available().collect() } else { vec![Kernel::best()] }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.fingerprint_bits)
    }
}
