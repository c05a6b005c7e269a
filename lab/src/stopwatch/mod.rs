//! Times that know whether something else disturbed them.
//!
//! Beside the clock, a [`Stopwatch`] reads what the system says about other work on the processor, and times a piece of
//! [reference](Signals::reference) work before and after. Linux tells how long the thread waited for a processor, how often
//! it was interrupted, and how long a hypervisor ran something else; on other systems, the reference alone decides.

mod rounds;
mod system;
#[cfg(test)]
mod tests;

use std::{fmt, hint::black_box, time::Duration};

use system::System;

pub use rounds::{Rounds, Timing};

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
