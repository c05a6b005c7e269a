//! Filters that are asked for what is not in them: what the experiments `fpr` and `space` have in common.

use koel::{CuckooFilter, TableKind};
use serde::{Deserialize, Serialize};

use super::random::Hashes;
use crate::{
    interrupt::{Interrupt, Interrupted},
    statistics,
};

/// Items and probes between two looks at whether to stop.
const PACE: usize = 1 << 16;
/// What a batch of them takes, and a filter without its table.
pub(super) const OVERHEAD: u64 = 1 << 20;
/// Fewer hits than this say little: their interval is 13 % wide to either side.
pub(super) const LEAST_HITS: u64 = 400;

/// How buckets are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    Packed,
    Single,
}

/// The tables that are measured, and the slots of a bucket.
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

    /// What a legend says.
    pub(super) fn label(self, b: u32) -> String {
        match self {
            Self::Packed => String::from("packed"),
            Self::Single => format!("b = {b}"),
        }
    }
}

/// Inserts until there are so many items. False if one was refused before.
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
        if filter.insert_hashes(&batch).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}

/// How many probes to make for so many hits, at most so many.
pub(super) fn probes(rate: f64, hits: u64, most: u64) -> u64 {
    let wanted = (hits as f64 / rate).ceil();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "less than an integer, and not negative")]
    let wanted = if wanted < most as f64 { wanted as u64 } else { most };
    wanted
}

/// How often items that are not there seemed to be.
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
            hits += filter.count_hashes(&batch) as u64;
            left -= batch.len() as u64;
        }
        Ok(Self { probes, hits })
    }

    pub(super) fn rate(&self) -> f64 {
        self.hits as f64 / self.probes as f64
    }

    /// Where the rate is, with 99 % confidence.
    pub(super) fn interval(&self) -> (f64, f64) {
        statistics::interval(self.hits, self.probes)
    }
}
