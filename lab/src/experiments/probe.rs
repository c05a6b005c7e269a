//! Measuring false-positive rates with absent items, for the experiments `fpr` and `space`.

use koel::{CuckooFilter, Prehashed, TableKind};

use super::Hashes;
use crate::{Interrupt, Interrupted, statistics};

/// Items or probes between two checks for an interrupt.
pub(super) const PACE: usize = 1 << 16;
/// The memory of a batch of them, and of a filter without its table.
pub(super) const OVERHEAD: u64 = 1 << 20;
/// The fewest hits of a useful measurement: the interval extends 13 % to either side.
pub(super) const LEAST_HITS: u64 = 400;

/// The tables that are measured, with their slots per bucket.
pub(super) const KINDS: [(TableKind, u32); 4] =
    [(TableKind::Packed, 4), (TableKind::Single, 2), (TableKind::Single, 4), (TableKind::Single, 8)];

/// The name of a table in legends.
pub(super) fn label(table: TableKind, b: u32) -> String {
    if table == TableKind::Packed { table.to_string() } else { format!("b = {b}") }
}

/// A kind of table in files.
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

/// Inserts items until the filter has this many. False if the table had no room for one before, even if it was counted as a copy of
/// another one.
pub(super) fn fill(
    filter: &mut CuckooFilter,
    hashes: &mut Hashes,
    items: usize,
    interrupt: &Interrupt,
) -> Result<bool, Interrupted> {
    let mut batch = Vec::with_capacity(PACE);
    while filter.len() < items {
        interrupt.check()?;
        batch.clear();
        batch.extend(hashes.take(PACE.min(items - filter.len())));
        if filter.insert_batch(&Prehashed(&batch)).is_err() || filter.table_len() < filter.len() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The number of probes for this many expected hits, at most `most`.
pub(super) fn probes(rate: f64, hits: u64, most: u64) -> u64 {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and the cast saturates")]
    most.min((hits as f64 / rate).ceil() as u64)
}

/// The same for a table with buckets of `b` slots for fingerprints of `f` bits. Small tables get few probes: their own rates
/// vary from table to table, and the interval, which accounts for the probes only, must be wide enough to make that negligible.
pub(super) fn probes_of_table(f: u32, buckets: u64, rate: f64, hits: u64, most: u64) -> u64 {
    let places = buckets.saturating_mul((1 << f) - 1) / 2;
    probes(rate, hits, most).min((places / 10).max(probes(rate, LEAST_HITS, most)))
}

/// The number of false positives among a number of probes.
pub(super) struct Probed {
    pub(super) probes: u64,
    pub(super) hits: u64,
}

impl Probed {
    pub(super) fn new(
        filter: &CuckooFilter,
        hashes: &mut Hashes,
        probes: u64,
        interrupt: &Interrupt,
    ) -> Result<Self, Interrupted> {
        let mut batch = Vec::with_capacity(PACE);
        let (mut left, mut hits) = (probes, 0);
        while left > 0 {
            interrupt.check()?;
            batch.clear();
            batch.extend(hashes.take(usize::try_from(left).map_or(PACE, |left| left.min(PACE))));
            hits += filter.count_members(&Prehashed(&batch)) as u64;
            left -= batch.len() as u64;
        }
        Ok(Self { probes, hits })
    }

    pub(super) fn rate(&self) -> f64 {
        self.hits as f64 / self.probes as f64
    }

    /// The 99 % confidence interval of the rate.
    pub(super) fn interval(&self) -> (f64, f64) {
        statistics::interval(self.hits, self.probes)
    }
}
