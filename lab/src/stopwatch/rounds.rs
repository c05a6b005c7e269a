//! The times of one operation in several rounds.

use super::Lap;
use crate::statistics::Quartiles;

/// The times of one operation in several rounds, in nanoseconds: those that other work disturbed apart from the others.
#[derive(Clone, Debug)]
pub struct Rounds {
    enough: usize,
    quiet: Vec<f64>,
    disturbed: Vec<f64>,
}

/// What is said of all rounds, in nanoseconds.
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
    use std::time::Duration;

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
