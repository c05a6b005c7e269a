//! Times the operations of a filter at a load.

use std::hint::black_box;

use anyhow::ensure;
use koel::{CuckooFilter, Params, Xxh3};
use koel_floor::position;
use serde::{Deserialize, Serialize};

use super::Case;
use crate::{
    experiments::{
        random::Hashes,
        speed::{MOST_QUERIES, expected},
    },
    interrupt::Interrupt,
    statistics::Quartiles,
    stopwatch::{Lap, Stopwatch},
};

/// Nanoseconds per key, hashing included: the median and the quartiles of the rounds that other work on the processor did not
/// disturb, or of all if too many were.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Times {
    pub(super) find_absent_ns: Option<f64>,
    pub(super) find_absent_ns_q1: Option<f64>,
    pub(super) find_absent_ns_q3: Option<f64>,
    pub(super) find_present_ns: Option<f64>,
    pub(super) find_present_ns_q1: Option<f64>,
    pub(super) find_present_ns_q3: Option<f64>,
    pub(super) insert_ns: Option<f64>,
    pub(super) insert_ns_q1: Option<f64>,
    pub(super) insert_ns_q3: Option<f64>,
    pub(super) remove_ns: Option<f64>,
    pub(super) remove_ns_q1: Option<f64>,
    pub(super) remove_ns_q3: Option<f64>,
    /// Whether too many rounds were disturbed.
    pub(super) disturbed: Option<bool>,
}

/// The insertions and removals that are timed are so many of all slots: one in twenty.
const LAST: u64 = 20;
/// At least as many of them are timed in a round, in as many filters as that takes, but not more than these.
const LEAST_KEYS: u64 = 100_000;
const MOST_FILTERS: u64 = 100;

const fn rounds(quick: bool) -> u32 {
    if quick { 3 } else { 9 }
}

/// How many keys are inserted and removed at a time, and how many filters there are in a round.
fn timed_keys(case: &Case) -> (u64, u64) {
    let keys = (case.slots() / LAST).clamp(1, case.items.max(1));
    (keys, LEAST_KEYS.div_ceil(keys).clamp(1, MOST_FILTERS))
}

/// About how long it takes: the unit is a tenth of an insertion.
pub(super) fn effort(case: &Case) -> u64 {
    let (_, filters) = timed_keys(case);
    u64::from(rounds(case.quick)) * filters * (case.items * 10 + 2 * case.slots().min(MOST_QUERIES as u64))
}

/// Measures all rounds, and returns how many of them count. `None` if a table that is nearly full refused a key.
pub(super) fn measure(case: &Case, seed: u64, interrupt: &Interrupt) -> anyhow::Result<Option<(u32, Times)>> {
    let mut life = Life::new(case, seed)?;
    let planned = rounds(case.quick) as usize;
    let enough = planned / 2 + 1;
    let (mut quiet, mut disturbed) = (Vec::new(), Vec::new());
    // Half as many further rounds at most, if too many were disturbed.
    while quiet.len() + disturbed.len() < planned || quiet.len() < enough && quiet.len() + disturbed.len() < planned + planned / 2
    {
        let Some((times, is_disturbed)) = life.round(interrupt)? else { return Ok(None) };
        if is_disturbed { disturbed.push(times) } else { quiet.push(times) }
    }
    let too_few = quiet.len() < enough;
    if too_few {
        quiet.append(&mut disturbed);
    }
    let [absent, present, insert, remove] = [0, 1, 2, 3].map(|operation| {
        let quartiles = Quartiles::of(quiet.iter().map(|times: &[f64; 4]| times[operation]));
        let digits = |ns: f64| Some((ns * 1000.0).round() / 1000.0);
        quartiles.map_or([None; 3], |Quartiles { low, median, high }| [median, low, high].map(digits))
    });
    let times = Times {
        find_absent_ns: absent[0],
        find_absent_ns_q1: absent[1],
        find_absent_ns_q3: absent[2],
        find_present_ns: present[0],
        find_present_ns_q1: present[1],
        find_present_ns_q3: present[2],
        insert_ns: insert[0],
        insert_ns_q1: insert[1],
        insert_ns_q3: insert[2],
        remove_ns: remove[0],
        remove_ns_q1: remove[1],
        remove_ns_q3: remove[2],
        disturbed: Some(too_few),
    };
    Ok(Some((u32::try_from(quiet.len())?, times)))
}

/// The parameters of a filter, and keys for it.
struct Life {
    params: Params,
    present: Vec<u64>,
    absent: Hashes,
    random: Hashes,
    /// The keys at the end of `present` that are timed.
    last: usize,
    filters: u64,
    queries: usize,
    watch: Stopwatch,
}

impl Life {
    fn new(case: &Case, seed: u64) -> anyhow::Result<Self> {
        let (last, filters) = timed_keys(case);
        let params = case.builder().params()?;
        Ok(Self {
            params,
            present: Hashes::new(seed).take(usize::try_from(case.items)?).collect(),
            absent: Hashes::new(!seed),
            random: Hashes::new(seed.rotate_left(32)),
            last: usize::try_from(last)?,
            filters,
            queries: params.slots().min(MOST_QUERIES),
            watch: Stopwatch::new(),
        })
    }

    /// The times of look-ups of absent and of present keys, of insertions and of removals, and whether one of them was disturbed.
    /// `None` if a key was refused.
    fn round(&mut self, interrupt: &Interrupt) -> anyhow::Result<Option<([f64; 4], bool)>> {
        let (mut sums, mut is_disturbed) = ([0.0; 4], false);
        let mut add = |operation: usize, lap: Lap, keys: usize| {
            sums[operation] += lap.time.as_nanos() as f64 / keys as f64;
            is_disturbed |= lap.disturbed;
        };
        for _ in 0..self.filters {
            interrupt.check()?;
            let mut filter = CuckooFilter::new(self.params, Xxh3)?;
            let (first, last) = self.present.split_at(self.present.len() - self.last);
            if filter.insert_batch(first).is_err() {
                return Ok(None);
            }
            let (inserted, lap) = self.watch.time(|| last.iter().take_while(|&key| filter.insert(key).is_ok()).count());
            if inserted < last.len() {
                return Ok(None);
            }
            add(2, lap, last.len());
            let absent: Vec<_> = self.absent.by_ref().take(self.queries).collect();
            let present =
                self.random.by_ref().take(self.queries).map(|number| self.present[position(number, self.present.len())]);
            let present: Vec<_> = present.collect();
            for (operation, keys, there) in [(0, &absent, 0), (1, &present, self.queries)] {
                let (found, lap) = self.watch.time(|| keys.iter().filter(|&key| black_box(filter.contains(key))).count());
                let expected = expected(&filter, there, self.queries);
                ensure!(expected.contains(&found), "{found} keys were found, but {expected:?} were expected");
                add(operation, lap, self.queries);
            }
            let (removed, lap) = self.watch.time(|| last.iter().filter(|&key| filter.remove(key)).count());
            ensure!(removed == last.len(), "{} of {} items could not be removed", last.len() - removed, last.len());
            add(3, lap, last.len());
        }
        Ok(Some((sums.map(|sum| sum / self.filters as f64), is_disturbed)))
    }
}
