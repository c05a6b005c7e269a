//! Measures false-positive rates with absent items, for the experiments `fpr`, `space` and `sweep`.

use koel::{CuckooFilter, Prehashed, TableKind};

use super::Hashes;
use crate::{Interrupt, Interrupted, statistics};

/// The number of items or probes in a batch. Between two batches, the interrupt is checked.
pub(super) const BATCH: usize = 1 << 16;
/// The memory of a batch, and of a filter without its table, in bytes.
pub(super) const OVERHEAD: u64 = 1 << 20;
/// The least number of hits for a useful measurement. The interval then extends 13 % of the rate to either side.
pub(super) const MIN_HITS: u64 = 400;

/// The tables that are measured, with their slots per bucket.
pub(super) const KINDS: [(TableKind, u32); 4] =
    [(TableKind::Packed, 4), (TableKind::Single, 2), (TableKind::Single, 4), (TableKind::Single, 8)];

/// Returns the name of a table in legends.
pub(super) fn label(table: TableKind, b: u32) -> String {
    if table == TableKind::Packed { table.to_string() } else { format!("b = {b}") }
}

/// Serializes a kind of table by its name.
pub(super) mod by_name {
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    use super::TableKind;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes every field by reference")]
    pub(in super::super) fn serialize<S: Serializer>(table: &TableKind, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(table)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TableKind, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Inserts items until the filter has this many. Returns false if the table has no room for one of them, even if the filter accepts
/// that item as a copy of another one.
pub(super) fn fill(
    filter: &mut CuckooFilter,
    hashes: &mut Hashes,
    items: usize,
    interrupt: &Interrupt,
) -> Result<bool, Interrupted> {
    let mut batch = Vec::with_capacity(BATCH);
    while filter.len() < items {
        interrupt.check()?;
        batch.clear();
        batch.extend(hashes.take(BATCH.min(items - filter.len())));
        if filter.insert_batch(&Prehashed(&batch)).is_err() || filter.table_len() < filter.len() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns the number of probes for this many expected hits, at most `most`.
pub(super) fn probes(rate: f64, hits: u64, most: u64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and the cast saturates")]
    most.min((hits as f64 / rate).ceil() as u64)
}

/// Returns the number of probes for a table with this many buckets and fingerprints of `f` bits. Small tables get fewer probes:
/// their rates vary from table to table, and the interval, which accounts only for the probes, must be wide enough to make that
/// negligible.
pub(super) fn probes_of_table(f: u32, buckets: u64, rate: f64, hits: u64, most: u64) -> u64 {
    let combinations = buckets.saturating_mul((1 << f) - 1) / 2;
    probes(rate, hits, most).min((combinations / 10).max(probes(rate, MIN_HITS, most)))
}

/// The numbers of probes and of false positives among them.
pub(super) struct Probed {
    pub(super) probes: u64,
    pub(super) hits: u64,
}

impl Probed {
    /// Looks up this many absent items.
    pub(super) fn measure(
        filter: &CuckooFilter,
        hashes: &mut Hashes,
        probes: u64,
        interrupt: &Interrupt,
    ) -> Result<Self, Interrupted> {
        let mut batch = Vec::with_capacity(BATCH);
        let (mut left, mut hits) = (probes, 0);
        while left > 0 {
            interrupt.check()?;
            batch.clear();
            batch.extend(hashes.take(usize::try_from(left).map_or(BATCH, |left| left.min(BATCH))));
            hits += filter.count_members(&Prehashed(&batch)) as u64;
            left -= batch.len() as u64;
        }
        Ok(Self { probes, hits })
    }

    pub(super) fn rate(&self) -> f64 {
        self.hits as f64 / self.probes as f64
    }

    /// Returns the 99 % confidence interval of the rate.
    pub(super) fn interval(&self) -> (f64, f64) {
        statistics::interval(self.hits, self.probes)
    }
}
