//! Building the filters, and measuring them.

use std::hint::black_box;

use anyhow::{Context as _, ensure};
use koel::{CuckooFilter, Params, Prehashed, tuning::Candidate};
use koel_lab::{Lap, Rounds, Stopwatch, interval};

use super::{
    HASHER,
    absent::{Absent, FalsePositives, TIMED},
    keys::Keys,
};
use crate::{file::Filter, options, progress::Progress};

/// Rounds, and half as many more for what other work disturbed. Fewer for many keys: each builds every filter.
const ROUNDS: usize = 5;
const FEWER_ROUNDS: usize = 3;
const MANY_KEYS: usize = 1 << 24;

/// Operations between two readings of the clock, at least: a few hundred microseconds. Fewer keys are taken several times.
const LAP: usize = 1 << 14;

/// The memory of the filters that are built to take few keys several times.
const COPIES: usize = 64 << 20;

/// What was measured of all filters.
pub(super) struct Measured {
    /// Rounds, without those that follow a disturbance.
    pub(super) rounds: usize,
    /// Of a key.
    pub(super) hash: Rounds,
    /// In the order of the filters.
    pub(super) filters: Vec<Tried>,
}

/// A filter that was built from the keys.
pub(super) struct Tried {
    pub(super) params: Params,
    /// How many keys it took before it refused one; all of them, as a rule.
    pub(super) stored: usize,
    pub(super) load: f64,
    /// The rate ε that follows from the parameters and the load.
    pub(super) expected_rate: f64,
    /// `None` if it refused a key.
    pub(super) false_positives: Option<FalsePositives>,
    pub(super) insert: Rounds,
    pub(super) present: Rounds,
    pub(super) absent: Rounds,
}

/// Builds each filter in every round, so that other work on the machine affects all of them alike.
pub(super) fn measure(keys: &Keys, absent: &Absent, hasher: &Filter, filters: &[&Candidate]) -> anyhow::Result<Measured> {
    let rounds = if keys.different() < MANY_KEYS { ROUNDS } else { FEWER_ROUNDS };
    let mut watch = Stopwatch::new();
    let mut hash = Rounds::new(rounds);
    let mut filters: Vec<_> = filters.iter().map(|filter| Tried::new(*filter.params(), rounds)).collect();
    let progress = Progress::measuring(rounds * filters.len());
    let mut done = 0;
    for round in 0..rounds + rounds.div_ceil(2) {
        let is_repeat = round >= rounds;
        if !is_repeat || hash.lack() {
            time_hash(&mut hash, keys, hasher, &mut watch);
        }
        for filter in &mut filters {
            if !is_repeat || filter.lacks() {
                filter.round(keys, absent, &mut watch)?;
            }
            done += 1;
            progress.at(0, done);
        }
    }
    Ok(Measured { rounds, hash, filters })
}

/// Hashes the sampled keys.
fn time_hash(rounds: &mut Rounds, keys: &Keys, hasher: &Filter, watch: &mut Stopwatch) {
    let sampled = &keys.sample.keys;
    let passes = LAP.div_ceil(sampled.len());
    let ((), lap) = watch.time(|| {
        for _ in 0..passes {
            for key in sampled {
                black_box(hasher.hash(black_box(&**key)));
            }
        }
    });
    rounds.keep(lap, passes * sampled.len());
}

impl Tried {
    fn new(params: Params, rounds: usize) -> Self {
        let [insert, present, absent] = [(); 3].map(|()| Rounds::new(rounds));
        Self { params, stored: 0, load: 0.0, expected_rate: 0.0, false_positives: None, insert, present, absent }
    }

    /// Whether it holds all keys.
    pub(super) fn fits(&self, keys: &Keys) -> bool {
        self.stored == keys.different()
    }

    /// Whether too many of its times were disturbed.
    fn lacks(&self) -> bool {
        let measured = [&self.insert, &self.present, &self.absent].into_iter().filter(|rounds| rounds.timing().is_some());
        measured.into_iter().any(Rounds::lack)
    }

    /// Builds it, and measures it once. One that refuses a key does so in every round, so that it is not measured any more.
    fn round(&mut self, keys: &Keys, absent: &Absent, watch: &mut Stopwatch) -> anyhow::Result<()> {
        let is_first = self.insert.timing().is_none();
        if !is_first && !self.fits(keys) {
            return Ok(());
        }
        let (filter, lap, operations) = self.build(keys, watch)?;
        self.stored = filter.len();
        if is_first {
            self.load = filter.load_factor();
            self.expected_rate = filter.false_positive_rate();
        }
        self.insert.keep(lap, operations);
        if !self.fits(keys) {
            return Ok(());
        }
        if is_first {
            let found = filter.count_members(&Prehashed(&keys.hashes));
            ensure!(found == keys.different(), "a {} lost a key; please report this", self.params);
            self.false_positives = Some(absent.false_positives(&filter));
        }
        time_look_ups(&mut self.present, &filter, &keys.hashes[..keys.different().min(TIMED)], watch);
        time_look_ups(&mut self.absent, &filter, &absent.timed, watch);
        Ok(())
    }

    /// A filter of all keys, or of those before the first that it refuses; the time, and the number of insertions that took it.
    /// Few keys are inserted into several filters, which take little memory.
    fn build(&self, keys: &Keys, watch: &mut Stopwatch) -> anyhow::Result<(Filter, Lap, usize)> {
        let copies = LAP.div_ceil(keys.different()).min(COPIES / self.params.table_bytes().max(1)).max(1);
        let mut filters = (0..copies).map(|_| self.empty()).collect::<anyhow::Result<Vec<_>>>()?;
        let (stored, lap) = watch.time(|| filters.iter_mut().map(|filter| insert(filter, &keys.hashes)).sum());
        let filter = filters.pop().context("no filter was built; please report this")?;
        Ok((filter, lap, stored))
    }

    fn empty(&self) -> anyhow::Result<Filter> {
        let bytes = self.params.table_bytes();
        let mut filter = CuckooFilter::new(self.params, HASHER).map_err(|_| {
            anyhow::anyhow!(
                "{bytes} bytes of memory cannot be allocated for a filter; give a sample of the keys, a smaller --items, or leave \
                 --keys out, which builds nothing"
            )
        })?;
        if let Some(kernel) = options::kernel()? {
            filter.set_kernel(kernel)?;
        }
        Ok(filter)
    }

    /// The measured rate ε, and its 99 % confidence interval. `None` without absent keys, or if a key was refused.
    pub(super) fn rate(&self, absent: &Absent) -> Option<(f64, (f64, f64))> {
        let hits = self.false_positives.filter(|_| absent.different > 0)?.different;
        Some((hits as f64 / absent.different as f64, interval(hits as u64, absent.different as u64)))
    }
}

/// Inserts the hashes, up to the first one that is refused. Returns how many were inserted.
fn insert(filter: &mut Filter, hashes: &[u64]) -> usize {
    hashes.iter().position(|&hash| filter.insert(&Prehashed(hash)).is_err()).unwrap_or(hashes.len())
}

fn time_look_ups(rounds: &mut Rounds, filter: &Filter, hashes: &[u64], watch: &mut Stopwatch) {
    if hashes.is_empty() {
        return;
    }
    let passes = LAP.div_ceil(hashes.len());
    let ((), lap) = watch.time(|| {
        for _ in 0..passes {
            for &hash in hashes {
                black_box(filter.contains(&Prehashed(black_box(hash))));
            }
        }
    });
    rounds.keep(lap, passes * hashes.len());
}

#[cfg(test)]
mod tests {
    use super::{super::keys::tests::numbers, *};
    use koel::tuning::{Constraints, recommend};

    fn tried(capacity: usize, keys: &mut Keys) -> (Tried, Absent) {
        let hasher = super::super::hasher().expect("small");
        let advice = recommend(capacity, 0.01, &Constraints::default());
        let filters = [advice.best().expect("there is one")];
        let absent = Absent::derived(keys, &hasher, &filters);
        keys.shuffle();
        let measured = measure(keys, &absent, &hasher, &filters).expect("enough memory");
        (measured.filters.into_iter().next().expect("one"), absent)
    }

    #[test]
    fn the_expected_rate_is_measured() {
        let mut keys = numbers(20_000, &super::super::hasher().expect("small"));
        let (tried, absent) = tried(20_000, &mut keys);
        assert!(tried.fits(&keys) && tried.load > 0.9);
        let (rate, (low, high)) = tried.rate(&absent).expect("there are absent keys");
        assert!(low < rate && rate < high && low < tried.expected_rate && tried.expected_rate < high, "{low} {rate} {high}");
        for times in [&tried.insert, &tried.present, &tried.absent] {
            assert!(times.timing().is_some_and(|timing| timing.quartiles.median > 0.0));
        }
    }

    /// It says where it was full, and nothing else.
    #[test]
    fn a_filter_that_is_too_small_is_not_measured() {
        let mut keys = numbers(1000, &super::super::hasher().expect("small"));
        let (tried, absent) = tried(500, &mut keys);
        assert!(!tried.fits(&keys) && (500..700).contains(&tried.stored), "{}", tried.stored);
        assert!(tried.rate(&absent).is_none() && tried.present.timing().is_none());
    }
}
