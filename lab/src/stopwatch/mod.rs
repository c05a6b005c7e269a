//! Times that know whether something else disturbed them.
//!
//! Beside the clock, a [`Stopwatch`] reads what the system says about other work on the processor, and times a piece of
//! [reference](Signals::reference) work before and after. Linux tells how long the thread waited for a processor, how often
//! it was interrupted, and how long a hypervisor ran something else; on other systems, the reference alone decides.

mod system;

use std::{hint::black_box, time::Duration};

use system::System;

use crate::Quartiles;

/// What counts as disturbed: the share of a measurement that was lost to other work.
const MOST_LOST: f64 = 0.02;
/// And how much longer the reference takes than at its fastest.
const MOST_SLOWED: f64 = 1.1;
/// The time to fill the processor's caches again after an interruption: 2 MiB at 40 GB/s.
const REFILL: Duration = Duration::from_micros(50);
/// How long an interruption is, where the system does not tell: the shortest slice of Linux' scheduler.
const SLICE: Duration = Duration::from_millis(3);

/// What has happened to this thread so far. What the system does not tell is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    /// How long the thread was ready to run, but another one ran.
    waited: Option<Duration>,
    /// How often it was interrupted for another one.
    interruptions: Option<u64>,
    /// How long a hypervisor ran something else, on all processors together.
    stolen: Option<Duration>,
}

/// Where a stopwatch gets its readings from.
trait Signals {
    /// The time since any fixed point.
    fn clock(&mut self) -> Duration;

    /// The counters of this thread.
    fn counters(&mut self) -> Counters;

    /// The time of a piece of work that is always the same.
    fn reference(&mut self) -> Duration;
}

/// A measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lap {
    /// How long the work took.
    pub time: Duration,
    /// Whether other work on the processor disturbed it.
    pub disturbed: bool,
}

/// Measures times in one thread.
pub struct Stopwatch {
    signals: Box<dyn Signals>,
    /// The fastest reference so far.
    fastest: Duration,
}

impl Stopwatch {
    /// A stopwatch for this thread.
    #[must_use]
    pub fn new() -> Self {
        let mut system = System::new();
        // The processor needs some time to reach its usual clock rate.
        let fastest = (0..50).map(|_| system.reference()).min();
        Self { signals: Box::new(system), fastest: fastest.unwrap_or(Duration::MAX) }
    }

    #[cfg(test)]
    fn with(signals: impl Signals + 'static) -> Self {
        Self { signals: Box::new(signals), fastest: Duration::MAX }
    }

    /// Does the work, and measures how long it takes.
    pub fn time<T>(&mut self, work: impl FnOnce() -> T) -> (T, Lap) {
        let reference = self.signals.reference();
        let before = self.signals.counters();
        let start = self.signals.clock();
        let result = black_box(work());
        let time = self.signals.clock().saturating_sub(start);
        let after = self.signals.counters();
        let slowest = reference.max(self.signals.reference());
        self.fastest = self.fastest.min(reference);
        let is_slow = slowest.as_secs_f64() > self.fastest.as_secs_f64() * MOST_SLOWED;
        let lost = lost(before, after).as_secs_f64() > time.as_secs_f64() * MOST_LOST;
        (result, Lap { time, disturbed: is_slow || lost })
    }
}

impl Default for Stopwatch {
    fn default() -> Self {
        Self::new()
    }
}

/// How much of the time between two readings was lost to other work.
fn lost(before: Counters, after: Counters) -> Duration {
    let between = |of: fn(Counters) -> Option<Duration>| Some(of(after)?.saturating_sub(of(before)?));
    let interruptions = after.interruptions.unwrap_or(0).saturating_sub(before.interruptions.unwrap_or(0));
    let interruptions = u32::try_from(interruptions).unwrap_or(u32::MAX);
    let waited = between(|counters| counters.waited).unwrap_or(SLICE.saturating_mul(interruptions));
    let stolen = between(|counters| counters.stolen).unwrap_or_default();
    waited.saturating_add(stolen).saturating_add(REFILL.saturating_mul(interruptions))
}

/// The times of one operation in several rounds, in nanoseconds: those that other work disturbed apart from the others.
#[derive(Clone, Debug)]
pub struct Rounds {
    enough: usize,
    quiet: Vec<f64>,
    disturbed: Vec<f64>,
}

/// Statistics of all rounds, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Of the rounds that count: those that were not disturbed, or all if these are too few.
    pub quartiles: Quartiles,
    /// How many rounds these are.
    pub rounds: usize,
    /// Whether too few rounds were undisturbed.
    pub disturbed: bool,
}

impl Rounds {
    /// For this many rounds, of which more than half must be undisturbed. More may be kept.
    #[must_use]
    pub fn new(planned: usize) -> Self {
        Self { enough: planned / 2 + 1, quiet: Vec::new(), disturbed: Vec::new() }
    }

    /// Keeps the time of one of `operations`, all of which took this lap, to a thousandth of a nanosecond: no clock is more
    /// precise.
    pub fn keep(&mut self, lap: Lap, operations: usize) {
        let each = lap.time.as_nanos() as f64 / operations as f64;
        let rounds = if lap.disturbed { &mut self.disturbed } else { &mut self.quiet };
        rounds.push(thousandths(each));
    }

    /// Whether too few rounds were undisturbed so far.
    #[must_use]
    pub fn lack(&self) -> bool {
        self.quiet.len() < self.enough
    }

    /// The summary; `None` without times.
    #[must_use]
    pub fn timing(&self) -> Option<Timing> {
        let disturbed = self.lack();
        let counting: Vec<_> = self.quiet.iter().chain(self.disturbed.iter().filter(|_| disturbed)).copied().collect();
        let rounds = counting.len();
        let Quartiles { low, median, high } = Quartiles::of(counting)?;
        let quartiles = Quartiles { low: thousandths(low), median: thousandths(median), high: thousandths(high) };
        Some(Timing { quartiles, rounds, disturbed })
    }
}

fn thousandths(ns: f64) -> f64 {
    (ns * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use std::vec::IntoIter;

    use super::*;

    /// Signals made up, in microseconds: each piece of work takes a thousand.
    struct Fake {
        clock: u64,
        waited: IntoIter<u64>,
        references: IntoIter<u64>,
    }

    impl Signals for Fake {
        fn clock(&mut self) -> Duration {
            self.clock += 1000;
            Duration::from_micros(self.clock)
        }

        fn counters(&mut self) -> Counters {
            Counters { waited: self.waited.next().map(Duration::from_micros), ..Counters::default() }
        }

        fn reference(&mut self) -> Duration {
            Duration::from_micros(self.references.next().unwrap_or(0))
        }
    }

    #[test]
    fn a_disturbed_time_is_noticed() {
        let cases = [
            ([0, 19], [100, 100], false),
            ([0, 21], [100, 100], true),
            ([30, 49], [100, 100], false),
            // A slow processor: the only signal that every system has.
            ([0, 0], [100, 109], false),
            ([0, 0], [100, 111], true),
            ([0, 0], [111, 100], true),
            ([0, 0], [90, 100], true),
        ];
        for (waited, references, disturbed) in cases {
            let waited = [[0, 0], waited].concat().into_iter();
            let references = [[100, 100], references].concat().into_iter();
            let mut watch = Stopwatch::with(Fake { clock: 0, waited, references });
            assert!(!watch.time(|| ()).1.disturbed);
            let lap = Lap { time: Duration::from_millis(1), disturbed };
            assert_eq!(watch.time(|| 7), (7, lap));
        }
    }

    #[test]
    fn what_is_lost_is_waiting_and_stealing_and_filling_caches() {
        let counters = |waited: Option<u64>, interruptions, stolen: Option<u64>| Counters {
            waited: waited.map(Duration::from_micros),
            interruptions,
            stolen: stolen.map(Duration::from_micros),
        };
        let lost = |before, after| lost(before, after).as_micros();
        assert_eq!(lost(counters(Some(5), Some(1), Some(10)), counters(Some(8), Some(3), Some(30))), 3 + 20 + 2 * 50);
        assert_eq!(lost(Counters::default(), Counters::default()), 0);
        // Without the time of waiting, each interruption counts as a slice.
        assert_eq!(lost(counters(None, Some(1), None), counters(None, Some(3), None)), 2 * (3000 + 50));
    }

    #[test]
    fn disturbed_times_count_only_where_too_few_are_not() {
        let timing = |laps: &[(u64, bool)]| {
            let mut rounds = Rounds::new(3);
            for &(time, disturbed) in laps {
                rounds.keep(Lap { time: Duration::from_nanos(time), disturbed }, 4);
            }
            let Timing { quartiles: Quartiles { low, median, high }, rounds, disturbed } = rounds.timing()?;
            Some(([low, median, high], rounds, disturbed))
        };
        assert_eq!(timing(&[(4, false), (8, false), (400, true)]), Some(([1.25, 1.5, 1.75], 2, false)));
        assert_eq!(timing(&[(4, false), (8, true), (400, true)]), Some(([1.5, 2.0, 51.0], 3, true)));
        assert_eq!(timing(&[]), None);
    }
}
