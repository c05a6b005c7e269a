//! Measuring false-positive rates with absent items, for the experiments `fpr` and `space`.

use koel::{CuckooFilter, Prehashed, TableKind};
use serde::{Deserialize, Serialize};

use super::Hashes;
use crate::{
    interrupt::{Interrupt, Interrupted},
    statistics,
};

/// Items or probes between two checks for an interrupt.
const PACE: usize = 1 << 16;
/// The memory of a batch of them, and of a filter without its table.
pub(super) const OVERHEAD: u64 = 1 << 20;
/// The fewest hits of a useful measurement: the interval extends 13 % to either side.
pub(super) const LEAST_HITS: u64 = 400;

/// How buckets are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Packed,
    Single,
}

/// The tables that are measured, with their slots per bucket.
pub(super) const KINDS: [(Kind, u32); 4] = [(Kind::Packed, 4), (Kind::Single, 2), (Kind::Single, 4), (Kind::Single, 8)];

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Packed, Self::Single];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Single => "single",
        }
    }

    pub(super) fn table(self) -> TableKind {
        match self {
            Self::Packed => TableKind::Packed,
            Self::Single => TableKind::Single,
        }
    }

    /// Its name in legends.
    pub(super) fn label(self, b: u32) -> String {
        match self {
            Self::Packed => String::from("packed"),
            Self::Single => format!("b = {b}"),
        }
    }
}

/// Inserts items until the filter has this many. False if one was refused before.
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
        if filter.insert_batch(&Prehashed(&batch)).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The number of probes for this many expected hits, at most `most`.
pub(super) fn probes(rate: f64, hits: u64, most: u64) -> u64 {
    let wanted = (hits as f64 / rate).ceil();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "less than an integer, and not negative")]
    let wanted = if wanted < most as f64 { wanted as u64 } else { most };
    wanted
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
