//! The tables to measure.

use crate::keys::{CHUNK, key};
use koel::{CuckooFilter, Kernel, Params, TableKind};
use std::fmt;

/// The load of tables in lookups.
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

    /// Returns whether the table is measured with all kernels and at all sizes.
    pub(crate) fn is_main(self) -> bool {
        self.fingerprint_bits == 13
    }

    /// Returns an empty filter that this many items fill to [`LOAD`].
    pub(crate) fn empty(self, items: u64) -> CuckooFilter {
        self.builder(items).build().expect("there is memory")
    }

    pub(crate) fn params(self, items: u64) -> Params {
        self.builder(items).params().expect("valid parameters")
    }

    pub(crate) fn builder(self, items: u64) -> koel::Builder {
        let buckets = (items as f64 / LOAD / 4.0).ceil() as u64;
        CuckooFilter::builder().table(self.kind).fingerprint_bits(self.fingerprint_bits).buckets(buckets.next_multiple_of(2))
    }

    /// Returns a filter with the keys of the numbers below `items`.
    pub(crate) fn full(self, items: u64) -> CuckooFilter {
        let mut filter = self.empty(items);
        for start in (0..items).step_by(CHUNK) {
            let keys: Vec<u64> = (start..items.min(start + CHUNK as u64)).map(key).collect();
            filter.insert_batch(&keys).expect("there is room");
        }
        assert_eq!(filter.len() as u64, items);
        filter
    }

    /// Returns the kernels that insertions and removals are measured with: for main tables, the portable one and the default.
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
