//! Times that know whether something else disturbed them.
//!
//! Beside the clock, a [`Stopwatch`] reads what the system says about other work on the processor, and times a piece of
//! [reference](Signals::reference) work before and after. Linux tells how long the thread waited for a processor, how often
//! it was interrupted, and how long a hypervisor ran something else; on other systems, the reference alone decides.

mod system;

use std::{fmt, hint::black_box, time::Duration};

use system::System;

use crate::statistics::Quartiles;

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
pub struct Counters {
    /// How long the thread was ready to run, but another one ran.
    pub waited: Option<Duration>,
    /// How often it was interrupted for another one.
    pub interruptions: Option<u64>,
    /// How long a hypervisor ran something else, on all processors together.
    pub stolen: Option<Duration>,
}

/// Where a stopwatch gets its readings from.
pub trait Signals {
    /// The time since any fixed point.
    fn clock(&mut self) -> Duration;

    /// The counters of this thread.
    fn counters(&mut self) -> Counters;

    /// The time of a piece of work that is always the same.
    fn reference(&mut self) -> Duration;
}

/// A measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

    /// A stopwatch with other signals.
    #[must_use]
    pub fn with(signals: impl Signals + 'static) -> Self {
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

impl fmt::Debug for Stopwatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stopwatch").field("fastest", &self.fastest).finish_non_exhaustive()
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
    /// The shortest of these.
    pub least: f64,
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

    /// The times that were not disturbed.
    #[must_use]
    pub fn quiet(&self) -> &[f64] {
        &self.quiet
    }

    /// The times that were.
    #[must_use]
    pub fn disturbed(&self) -> &[f64] {
        &self.disturbed
    }

    /// The summary; `None` without times.
    #[must_use]
    pub fn timing(&self) -> Option<Timing> {
        let disturbed = self.lack();
        let counting = || self.quiet.iter().chain(self.disturbed.iter().filter(|_| disturbed)).copied();
        let Quartiles { low, median, high } = Quartiles::of(counting())?;
        let quartiles = Quartiles { low: thousandths(low), median: thousandths(median), high: thousandths(high) };
        Some(Timing { quartiles, least: counting().fold(f64::INFINITY, f64::min), disturbed })
    }
}

fn thousandths(ns: f64) -> f64 {
    (ns * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Signals made up: every piece of work takes a millisecond.
    #[derive(Default)]
    pub(crate) struct Fake {
        /// Whether the work with this number is disturbed, counted from 0.
        pub(crate) disturbs: Option<Box<dyn FnMut(u64) -> bool>>,
        works: u64,
        clocks: u64,
        waited: Duration,
    }

    impl Fake {
        pub(crate) fn disturbing(disturbs: impl FnMut(u64) -> bool + 'static) -> Stopwatch {
            Stopwatch::with(Self { disturbs: Some(Box::new(disturbs)), ..Self::default() })
        }
    }

    impl Signals for Fake {
        fn clock(&mut self) -> Duration {
            self.clocks += 1;
            if self.clocks.is_multiple_of(2) {
                if self.disturbs.as_mut().is_some_and(|disturbs| disturbs(self.works)) {
                    self.waited += Duration::from_micros(30);
                }
                self.works += 1;
            }
            Duration::from_millis(self.clocks)
        }

        fn counters(&mut self) -> Counters {
            Counters { waited: Some(self.waited), ..Counters::default() }
        }

        fn reference(&mut self) -> Duration {
            Duration::from_micros(20)
        }
    }

    #[test]
    fn a_disturbed_time_is_noticed() {
        let mut watch = Fake::disturbing(|work| work == 1);
        let laps = [(); 3].map(|()| watch.time(|| 7));
        assert_eq!(laps.map(|(result, lap)| (result, lap.disturbed)), [(7, false), (7, true), (7, false)]);
        assert!(laps.iter().all(|(_, lap)| lap.time == Duration::from_millis(1)));
    }

    /// No signal but the reference, which takes these times.
    struct Slowing(std::vec::IntoIter<u64>);

    impl Signals for Slowing {
        fn clock(&mut self) -> Duration {
            Duration::ZERO
        }

        fn counters(&mut self) -> Counters {
            Counters::default()
        }

        fn reference(&mut self) -> Duration {
            Duration::from_micros(self.0.next().unwrap_or(0))
        }
    }

    /// The only signal that every system has.
    #[test]
    fn a_slow_processor_is_noticed() {
        for (before, after, expected) in
            [(100, 100, false), (100, 109, false), (100, 111, true), (111, 100, true), (90, 100, true)]
        {
            let mut watch = Stopwatch::with(Slowing(vec![100, 100, before, after].into_iter()));
            assert!(!watch.time(|| ()).1.disturbed);
            assert_eq!(watch.time(|| ()).1.disturbed, expected, "{before} {after}");
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

    fn rounds(planned: usize, laps: &[(u64, bool)]) -> Rounds {
        let mut rounds = Rounds::new(planned);
        for &(time, disturbed) in laps {
            rounds.keep(Lap { time: Duration::from_nanos(time), disturbed }, 4);
        }
        rounds
    }

    #[test]
    fn disturbed_times_count_only_where_too_few_are_not() {
        let most = rounds(3, &[(4, false), (8, false), (400, true)]);
        let timing = most.timing().expect("there are times");
        assert!(!most.lack() && !timing.disturbed);
        assert_eq!((timing.quartiles.median, timing.least, timing.quartiles.high), (1.5, 1.0, 1.75));
        let few = rounds(3, &[(4, false), (8, true), (400, true)]);
        let timing = few.timing().expect("there are times");
        assert!(few.lack() && timing.disturbed);
        assert_eq!((timing.quartiles.median, timing.least), (2.0, 1.0));
        assert_eq!((few.quiet(), few.disturbed()), (&[1.0][..], &[2.0, 100.0][..]));
        assert_eq!(rounds(3, &[]).timing(), None);
    }
}
