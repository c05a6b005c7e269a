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
    for (before, after, expected) in [(100, 100, false), (100, 109, false), (100, 111, true), (111, 100, true), (90, 100, true)] {
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
