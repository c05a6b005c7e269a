//! The absent keys of a trial: the caller's queries that are no keys, or what is derived from the keys.

use std::path::Path;

use anyhow::bail;
use koel::{Prehashed, tuning::Candidate};

use super::keys::{self, Hashes, Keys, shuffle};
use crate::{
    file::{self, Filter},
    items::{Items, Separator},
};

/// False positives that are wanted of the derived keys: ε is then known to about 8 % with 99 % confidence.
const HITS: f64 = 1000.0;

/// The derived keys: no fewer, and no more, at 8 bytes each.
const FEWEST: usize = 1 << 16;
const MOST: usize = 1 << 22;

/// Look-ups that are timed in a round.
pub(super) const TIMED: usize = 1 << 20;

/// The bytes of a key from which absent ones are derived.
const PREFIX: usize = 256;

/// Absent keys, as hashes.
pub(super) struct Absent {
    /// The queries; `None` if the absent keys are derived.
    pub(super) queries: Option<Queries>,
    /// Ascending, each as often as it was asked for.
    hashes: Vec<u64>,
    /// How many of them are different.
    pub(super) different: usize,
    /// At most [`TIMED`] different ones, in a random order.
    pub(super) timed: Vec<u64>,
}

/// How many queries were read, and how many of these are keys.
pub(super) struct Queries {
    pub(super) read: usize,
    pub(super) present: usize,
}

/// Absent keys that a filter reports as present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FalsePositives {
    /// Each counted once.
    pub(super) different: usize,
    /// Each counted as often as it was asked for.
    pub(super) asked: usize,
}

impl Absent {
    /// Reads the queries. The keys must not have been shuffled yet.
    pub(super) fn read(path: &Path, separator: Separator, keys: &Keys, hasher: &Filter) -> anyhow::Result<Self> {
        let mut items = Items::open(path, separator, true)?;
        let (mut hashes, mut present) = (Hashes::new(keys::MOST), 0);
        while let Some(query) = items.advance()? {
            let hash = hasher.hash(query);
            if keys.contain(hash) {
                present += 1;
            } else {
                hashes.push(hash, &items)?;
            }
        }
        let hashes = hashes.into_vec();
        let read = hashes.len() + present;
        if read == 0 {
            bail!("--queries: {} has no queries; give at least one, or leave --queries out", file::name(path));
        }
        Ok(Self::of(hashes, Some(Queries { read, present })))
    }

    /// Derives them from a sample of the keys: `KEY~1`, `KEY~2`, …, except those that are keys. So many that the first
    /// filter has enough false positives, within bounds. The keys must not have been shuffled yet.
    pub(super) fn derived(keys: &Keys, hasher: &Filter, filters: &[&Candidate]) -> Self {
        let rate = filters.first().map_or(1.0, |best| best.false_positive_rate());
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "casts of floats are saturating")]
        let wanted = ((HITS / rate).ceil() as usize).clamp(FEWEST, MOST);
        let mut derived = Vec::new();
        let numbered = (1_usize..).flat_map(|number| keys.sample.keys.iter().map(move |key| (key, number)));
        let hashes = numbered.map(|(key, number)| {
            derived.clear();
            derived.extend_from_slice(&key[..key.len().min(PREFIX)]);
            derived.extend_from_slice(format!("~{number}").as_bytes());
            hasher.hash(derived.as_slice())
        });
        Self::of(hashes.filter(|&hash| !keys.contain(hash)).take(wanted).collect(), None)
    }

    fn of(mut hashes: Vec<u64>, queries: Option<Queries>) -> Self {
        hashes.sort_unstable();
        let different = hashes.chunk_by(u64::eq).count();
        let step = different.div_ceil(TIMED).max(1);
        let mut timed: Vec<_> = hashes.chunk_by(u64::eq).map(|same| same[0]).step_by(step).collect();
        shuffle(&mut timed);
        Self { queries, hashes, different, timed }
    }

    /// How many there are, each counted as often as it was asked for.
    pub(super) fn asked(&self) -> usize {
        self.hashes.len()
    }

    pub(super) fn false_positives(&self, filter: &Filter) -> FalsePositives {
        let found = self.hashes.chunk_by(u64::eq).filter(|same| filter.contains(&Prehashed(same[0])));
        let none = FalsePositives { different: 0, asked: 0 };
        found.fold(none, |all, same| FalsePositives { different: all.different + 1, asked: all.asked + same.len() })
    }
}

#[cfg(test)]
mod tests {
    use super::{super::keys::tests::numbers, *};

    #[test]
    fn derived_keys_are_no_keys_and_enough() {
        let hasher = super::super::hasher().expect("small");
        let advice = koel::tuning::recommend(1000, 0.01, &koel::tuning::Constraints::default());
        let filters: Vec<_> = advice.candidates().iter().collect();
        let mut keys = numbers(1000, &hasher);
        let derived = Absent::derived(&keys, &hasher, &filters);
        assert!((100_000..300_000).contains(&derived.different), "{}", derived.different);
        assert!(derived.hashes.iter().all(|&hash| !keys.contain(hash)));
        assert!(derived.queries.is_none() && derived.timed.len() == derived.different);
        // What is a key is left out.
        keys.hashes.push(hasher.hash("5~7"));
        keys.hashes.sort_unstable();
        let fewer = Absent::derived(&keys, &hasher, &filters);
        assert!(derived.hashes.contains(&hasher.hash("5~7")) && !fewer.hashes.contains(&hasher.hash("5~7")));
    }

    #[test]
    fn repeated_queries_count_once_and_as_often_as_asked() {
        let mut filter = super::super::hasher().expect("small");
        filter.insert(&Prehashed(1 << 40)).expect("room");
        let absent = Absent::of(vec![1 << 40, 5 << 50, 1 << 40, 3 << 60], Some(Queries { read: 4, present: 0 }));
        assert_eq!((absent.asked(), absent.different, absent.timed.len()), (4, 3, 3));
        let found = absent.false_positives(&filter);
        assert_eq!(found, FalsePositives { different: 1, asked: 2 });
    }
}
