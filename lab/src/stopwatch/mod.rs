//! Measures times, and detects whether other work on the processor disturbed them.
//!
//! Besides the clock, a [`Stopwatch`] reads the system's counters of other work on the processor, and times a
//! [reference workload](system::reference) before and after. Linux counts how long the thread waited for a processor, how
//! often it was interrupted, and how long a hypervisor ran something else. Other systems have only the reference workload.

mod system;

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use system::{Counters, System, reference};

use crate::Quartiles;

/// The share of a measurement that may be lost to other work. Above it, the measurement counts as disturbed.
const MAX_LOST_SHARE: f64 = 0.02;
/// The ratio of the reference workload's time to its fastest time. Above it, the measurement counts as disturbed.
const MAX_SLOWDOWN: f64 = 1.1;
/// The time to refill the processor's caches after an interruption: 2 MiB at 40 GB/s.
const REFILL: Duration = Duration::from_micros(50);
/// The assumed length of an interruption if the system does not report waiting times: the shortest slice of Linux's scheduler.
const SLICE: Duration = Duration::from_millis(3);

/// A measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lap {
    /// The time that the work took.
    pub time: Duration,
    /// True if other work on the processor disturbed the measurement.
    pub disturbed: bool,
}

/// A stopwatch for work in one thread.
pub struct Stopwatch {
    system: System,
    /// The shortest time of the reference workload so far.
    fastest: Duration,
}

impl Stopwatch {
    /// Returns a stopwatch for this thread.
    #[must_use]
    pub fn new() -> Self {
        // The processor needs some time to reach its usual clock rate.
        let fastest = (0..50).map(|_| reference()).min();
        Self { system: System::new(), fastest: fastest.unwrap_or(Duration::MAX) }
    }

    /// Runs the work and measures how long it takes.
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> (T, Lap) {
        let reference_before = reference();
        let before = self.system.counters();
        let start = Instant::now();
        let result = black_box(work());
        let time = start.elapsed();
        let after = self.system.counters();
        (result, self.lap(time, [before, after], [reference_before, reference()]))
    }

    /// Returns the lap of this time, given the counters and the times of the reference workload before and after it.
    fn lap(&mut self, time: Duration, [before, after]: [Counters; 2], references: [Duration; 2]) -> Lap {
        self.fastest = self.fastest.min(references[0]);
        let slowest = references[0].max(references[1]);
        let is_slow = slowest.as_secs_f64() > self.fastest.as_secs_f64() * MAX_SLOWDOWN;
        let is_interrupted = lost_time(before, after).as_secs_f64() > time.as_secs_f64() * MAX_LOST_SHARE;
        Lap { time, disturbed: is_slow || is_interrupted }
    }
}

impl Default for Stopwatch {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the time between two readings that was lost to other work.
fn lost_time(before: Counters, after: Counters) -> Duration {
    let between = |counter: fn(Counters) -> Option<Duration>| Some(counter(after)?.saturating_sub(counter(before)?));
    let interruptions = after.interruptions.unwrap_or(0).saturating_sub(before.interruptions.unwrap_or(0));
    let interruptions = u32::try_from(interruptions).unwrap_or(u32::MAX);
    let waited = between(|counters| counters.waited).unwrap_or(SLICE.saturating_mul(interruptions));
    let stolen = between(|counters| counters.stolen).unwrap_or_default();
    waited.saturating_add(stolen).saturating_add(REFILL.saturating_mul(interruptions))
}

/// The times of one operation in several rounds, in nanoseconds. Disturbed rounds are kept apart from quiet ones.
#[derive(Clone, Debug)]
pub struct Rounds {
    needed: usize,
    quiet: Vec<f64>,
    disturbed: Vec<f64>,
}

/// Statistics of all rounds, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The quartiles of the rounds that count: the undisturbed ones, or all if too few are undisturbed.
    pub quartiles: Quartiles,
    /// The number of rounds that count.
    pub rounds: usize,
    /// True if too few rounds were undisturbed.
    pub disturbed: bool,
}

impl Rounds {
    /// Creates an empty list for this many rounds. More than half of them must be undisturbed; more rounds may be added.
    #[must_use]
    pub fn new(planned: usize) -> Self {
        Self { needed: planned / 2 + 1, quiet: Vec::new(), disturbed: Vec::new() }
    }

    /// Adds a round in which `operations` took this lap together. The time of one operation is rounded to a thousandth of a
    /// nanosecond, because no clock is more precise.
    pub fn record(&mut self, lap: Lap, operations: usize) {
        let each = lap.time.as_nanos() as f64 / operations as f64;
        let rounds = if lap.disturbed { &mut self.disturbed } else { &mut self.quiet };
        rounds.push(round_to_thousandths(each));
    }

    /// Returns true if too few rounds have been undisturbed so far.
    #[must_use]
    pub fn needs_more(&self) -> bool {
        self.quiet.len() < self.needed
    }

    /// Returns the statistics of all rounds, or `None` if there are no rounds.
    #[must_use]
    pub fn timing(&self) -> Option<Timing> {
        let disturbed = self.needs_more();
        let counting: Vec<_> = self.quiet.iter().chain(self.disturbed.iter().filter(|_| disturbed)).copied().collect();
        let rounds = counting.len();
        let Quartiles { low, median, high } = Quartiles::of(counting)?;
        let quartiles =
            Quartiles { low: round_to_thousandths(low), median: round_to_thousandths(median), high: round_to_thousandths(high) };
        Some(Timing { quartiles, rounds, disturbed })
    }
}

fn round_to_thousandths(ns: f64) -> f64 {
    (ns * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn laps_have_the_time_of_the_work() {
        let millisecond = Duration::from_millis(1);
        let (result, lap) = Stopwatch::new().time(|| {
            std::thread::sleep(millisecond);
            7
        });
        assert!(result == 7 && lap.time >= millisecond, "{lap:?}");
    }

    #[test]
    fn disturbed_times_are_detected() {
        let cases = [
            ([0, 19], [100, 100], false),
            ([0, 21], [100, 100], true),
            ([30, 49], [100, 100], false),
            // The processor is slow, which every system can detect.
            ([0, 0], [100, 109], false),
            ([0, 0], [100, 111], true),
            ([0, 0], [111, 100], true),
            ([0, 0], [90, 100], true),
        ];
        for (waited, references, disturbed) in cases {
            let mut watch = Stopwatch { system: System::new(), fastest: Duration::MAX };
            let time = Duration::from_millis(1);
            let mut lap = |waited: [u64; 2], references: [u64; 2]| {
                let counters = waited.map(|us| Counters { waited: Some(Duration::from_micros(us)), ..Counters::default() });
                watch.lap(time, counters, references.map(Duration::from_micros))
            };
            assert!(!lap([0, 0], [100, 100]).disturbed);
            assert_eq!(lap(waited, references), Lap { time, disturbed }, "{waited:?} {references:?}");
        }
    }

    #[test]
    fn lost_time_is_waiting_stealing_and_refilling_caches() {
        let counters = |waited: Option<u64>, interruptions, stolen: Option<u64>| Counters {
            waited: waited.map(Duration::from_micros),
            interruptions,
            stolen: stolen.map(Duration::from_micros),
        };
        let lost_time = |before, after| lost_time(before, after).as_micros();
        assert_eq!(lost_time(counters(Some(5), Some(1), Some(10)), counters(Some(8), Some(3), Some(30))), 3 + 20 + 2 * 50);
        assert_eq!(lost_time(Counters::default(), Counters::default()), 0);
        // If the waiting time is unknown, each interruption counts as one slice.
        assert_eq!(lost_time(counters(None, Some(1), None), counters(None, Some(3), None)), 2 * (3000 + 50));
    }

    #[test]
    fn disturbed_rounds_count_only_if_too_few_are_quiet() {
        let timing = |laps: &[(u64, bool)]| {
            let mut rounds = Rounds::new(3);
            for &(time, disturbed) in laps {
                rounds.record(Lap { time: Duration::from_nanos(time), disturbed }, 4);
            }
            let Timing { quartiles: Quartiles { low, median, high }, rounds, disturbed } = rounds.timing()?;
            Some(([low, median, high], rounds, disturbed))
        };
        assert_eq!(timing(&[(4, false), (8, false), (400, true)]), Some(([1.25, 1.5, 1.75], 2, false)));
        assert_eq!(timing(&[(4, false), (8, true), (400, true)]), Some(([1.5, 2.0, 51.0], 3, true)));
        assert_eq!(timing(&[]), None);
    }
}
