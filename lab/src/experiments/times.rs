//! Times a filter's operations at a load, one key at a time, for the experiments `sweep` and `speed`.

use std::hint::black_box;

use anyhow::ensure;
use koel::{CuckooFilter, Params, Xxh3};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Hashes;
use crate::{Chart, Column, Fields, Interrupt, Lap, Mark, Quartiles, Role, Rounds, Series, Stopwatch, Timing};

/// The fields of a row that [`columns`] describes: nanoseconds per key, including hashing. They are from the rounds that other work
/// on the processor did not disturb, or from all rounds if too many were disturbed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Times(pub(super) Fields);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    FindAbsent,
    FindPresent,
    /// The last insertions before the load.
    Insert,
    Remove,
    /// All insertions.
    Build,
}

impl Operation {
    pub(super) const ALL: [Self; 5] = [Self::FindAbsent, Self::FindPresent, Self::Insert, Self::Remove, Self::Build];

    const fn texts(self) -> [&'static str; 3] {
        match self {
            Self::FindAbsent => ["find-absent", "Lookups of absent keys", "look up a key that is absent"],
            Self::FindPresent => ["find-present", "Lookups of present keys", "look up a key that is present"],
            Self::Insert => ["insert", "Insertions, the last 5 %", "insert a key, over the last 5 % before the load"],
            Self::Remove => ["remove", "Removals", "remove one of these keys"],
            Self::Build => ["build", "Insertions, all of them", "insert a key, over all insertions into the empty filter"],
        }
    }

    /// Returns the name of the chart's file.
    pub(super) const fn file(self) -> &'static str {
        self.texts()[0]
    }

    pub(super) const fn title(self) -> &'static str {
        self.texts()[1]
    }

    /// Returns the names of the columns of the median and the quartiles.
    pub(super) fn columns(self) -> [String; 3] {
        let name = self.file().replace('-', "_");
        ["_ns", "_ns_q1", "_ns_q3"].map(|ending| format!("{name}{ending}"))
    }
}

const ROUNDS: &str = "rounds";

const DISTURBED: &str = "disturbed";

/// Returns true if other work on the processor disturbed the times of a row. In a row of a single round, the field is the number of
/// disturbed times; in a row of several rounds, it is true if too many rounds were disturbed.
pub(crate) fn is_disturbed(row: &Fields) -> bool {
    row.get(DISTURBED).is_some_and(|value| value == &Value::Bool(true) || value.as_u64().is_some_and(|times| times > 0))
}

impl Times {
    pub(super) fn of(&self, operation: Operation) -> Option<Quartiles> {
        let [median, low, high] = operation.columns().map(|column| self.0.get(&column)?.as_f64());
        Some(Quartiles { low: low?, median: median?, high: high? })
    }

    pub(super) fn medians(&self) -> Option<[f64; Operation::ALL.len()]> {
        let medians = Operation::ALL.into_iter().map(|operation| Some(self.of(operation)?.median));
        medians.collect::<Option<Vec<_>>>()?.try_into().ok()
    }

    pub(super) fn are_disturbed(&self) -> bool {
        is_disturbed(&self.0)
    }
}

/// Describes the columns of [`Times`].
pub(super) fn columns() -> Vec<Column> {
    let mut columns = vec![Column::new(ROUNDS, "rounds", "how many rounds of times count")];
    for operation in Operation::ALL {
        let [name, low, high] = operation.columns();
        let role = Role::median(low.clone(), high.clone(), ROUNDS);
        let [.., about] = operation.texts();
        columns.extend([
            Column::new(name, "ns", format!("time to {about}: median of the rounds")).compared(role),
            Column::new(low, "ns", "its lower quartile"),
            Column::new(high, "ns", "its upper quartile"),
        ]);
    }
    columns.push(Column::new(DISTURBED, "", "true if other work on the processor disturbed too many rounds"));
    columns
}

/// Returns the series of points whose times were disturbed, in the last color.
pub(super) fn disturbed(points: Vec<(f64, f64)>) -> Series {
    Series::new("disturbed", Chart::MAX_COLORS - 1, points).marked(Mark::Dots)
}

/// The greatest number of keys that are looked up for one time. A smaller table gets as many lookups as it has slots.
const MAX_QUERIES: usize = 200_000;
/// The number of slots for each timed insertion. The last keys are timed: those that fill a twentieth of the slots.
const SLOTS_PER_TIMED_KEY: u64 = 20;
/// The greatest number of filters in a round.
const MAX_FILTERS: u64 = 100;

#[derive(Clone, Copy)]
pub(super) struct Sampling {
    pub(super) rounds: usize,
    /// The least number of keys whose insertions and removals are timed in a round, unless that takes more than [`MAX_FILTERS`] filters.
    keys: u64,
}

impl Sampling {
    pub(super) const fn new(quick: bool) -> Self {
        // Tests need times, but not precise ones.
        const QUICK: u64 = if cfg!(test) { 1000 } else { 30_000 };
        if quick { Self { rounds: 3, keys: QUICK } } else { Self { rounds: 9, keys: 100_000 } }
    }

    /// Times all of these filters in each of the planned rounds. Filters with too many disturbed rounds get up to half as many
    /// rounds more. A round in which a filter refuses a key does not count for it.
    pub(super) fn measure(self, subjects: &mut [Subject<'_>], interrupt: &Interrupt) -> anyhow::Result<()> {
        let mut watch = Stopwatch::new();
        for round in 0..self.rounds + self.rounds / 2 {
            for subject in subjects.iter_mut().filter(|subject| round < self.rounds || subject.needs_more_rounds()) {
                subject.round(&mut watch, interrupt)?;
            }
        }
        Ok(())
    }

    /// Returns the number of keys whose insertions and removals are timed in a filter, and the number of filters in a round.
    fn timed_keys(self, slots: u64, items: u64) -> (u64, u64) {
        let keys = (slots / SLOTS_PER_TIMED_KEY).clamp(1, items.max(1));
        (keys, self.keys.div_ceil(keys).clamp(1, MAX_FILTERS))
    }

    /// Estimates the time that a measurement takes. The unit is a tenth of an insertion.
    pub(super) fn effort(self, slots: u64, items: u64) -> u64 {
        let (_, filters) = self.timed_keys(slots, items);
        self.rounds as u64 * filters * (items * 10 + 2 * slots.min(MAX_QUERIES as u64))
    }
}

/// A filter that is timed in several rounds.
pub(super) struct Subject<'a> {
    params: Params,
    /// The items of the filter.
    present: &'a [u64],
    absent: Hashes,
    random: Hashes,
    /// The number of keys at the end of `present` whose insertion and removal are timed.
    last: usize,
    filters: u64,
    queries: usize,
    /// The times of each operation, in the order of [`Operation`].
    rounds: [Rounds; Operation::ALL.len()],
}

impl<'a> Subject<'a> {
    /// Prepares a filter of all these items.
    pub(super) fn new(params: Params, present: &'a [u64], seed: u64, sampling: Sampling) -> anyhow::Result<Self> {
        let (last, filters) = sampling.timed_keys(params.slots() as u64, present.len() as u64);
        Ok(Self {
            params,
            present,
            absent: Hashes::new(!seed),
            random: Hashes::new(seed.rotate_left(32)),
            last: usize::try_from(last)?,
            filters,
            queries: params.slots().min(MAX_QUERIES),
            rounds: Operation::ALL.map(|_| Rounds::new(sampling.rounds)),
        })
    }

    /// Returns true if too many rounds of an operation were disturbed.
    fn needs_more_rounds(&self) -> bool {
        self.rounds.iter().any(Rounds::needs_more)
    }

    /// Returns the times, or `None` before the first round.
    pub(super) fn times(&self) -> Option<Times> {
        let timings = self.rounds.iter().map(Rounds::timing).collect::<Option<Vec<_>>>()?;
        let mut times = Fields::new();
        times.insert(ROUNDS.to_owned(), timings.iter().map(|timing| timing.rounds).min().into());
        for (operation, Timing { quartiles: Quartiles { low, median, high }, .. }) in Operation::ALL.into_iter().zip(timings) {
            times.extend(operation.columns().into_iter().zip([median, low, high].map(Value::from)));
        }
        times.insert(DISTURBED.to_owned(), self.needs_more_rounds().into());
        Some(Times(times))
    }

    /// Measures one round. Discards it if a table that is nearly full refuses a key.
    fn round(&mut self, watch: &mut Stopwatch, interrupt: &Interrupt) -> anyhow::Result<()> {
        let mut laps = [Lap::default(); Operation::ALL.len()];
        let mut add = |operation: Operation, lap: Lap| {
            let sum = &mut laps[operation as usize];
            *sum = Lap { time: sum.time + lap.time, disturbed: sum.disturbed || lap.disturbed };
        };
        let (first, last) = self.present.split_at(self.present.len() - self.last);
        for _ in 0..self.filters {
            interrupt.check()?;
            let mut filter = CuckooFilter::new(self.params, Xxh3)?;
            for (keys, are_last) in [(first, false), (last, true)] {
                let (inserted, lap) = watch.time(|| keys.iter().take_while(|&key| filter.insert(key).is_ok()).count());
                if inserted < keys.len() {
                    return Ok(());
                }
                add(Operation::Build, lap);
                if are_last {
                    add(Operation::Insert, lap);
                }
            }
            let absent: Vec<_> = self.absent.by_ref().take(self.queries).collect();
            let present: Vec<_> = (0..self.queries).map(|_| self.present[self.random.position(self.present.len())]).collect();
            for (operation, keys, expected) in
                [(Operation::FindAbsent, &absent, 0), (Operation::FindPresent, &present, self.queries)]
            {
                let (found, lap) = watch.time(|| keys.iter().filter(|&key| black_box(filter.contains(key))).count());
                // All present keys must be found, and some of the absent ones may be found by chance.
                let chance = (self.queries - expected) as f64 * filter.false_positive_rate();
                let is_likely = found >= expected && found as f64 <= expected as f64 + 2.0 * chance + 50.0;
                ensure!(is_likely, "{found} of {} keys were found, but {expected} are present", self.queries);
                add(operation, lap);
            }
            let (removed, lap) = watch.time(|| last.iter().filter(|&key| filter.remove(key)).count());
            ensure!(removed == last.len(), "{} of {} items could not be removed", last.len() - removed, last.len());
            add(Operation::Remove, lap);
        }
        let filters = usize::try_from(self.filters)?;
        let keys = [self.queries, self.queries, self.last, self.last, self.present.len()];
        for ((rounds, lap), keys) in self.rounds.iter_mut().zip(laps).zip(keys) {
            rounds.record(lap, keys * filters);
        }
        Ok(())
    }
}
