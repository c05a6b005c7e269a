use super::{times::Operation, *};
use crate::stopwatch::tests::Fake;

fn scope(quick: bool, max_slots: Option<u64>) -> Scope {
    Scope { quick, seed: 1, max_slots }
}

#[test]
fn a_size_is_measured_once() {
    for quick in [false, true] {
        for most in [None, Some(1000), Some(10_000_000)] {
            let cases = Speed.cases(&scope(quick, most));
            assert!(!cases.is_empty());
            assert!(cases.iter().enumerate().all(|(place, case)| !cases[..place].contains(case)));
            assert!(cases.iter().all(|case| most.is_none_or(|most| case.slots <= most)));
        }
    }
}

/// Measures without disturbances, as every piece of work takes a millisecond.
fn measure(slots: u64, disturbs: impl FnMut(u64) -> bool + 'static) -> Vec<Row> {
    Case { slots }.measure(1, Fake::disturbing(disturbs), &Interrupt::new()).expect("nobody interrupts it")
}

#[test]
fn everything_is_timed_at_every_load() {
    let case = Case { slots: 8192 };
    let rows = measure(8192, |_| false);
    let kernels = Kernel::available().count();
    let count = |operation| rows.iter().filter(|row| row.operation == operation).count();
    assert_eq!(count(Operation::Read), 2 * 2);
    assert_eq!(count(Operation::Insert), 19 * 2 * 2 * kernels);
    assert_eq!(count(Operation::Remove), 19 * 2 * 2 * kernels);
    // At the last load there are three more shares of present keys.
    assert_eq!(count(Operation::Find), (19 * 2 + 3) * 2 * 2 * kernels);
    assert!(rows.iter().all(|row| row.quiet_ns.len() == case.rounds() && row.disturbed_ns.is_empty() && !row.disturbed));
    assert!(rows.iter().all(|row| row.ns > 0.0 && row.least_ns <= row.ns && row.low_ns <= Some(row.ns)));
    let findings = Speed.findings(&[Measured { case, rows }]);
    assert_eq!(findings.charts.len(), 7);
    assert!(findings.charts.iter().all(|chart| !chart.series.is_empty()));
    assert!(findings.warnings.is_empty());
    assert!(Speed.findings(&[]).charts.is_empty());
}

/// The real stopwatch, whatever it says.
#[test]
fn times_are_kept_whether_disturbed_or_not() {
    let case = Case { slots: 16 };
    let rows = Speed.measure(&case, 1, &Interrupt::new()).expect("nobody interrupts it");
    // A table too small for the highest loads is measured up to those that it reaches.
    assert!(rows.iter().any(|row| row.operation == Operation::Remove));
    assert!(rows.iter().all(|row| row.quiet_ns.len() + row.disturbed_ns.len() >= case.rounds() && row.ns > 0.0));
}

/// A few disturbed rounds are kept, but do not count, and nothing is measured again.
#[test]
fn a_disturbed_round_does_not_count() {
    let case = Case { slots: 100 };
    let first = measure(100, |work| work == 0);
    let disturbed: Vec<_> = first.iter().filter(|row| !row.disturbed_ns.is_empty()).collect();
    let [row] = disturbed[..] else { panic!("{disturbed:?}") };
    assert_eq!((row.operation, row.quiet_ns.len(), row.disturbed_ns.len()), (Operation::Read, case.rounds() - 1, 1));
    assert!(!row.disturbed);
}

#[test]
fn what_is_disturbed_too_often_is_measured_again_and_what_stays_so_is_marked() {
    let case = Case { slots: 100 };
    let rounds = case.rounds();
    let works: usize = measure(100, |_| false).iter().map(|row| row.quiet_ns.len()).sum();
    let works = works as u64;
    // All of the planned rounds, but none of the others.
    let rows = measure(100, move |work| work < works);
    assert!(rows.iter().all(|row| row.disturbed_ns.len() == rounds && row.quiet_ns.len() == rounds / 2 + 1 && !row.disturbed));
    // Always: half as many rounds follow, and no more.
    let rows = measure(100, |_| true);
    assert!(rows.iter().all(|row| row.disturbed_ns.len() == rounds + rounds.div_ceil(2) && row.quiet_ns.is_empty()));
    assert!(rows.iter().all(|row| row.disturbed && row.ns > 0.0));
    let count = rows.len();
    let findings = Speed.findings(&[Measured { case, rows }]);
    assert!(findings.warnings[0].contains(&format!("disturbed {count} of {count} times")), "{:?}", findings.warnings);
    for chart in &findings.charts {
        let marks: Vec<_> = chart.series.iter().filter(|series| series.colour == 4).collect();
        assert_eq!(marks.iter().filter(|series| series.name == "disturbed").count(), 1, "{}", chart.file);
        assert!(marks.iter().all(|series| !series.points.is_empty()));
    }
    assert!(findings.tables[0].rows[0][2].ends_with(") *"), "{:?}", findings.tables[0].rows[0]);
}

#[test]
fn it_stops_when_told_to() {
    let interrupt = Interrupt::new();
    interrupt.set();
    assert!(Speed.measure(&Case { slots: 8192 }, 1, &interrupt).expect_err("it was told to").is::<crate::Interrupted>());
}
